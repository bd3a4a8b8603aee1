"""How long visitors wait for an answer: who comes while the server is behind is told so, and its numbers are for its
owner."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError
from starlette.types import Message
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.stats import CounterStat, GaugeStat, Stat

RECENT = 30.0  # seconds
FEWEST = 20  # recent actions that say anything
SHORT = 300  # bytes: longer than every message that a run has ended
ACTIONS, REFUSALS, STARTS, WAIT = "mha_viz_actions", "mha_viz_refusals", "mha_viz_reader_starts", "mha_viz_wait_p95_ms"


class _Begun(NamedTuple):
    """An action without an answer: when it came, and from which address."""

    at: float
    address: str


class Waits:
    """The time from each action of a visitor to the end of its run; a provider of metrics."""

    def __init__(self, longest: float) -> None:
        self._longest = longest  # seconds: with a higher 95th percentile nobody new is let in
        self.actions = self.refusals = 0
        self._ended: deque[tuple[float, float]] = deque()  # when, and after how many seconds
        self._begun: dict[object, _Begun] = {}  # the first action of a tab that has no answer yet

    def note_received(self, tab: object, message: Message, address: str = "") -> None:
        """Note a message from a tab at an address."""
        received = BackMsg()
        if _is_read(received, message.get("bytes")) and received.WhichOneof("type") == "rerun_script":
            self.actions += 1
            self._begun.setdefault(tab, _Begun(time.monotonic(), address))

    def note_sent(self, tab: object, message: Message, blocked: float = 0.0) -> None:
        """Note a message to a tab, which could not be sent for ``blocked`` seconds because the tab read nothing: it was
        not the server that let its visitor wait."""
        if tab not in self._begun:
            return
        now, (begun, address) = time.monotonic(), self._begun.pop(tab)
        sent, data = ForwardMsg(), message.get("bytes") or b""
        is_end = len(data) < SHORT and _is_read(sent, data) and sent.WhichOneof("type") == "script_finished"
        if is_end and sent.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            self._ended.append((now, max(0.0, now - begun - blocked)))
        else:
            self._begun[tab] = _Begun(min(now, begun + blocked), address)

    def forget(self, tab: object) -> None:
        """Note that a tab was closed."""
        self._begun.pop(tab, None)

    @property
    def p95(self) -> float:
        """The 95th percentile, in seconds, of the waits of the last RECENT seconds and of those that have not ended; 0
        if they are fewer than FEWEST. Of the unfinished ones of one address only the longest counts: tabs that stay
        open and read nothing would keep everybody out."""
        now = time.monotonic()
        while self._ended and self._ended[0][0] < now - RECENT:
            self._ended.popleft()
        unfinished: dict[str, float] = {}
        for begun, address in self._begun.values():
            unfinished[address] = max(now - begun, unfinished.get(address, 0.0))
        waits = sorted([*(seconds for _, seconds in self._ended), *unfinished.values()])
        return waits[math.ceil(0.95 * len(waits)) - 1] if len(waits) >= FEWEST else 0.0

    def refusal(self) -> str:
        """Why nobody new is let in; "" if they are."""
        if self.p95 <= self._longest:
            return ""
        return f"This server is busy: its visitors wait more than {self._longest:g} seconds for an answer."

    @property
    def stats_families(self) -> Sequence[str]:
        """The names of the metrics."""
        return ACTIONS, REFUSALS, STARTS, WAIT

    def get_stats(self, family_names: Sequence[str] | None = None) -> Mapping[str, Sequence[Stat]]:
        """The metrics, all or the named ones."""
        reader = getattr(sys.modules.get("mha_viz.reader.client"), "Reader", None)  # loaded by the first visitor
        stats: tuple[Stat, ...] = (
            CounterStat(ACTIONS, self.actions, help="Actions of visitors."),
            CounterStat(
                REFUSALS,
                self.refusals,
                help="Visitors who were told to wait, by cookie or address; retries count once.",
            ),
            CounterStat(STARTS, getattr(reader, "starts", 0), help="Starts of the process that reads."),
            GaugeStat(WAIT, round(1000 * self.p95), help="95th percentile of recent waits, in milliseconds."),
        )
        return {stat.family_name: [stat] for stat in stats if family_names is None or stat.family_name in family_names}


def _is_read(into: BackMsg | ForwardMsg, sent: bytes | None) -> bool:
    try:
        return bool(sent) and into.ParseFromString(sent or b"") > 0
    except DecodeError:
        return False
