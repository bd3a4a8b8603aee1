"""The settings of a drawing, one row each in ``view.json``, which JavaScript imports too.

The rows define:

* the URL parameters, and which of them pages, lessons and links keep
* the controls of the drawings
* the options of figures (typed in ``mha_viz.options``) and of the command line, with their help
* the captions, the errors about settings, and the table in the documentation
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

    Attributes:
        label, title: the name and the tooltip of its control.
        labels: other names, by drawing.
        pattern: the regular expression of a family of values.
        first: the initial value of a family.
        range: the minimum and maximum number of a family, and the step.
        changed: its name in the list of changed settings on the menu button, with {} for the number.
        caption: the sentence below a figure, with {} for the number.
        hides: a caption's words for the tokens that this value hides.
        not_in: drawings and kinds of figures that do not accept it.
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

    Attributes:
        help: a description, for the command line and the documentation.
        values: the regular expression of a value, if it has no ``choices``.
        default: the value by default.
        long, not_shares: the default for a long text, and for numbers that are not shares of 1.
        choices: its values; empty if it ``names_quantity``, because its values are then the quantities.
        label, labels: the name of the control, and other names by drawing.
        control: "segments", "menu" or "rule".
        changed: a template for the names of its choices in the list of changed settings on the menu button.
        expected: a description of the valid values.
        helps: other help texts, by kind of figure.
        kinds: the kinds of figures that accept it.
        only_on_page: the kinds, among ``kinds``, that show it only on their interactive page.
        drawings: the browser's drawings that read and write it.
        pages: the pages that own it: links to other pages leave it out. If no page owns it, all links keep it.
        counts: "heads", "tokens" or "panels" if its value counts these; the setting is reset when they change.
        names_quantity: whether its values are the quantities.
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
        """The regular expression of a complete value."""
        if self.names_quantity:
            return "|".join(QUANTITIES)  # rows may have been added
        return self.values or "|".join(choice.pattern or choice.value for choice in self.choices)

    def accepts(self, value: str) -> bool:
        """Return whether the setting accepts this value."""
        return re.fullmatch(self.pattern, value, flags=re.ASCII) is not None

    def find_choice(self, value: str) -> tuple[ViewChoice, str] | None:
        """Return the matching choice and the number in the value, or None."""
        for choice in self.choices:
            if re.fullmatch(choice.pattern or choice.value, value, flags=re.ASCII):
                return choice, value.removeprefix(choice.value)
        return None

    def list_values(self, kind: str = "") -> tuple[str, ...]:
        """Return the values that a kind of figure accepts; empty if there are too many to list."""
        if self.expected or not self.choices:
            return ()
        return tuple(choice.value for choice in self.choices if kind not in choice.not_in)

    def get_help(self, kind: str) -> str:
        """Return the help text for a kind of figure."""
        return self.helps.get(kind, self.help)

    def caption(self, value: str) -> str:
        """Return the sentence below a figure for a value; empty if there is none."""
        match = self.find_choice(value)
        return match[0].caption.format(match[1]) if match else ""

    def is_only_on_page(self, kind: str, panels: str = "") -> bool:
        """Return whether only the interactive page of a kind of figure, with a kind of panels, shows this setting."""
        return kind in self.only_on_page and not (panels in self.kinds and panels not in self.only_on_page)


def _build_setting(name: str, row: Mapping[str, Any]) -> ViewSetting:
    table = row.get("choices", {})
    is_quantity = table == "quantities"
    choices = (
        () if is_quantity else tuple(ViewChoice(value, **_convert_lists(choice)) for value, choice in table.items())
    )
    return ViewSetting(name, **{**_convert_lists(row), "choices": choices, "names_quantity": is_quantity})


def _convert_lists(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


SETTINGS: Mapping[str, ViewSetting] = MappingProxyType(
    {name: _build_setting(name, row) for name, row in ROWS["settings"].items()}
)
OPTIONS: Mapping[str, ViewSetting] = MappingProxyType(  # the settings of figures
    {name: setting for name, setting in SETTINGS.items() if setting.kinds}
)
DEFAULTS: Mapping[str, str] = MappingProxyType(
    {name: setting.default for name, setting in SETTINGS.items() if setting.default}
)
LONG_TOKENS: int = ROWS["long"]["tokens"]
LONG_DEFAULTS: Mapping[str, str] = MappingProxyType(
    {name: setting.long for name, setting in SETTINGS.items() if setting.long}
)


def list_patterns(drawing: str) -> dict[str, str]:
    """Return the regular expressions, by name, of the settings that one of the browser's drawings reads and writes."""
    return {name: setting.pattern for name, setting in SETTINGS.items() if drawing in setting.drawings}


