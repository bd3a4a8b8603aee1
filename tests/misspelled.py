"""Options of figures as a type checker sees them.

`make check` reads this file. An expected error that the checker does not find is an unneeded comment, which is an error
too.
"""

from __future__ import annotations

import mha_viz as mv


def right(a: mv.Attention) -> None:
    """Use what the options allow."""
    a.grid(unit="words", width_mm=85).save("a.svg")
    a.links(3, 1, pin="q10", heads=["L3H1", (3, 4)]).to_bytes(".pdf")
    a.heatmap("L3H1", unit="pieces").save("b.svg")
    a.heatmap(3, 1, unit="pieces").save("c.svg")
    a.links((3, 1)).save("d.svg")
    mv.errors.MissingGlyphWarning("a")
    mv.difference(a, a, scale="row").caption.upper()


def wrong(a: mv.Attention) -> None:
    """Use what the options do not allow."""
    a.grid(colour="red")  # type: ignore[call-arg]
    a.heatmap(3, 1, unit="letters")  # type: ignore[call-overload]
    a.links(layer="3")  # type: ignore[call-overload]
    a.grid(heads=["L3H1"])  # type: ignore[list-item]
    mv.compare([(a, "L3H1")], width="85")  # type: ignore[call-arg]
    a.grid().show()  # type: ignore[attr-defined]
