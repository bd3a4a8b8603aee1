"""`python tools/mutants.py COVERAGE TIMES --out FILE [--tree DIR] [--mutants FILE]`: find faults that no test notices.

A mutant is one fault that an operator of Cosmic Ray makes in a line, inside a function, that some test runs. Each room
gets mutants in proportion to its number of such lines; lines and faults are chosen with a fixed seed. A mutant is tried
against the tests that run its line, module by module, the fastest first, until one fails. That test must fail again
with the fault, and pass without it. COVERAGE and TIMES are what `make coverage` wrote. --tree names another checkout.
--mutants repeats the mutants of an earlier result, so that two states of the tests are compared with the same faults.
"""

from __future__ import annotations

import argparse
import ast
import gc
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tools.covered import LineCoverage, get_module
from tools.forks import run_in_forks

ROOT = Path(__file__).resolve().parent.parent
SEED, COUNT = 20261124, 150
DEADLINE = 900  # seconds after which a mutant that hangs counts as noticed
IGNORED_FILES = shutil.ignore_patterns(
    ".git", ".venv", "node_modules", "build", "dist", ".*_cache", ".hypothesis", "cache"
)
HEAVY_MODULES = (
    "torch",
    "transformers",
    "streamlit",
    "pandas",
    "plotly",
    "matplotlib",
    "playwright.sync_api",
    "hypothesis",
)
PASSED, FAILED, HANGS = "passed", "failed", "hangs"
REWRITTEN = "ignore::pytest.PytestAssertRewriteWarning"  # the parent of the forks has imported modules already
UNTRIED = 70  # exit code of a fork in which pytest did not finish


@dataclass(frozen=True)
class Mutant:
    """The ``occurrence``-th place in ``file`` to which ``operator`` applies. ``line`` counts from 1."""

    file: str
    operator: str
    occurrence: int
    line: int
    text: str

    @property
    def room(self) -> str:
        """The room of the product that the file belongs to."""
        return Path(self.file).parts[1].removesuffix(".py")


@dataclass(frozen=True)
class Outcome:
    """The result of a mutant: noticed by the test ``by``, or by none of ``tests`` tests.

    ``left_out`` is the number of tests that were too slow to try.
    """

    mutant: Mutant
    is_noticed: bool
    by: str
    tests: int
    left_out: int
    seconds: float


# ---- Mutants


@cache
def _operators() -> tuple[tuple[str, Any], ...]:
    from cosmic_ray.plugins import get_operator, operator_names

    return tuple((name, get_operator(name)()) for name in operator_names() if not get_operator(name).arguments())


@cache
def list_mutants_by_line(tree: Path, file: str) -> Mapping[int, list[Mutant]]:
    """Return every mutant of a file, by its line inside a function."""
    from cosmic_ray.ast import ast_nodes, get_ast

    source = (tree / file).read_text("utf-8")
    lines, inside = source.splitlines(), _find_function_lines(source)
    mutants: dict[int, list[Mutant]] = defaultdict(list)
    nodes = list(ast_nodes(get_ast(source)))
    for name, operator in _operators():
        places = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (line, _) in enumerate(places):
            if line in inside:
                mutants[line].append(Mutant(file, name, occurrence, line, lines[line - 1].strip()))
    return mutants


