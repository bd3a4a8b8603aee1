"""Read arrays and tensors that other programs computed.

Their axes, counts and types are checked before any of their numbers are read. Anything that is not attention is refused
with an explanation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import islice
from math import prod
from numbers import Number
from operator import index
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.errors import MAX_ITEMS, ShapeError, shorten_value
from mha_viz.numerals import counted
from mha_viz.text import Token, TokenizedText, clean

Weights = npt.NDArray[np.float32]

MAX_NUMBERS = 1 << 29  # maximum number of weights in a reading: 2 GiB in float32
MAX_NAMES = 1 << 20  # maximum number of tokens
MAX_LAYERS = 1_000  # upper limit of layer numbers
MAX_AXES = 8  # maximum depth of nested lists
LAYER = "A layer"
EXPECTED_AXES = "Expected [head, query, key] or [1, head, query, key]."
SMALLER_REMEDY = "Take fewer layers, or a shorter text."
HALF_PRECISION_TOLERANCE = 0.02  # largest deviation of a row computed in float16 or bfloat16
# The fields of a model's output that may have stacks of layers.
STACK_FIELDS = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")

# Learned sinks, such as those of gpt-oss: each head has an extra score, whose share of a row goes to no token.
# transformers returns the rows without this share (Agarwal et al. 2025, gpt-oss-120b & gpt-oss-20b Model Card).
SINK = Token("sink", None, 0, None, None)  # the token of the sink's column


def read_token_names(value: Any, argument: str) -> list[str]:
    """Return the names of tokens in an argument. Raises ShapeError unless it is a list of texts."""
    if (
        isinstance(value, str | bytes | Mapping | Set)
        or not hasattr(value, "__len__")
        or not hasattr(value, "__iter__")
    ):
        raise ShapeError(
            f"{argument} is {shorten_value(value)!r}, which is not a list.", "Give a list with one text per token."
        )
    names = [*islice(value, MAX_NAMES + 1)]
    if len(names) > MAX_NAMES:
        raise ShapeError(f"{argument} has more than {MAX_NAMES:,} entries.", "Take a shorter text.")
    for place, name in enumerate(names):
        if not isinstance(name, str):
            location = f"has, at index {place}," if place else "begins with"
            raise ShapeError(
                f"{argument} {location} {shorten_value(name)!r}, which is not a text.",
                "Give the tokens' names: tokenizer.convert_ids_to_tokens(ids), or model.to_str_tokens(text).",
            )
    return names


def _check_counts(axes: Sequence[int], tokens: int, keys: int | None) -> None:
    """Raise ShapeError unless the axes of a layer fit these numbers of queries and keys.

    ``keys`` is None if the keys are the queries.
    """
    queries, columns = axes[-2:]
    if keys is None and queries != columns:
        has_one_more = columns == queries + 1
        raise ShapeError(
            f"These weights lead from {queries} queries to {columns} keys: cross-attention, a step with a cache, "
            f"{'a column for a sink, ' if has_one_more else ''}or windows, whose columns are places around a token.",
            "For cross-attention give the tokens of the text that is attended to as keys=[…]; for a step, all tokens "
            f"so far{'; for a sink as the last column, sink=True' if has_one_more else ''}. For windows, such as "
            "Longformer's, give [head, query, key] with 0 outside, or open the model with mha_viz.load.",
        )
    if (queries, columns) != (tokens, tokens if keys is None else keys):
        names = f"{tokens} tokens" if keys is None else f"{tokens} tokens and {keys} keys"
        raise ShapeError(
            f"The weights are for {queries} queries × {columns} keys, and {names} were given.",
            "Give the tokens of the same text, special ones included.",
        )


def read_layers(attentions: Any, queries: int, keys: int | None, has_sink: bool = False) -> list[Any]:
    """Return the layers unchanged, after checking that they fit the tokens.

    All must have the same axes, [(1,) head, query, key]. ``keys`` is None if the keys are the queries. In that case,
    with ``has_sink``, a last column for a sink is removed; only then are numbers read. Raises ShapeError for anything
    else.
    """
    _check_no_output(attentions)
    _check_not_empty(attentions)
    layers = read_list(attentions, "is not a list of layers.", "Take outputs.attentions by name: one tensor per layer.")
    _check_one_stack(layers)
    distinct_layers = {id(layer): layer for layer in layers}  # the same object may be several layers
    shapes = {() if isinstance(layer, Number) else find_axes(layer) for layer in distinct_layers.values()}
    if len(shapes) > 1:
        has_stages = all(len(axes) == 4 for axes in shapes) and len({axes[2:] for axes in shapes}) == 1
        raise ShapeError(
            f"The layers have different shapes: {', '.join(map(str, sorted(shapes)[:MAX_AXES]))}.",
            "Give the layers of one stage, and one of its windows, [layer[0] for layer in …], with its tokens."
            if has_stages
            else "Give the layers of one stack: the encoder's, the decoder's own, or its cross-attention.",
        )
    axes = shapes.pop()
    _check_layer(axes, len(layers), queries)
    check_size((len(layers), *axes))
    if has_sink and keys is None and axes[-2:] == (queries, queries + 1):
        return [*map(_drop_sink, layers)]
    _check_counts(axes, queries, keys)
    return layers


def _drop_sink(layer: Any) -> npt.NDArray[Any]:
    """Return a layer without its last column.

    Raises ShapeError unless rows sum to 1 with this column, up to rounding to 16 bits.
    """
    array = read_array(layer, is_rescaled=False)
    deviation = np.abs(array.sum(axis=-1) - 1).max()
    if not deviation < HALF_PRECISION_TOLERANCE:
        raise ShapeError(
            f"Including its sink, the sum of a row differs from 1 by {deviation:.3g}.",
            "Give all columns as the model computed them, or leave out the sink: its share is 1 minus the row’s sum.",
        )
    return array[..., :-1]


def find_guessed_axis(attentions: Any, layers: Sequence[Any], is_numbered: bool) -> str:
    """Return the interpretation of an ambiguous axis, or "" if axes or numbers leave no doubt.

    "heads" is the first axis of layers with three axes in a list, "layers" that of a single array without layer
    numbers; either might be the axis of texts.
    """
    axes = find_axes(layers[0])
    if hasattr(attentions, "shape"):
        return "layers" if len(axes) == 3 and len(layers) > 1 and not is_numbered else ""
    return "heads" if len(axes) == 3 else ""


def read_list(value: Any, problem: str, remedy: str, max_items: int = MAX_ITEMS) -> list[Any]:
    """Return the entries of a list or an array, at most ``max_items``.

    Raises ShapeError if there are more, or for anything else; the message is the value followed by ``problem``.
    """
    try:
        items = [*islice(value, max_items + 1)]
    except TypeError as error:
        raise ShapeError(f"{shorten_value(value)!r} {problem}", remedy) from error
    if len(items) > max_items:
        raise ShapeError(f"More than {max_items:,} layers were given.", f"No model has that many. {remedy}")
    return items


def drop_empty_layers(attentions: Any, layers: Any) -> tuple[Any, Any]:
    """Drop layers that are None, as in models with attention in some layers only. Return the others and their numbers.

    The numbers are those in ``layers`` if given, otherwise their positions, or None if no layer was dropped.
    """
    if not isinstance(attentions, list | tuple) or all(layer is None for layer in attentions):
        return attentions, layers
    numbers = [number for number, layer in enumerate(attentions) if layer is not None]
    if len(numbers) == len(attentions):
        return attentions, layers
    return [attentions[number] for number in numbers], numbers if layers is None else layers


def read_layer_numbers(value: Any, count: int) -> list[int]:
    """Return the numbers of ``count`` layers. Raises ShapeError unless there is one for each, in order."""
    remedy = "Give one number for each, counted from 0, in order: layers=[3, 7]."
    numbers = read_list(value, "is not a list of numbers of layers.", remedy)
    whole_numbers = [number for number in map(_read_int, numbers) if number is not None]
    if (
        len(whole_numbers) < len(numbers)
        or sorted(set(whole_numbers)) != whole_numbers
        or not all(0 <= number < MAX_LAYERS for number in whole_numbers)
    ):
        raise ShapeError(f"layers is {shorten_value(value)!r}.", remedy)
    if len(whole_numbers) != count:
        raise ShapeError(f"layers names {counted(len(whole_numbers), 'layer')}, and {count} were given.", remedy)
    return whole_numbers


def _read_int(value: Any) -> int | None:
    """Return a whole number, also of NumPy or PyTorch, as an int; None for anything else."""
    try:
        return None if isinstance(value, bool) else index(value)
    except Exception:  # numbers of other libraries may raise anything
        return None


def stack_layers(layers: Sequence[Any], is_rescaled: bool = True) -> Weights:
    """Stack the layers of :func:`read_layers` as [layer, head, query, key].

    A batch of one text is unwrapped. With ``is_rescaled``, rows in half precision are rescaled to sum to 1.
    """
    arrays = [read_array(layer, is_rescaled=is_rescaled) for layer in layers]
    try:
        with np.errstate(over="ignore"):  # infinity is refused later, with an explanation
            weights = np.stack(arrays).astype(np.float32, copy=False)
    except (MemoryError, ValueError) as error:
        raise ShapeError(f"The layers cannot be read together: {shorten_value(error, 100)}.", SMALLER_REMEDY) from error
    weights = weights[:, 0] if weights.ndim == 5 else weights
    weights.flags.writeable = False
    return weights


def is_batch(tokens: Any) -> bool:
    """Return True for the tokens of several texts: a list of lists."""
    return (
        isinstance(tokens, list | tuple) and bool(tokens) and all(isinstance(names, list | tuple) for names in tokens)
    )


def iter_texts(attentions: Any, tokens: Sequence[Any], others: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the arguments for each text of a batch.

    They are its layers, [1, head, query, key], its tokens, and its part of the other arguments. Raises ShapeError if an
    argument is for a different number of texts.
    """
    _check_no_output(attentions)
    _check_not_empty(attentions)
    texts = len(tokens)
    layers = read_list(attentions, "is not a list of layers.", "Take outputs.attentions by name: one tensor per layer.")
    axes = [find_axes(layer) if hasattr(layer, "shape") else () for layer in layers]
    if {(len(shape), shape[:1]) for shape in axes} != {(4, (texts,))}:
        shapes = ", ".join(map(str, sorted({*axes})[:MAX_AXES])) or "none"
        is_text_first = len(layers) == texts and {len(shape) for shape in axes} == {4}
        raise ShapeError(
            f"Tokens of {texts} texts were given, and layers of shape {shapes}.",
            f"Expected one tensor per layer, [text, head, query, key] with {texts} texts."
            + " For [text, layer, head, query, key] give attentions.swapaxes(0, 1)." * is_text_first,
        )
    for argument, values in others.items():
        is_list = hasattr(values, "__getitem__") and not isinstance(values, str | bytes | Mapping)
        if values is not None and (not is_list or not hasattr(values, "__len__") or len(values) != texts):
            raise ShapeError(
                f"{argument} is {shorten_value(values)!r}, and tokens of {texts} texts were given.",
                "Give one for each text.",
            )
    for text, names in enumerate(tokens):
        parts = {argument: None if values is None else values[text] for argument, values in others.items()}
        yield {
            "attentions": [layer[text : text + 1] for layer in layers],
            "tokens": read_token_names(names, "tokens"),
            **parts,
        }


