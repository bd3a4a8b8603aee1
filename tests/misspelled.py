"""Correct and wrong options of figures, for the type checker.

`make check` checks this file. If the checker misses an expected error, it reports the unused comment instead.
"""

from __future__ import annotations

import mha_viz as mv


def right(a: mv.Attention) -> None:
    """Use options with allowed types and values."""
    a.grid(unit="words", width_mm=85).save("a.svg")
    a.links(3, 1, pin="q10", heads=["L3H1", (3, 4)]).to_bytes(".pdf")
    a.heatmap("L3H1", unit="pieces").save("b.svg")
    a.heatmap(3, 1, unit="pieces").save("c.svg")
    a.links((3, 1)).save("d.svg")
    mv.errors.MissingGlyphWarning("a")
    mv.difference(a, a, scale="row").caption.upper()


def wrong(a: mv.Attention) -> None:
    """Use options with wrong names, types and values."""
    a.grid(colour="red")  # type: ignore[call-arg]
    a.heatmap(3, 1, unit="letters")  # type: ignore[call-overload]
    a.links(layer="3")  # type: ignore[call-overload]
    a.grid(heads=["L3H1"])  # type: ignore[list-item]
    mv.compare([(a, "L3H1")], width="85")  # type: ignore[call-arg]
    a.grid().show()  # type: ignore[attr-defined]
