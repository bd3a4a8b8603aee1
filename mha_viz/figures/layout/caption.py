"""The caption below a figure, also stored in its file.

It states model, sentence, heads in both numberings, the steps applied, and what is hidden.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np

from mha_viz import numerals
from mha_viz.attention import Attention, Head
from mha_viz.attention.steps import find_model_head
from mha_viz.attention.view_weights import name_map
from mha_viz.figures.layout.view import (
    Block,
    View,
    describe_few_links,
    describe_range,
    find_focus,
    get_unit_noun,
    link_scale,
    list_units,
)
from mha_viz.model_names import cite_model, name_in_column
from mha_viz.quotes import join_names, shorten
from mha_viz.text import Cut
from mha_viz.view.quantities import QUANTITIES, WEIGHT
from mha_viz.view.settings import OPTIONS

KINDS = {
    "heatmap": "Attention matrix",
    "links": "Attention links",
    "grid": "Attention of every head",
    "compare": "Attention heads side by side",
    "difference": "Difference of two attention heads",
}
LAYER_TITLES = {  # the titles if some or all maps are of layers
    "grid": "Attention of every layer",
    "compare": "Attention maps side by side",
    "difference": "Difference of two attention maps",
}
MOST_NAMED = 12  # maximum number of ablated heads that a picture names
MAX_TEXT_LETTERS = 200  # maximum number of characters of all texts in the alternative text of a figure


class Words(TypedDict):
    """The texts of a Drawing: caption, alternative text and metadata."""

    caption: str
    alt: str
    about: Mapping[str, str]


def write_words(attention: Attention, heads: Sequence[Head], view: View, parts: Sequence[Block], kind: str) -> Words:
    """Write the words for a figure of one reading; empty ``heads`` means all of them."""
    names = ", ".join(name_in_model(attention, head) for head in heads)
    is_of_layers, all_heads = QUANTITIES[attention.quantity].of_layers, describe_all_heads(attention)
    title = choose_title(kind, [attention])
    about = {
        "figure": kind,
        **collect_identity(attention),
        "heads": " ".join(short_name(attention, head) for head in heads) or "all",
        **collect_settings(view),
        "hidden": f"{compute_hidden_share(parts):.4f}",
    }
    which = f"{'' if is_of_layers else 'head ' if len(heads) == 1 else 'heads '}{names}" if heads else all_heads
    if heads and kind == "grid":
        layers, numbers = (sorted({*places}) for places in zip(*heads, strict=True))
        title = f"Attention of chosen {'layers' if is_of_layers else 'heads'}"
        chosen = names if is_of_layers else f"{_list_numbers('head', numbers)} of {_list_numbers('layer', layers)}"
        which = f"{chosen}, of {all_heads}"
    sentences = [add_full_stop(f"{title}: {which} of {describe_reading(attention)}")]
    sentences += [explain_ablated([(attention, head) for head in heads or attention.every_head()])]
    sentences += [
        quantities([attention]),
        describe_processing([attention], view, kind),
        describe_pin(attention, view, kind),
    ]
    sentences += [describe_scale(view, parts, kind, is_of_layers), describe_hidden([attention], view, parts)]
    strong = describe_strongest(attention, view, parts, heads)
    alt = f"{title}, {which}, for {quote_texts([attention])}. {strong}"
    return {"caption": " ".join(s for s in sentences if s), "alt": alt.strip(), "about": about}


def _list_numbers(noun: str, numbers: Sequence[int]) -> str:
    return f"{noun}{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def choose_title(kind: str, attentions: Sequence[Attention]) -> str:
    """Return the title of a kind of figure.

    Maps of rollout, which has no heads, are not called heads.
    """
    has_layers = any(QUANTITIES[attention.quantity].of_layers for attention in attentions)
    return LAYER_TITLES.get(kind, KINDS[kind]) if has_layers else KINDS[kind]


def describe_all_heads(attention: Attention) -> str:
    """Return "all 6 × 12 heads", "all 3 heads" for a single layer or for kept heads, or "all 6 layers" for rollout."""
    layers, heads = attention.weights.shape[:2]
    if QUANTITIES[attention.quantity].of_layers:
        return f"all {layers} layers"
    return f"all {layers} × {heads} heads" if layers > 1 else f"all {heads} heads"


def quote_texts(attentions: Sequence[Attention]) -> str:
    """Quote the distinct texts of readings, shortened: 'the text “The cat sat.”'."""
    pairs = list(dict.fromkeys((a.queries.text, a.queries.pair) for a in attentions))
    max_letters = max(40, MAX_TEXT_LETTERS // len(pairs))
    named = [" and ".join(f"“{shorten(text, max_letters)}”" for text in pair if text) for pair in pairs]
    return f"the {'texts' if len(pairs) > 1 or pairs[0][1] else 'text'} {'; '.join(named)}"


def format_head(head: Head) -> str:
    """Return a head's name in both numberings: "L3H1 (4-2)"."""
    return f"{head} ({head.paper})"


