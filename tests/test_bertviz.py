"""The views of BertViz: its arguments, its examples, and what the drawing then holds."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from html import unescape
from typing import Any

import numpy as np
import pytest

from mha_viz import Attention, bertviz
from mha_viz.bertviz import HTML, head_view, model_view
from mha_viz.errors import MhaVizError
from mha_viz.text import from_names
from tests import hostile
from tests.packets import list_pages, read_page

TOKENS = ["[CLS]", "the", "rab", "##bit", "[SEP]", "it", "hops", "[SEP]"]
SOURCE, TARGET = ["▁She", "▁sees", "</s>"], ["▁Sie", "▁sie", "ht", "</s>"]

# The signatures of BertViz 1.4.1.
HEAD_VIEW = (
    "(attention=None, tokens=None, sentence_b_start=None, prettify_tokens=True, layer=None, heads=None, "
    "encoder_attention=None, decoder_attention=None, cross_attention=None, encoder_tokens=None, decoder_tokens=None, "
    "include_layers=None, html_action='view')"
)
MODEL_VIEW = (
    "(attention=None, tokens=None, sentence_b_start=None, prettify_tokens=True, display_mode='dark', "
    "encoder_attention=None, decoder_attention=None, cross_attention=None, encoder_tokens=None, decoder_tokens=None, "
    "include_layers=None, include_heads=None, html_action='view')"
)


def layers(queries: int = 8, keys: int = 0, count: int = 3, heads: int = 4) -> tuple[np.ndarray, ...]:
    """A layer is [1, head, query, key]."""
    random = np.random.default_rng(0)
    axes = (1, heads, queries)
    return tuple(random.dirichlet(np.ones(keys or queries), axes).astype(np.float32) for _ in range(count))


def only(html: HTML | None) -> tuple[dict[str, Any], dict[str, str]]:
    """The header of the packet in the one page of a view, and the settings it opens with."""
    (page,) = list_pages(html)
    reading, start = read_page(page)
    return reading.header, start


@pytest.mark.parametrize(("view", "signature"), [(head_view, HEAD_VIEW), (model_view, MODEL_VIEW)])
def test_arguments_order_and_defaults_are_those_of_bertviz(view: Callable[..., Any], signature: str) -> None:
    given = inspect.signature(view)
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in given.parameters.values()]
    assert str(inspect.Signature(bare)) == signature


def test_a_head_view_opens_all_heads_of_the_first_layer() -> None:
    header, start = only(head_view(layers(), TOKENS, html_action="return"))
    assert (header["layers"], header["heads"], header["tokens"]) == (3, 4, [t.text for t in from_names(TOKENS).tokens])
    assert (start["head"], start["on"], start["unit"]) == ("L0H0", "1.2.3", "pieces")
    header, start = only(head_view(layers(), TOKENS, layer=2, heads=[3, 1], html_action="return"))
    assert (start["head"], start["on"]) == ("L2H3", "1")


def test_layers_and_heads_that_are_included_keep_their_numbers() -> None:
    header, start = only(
        model_view(layers(), TOKENS, include_layers=[1, 2], include_heads=[0, 3], html_action="return")
    )
    assert header["drawn"] == {"layers": [1, 2], "heads": [0, 3]}
    assert header["full"] == [4, 7, 8, 11]
    assert start["head"] == "L1H0"
    header, start = only(head_view(layers(), TOKENS, include_layers=[1, 2], html_action="return"))
    assert (header["drawn"]["layers"], start["head"]) == ([1, 2], "L1H0")
    assert "drawn" not in only(model_view(layers(), TOKENS, html_action="return"))[0]


def test_a_pair_of_sentences_can_be_filtered() -> None:
    header, _ = only(head_view(layers(), TOKENS, 5, html_action="return"))
    assert header["segments"] == [0] * 5 + [1] * 3


def test_an_encoder_and_a_decoder() -> None:
    html = model_view(
        encoder_attention=layers(3),
        decoder_attention=layers(4, count=2),
        cross_attention=layers(4, 3, count=2),
        encoder_tokens=SOURCE,
        decoder_tokens=TARGET,
        html_action="return",
    )
    assert html is not None
    assert re.findall(r"<details( open)?><summary>(\w+)", html.data) == [
        (" open", "Encoder"),
        ("", "Decoder"),
        ("", "Cross"),
    ]
    encoder, decoder, cross = (read_page(page)[0].header for page in list_pages(html))
    assert [encoder["layers"], decoder["layers"], cross["layers"]] == [3, 2, 2]
    assert (cross["tokens"], cross["keys"]["tokens"]) == (decoder["tokens"], encoder["tokens"])
    assert "keys" not in decoder
    alone, _ = only(
        head_view(cross_attention=layers(4, 3), encoder_tokens=SOURCE, decoder_tokens=TARGET, html_action="return")
    )
    assert alone["keys"]["tokens"] == ["She", "sees", "</s>"]


def test_marks_of_a_tokenizer_are_kept_if_they_are_wanted() -> None:
    header, _ = only(head_view(layers(4), TARGET, prettify_tokens=False, html_action="return"))
    assert header["tokens"] == TARGET


def test_colours_are_dark_or_light() -> None:
    for mode in ("dark", "light"):
        (page,) = list_pages(model_view(layers(), TOKENS, display_mode=mode, html_action="return"))
        assert f"color-scheme: {mode};" in page
    (page,) = list_pages(model_view(layers(), TOKENS, html_action="return"))
    assert "color-scheme: dark;" in page


def test_a_view_is_displayed_where_a_notebook_is(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setitem(sys.modules, "IPython.display", type("Display", (), {"display": shown.append}))
    assert head_view(layers(), TOKENS) is None
    returned = head_view(layers(), TOKENS, html_action="return")
    assert returned is not None
    assert [one._repr_html_() for one in shown] == [returned.data]
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(MhaVizError, match=r"no notebook here .* html_action='return'"):
        head_view(layers(), TOKENS)


@pytest.mark.parametrize("text", hostile.KINDS.values(), ids=hostile.KINDS)
def test_tokens_are_text_and_the_source_is_ascii(text: str) -> None:
    html = head_view(layers(2), [text[:200], "</iframe><script>alert(1)</script>"], html_action="return")
    assert html is not None
    assert html.data.isascii()
    assert html.data.count("<") == html.data.count("<iframe") + html.data.count("</iframe>") == 2
    assert "<script>alert" not in unescape(html.data)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "No attention was given"),
    ({"attention": layers()}, "tokens is missing, which attention needs"),
    ({"attention": layers(), "tokens": TOKENS, "encoder_tokens": SOURCE}, "for an encoder–decoder"),
    ({"encoder_attention": layers(3)}, "encoder_tokens is missing, which encoder_attention needs"),
    ({"cross_attention": layers(4, 3), "decoder_tokens": TARGET}, "encoder_tokens is missing, which cross_attention"),
    ({"attention": layers(), "tokens": TOKENS[:3]}, "3 tokens were given"),
    ({"attention": layers(), "tokens": TOKENS, "include_layers": [1, 3]}, "L3H0 does not exist"),
    ({"attention": layers(), "tokens": TOKENS, "include_layers": []}, "include_layers is empty"),
    ({"attention": layers(), "tokens": TOKENS, "html_action": "save"}, "html_action is 'save'"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "message"), REFUSED, ids=[message for _, message in REFUSED])
@pytest.mark.parametrize("view", [head_view, model_view])
def test_what_does_not_fit_is_refused_with_the_reason(view: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(MhaVizError, match=message):
        view(**({"html_action": "return"} | given))


def test_what_only_one_view_takes_is_refused_there() -> None:
    with pytest.raises(MhaVizError, match="layer is 0, which is not in include_layers"):
        head_view(layers(), TOKENS, layer=0, include_layers=[1], html_action="return")
    with pytest.raises(MhaVizError, match="display_mode is 'grey'"):
        model_view(layers(), TOKENS, display_mode="grey", html_action="return")  # type: ignore[arg-type]
    with pytest.raises(MhaVizError, match="L0H9 does not exist"):
        model_view(layers(), TOKENS, include_heads=[9], html_action="return")


def test_a_grid_of_some_layers_in_files() -> None:
    a = Attention.from_tensors(layers(), TOKENS)
    figure = a.grid(layers=[2, 1], heads=[3], unit="pieces")
    assert "chosen heads: head 3 of layers 1, 2, of all 3 × 4 heads" in figure.caption
    svg = figure.to_bytes(".svg").decode()
    assert re.findall(r">(L\d)<", svg) == ["L1", "L2"]
    assert len(figure.to_bytes(".csv").decode().splitlines()) == 1 + 2 * 64
    unfit: list[dict[str, Any]] = [
        {"layers": 3},
        {"heads": []},
        {"layers": "12"},
        {"layers": [7]},
        {"heads": [-1]},
        {"heads": ["L1H3"]},
    ]
    for given in unfit:
        with pytest.raises(MhaVizError):
            a.grid(**given)


def test_the_module_lists_what_a_notebook_imports() -> None:
    assert {"head_view", "model_view"} <= set(bertviz.__all__)
