"""Time saving heatmaps as SVG, PDF and PNG files with this package, and with Plotly and kaleido."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from html import escape
from importlib.metadata import version
from pathlib import Path

import kaleido
import plotly.graph_objects as go

from benchmarks.results import Row, Sample, Target, write
from benchmarks.tensors import make_random_attention
from mha_viz.attention import Attention, Head
from mha_viz.figures import files
from mha_viz.figures.layout.heatmap import heatmap
from tools import browser as browser_tool

TOKENS = 64
LAYERS, HEADS = 12, 12
TARGETS = {".svg": 30, ".pdf": 20, ".png": 2.5}
DPI = 100  # 701 pixels, as kaleido writes 700


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/figures.json``. ``quick``: 12 figures instead of 144."""
    attention = make_random_attention(LAYERS, HEADS, TOKENS)
    heads = [Head(layer, head) for layer in range(LAYERS) for head in range(HEADS)][: 12 if quick else None]
    os.environ.setdefault("BROWSER_PATH", os.environ.get("CHROMIUM") or str(browser_tool.find()))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for suffix, target in TARGETS.items():
            ours = _time_files(lambda head, path: _save_ours(attention, head, path), heads, Path(folder), suffix)
            theirs = _time_kaleido(attention, heads, Path(folder), suffix)
            name = f"{len(heads)} heatmaps of {TOKENS} × {TOKENS} as {suffix[1:].upper()}, each"
            rows.append(Row(name, ours, "ms", theirs, Target("faster", target)))
    write(results, "figures", "Figures as files", "kaleido, warm browser", rows, f"kaleido {version('kaleido')}")


def _time_files(save: Callable[[Head, Path], object], heads: list[Head], folder: Path, suffix: str) -> Sample:
    """Return the milliseconds from data in Python to the file on disk, one value per file.

    One file is written first and not counted.
    """
    save(heads[0], folder / f"warm{suffix}")
    times = []
    for head in heads:
        start = time.perf_counter()
        save(head, folder / f"{head}{suffix}")
        times.append((time.perf_counter() - start) * 1000)
    if not all((folder / f"{head}{suffix}").stat().st_size > 1000 for head in heads):
        raise RuntimeError(f"A {suffix} file is empty.")
    return Sample(tuple(times))


def _save_ours(attention: Attention, head: Head, path: Path) -> None:
    files.write_drawing(heatmap(attention, head), path, DPI)


def _time_kaleido(attention: Attention, heads: list[Head], folder: Path, suffix: str) -> Sample:
    """Time the same matrices as Plotly heatmaps, with one browser that stays open."""
    labels = [escape(token) for token in attention.tokens]
    ticks = list(range(len(labels)))

    def save(head: Head, path: Path) -> None:
        figure = go.Figure(go.Heatmap(z=attention[head], zmin=0, zmax=1, colorscale="Blues"))
        figure.update_xaxes(tickvals=ticks, ticktext=labels)
        figure.update_yaxes(tickvals=ticks, ticktext=labels, autorange="reversed")
        figure.update_layout(width=700, height=700)
        kaleido.write_fig_sync(figure, path=str(path), opts={"format": suffix[1:]})

    kaleido.start_sync_server(n=1, silence_warnings=True)
    try:
        return _time_files(save, heads, folder, suffix)
    finally:
        kaleido.stop_sync_server(silence_warnings=True)
