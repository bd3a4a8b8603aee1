"""The number of documents stands beside every interval; below 5 it is marked, from 5 on it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from mha_viz.analysis.corpus_effects import CorpusEffect
from mha_viz.analysis.findings import DOCUMENTS, Finding
from mha_viz.analysis.intervals import FEW, FEWEST_BLOCKS, Interval
from mha_viz.analysis.paired_accuracy import ModelHead, PairedDifference, PairedDifferences
from mha_viz.analysis.profile import Profile, read_profile
from mha_viz.analysis.replication import HOLDS, Replication, RoleScore
from mha_viz.app.roles import role_use as card
from mha_viz.app.widgets.parts import to_percentages
from mha_viz.attention import Head
from mha_viz.cli import effect, outcomes, used
from mha_viz.figures.words.role_words import describe_documents, describe_evidence
from mha_viz.files.assets import asset_path

MARK = "few documents"
FINDING = Finding(Head(0, 1), "syntax", "nsubj dep_to_head", 0.9, 0.5, 0.4, 200, 0.8, 0.95)


def _role(documents: int) -> str:
    return describe_evidence(FINDING._replace(documents=documents))


def _effect(documents: int) -> str:
    measured = CorpusEffect("toy", "mine", "zero", "fall", "", "", 9, 9, 1, documents, 0, ())
    return "\n".join(effect._format_lines(measured))


def _table(documents: float) -> pd.DataFrame:
    table: pd.DataFrame = read_profile(asset_path("profiles") / "toy" / "grammar").tables["used"]
    return table.assign(documents=documents)


def _used(documents: float) -> str:
    profile = read_profile(asset_path("profiles") / "toy" / "grammar")
    return "\n".join(used.format_used(replace(profile, tables={"used": _table(documents)})))


def _card(documents: int) -> str:
    return card._describe_effect(next(_table(documents).itertuples(index=False)))["words"]


def _replicate(documents: int) -> str:
    here = RoleScore(0.8, 0.5, 200, 0.7, 0.9, documents=documents)
    there, other = (Profile({"model": "toy", "corpus": name, "definitions": "3"}, {}) for name in ("A", "B"))
    return "\n".join(outcomes.format_replications([Replication(FINDING, here, HOLDS)], there, other))


def _paired(documents: int) -> str:
    one, other = (ModelHead("toy", Head(1, head)) for head in (1, 2))
    pair = PairedDifference("nsubj", "dep_to_head", one, other, 200, documents, 0.8, 0.5, Interval(0.2, 0.4))
    return "\n".join(outcomes.format_pairs(PairedDifferences([pair]), "A"))


@pytest.mark.parametrize("said", [_role, _effect, _used, _card, _replicate, _paired])
def test_few_documents_are_marked_and_their_number_is_said(said: Callable[[int], str]) -> None:
    for documents in range(1, FEW):
        assert MARK in said(documents).lower()
    for documents in (FEW, FEW + 1, 40):
        assert MARK not in said(documents).lower()
        assert f"{documents} documents" in said(documents)
    assert f"{FEW - 1} documents" in said(FEW - 1)


def test_a_table_of_a_page_marks_few_documents_beside_numbers_that_are_sorted_as_numbers() -> None:
    table = pd.DataFrame({"score": [0.5, 0.25, 0.125], DOCUMENTS: [300, FEW - 1, None], "n": [9, 9, 9]})
    shown = to_percentages(table, ["score"])
    assert [*shown] == ["score", DOCUMENTS, "few", "n"]
    assert shown["few"].tolist() == ["", MARK, ""]
    assert pd.api.types.is_numeric_dtype(shown[DOCUMENTS])
    assert shown.sort_values(DOCUMENTS)[DOCUMENTS].tolist()[:2] == [FEW - 1, 300]
    assert shown["score"].tolist() == [50, 25, 12.5]
    assert [*table] == ["score", DOCUMENTS, "n"]
    assert [*to_percentages(table[::2], ["score"])] == [*table]
    assert [*to_percentages(table[["score"]], ["score"])] == ["score"]


def test_where_nobody_counted_documents_nothing_is_said() -> None:
    assert describe_documents(None) == ""
    assert "documents" not in _used(float("nan"))  # as read from a table without them


def test_many_documents_may_be_blocks_of_them() -> None:
    assert describe_documents(FEWEST_BLOCKS - 1) == f" over {FEWEST_BLOCKS - 1} documents"
    assert describe_documents(FEWEST_BLOCKS) == f" over {FEWEST_BLOCKS} documents or blocks of them"
