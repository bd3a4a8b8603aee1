"""The grid of all heads, the opened head, and the ranking by one link, in one interactive drawing."""

from __future__ import annotations

from collections.abc import Callable

from mha_viz.ui.components import drawing

_mount = drawing("explorer")


def explorer(
    packet: bytes,
    roles: bytes,
    key: str,
    on_view: Callable[[], None],
    on_compare: Callable[[], None],
    on_card: Callable[[], None],
    on_measure: Callable[[], None],
    on_off: Callable[[], None],
) -> None:
    """Draw one reading (``figures.packet``), with the roles of its heads (``ui.badges``, JSON).

    ``on_view`` runs when the user changed the view; ``st.session_state[key].view`` then holds the URL parameters that
    differ from their defaults (None: the parameter is removed). ``on_compare`` runs when the user added a head to the
    compared heads: ``compare`` holds its ``model`` and ``head``. ``on_card`` runs when the user asked what a head is
    known for; ``card`` then holds its name. ``on_measure`` runs when the user asked for the roles of a model that was
    never measured. ``on_off`` runs when the user switched a head off, or on again; ``off`` then holds its name.
    """
    data = packet + roles + len(roles).to_bytes(4, "little")  # Streamlit sends bytes only as a message of their own
    _mount(
        key=key,
        data=data,
        on_view_change=on_view,
        on_compare_change=on_compare,
        on_card_change=on_card,
        on_measure_change=on_measure,
        on_off_change=on_off,
    )
