"""The parser, options that several commands share, and the types of their values."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NoReturn

from mha_viz.errors import SettingError
from mha_viz.models import catalog


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, where argparse would print its usage first."""
        raise SettingError(f"{message[:1].upper()}{message[1:].rstrip('.')}.", f"See {self.prog} --help.")


def text_options(command: Parser) -> None:
    """A text, a second one, and the model that reads them."""
    command.add_argument("text", metavar="TEXT", help='the sentence; "-" reads it from stdin')
    command.add_argument("--pair", default="", metavar="TEXT", help="a second sentence, read together with the first")
    command.add_argument(
        "--model", default=catalog.DEFAULT, metavar="NAME", help="a name of `mha-viz models`, a Hub id or a folder"
    )


def named(given: str) -> Path:
    """A folder's name."""
    if not given:
        raise argparse.ArgumentTypeError("the folder has no name; “.” is the one you are in")
    return Path(given)


def number(given: str) -> float:
    """A number."""
    try:
        return float(given)
    except ValueError:
        raise argparse.ArgumentTypeError(f"“{given[:40]}” is not a number") from None


def dpi(given: str) -> int:
    """A resolution, dots per inch."""
    if not (given.isascii() and given.isdigit() and 20 <= int(given[:6]) <= 2400):
        raise argparse.ArgumentTypeError(f"“{given[:40]}” is not a resolution; expected 20 to 2400")
    return int(given)


def count(given: str) -> int:
    """A whole number."""
    if not (given.isascii() and given.isdigit() and int(given[:9]) <= 10_000_000):
        raise argparse.ArgumentTypeError(f"“{given[:40]}” is not a whole number from 0 to 10 million")
    return int(given)


def batch(given: str) -> int:
    """A number of pieces."""
    if not (given.isascii() and given.isdigit() and 1 <= int(given[:9]) <= 1_000_000):
        raise argparse.ArgumentTypeError(f"“{given[:40]}” is not a size; expected 1 to 1000000 pieces")
    return int(given)


def port_number(given: str) -> int:
    """A port."""
    if not (given.isascii() and given.isdigit() and 0 < int(given[:9]) < 65536):
        raise argparse.ArgumentTypeError(f"“{given[:40]}” is not a port; expected a number from 1 to 65535")
    return int(given)
