"""Sentences of the corpus in which the open head does what its role says, and one in which it fails."""

from __future__ import annotations

import csv
import json
from functools import cache
from typing import Any

from mha_viz.analysis.bundled_data import list_bundled_folders
from mha_viz.analysis.examples import Example, make_example
from mha_viz.analysis.profile import SENTENCES_FILE
from mha_viz.app.service import role_cases
from mha_viz.app.url import address
from mha_viz.app.url.annotated_texts import load_built_in_corpus
from mha_viz.app.widgets.inference import PageReading
from mha_viz.attention import Head
from mha_viz.corpus.conllu import read_conllu
from mha_viz.corpus.excerpts import extract_excerpts
from mha_viz.view.quantities import WEIGHT

MAX_RIGHT, MAX_WRONG = 3, 1  # maximum sentences in which the head is right, and wrong
MIN_WORDS = 3  # minimum words of a sentence
CONTEXT_WORDS = 4  # words of a long sentence that are shown on each side of a link
LINKING_ROLES = ("coreference", "syntax", "position")  # roles that link words


def find_cases(page: PageReading) -> list[Example]:
    """Return the shortest cases of the open head: up to ``MAX_RIGHT`` right ones, then up to ``MAX_WRONG`` wrong ones.

    Empty for models without stored cases, for roles without links between words, and in the view for a class.
    """
    if page.is_part or page.attention.quantity != WEIGHT or address.is_class_view() or page.url.location.request.off:
        return []
    if page.model.kind not in ("bundled", "own"):
        return []
    cases = [
        case
        for case in _load_cases(page.model.name).get(page.heads[0], ())
        if " ".join(case.sentence.forms) != page.url.sentence
    ]
    right_cases, wrong_cases = ([case for case in cases if case.right is is_right] for is_right in (True, False))
    return [*_sort_by_length(right_cases)[:MAX_RIGHT], *_sort_by_length(wrong_cases)[:MAX_WRONG]] if right_cases else []


def describe_cases(page: PageReading, cases: list[Example]) -> dict[str, Any]:
    """Return the cases for the explorer: under "elsewhere", the open "head" and its "cases".

    A case has the "words" around a link, the ends of the link ("from", "to") as numbers of these words, its "weight",
    and whether it is "right".
    """
    return {"elsewhere": {"head": page.attention.place(page.heads[0]), "cases": [*map(_describe_case, cases)]}}


def _describe_case(case: Example) -> dict[str, Any]:
    ends = (case.answer, case.word) if case.detail.endswith("head_to_dep") else (case.word, case.answer)
    forms = case.sentence.forms
    positions = [i for i in range(len(forms)) if any(abs(i - end) <= CONTEXT_WORDS for end in ends)]
    words = [
        forms[i] if i - 1 in (previous, -1) else f"… {forms[i]}"
        for previous, i in zip([-1, *positions], positions, strict=False)
    ]
    words[-1] += "" if positions[-1] == len(forms) - 1 else " …"
    begin, end = map(positions.index, ends)
    return {"words": words, "from": begin, "to": end, "weight": round(case.weight, 3), "right": case.right}


def _sort_by_length(cases: list[Example]) -> list[Example]:
    unique_cases = {case.sentence.forms: case for case in reversed(cases)}
    return sorted(unique_cases.values(), key=lambda case: len(_describe_case(case)["words"]))


@cache
def _load_cases(name: str) -> dict[Head, list[Example]]:
    """Load a model's stored cases that link two words, by head. Does not import pandas."""
    cases: dict[Head, list[Example]] = {}
    for folder in list_bundled_folders(name):
        table, texts = folder / "evidence.csv", folder / SENTENCES_FILE
        if not table.is_file():
            continue
        rows = [*csv.DictReader(table.read_text("utf-8").splitlines())]
        spans = sorted({(int(row["first"]), int(row["last"])) for row in rows})
        is_built_in = (
            json.loads((folder / "profile.json").read_text("utf-8"))["sha256"] == load_built_in_corpus().digest
        )
        if texts.is_file():
            sentences = read_conllu(texts.read_text("utf-8"), SENTENCES_FILE).sentences
        else:
            sentences = extract_excerpts(load_built_in_corpus().sentences, spans) if is_built_in else ()
        sentence_by_span = dict(zip(spans, sentences, strict=False))
        for row in rows:
            span = int(row["first"]), int(row["last"])
            case = make_example({**row, "right": row["right"] == "True"}, sentence_by_span.get(span))
            if case and case.role in LINKING_ROLES and 0 <= case.answer < len(case.sentence.forms) >= MIN_WORDS:
                cases.setdefault(case.head, []).append(case)
    return cases


def make_case_parameters(case: Example) -> dict[str, str]:
    """Return the URL parameters with which Explore reads a case; empty if it is too long for a link."""
    return (
        role_cases.make_explore_parameters(case.sentence, role_cases.make_link_case(case), role_cases.encode_gold(case))
        or {}
    )
