"""Cards of heads that show where a head points in the first of the built-in sentences only: a model takes ten seconds
to read them all, in every process."""

from __future__ import annotations

from typing import Any

import pytest

from mha_viz.errors import Cancelled
from mha_viz.models import catalog
from mha_viz.reader import verbs
from mha_viz.ui import studies as room
from mha_viz.ui.annotated import built_in
from mha_viz.ui.cache import office
from mha_viz.ui.jobs import Job
from mha_viz.ui.shelves import Shelf

FEW = 50
_pointers: Shelf[str, Any] = Shelf(10**8, lambda _: 1)  # kept for all tests of this process


def read_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the built-in sentences after the first ones count as unreadable. The fixture ``empty_home`` comes
    before this, because it replaces the desk of studies."""
    monkeypatch.setattr(room, "_pointed", _pointed)
    monkeypatch.setattr(room.studies(), "_pointers", _pointers)


def _pointed(model: catalog.Model, job: Job) -> tuple[Any, ...]:
    pointers = office().ask(verbs.point, model.name, 0, FEW).result()
    if job.stopped():
        raise Cancelled("The reading of the built-in sentences was stopped.", "Open the head again.")
    job.tell(1)
    return (*pointers, *[None] * (len(built_in().sentences) - FEW))
