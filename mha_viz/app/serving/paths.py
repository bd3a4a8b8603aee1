"""The paths of the server, relative to the path that it may be mounted under."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from starlette.types import Scope
from streamlit import config

from mha_viz.files.assets import moved, page_files

STREAM = "_stcore/stream"
HEALTH = "_stcore/health"
UPLOADS = "_stcore/upload_file/"
COMPONENTS = "_stcore/bidi-components/"
MEDIA = "media/"


def base() -> str:
    """Return the value of ``server.baseUrlPath`` without slashes at its ends."""
    return str(config.get_option("server.baseUrlPath") or "").strip("/")


def below(scope: Scope) -> str:
    """Return the path below ``server.baseUrlPath``, without its leading slash. A path outside of it keeps the slash."""
    base_path = base()
    path: str = scope["path"]
    if base_path and not f"{path}/".startswith(f"/{base_path}/"):
        return path
    return path.removeprefix(f"/{base_path}" if base_path else "").removeprefix("/")


def pages() -> frozenset[str]:
    """Return the paths of the app's pages: "" for the first, and the name of each."""
    return frozenset({"", *page_files()})


def new_address(scope: Scope) -> str | None:
    """Return the address to which the content of an old one moved, and that of the first page, which is at the root, by
    its name; None for any other."""
    path = below(scope).rstrip("/")
    old = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))
    page, parameters = moved(path, old)
    place = "" if page == next(iter(page_files())) else page
    if place == path:
        return None
    return f"/{base()}/{place}?{urlencode(parameters)}".replace("//", "/", 1).rstrip("?")
