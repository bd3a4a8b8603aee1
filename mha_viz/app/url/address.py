"""The URL is the state of a page: what it may contain, and what it contains now.

A run of a page reads it once (:func:`read_once`); no other module reads or writes it. Reading never raises: values that
are out of range or unknown are ignored and named in ``complaints``.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from itertools import accumulate, islice
from typing import Any, Literal, NamedTuple, cast
from urllib.parse import quote

import streamlit as st

from mha_viz.app.url import comparison, lesson
from mha_viz.app.url.annotated import Annotated, annotated, bare, words_of
from mha_viz.app.url.minimal_pair import replaced
from mha_viz.attention import Head
from mha_viz.attention.answers import SIDES
from mha_viz.errors import UnknownHead
from mha_viz.files.assets import asset
from mha_viz.heads import from_link
from mha_viz.request import BOTH, CROSS, FIELDS, METHODS, OFF_IN, PARTS, TEXT, Request
from mha_viz.text import clean
from mha_viz.view.quantities import QUANTITIES
from mha_viz.view.settings import DEFAULTS, counting, default_scale, patterns_of

# The most bytes that the long parameters of a link take together, percent-encoded: many servers refuse addresses over 8
# kB.
MAX_ENCODED = 7_000
LONG = ("text", "pair", "second", "target", "from", "like", "lesson", "tray")
CLASS = "class"  # the parameter of the view for a class
MAX_OTHER = 900  # the most characters that are read of any other parameter
MAX_PARAMETERS = 40  # twice as many as any page uses
MAX_NAME = 40  # the most characters of a parameter's name
MANY = ("kinds",)  # parameters with several values, separated by dots; older links repeat the name instead

# The parameters of a view (the drawing reads the same ones from the address bar: browser/explorer).
VIEW = patterns_of("explorer")
CASE = re.compile(rf"({VIEW['head']})\.([qk])(\d{{1,4}})", re.ASCII)
COMPARED = patterns_of("compare")  # the parameters of a comparison
COMPARED["pin"] += "|none"  # where a word would be held at first
OF_THESE_PANELS = counting("panels")  # these count the panels and tokens of the comparison
OF_THESE_TOKENS = (*counting("tokens"), "q", "k")
OF_THIS_ANSWER = ("place", "word")  # a masked token, and the word whose probability is followed there
# A new text has other tokens and another second text.
OF_THIS_TEXT = (*OF_THESE_TOKENS, "case", "second", "target", "from", "like", "in", "written", *OF_THIS_ANSWER)
# Another scene of the page Why heads differ has another run and other answers.
OF_A_SCENE = ("guess", "run", "step", "removed", "arm", "snapshot", "trained", "task", "answer", "beside")
# A new model has other tokens and other heads.
OF_THIS_MODEL = (*counting("heads"), "off", "case", "written", *OF_THESE_TOKENS, *OF_THIS_ANSWER)
ANSWER = {  # about the answer of a model
    "place": r"\d{1,4}",
    "part": "|".join(PARTS),
    "in": "|".join(OFF_IN),
    "path": "|".join(SIDES),
    "written": r"\d{1,4}",
}
MAX_WORD = 60  # characters of a followed word
MAX_PREFIX = 200  # characters of what a model reads before a text
# Fields of the request that are any text.
TEXTS = ("model", "text", "pair", "target", "source", "other", "word", "prefix")


class CaseInLink(NamedTuple):
    """A case opened from the Roles page: the head, and the held word with its number in the sentence, as query or as
    key."""

    head: Head
    axis: Literal["q", "k"]
    word: int

    def __str__(self) -> str:
        return f"{self.head}.{self.axis}{self.word}"


@dataclass(frozen=True)
class Address:
    """What the URL asks for; None or empty for parameters that are missing.

    ``request``: what is read, and how, and which quantity of it is drawn; its ``part`` is the one whose attention is
    shown, its ``other`` the sentence that the page's own is compared with, its ``word`` the one whose probability is
    followed. ``emptied``: the text that heads take their outputs from was emptied. ``before``: the model whose picture
    stays while the requested one is unavailable. ``typed``: how many characters of the two sentences were typed, when a
    link could not hold them all. ``on``: heads of the layer drawn beside ``head``. ``tokens``: every token that ``pin``
    and ``link`` refer to. ``tray``: what :mod:`mha_viz.app.url.comparison` reads. ``path``: the side of the head at
    which paths from earlier ones end; ``like``: the text that both are compared with. ``case``: the case of a role that
    is open. ``written``: how many characters at the end of the text the model wrote.
    """

    request: Request = field(default=Request(part=CROSS))
    emptied: bool = False
    before: str | None = None
    typed: tuple[int, int] | None = None
    head: Head | None = None
    on: tuple[int, ...] = ()
    link: tuple[int, int] | None = None
    tokens: tuple[int, ...] = ()
    words: bool = True
    tray: str | None = None
    path: str = ""
    like: str = ""
    case: CaseInLink | None = None
    written: int = 0
    complaints: tuple[str, ...] = field(default=())

    def way(self, text: str) -> dict[str, Any]:
        """Return the fields of a request that say how heads are switched off in a text; what they take from another
        text is, unless the URL names one, from the same with a word replaced."""
        source = self.request.source if self.request.source or self.emptied else replaced(text)
        return {"method": self.request.method} | ({"source": source} if self.request.method == TEXT else {})

    def unused(self, page: str) -> list[str]:
        """Return the complaints that concern this page."""
        return [one for one in self.complaints if one.partition("=")[0] not in lesson.of_others(page)]

    def but(self, **fields: Any) -> Address:
        """Return the same address with other fields of the request in it."""
        return replace(self, request=replace(self.request, **fields))


@cache
def examples() -> tuple[dict[str, str], ...]:
    """Return the example sentences: text, look (what to look for), pair (if any), model (if not the default one),
    arrows (if composition is drawn), and head and pin for that model; ``turns``: the heads that a first visit shows in
    turn, each with the token that is held, if one is, and what it does."""
    return tuple(json.loads(asset("examples.json").read_text("utf-8")))


class Url:
    """The parameters of a URL, each with one value and as long as is read, the address in them, and the text."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.parameters = bounded(given)

    @cached_property
    def where(self) -> Address:
        """What the URL asks for, parsed when it is first used."""
        return _address(self.parameters)

    @cached_property
    def text(self) -> str:
        """The text, or the first example if the URL has none."""
        return self.where.request.text if "text" in self.parameters else examples()[0]["text"]

    @cached_property
    def gold(self) -> Annotated | None:
        """The annotation of the text, if it has any and it can be read."""
        annotation = None if self.where.request.pair else annotated(self.text)
        return annotation if isinstance(annotation, Annotated) else None

    @cached_property
    def sentence(self) -> str:
        """The text as a sentence: of pasted CoNLL-U, its words."""
        return self.gold.text if self.gold and self.gold.pasted else self.text

    def to_pin(self, shown: str) -> str:
        """Return the text to store with a compared head, so that it is read again as the same words: for CoNLL-U, the
        annotation rather than ``shown``."""
        words = words_of(self.text) if shown == self.sentence and not self.where.request.pair else None
        return bare(words) if words and words != words_of(shown) else shown


