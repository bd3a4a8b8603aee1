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
DEFAULT_NAMES = (
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
NAMES = (*DEFAULT_NAMES, "families", "lab", "jobs", "walks", "load", "soak", "fuzz", "back_messages", "hostile", "gpu")
# These repeat less without --full.
REDUCED_NAMES = frozenset(("grid", "figures", "standalone", "live", "study", "effects"))


def main(arguments: list[str] | None = None) -> None:
    """Run the named benchmarks one after the other; without names, run DEFAULT_NAMES, or all with --full."""
    process.set_environment()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed and memory.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--full", action="store_true", help="all of them, all repetitions; writes benchmarks/results")
    length.add_argument("--quick", action="store_true", help="few repetitions of all; writes benchmarks/cache/quick")
    parser.add_argument("--minutes", type=float, help="duration of soak (default: 20); maximum duration of hostile")
    options = parser.parse_args(arguments)
    unknown_names = [name for name in options.names if name not in NAMES]
    if unknown_names:
        parser.error(f"“{unknown_names[0]}” is not a benchmark. Known: {', '.join(NAMES)}.")
    stored_folder = HERE / "results"
    results = stored_folder if options.full else HERE / "cache" / ("quick" if options.quick else "short")
    results.mkdir(parents=True, exist_ok=True)
    names = options.names or (NAMES if options.full else DEFAULT_NAMES)
    stored_numbers = read_numbers(stored_folder, names)
    for name in names:
        start = time.monotonic()
        print(f"\n{name} …", flush=True)
        extra_arguments = {"minutes": options.minutes} if name in ("soak", "hostile") and options.minutes else {}
        is_quick = options.quick or (name in REDUCED_NAMES and not options.full)
        import_module(f"benchmarks.{name}").main(results, is_quick, **extra_arguments)
        print(f"{name}: {(time.monotonic() - start) / 60:.1f} min", flush=True)
    (results / "README.md").write_text(format_summary(results), "utf-8")
    print("\n".join(["", *list_shortfalls(results, names, stored_numbers)]))
    print(f"\nWritten: {results / 'README.md'}")


if __name__ == "__main__":
    main()
