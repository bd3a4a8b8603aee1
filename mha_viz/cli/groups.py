"""``mha-viz groups``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from mha_viz.analysis.link_groups import LinkGroups
from mha_viz.cli.cluster import cluster_for, cluster_options, continued, folder_beside
from mha_viz.cli.models import check_heads, choose_model, load_model
from mha_viz.cli.options import Parser, device_option, dtype_option, most_option, output_options, whole
from mha_viz.cli.output import TABLES, put_out, table_destination
from mha_viz.cli.profile import corpus_option, open_source
from mha_viz.cli.quantities import recipes_of, recipes_option
from mha_viz.cli.search import model_and_head, sentence_line
from mha_viz.cli.terminal import bar_of, one_line, warnings_as_lines
from mha_viz.figures.layout.caption import both
from mha_viz.numerals import counted, percent
from mha_viz.process.steps import completed

LINKS = whole(2, 2_000, "a number of links")
LISTED = 3  # sentences of a group that are printed


def options(groups: Parser) -> None:
    """Add the options of the command."""
    words = "a model, as for `mha-viz attention`, and a head: minilm/L3H1"
    groups.add_argument("head", type=model_and_head, metavar="MODEL/HEAD", help=words)
    corpus_option(groups)
    recipes_option(groups, "; else one is chosen on CORPUS")
    most_option(groups, 2, 100_000, 300)
    words = "number of links to draw (default: 400)"
    groups.add_argument("--links", type=LINKS, default=400, metavar="N", help=words)
    output_options(groups, TABLES, required=False)
    device_option(groups)
    dtype_option(groups)
    cluster_options(groups)


def run(args: argparse.Namespace) -> None:
    """Print the groups of a head's links over a corpus, each with its share and some sentences."""
    to = table_destination(args.out, args.format)
    name, head = args.head
    model = choose_model(name)
    check_heads(model, [head])
    recipes = recipes_of(args)
    folder = folder_beside(to, "parts")
    with continued(folder), cluster_for(args) as cluster, warnings_as_lines():
        corpus = open_source(args.corpus, cluster=cluster)
        from mha_viz.study.link_groups import grouping
        from mha_viz.study.readers import readable  # imports torch

        with bar_of("of the text") as progress:
            encoder, source = load_model(model, args.device, args.dtype), readable(corpus, cluster and cluster.client)
            steps = grouping(encoder, source, head, recipes, args.most, args.links, folder)
            groups = completed(steps, progress)
    put_out(to, groups.table, map(one_line, _lines(groups)))


def _lines(groups: LinkGroups) -> Iterator[str]:
    sampled = f"{counted(len(groups.links), 'link')} from {counted(groups.sentences, 'sentence')}"
    yield f"{groups.model} {both(groups.head)} on {groups.corpus}: {sampled}, each for the same share"
    for group in groups.groups:
        name = f"unexplained, {group.name}" if group.kind == "unexplained" else group.name
        yield f"{percent(group.share)}  {'; '.join([name, *group.common])}"
        for link in (groups.links[number] for number in group.spread(LISTED)):
            ends = f"{link.query.form} → {link.key.form}"
            yield sentence_line(link.weight, link.number, ends, link.sentence.forms, {link.query.word, link.key.word})
