"""Gold annotation and badges on the Explore page: the answers of a head for a sentence, and the descriptions of
heads."""

from __future__ import annotations

import base64
import math
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import mha_viz as mv
from mha_viz.analysis import bundled_data
from mha_viz.analysis.bundled_data import explain_by_rule
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.rules import RULES
from mha_viz.analysis.syntax import Arc, find_pointers, list_arcs
from mha_viz.analysis.unusual_heads import find_active
from mha_viz.app.explore.badges import _count_hits
from mha_viz.app.explore.gold import compare_arcs
from mha_viz.app.url.annotated_texts import AnnotatedText, find_annotation, load_built_in_corpus, read_words
from mha_viz.attention import Attention, Head
from mha_viz.corpus.conllu import read_conllu
from mha_viz.corpus.treebank import Sentence, Word
from mha_viz.errors import CorpusError
from mha_viz.figures.drawing.marks import Curve, Text
from mha_viz.figures.drawing.theme import LIGHT
from mha_viz.figures.layout.arcs import LABEL_SIZE, WORD_SIZE, Span, choose_arc_colour, draw_sentence
from mha_viz.text import Token, TokenizedText
from tests.page_session import PageSession

pytestmark = pytest.mark.usefixtures("no_hub")

PASTED = (
    "# text = She didn't see it.\n"
    "1\tShe\tshe\tPRON\t_\tPerson=3\t4\tnsubj\t_\tEntity=(1-person)\n"
    "2-3\tdidn't\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "2\tdid\tdo\tAUX\t_\t_\t4\taux\t_\t_\n3\tn't\tnot\tPART\t_\t_\t4\tadvmod\t_\t_\n"
    "4\tsee\tsee\tVERB\t_\t_\t0\troot\t_\t_\n5\therself\therself\tPRON\t_\tPerson=3\t4\tobj\t_\tEntity=(1-person)\n"
    "6\t.\t.\tPUNCT\t_\t_\t4\tpunct\t_\t_\n"
)


def written(sentence: Sentence) -> str:
    return " ".join(sentence.forms)


def test_a_built_in_sentence_brings_its_gold_along() -> None:
    sentence = next(s for s in load_built_in_corpus().sentences if len(s.mentions) > 2 and len(s.forms) < 25)
    page = PageSession({"text": written(sentence), "head": "L2H0"})
    assert "### L2H0 (3-1) against the gold annotation" in page.said
    assert re.search(r"\*\*\d+/\d+\*\* arcs right\.", page.said)
    (picture,) = [e.proto.body for e in page.at.get("html") if "data:image/svg+xml" in e.proto.body]
    drawn = base64.b64decode(re.search(r"base64,([^\"]+)", picture)[1]).decode()  # type: ignore[index]
    assert "annotated link; the head" in drawn


def test_rules_that_need_annotation_apply_where_the_sentence_has_it() -> None:
    """What each rule takes, and the cells that it predicts; a sentence without annotation leaves them out."""
    sentence = next(s for s in load_built_in_corpus().sentences if len(s.mentions) > 2 and len(s.forms) < 25)
    read, every = mv.load("minilm").encode(written(sentence)), bundled_data.list_head_recipes("minilm")
    head = max(every, key=lambda one: sum(part.share for part in one.parts if RULES[part.rule].needs))
    recipes = PageSession({"text": written(sentence), "head": str(head.head)}).badges["recipes"]
    assert recipes["annotated"]
    shares = explain_by_rule(read, sentence)
    for of, sent, one in zip(shares, recipes["heads"], every, strict=True):
        assert sent["here"] == pytest.approx([of[part.rule] for part in one.parts], abs=1e-3)
    assert recipes["here"] == pytest.approx(shares.sum(axis=1), abs=1e-3)
    assert _predicting(recipes, head)
    other = PageSession({"text": written(sentence)[:-1] + "!", "head": str(head.head)}).badges["recipes"]
    assert not other["annotated"]
    assert not _predicting(other, head)


def test_what_is_drawn_of_the_unexplained_knows_the_annotation() -> None:
    sentence = next(s for s in load_built_in_corpus().sentences if len(s.mentions) > 2 and len(s.forms) < 25)
    page = PageSession({"text": written(sentence), "shown": "unexplained"})
    recipes = page.badges["recipes"]
    assert recipes["annotated"]
    shares = explain_by_rule(mv.load("minilm").encode_words(sentence.forms), sentence)
    assert recipes["here"] == pytest.approx(shares.sum(axis=1), abs=1e-3)
    other = PageSession({"text": written(sentence)[:-1] + "!", "shown": "unexplained"})
    assert not other.badges["recipes"]["annotated"]


