"""The modules W_Q, W_K, W_V and W_O of one layer, and what enters and leaves them in one forward pass."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers.pytorch_utils import Conv1D

from mha_viz.attention import Weights
from mha_viz.attention.trace import Array, Parameters, Trace, traced
from mha_viz.errors import ModelUnsupported, UnknownHead
from mha_viz.models.capture import Tap
from mha_viz.models.families import FAMILIES, holds
from mha_viz.quotes import quoted
from mha_viz.text import TokenizedText

TOLERANCE = 1e-3  # a family that does something else besides differs by much more


@dataclass(frozen=True)
class Place:
    """The modules of one layer's attention."""

    holder: Any
    inputs: tuple[Any, ...]  # one, or three
    output: Any


class Opened:
    """One layer of a model, ready to be listened to: ``with opened: run(opened.tap)``, then ``opened.trace(…)``.

    The two hooks stand on modules that other threads use too; they take only what this thread's pass brings.
    """

    def __init__(self, model: Any, name: str, layer: int, layers: int) -> None:
        if not 0 <= layer < layers:
            raise UnknownHead(f"Layer {layer} does not exist: {name} has {layers}.", f"Choose 0 to {layers - 1}.")
        self._name, self._layer, self._model = name, layer, model
        self._family = FAMILIES[model.config.model_type]
        if self._family.opaque:
            raise _unsupported(name, self._family.opaque)
        self._place = place(model, layer)
        self._thread = 0
        self._tap: Tap | None = None
        self._hooks: list[Any] = []
        self._heard: dict[str, torch.Tensor] = {}

    def __enter__(self) -> Opened:
        self._thread = threading.get_ident()
        self._hooks = [
            self._place.inputs[0].register_forward_hook(self._hook("x", self._layer, takes=_entered)),
            self._place.output.register_forward_hook(self._hook("output", self._layer + 1, takes=_left)),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def tap(self, weights: torch.Tensor) -> Tap:
        """The tap for the pass; it runs on to the end, beyond the last layer's softmax to its W_O."""
        self._tap = Tap(weights)
        self._tap.stop_after_last = False
        return self._tap

    def _hook(self, name: str, after: int, takes: Callable[[Any, Any], torch.Tensor]) -> Callable[..., None]:
        """Keeps a tensor when ``after`` layers have shown their attention: ALBERT runs one module many times."""

        def hook(_: Any, arguments: Any, result: Any) -> None:
            if threading.get_ident() == self._thread and self._tap is not None and self._tap.seen == after:
                self._heard[name] = takes(arguments, result)

        return hook

    def trace(self, revision: str, text: TokenizedText, weights: Weights) -> Trace:
        """What was heard, computed once more step by step. Raises ModelUnsupported when that gives something else."""
        config = self._model.config
        causal = holds(self._family.causal, config)
        x, output = (_array(self._heard[name].reshape(len(text), -1)) for name in ("x", "output"))
        trace = traced(
            *(self._name, revision, self._layer, text, x, _parameters(self._place)),
            np.triu(np.full((len(text), len(text)), causal), 1),
            heads=config.num_attention_heads,
            scaling=_scaling(self._place.holder, config),
            pre_norm=holds(self._family.pre_norm, config),
            of_model=(weights[self._layer], output),
        )
        if max(trace.agreement) > TOLERANCE:
            raise _unsupported(self._name, "it computes attention in another way than softmax(q kᵀ / √d_k) v")
        return trace


def _scaling(holder: Any, config: Any) -> float:
    """What scores are multiplied with; 1/√d_k where the module does not say."""
    return float(getattr(holder, "scaling", (config.hidden_size / config.num_attention_heads) ** -0.5))


def _entered(arguments: Sequence[torch.Tensor], _: torch.Tensor) -> torch.Tensor:
    return arguments[0].clone()


def _left(_: Sequence[torch.Tensor], result: torch.Tensor) -> torch.Tensor:
    return result.clone()


def place(model: Any, layer: int) -> Place:
    """Where a layer's attention lies in a transformers model of a known family."""
    family = FAMILIES[model.config.model_type]
    numbers = family.numbers(model.config, layer)
    holder = model.get_submodule(family.holder.format(*numbers))
    inputs = tuple(holder.get_submodule(name) for name in family.inputs)
    return Place(holder, inputs, model.get_submodule(family.output.format(*numbers)))


def _unsupported(name: str, why: str) -> ModelUnsupported:
    return ModelUnsupported(
        f"The inside of {quoted(name)} cannot be shown: {why}.",
        "Choose a model such as BERT, DistilBERT, RoBERTa, ELECTRA, ALBERT or GPT-2.",
    )


def _parameters(place: Place) -> Parameters:
    matrices = [_array(matrix(module)) for module in place.inputs]
    biases = [_bias(module, weight.shape[1]) for module, weight in zip(place.inputs, matrices, strict=True)]
    if len(matrices) == 1:  # GPT-2: one matrix [d_model, 3 · h · d_k]
        matrices, biases = np.split(matrices[0], 3, axis=1), np.split(biases[0], 3)
    w_o = _array(matrix(place.output))
    w_q, w_k, w_v = map(np.ascontiguousarray, matrices)
    b_q, b_k, b_v = map(np.ascontiguousarray, biases)
    return Parameters(w_q, w_k, w_v, w_o, b_q, b_k, b_v, _bias(place.output, w_o.shape[1]))


def matrix(module: Any) -> torch.Tensor:
    """The weight of a linear layer as [in, out], however it is stored."""
    weight: torch.Tensor = module.weight if isinstance(module, Conv1D) else module.weight.T
    return weight.detach()


def _bias(module: Any, width: int) -> Array:
    return np.zeros(width, np.float32) if module.bias is None else _array(module.bias)


def _array(tensor: torch.Tensor) -> Array:
    """A copy of one's own, in memory of this process."""
    array: npt.NDArray[np.float32] = np.array(tensor.detach().float().cpu().numpy(), order="C")
    return array