def list_owned_settings(page: str) -> tuple[str, ...]:
    """Return the names of the settings that a page owns."""
    return tuple(name for name, setting in SETTINGS.items() if page in setting.pages)


def list_counting_settings(unit: str) -> tuple[str, ...]:
    """Return the names of the settings that count "heads", "tokens" or "panels"."""
    return tuple(name for name, setting in SETTINGS.items() if unit in setting.counts)


def choose_default_scale(*quantities: str) -> str:
    """Return the default colour scale of quantities: per head unless all of them are shares of 1."""
    scale = SETTINGS["scale"]
    return scale.default if all(QUANTITIES[name].is_share for name in quantities) else scale.not_shares


def check_value(name: str, value: object, kind: str = "") -> None:
    """Raise SettingError for an invalid value; an empty value is valid for a setting without a fixed default.

    The error lists the values that a ``kind`` of figure accepts.
    """
    setting = OPTIONS[name]
    if value == "" and (not setting.default or setting.not_shares):
        return
    if not isinstance(value, str) or not setting.accepts(value):
        expected = setting.expected or ", ".join(setting.list_values(kind))
        raise SettingError(f"{name} is {shorten_value(value)!r}.", f"Expected one of: {expected}.")


def check_accepted(kind: str, values: Mapping[str, object]) -> None:
    """Raise SettingError for a setting, or a value of it, that a kind of figure does not accept."""
    for name, value in values.items():
        setting = OPTIONS[name]
        check_value(name, value, kind)
        if kind not in setting.kinds and value not in ("", setting.default):
            kinds = ", ".join(setting.kinds)
            raise SettingError(f"{name} does not go with {kind}.", f"It goes with {kinds}. Leave it out.")


def keep_accepted(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without the settings that a kind of figure does not accept."""
    return {name: value for name, value in options.items() if name not in OPTIONS or kind in OPTIONS[name].kinds}


def iter_page_only_settings(kind: str, values: Mapping[str, object], panels: str = "") -> Iterator[str]:
    """Yield the names of settings with values that only the interactive page of a kind of figure shows."""
    for name, value in values.items():
        if OPTIONS[name].is_only_on_page(kind, panels) and value not in ("", OPTIONS[name].default):
            yield name


def build_file_error(name: str, kind: str, dashes: str = "") -> SettingError:
    """Return the error for a setting that the files of a kind of figure do not show.

    ``dashes``: "--" for an option of the command line.
    """
    setting = OPTIONS[name]
    other_kinds = [other for other in setting.kinds if other not in (*setting.only_on_page, "overlay")]
    if "compare" in setting.only_on_page and not setting.is_only_on_page("compare", "links"):
        other_kinds.append("compare --as links" if dashes else "compare of links")
    remedy = f"It goes with {', '.join(other_kinds)}, and with .html."
    return SettingError(f"{dashes}{name} does not go with {kind}.", remedy)


def build_browser_settings() -> dict[str, Any]:
    """Return the rows with only the fields that JavaScript reads."""
    python_fields = ("help", "helps", "expected", "kinds", "only_on_page", "pages", "counts")
    python_choice_fields = ("caption", "hides")
    rows = {
        name: {
            key: {v: {k: w for k, w in choice.items() if k not in python_choice_fields} for v, choice in value.items()}
            if isinstance(value, dict) and key == "choices" else value
            for key, value in row.items() if key not in python_fields
        }
        for name, row in ROWS["settings"].items() if row.get("drawings")
    }  # fmt: skip
    return {**ROWS, "settings": rows}


assert DEFAULTS["shown"] == WEIGHT
