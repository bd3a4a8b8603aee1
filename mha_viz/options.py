"""The keyword options of figures and the methods of a figure, for editors and type checkers.

``mha_viz.view`` describes the effect of each setting of a view; a test compares the two.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypedDict

from mha_viz.view.settings import OPTIONS, check_value

__all__ = [
    "AnyFigure",
    "CacheOptions",
    "GridOptions",
    "HeadOptions",
    "Options",
    "ViewOptions",
    "get_function",
    "register_function",
]

_FUNCTIONS: dict[str, Callable[..., Any]] = {}  # functions for figures, files and tables, by name


def register_function(name: str, function: Callable[..., Any]) -> None:
    """Register the function that draws, measures or saves a reading.

    Only the package itself calls this, because drawings, measures and files are in higher layers, which lower layers
    must not import.
    """
    if name in _FUNCTIONS:
        raise ValueError(f"Two functions are registered as {name}.")
    _FUNCTIONS[name] = function


def get_function(name: str) -> Callable[..., Any]:
    """Return the function that was registered under a name."""
    return _FUNCTIONS[name]


class Options(TypedDict, total=False):
    """Options of every figure.

    ``unit``: words or pieces. ``special``: keep or hide special tokens, or hide them and rescale rows to sum to 1.
    ``links``: all, "top3" (keys per query), "min0.10" (weight), "mass0.70" (share of a row). ``scale``: fixed (0 to 1,
    the default for shares), head (to the largest weight shown, the default for other numbers), row, log. ``side``, for
    pairs: all, or from and to, as "ab". ``pin``: "q10" pins query token 10, "k1" key token 1, "q10k1" one link.
    ``width_mm`` or ``width_in``: the width of the figure (77 or 85 mm fits one column, 178 two; by default 77 for a
    single map whose text has room there, and otherwise 178). ``max_height_mm``: its maximum height (220 leaves room for
    a caption on A4); a longer link diagram is set in columns, or shows the part around the pin. ``font_pt``: the size
    of the labels in points. ``look``: light, dark, or grey for print without colour. ``transparent``: no background.
    """

    unit: Literal["words", "pieces"]
    special: Literal["keep", "hide", "rescale"]
    links: str
    scale: Literal["fixed", "head", "row", "log"]
    side: Literal["all", "aa", "ab", "ba", "bb"]
    pin: str
    width_mm: float
    max_height_mm: float
    width_in: float
    font_pt: float
    look: Literal["light", "dark", "grey"]
    transparent: bool


@dataclass(frozen=True)
class ViewOptions:
    """The settings of a view, with their defaults; an empty ``scale`` means the quantity's default.

    Raises SettingError for an invalid value.
    """

    unit: str = OPTIONS["unit"].default
    special: str = OPTIONS["special"].default
    links: str = OPTIONS["links"].default
    scale: str = ""
    side: str = OPTIONS["side"].default
    pin: str = OPTIONS["pin"].default

    def __post_init__(self) -> None:
        for name in OPTIONS:
            check_value(name, getattr(self, name))


class HeadOptions(Options, total=False):
    """Options of a figure of selected heads. ``heads`` names them, as "L3H1" or (3, 1), in place of layer and head."""

    heads: Sequence[str | tuple[int, int]]


class CacheOptions(TypedDict, total=False):
    """Options of ``Attention.from_cache``.

    ``names`` is a pattern for the names of the entries to read, with {layer} for the layer:
    "decoder.{layer}.attn.hook_pattern". ``w_o``: each head's slice of W_O, [layer, head, d_head, d_model]. ``values``:
    an array per layer, [key, head, d_head] or [text, key, head, d_head], b_V included. The other options are as
    for ``Attention.from_tensors``.
    """

    names: str
    w_o: Any
    values: Any
    layers: Any
    mask: Any
    keys_mask: Any
    text: Any
    keys_text: Any
    offsets: Any
    keys_offsets: Any
    sentence_b_start: Any
    sink: bool
    model: str
    revision: str


class GridOptions(Options, total=False):
    """Options of a figure of all heads. ``layers`` and ``heads`` are numbers of layers and heads, by default all."""

    layers: Sequence[int]
    heads: Sequence[int]


class AnyFigure(Protocol):
    """The interface of ``mha_viz.figures.Figure``, which Jupyter displays and which can be saved."""

    @property
    def name(self) -> str:
        """The name of the figure's files, without a suffix: "L3H1_the-animal-didnt-cross"."""

    @property
    def caption(self) -> str:
        """The text to print below the figure."""

    @property
    def drawing(self) -> Any:
        """The static figure: a list of marks in points."""

    def save(self, path: str | os.PathLike[str], dpi: int = 300) -> Path:
        """Write the figure, or its numbers, in the format that the suffix names."""

    def to_bytes(self, suffix: str, dpi: int = 300) -> bytes:
        """Return the bytes that :meth:`save` would write."""

    def to_html(self) -> str:
        """Return the interactive figure as one HTML page."""

    def figure(self, ax: Any = None) -> Any:
        """Draw the static figure into a matplotlib Axes."""
