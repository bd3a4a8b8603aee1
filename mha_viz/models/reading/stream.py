"""The parts of what each layer's attention is given: vectors of words and positions, the outputs of earlier heads and
feed-forward parts, and constants, carried forward through the norms of one pass.

A norm divides by a standard deviation, which is that of the real pass for every part; the rest of it is linear
(Kobayashi et al. 2021, equation 3; for norms without a mean Zhang & Sennrich 2019, "Root Mean Square Layer
Normalization", equation 4). What a feed-forward part adds is what enters the next norm, or the next layer, minus all
that is known of it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch

from mha_viz.attention.parts import CONSTANTS, FEED_FORWARD, HEADS, POSITION, WORD, Parts
from mha_viz.attention.trace import Floats
from mha_viz.errors import ModelUnsupported
from mha_viz.model_names import quote_model
from mha_viz.models.families import family_of, holds
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.probe import (
    TOLERANCE,
    Opened,
    array,
    bias_of,
    epsilon,
    is_centred,
    matrix,
    norm_factor,
    place,
    weights_of,
)

SHIFTS, OUTPUT_BIASES = "shifts of norms", "output biases"
_BETWEEN = "a norm stands between what W_O puts out and the sum that it is added to"
_REFUSED = {"gemma3_text": _BETWEEN, "olmo2": _BETWEEN, "xlnet": "its words have two streams of vectors"}
_TABLES = ("position_embeddings", "embed_positions", "wpe")  # modules with a vector for each position
_PROJECTIONS = ("embeddings_project", "encoder.embedding_hidden_mapping_in")  # from narrow vectors of words to d_model


class _Norm(NamedTuple):
    """A norm in the pass: how many layers' attention it came after, what it was given and what it put out, [n, d]."""

    after: int
    module: Any
    given: Floats
    put_out: Floats


class _Outputs(Tap):
    """Records the outputs of each layer's heads, [n, head, d_head]. ``widths``: how many keys each attention has, where
    not all have as many."""

    changes = False
    stop_after_last = False

    def __init__(self, weights: torch.Tensor, widths: Sequence[int]) -> None:
        super().__init__(weights)
        self.outputs: list[Floats] = []
        self.widths = widths

    def slot(self, index: int) -> torch.Tensor:
        return self.weights[index][..., : self.widths[index]] if self.widths else self.weights[index]

    def layer(self, index: int, query: Any, key: Any, value: Any, output: torch.Tensor) -> torch.Tensor:
        self.outputs.append(array(output[0]))
        return output


class _Modules(NamedTuple):
    """What is found among the modules of a model: its norms, and whether it has vectors for positions."""

    norms: tuple[Any, ...]
    has_tables: bool


_modules: WeakKeyDictionary[Any, _Modules] = WeakKeyDictionary()


def _modules_of(model: Any) -> _Modules:
    if model not in _modules:
        named = [*model.named_modules()]
        norms = tuple(module for _, module in named if type(module).__name__.endswith(("LayerNorm", "RMSNorm")))
        _modules[model] = _Modules(norms, any(name.rpartition(".")[2] in _TABLES for name, _ in named))
    return _modules[model]


