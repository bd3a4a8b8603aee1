"""The Inside a head page as a script: steps, heads and tokens from the URL, its sentences, errors; and its charts,
number by number."""

from __future__ import annotations

import base64
import functools
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import plotly.graph_objects as go
import pytest
import torch
from transformers import AutoModel, GPT2Config, GPT2Model

import mha_viz as mv
from mha_viz.analysis.distance import entropy
from mha_viz.app.inside.by_hand import compute_softmax_row
from mha_viz.app.inside.open_stage import OpenStage
from mha_viz.app.inside.page import find_strongest_link
from mha_viz.app.inside.stages import STAGES, STAGES_OF_OLD_LINKS
from mha_viz.app.inside.to_output import _make_table
from mha_viz.app.service.caches import ModelService
from mha_viz.app.service.reader import verbs
from mha_viz.app.widgets.download_panel import Offer
from mha_viz.app.widgets.parts import escape_markdown
from mha_viz.attention import Attention, Head
from mha_viz.attention.parts import ScoreParts
from mha_viz.attention.rotary import Rotation
from mha_viz.attention.trace import Floats, Parameters, Trace, compute_trace
from mha_viz.figures.charts import inside as draw
from mha_viz.figures.charts import score_parts
from mha_viz.figures.charts.chart import Chart
from mha_viz.figures.charts.chart_plotly import plotly
from mha_viz.figures.charts.inside import (
    MAX_TOKENS,
    choose_first_tokens,
    choose_tokens,
    draw_distance_scores,
    score_by_distance,
)
from mha_viz.figures.drawing.theme import LIGHT
from mha_viz.figures.layout.caption import format_head
from mha_viz.models.families import FAMILIES
from mha_viz.models.getting import catalog
from mha_viz.models.reading.encoder import Encoder
from mha_viz.numerals import decimal, percent
from mha_viz.request import Request
from mha_viz.text import Token, TokenizedText, clean
from tests import hostile, lanes, tiny_models
from tests.page_session import PageSession

pytestmark = pytest.mark.usefixtures("no_hub")

DRAWN_FAMILIES = [name for name in tiny_models.TRACED if not FAMILIES[name].rotary or name in ("llama", "modernbert")]
PAGE = "pages/40_inside_a_head.py"
CHARTS = {"x": 1, "project": 2, "score": 3, "share": 1, "moved": 1, "join": 4, "writes": 0}  # of the default model


def visit(**url: Any) -> PageSession:
    return PageSession(url, PAGE)


@functools.cache
def seen(**url: str) -> PageSession:
    """A visit that several tests look at, and that none of them changes."""
    return visit(**url)


def charts(page: PageSession) -> list[dict[str, Any]]:
    return [json.loads(one.proto.spec) for one in page.at.get("plotly_chart")]


def diagram(page: PageSession) -> dict[str, Any]:
    drawn = next(c.proto for c in page.at.get("bidi_component") if c.proto.component_name == "mha_block")
    content: dict[str, Any] = json.loads(drawn.json)
    return content


def formulas_stand_on_one_line(page: PageSession) -> bool:
    """The browser shows a formula with a line break as an error."""
    return all(line.count("$$") % 2 == 0 for line in page.said.splitlines())


def select(page: PageSession, name: str, value: int) -> None:
    """A head is chosen in the map of the block, everything else in a menu."""
    if name == "head":
        send(page, "head", value)
        return
    page.at.selectbox(key=f"inside_{name}").set_value(value).run()
    page.check()


SENTENCE = "The animal didn't cross the street because it was too tired."


# ---- Steps ----------------------------------------------------------------------------------------------


def test_the_page_begins_with_x_and_the_first_example() -> None:
    page = seen()
    assert "Every head gets the same x" in page.said
    assert diagram(page)["stage"] == "x"
    assert len(diagram(page)["heads"]) == 12
    assert diagram(page)["head"] == 1
    assert [page.at.selectbox(key=f"inside_{name}").value for name in ("layer", "q", "k")] == [3, 10, 2]
    assert "x 16 × 384" in "".join(e.proto.body for e in page.at.get("html"))


SECTIONS = {"project": "3.2.2", "score": "3.2.1", "share": "3.2.1", "join": "3.2.2"}  # of the paper, by stage


@pytest.mark.parametrize(
    ("step", "divided"),
    lanes.some(
        [(step, divided) for divided in (True, False) for step in STAGES],
        *((step, True) for step in STAGES),
        *((step, False) for step in ("score", "share", "moved")),  # the last one shows the model itself
    ),
)
def test_a_stage_has_text_shapes_and_the_charts_of_the_chosen_head_and_tokens(
    minilm: Encoder, step: str, divided: bool
) -> None:
    page = visit(text=SENTENCE, head="L2H5", q="7", k="3", step=step, **({} if divided else {"divide": "no"}))
    assert formulas_stand_on_one_line(page)
    assert diagram(page)["stage"] == step
    assert "## " in page.said
    assert "inside-shapes" in html(page)
    assert "What it costs" in page.said
    (strip,) = [e.proto.body for e in page.at.get("html") if 'class="inside-pinned"' in e.proto.body]
    assert re.search(r"<bdi>the</bdi><small>query</small>", strip, re.I)
    assert "<bdi>didn</bdi><small>key</small>" in strip
    if step in SECTIONS:
        text = "\n".join(m.value for m in page.at.markdown if r"With $d_k = d_{\text{model}} / h$" not in m.value)
        assert set(re.findall(r"Vaswani et al. 2017, section (\d\.\d\.\d)", text)) == {SECTIONS[step]}
    assert len(charts(page)) == CHARTS[step]
    parts = minilm.score_parts(SENTENCE, "L2H5", 7, 3)
    of_step = expected(minilm.trace(SENTENCE, layer=2), step, divided, parts)
    if step == "score":
        sides = html(page).split('<div class="inside-sides"')[1:]
        (held,) = [one for one in sides if " data-pinned>" in one]
        for _, listed in score_parts.iter_listed_parts(parts, named(parts)):
            assert sum(part.above_mean for part in listed) == pytest.approx(parts.above_mean.sum())
            for part in listed:
                beside = f"{decimal(part.value)}, mean {decimal(part.mean)}"
                above = decimal(part.above_mean)
                assert f'<tr title="{beside}"><th>{escape(part.name)}</th><td>{above}</td>' in held
    for chart, figure in zip(charts(page), of_step, strict=True):
        assert chart["layout"].get("shapes", []) == [shape.to_plotly_json() for shape in figure.layout.shapes]
        assert [note["text"] for note in chart["layout"].get("annotations", [])] == titles(figure)
        for drawn, one in zip(chart["data"], figure.data, strict=True):
            assert drawn["type"] == one.type
            for name in {"x", "y", "z"} & set(one.to_plotly_json()):
                same(numbers_of(drawn[name]), one[name])


def named(parts: ScoreParts) -> list[str]:
    """The names of the parts on the page."""
    return [format_head(Head.parse(name)) if name[0] == "L" else name for name in parts.names]


def on_page(make: Callable[..., Chart], *arguments: Any) -> go.Figure:
    """A chart as a page shows it."""
    return plotly(make(*arguments))


def html(page: PageSession) -> str:
    return "".join(element.proto.body for element in page.at.get("html"))


