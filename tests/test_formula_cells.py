"""No cell of a table that the package writes begins a formula, and what is read back is what was there."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mha_viz as mv
from mha_viz.analysis.profile import Profile
from mha_viz.cli import main
from mha_viz.files.tables import FORMULA_STARTS, escape_formula, format_csv, restore_texts, unescape_formula
from mha_viz.models.getting import catalog

ROOT = Path(__file__).resolve().parent.parent
BOTH_HEADS = ("--head", "L0H0", "--head", "L1H1")
ODD = ("=dog", "@SUM(A1)", "+cmd|calc", "-2+3", "'=quoted", "''@twice", "＝wide", "plain", "it's", 'a,b"c')


@given(st.text())
def test_what_is_made_inert_can_be_read_back(text: str) -> None:
    assert not escape_formula(text).startswith(tuple(FORMULA_STARTS)) or _is_number(text)
    assert unescape_formula(escape_formula(text)) == text


def test_texts_of_a_table_are_inert_and_come_back_and_numbers_stay() -> None:
    table = pd.DataFrame({"=word": ODD, "number": range(-5, 5), "share": [-0.5] * 10})
    text = format_csv(table)
    assert formulas(text) == []
    read = restore_texts(pd.read_csv(io.StringIO(text), keep_default_na=False))
    assert tuple(read.iloc[:, 0]) == ODD
    assert list(read["number"]) == list(range(-5, 5))
    assert format_csv(pd.DataFrame({"mixed": ["=x", 1, None, "y"]})) == 'mixed\n\'=x\n1\n""\ny\n'


def formulas(text: str) -> list[str]:
    """The cells of a CSV that a spreadsheet would run; a negative number is none."""
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    return [cell for cell in cells if cell.startswith(tuple(FORMULA_STARTS)) and not _is_number(cell)]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Words, parts of speech and relations that a spreadsheet would run."""
    lines = ["=dog NOUN 2 nsubj", "saw VERB 0 root", "@cat NOUN 2 +obj", "-1 PUNCT 2 =punct"]
    words = [line.split() for line in lines]
    sentence = "".join(f"{i}\t{w}\t_\t{p}\t_\t_\t{h}\t{r}\t_\t_\n" for i, (w, p, h, r) in enumerate(words, 1))
    file = tmp_path_factory.mktemp("corpus") / "=odd.conllu"
    file.write_text((sentence + "\n") * 8, "utf-8")
    file.with_name("@two.conllu").write_text((sentence + "\n") * 4, "utf-8")
    return file


def syntax_of_toy() -> Profile:
    """The shipped profile without the roles that need coreference chains."""
    profile = mv.load_profile("toy")
    roles = {name: profile.tables[name].query("role == 'syntax'") for name in ("roles", "candidates")}
    tables = {name: table for name, table in profile.tables.items() if name != "used"} | roles
    return replace(profile, tables=tables)


def writing_tables() -> set[str]:
    """The commands that write tables: those with a file or a folder to write to, and ``used``, which writes into that
    of a profile; but not what writes pages, weights or the grammar's sentences."""
    from mha_viz.cli.table import build_parser

    (choices,) = (action.choices for action in build_parser()._actions if isinstance(action.choices, dict))
    with_out = {
        name for name, command in choices.items() if "--out" in command.format_help() or name in ("figure", "toy")
    }
    return (with_out | {"used"}) - {"publish"}


