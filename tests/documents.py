"""Make the blocks and commands of the documentation run in seconds."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from mha_viz.corpus import grammar, sources
from mha_viz.lab import toy_model
from mha_viz.models.reading import loading
from mha_viz.models.reading.encoder import Encoder

SENTENCES, EXAMPLES = 30, 500  # of the built-in corpora and for training, instead of all


def lighten_models(monkeypatch: pytest.MonkeyPatch, minilm: Encoder) -> None:
    """Make the documentation's code fast: open each model once, shorten built-in corpora, and train on few examples."""
    load, untrained, sample = loading.load, Encoder.untrained, toy_model._sample_examples

    @cache
    def load_once(model: str, device: str = "cpu", dtype: str = "float32", name: str = "") -> Any:
        is_minilm = (model, dtype, name) == ("minilm", "float32", "")
        return minilm if is_minilm else load(model, device, dtype=dtype, name=name)

    monkeypatch.setattr(loading, "load", load_once)
    monkeypatch.setattr(Encoder, "untrained", cache(lambda self, seed=0: untrained(self, seed)))
    for module, name in ((grammar, "corpus"), (sources, "make_repeats")):
        make = getattr(module, name)
        monkeypatch.setattr(module, name, lambda count=SENTENCES, seed=0, make=make: make(count, seed))
    monkeypatch.setattr(toy_model, "_sample_examples", lambda count, *more: sample(min(count, EXAMPLES), *more))
