"""How calm the pages are: words and controls of each, counted in a real browser against what they may be.

The rule of counting. A *word* is a run of characters without blanks that has a letter or a digit; it counts if it is
seen: not clipped away for screen readers, not transparent, not painted on a canvas, not an icon's name. A *control* is
a link, a button, a field, a menu or a summary that is seen, or whatever else the keyboard stops at, but for the page
itself, which scrolls; what the keyboard stops at once and walks with its arrows (the squares of a grid, the steps and
the heads of a block) is one control. The *first screen* holds what has its middle in a window of 1440 × 900 that was
not scrolled. *Opened* are the words of the whole page with all that it can unfold unfolded and its switches on, those
included whose words the server draws (*Numbers* of the experiments, *More* where heads are off), once what is measured
is there. The list of pages, the same on each, counts too.

A page's *own* words are those that its authors wrote. What grows with the sentence, the model or the corpus is *data*
and not among them, because no author can make it shorter: the cells of tables and matrices and the names of their rows,
the labels of charts (SVG), numbered lists of what was found, code that repeats a result, the words and links that are
compared, the sentence of a training, what a score is made of, and on the page *Roles* the names of heads in lists, the
rule beside a role, and what a head looked at in each case. On a page that is one state of many (an experiment, a step
inside a head), the first screen is counted by its own words: its picture is the data.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Page, expect

from mha_viz.analysis.bundled_data import load_bundled_roles
from mha_viz.app.inside.stages import STAGES
from mha_viz.app.lab.learning import TOYS
from mha_viz.lab.lab import EXPERIMENTS
from tests import lanes
from tests.browser_tab import DESKTOP, BrowserTab

COUNT = r"""() => {
    const CONTROLS = "a[href], button, input:not([type=hidden]):not([type=file]), select, textarea, summary, " +
        "[tabindex='0']:not(.stMain), [role=combobox], [role=slider], [contenteditable=true]";
    const DATA = "tbody td, tbody th[scope=row], .matrices .square, svg, ol, pre, " +
        ".mha-block :is(.face, .vector, .bars, .sum, .towards, .away), " +
        ".compare :is(.link, .sentence), .mha-player .sentence, .inside-each, .mha-rows small, " +
        ".st-key-head_card [data-testid=stPageLink], " +
        ".st-key-head_numbers [data-testid=stPageLink], .st-key-role_cases [data-testid=stCaptionContainer]";
    const isData = (part) => part !== null && (part.matches(DATA) || isData(up(part)));
    const APART = "canvas, style, script, [translate=no], [data-testid=stMarkdownContainer] .katex-mathml";
    const clipped = new Map();
    const up = (part) => part.parentElement ?? part.getRootNode().host ?? null;
    const isHidden = (part) => {
        if (!part) return false;
        if (!clipped.has(part)) {
            const style = getComputedStyle(part), box = part.getBoundingClientRect();
            const small = style.overflow !== "visible" && (box.width <= 2 || box.height <= 2);
            clipped.set(part, part.matches(APART) || small || Number(style.opacity) === 0 ||
                /inset\(50%|rect\(0/.test(style.clipPath + style.clip) || isHidden(up(part)));
        }
        return clipped.get(part);
    };
    const isSeen = (part) => part.checkVisibility({ visibilityProperty: true }) && !isHidden(part);
    const isFirst = ({ left, right, top, bottom }) => {
        const [x, y] = [(left + right) / 2, (top + bottom) / 2];
        return x >= 0 && x < innerWidth && y >= 0 && y < innerHeight;
    };
    const count = { words: 0, own: 0, first: 0, firstOwn: 0, controls: 0 }, controls = [], inside = new Set();
    const walk = (root) => {
        for (const part of root.querySelectorAll("*")) {
            if (part.shadowRoot) walk(part.shadowRoot);
            if (part.matches(CONTROLS)) controls.push(part);
            for (const text of part.childNodes) {
                if (text.nodeType !== Node.TEXT_NODE || !text.data.trim() || !isSeen(part)) continue;
                const range = document.createRange();
                for (const { 0: word, index } of text.data.matchAll(/\S*[\p{L}\p{N}]\S*/gu)) {
                    range.setStart(text, index);
                    range.setEnd(text, index + word.length);
                    const box = range.getBoundingClientRect();
                    count.words += box.width > 0;
                    count.own += box.width > 0 && !isData(part);
                    count.first += box.width > 0 && isFirst(box);
                    count.firstOwn += box.width > 0 && isFirst(box) && !isData(part);
                }
            }
        }
    };
    walk(document.body);
    for (const part of controls) {
        const label = part.closest("label");
        const box = isHidden(part) && label ? label : part;
        if (part.disabled || !isSeen(box) || !isFirst(box.getBoundingClientRect())) continue;
        const whole = part.closest(
            ".chips, [role=grid], [role=toolbar], [data-testid=stSelectbox], [data-testid=stNumberInput]",
        ) ?? box;
        if (part.parentElement?.closest("a[href], button, summary")) continue;
        if (inside.has(whole)) continue;
        inside.add(whole);
        count.controls += 1;
    }
    return count;
}"""
# Of all text, in characters.
LENGTH = """() => [...document.querySelectorAll("*")].reduce(
    (length, part) => length + (part.shadowRoot?.textContent.length ?? 0), document.body.innerText.length)"""
IDLE = """() => document.querySelector('.stApp')?.dataset.testScriptState === 'notRunning'
    && !document.querySelector('[data-testid=stProgress]')"""
UNFOLD = """() => {
    const folded = (root) => [...root.querySelectorAll("*")].flatMap((part) => [
        ...(part.matches("details:not([open]) > summary") ? [part] : []),
        ...(part.shadowRoot ? folded(part.shadowRoot) : []),
    ]);
    const all = folded(document.body);
    all.forEach((summary) => summary.click());
    return all.length;
}"""


# Each text on the first screen, with what explains it: the title or the description of what it stands in.
SEEN = r"""() => {
    const seen = [], up = (part) => part.parentElement ?? part.getRootNode().host ?? null;
    const explains = (part) => {
        for (let at = part; at; at = up(at)) {
            const id = at.getAttribute("aria-describedby");
            const words = at.title || at.dataset.tip || (id && at.getRootNode().getElementById(id)?.textContent);
            if (words) return words;
        }
        return "";
    };
    const walk = (root) => {
        for (const part of root.querySelectorAll("*:not(style, script, canvas, option)")) {
            if (part.shadowRoot) walk(part.shadowRoot);
            for (const text of part.childNodes) {
                if (text.nodeType !== Node.TEXT_NODE || !part.checkVisibility({ visibilityProperty: true })) continue;
                const range = document.createRange();
                range.selectNode(text);
                const { left, right, top, bottom } = range.getBoundingClientRect();
                const [x, y] = [(left + right) / 2, (top + bottom) / 2];
                const isFirst = right - left > 2 && x >= 0 && x < innerWidth && y >= 0 && y < innerHeight;
                if (isFirst) seen.push([text.data, explains(part)]);
            }
        }
    };
    walk(document.body);
    return seen;
}"""


class Calm(NamedTuple):
    """The most words on the first screen, controls on the first screen, and with everything unfolded its own words and
    all words, tables, tokens and numbers included."""

    first: int
    controls: int
    opened: int
    words: int


# The switches whose words the server draws, by a part of the addresses of their pages.
SWITCHES = {"/why_heads_differ": "numbers=1"}
# What each page may have: the goal or, where it is not reached yet, what it has, so that it can only become less.
MOST = {
    "/": Calm(101, 22, 332, 640),
    "/?text=The famous boy says that his horses that are waiting leave the villages.": Calm(94, 22, 326, 674),
    "/?roles=on": Calm(106, 23, 339, 647),
    "/?off=none": Calm(95, 21, 239, 547),
    "/?off=L3H1": Calm(123, 20, 269, 596),
    "/?model=toy&off=L1H1&text=the [MASK] sleeps .": Calm(100, 20, 245, 356),
    "/compare": Calm(181, 25, 350, 1_413),  # with the difference on the first screen
    "/inside_a_head": Calm(144, 20, 233, 440),
    "/why_heads_differ": Calm(112, 28, 771, 1_057),
    "/why_heads_differ?experiment=random&guess=different": Calm(116, 29, 821, 1_112),
    "/why_heads_differ?experiment=output": Calm(119, 30, 852, 1_142),  # the wordiest
    "/roles": Calm(150, 26, 600, 1_370),
    "/roles?head=L3H1": Calm(156, 21, 873, 2_200),
    "/about": Calm(257, 14, 257, 257),
}


# Heads whose cards have the most words: those with roles between words.
LINKING = sorted(
    {str(finding.head) for finding in load_bundled_roles("minilm") if finding.role in ("syntax", "coreference")}
)
# The most own words on the first screen in every state of two pages.
IN_EVERY_STATE = {
    "/why_heads_differ": (120, [f"?experiment={name}" for name in (*EXPERIMENTS, *TOYS, "tasks")]),
    "/inside_a_head": (150, [f"?step={name}" for name in STAGES]),
}
GOAL = 3_000  # own words of all pages, each in the state in which it has the most


def test_every_page_is_calm(visitor: BrowserTab) -> None:
    visitor.resize(DESKTOP)
    counted = {path: _count(visitor, path) for path in MOST}
    louder = {
        path: f"{(*calm,)}, at most {(*MOST[path],)}"
        for path, calm in counted.items()
        if any(has > most for has, most in zip(calm, MOST[path], strict=True))
    }
    assert not louder, f"first screen: words, controls; own and all words with all opened: {louder}"


@pytest.mark.parametrize("path", IN_EVERY_STATE)
def test_every_experiment_and_every_step_is_calm(visitor: BrowserTab, path: str) -> None:
    visitor.resize(DESKTOP)
    most, every = IN_EVERY_STATE[path]
    states = lanes.some(every, *every[::4])
    counted = {state: _on_first_screen(visitor, f"{path}{state}")["firstOwn"] for state in states}
    assert not {state: words for state, words in counted.items() if words > most}


def test_the_card_of_every_head_is_calm(visitor: BrowserTab) -> None:
    visitor.resize(DESKTOP)
    assert len(LINKING) > 10
    heads = lanes.some(LINKING, *LINKING[::4])
    words = {head: _on_first_screen(visitor, f"/roles?head={head}")["first"] for head in heads}
    assert max(words.values()) <= 160, words  # with a sentence in which the head does it


def test_what_all_pages_may_have_is_the_goal() -> None:
    pages = {path.partition("?")[0] for path in MOST}
    wordiest = {
        page: max(most.opened for path, most in MOST.items() if path.partition("?")[0] == page) for page in pages
    }
    assert sum(wordiest.values()) <= GOAL, wordiest


# Words of the glossary that everybody knows as they are meant, and names that are none of its terms.
EVERYDAY = {
    *("word", "part", "row", "path", "source", "target", "score", "answer", "text", "pair", "view", "reading", "link"),
    *("lesson", "publish", "export", "caption", "chance", "gain", "effect", "generated", "resolution", "accuracy"),
    *("switched off", "gold"),
}
JARGON = (
    *("[CLS]", "[SEP]", "[MASK]", "entropy", "nats", "logit", "softmax", "cosine", "rollout", "BERT", "unexplained"),
    *("attention", "syntax", "coreference", "delimiter", "corpus", "matrix", "vector", "induction", "composition"),
)
NAMES = {"a name such as L3H1": r"\bL\d+H\d+\b", "a name such as (4-2)": r"\(\d+-\d+\)"}
# What an explanation must speak of, so that a title that only says what a click does explains nothing.
SPEAKS_OF = {
    "attention": "share",
    "head": "share|several|look",
    "layer": "one after the other",
    "[CLS]": "mark",
    "[SEP]": "mark",
    "a name such as L3H1": r"layer \d+, head \d+",
    "a name such as (4-2)": "papers count from 1",
}


def _terms() -> dict[str, str]:
    """Each term as it is counted, with the pattern of its forms."""
    entries = re.findall(r"^- \*\*([^*]+)\*\*:", Path("docs/glossary.md").read_text("utf-8"), re.MULTILINE)
    terms = {entry for entry in (*entries, *JARGON) if entry not in EVERYDAY} | {"head"}
    forms = {term: rf"(?<!\w){re.escape(term)}(?:s|es)?(?!\w)" for term in terms}
    return {**forms, **NAMES}


def unexplained(seen: list[tuple[str, str]]) -> set[str]:
    """The terms that are seen and nowhere explained; ``seen``: each text with what explains it, or ""."""
    terms = {term: re.compile(form, re.IGNORECASE) for term, form in _terms().items()}
    there = {term for term, form in terms.items() if any(form.search(text) for text, _ in seen)}
    explained = {
        term
        for term in there
        for text, words in seen
        if terms[term].search(text) and words and re.search(SPEAKS_OF.get(term, "."), words, re.IGNORECASE)
    }
    return there - explained


MOST_UNEXPLAINED = 2  # terms on the first screen of Explore


def test_the_first_screen_of_explore_explains_its_terms(visitor: BrowserTab) -> None:
    visitor.resize(DESKTOP)
    page = visitor.page
    page.goto(visitor.url)
    _rests(page)
    seen = page.evaluate(SEEN)
    assert {"attention", "head", "[CLS]", *NAMES} <= unexplained([(text, "") for text, _ in seen])
    left = unexplained(seen)
    assert len(left) <= MOST_UNEXPLAINED, left


def test_what_a_click_does_is_no_explanation() -> None:
    assert unexplained([("6 layers", "Click to open"), ("L3H1", "Layer 3, head 1"), ("[CLS]", "")]) == {
        "layer",
        "[CLS]",
    }
    assert unexplained([("heads of a layer", ""), ("two layers", "They come one after the other.")]) == {"head"}


def _count(visitor: BrowserTab, path: str) -> Calm:
    page, first = visitor.page, _on_first_screen(visitor, path)
    page.goto(f"{visitor.url}{_switched_on(path)}")
    _rests(page)
    while page.evaluate(UNFOLD):
        _rests(page)
    opened = page.evaluate(COUNT)
    return Calm(first["first"], first["controls"], opened["own"], opened["words"])


def _on_first_screen(visitor: BrowserTab, path: str) -> dict[str, int]:
    """The words and controls of a page that nobody has touched."""
    visitor.page.goto(f"{visitor.url}{path}")
    _rests(visitor.page)
    counted: dict[str, int] = visitor.page.evaluate(COUNT)
    return counted


def _switched_on(path: str) -> str:
    """The path with the switch on whose words the server draws, if its page has one."""
    on = next((switch for has, switch in SWITCHES.items() if has in path), "")
    return f"{path}{'&' if '?' in path else '?'}{on}" if on else path


def _rests(page: Page) -> None:
    """The script has run, nothing is being measured, and the number of words stays."""
    expect(page.locator("[class*=st-key-] > * [aria-current=page]").first).to_be_attached()
    page.wait_for_function(IDLE)
    before = None
    while (now := page.evaluate(LENGTH)) != before or not page.evaluate(IDLE):
        before = now
        page.wait_for_timeout(700)
