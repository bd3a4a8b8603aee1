"""Choosing, loading and running a model for a command, and making its output folder."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from mha_viz.attention import Attention
from mha_viz.cli.terminal import downloading
from mha_viz.models import catalog, hub
from mha_viz.models.catalog import Model


def choose_model(name: str) -> Model:
    """The model with a name; on the command line a folder may be given without "./" in front."""
    is_folder = False
    with suppress(OSError, ValueError):  # an invalid file name is not a folder
        is_folder = "/" not in name and name not in catalog.CATALOG and Path(name).exists()
    return catalog.resolve(f"./{name}" if is_folder else name)


def load_model(model: Model, device: str = "cpu") -> Any:
    """Load a model, and download it first if necessary."""
    if hub.local_folder(model) is None:
        with downloading(model.name) as show:
            hub.fetch(model, progress=show)
    from mha_viz.models.encoder import load  # loads torch: 2 s that `models` and `serve` do not need

    return load(model.name, device)


def read(model: Model, text: str, pair: str) -> Attention:
    """The attention of every head on a text; a cut text is reported on stderr."""
    attention: Attention = load_model(model).encode(text, pair)
    cut = attention.text.cut
    if cut and cut.pieces <= cut.limit:
        lengths = " and ".join(f"{n:,}" for n in cut.kept if n)
        print(f"mha-viz: the text is very long; its first {lengths} characters are read.", file=sys.stderr)
    elif cut:
        pieces = f"more than {cut.pieces}" if cut.more else str(cut.pieces)
        print(f"mha-viz: the text has {pieces} pieces; {model.name} reads the first {cut.limit}.", file=sys.stderr)
    return attention