class Stream:
    """The pass of a model over one text up to a layer: ``with stream: run(stream.tap)``, then ``stream.parts(…)``.

    The layers of a decoder have two attentions, to its own text and across to another; each counts as a layer here.
    """

    def __init__(self, model: Any, name: str, layers: int, last: int, widths: Sequence[int] = ()) -> None:
        """``layers``: of the model; ``last``: the last layer whose parts are wanted; ``widths``: how many keys each
        layer has, where not all have as many. Raises ModelUnsupported with the reason, UnknownHead for a layer that
        does not exist."""
        self._model, self._name, self._heads, self.widths = model, name, int(model.config.num_attention_heads), widths
        refuse(model.config, name)
        self._opened = [Opened(model, name, layer, layers, apart=True) for layer in range(last + 1)]
        self._norms: list[_Norm] = []
        self._tap: _Outputs | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Stream:
        for each in self._opened:
            self._stack.enter_context(each)
        self._stack.enter_context(self._listening())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def tap(self, weights: torch.Tensor) -> Tap:
        """The tap for the pass."""
        self._tap = _Outputs(weights, self.widths)
        for each in self._opened:
            each.listen(self._tap)
        return self._tap

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Hooks on the norms, which other threads use too."""
        thread = threading.get_ident()

        def hook(module: Any, arguments: Any, put_out: torch.Tensor) -> None:
            tap, (given, *_) = self._tap, arguments
            if threading.get_ident() == thread and tap is not None and given.dim() == 3 and len(given) == 1:
                self._norms.append(_Norm(tap.seen, module, array(given[0]), array(put_out[0])))

        handles = [m.register_forward_hook(hook) for m in _modules_of(self._model).norms]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def parts(self, read: Any, is_typed: bool, layers: Collection[int]) -> Iterator[tuple[Opened, Parts]]:
        """For each of ``layers``, in order: what its attention is given, in parts. ``is_typed``: the model is given the
        types of the pieces."""
        for layer, (summed, x, entered) in enumerate(self._entering(read, is_typed)):
            if layer in layers:
                given = summed if entered is None else summed.behind(self._norm(layer, x, entered))
                yield self._opened[layer], self._checked(given.named(), x)

    def last_state(self, read: Any) -> tuple[Floats, Parts]:
        """What a stack of layers puts out behind its last norm, [n, d_model], after a pass to its last layer; and the
        parts of it."""
        *_, (summed, _, _) = self._entering(read, False)
        layer, norm = len(self._opened) - 1, self._norms[-1]
        summed.add_heads(self._named(layer), *self._of_heads(layer))
        summed.add_rest(layer, norm.given)
        return norm.put_out, self._checked(summed.behind(norm).named(), norm.put_out)

    def _entering(self, read: Any, is_typed: bool) -> Iterator[tuple[_Summed, Floats, Floats | None]]:
        """For each layer: what enters it, in parts, which later layers add to; x and what it is made of."""
        is_pre = holds(family_of(self._model.config).pre_norm, self._model.config)
        streams = [each.inputs(len(read.ids)) for each in self._opened]
        summed = self._embedded(read, is_typed, _stream(*streams[0]))
        for layer, (x, entered) in enumerate(streams):
            yield summed, x, entered
            if layer + 1 == len(streams):
                return
            summed.add_heads(self._named(layer), *self._of_heads(layer))
            if not is_pre:
                norms = [norm for norm in self._norms if norm.after == layer + 1]
                if len(norms) < 2:
                    raise _unsupported(self._name, "its layers do not have a norm after each of their halves")
                summed.pass_through(norms[0])
                summed.add_rest(layer, norms[1].given)
                summed.pass_through(norms[1])
            elif not family_of(self._model.config, layer + 1).crossing:
                summed.add_rest(self._opened[layer].layer, _stream(*streams[layer + 1]))

    def _named(self, layer: int) -> str:
        """What the names of a layer's heads begin with."""
        return f"{self._opened[layer].part} L{self._opened[layer].layer}".strip()

    def _of_heads(self, layer: int) -> tuple[Floats, Floats, Floats]:
        """The contexts of a layer's heads, [head, n, d_head], their slices of W_O, [head, d_head, d_model], and its
        bias, [d_model]."""
        assert self._tap is not None
        contexts, module = self._tap.outputs[layer].transpose(1, 0, 2), place(self._model, layer).output
        slices = weights_of(module).reshape(len(contexts), contexts.shape[-1], -1)
        return contexts, slices, bias_of(module, slices.shape[-1])

    def _norm(self, layer: int, x: Floats, entered: Floats) -> _Norm:
        """The norm that makes x, the input of a layer's attention, of what enters the layer."""
        norms = [
            n for n in self._norms if n.after == layer and n.put_out.shape == x.shape and np.array_equal(n.put_out, x)
        ]
        if not norms or not np.array_equal(norms[-1].given, entered):
            raise _unsupported(self._name, "what enters its layers is not what their norms are given")
        return norms[-1]

    def _embedded(self, read: Any, is_typed: bool, stream: Floats) -> _Summed:
        """What enters the first layer, in parts."""
        project = next((m for m in map(self._module, _PROJECTIONS) if m is not None), None)
        norm = next((n for n in self._norms if n.after == 0 and _same(_projected(n.put_out, project), stream)), None)
        whole, most = stream if norm is None else norm.given, 5 + len(self._opened) * (self._heads + 1)
        summed = _Summed(most, whole.shape)
        types, of_types = self._module("embeddings.token_type_embeddings"), np.zeros_like(whole)
        if types is not None:
            of_types = array(types.weight)[list(read.types) if is_typed else [0] * len(whole)]
        words = self._words(read.ids) if _modules_of(self._model).has_tables else whole - of_types
        summed.add("word", WORD, words)
        summed.add("position", POSITION, whole - of_types - words)
        summed.add("type", POSITION, of_types)
        if norm is not None:
            summed.pass_through(norm)
        return summed if project is None else summed.projected(project, most)

    def _words(self, ids: Sequence[int]) -> Floats:
        """The vectors of words alone."""
        device = next(self._model.parameters()).device
        with torch.inference_mode():
            vectors = self._model.get_input_embeddings()(torch.tensor([list(ids)], device=device))
            project = self._module("decoder.project_in")  # OPT
            return array((vectors if project is None else project(vectors))[0])

    def _module(self, path: str) -> Any:
        """The module at a path; None where there is none."""
        try:
            return self._model.get_submodule(path)
        except AttributeError:
            return None

    def _checked(self, parts: Parts, x: Floats) -> Parts:
        if not _same(parts.x.sum(axis=0), x):
            raise _unsupported(self._name, "something else than its heads and feed-forward parts adds to its vectors")
        return parts


