"""Figures and numbers of the Compare page: they show what the screen shows."""

from __future__ import annotations

from typing import Any

import pytest

from mha_viz import figures as figure_api
from mha_viz.app.url import comparison
from mha_viz.app.url.comparison import ComparedHead
from mha_viz.app.widgets import download_panel
from mha_viz.attention import Head
from mha_viz.figures import Figure
from mha_viz.figures.drawing.marks import Drawing, Text
from mha_viz.figures.drawing.theme import LIGHT
from mha_viz.request import Request
from mha_viz.view.settings import OPTIONS
from tests import lanes
from tests.compare_visits import L0H2, L3H1, PAGE, WIDE, heads, open_downloads, visit
from tests.page_scripts import ask_packet, ask_panels
from tests.page_session import PageSession

LONG = ComparedHead(Request("minilm", "The animal slept. " * 12), Head(3, 1))  # 50 tokens

# ---- Downloads -------------------------------------------------------------------------------------------


def on_screen(here: PageSession) -> dict[str, Any]:
    """What the page's own script computes from the panels and the address."""
    ask = {"packet": here._drawn()["mha_compare"].bytes, "ask": "shown", "query": list(here.url.items())}
    answer: dict[str, Any] = ask_panels(ask)[0]
    return answer


ON_SCREEN: list[dict[str, str]] = [
    {"pin": "q2", "at": "1"},
    {"pin": "q2", "at": "0"},
    {"pin": "q13k3", "at": "1", "diff": "1-0"},
    {"pin": "q13", "at": "1", "diff": "0-1"},
    {"pin": "q13", "at": "1"},
    {"pin": "q13", "at": "0", "diff": "0-2"},
    {"pin": "q2", "at": "2", "diff": "0-1"},
    {"pin": "q3", "at": "2", "diff": "1-0"},
    {"pin": "q3", "at": "2", "diff": "2-0"},
    {"pin": "q2", "at": "7"},
    {"pin": "q9", "at": "2"},
    {"pin": "q2", "at": "x"},
    {"side": "ab", "scale": "row", "links": "top3", "as": "links"},
    {"side": "ab", "scale": "head", "links": "top3", "special": "hide", "unit": "pieces", "diff": "0-1"},
]


