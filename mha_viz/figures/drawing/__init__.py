"""The elements of a static figure: marks in points, and fonts."""
