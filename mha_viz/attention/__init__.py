"""The data type Attention: the attention of a model on a text, and the steps that transform it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack, overload

import numpy as np

from mha_viz.attention import cache as caches
from mha_viz.attention import foreign_arrays, tensors
from mha_viz.attention.foreign_arrays import Weights
from mha_viz.attention.generate_outputs import join_steps
from mha_viz.attention.numbers import is_changed
from mha_viz.attention.steps import (
    BY_WORDS,
    GIVEN_WORDS,
    GUESSED_AXES,
    REST_AS_SINK,
    SPECIAL_HIDDEN,
    TYPED,
    Step,
    find_layer_numbers,
    find_request,
    keep_heads,
    make_layer_step,
    make_written_step,
    parse_wordings,
)
from mha_viz.attention.tensors import average_groups, merge_to_words
from mha_viz.attention.view_weights import Content, Shown, name_map
from mha_viz.errors import EmptyText, ShapeError, UnknownHead, list_items
from mha_viz.heads import AnyHead, Head, is_number, list_heads
from mha_viz.options import AnyFigure, CacheOptions, GridOptions, HeadOptions, get_function
from mha_viz.request import Request
from mha_viz.text import TokenizedText, clean, from_names, from_offsets
from mha_viz.view.quantities import QUANTITIES, Quantity

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AnyHead", "Attention", "Content", "Head", "Quantity", "Shown", "Weights", "is_number"]

TokenTexts: TypeAlias = Sequence[list[str]] | Sequence[tuple[str, ...]]  # tokens of several texts

FIRST_STEPS = ((TYPED,), (GIVEN_WORDS,))  # first steps of readings that follow from the model and the text alone

_SAME_AS_QUERIES = TokenizedText("", "", ())  # means "the keys are the queries" until an Attention is created


@dataclass(frozen=True, eq=False)
class Attention:
    """The attention of every head of a model on one text, or from the tokens of one text to those of another.

    Attributes:
        model, revision: the model and its revision.
        queries, keys: the texts whose tokens are the rows and columns. In self-attention, where no ``keys`` are given,
            both are one object, ``text``.
        weights: [layer, head, query, key], float32 and read-only.
        quantity: the kind of number, a row of QUANTITIES. Rows of "weight" sum to 1, those of others need not.
        hidden: [layer, head, query], the share of the original row that was removed; 0 in a raw reading.
        made: the steps that produced the numbers, in order, as data (``attention.steps``) that reads as text. The first
            says how a model read the text ("typed", "given words") and is absent if the numbers come from elsewhere.
            Later steps are, for example, "by words", "special hidden", "only L3H1".

    Raises ShapeError if axes, tokens or numbers do not fit.
    """

    model: str
    revision: str
    queries: TokenizedText
    weights: Weights
    hidden: Weights = field(default_factory=lambda: np.zeros((0, 0, 0), np.float32))
    made: tuple[Step, ...] = ()
    keys: TokenizedText = _SAME_AS_QUERIES
    quantity: str = "weight"

    def __post_init__(self) -> None:
        if self.keys is _SAME_AS_QUERIES:
            object.__setattr__(self, "keys", self.queries)
        object.__setattr__(self, "made", parse_wordings(self.made))
        weights = tensors.freeze(self.weights)
        object.__setattr__(self, "weights", weights)
        tensors.check_axes(weights, len(self.queries), len(self.keys) if self.is_cross else None)
        if len(self.layer_numbers) != len(weights):
            raise ShapeError(f"{len(self.layer_numbers)} layer numbers were given, but {len(weights)} layers.")
        tensors.check_numbers(tensors.get_quantity(self.quantity), weights, self.layer_numbers)
        hidden = tensors.freeze(self.hidden)
        hidden = hidden if hidden.size else tensors.freeze(np.zeros(weights.shape[:3], np.float32))
        if hidden.shape != weights.shape[:3] or not np.isfinite(hidden).all():
            raise ShapeError(f"hidden has shape {hidden.shape}, the weights' rows {weights.shape[:3]}.")
        object.__setattr__(self, "hidden", hidden)

    @overload
    @classmethod
    def from_tensors(
        cls,
        attentions: Sequence[Any],
        tokens: Sequence[str],
        keys: Sequence[str] | None = None,
        *,
        layers: Sequence[int] | None = None,
        mask: Any = None,
        keys_mask: Any = None,
        text: Any = None,
        keys_text: Any = None,
        offsets: Any = None,
        keys_offsets: Any = None,
        sentence_b_start: int | None = None,
        sink: bool = False,
        quantity: str = "weight",
        model: str = "tensors",
        revision: str = "",
    ) -> Attention: ...

    @overload
    @classmethod
    def from_tensors(
        cls,
        attentions: Sequence[Any],
        tokens: TokenTexts,
        keys: TokenTexts | None = None,
        *,
        layers: Sequence[int] | None = None,
        mask: Any = None,
        keys_mask: Any = None,
        text: Any = None,
        keys_text: Any = None,
        offsets: Any = None,
        keys_offsets: Any = None,
        sentence_b_start: Sequence[int | None] | None = None,
        sink: bool = False,
        quantity: str = "weight",
        model: str = "tensors",
        revision: str = "",
    ) -> list[Attention]: ...

    @classmethod
    def from_tensors(
        cls,
        attentions: Sequence[Any],
        tokens: Sequence[str] | TokenTexts,
        keys: Sequence[str] | TokenTexts | None = None,
        *,
        layers: Sequence[int] | None = None,
        mask: Any = None,
        keys_mask: Any = None,
        text: Any = None,
        keys_text: Any = None,
        offsets: Any = None,
        keys_offsets: Any = None,
        sentence_b_start: int | Sequence[int | None] | None = None,
        sink: bool = False,
        quantity: str = "weight",
        model: str = "tensors",
        revision: str = "",
    ) -> Attention | list[Attention]:
        """Build a reading from attention that was computed elsewhere, such as ``outputs.attentions`` of transformers.

        For a batch, the layers are [text, head, query, key], ``tokens`` is a list of lists, one per text, and the
        result is a list with one Attention per text. All arguments about tokens and keys then have one entry per text.

        Args:
            attentions: one array or tensor per layer, [head, query, key] or [1, head, query, key], or one array of
                [layer, head, query, key].
            tokens: the tokenizer's names, as from ``tokenizer.convert_ids_to_tokens`` ("##ing", "Ġthe", "▁the"). They
                are joined to words.
            keys: for cross-attention, such as ``outputs.cross_attentions``, the names of the other text's tokens;
                ``tokens`` are then the queries.
            layers: the numbers of the layers in the model, such as [3, 7], by which heads are named ("L3H1"). If
                entries of ``attentions`` are None, as in models with attention in some layers only, the default numbers
                of the others are their positions.
            mask: 1 for each of ``tokens`` that is read and 0 for padding, which is left out, as in the tokenizer's
                ``attention_mask``.
            keys_mask: the mask of ``keys``.
            text: the typed text, or a pair for two sentences. With ``offsets``, it is shown where names are
                lower-cased, without accents, or of a single word.
            keys_text: the typed text of ``keys``.
            offsets: the position of each token in ``text``, as from ``tokenizer(text, return_offsets_mapping=True)``.
            keys_offsets: the position of each of ``keys`` in ``keys_text``.
            sentence_b_start: the index of the first of ``tokens`` that belongs to a second sentence.
            sink: for a model with learned sinks, such as gpt-oss, True to add a last column, "sink", that makes each
                row sum to 1.
            quantity: the kind of number. Weights in half precision are rescaled so that rows sum to 1.
            model: the name of the model.
            revision: its revision.

        Raises ShapeError for anything that is not one stack of layers over these tokens; the message says what it is.
        """
        attentions, layers = foreign_arrays.drop_empty_layers(attentions, layers)
        if foreign_arrays.is_batch(tokens):
            text_options = {"keys": keys, "mask": mask, "keys_mask": keys_mask, "sentence_b_start": sentence_b_start}
            text_options |= {"text": text, "offsets": offsets, "keys_text": keys_text, "keys_offsets": keys_offsets}
            options: Any = {"layers": layers, "sink": sink, "quantity": quantity, "model": model, "revision": revision}
            return [
                cls.from_tensors(**options, **arguments)
                for arguments in foreign_arrays.iter_texts(attentions, tokens, text_options)
            ]
        names = foreign_arrays.read_token_names(tokens, "tokens")
        key_names = names if keys is None else foreign_arrays.read_token_names(keys, "keys")
        has_sink = foreign_arrays.check_sink(sink, quantity)
        stack = foreign_arrays.read_layers(attentions, len(names), None if keys is None else len(key_names), has_sink)
        made = () if layers is None else make_layer_step(foreign_arrays.read_layer_numbers(layers, len(stack)))
        guessed_axis = foreign_arrays.find_guessed_axis(attentions, stack, is_numbered=layers is not None)
        made = (*made, GUESSED_AXES[guessed_axis]) if guessed_axis else made
        rows, queries = query_axis = _read_axis(names, mask, text, offsets, sentence_b_start)
        columns, key_text = (
            query_axis if keys is None else _read_axis(key_names, keys_mask, keys_text, keys_offsets, prefix="keys_")
        )
        layer_numbers = find_layer_numbers(made, len(stack))
        weights = _select_weights(stack, rows, columns, has_sink, layer_numbers)
        if quantity == "weight" and len(columns) < len(key_names):
            tensors.check_dropped_columns(stack, rows, columns, layer_numbers)
        if has_sink:
            key_text, made = foreign_arrays.add_sink(key_text), (*made, REST_AS_SINK)
        return cls(clean(model), clean(revision), queries, weights, made=made, keys=key_text, quantity=quantity)

    @overload
    @classmethod
    def from_cache(
        cls, cache: Any, tokens: Sequence[str], keys: Sequence[str] | None = None, **options: Unpack[CacheOptions]
    ) -> Attention: ...

    @overload
    @classmethod
    def from_cache(
        cls, cache: Any, tokens: TokenTexts, keys: TokenTexts | None = None, **options: Unpack[CacheOptions]
    ) -> list[Attention]: ...

    @classmethod
    def from_cache(
        cls, cache: Any, tokens: Any, keys: Any = None, **options: Unpack[CacheOptions]
    ) -> Attention | list[Attention]:
        """Build a reading from attention that another library recorded.

        ``cache`` is an ActivationCache of TransformerLens, the values that nnsight saved, or a dict or list with an
        entry per layer: [head, query, key], [text, head, query, key], or the output of a module. Entries are recognised
        by names and shapes. ``tokens``, such as ``model.to_str_tokens(text)``, and ``keys`` are as for
        :meth:`from_tensors`. Options are listed in CacheOptions; with ``w_o``, the result has norms
        (``mha_viz.quantities.norm_weighted``).

        Raises ShapeError if a name is missing, and for shapes, counts and rows that do not fit.
        """
        arguments: Any = dict(options)
        names, w_o, values = (arguments.pop(name, None) for name in ("names", "w_o", "values"))
        recording = caches.find_layers(cache, names, arguments.get("sink") is True)
        arguments = {"model": recording.model, "layers": recording.numbers} | arguments
        reading: Attention | list[Attention] = cls.from_tensors(recording.layers, tokens, keys, **arguments)
        has_sink = arguments.pop("sink", False)
        if w_o is not None:
            norms = caches.compute_norms(recording, w_o, values, has_sink, has_keys=keys is not None)
            reading = cls.from_tensors(norms, tokens, keys, quantity="norm", **arguments)
        return reading

    @classmethod
    def from_generated(
        cls,
        generated: Any,
        tokens: Sequence[str],
        keys: Sequence[str] | None = None,
        *,
        sequence: int | None = None,
        layers: Sequence[int] | None = None,
        mask: Any = None,
        keys_mask: Any = None,
        sink: bool = False,
        model: str = "tensors",
        revision: str = "",
    ) -> Attention:
        """Build a reading of a text that a model generated, from the steps of ``generate(…)`` of transformers.

        The call needs ``output_attentions=True, return_dict_in_generate=True``. The steps are joined to the weights of
        the whole text. The last token has no row, because the model wrote it but did not read it.

        Args:
            generated: everything that ``generate`` returned.
            tokens: the names of the tokens of a text in its ``sequences``, prompt included.
            keys: for the cross-attention of an encoder–decoder, the names of the source's tokens; without them, its
                decoder's own attention is read.
            sequence: the number of the text, if several were generated. With beams, the path that led to the text is
                followed.
            layers: as for :meth:`from_tensors`.
            mask: 1 for each of ``tokens`` that is read and 0 for padding, before a prompt or after the end of a text.
            keys_mask: as for :meth:`from_tensors`.
            sink: as for :meth:`from_tensors`.
            model: as for :meth:`from_tensors`.
            revision: as for :meth:`from_tensors`.

        Raises ShapeError for anything else; the message says what it is.
        """
        names = foreign_arrays.read_token_names(tokens, "tokens")
        has_sink = foreign_arrays.check_sink(sink, "weight")
        generated_weights = join_steps(generated, sequence, keys is not None, is_rescaled=not has_sink)
        rows = generated_weights.rows
        if len(names) not in (rows, rows + 1, max(rows, generated_weights.length)):
            raise ShapeError(
                f"{len(names)} tokens were given, but the model read {rows} and wrote one more.",
                "Give the names of all tokens of the text, those of the prompt included: "
                "tokenizer.convert_ids_to_tokens(generated.sequences[0]).",
            )
        unmasked_rows = [row for row in foreign_arrays.find_unmasked(mask, len(names), "mask") if row < rows]
        reading = cls.from_tensors(
            generated_weights.layers,
            names[:rows],
            keys,
            layers=layers,
            mask=np.isin(np.arange(rows), unmasked_rows),
            keys_mask=keys_mask,
            sink=sink,
            model=model,
            revision=revision,
        )
        prompt_length = sum(row < generated_weights.prompt_length for row in unmasked_rows)
        if prompt_length == len(unmasked_rows):  # the model wrote nothing that it then read
            return reading
        return replace(reading, made=(*reading.made, make_written_step(reading.queries, prompt_length)))

    def grid(self, **options: Unpack[GridOptions]) -> AnyFigure:
        """Draw all heads at a glance, or some ``layers`` and ``heads``, as a figure (``mha_viz.figures.grid``)."""
        figure: AnyFigure = get_function("grid")(self, **options)
        return figure

    @overload
    def heatmap(self, head: AnyHead, /, **options: Unpack[HeadOptions]) -> AnyFigure: ...

    @overload
    def heatmap(
        self, layer: int | None = None, head: int | None = None, **options: Unpack[HeadOptions]
    ) -> AnyFigure: ...

    def heatmap(
        self, layer: int | AnyHead | None = None, head: int | None = None, **options: Unpack[HeadOptions]
    ) -> AnyFigure:
        """Draw one head's matrix as a figure (``mha_viz.figures.heatmap``).

        Examples: ``a.heatmap("L3H1")``, ``a.heatmap(3, 1)``.
        """
        figure: AnyFigure = get_function("heatmap")(self, layer, head, **options)
        return figure

    @overload
    def links(self, head: AnyHead, /, **options: Unpack[HeadOptions]) -> AnyFigure: ...

    @overload
    def links(self, layer: int | None = None, head: int | None = None, **options: Unpack[HeadOptions]) -> AnyFigure: ...

    def links(
        self, layer: int | AnyHead | None = None, head: int | None = None, **options: Unpack[HeadOptions]
    ) -> AnyFigure:
        """Draw the token links of a head, or with ``heads`` of several heads of a layer (``mha_viz.figures.links``)."""
        figure: AnyFigure = get_function("links")(self, layer, head, **options)
        return figure

    def measures(self) -> pd.DataFrame:
        """Return a table with one row per head and the numbers that the app shows for it.

        Rows are named "L0H0"; for rollout there is one row per layer, "L0". The columns are ``layer`` and ``head``;
        ``previous``, ``following`` and ``same``, the mean weight from a token to the previous token, the next token and
        itself; ``cls``, ``sep`` and ``punctuation``, the mean weight on them; ``entropy``, the mean entropy of a row in
        nats; and ``normalised_entropy``, the entropy divided by ln(keys), 0 to 1. The tokens are those of this reading:
        subwords, unless it is by words. Undefined measures are NaN (``mha_viz.analysis.metrics`` has the definitions).
        """
        table: pd.DataFrame = get_function("measures")(self)
        return table

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the reading as .npz or .safetensors, or its numbers as .csv or .json.

        ``mha_viz.load_attention`` reads an equal reading from the first two. Raises ExportError, and then leaves no
        incomplete file.
        """
        path_written: Path = get_function("save")(self, path)
        return path_written

    def __reduce__(self) -> tuple[Callable[..., Attention], tuple[Any, ...]]:
        arguments = (self.model, self.revision, self.queries, self.weights, self.hidden, self.made)
        return type(self), (*arguments, self.keys, self.quantity)

    __iter__ = None  # heads are accessed by name; otherwise Python would iterate over a[0], a[1], …

    def __getitem__(self, head: AnyHead) -> Weights:
        """Return the matrix of one head, [query, key].

        A head is ``Head(3, 7)``, ``(3, 7)`` or ``"L3H7"``. Raises UnknownHead.
        """
        layer, number = self.head(head)
        matrix: Weights = self.weights[self.layer_numbers.index(layer), number]
        return matrix

    def head(self, name: Any) -> Head:
        """Return the head that ``[]`` would access. Raises UnknownHead.

        In rollout, "L3" is a layer, whose only map is number 0.
        """
        is_by_layer = QUANTITIES[self.quantity].of_layers
        return Head.among(name, self.layer_numbers, 0 if is_by_layer else self.heads, self.model)

    def place(self, head: Head) -> int:
        """Return the number of a head among all heads of this reading, from 0, layer by layer."""
        return self.places([head])[0]

    def places(self, heads: Sequence[Head]) -> list[int]:
        """Return the numbers of several heads among all heads of this reading."""
        per_layer, rows = self.heads, {layer: row for row, layer in enumerate(self.layer_numbers)}
        return [rows[layer] * per_layer + head for layer, head in heads]

    def __repr__(self) -> str:
        n = len(self.queries)
        axes = f"{n} queries × {len(self.keys)} keys" if self.is_cross else f"{n} tokens"
        maps = "" if QUANTITIES[self.quantity].of_layers else f" × {self.heads} heads"
        quantity = "" if self.quantity == "weight" else f", {self.quantity}"
        return f"Attention({self.model}, {self.layers} layers{maps}, {axes}{quantity})"

    @cached_property
    def key(self) -> str:
        """A digest of everything that distinguishes this reading from others.

        That is the model, revision, quantity and axes, every token of queries and keys, and the steps; if the numbers
        do not follow from these, the digest includes the numbers, too. Equal readings have equal keys, even in other
        processes.
        """
        if self.made[:1] not in FIRST_STEPS or not is_changed(self.made):
            return self.stored_key
        numbers = tensors.digest(self.weights) + tensors.digest(self.hidden)
        return hashlib.blake2b(self.stored_key.encode() + numbers, digest_size=12).hexdigest()

    @cached_property
    def stored_key(self) -> str:
        """The :attr:`key` in saved files, without numbers that a tap changed: files have a digest of these as well."""
        identity: list[object] = [
            self.model,
            self.revision,
            self.weights.shape,
            self.made,
            *_list_identity(self.queries),
        ]
        identity += [{"keys": _list_identity(self.keys)}] if self.is_cross else []
        identity += [{"quantity": self.quantity}] if self.quantity != "weight" else []
        digest = hashlib.blake2b(json.dumps(identity).encode(), digest_size=12)
        if self.made[:1] not in FIRST_STEPS:
            digest.update(tensors.digest(self.weights) + tensors.digest(self.hidden))
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        """Return True if the other reading has the same :attr:`key`."""
        return self.key == other.key if isinstance(other, Attention) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def request(self) -> Request | None:
        """The request that this reading answers (``attention.steps.find_request``)."""
        return find_request(self)

    @property
    def is_cross(self) -> bool:
        """True if rows and columns differ.

        They belong to two texts, between which there is no previous or next token, or the columns include a
        sink (:attr:`has_sink`).
        """
        return self.keys is not self.queries

    @cached_property
    def has_sink(self) -> bool:
        """True if the columns are the tokens of the rows, followed by a learned sink."""
        return self.is_cross and foreign_arrays.is_sink_added(self.queries, self.keys)

    @property
    def text(self) -> TokenizedText:
        """The text whose tokens are both rows and columns. Raises ShapeError for attention from one text to another."""
        if self.is_cross:
            texts = "one text and a sink" if self.has_sink else "two texts"
            raise ShapeError(
                f"This attention is of {texts}, {len(self.queries)} queries and {len(self.keys)} keys.",
                "Use .queries or .keys.",
            )
        return self.queries

    @property
    def layers(self) -> int:
        """The number of layers."""
        return int(self.weights.shape[0])

    @cached_property
    def layer_numbers(self) -> tuple[int, ...]:
        """The number of each layer, by which its heads are named.

        They are 0, 1, …, unless the reading has only some layers of its model, such as the layers of a hybrid model
        that have attention.
        """
        return find_layer_numbers(self.made, self.layers)

    @property
    def heads(self) -> int:
        """The number of heads in each layer."""
        return int(self.weights.shape[1])

    @property
    def tokens(self) -> tuple[str, ...]:
        """The texts of the tokens, in the order of both axes of a matrix. Raises ShapeError like :attr:`text`."""
        return tuple(t.text for t in self.text.tokens)

    def every_head(self) -> tuple[Head, ...]:
        """Return all heads in order: L0H0, L0H1, …."""
        return list_heads(self.layer_numbers, self.heads)

    def by_words(self) -> Attention:
        """Merge subwords to words: attention *to* a word is the sum over its subwords, *from* a word the mean.

        Rows still sum to 1 (Clark et al. 2019, section 4.1). Special tokens remain separate units.
        """
        if self.queries.unit == self.keys.unit == "words":
            return self
        rows, columns = self.queries.groups, self.keys.groups
        weights, hidden = merge_to_words(self.weights, rows, columns), average_groups(self.hidden, rows, -1)
        return self._apply_step(
            BY_WORDS,
            *self._change_texts(TokenizedText.by_words),
            tensors.make_read_only(weights),
            tensors.make_read_only(hidden),
        )

    def only(self, heads: Sequence[AnyHead]) -> Attention:
        """Return a layer with only these heads or, of rollout, only these layers, in this order. Raises UnknownHead."""
        chosen_heads = [self.head(head) for head in list_items(heads, "heads", "Give a list such as ['L3H1', (3, 4)].")]
        if not chosen_heads:
            raise UnknownHead("No head was named.", f"Give a list such as [{name_map(self.quantity, Head(0, 0))!r}].")
        made, axis = keep_heads(self.made, chosen_heads, self.quantity)
        places = [(self.layer_numbers.index(layer), number) for layer, number in chosen_heads]
        selected = (np.stack([numbers[place] for place in places]) for numbers in (self.weights, self.hidden))
        weights, hidden = (tensors.make_read_only(np.expand_dims(numbers, axis)) for numbers in selected)
        return replace(self, weights=weights, hidden=hidden, made=made)

    def content(self) -> Content:
        """Return the rows and columns of ordinary tokens, not rescaled, with the hidden share of each row.

        Raises EmptyText if one axis has only special tokens.
        """
        rows, columns = (np.flatnonzero(np.logical_not(text.special)) for text in (self.queries, self.keys))
        if not rows.size or not columns.size:
            raise EmptyText("Without special tokens nothing is left to show.", "Type at least one word.")
        special_columns = np.flatnonzero(self.keys.special)
        all_columns = self.weights[:, :, rows, :]  # only rows of ordinary tokens
        hidden = all_columns[..., special_columns].sum(axis=3, dtype=np.float64)
        if not QUANTITIES[self.quantity].is_share:
            sizes = np.abs(all_columns)  # [layer, head, query, key]
            hidden = sizes[..., special_columns].sum(axis=3, dtype=np.float64)
            hidden /= np.maximum(sizes.sum(axis=3, dtype=np.float64), 1e-12)
        return Content(
            *self._change_texts(TokenizedText.without_special), all_columns[..., columns], hidden.astype(np.float32)
        )

    def without_special(self) -> Attention:
        """Drop special tokens; ``hidden`` is the share of each row that was removed.

        Rows that are shares are rescaled to sum to 1, those of other quantities are not. A row whose whole mass was on
        special tokens has nothing to rescale and becomes uniform. Raises EmptyText if one axis has only special tokens.
        """
        queries, keys, weights, hidden = self.content()
        if QUANTITIES[self.quantity].is_share:
            row_sums = weights.sum(axis=3, keepdims=True)
            uniform = np.float32(1 / len(keys))
            weights = np.divide(weights, row_sums, out=np.full_like(weights, uniform), where=row_sums > 1e-12)
        hidden_before = self.hidden[:, :, np.logical_not(self.queries.special)]
        return self._apply_step(
            SPECIAL_HIDDEN,
            queries,
            keys,
            tensors.make_read_only(weights),
            tensors.make_read_only(hidden_before + (1 - hidden_before) * hidden),
        )

    def _change_texts(self, change: Callable[[TokenizedText], TokenizedText]) -> tuple[TokenizedText, TokenizedText]:
        """Return queries and keys after a change to both; for self-attention they remain one object."""
        queries = change(self.queries)
        return queries, change(self.keys) if self.is_cross else queries

    def _apply_step(
        self, step: Step, queries: TokenizedText, keys: TokenizedText, weights: Weights, hidden: Weights
    ) -> Attention:
        """Return the reading that results from ``step``."""
        made = (*self.made, step)
        return Attention(self.model, self.revision, queries, weights, hidden, made, keys, self.quantity)


