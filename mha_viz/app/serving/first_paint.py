"""Show the page names and, on pages with a sentence, the sentence, until Streamlit draws the page."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from urllib.parse import parse_qs

from mha_viz.browser.bundle import build_page_style
from mha_viz.files.assets import asset_path, page_files
from mha_viz.text import clean

SENTENCE_PAGES = ("", "explore", "inside_a_head")
MAX_CHARACTERS = 400  # maximum characters of the sentence


def draw_first_paint(path: str, query: bytes) -> str:
    """Return the first paint as HTML with a style sheet, which hides it once the page shows its own navigation.

    Args:
        path: the path of the page below that of the server; "" for the first page.
        query: the query of the address, percent-encoded. Its text is escaped.
    """
    parameters = parse_qs(query.decode("latin-1"), keep_blank_values=True)
    sentence = (
        clean(parameters.get("text", [_load_first_sentence()])[-1])[:MAX_CHARACTERS] if path in SENTENCE_PAGES else ""
    )
    sentence_html = f"<p>{escape(sentence)}</p>" if sentence.strip() else ""
    names = "" if parameters.get("class", [""])[-1] == "1" else _draw_names(path)
    css_class = "mha-first" if "text" in parameters or path else "mha-first new"
    style = f"<style>{build_page_style('first_paint')}</style>"
    return f'{style}\n<div class="{css_class}" aria-hidden="true">{names}{sentence_html}</div>\n'


def _draw_names(path: str) -> str:
    first, *_ = names = [*page_files()]
    current_page = path or first
    titles = ((name, name.replace("_", " ").capitalize()) for name in names)
    items = "".join(f"<i{' class=here' if name == current_page else ''}>{title}</i>" for name, title in titles)
    return f"<header><b>mha_viz</b>{items}</header>"


@cache
def _load_first_sentence() -> str:
    text: str = json.loads(asset_path("examples.json").read_text("utf-8"))[0]["text"]
    return text
