"""Other sentences for the open head on Explore: which they are, and what a click reads."""

from __future__ import annotations

import pytest

from mha_viz.app.explore import corpus_cases
from mha_viz.app.service.role_cases import list_bundled_cases
from mha_viz.app.service.studies import load_bundled
from mha_viz.attention import Head
from tests.page_session import PageSession

pytestmark = pytest.mark.usefixtures("no_hub")


@pytest.mark.parametrize("name", ["minilm", "toy", "repeater"])
def test_the_stored_cases_are_those_of_the_profiles(name: str) -> None:
    evidence = load_bundled(name)
    assert evidence is not None
    stored, heads = corpus_cases._load_cases(name), evidence.profiles[0].heads()
    assert stored.keys() <= set(heads)
    for head in heads:
        assert stored.get(head, []) == [
            one
            for one in list_bundled_cases(evidence, head)
            if one.role in corpus_cases.LINKING_ROLES
            and 0 <= one.answer < len(one.sentence.forms) >= corpus_cases.MIN_WORDS
        ]
    assert stored


def test_of_a_long_sentence_the_words_around_the_link_are_shown() -> None:
    for case in (one for cases in corpus_cases._load_cases("minilm").values() for one in cases):
        shown, forms = corpus_cases._describe_case(case), case.sentence.forms
        ends = case.word, case.answer
        if case.detail.endswith("head_to_dep"):  # the word that attends is the answer
            ends = ends[::-1]
        words = [word.removeprefix("… ").removesuffix(" …") for word in shown["words"]]
        assert (words[shown["from"]], words[shown["to"]]) == (forms[ends[0]], forms[ends[1]])
        assert shown["words"][0].startswith("… ") == (min(ends) > corpus_cases.CONTEXT_WORDS)
        assert shown["words"][-1].endswith(" …") == (max(ends) + corpus_cases.CONTEXT_WORDS < len(forms) - 1)
        assert len(words) <= 4 * corpus_cases.CONTEXT_WORDS + 2


def test_a_click_reads_the_sentence_in_place_of_this_one() -> None:
    page = PageSession({"head": "L2H8", "text": "Cats sleep.", "unit": "pieces"})
    offered = page.at.session_state["explorer_elsewhere"]
    assert len(offered) == corpus_cases.MAX_RIGHT + corpus_cases.MAX_WRONG
    page.send("mha_explorer", "elsewhere", 1)
    there = corpus_cases.make_case_parameters(offered[1])
    assert page.url == there
    assert Head.parse(page.url["case"].split(".")[0]) == Head(2, 8)
    page.send("mha_explorer", "elsewhere", 99)
    page.send("mha_explorer", "elsewhere", "1")
    assert page.url == there


@pytest.mark.parametrize(
    "url", [{"head": "L0H0"}, {"head": "L2H8", "class": "1"}, {"head": "L2H8", "off": "L0H1"}, {"shown": "norm"}]
)
def test_where_no_case_can_be_shown_none_is_offered(url: dict[str, str]) -> None:
    assert PageSession(url).at.session_state["explorer_elsewhere"] == []
