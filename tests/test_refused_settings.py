"""A kind of figure refuses each setting that it does not show, in Python as on the command line."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from typing import Any

import pytest

import mha_viz as mv
from mha_viz.attention import Attention
from mha_viz.errors import SettingError
from mha_viz.figures import Figure
from mha_viz.models.reading.encoder import Encoder
from mha_viz.view.settings import OPTIONS

OTHER = {"pin": "q1", "unit": "pieces", "special": "hide", "links": "top3", "scale": "log", "side": "ab"}
DRAW: dict[str, Callable[..., Figure]] = {
    "heatmap": lambda reading, **options: reading.heatmap("L1H1", **options),
    "links": lambda reading, **options: reading.links("L1H1", **options),
    "grid": lambda reading, **options: reading.grid(**options),
    "compare": lambda reading, **options: mv.compare([(reading, "L1H1"), (reading, "L0H1")], **options),
    "difference": lambda reading, **options: mv.difference((reading, "L1H1"), (reading, "L0H1"), **options),
}


@pytest.fixture(scope="module")
def pair(toy: Encoder) -> Attention:
    return toy.encode("the dog sees the cat", "the cat sleeps")


def test_every_setting_of_a_figure_is_tried() -> None:
    assert OTHER.keys() == OPTIONS.keys()


@pytest.mark.parametrize("name", OTHER)
@pytest.mark.parametrize("kind", DRAW)
def test_a_setting_is_shown_or_refused(pair: Attention, kind: str, name: str) -> None:
    setting = OPTIONS[name]
    stated: dict[str, Any] = {name: OTHER[name]}
    if kind not in setting.kinds:
        with pytest.raises(SettingError, match=rf"^{name} does not go with {kind}\. It goes with {setting.kinds[0]}"):
            DRAW[kind](pair, **stated)
        return
    figure, usual = DRAW[kind](pair, **stated), DRAW[kind](pair)
    assert figure.to_html() != usual.to_html()
    if kind in setting.only_on_page:
        for suffix in (".svg", ".csv"):
            with pytest.raises(SettingError, match=rf"^{name} does not go with {kind}\..*and with \.html\.$"):
                figure.to_bytes(suffix)
        with pytest.raises(SettingError, match=rf"^{name} does not go with {kind}\..*and with \.html\.$"):
            figure.figure()
        assert b64decode(figure._repr_mimebundle_()["image/png"])
        assert figure.make_file(".svg") == usual.make_file(".svg")  # a notebook shows the page beside it
    else:
        assert figure.to_bytes(".svg") != usual.to_bytes(".svg")


@pytest.mark.parametrize("kind", DRAW)
def test_a_usual_value_is_never_refused(pair: Attention, kind: str) -> None:
    usual = {name: setting.default for name, setting in OPTIONS.items()}
    assert DRAW[kind](pair, **usual).to_bytes(".svg") == DRAW[kind](pair).to_bytes(".svg")


def test_links_side_by_side_show_their_rule(pair: Attention) -> None:
    panels = [(pair, "L1H1")]
    assert mv.compare(panels, "links", links="top1").to_bytes(".svg")
    with pytest.raises(SettingError, match=r"It goes with links, compare of links, and with \.html"):
        mv.compare(panels, links="top1").save("no.svg")


@pytest.mark.parametrize("kind", ["heatmap", "links", "grid"])
def test_a_side_needs_a_pair(toy: Encoder, kind: str) -> None:
    with pytest.raises(SettingError, match=r"^side is 'ab', but there is no second text\. Read a pair"):
        DRAW[kind](toy.encode("the cat sat ."), side="ab")


def test_refusals_name_what_goes_with_the_kind(pair: Attention) -> None:
    with pytest.raises(SettingError, match="Expected one of: fixed, head, log"):
        DRAW["compare"](pair, scale="max")
    with pytest.raises(SettingError, match="Known: ") as refused:
        DRAW["heatmap"](pair, nonsense=1)
    assert "links" not in str(refused.value)
    with pytest.raises(SettingError, match=r"^width_mm is '85'\."):
        DRAW["heatmap"](pair, width_mm="85")
    with pytest.raises(mv.errors.ExportError, match="is a folder"):
        DRAW["heatmap"](pair).save("/")
