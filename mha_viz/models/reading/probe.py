"""The modules W_Q, W_K, W_V and W_O of one layer, and their inputs and outputs in one forward pass."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import torch

from mha_viz.attention import Weights
from mha_viz.attention.rotary import Rotation
from mha_viz.attention.trace import Floats, Mask, Parameters, Relative, Trace, shared_by, traced
from mha_viz.errors import ModelUnsupported, UnknownHead
from mha_viz.model_names import quote_model
from mha_viz.models.families import (
    Family,
    attention_of,
    family_of,
    holds,
    is_listed,
    key_heads,
    opaque,
    weights_only,
)
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.distances import RELATIVE
from mha_viz.models.reading.linear import PackedLinear, Rows, is_conv
from mha_viz.text import TokenizedText

MASKED = -1e30  # what is added to the scores of masked positions is less
T = TypeVar("T", bound=Tap)
TOLERANCE = 1e-3  # families that do anything else differ by much more
STORED_BYTES = 1_000_000  # bytes of a matrix of weights that is kept, since its conversion takes longer than its use

_matrices: WeakKeyDictionary[Any, tuple[int, npt.NDArray[np.float32]]] = WeakKeyDictionary()
_places: WeakKeyDictionary[Any, dict[int, Place]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Place:
    """The modules of one layer's attention."""

    holder: Any
    inputs: tuple[Any, ...]  # one module, or three
    output: Any
    block: Any  # the layer


