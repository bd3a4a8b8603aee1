"""The parser, options that several commands share, and the types of their values.

Options are declared with argparse and not derived from the signatures of functions. Most of what an option needs (its
help text, its bounds, the kinds of figures that take it) is not in a signature. Annotations and docstrings that add it
are as long as the calls here, and need extra code that reads them. A library that derives options, such as cyclopts,
would also replace the parser on which suggestions, error messages and completion scripts are based.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from mha_viz.attention import Head
from mha_viz.cli.usage import reword_argparse, suggest_head
from mha_viz.errors import SettingError, UnknownHead
from mha_viz.models.getting import catalog
from mha_viz.quotes import did_you_mean, join_names, quote, shorten
from mha_viz.request import DTYPES

Command = Callable[[argparse.Namespace], None]
MODEL_HELP = "a name from `mha-viz models`, an id of the Hugging Face Hub (or ID@REVISION), or a folder"


class Parser(argparse.ArgumentParser):
    """A parser that raises SettingError with a suggestion, instead of printing argparse's usage message."""

    siblings: Mapping[str, Parser] = MappingProxyType({})  # all commands of its group, by name

    def add_command(self, commands: Any, name: str, run: Command | None, summary: str, epilog: str = "") -> Parser:
        """Add a command to the group ``commands`` of this parser."""
        formatter = argparse.RawDescriptionHelpFormatter
        parser: Parser = commands.add_parser(
            name, help=summary, description=summary, epilog=epilog, formatter_class=formatter, allow_abbrev=False
        )
        parser.siblings = commands.choices
        if run is not None:
            parser.set_defaults(run=run)
        return parser

    def error(self, message: str) -> NoReturn:
        """Raise SettingError in place of argparse's usage message."""
        raise SettingError(reword_argparse(message, self), f"See {self.prog} --help.")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Report an unknown option first; otherwise argparse would report a missing option instead."""
        arguments = list(sys.argv[1:] if args is None else args)
        self._check_options(arguments)
        return super().parse_known_args(arguments, namespace)

    def _check_options(self, arguments: Sequence[str]) -> None:
        has_commands = any(isinstance(action, argparse._SubParsersAction) for action in self._actions)
        for argument in arguments:
            if argument == "--" or (has_commands and not argument.startswith("-")):
                return  # the rest belongs to Streamlit, or to the command
            option = argument.partition("=")[0]
            looks_like_option = re.fullmatch(r"--[^\W\d_][\w-]*|-[A-Za-z]", option)
            if not looks_like_option or option in self._option_string_actions:
                continue
            name = self.prog.partition(" ")[2] or self.prog
            others = [other for other, parser in self.siblings.items() if parser._has_option(option)]
            if others:
                raise SettingError(f"{option} does not go with {name}.", f"It goes with {join_names(others)}.")
            question = did_you_mean(option, self._option_string_actions)
            problem = f"{name} has no option {shorten(option, 40)}."
            raise SettingError(problem, f"{question} See {self.prog} --help.".strip())

    def _has_option(self, option: str) -> bool:
        """Return whether this command, or one of its subcommands, has an option."""
        groups = (action.choices for action in self._actions if isinstance(action, argparse._SubParsersAction))
        subcommands = (command for group in groups for command in group.values())
        return option in self._option_string_actions or any(command._has_option(option) for command in subcommands)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise SettingError for a command or a value that is not one of the choices."""
        choices = list(map(str, action.choices or ()))
        if not choices or value in choices:
            return
        expected = f"a value of {action.option_strings[0]}" if action.option_strings else f"a {action.metavar}".lower()
        question = did_you_mean(str(value), choices)
        remedy = f"{question} Choose from {', '.join(choices)}." if question else f"Choose from {', '.join(choices)}."
        raise SettingError(f"{quote(str(value))} is not {expected}.", remedy)


def add_text_options(command: Parser) -> None:
    """Add the options for a text, a second text, and the model."""
    command.add_argument("text", metavar="TEXT", help='the sentence; "-" reads it from stdin')
    command.add_argument("--pair", default="", metavar="TEXT", help="a second sentence, read together with the first")
    add_model_option(command)
    add_model_name_option(command, "--name")


