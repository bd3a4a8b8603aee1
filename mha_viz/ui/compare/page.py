"""The parts of the Compare page: what is compared, the compared heads, and the map of heads. The URL says which."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape

import streamlit as st

from mha_viz.attention import Attention, Head
from mha_viz.browser.quantities import QUANTITIES
from mha_viz.browser.view import DEFAULTS, LONG_TOKENS
from mha_viz.errors import MhaVizError
from mha_viz.figures.caption import both, steps
from mha_viz.figures.compare import As
from mha_viz.figures.panels import MOST, Panel, mismatch
from mha_viz.figures.view import View
from mha_viz.heads import NONE
from mha_viz.model_names import short_name
from mha_viz.models import catalog
from mha_viz.numerals import apart
from mha_viz.request import PARTS, Request
from mha_viz.ui import address, asking, comparison, download_panel, inference, navigation, request
from mha_viz.ui.address import Address, Url
from mha_viz.ui.asking import second_text
from mha_viz.ui.bound import UrlChanges, bound, in_link
from mha_viz.ui.caches import model_service, ready
from mha_viz.ui.compare import head_map, patched, publish
from mha_viz.ui.comparison import Comparison, Pin
from mha_viz.ui.components import compare as component
from mha_viz.ui.download_panel import PageChart
from mha_viz.ui.minimal_pair import replaced
from mha_viz.ui.parts import complain, complain_later, guarded, message, plain, remark, say_complaint, say_unused
from mha_viz.ui.request import ask_part, beside, is_part, model_of

SHOWS = {
    "tray": "Compared heads",
    "layer": "A whole layer",
    "similar": "Most similar heads",
    "word": "A word replaced",
    "models": "Two models",
    "off": "With and without heads",
    "map": "Map of all heads",
}
SIMILAR = 5
SPECIAL = "hide"  # of special tokens, unless the URL says otherwise
OPEN = dict.fromkeys(("word", "models", "off"), "0-1")  # comparisons of two panels that open with their difference
OF_WEIGHTS = ("similar", "map", "models", "off")  # need divergences of rows, or the whole model


def show_comparison(what: Url) -> None:
    """The choice of what to compare, and the comparison."""
    say_complaint()
    pins, whole = comparison.read(what.where.tray)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = _choice(pins)
        _quantity_control(what.where, is_of_weights=chosen in OF_WEIGHTS, has_second=chosen != "word")
    if not whole:
        others = "; the others are shown" if pins else ""
        remark(f"{'Some of the' if pins else 'The'} compared heads in this link could not be read{others}.")
    if chosen == "tray":
        say_unused(what.where.unused("compare"))
        if what.where.request.prefix:
            remark("Compared heads read their texts without the prefix in this link.")
        _comparison(pins, what.where)
        return
    ask_part(what.where)
    read = inference.requested_reading if chosen in OF_WEIGHTS else inference.read_shown
    other = "" if chosen == "word" else what.where.request.other  # with a sentence of its own, no question to the model
    attention = read(what.text, what.where.but(off=(), other=other))
    if attention is None:
        return
    head = request.linked_head(what, attention, "compare")
    _about(attention, head)
    inference.say_cut(attention, what.where, what.sentence)
    if chosen == "map":
        drawn = head_map.draw_head_map(attention, head)
        _draw([Panel(attention, head)], charts=drawn)  # opens the clicked point
        return
    builder = {"layer": _layer, "similar": _similar, "word": _word, "models": _models, "off": _without}[chosen]
    panels = builder(attention, head, what)
    _draw(panels, diff=OPEN.get(chosen, ""), is_patched=chosen == "word" and not attention.is_cross)


def _about(attention: Attention, head: Head | None = None) -> None:
    """Say whose heads these are, with a control to change it."""
    whose = f"{both(head)} of {short_name(attention.model)}" if head else short_name(attention.model)
    answered = attention.request
    whose += f", {steps(attention)}" if answered is not None and answered.off else ""
    text = attention.queries
    second = attention.keys.text if attention.is_cross else text.pair
    pair = f"{' → ' * attention.is_cross} {_quoted(second)}" if second else ""
    with st.container(key="about_text", horizontal=True, vertical_alignment="bottom", gap="small"):
        st.html(
            f'<p class="mha-about">{_quoted(text.text)}{pair} <span>{escape(whose)}</span></p>',
            width="content",
        )
        if head:
            label = ":primary[Change on Explore]"
            st.page_link(navigation.page("explore"), label=label, query_params=address.now())
    inference.say_unknown(attention)


def _quoted(text: str) -> str:
    """Return the sentence as an element, of which two lines are seen; the pointer shows all of it."""
    return f'<q title="{escape(text)}">{escape(text)}</q>'


def _choice(pins: Comparison) -> str:
    """What the page shows: the compared heads once there are any, until then what a replaced word changes."""
    labels = SHOWS | {"tray": f"Compared heads ({len(pins)})"}
    current = in_link("show", SHOWS, r"\w+") or ("tray" if pins else "word")
    bound(
        st.segmented_control, "What to compare", "show", current, list(SHOWS),
        change=lambda chosen: {"show": chosen, **_fresh(chosen)},
        format_func=labels.__getitem__, required=True, label_visibility="collapsed", wrap=True, width="content",
    )  # fmt: skip
    return current


def _fresh(shown: str) -> dict[str, str | None]:
    """The URL parameters of a new set of panels."""
    return {**dict.fromkeys(address.OF_THESE_PANELS), "diff": OPEN.get(shown)}


# ---- The compared heads -----------------------------------------------------------------------------------------


def _comparison(pins: Comparison, where: Address) -> None:
    if not pins:
        st.markdown(
            "No heads chosen yet. Press **+ Compare** on Explore, or the key **c** on a head of the grid. Up to eight "
            "heads of any layer, sentence and model are shown side by side."
        )
        label = ":primary[Choose heads on Explore]"
        st.page_link(navigation.page("explore"), label=label, query_params=address.now())
        return
    if QUANTITIES[where.request.quantity].with_all_heads and any(pin.request.off for pin in pins):
        inference.say_all_on(where)
    each = {number: _panel_of(pin, number, where) for number, pin in enumerate(pins)}
    panels = {number: panel for number, panel in each.items() if panel is not None}
    if len({pins[number].request for number in panels}) == 1:
        _about(next(iter(panels.values())).attention)
    if panels:
        shown = list(panels.values())
        # If a difference is defined, it opens, because that is what people compare two for.
        is_a_pair = len(shown) == 2 and not mismatch(shown[0].attention, shown[1].attention, View())
        _draw(shown, tuple(panels), diff="0-1" if is_a_pair else "")


def _panel_of(pin: Pin, number: int, where: Address) -> Panel | None:
    """The panel of a compared head, read again; None, with a remark on why, if it is unavailable now."""
    try:
        model = catalog.resolve(pin.request.model)
        if ready(model) or model_service().has_reading(pin.request):
            attention = inference.read(inference.as_shown(pin.request, where))
            head = Head(pin.head.layer, 0) if QUANTITIES[attention.quantity].of_layers else pin.head
            _ = attention[head]
            return Panel(attention, head, pin.name)
        _missing(model, f"Compared head {number + 1} needs")
    except MhaVizError as error:
        remark(f"Compared head {number + 1}, {both(pin.head)}, cannot be shown.")
        complain(error)
    st.button(f"Remove {pin.head} from the compared heads", key=f"remove_{number}", on_click=_on_remove, args=(number,))
    return None


@guarded()
def _on_remove(number: int) -> None:
    pins, _ = comparison.read(address.now().get("tray"))
    address.go(tray=comparison.write(comparison.remove(pins, number)))


def _missing(model: catalog.Model, who: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        remark(f"{who} {model.label}, which is not on this machine yet.")
        parameters = {**address.now(), "model": model.name}
        st.page_link(navigation.page("explore"), label="Download it on the Explore page", query_params=parameters)


@guarded()
def _on_edit() -> None:
    """The user edited the compared heads, or added a panel to them, or asked to see one on Explore."""
    event = message("compare", "edit")
    try:
        if event.get("action") == "open":
            navigation.leave("explore", _kept_on_explore() | _place(_pin(event)))
            return
        pins, _ = comparison.read(address.now().get("tray"))
        view = event.get("view")
        moved = address.accepted(view, address.COMPARED) if isinstance(view, dict) else {}
        address.go(tray=comparison.write(_edited(pins, event)), **moved)
    except MhaVizError as error:
        complain_later(error)


def _pin(event: dict[str, object]) -> Pin:
    """The head that a message names. Raises UnknownHead."""
    names = ("text", "pair", "model", "head", "target", "part")
    text, pair, model, head, target, part = (str(event.get(name) or "") for name in names)
    if part in PARTS:
        return Pin(Request(model, text, pair, target=target, part=part), Head.parse(head))
    text = address.url().to_pin(text)
    return Pin(replace(Request(model, text, pair), **address.switched_off_in(event)), Head.parse(head))


def _kept_on_explore() -> dict[str, str]:
    """The parameters of this page's URL that also apply to another head on the Explore page."""
    names = {"tray", *address.VIEW} - set(address.OF_THIS_MODEL)
    if st.session_state["show"] in OF_WEIGHTS:
        names -= {"shown"}
    return {name: value for name, value in address.now().items() if name in names}


