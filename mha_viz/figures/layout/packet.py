"""One reading, packed for a browser: all data of the interactive drawing as bytes.

Layout: a little-endian uint32 with the length of the header, the header (JSON, UTF-8, padded so that the body starts at
a multiple of four), the body. Full matrices are uint16 levels; every row has one float32 scale for ordinary keys and
one for special tokens, so that a weight is exact to 8e-6 of the largest in its part of the row. Three decimals on
screen are therefore correct even if special tokens are hidden and the few remaining weights are rescaled.
Thumbnails are uint8, 255 × √weight.

The header's ``tokens`` and the fields that belong to them describe the rows, and also the columns unless there are
``keys``, which then describe the columns (the text that is attended to).

If a matrix would exceed COARSE_BYTES, its levels are uint8, exact to 0.2 % of the largest in their part of the row: the
packet then has the field ``coarse`` and stays under 1.5 MB.

Packets of short texts have all heads in full. Beyond FULL_BYTES only the open heads are full (their whole layer if it
fits), and the grid is drawn from max-pooled thumbnails: a long text with one open head takes less than 1 MB.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.metrics import METRICS, measure_all
from mha_viz.attention import Attention, Head, Weights
from mha_viz.attention.numbers import name_numbers
from mha_viz.attention.steps import find_first_written, find_model_head
from mha_viz.attention.tensors import map_layers, merge_to_words
from mha_viz.figures.drawing.theme import THEMES
from mha_viz.heads import format_heads
from mha_viz.model_names import cite_model
from mha_viz.text import TokenizedText
from mha_viz.view.quantities import QUANTITIES

FULL_BYTES = 1_250_000  # maximum size of all heads in full
LAYER_BYTES = 500_000  # maximum size of a layer in full
STANDALONE_BYTES = 24_000_000  # maximum size of all heads in full, for a page that works without a server
MATRIX_BYTES = 4_000_000  # maximum size in bytes of heads that are drawn together
COARSE_BYTES = 1_200_000  # maximum size of a matrix with 16-bit levels
COARSE_BITS = 8
THUMB_BYTES = 200_000  # maximum size in bytes of all thumbnails together
_THEMES = {name: theme._asdict() for name, theme in THEMES.items()}
ISOLATED_SPECIALS = 8  # maximum number of special tokens with a thumbnail row each


@dataclass(frozen=True)
class RankedLink:
    """A link, from one unit to another, by whose weight all heads are ranked.

    ``query`` and ``key`` are token indices; ``words`` extends them to the words they belong to.
    """

    query: int
    key: int
    words: bool


def get_link_weights(attention: Attention, link: RankedLink) -> npt.NDArray[np.float32]:
    """Return the weights from ``link.query`` to ``link.key``, [layer, head].

    For words, this is the sum over the subwords of the key and the mean over the subwords of the query.
    """
    queries, keys = [link.query], [link.key]
    if link.words:
        queries = list(_find_group(attention.queries, link.query))
        keys = list(_find_group(attention.keys, link.key))
    return merge_to_words(attention.weights, [queries], [keys])[..., 0, 0]


@dataclass(frozen=True)
class OpenHead:
    """The initial state if the URL names no head: a head, and a pin such as "q10" (query token 10)."""

    head: str = "L0H0"
    pin: str | None = None


class Overview(NamedTuple):
    """The part of a packet about all heads, independent of which are open.

    It is cached, because computing it takes most of the time.
    """

    metrics: list[dict[str, object]]
    bins: dict[str, object]
    thumbs: bytes


def compute_overview(attention: Attention) -> Overview:
    """Compute the measures of every head, and thumbnails unless all heads are sent in full."""
    is_share = QUANTITIES[attention.quantity].is_share
    values = {name: _round_to_five_digits(numbers) for name, numbers in measure_all(attention).items()}
    metrics = [{**measure, "values": values[str(measure["name"])]} for measure in _list_measures(is_share)]
    if _fits_in_full(attention):
        return Overview(metrics, {}, b"")
    side = max(12, math.isqrt(THUMB_BYTES // (attention.layers * attention.heads)))
    starts, special = divide_tokens(attention.queries, side)
    rows: dict[str, object] = {"starts": starts, "special": special}
    if not attention.is_cross:
        return Overview(metrics, rows, compute_thumbnails(attention, starts))
    columns, special = divide_tokens(attention.keys, side)
    return Overview(
        metrics,
        rows | {"keys": {"starts": columns, "special": special}},
        compute_thumbnails(attention, starts, columns),
    )


def _list_measures(is_share: bool) -> list[dict[str, object]]:
    """Return the measures, without their numbers."""
    return [
        {
            "name": metric.name,
            "label": metric.label,
            "unit": metric.unit if is_share else "number",
            "help": metric.help,
        }
        for metric in METRICS.values()
        if is_share or metric.unit == "share"
    ]


def build_common_header(model: str, revision: str, layers: int, heads: int) -> dict[str, object]:
    """Return the header fields that all readings of a model share, with all heads in full.

    A browser that runs the model adds the other fields (``browser/live/reader.js``).
    """
    names = {"model": cite_model(model), "cited": cite_model(model, revision)}
    shape = {"layers": layers, "heads": heads, "together": heads}
    return {**names, **shape, "metrics": _list_measures(True), "themes": _THEMES}


def build_packet(
    attention: Attention,
    open_heads: Sequence[Head],
    link: RankedLink | None = None,
    start: OpenHead | None = None,
    overview: Overview | None = None,
    is_standalone: bool = False,
    bits: int = 16,
    grid_heads: Sequence[Head] = (),
) -> bytes:
    """Return the bytes for one reading, with ``open_heads`` in full, or the first of them if there are too many.

    ``overview`` is the reading's :func:`compute_overview`, if already computed. ``is_standalone``: for a page without a
    server, which has all heads in full up to STANDALONE_BYTES, or only ``grid_heads`` if the grid has selected rows and
    columns. ``bits``: bits per level. With 12, a weight is exact to 1.3e-4 of the largest in its part of the row, and
    the bytes compress to three quarters.

    Raises UnknownHead for a head that the model does not have.
    """
    overview = overview or compute_overview(attention)
    has_all_heads = is_standalone and _total_bytes(attention) <= STANDALONE_BYTES
    if not is_standalone and is_coarse(attention):
        bits = COARSE_BITS
    full_heads = (grid_heads or attention.every_head()) if has_all_heads else choose_full_heads(attention, open_heads)
    special = attention.keys.special
    signed = QUANTITIES[attention.quantity].is_signed
    layers, numbers = divmod(np.array(attention.places(full_heads)), attention.heads)
    parts = [*quantise(attention.weights[layers, numbers], special, bits, signed), overview.thumbs]
    start = start or OpenHead(str(attention.every_head()[0]))
    header = _build_header(attention, full_heads, start, overview, is_standalone)
    header |= {"coarse": True} if bits == COARSE_BITS else {}
    if grid_heads and len(grid_heads) < attention.layers * attention.heads:
        rows = {attention.layer_numbers.index(head.layer) for head in grid_heads}
        header["drawn"] = {"layers": sorted(rows), "heads": sorted({head.head for head in grid_heads})}
    if attention.hidden.any():  # the page states the weight of tokens that earlier steps have hidden
        header["hidden"] = [_round_to_five_digits(row) for row in attention.hidden[layers, numbers]]
    if overview.bins and link is not None:
        header["link"] = {**asdict(link), "weights": _round_to_five_digits(get_link_weights(attention, link))}
    return _join_packet(header, parts)


def choose_full_heads(attention: Attention, open_heads: Sequence[Head]) -> list[Head]:
    """Return the heads that are sent in full, in order: all heads, the layers of the open heads, or these heads.

    Raises UnknownHead.
    """
    for head in open_heads:
        _ = attention[head]  # raises UnknownHead
    all_heads = list(attention.every_head())
    if _fits_in_full(attention):
        return all_heads
    if _matrix_bytes(attention) * attention.heads <= LAYER_BYTES:
        layers = {head.layer for head in open_heads}
        return [head for head in all_heads if head.layer in layers]
    return sorted(dict.fromkeys(open_heads[: count_drawable_heads(attention)]))


def count_drawable_heads(attention: Attention) -> int:
    """Return the number of heads of a layer that can be drawn together: all, or fewer if the text is very long."""
    return min(attention.heads, max(1, MATRIX_BYTES // _matrix_bytes(attention)))


def _matrix_bytes(attention: Attention) -> int:
    return 2 * len(attention.queries) * len(attention.keys)


def is_coarse(attention: Attention) -> bool:
    """Return whether a head has so many weights that the browser gets one byte for each."""
    return _matrix_bytes(attention) > COARSE_BYTES


def _total_bytes(attention: Attention) -> int:
    return _matrix_bytes(attention) * attention.layers * attention.heads


def _fits_in_full(attention: Attention) -> bool:
    return _total_bytes(attention) <= FULL_BYTES


def quantise(
    matrices: npt.NDArray[np.float32], special: Sequence[bool], bits: int = 16, signed: bool = False
) -> list[bytes]:
    """Quantise matrices to scales and levels.

    Return the scales [head, query, 2] (ordinary keys, special keys) as float32 and the levels [head, query, key] as
    uint16, or uint8 with COARSE_BITS. A weight is its level × the scale of its part of the row; for signed numbers, the
    middle level (32,768 or 128) is first subtracted from its level.
    """
    runs = _find_runs(special)
    sizes = np.abs(matrices) if signed else matrices
    maxima = np.zeros((*matrices.shape[:2], 2), np.float32)
    for columns, part in runs:
        np.maximum(maxima[..., part], sizes[..., columns].max(axis=2), out=maxima[..., part])
    width = COARSE_BITS if bits == COARSE_BITS else 16
    step = 2 ** (width - bits)  # low bits of levels that stay 0
    zero = 2 ** (width - 1) if signed else 0
    max_level = (2**width - 1 - zero) // step * step
    scales = (maxima / max_level).astype("<f4")
    steps = np.maximum(scales, np.float32(1e-38)) * np.float32(step)
    levels = np.empty_like(matrices)
    for columns, part in runs:
        np.divide(matrices[..., columns], steps[..., part, None], out=levels[..., columns])
    np.rint(levels, out=levels)
    levels *= step
    np.clip(levels, -max_level, max_level, out=levels)
    levels += zero
    return [scales.tobytes(), levels.astype(f"<u{width // 8}").tobytes()]


def _find_runs(special: Sequence[bool]) -> list[tuple[slice, int]]:
    """Return runs of columns that are all special (1) or all ordinary (0), as slices of a row."""
    runs, start = [], 0
    for part, columns in groupby(special):
        end = start + len(list(columns))
        runs.append((slice(start, end), int(part)))
        start = end
    return runs


def divide_tokens(text: TokenizedText, side: int) -> tuple[list[int], list[bool]]:
    """Divide the tokens among at most ``side`` thumbnail rows.

    Return the first token of each row, and which rows are hidden together with special tokens. The first special tokens
    have a row each, so that hiding them is exact; the tokens between them share the other rows evenly.
    """
    n = len(text)
    isolated_indices = {i for i, special in enumerate(text.special) if special}
    isolated_indices = set(sorted(isolated_indices)[:ISOLATED_SPECIALS])
    width = max(1, math.ceil((n - len(isolated_indices)) / max(1, side - 2 * len(isolated_indices))))
    starts: list[int] = []
    for i in range(n):
        if i in isolated_indices or not starts or i - starts[-1] >= width or starts[-1] in isolated_indices:
            starts.append(i)
    return starts, [i in isolated_indices for i in starts]


def compute_thumbnails(
    attention: Attention, row_starts: Sequence[int], column_starts: Sequence[int] | None = None
) -> bytes:
    """Max-pool every head over bins of rows and of columns, by default the same bins.

    Return [layer, head, row, column] as uint8, 255 × √weight, ignoring signs.
    """
    column_starts = row_starts if column_starts is None else column_starts
    row_spans = list(zip(row_starts, [*row_starts[1:], len(attention.queries)], strict=True))
    column_spans = list(zip(column_starts, [*column_starts[1:], len(attention.keys)], strict=True))
    is_signed = QUANTITIES[attention.quantity].is_signed

    def pool(weights: Weights) -> bytes:
        sizes = np.abs(weights) if is_signed else weights
        rows = np.stack([sizes[:, start:end].max(axis=1) for start, end in row_spans], axis=2)
        # [head, key, row]: complete rows again, for which max is fast
        cells = np.stack([rows[:, start:end].max(axis=1) for start, end in column_spans], axis=2)
        return bytes(np.rint(np.sqrt(np.minimum(cells, 1)) * np.float32(255)).astype(np.uint8))

    return b"".join(map_layers(pool, attention.weights))


def compute_text_key(text: str, pair: str, words: Sequence[str] = ()) -> str:
    """Return a key of a text or, if the text was given as words, of these ``words``.

    A view applies only to the text whose key it was set for.
    """
    return hashlib.blake2b(json.dumps([text, pair, words]).encode(), digest_size=9).hexdigest()


def compute_view_key(attention: Attention) -> str:
    """Return the key of the text to which the view of a reading belongs.

    For an encoder–decoder, it depends on the source, the target and the part.
    """
    request, text = attention.request, attention.queries
    if request is None or not request.part:
        return compute_text_key(text.text, text.pair, text.given)
    return compute_text_key(request.text, request.target, request.part)


def collect_request_fields(attention: Attention) -> dict[str, object]:
    """Return the fields with which the page can request this reading again, for an encoder–decoder or ablated heads."""
    request = attention.request
    if request is not None and request.part:
        return {"request": {"text": request.text, "target": request.target, "part": request.part}}
    if request is not None and request.off:
        source = {"from": request.source} if request.source else {}
        return {"request": {"off": format_heads(request.off), "how": request.method} | source}
    return {}


def _build_header(
    attention: Attention, full_heads: Sequence[Head], start: OpenHead, overview: Overview, is_standalone: bool = False
) -> dict[str, object]:
    """Build the header. ``is_standalone``: for a file, which must not contain the model's path on the author's disk."""
    text, heads, all_heads = attention.queries, attention.heads, attention.every_head()
    numbers_in_model = [find_model_head(attention.made, head) for head in all_heads]
    numbers, first_written = name_numbers(attention.quantity, attention.made), find_first_written(attention)
    return {
        "key": attention.key,
        "of": compute_view_key(attention),
        "start": asdict(start),
        "model": cite_model(attention.model) if is_standalone else attention.model,
        "cited": cite_model(attention.model, attention.revision),
        "layers": attention.layers,
        "heads": heads,
        "together": count_drawable_heads(attention),
        **collect_axis_tokens(text),
        **({"keys": collect_axis_tokens(attention.keys)} if attention.is_cross else {}),
        **({} if first_written is None else {"written": first_written}),
        **({} if attention.quantity == "weight" else {"quantity": attention.quantity}),
        **({} if numbers == "weight" else {"numbers": numbers}),
        **({"signed": True} if QUANTITIES[attention.quantity].is_signed else {}),
        **collect_request_fields(attention),
        **({"in_model": numbers_in_model} if numbers_in_model != [*all_heads] else {}),
        **({"layer_numbers": attention.layer_numbers} if attention.layer_numbers[-1] >= attention.layers else {}),
        "full": attention.places(full_heads),
        "metrics": overview.metrics,
        "themes": _THEMES,
    } | ({"bins": overview.bins} if overview.bins else {})


def collect_axis_tokens(text: TokenizedText) -> dict[str, object]:
    """Return the data from which rows or columns are drawn: the tokens, and the words that they form."""
    return {
        "n": len(text),
        "tokens": [t.drawn for t in text.tokens],
        "segments": [t.segment for t in text.tokens],
        "special": [*map(int, text.special)],
        "groups": [list(g) for g in text.groups],
        "words": [t.drawn for t in text.by_words().tokens],
    }


def _join_packet(header: dict[str, object], parts: list[bytes]) -> bytes:
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    head += b" " * (-len(head) % 4)
    return b"".join([struct.pack("<I", len(head)), head, *parts])


def _round_to_five_digits(values: npt.NDArray[Any]) -> list[float | None]:
    return [None if math.isnan(v) else float(f"{v:.5g}") for v in values.ravel().tolist()]


def _find_group(text: TokenizedText, index: int) -> tuple[int, ...]:
    return next(group for group in text.groups if index in group)
