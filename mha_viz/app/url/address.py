"""The URL as the state of a page: what it may contain, and what it contains now.

Each run of a page reads the URL once (:func:`read_once`); no other module reads or writes it. Reading never raises:
values that are unknown or out of range are ignored and listed in ``ignored_parameters``.
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
from mha_viz.app.url.annotated_texts import AnnotatedText, find_annotation, format_bare_conllu, read_words
from mha_viz.app.url.minimal_pair import replace_word
from mha_viz.attention import Head
from mha_viz.attention.answers import SIDES
from mha_viz.errors import UnknownHead
from mha_viz.files.assets import asset_path
from mha_viz.heads import parse_heads
from mha_viz.request import BOTH, CROSS, FIELDS, METHODS, OFF_CHOICES, PARTS, TEXT, Request
from mha_viz.text import clean
from mha_viz.view.quantities import QUANTITIES
from mha_viz.view.settings import DEFAULTS, choose_default_scale, list_counting_settings, list_patterns

# Maximum bytes of all long parameters of a link together, percent-encoded. Many servers refuse addresses over 8 kB.
MAX_ENCODED = 7_000
LONG_PARAMETERS = ("text", "pair", "second", "target", "from", "like", "lesson", "tray")
CLASS = "class"  # the parameter of the view for a class
MAX_OTHER = 900  # maximum characters of any other parameter
MAX_PARAMETERS = 40  # maximum parameters of a link, twice as many as any page uses
MAX_NAME = 40  # maximum characters of a parameter's name
# Parameters with several values, separated by dots; older links repeat the name instead.
REPEATED_PARAMETERS = ("kinds",)

# The parameters of a view (the drawing reads the same ones from the address bar: browser/explorer).
VIEW_PATTERNS = list_patterns("explorer")
CASE = re.compile(rf"({VIEW_PATTERNS['head']})\.([qk])(\d{{1,4}})", re.ASCII)
PANEL_PATTERNS = list_patterns("compare")  # the parameters of a comparison
PANEL_PATTERNS["pin"] += "|none"  # "none": pin nothing, where a word would be pinned by default
# Parameters that contain numbers of panels or tokens of the comparison.
PANEL_PARAMETERS = list_counting_settings("panels")
TOKEN_PARAMETERS = (*list_counting_settings("tokens"), "q", "k")
QUESTION_PARAMETERS = ("place", "word")  # a masked token, and the word whose probability is followed there
# Parameters to remove with a new text, which has other tokens and another second text.
TEXT_PARAMETERS = (*TOKEN_PARAMETERS, "case", "second", "target", "from", "like", "in", "written", *QUESTION_PARAMETERS)
# Parameters to remove with another scene of the page *Why heads differ*, which has another run and other answers.
SCENE_PARAMETERS = ("guess", "run", "step", "removed", "arm", "snapshot", "trained", "task", "answer", "beside")
# Parameters to remove with a new model, which has other tokens and other heads.
MODEL_PARAMETERS = (*list_counting_settings("heads"), "off", "case", "written", *TOKEN_PARAMETERS, *QUESTION_PARAMETERS)
ANSWER_PATTERNS = {  # parameters about the model's answer
    "place": r"\d{1,4}",
    "part": "|".join(PARTS),
    "in": "|".join(OFF_CHOICES),
    "path": "|".join(SIDES),
    "written": r"\d{1,4}",
}
MAX_WORD = 60  # maximum characters of a followed word
MAX_PREFIX = 200  # maximum characters of the prefix
# Fields of the request that are free text.
TEXT_FIELDS = ("model", "text", "pair", "target", "source", "other", "word", "prefix")


class CaseInLink(NamedTuple):
    """A case opened from the Roles page: the head and the pinned word.

    The word is given by its number in the sentence, as query or key.
    """

    head: Head
    axis: Literal["q", "k"]
    word: int

    def __str__(self) -> str:
        return f"{self.head}.{self.axis}{self.word}"


@dataclass(frozen=True)
class Address:
    """The parsed URL. Missing parameters are None or empty.

    Attributes:
        request: the reading and the quantity on the page. Its ``part`` is the part of an encoder–decoder, its ``other``
            the sentence to compare with, its ``word`` the word whose probability is followed.
        is_source_empty: whether the field for the text that heads take their outputs from was emptied.
        previous_model: the model whose picture stays while the requested one is unavailable.
        typed_lengths: how many characters the visitor typed for the two sentences, if a link cannot hold all of them.
        head: the open head.
        other_heads: further open heads of the same layer.
        link: the link by which heads are ranked: (query, key).
        tokens: all tokens that ``pin`` and ``link`` refer to.
        is_in_words: whether the unit of the drawing is words rather than subwords.
        tray: the compared heads, encoded as in :mod:`mha_viz.app.url.comparison`.
        path: the side of the head at which paths from earlier heads end.
        third_text: the text that two others are compared with.
        case: the case of a role that is open.
        written_characters: the number of characters at the end of the text that the model wrote.
        ignored_parameters: the parameters that were ignored, as ``name=value``.
    """

    request: Request = field(default=Request(part=CROSS))
    is_source_empty: bool = False
    previous_model: str | None = None
    typed_lengths: tuple[int, int] | None = None
    head: Head | None = None
    other_heads: tuple[int, ...] = ()
    link: tuple[int, int] | None = None
    tokens: tuple[int, ...] = ()
    is_in_words: bool = True
    tray: str | None = None
    path: str = ""
    third_text: str = ""
    case: CaseInLink | None = None
    written_characters: int = 0
    ignored_parameters: tuple[str, ...] = field(default=())

    def get_method_fields(self, text: str) -> dict[str, Any]:
        """Return the fields of a request that say how heads are switched off in ``text``.

        If the outputs come from another text and the URL names none, that is ``text`` with a word replaced.
        """
        source = self.request.source if self.request.source or self.is_source_empty else replace_word(text)
        return {"method": self.request.method} | ({"source": source} if self.request.method == TEXT else {})

    def list_ignored(self, page: str) -> list[str]:
        """Return the ignored parameters that this page would have read, as ``name=value``."""
        return [
            parameter
            for parameter in self.ignored_parameters
            if parameter.partition("=")[0] not in lesson.list_foreign_parameters(page)
        ]

    def with_request(self, **fields: Any) -> Address:
        """Return the address with some fields of its request replaced."""
        return replace(self, request=replace(self.request, **fields))


@cache
def load_examples() -> tuple[dict[str, str], ...]:
    """Load the example sentences.

    Keys:
        text, pair: the sentence and, if any, its second sentence.
        look: what to look for.
        model: the model, if it is not the default one.
        arrows: whether to draw composition.
        head, pin: the head that opens for that model, and its pinned token.
        turns: heads that a first visit shows one after the other, each with its pinned token, if any, and
            a description.
    """
    return tuple(json.loads(asset_path("examples.json").read_text("utf-8")))


class Url:
    """A URL's parameters, cut to the accepted length, and the address and text that they describe."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self.parameters = cut_parameters(parameters)

    @cached_property
    def location(self) -> Address:
        """The address in the URL, parsed at first use."""
        return _make_address(self.parameters)

    @cached_property
    def text(self) -> str:
        """The text in the URL, or the first example."""
        return self.location.request.text if "text" in self.parameters else load_examples()[0]["text"]

    @cached_property
    def gold(self) -> AnnotatedText | None:
        """The annotation of the text; None if it has none or it cannot be read."""
        annotation = None if self.location.request.pair else find_annotation(self.text)
        return annotation if isinstance(annotation, AnnotatedText) else None

    @cached_property
    def sentence(self) -> str:
        """The text; for pasted CoNLL-U, its words joined by spaces."""
        return self.gold.text if self.gold and self.gold.is_pasted else self.text

    def get_full_text(self, shown_text: str) -> str:
        """Return the text to store with a compared head: ``shown_text`` or, for CoNLL-U, lines that hold its words."""
        words = read_words(self.text) if shown_text == self.sentence and not self.location.request.pair else None
        return format_bare_conllu(words) if words and words != read_words(shown_text) else shown_text