_held: ContextVar[Url] = ContextVar("url_of_this_run")


@contextmanager
def read_once() -> Iterator[list[str]]:
    """Read the URL once for all that runs in the block, and cut it to the part that is read. Yields the names of the
    parameters that were cut, except for the two sentences, whose cut the page reports."""
    given = _read_parameters()
    current = Url(given)
    if current.parameters != given:
        st.query_params.from_dict(current.parameters)  # all together: each single change would send the whole URL
    counted = ("text", "pair", "typed")
    token = _held.set(current)
    try:
        yield [n for n in given if len(current.parameters.get(n, "")) < len(given[n]) and n not in counted]
    finally:
        _held.reset(token)


def _read_parameters() -> dict[str, str]:
    given = st.query_params.to_dict()
    return given | {name: ".".join(st.query_params.get_all(name)) for name in MANY if name in given}


def url() -> Url:
    """Return the URL as the run of the page holds it; in a callback or a part that runs by itself, as it is now."""
    return _held.get(None) or Url(_read_parameters())


def now() -> dict[str, str]:
    """Return the parameters of the URL, each with one value."""
    return dict(url().parameters)


def read(parameters: Mapping[str, str]) -> Address:
    """Return the address in a URL's parameters."""
    return Url(parameters).where


def _request(parameters: Mapping[str, str], off: tuple[Head, ...], valid: Mapping[str, str]) -> Request:
    """Return the request, with these heads ``off``; ``valid``: the values that match their patterns."""
    texts = (_text(parameters, FIELDS[name].parameter) for name in TEXTS)
    model, text, pair, target, source, other, word, prefix = texts
    how = parameters.get("how", METHODS[0])
    return Request(
        model,
        text,
        pair if pair.strip() else "",
        target=target if target.strip() else "",
        part=valid.get("part", CROSS),
        off=off,
        method=how if how in METHODS else METHODS[0],
        source=source,
        quantity=valid.get("shown", DEFAULTS["shown"]),
        place=int(valid["place"]) if "place" in valid else None,
        word=word[:MAX_WORD],
        other=other,
        off_in=valid.get("in", BOTH),
        prefix=prefix[:MAX_PREFIX],
    )


