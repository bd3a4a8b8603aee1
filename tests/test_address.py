"""What a URL may contain: any value may come in, only valid ones are used."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz.app.url import address
from mha_viz.app.url.address import (
    LONG_PARAMETERS,
    MAX_ENCODED,
    MAX_OTHER,
    VIEW_PATTERNS,
    Address,
    CaseInLink,
    cut_parameters,
    fit_texts,
    read,
    select_accepted,
)
from mha_viz.attention import Head
from mha_viz.errors import UnknownHead
from mha_viz.figures.layout.packet import build_packet
from mha_viz.files.assets import page_files
from mha_viz.request import Request
from mha_viz.text import clean
from tests import hostile, lanes
from tests.page_scripts import ask_packet
from tests.page_session import PageSession
from tests.readings import reading

GOOD = {
    "head": ["L0H0", "L23H15", "l3h1"],
    "on": ["0", "1.2", "11.3.7"],
    "pin": ["q0", "k12", "q3k4"],
    "link": ["0-0", "10-2"],
    "unit": ["words", "pieces"],
    "special": ["keep", "hide", "rescale"],
    "links": ["all", "top1", "top10", "min0.05", "mass0.9"],
    "scale": ["fixed", "head", "row", "log"],
    "side": ["all", "aa", "ab", "ba", "bb"],
    "shown": ["weight", "norm", "rollout"],
    "roles": ["on", "off"],
    "arrows": ["on"],
}
BAD = {
    "head": ["", "3-1", "L1", "L1000H0", "L-1H0", "L٣H١", " L1H1", "L1H1\n", "H1L1"],
    "on": ["", ".", "1.", "1,2", "-1", "1000"],
    "pin": ["", "q", "k-1", "k1q2", "q12345", "Q1"],
    "link": ["", "1", "1-", "-1-2", "1-2-3", "12345-0", "1–2"],
    "unit": ["", "Words", "syllables", "words\n"],
    "special": ["", "maybe", "keep "],
    "links": ["", "top0", "top11", "top", "min1.5", "min.5", "min0.123", "mass7.0", "minnan", "mass1e400", "min0,5"],
    "scale": ["", "<script>", "LOG"],
    "side": ["", "?", "AB", "ac"],
    "shown": ["", "saliency", "NORM", "norm "],
    "roles": ["", "yes", "ON", "on "],
    "arrows": ["", "off", "ON"],
}


def last(values: dict[str, list[str]]) -> dict[str, str]:
    """The parameters that Streamlit passes on if some are repeated."""
    return {name: several[-1] for name, several in values.items()}


def beginning(text: str) -> str:
    """The part of a text that is read from a link: the longest beginning that a link could carry, encoded."""
    text = clean(text[:MAX_ENCODED])
    too_long = bisect_right(range(len(text) + 1), MAX_ENCODED, key=lambda length: len(quote(text[:length])))
    return text[: too_long - 1]


# ---- Reading ---------------------------------------------------------------------------------------------


def test_an_empty_address_asks_for_nothing() -> None:
    assert read({}) == Address()


@pytest.mark.parametrize("name", ["L3H1", "l3h1", "L012H003", "L1234H1", "L3", "H3", "LH", "3-1", "L3H1.L3H2", "L٣H1"])
def test_links_and_calls_name_heads_alike(name: str) -> None:
    try:
        head = Head.parse(name)
    except UnknownHead:
        assert not read({"head": name}).head
        assert "off=" in read({"off": name.replace(".", "-")}).ignored_parameters[0]
    else:
        assert read({"head": name}).head == head
        assert read({"off": f"{name}.L0H0"}).request.off == (Head(0, 0), head)


def test_a_full_address() -> None:
    url = {"text": "a b", "pair": "c", "model": "gpt2", "before": "toy", "typed": "9000-1"}
    url |= {"head": "L3H1", "on": "4.1.0", "pin": "q7", "link": "10-2", "unit": "pieces"}
    assert read(url) == Address(
        Request("gpt2", "a b", "c", part="cross"),
        previous_model="toy",
        typed_lengths=(9000, 1),
        head=Head(3, 1),
        other_heads=(4, 1, 0),
        link=(10, 2),
        tokens=(7, 10, 2),
        is_in_words=False,
    )


def test_a_second_sentence_of_spaces_is_none() -> None:
    assert read({"pair": " \t"}).request.pair == ""


def test_an_empty_text_is_a_text_and_an_empty_model_is_none() -> None:
    assert read({"text": ""}).request.text == ""
    assert read({"model": ""}).request.model == ""


def test_what_is_understood_draws_no_complaint() -> None:
    for name, value in [(n, v) for n, values in GOOD.items() for v in values]:
        assert read({name: value}).ignored_parameters == (), (name, value)


def test_what_is_not_understood_is_named_and_left_aside() -> None:
    for name, value in [(n, v) for n, values in BAD.items() for v in values]:
        where = read({name: value, "text": "kept"})
        assert where.ignored_parameters == (f"{name}={value[:30]}",)
        assert where == Address(Request(text="kept", part="cross"), ignored_parameters=where.ignored_parameters), (
            name,
            value,
        )


def test_every_parameter_of_a_view_is_tried() -> None:
    assert set(GOOD) == set(BAD) == set(VIEW_PATTERNS)


def test_hostile_values_never_raise() -> None:
    for name, values in hostile.URL_VALUES.items():
        for parameters in (last(values), {n: several[0] for n, several in values.items()}):
            where = read(parameters)
            assert all(len(c) <= 40 for c in where.ignored_parameters), name
            if "text" in parameters:
                assert where.request.text == beginning(parameters["text"]), name


@pytest.mark.parametrize("text", hostile.KINDS.values(), ids=hostile.KINDS)
def test_hostile_texts_are_kept_wherever_they_stand(text: str) -> None:
    where = read(dict.fromkeys(("text", "pair", "model", *VIEW_PATTERNS), text))
    assert where.request.texts == (beginning(text), beginning(text) if text.strip() else "")
    assert [c.partition("=")[0] for c in where.ignored_parameters] == list(VIEW_PATTERNS)
    "".join((*where.request.texts, where.request.model, *where.ignored_parameters)).encode()  # nothing half


@given(st.dictionaries(st.sampled_from([*VIEW_PATTERNS, "text", "pair", "model", "x"]), st.text(max_size=12)))
def test_anything_can_be_read(parameters: dict[str, str]) -> None:
    where = read(parameters)
    odd = {c.partition("=")[0] for c in where.ignored_parameters}
    assert odd <= set(parameters)
    assert odd.isdisjoint(n for n, v in parameters.items() if v in GOOD.get(n, []))


@pytest.mark.parametrize(
    ("name", "sign"), lanes.pair_values(LONG_PARAMETERS, ["a", " ", "猫", "👩", "\ud83d", "\0"]), ids=ascii
)
def test_no_sentence_of_a_link_is_read_further_than_a_link_of_ours_would_go(name: str, sign: str) -> None:
    (value,) = (v for n, v in cut_parameters({name: sign * 100_000}).items() if n == name)
    room = MAX_ENCODED - len(quote(clean(sign)))
    assert room < len(quote(clean(value))) <= MAX_ENCODED


def test_other_parameters_are_read_to_a_few_hundred_characters() -> None:
    for name in ("model", "before", "with", "run", "corpus", "relation", "anything", *VIEW_PATTERNS):
        assert len(cut_parameters({name: "a" * 100_000})[name]) == MAX_OTHER
        where = read({name: "a" * 100_000})
        assert max(len(part or "") for part in (where.request.model, where.previous_model)) <= MAX_OTHER, name


def test_a_sentence_that_is_cut_as_it_is_read_counts_as_one_that_was_typed() -> None:
    assert read({"text": "a" * 9_000}).typed_lengths == (9_000, 0)
    assert read({"text": "a", "pair": "b" * 8_000}).typed_lengths == (1, 8_000)
    assert read({"text": "a" * 9_000, "typed": "20000-3"}).typed_lengths == (20_000, 3)
    assert read({"text": "a" * MAX_ENCODED}).typed_lengths is None


@settings(max_examples=100 if lanes.everything else 25)
@given(
    st.dictionaries(
        st.sampled_from([*LONG_PARAMETERS, "model", "typed", "x"]), st.text(max_size=12).map(lambda t: t * 900)
    )
)
def test_a_link_that_was_cut_is_cut_no_further(parameters: dict[str, str]) -> None:
    once = cut_parameters(parameters)
    assert cut_parameters(once) == once
    assert read(once) == read(parameters)


# ---- Writing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", hostile.KINDS.values(), ids=hostile.KINDS)
def test_a_link_carries_the_beginning_of_any_text(text: str) -> None:
    beginning, none = fit_texts(text, "")
    assert none == ""
    assert clean(text).startswith(beginning)
    assert len(quote(beginning)) <= MAX_ENCODED
    assert fit_texts(beginning, "") == (beginning, "")
    assert len(beginning) >= min(len(text), 512), "what a model can read is carried whole"


@given(st.text(max_size=9000), st.text(max_size=9000))
def test_both_sentences_share_the_room_of_a_link(text: str, pair: str) -> None:
    beginnings = fit_texts(text, pair)
    assert clean(text).startswith(beginnings[0])
    assert clean(pair).startswith(beginnings[1])
    assert len(quote(beginnings[0])) + len(quote(beginnings[1])) <= MAX_ENCODED
    for typed, rest in zip((text, pair), beginnings, strict=True):
        assert rest == clean(typed) or len(quote(rest)) >= MAX_ENCODED * 0.4, "nobody is crowded out"


@given(st.text(max_size=200))
def test_what_a_link_carries_reads_back(text: str) -> None:
    beginning, _ = fit_texts(text, "")
    assert read({"text": beginning}).request.text == beginning


def test_a_drawing_sets_only_what_it_may() -> None:
    view = {"head": "L1H2", "pin": None, "text": "other", "model": "x", "unit": "words", "scale": "<script>", "on": 3}
    assert select_accepted(view) == {
        "head": "L1H2", "pin": None, "unit": "words", "link": None, "special": None, "links": None, "side": None,
        "roles": None, "arrows": None, "shown": None,
    }  # fmt: skip


@given(st.dictionaries(st.sampled_from([*VIEW_PATTERNS, "text"]), st.none() | st.integers() | st.text(max_size=8)))
def test_what_a_drawing_sets_is_understood_again(view: dict[str, Any]) -> None:
    assert read({n: v for n, v in select_accepted(view).items() if v is not None}).ignored_parameters == ()


# ---- The drawing reads the same address bar ---------------------------------------------------------------


def test_python_and_javascript_accept_the_same_values_heads_and_tokens() -> None:
    raw = build_packet(reading(24, 16, (1,) * 8, (1,) * 3), [Head(0, 0)])
    tried = [(n, v) for n in VIEW_PATTERNS if n not in ("on", "roles", "arrows") for v in [*GOOD[n], *BAD[n]]]
    queries = ["", *(f"{name}={quote(value)}" for name, value in tried)]
    default, *views = ask_packet(*[{"packet": raw, "ask": "view", "query": query} for query in queries])
    for (name, value), view in zip(tried, views, strict=True):
        if name == "head":
            expected = read({"head": value}).head or Head(0, 0)
            assert divmod(view["head"], 16) == tuple(expected), value
        elif name == "link":
            asked = read({"link": value}).link
            assert view["link"] == (asked and {"query": asked[0], "key": asked[1]}), value
        elif name == "pin":
            assert (view["pin"] is not None) == (value in GOOD["pin"]), value
        else:
            assert view[name] == (value if value in GOOD[name] else default[name]), (name, value)
            assert {**view, name: default[name]} == default


def test_a_url_of_many_parameters_is_cut_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[dict[str, str]] = []

    class Given(dict[str, str]):
        def to_dict(self) -> dict[str, str]:
            return dict(self)

        def get_all(self, name: str) -> list[str]:
            return [self[name]]

        def from_dict(self, changed: dict[str, str]) -> None:
            written.append(changed)

    given = Given({f"name{i}": "x" * 600 for i in range(3000)} | {"y" * 100: "1"})
    monkeypatch.setattr(address.st, "query_params", given)
    with address.read_once() as cut_short:
        assert cut_short
        assert address.get_parameters() == written[0]
    assert len(written) == 1, "each change by itself would send the whole URL"
    assert len(written[0]) == address.MAX_PARAMETERS
    assert all(len(value) <= address.MAX_OTHER for value in written[0].values())


@pytest.mark.parametrize("page", page_files())
def test_a_run_of_a_page_reads_the_url_once(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            calls.append(function.__name__)
            return function(*given)

        return call

    for function in (address._read_parameters, address._make_address):
        monkeypatch.setattr(address, function.__name__, counted(function))
    PageSession({"text": "The cat sat.", "model": "toy"}, f"pages/{page_files()[page].name}")
    assert sorted(calls) == ["_make_address", "_read_parameters"]


def test_a_case_names_a_head_and_a_word_as_query_or_key() -> None:
    assert read({"case": "L3H1.q12"}).case == CaseInLink(Head(3, 1), "q", 12)
    assert str(CaseInLink(Head(3, 1), "k", 0)) == "L3H1.k0"
    for odd in ("L3H1", "L3H1.q", "q3", "L3H1.q3.q4", "L3H1.q٣"):
        assert read({"case": odd}).case is None
        assert read({"case": odd}).ignored_parameters == (f"case={odd}",)
    assert read({}).ignored_parameters == ()