def written_by_commands(corpus: Path, folder: Path) -> Iterator[Path]:
    commands = {
        "attention": ["attention", "=dog saw", "--model", "toy", "--out", "x.csv"],
        "figure": ["figure", "links", "=dog saw", "--model", "toy", "--head", "L0H0", "--out", "x.csv"],
        "search": ["search", "toy/L1H0", str(corpus), "--out", "x.csv"],
        "effect": ["effect", str(corpus), "--model", "toy", "--heads", "L0H0", "--most", "4", "--out", "x.csv"],
        "decoder-heads": ["decoder-heads", "repeater", "--draws", "1", "--out", "x.csv"],
        "pairs": ["pairs", "repeater-pairs", "--model", "repeater", "--heads", "L0H0", "--out", "x.csv"],
        "profile": ["profile", str(corpus), "--model", "toy", "--out", "profile"],
        "several": ["profile", str(corpus), str(corpus.with_name("@two.conllu")), "--model", "toy", "--out", "profile"],
        "compare": ["figure", "compare", "=dog saw", "--model", "toy", *BOTH_HEADS, "--out", "x.csv"],
        "difference": ["figure", "difference", "=dog saw", "--model", "toy", *BOTH_HEADS, "--out", "x.csv"],
        "replicate": ["replicate", "toy", str(corpus), "--out", "x.csv"],
        "beside": ["replicate", "toy", str(corpus), "--beside", "toy", "--out", "x.csv"],
        "groups": ["groups", "toy/L1H0", str(corpus), "--most", "4", "--out", "x.csv"],
        "why": ["why", str(corpus), "--model", "toy", "--most", "4", "--out", "x.csv"],
        "arrows": ["why", str(corpus), "--model", "toy", "--most", "4", "--arrows", "--out", "x.csv"],
        "patch": [
            "patch",
            "=the girl smiles",
            "=the boy smiles",
            "--similar-to",
            "=x",
            "--model",
            "toy",
            "--out",
            "x.csv",
        ],
        "recipes": ["recipes", str(corpus), "--model", "toy", "--replace", "--out", "profile"],
        "report": ["report", "profile", "--out", "x.csv"],
        "used": ["used", "profile", str(corpus), "--most", "2"],
        "evaluate": ["toy", "evaluate", "--sentences", "1", "--out", "x.csv"],
        "history": ["toy", "history", "--sentences", "1", "--out", "x.csv"],
        "effects": ["toy", "effects", "--sentences", "1", "--out", "x.csv"],
    }
    assert {arguments[0] for arguments in commands.values()} == writing_tables()
    for name in ("used", "report"):
        syntax_of_toy().save(folder / name / "profile")
    for name, arguments in commands.items():
        (folder / name).mkdir(exist_ok=True)
        assert main(
            [arguments[0], *(str(folder / name / a) if a in ("x.csv", "profile") else a for a in arguments[1:])]
        ) in (0, None), name
        yield from (folder / name).rglob("*.csv")


def _check_described(headings: dict[str, str]) -> None:
    """Every column is named in the reference."""
    reference = (ROOT / "docs" / "reference" / "tables.md").read_text("utf-8")
    names = {name for heading in headings.values() for name in heading.split(",") if " on " not in name}
    columns = {name.removesuffix("_untrained") for name in names}
    assert [name for name in sorted(columns) if f"`{name}`" not in reference] == []


def test_no_command_writes_a_formula(corpus: Path, tmp_path: Path, in_process: None) -> None:
    files = list(written_by_commands(corpus, tmp_path))
    assert len(files) >= 60
    headings = {file.relative_to(tmp_path).as_posix(): file.read_text("utf-8").partition("\n")[0] for file in files}
    _check_described(headings)
    assert headings["several/profile/profiles.csv"] == "layer,head,role,detail,toy on =odd.conllu,toy on @two.conllu"
    assert {file.relative_to(tmp_path).as_posix(): formulas(file.read_text("utf-8")) for file in files} == {
        file.relative_to(tmp_path).as_posix(): [] for file in files
    }
    profile = mv.load_profile(tmp_path / "profile" / "profile")
    assert "+obj" in set(profile.tables["syntax"]["relation"])


def test_the_list_of_models_begins_no_formula(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = replace(catalog.list_offered()[0], label="=1+1")
    monkeypatch.setattr(catalog, "list_offered", lambda: (one,))
    assert main(["models", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(",'=1+1")
