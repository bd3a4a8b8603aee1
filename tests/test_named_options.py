"""Small promises of page, library and command line: names of shipped profiles, remedies that name their option, the
number of used roles, and the corpus of mean outputs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import mha_viz as mv
from mha_viz.analysis.chance import ChanceRoles
from mha_viz.analysis.corpus_effects import WORD_STATE
from mha_viz.analysis.profile import Profile
from mha_viz.app.roles import headline
from mha_viz.app.service.studies import Evidence, load_bundled
from mha_viz.cli import main
from mha_viz.errors import CorpusMissing, TextError
from mha_viz.figures.words.glosses import describe_rule
from mha_viz.figures.words.use_words import NO_MORE
from mha_viz.model_names import cite_model
from mha_viz.models.reading.answers import make_question
from mha_viz.models.reading.loading import load
from mha_viz.numerals import percent

ROOT = Path(__file__).resolve().parent.parent
SENTENCES = "the dog saw the cat\nthe girl sees the dog\n"


@pytest.mark.parametrize("name", ["minilm", "toy", "repeater"])
def test_a_shipped_profile_is_opened_by_the_name_of_its_model(name: str) -> None:
    profile = mv.load_profile(name)
    assert (profile.model, len(profile.findings()) > 0) == (name, True)


def test_the_remedy_for_a_profile_that_does_not_exist_names_the_shipped_ones() -> None:
    with pytest.raises(CorpusMissing, match="does not exist") as refused:
        mv.load_profile("minlim")
    assert all(
        name in str(refused.value)
        for name in ("“minilm”", "“toy”", "“repeater”", "mha-viz profile CORPUS --out FOLDER")
    )


def test_remedies_name_the_argument_and_the_option() -> None:
    toy = load("toy")
    with pytest.raises(TextError, match=r"\(other=, --other\)"):
        make_question(toy, "the dog saw the cat")
    with pytest.raises(TextError, match=r"\(place=, --place\)"):
        make_question(toy, "the [MASK] saw the [MASK]")


def test_the_command_names_only_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], in_process: None
) -> None:
    assert main(["recipes", "toy", "--out", str(tmp_path / "x")]) != 0
    assert capsys.readouterr().err.strip().endswith("Name one (--score).")


def test_the_page_says_how_many_heads_are_used() -> None:
    shipped = mv.load_profile("minilm")
    heads = shipped.tables["used"].groupby(["layer", "head"])["used"].agg(lambda used: "True" in [*map(str, used)])
    changes = "change their word more than neighbours"
    assert f" **{len(heads)}** link words (**{sum(heads)}** {changes})." == headline._describe_linking_heads(
        Evidence("", (shipped,))
    )
    assert headline._describe_linking_heads(Evidence("", (mv.load_profile("repeater"),))) == ""
    both = load_bundled("minilm")  # on the other corpus a head links pronouns, which nobody measured without it
    assert both is not None
    linking = {finding.head for finding in both.findings() if finding.role in ("syntax", "coreference")}
    assert (
        headline._describe_linking_heads(both)
        == f" **{len(linking)}** link words (**{sum(heads)}** of {len(heads)} {changes})."
    )
    assert len(linking) > len(heads)


@pytest.mark.parametrize(
    ("highest_q", "chance", "words"),
    [
        (0.0009, ChanceRoles(27, (0, 0, 0)), " Linking words, against fixed offsets: q < 0.001; chance: 0 in 3 draws."),
        (
            0.0571,
            ChanceRoles(27, (0, 2)),
            " Linking words, against fixed offsets: q ≤ 0.058; chance: up to 2 in 2 draws.",
        ),
        (0.0571, None, " Linking words, against fixed offsets: q ≤ 0.058."),
        (math.nan, ChanceRoles(27, (0,)), " Linking words, against fixed offsets: chance: 0 in 1 draws."),
        (math.nan, None, ""),
    ],
)
def test_the_page_says_how_sure_roles_are_where_that_was_computed(
    highest_q: float, chance: ChanceRoles | None, words: str
) -> None:
    assert headline._write_certainty(highest_q, chance) == words


def test_without_switching_off_the_page_says_how_many_heads_link_words() -> None:
    shipped = mv.load_profile("toy")
    without = {name: table for name, table in shipped.tables.items() if name not in ("used", "chance")}
    assert headline._describe_linking_heads(Evidence("", (Profile(shipped.facts, without),))) == " **5** link words."


def test_the_command_takes_means_over_a_corpus_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], in_process: None
) -> None:
    corpus, other = tmp_path / "measured.txt", tmp_path / "other.txt"
    corpus.write_text(SENTENCES, "utf-8")
    other.write_text("a boy sleeps\n", "utf-8")
    command = ["effect", str(corpus), "--model", "toy", "--heads", "L0H1", "--out", str(tmp_path / "x.csv")]

    def effects(*more: str) -> list[float]:
        assert main([*command, *more]) in (0, None)
        table: Any = pd.read_csv(tmp_path / "x.csv")
        return [float(value) for value in table["effect"]]

    of_itself, of_other = effects("--method", "mean"), effects("--method", "mean", "--means", str(other))
    given = mv.corpus_ablation_effects(corpus, ["L0H1"], "toy", method="mean", means=other).table()
    assert of_other == pytest.approx([*given["effect"]], rel=1e-6)
    assert of_other != of_itself
    assert "mean over other.txt" in capsys.readouterr().out


def test_means_without_the_method_mean_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.txt").write_text(SENTENCES, "utf-8")
    file = str(tmp_path / "x.txt")
    assert main(["effect", file, "--model", "toy", "--heads", "L0H1", "--means", file]) != 0
    assert "Add --method mean or resample, or leave --means out." in capsys.readouterr().err


def test_the_example_of_a_report_has_the_numbers_that_it_asks_for() -> None:
    profile = mv.load_profile("minilm")
    role = next(one for one in profile.findings() if (str(one.head), one.detail) == ("L2H8", "case dep_to_head"))
    used = profile.tables["used"].query("layer == 2 and head == 8 and detail == 'case dep_to_head'")["used"]
    assert [*map(str, used)] == ["False"]
    other = role.other_score
    assert other is not None
    example = next(line for line in (ROOT / "docs/howto/cite.md").read_text("utf-8").splitlines() if "“L2H8" in line)
    revision = str(profile.facts["revision"])
    for words in (
        f"L2H8 ({role.head.paper}) of {cite_model(profile.model, revision)} coincides",
        "(UD English EWT test, commit 15d613d; ",
        "and it holds on UD English LinES test (69.7% of 1,909 cases in 9 documents)",
        f"in {percent(role.score)} of {role.n:,} cases (UD English EWT test",
        f"95% interval {percent(role.low)} to {percent(role.high)}, a bootstrap over {role.documents} documents)",
        f"best fixed offset {percent(role.baseline)}, the {describe_rule(role.upos_rule)} {percent(role.upos)} ",
        "(on GUM, ",
        f"the {describe_rule(other.upos_rule)} {percent(other.upos)}): the head is {role.state} it",
        f"picks the right one in {percent(role.comparison.choice)} (the nearest: {percent(role.comparison.nearest)})",
        f"best head with random weights {percent(role.untrained)}; also established on {other.corpus} ",
        f"({percent(other.score)})",
        f"Set to zero, it changes its word, by {WORD_STATE}, {NO_MORE}.",
    ):
        assert words in example


def test_the_citation_names_the_version_and_its_day() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    released = f"## {mv.__version__} - {cited['date-released']}"
    assert cited["version"] == mv.__version__
    assert released in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
