"""The lines of a CoNLL-U file: sentences, where a document begins, and the words with their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from conllu.exceptions import ParseException
from conllu.parser import parse_dict_value, parse_id_value, parse_int_value

from mha_viz.corpus.limits import check_cells, check_line, check_words
from mha_viz.errors import CorpusError
from mha_viz.numerals import counted
from mha_viz.text import clean

CONLLU_COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")


NumberedLines = list[tuple[int, str]]  # the lines of a sentence with their numbers


def blocks(text: str, name: str, before: int = 0, strict: bool = True) -> Iterator[NumberedLines]:
    """The lines of each sentence; the file has ``before`` lines before the first of them. Raises CorpusError for a
    sentence that is too long, if ``strict``."""
    block: NumberedLines = []
    for number, line in enumerate(text.split("\n"), before + 1):  # only "\n" ends a line: a word may contain U+2028
        if strict:
            check_line(line, number, name)
        if line.strip():
            block.append((number, line.removesuffix("\r")))
        elif block:
            yield block
            block = []
    if block:
        yield block


def new_document(block: NumberedLines, name: str) -> str | None:
    """The name of the document that begins with this sentence, possibly empty; None when no document begins."""
    begins, document = False, ""
    for line, content in block:
        if not content.startswith("#"):
            continue
        key, _, value = (part.strip() for part in content[1:].partition("="))
        if key == "global.columns" and value.upper().split() != list(CONLLU_COLUMNS):
            raise CorpusError(f"{name}, line {line}: unknown columns.", f"Expected {', '.join(CONLLU_COLUMNS)}.")
        if key == "newdoc" or (key == "newdoc id" and value):
            begins, document = True, value if key == "newdoc id" else document
    return document if begins else None


class WordLine(NamedTuple):
    """The line of a word. ``head`` as in the file: an id, 0 for the root, None when there is none."""

    line: int
    id: int
    form: str
    upos: str
    features: str
    head: int | None
    relation: str
    entity: str


_PARSERS: Mapping[str, Callable[[str], Any]] = MappingProxyType(
    {"ID": parse_id_value, "FEATS": parse_dict_value, "HEAD": parse_int_value, "MISC": parse_dict_value}
)

_EXPECTED = MappingProxyType(
    {"ID": "the number of a word, a range such as 3-4, or 3.1", "HEAD": "the ID of a word, or 0"}
)


def word_lines(block: NumberedLines, name: str) -> list[WordLine]:
    """The words of a sentence: lines whose id is a plain integer. Limits are checked before parsing."""
    lines = [(number, line.split("\t")) for number, line in block if not line.startswith("#")]
    check_words(sum(cells[0].strip().isdecimal() for _, cells in lines), block[0][0], name)
    rows = []
    for number, cells in lines:
        if len(cells) != len(CONLLU_COLUMNS):
            problem = f"{name}, line {number}: {counted(len(cells), 'column')}."
            raise CorpusError(problem, "CoNLL-U has ten, separated by tabs; the file may have another format.")
        check_cells(cells, number, name)
        row = _row(dict(zip(CONLLU_COLUMNS, cells, strict=True)), number, name)
        rows += [row] if row else []
    return rows


def _row(cells: Mapping[str, str], line: int, name: str) -> WordLine | None:
    """The word of a line; None for a range, an empty node, and a line without an id."""
    values = {column: _value(column, cells[column].strip(), line, name) for column in _PARSERS}
    if not isinstance(values["ID"], int):
        return None
    features = "|".join(f"{feature}={value}" for feature, value in (values["FEATS"] or {}).items())
    entity = (values["MISC"] or {}).get("Entity") or ""
    form = clean(cells["FORM"])
    return WordLine(line, values["ID"], form, cells["UPOS"], features, values["HEAD"], cells["DEPREL"], entity)


def _value(column: str, cell: str, line: int, name: str) -> Any:
    try:
        return _PARSERS[column](cell)
    except (ParseException, ValueError) as error:
        problem = " ".join(str(error).split())[:120]
        if column in _EXPECTED:
            problem = f"“{cell[:40]}” is not a whole number; expected {_EXPECTED[column]}."
        remedy = "Correct the line, or delete the sentence."
        raise CorpusError(f"{name}, line {line}: {column}: {problem}", remedy) from error
