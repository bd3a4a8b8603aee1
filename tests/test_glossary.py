"""The field's words: no vague name in the code, and one meaning per term in the glossary."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "mha_viz"
GLOSSARY = ROOT / "docs" / "glossary.md"

NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
# The same in eslint.config.js, for JavaScript.
VAGUE_NAMES = {"asked", "found", "it", "kept", "known", "own", "said", "told"}
VAGUE_FUNCTIONS = {"_each", "_of", "_or", "_there"}
# Fields in files: Attention.save writes the tokens and what was cut of the text.
IN_FILES = {"mha_viz/text/tokens.py": {"known", "kept"}}
UNIDIOMATIC = re.compile(
    r"parted by|nobody's business|which is no |\bis no (list|table|tree|folder)\b|\btwin\b|spoilt"
    r"|\b(lines?|files?|sentences?|rows?|columns?|pieces|scale|matrix) a (word|head|line|row|chunk|pass|token|layer)\b"
)

ENTRY = re.compile(r"- \*\*([^*]+)\*\*: (.+)\.")


def all_files() -> list[Path]:
    """Every Python file of the project except its tests."""
    folders = [PACKAGE, *(ROOT / name for name in ("pages", "tools", "benchmarks"))]
    return [ROOT / "app.py", *(path for folder in folders for path in sorted(folder.rglob("*.py")))]


def assigned(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that a piece of code binds, including functions, attributes, arguments and imports, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, NAMED) and node.name:
            yield node.name, node.lineno
        elif isinstance(node, ast.alias):
            yield node.asname or node.name, node.lineno


def vague(source: str) -> list[str]:
    """The vague names in a source text, as "line: name"; leading underscores and capitals are ignored."""
    names = [(line, name) for name, line in assigned(ast.parse(source)) if is_vague(name)]
    return [f"{line}: {name}" for line, name in sorted(names)]


def is_vague(name: str) -> bool:
    return name in VAGUE_FUNCTIONS or name.lstrip("_").lower() in VAGUE_NAMES


def entries() -> list[tuple[str, str]]:
    """The terms of the glossary with their meanings."""
    lines = [line for line in GLOSSARY.read_text("utf-8").splitlines() if line.startswith("- ")]
    matches = [ENTRY.fullmatch(line) for line in lines]
    assert all(matches), [line for line, match in zip(lines, matches, strict=True) if not match]
    return [(match[1], match[2]) for match in matches if match]


def test_no_name_is_vague() -> None:
    problems = []
    for path in all_files():
        place = path.relative_to(ROOT).as_posix()
        names = [one for one in vague(path.read_text("utf-8")) if one.split(": ")[1] not in IN_FILES.get(place, ())]
        problems += [f"{place}:{one}" for one in names]
    assert len(all_files()) > 200
    assert not problems, "\n".join(problems)


def test_no_field_of_the_browser_s_types_is_vague() -> None:
    sources = [path.read_text("utf-8") for path in sorted((PACKAGE / "browser").rglob("*.js"))]
    comments = [comment for source in sources for comment in re.findall(r"/\*\*.*?\*/", source, re.DOTALL)]
    types = [text for comment in comments for text in re.findall(r"@(?:type|typedef) (\{.*\})", comment, re.DOTALL)]
    properties = [name for text in comments for name in re.findall(r"@property \{.*\} \[?(\w+)", text)]
    fields = properties + [name for text in types for name in re.findall(r"\b(\w+)\??:", text)]
    assert len(properties) > 100
    assert len(fields) > 500
    assert not [name for name in fields if is_vague(name)]


def test_every_room_reads_like_plain_english() -> None:
    problems = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in sorted(PACKAGE.rglob("*.py"))
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
        "class A:\n    said: str",
        "self._kept = {}",
        "asked = 1",
        "for it in rows: pass",
        "def _each(rows): pass",
        "def _asked(): pass",
        "KEPT = 1",
    ],
)
def test_a_vague_name_is_noticed(source: str) -> None:
    assert vague(source)


@pytest.mark.parametrize("text", ["columns parted by tabs", "one sentence a line", "which is no list", "pieces a pass"])
def test_a_construction_that_no_native_speaker_writes_is_noticed(text: str) -> None:
    assert UNIDIOMATIC.search(text)
    assert not UNIDIOMATIC.search("columns separated by tabs, one sentence per line, which is not a list")


def test_clear_names_pass() -> None:
    assert not vague("matches = found_in(rows)\nself.rows = [x for x in known]\nprint(match.found, kept=1)\n")


def test_every_term_has_one_meaning_in_one_sentence() -> None:
    terms = [term for term, _ in entries()]
    assert len(terms) >= 40
    assert len(terms) == len({term.lower() for term in terms})
    for term, meaning in entries():
        assert not re.search(r"\. [A-Z]", meaning), term
        assert not VAGUE_NAMES & set(term.split()), term