def find_unmasked(mask: Any, count: int, argument: str) -> list[int]:
    """Return the indices of the tokens that a mask keeps, those with 1 in an attention_mask; without a mask, all."""
    if mask is None:
        return [*range(count)]
    axes = find_axes(mask, argument)
    remedy = "Give 1 for each token to keep and 0 for padding, as inputs['attention_mask'] does."
    if axes not in ((count,), (1, count)):
        raise ShapeError(f"{argument} has shape {axes}, for {count} tokens.", remedy)
    array = read_array(mask, argument).reshape(-1)
    if not np.isin(array, (0, 1)).all():
        raise ShapeError(f"{argument} has numbers other than 0 and 1.", remedy)
    unmasked: list[int] = np.flatnonzero(array).tolist()
    if not unmasked:
        raise ShapeError(f"{argument} keeps no token.", "Leave this text out.")
    return unmasked


class TypedText(NamedTuple):
    """A text and a second text or "", with the offsets of each token in its text."""

    texts: tuple[str, str]
    offsets: list[tuple[int, int]]


def read_typed_text(
    text: Any, offsets: Any, count: int, start: int | None = None, prefix: str = ""
) -> TypedText | None:
    """Return a text with the offsets of ``count`` tokens; None if neither was given.

    ``start`` is the first token of a second text, and ``prefix`` comes before the names of arguments in messages.
    Raises ShapeError if only text or only offsets were given, or if offsets are outside the text.
    """
    if text is None and offsets is None:
        return None
    remedy = "Give both: tokenizer(text, return_offsets_mapping=True) has offset_mapping."
    if text is None or offsets is None:
        raise ShapeError(f"{prefix}{'text' if text is None else 'offsets'} is missing.", remedy)
    texts = (text, "") if isinstance(text, str) else text
    if not isinstance(texts, tuple | list) or len(texts) != 2 or not all(isinstance(part, str) for part in texts):
        raise ShapeError(f"{prefix}text is {shorten_value(text)!r}.", "Give a text, or a pair of texts.")
    name = f"{prefix}offsets"
    axes = find_axes(offsets, name)
    if axes not in ((count, 2), (1, count, 2)):
        raise ShapeError(f"{name} has shape {axes}, for {count} tokens.", "Give a start and an end for each token.")
    if texts[1] and start is None:
        raise ShapeError("sentence_b_start is missing.", "Give the index of the first token of the second text.")
    array = read_array(offsets, name).reshape(-1, 2)
    is_second = np.arange(count) >= (count if start is None else start)
    ends = np.where(is_second, len(texts[1]), len(texts[0]))[:, None]
    if not ((array >= 0) & (array <= ends) & (array == array.round())).all() or (array[:, 0] > array[:, 1]).any():
        raise ShapeError(f"{name} has spans that lie outside the text, or end before they begin.", remedy)
    return TypedText((clean(texts[0]), clean(texts[1])), [(int(start), int(end)) for start, end in array])


