"""What two corpora establish, and whether a role holds on a third, computed by hand from tables with a few rows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mha_viz.analysis.bundled_data import establish
from mha_viz.analysis.findings import (
    BEATS,
    BELOW,
    COMPARISON_COLUMNS,
    EQUALS,
    Finding,
    OtherCorpusScore,
    RuleComparison,
)
from mha_viz.analysis.profile import HEADINGS, Profile, read_findings
from mha_viz.analysis.replication import ABSENT, FAILS, FEW, HEADING, HOLDS, LESS, RULE, WEAK, replicate
from mha_viz.attention import Head
from mha_viz.errors import CorpusError

Line = dict[str, Any]


def frame(name: str, *lines: Line) -> pd.DataFrame:
    return pd.DataFrame([[line.get(column) for column in HEADINGS[name]] for line in lines], columns=[*HEADINGS[name]])


def candidate(head: int, detail: str, score: float, state: str | None = None, role: str = "syntax") -> Line:
    return {
        **{"layer": 0, "head": head, "role": role, "detail": detail, "score": score, "baseline": 0.25},
        **{"gain": score - 0.25, "n": 200, "upos_rule": "nearest VERB to the left", "state": state},
    }


def profile(
    corpus: str, *candidates: Line, suggested: tuple[Line, ...] = (), tables: str = "", **facts: Any
) -> Profile:
    """A profile with the tables with which it can measure a kind of role, all empty."""
    every = {name: frame(name) for name in ("uas", "position", "delimiter", "entropy", *tables.split())}
    standing = {"status": "suggested", "corpora": corpus}
    both = {
        "candidates": frame("candidates", *candidates),
        "roles": frame("roles", *({**line, **standing, "lowest_score": line["score"]} for line in suggested)),
    }
    described = {"model": "m", "revision": "r", "layers": 1, "heads": 9, "corpus": corpus, "sha256": corpus}
    return Profile({**described, "counts": {"pieces": 500}, **facts}, {**every, **both}, {**every, **both})


def role_lines(of: Profile) -> list[tuple[Any, ...]]:
    return [(f.head.head, f.detail, f.status, f.score, f.lowest, f.state) for f in of.findings()]


# ---- Established -----------------------------------------------------------------------------------------------------


def test_what_both_corpora_show_is_established_with_the_numbers_of_each() -> None:
    one, other = establish(
        profile("a", candidate(1, "obj head_row", 0.5, BEATS), candidate(2, "obj head_row", 0.6, BEATS)),
        profile("b", candidate(2, "obj head_row", 0.7, BEATS), candidate(2, "det head_row", 0.9, BEATS)),
    )
    assert role_lines(one) == [(2, "obj head_row", "established", 0.6, 0.6, BEATS)]
    assert role_lines(other) == [(2, "obj head_row", "established", 0.7, 0.6, BEATS)]
    assert one.findings()[0].corpora == other.findings()[0].corpora == ("a", "b")
    assert len(one.untrained["roles"]) == 1


def test_each_profile_keeps_the_score_and_the_rule_of_the_other_corpus(tmp_path: Path) -> None:
    numbers = [[corpus + place / 100 for place in range(len(COMPARISON_COLUMNS))] for corpus in (1, 2)]
    here, there = (
        candidate(2, "obj head_row", score, BELOW)
        | {"upos_baseline": 0.65, **dict(zip(COMPARISON_COLUMNS, beside, strict=True))}
        for score, beside in zip((0.6, 0.7), numbers, strict=True)
    )
    one, other = establish(profile("a", here), profile("b", there))
    rule = (0.65, "nearest VERB to the left")
    assert one.findings()[0].other_score == OtherCorpusScore("b", 0.7, *rule, RuleComparison(*numbers[1]))
    assert other.findings()[0].other_score == OtherCorpusScore("a", 0.6, *rule, RuleComparison(*numbers[0]))
    assert read_findings(one.save(tmp_path))[0].other_score == one.findings()[0].other_score


@pytest.mark.parametrize(
    ("here", "there", "least"),
    [
        *((BEATS, BEATS, BEATS), (BEATS, EQUALS, EQUALS), (BELOW, BEATS, BELOW), (EQUALS, BELOW, BELOW)),
        *(("True", "True", BEATS), ("True", "False", BELOW)),  # of an older version
    ],
)
def test_the_state_beside_the_rule_is_the_least_of_both_corpora(here: str, there: str, least: str) -> None:
    pair = establish(
        profile("a", candidate(2, "obj head_row", 0.6, here)), profile("b", candidate(2, "obj head_row", 0.7, there))
    )
    assert [line[-1] for of in pair for line in role_lines(of)] == [least, least]


def test_thresholds_need_both_corpora_too() -> None:
    sep, broad = candidate(1, "sep", 0.7, None, "delimiter"), candidate(1, "entropy", 0.8, None, "broad")
    one, _ = establish(profile("a", sep, broad, suggested=(sep, broad)), profile("b", broad))
    assert role_lines(one) == [(1, "entropy", "established", 0.8, 0.8, "")]


def test_what_one_corpus_alone_can_measure_stays_suggested() -> None:
    she = candidate(3, "third_person", 0.6, None, "coreference")
    with_chains = profile("b", she, suggested=(she,), tables="coreference")
    one, other = establish(profile("a"), with_chains)
    assert role_lines(one) == []
    assert role_lines(other) == [(3, "third_person", "suggested", 0.6, 0.6, "")]
    again = establish(one, other)[1]
    assert role_lines(again) == role_lines(other)
    _, both = establish(profile("a", she, tables="coreference"), with_chains)
    assert role_lines(both)[0][2] == "established"


def test_a_profile_without_roles_changes_nothing() -> None:
    gap = Profile(profile("gap").facts, {"gap": frame("gap")}, {"gap": frame("gap")})
    one, other = establish(profile("a"), gap)
    assert (role_lines(one), set(other.tables)) == ([], {"gap"})


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"model": "n"}, "another model: n, not m"),
        ({"revision": "s"}, "another revision of the model: s, not r"),
        ({"sha256": "a"}, "the same corpus"),
    ],
)
def test_profiles_that_cannot_be_compared_are_refused(facts: Line, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        establish(profile("a"), profile("b", **facts))


# ---- Replicated ------------------------------------------------------------------------------------------------------

KEYS = {"level": "base", "relation": "obj", "direction": "dep_to_head"}


def role(kind: str, detail: str, score: float, low: float = math.nan, lowest: float = math.nan) -> Finding:
    return Finding(Head(0, 1), kind, detail, score, 0.3, score - 0.3, 200, low, low, lowest=lowest)


def here(**tables: pd.DataFrame) -> Profile:
    return Profile(profile("c").facts, tables)


def treebank(accuracy: float, offset: float, high: float, n: int = 100) -> Profile:
    cell = {**KEYS, "layer": 0, "head": 1, "n": n, "accuracy": accuracy, "role_low": 0.0, "role_high": high}
    rule = {**KEYS, "baseline": "offset", "n": n, "accuracy": offset}
    return here(syntax=frame("syntax", cell), syntax_baselines=frame("syntax_baselines", rule))


@pytest.mark.parametrize(
    ("accuracy", "offset", "high", "n", "outcome"),
    [
        (0.60, 0.50, 0.7, 100, HOLDS),
        (0.55, 0.50, 0.7, 100, HOLDS),  # five points
        (0.54, 0.50, 0.58, 100, RULE),  # its interval reaches 0.58, the lowest of its accuracies
        (0.54, 0.50, 0.57, 100, LESS),
        (0.28, 0.29, 0.57, 100, FAILS),  # no better than the offset, and under half of 0.58
        (0.28, 0.27, 0.57, 100, LESS),
        (0.30, 0.31, 0.57, 100, LESS),
        (0.44, 0.30, 0.99, 100, HOLDS),
        (0.43, 0.30, 0.45, 100, WEAK),  # under three quarters of 0.58
        (0.80, 0.86, 0.85, 100, RULE),  # the offset is now as good
        (0.20, 0.10, 0.99, 99, FEW),
        (0.15, 0.10, 0.99, 100, WEAK),  # only the gain decides
    ],
)
def test_the_outcomes(accuracy: float, offset: float, high: float, n: int, outcome: str) -> None:
    finding = role("syntax", "obj dep_to_head", 0.7, lowest=0.58)
    (replication,) = replicate([finding], treebank(accuracy, offset, high, n))
    assert replication.outcome == outcome
    assert replication.here is not None
    assert replication.here[:3] == (accuracy, offset, n)


def test_without_a_second_corpus_its_own_accuracy_is_the_lowest() -> None:
    finding = role("syntax", "obj dep_to_head", 0.7)
    assert replicate([finding], treebank(0.5, 0.5, 0.7))[0].outcome == RULE
    assert replicate([finding], treebank(0.5, 0.5, 0.69))[0].outcome == LESS


def test_a_relation_that_the_corpus_lacks_has_no_case() -> None:
    (replication,) = replicate([role("syntax", "nmod:poss head_row", 0.7)], treebank(0.6, 0.5, 0.7))
    assert (replication.outcome, replication.here and replication.here.n) == (FEW, 0)


def test_what_is_not_annotated_is_said() -> None:
    kinds = [("syntax", "obj head_row"), ("coreference", "third_person"), ("broad", "entropy"), ("position", "next")]
    assert [r.outcome for r in replicate([role(*kind, 0.9) for kind in kinds], here())] == [ABSENT] * 4


def test_coreference_goes_by_the_better_baseline() -> None:
    cell = {
        "layer": 0,
        "head": 1,
        "mention_type": "third_person",
        "n": 100,
        "accuracy": 0.6,
        "role_low": 0.5,
        "role_high": 0.7,
    }
    rules = [
        {"mention_type": "third_person", "baseline": name, "accuracy": accuracy}
        for name, accuracy in (("nearest", 0.4), ("same_form", 0.52), ("agreement", 0.7), ("untrained", 0.9))
    ]
    tables = {
        "coreference": frame("coreference", cell),
        "coreference_baselines": frame("coreference_baselines", *rules),
    }
    (replication,) = replicate([role("coreference", "third_person", 0.8)], here(**tables))
    assert replication.here is not None
    assert (replication.outcome, replication.here.baseline, replication.here.upos) == (HOLDS, 0.52, 0.7)


@pytest.mark.parametrize(
    ("finding", "score", "outcome"),
    [
        (role("position", "previous", 0.66), 0.51, HOLDS),
        (role("position", "previous", 0.9), 0.51, WEAK),  # more than half of its weight, under three quarters of 0.9
        (role("position", "previous", 0.9, lowest=0.68), 0.51, HOLDS),  # of the lower of two corpora
        (role("position", "previous", 0.9), 0.50, LESS),
        (role("position", "previous", 0.9), 0.45, LESS),  # half of 0.9
        (role("position", "previous", 0.9), 0.35, LESS),  # five points above the baseline of 0.3
        (role("position", "previous", 0.9), 0.34, FAILS),
        (role("position", "previous", 0.9, low=0.89), 0.90, HOLDS),  # by the share of maxima
        (role("position", "previous", 0.9, low=0.89), 0.89, LESS),  # a near miss
        (role("position", "previous", 0.9, low=0.89), 0.10, FAILS),
        (role("delimiter", "cls", 0.8), 0.61, HOLDS),
        (role("delimiter", "cls", 0.9), 0.61, WEAK),
        (role("delimiter", "cls", 0.9), 0.60, LESS),
        (role("delimiter", "cls", 0.9), 0.02, FAILS),
        (role("delimiter", "both", 0.8), 0.61, HOLDS),
        (role("delimiter", "both", 0.8), 0.60, LESS),
        (role("broad", "entropy", 0.9), 0.78, HOLDS),
        (role("broad", "entropy", 0.9), 0.77, LESS),
        (role("broad", "entropy", 0.9), 0.44, FAILS),  # the mean of all heads here is its own
    ],
)
def test_a_threshold_has_the_outcomes_that_its_numbers_say(finding: Finding, score: float, outcome: str) -> None:
    by_mass = math.isnan(finding.low)
    shares = {"mass": score if by_mass else 0.0, "share_of_maxima": 0.0 if by_mass else score}
    at = {"layer": 0, "head": 1}
    tables = {
        "position": frame("position", {**at, "offset": -1, **shares}, {**at, "offset": 1, "mass": 0.9}),
        "delimiter": frame("delimiter", {**at, "cls": score, "sep": 0.0, "both": score}),
        "entropy": frame("entropy", {**at, "nats": 1.0, "normalised": score}),
    }
    assert replicate([finding], here(**tables))[0].outcome == outcome


@pytest.mark.parametrize(("mass", "share", "outcome"), [(0.4, 0.9, HOLDS), (0.51, 0.5, HOLDS), (0.5, 0.89, LESS)])
@pytest.mark.parametrize("low", [math.nan, 0.89])
def test_a_position_is_met_by_its_mass_or_by_its_share(mass: float, share: float, outcome: str, low: float) -> None:
    line = {"layer": 0, "head": 1, "offset": -1, "mass": mass, "share_of_maxima": share}
    finding = role("position", "previous", 0.9 if low == low else 0.53, low=low)
    weaker = WEAK if low == low and share == 0.5 else outcome  # its largest weights are there far less often
    assert replicate([finding], here(position=frame("position", line)))[0].outcome == weaker


def test_the_table_shows_both_corpora() -> None:
    finding = role("syntax", "obj dep_to_head", 0.7)
    lines = replicate([finding], treebank(0.6, 0.5, 0.65)).table
    assert list(lines.columns) == list(HEADING)
    (line,) = lines.to_dict("records")
    assert (line["score"], line["baseline"], line["n"]) == (0.7, 0.3, 200)
    assert (line["score_here"], line["baseline_here"], line["n_here"], line["outcome"]) == (0.6, 0.5, 100, HOLDS)


def test_the_result_counts_the_outcomes_and_shows_its_table() -> None:
    findings = [role("syntax", "obj dep_to_head", 0.7), role("syntax", "nmod:poss head_row", 0.7)]
    replications = replicate(findings, treebank(0.6, 0.5, 0.65))
    assert list(replications) == [replications[0], replications[1]]
    assert replications.summary == f"2 roles: 1 × {HOLDS}, 1 × {FEW}"
    assert repr(replications) == f"{replications.summary}\n{replications.table}"
    html = replications._repr_html_()
    assert html.startswith(f"<p>{replications.summary}</p><table")
    assert html.count("<tr") == 3
    assert ">0.600<" in html
    assert replicate([], here()).summary == "0 roles"


def test_labels_of_a_corpus_are_no_markup_in_the_table() -> None:
    html = replicate([role("syntax", "<script> dep_to_head", 0.7)], treebank(0.6, 0.5, 0.65))._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