def _predicting(recipes: dict[str, Any], head: bundled_data.HeadRecipe) -> set[str]:
    """The rules of a head that need annotation and predict cells of the text."""
    names = {part.name for part in head.parts if RULES[part.rule].needs}
    return {rule["name"] for rule in recipes["rules"] if rule["name"] in names and any(base64.b64decode(rule["cells"]))}


def test_conllu_that_was_pasted_is_read_by_its_own_words() -> None:
    page = PageSession({"text": PASTED, "head": "L2H0"})
    assert page.typed["text"] == "She did n't see herself ."
    assert page.shown().header["words"] == ["[CLS]", "She", "did", "n't", "see", "herself", ".", "[SEP]"]
    assert "against the gold annotation" in page.said
    page.read("She did n't see herself .")  # nothing was edited: the gold stays
    assert page.url["text"] == PASTED
    page.read("She did not see it.")
    assert "against the gold" not in page.said


def test_coreference_of_what_was_pasted_can_be_chosen() -> None:
    page = PageSession({"text": PASTED, "head": "L3H1"})
    (pills,) = [p for p in page.at.pills if p.label == "Relation"]
    assert "coreference" in pills.options
    pills.set_value("coreference").run()
    page.check()
    assert "/1** arcs right" in page.said


@pytest.mark.parametrize(
    "broken", [PASTED.replace("\t4\tnsubj", "\t9\tnsubj"), PASTED.replace("1\tShe", "1\tShe\tshe")]
)
def test_conllu_that_cannot_be_read_is_answered_in_place(broken: str) -> None:
    page = PageSession({"text": broken})
    assert page.picture is not None
    assert "line" in page.said
    assert "against the gold" not in page.said


def test_typed_text_has_no_gold() -> None:
    assert "against the gold" not in PageSession().said


def test_words_are_given_only_where_there_is_gold() -> None:
    assert read_words("The animal was tired.") is None
    assert read_words(PASTED) == ("She", "did", "n't", "see", "herself", ".")
    annotation = find_annotation(written(load_built_in_corpus().sentences[0]))
    assert isinstance(annotation, AnnotatedText)
    assert not annotation.is_pasted


# ---- The answers of a head ------------------------------------------------------------------------------

THREE = Sentence((Word("Dogs", "NOUN", 1, "nsubj"), Word("eat", "VERB"), Word("cake", "NOUN", 1, "obj")))
SEEN = np.array([[[0.1, 0.8, 0.1], [0.3, 0.1, 0.6], [0.7, 0.2, 0.1]]], np.float32)  # rows: 0 → 1, 1 → 2, 2 → 0


@pytest.mark.parametrize(
    ("relation", "direction", "expected"),
    [
        ("nsubj", "dep_to_head", [Arc(0, 1, (1,), "nsubj")]),
        ("obj", "dep_to_head", [Arc(2, 0, (1,), "obj")]),
        ("all", "dep_to_head", [Arc(0, 1, (1,), "nsubj"), Arc(2, 0, (1,), "obj")]),
        ("obj", "head_to_dep", [Arc(2, 1, (1,), "obj")]),  # column 2: 0.1, 0.6 → word 1
        ("nsubj", "head_to_dep", [Arc(0, 2, (1,), "nsubj")]),  # column 0: 0.3 and 0.7 → word 2
        ("obj", "head_row", [Arc(1, 2, (2,), "obj")]),
        ("all", "head_row", [Arc(1, 2, (0, 2), "all")]),
        ("det", "dep_to_head", []),
    ],
)
def test_arcs_of_a_head_beside_the_gold(relation: str, direction: str, expected: list[Arc]) -> None:
    assert list(list_arcs(THREE, find_pointers(SEEN.copy()), 0, relation, direction)) == expected


def test_an_arc_is_right_when_it_ends_on_gold() -> None:
    assert Arc(1, 2, (0, 2), "all").is_right
    assert not Arc(2, 0, (1,), "obj").is_right


