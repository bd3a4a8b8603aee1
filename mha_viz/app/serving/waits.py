"""Measure how long visitors wait for an answer.

New visitors are refused while the server is behind, and the numbers are published as metrics for the server's owner.
"""

from __future__ import annotations

import math
import sys
import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple
from urllib.parse import parse_qs

from google.protobuf.message import DecodeError
from starlette.types import Message
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.stats import CounterStat, GaugeStat, Stat

from mha_viz.app.serving.back_messages import AllowedMessage

RECENT_S = 30.0  # seconds for which a wait counts
MIN_WAITS = 20  # with fewer recent waits, the numbers mean nothing
MIN_SLOW_VISITORS = 3  # refuse new visitors only if this many wait too long; fewer may have caused it themselves
MAX_MODELS = 256  # maximum number of models to remember as loaded
SHORT_MESSAGE_BYTES = 300  # the message that a run has ended is always shorter
ACTIONS, REFUSALS, STARTS, WAIT = "mha_viz_actions", "mha_viz_refusals", "mha_viz_reader_starts", "mha_viz_wait_p95_ms"


class _Action(NamedTuple):
    """An action of a visitor that has not been answered yet.

    Attributes:
        start: when it arrived.
        visitor: the visitor who sent it.
        model: the model that it needs.
        is_counted: whether its wait counts. The first action of a tab and the first for a model also wait for files and
            libraries, which says nothing about how busy the server is.
    """

    start: float
    visitor: str
    model: str
    is_counted: bool


class _Wait(NamedTuple):
    """A wait that has ended: its end, its visitor and its duration in seconds."""

    end: float
    visitor: str
    seconds: float


class Waits:
    """Measures the time from each action of a visitor to the end of its run, and provides it as metrics."""

    def __init__(self, max_wait_s: float) -> None:
        self._max_wait_s = max_wait_s  # refuse new visitors while others wait longer than this
        self.actions = self.refusals = 0
        self._recent_waits: deque[_Wait] = deque()
        self._unanswered: dict[object, _Action] = {}  # the unanswered action of each tab
        self._active_tabs: set[object] = set()  # open tabs that have sent an action
        self._loaded_models: set[str] = set()  # models that have answered a current visitor, so they are loaded

    def note_received(self, tab: object, message: AllowedMessage, visitor: str = "") -> None:
        """Record a message from a visitor's tab. A new action replaces the previous one, whose run it ends."""
        rerun = message.message.rerun_script
        if message.kind != "rerun_script" or rerun.is_auto_rerun:  # a timed rerun, for which nobody waits
            return
        self.actions += 1
        model = next(iter(parse_qs(rerun.query_string).get("model", [])), "")
        is_counted = tab in self._active_tabs and model in self._loaded_models
        self._unanswered[tab] = _Action(time.monotonic(), visitor, model, is_counted)
        self._active_tabs.add(tab)

    def note_sent(self, tab: object, message: Message, blocked_s: float = 0.0) -> None:
        """Record a message to a tab.

        ``blocked_s``: the seconds for which it could not be sent because the tab did not read. They do not count as a
        wait.
        """
        if tab not in self._unanswered:
            return
        now, action = time.monotonic(), self._unanswered.pop(tab)
        forward_message, data = ForwardMsg(), message.get("bytes") or b""
        is_end = (
            len(data) < SHORT_MESSAGE_BYTES
            and _try_parse(forward_message, data)
            and forward_message.WhichOneof("type") == "script_finished"
        )
        if not is_end or forward_message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            start = min(now, action.start + blocked_s)
            self._unanswered[tab] = _Action(start, action.visitor, action.model, action.is_counted)
            return
        if action.is_counted:
            self._recent_waits.append(_Wait(now, action.visitor, max(0.0, now - action.start - blocked_s)))
        if len(self._loaded_models) < MAX_MODELS:
            self._loaded_models.add(action.model)

    def forget(self, tab: object) -> None:
        """Record that a tab was closed."""
        self._unanswered.pop(tab, None)
        self._active_tabs.discard(tab)
        if not self._active_tabs:  # without visitors, models may be unloaded
            self._loaded_models.clear()

    @property
    def p95(self) -> float:
        """The 95th percentile, in seconds, over visitors of their median waits.

        Only waits of the last ``RECENT_S`` seconds count; 0 if there are fewer than ``MIN_WAITS`` of them.
        """
        medians = self._compute_medians()
        return medians[math.ceil(0.95 * len(medians)) - 1] if medians else 0.0

    def _compute_medians(self) -> list[float]:
        """Return the median wait of each visitor in seconds, in increasing order.

        Of a visitor's unanswered actions only the longest counts; otherwise tabs that stay open and read nothing could
        keep everybody out.
        """
        now = time.monotonic()
        while self._recent_waits and self._recent_waits[0].end < now - RECENT_S:
            self._recent_waits.popleft()
        waits = defaultdict[str, list[float]](list)
        for wait in self._recent_waits:
            waits[wait.visitor].append(wait.seconds)
        longest_waits: dict[str, float] = {}
        for action in self._unanswered.values():
            if action.is_counted:
                longest_waits[action.visitor] = max(now - action.start, longest_waits.get(action.visitor, 0.0))
        for visitor, seconds in longest_waits.items():
            waits[visitor].append(seconds)
        return sorted(map(median, waits.values())) if sum(map(len, waits.values())) >= MIN_WAITS else []

    def find_refusal(self) -> str:
        """Return why new visitors are refused; "" if they are admitted."""
        slow_visitors = sum(seconds > self._max_wait_s for seconds in self._compute_medians())
        if slow_visitors < MIN_SLOW_VISITORS or self.p95 <= self._max_wait_s:
            return ""
        return f"This server is busy: its visitors wait more than {self._max_wait_s:g} seconds for an answer."

    @property
    def stats_families(self) -> Sequence[str]:
        """The names of the metrics."""
        return ACTIONS, REFUSALS, STARTS, WAIT

    def get_stats(self, family_names: Sequence[str] | None = None) -> Mapping[str, Sequence[Stat]]:
        """Return the named metrics, by default all."""
        # The first visitor loads the module.
        reader = getattr(sys.modules.get("mha_viz.app.service.reader.client"), "Reader", None)
        stats: tuple[Stat, ...] = (
            CounterStat(ACTIONS, self.actions, help="Actions of visitors."),
            CounterStat(
                REFUSALS,
                self.refusals,
                help="Visitors who were told to wait, by cookie or address; retries count once.",
            ),
            CounterStat(STARTS, getattr(reader, "starts", 0), help="Starts of the process that runs models."),
            GaugeStat(WAIT, round(1000 * self.p95), help="95th percentile of visitors' median waits, in milliseconds."),
        )
        return {stat.family_name: [stat] for stat in stats if family_names is None or stat.family_name in family_names}


def _try_parse(message: ForwardMsg, data: bytes) -> bool:
    try:
        return bool(data) and message.ParseFromString(data) > 0
    except DecodeError:
        return False
