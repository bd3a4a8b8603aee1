"""Tables of the Roles page: every relation with its best head and its baselines, coreference, and two models."""

from __future__ import annotations

from functools import cache
from typing import Any

import streamlit as st

from mha_viz.analysis.syntax import OFFSETS, Relations, gold
from mha_viz.attention import Head
from mha_viz.errors import MhaVizError
from mha_viz.figures.caption import both
from mha_viz.figures.role_words import DIRECTIONS
from mha_viz.models import catalog
from mha_viz.treebank import Corpus
from mha_viz.ui.annotated import built_in
from mha_viz.ui.parts import complain, plain, remark
from mha_viz.ui.studies import Evidence, given, studies

FEWEST = 20  # held-out cases of a relation that is listed
PERCENT = "percent"


def show(evidence: Evidence) -> None:
    """Relations, coreference and GAP, as far as the corpus has gold for them."""
    chosen = evidence.table("syntax_chosen")
    if chosen is not None:
        _syntax(chosen, evidence)
    coreference = evidence.table("coreference")
    if coreference is not None:
        _coreference(coreference, evidence)
    gap = evidence.table("gap")
    if gap is not None:
        _gap(gap, evidence)


def _syntax(chosen: Any, evidence: Evidence) -> None:
    source = evidence.source("syntax_chosen")
    st.markdown(f"### Dependency relations, on {plain(source.corpus if source else '')}")
    st.markdown(
        "Head and direction are chosen on the sentences with even numbers; the score is of the odd ones, so it does "
        "not profit from the choice. The baselines, on the same odd sentences: the best fixed offset; the nearest "
        "word of the best part of speech (a strong rule, but it knows the gold parts of speech); and the best head "
        "of the same architecture with random weights."
    )
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    typed = left.text_input("Filter relations", key="relation_filter", placeholder="nsubj").strip().lower()
    level = right.segmented_control(
        "Level", ["base", "full", "agg"], default="base", key="level", format_func=LEVELS.__getitem__
    )
    table = _readable(chosen[(chosen["level"] == (level or "base")) & (chosen["n_odd"] >= FEWEST)])
    table = table[table["relation"].str.contains(typed, regex=False)] if typed else table
    if not len(table):
        matches = f" that matches “{typed[:40]}”" if typed else ""
        remark(f"No relation{matches} has at least {FEWEST} held-out cases.")
        return
    st.dataframe(table, hide_index=True, width="stretch", column_config=_columns(), key="relations")
    beaten = table[table["better"] != "the head"]
    if len(beaten):
        st.markdown(
            f"For **{len(beaten)}** of {len(table)} relations a trivial rule does better than the best head: "
            + ", ".join(plain(name) for name in beaten["relation"])
            + "."
        )


LEVELS = {"base": "relations", "full": "with subtypes", "agg": "all together"}


def _readable(chosen: Any) -> Any:
    import pandas as pd

    rules = {"offset": chosen["offset_odd"], "part of speech": chosen["upos_odd"], "the head": chosen["accuracy_odd"]}
    table = pd.DataFrame(
        {
            "relation": chosen["relation"],
            "best head": [both(Head(*pair)) for pair in zip(chosen["layer"], chosen["head"], strict=True)],
            "direction": chosen["direction"].map(DIRECTIONS),
            "score": chosen["accuracy_odd"],
            "low": chosen["ci_low"],
            "high": chosen["ci_high"],
            "chosen at": chosen["accuracy_even"],
            "offset": chosen["offset_odd"],
            "part of speech": chosen["upos_odd"],
            "untrained": chosen["untrained_odd"],
            "gain": chosen["accuracy_odd"] - chosen["offset_odd"],
            "n": chosen["n_odd"],
            "better": pd.DataFrame(rules)[["the head", "offset", "part of speech"]].idxmax(axis=1),
        }
    )
    return table.sort_values("gain", ascending=False)


def _columns() -> dict[str, Any]:
    number = st.column_config.NumberColumn
    helps = {
        "score": "Right in this share of the held-out cases (odd sentences).",
        "low": "95 % Wilson interval of the score, lower end.",
        "high": "95 % Wilson interval of the score, upper end.",
        "chosen at": "Its score on the even sentences, on which it was chosen: optimistic.",
        "offset": "The best fixed offset, as “the head is the next word”.",
        "part of speech": "The nearest word of the best part of speech on one side; it knows the gold tags.",
        "untrained": "The best head with random weights.",
        "gain": "Score minus the best fixed offset.",
    }
    return {
        **{name: number(name, format=PERCENT, help=words) for name, words in helps.items()},
        "n": number("n", help="Held-out cases."),
        "better": st.column_config.TextColumn("best of all", help="Which rule is right most often."),
    }


