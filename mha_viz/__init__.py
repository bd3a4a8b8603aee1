"""See what each attention head does.

>>> import mha_viz as mv
>>> a = mv.load("minilm").encode("The animal didn't cross the street because it was too tired.")
>>> a[mv.Head(3, 1)]  # [query, key], each row sums to 1
>>> a.links(layer=3, head=1, pin="q10")  # shows itself in Jupyter; .save("links.svg") writes a file
>>> mv.compare([(a, "L3H1"), (a, "L5H11")])
>>> mv.open_attention(a.save("animal.npz")).key == a.key
True
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mha_viz.attention import Attention, Head, draws
from mha_viz.errors import MhaVizError
from mha_viz.version import __version__

if TYPE_CHECKING:
    from mha_viz.exports import open_attention
    from mha_viz.figure import Figure, compare, difference
    from mha_viz.models.encoder import load

__all__ = [
    "Attention",
    "Figure",
    "Head",
    "MhaVizError",
    "__version__",
    "compare",
    "difference",
    "load",
    "open_attention",
]

_NOTEBOOK = ("Figure", "compare", "difference")


def __getattr__(name: str) -> Any:
    if name == "load":  # on first use: it brings torch, which takes seconds
        from mha_viz.models.encoder import load

        return load
    if name == "open_attention":
        from mha_viz.exports import open_attention

        return open_attention
    if name in _NOTEBOOK:
        from mha_viz import figure as figure_api

        return getattr(figure_api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Every name, those that are imported on first use among them."""
    return sorted({*globals(), *__all__})


def _drawn_by(name: str) -> Callable[..., Any]:
    """The notebook's function of this name, imported when it is first called."""

    def draw(*arguments: Any, **options: Any) -> Any:
        from mha_viz import figure as figure_api

        return getattr(figure_api, name)(*arguments, **options)

    return draw


def _save(attention: Attention, path: str | os.PathLike[str]) -> Path:
    from mha_viz.exports import write

    return write(attention, path)


draws("save", _save)
for _name in ("grid", "heatmap", "links"):
    draws(_name, _drawn_by(_name))
