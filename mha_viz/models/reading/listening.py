"""Record attention with hooks, in families whose attention function cannot be replaced in transformers.

The input of the dropout module on attention weights contains the weights, and the input of W_O contains the outputs of
the heads. Both are recorded in the tap of the current call.
"""

from __future__ import annotations

from typing import Any

import torch

from mha_viz.models.families import FAMILIES, Family, count_layers
from mha_viz.models.reading import capture
from mha_viz.models.reading.probe import find_attention_modules


def install_hooks(model: Any) -> None:
    """Install hooks in every layer of a model, if its family needs them. Call this once per model."""
    family = FAMILIES[model.config.model_type]
    if not family.probabilities:
        return
    heads = int(model.config.num_attention_heads)
    for layer in range(count_layers(model.config)):
        modules = find_attention_modules(model, layer)
        for number, module in enumerate(modules.inputs):
            module.register_forward_hook(_make_projection_hook(number))
        modules.holder.get_submodule(family.probabilities).register_forward_pre_hook(_record_weights)
        modules.output.register_forward_pre_hook(_make_output_hook(family, heads))
        if family.per_head:
            modules.holder.register_forward_pre_hook(_make_repeat_hook(family.per_head, heads), with_kwargs=True)


def _make_projection_hook(number: int) -> Any:
    """Return a hook that records the output of an input layer.

    Only the first call counts, because DeBERTa calls the layer again with distances.
    """

    def hook(_: Any, __: Any, result: torch.Tensor) -> None:
        tap = capture.get_current_tap()
        if tap is not None:
            tap.projections.setdefault(number, result)

    return hook


def _record_weights(_: Any, inputs: tuple[torch.Tensor, ...]) -> None:
    """Record the weights of a layer in the current tap."""
    tap = capture.get_current_tap()
    if tap is not None:
        tap.take(inputs[0])


def _make_output_hook(family: Family, heads: int) -> Any:
    """Return a hook that passes the outputs of the heads to the tap, and the tap's result to W_O."""

    def hook(_: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
        tap = capture.get_current_tap()
        if tap is None:
            return None
        query, key, value = _split_projections(
            [tap.projections.pop(number) for number in range(len(family.inputs))], heads
        )
        output = tap.layer(tap.seen - 1, query, key, value, _unflatten(inputs[0], heads))
        tap.end_if_last()
        return (output.flatten(-2), *inputs[1:])

    return hook


def _split_projections(projections: list[torch.Tensor], heads: int) -> tuple[torch.Tensor, ...]:
    """Return queries, keys and values, [sentence, head, n, d_head] each."""
    if len(projections) == 1:  # [sentence, n, head · (q, k, v) · d_head]
        return tuple(_unflatten(projections[0], heads, 3).permute(3, 0, 2, 1, 4))
    return tuple(_unflatten(projection, heads).transpose(1, 2) for projection in projections)


def _unflatten(concatenated: torch.Tensor, *parts: int) -> torch.Tensor:
    """Reshape […, width] to […, *parts, remaining width]."""
    return concatenated.reshape(*concatenated.shape[:-1], *parts, -1)


def _make_repeat_hook(argument: str, heads: int) -> Any:
    """Return a hook that repeats an argument for each variant with which a pass continues.

    The argument has a row for each head of each sentence.
    """

    def hook(_: Any, inputs: tuple[torch.Tensor, ...], keyword_arguments: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        rows = keyword_arguments[argument]
        times = len(inputs[0]) * heads // len(rows)
        return inputs, keyword_arguments | {argument: rows.repeat(times, *[1] * (rows.dim() - 1))}

    return hook