def expected(t: Trace, step: str, divided: bool, parts: ScoreParts) -> list[go.Figure]:
    """The charts of a stage with head 5, query 7 and key 3."""
    head, query, key, every = 5, 7, 3, list(range(t.n))
    pair = (every, query, key, LIGHT)
    drawn: dict[str, Callable[[], list[go.Figure]]] = {
        "x": lambda: [on_page(draw.draw_inputs, t, *pair)],
        "project": lambda: [
            on_page(draw.draw_all_matrices, t, head, LIGHT),
            on_page(draw.draw_head_matrices, t, head, LIGHT),
        ],
        "score": lambda: [
            on_page(draw.draw_products, t, head, query, key, LIGHT),
            on_page(draw.draw_softmaxes, t, head, query, every, key, LIGHT, divided),
            on_page(score_parts.draw_part_pairs, parts, named(parts), LIGHT),
        ],
        "share": lambda: [on_page(draw.draw_token_matrix, t, t.weights[head] if divided else t.undivided(head), *pair)],
        "moved": lambda: [on_page(draw.draw_values, t, head, query, every, LIGHT)],
        "writes": list,
        "join": lambda: [
            on_page(draw.draw_concatenation, t, head, query, LIGHT),
            on_page(draw.draw_output_matrix, t, head, LIGHT),
            on_page(draw.draw_contributions, t, head, query, LIGHT),
            on_page(draw.draw_weights_and_norms, t, head, query, every, key, LIGHT),
        ],
    }
    return drawn[step]()


def test_the_scores_say_why_the_query_looks_at_the_key(minilm: Encoder) -> None:
    page = visit(text=SENTENCE, head="L1H8", q="12", k="13", step="score")
    parts = minilm.score_parts(SENTENCE, "L1H8", 12, 13)
    (why,) = [e.proto.body for e in page.at.get("html") if 'class="inside-why"' in e.proto.body]
    assert "“<bdi>too</bdi>” → “<bdi>tired</bdi>”" in why
    place = parts.names.index("position")
    value, mean = (decimal(each[place, place]) for each in (parts.values, parts.means))
    first = f"(<b>+{decimal(parts.above_mean[place, place])}</b>: {value}, mean {mean})"
    assert f"because position of “<bdi>too</bdi>” meets position of “<bdi>tired</bdi>” {first}" in why
    above = float(parts.above_mean.sum())
    assert f"The score is <b>{decimal(parts.score)}</b>, mean {decimal(parts.score - above)} over the keys in" in why
    assert f"each list adds up to the difference, <b>{decimal(above)}</b>." in why
    (held,) = re.findall(r'<p class="inside-why" data-key="13" data-pinned>.*?</p>', why)
    assert why.count(" hidden>") == len(parts.text) - 1, "a sentence for each other key, which the pointer shows"
    (bars,) = [e.proto.body for e in page.at.get("html") if 'class="inside-sides"' in e.proto.body]
    (of_held,) = re.findall(r'<div class="inside-sides" data-key="13" data-pinned>.*?</div>', bars)
    rows = re.findall(r"<tr title=[^>]*><th>(.*?)</th><td>(.*?)</td>", of_held)
    assert rows[0] == ("position", decimal(parts.of_query[place]))
    assert [name for name, _ in rows].count("position") == 2, "by the query and by the key"
    assert bars.count(" hidden>") == why.count(" hidden>")
    link = dict(parse_qsl(unescape(re.search(r'href="\?([^"]*)"[^>]*>L0H2 \(1-3\)', held)[1])))  # type: ignore[index]
    assert link == {"text": SENTENCE, "head": "L0H2", "q": "12", "k": "13", "step": "score"}
    assert [one.label for one in page.at.expander].count("Part by part") == 1


def test_a_key_out_of_sight_has_no_parts(tiny_folder: Callable[[str], Path]) -> None:
    page = visit(model=str(tiny_folder("gpt2")), step="score", text="One dog barks.", q="1", k="3")
    assert 'class="inside-why"' not in html(page)
    assert len(charts(page)) == 3, "the products, the softmax, and the mask"


def test_scores_that_cannot_be_taken_apart_say_so(tiny_folder: Callable[[str], Path]) -> None:
    page = visit(model=str(tiny_folder("gemma3_text")), step="score", text="One dog barks.", q="3", k="1")
    assert "cannot be decomposed: a norm lies between" in html(page)
    assert len(charts(page)) == 3, "the products, the softmax, and the mask"


@pytest.mark.parametrize("token", ["<b>x</b>", "$x$"])
def test_words_of_a_person_are_never_markup_in_the_reason(token: str) -> None:
    page = visit(text=f"dog {token} cat", head="L1H8", step="score")
    assert "<b>x" not in html(page)


def test_the_picture_has_the_numbers_of_every_stage(minilm: Encoder) -> None:
    page = visit(text=SENTENCE, head="L3H1", q="10", k="2", step="writes")
    picture, trace = diagram(page)["picture"], minilm.trace(SENTENCE, layer=3)
    q, k = trace.q[1, 10], trace.k[1, 2]
    for row, numbers in zip(picture["products"], (q, k, q * k), strict=True):
        assert row["cells"] == np.rint(100 * numbers / abs(numbers).max()).astype(int).tolist()
    assert len(picture["x"][0]["cells"]) == trace.d_model
    assert picture["score"]["scaled"] == decimal(float(trace.scaled[1, 10, 2]))
    assert picture["score"]["is_masked"] is False
    why = {bar["name"]: bar["number"] for bar in picture["score"]["why"]}
    above = float(minilm.score_parts(SENTENCE, "L3H1", 10, 2).above_mean.sum())
    assert sum(why.values()) == pytest.approx(above)
    assert picture["score"]["above"] == decimal(above)
    assert [share["weight"] for share in picture["shares"]] == pytest.approx(trace.weights[1, 10].tolist())
    assert [row["name"] for row in picture["moved"]] == ["animal", "[CLS]", "it", "street", "sum"]
    moved = np.array([*(trace.weights[1, 10, key] * trace.v[1, key] for key in (2, 0, 10, 8)), trace.context[1, 10]])
    cells = np.array([row["cells"] for row in picture["moved"]])
    assert (abs(cells - 100 * moved / abs(moved).max()) <= 0.5 + 1e-3).all(), "one scale for all rows"
    output = mv.explain_output(minilm, SENTENCE, "L3H1", 10)
    assert [bar["number"] for bar in picture["layer"]] == pytest.approx(output.heads.tolist(), abs=1e-6)
    assert picture["written"]["key"]["towards"] == list(output.written[2].towards)
    assert picture["written"]["is_embedding"] is True
    table = html(page).split('<table class="inside-words">')[1]
    assert table.index("animal") < table.index("beast, breed, pup") < table.index("street")


def test_a_masked_key_has_a_score_and_is_said_to_be_masked() -> None:
    score = diagram(visit(model="repeater", text="dog river anna dog", head="L1H3", q="1", k="3"))["picture"]["score"]
    trace = mv.load("repeater").trace("dog river anna dog", layer=1)
    product = float(trace.scores[3, 1, 3])
    assert (score["sum"], score["scaled"]) == (decimal(product), decimal(product / math.sqrt(trace.d_k)))
    assert score["is_masked"] is True
    assert score["why"] == []