def _place(pin: Pin) -> dict[str, str]:
    """The parameters with which the Explore page shows a head."""
    text, pair = address.fits(*pin.request.texts)
    model = pin.request.model if pin.request.model != catalog.default().name else ""
    return {"head": str(pin.head), "text": text} | replace(pin.request, model=model, text=text, pair=pair).in_link()


def _edited(pins: Comparison, event: dict[str, object]) -> Comparison:
    action, index, to, name = (event.get(key) for key in ("action", "index", "to", "name"))
    if action == "pin":
        return comparison.add(pins, _pin(event))
    if not isinstance(index, int):
        return pins
    if action == "remove":
        return comparison.remove(pins, index)
    if action == "duplicate":
        return comparison.duplicate(pins, index)
    if action == "move" and isinstance(to, int):
        return comparison.move(pins, index, to)
    return comparison.rename(pins, index, str(name or "")) if action == "rename" else pins


@guarded()
def _on_view() -> None:
    view = message("compare", "view")
    address.go(**address.accepted(view, address.COMPARED))


# ---- Ready-made comparisons -----------------------------------------------------------------------------


def _layer(attention: Attention, head: Head, what: Url) -> list[Panel]:
    heads = min(attention.heads, MOST)
    st.markdown(
        f"{'The' if heads == attention.heads else 'The first'} {heads} heads of layer {head.layer}, on one scale."
    )
    return [Panel(attention, Head(head.layer, i)) for i in range(heads)]


