"""Find the tests that run a line of the product, from the files that `make coverage` writes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MAX_SECONDS = 300.0  # maximum for the tests of one line, by their measured times


@dataclass
class LineCoverage:
    """The tests that ran each line of each file, and the seconds that each test takes."""

    tests: Mapping[str, Mapping[int, set[str]]]
    seconds: Mapping[str, float]

    @classmethod
    def read(cls, coverage_file: Path, times_prefix: Path) -> LineCoverage:
        """Read the files that `make coverage` wrote; those with times begin with ``times_prefix``."""
        from coverage import CoverageData

        data = CoverageData(str(coverage_file))
        data.read()
        tests: dict[str, dict[int, set[str]]] = {}
        for path in sorted(data.measured_files()):
            product_file = path[path.rindex("mha_viz/") :]
            lines = tests.setdefault(product_file, {})
            for line, contexts in data.contexts_by_lineno(path).items():
                lines.setdefault(line, set()).update(filter(None, map(_parse_context, contexts)))
        seconds: dict[str, float] = {}
        for file in times_prefix.parent.glob(f"{times_prefix.name}*"):
            for row in file.read_text("utf-8").splitlines():
                test, wall_seconds, *_ = json.loads(row)
                seconds[test] = wall_seconds
        return cls(tests, seconds)

    def find_tests(self, file: str, line: int) -> tuple[list[str], int]:
        """Return the tests that run a line, and the number of tests that were left out.

        Tests are ordered by module, the fastest modules first.
        """
        candidates = [test for test in self.tests.get(file, {}).get(line, ()) if test in self.seconds]
        selected: list[str] = []
        total_seconds = 0.0
        for test in sorted(candidates, key=lambda test: (self.seconds[test], test)):
            total_seconds += self.seconds[test]
            if selected and total_seconds > MAX_SECONDS:
                break
            selected.append(test)
        module_seconds: dict[str, float] = defaultdict(float)
        for test in selected:
            module_seconds[get_module(test)] += self.seconds[test]
        selected.sort(key=lambda test: (module_seconds[get_module(test)], get_module(test)))
        return selected, len(candidates) - len(selected)


def _parse_context(context: str) -> str:
    """Return the test that a context names: ``test|run`` from pytest-cov, ``test (call)`` from a child process."""
    return (
        context.rpartition("|")[0] if context.endswith(("|run", "|setup", "|teardown")) else context.rpartition(" (")[0]
    )


def get_module(test: str) -> str:
    """Return the module of a test."""
    return test.partition("::")[0]
