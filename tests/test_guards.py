"""Unexpected errors in a callback, a page or a message: navigation and words stay, one sentence is shown, and the
server's log has the traceback."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.scriptrunner import script_runner

from mha_viz.app.explore import page as explore
from mha_viz.app.roles import page as roles
from mha_viz.app.widgets import frame, parts
from mha_viz.app.widgets.parts import UNEXPECTED, parse_browser_number, report_errors
from tests.page_session import PageSession

UI = Path(parts.__file__).parents[1]


@pytest.fixture
def visit() -> PageSession:
    return PageSession()


def fails(*_: Any, **__: Any) -> None:
    raise ValueError("nobody foresaw this")


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [str(record.exc_info[1]) for record in caplog.records if record.exc_info]


def test_a_callback_that_fails_leaves_everything_in_place(
    visit: PageSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mha_viz.app.url.address.go", fails)
    with pytest.raises(AssertionError, match=UNEXPECTED):
        visit.read("Cats sleep.")
    assert not visit.at.exception
    assert visit.picture is not None
    assert UNEXPECTED in visit.said
    assert logged(caplog) == ["nobody foresaw this"]
    monkeypatch.undo()
    visit.read("Cats sleep.")
    assert visit.typed["text"] == "Cats sleep."


def test_a_page_that_fails_keeps_the_navigation(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(roles, "_show_choices", fails)
    with pytest.raises(AssertionError, match=UNEXPECTED):
        PageSession(page="pages/55_roles.py")
    assert logged(caplog) == ["nobody foresaw this"]


def test_what_the_page_has_no_place_for_is_said_below_it(visit: PageSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore, "show_pending_error", lambda: None)
    monkeypatch.setattr("mha_viz.app.url.address.go", fails)
    with pytest.raises(AssertionError, match=UNEXPECTED):
        visit.read("Cats sleep.")


def test_streamlits_own_signals_pass() -> None:
    for signal in (script_runner.StopException, script_runner.RerunException):
        with pytest.raises(signal), report_errors():
            raise signal(None) if signal is script_runner.RerunException else signal()  # type: ignore[call-arg]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts run as under ``streamlit.App(on_script_error=frame.on_script_error)``."""
    begin = script_runner.ScriptRunner.__init__

    def started(self: Any, *args: Any, **options: Any) -> None:
        begin(self, *args, **{**options, "on_script_error": frame.on_script_error})

    monkeypatch.setattr(script_runner.ScriptRunner, "__init__", started)


# A client other than the page may send anything: (kind of element, field, value) that Streamlit itself cannot read.
UNREADABLE = {
    "a component's message that is no JSON": ("bidi_component", "json_value", "{"),
    "a selection that is no JSON": ("plotly_chart", "string_value", "{"),
    "a selection that is a number": ("plotly_chart", "string_value", "7"),
    "text for a choice of several": ("button_group", "string_value", "syntax"),
    "an infinite number": ("number_input", "double_value", float("inf")),
    "a number for a choice of several": ("button_group", "int_value", 3),
}


@pytest.mark.usefixtures("served")
def test_a_message_that_streamlit_cannot_read_leaves_the_page() -> None:
    roles_page = PageSession(page="pages/55_roles.py")
    pages = {
        "number_input": PageSession({"numbers": "1"}, "pages/50_why_heads_differ.py"),
        "plotly_chart": PageSession({"show": "word", "path": "query"}, "pages/20_compare.py").unfold("patched"),
    }
    for case, (kind, field, value) in UNREADABLE.items():
        page = pages.get(kind, roles_page)
        every = [element.proto for element in page.at.get(kind)]
        name = next((proto.id for proto in every if getattr(proto, "selection_mode", ())), every[0].id)
        page.at._run(WidgetStates(widgets=[WidgetState(id=name, **{field: value})]))
        assert not page.at.exception, case
        assert UNEXPECTED in page.said, case
        assert len(page.at.get("page_link")) >= 6, "the navigation"
        page.at.run()
        page.check()


def test_every_callback_is_guarded() -> None:
    callbacks, open_ones = 0, []
    for path in sorted(UI.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("_on_"):
                callbacks += 1
                guards = [d for d in node.decorator_list if isinstance(d, ast.Call)]
                if not any(getattr(guard.func, "id", "") == "report_errors" for guard in guards):
                    open_ones.append(f"{path.name}: {node.name}")
    assert callbacks > 20
    assert open_ones == []


def test_numbers_of_a_browser() -> None:
    numbers: tuple[tuple[object, int | None], ...] = (
        *((3, 3), (3.0, 3), (0.5, None), (True, None), ("3", None), (None, None)),
        *((float("nan"), None), (float("inf"), None), ([3], None)),
    )
    for value, number in numbers:
        assert parse_browser_number(value) == number, value
