"""Search for heads: by name in both numberings, in plain words, by two words of the text."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mha_viz.analysis.bundled_data import HeadRecipe, RecipePart
from mha_viz.analysis.corpus_why import load_head_shares
from mha_viz.analysis.findings import BEATS, BELOW, EQUALS, Finding, OtherCorpusScore, RuleComparison
from mha_viz.analysis.profile import COPYING, HEADINGS
from mha_viz.analysis.rules import NAMES as RULE_NAMES
from mha_viz.app.widgets import head_search
from mha_viz.app.widgets.head_search import MAX_LISTED, NO_ROLE, RECIPE, HeadAnswer
from mha_viz.attention import Attention, Head
from mha_viz.figures.words.glosses import RULE_WORDS
from mha_viz.figures.words.role_words import (
    compare_with_rule,
    count_states,
    describe_evidence,
    describe_in_list,
    describe_rule_in_list,
    find_best_baseline,
    get_plain_name,
    has_older_rule,
    label_role,
    shorten_name,
    sort_by_interest,
    sort_by_strength,
    summarise_role,
)
from mha_viz.numerals import percent
from tests.readings import ducks


def finding(name: str, role: str, detail: str, score: float, baseline: float, **more: object) -> Finding:
    usual = Finding(Head.parse(name), role, detail, score, baseline, score - baseline, 200, 0.5, 0.7)
    return usual._replace(**more)


OBJECT = finding("L3H1", "syntax", "obj head_row", 0.7, 0.4, upos=0.6, upos_rule="nearest NOUN to the right")
OBJECT_TOO = finding("L3H1", "syntax", "obj dep_to_head", 0.6, 0.4)
WEAK = finding(
    "L2H8",
    "syntax",
    "nsubj dep_to_head",
    0.58,
    0.33,
    state=BELOW,
    upos=0.69,
    upos_rule="nearest verb",
    status="established",
)
PRONOUN = finding("L2H4", "coreference", "third_person", 0.734, 0.5)
BEFORE = finding("L0H2", "position", "previous", 0.997, 0.054, low=math.nan, high=math.nan)
BROAD = finding("L0H0", "broad", "entropy", 0.87, 0.53, low=math.nan, high=math.nan)
FINDINGS = (OBJECT, OBJECT_TOO, WEAK, PRONOUN, BEFORE, BROAD)
NAMES = ["level", "relation", "direction", "layer", "head", "n_odd", "accuracy_odd", "offset_odd", "upos_odd"]
ROWS = [
    ("full", "vocative", "dep_to_head", 9, 9, 30, 0.1, 0.2, 0.3, 0.0),
    ("base", "vocative", "dep_to_head", 1, 5, 40, 0.25, 0.125, 0.375, 0.05),
    ("base", "list", "dep_to_head", 1, 5, 19, 0.25, 0.125, 0.375, 0.05),
]
CHOSEN = pd.DataFrame(ROWS, columns=[*NAMES, "untrained_odd"])


PUNCTUATION = pd.DataFrame({"layer": [0, 1, 1], "head": [0, 0, 2], "punctuation": [0.1, 0.2, 0.6]})
OFFSETS = pd.DataFrame(
    {"layer": [0, 0, 1, 1], "head": [0, 0, 0, 0], "offset": [0, 1, 0, 1], "mass": [0.4, 0.1, 0.2, 0.9]}
)
TABLES = {"syntax_chosen": CHOSEN, "delimiter": PUNCTUATION, "position": OFFSETS}


def table(name: str) -> Any:
    return TABLES.get(name)


def answers(typed: str) -> tuple[HeadAnswer, ...]:
    group = head_search.find_by_role(typed, FINDINGS, table)
    assert group is not None
    return group.answers


# ---- By name --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "heads"),
    [
        ("L3H1", ["L3H1"]),
        (" l12 h0 ", ["L12H0"]),
        ("4-2", ["L3H1", "L4H2"]),
        ("4–2", ["L3H1", "L4H2"]),
        ("4.2", ["L3H1", "L4H2"]),
        ("0-3", ["L0H3"]),  # nothing counts from 1 to 0
        ("L3", []),
        ("L3H1 and", []),
        ("1234-1", []),
        ("²-1", []),
        ("", []),
    ],
)
def test_names_are_read_in_both_numberings(typed: str, heads: list[str]) -> None:
    assert [str(head) for head in head_search.parse_names(typed).values()] == heads


def test_each_way_to_read_a_name_is_a_group_with_the_roles_of_its_head() -> None:
    groups = head_search.answer_names("4-2", head_search.parse_names("4-2"), lambda head: True, FINDINGS)
    assert [group.title for group in groups] == ["4-2, counted from 1, as in papers", "4-2, counted from 0"]
    assert [answer.description for answer in groups[0].answers] == [
        "its verb → object (obj)"
    ]  # once, not in both directions
    assert groups[1].answers == (HeadAnswer(Head(4, 2), "No role was found for this head."),)


def test_a_head_that_the_model_lacks_is_not_offered() -> None:
    (group,) = head_search.answer_names("9-9", head_search.parse_names("9-9"), lambda head: False, FINDINGS)
    assert group.answers == ()
    assert group.note == "This model has no such head."


# ---- By what it does ------------------------------------------------------------------------------------------------


def test_plain_words_give_score_baseline_and_standing() -> None:
    (answer,) = answers("pronoun")
    assert answer.head == Head(2, 4)
    assert answer.description == "pronoun → what it refers to"
    assert (answer.score, answer.baseline, answer.rule) == ("73.4%", "50.0%", "better of two simple rules")
    assert answer.standing == "suggested"


def test_a_rule_that_does_better_than_the_head_is_its_baseline() -> None:
    answer = answers("subject")[0]
    assert (str(answer.head), answer.score, answer.baseline) == ("L2H8", "58.0%", "69.0%")
    assert answer.rule == "nearest verb"
    assert answer.standing == "established, below the rule"


def test_what_a_head_does_to_the_rule_stands_beside_both_of_their_numbers_on_both_corpora() -> None:
    beside = RuleComparison(-0.03, 0.02, 0.76, 1264, 0.883, 0.858, 0.007, 0.043)
    there = OtherCorpusScore("UD English GUM dev", 0.55, 0.742, "nearest NOUN, PROPN or ADV to the right", beside)
    of_both = {"upos_rule": "nearest NOUN or SYM to the right", "state": BELOW, "corpora": ("EWT", there.corpus)}
    case = finding("L3H1", "syntax", "case dep_to_head", 0.577, 0.38, upos=0.525, other_score=there, **of_both)
    case = case._replace(status="established", comparison=beside)
    (group,) = head_search.answer_names("L3H1", {"": Head(3, 1)}, lambda head: True, [case])
    (answer,) = group.answers
    assert (answer.score, answer.baseline) == ("57.7%", "52.5%"), "which alone would deny it"
    assert answer.standing == "established, below the rule (GUM 55.0% < 74.2%)"
    assert summarise_role(case) == "preposition → its noun, right in 58% (GUM 55%); below the rule, 53% (GUM 74%)"
    assert compare_with_rule(case) == (
        "The nearest noun or symbol to the right: 53%; on GUM, the nearest noun, name or adverb: 74%. The rule is told "
        "the parts of speech; the head finds them itself. Given the right kind of word, it picks the right one in 88% "
        "(nearest: 86%)."
    )
    words = describe_evidence(case)
    assert words.startswith(f"established on EWT and {there.corpus}, below the rule by parts of speech: coincides with")
    assert words.endswith(compare_with_rule(case, 1))
    same = case._replace(other_score=there._replace(upos_rule=case.upos_rule), comparison=beside._replace(choice_n=99))
    assert compare_with_rule(same) == (
        "The nearest noun or symbol to the right: 53%; on GUM 74%. The rule is told the parts of speech; the head "
        "finds them itself."
    )


def test_beside_coreference_stands_the_rule_of_agreement() -> None:
    agrees = PRONOUN._replace(upos=0.74, upos_rule="agreement", state=EQUALS)
    assert summarise_role(agrees) == "pronoun → what it refers to, right in 73%; equals the rule, 74%"
    assert compare_with_rule(agrees) == (
        "The rule of agreement: 74%. The rule is told number and subjects; the head finds them itself."
    )
    assert find_best_baseline(agrees) == ("rule of agreement", 0.74)
    assert find_best_baseline(agrees._replace(upos=0.4)) == ("better of two simple rules", 0.5)
    assert compare_with_rule(PRONOUN) == ""


def test_states_are_counted_in_words() -> None:
    each = [OBJECT._replace(state=state) for state in (EQUALS, BELOW, BELOW)]
    assert count_states(each) == "beats the rule 0, equals 1, below 2"
    assert count_states([OBJECT, BEFORE]) == ""


@pytest.mark.parametrize(
    ("score", "rule", "state", "words"),
    [
        (0.58, 0.82, BELOW, "rule 82%"),
        (0.686, 0.693, BELOW, "rule 69% (GUM 50% < 74%)"),  # the same number
        (0.786, 0.779, BELOW, "rule 78% (GUM 50% < 74%)"),  # here the head is better
        (0.64, 0.67, EQUALS, "rule 67%"),
        (0.8, 0.7, BEATS, "rule 70%"),
        (0.699, 0.701, BEATS, "rule 70%"),
    ],
)
def test_in_a_list_the_other_corpus_is_named_where_the_numbers_of_this_one_deny_the_state(
    score: float, rule: float, state: str, words: str
) -> None:
    there = OtherCorpusScore("UD English GUM dev", 0.5, 0.742, "nearest NOUN to the right")
    case = OBJECT._replace(score=score, upos=rule, state=state, other_score=there)
    assert describe_rule_in_list(case) == describe_rule_in_list(case, BEFORE) == words
    assert describe_in_list(case) == f"its verb → object, right in {percent(score, 0)}"


def test_heads_that_beat_the_rule_come_first_whatever_their_gain() -> None:
    below, equals, beats = (
        OBJECT._replace(head=Head(1, place), gain=0.5 - place / 10, state=state)
        for place, state in enumerate((BELOW, EQUALS, BEATS))
    )
    assert [*sort_by_strength([below, equals, beats])] == [beats, equals, below]
    assert sort_by_interest([BEFORE, below])[0] == below, "it is not hidden"


def test_an_older_table_is_one_without_an_interval_beside_the_rule() -> None:
    assert has_older_rule([WEAK])
    assert not has_older_rule([OBJECT, WEAK._replace(comparison=RuleComparison(-0.2, -0.1))])


@pytest.mark.parametrize(("typed", "head"), [("the word before", "L0H2"), ("looks everywhere", "L0H0")])
def test_other_roles_answer_too(typed: str, head: str) -> None:
    assert str(answers(typed)[0].head) == head


def test_without_a_role_the_best_head_of_the_relation_answers() -> None:
    (answer,) = answers("vocative")
    assert (str(answer.head), answer.standing) == ("L1H5", NO_ROLE)
    assert (answer.score, answer.baseline, answer.rule) == ("25.0%", "37.5%", "rule by parts of speech")
    group = head_search.find_by_role("vocative", FINDINGS, table)
    assert group is not None
    assert group.note == "No head has a role for “person spoken to → the clause” here."


@pytest.mark.parametrize(
    ("typed", "head", "score", "baseline"),
    [("looks at commas", "L1H2", "60.0%", "30.0%"), ("the same token", "L0H0", "40.0%", "30.0%")],
)
def test_without_a_role_the_head_with_the_highest_measure_answers(
    typed: str, head: str, score: str, baseline: str
) -> None:
    answer = answers(typed)[0]
    assert (str(answer.head), answer.score, answer.baseline) == (head, score, baseline)
    assert (answer.rule, answer.standing) == ("average head", NO_ROLE)


@pytest.mark.parametrize(("typed", "tables"), [("list", table), ("list", {}.get), ("looks at commas", {}.get)])
def test_few_cases_and_no_table_give_no_head(typed: str, tables: Callable[[str], Any]) -> None:
    group = head_search.find_by_role(typed, FINDINGS, tables)
    assert group is not None
    assert group.answers == ()
    assert group.note


def test_words_that_say_nothing_ask_for_nothing() -> None:
    assert head_search.find_by_role("zzz", FINDINGS, table) is None


def test_names_of_roles_are_plain() -> None:
    assert [get_plain_name(one) for one in (OBJECT, PRONOUN, BEFORE)] == ["object (obj)", "pronoun", "previous token"]
    assert find_best_baseline(OBJECT) == ("nearest noun to the right", 0.6)
    assert find_best_baseline(BEFORE) == ("if it looked everywhere equally", 0.054)


def test_both_special_tokens_together_have_words() -> None:
    resting = finding("L2H3", "delimiter", "both", 0.63, 0.125, low=math.nan, high=math.nan)
    assert (get_plain_name(resting), shorten_name(resting)) == ("both special tokens", "CLS+SEP")
    assert "63.0% of its attention goes to [CLS] and [SEP] together (12.5% if" in describe_evidence(resting)
    assert label_role(resting) == "any token → [CLS] or [SEP]"


# ---- By two words of the text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("it animal", ("it", "animal")),
        ("It → animal", ("it", "animal")),
        ("it -> animal", ("it", "animal")),
        ("it->animal", ("it", "animal")),
        ("it to animal", ("it", "animal")),
        ("from “it” to animal", ("it", "animal")),
        ("to to to", ("to", "to")),
        ("animal", None),
        ("a b c", None),
        ("→", None),
        ("", None),
    ],
)
def test_two_words_are_read_with_and_without_an_arrow(typed: str, words: tuple[str, str] | None) -> None:
    assert head_search.parse_two_words(typed) == words


def test_heads_are_ranked_by_the_link_between_two_words() -> None:
    attention = ducks()
    group = head_search.find_by_two_words(("ducks", "=x"), attention)
    assert group is not None
    assert len(group.answers) == MAX_LISTED == 6
    by_words = attention.by_words().weights[:, :, 1, 5]  # [layer, head]; [CLS] Ducks , +1 [SEP] =x [SEP]
    order = sorted(range(6), key=lambda place: -by_words.flat[place])
    assert [answer.head for answer in group.answers] == [Head(*divmod(place, 3)) for place in order]
    assert group.answers[0].score == f"{by_words.max():.3f}"
    assert group.answers[0].baseline == f"{by_words.mean():.3f}"
    assert group.answers[0].link == (1, 6)  # tokens: the first piece of each word


def test_words_that_the_text_lacks_have_no_link() -> None:
    assert head_search.find_by_two_words(("ducks", "geese"), ducks()) is None
    assert head_search.find_by_two_words(("ducks", "ducks"), ducks()) is None  # one word, with itself


def test_heads_are_ranked_by_what_a_word_gets_and_gives() -> None:
    attention = ducks()  # [CLS] Ducks , +1 [SEP] =x [SEP]; “Ducks” is the pieces 1 and 2
    to_it, from_it = head_search.find_by_one_word("ducks", attention)
    w = attention.by_words().weights  # [layer, head, query, key]
    others = {2: ",", 3: "+1", 5: "=x"}
    for group, held, strongest in (
        (to_it, "k1", w[:, :, list(others), 1]),
        (from_it, "q1", w[:, :, 1, list(others)]),
    ):
        best = strongest.max(axis=-1)
        order = sorted(range(6), key=lambda place: -best.flat[place])
        assert [answer.head for answer in group.answers] == [Head(*divmod(place, 3)) for place in order[:4]]
        other = list(others.values())[int(strongest.reshape(6, 3)[order[0]].argmax())]
        first = group.answers[0]
        assert first.description == (f"{other} → Ducks" if held == "k1" else f"Ducks → {other}")
        assert (first.score, first.baseline) == (f"{best.max():.3f}", f"{best.mean():.3f}")
        assert {answer.pin for answer in group.answers} == {held}
    assert (to_it.title, from_it.title) == ("To “ducks” in this text", "From “ducks” in this text")


@pytest.mark.parametrize("word", ["geese", "[cls]", "duck", ""])
def test_what_is_no_word_of_the_text_gets_nothing(word: str) -> None:
    assert head_search.find_by_one_word(word, ducks()) == []


def test_the_only_word_of_a_text_looks_at_no_other() -> None:
    alone = Attention.from_tensors([np.full((1, 3, 3), 1 / 3)], ["[CLS]", "Hello", "[SEP]"])
    assert head_search.find_by_one_word("hello", alone) == []


@pytest.mark.parametrize(("typed", "word"), [(" “Animal” ", "animal"), ("it animal", ""), ("", "")])
def test_one_word_is_read_without_quotation_marks(typed: str, word: str) -> None:
    assert head_search.parse_one_word(typed) == word


# ---- By a rule of its recipe ----------------------------------------------------------------------------------------


def recipe(name: str, explained: float, *, even: float = 0.3, **shares: float) -> HeadRecipe:
    parts = [RecipePart(RULE_NAMES.index(rule.replace("_", " ")), share) for rule, share in shares.items()]
    return HeadRecipe(Head.parse(name), tuple(parts), explained, even)


def test_the_largest_rule_of_a_recipe_is_named_however_small() -> None:
    small = recipe("L0H0", 0.36, the_token_after=0.04, the_last_full_stop=0.03)
    assert small.describe(str) == "attends 4% to the token after; no rule explains 64%"


RECIPES = (
    recipe("L0H0", 0.5, the_last_full_stop=0.5),
    recipe("L0H1", 0.9, the_token_after=0.6, the_last_full_stop=0.3),
    recipe("L1H0", 0.8, the_same_form_elsewhere=0.7, the_same_token=0.1),
    recipe("L1H1", 0.72, even=0.7, everywhere=0.72),
)


@pytest.mark.parametrize(
    ("typed", "heads"),
    [
        ("looks at full stops", ["L0H0", "L0H1"]),
        ("same word", ["L1H0", "L1H0"]),
        ("the next word", ["L0H1"]),
    ],
)
def test_heads_are_found_by_a_rule_of_their_recipe(typed: str, heads: list[str]) -> None:
    group = head_search.find_by_rule(typed, RECIPES)
    assert group is not None
    assert [str(answer.head) for answer in group.answers] == heads
    assert {answer.standing for answer in group.answers} == {RECIPE}


@pytest.mark.parametrize("typed", ["", "the", "subject", "full moon", "commas", "🙂"])
def test_words_that_are_no_rule_of_a_head_find_none(typed: str) -> None:
    assert head_search.find_by_rule(typed, RECIPES) is None
    assert head_search.find_by_rule("next word", ()) is None


def test_a_rule_has_its_share_and_the_mean_of_all_heads() -> None:
    group = head_search.find_by_rule("full stop", RECIPES)
    assert group is not None
    first = group.answers[0]
    assert (first.description, first.score, first.baseline) == ("the last full stop", "50.0%", "20.0%")


def test_a_head_without_a_role_is_answered_with_its_recipe() -> None:
    def of(name: str) -> str:
        (group,) = head_search.answer_names(name, head_search.parse_names(name), lambda _: True, (), RECIPES)
        return group.answers[0].description

    assert of("L0H1") == "attends 60% to the token after, 30% to the last full stop; no rule explains 10%"
    assert of("L1H1") == "attends evenly to all tokens"
    assert of("L5H5") == "No role was found for this head."


def test_every_further_word_for_a_rule_belongs_to_one() -> None:
    assert set(RULE_WORDS) <= set(RULE_NAMES)


@pytest.mark.parametrize("typed", ["position", "Positions", "content", "composition"])
def test_heads_are_found_by_what_they_find_their_keys_by(typed: str) -> None:
    shares = {"position": (0.9, 0.2), "word": (0.1, 0.3), "earlier heads": (0.0, 0.5)}
    rows = [(0, head, group, both[head]) for group, both in shares.items() for head in (0, 1)]
    of_heads = [*load_head_shares(pd.DataFrame(rows, columns=["layer", "head", "group", "share"])).values()]
    group = head_search.find_by_dependence(typed, of_heads)
    assert group is not None
    first, second = group.answers
    assert first.head == Head(0, int("osition" not in typed or typed == "composition"))
    assert first.description.startswith("its attention depends on ")
    assert float(first.score.rstrip("%")) > float(first.baseline.rstrip("%")) > float(second.score.rstrip("%"))
    assert head_search.find_by_dependence("subject", of_heads) is head_search.find_by_dependence(typed, ()) is None


@pytest.mark.parametrize("typed", ["copies", " Copying  score "])
def test_heads_are_found_by_their_copying_scores(typed: str) -> None:
    rows = [(0, 0, -0.25, -0.4), (0, 1, 0.961, -0.02), (1, 0, 0.5, 0.0), (1, 1, 0.1, 0.2), (1, 2, math.nan, math.nan)]
    table = pd.DataFrame(rows, columns=[*HEADINGS[COPYING]])
    group = head_search.find_by_copying(typed, table)
    assert group is not None
    assert [(answer.head, answer.score) for answer in group.answers] == [
        (Head(0, 1), "0.96"),
        (Head(1, 0), "0.50"),
    ]
    none = head_search.find_by_copying(typed, table.iloc[[0, 3, 4]])
    assert none is not None
    assert (none.answers, none.note) == ((), "No head of this model does.")
    assert (group.answers[0].rule, group.answers[0].baseline) == ("random weights", "−0.02")
    unmeasured = head_search.find_by_copying(typed, None)
    assert unmeasured is not None
    assert unmeasured.answers == ()
    assert "were not measured" in unmeasured.note
    assert head_search.find_by_copying("subject", table) is None


def test_heads_are_found_by_a_word_that_they_write() -> None:
    assert head_search.parse_written_word(" writes  Beast? ") == "beast"
    assert head_search.parse_written_word("writes the beast") == head_search.parse_written_word("copies beast") == ""
    attention = ducks(layers=2, heads=4)
    special, tokens = attention.text.special, attention.tokens
    writing = {Head(0, 1): 3, Head(1, 2): 4, Head(0, 0): 0}  # the key, the last one of which is special
    heads = [Head(layer, head) for layer in (0, 1) for head in range(4)]
    named = [[("Cat", "Beast") if writing.get(head) == key else ("x",) for key in range(8)] for head in heads]
    group = head_search.find_by_written_word("beast", attention, named)
    expected = {}
    for head in (Head(0, 1), Head(1, 2)):
        key = writing[head]
        weights = {q: float(attention[head][q, key]) for q in range(8) if not special[q] and q != key}
        query = max(weights, key=lambda q: weights[q])
        mean = float(attention.weights[:, :, query, key].mean())
        does = f"{tokens[query]} → {tokens[key]}, writes Cat, Beast"
        expected[head] = ((query, key), does, f"{weights[query]:.3f}", f"{mean:.3f}")
    assert {a.head: (a.link, a.description, a.score, a.baseline) for a in group.answers} == expected
    assert [a.score for a in group.answers] == sorted((a.score for a in group.answers), reverse=True)
    nothing = head_search.find_by_written_word("dog", attention, named)
    assert (nothing.answers, nothing.note) == ((), "No head writes it in this text.")
    many = head_search.find_by_written_word("x", attention, named)
    assert (len(many.answers), many.note) == (MAX_LISTED, "And 2 other heads.")
