"""One action writes one entry of the browser's history: Back gives the address and the picture before it, Forward those
after it. A walk over the controls of every page, and back; with ``--all``, over all that change the address, with a
step back and forward after each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

import mha_viz as mv
from tests import lanes, tiny_encoder_decoders
from tests.app_server import AppServer
from tests.browser_tab import FRAMES, BrowserTab
from tests.walks import FEW, FOLDED, PREPARATIONS, TRAINING, TWO_STACKS, WALKS, click_at, type_text

# What is seen of a page: texts, values, what is chosen, and every canvas, in order; not what comes and goes by itself.
PICTURE = """() => {
  const seen = [];
  const passing = "style, script, svg.main-svg, [role=status], [aria-live], [data-testid=stDataFrame], .stToast, "
    + "[data-testid=InputInstructions]";
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
VIEWS = ("mha_explorer.view:", "mha_compare.view:", "mha_scheme.linked:")  # events that name their parameters
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


def goes(page: Page, way: Callable[[], object], to: Seen, entries: int, name: str) -> None:
    """Check that a step in the history leads to what was seen there, and changes the history by nothing else. ``name``:
    of the action that is undone or repeated."""
    way()
    expect(page).to_have_url(to.address)
    page.wait_for_function(f"({QUIET})")
    for _ in range(60):
        if (now := at_rest(page)).picture == to.picture:
            break
    assert (now.entries, now.address) == (entries, to.address), name
    assert now.picture == to.picture, name


def goes_back(page: Page, path: str) -> None:
    """A step back in a walk; what it began with by unfolding is unfolded again where another page has folded it."""
    page.go_back()
    if path in FOLDED:
        at_rest(page)
        PREPARATIONS[path](page)


def changed(before: str, after: str) -> set[str]:
    """The parameters in which two addresses differ."""
    one, other = (parse_qs(urlsplit(address).query) for address in (before, after))
    return {name for name in {*one, *other} if one.get(name) != other.get(name)}


@pytest.fixture(scope="module")
def two_stacks(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a small encoder–decoder."""
    return str(tiny_encoder_decoders.build("t5", tmp_path_factory.mktemp("t5")))


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the profiles of two steps of a training."""
    place = tmp_path_factory.mktemp("training")
    (place / "a.txt").write_text("the dog saw the girl .\nshe saw the dog .\n", "utf-8")
    mv.roles.profile_all([place / "a.txt"], ["toy@0", "toy@400"], out=place / "out")
    with AppServer(place, MHA_VIZ_PROFILES=str(place / "out")) as server:
        yield server.url


@pytest.mark.parametrize("path", lanes.some(list(WALKS), *FEW), ids=lambda path: path[:20])
def test_one_action_is_one_entry_and_back_undoes_it(
    newcomer: Callable[..., BrowserTab], two_stacks: str, path: str, request: pytest.FixtureRequest
) -> None:
    servers = [request.getfixturevalue("training")] if path == TRAINING else []
    visitor = newcomer(*servers, new_tab=True)  # a tab holds 50 entries at most
    page = visitor.visit(path.replace(TWO_STACKS, two_stacks))
    page.wait_for_selector(".stApp")
    if path in PREPARATIONS:
        PREPARATIONS[path](page)
    seen = [at_rest(page)]
    for name in lanes.some(list(WALKS[path]), *FEW.get(path, ())):
        before = seen[-1]
        control, act = WALKS[path][name]
        act(page)
        page.wait_for_function("left => location.href !== left", arg=before.address)
        seen.append(now := at_rest(page))
        assert now.entries == before.entries + 1, name
        if control.startswith(VIEWS):
            assert control.partition(":")[2] in changed(before.address, now.address), name
        if control.startswith("link:"):
            to, _, parameters = control.partition(":")[2].partition("?")
            assert urlsplit(now.address).path == f"/{to}", name
            assert set(parameters.split(".")) - {""} <= changed(before.address, now.address), name
        if lanes.everything:
            goes(page, lambda: goes_back(page, path), before, now.entries, name)
            goes(page, page.go_forward, now, now.entries, name)
    entries = seen[-1].entries
    for before in reversed([] if lanes.everything else seen[:-1]):
        goes(page, lambda: goes_back(page, path), before, entries, before.address)
    if not lanes.everything:
        goes(page, page.go_forward, seen[1], entries, seen[1].address)


def test_back_before_the_answer_brings_the_earlier_sentence_back(visitor: BrowserTab) -> None:
    page = visitor.explore(text="It rains.")
    click_at(".grid canvas", 200, 100)(page)
    page.wait_for_url(lambda url: "head=" in url)
    at_rest(page)
    page.locator(".mha-sentence").evaluate("root => { root.send = () => {}; }")  # the answer never comes
    type_text("Sentence", "Cats sleep.")(page)
    expect(visitor.field).to_have_value("Cats sleep.")
    page.go_back()
    expect(visitor.field).to_have_value("It rains.")
