"""Attention: the one data type. Text goes down to a model and comes up as this."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from mha_viz.errors import EmptyText, ShapeError, UnknownHead
from mha_viz.options import AnyFigure, HeadOptions, Options
from mha_viz.text import TokenizedText, clean, from_names
from mha_viz.words import averaged, between

__all__ = ["Attention", "Content", "Head", "Shown", "Weights", "called", "draws"]

Weights = npt.NDArray[np.float32]

ROW_SUM_TOLERANCE = 1e-3
HALF_TOLERANCE = 0.02  # of rows computed in float16 or bfloat16
READ = (("typed",), ("given words",))  # first steps of a reading whose numbers follow from model and text

_FIGURES: dict[str, Callable[..., Any]] = {}


def draws(name: str, function: Callable[..., Any]) -> None:
    """How a reading draws itself: said once by the package, because drawing lies floors above and imports only go
    down."""
    if name in _FIGURES:
        raise ValueError(f"Two functions draw {name}.")
    _FIGURES[name] = function


def called(model: str) -> str:
    """What a model is called: a folder by its own name, for where it lies is nobody's business."""
    is_path = re.match(r"[.~]?/|[A-Za-z]:[\\/]", model) is not None
    return [part for part in [model, *re.split(r"[\\/]", model)] if part][-1] if is_path else model


