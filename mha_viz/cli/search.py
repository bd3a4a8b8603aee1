"""``mha-viz search``."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Sequence

from mha_viz.analysis.links import Conditions, Search
from mha_viz.attention import Head
from mha_viz.cli.cluster import cluster_for, cluster_options, emptied, folder_beside, how_to_continue, progress_line
from mha_viz.cli.models import check_heads, choose_model, load_model
from mha_viz.cli.options import Parser, device_option, dtype_option, head_name, output_options, whole
from mha_viz.cli.output import TABLES, put_out, table_destination
from mha_viz.cli.profile import corpus_option, open_source
from mha_viz.cli.terminal import bar_of, one_line, warnings_as_lines
from mha_viz.figures.layout.caption import both
from mha_viz.numerals import counted
from mha_viz.quotes import quoted

WIDTH = 100  # characters of a sentence on a terminal
LISTED = 10  # rows of counts that are printed
CONDITIONS = {
    "query": "the word where the link begins",
    "key": "the word where the link ends",
    "dependent": "the dependent, of links that join a dependent and its head",
    "governor": "the head of that dependent",
}
MOST = whole(1, 10_000, "a number of sentences")


def options(search: Parser) -> None:
    """Add the options of the command."""
    search.add_argument(
        "head",
        type=model_and_head,
        metavar="MODEL/HEAD",
        help="a model, as for `mha-viz attention`, and a head: minilm/L3H1",
    )
    corpus_option(search)
    search.add_argument(
        "--relation",
        default="",
        metavar="NAME",
        help="only links that join a dependent and its head by this relation, such as nsubj",
    )
    for end, meaning in CONDITIONS.items():
        search.add_argument(f"--{end}-word", default="", metavar="WORD", help=meaning)
        search.add_argument(f"--{end}-pos", default="", metavar="TAG", help="its part of speech, such as NOUN")
        if end in ("query", "key"):
            search.add_argument(f"--{end}-relation", default="", metavar="NAME", help="its relation to its own head")
    search.add_argument("--most", type=MOST, default=20, metavar="N", help="number of sentences to list (default: 20)")
    output_options(search, TABLES, required=False)
    device_option(search)
    dtype_option(search)
    cluster_options(search)


def model_and_head(value: str) -> tuple[str, Head]:
    """Parse "minilm/L3H1"; the model may be a Hub id or a folder."""
    model, slash, head = value.rpartition("/")
    if not slash or not model:
        raise argparse.ArgumentTypeError(f"{quoted(value)} is not a model and a head; write minilm/L3H1")
    return model, head_name(head)


def run(args: argparse.Namespace) -> None:
    """Print the sentences of a corpus where a head has its strongest links, and count the links."""
    to = table_destination(args.out, args.format)
    name, head = args.head
    model = choose_model(name)
    check_heads(model, [head])
    folder = folder_beside(to, "parts")
    conditions = Conditions(**{field: getattr(args, field) for field in Conditions._fields})
    with cluster_for(args) as cluster, warnings_as_lines(), emptied(folder):
        corpus = open_source(args.corpus, cluster=cluster)
        from mha_viz.study.readers import readable  # imports torch
        from mha_viz.study.search import Searching

        encoder, source = load_model(model, args.device, args.dtype), readable(corpus, cluster and cluster.client)
        searching = Searching(encoder, source, head, conditions, args.most, folder)
        run = searching.run
        try:
            with progress_line() if cluster else bar_of("sentences") as progress:
                for so_far in run.reports():
                    progress(so_far)
        except KeyboardInterrupt:
            if not run.cases.read:
                raise
            result = searching.result()
            put_out(to, result.table, map(one_line, _lines(result)))
            raise KeyboardInterrupt(
                f"These are the links of the sentences read so far; {how_to_continue(folder)}."
            ) from None
        result = searching.result()
        put_out(to, result.table, map(one_line, _lines(result)))
        run.forget()


def _lines(search: Search) -> Iterator[str]:
    yield (
        f"{search.model} {both(search.head)} on {search.corpus}: {search.matches:,} of {search.links_read:,} links, "
        f"in {search.matching_sentences:,} of {search.sentences_read:,} sentences"
    )
    for link in search.links:
        words = " → ".join(link.sentence.forms[word] for word in (link.query, link.key))
        yield sentence_line(link.weight, link.number, words, link.sentence.forms, (link.query, link.key))
    by_count = sorted(search.counts.items(), key=lambda item: (-item[1], item[0]))
    for (query_pos, key_pos, *relation), count in by_count[:LISTED]:
        ends = f"{query_pos or '–'} → {key_pos or '–'}"
        yield f"{counted(count, 'link')} {ends}: {' '.join(relation).strip() or 'no dependency'}"


def sentence_line(weight: float, number: int, ends: str, forms: Sequence[str], marked: Collection[int | None]) -> str:
    """Format a link as a line: its weight, the number of its sentence, its two words, and the sentence.

    In the sentence, the words are in brackets; it is shortened if it is long.
    """
    text = " ".join(f"[{form}]" if word in marked else form for word, form in enumerate(forms))
    start = max(0, min(text.find("["), len(text) - WIDTH))
    shown = f"{'…' * (start > 0)}{text[start : start + WIDTH]}{'…' * (start + WIDTH < len(text))}"
    return f"{weight:.4f}  {number}  {ends}: {shown}"
