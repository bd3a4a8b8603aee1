"""Search for stages and pages by plain words."""

from __future__ import annotations

import pytest

from mha_viz.app.widgets import stage_search
from mha_viz.files.assets import page_files
from mha_viz.lab.lab import EXPERIMENTS

STAGES = {
    "narrow": "Split input",
    "wide?": "Split input",
    "split": "Split input",
    "why": "Only W_O differs",
    "W_O": "Only W_O differs",
    "gradient": "Only W_O differs",
    "same": "Identical start",
    "redundant": "Remove heads",
    "initialisation": "Random start",
    "random": "Random start",
    "parallel": "Two layers",
    "size": "Inside",
    "length": "Inside",
    "d_model": "Inside",
    "512": "Inside",
    "concat": "Inside",
    "bank": "Example",
}


@pytest.mark.parametrize("typed", STAGES)
def test_plain_words_lead_to_the_stage_that_answers_them(typed: str) -> None:
    group = stage_search.find_by_word(typed, splits_phrase=False)
    assert group is not None
    assert group.answers[0].name == STAGES[typed]
    assert all(answer.question.endswith((".", "?")) for answer in group.answers)


def test_of_a_sentence_one_word_is_enough_if_nothing_else_answers() -> None:
    assert stage_search.find_by_word("are heads redundant?", splits_phrase=False) is None
    group = stage_search.find_by_word("are heads redundant?", splits_phrase=True)
    assert group is not None
    assert group.answers[0].parameters["experiment"] == "removal"
    assert stage_search.find_by_word("zebra crossing", splits_phrase=True) is None


def test_every_word_has_an_answer_on_a_page() -> None:
    for typed in stage_search.ANSWERS_BY_PHRASE:
        group = stage_search.find_by_word(typed, splits_phrase=False)
        assert group is not None
        assert len({answer.question for answer in group.answers}) == len(group.answers)
        for answer in group.answers:
            assert answer.page.replace(" ", "_") in page_files()
            experiment = answer.parameters.get("experiment")
            assert experiment is None or experiment in {*EXPERIMENTS, "repeater", "toy"}


QUESTIONS = {
    "What is different in each head, when all get the same input?": ["Only W_O differs", "Identical start"],
    "is it harmless to cut the vector?": ["Split input"],
    "What stops heads from learning the same weights?": ["Identical start"],
    "are heads redundant?": ["Remove heads"],
    "why is one head not enough?": ["Head count"],
    "What does each head learn?": ["Roles appear"],
    "what is fed to each layer?": ["Inside", "Two layers"],
    "how do gradients differ?": ["Only W_O differs"],
    "how are weights initialised?": ["Random start"],
    "why do we concatenate the heads?": ["Inside"],
}


@pytest.mark.parametrize("typed", QUESTIONS)
def test_a_question_is_answered_by_the_stages_that_its_words_name(typed: str) -> None:
    group = stage_search.find_by_question(typed)
    assert group is not None
    names = [answer.name for answer in group.answers]
    assert names[: len(QUESTIONS[typed])] == QUESTIONS[typed]
    assert len({answer.question for answer in group.answers}) == len(names) <= 3


@pytest.mark.parametrize("typed", ["it animal", "previous word", "which heads look at the same word", "how tall is it"])
def test_other_words_are_no_question_to_a_stage(typed: str) -> None:
    assert stage_search.find_by_question(typed) is None
