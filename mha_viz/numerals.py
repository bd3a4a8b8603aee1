"""Format numbers in sentences, tables and captions, by one rule for each kind.

``browser/numerals.js`` has the same rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context

__all__ = [
    "MINUS",
    "counted",
    "decimal",
    "duration",
    "format_divergence",
    "format_done",
    "format_signed",
    "format_small",
    "format_weight",
    "percent",
    "three_digits",
    "with_interval",
]

MINUS = "−"  # U+2212, as wide as a plus sign; a hyphen is too short and breaks lines
_THREE_DIGITS = Context(prec=3, rounding=ROUND_HALF_UP)
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def decimal(value: float, digits: int = 2) -> str:
    """Format a number with this many decimals, never as a negative zero: "−0.06", "1,024.00"."""
    text = f"{abs(value):,.{digits}f}"
    return MINUS + text if value < 0 and text.strip("0.,") else text


def percent(share: float, digits: int = 1) -> str:
    """Format a share of 1 as a percentage, with this many decimals and no space: "58.3%", "58%"."""
    unit = 10**digits
    return f"{decimal(math.copysign(math.floor(abs(share) * 100 * unit + 0.5) / unit, share), digits)}%"


def with_interval(
    value: float, low: float, high: float, digits: int, write: Callable[[float, int], str] = decimal
) -> str:
    """Format a number with its interval: "0.62 [0.58, 0.66]". If the bounds are NaN, there is no interval."""
    bounds = "" if math.isnan(low) else f" [{write(low, digits)}, {write(high, digits)}]"
    return f"{write(value, digits)}{bounds}"


def format_divergence(divergence: float) -> str:
    """Format a divergence in nats as a percentage of ln 2, its maximum: "5.1%"; 0% between equal rows."""
    return percent(divergence / math.log(2))


def format_done(fraction: float) -> str:
    """Format the completed fraction of a computation as a whole percentage: "58%"."""
    return f"{decimal(100 * fraction, 0)}%"


def format_weight(value: float) -> str:
    """Format an attention weight with three decimals, or as "<.001" if these would be 0.

    A negative weight has a sign.
    """
    if value <= -0.0005:
        return MINUS + format_weight(-value)
    return "<.001" if 0 < value < 0.0005 else f"{math.floor(value * 1000 + 0.5) / 1000:.3f}"


def three_digits(value: float, signed: bool = False) -> str:
    """Format a number of any size with three significant digits: "0.00123", "−12.0".

    With ``signed``, positive numbers have a plus sign: "+0.00123".
    """
    if not value:
        return "0"
    rounded = _THREE_DIGITS.create_decimal_from_float(abs(value))
    power = rounded.adjusted()
    text = f"{rounded:,.{max(0, 2 - power)}f}" if -4 <= power <= 5 else _format_power(f"{rounded:.2e}")
    return (MINUS if value < 0 else "+" if signed else "") + text


def format_signed(value: int) -> str:
    """Format a whole number with its sign: "+1", "−3", "0"."""
    return f"+{value}" if value > 0 else decimal(value, 0)


def format_small(value: float) -> str:
    """Format a number so small that only its order of magnitude matters: "0", "5 · 10⁻⁷" without a line break."""
    if not value:
        return "0"
    return _format_power(f"{value:.0e}")


def _format_power(exponential: str) -> str:
    digits, exponent = exponential.split("e")
    return f"{digits.replace('-', MINUS)}\u00a0·\u00a010{str(int(exponent)).translate(_SUPERSCRIPTS)}"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Format a count with its noun: "1 step", "1,500 steps", "2 studies"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """Format an estimated duration: "about 4 s", "about 40 s", "about 2 min"."""
    if seconds < 10:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 5) * 5} s" if seconds < 90 else f"about {round(seconds / 60)} min"
