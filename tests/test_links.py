"""Token links: the ink of a line is its weight on one scale for the whole figure; few lines of long texts; numbers
behind the words that they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from mha_viz.attention import Attention, Head
from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import CellPicture, Curve, Drawing, Text
from mha_viz.figures.drawing.theme import THEMES
from mha_viz.figures.layout import Size
from mha_viz.figures.layout.compare import compare
from mha_viz.figures.layout.links import links
from mha_viz.figures.layout.panels import Panel
from mha_viz.figures.layout.view import View

HEADS = (Head(0, 0), Head(0, 2))
RULES = ("all", "top1", "top3", "min0.10", "mass0.70")
SCALES = ("fixed", "head", "row", "log")
SPECIALS = ("keep", "hide", "rescale")
SPOKEN = "the 20 strongest links between words"


def text_of(words: int, seed: int = 3) -> Attention:
    """A text of so many different words between two special tokens, which take most of the weight. Rows differ in how
    sharp they are, so that the strongest link of one is weak beside that of another."""
    names = ["[CLS]", *(f"word{number}" for number in range(words)), "[SEP]"]
    n = len(names)
    random = np.random.default_rng(seed)
    sharp = random.uniform(0.02, 1, (1, 3, n, 1))
    raw = random.dirichlet(np.full(n, 0.3), (1, 3, n)) * sharp + (1 - sharp) / n
    raw[..., 0] += 0.5
    return Attention.from_tensors((raw / raw.sum(axis=-1, keepdims=True)).astype(np.float32), names)


class Line(NamedTuple):
    """A line of a drawing, by the words that it links."""

    query: str
    key: str
    curve: Curve


def lines_of(drawing: Drawing) -> list[Line]:
    """Every line of a diagram that is set in one column, in the order of the drawing, without the samples of a key."""
    words = [m for m in drawing.marks if isinstance(m, Text) and (m.text[:4] == "word" or m.text[0] == "[")]
    queries, keys = ([m for m in words if m.anchor == anchor] for anchor in ("end", "start"))
    last = max(word.y + word.size for word in words)
    curves = [m for m in drawing.marks if isinstance(m, Curve) and m.points[0][1] < last]
    return [Line(_nearest(queries, m.points[0][1]), _nearest(keys, m.points[3][1]), m) for m in curves]


def _nearest(side: Sequence[Text], y: float) -> str:
    return min(side, key=lambda word: abs(word.y - y)).text


def weight_of(attention: Attention, line: Line, head: Head) -> float:
    at = [attention.tokens.index(word) for word in (line.query, line.key)]
    return float(attention[head][tuple(at)])


def shown_weight(attention: Attention, line: Line, head: Head, view: View) -> float:
    """The weight as the view shows it, rescaled if special tokens are hidden and rows rescaled."""
    row = attention[head][attention.tokens.index(line.query)].astype(float)
    left = row[1:-1].sum() if view.special == "rescale" else 1
    return weight_of(attention, line, head) / left


def one_head(attention: Attention, view: View) -> Iterator[tuple[Drawing, Head]]:
    for head in HEADS:
        yield links(attention, [head], view), head


# ---- Ink ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("special", SPECIALS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("words", [9, 43])
def test_a_stronger_link_never_has_less_ink(words: int, rule: str, scale: str, special: str) -> None:
    attention, view = text_of(words), View(links=rule, scale=scale, special=special)
    for drawing, head in one_head(attention, view):
        drawn = sorted((shown_weight(attention, one, head, view), one.curve) for one in lines_of(drawing))
        for (_, weak), (_, strong) in pairwise([(w, c) for w, c in drawn]):
            assert weak.opacity <= strong.opacity
            assert weak.width <= strong.width
        assert drawn[-1][1].width > drawn[0][1].width or len({round(w, 1) for w, _ in drawn}) == 1


@pytest.mark.parametrize("scale", SCALES)
def test_heads_in_one_diagram_share_the_scale(scale: str) -> None:
    attention = text_of(9)
    weak = attention.weights.copy()
    weak[0, 2] = weak[0, 2] * 0.1 + 0.9 / weak.shape[-1]
    attention = Attention.from_tensors(weak, list(attention.tokens))
    drawing = links(attention, HEADS, View(scale=scale))
    colours = [THEMES["light"].heads[head.head] for head in HEADS]
    drawn = sorted(
        (weight_of(attention, one, HEADS[colours.index(one.curve.colour)]), one.curve.width, one.curve.opacity)
        for one in lines_of(drawing)
    )
    assert len({colour for one in lines_of(drawing) for colour in [one.curve.colour]}) == 2
    assert all(a[1] <= b[1] and a[2] <= b[2] for a, b in pairwise(drawn))


@pytest.mark.parametrize(
    ("scale", "says"), [("fixed", "0 to 1"), ("head", "0 to 0."), ("row", "0 to 0."), ("log", "0.001")]
)
@pytest.mark.parametrize("width", [40, 85, 178])
def test_the_scale_of_the_lines_is_printed_in_the_figure_and_in_its_caption(
    scale: str, says: str, width: float
) -> None:
    drawing = links(text_of(9), HEADS[:1], View(scale=scale), Size(width))
    printed = [m for m in drawing.marks if isinstance(m, Text) and says in m.text and m.y > drawing.height * 0.9]
    (bar,) = (m for m in drawing.marks if isinstance(m, CellPicture))
    assert len(printed) == 1
    assert 0 <= bar.x < bar.x + bar.width <= printed[0].x - fonts.width(printed[0].text, printed[0].size)
    assert f"Width and darkness: {says}" in drawing.caption
    assert "row" not in drawing.caption.partition("Width and darkness")[2]


# ---- Few lines of long texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("special", SPECIALS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("words", [25, 43, 60])
def test_of_many_words_the_twenty_strongest_links_between_words_are_drawn(
    words: int, rule: str, scale: str, special: str
) -> None:
    attention, view = text_of(words), View(links=rule, scale=scale, special=special)
    for drawing, head in one_head(attention, view):
        drawn = lines_of(drawing)
        assert 0 < len(drawn) <= 20
        assert not [one for one in drawn if "[" in one.query + one.key]
        assert SPOKEN in drawing.caption
        assert SPOKEN in drawing.texts()
        if rule == "all" and special != "rescale":
            between = np.sort(attention[head][1:-1, 1:-1].ravel())[::-1]
            weights = sorted((weight_of(attention, one, head) for one in drawn), reverse=True)
            assert weights == pytest.approx(between[: len(weights)], rel=1e-5)


def test_several_heads_share_the_twenty_and_every_panel_has_its_own() -> None:
    attention = text_of(43)
    assert len(lines_of(links(attention, HEADS))) == 20
    beside = compare([Panel(attention, head) for head in HEADS], None, None, "links")
    assert sum(isinstance(mark, Curve) for mark in beside.marks) == 40
    assert f"{SPOKEN} of each" in beside.texts()
    assert SPOKEN in beside.caption


def test_beside_a_short_text_only_the_long_one_is_said_to_have_few_links() -> None:
    panels = [Panel(text_of(words), HEADS[0]) for words in (6, 27)]
    for rule in ("all", "top3"):
        beside = compare(panels, View(links=rule), Size(300), "links")
        assert f"Of each text of 25 words or more, only {SPOKEN} are drawn." in beside.caption
        assert "special tokens left out" not in beside.caption
        assert f"{SPOKEN} of each text of 25 words or more" in beside.texts()


def test_a_short_text_has_all_its_links_and_a_held_word_of_a_long_one_too() -> None:
    short, long = text_of(24), text_of(43)
    assert len(lines_of(links(short, HEADS[:1], View(scale="log")))) > 200
    assert SPOKEN not in links(short, HEADS[:1]).caption
    held = links(long, HEADS[:1], View(scale="log", pin="q7"))
    assert {one.query for one in lines_of(held)} == {"word6"}
    assert len(lines_of(held)) > 20
    assert SPOKEN not in held.caption


def test_strong_links_between_columns_of_a_long_text_are_said_to_be_missing() -> None:
    weights = np.eye(140)[::-1].copy()  # each word attends to the one as far from the other end
    weights[:9] = np.eye(140)[:9]  # the first ones to themselves
    drawing = links(Attention.from_tensors([weights[None]], [f"word{i}" for i in range(140)]), [Head(0, 0)])
    lines = sum(isinstance(mark, Curve) for mark in drawing.marks)
    assert 0 < lines < 20
    assert f"{20 - lines} of the 20 strongest links" in drawing.full_caption
    assert f"{lines} of {SPOKEN}" in drawing.texts()


# ---- Numbers -----------------------------------------------------------------------------------------------------


def numbers_of(drawing: Drawing) -> list[Text]:
    return [m for m in drawing.marks if isinstance(m, Text) and m.text.replace(".", "").isdigit()]


def word_beside(drawing: Drawing, number: Text) -> Text:
    """The word that a number stands behind: that which ends nearest before it, in its row."""
    words = [m for m in drawing.marks if isinstance(m, Text) and m.text[0] in "w[" and abs(m.y - number.y) < m.size / 2]
    word = min(words, key=lambda one: abs(number.x - _end(one)))
    assert 0 < number.x - _end(word) < number.size
    return word


def _end(word: Text) -> float:
    return word.x + (fonts.width(word.text, word.size, word.weight) if word.anchor == "start" else 0)


@pytest.mark.parametrize("pin", ["", "q4", "k3", "q4k3"])
@pytest.mark.parametrize("scale", SCALES[:3])
@pytest.mark.parametrize("words", [9, 43])
def test_a_number_stands_behind_the_word_of_its_line_and_on_no_line(words: int, scale: str, pin: str) -> None:
    attention, view = text_of(words), View(scale=scale, pin=pin)
    drawings = [(links(attention, [head], view), head) for head in HEADS]
    if scale != "row":
        drawings += [(compare([Panel(attention, head)], view, None, "links"), head) for head in HEADS]
    for drawing, head in drawings:
        lines = lines_of(drawing)
        numbers = numbers_of(drawing)
        if not lines:
            assert (pin, numbers) == ("q4k3", [])
            continue
        assert numbers or pin == "q4k3"
        begin, end = (pick(x for one in lines for x, _ in one.curve.points) for pick in (min, max))
        for number in numbers:
            word = word_beside(drawing, number)
            is_query = word.anchor == "end"
            assert is_query is (pin == "k3")
            right = number.x + fonts.width(number.text, number.size, 600)
            assert right <= begin if is_query else end < number.x and right <= drawing.width  # no line runs below it
            assert float(number.text) >= 0.05
            own = [one for one in lines if (one.query if is_query else one.key) == word.text]
            weights = [weight_of(attention, one, head) for one in own]
            assert float(number.text) == pytest.approx(max(weights), abs=0.0006)


@pytest.mark.parametrize("pin", ["", "q4", "k3", "q4k3"])
def test_every_line_is_one_curve_from_word_to_word(pin: str) -> None:
    attention = text_of(9)
    drawing = links(attention, HEADS, View(pin=pin))
    curves = [one.curve for one in lines_of(drawing)]
    assert len({(curve.points[0][0], curve.points[3][0]) for curve in curves}) == 1
    ends = [(curve.points[0], curve.points[3], curve.colour) for curve in curves]
    assert len(set(ends)) == len(ends)


def test_a_held_word_has_no_number_below_a_twentieth_and_none_without_a_line() -> None:
    row = np.array([0.6, 0.3, 0.05, 0.0333, 0.0167])
    weights = np.stack([row, *np.full((4, 5), 0.2)])
    attention = Attention.from_tensors([weights[None]], [f"word{i}" for i in range(5)])
    numbers = numbers_of(links(attention, [Head(0, 0)], View(pin="q0")))
    assert sorted(number.text for number in numbers) == ["0.050", "0.300", "0.600"]
    some = numbers_of(links(attention, [Head(0, 0)], View(pin="q0", links="top2")))
    assert sorted(number.text for number in some) == ["0.300", "0.600"]


@pytest.mark.parametrize(
    ("rule", "pin", "remedy"),
    [("min0.90", "q1", 'less than links="min0.90"'), ("top1", "q1k1", 'more than links="top1"')],
)
def test_a_pin_whose_links_are_all_left_out_is_noted(rule: str, pin: str, remedy: str) -> None:
    w = np.array([[1, 0, 0], [0.6, 0.3, 0.1], [0, 0, 1]], np.float32)
    a = Attention.from_tensors(w[None, None], ["the", "cat", "sat"])
    largest = "0.600" if pin == "q1" else "0.300"
    drawings = (
        links(a, [Head(0, 0)], View(links=rule, pin=pin)),
        compare([Panel(a, Head(0, 0))], View(links=rule, pin=pin), kind="links"),
    )
    for drawing in drawings:
        assert drawing.notes[0].caption == "No weight is large enough for a link."
        assert drawing.notes[0].advice == f"The largest weight shown is {largest}: ask for {remedy}."
