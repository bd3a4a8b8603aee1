"""The package as research uses it: profiles, measures, many texts, taps, and what a type checker sees."""

from __future__ import annotations

import doctest
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_type
from weakref import ReferenceType, ref

import numpy as np
import pandas as pd
import pytest
import torch

import mha_viz as mv
from mha_viz.analysis import metrics
from mha_viz.analysis.metrics import METRICS, measure_all
from mha_viz.cli import main
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu
from mha_viz.corpus.sources import iterate
from mha_viz.errors import CorpusError, EmptyText, ExportError, SettingError, TextError, UnknownHead
from mha_viz.models.intervening import other_texts
from mha_viz.models.reading import encoder as many
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.encoder_decoder import EncoderDecoder
from mha_viz.study import profiling
from tests import lanes, tiny_models
from tests.readings import reading

if TYPE_CHECKING:
    from mha_viz.analysis.profile import Profile
    from mha_viz.figures.layout import Size
    from mha_viz.figures.layout.view import View
    from mha_viz.study.run import Progress

ROOT = Path(__file__).resolve().parent.parent
Tiny = Callable[[str], Encoder]

SENTENCE = "1\tAnna\tAnna\tPROPN\t_\t_\t2\tnsubj\t_\tEntity=(1-person)\n2\tslept\tsleep\tVERB\t_\t_\t0\troot\t_\t_\n\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A small treebank, and a text with a sentence per line."""
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "a.conllu").write_text("# newdoc id = one\n" + 3 * SENTENCE, "utf-8")
    (folder / "b.txt").write_text("The cat sat on the mat.\nIt slept.\n", "utf-8")
    return folder / "a.conllu", folder / "b.txt"


# ---- Profiles -------------------------------------------------------------------------------------------------


def test_a_profile_is_the_command_s_and_opens_equal(
    files: tuple[Path, Path], tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    seen: list[Progress] = []
    model = str(tiny_folder("bert"))
    profile = mv.profile(files[0], model=model, out=tmp_path / "python", progress=seen.append)
    assert [main(["profile", str(files[0]), "--model", model, "--out", str(tmp_path / "command")])] == [0]
    for name in ("python", "command"):
        assert mv.load_profile(str(tmp_path / name)) == profile
    again = mv.load_profile(profile.save(tmp_path / "saved"))
    assert again == profile
    assert hash(again) == hash(profile)
    for name, table in profile.tables.items():
        pd.testing.assert_frame_equal(again.tables[name], table, check_exact=True)
    assert {"syntax", "entropy", "distance"} <= {*profile.tables}
    assert profile.roles is profile.tables["roles"]
    assert (seen[0].fraction, seen[-1].fraction) == (0, 1)
    assert profile != mv.profile(files[0], model=model, name="another name")
    assert profile != "a profile"
    assert repr(profile) == f"Profile({profile.model} on a.conllu, {len(profile.tables)} tables)"


def _generated(path: Path, seed: int, sentences: int) -> Path:
    """A treebank of the grammar as a file."""
    path.write_text(format_conllu(grammar.corpus(sentences, seed).sentences), "utf-8")
    return path


def test_roles_that_two_corpora_establish_are_the_command_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mha_viz.analysis.roles.MIN_CASES", 15)  # instead of 100
    one, other = (_generated(tmp_path / f"{seed}.conllu", seed, 20) for seed in (1, 2))
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    assert main(["profile", str(other), "--model", "toy", "--out", second]) == 0
    assert main(["profile", str(one), "--model", "toy", "--out", first, "--and", second]) == 0
    written = mv.load_profile(first)
    assert mv.profile(one, "toy", also=other, out=tmp_path / "python") == written
    assert mv.load_profile(tmp_path / "python") == written
    established = [f for f in written.findings() if f.status == "established"]
    assert {("L1H3", "position"), ("L1H2", "syntax")} <= {(str(f.head), f.role) for f in established}
    assert {f.corpora for f in established} == {("2.conllu", "1.conllu")}


def test_a_second_corpus_that_is_the_first_is_refused_before_anything_is_measured(
    files: tuple[Path, Path], tiny: Tiny, tmp_path: Path
) -> None:
    measured: list[Progress] = []
    with pytest.raises(CorpusError, match="the same corpus"):
        mv.profile(files[0], tiny("bert"), also=str(files[0]), out=tmp_path / "out", progress=measured.append)
    with pytest.raises(CorpusError, match="another model"):
        mv.profile(files[0], tiny("bert"), also=mv.profile(files[1], tiny("gpt2")), progress=measured.append)
    assert (measured, (tmp_path / "out").exists()) == ([], False)


def test_a_profile_of_an_encoder_over_several_files(files: tuple[Path, Path], tiny: Tiny) -> None:
    both = mv.profile([str(files[0]), files[1]], model=tiny("bert"))
    assert both.corpus == "a.conllu + b.txt"
    assert both.facts["counts"]["sentences"] == 5
    sentences = [*iterate(files[0]), *iterate(files[1])]
    assert [sentence.words for sentence in iterate([*files])] == [sentence.words for sentence in sentences]
    assert len({sentence.document for sentence in iterate([files[0], files[0]])}) == 2
    alone = mv.profile(mv.read_corpus(files[0]), model=tiny("bert"))
    assert alone == mv.profile([files[0]], model=tiny("bert"))


def test_the_rows_of_one_head(files: tuple[Path, Path], tiny: Tiny) -> None:
    profile = mv.profile(files[0], model=tiny("bert"))
    for head in ("L2H1", (2, 1), mv.Head(2, 1)):
        rows = profile.head(head)
        assert "distance" not in rows
        assert rows["entropy"][["layer", "head"]].to_numpy().tolist() == [[2, 1]]
        assert len(rows["position"]) == profile.tables["position"]["offset"].nunique()
    with pytest.raises(UnknownHead, match="L9H9 does not exist"):
        profile.head("L9H9")
    with pytest.raises(UnknownHead, match=r"is not a head\. Write it as"):
        profile.head(3)


def test_what_is_no_corpus_or_profile_is_said(files: tuple[Path, Path], tiny: Tiny, tmp_path: Path) -> None:
    calls: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: mv.profile(3, model=tiny("bert")), CorpusError, "'3' is not a corpus. Give a path, a list of paths"),
        (lambda: mv.profile([], model=tiny("bert")), CorpusError, "is not a corpus"),
        (lambda: mv.profile(tmp_path / "gone.txt", model=tiny("bert")), CorpusError, "gone.txt cannot be read"),
        (lambda: mv.read_corpus("a\0"), CorpusError, "cannot be read"),
        (lambda: mv.profile(files[0], model=tiny("bert"), progress="yes"), SettingError, "progress is yes"),
        (lambda: mv.profile(files[0], model=tiny("bert"), out=files[1] / "x"), ExportError, "cannot be created"),
        (lambda: mv.load_profile(tmp_path), CorpusError, "holds no profile"),
    ]
    for call, kind, message in calls:
        with pytest.raises(kind, match=message):
            call()


