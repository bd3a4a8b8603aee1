"""What a benchmark keeps of its measurements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.results import MOST_VALUES, Row, Sample, Target, as_json, summary

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"


def test_percentiles_are_values_that_were_taken() -> None:
    sample = Sample(tuple(map(float, range(10, 0, -1))))
    percentiles = sample.percentiles()
    assert (percentiles[0], percentiles[10], percentiles[11], percentiles[100]) == (1, 1, 2, 10)
    assert percentiles[95] == sample.p95 == 10


def test_of_many_values_the_percentiles_are_kept_and_nothing_that_is_printed_changes() -> None:
    few, many = (Sample(tuple(map(float, range(count)))) for count in (MOST_VALUES, 10 * MOST_VALUES))
    row = Row("an action", many, "s", few, Target("below", 1000, p95=True)).written()
    assert row["other"]["values"] == list(few.values)
    assert "values" not in row["ours"]
    assert (row["ours"]["count"], len(row["ours"]["percentiles"])) == (10 * MOST_VALUES, 101)
    assert (row["ours"]["median"], row["ours"]["p95"]) == (999.5, 1899)
    assert (row["ours"]["said"], row["verdict"]) == (many.in_words(), "falls short")


@pytest.mark.parametrize("name", sorted(file.name for file in RESULTS.glob("*.json")))
def test_every_file_of_results_is_as_this_version_writes_it(name: str) -> None:
    text = (RESULTS / name).read_text("utf-8")
    assert as_json(json.loads(text)) == text
    assert len(text) < 80_000


def test_the_page_of_results_is_that_of_the_files() -> None:
    assert (RESULTS / "README.md").read_text("utf-8") == summary(RESULTS)
