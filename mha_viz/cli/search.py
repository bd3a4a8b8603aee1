"""``mha-viz search``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from mha_viz.analysis.links import Conditions
from mha_viz.attention import Head
from mha_viz.cli.models import check_heads, choose_model, load_model
from mha_viz.cli.options import Parser, head_name, whole
from mha_viz.cli.profile import corpus_option, read_corpus
from mha_viz.cli.terminal import bar, one_line
from mha_viz.errors import ExportError
from mha_viz.figures.caption import both
from mha_viz.files import whole_file

FORMATS = (".csv", ".json")
WIDTH = 100  # characters of a sentence on a terminal
LISTED = 10  # lines of counts
CONDITIONS = {
    "query": "the word where the link begins",
    "key": "the word where the link ends",
    "dependent": "the dependent, of links that join a dependent and its head",
    "governor": "the head of that dependent",
}
MOST = whole(1, 10_000, "a number of sentences; expected 1 to 10000")


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
        "--relation", default="", metavar="NAME", help="of links that join a dependent and its head, such as nsubj"
    )
    for end, meaning in CONDITIONS.items():
        search.add_argument(f"--{end}-word", default="", metavar="WORD", help=meaning)
        search.add_argument(f"--{end}-pos", default="", metavar="TAG", help="its part of speech, such as NOUN")
        if end in ("query", "key"):
            search.add_argument(f"--{end}-relation", default="", metavar="NAME", help="its relation to its own head")
    search.add_argument("--most", type=MOST, default=20, metavar="N", help="sentences that are listed (default: 20)")
    search.add_argument(
        "--out", type=Path, metavar="FILE", help=f"file for the sentences as well: {' or '.join(FORMATS)}"
    )
    search.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where the model runs (default: cpu)")


def model_and_head(value: str) -> tuple[str, Head]:
    """Parse "minilm/L3H1"; the model may be a Hub id or a folder."""
    model, slash, head = value.rpartition("/")
    if not slash or not model:
        raise argparse.ArgumentTypeError(f"“{value[:40]}” is not a model and a head; write minilm/L3H1")
    return model, head_name(head)


def run(args: argparse.Namespace) -> None:
    """Print the sentences of a corpus where a head has its strongest links, and count the links."""
    if args.out and args.out.suffix not in FORMATS:
        raise ExportError(f"{args.out} is neither CSV nor JSON.", f"End its name with {' or '.join(FORMATS)}.")
    name, head = args.head
    model = choose_model(name)
    check_heads(model, [head])
    corpus = read_corpus(args.corpus)
    from mha_viz.study.search import searching  # loads torch

    conditions = Conditions(**{field: getattr(args, field) for field in Conditions._fields})
    result = None
    try:
        with bar("sentences") as show:
            for result in searching(load_model(model, args.device), corpus, head, conditions, args.most):
                show(result.sentences_read, result.sentences)
    except KeyboardInterrupt:
        if result is None:
            raise
        print("mha-viz: Stopped; these are the links of the sentences read so far.", file=sys.stderr)
        _report(result)
        raise
    _report(result)
    if args.out and result is not None:
        _write(result, args.out)


def _report(search: Any) -> None:
    print(
        f"{search.model} {both(search.head)} on {search.corpus}: {search.matches:,} of {search.links_read:,} links, "
        f"in {search.matching_sentences:,} of {search.sentences_read:,} sentences"
    )
    for link in search.links:
        print(one_line(_line(link)))
    if search.matches:
        print("links  from → to")
    for line in search.table_of_counts().head(LISTED).itertuples(index=False):
        relation = f"{line.relation} {line.direction}".strip() or "no dependency"
        print(one_line(f"{line.links:>5}  {line.query_pos or '–'} → {line.key_pos or '–'}  {relation}"))


def _line(link: Any) -> str:
    """A link for a terminal: its weight, its ends, and the sentence with both in brackets."""
    forms = [f"[{form}]" if word in (link.query, link.key) else form for word, form in enumerate(link.sentence.forms)]
    text = " ".join(forms)
    start = max(0, min(text.find("["), len(text) - WIDTH))
    shown = f"{'…' * (start > 0)}{text[start : start + WIDTH]}{'…' * (start + WIDTH < len(text))}"
    ends = " → ".join(link.sentence.forms[word] for word in (link.query, link.key))
    return f"{link.weight:.4f}  {link.number}  {ends}: {shown}"


def _write(search: Any, path: Path) -> None:
    table = search.table()
    if path.suffix == ".csv":
        text = table.to_csv(index=False, float_format="%.9g", lineterminator="\n")
    else:
        text = json.dumps(json.loads(table.to_json(orient="records", double_precision=9)), indent=1) + "\n"
    try:
        with whole_file(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise ExportError(f"{path} cannot be written: {error.strerror or error}.", "Name another file.") from error
