"""Whether the roles of a head are used: the effect, over a corpus, of switching it off."""

from __future__ import annotations

from typing import Any

import streamlit as st

from mha_viz.analysis.findings import whole_number
from mha_viz.figures.glosses import gloss, labelled
from mha_viz.figures.role_words import DIRECTIONS, over
from mha_viz.numerals import with_interval
from mha_viz.request import Request
from mha_viz.ui.parts import plain


def show_use(rows: Any) -> None:
    """Show a line for each role of a head; ``rows``: its rows of the table ``used``, or None."""
    if rows is None:
        return
    first = rows.iloc[0]
    st.markdown("**Is it used?** What changes without it, at the words that it attends from")
    st.dataframe([_line(row) for row in rows.itertuples(index=False)], hide_index=True, width="content")
    st.caption(
        plain(
            f"Off ({Request(method=first['method']).manner}) on {first['corpus']}; {first['measure']}. Used: more than "
            "every other head of the layer without the role."
        )
    )


def _line(row: Any) -> dict[str, str]:
    return {
        "used": "yes" if str(row.used) == "True" else "no effect found",  # first, in sight on a phone
        "role": _name(row),
        "words": f"{int(row.n):,}{over(whole_number(getattr(row, 'documents', None)))}",
        "change": with_interval(row.effect, row.ci_low, row.ci_high, 3),
        "more than without others": with_interval(row.more, row.more_low, row.more_high, 3),
    }


def _name(row: Any) -> str:
    if row.role == "syntax":
        relation, direction = str(row.detail).split()
        return f"{labelled(relation)}, {DIRECTIONS[direction]}"
    meaning = gloss(str(row.detail))
    return meaning.name if meaning else str(row.detail)