_url_of_run: ContextVar[Url] = ContextVar("url_of_this_run")


@contextmanager
def read_once() -> Iterator[list[str]]:
    """Read the URL once for all code in the block, and cut it to the accepted length.

    Yields the names of the parameters that were cut, except for the two sentences, for which the page has its own
    remark.
    """
    parameters = _read_parameters()
    url = Url(parameters)
    if url.parameters != parameters:
        # All at once, because each single change would send the whole URL.
        st.query_params.from_dict(url.parameters)
    sentence_names = ("text", "pair", "typed")
    token = _url_of_run.set(url)
    try:
        yield [n for n in parameters if len(url.parameters.get(n, "")) < len(parameters[n]) and n not in sentence_names]
    finally:
        _url_of_run.reset(token)


def _read_parameters() -> dict[str, str]:
    parameters = st.query_params.to_dict()
    return parameters | {
        name: ".".join(st.query_params.get_all(name)) for name in REPEATED_PARAMETERS if name in parameters
    }


def get_url() -> Url:
    """Return the URL that this run of the page has read or, in a callback or fragment, the current one."""
    return _url_of_run.get(None) or Url(_read_parameters())


def get_parameters() -> dict[str, str]:
    """Return the parameters of the URL, each with one value."""
    return dict(get_url().parameters)


