"""A page that reads by itself in a real browser: the numbers of the library, on the reader's own device, from static
files, and offline after the first sentence."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

import mha_viz as mv
from mha_viz.analysis.bundled_data import list_head_recipes, load_bundled_roles
from mha_viz.attention import Head
from mha_viz.errors import EmptyText
from mha_viz.figures.layout.packet import collect_axis_tokens
from mha_viz.figures.words.role_words import get_plain_name, group_by_head
from mha_viz.models.reading import onnx
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load_one_stack
from tests import hostile, lanes
from tests.axe import check_with_axe
from tests.browser_tab import PATIENCE, PHONE
from tests.live_pages import CLOSE, EXAMPLE, Answer, format_strongest, list_parts, read_in_page, serve_folder, write
from tools import four_questions

TEXT = "The dog didn't chase the cat."
OTHER = "A bird sees <b>it</b>."
OF_THEM = (
    *("one letter", "nul", "control characters", "high surrogate alone", "not characters", "replacement character"),
    *("emoji family of seven code points", "right to left", "right-to-left override", "chinese", "thai without blanks"),
    *("combining marks", "zero width", "byte order mark", "lengthening lower case", "closing script"),
    *("typed special tokens", "typed special tokens of other families", "one word repeated", "four hundred words"),
)
# Waits until the service worker has stored what it lists.
ALL_STORED = r"""async () => {
    const source = await (await fetch("offline.js")).text();
    const { all } = JSON.parse(source.match(/\{"first".*\}/)[0]);
    for (;;) {
        const found = await Promise.all(all.map((name) => caches.match(name)));
        if (found.every(Boolean)) return;
        await new Promise((resolve) => setTimeout(resolve, 100));
    }
}"""
# Keeps what an element says from now on.
FOLLOWED = """(one) => {
    window.said = [];
    new MutationObserver(() => said.push(one.textContent)).observe(one, { childList: true });
}"""
FAMILIES = ("toy", "repeater", "bert", "distilbert", "electra", "gpt2", "roberta")

pytestmark = pytest.mark.filterwarnings("ignore:.* reads at most .* tokens:UserWarning")


def same(model: Encoder, text: str, answer: Answer) -> None:
    """The answer to a text is the library's reading."""
    try:
        expected = model.encode(text)
    except EmptyText:
        assert answer.refusal
        return
    tokens = collect_axis_tokens(expected.queries)
    assert {field: answer.reading[field] for field in tokens} == tokens
    assert np.abs(answer.weights - expected.weights).max() <= CLOSE


