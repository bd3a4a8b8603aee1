"""Every page with a picture offers it for download, with its numbers and a caption."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mha_viz.app.widgets.download_panel import Offer
from mha_viz.figures.drawing.marks import Text
from mha_viz.figures.layout import Size
from mha_viz.lab import lab
from mha_viz.numerals import decimal
from tests import lanes
from tests.few_sentences import limit_built_in_sentences
from tests.files import check_opens
from tests.page_session import PageSession

BEGINS = "the-animal-didnt-cross"
STAGES = ("x", "project", "score", "share", "moved", "join", "writes")


def is_whole(offer: Offer, *suffixes: str) -> None:
    figure = offer.make(Size())
    assert figure.caption.startswith(figure.drawing.alt.rstrip(".")[:20])
    for suffix in suffixes or figure.suffixes:
        check_opens(suffix, figure.to_bytes(suffix, 40))


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_inside_a_head(offered: list[Offer], stage: str) -> None:
    PageSession({"step": stage, "head": "L3H1", "q": "10", "k": "2"}, "pages/40_inside_a_head.py")
    *of_the_stage, costs = offered
    assert of_the_stage
    assert costs.file == "costs"
    for offer in of_the_stage:
        is_whole(offer, ".svg", ".csv")
        assert (
            "L3H1 (4-2) of sentence-transformers/all-MiniLM-L6-v2 (weights SHA-256 53aa5117…)"
            in offer.make(Size()).caption
        )
        assert "query “it” (token 10), key “animal” (token 2)" in offer.make(Size()).caption


def test_the_row_by_hand_is_given_with_its_numbers_and_the_lines_of_python_that_compute_them(
    offered: list[Offer],
) -> None:
    PageSession({"step": "share", "head": "L3H1", "q": "10", "k": "2"}, "pages/40_inside_a_head.py")
    row = next(offer for offer in offered if offer.file == "L3H1-row_the-animal-didnt-cross")
    header, *lines = row.make(Size()).to_bytes(".csv").decode().splitlines()
    assert header == "key_index,key_token,q_k,score,lowered_by,power,share"
    assert len(lines) == 16
    shares = [float(line.rpartition(",")[2]) for line in lines]
    assert sum(shares) == pytest.approx(1)
    assert row.code is not None
    variables: dict[str, Any] = {}
    exec(row.code(Size(), "row.svg"), variables)
    assert variables["t"].weights[1, 10] == pytest.approx(shares, abs=1e-5)


def test_what_it_costs_is_given_as_a_table_and_as_numbers(offered: list[Offer]) -> None:
    PageSession({"step": "cost"}, "pages/40_inside_a_head.py")
    (costs,) = offered
    is_whole(costs, ".svg", ".pdf", ".csv", ".json")
    figure = costs.make(Size())
    texts = {mark.text for mark in figure.drawing.marks if isinstance(mark, Text)}
    assert {
        "your numbers",
        "MiniLM, a small BERT, this text",
        "1,048,576",
        "589,824",
        "multiply-adds in total",
    } <= texts
    header, *lines = figure.to_bytes(".csv").decode().splitlines()
    assert header.startswith("of,d_model,heads,n,d_k,parameters,with_biases,projections,products,multiply_adds")
    assert [line.split(",")[1:4] for line in lines[:2]] == [["512", "8", "64"], ["512", "1", "64"]]


@pytest.mark.usefixtures("empty_home")
def test_roles_gives_its_map_its_tables_and_the_card_of_a_head(
    offered: list[Offer], monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_built_in_sentences(monkeypatch)
    PageSession({"head": "L3H1"}, "pages/55_roles.py")
    assert [offer.file for offer in offered] == ["roles", "offsets-L3H1", "delimiters-L3H1", "relations", "coreference"]
    for offer in offered:
        is_whole(offer, ".pdf", ".csv", ".json")
    table = offered[3].make(Size()).to_bytes(".csv").decode().splitlines()
    assert table[0].startswith("relation,in words,best head,direction,score,low,high")


@pytest.mark.parametrize(("toy", "count"), [("toy", 3), ("repeater", 2)])
def test_the_training_of_a_toy_gives_its_scores(offered: list[Offer], toy: str, count: int) -> None:
    PageSession({"experiment": toy, "snapshot": "300"}, "pages/50_why_heads_differ.py")
    assert len([offer for offer in offered if offer.file.startswith("training-")]) == count
    assert "step 300 is marked" in offered[0].make(Size()).caption
    is_whole(offered[-1], ".svg", ".csv")


@pytest.mark.parametrize("experiment", lanes.some(["random", "count", "removal"], "count", "removal"))
def test_the_lab_gives_the_heads_at_a_step_and_every_curve(offered: list[Offer], experiment: str) -> None:
    PageSession({"experiment": experiment}, "pages/50_why_heads_differ.py")
    assert offered[0].file == "heads-step-0"
    assert {"lab-loss", "lab-accuracy", "lab-norms"} <= {offer.file for offer in offered}
    if experiment == "removal":
        assert {"removal", "importance"} <= {offer.file for offer in offered}
    for offer in offered:
        is_whole(offer, ".svg", ".csv")


def test_the_lab_gives_what_its_player_shows(offered: list[Offer]) -> None:
    PageSession({"experiment": "output", "step": "300"}, "pages/50_why_heads_differ.py")
    names = [offer.file for offer in offered]
    assert names[-4:] == ["lab-gradients", "lab-alike-weights", "lab-alike-attention", "lab-alike-gradients"]
    run = lab.load_stored("output").runs[0]
    at = run.steps.tolist().index(300)
    header, *lines = offered[-4].make(Size()).to_bytes(".csv").decode().splitlines()
    assert header == "head,norm,cosine_with_H0"
    assert [float(line.split(",")[1]) for line in lines] == pytest.approx(run.gradients[at].tolist())
    values = [float(line.rpartition(",")[2]) for line in offered[-2].make(Size()).to_bytes(".csv").decode().split()[1:]]
    assert values == pytest.approx((run.divergence[at] / np.log(2)).ravel().tolist())
    texts = {mark.text for mark in offered[-1].make(Size()).drawing.marks if isinstance(mark, Text)}
    assert decimal(float(run.gradient_cosines[at, 0, 1])) in texts


@pytest.mark.parametrize(
    ("url", "files"),
    [
        ({"off": "L3H1"}, [f"effects_{BEGINS}"]),
        (
            {"model": "toy", "text": "the dog [MASK] the girl .", "off": "L0H1"},
            ["words_the-dog-mask-the", "effects_the-dog-mask-the"],
        ),
    ],
)
def test_switch_off_gives_its_charts(url: dict[str, str], files: list[str], offered: list[Offer]) -> None:
    PageSession(url, "pages/60_switch_off.py")
    assert [offer.file for offer in offered][3:] == files
    for offer in offered[3:]:
        is_whole(offer, ".svg", ".csv")


def test_the_page_itself_offers_only_what_a_chart_has() -> None:
    here = PageSession({"step": "score"}, "pages/40_inside_a_head.py")
    here.at.session_state["download_panel"] = True
    here.at.run()
    here.check()
    assert {b.proto.label for b in here.at.get("download_button")} == {"SVG", "PDF", "PNG", "CSV", "JSON"}
