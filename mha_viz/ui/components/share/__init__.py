"""“Copy link” for pages without a sentence field."""

from __future__ import annotations

from collections.abc import Mapping

from mha_viz.ui.components import drawing

_mount = drawing("share")


def share(full: Mapping[str, str], file: str) -> None:
    """Draw the button. ``full``: the parameters that a link needs besides the URL to show the same elsewhere; ``file``:
    what the page can save for others, "html", "figures" or nothing."""
    _mount(key="share", data={"full": dict(full), "file": file}, width="content")
