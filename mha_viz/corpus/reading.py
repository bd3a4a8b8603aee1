"""Read a corpus file of any kind: CoNLL-U, a GAP table, or plain sentences. The kind is recognised by the content."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from mha_viz.corpus.conllu import SENTENCE_NOTE, read_conllu
from mha_viz.corpus.limits import check_cells, check_line, check_sentences, check_text, check_words, decode
from mha_viz.corpus.rows import BOM, split_lines
from mha_viz.corpus.tables import TableRow, find_table_row, is_conllu, split_first_lines
from mha_viz.corpus.treebank import FILE_START, Corpus, Gap, GapRow, PartStart, Sentence, Word, digest_text
from mha_viz.errors import CorpusError
from mha_viz.numerals import counted
from mha_viz.text import clean

GAP, CONLLU, PLAIN = "GAP table", "CoNLL-U", "text"
CONLLU_SUFFIXES = (".conllu", ".conll", ".conllup", ".cupt")
GAP_COLUMNS = ("ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref")
# Matches in linear time: a match that begins never fails, and only white space is skipped.
PLAIN_WORDS = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


def parse_file(data: bytes, name: str) -> Corpus | Gap:
    """Parse a corpus file of any kind. Raises CorpusError.

    A GAP table is recognised by its heading, CoNLL-U by its columns or one of CONLLU_SUFFIXES. Anything that does not
    look like a table is plain text.
    """
    text = decode(data, name)
    readers: Mapping[str, Callable[[str, str], Corpus | Gap]] = {
        GAP: read_gap,
        CONLLU: read_conllu,
        PLAIN: read_plain,
    }
    return readers[detect_kind(text, name)](text, name)


def detect_kind(text: str, name: str) -> str:
    """Return the kind of a file: GAP, CONLLU or PLAIN. Raises CorpusError.

    The kind is recognised by the file's name and the beginning of its text.
    """
    if not text.strip():
        raise CorpusError(f"{name} is empty.", "Expected CoNLL-U, a GAP table, or one sentence per line.")
    lines = split_first_lines(text)
    if "Pronoun-offset" in lines[0].split("\t"):
        return GAP
    lower_name = name.lower()
    if is_conllu(lines) or lower_name.endswith(CONLLU_SUFFIXES):
        return CONLLU
    if lower_name.endswith(".tsv"):
        raise CorpusError(
            f"{name} is not a GAP table: its first line lacks the column Pronoun-offset.",
            f"Expected {', '.join(GAP_COLUMNS)}, separated by tabs; plain text has the suffix .txt.",
        )
    row = TableRow(1, "columns separated by commas") if lower_name.endswith(".csv") else find_table_row(lines)
    if row is not None:
        raise CorpusError(
            f"{name} is a table, not text: line {row.line} has {row.description}.",
            "Expected CoNLL-U, a GAP table, or text: save the sentences alone, one per line.",
        )
    return PLAIN


def read_part(data: bytes, kind: str, name: str, start: PartStart) -> Corpus:
    """Parse a part of a file that begins at ``start``.

    Sentences that cannot be read are left out one by one, and reported with their line in the file.
    """
    text = data.decode("utf-8", "surrogateescape")
    return (read_conllu if kind == CONLLU else read_plain)(text, name, start, is_part=True)


def count_lines(data: bytes) -> int:
    """Count the lines that end in a part of a file."""
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def read_gap(text: str, name: str = "corpus") -> Gap:
    """Parse a GAP table (Webster et al. 2018). Raises CorpusError with the number of the invalid line."""
    lines = _iter_rows(text, name)
    heading = next(lines)[1]
    missing_columns = [column for column in GAP_COLUMNS if column not in heading]
    if missing_columns:
        raise CorpusError(
            f"{name}, line 1: the column {missing_columns[0]} is missing.", f"Expected {', '.join(GAP_COLUMNS)}."
        )
    rows = []
    for number, cells in lines:
        if not any(cells):
            continue
        if len(cells) != len(heading):
            problem = f"{name}, line {number}: {counted(len(cells), 'column')}."
            raise CorpusError(problem, f"The first line has {len(heading)}.")
        rows.append(_parse_gap_row(dict(zip(heading, cells, strict=True)), number, name))
    if not rows:
        raise CorpusError(f"{name} contains no example.", "Expected a GAP table with one example per line.")
    return Gap(name, tuple(rows), digest_text(text))


def _iter_rows(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each line, with the number of the line. Raises CorpusError if a limit is exceeded."""
    for number, line in enumerate(split_lines(text), 1):
        check_line(line, number, name)
        cells = line.split("\t")
        check_cells(cells, number, name)
        yield number, cells


