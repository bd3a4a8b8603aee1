"""Typed texts in sentences: complete emoji, no control characters, and an ellipsis where something was cut."""

from __future__ import annotations

import pytest

from mha_viz.cli.terminal import one_line
from mha_viz.quotes import quote, shorten

FAMILY, SCOTLAND, PERSIAN = "👨‍👩‍👧", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "می\u200cخواهم"


@pytest.mark.parametrize("sign", [FAMILY, SCOTLAND, PERSIAN, "❤️‍🔥", "👍🏽"])
def test_signs_of_several_characters_are_quoted_unharmed(sign: str) -> None:
    assert quote(sign) == f"“{sign}”"
    assert one_line(f"so {sign} it is") == f"so {sign} it is"


@pytest.mark.parametrize("blank", ["\u00a0", "\u3000", "\u2009"])
def test_wide_and_narrow_blanks_are_quoted_as_plain_ones(blank: str) -> None:
    assert quote(f"Bonjour{blank}!") == "“Bonjour !”"


@pytest.mark.parametrize("bad", ["\x1b[31m", "\u202e", "\u2066", "\n", "\x07", "\u200b", "\U000e0041"])
def test_what_steers_a_terminal_is_not_printed(bad: str) -> None:
    assert bad[0] not in one_line(f"a{bad}b")
    assert bad[0] not in quote(f"a{bad}b")


def test_a_joiner_that_joins_nothing_is_not_printed() -> None:
    assert one_line("a \u200d b") == "a b"


def test_a_cut_has_an_ellipsis() -> None:
    assert shorten("word " * 4, 20) == "word " * 4
    assert shorten("0123456789", 9) == "01234567…"
    assert shorten("0123 56789", 6) == "0123…"


@pytest.mark.parametrize("sign", [FAMILY, "❤️‍🔥", "👍🏽", "e\u0301", SCOTLAND, "🇩🇪"])
def test_no_sign_is_cut_in_two(sign: str) -> None:
    for before in range(1, 12):
        text = "x" * before + sign + "y" * 20
        assert shorten(text, 12) in {"x" * before + "…", *(f"{'x' * before}{sign}{'y' * n}…" for n in range(12))}
