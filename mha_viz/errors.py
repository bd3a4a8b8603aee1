"""The errors that users can cause, with a common base class.

Each error consists of two sentences: what happened (with the given value) and what to do about it. The app shows both
in place, the command line prints them on one line, and a notebook shows them as the message.
"""

from __future__ import annotations

import itertools
import os
import reprlib
import sys
import warnings
from collections import abc
from math import log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Busy",
    "Cancelled",
    "ClusterError",
    "ClusterMissing",
    "ComparisonFull",
    "CorpusError",
    "CorpusMissing",
    "EmptyText",
    "EvidenceMissingWarning",
    "ExportError",
    "Failed",
    "Fault",
    "FigureWarning",
    "LessonFull",
    "MeansMissing",
    "MhaVizError",
    "MissingGlyphWarning",
    "ModelBroken",
    "ModelError",
    "ModelMissing",
    "ModelNotAllowed",
    "ModelUnreachable",
    "ModelUnsupported",
    "NeedsOneStack",
    "OpenError",
    "ReadingFailed",
    "ResultUnreadable",
    "RunFailed",
    "SettingError",
    "ShapeError",
    "StudyFailed",
    "SumsUnsavedWarning",
    "TextCutWarning",
    "TextError",
    "TooLarge",
    "TooSlow",
    "UnknownHead",
    "UnknownModel",
]


class MhaVizError(Exception):
    """The base class of all errors. ``problem`` says what happened, ``remedy`` what to do."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem} {self.remedy}".strip()


class FigureWarning(UserWarning):
    """A saved figure is incomplete, is higher than a page, or has letters too small to print."""


class TextError(MhaVizError):
    """The text cannot be read."""


class EmptyText(TextError):
    """Nothing was typed, or nothing that the tokenizer keeps."""


class ShapeError(MhaVizError):
    """Attention weights, tokens or a head do not fit together."""


class UnknownHead(ShapeError):
    """The model does not have this head, or the name is not that of a head."""


class ModelError(MhaVizError):
    """A model cannot be used."""


class UnknownModel(ModelError):
    """The name is not in the catalogue, not a valid Hub id and not a model folder."""


class ModelNotAllowed(ModelError):
    """This server offers a fixed list of models, and the name is not on it."""


class ModelUnreachable(ModelError):
    """The Hub did not answer, stalled, or does not have the model."""


class ModelMissing(ModelUnreachable):
    """The Hub answered that it has no such model, or the package that holds the model is not installed."""


class ModelUnsupported(ModelError):
    """The model exists but cannot be drawn: it is gated, is too large, needs custom code, or has no safetensors."""


class ModelBroken(ModelError):
    """The files of the model are damaged or do not fit together."""


class Cancelled(MhaVizError):
    """The user cancelled the work."""


class Busy(MhaVizError):
    """Too many jobs are waiting, for the model process or for other work, or this visitor already has another job."""


class Failed(MhaVizError):
    """Work ended without a result."""


class TooSlow(Failed):
    """The work took longer than allowed."""


class TooLarge(Failed):
    """The work needs more memory or time than allowed, or its result is too large."""


class ReadingFailed(Failed):
    """The process that runs models ended, took too long, or hit a bug in the model's library."""


class MeansMissing(ReadingFailed):
    """The process that runs models lacks some or all mean outputs of the heads."""


class StudyFailed(Failed):
    """A study of a corpus failed unexpectedly."""


class RunFailed(Failed):
    """A training run of the lab failed unexpectedly."""


class ExportError(MhaVizError):
    """A file cannot be written: unknown suffix, unwritable path."""


class OpenError(MhaVizError):
    """A saved reading cannot be opened: it does not exist, is damaged, or is another kind of file."""


class ClusterError(MhaVizError):
    """A cluster cannot be reached, stopped answering, or failed to do its work."""


class ClusterMissing(ClusterError):
    """The library for clusters is not installed."""


class CorpusError(MhaVizError):
    """An annotated text cannot be read: the message names the line."""


class CorpusMissing(CorpusError):
    """The file of an annotated text does not exist."""


class ResultUnreadable(MhaVizError):
    """A file is not the result of an experiment of the lab."""


class LessonFull(MhaVizError):
    """A lesson has no room for another view."""


class NeedsOneStack(ModelUnsupported, AttributeError):
    """The model has two stacks of layers, but the request needs a model with one.

    It is also an AttributeError, because the model lacks the attribute.
    """


