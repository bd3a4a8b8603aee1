"""Read minimal pairs: an acceptable sentence and an unacceptable one that differs from it in one respect.

A file has one pair per line: GOOD, BAD and optionally the kind of the pair, separated by tabs; or JSON lines as BLiMP
publishes them (Warstadt et al. 2020). If only some pairs have a kind, the others are of the kind NO_KIND. Two sets of
pairs are built in, for the toy model and the repeater.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from mha_viz.corpus import built_in_pairs, corpus_files, limits
from mha_viz.corpus.limits import MAX_CELL, check_line, check_sentences, decode
from mha_viz.corpus.rows import split_lines
from mha_viz.errors import CorpusError, CorpusMissing, check_kind, shorten_value
from mha_viz.numerals import counted
from mha_viz.quotes import quote
from mha_viz.text import clean

GOOD, BAD, KIND = JSON_FIELDS = ("sentence_good", "sentence_bad", "UID")  # the fields of BLiMP; the last is optional
TOY_PAIRS, REPEATER_PAIRS = BUILT_IN_PAIRS = ("toy-pairs", "repeater-pairs")
ALL_PAIRS = "all"  # selects all pairs where a kind is expected
NO_KIND = "(no kind)"  # the kind of pairs without a kind, in a file where others have one
HEADINGS = frozenset(("good", "bad", "sentence_good", "sentence_bad", "grammatical", "ungrammatical"))
COLUMNS = "GOOD, BAD and optionally KIND, separated by tabs"
LIST_NAME = "the list of pairs"
_SURROGATES = range(0xD800, 0xE000)  # halves of characters, which JSON can write

PairSource: TypeAlias = "str | os.PathLike[str] | Iterable[Sequence[str]] | Pairs"


class Pair(NamedTuple):
    """An acceptable and an unacceptable sentence.

    ``kind`` is empty if no pair has one. ``line`` is the line in the file, or the position in a list.
    """

    good: str
    bad: str
    kind: str = ""
    line: int = 0


class Pairs(NamedTuple):
    """Minimal pairs in order, with the name of their file and a digest of them."""

    name: str
    pairs: tuple[Pair, ...]
    digest: str


def read_pairs(source: PairSource) -> Pairs:
    """Read minimal pairs.

    ``source`` is a file (also compressed, .gz or .zst), "toy-pairs", "repeater-pairs", or a list of (good, bad) or
    (good, bad, kind). Raises CorpusError, with the line number if there is one.
    """
    if isinstance(source, Pairs):
        return source
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        if name in BUILT_IN_PAIRS:
            return _collect(name, _number_pairs(_BUILT_IN[name]()))
        return _read_file(Path(source))
    check_kind(source, Iterable, "a list of pairs", f"Give a file, a list of (good, bad), or {TOY_PAIRS!r}.")
    return _collect(LIST_NAME, _iter_listed_pairs(source), "pair")


def parse_pairs(text: str, name: str) -> Pairs:
    """Parse the text of a file. Raises CorpusError with the number of the invalid line."""
    lines = [(number, line) for number, line in enumerate(split_lines(text), 1) if line.strip()]
    if not lines:
        raise CorpusError(f"{name} is empty.", f"Expected one pair per line: {COLUMNS}; or JSON lines as in BLiMP.")
    parse = _parse_json if lines[0][1].lstrip().startswith("{") else _parse_row
    return _collect(name, (parse(line, number, name) for number, line in lines))


def _read_file(path: Path) -> Pairs:
    if path.is_dir():
        raise CorpusError(f"{quote(str(path))} is a folder.", "Name one file of pairs.")
    if path.is_file() and path.stat().st_size > limits.MAX_BYTES:
        limits.raise_too_large(path.name, path.stat().st_size)
    try:
        with corpus_files.open_file(path) as stream:
            data = stream.read(limits.MAX_BYTES + 1)
    except CorpusMissing as error:
        remedy = f"Name a file of pairs, or built-in ones: {' or '.join(BUILT_IN_PAIRS)}."
        raise CorpusMissing(error.problem, remedy) from error
    name = corpus_files.strip_compression(path)
    return parse_pairs(decode(data, name), name)


def _parse_row(line: str, number: int, name: str) -> Pair:
    """Parse a line of columns. Raises CorpusError, also for a heading, which must not be taken for a pair."""
    check_line(line, number, name)
    cells = line.split("\t")
    if len(cells) not in (2, 3):
        problem = f"{name}, line {number}: {counted(len(cells), 'column')}."
        raise CorpusError(problem, f"Expected {COLUMNS}; or JSON lines as in BLiMP.")
    if {cell.strip().lower() for cell in cells[:2]} <= HEADINGS:
        problem = f"{name}, line {number}: {quote(cells[0])} and {quote(cells[1])} are a heading, not sentences."
        raise CorpusError(problem, "Delete the line.")
    return _make_pair(cells, number)


def _parse_json(line: str, number: int, name: str) -> Pair:
    """Parse a line of BLiMP. Raises CorpusError."""
    check_line(line, number, name)
    remedy = f"Expected {{“{GOOD}”: …, “{BAD}”: …, “{KIND}”: …}}, one object per line; {KIND} may be missing."
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{name}, line {number}: not valid JSON.", remedy) from error
    values = [fields.get(field, "") for field in JSON_FIELDS] if isinstance(fields, dict) else []
    if not values or not all(isinstance(value, str) for value in values):
        raise CorpusError(f"{name}, line {number}: {shorten_value(fields)!r} is not a pair.", remedy)
    for field, value in zip(JSON_FIELDS[:2], values, strict=False):
        if not value.strip():
            raise CorpusError(f"{name}, line {number}: {field} is missing or empty.", remedy)
    return _make_pair(values, number)


def _iter_listed_pairs(items: Iterable[Sequence[str]]) -> Iterator[Pair]:
    """Yield the pairs of a list. Raises CorpusError."""
    for number, item in enumerate(items, 1):
        if isinstance(item, Pair):
            yield item._replace(line=number)
            continue
        is_pair = isinstance(item, Sequence) and not isinstance(item, str) and len(item) in (2, 3)
        if not is_pair or not all(isinstance(part, str) for part in item):
            problem = f"{LIST_NAME}, pair {number}: {shorten_value(item)!r} is not a pair."
            raise CorpusError(problem, "Give (good, bad) or (good, bad, kind), as text.")
        yield _make_pair(item, number)


def _make_pair(cells: Sequence[str], line: int) -> Pair:
    """Make a pair from two or three cells."""
    good, bad, kind = [*(cell.strip() for cell in cells), ""][:3]
    return Pair(good, bad, kind, line)


def _number_pairs(pairs: Iterable[tuple[str, str, str]]) -> Iterator[Pair]:
    return (Pair(*pair, number) for number, pair in enumerate(pairs, 1))


def _collect(name: str, pairs: Iterable[Pair], unit: str = "line") -> Pairs:
    """Check pairs and collect them. Raises CorpusError."""
    kinds, checked_pairs = limits.Labels("kind", name), list[Pair]()
    for pair in pairs:
        location = f"{name}, {unit} {pair.line}"
        _check_sentences(pair, location)
        if pair.kind.casefold() == ALL_PAIRS:
            problem = f"{location}: {quote(pair.kind)} is not the name of a kind, because it stands for all pairs."
            raise CorpusError(problem, "Choose another name.")
        kinds.add(pair.kind, pair.line)
        checked_pairs.append(pair)
        check_sentences(len(checked_pairs), pair.line, name)
    if not checked_pairs:
        raise CorpusError(f"{name} is empty.", "Give at least one pair (good, bad).")
    if any(pair.kind for pair in checked_pairs):
        checked_pairs = [pair if pair.kind else pair._replace(kind=NO_KIND) for pair in checked_pairs]
    digest = hashlib.sha256(json.dumps([pair[:3] for pair in checked_pairs]).encode()).hexdigest()
    return Pairs(name, tuple(checked_pairs), digest)


def _check_sentences(pair: Pair, location: str) -> None:
    """Raise CorpusError for a pair that cannot be compared."""
    for quality, text in (("good", pair.good), ("bad", pair.bad)):
        if not clean(text).strip():
            raise CorpusError(f"{location}: the {quality} sentence is empty.", f"Expected {COLUMNS}.")
        if len(text) > MAX_CELL:
            problem = f"{location}: the {quality} sentence has {len(text):,} characters; at most {MAX_CELL:,} are read."
            raise CorpusError(problem, "Shorten it, or delete the pair.")
        if any(ord(character) in _SURROGATES or character == "\0" for character in text + pair.kind):
            raise CorpusError(f"{location}: the {quality} sentence has a character that is not text.", "Delete it.")
    if clean(pair.good).split() == clean(pair.bad).split():
        problem = f"{location}: both sentences are the same, {quote(pair.good)}."
        raise CorpusError(problem, "Change a word in one of them, or delete the pair.")


_BUILT_IN: Mapping[str, Callable[[], Iterable[tuple[str, str, str]]]] = MappingProxyType(
    {TOY_PAIRS: built_in_pairs.make_toy_pairs, REPEATER_PAIRS: built_in_pairs.make_repeater_pairs}
)