def test_gold_stands_above_the_words_and_the_rest_below() -> None:
    spans = [Span(0, 1, "nsubj", "hit"), Span(2, 1, "obj", "miss"), Span(2, 0, "", "extra")]
    drawn = draw_sentence(THREE.forms, spans, LIGHT, "three words")
    (y,) = {m.y for m in drawn.marks if isinstance(m, Text) and m.size == WORD_SIZE}
    curves = {m.colour: m for m in reversed(drawn.marks) if isinstance(m, Curve)}  # the arcs come before their key
    assert curves[choose_arc_colour("hit", LIGHT)].points[1][1] < y
    assert curves[choose_arc_colour("miss", LIGHT)].points[1][1] < y
    assert curves[choose_arc_colour("extra", LIGHT)].points[1][1] > y
    assert all(
        0 <= x <= drawn.width and 0 <= high <= drawn.height
        for c in curves.values()
        for x, high in (c.points[0], c.points[3])
    )


def test_labels_do_not_lie_over_each_other() -> None:
    spans = [
        Span(0, 2, "a long label", "hit"),
        Span(2, 0, "another label", "miss"),
        Span(0, 1, "third", "hit"),
    ]
    drawn = draw_sentence(THREE.forms, spans, LIGHT, "")
    heights = sorted(m.y for m in drawn.marks if isinstance(m, Text) and m.size == LABEL_SIZE)
    assert len(heights) == 3
    assert all(b - a >= LABEL_SIZE for a, b in pairwise(heights))


# ---- Badges ---------------------------------------------------------------------------------------------


def reading(rows: list[list[float]], second: str = "b") -> Attention:
    """[CLS] a b [SEP] with one head."""
    tokens = (
        Token("[CLS]", None, 0, None, None),
        Token("a", 0, 0, 0, 1),
        Token(second, 1, 0, 2, 2 + len(second)),
        Token("[SEP]", None, 0, None, None),
    )
    return Attention("m", "", TokenizedText(f"a {second}", "", tokens), np.array([[rows]], np.float32))


def finding(role: str, detail: str) -> Finding:
    return Finding(Head(0, 0), role, detail, 0.9, 0.1, 0.8, 200, math.nan, math.nan)


REST = [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("role", "detail", "rows", "shows"),
    [
        ("syntax", "obj dep_to_head", [REST, [0.4, 0, 0.6, 0], REST, REST], True),  # a gives b 0.6
        ("syntax", "obj dep_to_head", [REST, [0.5, 0, 0.5, 0], REST, REST], False),  # not more than half
        ("syntax", "obj dep_to_head", [REST, [0.1, 0.9, 0, 0], REST, REST], False),  # itself does not count
        ("coreference", "third_person", [REST, REST, [0.2, 0.8, 0, 0], REST], False),  # b is no pronoun
        ("position", "previous", [REST, [0.6, 0, 0.4, 0], [0.4, 0.6, 0, 0], REST], True),  # mean 0.6
        ("position", "next", [REST, [0.6, 0, 0.4, 0], [0.4, 0.6, 0, 0], REST], False),
        ("delimiter", "cls", [REST, REST, REST, [0.4, 0, 0, 0.6]], True),  # (1 + 1 + 1 + 0.4) / 4
        ("delimiter", "sep", [REST, REST, REST, [0.4, 0, 0, 0.6]], False),
        ("delimiter", "both", [[0.4, 0.2, 0.1, 0.3]] * 4, True),  # neither alone
        ("delimiter", "both", [[0.25, 0.25, 0.25, 0.25]] * 4, False),
        ("broad", "entropy", [[0.25] * 4] * 4, True),
        ("broad", "entropy", [REST] * 4, False),
    ],
)
def test_a_role_shows_in_a_text_or_not(role: str, detail: str, rows: list[list[float]], shows: bool) -> None:
    assert find_active([finding(role, detail)], reading(rows)) == (shows,)


def test_coreference_shows_from_a_pronoun_to_a_word_before_it() -> None:
    role = [finding("coreference", "third_person")]
    assert find_active(role, reading([REST, REST, [0.2, 0.8, 0, 0], REST], "she")) == (True,)
    assert find_active(role, reading([REST, [0.2, 0, 0.8, 0], REST, REST], "she")) == (False,)


def test_a_position_earned_by_the_largest_weights_shows_by_them() -> None:
    by_share = [finding("position", "previous")._replace(low=0.9, high=0.95)]
    weak = [REST, [0.7, 0.2, 0.1, 0], [0.7, 0.2, 0.1, 0], REST]  # b's largest weight, [CLS] aside, is on a
    assert find_active(by_share, reading(weak)) == (True,)
    assert find_active([finding("position", "previous")], reading(weak)) == (False,)


