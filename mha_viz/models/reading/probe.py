"""Find the modules W_Q, W_K, W_V and W_O of one layer, and record their inputs and outputs in one forward pass."""

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
from mha_viz.attention.trace import DistanceTerms, Floats, Mask, Parameters, Trace, compute_trace, repeat_for_heads
from mha_viz.errors import ModelUnsupported, UnknownHead
from mha_viz.model_names import quote_model
from mha_viz.models.families import (
    Family,
    count_key_heads,
    find_family,
    find_opaque_reason,
    is_listed,
    is_setting_true,
    locate_attention,
    make_weights_only_error,
)
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.distances import TERMS_BY_FAMILY
from mha_viz.models.reading.linear import LinearRows, PackedLinear, is_conv
from mha_viz.text import TokenizedText

MASKED = -1e30  # numbers below this in a mask mark masked positions
T = TypeVar("T", bound=Tap)
TOLERANCE = 1e-3  # families that compute attention differently deviate by much more
MAX_CACHED_BYTES = 1_000_000  # larger weight matrices are not cached; for small ones conversion takes longer than use

_matrices: WeakKeyDictionary[Any, tuple[int, npt.NDArray[np.float32]]] = WeakKeyDictionary()
_modules_by_model: WeakKeyDictionary[Any, dict[int, AttentionModules]] = WeakKeyDictionary()


@dataclass(frozen=True)
class AttentionModules:
    """The modules of one layer's attention."""

    holder: Any  # the module that has the linear layers ``inputs``
    inputs: tuple[Any, ...]  # W_Q, W_K and W_V, or one module that holds all three
    output: Any  # W_O
    block: Any  # the layer


