"""Random interactions over real sessions: what a browser can send, then anything at all. Nothing may break.

``honest``: every value has the type that the widget sends, options are the widget's own, texts and numbers and the
events of components are anything. ``forged``: wrong types, garbage where a message is expected, unknown pages, broken
JSON, addresses of up to 64 kB. There an error box is allowed where Streamlit itself could not read a value.

A visitor's number is the seed of all that it does: ``python -m benchmarks.fuzz honest 17`` does it again, alone.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode

import streamlit
from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.results import Row, Sample, Target, write
from benchmarks.visitors import Visitor, sentence
from benchmarks.watched import watched
from mha_viz.ui.parts import UNFORESEEN
from tests.hostile import TEXTS
from tests.web_session import FIELDS, Element, Gone, WebSession

AT_ONCE = 6  # visitors
STAY = 40  # interactions of one visitor
HONEST, FORGED = 10_000, 2_000
PATIENCE = 300.0  # seconds for one run; longer counts as a fault
LONGEST = 64_000  # characters of an address
PAGES = ("", "compare", "roles", "inside_a_head", "why_heads_differ", "questions", "about")
DEAR = {"lab_run": 3, "measure": 2, "measure_file": 4}  # how often one run of all this may press what takes long
DETAILS = "full"  # what STREAMLIT_CLIENT_SHOW_ERROR_DETAILS must be, so that an error box says where it comes from
_TEXTS = [text for text in TEXTS.values() if 0 < len(text) <= 3_000 and text.isprintable() | ("\0" in text)]
_HEADS = ("L0H0", "L3H1", "l5h11", "L99H0", "4-2", "0-0", "13-13", "L1", "H", "L003H001", "٣-٤")
_PARAMETERS = (
    "text pair model before head on pin link unit special links scale side typed tray second with show diff at as q k "
    "step divide corpus kinds find relation level numbering experiment run arm tour learning"
)
_VALUES = (
    "words pieces hide rescale all top3 min0.1 mass0.5 head row log fixed aa ab L3H1 L0H2 q3k4 q99 0-1 1-0 9-9 none "
    "tray layer similar word models map heatmap links minilm toy toy@400 gold grammar file identical penalty count "
    "linear x scores softmax output cost 0 1 2 7 300 no default steps-100 weight-0.5 syntax nsubj"
)
# A line of ours that hands over to a widget, whose value Streamlit could not read.
_WIDGET = r"\b(st|left|right|place|columns\[\d\])\.(?!query_params|switch_page|session_state)[a-z_]+\(|\b_mount\("
_UPLOADS = (
    ("plain.txt", b"The cat sat on the mat.\nThe dog ran away.\n"),
    ("small.conllu", b"1\ta\t_\tX\t_\t_\t0\troot\t_\tEntity=(1-person)\n\n"),
    ("broken.conllu", b"1\ta\t_\tX\n\n\t\t\t\n"),
    ("cycle.conllu", b"1\ta\t_\tX\t_\t_\t2\tdep\t_\t_\n2\tb\t_\tX\t_\t_\t1\tdep\t_\t_\n\n"),
    ("gap.tsv", b"ID\tText\tPronoun\n1\tShe left.\tShe\n"),
    ("binary.txt", bytes(range(256)) * 8),
    ("empty.txt", b""),
)


@dataclass
class Findings:
    """What all visitors met."""

    interactions: int = 0
    pages: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    boxes: dict[str, list[str]] = field(default_factory=dict)  # error box: who met it, doing what
    refused: Counter[str] = field(default_factory=Counter)  # boxes of Streamlit's own deserialisers
    faults: list[str] = field(default_factory=list)  # no answer, connection lost, whatever else
    closed: int = 0  # connections that the server ended after what is no message at all
    gone: int = 0  # files that the server had thrown away before they could be fetched
    neighbourly: int = 0  # actions of the usual visitor beside them
    pressed: Counter[str] = field(default_factory=Counter)


def main(results: Path, quick: bool = False) -> None:
    """Run, print, write ``results/fuzz.json``. ``quick``: a twentieth of it."""
    rows = []
    for name, visit, count in (("honest", honest, HONEST), ("forged", forged, FORGED)):
        with watched(STREAMLIT_CLIENT_SHOW_ERROR_DETAILS=DETAILS) as server:
            findings = asyncio.run(crowd(server.url, visit, count // 20 if quick else count))
            log = tracebacks(server.log(), forgiving=name == "forged")
        rows += _rows(name, findings, log)
    write(results, "fuzz", "Random interactions", "", rows, f"Streamlit {streamlit.__version__}")


def _rows(name: str, findings: Findings, log: Counter[str]) -> list[Row]:
    boxes = sum(len(met) for met in findings.boxes.values())
    beside = {"by_page": findings.pages, "by_kind": findings.kinds, "boxes": findings.boxes, "log": log}
    none = Target("below", 1)
    numbers: list[tuple[str, int, Target | None, dict[str, Any]]] = [
        ("interactions", findings.interactions, None, beside),
        ("error boxes", boxes, none, {}),
        ("tracebacks in the log", log.total(), none, {}),
        ("files gone before they were fetched", findings.gone, none, {}),
        ("lost or unanswered", len(findings.faults), none, {"faults": findings.faults}),
    ]
    if name == "forged":
        numbers.append(
            ("error boxes of Streamlit's deserialisers", findings.refused.total(), None, {**findings.refused})
        )
        numbers.append(("connections closed after garbage", findings.closed, None, {}))
    return [Row(f"{name}: {what}", Sample((float(n),)), "", None, goal, extra) for what, n, goal, extra in numbers]


def tracebacks(log: str, forgiving: bool = False) -> Counter[str]:
    """The tracebacks of a server's log: the error of each, and the deepest line of ours.

    ``forgiving``: without those that Streamlit raised when it read what was sent, a widget's value or a message.
    """
    counts: Counter[str] = Counter()
    for trace in log.split("Traceback (most recent call last):")[1:]:
        places = re.findall(r'File ".*?((?:mha_viz|pages)/[\w/]+\.py)", line (\d+).*\n(.*)', trace)
        errors = re.findall(r"^[\w.]+(?:Error|Exception|Warning|Exit)\b.*$", trace, re.MULTILINE)
        if forgiving and (not places or re.search(_WIDGET, places[-1][2])):
            continue
        where = ":".join(places[-1][:2]) if places else "no line of ours"
        counts[f"{errors[0][:160] if errors else trace[-160:]} [{where}]"] += 1
    return counts


# ---- Visitors -------------------------------------------------------------------------------------------

Visit = Callable[[str, int, Findings], Any]


async def crowd(url: str, visit: Visit, count: int) -> Findings:
    """``count`` interactions, AT_ONCE visitors at a time, each for at most STAY; beside them, a usual neighbour."""
    findings = Findings()
    numbers = itertools.count()
    warm = asyncio.Event()
    neighbour = asyncio.create_task(_neighbour(url, findings, warm))
    await warm.wait()  # the first sentence loads torch, which on a busy machine takes as long as our patience

    async def chair() -> None:
        while findings.interactions < count:
            await visit(url, next(numbers), findings)

    await asyncio.gather(*(chair() for _ in range(AT_ONCE)))
    neighbour.cancel()
    await asyncio.gather(neighbour, return_exceptions=True)
    return findings


async def _neighbour(url: str, findings: Findings, warm: asyncio.Event) -> None:
    """A usual visitor, in one session for as long as the others are there."""
    try:
        async with WebSession(url, patience=PATIENCE) as session:
            visitor = Visitor(session, Random(0))
            await visitor.does("read a sentence")
            warm.set()
            while True:
                await visitor.acts()
                findings.neighbourly += 1
                await asyncio.sleep(1)
    except Exception as error:  # whatever it is, the neighbour met it
        findings.faults.append(f"neighbour: {type(error).__name__}: {error}"[:900])
        warm.set()


async def honest(url: str, number: int, findings: Findings) -> None:
    """One visitor with values that a browser can send."""
    random = Random(number)
    done: list[str] = []
    try:
        visit = WebSession(url, random.choice(PAGES), patience=PATIENCE)
        visit.query_string = urlencode(_query(random))
        async with visit as session:
            _look(session, number, done, findings)
            for _ in range(STAY):
                kind, what, act = random.choice(list(_ways(session, random, findings)))
                done.append(what)
                findings.interactions += 1
                findings.kinds[kind] += 1
                findings.pages[session.page or "explore"] += 1
                await act()
                _look(session, number, done, findings)
    except Exception as error:  # whatever it is, a visitor met it
        findings.faults.append(f"visitor {number}: {type(error).__name__}: {error} after {' → '.join(done[-3:])}"[:900])


def _look(session: WebSession, number: int, done: list[str], findings: Findings, forgiving: bool = False) -> bool:
    """Note the error boxes on the page and take them away, lest they count again; whether there was one.

    ``forgiving``: those that Streamlit raised when it read a widget's value are counted apart, and so is what the
    app itself says of an error that nobody foresaw: the log says where that comes from.
    """
    boxes = [e.proto for e in session.elements if e.kind == "exception"]
    unforeseen = any(UNFORESEEN in text for text in session.texts)
    if unforeseen and forgiving:
        findings.refused[UNFORESEEN] += 1
    elif unforeseen:
        findings.boxes.setdefault(UNFORESEEN, []).append(f"visitor {number}: {' → '.join(done[-4:])}"[:900])
    for box in boxes:
        places = re.findall(r"((?:mha_viz|pages)/[\w/]+\.py)\D+(\d+)(.*\n?.*)", "\n".join(box.stack_trace))
        file, line, code = places[-1] if places else ("", "", "")
        name = f"{box.type}: {box.message[:160]} [{file or 'no line of ours'}:{line}]"
        if forgiving and not box.is_streamlit_exception and (not file or re.search(_WIDGET, code)):
            findings.refused[name] += 1
        else:
            page = session.page or "explore"
            findings.boxes.setdefault(name, []).append(f"visitor {number}, {page}: {' → '.join(done[-4:])}"[:900])
    if boxes or unforeseen:
        session.forget()
    return bool(boxes or unforeseen)


# ---- What a browser can send ----------------------------------------------------------------------------

Way = tuple[str, str, Callable[[], Any]]  # its kind, what it is in words, and the way to do it


def _ways(session: WebSession, random: Random, findings: Findings) -> Iterator[Way]:
    """What this visitor could do next: each widget once, each component three times, pages and addresses."""
    for key, element in session.widgets.items():
        way = _widget(session, key, element, random, findings)
        if way is not None:
            yield way
    for name in session.components:
        for _ in range(3):
            event, value = _event(session, name, random)
            yield (
                "component",
                f"{name}.{event}({json.dumps(value)[:200]})",
                partial(session.trigger, name, event, value),
            )
    for _ in range(3):
        if session.pages:
            page, more = random.choice(list(session.pages)), _query(random) if random.random() < 0.3 else {}
            yield "page", f"page {page} {more}"[:200], partial(session.go, page, **more)
    query = urlencode(_query(random))
    yield "address", f"address {query[:200]}", partial(session.visit, query)


def _widget(session: WebSession, key: str, element: Element, random: Random, findings: Findings) -> Way | None:
    proto, kind = element.proto, element.kind
    if getattr(proto, "disabled", False):
        return None
    if kind == "button":
        if findings.pressed[key] >= DEAR.get(key, sys.maxsize):
            return None
        findings.pressed[key] += 1 if key in DEAR and random.random() < 0.5 else 0
        return "button", f"press {key}", partial(session.press, key)
    if kind == "download_button":
        return "download", f"download {key}", partial(_download, session, key, findings)
    if kind == "file_uploader":
        name, content = random.choice(_UPLOADS)
        return "upload", f"upload {name}", partial(session.upload, key, name, content)
    if kind not in FIELDS or (kind in ("dataframe", "plotly_chart") and not proto.selection_mode):
        return None
    value = _value(kind, proto, random)
    return kind, f"{key} = {value!r:.200}", partial(session.set, key, value)


async def _download(session: WebSession, key: str, findings: Findings) -> None:
    """Take a file. That it is gone again before it was fetched is counted apart: it depends on the others' pace."""
    try:
        await session.download(key)
    except HTTPError as error:
        if error.code != 404:
            raise
        findings.gone += 1


