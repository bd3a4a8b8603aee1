"""Annotated text: dependencies and coreference from CoNLL-U, names from GAP, plain sentences.

Words are the lines whose id is a plain integer; ranges ("3-4") and empty nodes ("8.1") carry no head of their own and
are skipped. A file whose lines cannot be read is refused with the line's number. The tree of a sentence where it is
broken, and the coreference of a document whose brackets do not match, are left out, and :attr:`Corpus.left_out` says
where and why; the words stay, so that every sentence keeps its number in the file.
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

MAX_BYTES = 64_000_000  # of a file; larger ones are refused by size before they are read

# Of one file, so that a text from a stranger costs time and memory in proportion to its length.
MAX_LINE = 100_000  # characters
MAX_CELL = 10_000  # characters of a column, and of a word of plain text
MAX_WORDS = 1_000  # of a sentence
MAX_SENTENCES = 500_000
MAX_BRACKETS = 20  # of coreference on one word
MAX_LABELS = 200  # different relations of a corpus, subtypes counted; different parts of speech

WITHOUT_TREE = "Its words are read without their dependencies."

CONLLU_COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
GAP_COLUMNS = ("ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref")

# Both take in whatever they begin to match, so that no character is looked at again from another beginning: what they
# pass over is white space, and single brackets. A run that no bracket closes is a part too, without the last group.
ENTITY_PARTS = re.compile(r"\(([^()\s-]+)(?:-[^()]*)?(\))?|([^()\s]+)(\))?")  # opened, closed at once; closed, with ")"
PLAIN_WORDS = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


class Word(NamedTuple):
    """One word with its gold annotation. ``head`` is the index of its head in the sentence, None for the root and
    where there is no annotation. ``relation`` may have a subtype: "nmod:poss". ``features`` as in "Number=Sing"."""

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
    """Words in order. ``document`` names the text it stands in; ``line`` is where it begins in its file."""

    words: tuple[Word, ...]
    mentions: tuple[Mention, ...] = ()
    document: str = ""
    line: int = 0

    @property
    def forms(self) -> tuple[str, ...]:
        """The words as they are written."""
        return tuple(word.form for word in self.words)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Sentences in the order of their file. ``digest`` is the SHA-256 of what was read.

    ``has_trees`` and ``has_chains`` say what is annotated; ``left_out`` what could not be used, one sentence each.
    """

    name: str
    sentences: tuple[Sentence, ...]
    digest: str
    has_trees: bool = False
    has_chains: bool = False
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """The examples of a GAP table in order; ``digest`` is the SHA-256 of what was read."""

    name: str
    rows: tuple[GapRow, ...]
    digest: str


class GapRow(NamedTuple):
    """One example of GAP: a pronoun and two names with character offsets; which of them it refers to, if either."""

    id: str
    text: str
    pronoun: tuple[str, int]
    a: tuple[str, int, bool]
    b: tuple[str, int, bool]


def read(data: bytes, name: str) -> Corpus | Gap:
    """A file of any kind that is known, told by what is in it: a GAP table by its heading, CoNLL-U by its ten columns
    or the suffix .conllu, anything else as plain text. Raises CorpusError."""
    text = decoded(data, name)
    if not text.strip():
        raise CorpusError(f"{name} is empty.", "Expected CoNLL-U, a GAP table, or one sentence a line.")
    heading = text.partition("\n")[0].split("\t")
    if "Pronoun-offset" in heading:
        return read_gap(text, name)
    lines = (line for line in text.split("\n", 1000)[:1000] if line.strip())
    told = any(line.count("\t") == 9 or line.startswith("# sent_id") for line in lines)
    if told or name.lower().endswith((".conllu", ".conll")):
        return read_conllu(text, name)
    if name.lower().endswith(".tsv"):
        raise CorpusError(
            f"{name} is no GAP table: its first line lacks the column Pronoun-offset.",
            f"Expected {', '.join(GAP_COLUMNS)}, parted by tabs; plain text has the suffix .txt.",
        )
    return read_plain(text, name)


