"""``mha-viz toy``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mha_viz import exports
from mha_viz.attention import Head
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import Parser, count
from mha_viz.cli.terminal import bar
from mha_viz.errors import ExportError, SettingError
from mha_viz.files import make_folder

OPTIONS_OF = {
    "train": ("steps",),
    "evaluate": ("sentences", "model"),
    "history": ("sentences",),
}  # the options that only some actions have


def options(toy: Parser) -> None:
    """Add the options of the command."""
    toy.add_argument(
        "what",
        metavar="WHAT",
        choices=("train", "evaluate", "history"),
        help="train; evaluate one model; or history, the shipped model at every snapshot of its training",
    )
    toy.add_argument("--seed", default=0, type=count, metavar="N", help="seed of the random numbers (default: 0)")
    toy.add_argument("--out", required=True, type=Path, metavar="PATH", help="train: a folder; otherwise a .csv file")
    toy.add_argument(
        "--steps", type=count, metavar="N", help="train: number of steps (default: as for the shipped model)"
    )
    toy.add_argument(
        "--sentences", type=count, metavar="N", help="evaluate, history: number of sentences (default: 500)"
    )
    toy.add_argument("--model", metavar="NAME", help="evaluate: another folder, or toy@400 after 400 steps")


def run(args: argparse.Namespace) -> None:
    """Train the toy model, or measure it."""
    for option in ("steps", "sentences", "model"):
        if getattr(args, option) is not None and option not in OPTIONS_OF[args.what]:
            of = " and ".join(what for what, options in OPTIONS_OF.items() if option in options)
            raise SettingError(f"--{option} does not go with toy {args.what}.", f"It goes with {of}.")
    if args.what == "train":
        _train(args)
    else:
        _evaluate(args)


def _train(args: argparse.Namespace) -> None:
    from mha_viz.training import toy_model

    steps = toy_model.STEPS if args.steps is None else args.steps
    if not steps:
        raise SettingError("0 steps teach nothing.", "Give at least 1.")
    make_folder(args.out)
    if (args.out / "model.safetensors").exists():
        raise ExportError(f"{args.out} already contains a model.", "Choose another folder, or delete that one.")
    with bar("of the steps") as show:
        trained = toy_model.train(args.seed, steps, lambda so_far: show(so_far.step, so_far.steps))
    try:
        toy_model.save(trained, args.out)
    except OSError as error:
        raise ExportError(f"{args.out} cannot be written: {error.strerror or error}.", "Choose another.") from error
    last = trained.history[-1]
    losses = ", ".join(f"{name} {loss:.3f}" for name, loss in last.losses.items())
    print(f"{args.out}: seed {trained.seed}, {last.steps:,} step{'s' * (last.steps > 1)}, loss: {losses}")


def _evaluate(args: argparse.Namespace) -> None:
    if args.out.suffix != ".csv":
        raise ExportError(f"{args.out} does not name a table.", "Give a file that ends in .csv.")
    sentences = 500 if args.sentences is None else args.sentences
    if not sentences:
        raise SettingError("0 sentences decide nothing.", "Give at least 1.")
    from mha_viz.study import toy_scores

    if args.what == "history":
        with bar("of the steps") as show:
            table = toy_scores.history("toy", args.seed, sentences, show)
    else:
        table = toy_scores.evaluate(load_model(choose_model(args.model or "toy")), args.seed, sentences)
    written = table.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode()
    exports.write_bytes(args.out, lambda: written)
    if args.what == "history":
        table = table[table["step"] == table["step"].max()]
    rows: list[Any] = list(table.itertuples(index=False))
    for task in dict.fromkeys(row.task for row in rows):
        best = max((row for row in rows if row.task == task), key=lambda row: row.correct)
        head = Head(best.layer, best.head)
        score = f"{head} ({head.paper}) {best.accuracy:.3f} of {best.n:,}, baseline {best.baseline:.3f}"
        print(f"{task}: {score if best.n else 'no case in these sentences'}")
