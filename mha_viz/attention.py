"""Attention: the one data type. Text goes down to a model and comes up as this."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from operator import index
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from mha_viz.errors import EmptyText, ShapeError, UnknownHead
from mha_viz.options import AnyFigure, HeadOptions, Options
from mha_viz.text import TokenizedText, clean, from_names
from mha_viz.words import averaged, between

__all__ = ["Attention", "Content", "Head", "Quantity", "Shown", "Weights", "called", "draws"]

Weights = npt.NDArray[np.float32]

ROW_SUM_TOLERANCE = 1e-3
HALF_TOLERANCE = 0.02  # of rows computed in float16 or bfloat16
READ = (("typed",), ("given words",))  # first steps of a reading whose numbers follow from model and text

_FIGURES: dict[str, Callable[..., Any]] = {}


def draws(name: str, function: Callable[..., Any]) -> None:
    """How a reading draws or saves itself: stated once by the package, because drawings and files lie floors above and
    imports only go down."""
    if name in _FIGURES:
        raise ValueError(f"Two functions draw {name}.")
    _FIGURES[name] = function


def called(model: str) -> str:
    """The name to show for a model: of a folder only its last part, not the path to it."""
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
    def of(cls, given: Any) -> Head:
        """The head that ``Head(3, 1)``, ``(3, 1)`` or ``"L3H1"`` names. Raises UnknownHead for anything else."""
        if isinstance(given, str):
            return cls.parse(given)
        try:
            layer, head = (index(part) for part in given)
        except (TypeError, ValueError) as error:
            raise UnknownHead(f"{str(given)[:40]!r} is not a head.", "Write it as 'L3H1' or (3, 1).") from error
        if any(isinstance(part, bool) for part in given):
            raise UnknownHead(f"{str(given)[:40]!r} is not a head.", "Write it as 'L3H1' or (3, 1).")
        return cls(layer, head)

    @classmethod
    def parse(cls, name: str) -> Head:
        """The head that "L3H7" names. Raises UnknownHead for anything else."""
        match = re.fullmatch(r"[Ll](\d{1,3})[Hh](\d{1,3})", name.strip(), flags=re.ASCII)
        if match is None:
            raise UnknownHead(f"“{name[:40]}” is not the name of a head.", "Write it as L3H1: layer 3, head 1, from 0.")
        return cls(int(match[1]), int(match[2]))


class Quantity(NamedTuple):
    """What the numbers of a reading are: the name, one line on what it is, whether a row is shares of one whole, and
    the check that an array [layer, head, query, key] passes at birth (raises ShapeError)."""

    name: str
    about: str
    is_share: bool
    check: Callable[[Weights], None]


def _shares(weights: Weights) -> None:
    """Rows that sum to 1, no weight below 0."""
    sums = weights.sum(axis=3)
    if not np.isfinite(sums).all():
        raise ShapeError("The weights contain values that are not numbers.", "The model's files may be damaged.")
    if weights.min() < -ROW_SUM_TOLERANCE:
        raise ShapeError(f"A weight is {weights.min():.3g}.", "Attention is a share: no weight is below 0.")
    worst = float(np.abs(sums - 1).max())
    if worst > ROW_SUM_TOLERANCE:
        raise ShapeError(f"A row of weights sums to 1 ± {worst:.3g}.", "Attention rows must sum to 1 within 0.001.")


def _lengths(norms: Weights) -> None:
    """Numbers that are not negative; rows may sum to anything."""
    if not np.isfinite(norms).all():
        raise ShapeError("The norms contain values that are not numbers.", "The model's files may be damaged.")
    if norms.min() < 0:
        raise ShapeError(f"A norm is {norms.min():.3g}.", "A norm is a length: none is below 0.")


_ROWS = (
    Quantity("weight", "Attention weight: what share of a query's attention a key gets; rows sum to 1.", True, _shares),
    Quantity(
        "norm",
        "Norm of the value vector that a key gives a query, weighted by its attention (Kobayashi et al. 2020); "
        "rows do not sum to 1.",
        False,
        _lengths,
    ),
    Quantity(
        "rollout",
        "Attention rollout: the layer's mean attention and the residual stream, half each, followed back to the input "
        "(Abnar & Zuidema 2020); rows sum to 1.",
        True,
        _shares,
    ),
)
QUANTITIES: Mapping[str, Quantity] = MappingProxyType({row.name: row for row in _ROWS})


class Content(NamedTuple):
    """Attention with the special tokens hidden and nothing rescaled: rows no longer sum to 1."""

    queries: TokenizedText
    keys: TokenizedText
    weights: Weights  # [layer, head, query, key]
    hidden: Weights  # [layer, head, query]: share of the row that went to special tokens


@dataclass(frozen=True, eq=False)
class Shown:
    """The numbers of a picture: some heads of one reading, as a view shows them.

    ``weights[head, row, column]`` belong to ``heads`` in order; ``hidden[head, row]`` is the share of a row that is not
    shown. ``rows`` and ``cols`` are the texts of the units, ``row_index`` and ``col_index`` count them among all units
    of ``queries`` and of ``keys``. ``quantity`` and ``made`` are those of the reading, ``view`` says how the picture
    was made from it (unit, special, …).
    """

    model: str
    revision: str
    queries: TokenizedText
    keys: TokenizedText
    quantity: str
    made: tuple[str, ...]
    heads: tuple[Head, ...]
    weights: Weights
    hidden: Weights
    rows: tuple[str, ...]
    cols: tuple[str, ...]
    row_index: tuple[int, ...]
    col_index: tuple[int, ...]
    view: Mapping[str, str]


_SAME = TokenizedText("", "", ())  # stands for "the keys are the queries" until an Attention is made


@dataclass(frozen=True, eq=False)
class Attention:
    """What every head of a model does with one text, or with two: from the tokens of one to those of another.

    ``weights[layer, head, query, key]`` is float32 and read-only; rows are the tokens of ``queries``, columns those of
    ``keys``. In self-attention, where no ``keys`` are given, both are one object, ``text``. ``quantity`` names what the
    numbers are, a row of QUANTITIES: of "weight" each row sums to 1, others promise less. ``hidden[layer, head,
    query]`` is the share of the original row that was removed (0 for a raw reading). ``made`` lists how it was made:
    first how a model read the text ("typed", "given words"; neither where the numbers come from elsewhere), then each
    step since, in order ("by words", "special hidden", "only L3H1").

    Raises ShapeError when axes, tokens or numbers do not fit.
    """

    model: str
    revision: str
    queries: TokenizedText
    weights: Weights
    hidden: Weights = field(default_factory=lambda: np.zeros((0, 0, 0), np.float32))
    made: tuple[str, ...] = ()
    keys: TokenizedText = _SAME
    quantity: str = "weight"

    def __post_init__(self) -> None:
        if self.keys is _SAME:
            object.__setattr__(self, "keys", self.queries)
        weights = _frozen(self.weights)
        object.__setattr__(self, "weights", weights)
        _check_axes(weights, self.queries, self.keys)
        _quantity(self.quantity).check(weights)
        hidden = _frozen(self.hidden if self.hidden.size else np.zeros(weights.shape[:3], np.float32))
        if hidden.shape != weights.shape[:3] or not np.isfinite(hidden).all():
            raise ShapeError(f"hidden has axes {hidden.shape}, the weights' rows {weights.shape[:3]}.")
        object.__setattr__(self, "hidden", hidden)

    @classmethod
    def from_tensors(
        cls,
        attentions: Sequence[Any],
        tokens: Sequence[str],
        keys: Sequence[str] | None = None,
        *,
        sentence_b_start: int | None = None,
        model: str = "tensors",
        revision: str = "",
    ) -> Attention:
        """Attention that was computed elsewhere, such as ``outputs.attentions`` of transformers.

        ``attentions``: one array or tensor per layer, [head, query, key] or [1, head, query, key], or one array of
        [layer, head, query, key]. ``tokens``: the tokenizer's names, as ``tokenizer.convert_ids_to_tokens`` gives them
        ("##ing", "Ġthe", "▁the"), which are put together into words. ``keys``: of cross-attention, such as
        ``outputs.cross_attentions``, the names of the other text's tokens; ``tokens`` are the queries then.
        ``sentence_b_start``: index of the first of ``tokens`` that belongs to a second sentence. Rows in half precision
        are rescaled to sum to 1.

        Raises ShapeError for anything that is not one stack of layers over these tokens; the message says what it is.
        """
        _check_names(tokens, "tokens")
        _check_names(tokens if keys is None else keys, "keys")
        weights = _stacked(attentions)
        _check_counts(weights, len(tokens), None if keys is None else len(keys))
        queries = from_names([str(t) for t in tokens], sentence_b_start)
        columns = queries if keys is None else from_names([str(t) for t in keys])
        return cls(clean(model), clean(revision), queries, weights, keys=columns)

    def grid(self, **options: Unpack[Options]) -> AnyFigure:
        """All heads at a glance, as a figure that Jupyter shows and that saves itself (``mha_viz.figure.grid``)."""
        figure: AnyFigure = _FIGURES["grid"](self, **options)
        return figure

    def heatmap(self, layer: int | None = None, head: int | None = None, **options: Unpack[HeadOptions]) -> AnyFigure:
        """One head's matrix as a figure (``mha_viz.figure.heatmap``)."""
        figure: AnyFigure = _FIGURES["heatmap"](self, layer, head, **options)
        return figure

    def links(self, layer: int | None = None, head: int | None = None, **options: Unpack[HeadOptions]) -> AnyFigure:
        """Token links of one head, or of several of a layer, as a figure (``mha_viz.figure.links``)."""
        figure: AnyFigure = _FIGURES["links"](self, layer, head, **options)
        return figure

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the reading as .npz or .safetensors, from which ``mha_viz.open_attention`` gives an equal one, or its
        numbers as .csv or .json. Raises ExportError; no half-written file is left."""
        written: Path = _FIGURES["save"](self, path)
        return written

    def __reduce__(self) -> tuple[Callable[..., Attention], tuple[Any, ...]]:
        given = (self.model, self.revision, self.queries, self.weights, self.hidden, self.made)
        return type(self), (*given, self.keys, self.quantity)

    __iter__ = None  # heads are asked for by name: without this, Python would try a[0], a[1], …

    def __getitem__(self, head: Head | tuple[int, int] | str) -> Weights:
        """The matrix of one head, [query, key], by ``Head(3, 7)``, ``(3, 7)`` or ``"L3H7"``. Raises UnknownHead."""
        layer, number = self._existing(head)
        matrix: Weights = self.weights[layer, number]
        return matrix

    def __repr__(self) -> str:
        n, m = len(self.queries), len(self.keys)
        axes = f"{n} queries × {m} keys" if self.is_cross else f"{n} tokens"
        shown = "" if self.quantity == "weight" else f", {self.quantity}"
        return f"Attention({self.model}, {self.layers} layers × {self.heads} heads, {axes}{shown})"

    @cached_property
    def key(self) -> str:
        """A digest of all that makes this reading different from others: model, revision, quantity, axes, every token
        of queries and keys, and how it was made; where no model's reading accounts for the numbers, the numbers
        themselves. Equal readings have equal keys, in other processes too."""
        identity: list[object] = [self.model, self.revision, self.weights.shape, self.made, *_identity(self.queries)]
        identity += [{"keys": _identity(self.keys)}] if self.is_cross else []
        identity += [{"quantity": self.quantity}] if self.quantity != "weight" else []
        digest = hashlib.blake2b(json.dumps(identity).encode(), digest_size=12)
        if self.made[:1] not in READ:
            digest.update(np.ascontiguousarray(self.weights).data)
            digest.update(np.ascontiguousarray(self.hidden).data)
        return digest.hexdigest()

    @property
    def is_cross(self) -> bool:
        """True when rows and columns are of different texts: then there is no diagonal, and no token before another."""
        return self.keys is not self.queries

    @property
    def text(self) -> TokenizedText:
        """The text whose tokens are both rows and columns. Raises ShapeError for attention from one text to another."""
        if self.is_cross:
            raise ShapeError(
                f"This attention is of two texts, {len(self.queries)} queries and {len(self.keys)} keys.",
                "Ask for queries or for keys.",
            )
        return self.queries

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
        """The tokens' texts, in the order of both axes of a matrix. Raises ShapeError as :attr:`text` does."""
        return tuple(t.text for t in self.text.tokens)

    def every_head(self) -> tuple[Head, ...]:
        """All heads in order: L0H0, L0H1, …"""
        return tuple(Head(layer, head) for layer in range(self.layers) for head in range(self.heads))

    def by_words(self) -> Attention:
        """One row and column per word: attention *to* a word is the sum over its pieces, *from* a word the mean.

        Rows still sum to 1 (Clark et al. 2019, section 4.1). Special tokens stay units of their own.
        """
        if self.queries.unit == self.keys.unit == "words":
            return self
        rows, columns = self.queries.groups, self.keys.groups
        weights, hidden = between(self.weights, rows, columns), averaged(self.hidden, rows, -1)
        return self._next("by words", *self._each(TokenizedText.by_words), _own(weights), _own(hidden))

    def only(self, heads: Sequence[Head | tuple[int, int] | str]) -> Attention:
        """A reading with one layer, which has just these heads in their order. Raises UnknownHead."""
        named = [self._existing(head) for head in heads]
        if not named:
            raise UnknownHead("No head was named.", "Give a list such as ['L3H1', (3, 4)].")
        weights = np.stack([self.weights[head] for head in named])[None]
        hidden = np.stack([self.hidden[head] for head in named])[None]
        step = f"only {', '.join(map(str, named))}"
        return self._next(step, self.queries, self.keys, _own(weights), _own(hidden))

    def content(self) -> Content:
        """The rows and columns of ordinary tokens, nothing rescaled, with the share that is hidden.

        Raises EmptyText when one side has only special tokens.
        """
        rows, columns = ([i for i, t in enumerate(text.tokens) if not t.special] for text in (self.queries, self.keys))
        if not rows or not columns:
            raise EmptyText("Without special tokens nothing is left to show.", "Type at least one word.")
        drop = [i for i, t in enumerate(self.keys.tokens) if t.special]
        whole = self.weights[:, :, rows, :]  # rows of ordinary tokens, all columns
        hidden = whole[..., drop].sum(axis=3, dtype=np.float64)
        if not QUANTITIES[self.quantity].is_share:
            hidden /= np.maximum(whole.sum(axis=3, dtype=np.float64), 1e-12)
        return Content(*self._each(TokenizedText.without_special), whole[..., columns], hidden.astype(np.float32))

    def without_special(self) -> Attention:
        """Ordinary tokens only; ``hidden`` says what share of each row was removed. Rows that are shares are rescaled
        to sum to 1, those of other quantities are not.

        A row whose whole mass lay on special tokens has nothing to rescale and becomes uniform.
        Raises EmptyText when one side has only special tokens.
        """
        queries, keys, weights, hidden = self.content()
        if QUANTITIES[self.quantity].is_share:
            left = weights.sum(axis=3, keepdims=True)
            uniform = np.float32(1 / len(keys))
            weights = np.divide(weights, left, out=np.full_like(weights, uniform), where=left > 1e-12)
        before = self.hidden[:, :, [not t.special for t in self.queries.tokens]]
        return self._next("special hidden", queries, keys, _own(weights), _own(before + (1 - before) * hidden))

    def _existing(self, given: Head | tuple[int, int] | str) -> Head:
        """The head that is meant. Raises UnknownHead for one that the model does not have."""
        head = Head.of(given)
        if not (0 <= head.layer < self.layers and 0 <= head.head < self.heads):
            raise UnknownHead(
                f"{head} does not exist: {self.model} has {self.layers} layers × {self.heads} heads.",
                f"Choose between L0H0 and {Head(self.layers - 1, self.heads - 1)}.",
            )
        return head

    def _each(self, change: Callable[[TokenizedText], TokenizedText]) -> tuple[TokenizedText, TokenizedText]:
        """Queries and keys after a change of both; in self-attention still one object."""
        queries = change(self.queries)
        return queries, change(self.keys) if self.is_cross else queries

    def _next(
        self, step: str, queries: TokenizedText, keys: TokenizedText, weights: Weights, hidden: Weights
    ) -> Attention:
        """The reading that ``step`` makes of this one."""
        made = (*self.made, step)
        return Attention(self.model, self.revision, queries, weights, hidden, made, keys, self.quantity)


