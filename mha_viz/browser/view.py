"""The grammar of a view: the values that each of its parameters can have in the URL, and its default.

It is stored in ``view.json``, which JavaScript imports too.

``unit``, ``special``, ``links``, ``scale``, ``side``: how heads are drawn. ``shown``: the quantity that is drawn.
``pin``: tokens that are held, ``link``: the link by which heads are ranked. ``head``: the open head, ``on``: heads of
its layer beside it, ``roles``: whether known roles are shown, ``arrows``: whether composition is. For a comparison,
``as``: how panels are drawn, ``diff``: two panels that are subtracted, or "none" to avoid the default for two panels,
``at``: the panel whose tokens ``pin`` counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mha_viz.browser.quantities import GRAMMAR, QUANTITIES

VALUES: Mapping[str, str] = MappingProxyType(  # regular expressions for the complete value
    GRAMMAR["values"] | {"shown": "|".join(QUANTITIES)}
)
DEFAULTS: Mapping[str, str] = MappingProxyType(GRAMMAR["defaults"])
LONG_TOKENS: int = GRAMMAR["long"]["tokens"]
LONG_DEFAULTS: Mapping[str, str] = MappingProxyType(GRAMMAR["long"]["defaults"])


def scale_of(*quantities: str) -> str:
    """The default colour scale of these quantities: per head if the numbers of any are no shares of 1."""
    defaults: Mapping[str, str] = GRAMMAR["not_shares"]["defaults"]
    return DEFAULTS["scale"] if all(QUANTITIES[name].is_share for name in quantities) else defaults["scale"]