@pytest.mark.parametrize(
    ("model", "text", "head", "query"),
    [("toy", "The girl smiles because [MASK] sings .", "L1H1", 5), ("repeater", "dog river anna dog", "L1H3", 3)],
)
def test_the_picture_ends_with_the_answer_where_the_model_gives_one(
    model: str, text: str, head: str, query: int
) -> None:
    at_answer = visit(model=model, text=text, head=head, q=str(query), step="writes")
    answer = mv.predict(mv.load(model), text, [head])
    ends = sorted(zip(answer.words, answer.before, answer.after, strict=True), key=lambda end: -max(end[1:]))
    expected_bars = [(word, f"{percent(before)} → {percent(after)}") for word, before, after in ends[:3]]
    assert [(bar["name"], bar["value"]) for bar in diagram(at_answer)["picture"]["answer"]] == expected_bars
    elsewhere = visit(model=model, text=text, head=head, q="2", k="0", step="writes")
    assert diagram(elsewhere)["picture"]["answer"] == []


def test_the_words_of_each_key_are_a_table_to_download(minilm: Encoder) -> None:
    trace, output = minilm.trace(SENTENCE, layer=3), mv.explain_output(minilm, SENTENCE, "L3H1", 10)
    opened = OpenStage("writes", trace, 1, 10, 2, list(range(trace.n)), True, LIGHT, "About.", output=output)
    table = _make_table(opened)
    assert table.columns == ("key", "token", "weight", "norm", "share", "towards", "away")
    assert [row[0] for row in table.rows] == list(range(trace.n))
    assert table.rows[2][1] == "animal"
    assert table.rows[2][5] == ", ".join(output.written[2].towards)


def test_the_code_of_the_page_reads_the_prefix(minilm: Encoder, offered: list[Offer]) -> None:
    visit(text=SENTENCE, prefix="query: ", head="L3H1", query="12", step="share")
    code = offered[0].code
    assert code is not None
    results: dict[str, Any] = {}
    exec(code(), results)
    expected = minilm.prefixed("query: ").trace(SENTENCE, layer=3)
    np.testing.assert_array_equal(results["t"].weights, expected.weights)


def test_a_model_whose_heads_write_no_words_says_so(tiny_folder: Callable[[str], Path]) -> None:
    page = visit(model=str(tiny_folder("olmo2")), step="writes", head="L1H1", text="One dog barks.")
    picture = diagram(page)["picture"]
    assert "more than one norm and one matrix" in picture["written"]
    assert picture["written"] in unescape(page.said)
    assert sum(bar["number"] for bar in picture["layer"]) == pytest.approx(1, abs=1e-5)


# Of every family one stage, and for each stage a family.
FAMILIES_DRAWN = list({FAMILIES[name]: name for name in DRAWN_FAMILIES}.values())
PAIRS = (
    *(("gpt2", "score"), ("xlm-roberta", "score"), ("opt", "x"), ("albert", "x"), ("distilbert", "project")),
    *(("longformer", "score"), ("llama", "score"), ("big_bird", "share"), ("modernbert", "moved")),
    *(("albert", "join"), ("xlm-roberta", "join"), ("gpt_neo", "score"), ("llama", "writes"), ("llama", "project")),
)


@pytest.mark.parametrize(
    ("family", "step"), lanes.some([(family, step) for family in FAMILIES_DRAWN for step in STAGES], *PAIRS)
)
def test_every_stage_of_every_family(family: str, step: str, tiny_folder: Callable[[str], Path]) -> None:
    page = visit(model=str(tiny_folder(family)), step=step, head="L2H3", text="One dog barks.")
    more = 0
    if step == "x":
        more = FAMILIES[family].pre_norm is not False
    elif step == "project":
        more = 2 * bool(FAMILIES[family].rotary)
    elif step == "score":
        more = ("nothing is masked" not in page.said) - ('class="inside-why"' not in html(page))
    assert len(charts(page)) == CHARTS[step] + more
    if step == "score" and family not in ("longformer", "modernbert"):  # which see a window in some layers
        assert ("nothing is masked" in page.said) == (family not in tiny_models.CAUSAL)
    assert (step, family) != ("join", "albert") or "as wide as x was" in page.said


def test_pairs_have_every_family_and_every_stage() -> None:
    assert {family for family, _ in PAIRS} == set(FAMILIES_DRAWN)
    assert {step for _, step in PAIRS} == set(STAGES)


TURNED = ("cohere", "falcon", "gemma3_text", "gpt_neox", "gptj", "llama", "modernbert", "phi", "qwen3")


@pytest.mark.parametrize("family", lanes.some(TURNED, "gemma3_text", "gpt_neox", "llama", "modernbert"))
def test_positions_rotate_q_and_k(
    family: str, tiny: Callable[[str], Encoder], tiny_folder: Callable[[str], Path]
) -> None:
    trace = tiny(family).trace(SENTENCE, layer=2)
    page = visit(model=str(tiny_folder(family)), step="project", head="L2H3", text=SENTENCE, q="7", k="3")
    assert "Positions rotate q and k" in page.said
    assert f"is **{decimal(trace.q[3, 7, 0], 3)}**" in page.said.replace("= **", "is **")
    assert f"with it, it is **{decimal(trace.scores[3, 7, 3])}**" in page.said
    assert ("Of the 8 numbers only the first" in page.said) is (
        family in ("gpt_neox", "gptj", "phi") and trace.d_k == 8
    )
    assert formulas_stand_on_one_line(page)
    assert ("(RMSNorm)" in page.said) is (family in ("gemma3_text", "qwen3"))
    before, apart = charts(page)[2:]
    drawn = [trace.before_turn[0][3, 7], trace.q[3, 7], trace.before_turn[1][3, 3], trace.k[3, 3]]
    for bars, numbers in zip(before["data"], drawn, strict=True):
        same(numbers_of(bars["y"]), numbers)
    scores = dict(zip(numbers_of(apart["data"][0]["x"]), numbers_of(apart["data"][0]["y"]), strict=True))
    assert scores[4] == pytest.approx(trace.scores[3, 7, 3], rel=1e-4)
    assert (min(scores) < 0) is (family == "modernbert")  # which sees what comes later


def test_the_score_at_another_distance_is_that_of_tokens_who_stand_there() -> None:
    one = made(causal=True)
    angles = np.outer(np.arange(one.n), [1, 0.1, 1, 0.1])  # of both numbers of a pair
    rotation = Rotation(
        np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32), np.zeros((0, 0), np.float32)
    )
    of = (one.model, one.revision, one.layer, one.text, np.tile(one.x[:1], (one.n, 1)), one.parameters, one.mask)
    # The same vector everywhere: only positions differ
    trace = compute_trace(*of, heads=3, scaling=0.5, rotation=rotation)
    other = score_by_distance(trace, rotation, 1, 5, 4)
    assert other.distances == list(range(one.n))
    for distance, score in zip(other.distances, other.scores, strict=True):
        for key in range(one.n - distance):
            assert score == pytest.approx(trace.scores[1, key + distance, key], abs=1e-4)
    figure = on_page(draw_distance_scores, trace, rotation, 1, 5, 4, LIGHT)
    assert [colour == LIGHT.heads[1] for colour in figure.data[0].marker.color] == [place == 1 for place in range(7)]


def test_a_model_without_rotation_shows_none() -> None:
    assert "rotate" not in seen(step="project").said


@pytest.mark.parametrize("step", STAGES_OF_OLD_LINKS)
def test_an_old_link_opens_the_stage_of_its_step(step: str) -> None:
    page = visit(step=step)
    assert diagram(page)["stage"] == STAGES_OF_OLD_LINKS[step]
    assert "Ignored in this link" not in page.said


