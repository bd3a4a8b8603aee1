"""Characters without a glyph in any font: a warning once per figure, and a sentence in the caption."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import mha_viz as mv
from mha_viz.cli import main
from mha_viz.figures.drawing import fonts
from mha_viz.models.reading import loading

if TYPE_CHECKING:
    from mha_viz.models.reading.encoder import Encoder

CAPTION = "No font was available for CJK ideographs (猫) and Devanagari letters (क): boxes are drawn instead."


@pytest.fixture(autouse=True)
def _package_fonts_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(fonts.FONTS_VARIABLE, raising=False)
    monkeypatch.setattr(fonts, "_list_system_folders", list)
    fonts.clear_caches()
    yield
    fonts.clear_caches()


def foreign() -> mv.Attention:
    return mv.Attention.from_tensors([np.full((2, 2, 2), 0.5)], ["猫", "क"])


def test_a_figure_warns_once_and_its_caption_names_the_characters() -> None:
    figure = foreign().heatmap("L0H0", unit="pieces")
    message = r"CJK ideographs \(猫\).*Install Noto Sans CJK.*Devanagari"
    with pytest.warns(mv.errors.MissingGlyphWarning, match=message) as caught:
        svg, *_ = [figure.to_bytes(suffix) for suffix in (".svg", ".png", ".pdf")]
    assert [one.filename for one in caught if one.category is mv.errors.MissingGlyphWarning] == [__file__]
    assert figure.caption.endswith(CAPTION)
    assert CAPTION in svg.decode()
    with pytest.warns(mv.errors.MissingGlyphWarning):
        foreign().heatmap("L0H1", unit="pieces").to_bytes(".svg")


def test_axes_of_matplotlib_warn_too() -> None:
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    with pytest.warns(mv.errors.MissingGlyphWarning):
        foreign().heatmap("L0H0", unit="pieces").figure(ax)
    plt.close()


def test_what_is_drawn_with_the_reader_s_fonts_warns_of_nothing() -> None:
    figure = foreign().links("L0H0", unit="pieces")
    assert "boxes are drawn" not in figure.to_bytes(".html").decode()
    assert figure.to_bytes(".csv")
    latin = mv.Attention.from_tensors([np.full((1, 2, 2), 0.5)], ["naïve", "Ωж"]).heatmap("L0H0", unit="pieces")
    assert latin.to_bytes(".svg")
    assert "boxes are drawn" not in latin.caption


def test_the_command_says_it_once(
    tmp_path: Path, minilm: Encoder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(loading, "load", lambda model, *_, **__: SimpleNamespace(encode=minilm.encode))
    one = ["figure", "heatmap", "a 猫", "--head", "L3H1", "--caption", "--out", str(tmp_path / "a.svg")]
    every = ["figure", "heatmap", "a 猫", "--all-heads", str(tmp_path / "heads")]
    for command in (one, every):
        assert main(command) == 0
        shown = capsys.readouterr()
        assert shown.err.count("mha-viz: No font on this machine has CJK ideographs (猫)") == 1
        others = [line for line in shown.err.splitlines() if not re.fullmatch(r"mha-viz: \d+ of 72 files", line)]
        assert len(others) == 1, "only a slow machine also shows how far it is"
        assert ("No font was available for CJK ideographs (猫)" in shown.out) == (command is one)