def decoded(data: bytes, name: str) -> str:
    """The text of a file. Raises CorpusError when it is too large or not UTF-8."""
    if len(data) > MAX_BYTES:
        too_large(name, len(data))
    try:
        text = data.decode("utf-8-sig")
        if "\0" in text:
            raise CorpusError(f"{name} holds no text: it has a zero byte.", "Expected CoNLL-U, a GAP table or text.")
        return text
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise CorpusError(f"{name}, line {line}: not UTF-8 text.", "Save the file as UTF-8.") from error


def too_large(name: str, size: int) -> NoReturn:
    """Raises the CorpusError for a file of ``size`` bytes, which need not be read for it."""
    most = MAX_BYTES // 10**6
    raise CorpusError(f"{name} has {size / 1e6:.0f} MB; at most {most} are read.", "Split the file.")


# ---- CoNLL-U ------------------------------------------------------------------------------------------


def read_conllu(text: str, name: str = "corpus") -> Corpus:
    """A treebank in CoNLL-U; coreference where MISC holds ``Entity=`` in the manner of GUM.

    Raises CorpusError with the line of what is no CoNLL-U or more than is read, and for a file without a sentence.
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
        problem = _problem(rows)
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
        raise CorpusError(f"{name} holds no sentence.", "Expected CoNLL-U: ten columns parted by tabs, a line a word.")
    has_trees = any(word.relation for sentence in sentences for word in sentence.words)
    return Corpus(name, tuple(sentences), _digest(text), has_trees, brackets.found, tuple(left_out))


_Block = list[tuple[int, str]]  # the lines of a sentence with their numbers


def _blocks(text: str, name: str) -> Iterator[_Block]:
    """The lines of each sentence. Raises CorpusError for one that is too long."""
    block: _Block = []
    for number, line in enumerate(text.split("\n"), 1):  # no other sign ends a line: U+2028 may stand in a word
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
            "Break the line; a sentence stands in lines of its own.",
        )


def _check_cells(cells: Sequence[str], number: int, name: str) -> None:
    longest = max(map(len, cells), default=0)
    if longest > MAX_CELL:
        raise CorpusError(
            f"{name}, line {number}: {longest:,} characters without a break; at most {MAX_CELL:,} are read.",
            "Shorten the column, or leave the line out.",
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
            "Split it into sentences, or leave it out.",
        )


class _Labels:
    """The different labels of one kind. A study keeps a table of every relation by every part of speech."""

    def __init__(self, kind: str, name: str) -> None:
        self._kind, self._name = kind, name
        self._seen: set[str] = set()

    def add(self, label: str, line: int) -> None:
        if label:
            self._seen.add(label)
        if len(self._seen) > MAX_LABELS:
            raise CorpusError(
                f"{self._name}, line {line}: “{label[:40]}” is {self._kind} number {len(self._seen)}; "
                f"at most {MAX_LABELS} different ones are read, subtypes counted.",
                "A treebank has some 50: check which column holds what, or merge rare ones.",
            )


def _new_document(block: _Block, name: str) -> str | None:
    """The document that begins with this sentence, empty for one without a name; None where none begins."""
    begins, document = False, ""
    for line, content in block:
        if not content.startswith("#"):
            continue
        key, _, value = (part.strip() for part in content[1:].partition("="))
        if key == "global.columns" and value.upper().split() != list(CONLLU_COLUMNS):
            raise CorpusError(f"{name}, line {line}: other columns.", f"Expected {', '.join(CONLLU_COLUMNS)}.")
        if key == "newdoc" or (key == "newdoc id" and value):
            begins, document = True, value if key == "newdoc id" else document
    return document if begins else None


class _Row(NamedTuple):
    """The line of a word. ``head`` is as it is written: an id, 0 for the root, None for none."""

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
    """The words of a sentence: lines whose id is a plain integer. What is too much is refused before it is parsed."""
    lines = [(number, line.split("\t")) for number, line in block if not line.startswith("#")]
    _check_words(sum(cells[0].strip().isdecimal() for _, cells in lines), block[0][0], name)
    rows = []
    for number, cells in lines:
        if len(cells) != len(CONLLU_COLUMNS):
            problem = f"{name}, line {number}: {len(cells)} columns."
            raise CorpusError(problem, "CoNLL-U has ten, parted by tabs; the file may be another.")
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
        remedy = "Mend the line, or leave the sentence out."
        raise CorpusError(f"{name}, line {line}: {column}: {problem}", remedy) from error


def _problem(rows: Sequence[_Row]) -> str:
    """Why a sentence's tree cannot be used; empty when it can. A sentence without any head is no tree, and no
    problem."""
    ids = [row.id for row in rows]
    if not rows:
        return "a sentence without a word."
    if 1 in ids[1:]:
        return f"the ids begin again at word {ids.index(1, 1) + 1}; a blank line parts two sentences."
    if ids != list(range(1, len(ids) + 1)):
        return f"the ids are not 1 to {len(ids)} in order."
    heads = [row.head for row in rows if row.head is not None]
    if not heads:
        return ""
    for number, row in enumerate(rows, 1):
        if row.head is None:
            return f"word {number} has no head."
        if len(row.relation.split()) != 1:
            return f"word {number} has a head and no relation of one word."
        if not 0 <= row.head <= len(ids):
            return f"word {number} has a head that is not there."
    return _cycle(heads)


def _cycle(heads: Sequence[int]) -> str:
    """Which word's heads lead into a circle; empty when all lead to a root. Every word is passed once."""
    passed_from = [0] * (len(heads) + 1)  # the word from which each was first reached
    for start in range(1, len(heads) + 1):
        at = start
        while at and not passed_from[at]:
            passed_from[at], at = start, heads[at - 1]
        if at and passed_from[at] == start:
            return f"the heads run in a circle through word {start}."
    return ""


