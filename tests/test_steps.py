"""The steps of a reading are data that reads as text: through JSON, a pickle, and from the text of older readings."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from mha_viz.attention import Attention
from mha_viz.attention.steps import (
    NORM_WEIGHTED,
    TYPED,
    Step,
    StepData,
    find_later_steps,
    find_request,
    make_first_steps,
    make_part_steps,
    pack_steps,
    parse_steps,
    parse_wordings,
)
from mha_viz.heads import Head
from mha_viz.request import COSINE, MASK, NEXT, Question, Request
from tests.readings import reading

HEADS = (Head(0, 2), Head(11, 0))
WORD = Question(MASK, 5, "“cat”\n at token 3", places=(5,))
STEPS = {
    "typed": TYPED,
    "changed by only L3H1": Step(StepData("changed", by="only L3H1")),
    "without L0H2 L11H0: zero": Step(StepData("without", HEADS, "zero")),
    "without L0H2: mean 0123abcd9": Step(StepData("without", HEADS[:1], "mean", "0123abcd9")),
    "only L0H2, L11H0": Step(StepData("only", HEADS)),
    "encoder self-attention": make_part_steps("encoder", "A “cat”.")[1],
    "decoder self-attention after the source “A\n“cat”.”": make_part_steps("decoder", "A\n“cat”.")[1],
    "gradient × weight of log p of ““cat”\n at token 3” at token 5": Step(StepData("gradient", question=WORD)),
    "gradient × weight of log p of “a” as the next token": Step(
        StepData("gradient", question=Question(NEXT, word="a"))
    ),
    "gradient × weight of the cosine with “”": Step(StepData("gradient", question=Question(COSINE))),
    "a step made by hand": Step(StepData("a step made by hand")),
    "without": Step(StepData("without")),
}


@pytest.mark.parametrize("wording", STEPS)
def test_a_step_reads_as_text_and_comes_back_as_data(wording: str) -> None:
    step = STEPS[wording]
    assert (step, str(step)) == (wording, wording)
    assert parse_steps(json.loads(json.dumps(pack_steps([step]))))[0].row == step.row
    assert pickle.loads(pickle.dumps(step)).row == step.row
    (read,) = parse_wordings([wording])
    expected = step.row
    if step.row.question is not None:  # text says neither which other tokens are masked nor which piece the word is
        expected = step.row._replace(question=step.row.question._replace(places=()))
    assert read.row == expected


@pytest.mark.parametrize("values", ["typed", 5, {}, {"name": 5}, {"name": "only", "heads": ["no head"]}, {"odd": "a"}])
def test_what_is_no_step_is_an_error(values: object) -> None:
    with pytest.raises(ValueError, match="not a step"):
        parse_steps([values])  # type: ignore[list-item]


def test_a_reading_knows_its_request() -> None:
    raw = reading(2, 3, (1, 2, 1))

    def made(*steps: Step) -> Attention:
        return Attention("m", "r", raw.text, raw.weights, made=steps)

    text = raw.text.text
    assert find_request(raw) is None
    assert find_request(made(*make_first_steps(()))) == Request("m", text)
    without = made(*make_first_steps((), Step(StepData("without", HEADS, "zero"))))
    assert find_request(without.by_words().without_special()) == Request("m", text, off=HEADS)
    assert find_later_steps(without.by_words()) == ("by words",)
    assert find_request(made(*make_first_steps((), Step(StepData("changed", by="Tap"))))) is None
    assert find_request(made(*make_part_steps("cross", text, is_generated=True))) == Request("m", text, part="cross")
    assert find_request(made(*make_part_steps("decoder", "Ein Satz."))) == Request(
        "m", "Ein Satz.", target=text, part="decoder"
    )
    question = Step(StepData("gradient", question=WORD))
    assert find_request(made(*make_first_steps((), question))) == Request("m", text, quantity="gradient", question=WORD)
    norms = Attention("m", "r", raw.text, 7 * raw.weights, quantity="norm", made=make_first_steps((), NORM_WEIGHTED))
    assert find_request(norms) == Request("m", text, quantity="norm")
    assert np.isfinite(norms.weights).all()
