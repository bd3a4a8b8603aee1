"""From the names that a person gives to models, readings and folders."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from mha_viz.attention import Attention
from mha_viz.cli.terminal import downloading
from mha_viz.errors import ExportError
from mha_viz.models import catalog, hub
from mha_viz.models.catalog import Model


def chosen(name: str) -> Model:
    """The model that a name means; here a folder may be named without "./" before it."""
    is_folder = False
    with suppress(OSError, ValueError):  # what cannot be a file's name is no folder
        is_folder = "/" not in name and name not in catalog.CATALOG and (Path(name) / "config.json").is_file()
    return catalog.resolve(f"./{name}" if is_folder else name)


def loaded(model: Model, device: str = "cpu") -> Any:
    """The model, ready to read; downloaded first if need be."""
    if hub.local_folder(model) is None:
        with downloading(model.name) as show:
            hub.fetch(model, progress=show)
    from mha_viz.models.encoder import load  # loads torch: 2 s that `models` and `serve` do not need

    return load(model.name, device)


def read(model: Model, text: str, pair: str) -> Attention:
    """What every head does with a text; a cut is said on stderr."""
    attention: Attention = loaded(model).encode(text, pair)
    cut = attention.text.cut
    if cut and cut.pieces <= cut.limit:
        kept = " and ".join(f"{n:,}" for n in cut.kept if n)
        print(f"mha-viz: the text is very long; its first {kept} characters are read.", file=sys.stderr)
    elif cut:
        pieces = f"more than {cut.pieces}" if cut.more else str(cut.pieces)
        print(f"mha-viz: the text has {pieces} pieces; {model.name} reads the first {cut.limit}.", file=sys.stderr)
    return attention


def make_folder(path: Path) -> None:
    """Make a folder unless it is there. Raises ExportError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise ExportError(f"The folder {str(path)[:200]} cannot be made: {said.lower()}.", "Choose another.") from error