def test_a_stage_that_no_head_has_is_said_unless_it_is_the_step_of_a_training() -> None:
    assert "Ignored in this link: step=scales." in visit(step="scales").said
    assert "Ignored in this link" not in visit(step="77").said


def test_heads_that_share_keys_say_so(tiny_folder: Callable[[str], Path]) -> None:
    page = visit(model=str(tiny_folder("llama")), step="project", head="L1H3", text="One dog barks.")
    assert "$W_V$ have columns for only 2 of them. Heads 2 to 3 share one k and v" in page.said
    frames = [shape["x0"] for shape in charts(page)[0]["layout"]["shapes"]]
    assert frames == [23.5, 7.5, 7.5]  # the fourth queries, the second keys and values
    assert charts(page)[0]["layout"]["xaxis2"]["ticktext"] == ["H0–H1", "H2–H3"]
    assert "384, 12" not in page.said
    assert "share keys and values" not in seen(step="project").said


def test_a_window_is_named_as_the_reason_of_the_mask(tiny_folder: Callable[[str], Path]) -> None:
    page = visit(model=str(tiny_folder("mistral")), step="score", head="L1H0", text=SENTENCE)
    assert "no token may look at a later one; this layer sees only a window of the text" in page.said


def test_the_picture_opens_stages_and_heads() -> None:
    page = visit()
    send(page, "stage", "share")
    assert page.url["step"] == "share"
    send(page, "head", 7)
    assert page.url["head"] == "L3H7"
    assert (page.url["q"], page.url["k"]) == ("10", "2")  # the tokens stay: only the head changes
    assert diagram(page)["head"] == 7
    send(page, "stage", "no such stage")
    assert page.url["step"] == "share"


def send(page: PageSession, event: str, value: object) -> None:
    page.send("mha_block", event, value)


# ---- The numbers in sentences ---------------------------------------------------------------------------


def test_the_numbers_are_the_model_s(minilm: Encoder) -> None:
    trace = minilm.trace(SENTENCE, layer=3)
    assert f"= {trace.scores[1, 10, 2]:.2f}" in seen(step="score").said
    assert f"**{trace.weights[1, 10, 2]:.1%}**" in seen(step="share").said
    length = np.linalg.norm(trace.contribution(1)[10])
    assert f"adds a vector of length {length:.2f}" in seen(step="join").said
    assert f"is **{trace.q[1, 10, 0]:.3f}**" in seen(step="project").said


def test_the_loop_over_heads_is_compared() -> None:
    assert "all heads at once" in seen(step="project").said
    assert "The largest difference between the two results is **" in seen(step="project").said


def test_without_the_division_softmax_saturates() -> None:
    page = visit(step="score")
    assert "Without the division: **100.0%**, **0.00** nats" in page.said
    page.at.toggle(key="inside_undivided").set_value(True).run()
    page.check()
    assert page.url["divide"] == "no"
    bars = charts(page)[1]["data"]
    assert [bar["marker"]["opacity"] for bar in bars] == [0.35, 0.35, 1, 1]
    send(page, "stage", "share")
    assert "**100.0%**" in page.said
    assert page.at.toggle(key="inside_undivided").value is True
    page.at.toggle(key="inside_undivided").set_value(False).run()
    assert "divide" not in page.url


def test_the_softmax_without_the_division_is_not_called_the_model_s(minilm: Encoder) -> None:
    trace = minilm.trace(SENTENCE, layer=3)
    share, without = trace.weights[1, 10, 2], trace.undivided(1)[10, 2]
    page_text = seen(step="share").said
    assert r"A = \mathrm{softmax}\left(\frac{q k^\top}{\sqrt{d_k}}\right)" in page_text
    assert f"gives **{share:.1%}** of its attention" in page_text
    assert "This is the matrix\nthat Explore draws" in page_text
    undivided = seen(step="share", divide="no")
    assert formulas_stand_on_one_line(undivided)
    page_text = undivided.said
    assert "This is the matrix" not in page_text
    assert "the model's own differs" not in page_text
    assert r"A = \mathrm{softmax}" not in page_text
    assert r"$$\mathrm{softmax}\left(q k^\top\right)" in page_text
    assert f"would give **{without:.1%}** of its attention" in page_text
    assert f"in the model it gives {share:.1%}" in page_text
    assert "The picture above and Explore show the model itself." in page_text


@pytest.mark.parametrize("divided", [True, False])
def test_the_softmax_of_a_row_by_hand_is_the_row(minilm: Encoder, divided: bool) -> None:
    page = visit(text="Birds sing.", head="L3H1", step="share", q="1", k="2", **({} if divided else {"divide": "no"}))
    table = [line.split("|")[1:-1] for line in page.said.splitlines() if line.startswith("| ")]
    rows = {cells[0].strip(" *"): [cell.strip(" *") for cell in cells[1:]] for cells in table}
    tokens = [token.text for token in minilm.encode("Birds sing.").text.tokens]
    trace = minilm.trace("Birds sing.", layer=3)
    scores = [sum(float(a) * float(b) for a, b in zip(trace.q[1, 1], key, strict=True)) for key in trace.k[1]]
    scaled = [score / math.sqrt(trace.d_k) if divided else score for score in scores]
    powers = [math.exp(score) for score in scaled]
    for token, score, s, power in zip(tokens, scores, scaled, powers, strict=True):
        cells = rows[escape_markdown(token)]
        assert is_about(cells[0], score, 0.01)
        if divided:
            assert is_about(cells[1], s, 0.01)
            assert is_about(cells[-2], power, 0.001)
        assert is_about(cells[-1].removesuffix("%"), 100 * power / sum(powers), 0.1)
    assert rows["sum"][-1] == "100.0%"


def is_about(written: str, number: float, unit: float) -> bool:
    """The number as it is written. The page's numbers come from another process, where the last of seven digits may
    differ."""
    shown = float(written.replace("−", "-").replace(",", ""))
    return abs(shown - number) <= unit / 2 + 1e-5 * abs(number)


@pytest.mark.parametrize("distance", [2000, -2000])
def test_scores_far_from_zero_are_shifted_and_masked_keys_have_no_power(distance: int) -> None:
    trace = made(causal=True)
    far = replace(trace, scores=trace.scores + np.float32(distance))
    row = compute_softmax_row(far, 0, 1, False)
    assert row.shift / distance > 0.5
    assert row.powers[2:].max() == 0
    np.testing.assert_allclose(row.shares, trace.undivided(0)[1], atol=2e-3)


def test_a_model_that_scales_otherwise_gets_its_own_formula(tmp_path: Path) -> None:
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 400}
    config = GPT2Config(**sizes, scale_attn_weights=False, scale_attn_by_inverse_layer_idx=True)
    model = str(tiny_models.save_model(GPT2Model(config), tmp_path / "gpt2"))
    page = visit(model=model, step="share", head="L1H0", text="One dog.")
    assert r"A = \mathrm{softmax}\left(0.5 \cdot q k^\top\right)" in page.said
    page = visit(model=model, step="score", head="L1H0", text="One dog.")
    assert "## Scaled before softmax" in page.said
    assert "This model does not divide by " in page.said
    assert ": it multiplies by 0.5." in page.said


# ---- What enters ----------------------------------------------------------------------------------------


