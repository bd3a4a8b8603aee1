"""Small functions that several pages share."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

import streamlit as st
from streamlit.errors import FragmentHandledException

from mha_viz.analysis.findings import DOCUMENTS, parse_whole_number
from mha_viz.attention import Head
from mha_viz.errors import Fault, MhaVizError, UnknownHead
from mha_viz.figures.drawing.marks import Drawing
from mha_viz.figures.drawing.theme import DARK, LIGHT, Theme
from mha_viz.figures.words.role_words import mark_few_documents
from mha_viz.files.assets import asset_path

_LOG = logging.getLogger(__name__)
TITLE_LENGTH = 40  # maximum characters of a sentence in a page title
PERCENT = "%.1f%%"  # the format of a table column, like numerals.percent
UNEXPECTED = "Something unexpected went wrong."


def get_theme() -> Theme:
    """Return the colours of the page."""
    return DARK if st.context.theme.type == "dark" else LIGHT


def set_title(*words: str) -> None:
    """Set the title of the browser's tab, most specific words first.

    Tabs, bookmarks and history entries can then be told apart.
    """
    st.set_page_config(page_title=" · ".join([*words, "mha_viz"]))


def quote_for_title(text: str) -> str:
    """Return the beginning of a typed text in quotation marks, for a title."""
    line = " ".join(text.split())
    return f"“{line[:TITLE_LENGTH]}…”" if len(line) > TITLE_LENGTH else f"“{line}”"


def show_error(error: MhaVizError, fallback_note: str = "") -> None:
    """Show an error: what happened, what to do about it and, in ``fallback_note``, what is shown instead."""
    _write_note("problem", "alert", error.problem, f"{error.remedy} {fallback_note}".strip())


def show_error_later(error: MhaVizError) -> None:
    """Store an error from a callback, which cannot draw; :func:`show_pending_error` shows it in the next run."""
    st.session_state["complaint"] = error


def show_pending_error() -> None:
    """Show the error of the last callback, if there was one."""
    error = st.session_state.pop("complaint", None)
    if isinstance(error, MhaVizError):
        show_error(error)


@contextmanager
def report_errors(show: Callable[[MhaVizError], None] = show_error_later) -> Iterator[None]:
    """Report an error inside the block in one sentence, and keep the page.

    Use it for every callback (``@report_errors()``) and, with ``show_error``, for code that draws. Streamlit's own
    exceptions, which end a run, pass through.
    """
    try:
        yield
    except MhaVizError as error:
        show(error)
    except FragmentHandledException:  # already reported
        raise
    except Exception:
        _LOG.exception(UNEXPECTED)
        show(make_fault())


def make_fault() -> Fault:
    """Return the error that is shown for an unexpected exception."""
    return Fault(UNEXPECTED, "Nothing you typed is lost. Try something else, or reload the page.")


def read_sent_value(component: str, event: str) -> object:
    """Return the value that a component sent to its callback; None if there is none."""
    return getattr(st.session_state.get(component), event, None)


def read_message(component: str, event: str) -> dict[str, Any]:
    """Return the object that a component sent to its callback; empty if there is none."""
    value = read_sent_value(component, event)
    return value if isinstance(value, dict) else {}


def read_control_number(key: str) -> int | None:
    """Return the whole number in a control; None for another value, which only a forged message can contain."""
    return parse_browser_number(st.session_state.get(key))


def parse_browser_number(value: object) -> int | None:
    """Return a whole number received from a browser, where all numbers have one type; None for anything else."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0 else None


def parse_picked_head(selection: Any) -> Head | None:
    """Return the head whose mark was clicked in a chart; None if there is none or the message is malformed."""
    try:
        return Head.parse(str(selection["selection"]["points"][0]["customdata"]))
    except (KeyError, IndexError, TypeError, UnknownHead):
        return None


def show_remark(text: str) -> None:
    """Show a sentence about the picture, for example that the text was cut or that another model is shown."""
    _write_note("remark", "status", text)


def _write_note(kind: str, role: str, *sentences: str) -> None:
    """Show text that may contain user input, which is escaped and never rendered as Markdown or HTML.

    W_Q, d_k and the like are set as formulas. Names of settings in Python and on the command line are left out.
    """
    lines = "".join(f"<p>{_SYMBOLS.sub(_to_subscript, escape(_OPTION_NOTE.sub('', s)))}</p>" for s in sentences if s)
    st.html(f'<div class="mha-{kind}" role="{role}">{lines}</div>')


def show_drawing(drawing: Drawing, width: int) -> None:
    """Show a drawing as an image that is ``width`` pixels wide and scrolls where it does not fit.

    Its ``alt`` says what it shows.
    """
    from mha_viz.figures.files.preview import (
        render_preview,  # imports fontTools, which the first picture must not wait for
    )

    source = base64.b64encode(render_preview(drawing)).decode()
    st.html(
        f'<div class="mha-drawing" tabindex="0" role="img" aria-label="{escape(drawing.alt)}">'
        f'<img alt="" width="{width}" src="data:image/svg+xml;base64,{source}"></div>'
    )


def escape_markdown(text: str) -> str:
    """Escape every character of ``text`` that has a meaning in Markdown."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()<>#+-.!|$~:" else c for c in text)


def report_ignored(parts: Sequence[str], replacement: str = "") -> None:
    """Say which parts of the link were ignored, if any, and that ``replacement`` is shown."""
    if parts:
        show_remark(f"Ignored in this link: {', '.join(parts)}{replacement and f'; {replacement} is shown'}.")


_OPTION_NOTE = re.compile(r" \(\w+=[^)]*--[^)]*\)")
_SYMBOLS = re.compile(r"(?<![\w$])(?:W\\?_(?P<matrix>[QKVO])|d\\?_(?P<width>model|k))(?![\w}])")


def format_formulas(markdown: str) -> str:
    """Write W_Q, W_K, W_V, W_O, d_model and d_k in ``markdown`` as formulas, as on every page.

    The text must not contain TeX.
    """
    return _SYMBOLS.sub(_to_tex, markdown)


def _to_tex(symbol: re.Match[str]) -> str:
    if symbol["matrix"]:
        return f"$W_{symbol['matrix']}$"
    return r"$d_{\text{model}}$" if symbol["width"] == "model" else "$d_k$"


def _to_subscript(symbol: re.Match[str]) -> str:
    letter, index = ("W", symbol["matrix"]) if symbol["matrix"] else ("d", symbol["width"])
    return f"<i>{letter}</i><sub>{index}</sub>"


def to_percentages(table: Any, names: Iterable[str]) -> Any:
    """Return a copy of ``table`` with the columns ``names`` in percent, for the format PERCENT.

    A column ``few`` marks rows with few documents.
    """
    percentages = table.assign(**{name: 100 * table[name] for name in names})
    if any(marks := mark_few_documents(map(parse_whole_number, table.get(DOCUMENTS, ())))):
        percentages.insert(table.columns.get_loc(DOCUMENTS) + 1, "few", marks)
    return percentages


def read_text_asset(name: str) -> str:
    """Return the Markdown text in a file of ``assets/``."""
    return asset_path(name).read_text("utf-8")
