"""Check that the server frees its resources, in twenty minutes with a thousand visitors who come and go.

``python -m benchmarks soak [--minutes 20]``.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import streamlit

from benchmarks.monitoring import LONG_WAIT, MonitoredServer, serve_monitored
from benchmarks.results import Row, Sample, Target, write
from benchmarks.visitors import Visitor
from tests.web_session import WebSession

MINUTES = 20.0
VISITORS = 1_000
CONCURRENT_VISITORS = 30
SAMPLE_SECONDS = 10.0  # seconds between two samples of the server
RELEASE_SECONDS = 90.0  # time for the server to free resources after all visitors have left
LEFTOVER_STUDY_SECONDS = 180.0  # time that studies may take after their visitors have left
SEED = 77
MAX_TRAINING_SECONDS, MAX_STUDY_SECONDS = 120.0, 120.0
TASKS = {
    "download": 0.06,
    "training": 0.004,
    "study": 0.004,
}  # shares of the actions; the others are those of a Visitor


@dataclass
class SoakResult:
    """The events, and the resources of the server at each sample."""

    actions: Counter[str] = field(default_factory=Counter)
    visitors: int = 0
    errors: list[str] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)

    def peak(self, name: str) -> float:
        """Return the largest value in any sample."""
        return max(sample[name] for sample in self.samples)


def main(results: Path, quick: bool = False, minutes: float = MINUTES) -> None:
    """Run, print, write ``results/soak.json``. ``quick``: one minute and a twentieth of the visitors."""
    minutes = min(minutes, 1.0) if quick else minutes
    with serve_monitored(MHA_VIZ_WAIT=LONG_WAIT) as server:
        result = asyncio.run(_soak(server, 60 * minutes, round(VISITORS * minutes / MINUTES)))
        tracebacks = server.tracebacks()
    rows = [
        Row(
            "errors", Sample((float(len(result.errors)),)), "", None, Target("below", 1), {"errors": result.errors[:50]}
        ),
        Row("tracebacks in the log", Sample((float(tracebacks),)), "", None, Target("below", 1)),
        Row("visitors", Sample((float(result.visitors),)), "", details={"looks": result.samples}),
        Row("actions", Sample((float(result.actions.total()),)), "", details={"by_kind": result.actions}),
    ]
    start, end = result.samples[0], result.samples[-1]
    goals = {"megabytes": Target("share", 1.1), "descriptors": Target("below", start["descriptors"] + 100)}
    for name in start:
        if name != "seconds":
            start_sample, end_sample = Sample((start[name],)), Sample((end[name],))
            rows.append(Row(f"{name} at the end", end_sample, "", start_sample, goals.get(name)))
            rows.append(Row(f"{name} at the peak", Sample((result.peak(name),)), "", start_sample))
    write(results, "soak", f"Soak of {minutes:g} minutes", "at the start", rows, f"Streamlit {streamlit.__version__}")


async def _soak(server: MonitoredServer, seconds: float, visitors: int) -> SoakResult:
    result = SoakResult()
    async with WebSession(server.url, light=True) as session:  # load all code first, as on a server in use
        random = Random(SEED)
        visitor = Visitor(session, random)
        for name in ("read a sentence", "Compare", "Roles", "Inside"):
            await visitor.perform(name)
        for task in TASK_FUNCTIONS.values():
            await task(session, random)
    await asyncio.sleep(5)
    start_time = time.monotonic()
    result.samples.append(_sample_server(server, start_time))
    sampler = asyncio.create_task(_keep_sampling(server, start_time, result))
    interval = seconds / visitors  # seconds from one arrival to the next
    async with asyncio.TaskGroup() as group:
        for number in range(visitors):
            group.create_task(_visit(server, number, interval * CONCURRENT_VISITORS, result))
            await asyncio.sleep(max(0.0, start_time + interval * (number + 1) - time.monotonic()))
    end = time.monotonic() + LEFTOVER_STUDY_SECONDS
    while server.counts()["children"] > result.samples[0]["children"] and time.monotonic() < end:
        await asyncio.sleep(1)  # on a local server, a study continues after its visitor has left
    await asyncio.sleep(RELEASE_SECONDS)
    sampler.cancel()
    await asyncio.gather(sampler, return_exceptions=True)
    result.samples.append(_sample_server(server, start_time))
    return result


def _sample_server(server: MonitoredServer, start_time: float) -> dict[str, float]:
    return {"seconds": round(time.monotonic() - start_time), "megabytes": round(server.megabytes()), **server.counts()}


async def _keep_sampling(server: MonitoredServer, start_time: float, result: SoakResult) -> None:
    while True:
        await asyncio.sleep(SAMPLE_SECONDS)
        result.samples.append(_sample_server(server, start_time))


async def _visit(server: MonitoredServer, number: int, seconds: float, result: SoakResult) -> None:
    """Simulate one visitor for ``seconds``."""
    random = Random(SEED * 10_000 + number)
    end = time.monotonic() + seconds
    name = "arriving"
    try:
        async with WebSession(server.url, light=True) as session:
            result.visitors += 1
            visitor = Visitor(session, random)
            while time.monotonic() < end:
                await asyncio.sleep(visitor.draw_pause() / 2)
                name = random.choices([*TASKS, "usual"], [*TASKS.values(), 1 - sum(TASKS.values())])[0]
                if name == "usual":
                    name, _ = await visitor.act()
                else:
                    await TASK_FUNCTIONS[name](session, random)
                result.actions[name] += 1
    except Exception as error:  # any error counts, because a person would have seen it
        result.errors.append(f"visitor {number}, {name}: {type(error).__name__}: {error}"[:300])


async def _download(session: WebSession, random: Random) -> None:
    """Download the figure on screen in one of its formats."""
    await session.go("")
    await session.set("download_panel", True)
    content = await session.download(random.choice(("take.svg", "take.pdf", "take.csv", "take.html", "take.npz")))
    if len(content) < 100:
        raise RuntimeError(f"The file has {len(content)} bytes.")
    await session.set("download_panel", False)


async def _train(session: WebSession, random: Random) -> None:
    """Start a small training, watch its progress, and in half of the cases leave it running."""
    await session.go("why_heads_differ", experiment="identical", numbers="1")
    for setting, value in (
        ("steps", 100),
        ("seed", random.randint(1, 10**6)),
    ):  # their keys may end with a part of the URL
        key = next(key for key in session.widgets if key.startswith(f"lab_identical_{setting}"))
        await session.set(key, float(value))
    if "lab_run" in session.widgets:
        await session.press("lab_run")
        await _wait_for_end(session, "lab_stop", MAX_TRAINING_SECONDS if random.random() < 0.5 else 3.0)
    await session.go("")


async def _study(session: WebSession, random: Random) -> None:
    """Measure a small uploaded file."""
    await session.go("roles", corpus="file")
    lines = "\n".join(f"The {random.choice(('cat', 'dog'))} number {random.random()} sat." for _ in range(30))
    await session.upload("corpus_file", "mine.txt", lines.encode())
    await session.press("measure_file")
    await _wait_for_end(session, "stop_study", MAX_STUDY_SECONDS)
    await session.go("", corpus="")


async def _wait_for_end(session: WebSession, key: str, seconds: float) -> None:
    """Wait until a widget has disappeared, but not longer than ``seconds``. The page polls by itself."""
    end = time.monotonic() + seconds
    while key in session.widgets and time.monotonic() < end:
        await asyncio.sleep(0.5)


TASK_FUNCTIONS = {"download": _download, "training": _train, "study": _study}
