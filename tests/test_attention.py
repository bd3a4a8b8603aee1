"""The data type: what it refuses, that it cannot be changed, and its sums, computed by hand."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from mha_viz.attention import Attention, Head, Weights
from mha_viz.errors import EmptyText, ShapeError, UnknownHead
from mha_viz.model_names import shorten_name
from mha_viz.text import Token, TokenizedText
from mha_viz.view.quantities import QUANTITIES

# "[CLS] un ##kind dog [SEP]": a word of two pieces, a word of one, two special tokens.
TOKENS = (
    Token("[CLS]", None, 0, None, None),
    Token("un", 0, 0, 0, 2),
    Token("kind", 0, 0, 2, 6),
    Token("dog", 1, 0, 7, 10),
    Token("[SEP]", None, 0, None, None),
)
TEXT = TokenizedText("unkind dog", "", TOKENS)
MATRIX = [
    [0.2, 0.2, 0.2, 0.2, 0.2],
    [0.1, 0.2, 0.3, 0.3, 0.1],
    [0.3, 0.1, 0.1, 0.1, 0.4],
    [0.5, 0.1, 0.2, 0.0, 0.2],
    [0.6, 0.0, 0.0, 0.0, 0.4],
]


def attention(matrix: object = MATRIX, text: TokenizedText = TEXT) -> Attention:
    """One layer, one head."""
    return Attention("model", "r1", text, np.array([[matrix]], np.float32))


# ---- checks at birth ------------------------------------------------------------------------------------------------


def test_what_it_says_of_itself() -> None:
    one = Attention("model", "r1", TEXT, np.full((2, 3, 5, 5), 0.2, np.float32))
    assert (one.layers, one.heads) == (2, 3)
    assert one.tokens == ("[CLS]", "un", "kind", "dog", "[SEP]")
    assert repr(one) == "Attention(model, 2 layers × 3 heads, 5 tokens)"


@pytest.mark.parametrize("shape", [(5, 5), (1, 5, 5), (1, 1, 5, 4), (0, 1, 5, 5), (1, 1, 0, 0), (1, 1, 1, 5, 5)])
def test_a_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="shape"):
        Attention("model", "", TEXT, np.full(shape, 0.2, np.float32))


def test_more_tokens_than_weights_are_refused() -> None:
    with pytest.raises(ShapeError, match="4 tokens, the text has 5"):
        Attention("model", "", TEXT, np.full((1, 1, 4, 4), 0.25, np.float32))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_a_number_is_refused(bad: float) -> None:
    with pytest.raises(ShapeError, match="not numbers"):
        attention([[bad, *row[1:]] for row in MATRIX])


@pytest.mark.parametrize(("error", "fits"), [(0.0009, True), (0.0011, False), (-0.0011, False)])
def test_rows_must_sum_to_one_within_a_thousandth(error: float, fits: bool) -> None:
    off = [row[:] for row in MATRIX]
    off[2][2] += error
    if fits:
        attention(off)
    else:
        with pytest.raises(ShapeError, match="sums to"):
            attention(off)


def test_hidden_must_fit() -> None:
    with pytest.raises(ShapeError, match="hidden"):
        Attention("model", "", TEXT, np.array([[MATRIX]], np.float32), np.zeros((1, 1, 4), np.float32))


# ---- read-only ------------------------------------------------------------------------------------------------------


def test_a_copy_is_made_only_of_what_could_still_be_written() -> None:
    writable = np.array([[MATRIX]], np.float32)
    one = Attention("model", "", TEXT, writable)
    writable[0, 0, 0, 0] = 9
    assert one.weights[0, 0, 0, 0] == np.float32(0.2)
    frozen = np.array([[MATRIX]], np.float32)
    frozen.flags.writeable = False
    assert Attention("model", "", TEXT, frozen).weights is frozen


@pytest.mark.parametrize("again", [lambda a: a, lambda a: pickle.loads(pickle.dumps(a)), Attention.by_words])
def test_read_only_also_after_pickling(again: object) -> None:
    assert callable(again)
    one: Attention = again(attention())
    for array in (one.weights, one.hidden, one[Head(0, 0)]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_pickling_keeps_everything() -> None:
    one = attention().without_special()
    other: Attention = pickle.loads(pickle.dumps(one))
    assert (other.model, other.revision, other.text) == (one.model, one.revision, one.text)
    assert np.array_equal(other.weights, one.weights)
    assert np.array_equal(other.hidden, one.hidden)


# ---- heads ----------------------------------------------------------------------------------------------------------


def test_a_head_has_three_names() -> None:
    assert str(Head(3, 7)) == "L3H7"
    assert Head(3, 7).paper == "4-8"
    assert Head.parse(" l3h7 ") == Head(3, 7) == (3, 7)


@pytest.mark.parametrize("name", ["", "L3", "3-7", "L3H7x", "L-1H0", "L3H9999", "L٣H١", "L1H2\n3"])
def test_what_is_no_head_s_name(name: str) -> None:
    with pytest.raises(UnknownHead, match="not the name"):
        Head.parse(name)


def test_the_right_matrix() -> None:
    weights = np.stack([np.eye(5, dtype=np.float32), np.eye(5, dtype=np.float32)[::-1]])[None]
    assert np.array_equal(Attention("m", "", TEXT, weights)[Head(0, 1)], np.eye(5)[::-1])


@pytest.mark.parametrize("head", [Head(1, 0), Head(0, 1), Head(-1, 0), Head(0, -1)])
def test_heads_that_the_model_has_not(head: Head) -> None:
    with pytest.raises(UnknownHead, match="does not exist"):
        attention()[head]


# ---- words and special tokens, by hand ------------------------------------------------------------------------------


def close(weights: Weights, expected: object) -> bool:
    return bool(np.allclose(weights, np.array(expected), atol=1e-6))


def test_to_a_word_is_the_sum_and_from_a_word_the_mean() -> None:
    words = attention().by_words()
    assert words.tokens == ("[CLS]", "unkind", "dog", "[SEP]")
    expected = [
        [0.2, 0.4, 0.2, 0.2],
        [0.2, 0.35, 0.2, 0.25],  # mean of (0.1, 0.5, 0.3, 0.1) and (0.3, 0.2, 0.1, 0.4)
        [0.5, 0.3, 0.0, 0.2],
        [0.6, 0.0, 0.0, 0.4],
    ]
    assert close(words[Head(0, 0)], expected)


def test_by_words_of_whole_words_is_the_same_object() -> None:
    words = attention().by_words()
    assert words.by_words() is words


def test_content_hides_and_says_how_much() -> None:
    text, _, weights, hidden = attention().content()
    assert [t.text for t in text.tokens] == ["un", "kind", "dog"]
    assert close(weights[0, 0], [[0.2, 0.3, 0.3], [0.1, 0.1, 0.1], [0.1, 0.2, 0.0]])
    assert close(hidden[0, 0], [0.2, 0.7, 0.7])


def test_without_special_rescales_and_remembers() -> None:
    content = attention().without_special()
    assert content.tokens == ("un", "kind", "dog")
    assert close(content[Head(0, 0)], [[0.25, 0.375, 0.375], [1 / 3, 1 / 3, 1 / 3], [1 / 3, 2 / 3, 0]])
    assert close(content.hidden[0, 0], [0.2, 0.7, 0.7])
    assert close(attention().hidden, np.zeros((1, 1, 5)))


def test_words_then_content_and_content_then_words() -> None:
    words_first = attention().by_words().without_special()
    assert close(words_first[Head(0, 0)], [[0.35 / 0.55, 0.2 / 0.55], [1, 0]])
    assert close(words_first.hidden[0, 0], [0.45, 0.7])
    content_first = attention().without_special().by_words()
    assert close(content_first[Head(0, 0)], [[(0.625 + 2 / 3) / 2, (0.375 + 1 / 3) / 2], [1, 0]])
    assert close(content_first.hidden[0, 0], [0.45, 0.7])


def test_hiding_twice_changes_nothing() -> None:
    once = attention().without_special()
    twice = once.without_special()
    assert close(twice.weights, once.weights)
    assert close(twice.hidden, once.hidden)


def test_a_row_that_lay_on_special_tokens_alone_becomes_uniform() -> None:
    matrix = [row[:] for row in MATRIX]
    matrix[3] = [0.5, 0.0, 0.0, 0.0, 0.5]
    content = attention(matrix).without_special()
    assert close(content[Head(0, 0)][2], [1 / 3, 1 / 3, 1 / 3])
    assert close(content.hidden[0, 0], [0.2, 0.7, 1.0])


def test_only_special_tokens_leave_nothing() -> None:
    text = TokenizedText("", "", (TOKENS[0], TOKENS[4]))
    with pytest.raises(EmptyText, match="nothing is left"):
        attention([[0.5, 0.5], [0.5, 0.5]], text).without_special()


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("minilm", "minilm"), ("google/electra-small", "google/electra-small"), ("/srv/models/own bert", "own bert"),
        ("/srv/models/own/", "own"), ("./own", "own"), ("~/own", "own"), ("C:\\models\\own", "own"), ("/", "/"),
    ],
)  # fmt: skip
def test_a_folder_is_called_by_its_own_name(model: str, name: str) -> None:
    assert shorten_name(model) == name


# ---- Two texts, other quantities, heads by name ---------------------------------------------------------------------

OTHER = TokenizedText("it ran", "", (Token("it", 0, 0, 0, 2), Token("ran", 1, 0, 3, 6)))


def test_without_keys_rows_and_columns_are_one_object() -> None:
    one = attention()
    assert one.queries is one.keys is one.text
    assert not one.is_cross
    for made in (one.by_words(), one.without_special(), one.only([Head(0, 0)]), pickle.loads(pickle.dumps(one))):
        assert made.queries is made.keys


def test_axes_of_two_texts_must_fit() -> None:
    fits = Attention("m", "", TEXT, np.full((1, 1, 5, 2), 0.5, np.float32), keys=OTHER)
    assert repr(fits) == "Attention(m, 1 layers × 1 heads, 5 queries × 2 keys)"
    for shape in ((1, 1, 2, 5), (1, 1, 5, 5)):
        with pytest.raises(ShapeError, match="queries × 5 keys, the texts have 5 and 2 tokens"):
            Attention("m", "", TEXT, np.full(shape, 0.2, np.float32), keys=OTHER)


def test_norms_may_sum_to_anything_but_are_not_negative() -> None:
    norms = Attention("m", "", TEXT, 3 * np.array([[MATRIX]], np.float32), quantity="norm")
    assert repr(norms).endswith("5 tokens, norm)")
    for wrong, message in ((-0.1, "A norm is -0.1"), (np.nan, "not numbers")):
        with pytest.raises(ShapeError, match=message):
            Attention("m", "", TEXT, np.full((1, 1, 5, 5), wrong, np.float32), quantity="norm")
    with pytest.raises(ShapeError, match=r"quantity is 'mood'. Expected one of: weight, norm, gradient, rollout"):
        Attention("m", "", TEXT, np.array([[MATRIX]], np.float32), quantity="mood")


def test_every_quantity_says_what_it_is_and_nobody_adds_one() -> None:
    assert all(name == row.name and row.about.endswith(".") for name, row in QUANTITIES.items())
    with pytest.raises(TypeError):
        QUANTITIES["mood"] = QUANTITIES["norm"]  # type: ignore[index]


def test_hiding_special_tokens_rescales_weights_and_leaves_norms_as_they_are() -> None:
    norms = Attention("m", "", TEXT, 3 * np.array([[MATRIX]], np.float32), quantity="norm").without_special()
    np.testing.assert_allclose(norms["L0H0"], 3 * np.array(MATRIX)[1:4, 1:4], rtol=1e-6)
    np.testing.assert_allclose(norms.hidden[0, 0], [0.2, 0.7, 0.7], rtol=1e-6)  # of each row's sum
    assert (norms.quantity, norms.made) == ("norm", ("special hidden",))


def test_a_head_is_asked_for_by_any_of_its_names() -> None:
    one = Attention("model", "r1", TEXT, np.full((2, 3, 5, 5), 0.2, np.float32))
    assert one.every_head() == tuple(Head(layer, head) for layer in (0, 1) for head in (0, 1, 2))
    assert one["L1H2"] is not None
    for name in (Head(1, 2), (1, 2), "L1H2", "l1h2", (np.int64(1), np.int64(2))):
        assert np.shares_memory(one[name], one.weights[1, 2])
    for wrong in ("L9H9", "head", 3, (True, 0), (0.5, 1), (0, 1, 2), (-1, 0)):
        with pytest.raises(UnknownHead):
            one[wrong]  # type: ignore[index]
    with pytest.raises(TypeError):
        iter(one)  # type: ignore[call-overload]
    assert one.only(["L1H2", (0, 1)]).made == ("only L1H2, L0H1",)
    with pytest.raises(UnknownHead, match="No head was named"):
        one.only([])
