"""Recorded cases of roles, joined with their sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mha_viz.analysis.coreference import make_chunk
from mha_viz.attention import Head
from mha_viz.corpus.treebank import Sentence

if TYPE_CHECKING:
    import pandas as pd

    from mha_viz.corpus.excerpts import SentenceSpan

NO_SENTENCES = (
    "This profile contains no sentences of {corpus}, for example because its licence does not allow that. To get "
    "sentences, measure a corpus of your own: mha-viz profile CORPUS --out DIR, or mha_viz.profile(CORPUS)."
)
COLUMNS = ("role", "detail", "kind", "right", "attention", "word", "answer", "gold", "sentence")


class Example(NamedTuple):
    """A recorded case: in ``sentence``, the largest weight of ``head`` for ``word`` is on ``answer``.

    For "head_to_dep", ``answer`` is the word that attends most to ``word``. −1 means a special token before the first
    word, the number of words a special token after the last. ``kind`` is "right", "wrong" or "random".
    """

    head: Head
    role: str
    detail: str
    kind: str
    sentence: Sentence
    word: int
    answer: int
    weight: float
    right: bool

    def form(self, word: int) -> str:
        """Return the text of a word."""
        forms = self.sentence.forms
        return "[CLS]" if word < 0 else "[SEP]" if word >= len(forms) else forms[word]

    @property
    def gold(self) -> tuple[int, ...]:
        """The right answers of syntax and coreference, if the annotation of the sentence has them."""
        if self.role == "coreference":
            anaphors = make_chunk([self.sentence], [0]).anaphors
            return next((tuple(sorted(a.right)) for a in anaphors if a.word == self.word), ())
        if self.role != "syntax":
            return ()
        relation, direction = self.detail.split()
        if direction == "head_row":
            return tuple(
                number
                for number, word in enumerate(self.sentence.words)
                if word.head == self.word and relation in (word.relation, word.base)
            )
        head = self.sentence.words[self.word].head
        return () if head is None else (head,)


def list_spans(table: pd.DataFrame) -> list[SentenceSpan]:
    """Return the texts in a table ``evidence``, in order, as (first, last) numbers of their sentences."""
    return sorted({(int(first), int(last)) for first, last in zip(table["first"], table["last"], strict=True)})


def list_examples(table: pd.DataFrame, sentences: Mapping[SentenceSpan, Sentence]) -> tuple[Example, ...]:
    """Return the cases of a table ``evidence`` whose sentences are available and long enough."""
    cells = (dict(zip(table.columns, line, strict=True)) for line in table.itertuples(index=False, name=None))
    cases = (make_example(case, sentences.get((int(case["first"]), int(case["last"])))) for case in cells)
    return tuple(example for example in cases if example is not None)


def make_example(case: Mapping[str, Any], sentence: Sentence | None) -> Example | None:
    """Return a row of the table with its sentence; None if the sentence is missing or too short."""
    word, answer = int(case["word"]), int(case["answer"])
    if sentence is None or not 0 <= word < len(sentence.words):
        return None
    head, weight = Head(int(case["layer"]), int(case["head"])), float(case["attention"])
    role, detail, kind = (str(case[name]) for name in ("role", "detail", "kind"))
    return Example(head, role, detail, kind, sentence, word, answer, weight, bool(case["right"]))


def make_examples_table(examples: Sequence[Example]) -> pd.DataFrame:
    """Return a table with one row per example and the columns COLUMNS.

    Words are given as text. Several right answers are separated by " / ".
    """
    import pandas as pd

    rows: list[tuple[Any, ...]] = []
    for example in examples:
        words = example.form(example.word), example.form(example.answer), " / ".join(map(example.form, example.gold))
        rows.append(
            (
                example.role,
                example.detail,
                example.kind,
                example.right,
                example.weight,
                *words,
                " ".join(example.sentence.forms),
            )
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))
