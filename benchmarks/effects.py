"""The time for the effects of all heads, per head, compared with one pass per head.

The passes are those of plain transformers with a hook that zeroes the head, and of our own encoder. Also measured:
heads whose output is from another text; norm-weighted attention compared with ``encode``; and scores in parts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.encode import PAIRS, make_text, make_tokenizer
from benchmarks.results import Row, Sample, Target, write
from mha_viz.attention import Head
from mha_viz.models.decomposing.contributions import norm_weighted
from mha_viz.models.decomposing.why import explain_scores
from mha_viz.models.intervening.patching import activation_patching
from mha_viz.models.reading.encoder import Encoder
from mha_viz.request import Request
from mha_viz.study.effects import measure_changes, measure_effects

SHARES = {
    "MiniLM": {32: 0.25, 64: 0.25},
    "BERT-base shape": {32: 0.3, 64: 0.38},
}  # of plain transformers
LARGEST_DIFFERENCE = 1e-6  # largest deviation of an effect from that of the head alone
SOME = (Head(0, 0), Head(2, 5), Head(5, 11))
# × the time of a pass of our encoder, at most, for a head from another text, exact and to first order, at n = 32
PATCHED = 0.3
NORMS = 2.0  # × the time of encode, at most
SHARES_OF_HEAD = 5.0  # likewise, for the shares of a head
PARTS = {("MiniLM", 32): 20.0}  # milliseconds for the parts of a score in the last layer, at most


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/effects.json``. ``quick``: few repetitions."""
    rows: list[Row] = []
    for name, pair in PAIRS.items():
        encoder, model = pair()
        for n, share in SHARES[name].items():
            rows += _compare_times(f"{name}, n = {n}", encoder, model, make_text(n), share, 2 if quick else 5)
            rows += _time_parts(f"{name}, n = {n}", encoder, make_text(n), PARTS.get((name, n)), 3 if quick else 10)
    machine = f"torch {torch.__version__}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}"
    write(results, "effects", "Effects of all heads", "one pass per head", rows, machine)


def _compare_times(what: str, encoder: Encoder, model: Any, typed: str, share: float, repetitions: int) -> list[Row]:
    request, heads = Request(text=typed), encoder.layers * encoder.heads
    ways = lambda: measure_effects(encoder, request), _make_ablation_pass(model, typed), lambda: encoder.states(typed)
    every, plain, one = _time_in_turns(repetitions, *ways)
    per_head = Sample(tuple(value / heads for value in every.values))
    whole = measure_effects(encoder, request).sentence
    apart = max(abs(float(whole[head] - measure_changes(encoder, [[head]], request).sentence[0])) for head in SOME)
    other = f"{typed.rpartition(' ')[0]} that"
    patched, alone = _time_in_turns(
        repetitions, lambda: activation_patching(encoder, typed, other), lambda: encoder.states(typed)
    )
    each = Sample(tuple(value / heads for value in patched.values))
    goal = Target("share", PATCHED) if len(encoder.tokenize(typed)) == 32 else None
    norms, reading = _time_in_turns(repetitions, lambda: norm_weighted(encoder, typed), lambda: encoder.encode(typed))
    return [
        Row(f"{what}: per head, against plain transformers", per_head, "ms", plain, Target("share", share)),
        Row(f"{what}: per head, against a pass of our encoder", per_head, "ms", one),
        Row(
            f"{what}: largest difference from one by one",
            Sample((apart * 1e6,)),
            "× 10⁻⁶",
            target=Target("below", LARGEST_DIFFERENCE * 1e6),
        ),
        Row(f"{what}: a head from another text, against a pass", each, "ms", alone, goal),
        Row(f"{what}: norm-weighted, against encode", norms, "ms", reading, Target("share", NORMS)),
    ]


def _time_parts(what: str, encoder: Encoder, typed: str, most: float | None, repetitions: int) -> list[Row]:
    """Time the parts of one score in the last layer, and what a head there uses to find its keys."""
    head = Head(encoder.layers - 1, 0)
    parts, shares, reading = _time_in_turns(
        repetitions,
        lambda: encoder.score_parts(typed, head, 10, 2),
        lambda: explain_scores(encoder, typed, head=head),
        lambda: encoder.encode(typed),
    )
    below = None if most is None else Target("below", most)
    return [
        Row(f"{what}: the parts of a score", parts, "ms", target=below),
        Row(f"{what}: a head’s shares, against encode", shares, "ms", reading, Target("share", SHARES_OF_HEAD)),
    ]


def _make_ablation_pass(model: Any, typed: str) -> Callable[[], object]:
    """Return a function that runs transformers once without one head, each time another."""
    model.set_attn_implementation("sdpa")  # the default
    given = make_tokenizer()(typed, return_tensors="pt")
    size = model.config.hidden_size // model.config.num_attention_heads
    heads = cycle((layer, head) for layer in model.encoder.layer for head in range(model.config.num_attention_heads))

    def run() -> object:
        layer, head = next(heads)

        def without_head(_: Any, inputs: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
            rest = inputs[0].clone()
            rest[..., head * size : (head + 1) * size] = 0
            return (rest,)

        handle = layer.attention.output.dense.register_forward_pre_hook(without_head)
        with torch.inference_mode():
            states = model(**given).last_hidden_state
        handle.remove()
        return states

    return run


def _time_in_turns(repetitions: int, *ways: Callable[[], object]) -> list[Sample]:
    """Return the milliseconds of each function.

    The functions take turns, and the first run of each is dropped.
    """
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(repetitions + 1):
        for way, milliseconds in zip(ways, times, strict=True):
            start = time.perf_counter()
            way()
            milliseconds.append(1000 * (time.perf_counter() - start))
    return [Sample(tuple(np.array(each[1:]).tolist())) for each in times]
