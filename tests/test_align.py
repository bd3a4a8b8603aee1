"""Which words of two texts correspond, for examples by hand and for random texts."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mha_viz.text import Alignment, Token, TokenizedText, align
from tests import hostile

WORDS = st.lists(st.sampled_from(["the", "cat", "The", "sat", "on", "mat", "."]), max_size=30)


def text(
    words: list[str], special: tuple[str, str] | None = ("[CLS]", "[SEP]"), pair: list[str] | None = None
) -> TokenizedText:
    """Words separated by single spaces, each one piece, between special tokens, and optionally a second sentence."""
    tokens = [Token(special[0], None, 0, None, None)] if special else []
    count = 0
    for segment, sentence in enumerate((words, pair or [])):
        at = 0
        for word in sentence:
            tokens.append(Token(word, count, segment, at, at + len(word)))
            at, count = at + len(word) + 1, count + 1
        if special and sentence:
            tokens.append(Token(special[1], None, segment, None, None))
    return TokenizedText(" ".join(words), " ".join(pair or []), tuple(tokens))


def cut(typed: str, *parts: tuple[str, int]) -> TokenizedText:
    """A text from (piece, number of its word), in order."""
    tokens, at = [], 0
    for part, word in parts:
        start = typed.index(part, at)
        at = start + len(part)
        tokens.append(Token(part, word, 0, start, at))
    return TokenizedText(typed, "", tuple(tokens))


def partners_in_words(a: TokenizedText, b: TokenizedText, of: tuple[int | None, ...]) -> list[tuple[str, str | None]]:
    """Pairs of words instead of numbers."""
    first, second = a.by_words().tokens, b.by_words().tokens
    return [(t.text, None if j is None else second[j].text) for t, j in zip(first, of, strict=True)]


def test_one_word_replaced_is_in_its_place_and_not_the_same() -> None:
    a, b = text(["it", "was", "too", "tired", "."]), text(["it", "was", "too", "wide", "."])
    alignment = align(a, b)
    assert alignment.matches == (0, 1, 2, 3, None, 5, 6)
    assert alignment.pairs == (0, 1, 2, 3, 4, 5, 6)


def test_words_that_came_in_have_no_place() -> None:
    a, b = text(["the", "dog", "barked"]), text(["the", "old", "dog", "barked", "loudly"])
    assert align(a, b).matches == align(a, b).pairs == (0, 1, 3, 4, 6)
    back = align(b, a)
    assert back.matches == back.pairs == (0, 1, None, 2, 3, None, 4)


def test_runs_of_another_length_have_no_place() -> None:
    a, b = text(["a", "red", "car", "stopped"]), text(["a", "very", "old", "bus", "stopped"])
    assert align(a, b).pairs == (0, 1, None, None, 5, 6)


def test_capital_letters_do_not_part_words() -> None:
    assert align(text(["The", "cat"]), text(["the", "CAT", "sat"])).matches == (0, 1, 2, 4)


def test_repeated_words_keep_their_order() -> None:
    a, b = text(["the", "cat", "and", "the", "dog"]), text(["the", "dog"])
    partners = [theirs for _, theirs in partners_in_words(a, b, align(a, b).matches)]
    assert partners == ["[CLS]", "the", None, None, None, "dog", "[SEP]"]


def test_special_tokens_of_two_models_stand_for_each_other_and_for_no_word() -> None:
    a, b = text(["cat"], ("[CLS]", "[SEP]")), text(["cat"], ("<s>", "</s>"))
    assert align(a, b) == Alignment((0, 1, 2), (0, 1, 2))
    without = text(["a", "cat"], special=None)
    assert align(without, text(["cat"])).pairs == (None, 1)  # "a" is not aligned with [CLS]
    assert align(text(["cat"]), without).pairs == (None, 1, None)


def test_one_text_cut_by_two_tokenizers_is_aligned_by_characters() -> None:
    typed = "didn't sleep"
    a = cut(typed, ("didn", 0), ("'", 0), ("t", 0), ("sleep", 1))
    b = cut(typed, ("did", 0), ("n't", 1), ("sl", 2), ("eep", 2))
    assert partners_in_words(a, b, align(a, b).matches) == [("didn't", "did"), ("sleep", "sleep")]
    assert partners_in_words(b, a, align(b, a).matches) == [("did", "didn't"), ("n't", "didn't"), ("sleep", "sleep")]


def test_what_one_model_cut_away_stands_for_nothing() -> None:
    typed = "one two three"
    whole, short = cut(typed, ("one", 0), ("two", 1), ("three", 2)), cut(typed, ("one", 0), ("two", 1))
    assert align(whole, short) == Alignment((0, 1, None), (0, 1, None))


def test_the_two_sentences_of_a_pair_are_not_mixed_up_where_spans_are_the_same() -> None:
    a = text(["a", "b"], pair=["a", "b"])
    b = TokenizedText(a.text, a.pair, tuple(t for t in a.tokens if not t.special))
    assert align(a, b).matches == (None, 0, 1, None, 2, 3, None)


@given(WORDS, WORDS)
def test_partners_are_in_order_and_alike(a: list[str], b: list[str]) -> None:
    one, two = text(a), text(b)
    alignment = align(one, two)
    for of in alignment:
        assert len(of) == len(one)
        held = [j for j in of if j is not None]
        assert all(i < j for i, j in pairwise(held))
        assert all(0 <= j < len(two) for j in held)
    pairs = [(t, two.tokens[j]) for t, j in zip(one.tokens, alignment.matches, strict=True) if j is not None]
    assert all(t.special == u.special and (t.special or t.text.casefold() == u.text.casefold()) for t, u in pairs)
    assert all(p == s for s, p in zip(alignment.matches, alignment.pairs, strict=True) if s is not None)
    replaced = [(t, two.tokens[j]) for t, j in zip(one.tokens, alignment.pairs, strict=True) if j is not None]
    assert all(t.special == u.special for t, u in replaced)


@given(WORDS, WORDS)
def test_no_alignment_in_order_holds_more(a: list[str], b: list[str]) -> None:
    one, two = ["".join(w).casefold() for w in a], [w.casefold() for w in b]
    best = [[0] * (len(two) + 1) for _ in range(len(one) + 1)]  # the plain quadratic table
    for i, x in enumerate(one):
        for j, y in enumerate(two):
            best[i + 1][j + 1] = best[i][j] + 1 if x == y else max(best[i][j + 1], best[i + 1][j])
    alignment = align(text(a, special=None), text(b, special=None)).matches
    assert sum(j is not None for j in alignment) == best[-1][-1]


@given(WORDS)
def test_a_text_is_aligned_with_itself(words: list[str]) -> None:
    whole = tuple(range(len(text(words))))
    assert align(text(words), text(words)) == Alignment(whole, whole)
    shouted = text([w.upper() for w in words])
    assert align(text(words), shouted) == Alignment(whole, whole)


@given(WORDS, st.integers(0, 29), st.sampled_from(["wide", "brave"]))
def test_any_replaced_word_has_its_place(words: list[str], at: int, new: str) -> None:
    changed = [new if i == at else w for i, w in enumerate(words)]
    assert align(text(words), text(changed)).pairs == tuple(range(len(text(words))))


@given(st.text(alphabet="ab ", min_size=1, max_size=40), st.data())
def test_spans_of_the_same_text_meet(typed: str, data: st.DataObject) -> None:
    one, two = (_cut_at(typed, data.draw(st.sets(st.integers(1, max(1, len(typed) - 1))))) for _ in range(2))
    for t, j in zip(one.tokens, align(one, two).matches, strict=True):
        assert j is not None
        other = two.tokens[j]
        assert set(range(t.start or 0, t.end or 0)) & set(range(other.start or 0, other.end or 0))


def _cut_at(typed: str, places: set[int]) -> TokenizedText:
    ends = sorted({*(p for p in places if p < len(typed)), len(typed)})
    spans = zip([0, *ends], ends, strict=False)
    return TokenizedText(typed, "", tuple(Token(typed[s:e], i, 0, s, e) for i, (s, e) in enumerate(spans)))


def test_hostile_texts_are_aligned() -> None:
    for name, typed in hostile.TEXTS.items():
        words = typed[:2000].split() or ["a"]
        ours, theirs = text(words), text(["so", *words])
        assert align(ours, theirs).matches == (0, *range(2, len(theirs))), name