BLOCKS = {  # OPT with 125 million parameters normalises before its attention, the one with 350 million after it
    "bert": "encoder.layer.1",
    "distilbert": "transformer.layer.1",
    "roberta": "encoder.layer.1",
    "electra": "encoder.layer.1",
    "gpt2": "h.1",
    "opt": "decoder.layers.1",
    "opt behind": "decoder.layers.1",
    "llama": "layers.1",
    "gpt_neox": "layers.1",
}
NORMS = {
    "gpt2": "ln_1",
    "opt": "self_attn_layer_norm",
    "llama": "input_layernorm",
    "gpt_neox": "input_layernorm",
}


@pytest.mark.parametrize("family", lanes.some(list(BLOCKS), "bert", "gpt2", "opt", "opt behind", "llama", "gpt_neox"))
def test_x_is_normalised_where_the_layer_does_so_first(family: str, tiny_folder: Callable[[str], Path]) -> None:
    folder = tiny_folder(family)
    encoder, entered = Encoder.from_folder(folder), []
    plain_model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    block = plain_model.get_submodule(BLOCKS[family])
    block.register_forward_pre_hook(
        lambda _, given, named: entered.append((given or tuple(named.values()))[0].clone()), with_kwargs=True
    )
    with torch.no_grad():
        plain_model(torch.tensor([encoder.vocabulary("One dog barks.").input_ids]))
    trace = encoder.trace("One dog barks.", layer=1)
    first = family in NORMS
    assert trace.pre_norm is first
    if trace.layer_input is not None:
        same(trace.layer_input, entered[0].reshape(trace.x.shape))
    with torch.no_grad():
        expected = block.get_submodule(NORMS[family])(entered[0]) if first else entered[0]
    assert trace.x == pytest.approx(expected.reshape(trace.x.shape).numpy(), abs=1e-5)
    assert first is not np.allclose(trace.x, entered[0].reshape(trace.x.shape).numpy(), atol=1e-2)


@pytest.mark.parametrize("family", lanes.some(list(BLOCKS), "bert", "gpt2"))
def test_x_is_called_normalised_where_the_layer_does_so_first(family: str, tiny_folder: Callable[[str], Path]) -> None:
    folder, first = tiny_folder(family), family in NORMS
    page = visit(model=str(folder), step="x", head="L1H0", text="One dog barks.")
    assert "Each token is a vector of 32 numbers" in page.said
    assert ("**normalises first**" in page.said) is first
    page = visit(model=str(folder), step="join", head="L1H0", text="One dog barks.")
    assert "Then what entered the layer is added" in page.said
    assert ("not x, but what x was before it was normalised" in page.said) is first
    assert ("in this model that is x" in page.said) is not first


# ---- What the URL asks for ------------------------------------------------------------------------------


def test_another_head_layer_query_and_key() -> None:
    page = visit(head="L0H2", step="score")
    select(page, "layer", 5)
    assert page.url["head"] == "L5H2"
    select(page, "head", 11)
    assert page.url["head"] == "L5H11"
    select(page, "q", 7)
    select(page, "k", 8)
    assert (page.url["q"], page.url["k"]) == ("7", "8")
    assert "“the”" in page.said
    assert "“street”" in page.said


def test_a_pin_of_explore_is_taken_over() -> None:
    page = visit(head="L2H0", pin="q3k5")
    assert [page.at.selectbox(key=f"inside_{name}").value for name in ("q", "k")] == [3, 5]
    page = visit(head="L2H0", pin="k5", q="4")
    assert [page.at.selectbox(key=f"inside_{name}").value for name in ("q", "k")] == [4, 5]


@pytest.mark.parametrize(
    ("model", "text", "query"),
    [("toy", "The girl smiles because [MASK] sings .", 5), ("repeater", "dog river anna dog", 3)],
)
def test_the_page_begins_where_the_model_predicts_a_word(model: str, text: str, query: int) -> None:
    assert visit(model=model, text=text).at.selectbox(key="inside_q").value == query
    assert visit(model=model, text=text, q="2").at.selectbox(key="inside_q").value == 2


def test_a_link_that_is_only_partly_there_is_not_shown_in_part() -> None:
    page = visit(text="Dogs bark.", head="L3H1", q="10", k="2")
    assert "Ignored in this link: q=10; the strongest link is shown." in page.said
    strongest = visit(text="Dogs bark.", head="L3H1")
    values = [[one.at.selectbox(key=f"inside_{name}").value for name in ("q", "k")] for one in (page, strongest)]
    assert values[0] == values[1]


def test_another_sentence_forgets_the_tokens() -> None:
    page = visit(q="14", k="13", step="score")
    page.read("Dogs bark.")
    assert "q" not in page.url
    assert page.url["step"] == "score"
    assert "not there" not in page.said


@pytest.mark.parametrize(
    ("url", "messages"),
    [
        ({"head": "L9H0", "q": "99"}, ("head=L9H0; L3H1 (4-2) is shown", "q=99; the strongest link is shown")),
        ({"head": "L0H99", "k": "-1"}, ("head=L0H99; L3H1 (4-2) is shown", "k=-1")),
        ({"head": "first", "q": "<b>", "k": "1e3"}, ("head=first; L3H1 (4-2) is shown", "q=<b>, k=1e3")),
        ({"pin": "q99", "divide": "yes"}, ("pin=q99", "divide=yes")),
        ({"pin": "first", "costs": "1,2"}, ("pin=first", "costs=1,2")),
    ],
)
def test_what_is_not_there_is_said(url: dict[str, str], messages: tuple[str, str]) -> None:
    page = visit(**url, order="backwards", at="x", on="y")  # the last are of other pages
    for message in messages:
        assert f"Ignored in this link: {message}" in page.said
    assert page.said.count("Ignored in this link") == len(messages)
    assert "Every head gets the same x" in page.said


@pytest.mark.parametrize("odd", [clean(t) for t in hostile.KINDS.values() if 0 < len(t) < 200])
def test_odd_parameters_are_survived(odd: str) -> None:
    page = visit(head=odd, step=odd, q=odd, k=odd, divide=odd, costs=odd, pin=odd)
    assert diagram(page)["stage"] == "x"
    assert page.at.number_input(key="costs_d_model").value == 512


ODD_TOKENS = ("script", "markdown image", "strike", "emoji family of seven code points", "hebrew")


@pytest.mark.parametrize(("name", "step"), lanes.pair_values(ODD_TOKENS, ("score", "moved", "join")))
def test_odd_tokens_are_drawn_as_text(name: str, step: str) -> None:
    page = visit(text=hostile.TEXTS.get(name, "שלום עולם $x$"), step=step)
    assert len(charts(page)) == CHARTS[step]
    ticks = [t for chart in charts(page) for axis in chart["layout"].values() for t in _ticks(axis)]
    assert not any("<s" in t or "<i" in t for t in ticks)
    assert "](http" not in page.said.replace("](https://arxiv.org", "")


def _ticks(axis: Any) -> list[str]:
    return axis.get("ticktext", []) if isinstance(axis, dict) else []


def test_two_sentences_and_gold_words() -> None:
    assert len(charts(visit(text="The dog barks.", pair="It is loud.", step="share"))) == 1
    assert len(charts(visit(text="The dogs bark .", step="moved"))) == 1


