"""Downloads for hostile texts: every figure that a page offers, in every format."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from mha_viz.app.widgets import download_panel
from mha_viz.app.widgets.download_panel import MIME, Offer, PanelView
from mha_viz.attention import Attention, Head
from mha_viz.errors import EmptyText
from mha_viz.figures.layout import Size
from mha_viz.figures.layout.panels import Panel
from mha_viz.figures.layout.view import View
from mha_viz.models.reading.encoder import Encoder
from mha_viz.text import clean
from tests import hostile, lanes
from tests.files import FORMATS, check_opens
from tests.page_session import PageSession

DPI = 40
LETTERS = 60  # characters of a text that are drawn; below are tests that need more of them
PLAIN = "The cat sat."
Everything = Callable[[Size, int], bytes]


class Offers:
    """The content of "Download", without the page around it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._made: list[tuple[Sequence[Offer], Everything | None]] = []
        monkeypatch.setattr(
            download_panel,
            "_show_expander",
            lambda offers, everything=None, _="": self._made.append((offers(), everything)),
        )

    def on_explore(self, attention: Attention, head: Head) -> Sequence[Offer]:
        download_panel.show_reading_downloads(attention, [head], lambda: View(pin="q0"))
        return self._made[-1][0]

    def on_compare(self, panels: Sequence[Panel]) -> tuple[Sequence[Offer], Everything]:
        download_panel.show_panel_downloads(PanelView(panels, View(), pair=(0, 1)), offers_archive=True)
        offers, everything = self._made[-1]
        assert everything is not None
        return offers, everything


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch) -> Offers:
    return Offers(monkeypatch)


def read(minilm: Encoder, text: str) -> Attention:
    """A reading as on a page; if there is nothing to read, that of a plain sentence, as the page then says."""
    try:
        return minilm.encode(clean(text[:LETTERS]))
    except EmptyText:
        return minilm.encode(PLAIN)


def panels_of(minilm: Encoder, text: str) -> list[Panel]:
    """Two heads of a reading side by side, with the text itself as their name."""
    attention = read(minilm, text)
    return [Panel(attention, Head(3, 1), clean(text[:LETTERS])), Panel(attention, Head(0, 2))]


def offered(offers: Offers, minilm: Encoder, text: str) -> list[Offer]:
    panels = panels_of(minilm, text)
    return [*offers.on_explore(panels[0].attention, Head(3, 1)), *offers.on_compare(panels)[0]]


def test_the_formats_are_those_of_the_page() -> None:
    assert {*FORMATS, ".zip"} == set(MIME)


@pytest.mark.filterwarnings("ignore::mha_viz.errors.MissingGlyphWarning")  # a machine may lack the fonts of a text
@pytest.mark.parametrize(("number", "text"), list(enumerate(hostile.ON_PAGES.values())), ids=hostile.ON_PAGES)
def test_every_hostile_text_in_every_format(offers: Offers, minilm: Encoder, number: int, text: str) -> None:
    """Every format of one figure, a different one for each text, and of each other figure one format."""
    for turn, offer in enumerate(offered(offers, minilm, text)):
        figure = offer.make(Size())
        whole = (number + turn) % 5 == 0
        for suffix in FORMATS if whole else [FORMATS[(number + turn) % len(FORMATS)]]:
            check_opens(suffix, figure.make_file(suffix, DPI))


IN_ARCHIVES = ("formula", "closing script", "nul", "high surrogate alone")


@pytest.mark.parametrize("name", lanes.some(IN_ARCHIVES, "formula", "closing script"))
def test_hostile_names_in_the_archive_of_the_compared_heads(offers: Offers, minilm: Encoder, name: str) -> None:
    everything = offers.on_compare(panels_of(minilm, hostile.TEXTS[name]))[1]
    check_opens(".zip", everything(Size(), DPI))


def test_a_table_of_millions_of_weights_is_not_offered_and_the_page_says_why() -> None:
    """Half a gigabyte of text would be made while all other visitors wait."""
    here = PageSession({"text": "cat " * 200})
    here.at.session_state["download_panel"] = True
    here.at.run()
    here.check()
    assert {"CSV", "JSON", "NPZ"} <= buttons(here)
    here.at.radio(key="take_figure").set_value("Grid of all heads").run()
    here.check()
    assert buttons(here) & {"CSV", "JSON", "NPZ", "safetensors"} == {"NPZ", "safetensors"}
    assert f"No CSV or JSON: {72 * 202**2:,} weights" in here.said


def buttons(of: PageSession) -> set[str]:
    return {button.proto.label for button in of.at.get("download_button")}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mha_viz.errors.MissingGlyphWarning")  # which fonts a machine has is not asked here
@pytest.mark.parametrize("text", hostile.TEXTS.values(), ids=hostile.TEXTS)
def test_every_figure_of_every_hostile_text_in_every_format(offers: Offers, minilm: Encoder, text: str) -> None:
    for offer in offered(offers, minilm, text):
        figure = offer.make(Size())
        for suffix in FORMATS:
            check_opens(suffix, figure.make_file(suffix, DPI))
    check_opens(".zip", offers.on_compare(panels_of(minilm, text))[1](Size(), DPI))
