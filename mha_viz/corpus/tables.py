"""Recognise tables by their first lines, so that no table is read as plain text."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import NamedTuple

from mha_viz.corpus.rows import split_lines
from mha_viz.corpus.treebank import CONLLU_COLUMNS

MAX_LINES = 1000
MIN_COLUMNS = 4  # a line that begins with the number of a word has at least this many
ROW_ID = re.compile(r"\d+(?:[-.]\d+)?")
COMMENT = re.compile(r"#\s*(?:sent_id|global\.\w+)\s*=")
COLUMN_GAP = re.compile(r"\t| {2,}")
TAG = re.compile(r"O|[BIESLU]-[A-Za-z]{2,}\S*")  # of a named entity or a chunk, at the end of a line
CHUNK = re.compile(r"[BI]-[A-Z]{2,}")
MAX_TAGGED_COLUMNS = 6  # a line with a tag has at most this many columns
# Parts of speech of Universal Dependencies, the Penn Treebank, and the STTS for German.
POS_TAGS = frozenset(
    re.findall(
        r"\S+",
        "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB CC CD DT EX FW IN JJ JJR JJS MD "
        "NN NNS NNP NNPS PDT POS PRP PRP$ RB RBR RBS RP TO UH VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB . , : X "
        "ADJA ADJD APPO APPR APPRART APZR ART CARD FM ITJ KOKOM KON KOUI KOUS NE PAV PDAT PDS PIAT PIDAT PIS PPER "
        "PPOSAT PPOSS PRELAT PRELS PRF PROAV PTKA PTKANT PTKNEG PTKVZ PTKZU PWAT PWAV PWS TRUNC VAFIN VAIMP VAINF VAPP "
        "VMFIN VMINF VMPP VVFIN VVIMP VVINF VVIZU VVPP XY $. $, $(",
    )
)
AMBIGUOUS_TAGS = frozenset(("ART", "CARD", "EX", "IN", "NE", "PART", "POS", "TO", "UH"))  # these are also words
MIN_ROWS = 4  # in at least this many rows, ambiguous tags count even without others
# EAGLES tags: a category, then its attributes, as in “ncms000”, “da0ms0”, “vmip3s0”, “pp3ms000”, “sps00”.
EAGLES = re.compile(
    r"n[cp][mfcn0][spn0][a-z0]{2,3}|v[mas][a-z][a-z0][0-3][sp0][mfcn0]|a[a-z0]{2}[mfcn0][spn0][a-z0-3]{1,2}"
    r"|d[a-z][0-3][mfcn0][spn0][sp0]|p[a-z0][0-3][mfcn0][spn0][a-z0]{1,3}|s[pn][a-z][mfcn0][spn0]",
    re.IGNORECASE,
)
EAGLES_SHORT = re.compile(r"f[a-z]{1,2}|r[gn]|c[cs]|sp|z[dmpu]?|[iw]", re.IGNORECASE)  # some are also words
INNER_DIGIT = re.compile(r"\d[a-z]", re.IGNORECASE)  # a digit that does not belong to a number at the end
TAG_SEPARATOR = re.compile(r"[\s,;|]+")  # between a word and its tag
# A word with its part of speech, as in “dog/NN”.
TAGGED_WORD = re.compile(r"\S+[/_|^](?:[A-Z][A-Z$-]{0,9}|[^\w\s]{1,3})")
TREE_NODE = re.compile(r"\((?:S|[A-Z-]{2,}\$?)\s")  # a node of a bracketed tree
OPENING_TAG = re.compile(r"\s*<([A-Za-z][\w:.-]*)(?:\s[^<>]*)?>\s*")  # a line with nothing but an opening tag
CLOSING_TAG = re.compile(r"\s*</([A-Za-z][\w:.-]*)\s*>\s*")
ELEMENT = re.compile(r"\s*(?:<[A-Za-z][^<>]*>.*</[A-Za-z][^<>]*>\s*$|<(?:\?xml|!DOCTYPE)\b)")
COLUMN = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)  # a column name in the first line
NUMERIC = re.compile(r"[-+]?\d[\d.:/-]*%?")
PROSE_GAP = re.compile(r"[\s”’»'\")]|$")  # what follows a comma in prose
LABEL = re.compile(r"__label__\S+\s")
SUBTITLE_TIMES = re.compile(r"(?:\d+:)?\d\d:\d\d[,.]\d{3} --> ")  # the times of a subtitle
YAML_KEY = re.compile(r"(\s*)(- )?([a-z_][\w.-]*):(?:\s+(.*))?")  # a YAML key and its value
YAML_LITERAL = re.compile(r"""[-+]?\d[\d.]*|true|false|null|~|[>|]|\[.*\]|\{.*\}|"[^"]*"|'[^']*'""")  # no sentence
COMMON_COLUMNS = frozenset(
    ("form", "id", "label", "lemma", "pos", "sentence", "tag", "tags", "text", "tokens", "upos", "words")
)
JSON = re.compile(r"""\s*(?:[\[{]\s*(?:["\[{]|$)|"[^"]*"\s*:|[\]}]+,?\s*$)""")


