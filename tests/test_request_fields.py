"""Every field of a request as JSON, as a parameter of a link, as an option of a command and in Python."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from mha_viz.app.url import address
from mha_viz.cli import quantities
from mha_viz.cli.options import Parser, add_text_options
from mha_viz.figures.layout import figure_code
from mha_viz.heads import Head
from mha_viz.request import COSINE, FIELDS, MASK, Question, Request

NEITHER_LINK_NOR_OPTION = {
    "words": "the words of annotated text, which a link and a command have as that text",
    "question": "what place, word, other and off_in become once the model has looked the word up",
}
NO_OPTION = {"text": "the argument of the commands that read one"}
# Requests in which every field has another value than by default, with the Python code that makes them.
IN_PYTHON = {
    Request("m", "A cat.", "It slept."): "mv.load('m').encode('A cat.', 'It slept.')",
    Request("m", "A cat.", prefix="query: "): "mv.load('m').prefixed('query: ').encode('A cat.')",
    Request("m", words=("A", "cat")): "mv.load('m').encode_words(['A', 'cat'])",
    Request("m", "A cat.", target="Eine Katze.", part="decoder"): (
        "mv.load('m').encode('A cat.', target='Eine Katze.', part='decoder')"
    ),
    Request("m", "A cat.", off=(Head(2, 4), Head(3, 1)), method="text", source="A dog."): (
        "mv.ablate(mv.load('m'), ['L2H4', 'L3H1'], 'A cat.', method='text', source='A dog.')"
    ),
    Request("m", "A [MASK].", quantity="gradient", place=3, word="cat"): (
        "mv.quantities.gradient_weighted(mv.load('m'), 'A [MASK].', word='cat', place=3)"
    ),
    Request("m", "A cat.", quantity="gradient", other="A dog.", off_in="first"): (
        "mv.quantities.gradient_weighted(mv.load('m'), 'A cat.', other='A dog.', off_in='first')"
    ),
}


def looked_up(request: Request) -> Request:
    """The request with its question, as a model would look it up."""
    if request.question or request.quantity != "gradient":
        return request
    if request.other:
        return request.with_question(Question(COSINE, other=request.other, off_in=request.off_in))
    return request.with_question(Question(MASK, request.place or 0, request.word, 7))


def test_every_field_has_a_parameter_an_option_and_a_name_of_its_own_except_those_with_a_reason() -> None:
    assert {field.name for field in fields(Request)} - {*FIELDS} == NEITHER_LINK_NOR_OPTION.keys()
    assert {name for name, field in FIELDS.items() if not field.option} == NO_OPTION.keys()
    for named in zip(*FIELDS.values(), strict=True):
        assert len({*filter(None, named)}) == len([*filter(None, named)])


@pytest.mark.parametrize("name", [field.name for field in fields(Request)])
def test_every_field_is_itself_after_json_a_link_and_a_command_and_is_in_python(name: str) -> None:
    every = (*IN_PYTHON, *map(looked_up, IN_PYTHON))
    request = next(one for one in every if getattr(one, name) != getattr(Request(), name))
    value = getattr(request, name)
    assert getattr(Request.parse(json.loads(json.dumps(request.pack()))), name) == value
    if name in FIELDS:
        assert getattr(address.read(request.parameters()).request, name) == value
        assert getattr(of_command(request), name) == value
    code = figure_code._write_call(looked_up(request), "")
    assert code == {looked_up(one): written for one, written in IN_PYTHON.items()}[looked_up(request)]
    assert name == "question" or str([*map(str, value)] if isinstance(value, tuple) else value) in code


def of_command(request: Request) -> Request:
    """The request that a command makes from its text and its options, with one for each other field."""
    command = Parser()
    add_text_options(command)
    quantities.add_options(command)
    given = [request.text]
    for name, value in request.pack().items():
        if name in FIELDS and name not in NO_OPTION:
            given += [FIELDS[name].option, ",".join(map(str, value)) if isinstance(value, tuple) else str(value)]
    args = command.parse_args(given)
    return quantities.build_request(args, args.model, args.text)