class Opened:
    """One layer of a model with hooks to record it: ``with opened: run(opened.tap)``, then ``opened.trace(…)``.

    The hooks are on modules that other threads use too; they record only this thread's pass. ``apart``: what distances
    add to scores is told apart, in families where this is known (``distances.RELATIVE``); elsewhere such families are
    refused.
    """

    def __init__(self, model: Any, name: str, layer: int, layers: int, apart: bool = False) -> None:
        if not is_listed(model.config.model_type):
            raise weights_only(model.config.model_type)
        if not 0 <= layer < layers:
            raise UnknownHead(f"Layer {layer} does not exist: {name} has {layers}.", f"Choose 0 to {layers - 1}.")
        if model.dtype != torch.float32:
            raise ModelUnsupported(
                f"The steps inside the heads of {quote_model(name)} are computed again in float32, and it was loaded "
                f"in {str(model.dtype).removeprefix('torch.')}.",
                "Load it without dtype.",
            )
        self._name, self._layer, self._model = name, layer, model
        self.layer, self.part = attention_of(model.config, layer)
        self._family, why = family_of(model.config, layer), opaque(model.config, layer)
        self._relative = RELATIVE.get(model.config.model_type) if apart and why else None
        if why and self._relative is None:
            raise _unsupported(name, why)
        self._turns = holds(self._family.rotary, model.config)
        self._place = place(model, layer)
        self._thread = 0
        self._tap: Tap | None = None
        self._hooks: list[Any] = []
        self._heard: dict[str, Any] = {}

    def __enter__(self) -> Opened:
        self._thread = threading.get_ident()
        self._hooks = [
            self._place.inputs[0].register_forward_hook(self._hook("x", self._layer, takes=_entered)),
            self._place.output.register_forward_hook(
                self._hook("output", self._layer + 1, takes=lambda _, result: result.clone())
            ),
        ]
        if holds(self._family.pre_norm, self._model.config):
            self._hooks.append(self._hook_before(self._place.block, "entered", _first))
        if self._turns:
            self._hooks.append(self._hook_before(self._place.holder, "turns", self._turned))
        if self._relative is not None:
            self._hooks.append(self._hook_before(self._place.holder, "given", self._bound))
        if self._family.crossing:
            self._hooks.append(self._place.inputs[1].register_forward_hook(self._hook("memory", self._layer, _entered)))
        return self

    def _bound(self, arguments: Any, named: dict[str, Any]) -> dict[str, Any]:
        """What the module of the layer's attention is given, by name."""
        return inspect.signature(self._place.holder.forward).bind(*arguments, **named).arguments

    def _turned(self, _: Any, named: dict[str, Any]) -> _Turns:
        """Return the rotations that the layer is given, or, in GPT-J until transformers 5.23, looks up by position."""
        turns: Any = named.get("position_embeddings")
        if self._family.sines_first:
            turns = turns or self._place.holder.embed_positions[named["position_ids"]].chunk(2, -1)
            turns = [numbers.repeat_interleave(2, -1) for numbers in turns[::-1]]
        cos, sin = turns
        return _Turns(cos, sin, named["attention_mask"])

    def _hook_before(self, module: Any, name: str, takes: Callable[[Any, Any], Any]) -> Any:
        return module.register_forward_pre_hook(self._hook(name, self._layer, takes), with_kwargs=True)

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def tap(self, weights: torch.Tensor) -> Tap:
        """The tap for the pass, which continues beyond the last layer's softmax to its W_O."""
        tap = Tap(weights)
        tap.stop_after_last = False
        return self.listen(tap)

    def listen(self, tap: T) -> T:
        """Record the pass of this tap, which other layers may share."""
        self._tap = tap
        return tap

    def _hook(self, name: str, after: int, takes: Callable[[Any, Any], Any]) -> Callable[..., None]:
        """Records the first tensor after ``after`` layers: ALBERT runs one module many times, and DeBERTa calls its
        input layers again with distances. The second argument of ``takes`` is the result of the module or, before it
        runs, its arguments by name. Another thread's pass may call a hook without these while it is being removed."""

        def hook(_: Any, arguments: Any, more: Any = None) -> None:
            is_mine = threading.get_ident() == self._thread and self._tap is not None and self._tap.seen == after
            if is_mine and name not in self._heard:
                self._heard[name] = takes(arguments, more)

        return hook

    def trace(self, revision: str, text: TokenizedText, weights: Weights) -> Trace:
        """The recorded layer, computed again step by step. Raises ModelUnsupported if the result differs."""
        config, n = self._model.config, len(text)
        x, entered = self.inputs(n)
        scaling, relative = self._distances(n)
        rotation = _rotation(self._place.holder, self._heard["turns"], config) if self._turns else None
        parameters = _parameters(self._place, self._family, config)
        if rotation is not None and self._family.adjacent:
            rotation, parameters = _side_by_side(rotation, parameters, config.num_attention_heads)
        trace = traced(
            *(self._name, revision, self.layer, text, x, parameters),
            self._mask(n),
            heads=config.num_attention_heads,
            scaling=scaling,
            entered=entered,
            rotation=rotation,
            relative=relative,
            memory=self._memory,
            of_model=(weights[self._layer], array(self._heard["output"].reshape(n, -1))),
        )
        if max(trace.agreement) > TOLERANCE:
            raise _unsupported(self._name, "it computes attention in another way than softmax(q kᵀ / √d_k) v")
        return trace

    def inputs(self, n: int) -> tuple[Floats, Floats | None]:
        """x, the input of the layer's attention, and what enters the layer where this is not the same: [n, d_model]
        each."""
        x = array(self._heard["x"].reshape(n, -1))
        return x, self._entered(x)

    def _distances(self, n: int) -> tuple[float, Relative | None]:
        """The factor of the scores, and what distances add to them."""
        d_k = self._model.config.hidden_size / self._model.config.num_attention_heads
        scaling = float(getattr(self._place.holder, "scaling", d_k**-0.5))
        if self._relative is None:
            return scaling, None
        return self._relative(self._place.holder, self._heard["given"], scaling, n)

    def _entered(self, x: Floats) -> Floats | None:
        """The input of the layer's normalisation; None if the layer passes its input to attention unchanged, as
        ModernBERT's first layer does."""
        if "entered" not in self._heard:
            return None
        entered = array(self._heard["entered"].reshape(x.shape))
        return None if np.array_equal(entered, x) else entered

    @property
    def _memory(self) -> Floats | None:
        """What the keys are made of where this is not x: [m, d_model]."""
        return array(self._heard["memory"][0]) if "memory" in self._heard else None

    def _mask(self, n: int) -> Mask:
        """[query, key]: the mask that the layer got together with its rotations, if any, because a layer may see only a
        window of the text."""
        if self._memory is not None:
            return np.zeros((n, len(self._memory)), np.bool_)
        given = self._heard["turns"].mask if self._turns else None
        if given is None:
            causal = np.triu(np.full((n, n), holds(self._family.causal, self._model.config)), 1)
            reach = getattr(self._place.holder, "reach", -1)  # Longformer's and GPT-Neo's
            far = abs(np.arange(n)[:, None] - np.arange(n)) > (reach if reach >= 0 else n)
            hidden: Mask = causal | far
            return hidden
        return array(given).reshape(n, n) < MASKED


class _Turns(NamedTuple):
    """The rotations of queries and keys that a layer gets, and what is added to its scores before the softmax."""

    cos: torch.Tensor  # [1, n, r]
    sin: torch.Tensor
    mask: torch.Tensor | None  # [1, 1, n, n]


def _first(arguments: Sequence[torch.Tensor], named: dict[str, Any]) -> torch.Tensor:
    return (arguments[0] if arguments else named["hidden_states"]).clone()


def _rotation(holder: Any, turns: _Turns, config: Any) -> Rotation:
    cos, sin = (array(numbers[0]) for numbers in turns[:2])
    norms = [module for module in (getattr(holder, name, None) for name in ("q_norm", "k_norm")) if module is not None]
    if not norms:
        return Rotation(cos, sin, np.zeros((0, 0), np.float32))
    eps = epsilon(norms[0])
    scales = [norm_factor(norm, eps) for norm in norms]
    if len(scales[0]) > holder.head_dim:  # one norm for all heads
        scales = [shared_by(config.num_attention_heads, s.reshape(-1, 1, holder.head_dim)) for s in scales]
    return Rotation(cos, sin, np.stack(scales), eps)


