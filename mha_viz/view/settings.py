"""The settings of a drawing: one row each in ``view.json``, which JavaScript imports too.

From the rows come the URL and what of it a page, a lesson or a link carries, the controls of the drawings, the options
of figures (``mha_viz.options`` types them) and of the command line with their help, captions, refusals, and the table
of the documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from mha_viz.errors import SettingError, shorten_value
from mha_viz.view.quantities import QUANTITIES, ROWS, WEIGHT


@dataclass(frozen=True)
class ViewChoice:
    """One value of a setting, or a family of values with a number, such as "top3".

    ``label``: its name on a control, ``title`` the tip there; ``labels``: other names, by drawing. ``pattern``: the
    regular expression of a family, ``first`` the value with which it begins, ``range`` its least and greatest number
    and the step. ``changed``: how the menu of the drawing names it. ``caption``: the sentence below a figure, with {}
    for the number; ``hides``: the words of a caption for what it leaves out. ``not_in``: drawings and kinds of figures
    that do not take it.
    """

    value: str
    label: str
    title: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    pattern: str = ""
    first: str = ""
    range: tuple[float, ...] = ()
    changed: str = ""
    caption: str = ""
    hides: str = ""
    not_in: tuple[str, ...] = ()


@dataclass(frozen=True)
class ViewSetting:
    """One setting of a drawing.

    ``values``: the regular expression of a value, where it has no ``choices``; ``default``: the value where none is
    stated, ``long`` that of a long text, ``not_shares`` that of numbers that are no shares of 1. ``choices``: its
    values, for a ``control``: "segments", "menu" or "rule"; those of a setting that ``names_quantity`` are the
    quantities. ``label``: the name of the control, ``labels`` others by drawing; ``changed``: how the menu of the
    drawing names a choice. ``expected``: the values in words. ``help``: what it does, for the command line and the
    documentation, ``helps`` the same for single kinds of figures. ``kinds``: the kinds of figures that take it; those
    ``only_on_page`` show it on their interactive page alone. ``drawings``: those of the browser that read and write
    it. ``pages``: the pages that own it; links to other pages leave it out, unless none owns it. ``counts``: what it
    counts, "heads", "tokens" or "panels", so that it ends with them.
    """

    name: str
    help: str
    values: str = ""
    default: str = ""
    long: str = ""
    not_shares: str = ""
    choices: tuple[ViewChoice, ...] = ()
    label: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    control: str = ""
    changed: str = "{}"
    expected: str = ""
    helps: Mapping[str, str] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    only_on_page: tuple[str, ...] = ()
    drawings: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    names_quantity: bool = False

    @property
    def pattern(self) -> str:
        """Give the regular expression of a complete value."""
        if self.names_quantity:
            return "|".join(QUANTITIES)  # rows may have been added
        return self.values or "|".join(one.pattern or one.value for one in self.choices)

    def takes(self, value: str) -> bool:
        """Tell whether this is one of its values."""
        return re.fullmatch(self.pattern, value, flags=re.ASCII) is not None

    def choice(self, value: str) -> tuple[ViewChoice, str] | None:
        """Find the choice that a value is, and the number in it."""
        for one in self.choices:
            if re.fullmatch(one.pattern or one.value, value, flags=re.ASCII):
                return one, value.removeprefix(one.value)
        return None

    def listed(self, kind: str = "") -> tuple[str, ...]:
        """List the values that a kind of figure takes; none if they are too many to list."""
        if self.expected or not self.choices:
            return ()
        return tuple(one.value for one in self.choices if kind not in one.not_in)

    def help_for(self, kind: str) -> str:
        """Say what it does in a kind of figure."""
        return self.helps.get(kind, self.help)

    def caption(self, value: str) -> str:
        """Write the sentence below a figure for a value; empty if there is none."""
        chosen = self.choice(value)
        return chosen[0].caption.format(chosen[1]) if chosen else ""

    def is_only_on_page(self, kind: str, panels: str = "") -> bool:
        """Tell whether the files of a kind of figure, with panels of a kind, leave it out."""
        return kind in self.only_on_page and not (panels in self.kinds and panels not in self.only_on_page)


def _setting(name: str, row: Mapping[str, Any]) -> ViewSetting:
    rows = row.get("choices", {})
    choices = tuple(ViewChoice(value, **_tupled(one)) for value, one in rows.items()) if rows != "quantities" else ()
    return ViewSetting(name, **{**_tupled(row), "choices": choices, "names_quantity": rows == "quantities"})


def _tupled(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


SETTINGS: Mapping[str, ViewSetting] = MappingProxyType(
    {name: _setting(name, row) for name, row in ROWS["settings"].items()}
)
OPTIONS: Mapping[str, ViewSetting] = MappingProxyType(  # those of figures
    {name: setting for name, setting in SETTINGS.items() if setting.kinds}
)
DEFAULTS: Mapping[str, str] = MappingProxyType({name: one.default for name, one in SETTINGS.items() if one.default})
LONG_TOKENS: int = ROWS["long"]["tokens"]
LONG_DEFAULTS: Mapping[str, str] = MappingProxyType({name: one.long for name, one in SETTINGS.items() if one.long})


def patterns_of(drawing: str) -> dict[str, str]:
    """Give the regular expressions of the settings that a drawing of the browser reads and writes, by name."""
    return {name: one.pattern for name, one in SETTINGS.items() if drawing in one.drawings}


def owned_by(page: str) -> tuple[str, ...]:
    """Name the settings that a page owns."""
    return tuple(name for name, one in SETTINGS.items() if page in one.pages)


def counting(what: str) -> tuple[str, ...]:
    """Name the settings that count "heads", "tokens" or "panels"."""
    return tuple(name for name, one in SETTINGS.items() if what in one.counts)


def default_scale(*quantities: str) -> str:
    """Choose the colour scale with which quantities open: per head if the numbers of any are no shares of 1."""
    scale = SETTINGS["scale"]
    return scale.default if all(QUANTITIES[name].is_share for name in quantities) else scale.not_shares


def check_value(name: str, value: object, kind: str = "") -> None:
    """Raise SettingError unless the value is one of the setting, or empty where that means none; the error names those
    that a ``kind`` of figure takes."""
    setting = OPTIONS[name]
    if value == "" and (not setting.default or setting.not_shares):
        return
    if not isinstance(value, str) or not setting.takes(value):
        expected = setting.expected or ", ".join(setting.listed(kind))
        raise SettingError(f"{name} is {shorten_value(value)!r}.", f"Expected one of: {expected}.")


def check_taken(kind: str, stated: Mapping[str, object]) -> None:
    """Raise SettingError for a stated setting that a kind of figure does not take, and for a value that it has not."""
    for name, value in stated.items():
        setting = OPTIONS[name]
        check_value(name, value, kind)
        if kind not in setting.kinds and value not in ("", setting.default):
            others = ", ".join(setting.kinds)
            raise SettingError(f"{name} does not go with {kind}.", f"It goes with {others}. Leave it out.")


def keep_taken(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the settings that a kind of figure does not take; other options stay."""
    return {name: value for name, value in options.items() if name not in OPTIONS or kind in OPTIONS[name].kinds}


