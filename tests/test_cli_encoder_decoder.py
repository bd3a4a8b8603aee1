"""Encoder–decoders on the command line: parts and targets, and options that do not go together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mha_viz.attention import Attention
from mha_viz.cli import main
from mha_viz.figures.files import load_attention
from mha_viz.models.reading.loading import load
from mha_viz.request import PARTS
from tests import tiny_encoder_decoders
from tests.tiny_encoder_decoders import ENCODER_LAYERS

SOURCE, TARGET = "The animal was tired.", "Das Tier war müde."


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_encoder_decoders.build("bart", tmp_path_factory.mktemp("bart")))


def read(model: str, tmp_path: Path, *options: str) -> Attention:
    path = tmp_path / "reading.npz"
    assert main(["attention", SOURCE, "--model", model, *options, "--out", str(path)]) == 0
    return load_attention(path)


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_that_of_the_library(
    part: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [] if part == "encoder" else ["--target", TARGET]
    ours = read(model, tmp_path, "--part", part, *given)
    theirs = load(model).encode(SOURCE, target=TARGET, part=part)
    assert ours.key == theirs.key
    np.testing.assert_array_equal(ours.weights, theirs.weights)
    axes = f"{len(ours.queries)} × {len(ours.keys)} tokens" if part == "cross" else f"{len(ours.queries)} tokens"
    out = capsys.readouterr().out
    assert f"{part}, " in out
    assert axes in out


def test_without_options_the_model_writes_the_target(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read(model, tmp_path).made == ("typed", "cross-attention", "target generated")
    assert "cross, " in capsys.readouterr().out


def test_rollout_follows_the_encoder(model: str, tmp_path: Path) -> None:
    assert read(model, tmp_path, "--part", "encoder", "--quantity", "rollout").layers == ENCODER_LAYERS


@pytest.mark.parametrize("suffix", [".svg", ".csv", ".html"])
def test_a_figure_has_both_texts(suffix: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"links{suffix}"
    arguments = ["figure", "links", SOURCE, "--model", model, "--head", "L1H1", "--target", TARGET, "--caption"]
    assert main([*arguments, "--out", str(path)]) == 0
    assert f"reading “{TARGET}” and attending to “{SOURCE}”, cross-attention" in capsys.readouterr().out
    assert path.stat().st_size > 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", TARGET, "--quantity", "norm"], "--target does not go with --quantity norm"),
        (["--part", "decoder", "--without", "L0H0"], "--part does not go with --without"),
        (["--part", "encoder", "--target", TARGET], "--part encoder reads no target"),
        (["--part", "both"], "“both” is not a value of --part"),
        (["--target", TARGET * 40], "The target is longer than"),
        (["--pair", "A second."], "reads one text at a time"),
        (["--quantity", "norm"], "is an encoder–decoder"),
        (["--without", "L0H0"], "is an encoder–decoder"),
        (["--quantity", "rollout"], "Rollout needs the unchanged attention weights of all heads within one text"),
    ],
)
def test_what_does_not_go_together_is_one_line(
    options: list[str], message: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attention", SOURCE, "--model", model, *options, "--out", str(tmp_path / "a.npz")]) != 0
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_model_of_one_stack_reads_no_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attention", SOURCE, "--target", TARGET, "--out", str(tmp_path / "a.npz")]) != 0
    assert "one stack of layers and reads no target" in capsys.readouterr().err
