"""What lets the blocks and commands of the documentation run in seconds: they load the same models many times."""

from __future__ import annotations

from functools import cache

import pytest

from mha_viz.corpus import grammar
from mha_viz.models import encoder
from mha_viz.models.encoder import Encoder

SENTENCES = 60  # of the built-in corpus; all of it is measured elsewhere


def are_light(monkeypatch: pytest.MonkeyPatch, minilm: Encoder) -> None:
    """Each model, and its untrained copy, is made once, and the built-in corpus is short."""
    load, untrained, corpus = encoder.load, Encoder.untrained, grammar.corpus
    once = cache(lambda name, device="cpu": minilm if name == "minilm" else load(name, device))
    monkeypatch.setattr(encoder, "load", once)
    monkeypatch.setattr(Encoder, "untrained", cache(lambda self, seed=0: untrained(self, seed)))
    monkeypatch.setattr(grammar, "corpus", lambda count=SENTENCES, seed=0: corpus(count, seed))
