"""The Python code that makes a figure again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from mha_viz.attention import READ, Attention, Head
from mha_viz.attention.encoder_decoder import read_back, request_of
from mha_viz.attention.switched_off import off_in
from mha_viz.figures.correspondence import Panel
from mha_viz.figures.layout import Size
from mha_viz.figures.view import View

START = "import mha_viz as mv\n"
_SCORE = re.compile(  # values of Question.score in mha_viz.attention.answers
    "gradient × weight of (?:log p of “(?P<word>.*)” (?:at token (?P<place>[0-9]{1,4})|as the next token)"
    "|the cosine with “(?P<other>.*)”)",
    re.DOTALL,
)
STEPS = {"by words": ".by_words()", "special hidden": ".without_special()"}  # steps in Attention.made


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
    """For a comparison or a difference; ``options`` are its other arguments."""
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
    """The code that makes a reading again: how the model read the text, then each step that was applied. If no call
    makes it, the reading is opened from a file."""
    if attention.made[:1] not in READ:
        return _opened(name, attention)
    call, steps = _read(attention)
    for step in steps:
        call = call and _after(call, step)
    return f"{name} = {call}" if call else _opened(name, attention)


def _opened(name: str, attention: Attention) -> str:
    file = f"{attention.key[:8]}.npz"
    return f"# From the archive of all files, or from save({file!r})\n{name} = mv.open_attention({file!r})"


def _read(attention: Attention) -> tuple[str, tuple[str, ...]]:
    """The call with which the model read the text, and the steps that this call does not include."""
    encoder = f"mv.load({attention.model!r}){_untrained_call(attention)}"
    request, (_, steps) = request_of(attention), read_back(attention.made)
    if request is not None:
        given_target = {"target": request.target} if request.target else {}
        return f"{encoder}.encode({request.text!r}, {_arguments(given_target | {'part': request.part})})", steps
    text = attention.queries
    words = list(text.given)
    typed = f"{text.text!r}, {text.pair!r}" if text.pair else repr(text.text)
    either = f"'', words={words!r}" if words else typed
    heads, method = off_in(attention)
    if heads and method != "mean":  # no call says which means those were
        return f"mv.without({encoder}, {[*map(str, heads)]!r}, {either}, method={method!r})", steps[1:]
    if steps[:1] == ("norm-weighted",):
        return f"mv.norm_weighted({encoder}, {either})", steps[1:]
    if steps and (match := _SCORE.fullmatch(steps[0])):
        given = {"word": match["word"], "place": match["place"] and int(match["place"]), "other": match["other"]}
        options = _arguments({name: value for name, value in given.items() if value is not None})
        return f"mv.gradient_weighted({encoder}, {either}, {options})", steps[1:]
    return f"{encoder}.encode_words({words!r})" if words else f"{encoder}.encode({typed})", steps


def _after(call: str, step: str) -> str:
    """The code for one more step of ``Attention.made``; empty if no call does it."""
    if step == "rollout":
        return f"mv.rollout({call})"
    if step.startswith("only "):
        return f"{call}.only({step.removeprefix('only ').split(', ')!r})"
    return call + STEPS[step] if step in STEPS else ""


def _untrained_call(attention: Attention) -> str:
    """The code that makes its model from the loaded one, if they differ."""
    match = re.fullmatch(r"untrained, seed (\d+)", attention.revision)
    return f".untrained({match[1]})" if match else ""


def _changed(settings: View | Size) -> dict[str, Any]:
    """The settings that differ from their defaults."""
    return {f.name: getattr(settings, f.name) for f in fields(settings) if getattr(settings, f.name) != f.default}


def _arguments(named: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in named.items())