def find_second_start(start: Any, rows: Sequence[int], count: int) -> int | None:
    """Return the position of the first token of the second sentence among those of ``count`` tokens that are read.

    Return None if there is no second sentence.
    """
    if start is None:
        return None
    number = _read_int(start)
    if number is None or not 0 <= number < count:
        remedy = f"Give the index of one of the {counted(count, 'token')}, from 0."
        raise ShapeError(f"sentence_b_start is {shorten_value(start)!r}.", remedy)
    return sum(row < number for row in rows)


def _check_not_empty(attentions: Any) -> None:
    """Raise ShapeError if there is no layer, as from a model that was not asked to return its weights."""
    if attentions is None or (hasattr(attentions, "__len__") and not len(attentions)):
        raise ShapeError(
            f"No layer of attention was given: {'None' if attentions is None else 'the tuple is empty'}.",
            'Load the model with attn_implementation="eager", call it with output_attentions=True, and take '
            "outputs.attentions by name.",
        )


def _check_no_output(output: Any) -> None:
    """Raise ShapeError for a complete model output, which has the attention in one of its fields."""
    fields = [name for name in STACK_FIELDS if hasattr(output, name)]
    if fields or isinstance(output, Mapping):
        filled_fields = [name for name in fields if getattr(output, name)]
        field_names = " or ".join(f".{name}" for name in filled_fields or fields or STACK_FIELDS[:1])
        loading_advice = (
            "" if filled_fields else ' of a model with attn_implementation="eager", called with output_attentions=True'
        )
        raise ShapeError(
            "This is the whole output of a model, not its attention.", f"Take {field_names}{loading_advice}."
        )


