"""What a type checker says of programs that use the package: ``make check`` runs it over this file. It accepts the lines
without a comment and finds the mistake in all others, or reports the comment as unused. Nothing here is run."""

import mha_viz as mv


def draw(a: mv.Attention) -> None:
    """Right and wrong options."""
    a.grid(unit="words", width_mm=85).save("a.svg")
    a.links(3, 1, pin="q10", heads=["L3H1", (3, 4)]).to_bytes(".pdf")
    a.heatmap("L3H1", unit="pieces").save("b.svg")
    a.links((3, 1)).save("c.svg")
    mv.MissingGlyphWarning("a")
    a.grid(colour="red")  # type: ignore[call-arg]
    a.heatmap(3, 1, unit="letters")  # type: ignore[call-overload]
    a.links(layer="3")  # type: ignore[call-overload]
    a.grid(heads=["L3H1"])  # type: ignore[call-arg]
    mv.compare([(a, "L3H1")], width="85")  # type: ignore[call-arg]
    a.grid().show()  # type: ignore[attr-defined]
    mv.difference(a, a, scale="row").caption.upper()
