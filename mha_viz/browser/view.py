"""The grammar of a view: which values each of its parameters takes in the address, and which it has when not given.

It stands in ``view.json``, which JavaScript imports too.

``unit``, ``special``, ``links``, ``scale``, ``side``: how heads are drawn. ``shown``: the quantity that is drawn.
``pin``: tokens that are held, ``link``: the link by which heads are ranked. ``head``: the open head, ``on``: heads of
its layer beside it, ``roles``: whether known roles are shown. Of a comparison, ``as``: what panels are drawn as,
``diff``: two panels that are subtracted, or none where two are unless this is said, ``at``: the panel whose tokens
``pin`` counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

_GRAMMAR = json.loads(Path(__file__).with_name("view.json").read_text("utf-8"))

VALUES: Mapping[str, str] = MappingProxyType(_GRAMMAR["values"])  # regular expressions, for the whole value
DEFAULTS: Mapping[str, str] = MappingProxyType(_GRAMMAR["defaults"])
LONG_TOKENS: int = _GRAMMAR["long"]["tokens"]
LONG_DEFAULTS: Mapping[str, str] = MappingProxyType(_GRAMMAR["long"]["defaults"])


def defaults_of(tokens: int) -> Mapping[str, str]:
    """What a view of a text of so many tokens begins with: of a long one the strongest links only."""
    return {**DEFAULTS, **LONG_DEFAULTS} if tokens > LONG_TOKENS else DEFAULTS
