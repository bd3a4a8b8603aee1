"""Decompose the input of each layer's attention into parts, carried through the norms of one pass.

The parts are vectors of words and positions, the outputs of earlier heads and feed-forward parts, and constants. A norm
divides by a standard deviation, which is kept as it was in the real pass for every part; the rest of a norm is linear
(Kobayashi et al. 2021, equation 3; for norms without a mean Zhang & Sennrich 2019, "Root Mean Square Layer
Normalization", equation 4). The output of a feed-forward part is the input of the next norm, or of the next layer,
minus all parts of it that are already known.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch

from mha_viz.attention.parts import CONSTANTS, FEED_FORWARD, HEADS, POSITION, WORD, FloatSums, Parts
from mha_viz.attention.trace import Floats
from mha_viz.errors import ModelUnsupported
from mha_viz.model_names import quote_model
from mha_viz.models.families import find_family, is_setting_true
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.probe import (
    TOLERANCE,
    LayerProbe,
    compute_norm_factor,
    find_attention_modules,
    get_epsilon,
    is_centred,
    read_bias,
    read_matrix,
    read_weights,
    to_array,
)

A = TypeVar("A", Floats, FloatSums)
SHIFTS, OUTPUT_BIASES = "shifts of norms", "output biases"
_NORM_AFTER_W_O = "a norm lies between the output of W_O and the sum that it is added to"
_UNSUPPORTED_FAMILIES = {
    "gemma3_text": _NORM_AFTER_W_O,
    "olmo2": _NORM_AFTER_W_O,
    "xlnet": "its words have two streams of vectors",
}
_POSITION_TABLES = ("position_embeddings", "embed_positions", "wpe")  # modules with a vector for each position
_PROJECTIONS = ("embeddings_project", "encoder.embedding_hidden_mapping_in")  # from narrow word vectors to d_model


class _NormCall(NamedTuple):
    """A call of a norm: the number of attention layers before it, its module, input and output, [n, d]."""

    attention_count: int
    module: Any
    norm_input: Floats
    norm_output: Floats


class FrozenNorm(NamedTuple):
    """The linear part of a norm in one pass: it keeps the standard deviations of that pass, and adds no bias.

    ``weight``, [d], multiplies each entry; ``size``, [n, 1], is the divisor of each token's vector.
    """

    weight: Floats
    size: Floats
    is_centred: bool

    def apply(self, vectors: Floats, token: int) -> Floats:
        """Return vectors, […, d], after the norm of a token."""
        normalised: Floats = self.centre(vectors) * (self.weight / self.size[token])
        return normalised

    def centre(self, vectors: A) -> A:
        """Return vectors, […, d], without their means if the norm subtracts these."""
        return vectors - vectors.mean(axis=-1, keepdims=True) if self.is_centred else vectors


class LayerNorms(NamedTuple):
    """The norms around the heads of a layer.

    ``before`` is the layer's own norm before its heads or, if it has none, the norm of the embeddings; None if there is
    neither. ``after`` is the first norm that the output of the heads passes once it has been added to the residual
    stream: the layer's or, in pre-norm models, the last one.
    """

    before: FrozenNorm | None
    after: FrozenNorm


class _OutputTap(Tap):
    """A tap that records the outputs of each layer's heads, [n, head, d_head].

    ``key_counts`` are the numbers of keys of each attention, if they differ.
    """

    changes = False
    stop_after_last = False

    def __init__(self, weights: torch.Tensor, key_counts: Sequence[int]) -> None:
        super().__init__(weights)
        self.outputs: list[Floats] = []
        self.key_counts = key_counts

    def slot(self, index: int) -> torch.Tensor:
        return self.weights[index][..., : self.key_counts[index]] if self.key_counts else self.weights[index]

    def layer(self, index: int, query: Any, key: Any, value: Any, output: torch.Tensor) -> torch.Tensor:
        self.outputs.append(to_array(output[0]))
        return output


class _Modules(NamedTuple):
    """Facts about the modules of a model: its norms, and whether it has tables of position vectors."""

    norms: tuple[Any, ...]
    has_tables: bool


_modules_by_model: WeakKeyDictionary[Any, _Modules] = WeakKeyDictionary()


def _find_modules(model: Any) -> _Modules:
    """Return the norms of a model and whether it has position tables. The result is cached."""
    if model not in _modules_by_model:
        named_modules = [*model.named_modules()]
        norms = tuple(module for _, module in named_modules if type(module).__name__.endswith(("LayerNorm", "RMSNorm")))
        _modules_by_model[model] = _Modules(
            norms, any(name.rpartition(".")[2] in _POSITION_TABLES for name, _ in named_modules)
        )
    return _modules_by_model[model]


class Stream:
    """The pass of a model over one text up to a layer: ``with stream: run(stream.tap)``, then ``stream.parts(…)``.

    A decoder layer has two attentions, to its own text and across to another; each counts as a layer here.
    """

    def __init__(self, model: Any, name: str, layers: int, last_layer: int, key_counts: Sequence[int] = ()) -> None:
        """Prepare to record the pass of a model.

        Args:
            model: the model of transformers.
            name: its name.
            layers: its number of layers.
            last_layer: the last layer whose parts are needed.
            key_counts: the number of keys of each layer, if these numbers differ.

        Raises ModelUnsupported with the reason, UnknownHead for a layer that does not exist.
        """
        check_decomposable(model.config, name)
        self._model, self._name = model, name
        self._layers, self._heads, self.key_counts = layers, int(model.config.num_attention_heads), key_counts
        self._probes = [LayerProbe(model, name, layer, layers, splits_scores=True) for layer in range(last_layer + 1)]
        self._norms: list[_NormCall] = []
        self._tap: _OutputTap | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Stream:
        for probe in self._probes:
            self._stack.enter_context(probe)
        self._stack.enter_context(self._record_norms())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def tap(self, weights: torch.Tensor) -> Tap:
        """Return the tap for the pass."""
        self._tap = _OutputTap(weights, self.key_counts)
        for probe in self._probes:
            probe.listen(self._tap)
        return self._tap

    @contextmanager
    def _record_norms(self) -> Iterator[None]:
        """Record the calls of norms while inside this block. Other threads use the norms, too, and are ignored."""
        thread = threading.get_ident()

        def hook(module: Any, arguments: Any, norm_output: torch.Tensor) -> None:
            tap, (norm_inputs, *_) = self._tap, arguments
            if threading.get_ident() == thread and tap is not None and norm_inputs.dim() == 3 and len(norm_inputs) == 1:
                self._norms.append(_NormCall(tap.seen, module, to_array(norm_inputs[0]), to_array(norm_output[0])))

        handles = [m.register_forward_hook(hook) for m in _find_modules(self._model).norms]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def parts(self, text_pieces: Any, reads_types: bool, layers: Collection[int]) -> Iterator[tuple[LayerProbe, Parts]]:
        """Yield, for each of ``layers`` in order, the input of its attention in parts.

        ``reads_types``: whether the model receives the types of the pieces.
        """
        for layer, (part_sum, x, layer_input) in enumerate(self._iter_layer_inputs(text_pieces, reads_types)):
            if layer in layers:
                attention_input = (
                    part_sum if layer_input is None else part_sum.copy_through(self._find_norm(layer, x, layer_input))
                )
                yield self._probes[layer], self._check_sum(attention_input.to_parts(), x)

    def last_state(self, text_pieces: Any) -> tuple[Floats, Parts]:
        """Return the output of a stack after its last norm, [n, d_model], and its parts.

        The pass must have reached the last layer.
        """
        *_, (part_sum, _, _) = self._iter_layer_inputs(text_pieces, False)
        layer, norm = len(self._probes) - 1, self._norms[-1]
        part_sum.add_heads(self._name_prefix(layer), *self._get_head_outputs(layer))
        part_sum.add_feed_forward(layer, norm.norm_input)
        return norm.norm_output, self._check_sum(part_sum.copy_through(norm).to_parts(), norm.norm_output)

    def iter_norms(self, layers: Collection[int]) -> Iterator[tuple[LayerProbe, LayerNorms]]:
        """Yield, for each of ``layers`` in order, the norms around its heads."""
        is_pre_norm = is_setting_true(find_family(self._model.config).pre_norm, self._model.config)
        for layer in sorted(layers):
            after = [
                norm for norm in self._norms if norm.attention_count == (self._layers if is_pre_norm else layer + 1)
            ]
            if len(after) < 2 - is_pre_norm:
                raise _make_unsupported_error(self._name, "its layers do not have a norm after each of their halves")
            x, layer_input = self._probes[layer].inputs(len(after[0].norm_input))
            if layer_input is not None:
                before = [self._find_norm(layer, x, layer_input)]
            else:  # post-norm, or ModernBERT's first layer
                before = [norm for norm in self._norms if norm.attention_count == 0][:1]
            frozen_norms = [_freeze(norm) for norm in (*before, after[-1 if is_pre_norm else 0])]
            yield self._probes[layer], LayerNorms(frozen_norms[0] if before else None, frozen_norms[-1])

    def _iter_layer_inputs(
        self, text_pieces: Any, reads_types: bool
    ) -> Iterator[tuple[_PartSum, Floats, Floats | None]]:
        """Yield, for each layer, its input in parts, the input of its attention, and that of the norm before it if any.

        The parts are one object, which later layers change.
        """
        is_pre_norm = is_setting_true(find_family(self._model.config).pre_norm, self._model.config)
        inputs = [probe.inputs(len(text_pieces.ids)) for probe in self._probes]
        part_sum = self._embed(text_pieces, reads_types, _select_residual_stream(*inputs[0]))
        for layer, (x, layer_input) in enumerate(inputs):
            yield part_sum, x, layer_input
            if layer + 1 == len(inputs):
                return
            part_sum.add_heads(self._name_prefix(layer), *self._get_head_outputs(layer))
            if not is_pre_norm:
                norms = [norm for norm in self._norms if norm.attention_count == layer + 1]
                if len(norms) < 2:
                    raise _make_unsupported_error(
                        self._name, "its layers do not have a norm after each of their halves"
                    )
                part_sum.pass_through(norms[0])
                part_sum.add_feed_forward(layer, norms[1].norm_input)
                part_sum.pass_through(norms[1])
            elif not find_family(self._model.config, layer + 1).is_cross:
                part_sum.add_feed_forward(self._probes[layer].layer, _select_residual_stream(*inputs[layer + 1]))

    def _name_prefix(self, layer: int) -> str:
        """Return the beginning of the names of a layer's heads."""
        return f"{self._probes[layer].part} L{self._probes[layer].layer}".strip()

    def _get_head_outputs(self, layer: int) -> tuple[Floats, Floats, Floats]:
        """Return the contexts of a layer's heads, their slices of W_O, and its bias.

        The shapes are [head, n, d_head], [head, d_head, d_model] and [d_model].
        """
        assert self._tap is not None
        contexts, module = (
            self._tap.outputs[layer].transpose(1, 0, 2),
            find_attention_modules(self._model, layer).output,
        )
        slices = read_weights(module).reshape(len(contexts), contexts.shape[-1], -1)
        return contexts, slices, read_bias(module, slices.shape[-1])

    def _find_norm(self, layer: int, x: Floats, layer_input: Floats) -> _NormCall:
        """Return the norm whose output is x, the input of a layer's attention, and whose input is the layer's."""
        norms = [
            n
            for n in self._norms
            if n.attention_count == layer and n.norm_output.shape == x.shape and np.array_equal(n.norm_output, x)
        ]
        if not norms or not np.array_equal(norms[-1].norm_input, layer_input):
            raise _make_unsupported_error(self._name, "the input of its layers is not the input of their norms")
        return norms[-1]

    def _embed(self, text_pieces: Any, reads_types: bool, stream: Floats) -> _PartSum:
        """Return the input of the first layer, in parts."""
        projection = find_projection(self._model)
        first_norms = (n for n in self._norms if n.attention_count == 0)
        norm = next((n for n in first_norms if _is_close(_project(n.norm_output, projection), stream)), None)
        total, max_parts = stream if norm is None else norm.norm_input, 5 + len(self._probes) * (self._heads + 1)
        part_sum = _PartSum(max_parts, total.shape)
        type_table, type_vectors = find_module(self._model, "embeddings.token_type_embeddings"), np.zeros_like(total)
        if type_table is not None:
            type_vectors = to_array(type_table.weight)[list(text_pieces.types) if reads_types else [0] * len(total)]
        word_vectors = (
            self._embed_words(text_pieces.ids) if _find_modules(self._model).has_tables else total - type_vectors
        )
        part_sum.add("word", WORD, word_vectors)
        part_sum.add("position", POSITION, total - type_vectors - word_vectors)
        part_sum.add("type", POSITION, type_vectors)
        if norm is not None:
            part_sum.pass_through(norm)
        return part_sum if projection is None else part_sum.project(projection, max_parts)

    def _embed_words(self, ids: Sequence[int]) -> Floats:
        """Return the vectors of words alone."""
        device = next(self._model.parameters()).device
        with torch.inference_mode():
            vectors = self._model.get_input_embeddings()(torch.tensor([list(ids)], device=device))
            projection = find_module(self._model, "decoder.project_in")  # OPT
            return to_array((vectors if projection is None else projection(vectors))[0])

    def _check_sum(self, parts: Parts, x: Floats) -> Parts:
        """Return the parts if they sum to x. Raises ModelUnsupported otherwise."""
        if not _is_close(parts.x.sum(axis=0), x):
            raise _make_unsupported_error(
                self._name, "something other than its heads and feed-forward parts adds to its vectors"
            )
        return parts