def test_by_the_gold_of_a_text_a_head_is_active_or_not() -> None:
    sentence = next(
        s for s in load_built_in_corpus().sentences if any(w.base == "obj" for w in s.words) and len(s.forms) < 20
    )
    with_gold = {
        role["name"]: role
        for role in PageSession({"text": written(sentence)}).badges["roles"]
        if role["role"] == "syntax"
    }
    without = {name for name, role in with_gold.items() if "this sentence has no such link" in role["words"]}
    assert set() < without < with_gold.keys()
    for name in with_gold.keys() - without:
        assert "By this sentence’s annotation, the head is right in" in with_gold[name]["words"]
        assert "of 0 cases" not in with_gold[name]["words"]
    assert all(
        role["active"] == (name not in without and "0 of" not in role["words"]) for name, role in with_gold.items()
    )
    typed = [role for role in PageSession({"text": "She slept."}).badges["roles"] if role["role"] == "syntax"]
    assert {role["standing"] for role in typed if role["active"]} == {"below rule"}
    assert {role["standing"] for role in typed if not role["active"]} == {"not here"}
    assert all("The rule is told the parts of speech" in role["words"] for role in typed)


def test_names_of_relations_are_never_markup() -> None:
    page = PageSession({"text": PASTED.replace("nsubj", "![x](//mha-viz-canary.invalid/x.png)")})
    (pills,) = [p for p in page.at.pills if p.label == "Relation"]
    assert not any("![x](" in option for option in pills.options)


def test_several_sentences_that_were_pasted_are_counted() -> None:
    page = PageSession({"text": PASTED + "\n" + PASTED})
    assert "You pasted 2 sentences; only the first is shown." in page.said


def test_roles_of_heads_that_the_reading_lacks_do_not_show() -> None:
    assert find_active([finding("broad", "entropy")._replace(head=Head(5, 0))], reading([REST] * 4)) == (False,)


def test_heads_wear_their_roles() -> None:
    badges = PageSession().badges
    of_l3h1 = [role for role in badges["roles"] if role["head"] == 3 * 12 + 1]
    assert {role["role"] for role in of_l3h1} == {"syntax", "coreference"}
    assert all(role["active"] for role in of_l3h1)  # it → animal
    assert any(not role["active"] for role in badges["roles"])
    assert set(badges["kinds"]) >= {role["role"] for role in badges["roles"]}


@pytest.mark.parametrize(
    "typed",
    [
        "1\tDogs\tNOUN\t2\tnsubj\n2\tsleep\tVERB\t0\troot",
        "1  Dogs  dog  NOUN\n2  sleep  sleep  VERB",
        "1 Dogs dog NOUN _ _ 2 nsubj _ _\n2 sleep sleep VERB _ _ 0 root _ _",
        "\n".join(f"{i}\t_\t_\tX\t_\t_\t{i - 1}\tdep\t_\t_" for i in (1, 2)),
    ],
    ids=["five columns", "spaces", "single spaces", "no words"],
)
def test_a_pasted_table_is_refused_and_not_read_as_text(typed: str) -> None:
    assert isinstance(find_annotation(typed), CorpusError)


def test_pasted_columns_are_those_that_are_declared() -> None:
    pasted = find_annotation(
        "# global.columns = ID FORM UPOS HEAD DEPREL\n1\tDogs\tNOUN\t2\tnsubj\n2\tsleep\tVERB\t0\troot"
    )
    assert isinstance(pasted, AnnotatedText)
    assert pasted.forms == ("Dogs", "sleep")
    assert [word.relation for word in pasted.sentence.words] == ["nsubj", "root"]


@pytest.mark.parametrize("typed", ["Time\tflies", "5 4 3 2 1 0", "a\tb\nc\td", "1\tDogs sleep"])
def test_typed_text_with_tabs_or_numbers_is_text(typed: str) -> None:
    assert find_annotation(typed) is None


def test_a_causal_head_is_not_right_about_words_that_it_cannot_see() -> None:
    conllu = "1\tdogs\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tbark\t_\tVERB\t_\t_\t0\troot\t_\t_\n"
    sentence = read_conllu(conllu, "Dogs").sentences[0]
    attention = Attention.from_tensors([np.float32([[[[1, 0], [0.5, 0.5]]]])], ["dogs", "bark"])
    subject = finding("syntax", "nsubj dep_to_head")
    assert _count_hits([subject], attention, sentence) == {subject: (0, 1)}
    spans = compare_arcs(sentence, attention, Head(0, 0), "nsubj", "dep_to_head")
    assert [span.kind for span in spans] == ["miss"]