def test_a_gap_table_has_no_sentences_and_stands_alone(files: tuple[Path, Path], tmp_path: Path) -> None:
    gap = tmp_path / "gap.tsv"
    heading = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL"
    gap.write_text(f"{heading}\n1\tAnna met Eve; she left.\tshe\t14\tAnna\t0\tTRUE\tEve\t9\tFALSE\tx\n", "utf-8")
    with pytest.raises(CorpusError, match="no sentences"):
        iterate(gap)
    with pytest.raises(CorpusError, match="together with other files"):
        mv.read_corpus([files[0], gap])


def test_sentences_come_with_words_and_annotations(files: tuple[Path, Path]) -> None:
    first = next(iterate(files[0]))
    assert first.forms == ("Anna", "slept")
    assert [(word.upos, word.head, word.relation) for word in first.words] == [
        ("PROPN", 1, "nsubj"),
        ("VERB", None, "root"),
    ]
    assert [(mention.start, mention.end) for mention in first.mentions] == [(0, 1)]
    assert next(iterate("grammar")).words


# ---- Measures -------------------------------------------------------------------------------------------------


def test_measures_are_the_app_s_numbers_a_row_per_head() -> None:
    attention = reading(layers=2, heads=3, words=(1, 2, 1))
    table = attention.measures()
    assert table.columns.tolist() == ["layer", "head", *metrics.METRICS, "normalised_entropy"]
    assert table.index.tolist() == [str(head) for head in attention.every_head()]
    for name, values in measure_all(attention).items():
        assert (table[name].to_numpy() == values.ravel()).all()
    assert table.loc["L1H2", ["layer", "head"]].tolist() == [1, 2]
    n = len(attention.text)
    assert table["normalised_entropy"].to_numpy() == pytest.approx(table["entropy"].to_numpy() / math.log(n))
    assert {*METRICS} < {*table.columns}


def test_even_attention_by_hand_and_a_single_key() -> None:
    even = mv.Attention.from_tensors([np.full((2, 4, 4), 0.25)], ["[CLS]", "a", ".", "[SEP]"]).measures()
    assert even["entropy"].tolist() == pytest.approx([math.log(4)] * 2)
    assert even["normalised_entropy"].tolist() == pytest.approx([1, 1])
    assert even.loc["L0H1", "punctuation"] == pytest.approx(0.25)
    alone = mv.Attention.from_tensors([np.ones((1, 1, 1))], ["a"]).measures()
    assert math.isnan(alone.loc["L0H0", "normalised_entropy"])


