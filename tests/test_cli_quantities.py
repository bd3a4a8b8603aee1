"""Quantities and switched-off heads on the command line: readings, figures, and options that exclude each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mha_viz.attention import Attention
from mha_viz.attention.rollout import rollout
from mha_viz.cli import main
from mha_viz.figures.files import load_attention
from mha_viz.models.decomposing.contributions import norm_weighted
from mha_viz.models.intervening import ablation
from mha_viz.models.intervening.gradients import gradient_weighted
from mha_viz.models.reading.loading import load

TEXT = "the dog [MASK] the girl ."
TOY = ["--model", "toy"]


def read(tmp_path: Path, *options: str) -> Attention:
    path = tmp_path / "reading.npz"
    assert main(["attention", TEXT, *TOY, *options, "--out", str(path)]) == 0
    return load_attention(path)


def test_every_quantity_is_that_of_the_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toy = load("toy")
    expected = {
        ("norm",): norm_weighted(toy, TEXT),
        ("rollout",): rollout(toy.encode(TEXT)),
        ("gradient",): gradient_weighted(toy, TEXT),
        ("gradient", "--word", "sees", "--place", "3"): gradient_weighted(toy, TEXT, word="sees"),
        ("gradient", "--other", "the cat ran ."): gradient_weighted(toy, TEXT, other="the cat ran ."),
        ("gradient", "--other", "the cat ran .", "--off-in", "second"): gradient_weighted(
            toy, TEXT, other="the cat ran .", off_in="second"
        ),
        ("rollout", "--without", "L0H1"): rollout(ablation.encode_without(toy, ["L0H1"], TEXT)),
    }
    for options, reading in expected.items():
        ours = read(tmp_path, "--quantity", *options)
        assert ours.key == reading.key
        assert np.array_equal(ours.weights, reading.weights)
        assert options[0] in capsys.readouterr().out


@pytest.mark.parametrize("method", ["zero", "uniform"])
def test_heads_are_switched_off(method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = read(tmp_path, "--without", "L0H1,L0H3", "--method", method)
    assert ours.key == ablation.encode_without(load("toy"), ["L0H1", "L0H3"], TEXT, method=method).key
    assert "without L0H1, L0H3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--quantity", "mood"], "“mood” is not a value of --quantity"),
        (["--word", "sees"], "--word goes with --quantity gradient"),
        (["--quantity", "gradient", "--word", "sees", "--other", "One."], "A word and a second text"),
        (["--quantity", "norm", "--without", "L0H1"], "--without does not go with --quantity norm"),
        (["--method", "uniform"], "--method says how"),
        (["--without", "L9H1"], "L9H1 does not exist"),
        (["--quantity", "gradient", "--place", "1"], "Token 1 is not masked"),
        (["--quantity", "gradient", "--word", "xylophone"], "xylophone"),
    ],
)
def test_what_does_not_go_together_is_said(
    options: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attention", TEXT, *TOY, *options, "--out", str(tmp_path / "reading.npz")]) != 0
    assert problem in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_models_without_words_and_texts_without_a_mask_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--quantity", "gradient", "--out", str(tmp_path / "reading.npz")]
    assert main(["attention", "The cat sat.", *out]) != 0
    assert "“minilm” cannot predict words" in capsys.readouterr().err
    assert main(["attention", "the cat sat .", *TOY, *out]) != 0
    assert "no [MASK]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "options", "caption"),
    [
        ("heatmap", ["--head", "L1H1", "--quantity", "gradient"], "Colour: 0 to ±"),
        ("links", ["--head", "L1H1", "--quantity", "gradient"], "Width and darkness: 0 to ±"),
        ("grid", ["--quantity", "norm"], "Kobayashi et al. 2020"),
        ("grid", ["--quantity", "rollout"], "Abnar & Zuidema 2020"),
        ("compare", ["--head", "L1H1", "--and", "the cat [MASK] the boy .", "--quantity", "gradient"], "Gradient"),
        ("difference", ["--head", "L1H1", "--head", "L1H2", "--quantity", "norm"], "Norm of the value"),
        ("heatmap", ["--head", "L1H1", "--without", "L0H1"], "without L0H1: zero"),
    ],
)
def test_figures_of_every_quantity(
    kind: str, options: list[str], caption: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for suffix in (".svg", ".html"):
        out = tmp_path / f"figure{suffix}"
        assert main(["figure", kind, TEXT, *TOY, *options, "--caption", "--out", str(out)]) == 0
        assert out.stat().st_size > 1000
        assert caption in capsys.readouterr().out
