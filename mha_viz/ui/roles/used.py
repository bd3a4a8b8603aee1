"""Whether the roles of a head are used: the effect, over a corpus, of switching it off."""

from __future__ import annotations

from typing import Any

import streamlit as st

from mha_viz.analysis.findings import whole_number
from mha_viz.figures.glosses import gloss, labelled, link
from mha_viz.figures.role_words import DIRECTIONS, over
from mha_viz.numerals import decimal
from mha_viz.quotes import series
from mha_viz.request import Request
from mha_viz.ui.parts import plain


def show_in_short(rows: Any) -> None:
    """Say for which roles a head is used, or else for which not; ``rows``: its rows of the table ``used``, or None."""
    if rows is None:
        return
    roles = [(link(row.detail).partition(",")[0], str(row.used) == "True") for row in rows.itertuples(index=False)]
    used = [does for does, is_used in roles if is_used]
    listed = plain(series(used or [does for does, _ in roles]))
    st.caption(f"{'Used' if used else 'Not found to be used'} for {listed}.")


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
        "change": f"{decimal(row.effect, 3)} [{decimal(row.ci_low, 3)}, {decimal(row.ci_high, 3)}]",
        "more than without others": f"{decimal(row.more, 3)} [{decimal(row.more_low, 3)}, {decimal(row.more_high, 3)}]",
    }


def _name(row: Any) -> str:
    if row.role == "syntax":
        relation, direction = str(row.detail).split()
        return f"{labelled(relation)}, {DIRECTIONS[direction]}"
    meaning = gloss(str(row.detail))
    return meaning.name if meaning else str(row.detail)
