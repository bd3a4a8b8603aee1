"""A head that is not used has an effect all the same: nothing that a person can read claims that none was found."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import mha_viz as mv
from mha_viz.analysis.corpus_effects import WORD_MEASURES
from mha_viz.analysis.profile import Profile
from mha_viz.app.roles.overview import tabulate_roles
from mha_viz.app.roles.role_use import _describe_effect
from mha_viz.app.service.studies import load_bundled
from mha_viz.cli import used as used_command
from mha_viz.cli.effect import _format_lines
from mha_viz.figures.words.use_words import EFFECT_TARGETS, NO_MORE, USE, describe_unused, describe_use, explain_use

ROOT = Path(__file__).resolve().parent.parent
CLAIM = re.compile(
    r"no effect\b.{0,40}\b(was )?found|effects? (was|were) not found|(not|never) found to be used|"
    r"no effect (was )?(seen|measured|shown)",
    re.IGNORECASE | re.DOTALL,
)
READ = {  # what people read, or what writes it
    "README.md": (ROOT / "README.md",),
    "docs": tuple((ROOT / "docs").rglob("*.md")),
    "assets": (*(ROOT / "assets").glob("*.json"), *(ROOT / "assets").glob("*.md")),
    "Python": tuple((ROOT / "mha_viz").rglob("*.py")),
    "JavaScript": tuple((ROOT / "mha_viz" / "browser").rglob("*.js")),
}
PROFILES = ("minilm", "toy")


@pytest.mark.parametrize("kind", READ)
def test_no_text_claims_that_no_effect_was_found(kind: str) -> None:
    assert READ[kind]
    claims = {str(path.relative_to(ROOT)): CLAIM.search(path.read_text("utf-8")) for path in READ[kind]}
    assert {name: match[0] for name, match in claims.items() if match} == {}


@pytest.mark.parametrize(
    "claim",
    [
        "no effect found",
        "but no effect was found.",
        "For nsubj no effect of L1H1 (2-2) was found",
        "Not found to be used for any of 2 relations.",
        "it was not found to be used for it",
    ],
)
def test_the_claim_is_recognised(claim: str) -> None:
    assert CLAIM.search(claim)


@pytest.mark.parametrize("name", PROFILES)
def test_reports_in_every_format_say_no_more_than_other_heads(name: str) -> None:
    profile = mv.load_profile(name)
    made = mv.roles.report(profile)
    unused = profile.tables["used"]["used"].map(str).eq("False").sum()
    for text in (made.markdown(), made.latex(), made.csv(), repr(made)):
        assert not CLAIM.search(text)
    assert made.markdown().count(NO_MORE) == made.latex().count(NO_MORE) == unused
    assert "used_more_than_neighbours" in made.csv().splitlines()[0].split(",")


@pytest.mark.parametrize("name", PROFILES)
def test_all_heads_and_commands_say_the_same(name: str) -> None:
    profile = mv.load_profile(name)
    rows = list(profile.tables["used"].itertuples(index=False))
    said = [describe_use(str(row.used) == "True", row.measure) for row in rows]
    assert {NO_MORE} < {*said}
    assert [_describe_effect(row)[USE] for row in rows] == said, "the cards of all heads"
    heading, *lines = used_command.format_used(profile)
    assert [line.rpartition(": ")[2] for line in lines] == [words.rpartition(": ")[2] for words in said]
    assert f"{len(rows) - said.count(NO_MORE)} of {len(rows)} roles {USE}" in heading
    evidence = load_bundled(name)
    assert evidence is not None
    table: pd.DataFrame = tabulate_roles(evidence, ())
    assert table[USE].eq(NO_MORE).sum() == said.count(NO_MORE)
    assert not CLAIM.search("\n".join([heading, *lines, table.to_csv()]))


def test_effects_of_unused_heads_lie_above_zero_and_are_not_denied(profile_of_minilm: Profile) -> None:
    """Check what the words are about: every interval of minilm excludes 0, used or not."""
    table = profile_of_minilm.tables["used"]
    assert len(table) == 27
    assert (table["ci_low"] > 0).all()
    assert not table["used"].map(str).eq("True").all()


@pytest.fixture
def profile_of_minilm() -> Profile:
    return mv.load_profile("minilm")


@pytest.mark.parametrize("measure", sorted(WORD_MEASURES.values()))
def test_the_words_name_what_changes(measure: str) -> None:
    changed = EFFECT_TARGETS[measure]
    assert changed.name in describe_use(True, measure)
    assert describe_use(False, measure) == NO_MORE
    assert describe_unused("obj", measure) == f"For obj it changes {changed.name} {NO_MORE}."
    assert changed.phrase in explain_use(measure)


def test_the_effect_of_a_head_without_the_role_is_not_denied() -> None:
    """L1H0 does not link subjects to verbs."""
    measured = mv.corpus_ablation_effects("grammar", ["L1H0"], "toy", relation="nsubj", most=12)
    assert measured.rows[0].used is False
    judged = _format_lines(measured)[-1]
    assert judged.startswith(f"L1H0 (2-1): For nsubj it changes the answer {NO_MORE}. Its effect minus that of the ")
    assert not CLAIM.search(judged)
