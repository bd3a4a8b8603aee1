"""The documentation inside the app: chapters in place of the page About, from the files, without HTML."""

from __future__ import annotations

import re
import tomllib
from pathlib import PurePosixPath

import pytest
from playwright.sync_api import expect

from mha_viz.app.widgets import chapters
from tests.browser_tab import PHONE, BrowserTab
from tests.page_session import ROOT, PageSession
from tools import docs

DOCS = ROOT / "docs"
PAGE = "pages/90_about.py"
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)]*)\)")
# What Streamlit's Markdown would load, colour, or replace by a picture, and HTML, which it shows as text.
NOT_TEXT = re.compile(r"!\[|:[a-z]+\[|(?<!\w):[a-z_/]+:(?!\w)|</?[a-z]", re.IGNORECASE)


def text_of(name: str) -> str:
    (text,) = [e.value for e in PageSession({"chapter": name}, PAGE).at.markdown if len(e.value) > 200]
    return str(text)


def slug(heading: str) -> str:
    return re.sub(r"[^\w]+", "-", heading.lower())


def test_every_chapter_is_shown_but_for_those_that_the_site_writes() -> None:
    whole = {path.relative_to(DOCS).with_suffix("").as_posix(): path.read_text("utf-8") for path in DOCS.rglob("*.md")}
    written = {name for name, text in whole.items() if "\n::: " in text}
    drawn = {name.removesuffix(".md") for name in docs.PAGES_WITH_FIGURES}
    assert chapters.list_chapters().keys() == whole.keys() - written - drawn
    assert len(chapters.list_chapters()) > 20


def test_chapters_travel_with_the_wheel() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    taken = {PurePosixPath(place): PurePosixPath(to) for place, to in wheel["force-include"].items()}
    for name, file in chapters.list_chapters().items():
        path = PurePosixPath(file.relative_to(ROOT).as_posix())
        place = path if path in taken else path.parent
        assert taken[place] == PurePosixPath("mha_viz/_app") / place, name


def test_links_between_chapters_lead_to_a_heading_and_others_stay_plain() -> None:
    texts = {name: chapters._read_chapter(name)[1] for name in chapters.list_chapters()}
    headings = {name: {slug(h) for h in re.findall(r"^#+ (.+)$", text, re.MULTILINE)} for name, text in texts.items()}
    to_chapters = 0
    for name, text in texts.items():
        for target in LINK.findall(CODE.sub("`", text)):
            chapter, _, heading = target.removeprefix("?chapter=").partition("#")
            assert target.startswith(("https://", "?chapter=", "#")), (name, target)
            to_chapters += target.startswith("?")
            if not target.startswith("https://"):
                assert not heading or heading in headings[chapter or name], (name, target)
    assert to_chapters > 30


def test_a_chapter_is_text_alone() -> None:
    for name in chapters.list_chapters():
        assert not NOT_TEXT.search(CODE.sub("`", chapters._read_chapter(name)[1])), name
    shown = PageSession({"chapter": "glossary"}, PAGE)
    assert not [element for element in shown.at.markdown if element.allow_html]
    assert "$W_O$" in text_of("pages")
    assert "<sub>" not in text_of("measures")


def test_a_file_that_is_no_chapter_is_not_linked() -> None:
    assert "[" not in chapters._render_prose("See [the gallery](gallery.md) and [it](../SECURITY.md).", "")
    assert chapters._render_prose("[a](../measures.md#b)", "howto") == "[a](?chapter=measures#b)"
    assert chapters._render_prose("[a](cite.md)", "howto") == "[a](?chapter=howto/cite)"


@pytest.mark.parametrize("odd", ["nonsense", "gallery", "reference/errors", "../SECURITY", "/etc/passwd", "index.md"])
def test_a_chapter_that_there_is_not_is_said_and_about_is_shown(odd: str) -> None:
    shown = PageSession({"chapter": odd}, PAGE)
    assert f"Ignored in this link: chapter={odd}" in shown.said
    assert "**What they do not show.**" in shown.said


def test_about_links_to_chapters_that_there_are() -> None:
    (text,) = [e.value for e in PageSession({}, PAGE).at.markdown if "**More**" in e.value]
    linked = [target.removeprefix("?chapter=") for target in LINK.findall(text)]
    assert len(linked) >= 4
    assert set(linked) <= chapters.list_chapters().keys()


def test_a_chapter_opens_in_place_on_a_phone_and_leads_on_and_back(visitor: BrowserTab) -> None:
    visitor.resize(PHONE)
    page = visitor.visit("/about")
    tabs = len(page.context.pages)
    # Until the page's own script has come, which marks the open page, a link opens another tab, as Streamlit's do.
    expect(page.get_by_role("link", name="About")).to_have_attribute("aria-current", "page")
    page.get_by_role("link", name="Pages", exact=True).click()
    title = page.get_by_role("heading", name="What the pages show")
    expect(title).to_be_focused()
    expect(page.get_by_role("link", name="About")).to_be_in_viewport()
    expect(page).to_have_title("What the pages show · About · mha_viz")
    visitor.check_no_sideways_scroll()
    page.get_by_role("link", name="q", exact=True).first.click()  # to a heading of another chapter
    place = page.get_by_role("heading", name="q-values", exact=True)
    expect(place).to_be_focused()
    expect(place).to_be_in_viewport()
    visitor.wait_for_parameters(chapter="measures")
    visitor.check_no_sideways_scroll()
    assert len(page.context.pages) == tabs, "in the same tab"
    page.go_back()
    expect(title).to_be_visible()
    page.get_by_role("link", name="What the pictures show").click()
    expect(page.get_by_role("heading", name="What the pictures show, and what they do not")).to_be_focused()
    visitor.wait_for_parameters(chapter=None)
