"""See what each attention head does.

>>> import mha_viz
>>> attention = mha_viz.load("minilm").encode("The animal didn't cross the street because it was too tired.")
>>> attention[mha_viz.Head(3, 1)]  # [query, key], each row sums to 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mha_viz.attention import Attention, Head
from mha_viz.errors import MhaVizError

if TYPE_CHECKING:
    from mha_viz.models.encoder import load

__version__ = "0.1.0"
__all__ = ["Attention", "Head", "MhaVizError", "__version__", "load"]


def __getattr__(name: str) -> Any:
    if name == "load":  # on first use: it brings torch, which takes seconds
        from mha_viz.models.encoder import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
