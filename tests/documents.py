"""Make the blocks and commands of the documentation run in seconds."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from mha_viz.corpus import grammar, sources
from mha_viz.lab import toy_model
from mha_viz.models.reading import loading
from mha_viz.models.reading.encoder import Encoder

SENTENCES, EXAMPLES = 30, 500  # of the built-in corpus, and to learn from; all of them are used elsewhere


def lighten_models(monkeypatch: pytest.MonkeyPatch, minilm: Encoder) -> None:
    """Make documentation code fast: open each model once, shorten built-in corpora, and train little."""
    load, untrained, sample = loading.load, Encoder.untrained, toy_model._sample_examples

    @cache
    def once(model: str, device: str = "cpu", dtype: str = "float32", name: str = "") -> Any:
        is_usual = (model, dtype, name) == ("minilm", "float32", "")
        return minilm if is_usual else load(model, device, dtype=dtype, name=name)

    monkeypatch.setattr(loading, "load", once)
    monkeypatch.setattr(Encoder, "untrained", cache(lambda self, seed=0: untrained(self, seed)))
    for module, name in ((grammar, "corpus"), (sources, "repeats")):
        whole = getattr(module, name)
        monkeypatch.setattr(module, name, lambda count=SENTENCES, seed=0, whole=whole: whole(count, seed))
    monkeypatch.setattr(toy_model, "_sample_examples", lambda count, *more: sample(min(count, EXAMPLES), *more))
