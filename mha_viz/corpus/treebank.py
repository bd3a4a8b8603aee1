"""Corpus files: dependencies and coreference from CoNLL-U, names and pronouns from GAP, plain sentences.

Words are the lines whose id is a plain integer; ranges ("3-4") and empty nodes ("8.1") have no head and are skipped. A
file with a line that cannot be parsed is refused, and the error gives the line's number. An invalid dependency tree,
and the coreference of a document whose brackets do not match, are left out; :attr:`Corpus.left_out` says where and
why. Their words are still read, so sentence numbers match the file.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from conllu.exceptions import ParseException
from conllu.parser import parse_dict_value, parse_id_value, parse_int_value

from mha_viz.errors import CorpusError
from mha_viz.text import clean

MAX_BYTES = 64_000_000  # per file; larger files are refused without being read

# Limits per file, so that a stranger's text takes time and memory in proportion to its length.
MAX_LINE = 100_000  # characters
MAX_CELL = 10_000  # characters of a column, and of a word of plain text
MAX_WORDS = 1_000  # per sentence
MAX_SENTENCES = 500_000
MAX_BRACKETS = 20  # coreference brackets on one word
MAX_LABELS = 200  # distinct relations of a corpus, with subtypes; distinct parts of speech

WITHOUT_TREE = "Its words are read without their dependencies."

CONLLU_COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
GAP_COLUMNS = ("ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref")

# Both patterns match in linear time: once a match begins it never fails, so no character is scanned from two starting
# points; only white space and single brackets are skipped. Text that no bracket closes matches too, without the last
# group.
ENTITY_PARTS = re.compile(r"\(([^()\s-]+)(?:-[^()]*)?(\))?|([^()\s]+)(\))?")  # chain, ")" at once; other text, ")"
PLAIN_WORDS = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


class Word(NamedTuple):
    """One word with its gold annotation. ``head`` is the index of its head in the sentence, None for the root and
    for unannotated words. ``relation`` may have a subtype, as in "nmod:poss". ``features``: as in "Number=Sing"."""

    form: str
    upos: str = ""
    head: int | None = None
    relation: str = ""
    features: str = ""

    @property
    def base(self) -> str:
        """The relation without its subtype: "nmod" for "nmod:poss"."""
        return self.relation.partition(":")[0]


class Mention(NamedTuple):
    """A span of words ``start`` to ``end`` (exclusive) that belongs to a coreference chain; ``word`` is its head."""

    chain: str
    start: int
    end: int
    word: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words in order. ``document`` names the text it belongs to; ``line`` is its first line in the file."""

    words: tuple[Word, ...]
    mentions: tuple[Mention, ...] = ()
    document: str = ""
    line: int = 0

    @property
    def forms(self) -> tuple[str, ...]:
        """The words as text."""
        return tuple(word.form for word in self.words)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Sentences in the order of their file. ``digest`` is the SHA-256 of the text.

    ``has_trees`` and ``has_chains`` say what is annotated; ``left_out`` describes each annotation that was left out.
    """

    name: str
    sentences: tuple[Sentence, ...]
    digest: str
    has_trees: bool = False
    has_chains: bool = False
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """The examples of a GAP table in order; ``digest`` is the SHA-256 of the text."""

    name: str
    rows: tuple[GapRow, ...]
    digest: str


class GapRow(NamedTuple):
    """One example of GAP: a pronoun and two names with character offsets; whether the pronoun refers to each name."""

    id: str
    text: str
    pronoun: tuple[str, int]
    a: tuple[str, int, bool]
    b: tuple[str, int, bool]


def read(data: bytes, name: str) -> Corpus | Gap:
    """Parse a file, recognised by its content: a GAP table by its heading, CoNLL-U by its ten columns or the suffix
    .conllu, anything else as plain text. Raises CorpusError."""
    text = decoded(data, name)
    if not text.strip():
        raise CorpusError(f"{name} is empty.", "Expected CoNLL-U, a GAP table, or one sentence per line.")
    heading = text.partition("\n")[0].split("\t")
    if "Pronoun-offset" in heading:
        return read_gap(text, name)
    lines = (line for line in text.split("\n", 1000)[:1000] if line.strip())
    is_conllu = any(line.count("\t") == 9 or line.startswith("# sent_id") for line in lines)
    if is_conllu or name.lower().endswith((".conllu", ".conll")):
        return read_conllu(text, name)
    if name.lower().endswith(".tsv"):
        raise CorpusError(
            f"{name} is not a GAP table: its first line lacks the column Pronoun-offset.",
            f"Expected {', '.join(GAP_COLUMNS)}, separated by tabs; plain text has the suffix .txt.",
        )
    return read_plain(text, name)


def decoded(data: bytes, name: str) -> str:
    """The text of a file. Raises CorpusError when it is too large or not UTF-8."""
    if len(data) > MAX_BYTES:
        too_large(name, len(data))
    try:
        text = data.decode("utf-8-sig")
        if "\0" in text:
            raise CorpusError(
                f"{name} is not a text file: it contains a zero byte.", "Expected CoNLL-U, a GAP table or text."
            )
        return text
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise CorpusError(f"{name}, line {line}: not UTF-8 text.", "Save the file as UTF-8.") from error


def too_large(name: str, size: int) -> NoReturn:
    """Raise the CorpusError for a file of ``size`` bytes, without reading the file."""
    most = MAX_BYTES // 10**6
    raise CorpusError(f"{name} has {size / 1e6:.0f} MB; at most {most} are read.", "Split the file.")


# ---- CoNLL-U ------------------------------------------------------------------------------------------


def read_conllu(text: str, name: str = "corpus") -> Corpus:
    """Parse a treebank in CoNLL-U, with coreference where MISC holds ``Entity=`` as in GUM.

    Raises CorpusError, with the line number, for invalid CoNLL-U and above a limit; also for a file without a sentence.
    """
    sentences: list[Sentence] = []
    left_out: list[str] = []
    brackets = _Brackets(left_out)
    relations, tags = _Labels("relation", name), _Labels("part of speech", name)
    document = ""
    for block in _blocks(text, name):
        line = block[0][0]
        new_document = _new_document(block, name)
        if new_document is not None:
            brackets.close(sentences)
            document = new_document or f"document {len(sentences)}"
        rows = _rows(block, name)
        problem = _tree_problem(rows)
        words = tuple(Word(row.form, row.upos) if problem else _word(row) for row in rows)
        for row, word in zip(rows, words, strict=True):
            relations.add(word.relation, row.line)
            tags.add(word.upos, row.line)
        if problem:
            left_out.append(f"line {line}: {problem} {WITHOUT_TREE if rows else ''}".rstrip())
            if any(row.entity for row in rows):
                brackets.fail(f"line {line}: a sentence without a tree")
        else:
            brackets.read(rows, len(sentences))
        if words:
            sentences.append(Sentence(words, (), document, line))
            _check_sentences(len(sentences), line, name)
    brackets.close(sentences)
    if not sentences:
        raise CorpusError(
            f"{name} contains no sentence.", "Expected CoNLL-U: ten columns separated by tabs, one word per line."
        )
    has_trees = any(word.relation for sentence in sentences for word in sentence.words)
    return Corpus(name, tuple(sentences), _digest(text), has_trees, brackets.any_mentions, tuple(left_out))


_Block = list[tuple[int, str]]  # the lines of a sentence with their numbers


def _blocks(text: str, name: str) -> Iterator[_Block]:
    """The lines of each sentence. Raises CorpusError for one that is too long."""
    block: _Block = []
    for number, line in enumerate(text.split("\n"), 1):  # only "\n" ends a line: a word may contain U+2028
        _check_line(line, number, name)
        if line.strip():
            block.append((number, line.removesuffix("\r")))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _check_line(line: str, number: int, name: str) -> None:
    if len(line) > MAX_LINE:
        raise CorpusError(
            f"{name}, line {number}: {len(line):,} characters; at most {MAX_LINE:,} of a line are read.",
            "Break the line; start every sentence on a new line.",
        )


def _check_cells(cells: Sequence[str], number: int, name: str) -> None:
    longest = max(map(len, cells), default=0)
    if longest > MAX_CELL:
        raise CorpusError(
            f"{name}, line {number}: {longest:,} characters without a break; at most {MAX_CELL:,} are read.",
            "Shorten the column, or delete the line.",
        )


def _check_sentences(count: int, number: int, name: str) -> None:
    if count > MAX_SENTENCES:
        raise CorpusError(
            f"{name}, line {number}: sentence number {count:,}; at most {MAX_SENTENCES:,} are read.", "Split the file."
        )


def _check_words(count: int, number: int, name: str) -> None:
    if count > MAX_WORDS:
        raise CorpusError(
            f"{name}, line {number}: a sentence of {count:,} words; at most {MAX_WORDS:,} are read.",
            "Split it into sentences, or delete it.",
        )


class _Labels:
    """The distinct labels of one kind, limited because a study tabulates all relations by all parts of speech."""

    def __init__(self, kind: str, name: str) -> None:
        self._kind, self._name = kind, name
        self._seen: set[str] = set()

    def add(self, label: str, line: int) -> None:
        if label:
            self._seen.add(label)
        if len(self._seen) > MAX_LABELS:
            raise CorpusError(
                f"{self._name}, line {line}: “{label[:40]}” is {self._kind} number {len(self._seen)}; "
                f"at most {MAX_LABELS} different ones are read, counting subtypes.",
                "A treebank has about 50: check the order of the columns, or merge rare ones.",
            )


def _new_document(block: _Block, name: str) -> str | None:
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


class _Row(NamedTuple):
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


def _rows(block: _Block, name: str) -> list[_Row]:
    """The words of a sentence: lines whose id is a plain integer. Limits are checked before parsing."""
    lines = [(number, line.split("\t")) for number, line in block if not line.startswith("#")]
    _check_words(sum(cells[0].strip().isdecimal() for _, cells in lines), block[0][0], name)
    rows = []
    for number, cells in lines:
        if len(cells) != len(CONLLU_COLUMNS):
            problem = f"{name}, line {number}: {len(cells)} columns."
            raise CorpusError(problem, "CoNLL-U has ten, separated by tabs; the file may have another format.")
        _check_cells(cells, number, name)
        row = _row(dict(zip(CONLLU_COLUMNS, cells, strict=True)), number, name)
        rows += [row] if row else []
    return rows


def _row(cells: Mapping[str, str], line: int, name: str) -> _Row | None:
    """The word of a line; None for a range, an empty node, and a line without an id."""
    values = {column: _value(column, cells[column].strip(), line, name) for column in _PARSERS}
    if not isinstance(values["ID"], int):
        return None
    features = "|".join(f"{feature}={value}" for feature, value in (values["FEATS"] or {}).items())
    entity = (values["MISC"] or {}).get("Entity") or ""
    form = clean(cells["FORM"])
    return _Row(line, values["ID"], form, cells["UPOS"], features, values["HEAD"], cells["DEPREL"], entity)


def _value(column: str, cell: str, line: int, name: str) -> Any:
    try:
        return _PARSERS[column](cell)
    except (ParseException, ValueError) as error:
        problem = " ".join(str(error).split())[:120]
        if column == "HEAD":
            problem = f"“{cell[:40]}” is not a whole number; expected the ID of a word, or 0."
        remedy = "Correct the line, or delete the sentence."
        raise CorpusError(f"{name}, line {line}: {column}: {problem}", remedy) from error


def _tree_problem(rows: Sequence[_Row]) -> str:
    """Why a sentence's tree is invalid; empty when it is valid. A sentence without any head is unannotated, which is
    valid."""
    ids = [row.id for row in rows]
    if not rows:
        return "a sentence without a word."
    if 1 in ids[1:]:
        return f"the ids begin again at word {ids.index(1, 1) + 1}; a blank line must separate two sentences."
    if ids != list(range(1, len(ids) + 1)):
        return f"the ids are not 1 to {len(ids)} in order."
    heads = [row.head for row in rows if row.head is not None]
    if not heads:
        return ""
    for number, row in enumerate(rows, 1):
        if row.head is None:
            return f"word {number} has no head."
        if len(row.relation.split()) != 1:
            return f"word {number} has a head but no single-word relation."
        if not 0 <= row.head <= len(ids):
            return f"the head of word {number} does not exist."
    return _cycle(heads)


def _cycle(heads: Sequence[int]) -> str:
    """The problem of a tree with a cycle; empty when all heads lead to a root. Every word is visited once."""
    passed_from = [0] * (len(heads) + 1)  # the word from which each was first reached
    for start in range(1, len(heads) + 1):
        at = start
        while at and not passed_from[at]:
            passed_from[at], at = start, heads[at - 1]
        if at and passed_from[at] == start:
            return f"the heads form a cycle through word {start}."
    return ""


def _word(row: _Row) -> Word:
    head = row.head - 1 if row.head else None
    return Word(row.form, row.upos, head, row.relation if row.head is not None else "", row.features)


class _Open(NamedTuple):
    number: int  # among the document's opening brackets
    chain: str
    sentence: int
    start: int
    line: int


class _Brackets:
    """Parses ``Entity=`` over the sentences of a document: "(7-person-…" opens, "7)" closes, "(7)" does both."""

    def __init__(self, left_out: list[str]) -> None:
        self._left_out = left_out
        self.any_mentions = False
        self._start_document()

    def _start_document(self) -> None:
        self._opened = 0
        self._open: dict[str, list[_Open]] = {}  # by chain; the last one opened is closed first
        self._mentions: dict[int, list[Mention]] = {}  # by sentence
        self.broken = False

    def read(self, rows: Sequence[_Row], sentence: int) -> None:
        if self.broken or not any(row.entity for row in rows):
            return
        heads = _SpanHeads([row.head - 1 if row.head else -1 for row in rows])
        for index, row in enumerate(rows):
            heads.end_at(index)
            parts = ENTITY_PARTS.findall(row.entity)
            if len(parts) > MAX_BRACKETS:
                self.fail(f"line {row.line}: {len(parts):,} brackets on one word, of which {MAX_BRACKETS} are read")
                return
            for chain, single, closed, closing in parts:
                if chain:
                    self._opened += 1
                    opened = _Open(self._opened, chain, sentence, index, row.line)
                    if single:
                        self._add_mention(opened, heads, sentence)
                    else:
                        self._open.setdefault(chain, []).append(opened)
                elif closing:
                    self._close(closed.partition("-")[0], heads, sentence, row.line)

    def _close(self, chain: str, heads: _SpanHeads, sentence: int, line: int) -> None:
        if self._open.get(chain):
            self._add_mention(self._open[chain].pop(), heads, sentence)
        else:
            self.fail(f"line {line}: Entity={chain[:20]}) closes what was never opened")

    def _add_mention(self, opened: _Open, heads: _SpanHeads, sentence: int) -> None:
        if opened.sentence != sentence:
            self.fail(f"line {opened.line}: Entity=({opened.chain[:20]} closes in another sentence")
            return
        chain, _, part = opened.chain.partition("[")
        if part and not part.startswith("1/"):  # a discontinuous mention is represented by its first part
            return
        mention = Mention(chain, opened.start, heads.end + 1, heads.head_from(opened.start))
        self._mentions.setdefault(sentence, []).append(mention)

    def fail(self, reason: str) -> None:
        if not self.broken:
            self._left_out.append(f"{reason}: the coreference of this document is left out.")
        self.broken = True

    def close(self, sentences: list[Sentence]) -> None:
        """End the document: add its mentions to their sentences, unless a bracket is still open."""
        first = min((stack[0] for stack in self._open.values() if stack), default=None)
        if first and not self.broken:
            self.fail(f"line {first.line}: Entity=({first.chain[:20]} never closes")
        for number, mentions in self._mentions.items() if not self.broken else ():
            old = sentences[number]
            sentences[number] = Sentence(old.words, tuple(sorted(mentions, key=_sort_key)), old.document, old.line)
            self.any_mentions = True
        self._start_document()


class _SpanHeads:
    """The head word of each span of a sentence: the first word whose head lies outside the span.

    ``heads`` are indices, −1 for none. The end of the span moves from word to word; a word is *waiting* while its head
    lies beyond the end, so no span has to be scanned word by word.
    """

    def __init__(self, heads: Sequence[int]) -> None:
        self._heads = heads
        self._first_headed_before = _first_headed_before(heads)
        self._earlier: list[list[int]] = [[] for _ in heads]  # the dependents that precede each word
        for word, head in enumerate(heads):
            if head > word:
                self._earlier[head].append(word)
        self._waiting: list[int] = []  # words up to the end whose heads lie beyond it, ascending
        self.end = -1

    def end_at(self, end: int) -> None:
        """Move the end of the spans to the next word."""
        for word in self._earlier[end]:
            del self._waiting[bisect_left(self._waiting, word)]
        if self._heads[end] > end:
            self._waiting.append(end)
        self.end = end

    def head_from(self, start: int) -> int:
        """The head of the span from ``start`` to the end."""
        place = bisect_left(self._waiting, start)
        return min([self._first_headed_before[start], *self._waiting[place : place + 1]])


def _first_headed_before(heads: Sequence[int]) -> list[int]:
    """For each word: the first word from there on that has no head or whose head precedes that word."""
    first = [0] * len(heads)
    later: list[int] = []  # candidates, the nearest last; a word is dropped once its head is not before the start
    for start in reversed(range(len(heads))):
        later.append(start)
        while later and heads[later[-1]] >= start:
            later.pop()
        first[start] = later[-1] if later else len(heads)
    return first


def _sort_key(mention: Mention) -> tuple[int, int]:
    return mention.start, -mention.end


# ---- GAP and plain text ---------------------------------------------------------------------------------


def read_gap(text: str, name: str = "corpus") -> Gap:
    """Parse a GAP table (Webster et al. 2018). Raises CorpusError with the number of the invalid line."""
    lines = _table(text, name)
    heading = next(lines)[1]
    missing = [column for column in GAP_COLUMNS if column not in heading]
    if missing:
        raise CorpusError(f"{name}, line 1: the column {missing[0]} is missing.", f"Expected {', '.join(GAP_COLUMNS)}.")
    rows = []
    for number, cells in lines:
        if not any(cells):
            continue
        if len(cells) != len(heading):
            raise CorpusError(f"{name}, line {number}: {len(cells)} columns.", f"The first line has {len(heading)}.")
        rows.append(_gap_row(dict(zip(heading, cells, strict=True)), number, name))
    if not rows:
        raise CorpusError(f"{name} contains no example.", "Expected a GAP table with one example per line.")
    return Gap(name, tuple(rows), _digest(text))


def _table(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line with its number. Raises CorpusError above a limit."""
    for number, line in enumerate(text.split("\n"), 1):
        _check_line(line, number, name)
        cells = line.removesuffix("\r").split("\t")
        _check_cells(cells, number, name)
        yield number, cells


