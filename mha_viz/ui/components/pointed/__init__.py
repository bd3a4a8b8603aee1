"""The word under the pointer is marked in every chart of a page, in the browser alone."""

from __future__ import annotations

from collections.abc import Sequence

from mha_viz.ui.components import drawing

_mount = drawing("pointed")


def follow(tokens: Sequence[int], colour: str) -> None:
    """Mark the token under the pointer in charts that name their tokens, in the words above them, and in the table with
    one row per item of ``tokens``."""
    _mount(key="pointed", data={"tokens": list(tokens), "colour": colour}, width="content")
