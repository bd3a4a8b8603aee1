"""A figure, which Jupyter displays and which can be saved in any format."""

from __future__ import annotations

import math
import os
import tempfile
import webbrowser
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from mha_viz.errors import (
    PATH_KIND,
    ExportError,
    FigureWarning,
    MissingGlyphWarning,
    SettingError,
    check_kind,
    shorten_value,
    warn,
)
from mha_viz.figures import files
from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import POINTS_PER_MM, Drawing
from mha_viz.figures.drawing.table import Table
from mha_viz.figures.files import FigureNumbers
from mha_viz.figures.files.page import Look, embed_page, render_page
from mha_viz.figures.layout import Size
from mha_viz.process.progress import is_in_notebook

NOTEBOOK_DPI = 110  # of the picture that accompanies the interactive drawing
NO_PAGE_MM = 10_000.0  # no height limit: a figure on Axes is not cut to a page but drawn smaller
HEIGHTS = {"all": 820, "grid": 560, "links": 690, "heatmap": 690, "compare": 760}  # pixels of a notebook's frame


@dataclass(frozen=True)
class Page:
    """The interactive version of a figure: a component, its data, and its initial view."""

    component: str
    packet: Callable[[], bytes]
    start: Mapping[str, str]
    show: str


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure. Jupyter shows it as an interactive drawing, offline; :meth:`save` writes it in any format."""

    make: Callable[[Size], Drawing]
    page: Page | None  # None for a chart, which has no interactive version
    numbers: Callable[[], FigureNumbers]
    size: Size = field(default_factory=Size)
    look: Look = "auto"  # colour scheme of the interactive version; "auto" is the reader's own
    file_errors: tuple[SettingError, ...] = ()  # of settings that only the interactive version shows
    name: str = "figure"  # of its files, without a suffix

    @cached_property
    def drawing(self) -> Drawing:
        """The static figure: a list of marks in points."""
        drawing = self._base_drawing
        boxes = fonts.describe_boxes(drawing.texts())
        return replace(drawing, caption=f"{drawing.caption} {boxes}") if boxes else drawing

    @cached_property
    def _base_drawing(self) -> Drawing:
        """The drawing, independent of the fonts on this machine."""
        return self.make(self.size)

    @cached_property
    def _glyph_warning(self) -> bool:
        """Whether characters have no glyph. Only the first access issues a warning."""
        if self.missing_glyphs:
            warn(MissingGlyphWarning, " ".join(self.missing_glyphs))
        return bool(self.missing_glyphs)

    @cached_property
    def missing_glyphs(self) -> list[str]:
        """One sentence per script with characters that no font on this machine has."""
        return fonts.describe_missing_fonts(self._base_drawing.texts())

    @property
    def caption(self) -> str:
        """The text to print below the figure: model, sentence, heads, steps, and any hidden or omitted parts."""
        return self.drawing.full_caption

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Every suffix that the figure can be saved with.

        A chart has no interactive page, and its numbers are saved as a table.
        """
        return files.figure_suffixes() if self.page else (*files.drawing_suffixes(), *files.shown_suffixes(Table))

    @property
    def warnings(self) -> tuple[str, ...]:
        """The problems of the static picture, one or two sentences each, which :meth:`save` issues as warnings."""
        return tuple(map(str, self._base_drawing.notes))

    def save(self, path: str | os.PathLike[str], dpi: int = 300) -> Path:
        """Write the figure as .svg, .pdf, .png (``dpi``) or .html, or its numbers as .csv, .npz, .safetensors, .json.

        A picture that leaves parts out, is higher than its page or has letters too small to print causes a
        FigureWarning.

        Characters that no font on this machine has are drawn as boxes: a MissingGlyphWarning names them, once per
        figure, and so does the caption.

        Raises ExportError for another suffix or a place that cannot be written, and SettingError for a setting that
        only the interactive version shows; no half-written file is left.
        """
        check_kind(path, *PATH_KIND)
        if Path(path).is_dir():
            raise ExportError(f"{str(path)[:100]!r} is a folder.", f"Name a file in it, such as {self.name}.svg.")
        suffix = Path(path).suffix
        for line in self.warnings if suffix.lower() in files.drawing_suffixes() else ():
            warn(FigureWarning, line)
        return files.write_bytes(path, lambda: self.to_bytes(suffix, dpi))

    def to_bytes(self, suffix: str, dpi: int = 300) -> bytes:
        """Return the content of the file.

        ``suffix`` is as in :meth:`save`. Raises ExportError, and SettingError for a setting that only the interactive
        version shows.
        """
        check_kind(suffix, str, "the end of a file's name", "Give one such as '.svg'.")
        if self.file_errors and suffix.lower() in (*files.drawing_suffixes(), *files.shown_suffixes()):
            raise self.file_errors[0]
        return self.make_file(suffix.lower(), dpi)

    def make_file(self, suffix: str, dpi: int = 300) -> bytes:
        """Return the content of the file, ignoring settings that only the interactive version shows.

        ``suffix`` is as in :meth:`save`, in lower case. Raises ExportError.
        """
        if suffix == ".html" and self.page:
            return self.to_html().encode()
        if suffix in files.shown_suffixes():
            return files.encode_shown(self.numbers(), suffix)
        if suffix not in files.drawing_suffixes():
            raise ExportError(*_unknown_format(suffix, self.suffixes))
        _ = self._glyph_warning
        return files.drawing_bytes(self.drawing, suffix, dpi)

    def to_html(self) -> str:
        """Return the interactive figure as one self-contained HTML page, without network access or third-party scripts.

        Raises ExportError for a chart, which has no interactive version.
        """
        page = self.page
        if page is None:
            raise ExportError(*_unknown_format(".html", self.suffixes))
        return render_page(
            page.component,
            page.packet(),
            title=self._base_drawing.alt,
            caption=self._base_drawing.caption,  # drawn with the reader's fonts
            start=page.start,
            show=page.show,
            look=self.look,
        ).decode()

    def figure(self, ax: Any = None) -> Any:
        """Draw the static figure into a matplotlib Axes and return it.

        The figure is laid out again to fit ``ax``, so that its labels have the requested size; if it is too high at
        every width, the whole figure is drawn smaller. Without ``ax``, a new matplotlib figure of the figure's size is
        made.

        Raises SettingError, also for a setting that only the interactive version shows.
        """
        if ax is not None and not hasattr(ax, "add_patch"):
            raise SettingError(
                f"ax is {shorten_value(ax)!r}.", "Give an Axes of matplotlib, or nothing for a new figure."
            )
        if self.file_errors:
            raise self.file_errors[0]
        _ = self._glyph_warning
        return files.draw(self.drawing if ax is None else self._fit_to(*files.measure_axes(ax)), ax)

    def _fit_to(self, width: float, height: float) -> Drawing:
        """Return the drawing whose labels come closest to the requested size within this many points."""

        def draw(points: float) -> Drawing:
            width_mm = max(20.0, min(2000.0, points / POINTS_PER_MM))
            return self.make(replace(self.size, width_mm=width_mm, max_height_mm=NO_PAGE_MM))

        def measure_scaling(drawing: Drawing) -> float:
            return round(abs(math.log(min(width / drawing.width, height / drawing.height))), 3)

        drawings = [draw(width)]
        if drawings[0].height > height:
            drawings.append(draw(width * drawings[0].height / height))  # a wider drawing may fill the Axes better
        while drawings[0].height > height and len(drawings) < 6:  # narrower is lower, but not always in proportion
            drawings.insert(0, draw(drawings[0].width * max(0.5, height / drawings[0].height)))
        return min(drawings, key=lambda drawing: (measure_scaling(drawing), -drawing.width))

    def show(self) -> None:
        """Display the figure: in a notebook below the cell, elsewhere in the browser.

        The browser opens a file in a temporary folder. Raises ExportError if no browser opens.
        """
        if is_in_notebook():
            import_module("IPython.display").display(self)
            return
        suffix = ".html" if self.page else ".svg"
        folder = Path(tempfile.mkdtemp(prefix="mha_viz-"))
        file = self.save(folder / f"{self.name}{suffix}")
        if not webbrowser.open(file.as_uri()):
            raise ExportError("No browser opened.", f"Open {file} yourself, or save the figure to a file: save(path).")

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Return the drawing for a notebook, with a picture for viewers that show a saved notebook without scripts."""
        png = b64encode(self.make_file(".png", NOTEBOOK_DPI)).decode()
        return {"text/html": self._repr_html_(), "image/png": png, "text/plain": repr(self)}

    def _repr_html_(self) -> str:
        if self.page is None:
            return self.to_bytes(".svg").decode().partition("?>")[2]
        return embed_page(self.to_html().encode(), HEIGHTS[self.page.show if self.page.show in HEIGHTS else "compare"])

    def __repr__(self) -> str:
        return f"Figure({self.drawing.alt[:100]})"


def _unknown_format(suffix: str, formats: Sequence[str]) -> tuple[str, str]:
    """Return the two sentences of the error for an unknown suffix."""
    problem = f"“{suffix[:40]}” is not a format of this figure." if suffix else "The file has no suffix."
    return problem, f"Use one of {', '.join(formats)}."
