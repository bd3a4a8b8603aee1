"""The command ``mha-viz search``: print the sentences where a head has its strongest links."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Sequence

from mha_viz.analysis.links import Conditions, Search
from mha_viz.attention import Head
from mha_viz.cli.cluster import (
    add_cluster_options,
    explain_continuing,
    get_partial_folder,
    open_cluster,
    remove_if_empty,
    show_cluster_progress,
)
from mha_viz.cli.models import check_heads, choose_model, load_model
from mha_viz.cli.options import (
    Parser,
    add_device_option,
    add_dtype_option,
    add_output_options,
    make_int_parser,
    parse_head,
)
from mha_viz.cli.output import TABLE_FORMATS, parse_table_destination, write_and_print
from mha_viz.cli.profile import add_corpus_option, open_source
from mha_viz.cli.terminal import one_line, print_warnings, progress_bar
from mha_viz.figures.layout.caption import format_head
from mha_viz.numerals import counted
from mha_viz.quotes import quote

MAX_SENTENCE_WIDTH = 100  # characters of a sentence on a terminal
MAX_LISTED = 10  # rows of counts that are printed
CONDITIONS = {
    "query": "the word where the link begins",
    "key": "the word where the link ends",
    "dependent": "the dependent, in links between a dependent and its syntactic head",
    "governor": "the syntactic head, in such links",
}
parse_most = make_int_parser(1, 10_000, "a number of sentences")


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "head",
        type=parse_model_and_head,
        metavar="MODEL/HEAD",
        help="a model, as for `mha-viz attention`, and a head: minilm/L3H1",
    )
    add_corpus_option(parser)
    parser.add_argument(
        "--relation",
        default="",
        metavar="NAME",
        help="only links between a dependent and its syntactic head with this relation, such as nsubj",
    )
    for end, meaning in CONDITIONS.items():
        parser.add_argument(f"--{end}-word", default="", metavar="WORD", help=meaning)
        parser.add_argument(f"--{end}-pos", default="", metavar="TAG", help=f"the {end}’s part of speech, such as NOUN")
        if end in ("query", "key"):
            help_text = f"the {end}’s relation to its syntactic head, such as nsubj"
            parser.add_argument(f"--{end}-relation", default="", metavar="NAME", help=help_text)
    parser.add_argument(
        "--most", type=parse_most, default=20, metavar="N", help="number of sentences to list (default: 20)"
    )
    add_output_options(parser, TABLE_FORMATS, required=False)
    add_device_option(parser)
    add_dtype_option(parser)
    add_cluster_options(parser)


def parse_model_and_head(value: str) -> tuple[str, Head]:
    """Parse "minilm/L3H1"; the model may be a Hub id or a folder."""
    model, slash, head = value.rpartition("/")
    if not slash or not model:
        raise argparse.ArgumentTypeError(f"{quote(value)} is not a model and a head; write minilm/L3H1")
    return model, parse_head(head)


def run(args: argparse.Namespace) -> None:
    """Print the sentences of a corpus where a head has its strongest links, and count the links."""
    destination = parse_table_destination(args.out, args.format)
    name, head = args.head
    model = choose_model(name)
    check_heads(model, [head])
    folder = get_partial_folder(destination, "parts")
    conditions = Conditions(**{field: getattr(args, field) for field in Conditions._fields})
    with open_cluster(args) as cluster, print_warnings(), remove_if_empty(folder):
        corpus = open_source(args.corpus, cluster=cluster)
        from mha_viz.study.readers import open_measurable  # imports torch
        from mha_viz.study.search import LinkSearch

        encoder, source = (
            load_model(model, args.device, args.dtype),
            open_measurable(corpus, cluster and cluster.client),
        )
        link_search = LinkSearch(encoder, source, head, conditions, args.most, folder)
        link_run = link_search.run
        try:
            with show_cluster_progress() if cluster else progress_bar("sentences") as progress:
                for state in link_run.iter_progress():
                    progress(state)
        except KeyboardInterrupt:
            if not link_run.cases.sentences_read:
                raise
            result = link_search.result()
            write_and_print(destination, result.table, map(one_line, _format_lines(result)))
            raise KeyboardInterrupt(
                f"These are the links of the sentences read so far; {explain_continuing(folder)}."
            ) from None
        result = link_search.result()
        write_and_print(destination, result.table, map(one_line, _format_lines(result)))
        link_run.discard_partial_results()


def _format_lines(search: Search) -> Iterator[str]:
    yield (
        f"{search.model} {format_head(search.head)} on {search.corpus}: {search.matches:,} of "
        f"{search.links_read:,} links, "
        f"in {search.matching_sentences:,} of {search.sentences_read:,} sentences"
    )
    for link in search.links:
        words = " → ".join(link.sentence.forms[word] for word in (link.query, link.key))
        yield format_sentence(link.weight, link.number, words, link.sentence.forms, (link.query, link.key))
    sorted_counts = sorted(search.counts.items(), key=lambda item: (-item[1], item[0]))
    for (query_pos, key_pos, *relation), count in sorted_counts[:MAX_LISTED]:
        ends = f"{query_pos or '–'} → {key_pos or '–'}"
        yield f"{counted(count, 'link')} {ends}: {' '.join(relation).strip() or 'no dependency'}"
    if other_counts := [count for _, count in sorted_counts[MAX_LISTED:]]:
        yield f"{counted(sum(other_counts), 'link')} of {counted(len(other_counts), 'other kind')}"


def format_sentence(weight: float, number: int, ends: str, forms: Sequence[str], marks: Collection[int | None]) -> str:
    """Format a link as a line: its weight, the number of its sentence, its two words, and the sentence.

    In the sentence, the words ``marks`` are in brackets; a long sentence is shortened, from the first of them.
    """
    text = " ".join(f"[{form}]" if word in marks else form for word, form in enumerate(forms))
    first_mark = min((word for word in marks if word is not None), default=0)
    start = max(0, min(len(" ".join([*forms[:first_mark], ""])), len(text) - MAX_SENTENCE_WIDTH))
    excerpt = (
        f"{'…' * (start > 0)}{text[start : start + MAX_SENTENCE_WIDTH]}{'…' * (start + MAX_SENTENCE_WIDTH < len(text))}"
    )
    return f"{weight:.4f}  {number}  {ends}: {excerpt}"
