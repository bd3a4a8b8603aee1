"""What another library recorded of a model: which of its tensors are the weights of which layer. Recognised by names
and shapes, so that none of these libraries is imported."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.attention.tensors import STACKS, Weights, array_of
from mha_viz.errors import ShapeError

LAYER = "{layer}"
NUMBER = re.compile(r"\d+")
PATTERN = re.compile(r"hook_(attn_)?pattern$")
SHOWN = 6  # names in a message
SUM_TOLERANCE = 0.05  # how far from 1 the rows of what is still recognised as weights


class CachedStack(NamedTuple):
    """The weights of every layer as they were given, under which names, of which model; and the rest of the cache."""

    layers: Sequence[Any]
    names: str
    model: str
    entries: Mapping[str, Mapping[int, Any]]


def recorded(cache: Any, names: str | None = None) -> CachedStack:
    """The layers of a cache, in order. ``names``: those to take, with {layer} for the number.

    Raises ShapeError if there are none or several stacks, or if a layer is missing.
    """
    model = getattr(getattr(getattr(cache, "model", None), "cfg", None), "model_name", None) or "tensors"
    is_output = any(hasattr(cache, name) for name in STACKS)  # of a whole model: from_tensors says what to take of it
    if not (hasattr(cache, "keys") and hasattr(cache, "__getitem__") and not is_output):
        layers = [_weights_of(one) for one in cache] if isinstance(cache, list | tuple) else cache
        return CachedStack(layers, "", str(model), {})
    entries = _by_name(cache)
    chosen = _chosen(entries, names)
    of_layer = entries[chosen]
    missing = [layer for layer in range(max(of_layer) + 1) if layer not in of_layer]
    if missing:
        raise ShapeError(
            f"{chosen.replace(LAYER, str(missing[0]))!r} is missing; the last layer is {max(of_layer)}.",
            "Record every layer, or give those that you have as a list: they are then counted from 0.",
        )
    layers = [_weights_of(of_layer[layer], chosen.replace(LAYER, str(layer))) for layer in sorted(of_layer)]
    return CachedStack(layers, chosen, str(model), entries)


def _by_name(cache: Any) -> dict[str, dict[int, Any]]:
    """The entries of a cache by name, with {layer} in place of the number, and by layer."""
    entries: dict[str, dict[int, Any]] = {}
    keys = cache.keys()  # some caches have names and cannot be iterated over
    for key in keys:
        name = ".".join(map(str, key)) if isinstance(key, tuple) else str(key)
        numbers = [*NUMBER.finditer(name)]
        if numbers:
            at = next((one for one in numbers if _stands_alone(name, one)), numbers[0])
            entries.setdefault(name[: at.start()] + LAYER + name[at.end() :], {})[int(at[0])] = cache[key]
    return entries


def _stands_alone(name: str, number: re.Match[str]) -> bool:
    around = name[max(0, number.start() - 1) : number.start()] + name[number.end() : number.end() + 1]
    return all(sign in "._[]/" for sign in around)


def _chosen(entries: Mapping[str, Mapping[int, Any]], names: str | None) -> str:
    """The names of the stack of layers to read."""
    if names:
        if names not in entries:
            raise ShapeError(f"There is no {str(names)[:60]!r} in this cache.", _has(entries))
        return names
    stacks = [name for name in entries if PATTERN.search(name)]
    stacks = stacks or [name for name, layers in entries.items() if all(map(_is_weights, layers.values()))]
    if not stacks:
        raise ShapeError(
            "No attention weights are in this cache: nothing is named like 'blocks.0.attn.hook_pattern', and no entry "
            "has the axes [text, head, query, key] with rows that sum to 1.",
            _has(entries),
        )
    if len(stacks) > 1:
        raise ShapeError(
            f"{len(stacks)} stacks of attention are in this cache: {_listed(stacks)}.",
            f"Choose one with names={stacks[0]!r}.",
        )
    return stacks[0]


def _has(entries: Mapping[str, Any]) -> str:
    return f"It has {_listed([*entries])}." if entries else "It has no names with the number of a layer."


def _listed(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(repr(name[:60]) for name in names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _weights_of(entry: Any, name: str = "") -> Any:
    """The weights in an entry: itself, or that part of an attention module's output which has four axes."""
    for wrapped in ("output", "value"):  # nnsight's tracer.cache(), and what its older versions saved
        if hasattr(type(entry), wrapped) and not hasattr(type(entry), "shape"):
            entry = getattr(entry, wrapped)
    if not isinstance(entry, tuple):
        return entry
    parts = [part for part in entry if len(getattr(part, "shape", ())) == 4]
    if len(parts) == 1:
        return parts[0]
    if any(part is None for part in entry):
        raise ShapeError(
            f"The output of an attention module{f', {name!r},' if name else ''} has no weights.",
            'Load the model with attn_implementation="eager".',
        )
    return entry


