"""The grammar of a view: the values that each of its parameters can have in the URL, and its default.

It is stored in ``view.json``, which JavaScript imports too.

``unit``, ``special``, ``links``, ``scale``, ``side``: how heads are drawn. ``shown``: the quantity that is drawn.
``pin``: tokens that are held, ``link``: the link by which heads are ranked. ``head``: the open head, ``on``: heads of
its layer beside it, ``roles``: whether known roles are shown. For a comparison, ``as``: how panels are drawn, ``diff``:
two panels that are subtracted, or "none" to avoid the default for two panels, ``at``: the panel whose tokens ``pin``
counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

_GRAMMAR = json.loads(Path(__file__).with_name("view.json").read_text("utf-8"))

VALUES: Mapping[str, str] = MappingProxyType(_GRAMMAR["values"])  # regular expressions for the complete value
LABELS: Mapping[str, str] = MappingProxyType(_GRAMMAR["quantities"])  # what the page calls each value of ``shown``
DEFAULTS: Mapping[str, str] = MappingProxyType(_GRAMMAR["defaults"])
LONG_TOKENS: int = _GRAMMAR["long"]["tokens"]
LONG_DEFAULTS: Mapping[str, str] = MappingProxyType(_GRAMMAR["long"]["defaults"])
NOT_SHARES: frozenset[str] = frozenset(_GRAMMAR["not_shares"]["quantities"])


def scale_of(*quantities: str) -> str:
    """The default colour scale of these quantities: per head if the numbers of any are no shares of 1."""
    defaults: Mapping[str, str] = _GRAMMAR["not_shares"]["defaults"]
    return DEFAULTS["scale"] if NOT_SHARES.isdisjoint(quantities) else defaults["scale"]