def test_a_long_text_shows_the_tokens_that_matter(minilm: Encoder) -> None:
    typed = f"{SENTENCE} " * 12
    page = visit(text=typed, step="moved", q="40", k="3")
    trace = minilm.trace(typed, layer=3)
    assert f"Only {MAX_TOKENS} of {trace.n} tokens are drawn: the query, the key, and those" in page.said
    shown = choose_tokens(trace, 1, 40, 3)
    assert len(shown) == MAX_TOKENS
    assert {40, 3} <= set(shown)
    assert sorted(shown) == shown
    left = set(range(trace.n)) - set(shown)
    assert max(trace.weights[1, 40, t] for t in left) <= min(trace.weights[1, 40, t] for t in set(shown) - {40, 3})


def test_another_head_changes_nothing_at_x_however_long_the_text() -> None:
    typed = f"{SENTENCE} " * 12
    page = visit(text=typed, step="x", q="90", k="40", head="L3H1")
    before, page_text = charts(page), page.said
    assert f"Only the first {MAX_TOKENS} of " in page_text
    assert "tokens are drawn, plus the query and the key." in page_text
    assert len(before[0]["layout"]["yaxis"]["ticktext"]) == MAX_TOKENS + 2
    for head in (7, 11):
        select(page, "head", head)
        assert charts(page) == before
        assert page.said == page_text


def test_the_first_tokens_are_those_of_every_head() -> None:
    trace = made(n=50)
    assert choose_first_tokens(trace, 40, 3) == [*range(MAX_TOKENS), 40]
    assert choose_first_tokens(trace, 49, 40) == [*range(MAX_TOKENS), 40, 49]
    assert choose_first_tokens(made(), 4, 6) == list(range(7))


def test_the_strongest_link_of_a_head_is_shown_first() -> None:
    weights = np.full((3, 3), 1 / 3)
    weights[1] = [0.1, 0.2, 0.7]
    attention = Attention.from_tensors([weights[None]], ["[CLS]", "a", "b"])
    assert find_strongest_link(attention, Head(0, 0), None, None) == (1, 2)
    assert find_strongest_link(attention, Head(0, 0), 2, None) == (2, 1)
    assert find_strongest_link(attention, Head(0, 0), None, 0) == (1, 0)
    assert find_strongest_link(attention, Head(0, 0), 0, 1) == (0, 1)
    assert find_strongest_link(attention, Head(0, 0), 1, 1) == (1, 1)


# ---- Models that cannot be opened -----------------------------------------------------------------------


def test_a_model_whose_steps_cannot_be_told_apart_says_why(tiny_folder: Callable[[str], Path]) -> None:
    page = visit(model=str(tiny_folder("bloom")))
    assert "adds a number to q · k that depends on the distance" in page.said
    assert "Choose a model such as BERT" in page.said
    assert "What it costs" in page.said
    assert not charts(page)


def test_a_model_that_is_not_there_leaves_the_default_one() -> None:
    page = visit(model="/no/such/folder")
    assert "is not a model" in page.said
    assert "Every head gets the same x" in page.said


def test_a_trace_is_kept_and_counted_in_bytes(tiny_folder: Callable[[str], Path]) -> None:
    service, model = ModelService(), catalog.resolve(str(tiny_folder("bert")))
    first = service.ask_cached(verbs.trace, Request(model.name, "One dog."), 1).result()
    assert service.ask_cached(verbs.trace, Request(model.name, "One dog."), 1).result() is first
    assert service._traces.bytes == first.bytes
    assert service.ask_cached(verbs.trace, Request(model.name, "One dog."), 2).result() is not first


# ---- The calculator -------------------------------------------------------------------------------------


def test_the_calculator_begins_with_the_paper_s_numbers_beside_the_model_s() -> None:
    page_text = seen().said
    assert r"| $d_{\text{model}}$, h, n | 512, 8, 64 | 512, 1, 64 | 384, 12, 16 |" in page_text
    assert "| **64** | **512** | **32** |" in page_text
    assert "| parameters: $W_Q$, $W_K$, $W_V$, $W_O$ | **1,048,576** | **1,048,576** | **589,824** |" in page_text
    assert "| parameters with biases | 1,050,624 | 1,050,624 | 591,360 |" in page_text


def test_other_numbers_are_kept_in_the_link() -> None:
    page = visit()
    page.at.number_input(key="costs_n").set_value(128).run()
    page.check()
    assert page.url["costs"] == "512,8,128"
    assert "512, 8, 128" in page.said
    page.at.number_input(key="costs_n").set_value(64).run()
    assert "costs" not in page.url


def test_bad_settings_get_a_message_at_the_control() -> None:
    page = visit()
    for name, value, message in (
        ("h", 7, "7 heads cannot share 512 dimensions equally: 1 would remain.</p><p>Choose h = 1, 2, 4, 8,"),
        ("h", 0, "h is 0."),
        ("n", -5, "n is -5."),
        ("d_model", 10**15, "Give a whole number from 1 to 65,536."),
        ("n", 2**53 - 1, "Give a whole number from 1 to 1,048,576."),
    ):
        usual = page.at.number_input(key=f"costs_{name}").value
        page.at.number_input(key=f"costs_{name}").set_value(value).run()
        page.check()
        assert message in page.said.replace("\n", " ")
        assert "384, 12, 16" in page.said, "the model's own numbers stay"
        assert "Every head gets the same x" in page.said
        page.at.number_input(key=f"costs_{name}").set_value(usual)  # sent with the next one


def test_a_model_of_unknown_width_is_measured(tiny_folder: Callable[[str], Path]) -> None:
    assert "| 32, 4, " in visit(model=str(tiny_folder("bert"))).said


# ---- The charts, number by number -----------------------------------------------------------------------

HEAD, QUERY, KEY, TOKENS = (
    1,
    4,
    6,
    [1, 2, 4, 5, 6],
)  # neither the first head nor the last; a token's index differs from its row
WORDS = ["zero", "one", "two", "three", "four", "five", "six"]


def made(
    n: int = 7, d_model: int = 10, heads: int = 3, d_k: int = 4, causal: bool = False, scaling: float = 0
) -> Trace:
    """A layer of random numbers in which all sizes differ."""
    rng = np.random.default_rng(5)

    def numbers(*shape: int) -> Floats:
        return rng.normal(size=shape).astype(np.float32)

    wide = heads * d_k
    matrices = [numbers(d_model, wide) for _ in range(3)]
    biases = [numbers(wide) for _ in range(3)]
    arrays: list[Any] = [*matrices, numbers(wide, d_model), *biases, numbers(d_model)]
    parameters = Parameters(*arrays)
    tokens = tuple(Token(WORDS[i % 7], i, 0, i, i + 1) for i in range(n))
    mask = np.triu(np.full((n, n), causal), 1)
    of = ("made", "", 0, TokenizedText("a" * n, "", tokens))
    return compute_trace(*of, numbers(n, d_model), parameters, mask, heads=heads, scaling=scaling or d_k**-0.5)


def same(drawn: Any, numbers: Any) -> None:
    actual, expected = np.asarray(drawn, np.float64), np.asarray(numbers, np.float64)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def marked(axis: Any, bold: set[int]) -> None:
    """The tokens' names are at their rows, in the order of the text, with query and key in bold."""
    assert list(axis.tickvals) == list(range(len(TOKENS)))
    assert list(axis.ticktext) == [f"<b>{WORDS[t]}</b>" if t in bold else WORDS[t] for t in TOKENS]


def hovers(token: int) -> str:
    return f"“{WORDS[token]}” ({token})"


