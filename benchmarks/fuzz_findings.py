"""Collect failures: error boxes on a page, tracebacks in a log, visitors without an answer."""

from __future__ import annotations

import linecache
import re
from collections import Counter
from dataclasses import dataclass, field

from benchmarks.server import ROOT
from mha_viz.app.widgets.parts import UNEXPECTED
from tests.web_session import WebSession

# A line of this package that calls a widget whose value Streamlit could not read.
_WIDGET = (
    r"\b(st|left|right|place|columns\[\d\])\.(?!query_params|switch_page|session_state)[a-z_]+\("
    r"|\breturn widget\(|_get_renderer\("
)


@dataclass
class Findings:
    """The findings of all visitors."""

    interactions: int = 0
    pages: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    boxes: dict[str, list[str]] = field(default_factory=dict)  # error box: who saw it, and their last actions
    rejections: Counter[str] = field(default_factory=Counter)  # boxes caused by Streamlit's own deserialisers
    faults: list[str] = field(default_factory=list)  # no answer, connection lost, any other error
    closed_connections: int = 0  # connections that the server ended after an invalid message
    missing_files: int = 0  # files that the server had deleted before they could be fetched
    neighbour_actions: int = 0  # actions of the normal visitor
    press_counts: Counter[str] = field(default_factory=Counter)


def count_tracebacks(log: str, is_forgiving: bool = False) -> Counter[str]:
    """Count this program's errors in a server's log, by kind and deepest line in this package.

    If ``is_forgiving``, errors that Streamlit raised while reading a widget's value or a message do not count.
    """
    counts: Counter[str] = Counter()
    for trace in re.findall(r"\| (?:Traceback \(most recent call first\): )?(.* in .*)", log):
        kind, file, line = (re.findall(r"(.*?) at ((?:mha_viz|pages)/[\w/]+\.py):(\d+) in ", trace) or [("", "", "")])[
            0
        ]
        code = linecache.getline(str(ROOT / file), int(line)) if file else ""
        if is_forgiving and (not file or re.search(_WIDGET, code)):
            continue
        counts[f"{kind} [{file}:{line}]" if file else f"{trace[:160]} [no line of ours]"] += 1
    return counts


def record_boxes(
    session: WebSession, number: int, history: list[str], findings: Findings, is_forgiving: bool = False
) -> bool:
    """Record the error boxes on the page, and remove them so that they do not count again.

    Return whether there was one. If ``is_forgiving``, boxes that Streamlit raised while reading a widget's value are
    counted separately, and so is the app's own message about an unexpected error, whose origin is in the log.
    """
    boxes = [e.proto for e in session.elements if e.kind == "exception"]
    is_unexpected = any(UNEXPECTED in text for text in session.texts)
    if is_unexpected and is_forgiving:
        findings.rejections[UNEXPECTED] += 1
    elif is_unexpected:
        findings.boxes.setdefault(UNEXPECTED, []).append(f"visitor {number}: {' → '.join(history[-4:])}"[:900])
    for box in boxes:
        matches = re.findall(r"((?:mha_viz|pages)/[\w/]+\.py)\D+(\d+)(.*\n?.*)", "\n".join(box.stack_trace))
        file, line, code = matches[-1] if matches else ("", "", "")
        name = f"{box.type}: {box.message[:160]} [{file or 'no line of ours'}:{line}]"
        if is_forgiving and not box.is_streamlit_exception and (not file or re.search(_WIDGET, code)):
            findings.rejections[name] += 1
        else:
            page = session.page or "explore"
            findings.boxes.setdefault(name, []).append(f"visitor {number}, {page}: {' → '.join(history[-4:])}"[:900])
    if boxes or is_unexpected:
        session.forget()
    return bool(boxes or is_unexpected)
