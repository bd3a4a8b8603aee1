"""Annotated text: dependencies and coreference from CoNLL-U, names from GAP, plain sentences.

Words are the lines whose id is a plain integer; ranges ("3-4") and empty nodes ("8.1") carry no head of their own and
are skipped. A file whose lines cannot be read is refused with the line's number. The tree of a sentence where it is
broken, and the coreference of a document whose brackets do not match, are left out, and :attr:`Corpus.left_out` says
where and why; the words stay, so that every sentence keeps its number in the file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import conllu

from mha_viz.errors import CorpusError
from mha_viz.text import clean

MAX_BYTES = 64_000_000  # of a file; larger ones are refused by size before they are read

WITHOUT_TREE = "Its words are read without their dependencies."

GAP_COLUMNS = ("ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref")


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
    heading = text[: text.find("\n")].split("\t")
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

    Raises CorpusError with the line of what is no CoNLL-U, and for a file without a sentence.
    """
    sentences: list[Sentence] = []
    left_out: list[str] = []
    brackets = _Brackets(left_out)
    document = ""
    for line, block in _blocks(text):
        parsed = _parsed(block, line, name)
        if "newdoc id" in parsed.metadata or "newdoc" in parsed.metadata:
            brackets.close(sentences)
            document = str(parsed.metadata.get("newdoc id") or f"document {len(sentences)}")
        rows = [token for token in parsed if isinstance(token["id"], int)]
        problem = _problem(rows)
        if problem:
            left_out.append(f"line {line}: {problem} {WITHOUT_TREE if rows else ''}".rstrip())
            if brackets.seen_any(rows):
                brackets.fail(f"line {line}: a sentence without a tree")
        else:
            brackets.read(rows, tuple(map(_word, rows)), len(sentences), _lines(block, line))
        if rows:
            words = (Word(clean(str(row["form"])), row["upos"] or "") if problem else _word(row) for row in rows)
            sentences.append(Sentence(tuple(words), (), document, line))
    brackets.close(sentences)
    if not sentences:
        raise CorpusError(f"{name} holds no sentence.", "Expected CoNLL-U: ten columns parted by tabs, a line a word.")
    has_trees = any(word.relation for sentence in sentences for word in sentence.words)
    return Corpus(name, tuple(sentences), _digest(text), has_trees, brackets.found, tuple(left_out))


def _lines(block: str, line: int) -> list[int]:
    """The line of each word of a sentence that begins at ``line``."""
    return [number for number, row in enumerate(block.split("\n"), line) if row.partition("\t")[0].isdigit()]


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Each sentence's lines, with the number of the first."""
    first, lines = 1, list[str]()
    for number, line in enumerate(text.split("\n"), 1):  # no other sign ends a line: U+2028 may stand in a word
        if line.strip():
            first = first if lines else number
            lines.append(line.removesuffix("\r"))
        elif lines:
            yield first, "\n".join(lines)
            lines = []
    if lines:
        yield first, "\n".join(lines)


def _parsed(block: str, line: int, name: str) -> Any:
    for number, content in enumerate(block.split("\n"), line):
        if not content.startswith("#") and content.count("\t") != 9:
            found = content.count("\t") + 1
            raise CorpusError(
                f"{name}, line {number}: {found} columns.", "CoNLL-U has ten, parted by tabs; the file may be another."
            )
    try:
        parsed = conllu.parse(block)
    except (conllu.exceptions.ParseException, ValueError) as error:
        bad = next((n for n, c in enumerate(block.split("\n"), line) if not _parses(c)), line)
        said = " ".join(str(error).split())[:120]
        raise CorpusError(f"{name}, line {bad}: {said}", "Mend the line, or leave the sentence out.") from error
    if not parsed:  # comments alone
        return conllu.TokenList()
    return parsed[0]


def _parses(line: str) -> bool:
    try:
        conllu.parse(line)
    except (conllu.exceptions.ParseException, ValueError):
        return False
    return True


