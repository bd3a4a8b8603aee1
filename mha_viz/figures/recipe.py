"""The lines of Python that make a figure again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from mha_viz.attention import READ, Attention, Head
from mha_viz.figures.correspondence import Panel
from mha_viz.figures.layout import Size
from mha_viz.figures.view import View

START = "import mha_viz as mv\n"
STEPS = {"by words": ".by_words()", "special hidden": ".without_special()"}  # of Attention.made


def of_head(attention: Attention, kind: str, heads: Sequence[Head], view: View, size: Size, file: str) -> str:
    """For a heatmap, links or a grid of one reading."""
    named: dict[str, Any] = {}
    if len(heads) == 1:
        named = {"layer": heads[0].layer, "head": heads[0].head}
    elif heads:
        named = {"heads": [str(head) for head in heads]}
    call = f"a.{kind}({_arguments(named | _changed(view) | _changed(size))})"
    return f"{START}\n{_reading('a', attention)}\n{call}.save({file!r})\n"


def of_panels(panels: Sequence[Panel], view: View, size: Size, options: dict[str, Any], kind: str, file: str) -> str:
    """For a comparison or a difference; ``options`` are its further arguments."""
    readings = {panel.attention.key: panel.attention for panel in panels}
    names = {key: chr(ord("a") + i) for i, key in enumerate(readings)}
    lines = [_reading(names[key], attention) for key, attention in readings.items()]
    listed = []
    for panel in panels:
        parts = [names[panel.attention.key], repr(str(panel.head))]
        parts += [repr(panel.name)] if panel.name else []
        listed.append(f"({', '.join(parts)})")
    given = f"[{', '.join(listed)}]" if kind == "compare" else ", ".join(listed)
    rest = _arguments(options | _changed(view) | _changed(size))
    call = f"mv.{kind}({given}{', ' if rest else ''}{rest})"
    return f"{START}\n" + "\n".join(lines) + f"\n{call}.save({file!r})\n"


def _reading(name: str, attention: Attention) -> str:
    """The lines that make a reading again: how the model read the text, then each step that was taken since. Where a
    call cannot say that, the reading is opened from a file."""
    steps = [_step(step) for step in attention.made[1:]]
    is_read = attention.made[:1] in READ and attention.quantity == "weight" and not attention.is_cross
    if not is_read or None in steps:
        file = f"{attention.key[:8]}.npz"
        return f"# The reading, as it was saved with save({file!r})\n{name} = mv.open_attention({file!r})"
    return (
        f"{name} = mv.load({attention.model!r}){_untrained(attention)}.{_read(attention)}{''.join(filter(None, steps))}"
    )


def _read(attention: Attention) -> str:
    text = attention.queries
    if attention.made[0] == "given words":
        return f"encode_words({list(text.given)!r})"
    pair = f", {text.pair!r}" if text.pair else ""
    return f"encode({text.text!r}{pair})"


def _untrained(attention: Attention) -> str:
    """How its model was made of the one that is loaded, where that is another."""
    match = re.fullmatch(r"untrained, seed (\d+)", attention.revision)
    return f".untrained({match[1]})" if match else ""


def _step(step: str) -> str | None:
    """The call that takes one step of ``Attention.made``; None where no call does."""
    if step.startswith("only "):
        return f".only({step.removeprefix('only ').split(', ')!r})"
    return STEPS.get(step)


def _changed(settings: View | Size) -> dict[str, Any]:
    """The settings that differ from their defaults."""
    return {f.name: getattr(settings, f.name) for f in fields(settings) if getattr(settings, f.name) != f.default}


def _arguments(named: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in named.items())
