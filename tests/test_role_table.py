"""What the documentation says of roles beside the strongest simple rule, from the profiles that come with the app."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mha_viz.analysis.findings import BEATS, BELOW, EQUALS, Finding
from mha_viz.analysis.profile import Profile, read_profile
from mha_viz.analysis.q_values import looked_at
from mha_viz.analysis.roles import CASES
from mha_viz.figures.role_words import beside_rule
from mha_viz.files.assets import asset
from tools.role_table import MEASURES, role_table, shipped_roles, with_table

ROOT = Path(__file__).resolve().parent.parent


@cache
def shipped(corpus: str) -> Profile:
    return read_profile(asset("profiles") / "minilm" / corpus)


def said(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def states(findings: list[Finding]) -> list[int]:
    return [sum(one.state == state for one in findings) for state in (BEATS, EQUALS, BELOW)]


def test_the_table_of_roles_beside_the_rule_is_that_of_the_profiles() -> None:
    text = MEASURES.read_text("utf-8")
    assert role_table() in text
    assert with_table(text) == text
    changed = text.replace("| 68.6% | noun", "| 99.9% | noun")
    assert changed != text
    assert with_table(changed) == text
    assert len(role_table().splitlines()) == 2 + 27


def test_a_line_of_the_table_by_hand() -> None:
    """From ``roles.csv``: 0.686135, 0.693245; 0.684710, 0.741604; choice 0.882911 and 0.857595 (0.0076 to 0.0433),
    0.905671 and 0.878472 (0.0099 to 0.0445)."""
    (line,) = [line for line in role_table().splitlines() if line.startswith("| preposition → its noun (case) | L2H8")]
    assert line == (
        "| preposition → its noun (case) | L2H8 (3-9) | 68.6% | noun, name, pronoun, number or symbol to the right "
        "| 69.3% | 68.5% | noun, name or adverb to the right | 74.2% | below | +2.5 [+0.8, +4.3]; +2.7 [+1.0, +4.4] |"
    )


def test_how_many_beat_the_rule_is_what_texts_say() -> None:
    beats, equals, below = states(shipped_roles())
    assert (beats, equals, below) == (0, 1, 26)
    every = len(shipped_roles())
    measures = said("docs/measures.md")
    words = f"None of the {every} roles that EWT and GUM establish for `minilm` beats the rule, {equals} equals it, "
    assert f"{words}{below} are below it." in measures
    assert f"| {every} syntactic ({equals} equals the rule by parts of speech, {below} are below it) |" in measures
    words = (
        f"{every} syntactic roles on {len({one.head for one in shipped_roles()})} heads; {equals} of them equals the "
    )
    assert f"{words}rule by parts of speech and {below} are below it" in said("docs/howto/numbers.md")
    readme = f"of {every} roles of syntax {beats} beat it, {equals} equals it, {below} are below it"
    assert readme in said("README.md")
    assert f"Of the {every} roles of syntax of `minilm` none beats it" in said("docs/limits.md")
    assert f"none of the {every} does better" in said("docs/howto/cite.md")


def test_what_texts_say_of_coreference_and_q() -> None:
    of_gum = [one for one in shipped("gum").findings() if one.role == "coreference"]
    assert states(of_gum) == [0, 2, 0]
    measures = said("docs/measures.md")
    assert "Of the two roles of coreference that GUM suggests, both equal the rule of agreement." in measures
    here, there = (looked_at(shipped(corpus).tables) for corpus in ("ewt", "gum"))
    counts = [int((tests["n"] > 0).sum()) for tests in (here, there)]
    low = int((here["q"] < 0.05).sum())
    established = sum(one.q < 0.05 for one in shipped_roles())
    assert (
        f"Among the {counts[0]:,} tests of `minilm` on UD English EWT, {low} have q < 0.05; {established} of these are "
        "established roles."
    ) in measures
    assert min(tests["rule_q"].min() for tests in (here, there)) >= 0.05
    assert (
        f"None of the {counts[0]:,} tests on EWT has a `rule_q` below 0.05, and none of the {counts[1]:,} on GUM."
    ) in measures


def test_which_heads_choose_better_than_the_nearest_word_of_the_kind() -> None:
    better = [
        (str(one.head), one.detail.split()[0])
        for one in shipped_roles()
        if one.elsewhere
        and min(one.beside.choice_n, one.elsewhere.beside.choice_n) >= CASES
        and min(one.beside.choice_low, one.elsewhere.beside.choice_low) > 0
    ]
    assert sorted(better) == [
        *(("L1H4", "case"), ("L2H1", "nmod"), ("L2H8", "case"), ("L2H8", "det"), ("L3H8", "case")),
    ]
    assert (
        f"On both corpora, {len(better)} of the 27 choose better than the nearest word: *case* of L1H4, L2H8 and L3H8, "
        "*det* of L2H8, *nmod* of L2H1."
    ) in said("docs/measures.md")


def test_the_example_of_a_sentence_to_cite_has_the_numbers_of_the_head() -> None:
    case = next(one for one in shipped_roles() if (str(one.head), one.detail) == ("L2H8", "case dep_to_head"))
    assert beside_rule(case).startswith("The nearest noun, name, pronoun, number or symbol to the right: 69%;")
    assert "“right in 69%; the nearest noun, name, pronoun, number or symbol to the right: 69%”" in said(
        "docs/measures.md"
    )


def test_no_text_says_what_was_true_of_a_rule_of_one_part_of_speech() -> None:
    """But for the sentence that nobody should claim."""
    former = ("no better than a simple rule", "a rule suffices", "better than the rule by part of speech”")
    claim = "“9 of them, on 6 heads, do better than the rule by part of speech”"
    assert claim in said("docs/howto/cite.md")
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "assets").glob("*.*")):
        if path.suffix in (".md", ".json"):
            text = path.read_text("utf-8").replace(claim, "")
            assert not [words for words in former if words in text.lower()], path
