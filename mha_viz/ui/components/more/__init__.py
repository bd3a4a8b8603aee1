"""The menu *More*: the link to this view, the keys, the view for a class."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mha_viz.ui.components import drawing

_mount = drawing("more")


def more(full: Mapping[str, str], file: str, key: str, on_class: Callable[[], None]) -> None:
    """Draw the menu. ``full``: the parameters that a link needs besides the URL to show the same elsewhere; ``file``:
    what the page can save for others, "html", "figures" or nothing."""
    _mount(key=key, data={"full": dict(full), "file": file}, width="content", on_class_change=on_class)