def test_measures_are_those_of_a_study_of_the_same_sentence(tmp_path: Path, tiny: Tiny) -> None:
    (tmp_path / "a.txt").write_text("The quick animal typed , slept .\n", "utf-8")
    sentence = next(iterate(tmp_path / "a.txt"))
    table = tiny("bert").encode_words(sentence.forms).measures()
    tables = mv.profile(tmp_path / "a.txt", model=tiny("bert")).tables
    assert table["entropy"].to_numpy() == pytest.approx(tables["entropy"]["nats"].to_numpy(), abs=1e-6)
    assert table["normalised_entropy"].to_numpy() == pytest.approx(tables["entropy"]["normalised"].to_numpy(), abs=1e-6)
    for name in ("cls", "sep", "punctuation"):
        assert table[name].to_numpy() == pytest.approx(tables["delimiter"][name].to_numpy(), abs=1e-6)
    at = tables["position"].set_index("offset")["mass"]
    for name, offset in (("previous", -1), ("same", 0), ("following", 1)):
        assert table[name].to_numpy() == pytest.approx(at[offset].to_numpy(), abs=1e-6)


# ---- Many texts -----------------------------------------------------------------------------------------------

WORDS = ["the", "animal", "didn't", "cross", ";", "zoë's", "café", "typed", "12", "動物", "lazily"]


def mixed(count: int, seed: int = 0) -> Iterator[str | list[str]]:
    """Texts of 1 to 20 words in any order, every fourth given as words, one exceeding a tiny model's limit."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        words = [str(word) for word in rng.choice(WORDS, rng.integers(1, 5 if number % 4 else 21))]
        words = words * 12 if number == 5 else words
        yield words[:9] if number % 4 == 3 else " ".join(words)


# Random weights give larger scores than trained ones, and rounding differs between processors.
TOGETHER = {"minilm": 1e-6, "toy": 1e-6}


@pytest.mark.parametrize("family", lanes.some([*TOGETHER, *tiny_models.FAMILIES], *TOGETHER, *tiny_models.RECORDED))
def test_many_texts_equal_one_by_one(family: str, tiny: Tiny) -> None:
    encoder, texts = mv.load(family) if family in TOGETHER else tiny(family), [*mixed(30 if family == "toy" else 12)]
    together = [*encoder.encode_many(iter(texts), batch_words=40)]
    assert len(together) == len(texts)
    for text, one in zip(texts, together, strict=True):
        alone = encoder.encode(text) if isinstance(text, str) else encoder.encode_words(text)
        assert (one.key, one.text, one.made) == (alone.key, alone.text, alone.made)
        assert np.abs(one.weights - alone.weights).max() < TOGETHER.get(family, 5e-6)
        assert not one.weights.flags.writeable


def test_texts_that_were_returned_are_not_kept() -> None:
    returned, alive = list[ReferenceType[mv.Attention]](), list[int]()
    for one in mv.load("toy").encode_many(["the dog sees the cat ."] * 80, 60):
        returned.append(ref(one))
        alive.append(sum(kept() is not None for kept in returned))
    assert len(alive) == 80
    assert max(alive) <= 12, "those of one batch, which are made together"


def test_windows_change_no_order_and_bound_what_is_read_ahead(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "MAX_WINDOW_TEXTS", 4)
    read = 0

    def texts() -> Iterator[str]:
        nonlocal read
        for number in range(1000):
            read += 1
            yield "a " * (1 + number % 3) + "."

    each = tiny("bert").encode_many(texts())
    assert read == 0
    lengths = [len(one.text.given or one.text.by_words().tokens) - 3 for one in islice(each, 10)]
    assert lengths == [1 + number % 3 for number in range(10)]
    assert read <= 16
    each.close()


def test_batches_are_bounded_in_words_and_weights(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [tiny("bert").prepare_text(["a"] * length) for length in (3, 5, 3, 3, 5, 3)]
    assert many.make_batches(texts, 12, 400) == [[0, 2, 3, 5], [1, 4]]
    assert many.make_batches(texts, 12, 7) == [[0, 2], [1], [3, 5], [4]]
    assert many.make_batches(texts, 12, 1) == [[number] for number in range(6)]
    monkeypatch.setattr(many, "MAX_BATCH_WEIGHTS", 2 * 12 * 5**2)
    assert many.make_batches(texts, 12, 400) == [[0, 2], [1], [3, 5], [4]]


def test_what_cannot_be_read_is_named_after_all_before_it(tiny: Tiny) -> None:
    encoder = tiny("bert")
    each = encoder.encode_many(["a cat", ["a", "dog"], " ", "b"])
    assert [next(each).text.text, next(each).text.text] == ["a cat", "a dog"]
    with pytest.raises(EmptyText, match="Text 2, counted from 0: Nothing was typed"):
        next(each)
    with pytest.raises(
        TextError, match=r"Text 1, counted from 0: '3' is not a text. Give a string, or a list of words"
    ):
        [*encoder.encode_many(["a", 3])]
    with pytest.raises(TextError, match=r"is not a list of texts. Give a list, or use encode"):
        encoder.encode_many("a cat")
    for wrong in (0, -1, 2.5, None, "8"):
        with pytest.raises(SettingError, match="batch_words is"):
            encoder.encode_many(["a"], batch_words=wrong)
    assert [*encoder.encode_many([])] == []


# ---- Taps, docstrings, types ----------------------------------------------------------------------------------


DOCUMENTED = (
    *(
        Tap,
        Encoder.encode_many,
        Encoder.score_parts,
        profiling.profile,
        mv.explain_scores,
        mv.explain_corpus_scores,
        mv,
    ),
    *(mv.ablation_effects, mv.predict, mv.direct_logit_attribution, mv.minimal_ablation),
)


@pytest.mark.parametrize("subject", DOCUMENTED, ids=lambda one: one.__name__)
def test_the_examples_of_docstrings_run(
    subject: Any, minilm: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = grammar.corpus
    monkeypatch.setattr(grammar, "corpus", lambda count=20, seed=0: whole(count, seed))  # in place of 400 sentences
    monkeypatch.setattr(other_texts, "_list_words", other_texts._list_words.__wrapped__)  # not kept for other tests
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    tests = finder.find(subject, subject.__name__, globs={"mv": mv, "encoder": minilm})
    assert sum(len(test.examples) for test in tests) > 0
    for test in tests:
        runner.run(test)
    assert runner.failures == 0


USE = """
import mha_viz as mv
from mha_viz.corpus.sources import iterate
from mha_viz.models.reading.encoder import Encoder

