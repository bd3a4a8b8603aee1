"""The path for a learner: the tour and the questions lead where they say."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from mha_viz.assets import asset
from mha_viz.attention import Head
from mha_viz.figures.caption import both
from mha_viz.training.record import EXPERIMENTS
from mha_viz.ui import tour
from mha_viz.ui.inside import page as inside
from mha_viz.ui.inside.steps import STEPS
from mha_viz.ui.lab import questions
from mha_viz.ui.lab.questions import Question
from mha_viz.ui.parts import formulas
from mha_viz.ui.roles import learning
from tests.page_session import ROOT, PageSession

if TYPE_CHECKING:
    from mha_viz.models.encoder import Encoder

QUESTIONS = questions.questions()
STEPS_OF_TOUR = tour.steps()
SENTENCE = re.compile(r"[.!?](?= [A-Z]|$)")


def path_of(name: str) -> str:
    """The URL path of the page with this name."""
    return name.replace(" ", "_")


def file_of(name: str) -> str:
    """The file of the page with this name."""
    (found,) = (ROOT / "pages").glob(f"[0-9]*_{path_of(name)}.py")
    return f"pages/{found.name}"


def visit(page: str, **url: Any) -> PageSession:
    return PageSession(url, file_of(page))


def links(of: PageSession) -> dict[str, Any]:
    """What every link of a page says, and where it leads."""
    return {link.proto.label: link.proto for link in of.at.get("page_link")}


def understood(page: str, parameters: dict[str, str]) -> bool:
    """True when every parameter of a link is one that the page reads, with a value that it knows."""
    known = {
        "why heads differ": {"experiment": lambda value: value in EXPERIMENTS},
        "inside a head": {"step": lambda value: value in (*STEPS, inside.COST), "head": lambda value: value in HEADS},
        "explore": {"head": lambda value: value in HEADS, "pin": lambda value: value == "q10"},
        "roles": {"head": lambda value: value in HEADS, "model": lambda value: value == "toy"},
    }
    return all(name in known[page] and known[page][name](value) for name, value in parameters.items())


HEADS = {f"L{layer}H{head}" for layer in range(6) for head in range(12)}


# ---- Questions --------------------------------------------------------------------------------------------


def test_the_questions_of_learners_are_all_there() -> None:
    asked = " ".join(question.question for question in QUESTIONS)
    for words in (
        "unique",
        "different part of the input",
        "same weights",
        "diverse",
        "redundant",
        "split",
        "cost",
    ):
        assert words in asked


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.see)
def test_an_answer_is_two_sentences_with_a_source(question: Question) -> None:
    assert len(SENTENCE.findall(question.answer)) == 2, question.answer
    assert re.search(r"\b20\d\d\b", question.source)
    assert understood(question.page, question.parameters)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.see)
def test_a_question_leads_to_its_experiment(question: Question) -> None:
    page = visit(question.page, **question.parameters)
    assert "does not exist" not in page.said
    if "experiment" in question.parameters:
        assert formulas(question.answer) in page.said
        assert formulas(question.source) in page.said


def test_the_page_shows_every_question_with_its_link() -> None:
    page = visit("questions")
    for question in QUESTIONS:
        assert question.question in page.said
        assert formulas(question.answer) in page.said
        link = next(link for label, link in links(page).items() if formulas(question.see) in label)
        assert link.page == path_of(question.page)
        for name, value in question.parameters.items():
            assert f"{name}={value}" in link.query_string


def test_what_it_costs_opens_the_calculator_right_below_the_map() -> None:
    page = visit("inside a head", step=inside.COST)
    headings = [m.value.splitlines()[0] for m in page.at.markdown if m.value.startswith("###")]
    assert headings[0] == "### What it costs"


# ---- Tour -------------------------------------------------------------------------------------------------


def test_the_tour_has_six_steps_over_the_pages_in_order() -> None:
    pages = [step.page for step in STEPS_OF_TOUR]
    assert pages == ["explore", "inside a head", "why heads differ", "roles", "roles", "explore"]
    assert STEPS_OF_TOUR[3].parameters == {"model": "toy"}
    assert "model" not in STEPS_OF_TOUR[4].parameters
    for step in STEPS_OF_TOUR:
        assert understood(step.page, step.parameters)


@pytest.mark.parametrize("at", range(1, len(STEPS_OF_TOUR) + 1))
def test_a_step_is_said_on_its_page_with_the_ways_on(at: int) -> None:
    step = STEPS_OF_TOUR[at - 1]
    page = visit(step.page, **step.parameters, tour=str(at))
    assert f"{at} of 6" in page.said
    assert step.text in page.said
    assert "something else" not in page.said
    assert "does not exist" not in page.said
    ways = [*links(page), *(button.label for button in page.at.button)]
    assert any("Next" in label for label in ways) == (at < 6)
    assert any("Back" in label for label in ways) == (at > 1)
    page.at.button(key="tour_out").click().run()
    page.check()
    assert page.url == step.parameters
    assert step.text not in page.said


def test_next_and_back_within_a_page_move_the_address_too() -> None:
    page = visit("roles", model="toy", tour="4", tray="x")
    page.at.button(key="tour_next").click().run()
    page.check()
    assert page.url == {**STEPS_OF_TOUR[4].parameters, "tour": "5", "tray": "x"}
    assert STEPS_OF_TOUR[4].text in page.said
    page.at.button(key="tour_back").click().run()
    assert STEPS_OF_TOUR[3].text in page.said


def test_the_words_speak_of_what_is_measured(minilm: Encoder) -> None:
    attention = minilm.encode(json.loads(asset("examples.json").read_text("utf-8"))[0]["text"])
    tokens = [token.text for token in attention.text.tokens]
    assert tokens[10] == "it"
    assert tokens[int(attention.weights[3, 1, 10].argmax())] == "animal"
    assert [int(row.argmax()) for row in attention.weights[0, 2, 1:-1]] == list(range(len(tokens) - 2))
    beaten = re.search(r"For \*\*(\d+)\*\* of (\d+) relations a simple rule does as well", visit("roles").said)
    assert beaten
    assert int(beaten[1]) > int(beaten[2]) / 3


def test_a_first_visit_is_offered_the_tour_and_another_one_can_find_it() -> None:
    assert "New here?" in visit("explore").at.button(key="tour_first").label
    assert any("New here?" in label for label in links(visit("questions")))
    page = visit("explore", text="Birds sing.", tray="x")
    assert page.at.button(key="tour_first").label == "Tour"
    page.at.button(key="tour_first").click().run()
    page.check()
    assert page.url == {**STEPS_OF_TOUR[0].parameters, "tour": "1", "tray": "x"}


def test_a_tour_that_was_left_can_be_gone_on_with() -> None:
    page = visit("explore", tour="3", text="Birds sing.")
    assert "The tour stopped at step 3 of 6" in page.said
    onward = next(link for label, link in links(page).items() if "Go on" in label)
    assert onward.page == "why_heads_differ"
    assert "tour=3" in onward.query_string


def test_words_on_another_sentence_say_so() -> None:
    page = visit("explore", tour="1", text="Birds sing.", head="L0H2")
    assert STEPS_OF_TOUR[0].text in page.said
    assert "You are looking at something else now" in page.said


@pytest.mark.parametrize("odd", ["0", "7", "-1", "0061", "1e0", "１", "", "one", "9" * 5000])
def test_odd_steps_are_no_steps(odd: str) -> None:
    assert tour.number({"tour": odd}) is None


# ---- How the toy learned ----------------------------------------------------------------------------------


def learned(**url: str) -> PageSession:
    return visit("roles", model=learning.MODEL, **url)


def pictures(page: PageSession) -> list[str]:
    return [e.proto.body for e in page.at.get("html") if e.proto.body.startswith('<img alt="Grid of all heads')]


@pytest.mark.parametrize("step", [0, 400, 10000])
def test_scores_and_maps_of_a_step_are_those_of_that_step(step: int) -> None:
    page = learned(**{learning.PARAMETER: str(step)})
    assert page.at.select_slider(key=learning.PARAMETER).value == step
    (picture,) = pictures(page)
    assert f'alt="Grid of all heads after {step} steps"' in picture
    history = learning.history()
    for task in learning.TASKS:
        scores = history[(history["task"] == task) & (history["step"] == step)]
        best = scores.loc[scores["accuracy"].idxmax()]
        head = Head(int(best["layer"]), int(best["head"]))
        row = next(line for line in page.said.splitlines() if line.startswith(f"| {learning.TASKS[task]} |"))
        assert f"{both(head)} | **{best['accuracy']:.1%}** of {int(best['n']):,}" in row
        assert f"{best['baseline']:.1%}" in row


def test_the_slider_moves_scores_and_maps() -> None:
    page = learned()
    last = pictures(page)
    page.at.select_slider(key=learning.PARAMETER).set_value(50).run()
    page.check()
    assert pictures(page) != last
    assert "| after 50 steps |" in page.said
    (explore,) = [link for label, link in links(page).items() if "this step in Explore" in label]
    assert "model=toy%4050" in explore.query_string


def test_the_weights_in_the_sentence_are_those_of_the_model() -> None:
    from mha_viz.models.encoder import load

    drawn = learning.drawn()
    attention = load("toy@10000").encode_words(list(drawn.sentence.forms)).by_words()
    place, meant = (word + 1 for word in drawn.pairs["pronoun_antecedent"])
    assert drawn.sentence.words[place - 1].upos == "PRON"
    assert f"{drawn.named('pronoun_antecedent')}: {attention.weights[1, 1, place, meant]:.2f} |" in learned().said


@pytest.mark.parametrize("odd", ["7", "-1", "x", "400.0", ""])
def test_odd_steps_of_training_show_the_last(odd: str) -> None:
    page = learned(**{learning.PARAMETER: odd})
    assert page.at.select_slider(key=learning.PARAMETER).value == 10000


def test_how_it_learned_is_told_of_the_toy_alone() -> None:
    assert "How it learned" not in visit("roles").said
