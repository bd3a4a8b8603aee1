"""Scripts by which a shell completes commands, options, models and files."""

from __future__ import annotations

import argparse

import shtab

from mha_viz.cli.options import Parser, folder_name
from mha_viz.models import catalog

FILES = frozenset(("out", "corpus"))  # arguments that are file names


def script(parser: Parser, shell: str) -> str:
    """The completion script for bash, zsh or fish. The parser must not parse afterwards, because its models become
    choices."""
    _complete_values(parser)
    text: str = shtab.complete(parser, shell, root_prefix="mha_viz")
    return text


def _complete_values(parser: argparse.ArgumentParser) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_values(command)
        elif action.dest == "model":
            action.choices = list(catalog.CATALOG)
        elif action.type is folder_name:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.dest in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