class ComparisonFull(MhaVizError):
    """The list of compared heads is full."""


class Fault(MhaVizError):
    """An unexpected error. The server's log has the traceback; the page shows one sentence."""


class SettingError(MhaVizError):
    """A setting (URL, environment, command line) has a value outside its range."""


LOADED_KIND = ("a loaded model", "Give the result of mv.load('minilm').")  # the expected kind, and the remedy
READING_KIND = ("a reading", "Give the result of mv.load('minilm').encode('…').")
PROFILE_KIND = ("a profile", "Give the result of mv.profile(…) or mv.load_profile(…).")
PATH_KIND = ((str, os.PathLike), "a path", "Give the name of a file or folder.")

# Maximum length of a list of heads, layers or panels; no model has as many layers, or heads per layer.
MAX_ITEMS = 10_000
_LONG_COLLECTION = 1_000  # of a longer collection, only the number of items is shown
_NESTED_REPR = reprlib.Repr()  # limits the depth of nested lists, even of those that contain themselves
_NESTED_REPR.maxlevel, _NESTED_REPR.maxstring = 3, 80
_NESTED_REPR.maxlist = _NESTED_REPR.maxtuple = _NESTED_REPR.maxdict = 10


def shorten_value(value: object, max_length: int = 40) -> str:
    """Return the beginning of any value as text, at most ``max_length`` characters, however large the value is."""
    kind = type(value)
    try:
        if isinstance(value, str):
            return value[:max_length]
        if isinstance(value, int) and value.bit_length() > 4 * max_length:
            return f"a number of {int(value.bit_length() * log10(2)) + 1:,} digits"[:max_length]
        if kind in (list, tuple, dict, set, frozenset):
            return _NESTED_REPR.repr(value)[:max_length]
        if isinstance(value, abc.Collection) and not hasattr(value, "shape") and len(value) > _LONG_COLLECTION:
            return f"{kind.__name__} of {len(value):,}"[:max_length]
        return str(value)[:max_length]
    except Exception:  # a foreign type may raise anything when it is converted to text
        return kind.__name__[:max_length]


def list_items(value: object, name: str, remedy: str, max_items: int = MAX_ITEMS) -> list[Any]:
    """Return the items of a list of at most ``max_items`` items.

    Raises SettingError if there are more, or if ``value`` is not a list.
    """
    try:
        if isinstance(value, (str, bytes, abc.Mapping)) or not isinstance(value, abc.Iterable):
            raise TypeError
        items = [*itertools.islice(value, max_items + 1)]
    except TypeError as error:
        kind = type(value).__name__
        raise SettingError(f"{name} is {shorten_value(value)!r}: {kind}, which is not a list.", remedy) from error
    if len(items) > max_items:
        raise SettingError(f"{name} has more than {max_items:,} entries: {shorten_value(value)}.", remedy)
    return items


def check_kind(value: object, kind: Any, expected: str, remedy: str) -> None:
    """Raise SettingError unless ``value`` is of the ``kind``, which ``expected`` names: "a reading"."""
    if not isinstance(value, kind):
        text = shorten_value(value, 60) if isinstance(value, (int, float)) else repr(shorten_value(value, 60))
        raise SettingError(f"{text} is {type(value).__name__}, not {expected}.", remedy)


def check_items(value: object, kind: Any, expected: str, remedy: str) -> None:
    """Check the kind of each item of a list, as :func:`check_kind` does.

    Raises SettingError, also for a value that is not a list.
    """
    check_kind(value, abc.Collection, "a list", f"{remedy.rstrip('.')}, in a list.")
    assert isinstance(value, abc.Collection)
    for item in value:
        check_kind(item, kind, expected, remedy)


class MissingGlyphWarning(UserWarning):
    """A figure was drawn with boxes in place of characters that no font on this machine has."""


class EvidenceMissingWarning(UserWarning):
    """A profile has roles of a head, but not the sentences that are evidence for them."""


class SumsUnsavedWarning(UserWarning):
    """Partial sums over a corpus could not be saved for a later study."""


class TextCutWarning(UserWarning):
    """A text has more tokens than the model reads, so its end was cut."""


def warn(category: type[UserWarning], message: str) -> None:
    """Issue a warning that points at the innermost line of code outside this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in ("mha_viz", "functools"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
