"""Damaged headers of weights, tokenizers and configs: nothing may end the process, take long or need much memory.

Files are examined as a server's child does, then opened by the libraries. A mutation's number is its seed: ``python -m
benchmarks.hostile 17`` makes and opens it again, alone.
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
from math import inf
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from benchmarks.results import Row, Sample, Target, write
from mha_viz.errors import MhaVizError
from mha_viz.files.assets import asset_path
from mha_viz.models.getting.catalog import Model
from mha_viz.models.getting.folder import inspect_folder

ALL, QUICK = 100_000, 2_000
AT_ONCE = 1_000  # mutations of one process
SECONDS, MEGABYTES = 0.5, 100.0  # of the processor; the most for one
TEXT = "The animal didn't cross the street because it was too tired."
KINDS = ("model.safetensors", "tokenizer.json", "config.json")
# What takes the place of a value; the long ones are text, because Python would not write them.
_ODD: tuple[object, ...] = (
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
_LONG = {"@digits": "9" * 4_300, "@shape": f"[{','.join(['9' * 4_300] * 400)}]", "@deep": "[" * 50_000 + "]" * 50_000}


class Outcome(NamedTuple):
    """Outcome of one mutation: ``what`` is "opened", the class of an error of the family, or "crash: …"."""

    seed: int
    what: str
    seconds: float
    megabytes: float


def main(results: Path, quick: bool = False, minutes: float = inf) -> None:
    """Run, print, write ``results/hostile.json``.

    ``quick``: a fiftieth of the mutations. Those that have not begun after ``minutes`` are left out.
    """
    count, end = QUICK if quick else ALL, time.monotonic() + 60 * minutes

    def part(first: int) -> list[Outcome]:
        return run_in_children(range(first, min(first + AT_ONCE, count))) if time.monotonic() < end else []

    with ThreadPoolExecutor(os.cpu_count()) as at_once:
        outcomes = [one for outcomes_of_part in at_once.map(part, range(0, count, AT_ONCE)) for one in outcomes_of_part]
    rows = []
    for at, kind in enumerate(KINDS):
        ours = [one for one in outcomes if one.seed % len(KINDS) == at]
        ends = Counter(one.what.partition(":")[0] for one in ours)
        seeds = [one.seed for one in ours if one.what.startswith("crash") or one.seconds > SECONDS]
        crashes = Sample((float(ends["crash"]),))
        details = {"mutations": len(ours), "ends": dict(ends), "seeds": seeds[:20]}
        rows += [
            Row(f"{kind}: crashes", crashes, "", target=Target("below", 0.5), details=details),
            _largest(f"{kind}: longest", "s", SECONDS, [one.seconds for one in ours]),
            _largest(f"{kind}: most memory", "MB", MEGABYTES, [one.megabytes for one in ours]),
        ]
    how = f"seeds 0 to {len(outcomes) - 1:,}; one process for {AT_ONCE:,} mutations"
    write(results, "hostile", "Damaged files of models", "", rows, how)


def _largest(what: str, unit: str, most: float, values: list[float]) -> Row:
    return Row(what, Sample((max(values),)), unit, target=Target("below", most))


def run_in_children(seeds: range) -> list[Outcome]:
    """Return the outcomes of mutations from child processes.

    Whatever ends a child counts as a crash, and another child continues after it.
    """
    outcomes: list[Outcome] = []
    while len(outcomes) < len(seeds):
        left = seeds[len(outcomes) :]
        command = [sys.executable, "-P", "-m", "benchmarks.hostile", str(left.start), str(left.stop)]
        done = subprocess.run(
            command, cwd=Path(__file__).parent.parent, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        )
        outcomes += [Outcome(*json.loads(line)) for line in done.stdout.decode().splitlines()]
        if done.returncode:
            outcomes.append(Outcome(seeds[len(outcomes)], f"crash: exit {done.returncode}", 0.0, 0.0))
    return outcomes


def mutate(folder: Path, seed: int) -> None:
    """Damage one file of a folder that is otherwise that of the toy model; what is missing there is copied."""
    for name in (*KINDS, "tokenizer_config.json"):
        if not (folder / name).exists():
            shutil.copyfile(asset_path("toy") / name, folder / name)
    random, name = Random(seed), KINDS[seed % len(KINDS)]
    path = folder / name
    whole, length = (asset_path("toy") / name).read_bytes(), 0
    if name == KINDS[0]:
        length = 8 + int.from_bytes(whole[:8], "little")
    head, rest = (whole[8:length], whole[length:]) if length else (whole, b"")
    head = _damage_json(head, random) if random.random() < 0.8 else _damage_bytes(head, random)
    if length:
        announced = len(head) if random.random() < 0.9 else random.choice([0, 2**62, 2**64 - 1, len(head) + 1])
        path.write_bytes(announced.to_bytes(8, "little") + head + rest)
    else:
        path.write_bytes(head)


def _damage_json(raw: bytes, random: Random) -> bytes:
    value = json.loads(raw)
    for _ in range(random.randint(1, 3)):
        at = value
        while True:
            keys: list[Any] = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                break
            key = random.choice(keys)
            if isinstance(at[key], dict | list) and at[key] and random.random() < 0.7:
                at = at[key]
                continue
            _change(at, key, random)
            break
    written = json.dumps(value)
    for name, text in _LONG.items():
        written = written.replace(f'"{name}"', text)
    return written.encode(errors="surrogatepass")


def _change(at: Any, key: Any, random: Random) -> None:
    """Replace one value, or delete it, or put a copy of a neighbour in its place, or lengthen it."""
    what = random.random()
    if what < 0.6:
        at[key] = random.choice([*_ODD, *_LONG])
    elif what < 0.75:
        del at[key]
    elif what < 0.9:
        at[key] = random.choice([*at.values()] if isinstance(at, dict) else at)
    elif isinstance(at[key], list):
        at[key] = at[key] * 100
    else:
        at[key] = [at[key]]


def _damage_bytes(raw: bytes, random: Random) -> bytes:
    data = bytearray(raw)
    for _ in range(random.randint(1, 8)):
        data[random.randrange(len(data))] = random.randrange(256)
    begin, end = sorted(random.randrange(len(data)) for _ in range(2))
    return bytes(random.choice([data, data[:begin], data[:begin] + data[end:], data + data[begin:end]]))


def _try_folder(folder: Path, seed: int) -> Outcome:
    mutate(folder, seed)
    before, began = _read_memory("VmRSS"), time.process_time()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # so that the peak is that of this mutation
    try:
        inspect_folder(folder, Model("stranger", "stranger", kind="folder", path=str(folder)))
        _open(folder)
        what = "opened"
    except MhaVizError as error:
        what = type(error).__name__
    except BaseException as error:
        what = f"crash: {type(error).__name__}: {str(error)[:100]}"
    seconds = time.process_time() - began
    return Outcome(seed, what, seconds, max(0.0, _read_memory("VmHWM") - before))


def _open(folder: Path) -> None:
    """Open what passed as the reader's process does. Raises MhaVizError for what the libraries refuse."""
    from mha_viz.models.reading.tokenizer import convert_panics

    with convert_panics("stranger"):
        for opened in (_weights, _tokenizer):
            try:
                opened(folder)
            except Exception as error:  # the reader names every error of a library in one sentence
                raise MhaVizError(str(error)[:100]) from error


def _weights(folder: Path) -> None:
    from safetensors import safe_open

    with safe_open(folder / KINDS[0], "np") as file:
        for name in file.keys():  # noqa: SIM118
            file.get_tensor(name)


def _tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer

    Tokenizer.from_file(str(folder / KINDS[1])).encode(TEXT)


def _read_memory(name: str) -> float:
    """Return the megabytes of memory, now (VmRSS) or at the peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith(name))


def serve(seeds: range, tell: Callable[[Outcome], None]) -> None:
    """Tell the outcome of each."""
    resource.setrlimit(resource.RLIMIT_DATA, (2 * 10**9,) * 2)
    with tempfile.TemporaryDirectory() as folder:
        mutate(Path(folder), 0)
        with suppress(MhaVizError):
            _open(Path(folder))  # imports the libraries
        Path(folder, KINDS[0]).unlink()
        for seed in seeds:
            tell(_try_folder(Path(folder), seed))
            Path(folder, KINDS[seed % len(KINDS)]).unlink()


if __name__ == "__main__":
    first, *last = map(int, sys.argv[1:])
    serve(range(first, *(last or [first + 1])), lambda one: print(json.dumps(one), flush=True))
