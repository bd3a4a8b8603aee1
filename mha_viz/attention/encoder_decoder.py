"""How a reading of an encoder–decoder was made, as steps from which its recipe can be derived.

``Attention.made`` of such a reading is "typed", the part that was read and, if the model generated the target, "target
generated". The decoder’s attention to its target depends on the source too, so the step contains the source; for
cross-attention, the source is the text of the keys.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mha_viz.attention import Attention
from mha_viz.text import TokenizedText

GENERATED = "target generated"
STEPS = {"encoder": "encoder self-attention", "decoder": "decoder self-attention", "cross": "cross-attention"}
_STEP = re.compile(
    "(?P<part>encoder|decoder) self-attention(?: after the source “(?P<source>.*)”)?|cross-attention", re.DOTALL
)


class Made(NamedTuple):
    """The content of a reading's steps: the part of the model, the source if they contain it, and whether the model
    generated the target."""

    part: str
    source: str | None
    is_generated: bool


class Request(NamedTuple):
    """The request to an encoder–decoder: the source, the target ("" if the model generated it), and the part."""

    text: str
    target: str
    part: str


def request_of(attention: Attention) -> Request | None:
    """The request of a reading; None for other kinds of models."""
    made, _ = read_back(attention.made)
    if made is None:
        return None
    is_typed = made.part != "encoder" and not made.is_generated
    source = attention.keys.text if made.source is None else made.source
    return Request(source, attention.queries.text if is_typed else "", made.part)


def made_by(part: str, source: TokenizedText | None = None, is_generated: bool = False) -> tuple[str, ...]:
    """The first steps of a reading of a part of an encoder–decoder."""
    of_source = ""
    if part == "decoder" and source is not None:
        of_source = f" after the source “{source.text[: source.cut.kept[0] if source.cut else None]}”"
    return ("typed", f"{STEPS[part]}{of_source}", *([GENERATED] if is_generated else []))


def read_back(made: tuple[str, ...]) -> tuple[Made | None, tuple[str, ...]]:
    """The content of the first steps, and the steps after them; None for other kinds of models."""
    match = _STEP.fullmatch(made[1]) if len(made) > 1 and made[0] == "typed" else None
    if match is None:
        return None, made[1:]
    is_generated = made[2:3] == (GENERATED,)
    return Made(match["part"] or "cross", match["source"], is_generated), made[3:] if is_generated else made[2:]
