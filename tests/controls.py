"""List what a visitor can do on the current page, and what another client could send instead."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates

from tests.page_session import PageSession

T = TypeVar("T")

TEXT = "The cat sat on the mat."
HEAD = {"text": TEXT, "pair": "", "model": "minilm", "head": "L2H3"}
# The messages of the pages' components: (component, event) → values that a click can send.
EVENTS: dict[tuple[str, str], tuple[object, ...]] = {
    ("mha_sentence", "read"): ({"text": TEXT, "pair": ""}, {"text": TEXT, "pair": "It slept."}),
    ("mha_sentence", "example"): (1, 0),
    ("mha_sentence", "model"): ("toy", "minilm"),
    ("mha_explorer", "view"): ({"head": "L1H1", "pin": "q2"}, {"special": "hide", "unit": "pieces"}),
    ("mha_explorer", "compare"): ({"model": "minilm", "head": "L0H1"},),
    ("mha_explorer", "measure"): ({},),
    ("mha_explorer", "why"): ({},),
    ("mha_explorer", "elsewhere"): (0, 99),
    ("mha_explorer", "card"): ("L3H1",),
    ("mha_search", "query"): ("subject", "4-2", "it animal"),
    ("mha_search", "open"): ({"typed": "pronoun", "index": 0}, {"typed": "it animal", "index": 1}),
    ("mha_compare", "view"): ({"scale": "head", "diff": "0-1"},),
    ("mha_compare", "edit"): (
        {"action": "pin", **HEAD},
        {"action": "duplicate", "index": 0},
        {"action": "remove", "index": 0},
        {"action": "rename", "index": 0, "name": "mine"},
        {"action": "open", **HEAD},
    ),
    ("mha_block", "stage"): ("project", "cost", "weights"),
    ("mha_block", "head"): (2,),
    ("mha_block", "key"): (3,),
    ("mha_player", "step"): (0, 3, 40),
    ("mha_player", "next"): (True,),
}
ODD_TEXTS = ("", "\u202e<b>x</b>", "L99H99", "9" * 400, "None", "-1", "[", "²")
ODD: tuple[object, ...] = (
    *(None, True, -1, 10**9, 1.5, "", "nonsense", [], ["L0H0"], {}),
    {"head": 7, "index": "x"},
    {"text": 5, "pair": None, "head": [], "view": "x", "action": {}},
    {"action": "move", "index": -9, "to": 9},
)


@dataclass(frozen=True)
class Act:
    """One action: ``control`` is a readable name, ``field`` and ``value`` are what the browser sends."""

    control: str
    field: str
    value: Any

    def __str__(self) -> str:
        return f"{self.control}={json.dumps(self.value, ensure_ascii=False, default=repr)[:60]}"

    def do(self, visit: PageSession) -> bool:
        """Send the action; return False if the page currently has no such control."""
        name = next((id_ for control, id_, _, _ in _iter_drawn(visit) if self._is(control)), None)
        if name is None:
            return False
        state = WidgetState(id=name)
        if self.field == "file_uploader_state_value":
            uploader = next(uploader for uploader in visit.at.file_uploader if uploader.id == name)
            state = uploader.set_value(tuple(self.value) or None)._widget_state
        elif self.field == "string_array_value":
            state.string_array_value.data.extend(self.value)
        elif self.field == "json_trigger_value":
            ((event, value),) = [(sent["event"], sent["value"]) for sent in json.loads(self.value)]
            value = visit.add_reading_key(self.control.partition(".")[0], value)
            state.json_trigger_value = json.dumps([{"event": event, "value": value}])
        else:
            setattr(state, self.field, self.value)
        visit.at._run(WidgetStates(widgets=[state]))
        visit.check()
        return True

    def _is(self, control: str) -> bool:
        """Return whether a control is this one.

        The keys of some controls end with the current choice, which is empty at first.
        """
        return control == self.control or (self.control.endswith("_") and control.startswith(self.control))


def list_acts(visit: PageSession, odd: bool = False) -> list[Act]:
    """Return the possible actions on this page or, if ``odd``, actions with values that its controls do not offer."""
    return [
        Act(control, field, value)
        for control, _, field, values in _iter_drawn(visit, odd)
        for value in values
        if not control.startswith(("scheme", "try_again"))
    ]


def pick_first_of_each(acts: Sequence[Act]) -> list[Act]:
    """Return the first action of each control."""
    return list({act.control: act for act in reversed(acts)}.values())[::-1]


def build_pair_walk(items: Sequence[T]) -> list[T]:
    """Return the shortest sequence in which every item follows every item, including itself (a De Bruijn sequence)."""
    cycle: list[T] = []
    for number, first in enumerate(items):
        cycle.append(first)
        for later in items[number + 1 :]:
            cycle += [first, later]
    return [*cycle, cycle[0]]


def build_return_walk(items: Sequence[T]) -> list[T]:
    """Return a walk forwards and backwards through the items.

    Each item comes once at an even and once at an odd position, and follows each of its neighbours.
    """
    return [*items, *reversed(items)]


def _iter_drawn(visit: PageSession, odd: bool = False) -> Iterator[tuple[str, str, str, Sequence[Any]]]:
    """Yield control, id, field of the message, and values of every control on the page."""
    for element in _iter_elements(visit.at._tree):
        kind, proto = getattr(element, "type", ""), getattr(element, "proto", None)
        if kind == "bidi_component":
            yield from _iter_events(proto, odd)
        elif hasattr(element, "children"):
            if kind == "expander" and getattr(proto, "id", ""):
                yield _get_key(proto.id), proto.id, "bool_value", (True, False)
        elif getattr(proto, "id", "") and not getattr(proto, "disabled", False):
            field, values = _choose_values(kind, proto, odd)
            if field:
                yield _get_key(proto.id), proto.id, field, values


def _iter_events(proto: Any, odd: bool) -> Iterator[tuple[str, str, str, Sequence[Any]]]:
    trigger = _make_trigger_id(proto.id, "events")
    for (component, event), values in EVENTS.items():
        if component == proto.component_name:
            sent = [json.dumps([{"event": event, "value": value}]) for value in (ODD if odd else values)]
            yield f"{component}.{event}", trigger, "json_trigger_value", sent


def _choose_values(kind: str, proto: Any, odd: bool) -> tuple[str, Sequence[Any]]:
    """Return the field of the message that a kind of control sends, and values for it."""
    if kind == "button":
        return "trigger_value", (True,)
    if kind in ("checkbox", "toggle"):
        return "bool_value", (True, False)
    if kind in ("text_input", "text_area"):
        return "string_value", ODD_TEXTS if odd else ("L3H1", "mod", "")
    if kind == "file_uploader":
        files = (
            [("odd.txt", b"\xff\x00", ""), ("odd.conllu", b"1\tx", "")] if odd else [("a.txt", b"A cat sat.\n" * 9, "")]
        )
        return "file_uploader_state_value", [*files, ()]
    if kind in ("selectbox", "radio"):
        return "string_value", ODD_TEXTS if odd else _pick_ends([str(option) for option in proto.options])
    if kind in ("button_group", "select_slider"):
        labels = [option if isinstance(option, str) else option.content for option in proto.options]
        choices: Sequence[Any] = [[label] for label in _pick_ends(labels)]
        return "string_array_value", [[text] for text in ODD_TEXTS] + [[], labels[:2] * 2] if odd else choices
    if kind == "multiselect":
        labels = list(proto.options)
        chosen = [*([label] for label in _pick_ends(labels)), labels[:3], []]
        return "string_array_value", [*([text] for text in ODD_TEXTS), labels[:2] * 2] if odd else chosen
    if kind == "number_input":
        return "double_value", (-1e300, 1e300, 0.5, -0.0, 1e18) if odd else (2, 1, 97)
    if kind == "plotly_chart" and proto.selection_mode:
        points: Sequence[Any] = [{"customdata": value} for value in ODD] if odd else [{"customdata": "L3H1"}]
        return "string_value", [json.dumps({"selection": {"points": [point]}}) for point in points]
    return "", ()


def _pick_ends(values: Sequence[str]) -> list[str]:
    """Return the last, the first and the middle value, without duplicates."""
    return list(dict.fromkeys([values[-1], values[0], values[len(values) // 2]])) if values else []


def _get_key(name: str) -> str:
    """Return the key of a control, which is at the end of its id."""
    return name.split("-", 2)[2]


def _iter_elements(block: Any) -> Iterator[Any]:
    for child in getattr(block, "children", {}).values():
        yield child
        yield from _iter_elements(child)
