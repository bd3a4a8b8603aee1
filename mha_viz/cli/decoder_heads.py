"""The command ``mha-viz decoder-heads``: find induction heads and related heads of a causal model."""

from __future__ import annotations

import argparse

from mha_viz.analysis.repeats import DRAWS, LENGTH, MEASURES, SEED, DecoderHeads, compute_chance
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import (
    Parser,
    add_device_option,
    add_dtype_option,
    add_output_options,
    make_int_parser,
    parse_count,
)
from mha_viz.cli.output import TABLE_FORMATS, parse_table_destination, write_and_print
from mha_viz.cli.terminal import one_line, progress_bar
from mha_viz.figures.layout.caption import format_head
from mha_viz.numerals import counted, decimal


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    help_text = (
        "a causal model: a name from `mha-viz models`, an id of the Hugging Face Hub, or a folder (default: gpt2)"
    )
    parser.add_argument("model", nargs="?", default="gpt2", metavar="MODEL", help=help_text)
    parse_length = make_int_parser(2, 256, "a number of tokens")
    help_text = f"number of tokens that are repeated (default: {LENGTH})"
    parser.add_argument("--length", type=parse_length, default=LENGTH, metavar="N", help=help_text)
    parse_draws = make_int_parser(1, 10_000, "a number of sequences")
    help_text = f"number of random sequences (default: {DRAWS})"
    parser.add_argument("--draws", type=parse_draws, default=DRAWS, metavar="N", help=help_text)
    help_text = f"seed of the random numbers (default: {SEED})"
    parser.add_argument("--seed", type=parse_count, default=SEED, metavar="N", help=help_text)
    add_output_options(parser, TABLE_FORMATS, required=False)
    add_device_option(parser)
    add_dtype_option(parser)


def run(args: argparse.Namespace) -> None:
    """Measure the heads of a causal model on repeated random tokens, and print those that have a role."""
    destination = parse_table_destination(args.out, args.format)
    model = choose_model(args.model)
    from mha_viz.study.decoder_heads import find_induction_heads  # imports torch

    encoder = load_model(model, args.device, args.dtype)
    with progress_bar("of the sequences") as progress:  # "12% of the sequences"
        result = find_induction_heads(
            encoder,
            length=args.length,
            draws=args.draws,
            seed=args.seed,
            progress=progress,
        )
    write_and_print(destination, result.table, map(one_line, _format_lines(result)))


def _format_lines(result: DecoderHeads) -> list[str]:
    sequences = f"{counted(result.draws, 'sequence')} of {result.length} random tokens, each sequence repeated once"
    lines = [f"{result.model} on {sequences}, seed {result.seed}; mean weight, best untrained head, chance"]
    roles = result.roles()
    for index, (measure, meaning) in enumerate(MEASURES.items()):
        lines.append(f"{measure}, {meaning}:")
        highest, highest_untrained = result.trained[index].max(), result.untrained[index].max()
        chance = compute_chance(result.length)[index]
        lines += [
            f"{format_head(role.head)}  {decimal(role.score, 3)}  {decimal(role.untrained, 3)}  "
            f"{decimal(role.chance, 3)}"
            for role in roles
            if role.measure == measure
        ] or [f"no head; the highest: {decimal(highest, 3)}  {decimal(highest_untrained, 3)}  {decimal(chance, 3)}"]
    return lines