def _value(kind: str, proto: Any, random: Random) -> Any:
    if kind in ("text_input", "text_area"):
        return _text(random)[: proto.max_chars or None]
    if kind in ("selectbox", "radio"):
        return random.choice(list(proto.options))
    if kind == "button_group":
        several = proto.click_mode == proto.MULTI_SELECT
        return random.sample(
            [o.content for o in proto.options], random.randint(0, len(proto.options) if several else 1)
        )
    if kind == "multiselect":
        return random.sample(list(proto.options), random.randint(0, len(proto.options)))
    if kind == "slider" and proto.options:
        return [random.choice(list(proto.options)) for _ in proto.raw_value or [0]]
    if kind == "slider":
        return [float(random.randint(int(proto.min), int(proto.max)))] * len(proto.default)
    if kind == "number_input":
        low, high = (proto.min if proto.has_min else -1e9), (proto.max if proto.has_max else 1e9)
        near = random.choice(
            (low, high, 0.0, 1.0, float(random.randint(-3, 700)), random.uniform(low, high), proto.default)
        )
        value = min(high, max(low, near))
        return float(int(value)) if proto.data_type == proto.INT else value
    if kind in ("plotly_chart", "dataframe"):
        points = [{"customdata": random.choice(_HEADS), "point_index": 1, "curve_number": 0, "x": 1, "y": 2}]
        points = points[: random.randint(0, 1)] if kind == "plotly_chart" else []
        return json.dumps({"selection": {"points": points, "point_indices": [1], "box": [], "lasso": []}})
    if kind == "tab_container":
        return "one"
    return random.random() < 0.5