def _word(row: _Row) -> Word:
    head = row.head - 1 if row.head else None
    return Word(row.form, row.upos, head, row.relation if row.head is not None else "", row.features)


class _Open(NamedTuple):
    number: int  # in the order of the document's brackets
    chain: str
    sentence: int
    start: int
    line: int


class _Brackets:
    """Reads ``Entity=`` over the sentences of one document: opens "(7-person-…", closes "7)", or both at once."""

    def __init__(self, left_out: list[str]) -> None:
        self._left_out = left_out
        self.found = False
        self._start_document()

    def _start_document(self) -> None:
        self._opened = 0
        self._open: dict[str, list[_Open]] = {}  # by chain, the last one opened is closed first
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
                        self._keep(opened, heads, sentence)
                    else:
                        self._open.setdefault(chain, []).append(opened)
                elif closing:
                    self._close(closed.partition("-")[0], heads, sentence, row.line)

    def _close(self, chain: str, heads: _SpanHeads, sentence: int, line: int) -> None:
        if self._open.get(chain):
            self._keep(self._open[chain].pop(), heads, sentence)
        else:
            self.fail(f"line {line}: Entity={chain[:20]}) closes what was never opened")

    def _keep(self, opened: _Open, heads: _SpanHeads, sentence: int) -> None:
        if opened.sentence != sentence:
            self.fail(f"line {opened.line}: Entity=({opened.chain[:20]} closes in another sentence")
            return
        chain, _, part = opened.chain.partition("[")
        if part and not part.startswith("1/"):  # of a mention in several parts, the first one stands for it
            return
        mention = Mention(chain, opened.start, heads.end + 1, heads.head_from(opened.start))
        self._mentions.setdefault(sentence, []).append(mention)

    def fail(self, reason: str) -> None:
        if not self.broken:
            self._left_out.append(f"{reason}: the coreference of this document is left out.")
        self.broken = True

    def close(self, sentences: list[Sentence]) -> None:
        """The document ends: its mentions go to their sentences, unless a bracket is left over."""
        first = min((stack[0] for stack in self._open.values() if stack), default=None)
        if first and not self.broken:
            self.fail(f"line {first.line}: Entity=({first.chain[:20]} never closes")
        for number, mentions in self._mentions.items() if not self.broken else ():
            old = sentences[number]
            sentences[number] = Sentence(old.words, tuple(sorted(mentions, key=_order)), old.document, old.line)
            self.found = True
        self._start_document()


