"""Walks over the pages in a real browser, from control to control, as fast as the page allows.

On Explore, which draws in the browser, every control follows another; with ``--all``, on every page, every two controls
follow each other in both orders. What the server does in any order: tests/test_orders.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import pytest
from playwright.sync_api import Page, TimeoutError, expect

from mha_viz.app.widgets.parts import UNEXPECTED
from tests import lanes
from tests.app_server import AppServer
from tests.browser_tab import BrowserTab, open_by_search
from tests.controls import build_pair_walk

LONG = 120_000  # milliseconds: the first action that reads waits for torch
SHORT = 60_000  # milliseconds after which an act looks at the page again
Act = Callable[[Page, int], object]  # the number of the step: each control alternates between two values


def _type(label: str, *texts: str) -> Act:
    def act(page: Page, step: int) -> None:
        field = page.get_by_label(label, exact=True).first  # while the page changes, there may be two
        field.fill(texts[step % len(texts)])
        field.press("Enter")

    return act


def _press(name: str) -> Act:
    return lambda page, _: page.get_by_role("button", name=name, exact=True).first.click()


NUMBERS = ".st-key-numbers details"  # on Roles


def _check(name: str) -> Act:
    return lambda page, _: page.get_by_role("radio", name=name).first.click()


def _choose(label: str, *options: str) -> Act:
    def act(page: Page, step: int) -> None:
        menu = page.locator("label", has_text=label).locator("select").first
        menu.select_option(label=options[step % len(options)])

    return act


def _settled(page: Page) -> None:
    page.locator(".stApp[data-test-script-state=notRunning]").wait_for()


def _looks_first(act: Act) -> Act:
    """An act that depends on what the page offers looks once more if the control before it has just changed that:
    between a change in the browser and the start of its run, the page counts as settled."""

    def act_or_look_again(page: Page, step: int) -> object:
        page.set_default_timeout(SHORT)
        with suppress(TimeoutError):
            return act(page, step)
        page.set_default_timeout(LONG)
        return act(page, step)

    return act_or_look_again


def _own_file_and_back(page: Page, _: int) -> None:
    """Without a file the page has no other control, so the published corpus is chosen again once everything has
    changed."""
    for corpus, shown in (("your file", "CoNLL-U: all measures"), ("published", "What the 72 heads")):
        page.get_by_role("radio", name=corpus).click()
        page.get_by_text(shown).wait_for()
        _settled(page)


def _next_head(page: Page, _: int) -> None:
    page.locator(".grid canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")


def _move_slider(page: Page, step: int) -> None:
    page.get_by_role("slider").press("ArrowLeft" if step % 3 else "ArrowRight")


def _search_and_leave(page: Page, step: int) -> None:
    field = page.get_by_role("searchbox", name="Find a head")
    field.fill(("pronoun", "L3H1")[step % 2])
    page.get_by_role("region", name="Matching heads").get_by_role("link").first.wait_for()
    for _ in range(3):  # the answers, the words, the field
        page.keyboard.press("Escape")


def _keys(page: Page, _: int) -> None:
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    for _ in range(5):  # after Back the page may be shown before it listens
        page.keyboard.press("?")
        with suppress(TimeoutError):
            dialog.wait_for(timeout=SHORT / 10)
            break
    dialog.wait_for()
    page.keyboard.press("Escape")


def _open_task(page: Page, step: int) -> None:
    page.locator(".st-key-small_task button").nth(step % 2).click()


def _answer(page: Page, step: int) -> None:
    page.locator(".st-key-small_answer button").nth(step % 4).click()


def _toggle(label: str) -> Act:
    return lambda page, _: page.get_by_label(label, exact=True).first.click()


def _segment(*texts: str) -> Act:
    return lambda page, n: page.locator(".segments").get_by_text(texts[n % len(texts)], exact=True).click()


def _other_model_and_back(page: Page, _: int) -> None:
    """Another model has other corpora, so that the first one is chosen again."""
    for model, shown in (("Toy, trained", "What the 8 heads"), ("MiniLM", "What the 72 heads")):
        option = page.get_by_role("option", name=model).first
        for _ in range(5):  # a menu closes when the page scrolls, as it does to a card that a link asked for
            page.get_by_role("combobox", name="Model").click()
            with suppress(TimeoutError):
                option.click(timeout=SHORT)
                break
        page.get_by_text(shown).wait_for()
        _settled(page)


def _within(fold: str, act: Act) -> Act:
    """``act`` on what is folded away, once that is open."""

    def opened(page: Page, step: int) -> None:
        _settled(page)
        page.locator(fold).first.wait_for()
        closed = page.locator(f"{fold}:not([open]) > summary")
        if closed.count():
            closed.first.click()
        act(page, step)

    return opened


def _numbers(page: Page, _: int) -> None:
    page.get_by_text("Numbers", exact=True).first.click()


def _with_numbers(act: Act) -> Act:
    """``act`` on what *Numbers* shows."""

    def shown(page: Page, step: int) -> None:
        _settled(page)
        if not page.get_by_role("switch", name="Numbers").is_checked():
            _numbers(page, step)
        act(page, step)

    return shown


def _click_the_map(page: Page, step: int) -> None:
    """The first head of layer 0 or 1."""
    page.locator(".mha-map td a").nth((0, 12)[step % 2]).click()


def _choosing(act: Act) -> Act:
    """``act`` in the box *Choose heads*, once that is open; pages behind it are not clicked meanwhile."""

    def chosen(page: Page, step: int) -> None:
        _settled(page)
        box = page.get_by_test_id("stPopoverBody")
        if not box.count():
            page.get_by_role("button", name="Choose heads").click()
        box.wait_for()
        act(page, step)
        page.keyboard.press("Escape")

    return chosen


@_looks_first
def _switch_all_on(page: Page, _: int) -> None:
    """Without a head that is off there is nothing to press."""
    _settled(page)
    button = page.locator(".st-key-all_on button")
    if button.is_enabled():
        button.click()


@_looks_first
def _subtract(page: Page, step: int) -> None:
    """Only two or more heads have a difference."""
    _settled(page)
    pills = page.locator(".pill").locator("visible=true")
    if not pills.count():
        _check("Most similar heads")(page, step)
        pills.first.wait_for()
    pills.nth(step % pills.count()).click()


def _path(url: str) -> str:
    return url.partition("?")[0]


def _there_and_back(link: str) -> Act:
    def act(page: Page, _: int) -> None:
        here = _path(page.url)
        page.get_by_role("link", name=link).first.click()
        page.wait_for_url(lambda url: _path(url) != here)
        page.go_back()
        page.wait_for_url(lambda url: _path(url) == here)
        _settled(page)

    return act


def _unfold(title: str) -> Act:
    return lambda page, _: page.locator("summary", has_text=title).first.click()


SENTENCE = _type("Sentence", "Cats sleep.", "The dog that saw the cat ran away.")
MODEL = _choose("Model", "Toy, trained on the built-in grammar", "MiniLM, a small BERT")
# A page, what is always on it, and its controls as a person finds them.
PAGES: Mapping[str, tuple[str, Mapping[str, Act]]] = {
    "/": (
        ".one h2 code",
        {
            "sentence": SENTENCE,
            "model": MODEL,
            "head": _next_head,
            "compare": _press("+ Compare"),
            "links": _within("details.drawing", _choose("Links", "top … per word", "all")),
            "take away": _unfold("Download"),
            "examples": _press("Examples"),
            "second sentence": lambda page, _: page.get_by_role("button", name="Second sentence").click(),
            "known roles": _within("details.drawing", _toggle("Label roles")),
            "special tokens": _within("details.drawing", _segment("hidden", "shown")),
        },
    ),
    "/compare": (
        "article.panel",
        {
            "layer": _check("A whole layer"),
            "similar": _check("Most similar heads"),
            "word": _check("Swap a word"),
            "colours": _within("details.drawing", _choose("Colour scale", "logarithmic", "0 to 1")),
            "difference": _subtract,
            "tokens": _within("details.drawing", _segment("tokens", "words")),
            "special tokens": _within("details.drawing", _segment("hidden", "shown")),
            "compare": lambda page, _: page.locator(".panel button", has_text="Compare").first.click(),
            "take away": _unfold("Download"),
        },
    ),
    "/roles": (
        ".mha-map",
        {
            "kind": lambda page, _: page.get_by_role("link", name="syntax", exact=True).click(),
            "find": lambda page, step: open_by_search(page, ("L2H0", "L3H1")[step % 2]),
            "relation": _within(NUMBERS, _type("Filter relations", "mod", "obj")),
            "level": _within(
                NUMBERS, lambda page, step: _check(("with subtypes", "all together")[step % 2])(page, step)
            ),
            "corpus": _own_file_and_back,
            "model": _other_model_and_back,
            "cell": _click_the_map,
            "link": lambda page, step: page.locator(".mha-rows a").nth(step % 2).click(),
        },
    ),
    "/inside_a_head": (
        "[aria-current=step]",
        {
            "sentence": SENTENCE,
            "model": MODEL,
            "softmax": lambda page, _: page.locator(".mha-block [data-stage=share] .title").click(),
            "x": lambda page, _: page.locator(".mha-block [data-stage=x] .title").click(),
            "head": _check("Head 0"),
            "costs": _type("tokens n", "65", "512"),
        },
    ),
    "/why_heads_differ": (
        ".mha-player .play",
        {
            "numbers": _numbers,
            "alike": _check("Identical start"),
            "random": _check("Random start"),
            "cut": _check("Split input"),
            "seed": _with_numbers(_type("Seed", "1", "0")),
            "steps": _with_numbers(_type("Steps", "200", "300")),
            "step": _move_slider,
        },
    ),
    "/?off=L3H1": (
        ".one h2 code",
        {
            "sentence": SENTENCE,  # another model ends the mode
            "random": _choosing(lambda page, _: page.get_by_role("button", name="Pick a random head").first.click()),
            "uniform": _choosing(_check("uniform attention")),
            "zero": _choosing(_check("zeros")),
            "head": _next_head,
            "all on": _choosing(_switch_all_on),
        },
    ),
    "/why_heads_differ?experiment=tasks": (
        ".st-key-small_answer",
        {
            "task": _open_task,
            "answer": _answer,
            "search": _search_and_leave,
            "keys": _keys,
            "experiment": _there_and_back("in Explore"),
        },
    ),
    "/about": (
        ".st-key-about_figure",
        {
            "explore": _there_and_back("Open it in Explore"),
            "search": _search_and_leave,
            "keys": _keys,
            "roles": _there_and_back("Roles"),
        },
    ),
}


@pytest.mark.parametrize("path", lanes.some(list(PAGES), "/"))
def test_controls_after_each_other(visitor: BrowserTab, server: AppServer, path: str) -> None:
    walk_over(visitor, path)
    visitor.check_no_faults()
    assert server.faults() == []


def walk_over(visitor: BrowserTab, path: str) -> None:
    shown, controls = PAGES[path]
    walk = build_pair_walk(list(controls)) if lanes.everything else list(controls)
    page = visitor.visit(path)
    for step, name in enumerate(walk):
        try:
            page.set_default_timeout(LONG)
            controls[name](page, step)
        except Exception as error:
            raise AssertionError(f"{path}: {' → '.join(walk[: step + 1][-3:])} (step {step})") from error
        assert page.locator(".stException").or_(page.get_by_text(UNEXPECTED)).count() == 0, (path, walk[: step + 1])
    expect(page.locator(".stApp")).to_have_attribute("data-test-script-state", "notRunning", timeout=LONG)
    expect(page.locator(shown).first).to_be_visible(timeout=LONG)
    expect(page.get_by_role("link", name="Why heads differ")).to_be_visible()
    expect(page.get_by_text(UNEXPECTED)).to_have_count(0)
