"""Heads of two runs: a permuted copy is matched with what it was made of, and roles are counted over runs."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import mha_viz as mv
from mha_viz.analysis.distance import FloatMatrix, compute_cross_divergences, divergence
from mha_viz.analysis.matching import MATCH_COLUMNS, MAX_CHANCE_RATIO, RUN_COLUMNS, Divergences, find_matches
from mha_viz.attention import Head
from mha_viz.corpus import grammar
from mha_viz.corpus.treebank import Corpus, Sentence, Word
from mha_viz.errors import CorpusError, SettingError, ShapeError
from mha_viz.files.assets import asset_path
from mha_viz.heads import list_heads
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load
from mha_viz.study.matching import _compute_divergences
from mha_viz.study.run import Progress

ORDER = ((2, 0, 3, 1), (3, 2, 0, 1))  # of each layer: the head of the toy that a head of the copy was
HEADS, WIDTH = 4, 16


@pytest.fixture(scope="module")
def permuted(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    """The toy, with the heads of each layer in another order: it computes the same."""
    folder = tmp_path_factory.mktemp("permuted") / "toy"
    shutil.copytree(asset_path("toy"), folder)
    (folder / "snapshots.safetensors").unlink()
    state = load_file(folder / "model.safetensors")
    for layer, order in enumerate(ORDER):
        columns = np.concatenate([np.arange(WIDTH) + WIDTH * head for head in order])
        name = f"bert.encoder.layer.{layer}.attention"
        for part in ("query", "key", "value"):
            for kind in ("weight", "bias"):
                state[f"{name}.self.{part}.{kind}"] = state[f"{name}.self.{part}.{kind}"][columns].copy()
        out = f"{name}.output.dense.weight"
        state[out] = np.ascontiguousarray(state[out][:, columns])
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    return Encoder.from_folder(folder, name="permuted")


def test_a_permuted_copy_is_matched_with_what_it_was_made_of(permuted: Encoder) -> None:
    seen: list[Progress] = []
    matched = mv.roles.match_heads(permuted, "toy", most=20, progress=seen.append)
    for layer, order in enumerate(ORDER):
        for head, was in enumerate(order):
            assert matched[Head(layer, head)] == Head(layer, was)
    table = matched.table()
    assert [*table.columns] == [*MATCH_COLUMNS]
    assert (table["js"] < 1e-6).all()
    assert (table["next_js"] > 0.01).all()
    assert (table["mean_js"] > table["js"]).all()
    assert table["closer_than_chance"].all()
    assert (matched.one, matched.other, len(seen)) == ("permuted", "toy", 20)
    assert seen[-1].fraction == 1
    assert "permuted with toy, 8 of 8 heads closer than chance" in repr(matched)


def test_of_a_corpus_that_is_cut_every_third_sentence_is_read(permuted: Encoder) -> None:
    whole = grammar.corpus(29)
    cut = replace(whole, sentences=whole.sentences[::3])
    tables = [mv.roles.match_heads(permuted, "toy@0", corpus, most=10).table() for corpus in (whole, cut)]
    assert tables[0].equals(tables[1])


def test_two_readings_match_on_one_text(permuted: Encoder) -> None:
    text = "the dog saw the girl because she slept ."
    matched = mv.roles.match_heads(permuted.encode(text), load("toy").encode(text))
    assert [matched[Head(0, head)] for head in range(HEADS)] == [Head(0, was) for was in ORDER[0]]
    assert matched.rows == len(load("toy").encode(text).queries)


def test_divergences_are_those_of_each_two_heads() -> None:
    weights = np.random.default_rng(1).dirichlet(np.ones(5), (2, 3, 5)).astype(np.float32)
    expected = [[5 * divergence(a, b) for b in weights[1]] for a in weights[0]]
    assert compute_cross_divergences(*weights) == pytest.approx(np.array(expected), abs=1e-5)
    with pytest.raises(ShapeError, match="no common rows"):
        compute_cross_divergences(weights[0], weights[1, :, :4])


def far_from_chance(sums: FloatMatrix) -> Divergences:
    """Divergences of pairs, with means that are farther away than any of them."""
    return Divergences(sums, np.full(len(sums), 10.0), np.full(sums.shape[1], 10.0))


def test_chance_is_the_mean_of_all_heads_of_the_other_run() -> None:
    """By loops, over both heads of a pair."""
    one, other = np.random.default_rng(2).dirichlet(np.ones(6), (2, 1, 3, 6)).astype(np.float32)
    for weights in (one, other):
        weights[0, 2] = np.eye(6)  # a head that both have
    sums = _compute_divergences(one, other)
    matched = find_matches("a", "b", sums, 6, *[list_heads(range(1), 3)] * 2)
    for pair in matched.pairs:
        (head, to) = pair.head.head, pair.other.head
        ends = divergence(one[0, head], other[0].mean(0)), divergence(other[0, to], one[0].mean(0))
        assert pair.chance_js == pytest.approx(min(ends), abs=1e-5)
        assert pair.closer_than_chance == (pair.js < MAX_CHANCE_RATIO * min(ends))
        assert pair.chance_js <= pair.mean_js + 1e-6, "the divergence is convex"
    assert [pair.closer_than_chance for pair in matched.pairs if pair.head.head == 2] == [True]


def test_heads_of_random_rows_are_no_closer_than_chance() -> None:
    """However many there are to choose from: 40 heads, of which the matching takes the nearest."""
    one, other = np.random.default_rng(3).dirichlet(np.ones(8), (2, 1, 40, 60)).astype(np.float32)
    square = [np.pad(weights, ((0, 0), (0, 0), (0, 0), (0, 52))) for weights in (one, other)]
    matched = find_matches("a", "b", _compute_divergences(*square), 60, *[list_heads(range(1), 40)] * 2)
    assert all(pair.js < pair.mean_js for pair in matched.pairs), "chosen so"
    assert not any(pair.closer_than_chance for pair in matched.pairs)
    assert "0 of 40 heads closer than chance" in repr(matched)


def test_an_untrained_model_has_no_head_of_the_trained_one() -> None:
    matched = mv.roles.match_heads("toy@0", "toy", most=20)
    assert not matched.table()["closer_than_chance"].any()
    for pair in matched.pairs:
        with pytest.raises(SettingError, match=rf"{pair.head} of toy@0 and .* are no closer than chance"):
            matched[pair.head]
    with pytest.raises(KeyError):
        matched[Head(9, 0)]
    trained = mv.load_profile("toy")
    other = replace(trained, facts={**trained.facts, "model": "toy@0"})
    table = mv.roles.count_in_runs([other, trained], [matched])
    assert set(table["runs"]) == {1}, "what is matched by chance counts nowhere"


def test_the_sum_is_the_least_of_all_orders() -> None:
    """Greedily, the first head would take what the second needs."""
    sums = np.array([[1.0, 2.0, 9.0], [1.1, 9.0, 9.0], [3.0, 4.0, 5.0]])
    matched = find_matches("a", "b", far_from_chance(sums), 1, *[list_heads(range(1), 3)] * 2)
    best = min(itertools.permutations(range(3)), key=lambda order: sum(sums[at, to] for at, to in enumerate(order)))
    assert tuple(pair.other.head for pair in matched.pairs) == best == (1, 0, 2)
    assert matched.pairs[0][2:] == (2.0, 1.0, 4.0, 10.0, True)


def test_heads_that_the_other_has_too_few_of_are_left_out() -> None:
    matched = find_matches(
        "a", "b", far_from_chance(np.array([[0.2], [0.1]])), 1, list_heads(range(1), 2), list_heads(range(1), 1)
    )
    assert [(pair.head, pair.other) for pair in matched.pairs] == [(Head(0, 1), Head(0, 0))]
    assert np.isnan(matched.pairs[0].next_js)
    assert not matched.pairs[0].closer_than_chance, "nothing else could have been matched"


def test_what_cannot_be_matched_is_said() -> None:
    toy = load("toy")
    with pytest.raises(CorpusError, match="into the same tokens"):
        mv.roles.match_heads(toy, "minilm", Corpus("one", (Sentence((Word("undergraduates"),)),), ""))
    with pytest.raises(SettingError, match="most is 0"):
        mv.roles.match_heads(toy, toy, most=0)
    with pytest.raises(ShapeError, match="different tokens"):
        mv.roles.match_heads(toy.encode("the dog slept ."), toy.encode("the cat slept ."))
    with pytest.raises(SettingError, match="not a reading"):
        mv.roles.match_heads(toy.encode("the dog slept ."), toy)
    norms = mv.quantities.norm_weighted(toy, "the dog slept .")
    with pytest.raises(ShapeError, match="not by “norm-weighted”"):
        mv.roles.match_heads(toy.encode("the dog slept ."), norms)


# ---- Roles in several runs -------------------------------------------------------------------------------------------


def test_roles_are_counted_over_runs(tmp_path: Path) -> None:
    toy = mv.load_profile("toy")
    subjects = toy.tables["roles"].query("detail == 'nsubj dep_to_head'")
    other = replace(toy, tables={**toy.tables, "roles": subjects})
    none = replace(toy, tables={**toy.tables, "roles": subjects[:0]})
    table = mv.roles.count_in_runs([toy, other, none])
    assert [*table.columns] == [*RUN_COLUMNS]
    assert table.iloc[0].tolist() == ["syntax", "nsubj dep_to_head", 2, 3, "L0H0, L1H2; L0H0, L1H2; –"]
    assert set(table["runs"][1:]) == {1}
    assert len(table) == toy.roles[["role", "detail"]].drop_duplicates().shape[0]
    with pytest.raises(SettingError, match="two or more profiles"):
        mv.roles.count_in_runs([toy])
    with pytest.raises(SettingError, match="not a profile"):
        mv.roles.count_in_runs([toy, "toy"])  # type: ignore[list-item]


def test_along_matched_heads_a_role_counts_on_each_head(permuted: Encoder) -> None:
    """The other run is the same model with its heads in another order."""
    toy = mv.load_profile("toy")
    moved = toy.tables["roles"].copy()
    moved["head"] = [ORDER[layer].index(head) for layer, head in zip(moved["layer"], moved["head"], strict=True)]
    other = replace(toy, facts={**toy.facts, "model": permuted.name}, tables={**toy.tables, "roles": moved})
    matched = mv.roles.match_heads("toy", permuted, most=30)
    table = mv.roles.count_in_runs([toy, other], [matched])
    assert set(table["runs"]) == {2}
    assert len(table) == len(toy.roles)
    for heads in table["heads"]:
        one, same = map(Head.parse, heads.split("; "))
        assert matched[one] == same
    with pytest.raises(SettingError, match=r"Give \[match_heads\('toy', 'permuted'\)\]"):
        mv.roles.count_in_runs([toy, other], [mv.roles.match_heads("toy", "toy", most=2)])


def test_matches_of_readings_name_the_layers_of_their_models() -> None:
    layers = [np.random.default_rng(seed).dirichlet(np.ones(3), (1, 2, 3)) for seed in (4, 8)]
    some = mv.Attention.from_tensors(layers, ["the", "cat", "sat"], layers=[3, 7])
    plain = mv.Attention.from_tensors(layers[::-1], ["the", "cat", "sat"])
    pairs = {pair.head: pair.other for pair in mv.roles.match_heads(some, plain).pairs}
    assert pairs == {(3, 0): (1, 0), (3, 1): (1, 1), (7, 0): (0, 0), (7, 1): (0, 1)}
