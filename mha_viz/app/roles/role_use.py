"""Show whether a head's roles are used: the effect of switching it off, compared with other heads, over a corpus."""

from __future__ import annotations

from typing import Any

import streamlit as st

from mha_viz.analysis.findings import parse_whole_number
from mha_viz.app.widgets.parts import escape_markdown
from mha_viz.corpus.limits import name_sample
from mha_viz.figures.words.glosses import find_gloss, label_relation
from mha_viz.figures.words.role_words import DIRECTIONS, describe_documents
from mha_viz.figures.words.use_words import USE, describe_use, explain_use, is_used
from mha_viz.numerals import with_interval
from mha_viz.request import Request


def show_use(rows: Any) -> None:
    """Show the effects of switching a head off, one line per role.

    ``rows``: the head's rows of the table ``used``, or None.
    """
    if rows is None:
        return
    first_row = rows.iloc[0]
    st.markdown("**Is it used?** Changes without it, at the words that it attends from")
    st.dataframe([_describe_effect(row) for row in rows.itertuples(index=False)], hide_index=True, width="content")
    corpus = name_sample(first_row["corpus"], first_row["every"])
    st.caption(
        escape_markdown(
            f"Off ({Request(method=first_row['method']).manner}) on {corpus}; {first_row['measure']}. Used: "
            f"{explain_use(first_row['measure'])}"
        )
    )


def _describe_effect(row: Any) -> dict[str, str]:
    return {
        USE: describe_use(is_used(row.used), row.measure),  # first, in sight on a phone
        "role": _name_role(row),
        "words": f"{int(row.n):,}{describe_documents(parse_whole_number(getattr(row, 'documents', None)))}",
        "change": with_interval(row.effect, row.ci_low, row.ci_high, 3),
        "more than other heads": with_interval(row.more, row.more_low, row.more_high, 3),
    }


def _name_role(row: Any) -> str:
    if row.role == "syntax":
        relation, direction = str(row.detail).split()
        return f"{label_relation(relation)}, {DIRECTIONS[direction]}"
    meaning = find_gloss(str(row.detail))
    return meaning.name if meaning else str(row.detail)
