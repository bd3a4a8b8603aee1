"""The example of each role is a sentence on which the heads of shipped models that have the role do what it says."""

from __future__ import annotations

import re

import pytest

from mha_viz.analysis.syntax import find_pointers
from mha_viz.app.service import studies
from mha_viz.attention import Attention, Head
from mha_viz.figures.words.glosses import find_gloss
from mha_viz.models.getting import catalog
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load_one_stack


@pytest.mark.parametrize("name", ["minilm", "toy", "repeater"])
def test_each_head_does_on_the_example_what_is_said_of_it(name: str) -> None:
    model, of_links = load_one_stack(name), ("syntax", "coreference")
    roles = studies.summarise(catalog.resolve(name)).roles
    findings = [one for one in roles if one.role != "broad"]  # which names no word
    wrong = [
        f"{one.head} {one.detail}"
        for one in findings
        if not (links if one.role in of_links else rests)(model, one.head, one.detail)
    ]
    assert findings
    assert wrong == []


def links(model: Encoder, head: Head, detail: str) -> bool:
    """Whether the largest weight goes the way of the role between the two words that its example marks."""
    name, _, direction = detail.partition(" ")
    attention, (first, second) = read(model, name)
    row, column = find_pointers(attention.only([head]).by_words().content().weights[0].copy())  # [head, word, word]
    if direction == "head_to_dep":
        return bool(column[0, first] == second)
    return bool(row[0, second] == first if direction == "head_row" else row[0, first] == second)


def rests(model: Encoder, head: Head, detail: str) -> bool:
    """Whether the first marked word gives the second, or the special token that is marked, its largest weight."""
    attention, (first, second) = read(model, detail)
    rows = attention.by_words()
    key = {"cls": 0, "sep": len(rows.keys) - 1}.get(detail, second + rows.queries.special.index(False))
    return int(rows[head][first + rows.queries.special.index(False)].argmax()) == key


def read(model: Encoder, detail: str) -> tuple[Attention, tuple[int, int]]:
    """The example of a role, and the places of its two marked words; −1 for a special token."""
    meaning = find_gloss(detail)
    assert meaning
    example = re.sub(r" ?_\[(CLS|SEP)\]_ ?", "", meaning.example)
    attention = model.encode(re.sub("[*_]", "", example))
    first, second = (place(attention, example, mark) if mark in example else -1 for mark in "*_")
    return attention, (first, second)


def place(attention: Attention, example: str, mark: str) -> int:
    """The place of a marked word among the words of the example."""
    start = len(re.sub("[*_]", "", example[: example.index(mark)]))
    words = [token for token in attention.by_words().queries.tokens if not token.special]
    return next(i for i, token in enumerate(words) if token.start <= start < token.end)