def find_module(model: Any, path: str) -> Any:
    """Return the module at a path; None if there is none."""
    try:
        return model.get_submodule(path)
    except AttributeError:
        return None


def find_projection(model: Any) -> Any:
    """Return the linear layer from narrow word vectors, after their norm, to d_model; None if there is none."""
    return next((m for m in (find_module(model, path) for path in _PROJECTIONS) if m is not None), None)


def _freeze(norm: _NormCall) -> FrozenNorm:
    """Return the linear part of a norm, with the standard deviations of the pass."""
    has_mean, eps = is_centred(norm.module), get_epsilon(norm.module)
    centred = norm.norm_input - norm.norm_input.mean(axis=-1, keepdims=True) if has_mean else norm.norm_input
    size = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(eps))
    weight = to_array(norm.module.weight) if has_mean else compute_norm_factor(norm.module, eps)
    return FrozenNorm(weight, size, has_mean)


def check_decomposable(config: Any, name: str) -> None:
    """Raise ModelUnsupported, with the reason, for a model whose vectors are not a sum of known parts."""
    if config.model_type in _UNSUPPORTED_FAMILIES:
        raise _make_unsupported_error(name, _UNSUPPORTED_FAMILIES[config.model_type])
    if getattr(config, "rescale_embeddings", False):  # BigBird
        raise _make_unsupported_error(name, "it scales the vectors of words before it adds those of positions")


