"""Join the attention of text that a model wrote with transformers' ``generate()``.

For each step, ``generate()`` returns the weights of the tokens that the step read: first those of the prompt, then
usually one row. Joined, they are the weights of the whole text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mha_viz.attention.foreign_arrays import MAX_NAMES, Weights, check_size, find_axes, read_array, read_list
from mha_viz.attention.steps import make_written_step
from mha_viz.errors import ShapeError, shorten_value

if TYPE_CHECKING:
    from mha_viz.attention import Attention

OPTIONS_REMEDY = "Call generate(…, output_attentions=True, return_dict_in_generate=True)"
CALL_REMEDY = f'{OPTIONS_REMEDY} of a model with attn_implementation="eager", and give all that it returns.'


class GeneratedWeights(NamedTuple):
    """The weights of a text that a model wrote.

    Attributes:
        layers: [1, head, query, key] of each layer, where queries are the tokens that were read; None for layers
            without attention.
        prompt_length: the number of tokens that the first step read.
        length: the number of tokens of the text in ``generated.sequences``, including padding and the last token, which
            the model wrote but did not read.
    """

    layers: list[Weights | None]
    prompt_length: int
    length: int

    @property
    def rows(self) -> int:
        """The number of tokens that were read."""
        return next(int(layer.shape[2]) for layer in self.layers if layer is not None)


def join_steps(generated: Any, sequence: int | None, is_cross: bool, is_rescaled: bool = True) -> GeneratedWeights:
    """Join the steps of one of ``generated.sequences``: self-attention or, if ``is_cross``, attention to the source.

    Raises ShapeError if ``generated`` is not what ``generate()`` returns, if a text must be chosen, and for beams whose
    path is unknown.
    """
    steps = _find_steps(generated, is_cross)
    axes = find_axes(getattr(generated, "sequences", None), "sequences")
    if len(axes) != 2 or not axes[0]:
        raise ShapeError(f"sequences has shape {axes}.", CALL_REMEDY)
    texts, length = axes
    text_number = _choose_text(sequence, texts)
    beams = _find_beams(generated, steps, texts, text_number)
    steps_with_beams = list(zip(steps, beams, strict=False))
    counts = {len(step) for step, _ in steps_with_beams}
    if len(counts) > 1:
        raise ShapeError(f"The steps have different numbers of layers: {shorten_value(sorted(counts))}.", CALL_REMEDY)
    join = _join_cross if is_cross else _join_self
    layers = [
        None
        if first_weights is None
        else join([_read_step(step[layer], beam, is_rescaled) for step, beam in steps_with_beams])[None]
        for layer, first_weights in enumerate(steps[0])
    ]
    return GeneratedWeights(layers, find_axes(_find_layer(steps[0]))[-2], length)


def _find_layer(step: Sequence[Any]) -> Any:
    """Return the first layer with attention; None if there is none."""
    return next((layer for layer in step if layer is not None), None)


def _find_steps(generated: Any, is_cross: bool) -> list[Sequence[Any]]:
    """Return the layers of each step, [text, head, query, key]."""
    has_two_stacks = hasattr(generated, "decoder_attentions")
    if is_cross and not has_two_stacks and hasattr(generated, "attentions"):
        raise ShapeError("keys are for encoder–decoders, and this model has one stack.", "Leave out keys.")
    field = ("cross_attentions" if is_cross else "decoder_attentions") if has_two_stacks else "attentions"
    if not hasattr(generated, field):
        raise ShapeError(f"{shorten_value(generated)!r} is not a result of generate().", CALL_REMEDY)
    value = getattr(generated, field)
    steps = read_list(() if value is None else value, "is not a list of steps.", CALL_REMEDY, max_items=MAX_NAMES)
    if any(hasattr(step, "shape") for step in steps):
        raise ShapeError(
            f"{field} has the layers of one pass, not the steps of generate().", "Give them to Attention.from_tensors."
        )
    if not steps or not all(isinstance(step, tuple | list) and _find_layer(step) is not None for step in steps):
        raise ShapeError(f"generate() returned no {field}.", CALL_REMEDY)
    if any(len(find_axes(_find_layer(step))) != 4 for step in steps):
        raise ShapeError(f"{field} has a step without layers [text, head, query, key].", CALL_REMEDY)
    return steps


def _choose_text(sequence: Any, texts: int) -> int:
    """Return the number of the text to read. Raises ShapeError if it must be chosen, or does not exist."""
    if sequence is None and texts == 1:
        return 0
    if sequence is None:
        raise ShapeError(
            f"{texts} texts were generated.", "Choose one, such as sequence=0, the first of generated.sequences."
        )
    if isinstance(sequence, bool) or not isinstance(sequence, Integral) or not 0 <= index(sequence) < texts:
        raise ShapeError(
            f"sequence is {shorten_value(sequence)!r}, and {texts} texts were generated.",
            f"Expected a number from 0 to {texts - 1}.",
        )
    return index(sequence)


def _find_beams(generated: Any, steps: Sequence[Sequence[Any]], texts: int, text_number: int) -> list[int]:
    """Return, for each step, the number of the beam that became the chosen text; beams may differ from step to step."""
    count = find_axes(_find_layer(steps[0]))[0]
    beams = getattr(generated, "beam_indices", None)
    if beams is None:
        if count != texts:
            raise ShapeError(
                f"The steps read {count} beams together, and nothing says which of them became a text.",
                f"{OPTIONS_REMEDY}, with output_scores=True where its beam_indices are missing, or with num_beams=1.",
            )
        return [text_number] * len(steps)
    axes = find_axes(beams, "beam_indices")
    if len(axes) != 2 or axes[0] != texts:
        raise ShapeError(f"beam_indices has shape {axes}, for {texts} texts.", CALL_REMEDY)
    path = [int(beam) for beam in read_array(beams, "beam_indices")[text_number]]
    path = path[: path.index(-1)] if -1 in path else path  # −1: the text had ended
    if not path or not 0 <= min(path) <= max(path) < count:
        raise ShapeError(f"beam_indices names beams other than the {count} that were read.", CALL_REMEDY)
    return path


def _read_step(layer: Any, beam: int, is_rescaled: bool) -> Weights:
    """Return [head, query, key] of one text of a step."""
    axes = find_axes(layer)
    if len(axes) != 4 or not beam < axes[0]:
        raise ShapeError(f"A step has a layer of shape {axes}.", "Expected [text, head, query, key] in each step.")
    part: Weights = read_array(layer[beam], is_rescaled=is_rescaled).astype(np.float32, copy=False)
    return part


def _join_self(steps: Sequence[Weights]) -> Weights:
    """Join the steps of a text to [head, query, key].

    A step without a cache reads the whole text again. A cache of a fixed size has room for later keys, with weights of
    0; the cache of a window holds the latest keys.
    """
    ends, size = [], 0
    for step in steps:
        is_full_reread = size > 0 and step.shape[1:] == (size + 1, size + 1)
        size = step.shape[1] if is_full_reread else size + step.shape[1]
        ends.append(size)
    heads = steps[0].shape[0]
    check_size((heads, size, size))
    weights: Weights = np.zeros((heads, size, size), np.float32)
    for step, end in zip(steps, ends, strict=True):
        _check_heads(step, heads)
        rows, columns = step.shape[1:]
        first_key = max(0, end - columns)
        _check_follows(step, end - first_key)
        weights[:, end - rows : end, first_key:end] = step[..., : end - first_key]
    return weights


def _check_follows(step: Weights, keys_read: int) -> None:
    """Raise ShapeError if the tokens of a step do not follow those of the earlier steps.

    ``keys_read`` is the number of its keys that have been read so far; the other keys are unused slots of the cache.
    """
    if step[..., keys_read:].any():
        raise ShapeError(
            f"A step of {step.shape[1]} tokens has weight on {step.shape[2]} keys, but only {keys_read} had been read.",
            "Give a text that was read from its beginning, without past_key_values= or prefill_chunk_size=.",
        )
    if step.shape[1] == 1 and not step[:, 0, keys_read - 1].any():
        raise ShapeError(
            "A step has no weight on the token that it read, in any head: it is the row of another token.",
            "Generate without assistant_model=, or read the whole text at once.",
        )


def _join_cross(steps: Sequence[Weights]) -> Weights:
    """Join the steps of a target to [head, query, key] over its source.

    A step without a cache reads the whole target again.
    """
    heads, _, columns = steps[0].shape
    parts: list[Weights] = []
    for step in steps:
        _check_heads(step, heads)
        if step.shape[2] != columns:
            raise ShapeError(f"The steps have {columns} and {step.shape[2]} keys.", "Expected the same source in each.")
        rows_read = sum(part.shape[1] for part in parts)
        parts = [step] if rows_read and step.shape[1] == rows_read + 1 else [*parts, step]
    return np.concatenate(parts, axis=1)


def _check_heads(step: Weights, heads: int) -> None:
    """Raise ShapeError if a step has another number of heads."""
    if step.shape[0] != heads:
        raise ShapeError(f"The steps have {heads} and {step.shape[0]} heads.", CALL_REMEDY)


def mark_written(attention: Attention, characters: int) -> Attention:
    """Record, as a step of a reading, that the model wrote the last ``characters`` of its text.

    The reading is returned unchanged if there are no such characters in the text, or if not all of it was read.
    """
    text = attention.queries
    start = len(text.text) - characters
    places = (i for i, token in enumerate(text.tokens) if token.end is not None and token.end > start)
    first = next(places, None) if 0 < start < len(text.text) and text.cut is None else None
    if first is None or attention.is_cross:
        return attention
    return replace(attention, made=(*attention.made, make_written_step(text, first)))
