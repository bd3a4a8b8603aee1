"""Figures for notebooks and scripts, displayed in Jupyter and saved in any format.

>>> import mha_viz as mv
>>> a = mv.load("minilm").encode("The animal didn't cross the street because it was too tired.")
>>> a.links(layer=3, head=1, pin="q10").save("links.svg")
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mha_viz.figures.bundle import archive
    from mha_viz.figures.figure import Figure, Page
    from mha_viz.figures.files import figure_suffixes as suffixes
    from mha_viz.figures.kinds import chart, compare, difference, grid, heatmap, links, overlay
    from mha_viz.figures.layout import Size
    from mha_viz.figures.layout.view import View
    from mha_viz.figures.publishing import publication, publish

__all__ = [
    "Figure",
    "Page",
    "Size",
    "View",
    "archive",
    "chart",
    "compare",
    "difference",
    "grid",
    "heatmap",
    "links",
    "overlay",
    "publication",
    "publish",
    "suffixes",
]

# The modules of public names, which are imported on first use because the subpackages do not need them.
_HOMES = MappingProxyType(
    {
        "Figure": "figure",
        "Page": "figure",
        "Size": "layout",
        "View": "layout.view",
        "archive": "bundle",
        "chart": "kinds",
        "compare": "kinds",
        "difference": "kinds",
        "grid": "kinds",
        "heatmap": "kinds",
        "links": "kinds",
        "overlay": "kinds",
        "publication": "publishing",
        "publish": "publishing",
        "suffixes": "files:figure_suffixes",
    }
)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(import_module(f"{__name__}.{module}"), attribute or name)


def __dir__() -> list[str]:
    """Return every name, including those that are imported on first use."""
    return sorted({*globals(), *__all__})
