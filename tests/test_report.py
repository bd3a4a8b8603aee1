"""The report of a profile: its table, in three formats, and the command that prints it."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import mha_viz as mv
from mha_viz.analysis.corpus_effects import MASKED_WORD, NEXT_TOKEN, WORD_STATE
from mha_viz.analysis.profile import HEADINGS, Profile
from mha_viz.cli import main
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu
from mha_viz.errors import CorpusError, SettingError
from mha_viz.figures.words.report import report, write_citation
from mha_viz.figures.words.report_columns import HEADING, THIRD_COLUMNS
from mha_viz.figures.words.role_words import OLDER_RULE
from mha_viz.files.assets import asset_path
from mha_viz.model_names import HUB_IDS
from tests.cli_runs import assert_one_line

GUM = str(asset_path("profiles") / "minilm" / "gum")
COLUMNS = 12  # of the printed table, without third corpora
HOSTILE = r"a|b_c%$&#{x}~^<script>\input{/etc/passwd}" + '"'
ESCAPED = (
    r"a\textbar{}b\_c\%\$\&\#\{x\}\textasciitilde{}\textasciicircum{}$<$script$>$"
    r"\textbackslash{}input\{/etc/passwd\}''"
)


def with_role(detail: str = "obj head_row", **cells: Any) -> Profile:
    """A profile with one role, whose head is right in 60 of 100 cases, and with the rest of what it needs."""
    relation, direction = detail.rsplit(" ", 1)
    cell = {"level": "base", "relation": relation, "direction": direction, "layer": 0, "n": 100}
    line = {
        **{"layer": 0, "head": 1, "role": "syntax", "detail": detail, "score": 0.6, "baseline": 0.5, "n": 100},
        **{"ci_low": 0.5, "ci_high": 0.7, "status": "suggested", "corpora": "c", "documents": 12},
        **{"upos_baseline": 0.54, "upos_rule": "nearest NOUN to the right", "state": "equals"},
        **{"rule_low": -0.02, "rule_high": 0.14, "choice_n": 100, "choice": 0.9, "nearest": 0.8, **cells},
    }
    rows = {
        "syntax": [
            {**cell, "head": 1, "correct": 60, "accuracy": 0.6, "both": 50},
            {**cell, "head": 0, "correct": 40, "both": 40},
        ],
        "syntax_baselines": [
            {**cell, "baseline": "offset", "correct": 50, "accuracy": 0.5},
            {**cell, "baseline": "pos", "correct": 54, "accuracy": 0.54},
        ],
        "roles": [line],
    }
    tables = {name: pd.DataFrame(lines, columns=[*HEADINGS[name]]) for name, lines in rows.items()}
    facts = {"model": "m", "revision": "r", "layers": 1, "heads": 2, "corpus": "c", "sha256": "s", "counts": {}}
    return Profile(facts, tables)


def row_of(profile: Profile, *others: Profile) -> dict[str, str]:
    """The cells of the only row in Markdown, by heading."""
    head, _, row = (line for line in report(profile, others).markdown().splitlines() if line.startswith("|"))
    return dict(zip(*(line.strip("| ").split(" | ") for line in (head, row)), strict=True))


def test_a_row_by_hand() -> None:
    """Of 14 cases in which head or rule alone is right, the head has 10: p = 1,471/16,384 = 0.0898; of two tests the
    lower one, so twice that."""
    assert row_of(with_role()) == {
        "Role": "its verb → object (obj)",
        **{"Head": "L0H1 (1-2)", "Status": "suggested", "n": "100", "Score": "60.0%"},
        **{"95% interval": "50.0%–70.0% (12 documents)", "Baselines": "best fixed offset 50.0%"},
        **{"Strongest simple rule": "equals: nearest noun to the right 54.0%", "Choice": "90.0%, nearest 80.0%"},
        **{"q (rule)": "0.180", "Also established on": "–", "Used more than its neighbours": "–"},
    }


@pytest.mark.parametrize(
    ("documents", "words"),
    [(1, "(few documents: one or none named)"), (3, "(few documents: 3 documents)"), (5, "(5 documents)"), (None, "")],
)
def test_few_documents_are_marked(documents: int | None, words: str) -> None:
    made = report(with_role(documents=documents)).markdown()
    assert f"50.0%–70.0% {words}".strip() in made
    assert ("these documents alone" in made) == ("few" in words)


@pytest.mark.parametrize(
    ("measure", "yes", "what"),
    [
        (WORD_STATE, "yes: changes its word most", "the word’s own last state"),
        (MASKED_WORD, "yes: changes the answer most", "the model’s answer at the masked word"),
        (NEXT_TOKEN, "yes: changes the next token most", "the prediction of the token after the word"),
    ],
)
@pytest.mark.parametrize("is_used", [True, False])
def test_whether_a_role_is_used_is_said_where_it_was_measured(measure: str, yes: str, what: str, is_used: bool) -> None:
    profile = with_role()
    line = {"layer": 0, "head": 1, "role": "syntax", "detail": "obj head_row", "used": is_used, "corpus": "other"}
    used = pd.DataFrame([{**line, "measure": measure, "method": "zero"}], columns=[*HEADINGS["used"]])
    measured = replace(profile, tables={**profile.tables, "used": used})
    said = row_of(measured)["Used more than its neighbours"]
    assert said == (yes if is_used else "no more than other heads of its layer")
    made = report(measured)
    assert f"Without this head, {what} changes more than without any other head of its layer" in made.notes[-2]
    assert [*made.table["used_more_than_neighbours"]] == [is_used]


def named_otherwise(corpus: str, **cells: Any) -> Profile:
    return replace(with_role(**cells), facts={**with_role().facts, "corpus": corpus, "sha256": corpus})


ESTABLISHED_TWICE = {"status": "established", "corpora": "c; b", "other_corpus": "b", "other_score": 0.7}


def test_only_a_third_corpus_replicates() -> None:
    here, there = map(named_otherwise, "de")
    both = with_role(**ESTABLISHED_TWICE)
    alone = row_of(both)
    assert alone["Also established on"] == "b: 70.0%"
    assert not any("Replicates" in heading for heading in alone)
    with_thirds = row_of(both, here, there)
    assert (with_thirds["Also established on"], with_thirds["Replicates on d"]) == ("b: 70.0%", "60.0%: holds")
    assert with_thirds["Replicates on e"] == "60.0%: holds"
    table = report(both, [here, there]).table
    assert [*table.columns] == [*HEADING, *(f"replicated_{n}_{name}" for n in (1, 2) for name in THIRD_COLUMNS)]
    cells = table.iloc[0]
    assert (cells["model"], cells["revision"], cells["corpus"]) == ("m", "r", "c")
    assert (cells["also_established_on"], cells["other_score"]) == ("b", 0.7)
    third = [cells[f"replicated_2_{name}"] for name in ("corpus", "outcome", "score", "baseline", "n")]
    assert third == ["e", "holds", 0.6, 0.5, 100]


@pytest.mark.parametrize("name", ["b", "the same file under another name"])
def test_a_corpus_that_chose_the_roles_replicates_none(name: str) -> None:
    again = named_otherwise(name)
    both = with_role(**{**ESTABLISHED_TWICE, "other_score": 0.6})
    made = report(both, again)
    assert not any("Replicates" in heading for heading in row_of(both, again))
    assert f"{name} helped to choose these roles" in made.markdown()
    assert made.table.iloc[0][["replicated_1_corpus", "replicated_1_outcome"]].tolist() == [name, ""]


def test_a_report_shows_the_roles_that_were_chosen() -> None:
    minilm = mv.load_profile("minilm")
    every, chosen = (
        mv.roles.report(minilm).table,
        mv.roles.report(minilm, kinds="syntax", only=["established", "equals"]),
    )
    equals = every[(every["role"] == "syntax") & (every["status"] == "established") & (every["state"] == "equals")]
    assert [*zip(equals["name"], equals["detail"], strict=True)] == [("L2H1", "cop dep_to_head")]
    assert chosen.table.equals(equals.reset_index(drop=True).astype(chosen.table.dtypes))
    assert f"1 of {len(every)} roles (syntax; established; equals the strongest simple rule)." in chosen.caption
    assert len(mv.roles.report(minilm, only="below").roles) == 26
    with pytest.raises(SettingError, match=r"No role is left by only “beats” on UD English EWT test"):
        mv.roles.report(minilm, only="beats")
    assert set(mv.roles.report(minilm, kinds="position, broad").table["role"]) == {"position", "broad"}
    with pytest.raises(SettingError, match=r"“beat” is not a value of only.*Did you mean beats"):
        mv.roles.report(minilm, only="beat")


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        (
            "minilm",
            {"kinds": "coreference"},
            r"No role is left by kinds “coreference” on UD English EWT test\. "
            rf"The profile of UD English GUM dev has 2 such roles \(suggested\): give that profile, {re.escape(GUM)}\.",
        ),
        (GUM, {"kinds": "repetition"}, r"kinds “repetition” on .* Choose from those that it has: coreference, syntax,"),
        ("repeater", {"only": "beats"}, r"left by only “beats” on repeats\. Leave it out to see 2 roles\."),
        (
            "toy",
            {"kinds": ("coreference", "broad"), "only": "established"},
            r"left by kinds “coreference, broad” and only “established” on grammar\. Leave one of them out\.",
        ),
    ],
)
def test_where_no_role_is_left_the_given_options_are_named_and_where_such_roles_are(
    name: str, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(SettingError) as error:
        mv.roles.report(mv.load_profile(name), **options)
    assert re.search(says, str(error.value))


@pytest.mark.parametrize("name", ["minilm", "toy", "repeater"])
def test_the_model_of_a_table_is_a_bare_name(name: str) -> None:
    assert set(mv.roles.report(mv.load_profile(name)).table["model"]) == {HUB_IDS.get(name, name)}


def test_what_was_looked_at_and_what_to_cite_are_below() -> None:
    text = report(with_role()).markdown()
    assert "Tested on c: 2 heads × 1 relation × 3 directions; 2 tests with a case." in text
    assert "The lowest q of the 1 role with one is 0.180." in text
    assert OLDER_RULE not in text
    assert text.rstrip().endswith(f"Version {mv.__version__}, 2026-11-30.")
    assert write_citation() in report(with_role()).notes[-1]


def test_names_from_files_are_text_in_latex() -> None:
    made = report(with_role(f"{HOSTILE} head_row", corpora=HOSTILE)).latex()
    assert ESCAPED in made
    assert "\\input" not in made
    assert "^" not in made
    unescaped = re.sub(r"\\[{}$&#%_\\]", "", made)
    assert unescaped.count("{") == unescaped.count("}")
    body = made[made.index(r"\endfoot") : made.index(r"\end{longtable}")].splitlines()[1:]
    assert [len(re.findall(r"(?<!\\)&", line)) for line in body] == [COLUMNS - 1]
    assert not re.search(r"(?<!\\)[%#]", made)


def test_names_from_files_are_text_in_markdown() -> None:
    made = report(with_role(f"{HOSTILE} head_row")).markdown()
    assert "<script>" not in made.replace(r"\<", "")
    rows = [line for line in made.splitlines() if line.startswith("|")]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [COLUMNS + 1] * 3


def test_a_line_break_in_a_name_breaks_no_row() -> None:
    profile = with_role()
    odd = replace(profile, facts={**profile.facts, "corpus": "a\n| b\r\u202e%"})
    assert "on a \\| b %" in report(odd).markdown()
    assert "on a \\textbar{} b \\%" in report(odd).latex()


def test_a_formula_in_a_name_is_none_in_csv() -> None:
    assert "'=cmd dep_to_head" in report(with_role("=cmd dep_to_head")).csv()


@pytest.mark.parametrize(("name", "roles", "in_q"), [("minilm", 46, 27), ("toy", 11, 8)])
def test_the_shipped_profiles(name: str, roles: int, in_q: int) -> None:
    profile = mv.load_profile(name)
    made = mv.roles.report(profile)
    table = made.table
    assert [*table.columns] == [*HEADING]
    assert len(table) == roles
    assert [*zip(table["layer"], table["head"], strict=True)] == [f.head for f in profile.findings()]
    with_q = table[table["q"].notna()]
    assert len(with_q) == in_q
    assert set(with_q["role"]) <= {"syntax", "coreference"}
    assert (with_q["q"] < 0.001).all(), "against the best fixed offset"
    assert len(re.findall(r"^\| ", made.markdown(), re.MULTILINE)) == roles + 2
    assert made.latex().count(r" \\") == roles + 3  # the caption, and the headings of the first and of further pages


def test_the_table_has_what_head_and_rule_do_on_both_corpora() -> None:
    """The state is that of the worse corpus: on this one, the head may be as good as the rule."""
    profile = mv.load_profile("minilm")
    made = mv.roles.report(profile)
    table = made.table
    syntax = table[table["role"] == "syntax"]
    assert [*syntax["state"]] == [f.state for f in profile.findings() if f.role == "syntax"]
    assert table[table["role"] != "syntax"]["state"].eq("").all()
    case = table[(table["name"] == "L2H8") & (table["detail"] == "case dep_to_head")].iloc[0]
    assert (f"{case['score']:.3f}", f"{case['upos_baseline']:.3f}", case["state"]) == ("0.686", "0.693", "below")
    assert (f"{case['other_score']:.3f}", f"{case['other_upos_baseline']:.3f}") == ("0.685", "0.742")
    assert case["other_upos_rule"] == "nearest NOUN, PROPN or ADV to the right"
    assert case["rule_low"] < 0 < case["rule_high"]
    assert case["other_rule_high"] < 0
    (cells,) = [line.split(" | ") for line in made.markdown().splitlines() if "(case) | L2H8" in line]
    assert cells[8] == (
        "below: nearest noun, name, pronoun, number or symbol to the right 69.3%; there nearest noun, name or adverb "
        "to the right 74.2%"
    )
    assert cells[9] == "88.3%, nearest 85.8%"
    for name in ("also_established_on", "corpus"):
        assert {*table[name]} <= {"UD English EWT test", "UD English GUM dev"}, "names, and no prose"


def test_a_table_of_an_older_version_says_by_which_rule_it_was_measured() -> None:
    older = with_role(state="False", rule_low=None, rule_high=None, choice_n=None)
    assert row_of(older)["Simple rule (of one part of speech)"] == "below: nearest noun to the right 54.0%"
    assert f"The simple rule was measured {OLDER_RULE}; it has no interval and no q." in report(older).notes
    assert "one of a set of them" not in report(older).markdown()


def test_coreference_without_chains_elsewhere_is_said() -> None:
    toy = mv.load_profile("toy")
    other = replace(toy, facts={**toy.facts, "corpus": "new", "sha256": "new"}, tables={})
    assert set(mv.roles.report(toy, other).table["replicated_1_outcome"]) == {"not annotated"}


def test_a_profile_without_roles_is_refused() -> None:
    profile = with_role()
    with pytest.raises(CorpusError, match="has no roles"):
        report(replace(profile, tables={"roles": profile.tables["roles"][:0]}))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("minilm",), "not a profile"),
        ((Path("x"),), "not a profile"),
        ((with_role(), ["minilm"]), "not a profile"),
        ((with_role(), "minilm"), "not a profile"),
        ((with_role(), 3), "not a profile"),
    ],
)
def test_what_is_not_a_profile_is_refused(arguments: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(SettingError, match=problem):
        report(*arguments)


def test_another_model_and_the_same_corpus_are_refused() -> None:
    with pytest.raises(CorpusError, match="another model"):
        report(with_role(), replace(with_role(), facts={**with_role().facts, "model": "n"}))
    with pytest.raises(CorpusError, match="the same corpus"):
        report(with_role(), with_role())


# ---- The command -----------------------------------------------------------------------------------------------------


def test_the_command_prints_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "toy"]) == 0
    caption, _, head, rules, *rows = capsys.readouterr().out.splitlines()
    named = r"toy \(mha\\_viz’s own model, weights digest \w{12}\), 2 layers × 4 heads,"
    assert re.fullmatch(rf"What heads of {named} do on grammar: 11 roles\.", caption)
    assert head == (
        "| Role | Head | Status | n | Score | 95% interval | Also established on | Baselines | Strongest simple rule | "
        "Choice | q (rule) | Used more than its neighbours | Needed by sentence pairs |"
    )
    assert rules == "| --- | --- | --- | ---: | --- | --- | --- | --- | --- | --- | ---: | --- | --- |"
    table = [row for row in rows if row.startswith("|")]
    number, share = r"[\d,]+", r"\d+\.\d%"
    form = (
        rf"\| .+ \| L\dH\d \(\d-\d\) \| .+ \| {number} \| {share}(?: \(.+?\))? "
        rf"\| (–|{share}–{share} \({number} documents\)) "
        rf"\| – \| .+ {share} \| (–|(beats|equals|below): .+ {share}) \| (–|{share}, nearest {share}) "
        r"\| (–|\\< 0\.001|[01]\.\d{3}) "
        r"\| (–|yes: changes the answer most|no more than other heads of its layer) "
        r"\| (no|yes(: [a-z, ]+)?) \|"
    )
    assert len(table) == 11
    assert [row for row in table if not re.fullmatch(form, row)] == []
    starts = [
        "Tested on",
        "q: false",
        "Strongest simple rule:",
        "By chance: 7",
        "By chance: 1",
        "By chance: 7",
        "Scores without",
        "Suggested",
        "Copying scores (random weights): L0H0 0.07 (0.00), ",
        "Used more than its neighbours:",
        "Needed by sentence pairs:",
        "To cite:",
    ]
    notes = [row for row in rows if row and not row.startswith("|")]
    assert all(note.startswith(start) for note, start in zip(notes, starts, strict=True))


LATEX = re.compile(r"\\([A-Za-z]+|.)|\$[^$]*\$|[{}&%#^_~$]|[^\\{}&%#^_~$]+", re.DOTALL)
ROWS_ONLY = {"addlinespace", "toprule", "midrule", "bottomrule", "endfirsthead", "endhead", "endfoot"}
COMMANDS = {
    *("begingroup", "endgroup", "footnotesize", "setlength", "tabcolsep", "begin", "end", "caption", "linewidth"),
    *("raggedright", "arraybackslash", "par", "noindent", "smallskip", "textbar", "textbackslash", "textasciitilde"),
    *("ldots", "textasciicircum", "textasciigrave", *ROWS_ONLY, *"\\{}$&#%_"),
}


def read_as_latex(made: str) -> list[int]:
    """The cells of each row of the longtable, read token by token: commands that LaTeX, booktabs or longtable have,
    groups that close, alignment only between rows, mathematics that ends, rules only after a row, and no row that
    begins with what its predecessor would take as an argument."""
    table, rows, cells, depth, last = "", list[int](), 1, 0, ""
    for token in LATEX.finditer(made):
        text, command = token[0], token[1]
        assert command is None or command in COMMANDS, text
        assert text not in ("%", "#", "^", "_", "~", "$"), text
        if text.startswith("$"):
            assert re.fullmatch(r"\$(<|>|-|\\[a-z]+)\$", text)
        depth += (text == "{") - (text == "}")
        assert depth >= 0
        if command in ("begin", "end"):
            table = "" if command == "end" else "longtable"
        if text == "&":
            assert (table, depth) == ("longtable", 0)
            cells += 1
        if command == "\\":
            assert (table, depth) == ("longtable", 0)
            rows, cells = [*rows, cells], 1
        if text.strip():
            assert last != "\\" or not text.lstrip().startswith(("[", "*"))
            assert command not in ROWS_ONLY or last in {"\\", *ROWS_ONLY}, text
            last = command or text
    assert (table, depth) == ("", 0)
    return rows


def test_the_command_prints_latex_that_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "minilm", "--format", "latex", "--replicated", GUM]) == 0
    made = capsys.readouterr().out
    assert re.findall(r"\\(?:begin|end)\{(\w+)\}", made) == ["longtable", "longtable"]
    assert read_as_latex(made) == [1, *[COLUMNS] * 48]
    assert read_as_latex(report(with_role(f"{HOSTILE} ?`[*a] head_row", corpora=HOSTILE)).latex())[3:] == [COLUMNS]
    hostile = named_otherwise(HOSTILE)
    assert read_as_latex(report(with_role(), hostile).latex())[3:] == [COLUMNS + 1]
    assert made.isascii()


def test_the_suffix_of_a_file_is_its_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for suffix, beginning in (
        (".md", "What heads"),
        (".tex", r"\begingroup"),
        (".csv", "model,revision,corpus,layer,head,name"),
    ):
        assert main(["report", "toy", "--out", str(tmp_path / f"roles{suffix}")]) == 0
        assert (tmp_path / f"roles{suffix}").read_text("utf-8").startswith(beginning)
    assert main(["report", "toy", "--format", "csv"]) == 0
    printed = capsys.readouterr().out
    assert printed == (tmp_path / "roles.csv").read_text("utf-8")
    assert math.isclose(pd.read_csv(io.StringIO(printed))["score"][0], 0.720101781)


def test_a_further_corpus_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "new.conllu"
    file.write_text(format_conllu(grammar.corpus(120, seed=3).sentences), "utf-8")
    assert main(["report", "toy", "--replicated", str(file), "--format", "csv"]) == 0
    table = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert mv.profile(file, "toy", out=tmp_path / "new").corpus == "new.conllu"
    assert set(table["replicated_1_corpus"]) == {"new.conllu"}
    assert "holds" in {*table["replicated_1_outcome"]}
    assert main(["report", "toy", "--replicated", str(tmp_path / "new"), "--format", "csv"]) == 0
    assert pd.read_csv(io.StringIO(capsys.readouterr().out)).equals(table)


def test_a_further_corpus_is_measured_in_the_precision_of_the_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in (1, 2):
        corpus = format_conllu(grammar.corpus(60, seed).sentences)
        (tmp_path / f"{seed}.conllu").write_text(corpus, "utf-8")
    one, two, folder = (str(tmp_path / name) for name in ("1.conllu", "2.conllu", "half"))
    assert main(["profile", one, "--model", "toy", "--dtype", "bfloat16", "--out", folder]) == 0
    capsys.readouterr()
    assert main(["report", folder, "--replicated", two, "--format", "csv"]) == 0
    assert "2.conllu" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "arguments", "words"),
    [
        (2, ["toy", "--format", "markdwon"], ["“markdwon” is not a value of --format", "Did you mean markdown?"]),
        (2, ["toy", "--kinds", "syntx"], ["“syntx” is not a value of kinds", "Did you mean syntax?"]),
        (2, ["toy", "--only", "proven", "--replicated", "no/such"], ["“proven” is not a value of only"]),
        (2, ["toy", "--out", "x.pdf"], ["“.pdf” is not a format of reports", ".md, .tex, .csv"]),
        (2, ["toy", "--out", "x.tex", "--format", "csv"], ["contradicts the suffix .tex"]),
        (3, ["no/such"], ["does not exist", "“minilm”, “toy” or “repeater”"]),
        (5, [str(asset_path("profiles") / "minilm" / "gap")], ["has no roles"]),
        (3, ["toy", "--replicated", "no/such"], ["does not exist"]),
        (5, ["toy", "--replicated", "toy"], ["the same corpus"]),
        (5, ["toy", "--replicated", "grammar"], ["the same corpus"]),
        (5, ["toy", "--replicated", GUM], ["another model"]),
    ],
)
def test_what_the_command_refuses(
    code: int, arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", *arguments]) == code
    assert_one_line(
        capsys.readouterr().err, *[word.replace("“minilm” or “toy”", '"minilm" or "toy"') for word in words]
    )