def _event(session: WebSession, component: str, random: Random) -> tuple[str, Any]:
    """An event of a component, with a value that its own script could send, or with any JSON."""
    events: dict[str, tuple[tuple[str, Callable[[], Any]], ...]] = {
        "mha_sentence": (
            ("read", lambda: {"text": _text(random), "pair": random.choice(("", "", _text(random)))}),
            ("read", lambda: {"text": sentence(random), "pair": ""}),
            ("example", lambda: random.randint(-1, 9)),
            ("model", lambda: random.choice(("minilm", "toy", "toy@400", "bert-base-uncased", _text(random)))),
        ),
        "mha_explorer": (
            ("view", lambda: {"of": _of(session), **_query(random)}),
            ("tray", lambda: {"model": random.choice(("minilm", "toy", "x")), "head": random.choice(_HEADS)}),
        ),
        "mha_compare": (("view", lambda: _query(random)), ("edit", lambda: _edit(random))),
        "mha_block": (
            ("step", lambda: _word(random, _VALUES)),
            ("head", lambda: random.choice((0, 3, 11, 99, -1, 2.5))),
        ),
        "mha_scheme": (("turned", lambda: random.choice(("dark", "light"))),),
    }
    event, value = random.choice(events[component])
    return event, _json(random) if random.random() < 0.25 else value()


