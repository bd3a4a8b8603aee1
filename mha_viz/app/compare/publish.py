"""Publish the heads on the page, with remarks, as one web page in one file."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

import streamlit as st

from mha_viz import figures as figure_api
from mha_viz.app.url import address
from mha_viz.app.widgets import download_panel
from mha_viz.app.widgets.download_panel import PanelView
from mha_viz.app.widgets.parts import report_errors
from mha_viz.figures.file_names import name_for_heads
from mha_viz.figures.layout.caption import name_in_model
from mha_viz.figures.layout.panels import Panel
from mha_viz.figures.publishing import MAX_REMARK, MAX_TITLE, TITLE
from mha_viz.text import clean

REMARKS_KEY = "publish_remarks"  # session key: the typed texts by field, which are stored nowhere else
MAX_REMARKS = 64  # maximum number of remarks per visit


def show_publishing(panel_view: PanelView) -> None:
    """Show the expander with a title, a remark on each head, and the button that creates the file."""
    if address.is_class_view():
        return
    with st.expander("Publish as one web page", on_change="rerun", key="publish", icon=":material/public:") as box:
        if not box.open:
            return
        st.markdown("One interactive HTML file that works offline. Your remarks are kept for this visit only.")
        title = _ask_text("title", "Title", MAX_TITLE, TITLE)
        introduction = _ask_text("introduction", "Introduction", MAX_REMARK)
        texts: dict[str, str] = {}
        for number, panel in enumerate(panel_view.panels, 1):
            if _make_field_name(panel) not in texts:  # a head may be on the page twice
                texts[_make_field_name(panel)] = _ask_text(
                    _make_field_name(panel), f"Remark on panel {number}, {_name_panel(panel)}", MAX_REMARK
                )
        remarks = [texts[_make_field_name(panel)] for panel in panel_view.panels]
        make_file = partial(
            figure_api.publication,
            list(panel_view.panels),
            title=title,
            introduction=introduction,
            remarks=remarks,
            pin_of=panel_view.pin_of,
            diff=panel_view.pair,
            **asdict(panel_view.view),
        )
        name = name_for_heads([(panel.attention, panel.head) for panel in panel_view.panels], "page")
        download_panel.show_download_button("Download the page (HTML)", f"{name}.html", make_file, "publish_page")


def _name_panel(panel: Panel) -> str:
    name = name_in_model(panel.attention, panel.head)
    return f"{name}, {panel.name}" if panel.name else name


def _make_field_name(panel: Panel) -> str:
    """Return the key of the remark on a panel.

    It identifies the head and the reading, so the remark stays with the head wherever it is on the page.
    """
    return f"{panel.attention.key}_{panel.head}"


def _ask_text(field: str, label: str, max_chars: int, default: str = "") -> str:
    """Show a text field that keeps its content when the visitor leaves the page, and return the text."""
    key = f"publish_{field}"
    st.session_state[key] = _load_texts().get(field, default)
    widget = st.text_input if field == "title" else st.text_area
    return clean(str(widget(label, key=key, max_chars=max_chars, on_change=_save_text, args=(field,)) or ""))[
        :max_chars
    ]


def _load_texts() -> dict[str, str]:
    texts: dict[str, str] = st.session_state.setdefault(REMARKS_KEY, {})
    return texts


@report_errors()
def _save_text(field: str) -> None:
    texts = _load_texts()
    texts.pop(field, None)
    texts[field] = str(st.session_state.get(f"publish_{field}", ""))[:MAX_REMARK]
    while len(texts) > MAX_REMARKS:
        del texts[next(iter(texts))]
