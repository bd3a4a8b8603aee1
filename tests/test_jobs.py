"""The benchmark that does what somebody new does: what it says of the product, and that it fails where it should."""

from __future__ import annotations

import json
import tomllib
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from benchmarks import jobs

ROOT = Path(__file__).resolve().parent.parent


def test_the_tables_of_the_pages_say_what_was_measured() -> None:
    listed = tomllib.loads((ROOT / "benchmarks" / "jobs.toml").read_text("utf-8"))
    names = [job["name"] for job in listed["job"] + listed["lesson"]]
    rows = json.loads((ROOT / "benchmarks" / "results" / "jobs.json").read_text("utf-8"))["rows"]
    measured = {row["what"]: row["ours"] for row in rows}
    cells = [line.split(" | ") for line in (ROOT / "docs" / "pages.md").read_text("utf-8").splitlines()]
    documented = {first.removeprefix("| "): rest for first, *rest in cells if first.removeprefix("| ") in names}
    assert list(documented) == names
    for name, (_, clicks, first, again) in documented.items():
        seconds = measured[f"{name}: time"]["values"]
        assert float(clicks) == measured[f"{name}: clicks"]["median"]
        assert [first, again.removesuffix(" |")] == [f"{seconds[0]:.1f}", f"{seconds[-1]:.1f}"]


def test_what_is_not_seen_is_not_done(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PATIENCE", 500)
    monkeypatch.setattr(jobs, "READY", "role=button[name=A]")
    page = "data:text/html,<button onclick='this.textContent=1'>A</button><p style='margin:2000px 0'>far</p><input>"
    lines = ["click role=button[name=A]", "see text=far", 'never text="A"', "see text=nothing", "click text=far"]
    ends = [jobs.Job(f"{count} lines", 1, "\n".join(lines[:count])) for count in (3, 5)]
    (well,), (ill,) = (jobs.done(browser, page, [job]) for job in ends)
    assert (well.clicks, well.beside["scrolled"] > 0, well.undone) == (1, True, "")
    assert ill.clicks == 1, "it stops where something is missing"
    assert ill.undone.startswith("“see text=nothing”")
    with ExitStack() as windows:
        person = jobs.Person(browser, windows, page)
        assert not person.does("never text=nothing")
        assert person.does("never text=far")
        assert person.does("moves role=button[name=A]").endswith("nothing moves")
        assert person.does("holds role=textbox = full")
