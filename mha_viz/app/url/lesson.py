"""Lessons: views in order, each with a teacher's remark, all in one URL parameter.

The parameter ``lesson`` is JSON, ``[[page, query, remark], …]``, deflated and in base64 without padding. The links in
it are similar, so compression reduces them to a third. ``view`` is the number of the open view, from 1. Older links
call it ``part``, which is also the name of the parameter for the part of an encoder–decoder.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from mha_viz.errors import LessonFull
from mha_viz.files.assets import page_files, redirect_address
from mha_viz.text import clean
from mha_viz.view.settings import list_owned_settings

LESSON_PARAMETER, VIEW_PARAMETER, OLD_VIEW_PARAMETER = "lesson", "view", "part"
MAX_VIEWS = 12  # maximum views
MAX_REMARK = 300  # maximum characters of a remark
MAX_ENCODED = 3_000  # maximum characters of the parameter
MAX_DECODED = 30_000  # maximum bytes after decompression; larger values are rejected
MAX_PARAMETERS = 20  # maximum URL parameters of a view
CLASS_PARAMETERS = (LESSON_PARAMETER, VIEW_PARAMETER, "class", "tour", "before", "reveal")  # never part of a view
_SUBJECT_PARAMETERS = ("text", "pair", "model", "show", "experiment", "task")  # the subject of a view
_ANSWER_PARAMETERS = ("place", "word", "second")  # parameters of the question to the model
# Parameters that only these pages read, in addition to the settings of drawings (mha_viz.view). Links to other pages
# also contain them; a lesson's views of other pages do not.
_PAGE_PARAMETERS = {
    "explore": (*_ANSWER_PARAMETERS, "gold", "case", "written"),
    "compare": (*_ANSWER_PARAMETERS, "show", "with", "path", "like"),
    "roles": ("corpus", "kinds", "relation", "level", "search", "groups"),
    "inside_a_head": ("q", "k", "divide", "costs", "step"),
    "why_heads_differ": (
        *("experiment", "run", "arm", "guess", "step", "removed", "numbers"),
        *("snapshot", "trained", "task", "answer", "beside"),
    ),
}


class LessonView(NamedTuple):
    """A view of a lesson: the page by its name in the URL, its URL parameters, and the teacher's remark."""

    page: str
    parameters: Mapping[str, str]
    remark: str


Lesson = tuple[LessonView, ...]


def read(value: str | None) -> tuple[Lesson, bool]:
    """Return the lesson in a URL, and whether all of it could be read. Never raises."""
    if not value:
        return (), True
    entries = _decode_entries(value) if len(value) <= MAX_ENCODED else None
    if entries is None:
        return (), False
    views = [_parse_view(entry) for entry in entries[: 4 * MAX_VIEWS]]
    valid_views = [view for view in views if view is not None]
    return tuple(valid_views[:MAX_VIEWS]), len(valid_views) == len(entries) <= MAX_VIEWS


def _decode_entries(value: str) -> list[Any] | None:
    with suppress(ValueError, binascii.Error, zlib.error, RecursionError):
        compressed = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
        decompressor = zlib.decompressobj()
        text = decompressor.decompress(compressed, MAX_DECODED)
        entries = json.loads(text) if decompressor.eof else None
        return entries if isinstance(entries, list) else None
    return None


def _parse_view(entry: Any) -> LessonView | None:
    with suppress(ValueError, TypeError):
        page, query, remark = entry
        if isinstance(page, str) and isinstance(query, str) and isinstance(remark, str):
            pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
            page, parameters = redirect_address(page, dict(pairs))
            if page in page_files():
                return LessonView(page, _select_own_parameters(page, parameters), clean(remark)[:MAX_REMARK])
    return None


def list_foreign_parameters(page: str) -> set[str]:
    """Return the parameters that are read by other pages only."""
    page_parameters = {name: {*names, *list_owned_settings(name)} for name, names in _PAGE_PARAMETERS.items()}
    return set[str]().union(*page_parameters.values()) - page_parameters.get(page, set())


def _select_own_parameters(page: str, parameters: Mapping[str, str]) -> dict[str, str]:
    foreign_names = list_foreign_parameters(page)
    if page == "inside_a_head" and parameters.get("step", "").isdecimal():  # a training step, of another page
        foreign_names.add("step")
    return {name: value for name, value in parameters.items() if name not in foreign_names.union(CLASS_PARAMETERS)}


def write(lesson: Sequence[LessonView]) -> str | None:
    """Return the value of the URL parameter; None for a lesson without views, so that the parameter is removed."""
    if not lesson:
        return None
    entries = [[view.page, urlencode(view.parameters), view.remark] for view in lesson]
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(zlib.compress(text.encode("utf-8", "replace"), 9)).rstrip(b"=").decode()


def add(lesson: Lesson, page: str, parameters: Mapping[str, str], remark: str) -> Lesson:
    """Return the lesson with a view appended. Raises LessonFull."""
    new_lesson = (
        *lesson,
        LessonView(page, _select_own_parameters(page, parameters), " ".join(clean(remark).split())[:MAX_REMARK]),
    )
    if len(new_lesson) > MAX_VIEWS:
        raise LessonFull(f"A lesson has at most {MAX_VIEWS} views.", "Remove one of them first.")
    if len(write(new_lesson) or "") > MAX_ENCODED:
        raise LessonFull(
            "A lesson is kept in one link, and its views and remarks are together too long for it.",
            "Shorten the remark, or remove a view with a long text.",
        )
    return new_lesson


def remove(lesson: Lesson, number: int) -> Lesson:
    """Return the lesson without view ``number``, counted from 1."""
    return (*lesson[: number - 1], *lesson[number:]) if 1 <= number <= len(lesson) else lesson


def move(lesson: Lesson, number: int, position: int) -> Lesson:
    """Return the lesson with view ``number`` moved to place ``position``, both counted from 1.

    Numbers out of range change nothing.
    """
    if not {number, position} <= {*range(1, len(lesson) + 1)}:
        return lesson
    other_views = remove(lesson, number)
    return (*other_views[: position - 1], lesson[number - 1], *other_views[position - 1 :])


def has_left(view: LessonView, page: str, parameters: Mapping[str, str], shown_parameters: Mapping[str, str]) -> bool:
    """Return whether the visitor has left a view: whether another page or another subject is open.

    ``shown_parameters`` holds the URL's parameters and the defaults that the page opens.
    """
    names = [
        name for name in _SUBJECT_PARAMETERS if name in {**view.parameters, **_select_own_parameters(page, parameters)}
    ]
    return page != view.page or any(shown_parameters.get(name) != view.parameters.get(name) for name in names)


def is_old_number(parameters: Mapping[str, str]) -> bool:
    """Return whether ``part`` is the number of a view, as in older links to lessons."""
    return LESSON_PARAMETER in parameters and parameters.get(OLD_VIEW_PARAMETER, "").isdecimal()


def read_number(parameters: Mapping[str, str], lesson: Lesson) -> int | None:
    """Return the number of the open view, from 1; None if the URL names no view of this lesson."""
    value = parameters.get(VIEW_PARAMETER) or (parameters[OLD_VIEW_PARAMETER] if is_old_number(parameters) else "")
    return int(value) if value in map(str, range(1, len(lesson) + 1)) else None
