"""The glossary has one meaning per term, each in one sentence."""

from __future__ import annotations

import re
from pathlib import Path

GLOSSARY = Path(__file__).resolve().parent.parent / "docs" / "glossary.md"
ENTRY = re.compile(r"- \*\*([^*]+)\*\*: (.+)\.")


def entries() -> list[tuple[str, str]]:
    """The terms of the glossary with their meanings."""
    lines = [line for line in GLOSSARY.read_text("utf-8").splitlines() if line.startswith("- ")]
    matches = [ENTRY.fullmatch(line) for line in lines]
    assert all(matches), [line for line, match in zip(lines, matches, strict=True) if not match]
    return [(match[1], match[2]) for match in matches if match]


def test_every_term_has_one_meaning_in_one_sentence() -> None:
    terms = [term for term, _ in entries()]
    assert len(terms) >= 40
    assert len(terms) == len({term.lower() for term in terms})
    for term, meaning in entries():
        assert not re.search(r"\. [A-Z]", meaning), term