class TableRow(NamedTuple):
    """The number of a table's line, and a description of the table, such as "columns separated by tabs"."""

    line: int
    description: str


def split_first_lines(text: str) -> list[str]:
    """Return the first lines of a text. Long texts are not split as a whole."""
    end = 0
    for _ in range(MAX_LINES):
        end = text.find("\n", end) + 1
        if not end:
            return split_lines(text)[:MAX_LINES]
    return split_lines(text[: end - 1])[:MAX_LINES]


def is_conllu(lines: Sequence[str]) -> bool:
    """Return whether lines are CoNLL-U.

    True if a line has ten columns, if a comment says so, or if most lines begin with the number of a word and have
    several columns, even if these are separated by spaces.
    """
    if any(line.count("\t") == 9 or COMMENT.match(line) for line in lines):
        return True
    rows = [row for _, row in _list_content_rows(lines)]
    tabbed_count = sum(row.count("\t") >= MIN_COLUMNS - 1 and _is_id(row.split("\t", 1)[0]) for row in rows)
    spaced_count = sum(len(cells := COLUMN_GAP.split(row.strip())) >= MIN_COLUMNS and _is_id(cells[0]) for row in rows)
    return 2 * tabbed_count > len(rows) or (len(rows) > 1 and 2 * spaced_count > len(rows)) or _is_spaced_conllu(rows)


def find_table_row(lines: Sequence[str]) -> TableRow | None:
    """Return the first line of a table other than CoNLL-U; None for text. A table makes up most lines."""
    rows = _list_content_rows(lines)
    for description, find_rows in _TABLE_TESTS.items() if rows else ():
        numbers = [
            number for (number, _), is_row in zip(rows, find_rows([row for _, row in rows]), strict=True) if is_row
        ]
        if 2 * len(numbers) > len(rows):
            return TableRow(numbers[0], description)
    return None


def _find_tagged_rows(rows: Sequence[str]) -> list[bool]:
    """Tell which rows end with a tag and have the most frequent number of columns among such rows.

    The tags must include both “O” and others, because “O” is also a word, and “S-Bahn” looks like a tag. Tags that are
    all “O” count only in two columns. Tags that are all chunks, or several parts of speech, always count.
    """
    table = [TAG_SEPARATOR.split(row.strip()) for row in rows]
    last_cells = [cells[-1] if 1 < len(cells) <= MAX_TAGGED_COLUMNS else "" for cells in table]
    is_pos = _are_parts_of_speech([cell for cell in last_cells if cell in POS_TAGS])
    are_tagged = [bool(TAG.fullmatch(cell)) or (is_pos and cell in POS_TAGS) for cell in last_cells]
    counts = Counter(len(cells) for cells, is_tagged in zip(table, are_tagged, strict=True) if is_tagged)
    count = counts.most_common(1)[0][0] if counts else 0
    tags = [cell for cell, is_tagged in zip(last_cells, are_tagged, strict=True) if is_tagged]
    outside_flags = {tag == "O" for tag in tags}  # “O” marks a word outside all entities
    is_table = len(outside_flags) == 2 or (outside_flags == {True} and count == 2 and len(rows) > 1) or is_pos
    is_table |= len(tags) > 1 and all(map(CHUNK.fullmatch, tags))
    return [is_table and is_tagged and len(cells) == count for cells, is_tagged in zip(table, are_tagged, strict=True)]


