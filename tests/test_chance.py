"""How many roles chance would name: trees of other sentences, and the study of a head that knows its trees."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import mha_viz as mv
from mha_viz.analysis.chance import ChanceRoles, find_chance_roles
from mha_viz.cli import main
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu
from mha_viz.corpus.treebank import Corpus, Mention, Sentence, Word
from mha_viz.errors import CorpusError, SettingError
from mha_viz.study.chance import permute_trees, rotate_chains


def sentence(forms: str, heads: list[int | None]) -> Sentence:
    words = tuple(Word(form, "X", head, f"to{head}") for form, head in zip(forms, heads, strict=True))
    return Sentence(words, (Mention("1", 0, 1, 0),), document=forms)


THREE = Corpus("three", (sentence("ab", [1, None]), sentence("cde", [None, 0, 1]), sentence("fg", [None, 0])), "")


def test_two_sentences_of_one_length_change_their_trees_and_a_single_one_is_left_out() -> None:
    changed = permute_trees(THREE, 0).sentences
    assert [one.forms for one in changed] == [("a", "b"), ("f", "g")]
    assert [[word.head for word in one.words] for one in changed] == [[None, 0], [1, None]]
    assert [one.words[0].relation for one in changed] == ["toNone", "to1"]
    assert [(one.document, one.mentions) for one in changed] == [("ab", ()), ("fg", ())]


def test_every_tree_is_there_once_and_none_where_it_was() -> None:
    """As a multiset of trees, over sentences of a length that others have, too."""
    corpus = grammar.corpus(200)
    lengths = Counter(len(one.words) for one in corpus.sentences)
    with_partner = [one for one in corpus.sentences if lengths[len(one.words)] > 1]
    numbered = Corpus("numbered", tuple(_numbered(one, at) for at, one in enumerate(with_partner)), corpus.digest, True)
    changed = permute_trees(numbered, 3)
    donors = [int(one.words[0].features) for one in changed.sentences]
    assert sorted(donors) == list(range(len(with_partner)))
    assert all(donor != at for at, donor in enumerate(donors))
    assert [one.forms for one in changed.sentences] == [one.forms for one in with_partner]
    assert changed.digest != corpus.digest
    assert permute_trees(numbered, 3) == changed
    assert permute_trees(numbered, 4) != changed


def _numbered(one: Sentence, at: int) -> Sentence:
    return Sentence(tuple(word._replace(features=str(at)) for word in one.words), document=one.document)


@pytest.fixture
def few_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head is judged by so many cases that short corpora have them."""
    monkeypatch.setattr("mha_viz.analysis.roles.MIN_CASES", 15)  # instead of 100


@pytest.mark.usefixtures("few_cases")
def test_the_toy_has_more_roles_than_with_trees_of_other_sentences() -> None:
    roles_by_chance = mv.roles.permutation_test(grammar.corpus(40), "toy", draws=2)
    assert roles_by_chance.observed >= 4
    assert max(roles_by_chance.drawn) <= 1
    assert roles_by_chance.p == pytest.approx(1 / 3)


def test_chains_are_turned_along_the_mentions_of_a_document() -> None:
    def of(text: str, *chains: str) -> Sentence:
        return Sentence(
            tuple(map(Word, "abc")), tuple(Mention(name, at, at + 1, at) for at, name in enumerate(chains)), text
        )

    corpus = Corpus("chains", (of("one", "x", "y"), of("two", "z"), of("one", "x")), "", True, True)
    for seed in range(4):
        changed = rotate_chains(corpus, seed)
        chains = [[mention.chain for mention in one.mentions] for one in changed.sentences]
        assert chains in ([["y", "x"], ["z"], ["x"]], [["x", "x"], ["z"], ["y"]])
        assert (changed.has_trees, changed.has_chains) == (False, True)
        assert changed.digest != corpus.digest


def test_roles_of_coreference_by_chance_stand_beside_those_of_syntax(tmp_path: Path) -> None:
    corpus = grammar.corpus(150)
    of_chains = mv.roles.permutation_test(corpus, "toy", role="coreference", draws=1)
    assert of_chains.observed >= 1
    assert of_chains.drawn == (0,)
    profile = of_chains.stored_in(ChanceRoles(4, (1,), ("grammar",)).stored_in(mv.profile(corpus, "toy")))
    stored = mv.load_profile(profile.save(tmp_path / "toy"))
    assert find_chance_roles(stored, "coreference") == of_chains
    assert stored.tables["chance"]["role"].tolist() == ["syntax"] * 2 + ["coreference"] * 2
    assert "of coreference; with chains shifted along their documents none" in "".join(mv.roles.report(stored).notes)
    with pytest.raises(SettingError, match="'broad' is not a role that is counted"):
        mv.roles.permutation_test(corpus, "toy", role="broad")


