"""The steps of the main job, each from an address of its own, for all engines and sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.browsers.visit import Visit
from tests.waiting import until

Step = Callable[[Visit], None]
TOLD = "the cat chased the girl because it was tired ."  # to the model of the built-in grammar
MAT = "The cat sat on the mat because it was warm."
FIRST = "The animal didn't cross the street because it was too tired."
FIELD = ("textarea", "^Sentence$")
NAME = "L3H1_the-animal-didnt-cross"
DOWNLOADS = {f"{NAME}.svg": "SVG", f"{NAME}.csv": "CSV", f"{NAME}.html": "Interactive HTML"}
GRID = ("canvas", "^All heads")
LABELS = (30, 22)  # pixels beside and above the squares of the grid
HEAT = ("canvas", "^Heatmap of ")
# No part of the page is wider than its window.
ONLY_DOWN = """() => [document.documentElement, document.querySelector("[data-testid=stMain]")]
    .every((part) => part.scrollWidth <= part.clientWidth)"""
# By how many pixels a field is too low or too high for its lines, the heights of the arcs below them, the state of the
# fonts.
ROOM = """() => {
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
# What is painted on each canvas of a training, as one number.
PAINTED = """() => {
    const inside = (root) => [root, ...[...root.querySelectorAll("*")].flatMap((node) =>
        node.shadowRoot ? inside(node.shadowRoot) : [])];
    return inside(document).flatMap((root) => [...root.querySelectorAll(".mha-player canvas")]).map((canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return new Uint32Array(data.buffer).reduce((sum, colour) => (Math.imul(sum, 31) + colour) | 0, 0);
    });
}"""


def first_page(visit: Visit) -> None:
    """Check that the first picture appears without a click, with room for the sentence and its arcs."""
    visit.open("/")
    visit.drawn()
    visit.shows(".readout", "^it attends to animal 0.677, ")
    assert visit.texts(*FIELD) == [FIRST]
    until(lambda: len(visit.browser.run(ROOM)[1]) > 0)
    until(lambda: visit.browser.run(ROOM)[2] == "loaded")
    until(lambda: visit.browser.run(ROOM)[0] <= 0)  # the field shows its lines whole, and is no higher
    assert min(visit.browser.run(ROOM)[1]) > 8, "no smear"
    assert visit.browser.run(ONLY_DOWN)


def types(visit: Visit) -> None:
    """Type a sentence and check that it is read."""
    visit.fill(MAT, *FIELD)
    visit.asked(text=MAT)
    visit.drawn()
    visit.shows("canvas", "^Heatmap of ")
    assert visit.texts(*FIELD) == [MAT]


def hovers(visit: Visit) -> None:
    """Check that the readout names the whole word under the pointer."""
    visit.open("/", head="L3H1")
    visit.drawn()
    left, top, _, height = visit.box(*HEAT)
    for y in range(4, round(height), 6):
        visit.browser.point(left + 20, top + y)
        if visit.texts(".readout", "^street attends to "):
            return
    raise AssertionError("no row of the drawing says where “street” looks")


def holds(visit: Visit) -> None:
    """Check that a click pins the word and that the address records it."""
    visit.browser.press()
    visit.asked(pin="q8")
    visit.browser.point(2, 2)
    visit.shows(".readout", "^street attends to ")


def pins(visit: Visit) -> None:
    """Keep two heads for a comparison."""
    visit.open("/", head="L3H1")
    for number, head in enumerate(("L3H1", "L0H2"), 1):
        if number == 2:
            _, _, width, height = visit.box(*GRID)
            visit.click(
                *GRID, x=LABELS[0] + 2.4 * (width - LABELS[0]) / 12, y=LABELS[1] + 0.4 * (height - LABELS[1]) / 6
            )
        visit.asked(head=head)
        visit.drawn()
        visit.click("button", r"^\+ Compare$")
        visit.shows("a", rf"^Compare \({number}\)$")


def compares(visit: Visit) -> None:
    """Check that both heads stand side by side, with the difference between them."""
    visit.click("a", r"^Compare \(2\)$")
    visit.shows("canvas", "^Heatmap of panel 2, L0H2")
    visit.shows("canvas", "^Difference")
    assert len(visit.texts("canvas", "^Heatmap of panel ")) == 2
    visit.point("canvas", "^Difference")
    visit.shows(".difference .says", r" → .* [−+]0\.\d{3}")


def opens_card(visit: Visit) -> None:
    """Open the card of a head in place by its square in the map of roles."""
    visit.open("/roles")
    visit.click("a", r"^L0H2 \(1-3\): token → the one before")
    visit.asked(head="L0H2")
    visit.shows("h2, h3, h4", r"^L0H2 \(1-3\)$")


def looks_inside(visit: Visit) -> None:
    """Open a step of the computation and check that its chart is drawn."""
    visit.open("/inside_a_head", head="L3H1", q="10", k="2")
    visit.click("button", "Softmax")
    visit.asked(step="share")
    visit.shows(".st-key-inside_stage .js-plotly-plot")


def plays(visit: Visit) -> None:
    """Play a training and check that its maps change."""
    visit.open("/why_heads_differ", experiment="output")
    visit.shows("canvas", "^Where H0 looks")
    before = visit.browser.run(PAINTED)
    visit.click("button", "Play$")
    visit.shows("button", "Pause$")
    until(lambda: visit.browser.run(PAINTED) != before)
    visit.click("button", "Pause$")
    visit.shows("button", "Play$")


def switches_off(visit: Visit) -> None:
    """Switch a head off where it is drawn."""
    visit.open("/", head="L3H1")
    visit.drawn()
    visit.click("button", "^Switch off$")
    visit.asked(off="L3H1")
    visit.shows(".off-note", "^L3H1 is off: ")
    visit.click("button", "^Switch on$")
    visit.asked(off=None)
    visit.drawn()


def downloads(visit: Visit) -> None:
    """Download the figure as SVG, its numbers as CSV and the drawing as HTML."""
    visit.open("/", head="L3H1")
    visit.drawn()
    visit.click("summary", "Download$")
    visit.shows("code", "import mha_viz")  # the last of the panel: below a late one the page grows
    for file, name in DOWNLOADS.items():
        visit.downloaded(file, "button", f"^{name}$")


def goes_back_and_forward(visit: Visit) -> None:
    """Go from page to page and back, and forward again."""
    visit.open("/", head="L0H2")
    visit.drawn()
    for name, what in WAY.items():
        visit.click("a", f"^{name}")
        visit.shows(*what)
        visit.rests()
    names = list(WAY)
    visit.browser.back()
    visit.shows(*WAY[names[0]])
    visit.rests()
    visit.browser.back()
    visit.asked(head="L0H2")
    visit.drawn()
    visit.shows("h2", "^Head L0H2")
    for name in names:
        visit.browser.forward()
        visit.shows(*WAY[name])
        visit.rests()


WAY = {"Roles": ("a", r"^L0H0 \(1-1\): "), "Inside a head": ("button", "Softmax")}
STEPS: Mapping[str, Step] = {
    "first page": first_page,
    "type": types,
    "hover": hovers,
    "hold": holds,
    "+ Compare twice": pins,
    "Compare with a difference": compares,
    "a card on Roles": opens_card,
    "a step of Inside a head": looks_inside,
    "Play": plays,
    "Switch off": switches_off,
    "three downloads": downloads,
    "Back and Forward": goes_back_and_forward,
}


def exported_file(visit: Visit, file: Path) -> None:
    """Open a saved drawing from disk; check that it is painted and answers the pointer."""
    visit.browser.open(file.as_uri())
    until(lambda: visit.browser.run("() => document.documentElement.dataset.painted") == "yes")
    visit.hides(".mha-older")
    said = visit.texts(".readout")
    visit.point("canvas", x=60, y=60)
    until(lambda: visit.texts(".readout") != said)


def live_page(visit: Visit, address: str, says: str) -> None:
    """Type a sentence on a page with its own model and check that it is read."""
    visit.browser.open(address)
    visit.fill(TOLD, "textarea, input")
    visit.shows("[role=status]", "^Read on this device: ")
    visit.shows(".readout", says)
