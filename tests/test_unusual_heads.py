"""What is unusual in a reading: each kind of finding in a text where it must appear, and where it must not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mha_viz.analysis.findings import Finding
from mha_viz.analysis.profile import read_profile
from mha_viz.analysis.unusual_heads import (
    KINDS,
    MAX_FINDINGS,
    MIN_BITS,
    MIN_DISTANCE,
    MIN_LINK,
    Habits,
    UnusualFinding,
    WordReading,
    find_unusual_heads,
    load_bundled_habits,
    read_habits,
)
from mha_viz.app.service.caches import load_first_reading
from mha_viz.attention import Attention, Head
from mha_viz.errors import CorpusError
from mha_viz.files.assets import asset_path
from mha_viz.text import from_names

WORDS = ("[CLS]", "the", "dog", "barked", "because", "it", "slept", ".", "[SEP]")
N, AT = len(WORDS), 2  # AT: the place of the head that differs from the others
Rows = Callable[[np.ndarray], None]


def read(change: Rows | None = None, words: tuple[str, ...] = WORDS, base: str = "diffuse") -> Attention:
    """Five heads that look alike and nowhere in particular, of which ``change`` alters one."""
    n = len(words)
    weights = np.full((1, 5, n, n), 1 / n)
    if base == "diffuse":  # most of it on [CLS], as many heads of real models
        weights = np.full((1, 5, n, n), 0.1 / n)
        weights[..., 0] += 0.9
    if change:
        change(weights[0, AT])
    text = from_names(words)
    return Attention("tiny", "", text, (weights / weights.sum(-1, keepdims=True)).astype(np.float32))


def looks(offset: int) -> Rows:
    def change(rows: np.ndarray) -> None:
        for i in range(len(rows)):
            if 0 <= i + offset < len(rows):
                rows[i] = 0.01
                rows[i, i + offset] = 5

    return change


def link_from(query: int, key: int) -> Rows:
    def change(rows: np.ndarray) -> None:
        rows[query, key] = 9

    return change


link = link_from(6, 2)  # slept → dog


def column(at: int) -> Rows:
    def change(rows: np.ndarray) -> None:
        rows[:, at] = 9

    return change


def even(rows: np.ndarray) -> None:
    rows[:] = 1


def role(name: str, detail: str = "") -> Finding:
    return Finding(Head(0, AT), name, detail, 0.9, 0.1, 0.8, 500, 0.8, 0.95)


APPEARS: dict[str, tuple[Rows, str, tuple[Finding, ...]]] = {
    "pronoun": (link_from(5, 2), "L0H2 links “it” to “dog” (0.90).", (role("coreference"),)),
    "back": (looks(-1), "L0H2 looks one token back (0.98).", ()),
    "ahead": (looks(1), "L0H2 looks one token ahead (0.98).", ()),
    "link": (link, "L0H2 links “slept” to “dog” (0.90).", ()),
    "mark": (column(7), "L0H2 looks at “.” from everywhere (0.90).", ()),
    "even": (even, "L0H2 looks at all words equally.", ()),
    "idle": (column(0), "Most of L0H2’s attention goes to [CLS], as when it finds nothing to link.", (role("syntax"),)),
}


def said(found: tuple[UnusualFinding, ...]) -> dict[str, str]:
    return {one.kind: "".join(one.words) for one in found}


def test_every_kind_is_tried() -> None:
    assert set(APPEARS) == set(KINDS)


@pytest.mark.parametrize("kind", APPEARS)
def test_a_head_that_differs_is_named_with_what_it_does(kind: str) -> None:
    change, words, roles = APPEARS[kind]
    found = find_unusual_heads(read(change), roles)
    assert (found[0].kind, "".join(found[0].words)) == (kind, words)
    assert found[0].head == Head(0, AT)
    assert found[0].surprise > 0


@pytest.mark.parametrize("kind", APPEARS)
def test_a_kind_that_quotes_the_text_declares_it_and_is_not_said_where_an_answer_is_hidden(kind: str) -> None:
    change, words, roles = APPEARS[kind]
    attention = read(change)
    (found,) = (one for one in find_unusual_heads(attention, roles) if one.kind == kind)
    special = {token.text for token in attention.text.tokens if token.special}
    assert KINDS[kind].names_words == any(part not in special for part in found.words[1::2])
    assert (words in said(find_unusual_heads(attention, roles, hides_words=True)).values()) != KINDS[kind].names_words


def test_the_token_that_is_held_shows_it() -> None:
    (found,) = (one for one in find_unusual_heads(read(link)) if one.kind == "link")
    assert (found.query, found.key) == (6, 2)
    assert found.words[1::2] == ("slept", "dog")  # quoted from the text
    (back,) = (one for one in find_unusual_heads(read(looks(-1))) if one.kind == "back")
    assert back.key is None
    assert WORDS[back.query - 1] not in ("[CLS]", "[SEP]")


@pytest.mark.parametrize("base", ["even", "diffuse"])
def test_nothing_is_said_where_all_heads_are_alike(base: str) -> None:
    assert find_unusual_heads(read(base=base)) == ()


@pytest.mark.parametrize("kind", ["back", "ahead", "even", "mark"])
def test_what_all_heads_do_is_not_unusual(kind: str) -> None:
    attention = read(APPEARS[kind][0])
    every = np.repeat(attention.weights[:, AT : AT + 1], 5, axis=1)
    assert kind not in said(find_unusual_heads(Attention("tiny", "", attention.text, every)))


@pytest.mark.parametrize("words", [("[CLS]", "[SEP]"), ("[CLS]", "Hello", "[SEP]"), ("[CLS]", "It", "rains", "[SEP]")])
@pytest.mark.parametrize("kind", ["back", "ahead", "even"])
def test_a_habit_is_not_told_from_two_words(words: tuple[str, ...], kind: str) -> None:
    assert find_unusual_heads(read(APPEARS[kind][0], words)) == ()


def test_a_habit_is_not_a_link() -> None:
    assert "link" not in said(find_unusual_heads(read(looks(-2))))
    assert "link" not in said(find_unusual_heads(read(column(2))))  # every word looks at "dog"


def test_the_surprise_of_every_link_is_that_of_plain_loops() -> None:
    words = ("[CLS]", *"bcdefgh", "[SEP]")
    weights = np.random.default_rng(3).dirichlet(np.full(len(words), 0.15), (2, 3, len(words))).astype(np.float32)
    reading, plain = Attention("tiny", "", from_names(words), weights), range(1, 8)
    expected = {}
    for layer, head in np.ndindex(2, 3):
        rows = weights[layer, head].astype(float)
        for i in plain:
            for j in (j for j in plain if abs(i - j) >= MIN_DISTANCE and rows[i, j] >= MIN_LINK):
                others = [rows[other, j] for other in plain if other != i]
                along = [rows[o, o + j - i] for o in plain if o != i and o + j - i in plain] or [0.0]
                usual = max(np.mean(weights[..., i, j], dtype=float), 1 / len(words))
                share = max(usual, float(np.mean(others)), float(np.mean(along)))
                expected[Head(layer, head), i, j] = max(0.0, rows[i, j] * np.log2(rows[i, j] / share))
    kind = KINDS["link"]
    surprises = {
        (one.head, one.query, one.key): one.surprise
        for one in kind.find(WordReading(reading, {}), "link", kind.min_share)
    }
    assert len(expected) > len(surprises) > 8
    assert surprises == pytest.approx({link: bits for link, bits in expected.items() if bits >= MIN_BITS})


def test_a_head_that_is_known_for_nothing_or_does_what_it_is_known_for_is_not_idle() -> None:
    assert "idle" not in said(find_unusual_heads(read(column(0))))
    assert "idle" not in said(find_unusual_heads(read(link), (role("coreference"),)))


# What the head that differs does in most texts, if it is what it does here.
HABIT: dict[str, tuple[str | int, float]] = {
    "back": (-1, 0.95),
    "ahead": (1, 0.95),
    "link": (-4, 0.85),
    "mark": ("punctuation", 0.85),
    "even": ("normalised", 0.95),
    "idle": ("cls", 0.9),
}


def habit(what: str | int, place: int, share: float) -> Habits:
    return {what: np.eye(5)[place] * share}


@pytest.mark.parametrize("kind", HABIT)
def test_what_a_head_does_in_every_text_is_not_said(kind: str) -> None:
    change, _, roles = APPEARS[kind]
    what, share = HABIT[kind]
    assert kind not in said(find_unusual_heads(read(change), roles, None, habit(what, AT, share)))
    assert kind in said(find_unusual_heads(read(change), roles, None, habit(what, AT, share / 5)))
    assert kind in said(find_unusual_heads(read(change), roles, None, habit(what, AT + 1, share)))  # of another head


def test_more_than_usual_is_said_beside_the_usual() -> None:
    (found,) = find_unusual_heads(read(looks(-1)), (), None, habit(-1, AT, 0.3))
    assert "".join(found.words) == "L0H2 looks one token back (0.98, usually 0.30)."
    assert found.surprise == pytest.approx(found.value * np.log2(found.value / 0.3))


def test_words_of_the_text_stand_in_quotation_marks() -> None:
    words = ("[CLS]", "cat", "gave", "x", "cat", "y", ".", "[SEP]")
    (found,) = (one for one in find_unusual_heads(read(link_from(4, 2), words)) if one.kind == "link")
    assert "".join(found.words) == "L0H2 links “cat” to “gave” (0.90)."
    (again,) = (one for one in find_unusual_heads(read(link_from(4, 1), words)) if one.kind == "link")
    assert "".join(again.words) == "L0H2 links “cat” to another “cat” (0.90)."


# Links that are not said: from word to word of this text.
PLAIN = ("[CLS]", "to", "gave", "books", "for", "it", "slept", "rooms", ".", "[SEP]")


@pytest.mark.parametrize(
    ("query", "key", "is_said"),
    [
        (4, 1, False),
        (1, 4, False),
        (4, 2, True),
        (6, 1, True),
        (5, 2, False),
        (5, 7, False),
        (5, 3, True),
        (7, 5, True),
    ],
)
def test_two_function_words_are_no_finding_and_a_pronoun_is_linked_to_an_earlier_noun(
    query: int, key: int, is_said: bool
) -> None:
    found = [one for one in find_unusual_heads(read(link_from(query, key), PLAIN)) if one.kind == "link"]
    assert [(one.query, one.key) for one in found] == [(query, key)] * is_said


def test_a_word_that_was_read_as_unknown_is_no_end_of_a_finding() -> None:
    for at, kind in ((6, "link"), (2, "link"), (5, "pronoun"), (2, "pronoun"), (7, "mark")):
        change, _, roles = APPEARS[kind]
        known = read(change)
        tokens = [replace(token, known=i != at) for i, token in enumerate(known.text.tokens)]
        unknown = Attention("tiny", "", replace(known.text, tokens=tuple(tokens)), known.weights)
        assert kind in said(find_unusual_heads(known, roles))
        assert kind not in said(find_unusual_heads(unknown, roles))


def test_what_happens_between_the_pieces_of_a_word_is_not_said() -> None:
    words = ("[CLS]", "un", "##be", "##lie", "##va", "##ble", "dogs", "[SEP]")
    assert "back" not in said(find_unusual_heads(read(looks(-1), words)))
    assert "ahead" not in said(find_unusual_heads(read(looks(1), words)))


def test_offsets_count_pieces() -> None:
    words = ("[CLS]", "un", "##happy", "big", "##gest", "dog", "##s", "slept", "[SEP]")  # most look within their word
    (found,) = (one for one in find_unusual_heads(read(looks(-1), words)) if one.kind == "back")
    assert "".join(found.words) == "L0H2 looks one token back (0.98)."
    assert found.query in (3, 5, 7)


def test_what_a_pronoun_refers_to_comes_first_also_where_it_is_weak_and_only_from_heads_known_for_it() -> None:
    def weak(rows: np.ndarray) -> None:
        rows[6, 2] = 9
        rows[5] = 1
        rows[5, 2] = 2.5

    attention, roles = read(weak), (role("coreference")._replace(status="established"),)
    first, second = find_unusual_heads(attention, roles)[0], find_unusual_heads(attention)[0]
    assert (first.kind, "".join(first.words)) == ("pronoun", "L0H2 links “it” to “dog”, 0.24 (weak).")
    assert (second.kind, second.query) == ("link", 6)
    assert all(one.kind != "pronoun" for one in find_unusual_heads(attention, (role("syntax", "nsubj dep_to_head"),)))
    assert all(one.kind != "pronoun" for one in find_unusual_heads(read(column(0)), roles))
    before = ("[CLS]", "it", "barked", "because", "the", "dog", "slept", ".", "[SEP]")
    assert "pronoun" not in said(find_unusual_heads(read(link_from(1, 5), before), roles))


@pytest.mark.parametrize(("share", "is_said"), [(0.045, False), (0.055, True)])
def test_a_pronoun_has_no_link_below_what_a_drawn_link_needs_for_a_number(share: float, is_said: bool) -> None:
    def faint(rows: np.ndarray) -> None:
        rows[5] = 0
        rows[5, 2], rows[5, 0] = share, 1 - share

    assert ("pronoun" in said(find_unusual_heads(read(faint), (role("coreference"),)))) == is_said


def test_a_capital_at_the_beginning_of_each_sentence_makes_no_name() -> None:
    words = ("[CLS]", "Suddenly", "it", "broke", "[SEP]", "Quickly", "it", "fell", "[SEP]")
    assert not WordReading(read(None, words), {}).nouns.any()
    assert WordReading(read(None, ("[CLS]", "Anna", "saw", "Quickly", "[SEP]")), {}).nouns.tolist() == [0, 1, 0, 1, 0]


def test_programs_have_no_pronouns() -> None:
    for text, is_code in (("dog = it", True), ("the dog , it", False)):
        words = ("[CLS]", *text.split(), "[SEP]")
        assert WordReading(read(None, words), {}).pronouns.any() != is_code


@pytest.mark.parametrize(("text", "is_said"), [("it was Hund und Mann", True), ("der Hund war her und müde", False)])
def test_pronouns_are_those_of_english(text: str, is_said: bool) -> None:
    words = ("[CLS]", "Der" if not is_said else "The", "dog", *text.split(), "[SEP]")
    found = said(find_unusual_heads(read(None, words, "even"), (role("coreference"),)))
    assert ("pronoun" in found) == is_said


def test_two_links_are_of_two_heads_and_two_words() -> None:
    attention = read(link)
    weights = np.repeat(attention.weights[:, :1], 5, axis=1)
    for head, query, key in ((1, 6, 2), (2, 6, 1), (3, 2, 6), (4, 3, 1)):  # the first two from the same word
        weights[0, head, query] = np.eye(N, dtype=np.float32)[key] * np.float32(0.9 - head / 50) + np.float32(0.01)
    weights /= weights.sum(-1, keepdims=True)
    links = [one for one in find_unusual_heads(Attention("tiny", "", attention.text, weights)) if one.kind == "link"]
    assert [(one.head.head, one.query) for one in links] == [(1, 6), (3, 2)]


def test_habits_are_those_of_the_profile() -> None:
    habits = load_bundled_habits("minilm")
    folder = asset_path("profiles") / "minilm" / "ewt"
    profile = read_profile(folder)
    rows = profile.tables["position"].query("layer == 0 and head == 2 and offset == -1")
    assert habits[-1][Head(0, 2).place(12)] == pytest.approx(float(rows["mass"].iloc[0]))
    assert habits[-1][Head(0, 2).place(12)] > 0.99
    even = profile.tables["entropy"].query("layer == 3 and head == 11")
    assert habits["normalised"][Head(3, 11).place(12)] == pytest.approx(float(even["normalised"].iloc[0]))
    assert load_bundled_habits("toy")
    assert load_bundled_habits("bert") == {}


def test_a_damaged_profile_has_no_habits(tmp_path: Path) -> None:
    assert read_habits(tmp_path) == {}
    for table in ("position", "delimiter", "entropy"):
        (tmp_path / f"{table}.csv").write_text("layer,head\n0,1,2\n")
    with pytest.raises(CorpusError, match="holds no averages"):
        read_habits(tmp_path)


def test_nothing_is_said_of_other_quantities_or_of_long_texts() -> None:
    attention = read(link)
    assert find_unusual_heads(attention)
    norms = Attention("tiny", "", attention.text, attention.weights, quantity="norm")
    assert find_unusual_heads(norms) == ()
    assert find_unusual_heads(read(looks(-1), ("[CLS]", *["word"] * 200, "[SEP]"))) == ()


def test_of_a_long_text_only_what_a_pronoun_refers_to_is_said() -> None:
    words = ("[CLS]", "the", "dog", *["word"] * 200, "and", "it", "slept", "[SEP]")
    (found,) = find_unusual_heads(read(link_from(204, 2), words), (role("coreference"),))
    assert "".join(found.words).startswith("L0H2 links “it” to “dog” (0.")


def test_the_first_example_has_the_link_that_the_page_opens_with() -> None:
    findings = find_unusual_heads(load_first_reading(), (), None, load_bundled_habits("minilm"))
    assert 1 < len(findings) <= MAX_FINDINGS
    assert len({one.head for one in findings}) == len({one.query for one in findings}) == len(findings)
    assert "".join(findings[0].words).startswith("L3H1 links “it” to “animal”")
