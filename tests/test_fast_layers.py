"""The layers of BERT and similar models without transformers' loop: the products of a pass, and their sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel

from mha_viz.attention import Weights
from mha_viz.models.families import FAMILIES
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.linear import PackedLinear
from mha_viz.models.reading.probe import find_attention_modules
from tests import tiny_models
from tests.oracles import SENTENCE

pytestmark = pytest.mark.usefixtures("packing")

Tiny = Callable[[str], Encoder]
STRAIGHT = sorted(name for name, family in FAMILIES.items() if family.has_bert_layers)
straight = pytest.mark.parametrize("family", STRAIGHT)
LAYERS, WIDTH = tiny_models.LAYERS, tiny_models.WIDTH


class Looking(Tap):
    """Reads the outputs of heads."""

    def layer(
        self, index: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, output: torch.Tensor
    ) -> torch.Tensor:
        return output


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The widths of the results of all products with weights, in order."""
    widths: list[int] = []

    def counted(product: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def counting(*given: torch.Tensor) -> torch.Tensor:
            y = product(*given)
            widths.append(y.shape[-1])
            return y

        return counting

    for name in ("compute", "add_to"):
        monkeypatch.setattr(PackedLinear, name, counted(getattr(PackedLinear, name)))
    return widths


def test_the_families_that_run_straight_are_these() -> None:
    assert STRAIGHT == ["bert", "camembert", "electra", "roberta", "xlm-roberta"]


@straight
def test_a_pass_makes_one_product_for_q_k_and_v_and_none_after_the_last_weights(
    family: str, tiny: Tiny, products: list[int]
) -> None:
    encoder = tiny(family)
    embedded = [WIDTH] * hasattr(encoder._model, "embeddings_project")
    whole = [3 * WIDTH, WIDTH, 64, WIDTH]
    products.clear()
    encoder.encode(SENTENCE)
    assert products == [*embedded, *whole * (LAYERS - 1), 2 * WIDTH]
    products.clear()
    encoder.through(SENTENCE, tap=Looking)  # a hook on the outputs of the heads gets them
    assert products == [*embedded, *whole * (LAYERS - 1), 2 * WIDTH, WIDTH]
    products.clear()
    encoder.states(SENTENCE)
    assert products == [*embedded, *whole * (LAYERS - 1), 2 * WIDTH, WIDTH, WIDTH, 64, WIDTH]


@straight
def test_every_weight_is_held_once(family: str, tiny: Tiny, tiny_folder: Callable[[str], Path]) -> None:
    plain = AutoModel.from_pretrained(tiny_folder(family), add_pooling_layer=False) if family != "electra" else None
    plain = plain or AutoModel.from_pretrained(tiny_folder(family))
    theirs = sum(one.weight.numel() for one in plain.modules() if isinstance(one, torch.nn.Linear))
    packed = [one for one in tiny(family)._model.modules() if isinstance(one, PackedLinear)]
    assert sum(one.weight.numel() for one in packed) == theirs
    left = {name for name, _ in tiny(family)._model.named_parameters() if "query" in name or "value" in name}
    assert not left


@straight
def test_each_layer_that_is_joined_is_itself(family: str, tiny: Tiny, tiny_folder: Callable[[str], Path]) -> None:
    plain, x = AutoModel.from_pretrained(tiny_folder(family)).eval(), torch.randn(2, 5, WIDTH)
    for layer in range(LAYERS):
        for mine, theirs in zip(
            find_attention_modules(tiny(family)._model, layer).inputs,
            find_attention_modules(plain, layer).inputs,
            strict=True,
        ):
            assert torch.equal(mine.weight, theirs.weight)
            assert torch.equal(mine.bias, theirs.bias)
            with torch.no_grad():
                assert torch.allclose(mine(x), theirs(x), atol=1e-6)


@straight
def test_whoever_listens_to_one_of_them_changes_no_number(family: str, tiny: Tiny) -> None:
    encoder = tiny(family)
    expected, states = encoder.encode(SENTENCE).weights, encoder.states(SENTENCE)
    heard: list[tuple[int, ...]] = []
    hooks = [
        one.register_forward_hook(lambda *call: heard.append(tuple(call[2].shape)))
        for layer in range(LAYERS)
        for one in find_attention_modules(encoder._model, layer).inputs
    ]
    try:
        listened: Weights = encoder.states(SENTENCE)
        assert len(heard) == 3 * LAYERS
        assert {shape[-1] for shape in heard} == {WIDTH}
        np.testing.assert_array_equal(encoder.encode(SENTENCE).weights, expected)
        np.testing.assert_array_equal(listened, states)
    finally:
        for hook in hooks:
            hook.remove()
