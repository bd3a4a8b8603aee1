"""Shipped roles of syntax: the rule by parts of speech, kind and choice, as independent code counted them."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import mha_viz as mv
from mha_viz.analysis.findings import BEATS, BELOW, EQUALS
from mha_viz.analysis.profile import Profile, read_profile
from mha_viz.analysis.q_values import collect_tests
from mha_viz.files.assets import asset_path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = (ROOT / "benchmarks" / "measured.md").read_text("utf-8")
CORPORA = ("ewt", "gum")


@cache
def shipped(corpus: str) -> Profile:
    return read_profile(asset_path("profiles") / "minilm" / corpus)


def line(corpus: str, table: str, **cells: Any) -> Any:
    rows = shipped(corpus).tables[table]
    for column, value in cells.items():
        rows = rows[rows[column] == value]
    (row,) = rows.itertuples(index=False)
    return row


# Of each relation and direction, on EWT test and GUM dev: the rule, its accuracy, and the best head's.
RULES = {
    ("case", "dep_to_head"): (
        ("right NOUN PROPN PRON NUM SYM", 0.693, "L2H8", 0.686),
        ("right NOUN PROPN ADV", 0.742, "L2H8", 0.685),
    ),
    ("cop", "dep_to_head"): (
        ("right NOUN PROPN NUM SYM VERB ADJ", 0.671, "L2H1", 0.640),
        ("right NOUN PROPN NUM VERB ADJ", 0.641, "L2H1", 0.594),
    ),
    ("det", "dep_to_head"): (
        ("right NOUN PROPN", 0.779, "L2H8", 0.786),
        ("right NOUN PROPN", 0.875, "L2H8", 0.813),
    ),
    ("obj", "head_row"): (
        ("right NOUN PROPN PRON", 0.688, "L2H8", 0.564),
        ("right NOUN PROPN PRON", 0.738, "L2H8", 0.575),
    ),
    ("nsubj", "dep_to_head"): (
        ("right NOUN NUM SYM VERB ADJ", 0.816, "L2H8", 0.581),
        ("right NOUN NUM VERB ADJ", 0.767, "L2H8", 0.563),
    ),
}


@pytest.mark.parametrize(("relation", "direction"), RULES)
@pytest.mark.parametrize("corpus", CORPORA)
def test_a_rule_that_may_name_a_set_and_the_best_head(corpus: str, relation: str, direction: str) -> None:
    of_row = {"level": "base", "relation": relation, "direction": direction}
    rule = line(corpus, "syntax_baselines", **of_row, baseline="pos")
    heads = shipped(corpus).tables["syntax"]
    for column, value in of_row.items():
        heads = heads[heads[column] == value]
    best = heads.loc[heads["accuracy"].idxmax()]
    found = rule.detail, round(rule.accuracy, 3), f"L{best['layer']}H{best['head']}", round(best["accuracy"], 3)
    assert found == RULES[relation, direction][CORPORA.index(corpus)]


# Of a relation and head, on both corpora: kind, choice, the nearest of that kind, and cases.
CHOICES = {
    ("case", 2, 8): ((0.759, 0.883, 0.858, 1264), (0.749, 0.906, 0.878, 1728)),
    ("cop", 1, 4): ((0.540, 0.949, 0.933, 195), (0.589, 0.910, 0.896, 288)),
    ("obj", 2, 0): ((0.765, 0.956, 0.953, 687), (0.774, 0.970, 0.963, 830)),
}


@pytest.mark.parametrize(("relation", "layer", "head"), CHOICES)
@pytest.mark.parametrize("corpus", CORPORA)
def test_given_the_right_kind_of_word_the_right_one(corpus: str, relation: str, layer: int, head: int) -> None:
    row = line(corpus, "choice", relation=relation, direction="dep_to_head", layer=layer, head=head)
    found = *(round(number, 3) for number in (row.kind, row.choice, row.nearest)), row.choice_n
    assert found == CHOICES[relation, layer, head][CORPORA.index(corpus)]
    assert (row.choice_low > 0) == (relation == "case"), "of these three, one chooses better than the nearest word"


def test_of_27_roles_none_beats_the_rule_on_both_corpora_and_one_equals_it() -> None:
    for corpus in CORPORA:
        roles = [finding for finding in shipped(corpus).findings() if finding.role == "syntax"]
        assert {finding.status for finding in roles} == {"established"}
        assert Counter(finding.state for finding in roles) == {EQUALS: 1, BELOW: 26}
        (equal,) = (finding for finding in roles if finding.state == EQUALS)
        assert (str(equal.head), equal.detail) == ("L2H1", "cop dep_to_head")
        assert all(finding.comparison.rule_low <= 0 for finding in roles), BEATS
        assert min(finding.rule_q for finding in roles) > 0.05


def test_five_roles_choose_better_than_the_nearest_word_on_both_corpora() -> None:
    better = [
        (str(finding.head), finding.detail)
        for finding in shipped("ewt").findings()
        if finding.other_score and min(finding.comparison.choice_low, finding.other_score.comparison.choice_low) > 0
    ]
    assert better == [
        *(("L1H4", "case dep_to_head"), ("L2H1", "nmod dep_to_head"), ("L2H8", "case dep_to_head")),
        *(("L2H8", "det dep_to_head"), ("L3H8", "case head_to_dep")),
    ]


def test_agreement_does_as_well_as_the_coreferential_head() -> None:
    rule = line("gum", "coreference_baselines", mention_type="third_person", baseline="agreement")
    assert (rule.n, round(rule.accuracy, 3)) == (685, 0.702)
    roles = {str(finding.head): finding for finding in shipped("gum").findings() if finding.role == "coreference"}
    head = roles["L2H4"]
    assert (round(head.score, 3), head.state, head.upos_rule) == (0.705, EQUALS, "agreement")


def test_the_readme_and_the_results_say_how_many_beat_equal_and_are_below_the_rule() -> None:
    roles = [finding for finding in shipped("ewt").findings() if finding.role == "syntax"]
    beats, equals, below = (sum(role.state == state for role in roles) for state in (BEATS, EQUALS, BELOW))
    rule = "the best rule based on parts of speech"
    said = f"{beats} of {len(roles)} syntactic roles beat {rule}, {equals} equals it, and {below} are below it"
    assert said in (ROOT / "README.md").read_text("utf-8")
    assert (beats, equals) == (0, 1), "as in words"
    heads = len({role.head for role in roles})
    assert f"establish {len(roles)} syntactic roles on {heads} heads; none beats the rule by parts of speech" in RESULTS
    assert f"one equals it (L2H1, *cop*), {below} are below it." in RESULTS


# ---- What benchmarks/measured.md says of the recipes and tables that come with the app

ROWS_IN_DOCS = {
    "recipe": "their recipes",
    "mean": "their mean outputs",
    "uniform": "uniform attention",
    "recipe of another head": "recipes of other heads",
    "recipe of random heads": "random heads: their recipes",
}


def rows_in_docs(table: pd.DataFrame, quantity: str, low: str, high: str) -> list[str]:
    """The rows of the table in the results, from what ships, without what its first cell adds."""
    lines = []
    for method, rows in table[table["method"] != "none"].groupby("method", sort=False):
        cells = [
            f"{value:.3f} ({a:.3f}–{b:.3f})" for value, a, b in rows[[quantity, low, high]].itertuples(index=False)
        ]
        lines.append(f"{ROWS_IN_DOCS[str(method)]} | {' | '.join(cells)} |\n")
    return lines


@pytest.mark.parametrize("model", ["minilm", "toy"])
def test_what_recipes_in_place_of_heads_lose_stands_in_the_results(model: str) -> None:
    folder = ROOT / "assets" / "recipes" / model
    lines = rows_in_docs(pd.read_csv(folder / "replaced.csv"), "lost", "low", "high")
    accuracy = pd.read_csv(folder / "accuracy.csv")
    for answers in ("roles", "pronouns") if model == "toy" else ("roles",):
        lines += rows_in_docs(accuracy, answers, f"{answers}_low", f"{answers}_high")
    assert [line for line in lines if line not in RESULTS] == []
    assert len(lines) >= 10


def test_how_stable_recipes_are_and_what_they_explain_stands_in_the_results() -> None:
    recipes = mv.recipes.load("minilm")
    stability, (mean, low, high) = recipes.tables["stability"], recipes.facts["mean"]
    overlap = stability["overlap"]
    assert f"overlap by {overlap.mean():.3f} on average ({overlap.min():.3f} at least)" in RESULTS
    assert f"{stability['same'].sum()} of its {len(stability)} heads have the same largest rule" in RESULTS
    toy = mv.recipes.load("toy").tables["stability"]["overlap"]
    assert f"by {toy.mean():.3f} ({toy.min():.3f})" in RESULTS
    assert f"another corpus; of `toy`, new sentences of its grammar | {mean:.3f} |" in RESULTS
    assert f"has the interval {low:.3f} to {high:.3f} (over documents)" in RESULTS
    table = recipes.tables["explained"].sort_values("other")
    *others, last = [f"L{layer}H{head}" for layer, head in table[["layer", "head"]].to_numpy()[:4]]
    assert f"{', '.join(others)} and {last} are explained least" in RESULTS
    readme = (ROOT / "assets" / "recipes" / "minilm" / "README.md").read_text("utf-8")
    for what in ("corpus", "score"):
        assert (
            f"every {recipes.facts[f'{what}_every']}th sentence ({recipes.facts[f'{what}_sentences']} in all)" in readme
        )


def test_how_many_tests_have_a_low_q_and_how_wide_intervals_are_stands_in_the_results() -> None:
    tests = collect_tests(mv.load_profile("minilm").tables)
    low = (tests["q"] < 0.05).sum()
    assert f"Among the {tests['q'].notna().sum():,} tests of `minilm` on UD English EWT, {low} have q < 0.05" in RESULTS
    gum = pd.read_csv(ROOT / "assets" / "profiles" / "minilm" / "gum" / "syntax.csv")
    ratios = (gum["role_high"] - gum["role_low"]) / (gum["ci_high"] - gum["ci_low"])
    wide = (
        f"{ratios.median():.2f} times as wide as Wilson’s of all cases in the median, {ratios.quantile(0.95):.1f} times"
    )
    assert wide in RESULTS


def test_every_shipped_table_of_effects_and_of_reasons_says_which_sentences_were_read() -> None:
    tables = [*(ROOT / "assets" / "profiles").glob("**/used.csv"), *(ROOT / "assets" / "profiles").glob("**/why.csv")]
    assert len(tables) >= 4
    assert [str(path) for path in tables if pd.read_csv(path)["every"].isna().any()] == []
