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
    Row,
    Step,
    later_steps,
    of_part,
    packed,
    parse,
    read_as,
    request_of,
    steps_of,
)
from mha_viz.heads import Head
from mha_viz.request import COSINE, MASK, NEXT, Question, Request
from tests.readings import reading

HEADS = (Head(0, 2), Head(11, 0))
WORD = Question(MASK, 5, "“cat”\n at token 3", places=(5,))
STEPS = {
    "typed": TYPED,
    "changed by only L3H1": Step(Row("changed", by="only L3H1")),
    "without L0H2 L11H0: zero": Step(Row("without", HEADS, "zero")),
    "without L0H2: mean 0123abcd9": Step(Row("without", HEADS[:1], "mean", "0123abcd9")),
    "only L0H2, L11H0": Step(Row("only", HEADS)),
    "encoder self-attention": of_part("encoder", "A “cat”.")[1],
    "decoder self-attention after the source “A\n“cat”.”": of_part("decoder", "A\n“cat”.")[1],
    "gradient × weight of log p of ““cat”\n at token 3” at token 5": Step(Row("gradient", question=WORD)),
    "gradient × weight of log p of “a” as the next token": Step(Row("gradient", question=Question(NEXT, word="a"))),
    "gradient × weight of the cosine with “”": Step(Row("gradient", question=Question(COSINE))),
    "a step made by hand": Step(Row("a step made by hand")),
    "without": Step(Row("without")),
}


@pytest.mark.parametrize("wording", STEPS)
def test_a_step_reads_as_text_and_comes_back_as_data(wording: str) -> None:
    step = STEPS[wording]
    assert (step, str(step)) == (wording, wording)
    assert parse(json.loads(json.dumps(packed([step]))))[0].row == step.row
    assert pickle.loads(pickle.dumps(step)).row == step.row
    (read,) = steps_of([wording])
    expected = step.row
    if step.row.question is not None:  # text says neither which other tokens are masked nor which piece the word is
        expected = step.row._replace(question=step.row.question._replace(places=()))
    assert read.row == expected


@pytest.mark.parametrize("values", ["typed", 5, {}, {"name": 5}, {"name": "only", "heads": ["no head"]}, {"odd": "a"}])
def test_what_is_no_step_is_an_error(values: object) -> None:
    with pytest.raises(ValueError, match="not a step"):
        parse([values])  # type: ignore[list-item]


def test_a_reading_knows_its_request() -> None:
    raw = reading(2, 3, (1, 2, 1))

    def made(*steps: Step) -> Attention:
        return Attention("m", "r", raw.text, raw.weights, made=steps)

    text = raw.text.text
    assert request_of(raw) is None
    assert request_of(made(*read_as(()))) == Request("m", text)
    without = made(*read_as((), Step(Row("without", HEADS, "zero"))))
    assert request_of(without.by_words().without_special()) == Request("m", text, off=HEADS)
    assert later_steps(without.by_words()) == ("by words",)
    assert request_of(made(*read_as((), Step(Row("changed", by="Tap"))))) is None
    assert request_of(made(*of_part("cross", text, is_generated=True))) == Request("m", text, part="cross")
    assert request_of(made(*of_part("decoder", "Ein Satz."))) == Request("m", "Ein Satz.", target=text, part="decoder")
    question = Step(Row("gradient", question=WORD))
    assert request_of(made(*read_as((), question))) == Request("m", text, quantity="gradient", question=WORD)
    norms = Attention("m", "r", raw.text, 7 * raw.weights, quantity="norm", made=read_as((), NORM_WEIGHTED))
    assert request_of(norms) == Request("m", text, quantity="norm")
    assert np.isfinite(norms.weights).all()