def add_model_option(command: Parser) -> None:
    """Add --model."""
    help_text = f"{MODEL_HELP} (default: {catalog.DEFAULT})"
    command.add_argument("--model", default=catalog.DEFAULT, metavar="NAME", help=help_text)


def add_most_option(command: Parser, low: int, high: int, default: int, unit: str = "sentences to read") -> None:
    """Add --most, the maximum number of sentences to read, from ``low`` to ``high``.

    ``unit`` describes these sentences in the help text.
    """
    help_text = f"maximum number of {unit}: of N, every ⌈N / NUMBER⌉-th is taken (default: {default})"
    parse_most = make_int_parser(low, high, "a number of sentences")
    command.add_argument("--most", type=parse_most, default=default, metavar="NUMBER", help=help_text)


def add_model_name_option(command: Parser, *options: str) -> None:
    """Add --model-name, also under other ``options``."""
    help_text = "name of the model in captions and files (default: its id on the Hub, or the name in its config)"
    command.add_argument(*options, "--model-name", dest="model_name", default="", metavar="NAME", help=help_text)


def add_device_option(command: Parser) -> None:
    """Add --device."""
    help_text = "where the model runs: cpu, or cuda for an NVIDIA GPU, cuda:1 for the second (default: cpu)"
    command.add_argument("--device", default="cpu", type=parse_device, metavar="DEVICE", help=help_text)


def add_dtype_option(command: Parser) -> None:
    """Add --dtype."""
    help_text = (
        f"the type of the model's weights: {', '.join(DTYPES)}; the last two take half the memory and slightly change "
    )
    help_text += f"numbers (default: {DTYPES[0]})"
    command.add_argument("--dtype", default=DTYPES[0], choices=DTYPES, metavar="TYPE", help=help_text)


def parse_device(value: str) -> str:
    """Parse the name of a device, without checking whether this machine has it."""
    if not re.fullmatch(r"cpu|cuda(:[0-9]{1,3})?", value):
        raise argparse.ArgumentTypeError(f"{quote(value)} is not a device; expected cpu, cuda or cuda:1")
    return value


def add_output_options(command: Parser, formats: Iterable[str], required: bool = True) -> None:
    """Add --out and --format."""
    names = ", ".join(formats)
    help_text = f'the file to write; its suffix sets the format: {names}. "-" is stdout, in the --format given'
    command.add_argument("--out", required=required, metavar="FILE", help=help_text)
    help_text = "the format, such as csv, for stdout or a file without a suffix"
    command.add_argument("--format", metavar="FORMAT", help=help_text)


def parse_head(value: str) -> Head:
    """Parse the name of a head."""
    try:
        return Head.parse(value)
    except UnknownHead as error:
        question = suggest_head(value) or error.remedy
        raise argparse.ArgumentTypeError(f"{error.problem} {question}") from None


def parse_folder(value: str) -> Path:
    """Parse a folder name."""
    if not value:
        raise argparse.ArgumentTypeError("the folder has no name; “.” is the current folder")
    return Path(value)


def parse_float(value: str) -> float:
    """Parse a number."""
    try:
        return float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{quote(value)} is not a number") from None


def make_int_parser(low: int, high: int, description: str) -> Callable[[str], int]:
    """Return a function that parses a whole number from ``low`` to ``high``; ``description`` names it in errors."""

    def parse(value: str) -> int:
        if not (value.isascii() and value.isdigit() and low <= int(value[:9]) <= high):
            raise argparse.ArgumentTypeError(
                f"{quote(value)} cannot be used; expected {description} from {low} to {high}"
            )
        return int(value[:9])

    return parse


parse_count = make_int_parser(0, 10_000_000, "a whole number")
parse_batch = make_int_parser(1, 1_000_000, "a number of tokens")
parse_port = make_int_parser(1, 65535, "a port")
parse_columns = make_int_parser(1, 16, "a number of columns")
