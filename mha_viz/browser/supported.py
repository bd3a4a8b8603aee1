"""The oldest supported browsers, and the note that older ones show in place of an empty page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from types import MappingProxyType

from mha_viz.browser.bundle import build_page_style

# The first versions with every feature that the pages use.
MIN_VERSIONS: Mapping[str, float] = MappingProxyType({"Firefox": 128, "Chrome and Edge": 123, "Safari": 17.5})
VERSIONS = ", ".join(f"{name} {version:g}" for name, version in MIN_VERSIONS.items())
TOO_OLD = f"This browser is too old for this page, which is written for {VERSIONS} and later. Open it in a newer one."


def render_old_browser_note() -> str:
    """Return the note as an HTML element, which the style sheet ``older`` hides in browsers that are new enough."""
    return f'<p class="mha-older">{escape(TOO_OLD)}</p>\n'


def render_old_browser_note_with_style() -> str:
    """Return the note with its style sheet, for a page without that style sheet."""
    return f"<style>{build_page_style('older')}</style>\n{render_old_browser_note()}"