def _similar(attention: Attention, head: Head, what: Url) -> list[Panel]:
    with st.spinner("Comparing every pair of heads…"):
        similar = model_service().similar(attention, head, SIMILAR)
    st.markdown(f"The {len(similar)} heads most like {both(head)} here (0% = the same rows, 100% = nothing in common).")
    named = [Panel(attention, other, f"{apart(nats)} different") for other, nats in similar]
    return [Panel(attention, head), *named]


def _word(attention: Attention, head: Head, what: Url) -> list[Panel]:
    """The sentence, and the same sentence with a word replaced, which is edited in place."""
    second = what.where.request.other if "second" in what.parameters else replaced(what.text)
    bound(
        st.text_input, "Change a word, then press Enter", "second", second,
        change=lambda typed: {**second_text(typed), **_fresh("word")}, max_chars=2_000,
    )  # fmt: skip
    panels = [Panel(attention, head)]
    if not second.strip() or second == what.text:
        what_to_do = "Change a word of the sentence" if second.strip() else "Type the sentence with a word replaced"
        remark(f"{what_to_do}, to see both side by side.")
    else:
        where = what.where.but(other="", off=())  # here the second sentence is the text
        with guarded(complain):
            other = inference.read(inference.requested(model_of(where), second, where))
            panels.append(Panel(other, head))
    return panels


def _without(attention: Attention, head: Head, what: Url) -> list[Panel]:
    """The head in the whole model, and with the heads of the URL switched off."""
    if is_part(attention):
        remark("Heads can be switched off only in models with one stack of layers.")
        return [Panel(attention, head)]
    off = tuple(one for one in what.where.request.off if one in attention.every_head())
    before = tuple(one for one in attention.every_head() if one.layer == head.layer - 1)  # what the head reads
    text = attention.queries
    prefix = what.where.request.prefix
    request = Request(attention.model, text.text, text.pair, prefix=prefix, off=off or before)
    request = replace(request, **what.where.way(text.text))
    which = inference.listed(off) if off else f"All heads of layer {head.layer - 1} ({head.layer}) are"
    with st.container(horizontal=True, vertical_alignment="center"):
        if request.off:
            st.markdown(f"{which} switched off ({plain(request.manner)}) in the second panel.", width="content")
        else:
            remark("No head is switched off.")
        parameters = {**address.now(), "off": str(what.parameters.get("off") or NONE)}
        st.page_link(navigation.page("explore"), label=":primary[Choose heads to switch off]", query_params=parameters)
    panels = [Panel(attention, head)]
    return [*panels, Panel(inference.read(request), head, "without")] if request.off else panels