def name_in_model(attention: Attention, head: Head) -> str:
    """Return a head of a reading in both numberings, by its numbers in the model.

    For rollout, which joins the heads of each layer, return the layer: "layer 5 (6)".
    """
    head = find_model_head(attention.made, head)
    return f"layer {head.layer} ({head.layer + 1})" if QUANTITIES[attention.quantity].of_layers else format_head(head)


def short_name(attention: Attention, head: Head) -> str:
    """Return a head as in a figure's metadata: "L3H1", or "L5" for rollout, by its numbers in the model."""
    return name_map(attention.quantity, find_model_head(attention.made, head))


def describe_reading(attention: Attention) -> str:
    """Describe a reading: the model with its revision, the text, and the steps applied since.

    For example: 'openai-community/gpt2 (revision 607a…) reading “The cat sat.”, by words, special hidden'.
    """
    facts = collect_identity(attention)
    pair = f" and “{facts['pair']}”" if "pair" in facts else ""
    cut = f" ({facts['read']})" if "read" in facts else ""
    keys = f" and attending to “{facts['keys']}”" if "keys" in facts else ""
    applied = f", {list_applied_steps(attention)}" if list_applied_steps(attention) else ""
    return f"{cite_model(attention.model, attention.revision)} reading “{facts['text']}”{pair}{cut}{keys}{applied}"


def collect_identity(attention: Attention) -> dict[str, str]:
    """Return model, revision and text of a reading, as metadata.

    If not all of the typed text was read, ``read`` says how much. ``keys`` is the other text of cross-attention.
    ``quantity`` and ``made`` are included unless the numbers are the attention weights of a text as it was typed.
    """
    text, cut, keys = attention.queries, attention.queries.cut, attention.keys
    first, second = cut.kept if cut else (None, None)
    facts = {"model": name_in_column(attention.model), "revision": attention.revision, "text": text.text[:first]}
    facts |= {"pair": text.pair[:second]} if text.pair else {}
    facts |= {"read": _describe_cut(cut)} if cut else {}
    is_of_two = attention.is_cross and not attention.has_sink
    facts |= {"keys": keys.text[: keys.cut.kept[0] if keys.cut else None]} if is_of_two else {}
    facts |= {"quantity": attention.quantity} if attention.quantity != "weight" else {}
    return facts | ({"made": "; ".join(attention.made)} if attention.made not in ((), ("typed",)) else {})


def _describe_cut(cut: Cut) -> str:
    """Describe how much of the typed text was read."""
    if cut.pieces <= cut.limit:
        return f"first {' and '.join(f'{n:,}' for n in cut.kept if n)} characters"
    return f"first {cut.limit:,} of {'more than ' if cut.more else ''}{cut.pieces:,} tokens"


def list_applied_steps(attention: Attention) -> str:
    """List how the text was given and the steps applied since, in order; empty for a text as it was typed."""
    return ", ".join(filter(None, (step.caption for step in attention.made)))