@pytest.mark.parametrize("url", lanes.some(ON_SCREEN, *(ON_SCREEN[at] for at in (2, 5, 9, 13))), ids=str)
def test_files_of_a_comparison_show_what_the_screen_shows(url: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings, the scale and the held tokens of every panel, as the script computes them and as the file states
    them."""
    made = figures_made(monkeypatch)
    three = [
        L3H1,
        ComparedHead(Request("minilm", WIDE), Head(3, 1)),
        ComparedHead(Request("minilm", "A street, an animal."), Head(0, 2)),
    ]
    here = open_downloads(visit(tray=comparison.write(three), **url))
    screen = on_screen(here)
    offers = here.at.radio(key="take_figure").options
    assert len(offers) == (2 if screen["diff"] else 1)
    assert held_in_file(made[-1].drawing, 3) == screen["pinned"]
    about = made[-1].drawing.about
    assert {name: about[name] for name in ("unit", "special", "links", "scale", "as")} == in_files(
        screen["view"], "compare", screen["view"]["as"]
    )
    assert about["side"] == "all"
    assert made[-1].drawing.caption.count(" is outlined") + made[-1].drawing.caption.count("Only the link") == bool(
        screen["pinned"][screen["at"]]
    )
    if screen["diff"] and screen["subtracted"] is not None:
        here.at.radio(key="take_figure").set_value(offers[1]).run()
        here.check()
        assert held_in_file(made[-1].drawing, 1) == [screen["subtracted"]]
    lines = next(c.value for c in here.at.code if c.value.startswith("import mha_viz"))
    assert "side=" not in lines
    monkeypatch.undo()
    written: list[bytes] = []
    monkeypatch.setattr(Figure, "save", lambda self, path: written.append(self.to_bytes(".svg")))
    exec(lines, {})  # as shown
    assert written == [made[-1].make_file(".svg")]


def figures_made(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """All figures that a page makes from now on."""
    made: list[Figure] = []
    for name in ("heatmap", "links", "grid", "compare", "difference"):
        real = getattr(figure_api, name)
        monkeypatch.setattr(
            figure_api, name, lambda *given, real=real, **options: made.append(real(*given, **options)) or made[-1]
        )
    return made


def held_in_file(drawing: Drawing, panels: int) -> list[list[str]]:
    """The accented tokens of each panel, from left to right in one row: rows first, then columns."""
    held: list[list[str]] = [[] for _ in range(panels)]
    for mark in drawing.marks:
        if isinstance(mark, Text) and mark.colour == LIGHT.accent:
            held[min(panels - 1, int(mark.x / drawing.width * panels))].append(mark.text)
    return held


def test_a_png_beyond_all_bounds_is_not_offered_and_the_page_says_why() -> None:
    here = open_downloads(visit(tray=comparison.write([L3H1])))
    here.at.selectbox(key="take_dpi").select("600 dpi").run()
    here.at.selectbox(key="take_width").select("Other").run()
    here.at.number_input(key="take_mm").set_value(500).run()
    here.check()
    assert "No PNG: At 600 dpi the picture would have" in here.said
    labels = [b.proto.label for b in here.at.get("download_button")]
    assert "PNG" not in labels
    assert {"SVG", "PDF", "CSV"} <= set(labels)


def test_the_zip_is_made_as_it_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(
        figure_api, "archive", lambda panels, dpi, **options: asked.append(options | {"dpi": dpi}) or b""
    )
    made: list[Any] = []
    monkeypatch.setattr(
        download_panel,
        "show_download_button",
        lambda *given: made.append(given[1:3]) if given[3] == "take_zip" else None,
    )
    wide = ComparedHead(Request("minilm", WIDE), Head(3, 1))
    here = open_downloads(visit(tray=comparison.write([L3H1, wide]), diff="1-0", pin="q2", at="1", **{"as": "links"}))
    here.at.selectbox(key="take_dpi").select("150 dpi").run()
    here.at.selectbox(key="take_look").select("dark").run()
    here.at.selectbox(key="take_width").select("1 column, 85 mm").run()
    here.check()
    name, make = made[-1]
    assert name == "L3H1-L3H1-links_the-animal-didnt-cross.zip"
    make()
    expected = {"dpi": 150, "kind": "links", "diff": (1, 0), "pin_of": 1, "look": "dark", "width_mm": 85.0, "pin": "q2"}
    assert asked[-1] | expected == asked[-1]
    here = open_downloads(
        visit(tray=comparison.write([L3H1, ComparedHead(Request("minilm", "Cats sleep."), Head(0, 0))]), diff="0-1")
    )
    made[-1][1]()
    assert asked[-1]["diff"] is None  # which the page refuses, too


TAKEN: list[tuple[str | None, dict[str, Any]]] = [
    (None, {"head": "L3H1", "on": "2.4", "special": "rescale", "pin": "q8"}),
    (None, {"text": "Cats sleep.", "pair": "Dogs too.", "side": "ab", "scale": "row"}),
    (PAGE, {"show": "word", "diff": "0-1", "as": "links", "scale": "head"}),
    (PAGE, {"tray": comparison.write([L3H1, L0H2]), "scale": "row", "special": "hide"}),
    (PAGE, {"tray": comparison.write([L3H1, LONG]), "diff": "none"}),
    (PAGE, {"tray": comparison.write([L3H1, LONG]), "scale": "row", "special": "keep", "as": "links"}),
]


@pytest.mark.parametrize(("page", "url"), lanes.some(TAKEN, *TAKEN[1:3]))
def test_the_figure_on_screen_can_be_taken_away(
    page: str | None, url: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = figures_made(monkeypatch)
    here = open_downloads(PageSession(url, page))
    code = [c.value for c in here.at.code]
    assert any("L3H1" in c or "L0H0" in c for c in code)
    assert any(c.startswith("import mha_viz as mv") for c in code)
    for label in here.at.radio(key="take_figure").options:
        here.at.radio(key="take_figure").set_value(label).run()
        here.check()
        assert not [m for m in here.at.get("html") if '<div class="mha-problem"' in m.proto.body]
        screen = settings_on_screen(here, page)
        kind = made[-1].drawing.about["figure"]
        shown = in_files(screen, kind, screen["as"] if kind == "compare" else "")
        assert settings_in_file(made[-1], shown) == shown


def in_files(settings: dict[str, Any], kind: str, panels: str = "") -> dict[str, Any]:
    """The settings as files of this kind of figure show them: what they do not take is as usual."""
    usual = {
        name: setting.default
        for name, setting in OPTIONS.items()
        if name in settings and (kind not in setting.kinds or setting.is_only_on_page(kind, panels))
    }
    return settings | usual


def settings_on_screen(here: PageSession, page: str | None) -> dict[str, Any]:
    """The settings that the page's own script reads from the address, and the heads that it draws."""
    if page:
        return on_screen(here)["view"] | {"side": "all", "heads": heads(here)}
    ask = {"packet": here._drawn()["mha_explorer"].bytes, "ask": "view", "query": list(here.url.items())}
    view = ask_packet(ask)[0]
    shown = {name: view[name] for name in ("unit", "special", "links", "scale", "side")}
    return shown | {"heads": [str(Head(*divmod(head, 12))) for head in view["on"]]}


def settings_in_file(figure: Figure, screen: dict[str, Any]) -> dict[str, Any]:
    """The same as stated by a file: a heatmap is that of the first head, the grid that of all."""
    about = figure.drawing.about
    settings = {name: about.get(name, screen[name]) for name in screen} | {"heads": about["heads"].split()}
    of_first = {"heatmap": screen["heads"][:1], "grid": ["all"]}.get(about["figure"], screen["heads"])
    return settings | ({"heads": screen["heads"]} if settings["heads"] == of_first else {})
