"""Hooks of `make docs`.

Figures are drawn by the code next to them, help texts are printed by the command itself, and settings are listed from
their table.
"""

from __future__ import annotations

import ast
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from html import escape
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COPIES = {"security.md": "SECURITY.md", "changes.md": "CHANGELOG.md"}  # pages outside docs/
PAGES_WITH_FIGURES = ("gallery.md",)
# Pages whose blocks need files or environment variables.
PAGES_WITH_CORPORA = ("python.md", "command-line.md", "other-libraries.md", "toy.md")
COMMANDS = "reference/commands.md"  # the site adds the help texts to it
FIGURES = "reference/figures.md"  # the site adds the table of settings to it
ROLES = re.compile(r":(?:meth|func|class|mod):(?=<code>)")
EXTERNAL_RESOURCE = re.compile(
    r'<(?:script|img|iframe|link)\b(?![^>]*rel="canonical")[^>]*(?:src|href)="(?:https?:)?//[^"]*"'
)


def iter_blocks(markdown: str) -> Iterator[tuple[str, str]]:
    """Return language and text of each block of a page that is meant to run."""
    return ((match[1], match[2]) for match in BLOCK.finditer(markdown))


def run_block(source: str, names: dict[str, Any]) -> Any:
    """Run a block in ``names``. Return the value of its last expression, None if it ends with a statement."""
    body = ast.parse(source).body
    expression = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "docs", "exec"), names)
    return (
        eval(compile(ast.Expression(expression.value), "docs", "eval"), names)
        if isinstance(expression, ast.Expr)
        else None
    )


def render_picture(result: Any) -> tuple[bytes, str, str] | None:
    """Return SVG, alternative text and caption of a figure of this package or of matplotlib; None for other values."""
    if hasattr(result, "to_bytes") and hasattr(result, "drawing"):
        return result.to_bytes(".svg"), result.drawing.alt, result.caption
    if hasattr(result, "savefig"):
        buffer = BytesIO()
        result.savefig(buffer, format="svg")
        return buffer.getvalue(), "Axes of matplotlib", ""
    return None


# ---- the hooks of MkDocs --------------------------------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are copied from outside docs/, and the app's fonts, which come with Streamlit."""
    from mkdocs.structure.files import File

    for page, name in COPIES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text("utf-8")))
    streamlit = find_spec("streamlit")
    for font in sorted(Path(str(streamlit and streamlit.origin)).parent.glob("static/static/media/Source*.woff2")):
        name = f"fonts/{font.name.partition('.')[0]}.woff2"
        files.append(File.generated(config, name, content=font.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Fill in the generated parts of a page.

    Galleries get figures, the page of commands gets help texts, and the page of figures gets the table of settings.
    Links that leave docs/ are redirected to the pages made here.
    """
    for copy, name in COPIES.items():
        markdown = re.sub(rf"\]\((?:\.\./)?{re.escape(name)}", f"]({copy}", markdown)
    markdown = markdown.replace("](docs/", "](")
    if page.file.src_uri == COMMANDS:
        return f"{markdown}\n{format_commands()}"
    if page.file.src_uri == FIGURES:
        return f"{markdown}\n## Settings\n\n{format_settings()}"
    return _draw_figures(markdown, config, files) if page.file.src_uri in PAGES_WITH_FIGURES else markdown


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Refuse a page that would load something from another host; remove the roles of docstrings."""
    from mkdocs.exceptions import PluginError

    if match := EXTERNAL_RESOURCE.search(output):
        raise PluginError(f"{page.file.src_uri} loads from elsewhere: {match[0][:200]}")
    return ROLES.sub("", output)


def _draw_figures(markdown: str, config: Any, files: Any) -> str:
    from mkdocs.structure.files import File

    names: dict[str, Any] = {}
    number = 0

    def add_picture(match: re.Match[str]) -> str:
        nonlocal number
        picture = render_picture(run_block(match[2], names)) if match[1] == "python" else None
        if picture is None:
            return match[0]
        number += 1
        content, alt, caption = picture
        files.append(File.generated(config, f"figures/{number}.svg", content=content))
        image = f'<figure><img src="figures/{number}.svg" alt="{escape(alt)}" loading="lazy">'
        return f"{image}<figcaption>{escape(caption)}</figcaption></figure>\n\n{match[0]}"

    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        return BLOCK.sub(add_picture, markdown)


def format_commands() -> str:
    """Return the help text of each command, as sections of a page."""
    from mha_viz.cli.table import build_parser

    with mock.patch.dict(os.environ, COLUMNS="100"):  # the width must not depend on the terminal
        sections = [
            f"## {command.prog}\n\n```text\n{command.format_help()}```\n" for command in _iter_parsers(build_parser())
        ]
    return "\n".join(sections)


def format_settings() -> str:
    """Return the table of the settings of figures: values, default, effect, and the figures that accept them."""
    from mha_viz.view.settings import OPTIONS

    lines = ["| setting | values | default | what it does | figures |", "|---|---|---|---|---|"]
    for name, setting in OPTIONS.items():
        values = ", ".join(f"`{value}`" for value in setting.list_values())
        kinds = (f"{kind} (on its page)" if setting.is_only_on_page(kind) else kind for kind in setting.kinds)
        default = f"`{setting.default}`" if setting.default else "none"
        if setting.not_shares:
            default += f", or `{setting.not_shares}` for numbers that are not shares of 1"
        lines.append(f"| `{name}` | {values or setting.expected} | {default} | {setting.help} | {', '.join(kinds)} |")
    return "\n".join(lines) + "\n"


def _iter_parsers(parser: Any) -> Iterator[Any]:
    yield parser
    for action in parser._actions:
        for command in action.choices.values() if isinstance(action.choices, dict) else ():
            yield from _iter_parsers(command)