def only_on_page(kind: str, stated: Mapping[str, object], panels: str = "") -> Iterator[str]:
    """Name the stated settings that the files of a kind of figure do not show, only its interactive page."""
    for name, value in stated.items():
        if OPTIONS[name].is_only_on_page(kind, panels) and value not in ("", OPTIONS[name].default):
            yield name


def refusal_in_files(name: str, kind: str, dashes: str = "") -> SettingError:
    """Make the error for a setting, or option with ``dashes``, that the files of a kind of figure do not show."""
    setting = OPTIONS[name]
    others = [other for other in setting.kinds if other not in (*setting.only_on_page, "overlay")]
    if "compare" in setting.only_on_page and not setting.is_only_on_page("compare", "links"):
        others.append("compare --as links" if dashes else "compare of links")
    remedy = f"It goes with {', '.join(others)}, and with .html."
    return SettingError(f"{dashes}{name} does not go with {kind}.", remedy)


def for_browser() -> dict[str, Any]:
    """Give the rows with what JavaScript reads of them."""
    of_python = ("help", "helps", "expected", "kinds", "only_on_page", "pages", "counts")
    of_choice = ("caption", "hides")
    rows = {
        name: {
            key: {v: {k: w for k, w in one.items() if k not in of_choice} for v, one in value.items()}
            if isinstance(value, dict) and key == "choices" else value
            for key, value in row.items() if key not in of_python
        }
        for name, row in ROWS["settings"].items() if row.get("drawings")
    }  # fmt: skip
    return {**ROWS, "settings": rows}


assert DEFAULTS["shown"] == WEIGHT
