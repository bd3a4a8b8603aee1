"""BertViz's views, drawn by mha_viz: a notebook that imports them from here runs unchanged.

>>> from mha_viz.bertviz import head_view, model_view

The arguments, their order and their defaults are those of BertViz 1.4.1 (Vig 2019, "A Multiscale Visualization of
Attention in the Transformer Model"). The output is the interactive figure of ``mha_viz.figures``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib import import_module
from typing import Any, Literal, NamedTuple

from mha_viz.attention import Attention, is_number
from mha_viz.errors import SettingError, list_items, shorten_value
from mha_viz.figures import Figure, grid, links
from mha_viz.text import from_names

__all__ = ["HTML", "head_view", "model_view"]

Action = Literal["view", "return"]


@dataclass(frozen=True, repr=False)
class HTML:
    """A piece of HTML that notebooks display. ``data`` is its source in ASCII, which can be written to a file."""

    data: str

    def _repr_html_(self) -> str:
        return self.data

    def __repr__(self) -> str:
        return f"HTML({len(self.data):,} characters)"


class _LayerStack(NamedTuple):
    """The attention of one stack of layers: its name in an encoder–decoder, its attention, and the layers to show."""

    name: str
    attention: Attention
    layers: list[int]


def head_view(
    attention: Any = None,
    tokens: Sequence[str] | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    encoder_attention: Any = None,
    decoder_attention: Any = None,
    cross_attention: Any = None,
    encoder_tokens: Sequence[str] | None = None,
    decoder_tokens: Sequence[str] | None = None,
    include_layers: Sequence[int] | None = None,
    html_action: Action = "view",
) -> HTML | None:
    """Draw the attention links of one layer, each head in its colour. The other layers are one click away.

    Args:
        attention: layers of [1, head, query, key], as transformers returns them.
        tokens: the names of its tokens.
        sentence_b_start: index of the first token of a second sentence.
        prettify_tokens: whether to remove the marks of the tokenizer, such as Ġ.
        layer: the layer that is open at first, by default the first one.
        heads: the heads of that layer that are shown at first, by default all.
        encoder_attention: the encoder's attention in an encoder–decoder; give as many of the three as you have,
            in place of ``attention``.
        decoder_attention: the decoder's self-attention.
        cross_attention: the attention from the decoder to the encoder.
        encoder_tokens: the names of the encoder's tokens.
        decoder_tokens: the names of the decoder's tokens.
        include_layers: the layers to draw, by default all.
        html_action: "view" displays the HTML, "return" returns it.

    Returns the HTML, or None if it was displayed. Raises SettingError for arguments that do not fit together,
    ShapeError for tensors that do not fit, and UnknownHead.
    """
    names = {"encoder": encoder_tokens, "decoder": decoder_tokens, "": tokens}
    attentions = {"": attention, "encoder": encoder_attention, "decoder": decoder_attention, "cross": cross_attention}
    figures = {}
    for name, reading, layers in _iter_stacks(attentions, names, sentence_b_start, prettify_tokens, include_layers):
        opened_layer = layers[0] if layer is None else layer
        if not is_number(opened_layer) or opened_layer not in layers:
            raise SettingError(
                f"layer is {shorten_value(opened_layer)}, which is not in include_layers.",
                f"Layers: {shorten_value(layers, 200)}.",
            )
        numbers = range(reading.heads) if heads is None else list_items(heads, "heads", "Give numbers of heads.")
        chosen_heads = [reading.head((opened_layer, head)) for head in numbers]
        layer_figure = links(reading, heads=chosen_heads, unit="pieces")
        model_figure = grid(reading, layers=layers, unit="pieces")
        assert layer_figure.page is not None
        assert model_figure.page is not None
        figures[name] = replace(layer_figure, page=replace(model_figure.page, start=layer_figure.page.start))
    return _display(figures, html_action)


def model_view(
    attention: Any = None,
    tokens: Sequence[str] | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    display_mode: Literal["dark", "light"] = "dark",
    encoder_attention: Any = None,
    decoder_attention: Any = None,
    cross_attention: Any = None,
    encoder_tokens: Sequence[str] | None = None,
    decoder_tokens: Sequence[str] | None = None,
    include_layers: Sequence[int] | None = None,
    include_heads: Sequence[int] | None = None,
    html_action: Action = "view",
) -> HTML | None:
    """Draw all heads of all layers at a glance, and the selected head.

    Args:
        attention: as for :func:`head_view`.
        tokens: as for :func:`head_view`.
        sentence_b_start: as for :func:`head_view`.
        prettify_tokens: as for :func:`head_view`.
        display_mode: the colours, "dark" or "light".
        encoder_attention: as for :func:`head_view`.
        decoder_attention: as for :func:`head_view`.
        cross_attention: as for :func:`head_view`.
        encoder_tokens: as for :func:`head_view`.
        decoder_tokens: as for :func:`head_view`.
        include_layers: as for :func:`head_view`.
        include_heads: the numbers of the heads to draw, by default all.
        html_action: as for :func:`head_view`.

    Returns and raises as :func:`head_view`.
    """
    if display_mode not in ("dark", "light"):
        raise SettingError(f"display_mode is {shorten_value(display_mode)!r}.", "Expected 'dark' or 'light'.")
    names = {"encoder": encoder_tokens, "decoder": decoder_tokens, "": tokens}
    attentions = {"": attention, "encoder": encoder_attention, "decoder": decoder_attention, "cross": cross_attention}
    figures = {}
    for name, reading, layers in _iter_stacks(attentions, names, sentence_b_start, prettify_tokens, include_layers):
        heads = range(reading.heads) if include_heads is None else include_heads
        figures[name] = grid(reading, layers=layers, heads=heads, unit="pieces", look=display_mode)
    return _display(figures, html_action)


def _iter_stacks(
    attentions: dict[str, Any],
    names: dict[str, Sequence[str] | None],
    sentence_b_start: int | None,
    is_pretty: bool,
    include_layers: Sequence[int] | None,
) -> Iterator[_LayerStack]:
    """Yield the stacks that were given, checked against the other arguments."""
    stacks = {name: attention for name, attention in attentions.items() if attention is not None}
    if not stacks:
        raise SettingError("No attention was given.", "Give attention and tokens, or those of an encoder–decoder.")
    if "" in stacks and (len(stacks) > 1 or names["encoder"] is not None or names["decoder"] is not None):
        raise SettingError(
            "attention was given with arguments for an encoder–decoder.",
            "Give attention and tokens alone, or encoder_attention, decoder_attention and cross_attention.",
        )
    for name, attention in stacks.items():
        rows = _get_names(names, "decoder" if name == "cross" else name, name)
        columns = _get_names(names, "encoder", name) if name == "cross" else None
        reading = Attention.from_tensors(attention, rows, columns, sentence_b_start=None if name else sentence_b_start)
        if not is_pretty:
            queries = from_names(rows, None if name else sentence_b_start, marks=False)
            keys = queries if columns is None else from_names(columns, marks=False)
            reading = replace(reading, queries=queries, keys=keys)
        layers = [*reading.layer_numbers]
        if include_layers is not None:
            layers = list_items(include_layers, "include_layers", "Give numbers of layers.")
        if not layers:
            raise SettingError("include_layers is empty.", "Name at least one layer, or leave it out.")
        layers = [reading.head((layer, 0)).layer for layer in layers]  # raises UnknownHead
        yield _LayerStack(name, reading, layers)


def _get_names(names: dict[str, Sequence[str] | None], part: str, stack: str) -> Sequence[str]:
    """Return the names of the tokens of a part. Raises SettingError, which mentions the stack, if they are missing."""
    token_names = names[part]
    if token_names is None:
        argument, attention = (f"{name}_{kind}".strip("_") for name, kind in ((part, "tokens"), (stack, "attention")))
        raise SettingError(f"{argument} is missing, which {attention} needs.", "Give the names of its tokens.")
    return token_names


def _display(figures: dict[str, Figure], action: Action) -> HTML | None:
    """Display or return the figures as one piece of HTML; several figures can be unfolded one by one."""
    if action not in ("view", "return"):
        raise SettingError(f"html_action is {shorten_value(action)!r}.", "Expected 'view' or 'return'.")
    parts = {name: figure._repr_html_() for name, figure in figures.items()}
    sections = [*parts.values()]
    if len(parts) > 1:
        sections = [
            f"<details{' open' * (not index)}><summary>{escape(name.capitalize())}</summary>{part}</details>"
            for index, (name, part) in enumerate(parts.items())
        ]
    html = HTML("\n".join(sections).encode("ascii", "xmlcharrefreplace").decode())
    if action == "return":
        return html
    try:
        notebook = import_module("IPython.display")
    except ImportError as error:
        raise SettingError(
            "There is no notebook here to display it in.", "Give html_action='return' and write .data to a file."
        ) from error
    notebook.display(html)
    return None
