"""The Explore page's parts: what was asked, the reading of it, and what is said when it cannot be had."""

from __future__ import annotations

import json
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from functools import cache
from typing import Any

import streamlit as st

from mha_viz.assets import asset
from mha_viz.attention import Attention, Head
from mha_viz.errors import MhaVizError, UnknownHead
from mha_viz.figures.packet import Link, Start, packet, reading_key
from mha_viz.models import catalog, hub
from mha_viz.text import clean
from mha_viz.ui import address
from mha_viz.ui.address import Address
from mha_viz.ui.cache import office, ready
from mha_viz.ui.components.explorer import explorer
from mha_viz.ui.components.sentence import sentence
from mha_viz.ui.parts import complain, plain, remark

SOON = 0.4  # seconds without an answer before the page says that it is working


@dataclass(frozen=True)
class Asked:
    """A sentence, its pair and a model, after the defaults."""

    text: str
    pair: str
    model: str
    address: Address


def asked() -> Asked:
    """What the URL asks for, completed by the first example and the default model."""
    where = address.read(st.query_params.to_dict())
    text = examples()[0]["text"] if where.text is None else where.text
    return Asked(text, where.pair, where.model or catalog.offered()[0].name, where)


@cache
def examples() -> tuple[dict[str, str], ...]:
    """The example sentences: text, look (what to look for), perhaps pair, and head and pin for the default model."""
    return tuple(json.loads(asset("examples.json").read_text("utf-8")))


# ---- Input --------------------------------------------------------------------------------------------


def ask(what: Asked) -> None:
    """The sentence in large type, examples and model menu."""
    example = _example(what)
    content = {
        "text": what.text,
        "pair": what.pair,
        "look": example["look"] if example else "",
        "model": what.model,
        "models": [{"name": m.name, "label": m.label} for m in catalog.offered()],
        "open": not catalog.restricted(),
        "examples": [{"text": e["text"], "pair": e.get("pair", ""), "look": e["look"]} for e in examples()],
    }
    sentence(content, "sentence", _on_read, _on_example, _on_model)


def _example(what: Asked) -> dict[str, str] | None:
    return next((e for e in examples() if (e["text"], e.get("pair", "")) == (what.text, what.pair)), None)


def _on_read() -> None:
    typed = st.session_state["sentence"].read or {}
    text, pair = str(typed.get("text", "")), str(typed.get("pair", ""))
    _read_next(text, pair)


def _on_example() -> None:
    index = st.session_state["sentence"].example
    if isinstance(index, int) and 0 <= index < len(examples()):
        chosen = examples()[index]
        _read_next(chosen["text"], chosen.get("pair", ""), head=None, on=None)


def _on_model() -> None:
    st.session_state["previous_model"] = st.query_params.get("model")
    name = clean(str(st.session_state["sentence"].model or "")[:300])
    chosen = None if name == catalog.offered()[0].name else name
    address.go(model=chosen, head=None, on=None, **dict.fromkeys(address.OF_THIS_TEXT))


def _read_next(text: str, pair: str, **changes: str | None) -> None:
    kept = address.fits(text)
    if len(kept) < len(text):
        st.toast(f"{len(text):,} characters were typed; the first {len(kept):,} are read.")
    if not pair:
        changes["side"] = None
    first = kept == examples()[0]["text"]
    changes |= dict.fromkeys(address.OF_THIS_TEXT)
    address.go(text=None if first else kept, pair=address.fits(pair) or None, **changes)


# ---- Reading ------------------------------------------------------------------------------------------


def read(what: Asked) -> Attention | None:
    """The reading that was asked for, or the nearest one that can be shown, with a word on why; None without any."""
    try:
        model = catalog.resolve(what.model)
        if office().kept(model, what.text, what.pair) or ready(model):
            return _await(model, what)
    except MhaVizError as error:
        complain(error)
        return _meanwhile(what)
    download(model)
    return _meanwhile(what)


def _await(model: catalog.Model, what: Asked) -> Attention:
    future = office().reading(model, what.text, what.pair)
    try:
        return future.result(SOON)
    except NotYet:
        with st.spinner(f"{model.label} is reading…", show_time=True):
            return future.result()


def _meanwhile(what: Asked) -> Attention | None:
    """The picture that stays while a model cannot be had: the model read before, else the default one."""
    names = [st.session_state.get("previous_model") or catalog.offered()[0].name, catalog.offered()[0].name]
    for name in names:
        if name == what.model:
            continue
        try:
            model = catalog.resolve(name)
            if ready(model):
                attention = _await(model, what)
                remark(f"Meanwhile, the picture below is read by {model.label}.")
                return attention
        except MhaVizError:
            continue
    return None