class LayerProbe:
    """Hooks that record one layer of a model: ``with probe: run(probe.tap)``, then ``probe.trace(…)``.

    The hooks are on modules that other threads use, too; they record only this thread's pass. With ``splits_scores``,
    the terms that distances add to scores are kept separate, in families where this is known
    (``distances.TERMS_BY_FAMILY``); otherwise such families are refused.
    """

    def __init__(self, model: Any, name: str, layer: int, layers: int, splits_scores: bool = False) -> None:
        if not is_listed(model.config.model_type):
            raise make_weights_only_error(model.config.model_type)
        if not 0 <= layer < layers:
            raise UnknownHead(f"Layer {layer} does not exist: {name} has {layers}.", f"Choose 0 to {layers - 1}.")
        check_full_precision(model.dtype, name)
        self._name, self._layer, self._model = name, layer, model
        self.layer, self.part = locate_attention(model.config, layer)
        self._family, reason = find_family(model.config, layer), find_opaque_reason(model.config, layer)
        self._distance_terms = TERMS_BY_FAMILY.get(model.config.model_type) if splits_scores and reason else None
        if reason and self._distance_terms is None:
            raise _make_unsupported_error(name, reason)
        self._is_rotary = is_setting_true(self._family.rotary, model.config)
        self._modules = find_attention_modules(model, layer)
        self._thread = 0
        self._tap: Tap | None = None
        self._hooks: list[Any] = []
        self._records: dict[str, Any] = {}

    def __enter__(self) -> LayerProbe:
        self._thread = threading.get_ident()
        self._hooks = [
            self._modules.inputs[0].register_forward_hook(self._make_hook("x", self._layer, extract=_copy_input)),
            self._modules.output.register_forward_hook(
                self._make_hook("output", self._layer + 1, extract=lambda _, result: result.clone())
            ),
        ]
        if is_setting_true(self._family.pre_norm, self._model.config):
            self._hooks.append(self._register_pre_hook(self._modules.block, "layer_input", _copy_hidden_states))
        if self._is_rotary:
            self._hooks.append(self._register_pre_hook(self._modules.holder, "rotations", self._find_rotations))
        if self._distance_terms is not None:
            self._hooks.append(self._register_pre_hook(self._modules.holder, "arguments", self._bind_arguments))
        if self._family.is_cross:
            self._hooks.append(
                self._modules.inputs[1].register_forward_hook(self._make_hook("memory", self._layer, _copy_input))
            )
        return self

    def _bind_arguments(self, arguments: Any, keywords: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the layer's attention module, by name."""
        return inspect.signature(self._modules.holder.forward).bind(*arguments, **keywords).arguments

    def _find_rotations(self, _: Any, keywords: dict[str, Any]) -> _Rotations:
        """Return the rotations passed to the layer or, in GPT-J until transformers 5.23, looked up by position."""
        rotations: Any = keywords.get("position_embeddings")
        if self._family.sines_first:
            rotations = rotations or self._modules.holder.embed_positions[keywords["position_ids"]].chunk(2, -1)
            rotations = [numbers.repeat_interleave(2, -1) for numbers in rotations[::-1]]
        cos, sin = rotations
        return _Rotations(cos, sin, keywords["attention_mask"])

    def _register_pre_hook(self, module: Any, name: str, extract: Callable[[Any, Any], Any]) -> Any:
        """Register a hook that records what ``extract`` returns for the arguments of a module. Return its handle."""
        return module.register_forward_pre_hook(self._make_hook(name, self._layer, extract), with_kwargs=True)

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def tap(self, weights: torch.Tensor) -> Tap:
        """Return the tap for the pass, which continues beyond the last layer's softmax to its W_O."""
        tap = Tap(weights)
        tap.stop_after_last = False
        return self.listen(tap)

    def listen(self, tap: T) -> T:
        """Record the pass of this tap, which other layers may share. Return the tap."""
        self._tap = tap
        return tap

    def _make_hook(self, name: str, layers_before: int, extract: Callable[[Any, Any], Any]) -> Callable[..., None]:
        """Return a hook that records ``extract(…)`` under a name, for the first call after ``layers_before`` layers.

        Later calls are ignored: ALBERT runs one module many times, and DeBERTa calls its input layers again with
        distances. The second argument of ``extract`` is the result of the module or, for hooks that run before it, its
        keyword arguments. While a hook is being removed, another thread's pass may call it without that argument.
        """

        def hook(_: Any, arguments: Any, result: Any = None) -> None:
            is_own_pass = (
                threading.get_ident() == self._thread and self._tap is not None and self._tap.seen == layers_before
            )
            if is_own_pass and name not in self._records:
                self._records[name] = extract(arguments, result)

        return hook

    def trace(self, revision: str, text: TokenizedText, weights: Weights) -> Trace:
        """Return the recorded layer, recomputed step by step. Raises ModelUnsupported if the result differs."""
        config, n = self._model.config, len(text)
        x, layer_input = self.inputs(n)
        scaling, relative = self._compute_distance_terms(n)
        rotations = self._records["rotations"] if self._is_rotary else None
        rotation = None if rotations is None else _make_rotation(self._modules.holder, rotations, config)
        parameters = _read_parameters(self._modules, self._family, config)
        if rotation is not None and self._family.adjacent:
            rotation, parameters = _reorder_rotated_entries(rotation, parameters, config.num_attention_heads)
        trace = compute_trace(
            *(self._name, revision, self.layer, text, x, parameters),
            self._find_mask(n),
            heads=config.num_attention_heads,
            scaling=scaling,
            layer_input=layer_input,
            rotation=rotation,
            relative=relative,
            memory=self._memory,
            model_results=(weights[self._layer], to_array(self._records["output"].reshape(n, -1))),
        )
        if max(trace.agreement) > TOLERANCE:
            raise _make_unsupported_error(self._name, "its attention is not softmax(q kᵀ / √d_k) v")
        return trace

    def inputs(self, n: int) -> tuple[Floats, Floats | None]:
        """Return x, the input of the layer's attention, and the layer's input if it differs; both [n, d_model]."""
        x = to_array(self._records["x"].reshape(n, -1))
        return x, self._find_layer_input(x)

    def _compute_distance_terms(self, n: int) -> tuple[float, DistanceTerms | None]:
        """Return the scale of the scores, and the terms that distances add to them."""
        d_k = self._model.config.hidden_size / self._model.config.num_attention_heads
        scaling = float(getattr(self._modules.holder, "scaling", d_k**-0.5))
        if self._distance_terms is None:
            return scaling, None
        return self._distance_terms(self._modules.holder, self._records["arguments"], scaling, n)

    def _find_layer_input(self, x: Floats) -> Floats | None:
        """Return the input of the layer's norm; None if the layer passes its input to attention unchanged.

        ModernBERT's first layer does so.
        """
        if "layer_input" not in self._records:
            return None
        layer_input = to_array(self._records["layer_input"].reshape(x.shape))
        return None if np.array_equal(layer_input, x) else layer_input

    @property
    def _memory(self) -> Floats | None:
        """The vectors from which keys are computed where these are not x, [m, d_model]."""
        return to_array(self._records["memory"][0]) if "memory" in self._records else None

    def _find_mask(self, n: int) -> Mask:
        """Return the mask, [query, key], which differs between layers if some see only a window of the text.

        It is the mask that the layer received together with its rotations, if any; otherwise it follows from the
        family.
        """
        if self._memory is not None:
            return np.zeros((n, len(self._memory)), np.bool_)
        layer_mask = self._records["rotations"].mask if self._is_rotary else None
        if layer_mask is None:
            causal = np.triu(np.full((n, n), is_setting_true(self._family.causal, self._model.config)), 1)
            window = getattr(self._modules.holder, "reach", -1)  # set for Longformer and GPT-Neo
            is_too_far = abs(np.arange(n)[:, None] - np.arange(n)) > (window if window >= 0 else n)
            mask: Mask = causal | is_too_far
            return mask
        return to_array(layer_mask).reshape(n, n) < MASKED


class _Rotations(NamedTuple):
    """The rotations of queries and keys in a layer, and the mask that is added to its scores before the softmax."""

    cos: torch.Tensor  # [1, n, r]
    sin: torch.Tensor
    mask: torch.Tensor | None  # [1, 1, n, n]


def check_full_precision(dtype: torch.dtype, name: str) -> None:
    """Raise ModelUnsupported for a model that was loaded in half precision."""
    if dtype != torch.float32:
        raise ModelUnsupported(
            f"The steps inside the heads of {quote_model(name)} are computed again in float32, and it was loaded in "
            f"{str(dtype).removeprefix('torch.')}.",
            "Load it without dtype.",
        )


def _copy_hidden_states(arguments: Sequence[torch.Tensor], keywords: dict[str, Any]) -> torch.Tensor:
    """Return a copy of the hidden states among the arguments of a module."""
    return (arguments[0] if arguments else keywords["hidden_states"]).clone()


def _make_rotation(holder: Any, rotations: _Rotations, config: Any) -> Rotation:
    """Return the rotation of a layer, with the norms of queries and keys if it has any."""
    cos, sin = (to_array(numbers[0]) for numbers in rotations[:2])
    norms = [module for module in (getattr(holder, name, None) for name in ("q_norm", "k_norm")) if module is not None]
    if not norms:
        return Rotation(cos, sin, np.zeros((0, 0), np.float32))
    eps = get_epsilon(norms[0])
    scales = [compute_norm_factor(norm, eps) for norm in norms]
    if len(scales[0]) > holder.head_dim:  # one norm for all heads
        scales = [repeat_for_heads(config.num_attention_heads, s.reshape(-1, 1, holder.head_dim)) for s in scales]
    return Rotation(cos, sin, np.stack(scales), eps)


def _reorder_rotated_entries(rotation: Rotation, p: Parameters, heads: int) -> tuple[Rotation, Parameters]:
    """Reorder queries and keys so that entries i and i + r/2 are rotated together, where the model pairs 2i and 2i + 1.

    The products of queries and keys stay the same.
    """
    r, d_k = rotation.rotated_size, p.w_q.shape[1] // heads
    order = np.array([*range(0, r, 2), *range(1, r, 2), *range(r, d_k)])

    def reorder(columns: Floats) -> Floats:
        """Reorder the columns of each head."""
        by_head = columns.reshape(*columns.shape[:-1], -1, d_k)[..., order]
        return np.ascontiguousarray(by_head.reshape(columns.shape))

    cos, sin = (np.ascontiguousarray(numbers[:, order[:r]]) for numbers in (rotation.cos, rotation.sin))
    matrices = {name: reorder(getattr(p, name)) for name in ("w_q", "w_k", "b_q", "b_k")}
    return rotation._replace(cos=cos, sin=sin), p._replace(**matrices)


def is_centred(norm: Any) -> bool:
    """Return whether a norm subtracts the mean. LayerNorm does; RMSNorm and T5's norm do not."""
    name = type(norm).__name__
    return name.endswith("LayerNorm") and not name.endswith("T5LayerNorm")


def get_epsilon(norm: Any) -> float:
    """Return the epsilon of a norm, which is added to the variance before the square root."""
    return float(getattr(norm, "variance_epsilon", None) or norm.eps)


def compute_norm_factor(norm: Any, eps: float) -> Floats:
    """Return the factor of an RMSNorm: its weight or, in Gemma, 1 + its weight.

    The norm is applied to a vector of ones, which works for both.
    """
    with torch.inference_mode():
        return to_array(norm(torch.ones_like(norm.weight))) * np.float32((1 + eps) ** 0.5)


def _copy_input(arguments: Sequence[torch.Tensor], _: torch.Tensor) -> torch.Tensor:
    """Return a copy of the input of a module."""
    return arguments[0].clone()


def find_attention_modules(model: Any, layer: int) -> AttentionModules:
    """Return the modules of a layer's attention in a transformers model of a listed family. They are cached."""
    modules_by_layer = _modules_by_model.setdefault(model, {})
    if layer not in modules_by_layer:
        modules_by_layer[layer] = _look_up_modules(model, layer)
    return modules_by_layer[layer]


def _look_up_modules(model: Any, layer: int) -> AttentionModules:
    """Look up the modules of a layer's attention."""
    family = find_family(model.config, layer)
    numbers = family.numbers(model.config, layer)
    holder = model.get_submodule(family.holder.format(*numbers))
    inputs = tuple(holder.get_submodule(name) for name in family.inputs)
    block = model.get_submodule(family.holder[: family.holder.rindex("}") + 1].format(*numbers))
    return AttentionModules(holder, inputs, model.get_submodule(family.output.format(*numbers)), block)


def _make_unsupported_error(name: str, reason: str) -> ModelUnsupported:
    """Return the error for a model whose steps inside a head cannot be shown."""
    return ModelUnsupported(
        f"The inside of {quote_model(name)} cannot be shown: {reason}.",
        "Choose a model such as BERT, RoBERTa, GPT-2, Llama or Qwen.",
    )


def _read_parameters(modules: AttentionModules, family: Family, config: Any) -> Parameters:
    """Return the matrices and biases of a layer's attention."""
    matrices = [read_weights(module) for module in modules.inputs]
    biases = [read_bias(module, weight.shape[1]) for module, weight in zip(modules.inputs, matrices, strict=True)]
    w_o = read_weights(modules.output)
    if len(matrices) == 1:
        split = partial(
            _split_columns,
            heads=config.num_attention_heads,
            key_heads=count_key_heads(config),
            interleaved=family.interleaved,
        )
        matrices, biases = split(matrices[0], query_columns=len(w_o)), split(biases[0], query_columns=len(w_o))
    w_q, w_k, w_v = map(np.ascontiguousarray, matrices)
    b_q, b_k, b_v = map(np.ascontiguousarray, biases)
    return Parameters(w_q, w_k, w_v, w_o, b_q, b_k, b_v, read_bias(modules.output, w_o.shape[1]))


def _split_columns(qkv: Floats, query_columns: int, heads: int, key_heads: int, interleaved: bool) -> list[Floats]:
    """Split an array that holds queries, keys and values side by side, […, all columns], into these three."""
    if interleaved:
        groups = qkv.reshape(*qkv.shape[:-1], key_heads, heads // key_heads + 2, query_columns // heads)
        parts = groups[..., :-2, :], groups[..., -2, :], groups[..., -1, :]
        return [part.reshape(*qkv.shape[:-1], -1) for part in parts]
    return np.split(qkv, [query_columns, query_columns + key_heads * query_columns // heads], axis=-1)


def read_matrix(module: Any) -> torch.Tensor:
    """Return the weight of a linear layer as [in, out], however it is stored."""
    weight: torch.Tensor = module.weight if is_conv(module) else module.weight.T
    return weight.detach()


def read_weights(module: Any) -> Floats:
    """Return :func:`read_matrix` in CPU memory. The array must not be changed.

    Unless it is large, it is cached until the weights change.
    """
    # Packed weights never change.
    version = 0 if isinstance(module, PackedLinear | LinearRows) else module.weight._version
    if module in _matrices and _matrices[module][0] == version:
        return _matrices[module][1]
    weights = to_array(read_matrix(module))
    if weights.nbytes <= MAX_CACHED_BYTES:
        _matrices[module] = version, weights
    return weights


def read_bias(module: Any, width: int) -> Floats:
    """Return the bias of a linear layer in CPU memory; zeros if it has none."""
    return np.zeros(width, np.float32) if module.bias is None else to_array(module.bias)


def to_array(tensor: torch.Tensor) -> Floats:
    """Return a copy in CPU memory, as float32."""
    array: npt.NDArray[np.float32] = np.array(tensor.detach().float().cpu().numpy(), order="C")
    return array
