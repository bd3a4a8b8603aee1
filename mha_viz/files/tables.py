"""Write tables as CSV without spreadsheet formulas, and read them back."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

FORMULA_STARTS = "=+-@＝＋－＠\t\r\n"  # a spreadsheet would run a cell that begins with one of these
_FORMULA = re.compile(rf"(?![+-]\d+\Z)[{re.escape(FORMULA_STARTS)}]|'+[{re.escape(FORMULA_STARTS)}]")
_ESCAPED = re.compile(f"'+[{re.escape(FORMULA_STARTS)}]")


def escape_formula(text: str) -> str:
    """Return the text with a leading apostrophe if a spreadsheet would run it as a formula.

    An apostrophe is also added to text that looks as if it already had one. Signed numbers are not formulas.
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(text: str) -> str:
    """Undo :func:`escape_formula`."""
    return text[1:] if _ESCAPED.match(text) else text


def format_csv(table: pd.DataFrame, digits: int = 9) -> str:
    """Return a table as CSV without its index, with ``digits`` significant digits and formulas escaped."""
    escaped_table = _map_texts(table, escape_formula).rename(columns=lambda name: escape_formula(str(name)))
    text: str = escaped_table.to_csv(index=False, float_format=f"%.{digits}g", lineterminator="\n")
    return text


def restore_texts(table: pd.DataFrame) -> pd.DataFrame:
    """Restore the texts of a table that was read from the output of :func:`format_csv`."""
    return _map_texts(table, unescape_formula)


def _map_texts(table: pd.DataFrame, convert: Callable[[str], str]) -> pd.DataFrame:
    """Apply ``convert`` once to each distinct text of a table and return the new table."""
    columns: dict[str, pd.Series] = {}
    for name in table.select_dtypes(include=["object", "string"]):
        values = table[name].dropna().unique()
        texts = {value: convert(value) for value in values if isinstance(value, str)}
        if any(value != text for value, text in texts.items()):
            columns[str(name)] = table[name].map(lambda value, texts=texts: texts.get(value, value), na_action="ignore")
    return table.assign(**columns)
