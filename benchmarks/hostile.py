"""Open damaged weights, tokenizers and configs: none may end the process, take long or need much memory.

Files are inspected as in a server's child process, then opened by the libraries. A mutation's number is its seed:
``python -m benchmarks.hostile 17`` makes and opens it again, alone.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from math import inf
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from benchmarks.results import Row, Sample, Target, write
from mha_viz.errors import MhaVizError
from mha_viz.files.assets import asset_path
from mha_viz.models.getting.catalog import Model
from mha_viz.models.getting.folder import inspect_folder

MUTATIONS, QUICK_MUTATIONS = 100_000, 2_000
BATCH_SIZE = 1_000  # mutations per process
MAX_SECONDS, MAX_MEGABYTES = 0.5, 100.0  # maximum CPU time and memory of one mutation
TEXT = "The animal didn't cross the street because it was too tired."
FILES = ("model.safetensors", "tokenizer.json", "config.json")
# Replacements for values. The long ones are JSON text, because Python would not write them.
_ODD_VALUES: tuple[object, ...] = (
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**63,
    1e308,
    float("nan"),
    "",
    "\0",
    "\ud800",
    "(a+)+$",
    "x" * 100_000,
    [],
    {},
)
_LONG_JSON = {
    "@digits": "9" * 4300,
    "@shape": f"[{','.join(['9' * 4300] * 400)}]",
    "@deep": "[" * 50_000 + "]" * 50_000,
}


class Outcome(NamedTuple):
    """Outcome of one mutation: ``result`` is "opened", the class name of an MhaVizError, or "crash: …"."""

    seed: int
    result: str
    seconds: float
    megabytes: float


def main(results: Path, quick: bool = False, minutes: float = inf) -> None:
    """Run, print, write ``results/hostile.json``.

    ``quick``: a fiftieth of the mutations. Batches that have not begun after ``minutes`` are left out.
    """
    count, end = QUICK_MUTATIONS if quick else MUTATIONS, time.monotonic() + 60 * minutes

    def run_batch(first: int) -> list[Outcome]:
        return run_in_children(range(first, min(first + BATCH_SIZE, count))) if time.monotonic() < end else []

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = [*chain.from_iterable(pool.map(run_batch, range(0, count, BATCH_SIZE)))]
    rows = []
    for number, file in enumerate(FILES):
        group = [outcome for outcome in outcomes if outcome.seed % len(FILES) == number]
        counts = Counter(outcome.result.partition(":")[0] for outcome in group)
        seeds = [item.seed for item in group if item.result.startswith("crash") or item.seconds > MAX_SECONDS]
        crashes = Sample((float(counts["crash"]),))
        details = {"mutations": len(group), "ends": dict(counts), "seeds": seeds[:20]}
        rows += [
            Row(f"{file}: crashes", crashes, "", target=Target("below", 0.5), details=details),
            _make_maximum_row(f"{file}: longest", "s", MAX_SECONDS, [outcome.seconds for outcome in group]),
            _make_maximum_row(f"{file}: most memory", "MB", MAX_MEGABYTES, [outcome.megabytes for outcome in group]),
        ]
    description = f"seeds 0 to {len(outcomes) - 1:,}; one process for {BATCH_SIZE:,} mutations"
    write(results, "hostile", "Damaged files of models", "", rows, description)


def _make_maximum_row(name: str, unit: str, limit: float, values: list[float]) -> Row:
    return Row(name, Sample((max(values),)), unit, target=Target("below", limit))


def run_in_children(seeds: range) -> list[Outcome]:
    """Return the outcomes of mutations from child processes.

    Whatever ends a child counts as a crash, and another child continues after it.
    """
    outcomes: list[Outcome] = []
    while len(outcomes) < len(seeds):
        remaining = seeds[len(outcomes) :]
        command = [sys.executable, "-P", "-m", "benchmarks.hostile", str(remaining.start), str(remaining.stop)]
        process = subprocess.run(
            command, cwd=Path(__file__).parent.parent, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        )
        outcomes += [Outcome(*json.loads(line)) for line in process.stdout.decode().splitlines()]
        if process.returncode:
            outcomes.append(Outcome(seeds[len(outcomes)], f"crash: exit {process.returncode}", 0.0, 0.0))
    return outcomes


def mutate(folder: Path, seed: int) -> None:
    """Damage one file of a folder; the other files are copies of the toy model's, made if they are missing."""
    for name in (*FILES, "tokenizer_config.json"):
        if not (folder / name).exists():
            shutil.copyfile(asset_path("toy") / name, folder / name)
    random, name = Random(seed), FILES[seed % len(FILES)]
    path = folder / name
    content, length = (asset_path("toy") / name).read_bytes(), 0
    if name == FILES[0]:
        length = 8 + int.from_bytes(content[:8], "little")
    header, remainder = (content[8:length], content[length:]) if length else (content, b"")
    header = _damage_json(header, random) if random.random() < 0.8 else _damage_bytes(header, random)
    if length:
        size = len(header) if random.random() < 0.9 else random.choice([0, 2**62, 2**64 - 1, len(header) + 1])
        path.write_bytes(size.to_bytes(8, "little") + header + remainder)
    else:
        path.write_bytes(header)