def _check_one_stack(layers: Sequence[Any]) -> None:
    """Raise ShapeError if the items are not layers but whole stacks of layers, as returned by ``generate``."""
    depths = [  # a stack is a tuple of layers [1, head, query, key], or of several layers [head, query, key]
        len(layer)
        for layer in layers
        if isinstance(layer, tuple | list) and any(getattr(part, "ndim", 0) >= 4 - (len(layer) > 1) for part in layer)
    ]
    if depths:
        depth_list = ", ".join(map(str, sorted(set(depths))))
        raise ShapeError(
            f"{len(layers)} stacks of layers were given, of depth {depth_list}, where one was expected.",
            "Give one stack with one tensor per layer: outputs.encoder_attentions, outputs.decoder_attentions or "
            "outputs.cross_attentions. What generate() returned is for Attention.from_generated.",
        )


def find_axes(value: Any, name: str = LAYER) -> tuple[int, ...]:
    """Return the axes of an array or of nested lists, without reading numbers.

    Raises ShapeError for more numbers than a reading may have, for rows of different lengths, and for values without
    axes.
    """
    axes: tuple[int, ...] = ()
    level = {id(value): value}  # items at one depth by id; a list may occur several times, or contain itself
    while level:
        level_axes = {_find_own_axes(item, name) for item in level.values()}
        if len(level_axes) > 1:
            raise ShapeError(f"{name} has rows of different lengths or kinds.", _write_expected(name))
        axes += level_axes.pop()
        if len(axes) > MAX_AXES:
            raise ShapeError(f"{name} is nested more than {MAX_AXES} deep.", _write_expected(name))
        check_size(axes)
        first = next(iter(level.values()))
        if not isinstance(first, list | tuple) or not first or isinstance(first[0], Number):
            break
        _find_own_axes(first[0], name)
        level = {id(part): part for item in level.values() for part in item}
    return axes


