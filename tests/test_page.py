"""A figure as one HTML file: opened from disk without a network, in a real browser, with any tokens."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

import mha_viz as mv
from mha_viz.attention import Attention, Head
from mha_viz.figures.files.page import compress_packet, embed_page, render_page
from mha_viz.figures.layout.packet import build_packet
from mha_viz.options import AnyFigure
from tests import hostile
from tests.page_scripts import ask_packet
from tests.readings import make_long_reading, reading
from tests.waiting import PATIENCE


class Tab:
    """A page from disk, with all its errors and all its requests."""

    def __init__(self, page_: Page) -> None:
        self.page = page_
        self.faults: list[str] = []
        self.asked: list[str] = []
        page_.set_default_timeout(1000 * PATIENCE)
        page_.on("pageerror", lambda error: self.faults.append(str(error)))
        page_.on("console", lambda message: self.faults.append(message.text) if message.type == "error" else None)
        page_.on("dialog", lambda dialog: (self.faults.append(dialog.message), dialog.dismiss()))
        page_.on("request", lambda request: self.asked.append(request.url))

    def open(self, path: Path, hash_: str = "") -> Page:
        self.page.goto(f"{path.as_uri()}{hash_}")
        expect(self.page.locator("html")).to_have_attribute("data-painted", "yes", timeout=1000 * PATIENCE)
        return self.page

    def colours(self, canvas: str) -> int:
        count: int = self.page.locator(canvas).first.evaluate(
            "c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
        )
        return count

    def check_no_faults(self) -> None:
        assert self.faults == []
        assert [url for url in self.asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
        assert self.page.evaluate("window.__xss") is None


@pytest.fixture(scope="module")
def offline(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """A profile without a network. One tab stays open, so that no test has to start a new process."""
    empty = tmp_path_factory.mktemp("page") / "empty.html"
    empty.write_text("<!DOCTYPE html><title>empty</title>", "utf-8")
    context = browser.new_context(viewport={"width": 1200, "height": 900}, offline=True)
    context.new_page().goto(empty.as_uri())
    yield context
    context.close()


@pytest.fixture
def tab(offline: BrowserContext) -> Iterator[Tab]:
    opened = Tab(offline.new_page())
    yield opened
    opened.check_no_faults()
    opened.page.close()


def saved(figure: AnyFigure, folder: Path) -> Path:
    return figure.save(folder / "figure.html")


def test_a_grid_is_painted_and_a_click_opens_a_head(tab: Tab, tmp_path: Path) -> None:
    page_ = tab.open(saved(reading(3, 4).grid(), tmp_path))
    for canvas in (".grid canvas", ".links canvas", ".heat canvas"):
        assert tab.colours(canvas) > 4
    box = page_.locator(".grid canvas").bounding_box()
    assert box
    step = (box["width"] - 30) / 4
    page_.locator(".grid canvas").click(position={"x": 30 + 2.4 * step, "y": 22 + 1.4 * step})
    expect(page_.locator(".one h2 code")).to_contain_text("L1H2 (2-3)")
    expect(page_).to_have_url(re.compile("head=L1H2"))
    page_.reload()
    expect(page_.locator(".one h2 code")).to_contain_text("L1H2 (2-3)")
    expect(page_.get_by_text("+ Compare")).to_be_hidden()  # there is no server to store compared heads


@pytest.mark.parametrize(("kind", "gone"), [("links", ".heat"), ("heatmap", ".links")])
def test_one_head_alone_opens_as_it_was_asked_for(tab: Tab, tmp_path: Path, kind: str, gone: str) -> None:
    figure = getattr(reading(3, 4), kind)(layer=2, head=3, pin="q2", special="rescale")
    page_ = tab.open(saved(figure, tmp_path))
    expect(page_.locator(".one h2 code")).to_contain_text("L2H3 (3-4)")
    expect(page_.locator(".grid canvas")).to_be_hidden()
    expect(page_.locator(gone)).to_be_hidden()
    expect(page_.locator("#caption")).to_have_text(figure.caption)
    assert tab.colours(f".{'heat' if kind == 'heatmap' else kind} canvas") > 3
    expect(page_.locator(".note")).to_contain_text("went to hidden tokens before rescaling")
    if kind == "heatmap":  # a small matrix: what its rows and columns are stands together over it
        words = page_.locator(".heat .ends > *")
        rows, columns = (words.nth(i).bounding_box() for i in (0, 1))
        assert rows
        assert columns
        assert columns["x"] - (rows["x"] + rows["width"]) < 60


def test_a_reading_without_special_tokens_never_claims_that_nothing_is_hidden(tab: Tab, tmp_path: Path) -> None:
    attention = reading(3, 4).without_special()
    page_ = tab.open(saved(attention.heatmap(2, 3, unit="pieces"), tmp_path))
    share = 100 * attention.hidden[2, 3].mean()
    expect(page_.locator(".note")).to_have_text(
        f"{share:.1f}% of this head’s attention went to hidden tokens before rescaling."
    )


def test_attention_from_one_text_to_another_is_painted_and_pinned_on_both_sides(tab: Tab, tmp_path: Path) -> None:
    rows, columns = ["▁Das", "▁Ti", "er"], ["▁The", "▁ani", "mal", "▁was", "▁tired", "</s>"]
    weights = np.random.default_rng(0).dirichlet(np.full(6, 0.4), (2, 3, 3)).astype(np.float32)
    cross = Attention.from_tensors(weights, rows, columns)
    page_ = tab.open(saved(cross.grid(), tmp_path))
    for canvas in (".grid canvas", ".links canvas", ".heat canvas"):
        assert tab.colours(canvas) > 4
    selects = page_.locator(".ask select")
    expect(selects.nth(0).locator("option")).to_have_count(0)  # filled when somebody looks
    page_.locator("details.more > summary").click()
    expect(selects.nth(0).locator("option")).to_have_text(["choose…", "0 Das", "1 Tier"])
    expect(selects.nth(1).locator("option")).to_have_count(6)
    page_ = tab.open(saved(cross.heatmap(1, 2, pin="q1k4"), tmp_path))
    link = f"{cross.by_words()['L1H2'][1, 3]:.3f}"
    expect(page_.locator(".readout")).to_have_text(f"Tier → tired {link}")
    page_.locator(".drawing > summary").click()
    page_.get_by_text("These weights as a table").click()
    expect(page_.locator(".tablebox tbody th")).to_have_text(["Das", "Tier"])
    expect(page_.locator(".tablebox thead th")).to_have_text(["The", "animal", "was", "tired", "</s>"])


def test_a_comparison_has_its_panels_and_no_tools_that_need_a_server(tab: Tab, tmp_path: Path) -> None:
    one, two = reading(seed=1), reading(seed=2)
    page_ = tab.open(saved(mv.compare([(one, "L0H1"), (two, "L1H2", "mine")]), tmp_path))
    expect(page_.locator("article.panel")).to_have_count(2)
    expect(page_.locator("article.panel").nth(1)).to_contain_text("mine")
    expect(page_.locator(".tools").first).to_be_hidden()
    assert tab.colours("article.panel canvas") > 4


def test_the_page_follows_the_readers_light(tab: Tab, tmp_path: Path) -> None:
    page_ = tab.open(saved(reading().grid(), tmp_path))
    for scheme in ("light", "dark"):
        page_.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        paper = page_.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 300) is (scheme == "dark")


def _of_hostile_tokens(canvas: str) -> AnyFigure:
    """A figure with every hostile text as a token."""
    tokens = [text[:300] for text in hostile.TEXTS.values()]
    attention = Attention.from_tensors([np.full((1, len(tokens), len(tokens)), 1 / len(tokens))], tokens)
    if canvas == "article.panel canvas":
        other = Attention.from_tensors([np.eye(len(tokens))[None]], tokens[::-1])
        return mv.compare([(attention, "L0H0"), (other, "L0H0")], kind="links")
    if canvas == ".difference canvas":
        return mv.difference((attention, "L0H0"), (attention, "L0H0"))
    if canvas == ".grid canvas":
        return attention.grid()
    return attention.links(layer=0, head=0) if canvas == ".links canvas" else attention.heatmap(0, 0, pin="q0")


@pytest.mark.parametrize(
    "canvas", [".links canvas", ".heat canvas", ".grid canvas", "article.panel canvas", ".difference canvas"]
)
def test_hostile_tokens_run_nothing(tab: Tab, tmp_path: Path, canvas: str) -> None:
    page_ = tab.open(saved(_of_hostile_tokens(canvas), tmp_path))
    assert tab.colours(canvas) > 1
    assert page_.locator("script").count() == 2


SEVERAL = 8  # texts on a page


@pytest.mark.parametrize("first", range(0, len(hostile.KINDS), SEVERAL))
def test_hostile_titles_and_names_of_models_run_nothing(tab: Tab, tmp_path: Path, first: int) -> None:
    texts = list(hostile.KINDS.values())[first : first + SEVERAL]
    panels = [
        (Attention.from_tensors([np.full((1, 2, 2), 0.5)], [text[:300], "x"], model=text[:50]), "L0H0", text[:300])
        for text in texts
    ]
    page_ = tab.open(saved(mv.compare(panels, kind="links"), tmp_path))
    expect(page_.locator("article.panel")).to_have_count(len(texts))
    for index in range(len(texts)):
        assert tab.colours(f"article.panel >> nth={index} >> canvas") > 1
    assert page_.locator("script").count() == 2


@pytest.mark.parametrize("first", range(0, len(hostile.KINDS), 2))
def test_hostile_titles_of_a_difference_run_nothing(tab: Tab, tmp_path: Path, first: int) -> None:
    texts = (list(hostile.KINDS.values()) * 2)[first : first + 2]
    one, other = (
        (Attention.from_tensors([weights], ["x", "y"], model=text[:50]), "L0H0", text[:300])
        for text, weights in zip(texts, (np.full((1, 2, 2), 0.5), np.eye(2)[None]), strict=True)
    )
    page_ = tab.open(saved(mv.difference(one, other), tmp_path))
    assert tab.colours(".difference canvas") > 1
    assert page_.locator("script").count() == 2


def test_inside_a_notebook_the_page_lives_in_a_sandbox(tab: Tab, tmp_path: Path) -> None:
    shown = reading(3, 4).links(layer=1, head=2)._repr_html_()
    assert 'sandbox="allow-scripts"' in shown
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><body>{shown}</body>", "utf-8")
    tab.page.goto((tmp_path / "notebook.html").as_uri())
    frame = tab.page.frame_locator("iframe")
    expect(frame.locator(".one h2 code")).to_contain_text("L1H2")
    frame.locator(".drawing > summary").click()
    frame.locator(".segments").get_by_text("tokens", exact=True).click()  # a change of view, without an address
    expect(frame.locator("input[value=pieces]")).to_be_checked()


def test_only_the_pages_own_script_may_run() -> None:
    written = render_page(
        "explorer", build_packet(reading(), [Head(0, 0)]), title="<b>", caption="</p><script>1</script>"
    ).decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', written)
    assert policy
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert written.count("<script") == 2
    assert "<title>&lt;b&gt;</title>" in written
    assert '<link rel="icon" href="data:,">' in written, "a browser asks for no icon, which the policy refuses"


def test_what_is_packed_is_unpacked_the_same() -> None:
    for data in (b"", b"a", b"abc", bytes(range(256)) * 9):
        planes = zlib.decompress(base64.b64decode(compress_packet(data)))
        half = (len(data) + 1) // 2
        assert bytes(planes[i // 2 + (i % 2) * half] for i in range(len(data))) == data


def test_a_frame_holds_the_whole_page() -> None:
    written = '<p title="a&b">“x”</p>'
    match = re.search(r'srcdoc="([^"]*)"', embed_page(written.encode(), 300))
    assert match
    assert unescape(match[1]) == written


# ---- All heads in one file -------------------------------------------------------------------------------


def test_twelve_bits_are_right_to_a_part_in_eight_thousand() -> None:
    attention = make_long_reading(2, 3, 40)
    every = [Head(layer, head) for layer in range(2) for head in range(3)]
    sent = [build_packet(attention, every, bits=bits) for bits in (16, 12)]
    asked = [{"packet": p, "ask": "block", "head": i, "view": {"unit": "pieces"}} for p in sent for i in range(6)]
    readings = np.array([answer["w"] for answer in ask_packet(*asked)]).reshape(2, *attention.weights.shape)
    tops = attention.weights.max(axis=3, keepdims=True)
    for weights, bound in zip(readings, (8.5e-6, 1.3e-4), strict=True):
        assert (np.abs(weights - attention.weights) <= bound * tops + 1e-7).all()
    assert np.abs(readings[1] - attention.weights).max() > 1e-5  # there are indeed fewer


def test_a_page_that_no_server_answers_holds_every_head_of_a_text_of_128_pieces_in_5_megabytes() -> None:
    attention = make_long_reading(12, 12, 128)
    written = attention.grid().to_html().encode()
    assert len(written) <= 5_000_000
    content = json.loads(re.search(rb'type="application/json">(.*?)</script>', written, re.DOTALL)[1])  # type: ignore[index]
    planes = zlib.decompress(base64.b64decode(content["packet"]))
    half = (len(planes) + 1) // 2
    head = bytes(planes[i // 2 + (i % 2) * half] for i in range(20_000))
    assert '"full":[0,1,2,' in head.decode("utf-8", "replace")


def test_a_head_that_is_not_in_the_file_is_said_to_be_missing(tab: Tab, tmp_path: Path) -> None:
    attention = make_long_reading(8, 12, 400)
    page_ = tab.open(saved(attention.links(layer=0, head=1), tmp_path), "#head=L5H5")
    expect(page_.locator(".readout")).to_contain_text("L5H5 is not in this file")


def test_some_layers_and_heads_of_a_grid_keep_their_numbers(tab: Tab, tmp_path: Path) -> None:
    page_ = tab.open(saved(make_long_reading(8, 12, 9).grid(layers=[5, 6], heads=[2, 3, 9]), tmp_path))
    expect(page_.locator(".overview header")).to_contain_text("2 of 8 layers × 3 of 12 heads")
    name = page_.locator(".one h2 code")
    expect(name).to_have_text("L5H2 (6-3)")
    page_.locator(".grid canvas").press("ArrowDown")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "Enter"):
        page_.locator(".grid canvas").press(key)
    expect(name).to_have_text("L6H9 (7-10)")
    box = page_.locator(".grid .opened").bounding_box()
    canvas = page_.locator(".grid canvas").bounding_box()
    assert box is not None
    assert canvas is not None
    assert canvas["x"] <= box["x"]
    assert box["x"] + box["width"] <= canvas["x"] + canvas["width"] + 6
    page_.locator(".grid canvas").click(position={"x": 40, "y": 40})
    expect(name).to_have_text("L5H2 (6-3)")