def _of(session: WebSession) -> str:
    """The text that the drawing shows, as it says itself."""
    reading = re.search(rb'"of":\s*"([^"]*)"', session.components["mha_explorer"].bytes[:20_000])
    return reading[1].decode() if reading else "nothing"


def _edit(random: Random) -> dict[str, Any]:
    return {
        "action": random.choice(("rename", "duplicate", "remove", "move", "open", "pin", "burn")),
        "index": random.choice((0, 1, 2, 7, 8, -1, 10**9, None, True)),
        "to": random.choice((0, 1, 9, -5, None)),
        "name": _text(random),
        "head": random.choice(_HEADS),
        "model": random.choice(("minilm", "toy", "nobody/nothing")),
        "text": sentence(random) if random.random() < 0.7 else _text(random),
        "pair": random.choice(("", "", "And a second one.")),
        "view": _query(random),
    }


def _text(random: Random) -> str:
    """Something that a person, or somebody else, types or pastes."""
    return random.choice((sentence(random), random.choice(_HEADS), _word(random, _VALUES), random.choice(_TEXTS)))


def _word(random: Random, words: str) -> str:
    return random.choice(words.split())


def _query(random: Random) -> dict[str, str]:
    """Some parameters of an address, sensible or not."""
    names = random.sample(_PARAMETERS.split(), random.choice((0, 1, 1, 2, 3, 5)))
    return {name: _text(random) if random.random() < 0.4 else _word(random, _VALUES) for name in names}


