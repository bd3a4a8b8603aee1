"""Quantities beside the weight: norm-weighted attention against loops, rollout against matrices worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from mha_viz.analysis.rollout import rollout
from mha_viz.attention import Attention
from mha_viz.errors import EmptyText, ShapeError
from mha_viz.models.encoder import Encoder
from mha_viz.models.families import FAMILIES
from mha_viz.models.norms import norm_weighted
from tests.tiny_models import HEADS, LAYERS

SENTENCE = "The animal didn't cross the street because it was too tired."
Folder = Callable[[str], Path]
Tiny = Callable[[str], Encoder]


@pytest.mark.parametrize("family", sorted(name for name, family in FAMILIES.items() if not family.opaque))
def test_norms_of_every_layer_are_those_of_its_trace(family: str, tiny: Tiny) -> None:
    encoder = tiny(family)
    norms = norm_weighted(encoder, SENTENCE)
    for layer in range(LAYERS):
        trace = encoder.trace(SENTENCE, layer=layer)
        for head in range(HEADS):
            assert np.abs(norms.weights[layer, head] - trace.norm_weighted(head)).max() <= 1e-5


def test_norms_of_heads_that_share_values_are_those_of_a_loop(tiny: Tiny, tiny_folder: Folder) -> None:
    model = AutoModel.from_pretrained(tiny_folder("llama"), attn_implementation="eager").eval()
    inputs = AutoTokenizer.from_pretrained(tiny_folder("llama"))(SENTENCE, return_tensors="pt")
    values: list[torch.Tensor] = []
    for layer in model.layers:
        layer.self_attn.v_proj.register_forward_hook(lambda _, __, output: values.append(output[0]))
    with torch.no_grad():
        weights = model(**inputs, output_attentions=True).attentions
    norms = norm_weighted(tiny("llama"), SENTENCE)
    width = model.config.head_dim
    shared = HEADS // model.config.num_key_value_heads
    assert shared > 1
    for layer in range(LAYERS):
        w_o = model.layers[layer].self_attn.o_proj.weight.detach()  # [d_model, head · d_head]
        for head in range(HEADS):
            own = values[layer][:, head // shared * width :][:, :width]
            lengths = (own @ w_o[:, head * width :][:, :width].T).norm(dim=1)
            expected = weights[layer][0, head] * lengths
            assert np.abs(norms.weights[layer, head] - expected.numpy()).max() <= 1e-5


def test_norms_of_a_pair_say_what_they_are(minilm: Encoder) -> None:
    norms = norm_weighted(minilm, "It is far.", "Is it?")
    assert (norms.quantity, norms.made) == ("norm", ("typed", "norm-weighted"))
    assert norms.queries == minilm.encode("It is far.", "Is it?").queries
    assert norms.key != minilm.encode("It is far.", "Is it?").key
    assert repr(norms).endswith("norm)")
    with pytest.raises(EmptyText):
        norm_weighted(minilm, " ")


def reading(weights: Any, **more: Any) -> Attention:
    return Attention.from_tensors(np.asarray(weights, np.float32), ["a", "b"], **more)


def test_rollout_of_two_layers_worked_out_by_hand() -> None:
    # Heads of layer 0 have the mean [[.5, .5], [0, 1]], so Â_0 = [[.75, .25], [0, 1]]; Â_1 = [[1, 0], [.5, .5]].
    first = [[[1, 0], [0, 1]], [[0, 1], [0, 1]]]
    second = [[[1, 0], [1, 0]], [[1, 0], [1, 0]]]
    followed = rollout(reading([first, second]))
    assert followed.weights.shape == (2, 1, 2, 2)
    assert followed["L0H0"] == pytest.approx(np.array([[0.75, 0.25], [0, 1]]))
    assert followed["L1H0"] == pytest.approx(np.array([[0.75, 0.25], [0.375, 0.625]]))
    assert (followed.quantity, followed.made[-1]) == ("rollout", "rollout")


def test_rollout_of_a_model_is_the_product_of_its_layers(minilm: Encoder) -> None:
    attention = minilm.encode(SENTENCE)
    n = len(attention.text)
    expected = np.eye(n)
    for layer in attention.weights.astype(float):
        expected = (layer.mean(0) / 2 + np.eye(n) / 2) @ expected
    followed = rollout(attention)
    assert np.abs(followed.weights[-1, 0] - expected).max() < 1e-6
    assert followed.weights.sum(axis=-1) == pytest.approx(1, abs=1e-5)
    assert followed.key != attention.key
    causal = rollout(reading([[[[1, 0], [0.5, 0.5]]]]))
    assert causal.weights[0, 0, 0, 1] == 0


def test_rollout_needs_whole_weights(minilm: Encoder) -> None:
    for other in (minilm.encode(SENTENCE).without_special(), norm_weighted(minilm, SENTENCE)):
        with pytest.raises(ShapeError, match="Rollout follows whole attention weights"):
            rollout(other)
    with pytest.raises(ShapeError):
        rollout(reading([[[[0.5, 0.5], [1, 0]]]], keys=["x", "y"]))
