"""The time for the effects of all heads, per head, compared with one pass through the whole model; and norm-weighted
attention compared with ``encode``."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks.encode import bert_base, text
from benchmarks.results import Row, Sample, Target, write
from mha_viz.attention import Head
from mha_viz.models.encoder import Encoder, load
from mha_viz.models.norms import norm_weighted
from mha_viz.study.effects import Case, effects, lost

SHARES = {"MiniLM": {32: 0.25, 64: 0.25}, "BERT-base shape": {32: 0.3, 64: 0.38}}  # share of one pass, per head
LARGEST_DIFFERENCE = 1e-6  # largest deviation of an effect from that of the head alone
SOME = (Head(0, 0), Head(2, 5), Head(5, 11))
NORMS = 2.0  # × the time of encode, at most


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/effects.json``. ``quick``: few repetitions."""
    rows: list[Row] = []
    for name, encoder in (("MiniLM", load("minilm")), ("BERT-base shape", bert_base()[0])):
        for n, share in SHARES[name].items():
            rows += _compared(f"{name}, n = {n}", encoder, text(n), share, 2 if quick else 5)
    machine = f"torch {torch.__version__}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}"
    write(results, "effects", "Effects of all heads", "one pass", rows, machine)


def _compared(what: str, encoder: Encoder, typed: str, share: float, repetitions: int) -> list[Row]:
    case, heads = Case(typed), encoder.layers * encoder.heads
    every, one = _in_turns(repetitions, lambda: effects(encoder, case), lambda: encoder.states(typed))
    per_head = Sample(tuple(value / heads for value in every.values))
    whole = effects(encoder, case).sentence
    apart = max(abs(float(whole[head] - lost(encoder, [head], case).sentence[0])) for head in SOME)
    norms, reading = _in_turns(repetitions, lambda: norm_weighted(encoder, typed), lambda: encoder.encode(typed))
    return [
        Row(f"{what}: per head", per_head, "ms", one, Target("share", share)),
        Row(
            f"{what}: largest difference from one by one",
            Sample((apart * 1e6,)),
            "× 10⁻⁶",
            target=Target("below", LARGEST_DIFFERENCE * 1e6),
        ),
        Row(f"{what}: norm-weighted, against encode", norms, "ms", reading, Target("share", NORMS)),
    ]


def _in_turns(repetitions: int, *ways: Callable[[], object]) -> list[Sample]:
    """Milliseconds of each way; they take turns, and the first run of each is dropped."""
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(repetitions + 1):
        for way, milliseconds in zip(ways, times, strict=True):
            start = time.perf_counter()
            way()
            milliseconds.append(1000 * (time.perf_counter() - start))
    return [Sample(tuple(np.array(each[1:]).tolist())) for each in times]
