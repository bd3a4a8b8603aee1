"""The numbers of attention as arrays: their conditions, their conversion from the tensors of other programs, and their
sums over words."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mha_viz.browser.quantities import QUANTITIES, Quantity
from mha_viz.errors import ShapeError

Weights = npt.NDArray[np.float32]
T = TypeVar("T")

MANY = 4_000_000  # weights: from here on all cores share the layers

NOT_NUMBERS = "They come from an overflow, or from damaged files of the model."
ROW_SUM_TOLERANCE = 1e-3
HALF_TOLERANCE = 0.02  # largest deviation of a row computed in float16 or bfloat16
STACKS = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")  # fields of a model's output


def each_layer(of: Callable[[Weights], T], weights: Weights) -> list[T]:
    """``of`` applied to the weights of each layer; all cores share the layers if there are many weights."""
    if weights.size < MANY:
        return [of(layer) for layer in weights]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(of, weights))


def digest(numbers: Weights) -> bytes:
    """A digest of the numbers of every layer."""
    return b"".join(each_layer(lambda layer: hashlib.sha256(np.ascontiguousarray(layer).data).digest(), numbers))


def _shares(weights: Weights) -> None:
    """Check that rows sum to 1 and that no weight is below 0."""
    sums = weights.sum(axis=3)
    if not np.isfinite(sums).all():
        raise ShapeError("The weights contain values that are not numbers.", NOT_NUMBERS)
    if weights.min() < -ROW_SUM_TOLERANCE:
        raise ShapeError(f"A weight is {weights.min():.3g}.", "Attention is a share: no weight is below 0.")
    deviations = np.abs(sums - 1)
    if deviations.max() > ROW_SUM_TOLERANCE:
        total = sums.flat[deviations.argmax()]
        raise ShapeError(f"A row of weights sums to {total:.5g}.", "Attention rows must sum to 1 within 0.001.")


def _lengths(norms: Weights) -> None:
    """Check that no number is negative; rows may have any sum."""
    if not np.isfinite(norms).all():
        raise ShapeError("The norms contain values that are not numbers.", NOT_NUMBERS)
    if norms.min() < 0:
        raise ShapeError(f"A norm is {norms.min():.3g}.", "A norm is a length: none is below 0.")


def _finite(products: Weights) -> None:
    """Check that numbers are finite; they may have either sign."""
    if not np.isfinite(products).all():
        raise ShapeError("The gradients contain values that are not numbers.", NOT_NUMBERS)


_CHECKS: Mapping[str, Callable[[Weights], None]] = MappingProxyType(
    {"shares": _shares, "lengths": _lengths, "signed": _finite}
)


def check_numbers(quantity: Quantity, weights: Weights) -> None:
    """Raises ShapeError if an array [layer, head, query, key] cannot be of a quantity."""
    _CHECKS[quantity.numbers](weights)


def quantity_of(name: str) -> Quantity:
    quantity = QUANTITIES.get(name) if isinstance(name, str) else None
    if quantity is None:
        raise ShapeError(f"quantity is {str(name)[:40]!r}.", f"Expected one of: {', '.join(QUANTITIES)}.")
    return quantity


# ---- Tensors of other programs --------------------------------------------------------------------------------


def check_names(names: Any, argument: str) -> None:
    if isinstance(names, str) or not hasattr(names, "__len__"):
        raise ShapeError(
            f"{argument} is {str(names)[:40]!r}, which is not a list.", "Give a list with one text per token."
        )
    if len(names) and not isinstance(names[0], str):
        raise ShapeError(
            f"{argument} begins with {str(names[0])[:40]!r}, which is not a text.",
            "Give the tokens' names: tokenizer.convert_ids_to_tokens(ids), or model.to_str_tokens(text).",
        )


def check_counts(weights: Weights, tokens: int, keys: int | None) -> None:
    """Raises ShapeError unless the weights have these numbers of queries and keys; None means that the keys are the
    queries."""
    queries, columns = weights.shape[2:]
    if keys is None and queries != columns:
        raise ShapeError(
            f"These weights lead from {queries} queries to {columns} keys: cross-attention, or a step with a cache.",
            "For cross-attention give the tokens of the text that is attended to as keys=[…].",
        )
    if (queries, columns) != (tokens, tokens if keys is None else keys):
        names = f"{tokens} tokens" if keys is None else f"{tokens} tokens and {keys} keys"
        raise ShapeError(
            f"The weights are for {queries} queries × {columns} keys, and {names} were given.",
            "Give the tokens of the same text, special ones included.",
        )


def stacked(attentions: Sequence[Any]) -> Weights:
    """[layer, head, query, key] from one array per layer; a batch of one is unwrapped."""
    given = () if attentions is None else attentions
    _check_no_output(given)
    if not hasattr(given, "__iter__"):
        raise ShapeError(
            f"{str(given)[:40]!r} is not a list of layers.", "Take outputs.attentions by name: one tensor per layer."
        )
    layers = [*given]
    _check_some(attentions)
    _check_one_stack(layers)
    arrays = [_unbatched(array_of(layer)) for layer in layers]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise ShapeError(
            f"The layers have different axes: {', '.join(map(str, sorted(shapes)))}.",
            "Give the layers of one stack: the encoder's, the decoder's own, or its cross-attention.",
        )
    return read_only(np.stack(arrays).astype(np.float32, copy=False))


def is_batch(tokens: Any) -> bool:
    """True for the tokens of several texts: a list of lists."""
    return isinstance(tokens, list | tuple) and bool(tokens) and all(isinstance(one, list | tuple) for one in tokens)


def of_each(attentions: Any, tokens: Sequence[Any], beside: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments for each text of a batch: its layers, [head, query, key], its tokens, and its part of all other
    arguments. Raises ShapeError if an argument is for a different number of texts."""
    _check_no_output(attentions)
    _check_some(attentions)
    texts = len(tokens)
    layers = [*attentions] if hasattr(attentions, "__iter__") else []
    axes = [tuple(getattr(layer, "shape", ())) for layer in layers]
    if {(len(each), each[:1]) for each in axes} != {(4, (texts,))}:
        shapes = ", ".join(map(str, sorted({*axes}))) or "none"
        raise ShapeError(
            f"Tokens of {texts} texts were given, and layers with axes {shapes}.",
            f"Expected one tensor per layer, [text, head, query, key] with {texts} texts.",
        )
    for argument, values in beside.items():
        if values is not None and (not hasattr(values, "__len__") or len(values) != texts):
            raise ShapeError(
                f"{argument} is {str(values)[:40]!r}, and tokens of {texts} texts were given.", "Give one for each."
            )
    for text, names in enumerate(tokens):
        parts = {argument: None if values is None else values[text] for argument, values in beside.items()}
        yield {"attentions": [layer[text] for layer in layers], "tokens": names, **parts}


