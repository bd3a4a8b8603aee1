"""Time the effects of all heads, per head, compared with one pass per head.

The passes are those of plain transformers with a hook that zeroes the head, and of our own encoder. Also measured:
patching heads from another text, norm-weighted attention compared with ``encode``, and scores in parts.
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

# Maximum time by model and n, relative to a pass of plain transformers
MAX_RATIOS = {"MiniLM": {32: 0.25, 64: 0.25}, "BERT-base shape": {32: 0.3, 64: 0.38}}
MAX_DIFFERENCE = 1e-6  # maximum deviation of an effect from one measured with the head alone
CHECKED_HEADS = (Head(0, 0), Head(2, 5), Head(5, 11))
# Maximum time of patching a head, exactly and to first order, relative to a pass of our encoder, at n = 32
MAX_PATCHING_RATIO = 0.3
MAX_NORMS_RATIO = 2.0  # maximum time, relative to encode
MAX_SHARES_RATIO = 5.0  # maximum time of a head's shares, relative to encode
MAX_PARTS_MS = {("MiniLM", 32): 20.0}  # maximum milliseconds for the parts of a score in the last layer


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/effects.json``. ``quick``: few repetitions."""
    rows: list[Row] = []
    for name, load_pair in PAIRS.items():
        encoder, model = load_pair()
        for n, max_ratio in MAX_RATIOS[name].items():
            rows += _compare_times(f"{name}, n = {n}", encoder, model, make_text(n), max_ratio, 2 if quick else 5)
            max_ms = MAX_PARTS_MS.get((name, n))
            rows += _time_parts(f"{name}, n = {n}", encoder, make_text(n), max_ms, 3 if quick else 10)
    machine = f"torch {torch.__version__}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}"
    write(results, "effects", "Effects of all heads", "one pass per head", rows, machine)


def _compare_times(name: str, encoder: Encoder, model: Any, text: str, max_ratio: float, repetitions: int) -> list[Row]:
    request, heads = Request(text=text), encoder.layers * encoder.heads
    functions = (
        lambda: measure_effects(encoder, request),
        _make_ablation_pass(model, text),
        lambda: encoder.states(text),
    )
    all_effects, plain_pass, own_pass = _time_in_turns(repetitions, *functions)
    per_head = Sample(tuple(value / heads for value in all_effects.values))
    effects = measure_effects(encoder, request).sentence
    deviation = max(
        abs(float(effects[head] - measure_changes(encoder, [[head]], request).sentence[0])) for head in CHECKED_HEADS
    )
    other_text = f"{text.rpartition(' ')[0]} that"
    patching, one_pass = _time_in_turns(
        repetitions, lambda: activation_patching(encoder, text, other_text), lambda: encoder.states(text)
    )
    patching_per_head = Sample(tuple(value / heads for value in patching.values))
    target = Target("share", MAX_PATCHING_RATIO) if len(encoder.tokenize(text)) == 32 else None
    norms, reading = _time_in_turns(repetitions, lambda: norm_weighted(encoder, text), lambda: encoder.encode(text))
    return [
        Row(f"{name}: per head, against plain transformers", per_head, "ms", plain_pass, Target("share", max_ratio)),
        Row(f"{name}: per head, against a pass of our encoder", per_head, "ms", own_pass),
        Row(
            f"{name}: largest difference from one by one",
            Sample((deviation * 1e6,)),
            "× 10⁻⁶",
            target=Target("below", MAX_DIFFERENCE * 1e6),
        ),
        Row(f"{name}: a head from another text, against a pass", patching_per_head, "ms", one_pass, target),
        Row(f"{name}: norm-weighted, against encode", norms, "ms", reading, Target("share", MAX_NORMS_RATIO)),
    ]


def _time_parts(name: str, encoder: Encoder, text: str, max_ms: float | None, repetitions: int) -> list[Row]:
    """Time the parts of one score in the last layer, and the shares of a head there."""
    head = Head(encoder.layers - 1, 0)
    parts, shares, reading = _time_in_turns(
        repetitions,
        lambda: encoder.score_parts(text, head, 10, 2),
        lambda: explain_scores(encoder, text, head=head),
        lambda: encoder.encode(text),
    )
    target = None if max_ms is None else Target("below", max_ms)
    return [
        Row(f"{name}: the parts of a score", parts, "ms", target=target),
        Row(f"{name}: a head’s shares, against encode", shares, "ms", reading, Target("share", MAX_SHARES_RATIO)),
    ]


def _make_ablation_pass(model: Any, text: str) -> Callable[[], object]:
    """Return a function that runs transformers once without one head; each call omits the next head."""
    model.set_attn_implementation("sdpa")  # the default
    encoding = make_tokenizer()(text, return_tensors="pt")
    size = model.config.hidden_size // model.config.num_attention_heads
    heads = cycle((layer, head) for layer in model.encoder.layer for head in range(model.config.num_attention_heads))

    def run() -> object:
        layer, head = next(heads)

        def zero_head(_: Any, inputs: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
            outputs = inputs[0].clone()
            outputs[..., head * size : (head + 1) * size] = 0
            return (outputs,)

        handle = layer.attention.output.dense.register_forward_pre_hook(zero_head)
        with torch.inference_mode():
            states = model(**encoding).last_hidden_state
        handle.remove()
        return states

    return run


def _time_in_turns(repetitions: int, *functions: Callable[[], object]) -> list[Sample]:
    """Return the milliseconds of each function.

    The functions take turns, and the first run of each is dropped.
    """
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repetitions + 1):
        for function, milliseconds in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            milliseconds.append(1000 * (time.perf_counter() - start))
    return [Sample(tuple(np.array(milliseconds[1:]).tolist())) for milliseconds in times]
