"""The Compare page: the control that selects a comparison, and the panels. The URL holds the choice and the heads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any, NamedTuple

import streamlit as st

from mha_viz.app.compare import patched_texts, publish
from mha_viz.app.service.caches import get_model_service, is_ready
from mha_viz.app.url import address, comparison
from mha_viz.app.url.address import Address, Url
from mha_viz.app.url.comparison import ComparedHead, Comparison
from mha_viz.app.url.minimal_pair import replace_word
from mha_viz.app.widgets import asking, download_panel, inference, navigation, request
from mha_viz.app.widgets.asking import change_second_text
from mha_viz.app.widgets.components import draw_comparison
from mha_viz.app.widgets.download_panel import PageChart, PanelView
from mha_viz.app.widgets.inference import PageReading
from mha_viz.app.widgets.parts import (
    escape_markdown,
    read_message,
    report_errors,
    report_ignored,
    show_error,
    show_error_later,
    show_pending_error,
    show_remark,
)
from mha_viz.app.widgets.request import set_part, show_part_controls
from mha_viz.app.widgets.url_controls import UrlChanges, bind_control, read_option
from mha_viz.attention import Attention, Head
from mha_viz.errors import MhaVizError
from mha_viz.figures.layout.caption import format_head, list_applied_steps
from mha_viz.figures.layout.compare import PanelKind
from mha_viz.figures.layout.difference import find_most_changed
from mha_viz.figures.layout.panels import MAX_PANELS, Panel, explain_mismatch
from mha_viz.figures.layout.view import View
from mha_viz.heads import NONE
from mha_viz.model_names import shorten_name
from mha_viz.models.getting import catalog
from mha_viz.numerals import format_divergence
from mha_viz.request import ENCODER, PARTS, Request
from mha_viz.view.quantities import QUANTITIES
from mha_viz.view.settings import DEFAULTS, LONG_TOKENS

COMPARISONS = {
    "tray": "My heads",
    "layer": "A whole layer",
    "similar": "Most similar heads",
    "word": "Swap a word",
    "models": "Two models",
    "off": "Heads switched off",
}
OLD_COMPARISONS = {"map": "similar"}  # names in older links
SIMILAR_COUNT = 5  # heads to compare a head with
DEFAULT_SPECIAL = "hide"  # how special tokens are shown, unless the URL says otherwise
# Comparisons of two panels that open with their difference.
OPEN_DIFFERENCES = dict.fromkeys(("word", "models", "off"), "0-1")
SINGLE_HEAD_VALUES = {"scale": ("row",), "side": ("aa", "ab", "ba", "bb")}  # panels side by side have no such settings
WEIGHT_COMPARISONS = ("similar", "models", "off")  # they need divergences of rows, or the whole model


class OpeningState(NamedTuple):
    """The state in which panels open if the URL names none.

    Attributes:
        diff: the two panels whose difference is open.
        pin: the pinned word of the first panel.
    """

    diff: str = ""
    pin: str = ""


NOTHING_OPEN = OpeningState()


def show_comparison(url: Url) -> None:
    """Show the control that selects a comparison, and the comparison."""
    show_pending_error()
    single_head_settings = ((name, url.parameters.get(name)) for name in SINGLE_HEAD_VALUES)
    report_ignored([f"{name}={value}" for name, value in single_head_settings if value in SINGLE_HEAD_VALUES[name]])
    heads, is_complete = comparison.read(url.location.tray)
    with _make_controls_container():
        choice = _choose_comparison(heads)
        _show_quantity_control(url.location, is_of_weights=choice in WEIGHT_COMPARISONS, has_second=choice != "word")
    if not is_complete:
        others_note = "; the others are shown" if heads else ""
        show_remark(f"{'Some of the' if heads else 'The'} heads in this link could not be read{others_note}.")
    if choice == "tray":
        report_ignored(url.location.list_ignored("compare"))
        if url.location.request.prefix:
            show_remark("The texts of My heads are read without the prefix in this link.")
        _show_my_heads(heads, url.location)
        return
    show_part_controls(url.location)
    other = "" if choice == "word" else url.location.request.other  # this comparison has a second sentence of its own
    location = url.location.with_request(off=(), other=other)
    page = inference.read_whole_model(url) if choice in WEIGHT_COMPARISONS else inference.read_nearest(url, location)
    if page is not None:
        _show_ready_made_comparison(page, choice)


def _make_controls_container() -> Any:
    """Return a container for the controls: a row or, in class mode, a popover that leaves space for the drawing."""
    if address.is_class_view():
        return st.popover(":primary[What to compare]", type="tertiary", width="content")
    return st.container(horizontal=True, vertical_alignment="bottom")


def _show_ready_made_comparison(page: PageReading, choice: str) -> None:
    """Compare the reading with another reading, or heads of the reading with each other."""
    head = request.read_linked_head(page.url, page.attention, "compare")
    _show_sentence(page.attention, head)
    inference.report_cut_text(page)
    make_panels = {
        "layer": _make_layer_panels,
        "similar": _make_similar_panels,
        "word": _make_word_panels,
        "models": _make_model_panels,
        "off": _make_ablation_panels,
    }[choice]
    panels = make_panels(page, head)
    opening = OpeningState(OPEN_DIFFERENCES.get(choice, ""))
    if choice == "word" and len(panels) == 2:
        opening = opening._replace(pin=find_most_changed(panels[0], panels[1], View(special=DEFAULT_SPECIAL)))
    _draw(panels, opening=opening, is_patched=choice == "word" and not page.attention.is_cross)


def _show_sentence(attention: Attention, head: Head | None = None) -> None:
    """Show the sentence and whose heads are compared, with a link to change them."""
    owner = f"{format_head(head)} of {shorten_name(attention.model)}" if head else shorten_name(attention.model)
    is_ablated = attention.request is not None and bool(attention.request.off)
    owner += f", {list_applied_steps(attention)}" if is_ablated else ""
    text = attention.queries
    second = attention.keys.text if attention.is_cross else text.pair
    pair = f"{' → ' * attention.is_cross} {_quote_html(second)}" if second else ""
    with st.container(key="about_text", horizontal=True, vertical_alignment="bottom", gap="small"):
        st.html(
            f'<p class="mha-about">{_quote_html(text.text)}{pair} <span>{escape(owner)}</span></p>',
            width="content",
        )
        if head and not address.is_class_view():
            label = ":primary[Edit in Explore]"
            st.page_link(navigation.find_page("explore"), label=label, query_params=address.get_parameters())
    inference.report_unknown_text(attention)


def _quote_html(text: str) -> str:
    """Return the sentence as an HTML element. Two lines are visible; the tooltip has the full sentence."""
    return f'<q title="{escape(text)}">{escape(text)}</q>'


def _choose_comparison(heads: Comparison) -> str:
    """Show the control that selects a comparison, and return the choice.

    The default is the compared heads if there are any, else the sentence with a word replaced.
    """
    labels = COMPARISONS | {"tray": f"My heads ({len(heads)})"}
    choice = read_option("show", [*COMPARISONS, *OLD_COMPARISONS], r"\w+") or ("tray" if heads else "word")
    choice = OLD_COMPARISONS.get(choice, choice)
    bind_control(
        st.segmented_control, "What to compare", "show", choice, list(COMPARISONS),
        change=lambda name: {"show": name, **_reset_panels(name)},
        format_func=labels.__getitem__, required=True, label_visibility="collapsed", wrap=True, width="content",
    )  # fmt: skip
    return choice


def _reset_panels(choice: str) -> dict[str, str | None]:
    """Return the URL parameters that reset the panels."""
    return {**dict.fromkeys(address.PANEL_PARAMETERS), "diff": OPEN_DIFFERENCES.get(choice)}


# ---- The compared heads -----------------------------------------------------------------------------------------


def _show_my_heads(heads: Comparison, location: Address) -> None:
    if not heads:
        st.markdown(
            "No heads chosen yet. In Explore, press **+ Compare**, or **c** on a head of the grid. You can compare up "
            "to eight heads, of any layer, sentence and model."
        )
        label = ":primary[Choose heads in Explore]"
        st.page_link(navigation.find_page("explore"), label=label, query_params=address.get_parameters())
        return
    if QUANTITIES[location.request.quantity].with_all_heads and any(
        compared_head.request.off for compared_head in heads
    ):
        inference.report_all_heads_on(location)
    all_panels = {number: _load_panel(compared_head, number, location) for number, compared_head in enumerate(heads)}
    panels = {number: panel for number, panel in all_panels.items() if panel is not None}
    if len({heads[number].request for number in panels}) == 1:
        _show_sentence(next(iter(panels.values())).attention)
    if panels:
        available_panels = list(panels.values())
        # Open the difference of two panels if it is defined: people compare two heads to see it.
        has_difference = len(available_panels) == 2 and not explain_mismatch(
            available_panels[0].attention, available_panels[1].attention, View()
        )
        _draw(available_panels, tuple(panels), OpeningState("0-1" if has_difference else ""))


def _load_panel(compared_head: ComparedHead, number: int, location: Address) -> Panel | None:
    """Read a compared head again and return its panel; None, with a remark that says why, if that is impossible."""
    try:
        model = catalog.resolve(compared_head.request.model)
        if is_ready(model) or get_model_service().has_reading(compared_head.request):
            attention = inference.read_request(inference.set_quantity(compared_head.request, location))
            head = Head(compared_head.head.layer, 0) if QUANTITIES[attention.quantity].of_layers else compared_head.head
            _ = attention[head]
            return Panel(attention, head, compared_head.name)
        _report_missing_head(model, f"Head {number + 1} of My heads needs")
    except MhaVizError as error:
        show_remark(f"Head {number + 1} of My heads, {format_head(compared_head.head)}, cannot be shown.")
        show_error(error)
    st.button(f"Remove {compared_head.head} from My heads", key=f"remove_{number}", on_click=_on_remove, args=(number,))
    return None


@report_errors()
def _on_remove(number: int) -> None:
    heads, _ = comparison.read(address.get_parameters().get("tray"))
    address.go(tray=comparison.write(comparison.remove(heads, number)))


def _report_missing_head(model: catalog.Model, subject: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        show_remark(f"{subject} {model.label}, which has not been downloaded yet.")
        parameters = {**address.get_parameters(), "model": model.name}
        st.page_link(navigation.find_page("explore"), label="Download it in Explore", query_params=parameters)


@report_errors()
def _on_edit() -> None:
    """Apply an edit of the list of compared heads.

    Such an edit may also add a panel to the list, or open a panel in Explore.
    """
    event = read_message("compare", "edit")
    try:
        if event.get("action") == "open":
            navigation.open_page(
                "explore", _select_shared_parameters() | _make_explore_parameters(_parse_edited_head(event))
            )
            return
        heads, _ = comparison.read(address.get_parameters().get("tray"))
        view = event.get("view")
        view_changes = address.select_accepted(view, address.PANEL_PATTERNS) if isinstance(view, dict) else {}
        address.go(tray=comparison.write(_apply_edit(heads, event)), **view_changes)
    except MhaVizError as error:
        show_error_later(error)


def _parse_edited_head(event: dict[str, object]) -> ComparedHead:
    """Return the head that a message describes. Raises UnknownHead."""
    names = ("text", "pair", "model", "head", "target", "part")
    text, pair, model, head, target, part = (str(event.get(name) or "") for name in names)
    if part in PARTS:
        return ComparedHead(Request(model, text, pair, target=target, part=part), Head.parse(head))
    text = address.get_url().get_full_text(text)
    return ComparedHead(replace(Request(model, text, pair), **address.read_switched_off(event)), Head.parse(head))


def _select_shared_parameters() -> dict[str, str]:
    """Return the parameters of this page's URL that also apply to another head on the Explore page."""
    names = {"tray", *address.VIEW_PATTERNS} - set(address.MODEL_PARAMETERS)
    if st.session_state["show"] in WEIGHT_COMPARISONS:
        names -= {"shown"}
    return {name: value for name, value in address.get_parameters().items() if name in names}


def _make_explore_parameters(compared_head: ComparedHead) -> dict[str, str]:
    """Return the URL parameters with which Explore shows a head."""
    text, pair = address.fit_texts(*compared_head.request.texts)
    model = compared_head.request.model if compared_head.request.model != catalog.choose_default().name else ""
    return {"head": str(compared_head.head), "text": text} | replace(
        compared_head.request, model=model, text=text, pair=pair
    ).parameters()


def _apply_edit(heads: Comparison, event: dict[str, object]) -> Comparison:
    action, index, destination, name = (event.get(key) for key in ("action", "index", "to", "name"))
    if action == "pin":
        return comparison.add(heads, _parse_edited_head(event))
    if not isinstance(index, int):
        return heads
    if action == "remove":
        return comparison.remove(heads, index)
    if action == "duplicate":
        return comparison.duplicate(heads, index)
    if action == "move" and isinstance(destination, int):
        return comparison.move(heads, index, destination)
    return comparison.rename(heads, index, str(name or "")) if action == "rename" else heads


@report_errors()
def _on_view() -> None:
    view = read_message("compare", "view")
    address.go(**address.select_accepted(view, address.PANEL_PATTERNS))


# ---- Ready-made comparisons -----------------------------------------------------------------------------


def _make_layer_panels(page: PageReading, head: Head) -> list[Panel]:
    attention = page.attention
    heads = min(attention.heads, MAX_PANELS)
    st.markdown(
        f"{'The' if heads == attention.heads else 'The first'} {heads} heads of layer {head.layer}, on one scale."
    )
    return [Panel(attention, Head(head.layer, i)) for i in range(heads)]


