"""Limit the cards of heads to the first few built-in sentences, because reading all of them takes ten seconds."""

from __future__ import annotations

from typing import Any

import pytest

from mha_viz.app.service import studies
from mha_viz.app.service.caches import BoundedCache, get_model_service
from mha_viz.app.service.jobs import get_queue
from mha_viz.app.service.reader import verbs
from mha_viz.app.url.annotated_texts import load_built_in_corpus
from mha_viz.models.getting import catalog
from mha_viz.process.steps import Steps

FEW = 50
_pointers: BoundedCache[str, Any] = BoundedCache(10**8, lambda _: 1)  # shared by all tests of this process


def limit_built_in_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat all built-in sentences after the first ``FEW`` as unreadable."""
    monkeypatch.setattr(studies, "read_pointers", _find_pointers)
    monkeypatch.setattr(get_queue("pointers"), "results", _pointers)


def _find_pointers(model: catalog.Model) -> Steps[tuple[Any, ...]]:
    pointers = get_model_service().ask(verbs.find_pointers, model.name, 0, FEW).result()
    yield 1.0
    return (*pointers, *[None] * (len(load_built_in_corpus().sentences) - FEW))
