"""``mha-viz report``."""

from __future__ import annotations

import argparse

from mha_viz.analysis.profile import read_profile
from mha_viz.cli.options import Parser
from mha_viz.cli.output import STDOUT, destination
from mha_viz.cli.replicate import profile_argument, profile_name
from mha_viz.figures.report import report

FORMATS = {"markdown": ".md", "latex": ".tex", "csv": ".csv"}


def options(command: Parser) -> None:
    """Add the options of the command."""
    profile_argument(command)
    words = "a profile of the same model on a further corpus, to say whether each role holds there; may be repeated"
    command.add_argument("--replicated", type=profile_name, action="append", default=[], metavar="OTHER", help=words)
    words = f'the file to write; its suffix sets the format: {", ".join(FORMATS.values())} (default: "-", stdout)'
    command.add_argument("--out", default=STDOUT, metavar="FILE", help=words)
    words = f"{', '.join(FORMATS)} (default: markdown, or that of the file)"
    command.add_argument("--format", choices=tuple(FORMATS), metavar="FORMAT", help=words)


def run(args: argparse.Namespace) -> None:
    """Print or write the roles of a profile as a table for a paper."""
    default = ".md" if args.out == STDOUT else None
    to = destination(args.out, FORMATS.get(args.format, default), FORMATS.values(), "a format of reports")
    made = report(read_profile(args.profile), map(read_profile, args.replicated))
    written = {".md": made.markdown, ".tex": made.latex, ".csv": made.csv}[to.suffix]
    to.write(lambda: written().encode())