def _json(random: Random, depth: int = 3) -> Any:
    """Any JSON."""
    plain: tuple[Any, ...] = (None, True, False, 0, -1, 3.5, 10**30, 1e308, "", _text(random))
    shape = random.random()
    if depth == 0 or shape < 0.5:
        return random.choice(plain)
    if shape < 0.75:
        return [_json(random, depth - 1) for _ in range(random.randint(0, 4))]
    names = ("text", "pair", "of", "head", "model", "action", "index", "view", "__proto__", "")
    return {random.choice(names): _json(random, depth - 1) for _ in range(random.randint(0, 4))}


# ---- Anything at all ------------------------------------------------------------------------------------


async def forged(url: str, number: int, findings: Findings) -> None:
    """One visitor whose messages no browser sends. Afterwards, and beside it, the others' sessions must answer."""
    random = Random(number)
    done: list[str] = []
    with suppress(Gone):
        try:
            async with WebSession(url, random.choice(PAGES), patience=PATIENCE) as session:
                for _ in range(STAY):
                    findings.interactions += 1
                    findings.pages[session.page or "explore"] += 1
                    await _forge(session, random, done, findings)
                    if _look(session, number, done, findings, forgiving=True):
                        break  # what this session was sent stays in it and would be met again
        except Gone:
            if not done or not done[-1].startswith("bytes"):
                findings.faults.append(f"visitor {number}: closed after {' → '.join(done[-3:])}"[:900])
            findings.closed += 1
        except Exception as error:  # whatever it is, a visitor met it
            findings.faults.append(
                f"visitor {number}: {type(error).__name__}: {error} after {' → '.join(done[-3:])}"[:900]
            )


async def _forge(session: WebSession, random: Random, done: list[str], findings: Findings) -> None:
    """One forged message. What Streamlit does not answer is followed by an honest run, which must be."""
    kind = random.choice(
        ("state", "state", "state", "trigger", "trigger", "page", "address", "message", "upload", "bytes")
    )
    findings.kinds[kind] += 1
    if kind == "state":
        states = [_odd_state(session, random) for _ in range(random.randint(1, 4))]
        done.append(f"states {' '.join(str(s)[:120].strip() for s in states)}")
        await session.act(*states)
    elif kind == "trigger":
        names = [e.id for e in session.elements if e.kind == "bidi_component"] or ["nobody"]
        name = _make_trigger_id(random.choice(names), "events")
        text = random.choice(("{", "[[[", '[{"event":', "nul\0", '"\\ud800"', "[" * 5_000, json.dumps(_json(random))))
        done.append(f"trigger {text[:80]}")
        await session.act(WidgetState(id=name, json_trigger_value=text))
    elif kind == "page":
        page = random.choice(("0" * 32, "../../etc/passwd", "\0", "x" * 10_000, f"{random.getrandbits(128):032x}"))
        done.append(f"page hash {page[:40]}")
        await session.act(page_hash=page)
    elif kind == "address":
        done.append(query := _long_address(random))
        await session.act(query=query)
    elif kind == "upload":
        done.append("upload without a session")
        with suppress(URLError, OSError):
            await session.http(
                f"_stcore/upload_file/{random.getrandbits(64):x}/{random.choice(('..', 'a', '%2e'))}", "PUT", b"x"
            )
    elif kind == "bytes" and random.random() < 0.3:
        done.append("bytes")
        await session.send(random.randbytes(random.choice((0, 1, 20, 5_000))))
        await session.act()
    else:
        done.append(f"message {_odd_message(session, random, message := BackMsg())}")
        await session.send(message)
        await session.act()
    done[-1] = done[-1][:300]