def _identity(text: TokenizedText) -> list[object]:
    """All that tells one text from another, as JSON values."""
    tokens = [[t.text, t.word, t.segment, t.start, t.end, t.known] for t in text.tokens]
    return [[text.text, text.pair, text.cut and astuple(text.cut), text.unit, text.given], tokens]


def _quantity(name: str) -> Quantity:
    quantity = QUANTITIES.get(name) if isinstance(name, str) else None
    if quantity is None:
        raise ShapeError(f"quantity is {str(name)[:40]!r}.", f"Expected one of: {', '.join(QUANTITIES)}.")
    return quantity


def _check_names(names: Any, argument: str) -> None:
    if isinstance(names, str) or not hasattr(names, "__len__"):
        raise ShapeError(
            f"{argument} is {str(names)[:40]!r}, which is not a list.", "Give a list with one text per token."
        )


def _check_counts(weights: Weights, tokens: int, keys: int | None) -> None:
    """Raises ShapeError unless the weights are for so many queries and keys; None: the same ones."""
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


def _stacked(attentions: Sequence[Any]) -> Weights:
    """[layer, head, query, key] from one array per layer; a batch of one is unwrapped."""
    given = () if attentions is None else attentions
    if not hasattr(given, "__iter__"):
        raise ShapeError(
            f"{str(given)[:40]!r} is not a list of layers.", "Take outputs.attentions by name: one tensor per layer."
        )
    layers = [*given]
    _check_one_stack(layers)
    arrays = [_unbatched(_array(layer)) for layer in layers]
    if not arrays:
        raise ShapeError(
            f"No layer of attention was given: {'None' if attentions is None else 'the tuple is empty'}.",
            'Load the model with attn_implementation="eager" and take outputs.attentions by name.',
        )
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise ShapeError(
            f"The layers have different axes: {', '.join(map(str, sorted(shapes)))}.",
            "Give the layers of one stack: the encoder's, the decoder's own, or its cross-attention.",
        )
    return _own(np.stack(arrays).astype(np.float32, copy=False))


