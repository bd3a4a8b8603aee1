"""Minimal pairs in files and lists, the built-in ones, and the numbers about them, worked out by hand."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mha_viz.analysis.findings import Finding
from mha_viz.analysis.intervals import newcombe_interval, wilson_interval
from mha_viz.analysis.pairs import ACCURACY_COLUMNS, NEED_COLUMNS, PAIR_COLUMNS, MinimalPairs, sign_test
from mha_viz.attention import Head
from mha_viz.corpus import built_in_pairs, limits
from mha_viz.corpus.lexicon import VOCABULARY
from mha_viz.corpus.pairs import BUILT_IN_PAIRS, NO_KIND, Pair, parse_pairs, read_pairs
from mha_viz.errors import CorpusError, CorpusMissing, SettingError
from tests.hostile import TEXTS

BLIMP = [
    {"sentence_good": "Who should Derek hug?", "sentence_bad": "Who should Derek hug Al?", "UID": "wh", "pairID": "0"},
    {"sentence_good": "Cats annoy Tim.", "sentence_bad": "Cats annoys Tim.", "field": "morphology"},
]


def test_a_file_has_columns_or_lines_as_blimp_publishes_them(tmp_path: Path) -> None:
    rows, lines = tmp_path / "rows.tsv", tmp_path / "blimp.jsonl"
    rows.write_text("The dog barks .\tThe dog bark .\tagreement\n\nShe sings .\t Her sings . \r\n", "utf-8")
    assert read_pairs(rows).pairs == (
        Pair("The dog barks .", "The dog bark .", "agreement", 1),
        Pair("She sings .", "Her sings .", NO_KIND, 3),
    )
    lines.write_text("\n".join(map(json.dumps, BLIMP)), "utf-8")
    read = read_pairs(str(lines))
    assert (read.name, [pair.kind for pair in read.pairs]) == ("blimp.jsonl", ["wh", NO_KIND])
    assert read.pairs[1][:2] == ("Cats annoy Tim.", "Cats annoys Tim.")
    packed = tmp_path / "blimp.jsonl.gz"
    packed.write_bytes(gzip.compress(lines.read_bytes()))
    assert read_pairs(packed) == read


def test_a_list_has_pairs_with_or_without_a_kind() -> None:
    read = read_pairs([("a b", "b a"), ["c d", "d c", "order"]])
    assert read.pairs == (Pair("a b", "b a", NO_KIND, 1), Pair("c d", "d c", "order", 2))
    assert read_pairs([("a b", "b a")]).pairs == (Pair("a b", "b a", "", 1),)
    assert read_pairs(read) is read
    assert read_pairs(read.pairs).digest == read.digest != read_pairs([("a b", "b a")]).digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "p.tsv is empty. Expected one pair per line"),
        (" \n\t\n", "p.tsv is empty"),
        ("The dog barks .\n", "p.tsv, line 1: 1 column. Expected GOOD, BAD and optionally KIND, separated by tabs"),
        ("a b\tb a\nc\td\te\tf\n", "p.tsv, line 2: 4 columns"),
        ("a b\t\n", "p.tsv, line 1: the bad sentence is empty"),
        ("\tb a\tkind\n", "p.tsv, line 1: the good sentence is empty"),
        ("sentence_good\tsentence_bad\tUID\na b\tb a\n", "line 1: “sentence_good” and “sentence_bad” are a heading"),
        ("Good\tBad\na b\tb a\n", "are a heading, not sentences. Delete the line."),
        ("a b\tb a\na  b\ta b\n", "p.tsv, line 2: both sentences are the same, “a  b”. Change a word"),
        ("a b\tb a\tx\nc d\td c\t All\n", "p.tsv, line 2: “All” is not the name of a kind"),
        ('{"sentence_good": "a", "sentence_bad": "b", "UID": "all"}', "it stands for all pairs. Choose another name."),
        ("a b\tb a\t" + "k" * 101, "the kind “kkkk"),
        ("a" * 10_001 + "\tb a", "the good sentence has 10,001 characters; at most 10,000 are read"),
        ("a" * 100_001, "line 1: 100,001 characters; at most 100,000"),
        ("\n".join(f"a b\tb a\tkind {number}" for number in range(201)), "is kind number 201; at most 200"),
        ('{"sentence_good": "a"}', "line 1: sentence_bad is missing or empty. Expected {“sentence_good”"),
        ('{"sentence_good": "a", "sentence_bad": 3}', "is not a pair"),
        ('{"sentence_good": "a", "sentence_bad": "b", "UID": 3}', "is not a pair"),
        ('{"sentence_good": "a", "sentence_bad": "b"}\n[1]', "line 2: '[1]' is not a pair"),
        ('{"sentence_good": "a", ', "line 1: not valid JSON"),
        ('{"a": ' * 9000, "line 1: not valid JSON"),
        ('{"sentence_good": "a\\ud83d", "sentence_bad": "b"}', "has a character that is not text"),
        ('{"sentence_good": "a", "sentence_bad": "b\\u0000"}', "has a character that is not text"),
    ],
    ids=lambda value: value[:30].strip(),
)
def test_a_file_that_cannot_be_read_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(CorpusError) as error:
        parse_pairs(text, "p.tsv")
    assert message in str(error.value)
    assert error.value.remedy


@pytest.mark.parametrize("name", TEXTS)
def test_a_hostile_text_is_a_sentence_or_refused(name: str) -> None:
    refused = ""
    try:
        read = parse_pairs(f"{TEXTS[name]}\tthe other sentence", "p.tsv")
    except CorpusError as error:
        refused = error.problem
    assert "p.tsv" in refused if refused else read.pairs[0].bad == "the other sentence"


def test_files_that_are_no_text_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "p.tsv"
    file.write_bytes("a b\tb a\nf\xfcr\tb".encode("latin1"))
    with pytest.raises(CorpusError, match="line 2: not UTF-8 text"):
        read_pairs(file)
    with pytest.raises(CorpusError, match="is a folder"):
        read_pairs(tmp_path)
    with pytest.raises(CorpusMissing, match="toy-pairs or repeater-pairs"):
        read_pairs(tmp_path / "none.tsv")
    monkeypatch.setattr(limits, "MAX_BYTES", 4)
    with pytest.raises(CorpusError, match="at most"):
        read_pairs(file)
    monkeypatch.setattr(limits, "MAX_SENTENCES", 1)
    with pytest.raises(CorpusError, match="sentence number 2; at most 1"):
        parse_pairs("a b\tb a\nc d\td c", "p.tsv")


@pytest.mark.parametrize("given", [[], [("a",)], ["ab"], [("a", "b", "c", "d")], [("a", 3)], [None], 3])
def test_what_is_no_list_of_pairs_is_refused(given: Any) -> None:
    with pytest.raises((CorpusError, SettingError), match=r"pair|list"):
        read_pairs(given)


def test_built_in_pairs_are_in_the_vocabulary_and_differ_in_one_word() -> None:
    words = {word.lower() for word in VOCABULARY}
    for name, kinds in zip(BUILT_IN_PAIRS, (4, 3), strict=True):
        read = read_pairs(name)
        assert len({pair.kind for pair in read.pairs}) == kinds
        assert len(set(read.pairs)) == len(read.pairs) == kinds * built_in_pairs.PAIRS_PER_KIND
        for pair in read.pairs:
            good, bad = pair.good.split(), pair.bad.split()
            assert {word.lower() for word in (*good, *bad)} <= words
            assert sum(one != other for one, other in zip(good, bad, strict=True)) == 1
    digests = [read_pairs(name).digest[:12] for name in BUILT_IN_PAIRS]
    assert digests == [read_pairs(name).digest[:12] for name in BUILT_IN_PAIRS]


# ---- Numbers by hand --------------------------------------------------------------------------------------------


def measured(
    log_p: list[tuple[float, float]], margins: list[list[float]], kinds: str, heads: int = 1, **fields: Any
) -> MinimalPairs:
    pairs = tuple(Pair("a", "b", kind, number) for number, kind in enumerate(kinds, 1))
    ablated = tuple((Head(0, number),) for number in range(heads))
    return MinimalPairs(
        "m", "p", "zero", "log p", pairs, np.array(log_p, float), ablated, np.array(margins, float), **fields
    )


def test_accuracy_by_hand() -> None:
    pairs = measured([(-1, -3), (-2, -1), (-5, -9), (-4, -4)], [[0], [0], [0], [0]], "xxyy")
    table = pairs.table()
    assert tuple(table.columns) == ACCURACY_COLUMNS
    assert table["kind"].tolist() == ["all", "x", "y"]
    assert table["n"].tolist() == [4, 2, 2]
    assert table["accuracy"].tolist() == [0.5, 0.5, 0.5]  # a tie is not right
    assert table["ties"].tolist() == [1, 0, 1]
    assert table["margin"].tolist() == [(2 - 1 + 4 + 0) / 4, (2 - 1) / 2, (4 + 0) / 2]
    assert tuple(table.loc[0, ["low", "high"]]) == pytest.approx(wilson_interval(2, 4))
    assert tuple(pairs.sentences().columns) == PAIR_COLUMNS
    assert pairs.sentences()["is_right"].tolist() == [True, False, True, False]


def test_the_sign_test_by_hand() -> None:
    assert sign_test(5, 0) == pytest.approx(2 * 0.5**5)
    assert sign_test(1, 5) == pytest.approx(2 * (6 + 1) / 64)
    assert sign_test(3, 3) == 1
    assert sign_test(0, 0) == 1
    assert sign_test(2, 8) == pytest.approx(2 * (45 + 10 + 1) / 1024)


def test_what_a_head_does_by_hand() -> None:
    """Eight pairs with margin 1. Without L0H0 six fall, four of them below 0, one stays and one rises; without L0H1 all
    fall, and none is lost."""
    before = [(-1.0, -2.0)] * 8
    first = [-1, -1, -1, -1, 0.5, 0.5, 1, 2]
    finding = Finding(Head(0, 1), "position", "previous", 0.9, 0.1, 0.8, 10, 0.8, 0.95)
    pairs = measured(before, [[one, 0.5] for one in first], "x" * 8, heads=2, roles=(finding,))
    table = pairs.heads()
    assert tuple(table.columns) == NEED_COLUMNS
    l0h0, l0h1 = (table.loc[number] for number in range(2))
    assert (l0h0["accuracy"], l0h0["difference"], l0h0["lost"], l0h0["gained"]) == (0.5, -0.5, 4, 0)
    assert (l0h0["falls"], l0h0["rises"]) == (6, 1)
    assert l0h0["margin_change"] == pytest.approx((-2 * 4 - 0.5 * 2 + 0 + 1) / 8)
    assert l0h0["p"] == pytest.approx(2 * (7 + 1) / 2**7)
    assert (l0h1["p"], l0h1["lost"], l0h1["accuracy"]) == (pytest.approx(2 / 2**8), 0, 1)
    assert l0h1["q"] == pytest.approx(2 * l0h1["p"])  # the lower of two
    assert l0h0["q"] == pytest.approx(l0h0["p"])
    assert (l0h0["low"], l0h0["high"]) == pytest.approx(newcombe_interval(4, 0, 4, 0))
    assert (l0h0["needed"], l0h1["needed"]) == (False, False)  # q is too high; no pair is lost
    assert (l0h0["roles"], l0h1["roles"]) == ("", "position previous")


@pytest.mark.parametrize(
    ("after", "is_needed"),
    [
        ([-1.0] * 12 + [0.5] * 8, True),
        ([0.5] * 20, False),  # all margins fall, and no pair is lost
        ([-1.0] * 2 + [0.5] * 18, False),  # too few pairs are lost
        ([-1.0] * 12 + [3.0] * 8, False),  # margins do not fall significantly more often than they rise
        ([2.0] * 20, False),  # all rise
        ([1.00005] * 20, False),  # rounding is no change
    ],
)
def test_a_head_is_needed_if_margins_fall_and_pairs_are_lost(after: list[float], is_needed: bool) -> None:
    pairs = measured([(-1.0, -2.0)] * 20, [[margin] for margin in after], "x" * 20)
    assert pairs.needs()[0].is_needed is is_needed


def test_heads_are_counted_for_one_kind() -> None:
    pairs = measured([(-1, -2)] * 4, [[-1], [-1], [3], [3]], "xxyy")
    assert pairs.heads("x")["lost"].tolist() == [2]
    assert pairs.heads("y")["lost"].tolist() == [0]
    with pytest.raises(SettingError, match=r"“z” is not a kind of these pairs\. Choose one of all, x, y\."):
        pairs.heads("z")


@pytest.mark.parametrize("make", [built_in_pairs.make_toy_pairs, built_in_pairs.make_repeater_pairs])
def test_pairs_are_the_same_each_time(make: Callable[[], Any]) -> None:
    assert [*make()] == [*make()]