def test_a_sentence_is_typed_and_read_without_a_server_and_without_a_network(
    page: Page, toy: Encoder, live_toy: Path
) -> None:
    requested, faults = list[str](), list[str]()
    page.context.on("request", lambda request: requested.append(request.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    with serve_folder(live_toy) as (address, stop):
        page.goto(address)
        live, status = page.locator("#live"), page.get_by_role("status")
        expect(live).to_contain_text(format_strongest(toy, EXAMPLE))  # the example is drawn at once, without the model
        assert not [url for url in requested if ".onnx" in url or ".wasm?" in url]
        expect(live).to_contain_text("nothing leaves this device")
        page.get_by_label("Sentence", exact=True).focus()
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type(TEXT)
        page.keyboard.press("Enter")
        expect(status).to_have_text("Read on this device: 10 tokens.")
        expect(live).to_contain_text(format_strongest(toy, TEXT))
        for text, answer in zip((TEXT, OTHER), read_in_page(page, (TEXT, OTHER)), strict=True):
            same(toy, text, answer)
        assert [url for url in requested if not url.startswith((address, "data:", "blob:"))] == []
        assert [url for url in requested if "dog" in url] == []
        page.evaluate(ALL_STORED)
        stop()
        page.context.set_offline(True)
        page.reload()
        page.get_by_label("Sentence", exact=True).fill(OTHER)
        page.get_by_role("button", name="Read").click()
        expect(status).to_have_text(re.compile(r"Read on this device"))
        expect(live).to_contain_text(format_strongest(toy, OTHER))
    assert faults == []


def test_what_is_known_of_the_heads_is_shown_as_on_explore(page: Page, toy: Encoder, live_toy: Path) -> None:
    recipes = list_head_recipes("toy", toy.revision)
    with serve_folder(live_toy) as (address, _):
        page.goto(address)
        live = page.locator("#live")
        live.locator(".preview details.more > summary").click()
        expect(live.locator(".rules > div")).to_have_count(len(recipes[0].parts) + 1)
        expect(live.locator(".rules")).to_contain_text("41% [41%, 42%]")
        live.locator("details.drawing > summary").click()
        page.get_by_label("Label roles").check()
        name = get_plain_name(group_by_head(load_bundled_roles("toy"))[Head(1, 1)][0])
        chip = live.locator(".chip:visible").filter(has_text=name).first
        expect(chip).to_be_visible()
        chip.get_by_role("button").click()
        expect(chip.get_by_role("tooltip")).to_be_visible()
        expect(chip.get_by_role("tooltip")).not_to_contain_text("card")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            check_with_axe(page)
        page.set_viewport_size(PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        check_with_axe(page)


def test_a_changed_page_is_shown_with_the_next_visit_and_then_without_a_network(
    page: Page, toy: Encoder, live_toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site"
    shutil.copytree(live_toy, folder)
    graph = onnx.Graph(b"".join(list_parts(live_toy)), deviation=0.0)
    monkeypatch.setattr(onnx, "export_graph", lambda *_: graph)  # of the same model
    with serve_folder(folder) as (address, stop):
        page.goto(address)
        page.evaluate("async () => { await navigator.serviceWorker.ready }")
        page.get_by_role("button", name="Read").click()
        expect(page.get_by_role("status")).to_have_text(re.compile("Read on this device"))
        again = mv.publish([(toy.encode(EXAMPLE), "L1H0")], folder, live=toy, title="Changed")
        assert again == folder
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_have_text("Changed")
        page.get_by_role("button", name="Read").click()
        expect(page.get_by_role("status")).to_have_text(re.compile("Read on this device"))
        page.evaluate(ALL_STORED)
        stop()
        page.context.set_offline(True)
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text("Changed")
        page.get_by_role("button", name="Read").click()
        expect(page.get_by_role("status")).to_have_text(re.compile("Read on this device"))


def test_a_page_that_is_opened_as_a_file_says_how_it_is_served(page: Page, live_toy: Path) -> None:
    page.goto((live_toy / "index.html").as_uri())
    expect(page.locator("#live")).to_contain_text("In its folder, run python -m http.server")
    with serve_folder(live_toy) as (address, _):
        page.goto(address)
        expect(page.locator("#live")).to_contain_text(re.compile("strongest", re.IGNORECASE))
        expect(page.locator("#unserved")).to_have_count(0)


def test_the_fetched_megabytes_are_said_and_what_is_set_stays_with_the_next_sentence(
    page: Page, toy: Encoder, live_toy: Path
) -> None:
    with serve_folder(live_toy) as (address, _):
        page.goto(address)
        live, status = page.locator("#live"), page.get_by_role("status")
        live.locator("details.drawing > summary").click()
        for name in ("tokens", "hidden, rescaled"):
            live.get_by_role("radio", name=name).check()
        status.evaluate(FOLLOWED)
        page.get_by_label("Sentence", exact=True).fill(TEXT)
        page.get_by_label("Sentence", exact=True).press("Enter")
        expect(status).to_have_text(re.compile("Read on this device"))
        statuses = page.evaluate("window.said")
        assert [words for words in statuses if re.fullmatch(r"Downloading the model: 0\.\d of 0\.4 MB", words)]
        for name in ("tokens", "hidden, rescaled"):
            expect(live.get_by_role("radio", name=name)).to_be_checked()
        expected = toy.encode(TEXT).without_special()["L1H1"].max()
        expect(live).to_contain_text(f"{expected:.3f}")


def test_what_cannot_be_read_is_said_in_place(page: Page, live_toy: Path) -> None:
    with serve_folder(live_toy) as (address, _):
        page.goto(address)
        field, status = page.get_by_label("Sentence", exact=True), page.get_by_role("status")
        field.fill("  ")
        field.press("Enter")
        expect(status).to_have_text("Type a sentence first.")
        field.fill("cat " * 60)
        field.press("Enter")
        expect(status).to_contain_text("reads at most 40 tokens; the rest of the text is cut")


@pytest.mark.parametrize("name", ["model.0.onnx", "reader.js"])
def test_a_model_that_does_not_come_is_fetched_again_with_the_next_sentence(
    browser: Browser, live_toy: Path, name: str
) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    with serve_folder(live_toy) as (address, _):
        page.route(f"**/{name}?*", lambda route: route.abort())
        page.goto(address)
        status = page.get_by_role("status")
        page.get_by_role("button", name="Read").click()
        expect(status).to_have_text("The model could not be downloaded or run. Check the connection, then try again.")
        page.unroute_all()
        page.get_by_role("button", name="Read").click()
        expect(status).to_have_text(re.compile("Read on this device"))
    context.close()


def test_a_model_that_is_too_large_for_the_browser_is_said_and_nothing_is_lost(
    browser: Browser, toy: Encoder, live_toy: Path
) -> None:
    described = json.loads((live_toy / "model.json").read_text("utf-8"))
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    with serve_folder(live_toy) as (address, _):
        page.route("**/model.json?*", lambda route: route.fulfill(json={**described, "bytes": 10**14}))
        page.goto(address)
        live, status = page.locator("#live"), page.get_by_role("status")
        expect(live).to_contain_text(format_strongest(toy, EXAMPLE))
        page.get_by_label("Sentence", exact=True).fill(TEXT)
        page.get_by_role("button", name="Read").click()
        said = "The model is too large for this browser. Open the page on a device with more memory."
        expect(status).to_have_text(said)
        expect(page.get_by_label("Sentence", exact=True)).to_have_value(TEXT)
        expect(live).to_contain_text(format_strongest(toy, EXAMPLE))
        page.unroute_all()
        page.get_by_role("button", name="Read").click()
        expect(status).to_have_text(re.compile("Read on this device"))
    context.close()


# What the stores of the host hold, and how many service workers it has.
KEPT = """async () => {
    const stores = await Promise.all((await caches.keys()).map((name) => caches.open(name)));
    const requests = await Promise.all(stores.map((store) => store.keys()));
    const workers = await navigator.serviceWorker.getRegistrations();
    return { urls: requests.flat().map(({ url }) => url), stores: stores.length, workers: workers.length };
}"""


def test_the_worker_answers_for_nothing_else_on_the_host(page: Page, live_toy: Path) -> None:
    """Another app below the root at which the page is: its pages and data stay its own, with a query and without."""
    asked = count()
    other = re.compile(r"/(other/|search|page\.js\?x|\?q=|index\.html\?|model\.json$)")
    with serve_folder(live_toy, lambda path: f"<p>{next(asked)}</p>".encode() if other.match(path) else None) as (
        address,
        _,
    ):
        page.goto(address)
        page.evaluate("async () => { await navigator.serviceWorker.ready }")
        page.reload()
        assert page.evaluate("!!navigator.serviceWorker.controller")
        page.get_by_role("button", name="Read").click()
        expect(page.get_by_role("status")).to_have_text(re.compile("Read on this device"))
        page.evaluate(ALL_STORED)
        names = ("other/page?x=1", "other/data", "search?q=a", "page.js?x", "?q=1", "index.html?a", "model.json")
        for name in names:
            texts = [page.evaluate("(name) => fetch(name).then((r) => r.text())", name) for _ in range(3)]
            assert len({*texts}) == 3, (name, texts)
        kept = page.evaluate(KEPT)
        listed = re.findall(r'"([^"]+)"', re.search(r"\{\"first\".*?\}", (live_toy / "offline.js").read_text())[0])
        assert {*kept["urls"]} == {address + name.removeprefix("./") for name in listed if name not in ("first", "all")}


@pytest.mark.parametrize("instead", ["nothing", "an app that answers everything"])
def test_the_worker_goes_when_something_else_is_in_its_place(
    page: Page, live_toy: Path, tmp_path: Path, instead: str
) -> None:
    folder, replaced = tmp_path / "site", list[bytes]()
    shutil.copytree(live_toy, folder)
    with serve_folder(folder, lambda _: replaced[0] if replaced else None) as (address, _):
        page.goto(address)
        page.evaluate("async () => { await navigator.serviceWorker.ready }")
        page.get_by_role("button", name="Read").click()
        expect(page.get_by_role("status")).to_have_text(re.compile("Read on this device"))
        page.evaluate(ALL_STORED)
        if instead == "nothing":
            for file in folder.iterdir():
                file.unlink()
            (folder / "index.html").write_text("<h1>Another page</h1>")
        else:
            replaced.append(b"<h1>Another page</h1>")
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_have_text("Another page")
        page.wait_for_function(f"async () => !(await ({KEPT})()).workers")
        assert page.evaluate(KEPT) == {"urls": [], "stores": 0, "workers": 0}


@pytest.mark.parametrize("name", lanes.some(FAMILIES, "toy"))
def test_attention_is_that_of_the_library(
    page: Page, toy: Encoder, tiny: Callable[[str], Encoder], tmp_path: Path, live_toy: Path, name: str
) -> None:
    model = toy if name == "toy" else load_one_stack(name) if name == "repeater" else tiny(name)
    reads_as_the_library(page, live_toy if name == "toy" else write(model, tmp_path / "site"), model)


def reads_as_the_library(page: Page, folder: Path, model: Encoder) -> None:
    """Twenty hostile texts have the library's pieces, words and weights."""
    texts = [hostile.TEXTS[text] for text in OF_THEM]
    assert len(texts) == 20
    with serve_folder(folder) as (address, _):
        page.goto(address)
        answers = read_in_page(page, texts)
    for text, answer in zip(texts, answers, strict=True):
        same(model, text, answer)


def test_the_page_of_four_questions_asks_them_has_a_picture_and_reads_as_the_library(
    page: Page, minilm: Encoder, tmp_path: Path
) -> None:
    address = "https://example.org/heads"
    site = tmp_path / "site"
    four_questions.main(site, address)
    reads_as_the_library(page, site, minilm)
    for question, remark in four_questions.QUESTIONS.values():
        expect(page.get_by_role("heading", name=question)).to_be_visible()
        expect(page.get_by_text(remark, exact=True)).to_be_visible()
    picture = page.locator('meta[property="og:image"]').get_attribute("content")
    assert picture == f"{address}/card.png"
    with Image.open(site / "card.png") as card:
        assert abs(card.width - 1200) <= 10


def test_halves_differ_by_what_the_page_says(page: Page, toy: Encoder, tmp_path: Path) -> None:
    folder = write(toy, tmp_path / "half", half=True)
    page_text = (folder / "index.html").read_text("utf-8")
    stated = re.search(r"weights differ by up to ([\d.e-]+) from full precision", page_text)
    assert stated
    with serve_folder(folder) as (address, _):
        page.goto(address)
        (answer,) = read_in_page(page, [EXAMPLE])
    deviation = np.abs(answer.weights - toy.encode(EXAMPLE).weights).max()
    assert 0 < deviation <= float(stated[1]) + CLOSE
    assert float(stated[1]) < 5 * deviation, "of the 21 sentences, the example is no exception"