def _check_one_stack(layers: Sequence[Any]) -> None:
    """Raises ShapeError where what should be layers are whole stacks of them, as ``generate`` returns."""
    depths = [len(layer) for layer in layers if isinstance(layer, tuple | list) and _is_stack(layer)]
    if depths:
        deep = ", ".join(map(str, sorted(set(depths))))
        raise ShapeError(
            f"{len(layers)} stacks of layers were given, of depth {deep}, where one was expected.",
            "Give one stack with one tensor per layer: outputs.encoder_attentions, outputs.decoder_attentions or "
            "outputs.cross_attentions; of generate(), the stack of one step.",
        )


def _is_stack(layer: Sequence[Any]) -> bool:
    """True for layers of [1, head, query, key], or several of [head, query, key]; one of these is a batch of one."""
    return any(getattr(part, "ndim", 0) >= 4 - (len(layer) > 1) for part in layer)


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


def _check_axes(weights: Weights, queries: TokenizedText, keys: TokenizedText) -> None:
    n, m, is_self = len(queries), len(keys), queries is keys
    if weights.ndim != 4 or 0 in weights.shape or (is_self and weights.shape[2] != weights.shape[3]):
        more = " with as many keys as queries, or the other text as keys=" if is_self else ""
        raise ShapeError(f"The weights have axes {weights.shape}.", f"Expected [layer, head, query, key]{more}.")
    if is_self and weights.shape[2] != n:
        raise ShapeError(f"The weights are for {weights.shape[2]} tokens, the text has {n}.")
    if weights.shape[2:] != (n, m):
        rows, columns = weights.shape[2:]
        raise ShapeError(f"The weights are for {rows} queries × {columns} keys, the texts have {n} and {m} tokens.")