def _read_axis(
    names: Sequence[str], mask: Any, text: Any, offsets: Any, sentence_b_start: Any = None, prefix: str = ""
) -> tuple[list[int], TokenizedText]:
    """Return the tokens of an axis that are read, and their text.

    ``prefix`` comes before the names of arguments in messages.
    """
    rows = foreign_arrays.find_unmasked(mask, len(names), f"{prefix}mask")
    start, start_in_rows = (
        foreign_arrays.find_second_start(sentence_b_start, tokens, len(names)) for tokens in (range(len(names)), rows)
    )
    typed_text = foreign_arrays.read_typed_text(text, offsets, len(names), start, prefix)
    read_names = [names[row] for row in rows]
    if typed_text is None:
        return rows, from_names(read_names, start_in_rows)
    return rows, from_offsets(read_names, [typed_text.offsets[row] for row in rows], typed_text.texts, start_in_rows)


def _select_weights(
    layers: Sequence[Any], rows: Sequence[int], columns: Sequence[int], has_sink: bool, layer_numbers: Sequence[int]
) -> Weights:
    """Return [layer, head, query, key] of some rows and columns, with a column for the sink if there is one."""
    stacked = foreign_arrays.stack_layers(layers, is_rescaled=not has_sink)
    weights = tensors.select_tokens(stacked, rows, columns)
    return foreign_arrays.add_sink_column(weights, stacked[:, :, rows], rows, layer_numbers) if has_sink else weights


def _list_identity(text: TokenizedText) -> list[object]:
    """Return everything that distinguishes one text from another, as JSON values."""
    tokens = [[t.text, t.word, t.segment, t.start, t.end, t.known] for t in text.tokens]
    return [[text.text, text.pair, text.cut and astuple(text.cut), text.unit, text.given], tokens]
