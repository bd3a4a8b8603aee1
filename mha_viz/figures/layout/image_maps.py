"""Attention maps of a vision transformer: for each head, the weights of the patches, drawn over the image."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageColor

from mha_viz.attention import Attention, Head, Weights, is_number
from mha_viz.attention.numbers import name_array
from mha_viz.attention.steps import find_model_head, find_request
from mha_viz.errors import SettingError, ShapeError, shorten_value
from mha_viz.figures.drawing.marks import CellPicture, Drawing, Mark, Pixels
from mha_viz.figures.drawing.table import Table
from mha_viz.figures.drawing.theme import THEMES, Theme, palette
from mha_viz.figures.layout import GridLayout, Size, caption, draw_footer, grid_layout, make_sheet
from mha_viz.figures.layout.grid import (
    FOOT,
    describe_span,
    draw_column_names,
    draw_grid_foot,
    draw_row_name,
    name_rows_and_columns,
)
from mha_viz.figures.layout.heatmap import SHADES
from mha_viz.figures.layout.view import Block, View, colour_cells, scale_colours, shades
from mha_viz.model_names import cite_model, name_in_column
from mha_viz.numerals import counted
from mha_viz.quotes import quote
from mha_viz.text import TokenizedText
from mha_viz.view.quantities import QUANTITIES

SHARP_PIXELS = 1600  # target width of a row of images, and height of a column, in pixels
IMAGE_OPACITY = 0.45  # opacity of the image where there is no attention
GREYS = 8  # grey levels of an image on the colour scale
COLOUR_OPACITY = 0.85  # opacity of the colour of the largest weight over the image

BRACKETED = re.compile(r"\[[^\[\]]*\]|<[^<>]*>")
NUMBER = re.compile(r"\d+")
ROW_COLUMN = re.compile(r"\(?\s*\d{1,6}\s*,\s*\d{1,6}\s*\)?")
SEPARATOR = re.compile(r"[\s,;:._x×/-]*(?:c|col|column)?[\s_]*", re.IGNORECASE)  # the separator of row and column

COLUMNS = ("layer", "head", "row", "column", "value")
Grey = npt.NDArray[np.float64]


class PinnedPatches(NamedTuple):
    """The pinned token and the patches of a figure.

    The figure shows the weights from the token, or to it if ``is_key``. ``patches`` are ``rows`` × ``columns`` tokens,
    row by row.
    """

    token: int
    is_key: bool
    patches: tuple[int, ...]
    rows: int
    columns: int


def find_pinned_token(attention: Attention, view: View, columns: int | None) -> PinnedPatches:
    """Return the pinned token and the patches.

    Raises SettingError, and ShapeError if the tokens are not the patches of one image.
    """
    query, key = view.pinned
    if (query is None) == (key is None):
        raise SettingError(f"pin is {view.pin!r}.", 'Pin one token: "q0" as query, "k0" as key.')
    if view.scale == "row":
        raise SettingError("scale is 'row'.", 'Give "head", "fixed" or "log".')
    if columns is not None and (not is_number(columns) or isinstance(columns, bool)):
        raise SettingError(f"columns is {shorten_value(columns)!r}.", "Give the number of patches in a row.")
    text = attention.queries if query is None else attention.keys
    patches, rows, cols = _lay_out_patches(_find_patches(attention, text), columns)
    return PinnedPatches(key or query or 0, query is None, patches, rows, cols)


def _find_patches(attention: Attention, text: TokenizedText) -> dict[int, str]:
    """Map each patch token to its name; the names of patches have numbers and no brackets.

    Raises ShapeError for the tokens of a text, which have other names or were made by a tokenizer, and for numbered
    names of two kinds.
    """
    names = {
        index: token.text
        for index, token in enumerate(text.tokens)
        if not token.special and not BRACKETED.fullmatch(token.text)
    }
    words = [name for name in names.values() if not any(map(str.isdigit, name))]
    if not names and find_request(attention) is None:
        problem = f"All {counted(len(text.tokens), 'token')} have names in brackets, or are special: none is a patch."
        raise ShapeError(problem, "Name the patches by number, without brackets: “0,1”.")
    if words or not names or find_request(attention) is not None:
        example = quote((words or [*names.values()] or [text.tokens[0].text])[0])
        raise ShapeError(
            f"The tokens are those of a text, such as {example}, and not patches of an image.",
            "Give the attention of a vision transformer (Attention.from_cache), with patches named by number: “0,1”.",
        )
    kinds = {NUMBER.sub("0", name): name for name in names.values()}
    if len(kinds) > 1:
        example, other = [*map(quote, kinds.values())][:2]
        problem = f"Names of two kinds have numbers, such as {example} and {other}."
        raise ShapeError(problem, "Give names in brackets, such as [REG1], to the tokens that are no patches.")
    return names


def _lay_out_patches(names: Mapping[int, str], columns: int | None) -> tuple[tuple[int, ...], int, int]:
    """Return the tokens of the patches row by row, and the numbers of rows and columns.

    The layout is read from names such as “0,1”, or from ``columns``, or is a square. Raises ShapeError if the patches
    do not fill it.
    """
    count, tokens = len(names), [*names]
    positions = _parse_positions([*names.values()])
    if positions:
        rows, cols = (max(numbers) - min(numbers) + 1 for numbers in zip(*positions, strict=True))
        if columns not in (None, cols):
            raise ShapeError(
                f"The names of the patches give {cols} columns, but columns is {columns}.", "Leave it out."
            )
        if len({*positions}) < count or count != rows * cols:
            raise ShapeError(
                f"{counted(count, 'patch', 'patches')} with {len({*positions})} places do not fill the {rows} × {cols} "
                f"= {rows * cols} that their names describe.",
                "Give each patch the name of its own place, “row,column”, and names in brackets to other tokens.",
            )
        return tuple(token for _, token in sorted(zip(positions, tokens, strict=True))), rows, cols
    cols = math.isqrt(count) if columns is None else columns
    if cols < 1 or count % cols or (columns is None and cols * cols != count):
        shape = f"a square of {cols**2} or {(cols + 1) ** 2}" if columns is None else f"rows of {cols}"
        hint = f", of which {count // cols * cols} would fill {count // cols}" if columns and cols > 0 else ""
        raise ShapeError(
            f"{count} patches do not form {shape}{hint}.",
            "Give columns=, or names “row,column” to the patches and in brackets, such as [REG1], to other tokens.",
        )
    return tuple(tokens), count // cols, cols


def _parse_positions(names: Sequence[str]) -> list[tuple[int, int]]:
    """Read the row and column from names of one kind, "0,1", "patch_0_1" or "r0c1".

    Row and column are the two numbers that vary; the list is empty if only one number varies. Raises ShapeError for
    other numbers, such as those of frames.
    """
    numbers = np.array([[int(number) for number in NUMBER.findall(name)] for name in names], dtype=object)
    varying_columns = [column for column in range(numbers.shape[1]) if len({*numbers[:, column]}) > 1]
    if ROW_COLUMN.fullmatch(names[0]):
        varying_columns = [0, 1]
    if len(varying_columns) < 2:
        return []
    separator = NUMBER.split(names[0])[varying_columns[0] + 1]
    if len(varying_columns) > 2 or not SEPARATOR.fullmatch(separator):
        problem = f"Names such as {quote(names[0])} have several numbers that are not a row and a column."
        raise ShapeError(problem, "Give the patches of one image, with names “row,column”.")
    return [(int(row), int(column)) for row, column in numbers[:, varying_columns]]


def patch_weights(attention: Attention, head: Head, pinned: PinnedPatches) -> Weights:
    """Return the weights [row, column] of one head between the pinned token and each patch. Raises UnknownHead."""
    matrix = attention[head]
    weights = matrix[:, pinned.token] if pinned.is_key else matrix[pinned.token]
    return weights[[*pinned.patches]].reshape(pinned.rows, pinned.columns)


def to_grey(image: Any) -> Grey:
    """Convert a picture to grey values from 0 to 1, [row, column].

    ``image``: a picture, or an array [row, column], [row, column, colour] or [colour, row, column]. Raises ShapeError.
    """
    remedy = "Give a picture, or an array [row, column, colour]."
    if isinstance(image, str | os.PathLike):
        raise ShapeError(f"{shorten_value(image, 60)!r} is the path of an image.", "Open it: PIL.Image.open(path).")
    if isinstance(image, Image.Image) and not image.mode.startswith(("I", "F")):
        image = image.convert("RGB")
    try:
        pixels = np.asarray(image)
    except ValueError as error:
        raise ShapeError("The rows of the image have different lengths.", remedy) from error
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3) and pixels.shape[2] not in (1, 3, 4):
        pixels = np.moveaxis(pixels, 0, 2)
    grey = pixels[..., :3].mean(axis=2) if pixels.ndim == 3 and pixels.shape[2] in (1, 3, 4) else pixels
    if grey.ndim != 2 or not grey.size or pixels.dtype.kind not in "buif":
        raise ShapeError(f"The image is an array of {pixels.shape}.", remedy)
    if not np.isfinite(grey).all() or grey.min() < 0:
        problem = "The image has numbers that are below 0 or not finite."
        raise ShapeError(problem, "Give the pixels as they are shown, before they are normalised.")
    return np.clip(grey.astype(np.float64) / _white_value(pixels), 0, 1)


def _white_value(pixels: npt.NDArray[Any]) -> float:
    """Return the value of a white pixel.

    It is 255 or 65,535 for integers, and 1 for floats, unless larger values occur; then it is the largest.
    """
    max_value, is_integer = float(pixels.max()), pixels.dtype.kind in "ui"
    candidates = (1.0,) if not is_integer else (255.0,) if pixels.dtype == np.uint8 else (255.0, 65535.0)
    return next((white for white in candidates if max_value <= white), max_value)


def draw_over_image(
    attention: Attention, image: Grey | None, heads: Sequence[Head], pinned: PinnedPatches, view: View, size: Size
) -> Drawing:
    """Draw the patches of all ``heads``, which must be the same in all their layers. Raises UnknownHead."""
    theme, quantity = THEMES[size.look], QUANTITIES[attention.quantity]
    layers, numbers = (sorted({*indices}) for indices in zip(*heads, strict=True))
    footer = draw_footer(caption.mention_ablated([(attention, head) for head in heads]), size.pixels, theme.ink)
    height = size.max_height - FOOT - footer[1]
    layout = grid_layout(size.pixels, len(layers), len(numbers), height, max_step=min(size.pixels, height))
    patch_pixels = max(1, SHARP_PIXELS // max(len(numbers) * pinned.columns, len(layers) * pinned.rows))
    grey_image = None if image is None else _resize_image(image, pinned, patch_pixels)
    marks, blocks = list[Mark](), list[Block]()
    row_names, column_names = name_rows_and_columns(attention, layers, numbers, layout)
    for row, layer in enumerate(layers):
        y = layout.top + row * layout.step
        marks.append(draw_row_name(layout, row, row_names[row], theme))
        for column, number in enumerate(numbers):
            w = patch_weights(attention, Head(layer, number), pinned)
            blocks.append(Block(w, np.zeros(len(w), np.float32), quantity.is_signed, quantity.is_share))
            marks.append(
                _place_picture(_colour_patches(blocks[-1], view.scale, theme, grey_image), layout, column, y, pinned)
            )
    marks += [
        *draw_column_names(layout, column_names, theme),
        *draw_grid_foot(attention, layout, theme, blocks, view.scale, _build_ramp(blocks, theme, grey_image)),
    ]
    drawing = Drawing(
        layout.width,
        layout.height + FOOT,
        tuple(marks),
        background=None if size.transparent else theme.paper,
        **_write_texts(attention, heads, pinned, describe_span(attention, view.scale, blocks), grey_image is not None),
    )
    return make_sheet(drawing, size, footer)


def table(attention: Attention, heads: Sequence[Head], pinned: PinnedPatches) -> Table:
    """Return the weights that the figure shows."""
    rows = [
        (*find_model_head(attention.made, head), row, column, float(value))
        for head in heads
        for (row, column), value in np.ndenumerate(patch_weights(attention, head, pinned))
    ]
    about = {
        "model": name_in_column(attention.model),
        "revision": attention.revision,
        "token": _token_text(attention, pinned),
    }
    about |= {"numbers": name_array(attention.quantity, attention.made), "made": "; ".join(attention.made)}
    return Table(COLUMNS, tuple(rows), about)


def _resize_image(image: Grey, pinned: PinnedPatches, patch_pixels: int) -> Grey:
    """Resize the image so that each side of a patch has ``patch_pixels`` pixels."""
    picture = Image.fromarray((image * 255).astype(np.uint8))
    resized = picture.resize((pinned.columns * patch_pixels, pinned.rows * patch_pixels), Image.Resampling.LANCZOS)
    return np.asarray(resized, np.float64) / 255


def _colour_patches(block: Block, scale: str, theme: Theme, grey_image: Grey | None) -> Pixels:
    """Return the colours of the weights over the faint image, [row, column, rgb], more opaque for larger weights."""
    cells = colour_cells(block, scale, theme)
    if grey_image is None:
        return cells
    patch_pixels = len(grey_image) // len(block.w)
    share = (shades(block.w, scale) / 255).repeat(patch_pixels, 0).repeat(patch_pixels, 1)
    return _blend_colours(cells.repeat(patch_pixels, 0).repeat(patch_pixels, 1), share, theme, grey_image)


def _blend_colours(colours: Pixels, share: Grey, theme: Theme, grey_image: Grey) -> Pixels:
    """Blend colours over the faint image, [row, column, rgb].

    The larger the ``share`` [row, column], the more opaque the colour.
    """
    paper = np.array(ImageColor.getrgb(theme.paper))
    base = paper + IMAGE_OPACITY * (255 * grey_image[..., None] - paper)
    blended: Pixels = np.rint(base + COLOUR_OPACITY * share[..., None] * (colours - base)).astype(np.uint8)
    return blended


def _build_ramp(blocks: Sequence[Block], theme: Theme, grey_image: Grey | None) -> tuple[str, ...] | Pixels:
    """Return the colour scale: its stops or, over an image, its colours on black (first line) to white (last line)."""
    stops = scale_colours(blocks, theme)
    if grey_image is None:
        return stops
    t = np.linspace(0, 1, 256)[SHADES]
    share = np.abs(2 * t - 1) if stops == theme.signed else t
    greys = np.linspace(0, 1, GREYS)[:, None]
    return _blend_colours(palette(stops)[None, SHADES], share[None], theme, np.broadcast_to(greys, (GREYS, len(t))))


def _place_picture(pixels: Pixels, layout: GridLayout, column: int, y: float, pinned: PinnedPatches) -> CellPicture:
    """Place a picture in the middle of its square."""
    side = layout.size / max(pinned.rows, pinned.columns)
    width, height = side * pinned.columns, side * pinned.rows
    x = layout.left + column * layout.step + (layout.size - width) / 2
    return CellPicture(x, y + (layout.size - height) / 2, width, height, pixels)


def _token_text(attention: Attention, pinned: PinnedPatches) -> str:
    text = attention.keys if pinned.is_key else attention.queries
    return text.tokens[pinned.token].text


def _write_texts(
    attention: Attention, heads: Sequence[Head], pinned: PinnedPatches, colours: str, has_image: bool
) -> caption.FigureTexts:
    has_all = len(heads) == attention.layers * attention.heads
    head_list = (
        caption.describe_all_heads(attention)
        if has_all
        else ", ".join(caption.name_in_model(attention, head) for head in heads)
    )
    token, patches = f"“{_token_text(attention, pinned)}”", f"{pinned.rows} × {pinned.columns} patches"
    direction = f"from each of {patches} to {token}" if pinned.is_key else f"from {token} to each of {patches}"
    title = f"Attention over an image: {head_list} of {cite_model(attention.model, attention.revision)}, {direction}"
    steps = f", {names}" if (names := caption.list_applied_steps(attention)) else ""
    ablation = caption.explain_ablated([(attention, head) for head in heads])
    scale_note = "; the scale shows each colour over black (above) to white (below) parts of the image" * has_image
    sentences = (
        f"{title}{steps}.",
        ablation,
        caption.explain_quantities([attention]),
        f"Colour: {colours}{scale_note}.",
    )
    about = {
        "figure": "image",
        "model": name_in_column(attention.model),
        "revision": attention.revision,
        "patches": patches,
    }
    return {"caption": " ".join(filter(None, sentences)), "alt": f"{title}.", "about": about}
