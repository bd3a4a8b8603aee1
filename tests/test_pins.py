"""Every image and lock is one exact version with its day, none is older than half a year when a version is released,
and a bot proposes newer ones."""

from __future__ import annotations

import re
import tomllib
from datetime import date, timedelta
from typing import NamedTuple

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from tests.deploy.image import ROOT

DEPLOY = ROOT / "deploy"
OLDEST, A_DAY = timedelta(days=180), timedelta(days=1)
DATED = re.compile(r"\bpinned (\d{4}-\d\d-\d\d)\b")
IMAGE = re.compile(r"^(?:FROM|\s*(?:- )?image:)\s+(\S+)")


class Pin(NamedTuple):
    what: str
    line: str  # with the one before it, since a Dockerfile has no comment at the end of a line

    def fault(self, today: date, oldest: timedelta = timedelta.max) -> str:
        """Why this pin is refused; "" when it is not. Where it is noon, another zone has the next day."""
        if "@sha256:" not in self.what and not re.search(r":\d+\.\d+\.\d+(-|$)", self.what):
            return f"{self.what} is not one exact version"
        dated = DATED.search(self.line)
        if not dated:
            return f"{self.what} has no “pinned YYYY-MM-DD” beside it"
        age = today - date.fromisoformat(dated[1])
        if not -A_DAY <= age <= oldest:
            return f"{self.what} was pinned {age.days} days ago: look for a newer version, then renew the day"
        return ""


def pins(text: str) -> list[Pin]:
    """Every image of others that a file names."""
    before, read = "", []
    for line in text.splitlines():
        named = IMAGE.match(line)
        if named and not named[1].startswith("mha-viz"):
            read.append(Pin(named[1], f"{before}\n{line}" if line.startswith("FROM") else line))
        before = line
    return read


def all_pins() -> list[Pin]:
    files = [ROOT / "Dockerfile", *DEPLOY.glob("*.yaml")]
    return [pin for file in files for pin in pins(file.read_text("utf-8"))]


def locks() -> list[Pin]:
    return [Pin(f"{file.name}:1.0.0", file.read_text("utf-8").partition("\n")[0]) for file in DEPLOY.glob("*.lock")]


def test_every_pin_is_one_exact_version_with_its_day() -> None:
    assert [pin.what.partition(":")[0] for pin in all_pins()] == ["python", "python", "nginx"]
    assert len(locks()) == 2
    assert [fault for pin in [*all_pins(), *locks()] if (fault := pin.fault(date.today()))] == []


@pytest.mark.deploy
def test_no_pin_is_older_than_half_a_year() -> None:
    """Asked where versions are released: an old pin is no fault of whoever runs the tests of a version later."""
    assert [fault for pin in [*all_pins(), *locks()] if (fault := pin.fault(date.today(), OLDEST))] == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("    image: nginx:1.30.7-alpine  # pinned 2026-01-01", ""),
        ("# pinned 2026-01-01\nFROM python:3.11.16-slim AS build", ""),
        ("    image: nginx:1.30.7-alpine", "no “pinned"),
        ("# pinned 2026-01-01\n\nFROM python:3.11.16-slim", "no “pinned"),
        ("    image: nginx:1.30-alpine  # pinned 2026-01-01", "not one exact version"),
        ("    image: nginx  # pinned 2026-01-01", "not one exact version"),
        ("  - image: nginx:1.30.7  # pinned 2025-07-04", "181 days ago"),
        ("  - image: nginx:1.30.7  # pinned 2026-01-02", ""),
        ("  - image: nginx:1.30.7  # pinned 2026-01-03", "-2 days ago"),
    ],
)
def test_a_pin_without_a_day_or_with_a_wrong_one_is_refused(text: str, fault: str) -> None:
    [pin] = pins(text)
    refusal = pin.fault(date(2026, 1, 1), OLDEST)
    assert fault in refusal
    assert bool(refusal) is bool(fault)


def test_the_proxy_is_of_a_line_without_published_memory_faults() -> None:
    [version] = [pin.what.partition(":")[2].partition("-")[0] for pin in all_pins() if pin.what.startswith("nginx")]
    assert Version(version) >= Version("1.30.7")
    assert Version(version).minor % 2 == 0, "the stable line"


def test_no_version_with_a_published_fault_is_allowed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    allowed = {needed.name: needed.specifier for needed in map(Requirement, project["dependencies"])}
    assert not allowed["transformers"].contains("5.9.9")  # mended in 5.10; the function is not called here


def test_a_bot_watches_all_kinds_of_pins() -> None:
    watched = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text("utf-8"))["updates"]
    assert {(one["package-ecosystem"], one["directory"]) for one in watched} == {
        ("pip", "/"),
        ("npm", "/"),
        ("docker", "/"),
        ("docker-compose", "/deploy"),
        ("github-actions", "/"),
    }


CONFIRMED = {"CVE-2026-42533", "CVE-2026-42945", "CVE-2026-9256", "CVE-2026-1642"}  # in the maker's list


def test_only_advisories_that_could_be_confirmed_are_cited() -> None:
    for file in (ROOT / "SECURITY.md", *(path for path in DEPLOY.rglob("*") if path.is_file())):
        text = file.read_text("utf-8")
        cited = {f"CVE-2026-{number}" for number in re.findall(r"CVE-2026-(\d+)", text)}
        cited |= {f"CVE-2026-{number}" for number in re.findall(r"(?<=[ ,])-(\d{4,6})\b", text) if cited}
        assert cited <= CONFIRMED, file.name
        assert not cited or "nginx.org/en/security_advisories.html" in text, file.name
