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

MET, SHORT = "met", "falls short"
WORSE = 1.15  # factor of a ratio over the stored one; anything worse is reported
MOST_VALUES = 200  # values of a sample that are stored one by one
NUMBERS = re.compile(r"\[\s+([-+.\deE,\s]*?)\s+\]")  # a list of numbers over several lines


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
        """From 0 to 100, each the smallest value that at least that percentage of the values do not exceed."""
        ordered = sorted(self.values)
        return [ordered[max(0, -(-percent * len(ordered) // 100) - 1)] for percent in range(101)]

    def in_words(self) -> str:
        """Return the median, with the range if there is one."""
        if len(self.values) == 1:
            return f"{_number(self.median)} (one run)"
        return f"{_number(self.median)} ({_number(min(self.values))}–{_number(max(self.values))})"


@dataclass(frozen=True)
class Target:
    """The target. ``faster``: other / ours, at least. ``share``: ours / other, at most. ``below``: ours, below this.
    ``least``: ours, at least.

    Ours and other are medians; ``below`` uses the 95th percentile if ``p95`` is set.
    """

    kind: Literal["faster", "share", "below", "least"]
    value: float
    p95: bool = False

    def reached(self, ours: Sample, other: Sample | None) -> float:
        """Return the number to compare with ``value``. Raises ValueError if there is nothing to compare with."""
        if self.kind == "below":
            return ours.p95 if self.p95 else ours.median
        if self.kind == "least":
            return ours.median
        if other is None:
            raise ValueError(f"The target “{self.in_words('')}” needs a second sample to compare with.")
        return other.median / ours.median if self.kind == "faster" else ours.median / other.median

    def met(self, reached: float) -> bool:
        """Return whether the number meets the target."""
        if self.kind in ("faster", "least"):
            return reached >= self.value
        return reached <= self.value if self.kind == "share" else reached < self.value

    def in_words(self, unit: str) -> str:
        """Describe the target."""
        if self.kind == "below":
            return f"{'p95 ' if self.p95 else ''}< {self.value:g} {unit}"
        if self.kind == "least":
            return f"≥ {self.value:g} {unit}"
        return f"≥ {self.value:g}×" if self.kind == "faster" else f"≤ {self.value:g}×"


@dataclass(frozen=True)
class Row:
    """One line of a table. ``beside`` contains what explains the number: phases, bytes, counts."""

    what: str
    ours: Sample
    unit: str
    other: Sample | None = None
    target: Target | None = None
    beside: dict[str, Any] = field(default_factory=dict)

    def written(self) -> dict[str, Any]:
        """Return the fields for JSON.

        These are the values, or their percentiles if there are many; the median, the target, and whether it was met.
        """
        fields: dict[str, Any] = {
            "what": self.what,
            "unit": self.unit,
            "ours": _format_sample(self.ours),
            **self.beside,
        }
        if self.other is not None:
            fields["other"] = _format_sample(self.other)
        if self.target is not None:
            reached = self.target.reached(self.ours, self.other)
            fields |= {"target": self.target.in_words(self.unit), "measured": _round_number(reached)}
            fields["verdict"] = MET if self.target.met(reached) else SHORT
        return fields


def write(folder: Path, name: str, title: str, other: str, rows: Sequence[Row], engine: str) -> None:
    """Print one benchmark's table and store it as ``folder/name.json``.

    ``other`` names what ours is compared with, ``engine`` what both ran in (a browser, torch).
    """
    benchmark = {
        "title": title,
        "other": other,
        "taken": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": describe_machine() | {"engine": engine},
        "rows": [row.written() for row in rows],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(format_json(benchmark), "utf-8")
    print("\n".join(["", *format_table(benchmark)]), flush=True)


def format_json(benchmark: dict[str, Any]) -> str:
    """Return the text of a file: one line per field, including lists of numbers."""
    text = json.dumps(benchmark, indent=1, ensure_ascii=False)
    return NUMBERS.sub(lambda match: f"[{' '.join(match[1].split())}]", text) + "\n"


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
    return {(name, row["what"]): _comparable(row) for name, row in _read_rows(folder, names)}


def list_shortfalls(folder: Path, names: Iterable[str], before: Mapping[tuple[str, str], float]) -> list[str]:
    """Return the lines of one table: the rows in a folder that miss their target or are WORSE than ``before``."""
    lines = []
    for name, row in _read_rows(folder, names):
        earlier = before.get((name, row["what"]))
        change = _comparable(row) / earlier if earlier else None
        worse = "other" in row and change is not None and change > WORSE
        if row.get("verdict") == SHORT or worse:
            cells = [name, row["what"], row.get("target", ""), _format_measured(row)]
            cells += ["" if change is None else f"{_number(change)}× as long", row.get("verdict", "")]
            lines.append(f"| {' | '.join(cells)} |")
    if not lines:
        return ["Nothing falls short of its target, and nothing is slower than stored."]
    heading = ["| benchmark | what | target | measured | beside the stored run | |", "|---|---|---|---|---|---|"]
    return ["### What falls short, or takes longer than stored", "", *heading, *lines]


def _read_rows(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in names:
        file = folder / f"{name}.json"
        stored = json.loads(file.read_text("utf-8")) if file.exists() else {}
        for row in stored.get("rows", ()) if isinstance(stored, dict) else ():
            yield name, row


def _comparable(row: dict[str, Any]) -> float:
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
    shown = {
        name: f for name, f in benchmarks.items() if isinstance(f, dict) and {"title", "other", "rows"} <= f.keys()
    }
    lines += _describe_machines(shown.values())
    for name, one in shown.items():
        lines += [
            *format_table(one),
            "",
            f"{one['taken']}, {_compute_busy_cores(one['machine'])}values in [{name}]({name}).",
            "",
        ]
    lines += [f"Also: [{name}]({name})." for name in benchmarks if name not in shown]
    return "\n".join(lines).strip() + "\n"


def describe_machine() -> dict[str, Any]:
    """Describe the machine without its name. ``load`` is the load at the end of the benchmark."""
    processor = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        names = [
            line.partition(":")[2].strip() for line in cpus.read_text().splitlines() if line.startswith("model name")
        ]
        processor = names[0] if names else processor
    load = [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None
    version = ".".join(str(part) for part in sys.version_info[:3])
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": version,
        "load": load,
    }


def _describe_machines(benchmarks: Iterable[dict[str, Any]]) -> list[str]:
    machines = {
        f"{m['processor']}, {m['cores']} cores, {m['system']}, Python {m['python']}, {m['engine']}"
        for m in (one["machine"] for one in benchmarks)
    }
    return [f"Machine: {m}." for m in sorted(machines)] + [""] if machines else []


def _compute_busy_cores(machine: dict[str, Any]) -> str:
    """Return how many processes wanted a core in the last minute of the run, on average.

    If this exceeds the number of cores, distrust the times.
    """
    return f"load {machine['load'][0]} at the end, " if machine["load"] else ""


def _format_measured(row: dict[str, Any]) -> str:
    if "measured" not in row:  # without a target: the comparison, if there is something to compare with
        other = row["other"]["median"] if "other" in row else 0
        return f"{_number(row['ours']['median'] / other)}×" if other else ""
    return f"{_number(row['measured'])}{'×' if '×' in row['target'] else ' ' + row['unit']}"


def _format_sample(sample: Sample) -> dict[str, Any]:
    written = {"median": _round_number(sample.median), "p95": _round_number(sample.p95), "said": sample.in_words()}
    if len(sample.values) <= MOST_VALUES:
        return written | {"values": [*map(_round_number, sample.values)]}
    return written | {"count": len(sample.values), "percentiles": [*map(_round_number, sample.percentiles())]}


def _number(value: float) -> str:
    if value >= 1000 or value == 0:
        return f"{value:,.0f}"
    if value < 0.1:
        return f"{value:.2g}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _round_number(value: float) -> float:
    return float(f"{value:.6g}")
