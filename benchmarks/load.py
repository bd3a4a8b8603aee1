"""Time the actions of many simultaneous visitors, and the cost to the server, compared with a page with one chart.

CPU milliseconds per action are comparable between machines under different loads; times are not.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import streamlit

from benchmarks.monitoring import LONG_WAIT, MonitoredServer, serve_monitored
from benchmarks.results import Row, Sample, Target, write
from benchmarks.visitors import PAUSE_SECONDS, SHARES, Visitor, draw_sentence
from tests.web_session import WebSession
from tools.busy import LOOP

HERE = Path(__file__).resolve().parent
ARRIVAL_SECONDS = 10.0  # seconds within which all visitors arrive
SEED = 20250
MAX_MB = 800  # of the server and the process with its models, with 30 active visitors


class Crowd(NamedTuple):
    """A number of visitors on a number of server processes, with targets.

    The targets are the maximum 95th percentile in seconds, and the minimum actions per second. ``busy_cores``: cores
    that other programs use.
    """

    sessions: int
    processes: int = 1
    max_p95: float | None = None
    busy_cores: int = 0
    min_rate: float | None = None

    @property
    def name(self) -> str:
        """A description of the crowd."""
        suffix = f" beside {self.busy_cores} busy core" if self.busy_cores else ""
        return f"{self.sessions} sessions{suffix}" + (f", {self.processes} processes" if self.processes > 1 else "")


CROWDS = (
    *(Crowd(30, 1, 2.0), Crowd(50), Crowd(100, 1, 0.5), Crowd(150, 1, 2.0), Crowd(200, 2, 3.0)),
    *(Crowd(100, 1, 0.5, busy_cores=1), Crowd(200, 2, 0.5, busy_cores=1)),
    Crowd(300, min_rate=25),  # more than one process can serve
)
# Limits so high that no visitor is refused.
LIMITS = {"MHA_VIZ_WAIT": LONG_WAIT, "MHA_VIZ_SESSIONS": "600", "MHA_VIZ_SESSIONS_PER_ADDRESS": "600"}


@dataclass
class CrowdResult:
    """The measurements of one crowd."""

    actions: dict[str, list[float]] = field(default_factory=dict)  # seconds
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0
    cpu: float = 0.0  # seconds of the servers
    client_cpu: float = 0.0
    megabytes: float = 0.0  # at the end, all servers together
    received_bytes: int = 0

    @property
    def times(self) -> list[float]:
        """Seconds of every action."""
        return [seconds for times in self.actions.values() for seconds in times]

    def details(self) -> dict[str, Any]:
        """Return numbers that explain the times."""
        count = max(1, len(self.times))
        return {
            "actions_per_second": round(len(self.times) / self.seconds, 2),
            "errors": self.errors[:20],
            "server_cores": round(self.cpu / self.seconds, 3),
            "client_cores": round(self.client_cpu / self.seconds, 3),
            "megabytes": round(self.megabytes),
            "kilobytes_received_per_action": round(self.received_bytes / count / 1000),
        }


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/load.json``. ``quick``: 30 and 50 sessions, 20 s each."""
    seconds = 20.0 if quick else 40.0
    rows = asyncio.run(_measure_alone(5 if quick else 30))
    for crowd in CROWDS[:2] if quick else CROWDS:
        ours = asyncio.run(_run_crowd(crowd, None, seconds))
        theirs = asyncio.run(_run_crowd(crowd, HERE / "plotly_app.py", seconds))
        rows += _make_rows(crowd, ours, theirs)
    write(results, "load", "Under load", "a page with one Plotly heatmap", rows, f"Streamlit {streamlit.__version__}")


def _make_rows(crowd: Crowd, ours: CrowdResult, theirs: CrowdResult) -> list[Row]:
    target = Target("below", crowd.max_p95, p95=True) if crowd.max_p95 else None
    details = {"here": ours.details(), "plotly": theirs.details()}
    name = crowd.name
    rows = [Row(f"{name}: an action", Sample(tuple(ours.times)), "s", Sample(tuple(theirs.times)), target, details)]
    for label, unit, compute in (
        ("95th percentile", "s", lambda result: Sample(tuple(result.times)).p95),
        ("processor per action", "ms", lambda result: 1000 * result.cpu / len(result.times)),
        ("actions per second", "", lambda result: len(result.times) / result.seconds),
        ("processor of the server", "cores", lambda result: result.cpu / result.seconds),
        ("processor of the clients", "cores", lambda result: result.client_cpu / result.seconds),
        ("memory at the end", "MB", lambda result: result.megabytes),
    ):
        memory_target = Target("below", MAX_MB) if label == "memory at the end" and crowd.sessions == 30 else None
        rate_target = Target("least", crowd.min_rate) if label == "actions per second" and crowd.min_rate else None
        our_sample, their_sample = (Sample((compute(result),)) for result in (ours, theirs))
        rows.append(Row(f"{name}: {label}", our_sample, unit, their_sample, memory_target or rate_target))
    errors = Sample((float(len(ours.errors)),))
    rows.append(Row(f"{name}: errors", errors, "", Sample((float(len(theirs.errors)),)), Target("below", 1)))
    return rows + [Row(f"{name}: {label}", Sample(tuple(times)), "s") for label, times in sorted(ours.actions.items())]


