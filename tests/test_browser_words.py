"""Words, weights and controls of one head, in a real browser on the real server."""

from __future__ import annotations

import re
import time
from functools import cache, partial

import numpy as np
import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from mha_viz import numerals
from mha_viz.app.service.caches import load_first_reading
from mha_viz.app.url.address import load_examples
from mha_viz.attention import Attention
from tests.browser_tab import DESKTOP, FRAMES, PATIENCE, PHONE, BrowserTab

IT, ANIMAL = 10, 2  # tokens of the first example
LONG_WORDS = load_examples()[11]["text"]
STRONGEST = "Strongest link between words: "


@cache
def first() -> Attention:
    return load_first_reading()


def weights_in(text: str) -> dict[str, float]:
    """ "it attends to animal 0.6771, it 0.120" → {"animal": 0.681, "it": 0.12}; "<.001" counts as 0."""
    listed = text.split(" to ", 1)[1] if " to " in text else text.split("→", 1)[1]
    pairs = re.findall(r"(\S+) (\d\.\d{3}|<\.001)", listed)
    return {word: 0.0 if value == "<.001" else float(value) for word, value in pairs}


# ---- Words and weights ---------------------------------------------------------------------------------------


def test_words_cells_and_numbers_of_a_head(visitor: BrowserTab) -> None:
    visitor.explore()
    _a_word_under_the_pointer_says_what_it_attends_to(visitor)
    _a_click_pins_a_word_and_escape_frees_it(visitor)
    _a_second_click_frees_the_pinned_word(visitor)
    _a_cell_under_the_pointer_says_its_weight_and_a_click_holds_it(visitor)
    _arrow_keys_walk_through_words_and_cells(visitor)
    _pieces_show_the_tokens_that_the_model_reads(visitor)
    _hidden_tokens_always_come_with_their_share(visitor)
    _heads_are_ranked_by_the_link_between_two_words(visitor)
    _the_table_of_numbers_agrees_with_the_model(visitor)


def _a_word_under_the_pointer_says_what_it_attends_to(visitor: BrowserTab) -> None:
    words = first().by_words()
    row = words.tokens.index("it")
    listed = weights_in(visitor.hover_word("it"))
    best = np.argsort(-words.weights[3, 1, row])[:4]
    assert list(listed) == [words.tokens[i] for i in best]
    for i in best:
        assert listed[words.tokens[i]] == pytest.approx(words.weights[3, 1, row, i], abs=0.00052)
    visitor.wait_for_redraw(visitor.links, partial(visitor.hover_word, "street"))
    visitor.page.mouse.move(2, 2)


def _a_click_pins_a_word_and_escape_frees_it(visitor: BrowserTab) -> None:
    page = visitor.page
    page.keyboard.press("Escape")  # the word that is held at first
    expect(visitor.readout).to_contain_text(STRONGEST)
    free = visitor.pixels(visitor.links)[0]
    said = visitor.hover_word("street")
    _press(visitor)
    page.mouse.move(2, 2)
    expect(visitor.readout).to_have_text(said, use_inner_text=True)
    visitor.wait_for_parameters(pin="q8")
    visitor.hover_word("tired")  # the word under the pointer is shown, and the pin stays
    page.mouse.move(2, 2)
    expect(visitor.readout).to_have_text(said, use_inner_text=True)
    page.keyboard.press("Escape")
    visitor.wait_for_parameters(pin=None, head="L3H1")
    expect(visitor.readout).to_contain_text(STRONGEST)
    visitor.wait_for_fingerprint(visitor.links, free)


def _a_second_click_frees_the_pinned_word(visitor: BrowserTab) -> None:
    visitor.hover_word("street")
    _press(visitor)
    visitor.wait_for_parameters(pin="q8")
    _press(visitor)
    visitor.wait_for_parameters(pin=None)


def _press(visitor: BrowserTab) -> None:
    visitor.page.mouse.down()
    visitor.page.mouse.up()


def _a_cell_under_the_pointer_says_its_weight_and_a_click_holds_it(visitor: BrowserTab) -> None:
    visitor.heat.scroll_into_view_if_needed()
    box = visitor.heat.bounding_box()
    assert box
    along, down = range(int(box["width"]) - 4, 60, -9), range(int(box["height"]) - 4, 60, -9)
    column_of_animal = next(x for x in along if "→ animal" in visitor.point(visitor.heat, x, down[0]))
    said = visitor.hover_until(visitor.heat, ((column_of_animal, y) for y in down), re.compile("^it → animal"))
    expected = first().by_words()
    row, column = expected.tokens.index("it"), expected.tokens.index("animal")
    assert weights_in(said)["animal"] == pytest.approx(expected.weights[3, 1, row, column], abs=0.00052)
    _press(visitor)
    visitor.wait_for_parameters(pin=f"q{IT}k{ANIMAL}")
    visitor.page.mouse.move(2, 2)
    expect(visitor.readout).to_have_text(said, use_inner_text=True)
    visitor.page.keyboard.press("Escape")
    visitor.wait_for_parameters(pin=None)