def _are_parts_of_speech(cells: Sequence[str]) -> bool:
    """Tell whether cells are parts of speech.

    There must be several. Punctuation alone does not count, because texts have it too; neither do a few words that may
    be in capital letters, as in “IN spring”.
    """
    labels = {*cells}
    word_tags = {cell for cell in labels if cell[:1].isalpha()}
    return labels <= POS_TAGS and len(word_tags) > 1 and (len(cells) >= MIN_ROWS or not word_tags <= AMBIGUOUS_TAGS)


def _find_eagles_rows(rows: Sequence[str]) -> list[bool]:
    """Tell which rows are a word, possibly its lemma, and an EAGLES tag, in as many columns as the first such row.

    There must be several tags, one of them with a digit before its end, because words can end in a number, too.
    """
    table = [TAG_SEPARATOR.split(row.strip()) for row in rows]
    last_cells = [cells[-1] if len(cells) in (2, 3) else "" for cells in table]
    tags = {cell for cell in last_cells if EAGLES.fullmatch(cell)}
    count = next((len(cells) for cells, cell in zip(table, last_cells, strict=True) if cell in tags), 0)
    are_tagged = [
        len(cells) == count and (cell in tags or bool(EAGLES_SHORT.fullmatch(cell)))
        for cells, cell in zip(table, last_cells, strict=True)
    ]
    is_table = sum(are_tagged) >= MIN_ROWS and len(tags) > 1 and any(map(INNER_DIGIT.search, tags))
    return [is_table and is_tagged for is_tagged in are_tagged]


def _find_yaml_rows(rows: Sequence[str]) -> list[bool]:
    """Tell which rows are YAML: lower-case keys with their values.

    They count only if some keys are nested, if all differ and some value is not a sentence, or if the keys are typical
    names of columns. A line “---” begins a new document.
    """
    matches = [YAML_KEY.fullmatch(row) for row in rows]
    keys = [match for match in matches if match]
    names = {key[3] for key in keys}
    document_numbers = accumulate(row.strip() == "---" for row in rows)
    document_keys = {(number, key[3]) for number, key in zip(document_numbers, matches, strict=True) if key}
    are_literals = [bool(YAML_LITERAL.fullmatch(key[4] or "")) for key in keys]
    is_list = len(names) == 1 < len(keys) and all(key[2] for key in keys)
    is_flat = len(document_keys) == len(keys) > 2 and any(are_literals)
    is_named = names <= COMMON_COLUMNS and (is_list or len(names) > 1)
    is_table = bool(keys) and (_is_nested(rows, matches) or is_flat or is_named or (is_list and all(are_literals)))
    return [is_table and bool(key or row.lstrip()[:2] in ("- ", "--")) for key, row in zip(matches, rows, strict=True)]


def _is_nested(rows: Sequence[str], matches: Sequence[re.Match[str] | None]) -> bool:
    """Tell whether a key is inside a list item that begins with a key, or inside a key without a value.

    In a text that begins with “---”, a list item right after a key without a value counts, too.
    """
    indents = [len(row) - len(row.lstrip()) for row in rows]
    for number, (key, indent) in enumerate(zip(matches, indents, strict=True)):
        parent = next((matches[n] for n in reversed(range(number)) if indents[n] < indent), None)
        if key and parent and (parent[2] or not parent[4]):
            return True
        previous = matches[number - 1] if number else None
        if rows[0].strip() == "---" and previous and not previous[4] and rows[number].lstrip().startswith("- "):
            return True
    return False


