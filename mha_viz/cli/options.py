"""The parser, options that several commands share, and the types of their values."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NoReturn

from mha_viz.errors import SettingError
from mha_viz.models import catalog


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise SettingError in place of argparse's usage message."""
        raise SettingError(f"{message[:1].upper()}{message[1:].rstrip('.')}.", f"See {self.prog} --help.")


def text_options(command: Parser) -> None:
    """Add the options for a text, a second one, and the model."""
    command.add_argument("text", metavar="TEXT", help='the sentence; "-" reads it from stdin')
    command.add_argument("--pair", default="", metavar="TEXT", help="a second sentence, read together with the first")
    command.add_argument(
        "--model", default=catalog.DEFAULT, metavar="NAME", help="a name from `mha-viz models`, a Hub id or a folder"
    )


def folder_name(value: str) -> Path:
    """Parse a folder name."""
    if not value:
        raise argparse.ArgumentTypeError("the folder has no name; “.” is the current folder")
    return Path(value)


def number(value: str) -> float:
    """Parse a number."""
    try:
        return float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"“{value[:40]}” is not a number") from None


def dpi(value: str) -> int:
    """Parse a resolution in dots per inch."""
    if not (value.isascii() and value.isdigit() and 20 <= int(value[:6]) <= 2400):
        raise argparse.ArgumentTypeError(f"“{value[:40]}” is not a resolution; expected 20 to 2400")
    return int(value)


def count(value: str) -> int:
    """Parse a whole number."""
    if not (value.isascii() and value.isdigit() and int(value[:9]) <= 10_000_000):
        raise argparse.ArgumentTypeError(f"“{value[:40]}” is not a whole number from 0 to 10 million")
    return int(value)


def batch(value: str) -> int:
    """Parse a number of pieces."""
    if not (value.isascii() and value.isdigit() and 1 <= int(value[:9]) <= 1_000_000):
        raise argparse.ArgumentTypeError(f"“{value[:40]}” is not a size; expected 1 to 1000000 pieces")
    return int(value)


def port_number(value: str) -> int:
    """Parse a port number."""
    if not (value.isascii() and value.isdigit() and 0 < int(value[:9]) < 65536):
        raise argparse.ArgumentTypeError(f"“{value[:40]}” is not a port; expected a number from 1 to 65535")
    return int(value)
