"""Several sentences at once: the mean of each measure over lines that are read one by one."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from mha_viz.analysis.metrics import average_measures, measure_all
from mha_viz.app.widgets import download_panel
from mha_viz.figures.layout import Size
from mha_viz.models.reading.encoder import Encoder
from tests.page_session import PageSession

LINES = ("The cat sat on the mat.", "It rains.", "Dogs bark loudly at night, don't they?")


def opened(text: str, **url: str) -> PageSession:
    here = PageSession({"text": text, **url})
    here.at.session_state["averages"] = True
    here.at.run()
    here.check()
    return here


def test_each_reading_counts_once_and_none_where_it_has_no_number() -> None:
    first = {"a": np.array([[1.0, np.nan]]), "b": np.array([[np.nan, 0.0]])}
    second = {"a": np.array([[3.0, 5.0]]), "b": np.array([[np.nan, 1.0]])}
    means = average_measures([first, second])
    assert means["a"].tolist() == [[2.0, 5.0]]
    assert np.isnan(means["b"][0, 0])
    assert means["b"][0, 1] == 0.5
    assert average_measures([]) == {}


def test_the_page_gives_the_means_over_its_lines(minilm: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    charts: list[download_panel.PageChart] = []
    monkeypatch.setattr(download_panel, "show_reading_downloads", lambda *_: charts.extend(_[3]))
    opened("\n".join(LINES))
    (chart,) = charts
    table = pd.read_csv(io.BytesIO(chart.make_offer().make(Size()).to_bytes(".csv")))
    expected = np.mean([measure_all(minilm.encode(line))["entropy"] for line in LINES], axis=0)
    assert table["entropy"].to_numpy() == pytest.approx(expected.ravel(), abs=1e-5)
    assert table["head"].tolist()[:2] == ["L0H0", "L0H1"]
    assert "Means over 3 sentences" in chart.description
    assert chart.description.endswith("; sentence-transformers/all-MiniLM-L6-v2 (weights SHA-256 53aa5117…).")


def test_a_text_of_one_line_has_no_averages() -> None:
    here = PageSession({"text": "It rains."})
    assert not [box for box in here.at.expander if box.label.startswith("Averages")]


def test_too_many_lines_are_said() -> None:
    here = opened("\n".join(f"Word {n}." for n in range(60)))
    assert "The first 50 of 60 lines are read." in here.said


def test_a_line_that_cannot_be_read_leaves_the_others() -> None:
    here = opened("It rains.\n\u200b\nDogs bark.")
    assert "Means over" in here.said


def test_the_averages_have_the_prefix_of_the_page_and_all_heads_on(
    minilm: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    charts: list[download_panel.PageChart] = []
    monkeypatch.setattr(download_panel, "show_reading_downloads", lambda *_: charts.extend(_[3]))
    here = opened("\n".join(LINES), prefix="query: ", off="L0H1")
    assert "The averages are those of all heads on." in here.said
    table = pd.read_csv(io.BytesIO(charts[-1].make_offer().make(Size()).to_bytes(".csv")))
    expected = np.mean([measure_all(minilm.encode(line, prefix="query: "))["entropy"] for line in LINES], axis=0)
    assert table["entropy"].to_numpy() == pytest.approx(expected.ravel(), abs=1e-5)


def test_lines_of_conllu_with_an_error_are_no_sentences() -> None:
    here = PageSession({"text": "\n".join(f"{n}\tDogs\t_\tNOUN\t_\t_\t9\tdep\t_\t_" for n in (1, 2))})
    assert "The pasted text, line" in here.said
    assert not [box for box in here.at.expander if box.label.startswith("Averages")]
