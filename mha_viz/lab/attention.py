"""Multi-head attention with explicit heads, each with its own slice of W_Q, W_K, W_V and W_O.

The formulas are those of Vaswani et al. 2017, section 3.2.

The papers write W_Q as one matrix [d_model, h·d_k]; here it is stored as [h, d_model, d_k], the same numbers grouped by
head (:func:`iter_wide_matrices`). Everything is a batched product over heads, so every head is computed by the same
operations in the same order, and equal heads stay equal to the last bit. The hardware sets one condition: libraries
round a product slightly differently depending on where its operands start in a cache line. When d_model and the number
of sentences are multiples of 16, all heads are aligned alike. With other sizes, rounding alone makes equal heads differ
within a few dozen steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from mha_viz.analysis.costs import FULL, OVERLAPPING, Shape
from mha_viz.errors import SettingError
from mha_viz.lab.lab import ALL_RANDOM, SAME_ALL, SAME_QKV, SAME_TWO

STARTS = (ALL_RANDOM, SAME_QKV, SAME_ALL, SAME_TWO)


@dataclass(frozen=True)
class Heads:
    """The weights of one layer.

    Attributes:
        shape: the sizes of the layer.
        query, key, value: [matrix, input, d_k], one matrix per head or one for all.
        output: [head, d_k, d_model], the slices of W_O.
        columns: [head, input], the components of the vector that each head sees; None when every head sees all of them.
    """

    shape: Shape
    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor
    columns: Tensor | None

    def tensors(self) -> tuple[Tensor, ...]:
        """Return the trainable weights: W_Q, W_K, W_V, W_O."""
        return self.query, self.key, self.value, self.output

    def slice_by_head(self) -> Slices:
        """Return the slices of every head; a shared matrix is repeated for each head."""
        heads = self.shape.heads
        return Slices(*(w.expand(heads, -1, -1) for w in self.tensors()))


class Slices(NamedTuple):
    """The weights of a layer by head: W_Q, W_K, W_V as [head, input, d_k] and W_O as [head, d_k, d_model]."""

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor


class AttentionOutput(NamedTuple):
    """The result of a layer.

    Attributes:
        maps: attention weights [head, sentence, query, key]; rows sum to 1.
        contexts: weighted means of the values, [head, sentence · word, d_k].
        head_outputs: outputs after W_O, [head, sentence · word, d_model]; their sum is the layer's output.
    """

    maps: Tensor
    contexts: Tensor
    head_outputs: Tensor


def draw_initial_heads(shape: Shape, generator: torch.Generator, start: str = ALL_RANDOM) -> Heads:
    """Draw the initial weights from ``generator`` only. Raises SettingError for an unknown ``start``."""
    shape.check()
    if start not in STARTS:
        raise SettingError(f"There is no start “{start}”.", f"Choose one of: {', '.join(STARTS)}.")
    sizes = (shape.matrices, shape.input_width, shape.d_k)
    query, key, value = (draw_normal(generator, *sizes, scale=shape.input_width**-0.5) for _ in range(3))
    output = draw_normal(generator, shape.heads, shape.d_k, shape.d_model, scale=shape.d_model**-0.5)
    if start == SAME_TWO:
        query, key, value, output = (torch.cat([w[:-1], w[-2:-1]]) for w in (query, key, value, output))
    elif start != ALL_RANDOM:
        query, key, value = (w[:1].repeat(shape.matrices, 1, 1) for w in (query, key, value))
    if start == SAME_ALL:
        output = output[:1].repeat(shape.heads, 1, 1)
    for weights in (query, key, value, output):
        weights.requires_grad_()
    return Heads(shape, query, key, value, output, _choose_columns(shape, generator))


def draw_normal(generator: torch.Generator, *sizes: int, scale: float) -> Tensor:
    """Draw normally distributed numbers with standard deviation ``scale``, without torch's global generator."""
    return torch.randn(*sizes, generator=generator) * scale


def _choose_columns(shape: Shape, generator: torch.Generator) -> Tensor | None:
    """Choose the components of the vector that each head sees, [head, input]; None when all heads see all of them."""
    if shape.cut == FULL:
        return None
    if shape.cut != OVERLAPPING:
        return torch.arange(shape.d_model).view(shape.heads, shape.d_k)  # chunk after chunk
    chunks = [torch.randperm(shape.d_model, generator=generator)[: shape.input_width] for _ in range(shape.heads)]
    return torch.stack([chunk.sort().values for chunk in chunks])


def attend(heads: Heads, slices: Slices, x: Tensor) -> AttentionOutput:
    """Compute the attention of every head on ``x`` [sentence, word, d_model].

    ``slices`` come from ``heads.slice_by_head()``; they are an argument so that each head has its own gradients.
    """
    h, d_k = heads.shape.heads, heads.shape.d_k
    sentences, words, _ = x.shape
    flat = x.reshape(sentences * words, -1)
    columns = heads.columns
    # [head, sentence · word, input]
    inputs = flat.expand(h, -1, -1) if columns is None else flat[:, columns].transpose(0, 1)
    query, key, value = (torch.bmm(inputs, w).view(h * sentences, words, d_k) for w in slices[:3])
    scores = torch.bmm(query, key.transpose(1, 2)) / math.sqrt(d_k)  # [head · sentence, query, key]
    maps = torch.softmax(scores, dim=-1)
    contexts = torch.bmm(maps, value).view(h, sentences * words, d_k)
    head_outputs = torch.bmm(contexts, slices.output)
    return AttentionOutput(maps.view(h, sentences, words, words), contexts, head_outputs)


def iter_wide_matrices(heads: Heads) -> Iterator[Tensor]:
    """Yield W_Q, W_K, W_V as the papers write them, [d_model, h·d_k], and W_O as [h·d_k, d_model].

    All heads must see the whole vector (FULL).
    """
    for w in heads.tensors()[:3]:
        yield w.transpose(0, 1).reshape(heads.shape.d_model, -1)
    yield heads.output.reshape(-1, heads.shape.d_model)


def compute_penalty(maps: Tensor) -> Tensor:
    """Return ‖A Aᵀ − I‖_F² (Lin et al. 2017), mean over words; A [head, key] has the rows of all heads for a word."""
    rows = maps.permute(1, 2, 0, 3)  # [sentence, query, head, key]
    gram = rows @ rows.transpose(2, 3)
    return ((gram - torch.eye(maps.shape[0])) ** 2).sum(dim=(2, 3)).mean()