def _gap_row(row: dict[str, str], line: int, name: str) -> GapRow:
    try:
        cells = {column: row[column] for column in GAP_COLUMNS}
        spans = [(cells[c], int(cells[f"{c}-offset"])) for c in ("Pronoun", "A", "B")]
        a, b = (_boolean(cells[f"{c}-coref"]) for c in ("A", "B"))
    except (KeyError, ValueError) as error:
        problem = f"{name}, line {line}: {str(error)[:120]} is invalid."
        raise CorpusError(problem, "Expected a row of a GAP table.") from error
    for form, at in spans:
        if at < 0 or not cells["Text"].startswith(form, at):
            raise CorpusError(
                f"{name}, line {line}: “{form[:40]}” is not at character {str(at)[:20]}.", "Correct the row."
            )
    return GapRow(cells["ID"], cells["Text"], spans[0], (*spans[1], a), (*spans[2], b))


def _boolean(cell: str) -> bool:
    if cell.upper() not in ("TRUE", "FALSE"):
        raise ValueError(f"“{cell[:20]}” (TRUE or FALSE)")
    return cell.upper() == "TRUE"


def read_plain(text: str, name: str = "corpus") -> Corpus:
    """Parse plain text: one sentence per line, split into words and punctuation. Raises CorpusError."""
    sentences: list[Sentence] = []
    words: dict[str, Word] = {}  # one object per form, however often it occurs
    for number, line in enumerate(text.splitlines(), 1):
        _check_line(line, number, name)
        if line.strip():
            forms = _split(line)
            _check_words(len(forms), number, name)
            _check_cells(forms, number, name)
            shared = tuple(words.get(form) or words.setdefault(form, Word(form)) for form in forms)
            sentences.append(Sentence(shared, (), "", number))
            _check_sentences(len(sentences), number, name)
    if not sentences:
        raise CorpusError(f"{name} contains no sentence.", "Expected one sentence per line.")
    return Corpus(name, tuple(sentences), _digest(text))


def _split(line: str) -> list[str]:
    """Words and punctuation marks; an apostrophe or hyphen between letters stays inside its word."""
    return PLAIN_WORDS.findall(clean(line)) or [clean(line.strip())]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
