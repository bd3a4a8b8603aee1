"""Files of drawings in windows of all sizes, in a real browser: a wide window is used, and a narrow one is not left."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import FloatRect, Locator, Page

import mha_viz as mv
from mha_viz.models.reading.encoder import Encoder
from tests.live_pages import EXAMPLE, serve_folder

WINDOWS = {"laptop": (1440, 900), "monitor": (1920, 1080), "phone": (390, 844)}
PAINTED = "html[data-painted='yes']"
SCROLLED = "document.documentElement.scrollWidth - innerWidth"


@pytest.fixture(scope="module")
def files(toy: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder, read = tmp_path_factory.mktemp("wide"), toy.encode(EXAMPLE)
    figures = {"heatmap": read.heatmap("L1H1"), "links": read.links("L1H1"), "grid": read.grid()}
    return {name: figure.save(folder / f"{name}.html") for name, figure in figures.items()}


def _box(element: Locator) -> FloatRect:
    box = element.bounding_box()
    assert box is not None
    return box


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", ["heatmap", "links", "grid"])
def test_a_file_fills_its_window(page: Page, files: Mapping[str, Path], name: str, window: str, colours: str) -> None:
    width, height = WINDOWS[window]
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme="dark" if colours == "dark" else "light")
    page.goto(files[name].as_uri())
    page.locator(PAINTED).wait_for()
    assert page.evaluate(SCROLLED) <= 0
    if name == "heatmap":
        drawn = _box(page.locator(".heat canvas"))
        assert drawn["width"] >= min(0.5 * height, 0.85 * width)
        assert abs(drawn["x"] + drawn["width"] / 2 - width / 2) <= 0.08 * width
        assert drawn["y"] + drawn["height"] <= height
    elif name == "links":  # no wider than long lines can be followed
        drawn = _box(page.locator(".links canvas"))
        assert min(0.9 * width, 0.9 * height) <= drawn["width"] <= 1100
        assert abs(drawn["x"] + drawn["width"] / 2 - width / 2) <= 0.01 * width
        assert drawn["height"] >= 0.4 * height
    else:
        assert _box(page.locator(".explorer"))["width"] >= 0.9 * width
        assert _box(page.locator(".links canvas"))["height"] >= 0.4 * height
    assert page.locator("#caption").evaluate("caption => parseFloat(getComputedStyle(caption).fontSize)") >= 12
    assert _contrast(page.locator("#caption")) >= 7
    assert "every" not in page.locator(".note").all_inner_texts()[-1]  # all tokens are named, or the map is hidden


# The contrast of an element's letters with the page's background (WCAG 2.2, 1.4.3).
CONTRAST = """(element) => {
    const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const luminance = (colour) => {
        paint.fillStyle = colour;
        paint.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...paint.getImageData(0, 0, 1, 1).data].map((value) => {
            const share = value / 255;
            return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const both = [getComputedStyle(element).color, getComputedStyle(document.documentElement).backgroundColor];
    const [dark, light] = both.map(luminance).sort((one, other) => one - other);
    return (light + 0.05) / (dark + 0.05);
}"""


def _contrast(element: Locator) -> float:
    return float(element.evaluate(CONTRAST))


@pytest.mark.parametrize("window", ["laptop", "monitor"])
@pytest.mark.parametrize(("rows", "columns"), [(10, 60), (60, 10), (12, 12)])
def test_a_map_alone_is_as_wide_as_its_shape_and_the_window_allow(
    page: Page, tmp_path: Path, rows: int, columns: int, window: str
) -> None:
    width, height = WINDOWS[window]
    words = [[f"{side}{number}" for number in range(count)] for side, count in (("q", rows), ("k", columns))]
    read = mv.Attention.from_tensors(np.full((1, 1, rows, columns), 1 / columns, np.float32), *words)
    page.set_viewport_size({"width": width, "height": height})
    page.goto(read.heatmap("L0H0").save(tmp_path / "map.html").as_uri())
    page.locator(PAINTED).wait_for()
    drawn = _box(page.locator(".heat canvas"))
    assert page.evaluate(SCROLLED) <= 0
    if columns > rows:
        assert drawn["width"] >= 0.85 * min(width, 1840)
        assert drawn["width"] / columns >= 20
    else:
        assert drawn["x"] > 0.15 * width
    assert drawn["y"] + drawn["height"] <= height


@pytest.mark.parametrize("window", WINDOWS)
def test_the_one_drawing_of_a_live_page_stands_beside_its_field_where_there_is_room(
    page: Page, live_toy: Path, window: str
) -> None:
    width, height = WINDOWS[window]
    page.set_viewport_size({"width": width, "height": height})
    with serve_folder(live_toy) as (address, _):
        page.goto(address)
        page.locator(PAINTED).wait_for()
        drawing, field = (_box(page.locator(f"#published > section:nth-of-type({at})")) for at in (1, 2))
    assert page.evaluate(SCROLLED) <= 0
    if window == "phone":
        assert field["y"] >= drawing["y"] + drawing["height"]
    else:
        assert field["y"] == drawing["y"]
        assert field["x"] + field["width"] - drawing["x"] >= 0.9 * width
        assert field["width"] > drawing["width"]
