"""Names of a figure's files: its heads and the first words of its text, and never a path."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import mha_viz as mv
from mha_viz.attention import Attention
from mha_viz.attention.rollout import rollout
from mha_viz.figures.file_names import build_file_name
from tests import hostile
from tests.sentences import TIRED, WIDE, read

RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}
BY_HAND = {
    TIRED: "L3H1_the-animal-didnt-cross",
    "When the committee finally met": "L3H1_when-the-committee",  # with “finally”, 26 letters
    "internationalizationofeverything": "L3H1_internationalizationofev",
    "Weiß Öl, café naïve": "L3H1_weiss-ol-cafe-naive",
    "cafe\u0301 \u0301x": "L3H1_cafe-x",
    "Мама мыла раму.": "L3H1_мама-мыла-раму",
    "他走进银行取钱": "L3H1_他走进银行取钱",
    "हिन्दी में लिखा हुआ": "L3H1_हिन्दी-में-लिखा-हुआ",
    "../../etc/passwd": "L3H1_etc-passwd",
    "C:\\con.txt|*?<>": "L3H1_c-con-txt",
    "🚫 \u202e": "L3H1",
    "": "L3H1",
}


@pytest.mark.parametrize("text", BY_HAND)
def test_a_name_has_the_heads_and_the_first_words_in_small_letters(text: str) -> None:
    assert build_file_name(["L3H1"], text, ".pdf") == f"{BY_HAND[text]}.pdf"


def test_every_kind_of_figure_has_its_name() -> None:
    a, b = read(TIRED), read(WIDE)
    heads = ["L3H1", "L2H4", "L5H11", "L0H0", "L0H1"]
    text = "the-animal-didnt-cross"
    names = {
        "L3H1": a.heatmap("L3H1"),
        "L3H1-links": a.links("L3H1"),
        "L0H0-L0H1-links": a.links(heads=["L0H0", "L0H1"]),
        "all-heads": a.grid(),
        "L3H1-L3H4": a.grid(layers=[3], heads=[1, 4]),
        "6-heads": a.grid(layers=[0, 1, 2], heads=[1, 4]),
        "L3H1-L2H4-L5H11": mv.compare([(a, head) for head in heads[:3]]),
        "L3H1-L2H4-L5H11-L0H0": mv.compare([(a, head) for head in heads[:4]]),
        "5-heads": mv.compare([(a, head) for head in heads]),
        "L3H1-L3H1-links": mv.compare([(a, "L3H1"), (b, "L3H1")], kind="links"),
        "L2H4-minus-L3H1": mv.difference((a, "L3H1"), (a, "L2H4")),  # as its title says
    }
    assert {name: figure.name for name, figure in names.items()} == {name: f"{name}_{text}" for name in names}


def test_a_figure_of_layers_and_one_of_a_text_that_was_cut_out() -> None:
    rolled = rollout(read(TIRED))
    assert rolled.grid().name == "all-layers_the-animal-didnt-cross"
    assert rolled.heatmap(2, 0).name == "L2_the-animal-didnt-cross"
    assert read(TIRED).only(["L3H1"]).heatmap(0, 0).name == "L3H1_the-animal-didnt-cross"  # by its number in the model
    assert Attention.from_tensors([np.eye(2)[None]], ["?", "!"]).heatmap("L0H0").name == "L0H0"


HOSTILE = st.one_of(st.text(max_size=60), st.sampled_from([*hostile.KINDS.values()]))


@given(HOSTILE, st.sampled_from([["L3H1"], ["L3H1", "L0H2"], ["all-heads"], ["L2H4-minus-L3H1"]]))
@example("\ud800 CON nul", ["L3H1"])
@example("İ ﷽ \u0345", ["L3H1"])
@example("x" * 5000, ["all-heads"])
def test_a_name_can_be_stored_on_every_system(text: str, parts: list[str]) -> None:
    name = build_file_name(parts, text, ".pdf")
    stem = name.removesuffix(".pdf")
    assert name.startswith("-".join(parts))
    assert len(name.encode()) <= 150  # 255 bytes is the most that file systems take
    assert not set(name[:-4]) & set("/\\:*?\"<>|.\0 '")
    assert stem.partition(".")[0] not in RESERVED
    assert all(character.isalnum() or character in "-_" or is_mark(character) for character in stem)
    assert stem[-1] not in "-_"
    assert "--" not in stem
    begins = stem.removeprefix("-".join(parts))
    assert begins == begins.lower()
    assert len(begins) <= 25


def is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")
