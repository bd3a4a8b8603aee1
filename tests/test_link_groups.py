"""What a head does over all text: which links are drawn, which rule takes them, and how the rest is grouped."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mha_viz as mv
from mha_viz.analysis import link_groups as links_of
from mha_viz.analysis.bundled_data import make_shares
from mha_viz.analysis.link_groups import (
    GROUP_COLUMNS,
    LINK_COLUMNS,
    LinkSample,
    cluster_points,
    compute_silhouette,
    find_medoids,
)
from mha_viz.analysis.rules import RULES, make_matrix, predict
from mha_viz.cli import main
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu
from mha_viz.errors import SettingError, UnknownHead
from mha_viz.study.cases import Cases
from mha_viz.study.link_groups import DrawnCases, group_links
from mha_viz.study.recipes import list_numbered_texts
from mha_viz.study.run import Progress
from tests.libraries import MISSING

if TYPE_CHECKING:
    from mha_viz.models.reading.encoder import Encoder

pytestmark = pytest.mark.usefixtures("one_thread")


def distances(*points: float) -> np.ndarray:
    return np.abs(np.subtract.outer(points, points)).astype(float)


def test_medoids_and_silhouette_by_hand() -> None:
    apart = distances(0, 1, 2, 10, 11)
    labels = apart[:, find_medoids(apart, 2)].argmin(axis=1)
    assert sorted(find_medoids(apart, 2)) in ([1, 3], [1, 4])
    assert len({*labels[:3]}) == len({*labels[3:]}) == 1 != len({*labels})
    # a: 1.5, 1, 1.5, 1, 1; b: 10.5, 9.5, 8.5, 9, 10
    widths = [9 / 10.5, 8.5 / 9.5, 7 / 8.5, 8 / 9, 9 / 10]
    assert compute_silhouette(apart, labels) == pytest.approx(np.mean(widths))
    assert compute_silhouette(distances(0, 1, 9), np.array([0, 0, 1])) == pytest.approx(
        (8 / 9 + 7 / 8) / 3
    )  # one is alone
    assert len({*cluster_points(apart)}) == 2
    assert cluster_points(distances(4, 4, 4, 4)).tolist() == [0, 0, 0, 0]
    assert cluster_points(distances(4)).tolist() == [0]


def test_links_are_drawn_by_their_weights_whatever_the_order() -> None:
    rows = {number: np.random.default_rng(number).dirichlet([0.3] * 6, 6).astype(np.float32) for number in range(300)}
    whole, parts = LinkSample(400), [LinkSample(400) for _ in range(3)]
    for number, weights in rows.items():
        whole.add(number, weights)
        parts[number % 3].add(number, weights)
    parts[2].merge(parts[0])
    parts[2].merge(parts[1])
    drawn = list(whole)
    assert drawn == list(parts[2])
    assert [weight for weight, *_ in drawn] == sorted((weight for weight, *_ in drawn), reverse=True)
    assert all(weight == rows[number][query, key] for weight, number, query, key in drawn)
    every = np.sort(np.concatenate([weights.ravel() for weights in rows.values()]))[::-1]
    tenth = every[np.searchsorted(every.cumsum() / every.sum(), np.arange(1, 10) / 10)]
    counts = np.diff([0, *np.searchsorted([-weight for weight, *_ in drawn], -tenth), len(drawn)])
    assert counts.min() > 20  # a tenth of the attention holds 40 of 400 links
    assert counts.max() < 60


def test_strong_links_keep_their_share_where_a_corpus_has_hardly_more_links_than_are_drawn() -> None:
    half = np.full((10, 10), 0.5 / 9, np.float32)
    np.fill_diagonal(half, 0.5)
    sample = LinkSample(400)
    for number in range(5):
        sample.add(number, half)
    assert np.mean([query == key for _, _, query, key in sample]) == pytest.approx(0.5, abs=0.08)  # three deviations


def test_links_rules_and_queries_are_those_of_the_model(toy: Encoder) -> None:
    corpus, recipes = grammar.corpus(12, seed=5), mv.recipes.load("toy")
    head = mv.Head(1, 2)
    groups = group_links(corpus, head, toy, recipes=recipes, links=150)
    shares = make_shares(recipes)[:, [head.place(toy.heads)]]
    texts = dict(list_numbered_texts(toy, corpus, 12))
    for at, link in enumerate(groups.links):
        text = texts[link.number]
        query, key = link.query.token, link.key.token
        weights = toy.batch([text.pieces])[head.layer, head.head, 0]
        predicted = predict(shares, text)[0]
        assert link.weight == pytest.approx(weights[query, key], abs=1e-6)
        assert link.predicted == pytest.approx(predicted[query, key])
        assert (link.rule >= 0) == (2 * link.predicted >= link.weight)
        parts = [
            share * make_matrix(rule, text)[query, key]
            for share, rule in zip(shares[text.classes[query], 0], RULES, strict=True)
        ]
        assert link.rule in (-1, int(np.argmax(parts)))
        assert link.tenth == at * 10 // 150
    assert sorted(number for group in groups.groups for number in group.links) == list(range(150))
    assert sum(group.share for group in groups.groups) == pytest.approx(1)
    assert [group.share for group in groups.groups] == sorted((group.share for group in groups.groups), reverse=True)
    table, by_group = groups.table(), groups.table_of_groups()
    assert tuple(table.columns) == LINK_COLUMNS
    assert tuple(by_group.columns) == GROUP_COLUMNS
    assert by_group[list(GROUP_COLUMNS[-10:])].to_numpy().sum(axis=0).tolist() == [15] * 10
    again = links_of.unpack_groups(json.loads(json.dumps(links_of.pack_groups(groups))))
    assert again.table().equals(table)
    assert again.groups == groups.groups
    assert np.array_equal(again.points["pca"], groups.points["pca"])


def test_unexplained_links_form_groups_by_queries_and_keys() -> None:
    end, sentence = links_of.LinkEnd, grammar.corpus(1).sentences[0]
    links = [
        links_of.DrawnLink(0.9, 0.1, 0, -1, end(1, 0, a, "PRON"), end(3, 2, b, "NOUN"), 0, sentence)
        for a, b in [("it", "Cat")] * 4 + [("the", "dog")] * 4
    ]
    noise = np.random.default_rng(0).normal(scale=0.01, size=(2, 8, 3))
    vectors = (noise + np.repeat([[0.0], [1.0]], 4, axis=0)).astype(np.float32)
    first, second = links_of.make_groups(links, vectors)
    assert (first.name, first.share, first.links) == ("“it” → “cat”", 0.5, (0, 1, 2, 3))
    assert second.pairs == (("“the” → “dog”", 4),)
    assert first.common == ("PRON → NOUN (4 of 4)", "2 tokens after (4 of 4)")
    assert first.spread(2) == [0, 3]
    points = links_of.project_by_pca(vectors)
    assert np.abs(np.diff(points[..., 0].reshape(4, 4).mean(axis=1))[[0, 2]]) == pytest.approx(np.sqrt(3), abs=0.05)


def test_links_to_special_tokens_do_not_hide_what_the_others_have_in_common() -> None:
    end, sentence = links_of.LinkEnd, grammar.corpus(1).sentences[0]
    links = [
        links_of.DrawnLink(0.9, 0.9, 0, 0, end(2, 1, "dog", "NOUN"), key, 0, sentence)
        for key in [end(0, None, "[CLS]", "")] * 5 + [end(1, 0, "the", "DET")] * 4
    ]
    (group,) = links_of.make_groups(links, np.zeros((2, 9, 3), np.float32))
    assert group.common == ("NOUN → [CLS] (5 of 9)", "1 token before (4 of 9)")


def test_without_umap_the_map_is_by_pca(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(SettingError, match="UMAP is not installed"):
        links_of.project_by_umap(np.zeros((2, 30, 3), np.float32))


if "umap" not in MISSING:

    @pytest.mark.filterwarnings("ignore:Tensorflow not installed:ImportWarning")
    def test_umap_keeps_two_kinds_of_links_apart() -> None:
        kinds = np.repeat([[0.0], [5.0]], 40, axis=0)
        vectors = (np.random.default_rng(0).normal(size=(2, 80, 6)) + kinds).astype(np.float32)
        points = links_of.project_by_all(vectors)["umap"]
        assert points.shape == (2, 80, 2)
        first, second = points[:, :40].reshape(-1, 2), points[:, 40:].reshape(-1, 2)
        apart = np.linalg.norm(first.mean(axis=0) - second.mean(axis=0))
        assert apart > 2 * max(first.std(axis=0).max(), second.std(axis=0).max())
        assert np.array_equal(points, links_of.project_by_all(vectors)["umap"])


def test_a_model_without_recipes_gets_one_for_the_head(tiny: Callable[[str], Encoder]) -> None:
    bert = tiny("bert")
    groups = group_links(grammar.corpus(10, seed=1), "L0H1", bert, links=40)
    assert {link.number for link in groups.links} <= set(range(10))
    assert len(groups.links) == 40
    with pytest.raises(SettingError, match="links is 1"):
        group_links("grammar", "L0H1", bert, links=1)
    with pytest.raises(UnknownHead):
        group_links("grammar", "L9H1", bert)
    with pytest.raises(SettingError, match="has 3 × 4 heads"):
        group_links("grammar", "L0H1", bert, recipes=mv.recipes.load("minilm"))


def test_of_a_corpus_that_is_cut_every_third_sentence_is_read(tiny: Callable[[str], Encoder]) -> None:
    whole = grammar.corpus(29, seed=1)
    cut = replace(whole, sentences=whole.sentences[::3])
    groups, of_cut = (group_links(corpus, "L0H1", tiny("bert"), most=10, links=40) for corpus in (whole, cut))
    assert groups.sentences == of_cut.sentences > 2
    assert [(link.number, link.weight, link.rule) for link in groups.links] == [
        (3 * link.number, link.weight, link.rule) for link in of_cut.links
    ]


def test_the_sample_continues_after_a_stop_and_does_not_depend_on_parts(
    tiny: Callable[[str], Encoder], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the sentences is too long, so that links after it are drawn by another number."""
    corpus = grammar.corpus(20, seed=1)
    long = replace(corpus.sentences[2], words=corpus.sentences[2].words * 60)
    path = tmp_path / "few.conllu"
    path.write_text(format_conllu((*corpus.sentences[:2], long, *corpus.sentences[3:])), "utf-8")
    command = ["groups", "toy/L0H2", str(path), "--links", "60"]
    assert main(command) == 0
    answer, cases, read = capsys.readouterr().out, DrawnCases.cases, list[int]()

    def stopped(self: DrawnCases, encoder: Encoder, numbered: Any) -> Cases:
        read.append(numbered[0][0])
        if read == [0, 7, 14]:
            raise KeyboardInterrupt
        return cases(self, encoder, numbered)

    monkeypatch.setattr(DrawnCases, "cases", stopped)
    monkeypatch.setattr(DrawnCases, "size", 7)
    to_file = [*command, "--out", str(tmp_path / "links.csv")]
    assert main(to_file) == 130
    assert "run the same command again to continue" in capsys.readouterr().err
    assert main(to_file) == 0
    assert capsys.readouterr().out == answer
    assert read == [0, 7, 14, 14]
    assert not [*tmp_path.glob(".*")]


def test_a_call_in_python_that_is_stopped_continues(toy: Encoder, tmp_path: Path) -> None:
    draw = partial(group_links, grammar.corpus(60, seed=1), "L0H2", toy, links=40)
    whole, seen = draw(), list[float]()

    def stop(so_far: Progress) -> None:
        seen.append(so_far.fraction)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        draw(resume=tmp_path, progress=stop)
    assert len([*tmp_path.iterdir()]) == 1
    again = draw(resume=tmp_path, progress=lambda so_far: seen.append(so_far.fraction))
    assert again.links == whole.links
    assert seen[0] == round(1000 * 25 / 60 / 2) / 1000, "the first step is short"
    assert seen[1] > seen[0], "its sentences are not read again"
    assert not [*tmp_path.iterdir()]


def test_the_command_prints_groups_and_writes_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "links.csv"
    assert main(["groups", "toy/L0H2", "grammar", "--most", "20", "--links", "60", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "toy L0H2 (1-3) on grammar: 60 links from 20 sentences" in shown
    assert "% the token before" in shown
    assert len(out.read_text().splitlines()) == 61
