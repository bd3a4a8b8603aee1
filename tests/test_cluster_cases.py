"""What keeps cases over a corpus, measured by a cluster of real processes: the same as by one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import mha_viz as mv
from mha_viz.attention import Head
from mha_viz.cli import main
from mha_viz.corpus.conllu import format_conllu
from mha_viz.models.reading.encoder import Encoder
from mha_viz.request import Request
from mha_viz.study import cases, link_groups, paired_heads, replacements, search, texts
from mha_viz.study.cases import CaseKind, LocalCorpus, MeasurableCorpus, collect_cases
from mha_viz.study.cluster.cases import CaseMeasure, ClusterCorpus
from mha_viz.study.cluster.engine import ClusterEngine
from mha_viz.study.corpus_effects import EffectSettings, Measurement
from mha_viz.study.run import Progress
from tests.shards import make_document_sentences, open_cluster

pytestmark = [pytest.mark.app, pytest.mark.usefixtures("one_thread")]

SHARD = 2000  # bytes: about four sentences


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with open_cluster() as client:
        yield client


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of its sentences is too long for any model."""
    path, (first, second, *others) = tmp_path_factory.mktemp("corpus") / "c.conllu", make_document_sentences(40, 4)
    path.write_text(format_conllu([first, replace(second, words=second.words * 40), *others]), "utf-8")
    return path


def lost_of(source: MeasurableCorpus, toy: Encoder) -> CaseKind:
    settings = replacements.ReplacementStudy.prepare(mv.recipes.load("toy"), source.corpus, toy, 30).settings
    return replacements.VectorCases(*settings)


def effects_of(source: MeasurableCorpus, toy: Encoder) -> CaseKind:
    request = Request(off=(Head(1, 1),))
    return Measurement(toy, source, EffectSettings(request, relation="nsubj", most=30)).kind


def judged(source: MeasurableCorpus, toy: Encoder) -> CaseKind:
    asked = (
        paired_heads._Question(Head(1, 2), "nsubj", "dep_to_head"),
        paired_heads._Question(Head(0, 0), "obj", "head_to_dep"),
    )
    return paired_heads.JudgedCases(1, asked)


def strongest(source: MeasurableCorpus, toy: Encoder) -> CaseKind:
    return search.LinkCases(1, Head(1, 2), search.Conditions(query_pos="NOUN"), 5)


def drawn(source: MeasurableCorpus, toy: Encoder) -> CaseKind:
    return link_groups.DrawnCases(1, Head(0, 2), 50, texts.ReadableTexts.find(toy, source, 100).unread)


@pytest.mark.parametrize("kind_of", [effects_of, lost_of, judged, strongest, drawn])
def test_cases_are_those_of_one_process_in_the_same_order(
    kind_of: Callable[[MeasurableCorpus, Encoder], CaseKind], client: Any, toy: Encoder, corpus: Path, tmp_path: Path
) -> None:
    here, there = LocalCorpus.from_source(corpus), ClusterCorpus.from_source(ClusterEngine(client, size=SHARD), corpus)
    kind, reports = kind_of(here, toy), list[Progress]()
    ours = collect_cases(there.run(toy, kind, tmp_path), reports.append)
    theirs = collect_cases(here.run(toy, kind), lambda _: None)
    assert len(reports) > 3, "there are several parts"
    assert (ours.units, ours.sentences_read, ours.left_out) == (theirs.units, theirs.sentences_read, theirs.left_out)
    assert ours.counts == theirs.counts
    assert [one.tolist() for one in ours.cases] == [one.tolist() for one in theirs.cases]
    client.run(forbid_parts)
    try:
        again = collect_cases(there.run(toy, kind, tmp_path), reports.append)
    finally:
        client.run(allow_parts)
    assert [one.tolist() for one in again.cases] == [one.tolist() for one in theirs.cases]


def forbid_parts() -> None:
    """From now on, a worker that measures fails."""
    cases.forbidden, CaseMeasure.measure_part = CaseMeasure.measure_part, None  # type: ignore[attr-defined, assignment, method-assign]


def allow_parts() -> None:
    """Undo that."""
    CaseMeasure.measure_part = cases.forbidden  # type: ignore[attr-defined, method-assign]


def test_the_functions_of_notebooks_take_a_client(client: Any, toy: Encoder, corpus: Path) -> None:
    recipes, roles = mv.recipes.load("toy"), mv.load_profile("toy")
    measures: list[Callable[..., pd.DataFrame]] = [
        partial(mv.recipes.ablate, recipes, corpus, toy, most=10),
        partial(mv.recipes.score, recipes, corpus, toy, most=10),
        lambda **by: mv.roles.compare_heads(corpus, "L1H2", "L0H0", "nsubj", model=toy, **by).table(),
        lambda **by: mv.roles.compare(roles, corpus, toy, "L1H2", model=toy, **by).table(),
        lambda **by: mv.roles.search_links(corpus, "L1H2", toy, key_relation="nsubj", most=5, **by).table(),
        lambda **by: mv.roles.group_links(corpus, "L0H2", toy, most=30, links=40, **by).table(),
        lambda **by: mv.roles.group_links(corpus, "L0H2", toy, most=30, links=40, **by).table_of_groups(),
    ]
    for measure in measures:
        pd.testing.assert_frame_equal(measure(client=client), measure(), rtol=1e-5, atol=1e-7)


def test_sentences_and_labels_are_those_of_one_process(client: Any, corpus: Path) -> None:
    here, there = LocalCorpus.from_source(corpus), ClusterCorpus.from_source(ClusterEngine(client, size=SHARD), corpus)
    numbers = [0, 3, 4, 20, 39]
    assert there.sentences(numbers) == here.sentences(numbers)
    assert (there.count, there.documents) == (here.count, here.documents)
    assert (there.relations.names, there.relations.upos) == (here.relations.names, here.relations.upos)


@pytest.mark.parametrize(
    "command",
    [
        ["search", "toy/L1H2", "--relation", "nsubj", "--most", "3"],
        ["groups", "toy/L0H2", "--links", "30"],
        ["replicate", "toy", "--beside", "toy@100"],
    ],
    ids=lambda command: command[0],
)
def test_commands_measure_on_a_cluster(
    command: list[str], client: Any, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import dask

    from tests.shards import get_trust

    whole = [*command[:2], str(corpus), *command[2:]]
    assert main([*whole, "--out", str(tmp_path / "here.csv")]) == 0
    printed = capsys.readouterr().out
    with dask.config.set(get_trust(client)):
        assert main([*whole, "--out", str(tmp_path / "there.csv"), "--cluster", client.scheduler.address]) == 0
    assert capsys.readouterr().out == printed
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    assert [*(tmp_path / ".there.csv.parts").glob("*.npz")], "the parts stay, for later measurements"