# ---- Downloading --------------------------------------------------------------------------------------


def download(model: catalog.Model) -> None:
    """Progress of the model's download with a way out; the page goes on by itself when it is there."""
    failure = office().failures.get(model.name)
    if failure is not None:
        complain(failure)
        st.button("Try again", key="try_again", on_click=office().failures.drop, args=(model.name,))
        return
    try:
        job = hub.Download.start(model)
    except MhaVizError as error:
        complain(error)
        return
    _progress(job, model)


@st.fragment(run_every=0.5)
def _progress(job: Any, model: catalog.Model) -> None:
    if job.finished:
        if job.error is not None:
            office().failures.put(model.name, job.error)
        st.rerun()
    left, right = st.columns([5, 1], vertical_alignment="center")
    done, total = job.done_bytes / 1e6, job.total_bytes / 1e6
    words = f"Downloading {model.label}: {done:,.0f} of {total:,.0f} MB" if total else f"Looking for {model.label}…"
    left.progress(min(1.0, job.fraction), text=plain(words))
    right.button("Cancel", key="cancel_download", on_click=_cancel, args=(job,), width="stretch")


def _cancel(job: Any) -> None:
    job.cancel()
    address.go(model=st.session_state.get("previous_model"))


# ---- The picture --------------------------------------------------------------------------------------


def draw(what: Asked, attention: Attention) -> None:
    """The drawing of a reading, with a word on what could not be read or followed."""
    heads, complaints = _wanted(what, attention)
    say_cut(attention)
    say_unknown(attention)
    odd = ", ".join((*what.address.complaints, *complaints))
    if odd:
        remark(f"This link asks for what is not there ({odd}); the default is shown instead.")
    start = _start(what, attention)
    wanted = heads or (Head.parse(start.head),)
    n = len(attention.text)
    link = what.address.link
    known = Link(*link, words=what.address.words) if link and max(link) < n else None
    key = (reading_key(attention), wanted, known, start)
    data = office().packets.get(key) or office().packets.put(key, packet(attention, wanted, known, start))
    explorer(data, "explorer", _on_view)


def _wanted(what: Asked, attention: Attention) -> tuple[tuple[Head, ...], list[str]]:
    good, complaints = [], []
    for head in what.address.wanted:
        try:
            _ = attention[head]
            good.append(head)
        except UnknownHead:
            complaints.append(f"{head}")
    if what.address.head not in good:
        good = []
    return tuple(good), complaints


def _start(what: Asked, attention: Attention) -> Start:
    example = _example(what)
    if attention.model == catalog.DEFAULT:
        return Start((example or {}).get("head", "L3H1"), (example or {}).get("pin"))
    return Start()


def _on_view() -> None:
    address.go(**address.accepted(st.session_state["explorer"].view or {}))


def say_cut(attention: Attention) -> None:
    """Where a text was cut, and how much of it was read."""
    cut = attention.text.cut
    if cut is None:
        return
    typed = (attention.text.text, attention.text.pair)
    places = []
    for text, kept in zip(typed, cut.kept, strict=True):
        if kept < len(text):
            places.append(f"…{text[max(0, kept - 40) : kept]} ✂ {text[kept : kept + 40]}…")
    more = "more than " if cut.more else ""
    remark(
        f"Read {cut.limit:,} of {more}{cut.pieces:,} pieces; the rest is left out. Cut here: " + "  /  ".join(places)
    )


def say_unknown(attention: Attention) -> None:
    """Words that the tokenizer has no piece for: the model reads [UNK] in their place."""
    words = [t for t in attention.text.by_words().tokens if not t.special]
    unknown = list(dict.fromkeys(t.text for t in words if not t.known))
    if unknown and all(not t.known for t in words):
        remark("The tokenizer knows no word of this text; the model reads only [UNK], so these links say little.")
    elif unknown:
        listed = ", ".join(f"“{text[:20]}”" for text in unknown[:6])
        remark(f"Unknown to the tokenizer and read as [UNK]: {listed}{' and more' if len(unknown) > 6 else ''}.")


def warm_up() -> None:
    """Load the default model after the first picture is out."""
    first = catalog.offered()[0]
    if ready(first):
        office().warm(first)
