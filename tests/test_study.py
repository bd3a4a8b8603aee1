"""A study equals the plain loops of tests/brute number by number, for any batches, order and pauses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mha_viz.corpus.conllu import read_conllu
from mha_viz.corpus.limits import MAX_LABEL, MAX_LABELS
from mha_viz.corpus.reading import read_gap, read_plain
from mha_viz.corpus.treebank import Corpus, Gap
from mha_viz.errors import Cancelled, CorpusError, ShapeError
from mha_viz.study.measures import PROFILE_SUMS
from mha_viz.study.plan import make_batches, plan
from mha_viz.study.run import Progress, StudyRun, study
from mha_viz.study.sums import PASSES, Sums, merge_sums
from tests import brute, lanes, tiny_models

if TYPE_CHECKING:
    from mha_viz.analysis.profile import Profile
    from mha_viz.models.reading.encoder import Encoder
    from mha_viz.text import WordPieces


pytestmark = pytest.mark.usefixtures("one_thread")


# ---- The corpus: small, with everything that occurs in treebanks ---------------------------------------------------

# form UPOS head relation [Entity]; PRON3 is a third person; "3-4 didn't" a range, "5.1 went" an empty node
MILL = """
Anna PROPN 2 nsubj (1-person-new-cf1-1-coref) | owns VERB 0 root | an DET 5 det (2-object-new | old ADJ 5 amod
 | windmill NOUN 2 obj 2) | near ADP 8 case | the DET 8 det (3-place | river NOUN 5 nmod 3) | . PUNCT 2 punct

She PRON3 2 nsubj (1-person) | repaired VERB 0 root | its PRON3 4 nmod:poss (4-object(2-object) | sails NOUN 2 obj 4)
 | herself PRON3 2 obl:npmod (1-person) | , PUNCT 9 punct | and CCONJ 9 cc | it PRON3 9 nsubj (2-object)
 | works VERB 2 conj | again ADV 9 advmod | . PUNCT 2 punct

Yes INTJ 0 root

