"""What every model is held to: transformers' own numbers on these sentences, and what is true of any tokens."""

from __future__ import annotations

from itertools import pairwise

from mha_viz.text import Token, TokenizedText

SENTENCE = "The animal didn't cross the street because it was too tired."
SECOND = "Zoë's café isn't far, is it?"
EQUAL = 1e-5


def check_text(text: TokenizedText) -> None:
    """What must hold for any text and any tokenizer."""
    typed = (text.text, text.pair)
    groups = text.groups
    assert [i for g in groups for i in g] == list(range(len(text)))
    for tokens in (text.tokens, text.by_words().tokens):
        for segment in (0, 1):
            spans = [(t.start, t.end) for t in tokens if t.segment == segment and t.start is not None]
            assert all(0 <= start < (end or 0) <= len(typed[segment]) for start, end in spans)
            assert [start for start, _ in spans] == sorted(start for start, _ in spans)
        assert all(t.text for t in tokens)
    words = [t.word for t in text.by_words().tokens if t.word is not None]
    assert words == list(range(len(words)))
    _check_words_are_apart(text.by_words().tokens)


def _check_words_are_apart(words: tuple[Token, ...]) -> None:
    for before, after in pairwise(words):
        if before.end is not None and after.start is not None and before.segment == after.segment:
            assert before.end <= after.start, (before, after)