def _side_by_side(rotation: Rotation, p: Parameters, heads: int) -> tuple[Rotation, Parameters]:
    """The same layer with the numbers of each query and key in another order, so that those turned together are i and
    i + r/2, where the model has 2i and 2i + 1. Their products stay the same."""
    r, d_k = rotation.turned, p.w_q.shape[1] // heads
    order = np.array([*range(0, r, 2), *range(1, r, 2), *range(r, d_k)])

    def ordered(columns: Floats) -> Floats:
        split = columns.reshape(*columns.shape[:-1], -1, d_k)[..., order]
        return np.ascontiguousarray(split.reshape(columns.shape))

    cos, sin = (np.ascontiguousarray(numbers[:, order[:r]]) for numbers in (rotation.cos, rotation.sin))
    moved = {name: ordered(getattr(p, name)) for name in ("w_q", "w_k", "b_q", "b_k")}
    return rotation._replace(cos=cos, sin=sin), p._replace(**moved)


def is_centred(norm: Any) -> bool:
    """True if a norm subtracts the mean, as LayerNorm does and RMSNorm does not, nor that of T5."""
    name = type(norm).__name__
    return name.endswith("LayerNorm") and not name.endswith("T5LayerNorm")


def epsilon(norm: Any) -> float:
    """What a norm adds to the variance under its root."""
    return float(getattr(norm, "variance_epsilon", None) or norm.eps)


def norm_factor(norm: Any, eps: float) -> Floats:
    """The factor of an RMSNorm: its weight or, in Gemma, 1 + its weight. Its output for ones shows which."""
    with torch.inference_mode():
        return array(norm(torch.ones_like(norm.weight))) * np.float32((1 + eps) ** 0.5)


def _entered(arguments: Sequence[torch.Tensor], _: torch.Tensor) -> torch.Tensor:
    return arguments[0].clone()


def place(model: Any, layer: int) -> Place:
    """The modules of a layer's attention in a transformers model of a known family."""
    places = _places.setdefault(model, {})
    if layer not in places:
        places[layer] = _place(model, layer)
    return places[layer]


def _place(model: Any, layer: int) -> Place:
    family = family_of(model.config, layer)
    numbers = family.numbers(model.config, layer)
    holder = model.get_submodule(family.holder.format(*numbers))
    inputs = tuple(holder.get_submodule(name) for name in family.inputs)
    block = model.get_submodule(family.holder[: family.holder.rindex("}") + 1].format(*numbers))
    return Place(holder, inputs, model.get_submodule(family.output.format(*numbers)), block)


def _unsupported(name: str, why: str) -> ModelUnsupported:
    return ModelUnsupported(
        f"The inside of {quote_model(name)} cannot be shown: {why}.",
        "Choose a model such as BERT, RoBERTa, GPT-2, Llama or Qwen.",
    )


def _parameters(place: Place, family: Family, config: Any) -> Parameters:
    matrices = [weights_of(module) for module in place.inputs]
    biases = [bias_of(module, weight.shape[1]) for module, weight in zip(place.inputs, matrices, strict=True)]
    w_o = weights_of(place.output)
    if len(matrices) == 1:
        cut = partial(_cut, heads=config.num_attention_heads, keys=key_heads(config), interleaved=family.interleaved)
        matrices, biases = cut(matrices[0], wide=len(w_o)), cut(biases[0], wide=len(w_o))
    w_q, w_k, w_v = map(np.ascontiguousarray, matrices)
    b_q, b_k, b_v = map(np.ascontiguousarray, biases)
    return Parameters(w_q, w_k, w_v, w_o, b_q, b_k, b_v, bias_of(place.output, w_o.shape[1]))


def _cut(joined: Floats, wide: int, heads: int, keys: int, interleaved: bool) -> list[Floats]:
    """The columns of queries, keys and values from all three side by side, […, all columns]; ``wide``: the number of
    query columns."""
    if interleaved:
        groups = joined.reshape(*joined.shape[:-1], keys, heads // keys + 2, wide // heads)
        parts = groups[..., :-2, :], groups[..., -2, :], groups[..., -1, :]
        return [part.reshape(*joined.shape[:-1], -1) for part in parts]
    return np.split(joined, [wide, wide + keys * wide // heads], axis=-1)


def matrix(module: Any) -> torch.Tensor:
    """The weight of a linear layer as [in, out], whichever way it is stored."""
    weight: torch.Tensor = module.weight if is_conv(module) else module.weight.T
    return weight.detach()


def weights_of(module: Any) -> Floats:
    """:func:`matrix` in CPU memory, not to be changed. It is kept for the version of the weights that it was made of,
    unless it is large."""
    version = 0 if isinstance(module, PackedLinear | Rows) else module.weight._version  # packed ones never change
    if module in _matrices and _matrices[module][0] == version:
        return _matrices[module][1]
    weights = array(matrix(module))
    if weights.nbytes <= STORED_BYTES:
        _matrices[module] = version, weights
    return weights


def bias_of(module: Any, width: int) -> Floats:
    return np.zeros(width, np.float32) if module.bias is None else array(module.bias)


def array(tensor: torch.Tensor) -> Floats:
    """A copy in CPU memory."""
    array: npt.NDArray[np.float32] = np.array(tensor.detach().float().cpu().numpy(), order="C")
    return array