def _models(attention: Attention, head: Head, what: Url) -> list[Panel]:
    """The sentence in another model, with the head there whose attention between words is most similar."""
    current_model = model_of(what.where)
    others = [m for m in catalog.offered() if m.name != current_model.name]
    if not others:
        remark("This server offers one model only.")
        return [Panel(attention, head)]
    names = [m.name for m in others]
    here = [m.name for m in others if ready(m)]
    wanted_model = in_link("with", [m.name for m in catalog.offered()], ".+")
    current = wanted_model if wanted_model in names else (here or names)[0]
    labels = {m.name: m.label for m in others}  # menus render no Markdown
    bound(
        st.selectbox, "Compare with", "with", current, names, change=lambda name: {"with": name, **_fresh("models")},
        format_func=labels.__getitem__, width=340,
    )  # fmt: skip
    model = catalog.resolve(current)
    if not ready(model):
        _missing(model, "This comparison needs")
        return [Panel(attention, head)]
    request_to_it = Request(model.name, what.text, what.where.request.pair, prefix=what.where.request.prefix)
    other = inference.read_by(beside(request_to_it, attention, what.where))
    if other is None:
        return [Panel(attention, head)]
    similar, nats = model_service().most_similar_head(attention, head, other)
    closeness = "" if nats is None else f": the head there that is most similar word by word ({apart(nats)} different)"
    st.markdown(f"{both(head)} beside {both(similar)} of {plain(model.label)}{closeness}.")
    return [Panel(attention, head), Panel(other, similar)]


def _draw(
    panels: Sequence[Panel],
    places: tuple[int, ...] | None = None,
    diff: str = "",
    charts: Sequence[PageChart] = (),
    is_patched: bool = False,
) -> None:
    """Draw the panels side by side, with a download that also holds the page's ``charts``. ``places``: the place of
    each panel among the compared heads; the others can be added. ``diff``: the two that open with their difference.
    ``is_patched``: whether heads of the first are taken from the text of the second."""
    numbers = [str(number) for number in range(len(panels))]
    pairs = [f"{one}-{other}" for one in numbers for other in numbers if one != other]
    in_link("at", numbers, address.COMPARED["at"])
    in_link("diff", [*pairs, "none", diff], address.COMPARED["diff"])
    component(model_service().panels(panels, places, diff, SPECIAL), "compare", _on_view, _on_edit)
    if is_patched and len(panels) == 2:
        charts = patched.show_patched(panels[0].attention, panels[1].attention, panels[0].head)
    parameters = address.now()
    view, pin_of = shown_as(parameters, panels)
    pair = address.pair_of(parameters.get("diff") or diff, len(panels))
    kind: As = "links" if parameters.get("as") == "links" else "heatmap"
    download_panel.of_panels(panels, view, kind, pair, pin_of, is_compared=places is not None, charts=charts)
    publish.show_publishing(panels, view, pin_of, pair)


def shown_as(parameters: Mapping[str, str], panels: Sequence[Panel]) -> tuple[View, int]:
    """The view of these panels in a URL, and the panel whose tokens the pin counts, as ``parseTogether`` of
    ``browser/compare/together.js`` reads it."""
    compared = {name: value for name, value in parameters.items() if name in address.COMPARED}
    tokens = max((len(axis) for panel in panels for axis in (panel.attention.queries, panel.attention.keys)), default=0)
    view = download_panel.view_of({"special": SPECIAL, **compared}, tokens=tokens)
    if view.scale == "row":  # a separate scale for each row is not a common scale
        view = replace(view, scale="head" if tokens > LONG_TOKENS else "")
    at = parameters.get("at", "")
    pin_of = int(at) if re.fullmatch(address.COMPARED["at"], at, flags=re.ASCII) else 0
    if view.pin and pin_of < len(panels):
        axes = panels[pin_of].attention.queries, panels[pin_of].attention.keys
        if all((token or 0) < len(axis) for token, axis in zip(view.pinned, axes, strict=True)):
            return view, pin_of
    return replace(view, pin=""), 0


def _quantity_control(where: Address, is_of_weights: bool, has_second: bool) -> None:
    """The control for the quantity that is drawn, and, for gradients, for the word; a remark instead where only weights
    are compared. ``has_second``: whether a second text is compared with the first by its vector."""
    if is_of_weights:
        if where.request.quantity != DEFAULTS["shown"]:
            drawn_so = "Compared heads, a whole layer and a replaced word can be drawn as"
            remark(f"Weights are compared here. {drawn_so} {QUANTITIES[where.request.quantity].label}.")
        return
    bound(
        st.selectbox, "Shown", "shown", where.request.quantity, list(QUANTITIES), change=_other_quantity,
        format_func=lambda name: QUANTITIES[name].label, width=180, label_visibility="collapsed",
    )  # fmt: skip
    if QUANTITIES[where.request.quantity].of_answer and has_second:
        asking.controls(None, where)
    if where.request.quantity != DEFAULTS["shown"]:
        remark(QUANTITIES[where.request.quantity].about)


def _other_quantity(chosen: str) -> UrlChanges:
    return {"shown": None if chosen == DEFAULTS["shown"] else chosen, "scale": address.scale_of(chosen)}