def _find_pos_rows(rows: Sequence[str]) -> list[bool]:
    """Tell which rows have the most frequent number of columns, if one column holds parts of speech."""
    table = [TAG_SEPARATOR.split(row.strip()) for row in rows]
    ((column_count, row_count),) = Counter(map(len, table)).most_common(1)
    main_rows = [cells for cells in table if len(cells) == column_count]
    is_table = row_count > 1 < column_count <= MAX_TAGGED_COLUMNS and any(
        map(_are_parts_of_speech, zip(*main_rows, strict=True))
    )
    return [is_table and len(cells) == column_count for cells in table]


def _find_spaced_rows(rows: Sequence[str]) -> list[bool]:
    """Tell which rows have the most frequent number of columns, separated by several spaces.

    There must be at least three rows.
    """
    column_counts = [len(COLUMN_GAP.split(row.strip())) for row in rows]
    ((main_count, _),) = Counter(column_counts).most_common(1)
    return [len(rows) > 2 and main_count >= MIN_COLUMNS and count == main_count for count in column_counts]


def _make_separator_test(separator: str) -> Callable[[Sequence[str]], list[bool]]:
    return lambda rows: [_has_columns(rows, separator)] * len(rows)


def _has_columns(rows: Sequence[str], separator: str) -> bool:
    """Tell whether ``separator`` splits most rows into as many cells as the first.

    The first row must name the columns, or one column must hold numbers, whole sentences or single words. In prose, a
    comma is followed by a space.
    """
    try:
        first_row, *other_rows = csv.reader(rows, delimiter=separator)
    except csv.Error:  # a cell of more than 131,072 characters
        return False
    aligned_rows = [cells for cells in other_rows if len(cells) == len(first_row) > 1]
    table_rows = [cells for cells in aligned_rows if _has_no_prose_gaps(cells)]
    if all(COLUMN.fullmatch(cell.strip()) for cell in first_row):
        has_numbers = any(
            all(map(NUMERIC.fullmatch, map(str.strip, column))) for column in zip(*aligned_rows, strict=True)
        )
        return 2 * len(aligned_rows if has_numbers else table_rows) > len(other_rows)
    columns = [*zip(first_row, *table_rows, strict=True)] if table_rows and _has_no_prose_gaps(first_row) else []
    return 2 * len(table_rows) > len(other_rows) and (any(map(_are_data_cells, columns[:-1])) or _are_words(columns))


def _has_no_prose_gaps(cells: Sequence[str]) -> bool:
    """Tell whether no cell begins like text after a comma in prose, or like the digits after a comma in a number."""
    neighbours = pairwise(cells)
    return not any(
        PROSE_GAP.match(cell) or (left_cell[-1:].isdigit() and cell[0].isdigit()) for left_cell, cell in neighbours
    )


def _are_data_cells(column: Sequence[str]) -> bool:
    """Tell whether all cells are numbers, or all are sentences."""
    return all(map(NUMERIC.fullmatch, column)) or all(cell.endswith((".", "?", "!")) for cell in column)


def _are_words(columns: Sequence[Sequence[str]]) -> bool:
    """Tell whether columns look like single words of an alphabetic script, or like labels.

    Either there are at least three rows and all columns hold single words, or there are at least four and one column of
    words holds labels: it has at most half as many different cells as rows.
    """
    count = len(columns[0]) if columns else 0
    word_columns = [
        column for column in columns if all(cell.isalpha() and cell.upper() != cell.lower() for cell in column)
    ]
    has_labels = any(2 * len({*column}) <= count for column in word_columns)
    return (count > 2 and len(word_columns) == len(columns)) or (count >= MIN_ROWS and has_labels)