def _problem(rows: Sequence[Any]) -> str:
    """Why a sentence's tree cannot be used; empty when it can. A sentence without any head is no tree, and no
    problem."""
    ids = [row["id"] for row in rows]
    if not rows:
        return "a sentence without a word."
    if 1 in ids[1:]:
        return f"the ids begin again at word {ids.index(1, 1) + 1}; a blank line parts two sentences."
    if ids != list(range(1, len(ids) + 1)):
        return f"the ids are not 1 to {len(ids)} in order."
    heads = [row["head"] for row in rows]
    if all(head is None for head in heads):
        return ""
    if any(head is None for head in heads):
        return f"word {heads.index(None) + 1} has no head."
    for number, row in enumerate(rows, 1):
        if len((row["deprel"] or "").split()) != 1:
            return f"word {number} has a head and no relation of one word."
    if any(not 0 <= head <= len(ids) for head in heads):
        return f"word {next(i for i, h in enumerate(heads, 1) if not 0 <= h <= len(ids))} has a head that is not there."
    return _cycle(heads)


def _cycle(heads: Sequence[int]) -> str:
    for start in range(1, len(heads) + 1):
        at, steps = start, 0
        while at and steps <= len(heads):
            at, steps = heads[at - 1], steps + 1
        if at:
            return f"the heads run in a circle through word {start}."
    return ""


def _word(row: Any) -> Word:
    head = row["head"]
    features = "|".join(f"{name}={value}" for name, value in (row["feats"] or {}).items())
    return Word(
        clean(str(row["form"])),
        row["upos"] or "",
        None if not head else head - 1,
        row["deprel"] or "" if head is not None else "",
        features,
    )


class _Open(NamedTuple):
    chain: str
    sentence: int
    start: int
    line: int


class _Brackets:
    """Reads ``Entity=`` over the sentences of one document: opens "(7-person-…", closes "7)", or both at once."""

    PARTS = re.compile(r"\(([^()\s-]+)(?:-[^()]*)?(\))?|([^()\s]+)\)")

    def __init__(self, left_out: list[str]) -> None:
        self._left_out = left_out
        self.found = False
        self._start_document()

    def _start_document(self) -> None:
        self._open: list[_Open] = []
        self._mentions: list[tuple[int, Mention]] = []
        self.broken = False

    def seen_any(self, rows: Sequence[Any]) -> bool:
        return any("Entity" in (row["misc"] or {}) for row in rows)

    def read(self, rows: Sequence[Any], words: tuple[Word, ...], sentence: int, lines: Sequence[int]) -> None:
        for index, (row, line) in enumerate(zip(rows, lines, strict=True)):
            said = (row["misc"] or {}).get("Entity")
            for opened, single, closed in self.PARTS.findall(said or ""):
                if opened and single:
                    self._keep(_Open(opened, sentence, index, line), words, index, sentence)
                elif opened:
                    self._open.append(_Open(opened, sentence, index, line))
                else:
                    self._closed(closed, words, index, sentence, line)

    def _closed(self, chain: str, words: tuple[Word, ...], index: int, sentence: int, line: int) -> None:
        chain = chain.partition("-")[0]
        place = next((i for i in reversed(range(len(self._open))) if self._open[i].chain == chain), None)
        if place is None:
            self.fail(f"line {line}: Entity={chain[:20]}) closes what was never opened")
            return
        self._keep(self._open.pop(place), words, index, sentence)

    def _keep(self, opened: _Open, words: tuple[Word, ...], index: int, sentence: int) -> None:
        if opened.sentence != sentence:
            self.fail(f"line {opened.line}: Entity=({opened.chain[:20]} closes in another sentence")
            return
        span = range(opened.start, index + 1)
        head = next((i for i in span if words[i].head is None or words[i].head not in span), opened.start)
        chain, _, part = opened.chain.partition("[")
        if part and not part.startswith("1/"):  # of a mention in several parts, the first one stands for it
            return
        self._mentions.append((sentence, Mention(chain, opened.start, index + 1, head)))

    def fail(self, reason: str) -> None:
        if not self.broken:
            self._left_out.append(f"{reason}: the coreference of this document is left out.")
        self.broken = True

    def close(self, sentences: list[Sentence]) -> None:
        """The document ends: its mentions go to their sentences, unless a bracket is left over."""
        if self._open and not self.broken:
            first = self._open[0]
            self.fail(f"line {first.line}: Entity=({first.chain[:20]} never closes")
        by_sentence: dict[int, list[Mention]] = {}
        for number, mention in self._mentions if not self.broken else ():
            by_sentence.setdefault(number, []).append(mention)
        for number, mentions in by_sentence.items():
            old = sentences[number]
            sentences[number] = Sentence(old.words, tuple(sorted(mentions, key=_order)), old.document, old.line)
            self.found = True
        self._start_document()


