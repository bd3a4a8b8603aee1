"""All files of a comparison in one zip file."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from mha_viz.errors import ExportError
from mha_viz.figure.figure import Figure
from mha_viz.figure.kinds import compare, difference, heatmap, links, panel_from, settings
from mha_viz.figures.compare import As
from mha_viz.figures.panels import pin_for, pin_in


def archive(
    panels: Sequence[Any],
    dpi: int = 300,
    kind: As = "heatmap",
    diff: tuple[int, int] | None = None,
    pin_of: int = 0,
    columns: int | None = None,
    **options: Any,
) -> bytes:
    """All files of a comparison as one zip file: the comparison itself, the difference of two panels if ``diff`` names
    them, each head as heatmap and links, all as SVG, PDF and PNG with their numbers (CSV), and the captions.

    Options: those of View and Size; ``kind``, ``pin_of`` and ``columns`` as for :func:`compare`. A PNG that would be
    too large at this ``dpi`` is left out, and captions.txt says so.
    """
    made = [panel_from(given) for given in panels]
    figures = {"comparison": compare(made, kind, columns, pin_of, diff, **options)}
    view, _, _ = settings(options)
    if diff is not None:
        at, pin = pin_for(made, diff, pin_of, view)
        one, two = (made[i] for i in diff)
        figures["difference"] = difference(one, two, pin_of=at, **options | {"pin": pin})
    for number, panel in enumerate(made, 1):
        pin = pin_in(made, number - 1, view, pin_of)
        alone = options | {"heads": [panel.head], "pin": pin}
        figures[f"{number}-{panel.head}-heatmap"] = heatmap(panel.attention, **alone)
        figures[f"{number}-{panel.head}-links"] = links(panel.attention, **alone)
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as file:
        captions = [_put(file, name, figure, dpi) for name, figure in figures.items()]
        file.writestr("captions.txt", "".join(captions))
    return buffer.getvalue()


def _put(file: ZipFile, name: str, figure: Figure, dpi: int) -> str:
    """Write one figure into an archive; returns its lines for captions.txt."""
    page = [".html"] if figure.page and figure.page.component == "compare" else []
    numbers = [] if name.endswith("links") else [".csv"]  # the numbers of the heatmap
    notes = ""
    for suffix in [".svg", ".pdf", ".png", *page, *numbers]:
        try:
            file.writestr(f"{name}{suffix}", figure.to_bytes(suffix, dpi))
        except ExportError as error:
            notes += f"\n(There is no {name}{suffix}. {error})"
    return f"{name}\n{figure.caption}{notes}\n\n"
