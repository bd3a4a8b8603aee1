"""Profiles in folders: the promised headings, read as written, never incomplete."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pytest

from mha_viz import files
from mha_viz.analysis.findings import AGREEMENT_ODD, COMPARISON_COLUMNS, DOCUMENTS, OTHER_COLUMNS, RULE_Q, Q
from mha_viz.analysis.profile import DEFINITIONS, HEADINGS, UNTRAINED_TABLES, Profile, read_findings, read_profile
from mha_viz.attention import Head
from mha_viz.errors import CorpusError, CorpusMissing, ExportError
from mha_viz.figures.words.role_words import describe_evidence
from mha_viz.numerals import percent

PROMISED = {
    "syntax": "level,relation,direction,layer,head,n,correct,accuracy,ci_low,ci_high,role_low,role_high,documents,"
    "both,rule_low,rule_high",
    "choice": "relation,direction,layer,head,n,kind,choice_n,choice,nearest,side,random,choice_low,choice_high,"
    "documents",
    "syntax_baselines": "level,relation,direction,baseline,detail,n,correct,accuracy",
    "position": "layer,head,offset,mass,share_of_maxima,mass_in_word,rows_in_word",
    "delimiter": "layer,head,cls,sep,punctuation,both",
    "entropy": "layer,head,nats,normalised",
    "coreference": "layer,head,mention_type,n,correct,accuracy,role_low,role_high,documents,both,rule_low,rule_high",
    "distance": "head_a,head_b,js",
    "roles": "layer,head,role,detail,score,baseline,gain,n,ci_low,ci_high,"
    "upos_baseline,upos_rule,state,untrained,status,corpora,lowest_score,documents,"
    "rule_low,rule_high,kind,choice_n,choice,nearest,choice_low,choice_high,"
    "other_corpus,other_score,other_upos_baseline,other_upos_rule,other_rule_low,other_rule_high,other_kind,"
    "other_choice_n,other_choice,other_nearest,other_choice_low,other_choice_high,q,rule_q",
}
FACTS = {"model": "tiny", "layers": 2, "heads": 1, "corpus": "née", "definitions": DEFINITIONS, "left_out": 0}


def profile_of(*names: str, rows: int = 2, **facts: Any) -> Profile:
    """Numbers in every column, of the type that the headings require."""

    def cell(heading: str, row: int) -> Any:
        texts = {"level": "full", "relation": "nmod:poss", "direction": "head_row", "baseline": "pos", "role": "broad"}
        texts |= {"detail": "left NOUN", "mention_type": "all", "head_a": "L0H0", "head_b": "L1H0"}
        if heading == "state":
            return "beats" if row else "below"
        if heading in texts and not (heading == "baseline" and names == ("roles",)):
            return texts[heading]
        return row if heading in ("layer", "head", "n", "correct", "offset", "n_even", "n_odd") else (row + 1) / 3

    tables = {
        n: pd.DataFrame([[cell(h, i) for h in HEADINGS[n]] for i in range(rows)], columns=[*HEADINGS[n]]) for n in names
    }
    return Profile(FACTS | facts, tables, {name: tables[name] for name in names if name in UNTRAINED_TABLES})


def same(one: Profile, other: Profile) -> bool:
    """Whether tables and facts are the same; a cell without a value may be None, NaN or empty."""
    for part in ("tables", "untrained"):
        assert getattr(one, part).keys() == getattr(other, part).keys()
        for name, table in getattr(one, part).items():
            theirs, ours = (t.astype(object).where(t.notna(), "") for t in (getattr(other, part)[name], table))
            pd.testing.assert_frame_equal(theirs, ours, rtol=1e-8, obj=name)
    return dict(one.facts) == dict(other.facts)


# ---- Headings and a round trip ---------------------------------------------------------------------------------------


def test_headings_are_as_promised() -> None:
    assert {name: ",".join(HEADINGS[name]) for name in PROMISED} == PROMISED
    assert {"syntax_chosen", "uas", "coreference_baselines", "gap"} <= HEADINGS.keys()


@pytest.mark.parametrize("name", HEADINGS)
def test_a_file_begins_with_its_heading(name: str, tmp_path: Path) -> None:
    profile_of(name).write(tmp_path)
    text = (tmp_path / f"{name}.csv").read_text("utf-8")
    assert text.split("\n")[0] == ",".join(HEADINGS[name])
    assert text.count("\n") == 3
    assert (tmp_path / "untrained" / f"{name}.csv").exists() == (name in UNTRAINED_TABLES)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    written = profile_of(*HEADINGS)
    written.write(tmp_path / "a" / "folder")
    opened = read_profile(tmp_path / "a" / "folder")
    assert same(written, opened)
    assert (opened.model, opened.corpus, opened.shape) == ("tiny", "née", (2, 1))
    assert opened.heads() == (Head(0, 0), Head(1, 0))


def test_tables_without_a_line_and_cells_without_a_number(tmp_path: Path) -> None:
    written = profile_of("roles", "syntax", rows=0)
    written.tables["position"] = pd.DataFrame([[0, 0, 5, *[math.nan] * 4]], columns=[*HEADINGS["position"]])  # type: ignore[index]
    written.write(tmp_path)
    opened = read_profile(tmp_path)
    assert opened.tables["roles"].empty
    assert opened.tables["position"].mass.isna().all()


@pytest.mark.parametrize("text", ["NA", "null", "None", "nan", "a,b", 'a"b', "née"])
def test_a_relation_of_any_name_stays_what_it_is(tmp_path: Path, text: str) -> None:
    written = profile_of("syntax")
    written.tables["syntax"]["relation"] = text
    written.write(tmp_path)
    assert set(read_profile(tmp_path).tables["syntax"].relation) == {text}


def test_the_profile_of_a_study_is_read_as_it_was(tiny: Any, tmp_path: Path) -> None:
    from mha_viz.corpus.conllu import read_conllu
    from mha_viz.study.run import study

    lines = ["1\tAnn\t_\tPROPN\t_\t_\t2\tnsubj\t_\tEntity=(1)", "2\tslept\t_\tVERB\t_\t_\t0\troot\t_\t_"]
    lines += ["3\tshe\t_\tPRON\t_\tPerson=3\t2\tparataxis\t_\tEntity=(1)"]
    written = study(tiny("bert"), read_conllu("\n".join(lines) + "\n\n"))
    written.write(tmp_path)
    assert same(written, read_profile(tmp_path))
    assert repr(read_findings(tmp_path)) == repr(read_profile(tmp_path).findings())  # NaN is not equal to itself


def test_an_empty_detail_is_read_as_an_empty_detail(tmp_path: Path) -> None:
    written = profile_of("coreference_baselines")
    written.tables["coreference_baselines"]["detail"] = ""
    written.write(tmp_path)
    assert set(read_profile(tmp_path).tables["coreference_baselines"].detail) == {""}


# ---- The roles alone -------------------------------------------------------------------------------------------------

LINE = f"1,0,broad,entropy,0.8,0.5,0.3,12,,,,,,0.6,established,EWT; GUM,0.7,{',' * 9}GUM,0.7{',' * 12}\n"
OBJ = (
    '2,3,syntax,obj head_row,0.8,0.5,0.3,12,0.7,0.9,0.75,"nearest VERB, AUX or ADJ to the left",equals,0.1,'
    f"suggested,EWT,0.8,30,-0.1,0.2,0.6,7,0.9,0.8,-0.02,0.04{',' * 12},0.002,0.03\n"
)


def test_findings_are_the_lines_of_the_roles(tmp_path: Path) -> None:
    (tmp_path / "roles.csv").write_text(PROMISED["roles"] + "\n" + LINE + OBJ)
    one, other = read_findings(tmp_path)
    assert one[:7] == (Head(1, 0), "broad", "entropy", 0.8, 0.5, 0.3, 12)
    assert math.isnan(one.low)
    assert (one.status, one.corpora, one.lowest, one.untrained) == ("established", ("EWT", "GUM"), 0.7, 0.6)
    assert (one.upos_rule, one.state, one.is_matched_by_rule, other.is_matched_by_rule) == ("", "", False, True)
    assert (other.low, other.high) == (0.7, 0.9)
    assert (other.upos, other.upos_rule, other.state) == (0.75, "nearest VERB, AUX or ADJ to the left", "equals")
    assert other.comparison == (-0.1, 0.2, 0.6, 7, 0.9, 0.8, -0.02, 0.04)
    assert (other.corpora, other.documents, one.documents) == (("EWT",), 30, None)
    assert one.other_score is not None
    assert one.other_score[:2] == ("GUM", 0.7)
    assert other.other_score is None
    assert (other.q, other.rule_q) == (0.002, 0.03)
    assert math.isnan(one.q)
    assert read_findings(tmp_path / "nowhere") == ()


def test_a_profile_by_the_definitions_before_is_read_with_its_rule_of_one_part_of_speech(tmp_path: Path) -> None:
    profile_of("roles").write(tmp_path)
    old = "upos_baseline,upos_rule,beats_upos,untrained,status,corpora,lowest_score,documents,"
    old = f"layer,head,role,detail,score,baseline,gain,n,ci_low,ci_high,{old}"
    old += "other_corpus,other_score,other_upos_baseline,other_upos_rule,q\n"
    line = "1,0,syntax,case dep_to_head,0.69,0.3,0.39,1969,0.6,0.7,0.52,nearest NOUN to the right,{},,established,"
    lines = [
        line.format(beats) + "EWT; GUM,0.68,300,GUM,0.68,0.63,nearest NOUN to the right,\n" for beats in (True, False)
    ]
    (tmp_path / "roles.csv").write_text(old + "".join(lines))
    facts = json.loads((tmp_path / "profile.json").read_text("utf-8"))
    facts = {n: f for n, f in facts.items() if n not in ("digests", "seal")} | {"definitions": "3"}
    (tmp_path / "profile.json").write_text(json.dumps(facts))
    for findings in (read_profile(tmp_path).findings(), read_findings(tmp_path)):
        assert [finding.state for finding in findings] == ["beats", "below"]
        assert findings[0].upos_rule == "nearest NOUN to the right"
        assert math.isnan(findings[0].comparison.rule_low)
    (tmp_path / "profile.json").write_text(json.dumps(facts | {"definitions": "2"}))
    with pytest.raises(CorpusError, match="definitions 2"):
        read_profile(tmp_path)


LAST = (*COMPARISON_COLUMNS, *OTHER_COLUMNS, Q, RULE_Q)


@pytest.mark.parametrize("later", [len(LAST), len((DOCUMENTS, *LAST))])
def test_tables_of_older_versions_without_the_later_columns_are_read(tmp_path: Path, later: int) -> None:
    profile_of("roles").write(tmp_path)
    for path in tmp_path.glob("**/roles.csv"):
        path.write_text(
            "".join(line.rsplit(",", later)[0] + "\n" for line in path.read_text("utf-8").splitlines()), "utf-8"
        )
    facts = json.loads((tmp_path / "profile.json").read_text("utf-8"))
    (tmp_path / "profile.json").write_text(json.dumps({n: f for n, f in facts.items() if n not in ("digests", "seal")}))
    assert [*read_profile(tmp_path).tables["roles"]] == [*HEADINGS["roles"]]
    both = (*read_profile(tmp_path).findings(), *read_findings(tmp_path))
    assert {finding.other_score for finding in both} == {None}
    assert ({finding.documents for finding in both} == {None}) == (later > len(LAST))
    assert all(math.isnan(finding.q) for finding in both)


def test_a_table_of_mentions_of_an_older_version_says_nothing_of_agreement(tmp_path: Path) -> None:
    profile_of("coreference_chosen").write(tmp_path)
    path = tmp_path / "coreference_chosen.csv"
    at = HEADINGS["coreference_chosen"].index(AGREEMENT_ODD)
    lines = [line.split(",") for line in path.read_text("utf-8").splitlines()]
    path.write_text("".join(",".join([*line[:at], *line[at + 1 :]]) + "\n" for line in lines), "utf-8")
    facts = json.loads((tmp_path / "profile.json").read_text("utf-8"))
    (tmp_path / "profile.json").write_text(json.dumps({n: f for n, f in facts.items() if n not in ("digests", "seal")}))
    table = read_profile(tmp_path).tables["coreference_chosen"]
    assert [*table] == [*HEADINGS["coreference_chosen"]]
    assert table[AGREEMENT_ODD].isna().all()


def test_a_table_of_delimiters_of_an_older_version_has_both_as_their_sum(tmp_path: Path) -> None:
    profile_of("delimiter").write(tmp_path)
    path = tmp_path / "delimiter.csv"
    path.write_text("layer,head,cls,sep,punctuation\n0,0,0.25,0.5,0.125\n0,1,0.125,0.375,0\n", "utf-8")
    facts = json.loads((tmp_path / "profile.json").read_text("utf-8"))
    (tmp_path / "profile.json").write_text(json.dumps({n: f for n, f in facts.items() if n not in ("digests", "seal")}))
    assert [*read_profile(tmp_path).tables["delimiter"]["both"]] == [0.75, 0.5]


PREVIOUS = f"1,0,position,previous,0.8,0.1,0.7,120,,,,,,0.2,suggested,EWT,0.8{',' * 23}\n"


@pytest.mark.parametrize(("share", "says"), [("0.24", False), ("0.25", True), ("0.613", True), ("", False)])
def test_a_role_of_position_says_how_much_stays_within_words(tmp_path: Path, share: str, says: bool) -> None:
    lines = f"1,0,1,0.1,0.1,0.9,0.5\n1,0,-1,0.8,0.9,{share},0.5\n0,0,-1,0.8,0.9,0.8,0.5\n"
    for name, text in (("roles", PREVIOUS + LINE), ("position", lines)):
        (tmp_path / f"{name}.csv").write_text(PROMISED[name] + "\n" + text)
    tables = {
        n: pd.read_csv(tmp_path / f"{n}.csv", keep_default_na=False, na_values=[""]) for n in ("roles", "position")
    }
    from_tables, from_files = Profile(FACTS, tables).findings(), read_findings(tmp_path)
    for previous, broad in (from_tables, from_files):
        assert previous.within_words == pytest.approx(float(share or "nan"), nan_ok=True)
        assert math.isnan(broad.within_words)
        sentence = describe_evidence(previous)
        assert ("of its attention there stays within a word" in sentence) is says
        assert (f"; {percent(float(share or 0))} of its attention there" in sentence) is says


def test_a_table_of_positions_that_is_cut_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "roles.csv").write_text(PROMISED["roles"] + "\n" + PREVIOUS)
    (tmp_path / "position.csv").write_text(PROMISED["position"] + "\n1,0,-1\n")
    with pytest.raises(CorpusError, match="a line is incomplete"):
        read_findings(tmp_path)


def test_a_role_without_an_interval_is_found_before_it_is_written() -> None:
    cells = [
        1,
        0,
        "broad",
        "entropy",
        0.8,
        0.5,
        0.3,
        12,
        None,
        None,
        math.nan,
        None,
        None,
        0.6,
        "suggested",
        "EWT",
        0.8,
        None,
        *[None] * len(LAST),
    ]
    roles = pd.DataFrame([cells], columns=[*HEADINGS["roles"]])
    (finding,) = Profile(FACTS, {"roles": roles}).findings()
    assert math.isnan(finding.low)


@pytest.mark.parametrize("text", ["", "layer,head\n", PROMISED["roles"] + "\nx" + LINE, PROMISED["roles"] + "\n1,0\n"])
def test_findings_that_are_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / "roles.csv").write_text(text)
    with pytest.raises(CorpusError, match="holds no readable roles"):
        read_findings(tmp_path)


# ---- Damage ----------------------------------------------------------------------------------------------------------


def break_json(folder: Path, text: str) -> None:
    (folder / "profile.json").write_text(text)


DAMAGE = {
    "no profile.json": lambda f: (f / "profile.json").unlink(),
    "no JSON": lambda f: break_json(f, "{"),
    "no table of facts": lambda f: break_json(f, "[1]"),
    "no layers": lambda f: break_json(f, json.dumps({k: v for k, v in FACTS.items() if k != "layers"})),
    "no heads at all": lambda f: break_json(f, json.dumps(FACTS | {"heads": 0})),
    "other definitions": lambda f: break_json(f, json.dumps(FACTS | {"definitions": "0"})),
    "other headings": lambda f: (f / "entropy.csv").write_text("layer,head,bits\n0,0,1\n"),
    "an empty table": lambda f: (f / "entropy.csv").write_text(""),
    "ragged lines": lambda f: (f / "entropy.csv").write_text("layer,head,nats,normalised\n0,0,1,1\n0,0,1,1,1,1\n"),
    "bytes": lambda f: (f / "entropy.csv").write_bytes(b"\xff\xfe\x00"),
    "the control's headings": lambda f: (f / "untrained" / "entropy.csv").write_text("a,b\n"),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_folder_is_named(tmp_path: Path, how: str) -> None:
    profile_of("entropy", "roles").write(tmp_path)
    DAMAGE[how](tmp_path)
    with pytest.raises(CorpusError, match=r"holds no (readable )?profile"):
        read_profile(tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CorpusMissing, match=r"nowhere” does not exist. Give the folder that"):
        read_profile(tmp_path / "nowhere")


def test_a_folder_or_a_file_that_is_no_profile(tmp_path: Path) -> None:
    with pytest.raises(CorpusMissing, match=r"holds no profile: profile\.json, which a study writes last"):
        read_profile(tmp_path)
    (tmp_path / "a.csv").write_text("a,b\n")
    with pytest.raises(CorpusMissing, match=r"a\.csv” is a file; a profile is a folder"):
        read_profile(tmp_path / "a.csv")
    with pytest.raises(CorpusMissing):
        read_profile(tmp_path / ("a" * 300))


def test_facts_that_lack_something_are_named(tmp_path: Path) -> None:
    profile_of("entropy").write(tmp_path)
    (tmp_path / "profile.json").write_text('{\n"a":')
    with pytest.raises(CorpusError, match=r"holds no readable profile: profile\.json is not JSON, line 2\."):
        read_profile(tmp_path)
    (tmp_path / "profile.json").write_text("[]")
    with pytest.raises(CorpusError, match=r"profile\.json does not hold the facts of a profile\."):
        read_profile(tmp_path)
    (tmp_path / "profile.json").write_text("{}")
    with pytest.raises(CorpusError, match=r"holds no readable profile: 'layers' is missing\. Measure it again"):
        read_profile(tmp_path)


@pytest.mark.parametrize("after", range(5))
def test_writing_that_fails_leaves_no_part_of_it_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    usual, left = files.write_atomically, [after]

    @contextmanager
    def full(path: Path) -> Iterator[BinaryIO]:
        with usual(path) as file:
            if left[0] == 0:
                file.write(b"half of")
                raise OSError(28, "No space left on device")
            left[0] -= 1
            yield file

    profile = profile_of("entropy", "uas")
    with monkeypatch.context() as patched:
        patched.setattr("mha_viz.analysis.profile.write_atomically", full)
        with pytest.raises(ExportError, match="No space left"):
            profile.write(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    with pytest.raises(CorpusError):
        read_profile(tmp_path)
    profile.write(tmp_path)
    assert same(profile, read_profile(tmp_path))


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="cannot be written"):
        profile_of("entropy").write(tmp_path / "file" / "below")


def test_a_new_profile_takes_the_place_of_the_whole_old_one(tmp_path: Path) -> None:
    profile_of("entropy", "syntax", "uas").write(tmp_path)
    fewer = profile_of("entropy", corpus="plain text")
    fewer.write(tmp_path)
    assert same(fewer, read_profile(tmp_path))


def test_an_old_profile_is_not_one_while_a_new_one_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile_of("entropy", "uas").write(tmp_path)
    usual = Path.replace

    def failing(path: Path, target: Path) -> Path:
        if target.name == "uas.csv":
            raise OSError(28, "No space left on device")
        return usual(path, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(ExportError):
        profile_of("entropy", "uas", rows=1, corpus="another").write(tmp_path)
    with pytest.raises(CorpusError):  # a new table of entropies with the old facts would mix two profiles
        read_profile(tmp_path)
