"""The heads that minimal pairs need: in a profile, on the page Roles, in the search, in reports and in the docs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import mha_viz as mv
from mha_viz.analysis.needs import find_needs
from mha_viz.analysis.pairs import NEEDED, MinimalPairs
from mha_viz.analysis.profile import HEADINGS, Profile, read_profile
from mha_viz.app.widgets import head_search
from mha_viz.attention import Head
from mha_viz.cli import main
from mha_viz.corpus.pairs import ALL_PAIRS, NO_KIND
from mha_viz.errors import SettingError
from mha_viz.figures.words.need_words import MAX_KINDS, NOT_NEEDED, describe_need, explain_need, name_kinds
from mha_viz.figures.words.report_columns import NEEDED_BY_PAIRS
from mha_viz.study import pairs as study
from tests.page_session import PageSession

DOCS = Path(__file__).resolve().parent.parent / "docs" / "howto" / "cause.md"
MODELS = ("toy", "repeater")


@pytest.fixture(scope="module", params=MODELS)
def measured(request: pytest.FixtureRequest) -> MinimalPairs:
    return mv.minimal_pairs(request.param, f"{request.param}-pairs")


@pytest.fixture(scope="module")
def of_pair() -> MinimalPairs:
    typed = [("The girl smiles because she sings .", "The girl smiles because he sings .")]
    return mv.minimal_pairs("toy", typed, heads=["L1H1", "L0H0+L0H1"])


def unescape(markdown: str) -> str:
    return markdown.replace("\\", "")


def needs_of(name: str) -> Any:
    return find_needs(mv.load_profile(name).tables[NEEDED])


def test_bundled_tables_are_those_of_a_new_measurement(measured: MinimalPairs) -> None:
    bundled = mv.load_profile(measured.model)
    table = measured.stored_in(bundled).tables[NEEDED]
    assert tuple(table.columns) == HEADINGS[NEEDED]
    assert table["kind"].drop_duplicates().tolist() == [ALL_PAIRS, *measured.kinds]
    pd.testing.assert_frame_equal(bundled.tables[NEEDED], table, rtol=1e-3, atol=1e-12)


def test_a_profile_keeps_the_table_and_may_lack_it(of_pair: MinimalPairs, tmp_path: Path) -> None:
    stored = of_pair.stored_in(mv.load_profile("toy"))
    again = read_profile(stored.save(tmp_path / "with"))
    assert again == stored
    assert again.tables[NEEDED][["layer", "head", "kind"]].to_numpy().tolist() == [[1, 1, ALL_PAIRS]]
    without = {name: table for name, table in stored.tables.items() if name != NEEDED}
    older = read_profile(replace(stored, tables=without).save(tmp_path / "without"))
    assert find_needs(older.tables.get(NEEDED)) == {}


def test_the_table_of_a_profile_names_every_kind(tmp_path: Path) -> None:
    typed = [("The girl smiles because she sings .", "The girl smiles because he sings .", kind) for kind in ("", "NA")]
    profile = mv.minimal_pairs("toy", typed, heads=["L1H1"]).stored_in(mv.load_profile("toy"))
    again = read_profile(profile.save(tmp_path / "profile"))
    assert again == profile
    assert again.tables[NEEDED]["kind"].tolist() == [ALL_PAIRS, NO_KIND, "NA"]


def test_only_a_profile_of_the_same_model_takes_the_table(of_pair: MinimalPairs) -> None:
    with pytest.raises(SettingError, match=r"results are of toy \(\w+\), the profile of repeater \(\w+\)"):
        of_pair.stored_in(mv.load_profile("repeater"))
    profile = mv.load_profile("toy")
    other = replace(profile, facts={**profile.facts, "revision": "other"})
    with pytest.raises(SettingError, match=r"the profile of toy \(other\)"):
        of_pair.stored_in(other)
    together = replace(of_pair, ablated=of_pair.ablated[1:], margins=of_pair.margins[:, 1:])
    with pytest.raises(SettingError, match="no head was switched off alone"):
        together.stored_in(profile)


def fail_if_called(*_: Any, **__: Any) -> None:
    raise AssertionError("pairs were measured")


def test_the_command_stores_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("The girl smiles because she sings .\tThe girl smiles because he sings .\n", "utf-8")
    toy, repeater = (mv.load_profile(name).save(tmp_path / name) for name in MODELS)
    command = ["pairs", str(pairs), "--model", "toy", "--profile"]
    assert main([*command, str(toy)]) == 0
    assert set(read_profile(toy).tables[NEEDED]["pairs"]) == {"pairs.tsv"}
    capsys.readouterr()
    monkeypatch.setattr(study, "minimal_pairs", fail_if_called)
    assert main([*command, str(toy), "--heads", "L0H0+L0H3"]) == 2
    assert "no head was switched off alone" in capsys.readouterr().err
    refused = {str(repeater): "results are of toy (", "toy": "stays as it is", str(tmp_path / "none"): "does not exist"}
    for folder, said in refused.items():
        capsys.readouterr()
        assert main([*command, folder]) in (2, 3)
        assert said in capsys.readouterr().err


def test_a_need_is_said_in_one_sentence() -> None:
    needs = needs_of("toy")
    all_kinds = "agreement, copula, reflexive and pronoun"
    assert describe_need(needs[Head(1, 1)]) == (
        f"Needed for {all_kinds}: without it, 114 of 158 sentence pairs go wrong."
    )
    assert describe_need(needs[Head(0, 3)]) == "Needed for agreement: without it, 6 of 40 sentence pairs go wrong."
    assert describe_need(needs_of("repeater")[Head(0, 2)]) == (
        "Needed for word twice: without it, 16 of 39 sentence pairs go wrong."
    )
    assert describe_need(needs[Head(0, 0)]) == "Needed: without it, 6 of 158 sentence pairs go wrong."
    assert describe_need(needs[Head(1, 2)]) == NOT_NEEDED
    unneeded = needs[Head(0, 0)]
    assert "goes wrong" in describe_need(unneeded._replace(all_pairs=unneeded.all_pairs._replace(lost=1)))
    measured = needs[Head(1, 1)].by_kind["copula"]
    many = needs[Head(1, 1)]._replace(by_kind=dict.fromkeys("abcdefgh", measured))
    assert name_kinds(many) == f"{', '.join('abcdefgh'[:MAX_KINDS])} and 2 others"
    tip = explain_need(needs[Head(0, 3)])
    assert tip.startswith("toy-pairs; the head’s output is replaced by zeros. Right without it, and the change (95%")
    assert "(95% interval): agreement (40 pairs) 0.850, −0.150 [−0.291, −0.032], q < 0.001. Needed: fewer pairs" in tip
    assert "(95% interval): all 160 pairs 0.950, −0.03" in explain_need(needs[Head(0, 0)])
    assert NOT_NEEDED == "Not shown to be needed for any measured kind of pair."


@pytest.mark.usefixtures("no_hub")
@pytest.mark.app
def test_the_card_of_a_head_says_whether_pairs_need_it() -> None:
    for name, head in (("toy", Head(1, 1)), ("toy", Head(1, 2)), ("repeater", Head(0, 2))):
        need = needs_of(name)[head]
        page = PageSession({"model": name, "head": str(head)}, "pages/55_roles.py")
        lines = [line for line in page.at.markdown if unescape(line.value) == describe_need(need)]
        assert len(lines) == 1
        assert unescape(lines[0].proto.help) == explain_need(need)
    page = PageSession({"model": "minilm", "head": "L2H8"}, "pages/55_roles.py")
    assert not [line.value for line in page.at.markdown if "sentence pair" in line.value]


def test_heads_are_found_by_the_pairs_that_need_them() -> None:
    needs = needs_of("toy")
    group = head_search.find_by_need("needed for agreement", needs)
    assert group is not None
    assert [answer.head for answer in group.answers] == [Head(1, 1), Head(0, 3)]
    assert [answer.description for answer in group.answers] == ["needed for agreement"] * 2
    assert [(answer.score, answer.baseline) for answer in group.answers] == [("0.0%", "100.0%"), ("85.0%", "100.0%")]
    everything = head_search.find_by_need("Heads needed", needs)
    assert everything is not None
    assert [answer.score for answer in everything.answers] == ["27.5%", "85.0%", "95.0%"]
    assert everything.answers[2].description == "needed for sentence pairs"
    nothing = head_search.find_by_need("needed for Seen  word", needs_of("repeater"))
    assert nothing is not None
    assert (nothing.title, nothing.answers, nothing.note) == ("Needed for seen word", (), head_search.NONE_NEEDED)
    assert head_search.find_by_need("needed for breakfast", needs) is None
    assert head_search.find_by_need("agreement", needs) is None
    unmeasured = head_search.find_by_need("needed for agreement", {})
    assert unmeasured is not None
    assert unmeasured.note == "Sentence pairs were not measured with this model."


def test_reports_say_what_is_needed_where_it_was_measured() -> None:
    made = mv.roles.report(mv.load_profile("toy"))
    rows = made.table.drop_duplicates("name").set_index("name")
    assert rows.loc["L0H3", ["needed", "needed_for"]].tolist() == [True, "agreement"]
    assert rows.loc["L1H2", ["needed", "needed_for"]].tolist() == [False, ""]
    for text in (made.markdown(), made.latex()):
        assert text.count(NEEDED_BY_PAIRS) >= 2
        assert "yes: agreement, copula, reflexive and pronoun" in text
        assert "lead shrinks in more pairs than it grows" in text
    assert "Also needed: L0H2 (1-3)." in mv.roles.report(mv.load_profile("repeater")).markdown()
    minilm = mv.roles.report(mv.load_profile("minilm"))
    assert set(minilm.table["needed"]) == {""}
    assert NEEDED_BY_PAIRS not in minilm.markdown()


# ---- The table in the documentation ---------------------------------------------------------------------------------


class DocumentedHead:
    """A head's cells in the table of docs/howto/cause.md."""

    def __init__(self, looks: str, writes: str, change: str) -> None:
        self.roles = set(re.findall(r"`([\w]+)`", looks))
        self.copying = writes.replace("−", "-")
        self.change, self.is_bold = change.strip("*").replace("−", "-"), "**" in change


