"""Write an interactive drawing as one HTML file, with the app's own components, its data, and no network access.

The page's security policy allows only its own script, identified by its hash, and no requests. The data is in the page
as JSON with all markup characters escaped; tokens become text nodes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import tomllib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from typing import Literal, NamedTuple
from urllib.parse import quote

from mha_viz.browser.bundle import build_page_style, build_standalone_script, build_style
from mha_viz.browser.supported import render_old_browser_note
from mha_viz.figures.files.font_subsets import SANS, SERIF, build_page_fonts
from mha_viz.files.assets import app_root
from mha_viz.version import __version__

MADE_WITH = f"Made with mha_viz {__version__}."
Look = Literal["auto", "light", "dark", "grey"]

# The page's colours by the names of their CSS variables, as in Streamlit's configuration.
_COLOURS = {
    "primary": "primaryColor",
    "background": "backgroundColor",
    "secondary-background": "secondaryBackgroundColor",
    "text": "textColor",
    "border": "borderColor",
}


def render_page(
    component: str,
    packet: bytes,
    *,
    title: str,
    caption: str,
    start: Mapping[str, str] | None = None,
    show: str = "all",
    look: Look = "auto",
) -> bytes:
    """Return one HTML file that draws ``packet`` with ``component`` ("explorer" or "compare").

    ``start``: the URL parameters of the initial view. ``show``, for the explorer: "all", "grid", "head", "links" or
    "heatmap". ``look``: "auto" follows the reader's own setting.
    """
    body = [
        f'<div id="root" class="mha-{component}" data-alone="yes" data-show="{escape(show)}"></div>\n',
        f'<p id="caption">{escape(caption)}</p>\n',
        f'<script id="said" type="application/json">{encode_content(packet, start or {})}</script>\n',
    ]
    return _render_document(component, "openAlone", title, body, look, "")


class PagePart(NamedTuple):
    """One part of a published page: a heading, a remark, and a drawing with its caption."""

    heading: str
    remark: str
    packet: bytes
    start: Mapping[str, str]
    caption: str


def render_published_page(
    parts: Sequence[PagePart], *, title: str, introduction: str = "", look: Look = "auto"
) -> bytes:
    """Return one HTML file with several drawings of the component "compare", each below its remark."""
    footer = f'<p class="caption">{MADE_WITH} This page needs no network and sends nothing.</p>\n'
    body = render_main(parts, title, introduction, footer)
    return _render_document("compare", "openParts", title, body, look, build_page_style("published"))


def render_main(parts: Sequence[PagePart], title: str, introduction: str, footer: str) -> list[str]:
    """Return the HTML elements of a published page: every part below its remark, then the ``footer``."""
    body = ['<main id="published">\n', f"<h1>{escape(title)}</h1>\n", _render_remark(introduction)]
    for part in parts:
        body += [f"<section>\n<h2>{escape(part.heading)}</h2>\n", _render_remark(part.remark)]
        # A separate form for each drawing, so that their radio buttons are independent.
        body += ['<form autocomplete="off">\n<div class="mha-compare" data-alone="yes" data-show="compare"></div>\n']
        body += [f'<script type="application/json">{encode_content(part.packet, part.start)}</script>\n</form>\n']
        body += [f'<p class="caption">{escape(part.caption)}</p>\n</section>\n']
    return [*body, footer, "</main>\n"]


def _render_remark(text: str) -> str:
    return f'<p class="remark">{escape(text)}</p>\n' if text.strip() else ""


def encode_content(packet: bytes, start: Mapping[str, str], **fields: object) -> str:
    """Return the JSON of one drawing: its packet, its initial view and further ``fields``."""
    query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in start.items() if value)
    text = json.dumps({"start": query, "packet": compress_packet(packet), **fields})
    for sign in "<>&\u2028\u2029":  # escaped, so that the text can neither end nor begin a script element
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _render_document(
    component: str, opener: str, title: str, body: Sequence[str], look: Look, extra_style: str
) -> bytes:
    """Return the complete file: security policy, styles, the ``body``, and the script that draws."""
    code = build_standalone_script(component, opener)
    styles = build_style_sheet(component, look, extra_style, (title, *body))
    policy = f"script-src {_hash(code)}; style-src {_hash(styles)}"
    return render_html(policy, title, f"<style>{styles}</style>", body, f'<script type="module">{code}</script>')


def build_style_sheet(component: str, look: Look, extra_style: str, texts: Iterable[str]) -> str:
    """Return the CSS of a page with a component, with ``extra_style`` and the fonts for its ``texts``."""
    return "".join(
        (
            build_page_fonts(texts),
            _build_variables(look),
            build_page_style("exported"),
            extra_style,
            build_style(component),
        )
    )


def render_html(policy: str, title: str, styles: str, body: Sequence[str], script: str) -> bytes:
    """Return an HTML page whose security policy allows only the sources in ``policy``."""
    policy = f"default-src 'none'; {policy}; img-src data:; font-src data:; base-uri 'none'; form-action 'none'"
    return "".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="color-scheme" content="light dark">\n',
            '<link rel="icon" href="data:,">\n',  # else browsers ask for one, which the policy refuses
            f"<title>{escape(title)}</title>\n{styles}\n</head>\n<body>\n{render_old_browser_note()}",
            *body,
            "<noscript>This drawing needs JavaScript, which this browser does not run.</noscript>\n",
            f"{script}\n</body>\n</html>\n",
        ]
    ).encode("utf-8", "replace")


def embed_page(html: bytes, height: int) -> str:
    """Return an iframe that shows the page inside another page, such as a notebook. Its scripts run in a sandbox."""
    source = escape(html.decode(), quote=True)
    return (
        f'<iframe srcdoc="{source}" sandbox="allow-scripts" title="mha_viz" loading="lazy" '
        f'style="width:100%;height:{height}px;border:0"></iframe>'
    )


def compress_packet(packet: bytes) -> str:
    """Compress a packet to base64 text: all even bytes, then all odd bytes, deflated.

    This groups the high halves of 16-bit numbers, which are similar and compress well.
    """
    return base64.b64encode(zlib.compress(packet[::2] + packet[1::2], 6)).decode()


def _build_variables(look: Look) -> str:
    light, dark = (_look_variables(name) for name in ("light", "dark"))
    if look == "grey":
        return f":root {{ color-scheme: light; {light} --mha-look: grey; filter: grayscale(1) }}\n"
    if look != "auto":
        return f":root {{ color-scheme: {look}; {_look_variables(look)} }}\n"
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"


def _look_variables(look: str) -> str:
    theme = _load_themes()[look]
    colours = "".join(f"--st-{name}-color: {theme[key]}; " for name, key in _COLOURS.items())
    fonts = f'--st-font: "{SANS}", system-ui, sans-serif; --st-heading-font: "{SERIF}", Georgia, serif; '
    code = '--st-code-font: "Source Code Pro", ui-monospace, monospace; '
    return f"{colours}--st-base-radius: 6px; {fonts}{code}"


@cache
def _load_themes() -> dict[str, dict[str, str]]:
    """Load the colours of the app's pages, light and dark."""
    configuration = tomllib.loads((app_root() / ".streamlit" / "config.toml").read_text("utf-8"))
    return {look: configuration["theme"][look] for look in ("light", "dark")}


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8", "replace")).digest()).decode()
    return f"'sha256-{digest}'"
