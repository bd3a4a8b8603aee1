"""Twelve jobs and a lesson, done as somebody does who has read only the README.

It counts clicks, typed texts, turns of the wheel, and the seconds until the result is visible. ``jobs.toml`` describes
the jobs.
"""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from unittest.mock import patch

from playwright.sync_api import Browser, Error, Locator, Page, ViewportSize, expect

from benchmarks.chromium import name_browser, open_chromium, open_visitor
from benchmarks.results import Row, Sample, Target, write
from benchmarks.served import ROOT, serve_app

PATIENCE = 30_000  # milliseconds for one line
PHONE: ViewportSize = {"width": 390, "height": 844}
MARGIN = 5  # pixels from the left, where the pointer means nothing
WHEEL = 200  # pixels that one turn of the wheel scrolls
READY = "role=application[name=/^Heatmap of L3H1/]"


class Job(NamedTuple):
    """A job: its name, the most clicks, and a line for each thing that is done or must be seen."""

    name: str
    clicks: int
    does: str


class JobResult(NamedTuple):
    """Cost of a job, and why it could not be done, if so."""

    job: Job
    seconds: float
    clicks: int
    beside: dict[str, int]
    undone: str


def main(results: Path, quick: bool = False) -> None:
    """Do all jobs, print, write ``results/jobs.json``; ``quick``: once instead of twice.

    Raises RuntimeError afterwards if a job could not be done.
    """
    listed = tomllib.loads((ROOT / "benchmarks" / "jobs.toml").read_text("utf-8"))
    jobs, lesson = ([Job(**one) for one in listed[kind]] for kind in ("job", "lesson"))
    taken: dict[str, list[JobResult]] = {}
    unreachable = patch.dict(os.environ, HF_ENDPOINT="http://127.0.0.1:9")  # nothing listens there
    with unreachable, open_chromium() as browser, serve_app(ROOT / "app.py") as server:
        for _ in range(1 if quick else 2):
            for one in chain(
                *(do_jobs(browser, server.url, [job]) for job in jobs), do_jobs(browser, server.url, lesson)
            ):
                taken.setdefault(one.job.name, []).append(one)
        rows = [row for times in taken.values() for row in _make_rows(times)]
        write(results, "jobs", "Twelve jobs, and a lesson", "", rows, name_browser(browser))
    undone = [f"{one.job.name}: {one.undone}" for times in taken.values() for one in times if one.undone]
    if undone:
        raise RuntimeError("\n".join(["What could not be done:", *undone]))


def _make_rows(times: list[JobResult]) -> list[Row]:
    """Return rows for the clicks, which are equal in each run, and for the seconds.

    The first run includes what is loaded only once.
    """
    job, _, clicks, beside, _ = times[-1]
    row = Row(f"{job.name}: clicks", Sample((clicks,)), "", target=Target("below", job.clicks + 1), beside=beside)
    seconds = [one.seconds for one in times if not one.undone]
    return [row, *([Row(f"{job.name}: time", Sample(tuple(seconds)), "s")] if seconds else [])]


def do_jobs(browser: Browser, url: str, jobs: Iterable[Job]) -> Iterator[JobResult]:
    """Do the jobs one after the other as a new visitor, each as far as it can be done."""
    with ExitStack() as windows:
        person, undone = Person(browser, windows, url), ""
        for job in jobs:
            before, began = person.counts(), time.monotonic()
            for line in job.does.strip().splitlines():
                undone = undone or person.does(line)
            seconds = time.monotonic() - began
            clicks, typed, wheel = (now - then for now, then in zip(person.counts(), before, strict=True))
            yield JobResult(job, seconds, clicks, {"typed": typed, "scrolled": wheel}, undone)


