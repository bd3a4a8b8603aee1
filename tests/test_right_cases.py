"""Wherever Roles or the search names a head for a role and leads to a sentence, the head does it there."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl, urlsplit

import pytest

from mha_viz.analysis.findings import Finding
from mha_viz.app.service import role_cases, studies
from mha_viz.app.service.role_cases import RoleCase
from mha_viz.app.service.studies import Evidence
from mha_viz.app.url.annotated_texts import AnnotatedText, find_annotation
from mha_viz.attention import Head
from mha_viz.figures.words.role_words import group_by_head
from mha_viz.models.getting import catalog
from mha_viz.models.reading.encoder import Encoder
from tests.page_session import PageSession

MINILM, TOY = catalog.resolve("minilm"), catalog.resolve("toy")
ROLES = "pages/55_roles.py"
OWN = "The cat slept because it was tired."


def evidence(model: catalog.Model) -> Evidence:
    found = studies.load_reference_evidence(model)
    assert found is not None
    return found


def right_case(model: catalog.Model, head: Head, role: tuple[str, str]) -> RoleCase | None:
    of_model = evidence(model)
    return role_cases.find_right_case(model, of_model, head, role_cases.list_bundled_cases(of_model, head), role)


def named(finding: Finding) -> tuple[str, str]:
    return finding.role, finding.detail


def way(page: PageSession) -> dict[str, str]:
    """The parameters of the card's link to Explore."""
    (link,) = [link.proto for link in page.at.get("page_link") if "Open in Explore" in link.proto.label]
    return dict(parse_qsl(link.query_string))


@pytest.mark.parametrize("model", [MINILM, TOY], ids=lambda model: model.name)
def test_every_role_leads_to_a_sentence_in_which_its_head_is_right(model: catalog.Model) -> None:
    roles = [finding for findings in group_by_head(evidence(model).findings()).values() for finding in findings]
    assert len(roles) > 5
    for finding in roles:
        case = right_case(model, finding.head, named(finding))
        assert case is not None, finding
        assert case.answer.endswith(", right"), finding
        assert case.parameters is None or case.parameters["case"].startswith(f"{finding.head}."), finding


def test_the_example_of_a_pronoun_is_shown_only_for_heads_that_are_right_in_it(minilm: Encoder) -> None:
    case = right_case(MINILM, Head(2, 4), ("coreference", "third_person"))
    assert case is not None
    assert case.parameters is not None
    words = minilm.encode(case.parameters["text"]).by_words()
    texts = [token.text for token in words.queries.tokens]
    row = words["L2H4"][texts.index("she")]
    assert texts[int(row.argmax())] == "Anna"
    assert case.answer == f"“she” → “Anna” ({row.max():.3f}), right"
    example = "_Anna_ called because *she* was late"
    right = {
        head for head in minilm.encode("It.").every_head() if role_cases._check_gloss_example(MINILM, head, example)
    }
    assert {Head(2, 4), Head(3, 1)} <= right
    assert Head(0, 2) not in right, "it looks at the word before"
    assert len(right) < 36


def test_a_card_leads_to_a_right_case_unless_the_visitor_has_a_sentence() -> None:
    parameters = way(PageSession({"head": "L2H4"}, ROLES))
    assert parameters == {"text": "Anna called because she was late", "case": "L2H4.q3"}
    opened = PageSession(parameters).shown()
    assert opened.header["start"]["head"] == "L2H4"
    assert way(PageSession({"head": "L2H4", "text": OWN}, ROLES)) == {"head": "L2H4", "text": OWN}
    syntax = way(PageSession({"head": "L1H4"}, ROLES))
    read = find_annotation(syntax["text"])
    assert syntax["case"].startswith("L1H4.")
    assert isinstance(read, AnnotatedText)
    assert "”: right." in PageSession(syntax).said


def test_a_card_says_when_no_sentence_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(role_cases, "_check_gloss_example", lambda *_: None)
    monkeypatch.setattr(role_cases, "select_cases", lambda *_: ())
    page = PageSession({"head": "L2H4"}, ROLES)
    assert "No sentence is stored in which this head does this." in page.said
    assert way(page) == {"head": "L2H4"}


@pytest.mark.parametrize(("typed", "head"), [("pronoun", "L2H4"), ("object", ""), ("previous word", "L0H2")])
def test_a_search_for_a_role_leads_to_a_sentence_in_which_the_head_does_it(typed: str, head: str) -> None:
    page = PageSession()
    page.send("mha_search", "query", typed)
    answers = json.loads(page._drawn()["mha_search"].json)["groups"][0]["answers"]
    for answer in answers:
        parameters = dict(parse_qsl(urlsplit(answer["href"]).query))
        assert parameters["case"].startswith(f"{answer['name']}."), answer
        assert "text" in parameters
    assert answers[0]["name"].startswith(head)


def test_a_search_keeps_the_sentence_of_the_visitor_and_leads_inside_a_head_to_the_right_case() -> None:
    def first(page: PageSession) -> dict[str, str]:
        page.send("mha_search", "query", "pronoun")
        answers = json.loads(page._drawn()["mha_search"].json)["groups"][0]["answers"]
        return dict(parse_qsl(urlsplit(answers[0]["href"]).query))

    assert first(PageSession({"text": OWN})) == {"head": "L2H4", "text": OWN, "roles": "on"}
    inside = PageSession({"q": "10", "k": "9"}, "pages/40_inside_a_head.py")
    assert first(inside) == {"head": "L2H4", "text": "Anna called because she was late"}
