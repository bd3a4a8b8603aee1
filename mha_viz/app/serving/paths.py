"""The paths of the server, relative to the path under which it may be mounted."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from starlette.types import Scope
from streamlit import config

from mha_viz.files.assets import page_files, redirect_address

STREAM = "_stcore/stream"
HEALTH = "_stcore/health"
UPLOADS = "_stcore/upload_file/"
COMPONENTS = "_stcore/bidi-components/"
MEDIA = "media/"


def get_base() -> str:
    """Return ``server.baseUrlPath`` without slashes at its ends."""
    return str(config.get_option("server.baseUrlPath") or "").strip("/")


def get_relative_path(scope: Scope) -> str:
    """Return the path relative to ``server.baseUrlPath``, without a leading slash.

    A path outside ``server.baseUrlPath`` keeps its slash.
    """
    base_path = get_base()
    path: str = scope["path"]
    if base_path and not f"{path}/".startswith(f"/{base_path}/"):
        return path
    return path.removeprefix(f"/{base_path}" if base_path else "").removeprefix("/")


def list_paths() -> frozenset[str]:
    """Return the paths of the app's pages: the names of all pages, and "" for the first."""
    return frozenset({"", *page_files()})


def find_new_address(scope: Scope) -> str | None:
    """Return the current address of a page that has moved; None for any other path.

    The first page has moved from the path with its name to the root.
    """
    path = get_relative_path(scope).rstrip("/")
    old_parameters = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))
    page, parameters = redirect_address(path, old_parameters)
    new_path = "" if page == next(iter(page_files())) else page
    if new_path == path:
        return None
    return f"/{get_base()}/{new_path}?{urlencode(parameters)}".replace("//", "/", 1).rstrip("?")
