"""Twenty minutes with a thousand visitors who come and go: whether the server frees its resources.

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

from benchmarks.results import Row, Sample, Target, write
from benchmarks.visitors import Visitor
from benchmarks.watched import LETS_IN, Watched, serve_watched
from tests.web_session import WebSession

MINUTES = 20.0
VISITORS = 1_000
HERE_AT_ONCE = 30
EVERY = 10.0  # seconds between two samples of the server
AFTER = 90.0  # seconds that it has to free resources after all have left
ORDERED_LAST = 180.0  # seconds that ordered work may still take
SEED = 77
LONGEST_TRAINING, LONGEST_STUDY = 120.0, 120.0  # seconds
TASKS = {"download": 0.06, "training": 0.004, "study": 0.004}  # of the actions; all others are of a usual visitor


@dataclass
class SoakResult:
    """The events, and the resources of the server at each sample."""

    actions: Counter[str] = field(default_factory=Counter)
    visitors: int = 0
    errors: list[str] = field(default_factory=list)
    looks: list[dict[str, float]] = field(default_factory=list)

    def peak(self, what: str) -> float:
        """Return the largest value in any sample."""
        return max(look[what] for look in self.looks)


def main(results: Path, quick: bool = False, minutes: float = MINUTES) -> None:
    """Run, print, write ``results/soak.json``. ``quick``: one minute and a twentieth of the visitors."""
    minutes = min(minutes, 1.0) if quick else minutes
    with serve_watched(MHA_VIZ_WAIT=LETS_IN) as server:
        soaked = asyncio.run(_soak(server, 60 * minutes, round(VISITORS * minutes / MINUTES)))
        tracebacks = server.tracebacks()
    rows = [
        Row(
            "errors", Sample((float(len(soaked.errors)),)), "", None, Target("below", 1), {"errors": soaked.errors[:50]}
        ),
        Row("tracebacks in the log", Sample((float(tracebacks),)), "", None, Target("below", 1)),
        Row("visitors", Sample((float(soaked.visitors),)), "", beside={"looks": soaked.looks}),
        Row("actions", Sample((float(soaked.actions.total()),)), "", beside={"by_kind": soaked.actions}),
    ]
    start, end = soaked.looks[0], soaked.looks[-1]
    goals = {"megabytes": Target("share", 1.1), "descriptors": Target("below", start["descriptors"] + 100)}
    for what in start:
        if what != "seconds":
            first, last = Sample((start[what],)), Sample((end[what],))
            rows.append(Row(f"{what} at the end", last, "", first, goals.get(what)))
            rows.append(Row(f"{what} at the peak", Sample((soaked.peak(what),)), "", first))
    write(results, "soak", f"Soak of {minutes:g} minutes", "at the start", rows, f"Streamlit {streamlit.__version__}")


async def _soak(server: Watched, seconds: float, visitors: int) -> SoakResult:
    soaked = SoakResult()
    async with WebSession(server.url, light=True) as first:  # all code is loaded at the start, as on a server in use
        random = Random(SEED)
        visitor = Visitor(first, random)
        for name in ("read a sentence", "Compare", "Roles", "Inside"):
            await visitor.does(name)
        for task in ORDERED.values():
            await task(first, random)
    await asyncio.sleep(5)
    begin = time.monotonic()
    soaked.looks.append(_sample_server(server, begin))
    looking = asyncio.create_task(_keep_sampling(server, begin, soaked))
    each = seconds / visitors  # seconds from one arrival to the next
    async with asyncio.TaskGroup() as group:
        for number in range(visitors):
            group.create_task(_stay(server, number, each * HERE_AT_ONCE, soaked))
            await asyncio.sleep(max(0.0, begin + each * (number + 1) - time.monotonic()))
    end = time.monotonic() + ORDERED_LAST
    while server.counts()["children"] > soaked.looks[0]["children"] and time.monotonic() < end:
        await asyncio.sleep(1)  # on one's own machine, an ordered study continues after its visitor has left
    await asyncio.sleep(AFTER)
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    soaked.looks.append(_sample_server(server, begin))
    return soaked


def _sample_server(server: Watched, begin: float) -> dict[str, float]:
    return {"seconds": round(time.monotonic() - begin), "megabytes": round(server.megabytes()), **server.counts()}


async def _keep_sampling(server: Watched, begin: float, soaked: SoakResult) -> None:
    while True:
        await asyncio.sleep(EVERY)
        soaked.looks.append(_sample_server(server, begin))


async def _stay(server: Watched, number: int, seconds: float, soaked: SoakResult) -> None:
    """Be one visitor for ``seconds``."""
    random = Random(SEED * 10_000 + number)
    end = time.monotonic() + seconds
    name = "arriving"
    try:
        async with WebSession(server.url, light=True) as session:
            soaked.visitors += 1
            visitor = Visitor(session, random)
            while time.monotonic() < end:
                await asyncio.sleep(visitor.thinks() / 2)
                name = random.choices([*TASKS, "usual"], [*TASKS.values(), 1 - sum(TASKS.values())])[0]
                if name == "usual":
                    name, _ = await visitor.acts()
                else:
                    await ORDERED[name](session, random)
                soaked.actions[name] += 1
    except Exception as error:  # any error counts, because a person would have met it
        soaked.errors.append(f"visitor {number}, {name}: {type(error).__name__}: {error}"[:300])


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
    for setting, value in (("steps", 100), ("seed", random.randint(1, 10**6))):  # the address can end their keys
        key = next(key for key in session.widgets if key.startswith(f"lab_identical_{setting}"))
        await session.set(key, float(value))
    if "lab_run" in session.widgets:
        await session.press("lab_run")
        await _wait_for_end(session, "lab_stop", LONGEST_TRAINING if random.random() < 0.5 else 3.0)
    await session.go("")


async def _study(session: WebSession, random: Random) -> None:
    """Measure a small uploaded file."""
    await session.go("roles", corpus="file")
    lines = "\n".join(f"The {random.choice(('cat', 'dog'))} number {random.random()} sat." for _ in range(30))
    await session.upload("corpus_file", "mine.txt", lines.encode())
    await session.press("measure_file")
    await _wait_for_end(session, "stop_study", LONGEST_STUDY)
    await session.go("", corpus="")


async def _wait_for_end(session: WebSession, key: str, seconds: float) -> None:
    """Wait at most this long while the page has a widget; the page itself polls repeatedly."""
    end = time.monotonic() + seconds
    while key in session.widgets and time.monotonic() < end:
        await asyncio.sleep(0.5)


ORDERED = {"download": _download, "training": _train, "study": _study}