class Head(NamedTuple):
    """One head, both numbers counted from 0. ``str`` gives "L3H7", ``paper`` the 1-based "4-8"."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"L{self.layer}H{self.head}"

    @property
    def paper(self) -> str:
        """The name in the style of Clark et al. 2019, counted from 1."""
        return f"{self.layer + 1}-{self.head + 1}"

    @classmethod
    def parse(cls, name: str) -> Head:
        """The head that "L3H7" names. Raises UnknownHead for anything else."""
        match = re.fullmatch(r"[Ll](\d{1,3})[Hh](\d{1,3})", name.strip(), flags=re.ASCII)
        if match is None:
            raise UnknownHead(f"“{name[:40]}” is not the name of a head.", "Write it as L3H1: layer 3, head 1, from 0.")
        return cls(int(match[1]), int(match[2]))


class Content(NamedTuple):
    """Attention with the special tokens hidden and nothing rescaled: rows no longer sum to 1."""

    text: TokenizedText
    weights: Weights  # [layer, head, query, key]
    hidden: Weights  # [layer, head, query]: share of the row that went to special tokens


@dataclass(frozen=True, eq=False)
class Shown:
    """The numbers of a picture: some heads of one reading, as a view shows them.

    ``weights[head, row, column]`` belong to ``heads`` in order; ``hidden[head, row]`` is the share of a row that is not
    shown. ``rows`` and ``cols`` are the texts of the units, ``row_index`` and ``col_index`` count them among all units
    of the reading. ``view`` says how they were made (unit, special, …).
    """

    model: str
    revision: str
    text: TokenizedText
    heads: tuple[Head, ...]
    weights: Weights
    hidden: Weights
    rows: tuple[str, ...]
    cols: tuple[str, ...]
    row_index: tuple[int, ...]
    col_index: tuple[int, ...]
    view: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Attention:
    """What every head of a model does with one text.

    ``weights[layer, head, query, key]`` is float32 and read-only; each row sums to 1. ``hidden[layer, head,
    query]`` is the share of the original row that was removed before rescaling (0 for a raw reading). ``made`` lists
    how it was made: first how a model read the text ("typed", "given words"; neither where the numbers come from
    elsewhere), then each step since, in order ("by words", "special hidden", "only L3H1").

    Raises ShapeError when axes, tokens or row sums do not fit.
    """

    model: str
    revision: str
    text: TokenizedText
    weights: Weights
    hidden: Weights = field(default_factory=lambda: np.zeros((0, 0, 0), np.float32))
    made: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        weights = _frozen(self.weights)
        object.__setattr__(self, "weights", weights)
        _check(weights, len(self.text))
        hidden = _frozen(self.hidden if self.hidden.size else np.zeros(weights.shape[:3], np.float32))
        if hidden.shape != weights.shape[:3] or not np.isfinite(hidden).all():
            raise ShapeError(f"hidden has axes {hidden.shape}, the weights' rows {weights.shape[:3]}.")
        object.__setattr__(self, "hidden", hidden)

    @classmethod
    def from_tensors(
        cls,
        attentions: Sequence[Any],
        tokens: Sequence[str],
        *,
        sentence_b_start: int | None = None,
        model: str = "tensors",
        revision: str = "",
    ) -> Attention:
        """Attention that was computed elsewhere, such as ``outputs.attentions`` of transformers.

        ``attentions``: one array or tensor a layer, [head, query, key] or [1, head, query, key], or one array of
        [layer, head, query, key]. ``tokens``: the tokenizer's names, as ``tokenizer.convert_ids_to_tokens`` gives them
        ("##ing", "Ġthe", "▁the"), which are put together into words. ``sentence_b_start``: index of the first token of
        a second sentence. Rows in half precision are rescaled to sum to 1.

        Raises ShapeError for anything that is not self-attention over these tokens; the message says what it is.
        """
        if isinstance(tokens, str) or not hasattr(tokens, "__len__"):
            raise ShapeError(f"tokens is {str(tokens)[:40]!r}, which is no list.", "Give a list with one text a token.")
        weights = _stacked(attentions)
        if weights.shape[2] != len(tokens) or weights.shape[3] != len(tokens):
            raise ShapeError(
                f"The weights are for {weights.shape[2]} queries × {weights.shape[3]} keys, "
                f"and {len(tokens)} tokens were given.",
                "Give the tokens of the same text, special ones included.",
            )
        return cls(clean(model), clean(revision), from_names([str(t) for t in tokens], sentence_b_start), weights)

    def grid(self, **options: Unpack[Options]) -> AnyFigure:
        """All heads at a glance, as a figure that Jupyter shows and that saves itself (``mha_viz.notebook.grid``)."""
        figure: AnyFigure = _FIGURES["grid"](self, **options)
        return figure

    def heatmap(self, layer: int | None = None, head: int | None = None, **options: Unpack[HeadOptions]) -> AnyFigure:
        """One head's matrix as a figure (``mha_viz.notebook.heatmap``)."""
        figure: AnyFigure = _FIGURES["heatmap"](self, layer, head, **options)
        return figure

    def links(self, layer: int | None = None, head: int | None = None, **options: Unpack[HeadOptions]) -> AnyFigure:
        """Token links of one head, or of several of a layer, as a figure (``mha_viz.notebook.links``)."""
        figure: AnyFigure = _FIGURES["links"](self, layer, head, **options)
        return figure

    def __reduce__(self) -> tuple[Callable[..., Attention], tuple[Any, ...]]:
        return type(self), (self.model, self.revision, self.text, self.weights, self.hidden, self.made)

    def __getitem__(self, head: Head) -> Weights:
        """The matrix of one head, [query, key]. Raises UnknownHead."""
        layer, index = head
        if not (0 <= layer < self.layers and 0 <= index < self.heads):
            raise UnknownHead(
                f"{Head(layer, index)} does not exist: {self.model} has {self.layers} layers × {self.heads} heads.",
                f"Choose between L0H0 and {Head(self.layers - 1, self.heads - 1)}.",
            )
        matrix: Weights = self.weights[layer, index]
        return matrix

    def __repr__(self) -> str:
        return f"Attention({self.model}, {self.layers} layers × {self.heads} heads, {len(self.text)} tokens)"

    @cached_property
    def key(self) -> str:
        """A digest of all that makes this reading different from others: model, revision, axes, every token, and how
        it was made; where no model's reading accounts for the numbers, the numbers themselves. Equal readings have
        equal keys, in other processes too."""
        text = self.text
        tokens = [[t.text, t.word, t.segment, t.start, t.end, t.known] for t in text.tokens]
        typed = [text.text, text.pair, text.cut and astuple(text.cut), text.unit, text.given]
        identity = [self.model, self.revision, self.weights.shape, self.made, typed, tokens]
        digest = hashlib.blake2b(json.dumps(identity).encode(), digest_size=12)
        if self.made[:1] not in READ:
            digest.update(np.ascontiguousarray(self.weights).data)
            digest.update(np.ascontiguousarray(self.hidden).data)
        return digest.hexdigest()

    @property
    def layers(self) -> int:
        """Number of layers."""
        return int(self.weights.shape[0])

    @property
    def heads(self) -> int:
        """Number of heads in each layer."""
        return int(self.weights.shape[1])

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens' texts, in the order of both axes of a matrix."""
        return tuple(t.text for t in self.text.tokens)

    def by_words(self) -> Attention:
        """One row and column a word: attention *to* a word is the sum over its pieces, *from* a word the mean.

        Rows still sum to 1 (Clark et al. 2019, section 4.1). Special tokens stay units of their own.
        """
        groups = self.text.groups
        if self.text.unit == "words":
            return self
        weights, hidden = between(self.weights, groups, groups), averaged(self.hidden, groups, -1)
        return self._next("by words", self.text.by_words(), _own(weights), _own(hidden))

    def only(self, heads: Sequence[Head]) -> Attention:
        """A reading with one layer, which has just these heads in their order. Raises UnknownHead."""
        weights = np.stack([self[head] for head in heads])[None]
        hidden = np.stack([self.hidden[head] for head in heads])[None]
        step = f"only {', '.join(str(Head(*head)) for head in heads)}"
        return self._next(step, self.text, _own(weights), _own(hidden))

    def content(self) -> Content:
        """The rows and columns of ordinary tokens, nothing rescaled, with the share that is hidden.

        Raises EmptyText when only special tokens exist.
        """
        keep = [i for i, t in enumerate(self.text.tokens) if not t.special]
        if not keep:
            raise EmptyText("Without special tokens nothing is left to show.", "Type at least one word.")
        drop = [i for i, t in enumerate(self.text.tokens) if t.special]
        rows = self.weights[:, :, keep, :]
        hidden = rows[..., drop].sum(axis=3, dtype=np.float64).astype(np.float32)
        return Content(self.text.without_special(), rows[..., keep], hidden)

    def without_special(self) -> Attention:
        """Ordinary tokens only, each row rescaled to sum to 1; ``hidden`` says what share of it was removed.

        A row whose whole mass lay on special tokens has nothing to rescale and becomes uniform.
        Raises EmptyText when only special tokens exist.
        """
        text, weights, hidden = self.content()
        left = weights.sum(axis=3, keepdims=True)
        uniform = np.float32(1 / len(text))
        rescaled = np.divide(weights, left, out=np.full_like(weights, uniform), where=left > 1e-12)
        before = self.hidden[:, :, [not t.special for t in self.text.tokens]]
        return self._next("special hidden", text, _own(rescaled), _own(before + (1 - before) * hidden))

    def _next(self, step: str, text: TokenizedText, weights: Weights, hidden: Weights) -> Attention:
        """The reading that ``step`` makes of this one."""
        return Attention(self.model, self.revision, text, weights, hidden, (*self.made, step))


