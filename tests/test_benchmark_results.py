"""What a benchmark stores of its measurements."""

from __future__ import annotations

from pathlib import Path

from benchmarks.results import MAX_VALUES, Row, Sample, Target, list_shortfalls, read_numbers, write


def test_percentiles_are_values_that_were_taken() -> None:
    sample = Sample(tuple(map(float, range(10, 0, -1))))
    percentiles = sample.percentiles()
    assert (percentiles[0], percentiles[10], percentiles[11], percentiles[100]) == (1, 1, 2, 10)
    assert percentiles[95] == sample.p95 == 10


def test_of_many_values_the_percentiles_are_kept_and_nothing_that_is_printed_changes() -> None:
    few, many = (Sample(tuple(map(float, range(count)))) for count in (MAX_VALUES, 10 * MAX_VALUES))
    row = Row("an action", many, "s", few, Target("below", 1000, p95=True)).to_json()
    assert row["other"]["values"] == list(few.values)
    assert "values" not in row["ours"]
    assert (row["ours"]["count"], len(row["ours"]["percentiles"])) == (10 * MAX_VALUES, 101)
    assert (row["ours"]["median"], row["ours"]["p95"]) == (999.5, 1899)
    assert (row["ours"]["said"], row["verdict"]) == (many.describe(), "falls short")


def written(folder: Path, ours: float, other: float) -> None:
    """One benchmark with two rows: one beside another tool, which may take twice as long, and one alone."""
    both = Row("an action", Sample((ours,)), "ms", Sample((other,)), Target("faster", 2))
    alone = Row("memory", Sample((ours,)), "MB", target=Target("below", 100))
    write(folder, "page", "The page", "the other", [both, alone], "an engine")


def test_one_table_says_what_falls_short_and_what_takes_longer_than_stored(tmp_path: Path) -> None:
    written(tmp_path / "stored", 10, 40)
    before = read_numbers(tmp_path / "stored", ["page", "none"])
    assert before == {("page", "an action"): 0.25, ("page", "memory"): 10}
    written(tmp_path / "equal", 20, 80)  # a machine half as fast
    assert list_shortfalls(tmp_path / "equal", ["page"], before)[0].startswith("Nothing falls short")
    written(tmp_path / "worse", 15, 40)  # it meets its target, but is slower than before
    assert list_shortfalls(tmp_path / "worse", ["page"], before)[4:] == [
        "| page | an action | ≥ 2× | 2.67× | 1.50× as long | met |"
    ]
    written(tmp_path / "short", 101, 101)
    assert [line.rsplit("|", 2)[1] for line in list_shortfalls(tmp_path / "short", ["page"], before)[4:]] == [
        *(" falls short ", " falls short ")
    ]
    assert list_shortfalls(tmp_path / "short", ["none"], before)[0].startswith("Nothing falls short")
