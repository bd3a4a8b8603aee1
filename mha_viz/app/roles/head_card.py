"""The card of a head: its roles, measurements, and the sentences in which it is right most and least often."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from math import isnan
from typing import Any, Literal, NamedTuple

import streamlit as st

from mha_viz.analysis.bundled_data import HeadRecipe, find_recipes
from mha_viz.analysis.chance import SYNTAX
from mha_viz.analysis.corpus_why import WHY
from mha_viz.analysis.findings import DOCUMENTS, EVERY, Finding
from mha_viz.analysis.needs import find_needs
from mha_viz.analysis.pairs import NEEDED
from mha_viz.analysis.rules import RULES
from mha_viz.analysis.syntax import Arc, Pointers, list_arcs
from mha_viz.app.roles import link_groups, link_search, role_sentences, role_use, score_rows
from mha_viz.app.roles.overview import identify_weights, load_recipes, show_key_shares, show_role_lines
from mha_viz.app.roles.relations import INTERVAL_HELP
from mha_viz.app.roles.score_rows import ScoreRow
from mha_viz.app.service import role_cases, studies
from mha_viz.app.service.studies import Evidence
from mha_viz.app.url import address
from mha_viz.app.url.address import CaseInLink
from mha_viz.app.url.annotated_texts import load_built_in_corpus
from mha_viz.app.widgets import navigation
from mha_viz.app.widgets.classroom import draw_legible
from mha_viz.app.widgets.parts import PERCENT, escape_markdown, get_theme, show_error, show_remark, to_percentages
from mha_viz.app.widgets.study_progress import load_result, start_task
from mha_viz.attention import Head
from mha_viz.corpus.limits import name_sample
from mha_viz.errors import MhaVizError
from mha_viz.figures.charts.plotly_settings import CONFIG
from mha_viz.figures.charts.role_map import draw_offsets, draw_shares
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.words.glosses import describe_link, label_link, label_relation, simplify_rule
from mha_viz.figures.words.need_words import describe_need, explain_need
from mha_viz.figures.words.report_columns import capitalise
from mha_viz.figures.words.role_words import DIRECTIONS, group_by_head
from mha_viz.figures.words.use_words import describe_unused, is_used
from mha_viz.models.getting import catalog
from mha_viz.numerals import percent

MAX_RELATIONS = 8  # maximum relations in the table
MAX_SENTENCES = 4  # maximum sentences for, and against
MAX_WRONG = 3  # maximum wrong answers listed per sentence
BASELINES = {"best fixed offset": "offset", "rule by parts of speech": "pos", "best untrained head": "untrained"}
DELIMITERS = {"cls": "[CLS]", "sep": "[SEP]", "both": "both", "punctuation": "punctuation"}


class SentenceAnswers(NamedTuple):
    """A built-in sentence and the head's answers for one relation in it."""

    number: int
    arcs: tuple[Arc, ...]

    @property
    def right_count(self) -> int:
        """The number of right answers."""
        return sum(arc.is_right for arc in self.arcs)


def show_head_card(model: catalog.Model, evidence: Evidence, head: Head) -> None:
    """Show a head's roles, whether the model uses them, what needs the head, an example, and a link to Explore."""
    with st.container(key="head_card"):
        st.markdown(f"### {format_head(head)}")
        findings = group_by_head(evidence.findings()).get(head, [])
        if not findings:
            st.markdown("No role was found for this head.")
        effects = _select_rows(evidence, "used", head)
        tested_roles = [] if effects is None else [row for row in effects.itertuples() if is_used(row.used) is not None]
        roles_in_use = [row for row in tested_roles if is_used(row.used)]
        show_role_lines(findings, {row.detail: row.measure for row in roles_in_use})
        recipe = load_recipes(evidence).get(head)
        if recipe:
            explanation = _explain_missing_relation(evidence, recipe, findings)
            st.markdown(f"{capitalise(escape_markdown(recipe.describe(simplify_rule)))}.{explanation}")
        show_key_shares(evidence, head)
        if tested_roles and not roles_in_use:
            details = [row.detail for row in tested_roles]
            relation_names = (
                f"{len(details)} relations" if len(details) > 1 else describe_link(details[0]).partition(",")[0]
            )
            st.caption(describe_unused(escape_markdown(relation_names), tested_roles[0].measure))
        need = find_needs(evidence.table(NEEDED)).get(head)
        if need is not None:
            st.markdown(escape_markdown(describe_need(need)), help=escape_markdown(explain_need(need)))
        case = None
        if findings:
            cases, _ = role_sentences.list_readable_cases(model, evidence, head)
            case = role_cases.find_right_case(model, evidence, head, cases)
            role_sentences.show_right_case(case)
        parameters = {k: v for k, v in address.get_parameters().items() if k not in ("head", "on", "pin", "corpus")}
        has_sentence = "text" in parameters  # if the visitor chose none, the link opens one in which the head is right
        head_parameters = (
            {"head": str(head)} if has_sentence or case is None else case.parameters or {"head": str(head)}
        )
        explore = navigation.find_page("explore")
        st.page_link(explore, label=":primary[Open in Explore]", query_params={**parameters, **head_parameters})