# ---- One visitor ----------------------------------------------------------------------------------------


async def _measure_alone(turns: int) -> list[Row]:
    """Return rows with the mean CPU time of each action without other visitors."""
    rows = []
    with serve_monitored() as server:
        async with WebSession(server.url, light=True) as session:
            visitor = Visitor(session, Random(SEED))
            for name in SHARES:
                costs = [await _measure_cost(server, visitor, name) for _ in range(turns + 2)][2:]
                rows.append(Row(f"one visitor: {name}, processor", Sample((sum(costs) / turns,)), "ms"))
    return rows


async def _measure_cost(server: MonitoredServer, visitor: Visitor, name: str) -> float:
    """Return the CPU milliseconds of one action from Explore. Returning to Explore is not counted."""
    if visitor.session.page:
        await visitor.perform("back to Explore")
    cpu_before = server.cpu()
    await visitor.perform(name)
    return 1000 * (server.cpu() - cpu_before)


# ---- One crowd ------------------------------------------------------------------------------------------


async def _run_crowd(crowd: Crowd, app: Path | None, seconds: float) -> CrowdResult:
    """Run the crowd on new servers. Once all have arrived, measure for ``seconds``."""
    result = CrowdResult()
    with ExitStack() as stack:
        servers = [stack.enter_context(serve_monitored(app, **LIMITS)) for _ in range(crowd.processes)]
        for server in servers:  # the first sentence loads torch
            async with WebSession(server.url, light=True) as first_session:
                await _Session(first_session, app, Random(SEED)).act()
        for _ in range(crowd.busy_cores):
            stack.callback(subprocess.Popen([sys.executable, "-c", LOOP]).kill)
        is_measuring = asyncio.Event()
        tasks = [
            asyncio.create_task(_visit(servers[number % len(servers)], app, number, crowd, is_measuring, result))
            for number in range(crowd.sessions)
        ]
        await asyncio.sleep(ARRIVAL_SECONDS)
        is_measuring.set()
        start, server_cpu, client_cpu = time.monotonic(), _sum_cpu(servers), time.process_time()
        await asyncio.sleep(seconds)
        is_measuring.clear()
        result.seconds = time.monotonic() - start
        result.cpu, result.client_cpu = _sum_cpu(servers) - server_cpu, time.process_time() - client_cpu
        result.megabytes = sum(server.megabytes() for server in servers)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        result.errors += [f"{n} tracebacks in the log" for server in servers if (n := server.tracebacks())]
    return result


def _sum_cpu(servers: Sequence[MonitoredServer]) -> float:
    return sum(server.cpu() for server in servers)


class _Session:
    """A visitor of either app."""

    def __init__(self, session: WebSession, app: Path | None, random: Random) -> None:
        self.session, self._random = session, random
        self._visitor = Visitor(session, random) if app is None else None

    async def act(self) -> tuple[str, float]:
        if self._visitor is not None:
            return await self._visitor.act()
        return "read a sentence", await self.session.set("Sentence", draw_sentence(self._random))


async def _visit(
    server: MonitoredServer,
    app: Path | None,
    number: int,
    crowd: Crowd,
    is_measuring: asyncio.Event,
    result: CrowdResult,
) -> None:
    """Simulate one visitor from arrival until the end. After an error, record it and arrive again."""
    random = Random(SEED * 1000 + number)
    await asyncio.sleep(ARRIVAL_SECONDS * number / crowd.sessions)
    while True:
        try:
            async with WebSession(server.url, light=True) as session:
                visitor = _Session(session, app, random)
                while True:
                    await asyncio.sleep(random.uniform(*PAUSE_SECONDS))
                    received_before, start = session.received, time.monotonic()
                    try:
                        name, seconds = await visitor.act()
                    except asyncio.CancelledError:  # at the end: it has taken at least this long
                        result.actions.setdefault("unfinished at the end", []).append(time.monotonic() - start)
                        raise
                    if is_measuring.is_set():
                        result.actions.setdefault(name, []).append(seconds)
                        result.received_bytes += session.received - received_before
        except Exception as error:  # any error counts, because a person would have seen it
            result.errors.append(f"{type(error).__name__}: {error}"[:300])
            await asyncio.sleep(1)
