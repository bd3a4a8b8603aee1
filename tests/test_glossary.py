"""The field's words: no vague names in the rooms that have been renamed, and one meaning per term in the glossary."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "mha_viz"
GLOSSARY = ROOT / "docs" / "glossary.md"

# Modules and packages whose names and texts follow the glossary. Both lists only grow.
RENAMED = ("apart", "cli", "corpus", "reader", "serving", "study", "training", "uploads")
# Modules and packages that have no vague names either, but texts that nobody has read for this yet.
WITHOUT_VAGUE_NAMES = (
    "assets", "attention", "browser", "drawing", "errors", "files", "options", "process", "trace", "words",
)  # fmt: skip
VAGUE_NAMES = {"found", "said", "told", "kept", "own", "known"}
VAGUE_FUNCTIONS = {"_or", "_of", "_there"}
UNIDIOMATIC = re.compile(
    r"parted by|nobody's business|which is no |\bis no (list|table|tree|folder)\b|\btwin\b|spoilt"
    r"|\b(lines?|files?|sentences?|rows?|columns?|pieces|scale|matrix) a (word|head|line|row|chunk|pass|token|layer)\b"
)

ENTRY = re.compile(r"- \*\*([^*]+)\*\*: (.+)\.")


def files(room: str) -> list[Path]:
    """The Python files of a package or module of mha_viz."""
    module = PACKAGE / f"{room}.py"
    return [module] if module.is_file() else sorted((PACKAGE / room).rglob("*.py"))


def assigned(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that a piece of code binds, arguments and imports included, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.name, node.lineno
        elif isinstance(node, ast.alias):
            yield node.asname or node.name, node.lineno


def vague(source: str) -> list[str]:
    """The vague names in a source text, as "line: name"."""
    tree = ast.parse(source)
    names = [(name, line) for name, line in assigned(tree) if name in VAGUE_NAMES]
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    names += [(node.name, node.lineno) for node in functions if node.name in VAGUE_FUNCTIONS | VAGUE_NAMES]
    return [f"{line}: {name}" for name, line in sorted(names, key=lambda pair: pair[1])]


def entries() -> list[tuple[str, str]]:
    """The terms of the glossary with their meanings."""
    lines = [line for line in GLOSSARY.read_text("utf-8").splitlines() if line.startswith("- ")]
    matches = [ENTRY.fullmatch(line) for line in lines]
    assert all(matches), [line for line, match in zip(lines, matches, strict=True) if not match]
    return [(match[1], match[2]) for match in matches if match]


@pytest.mark.parametrize("room", [*RENAMED, *WITHOUT_VAGUE_NAMES])
def test_a_renamed_room_has_no_vague_names(room: str) -> None:
    assert files(room), room
    problems = [f"{path.relative_to(ROOT)}:{one}" for path in files(room) for one in vague(path.read_text("utf-8"))]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("room", RENAMED)
def test_a_renamed_room_reads_like_plain_english(room: str) -> None:
    problems = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in files(room)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if (match := UNIDIOMATIC.search(line))
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "for kept in rows: pass",
        "rows = [said for said in rows]",
        "if (known := f()): pass",
        "def f(own): pass",
        "f = lambda told: 1",
        "with f() as kept: pass",
        "try: pass\nexcept OSError as told: pass",
        "import json as found",
        "match x:\n    case [*own]: pass",
        "def f():\n    def _of(): pass",
        "async def _there(): pass",
        "class A:\n    def _or(self): pass",
    ],
)
def test_a_vague_name_is_noticed(source: str) -> None:
    assert vague(source)


@pytest.mark.parametrize("text", ["columns parted by tabs", "one sentence a line", "which is no list", "pieces a pass"])
def test_a_construction_that_no_native_speaker_writes_is_noticed(text: str) -> None:
    assert UNIDIOMATIC.search(text)
    assert not UNIDIOMATIC.search("columns separated by tabs, one sentence per line, which is not a list")


def test_clear_names_pass() -> None:
    assert not vague("matches = found_in(rows)\nself.told = [x for x in known]\n")


def test_every_term_has_one_meaning_in_one_sentence() -> None:
    terms = [term for term, _ in entries()]
    assert len(terms) >= 40
    assert len(terms) == len({term.lower() for term in terms})
    for term, meaning in entries():
        assert not re.search(r"\. [A-Z]", meaning), term
        assert not VAGUE_NAMES & set(term.split()), term
