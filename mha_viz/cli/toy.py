"""The command ``mha-viz toy``: train the toy model from a seed, or measure its heads."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from mha_viz.attention import Head
from mha_viz.cli.cluster import get_partial_folder, offer_to_continue
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import Parser, add_output_options, parse_count, parse_folder
from mha_viz.cli.output import Destination, parse_destination
from mha_viz.cli.terminal import bar, bars, progress_bar
from mha_viz.errors import ExportError, SettingError
from mha_viz.files import make_folder
from mha_viz.files.assets import asset_path
from mha_viz.files.tables import format_csv

FORMATS = (".csv", ".json")
JOBS = ("train", "evaluate", "history", "effects")


def add_options(toy_parser: Parser, examples: dict[str, str]) -> None:
    """Add the subcommands, each with its options and examples."""
    jobs = toy_parser.add_subparsers(title="jobs", metavar="JOB", required=True)

    def add_job(name: str, run: Callable[[argparse.Namespace], None], summary: str) -> Parser:
        parser = toy_parser.add_command(jobs, name, run, summary, examples.get(name, ""))
        parser.add_argument(
            "--seed", default=0, type=parse_count, metavar="N", help="seed of the random numbers (default: 0)"
        )
        return parser

    _add_train_options(add_job("train", train, "Train a toy model from a seed."))
    evaluate_parser = add_job("evaluate", evaluate, "Measure the heads of a toy model on newly sampled sentences.")
    evaluate_parser.add_argument(
        "--model",
        default="toy",
        metavar="NAME",
        help="toy; toy@400, as it was after 400 steps; or a folder from `mha-viz toy train` (default: toy)",
    )
    history_parser = add_job("history", history, "Measure a bundled model at every snapshot of its training.")
    help_text = "toy, on sampled sentences; or repeater, on as many sequences of repeated words (default: toy)"
    history_parser.add_argument("--kind", default="toy", choices=("toy", "repeater"), metavar="NAME", help=help_text)
    help_text = "measure the toy in this folder from `mha-viz toy train` instead of the bundled one"
    history_parser.add_argument("--folder", type=parse_folder, metavar="DIR", help=help_text)
    summary = "Measure how well the bundled toy finds what a pronoun refers to with each head or layer off."
    effects_parser = add_job("effects", effects, summary)
    for sentence_parser in (evaluate_parser, history_parser, effects_parser):
        sentence_parser.add_argument(
            "--sentences",
            default=500,
            type=parse_count,
            metavar="N",
            help="number of sentences to sample (default: 500)",
        )
        add_output_options(sentence_parser, FORMATS)


def _add_train_options(parser: Parser) -> None:
    parser.add_argument(
        "--out",
        required=True,
        type=parse_folder,
        metavar="DIR",
        help="folder to write the model to; must not contain a model",
    )
    help_text = (
        "toy, the small BERT of the grammar; hidden, the same trained on hidden words only; or repeater, the causal "
        "one that continues repeated words (default: toy)"
    )
    parser.add_argument("--kind", default="toy", choices=("toy", "hidden", "repeater"), metavar="NAME", help=help_text)
    parser.add_argument(
        "--steps",
        type=parse_count,
        metavar="N",
        help="number of training steps (default: as for the bundled model)",
    )


def train(args: argparse.Namespace) -> None:
    """Train the toy model and write it to a folder."""
    from mha_viz.lab import repeater, toy_model

    module = repeater if args.kind == "repeater" else toy_model
    steps = module.STEPS if args.steps is None else args.steps
    if not steps:
        raise SettingError("A model cannot train for 0 steps.", "Give at least 1.")
    make_folder(args.out)
    if (args.out / "model.safetensors").exists():
        raise ExportError(f"{args.out} already contains a model.", "Choose another folder, or delete that one.")
    with bars("of the sentences sampled", "of the steps") as (report_sampling, report_step):
        options: dict[str, Any] = {} if args.kind == "repeater" else {"report_sampling": report_sampling}
        options |= {"questions": ()} if args.kind == "hidden" else {}
        model = module.train(args.seed, steps, lambda progress: report_step(progress.step, progress.steps), **options)
    try:
        toy_model.save(model, args.out, module.make_tokenizer())
    except OSError as error:
        raise ExportError(f"{args.out} cannot be written: {error.strerror or error}.", "Choose another.") from error
    last_step = model.history[-1]
    losses = ", ".join(f"{name} {loss:.3f}" for name, loss in last_step.losses.items())
    print(f"{args.out}: seed {model.seed}, {last_step.steps:,} step{'s' * (last_step.steps > 1)}, loss: {losses}")


def evaluate(args: argparse.Namespace) -> None:
    """Measure one toy model, and write the scores of its heads."""
    _write_scores(args, lambda: _evaluate(args))


def history(args: argparse.Namespace) -> None:
    """Measure every snapshot of the bundled model, and write the scores of its heads."""
    _write_scores(args, lambda: _measure_history(args))


def effects(args: argparse.Namespace) -> None:
    """Measure the answers of the bundled model with and without its heads, and write a table."""
    destination = _parse_destination(args)
    from mha_viz.study.toy_effects import measure_without_heads

    folder = get_partial_folder(destination, "parts")
    with offer_to_continue(folder), progress_bar("sentences") as progress:
        table = measure_without_heads(load_model(choose_model("toy")), args.seed, args.sentences, progress, folder)
    destination.write(lambda: _format_table(table, destination.suffix))
    for row in table.itertuples(index=False):
        destination.report(f"without {row.off}: {row.accuracy:.3f} of {row.n:,}, baseline {row.baseline:.3f}")


def _evaluate(args: argparse.Namespace) -> Any:
    from mha_viz.study import toy_scores

    return toy_scores.evaluate(load_model(choose_model(args.model)), args.seed, args.sentences)


def _measure_history(args: argparse.Namespace) -> Any:
    from mha_viz.study import decoder_heads, toy_scores

    if args.kind == "repeater":
        if args.folder:
            raise SettingError("--folder is for a toy, not for a repeater.", "Leave one of the two out.")
        return decoder_heads.measure_history(args.kind, args.sentences, args.seed)
    with bar("of the steps") as show:
        return toy_scores.evaluate_snapshots(args.folder or asset_path("toy"), args.seed, args.sentences, show)


def _write_scores(args: argparse.Namespace, measure: Callable[[], Any]) -> None:
    destination = _parse_destination(args)
    table = measure()
    destination.write(lambda: _format_table(table, destination.suffix))
    last_rows = table[table["step"] == table["step"].max()] if "step" in table else table
    rows = list(last_rows.itertuples(index=False))
    for task in dict.fromkeys(row.task for row in rows):
        best_row = max((row for row in rows if row.task == task), key=lambda row: row.accuracy)
        head = Head(best_row.layer, best_row.head)
        score = f"{head} ({head.paper}) {best_row.accuracy:.3f} of {best_row.n:,}, baseline {best_row.baseline:.3f}"
        destination.report(f"{task}: {score if best_row.n else 'no case in these sentences'}")


def _parse_destination(args: argparse.Namespace) -> Destination:
    destination = parse_destination(args.out, args.format, FORMATS, "a table format")
    if not args.sentences:
        raise SettingError("There is nothing to measure in 0 sentences.", "Give at least 1.")
    return destination


def _format_table(table: Any, suffix: str) -> bytes:
    if suffix == ".json":
        return f"{table.to_json(orient='records', double_precision=6)}\n".encode()
    return format_csv(table, 6).encode()
