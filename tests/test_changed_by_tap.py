"""A reading whose numbers a tap has changed says so wherever its origin is stated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import mha_viz as mv
from mha_viz.figures.layout import Size, caption
from mha_viz.figures.layout.figure_code import write_head_code
from mha_viz.figures.layout.view import View
from tests.packets import unpack_panels

if TYPE_CHECKING:
    from mha_viz.models.reading.encoder import Encoder

Tiny = Callable[[str], "Encoder"]


class Even(mv.Tap):
    def layer(self, index: int, query: Any, key: Any, value: Any, output: Any) -> Any:
        if index == 0:
            self.weights[0, 1] = 1 / key.shape[2]
            output[:, :, 1] = value[:, 1].mean(dim=1, keepdim=True)
        return output


class Named(Even):
    name = "an even L0H1\0"


class Reads(Even):
    changes = False

    def layer(self, index: int, query: Any, key: Any, value: Any, output: Any) -> Any:
        return output


@pytest.mark.parametrize(
    ("tap", "made"),
    [
        (mv.Tap, ("typed",)),
        (Reads, ("typed",)),
        (Even, ("typed", "changed by Even")),
        (Named, ("typed", "changed by an even L0H1\ufffd")),
    ],
)
def test_a_reading_says_which_tap_changed_it(tiny: Tiny, tap: type[mv.Tap], made: tuple[str, ...]) -> None:
    reading = tiny("bert").through("The cat sat.", tap=tap)[0]
    assert reading.made == made
    assert (reading.key == tiny("bert").encode("The cat sat.").key) == (made == ("typed",))
    assert tiny("bert").through("", tap=tap, words=["cat"])[0].made == ("given words", *made[1:])


def test_taps_of_one_name_make_readings_that_differ(tiny: Tiny, tmp_path: Path) -> None:
    through = tiny("bert").through
    other = type("Even", (Even,), {"layer": lambda self, index, query, key, value, output: output * 1})
    a, again, b = (through("The cat sat.", tap=tap)[0] for tap in (Even, Even, other))
    assert a.made == b.made
    assert a == again != b
    page = mv.compare([(a, "L0H1"), (b, "L0H1")]).page
    assert page is not None
    assert len(unpack_panels(page.packet())["readings"]) == 2
    assert mv.load_attention(a.save(tmp_path / "a.npz")) == a


def test_caption_file_and_recipe_are_not_those_of_the_unchanged_model(tiny: Tiny, tmp_path: Path) -> None:
    encoder = tiny("bert")
    usual, even = encoder.encode("The cat sat."), encoder.through("The cat sat.", tap=Even)[0]
    assert "changed by Even" in caption.describe_reading(even)
    assert "changed by" not in caption.describe_reading(usual)
    figure = mv.difference((usual, "L1H1"), (even, "L1H1"))
    assert figure.caption.count("changed by Even") == 2, "of the panel, and of the colours"
    assert "changed by Even" in even.heatmap("L1H1").caption
    even.save(tmp_path / "even.npz")
    assert mv.load_attention(tmp_path / "even.npz").made == ("typed", "changed by Even")
    even.save(tmp_path / "even.csv")
    mv.compare([(usual, "L1H1"), (even, "L1H1")]).save(tmp_path / "both.csv")
    figure.save(tmp_path / "difference.csv")
    tables = {name: pd.read_csv(tmp_path / f"{name}.csv") for name in ("even", "both", "difference")}
    assert tables["even"]["made"].dropna().tolist() == ["typed; changed by Even"]
    made = tables["both"].groupby("panel")["made"].first()
    assert made.tolist() == ["typed; by words", "typed; changed by Even; by words"]
    first = tables["difference"].iloc[0]
    assert (first["first_head"], first["first_made"], first["second_made"]) == (
        "L1H1",
        "typed; by words",
        "typed; changed by Even; by words",
    )
    usual.save(tmp_path / "usual.csv")
    assert pd.read_csv(tmp_path / "usual.csv")["made"].dropna().tolist() == ["typed"]
    code = write_head_code(even, "heatmap", [mv.Head(1, 1)], View(), Size(), "x.svg")
    assert "load_attention" in code, "no call of this package makes these numbers"
    assert ".encode(" not in code
