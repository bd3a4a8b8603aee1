"""The Explore page's parts: the input, and the drawing of a reading. Both keep the URL."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import streamlit as st

from mha_viz.assets import asset
from mha_viz.attention import Attention, Head
from mha_viz.errors import CorpusError, MhaVizError, UnknownHead
from mha_viz.figures.packet import Link, Start, text_key
from mha_viz.models import catalog
from mha_viz.text import clean
from mha_viz.ui import address, gold, reading, takeaway, tour, tray
from mha_viz.ui.address import Address
from mha_viz.ui.annotated import Annotated, annotated, bare, words_of
from mha_viz.ui.badges import badges
from mha_viz.ui.cache import office, ready
from mha_viz.ui.components.explorer import explorer
from mha_viz.ui.components.sentence import sentence
from mha_viz.ui.parts import complain, complain_later, guarded, message, remark, say_complaint, sent, whole
from mha_viz.ui.tray import Pin


@dataclass(frozen=True)
class Asked:
    """What the URL asks for (``where``), with the first example where it names no text."""

    text: str
    where: Address

    @property
    def shown(self) -> str:
        """The text as a sentence: CoNLL-U that was pasted is shown as its words."""
        found = self.gold()
        return found.text if found and found.pasted else self.text

    def to_pin(self, shown: str) -> str:
        """``shown`` so that a pinned head is read again from the same words: those of CoNLL-U are given, not found."""
        words = words_of(self.text) if shown == self.shown and not self.where.pair else None
        return bare(words) if words and words != words_of(shown) else shown

    def gold(self) -> Annotated | None:
        """The annotation that comes with the text, if any does and it can be read."""
        with suppress(CorpusError):
            return None if self.where.pair else annotated(self.text)
        return None


def asked() -> Asked:
    """What the URL asks for now."""
    where = address.read(st.query_params.to_dict())
    return Asked(examples()[0]["text"] if where.text is None else where.text, where)


@cache
def examples() -> tuple[dict[str, str], ...]:
    """The example sentences: text, look (what to look for), perhaps pair, and head and pin for the default model."""
    return tuple(json.loads(asset("examples.json").read_text("utf-8")))


# ---- Input --------------------------------------------------------------------------------------------


def ask(what: Asked) -> None:
    """The sentence in large type, examples and model menu. What to look for names heads of the default model."""
    model = what.where.model or catalog.default().name
    content = {
        "text": what.shown,
        "pair": what.where.pair,
        "look": _example(what).get("look", "") if model == catalog.DEFAULT else "",
        "model": model,
        "models": [{"name": m.name, "label": m.label} for m in catalog.offered()],
        "open": not catalog.hosted(),
        "examples": [{"text": e["text"], "pair": e.get("pair", ""), "look": e["look"]} for e in examples()],
    }
    sentence(content, "sentence", _on_read, _on_example, _on_model)


def _example(what: Asked) -> dict[str, str]:
    """The example that stands there, or nothing."""
    typed = (what.text, what.where.pair)
    return next((e for e in examples() if (e["text"], e.get("pair", "")) == typed), {})


@guarded()
def _on_read() -> None:
    typed = message("sentence", "read")
    text, pair, what = str(typed.get("text", "")), str(typed.get("pair", "")), asked()
    same = text == what.shown and not pair.strip()  # CoNLL-U stays what it is as long as nobody edits its words
    _read_next(what.text if same else text, pair)


@guarded()
def _on_example() -> None:
    index = whole(sent("sentence", "example"))
    if index is not None and 0 <= index < len(examples()):
        chosen = examples()[index]
        _read_next(chosen["text"], chosen.get("pair", ""), head=None, on=None)


def _read_next(text: str, pair: str, **changes: str | None) -> None:
    kept = address.fits(text, pair)
    short = (len(kept[0]), len(kept[1])) != (len(text), len(pair))
    first = kept[0] == examples()[0]["text"]
    changes |= dict.fromkeys(address.OF_THIS_TEXT) | ({} if pair.strip() else {"side": None})
    typed = f"{len(text)}-{len(pair)}" if short else None
    address.go(text=None if first else kept[0], pair=kept[1] if pair.strip() else None, typed=typed, **changes)


@guarded()
def _on_model() -> None:
    """A model whose files are here is read at once; else the picture on screen and its view stay until it is."""
    name = clean(str(sent("sentence", "model") or "")[:300])
    chosen = None if name == catalog.default().name else name
    with suppress(MhaVizError):
        if ready(catalog.resolve(name)):
            address.go(model=chosen, before=None, **dict.fromkeys(address.OF_THIS_MODEL))
            return
    address.go(model=chosen, before=reading.shown_model(asked().where))


# ---- The picture --------------------------------------------------------------------------------------


def draw(what: Asked, attention: Attention) -> None:
    """The drawing of a reading, with a word on what could not be read or followed."""
    where = what.where
    begin = start(what, attention)
    heads = (Head.parse(begin.head) if where.head is None else where.head,)
    wanted, odd = _there(attention, (*heads, *(Head(heads[0].layer, h) for h in where.on)))
    n = len(attention.text)
    odd += [*where.complaints, *(f"token {t}" for t in where.tokens if t >= n)]
    reading.say_cut(attention, where)
    reading.say_unknown(attention)
    if odd:
        remark(f"This link asks for what is not there ({', '.join(odd)}); the rest of it is shown.")
    if heads[0] not in wanted:
        wanted = (Head.parse(begin.head),)
    link = Link(*where.link, words=where.words) if where.link and max(where.link) < n else None
    found = what.gold()
    explorer(
        office().packet(attention, wanted, link, begin),
        badges(attention, found.sentence if found else None, st.query_params.get(tour.PARAMETER, "")[:20]),
        "explorer",
        _on_view,
        _on_tray,
    )
    say_complaint()
    if found is not None:
        gold.show(found, attention, wanted[0])
    else:
        _say_pasted(what)
        gold.propose(attention)
    takeaway.of_reading(attention, wanted, takeaway.view_of(st.query_params.to_dict(), _pin(begin, where)))


def _say_pasted(what: Asked) -> None:
    """Why CoNLL-U that was pasted could not be read, if so."""
    try:
        annotated(what.text)
    except CorpusError as error:
        complain(error)


def _pin(begin: Start, where: Address) -> str | None:
    """What is held when the URL says nothing of it: the first view's own pin, as long as its head is open."""
    return begin.pin if where.head is None else None


