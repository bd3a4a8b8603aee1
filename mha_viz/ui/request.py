"""What the URL asks for, and the inputs for it: the sentence, the examples, the model menu."""

from __future__ import annotations

from contextlib import suppress

from mha_viz.attention import Attention
from mha_viz.browser.quantities import QUANTITIES
from mha_viz.errors import MhaVizError
from mha_viz.figures.packet import OpenHead
from mha_viz.models import catalog
from mha_viz.text import clean
from mha_viz.ui import address, inference, navigation
from mha_viz.ui.address import Url, examples
from mha_viz.ui.caches import ready
from mha_viz.ui.components import sentence
from mha_viz.ui.parts import guarded, message, sent, whole

# ---- Input --------------------------------------------------------------------------------------------


def ask(what: Url, intro: str = "", hint: bool = True) -> None:
    """The sentence in large type below ``intro``, with examples and model menu and, with ``hint``, what to look for,
    which names heads of the default model."""
    model, in_class = what.where.model or catalog.default().name, address.in_class()
    content = {
        "text": what.sentence,
        "pair": what.where.pair,
        **_look(what, model, hint),
        "intro": intro,
        "plain": in_class,
        "arched": not what.parameters and hint,  # a first visit
        "model": model,
        "label": _label(model),
        "models": [{"name": m.name, "label": m.label} for m in catalog.offered()],
        "open": not catalog.hosted(),
        "examples": [
            {"text": e["text"], "pair": e.get("pair", ""), "look": _look_and_answer(e, in_class)[0]} for e in examples()
        ],
    }
    sentence(content, "sentence", _on_read, _on_example, _on_model)


def _look(what: Url, model: str, hint: bool) -> dict[str, object]:
    """What to look for in an example; if another head is open, also a button to the example's own. Empty during the
    tour, which has its own explanations."""
    example = _example(what)
    if not hint or model != catalog.DEFAULT or not example or navigation.step_number(address.now()):
        return {"look": "", "answer": "", "opens": None}
    head = example.get("head", "")
    elsewhere = bool(what.where.head) and str(what.where.head) != head
    opens = {"index": examples().index(example), "head": head} if elsewhere and head else None
    look, answer = _look_and_answer(example, address.in_class())
    return {"look": look, "answer": answer, "opens": opens}


def _look_and_answer(example: dict[str, str], in_class: bool) -> tuple[str, str]:
    """What to look for in an example, without the answer to its question; for a class, with the answer, hidden until
    asked for."""
    question, mark, rest = example["look"].partition("? ")
    return (f"{question}?", rest if in_class else "") if mark else (example["look"], "")


def full(what: Url) -> dict[str, str]:
    """The parameters that a link needs in addition to the URL to show the same where the defaults differ."""
    model = inference.shown_model(what.where) or catalog.default().name
    return {"text": what.text, "model": model} | open_on_first_view()


def _label(name: str) -> str:
    """A model's name in the menu; for a folder only its last part."""
    with suppress(MhaVizError):
        return catalog.resolve(name).label
    return name


def _example(what: Url) -> dict[str, str]:
    """The example with the shown text, or an empty dictionary."""
    typed = (what.text, what.where.pair)
    return next((e for e in examples() if (e["text"], e.get("pair", "")) == typed), {})


@guarded()
def _on_read() -> None:
    typed = message("sentence", "read")
    text, pair, what = str(typed.get("text", "")), str(typed.get("pair", "")), address.url()
    same = text == what.sentence and not pair.strip()  # CoNLL-U stays unchanged as long as its words are not edited
    _read_next(what.text if same else text, pair)


@guarded()
def _on_example() -> None:
    index = whole(sent("sentence", "example"))
    if index is not None and 0 <= index < len(examples()):
        chosen = examples()[index]
        _read_next(chosen["text"], chosen.get("pair", ""), head=None, on=None)


def _read_next(text: str, pair: str, **changes: str | None) -> None:
    fitting = address.fits(text, pair)
    short = (len(fitting[0]), len(fitting[1])) != (len(text), len(pair))
    first = fitting[0] == examples()[0]["text"]
    changes |= dict.fromkeys(address.OF_THIS_TEXT) | ({} if pair.strip() else {"side": None})
    typed = f"{len(text)}-{len(pair)}" if short else None
    address.go(text=None if first else fitting[0], pair=fitting[1] if pair.strip() else None, typed=typed, **changes)


@guarded()
def _on_model() -> None:
    """Read a model at once if its files are here; otherwise the picture and its view stay until they are."""
    name = clean(str(sent("sentence", "model") or "")[:300])
    chosen = None if name == catalog.default().name else name
    with suppress(MhaVizError):
        if ready(catalog.resolve(name)):
            address.go(model=chosen, before=None, **dict.fromkeys(address.OF_THIS_MODEL))
            return
    address.go(model=chosen, before=inference.shown_model(address.url().where))


def open_on_first_view() -> dict[str, str]:
    """What the Explore page opens without parameters in the URL: the head, and the token held in it."""
    what = address.url()
    if what.where.head or what.where.case or QUANTITIES[what.where.quantity].of_layers:
        return {}
    with suppress(MhaVizError):  # for a server with an invalid list of models, which the page reports
        begin = _opened_first(what, inference.shown_model(what.where) or catalog.default().name)
        return {"head": begin.head} | ({"pin": begin.pin} if begin.pin else {})
    return {}


def opened_first(what: Url, attention: Attention) -> OpenHead:
    """What is open if the URL names no head."""
    if QUANTITIES[attention.quantity].of_layers:  # one map per layer; the last one covers all layers
        return OpenHead(f"L{attention.layers - 1}H0")
    case = what.where.case
    if case and not attention.is_cross and case.head in attention.every_head():
        places = (place for place, token in enumerate(attention.text.tokens) if token.word == case.word)
        place = next(places, None)
        return OpenHead(str(case.head), None if place is None else f"{case.axis}{place}")
    return _opened_first(what, attention.model)


def _opened_first(what: Url, model: str) -> OpenHead:
    if model != catalog.DEFAULT:
        return OpenHead()
    example = _example(what)
    return OpenHead(example.get("head", "L3H1"), None if hides_an_answer(what, model) else example.get("pin"))


def hides_an_answer(what: Url, model: str) -> bool:
    """Whether the page asks a class a question whose answer is hidden, so that nothing else may say it."""
    return bool(_look(what, model, hint=True)["answer"])
