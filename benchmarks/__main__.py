"""`python -m benchmarks [NAME …] [--full | --quick]`: measure, print tables, and list the rows that miss their targets.

Without --full, slow benchmarks repeat less or are left out, and the results are compared with those stored in results/.
"""

from __future__ import annotations

import argparse
import time
from importlib import import_module
from pathlib import Path

from benchmarks.results import format_summary, list_shortfalls, read_numbers
from mha_viz import process

HERE = Path(__file__).resolve().parent
SHORT = (
    "encode",
    "many",
    "grid",
    "head",
    "tween",
    "page",
    "figures",
    "standalone",
    "live",
    "study",
    "cluster",
    "effects",
    "start",
)
NAMES = (*SHORT, "families", "lab", "jobs", "walks", "load", "soak", "fuzz", "back_messages", "hostile", "gpu")
FEW = frozenset(("grid", "figures", "standalone", "live", "study", "effects"))  # repeat less without --full


def main(arguments: list[str] | None = None) -> None:
    """Run the named benchmarks one after the other; without names those of SHORT, with --full all."""
    process.set_environment()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed, measured.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--full", action="store_true", help="all of them, all repetitions; writes benchmarks/results")
    length.add_argument("--quick", action="store_true", help="few repetitions of all; writes benchmarks/cache/quick")
    parser.add_argument("--minutes", type=float, help="of the soak (default: 20); of the damaged files, at most")
    chosen = parser.parse_args(arguments)
    wrong = [name for name in chosen.names if name not in NAMES]
    if wrong:
        parser.error(f"“{wrong[0]}” is not a benchmark. Known: {', '.join(NAMES)}.")
    stored = HERE / "results"
    results = stored if chosen.full else HERE / "cache" / ("quick" if chosen.quick else "short")
    results.mkdir(parents=True, exist_ok=True)
    names = chosen.names or (NAMES if chosen.full else SHORT)
    before = read_numbers(stored, names)
    for name in names:
        began = time.monotonic()
        print(f"\n{name} …", flush=True)
        more = {"minutes": chosen.minutes} if name in ("soak", "hostile") and chosen.minutes else {}
        few = chosen.quick or (name in FEW and not chosen.full)
        import_module(f"benchmarks.{name}").main(results, few, **more)
        print(f"{name}: {(time.monotonic() - began) / 60:.1f} min", flush=True)
    (results / "README.md").write_text(format_summary(results), "utf-8")
    print("\n".join(["", *list_shortfalls(results, names, before)]))
    print(f"\nWritten: {results / 'README.md'}")


if __name__ == "__main__":
    main()
