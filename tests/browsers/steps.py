"""The steps of the main job in any engine and at any size; most begin at an address of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.browsers.visit import Visit
from tests.waiting import until

Step = Callable[[Visit], None]
LIVE_TEXT = "the cat chased the girl because it was tired ."  # typed on a live page with the toy model
TEXT = "The cat sat on the mat because it was warm."
FIRST_TEXT = "The animal didn't cross the street because it was too tired."
FIELD = ("textarea", "^Sentence$")
FILE_NAME = "L3H1_the-animal-didnt-cross"
DOWNLOADS = {f"{FILE_NAME}.svg": "SVG", f"{FILE_NAME}.csv": "CSV", f"{FILE_NAME}.html": "Interactive HTML"}
GRID = ("canvas", "^All heads")
LABELS = (30, 22)  # pixels beside and above the squares of the grid
HEATMAP = ("canvas", "^Heatmap of ")
# Return whether no part of the page is wider than its window.
FITS_WIDTH = """() => [document.documentElement, document.querySelector("[data-testid=stMain]")]
    .every((part) => part.scrollWidth <= part.clientWidth)"""
# Return by how many pixels a field is too low or too high for its lines, the heights of the arcs below them, and the
# state of the fonts.
MEASURE_FIELD = """() => {
    const inside = (root) => [root, ...[...root.querySelectorAll("*")].flatMap((node) =>
        node.shadowRoot ? inside(node.shadowRoot) : [])];
    const root = inside(document).find((root) => root.querySelector("textarea"));
    const [field, mirror] = [root.querySelector("textarea"), root.querySelector(".mirror")];
    const words = document.createRange();
    words.selectNodeContents(mirror);
    const lines = new Set([...words.getClientRects()].map(({ top }) => Math.round(top))).size;
    const { lineHeight, paddingTop, paddingBottom } = getComputedStyle(field);
    const needed = lines * parseFloat(lineHeight) + parseFloat(paddingTop) + parseFloat(paddingBottom);
    return [Math.max(field.scrollHeight - field.clientHeight, Math.abs(field.clientHeight - needed) - 2),
        [...root.querySelectorAll(".bows path")].map((arc) => arc.getBoundingClientRect().height),
        document.fonts.status];
}"""
# Return a hash of the pixels of each canvas of a training.
HASH_CANVASES = """() => {
    const inside = (root) => [root, ...[...root.querySelectorAll("*")].flatMap((node) =>
        node.shadowRoot ? inside(node.shadowRoot) : [])];
    return inside(document).flatMap((root) => [...root.querySelectorAll(".mha-player canvas")]).map((canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return new Uint32Array(data.buffer).reduce((sum, colour) => (Math.imul(sum, 31) + colour) | 0, 0);
    });
}"""


def check_first_page(visit: Visit) -> None:
    """Check that the first picture appears without a click, with room for the sentence and its arcs."""
    visit.open("/")
    visit.wait_until_drawn()
    visit.wait_for(".readout", "^it attends to animal 0.677, ")
    assert visit.list_texts(*FIELD) == [FIRST_TEXT]
    until(lambda: len(visit.browser.run(MEASURE_FIELD)[1]) > 0)
    until(lambda: visit.browser.run(MEASURE_FIELD)[2] == "loaded")
    until(lambda: visit.browser.run(MEASURE_FIELD)[0] <= 0)  # the field is as high as its lines
    assert min(visit.browser.run(MEASURE_FIELD)[1]) > 8, "the arcs are flat"
    assert visit.browser.run(FITS_WIDTH)


def type_sentence(visit: Visit) -> None:
    """Type a sentence and check that it is read."""
    visit.fill(TEXT, *FIELD)
    visit.wait_for_parameters(text=TEXT)
    visit.wait_until_drawn()
    visit.wait_for("canvas", "^Heatmap of ")
    assert visit.list_texts(*FIELD) == [TEXT]


def hover_over_word(visit: Visit) -> None:
    """Check that the readout names the whole word under the pointer."""
    visit.open("/", head="L3H1")
    visit.wait_until_drawn()
    left, top, _, height = visit.find_box(*HEATMAP)
    for y in range(4, round(height), 6):
        visit.browser.point(left + 20, top + y)
        if visit.list_texts(".readout", "^street attends to "):
            return
    raise AssertionError("no row of the drawing says where “street” looks")


def pin_word(visit: Visit) -> None:
    """Check that a click pins the word and that the address records it."""
    visit.browser.press()
    visit.wait_for_parameters(pin="q8")
    visit.browser.point(2, 2)
    visit.wait_for(".readout", "^street attends to ")


def add_two_heads(visit: Visit) -> None:
    """Add two heads to the comparison."""
    visit.open("/", head="L3H1")
    for number, head in enumerate(("L3H1", "L0H2"), 1):
        if number == 2:
            _, _, width, height = visit.find_box(*GRID)
            visit.click(
                *GRID, x=LABELS[0] + 2.4 * (width - LABELS[0]) / 12, y=LABELS[1] + 0.4 * (height - LABELS[1]) / 6
            )
        visit.wait_for_parameters(head=head)
        visit.wait_until_drawn()
        visit.click("button", r"^\+ Compare$")
        visit.wait_for("a", rf"^Compare \({number}\)$")


def compare_heads(visit: Visit) -> None:
    """Check that both heads are shown side by side, with their difference."""
    visit.click("a", r"^Compare \(2\)$")
    visit.wait_for("canvas", "^Heatmap of panel 2, L0H2")
    visit.wait_for("canvas", "^Difference")
    assert len(visit.list_texts("canvas", "^Heatmap of panel ")) == 2
    visit.point("canvas", "^Difference")
    visit.wait_for(".difference .says", r" → .* [−+]0\.\d{3}")


def open_card(visit: Visit) -> None:
    """Open the card of a head by its square in the map of roles."""
    visit.open("/roles")
    visit.click("a", r"^L0H2 \(1-3\): token → the one before")
    visit.wait_for_parameters(head="L0H2")
    visit.wait_for("h2, h3, h4", r"^L0H2 \(1-3\)$")


def open_share(visit: Visit) -> None:
    """Open a stage of the computation and check that its chart is drawn."""
    visit.open("/inside_a_head", head="L3H1", q="10", k="2")
    visit.click("button", "^Share")
    visit.wait_for_parameters(step="share")
    visit.wait_for(".st-key-inside_stage .js-plotly-plot")


def play_training(visit: Visit) -> None:
    """Play a training and check that its maps change."""
    visit.open("/why_heads_differ", experiment="output")
    visit.wait_for("canvas", "^Where H0 looks")
    before = visit.browser.run(HASH_CANVASES)
    visit.click("button", "Play$")
    visit.wait_for("button", "Pause$")
    until(lambda: visit.browser.run(HASH_CANVASES) != before)
    visit.click("button", "Pause$")
    visit.wait_for("button", "Play$")


def switch_off(visit: Visit) -> None:
    """Switch the drawn head off and on again."""
    visit.open("/", head="L3H1")
    visit.wait_until_drawn()
    visit.click("button", "^Switch off$")
    visit.wait_for_parameters(off="L3H1")
    visit.wait_for(".off-note", "^L3H1 is off: ")
    visit.click("button", "^Switch on$")
    visit.wait_for_parameters(off=None)
    visit.wait_until_drawn()


def download_files(visit: Visit) -> None:
    """Download the figure as SVG, its numbers as CSV and the drawing as HTML."""
    visit.open("/", head="L3H1")
    visit.wait_until_drawn()
    visit.click("summary", "Download$")
    visit.wait_for("code", "import mha_viz")  # the last element of the panel; before it appears, the buttons may move
    for file, name in DOWNLOADS.items():
        visit.download(file, "button", f"^{name}$")


def go_back_and_forward(visit: Visit) -> None:
    """Follow links to two pages, go back to the first page, and forward again."""
    visit.open("/", head="L0H2")
    visit.wait_until_drawn()
    for name, element in NEXT_PAGES.items():
        visit.click("a", f"^{name}")
        visit.wait_for(*element)
        visit.wait_until_idle()
    names = list(NEXT_PAGES)
    visit.browser.back()
    visit.wait_for(*NEXT_PAGES[names[0]])
    visit.wait_until_idle()
    visit.browser.back()
    visit.wait_for_parameters(head="L0H2")
    visit.wait_until_drawn()
    visit.wait_for("h2", "^Head L0H2")
    for name in names:
        visit.browser.forward()
        visit.wait_for(*NEXT_PAGES[name])
        visit.wait_until_idle()


NEXT_PAGES = {"Roles": ("a", r"^L0H0 \(1-1\): "), "Inside a head": ("button", "^Share")}
STEPS: Mapping[str, Step] = {
    "first page": check_first_page,
    "type": type_sentence,
    "hover": hover_over_word,
    "hold": pin_word,
    "+ Compare twice": add_two_heads,
    "Compare with a difference": compare_heads,
    "a card on Roles": open_card,
    "a stage of Inside a head": open_share,
    "Play": play_training,
    "Switch off": switch_off,
    "three downloads": download_files,
    "Back and Forward": go_back_and_forward,
}


def check_exported_file(visit: Visit, file: Path) -> None:
    """Open a saved drawing from disk; check that it is painted and answers the pointer."""
    visit.browser.open(file.as_uri())
    until(lambda: visit.browser.run("() => document.documentElement.dataset.painted") == "yes")
    visit.wait_until_hidden(".mha-older")
    before = visit.list_texts(".readout")
    visit.point("canvas", x=60, y=60)
    until(lambda: visit.list_texts(".readout") != before)


def check_live_page(visit: Visit, address: str, readout: str) -> None:
    """Type a sentence on a page with its own model and check that it is read."""
    visit.browser.open(address)
    visit.fill(LIVE_TEXT, "textarea, input")
    visit.wait_for("[role=status]", "^Read on this device: ")
    visit.wait_for(".readout", readout)
