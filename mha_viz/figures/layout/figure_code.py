"""Python code that reproduces a figure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from mha_viz.analysis.bundled_data import MAX_TOKENS, load_bundled_recipes, predict_attention
from mha_viz.attention import Attention, Head
from mha_viz.attention.steps import ONLY, ONLY_LAYERS, WRITTEN, Step, digest, find_later_steps
from mha_viz.figures.layout import Size
from mha_viz.figures.layout.panels import Panel
from mha_viz.figures.layout.view import View
from mha_viz.model_names import cite_model, get_display_name
from mha_viz.quotes import make_printable
from mha_viz.request import BOTH, COSINE, DTYPES, MASK, RECIPE, Question, Request, add_dtype, get_dtype
from mha_viz.view.quantities import QUANTITIES, WEIGHT, Quantity
from mha_viz.view.settings import iter_page_only_settings, keep_accepted

IMPORT_LINE = "import mha_viz as mv\n"
STEP_CALLS = {"by words": ".by_words()", "special hidden": ".without_special()"}  # the calls of steps, by name


def write_head_code(attention: Attention, kind: str, heads: Sequence[Head], view: View, size: Size, file: str) -> str:
    """Return the code for a heatmap, links or a grid of one reading."""
    arguments: dict[str, Any] = {}
    if len(heads) == 1:
        arguments = {"layer": heads[0].layer, "head": heads[0].head}
    elif heads:
        arguments = {"heads": [str(head) for head in heads]}
    call = (
        f"a.{kind}({_format_arguments(arguments | _find_changed_settings(view, kind) | _find_changed_settings(size))})"
    )
    return f"{IMPORT_LINE}\n{_write_reading('a', attention)}\n{call}.save({file!r})\n"


def write_panels_code(
    panels: Sequence[Panel], view: View, size: Size, options: dict[str, Any], kind: str, file: str
) -> str:
    """Return the code for a comparison or a difference; ``options`` are its other arguments."""
    readings = {panel.attention.key: panel.attention for panel in panels}
    names = {key: chr(ord("a") + i) for i, key in enumerate(readings)}
    lines = [_write_reading(names[key], attention) for key, attention in readings.items()]
    head_arguments = []
    for panel in panels:
        parts = [names[panel.attention.key], repr(str(panel.head))]
        parts += [repr(panel.name)] if panel.name else []
        head_arguments.append(f"({', '.join(parts)})")
    heads = f"[{', '.join(head_arguments)}]" if kind == "compare" else ", ".join(head_arguments)
    arguments = _format_arguments(
        options | _find_changed_settings(view, kind, options.get("kind", "")) | _find_changed_settings(size)
    )
    call = f"mv.{kind}({heads}{', ' if arguments else ''}{arguments})"
    return f"{IMPORT_LINE}\n" + "\n".join(lines) + f"\n{call}.save({file!r})\n"


def _write_reading(name: str, attention: Attention) -> str:
    """Return the code that reproduces a reading: the model's request, then each step that was applied.

    If no call reproduces it, the code opens the reading from a file.
    """
    request = attention.request
    call = (
        _write_call(request, attention.revision)
        if request is not None and _determines_reading(attention, request)
        else ""
    )
    for step in find_later_steps(attention):
        call = call and _append_step(call, step)
    if call:
        citation = cite_model(attention.model, attention.revision)
        return f"# {make_printable(citation, '?')}\n{name} = {call}"
    file = f"{attention.key[:8]}.npz"
    return f"# From the archive of all files, or from save({file!r})\n{name} = mv.load_attention({file!r})"


def _determines_reading(attention: Attention, request: Request) -> bool:
    """Return whether a request determines a reading completely.

    It does not if the means or recipes that replace heads are not those of the model's bundled files.
    """
    if any(step.row.means for step in attention.made if step.row.name != "without"):
        return False
    if not request.off or request.method not in ("mean", RECIPE):
        return True
    means = next(step.row.means for step in attention.made if step.row.name == "without")
    is_whole = not find_later_steps(attention) and len(attention.queries) <= MAX_TOKENS  # all tokens that rules need
    recipes = load_bundled_recipes(attention.model, attention.revision) if request.method == RECIPE else None
    return is_whole and recipes is not None and means == digest(predict_attention(attention, recipes))


def _write_call(request: Request, revision: str) -> str:
    """Return the call that makes a request."""
    quantity = QUANTITIES[request.quantity]
    if "{call}" in quantity.code:
        return _wrap_call(quantity, _write_call(replace(request, quantity=WEIGHT), revision))
    encoder = _write_encoder(request.model, revision)
    if request.prefix:
        encoder += f".prefixed({request.prefix!r})"
    text, pair, words = request.text, request.pair, list(request.words)
    typed_arguments = f"{text!r}, {pair!r}" if pair else repr(text)
    text_arguments = f"'', words={words!r}" if words else typed_arguments
    if request.part:
        target = {"target": request.target} if request.target else {}
        return f"{encoder}.encode({text!r}, {_format_arguments(target | {'part': request.part})})"
    if request.off:
        source = f", source={request.source!r}" if request.source else ""
        names = [*map(str, request.off)]
        return f"mv.ablate({encoder}, {names!r}, {text_arguments}, method={request.method!r}{source})"
    if quantity.code:
        question = "" if request.question is None else _format_arguments(_question_arguments(request.question))
        return quantity.code.format(encoder=encoder, text=text_arguments, question=question)
    return f"{encoder}.encode_words({words!r})" if words else f"{encoder}.encode({typed_arguments})"


def _question_arguments(question: Question) -> dict[str, object]:
    """Return the arguments that ask a question again."""
    if question.kind == COSINE:
        return {"other": question.other, **({} if question.off_in == BOTH else {"off_in": question.off_in})}
    return {"word": question.word} | ({"place": question.place} if question.kind == MASK else {})


def _append_step(call: str, step: Step) -> str:
    """Append the code for one more step of ``Attention.made``; empty if no call reproduces the step."""
    if step.row.name == WRITTEN:  # the code runs the model on the whole text again
        return call
    if step.row.name in (ONLY, ONLY_LAYERS):
        names = [f"L{head.layer}" if step.row.name == ONLY_LAYERS else str(head) for head in step.row.heads]
        return f"{call}.only({names!r})"
    quantity = next((q for q in QUANTITIES.values() if q.step == step.row.name and "{call}" in q.code), None)
    return _wrap_call(quantity, call) if quantity else call + STEP_CALLS[step] if step in STEP_CALLS else ""


def _wrap_call(quantity: Quantity, call: str) -> str:
    return quantity.code.format(call=call) if call else ""


def _write_encoder(model: str, revision: str) -> str:
    """Return the code that loads the model of a reading, or derives its untrained version."""
    dtype = get_dtype(revision)
    options = "" if dtype == DTYPES[0] else f", dtype={dtype!r}"
    options += f", name={name!r}" if (name := get_display_name(model)) else ""
    match = re.fullmatch(r"untrained, seed (\d+)", add_dtype(revision, DTYPES[0]))
    return f"mv.load({model!r}{options})" + (f".untrained({match[1]})" if match else "")


def _find_changed_settings(settings: View | Size, kind: str = "", panels: str = "") -> dict[str, Any]:
    """Return the settings that differ from their defaults and that files of a ``kind`` of figure show."""
    changes = {f.name: getattr(settings, f.name) for f in fields(settings) if getattr(settings, f.name) != f.default}
    if not kind:
        return changes
    page_only_names = {*iter_page_only_settings(kind, changes, panels)}
    return {name: value for name, value in keep_accepted(kind, changes).items() if name not in page_only_names}


def _format_arguments(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