def _make_similar_panels(page: PageReading, head: Head) -> list[Panel]:
    attention = page.attention
    with st.spinner("Comparing all pairs of heads…"):
        similar_heads = get_model_service().find_similar_heads(attention, head, SIMILAR_COUNT)
    st.markdown(
        f"The {len(similar_heads)} heads most like {format_head(head)} here (0% = identical, 100% = no overlap)."
    )
    similar_panels = [Panel(attention, other, f"{format_divergence(nats)} different") for other, nats in similar_heads]
    return [Panel(attention, head), *similar_panels]


def _make_word_panels(page: PageReading, head: Head) -> list[Panel]:
    """Return panels for the sentence and for the same sentence with one word replaced.

    Also show the field for the second sentence.
    """
    url = page.url
    second = url.location.request.other if "second" in url.parameters else replace_word(url.text)
    bind_control(
        st.text_input, "Change a word, then press Enter", "second", second,
        change=lambda text: {**change_second_text(text), **_reset_panels("word")}, max_chars=2_000,
    )  # fmt: skip
    panels = [Panel(page.attention, head)]
    if not second.strip() or second == url.text:
        hint = "Change a word of the sentence" if second.strip() else "Type the sentence with one word changed"
        show_remark(f"{hint}, to see both side by side.")
    else:
        location = url.location.with_request(other="", off=())  # here the second sentence is the text
        with report_errors(show_error):
            second_attention = inference.read_request(inference.make_request(page.model, second, location))
            panels.append(Panel(second_attention, head))
    return panels