def titles(figure: go.Figure) -> list[str]:
    return [note.text for note in figure.layout.annotations]


def box(shape: Any) -> tuple[float, float, float, float]:
    return shape.x0, shape.x1, shape.y0, shape.y1


def sizes(matrix: Floats, high: int, wide: int) -> list[list[float]]:
    """Root mean squares of blocks, the last of which may be smaller."""
    rows, columns = range(0, matrix.shape[0], high), range(0, matrix.shape[1], wide)
    blocks = [[matrix[i : i + high, j : j + wide].astype(np.float64) for j in columns] for i in rows]
    return [[float(np.sqrt((block**2).mean())) for block in row] for row in blocks]


def test_x_is_drawn_row_by_row() -> None:
    trace = made()
    figure = on_page(draw.draw_inputs, trace, TOKENS, QUERY, KEY, LIGHT)
    same(figure.data[0].z, trace.x[TOKENS])
    marked(figure.layout.yaxis, {QUERY, KEY})
    assert figure.layout.yaxis.autorange == "reversed"  # the first token at the top


def test_the_three_matrices_are_drawn_in_blocks_with_the_head_s_columns_framed() -> None:
    trace = made(n=3, d_model=193, heads=3, d_k=64)  # 193 rows: blocks of three, and one row
    figure, p = on_page(draw.draw_all_matrices, trace, HEAD, LIGHT), trace.parameters
    for name, drawn, matrix in zip("QKV", figure.data, (p.w_q, p.w_k, p.w_v), strict=True):
        same(drawn.z, sizes(matrix, 3, 2))
        assert titles(figure)["QKV".index(name)] == f"W<sub>{name}</sub>  193 × 192"
    assert len(figure.layout.shapes) == 3
    for shape, axes in zip(figure.layout.shapes, ("x", "x2", "x3"), strict=True):
        assert box(shape) == (31.5, 63.5, -0.5, 64.5)  # columns 64 to 127, two in a cell
        assert shape.xref == axes
        assert shape.line.color == LIGHT.heads[HEAD]
    for axis in (figure.layout.xaxis, figure.layout.xaxis2, figure.layout.xaxis3):
        assert list(zip(axis.ticktext, axis.tickvals, strict=True)) == [("H0", 15.5), ("H1", 47.5), ("H2", 79.5)]
    assert all(a.autorange == "reversed" for a in (figure.layout.yaxis, figure.layout.yaxis2, figure.layout.yaxis3))


@pytest.mark.parametrize("head", range(3))
def test_the_slices_are_this_head_s(head: int) -> None:
    trace = made()
    figure, p = on_page(draw.draw_head_matrices, trace, head, LIGHT), trace.parameters
    for i, (name, matrix) in enumerate(zip("QKV", (p.w_q, p.w_k, p.w_v), strict=True)):
        same(figure.data[i].z, matrix[:, 4 * head : 4 * head + 4])
        assert titles(figure)[i] == f"W<sub>{name}</sub> of H{head}"
    assert len({(drawn.zmin, drawn.zmax) for drawn in figure.data}) == 1  # one scale of colours for the three
    assert figure.layout.yaxis.autorange == "reversed"


@pytest.mark.parametrize(("query", "key"), [(QUERY, KEY), (KEY, QUERY), (0, 0)])
def test_the_products_sum_to_the_score(query: int, key: int) -> None:
    trace = made()
    p, columns = trace.parameters, slice(4, 8)
    q = trace.x[query] @ p.w_q[:, columns] + p.b_q[columns]
    k = trace.x[key] @ p.w_k[:, columns] + p.b_k[columns]
    figure = on_page(draw.draw_products, trace, HEAD, query, key, LIGHT)
    for drawn, numbers in zip(figure.data, (q, k, q * k), strict=True):
        same(drawn.y, numbers)
        assert list(drawn.marker.color) == [LIGHT.signed[5 if number > 0 else 1] for number in numbers]
    same(figure.data[2].y.sum(), trace.scores[HEAD, query, key])
    assert [drawn.yaxis for drawn in figure.data] == ["y", "y2", "y3"]
    assert titles(figure)[:2] == [f"q of {hovers(query)}", f"k of {hovers(key)}"]
    assert f"which sum to <b>{trace.scores[HEAD, query, key]:.2f}</b>".replace("-", "−") in titles(figure)[2]


@pytest.mark.parametrize("divided", [True, False])
@pytest.mark.parametrize("causal", [True, False])
def test_scores_and_weights_are_drawn_with_and_without_the_division(causal: bool, divided: bool) -> None:
    trace = made(causal=causal)
    figure = on_page(draw.draw_softmaxes, trace, HEAD, QUERY, TOKENS, KEY, LIGHT, divided)
    scores = trace.scores[HEAD, QUERY].astype(np.float64)
    if causal:
        scores = np.where(np.arange(7) > QUERY, np.nan, scores)
    raised = np.exp(np.where(np.isnan(scores), -np.inf, scores))
    undivided = raised / raised.sum()
    weights = trace.weights[HEAD, QUERY]
    drawn = figure.data
    same(drawn[0].y, scores[TOKENS] / 2)  # √4
    same(drawn[1].y, weights[TOKENS])
    same(drawn[2].y, scores[TOKENS])
    same(drawn[3].y, undivided[TOKENS])
    assert [one.yaxis for one in drawn] == ["y", "y2", "y", "y2"]
    assert [list(one.x) for one in drawn] == [list(range(5))] * 4
    assert [one.marker.opacity for one in drawn] == ([1, 1, 0.35, 0.35] if divided else [0.35, 0.35, 1, 1])
    assert drawn[0].name == f"q · k / √4: entropy {entropy(weights):.2f} nats"
    assert drawn[2].name == f"q · k unscaled: entropy {entropy(undivided):.2f} nats"
    assert drawn[0].marker.color == drawn[1].marker.color != drawn[2].marker.color == drawn[3].marker.color
    for one in drawn:
        assert list(one.customdata) == [hovers(token) for token in TOKENS]
    marked(figure.layout.xaxis, {QUERY, KEY})
    marked(figure.layout.xaxis2, {QUERY, KEY})
    assert (
        on_page(draw.draw_softmaxes, made(scaling=0.25), HEAD, QUERY, TOKENS, KEY, LIGHT)
        .data[0]
        .name.startswith("q · k × 0.25:")
    )


def test_the_mask_is_drawn_cell_by_cell() -> None:
    figure = on_page(draw.draw_mask, made(causal=True), TOKENS, QUERY, KEY, LIGHT)
    later = [[key > query for key in TOKENS] for query in TOKENS]
    same(figure.data[0].z, later)
    assert np.asarray(figure.data[0].hovertext).tolist() == [
        ["masked" if cell else "open" for cell in row] for row in later
    ]
    assert figure.data[0].colorscale[-1][1] == LIGHT.muted  # masked is grey
    assert not on_page(draw.draw_mask, made(), TOKENS, QUERY, KEY, LIGHT).data[0].z.any()