def _explain_missing_relation(evidence: Evidence, recipe: HeadRecipe, findings: Iterable[Finding]) -> str:
    """Explain why the recipe of a head with a syntactic role has no syntactic rule.

    For example " Its relations concern few words (≤ 8.3%)."; empty if it needs no explanation.
    """
    relations, profile = (
        {finding.detail for finding in findings if finding.role == SYNTAX},
        evidence.find_profile("syntax"),
    )
    if not relations or profile is None or any(RULES[part.rule].kind == SYNTAX for part in recipe.parts):
        return ""
    table = profile.tables["syntax"]
    cases = table.loc[(table["relation"] + " " + table["direction"]).isin(relations), "n"].max()
    share = percent(cases / profile.facts["counts"]["words"])
    word_share = f"few words (≤\N{NO-BREAK SPACE}{share})" if len(relations) > 1 else f"few words ({share})"
    return f" Its relation{'s concern' if len(relations) > 1 else ' concerns'} {word_share}."


def show_numbers(model: catalog.Model, evidence: Evidence, head: Head) -> None:
    """Show all measurements of a head: its patterns, its relations, and sentences for and against them."""
    with st.container(border=True, key="head_numbers"):
        st.markdown(f"### {format_head(head)} in full")
        _show_patterns(evidence, head)
        _show_key_shares(evidence, head)
        _show_recipe_source(evidence, head)
        role_use.show_use(_select_rows(evidence, "used", head))
        role_sentences.show_sentences(model, evidence, head)
        link_groups.show_link_groups(model, evidence, head)
        link_search.show_link_search(model, evidence, head)
        relation = _show_relations(evidence, head)
        if relation is not None:
            _show_best_and_worst(model, head, evidence.profiles[0].heads().index(head), *relation)


def _show_patterns(evidence: Evidence, head: Head) -> None:
    """Show where the head looks, its weight on delimiters, and its entropy."""
    position, delimiter, entropy = (_select_rows(evidence, name, head) for name in ("position", "delimiter", "entropy"))
    if position is None or delimiter is None or entropy is None:
        return
    colours = get_theme()
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.markdown("**Where it looks**, in tokens from the token itself")
        chart = draw_offsets(
            position["mass"], position["share_of_maxima"], position["offset"].astype(int).tolist(), colours
        )
        alt = f"Where {format_head(head)} looks: its mean weight by distance, in tokens from the token itself."
        st.plotly_chart(draw_legible(chart), key="card_offsets", theme=None, config=CONFIG, alt=alt)
        previous_row = position[position["offset"] == -1].iloc[0]
        st.caption(
            f"Within a word: {percent(previous_row['rows_in_word'])} of the rows, "
            f"{percent(previous_row['mass_in_word'])} of the weight on the previous token."
        )
    with right:
        st.markdown("**Weight on delimiters**")
        values = delimiter.iloc[0][list(DELIMITERS)].astype(float).tolist()
        bars = draw_shares(tuple(DELIMITERS.values()), values, colours)
        alt = f"Weight of {format_head(head)} on delimiters."
        st.plotly_chart(draw_legible(bars), key="card_delimiters", theme=None, config=CONFIG, alt=alt)
    row, untrained_rows = entropy.iloc[0], select_head_rows(evidence.profiles[0].untrained.get("entropy"), head)
    comparison = "" if untrained_rows is None else f"; with random weights {untrained_rows.iloc[0]['normalised']:.2f}"
    st.markdown(f"Entropy **{row['nats']:.2f}** nats, **{row['normalised']:.2f}** of the largest possible{comparison}.")