def _odd_state(session: WebSession, random: Random) -> WidgetState:
    """The state of one widget, there or not, in any type."""
    names = [e.id for e in session.elements if e.id] + ["", "nobody", f"$$ID-{random.getrandbits(64):x}-x", "x" * 9_000]
    made = WidgetState(id=random.choice(names))
    kind = random.choice([f.name for f in WidgetState.DESCRIPTOR.fields if f.name != "id"])
    text = random.choice((_text(random).replace("\0", ""), "[" * 3_000, "{}", "null", json.dumps(_json(random))))
    if kind in ("trigger_value", "bool_value"):
        setattr(made, kind, random.random() < 0.8)
    elif kind == "double_value":
        made.double_value = random.choice((float("nan"), float("inf"), -1e308, 0.0))
    elif kind == "int_value":
        made.int_value = random.choice((-(2**63), 2**63 - 1, 0))
    elif kind in ("string_value", "json_value", "json_trigger_value"):
        setattr(made, kind, text)
    elif kind == "bytes_value":
        made.bytes_value = random.randbytes(100)
    elif kind == "string_array_value":
        made.string_array_value.data.extend([text] * random.randint(0, 3))
    elif kind in ("double_array_value", "int_array_value"):
        getattr(made, kind).data.extend([random.choice((-1, 0, 10**6))] * random.randint(0, 3))
    elif kind == "file_uploader_state_value":
        made.file_uploader_state_value.uploaded_file_info.add(name=text[:50], size=2**40, file_id="nobody")
    else:
        getattr(made, kind).SetInParent()
    return made


def _odd_message(session: WebSession, random: Random, message: BackMsg) -> str:
    """Fill in a message that is no run of the script; what it is."""
    kind = random.choice(("fragment", "empty", "stop", "git", "clear", "save", "beat", "file", "urls", "shutdown"))
    if kind == "fragment":
        message.CopyFrom(session.rerun(fragment=f"{random.getrandbits(64):x}"))
    elif kind == "file":
        message.backend_operation_request.request_id = "x"
        message.backend_operation_request.deferred_file.file_id = _text(random)
    elif kind == "urls":
        message.file_urls_request.request_id = "x"
        message.file_urls_request.file_names.extend([_text(random)] * 200)
        message.file_urls_request.session_id = random.choice((session.id, "nobody"))
    elif kind != "empty":
        names = {"stop": "stop_script", "git": "load_git_info", "clear": "clear_cache", "save": "set_run_on_save"}
        setattr(message, names.get(kind, "app_heartbeat" if kind == "beat" else "debug_shutdown_runtime"), True)
    return kind


def _long_address(random: Random) -> str:
    name = _word(random, _PARAMETERS)
    one = random.choice(
        ("a", "%00", "%F0%9F%98%80", "1\t", "(", "[", "%ED%A0%80", "&", "=", ";", "L3H1.", "Entity=(a", "\n")
    )
    return f"{name}={(one * LONGEST)[: random.choice((10, 1_000, LONGEST))]}"


if __name__ == "__main__":
    with watched(STREAMLIT_CLIENT_SHOW_ERROR_DETAILS=DETAILS) as again:
        one = Findings()
        asyncio.run({"honest": honest, "forged": forged}[sys.argv[1]](again.url, int(sys.argv[2]), one))
        print(json.dumps([one.boxes, one.faults, tracebacks(again.log())], indent=1))
