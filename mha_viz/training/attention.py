"""Multi-head attention in the open: every head with its own slice of W_Q, W_K, W_V and W_O (Vaswani et al. 2017, 3.2).

The papers write W_Q as one matrix [d_model, h·d_k]; here it is kept as [h, d_model, d_k], the same numbers with the
heads laid apart (:func:`side_by_side`). Everything is a batched product over heads, so that each head is computed by
the same operations in the same order, whatever its number: heads that are equal stay equal to the last bit. One
condition comes from the machine: libraries round a product a little differently when its numbers begin elsewhere in a
cache line. With d_model and the number of sentences multiples of 16 all heads lie alike; with other sizes rounding
alone sets equal heads apart within some dozen steps.
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

RANDOM, SAME_QKV, SAME_ALL = "random", "same W_Q, W_K, W_V", "all the same"
STARTS = (RANDOM, SAME_QKV, SAME_ALL)


@dataclass(frozen=True)
class Heads:
    """The weights of one layer.

    ``query``, ``key``, ``value``: [matrix, seen, d_k], one matrix per head or one for all. ``output``:
    [head, d_k, d_model], the slices of W_O. ``columns``: [head, seen], which numbers of the vector each head sees; None
    when every head sees all.
    """

    shape: Shape
    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor
    columns: Tensor | None

    def tensors(self) -> tuple[Tensor, ...]:
        """What is learned: W_Q, W_K, W_V, W_O."""
        return self.query, self.key, self.value, self.output

    def of_each_head(self) -> Slices:
        """The slices of every head; a shared matrix is seen once by each."""
        heads = self.shape.heads
        return Slices(*(w.expand(heads, -1, -1) for w in self.tensors()))


class Slices(NamedTuple):
    """W_Q, W_K, W_V as [head, seen, d_k] and W_O as [head, d_k, d_model]."""

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor


class Attended(NamedTuple):
    """``maps``: [head, sentence, query, key], rows sum to 1. ``contexts``: [head, sentence · word, d_k], weighted
    values. ``parts``: [head, sentence · word, d_model], what each head adds; their sum is the layer's output."""

    maps: Tensor
    contexts: Tensor
    parts: Tensor


def begin(shape: Shape, generator: torch.Generator, start: str = RANDOM) -> Heads:
    """Weights before training, drawn from ``generator`` only."""
    shape.check()
    if start not in STARTS:
        raise SettingError(f"There is no start “{start}”.", f"Known: {', '.join(STARTS)}.")
    inputs = (shape.matrices, shape.seen, shape.d_k)
    query, key, value = (drawn(generator, *inputs, scale=shape.seen**-0.5) for _ in range(3))
    output = drawn(generator, shape.heads, shape.d_k, shape.d_model, scale=shape.d_model**-0.5)
    if start != RANDOM:
        query, key, value = (w[:1].repeat(shape.matrices, 1, 1) for w in (query, key, value))
    if start == SAME_ALL:
        output = output[:1].repeat(shape.heads, 1, 1)
    for learned in (query, key, value, output):
        learned.requires_grad_()
    return Heads(shape, query, key, value, output, _columns(shape, generator))


def drawn(generator: torch.Generator, *axes: int, scale: float) -> Tensor:
    """Normal numbers with standard deviation ``scale``; the process's own generator is not touched."""
    return torch.randn(*axes, generator=generator) * scale


def _columns(shape: Shape, generator: torch.Generator) -> Tensor | None:
    if shape.cut == FULL:
        return None
    if shape.cut != OVERLAPPING:
        return torch.arange(shape.d_model).view(shape.heads, shape.d_k)  # chunk after chunk
    chunks = [torch.randperm(shape.d_model, generator=generator)[: shape.seen] for _ in range(shape.heads)]
    return torch.stack([chunk.sort().values for chunk in chunks])


def attend(heads: Heads, slices: Slices, x: Tensor) -> Attended:
    """What every head makes of ``x`` [sentence, word, d_model]. ``slices`` are those of ``heads.of_each_head()``; they
    are an argument so that gradients can be asked for head by head."""
    h, d_k = heads.shape.heads, heads.shape.d_k
    sentences, words, _ = x.shape
    flat = x.reshape(sentences * words, -1)
    cut = heads.columns
    seen = flat.expand(h, -1, -1) if cut is None else flat[:, cut].transpose(0, 1)  # [head, sentence · word, seen]
    query, key, value = (torch.bmm(seen, w).view(h * sentences, words, d_k) for w in slices[:3])
    scores = torch.bmm(query, key.transpose(1, 2)) / math.sqrt(d_k)  # [head · sentence, query, key]
    maps = torch.softmax(scores, dim=-1)
    contexts = torch.bmm(maps, value).view(h, sentences * words, d_k)
    parts = torch.bmm(contexts, slices.output)
    return Attended(maps.view(h, sentences, words, words), contexts, parts)


def side_by_side(heads: Heads) -> Iterator[Tensor]:
    """W_Q, W_K, W_V as the papers write them, [d_model, h·d_k], and W_O as [h·d_k, d_model]; of heads that see all."""
    for w in heads.tensors()[:3]:
        yield w.transpose(0, 1).reshape(heads.shape.d_model, -1)
    yield heads.output.reshape(-1, heads.shape.d_model)


def penalty(maps: Tensor) -> Tensor:
    """‖A Aᵀ − I‖_F² (Lin et al. 2017), mean over words; A [head, key] holds one row per head, all of the same word."""
    rows = maps.permute(1, 2, 0, 3)  # [sentence, query, head, key]
    gram = rows @ rows.transpose(2, 3)
    return ((gram - torch.eye(maps.shape[0])) ** 2).sum(dim=(2, 3)).mean()
