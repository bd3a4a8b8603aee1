"""Which heads share keys and values, in models that have fewer of them than heads."""

from __future__ import annotations

from contextlib import suppress

from mha_viz.attention import Attention
from mha_viz.errors import MhaVizError
from mha_viz.models import catalog, hub
from mha_viz.ui.parts import remark

LISTED = 3  # the most groups that are listed


def say(attention: Attention) -> None:
    """One line on the groups of heads, for models that have such groups."""
    with suppress(MhaVizError):  # the files are gone: the drawing stays
        facts = hub.facts(catalog.resolve(attention.model))
        shared = facts.heads_per_key if facts is not None else 1
        if shared > 1:
            remark(f"In each layer {_groups(attention.heads, shared)} share a key and a value; their queries differ.")


def _groups(heads: int, shared: int) -> str:
    """ "H0 and H1, H2 and H3", "H0 to H7, H8 to H15, H16 to H23, and so on"."""
    joined = " and " if shared == 2 else " to "
    groups = [f"H{first}{joined}H{first + shared - 1}" for first in range(0, heads, shared)]
    return ", ".join(groups[:LISTED]) + (", and so on," if len(groups) > LISTED else "")
