"""What a browser is asked to take from its own memory, in place of being sent it again.

A browser keeps large messages for as many runs as the setting says, and names them when it asks for a run. Until the
answer comes, runs that it has not heard of may end: a message that it was about to forget is then gone, and Streamlit's
page stops for good ("Cached ForwardMsg MISS"). So a run relies only on what its session was sent in the last few runs,
and browsers keep that for as many runs more (``maxCachedMessageAge`` in .streamlit/config.toml).
"""

from __future__ import annotations

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession

LATEST = 5  # runs that have ended since a message was sent, at most, for it to be relied on
_SENT = "mha_viz_sent"  # of a session: runs that have ended, and how many had when each message was sent
_enqueue, _request_rerun = AppSession._enqueue_forward_msg, AppSession.request_rerun


def rely_on_the_latest() -> None:
    """Let runs rely on no message that a browser may have forgotten."""
    AppSession._enqueue_forward_msg = _enqueue_and_note  # type: ignore[method-assign]
    AppSession.request_rerun = _rerun_with_the_latest  # type: ignore[method-assign]


def _enqueue_and_note(self: AppSession, msg: ForwardMsg) -> None:
    ended, sent = _sent(self)
    kind = msg.WhichOneof("type")
    if kind == "script_finished":
        recent = {name: run for name, run in list(sent.items()) if ended + 1 - run <= LATEST}
        vars(self)[_SENT] = ended + 1, recent
    elif kind == "ref_hash" or msg.metadata.cacheable:
        sent[msg.ref_hash or msg.hash] = ended
    _enqueue(self, msg)


def _rerun_with_the_latest(self: AppSession, client_state: ClientState | None) -> None:
    if client_state is not None:
        _, sent = _sent(self)
        recent = [name for name in client_state.cached_message_hashes if name in sent]
        client_state.ClearField("cached_message_hashes")
        client_state.cached_message_hashes.extend(recent)
    _request_rerun(self, client_state)


def _sent(session: AppSession) -> tuple[int, dict[str, int]]:
    there: tuple[int, dict[str, int]] = vars(session).setdefault(_SENT, (0, {}))
    return there