def _address(parameters: Mapping[str, str]) -> Address:
    good, odd = _matching(parameters, VIEW | COMPARED)
    off, case = from_link(parameters.get("off", "")), _case(parameters.get("case"))
    is_way = parameters.get("how", METHODS[0]) in METHODS
    odd += _misfits(off=off is not None, how=is_way, case=case is not None or "case" not in parameters)
    chosen, strange = _matching(parameters, ANSWER)
    odd += [name for name in strange if not (name == lesson.OLD_NUMBER and lesson.is_old_number(parameters))]
    return Address(
        request=_request(parameters, off or (), {**good, **chosen}),
        emptied=not parameters.get("from", TEXT).strip(),
        before=_text(parameters, "before") or None,
        typed=_two(_numbers(parameters.get("typed"))),
        head=_head(good.get("head")),
        on=_numbers(good.get("on")),
        link=_two(_numbers(good.get("link"))),
        tokens=(*_numbers(good.get("pin")), *_numbers(good.get("link"))),
        words=good.get("unit", "words") == "words",
        tray=parameters.get("tray"),
        path=chosen.get("path", ""),
        like=_text(parameters, "like"),
        case=case,
        written=int(chosen.get("written", 0)),
        complaints=tuple(f"{name}={clean(parameters[name])[:30]}" for name in odd),
    )


def switched_off_in(message: Mapping[str, object]) -> dict[str, Any]:
    """Return the fields of the request for the reading that a browser's message is about: the heads that are off, and
    how; none if the message names none or cannot be read."""
    where = read({name: str(message[name]) for name in ("off", "how", "from") if message.get(name)})
    return {"off": where.request.off, "method": where.request.method, "source": where.request.source}


def scale_of(quantity: str | None) -> str | None:
    """Return the colour scale with which a quantity opens: per head where its numbers are no shares of 1; None for the
    default."""
    drawn = QUANTITIES.get(quantity or DEFAULTS["shown"])
    return default_scale(drawn.name) if drawn and not drawn.is_share else None