def _is_weights(entry: Any) -> bool:
    """True for [text, head, query, key] or [head, query, key] with rows that sum to 1."""
    try:
        array = array_of(_weights_of(entry))
    except (ShapeError, TypeError, ValueError):
        return False
    if array.ndim not in (3, 4) or not np.issubdtype(array.dtype, np.number) or not array.size:
        return False
    return bool(array.min() >= 0 and np.abs(array.sum(axis=-1) - 1).max() < SUM_TOLERANCE)


# ---- Norms ----------------------------------------------------------------------------------------------------


def norms(recording: CachedStack, w_o: Any, values: Any) -> list[Weights]:
    """‖A[i, j] · v_j W_O‖₂ of every layer, with the axes of its weights (Kobayashi et al. 2020, equation 3). ``w_o``:
    [layer, head, d_head, d_model]; ``values`` or those of the cache: [(text,) key, head, d_head] per layer.

    Raises ShapeError if one is missing or has other axes.
    """
    weights = [array_of(layer).astype(np.float32) for layer in recording.layers]
    values = _values(recording) if values is None else [*values]
    slices = [array_of(layer) for layer in w_o]
    if not len(weights) == len(values) == len(slices):
        raise ShapeError(
            f"The weights have {len(weights)} layers, the values {len(values)}, w_o {len(slices)}.",
            "Give an array for each layer.",
        )
    return [_weighted(*each) for each in zip(weights, map(array_of, values), slices, strict=True)]


def _values(recording: CachedStack) -> list[Any]:
    name = PATTERN.sub("hook_v", recording.names)
    of_layer = recording.entries.get(name, {}) if name != recording.names else {}
    missing = [layer for layer in range(len(recording.layers)) if layer not in of_layer]
    if missing:
        named = f"{name.replace(LAYER, str(missing[0]))!r} is" if name != recording.names else "The values are"
        raise ShapeError(
            f"{named} missing: norms need the values of each head.",
            "Record them too, or give values=[…], an array [key, head, d_head] per layer.",
        )
    return [of_layer[layer] for layer in sorted(of_layer)]


def _weighted(weights: Weights, values: npt.NDArray[Any], w_o: npt.NDArray[Any]) -> Weights:
    """One layer: [(text,) head, query, key]. Heads that share values (grouped-query attention) are in order."""
    heads, columns = weights.shape[-3], weights.shape[-1]
    texts = weights.size // (heads * columns * weights.shape[-2])
    shared, width = values.shape[-2:] if values.ndim in (3, 4) else (0, 0)
    if not shared or heads % shared or values.size != texts * columns * shared * width:
        raise ShapeError(
            f"The values of a layer have axes {values.shape}, for {heads} heads and {columns} keys.",
            "Expected [key, head, d_head] or [text, key, head, d_head].",
        )
    if w_o.ndim != 3 or w_o.shape[:2] != (heads, width):
        raise ShapeError(
            f"w_o of a layer has axes {w_o.shape}, for {heads} heads with values of {width} numbers.",
            "Expected [head, d_head, d_model], such as model.W_O[layer] of TransformerLens.",
        )
    of_head = np.repeat(values.reshape(texts, columns, shared, width), heads // shared, axis=2).swapaxes(1, 2)
    moved = of_head.astype(np.float32) @ w_o.astype(np.float32)  # [text, head, key, d_model]
    lengths = np.linalg.norm(moved, axis=-1).reshape(*weights.shape[:-2], 1, columns)
    result: Weights = weights * lengths
    return result