def _make_unsupported_error(name: str, reason: str) -> ModelUnsupported:
    """Return the error for a model whose scores cannot be decomposed."""
    return ModelUnsupported(
        f"The scores of {quote_model(name)} cannot be decomposed: {reason}.",
        "Choose a model such as BERT, DeBERTa, GPT-2, Llama or Qwen.",
    )


class _PartSum:
    """Vectors as a sum of parts. It is changed in place, in memory allocated for all parts.

    The first two parts are constants, to which norms and linear layers add their biases.
    """

    def __init__(self, max_parts: int, shape: tuple[int, ...]) -> None:
        """Start with constants of 0, and allocate memory for ``max_parts`` parts, each of ``shape`` [n, d]."""
        self.names, self.groups = [SHIFTS, OUTPUT_BIASES], [CONSTANTS, CONSTANTS]
        self._buffer = np.zeros((max_parts, *shape), np.float32)

    @property
    def x(self) -> Floats:
        """The vectors of all parts, [part, n, d]."""
        return self._buffer[: len(self.names)]

    @property
    def total(self) -> Floats:
        """The sum of all parts, [n, d], computed without BLAS, whose threads would slow down the threads of torch."""
        total: Floats = self.x.sum(axis=0)
        return total

    def add(self, name: str, group: str, vectors: Floats) -> None:
        """Add a part with its vectors, [n, d]."""
        self._buffer[len(self.names)] = vectors
        self.names.append(name)
        self.groups.append(group)

    def add_heads(self, layer: str, contexts: Floats, slices: Floats, bias: Floats) -> None:
        """Add the output of each head of a layer, such as "L1", and the bias of W_O.

        The output of a head is its context, [head, n, d_head], times its slice of W_O, [head, d_head, d].
        """
        first, heads = len(self.names), len(contexts)
        np.matmul(contexts, slices, out=self._buffer[first : first + heads])
        self.names += [f"{layer}H{head}" for head in range(heads)]
        self.groups += [HEADS] * heads
        self.x[1] += bias

    def add_feed_forward(self, layer: int, stream: Floats) -> None:
        """Add the output of a layer's feed-forward part: what remains of ``stream`` without the parts so far."""
        self.add(f"feed-forward {layer}", FEED_FORWARD, stream - self.total)

    def pass_through(self, norm: _NormCall) -> None:
        """Apply a norm to all parts, with the standard deviation of the pass."""
        frozen_norm, x = _freeze(norm), self.x
        scale = frozen_norm.weight / frozen_norm.size  # [n, d]
        for part in x:  # a single part fits into the CPU cache
            if frozen_norm.is_centred:
                part -= np.add.reduce(part, axis=-1, keepdims=True) / np.float32(part.shape[-1])
            part *= scale
        shift = getattr(norm.module, "bias", None)
        if shift is not None:
            x[0] += to_array(shift)

    def copy_through(self, norm: _NormCall) -> _PartSum:
        """Return a copy with a norm applied to it."""
        result = _PartSum(0, ())
        result.names, result.groups, result._buffer = list(self.names), list(self.groups), self.x.copy()
        result.pass_through(norm)
        return result

    def project(self, module: Any, max_parts: int) -> _PartSum:
        """Return a copy with a linear layer applied to it and with memory for ``max_parts`` parts."""
        weight = to_array(read_matrix(module))
        result = _PartSum(max_parts, (*self.x.shape[1:-1], weight.shape[1]))
        result.names, result.groups = list(self.names), list(self.groups)
        result.x[:] = self.x @ weight
        result.x[1] += read_bias(module, weight.shape[1])
        return result

    def to_parts(self) -> Parts:
        """Return the parts that are not 0: models with rotary positions lack position vectors, some lack shifts."""
        threshold = 1e-6 * abs(self.total).max(initial=0)  # smaller numbers are rounding errors
        nonzero_parts = [
            part
            for part, vectors in enumerate(self.x)  # test the first token first: it nearly always exceeds the threshold
            if any(max(rows.max(initial=0), -rows.min(initial=0)) > threshold for rows in (vectors[:1], vectors))
        ]
        return Parts(
            tuple(self.names[part_index] for part_index in nonzero_parts),
            tuple(self.groups[part_index] for part_index in nonzero_parts),
            self.x[nonzero_parts],
        )


def _select_residual_stream(x: Floats, layer_input: Floats | None) -> Floats:
    """Return the residual stream that enters a layer."""
    return x if layer_input is None else layer_input


def _project(vectors: Floats, module: Any) -> Floats:
    """Apply a projection to vectors of its input width; return other vectors unchanged."""
    if module is None or vectors.shape[-1] != read_matrix(module).shape[0]:
        return vectors
    projected: Floats = vectors @ to_array(read_matrix(module)) + read_bias(module, read_matrix(module).shape[1])
    return projected


def _is_close(first: Floats, second: Floats) -> bool:
    """Return whether two arrays are equal up to TOLERANCE."""
    return first.shape == second.shape and bool(abs(first - second).max() <= TOLERANCE * abs(second).max())