def _parse_gap_row(row: dict[str, str], line: int, name: str) -> GapRow:
    try:
        cells = {column: row[column] for column in GAP_COLUMNS}
        spans = [(cells[c], _parse_offset(cells[f"{c}-offset"])) for c in ("Pronoun", "A", "B")]
        refers_to_a, refers_to_b = (_parse_boolean(cells[f"{c}-coref"]) for c in ("A", "B"))
    except (KeyError, ValueError) as error:
        problem = f"{name}, line {line}: {str(error)[:120]} is invalid."
        raise CorpusError(problem, "Expected a row of a GAP table.") from error
    for form, offset in spans:
        if offset < 0 or not cells["Text"].startswith(form, offset):
            raise CorpusError(
                f"{name}, line {line}: “{form[:40]}” is not at character {str(offset)[:20]}.", "Correct the row."
            )
    return GapRow(cells["ID"], cells["Text"], spans[0], (*spans[1], refers_to_a), (*spans[2], refers_to_b))


def _parse_offset(cell: str) -> int:
    if not re.fullmatch(r"\s*[+-]?\d{1,9}\s*", cell, re.ASCII):
        raise ValueError(f"“{cell[:20]}” (a whole number)")
    return int(cell)


def _parse_boolean(cell: str) -> bool:
    if cell.upper() not in ("TRUE", "FALSE"):
        raise ValueError(f"“{cell[:20]}” (TRUE or FALSE)")
    return cell.upper() == "TRUE"


def read_plain(text: str, name: str = "corpus", start: PartStart = FILE_START, is_part: bool = False) -> Corpus:
    """Parse plain text: one sentence per line, split into words and punctuation.

    A form feed or U+2028 ends a sentence, too, but lines are numbered as in CoNLL-U. ``start``, ``is_part`` and the
    errors are as in :func:`read_conllu`. Raises CorpusError.
    """
    sentences: list[Sentence] = []
    left_out: list[str] = []
    first_error: CorpusError | None = None
    words: dict[str, Word] = {}  # one object per form, however often it occurs
    lines = enumerate(split_lines(text), start.lines + 1)
    for number, part in ((number, part) for number, line in lines for part in line.splitlines()):
        try:
            forms = _split_line(part.removeprefix(BOM), number, name, is_part)
        except CorpusError as error:
            first_error = first_error or error
            left_out.append(f"{error.problem.removeprefix(f'{name}, ')} {SENTENCE_NOTE}")
            continue
        if forms:
            sentence_words = tuple(words.get(form) or words.setdefault(form, Word(form)) for form in forms)
            sentences.append(Sentence(sentence_words, (), "", number))
            check_sentences(len(sentences), number, name)
    if not sentences and not is_part:
        raise first_error or CorpusError(f"{name} contains no sentence.", "Expected one sentence per line.")
    return Corpus(name, tuple(sentences), digest_text(text), left_out=tuple(left_out))


def _split_line(line: str, number: int, name: str, is_part: bool) -> list[str]:
    """Split a line into words; an empty line has none. Raises CorpusError."""
    check_line(line, number, name)
    if is_part:
        check_text(line, number, name)
    # Words and punctuation marks; an apostrophe or hyphen between letters stays inside its word.
    forms = (PLAIN_WORDS.findall(clean(line)) or [clean(line.strip())]) if line.strip() else []
    check_words(len(forms), number, name)
    check_cells(forms, number, name)
    return forms