encoder = mv.load("minilm")
reveal_type(encoder)
assert isinstance(encoder, Encoder)
reveal_type([*encoder.encode_many(["a"])])
reveal_type(mv.profile("grammar"))
reveal_type(mv.Attention.from_tensors([], ["a"]))
reveal_type(mv.Attention.from_tensors([], [["a"]]))
reveal_type(next(iterate("grammar")).words[0].upos)
reveal_type(mv.figures.View(unit="pieces"))
reveal_type(mv.figures.Size())
reveal_type(mv.Tap)
reveal_type(encoder.encode("a").measures())
encoder.encode("a").links("L3H1", pin="q1")
encoder.encode("a").links((3, 1))
"""
SEEN = [
    "mha_viz.models.reading.encoder.Encoder | mha_viz.models.reading.encoder_decoder.EncoderDecoder",
    "list[mha_viz.attention.Attention]",
    "mha_viz.analysis.profile.Profile",
    "mha_viz.attention.Attention",
    "list[mha_viz.attention.Attention]",
    "str",
    "mha_viz.figures.layout.view.View",
    "mha_viz.figures.layout.Size",
    "def (weights: torch._tensor.Tensor) -> mha_viz.models.reading.capture.Tap",
]


def what_a_type_checker_sees(encoder: Encoder) -> None:
    """Checked by make check, which reads this file; the test below asks a type checker outside of this project."""
    assert_type(mv.load("minilm"), Encoder | EncoderDecoder)
    assert_type([*encoder.encode_many(["a"])], list[mv.Attention])
    assert_type(mv.profile("grammar"), Profile)
    assert_type(mv.Attention.from_tensors([], ["a"]), mv.Attention)
    assert_type(mv.Attention.from_tensors([], [["a"]]), list[mv.Attention])
    assert_type(next(iterate("grammar")).words[0].upos, str)
    assert_type(mv.figures.View(unit="pieces"), View)
    assert_type(mv.figures.Size(), Size)
    assert_type(mv.Tap(torch.empty(0)), Tap)
    assert_type(encoder.encode("a").measures(), pd.DataFrame)
    encoder.encode("a").links("L3H1", pin="q1")
    encoder.encode("a").links((3, 1))


@pytest.mark.slow
def test_a_type_checker_sees_what_the_package_gives(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(USE, "utf-8")
    cache = str(ROOT / ".mypy_cache")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, str(tmp_path / "use.py")]
    stdout = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    shown = [line.split('is "')[1].rstrip('"') for line in stdout.splitlines() if "Revealed type" in line]
    assert [name.replace("builtins.", "") for name in shown[: len(SEEN)]] == SEEN, stdout
    assert "DataFrame" in shown[-1]
    assert ": error:" not in stdout