def _make_ablation_panels(page: PageReading, head: Head) -> list[Panel]:
    """Return panels for the head in the whole model, and with the heads in the URL switched off."""
    url, attention = page.url, page.attention
    if page.is_part:
        show_remark("Heads can be switched off only in models with one stack of layers.")
        return [Panel(attention, head)]
    off = tuple(other for other in url.location.request.off if other in attention.every_head())
    # By default, switch off the previous layer: the head reads its outputs.
    previous_layer = tuple(other for other in attention.every_head() if other.layer == head.layer - 1)
    text = attention.queries
    request = replace(page.plain_request, text=text.text, pair=text.pair, off=off or previous_layer)
    request = replace(request, **url.location.get_method_fields(text.text))
    off_phrase = inference.name_heads(off) if off else f"layer {head.layer - 1} ({head.layer})"
    with st.container(horizontal=True, vertical_alignment="center"):
        if request.off:
            manner = escape_markdown(request.manner)
            st.markdown(f"Second panel: the same head with {off_phrase} switched off ({manner}).", width="content")
        else:
            show_remark("No head is switched off.")
        parameters = {**address.get_parameters(), "off": str(url.parameters.get("off") or NONE)}
        st.page_link(
            navigation.find_page("explore"), label=":primary[Choose heads to switch off]", query_params=parameters
        )
    panels = [Panel(attention, head)]
    return [*panels, Panel(inference.read_request(request), head, "without")] if request.off else panels


def _make_model_panels(page: PageReading, head: Head) -> list[Panel]:
    """Return panels for the head and for the most similar head of another model, by attention between words.

    If the text is read by an encoder–decoder, the other head is in the same part, or else in its encoder.
    """
    attention, offered_models = page.attention, {m.name: m for m in catalog.list_offered()}
    other_models = [m for m in offered_models.values() if m.name != page.model.name]
    if not other_models:
        show_remark("This server offers only one model.")
        return [Panel(attention, head)]
    names = [m.name for m in other_models]
    ready_names = [m.name for m in other_models if is_ready(m)]
    linked_model = read_option("with", [*offered_models], ".+")
    chosen_name = linked_model if linked_model in names else (ready_names or names)[0]
    labels = {m.name: m.label for m in other_models}  # menus render no Markdown
    bind_control(
        st.selectbox,
        "Second model",
        "with",
        chosen_name,
        names,
        change=lambda name: {"with": name, **_reset_panels("models")},
        format_func=labels.__getitem__,
        width=340,
    )
    model = offered_models[chosen_name]
    if not is_ready(model):
        _report_missing_head(model, "This comparison needs")
        return [Panel(attention, head)]
    location = page.url.location if page.is_part else page.url.location.with_request(part=ENCODER)
    other_attention = inference.try_read(set_part(replace(page.plain_request, model=model.name), model, location))
    if other_attention is None:
        return [Panel(attention, head)]
    similar_head, nats = get_model_service().find_most_similar_head(attention, head, other_attention)
    closeness = (
        "" if nats is None else f": its most similar head, compared word by word ({format_divergence(nats)} different)"
    )
    st.markdown(f"{format_head(head)} and {format_head(similar_head)} of {escape_markdown(model.label)}{closeness}.")
    return [Panel(attention, head), Panel(other_attention, similar_head)]


