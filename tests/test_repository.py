"""The files around the code are consistent with it and with each other."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@cache
def checks() -> str:
    """The commands of `make check`."""
    quiet = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", "--dry-run", "check"], cwd=ROOT, env=quiet, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.skipif(os.name == "nt", reason="the Makefile is for Unix; README names the commands for Windows")
def test_the_hooks_run_what_make_check_runs() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert [repository["repo"] for repository in hooks] == ["local"], "nothing is fetched"
    entries = [hook["entry"].removesuffix(" --force-exclude") for hook in hooks[0]["hooks"]]
    assert len(entries) >= 4
    for entry in entries:
        assert entry in checks()


def test_the_citation_names_the_project_and_nobody_else() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["authors"] == [{"name": "The mha_viz developers"}]
    assert citation["license"] == PROJECT["project"]["license"]


def test_links_between_documents_lead_somewhere() -> None:
    for document in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"):
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", (ROOT / document).read_text("utf-8")):
            assert (ROOT / target).exists(), f"{document}: {target}"


def test_a_warning_is_an_error_and_each_exception_has_its_reason() -> None:
    settings = PROJECT["tool"]["pytest"]["ini_options"]["filterwarnings"]
    assert settings[0] == "error"
    lines = [line.strip() for line in (ROOT / "pyproject.toml").read_text("utf-8").splitlines()]
    for entry in settings[1:]:
        assert lines[lines.index(f'"{entry}",') - 1].startswith("# "), entry
        assert entry.split(":")[1], f"{entry} names no message"


def test_editors_and_the_formatter_agree_on_the_length_of_a_line() -> None:
    editors = (ROOT / ".editorconfig").read_text("utf-8")
    assert f"max_line_length = {PROJECT['tool']['ruff']['line-length']}\n" in editors