def test_p_counts_the_observed_study_too() -> None:
    assert ChanceRoles(5, (0, 5, 6, 1)).p == pytest.approx(3 / 5)
    assert ChanceRoles(0, (0,)).p == 1


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(SettingError, match="draws is 0"):
        mv.roles.permutation_test("grammar", "toy", draws=0)
    with pytest.raises(SettingError, match=r"draws is 1\.5"):
        mv.roles.permutation_test("grammar", "toy", draws=1.5)  # type: ignore[arg-type]
    with pytest.raises(CorpusError, match="'None' is not a corpus"):
        mv.roles.permutation_test(None, "toy", also="grammar")  # type: ignore[arg-type]
    with pytest.raises(CorpusError, match="has no trees"):
        mv.roles.permutation_test("repeats", "toy", draws=1)


# ---- In a profile ----------------------------------------------------------------------------------------------------


def test_what_is_stored_is_read_again_and_stated_in_the_report(tmp_path: Path) -> None:
    toy = mv.load_profile("toy")
    chance = ChanceRoles(7, (0, 1, 0), ("grammar",))
    stored = mv.load_profile(chance.stored_in(toy).save(tmp_path / "toy"))
    assert find_chance_roles(stored) == chance
    words = "By chance: 7 roles of syntax; with the trees of other sentences at most 1, in 3 permutations (p = 0.250)"
    assert f"{words}, on grammar." in mv.roles.report(stored).notes
    table = stored.tables["chance"]
    is_of_trees = (table["role"] == "syntax") & (table["null"] != "kind")
    assert [*table["draw"][is_of_trees]] == [0, 1, 2, 3]


@pytest.mark.parametrize("chance", [ChanceRoles(7, (0,), ("other",)), ChanceRoles(6, (0,), ("grammar",))])
def test_what_was_counted_of_other_roles_is_not_stated(chance: ChanceRoles) -> None:
    toy = mv.load_profile("toy")
    assert find_chance_roles(chance.stored_in(toy)) is None
    tables = {name: table for name, table in toy.tables.items() if name != "chance"}
    assert find_chance_roles(replace(toy, tables=tables)) is None
    assert find_chance_roles(replace(toy, tables={**toy.tables, "roles": toy.tables["roles"][:0]})) is None


@pytest.mark.parametrize(("name", "roles", "corpora"), [("minilm", 27, 2), ("toy", 7, 1)])
def test_chance_names_none_of_the_shipped_roles(name: str, roles: int, corpora: int) -> None:
    chance = find_chance_roles(mv.load_profile(name))
    assert chance is not None
    assert (chance.observed, chance.drawn, len(chance.corpora)) == (roles, (0,) * 20, corpora)
    assert "with the trees of other sentences none, in 20 permutations (p = 0.048)" in mv.roles.report(
        mv.load_profile(name)
    ).markdown().replace("\\", "")


def test_progress_runs_once_over_all_draws_and_corpora() -> None:
    shares: list[float] = []
    one, other = grammar.corpus(30), grammar.corpus(30, seed=5)
    mv.roles.permutation_test(one, "toy", also=other, draws=1, progress=lambda so_far: shares.append(so_far.fraction))
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert {0.25, 0.5, 0.75} <= {*shares}


# ---- The command -----------------------------------------------------------------------------------------------------


def treebanks(folder: Path) -> tuple[str, str]:
    """Two corpora of sentences as files."""
    files = folder / "one.conllu", folder / "two.conllu"
    for file, seed in zip(files, (0, 5), strict=True):
        file.write_text(format_conllu(grammar.corpus(40, seed=seed).sentences), "utf-8")
    return str(files[0]), str(files[1])


@pytest.mark.usefixtures("few_cases")
def test_the_command_stores_what_chance_names_beside_the_roles_of_two_corpora(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = treebanks(tmp_path)
    out = tmp_path / "out"
    assert main(["profile", one, "--and", two, "--model", "toy", "--chance", "1", "--out", str(out)]) == 0
    profile = mv.load_profile(out)
    established = [role for role in profile.findings() if role.role == "syntax"]
    assert {role.status for role in established} == {"established"}
    assert len(established) > 2  # by both
    chance = find_chance_roles(profile)
    assert chance == ChanceRoles(len(established), (0,), ("two.conllu", "one.conllu"))
    assert "with the trees of other sentences none, in 1 permutation (p = 0.500)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "more", "words"),
    [
        (2, ["--chance", "0"], "from 1 to 10000"),
        (2, ["--chance", "1", "--and", "toy"], "--chance needs the trees of both corpora"),
        (2, ["--chance", "1", "--workers", "2"], "--chance is measured in this process"),
        (5, ["--chance", "1", "--and", "grammar"], "the same corpus"),
        (3, ["--and", "no/such"], "does not exist"),
    ],
)
def test_what_the_command_refuses(
    code: int, more: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", "grammar", "--model", "toy", *more, "--out", str(tmp_path / "out")]) == code
    assert words in capsys.readouterr().err
    assert not list(tmp_path.glob("out/*.csv"))


def test_a_corpus_without_trees_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["profile", "repeats", "--model", "repeater", "--chance", "1", "--out", str(tmp_path / "out")]
    assert main(command) == 5
    assert "has no trees" in capsys.readouterr().err
    assert not list(tmp_path.glob("out/*.csv"))
