"""Search by head equals a plain loop over every word; its conditions, by hand; its parts, and the command."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mha_viz as mv
from mha_viz.analysis.links import COLUMNS, Conditions
from mha_viz.attention import Head
from mha_viz.cli import main
from mha_viz.cli.search import format_sentence
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu, read_conllu
from mha_viz.corpus.reading import read_gap, read_plain
from mha_viz.corpus.treebank import Corpus, Sentence, Word
from mha_viz.errors import CorpusError, SettingError, UnknownHead
from mha_viz.study.readers import open_measurable
from mha_viz.study.run import Progress
from mha_viz.study.search import LinkCases, LinkSearch, search_links
from tests import brute
from tests.conllu import GAP_HEADING

if TYPE_CHECKING:
    from mha_viz.models.reading.encoder import Encoder

pytestmark = pytest.mark.usefixtures("one_thread")

# 0 Big amod← 1 dogs nsubj← 2 bark, 3 at case→ 4 him obl→ bark
BARK = Sentence((
    Word("Big", "ADJ", 1, "amod"), Word("dogs", "NOUN", 2, "nsubj:pass"), Word("bark", "VERB", None, "root"),
    Word("at", "ADP", 4, "case"), Word("him", "PRON", 2, "obl"),
))  # fmt: skip


@pytest.mark.parametrize(
    ("conditions", "pairs"),
    [
        ({"query_word": "DOGS"}, {(1, key) for key in range(5)}),
        ({"query_pos": "noun", "key_pos": "VERB"}, {(1, 2)}),
        ({"key_relation": "case"}, {(query, 3) for query in range(5)}),
        ({"query_relation": "root"}, set()),  # a root depends on nothing
        ({"relation": "nsubj"}, {(1, 2), (2, 1)}),
        ({"relation": "nsubj:pass", "query_pos": "VERB"}, {(2, 1)}),
        ({"relation": "nsubj:outer"}, set()),
        ({"dependent_pos": "PRON"}, {(4, 2), (2, 4)}),
        ({"governor_word": "him"}, {(3, 4), (4, 3)}),
        ({"governor_pos": "VERB", "dependent_word": "dogs", "key_word": "bark"}, {(1, 2)}),
        ({}, {(query, key) for query in range(5) for key in range(5)}),
    ],
)
def test_conditions_by_hand(conditions: dict[str, str], pairs: set[tuple[int, int]]) -> None:
    mask = Conditions(**conditions).mask(BARK)
    assert {(int(query), int(key)) for query, key in np.argwhere(mask)} == pairs


@pytest.mark.parametrize(
    "conditions",
    [
        {},
        {"relation": "nsubj", "dependent_pos": "NOUN"},
        {"query_word": "the", "key_pos": "NOUN"},
        {"key_relation": "nsubj"},
    ],
    ids=str,
)
def test_a_search_is_a_plain_loop(
    tiny: Callable[[str], Encoder], tiny_folder: Callable[[str], Path], conditions: dict[str, str]
) -> None:
    text = format_conllu(grammar.corpus(25, seed=6).sentences) + "1\tYes\t_\tINTJ\t_\t_\t0\troot\t_\t_\n\n"
    corpus, bert = read_conllu(text), tiny("bert")
    heads = [Head(layer, head) for layer in range(bert.layers) for head in range(bert.heads)]
    results = (search_links(corpus, head, bert, most=5, **conditions) for head in heads)  # type: ignore[arg-type]
    result = next(result for result in results if result.matches)  # in a random head, nothing may match by chance
    model, strongest, counts = brute.Model(tiny_folder("bert")), [], Counter[tuple[str, ...]]()
    read = matching = 0
    wanted = Conditions(**conditions)
    for number, sentence in enumerate(brute.read(text)):
        reading = model.words(sentence.forms)
        if reading is None or len(sentence.forms) < 2:
            continue
        w = brute.sum_to_words(reading.attention[result.head.place(model.heads_a_layer)], reading.words)
        matches = []
        for query in range(len(w)):
            read += 1
            key = brute.find_best(w[query], [j for j in range(len(w)) if j != query])
            relation = _edge(sentence, query, key)
            if _meets(sentence, query, key, wanted):
                matches.append((round(w[query, key], 4), -number, query, key))
                counts[sentence.upos[query], sentence.upos[key], *relation] += 1
        matching += bool(matches)
        strongest += [max(matches, key=lambda m: (m[0], -m[2]))] if matches else []
    strongest = sorted(strongest, reverse=True)[:5]
    assert (result.links_read, result.matches, result.matching_sentences) == (read, counts.total(), matching)
    assert dict(result.counts) == dict(counts)
    assert [(link.number, link.query, link.key) for link in result.links] == [(-n, q, k) for _, n, q, k in strongest]
    assert [link.weight for link in result.links] == pytest.approx([weight for weight, *_ in strongest], abs=1e-4)
    assert 0 < result.matches <= read


def _edge(sentence: brute.Sentence, query: int, key: int) -> tuple[str, str]:
    if sentence.heads[query] == key:
        return sentence.relations[query], "dep_to_head"
    return (sentence.relations[key], "head_row") if sentence.heads[key] == query else ("", "")


def _meets(sentence: brute.Sentence, query: int, key: int, wanted: Conditions) -> bool:
    """The conditions of the cases above."""
    edge = _edge(sentence, query, key)
    dependent = query if edge[1] == "dep_to_head" else key
    return (
        (not wanted.relation or edge[0].split(":")[0] == wanted.relation)
        and (not wanted.dependent_pos or (edge[1] != "" and sentence.upos[dependent] == wanted.dependent_pos))
        and (not wanted.query_word or sentence.forms[query].lower() == wanted.query_word)
        and (not wanted.key_pos or sentence.upos[key] == wanted.key_pos)
        and (not wanted.key_relation or sentence.relations[key] == wanted.key_relation)
    )


@pytest.fixture(scope="module")
def few() -> Corpus:
    return grammar.corpus(30, seed=2)


def test_the_toy_finds_subjects(few: Corpus) -> None:
    reports: list[Progress] = []
    result = mv.roles.search_links(few, "L1H2", "toy", relation="nsubj", dependent_pos="PRON", progress=reports.append)
    table = result.table()
    assert list(table.columns) == list(COLUMNS)
    assert set(table["relation"]) == {"nsubj"}
    assert table["weight_by_words"].is_monotonic_decreasing
    assert set(table["query_pos"]) | set(table["key_pos"]) <= {"PRON", "VERB", "ADJ", "NOUN"}
    assert result.table_of_counts()["links"].sum() == result.matches
    assert [(report.done, report.total) for report in reports] == [(25, 30), (30, 30)]
    assert "toy L1H2 on grammar" in repr(result)


def test_nothing_depends_on_the_parts(few: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    from mha_viz.models.reading.loading import load

    toy = load("toy")
    whole = search_links(few, (1, 2), toy, query_pos="NOUN")
    monkeypatch.setattr(LinkCases, "size", 7)
    searching = LinkSearch(toy, open_measurable(few), "L1H2", Conditions(query_pos="NOUN"))
    parts = [searching.result() for _ in searching.run.iter_progress()]
    assert [part.sentences_read for part in parts] == [7, 14, 21, 28, 30]
    assert [part.matches for part in parts] == sorted(part.matches for part in parts)
    pd.testing.assert_frame_equal(parts[-1].table(), whole.table())
    assert parts[-1].counts == whole.counts
    assert len(search_links(few, "L1H2", toy, most=3).links) == 3


def test_a_search_in_python_that_is_stopped_continues(few: Corpus, tmp_path: Path) -> None:
    whole, seen = mv.roles.search_links(few, "L1H2", "toy", most=3), list[int]()

    def stop(so_far: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mv.roles.search_links(few, "L1H2", "toy", most=3, resume=tmp_path, progress=stop)
    assert len([*tmp_path.iterdir()]) == 1
    again = mv.roles.search_links(
        few, "L1H2", "toy", most=3, resume=tmp_path, progress=lambda so_far: seen.append(so_far.done)
    )
    pd.testing.assert_frame_equal(again.table(), whole.table())
    assert seen == [30]
    assert not [*tmp_path.iterdir()]


def test_a_stop_before_cases_are_reduced_leaves_no_more_than_are_listed(
    few: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mha_viz.models.reading.loading import load

    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    toy, whole = load("toy"), search_links(few, "L1H2", "toy", most=3)
    for size in (30, 10):  # all sentences are read before the stop, or some
        with monkeypatch.context() as patched:
            patched.setattr("mha_viz.study.cases.FIRST_SIZE", size)
            patched.setattr(LinkCases, "reduce", stop)
            with pytest.raises(KeyboardInterrupt):
                search_links(few, "L1H2", toy, most=3, resume=tmp_path)
        again = search_links(few, "L1H2", toy, most=3, resume=tmp_path)
        assert len(again.links) == 3
        pd.testing.assert_frame_equal(again.table(), whole.table())


def test_what_cannot_be_looked_for_is_said(tiny: Callable[[str], Encoder]) -> None:
    plain = read_plain("The cat sat on the mat.\n")
    tagged = read_conllu("1\tDogs\t_\tNOUN\t_\t_\t_\t_\t_\t_\n2\tbark\t_\tVERB\t_\t_\t_\t_\t_\t_\n\n")
    bert = tiny("bert")
    assert search_links(plain, "L0H0", bert, query_word="cat").matches == 1
    assert search_links(tagged, "L0H0", bert, query_pos="NOUN").matches == 1
    for corpus, conditions in ((plain, {"relation": "nsubj"}), (plain, {"key_pos": "NOUN"}),
                               (tagged, {"dependent_word": "cat"}), (tagged, {"key_relation": "obj"})):  # fmt: skip
        with pytest.raises(CorpusError, match="cannot be searched for"):
            search_links(corpus, "L0H0", bert, **conditions)  # type: ignore[arg-type]
    full = read_conllu("1\tDogs\t_\tNOUN\t_\t_\t2\tnsubj:pass\t_\t_\n2\tbark\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n")
    for conditions in ({"relation": "nsubj"}, {"key_relation": "nsubj:pass"}, {"query_pos": "noun"}):
        search_links(full, "L0H0", bert, **conditions)  # type: ignore[arg-type]
    with pytest.raises(CorpusError, match=r"no word with relation “nsbj”\. Did you mean nsubj"):
        search_links(full, "L0H0", bert, relation="nsbj")
    with pytest.raises(CorpusError, match=r"no word with query_pos “QQQQ”\. It has NOUN and VERB\."):
        search_links(full, "L0H0", bert, query_pos="QQQQ")
    with pytest.raises(UnknownHead):
        search_links(plain, "L9H0", bert)
    with pytest.raises(SettingError):
        search_links(plain, "L0H0", bert, most=0)
    with pytest.raises(CorpusError, match="GAP"):
        search_links(
            read_gap(GAP_HEADING + "1\tAnn left as she sang.\tshe\t12\tAnn\t0\tTRUE\tAnn\t0\tTRUE\tx\n"), "L0H0", bert
        )


# ---- The command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def treebank(tmp_path: Path, few: Corpus) -> Path:
    path = tmp_path / "few.conllu"
    path.write_text(format_conllu(few.sentences), "utf-8")
    return path


def run(*arguments: Any) -> int:
    return main(["search", *map(str, arguments)])


def test_the_command_prints_links_and_counts(treebank: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = treebank.with_name("links.csv")
    assert run("toy/L1H2", treebank, "--relation", "nsubj", "--dependent-pos", "NOUN", "--most", 3, "--out", out) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    result = search_links(str(treebank), "L1H2", "toy", relation="nsubj", dependent_pos="NOUN", most=3)
    assert first.startswith(f"toy L1H2 (2-3) on few.conllu: {result.matches} of {result.links_read:,} links")
    assert [line.split()[0] for line in lines[:3]] == [f"{link.weight:.4f}" for link in result.links]
    assert all(line.count("[") == 2 for line in lines[:3])
    assert "nsubj dep_to_head" in lines[-1] + lines[-2]
    pd.testing.assert_frame_equal(pd.read_csv(out), result.table())
    assert run("toy/L1H2", treebank, "--most", 1) == 0
    first, _, *counts = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\d+ links of \d+ other kinds", counts[10])
    assert f" {sum(int(line.split()[0]) for line in counts)} of " in first.replace(",", "")
    assert run("toy/L1H2", treebank, "--most", 2, "--out", out.with_suffix(".json")) == 0
    assert len(json.loads(out.with_suffix(".json").read_text("utf-8"))) == 2


def test_a_long_sentence_is_shown_from_its_first_marked_word() -> None:
    forms = ["See", "[", "1", "]", *(f"word{number}" for number in range(40))]
    line = format_sentence(0.5, 3, "word39 → word38", forms, (43, 42))
    assert line.endswith(" word37 [word38] [word39]")
    assert len(line) == len("0.5000  3  word39 → word38: …") + 100
    assert format_sentence(0.5, 3, "a → [SEP]", ["a"], {0, None}) == "0.5000  3  a → [SEP]: [a]"
    assert format_sentence(0.5, 3, "[CLS] → [SEP]", ["a"], {None}) == "0.5000  3  [CLS] → [SEP]: a"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("L1H2",), 2, "is not a model and a head"),
        (("toy/2-3",), 2, "is not the name of a head"),
        (("toy/L5H5",), 3, "L5H5 does not exist"),
        (("toy/L1H2", "--most", "0"), 2, "expected a number of sentences"),
        (("toy/L1H2", "--out", "links.txt"), 2, "is not a table format"),
        (("toy/L1H2", "--relaton", "nsubj"), 2, "--relation"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    arguments: tuple[str, ...], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments[0], "grammar", *arguments[1:]) == code
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def test_a_search_that_is_stopped_prints_what_it_has_read_and_continues(
    treebank: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LinkCases, "size", 10)
    usual, calls = LinkCases.cases, []

    def interrupted(*given: Any) -> Any:
        calls.append(given[-1][0][0])
        if len(calls) == 3:
            raise KeyboardInterrupt
        return usual(*given)

    monkeypatch.setattr(LinkCases, "cases", interrupted)
    out = treebank.with_name("links.csv")
    assert run("toy/L1H2", treebank, "--out", out) == 130
    printed = capsys.readouterr()
    assert "of 20 sentences" in printed.out
    assert "Stopped. These are the links of the sentences read so far; run the same command again" in printed.err
    assert run("toy/L1H2", treebank, "--out", out) == 0
    assert calls == [0, 10, 20, 20]
    continued = capsys.readouterr().out
    assert run("toy/L1H2", treebank) == 0
    assert capsys.readouterr().out == continued
    assert not [*treebank.parent.glob(".*")]
