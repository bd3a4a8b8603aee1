"""The Roles page as a script: measurements, the card of a head, measuring on demand, and errors."""

from __future__ import annotations

import functools
import json
import math
import os
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import parse_qs, parse_qsl

import pandas as pd
import pytest

from mha_viz.analysis.bundled_data import BUNDLED_CORPORA, list_head_recipes, load_bundled_roles
from mha_viz.analysis.corpus_why import WHY, load_head_shares
from mha_viz.analysis.findings import STATES
from mha_viz.analysis.needs import find_needs
from mha_viz.analysis.rules import NAMES, RULES
from mha_viz.analysis.syntax import Arc
from mha_viz.app.roles import head_card, overview, relations, score_rows
from mha_viz.app.roles.head_card import SentenceAnswers
from mha_viz.app.roles.score_rows import ScoreRow
from mha_viz.app.service import jobs
from mha_viz.app.service import studies as studies_room
from mha_viz.app.service.caches import empty_caches, get_model_service
from mha_viz.app.service.jobs import Job
from mha_viz.app.service.reader import Reader, verbs
from mha_viz.app.service.studies import load_bundled, make_built_in_corpus
from mha_viz.app.url.annotated_texts import load_built_in_corpus
from mha_viz.app.widgets.parts import escape_markdown
from mha_viz.attention import Head
from mha_viz.attention.parts import GROUPS
from mha_viz.corpus import BUILT_IN, grammar, uploads
from mha_viz.corpus.conllu import format_conllu
from mha_viz.corpus.uploads import StudyCorpus
from mha_viz.errors import Busy, Cancelled, CorpusError
from mha_viz.figures.charts.chart_plotly import plotly
from mha_viz.figures.charts.role_map import draw_role_map
from mha_viz.figures.drawing.theme import LIGHT
from mha_viz.figures.words.glosses import simplify_rule
from mha_viz.figures.words.need_words import name_kinds
from mha_viz.figures.words.role_words import OLDER_RULE, describe_evidence, group_by_head, summarise_role
from mha_viz.heads import list_heads
from mha_viz.models.getting import catalog
from mha_viz.text import clean
from tests import hostile, lanes
from tests.few_sentences import limit_built_in_sentences
from tests.new_server import restart_server
from tests.page_session import PageSession, press
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("no_hub", "empty_home")

PAGE = "pages/55_roles.py"
EVERY_SENTENCE = studies_room.read_pointers  # which the fixture below replaces
CONLLU = (
    "1\tDogs\tdog\tNOUN\t_\tNumber=Plur\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\t_\t_\t0\troot\t_\t_\n"
    "3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_\n\n"
)


