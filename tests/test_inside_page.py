"""The page on the inside of a head as a script: steps, heads and tokens of the URL, what it says, what can go wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import LlamaConfig, LlamaModel

from mha_viz.attention import Attention, Head
from mha_viz.figures.inside import DRAWN, in_view
from mha_viz.models import catalog
from mha_viz.models.encoder import Encoder
from mha_viz.text import clean
from mha_viz.ui.cache import Office
from mha_viz.ui.inside import strongest
from mha_viz.ui.inside_steps import STEPS
from tests import hostile, tiny_models
from tests.test_trace import saved
from tests.visit import Visit

pytestmark = pytest.mark.usefixtures("no_hub")

PAGE = "pages/40_inside_a_head.py"
CHARTS = {"linear": 2, "output": 3}  # one chart in every other step


def visit(**url: Any) -> Visit:
    return Visit(url, PAGE)


def charts(page: Visit) -> list[dict[str, Any]]:
    return [json.loads(one.proto.spec) for one in page.at.get("plotly_chart")]


def diagram(page: Visit) -> dict[str, Any]:
    drawn = next(c.proto for c in page.at.get("bidi_component") if c.proto.component_name == "mha_block")
    found: dict[str, Any] = json.loads(drawn.json)
    return found


def select(page: Visit, name: str, value: int) -> None:
    page.at.selectbox(key=f"inside_{name}").set_value(value).run()
    page.check()


# ---- Steps ----------------------------------------------------------------------------------------------


def test_the_page_begins_with_x_and_the_first_example() -> None:
    page = visit()
    assert "Every head gets the same x" in page.said
    assert diagram(page)["step"] == "x"
    assert len(diagram(page)["heads"]) == 12
    assert [page.at.selectbox(key=f"inside_{name}").value for name in ("layer", "head", "q", "k")] == [3, 1, 10, 2]
    assert "x 16 × 384" in "".join(e.proto.body for e in page.at.get("html"))


@pytest.mark.parametrize("step", STEPS)
def test_every_step_has_text_shapes_and_charts(step: str) -> None:
    page = visit(step=step)
    assert diagram(page)["step"] == step
    assert "### " in page.said
    assert "inside-shapes" in "".join(e.proto.body for e in page.at.get("html"))
    assert len(charts(page)) == CHARTS.get(step, 1)
    assert "What it costs" in page.said


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_every_step_of_every_family(family: str, step: str, tiny_folder: Callable[[str], Path]) -> None:
    page = visit(model=str(tiny_folder(family)), step=step, head="L2H3", text="One dog barks.")
    assert len(charts(page)) == CHARTS.get(step, 1)
    if step == "mask":
        assert ("nothing is masked" in page.said) == (family != "gpt2")


def test_steps_are_gone_through_in_order() -> None:
    page = visit()
    for before, after in zip(list(STEPS), list(STEPS)[1:], strict=False):
        assert diagram(page)["step"] == before
        page.at.button(key=f"inside_go_{after}").click().run()
        page.check()
        assert page.url["step"] == after
    assert not any(b.key == "inside_go_x" for b in page.at.button)


def test_the_map_opens_steps_and_heads() -> None:
    page = visit()
    send(page, "step", "softmax")
    assert page.url["step"] == "softmax"
    send(page, "head", 7)
    assert page.url["head"] == "L3H7"
    assert (page.url["q"], page.url["k"]) == ("10", "2")  # the tokens stay: what changes is the head
    assert diagram(page)["head"] == 7
    send(page, "step", "no such step")
    assert page.url["step"] == "softmax"


def send(page: Visit, event: str, value: object) -> None:
    page.send("mha_block", event, value)


# ---- The numbers that are said --------------------------------------------------------------------------


def test_the_numbers_are_the_model_s(minilm: Encoder) -> None:
    trace = minilm.trace("The animal didn't cross the street because it was too tired.", layer=3)
    assert f"= {trace.scores[1, 10, 2]:.2f}" in visit(step="products").said
    assert f"**{trace.weights[1, 10, 2]:.1%}**" in visit(step="softmax").said
    length = np.linalg.norm(trace.contribution(1)[10])
    assert f"adds a vector of length {length:.2f}" in visit(step="output").said
    assert f"is **{trace.q[1, 10, 0]:.3f}**" in visit(step="linear").said


def test_the_loop_over_heads_is_compared() -> None:
    assert "all heads at once" in visit(step="linear").said
    assert "The largest difference in what the heads say is **" in visit(step="linear").said


def test_without_the_division_softmax_saturates() -> None:
    page = visit(step="scale")
    assert "Without the division: **100%**, **0.00** nats" in page.said
    page.at.toggle(key="inside_undivided").set_value(True).run()
    page.check()
    assert page.url["divide"] == "no"
    bars = charts(page)[0]["data"]
    assert [bar["marker"]["opacity"] for bar in bars] == [0.35, 0.35, 1, 1]
    send(page, "step", "softmax")
    assert "**100.0%**" in page.said
    assert page.at.toggle(key="inside_undivided").value is True
    page.at.toggle(key="inside_undivided").set_value(False).run()
    assert "divide" not in page.url


# ---- What the URL asks for ------------------------------------------------------------------------------


def test_another_head_layer_query_and_key() -> None:
    page = visit(head="L0H2", step="products")
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


def test_another_sentence_forgets_the_tokens() -> None:
    page = visit(q="14", k="13", step="products")
    page.read("Dogs bark.")
    assert "q" not in page.url
    assert page.url["step"] == "products"
    assert "not there" not in page.said


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ({"head": "L9H0"}, "asks for a head that is not there (L9H0); L3H1 (4-2) is shown"),
        ({"head": "L0H99"}, "asks for a head that is not there (L0H99)"),
        ({"head": "first"}, "asks for a head that is not there (head=first)"),
        ({"q": "99"}, "asks for tokens that are not there (q=99)"),
        ({"k": "-1"}, "asks for tokens that are not there (k"),
        ({"q": "<b>", "k": "1e3"}, "asks for tokens that are not there (q"),
    ],
)
def test_what_is_not_there_is_said(url: dict[str, str], said: str) -> None:
    page = visit(**url)
    assert said in page.said
    assert "Every head gets the same x" in page.said


@pytest.mark.parametrize("odd", [clean(t) for t in hostile.TEXTS.values() if 0 < len(t) < 200])
def test_odd_parameters_are_survived(odd: str) -> None:
    page = visit(head=odd, step=odd, q=odd, k=odd, divide=odd, costs=odd, pin=odd)
    assert diagram(page)["step"] == "x"
    assert page.at.number_input(key="costs_d_model").value == 512


@pytest.mark.parametrize("name", ["script", "markdown image", "strike", "emoji family of seven code points", "hebrew"])
def test_odd_tokens_are_drawn_as_text(name: str) -> None:
    typed = hostile.TEXTS.get(name, "שלום עולם $x$")
    for step in ("products", "values", "output"):
        page = visit(text=typed, step=step)
        assert len(charts(page)) == CHARTS.get(step, 1)
        ticks = [t for chart in charts(page) for axis in chart["layout"].values() for t in _ticks(axis)]
        assert not any("<s" in t or "<i" in t for t in ticks)
        assert "](http" not in page.said.replace("](https://arxiv.org", "")


def _ticks(axis: Any) -> list[str]:
    return axis.get("ticktext", []) if isinstance(axis, dict) else []


def test_two_sentences_and_gold_words() -> None:
    assert len(charts(visit(text="The dog barks.", pair="It is loud.", step="softmax"))) == 1
    assert len(charts(visit(text="The dogs bark .", step="values"))) == 1


def test_a_long_text_shows_the_tokens_that_matter(minilm: Encoder) -> None:
    typed = "The animal didn't cross the street because it was too tired. " * 12
    page = visit(text=typed, step="values", q="40", k="3")
    assert f"tokens {DRAWN} are drawn: the query, the key, and of the others those to which" in page.said
    trace = minilm.trace(typed, layer=3)
    shown = in_view(trace, 1, 40, 3)
    assert len(shown) == DRAWN
    assert {40, 3} <= set(shown)
    assert sorted(shown) == shown
    left = set(range(trace.n)) - set(shown)
    assert max(trace.weights[1, 40, t] for t in left) <= min(trace.weights[1, 40, t] for t in set(shown) - {40, 3})


def test_the_strongest_link_of_a_head_is_shown_first() -> None:
    weights = np.full((3, 3), 1 / 3)
    weights[1] = [0.1, 0.2, 0.7]
    attention = Attention.from_tensors([weights[None]], ["[CLS]", "a", "b"])
    assert strongest(attention, Head(0, 0), None, None) == (1, 2)
    assert strongest(attention, Head(0, 0), 2, None) == (2, 1)
    assert strongest(attention, Head(0, 0), None, 0) == (1, 0)
    assert strongest(attention, Head(0, 0), 0, 1) == (0, 1)
    assert strongest(attention, Head(0, 0), 1, 1) == (1, 1)


# ---- Models that cannot be opened -----------------------------------------------------------------------


def test_a_model_whose_steps_cannot_be_told_apart_says_why(tmp_path: Path) -> None:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    folder = saved(LlamaModel(LlamaConfig(**sizes, vocab_size=400, max_position_embeddings=64)), tmp_path / "llama")
    page = visit(model=str(folder))
    assert "turns queries and keys by their position" in page.said
    assert "Choose a model such as BERT" in page.said
    assert "What it costs" in page.said
    assert not charts(page)


def test_a_model_that_is_not_there_leaves_the_default_one() -> None:
    page = visit(model="/no/such/folder")
    assert "is not a model" in page.said
    assert "Every head gets the same x" in page.said


def test_a_trace_is_kept_and_counted_in_bytes(tiny_folder: Callable[[str], Path]) -> None:
    desk, model = Office(), catalog.resolve(str(tiny_folder("bert")))
    first = desk.trace(model, "One dog.", "", 1).result()
    assert desk.trace(model, "One dog.", "", 1).result() is first
    assert desk._traces.bytes == first.bytes
    assert desk.trace(model, "One dog.", "", 2).result() is not first


# ---- The calculator -------------------------------------------------------------------------------------


def test_the_calculator_begins_with_the_paper_s_numbers_beside_the_model_s() -> None:
    said = visit().said
    assert "| $d_{model}$, h, n | 512, 8, 64 | 512, 1, 64 | 384, 12, 16 |" in said
    assert "| **64** | **512** | **32** |" in said
    assert "| parameters: $W_Q$, $W_K$, $W_V$, $W_O$ | **1,048,576** | **1,048,576** | **589,824** |" in said
    assert "| parameters with biases | 1,050,624 | 1,050,624 | 591,360 |" in said


def test_other_numbers_are_kept_in_the_link() -> None:
    page = visit()
    page.at.number_input(key="costs_n").set_value(128).run()
    page.check()
    assert page.url["costs"] == "512,8,128"
    assert "512, 8, 128" in page.said
    page.at.number_input(key="costs_n").set_value(64).run()
    assert "costs" not in page.url


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("h", 7, "7 heads cannot share 512 dimensions equally: 1 would be left over.</p><p>Take h = 1, 2, 4, 8,"),
        ("h", 0, "h is 0."),
        ("n", -5, "n is -5."),
        ("d_model", 10**15, "Take a whole number from 1 to 65,536."),
        ("n", 2**53 - 1, "Take a whole number from 1 to 1,048,576."),
    ],
)
def test_bad_settings_get_a_message_at_the_control(name: str, value: int, said: str) -> None:
    page = visit()
    page.at.number_input(key=f"costs_{name}").set_value(value).run()
    page.check()
    assert said in page.said.replace("\n", " ")
    assert "384, 12, 16" in page.said  # the model's own numbers stay
    assert "Every head gets the same x" in page.said


def test_a_model_of_unknown_width_is_measured(tiny_folder: Callable[[str], Path]) -> None:
    assert "| 32, 4, " in visit(model=str(tiny_folder("bert"))).said