def _arrow_keys_walk_through_words_and_cells(visitor: BrowserTab) -> None:
    page = visitor.page
    visitor.heat.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(visitor.readout).to_contain_text("The → animal ")
    said = weights_in(visitor.readout.inner_text())
    assert said["animal"] == pytest.approx(first().by_words().weights[3, 1, 1, 2], abs=0.00052)
    page.keyboard.press("Enter")
    visitor.wait_for_parameters(pin="q1k2")
    page.keyboard.press("Escape")
    visitor.links.focus()
    page.keyboard.press("ArrowDown")
    expect(visitor.readout).to_contain_text("The attends to ")
    page.keyboard.press("ArrowRight")
    expect(visitor.readout).to_contain_text("The is attended to by ")
    page.keyboard.press("Escape")
    visitor.wait_for_parameters(pin=None)


def _pieces_show_the_tokens_that_the_model_reads(visitor: BrowserTab) -> None:
    visitor.press_segment("tokens")
    row = first().tokens.index("didn")
    listed = weights_in(visitor.hover_word("didn"))
    best = int(first().weights[3, 1, row].argmax())
    assert listed[first().tokens[best]] == pytest.approx(first().weights[3, 1, row, best], abs=0.00052)
    visitor.wait_for_parameters(unit="pieces")
    visitor.press_segment("words")
    visitor.wait_for_parameters(unit=None)


def _hidden_tokens_always_come_with_their_share(visitor: BrowserTab) -> None:
    note = visitor.page.locator(".note")
    visitor.hover_word("it")
    _press(visitor)
    visitor.wait_for_parameters(head=None, pin=None)  # as at first
    expect(note).to_have_text("")
    visitor.press_segment("hidden")
    words = first().by_words()
    hidden = words.content().hidden[3, 1, words.tokens.index("it") - 1]
    expect(note).to_contain_text(f"{numerals.percent(hidden)} of the attention from “it” goes to hidden tokens.")
    visitor.press_segment("hidden, rescaled")
    expect(note).to_contain_text("went to hidden tokens before rescaling.")
    rescaled = words.without_special()
    row, column = rescaled.tokens.index("it"), rescaled.tokens.index("animal")
    said = weights_in(visitor.readout.inner_text())
    assert said["animal"] == pytest.approx(rescaled.weights[3, 1, row, column], abs=0.0006)
    visitor.press_segment("shown")
    expect(note).to_have_text("")
    visitor.wait_for_parameters(special=None)


def _heads_are_ranked_by_the_link_between_two_words(visitor: BrowserTab) -> None:
    page = visitor.page
    query, key = page.locator(".ask select").nth(0), page.locator(".ask select").nth(1)
    query.select_option(str(IT))
    key.select_option(str(ANIMAL))
    visitor.wait_for_parameters(link=f"{IT}-{ANIMAL}", pin=f"q{IT}k{ANIMAL}")
    ranks = page.locator(".ask ol button")
    expect(ranks).to_have_count(6)
    weights = first().weights[:, :, IT, ANIMAL].ravel()
    best = np.argsort(-weights)[:6]
    for button, head in zip(ranks.all(), best, strict=True):
        expect(button.locator("b")).to_have_text(f"L{head // 12}H{head % 12}")
        assert float(button.locator(".value").inner_text()) == pytest.approx(weights[head], abs=0.00052)
    expect(ranks.first.locator("b")).to_have_text("L3H1")
    ranks.nth(1).click()
    expect(visitor.title).to_contain_text(f"L{best[1] // 12}H{best[1] % 12} ")
    page.get_by_role("button", name="Show all 72").click()
    expect(ranks).to_have_count(72)


def _the_table_of_numbers_agrees_with_the_model(visitor: BrowserTab) -> None:
    page = visitor.page
    caption, rows = page.locator(".tablebox caption"), page.locator(".tablebox tbody tr")
    visitor.click_head(3, 1)
    page.get_by_text("These weights as a table").click()
    expect(caption).to_contain_text("L3H1 (4-2)")
    words = first().by_words()
    expect(rows).to_have_count(len(words.tokens))
    cells = rows.evaluate_all("rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => cell.innerText))")
    shown = np.array([[0.0 if c == "<.001" else float(c) for c in row] for row in cells])
    assert np.abs(shown - words.weights[3, 1]).max() <= 0.00052
    assert page.locator(".tablebox thead th").all_inner_texts() == list(words.tokens)
    visitor.click_head(0, 2)
    expect(caption).to_contain_text("L0H2 (1-3)")