def _show_key_shares(evidence: Evidence, head: Head) -> None:
    """Show what the head's scores depend on, as a table with intervals."""
    rows = _select_rows(evidence, WHY, head)
    if rows is not None:
        st.markdown(f"**Dependence of attention**, on {escape_markdown(name_sample(*rows[['corpus', EVERY]].iloc[0]))}")
        shares = ["share", "low", "high"]
        config = {name: st.column_config.NumberColumn(name, format=PERCENT) for name in shares}
        table = to_percentages(rows[["group", *shares, "sentences", "documents"]], dict.fromkeys(shares, ""))
        st.dataframe(table, hide_index=True, width="content", column_config=config)


def _show_recipe_source(evidence: Evidence, head: Head) -> None:
    """Show the sentences on which the head's recipe was chosen, and how similar a recipe from another corpus is."""
    recipe, bundled_recipes = load_recipes(evidence).get(head), find_recipes(*identify_weights(evidence))
    if recipe and bundled_recipes:
        overlap_note = "" if isnan(recipe.overlap) else f"; those of other text overlap by {percent(recipe.overlap, 0)}"
        st.markdown(f"**Rules chosen on** {escape_markdown(bundled_recipes.where)}{overlap_note}.")


def _select_rows(evidence: Evidence, name: str, head: Head) -> Any:
    return select_head_rows(evidence.table(name), head)


def select_head_rows(table: Any, head: Head) -> Any:
    """Return the rows of a table about one head; None if there are none."""
    if table is None:
        return None
    rows = table[(table["layer"] == head.layer) & (table["head"] == head.head)]
    return rows if len(rows) else None


def _show_relations(evidence: Evidence, head: Head) -> tuple[str, str] | None:
    """Show the head's best relations as a table; return the relation that is chosen for the sentences below."""
    syntax, baselines = _select_rows(evidence, "syntax", head), evidence.table("syntax_baselines")
    if syntax is None or baselines is None:
        return None
    keys = ["level", "relation", "direction"]
    rules = baselines.pivot(index=keys, columns="baseline", values="accuracy").reset_index()
    table = syntax.merge(rules, on=keys)
    table = table[(table["level"] != "full") & (table["n"] >= 20)]
    table = table.assign(gain=table["accuracy"] - table["offset"])
    table = table.sort_values("gain", ascending=False).drop_duplicates("relation").head(MAX_RELATIONS)
    if not len(table):
        return None
    st.markdown("**Relations it comes closest to**, over all sentences, with simple rules")
    _show_scores(table)
    _show_all_numbers(table)
    return _choose_relation(head, zip(table["relation"], table["direction"], strict=True))


def _show_scores(table: Any) -> None:
    rules = {name: column for name, column in BASELINES.items() if column in table}
    rows = [
        ScoreRow(
            label_link(f"{row['relation']} {row['direction']}"),
            DIRECTIONS[row["direction"]],
            float(row["accuracy"]),
            tuple(row[list(rules.values())]),
        )
        for _, row in table.iterrows()
    ]
    score_rows.draw_rows("Relation", rules, rows, second_heading="Direction", bar_owner="this head")


def _show_all_numbers(table: Any) -> None:
    labels = {
        "accuracy": "right",
        "ci_low": "low",
        "ci_high": "high",
        "offset": "offset",
        "pos": "parts of speech",
        "untrained": "untrained",
        "gain": "gain",
    }
    columns = {name: label for name, label in labels.items() if name in table}
    config = {
        name: st.column_config.NumberColumn(
            label, format=PERCENT, help=INTERVAL_HELP if name.startswith("ci_") else None
        )
        for name, label in columns.items()
    }
    counts = [name for name in ("n", DOCUMENTS) if name in table]
    percentages = to_percentages(table[["relation", "direction", *columns, *counts]], columns).assign(
        relation=table["relation"].map(label_relation), direction=table["direction"].map(DIRECTIONS)
    )
    with st.expander("All numbers of these relations"):
        st.dataframe(percentages, hide_index=True, width="stretch", column_config=config)


def _choose_relation(head: Head, relations: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
    """Return the chosen relation and direction among those with sentences; None if none has any."""
    options = [pair for pair in relations if _has_sentences(pair[0])]
    if not options:
        return None
    choice = st.selectbox(
        "Sentences for the relation",
        options,
        key=f"card_relation_{head}",
        format_func=lambda pair: f"{label_relation(pair[0])}, {DIRECTIONS[pair[1]]}",
    )
    return (str(choice[0]), str(choice[1])) if choice else None


def _has_sentences(relation: str) -> bool:
    return relation.startswith("all") or relation in _list_built_in_relations()


@cache
def _list_built_in_relations() -> frozenset[str]:
    return frozenset(word.base for sentence in load_built_in_corpus().sentences for word in sentence.words)


def _show_best_and_worst(model: catalog.Model, head: Head, index: int, relation: str, direction: str) -> None:
    """Show the built-in sentences in which the head, number ``index`` of all, is right most and least often."""
    try:
        pointers = _load_pointers(model)
    except MhaVizError as error:
        show_error(error)
        return
    if pointers is None:
        return
    name = relation if relation != "all without punct" else "all"
    cases = [
        SentenceAnswers(number, links)
        for number, (sentence, sentence_pointers) in enumerate(
            zip(load_built_in_corpus().sentences, pointers, strict=True)
        )
        if sentence_pointers is not None and (links := list_arcs(sentence, sentence_pointers, index, name, direction))
    ]
    if not cases:
        st.markdown(f"The built-in sentences have no case of {escape_markdown(relation)}.")
        return
    right_count, case_count = sum(case.right_count for case in cases), sum(len(case.arcs) for case in cases)
    st.markdown(f"In the built-in sentences it is right in **{right_count}** of **{case_count}** cases.")
    best_first = sorted(cases, key=lambda c: (c.right_count / len(c.arcs), len(c.arcs)), reverse=True)
    left, right = st.columns(2, gap="large")
    gold = f"{name}.{direction}"
    with left:
        _show_sentences(
            "Most often right", [case for case in best_first[:MAX_SENTENCES] if case.right_count], head, gold
        )
    with right:
        _show_sentences(
            "Least often right",
            [case for case in best_first[::-1][:MAX_SENTENCES] if case.right_count < len(case.arcs)],
            head,
            gold,
        )


def _load_pointers(model: catalog.Model) -> tuple[Pointers | None, ...] | None:
    """Return where every head points in the built-in sentences; None if the visitor has stopped reading them.

    Raises the model's errors, and Busy.
    """
    task = studies.make_pointers_task(model)
    if task.is_cancelled and task.find_result() is None:
        show_remark("You stopped reading the built-in sentences.")
        st.button("Continue", key="read_sentences", on_click=start_task, args=(task,))
        return None
    return load_result(task, "sentences")


def _show_sentences(title: str, sentences: Sequence[SentenceAnswers], head: Head, gold: str) -> None:
    """Show sentences as links. Each opens its first wrong case or, if none is wrong, a right one."""
    st.markdown(f"**{title}**")
    if not sentences:
        st.markdown("none")
    axis: Literal["q", "k"] = "k" if gold.endswith("head_to_dep") else "q"
    for answers in sentences:
        sentence = load_built_in_corpus().sentences[answers.number]
        wrong_arcs = [arc for arc in answers.arcs if not arc.is_right]
        case = CaseInLink(head, axis, (*wrong_arcs, *answers.arcs)[0].word)
        label = f"{' '.join(sentence.forms)}  ({answers.right_count} of {len(answers.arcs)})"
        role_sentences.show_link(label, role_cases.make_explore_parameters(sentence, case, gold))
        forms, sign = sentence.forms, "←" if axis == "k" else "→"  # a dependent is the key of its head
        for arc in wrong_arcs[:MAX_WRONG]:
            expected_words = " or ".join(forms[i] for i in arc.gold)
            st.caption(
                escape_markdown(f"“{forms[arc.word]}” {sign} “{forms[arc.answer]}”, correct: “{expected_words}”")
            )
        if len(wrong_arcs) > MAX_WRONG:
            st.caption(f"and {len(wrong_arcs) - MAX_WRONG} more wrong")
