"""Data types of annotated text: words with dependencies and coreference, and the examples of GAP."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

from mha_viz.errors import CorpusError

EMPTY_FORM = "_"  # the form of a word that the treebank withholds
CONLLU_COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")


class Word(NamedTuple):
    """One word with its gold annotation.

    ``head`` is the index of its head in the sentence, None for the root and for unannotated words. ``relation`` may
    have a subtype, as in "nmod:poss". ``features`` are as written in the file, such as "Number=Sing".
    """

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
    """Words in order. ``document`` names the document they belong to; ``line`` is their first line in the file."""

    words: tuple[Word, ...]
    mentions: tuple[Mention, ...] = ()
    document: str = ""
    line: int = 0

    @property
    def forms(self) -> tuple[str, ...]:
        """The words as text."""
        return tuple(word.form for word in self.words)


class Declarations(NamedTuple):
    """Declarations in comments, which hold for the lines that follow.

    ``columns`` names the columns in order (``# global.columns``). ``chain`` is the position of the chain among the
    fields of ``Entity=`` (``# global.Entity``), None if no field names it.
    """

    columns: tuple[str, ...] = CONLLU_COLUMNS
    chain: int | None = 0


class PartStart(NamedTuple):
    """Position of a part in its file.

    ``lines`` and ``sentences`` count what precedes the part, ``document`` is the document that it continues, and
    ``declarations`` are those made so far.
    """

    lines: int = 0
    sentences: int = 0
    document: str = ""
    declarations: Declarations = Declarations()


FILE_START = PartStart()


@dataclass(frozen=True, slots=True)
class Corpus:
    """Sentences in the order of their file. ``digest`` is the SHA-256 of the text.

    ``has_trees`` and ``has_chains`` say what is annotated. ``left_out`` describes each annotation that was left out.
    ``withheld_words`` counts the withheld words of sentences that are left out because all their words are “_”.
    """

    name: str
    sentences: tuple[Sentence, ...]
    digest: str
    has_trees: bool = False
    has_chains: bool = False
    left_out: tuple[str, ...] = ()
    withheld_words: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """The examples of a GAP table in order; ``digest`` is the SHA-256 of the text."""

    name: str
    rows: tuple[GapRow, ...]
    digest: str


class GapRow(NamedTuple):
    """One example of GAP: a pronoun and two names, with character offsets, and whether the pronoun refers to each."""

    id: str
    text: str
    pronoun: tuple[str, int]
    a: tuple[str, int, bool]
    b: tuple[str, int, bool]


def count_empty_forms(corpus: Corpus) -> tuple[int, int]:
    """Return the number of withheld words (“_”) and the number of all words.

    Both counts include sentences that are left out because all their words are withheld.
    """
    forms = [word.form for sentence in corpus.sentences for word in sentence.words]
    return forms.count(EMPTY_FORM) + corpus.withheld_words, len(forms) + corpus.withheld_words


def check_withheld_words(name: str, empty: int, words: int) -> None:
    """Raise CorpusError for a treebank that withholds more than half of its words."""
    if 2 * empty > words:
        raise CorpusError(
            f"{name} has no text: {empty:,} of its {words:,} words are “_”.",
            "Such a treebank is published without its words, and with a script that adds them: run it first.",
        )


def digest_text(text: str) -> str:
    """Return the SHA-256 of a corpus's text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