def _find_markup_rows(rows: Sequence[str]) -> list[bool]:
    """Tell which rows are elements of XML or HTML.

    An element reaches from the line that opens it to the last line that closes an element of that name.
    """
    is_inside = [bool(ELEMENT.match(row)) for row in rows]
    opening_lines: dict[str, int] = {}
    for number, row in enumerate(rows):
        if tag := OPENING_TAG.fullmatch(row):
            opening_lines.setdefault(tag[1], number)
        elif (tag := CLOSING_TAG.fullmatch(row)) and tag[1] in opening_lines:
            start = opening_lines[tag[1]]
            is_inside[start : number + 1] = [True] * (number + 1 - start)
    return is_inside


def _has_tagged_words(row: str) -> bool:
    words = row.split()
    return len(words) > 2 and 4 * sum(TAGGED_WORD.fullmatch(word) is not None for word in words) > 3 * len(words)


def _make_row_test(is_row: Callable[[str], object]) -> Callable[[Sequence[str]], list[bool]]:
    return lambda rows: [bool(is_row(row)) for row in rows]


_TABLE_TESTS: Mapping[str, Callable[[Sequence[str]], list[bool]]] = MappingProxyType(
    {
        "columns separated by tabs": _make_row_test(lambda row: "\t" in row.strip()),
        "words with tags after them": _find_tagged_rows,
        "words next to tags": _find_pos_rows,
        "words with long tags after them": _find_eagles_rows,
        "tags after every word": _make_row_test(_has_tagged_words),
        "trees in brackets": _make_row_test(lambda row: len(TREE_NODE.findall(row)) > 1),
        "tags of XML or HTML": _find_markup_rows,
        "JSON": _make_row_test(JSON.match),
        "keys and values of YAML": _find_yaml_rows,
        "labels in front of texts": _make_row_test(LABEL.match),
        "subtitles": lambda rows: [any(map(SUBTITLE_TIMES.match, rows))] * len(rows),
        "rows of LaTeX": _make_row_test(lambda row: "&" in row and row.rstrip().endswith("\\\\")),
        "columns separated by “|”": _make_row_test(
            lambda row: row.strip()[:1] == "|" == row.strip()[-1:] != row.strip()
        ),
        "columns separated by commas": _make_separator_test(","),
        "columns separated by semicolons": _make_separator_test(";"),
        "columns separated by bars": _make_separator_test("|"),
        "columns separated by spaces": _find_spaced_rows,
    }
)


def _list_content_rows(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return the lines that are neither blank nor comments, with their numbers."""
    return [(number, line) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]


def _is_id(cell: str) -> bool:
    return ROW_ID.fullmatch(cell.strip()) is not None


def _is_spaced_conllu(rows: Sequence[str]) -> bool:
    """Return whether rows are CoNLL-U with single spaces between the columns.

    Most rows must begin with the number of a word and have the same number of columns. One column must be empty
    everywhere (“_”) or hold the numbers of heads. A single row, which may be a sentence of numbers, must have ten
    columns, several of them empty.
    """
    table = [row.split() for row in rows]
    if len(table) == 1:
        return table[0][0] == "1" and len(table[0]) == len(CONLLU_COLUMNS) and table[0].count("_") > 1
    for count, _ in Counter(map(len, table)).most_common(1):
        word_rows = [cells for cells in table if len(cells) == count and _is_id(cells[0])]
        if len(word_rows) > 1 and 2 * len(word_rows) > len(table) and count >= MIN_COLUMNS and word_rows[0][0] == "1":
            columns = [{*column} for column in zip(*word_rows, strict=True)][1:]
            return any(
                column == {"_"} or ("0" in column and all(cell == "_" or cell.isdecimal() for cell in column))
                for column in columns
            )
    return False
