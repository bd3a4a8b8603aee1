"""The benchmark that does what somebody new does: what it says of the product, and that it fails where it should."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser

from benchmarks import jobs


def test_what_is_not_seen_is_not_done(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PATIENCE", 500)
    monkeypatch.setattr(jobs, "READY", "role=button[name=A]")
    page = "data:text/html,<button onclick='this.textContent=1'>A</button><p style='margin:2000px 0'>far</p><input>"
    lines = ["click role=button[name=A]", "see text=far", 'never text="A"', "see text=nothing", "click text=far"]
    ends = [jobs.Job(f"{count} lines", 1, "\n".join(lines[:count])) for count in (3, 5)]
    (well,), (ill,) = (jobs.do_jobs(browser, page, [job]) for job in ends)
    assert (well.clicks, well.details["scrolled"] > 0, well.failure) == (1, True, "")
    assert ill.clicks == 1, "it stops where something is missing"
    assert ill.failure.startswith("“see text=nothing”")
    with ExitStack() as windows:
        person = jobs.Person(browser, windows, page)
        assert not person.perform("never text=nothing")
        assert person.perform("never text=far")
        assert person.perform("moves role=button[name=A]").endswith("nothing moves")
        assert person.perform("holds role=textbox = full")
