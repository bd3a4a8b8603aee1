"""Record attention during a forward pass of a transformers model, and allow changing it on the way.

transformers can compute a model's attention with a registered function. The function here, which
:mod:`mha_viz.models.reading.opening` registers, records every layer's probabilities in the :class:`Tap` of the current
call. A ContextVar separates concurrent calls on one model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch

from mha_viz.attention import Weights
from mha_viz.attention.steps import Step, StepData
from mha_viz.models.families import FAMILIES, is_listed
from mha_viz.models.transformers_parts import check_function, uses_registered_attention
from mha_viz.text import clean

IMPLEMENTATION = "mha_capture"  # the attn_implementation with which models are loaded

# The attention of these families is computed here, directly in the tap's memory. Other families use their own function,
# and the result is copied.
PLAIN_FAMILIES = frozenset(name for name, family in FAMILIES.items() if family.plain)

# PyTorch's softmax is about five times slower for rows shorter than a vector register: it handles single numbers.
MIN_VECTOR_ROW = 16 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 8


def choose_implementation(family: str) -> str:
    """Return the attn_implementation with which to load models of a family.

    It is "eager" for families that are rewritten after loading and for those without a row.
    """
    return "eager" if not is_listed(family) or is_rewritten(family) else IMPLEMENTATION


def is_rewritten(family: str) -> bool:
    """Return whether this package computes the attention of a family with the installed transformers."""
    return family in FAMILIES and FAMILIES[family].rewritten and not uses_registered_attention(family)


# Queries, keys and values, [sentence, head, n, d_head] each.
QueryKeyValue = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class LastLayerSeen(Exception):  # a signal, not an error
    """Ends a forward pass once the last layer's attention is known, because nothing after it is shown."""


class Tap:
    """A record of one forward pass. Subclasses may read and change the outputs of each layer's heads.

    ``weights`` is [layer, head, query, key], float32, and is written in place; for several sentences of equal length it
    is [layer, head, sentence, query, key]. ``seen`` counts the layers so far: layers are numbered by call, because
    ALBERT runs one module many times. With ``stop_after_last`` False, the pass continues after the last layer's
    attention. With ``differentiable`` True, gradients flow back from the last states to the arguments of ``layer``.

    A reading with a subclass says "changed by" and the tap's ``name``, by default the name of its class, because its
    numbers may not be the model's own. A tap that only reads sets ``changes`` to False.

    This example makes a head attend evenly and shows what later layers then do (``Encoder.through`` makes the tap and
    runs it):

    >>> class Even(mv.Tap):
    ...     def layer(self, index, query, key, value, output):
    ...         if index == 1:
    ...             self.weights[1, 2] = 1 / key.shape[2]  # what the reading shows of L1H2
    ...             output[:, :, 2] = value[:, 2].mean(dim=1, keepdim=True)  # what the head puts out
    ...         return output
    >>> changed, tap = encoder.through("The cat sat.", tap=Even)
    >>> change = abs(changed.weights - encoder.encode("The cat sat.").weights).max(axis=(2, 3))  # [layer, head]
    >>> print(change[0].max() == 0, change[1].argmax() == 2, change[2].min() > 0)
    True True True
    """

    stop_after_last = True
    differentiable = False
    changes = True  # applies to subclasses
    name = ""

    def __init__(self, weights: torch.Tensor) -> None:
        self.weights = weights
        self.seen = 0
        self.sentences = 0  # number of sentences in the input of the last W_O, for models that need it
        self.projections: dict[int, torch.Tensor] = {}  # by index in ``Family.inputs``, recorded by hooks

    def fetched(self) -> Weights:
        """Return the weights in CPU memory."""
        if self.weights.device.type == "cpu":
            weights: Weights = self.weights.numpy()
            return weights
        # A GPU writes to pinned memory at full speed, and numpy uses huge pages: 75 MB take 5 ms instead of 60 ms.
        pinned_weights = torch.empty(self.weights.shape, pin_memory=True).copy_(self.weights)
        weights = np.empty(pinned_weights.shape, np.float32)
        torch.from_numpy(weights).copy_(pinned_weights)
        return weights

    def steps(self) -> tuple[Step, ...]:
        """Return the steps that ``Attention.made`` records for this tap: none if the numbers are the model's own."""
        is_own = type(self) is Tap or not self.changes
        return () if is_own else (Step(StepData("changed", by=clean(self.name or type(self).__name__))),)

    def slot(self, index: int) -> torch.Tensor:
        """Return the memory for a layer's weights: [head, query, key], or [head, sentence, query, key]."""
        return self.weights[index]

    def attends(self, index: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> QueryKeyValue:
        """Return the queries, keys and values that the layer's heads attend with.

        Called before :meth:`layer`, in families whose attention function is replaced. The returned tensors replace the
        arguments.
        """
        return query, key, value

    def layer(
        self, index: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, output: torch.Tensor
    ) -> torch.Tensor:
        """Return the outputs of a layer's heads, which replace ``output`` as the input of the output projection W_O.

        Called once per layer, in float32. query, key, value: [sentence, head, n, d_head]; output: [sentence, n, head,
        d_head]. If heads share keys and values, as in Llama, key and value have fewer heads.
        """
        return output

    @property
    def only_weights(self) -> bool:
        """Whether neither the outputs of heads nor gradients are needed."""
        return type(self).layer is Tap.layer and not self.differentiable

    def enters(self, x: torch.Tensor) -> None:
        """Receive the input of a layer, [sentence, n, d_model], in models whose passes can begin at any layer."""

    def ends_with(self, index: int) -> bool:
        """Return whether the pass ends with the weights of this layer, so that the outputs of its heads are unused."""
        tap_class = type(self)
        reads_outputs = tap_class.layer is not Tap.layer or tap_class.end_if_last is not Tap.end_if_last
        return self.stop_after_last and index + 1 == len(self.weights) and not reads_outputs

    def take(self, weights: torch.Tensor) -> None:
        """Record the weights of the next layer, [sentence, head, query, key]."""
        slot = self.slot(self.seen)
        self.seen += 1
        slot.copy_(weights.detach().transpose(0, 1).reshape(slot.shape))

    def end_if_last(self) -> None:
        """Raise LastLayerSeen if all layers were seen and the tap needs nothing more."""
        if self.stop_after_last and self.seen == len(self.weights):
            raise LastLayerSeen


class RecordingTap(Tap):
    """A tap that keeps the outputs of each layer's heads and the values of the first sentence.

    Outputs are [sentence, n, head, d_head], values [head, n, d_head].
    """

    changes = False

    def __init__(self, weights: torch.Tensor) -> None:
        super().__init__(weights)
        self.outputs: list[torch.Tensor] = []
        self.values: list[torch.Tensor] = []

    def layer(
        self, index: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, output: torch.Tensor
    ) -> torch.Tensor:
        """Record the outputs and values. Outputs are not copied if gradients flow back to them."""
        self.outputs.append(output if self.differentiable else output.clone())
        self.values.append(value[0].detach().repeat_interleave(output.shape[2] // value.shape[1], dim=0))
        return output


_TAP: ContextVar[Tap | None] = ContextVar("tap", default=None)


def get_current_tap() -> Tap | None:
    """Return the tap of the calling thread's forward pass."""
    return _TAP.get()


@contextmanager
def use_tap(tap: Tap) -> Iterator[Tap]:
    """Record the calling thread's forward passes in ``tap`` while inside this block."""
    token = _TAP.set(tap)
    try:
        yield tap
    except LastLayerSeen:
        pass
    finally:
        _TAP.reset(token)


def capture_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute attention and record it in the current tap. This is the registered attention function.

    Raises LastLayerSeen if the tap needs nothing more.
    """
    tap = _TAP.get()
    if tap is None:
        return _eager_attention(module, query, key, value, attention_mask, **options)
    index, dtype = tap.seen, query.dtype
    query, key, value = tap.attends(index, query.float(), key.float(), value.float())  # rows sum to 1 only in float32
    attention_mask = attention_mask if attention_mask is None else attention_mask.float()
    if getattr(module.config, "model_type", None) in PLAIN_FAMILIES and not tap.differentiable:
        tap.seen += 1
        weights = _compute_weights(tap.slot(index), query, key, attention_mask, options["scaling"])
        if tap.ends_with(index):
            raise LastLayerSeen
        output = torch.bmm(weights.flatten(0, 1), _flatten_heads(value))  # [head · sentence, query, d_head]
        output = output.view(*weights.shape[:3], -1).permute(1, 2, 0, 3)  # [sentence, query, head, d_head]
        weights = weights.transpose(0, 1)
    else:
        output, weights = _eager_attention(module, query, key, value, attention_mask, **options)
        tap.take(weights)
    output = tap.layer(index, query, key, value, output)
    tap.end_if_last()
    return output.to(dtype), weights


def attend_unmasked(tap: Tap, projections: torch.Tensor, size: int, scaling: float) -> torch.Tensor:
    """Return the outputs of all heads, [sentence, n, head · d_head], for a tap that needs only weights; without a mask.

    ``projections``: [sentence, n, 3 · head · d_head], queries, keys and values side by side; only queries and keys for
    a layer with which the pass ends. ``size``: d_head. Raises LastLayerSeen when the tap needs nothing more.
    """
    index = tap.seen
    tap.seen += 1
    sentences, n, width = projections.shape
    scores = tap.slot(index).view(-1, n, n)  # [head · sentence, query, key]
    heads = len(scores) // sentences
    by_head = projections.view(sentences, n, width // (heads * size), heads, size).permute(2, 3, 0, 1, 4)
    query, key, *value = by_head.reshape(-1, len(scores), n, size).unbind()
    torch.baddbmm(scores, query, key.transpose(1, 2), beta=0, alpha=scaling, out=scores)
    _softmax_(scores)
    tap.end_if_last()
    output = torch.bmm(scores, value[0]).view(heads, sentences, n, size)
    return output.permute(1, 2, 0, 3).reshape(sentences, n, -1)


def _eager_attention(
    module: torch.nn.Module, *tensors: torch.Tensor | None, **options: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Call the family's own eager attention function, found in the module that defines the layer's class."""
    source = type(module).__module__
    if not hasattr(sys.modules[source], "eager_attention_forward"):
        check_function(source)
    result: tuple[torch.Tensor, torch.Tensor] = sys.modules[source].eager_attention_forward(module, *tensors, **options)
    return result


def _compute_weights(
    slot: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    mask: torch.Tensor | None,
    scaling: float,
) -> torch.Tensor:
    """Compute the weights of a layer, [head, sentence, query, key], in the memory of ``slot``."""
    # Heads come before sentences, so that the numbers of a head are contiguous.
    sentences, heads = query.shape[:2]
    scores = slot.view(-1, *slot.shape[-2:])  # [head · sentence, query, key]
    torch.baddbmm(scores, _flatten_heads(query), _flatten_heads(key).transpose(1, 2), beta=0, alpha=scaling, out=scores)
    by_head = slot.view(heads, sentences, *slot.shape[-2:])
    if mask is not None:
        by_head.add_(mask.transpose(0, 1))
    _softmax_(scores)
    return by_head


def _softmax_(scores: torch.Tensor) -> None:
    """Apply softmax over the last axis, in place."""
    if scores.shape[-1] >= MIN_VECTOR_ROW:
        torch.softmax(scores, -1, out=scores)
        return
    scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    scores.div_(scores.sum(-1, keepdim=True))


def _flatten_heads(vectors: torch.Tensor) -> torch.Tensor:
    """Reshape [sentence, head, n, d_head] to [head · sentence, n, d_head]."""
    return vectors.transpose(0, 1).flatten(0, 1)