def read(parameters: Mapping[str, str]) -> Address:
    """Parse the parameters of a URL."""
    return Url(parameters).location


def _make_request(parameters: Mapping[str, str], off: tuple[Head, ...], valid_values: Mapping[str, str]) -> Request:
    """Return the request in a URL with the heads ``off``. ``valid_values`` have matched their patterns."""
    texts = (_read_text(parameters, FIELDS[name].parameter) for name in TEXT_FIELDS)
    model, text, pair, target, source, other, word, prefix = texts
    method = parameters.get("how", METHODS[0])
    return Request(
        model,
        text,
        pair if pair.strip() else "",
        target=target if target.strip() else "",
        part=valid_values.get("part", CROSS),
        off=off,
        method=method if method in METHODS else METHODS[0],
        source=source,
        quantity=valid_values.get("shown", DEFAULTS["shown"]),
        place=int(valid_values["place"]) if "place" in valid_values else None,
        word=word[:MAX_WORD],
        other=other,
        off_in=valid_values.get("in", BOTH),
        prefix=prefix[:MAX_PREFIX],
    )


def _make_address(parameters: Mapping[str, str]) -> Address:
    matched_values, ignored_names = _match_patterns(parameters, VIEW_PATTERNS | PANEL_PATTERNS)
    off, case = parse_heads(parameters.get("off", "")), _parse_case(parameters.get("case"))
    is_method = parameters.get("how", METHODS[0]) in METHODS
    ignored_names += _list_invalid(
        off=off is not None, how=is_method, case=case is not None or "case" not in parameters
    )
    answer_values, unmatched_names = _match_patterns(parameters, ANSWER_PATTERNS)
    ignored_names += [
        name for name in unmatched_names if not (name == lesson.OLD_VIEW_PARAMETER and lesson.is_old_number(parameters))
    ]
    return Address(
        request=_make_request(parameters, off or (), {**matched_values, **answer_values}),
        is_source_empty=not parameters.get("from", TEXT).strip(),
        previous_model=_read_text(parameters, "before") or None,
        typed_lengths=_to_pair(_parse_numbers(parameters.get("typed"))),
        head=_parse_head(matched_values.get("head")),
        other_heads=_parse_numbers(matched_values.get("on")),
        link=_to_pair(_parse_numbers(matched_values.get("link"))),
        tokens=(*_parse_numbers(matched_values.get("pin")), *_parse_numbers(matched_values.get("link"))),
        is_in_words=matched_values.get("unit", "words") == "words",
        tray=parameters.get("tray"),
        path=answer_values.get("path", ""),
        third_text=_read_text(parameters, "like"),
        case=case,
        written_characters=int(answer_values.get("written", 0)),
        ignored_parameters=tuple(f"{name}={clean(parameters[name])[:30]}" for name in ignored_names),
    )


def read_switched_off(message: Mapping[str, object]) -> dict[str, Any]:
    """Return the fields of the request for heads that are off, from the browser's message about a reading.

    Without heads in the message, or if they cannot be read, no head is off.
    """
    location = read({name: str(message[name]) for name in ("off", "how", "from") if message.get(name)})
    return {"off": location.request.off, "method": location.request.method, "source": location.request.source}


def choose_scale(quantity: str | None) -> str | None:
    """Return the colour scale that a quantity opens with; None for the default.

    Quantities whose values are not shares of 1 have a scale per head.
    """
    shown = QUANTITIES.get(quantity or DEFAULTS["shown"])
    return choose_default_scale(shown.name) if shown and not shown.is_share else None


