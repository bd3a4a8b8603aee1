"""The caption below a figure, also stored in its file.

It states model, sentence, heads in both numberings, the steps applied, and the share of hidden tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np

from mha_viz import numerals
from mha_viz.attention import Attention, Head
from mha_viz.attention.steps import ONLY, find_model_head
from mha_viz.attention.view_weights import name_map
from mha_viz.figures.layout.view import (
    Block,
    View,
    describe_crowded_texts,
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
LAYER_TITLES = {  # the titles of figures with maps of layers
    "grid": "Attention of every layer",
    "compare": "Attention maps side by side",
    "difference": "Difference of two attention maps",
}
MAX_NAMED_HEADS = 12  # maximum number of ablated heads that a picture names
MAX_TEXT_CHARACTERS = 200  # maximum number of characters of all texts in the alternative text of a figure


class FigureTexts(TypedDict):
    """The texts of a Drawing: caption, alternative text and metadata."""

    caption: str
    alt: str
    about: Mapping[str, str]


def write_texts(
    attention: Attention, heads: Sequence[Head], view: View, blocks: Sequence[Block], kind: str
) -> FigureTexts:
    """Write the texts for a figure of one reading; empty ``heads`` means all heads."""
    names = ", ".join(name_in_model(attention, head) for head in heads)
    is_of_layers, all_heads = QUANTITIES[attention.quantity].of_layers, describe_all_heads(attention)
    title = choose_title(kind, [attention])
    about = {
        "figure": kind,
        **collect_identity(attention),
        "heads": " ".join(short_name(attention, head) for head in heads) or "all",
        **collect_settings(view),
        "hidden": f"{compute_hidden_share(blocks):.4f}",
    }
    subject = f"{'' if is_of_layers else 'head ' if len(heads) == 1 else 'heads '}{names}" if heads else all_heads
    if heads and kind == "grid":
        layers, numbers = (sorted({*indices}) for indices in zip(*heads, strict=True))
        title = f"Attention of chosen {'layers' if is_of_layers else 'heads'}"
        has_kept_heads = any(step.row.name == ONLY for step in attention.made)
        choice = (
            names
            if is_of_layers or has_kept_heads
            else f"{_list_numbers('head', numbers)} of {_list_numbers('layer', layers)}"
        )
        subject = f"{choice}, of {all_heads}"
    sentences = [add_full_stop(f"{title}: {subject} of {describe_reading(attention)}")]
    sentences += [explain_ablated([(attention, head) for head in heads or attention.every_head()])]
    sentences += [
        explain_quantities([attention]),
        describe_processing([attention], view, kind),
        describe_pin(attention, view, kind),
    ]
    sentences += [describe_scale(view, blocks, kind, is_of_layers), describe_hidden([attention], view, blocks)]
    strongest = describe_strongest(attention, view, blocks, heads)
    alt = f"{title}, {subject}, for {quote_texts([attention])}. {strongest}"
    return {"caption": " ".join(s for s in sentences if s), "alt": alt.strip(), "about": about}


def _list_numbers(noun: str, numbers: Sequence[int]) -> str:
    return f"{noun}{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def choose_title(kind: str, attentions: Sequence[Attention]) -> str:
    """Return the title of a kind of figure, which does not mention heads if some maps are of layers."""
    has_layers = any(QUANTITIES[attention.quantity].of_layers for attention in attentions)
    return LAYER_TITLES.get(kind, KINDS[kind]) if has_layers else KINDS[kind]


def describe_all_heads(attention: Attention) -> str:
    """Return "all 6 × 12 heads", "all 3 heads" or "1 head" for a single layer or for kept heads, or "all 6 layers"."""
    layers, heads = attention.weights.shape[:2]
    if QUANTITIES[attention.quantity].of_layers:
        return f"all {layers} layers"
    return f"all {layers} × {heads} heads" if layers > 1 else f"all {heads} heads" if heads > 1 else "1 head"


def quote_texts(attentions: Sequence[Attention]) -> str:
    """Quote the distinct texts of readings, shortened: 'the text “The cat sat.”'."""
    pairs = list(dict.fromkeys((a.queries.text, a.queries.pair) for a in attentions))
    max_characters = max(40, MAX_TEXT_CHARACTERS // len(pairs))
    quotations = [" and ".join(f"“{shorten(text, max_characters)}”" for text in pair if text) for pair in pairs]
    return f"the {'texts' if len(pairs) > 1 or pairs[0][1] else 'text'} {'; '.join(quotations)}"


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
    cut_note = f" ({facts['read']})" if "read" in facts else ""
    keys = f" and attending to “{facts['keys']}”" if "keys" in facts else ""
    steps = f", {list_applied_steps(attention)}" if list_applied_steps(attention) else ""
    return f"{cite_model(attention.model, attention.revision)} reading “{facts['text']}”{pair}{cut_note}{keys}{steps}"


def collect_identity(attention: Attention) -> dict[str, str]:
    """Return model, revision and text of a reading, as metadata.

    ``read`` states the part of the typed text that was read, unless all was. ``keys`` is the other text of
    cross-attention. ``quantity`` and ``made`` are included unless the numbers are the attention weights of a text as it
    was typed.
    """
    text, cut, keys = attention.queries, attention.queries.cut, attention.keys
    text_length, pair_length = cut.kept if cut else (None, None)
    facts = {"model": name_in_column(attention.model), "revision": attention.revision, "text": text.text[:text_length]}
    facts |= {"pair": text.pair[:pair_length]} if text.pair else {}
    facts |= {"read": _describe_cut(cut)} if cut else {}
    has_two_texts = attention.is_cross and not attention.has_sink
    facts |= {"keys": keys.text[: keys.cut.kept[0] if keys.cut else None]} if has_two_texts else {}
    facts |= {"quantity": attention.quantity} if attention.quantity != "weight" else {}
    return facts | ({"made": "; ".join(attention.made)} if attention.made not in ((), ("typed",)) else {})


def _describe_cut(cut: Cut) -> str:
    """Describe the part of the typed text that was read."""
    if cut.pieces <= cut.limit:
        return f"first {' and '.join(f'{n:,}' for n in cut.kept if n)} characters"
    return f"first {cut.limit:,} of {'more than ' if cut.more else ''}{cut.pieces:,} tokens"


def list_applied_steps(attention: Attention) -> str:
    """List the form of input and the steps applied since, in order; empty for weights of a text as it was typed."""
    return ", ".join(filter(None, (step.caption for step in attention.made)))


def explain_quantities(attentions: Sequence[Attention]) -> str:
    """Explain all quantities of the readings except attention weights."""
    quantities = dict.fromkeys(QUANTITIES[attention.quantity] for attention in attentions)
    return " ".join(quantity.about for quantity in quantities if quantity.name != WEIGHT)


def explain_ablated(panels: Sequence[tuple[Attention, Head]]) -> str:
    """State that the outputs of ablated heads in a figure are not used; empty if none is ablated."""
    singular, plural = "its pattern is computed, its output is", "their patterns are computed, their outputs are"
    switched_off = _name_ablated(panels, singular, plural)
    return switched_off and f"{switched_off} not used."


def mention_ablated(panels: Sequence[tuple[Attention, Head]]) -> str:
    """State briefly which heads in a figure are ablated, for the picture itself; empty if none is."""
    switched_off = _name_ablated(panels, "its output is", "their outputs are", MAX_NAMED_HEADS)
    return switched_off and f"{switched_off} not used"


def _name_ablated(
    panels: Sequence[tuple[Attention, Head]], singular: str, plural: str, max_names: int | None = None
) -> str:
    """Name the ablated heads of a figure, followed by the clause ``singular`` or ``plural``; empty if none is ablated.

    More than ``max_names`` heads are counted instead of named.
    """
    names = [(find_model_head(attention.made, head), attention) for attention, head in panels]
    ablated = dict.fromkeys(head for head, attention in names if head in _list_ablated(attention))
    if not ablated:
        return ""
    is_drawn_on = any(head in ablated and head not in _list_ablated(attention) for head, attention in names)
    subject = (
        join_names([*map(str, ablated)]) if max_names is None or len(ablated) <= max_names else f"{len(ablated)} heads"
    )
    clause = f"{subject} {'is' if len(ablated) == 1 else 'are'} off"
    return f"{f'Where {clause}, ' if is_drawn_on else f'{clause}: '}{singular if len(ablated) == 1 else plural}"


def _list_ablated(attention: Attention) -> tuple[Head, ...]:
    """Return the heads that were ablated when the model read the text; none for maps of layers."""
    if QUANTITIES[attention.quantity].of_layers:
        return ()
    return next((step.row.heads for step in attention.made if step.row.name == "without"), ())


def add_full_stop(sentence: str) -> str:
    """Add a full stop to the sentence, unless it ends with a quotation that has one."""
    return sentence if sentence.endswith((".”", "!”", "?”")) else f"{sentence}."


def collect_settings(view: View) -> dict[str, str]:
    """Return a view's settings under their names in the page's URL, followed by the pin if there is one."""
    values = {name: getattr(view, name) for name in OPTIONS if name != "pin"}
    return values | ({"pin": view.pin} if view.pin else {})


def describe_processing(attentions: Sequence[Attention], view: View, kind: str) -> str:
    """Describe the processing of the weights and the selection of links."""
    by_words = all(attention.queries.unit == "words" for attention in attentions)
    has_pair = any(attention.queries.pair for attention in attentions)
    sentences = {
        name: setting.caption("words" if name == "unit" and by_words else getattr(view, name))
        for name, setting in OPTIONS.items()
        if kind in setting.kinds and kind not in setting.only_on_page and (name != "side" or has_pair)
    }
    unit, side, link_rule = (sentences.pop(name, "") for name in ("unit", "side", "links"))
    all_axes = [list_units(attention, view) for attention in attentions if kind == "links"]
    note = next(filter(None, (describe_few_links(axes, view) for axes in all_axes)), "")
    if note and (crowded_texts := describe_crowded_texts(all_axes, view)):
        note = f"Of {crowded_texts}, only {note} are drawn."
    elif note:
        link_rule = f"{link_rule[:-1]}, special tokens left out." if link_rule else ""
        note = f"{'Of these, only' if link_rule else 'Only'} {note} are drawn."
    number_note = "The number after a word is the weight of the strongest link drawn to it." if kind == "links" else ""
    return " ".join(s for s in (unit, side, *sentences.values(), link_rule, note, "" if view.pin else number_note) if s)


def describe_pin(attention: Attention, view: View, kind: str, is_partly_pinned: bool = False) -> str:
    """Describe how a drawing of this ``kind`` shows the pinned tokens; empty if it does not.

    ``is_partly_pinned``: whether some panels lack these tokens.
    """
    axes = list_units(attention, view)
    pinned = find_focus(axes, view)
    if pinned is None or kind not in ("heatmap", "links"):
        return ""
    row = f"“{axes.rows[pinned.row].drawn}”" if pinned.row is not None else ""
    col = f"“{axes.cols[pinned.col].drawn}”" if pinned.col is not None else ""
    scope = " in the panels that have it" * is_partly_pinned
    if kind == "links":
        noun, verb = ("link", "is") if row and col else ("links", "are")
        ends = " ".join(filter(None, (row and f"from {row}", col and f"to {col}")))
        return f"Only the {noun} {ends} {verb} drawn{scope}."
    target = f"cell from {row} to {col}" if row and col else f"row of {row}" if row else f"column of {col}"
    return f"The {target} is outlined{scope}."


def describe_scale(view: View, blocks: Sequence[Block], kind: str, is_of_layers: bool) -> str:
    """State the range of the colours, or of the width and darkness of lines, which all heads share."""
    if kind == "links":
        return f"Width and darkness: {describe_range(link_scale(view.scale), blocks)}."
    range_text = describe_range(view.scale, blocks)
    if view.scale == "head" and len(blocks) > 1:
        owner = "layer" if is_of_layers else "head"
        range_text = f"0 to {'±' * any(block.signed for block in blocks)}each {owner}’s largest weight"
    return f"Colour: {range_text}."


def compute_hidden_share(blocks: Sequence[Block]) -> float:
    """Return the mean hidden share over heads and rows; 1 if no row is shown."""
    values = [float(block.hidden.mean()) for block in blocks if block.hidden.size]
    return max(0.0, sum(values) / len(values)) if values else 1.0  # rounding can make it slightly negative


def describe_hidden(attentions: Sequence[Attention], view: View, blocks: Sequence[Block]) -> str:
    """Return the sentence about the share of hidden tokens; empty if all tokens are shown."""
    was_hidden_before = view.special == "keep" and any("special hidden" in attention.made for attention in attentions)
    quantity = QUANTITIES[attentions[0].quantity]
    is_rescaled = quantity.is_share if was_hidden_before else view.special == "rescale" and not quantity.is_signed
    shows_all = view.special == "keep" and not was_hidden_before
    choice = OPTIONS["special"].find_choice("rescale" if is_rescaled else "keep" if shows_all else "hide")
    hidden_words = choice[0].hides if choice else ""
    if not hidden_words and (view.side == "all" or not any(attention.queries.pair for attention in attentions)):
        return ""
    opening = f"{hidden_words}; " if hidden_words else ""
    verb = "went" if is_rescaled else "goes"
    kind, noun = ("layer", quantity.label) if quantity.of_layers else ("head", "attention")
    owner = f"this {kind}’s" if len(blocks) == 1 else f"these {kind}s’"
    line = f"{opening}{numerals.percent(compute_hidden_share(blocks))} of {owner} {noun} {verb} to hidden tokens."
    return line[0].upper() + line[1:]


def describe_strongest(attention: Attention, view: View, blocks: Sequence[Block], heads: Sequence[Head]) -> str:
    """Name the strongest link of a single head, for readers who cannot see the picture.

    As on screen, it is a link between words if there are any, because most heads give most weight to [CLS] or [SEP].
    """
    if len(heads) != 1 or not blocks[0].w.size:
        return ""
    axes, w = list_units(attention, view), blocks[0].w
    special = [np.array([unit.special for unit in side]) for side in axes]
    is_word_link = ~(special[0][:, None] | special[1][None])  # [row, column]
    sizes = np.abs(w)
    row, col = divmod(int(np.where(is_word_link, sizes, sizes - 1 - sizes.max()).argmax()), w.shape[1])
    label = f"Strongest link{f' between {get_unit_noun(view)}' if is_word_link[row, col] else ''}"
    number = blocks[0].format(float(w[row, col])) + ", rescaled" * (view.special == "rescale" and not blocks[0].signed)
    return f"{label}: “{axes.rows[row].drawn}” to “{axes.cols[col].drawn}”, {number}."