def _find_function_lines(source: str) -> set[int]:
    inside: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside.update(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
    return inside


def mutate(source: str, mutant: Mutant) -> str | None:
    """Return the source with the fault.

    None if it has the same meaning (only an annotation changed), or does not compile.
    """
    from cosmic_ray.mutating import mutate_code

    code = mutate_code(source, dict(_operators())[mutant.operator], mutant.occurrence)
    try:
        return code if code and _dump_meaning(code) != _dump_meaning(source) else None
    except (SyntaxError, AttributeError):  # Cosmic Ray mistakes part of an expression for a keyword
        return None


def _dump_meaning(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(tree)


def choose_mutants(tree: Path, covered: LineCoverage, count: int = COUNT, unlike: Path | None = None) -> list[Mutant]:
    """Choose mutants for each room in proportion to its covered lines, at least one.

    Files that differ from those of the checkout ``unlike`` are left out.
    """
    lines: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for file, tests in covered.tests.items():
        if unlike and (tree / file).read_bytes() != (unlike / file).read_bytes():
            continue
        inside = _find_function_lines((tree / file).read_text("utf-8"))
        room = Path(file).parts[1].removesuffix(".py")
        lines[room] += [(file, line) for line, by in sorted(tests.items()) if by and line in inside]
    total, rng = sum(map(len, lines.values())), random.Random(SEED)
    shares = {room: max(1.0, count * len(places) / total) for room, places in sorted(lines.items()) if places}
    numbers = _round_shares(shares, count)
    return [mutant for room, n in numbers.items() for mutant in _draw_mutants(tree, lines[room], n, rng)]


def _round_shares(shares: Mapping[str, float], count: int) -> dict[str, int]:
    """Round shares to whole numbers that sum to ``count``, by largest remainders."""
    scale = count / sum(shares.values())
    numbers = {room: max(1, int(share * scale)) for room, share in shares.items()}
    missing = max(0, count - sum(numbers.values()))
    for room in sorted(shares, key=lambda room: numbers[room] - shares[room] * scale)[:missing]:
        numbers[room] += 1
    return numbers


def _draw_mutants(tree: Path, places: Sequence[tuple[str, int]], count: int, rng: random.Random) -> Iterator[Mutant]:
    for file, line in rng.sample(places, len(places)):
        if not count:
            return
        candidates = list_mutants_by_line(tree, file).get(line, [])
        for mutant in rng.sample(candidates, len(candidates)):
            if mutate((tree / file).read_text("utf-8"), mutant):
                count -= 1
                yield mutant
                break


# ---- Trying one mutant


@dataclass
class SelectedTests:
    """A pytest plugin: run only ``tests``, in their order, and write down the first that fails."""

    tests: Sequence[str]
    report: Path
    place: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.place = {test: number for number, test in enumerate(self.tests)}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        chosen = [item for item in session.items if item.nodeid in self.place]
        session.items = sorted(chosen, key=lambda item: self.place[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.report.write_text(report.nodeid, "utf-8")


def run(tree: Path, tests: Sequence[str]) -> str:
    """Run tests in a fork of this process.

    Return PASSED, HANGS, FAILED (while collecting), or the name of the first test that fails.
    """
    report = tree / ".failed"
    report.unlink(missing_ok=True)
    pid = os.fork()
    if not pid:
        _run_child(tree, tests, report)
    deadline = time.monotonic() + DEADLINE
    while not (status := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return HANGS
        time.sleep(0.05)
    if report.exists():
        return report.read_text("utf-8")
    code = os.waitstatus_to_exitcode(status[1])
    if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED, UNTRIED):
        raise RuntimeError(f"No test was tried: {(tree / '.log').read_text('utf-8')[-2000:]}")
    return PASSED if code == 0 else FAILED


def _run_child(tree: Path, tests: Sequence[str], report: Path) -> None:
    code = UNTRIED
    try:
        os.setpgid(0, 0)
        os.chdir(tree)
        sys.path[:] = [str(tree), *(path for path in sys.path if path not in (str(ROOT), ""))]
        sys.dont_write_bytecode = True
        os.environ |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tree)}  # for the processes that tests start
        with (tree / ".log").open("w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        modules = sorted(set(map(get_module, tests)))
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", REWRITTEN]
        options += ["-m", "not deploy and not browsers"]
        code = int(pytest.main([*options, *modules], plugins=[SelectedTests(tests, report)]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@contextmanager
def apply_fault(tree: Path, mutant: Mutant) -> Iterator[None]:
    """Apply the fault to the tree, and undo it afterwards.

    The compiled file is deleted, because it may look as new as the changed source.
    """
    path = tree / mutant.file
    source, times = path.read_text("utf-8"), path.stat()
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()
    code = mutate(source, mutant)
    if code is None:
        raise ValueError(f"{mutant} changes nothing in {path}.")
    path.write_text(code, "utf-8")
    try:
        yield
    finally:
        path.write_text(source, "utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def try_mutant(tree: Path, mutant: Mutant, covered: LineCoverage, broken: set[str]) -> Outcome:
    """Try a mutant. A test that fails in this copy even without the fault is ``broken`` and does not count."""
    start = time.monotonic()
    tests, left_out = covered.of(mutant.file, mutant.line)
    by = find_noticing_test(tree, mutant, [test for test in tests if test not in broken], broken)
    return Outcome(mutant, bool(by), by, len(tests), left_out, round(time.monotonic() - start, 1))


def find_noticing_test(tree: Path, mutant: Mutant, tests: Sequence[str], broken: set[str]) -> str:
    """Return the test that fails with the fault, fails again with it, and passes without it; "" if no test notices it.

    HANGS or FAILED if the tests together do so with the fault and not without it.
    """
    while tests:
        test = _run_with_fault(tree, mutant, tests)
        if test == PASSED:
            return ""
        if test in (HANGS, FAILED):
            return "" if run(tree, tests) == test else test
        if run(tree, [test]) != PASSED:
            broken.add(test)
        elif _run_with_fault(tree, mutant, [test]) != PASSED:
            return test
        tests = tests[tests.index(test) + 1 :]
    return ""


def _run_with_fault(tree: Path, mutant: Mutant, tests: Sequence[str]) -> str:
    with apply_fault(tree, mutant):
        return run(tree, tests)


# ---- Trying all mutants


def make_part_prefix(out: Path, coverage_file: Path, tree: Path) -> str:
    """Return the beginning of the names of the files to which workers write their outcomes.

    A run that was stopped continues from these files, if the tree and the tests are the same.
    """
    digest = hashlib.sha256(coverage_file.read_bytes() + str(tree).encode()).hexdigest()
    return f"{out.stem}.{digest[:8]}"


def read_outcomes(files: Iterable[Path]) -> dict[Mutant, Outcome]:
    """Read the outcomes in these files, by mutant. A line that was not written completely is removed."""
    outcomes = {}
    for file in files:
        complete, _, incomplete = file.read_text("utf-8").rpartition("\n")
        if incomplete:
            file.write_text(f"{complete}\n" if complete else "", "utf-8")
        for row in map(json.loads, complete.splitlines()):
            mutant = Mutant(**row["mutant"])
            outcomes[mutant] = Outcome(**(row | {"mutant": mutant}))
    return outcomes


def _worker(source: Path, mutants: Sequence[Mutant], covered: LineCoverage, out: Path) -> None:
    broken: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, out.open("a", encoding="utf-8") as lines:
        tree = Path(folder) / "tree"
        shutil.copytree(source, tree, ignore=IGNORED_FILES, symlinks=True)
        (tree / "node_modules").symlink_to(ROOT / "node_modules")
        for mutant in mutants:
            outcome = try_mutant(tree, mutant, covered, broken)
            lines.write(json.dumps(asdict(outcome)) + "\n")
            lines.flush()
            words = f"noticed by {outcome.by}" if outcome.is_noticed else f"UNNOTICED by {outcome.tests}"
            print(f"{mutant.file}:{mutant.line} {mutant.operator}: {words} ({outcome.seconds} s)", flush=True)


def try_all(tree: Path, mutants: Sequence[Mutant], covered: LineCoverage, begin: Path, workers: int) -> list[Outcome]:
    """Try the mutants without an outcome in the files that begin with ``begin``. The files are removed at the end."""

    def written() -> list[Path]:
        return sorted(begin.parent.glob(f"{begin.name}.*.jsonl"))

    outcomes = read_outcomes(written())
    remaining = [mutant for mutant in mutants if mutant not in outcomes]
    run_in_forks(
        lambda n: _worker(tree, remaining[n::workers], covered, begin.with_name(f"{begin.name}.{n}.jsonl")), workers
    )
    all_outcomes = read_outcomes(written())
    for file in written():
        file.unlink()
    return [all_outcomes[mutant] for mutant in mutants]


def summarize(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Summarize outcomes: numbers in all and per room, and the mutants, unnoticed ones first."""
    rooms = {
        room: {"mutants": len(of_room), "noticed": sum(o.is_noticed for o in of_room)}
        for room in sorted({o.mutant.room for o in outcomes})
        if (of_room := [o for o in outcomes if o.mutant.room == room])
    }
    noticed = sum(o.is_noticed for o in outcomes)
    ordered = sorted(outcomes, key=lambda o: (o.is_noticed, o.mutant.file, o.mutant.line))
    return {
        "seed": SEED,
        "mutants": len(outcomes),
        "noticed": noticed,
        "share": round(noticed / len(outcomes), 4),
        "rooms": rooms,
        "outcomes": [asdict(o) for o in ordered],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Choose mutants, try them, and write the result."""
    parser = argparse.ArgumentParser(prog="tools/mutants.py", description="Which small faults the tests notice.")
    parser.add_argument("coverage", type=Path)
    parser.add_argument("times", type=Path, help="the files that begin so have the seconds of the tests")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tree", type=Path, default=ROOT)
    parser.add_argument("--unlike", type=Path, help="leave files out that differ from those of this checkout")
    parser.add_argument("--mutants", type=Path, help="an earlier result: the same mutants once more")
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args(arguments)
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONUTF8": "1"}
    covered, tree = LineCoverage.read(chosen.coverage, chosen.times), chosen.make_tree.resolve()
    if chosen.mutants:
        mutants = [Mutant(**row["mutant"]) for row in json.loads(chosen.mutants.read_text("utf-8"))["outcomes"]]
    else:
        mutants = choose_mutants(tree, covered, unlike=chosen.unlike)
    print(f"{len(mutants)} mutants", flush=True)
    for name in HEAVY_MODULES:
        import_module(name)
    gc.freeze()
    outcomes = try_all(
        tree, mutants, covered, chosen.out.parent / make_part_prefix(chosen.out, chosen.coverage, tree), chosen.workers
    )
    result = summarize(outcomes)
    chosen.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"{result['noticed']} of {result['mutants']} noticed")


if __name__ == "__main__":
    main()
