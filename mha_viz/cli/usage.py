"""Reword errors of argparse and the library for the command line, and recognise heads in other notations."""

from __future__ import annotations

import argparse
import re

from mha_viz.heads import Head
from mha_viz.quotes import shorten
from mha_viz.view.settings import OPTIONS

# A Python setting with its value at the beginning of a message; the name of a setting anywhere in it.
_SETTING_VALUE = re.compile(r"^([a-z]+(?:_[a-z]+)*) is (?:'([^']*)'|\"([^\"]*)\"|([-+\w.]+))(?=[.,:]( |$))")
_SETTING_NAME = re.compile(r"\b(width_mm|width_in|max_height_mm|font_pt)\b")
_ASSIGNMENT = re.compile(rf'\b({"|".join(OPTIONS)})="([^"]*)"')
_KEYWORDS = re.compile(r"\(\w+=[^)]*?, (?=--)")  # of "(score=, --score)"
_MAX_ARGUMENT = 100  # characters of an argument that a message repeats


def reword_as_options(message: str) -> str:
    """Replace Python keyword arguments in a message of the library by command-line options."""
    match = _SETTING_VALUE.match(message)
    if match:
        quoted = match[2] or match[3] or ""
        message = f"{_option_name(match[1])} is {match[4] or f'“{quoted}”'}{message[match.end() :]}"
    message = _ASSIGNMENT.sub(lambda match: f"{_option_name(match[1])} {match[2]}", message)
    return re.sub(_SETTING_NAME, lambda match: _option_name(match[1]), message)


def drop_keywords(message: str) -> str:
    """Remove Python keyword arguments from a message of the library that also names the options."""
    return _KEYWORDS.sub("(", message)


def _option_name(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def reword_argparse(message: str, parser: argparse.ArgumentParser) -> str:
    """Turn an error message of argparse into a sentence."""
    subject, _, detail = message.partition(": ")
    if subject == "the following arguments are required":
        names = detail.split(", ")  # of the command itself, or of its arguments
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction) and action.metavar in names:
                return f"No {str(action.metavar).lower()} was given. Choose from {', '.join(action.choices)}."
        return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} missing."
    if subject == "unrecognized arguments" and detail.startswith("-"):
        option = shorten(detail.split()[0], _MAX_ARGUMENT)
        hint = " Options of Streamlit follow “--”: mha-viz serve -- --server.port 8600." if "." in option else ""
        return f"There is no option {option}.{hint}"
    if subject == "unrecognized arguments":
        return f"There are more arguments than expected: {shorten(detail, _MAX_ARGUMENT)}. Put text in quotation marks."
    argument = subject.removeprefix("argument ")
    if detail.startswith("expected "):
        return f"{argument} needs a value."
    if detail.startswith("not allowed with argument "):
        return f"{argument} does not go with {detail.removeprefix('not allowed with argument ')}."
    sentence = f"{argument}: {detail}" if detail else message[:1].upper() + message[1:]
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."


def suggest_head(name: str) -> str:
    """Suggest a head for a name in another notation.

    Papers count from 1, as in 4-2; others write 3.1 or layer 3 head 1.
    """
    paper_name = re.fullmatch(r"\s*([1-9]\d{0,2})-([1-9]\d{0,2})\s*", name, re.ASCII)
    if paper_name:
        head = Head(int(paper_name[1]) - 1, int(paper_name[2]) - 1)
        return f"Did you mean {head}, which papers write as {paper_name[0].strip()}?"
    numbers = re.findall(r"\d+", name, re.ASCII)
    if len(numbers) == 2 and all(len(number) <= 3 for number in numbers):
        return f"Did you mean {Head(int(numbers[0]), int(numbers[1]))}?"
    return ""
