"""Limit which messages the server replaces with a reference to the browser's message cache.

A browser keeps large messages for as many runs as the setting says, and names them when it asks for a run. Before the
answer arrives, further runs may end. The browser then drops messages that the answer relies on, and Streamlit's page
stops for good ("Cached ForwardMsg MISS"). Therefore a run relies only on messages that its session was sent in the
last few runs, and browsers keep messages for more runs than that (``maxCachedMessageAge`` in .streamlit/config.toml).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

MAX_RUNS = 5  # the server refers to a message for at most this many runs after it was sent
_SENT_KEY = "mha_viz_sent"  # session attribute: (ended runs, {message hash: ended runs when it was sent})


def record_sent_messages(send: Callable[[Any, ForwardMsg], None]) -> Callable[[Any, ForwardMsg], None]:
    """Record in every session which messages its browser was sent."""

    @wraps(send)
    def enqueue(self: Any, msg: ForwardMsg) -> None:
        ended_runs, sent_messages = _get_sent_messages(self)
        kind = msg.WhichOneof("type")
        if kind == "script_finished":
            messages = {name: run for name, run in list(sent_messages.items()) if ended_runs + 1 - run <= MAX_RUNS}
            vars(self)[_SENT_KEY] = ended_runs + 1, messages
        elif kind == "ref_hash" or msg.metadata.cacheable:
            sent_messages[msg.ref_hash or msg.hash] = ended_runs
        send(self, msg)

    return enqueue


def patch_message_cache(
    rerun: Callable[[Any, ClientState | None], None],
) -> Callable[[Any, ClientState | None], None]:
    """Remove from a request for a run all messages that the browser may drop before the answer arrives."""

    @wraps(rerun)
    def request_rerun(self: Any, client_state: ClientState | None) -> None:
        if client_state is not None:
            _, sent_messages = _get_sent_messages(self)
            known_hashes = [name for name in client_state.cached_message_hashes if name in sent_messages]
            client_state.ClearField("cached_message_hashes")
            client_state.cached_message_hashes.extend(known_hashes)
        rerun(self, client_state)

    return request_rerun


def _get_sent_messages(session: Any) -> tuple[int, dict[str, int]]:
    sent_messages: tuple[int, dict[str, int]] = vars(session).setdefault(_SENT_KEY, (0, {}))
    return sent_messages
