"""Find the attention weights of each layer among the tensors that another library recorded.

Entries are recognised by names and shapes, so none of these libraries is imported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.attention.foreign_arrays import STACK_FIELDS, Weights, check_size, find_axes, read_array, read_list
from mha_viz.errors import MAX_ITEMS, ShapeError, shorten_value

LAYER = "{layer}"
NUMBER = re.compile(r"\d+")
LAYER_PREFIX = re.compile(r"(?:layers?|blocks?|\bh)[._]?$", re.IGNORECASE)  # text before the number of a layer
PATTERN = re.compile(r"hook_(attn_)?pattern$")  # TransformerLens calls attention weights a pattern
MAX_ENTRIES = 200_000  # maximum number of entries of a cache
MAX_NAMES = 6  # maximum number of names in a message
SUM_TOLERANCE = 0.05  # sums of rows may differ from 1 by this much


class CachedStack(NamedTuple):
    """The attention layers in a cache.

    Attributes:
        layers: their weights, unchanged.
        numbers: their numbers, None if they have none.
        names: the names of their entries, with {layer} for the number.
        model: the name of the model.
        entries: the whole cache, by name and layer.
    """

    layers: Sequence[Any]
    numbers: Sequence[int] | None
    names: str
    model: str
    entries: Mapping[str, Mapping[int, Any]]


def find_layers(cache: Any, names: str | None = None, has_sink: bool = False) -> CachedStack:
    """Return the attention layers of a cache, in order.

    ``names`` are the entries to read, with {layer} for the number. With ``has_sink``, rows may sum to less than 1.
    Raises ShapeError if there is no stack of layers, or more than one.
    """
    model = getattr(getattr(getattr(cache, "model", None), "cfg", None), "model_name", None) or "tensors"
    # from_tensors explains why the output of a whole model is refused.
    is_output = any(hasattr(cache, name) for name in STACK_FIELDS)
    if not (hasattr(cache, "keys") and hasattr(cache, "__getitem__") and not is_output):
        layers = (
            [_extract_weights(entry) for entry in cache[: MAX_ITEMS + 1]] if isinstance(cache, list | tuple) else cache
        )
        return CachedStack(layers, None, "", str(model), {})
    entries = _group_entries(cache)
    stack_name = _choose_stack(entries, names, has_sink)
    layer_entries = entries[stack_name]
    if max(layer_entries) >= MAX_ITEMS:
        raise ShapeError(
            f"{stack_name[:80]!r} in this cache has a layer number of {MAX_ITEMS:,} or more.", "Number layers from 0."
        )
    numbers = sorted(layer_entries)
    layers = [_extract_weights(layer_entries[layer], stack_name.replace(LAYER, str(layer))) for layer in numbers]
    if PATTERN.search(stack_name):  # TransformerLens may drop the axis of texts, but not that of heads
        layers = [layer[None] if len(getattr(layer, "shape", ())) == 3 else layer for layer in layers]
    return CachedStack(layers, numbers, stack_name, str(model), entries)


def _group_entries(cache: Any) -> dict[str, dict[int, Any]]:
    """Return the entries of a cache by name, with {layer} in place of the number, and by layer."""
    entries: dict[str, dict[int, Any]] = {}
    keys = [*islice(cache.keys(), MAX_ENTRIES + 1)]  # some caches have keys() but cannot be iterated over
    if len(keys) > MAX_ENTRIES:
        raise ShapeError(f"This cache has more than {MAX_ENTRIES:,} entries.", "Give the attention of each layer.")
    for key in keys:
        name = ".".join(map(str, key)) if isinstance(key, tuple) else str(key)
        numbers = [*NUMBER.finditer(name)]
        if numbers:
            after_prefix = (match for match in numbers if LAYER_PREFIX.search(name, 0, match.start()))
            separate_numbers = (match for match in numbers if _is_separate(name, match))
            number_match = next(chain(after_prefix, separate_numbers), numbers[0])
            # A number may have any length.
            number = int(number_match[0]) if len(number_match[0].lstrip("0")) < len(str(MAX_ITEMS)) else MAX_ITEMS
            stack_name = name[: number_match.start()] + LAYER + name[number_match.end() :]
            entries.setdefault(stack_name, {})[number] = cache[key]
    return {  # Drop layers that are None unless all are, as in models with attention in some layers only.
        name: {number: entry for number, entry in layer_entries.items() if entry is not None} or layer_entries
        for name, layer_entries in entries.items()
    }


def _is_separate(name: str, number: re.Match[str]) -> bool:
    """Return True if a number in a name is surrounded by separators."""
    neighbours = name[max(0, number.start() - 1) : number.start()] + name[number.end() : number.end() + 1]
    return all(sign in "._[]/" for sign in neighbours)


def _choose_stack(entries: Mapping[str, Mapping[int, Any]], names: str | None, has_sink: bool) -> str:
    """Return the name of the stack of layers to read. Raises ShapeError."""
    if names:
        if not isinstance(names, str) or names not in entries:
            raise ShapeError(f"There is no {shorten_value(names, 60)!r} in this cache.", _describe_entries(entries))
        return names
    stacks = [name for name in entries if PATTERN.search(name)]
    stacks = stacks or [
        name for name, layers in entries.items() if all(_is_weights(layer, has_sink) for layer in layers.values())
    ]
    if (
        not stacks
        and len(likely_names := [name for name in entries if all(map(_may_be_weights, entries[name].values()))]) == 1
    ):
        return likely_names[0]  # the caller raises an error that says which rows are wrong
    for name, layers in entries.items() if not stacks else ():
        for layer, entry in layers.items():
            # Raises a more precise error than the one below if something is wrong with an output.
            _extract_weights(entry, name.replace(LAYER, str(layer)))
    if not entries:
        raise ShapeError(
            "No name in this cache has the number of a layer.",
            "Give entries named such as 'layer0', or the layers as a list to from_tensors.",
        )
    if not stacks:
        raise ShapeError(
            "No attention weights are in this cache: nothing is named like 'blocks.0.attn.hook_pattern', and no entry "
            "has the axes [text, head, query, key] with rows that sum to 1.",
            _describe_entries(entries),
        )
    if len(stacks) > 1:
        raise ShapeError(
            f"{len(stacks)} stacks of attention are in this cache: {_list_names(stacks)}.",
            f"Choose one with names={stacks[0]!r}.",
        )
    return stacks[0]


def _describe_entries(entries: Mapping[str, Any]) -> str:
    """Return a sentence that lists the entries of a cache."""
    return f"It has {_list_names([*entries])}."


def _list_names(names: Sequence[str]) -> str:
    """Return the first names as text."""
    omitted = len(names) - MAX_NAMES
    return ", ".join(repr(name[:60]) for name in names[:MAX_NAMES]) + (f" and {omitted} more" if omitted > 0 else "")


def _extract_weights(entry: Any, name: str = "") -> Any:
    """Return the weights in an entry.

    They are the entry itself, or the part of an attention module's output that has four axes, or one axis more than the
    vectors before it. Raises ShapeError for an output without weights.
    """
    for wrapper in ("output", "value"):  # attributes of nnsight's tracer.cache(), and the objects of its older versions
        if hasattr(type(entry), wrapper) and not hasattr(type(entry), "shape"):
            entry = getattr(entry, wrapper)
    if not isinstance(entry, tuple):
        return entry
    parts = [part for part in entry if hasattr(part, "shape") and len(find_axes(part)) == 4]
    if len(parts) == 1:
        return parts[0]
    label = f", {name!r}," if name else ""
    if len(entry) == 2 and all(hasattr(part, "shape") for part in entry):  # the output of nn.MultiheadAttention
        vectors, weights = map(find_axes, entry)
        if len(weights) == len(vectors) + 1 == 3:
            return entry[1]
        if len(weights) == len(vectors) in (2, 3) and weights[:-1] == vectors[:-1] and _are_shares(*entry):
            raise ShapeError(
                f"The output of an attention module{label} has weights of shape {weights}: a mean over its heads.",
                "Call nn.MultiheadAttention with average_attn_weights=False. To draw means as they are, give those of "
                "one text to from_tensors, one matrix for each layer: [[mean[0]] for mean in …].",
            )
    if any(part is None for part in entry):
        raise ShapeError(
            f"The output of an attention module{label} has no weights.",
            'Load a model of transformers with attn_implementation="eager"; call nn.MultiheadAttention with '
            "need_weights=True and average_attn_weights=False.",
        )
    return entry


def _are_shares(vectors: Any, weights: Any) -> bool:
    """Return True if the rows of ``weights`` sum to 1, and those of ``vectors`` do not."""
    vector_error, weight_error = (np.abs(read_array(part).sum(axis=-1) - 1).max() for part in (vectors, weights))
    return bool(weight_error < SUM_TOLERANCE <= vector_error)


def _extract_array(entry: Any) -> npt.NDArray[Any]:
    """Return an array that may be weights, [text, head, query, key] or [head, query, key]; otherwise an empty array."""
    try:
        weights = _extract_weights(entry)
        return read_array(weights) if len(find_axes(weights)) in (3, 4) else np.zeros(0)
    except ShapeError:
        return np.zeros(0)


def _may_be_weights(entry: Any) -> bool:
    """Return True if an entry may be weights by shape and sign: as many queries as keys, and no number below 0."""
    array = _extract_array(entry)
    return bool(array.size and array.shape[-1] == array.shape[-2] and not (array < 0).any())


def _is_weights(entry: Any, has_sink: bool) -> bool:
    """Return True for [text, head, query, key] or [head, query, key] with rows that sum to 1.

    With a sink, they may sum to less.
    """
    array = _extract_array(entry)
    if not array.size:
        return False
    deviations = array.sum(axis=-1) - 1
    return bool(array.min() >= 0 and (deviations if has_sink else np.abs(deviations)).max() < SUM_TOLERANCE)


# ---- norms ----------------------------------------------------------------------------------------------------


def compute_norms(
    recording: CachedStack, w_o: Any, values: Any, has_sink: bool = False, has_keys: bool = False
) -> list[Weights]:
    """Return ‖A[i, j] · v_j W_O‖₂ of every layer, with the axes of its weights (Kobayashi et al. 2020, equation 3).

    ``w_o`` is [layer, head, d_head, d_model]. ``values`` are [(text,) key, head, d_head] per layer, by default those in
    the cache. With ``has_sink``, rows are not rescaled, and a last column for the sink is left out, because a sink has
    no value; with ``has_keys``, the keys are another text, without such a column. Raises ShapeError if one is missing
    or has other axes.
    """
    remedy = "Give an array for each layer."
    values = _find_values(recording) if values is None else read_list(values, "is not a list of values.", remedy)
    slices = read_list(w_o, "is not a list of projections.", remedy)
    if not len(recording.layers) == len(values) == len(slices):
        raise ShapeError(
            f"The weights have {len(recording.layers)} layers, the values {len(values)}, w_o {len(slices)}.", remedy
        )
    weights = [read_array(layer, is_rescaled=not has_sink).astype(np.float32) for layer in recording.layers]
    if has_sink and not has_keys:
        weights = [layer[..., : layer.shape[-2]] for layer in weights]
    value_arrays = [read_array(value, "An array of values") for value in values]
    return [
        _compute_layer_norms(layer, value, read_array(part, "A layer of w_o"))
        for layer, value, part in zip(weights, value_arrays, slices, strict=True)
    ]


def _find_values(recording: CachedStack) -> list[Any]:
    """Return the values of each layer in the cache. Raises ShapeError if some are missing."""
    name = PATTERN.sub("hook_v", recording.names)
    entries = recording.entries.get(name, {}) if name != recording.names else {}
    missing_layers = [layer for layer in recording.numbers or range(len(recording.layers)) if layer not in entries]
    if missing_layers:
        subject = f"{name.replace(LAYER, str(missing_layers[0]))!r} is" if name != recording.names else "The values are"
        raise ShapeError(
            f"{subject} missing: norms need the values of each head.",
            "Record them too, or give values=[…], an array [key, head, d_head] per layer.",
        )
    return [entries[layer] for layer in recording.numbers or sorted(entries)]


def _compute_layer_norms(weights: Weights, values: npt.NDArray[Any], w_o: npt.NDArray[Any]) -> Weights:
    """Return the norms of one layer, [(text,) head, query, key].

    Heads that share values (grouped-query attention) are consecutive.
    """
    heads, columns = weights.shape[-3], weights.shape[-1]
    texts = weights.size // (heads * columns * weights.shape[-2])
    value_heads, width = values.shape[-2:] if values.ndim in (3, 4) else (0, 0)
    if not value_heads or heads % value_heads or values.size != texts * columns * value_heads * width:
        raise ShapeError(
            f"The values of a layer have shape {values.shape}, for {heads} heads and {columns} keys.",
            "Expected [key, head, d_head] or [text, key, head, d_head].",
        )
    if w_o.ndim != 3 or w_o.shape[:2] != (heads, width):
        raise ShapeError(
            f"w_o of a layer has shape {w_o.shape}, for {heads} heads with values of {width} numbers.",
            "Expected [head, d_head, d_model], such as model.W_O[layer] of TransformerLens.",
        )
    check_size((texts, heads, columns, w_o.shape[-1]))
    values = values.reshape(texts, columns, value_heads, width)
    head_values = np.repeat(values, heads // value_heads, axis=2).swapaxes(1, 2)
    contributions = head_values.astype(np.float32) @ w_o.astype(np.float32)  # [text, head, key, d_model]
    lengths = np.linalg.norm(contributions, axis=-1).reshape(*weights.shape[:-2], 1, columns)
    result: Weights = weights * lengths
    return result
