"""Write a drawing as SVG: text stays text, a few cells stay rectangles, and nothing in the file can run or make
requests."""

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
EDITABLE = 1_000  # the most cells that are drawn as rectangles; above that, they are one picture
SIMILAR = ("Helvetica Neue", "Arial")  # fallbacks for the screen's font: wider by less than a tenth
SHARP = 256  # target pixels along each side of a picture of cells
FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML cannot contain

for _prefix, _name in (("", SVG), ("dc", DUBLIN_CORE), ("rdf", RDF)):
    Tree.register_namespace(_prefix, _name)


def svg(drawing: Drawing, editable: int = EDITABLE, crisp: bool = False) -> bytes:
    """Return the drawing as an SVG file; lengths are points.

    Pictures of up to ``editable`` cells are drawn as shapes. ``crisp`` is for rasterising: filled rectangles get no
    soft edges, and all cells of one colour are one shape.
    """
    wide, high = _number(drawing.width), _number(drawing.height)
    size = {"width": f"{wide}pt", "height": f"{high}pt", "viewBox": f"0 0 {wide} {high}"}
    root = Tree.Element(_in(SVG, "svg"), size | {"role": "img"})
    Tree.SubElement(root, _in(SVG, "title")).text = _xml(drawing.alt)
    Tree.SubElement(root, _in(SVG, "desc")).text = _xml(drawing.full_caption)
    _metadata(root, drawing)
    if drawing.background:
        Tree.SubElement(root, _in(SVG, "rect"), {"width": wide, "height": high, "fill": drawing.background})
    group = Tree.SubElement(root, _in(SVG, "g"), {"font-family": families(drawing), "fill": "none"})
    for mark in drawing.marks:
        _draw(group, mark, editable, crisp)
    written: bytes = Tree.tostring(root, "utf-8", xml_declaration=True)
    return written + b"\n"


def _metadata(root: Tree.Element, drawing: Drawing) -> None:
    """Add caption and settings as Dublin Core, which reference managers and image databases read."""
    rdf = Tree.SubElement(Tree.SubElement(root, _in(SVG, "metadata")), _in(RDF, "RDF"))
    about = Tree.SubElement(rdf, _in(RDF, "Description"), {_in(RDF, "about"): ""})
    Tree.SubElement(about, _in(DUBLIN_CORE, "creator")).text = "mha_viz"
    Tree.SubElement(about, _in(DUBLIN_CORE, "description")).text = _xml(drawing.full_caption)
    for name, value in drawing.about.items():
        Tree.SubElement(about, _in(DUBLIN_CORE, "subject")).text = _xml(f"{name}: {value}")


def families(drawing: Drawing) -> str:
    """Return the font list: the screen's font, fonts of similar width, the fonts that the texts need on this machine,
    and any sans-serif font."""
    used = [font.family for font in fonts.needed((m.text, m.weight) for m in drawing.marks if isinstance(m, Text))]
    names = dict.fromkeys(["Source Sans 3", fonts.face(400).family, *SIMILAR, *used])
    return ", ".join([*(f"'{_xml(name.replace(chr(39), ''))}'" for name in names), "sans-serif"])


def _draw(group: Tree.Element, mark: Mark, editable: int, crisp: bool) -> None:
    if isinstance(mark, Text):
        _text(group, mark)
    elif isinstance(mark, Curve):
        (x, y), *further = mark.points
        path = f"M{_number(x)} {_number(y)}C{' '.join(f'{_number(x)} {_number(y)}' for x, y in further)}"
        look = {"stroke": mark.colour, "stroke-width": _number(mark.width)}
        look |= {"stroke-dasharray": " ".join(map(_number, mark.dash))} if mark.dash else {}
        Tree.SubElement(group, _in(SVG, "path"), {"d": path, **look, **_opacity(mark.opacity, "stroke")})
    elif isinstance(mark, Polyline):
        _polyline(group, mark)
    elif isinstance(mark, Rect):
        look = {"fill": mark.fill, **_opacity(mark.opacity, "fill")} if mark.fill else {}
        if mark.stroke:
            look |= {"stroke": mark.stroke, "stroke-width": _number(mark.stroke_width)}
            look |= _opacity(mark.opacity, "stroke")
        elif crisp:
            look |= {"shape-rendering": "crispEdges"}
        Tree.SubElement(group, _in(SVG, "rect"), {**_box(mark), **look})
    elif mark.pixels.shape[0] * mark.pixels.shape[1] <= editable:
        (_areas if crisp else _rectangles)(group, mark)
    else:
        picture = {"href": f"data:image/png;base64,{_png(mark)}", "preserveAspectRatio": "none"}
        sharp = {"image-rendering": "optimizeSpeed", "style": "image-rendering:pixelated"}
        Tree.SubElement(group, _in(SVG, "image"), {**_box(mark), **picture, **sharp})


