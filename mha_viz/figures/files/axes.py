"""Draw on matplotlib Axes, for users who compose figures themselves."""

from __future__ import annotations

from typing import Any

from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.font_file import Font
from mha_viz.figures.drawing.marks import Curve, Drawing, Mark, Polyline, Rect, Text


def draw(drawing: Drawing, ax: Any = None) -> Any:
    """Draw on ``ax``, or on the Axes of a new figure of the drawing's size, and return the Axes.

    The coordinates of the Axes are points, y downward, with equal aspect and no frame. Text and lines are scaled with
    the drawing to the current size of the Axes.
    """
    import matplotlib.pyplot as plt
    from matplotlib.font_manager import FontProperties, fontManager

    if ax is None:
        figure = plt.figure(figsize=(drawing.width / 72, drawing.height / 72))
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    registered_paths = {entry.fname for entry in fontManager.ttflist}
    for font in _list_fonts(drawing):
        if font.path not in registered_paths:
            fontManager.addfont(font.path)
    families = list(dict.fromkeys(font.family for font in _list_fonts(drawing)))
    width, height = measure_axes(ax)
    scale = min(width / drawing.width, height / drawing.height)  # points of the Axes per point of the drawing
    for order, mark in enumerate(_add_background(drawing)):
        _draw_mark(ax, mark, order, scale, lambda weight: FontProperties(family=families, weight=weight))
    ax.set(xlim=(0, drawing.width), ylim=(drawing.height, 0), aspect="equal")
    ax.axis("off")
    return ax


def measure_axes(ax: Any) -> tuple[float, float]:
    """Return the current width and height of the Axes, in points."""
    box, (width, height) = ax.get_position(), ax.figure.get_size_inches()
    return float(box.width * width * 72), float(box.height * height * 72)


def _add_background(drawing: Drawing) -> tuple[Mark, ...]:
    """Return the marks on a background of the drawing's size, not of the whole figure's."""
    if drawing.background is None:
        return drawing.marks
    return (Rect(0, 0, drawing.width, drawing.height, fill=drawing.background), *drawing.marks)


def _list_fonts(drawing: Drawing) -> list[Font]:
    texts = [(mark.text, mark.weight) for mark in drawing.marks if isinstance(mark, Text)]
    return list(dict.fromkeys([fonts.get_face(400), fonts.get_face(600), *fonts.list_needed_fonts(texts)]))


def _convert_dashes(curve: Curve | Polyline, width: float) -> list[float]:
    """Return the lengths of dashes in matplotlib's unit: line widths or, depending on its settings, points."""
    from matplotlib import rcParams

    unit = width if rcParams["lines.scale_dashes"] else 1.0
    return [length / unit for length in curve.dash]


def _draw_mark(ax: Any, mark: Mark, order: int, scale: float, font: Any) -> None:
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    if isinstance(mark, Text):
        align = {"start": "left", "middle": "center", "end": "right"}[mark.anchor]
        ax.text(
            mark.x, mark.y, fonts.replace_unwritable(mark.text), color=mark.colour, alpha=mark.opacity, ha=align,
            va="center_baseline" if not mark.turn else "center", rotation=mark.turn, rotation_mode="anchor",
            parse_math=False, zorder=order, fontproperties=font(mark.weight), fontsize=mark.size * scale,
        )  # fmt: skip
    elif isinstance(mark, Curve):
        path = Path(list(mark.points), [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        stroke = {"edgecolor": mark.colour, "linewidth": mark.width * scale, "alpha": mark.opacity, "zorder": order}
        stroke |= {"linestyle": (0, _convert_dashes(mark, mark.width))} if mark.dash else {}
        ax.add_patch(PathPatch(path, facecolor="none", **stroke))
    elif isinstance(mark, Polyline):
        points = [*mark.points, mark.points[0]] if mark.fill else list(mark.points)
        line_style = {"edgecolor": mark.stroke or "none", "linewidth": mark.stroke_width * scale, "zorder": order}
        line_style |= {"linestyle": (0, _convert_dashes(mark, mark.stroke_width))} if mark.dash else {}
        ax.add_patch(PathPatch(Path(points), facecolor=mark.fill or "none", alpha=mark.opacity, **line_style))
    elif isinstance(mark, Rect):
        box: dict[str, Any] = {"facecolor": mark.fill or "none", "edgecolor": mark.stroke or "none"}
        box |= {"linewidth": mark.stroke_width * scale}
        ax.add_patch(Rectangle((mark.x, mark.y), mark.width, mark.height, alpha=mark.opacity, zorder=order, **box))
    else:
        extent = (mark.x, mark.x + mark.width, mark.y + mark.height, mark.y)
        ax.imshow(mark.pixels, extent=extent, interpolation="nearest", zorder=order, aspect="equal")
