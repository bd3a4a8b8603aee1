"""Untrusted files: reading them in a child process gives the same results as in this one, and none stops the server."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mha_viz import errors
from mha_viz.corpus import grammar, reading, uploads
from mha_viz.corpus.conllu import format_conllu
from mha_viz.errors import CorpusError
from mha_viz.process import children
from mha_viz.study.child import mask_words
from tests import hostile, lanes
from tests.waiting import PATIENCE

FILES: dict[str, tuple[str, bytes]] = {
    "grammar": ("toy.conllu", format_conllu(grammar.corpus(12, 3).sentences).encode()),
    "plain": ("two.txt", "Zwei Sätze.\r\nHier, \u2028dort.\n\n".encode()),
    "marked": ("bom.txt", b"\xef\xbb\xbfOne line.\n"),
    "broken tree": ("b.conllu", b"1\tgrieves\t_\tX\t_\t_\t7\tdep\t_\t_\n\n"),
    "open bracket": ("o.conllu", b"1\ta\t_\tX\t_\t_\t0\troot\t_\tEntity=(secret\n\n"),
    "gap": (
        "gap.tsv",
        b"ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\n"
        b"1\tAnn met Bea and she left.\tshe\t16\tAnn\t0\tFALSE\tBea\t8\tFALSE\n",
    ),
    "empty": ("e.txt", b" \n"),
    "bytes": ("x.txt", b"\xff\xfe\x00"),
    "no table": ("x.tsv", b"a\tb\n"),
    "nine columns": ("n.conllu", b"1\ta\tb\n"),
}


def here(data: bytes, name: str) -> Any:
    """The result of reading a file in this process."""
    try:
        corpus = reading.parse_file(data, name)
    except CorpusError as error:
        return error.problem, error.remedy
    left_out = getattr(corpus, "left_out", ())
    return name, corpus.digest, uploads.count_words(corpus), left_out[: uploads.MAX_REASONS], data


def there(data: bytes, name: str) -> Any:
    """The result of a child process."""
    try:
        return tuple(uploads.parse_in_child(data, name))
    except CorpusError as error:
        return error.problem, error.remedy


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work of the child is done here."""

    def run(_: str, order: dict[str, Any], *__: Any, **___: Any) -> dict[str, Any]:
        try:
            return uploads._work(order, print, bool)
        except CorpusError as error:
            kind, problem, remedy = json.loads(json.dumps(children._describe_error(error)))
            raise getattr(errors, kind)(problem, remedy) from error

    monkeypatch.setattr(children, "run", run)


@pytest.mark.parametrize("kind", lanes.some(list(FILES), "grammar", "broken tree", "bytes"))
def test_what_is_said_of_a_file_is_what_reading_it_here_says(kind: str) -> None:
    name, data = FILES[kind]
    assert there(data, name) == here(data, name)


@pytest.mark.usefixtures("in_this_process")
def test_what_is_said_of_every_kind_of_file_is_what_reading_it_here_says() -> None:
    for name, data in FILES.values():
        assert there(data, name) == here(data, name), name


@pytest.mark.usefixtures("in_this_process")
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(
    st.one_of(
        st.binary(max_size=200),
        st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.lists(
            st.sampled_from(["1\ta\t_\tX\t_\t_\t0\troot\t_\t_", "2\tb\t_\tX\t_\t_\t1\tobj\t_\tEntity=(1)", "", "#"])
        )
        .map("\n".join)
        .map(str.encode),
    ),
    st.sampled_from(["a.txt", "b.conllu", "ç.tsv", "", 'quote".txt']),
)
def test_any_bytes_are_answered_as_reading_them_here_answers(data: bytes, name: str) -> None:
    assert there(data, name) == here(data, name)


@pytest.mark.usefixtures("in_this_process")
def test_a_text_without_blanks_is_no_single_word() -> None:
    name, data = FILES["gap"]
    longer = b"she left." + b"so,then," * 100
    assert uploads.count_words(reading.read_gap(data.decode(), name)) == 7
    assert there(data.replace(b"she left.", longer), name)[2] == 7 + 400


@pytest.mark.usefixtures("in_this_process")
def test_hostile_texts_go_through_as_they_are() -> None:
    for name, text in hostile.TEXTS.items():
        data = text[:2000].encode("utf-8", "surrogatepass")
        assert there(data, "x.txt") == here(data, "x.txt"), name


def test_a_file_that_takes_too_long_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    usual: Callable[..., Any] = children.run
    held = {"do": "hold"}
    monkeypatch.setattr(uploads, "BOUNDS", uploads.BOUNDS._replace(seconds=1))
    monkeypatch.setattr(children, "run", lambda _, __, *rest, **more: usual("tests.children", held, *rest, **more))
    with pytest.raises(CorpusError, match="This file took longer than 1 s to read"):
        uploads.parse_in_child(b"", "slow.txt")


def test_a_file_that_needs_too_much_memory_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "BOUNDS", uploads.BOUNDS._replace(megabytes=100, seconds=PATIENCE))
    with pytest.raises(CorpusError, match="This file needs more than 100 MB of memory"):
        uploads.parse_in_child(b"a b c d e f g h\n" * 200_000, "large.txt")


def test_the_words_of_a_file_never_come_to_the_process_of_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    data, answers = b"private words of a person\n" * 40_000, []
    usual: Callable[..., Any] = children.run

    def heard(*args: Any, **more: Any) -> Any:
        answers.append(usual(*args, **more))
        return answers[-1]

    monkeypatch.setattr(children, "run", heard)
    tracemalloc.start()
    uploads.parse_in_child(data, "large.txt")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "private" not in repr(answers[0])
    assert len(repr(answers[0])) < 1000
    assert most < 5 * len(data)


@pytest.mark.parametrize(
    ("line", "remainder"),
    [
        ("line 5: The tokenizer of m keeps nothing of word 2, “Miller”.", "keeps nothing of word 2, “…”."),
        ("line 5: word 2, “a” and ” b”. Rest", "word 2, “…”. Rest"),
        ("line 7: Entity=(Miller-x never closes: the rest.", "line 7: Entity=… never closes: the rest."),
        (
            "line 7: Entity=Miller) closes a mention that was never opened: x",
            "line 7: Entity=… closes a mention that was never opened: x",
        ),
        ("line 3: the ids are not 1 to 4 in order.", "the ids are not 1 to 4 in order."),
    ],
)
def test_what_is_kept_of_a_line_that_was_left_out_holds_none_of_its_words(line: str, remainder: str) -> None:
    assert remainder in mask_words(line)
    assert "Miller" not in mask_words(line)