def _coreference(table: Any, evidence: Evidence) -> None:
    source = evidence.source("coreference")
    st.markdown(f"### Coreference, on {plain(source.corpus if source else '')}")
    st.markdown(
        "From a mention to one of its antecedents: right when the largest weight among the head words of all earlier "
        "mentions is on one of the same chain. Best head of each kind, over all sentences."
    )
    baselines = source.tables["coreference_baselines"] if source else table[:0]
    table = table[table["n"] > 0]
    best = table.loc[table.groupby("mention_type", sort=False)["accuracy"].idxmax()]
    rows = best.assign(head=[both(Head(*pair)) for pair in zip(best["layer"], best["head"], strict=True)])
    rows = rows[["mention_type", "head", "accuracy", "n"]]
    for rule in ("nearest", "same_form", "untrained"):
        of_rule = baselines[baselines["baseline"] == rule].set_index("mention_type")["accuracy"]
        rows = rows.assign(**{rule.replace("_", " "): rows["mention_type"].map(of_rule)})
    st.dataframe(_percents(rows, "accuracy", "nearest", "same form", "untrained"), hide_index=True, width="stretch")


def _percents(table: Any, *names: str) -> Any:
    shown = table.copy()
    for name in names:
        shown[name] = [f"{100 * value:.1f} %" if value == value else "" for value in shown[name]]
    return shown


def _gap(table: Any, evidence: Evidence) -> None:
    source = evidence.source("gap")
    best = table.loc[table["accuracy"].idxmax()]
    if source is None:
        return
    baselines = source.tables["coreference_baselines"].set_index("baseline")["accuracy"]
    st.markdown(
        f"**GAP** ({int(best['n']):,} examples): of two names, {both(Head(int(best['layer']), int(best['head'])))} "
        f"attends more to the right one in **{best['accuracy']:.1%}**; the name nearer to the pronoun is right in "
        f"{baselines['nearest']:.1%}, the best untrained head in {baselines['untrained']:.1%}."
    )


# ---- Two models -----------------------------------------------------------------------------------------


def compare(model: catalog.Model, evidence: Evidence, corpus: str) -> None:
    """The best heads of two models for every relation, where both were measured on one corpus."""
    others = [m for m in catalog.offered() if m.name != model.name]
    found = {m.name: other for m in others if (other := _measured(m, corpus)) is not None}
    with st.expander("Compare with another model"):
        if not found:
            st.markdown(
                "No other model has been measured on this corpus yet. Choose “built-in sentences” above, and another "
                "model; then come back."
            )
            return
        name = st.selectbox("Other model", list(found), key="other_model")
        if name is None or evidence.table("syntax_chosen") is None:
            return
        st.dataframe(_beside(evidence, found[name], model.name, name), hide_index=True, width="stretch")


def _measured(model: catalog.Model, corpus: str) -> Evidence | None:
    if corpus == "gold":
        return given(model.name) if model.kind == "bundled" else None
    try:
        profile = studies().profile(model, built_in().digest if corpus == "grammar" else corpus)
    except MhaVizError as error:
        complain(error)
        return None
    return Evidence(profile.corpus, (profile,)) if profile else None


def _beside(one: Evidence, other: Evidence, first: str, second: str) -> Any:
    columns = ["level", "relation"]
    a, b = (e.table("syntax_chosen") for e in (one, other))
    both_tables = a.merge(b, on=columns, suffixes=("_1", "_2"))
    both_tables = both_tables[(both_tables["level"] == "base") & (both_tables["n_odd_1"] >= FEWEST)]
    shown = {"relation": both_tables["relation"]}
    for number, name in (("1", first), ("2", second)):
        pairs = zip(both_tables[f"layer_{number}"], both_tables[f"head_{number}"], strict=True)
        shown[f"{name}: head"] = [both(Head(*pair)) for pair in pairs]
        shown[f"{name}: score"] = [f"{100 * value:.1f} %" for value in both_tables[f"accuracy_odd_{number}"]]
    shown["offset"] = [f"{100 * value:.1f} %" for value in both_tables["offset_odd_1"]]
    import pandas as pd

    return pd.DataFrame(shown)


# ---- The built-in corpus --------------------------------------------------------------------------------


def statistics(corpus: Corpus) -> None:
    """How far heads and dependents stand apart in a corpus, and what a fixed offset would get right."""
    with st.expander(f"The built-in corpus: {len(corpus.sentences)} sentences, and how hard they are"):
        st.markdown("  \n".join(plain(" ".join(sentence.forms)) for sentence in corpus.sentences[:6]))
        st.dataframe(
            _distances(corpus),
            hide_index=True,
            width="stretch",
            column_config={
                "distances": st.column_config.BarChartColumn("distance of the head, −10 to +10 words"),
                "best offset is right": st.column_config.NumberColumn(format=PERCENT),
            },
        )


@cache
def _distances(corpus: Corpus) -> Any:
    import pandas as pd

    relations = Relations(corpus.sentences)
    counted = gold(relations, list(enumerate(corpus.sentences)))
    n, offset = counted.n.sum(axis=0)[0], counted.offset.sum(axis=0)[0]  # [row], [row, offset]
    rows = [
        {
            "relation": row.relation,
            "n": int(n[at]),
            "distances": offset[at].tolist(),
            "best offset": f"{OFFSETS[int(offset[at].argmax())]:+d}",
            "best offset is right": offset[at].max() / n[at],
        }
        for at, row in enumerate(relations.rows)
        if row.level == "base" and n[at]
    ]
    return pd.DataFrame(rows).sort_values("n", ascending=False)
