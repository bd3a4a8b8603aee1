"""Position, delimiters, entropy and the distance of heads, with numbers computed by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.analysis.distance import Distances, compute_divergences
from mha_viz.analysis.metrics import OFFSETS, POSITIONS, Patterns, compute_share, count_document_maxima
from mha_viz.analysis.reduce import Batch
from mha_viz.text import WordPieces
from tests import brute

LN2 = math.log(2)


def sentence_of(*names: str) -> WordPieces:
    """Pieces by their names, each a separate word except for "##…" and special tokens."""
    words: list[int | None] = []
    spans: list[tuple[int, int]] = []
    text, word = "", -1
    for name in names:
        if name in ("[CLS]", "[SEP]"):
            words.append(None)
            spans.append((0, 0))
            continue
        word += not name.startswith("##")
        text += "" if name.startswith("##") or not text else " "
        words.append(word)
        spans.append((len(text), len(text) + len(name.removeprefix("##"))))
        text += name.removeprefix("##")
    n = len(names)
    return WordPieces(tuple(text.split()), names, tuple(range(n)), (0,) * n, tuple(words), tuple(spans), (True,) * n)


def batch_of(weights: Any, *sentences: WordPieces) -> Batch:
    """``weights`` is [head, sentence, query, key]."""
    return Batch(np.array(weights, np.float32), sentences, tuple(range(len(sentences))))


def sums_of(*batches: Batch) -> Any:
    patterns = Patterns(len(batches[0].weights))
    for batch in batches:
        patterns.add(batch, Distances(len(batch.weights)).add(batch))
    return patterns.sums


def at(values: Any, offset: int) -> float:
    return float(values[..., OFFSETS.index(offset)].item())


CAT = sentence_of("[CLS]", "cat", ".", "[SEP]")
WEIGHTS = [
    [0.70, 0.10, 0.10, 0.10],
    [0.20, 0.50, 0.20, 0.10],
    [0.10, 0.60, 0.10, 0.20],
    [0.25, 0.25, 0.25, 0.25],
]


def test_maxima_are_counted_by_document() -> None:
    far = [[0.1, 0.1, 0.1, 0.7], [0.2, 0.2, 0.5, 0.1], [0.1, 0.6, 0.1, 0.2], [0.25] * 4]  # next, previous
    same = [[0.1, 0.1, 0.1, 0.7], [0.2, 0.5, 0.2, 0.1], [0.1, 0.1, 0.6, 0.2], [0.25] * 4]
    batch = batch_of([[far, same, far], [same, same, same]], CAT, CAT, CAT)
    sums = count_document_maxima(batch, [1, 0, 1], 3)
    assert sums["maxima"][:, 0].tolist() == [[0, 2, 0], [2, 0, 2], [0, 0, 0]]  # previous, same, next
    assert sums["maxima"][:, 1].tolist() == [[0, 2, 0], [0, 4, 0], [0, 0, 0]]
    assert sums["rows"].tolist() == [[1, 2, 1], [2, 4, 2], [0, 0, 0]]
    whole = sums_of(batch)
    places = [OFFSETS.index(offset) for offset in POSITIONS]
    assert sums["maxima"].sum(0).tolist() == whole["maxima"][:, places].tolist()
    assert sums["rows"].sum(0).tolist() == whole["maxima_rows"][places].tolist()


# ---- Position --------------------------------------------------------------------------------------------------------


def test_mass_at_an_offset_is_the_mean_over_the_rows_that_have_it() -> None:
    sums = sums_of(batch_of([[WEIGHTS]], CAT))
    mass = compute_share(sums["mass"], sums["mass_rows"])
    assert at(mass, -1) == pytest.approx((0.2 + 0.6) / 2)  # the rows of cat and "."; [CLS] is a place as others
    assert at(mass, 0) == pytest.approx((0.5 + 0.1) / 2)
    assert at(mass, 1) == pytest.approx((0.2 + 0.2) / 2)
    assert at(mass, -2) == pytest.approx(0.1)  # only "." has a place two before it
    assert at(mass, 2) == pytest.approx(0.1)  # only cat has one two after it
    assert all(math.isnan(at(mass, offset)) for offset in (-5, -4, -3, 3, 4, 5))


def test_share_of_maxima_leaves_special_columns_out() -> None:
    sums = sums_of(batch_of([[WEIGHTS]], CAT))
    shares = compute_share(sums["maxima"], sums["maxima_rows"])
    assert at(shares, 0) == 0.5  # cat looks at itself (0.5 of 0.5 and 0.2), "." at cat
    assert at(shares, -1) == 1  # of cat and "." only "." has an ordinary token before it, and looks at it
    assert at(shares, 1) == 0  # only cat has an ordinary token after it
    assert math.isnan(at(shares, 2))
    assert math.isnan(at(shares, -2))


def test_of_equal_maxima_the_first_counts() -> None:
    row = [0.2, 0.4, 0.4, 0.0]
    sums = sums_of(batch_of([[[row] * 4]], CAT))
    assert at(sums["maxima"], 0) == 1  # cat at itself, not at "."
    assert at(sums["maxima"], -1) == 1  # "." at cat, not at itself
    assert at(sums["maxima"], 1) == 0


def test_rows_are_pooled_over_sentences_not_means_of_sentences() -> None:
    long = sentence_of("[CLS]", "a", "b", "c", "d", "[SEP]")
    previous = np.eye(6, k=-1)
    previous[0, 0] = 1
    sums = sums_of(batch_of([[WEIGHTS]], CAT), batch_of([[previous]], long))
    assert at(compute_share(sums["mass"], sums["mass_rows"]), -1) == pytest.approx((0.2 + 0.6 + 4) / 6)
    # rows with an ordinary token before them: "." of the first; b, c, d of the second
    assert at(compute_share(sums["maxima"], sums["maxima_rows"]), -1) == 1
    assert at(sums["maxima_rows"], -1) == 4


def test_what_a_head_would_have_that_attends_evenly() -> None:
    sums = sums_of(batch_of([[WEIGHTS]], CAT))
    assert at(compute_share(sums["even_mass"], sums["mass_rows"]), -1) == pytest.approx(1 / 4)
    assert compute_share(sums["even_delimiter"], sums["rows"]) == pytest.approx([1 / 4] * 3)


def test_a_model_without_special_tokens() -> None:
    sums = sums_of(batch_of([[[[1, 0], [0.75, 0.25]]]], sentence_of("a", "b")))
    mass = compute_share(sums["mass"], sums["mass_rows"])
    assert (at(mass, 0), at(mass, -1)) == (pytest.approx(1.25 / 2), 0.75)
    assert at(compute_share(sums["maxima"], sums["maxima_rows"]), -1) == 1
    assert sums["delimiter"].tolist() == [[0, 0, 0]]


# ---- Delimiters ------------------------------------------------------------------------------------------------------


def test_delimiters_are_the_mean_over_all_rows() -> None:
    sums = sums_of(batch_of([[WEIGHTS]], CAT))
    # columns of [CLS], of [SEP] and of "."; four rows, the special ones too
    expected = [(0.7 + 0.2 + 0.1 + 0.25) / 4, (0.1 + 0.1 + 0.2 + 0.25) / 4, (0.1 + 0.2 + 0.1 + 0.25) / 4]
    assert compute_share(sums["delimiter"], sums["rows"])[0] == pytest.approx(expected)


def test_punctuation_is_what_has_no_other_character() -> None:
    assert sentence_of("[CLS]", "…", "##!", "$", "n't", "«", "[SEP]").punctuation == (
        *(False, True, True, False, False, True, False),  # "$" is a sign of currency, not of punctuation
    )


# ---- Entropy ---------------------------------------------------------------------------------------------------------


def test_entropy_over_rows_and_normalised_over_sentences() -> None:
    four = [[1, 0, 0, 0], [0.25] * 4, [0.5, 0, 0, 0.5], [0, 0, 1, 0]]  # 0, 2·ln 2, ln 2, 0
    two = [[0.5, 0.5], [0.5, 0.5]]  # ln 2 twice
    sums = sums_of(batch_of([[four]], CAT), batch_of([[two]], sentence_of("a", "b")))
    assert compute_share(sums["nats"], sums["rows"])[0] == pytest.approx(5 / 6 * LN2, abs=1e-6)
    # a mean of 3/4·ln 2 in the first, whose ln T is 2·ln 2; ln 2 of ln 2 in the second
    assert compute_share(sums["normalised"], sums["sentences"])[0] == pytest.approx((3 / 8 + 1) / 2, abs=1e-6)


def test_a_text_of_one_piece_has_no_normalised_entropy() -> None:
    sums = sums_of(batch_of([[[[1.0]]]], sentence_of("a")))
    assert (int(sums["rows"]), int(sums["sentences"])) == (1, 0)
    assert np.isfinite(sums["nats"]).all()


# ---- Distance --------------------------------------------------------------------------------------------------------


def test_the_distance_of_heads_is_the_mean_over_all_rows_of_all_sentences() -> None:
    itself, right, even = [[1, 0], [0, 1]], [[0, 1], [0, 1]], [[0.5, 0.5], [0.5, 0.5]]
    same = [[1 / 3] * 3] * 3
    distances = Distances(3)
    distances.add(batch_of([[itself], [right], [even]], sentence_of("a", "b")))
    distances.add(batch_of([[same], [same], [same]], sentence_of("a", "b", "c")))
    # (1, 0) and (0, 1) are ln 2 apart; (1, 0) and (½, ½): the entropy of (¾, ¼) less half of ln 2
    half = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25)) - LN2 / 2
    expected = [[0, LN2, 2 * half], [LN2, 0, 2 * half], [2 * half, 2 * half, 0]]  # added over five rows
    assert compute_divergences(distances.sums) == pytest.approx(np.array(expected) / 5, abs=1e-6)


# ---- Compared with plain loops ---------------------------------------------------------------------------------------


@st.composite
def corpora(draw: st.DrawFn) -> list[tuple[WordPieces, Any]]:
    """A few sentences with the weights [head, query, key] of two heads; eighths, so that ties are common."""
    batches = []
    for _ in range(draw(st.integers(1, 4))):
        middle = draw(st.lists(st.sampled_from(["a", "##b", ",", "##…"]), min_size=1, max_size=7))
        names = ("[CLS]", "w", *middle, "[SEP]")
        size = len(names)
        counts = np.random.default_rng(draw(st.integers(0, 10**6))).multinomial(8, np.ones(size) / size, (2, size))
        batches.append((sentence_of(*names), counts / 8))
    return batches


def readings_of(corpus: Sequence[tuple[WordPieces, Any]]) -> list[brute.Reading]:
    return [
        brute.Reading(
            weights,
            list(text.words),
            ["cls", *[""] * (len(text) - 2), "sep"],
            [p.name.strip("#") in ",…" for p in text.pieces],
            [],
        )
        for text, weights in corpus
    ]


@given(corpora())
def test_all_patterns_are_those_of_the_plain_loops(corpus: list[tuple[WordPieces, Any]]) -> None:
    batches = [batch_of(weights[:, None], text) for text, weights in corpus]
    sums, readings = sums_of(*batches), readings_of(corpus)
    mass, maxima = compute_share(sums["mass"], sums["mass_rows"]), compute_share(sums["maxima"], sums["maxima_rows"])
    for (head, offset), expected in brute.measure_position(readings).items():
        assert [at(mass[head], offset), at(maxima[head], offset)] == pytest.approx(expected, abs=1e-9, nan_ok=True)
    assert compute_share(sums["delimiter"], sums["rows"]) == pytest.approx(
        np.array(brute.measure_delimiter(readings)), abs=1e-9
    )
    nats, normalised = compute_share(sums["nats"], sums["rows"]), compute_share(sums["normalised"], sums["sentences"])
    assert np.stack([nats, normalised], axis=1) == pytest.approx(np.array(brute.measure_entropy(readings)), abs=1e-6)
    distances = Distances(2)
    for batch in batches:
        distances.add(batch)
    assert compute_divergences(distances.sums)[0, 1] == pytest.approx(brute.measure_distance(readings)[0, 1], abs=1e-6)
