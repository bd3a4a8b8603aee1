"""What a browser is asked to take from its own memory is what it still has."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from mha_viz.serving import messages

pytestmark = pytest.mark.app

ENDED = ForwardMsg(script_finished=ForwardMsg.FINISHED_SUCCESSFULLY)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The messages that each run relies on."""
    runs: list[list[str]] = []
    monkeypatch.setattr(messages, "_enqueue", lambda session, msg: None)
    monkeypatch.setattr(
        messages, "_request_rerun", lambda session, state: runs.append([*state.cached_message_hashes] if state else [])
    )
    return runs


def large(name: str) -> ForwardMsg:
    msg = ForwardMsg(hash=name)
    msg.metadata.cacheable = True
    return msg


def test_a_run_relies_on_what_the_last_few_runs_have_sent_or_relied_on(asked: list[list[str]]) -> None:
    session: Any = SimpleNamespace()

    def run(*sent: ForwardMsg) -> list[str]:
        messages._rerun_with_the_latest(session, ClientState(cached_message_hashes=["a", "b", "unknown"]))
        for msg in (*sent, ENDED):
            messages._enqueue_and_note(session, msg)
        return asked[-1]

    assert run(large("a"), large("b"), ForwardMsg(hash="small")) == []
    for _ in range(messages.LATEST - 1):
        assert run() == ["a", "b"]
    assert run(ForwardMsg(ref_hash="b")) == ["a", "b"]
    assert run() == ["b"]
    messages._rerun_with_the_latest(session, None)
    assert asked[-1] == []


def test_browsers_keep_messages_for_longer() -> None:
    """Runs may end while a browser's request is on its way."""
    settings = tomllib.loads((Path(__file__).resolve().parent.parent / ".streamlit" / "config.toml").read_text("utf-8"))
    assert settings["global"]["maxCachedMessageAge"] >= 2 * messages.LATEST