def quantities(attentions: Sequence[Attention]) -> str:
    """Explain the quantities that are not attention weights."""
    distinct = dict.fromkeys(QUANTITIES[attention.quantity] for attention in attentions)
    return " ".join(quantity.about for quantity in distinct if quantity.name != WEIGHT)


def explain_ablated(drawn: Sequence[tuple[Attention, Head]]) -> str:
    """Say that drawn heads that are ablated have patterns but unused outputs; empty if none is ablated."""
    singular, plural = "its pattern is computed, its output is", "their patterns are computed, their outputs are"
    switched_off = _name_ablated(drawn, singular, plural)
    return switched_off and f"{switched_off} not used."


def mention_ablated(drawn: Sequence[tuple[Attention, Head]]) -> str:
    """Say which drawn heads are ablated in a few words, for the picture itself; empty if none is."""
    switched_off = _name_ablated(drawn, "its output is", "their outputs are", MOST_NAMED)
    return switched_off and f"{switched_off} not used"


def _name_ablated(
    drawn: Sequence[tuple[Attention, Head]], singular: str, plural: str, max_names: int | None = None
) -> str:
    """Name the drawn heads that are ablated, followed by the clause ``singular`` or ``plural``; empty if none is.

    More than ``max_names`` heads are counted instead of named.
    """
    names = [(find_model_head(attention.made, head), attention) for attention, head in drawn]
    off = dict.fromkeys(head for head, attention in names if head in _list_ablated(attention))
    if not off:
        return ""
    is_drawn_on = any(head in off and head not in _list_ablated(attention) for head, attention in names)
    listed = join_names([*map(str, off)]) if max_names is None or len(off) <= max_names else f"{len(off)} heads"
    clause = f"{listed} {'is' if len(off) == 1 else 'are'} off"
    return f"{f'Where {clause}, ' if is_drawn_on else f'{clause}: '}{singular if len(off) == 1 else plural}"


def _list_ablated(attention: Attention) -> tuple[Head, ...]:
    """Return the heads that were ablated when the model read the text; none if each map is of a layer."""
    if QUANTITIES[attention.quantity].of_layers:
        return ()
    return next((step.row.heads for step in attention.made if step.row.name == "without"), ())


def add_full_stop(sentence: str) -> str:
    """Add a full stop to the sentence, unless it ends with a quotation that has one."""
    return sentence if sentence.endswith((".”", "!”", "?”")) else f"{sentence}."


def collect_settings(view: View) -> dict[str, str]:
    """Return a view's settings under their names in the page's URL; the pin, last, only if there is one."""
    values = {name: getattr(view, name) for name in OPTIONS if name != "pin"}
    return values | ({"pin": view.pin} if view.pin else {})


def describe_processing(attentions: Sequence[Attention], view: View, kind: str) -> str:
    """Describe how the weights were processed, and which of them are drawn."""
    by_words = all(attention.queries.unit == "words" for attention in attentions)
    has_pair = any(attention.queries.pair for attention in attentions)
    sentences = {
        name: setting.caption("words" if name == "unit" and by_words else getattr(view, name))
        for name, setting in OPTIONS.items()
        if kind in setting.kinds and kind not in setting.only_on_page and (name != "side" or has_pair)
    }
    unit, side, chosen = (sentences.pop(name, "") for name in ("unit", "side", "links"))
    few = next(filter(None, (describe_few_links(list_units(a, view), view) for a in attentions if kind == "links")), "")
    if few:
        chosen = f"{chosen[:-1]}, special tokens left out." if chosen else ""
        few = f"{'Of these, only' if chosen else 'Only'} {few} are drawn."
    number = "The number after a word is the weight of the strongest link drawn to it." if kind == "links" else ""
    return " ".join(s for s in (unit, side, *sentences.values(), chosen, few, "" if view.pin else number) if s)


