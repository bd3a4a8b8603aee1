"""All files of a comparison in one zip file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from mha_viz.errors import ExportError
from mha_viz.figures.figure import Figure
from mha_viz.figures.kinds import build_panel, compare, difference, heatmap, links, settings
from mha_viz.figures.layout.compare import PanelKind
from mha_viz.figures.layout.panels import choose_difference_pin, convert_pin
from mha_viz.view.settings import keep_accepted


def archive(
    panels: Sequence[Any],
    dpi: int = 300,
    kind: PanelKind = "heatmap",
    diff: tuple[int, int] | None = None,
    pin_of: int = 0,
    columns: int | None = None,
    **options: Any,
) -> bytes:
    """Put all files of a comparison into one zip file.

    The file contains the comparison, the difference of two panels, each head as heatmap and as links, all as SVG, PDF
    and PNG with their numbers (CSV), and the captions.

    Args:
        panels: as for :func:`compare`.
        dpi: dots per inch of PNG files. A PNG that would be too large is left out, and captions.txt says so.
        kind: as for :func:`compare`.
        diff: two panels, counted from 0, whose difference is drawn.
        pin_of: as for :func:`compare`.
        columns: as for :func:`compare`.
        **options: the options of View and Size.

    Returns the bytes of the file. Raises as :func:`compare`.
    """
    all_panels = [build_panel(item) for item in panels]
    figures = [compare(all_panels, kind, columns, pin_of, diff, **keep_accepted("compare", options))]
    view, _, _ = settings(options)
    if diff is not None:
        pin_side, pin = choose_difference_pin(all_panels, diff, pin_of, view)
        first, second = (all_panels[i] for i in diff)
        figures.append(
            difference(first, second, pin_of=pin_side, **keep_accepted("difference", options | {"pin": pin}))
        )
    for number, panel in enumerate(all_panels, 1):
        pin = convert_pin(all_panels, number - 1, view, pin_of)
        head_options = options | {"heads": [panel.head], "pin": pin}
        head_figures = (
            heatmap(panel.attention, **keep_accepted("heatmap", head_options)),
            links(panel.attention, **head_options),
        )
        figures += [replace(figure, name=f"{number}_{figure.name}") for figure in head_figures]
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as file:
        captions = [_add_figure(file, figure, dpi) for figure in figures]
        file.writestr("captions.txt", "".join(captions))
    return buffer.getvalue()


def _add_figure(file: ZipFile, figure: Figure, dpi: int) -> str:
    """Write one figure into an archive and return its lines for captions.txt."""
    page_suffixes = [".html"] if figure.page and figure.page.component == "compare" else []
    is_links = figure.page is not None and figure.page.show == "links"
    number_suffixes = [] if is_links else [".csv"]  # the numbers of the heatmap
    name, notes = figure.name, ""
    for suffix in [".svg", ".pdf", ".png", *page_suffixes, *number_suffixes]:
        try:
            file.writestr(f"{name}{suffix}", figure.make_file(suffix, dpi))
        except ExportError as error:
            notes += f"\n(There is no {name}{suffix}. {error})"
    return f"{name}\n{figure.caption}{notes}\n\n"