def _draw(
    panels: Sequence[Panel],
    positions: tuple[int, ...] | None = None,
    opening: OpeningState = NOTHING_OPEN,
    charts: Sequence[PageChart] = (),
    is_patched: bool = False,
) -> None:
    """Draw the panels side by side, with a download that also contains the page's ``charts``.

    Args:
        panels: the panels.
        positions: their positions in the list of compared heads; None if the panels are not from that list, so that the
            page offers to add them.
        opening: how they open.
        charts: further charts to download.
        is_patched: whether to patch heads of the first text with outputs from the second.
    """
    numbers = [str(number) for number in range(len(panels))]
    pairs = [f"{first}-{other}" for first in numbers for other in numbers if first != other]
    read_option("at", numbers, address.PANEL_PATTERNS["at"])
    read_option("diff", [*pairs, "none", opening.diff], address.PANEL_PATTERNS["diff"])
    packet = get_model_service().pack_panels(
        panels, positions, diff=opening.diff, pin=opening.pin, special=DEFAULT_SPECIAL
    )
    draw_comparison(packet, "compare", _on_view, _on_edit)
    if is_patched and len(panels) == 2:
        charts = patched_texts.show_patching(panels[0].attention, panels[1].attention, panels[0].head)
    panel_view = parse_panel_view(address.get_parameters(), panels, opening)
    download_panel.show_panel_downloads(panel_view, offers_archive=positions is not None, charts=charts)
    publish.show_publishing(panel_view)


def parse_panel_view(
    parameters: Mapping[str, str], panels: Sequence[Panel], opening: OpeningState = NOTHING_OPEN
) -> PanelView:
    """Return the panels as a URL shows them, like ``parsePanelsView`` of ``browser/compare/together.js``."""
    parameters = {"pin": opening.pin, **parameters}
    view_parameters = {name: value for name, value in parameters.items() if name in address.PANEL_PATTERNS}
    tokens = max((len(axis) for panel in panels for axis in (panel.attention.queries, panel.attention.keys)), default=0)
    view = download_panel.parse_view({"special": DEFAULT_SPECIAL, **view_parameters}, tokens=tokens)
    if view.scale == "row":  # a separate scale for each row is not a common scale
        view = replace(view, scale="head" if tokens > LONG_TOKENS else "")
    pair = address.parse_pair(parameters.get("diff") or opening.diff, len(panels))
    kind: PanelKind = "links" if parameters.get("as") == "links" else "heatmap"
    panel_number = parameters.get("at", "")
    pin_of = int(panel_number) if re.fullmatch(address.PANEL_PATTERNS["at"], panel_number, flags=re.ASCII) else 0
    if view.pin and pin_of < len(panels):
        axes = panels[pin_of].attention.queries, panels[pin_of].attention.keys
        if all((token or 0) < len(axis) for token, axis in zip(view.pinned, axes, strict=True)):
            return PanelView(panels, view, pin_of, pair, kind)
    return PanelView(panels, replace(view, pin=""), 0, pair, kind)


def _show_quantity_control(location: Address, is_of_weights: bool, has_second: bool) -> None:
    """Show the control for the quantity and, for gradients, the controls for the word.

    Where only weights are compared, show a remark instead. ``has_second``: whether the question may have a second text.
    """
    if is_of_weights:
        if location.request.quantity != DEFAULTS["shown"]:
            alternatives = "My heads, A whole layer and Swap a word can show"
            show_remark(f"Weights are compared here. {alternatives} {QUANTITIES[location.request.quantity].label}.")
        return
    bind_control(
        st.selectbox, "Quantity", "shown", location.request.quantity, list(QUANTITIES), change=_change_quantity,
        format_func=lambda name: QUANTITIES[name].label, width=180, label_visibility="collapsed",
    )  # fmt: skip
    if QUANTITIES[location.request.quantity].of_answer and has_second:
        asking.show_controls(None, location)
    if location.request.quantity != DEFAULTS["shown"]:
        show_remark(QUANTITIES[location.request.quantity].about)


def _change_quantity(quantity: str) -> UrlChanges:
    return {"shown": None if quantity == DEFAULTS["shown"] else quantity, "scale": address.choose_scale(quantity)}
