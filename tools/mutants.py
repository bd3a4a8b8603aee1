"""`python tools/mutants.py COVERAGE TIMES --out FILE [--tree DIR] [--mutants FILE]`: find faults that no test notices.

A mutant is one fault that an operator of Cosmic Ray makes in a line of a function. Only lines that a test runs count;
each room (a folder or module of mha_viz) gets mutants in proportion to how many of them it has. Lines and faults are
chosen with a fixed seed. A mutant is tried against the tests that run its line, module by module, the fastest first,
until one fails. That test must fail again with the fault, and pass without it. COVERAGE and TIMES come from
`make coverage`. --tree names another checkout. --mutants repeats the mutants of an earlier result, to compare two
states of the tests.
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

from tools.forks import run_in_forks
from tools.line_coverage import LineCoverage, get_module

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
IGNORED_WARNING = "ignore::pytest.PytestAssertRewriteWarning"  # the parent of the forks has imported modules already
NOT_RUN = 70  # exit code of a fork in which pytest did not finish


@dataclass(frozen=True)
class Mutant:
    """The fault that ``operator`` makes at its ``occurrence``-th place in ``file``. ``line`` counts from 1."""

    file: str
    operator: str
    occurrence: int
    line: int
    text: str

    @property
    def room(self) -> str:
        """The folder or module directly in mha_viz that the file belongs to."""
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
def _load_operators() -> tuple[tuple[str, Any], ...]:
    from cosmic_ray.plugins import get_operator, operator_names

    return tuple((name, get_operator(name)()) for name in operator_names() if not get_operator(name).arguments())


@cache
def list_mutants_by_line(tree: Path, file: str) -> Mapping[int, list[Mutant]]:
    """Return the mutants of a file, by line; only lines inside functions count."""
    from cosmic_ray.ast import ast_nodes, get_ast

    source = (tree / file).read_text("utf-8")
    lines, function_lines = source.splitlines(), _find_function_lines(source)
    mutants: dict[int, list[Mutant]] = defaultdict(list)
    nodes = list(ast_nodes(get_ast(source)))
    for name, operator in _load_operators():
        positions = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (line, _) in enumerate(positions):
            if line in function_lines:
                mutants[line].append(Mutant(file, name, occurrence, line, lines[line - 1].strip()))
    return mutants


def _find_function_lines(source: str) -> set[int]:
    function_lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function_lines.update(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
    return function_lines


def mutate(source: str, mutant: Mutant) -> str | None:
    """Return the source with the fault.

    None if it has the same meaning (only an annotation changed), or does not compile.
    """
    from cosmic_ray.mutating import mutate_code

    code = mutate_code(source, dict(_load_operators())[mutant.operator], mutant.occurrence)
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


def choose_mutants(tree: Path, coverage: LineCoverage, count: int = COUNT, base: Path | None = None) -> list[Mutant]:
    """Choose mutants for each room in proportion to its covered lines, at least one.

    Files that differ from those of the checkout ``base`` are left out.
    """
    lines: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for file, tests_by_line in coverage.tests.items():
        if base and (tree / file).read_bytes() != (base / file).read_bytes():
            continue
        function_lines = _find_function_lines((tree / file).read_text("utf-8"))
        room = Path(file).parts[1].removesuffix(".py")
        lines[room] += [
            (file, line) for line, tests in sorted(tests_by_line.items()) if tests and line in function_lines
        ]
    total, rng = sum(map(len, lines.values())), random.Random(SEED)
    shares = {room: max(1.0, count * len(entries) / total) for room, entries in sorted(lines.items()) if entries}
    counts = _round_shares(shares, count)
    return [mutant for room, n in counts.items() for mutant in _draw_mutants(tree, lines[room], n, rng)]


def _round_shares(shares: Mapping[str, float], count: int) -> dict[str, int]:
    """Round shares to whole numbers that sum to ``count``, by largest remainders."""
    scale = count / sum(shares.values())
    counts = {room: max(1, int(share * scale)) for room, share in shares.items()}
    remainder = max(0, count - sum(counts.values()))
    for room in sorted(shares, key=lambda room: counts[room] - shares[room] * scale)[:remainder]:
        counts[room] += 1
    return counts


def _draw_mutants(tree: Path, lines: Sequence[tuple[str, int]], count: int, rng: random.Random) -> Iterator[Mutant]:
    for file, line in rng.sample(lines, len(lines)):
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
    """A pytest plugin: run only ``tests``, in their order, and write the name of the first that fails to a file."""

    tests: Sequence[str]
    failure_file: Path
    order: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.order = {test: number for number, test in enumerate(self.tests)}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        selected_items = [item for item in session.items if item.nodeid in self.order]
        session.items = sorted(selected_items, key=lambda item: self.order[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failure_file.write_text(report.nodeid, "utf-8")


def run_tests(tree: Path, tests: Sequence[str]) -> str:
    """Run tests in a fork of this process.

    Return PASSED, HANGS, FAILED (while collecting), or the name of the first test that fails.
    """
    failure_file = tree / ".failed"
    failure_file.unlink(missing_ok=True)
    pid = os.fork()
    if not pid:
        _run_child(tree, tests, failure_file)
    deadline = time.monotonic() + DEADLINE
    while not (status := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return HANGS
        time.sleep(0.05)
    if failure_file.exists():
        return failure_file.read_text("utf-8")
    code = os.waitstatus_to_exitcode(status[1])
    if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED, NOT_RUN):
        raise RuntimeError(f"No test was tried: {(tree / '.log').read_text('utf-8')[-2000:]}")
    return PASSED if code == 0 else FAILED


def _run_child(tree: Path, tests: Sequence[str], failure_file: Path) -> None:
    code = NOT_RUN
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
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", IGNORED_WARNING]
        options += ["-m", "not deploy and not browsers"]
        code = int(pytest.main([*options, *modules], plugins=[SelectedTests(tests, failure_file)]))
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
    source, stat = path.read_text("utf-8"), path.stat()
    for bytecode in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        bytecode.unlink()
    code = mutate(source, mutant)
    if code is None:
        raise ValueError(f"{mutant} changes nothing in {path}.")
    path.write_text(code, "utf-8")
    try:
        yield
    finally:
        path.write_text(source, "utf-8")
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def try_mutant(tree: Path, mutant: Mutant, coverage: LineCoverage, broken_tests: set[str]) -> Outcome:
    """Try a mutant. Tests that fail even without the fault do not count, and are added to ``broken_tests``."""
    start = time.monotonic()
    tests, left_out = coverage.find_tests(mutant.file, mutant.line)
    noticing_test = find_noticing_test(tree, mutant, [test for test in tests if test not in broken_tests], broken_tests)
    return Outcome(mutant, bool(noticing_test), noticing_test, len(tests), left_out, round(time.monotonic() - start, 1))


def find_noticing_test(tree: Path, mutant: Mutant, tests: Sequence[str], broken_tests: set[str]) -> str:
    """Return the first test that fails twice with the fault and passes without it; "" if there is none.

    Return HANGS or FAILED if the tests as a whole hang or fail, but only with the fault.
    """
    while tests:
        test = _run_with_fault(tree, mutant, tests)
        if test == PASSED:
            return ""
        if test in (HANGS, FAILED):
            return "" if run_tests(tree, tests) == test else test
        if run_tests(tree, [test]) != PASSED:
            broken_tests.add(test)
        elif _run_with_fault(tree, mutant, [test]) != PASSED:
            return test
        tests = tests[tests.index(test) + 1 :]
    return ""


def _run_with_fault(tree: Path, mutant: Mutant, tests: Sequence[str]) -> str:
    with apply_fault(tree, mutant):
        return run_tests(tree, tests)


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


def _run_worker(source: Path, mutants: Sequence[Mutant], coverage: LineCoverage, out: Path) -> None:
    broken_tests: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, out.open("a", encoding="utf-8") as stream:
        tree = Path(folder) / "tree"
        shutil.copytree(source, tree, ignore=IGNORED_FILES, symlinks=True)
        (tree / "node_modules").symlink_to(ROOT / "node_modules")
        for mutant in mutants:
            outcome = try_mutant(tree, mutant, coverage, broken_tests)
            stream.write(json.dumps(asdict(outcome)) + "\n")
            stream.flush()
            message = f"noticed by {outcome.by}" if outcome.is_noticed else f"UNNOTICED by {outcome.tests}"
            print(f"{mutant.file}:{mutant.line} {mutant.operator}: {message} ({outcome.seconds} s)", flush=True)


def try_all(tree: Path, mutants: Sequence[Mutant], coverage: LineCoverage, prefix: Path, workers: int) -> list[Outcome]:
    """Try the mutants that have no outcome in the files with this ``prefix``. Remove the files at the end."""

    def list_parts() -> list[Path]:
        return sorted(prefix.parent.glob(f"{prefix.name}.*.jsonl"))

    outcomes = read_outcomes(list_parts())
    remaining_mutants = [mutant for mutant in mutants if mutant not in outcomes]
    run_in_forks(
        lambda n: _run_worker(
            tree, remaining_mutants[n::workers], coverage, prefix.with_name(f"{prefix.name}.{n}.jsonl")
        ),
        workers,
    )
    all_outcomes = read_outcomes(list_parts())
    for file in list_parts():
        file.unlink()
    return [all_outcomes[mutant] for mutant in mutants]


def summarize(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Summarize outcomes: numbers in all and per room, and the mutants, unnoticed ones first."""
    rooms = {
        room: {"mutants": len(room_outcomes), "noticed": sum(o.is_noticed for o in room_outcomes)}
        for room in sorted({o.mutant.room for o in outcomes})
        if (room_outcomes := [o for o in outcomes if o.mutant.room == room])
    }
    noticed = sum(o.is_noticed for o in outcomes)
    sorted_outcomes = sorted(outcomes, key=lambda o: (o.is_noticed, o.mutant.file, o.mutant.line))
    return {
        "seed": SEED,
        "mutants": len(outcomes),
        "noticed": noticed,
        "share": round(noticed / len(outcomes), 4),
        "rooms": rooms,
        "outcomes": [asdict(o) for o in sorted_outcomes],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Choose mutants, try them, and write the result."""
    parser = argparse.ArgumentParser(prog="tools/mutants.py", description="Find small faults that no test notices.")
    parser.add_argument("coverage", type=Path)
    parser.add_argument("times", type=Path, help="prefix of the files with the seconds of each test")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tree", type=Path, default=ROOT)
    parser.add_argument("--unlike", type=Path, help="leave out files that differ from those of this checkout")
    parser.add_argument("--mutants", type=Path, help="an earlier result, whose mutants are tried again")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args(arguments)
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONUTF8": "1"}
    coverage, tree = LineCoverage.read(args.coverage, args.times), args.tree.resolve()
    if args.mutants:
        mutants = [Mutant(**row["mutant"]) for row in json.loads(args.mutants.read_text("utf-8"))["outcomes"]]
    else:
        mutants = choose_mutants(tree, coverage, base=args.unlike)
    print(f"{len(mutants)} mutants", flush=True)
    for name in HEAVY_MODULES:
        import_module(name)
    gc.freeze()
    outcomes = try_all(
        tree, mutants, coverage, args.out.parent / make_part_prefix(args.out, args.coverage, tree), args.workers
    )
    result = summarize(outcomes)
    args.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"{result['noticed']} of {result['mutants']} noticed")


if __name__ == "__main__":
    main()
