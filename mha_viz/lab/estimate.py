"""Estimate the duration of an experiment on this machine, from its arithmetic and a measurement of a few milliseconds.

The numbers in :func:`estimate_seconds` were fitted to runs on one core of a server on which :func:`time_probe` took
REFERENCE_SECONDS. On other machines, both grow in proportion.
"""

from __future__ import annotations

from time import thread_time

import numpy as np

from mha_viz.lab.lab import EXPERIMENTS
from mha_viz.lab.record import Settings, choose_recorded_count, choose_recorded_steps

START_SECONDS = 2.2  # seconds until the child process has imported its libraries
REFERENCE_SECONDS = 0.0022  # seconds of one probe on the reference machine


def estimate_seconds(settings: Settings) -> float:
    """Return the seconds that an experiment takes on the reference machine. ``settings`` must be valid."""
    experiment = EXPERIMENTS[settings.experiment]
    layers = experiment.layers(settings)
    recorded_count = len(choose_recorded_steps(settings.steps, choose_recorded_count(len(layers))))
    seconds = START_SECONDS
    for shape in layers.values():
        heads, width = shape.heads, shape.d_model
        step_seconds = 0.002 + 0.00025 * heads + 0.00003 * width + 0.000002 * heads * width
        seconds += settings.steps * step_seconds * (1.15 if experiment.is_penalised else 1)
        seconds += recorded_count * (0.002 + 0.0034 * heads)
    if experiment.removes_heads:
        seconds += 0.1 + 0.003 * settings.heads**2
    return seconds


def time_probe() -> float:
    """Return the CPU time in seconds of a small fixed computation that resembles training.

    The result is the smallest of five measurements, because the machine's current load says little about the next
    minute.
    """
    rng = np.random.default_rng(0)
    queries = rng.random((64, 12, 32), dtype=np.float32)
    keys = rng.random((64, 32, 12), dtype=np.float32)

    def time_once() -> float:
        start = thread_time()
        for _ in range(60):
            scores = np.exp(queries @ keys)
            scores /= scores.sum(axis=-1, keepdims=True)
        return thread_time() - start

    return min(time_once() for _ in range(5))


def measure_pace() -> float:
    """Return the time of a probe on this machine divided by that on the reference machine."""
    return time_probe() / REFERENCE_SECONDS
