"""The formulas for costs, compared with what PyTorch counts in real modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertAttention

from mha_viz.analysis.costs import PAPER_SHAPE, Costs, compute_costs, list_divisors
from mha_viz.app.inside.calculator import _format_bytes
from mha_viz.errors import SettingError
from mha_viz.models.reading.encoder import Encoder

SETTINGS = [(32, 4, 5), (48, 1, 7), (64, 16, 3), (*PAPER_SHAPE, 16)]


def counted(run: Callable[[], Any]) -> int:
    """The multiply-adds of matrix products; PyTorch counts a multiplication and an addition as two."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        run()
    return counter.get_total_flops() // 2


@pytest.mark.parametrize(("d_model", "heads", "n"), SETTINGS)
def test_parameters_and_multiply_adds_are_those_of_pytorch(d_model: int, heads: int, n: int) -> None:
    module = torch.nn.MultiheadAttention(d_model, heads, batch_first=True)  # in training mode: no fused kernel
    x = torch.randn(1, n, d_model)
    counted_costs = compute_costs(d_model, heads, n)
    assert sum(p.numel() for p in module.parameters()) == counted_costs.with_biases
    assert sum(p.numel() for p in module.parameters() if p.dim() == 2) == counted_costs.parameters
    assert (
        counted(lambda: module(x, x, x, need_weights=True, average_attn_weights=False)) == counted_costs.multiply_adds
    )


@pytest.mark.parametrize(("d_model", "heads", "n"), SETTINGS)
def test_they_are_those_of_bert(d_model: int, heads: int, n: int) -> None:
    shape = {"hidden_size": d_model, "num_attention_heads": heads}
    config = BertConfig(**shape, attn_implementation="eager")  # type: ignore[call-arg]
    module = BertAttention(config).eval()
    counted_costs = compute_costs(d_model, heads, n)
    norm = 2 * d_model  # the layer norm after attention is not counted
    assert sum(p.numel() for p in module.parameters()) - norm == counted_costs.with_biases
    assert sum(p.numel() for p in module.parameters() if p.dim() == 2) == counted_costs.parameters
    assert counted(lambda: module(torch.randn(1, n, d_model))) == counted_costs.multiply_adds


@pytest.mark.parametrize("family", ["bert", "gpt2", "albert"])
def test_memory_is_that_of_the_arrays(family: str, tiny: Callable[[str], Encoder]) -> None:
    trace = tiny(family).trace("The animal didn't cross the street.")
    counted_costs = compute_costs(trace.d_model, trace.heads, trace.n)
    assert counted_costs.d_k == trace.d_k
    assert counted_costs.parameter_bytes == sum(array.nbytes for array in trace.parameters)
    assert counted_costs.weight_bytes == trace.weights.nbytes
    vectors = (trace.q, trace.k, trace.v, trace.concatenation, trace.output)
    assert counted_costs.vector_bytes == sum(array.nbytes for array in vectors)


def test_the_paper_s_model_by_hand() -> None:
    counted_costs = compute_costs(*PAPER_SHAPE, 64)
    assert counted_costs.d_k == 64
    assert counted_costs.parameters == 1_048_576  # 4 · 512 · 512: the paper's matrices have no biases
    assert counted_costs.with_biases == 1_050_624  # + 4 · 512
    assert counted_costs.projections == 67_108_864  # 4 · 64 · 512 · 512
    assert counted_costs.products == 4_194_304  # 2 · 64 · 64 · 512
    assert counted_costs.weight_bytes == 131_072  # 4 · 8 · 64 · 64


def test_many_heads_cost_what_one_does_but_for_the_weights_memory() -> None:
    one, many = compute_costs(512, 1, 100), compute_costs(512, 8, 100)
    assert (one.parameters, one.multiply_adds) == (many.parameters, many.multiply_adds)
    assert many.weight_bytes == 8 * one.weight_bytes


@pytest.mark.parametrize(
    ("d_model", "heads", "n", "message"),
    [
        (510, 8, 64, "8 heads cannot share 510 dimensions equally: 6 would remain. Choose h = 3, 5, 6, 10,"),
        (0, 1, 1, "d_model is 0"),
        (512, 0, 1, "h is 0"),
        (512, -8, 1, "h is -8"),
        (512, 8, 0, "n is 0"),
        (10**9, 8, 1, "d_model is 1000000000"),
        (512, 8, 10**12, "n is 1000000000000"),
    ],
)
def test_bad_settings_say_what_would_do(d_model: int, heads: int, n: int, message: str) -> None:
    with pytest.raises(SettingError) as error:
        compute_costs(d_model, heads, n)
    assert message in str(error.value)


def test_every_proposed_number_of_heads_divides() -> None:
    for d_model in (1, 7, 96, 510, 768):
        assert all(isinstance(compute_costs(d_model, h, 1), Costs) for h in list_divisors(d_model))


def test_the_unit_of_bytes_is_that_of_the_rounded_number() -> None:
    assert [*map(_format_bytes, (999, 999_940, 999_960, 10**9))] == ["999 B", "999.9 kB", "1.0 MB", "1.0 GB"]