def _there(attention: Attention, heads: tuple[Head, ...]) -> tuple[tuple[Head, ...], list[str]]:
    """The heads that the model has, each once, and the names of the others."""
    good, odd = [], []
    for head in dict.fromkeys(heads):
        try:
            _ = attention[head]
            good.append(head)
        except UnknownHead:
            odd.append(str(head))
    return tuple(good), odd


def start(what: Asked, attention: Attention) -> Start:
    """What is open when the URL names no head."""
    if attention.model != catalog.DEFAULT:
        return Start()
    example = _example(what)
    return Start(example.get("head", "L3H1"), example.get("pin"))


@guarded()
def _on_view() -> None:
    """The person changed the view. A view of the text that stood there before says nothing of this one."""
    view = message("explorer", "view")
    what = asked()
    if view.get("of") == text_key(what.shown, what.where.pair, () if what.where.pair else words_of(what.text) or ()):
        address.go(**address.accepted(view))


@guarded()
def _on_tray() -> None:
    """Put a head of the reading on screen into the tray."""
    said = message("explorer", "tray")
    what = asked()
    try:
        pin = Pin(
            what.to_pin(what.shown), what.where.pair, str(said.get("model", "")), Head.parse(str(said.get("head")))
        )
        pins, _ = tray.read(what.where.tray)
        address.go(tray=tray.write(tray.add(pins, pin)))
    except MhaVizError as error:
        complain_later(error)


def warm_up() -> None:
    """Load the default model after the first picture is out. What is wrong with it is said when it is asked for."""
    with suppress(MhaVizError):
        first = catalog.default()
        if ready(first):
            office().warm(first)