def documented() -> dict[str, dict[str, DocumentedHead]]:
    heads: dict[str, dict[str, DocumentedHead]] = {}
    section = DOCS.read_text("utf-8").partition("### What looks")[2].partition("```")[0]
    model = ""
    for line in re.findall(r"^\| (.*L\dH.*) \|$", section, re.MULTILINE):
        names, looks, writes, change = (cell.strip() for cell in line.split("|"))
        found = re.match(r"`(\w+)` ", names)
        model = found[1] if found else model
        listed, changes = re.findall(r"L\dH\d", names), change.split(", ")
        for number, head in enumerate(listed):
            heads.setdefault(model, {})[head] = DocumentedHead(looks, writes, changes[number % len(changes)])
    return heads


def roles_of(profile: Profile, head: str) -> set[str]:
    return {finding.detail.split()[0] for finding in profile.findings() if str(finding.head) == head}


def test_the_table_in_the_docs_is_that_of_a_new_measurement(measured: MinimalPairs) -> None:
    name = measured.model
    heads, copying, profile = documented()[name], mv.copying_scores(mv.load(name))["copying"], mv.load_profile(name)
    assert set(heads) == set(copying.index)
    found = mv.find_induction_heads(name).findings() if name == "repeater" else ()
    for need in measured.needs():
        row = heads[need.name]
        induction = {
            "induction" for finding in found if str(finding.head) == need.name and finding.detail == "induction"
        }
        assert row.roles == roles_of(profile, need.name) | induction
        assert float(row.copying) == pytest.approx(copying[need.name], abs=0.0051)
        assert float(row.change) == pytest.approx(need.difference, abs=0.00051)
        assert row.is_bold == need.is_needed
    (line,) = re.findall(r"^Right without any head off: .*", DOCS.read_text("utf-8"), re.MULTILINE)
    whole = measured.table().set_index("kind")
    everything = whole.loc["all"]
    assert f"`{name}` {everything.accuracy:.3f} [{everything.low:.3f}, {everything.high:.3f}] of `{name}-pairs`" in line
    for kind, of_kind in whole.drop("all").iterrows():
        assert re.search(rf"\b{kind}\b[^0-9]* {of_kind.accuracy:.3f}", line)
    if name == "repeater":
        together = mv.minimal_pairs(name, "repeater-pairs", heads=["L1H0+L1H1+L1H2+L1H3"]).needs()[0]
        assert together.is_needed
        assert f"(−{-together.difference:.3f})" in DOCS.read_text("utf-8")


def test_heads_of_minilm_in_the_docs_are_those_used_more_than_their_neighbours() -> None:
    used = mv.load_profile("minilm").tables["used"].query("used")
    roles: dict[str, set[str]] = {}
    for layer, head, detail in used[["layer", "head", "detail"]].itertuples(index=False, name=None):
        roles.setdefault(f"L{layer}H{head}", set()).add(detail.split()[0])
    heads = documented()["minilm"]
    assert {name: row.roles for name, row in heads.items()} == roles
    assert {row.change for row in heads.values()} == {"used more than its neighbours"}