def test_the_map_is_the_weights_queries_down_and_keys_across() -> None:
    trace = made()
    figure = on_page(draw.draw_token_matrix, trace, trace.weights[HEAD], TOKENS, QUERY, KEY, LIGHT)
    drawn = figure.data[0]
    same(drawn.z, [[trace.weights[HEAD, query, key] for key in TOKENS] for query in TOKENS])
    assert drawn.customdata.tolist() == [[f"{hovers(q)} to {hovers(k)}" for k in TOKENS] for q in TOKENS]
    assert (drawn.zmin, drawn.zmax) == (0, 1)
    layout = figure.layout
    assert (layout.xaxis.title.text, layout.yaxis.title.text) == ("key", "query")
    assert layout.yaxis.autorange == "reversed"
    for axis in (layout.xaxis, layout.yaxis):
        marked(axis, {QUERY, KEY})
    row, column = TOKENS.index(QUERY), TOKENS.index(KEY)
    assert [box(shape) for shape in layout.shapes] == [
        (-0.5, 4.5, row - 0.5, row + 0.5),
        (column - 0.5, column + 0.5, row - 0.5, row + 0.5),
    ]


@pytest.mark.parametrize("tokens", [TOKENS, list(range(7))])
def test_the_values_are_this_head_s_and_their_sum_is_what_it_says(tokens: list[int]) -> None:
    trace = made()
    figure = on_page(draw.draw_values, trace, HEAD, QUERY, tokens, LIGHT)
    p, columns = trace.parameters, slice(4, 8)
    v = (trace.x @ p.w_v[:, columns] + p.b_v[columns])[tokens]
    weights = trace.weights[HEAD, QUERY, tokens]
    bars, plain, weighted, total = figure.data
    same(bars.x, weights)
    assert list(bars.y) == list(range(len(tokens)))
    assert list(bars.text) == [f"{weight:.2f}" if weight >= 0.005 else "" for weight in weights]
    same(plain.z, v)
    same(weighted.z, [weight * row for weight, row in zip(weights, v, strict=True)])
    same(total.z, [trace.concatenation[QUERY, columns]])
    if len(tokens) == trace.n:
        same(np.sum(weighted.z, axis=0), total.z[0])
    assert (weighted.zmin, weighted.zmax) == (total.zmin, total.zmax)
    assert [one.yaxis for one in figure.data] == ["y", "y2", "y3", "y4"]
    layout = figure.layout
    assert all(axis.range == (len(tokens) - 0.5, -0.5) for axis in (layout.yaxis, layout.yaxis2, layout.yaxis3))
    assert list(layout.yaxis.ticktext) == [f"<b>{WORDS[t]}</b>" if t == QUERY else WORDS[t] for t in tokens]


@pytest.mark.parametrize("head", range(3))
def test_the_columns_of_the_concatenation_belong_to_their_heads(head: int) -> None:
    trace = made()
    figure = on_page(draw.draw_concatenation, trace, head, QUERY, LIGHT)
    same(np.concatenate([bars.y for bars in figure.data]), trace.concatenation[QUERY])
    for other, bars in enumerate(figure.data):
        assert list(bars.x) == list(range(4 * other, 4 * other + 4))
        same(bars.y, trace.weights[other, QUERY] @ trace.v[other])
        assert bars.hovertemplate.startswith(f"head {other}, ")
        assert bars.marker.color == LIGHT.heads[other]
        assert (bars.marker.opacity == 1) is (other == head)
    assert titles(figure) == [f"<b>H{other}</b>" if other == head else f"H{other}" for other in range(3)]
    assert [note.x for note in figure.layout.annotations] == [1.5, 5.5, 9.5]
    assert box(figure.layout.shapes[0])[:2] == (4 * head - 0.5, 4 * head + 3.5)
    assert list(figure.layout.xaxis.tickvals) == [0, 4, 8, 12]


@pytest.mark.parametrize("head", range(3))
def test_the_rows_of_w_o_are_this_head_s(head: int) -> None:
    trace = made()
    figure, w_o = on_page(draw.draw_output_matrix, trace, head, LIGHT), trace.parameters.w_o
    same(figure.data[0].z, np.abs(w_o))  # small enough for a cell a number
    same(figure.data[1].z, w_o[4 * head : 4 * head + 4])
    assert box(figure.layout.shapes[0]) == (-0.5, 9.5, 4 * head - 0.5, 4 * head + 3.5)
    assert titles(figure) == ["W<sub>O</sub>  12 × 10", f"its rows for head {head}  4 × 10"]
    assert list(figure.layout.yaxis.ticktext) == ["H0", "H1", "H2"]
    assert list(figure.layout.yaxis.tickvals) == [1.5, 5.5, 9.5]
    assert figure.layout.yaxis.autorange == figure.layout.yaxis2.autorange == "reversed"
    large = made(n=3, d_model=193, heads=3, d_k=64)
    drawn = on_page(draw.draw_output_matrix, large, head, LIGHT)
    same(drawn.data[0].z, sizes(large.parameters.w_o, 2, 3))
    assert box(drawn.layout.shapes[0]) == (-0.5, 64.5, 32 * head - 0.5, 32 * head + 31.5)


@pytest.mark.parametrize("query", lanes.some(range(7), 0, 4, 6))
def test_contributions_and_bias_are_the_output(query: int) -> None:
    trace = made()
    figure, p = on_page(draw.draw_contributions, trace, HEAD, query, LIGHT), trace.parameters
    table, lengths = figure.data
    for head in range(3):
        columns = slice(4 * head, 4 * head + 4)
        same(table.z[head], trace.concatenation[query, columns] @ p.w_o[columns])
    same(table.z[3], p.b_o)
    same(table.z[4], trace.concatenation[query] @ p.w_o + p.b_o)
    same(table.z[:4].sum(axis=0), trace.output[query])
    same(lengths.x, [np.sqrt((row.astype(np.float64) ** 2).sum()) for row in table.z])
    assert list(lengths.y) == list(range(5))
    assert list(lengths.text) == [f"{length:.2f}" for length in lengths.x]
    assert list(figure.layout.yaxis.ticktext) == ["H0", "<b>H1</b>", "H2", "bias", "sum"]
    assert list(figure.layout.yaxis.tickvals) == list(range(5))
    assert figure.layout.yaxis.range == figure.layout.yaxis2.range == (4.5, -0.5)


@pytest.mark.parametrize("head", range(3))
def test_weights_and_the_lengths_that_they_let_through(head: int) -> None:
    trace = made()
    figure, p, columns = (
        on_page(draw.draw_weights_and_norms, trace, head, QUERY, TOKENS, KEY, LIGHT),
        trace.parameters,
        slice(4 * head, 4 * head + 4),
    )
    values = trace.x @ p.w_v[:, columns] + p.b_v[columns]
    passed = [trace.weights[head, QUERY, token] * values[token] @ p.w_o[columns] for token in TOKENS]
    weights, norms = figure.data
    same(weights.y, trace.weights[head, QUERY, TOKENS])
    same(norms.y, [np.sqrt((vector.astype(np.float64) ** 2).sum()) for vector in passed])
    assert titles(figure) == ["weight", "length of weight × v × W<sub>O</sub>"]
    for bars, axis in ((weights, "y"), (norms, "y2")):
        assert list(bars.x) == list(range(5))
        assert list(bars.customdata) == [hovers(token) for token in TOKENS]
        assert bars.yaxis == axis
    marked(figure.layout.xaxis, {QUERY, KEY})


def numbers_of(sent: Any) -> Any:
    """An array as it is sent: in base64, or as a list."""
    if not isinstance(sent, dict):
        return sent
    array = np.frombuffer(base64.b64decode(sent["bdata"]), sent["dtype"])
    return array.reshape([int(size) for size in sent["shape"].split(",")]) if "shape" in sent else array
