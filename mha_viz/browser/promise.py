"""The browsers that all pages are written for, and what an older one is told in place of an empty page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from types import MappingProxyType

from mha_viz.browser.bundle import build_page_style

# The first versions that have every feature that the pages use, by the engines' lists of features.
PROMISED: Mapping[str, float] = MappingProxyType({"Firefox": 128, "Chrome and Edge": 123, "Safari": 17.5})
VERSIONS = ", ".join(f"{name} {version:g}" for name, version in PROMISED.items())
OLDER = f"This browser is too old for this page, which is written for {VERSIONS} and later. Open it in a newer one."


def render_older_note() -> str:
    """Return the sentence as an element, which the style sheet ``older`` hides in a browser that is new enough."""
    return f'<p class="mha-older">{escape(OLDER)}</p>\n'


def render_older_note_with_style() -> str:
    """Return the sentence with its style sheet, for a page that lacks it."""
    return f"<style>{build_page_style('older')}</style>\n{render_older_note()}"
