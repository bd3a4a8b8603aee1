"""The example of each role is a sentence on which the heads of the shipped model that have the role do what it says."""

from __future__ import annotations

import re

from mha_viz.analysis.syntax import pointers
from mha_viz.attention import Attention, Head
from mha_viz.figures.glosses import gloss
from mha_viz.models import catalog
from mha_viz.models.encoder import Encoder
from mha_viz.ui import studies


def test_each_head_does_on_the_example_what_is_said_of_it(minilm: Encoder) -> None:
    findings = [one for one in studies.roles(catalog.default()) if one.role in ("syntax", "coreference")]
    assert {"third_person", "case dep_to_head", "obj head_row"} <= {one.detail for one in findings}
    wrong = [(str(one.head), one.detail) for one in findings if not attends(minilm, one.head, one.detail)]
    assert wrong == []


def attends(minilm: Encoder, head: Head, detail: str) -> bool:
    """Whether the largest weight goes the way of the role between the two words that its example marks."""
    name, _, direction = detail.partition(" ")
    meaning = gloss(name)
    assert meaning
    attention = minilm.encode(re.sub("[*_]", "", meaning.example))
    first, second = (place(attention, meaning.example, mark) for mark in "*_")
    block = attention.only([head]).by_words().content().weights[0].copy()  # [head, word, word]
    row, column = pointers(block)
    if direction == "head_to_dep":
        return bool(column[0, first] == second)
    return bool(row[0, second] == first if direction == "head_row" else row[0, first] == second)


def place(attention: Attention, example: str, mark: str) -> int:
    """The place of a marked word among the words of the example."""
    start = len(re.sub("[*_]", "", example[: example.index(mark)]))
    words = [token for token in attention.by_words().queries.tokens if not token.special]
    return next(i for i, token in enumerate(words) if token.start <= start < token.end)
