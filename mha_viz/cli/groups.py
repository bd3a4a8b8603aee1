"""The command ``mha-viz groups``: print what a head does over a corpus, in groups."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from mha_viz.analysis.link_groups import LinkGroups
from mha_viz.cli.cluster import add_cluster_options, get_partial_folder, offer_to_continue, open_cluster
from mha_viz.cli.models import check_heads, choose_model, load_model
from mha_viz.cli.options import (
    Parser,
    add_device_option,
    add_dtype_option,
    add_most_option,
    add_output_options,
    make_int_parser,
)
from mha_viz.cli.output import TABLE_FORMATS, parse_table_destination, write_and_print
from mha_viz.cli.profile import add_corpus_option, open_source
from mha_viz.cli.quantities import add_recipes_option, open_recipes
from mha_viz.cli.search import format_sentence, parse_model_and_head
from mha_viz.cli.terminal import one_line, print_warnings, progress_bar
from mha_viz.figures.layout.caption import format_head
from mha_viz.numerals import counted, percent
from mha_viz.process.steps import run_steps

parse_links = make_int_parser(2, 2_000, "a number of links")
MAX_LISTED = 3  # sentences of a group that are printed


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    help_text = "a model, as for `mha-viz attention`, and a head: minilm/L3H1"
    parser.add_argument("head", type=parse_model_and_head, metavar="MODEL/HEAD", help=help_text)
    add_corpus_option(parser)
    add_recipes_option(parser, "; else a recipe is chosen on CORPUS")
    add_most_option(parser, 2, 100_000, 300)
    help_text = "number of links to sample (default: 400)"
    parser.add_argument("--links", type=parse_links, default=400, metavar="N", help=help_text)
    add_output_options(parser, TABLE_FORMATS, required=False)
    add_device_option(parser)
    add_dtype_option(parser)
    add_cluster_options(parser)


def run(args: argparse.Namespace) -> None:
    """Print the groups of a head's links over a corpus, each with its share and some sentences."""
    destination = parse_table_destination(args.out, args.format)
    name, head = args.head
    model = choose_model(name)
    check_heads(model, [head])
    recipes = open_recipes(args)
    folder = get_partial_folder(destination, "parts")
    with offer_to_continue(folder), open_cluster(args) as cluster, print_warnings():
        corpus = open_source(args.corpus, cluster=cluster)
        from mha_viz.study.link_groups import group_in_steps
        from mha_viz.study.readers import open_measurable  # imports torch

        with progress_bar("of the text") as progress:
            encoder, source = (
                load_model(model, args.device, args.dtype),
                open_measurable(corpus, cluster and cluster.client),
            )
            steps = group_in_steps(encoder, source, head, recipes, args.most, args.links, folder)
            groups = run_steps(steps, progress)
    write_and_print(destination, groups.table, map(one_line, _format_lines(groups)))


def _format_lines(groups: LinkGroups) -> Iterator[str]:
    sample = f"{counted(len(groups.links), 'link')} from {counted(groups.sentences, 'sentence')}"
    yield f"{groups.model} {format_head(groups.head)} on {groups.corpus}: {sample}, of equal shares of attention"
    for group in groups.groups:
        name = f"unexplained, {group.name}" if group.kind == "unexplained" else group.name
        yield f"{percent(group.share)}  {'; '.join([name, *group.common])}"
        for link in (groups.links[number] for number in group.spread(MAX_LISTED)):
            ends = f"{link.query.form} → {link.key.form}"
            yield format_sentence(link.weight, link.number, ends, link.sentence.forms, {link.query.word, link.key.word})
