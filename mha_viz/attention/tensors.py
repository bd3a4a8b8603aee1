"""Attention as arrays: validity checks, and sums over words."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mha_viz.attention.foreign_arrays import Weights, check_real, read_array
from mha_viz.errors import ShapeError, shorten_value
from mha_viz.view.quantities import QUANTITIES, Quantity

T = TypeVar("T")

MIN_PARALLEL_WEIGHTS = 4_000_000  # minimum number of weights for processing layers in parallel

OVERFLOW_CAUSE = "They come from an overflow, or from damaged files of the model."
ROW_SUM_TOLERANCE = 1e-3


def map_layers(function: Callable[[Weights], T], weights: Weights) -> list[T]:
    """Apply ``function`` to the weights of each layer, in parallel if there are many weights."""
    if weights.size < MIN_PARALLEL_WEIGHTS:
        return [function(layer) for layer in weights]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, weights))


def digest(numbers: Weights) -> bytes:
    """Return a digest of the numbers of every layer."""
    return b"".join(map_layers(lambda layer: hashlib.sha256(np.ascontiguousarray(layer).data).digest(), numbers))


def _check_shares(weights: Weights, layer_numbers: Sequence[int]) -> None:
    """Raise ShapeError unless rows sum to 1 and no weight is negative."""
    sums = weights.sum(axis=3)
    if np.isneginf(weights).any():
        layer, head, row, key = _find_largest(np.isneginf(weights))
        location = _describe_row(layer_numbers[layer], head, row)
        raise ShapeError(f"A weight is -inf: {location}, key {key}.", SCORES_REMEDY)
    if not np.isfinite(sums).all():
        layer, head, row = _find_largest(np.logical_not(np.isfinite(sums)))
        is_empty = np.isnan(weights[layer, head, row]).all()
        raise ShapeError(
            f"The weights contain values that are not numbers: {_describe_row(layer_numbers[layer], head, row)}.",
            f"This row has no key: {PADDING_REMEDY}" if is_empty else OVERFLOW_CAUSE,
        )
    if weights.min() < -ROW_SUM_TOLERANCE:
        layer, head, row, key = _find_largest(-weights)
        raise ShapeError(
            f"A weight is {weights.min():.3g}: {_describe_row(layer_numbers[layer], head, row)}, key {key}.",
            SCORES_REMEDY,
        )
    deviations = np.abs(sums - 1)
    if deviations.max() > ROW_SUM_TOLERANCE:
        layer, head, row = _find_largest(deviations)
        raise ShapeError(
            f"{_describe_row(layer_numbers[layer], head, row).capitalize()} sums to {sums[layer, head, row]:.5g} "
            "instead of 1.",
            _find_remedy(weights[layer, head], sums, row, head, layer),
        )


SCORES_REMEDY = "Attention is a share: no weight is below 0. Scores must pass the softmax first."
PADDING_REMEDY = "leave padding out with mask=inputs['attention_mask']."
TRAINING_REMEDY = "model in training mode drops weights and enlarges the others: call model.eval() before it reads."


def _find_remedy(matrix: Weights, sums: Weights, row: int, head: int, layer: int) -> str:
    """Return the likely cause of a wrong row sum, with advice.

    ``matrix`` [query, key] has the weights of the row's head, ``sums`` the sums of all rows.
    """
    head_sums = sums[layer, head]
    nonzero_before = (matrix > 0).cumsum(axis=1, dtype=np.int64)
    has_gaps = bool(((matrix == 0) & (nonzero_before > 0) & (nonzero_before < nonzero_before[:, -1:])).any())
    if np.abs(matrix.sum(axis=0) - 1).max() <= ROW_SUM_TOLERANCE:
        return (
            "The columns of this head sum to 1: rows must be queries and columns keys. Give "
            "[layer.swapaxes(-1, -2) for layer in …]."
        )
    if head_sums[row] == 0:
        return f"This row has no key: {PADDING_REMEDY}"
    if head_sums[row] > 1 and np.ptp(head_sums) <= ROW_SUM_TOLERANCE * head_sums[row]:
        return f"All rows of this head sum to {head_sums[row]:.5g}: divide the weights by their sums."
    if has_gaps or sums.max() > 1 + ROW_SUM_TOLERANCE:
        return f"A {TRAINING_REMEDY}"
    return (
        "If the model has learned sinks, such as gpt-oss, give sink=True. If keys were left "
        f"out, such as special tokens, give them too. A {TRAINING_REMEDY}"
    )


def _find_largest(numbers: npt.NDArray[Any]) -> tuple[int, ...]:
    """Return the index of the largest number; of equal numbers, the first."""
    return tuple(map(int, np.unravel_index(int(numbers.argmax()), numbers.shape)))


def _describe_row(layer: int, head: int, row: int) -> str:
    """Describe a row of the weights."""
    return f"layer {layer}, head {head}, row {row}"


def _check_lengths(norms: Weights, layer_numbers: Sequence[int]) -> None:
    """Raise ShapeError if a number is negative; rows may have any sum."""
    _check_finite("norms", norms, layer_numbers)
    if norms.min() < 0:
        layer, head, row, key = _find_largest(-norms)
        raise ShapeError(
            f"A norm is {norms.min():.3g}: {_describe_row(layer_numbers[layer], head, row)}, key {key}.",
            "A norm is a length: none is below 0.",
        )


def _check_signed(products: Weights, layer_numbers: Sequence[int]) -> None:
    """Raise ShapeError unless all numbers are finite; they may have either sign."""
    _check_finite("gradients", products, layer_numbers)


def _check_finite(kind: str, values: Weights, layer_numbers: Sequence[int]) -> None:
    """Raise ShapeError, naming the first row, unless all values are finite."""
    if not np.isfinite(values).all():
        layer, head, row, _ = _find_largest(np.logical_not(np.isfinite(values)))
        location = _describe_row(layer_numbers[layer], head, row)
        raise ShapeError(f"The {kind} contain values that are not numbers: {location}.", OVERFLOW_CAUSE)


_CHECKS: Mapping[str, Callable[[Weights, Sequence[int]], None]] = MappingProxyType(
    {"shares": _check_shares, "lengths": _check_lengths, "signed": _check_signed}
)


def check_numbers(quantity: Quantity, weights: Weights, layer_numbers: Sequence[int]) -> None:
    """Raise ShapeError unless ``weights`` [layer, head, query, key] are valid for a quantity.

    ``layer_numbers`` are for messages.
    """
    _CHECKS[quantity.numbers](weights, layer_numbers)


def get_quantity(name: str) -> Quantity:
    """Return the quantity with this name. Raises ShapeError if there is none."""
    quantity = QUANTITIES.get(name) if isinstance(name, str) else None
    if quantity is None:
        raise ShapeError(f"quantity is {shorten_value(name)!r}.", f"Expected one of: {', '.join(QUANTITIES)}.")
    return quantity


def freeze(array: npt.ArrayLike) -> Weights:
    """Return a read-only float32 array.

    The array is copied if it could still be changed, even through the base of a view.
    """
    source = array if isinstance(array, np.ndarray) else read_array(array, "The array")
    if source.dtype != np.float32:
        check_real(source.dtype, "The array")
    with np.errstate(over="ignore"):  # infinity is refused later, with an explanation
        result = np.asarray(source, dtype=np.float32)
    base: Any = result
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return make_read_only(result.copy())
        base = base.base
    return result


def make_read_only(array: Weights) -> Weights:
    """Make an array without other references read-only, without a copy."""
    array.flags.writeable = False
    return array


def select_tokens(weights: Weights, rows: Sequence[int], columns: Sequence[int]) -> Weights:
    """Return the rows and columns of these tokens from [layer, head, query, key]; no copy if all are kept."""
    is_whole = (len(rows), len(columns)) == weights.shape[2:]
    return weights if is_whole else make_read_only(weights[:, :, rows][..., columns])


def check_dropped_columns(
    layers: Sequence[Any], rows: Sequence[int], columns: Sequence[int], layer_numbers: Sequence[int]
) -> None:
    """Raise ShapeError if these rows of layers, [(1,) head, query, key], give weight to other columns."""
    for number, layer in zip(layer_numbers, layers, strict=True):
        array = read_array(layer)
        array = array.reshape(-1, *array.shape[-2:])[:, rows]
        lost_weight = np.delete(array, columns, axis=2).sum(axis=2)
        if lost_weight.max() > ROW_SUM_TOLERANCE:
            head, row = _find_largest(lost_weight)
            location = _describe_row(number, head, rows[row]).capitalize()
            raise ShapeError(
                f"{location} gives {lost_weight[head, row]:.3g} of its weight to tokens that the mask leaves out.",
                "Give the model the mask as well, attention_mask=…, or read these tokens too, without a mask.",
            )


def check_axes(weights: Weights, queries: int, keys: int | None) -> None:
    """Raise ShapeError unless the weights are [layer, head, query, key] for these numbers of tokens.

    ``keys`` is None if the keys are the queries.
    """
    n, m = queries, queries if keys is None else keys
    if weights.ndim != 4 or 0 in weights.shape or (keys is None and weights.shape[2] != weights.shape[3]):
        hint = " with as many keys as queries, or the other text as keys=" if keys is None else ""
        raise ShapeError(f"The weights have shape {weights.shape}.", f"Expected [layer, head, query, key]{hint}.")
    if keys is None and weights.shape[2] != n:
        problem = f"The weights are for {weights.shape[2]} tokens, the text has {n}."
        raise ShapeError(problem, "Give all tokens of the text, special ones included.")
    if weights.shape[2:] != (n, m):
        rows, columns = weights.shape[2:]
        raise ShapeError(f"The weights are for {rows} queries × {columns} keys, the texts have {n} and {m} tokens.")


# ---- from tokens to words -------------------------------------------------------------------------------------
# Attention *to* a word is the sum over its tokens, *from* a word the mean over them (Clark et al. 2019, section 4.1).
# All numbers by words, on screen, in files and in tables, are computed here.

F = TypeVar("F", np.float32, np.float64)
Groups = Sequence[Sequence[int]]  # the tokens of each word, in order; a special token counts as a word


def merge_to_words(weights: npt.NDArray[F], queries: Groups, keys: Groups) -> npt.NDArray[F]:
    """Return [..., query word, key word] from [..., query, key].

    Tokens that belong to no group are left out, and nothing is rescaled.
    """
    if all(len(group) == 1 for group in (*queries, *keys)):  # one token per word: select instead of adding
        rows, columns = (np.array([group[0] for group in groups], np.intp) for groups in (queries, keys))
        return weights[..., rows[:, None], columns]
    return average_groups(sum_groups(weights, keys, -1), queries, -2)


def average_groups(values: npt.NDArray[F], groups: Groups, axis: int) -> npt.NDArray[F]:
    """Return the mean over the tokens of each group, in a new array with the groups along ``axis``."""
    means = sum_groups(values, groups, axis)
    if any(len(group) > 1 for group in groups):
        np.moveaxis(means, axis, -1)[...] /= np.array([len(group) for group in groups], values.dtype)
    return means


def sum_groups(values: npt.NDArray[F], groups: Groups, axis: int) -> npt.NDArray[F]:
    """Return the sum over the tokens of each group, in a new array with the groups along ``axis``.

    Tokens are added in their order.
    """
    sums = np.take(values, np.array([group[0] for group in groups], np.intp), axis)
    sums_by_word, tokens = np.moveaxis(sums, axis, 0), np.moveaxis(values, axis, 0)  # views
    for word, group in enumerate(groups):
        for token in group[1:]:
            sums_by_word[word] += tokens[token]
    return sums