class Person:
    """Somebody with a browser of their own, and with whatever other windows a job needs."""

    def __init__(self, browser: Browser, windows: ExitStack, url: str) -> None:
        self._clicks = self._typed = self._scrolled = 0
        self._browser, self._windows = browser, windows
        self._folder = Path(windows.enter_context(TemporaryDirectory()))
        self._pages: dict[str, Page] = {}
        self._at("here", url)
        self.see(READY)

    def counts(self) -> tuple[int, int, int]:
        """Return the clicks, typed texts and turns of the wheel so far."""
        return self._clicks, self._typed, self._scrolled

    def does(self, line: str) -> str:
        """Do one line of a job; return why it cannot be done, or an empty text."""
        verb, _, what = line.partition(" ")
        what, _, other = what.partition(" = ")
        try:
            getattr(self, verb)(*filter(None, (what, other)))
        except (Error, AssertionError) as error:
            return f"“{line}”: {str(error).strip()}"
        return ""

    def here(self) -> None:
        """Return to the first browser."""
        self._at("here", "")

    def colleague(self) -> None:
        """Open the copied link in another browser."""
        self._at("colleague", self._pages["here"].evaluate("navigator.clipboard.readText()"))

    def phone(self) -> None:
        """Open the copied link on a phone."""
        self._at("phone", self._pages["here"].evaluate("navigator.clipboard.readText()"))
        self._page.set_viewport_size(PHONE)

    def disk(self) -> None:
        """Open the saved file in a browser without a network."""
        self._at("disk", next(self._folder.iterdir()).as_uri())

    def click(self, what: str) -> None:
        """Click the middle of an element."""
        self._reached(what).click()
        self._clicks += 1

    def point(self, what: str) -> None:
        """Move the mouse to an element."""
        self._reached(what).hover()

    def choose(self, menu: str, option: str) -> None:
        """Choose an option of a menu. It counts as one click, as in a list."""
        self._reached(menu).select_option(option)
        self._clicks += 1

    def save(self, what: str, begins: str) -> None:
        """Click what sends a file, and check how the file begins."""
        with self._page.expect_download() as download:
            self.click(what)
        file = self._folder / "saved.html"
        download.value.save_as(file)
        beginning = file.read_bytes()[: len(begins)].decode(errors="replace")
        if beginning.lower() != begins.lower():
            raise AssertionError(f"the file begins with “{beginning}”")

    def type(self, text: str) -> None:
        """Type a text into the focused field."""
        self._page.keyboard.type(text)
        self._typed += 1

    def press(self, key: str) -> None:
        """Press a key, or several at once."""
        self._page.keyboard.press(key)

    def see(self, what: str) -> None:
        """Check that an element is in the window, scrolling to it if necessary."""
        expect(self._reached(what)).to_be_in_viewport(ratio=0.3, timeout=PATIENCE)

    def moves(self, what: str) -> None:
        """Check that an element's picture changes by itself."""
        before, end = self._reached(what).screenshot(), time.monotonic() + PATIENCE / 1000
        while self._page.locator(what).screenshot() == before:
            if time.monotonic() > end:
                raise AssertionError("nothing moves")

    def holds(self, field: str, text: str) -> None:
        """Check that a field has this text."""
        expect(self._reached(field)).to_have_value(text, timeout=PATIENCE)

    def never(self, what: str) -> None:
        """Check that an element is nowhere on the page."""
        expect(self._page.locator(what).filter(visible=True)).to_have_count(0, timeout=PATIENCE)

    def _at(self, window: str, url: str) -> None:
        if window not in self._pages:
            context = self._windows.enter_context(open_visitor(self._browser))
            context.set_default_timeout(PATIENCE)
            context.grant_permissions(["clipboard-read", "clipboard-write"])
            context.set_offline(window == "disk")
            self._pages[window] = context.new_page()
            self._pages[window].goto(url)
        self._page = self._pages[window]
        self._page.bring_to_front()

    def _reached(self, what: str) -> Locator:
        """Return the element, scrolling it into view if necessary."""
        part = self._page.locator(what).filter(visible=True).first
        part.wait_for()
        height = (self._page.viewport_size or PHONE)["height"]
        for _ in range(50):
            box = part.bounding_box() or {"y": 0, "height": 0}
            above, below = -box["y"], box["y"] + min(box["height"], height / 2) - height
            if max(above, below) <= 0:
                break
            self._page.mouse.move(MARGIN, height / 2)
            self._page.mouse.wheel(0, WHEEL if below > 0 else -WHEEL)
            self._scrolled += 1
            self._page.wait_for_timeout(50)
        return part