def unmasked(mask: Any, count: int, argument: str) -> list[int]:
    """The tokens that a mask keeps: those with 1 in a tokenizer's attention_mask; without a mask, all of them."""
    if mask is None:
        return [*range(count)]
    array = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
    array = array[0] if array.ndim == 2 and len(array) == 1 else array
    if array.shape != (count,) or not np.isin(array, (0, 1)).all():
        raise ShapeError(
            f"{argument} has axes {array.shape}, for {count} tokens.",
            "Give 1 for each token to keep and 0 for padding, as inputs['attention_mask'] does.",
        )
    read: list[int] = np.flatnonzero(array).tolist()
    if not read:
        raise ShapeError(f"{argument} keeps no token.", "Leave this text out.")
    return read


def _check_some(attentions: Any) -> None:
    """Raises ShapeError if there is no layer, as from a model that was not told to return its weights."""
    if attentions is None or (hasattr(attentions, "__len__") and not len(attentions)):
        raise ShapeError(
            f"No layer of attention was given: {'None' if attentions is None else 'the tuple is empty'}.",
            'Load the model with attn_implementation="eager", call it with output_attentions=True, and take '
            "outputs.attentions by name.",
        )


def _check_no_output(given: Any) -> None:
    """Raises ShapeError for a complete model output, of which one field is the attention."""
    fields = [name for name in STACKS if hasattr(given, name)]
    if fields or isinstance(given, Mapping):
        filled = [name for name in fields if getattr(given, name)]
        take = " or ".join(f".{name}" for name in filled or fields or STACKS[:1])
        load = "" if filled else ' of a model with attn_implementation="eager", called with output_attentions=True'
        raise ShapeError("This is the whole output of a model, not its attention.", f"Take {take}{load}.")


def _check_one_stack(layers: Sequence[Any]) -> None:
    """Raises ShapeError if the items are not layers but whole stacks of layers, as returned by ``generate``."""
    depths = [len(layer) for layer in layers if isinstance(layer, tuple | list) and _is_stack(layer)]
    if depths:
        deep = ", ".join(map(str, sorted(set(depths))))
        raise ShapeError(
            f"{len(layers)} stacks of layers were given, of depth {deep}, where one was expected.",
            "Give one stack with one tensor per layer: outputs.encoder_attentions, outputs.decoder_attentions or "
            "outputs.cross_attentions; of generate(), the stack of one step.",
        )