def refuse(config: Any, name: str) -> None:
    """Raises ModelUnsupported, with the reason, for a model whose vectors are not such a sum."""
    if config.model_type in _REFUSED:
        raise _unsupported(name, _REFUSED[config.model_type])
    if getattr(config, "rescale_embeddings", False):  # BigBird
        raise _unsupported(name, "it scales the vectors of words before it adds those of positions")


def _unsupported(name: str, why: str) -> ModelUnsupported:
    return ModelUnsupported(
        f"The scores of {quote_model(name)} cannot be taken apart: {why}.",
        "Choose a model such as BERT, DeBERTa, GPT-2, Llama or Qwen.",
    )


class _Summed:
    """Vectors as a sum of parts; the first two are constants, which grow. Changed in place, in memory for all parts."""

    def __init__(self, most: int, shape: tuple[int, ...]) -> None:
        """Nothing but constants, which are 0, and room for ``most`` parts of vectors [n, d]."""
        self.names, self.groups = [SHIFTS, OUTPUT_BIASES], [CONSTANTS, CONSTANTS]
        self._room = np.zeros((most, *shape), np.float32)

    @property
    def x(self) -> Floats:
        """[part, n, d]."""
        return self._room[: len(self.names)]

    @property
    def total(self) -> Floats:
        """[n, d]: the sum of all parts; not by BLAS, whose threads would wait for those of torch."""
        total: Floats = self.x.sum(axis=0)
        return total

    def add(self, name: str, group: str, vectors: Floats) -> None:
        """Add a part: its vectors, [n, d]."""
        self._room[len(self.names)] = vectors
        self.names.append(name)
        self.groups.append(group)

    def add_heads(self, layer: str, contexts: Floats, slices: Floats, bias: Floats) -> None:
        """Add what each head of a layer, such as "L1", puts out: its context, [head, n, d_head], times its slice of
        W_O, [head, d_head, d]; and the bias of W_O."""
        first, heads = len(self.names), len(contexts)
        np.matmul(contexts, slices, out=self._room[first : first + heads])
        self.names += [f"{layer}H{head}" for head in range(heads)]
        self.groups += [HEADS] * heads
        self.x[1] += bias

    def add_rest(self, layer: int, whole: Floats) -> None:
        """Add what the feed-forward part of a layer puts out, which is all of ``whole`` that is not known otherwise."""
        self.add(f"feed-forward {layer}", FEED_FORWARD, whole - self.total)

    def pass_through(self, norm: _Norm) -> None:
        """Go through a norm, with the standard deviation of the pass."""
        module, given, x = norm.module, norm.given, self.x
        has_mean, eps = is_centred(module), epsilon(module)
        centred = given - given.mean(axis=-1, keepdims=True) if has_mean else given
        size = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(eps))
        scale = (array(module.weight) if has_mean else norm_factor(module, eps)) / size  # [n, d]
        for part in x:  # which stays in the processor's cache
            if has_mean:
                part -= np.add.reduce(part, axis=-1, keepdims=True) / np.float32(part.shape[-1])
            part *= scale
        shift = getattr(module, "bias", None)
        if shift is not None:
            x[0] += array(shift)

    def behind(self, norm: _Norm) -> _Summed:
        """A copy that went through a norm."""
        other = _Summed(0, ())
        other.names, other.groups, other._room = list(self.names), list(self.groups), self.x.copy()
        other.pass_through(norm)
        return other

    def projected(self, module: Any, most: int) -> _Summed:
        """A copy that went through a linear layer, with room for ``most`` parts."""
        weight = array(matrix(module))
        other = _Summed(most, (*self.x.shape[1:-1], weight.shape[1]))
        other.names, other.groups = list(self.names), list(self.groups)
        other.x[:] = self.x @ weight
        other.x[1] += bias_of(module, weight.shape[1])
        return other

    def named(self) -> Parts:
        """Without the parts that are 0: rotary models have no position among their vectors, others no shifts."""
        least = 1e-6 * abs(self.total).max(initial=0)  # what is less is rounding
        used = [
            part
            for part, vectors in enumerate(self.x)  # the first vector almost always has a larger number
            if any(max(some.max(initial=0), -some.min(initial=0)) > least for some in (vectors[:1], vectors))
        ]
        return Parts(tuple(self.names[at] for at in used), tuple(self.groups[at] for at in used), self.x[used])


def _stream(x: Floats, entered: Floats | None) -> Floats:
    return x if entered is None else entered


def _projected(vectors: Floats, module: Any) -> Floats:
    if module is None or vectors.shape[-1] != matrix(module).shape[0]:
        return vectors
    projected: Floats = vectors @ array(matrix(module)) + bias_of(module, matrix(module).shape[1])
    return projected


def _same(vectors: Floats, others: Floats) -> bool:
    return vectors.shape == others.shape and bool(abs(vectors - others).max() <= TOLERANCE * abs(others).max())