@pytest.fixture(autouse=True)
def few_sentences(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cards of heads wait for the first of the built-in sentences only."""
    limit_built_in_sentences(monkeypatch)


def visit(**url: Any) -> PageSession:
    return PageSession(url, PAGE)


def numbers(page: PageSession | None = None, **url: Any) -> PageSession:
    """A visit in which *Numbers* was opened."""
    return (page or visit(**url)).open_numbers()


@functools.cache
def seen(**url: str) -> PageSession:
    """A visit with its numbers that several tests look at, and that none of them changes."""
    return numbers(**url)


def test_the_given_profile_is_shown_at_once() -> None:
    page = seen()
    assert "What the 72 heads of MiniLM" in page.said
    assert "UD English EWT test, UD English GUM dev and GAP" in page.said
    assert "no role was found" in page.said
    tables = page.at.dataframe
    relations = next(t.value for t in tables if "parts of speech" in t.value.columns)
    assert {"obj", "nsubj", "det"} <= set(relations["relation"])
    assert relations["gain"].is_monotonic_decreasing


def test_the_page_begins_with_a_line_and_keeps_its_numbers_for_whoever_asks() -> None:
    page = visit()
    texts = [element.value for element in page.at.main.markdown]
    first = next(number for number, value in enumerate(texts) if value.startswith("## What the 72 heads"))
    assert re.fullmatch(
        r"\*\*\d+\*\* have a role. Click one. \*\*12\*\* link words "
        r"\(\*\*2\*\* of 11 change their word more than neighbours\)\.",
        texts[first + 1],
    )
    assert not page.at.dataframe
    assert not page.at.get("plotly_chart")
    for words in (
        "of 72 heads have a role",
        "Linking words, against fixed offsets: q < 0.001; chance: 0 in 20 draws.",
        "ten points above the best fixed offset",
        "With random weights: all 72 heads are broad",
    ):
        assert words not in page.said
        assert words in seen().said


@pytest.mark.parametrize("corpus", ["grammar", "file", "0" * 64])
def test_the_page_has_its_title_where_nothing_is_measured_yet(corpus: str) -> None:
    page = visit(corpus=corpus)
    assert [title.value for title in page.at.main.markdown if title.value.startswith("## ")] == [
        "## What the heads of MiniLM do"
    ]


def test_the_card_of_a_head_with_many_roles_is_short_and_its_bar_has_a_legend() -> None:
    page = visit(head="L2H8")
    drawn = [unescape(one.proto.body) for one in page.at.get("html")]
    (listed,) = [body for body in drawn if 'ul class="mha-rows"' in body]
    mark = '<s class="mha-state ([a-z]+)".*?</s>\xa0(.*?)'
    item = f"<li><b>(.*?)</b>.*?{mark}(?:</summary></details>)?<small>(.*?)</small>"
    roles = re.findall(item, listed)
    assert re.findall("<li><b>([^,]*)[^<]*</b>, <details><summary>changes its word most<", listed) == [
        "form of “be” → its predicate"
    ]
    assert re.search("</summary><span>Without this head, [^<]+</span></details>", listed), "for fingers and keys, too"
    assert "no more than other heads" not in page.said
    does, state, rule, words = roles[0]
    assert (does, state, rule) == ("preposition → its noun, right in 69%", "below", "rule 69% (GUM 68% < 74%)")
    assert words == (
        "The nearest noun, name, pronoun, number or symbol to the right: 69%; on GUM, the nearest noun, name or "
        "adverb: 74%. The rule is told the parts of speech; the head finds them itself. Given the right kind of word, "
        "it picks the right one in 88% (nearest: 86%)."
    )
    assert ("subject → its verb, 58%", "rule 82%") in [(role[0], role[2]) for role in roles]
    assert ("determiner → its noun, 79%", "rule 78% (GUM 81% < 87%)") in [(role[0], role[2]) for role in roles]
    assert len(roles) == 5
    assert max(len(does) + len(rule) for does, _, rule, _ in roles) <= 60
    assert listed.count("The rule is told") == listed.count("<details class='rule'>") == 1, "once for all"
    (bar,) = [body for body in drawn if 'class="mha-keys"' in body]
    samples = re.findall(r"<span>(<u [^>]*></u>)([^<]*)</span>", bar)
    assert {name for _, name in samples} == set(GROUPS)


def test_a_role_in_short_names_the_other_corpus_in_the_least_words() -> None:
    evidence = load_bundled("minilm")
    assert evidence is not None
    lines = {finding: summarise_role(finding) for finding in evidence.findings()}
    assert max(map(len, lines.values())) <= 110
    one = next(finding for finding in lines if finding.state and finding.other_score)
    assert one.other_score is not None
    for corpus, name in (("my very own corpus.conllu", "my very own…"), ("GAP", "GAP"), ("UD English GUM dev", "GUM")):
        words = summarise_role(one._replace(other_score=one.other_score._replace(corpus=corpus)))
        assert words.count(f" ({name} ") == 2
    assert " (" not in summarise_role(one._replace(other_score=None))


def test_the_map_tells_apart_what_heads_do_to_the_rule_and_has_a_key() -> None:
    evidence = load_bundled("minilm")
    assert evidence is not None
    (drawn,) = [html.proto.body for html in visit().at.get("html") if 'class="mha-map"' in html.proto.body]
    listed = re.findall('class="(beats|equals|below)" aria-label="(L\\d+H\\d+)', drawn)
    states = {name: state for state, name in listed}
    assert states == {
        str(head): findings[0].state
        for head, findings in group_by_head(evidence.findings()).items()
        if findings[0].state
    }
    assert (states["L2H1"], states["L2H4"], states["L2H8"]) == ("equals", "equals", "below")
    ((named, key),) = re.findall('<div class="states" title="(.*?)">(.*?)</div>', drawn)
    assert re.findall('<s class="mha-state (.*?)" .*?></s>(.*?)</span>', key) == [(state, state) for state in STATES]
    assert named == "the rule by parts of speech or of agreement"
    others = PageSession({"kinds": "position"}, PAGE)
    (drawn,) = [html.proto.body for html in others.at.get("html") if 'class="mha-map"' in html.proto.body]
    assert 'class="states"' not in drawn, "of roles without such a rule"


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ("L2H8", " Its relations concern few words (≤\N{NO-BREAK SPACE}8.3%)."),
        ("L2H10", " Its relation concerns few words (0.5%)."),
        ("L2H9", ""),
    ],
)
def test_the_card_says_why_no_rule_of_its_recipe_is_the_relation_of_its_role(head: str, why: str) -> None:
    """`nsubj` has 2,074 cases among the 25,094 words of EWT, `discourse` with its head's row 119."""
    assert re.findall(" Its relations? .*", visit(head=head).said) == [why] * bool(why)


def test_a_recipe_with_a_relation_needs_no_such_sentence() -> None:
    evidence = load_bundled("minilm")
    assert evidence is not None
    named = group_by_head(evidence.findings())
    recipes = overview.load_recipes(evidence)
    lacking = {head for head, of in named.items() if head_card._explain_missing_relation(evidence, recipes[head], of)}
    with_roles = {head for head, findings in named.items() if any(one.role == "syntax" for one in findings)}
    relations = {name for name, rule in zip(NAMES, RULES, strict=True) if rule.kind == "syntax"}
    assert with_roles - lacking == {
        head for head in with_roles if relations & {part.name for part in recipes[head].parts}
    }
    assert lacking < with_roles


def test_an_older_profile_says_that_its_rule_names_one_part_of_speech(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = load_bundled("minilm")
    assert evidence is not None
    assert "older version" not in seen().said
    older = [
        replace(profile, tables={**profile.tables, "roles": profile.tables["roles"].assign(rule_low=math.nan)})
        for profile in evidence.profiles
    ]
    monkeypatch.setattr(studies_room, "_read_bundled", lambda name: evidence._replace(profiles=tuple(older)))
    assert f", {OLDER_RULE}." in visit().said


def squares(page: PageSession) -> dict[str, str]:
    """What each square of the map says, by the name of its head."""
    (drawn,) = [html.proto.body for html in page.at.get("html") if 'class="mha-map"' in html.proto.body]
    says = map(unescape, re.findall('aria-label="(L[^"]*)"', drawn))
    return {one.split()[0]: one for one in says}


def test_a_square_says_what_its_head_does_and_one_of_them_takes_the_keyboard() -> None:
    page = visit(head="L3H1", relation="mod")
    words_by_head = squares(page)
    assert len(words_by_head) == 72
    assert (
        words_by_head["L0H2"]
        == "L0H2 (1-3): token → the one before, 100% of its weight; uniform attention 5%; on average it attends 94% to "
        "the token before, 6% to the same token; attention depends on 98% position · 2% word"
    )
    assert words_by_head["L3H1"].startswith(
        "L3H1 (4-2): pronoun → what it refers to, right in 66%; equals the rule, 70%"
    )
    assert re.search(
        r"no role was found; .*no rule explains .*%\]; attention depends on 68% feed-forward", words_by_head["L5H11"]
    )
    (drawn,) = [html.proto.body for html in page.at.get("html") if 'class="mha-map"' in html.proto.body]
    (stop,) = re.findall('<a href="([^"]*)" target="_self" tabindex="0"', drawn)
    assert parse_qs(unescape(stop)[1:]) == {"head": ["L3H1"], "relation": ["mod"]}
    (line,) = drawn.split("<li>")[1:]
    assert re.findall("</i>([^<]+)", line) == ["also syntax", "also delimiter"]  # in the corners of squares


def test_the_repeater_s_map_tells_heads_that_find_keys_by_position_from_those_that_live_on_them() -> None:
    page = PageSession({"model": "repeater"}, PAGE)
    words_by_head = squares(page)
    assert words_by_head["L0H0"].endswith("attention depends on 100% position")
    assert all(re.search(r"attention depends on 9\d% earlier heads", words_by_head[f"L1H{head}"]) for head in range(4))
    assert page.at.segmented_control(key="roles_corpus").options == ["built-in", "your file"]
    induction = [says for says in words_by_head.values() if "token → what followed it last time, 9" in says]
    assert [says.split()[0] for says in induction] == ["L1H0", "L1H1", "L1H2", "L1H3"]  # as the list on repeated tokens
    assert "**6** have a role." in page.said


@pytest.mark.parametrize("name", ["toy", "repeater", "minilm"])
def test_heads_that_sentence_pairs_need_are_marked(name: str) -> None:
    evidence = load_bundled(name)
    assert evidence is not None
    needs = find_needs(evidence.table("needed"))
    words = {
        str(head): f"; needed for {name_kinds(need) or 'sentence pairs'};"
        for head, need in needs.items()
        if need.is_needed
    }
    assert bool(words) == (name != "minilm")
    page = PageSession({"model": name}, PAGE)
    (drawn,) = [html.proto.body for html in page.at.get("html") if 'class="mha-map"' in html.proto.body]
    squares_drawn = re.findall(r'aria-label="(L\d+H\d+)(.*?)</a>', drawn)
    marked = {head for head, square in squares_drawn if '<i class="needed"></i></span>' in square}
    assert marked == set(words)
    assert all(words[head] in says for head, says in squares(page).items() if head in words)
    assert not any("; needed" in says for head, says in squares(page).items() if head not in words)
    assert ("needed for sentence pairs</span></li>" in drawn) == bool(words)


def test_the_page_says_where_a_trivial_rule_is_better_than_the_best_head() -> None:
    page = seen()
    table = next(t.value for t in page.at.dataframe if "parts of speech" in t.value.columns)
    beaten = table[table[["offset", "parts of speech"]].max(axis=1) >= table["score"]]
    assert len(beaten) > 0
    assert set(table.loc[table["better"] != "the head", "relation"]) == set(beaten["relation"])
    assert f"For **{len(beaten)}** of {len(table)} relations a simple rule" in page.said


def test_a_head_of_the_url_is_shown_in_full() -> None:
    page = seen(head="L3H1")
    assert "### L3H1 (4-2)" in page.said
    assert "For 2 relations it changes its word no more than other heads of its layer." in page.said, (
        "nobody measured it for coreference"
    )
    assert "Attends 22% to [CLS], 13% evenly; no rule explains 45% [44%, 46%]." in page.said.replace("\\", "")
    assert (
        "**Rules chosen on** every 7th sentence of UD English EWT test, scored on every 6th sentence of UD "
        "English GUM dev; those of other text overlap by 97%." in page.said.replace("\\", "")
    )
    (bar,) = [html.proto.body for html in page.at.get("html") if 'class="mha-keys"' in html.proto.body]
    assert "Attention depends on<s" in bar
    assert "Its attention depends on 48% feed-forward · 29% earlier heads" in bar
    assert "**Dependence of attention**, on every 7th sentence of UD English EWT test" in page.said
    (every,) = [unescape(table) for table in tables_at_a_glance(page) if "best simple rule" in table]
    assert "what it refers to" in every
    assert "All numbers of these relations" in {box.label for box in page.at.expander}
    assert "In the built-in sentences it is right in" in page.said
    assert "Most often right" in page.said
    assert "Least often right" in page.said


def test_a_card_shows_its_first_role_at_work_where_no_sentence_of_its_corpus_may_be_shown() -> None:
    page = visit(head="L3H1", model="minilm")
    links = [link.proto for link in page.at.get("page_link") if "case=" in link.proto.query_string]
    there = {"model": "minilm", "text": "Anna called because she was late", "case": "L3H1.q3"}
    assert [(link.label, dict(parse_qsl(link.query_string))) for link in links] == [
        (there["text"], there),
        (":primary[Open in Explore]", there),
    ]
    assert re.search(r"“she” → “Anna” \(0\.3\d\d\), right", page.said.replace("\\", ""))


def test_whoever_stops_the_reading_of_the_sentences_can_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "get_visitor", lambda: "ann")
    jobs.get_queue("pointers").results.shrink()
    with get_model_service()._reader._lock:  # no batch is answered meanwhile
        job = studies_room.make_pointers_task(catalog.resolve("minilm")).begin()
        until(lambda: job.has_begun)
        job.cancel()
    page = numbers(head="L3H1")
    assert "You stopped reading the built-in sentences." in page.said
    assert "In the built-in sentences it is right in" not in page.said
    press(page, "read_sentences")
    assert "In the built-in sentences it is right in" in page.said


def test_a_head_without_a_role_says_so() -> None:
    none = next(
        head
        for head in load_bundled("minilm").profiles[0].heads()
        if head not in {f.head for f in load_bundled_roles("minilm")}
    )
    page_text = visit(head=str(none)).said
    assert "No role was found for this head." in page_text
    assert _on_all_text(none) in page_text


def test_a_head_with_a_role_has_its_recipe_on_its_card_too() -> None:
    page_text = visit(head="L3H1").said
    assert "No role was found" not in page_text
    assert _on_all_text(Head(3, 1)) in page_text


def _on_all_text(head: Head) -> str:
    recipe = next(of.describe(simplify_rule) for of in list_head_recipes("minilm", "") if of.head == head)
    return f"A{escape_markdown(recipe).removeprefix('a')}."


@pytest.mark.parametrize("model", ["minilm", "toy"])
def test_what_heads_find_their_keys_by_adds_up(model: str) -> None:
    evidence = load_bundled(model)
    assert evidence is not None
    each = [keys.words.replace("−", "-") for keys in load_head_shares(evidence.table(WHY)).values()]
    assert {abs(100 - sum(map(int, re.findall(r"(-?\d+)%", words)))) for words in each} <= {0, 1}
    assert any("constants" in words and "-" in words for words in each) == (model == "minilm")


def test_a_card_shows_its_example_in_a_sentence_where_there_is_one() -> None:
    drawn = [link.proto.label for link in visit(head="L2H7").at.get("page_link")]
    assert not {"Davis", "David ,"} & {*drawn}
    assert max(len(words.split()) for words in drawn) >= 4


def test_a_square_says_what_its_head_does_on_all_text_too() -> None:
    (drawn,) = [html.proto.body for html in visit().at.get("html") if 'class="mha-map"' in html.proto.body]
    (square,) = re.findall(r'aria-label="L3H1 \(4-2\): ([^"]*)"', drawn)
    assert square.startswith("pronoun → what it refers to, right in 66%; ")
    recipe = next(of.describe(simplify_rule) for of in list_head_recipes("minilm", "") if str(of.head) == "L3H1")
    assert f"; on average it {recipe}; attention depends on " in unescape(square)


@pytest.mark.parametrize("odd", [{"corpus": "nowhere"}, {"kinds": "verbs"}, {"level": "high"}], ids=str)
def test_a_part_of_a_link_that_the_page_cannot_use_is_said(odd: dict[str, str]) -> None:
    page = visit(**odd, step="x", order="backwards")  # the last are of other pages
    (said,) = [f"{name}={value}" for name, value in odd.items()]
    assert f"Ignored in this link: {said}." in page.said
    assert page.said.count("Ignored in this link") == 1


def test_a_head_that_the_model_does_not_have_is_said() -> None:
    page = visit(head="L9H99")
    assert "L9H99 does not exist: the heads are L0H0 to L5H11." in page.said
    assert "in full" not in page.said


def test_relations_are_found_by_plain_words() -> None:
    page = visit(relation="subject")
    shown = next(table.value for table in page.at.dataframe if "in words" in table.value and "best head" in table.value)
    assert "nsubj" in set(shown["relation"])
    assert "subject → its verb" in set(shown["in words"])


def tables_at_a_glance(page: PageSession) -> list[str]:
    return [html.proto.body for html in page.at.get("html") if html.proto.body.startswith('<table class="mha-rows">')]


def test_tables_begin_with_three_columns_in_plain_words() -> None:
    page = numbers(head="L1H0", tray="[]")
    *_, relations, mentions = tables_at_a_glance(page)
    assert re.findall("<th>(.*?)</th>", relations) == ["Relation", "Best head", "Right"]
    (line,) = [row for row in relations.split("<tr>") if "subject → its verb (nsubj)" in row]
    assert '<a href="?tray=%5B%5D&amp;head=L2H8" target="_self">L2H8 (3-9)</a>' in line
    assert "best fixed offset 33.8%, rule by parts of speech 81.5%, best untrained head 9.5%" in line
    assert '<i style="width:58.4%"></i>' in line
    assert "<b>58.4%</b>" in line
    assert "nearest mention" in mentions
    assert {"All numbers of the relations", "All numbers of coreference"} <= {box.label for box in page.at.expander}


@pytest.mark.parametrize(
    ("table", "column"), [("roles", "head"), ("relations", "best head"), ("coreference", "best head")]
)
def test_the_box_before_a_row_of_all_numbers_opens_its_head_at_every_click(table: str, column: str) -> None:
    page = numbers(relation="mod")
    heads = [named.split()[0] for named in drawn_as(page, table).value[column]]
    for rows, head in (([2], heads[2]), ([], heads[2]), ([0], heads[0])):  # the second click empties the box
        page.at.query_params.pop("head", None)
        page.forge(drawn_as(page, table).proto.id, string_value=json.dumps({"selection": {"rows": rows}}))
        page.check()
        assert page.url == {"relation": "mod", "head": head}
    for odd in ([len(heads)], [-1], ["x"], [None], [[0]]):
        page.forge(drawn_as(page, table).proto.id, string_value=json.dumps({"selection": {"rows": odd}}))
        page.check()
        assert page.url["head"] == heads[0]


def drawn_as(page: PageSession, table: str) -> Any:
    return next(one for one in page.at.dataframe if one.proto.id.endswith(f"-rows_{table}"))


def test_two_models_are_compared_by_bars_and_all_their_numbers_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {"minilm": load_bundled("toy").profiles[0]}  # the same numbers under another name
    monkeypatch.setattr(relations, "_find_profile", lambda model, _: measured.get(model.name))
    page = numbers(model="toy")
    (table,) = [one for one in tables_at_a_glance(page) if "the best head of minilm" in one]
    assert "Bar: the best head of toy" in table
    assert table.count("<th>") == 3
    assert "the best head of minilm " in re.findall("<span>(.*?)</span>", table)[-1]
    count = len(page.at.dataframe)
    page.at.toggle(key="numbers_of_both").set_value(True).run()
    page.check()
    assert len(page.at.dataframe) == count + 1


def test_relations_that_were_uploaded_are_never_markup() -> None:
    row = ScoreRow("<b>x</b>", Head(0, 0), 0.5, (math.nan, 0.25))
    line = score_rows._write_line(row, ("<i>", "rule"), {"text": '"><script>'})
    assert "<script" not in line
    assert "<b>x" not in line
    assert "rule 25.0%" in line
    assert line.count("<s ") == 1  # no tick for what was not measured


def test_the_label_of_a_cell_is_what_people_look_for() -> None:
    roles = load_bundled("minilm").findings()
    drawn = plotly(draw_role_map(roles, list_heads(range(6), 12), None, LIGHT)).data[-1]
    assert "pronoun → what it refers to, as “she” → “Anna” in" in drawn.hovertext[2 * 12 + 4].replace("<br>", " ")
    cells = [*map(unescape, drawn.text)]
    assert cells[2 * 12 + 4] == "coref<br>= +1"  # and not [CLS], to which it gives more of its attention
    assert cells[2 * 12 + 8].startswith("case<br>< +")
    assert cells[0 * 12 + 2] == "prev"
    named = {
        series.name for series in draw_role_map(roles, list_heads(range(6), 12), None, LIGHT).series if series.name
    }
    assert {"= equals the rule", "< below the rule"} <= {*map(unescape, named)}
    assert not any("beats" in name for name in named), "no head does"
    assert max(len(line) for cell in cells for line in cell.split("<br>")) <= 6  # fits on a phone


def test_the_map_to_download_marks_the_heads_that_are_needed() -> None:
    chart = draw_role_map([], list_heads(range(2), 4), None, LIGHT, needed=[Head(1, 3), Head(0, 0)])
    (needed,) = [series for series in plotly(chart).data if series.name == "needed for sentence pairs"]
    assert [(round(x), round(y)) for x, y in zip(needed.x, needed.y, strict=True)] == [(3, 1), (0, 0)]


def test_sentences_begin_with_a_relation_that_has_some() -> None:
    for head in ("L2H4", "L1H5", "L5H0"):
        assert "The built-in sentences have no case" not in numbers(head=head).said


def test_only_chosen_roles_are_listed() -> None:
    page = numbers(kinds="position")
    assert {name for name, says in squares(page).items() if "no role" not in says} == {"L0H2", "L1H8"}
    every = next(table for table in tables_at_a_glance(page) if "best simple rule" in table)
    assert every.count("<tr>") == 4  # with two headings
    assert "head=L0H2" in every


def test_relations_are_filtered_by_what_is_typed() -> None:
    page = numbers()
    page.at.text_input(key="relation").set_value("mod").run()
    table = next(t.value for t in page.at.dataframe if "parts of speech" in t.value.columns)
    assert len(table)
    assert all("mod" in relation for relation in table["relation"])
    page.at.text_input(key="relation").set_value("(*[").run()
    page.check()
    assert "No relation that matches “(*[” has" in page.said


# What somebody searches for, by a link or by a control, and the clicks that write the URL afterwards.
LOOKED_FOR: dict[str, Callable[[], PageSession]] = {
    "a head in a link": lambda: visit(head="L3H1"),
    "a kind in a link": lambda: visit(kinds="syntax"),
    "a relation that was typed": lambda: typed("relation", "mod"),
    "a level in a link": lambda: visit(level="full"),
    "all of a link": lambda: visit(head="L3H1", kinds="syntax", level="full", relation="mod"),
    "all that was typed and chosen": lambda: typed("relation", "mod", kinds="syntax"),
}


def typed(key: str, text: str, **url: str) -> PageSession:
    page = numbers(**url)
    page.at.text_input(key=key).set_value(text).run()
    page.check()
    return page


@pytest.mark.parametrize(
    "looked_for",
    lanes.some(list(LOOKED_FOR), "all of a link", "all that was typed and chosen"),
)
def test_a_click_after_a_filter_works_and_keeps_the_filter(looked_for: str) -> None:
    page = LOOKED_FOR[looked_for]()
    before = page.url
    assert before, "the URL says what is looked for"
    page.at.segmented_control(key="roles_corpus").set_value("file").run()
    page.check()
    assert page.url == {**before, "corpus": "file"}


def test_a_square_opens_the_card_of_its_head_in_place_and_a_kind_is_shown_alone() -> None:
    page = visit()
    page.send("mha_scheme", "linked", {"kinds": "syntax"})
    assert page.url == {"kinds": "syntax"}
    page.send("mha_scheme", "linked", {"head": "L3H1"})
    assert page.url == {"kinds": "syntax", "head": "L3H1"}
    assert "### L3H1 (4-2)" in page.said
    (link,) = [link.proto for link in page.at.get("page_link") if "Open in Explore" in link.proto.label]
    assert "case=L3H1.q3" in link.query_string  # a sentence in which it does it
    page.send("mha_scheme", "linked", {"kinds": ""})
    assert page.url == {"head": "L3H1"}


def test_another_model_is_chosen_while_a_relation_is_looked_for() -> None:
    page = visit(relation="mod", head="L1H0")
    page.at.selectbox(key="roles_model").set_value("toy").run()
    page.check()
    assert page.url == {"relation": "mod", "model": "toy"}


@pytest.mark.parametrize("kinds", [["position", "syntax"], "syntax.position.nonsense"])
def test_links_of_several_kinds_are_read_old_and_new(kinds: Any) -> None:
    named = [says for says in squares(visit(kinds=kinds)).values() if "no role" not in says]
    assert len(named) > 2
    others = ("→ [CLS]", "→ many tokens", "pronoun →")
    assert not [says for says in named if any(role in says for role in others)]


def test_controls_follow_the_url_back() -> None:
    page = numbers(kinds="syntax", relation="mod", level="full")
    page.at.query_params.clear()
    page.at.run()
    page.check()
    assert page.at.text_input(key="relation").value == ""
    assert page.at.segmented_control(key="level").value == "base"
    assert page.url == {}


def test_a_click_sent_before_the_url_changed_loses_nothing_that_was_typed() -> None:
    page = typed("relation", "mod")
    page.at.query_params.clear()  # the browser sends the next click before it receives the new URL
    page.at.segmented_control(key="level").set_value("full").run()
    page.check()
    assert page.url == {"relation": "mod", "level": "full"}


def test_no_parameter_of_the_url_has_a_second_master() -> None:
    sources = [
        path for path in Path(studies_room.__file__).parents[1].rglob("*.py") if "bind=" in path.read_text("utf-8")
    ]
    assert sources == []


@pytest.mark.usefixtures("in_process")
def test_a_model_that_was_not_measured_is_measured_on_demand(
    tiny_folder: Callable[[str], Path], empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, every = str(tiny_folder("bert")), load_built_in_corpus()
    get_model_service().ask(verbs.load, "toy").result()  # a process that began later would have few sentences for good
    monkeypatch.setattr(grammar, "corpus", lambda: replace(every, sentences=every.sentences[:60]))
    page = visit(model=name)
    assert "have not been measured on the built-in corpus yet" in page.said
    press(page, "measure")
    until(lambda: studies_room.find_profile(catalog.resolve(name), load_built_in_corpus().digest) is not None)
    page = numbers(model=name, head="L2H3")
    assert "What the 12 heads of" in page.said
    assert "L2H3 (3-4) in full" in page.said
    assert "Measured on the built\\-in sentences" in page.said
    assert list(empty_home.rglob("profile.json"))
    assert page.at.selectbox(key="other_model").options == ["toy"], "of the shipped profiles the one on this corpus"
    page.at.toggle(key="numbers_of_both").set_value(True).run()
    sides = {column.partition(":")[0] for t in page.at.dataframe for column in t.value if ": score" in column}
    assert sides == {name, "toy"}
    restart_server()  # the server starts again
    assert "What the 12 heads of" in visit(model=name).said


@pytest.mark.usefixtures("in_process")
def test_a_file_shows_which_roles_hold_on_it() -> None:
    toy = catalog.resolve("toy")
    assert "Do these roles hold on another corpus?" in [box.label for box in seen(model="toy").at.expander]
    corpus = uploads.parse_in_child(format_conllu(grammar.corpus(80, 5).sentences).encode(), "eighty.conllu")
    study = studies_room.start(toy, corpus)
    until(lambda: study.is_finished)
    assert study.error is None
    page = numbers(model="toy", corpus=corpus.digest)
    assert "Do the roles found on grammar hold here?" in page.said
    table = next(t.value for t in page.at.dataframe if "score there" in t.value.columns)
    evidence = load_bundled("toy")
    assert evidence is not None
    assert len(table) == len(evidence.findings())
    assert set(table.loc[table["role"].str.startswith("syntax: subject (nsubj)"), "outcome"]) == {"holds"}
    assert f"Of {len(table)} roles, holds: **" in page.said


@pytest.mark.parametrize(("documents", "marked"), [(1, True), (4, True), (5, False), (40, False)])
def test_every_table_with_an_interval_marks_few_documents(
    documents: int, marked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = load_bundled("minilm")
    assert evidence is not None
    few = [
        replace(profile, tables={name: _over(documents, table) for name, table in profile.tables.items()})
        for profile in evidence.profiles
    ]
    evidence = evidence._replace(profiles=tuple(few))
    monkeypatch.setattr(studies_room, "_read_bundled", lambda name: evidence)
    page = numbers(head="L3H1")
    intervals = [t.value for t in page.at.dataframe if {"low", "ci_low"} & set(t.value.columns)]
    assert len(intervals) >= 4
    for table in intervals:
        assert table["documents"].tolist() == [documents] * len(table)
        assert pd.api.types.is_numeric_dtype(table["documents"])
        assert (table.get("few", pd.Series("")) == "few documents").all() == marked, table.columns


def _over(documents: int, table: Any) -> Any:
    return table.assign(documents=documents) if "documents" in table else table


@pytest.mark.usefixtures("in_process")
def test_plain_text_has_no_relations_to_hold() -> None:
    corpus = uploads.parse_in_child(b"The cat sat on the mat.\n" * 20, "cats.txt")
    study = studies_room.start(catalog.resolve("toy"), corpus)
    until(lambda: study.is_finished)
    page = numbers(model="toy", corpus=corpus.digest)
    table = next(t.value for t in page.at.dataframe if "score there" in t.value.columns)
    assert set(table.loc[table["role"].str.startswith("syntax"), "outcome"]) == {"not annotated here"}


def test_every_role_says_how_far_it_can_be_trusted_and_what_its_head_does_to_the_rule() -> None:
    page = seen()
    listed = overview.tabulate_roles(load_bundled("minilm"), ())
    assert set(listed["status"]) == {"established", "suggested"}
    every = unescape(next(table for table in tables_at_a_glance(page) if "best simple rule" in table))
    assert every.count("<a ") == len(listed)
    for status, words in zip(listed["status"], listed["in words"], strict=True):
        assert f"{status[:1].upper()}{status[1:]}: " in every
        assert words.startswith(status)
    assert "syntax 27 roles on 11 heads (beats the rule 0, equals 1, below 26)" in every
    matched = re.findall(r", (?:below|equals) the rule(?: \(GUM \d+% < (\d+)%\))?<", every)
    assert len(matched) == listed["role"].isin(["syntax", "coreference"]).sum()
    assert [*filter(None, matched)] == ["74", "87"], "case and det of L2H8: EWT alone would deny that it is below"
    (numbers,) = [table.value for table in page.at.dataframe if "in words" in table.value and "role" in table.value]
    assert numbers["in words"].tolist() == listed["in words"].tolist()
    syntax = listed[listed["role"] == "syntax"]
    assert syntax["against the rule"].value_counts().to_dict() == {"below the rule": 26, "equals the rule": 1}
    assert listed.loc[listed["corpora"].str.contains("; "), "score on the other corpus"].notna().all()
    assert syntax[["rule on the other corpus", "choice", "nearest"]].notna().all(axis=None)
    assert syntax["in words"].str.contains(r"\. The nearest [a-z, ]+ to the (?:left|right): ").all()
    assert "nor that it holds elsewhere" in page.said


@pytest.mark.usefixtures("in_process")
def test_why_a_study_came_to_nothing_is_said(tiny_folder: Callable[[str], Path]) -> None:
    name = str(tiny_folder("bert"))
    page = visit(model=name, corpus="file")
    page.at.file_uploader(key="corpus_file").set_value(("long.txt", b"word " * 900, "text/plain")).run()
    press(page, "measure_file")
    until(lambda: studies_room.find_running(catalog.resolve(name), page.url["corpus"]) is None)
    page_text = visit(model=name, corpus=page.url["corpus"]).said
    assert "Nothing in an uploaded file can be read." in page_text
    assert "long" not in page_text
    assert "tokens" in page_text
    assert "any more" not in page_text


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("name", "data"),
    [
        (
            "gap.tsv",
            b"ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\n"
            b"1\tAnn met Bea and she left.\tshe\t16\tAnn\t0\tFALSE\tBea\t8\tFALSE\n",
        ),
        ("two.txt", b"Two words\n"),
    ],
    ids=["neither", "two words"],
)
def test_a_file_that_says_little_is_shown_for_what_it_is(
    tiny_folder: Callable[[str], Path], name: str, data: bytes
) -> None:
    model = catalog.resolve(str(tiny_folder("bert")))
    corpus = uploads.parse_in_child(data, name)
    study = studies_room.start(model, corpus)
    until(lambda: study.is_finished)
    page_text = visit(model=model.name, corpus=corpus.digest).said
    assert "could be scored" in page_text or "too few for position" in page_text


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("family", lanes.some(["gpt2", "albert"], "gpt2"))
def test_models_of_other_shapes_are_measured(tiny_folder: Callable[[str], Path], family: str) -> None:
    model = catalog.resolve(str(tiny_folder(family)))
    corpus = uploads.parse_in_child(format_conllu(grammar.corpus(8, 5).sentences).encode(), "eight.conllu")
    study = studies_room.start(model, corpus)
    until(lambda: study.is_finished)
    assert study.error is None
    page = numbers(model=model.name, corpus=corpus.digest, head="L2H3")
    assert "L2H3 (3-4) in full" in page.said


def test_back_changes_the_choice_and_the_page_together() -> None:
    page = visit(corpus="grammar")
    page.at.query_params.clear()
    page.at.run()
    assert page.at.segmented_control(key="roles_corpus").value == "gold"
    assert "UD English EWT" in page.said


@pytest.mark.usefixtures("in_process")
def test_a_study_that_everybody_left_stops_and_goes_on_later(
    tiny_folder: Callable[[str], Path], empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    who, usual = ["one"], studies_room.children.run

    def with_a_pause(
        module: str, order: Any, bounds: Any, progress: Callable[[float], None], *, cancelled: Callable[[], bool]
    ) -> Any:
        def told(so_far: float) -> None:
            progress(so_far)
            if so_far > 0:
                until(cancelled)  # it is not done before everybody has left

        return usual(module, order, bounds, told, cancelled=cancelled)

    monkeypatch.setattr(jobs, "get_visitor", lambda: who[0])
    model = catalog.resolve(str(tiny_folder("bert")))
    corpus = uploads.parse_in_child(format_conllu(grammar.corpus(60, 5).sentences).encode(), "sixty.conllu")
    restart_server()
    with monkeypatch.context() as paused:
        paused.setattr(studies_room.children, "run", with_a_pause)
        study = studies_room.start(model, corpus)
        who[0] = "other"
        assert studies_room.start(model, corpus) is study
        study.cancel()
        assert not study.is_stopped()
        who[0] = "one"
        until(lambda: study.fraction > 0)
        study.cancel()
        until(lambda: study.is_finished)
    assert isinstance(study.error, Cancelled)
    assert [path.name for path in empty_home.rglob("*.npz")], "what was done is kept"
    again = studies_room.start(model, corpus)
    until(lambda: again.is_finished)
    assert again.error is None
    assert studies_room.find_profile(model, corpus.digest) is not None
    assert not list(empty_home.rglob(".*"))


def test_between_stop_and_go_on_nothing_is_said_to_be_lost(
    tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, keep = Event(), Event()
    usual = studies_room.children.run

    def slow(module: str, order: Any, bounds: Any, progress: Any = print, *, cancelled: Callable[[], bool]) -> Any:
        if module != studies_room.CHILD_MODULE:
            return usual(module, order, bounds, progress, cancelled)
        asked.set()
        until(cancelled)
        assert keep.wait(PATIENCE)  # as long as the sums are being written
        raise Cancelled("The study was stopped.", "Finished parts are saved; start it again to continue.")

    monkeypatch.setattr(studies_room.children, "run", slow)
    page = visit(model=str(tiny_folder("bert")), corpus="file")
    uploaded(page, "dogs.conllu", CONLLU.encode() * 30)
    press(page, "measure_file")
    assert asked.wait(PATIENCE)
    press(page, "stop_study")
    assert "is being stopped" in page.said
    assert "no longer on this server" not in page.said
    keep.set()
    model, digest = catalog.resolve(str(tiny_folder("bert"))), page.url["corpus"]
    until(lambda: not studies_room.is_stopping(model, digest))
    page.at.run()
    assert "Finished parts are saved" in page.said
    assert page.at.button(key="go_on")


@pytest.mark.usefixtures("in_process")
def test_a_file_of_ones_own_is_measured_and_nobody_else_learns_its_name(
    tiny_folder: Callable[[str], Path], empty_home: Path
) -> None:
    name = str(tiny_folder("bert"))
    page = visit(model=name, corpus="file")
    uploaded(page, "Miller diagnosis.conllu", CONLLU.encode() * 30 + b"1\tgrieves\t_\tX\t_\t_\t7\tdep\t_\t_\n")
    assert "does not exist" in page.said
    press(page, "measure_file")
    digest = page.url["corpus"]
    until(lambda: studies_room.find_profile(catalog.resolve(name), digest) is not None)
    page.at.run()
    assert "Measured on Miller diagnosis\\.conllu (" in page.said
    other = visit(model=name, corpus=digest)
    assert "Measured on an uploaded file (31 sentences)" in other.said
    assert "Miller" not in other.said
    for path in (path for path in empty_home.rglob("*") if path.is_file()):
        assert "Miller" not in path.read_text()
        assert "grieves" not in path.read_text()


def uploaded(page: PageSession, name: str, data: bytes) -> None:
    """The visitor chooses a file."""
    page.at.file_uploader(key="corpus_file").set_value((name, data, "text/plain")).run()
    page.check()


def test_a_server_for_strangers_measures_so_many_words_and_one_study_a_visitor(
    tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = catalog.resolve(str(tiny_folder("bert")))
    large = StudyCorpus("large.txt", "0" * 64, studies_room.MAX_WORDS + 1, (), b"words")
    monkeypatch.setattr(studies_room.children, "run", waiting)
    monkeypatch.setattr(jobs, "get_visitor", lambda: "ann")
    restart_server()
    at_home = studies_room.start(model, large)
    monkeypatch.setenv(catalog.SETTING, f"minilm,{model.name}")
    with pytest.raises(CorpusError, match="This file has 100,001 words; this server measures at most 100,000"):
        studies_room.start(model, large)
    with pytest.raises(Busy, match=r"You already have a study running: .* on large\.txt"):
        studies_room.start(model, make_built_in_corpus())
    at_home.cancel()
    until(lambda: at_home.is_finished)


def test_words_of_an_upload_go_with_all_visitors_and_are_kept_of_accepted_orders_alone(
    tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = catalog.resolve(str(tiny_folder("bert")))
    first, second = (StudyCorpus(f"{n}.txt", str(n) * 64, 2, (), b"her diagnosis") for n in (1, 2))
    monkeypatch.setattr(studies_room.children, "run", waiting)
    monkeypatch.setattr(jobs, "get_visitor", lambda: "ann")
    restart_server()
    study = studies_room.start(model, first)
    with pytest.raises(Busy):
        studies_room.start(model, second)
    assert studies_room.find_measured_corpus(model, second.digest) is None
    assert studies_room.find_measured_corpus(model, first.digest)
    studies_room.get_server_state().measured_corpora.shrink()
    assert studies_room.find_measured_corpus(model, first.digest) is None
    study.cancel()
    until(lambda: study.is_finished)


@pytest.fixture
def everybody_goes(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """All visitors leave. The process with the models stays: another would import its libraries for seconds."""

    def leave() -> None:
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(get_model_service(), "_reader", Reader())
            empty_caches()

    return leave


@pytest.mark.usefixtures("in_process")
def test_a_profile_is_read_from_the_disk_again_after_all_have_gone(
    tiny_folder: Callable[[str], Path], everybody_goes: Callable[[], None]
) -> None:
    model, corpus = (
        catalog.resolve(str(tiny_folder("bert"))),
        uploads.parse_in_child(CONLLU.encode() * 30, "dogs.conllu"),
    )
    study = studies_room.start(model, corpus)
    until(lambda: study.is_finished)
    before = studies_room.find_profile(model, corpus.digest)
    everybody_goes()
    assert jobs.get_queue("study").results.bytes == studies_room.get_server_state().measured_corpora.bytes == 0
    after = studies_room.find_profile(model, corpus.digest)
    assert before is not None
    assert after is not None
    assert after.facts == before.facts


def test_where_heads_point_is_kept_within_its_bound_and_given_back(
    everybody_goes: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    restart_server()
    monkeypatch.setattr(studies_room, "read_pointers", EVERY_SENTENCE)
    model = catalog.resolve("toy")
    job = studies_room.make_pointers_task(model).begin()
    until(lambda: looked_at(job).is_finished)
    pointers = studies_room.make_pointers_task(model).find_result()
    assert pointers is not None
    assert len(pointers) == len(load_built_in_corpus().sentences)
    assert pointers[-1] is not None
    assert jobs.get_queue("pointers").results.bytes > 0
    everybody_goes()
    assert studies_room.make_pointers_task(model).find_result() is None
    assert jobs.get_queue("pointers").results.bytes == 0


def test_reading_the_built_in_sentences_can_be_stopped_and_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    restart_server()
    model = catalog.resolve("toy")
    monkeypatch.setattr(studies_room, "read_pointers", EVERY_SENTENCE)
    monkeypatch.setattr(jobs, "get_visitor", lambda: "ann")
    with get_model_service()._reader._lock:  # no batch is answered meanwhile
        job = studies_room.make_pointers_task(model).begin()
        until(lambda: job.has_begun)
        job.cancel()
    until(lambda: job.is_finished)
    assert isinstance(job.error, Cancelled)
    assert studies_room.make_pointers_task(model).find_result() is None
    assert studies_room.make_pointers_task(model).is_cancelled
    again = studies_room.make_pointers_task(model).begin()
    assert not studies_room.make_pointers_task(model).is_cancelled
    until(lambda: looked_at(again).is_finished)
    assert studies_room.make_pointers_task(model).find_result()


def looked_at(job: Job) -> Job:
    """A visitor is still waiting for it."""
    job.heartbeat()
    return job


def waiting(*_: Any, cancelled: Callable[[], bool], **__: Any) -> bytes:
    """Stands in for a child process that continues until nobody waits."""
    until(cancelled)
    raise Cancelled("The study was stopped.", "Start it again.")


def test_a_study_for_strangers_is_bounded_and_ones_own_is_not(
    tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_folder("bert")
    at_home = studies_room._make_bounds(folder)
    assert (at_home.seconds, at_home.megabytes, at_home.threads) == (math.inf, 0, 0)
    assert jobs.KINDS["study"].get_timeout() == 600
    monkeypatch.setenv(catalog.SETTING, "minilm")
    bounds = studies_room._make_bounds(folder)
    assert bounds.seconds == 600
    assert 3_000 <= bounds.megabytes < 4_000
    assert bounds.threads == max(1, (os.cpu_count() or 1) // 2)
    assert jobs.KINDS["study"].get_timeout() == 75


def test_the_bundled_model_is_measured_within_the_bounds_of_a_server_for_strangers(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(catalog.SETTING, "minilm")
    model, source = catalog.resolve("minilm"), uploads.parse_in_child(CONLLU.encode() * 30, "dogs.conllu")
    study = studies_room.start(model, source)
    until(lambda: looked_at(study).is_finished)
    assert study.error is None
    assert studies_room.find_profile(model, source.digest) is not None


def test_a_study_that_nobody_looks_at_stops(
    tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies_room.children, "run", waiting)
    restart_server()
    rules = jobs.KINDS["study"]._replace(local_timeout_s=0.2)
    monkeypatch.setattr(jobs, "KINDS", {**jobs.KINDS, "study": rules})
    study = studies_room.start(catalog.resolve(str(tiny_folder("bert"))), make_built_in_corpus())
    until(lambda: study.is_finished)
    assert isinstance(study.error, Cancelled)


def test_a_file_is_read_once_whatever_else_is_clicked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, usual = [], uploads.parse_in_child

    def read(*args: Any) -> StudyCorpus:
        asked.append(args)
        return usual(*args)

    monkeypatch.setattr(uploads, "parse_in_child", read)
    for data in (CONLLU.encode(), b"\xff\xfe\x00"):
        asked.clear()
        page = visit(corpus="file")
        uploaded(page, "dogs.conllu", data)
        page.at.run()
        page.at.run()
        assert len(asked) == 1
        assert ("not UTF-8" in page.said) is (data != CONLLU.encode())


def test_a_file_that_cannot_be_read_is_answered_in_place() -> None:
    page = visit(corpus="file")
    for data, message in (
        (b"", "is empty"),
        (b"1\tDogs\tdog\n1\tDogs\tdog\tNOUN\t_\t_\t0\troot\t_\t_\n", "line 1"),
    ):
        uploaded(page, "bad.conllu", data)
        assert message in page.said


SHORT = [name for name, text in hostile.KINDS.items() if 0 < len(text) < 300]


@pytest.mark.parametrize("name", lanes.some(SHORT, "high surrogate alone", "right-to-left override", "closing script"))
def test_odd_parameters_are_survived(name: str) -> None:
    odd = clean(hostile.KINDS[name])
    page = visit(corpus=odd, head=odd, relation=odd)
    assert "What the 72 heads" in page.said


def test_a_model_is_compared_only_with_those_measured_on_the_same_corpus() -> None:
    assert "No other model has been measured on this corpus yet" in seen().said
    toy = seen(model="toy")
    assert "No other model has been measured on this corpus yet" in toy.said
    assert toy.at.segmented_control(key="roles_corpus").options == ["built-in", "your file"]
    assert "and how hard they are" in " ".join(box.label for box in toy.at.expander)


def test_a_profile_that_the_server_lost_says_so() -> None:
    assert "no longer on this server" in visit(corpus="0" * 64).said


def test_the_given_profiles_are_of_the_model_that_comes_with_the_app(minilm: Any) -> None:
    evidence = load_bundled("minilm")
    assert evidence is not None
    assert len(evidence.profiles) == len([name for name in BUNDLED_CORPORA if name not in BUILT_IN])
    for profile in evidence.profiles:
        assert (profile.facts["model"], profile.facts["revision"]) == ("minilm", minilm.revision)
        assert profile.shape == (minilm.layers, minilm.heads)
    assert load_bundled_roles("minilm") == evidence.findings() or repr(load_bundled_roles("minilm")) == repr(
        evidence.findings()
    )
    assert load_bundled("../minilm") is None


def test_every_role_has_words_of_its_own() -> None:
    sentences = {(finding.head, describe_evidence(finding)) for finding in load_bundled_roles("minilm")}
    assert len(sentences) == len(load_bundled_roles("minilm"))
    assert all("nan" not in words for _, words in sentences)
    assert Head(0, 2) in {f.head for f in load_bundled_roles("minilm") if f.detail == "previous"}


def test_the_toy_wears_the_roles_that_its_profile_found() -> None:
    roles = studies_room.summarise(catalog.resolve("toy")).roles
    evidence = load_bundled("toy")
    assert evidence is not None
    assert repr(roles) == repr(evidence.findings())
    assert {"syntax", "coreference", "position"} <= {finding.role for finding in roles}


def test_two_models_are_compared_where_both_point_in_the_same_direction() -> None:
    first, second = (pd.read_csv(f"assets/profiles/minilm/{name}/syntax_chosen.csv") for name in ("ewt", "gum"))
    joined = relations._join_best_heads(first, second, "A", "B")
    rows = [first.set_index(["level", "relation"]), second.set_index(["level", "relation"])]
    assert rows[0].loc[("base", "cop"), "direction"] != rows[1].loc[("base", "cop"), "direction"]
    assert not joined["relation"].str.contains("(cop)", regex=False).any()
    assert joined["relation"].is_unique
    assert joined[["A: n", "B: n"]].min().min() >= 20
    assert len(joined) > 15


def test_the_answer_for_a_dependent_is_the_word_that_looks_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = load_built_in_corpus().sentences[0]
    wrong = [Arc(word, len(sentence.words) - 1, (0,), "nsubj") for word in range(1, 5)]
    captions: list[str] = []
    monkeypatch.setattr(head_card.st, "caption", captions.append)
    monkeypatch.setattr(head_card.st, "markdown", lambda text: None)
    monkeypatch.setattr(head_card.role_sentences, "show_link", lambda *_: None)
    head_card._show_sentences("Wrong", [SentenceAnswers(0, wrong)], Head(0, 0), "nsubj.head_to_dep")
    forms = sentence.forms
    assert captions[0] == escape_markdown(f"“{forms[1]}” ← “{forms[-1]}”, correct: “{forms[0]}”")
    assert (len(captions), captions[-1]) == (4, "and 1 more wrong")
