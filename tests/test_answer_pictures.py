"""Pictures of answers: the gradient at W_O is computed, all tokens reach every head, and links end at their words."""

from __future__ import annotations

from mha_viz.figures.drawing.marks import Curve, Rect, Text
from mha_viz.figures.drawing.theme import LIGHT
from mha_viz.figures.layout import answers
from mha_viz.figures.layout.answers import GRADIENT, HEAD_COUNT, SLICES, TOKENS, WordLink

HEADS = LIGHT.heads[:HEAD_COUNT]


def shade(value: float) -> str:
    """The colour of a number from −1 to 1, of as many as the theme has, from positive to negative."""
    last = len(LIGHT.signed) - 1
    return LIGHT.signed[round((1 - min(1.0, max(-1.0, value))) / 2 * last)]


def test_each_gradient_is_the_one_of_the_output_times_the_slice_of_its_head() -> None:
    for drawing, slices in zip(answers.draw_gradients(LIGHT), ([SLICES[0]] * HEAD_COUNT, SLICES), strict=True):
        shades = [mark.fill for mark in drawing.marks if isinstance(mark, Rect) and mark.fill is not None]
        expected = [shade(value) for value in GRADIENT]
        for part in slices:
            expected += [shade(weight) for row in part for weight in row]
            expected += [shade(sum(w * g for w, g in zip(row, GRADIENT, strict=True))) for row in part]
        assert shades == expected
    equal, different = (
        [mark.fill for mark in one.marks if isinstance(mark, Rect)] for one in answers.draw_gradients(LIGHT)
    )
    assert len({tuple(equal[at : at + 11]) for at in range(4, len(equal), 11)}) != 4
    assert equal != different


def test_every_head_gets_all_tokens_and_only_narrow_ones_a_chunk() -> None:
    wide, narrow = answers.draw_widths(LIGHT)
    for drawing, fed in ((wide, [LIGHT.muted] * HEAD_COUNT), (narrow, list(HEADS))):
        rects = [mark for mark in drawing.marks if isinstance(mark, Rect)]
        assert [mark.fill for mark in rects[::2]] == fed
        assert [mark.fill for mark in rects[1::2]] == list(HEADS)
        assert len({mark.height for mark in rects}) == 1, "the length is not cut"
        lines = [mark for mark in drawing.marks if isinstance(mark, Curve) and mark.colour == LIGHT.paper]
        assert len(lines) == (TOKENS - 1) * (1 + HEAD_COUNT)
    assert wide.alt.endswith("wide: each reads the whole vector.")


def test_arcs_go_from_one_word_to_the_words_of_its_links() -> None:
    words, links = ("a", "bank", "of", "sand"), [WordLink("L0H1", 3, 0.75), WordLink("L1H0", 0, 0.25)]
    drawing = answers.draw_links(LIGHT, words, 1, links)
    lefts = [mark.x for mark in drawing.marks[: len(words)] if isinstance(mark, Text)]
    ends = [*lefts[1:], drawing.width]
    arcs = [mark for mark in drawing.marks if isinstance(mark, Curve)]
    for arc, link in zip(arcs, links, strict=True):
        (begin, _), *_, (end, _) = arc.points
        assert lefts[1] < begin < ends[1]
        assert lefts[link.key] < end < ends[link.key]
    assert arcs[0].width > arcs[1].width
    assert [mark.text for mark in drawing.marks if isinstance(mark, Text)][len(words) :] == ["L0H1  0.75", "L1H0  0.25"]
    assert drawing.alt == "“bank” attends by L0H1 to “sand” (0.75), L1H0 to “a” (0.25)."
