"""Which roles of a profile are used: compared with ``effect``, in its files, by the command, and in the card of a
head."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mha_viz.analysis.profile import HEADINGS, Profile, read_profile
from mha_viz.analysis.syntax import DIRECTIONS
from mha_viz.cli import main
from mha_viz.cli.terminal import one_line
from mha_viz.cli.used import format_used
from mha_viz.errors import CorpusError, SettingError
from mha_viz.figures.words.report import _find_use
from mha_viz.figures.words.use_words import NO_MORE, USE, is_used
from mha_viz.files.assets import asset_path
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load
from mha_viz.study.cases import Cases
from mha_viz.study.corpus_ablation import corpus_ablation_effects
from mha_viz.study.corpus_effects import COREFERENCE, EffectCases
from mha_viz.study.used_roles import ablate_roles
from tests import lanes
from tests.page_session import PageSession

MOST = 6


@pytest.fixture(scope="module")
def profile() -> Profile:
    return read_profile(asset_path("profiles") / "toy" / "grammar")


@pytest.fixture(scope="module")
def measured(profile: Profile) -> Profile:
    return ablate_roles(profile, "grammar", load("toy"), most=MOST)


def test_a_row_is_what_effect_says_of_the_role(profile: Profile, measured: Profile) -> None:
    table = measured.tables["used"]
    assert tuple(table.columns) == HEADINGS["used"]
    roles = {(f.head.layer, f.head.head, f.detail) for f in profile.findings() if f.role in ("syntax", COREFERENCE)}
    assert {tuple(row) for row in table[["layer", "head", "detail"]].itertuples(index=False)} <= roles
    rows = [*table.itertuples(index=False)]
    for row in rows if lanes.everything else [rows[0], rows[len(rows) // 2], rows[-1]]:
        relation, _, direction = row.detail.partition(" ") if row.role == "syntax" else (COREFERENCE, "", "")
        same = [(f.head.layer, f.head.head) for f in profile.findings() if f.detail == row.detail]
        alone = corpus_ablation_effects(
            "grammar", [(row.layer, row.head)], "toy", relation=relation, direction=direction or DIRECTIONS[0],
            same_role=same, most=MOST,
        )  # fmt: skip
        first = alone.rows[0]
        assert (row.n, row.effect) == (alone.cases, pytest.approx(first.effect))
        assert (row.more, row.used) == (pytest.approx(first.more, nan_ok=True), first.used)


def test_pronouns_are_measured_where_their_antecedent_stands_before() -> None:
    result = corpus_ablation_effects("grammar", ["L1H1"], "toy", relation=COREFERENCE, most=40)
    assert result.direction == ""
    assert result.cases > 0
    assert result.rows[0].effect > max(row.effect for row in result.rows[1:])


def test_the_table_is_a_file_of_the_profile(measured: Profile, tmp_path: Path) -> None:
    again = read_profile(measured.save(tmp_path / "profile"))
    assert again == measured
    assert again.head("L1H1")["used"]["detail"].tolist() == measured.head("L1H1")["used"]["detail"].tolist()


def test_roles_that_one_sentence_cannot_test_have_no_verdict(profile: Profile, tmp_path: Path) -> None:
    untested = ablate_roles(profile, "grammar", most=1, resume=str(tmp_path))
    assert all(cell is None for cell in untested.tables["used"]["used"])
    saved = read_profile(untested.save(tmp_path / "profile"))
    assert [is_used(cell) for cell in saved.tables["used"]["used"]] == [None] * len(untested.tables["used"])
    heading, *lines = format_used(saved)
    assert f"0 of 0 roles {USE}" in heading
    assert all(line.endswith("not tested") for line in lines)
    assert _find_use(saved) == {}


def test_the_profile_of_another_model_and_a_corpus_without_cases_are_refused(profile: Profile, minilm: Encoder) -> None:
    with pytest.raises(SettingError, match="of toy, not of minilm"):
        ablate_roles(profile, "grammar", minilm)
    with pytest.raises(CorpusError):
        ablate_roles(profile, "nowhere.conllu", load("toy"))


def test_the_corpus_of_the_profile_keeps_the_name_that_it_has_there(profile: Profile) -> None:
    named = replace(profile, facts={**profile.facts, "corpus": "mine"})
    assert set(ablate_roles(named, "grammar", load("toy"), most=2).tables["used"]["corpus"]) == {"mine"}


def test_the_command_writes_and_prints_the_table(
    profile: Profile, measured: Profile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["used", "toy", "grammar", "--most", str(MOST)]) == 0
    assert capsys.readouterr().out.splitlines() == [one_line(line) for line in format_used(measured)]
    assert read_profile(asset_path("profiles") / "toy" / "grammar") == profile, "what comes with the app stays as it is"
    folder = profile.save(tmp_path / "profile")
    assert main(["used", str(folder), "grammar", "--most", str(MOST)]) == 0
    assert capsys.readouterr().out.splitlines() == [one_line(line) for line in format_used(read_profile(folder))]
    assert main(["used", str(tmp_path / "none"), "grammar"]) != 0
    assert "does not exist" in capsys.readouterr().err


def test_a_command_that_was_stopped_continues_with_the_roles_that_are_left(
    profile: Profile, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, folder = profile.save(tmp_path / "whole"), profile.save(tmp_path / "profile")
    assert main(["used", str(whole), "grammar", "--most", "3", "--method", "mean"]) == 0
    answer, measured, calls = capsys.readouterr().out, EffectCases.cases, [*range(5)]

    def stopped(self: EffectCases, encoder: Encoder, numbered: Any) -> Cases:
        if not calls:
            raise KeyboardInterrupt
        calls.pop()
        return measured(self, encoder, numbered)

    command = ["used", str(folder), "grammar", "--most", "3", "--method", "mean"]
    with monkeypatch.context() as patch:
        patch.setattr(EffectCases, "cases", stopped)
        assert main(command) == 130
    assert f"in {folder / '.parts'}; run the same command again to continue." in capsys.readouterr().err
    assert len([*(folder / ".parts").glob("*.npz")]) == 3, "the means, one role whole, one begun"
    again: list[int] = []

    def counted(self: EffectCases, encoder: Encoder, numbered: Any) -> Cases:
        again.append(len(numbered))
        return measured(self, encoder, numbered)

    monkeypatch.setattr(EffectCases, "cases", counted)
    assert main(command) == 0
    roles = {(f.role, f.detail) for f in profile.findings() if f.role in ("syntax", COREFERENCE)}
    assert len(again) == 3 * len(roles) - 5
    assert capsys.readouterr().out == answer
    assert read_profile(folder) == read_profile(whole)
    assert not (folder / ".parts").exists()


def table_of_use(page: PageSession) -> Any:
    """What the card of a head says of each of its roles."""
    (table,) = [table.value for table in page.at.dataframe if "more than other heads" in table.value]
    return table


@pytest.mark.usefixtures("no_hub")
@pytest.mark.app
def test_the_card_of_a_head_says_what_was_measured(profile: Profile) -> None:
    page = PageSession({"model": "toy", "head": "L1H1"}, "pages/55_roles.py").open_numbers()
    rows: Any = profile.head("L1H1")["used"]
    assert len(rows)
    assert "Is it used?" in page.said
    assert not rows["effect"].isna().any()
    assert table_of_use(page)[USE].ne(NO_MORE).tolist() == rows["used"].tolist()
    assert (
        "Is it used?" not in PageSession({"model": "minilm", "head": "L0H2"}, "pages/55_roles.py").open_numbers().said
    )


@pytest.mark.usefixtures("no_hub")
@pytest.mark.app
def test_roles_of_the_default_model_are_judged_too() -> None:
    shipped = read_profile(asset_path("profiles") / "minilm" / "ewt")
    roles = {(f.head.layer, f.head.head, f.detail) for f in shipped.findings() if f.role == "syntax"}
    table = shipped.tables["used"]
    assert {tuple(row) for row in table[["layer", "head", "detail"]].itertuples(index=False)} == roles
    assert set(table["corpus"]) == {shipped.corpus}
    rows: Any = table.itertuples(index=False)
    assert all(row.more_low > 0 for row in rows if row.used)
    readme = (Path(__file__).resolve().parent.parent / "README.md").read_text("utf-8")
    assert f"For {table['used'].sum()} of the {len(table)}, the model depends on the head more than" in readme
    page = PageSession({"model": "minilm", "head": "L2H8"}, "pages/55_roles.py").open_numbers()
    shown = table_of_use(page)
    assert {*shown[USE]} == {"yes: changes its word most", NO_MORE}
    assert shown["role"][shown[USE] != NO_MORE].str.endswith("to its syntactic head").all()
