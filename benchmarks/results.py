"""The results of benchmarks: samples, targets, rows, and the tables that show them."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

MET, MISSED = "met", "falls short"
MAX_SLOWDOWN = 1.15  # report ratios that are more than this many times the stored ones
MAX_VALUES = 200  # of larger samples, only percentiles are stored
NUMBER_LIST = re.compile(r"\[\s+([-+.\deE,\s]*?)\s+\]")  # a list of numbers over several lines


@dataclass(frozen=True)
class Sample:
    """Repeated measurements of one quantity, in the order in which they were taken."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median, which one slow run does not change."""
        return statistics.median(self.values)

    @property
    def p95(self) -> float:
        """The smallest value that at least 95 % of the values do not exceed."""
        return self.percentiles()[95]

    def percentiles(self) -> list[float]:
        """Return percentiles 0 to 100: each the smallest value that at least that share of the values do not exceed."""
        values = sorted(self.values)
        return [values[max(0, -(-percent * len(values) // 100) - 1)] for percent in range(101)]

    def describe(self) -> str:
        """Return the median, with the range if there is one."""
        if len(self.values) == 1:
            return f"{_format_number(self.median)} (one run)"
        return f"{_format_number(self.median)} ({_format_number(min(self.values))}–{_format_number(max(self.values))})"


@dataclass(frozen=True)
class Target:
    """A target. ``faster``: other / ours is at least this. ``share``: ours / other is at most this.
    ``below``: ours is less. ``least``: ours is at least this.

    Ours and other are medians; ``below`` uses the 95th percentile if ``p95`` is set.
    """

    kind: Literal["faster", "share", "below", "least"]
    value: float
    p95: bool = False

    def compute_value(self, ours: Sample, other: Sample | None) -> float:
        """Return the number to compare with ``value``. Raises ValueError if ``other`` is needed and missing."""
        if self.kind == "below":
            return ours.p95 if self.p95 else ours.median
        if self.kind == "least":
            return ours.median
        if other is None:
            raise ValueError(f"The target “{self.describe('')}” needs a second sample to compare with.")
        return other.median / ours.median if self.kind == "faster" else ours.median / other.median

    def is_met(self, measured: float) -> bool:
        """Return whether the number meets the target."""
        if self.kind in ("faster", "least"):
            return measured >= self.value
        return measured <= self.value if self.kind == "share" else measured < self.value

    def describe(self, unit: str) -> str:
        """Describe the target."""
        if self.kind == "below":
            return f"{'p95 ' if self.p95 else ''}< {self.value:g} {unit}"
        if self.kind == "least":
            return f"≥ {self.value:g} {unit}"
        return f"≥ {self.value:g}×" if self.kind == "faster" else f"≤ {self.value:g}×"


@dataclass(frozen=True)
class Row:
    """One line of a table. ``details`` explain the number: phases, bytes, counts."""

    what: str
    ours: Sample
    unit: str
    other: Sample | None = None
    target: Target | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the fields for JSON.

        They contain the values, or percentiles of many values; the median, the target, and whether it was met.
        """
        fields: dict[str, Any] = {
            "what": self.what,
            "unit": self.unit,
            "ours": _format_sample(self.ours),
            **self.details,
        }
        if self.other is not None:
            fields["other"] = _format_sample(self.other)
        if self.target is not None:
            measured = self.target.compute_value(self.ours, self.other)
            fields |= {"target": self.target.describe(self.unit), "measured": _round_number(measured)}
            fields["verdict"] = MET if self.target.is_met(measured) else MISSED
        return fields


def write(folder: Path, name: str, title: str, other: str, rows: Sequence[Row], engine: str) -> None:
    """Print one benchmark's table and store it as ``folder/name.json``.

    ``other`` names the tool that ours is compared with, ``engine`` the software that runs both (a browser, torch).
    """
    benchmark = {
        "title": title,
        "other": other,
        "taken": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": describe_machine() | {"engine": engine},
        "rows": [row.to_json() for row in rows],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(format_json(benchmark), "utf-8")
    print("\n".join(["", *format_table(benchmark)]), flush=True)


def format_json(benchmark: dict[str, Any]) -> str:
    """Return the text of a file: one line per field, including lists of numbers."""
    text = json.dumps(benchmark, indent=1, ensure_ascii=False)
    return NUMBER_LIST.sub(lambda match: f"[{' '.join(match[1].split())}]", text) + "\n"


def format_table(benchmark: dict[str, Any]) -> list[str]:
    """Return the lines of one benchmark's Markdown table."""
    lines = [
        f"### {benchmark['title']}",
        "",
        f"| what | ours | {benchmark['other']} | target | measured | |",
        "|---|---|---|---|---|---|",
    ]
    for row in benchmark["rows"]:
        cells = [row["what"]]
        cells += [f"{row[side]['said']} {row['unit']}" if side in row else "" for side in ("ours", "other")]
        cells += [row.get("target", ""), _format_measured(row), row.get("verdict", "")]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def read_numbers(folder: Path, names: Iterable[str]) -> dict[tuple[str, str], float]:
    """Return the stored numbers of these benchmarks in a folder, by benchmark and row.

    The number is the ratio for a row compared with another tool, because a ratio does not depend on the machine;
    otherwise it is the median.
    """
    return {(name, row["what"]): _compute_ratio(row) for name, row in _read_rows(folder, names)}


def list_shortfalls(folder: Path, names: Iterable[str], stored_numbers: Mapping[tuple[str, str], float]) -> list[str]:
    """Return the lines of one table: the rows in a folder that miss their target or are slower than stored."""
    lines = []
    for name, row in _read_rows(folder, names):
        stored_ratio = stored_numbers.get((name, row["what"]))
        change = _compute_ratio(row) / stored_ratio if stored_ratio else None
        is_slower = "other" in row and change is not None and change > MAX_SLOWDOWN
        if row.get("verdict") == MISSED or is_slower:
            cells = [name, row["what"], row.get("target", ""), _format_measured(row)]
            cells += ["" if change is None else f"{_format_number(change)}× as long", row.get("verdict", "")]
            lines.append(f"| {' | '.join(cells)} |")
    if not lines:
        return ["Nothing falls short of its target, and nothing is slower than stored."]
    heading = ["| benchmark | what | target | measured | beside the stored run | |", "|---|---|---|---|---|---|"]
    return ["### What falls short, or takes longer than stored", "", *heading, *lines]


def _read_rows(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in names:
        file = folder / f"{name}.json"
        benchmark = json.loads(file.read_text("utf-8")) if file.exists() else {}
        for row in benchmark.get("rows", ()) if isinstance(benchmark, dict) else ():
            yield name, row


def _compute_ratio(row: dict[str, Any]) -> float:
    ours, other = (row[side]["median"] if side in row else 1 for side in ("ours", "other"))
    return float(ours / (other or 1))


def format_summary(folder: Path) -> str:
    """Return a Markdown page of all JSON files in ``folder`` that contain rows; other files are only listed."""
    lines = [
        "# Results",
        "",
        "Medians (smallest–largest) of repeated runs; `python -m benchmarks --full` writes this page.",
        "",
    ]
    files = sorted(folder.glob("*.json"))
    benchmarks = {file.name: json.loads(file.read_text("utf-8")) for file in files}
    tables = {
        name: benchmark
        for name, benchmark in benchmarks.items()
        if isinstance(benchmark, dict) and {"title", "other", "rows"} <= benchmark.keys()
    }
    lines += _describe_machines(tables.values())
    for name, benchmark in tables.items():
        lines += [
            *format_table(benchmark),
            "",
            f"{benchmark['taken']}, {_describe_load(benchmark['machine'])}values in [{name}]({name}).",
            "",
        ]
    lines += [f"Also: [{name}]({name})." for name in benchmarks if name not in tables]
    return "\n".join(lines).strip() + "\n"


def describe_machine() -> dict[str, Any]:
    """Describe the machine without its name. ``load`` is the load at the end of the benchmark."""
    cpu_name = platform.processor() or platform.machine()
    cpu_file = Path("/proc/cpuinfo")
    if cpu_file.exists():
        names = [
            line.partition(":")[2].strip()
            for line in cpu_file.read_text().splitlines()
            if line.startswith("model name")
        ]
        cpu_name = names[0] if names else cpu_name
    load = [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None
    version = ".".join(str(part) for part in sys.version_info[:3])
    return {
        "processor": cpu_name,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": version,
        "load": load,
    }


def _describe_machines(benchmarks: Iterable[dict[str, Any]]) -> list[str]:
    machines = {
        f"{m['processor']}, {m['cores']} cores, {m['system']}, Python {m['python']}, {m['engine']}"
        for m in (benchmark["machine"] for benchmark in benchmarks)
    }
    return [f"Machine: {m}." for m in sorted(machines)] + [""] if machines else []


def _describe_load(machine: dict[str, Any]) -> str:
    """Describe how many processes wanted a core in the last minute of the run, on average.

    If this exceeds the number of cores, distrust the times.
    """
    return f"load {machine['load'][0]} at the end, " if machine["load"] else ""


def _format_measured(row: dict[str, Any]) -> str:
    if "measured" not in row:  # without a target, show the ratio to the other sample, if any
        other = row["other"]["median"] if "other" in row else 0
        return f"{_format_number(row['ours']['median'] / other)}×" if other else ""
    return f"{_format_number(row['measured'])}{'×' if '×' in row['target'] else ' ' + row['unit']}"


def _format_sample(sample: Sample) -> dict[str, Any]:
    fields = {"median": _round_number(sample.median), "p95": _round_number(sample.p95), "said": sample.describe()}
    if len(sample.values) <= MAX_VALUES:
        return fields | {"values": [*map(_round_number, sample.values)]}
    return fields | {"count": len(sample.values), "percentiles": [*map(_round_number, sample.percentiles())]}


def _format_number(value: float) -> str:
    if value >= 1000 or value == 0:
        return f"{value:,.0f}"
    if value < 0.1:
        return f"{value:.2g}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _round_number(value: float) -> float:
    return float(f"{value:.6g}")
