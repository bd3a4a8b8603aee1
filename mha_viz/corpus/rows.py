"""Split a CoNLL-U file into sentences, document boundaries, and words with their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from conllu.exceptions import ParseException
from conllu.parser import parse_id_value, parse_int_value

from mha_viz.corpus.limits import check_cells, check_words
from mha_viz.corpus.treebank import CONLLU_COLUMNS, Declarations
from mha_viz.errors import CorpusError
from mha_viz.numerals import counted
from mha_viz.text import clean

BOM = "\ufeff"  # invisible; a file joined from several may have it inside as well
CHAIN_FIELDS = ("grp", "eid")  # what GUM and CorefUD call the field of Entity= that holds the chain
NumberedLines = list[tuple[int, str]]  # the lines of a sentence with their numbers


def split_lines(text: str) -> list[str]:
    """Split a text into lines that end with LF, CR LF or CR, but not with U+2028, which a word may contain.

    A byte order mark at the beginning of a line is removed.
    """
    normalised = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    lines = normalised.split("\n")
    return [line.removeprefix(BOM) for line in lines] if BOM in text else lines


def iter_blocks(text: str, lines_before: int = 0) -> Iterator[NumberedLines]:
    """Yield the numbered lines of each sentence. ``lines_before`` counts the lines of the file before this text."""
    block: NumberedLines = []
    for number, line in enumerate(split_lines(text), lines_before + 1):
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _iter_comments(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the key and the value of each comment."""
    for line in lines:
        if line.startswith("#"):
            key, _, value = (part.strip() for part in line[1:].partition("="))
            yield key, value


def find_new_document(block: NumberedLines) -> str | None:
    """Return the name of the document that begins with this sentence, possibly empty; None if no document begins."""
    is_new, document = False, ""
    for key, value in _iter_comments(line for _, line in block):
        if key == "newdoc" or (key == "newdoc id" and value):
            is_new, document = True, value if key == "newdoc id" else document
    return document if is_new else None


def update_declarations(lines: Iterable[str], declarations: Declarations) -> Declarations:
    """Return the declarations updated with those in these lines.

    The chain field of ``Entity=`` is recognised by its name, GRP or eid, wherever it is.
    """
    for key, value in _iter_comments(lines):
        if key == "global.columns":
            declarations = declarations._replace(columns=tuple(value.upper().split()))
        elif key.lower() == "global.entity":
            fields = [field.strip() for field in value.lower().split("-")]
            declarations = declarations._replace(
                chain=next((fields.index(name) for name in CHAIN_FIELDS if name in fields), None)
            )
    return declarations


class WordLine(NamedTuple):
    """The line of a word. ``head`` is as in the file: an id, 0 for the root, None if there is none."""

    line: int
    id: int
    form: str
    upos: str
    features: str
    head: int | None
    relation: str


class EntityCell(NamedTuple):
    """The ``Entity=`` cell of a word or of an empty node.

    A mention that opens here begins with word ``start``, counted from 0. A mention that closes here ends before word
    ``end``. For an empty node, both are the same.
    """

    line: int
    start: int
    end: int
    text: str


class SentenceLines(NamedTuple):
    """The words of a sentence, and the cells with coreference brackets."""

    words: list[WordLine]
    entities: list[EntityCell]


_PARSERS: Mapping[str, Callable[[str], Any]] = MappingProxyType({"ID": parse_id_value, "HEAD": parse_int_value})
_EXPECTED = MappingProxyType(
    {"ID": "the number of a word, a range such as 3-4, or 3.1", "HEAD": "the ID of a word, or 0"}
)
_DECLARE_HINT = "declare other columns before the first sentence, as in “# global.columns = ID FORM UPOS HEAD DEPREL”"


def parse_words(block: NumberedLines, columns: tuple[str, ...], name: str) -> SentenceLines:
    """Return the words of a sentence: the lines whose id is a plain integer.

    Limits are checked before parsing. Raises CorpusError, with the line.
    """
    lines = [(number, line.split("\t")) for number, line in block if not line.startswith("#")]
    check_words(sum(cells[0].strip().isdecimal() for _, cells in lines), block[0][0], name)
    result = SentenceLines([], [])
    for number, cells in lines:
        if len(cells) != len(columns):
            raise CorpusError(
                f"{name}, line {number}: {counted(len(cells), 'column')}.", _explain_columns(cells, columns)
            )
        if len({*columns}) < len(columns) or not {"ID", "FORM"} <= {*columns}:
            problem = f"{name}, line {number}: # global.columns names {', '.join(columns)[:200]}."
            raise CorpusError(problem, "Name each column once, including ID and FORM.")
        check_cells(cells, number, name)
        _add_word(result, dict(zip(columns, cells, strict=True)), number, name)
    return result


def _explain_columns(cells: list[str], columns: tuple[str, ...]) -> str:
    if len(cells) == 1 and len(cells[0].split()) > 1:
        return "The columns of CoNLL-U are separated by tabs: replace the spaces between two columns by one."
    if columns == CONLLU_COLUMNS:
        return f"CoNLL-U has ten, separated by tabs; {_DECLARE_HINT}."
    return f"# global.columns names {len(columns)}: {', '.join(columns)[:200]}."


def _add_word(result: SentenceLines, cells: Mapping[str, str], line: int, name: str) -> None:
    """Add the word in a line, with its brackets. An empty node adds only its brackets, a range nothing."""
    has_trees = "HEAD" in cells and "DEPREL" in cells
    number = _parse_value("ID", cells["ID"].strip(), line, name)
    head = _parse_value("HEAD", cells["HEAD"].strip(), line, name) if has_trees else None
    is_word, word_index = isinstance(number, int), len(result.words)
    if is_word:
        features, upos = cells.get("FEATS", "_").strip(), cells.get("UPOS", "_")
        relation = cells["DEPREL"] if has_trees else "_"
        features = "" if features == "_" else features
        result.words.append(WordLine(line, number, clean(cells["FORM"]), upos, features, head, relation))
    if number is not None and "-" not in cells["ID"]:
        items = (item.partition("=") for item in cells.get("MISC", "").split("|"))
        brackets = "".join(value for key, _, value in items if key.strip() == "Entity")
        result.entities.extend([EntityCell(line, word_index, word_index + is_word, brackets)] if brackets else [])


def _parse_value(column: str, cell: str, line: int, name: str) -> Any:
    try:
        return _PARSERS[column](cell)
    except (ParseException, ValueError) as error:
        problem = f"“{cell[:40]}” is not a whole number; expected {_EXPECTED[column]}."
        remedy = "Correct the line, or delete the sentence."
        raise CorpusError(f"{name}, line {line}: {column}: {problem}", remedy) from error