def _stacked(attentions: Sequence[Any]) -> Weights:
    """[layer, head, query, key] from one array a layer; a batch of one is unwrapped."""
    given = () if attentions is None else attentions
    if not hasattr(given, "__iter__"):
        raise ShapeError(
            f"{str(given)[:40]!r} is no list of layers.", "Take outputs.attentions by name: one tensor a layer."
        )
    layers = [_array(layer) for layer in given]
    if not layers:
        raise ShapeError(
            f"No layer of attention was given: {'None' if attentions is None else 'the tuple is empty'}.",
            'Load the model with attn_implementation="eager" and take outputs.attentions by name.',
        )
    layers = [_unbatched(layer) for layer in layers]
    shapes = {layer.shape for layer in layers}
    if len(shapes) > 1:
        raise ShapeError(
            f"The layers have different axes: {', '.join(map(str, sorted(shapes)))}.",
            "Give the layers of one stack: the encoder's, or the decoder's own.",
        )
    queries, keys = layers[0].shape[1:]
    if queries != keys:
        raise ShapeError(
            f"These weights lead from {queries} queries to {keys} keys: cross-attention, or a step with a cache.",
            "Only attention of a text to itself can be drawn; give encoder_attentions or decoder_attentions.",
        )
    return _own(np.stack(layers).astype(np.float32, copy=False))


