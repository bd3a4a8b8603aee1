"""`python -m benchmarks [NAME …] [--quick]`: measure, print tables, write results/."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from benchmarks.results import summary
from mha_viz import process

HERE = Path(__file__).resolve().parent
NAMES = (
    *("encode", "many", "effects", "grid", "head", "page", "figures", "standalone", "study", "cluster"),
    *("load", "soak", "fuzz"),
)


def main(arguments: list[str] | None = None) -> None:
    """Run the named benchmarks, all without a name, one after the other."""
    process.prepare()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed, measured.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="few repetitions; results go to benchmarks/cache/quick")
    parser.add_argument("--minutes", type=float, help="how long the soak takes (default: 20)")
    chosen = parser.parse_args(arguments)
    wrong = [name for name in chosen.names if name not in NAMES]
    if wrong:
        parser.error(f"“{wrong[0]}” is not a benchmark. Known: {', '.join(NAMES)}.")
    results = HERE / "cache" / "quick" if chosen.quick else HERE / "results"
    results.mkdir(parents=True, exist_ok=True)
    for name in chosen.names or NAMES:
        print(f"\n{name} …", flush=True)
        more = {"minutes": chosen.minutes} if name == "soak" and chosen.minutes else {}
        import_module(f"benchmarks.{name}").main(results, chosen.quick, **more)
    (results / "README.md").write_text(summary(results), "utf-8")
    print(f"\nWritten: {results / 'README.md'}")


if __name__ == "__main__":
    main()
