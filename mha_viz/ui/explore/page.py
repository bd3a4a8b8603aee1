"""The Explore page: the drawing of a reading, the remarks around it, and how it changes the URL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Protocol

import streamlit as st

from mha_viz.attention import Attention, Head
from mha_viz.browser.quantities import QUANTITIES, WEIGHT
from mha_viz.browser.view import DEFAULTS
from mha_viz.errors import Cancelled, CorpusError, MhaVizError, UnknownHead
from mha_viz.figures.packet import OpenHead, RankedLink, belongs_to, is_coarse
from mha_viz.figures.view import View
from mha_viz.models import catalog
from mha_viz.numerals import done
from mha_viz.request import Request
from mha_viz.ui import (
    address,
    asking,
    comparison,
    download_panel,
    inference,
    navigation,
    search_field,
    studies,
)
from mha_viz.ui.address import Address, Url
from mha_viz.ui.annotated import Annotated, annotated, built_in
from mha_viz.ui.caches import facts, model_service, ready
from mha_viz.ui.comparison import Pin
from mha_viz.ui.components import apply_style, explorer
from mha_viz.ui.download_panel import PageChart, view_of
from mha_viz.ui.explore import averages, gold
from mha_viz.ui.explore.badges import arrows, badges
from mha_viz.ui.parts import (
    complain,
    complain_later,
    entitle,
    guarded,
    message,
    plain,
    quoted,
    remark,
    say_complaint,
    say_unused,
    sent,
)
from mha_viz.ui.request import hides_an_answer, is_part, model_of, of_part, opened_first, say_part
from mha_viz.ui.studies import sentences_given
from mha_viz.ui.study_progress import progress

DRAWN = "explorer_drawn"  # session keys: the request, and, in a message about the view, the request that it belongs to
INTRODUCTION = "Each square shows where one attention head looks."
LISTED = 3  # the most groups of heads that are listed
_SHAPE = '<div class="mha-skeleton" aria-hidden="true"><b></b><b></b></div>'  # so that the page is never empty


class PageMode(Protocol):
    """What a mode of the page adds: ``drawn`` in the drawing, as JSON, what it says above it, and what it shows below.
    Both return charts to download."""

    @property
    def drawn(self) -> str: ...
    def say(self, opened: Head) -> list[PageChart]: ...
    def show(self) -> list[PageChart]: ...


def draw(
    what: Url, attention: Attention, make_mode: Callable[[Url, Attention], PageMode | None], on_off: Callable[[], None]
) -> None:
    """Draw a reading, with remarks on what could not be read or followed. ``make_mode`` is asked where the URL has
    ``off``, also if no head is off; ``on_off`` switches a head off or on."""
    where, mode = what.where, make_mode(what, attention) if "off" in what.parameters else None
    begin = opened_first(what, attention)
    wanted = _wanted(what, attention, begin)
    entitle(str(wanted[0]), quoted(what.sentence))
    is_of_part = is_part(attention)
    say_part(attention)
    _say_coarse(attention)
    annotation = None if is_of_part else what.gold
    if not is_of_part:
        show_measuring(attention.model)
    if annotation is not None and where.case is not None:
        gold.show_case(annotation, attention, where.case)
    if QUANTITIES[where.request.quantity].of_answer:
        _ask(attention, where)
    st.session_state[DRAWN] = _requested(what), belongs_to(attention)
    above, led = st.container(), (*_led(what, attention), _turns(what, begin))
    composed = None if mode or is_of_part else arrows(what, attention)
    explorer(
        model_service().packet(attention, wanted, _ranked(where, attention), begin),
        badges(attention, wanted, annotation and annotation.sentence, *led, mode.drawn if mode else "null", composed),
        "explorer",
        on_view=_on_view,
        on_compare=_on_compare,
        on_card=_on_card,
        on_measure=_on_measure,
        on_off=on_off,
    )
    say_complaint()
    charts: list[PageChart] = []
    if mode is not None:
        with above:
            charts = mode.say(wanted[0])
        charts += mode.show()
    _beside_gold(what, attention, annotation, wanted[0])
    if not is_of_part and "\n" in what.text:
        charts += averages.show_averages(what, attention.model, attention.revision)
    download_panel.of_reading(attention, wanted, partial(_view, attention, where, begin), charts)


def _ranked(where: Address, attention: Attention) -> RankedLink | None:
    """The link by which heads are ranked, if its tokens exist."""
    if where.link is None or where.link[0] >= len(attention.queries) or where.link[1] >= len(attention.keys):
        return None
    return RankedLink(*where.link, words=where.words)


def _led(what: Url, attention: Attention) -> tuple[str, int, bool]:
    """What leads the drawing besides the URL of the view: the step of the tour, how often the search has opened a head,
    and whether an answer is hidden."""
    step = what.parameters.get(navigation.TOUR, "")[:20]
    return step, st.session_state.get(search_field.OPENED, 0), hides_an_answer(what, attention.model)


def _turns(what: Url, begin: OpenHead) -> str:
    """The heads that a first visit shows in turn, as in the first example; none for a link that asks for anything."""
    first = address.examples()[0]
    return "" if what.parameters or begin.head != first["head"] else first["turns"]


def _view(attention: Attention, where: Address, begin: OpenHead) -> View:
    """The view on screen. If the URL holds no token, it is that of the first view, as long as its head is open."""
    held = begin.pin if where.head is None else None
    return view_of(address.now(), held, max(len(attention.queries), len(attention.keys)))


def _wanted(what: Url, attention: Attention, begin: OpenHead) -> tuple[Head, ...]:
    """The heads to open, the first of them the one beside the grid; with remarks on what of the text or of the link
    cannot be shown."""
    where = what.where
    heads = (Head.parse(begin.head) if where.head is None else where.head,)
    wanted, odd = _existing_heads(attention, (*heads, *(Head(heads[0].layer, h) for h in where.on)))
    n = max(len(attention.queries), len(attention.keys))
    unread = ["tray"] if where.tray and not comparison.read(where.tray)[1] else []
    odd += [*where.unused("explore"), *(f"token {t}" for t in where.tokens if t >= n), *unread]
    inference.say_cut(attention, where, what.sentence)
    inference.say_unknown(attention)
    say_unused(odd)
    return wanted if heads[0] in wanted else (Head.parse(begin.head),)


def link_to_tasks(what: Url) -> None:
    """Show the link to the small tasks, below the first sentence."""
    if "text" in what.parameters:
        return
    label = ":primary[Small tasks for four heads]"
    st.page_link(navigation.page("why heads differ"), label=label, query_params={"experiment": "tasks"})


def _say_coarse(attention: Attention) -> None:
    """Say how precise the numbers of a drawing are, if that is less than three decimals."""
    if is_coarse(attention):
        remark(
            "In a text as long as this one, numbers on the page are accurate to within 0.2% of the largest in their "
            "row. Files have them exactly."
        )


def _beside_gold(what: Url, attention: Attention, annotation: Annotated | None, head: Head) -> None:
    """Compare the open head with the gold annotation, if there is any; otherwise show what the words suggest."""
    if attention.quantity != WEIGHT:
        remark(f"{QUANTITIES[attention.quantity].about} Roles were measured on weights and are not shown here.")
    elif annotation is not None:
        gold.show_gold(annotation, attention, head)
    elif not is_part(attention):
        if isinstance(misread := annotated(what.text), CorpusError):
            complain(misread)
        gold.propose(attention)


def _ask(attention: Attention, where: Address) -> None:
    """Say whose gradient is shown, with a control to change it."""
    if not QUANTITIES[attention.quantity].of_answer:  # the reason was shown where it was read
        asking.controls(None, where)
        return
    with guarded(complain):
        question = asking.panel(catalog.resolve(attention.model), attention, where)
        if question is not None:
            remark(f"Each number says what a link adds to {question.score}, to first order.")


def _existing_heads(attention: Attention, heads: tuple[Head, ...]) -> tuple[tuple[Head, ...], list[str]]:
    """The heads that exist in the model, each once, and the names of the others."""
    good, odd = [], []
    for head in dict.fromkeys(heads):
        try:
            _ = attention[head]
            good.append(head)
        except UnknownHead:
            odd.append(str(head))
    return tuple(good), odd


@guarded()
def _on_view() -> None:
    """The user changed the view. A message about the view of an earlier text is ignored."""
    view = message("explorer", "view")
    what = address.url()
    if _is_drawn(view, what):
        changes = address.accepted(view)
        address.go(**changes | _other_quantity(what.where, changes.get("shown")))


def _is_drawn(event: Mapping[str, object], what: Url) -> bool:
    """Whether a message is about what is requested now, and not about an earlier text."""
    return st.session_state.get(DRAWN) == (_requested(what), event.get("of"))


def _requested(what: Url) -> tuple[str, ...]:
    """The parts of the request that decide which tokens there are, and which heads an encoder–decoder has."""
    request = what.where.request
    return what.text, request.pair, request.target, request.part, request.prefix


def _other_quantity(where: Address, shown: str | None) -> dict[str, str | None]:
    """The parameters that change together with the quantity: norms have no common scale, and rollout has other
    heads."""
    if (shown or DEFAULTS["shown"]) == where.request.quantity:
        return {}
    changes = {"scale": address.scale_of(shown)}
    rows = [QUANTITIES.get(name or WEIGHT) for name in (shown, where.request.quantity)]
    has_other_heads = any(row.of_layers for row in rows if row)
    return changes | ({"head": None, "on": None} if has_other_heads else {})


@guarded()
def _on_compare() -> None:
    """Add the head of the reading on screen to the compared heads."""
    event = message("explorer", "compare")
    what = address.url()
    if DRAWN in st.session_state and not _is_drawn(event, what):  # a browser may draw before its session has
        st.toast("The sentence has changed. Press **+ Compare** again once it is drawn.")
        return
    try:
        name, head = str(event.get("model", "")), Head.parse(str(event.get("head")))
        request = of_part(Request(name, what.sentence, what.where.request.pair), what.where)
        if not request.part:
            request = replace(request, text=what.to_pin(what.sentence), **address.switched_off_in(event))
        if what.where.request.prefix:
            st.toast("Compared heads read their texts without the prefix in this link.")
        pins, _ = comparison.read(what.where.tray)
        layer = f"Layer {head.layer}" if QUANTITIES[what.where.request.quantity].of_layers else ""
        address.go(tray=comparison.write(comparison.add(pins, Pin(request, head), layer)))
    except MhaVizError as error:
        st.toast(plain(str(error)))  # the button may be far from where errors are shown
        complain_later(error)


@guarded()
def _on_card() -> None:
    """Open the card of a head on the Roles page."""
    with suppress(UnknownHead):
        head = Head.parse(str(sent("explorer", "card")))
        here = {name: value for name, value in address.now().items() if name not in ("on", "corpus")}
        navigation.leave("roles", {**here, "head": str(head)})


def warm_up() -> None:
    """Load the default model once the first picture has been sent. An error is reported when the model is requested."""
    with suppress(MhaVizError):
        first = catalog.default()
        if ready(first):
            model_service().warm(first)


def requested_reading(what: Url) -> Attention | None:
    """The reading that the page shows, as :func:`inference.read_shown`, with the placeholder until it is drawn."""
    apply_style("skeleton")
    shape = st.empty()
    shape.html(_SHAPE)
    attention = None
    try:
        attention = inference.read_shown(what.text, what.where, says_source=False)
    finally:
        if attention is None:
            shape.empty()
    return attention


def say_shared_keys(attention: Attention) -> None:
    """One line on models of which only the weights are read, and one on the groups of heads, where there are such."""
    with suppress(MhaVizError):  # the files are gone: the drawing stays
        of_files = facts(catalog.resolve(attention.model))
        if of_files is not None and of_files.weights_only:
            remark(
                "Weights only: the parts of this model’s family are not known here, so norms, parts of a score, "
                "switching heads off, predictions and the steps inside a head are refused."
            )
        shared = of_files.heads_per_key if of_files is not None else 1
        if shared > 1:
            joined = " and " if shared == 2 else " to "
            groups = [f"H{first}{joined}H{first + shared - 1}" for first in range(0, attention.heads, shared)]
            listed = ", ".join(groups[:LISTED]) + (", and so on," if len(groups) > LISTED else "")
            remark(f"In each layer {listed} share a key and a value; their queries differ.")


def show_measuring(name: str) -> None:
    """Show the progress of the study of this model over the built-in sentences, while one runs."""
    try:
        model = catalog.resolve(name)
    except MhaVizError:  # a model that is no longer offered
        return
    if studies.is_measured(model):
        return
    study = studies.under_way(model, built_in().digest)
    failed = studies.failed(model, built_in().digest)
    if study is not None:
        progress(study, lambda job: f"The roles of {plain(model.label)} are being measured: {done(job.fraction)}")
    elif failed is not None and not isinstance(failed[0], Cancelled):  # who stopped it knows; others need not
        complain(failed[0])


@guarded()
def _on_measure() -> None:
    """Measure the model on the page, or join the study under way."""
    studies.start(model_of(address.url().where), sentences_given())