def _array(layer: Any) -> npt.NDArray[Any]:
    """A layer as an array; tensors of torch are taken off their device and their graph."""
    if layer is None:
        raise ShapeError("A layer of attention is None.", 'Load the model with attn_implementation="eager".')
    half = "float16" in str(getattr(layer, "dtype", ""))
    if hasattr(layer, "detach"):
        layer = layer.detach().float().cpu().numpy()
    array = np.asarray(layer)
    return _rescaled(array.astype(np.float32)) if half else array


def _rescaled(weights: Weights) -> Weights:
    """Rows that miss 1 by what 16 bits round away are brought back to it; others are left for the check to find."""
    sums = weights.sum(axis=-1, keepdims=True)
    scaled: Weights = np.divide(weights, sums, out=weights.copy(), where=np.abs(sums - 1) < HALF_TOLERANCE)
    return scaled


def _unbatched(layer: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if layer.ndim == 4 and layer.shape[0] != 1:
        raise ShapeError(
            f"A layer has axes {layer.shape}: a batch of {layer.shape[0]} texts.",
            "Give one text, as in [layer[:1] for layer in outputs.attentions], without padding.",
        )
    layer = layer[0] if layer.ndim == 4 else layer
    if layer.ndim != 3 or not np.issubdtype(layer.dtype, np.number):
        raise ShapeError(f"A layer has axes {layer.shape}.", "Expected [head, query, key] or [1, head, query, key].")
    return layer


def _frozen(array: npt.ArrayLike) -> Weights:
    """Read-only float32; copied when somebody else could still write to it, through a view's base too."""
    frozen = np.asarray(array, dtype=np.float32)
    base: Any = frozen
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return _own(frozen.copy())
        base = base.base
    return frozen


def _own(fresh: Weights) -> Weights:
    """An array that nobody else holds, made read-only without a copy."""
    fresh.flags.writeable = False
    return fresh


def _check(weights: Weights, tokens: int) -> None:
    if weights.ndim != 4 or weights.shape[2] != weights.shape[3] or 0 in weights.shape:
        raise ShapeError(
            f"The weights have axes {weights.shape}.",
            "Expected [layer, head, query, key] with as many keys as queries.",
        )
    if weights.shape[2] != tokens:
        raise ShapeError(f"The weights are for {weights.shape[2]} tokens, the text has {tokens}.")
    sums = weights.sum(axis=3)
    if not np.isfinite(sums).all():
        raise ShapeError("The weights contain values that are not numbers.", "The model's files may be damaged.")
    if weights.min() < -ROW_SUM_TOLERANCE:
        raise ShapeError(f"A weight is {weights.min():.3g}.", "Attention is a share: no weight is below 0.")
    worst = float(np.abs(sums - 1).max())
    if worst > ROW_SUM_TOLERANCE:
        raise ShapeError(f"A row of weights sums to 1 ± {worst:.3g}.", "Attention rows must sum to 1 within 0.001.")
