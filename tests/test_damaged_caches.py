"""One damaged byte in anything that the app keeps for itself is noticed, and the thing is made again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mha_viz as mv
from mha_viz.analysis.profile import FACTS, read_findings
from mha_viz.errors import CorpusError
from mha_viz.files import assets
from mha_viz.models import catalog, snapshots
from mha_viz.models.hub import local_folder


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile with every table that the built-in sentences allow."""
    folder = tmp_path_factory.mktemp("measured")
    mv.open_profile(assets.asset("profiles/minilm/ewt")).save(folder)
    return folder


def flip_a_digit(path: Path) -> None:
    """Change one digit in the middle of a text, or one letter where it has none."""
    text = path.read_text("utf-8")
    places = [m.start() for m in re.finditer(r"\d", text)] or [m.start() for m in re.finditer("[a-z]", text)]
    at = places[len(places) // 2]
    path.write_text(f"{text[:at]}{'7' if text[at] != '7' else '3'}{text[at + 1 :]}", "utf-8")


def test_one_digit_in_any_file_of_a_profile_is_noticed(measured: Path) -> None:
    files = sorted(path for path in measured.rglob("*") if path.is_file())
    assert len(files) > 15
    for path in files:
        whole = path.read_bytes()
        flip_a_digit(path)
        with pytest.raises(CorpusError, match=r"as it was written|holds no profile"):
            mv.open_profile(measured)
        if path.name in ("roles.csv", "position.csv", FACTS) and path.parent == measured:
            with pytest.raises(CorpusError):
                read_findings(measured)
        path.write_bytes(whole)
    assert mv.open_profile(measured) == mv.open_profile(assets.asset("profiles/minilm/ewt"))


def test_digests_are_no_facts_and_a_profile_without_them_is_opened(measured: Path) -> None:
    shipped = mv.open_profile(assets.asset("profiles/minilm/ewt"))
    assert shipped.facts.keys() == mv.open_profile(measured).facts.keys()


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_damaged_step_of_the_toy_is_unpacked_again(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(assets.HOME, str(tmp_path))
    folder = local_folder(catalog.resolve("toy"))
    assert folder is not None
    step = snapshots.steps(folder)[0]
    into = snapshots.unpacked(folder, step)
    whole = (into / name).read_bytes()
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    (into / name).write_bytes(damaged)
    assert snapshots.unpacked(folder, step) == into
    assert (into / name).read_bytes() == whole
