"""The command ``mha-viz report``: print the roles of a profile as a table for a paper."""

from __future__ import annotations

import argparse

from mha_viz.analysis.profile import find_profile_folder, read_profile
from mha_viz.cli.options import Parser
from mha_viz.cli.output import STDOUT, parse_destination
from mha_viz.cli.profile import add_measuring_options, is_profile, measure, open_source
from mha_viz.cli.replicate import add_profile_argument, load_measured_model
from mha_viz.cli.terminal import print_warnings
from mha_viz.figures.words.report import KINDS, report

FORMATS = {"markdown": ".md", "latex": ".tex", "csv": ".csv"}


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    add_profile_argument(parser)
    help_text = (
        "a third corpus, not used to choose roles, or the profile of the same model on it, to say whether each role "
    )
    help_text += "holds there; may be repeated"
    parser.add_argument("--replicated", action="append", default=[], metavar="OTHER", help=help_text)
    help_text = f"the kinds of roles to show, separated by commas: {', '.join(KINDS)} (default: all)"
    parser.add_argument("--kinds", default="", metavar="KINDS", help=help_text)
    help_text = "show only roles with all of these, separated by commas: established (by two corpora); beats, equals "
    help_text += "or below (compared with the strongest simple rule on all corpora)"
    parser.add_argument("--only", default="", metavar="CONDITIONS", help=help_text)
    help_text = f'the file to write; its suffix sets the format: {", ".join(FORMATS.values())} (default: "-", stdout)'
    parser.add_argument("--out", default=STDOUT, metavar="FILE", help=help_text)
    help_text = f"{', '.join(FORMATS)} (default: markdown, or that of the file)"
    parser.add_argument("--format", choices=tuple(FORMATS), metavar="FORMAT", help=help_text)
    add_measuring_options(parser)


def run(args: argparse.Namespace) -> None:
    """Print or write the roles of a profile as a table for a paper."""
    default = ".md" if args.out == STDOUT else None
    destination = parse_destination(
        args.out, FORMATS.get(args.format, default), FORMATS.values(), "a format of reports"
    )
    profile = read_profile(args.profile)
    report(profile, kinds=args.kinds, only=args.only)  # reports invalid options before a corpus is measured
    other_profiles = []
    for other_source in args.replicated:  # a profile, or a corpus to measure the same model on
        if is_profile(find_profile_folder(other_source)):
            other_profiles.append(read_profile(find_profile_folder(other_source)))
            continue
        with print_warnings():
            corpus, encoder = open_source(other_source), load_measured_model(profile, args.device)
            other_profiles.append(measure(encoder, corpus, None, args.batch, profile, False))
    table = report(profile, other_profiles, kinds=args.kinds, only=args.only)
    format_table = {".md": table.markdown, ".tex": table.latex, ".csv": table.csv}[destination.suffix]
    destination.write(lambda: format_table().encode())
