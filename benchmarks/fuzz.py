"""Interact at random in real sessions, first as a browser can, then with arbitrary messages. Nothing may break.

``honest``: every value has the type that the widget sends and options are the widget's own, but texts, numbers and the
events of components are arbitrary. ``forged``: wrong types, garbage in place of messages, unknown pages, broken JSON,
addresses of up to 64 kB. Here an error box is allowed if Streamlit itself could not read a value.

A visitor's number is the seed of all its actions: ``python -m benchmarks.fuzz honest 17`` repeats only those actions.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
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

from benchmarks.fuzz_findings import Findings, count_tracebacks, record_boxes
from benchmarks.fuzz_values import (
    draw_event,
    draw_json,
    draw_long_address,
    draw_odd_state,
    draw_query,
    draw_value,
    fill_odd_message,
)
from benchmarks.monitoring import LONG_WAIT, serve_monitored
from benchmarks.results import Row, Sample, Target, write
from benchmarks.visitors import Visitor
from mha_viz.app.serving.back_messages import read_allowed
from tests.web_session import FIELDS, Element, Gone, WebSession

CONCURRENT_VISITORS = 6
ACTIONS_PER_VISIT = 40
HONEST_COUNT, FORGED_COUNT = 10_000, 2_000
ACTION_TIMEOUT = 300.0  # seconds for one run; longer counts as a fault
PAGES = ("", "compare", "roles", "inside_a_head", "why_heads_differ", "about")
MAX_PRESSES = {"lab_run": 3, "measure": 2, "measure_file": 4}  # maximum presses of slow buttons in one benchmark
DETAILS = "full"  # the value that STREAMLIT_CLIENT_SHOW_ERROR_DETAILS must have so that an error box states its origin
_UPLOADS = (
    ("plain.txt", b"The cat sat on the mat.\nThe dog ran away.\n"),
    ("small.conllu", b"1\ta\t_\tX\t_\t_\t0\troot\t_\tEntity=(1-person)\n\n"),
    ("broken.conllu", b"1\ta\t_\tX\n\n\t\t\t\n"),
    ("cycle.conllu", b"1\ta\t_\tX\t_\t_\t2\tdep\t_\t_\n2\tb\t_\tX\t_\t_\t1\tdep\t_\t_\n\n"),
    ("gap.tsv", b"ID\tText\tPronoun\n1\tShe left.\tShe\n"),
    ("binary.txt", bytes(range(256)) * 8),
    ("empty.txt", b""),
)


def main(results: Path, quick: bool = False) -> None:
    """Run, print, write ``results/fuzz.json``. ``quick``: a twentieth of the interactions."""
    rows = []
    for name, visit, count in (
        ("honest", visit_honestly, HONEST_COUNT),
        ("forged", visit_with_forgeries, FORGED_COUNT),
    ):
        with serve_monitored(STREAMLIT_CLIENT_SHOW_ERROR_DETAILS=DETAILS, MHA_VIZ_WAIT=LONG_WAIT) as server:
            findings = asyncio.run(run_crowd(server.url, visit, count // 20 if quick else count))
            tracebacks = count_tracebacks(server.log(), is_forgiving=name == "forged")
        rows += _make_rows(name, findings, tracebacks)
    write(results, "fuzz", "Random interactions", "", rows, f"Streamlit {streamlit.__version__}")


def _make_rows(name: str, findings: Findings, tracebacks: Counter[str]) -> list[Row]:
    boxes = sum(len(visitors) for visitors in findings.boxes.values())
    details = {"by_page": findings.pages, "by_kind": findings.kinds, "boxes": findings.boxes, "log": tracebacks}
    no_errors = Target("below", 1)
    numbers: list[tuple[str, int, Target | None, dict[str, Any]]] = [
        ("interactions", findings.interactions, None, details),
        ("error boxes", boxes, no_errors, {}),
        ("tracebacks in the log", tracebacks.total(), no_errors, {}),
        ("files gone before they were fetched", findings.missing_files, no_errors, {}),
        ("lost or unanswered", len(findings.faults), no_errors, {"faults": findings.faults}),
    ]
    if name == "forged":
        numbers.append(
            ("error boxes of Streamlit's deserialisers", findings.rejections.total(), None, {**findings.rejections})
        )
        numbers.append(("connections closed after garbage", findings.closed_connections, None, {}))
    return [Row(f"{name}: {label}", Sample((float(n),)), "", None, target, more) for label, n, target, more in numbers]


# ---- Visitors -------------------------------------------------------------------------------------------

Visit = Callable[[str, int, Findings], Any]


async def run_crowd(url: str, visit: Visit, count: int) -> Findings:
    """Run ``count`` interactions with CONCURRENT_VISITORS at a time, at most ACTIONS_PER_VISIT for each.

    One normal visitor uses the app at the same time.
    """
    findings = Findings()
    numbers = itertools.count()
    is_warm = asyncio.Event()
    neighbour = asyncio.create_task(_visit_as_neighbour(url, findings, is_warm))
    await is_warm.wait()  # the first sentence loads torch, which on a busy machine takes as long as the timeout

    async def visit_repeatedly() -> None:
        while findings.interactions + len(findings.faults) < count:  # count faults: a visitor may fail before acting
            await visit(url, next(numbers), findings)

    await asyncio.gather(*(visit_repeatedly() for _ in range(CONCURRENT_VISITORS)))
    neighbour.cancel()
    await asyncio.gather(neighbour, return_exceptions=True)
    return findings


async def _visit_as_neighbour(url: str, findings: Findings, is_warm: asyncio.Event) -> None:
    """Simulate a normal visitor, in one session for as long as the others act."""
    try:
        async with WebSession(url, patience=ACTION_TIMEOUT) as session:
            visitor = Visitor(session, Random(0))
            await visitor.perform("read a sentence")
            is_warm.set()
            while True:
                await visitor.act()
                findings.neighbour_actions += 1
                await asyncio.sleep(1)
    except Exception as error:  # any error counts: the normal visitor saw it
        findings.faults.append(f"neighbour: {type(error).__name__}: {error}"[:900])
        is_warm.set()


async def visit_honestly(url: str, number: int, findings: Findings) -> None:
    """Visit as one visitor who sends only values that a browser can send."""
    random = Random(number)
    history: list[str] = []
    try:
        visit = WebSession(url, random.choice(PAGES), patience=ACTION_TIMEOUT)
        visit.query_string = urlencode(draw_query(random))
        async with visit as session:
            record_boxes(session, number, history, findings)
            for _ in range(ACTIONS_PER_VISIT):
                kind, description, act = random.choice(_list_actions(session, random, findings))
                history.append(description)
                findings.interactions += 1
                findings.kinds[kind] += 1
                findings.pages[session.page or "explore"] += 1
                await act()
                record_boxes(session, number, history, findings)
    except Exception as error:  # any error counts: a visitor saw it
        problem = f"{type(error).__name__}: {error}"
        findings.faults.append(f"visitor {number}: {problem} after {' → '.join(history[-3:])}"[:900])


# ---- Actions of a browser -------------------------------------------------------------------------------

Action = tuple[str, str, Callable[[], Any]]  # its kind, its description, and the function that performs it


def _list_actions(session: WebSession, random: Random, findings: Findings) -> list[Action]:
    """Return the possible next actions of this visitor.

    Each widget is listed once and each component three times; one action changes the address. Every sixth action leads
    to another page, so that visitors do not stay on pages with many widgets.
    """
    actions = [*_list_widget_actions(session, random, findings), *_list_event_actions(session, random)]
    pages = [_choose_page(session, random) for _ in range(max(3, len(actions) // 5))] if session.pages else []
    query = urlencode(draw_query(random))
    return [*actions, *pages, ("address", f"address {query[:200]}", partial(session.visit, query))]


def _list_widget_actions(session: WebSession, random: Random, findings: Findings) -> Iterator[Action]:
    for key, element in session.widgets.items():
        action = _choose_action(session, key, element, random, findings)
        if action is not None:
            yield action


def _list_event_actions(session: WebSession, random: Random) -> Iterator[Action]:
    for name in session.components:
        for _ in range(3):
            event, value = draw_event(session, name, random)
            description = f"{name}.{event}({json.dumps(value)[:200]})"
            yield "component", description, partial(session.trigger, name, event, value)


def _choose_page(session: WebSession, random: Random) -> Action:
    page, query = random.choice(list(session.pages)), draw_query(random) if random.random() < 0.3 else {}
    return "page", f"page {page} {query}"[:200], partial(session.go, page, **query)


def _choose_action(
    session: WebSession, key: str, element: Element, random: Random, findings: Findings
) -> Action | None:
    proto, kind = element.proto, element.kind
    if getattr(proto, "disabled", False):
        return None
    if kind == "button":
        if findings.press_counts[key] >= MAX_PRESSES.get(key, sys.maxsize):
            return None
        findings.press_counts[key] += 1 if key in MAX_PRESSES and random.random() < 0.5 else 0
        return "button", f"press {key}", partial(session.press, key)
    if kind == "download_button":
        return "download", f"download {key}", partial(_download, session, key, findings)
    if kind == "file_uploader":
        name, content = random.choice(_UPLOADS)
        return "upload", f"upload {name}", partial(session.upload, key, name, content)
    if kind not in FIELDS or (kind in ("dataframe", "plotly_chart") and not proto.selection_mode):
        return None
    value = draw_value(kind, proto, random)
    return kind, f"{key} = {value!r:.200}", partial(session.set, key, value)


async def _download(session: WebSession, key: str, findings: Findings) -> None:
    """Download a file.

    Files that are deleted before they are fetched are counted separately: that depends on the speed of other visitors.
    """
    try:
        await session.download(key)
    except HTTPError as error:
        if error.code != 404:
            raise
        findings.missing_files += 1


# ---- Arbitrary messages ---------------------------------------------------------------------------------


async def visit_with_forgeries(url: str, number: int, findings: Findings) -> None:
    """Visit as one visitor whose messages no browser sends.

    Meanwhile and afterwards, the sessions of others must answer.
    """
    random = Random(number)
    history: list[str] = []
    with suppress(Gone):
        try:
            async with WebSession(url, random.choice(PAGES), patience=ACTION_TIMEOUT) as session:
                for _ in range(ACTIONS_PER_VISIT):
                    findings.interactions += 1
                    findings.pages[session.page or "explore"] += 1
                    await _forge(session, random, history, findings)
                    if record_boxes(session, number, history, findings, is_forgiving=True):
                        break  # the message stays in this session and would cause the same error again
        except Gone:
            if not history or not history[-1].startswith("bytes"):
                findings.faults.append(f"visitor {number}: closed after {' → '.join(history[-3:])}"[:900])
            findings.closed_connections += 1
        except Exception as error:  # any error counts: a visitor saw it
            findings.faults.append(
                f"visitor {number}: {type(error).__name__}: {error} after {' → '.join(history[-3:])}"[:900]
            )


async def _forge(session: WebSession, random: Random, history: list[str], findings: Findings) -> None:
    """Send one forged message.

    If Streamlit does not answer it, an honest run follows, which must be answered.
    """
    kind = random.choice(
        ("state", "state", "state", "trigger", "trigger", "page", "address", "message", "upload", "bytes")
    )
    findings.kinds[kind] += 1
    if kind == "state":
        states = [draw_odd_state(session, random) for _ in range(random.randint(1, 4))]
        history.append(f"states {' '.join(str(s)[:120].strip() for s in states)}")
        await _send_message(session, session.rerun(*states), partial(session.act, *states))
    elif kind == "trigger":
        component_ids = [e.id for e in session.elements if e.kind == "bidi_component"] or ["nobody"]
        trigger_id = _make_trigger_id(random.choice(component_ids), "events")
        text = random.choice(
            ("{", "[[[", '[{"event":', "nul\0", '"\\ud800"', "[" * 5_000, json.dumps(draw_json(random)))
        )
        history.append(f"trigger {text[:80]}")
        trigger = WidgetState(id=trigger_id, json_trigger_value=text)
        await _send_message(session, session.rerun(trigger), partial(session.act, trigger))
    elif kind == "page":
        page = random.choice(("0" * 32, "../../etc/passwd", "\0", "x" * 10_000, f"{random.getrandbits(128):032x}"))
        history.append(f"page hash {page[:40]}")
        await _send_message(session, session.rerun(), partial(session.act, page_hash=page), page_script_hash=page)
    elif kind == "address":
        history.append(query := draw_long_address(random))
        await _send_message(session, session.rerun(), partial(session.act, query=query), query_string=query)
    elif kind == "upload":
        history.append("upload without a session")
        with suppress(URLError, OSError):
            await session.http(
                f"_stcore/upload_file/{random.getrandbits(64):x}/{random.choice(('..', 'a', '%2e'))}", "PUT", b"x"
            )
    elif kind == "bytes" and random.random() < 0.3:
        history.append("bytes")
        await session.send(random.randbytes(random.choice((0, 1, 20, 5_000))))
        await session.act()
    else:
        history.append(f"message {fill_odd_message(session, random, message := BackMsg())}")
        await session.send(message)
        await session.act()
    history[-1] = history[-1][:300]


async def _send_message(
    session: WebSession, message: BackMsg, act: Callable[[], Awaitable[float]], **fields: str
) -> None:
    """Send a message with these fields, by ``act`` if the server passes it on.

    If the server drops the message, send it and then act normally, which the server must answer.
    """
    for name, value in fields.items():
        setattr(message.rerun_script, name, value)
    if read_allowed(message.SerializeToString()):
        await act()
    else:
        await session.send(message)
        await session.act()


if __name__ == "__main__":
    with serve_monitored(STREAMLIT_CLIENT_SHOW_ERROR_DETAILS=DETAILS, MHA_VIZ_WAIT=LONG_WAIT) as server:
        findings = Findings()
        asyncio.run(
            {"honest": visit_honestly, "forged": visit_with_forgeries}[sys.argv[1]](
                server.url, int(sys.argv[2]), findings
            )
        )
        print(json.dumps([findings.boxes, findings.faults, count_tracebacks(server.log())], indent=1))