def _polyline(group: Tree.Element, mark: Polyline) -> None:
    path = "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in mark.points) + ("Z" if mark.fill else "")
    look = {"fill": mark.fill, **_opacity(mark.opacity, "fill")} if mark.fill else {}
    if mark.stroke:
        look |= {"stroke": mark.stroke, "stroke-width": _number(mark.stroke_width), "stroke-linejoin": "round"}
        look |= _opacity(mark.opacity, "stroke")
    look |= {"stroke-dasharray": " ".join(map(_number, mark.dash))} if mark.dash else {}
    Tree.SubElement(group, _in(SVG, "path"), {"d": path, **look})


def _text(group: Tree.Element, mark: Text) -> None:
    runs = fonts.runs(mark.text, mark.weight)
    font = next((run.font for run in runs if run.font), fonts.face(mark.weight))
    look = {"font-size": _number(mark.size), "fill": mark.colour, **_opacity(mark.opacity, "fill")}
    look |= {"font-weight": str(mark.weight)} if mark.weight != 400 else {}
    look |= {"text-anchor": mark.anchor} if mark.anchor != "start" else {}
    # y is the middle of the line; viewers differ in `dominant-baseline`, so the baseline is computed.
    place = {"x": _number(mark.x), "y": _number(mark.y + font.middle * mark.size)}
    if mark.turn:
        place |= {"transform": f"rotate({_number(-mark.turn)} {_number(mark.x)} {_number(mark.y)})"}
    element = Tree.SubElement(group, _in(SVG, "text"), {**place, **look, "xml:space": "preserve"})
    element.text = directed(fonts.writable(mark.text))


def directed(text: str) -> str:
    """Embed a mixed text that begins right to left as such, so that its full stop is on the left, as on screen."""
    strong = [kind for c in text if (kind := unicodedata.bidirectional(c)) in ("L", "R", "AL")]
    mixed = any(unicodedata.bidirectional(c) not in ("R", "AL", "NSM") for c in text)
    return f"\u202b{text}\u202c" if strong and strong[0] != "L" and mixed else text


def _rectangles(group: Tree.Element, mark: CellPicture) -> None:
    """Add one rectangle per cell; equal neighbours in a row share one."""
    rows, cols = mark.pixels.shape[:2]
    wide, high = mark.width / cols, mark.height / rows
    cells = Tree.SubElement(group, _in(SVG, "g"), {"shape-rendering": "crispEdges"})
    for r, row in enumerate(mark.pixels.tolist()):
        c = 0
        for colour, equal in groupby(row):
            count = len(list(equal))
            box = {"x": mark.x + c * wide, "y": mark.y + r * high, "width": count * wide, "height": high}
            fill = "#" + bytes(colour).hex()
            Tree.SubElement(cells, _in(SVG, "rect"), {k: _number(v) for k, v in box.items()} | {"fill": fill})
            c += count


def _areas(group: Tree.Element, mark: CellPicture) -> None:
    """Add one path per colour. This takes less than half the time of one rectangle per cell; nobody will edit these
    cells."""
    rows, cols = mark.pixels.shape[:2]
    wide, high = mark.width / cols, mark.height / rows
    colours, colour_index = np.unique(mark.pixels.reshape(-1, 3), axis=0, return_inverse=True)
    cells: list[list[str]] = [[] for _ in colours]
    across, down = (f"{length + 0.0005:.3f}" for length in (wide, high))  # rounded up, to leave no gaps
    cell = f"h{across}v{down}h-{across}z"
    for i, colour in enumerate(colour_index.reshape(-1).tolist()):
        cells[colour].append(f"M{mark.x + i % cols * wide:.3f} {mark.y + i // cols * high:.3f}{cell}")
    areas = Tree.SubElement(group, _in(SVG, "g"), {"shape-rendering": "crispEdges"})
    for colour, paths in zip(colours.tolist(), cells, strict=True):
        Tree.SubElement(areas, _in(SVG, "path"), {"d": "".join(paths), "fill": "#" + bytes(colour).hex()})


def magnified(pixels: Pixels) -> Pixels:
    """Enlarge each cell to several pixels, so that viewers that smooth enlarged images blur only the cell's edge."""
    times = max(1, SHARP // max(pixels.shape[:2]))
    return pixels.repeat(times, 0).repeat(times, 1)


def _png(mark: CellPicture) -> str:
    """Return the cells as a base64 PNG."""
    buffer = io.BytesIO()
    Image.fromarray(magnified(mark.pixels)).save(buffer, "PNG", compress_level=1)
    return base64.b64encode(buffer.getvalue()).decode()


def _box(mark: Rect | CellPicture) -> dict[str, str]:
    return {name: _number(getattr(mark, name)) for name in ("x", "y", "width", "height")}


def _opacity(value: float, part: str) -> dict[str, str]:
    """Return the opacity of the fill or of the stroke.

    Plain ``opacity`` would make every mark a separate layer, ten times as slow.
    """
    return {} if value == 1 else {f"{part}-opacity": _number(value)}


def _number(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _in(namespace: str, name: str) -> str:
    return f"{{{namespace}}}{name}"


def _xml(text: str) -> str:
    return FORBIDDEN.sub("\ufffd", text)
