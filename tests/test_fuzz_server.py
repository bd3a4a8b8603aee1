"""A small part of ``python -m benchmarks fuzz``: random interactions leave no error box and no dead session."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from benchmarks import fuzz, fuzz_values
from mha_viz.app.widgets import components
from tests.app_server import AppServer
from tests.web_session import run

PLAIN_LOG = {"STREAMLIT_CLIENT_SHOW_ERROR_DETAILS": fuzz.DETAILS, "STREAMLIT_LOGGER_ENABLE_RICH": "false"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """A server whose error boxes and log contain all details."""
    with AppServer(tmp_path_factory.mktemp("plain"), **PLAIN_LOG) as server:
        yield server


@pytest.mark.slow
def test_what_a_browser_can_send_breaks_nothing(plain: AppServer) -> None:
    before = len(plain.log())
    findings = run(fuzz.run_crowd(plain.url, fuzz.visit_honestly, 120))
    assert findings.interactions >= 120
    assert {*findings.pages} == {*fuzz.PAGES[1:], "explore"}
    assert (findings.boxes, findings.faults, fuzz.count_tracebacks(plain.log()[before:])) == ({}, [], {})
    assert findings.neighbour_actions


@pytest.mark.slow
def test_what_no_browser_sends_breaks_nothing_but_its_own_session(plain: AppServer) -> None:
    before = len(plain.log())
    findings = run(fuzz.run_crowd(plain.url, fuzz.visit_with_forgeries, 100))
    assert findings.interactions >= 100
    assert (findings.boxes, findings.faults, fuzz.count_tracebacks(plain.log()[before:], is_forgiving=True)) == (
        {},
        [],
        {},
    )
    assert findings.rejections, "Nothing forged was even noticed: the messages do not reach the widgets."
    assert findings.neighbour_actions


def test_every_event_of_every_component_is_sent() -> None:
    sent = {name: {event for event, _ in rows} for name, rows in fuzz_values.list_events(None, Random(0)).items()}  # type: ignore[arg-type]
    drawn: dict[str, set[str]] = {}
    for call in ast.walk(ast.parse(Path(components.__file__).read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Call):
            heard = [word.arg for word in call.keywords if word.arg and word.arg.startswith("on_")]
            name = f"mha_{ast.literal_eval(call.func.args[0])}"
            drawn[name] = {word.removeprefix("on_").removesuffix("_change") for word in heard}
    assert drawn.keys() == sent.keys()
    assert {name: sorted(heard - sent[name]) for name, heard in drawn.items() if heard - sent[name]} == {}


def test_an_error_of_this_program_is_noticed() -> None:
    """Line 3 of a page is no call of a widget; the line that draws a component is one."""
    drawn = next(n for n, line in enumerate(source(components).splitlines(), 1) if '_get_renderer("explorer")' in line)
    trace = "Traceback (most recent call first): ValueError at mha_viz/app/widgets/components.py:"
    log = f"x\n2026 said | {trace}3 in streamlit/a.py:1 < mha_viz/app/widgets/components.py:3\nafter\n"
    assert fuzz.count_tracebacks(log) == {"ValueError [mha_viz/app/widgets/components.py:3]": 1}
    assert fuzz.count_tracebacks(log, is_forgiving=True)
    assert fuzz.count_tracebacks(f"2026 | {trace}{drawn} in streamlit/a.py:1")
    assert not fuzz.count_tracebacks(f"2026 | {trace}{drawn} in streamlit/a.py:1", is_forgiving=True)
    assert fuzz.count_tracebacks("2026 | ValueError in streamlit/a.py:1")
    assert not fuzz.count_tracebacks("2026 | ValueError in streamlit/a.py:1", is_forgiving=True)
    assert not fuzz.count_tracebacks("Traceback is a word")


def source(module: ModuleType) -> str:
    return Path(str(module.__file__)).read_text("utf-8")