def test_numbers_that_are_no_shares_are_read_by_sign_and_size(visitor: BrowserTab) -> None:
    page = visitor.explore(model="toy", text="The dog [MASK] the girl .", shown="gradient", head="L0H0")
    expect(visitor.readout).to_have_text(re.compile(rf"^{STRONGEST}\[MASK\] → dog \+0\.0\d{{3}} "))
    expect(page.locator(".choice", has_text="Colour").locator("select")).to_have_value("head")
    measures = page.locator("dl:not(.rules) > div")
    assert "entropy" not in measures.all_inner_texts()
    same = measures.filter(has_text="same token")
    assert re.fullmatch(r"−0\.00\d{3}", same.locator("dd").last.inner_text())
    share = same.locator(".bar").evaluate("bar => parseFloat(bar.style.getPropertyValue('--share'))")
    assert 0 < share < 90  # another head has a larger one


def test_the_drawing_stays_under_the_pointer_whatever_is_said_of_it(visitor: BrowserTab) -> None:
    visitor.explore(text=LONG_WORDS, head="L3H1", scale="row")
    for width in (1000, PHONE["width"]):
        visitor.resize({"width": width, "height": 900})
        _stays_under_the_pointer(visitor)
    visitor.resize(DESKTOP)
    visitor.read("a" * 6000)  # one endless word
    _stays_under_the_pointer(visitor)


def _stays_under_the_pointer(visitor: BrowserTab) -> None:
    """Point at every word of the link diagram: each says something else, and none moves the diagram."""
    visitor.links.scroll_into_view_if_needed()
    still = visitor.links.bounding_box()
    assert still
    rows = visitor.page.locator(".ask select").first.locator("option").count() - 1
    step = still["height"] / rows
    readouts = set()
    for row in range(rows):
        readouts.add(visitor.point(visitor.links, 12, (row + 0.5) * step))
        assert visitor.links.bounding_box() == still
        expect(visitor.readout).to_contain_text(" attends to ")
    visitor.page.evaluate(FRAMES)
    assert visitor.links.bounding_box() == still
    assert len(readouts) == rows


# ---- Controls, without the server ----------------------------------------------------------------------------


class Line:
    """The connection to the server, which a test can hold: messages of the page then wait here."""

    def __init__(self, page: Page) -> None:
        self.page = page
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

    def will_tell(self) -> None:
        """Wait until a message is held."""
        end = time.monotonic() + PATIENCE / 1000
        while not self.held:
            assert time.monotonic() < end
            self.page.evaluate(FRAMES)

    def release(self) -> None:
        waiting, self.held = self.held or [], None
        for message in waiting:
            self._server.send(message)


def test_what_only_changes_the_view_is_drawn_while_the_server_is_silent(visitor: BrowserTab) -> None:
    visitor.is_altered = True
    line = Line(visitor.page)
    visitor.explore(text="A man didn't play.", pair="Someone plays.", head="L3H1")
    line.hold()
    _the_sides_of_a_pair(visitor)
    _units_links_colours_and_heads(visitor)
    assert (visitor.address["head"], visitor.address.get("side")) == ("L3H1", None), "the server has heard nothing yet"
    line.will_tell()
    line.release()
    visitor.wait_for_parameters(head="L5H11", scale="row", links="mass0.70", side="ab")


def _the_sides_of_a_pair(visitor: BrowserTab) -> None:
    for side in ("ab", "ba", "aa", "bb", "all"):
        visitor.wait_for_redraw(visitor.heat, partial(visitor.choose, "Pair", side))
    visitor.choose("Pair", "ab")
    expect(visitor.page.locator(".note")).to_contain_text("% of this head’s attention goes to hidden tokens.")
    said = weights_in(visitor.hover_word("man"))
    assert set(said) <= {"Someone", "plays", ".", "[SEP]"}


def _units_links_colours_and_heads(visitor: BrowserTab) -> None:
    for canvas, act in (
        (visitor.heat, partial(visitor.choose, "Pair", "all")),
        (visitor.heat, partial(visitor.press_segment, "tokens")),
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
        (visitor.heat, partial(visitor.choose, "Pair", "ab")),
    ):
        visitor.wait_for_redraw(canvas, act)
