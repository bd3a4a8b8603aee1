"""Draw values for random interactions: valid values of each widget and component, and invalid values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.visitors import draw_sentence
from tests.hostile import TEXTS
from tests.web_session import WebSession

MAX_ADDRESS = 64_000  # characters of an address
_TEXTS = [text for text in TEXTS.values() if 0 < len(text) <= 3_000 and text.isprintable() | ("\0" in text)]
_HEADS = ("L0H0", "L3H1", "l5h11", "L99H0", "4-2", "0-0", "13-13", "L1", "H", "L003H001", "٣-٤")
_QUERIES = ("subject", "pronoun", "looks at commas", "L3H1", "4-2", "99-99", "it animal", "the → cat", "vocative")
_PARAMETERS = (
    "text pair model before head on pin link unit special links scale side typed tray second with show diff at as q k "
    "step divide corpus kinds relation level experiment run arm tour learning "
    "shown off how roles task answer"
)
_VALUES = (
    "words pieces hide rescale all top3 min0.1 mass0.5 head row log fixed aa ab L3H1 L0H2 q3k4 q99 0-1 1-0 9-9 none "
    "tray layer similar word models map heatmap links minilm toy toy@400 gold grammar file identical penalty count "
    "project x scores share join cost 0 1 2 7 300 no default steps-100 weight-0.5 syntax nsubj "
    "norm rollout L3H1.L5H11 zero mean uniform on"
)


def draw_value(kind: str, proto: Any, random: Random) -> Any:
    """Return a value that a widget of this kind can send."""
    if kind in ("text_input", "text_area"):
        return draw_text(random)[: proto.max_chars or None]
    if kind in ("selectbox", "radio"):
        return random.choice(list(proto.options))
    if kind == "button_group":
        is_multiple = proto.click_mode == proto.MULTI_SELECT
        return random.sample(
            [o.content for o in proto.options], random.randint(0, len(proto.options) if is_multiple else 1)
        )
    if kind == "multiselect":
        return random.sample(list(proto.options), random.randint(0, len(proto.options)))
    if kind == "slider" and proto.options:
        return [random.choice(list(proto.options)) for _ in proto.raw_value or [0]]
    if kind == "slider":
        return [float(random.randint(int(proto.min), int(proto.max)))] * len(proto.default)
    if kind == "number_input":
        low, high = (proto.min if proto.has_min else -1e9), (proto.max if proto.has_max else 1e9)
        number = random.choice(
            (low, high, 0.0, 1.0, float(random.randint(-3, 700)), random.uniform(low, high), proto.default)
        )
        value = min(high, max(low, number))
        return float(int(value)) if proto.data_type == proto.INT else value
    if kind in ("plotly_chart", "dataframe"):
        points = [{"customdata": random.choice(_HEADS), "point_index": 1, "curve_number": 0, "x": 1, "y": 2}]
        points = points[: random.randint(0, 1)] if kind == "plotly_chart" else []
        rows = [random.randint(-1, 99) for _ in range(random.randint(0, 1))]
        return json.dumps({"selection": {"points": points, "point_indices": [1], "box": [], "lasso": [], "rows": rows}})
    if kind == "tab_container":
        return "one"
    return random.random() < 0.5


def draw_event(session: WebSession, component: str, random: Random) -> tuple[str, Any]:
    """Return an event of a component, with a value that its own script could send or with any JSON."""
    event, value = random.choice(list_events(session, random)[component])
    return event, draw_json(random) if random.random() < 0.25 else value()


def list_events(session: WebSession, random: Random) -> dict[str, tuple[tuple[str, Callable[[], Any]], ...]]:
    """Return the events of every component, each with a function that makes a value for it."""
    return {
        "mha_sentence": (
            ("read", lambda: {"text": draw_text(random), "pair": random.choice(("", "", draw_text(random)))}),
            ("read", lambda: {"text": draw_sentence(random), "pair": ""}),
            ("example", lambda: random.randint(-1, 9)),
            ("model", lambda: random.choice(("minilm", "toy", "toy@400", "bert-base-uncased", draw_text(random)))),
        ),
        "mha_explorer": (
            ("view", lambda: {"of": _find_text_key(session), **draw_query(random)}),
            ("compare", lambda: {"model": random.choice(("minilm", "toy", "x")), "head": random.choice(_HEADS)}),
            ("card", lambda: random.choice(_HEADS)),
            ("measure", lambda: True),
            ("off", lambda: random.choice(_HEADS)),
            ("why", lambda: True),
            ("elsewhere", lambda: random.choice((0, 3, -1, 99, "0", 1.5))),
        ),
        "mha_search": (
            ("query", lambda: random.choice((*_QUERIES, draw_text(random)))),
            ("open", lambda: {"typed": random.choice(_QUERIES), "index": random.randint(-1, 9)}),
        ),
        "mha_compare": (("view", lambda: draw_query(random)), ("edit", lambda: _draw_edit(random))),
        "mha_block": (
            ("stage", lambda: draw_word(random, _VALUES)),
            ("head", lambda: random.choice((0, 3, 11, 99, -1, 2.5))),
            ("key", lambda: random.choice((0, 3, 99, 10**6, -1, 2.5))),
        ),
        "mha_player": (
            ("step", lambda: random.choice((0, 3, 40, 10**6, -1, "last"))),
            ("next", lambda: True),
        ),
        "mha_more": (("class", lambda: True),),
        "mha_reasons": (
            ("ask", lambda: random.choice(({"head": random.choice(_HEADS), "key": "0"}, draw_word(random, _VALUES)))),
        ),
        "mha_scheme": (
            ("turned", lambda: random.choice(("dark", "light"))),
            ("linked", lambda: random.choice(({"head": random.choice(_HEADS)}, {"kinds": draw_text(random)}))),
        ),
        # These two components react to no events.
        "mha_tour": (("step", lambda: random.choice(("1", "6", ""))),),
        "mha_pointed": (("at", lambda: random.randint(-1, 20)),),
    }


def _find_text_key(session: WebSession) -> str:
    """Return the key of the drawn text, which messages of the explorer must contain."""
    reading = re.search(rb'"of":\s*"([^"]*)"', session.components["mha_explorer"].bytes[:20_000])
    return reading[1].decode() if reading else "nothing"


def _draw_edit(random: Random) -> dict[str, Any]:
    return {
        "action": random.choice(("rename", "duplicate", "remove", "move", "open", "pin", "burn")),
        "index": random.choice((0, 1, 2, 7, 8, -1, 10**9, None, True)),
        "to": random.choice((0, 1, 9, -5, None)),
        "name": draw_text(random),
        "head": random.choice(_HEADS),
        "model": random.choice(("minilm", "toy", "nobody/nothing")),
        "text": draw_sentence(random) if random.random() < 0.7 else draw_text(random),
        "pair": random.choice(("", "", "And a second one.")),
        "view": draw_query(random),
    }


def draw_text(random: Random) -> str:
    """Return a text that a person, or an attacker, might type or paste."""
    return random.choice(
        (draw_sentence(random), random.choice(_HEADS), draw_word(random, _VALUES), random.choice(_TEXTS))
    )


def draw_word(random: Random, words: str) -> str:
    return random.choice(words.split())


def draw_query(random: Random) -> dict[str, str]:
    """Return random URL parameters, valid or not."""
    names = random.sample(_PARAMETERS.split(), random.choice((0, 1, 1, 2, 3, 5)))
    return {name: draw_text(random) if random.random() < 0.4 else draw_word(random, _VALUES) for name in names}


def draw_json(random: Random, depth: int = 3) -> Any:
    """Return any JSON value."""
    scalars: tuple[Any, ...] = (None, True, False, 0, -1, 3.5, 10**30, 1e308, "", draw_text(random))
    kind = random.random()
    if depth == 0 or kind < 0.5:
        return random.choice(scalars)
    if kind < 0.75:
        return [draw_json(random, depth - 1) for _ in range(random.randint(0, 4))]
    names = ("text", "pair", "of", "head", "model", "action", "index", "view", "__proto__", "")
    return {random.choice(names): draw_json(random, depth - 1) for _ in range(random.randint(0, 4))}


def draw_odd_state(session: WebSession, random: Random) -> WidgetState:
    """Return the state of one widget, which may not exist, with a value of any type."""
    ids = [e.id for e in session.elements if e.id] + ["", "nobody", f"$$ID-{random.getrandbits(64):x}-x", "x" * 9_000]
    state = WidgetState(id=random.choice(ids))
    kind = random.choice([f.name for f in WidgetState.DESCRIPTOR.fields if f.name != "id"])
    text = random.choice(
        (draw_text(random).replace("\0", ""), "[" * 3_000, "{}", "null", json.dumps(draw_json(random)))
    )
    if kind in ("trigger_value", "bool_value"):
        setattr(state, kind, random.random() < 0.8)
    elif kind == "double_value":
        state.double_value = random.choice((float("nan"), float("inf"), -1e308, 0.0))
    elif kind == "int_value":
        state.int_value = random.choice((-(2**63), 2**63 - 1, 0))
    elif kind in ("string_value", "json_value", "json_trigger_value"):
        setattr(state, kind, text)
    elif kind == "bytes_value":
        state.bytes_value = random.randbytes(100)
    elif kind == "string_array_value":
        state.string_array_value.data.extend([text] * random.randint(0, 3))
    elif kind in ("double_array_value", "int_array_value"):
        getattr(state, kind).data.extend([random.choice((-1, 0, 10**6))] * random.randint(0, 3))
    elif kind == "file_uploader_state_value":
        state.file_uploader_state_value.uploaded_file_info.add(name=text[:50], size=2**40, file_id="nobody")
    else:
        getattr(state, kind).SetInParent()
    return state


def fill_odd_message(session: WebSession, random: Random, message: BackMsg) -> str:
    """Fill in the message with a request other than a run of the script; return its description."""
    kind = random.choice(("fragment", "empty", "stop", "git", "clear", "save", "beat", "file", "urls", "shutdown"))
    if kind == "fragment":
        message.CopyFrom(session.rerun(fragment=f"{random.getrandbits(64):x}"))
    elif kind == "file":
        message.backend_operation_request.request_id = "x"
        message.backend_operation_request.deferred_file.file_id = draw_text(random)
    elif kind == "urls":
        message.file_urls_request.request_id = "x"
        message.file_urls_request.file_names.extend([draw_text(random)] * 200)
        message.file_urls_request.session_id = random.choice((session.id, "nobody"))
    elif kind != "empty":
        names = {"stop": "stop_script", "git": "load_git_info", "clear": "clear_cache", "save": "set_run_on_save"}
        setattr(message, names.get(kind, "app_heartbeat" if kind == "beat" else "debug_shutdown_runtime"), True)
    return kind


def draw_long_address(random: Random) -> str:
    name = draw_word(random, _PARAMETERS)
    unit = random.choice(
        ("a", "%00", "%F0%9F%98%80", "1\t", "(", "[", "%ED%A0%80", "&", "=", ";", "L3H1.", "Entity=(a", "\n")
    )
    return f"{name}={(unit * MAX_ADDRESS)[: random.choice((10, 1_000, MAX_ADDRESS))]}"