def _matching(parameters: Mapping[str, str], patterns: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the parameters that match their patterns, and the names of those that do not."""
    given = {name: parameters[name] for name in patterns if name in parameters}
    odd = [name for name, value in given.items() if not re.fullmatch(patterns[name], value, flags=re.ASCII)]
    return {name: value for name, value in given.items() if name not in odd}, odd


def bounded(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters, cut to the length that is read. If a sentence is longer than any link of the app holds,
    ``typed`` records its length, as it does for a sentence that was typed."""
    short = {
        name: _shortened(value, MAX_ENCODED) if name in LONG else value[:MAX_OTHER]
        for name, value in islice(parameters.items(), MAX_PARAMETERS)
        if len(name) <= MAX_NAME
    }
    lengths = [len(parameters.get(name, "")) for name in ("text", "pair")]
    if any(len(short.get(name, "")) < length for name, length in zip(("text", "pair"), lengths, strict=True)):
        typed = _two(_numbers(short.get("typed"))) or (0, 0)
        short["typed"] = "-".join(str(max(both)) for both in zip(typed, lengths, strict=True))
    return short


def fits(text: str, pair: str) -> tuple[str, str]:
    """Return the beginnings of both sentences that fit into a link with the compared heads; a short one leaves its room
    to the other."""
    text, pair = (clean(typed[:MAX_ENCODED]) for typed in (text, pair))
    room = max(MAX_ENCODED // 2, room_for("text", "pair", "second"))
    first = _shortened(text, max(room // 2, room - len(quote(pair))))
    return first, _shortened(pair, room - len(quote(first)))


def room_for(*names: str) -> int:
    """Return the bytes that are left for these parameters in the link of this page, beside its other long ones."""
    return MAX_ENCODED - _length(url().parameters, [name for name in LONG if name not in names])


def _length(parameters: Mapping[str, str], names: Sequence[str]) -> int:
    return sum(len(quote(parameters.get(name, ""))) for name in names)


def _shortened(text: str, room: int) -> str:
    """Return the longest beginning that takes at most ``room`` bytes, percent-encoded. Each different character is
    encoded once."""
    text = text[:room]
    if len(quote(clean(text))) <= room:
        return text
    return text[: bisect_right(list(accumulate(map(_encoded_length, text))), room)]


@lru_cache(maxsize=4096)  # a text has few different characters, so this cache stays small
def _encoded_length(character: str) -> int:
    return len(quote(clean(character)))


def accepted(view: Mapping[str, object], patterns: Mapping[str, str] = VIEW) -> dict[str, str | None]:
    """Return the parameters that a drawing may set: known names with valid values; None removes a parameter from the
    URL."""
    changes: dict[str, str | None] = {}
    for name, pattern in patterns.items():
        value = view.get(name)
        if value is None or (isinstance(value, str) and re.fullmatch(pattern, value, flags=re.ASCII)):
            changes[name] = value
    return changes


def pair_of(value: str | None, count: int) -> tuple[int, int] | None:
    """Return the numbers of the two panels that "0-1" names; None for anything else, such as a number not below
    ``count``."""
    two = _two(_numbers(value))
    return two if two and max(two) < count and two[0] != two[1] else None


def in_class() -> bool:
    """Return True if the page is in the view for a class."""
    return url().parameters.get(CLASS) == "1"


def go(**changes: str | None) -> None:
    """Set parameters of the URL (None removes one) as one step of the browser's history. Raises ComparisonFull if the
    compared heads no longer fit into the link."""
    before = now()
    after = {name: value for name, value in {**before, **changes}.items() if value is not None}
    if _length(after, ["tray"]) > max(_length(before, ["tray"]), MAX_ENCODED - _length(after, LONG[:-1])):
        raise comparison.too_long()
    open_at(after)


def open_at(parameters: Mapping[str, str]) -> None:
    """Set all parameters of the URL as one step of the browser's history."""
    st.query_params.from_dict(parameters)
    if _held.get(None):
        _held.set(Url(parameters))


def _head(name: str | None) -> Head | None:
    try:
        return Head.parse(name) if name else None
    except UnknownHead:
        return None


def _misfits(**fits: bool) -> list[str]:
    return [name for name, is_fit in fits.items() if not is_fit]


def _case(value: str | None) -> CaseInLink | None:
    match = CASE.fullmatch(value or "")
    return CaseInLink(Head.parse(match[1]), cast(Literal["q", "k"], match[2]), int(match[3])) if match else None


def _text(parameters: Mapping[str, str], name: str) -> str:
    return clean(parameters[name]) if parameters.get(name) else ""


def _numbers(value: str | None) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"[0-9]{1,7}", value or ""))


def _two(numbers: tuple[int, ...]) -> tuple[int, int] | None:
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None
