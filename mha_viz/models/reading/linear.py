"""Compute linear layers with oneDNN: the same float32 arithmetic as PyTorch's, on weights that are packed once."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import nn

from mha_viz.models.families import FAMILIES

# Names of a linear layer and the GELU after it in each family. Fused, they need one pass over memory instead of two.
_GELU_PAIRS = frozenset(family.gelu for family in FAMILIES.values() if family.gelu)

_MADV_PAGEOUT = 21  # missing in the module :mod:`mmap`


class PackedLinear(nn.Module):
    """The linear layer ``x Wᵀ + b``, followed by GELU if ``gelu`` is set.

    W [out, in] is stored in oneDNN's own layout.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, gelu: bool = False) -> None:
        super().__init__()
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), None)
        _page_out(weight)
        self.bias = None if bias is None else bias.detach()
        self._activation = ("gelu", "none") if gelu else ("none", "")

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles, with W in the ordinary layout, because oneDNN's cannot be copied."""
        return {**vars(self), "_packed": self.weight}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Pack the weights again."""
        packed_weight = torch.ops.mkldnn._reorder_linear_weight(state["_packed"].contiguous(), None)
        super().__setstate__({**state, "_packed": packed_weight})  # type: ignore[no-untyped-call]

    @property
    def weight(self) -> torch.Tensor:
        """W [out, in] in the ordinary layout; a new tensor in each call."""
        weight: torch.Tensor = self._packed.to_dense()
        return weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the layer: [..., in] → [..., out]."""
        if torch.is_grad_enabled() and x.requires_grad:
            y: torch.Tensor = _PackedFunction.apply(x, self)  # type: ignore[no-untyped-call]
            return y
        return self.compute(x)

    @property
    def is_fused(self) -> bool:
        """Whether the layer includes the exact GELU."""
        return self._activation[0] == "gelu"

    def compute(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the layer without gradients."""
        name, variant = self._activation
        y: torch.Tensor = torch.ops.mkldnn._linear_pointwise.default(x, self._packed, self.bias, name, [], variant)
        return y

    def add_to(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Apply the layer without gradients and return the sum with ``other``; for a layer without GELU."""
        y: torch.Tensor = torch.ops.mkldnn._linear_pointwise.binary(x, other, self._packed, self.bias, "add")
        return y


class LinearRows(nn.Module):
    """One of several linear layers that are computed as a single product because they have the same input.

    Its output is a slice of that product. When it is called by itself, it computes the whole product.
    """

    def __init__(self, shared_layer: PackedLinear, start: int, stop: int) -> None:
        super().__init__()
        self.shared_layer, self._rows = shared_layer, slice(start, stop)

    @property
    def weight(self) -> torch.Tensor:
        """W [out, in] in the ordinary layout; a new tensor in each call."""
        return self.shared_layer.weight[self._rows]

    @property
    def bias(self) -> torch.Tensor | None:
        """b [out]."""
        return None if self.shared_layer.bias is None else self.shared_layer.bias[self._rows]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the layer: [..., in] → [..., out]."""
        part: torch.Tensor = self.shared_layer(x)[..., self._rows]
        return part


def join_layers(parent: nn.Module, names: Sequence[str]) -> None:
    """Replace linear layers of ``parent`` that have the same input by rows of one common product.

    Does nothing if oneDNN is missing.
    """
    layers = [getattr(parent, name) for name in names]
    if not is_available() or any(type(layer) is not nn.Linear or layer.bias is None for layer in layers):
        return
    weight, bias = (torch.cat([getattr(layer, parameter) for layer in layers]) for parameter in ("weight", "bias"))
    product = PackedLinear(weight, bias)
    stop = 0
    for name, layer in zip(names, layers, strict=True):
        start, stop = stop, stop + layer.out_features
        _page_out(layer.weight)
        setattr(parent, name, LinearRows(product, start, stop))


class _PackedFunction(torch.autograd.Function):
    """A packed layer through which gradients flow back to its input; oneDNN's operation has no gradient."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, layer: PackedLinear) -> torch.Tensor:
        """Apply the layer and save the inputs that the gradient needs."""
        context.layer = layer
        context.save_for_backward(x)
        return layer.compute(x)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return the gradient with respect to the input."""
        layer, weight = context.layer, context.layer.weight
        if layer.is_fused:
            activation_input = nn.functional.linear(context.saved_tensors[0], weight, layer.bias)
            gradient = torch.ops.aten.gelu_backward(gradient, activation_input)
        return gradient @ weight, None


def pack_layers(model: nn.Module) -> None:
    """Replace every linear layer inside ``model`` by a packed layer. Does nothing if oneDNN is missing."""
    if not is_available():
        return
    # Keep no references to the layers, so that each is freed as soon as its packed form has replaced it.
    for parent in [module for module in model.modules() if type(module) is not nn.Linear and not is_conv(module)]:
        fused_names = set()  # linear layers that include their activation, which is replaced by the identity
        for linear, activation in _GELU_PAIRS:
            pair = getattr(parent, linear, None), getattr(parent, activation, None)
            if type(pair[0]) is nn.Linear and _is_gelu(pair[1]):
                setattr(parent, activation, nn.Identity())
                fused_names.add(linear)
        for name, child in list(parent.named_children()):
            packed_layer = _pack_layer(child, gelu=name in fused_names)
            if packed_layer is not None:
                setattr(parent, name, packed_layer)


class TransposedLinear(nn.Module):
    """The linear layer of GPT-2, ``x W + b`` with W [in, out], on the meta device until weights are loaded."""

    def __init__(self, in_width: int, out_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_width, out_width, device="meta"))
        self.bias = nn.Parameter(torch.empty(out_width, device="meta"))


def is_conv(module: Any) -> bool:
    """Return whether a module is GPT-2's linear layer, which stores W as [in, out].

    It is recognised by the name of its class, because importing the class takes as long as importing all of
    transformers.
    """
    return type(module) is TransposedLinear or _get_class_name(module) == "transformers.pytorch_utils.Conv1D"


def _is_gelu(module: Any) -> bool:
    """Return whether a module is the exact GELU."""
    is_plain = type(module) is nn.GELU and module.approximate == "none"
    return is_plain or _get_class_name(module) == "transformers.activations.GELUActivation"


def _get_class_name(module: Any) -> str:
    """Return the full name of a module's class."""
    return f"{type(module).__module__}.{type(module).__name__}"


def _pack_layer(layer: Any, gelu: bool) -> PackedLinear | None:
    """Return the packed form of a linear layer; None for other modules."""
    if type(layer) is nn.Linear:
        return PackedLinear(layer.weight, layer.bias, gelu)
    if is_conv(layer):  # stored as [in, out]
        return PackedLinear(layer.weight.T, layer.bias)
    return None


def _page_out(weight: torch.Tensor) -> None:
    """Tell Linux that a tensor in a mapped file is no longer read, which frees 41 MB for the built-in model.

    Its values stay valid: reading them again reads the file. Memory without a file stays or is swapped out, and is
    freed with its layer.
    """
    if sys.platform == "linux":
        start = -(-weight.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE  # complete pages only
        length = (weight.data_ptr() + weight.nbytes - start) // mmap.PAGESIZE * mmap.PAGESIZE
        if length > 0:  # an older kernel or another library may refuse, which has no effect
            ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), _MADV_PAGEOUT)


@cache
def is_available() -> bool:
    """Return whether PyTorch has the oneDNN operations used here, with the results of its own linear layer."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    x, layer = torch.linspace(-1, 1, 64).view(4, 16), nn.Linear(16, 16)
    try:
        with torch.inference_mode():
            packed, y = PackedLinear(layer.weight, layer.bias), layer(x)
            return torch.allclose(packed(x), y, atol=1e-5) and torch.allclose(packed.add_to(x, x), y + x, atol=1e-5)
    except (AttributeError, NotImplementedError, RuntimeError):  # other CPUs or builds
        return False
