"""A rerun that a timer asks for never replaces a run that a person asked for, and one that is replaced harms none."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.state.session_state import Value, WStates

from mha_viz.serving import timers, widgets


@pytest.mark.parametrize(("timed", "running", "begun"), [(1, 1, 0), (1, 0, 1), (0, 1, 1), (0, 0, 1)])
def test_a_timed_rerun_waits_for_what_has_not_been_sent(
    timed: bool, running: bool, begun: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``running``: a run has ended, which accepts no more requests, and its messages wait on the event loop."""
    monkeypatch.setattr(AppSession, "request_rerun", AppSession.request_rerun)
    timers.give_way()
    ended = SimpleNamespace(request_rerun=lambda _: False, request_stop=lambda: None)
    runs: list[object] = []
    session = SimpleNamespace(
        _state=None,
        _scriptrunner=ended if running else None,
        has_fragment=lambda _: True,
        _create_scriptrunner=runs.append,
    )
    state = ClientState(fragment_id="progress" if timed else "", is_auto_rerun=bool(timed))
    AppSession.request_rerun(session, state)  # type: ignore[arg-type]
    assert len(runs) == begun


def test_a_run_that_ends_may_add_a_control_while_the_next_looks_through_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WStates, "__iter__", WStates.__iter__)
    states = WStates({"one": Value(1), "two": Value(2)})

    def looked_through() -> list[str]:
        names = []
        for name in states:
            states[f"after {name}"] = Value(0)
            names.append(name)
        return names

    with pytest.raises(RuntimeError, match="changed size"):
        looked_through()
    widgets.survive_a_second_run()
    assert looked_through() == ["one", "two", "after one"]
