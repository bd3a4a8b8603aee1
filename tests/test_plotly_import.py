"""Charts and pandas in concurrent threads: none meets a library that another thread is still importing."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.app

ROOT = Path(__file__).resolve().parent.parent

# One thread imports pandas and is paused in the middle; another needs a chart meanwhile.
HALF_WAY = """
import importlib.abc, importlib.machinery, sys, threading, time
from importlib._bootstrap import _blocking_on
held, go_on, errors = threading.Event(), threading.Event(), []

class Hold(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "pandas.core.api":
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            execute = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (held.set(), go_on.wait(300), execute(module))
            return spec  # a finder itself holds the lock of all imports

sys.meta_path.insert(0, Hold())
import streamlit

def tables():
    import pandas

def chart():
    try:
        from mha_viz.figures.charts.chart_plotly import plotly
        from mha_viz.figures.charts.role_map import draw_shares
        from mha_viz.figures.drawing.theme import LIGHT
        streamlit.plotly_chart(plotly(draw_shares(["a"], [0.5], LIGHT)))
    except BaseException as error:
        errors.append(error)

first, second = threading.Thread(target=tables), threading.Thread(target=chart)
first.start()
assert held.wait(300)
assert "pandas" in sys.modules and not hasattr(sys.modules["pandas"], "Series"), "half way"
second.start()
while second.is_alive() and "pandas" not in repr(_blocking_on.get(second.ident)):
    time.sleep(0.01)  # until it waits for the import, or has met half a pandas
go_on.set()
first.join()
second.join()
sys.exit(repr(errors) if errors else None)
"""

TOGETHER = """
import sys, threading
errors, barrier = [], threading.Barrier(8)

def chart(number):
    try:
        barrier.wait()
        if number % 2:
            from mha_viz.app.service.studies import load_bundled
            profile = load_bundled("minilm").profiles[0]
            from mha_viz.figures.charts.role_map import draw_role_map as draw
        from mha_viz.figures.charts.chart_plotly import plotly
        from mha_viz.figures.charts.role_map import draw_role_map, draw_shares
        from mha_viz.figures.drawing.theme import LIGHT
        if number % 2:
            plotly(draw_role_map(profile.findings(), profile.heads(), None, LIGHT))
        else:
            plotly(draw_shares(["a"], [0.5], LIGHT))
    except BaseException as error:
        errors.append(error)

threads = [threading.Thread(target=chart, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.exit(repr(errors) if errors else None)
"""


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_chart_meets_a_whole_pandas() -> None:
    run(HALF_WAY)


@pytest.mark.slow
def test_charts_in_eight_threads_that_begin_together() -> None:
    run(TOGETHER)


def test_every_chart_on_a_page_can_grow_for_a_class() -> None:
    for path in sorted((ROOT / "mha_viz" / "app").rglob("*.py")):
        source = path.read_text("utf-8")
        assert source.count("plotly_chart(") <= source.count("legible("), path


def test_plotly_is_imported_in_one_place() -> None:
    importing = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "mha_viz").rglob("*.py"))
        if "plotly" in (source := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(source))
        for name in _imported(node)
        if name.partition(".")[0] == "plotly"
    ]
    assert set(importing) == {"mha_viz/figures/charts/chart_plotly.py"}


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []
