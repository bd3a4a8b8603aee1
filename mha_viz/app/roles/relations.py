"""Tables of the Roles page: every relation with its best head and baselines, coreference, and two models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from types import MappingProxyType
from typing import Any

import streamlit as st

from mha_viz.analysis.findings import AGREEMENT_ODD, DOCUMENTS
from mha_viz.analysis.intervals import FEW
from mha_viz.analysis.profile import Profile
from mha_viz.analysis.syntax import OFFSETS, Relations, count_gold
from mha_viz.app.roles import filters, score_rows
from mha_viz.app.roles.score_rows import ScoreRow
from mha_viz.app.service import studies
from mha_viz.app.service.caches import cache_results
from mha_viz.app.service.studies import Evidence, load_bundled
from mha_viz.app.widgets.parts import PERCENT, escape_markdown, show_error, show_remark, to_percentages
from mha_viz.attention import Head
from mha_viz.corpus.treebank import Corpus
from mha_viz.errors import MhaVizError
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.words.glosses import describe_link, find_roles, label_link, label_relation
from mha_viz.figures.words.role_words import DIRECTIONS
from mha_viz.models.getting import catalog
from mha_viz.numerals import format_signed

MIN_CASES = 20  # minimum held-out cases of a listed relation
CACHED_TABLES = 16  # maximum cached tables: one per evidence and level
INTERVAL_HELP = "Wilson interval: cases of one document count as independent, too."
# The columns with shares, and their help texts.
SHARES = MappingProxyType(
    {
        "score": "Share of the held-out cases in which the head is right.",
        "low": f"Lower end of the 95% interval of the score. {INTERVAL_HELP}",
        "high": f"Upper end of the 95% interval of the score. {INTERVAL_HELP}",
        "score on the other half": "Its score on the half of the sentences that chose it: optimistic.",
        "offset": "The best fixed offset, such as “the head is the next word”.",
        "parts of speech": "The nearest word on one side with one of certain parts of speech; it knows the gold tags.",
        "untrained": "The best head with random weights.",
        "gain": "Score minus the best fixed offset.",
    }
)
# Descriptions of the mention kinds of ``analysis.coreference``.
MENTIONS = MappingProxyType(
    {
        "all": "every mention",
        "pronoun": "pronoun (it, this, who)",
        "third person": "third-person pronoun (it, she, they)",
        "proper": "name (Anna, Paris)",
        "nominal": "noun (the dog)",
        "gap": "he or she, after two names (GAP)",
    }
)


def show_relations(evidence: Evidence) -> None:
    """Show the tables of relations, coreference and GAP for which the corpus has gold annotation."""
    if evidence.table("syntax_chosen") is not None:
        _show_syntax(evidence)
    _show_coreference(evidence)


def _show_syntax(evidence: Evidence) -> None:
    profile = evidence.find_profile("syntax_chosen")
    st.markdown(f"## Dependency relations, on {escape_markdown(profile.corpus if profile else '')}")
    st.markdown("Measured on held-out sentences. The rule by parts of speech knows the gold annotation.")
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    filter_text, level = filters.show_relation_filter(left), filters.show_level_control(right)
    table = tabulate_relations(evidence, level)
    if filter_text:
        matching_relations = find_roles(filter_text)
        has_text = table["relation"].str.contains(filter_text, regex=False)
        table = table[has_text if has_text.any() else table["relation"].isin(matching_relations)]
    if not len(table):
        condition = f" that matches “{filter_text[:40]}”" if filter_text else ""
        show_remark(f"No relation{condition} has {MIN_CASES} held-out cases or more.")
        return
    columns = {
        "best fixed offset": "offset",
        "rule by parts of speech": "parts of speech",
        "best untrained head": "untrained",
    }
    score_rows.draw_rows("Relation", columns, _iter_rows(table, _label_rows(table), tuple(columns.values())))
    with st.expander("All numbers of the relations"):
        score_rows.show_all_numbers("relations", to_percentages(table, SHARES), _configure_columns())
    beaten_heads = table[table["better"] != "the head"]
    if len(beaten_heads):
        st.markdown(
            f"For **{len(beaten_heads)}** of {len(table)} relations a simple rule does at least as well as the "
            "best head."
        )


def _label_rows(table: Any) -> list[str]:
    """Return a label for each row, such as "its verb → subject (nsubj)"."""
    return [f"{link} ({relation})" for link, relation in zip(table["in words"], table["relation"], strict=True)]


@cache_results(CACHED_TABLES)
def tabulate_relations(evidence: Evidence, level: str) -> Any:
    """Return the relations of one level, largest gain first. Cached, so callers must not change the table."""
    import pandas as pd

    all_relations = evidence.table("syntax_chosen")
    level_relations = all_relations[(all_relations["level"] == level) & (all_relations["n_odd"] >= MIN_CASES)]
    # The columns are sorted from simple to complex, so that the simpler one wins a tie.
    rules = {
        "offset": level_relations["offset_odd"],
        "parts of speech": level_relations["upos_odd"],
        "the head": level_relations["accuracy_odd"],
    }
    table = pd.DataFrame(
        {
            "relation": level_relations["relation"],
            "in words": [
                describe_link(" ".join(pair))
                for pair in zip(level_relations["relation"], level_relations["direction"], strict=True)
            ],
            "best head": [
                format_head(Head(*pair)) for pair in zip(level_relations["layer"], level_relations["head"], strict=True)
            ],
            "direction": level_relations["direction"].map(DIRECTIONS),
            "score": level_relations["accuracy_odd"],
            "low": level_relations["ci_low"],
            "high": level_relations["ci_high"],
            "score on the other half": level_relations["accuracy_even"],
            "offset": level_relations["offset_odd"],
            "parts of speech": level_relations["upos_odd"],
            "untrained": level_relations["untrained_odd"],
            "gain": level_relations["accuracy_odd"] - level_relations["offset_odd"],
            "n": level_relations["n_odd"],
            "documents": level_relations.get(DOCUMENTS),
            "better": pd.DataFrame(rules).idxmax(axis=1),
        }
    )
    return table.sort_values("gain", ascending=False)


def _iter_rows(table: Any, labels: Iterable[str], baselines: tuple[str, ...]) -> Iterator[ScoreRow]:
    """Yield a ScoreRow for each row of a table that has the columns "best head", "score" and ``baselines``."""
    for label, (_, row) in zip(labels, table.iterrows(), strict=True):
        head = Head.parse(row["best head"].split()[0])
        yield ScoreRow(label, head, float(row["score"]), tuple(float(row[name]) for name in baselines))


def _configure_columns() -> dict[str, Any]:
    number = st.column_config.NumberColumn
    return {
        **{name: number(name, format=PERCENT, help=text) for name, text in SHARES.items()},
        "n": number("n", help="Held-out cases."),
        "documents": st.column_config.Column(
            "documents", help=f"Below {FEW}, the interval applies to these cases alone."
        ),
        "better": st.column_config.TextColumn("best of all", help="Whichever is right most often, head or rule."),
    }


def _show_coreference(evidence: Evidence) -> None:
    """Show every kind of mention, and GAP, from all profiles that measured them."""
    corpora = [p.corpus for p in list_coreference_profiles(evidence)]
    if not corpora:
        if any("gap" in p.tables for p in evidence.profiles):
            show_remark("No row of this table could be scored: in each, the pronoun refers to neither name.")
        return
    st.markdown(f"## Coreference, on {escape_markdown(' and '.join(corpora))}")
    st.markdown(
        "Right if, of all earlier mentions, the head looks most at one of the same person or thing; in GAP, if it "
        "looks more at the right one of the two names."
    )
    mentions = tabulate_mentions(evidence)
    numbers = ("score", "low", "high", "score on the other half", "nearest", "same form", "agreement", "untrained")
    columns = {
        name: st.column_config.NumberColumn(
            name, format=PERCENT, help=INTERVAL_HELP if name in ("low", "high") else None
        )
        for name in numbers
    }
    best_column = st.column_config.TextColumn("best of all", help="Whichever is right most often, head or rule.")
    names = {
        "nearest mention": "nearest",
        "same form": "same form",
        "nearest that agrees": "agreement",
        "best untrained head": "untrained",
    }
    score_rows.draw_rows(
        "Mention", names, _iter_rows(mentions, mentions["mention"].map(MENTIONS), tuple(names.values()))
    )
    with st.expander("All numbers of coreference"):
        score_rows.show_all_numbers(
            "coreference", to_percentages(mentions, numbers), {**columns, "better": best_column}
        )
    beaten_heads = mentions[mentions["better"] != "the head"]
    if len(beaten_heads):
        kind_list = "; ".join(MENTIONS[name] for name in beaten_heads["mention"])
        st.markdown(f"A simpler rule does at least as well as the best head for: {kind_list}.")


def list_coreference_profiles(evidence: Evidence) -> list[Profile]:
    """Return the profiles that measured coreference."""
    return [p for p in evidence.profiles if len(p.tables.get("coreference_chosen", ()))]


@cache_results(CACHED_TABLES)
def tabulate_mentions(evidence: Evidence) -> Any:
    """Return a table with one row per kind of mention. Cached, so callers must not change it."""
    import pandas as pd

    table = pd.concat([p.tables["coreference_chosen"] for p in list_coreference_profiles(evidence)], ignore_index=True)
    rules = {  # from simple to complex, so that the simpler rule wins a tie
        "nearest": table["nearest_odd"],
        "same form": table["same_form_odd"],
        "agreement": table[AGREEMENT_ODD].astype(float),
        "untrained": table["untrained_odd"],
        "the head": table["accuracy_odd"],
    }
    return pd.DataFrame(
        {
            "mention": table["mention_type"].str.replace("_", " "),
            "best head": [format_head(Head(*pair)) for pair in zip(table["layer"], table["head"], strict=True)],
            "score": table["accuracy_odd"],
            "low": table["ci_low"],
            "high": table["ci_high"],
            "score on the other half": table["accuracy_even"],
            **{name: values for name, values in rules.items() if name != "the head"},
            "n": table["n_odd"],
            "documents": table.get(DOCUMENTS),
            "better": pd.DataFrame(rules).fillna(-1).idxmax(axis=1),
        }
    )


# ---- Two models -----------------------------------------------------------------------------------------


def show_other_model(model: catalog.Model, evidence: Evidence) -> None:
    """Show the best heads of two models for every relation, if both were measured on the same corpus."""
    profile = evidence.find_profile("syntax_chosen") or evidence.profiles[0]
    models = [m for m in (*catalog.list_offered(), *_list_other_models(model)) if m.name != model.name]
    other_profiles = {m.name: other for m in models if (other := _find_profile(m, profile.facts["sha256"])) is not None}
    with st.expander("Compare with another model"):
        if not other_profiles:
            st.markdown(
                "No other model has been measured on this corpus yet. Choose one above, with the built-in corpus."
            )
            return
        name = st.selectbox("Other model", list(other_profiles), key="other_model")
        tables = [p.tables.get("syntax_chosen") for p in (profile, other_profiles[name])] if name else []
        if not name or any(table is None for table in tables):
            st.markdown("Models are compared by relation; this corpus has no dependencies.")
            return
        joined_table = _join_best_heads(tables[0], tables[1], model.name, name)
        if joined_table.empty:
            st.markdown("For no relation do the best heads of both models point in the same direction.")
            return
        st.markdown("Relations for which the best heads of both models point in the same direction.")
        rows = [
            ScoreRow(label, Head.parse(head.split()[0]), score, (other_score, offset))
            for label, head, score, offset, _, _, other_score, _, _ in joined_table.itertuples(index=False, name=None)
        ]
        ticks = (f"the best head of {name}", "best fixed offset")
        score_rows.draw_rows("Relation", ticks, rows, bar_owner=f"the best head of {model.name}")
        if st.toggle("All numbers of both models", key="numbers_of_both"):
            percentages = [column for column in joined_table.columns if column.endswith(("score", "offset"))]
            columns = {column: st.column_config.NumberColumn(column, format=PERCENT) for column in percentages}
            score_rows.show_all_numbers(
                "models", to_percentages(joined_table, percentages), columns, f"{model.name}: head"
            )


def _list_other_models(model: catalog.Model) -> list[catalog.Model]:
    """Add ``model`` to the models outside the catalogue whose roles were shown during this visit, and return these."""
    names = st.session_state.setdefault("roles_typed", [])
    if model.name not in names and model.name not in {m.name for m in catalog.list_offered()}:
        names.append(model.name)
    models = []
    for name in names:
        with suppress(MhaVizError):  # a folder that no longer exists
            models.append(catalog.resolve(name))
    return models


def _find_profile(model: catalog.Model, digest: str) -> Profile | None:
    """Return the profile of another model on the corpus with this digest."""
    bundled_evidence = load_bundled(model.name) if model.kind in ("bundled", "own") else None
    same_corpus_profiles = (
        [p for p in bundled_evidence.profiles if p.facts["sha256"] == digest] if bundled_evidence else []
    )
    try:
        return same_corpus_profiles[0] if same_corpus_profiles else studies.find_profile(model, digest)
    except MhaVizError as error:
        show_error(error)
        return None


def _join_best_heads(table: Any, other_table: Any, name: str, other_name: str) -> Any:
    """Return the best heads of two models, one row per relation for which both are best in the same direction.

    A row has both heads' held-out scores and cases, and the best fixed offset.
    """
    import pandas as pd

    joined_table = table.merge(other_table, on=["level", "relation", "direction"], suffixes=("_1", "_2"))
    has_enough = joined_table[["n_odd_1", "n_odd_2"]].min(axis=1) >= MIN_CASES
    joined_table = joined_table[(joined_table["level"] == "base") & has_enough]
    columns = {"relation": [*map(label_link, joined_table["relation"] + " " + joined_table["direction"])]}
    for number, model in (("1", name), ("2", other_name)):
        pairs = zip(joined_table[f"layer_{number}"], joined_table[f"head_{number}"], strict=True)
        columns[f"{model}: head"] = [format_head(Head(*pair)) for pair in pairs]
        columns[f"{model}: score"] = joined_table[f"accuracy_odd_{number}"]
        columns[f"{model}: offset"] = joined_table[f"offset_odd_{number}"]
        columns[f"{model}: n"] = joined_table[f"n_odd_{number}"]
    return pd.DataFrame(columns)


# ---- The built-in corpus --------------------------------------------------------------------------------


def show_statistics(corpus: Corpus) -> None:
    """Show the distances between heads and dependents in a corpus, and how often a fixed offset would be right."""
    with st.expander(f"The built-in corpus: {len(corpus.sentences)} sentences, and how hard they are"):
        st.markdown("  \n".join(escape_markdown(" ".join(sentence.forms)) for sentence in corpus.sentences[:3]))
        st.dataframe(
            _tabulate_distances(corpus),
            hide_index=True,
            width="stretch",
            column_config={
                "distances": st.column_config.BarChartColumn("distance of the head, −10 to +10 words"),
                "best offset is right": st.column_config.NumberColumn(format=PERCENT),
            },
        )


@cache
def _tabulate_distances(corpus: Corpus) -> Any:
    import pandas as pd

    relations = Relations(corpus.sentences)
    counts = count_gold(relations, [*enumerate(map(relations.make_tree, corpus.sentences))])
    cases, hits = counts.n.sum(axis=0)[0], counts.offset.sum(axis=0)[0]  # [row], [row, offset]
    rows = [
        {
            "relation": label_relation(row.relation),
            "n": int(cases[number]),
            "distances": hits[number].tolist(),
            "best offset": format_signed(OFFSETS[int(hits[number].argmax())]),
            "best offset is right": 100 * hits[number].max() / cases[number],
        }
        for number, row in enumerate(relations.rows)
        if row.level == "base" and cases[number]
    ]
    return pd.DataFrame(rows).sort_values("n", ascending=False)
