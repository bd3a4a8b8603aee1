"""What a browser is asked to take from its own memory, in place of being sent it again.

A browser keeps large messages for as many runs as the setting says, and names them when it asks for a run. Until the
answer comes, runs that it has not heard of may end: a message that it was about to forget is then gone, and Streamlit's
page stops for good ("Cached ForwardMsg MISS"). So a run relies only on what its session was sent in the last few runs,
and browsers keep that for as many runs more (``maxCachedMessageAge`` in .streamlit/config.toml).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

LATEST = 5  # runs that have ended since a message was sent, at most, for it to be relied on
_SENT = "mha_viz_sent"  # of a session: runs that have ended, and how many had when each message was sent


def note_enqueued(usual: Callable[[Any, ForwardMsg], None]) -> Callable[[Any, ForwardMsg], None]:
    """Note in every session which messages its browser has been sent."""

    @wraps(usual)
    def enqueue(self: Any, msg: ForwardMsg) -> None:
        ended, sent = _count_sent(self)
        kind = msg.WhichOneof("type")
        if kind == "script_finished":
            recent = {name: run for name, run in list(sent.items()) if ended + 1 - run <= LATEST}
            vars(self)[_SENT] = ended + 1, recent
        elif kind == "ref_hash" or msg.metadata.cacheable:
            sent[msg.ref_hash or msg.hash] = ended
        usual(self, msg)

    return enqueue


def rely_on_the_latest(usual: Callable[[Any, ClientState | None], None]) -> Callable[[Any, ClientState | None], None]:
    """Let runs rely on no message that a browser may have forgotten."""

    @wraps(usual)
    def request_rerun(self: Any, client_state: ClientState | None) -> None:
        if client_state is not None:
            _, sent = _count_sent(self)
            recent = [name for name in client_state.cached_message_hashes if name in sent]
            client_state.ClearField("cached_message_hashes")
            client_state.cached_message_hashes.extend(recent)
        usual(self, client_state)

    return request_rerun


def _count_sent(session: Any) -> tuple[int, dict[str, int]]:
    there: tuple[int, dict[str, int]] = vars(session).setdefault(_SENT, (0, {}))
    return there
