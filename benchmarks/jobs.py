"""Do twelve jobs and a lesson like a person who has read only the README.

Counts clicks, typed texts and turns of the wheel, and times each job until its result is visible. ``jobs.toml``
describes the jobs.
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
from benchmarks.server import ROOT, serve_app

PATIENCE = 30_000  # milliseconds for one step
PHONE: ViewportSize = {"width": 390, "height": 844}
MARGIN = 5  # pixels from the left edge, where the pointer has no effect
WHEEL = 200  # pixels per turn of the mouse wheel
READY = "role=application[name=/^Heatmap of L3H1/]"


class Job(NamedTuple):
    """A job: its name, the maximum number of clicks, and one line per step."""

    name: str
    clicks: int
    steps: str


class JobResult(NamedTuple):
    """Cost of a job, and the reason why it could not be done; "" if it was done."""

    job: Job
    seconds: float
    clicks: int
    details: dict[str, int]
    failure: str


def main(results: Path, quick: bool = False) -> None:
    """Do all jobs, print, write ``results/jobs.json``; ``quick``: once instead of twice.

    Raises RuntimeError afterwards if a job could not be done.
    """
    tables = tomllib.loads((ROOT / "benchmarks" / "jobs.toml").read_text("utf-8"))
    jobs, lesson = ([Job(**fields) for fields in tables[kind]] for kind in ("job", "lesson"))
    results_by_job: dict[str, list[JobResult]] = {}
    block_hub = patch.dict(os.environ, HF_ENDPOINT="http://127.0.0.1:9")  # nothing listens there
    with block_hub, open_chromium() as browser, serve_app(ROOT / "app.py") as server:
        for _ in range(1 if quick else 2):
            for result in chain(
                *(do_jobs(browser, server.url, [job]) for job in jobs), do_jobs(browser, server.url, lesson)
            ):
                results_by_job.setdefault(result.job.name, []).append(result)
        rows = [row for job_results in results_by_job.values() for row in _make_rows(job_results)]
        write(results, "jobs", "Twelve jobs, and a lesson", "", rows, name_browser(browser))
    results_in_order = chain.from_iterable(results_by_job.values())
    failures = [f"{result.job.name}: {result.failure}" for result in results_in_order if result.failure]
    if failures:
        raise RuntimeError("\n".join(["These jobs could not be done:", *failures]))


def _make_rows(results: list[JobResult]) -> list[Row]:
    """Return rows for the clicks, which are equal in each run, and for the seconds.

    The first run includes loading that happens only once.
    """
    job, _, clicks, details, _ = results[-1]
    row = Row(f"{job.name}: clicks", Sample((clicks,)), "", target=Target("below", job.clicks + 1), details=details)
    seconds = [result.seconds for result in results if not result.failure]
    return [row, *([Row(f"{job.name}: time", Sample(tuple(seconds)), "s")] if seconds else [])]


def do_jobs(browser: Browser, url: str, jobs: Iterable[Job]) -> Iterator[JobResult]:
    """Do the jobs one after the other as a new visitor, each as far as it can be done."""
    with ExitStack() as windows:
        person, failure = Person(browser, windows, url), ""
        for job in jobs:
            initial_counts, start = person.counts(), time.monotonic()
            for line in job.steps.strip().splitlines():
                failure = failure or person.perform(line)
            seconds = time.monotonic() - start
            clicks, texts, turns = (end - begin for end, begin in zip(person.counts(), initial_counts, strict=True))
            yield JobResult(job, seconds, clicks, {"typed": texts, "scrolled": turns}, failure)


class Person:
    """A person with a browser, and with the other windows that a job needs."""

    def __init__(self, browser: Browser, windows: ExitStack, url: str) -> None:
        self._clicks = self._typed = self._scrolled = 0
        self._browser, self._windows = browser, windows
        self._folder = Path(windows.enter_context(TemporaryDirectory()))
        self._pages: dict[str, Page] = {}
        self._open_window("here", url)
        self.see(READY)

    def counts(self) -> tuple[int, int, int]:
        """Return the clicks, typed texts and turns of the wheel so far."""
        return self._clicks, self._typed, self._scrolled

    def perform(self, line: str) -> str:
        """Perform one step of a job; return the reason if that fails, else ""."""
        verb, _, selector = line.partition(" ")
        selector, _, argument = selector.partition(" = ")
        try:
            getattr(self, verb)(*filter(None, (selector, argument)))
        except (Error, AssertionError) as error:
            return f"“{line}”: {str(error).strip()}"
        return ""

    def here(self) -> None:
        """Return to the first browser."""
        self._open_window("here", "")

    def colleague(self) -> None:
        """Open the copied link in another browser."""
        self._open_window("colleague", self._pages["here"].evaluate("navigator.clipboard.readText()"))

    def phone(self) -> None:
        """Open the copied link on a phone."""
        self._open_window("phone", self._pages["here"].evaluate("navigator.clipboard.readText()"))
        self._page.set_viewport_size(PHONE)

    def disk(self) -> None:
        """Open the saved file in a browser without a network."""
        self._open_window("disk", next(self._folder.iterdir()).as_uri())

    def click(self, selector: str) -> None:
        """Click the middle of an element."""
        self._scroll_to(selector).click()
        self._clicks += 1

    def point(self, selector: str) -> None:
        """Move the mouse to an element."""
        self._scroll_to(selector).hover()

    def choose(self, menu: str, option: str) -> None:
        """Choose an option of a menu. It counts as one click, as in a list."""
        self._scroll_to(menu).select_option(option)
        self._clicks += 1

    def save(self, selector: str, expected_start: str) -> None:
        """Click an element that downloads a file, and check the beginning of the file."""
        with self._page.expect_download() as download:
            self.click(selector)
        file = self._folder / "saved.html"
        download.value.save_as(file)
        actual = file.read_bytes()[: len(expected_start)].decode(errors="replace")
        if actual.lower() != expected_start.lower():
            raise AssertionError(f"the file begins with “{actual}”")

    def type(self, text: str) -> None:
        """Type a text into the focused field."""
        self._page.keyboard.type(text)
        self._typed += 1

    def press(self, key: str) -> None:
        """Press a key, or several at once."""
        self._page.keyboard.press(key)

    def see(self, selector: str) -> None:
        """Check that an element is in the window, scrolling to it if necessary."""
        expect(self._scroll_to(selector)).to_be_in_viewport(ratio=0.3, timeout=PATIENCE)

    def moves(self, selector: str) -> None:
        """Check that an element's picture changes by itself."""
        first_picture, end = self._scroll_to(selector).screenshot(), time.monotonic() + PATIENCE / 1000
        while self._page.locator(selector).screenshot() == first_picture:
            if time.monotonic() > end:
                raise AssertionError("nothing moves")

    def holds(self, field: str, text: str) -> None:
        """Check that a field has this text."""
        expect(self._scroll_to(field)).to_have_value(text, timeout=PATIENCE)

    def never(self, selector: str) -> None:
        """Check that an element is nowhere on the page."""
        expect(self._page.locator(selector).filter(visible=True)).to_have_count(0, timeout=PATIENCE)

    def _open_window(self, window: str, url: str) -> None:
        if window not in self._pages:
            context = self._windows.enter_context(open_visitor(self._browser))
            context.set_default_timeout(PATIENCE)
            context.grant_permissions(["clipboard-read", "clipboard-write"])
            context.set_offline(window == "disk")
            self._pages[window] = context.new_page()
            self._pages[window].goto(url)
        self._page = self._pages[window]
        self._page.bring_to_front()

    def _scroll_to(self, selector: str) -> Locator:
        """Return the element, scrolling it into view if necessary."""
        element = self._page.locator(selector).filter(visible=True).first
        element.wait_for()
        height = (self._page.viewport_size or PHONE)["height"]
        for _ in range(50):
            box = element.bounding_box() or {"y": 0, "height": 0}
            above, below = -box["y"], box["y"] + min(box["height"], height / 2) - height
            if max(above, below) <= 0:
                break
            self._page.mouse.move(MARGIN, height / 2)
            self._page.mouse.wheel(0, WHEEL if below > 0 else -WHEEL)
            self._scrolled += 1
            self._page.wait_for_timeout(50)
        return element
