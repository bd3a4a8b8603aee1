"""Time ``encode_many`` compared with ``encode`` text by text, with the same sentences and MiniLM."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from benchmarks.results import Row, Sample, Target, write
from benchmarks.study import load_treebank
from mha_viz.models.reading.loading import load


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/many.json``. ``quick``: fewer sentences."""
    encoder = load("minilm")
    corpus = load_treebank(200 if quick else 1000)
    texts = [" ".join(sentence.forms) for sentence in corpus.sentences]
    repetitions = 2 if quick else 5
    ours, theirs = _time_in_turns(repetitions, lambda: encoder.encode_many(texts), lambda: map(encoder.encode, texts))
    name = f"{corpus.name}, {len(texts):,} sentences: encode_many, against encode one by one"
    machine = f"torch {torch.__version__}, {torch.get_num_threads()} threads"
    write(results, "many", "Many texts", "encode", [Row(name, ours, "s", theirs, Target("faster", 4))], machine)


def _time_in_turns(repetitions: int, *functions: Callable[[], Iterable[Any]]) -> list[Sample]:
    """Return the seconds of each function. Readings are dropped one by one.

    The functions take turns, so that a busy moment of the machine affects all.
    """
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repetitions):
        for function, seconds in zip(functions, times, strict=True):
            start = time.perf_counter()
            for _reading in function():
                pass
            seconds.append(time.perf_counter() - start)
    return [Sample(tuple(seconds)) for seconds in times]