def _order(mention: Mention) -> tuple[int, int]:
    return mention.start, -mention.end


# ---- GAP and plain text ---------------------------------------------------------------------------------


def read_gap(text: str, name: str = "corpus") -> Gap:
    """The rows of a GAP table (Webster et al. 2018). Raises CorpusError with the line of what does not fit."""
    heading, *lines = [line.removesuffix("\r").split("\t") for line in text.split("\n")]
    missing = [column for column in GAP_COLUMNS if column not in heading]
    if missing:
        raise CorpusError(f"{name}, line 1: the column {missing[0]} is missing.", f"Expected {', '.join(GAP_COLUMNS)}.")
    filled = [(number, line) for number, line in enumerate(lines, 2) if any(line)]
    for number, line in filled:
        if len(line) != len(heading):
            raise CorpusError(f"{name}, line {number}: {len(line)} columns.", f"The first line has {len(heading)}.")
    rows = [_gap_row(dict(zip(heading, line, strict=False)), number, name) for number, line in filled]
    if not rows:
        raise CorpusError(f"{name} holds no example.", "Expected a GAP table with a line an example.")
    return Gap(name, tuple(rows), _digest(text))


def _gap_row(row: dict[str, str], line: int, name: str) -> GapRow:
    try:
        said = {column: row[column] for column in GAP_COLUMNS}
        spans = [(said[c], int(said[f"{c}-offset"])) for c in ("Pronoun", "A", "B")]
        a, b = (_truth(said[f"{c}-coref"]) for c in ("A", "B"))
    except (KeyError, ValueError) as error:
        raise CorpusError(f"{name}, line {line}: {error} does not fit.", "Expected a row of a GAP table.") from error
    for form, at in spans:
        if said["Text"][at : at + len(form)] != form or at < 0:
            raise CorpusError(f"{name}, line {line}: “{form[:40]}” does not stand at character {at}.", "Mend the row.")
    return GapRow(said["ID"], said["Text"], spans[0], (*spans[1], a), (*spans[2], b))


def _truth(said: str) -> bool:
    if said.upper() not in ("TRUE", "FALSE"):
        raise ValueError(f"“{said[:20]}” (TRUE or FALSE)")
    return said.upper() == "TRUE"


def read_plain(text: str, name: str = "corpus") -> Corpus:
    """One sentence a line, words parted by blanks and punctuation; nothing is annotated. Raises CorpusError."""
    sentences = tuple(
        Sentence(tuple(Word(form) for form in _split(line)), (), "", number)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    )
    if not sentences:
        raise CorpusError(f"{name} holds no sentence.", "Expected one sentence a line.")
    return Corpus(name, sentences, _digest(text))


def _split(line: str) -> list[str]:
    """Words and punctuation marks; an apostrophe or hyphen between letters stays inside its word."""
    return re.findall(r"\w+(?:['’-]\w+)*|[^\w\s]", clean(line)) or [clean(line.strip())]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