def describe_pin(attention: Attention, view: View, kind: str, is_partly: bool = False) -> str:
    """Describe how a drawing of this ``kind`` shows the pinned tokens; empty if it does not.

    ``is_partly``: some of its panels lack these tokens.
    """
    axes = list_units(attention, view)
    pinned = find_focus(axes, view)
    if pinned is None or kind not in ("heatmap", "links"):
        return ""
    row = f"“{axes.rows[pinned.row].drawn}”" if pinned.row is not None else ""
    col = f"“{axes.cols[pinned.col].drawn}”" if pinned.col is not None else ""
    where = " in the panels that have it" * is_partly
    if kind == "links":
        noun, verb = ("link", "is") if row and col else ("links", "are")
        ends = " ".join(filter(None, (row and f"from {row}", col and f"to {col}")))
        return f"Only the {noun} {ends} {verb} drawn{where}."
    target = f"cell from {row} to {col}" if row and col else f"row of {row}" if row else f"column of {col}"
    return f"The {target} is outlined{where}."


def describe_scale(view: View, parts: Sequence[Block], kind: str, is_of_layers: bool) -> str:
    """State the range of the colours, or of the width and darkness of lines, which all heads share."""
    if kind == "links":
        return f"Width and darkness: {describe_range(link_scale(view.scale), parts)}."
    words = describe_range(view.scale, parts)
    if view.scale == "head" and len(parts) > 1:
        whose = "layer" if is_of_layers else "head"
        words = f"0 to {'±' * any(part.signed for part in parts)}each {whose}’s largest weight"
    return f"Colour: {words}."


def compute_hidden_share(parts: Sequence[Block]) -> float:
    """Return the mean hidden share over heads and rows; 1 if no row is shown."""
    values = [float(part.hidden.mean()) for part in parts if part.hidden.size]
    return max(0.0, sum(values) / len(values)) if values else 1.0  # rounding can make it slightly negative


def describe_hidden(attentions: Sequence[Attention], view: View, parts: Sequence[Block]) -> str:
    """Return the sentence about the share that is not shown; empty if everything is."""
    is_before = view.special == "keep" and any("special hidden" in attention.made for attention in attentions)
    choice = OPTIONS["special"].find_choice("rescale" if is_before else view.special)
    hidden_words = choice[0].hides if choice else ""
    if not hidden_words and (view.side == "all" or not any(attention.queries.pair for attention in attentions)):
        return ""
    opening = f"{hidden_words}; " if hidden_words else ""
    goes = "went" if is_before or view.special == "rescale" else "goes"
    quantity = QUANTITIES[attentions[0].quantity]
    kind, what_is_hidden = ("layer", quantity.label) if quantity.of_layers else ("head", "attention")
    whose = f"this {kind}’s" if len(parts) == 1 else f"these {kind}s’"
    line = (
        f"{opening}{numerals.percent(compute_hidden_share(parts))} of {whose} {what_is_hidden} {goes} to hidden tokens."
    )
    return line[0].upper() + line[1:]


def describe_strongest(attention: Attention, view: View, parts: Sequence[Block], heads: Sequence[Head]) -> str:
    """Name the strongest link of a single head, for readers who cannot see the picture.

    As on screen, it is a link between words if there are any, because most heads give most weight to [CLS] or [SEP].
    """
    if len(heads) != 1 or not parts[0].w.size:
        return ""
    axes, w = list_units(attention, view), parts[0].w
    special = [np.array([unit.special for unit in side]) for side in axes]
    words = ~(special[0][:, None] | special[1][None])  # [row, column]
    size = np.abs(w)
    row, col = divmod(int(np.where(words, size, size - 1 - size.max()).argmax()), w.shape[1])
    label = f"Strongest link{f' between {get_unit_noun(view)}' if words[row, col] else ''}"
    number = parts[0].written(float(w[row, col])) + ", rescaled" * (view.special == "rescale" and not parts[0].signed)
    return f"{label}: “{axes.rows[row].drawn}” to “{axes.cols[col].drawn}”, {number}."
