"""Tables, recognised by their first lines, so that none is read as plain text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from mha_viz.corpus.rows import lines_of

MOST_LINES = 1000
FEW_COLUMNS = 4  # the fewest of a line that begins with the number of a word
ROW_ID = re.compile(r"\d+(?:[-.]\d+)?")
COMMENT = re.compile(r"#\s*(?:sent_id|global\.\w+)\s*=")
RUN = re.compile(r"\t| {2,}")
TAG = re.compile(r"O|[BIESLU]-[A-Za-z]{2,}\S*")  # of a named entity or a chunk, at the end of a line
MOST_TAGGED = 6  # columns of a line with a tag
JSON = re.compile(r"""\s*(?:[\[{]\s*(?:["\[{]|$)|"[^"]*"\s*:|[\]}]+,?\s*$)""")


class TableRow(NamedTuple):
    """A line of a table: its number, and what it looks like."""

    line: int
    looks: str


def first_lines(text: str) -> list[str]:
    """Return the first lines of a text. Long texts are not split as a whole."""
    end = 0
    for _ in range(MOST_LINES):
        end = text.find("\n", end) + 1
        if not end:
            return lines_of(text)[:MOST_LINES]
    return lines_of(text[: end - 1])[:MOST_LINES]


def is_conllu(lines: Sequence[str]) -> bool:
    """Return True for lines of CoNLL-U: some have ten columns, a comment says so, or most begin with the number of a
    word and have columns, also where these are separated by spaces."""
    if any(line.count("\t") == 9 or COMMENT.match(line) for line in lines):
        return True
    rows = [row for _, row in _rows(lines)]
    by_tabs = sum(row.count("\t") >= FEW_COLUMNS - 1 and _is_id(row.split("\t", 1)[0]) for row in rows)
    by_runs = sum(len(cells := RUN.split(row.strip())) >= FEW_COLUMNS and _is_id(cells[0]) for row in rows)
    return 2 * by_tabs > len(rows) or (len(rows) > 1 and 2 * by_runs > len(rows)) or _by_single_spaces(rows)


def table_row(lines: Sequence[str]) -> TableRow | None:
    """Return the first line of another table, which most lines look like; None for text."""
    rows = _rows(lines)
    for looks, rows_of in _LOOKS.items() if rows else ():
        numbers = [
            number for (number, _), is_row in zip(rows, rows_of([row for _, row in rows]), strict=True) if is_row
        ]
        if 2 * len(numbers) > len(rows):
            return TableRow(numbers[0], looks)
    return None


def _tagged(rows: Sequence[str]) -> list[bool]:
    """Tell which rows end with a tag, in as many columns as most; none where all tags are “O”, which is a word too, or
    none is, as with “S-Bahn”; but in two columns."""
    split = [row.split() for row in rows]
    tagged = [1 < len(cells) <= MOST_TAGGED and TAG.fullmatch(cells[-1]) is not None for cells in split]
    counts = Counter(len(cells) for cells, is_tagged in zip(split, tagged, strict=True) if is_tagged)
    count = counts.most_common(1)[0][0] if counts else 0
    kinds = {cells[-1] == "O" for cells, is_tagged in zip(split, tagged, strict=True) if is_tagged}
    is_table = len(kinds) == 2 or (kinds == {True} and count == 2 and len(rows) > 1)
    return [is_table and is_tagged and len(cells) == count for cells, is_tagged in zip(split, tagged, strict=True)]


def _in_runs(rows: Sequence[str]) -> list[bool]:
    """Tell which rows have as many columns as most, separated by several spaces; none of fewer than three rows."""
    counts = [len(RUN.split(row.strip())) for row in rows]
    ((count, _),) = Counter(counts).most_common(1)
    return [len(rows) > 2 and count >= FEW_COLUMNS and each == count for each in counts]


def _matching(is_row: Callable[[str], object]) -> Callable[[Sequence[str]], list[bool]]:
    return lambda rows: [bool(is_row(row)) for row in rows]


_LOOKS: Mapping[str, Callable[[Sequence[str]], list[bool]]] = MappingProxyType(
    {
        "columns separated by tabs": _matching(lambda row: "\t" in row.strip()),
        "words with tags behind them": _tagged,
        "JSON": _matching(JSON.match),
        "columns separated by “|”": _matching(lambda row: row.strip()[:1] == "|" == row.strip()[-1:] != row.strip()),
        "columns separated by spaces": _in_runs,
    }
)


def _rows(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return the lines that are neither blank nor comments, with their numbers."""
    return [(number, line) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]


def _is_id(cell: str) -> bool:
    return ROW_ID.fullmatch(cell.strip()) is not None


def _by_single_spaces(rows: Sequence[str]) -> bool:
    """Return True where most lines begin with the number of a word and have as many columns, of which one is empty
    everywhere (“_”) or holds the numbers of heads; one line alone may be a sentence of numbers."""
    split = [row.split() for row in rows]
    for count, _ in Counter(map(len, split)).most_common(1):
        same = [cells for cells in split if len(cells) == count and _is_id(cells[0])]
        if len(same) > 1 and 2 * len(same) > len(split) and count >= FEW_COLUMNS and same[0][0] == "1":
            columns = [{*column} for column in zip(*same, strict=True)][1:]
            return any(column == {"_"} or _are_heads(column) for column in columns)
    return False


def _are_heads(column: set[str]) -> bool:
    return "0" in column and all(cell == "_" or cell.isdecimal() for cell in column)
