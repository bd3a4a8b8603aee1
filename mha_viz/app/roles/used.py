"""Whether the roles of a head are used: the effect of switching it off, over a corpus, compared with its neighbours."""

from __future__ import annotations

from typing import Any

import streamlit as st

from mha_viz.analysis.findings import whole_number
from mha_viz.app.widgets.parts import plain
from mha_viz.corpus.limits import name_sample
from mha_viz.figures.words.glosses import gloss, labelled
from mha_viz.figures.words.role_words import DIRECTIONS, over
from mha_viz.figures.words.use_words import USE, is_used, use_explained, use_in_words
from mha_viz.numerals import with_interval
from mha_viz.request import Request


def show_use(rows: Any) -> None:
    """Show a line for each role of a head. ``rows``: its rows of the table ``used``, or None."""
    if rows is None:
        return
    first = rows.iloc[0]
    st.markdown("**Is it used?** What changes without it, at the words that it attends from")
    st.dataframe([_line(row) for row in rows.itertuples(index=False)], hide_index=True, width="content")
    corpus = name_sample(first["corpus"], first["every"])
    st.caption(
        plain(
            f"Off ({Request(method=first['method']).manner}) on {corpus}; {first['measure']}. Used: "
            f"{use_explained(first['measure'])}"
        )
    )


def _line(row: Any) -> dict[str, str]:
    return {
        USE: use_in_words(is_used(row.used), row.measure),  # first, in sight on a phone
        "role": _name(row),
        "words": f"{int(row.n):,}{over(whole_number(getattr(row, 'documents', None)))}",
        "change": with_interval(row.effect, row.ci_low, row.ci_high, 3),
        "more than other heads": with_interval(row.more, row.more_low, row.more_high, 3),
    }


def _name(row: Any) -> str:
    if row.role == "syntax":
        relation, direction = str(row.detail).split()
        return f"{labelled(relation)}, {DIRECTIONS[direction]}"
    meaning = gloss(str(row.detail))
    return meaning.name if meaning else str(row.detail)