def _is_stack(layer: Sequence[Any]) -> bool:
    """True for layers of [1, head, query, key], or several of [head, query, key]; a single one of these is a batch of
    one."""
    return any(getattr(part, "ndim", 0) >= 4 - (len(layer) > 1) for part in layer)


def array_of(layer: Any) -> npt.NDArray[Any]:
    """A layer as an array; torch tensors are moved to the CPU and detached from their graph."""
    if layer is None:
        raise ShapeError("A layer of attention is None.", 'Load the model with attn_implementation="eager".')
    half = "float16" in str(getattr(layer, "dtype", ""))
    if hasattr(layer, "detach"):
        layer = layer.detach().float().cpu().numpy()
    array = np.asarray(layer)
    if not half:
        return array
    array = array.astype(np.float32)
    sums = array.sum(axis=-1, keepdims=True)  # what 16-bit rounding explains is undone; the rest is for the check
    scaled: Weights = np.divide(array, sums, out=array.copy(), where=np.abs(sums - 1) < HALF_TOLERANCE)
    return scaled


def _unbatched(layer: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if layer.ndim == 4 and layer.shape[0] != 1:
        raise ShapeError(
            f"A layer has axes {layer.shape}: a batch of {layer.shape[0]} texts.",
            "Give tokens as a list of lists, one for each text, and mask=inputs['attention_mask'] to drop the padding.",
        )
    layer = layer[0] if layer.ndim == 4 else layer
    if layer.ndim != 3 or not np.issubdtype(layer.dtype, np.number):
        raise ShapeError(f"A layer has axes {layer.shape}.", "Expected [head, query, key] or [1, head, query, key].")
    return layer


def frozen(array: npt.ArrayLike) -> Weights:
    """Read-only float32; copied if somebody else could still write to it, also through the base of a view."""
    frozen = np.asarray(array, dtype=np.float32)
    base: Any = frozen
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return read_only(frozen.copy())
        base = base.base
    return frozen


def read_only(fresh: Weights) -> Weights:
    """An array without other references, made read-only without a copy."""
    fresh.flags.writeable = False
    return fresh


def check_axes(weights: Weights, queries: int, keys: int | None) -> None:
    """Raises ShapeError unless the weights are [layer, head, query, key] for this number of tokens. ``keys`` None: the
    queries."""
    n, m = queries, queries if keys is None else keys
    if weights.ndim != 4 or 0 in weights.shape or (keys is None and weights.shape[2] != weights.shape[3]):
        more = " with as many keys as queries, or the other text as keys=" if keys is None else ""
        raise ShapeError(f"The weights have axes {weights.shape}.", f"Expected [layer, head, query, key]{more}.")
    if keys is None and weights.shape[2] != n:
        raise ShapeError(f"The weights are for {weights.shape[2]} tokens, the text has {n}.")
    if weights.shape[2:] != (n, m):
        rows, columns = weights.shape[2:]
        raise ShapeError(f"The weights are for {rows} queries × {columns} keys, the texts have {n} and {m} tokens.")


# ---- From tokens to words -------------------------------------------------------------------------------------
# Attention *to* a word is the sum over its tokens, *from* a word the mean over them (Clark et al. 2019, section 4.1).
# Every number of a word, on screen, in a file or in a table, is computed here.

F = TypeVar("F", np.float32, np.float64)
Groups = Sequence[Sequence[int]]  # the tokens of each word, in order; a special token counts as a word


def between(weights: npt.NDArray[F], queries: Groups, keys: Groups) -> npt.NDArray[F]:
    """[..., query word, key word] from [..., query, key]. Tokens in no group are left out; nothing is rescaled."""
    if all(len(group) == 1 for group in (*queries, *keys)):  # selected first
        rows, columns = (np.array([group[0] for group in groups], np.intp) for groups in (queries, keys))
        return weights[..., rows[:, None], columns]
    return averaged(summed(weights, keys, -1), queries, -2)


def averaged(values: npt.NDArray[F], groups: Groups, axis: int) -> npt.NDArray[F]:
    """The mean over the tokens of each group, in a new array with the groups along ``axis``."""
    means = summed(values, groups, axis)
    if any(len(group) > 1 for group in groups):
        np.moveaxis(means, axis, -1)[...] /= np.array([len(group) for group in groups], values.dtype)
    return means


def summed(values: npt.NDArray[F], groups: Groups, axis: int) -> npt.NDArray[F]:
    """The sum over the tokens of each group, added in their order, in the same form as :func:`averaged`."""
    sums = np.take(values, np.array([group[0] for group in groups], np.intp), axis)
    into, tokens = np.moveaxis(sums, axis, 0), np.moveaxis(values, axis, 0)  # views
    for word, group in enumerate(groups):
        for token in group[1:]:
            into[word] += tokens[token]
    return sums
