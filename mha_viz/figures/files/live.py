"""Build the files of a published page with a live model, except the model: the page, its scripts and its style.

The security policy allows scripts, workers and requests from its own origin only, and no script inside the page.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from mha_viz.browser.bundle import FOLDER, build_page_style, build_style, join_modules, name_constant
from mha_viz.figures.files.page import (
    MADE_WITH,
    Look,
    PagePart,
    build_style_sheet,
    encode_content,
    render_html,
    render_main,
)
from mha_viz.model_names import cite_model
from mha_viz.numerals import three_digits

MAX_SENTENCE = 4_000  # maximum number of characters of a sentence
OTHER_SENTENCES = 20  # sentences, besides the example, on which the deviation of half precision is measured
_POLICY = "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; style-src 'self'"
# Shown until the page's script removes it: browsers do not run modules of a page that was opened as a file.
_FILE_HINT = (
    "If nothing appears, this page was opened as a file. In its folder, run "
    "<code>python -m http.server</code>, and open localhost:8000."
)


class LiveSection(NamedTuple):
    """The section of a page in which a model reads the visitor's sentence.

    Attributes:
        model, revision: of the live model.
        megabytes: the size of the files that the browser downloads for the model.
        deviation: the largest deviation of its weights from full precision if it is stored in half precision, otherwise
            0.
        text, example: a sentence, and its drawing, which is shown before the model is downloaded.
        head_facts: roles and recipes of the heads, independent of a text.
    """

    model: str
    revision: str
    megabytes: float
    deviation: float
    text: str
    example: PagePart
    head_facts: Mapping[str, Any]


def build_site(
    parts: Sequence[PagePart],
    live: LiveSection,
    model_files: Mapping[str, bytes],
    *,
    title: str,
    introduction: str,
    look: Look,
) -> dict[str, bytes]:
    """Return the files of the page by name, including ``model_files``, which the browser downloads when somebody types.

    The URLs of all files except the page and its service worker change with their content, so that a browser can cache
    the files.
    """
    note = "This page contacts no other host and sends nothing."
    footer = f'{_render_section(live)}<p class="caption">{MADE_WITH} {note}</p>\n'
    body = render_main(parts, title, introduction, footer)
    reader = _fill_placeholder(
        join_modules(FOLDER / "live" / "reader.js"),
        "({})",
        {name: build_address(name, model_files) for name in model_files},
    )
    files = {**model_files, "reader.js": reader}
    files["page.js"] = _fill_placeholder(_build_page_script(), '"reader.js"', build_address("reader.js", files))
    sheets = build_page_style("published") + build_page_style("live")
    files["style.css"] = build_style_sheet("compare", look, sheets, (title, *body)).encode()
    head = f'<link rel="stylesheet" href="{build_address("style.css", files)}">'
    script = f'<script type="module" src="{build_address("page.js", files)}"></script>'
    first_files = ["./", build_address("page.js", files), build_address("style.css", files)]
    cached_files = {
        "first": first_files,
        "all": [*first_files, *(build_address(name, files) for name in (*model_files, "reader.js"))],
    }
    source = (FOLDER / "live" / "offline.js").read_text("utf-8")
    return {
        **files,
        "offline.js": _fill_placeholder(source, "({ first: [], all: [] })", cached_files),
        "index.html": render_html(_POLICY, title, head, body, script),
    }


def build_address(name: str, files: Mapping[str, bytes]) -> str:
    """Return a file's relative URL with a digest of its content."""
    return f"{name}?{hashlib.sha256(files[name]).hexdigest()[:16]}"


def _fill_placeholder(source: str, placeholder: str, value: object) -> bytes:
    """Replace a placeholder in a script with a value that is known only when a page is written."""
    assert source.count(placeholder) == 1
    return source.replace(placeholder, json.dumps(value)).encode()


def _build_page_script() -> str:
    compare, explorer, alone, page = (
        FOLDER / name for name in ("compare/compare.js", "explorer/explorer.js", "alone.js", "live/page.js")
    )
    draw = f"await {name_constant(alone)}.openParts({name_constant(compare)}.compare);\n"
    style = json.dumps(build_style("explorer"))
    live = f"await {name_constant(page)}.openLive({name_constant(explorer)}.explorer, {style})"
    return f"{join_modules(compare, explorer, alone, page)}{live}.catch(console.error);\n{draw}"


def _render_section(live: LiveSection) -> str:
    """Return the HTML of the sentence field, with the example below it."""
    citation = cite_model(live.model, live.revision)
    text = f"{citation} reads what you type in this browser: nothing leaves this device. "
    text += f"The first sentence downloads the model, {live.megabytes:,.0f}\u00a0MB, which then also works offline."
    if live.deviation:
        deviation = f"weights differ by up to {three_digits(live.deviation)} from full precision"
        text += f" It is stored in half precision: on the sentence below and {OTHER_SENTENCES} others, {deviation}."
    data = encode_content(live.example.packet, live.example.start, ofHeads=live.head_facts)
    field = f'<input name="sentence" value="{escape(live.text)}" maxlength="{MAX_SENTENCE}" autocomplete="off">'
    return (
        '<section id="live">\n<h2>Your own sentence</h2>\n'
        f'<p class="remark">{escape(text)}</p>\n'
        f"<form><label>Sentence{field}</label><button>Read</button></form>\n"
        '<p role="status"></p><progress hidden aria-label="Download of the model"></progress>\n'
        '<div data-live="yes"></div>\n'
        f'<p class="remark" id="unserved">{_FILE_HINT}</p>\n'
        f'<script type="application/json">{data}</script>\n</section>\n'
    )