def _write_expected(name: str) -> str:
    """Describe the values that an argument accepts."""
    return EXPECTED_AXES if name == LAYER else "Give an array of numbers."


def _find_own_axes(value: Any, name: str) -> tuple[int, ...]:
    """Return the shape of an array, or the length of a list as a tuple of one number."""
    if isinstance(value, list | tuple):
        return (len(value),)
    if value is None and name == LAYER:
        raise ShapeError("A layer of attention is None.", 'Load the model with attn_implementation="eager".')
    try:
        return tuple(map(index, value.shape))
    except Exception as error:  # not an array, or one with another kind of shape
        raise ShapeError(
            f"{name} is {shorten_value(value)!r}, which is not an array.", _write_expected(name)
        ) from error


def check_size(axes: Sequence[int]) -> None:
    """Raise ShapeError for more numbers than can be read."""
    if prod(axes) > MAX_NUMBERS:
        raise ShapeError(f"{prod(axes):,} numbers were given.", f"At most {MAX_NUMBERS:,} are read. {SMALLER_REMEDY}")


def _check_layer(axes: tuple[int, ...], layers: int, tokens: int) -> None:
    """Raise ShapeError for a batch, and for axes that are not those of a layer.

    ``layers`` is the number of layers, all with these axes.
    """
    if len(axes) == 4 and axes[0] != 1 and axes[0] * axes[2] == tokens:
        raise ShapeError(
            f"A layer has shape {axes}: {axes[0]} windows of {axes[2]} tokens, each of which sees only its own window.",
            "Give one window, [layer[0] for layer in …], with its tokens.",
        )
    if len(axes) == 4 and axes[0] != 1:
        problem = f"A layer has shape {axes}: a batch of {axes[0]} texts"
        raise ShapeError(
            f"{problem}, or one text with {axes[0]} layers." if layers == 1 else f"{problem}.",
            "Give tokens as a list of lists, one for each text, and mask=inputs['attention_mask'] to drop the padding. "
            "For [text, layer, head, query, key] give [0]; for windows give one, [layer[0] for layer in …].",
        )
    if len(axes) not in (3, 4):
        all_axes = (layers, *axes)
        kind, remedy = _FEWER_AXES.get(len(all_axes), ("", EXPECTED_AXES))
        raise ShapeError(f"The weights have shape {all_axes}{kind}.", remedy)


# Number of axes, if too few → a description of the array, and a remedy.
_FEWER_AXES = {
    1: (": one row", "Give [[[row]]], with its own token as tokens and the tokens that it sees as keys=[…]."),
    2: (": one matrix", "Give [[matrix]]: one layer with one head."),
    3: (
        ": the heads of one layer, or layers without heads",
        "For [head, query, key] give [layer]; for [layer, query, key] give [[matrix] for matrix in layers].",
    ),
}


