"""Publishing: the heads on the page with remarks on them, as one web page in one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

import streamlit as st

from mha_viz import figure as figure_api
from mha_viz.figure.publication import MOST_REMARK, MOST_TITLE, TITLE
from mha_viz.figures.caption import named
from mha_viz.figures.panels import Panel
from mha_viz.figures.view import View
from mha_viz.text import clean
from mha_viz.ui import address, download_panel
from mha_viz.ui.parts import guarded

REMARKS = "publish_remarks"  # in the session: the typed texts by field, which are stored nowhere else
MOST_REMARKS = 64  # remarks per visit


def show_publishing(panels: Sequence[Panel], view: View, pin_of: int, diff: tuple[int, int] | None) -> None:
    """The expander: a title, a remark on each head, and the button that makes the file. ``diff``: the two panels whose
    difference is open."""
    if address.in_class():
        return
    with st.expander("Publish as one web page", on_change="rerun", key="publish", icon=":material/public:") as box:
        if not box.open:
            return
        st.markdown("One interactive HTML file that needs no network. Your remarks are kept for this visit only.")
        title = _typed("title", "Title", MOST_TITLE, TITLE)
        introduction = _typed("introduction", "Introduction", MOST_REMARK)
        typed: dict[str, str] = {}
        for number, panel in enumerate(panels, 1):
            if _field(panel) not in typed:  # a head may be on the page twice
                typed[_field(panel)] = _typed(_field(panel), f"On panel {number}, {_name(panel)}", MOST_REMARK)
        remarks = [typed[_field(panel)] for panel in panels]
        make = partial(
            figure_api.publication,
            list(panels),
            title=title,
            introduction=introduction,
            remarks=remarks,
            pin_of=pin_of,
            diff=diff,
            **asdict(view),
        )
        download_panel.download("Download the page, HTML", "attention-heads.html", make, "publish_page")


def _name(panel: Panel) -> str:
    name = named(panel.attention, panel.head)
    return f"{name}, {panel.name}" if panel.name else name


def _field(panel: Panel) -> str:
    """The key of a panel's remark, which belongs to the head of a reading at any place on the page."""
    return f"{panel.attention.key}_{panel.head}"


def _typed(field: str, label: str, most: int, first: str = "") -> str:
    """A text field that keeps its content when the visitor leaves the page."""
    key = f"publish_{field}"
    st.session_state[key] = _texts().get(field, first)
    place = st.text_input if field == "title" else st.text_area
    return clean(str(place(label, key=key, max_chars=most, on_change=_keep, args=(field,)) or ""))[:most]


def _texts() -> dict[str, str]:
    texts: dict[str, str] = st.session_state.setdefault(REMARKS, {})
    return texts


@guarded()
def _keep(field: str) -> None:
    texts = _texts()
    texts.pop(field, None)
    texts[field] = str(st.session_state.get(f"publish_{field}", ""))[:MOST_REMARK]
    while len(texts) > MOST_REMARKS:
        del texts[next(iter(texts))]