class _SpanHeads:
    """The heads of the spans of one sentence: of each the first word whose own head lies outside it.

    ``heads`` are indices, −1 for none. The ends of the spans are taken one after the other; each word then waits as
    long as its head lies behind the end, so that no span is gone through word by word.
    """

    def __init__(self, heads: Sequence[int]) -> None:
        self._heads = heads
        self._led_from_before = _led_from_before(heads)
        self._earlier: list[list[int]] = [[] for _ in heads]  # dependents of each word that stand before it
        for word, head in enumerate(heads):
            if head > word:
                self._earlier[head].append(word)
        self._waiting: list[int] = []  # words up to the end whose heads lie behind it, ascending
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
        return min([self._led_from_before[start], *self._waiting[place : place + 1]])


def _led_from_before(heads: Sequence[int]) -> list[int]:
    """For each word the first one from there on whose head lies before that word, or that has none."""
    first = [0] * len(heads)
    later: list[int] = []  # the nearest last; one whose head is not before this word's is no answer for earlier ones
    for start in reversed(range(len(heads))):
        later.append(start)
        while later and heads[later[-1]] >= start:
            later.pop()
        first[start] = later[-1] if later else len(heads)
    return first


def _order(mention: Mention) -> tuple[int, int]:
    return mention.start, -mention.end


# ---- GAP and plain text ---------------------------------------------------------------------------------


def read_gap(text: str, name: str = "corpus") -> Gap:
    """The rows of a GAP table (Webster et al. 2018). Raises CorpusError with the line of what does not fit."""
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
        raise CorpusError(f"{name} holds no example.", "Expected a GAP table with a line an example.")
    return Gap(name, tuple(rows), _digest(text))


def _table(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line with its number. Raises CorpusError for what is too long."""
    for number, line in enumerate(text.split("\n"), 1):
        _check_line(line, number, name)
        cells = line.removesuffix("\r").split("\t")
        _check_cells(cells, number, name)
        yield number, cells


def _gap_row(row: dict[str, str], line: int, name: str) -> GapRow:
    try:
        said = {column: row[column] for column in GAP_COLUMNS}
        spans = [(said[c], int(said[f"{c}-offset"])) for c in ("Pronoun", "A", "B")]
        a, b = (_truth(said[f"{c}-coref"]) for c in ("A", "B"))
    except (KeyError, ValueError) as error:
        problem = f"{name}, line {line}: {str(error)[:120]} does not fit."
        raise CorpusError(problem, "Expected a row of a GAP table.") from error
    for form, at in spans:
        if at < 0 or not said["Text"].startswith(form, at):
            raise CorpusError(
                f"{name}, line {line}: “{form[:40]}” does not stand at character {str(at)[:20]}.", "Mend the row."
            )
    return GapRow(said["ID"], said["Text"], spans[0], (*spans[1], a), (*spans[2], b))


def _truth(said: str) -> bool:
    if said.upper() not in ("TRUE", "FALSE"):
        raise ValueError(f"“{said[:20]}” (TRUE or FALSE)")
    return said.upper() == "TRUE"


def read_plain(text: str, name: str = "corpus") -> Corpus:
    """One sentence a line, words parted by blanks and punctuation; nothing is annotated. Raises CorpusError."""
    sentences: list[Sentence] = []
    words: dict[str, Word] = {}  # one for each form, however often it stands there
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
        raise CorpusError(f"{name} holds no sentence.", "Expected one sentence a line.")
    return Corpus(name, tuple(sentences), _digest(text))


def _split(line: str) -> list[str]:
    """Words and punctuation marks; an apostrophe or hyphen between letters stays inside its word."""
    return PLAIN_WORDS.findall(clean(line)) or [clean(line.strip())]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