def read_array(value: Any, name: str = LAYER, *, is_rescaled: bool = True) -> npt.NDArray[Any]:
    """Return an array of real numbers from an array, a tensor or lists.

    Torch tensors are detached from their graph and moved to the CPU. Half precision becomes float32, and with
    ``is_rescaled``, rows of a layer are then rescaled to sum to 1. Raises ShapeError for everything else.
    """
    axes = find_axes(value, name)
    check_real(getattr(value, "dtype", None), name)
    is_half_precision = "float16" in str(getattr(value, "dtype", ""))
    try:
        if hasattr(value, "detach"):
            value = value.detach().float().cpu().numpy()
        array = np.asarray(value)
    except Exception as error:  # for example lists of other things, tensors without data, arrays of other libraries
        raise ShapeError(
            f"{name} cannot be read as numbers: {shorten_value(error, 100)}.", _write_expected(name)
        ) from error
    if array.shape != axes:
        raise ShapeError(f"{name} reports shape {axes} but has shape {array.shape}.", _write_expected(name))
    check_real(array.dtype, name)
    if not is_half_precision:
        return array
    array = array.astype(np.float32)
    if name != LAYER or not is_rescaled:
        return array
    sums = array.sum(axis=-1, keepdims=True)  # undo only rounding to 16 bits; larger deviations are checked later
    scaled: Weights = np.divide(array, sums, out=array.copy(), where=np.abs(sums - 1) < HALF_PRECISION_TOLERANCE)
    return scaled


def check_real(dtype: Any, name: str) -> None:
    """Raise ShapeError for dtypes of NumPy or PyTorch that are not real numbers.

    Examples are complex numbers, texts, dates, records and Python objects.
    """
    if isinstance(dtype, np.dtype):
        is_real = dtype.kind in "biuf" or dtype.name.startswith(("bfloat", "float"))  # includes those of ml_dtypes
    else:
        is_real = "complex" not in str(dtype)
    if not is_real:
        raise ShapeError(f"{name} holds {shorten_value(dtype)}, not real numbers.", "Give numbers of one real type.")


def add_sink(text: TokenizedText) -> TokenizedText:
    """Return the text with the sink as its last token."""
    return replace(text, tokens=(*text.tokens, SINK))


def is_sink_added(queries: TokenizedText, keys: TokenizedText) -> bool:
    """Return True if the keys are the queries and a sink."""
    return keys.tokens == (*queries.tokens, SINK)


def check_sink(sink: object, quantity: str) -> bool:
    """Return ``sink`` after checking it.

    Raises ShapeError if it is neither True nor False, or if it is True for a quantity that is not a share.
    """
    if not isinstance(sink, bool):
        raise ShapeError(f"sink is {shorten_value(sink)!r}.", "Expected True or False.")
    if sink and quantity != "weight":
        raise ShapeError(
            f"Only weights can have a sink, but quantity is {shorten_value(quantity)!r}.", "Leave out sink."
        )
    return sink


def add_sink_column(
    weights: Weights, rows: Weights, row_numbers: Sequence[int], layer_numbers: Sequence[int]
) -> Weights:
    """Return [layer, head, query, key] with a last column, 1 minus the sums of ``rows``, which may have more keys.

    If rounding to 16 bits made a sum a little larger than 1, the column is 0 and the row is rescaled. The numbers of
    rows and layers are for messages. Raises ShapeError for a row without weights, such as those of padding.
    """
    sums = rows.sum(axis=3, keepdims=True)
    if not sums.all():
        layer, head, row = (int(indices[0]) for indices in np.nonzero(sums[..., 0] == 0))
        location = f"Layer {layer_numbers[layer]}, head {head}, row {row_numbers[row]}"
        raise ShapeError(
            f"{location} has no weight, so a sink would get all of it.",
            "Leave padding out with mask=inputs['attention_mask'].",
        )
    remainder = np.maximum(1 - sums, 0)
    is_rounded = (sums > 1) & (sums <= 1 + HALF_PRECISION_TOLERANCE)
    extended_weights: Weights = np.concatenate(
        [np.divide(weights, sums, out=weights.copy(), where=is_rounded), remainder], axis=3
    )
    extended_weights.flags.writeable = False
    return extended_weights
