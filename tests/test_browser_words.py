"""Words, weights and controls of one head, in a real browser on the real server."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest
from playwright.sync_api import (
    Page,
    WebSocketRoute,
    expect,
)

from mha_viz import numerals
from mha_viz.attention import Attention
from mha_viz.ui.cache import first_reading
from mha_viz.ui.request import examples
from tests.browser_tab import BrowserTab

IT, ANIMAL = 10, 2  # tokens of the first example


@cache
def first() -> Attention:
    return first_reading()


def weights_in(text: str) -> dict[str, float]:
    """ "it attends to animal 0.6771, it 0.120" → {"animal": 0.681, "it": 0.12}; "<.001" counts as 0."""
    listed = text.split(" to ", 1)[1] if " to " in text else text.split("→", 1)[1]
    pairs = re.findall(r"(\S+) (\d\.\d{3}|<\.001)", listed)
    return {word: 0.0 if value == "<.001" else float(value) for word, value in pairs}


# ---- Words and weights ---------------------------------------------------------------------------------------


def test_a_word_under_the_pointer_says_what_it_attends_to(visitor: BrowserTab) -> None:
    visitor.explore()
    words = first().by_words()
    row = words.tokens.index("it")
    listed = weights_in(visitor.hover_word("it"))
    best = np.argsort(-words.weights[3, 1, row])[:4]
    assert list(listed) == [words.tokens[i] for i in best]
    for i in best:
        assert listed[words.tokens[i]] == pytest.approx(words.weights[3, 1, row, i], abs=0.00052)
    plain = visitor.pixels(visitor.links)[0]
    visitor.hover_word("street")
    assert visitor.pixels(visitor.links)[0] != plain


def test_a_cell_under_the_pointer_says_its_weight_and_a_click_holds_it(visitor: BrowserTab) -> None:
    page = visitor.explore(head="L3H1")
    box = visitor.heat.bounding_box()
    assert box
    along, down = range(int(box["width"]) - 4, 60, -9), range(int(box["height"]) - 4, 60, -9)
    column_of_animal = next(x for x in along if "→ animal" in visitor.point(visitor.heat, x, down[0]))
    text = visitor.hover_until(visitor.heat, ((column_of_animal, y) for y in down), re.compile("^it → animal"))
    expected = first().by_words()
    row, column = expected.tokens.index("it"), expected.tokens.index("animal")
    assert weights_in(text)["animal"] == pytest.approx(expected.weights[3, 1, row, column], abs=0.00052)
    page.mouse.down()
    page.mouse.up()
    visitor.asked(pin=f"q{IT}k{ANIMAL}")
    page.mouse.move(2, 2)
    assert visitor.readout.inner_text() == text


@pytest.mark.parametrize(
    ("width", "text"),
    [(1440, "a" * 8000), (1000, examples()[11]["text"]), (390, examples()[11]["text"])],
    ids=["one endless word", "long words", "long words on a phone"],
)
def test_the_drawing_stays_under_the_pointer_whatever_is_said_of_it(
    newcomer: Callable[..., BrowserTab], width: int, text: str
) -> None:
    visitor = newcomer(viewport={"width": width, "height": 900})
    visitor.explore(text=text, head="L3H1", scale="row")
    visitor.links.scroll_into_view_if_needed()
    still = visitor.links.bounding_box()
    assert still
    rows = visitor.page.locator(".ask select").first.locator("option").count() - 1
    step = still["height"] / rows
    readouts = set()
    for row in range(rows):
        readouts.add(visitor.point(visitor.links, 12, (row + 0.5) * step))
        visitor.page.wait_for_timeout(60)
        assert visitor.links.bounding_box() == still
        assert " attends to " in visitor.readout.inner_text()
    assert len(readouts) == rows


def test_a_click_pins_a_word_and_escape_frees_it(visitor: BrowserTab) -> None:
    page = visitor.explore(head="L3H1")
    free = visitor.pixels(visitor.links)[0]
    assert visitor.readout.inner_text().startswith("Strongest link between words: ")
    readout = visitor.hover_word("street")
    page.mouse.down()
    page.mouse.up()
    page.mouse.move(2, 2)
    assert visitor.readout.inner_text() == readout
    visitor.asked(pin="q8")
    visitor.hover_word("tired")  # the word under the pointer is shown, and the pin stays
    page.mouse.move(2, 2)
    assert visitor.readout.inner_text() == readout
    page.keyboard.press("Escape")
    visitor.asked(pin=None)
    assert visitor.readout.inner_text().startswith("Strongest link between words: ")
    assert visitor.pixels(visitor.links)[0] == free


def test_a_second_click_frees_the_pinned_word(visitor: BrowserTab) -> None:
    page = visitor.explore(head="L3H1", pin="q8")
    visitor.hover_word("street")
    page.mouse.down()
    page.mouse.up()
    visitor.asked(pin=None)


def test_arrow_keys_walk_through_words_and_cells(visitor: BrowserTab) -> None:
    page = visitor.explore(head="L3H1")
    words = first().by_words()
    visitor.heat.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    readout = visitor.readout.inner_text()
    assert readout.startswith("The → animal ")
    assert weights_in(readout)["animal"] == pytest.approx(words.weights[3, 1, 1, 2], abs=0.00052)
    page.keyboard.press("Enter")
    visitor.asked(pin="q1k2")
    page.keyboard.press("Escape")
    visitor.links.focus()
    page.keyboard.press("ArrowDown")
    assert visitor.readout.inner_text().startswith("The attends to ")
    page.keyboard.press("ArrowRight")
    assert visitor.readout.inner_text().startswith("The is attended to by ")


def test_the_table_of_numbers_agrees_with_the_model(visitor: BrowserTab) -> None:
    page = visitor.explore()
    page.get_by_text("These weights as a table").click()
    rows = page.locator(".tablebox tbody tr")
    words = first().by_words()
    expect(rows).to_have_count(len(words.tokens))
    cells = [row.locator("td").all_inner_texts() for row in rows.all()]
    shown = np.array([[0.0 if c == "<.001" else float(c) for c in row] for row in cells])
    assert np.abs(shown - words.weights[3, 1]).max() <= 0.00052
    assert page.locator(".tablebox thead th").all_inner_texts() == list(words.tokens)
    visitor.click_head(0, 2)
    expect(page.locator(".tablebox caption")).to_contain_text("L0H2 (1-3)")


def test_pictures_say_what_they_show(visitor: BrowserTab) -> None:
    visitor.explore()
    for canvas, kind in ((visitor.heat, "Heatmap"), (visitor.links, "Token links")):
        label = canvas.get_attribute("aria-label") or ""
        assert label.startswith(f"{kind} of L3H1. it attends to animal 0.677")
    assert "Arrow keys" in (visitor.grid.get_attribute("aria-label") or "")


# ---- Controls, without the server ----------------------------------------------------------------------------


class Line:
    """The connection to the server, which a test can hold: messages of the page then wait here."""

    def __init__(self, page: Page) -> None:
        self.held: list[str | bytes] | None = None
        page.route_web_socket(re.compile(r"/_stcore/stream"), self._connect)

    def _connect(self, client: WebSocketRoute) -> None:
        self._server = client.connect_to_server()
        client.on_message(self._sent)

    def _sent(self, message: str | bytes) -> None:
        if self.held is None:
            self._server.send(message)
        else:
            self.held.append(message)

    def hold(self) -> None:
        self.held = []

    def release(self) -> None:
        waiting, self.held = self.held or [], None
        for message in waiting:
            self._server.send(message)


def test_what_only_changes_the_view_is_drawn_while_the_server_is_silent(visitor: BrowserTab) -> None:
    line = Line(visitor.page)
    visitor.explore(head="L3H1")
    line.hold()
    for canvas, act in (
        (visitor.heat, partial(visitor.press_segment, "pieces")),
        (visitor.links, partial(visitor.press_segment, "hidden")),
        (visitor.heat, partial(visitor.press_segment, "hidden, rescaled")),
        (visitor.grid, partial(visitor.press_segment, "shown")),
        (visitor.heat, partial(visitor.press_segment, "words")),
        (visitor.links, partial(visitor.choose, "Links", "top")),
        (visitor.links, partial(visitor.choose, "Links", "min")),
        (visitor.links, partial(visitor.choose, "Links", "mass")),
        (visitor.heat, partial(visitor.choose, "Colour", "log")),
        (visitor.grid, partial(visitor.choose, "Colour", "row")),
        (visitor.links, visitor.head_switch(3).click),
        (visitor.heat, partial(visitor.click_head, 5, 11)),
    ):
        visitor.redraws(canvas, act)
    assert visitor.address == {"head": "L3H1"}, "the server has heard nothing yet"
    assert line.held, "and it will be told"
    line.release()
    visitor.asked(head="L5H11", scale="row", links="mass0.70")


def test_the_sides_of_a_pair_are_drawn_while_the_server_is_silent(visitor: BrowserTab) -> None:
    line = Line(visitor.page)
    visitor.explore(text="A man plays.", pair="Someone plays.", head="L3H1")
    line.hold()
    for side in ("ab", "ba", "aa", "bb", "all"):
        visitor.redraws(visitor.heat, partial(visitor.choose, "Pair", side))
    visitor.choose("Pair", "ab")
    assert "% of this head’s attention is hidden." in visitor.page.locator(".note").inner_text()
    visitor.hover_word("man")
    assert set(weights_in(visitor.readout.inner_text())) <= {"Someone", "plays", ".", "[SEP]"}
    line.release()
    visitor.asked(side="ab")


def test_hidden_tokens_always_come_with_their_share(visitor: BrowserTab) -> None:
    page = visitor.explore()
    note = page.locator(".note")
    expect(note).to_have_text("")
    visitor.press_segment("hidden")
    words = first().by_words()
    hidden = words.content().hidden[3, 1, words.tokens.index("it") - 1]
    expect(note).to_contain_text(f"{numerals.percent(hidden)} of the attention from “it” is hidden.")
    visitor.press_segment("hidden, rescaled")
    expect(note).to_contain_text("was hidden before rescaling.")
    rescaled = words.without_special()
    row, column = rescaled.tokens.index("it"), rescaled.tokens.index("animal")
    assert weights_in(visitor.readout.inner_text())["animal"] == pytest.approx(
        rescaled.weights[3, 1, row, column], abs=0.0006
    )


def test_pieces_show_the_tokens_that_the_model_reads(visitor: BrowserTab) -> None:
    visitor.explore(head="L3H1")
    visitor.press_segment("pieces")
    row = first().tokens.index("didn")
    listed = weights_in(visitor.hover_word("didn"))
    best = int(first().weights[3, 1, row].argmax())
    assert listed[first().tokens[best]] == pytest.approx(first().weights[3, 1, row, best], abs=0.00052)
    visitor.asked(unit="pieces")


# ---- Ranking by a link ---------------------------------------------------------------------------------------


def test_heads_are_ranked_by_the_link_between_two_words(visitor: BrowserTab) -> None:
    page = visitor.explore(head="L0H0")
    query, key = page.locator(".ask select").nth(0), page.locator(".ask select").nth(1)
    query.select_option(str(IT))
    key.select_option(str(ANIMAL))
    ranks = page.locator(".ask ol button")
    expect(ranks).to_have_count(6)
    weights = first().weights[:, :, IT, ANIMAL].ravel()
    best = np.argsort(-weights)[:6]
    for button, head in zip(ranks.all(), best, strict=True):
        name, value = button.locator("b").inner_text(), button.locator(".value").inner_text()
        assert name == f"L{head // 12}H{head % 12}"
        assert float(value) == pytest.approx(weights[head], abs=0.00052)
    assert ranks.first.locator("b").inner_text() == "L3H1"
    visitor.asked(link=f"{IT}-{ANIMAL}", pin=f"q{IT}k{ANIMAL}")
    ranks.nth(1).click()
    expect(visitor.title).to_contain_text(f"L{best[1] // 12}H{best[1] % 12} ")
    page.get_by_role("button", name="Show all 72").click()
    expect(ranks).to_have_count(72)


def test_numbers_that_are_no_shares_are_read_by_sign_and_size(visitor: BrowserTab) -> None:
    page = visitor.explore(model="toy", text="The dog [MASK] the girl .", shown="gradient", head="L0H0")
    assert re.match(r"Strongest link between words: \[MASK\] → dog \+0\.0\d{3} ", visitor.readout.inner_text())
    expect(page.locator(".choice", has_text="Colour").locator("select")).to_have_value("head")
    measures = page.locator("dl > div")
    assert "entropy" not in measures.all_inner_texts()
    same = measures.filter(has_text="same token")
    assert re.fullmatch(r"−0\.00\d{3}", same.locator("dd").last.inner_text())
    share = same.locator(".bar").evaluate("bar => parseFloat(bar.style.getPropertyValue('--share'))")
    assert 0 < share < 90  # another head has a larger one