The DET 2 det (5-person(1-person | miller NOUN 4 nmod:poss | 's PART 2 case 1) | daughter NOUN 7 nsubj 5)
 | 5-6 didn't | did AUX 7 aux | n't PART 7 advmod | notice VERB 0 root | the DET 9 det (4-object | sails NOUN 7 obj 4)
 | , PUNCT 12 punct | because SCONJ 12 mark | they PRON3 7 advcl (4-object) | . PUNCT 7 punct

Unbelievably ADV 2 advmod | incomprehensible ADJ 3 amod | machinery NOUN 4 nsubj (6-object) | hums VERB 0 root
 | below ADP 7 case | the DET 7 det (4-object | sails NOUN 4 obl 4) | ; PUNCT 4 punct
 | its PRON3 10 nmod:poss (7-object(6-object) | gears NOUN 11 nsubj 7) | squeak VERB 4 parataxis | ! PUNCT 4 punct

My PRON 2 nmod:poss (9-person(8-person) | uncle NOUN 3 nsubj 9) | told VERB 0 root | Anna PROPN 3 iobj (1-person)
 | that SCONJ 7 mark | he PRON3 7 nsubj (9-person) | oiled VERB 3 ccomp | the DET 9 det (7-object | gears NOUN 7 obj 7)
 | . PUNCT 3 punct

I PRON 2 nsubj (8-person) | doubted VERB 0 root | him PRON3 2 obj (9-person) | , PUNCT 6 punct | she PRON3 6 nsubj (1)
 | thanked VERB 2 conj | him PRON3 6 obj (9) | : PUNCT 9 punct | Anna PROPN 6 parataxis (1) | trusts VERB 9 acl
 | people NOUN 10 obj (10-person) | . PUNCT 2 punct

The DET 2 det (3-place | river NOUN 4 nsubj:pass 3) | was AUX 4 aux:pass | dammed VERB 0 root
 | upstream ADV 4 advmod | by ADP 8 case | beavers NOUN 8 compound (11-animal(12-animal) | families NOUN 4 obl:agent 11)
 | who PRON 10 nsubj (11) | like VERB 8 acl:relcl | it PRON3 10 obj (3) | . PUNCT 4 punct

Water NOUN 3 nsubj (13) | never ADV 3 advmod | reached VERB 0 root | the DET 5 det (2 | windmill NOUN 3 obj 2)
 | in ADP 7 case | summer NOUN 3 obl (14-time) | , PUNCT 11 punct | so ADV 11 advmod | she PRON3 11 nsubj (1)
 | carried VERB 3 parataxis | it PRON3 11 obj (13) | there ADV 11 advmod (2) | . PUNCT 3 punct

“ PUNCT 2 punct | Beavers NOUN 0 root (12-animal) | … PUNCT 2 punct | ” PUNCT 2 punct | , PUNCT 2 punct
 | sighed VERB 2 parataxis | the DET 8 det (1-person | miller NOUN 6 nsubj 1) | . PUNCT 2 punct

In ADP 2 case | spring NOUN 5 obl (16-time) | , PUNCT 2 punct | Anna PROPN 5 nsubj (1-person) | brought VERB 0 root
 | her PRON3 7 nmod:poss (9-person(1-person) | uncle NOUN 5 iobj 9) | two NUM 9 nummod | sails NOUN 5 obj (17-object)
 | , PUNCT 5 punct | and CCONJ 13 cc | he PRON3 13 nsubj (9) | mended VERB 5 conj | them PRON3 13 obj (17)
 | . PUNCT 5 punct

They PRON3 2 nsubj (12-animal) | build VERB 0 root | dams NOUN 2 obj (15-object) | and CCONJ 6 cc
 | people NOUN 6 nsubj (10-person) | break VERB 2 conj | them PRON3 6 obj (15) | . PUNCT 2 punct
"""
LAKE = """
Tom PROPN 4 nsubj (1-person(2-person) | and CCONJ 3 cc | Ben PROPN 1 conj (3-person)1) | rowed VERB 0 root
 | their PRON3 6 nmod:poss (4-object(1-person) | boat NOUN 4 obj 4) | across ADV 4 advmod | . PUNCT 4 punct

He PRON3 2 nsubj (2-person) | thinks VERB 0 root | Ben PROPN 4 nsubj (3-person) | fishes VERB 2 ccomp | it PRON3 4 obj
 | , PUNCT 9 punct | but CCONJ 9 cc | they PRON3 9 nsubj (1) | caught VERB 2 conj | nothing PRON 9 obj | . PUNCT 2 punct

Ben PROPN 2 nsubj (3) | drinks VERB 0 root | tea NOUN 2 obj | and CCONJ 5 cc | Tom PROPN 2 conj (2) | 5.1 drinks
 | coffee NOUN 5 orphan | ? PUNCT 2 punct

Silence NOUN 0 root

Quack INTJ 2 discourse | ! PUNCT 0 root

The DET 2 det (4-object | boat NOUN 3 nsubj 4) | leaked VERB 0 root | ; PUNCT 6 punct | he PRON3 6 nsubj (3)
 | patched VERB 3 parataxis | it PRON3 6 obj (4) | with ADP 10 case | his PRON3 10 nmod:poss (2) | shirt NOUN 6 obl
 | . PUNCT 3 punct
"""


def treebank(**documents: str) -> str:
    """CoNLL-U from the short notation above."""
    sentences = []
    for name, text in documents.items():
        for number, sentence in enumerate(text.strip().split("\n\n")):
            lines = [f"# newdoc id = {name}"] * (number == 0) + [f"# sent_id = {name}-{number}"]
            words = 0
            for token in sentence.replace("\n", " ").split(" | "):
                first, second, *rest = token.split()
                words += bool(rest)
                lines.append(_line(str(words), first, second, *rest) if rest else _line(first, second))
            sentences.append("\n".join(lines) + "\n\n")
    return "".join(sentences)


def _line(number: str, form: str, upos: str = "_", head: str = "_", relation: str = "_", entity: str = "") -> str:
    features = "Number=Sing|Person=3" if upos.endswith("3") else "_"
    misc = f"SpaceAfter=No|Entity={entity}" if entity else "_"
    return "\t".join([number, form, "_", upos.rstrip("3"), "_", features, head, relation, "_", misc])


CORPUS = treebank(mill=MILL, lake=LAKE)

GAP = "\n".join(
    "\t".join(row)
    for row in [
        ["ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref", "URL"],
        ["g-1", "Mary met Ann Lee; she left.", "she", "18", "Mary", "0", "TRUE", "Ann Lee", "9", "FALSE", "x"],
        [
            "g-2",
            "Tom saw Ben O'Neill. His boat sank.",
            "His",
            "21",
            "Tom",
            "0",
            "FALSE",
            "Ben O'Neill",
            "8",
            "TRUE",
            "x",
        ],
        ["g-3", "Anna told Eve that it rained.", "it", "19", "Anna", "0", "FALSE", "Eve", "10", "FALSE", "x"],
        ["g-4", "Before he spoke, Karl saw Uwe.", "he", "7", "Karl", "17", "TRUE", "Uwe", "26", "FALSE", "x"],
        ["g-5", "Ida, whom Old Ann hired, liked her.", "her", "31", "Ida", "0", "FALSE", "Old Ann", "10", "TRUE", "x"],
    ]
)


# ---- The models, and the results of the loops -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with room for a chunk of 128 pieces."""
    import torch

    folder = tmp_path_factory.mktemp("small") / "small"
    torch.manual_seed(1)
    model, tokenizer = tiny_models._bert(max_position_embeddings=140)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def small(small_folder: Path) -> Encoder:
    from mha_viz.models.reading.encoder import Encoder

    return Encoder.from_folder(small_folder)


class Both:
    """A model's study of a treebank, and the results of the loops over transformers' own attention."""

    def __init__(self, encoder: Encoder, folder: Path, text: str = CORPUS) -> None:
        self.encoder, self.folder, self.text = encoder, folder, text

    @cached_property
    def profile(self) -> Profile:
        return study(self.encoder, read_conllu(self.text))

    @cached_property
    def model(self) -> brute.Model:
        return brute.Model(self.folder)

    @cached_property
    def loops(self) -> brute.Results:
        return brute.results(self.text, self.model)

    @cached_property
    def untrained_model(self) -> brute.Model:
        return brute.Model(self.folder, seed=0)

    @cached_property
    def untrained(self) -> brute.Results:
        return brute.results(self.text, self.untrained_model)

    @cached_property
    def untrained_syntax(self) -> dict[brute.Key, brute.Count]:
        return brute.syntax(self.untrained.of())

    def number(self, line: Any) -> int:
        """Heads of all layers in order."""
        return int(line.layer) * self.encoder.heads + int(line.head)

    def lines(self, table: str, *, untrained: bool = False) -> Iterator[Any]:
        tables = self.profile.untrained if untrained else self.profile.tables
        return tables[table].itertuples(index=False)


@pytest.fixture(scope="module")
def of_small(small: Encoder, small_folder: Path) -> Both:
    return Both(small, small_folder)


@pytest.fixture(scope="module", params=lanes.some(["small", "minilm"], "small"))
def both(request: pytest.FixtureRequest) -> Both:
    if request.param == "small":
        both: Both = request.getfixturevalue("of_small")
        return both
    minilm = request.getfixturevalue("minilm")
    return Both(minilm, minilm.folder)


@pytest.fixture(scope="module")
def of_lake(small: Encoder) -> Profile:
    return study(small, read_conllu(treebank(lake=LAKE)))


# ---- Equal to the loops, table by table -----------------------------------------------------------------------------


def test_the_corpus_has_what_it_should(both: Both) -> None:
    sentences = brute.read(CORPUS)
    corpus = read_conllu(CORPUS)
    assert [s.forms for s in sentences] == [list(s.forms) for s in corpus.sentences]
    assert len(sentences) == both.profile.facts["counts"]["sentences"] == 18
    assert {len(s.forms) for s in sentences} >= {1, 2}
    assert len(both.loops.chunks) > 2  # one document is longer than a chunk
    assert any(len(set(r.words)) < len(r.words) - 1 for r in both.loops.readings)  # a word in several pieces
    assert corpus.left_out == ()


def test_syntax(both: Both) -> None:
    expected = brute.syntax(both.loops.of())
    lines = {((x.level, x.relation), x.direction, both.number(x)): x for x in both.lines("syntax")}
    assert {key: (x.n, x.correct) for key, x in lines.items()} == expected
    for key, (n, correct) in expected.items():
        assert lines[key].accuracy == pytest.approx(correct / n, abs=1e-12)
        assert (lines[key].ci_low, lines[key].ci_high) == pytest.approx(brute.wilson(correct, n), abs=1e-9)


def test_baselines_of_syntax(both: Both) -> None:
    sentences = [sentence for sentence, _ in both.loops.of()]
    options = {"offset": brute.count_by_offset(sentences), "untrained": both.untrained_syntax}
    best = {name: brute.pick_best(counts) for name, counts in options.items()}
    rules = brute.find_set_rules([sentence for sentence, _ in both.loops.of(0)])
    best["pos"] = brute.count_by_set_rules(sentences, rules)
    lines = list(both.lines("syntax_baselines"))
    assert len(lines) == sum(map(len, best.values()))
    for x in lines:
        group = x.level, x.relation
        assert (x.n, x.correct) == best[x.baseline][group, x.direction]
        if x.baseline == "pos":
            side, *tags = str(x.detail).split() if isinstance(x.detail, str) and x.detail else [None]
            assert (side, {*tags}) == rules.get((group, x.direction), (None, set()))
        else:  # the detail is one that does it
            rule = _parsed_choice(x.baseline, x.detail, both.encoder.heads)
            assert options[x.baseline][group, x.direction, rule] == (x.n, x.correct)
        assert x.accuracy == pytest.approx(x.correct / x.n, abs=1e-12)


def _parsed_choice(baseline: str, detail: str, heads: int) -> Any:
    if baseline == "offset":
        return int(detail)
    layer, head = detail.removeprefix("L").split("H")
    return int(layer) * heads + int(head)


def test_the_head_that_is_chosen_on_even_sentences(both: Both) -> None:
    even, odd = (brute.syntax(both.loops.of(half)) for half in (0, 1))
    sentences = [s for s, _ in both.loops.of(1)]
    offset = brute.pick_best(brute.count_by_offset(sentences))
    upos = brute.count_by_set_rules(sentences, brute.find_set_rules([sentence for sentence, _ in both.loops.of(0)]))
    untrained = brute.pick_best(brute.syntax(both.untrained.of(1)))
    accuracies: dict[Any, list[float]] = {}
    for (group, _, _), (n, correct) in even.items():
        accuracies.setdefault(group, []).append(correct / n)
    lines = list(both.lines("syntax_chosen"))
    assert {(x.level, x.relation) for x in lines} == set(accuracies)
    for x in lines:
        group, number = (x.level, x.relation), both.number(x)
        n, correct = even[group, x.direction, number]
        assert (x.n_even, x.accuracy_even) == (n, pytest.approx(correct / n))
        assert x.accuracy_even == max(accuracies[group])
        n, correct = odd.get((group, x.direction, number), (0, 0))
        assert x.n_odd == n
        if n:
            others = [counts[group, x.direction][1] / n for counts in (offset, upos, untrained)]
            numbers = [x.accuracy_odd, x.ci_low, x.ci_high, x.offset_odd, x.upos_odd, x.untrained_odd]
            assert numbers == pytest.approx([correct / n, *brute.wilson(correct, n), *others], abs=1e-9)


@pytest.mark.parametrize("untrained", [False, True], ids=["trained", "untrained"])
def test_undirected_edges(both: Both, untrained: bool) -> None:
    expected = brute.uas((both.untrained if untrained else both.loops).of())
    assert [(x.n, x.correct) for x in both.lines("uas", untrained=untrained)] == expected


@pytest.mark.parametrize("untrained", [False, True], ids=["trained", "untrained"])
def test_position(both: Both, untrained: bool) -> None:
    expected = brute.measure_position((both.untrained if untrained else both.loops).readings)
    rows = {(both.number(x), x.offset): x for x in both.lines("position", untrained=untrained)}
    assert rows.keys() == expected.keys()
    for key, (mass, share) in expected.items():
        assert rows[key].mass == pytest.approx(mass, abs=1e-6)
        assert rows[key].share_of_maxima == pytest.approx(share, abs=1e-12)


def test_what_stays_within_a_word(both: Both) -> None:
    expected = brute.measure_within_word(both.loops.readings)
    measured = {(both.number(x), x.offset): (x.mass_in_word, x.rows_in_word) for x in both.lines("position")}
    assert measured.keys() == expected.keys()
    for key, shares in expected.items():
        assert measured[key] == pytest.approx(shares, abs=1e-6)
    assert 0 < measured[0, -1][1] < 1  # some word has several pieces


@pytest.mark.parametrize("untrained", [False, True], ids=["trained", "untrained"])
def test_delimiters(both: Both, untrained: bool) -> None:
    expected = brute.measure_delimiter((both.untrained if untrained else both.loops).readings)
    assert all(x.both == pytest.approx(x.cls + x.sep) for x in both.lines("delimiter", untrained=untrained))
    rows = [(x.cls, x.sep, x.punctuation) for x in both.lines("delimiter", untrained=untrained)]
    assert np.array(rows) == pytest.approx(np.array(expected), abs=1e-6)


@pytest.mark.parametrize("untrained", [False, True], ids=["trained", "untrained"])
def test_entropy(both: Both, untrained: bool) -> None:
    expected = brute.measure_entropy((both.untrained if untrained else both.loops).readings)
    rows = [(x.nats, x.normalised) for x in both.lines("entropy", untrained=untrained)]
    assert np.array(rows) == pytest.approx(np.array(expected), abs=1e-6)


def test_distance(both: Both) -> None:
    names = [str(head) for head in both.profile.heads()]
    expected = {(names[a], names[b]): js for (a, b), js in brute.measure_distance(both.loops.readings).items()}
    rows = {(x.head_a, x.head_b): x.js for x in both.lines("distance")}
    assert rows.keys() == expected.keys()
    assert [rows[pair] for pair in expected] == pytest.approx(list(expected.values()), abs=1e-6)


@pytest.mark.parametrize("untrained", [False, True], ids=["trained", "untrained"])
def test_coreference(both: Both, untrained: bool) -> None:
    expected = brute.count_coreference((both.untrained if untrained else both.loops).chunks)
    counts = {
        (x.mention_type, both.number(x)): (x.n, x.correct) for x in both.lines("coreference", untrained=untrained)
    }
    assert counts == {key: count for key, count in expected.items() if isinstance(key[1], int)}
    assert {kind: n for (kind, head), (n, _) in counts.items() if head == 0}.keys() == {
        *("all", "pronoun", "third_person", "proper", "nominal")
    }
    assert min(n for n, _ in counts.values()) > 0


def test_baselines_of_coreference(both: Both) -> None:
    expected = brute.count_coreference(both.loops.chunks)
    untrained = brute.count_coreference(both.untrained.chunks)
    rules = [x.baseline for x in both.lines("coreference_baselines") if x.mention_type == "third_person"]
    assert rules == [*NAMED, "untrained"]
    for x in both.lines("coreference_baselines"):
        if x.baseline == "untrained":
            count = untrained[x.mention_type, _parsed_choice(x.baseline, x.detail, both.encoder.heads)]
            best = max(
                right for (kind, who), (_, right) in untrained.items() if kind == x.mention_type and who not in NAMED
            )
            assert (x.n, x.correct) == count == (count[0], best)
        else:
            assert (x.n, x.correct) == expected[x.mention_type, x.baseline]


NAMED = ("nearest", "same_form", "agreement")


def test_gap(both: Both) -> None:
    profile = study(both.encoder, read_gap(GAP))
    expected = brute.count_gap(GAP, both.model)
    assert [(x.n, x.correct) for x in profile.tables["gap"].itertuples()] == expected
    assert expected[0][0] == 4  # five rows, one of which is "neither"
    untrained = brute.count_gap(GAP, both.untrained_model)
    assert [(x.n, x.correct) for x in profile.untrained["gap"].itertuples()] == untrained


def roles_by_loops(loops: brute.Results) -> set[tuple[int, str, str]]:
    position, delimiter = brute.measure_position(loops.readings), brute.measure_delimiter(loops.readings)
    expected = set()
    for head, (_, normalised) in enumerate(brute.measure_entropy(loops.readings)):
        masses = zip(("cls", "sep", "punctuation"), delimiter[head], strict=True)
        expected |= {(head, "delimiter", name) for name, mass in masses if mass > 0.6}
        cls, sep, _ = delimiter[head]
        expected |= {(head, "delimiter", "both")} if cls + sep > 0.6 >= max(cls, sep) else set()
        expected |= {(head, "broad", "entropy")} if normalised >= 0.78 else set()
        for offset, name in ((-1, "previous"), (0, "same"), (1, "next")):
            mass, share = position[head, offset]
            expected |= {(head, "position", name)} if mass > 0.5 or share >= 0.9 else set()
    return expected  # too small a corpus for any role that needs a hundred cases


def test_roles_without_gold(both: Both) -> None:
    listed = {(both.number(x), x.role, x.detail) for x in both.lines("roles")}
    assert listed == roles_by_loops(both.loops)


def test_a_trained_model(minilm: Encoder) -> None:
    assert minilm.folder is not None
    both = Both(minilm, minilm.folder, treebank(lake=LAKE))
    both.profile = study(minilm, read_conllu(both.text), control=False)
    listed = {(both.number(x), x.role, x.detail) for x in both.lines("roles")}
    assert listed == roles_by_loops(both.loops)
    assert {"broad", "delimiter", "position"} <= {role for _, role, _ in listed}
    counts = {((x.level, x.relation), x.direction, both.number(x)): (x.n, x.correct) for x in both.lines("syntax")}
    assert counts == brute.syntax(both.loops.of())
    alone = study(minilm, read_conllu(both.text), batch=1, control=False)
    assert_same(alone, both.profile)


@pytest.fixture
def five_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mha_viz.analysis.roles.MIN_CASES", 5)


def by_sentence(text: str) -> str:
    """Every sentence as a separate document."""
    plain = re.sub(r"# newdoc id = .*\n", "", text)
    return "".join(f"# newdoc id = {i}\n{block}\n\n" for i, block in enumerate(plain.strip().split("\n\n")))


@pytest.mark.usefixtures("five_are_enough")
def test_the_intervals_of_roles_are_over_documents(small: Encoder, small_folder: Path) -> None:
    text = by_sentence(CORPUS)
    profile, loops = study(small, read_conllu(text), control=False), brute.results(text, brute.Model(small_folder))
    documents = [brute.syntax([pair]) for pair in loops.of()]
    keys = {key: sum(counts.get(key, (0, 0))[0] for counts in documents) for counts in documents for key in counts}
    lines = list(profile.tables["syntax"].itertuples())
    for x in lines[:: 7 if lanes.everything else 31]:
        key = ((x.level, x.relation), x.direction, x.layer * small.heads + x.head)
        if keys[key] < 5:
            assert np.isnan([x.role_low, x.role_high]).all()
            continue
        expected = brute.interval([counts.get(key, (0, 0))[::-1] for counts in documents])
        assert (x.role_low, x.role_high) == pytest.approx(expected, abs=1e-12)
        assert x.documents == sum(bool(counts.get(key, (0, 0))[0]) for counts in documents)
    assert any(n >= 5 for n in keys.values())
    chosen = list(profile.tables["syntax_chosen"].itertuples())
    assert any(x.documents for x in chosen)
    for x in chosen:  # judged on the sentences with odd numbers
        key = ((x.level, x.relation), x.direction, x.layer * small.heads + x.head)
        assert x.documents == sum(bool(counts.get(key, (0, 0))[0]) for counts in documents[1::2])


# ---- Any batches, order and pauses ----------------------------------------------------------------------------------


def assert_same(one: Profile, other: Profile, tables: Iterable[str] = ()) -> None:
    """Counts and names are equal, other numbers equal to 1e-9."""
    assert one.tables.keys() == other.tables.keys()
    for part in ("tables", "untrained"):
        for name in tables or getattr(one, part):
            a, b = getattr(one, part).get(name), getattr(other, part).get(name)
            if a is not None:
                pd.testing.assert_frame_equal(a, b, rtol=0, atol=1e-9, obj=f"{part} {name}")


@pytest.mark.parametrize("size", lanes.some([1, 50, 100_000], 1, 100_000))
def test_the_size_of_a_batch_changes_nothing(of_small: Both, size: int) -> None:
    assert_same(study(of_small.encoder, read_conllu(CORPUS), batch=size), of_small.profile)


def test_the_order_of_the_batches_changes_nothing(of_small: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mha_viz.study.measures.make_batches", lambda *given: make_batches(*given)[::-1])
    assert_same(study(of_small.encoder, read_conllu(CORPUS), batch=40), of_small.profile)


def test_the_number_of_workers_changes_nothing_at_all(small: Encoder) -> None:
    import torch

    alone = study(small, read_conllu(CORPUS), batch=40, control=False)
    torch.set_num_threads(3)
    try:
        shared = study(small, read_conllu(CORPUS), batch=40, control=False)
    finally:
        torch.set_num_threads(1)
    for name, table in alone.tables.items():
        pd.testing.assert_frame_equal(table, shared.tables[name], check_exact=True)


def sums_of(encoder: Encoder, corpus: Corpus, numbers: Sequence[int], chunks: Sequence[int]) -> Sums:
    """The sums over some of the sentences and chunks, one at a time."""
    run = StudyRun((encoder,), corpus)
    total = run._make_empty_sums(run.shard.labels)
    for kind, places in (("sentences", numbers), ("chunks", chunks)):
        for place in places:
            total.add(run._measure_batch(PASSES[0], kind, [place], total))
    return total


@pytest.fixture(scope="module")
def whole_sums(small: Encoder) -> Sums:
    """The sums over CORPUS, one sentence after the other."""
    corpus = read_conllu(CORPUS)
    return sums_of(small, corpus, range(18), range(len(plan(small, corpus).chunks)))


def assert_sums_equal(ours: Sums, theirs: Sums) -> None:
    assert ours.arrays.keys() == theirs.arrays.keys()
    for name, array in theirs.arrays.items():
        if array.dtype.kind == "f":
            np.testing.assert_allclose(ours.arrays[name], array, rtol=1e-12, atol=1e-9, err_msg=name)
        else:
            np.testing.assert_array_equal(ours.arrays[name], array, err_msg=name)
    assert ours.selection is not None
    assert theirs.selection is not None
    np.testing.assert_array_equal(ours.selection.cases, theirs.selection.cases)


@settings(max_examples=5 if lanes.everything else 2)
@given(st.lists(st.booleans(), min_size=18, max_size=18))
@example([number % 3 == 0 for number in range(18)])
def test_the_sums_of_two_parts_add_up_to_those_of_the_whole(
    small: Encoder, whole_sums: Sums, first: list[bool]
) -> None:
    corpus = read_conllu(CORPUS)
    chunks = range(len(plan(small, corpus).chunks))
    one = sums_of(small, corpus, [i for i in range(18) if first[i]], [i for i in chunks if first[i]])
    other = sums_of(small, corpus, [i for i in range(18) if not first[i]], [i for i in chunks if not first[i]])
    one.add(other)
    assert all(done.all() for done in one.select("done").values())
    assert_sums_equal(one, whole_sums)


def test_sums_of_two_corpora_add_up_by_name(small: Encoder) -> None:
    corpora = [read_conllu(treebank(mill=MILL)), read_conllu(treebank(lake=LAKE))]
    whole = StudyRun((small,), read_conllu(CORPUS))
    kind = PROFILE_SUMS._replace(rules=whole.shard.rules)  # those of the whole corpus
    first = len(corpora[0].sentences)
    runs = [StudyRun((small,), corpora[0], kind=kind), StudyRun((small,), corpora[1], first=first, kind=kind)]
    assert runs[0].shard.relations.names != runs[1].shard.relations.names
    both = merge_sums([run.measure() for run in runs[::-1]])
    assert [*both.documents] == ["mill", "lake"]
    assert_sums_equal(both, whole.measure())


class Stop:
    """Requests a stop when it is asked for the n-th time."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self) -> bool:
        self.left -= 1
        return self.left == 0


@pytest.fixture
def read_so_far(of_small: Both, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of pieces of all texts that any model reads from now on; the study to compare with is made before."""
    from mha_viz.models.reading.encoder import Encoder

    assert of_small.profile
    lengths: list[int] = []
    usual = Encoder.batch

    def counted(self: Encoder, sentences: Sequence[WordPieces]) -> Any:
        lengths.extend(map(len, sentences))
        return usual(self, sentences)

    monkeypatch.setattr(Encoder, "batch", counted)
    return lengths


@pytest.mark.parametrize("at", lanes.some([1, 2, 4, 11, 30], 1, 4, 30))
def test_a_study_that_was_stopped_goes_on_where_it_was(
    of_small: Both, tmp_path: Path, read_so_far: list[int], at: int
) -> None:
    small, corpus = of_small.encoder, read_conllu(CORPUS)
    with pytest.raises(Cancelled):
        study(small, corpus, batch=60, resume=tmp_path, cancelled=Stop(at))
    seen: list[Progress] = []
    before = sum(read_so_far)
    assert_same(study(small, corpus, batch=60, resume=tmp_path, progress=seen.append), of_small.profile)
    assert sorted(read_so_far) == once_each(small, corpus)  # nothing twice, nothing missing
    assert (before > 0) == (at > 1)
    assert seen[0].done >= min(before, seen[0].total // 2)  # loaded sums count at once
    assert seen[-1].fraction == 1
    assert list(tmp_path.iterdir()) == []


def once_each(encoder: Encoder, corpus: Corpus) -> list[int]:
    """The numbers of pieces of all texts that a study reads, each with trained and with untrained weights."""
    made = plan(encoder, corpus)
    read = [*made.sentences, *(pieces for _, pieces in made.chunks)]
    return sorted(2 * [len(pieces) for pieces in read if pieces])


def test_stopped_after_every_single_batch(
    small: Encoder, of_lake: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mha_viz.study.run.MAX_SUBMITTED", 0)
    corpus, stops = read_conllu(treebank(lake=LAKE)), 0
    while True:
        try:
            profile = study(small, corpus, batch=1, resume=tmp_path, cancelled=Stop(2 if stops < 7 else 3))
        except Cancelled:
            stops += 1
            assert stops < 40
        else:
            break
    assert stops > 8
    assert_same(profile, of_lake)


def test_gap_goes_on_where_it_was(small: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mha_viz.study.measures.GAP_ROWS", 2)
    gap = read_gap(GAP)
    with pytest.raises(Cancelled):
        study(small, gap, resume=tmp_path, cancelled=Stop(4))
    assert_same(study(small, gap, resume=tmp_path), study(small, gap))


def test_a_merge_that_is_broken_off_is_not_kept(
    of_small: Both, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with Ctrl-C: some sums include a part that others lack."""
    small, corpus, usual, added = of_small.encoder, read_conllu(CORPUS), Sums.add, []

    def broken(sums: Sums, part: Sums) -> None:
        added.append(part)
        if len(added) == 3:
            part.arrays["trained/distances/mixed"] = cast(Any, BrokenOff())
        usual(sums, part)

    monkeypatch.setattr(Sums, "add", broken)
    with pytest.raises(KeyboardInterrupt):
        study(small, corpus, batch=60, resume=tmp_path)
    monkeypatch.undo()
    assert_same(study(small, corpus, batch=60, resume=tmp_path), study(small, corpus))


class BrokenOff:
    """Numbers whose addition never ends."""

    dtype = np.dtype(float)
    __array_ufunc__ = None

    def __radd__(self, _: Any) -> Any:
        raise KeyboardInterrupt


def test_a_part_that_is_waited_for_when_somebody_interrupts_is_not_lost(
    small: Encoder, tmp_path: Path, read_so_far: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = read_conllu(CORPUS)
    usual, asked = Future.result, []

    def result(future: Future[Any], timeout: float | None = None) -> Any:
        asked.append(future)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return usual(future, timeout)

    monkeypatch.setattr(Future, "result", result)
    with pytest.raises(KeyboardInterrupt):
        study(small, corpus, batch=60, resume=tmp_path)
    monkeypatch.setattr(Future, "result", usual)
    assert read_so_far
    study(small, corpus, batch=60, resume=tmp_path)
    assert sorted(read_so_far) == once_each(small, corpus)


def test_what_was_kept_of_another_corpus_is_not_used(small: Encoder, of_lake: Profile, tmp_path: Path) -> None:
    text = treebank(lake=LAKE)
    with pytest.raises(Cancelled):
        study(small, read_conllu(text.replace("boat", "raft")), batch=40, resume=tmp_path, cancelled=Stop(4))
    assert [*tmp_path.iterdir()]
    assert_same(study(small, read_conllu(text), resume=tmp_path), of_lake)


@pytest.mark.parametrize("how", [pytest.param("cut"), "empty", "text"])
def test_a_kept_file_that_is_damaged_is_as_none(small: Encoder, of_lake: Profile, tmp_path: Path, how: str) -> None:
    corpus = read_conllu(treebank(lake=LAKE))
    with pytest.raises(Cancelled):
        study(small, corpus, resume=tmp_path, cancelled=Stop(4))
    for path in tmp_path.iterdir():
        data = path.read_bytes()
        path.write_bytes({"cut": data[: len(data) // 2], "empty": b"", "text": b"what is this?"}[how])
    assert_same(study(small, corpus, resume=tmp_path), of_lake)


def test_progress_grows_to_the_whole(small: Encoder) -> None:
    seen: list[Progress] = []
    study(small, read_conllu(CORPUS), batch=60, progress=seen.append)
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert {p.total for p in seen} == {seen[-1].done}
    assert Progress(0, 0).fraction == 1


# ---- No padding -----------------------------------------------------------------------------------------------------


def test_texts_of_different_lengths_are_never_in_one_batch(small: Encoder) -> None:
    made = plan(small, read_conllu(CORPUS))
    parts = make_batches(made.sentences, range(18), 4, 200)
    assert sorted(number for numbers in parts for number in numbers) == list(range(18))
    for numbers in parts:
        lengths = {len(text) for number in numbers if (text := made.sentences[number])}
        assert len(lengths) == 1
        assert len(numbers) * max(lengths) <= 200
    sizes = [sum(len(text) for number in numbers if (text := made.sentences[number])) for numbers in parts]
    assert sizes == sorted(sizes, reverse=True)  # the largest first
    assert len(set(sizes)) > 1
    one, two = made.sentences[0], made.sentences[2]
    assert one
    assert two
    with pytest.raises(ShapeError, match="different lengths"):
        small.batch([one, two])


def test_a_padded_batch_gives_the_same(both: Both) -> None:
    import torch

    forms = [list(s.forms) for s in read_conllu(CORPUS).sentences[:6]]
    given = both.model.tokenizer(forms, is_split_into_words=True, padding=True, return_tensors="pt")
    with torch.no_grad():
        padded = both.model.model(**given, output_attentions=True).attentions
    for at, words in enumerate(forms):
        weights = both.encoder.encode_words(words).weights
        n = weights.shape[-1]
        expected = np.stack([layer[at, :, :n, :n].numpy() for layer in padded])
        assert np.abs(weights - expected).max() < 1e-5


# ---- Sentences that cannot be read ----------------------------------------------------------------------------------

LONG = "\n | ".join(f"w{i} NOUN {i} dep" for i in range(200))
DROPPED = "Look VERB 0 root | \u200b NOUN 1 obj | . PUNCT 1 punct"


def test_a_sentence_that_cannot_be_read_is_named_and_the_others_stay(small: Encoder, of_lake: Profile) -> None:
    bad, good = treebank(bad=f"{LONG}\n\n{DROPPED}"), treebank(lake=LAKE)
    profile = study(small, read_conllu(bad + good))
    assert_same(profile, of_lake, ("uas", "position", "delimiter", "entropy", "distance", "roles"))
    assert profile.facts["left_out"] == 2
    long, dropped = profile.facts["left_out_first"]
    assert long.startswith("line 1: ")
    assert "reads 140" in long
    assert dropped.startswith("line 204: ")
    assert "keeps nothing of word 2" in dropped
    scored = profile.tables["syntax"].query("relation == 'dep'")
    assert (scored.n == 0).all()
    assert scored.accuracy.isna().all()


def test_a_sentence_that_cannot_be_read_ends_a_chunk(small: Encoder) -> None:
    before = "Tom PROPN 2 nsubj (1) | slept VERB 0 root"
    after = "He PRON3 2 nsubj (1) | woke VERB 0 root"
    assert len(plan(small, read_conllu(treebank(d=f"{before}\n\n{after}"))).chunks) == 1
    assert len(plan(small, read_conllu(treebank(d=f"{before}\n\n{DROPPED}\n\n{after}"))).chunks) == 0


def test_a_model_with_room_for_less_than_a_chunk(tiny: Callable[[str], Encoder], tiny_folder: Any) -> None:
    encoder = tiny("bert")
    assert encoder.limit == 64
    table = study(encoder, read_conllu(CORPUS), control=False).tables["coreference"]
    model = brute.Model(tiny_folder("bert"))
    expected = brute.count_coreference(brute.results(CORPUS, model).chunks)
    for x in table.itertuples():
        assert (x.n, x.correct) == expected[x.mention_type, x.layer * encoder.heads + x.head]


def test_a_corpus_without_a_sentence(small: Encoder) -> None:
    with pytest.raises(CorpusError, match="Nothing in empty can be read"):
        study(small, Corpus("empty", (), ""))
    with pytest.raises(CorpusError, match=r"Nothing in bad can be read.*keeps nothing of word 2"):
        study(small, read_conllu(treebank(bad=DROPPED), "bad"))
    with pytest.raises(CorpusError, match="Nothing in none can be read"):
        study(small, Gap("none", (), ""))


def test_sentences_of_one_word_have_no_syntax(small: Encoder) -> None:
    profile = study(small, read_conllu(treebank(one="Yes INTJ 0 root (1)\n\nNo INTJ 0 root (1)")))
    assert profile.tables["syntax"].empty
    assert (profile.tables["uas"].n == 0).all()
    assert profile.tables["uas"].accuracy.isna().all()
    assert np.isfinite(profile.tables["entropy"].normalised).all()
    assert profile.tables["coreference"].n.max() == 1  # "No" after "Yes", in one chunk


def test_the_longest_labels_that_are_read_make_tables_of_a_bounded_size(small: Encoder) -> None:
    """The largest allowed number of relations, each of the largest allowed length, in a full and in a base form."""
    pad = "\U00010400" * (MAX_LABEL - 5)  # four bytes each in UTF-8
    sentences = (f"Ann PROPN 2 {i:03}{pad}:s | owns VERB 0 root" for i in range(MAX_LABELS - 1))
    profile = study(small, read_conllu(treebank(worst="\n\n".join(sentences))))
    assert profile.tables["syntax"].relation.str.len().max() == MAX_LABEL
    made = sum(len(content.encode()) for content in profile.files().values())
    assert made < 1_000_000 * small.layers * small.heads


def test_plain_text_has_the_tables_that_need_no_gold(small: Encoder) -> None:
    profile = study(small, read_plain("Anna owns a mill.\nIt is old.\n"))
    every = {"position", "delimiter", "entropy", "distance", "copying", "candidates", "roles", "evidence"}
    assert profile.tables.keys() == every
    assert profile.facts["counts"]["sentences"] == 2


# ---- Names of GAP ---------------------------------------------------------------------------------------------------


def gap_of(*rows: str) -> str:
    """Rows from texts in which [p:…], [a:…] and [b:…] mark the three spans; a capital letter marks the right name."""
    lines = [GAP.split("\n")[0]]
    for number, text in enumerate(rows):
        plain, spans = "", {}
        for part in re.split(r"(\[\w:[^]]*\])", text):
            if part[1:3] in ("p:", "a:", "b:", "A:", "B:") and part[0] == "[":
                spans[part[1].lower()] = (part[3:-1], len(plain), part[1].isupper())
                part = part[3:-1]
            plain += part
        (p, p_at, _), (a, a_at, a_right), (b, b_at, b_right) = (spans[k] for k in "pab")
        cells = [number, plain, p, p_at, a, a_at, str(a_right).upper(), b, b_at, str(b_right).upper(), "x"]
        lines.append("\t".join(map(str, cells)))
    return "\n".join(lines)


def test_rows_of_neither_name_are_not_scored(small: Encoder) -> None:
    profile = study(small, read_gap(gap_of("[a:Ann] met [b:Eve] as [p:it] rained.")))
    assert (profile.tables["gap"].n == 0).all()
    assert profile.tables["gap"].accuracy.isna().all()


@pytest.mark.parametrize("name", [pytest.param("Lee Smith-Jones"), "Lee O'Neill", "Lee Jones", "Jones"])
def test_the_score_of_a_name_is_that_of_its_last_word(small: Encoder, small_folder: Path, name: str) -> None:
    text = gap_of(
        f"[A:{name}] met [b:Eve] and [p:she] left.",
        f"When [p:he] sat, [a:Tom] saw the [B:{name}].",
        f"Many say that [b:{name}] and [A:Ada] knew [p:her] well.",
    )
    table = study(small, read_gap(text), control=False).tables["gap"]
    assert [(x.n, x.correct) for x in table.itertuples()] == brute.count_gap(text, brute.Model(small_folder))
