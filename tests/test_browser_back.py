"""One action writes one entry of the browser's history: Back gives the address and the picture before it, Forward those
after it. A walk over the controls of every page, and back; with ``--all``, over all that change the address, with a
step back and forward after each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

import pytest
from playwright.sync_api import Locator, Page, TimeoutError, expect

from tests import lanes
from tests.browser_tab import FRAMES, BrowserTab, open_by_search

Act = Callable[[Page], object]
# What is seen of a page: texts, values, what is chosen, and every canvas, in order; not what comes and goes by itself.
PICTURE = """() => {
  const seen = [];
  const passing = "style, script, svg.main-svg, [role=status], [aria-live], [data-testid=stDataFrame], .stToast";
  const hash = ({ width, height }, canvas) => {
    if (!width || !height) return "empty";
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    let sum = 0;
    for (const word of new Uint32Array(data.buffer)) sum = (Math.imul(sum, 31) + word) | 0;
    return `canvas ${width}x${height} ${sum}`;
  };
  const look = (node) => {
    if (node instanceof Text && node.data.trim()) seen.push(node.data.trim());
    if (!(node instanceof Element) || node.matches(passing)) return;
    if (node instanceof Element && !node.checkVisibility({ visibilityProperty: true })) return;
    if (node instanceof HTMLCanvasElement) seen.push(hash(node, node));
    if (node.matches("input[type=radio], input[type=checkbox]")) seen.push(`${node.checked}`);
    else if (node.matches("input, select, textarea")) seen.push(`value ${node.value}`);
    for (const name of ["aria-pressed", "aria-checked", "aria-current", "aria-selected"])
      if (node.hasAttribute(name)) seen.push(`${name} ${node.getAttribute(name)}`);
    for (const child of (node.shadowRoot ?? node).childNodes) look(child);
  };
  look(document.querySelector("[data-testid=stMain]"));
  return seen;
}"""
# The script has run, and no element still waits for its code, as a table does.
QUIET = """() => document.querySelector(".stApp")?.dataset.testScriptState === "notRunning"
    && !document.querySelector("[data-testid=stSkeleton]")"""
STILL = 3  # equal pictures after each other that show a page at rest


class Seen(NamedTuple):
    """A page at rest: the entries of the history, the address, the picture."""

    entries: int
    address: str
    picture: list[str]


def at_rest(page: Page) -> Seen:
    """The page once nothing changes; nothing is pointed at."""
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement?.blur()")
    pictures: list[list[str]] = []
    for _ in range(400):
        page.wait_for_function(QUIET)
        page.evaluate(f"{FRAMES}.then(() => {FRAMES})")
        pictures = [*pictures[1 - STILL :], page.evaluate(PICTURE)]
        if len(pictures) == STILL and all(picture == pictures[0] for picture in pictures):
            return Seen(page.evaluate("history.length"), page.url, pictures[0])
    raise AssertionError("The page does not come to rest.")


def goes(page: Page, way: Callable[[], object], to: Seen, entries: int) -> None:
    """Check that a step in the history leads to what was seen there, and changes the history by nothing else."""
    way()
    expect(page).to_have_url(to.address)
    page.wait_for_function(f"({QUIET})")
    for _ in range(60):
        if (now := at_rest(page)).picture == to.picture:
            break
    assert now == to._replace(entries=entries)


def button(name: str, exact: bool = True) -> Act:
    return lambda page: page.get_by_role("button", name=name, exact=exact).first.click()


def more(name: str) -> Act:
    """A choice of the menu *More*."""
    return after(button("More"), button(name))


def radio(name: str) -> Act:
    return lambda page: page.get_by_role("radio", name=name, exact=True).first.click()


def menu(label: str, option: str) -> Act:
    """A menu of the drawings, and an option by its text or its value."""
    return lambda page: page.locator("label", has_text=label).locator("select").first.select_option(option)


def box(label: str, option: str) -> Act:
    """A menu of Streamlit. It closes when the page scrolls; in a long walk it was once closed, and why was not seen."""

    def act(page: Page) -> None:
        for _ in range(5):
            page.get_by_role("combobox", name=label, exact=True).click()
            with suppress(TimeoutError):
                return page.get_by_role("option", name=option).first.click(timeout=20_000)
        raise AssertionError(f"{label} has no {option}")

    return act


def segment(text: str) -> Act:
    return lambda page: page.locator(".segments").get_by_text(text, exact=True).first.click()


def drawing(act: Act) -> Act:
    """``act`` once the menu *Drawing* is open."""

    def opened(page: Page) -> None:
        closed = page.locator("details.drawing:not([open]) > summary")
        page.locator("details.drawing").first.wait_for()
        if closed.count():
            closed.first.click()
        act(page)

    return opened


def types(label: str, text: str) -> Act:
    def act(page: Page) -> None:
        page.get_by_label(label, exact=True).first.fill(text)
        page.get_by_label(label, exact=True).first.press("Enter")

    return act


def at(selector: str, x: float, y: float) -> Act:
    return lambda page: page.locator(selector).first.click(position={"x": x, "y": y})


def after(first: Act, second: Act) -> Act:
    """Two actions of which only the second changes the address."""

    def act(page: Page) -> None:
        first(page)
        second(page)

    return act


def closes_after(act: Act) -> Act:
    """An action in a box that opens over the page: whether that is open is not in the address."""
    return after(act, lambda page: page.keyboard.press("Escape"))


def slider_of(page: Page) -> Locator:
    return page.get_by_role("slider", name="Step of training")


def slider(page: Page) -> None:
    slider_of(page).press("ArrowRight")


def subtract(page: Page) -> None:
    page.get_by_role("combobox", name="The panel to subtract from").select_option(index=1)


def finds(text: str) -> Act:
    return lambda page: open_by_search(page, text)


EXAMPLES = after(button("Examples"), lambda page: page.get_by_role("button", name="The keys to the old").click())
PAIR = after(button("+ Second sentence"), types("Second sentence", "It slept."))
ADDED = after(
    after(button("Make a lesson"), types("Remark", "Look at the subject.")), closes_after(button("Add this view"))
)
DROPPED = after(button("Lesson: 1 view", exact=False), closes_after(button("Remove")))
RENAMED = after(button("Name of panel 1", exact=False), types("Name of this panel", "first"))
COMPARED = '{"of": [["The cat sat.", "", "minilm"]], "heads": [["L0H1", 0, ""], ["L3H1", 0, "mine"], ["L2H4", 0, ""]]}'
RANKED = "[class*=st-key-wide_effects] .js-plotly-plot >> visible=true"
# The walks: a path with its parameters, and the controls that change the address, one after another. Whether known
# roles are shown does not: the browser remembers it.
WALKS: Mapping[str, Mapping[str, Act]] = {
    "/": {
        "a sentence": types("Sentence", "Cats sleep."),
        "an example": EXAMPLES,
        "a head": at(".grid canvas", 200, 100),
        "a held word": at(".links canvas", 20, 60),
        "links": drawing(menu("Links", "top k per word")),
        "special tokens": drawing(segment("hidden")),
        "pieces": drawing(segment("pieces")),
        "colours": drawing(menu("Colour", "per row")),
        "another head of the layer": drawing(
            lambda page: page.locator(".heads button[aria-pressed=false]").first.click()
        ),
        "a quantity": drawing(
            lambda page: page.locator("label", has_text="Shown").locator("select").first.select_option("norm")
        ),
        "heads switched off": button("Switch off"),
        "a compared head": button("+ Compare"),
        "a search": finds("L3H1"),
        "a model": menu("Model", "Toy, trained on the built-in grammar"),
        "a second sentence": PAIR,
        "for a class": more("Class view"),
        "out of the class": button("Leave the class view"),
    },
    "/compare": {
        "a layer": radio("A whole layer"),
        "a word": radio("A word replaced"),
        "the map": radio("Map of all heads"),
        "similar": radio("Most similar heads"),
        "colours": drawing(menu("Colour scale", "logarithmic")),
        "special tokens": drawing(segment("shown")),
        "heatmaps": drawing(segment("links")),
        "links": drawing(menu("Links", "top k per word")),
        "pieces": drawing(segment("pieces")),
        "two models": radio("Two models"),
        "another model": box("Compare with", "Repeater"),
        "a compared head": lambda page: page.locator(".panel button", has_text="Compare").first.click(),
    },
    f"/compare?show=tray&tray={COMPARED}": {
        "a held word": at(".panel canvas:not(.over)", 120, 120),
        "a difference": drawing(subtract),
        "no difference": button("Close"),
        "a panel moved right": button("Move right: panel 1"),
        "a panel moved left": button("Move left: panel 2"),
        "a panel twice": button("Duplicate: panel 2"),
        "a name": RENAMED,
        "a removed panel": button("Remove", exact=False),
        "a quantity": box("Shown", "norm-weighted"),
        "a layer": radio("A whole layer"),
        "a head on its page": button("Open in Explore", exact=False),
    },
    "/roles": {
        "a kind": lambda page: page.get_by_role("link", name="syntax", exact=True).click(),
        "a row": lambda page: page.locator(".mha-rows a").first.click(),
        "a head": finds("L3H1"),
        "a square": lambda page: page.locator(".mha-map td a").nth(8).click(),
    },
    "/roles?model=toy": {
        "a kind": lambda page: page.get_by_role("link", name="syntax", exact=True).click(),
    },
    "/why_heads_differ?experiment=toy": {
        "a step": after(slider, lambda page: expect(slider_of(page)).to_have_attribute("aria-valuetext", "step 50")),
        "a training": radio("trained on hidden words alone"),
    },
    "/inside_a_head": {
        "softmax": lambda page: page.get_by_role("button", name="Softmax").first.click(),
        "undivided": lambda page: page.get_by_text("Without the division by").click(),
        "the next step": button("× v →"),
        "a query": box("Query", "street"),
        "a key": box("Key", "cross"),
        "a head of the map": radio("Head 5"),
        "a layer": box("Layer", "1"),
        "costs": types("tokens n", "65"),
        "a sentence": types("Sentence", "Cats sleep."),
    },
    "/why_heads_differ": {
        "an experiment": radio("Random start"),
        "numbers": lambda page: page.get_by_text("Numbers", exact=True).click(),
        "a step": slider,
        "another experiment": radio("Cutting the vector"),
        "another training": radio("chunks"),
    },
    "/?model=toy&off=none&more=1": {
        "a way": radio("even attention"),
        "a square": at(RANKED, 75, 40),
        "all on": button("Switch all on"),
        "one at random": button("One at random"),
        "a whole layer": box("A whole layer", "L1"),
        "an order": radio("least effect first"),
        "a sentence": types("Sentence", "The cat sleeps ."),
    },
    "/why_heads_differ?experiment=tasks": {
        "a task": radio("2"),
        "an answer": lambda page: page.locator(".st-key-small_answer button").first.click(),
        "another task": radio("1"),
    },
    "/about": {
        "for a class": more("Class view"),
        "a view of a lesson": ADDED,
        "no view of a lesson": DROPPED,
        "out of the class": button("Leave the class view"),
    },
}
FEW = {  # of each page, what the default run tries
    "/": ("a sentence", "a held word", "special tokens", "a compared head"),
    f"/compare?show=tray&tray={COMPARED}": ("a difference", "a removed panel", "a layer", "a head on its page"),
    "/roles?model=toy": ("a kind",),
    "/why_heads_differ?experiment=toy": ("a step",),
    "/why_heads_differ?experiment=tasks": ("a task", "an answer"),
}


@pytest.mark.parametrize("path", lanes.some(list(WALKS), *FEW), ids=lambda path: path[:20])
def test_one_action_is_one_entry_and_back_undoes_it(newcomer: Callable[..., BrowserTab], path: str) -> None:
    visitor = newcomer(new_tab=True)  # a tab holds 50 entries at most
    page = visitor.visit(path)
    page.wait_for_selector(".stApp")
    seen = [at_rest(page)]
    for name in lanes.some(list(WALKS[path]), *FEW.get(path, ())):
        before = seen[-1]
        WALKS[path][name](page)
        page.wait_for_function("left => location.href !== left", arg=before.address)
        seen.append(now := at_rest(page))
        assert now.entries == before.entries + 1, name
        if lanes.everything:
            goes(page, page.go_back, before, now.entries)
            goes(page, page.go_forward, now, now.entries)
    entries = seen[-1].entries
    for before in reversed([] if lanes.everything else seen[:-1]):
        goes(page, page.go_back, before, entries)
    if not lanes.everything:
        goes(page, page.go_forward, seen[1], entries)


def test_back_before_the_answer_brings_the_earlier_sentence_back(visitor: BrowserTab) -> None:
    page = visitor.explore(text="It rains.")
    at(".grid canvas", 200, 100)(page)
    page.wait_for_url(lambda url: "head=" in url)
    at_rest(page)
    page.locator(".mha-sentence").evaluate("root => { root.send = () => {}; }")  # the answer never comes
    types("Sentence", "Cats sleep.")(page)
    expect(visitor.field).to_have_value("Cats sleep.")
    page.go_back()
    expect(visitor.field).to_have_value("It rains.")
