"""Write a drawing as SVG: text stays text, and maps with few cells stay vector shapes; larger ones become images.

Nothing in the file can run or make requests.
"""

from __future__ import annotations

import base64
import io
import re
import unicodedata
from itertools import groupby
from xml.etree import ElementTree as Tree

import numpy as np
from PIL import Image

from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import CellPicture, Curve, Drawing, Mark, Pixels, Polyline, Rect, Text

SVG = "http://www.w3.org/2000/svg"
DUBLIN_CORE = "http://purl.org/dc/elements/1.1/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
MAX_EDITABLE_CELLS = 1_000  # maximum number of cells that are drawn as rectangles; above that, they are one image
FALLBACK_FONTS = ("Helvetica Neue", "Arial")  # less than a tenth wider than the screen's font
PICTURE_PIXELS = 256  # target size of the longer side of a picture of cells, pixels
FORBIDDEN_CHARACTERS = re.compile(
    "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)  # characters that XML cannot contain

for _prefix, _name in (("", SVG), ("dc", DUBLIN_CORE), ("rdf", RDF)):
    Tree.register_namespace(_prefix, _name)


def render_svg(drawing: Drawing, max_editable_cells: int = MAX_EDITABLE_CELLS, for_rasterising: bool = False) -> bytes:
    """Return the drawing as an SVG file; lengths are points.

    Maps of up to ``max_editable_cells`` cells are drawn as shapes, larger ones as one image. With ``for_rasterising``,
    filled rectangles have crisp edges, and cells are drawn as one path per colour instead of as separate rectangles.
    """
    width, height = _format_number(drawing.width), _format_number(drawing.height)
    size = {"width": f"{width}pt", "height": f"{height}pt", "viewBox": f"0 0 {width} {height}"}
    root = Tree.Element(_qualify(SVG, "svg"), size | {"role": "img"})
    Tree.SubElement(root, _qualify(SVG, "title")).text = _clean_xml(drawing.alt)
    Tree.SubElement(root, _qualify(SVG, "desc")).text = _clean_xml(drawing.full_caption)
    _add_metadata(root, drawing)
    if drawing.background:
        Tree.SubElement(root, _qualify(SVG, "rect"), {"width": width, "height": height, "fill": drawing.background})
    group = Tree.SubElement(root, _qualify(SVG, "g"), {"font-family": format_font_families(drawing), "fill": "none"})
    for mark in drawing.marks:
        _add_mark(group, mark, max_editable_cells, for_rasterising)
    content: bytes = Tree.tostring(root, "utf-8", xml_declaration=True)
    return content + b"\n"


def _add_metadata(root: Tree.Element, drawing: Drawing) -> None:
    """Add caption and settings as Dublin Core, which reference managers and image databases read."""
    rdf = Tree.SubElement(Tree.SubElement(root, _qualify(SVG, "metadata")), _qualify(RDF, "RDF"))
    description = Tree.SubElement(rdf, _qualify(RDF, "Description"), {_qualify(RDF, "about"): ""})
    Tree.SubElement(description, _qualify(DUBLIN_CORE, "creator")).text = "mha_viz"
    Tree.SubElement(description, _qualify(DUBLIN_CORE, "description")).text = _clean_xml(drawing.full_caption)
    for name, value in drawing.about.items():
        Tree.SubElement(description, _qualify(DUBLIN_CORE, "subject")).text = _clean_xml(f"{name}: {value}")


def format_font_families(drawing: Drawing) -> str:
    """Return the CSS list of font families for a drawing's text, in order of preference.

    These are the screen's font by its new and its old name, fonts of similar width, the fonts that the texts need on
    this machine, and any sans-serif font.
    """
    needed_families = [
        font.family
        for font in fonts.list_needed_fonts((m.text, m.weight) for m in drawing.marks if isinstance(m, Text))
    ]
    names = dict.fromkeys(["Source Sans 3", fonts.get_face(400).family, *FALLBACK_FONTS, *needed_families])
    return ", ".join([*(f"'{_clean_xml(name.replace(chr(39), ''))}'" for name in names), "sans-serif"])


def _add_mark(group: Tree.Element, mark: Mark, max_editable_cells: int, for_rasterising: bool) -> None:
    if isinstance(mark, Text):
        _add_text(group, mark)
    elif isinstance(mark, Curve):
        (x, y), *controls = mark.points
        path = (
            f"M{_format_number(x)} "
            f"{_format_number(y)}C{' '.join(f'{_format_number(x)} {_format_number(y)}' for x, y in controls)}"
        )
        style = {"stroke": mark.colour, "stroke-width": _format_number(mark.width)}
        style |= {"stroke-dasharray": " ".join(map(_format_number, mark.dash))} if mark.dash else {}
        Tree.SubElement(
            group, _qualify(SVG, "path"), {"d": path, **style, **_opacity_attributes(mark.opacity, "stroke")}
        )
    elif isinstance(mark, Polyline):
        _add_polyline(group, mark)
    elif isinstance(mark, Rect):
        style = {"fill": mark.fill, **_opacity_attributes(mark.opacity, "fill")} if mark.fill else {}
        if mark.stroke:
            style |= {"stroke": mark.stroke, "stroke-width": _format_number(mark.stroke_width)}
            style |= _opacity_attributes(mark.opacity, "stroke")
        elif for_rasterising:
            style |= {"shape-rendering": "crispEdges"}
        Tree.SubElement(group, _qualify(SVG, "rect"), {**_box_attributes(mark), **style})
    elif mark.pixels.shape[0] * mark.pixels.shape[1] <= max_editable_cells:
        (_add_colour_paths if for_rasterising else _add_rectangles)(group, mark)
    else:
        picture = {"href": f"data:image/png;base64,{_encode_png(mark)}", "preserveAspectRatio": "none"}
        rendering = {"image-rendering": "optimizeSpeed", "style": "image-rendering:pixelated"}
        Tree.SubElement(group, _qualify(SVG, "image"), {**_box_attributes(mark), **picture, **rendering})


def _add_polyline(group: Tree.Element, mark: Polyline) -> None:
    path = (
        "M" + "L".join(f"{_format_number(x)} {_format_number(y)}" for x, y in mark.points) + ("Z" if mark.fill else "")
    )
    style = {"fill": mark.fill, **_opacity_attributes(mark.opacity, "fill")} if mark.fill else {}
    if mark.stroke:
        style |= {"stroke": mark.stroke, "stroke-width": _format_number(mark.stroke_width), "stroke-linejoin": "round"}
        style |= _opacity_attributes(mark.opacity, "stroke")
    style |= {"stroke-dasharray": " ".join(map(_format_number, mark.dash))} if mark.dash else {}
    Tree.SubElement(group, _qualify(SVG, "path"), {"d": path, **style})


def _add_text(group: Tree.Element, mark: Text) -> None:
    runs = fonts.split_runs(mark.text, mark.weight)
    font = next((run.font for run in runs if run.font), fonts.get_face(mark.weight))
    style = {"font-size": _format_number(mark.size), "fill": mark.colour, **_opacity_attributes(mark.opacity, "fill")}
    style |= {"font-weight": str(mark.weight)} if mark.weight != 400 else {}
    style |= {"text-anchor": mark.anchor} if mark.anchor != "start" else {}
    # y is the middle of the line; viewers differ in `dominant-baseline`, so the baseline is computed.
    position = {"x": _format_number(mark.x), "y": _format_number(mark.y + font.middle * mark.size)}
    if mark.turn:
        position |= {
            "transform": f"rotate({_format_number(-mark.turn)} {_format_number(mark.x)} {_format_number(mark.y)})"
        }
    element = Tree.SubElement(group, _qualify(SVG, "text"), {**position, **style, "xml:space": "preserve"})
    element.text = embed_direction(fonts.replace_unwritable(mark.text))


def embed_direction(text: str) -> str:
    """Wrap text that begins right to left in an embedding, so that its full stop is on the left.

    Other text is returned unchanged, and so are right-to-left letters alone.
    """
    directions = [kind for c in text if (kind := unicodedata.bidirectional(c)) in ("L", "R", "AL")]
    has_other_characters = any(unicodedata.bidirectional(c) not in ("R", "AL", "NSM") for c in text)
    return f"\u202b{text}\u202c" if directions and directions[0] != "L" and has_other_characters else text


def _add_rectangles(group: Tree.Element, mark: CellPicture) -> None:
    """Add one rectangle per cell; equal neighbours in a row share one."""
    rows, cols = mark.pixels.shape[:2]
    width, height = mark.width / cols, mark.height / rows
    cells = Tree.SubElement(group, _qualify(SVG, "g"), {"shape-rendering": "crispEdges"})
    for r, row in enumerate(mark.pixels.tolist()):
        c = 0
        for colour, equal_cells in groupby(row):
            count = len(list(equal_cells))
            box = {"x": mark.x + c * width, "y": mark.y + r * height, "width": count * width, "height": height}
            fill = "#" + bytes(colour).hex()
            Tree.SubElement(
                cells, _qualify(SVG, "rect"), {k: _format_number(v) for k, v in box.items()} | {"fill": fill}
            )
            c += count


def _add_colour_paths(group: Tree.Element, mark: CellPicture) -> None:
    """Add one path per colour.

    This is more than twice as fast as one rectangle per cell; separate rectangles matter only for editing.
    """
    rows, cols = mark.pixels.shape[:2]
    width, height = mark.width / cols, mark.height / rows
    colours, colour_indices = np.unique(mark.pixels.reshape(-1, 3), axis=0, return_inverse=True)
    subpaths: list[list[str]] = [[] for _ in colours]
    width_text, height_text = (f"{length + 0.0005:.3f}" for length in (width, height))  # rounded up, to leave no gaps
    outline = f"h{width_text}v{height_text}h-{width_text}z"
    for i, colour_index in enumerate(colour_indices.reshape(-1).tolist()):
        subpaths[colour_index].append(f"M{mark.x + i % cols * width:.3f} {mark.y + i // cols * height:.3f}{outline}")
    cells = Tree.SubElement(group, _qualify(SVG, "g"), {"shape-rendering": "crispEdges"})
    for rgb, paths in zip(colours.tolist(), subpaths, strict=True):
        Tree.SubElement(cells, _qualify(SVG, "path"), {"d": "".join(paths), "fill": "#" + bytes(rgb).hex()})


def magnify(pixels: Pixels) -> Pixels:
    """Enlarge each cell to several pixels, so that viewers that smooth images blur only the edges of cells."""
    factor = max(1, PICTURE_PIXELS // max(pixels.shape[:2]))
    return pixels.repeat(factor, 0).repeat(factor, 1)


def _encode_png(mark: CellPicture) -> str:
    """Return the cells as a base64 PNG."""
    buffer = io.BytesIO()
    Image.fromarray(magnify(mark.pixels)).save(buffer, "PNG", compress_level=1)
    return base64.b64encode(buffer.getvalue()).decode()


def _box_attributes(mark: Rect | CellPicture) -> dict[str, str]:
    return {name: _format_number(getattr(mark, name)) for name in ("x", "y", "width", "height")}


def _opacity_attributes(value: float, part: str) -> dict[str, str]:
    """Return the opacity of the fill or of the stroke.

    Plain ``opacity`` would make every mark a separate layer, ten times as slow.
    """
    return {} if value == 1 else {f"{part}-opacity": _format_number(value)}


def _format_number(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _qualify(namespace: str, name: str) -> str:
    return f"{{{namespace}}}{name}"


def _clean_xml(text: str) -> str:
    return FORBIDDEN_CHARACTERS.sub("\ufffd", text)