def _match_patterns(parameters: Mapping[str, str], patterns: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the parameters that match their patterns, and the names of those that do not."""
    present_parameters = {name: parameters[name] for name in patterns if name in parameters}
    mismatched_names = [
        name for name, value in present_parameters.items() if not re.fullmatch(patterns[name], value, flags=re.ASCII)
    ]
    return {name: value for name, value in present_parameters.items() if name not in mismatched_names}, mismatched_names


def cut_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """Cut the parameters to the accepted length.

    If a sentence is longer than any link of the app can hold, the parameter ``typed`` records its length.
    """
    cut_values = {
        name: _shorten(value, MAX_ENCODED) if name in LONG_PARAMETERS else value[:MAX_OTHER]
        for name, value in islice(parameters.items(), MAX_PARAMETERS)
        if len(name) <= MAX_NAME
    }
    lengths = [len(parameters.get(name, "")) for name in ("text", "pair")]
    if any(len(cut_values.get(name, "")) < length for name, length in zip(("text", "pair"), lengths, strict=True)):
        typed_lengths = _to_pair(_parse_numbers(cut_values.get("typed"))) or (0, 0)
        cut_values["typed"] = "-".join(
            str(max(pair_lengths)) for pair_lengths in zip(typed_lengths, lengths, strict=True)
        )
    return cut_values


def fit_texts(text: str, pair: str) -> tuple[str, str]:
    """Return the beginnings of both sentences that fit into a link together with the compared heads.

    A short sentence leaves more room for the other.
    """
    text, pair = (clean(sentence[:MAX_ENCODED]) for sentence in (text, pair))
    room = max(MAX_ENCODED // 2, count_room("text", "pair", "second"))
    first_sentence = _shorten(text, max(room // 2, room - len(quote(pair))))
    return first_sentence, _shorten(pair, room - len(quote(first_sentence)))


def count_room(*names: str) -> int:
    """Return how many bytes of this page's link are left for these parameters, given the other long ones."""
    return MAX_ENCODED - _count_encoded(get_url().parameters, [name for name in LONG_PARAMETERS if name not in names])


def _count_encoded(parameters: Mapping[str, str], names: Sequence[str]) -> int:
    return sum(len(quote(parameters.get(name, ""))) for name in names)


def _shorten(text: str, room: int) -> str:
    """Return the longest beginning of the text that takes at most ``room`` bytes when percent-encoded.

    Each different character is encoded only once.
    """
    text = text[:room]
    if len(quote(clean(text))) <= room:
        return text
    return text[: bisect_right(list(accumulate(map(_count_encoded_bytes, text))), room)]


@lru_cache(maxsize=4096)  # a text has few different characters, so this cache stays small
def _count_encoded_bytes(character: str) -> int:
    return len(quote(clean(character)))


def select_accepted(view: Mapping[str, object], patterns: Mapping[str, str] = VIEW_PATTERNS) -> dict[str, str | None]:
    """Return the parameters that a drawing may set: known names with valid values.

    The value None removes a parameter from the URL.
    """
    changes: dict[str, str | None] = {}
    for name, pattern in patterns.items():
        value = view.get(name)
        if value is None or (isinstance(value, str) and re.fullmatch(pattern, value, flags=re.ASCII)):
            changes[name] = value
    return changes


def parse_pair(value: str | None, count: int) -> tuple[int, int] | None:
    """Return the numbers of two panels in a value such as "0-1"; None if they are invalid or not below ``count``."""
    numbers = _to_pair(_parse_numbers(value))
    return numbers if numbers and max(numbers) < count and numbers[0] != numbers[1] else None


def is_class_view() -> bool:
    """Return whether the page is in the view for a class."""
    return get_url().parameters.get(CLASS) == "1"


def go(**changes: str | None) -> None:
    """Set parameters of the URL, as one step of the browser's history; None removes a parameter.

    Raises ComparisonFull if the compared heads no longer fit into the link.
    """
    old_parameters = get_parameters()
    new_parameters = {name: value for name, value in {**old_parameters, **changes}.items() if value is not None}
    if _count_encoded(new_parameters, ["tray"]) > max(
        _count_encoded(old_parameters, ["tray"]), MAX_ENCODED - _count_encoded(new_parameters, LONG_PARAMETERS[:-1])
    ):
        raise comparison.make_length_error()
    open_at(new_parameters)


def open_at(parameters: Mapping[str, str]) -> None:
    """Replace all parameters of the URL, as one step of the browser's history."""
    st.query_params.from_dict(parameters)
    if _url_of_run.get(None):
        _url_of_run.set(Url(parameters))


def _parse_head(name: str | None) -> Head | None:
    try:
        return Head.parse(name) if name else None
    except UnknownHead:
        return None


def _list_invalid(**validity: bool) -> list[str]:
    """Return the names of the parameters whose values are invalid."""
    return [name for name, is_valid in validity.items() if not is_valid]


def _parse_case(value: str | None) -> CaseInLink | None:
    match = CASE.fullmatch(value or "")
    return CaseInLink(Head.parse(match[1]), cast(Literal["q", "k"], match[2]), int(match[3])) if match else None


def _read_text(parameters: Mapping[str, str], name: str) -> str:
    return clean(parameters[name]) if parameters.get(name) else ""


def _parse_numbers(value: str | None) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"[0-9]{1,7}", value or ""))


def _to_pair(numbers: tuple[int, ...]) -> tuple[int, int] | None:
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None
