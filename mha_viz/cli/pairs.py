"""The command ``mha-viz pairs``: test a model and its heads on minimal pairs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mha_viz.analysis.pairs import MAX_Q, HeadEffect, MinimalPairs, require_any_single_head
from mha_viz.analysis.profile import check_same_model
from mha_viz.attention import Head
from mha_viz.cli.cluster import get_partial_folder, offer_to_continue
from mha_viz.cli.models import check_heads, choose_model, load_model
from mha_viz.cli.options import (
    MODEL_HELP,
    Parser,
    add_device_option,
    add_dtype_option,
    add_output_options,
    parse_folder,
)
from mha_viz.cli.output import TABLE_FORMATS, parse_table_destination, write_and_print
from mha_viz.cli.profile import read_own_profile
from mha_viz.cli.quantities import add_recipes_option, open_recipes, parse_heads
from mha_viz.cli.terminal import one_line, print_warnings, progress_bar
from mha_viz.corpus.pairs import ALL_PAIRS, BUILT_IN_PAIRS, read_pairs
from mha_viz.figures.layout.caption import format_head
from mha_viz.files import make_folder
from mha_viz.numerals import counted, decimal, with_interval
from mha_viz.request import METHODS, METHODS_OVER_CORPUS

if TYPE_CHECKING:
    import pandas as pd

MAX_LISTED = 12  # maximum number of heads in a list


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    help_text = (
        "a file with GOOD, BAD and optionally KIND per line, separated by tabs; or JSON lines as BLiMP publishes them; "
    )
    help_text += f"or {' or '.join(BUILT_IN_PAIRS)}, which are built in"
    parser.add_argument("pairs", metavar="FILE", help=help_text)
    help_text = f"a model that predicts words: {MODEL_HELP}"
    parser.add_argument("--model", required=True, metavar="NAME", help=help_text)
    help_text = "heads to switch off, one at a time (L3H1,L2H4) or together (L3H1+L2H4); by default, each head"
    parser.add_argument("--heads", type=_parse_head_sets, metavar="HEADS", help=help_text)
    help_text = "what replaces a head’s output: zero; mean: its mean over the pairs; uniform: its output with uniform "
    help_text += "weights; recipe: its output with the weights of its recipe; resample: its output on random good "
    help_text += f"sentences (default: {METHODS[0]})"
    parser.add_argument("--method", default=METHODS[0], choices=METHODS_OVER_CORPUS, metavar="METHOD", help=help_text)
    add_recipes_option(parser)
    add_output_options(parser, TABLE_FORMATS, required=False)
    help_text = "also store the results as needed.csv in this folder, a profile of the same model, for the Roles page"
    parser.add_argument("--profile", type=parse_folder, metavar="DIR", help=help_text)
    add_device_option(parser)
    add_dtype_option(parser)


def run(args: argparse.Namespace) -> None:
    """Measure which sentence of each pair the model prefers, with all heads and without each."""
    destination = parse_table_destination(args.out, args.format)
    model = choose_model(args.model)
    check_heads(model, [head for heads in args.heads or () for head in heads])
    pairs, recipes = read_pairs(args.pairs), open_recipes(args)
    profile = None if args.profile is None else read_own_profile(args.profile)
    if profile is not None and args.heads is not None:
        require_any_single_head(args.heads)
    folder = get_partial_folder(destination, "parts")
    from mha_viz.study.pairs import minimal_pairs  # imports torch

    with offer_to_continue(folder), print_warnings():
        encoder = load_model(model, args.device, args.dtype)
        if profile is not None:
            check_same_model(profile, encoder.name, encoder.revision)
        if folder is not None:
            make_folder(folder)
        with progress_bar("pairs") as progress:
            result = minimal_pairs(
                encoder,
                pairs,
                method=args.method,
                heads=args.heads,
                recipes=recipes,
                resume=folder,
                progress=progress,
            )
        write_and_print(destination, lambda: _make_table(result), map(one_line, _iter_lines(result)))
    if profile is not None:
        result.stored_in(profile).write(args.profile)


def _parse_head_sets(value: str) -> list[list[Head]]:
    """Parse heads that are off alone or together, as in "L3H1,L2H4+L2H5"."""
    return [[*parse_heads(part.replace("+", ","))] for part in value.split(",")]


def _make_table(result: MinimalPairs) -> pd.DataFrame:
    """Return the rows of all heads, first for all pairs, then for each kind, which is the first column."""
    import pandas as pd

    tables = []
    for kind in (ALL_PAIRS, *result.kinds):
        table = result.heads(kind)
        table.insert(0, "kind", kind)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _iter_lines(result: MinimalPairs) -> Iterator[str]:
    """Yield the accuracies, the heads that the preference needs, and those of each kind of pair."""
    skipped_pairs = f", {counted(result.left_out, 'pair')} skipped" if result.left_out else ""
    yield f"{result.model} on {result.name}: {result.score}; heads switched off by {result.method}{skipped_pairs}"
    for row in result.accuracies():
        ties = f", {counted(row.ties, 'tie')}" if row.ties else ""
        yield (
            f"{row.kind}: prefers the good sentence in {with_interval(row.accuracy, *row.interval, 3)} of "
            f"{counted(row.n, 'pair')}, by {decimal(row.margin)} nats on average{ties}"
        )
    if result.accuracies()[0].ties:
        yield "In a tie, both sentences score the same, as when the words that differ are unknown to the model."
    rows = result.needs()  # one for each head, whether it is needed or not
    needed_heads = sorted((row for row in rows if row.is_needed), key=lambda row: row.difference)
    yield f"needed heads: {len(needed_heads)} of {len(rows)} (q < {MAX_Q}, and fewer pairs right without the head)"
    yield from map(_format_effect, needed_heads[:MAX_LISTED])
    if len(needed_heads) > MAX_LISTED:
        yield f"and {len(needed_heads) - MAX_LISTED} more"
    for kind in result.kinds:
        names = [_format_heads(row) for row in result.needs(kind) if row.is_needed]
        more = f", and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
        yield f"{kind}: {', '.join(names[:MAX_LISTED]) or 'none'}{more}"
    if len(needed_heads) < len(rows):
        yield "A head that is not listed may still contribute: others can make up for it (see --heads L0H0+L0H1)."


def _format_heads(row: HeadEffect) -> str:
    return " + ".join(map(format_head, row.heads))


def _format_effect(row: HeadEffect) -> str:
    accuracy_change = with_interval(row.difference, *row.interval, 3)
    roles = f"; {', '.join(row.roles)}" if row.roles else ""
    changed_pairs = f"{counted(row.lost, 'pair')} newly wrong, {row.gained} newly right"
    return f"{_format_heads(row)}  accuracy {accuracy_change}, {changed_pairs}{roles}"
