"""``mha-viz toy``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mha_viz import exports
from mha_viz.attention import Head
from mha_viz.cli.options import Parser, count
from mha_viz.cli.reading import chosen, loaded, make_folder
from mha_viz.cli.terminal import bar
from mha_viz.errors import ExportError, SettingError

OWN = {"train": ("steps",), "evaluate": ("sentences", "model"), "history": ("sentences",)}  # options of their own


def options(toy: Parser) -> None:
    """What can be asked of it."""
    toy.add_argument(
        "what",
        metavar="WHAT",
        choices=("train", "evaluate", "history"),
        help="train; evaluate one model; or history, the shipped model at every step of its training that is kept",
    )
    toy.add_argument("--seed", default=0, type=count, metavar="N", help="of the random numbers (default: 0)")
    toy.add_argument("--out", required=True, type=Path, metavar="PATH", help="train: a folder; otherwise a .csv file")
    toy.add_argument("--steps", type=count, metavar="N", help="train: how many (default: as the shipped model)")
    toy.add_argument("--sentences", type=count, metavar="N", help="evaluate, history: how many (default: 500)")
    toy.add_argument("--model", metavar="NAME", help="evaluate: another folder, or toy@400 after 400 steps")


def run(asked: argparse.Namespace) -> None:
    """Train the toy model, or measure it."""
    for option in ("steps", "sentences", "model"):
        if getattr(asked, option) is not None and option not in OWN[asked.what]:
            of = " and ".join(what for what, options in OWN.items() if option in options)
            raise SettingError(f"--{option} does not go with toy {asked.what}.", f"It goes with {of}.")
    if asked.what == "train":
        _train(asked)
    else:
        _evaluate(asked)


def _train(asked: argparse.Namespace) -> None:
    from mha_viz.training import toy_model

    steps = toy_model.STEPS if asked.steps is None else asked.steps
    if not steps:
        raise SettingError("0 steps teach nothing.", "Give at least 1.")
    make_folder(asked.out)
    if (asked.out / "model.safetensors").exists():
        raise ExportError(f"{asked.out} holds a model already.", "Choose another folder, or delete that one.")
    with bar("of the steps") as show:
        trained = toy_model.train(asked.seed, steps, lambda so_far: show(so_far.step, so_far.steps))
    try:
        toy_model.save(trained, asked.out)
    except OSError as error:
        raise ExportError(f"{asked.out} cannot be written: {error.strerror or error}.", "Choose another.") from error
    last = trained.history[-1]
    losses = ", ".join(f"{name} {loss:.3f}" for name, loss in last.losses.items())
    print(f"{asked.out}: seed {trained.seed}, {last.steps:,} step{'s' * (last.steps > 1)}, loss: {losses}")


def _evaluate(asked: argparse.Namespace) -> None:
    if asked.out.suffix != ".csv":
        raise ExportError(f"{asked.out} does not name a table.", "Give a file that ends in .csv.")
    sentences = 500 if asked.sentences is None else asked.sentences
    if not sentences:
        raise SettingError("0 sentences decide nothing.", "Give at least 1.")
    from mha_viz.study import toy_scores

    if asked.what == "history":
        with bar("of the steps") as show:
            table = toy_scores.history("toy", asked.seed, sentences, show)
    else:
        table = toy_scores.evaluate(loaded(chosen(asked.model or "toy")), asked.seed, sentences)
    written = table.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode()
    exports.write_bytes(asked.out, lambda: written)
    if asked.what == "history":
        table = table[table["step"] == table["step"].max()]
    rows: list[Any] = list(table.itertuples(index=False))
    for task in dict.fromkeys(row.task for row in rows):
        best = max((row for row in rows if row.task == task), key=lambda row: row.correct)
        head = Head(best.layer, best.head)
        found = f"{head} ({head.paper}) {best.accuracy:.3f} of {best.n:,}, baseline {best.baseline:.3f}"
        print(f"{task}: {found if best.n else 'no case in these sentences'}")
