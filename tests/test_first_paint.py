"""What a page shows until it is drawn."""

from __future__ import annotations

import pytest
from playwright.sync_api import Route, expect

from mha_viz.app.serving.first_paint import MAX_CHARACTERS, draw_first_paint
from tests.browser_tab import BrowserTab

FIRST = "The animal didn't cross the street because it was too tired."


@pytest.mark.parametrize(
    ("path", "query", "sentence"),
    [
        ("", b"", "The animal didn&#x27;t cross the street because it was too tired."),
        ("", b"text=Cats+sleep.&model=toy", "Cats sleep."),
        ("", b"text=one&text=%3Cscript%3Ealert(1)%3C/script%3E", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("inside_a_head", b"text=%C3%84pfel", "Äpfel"),
        ("", b"text=" + b"a" * 10_000, "a" * MAX_CHARACTERS),
        ("", b"text=+", ""),
        ("roles", b"text=Cats+sleep.", ""),
    ],
)
def test_the_sentence_of_an_address_is_shown_as_text(path: str, query: bytes, sentence: str) -> None:
    _, drawn = draw_first_paint(path, query).split("</style>")
    assert drawn.partition("<p>")[2].partition("</p>")[0] == sentence
    assert "<script" not in drawn


def test_bytes_that_are_no_text_are_shown_somehow() -> None:
    assert draw_first_paint("", b"text=%FF%00\xff").endswith("</div>\n")


def test_the_names_are_those_of_the_pages_but_none_for_a_class() -> None:
    assert "<i class=here>Explore</i><i>Compare</i>" in draw_first_paint("", b"")
    assert "<i>Explore</i><i>Compare</i><i>Inside a head</i><i class=here>Why" in draw_first_paint(
        "why_heads_differ", b""
    )
    assert "<header>" not in draw_first_paint("", b"class=1")


def test_a_page_whose_scripts_are_late_shows_its_sentence_until_it_is_drawn(visitor: BrowserTab) -> None:
    visitor.is_altered = True
    page, late = visitor.page, list[Route]()
    page.route("**/static/js/index.*.js", lambda route: late.append(route))
    page.goto(f"{visitor.url}/", wait_until="commit")
    paint = page.locator(".mha-first")
    expect(paint).to_contain_text(FIRST)
    expect(paint.locator(".here")).to_have_text("Explore")
    expect(paint).to_be_visible()
    assert late
    page.unroute("**/static/js/index.*.js")  # and those that are held go on
    visitor.wait_until_drawn()
    expect(paint).to_be_hidden()
    page.goto(f"{visitor.url}/?class=1")  # where the names of the pages are closed
    visitor.wait_until_drawn()
    expect(paint).to_be_hidden()