def _damage_json(raw: bytes, random: Random) -> bytes:
    value = json.loads(raw)
    for _ in range(random.randint(1, 3)):
        node = value
        while True:
            keys: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = random.choice(keys)
            if isinstance(node[key], dict | list) and node[key] and random.random() < 0.7:
                node = node[key]
                continue
            _change_value(node, key, random)
            break
    text = json.dumps(value)
    for name, long_text in _LONG_JSON.items():
        text = text.replace(f'"{name}"', long_text)
    return text.encode(errors="surrogatepass")


def _change_value(node: Any, key: Any, random: Random) -> None:
    """Replace one value, or delete it, or put a copy of a neighbour in its place, or lengthen it."""
    choice = random.random()
    if choice < 0.6:
        node[key] = random.choice([*_ODD_VALUES, *_LONG_JSON])
    elif choice < 0.75:
        del node[key]
    elif choice < 0.9:
        node[key] = random.choice([*node.values()] if isinstance(node, dict) else node)
    elif isinstance(node[key], list):
        node[key] = node[key] * 100
    else:
        node[key] = [node[key]]


def _damage_bytes(raw: bytes, random: Random) -> bytes:
    data = bytearray(raw)
    for _ in range(random.randint(1, 8)):
        data[random.randrange(len(data))] = random.randrange(256)
    start, end = sorted(random.randrange(len(data)) for _ in range(2))
    return bytes(random.choice([data, data[:start], data[:start] + data[end:], data + data[start:end]]))


def _try_folder(folder: Path, seed: int) -> Outcome:
    mutate(folder, seed)
    initial_memory, start = _read_memory("VmRSS"), time.process_time()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # so that the peak is that of this mutation
    try:
        inspect_folder(folder, Model("stranger", "stranger", kind="folder", path=str(folder)))
        _open_folder(folder)
        result = "opened"
    except MhaVizError as error:
        result = type(error).__name__
    except BaseException as error:
        result = f"crash: {type(error).__name__}: {str(error)[:100]}"
    seconds = time.process_time() - start
    return Outcome(seed, result, seconds, max(0.0, _read_memory("VmHWM") - initial_memory))


def _open_folder(folder: Path) -> None:
    """Open an inspected folder as the reader's process does. Raises MhaVizError if a library refuses it."""
    from mha_viz.models.reading.tokenizer import convert_panics

    with convert_panics("stranger"):
        for open_file in (_open_weights, _open_tokenizer):
            try:
                open_file(folder)
            except Exception as error:  # the reader reports every error of a library in one sentence
                raise MhaVizError(str(error)[:100]) from error


def _open_weights(folder: Path) -> None:
    from safetensors import safe_open

    with safe_open(folder / FILES[0], "np") as file:
        for name in file.keys():  # noqa: SIM118
            file.get_tensor(name)


def _open_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer

    Tokenizer.from_file(str(folder / FILES[1])).encode(TEXT)


def _read_memory(name: str) -> float:
    """Return the megabytes of memory, now (VmRSS) or at the peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith(name))


def report_outcomes(seeds: range, report: Callable[[Outcome], None]) -> None:
    """Try each mutation in this process, with limited memory, and report its outcome."""
    resource.setrlimit(resource.RLIMIT_DATA, (2 * 10**9,) * 2)
    with tempfile.TemporaryDirectory() as folder:
        mutate(Path(folder), 0)
        with suppress(MhaVizError):
            _open_folder(Path(folder))  # imports the libraries
        Path(folder, FILES[0]).unlink()
        for seed in seeds:
            report(_try_folder(Path(folder), seed))
            Path(folder, FILES[seed % len(FILES)]).unlink()


if __name__ == "__main__":
    first, *end = map(int, sys.argv[1:])
    report_outcomes(range(first, *(end or [first + 1])), lambda outcome: print(json.dumps(outcome), flush=True))
