"""The same attention on two loopback pages: our explorer's, and BertViz's own output."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from playwright.sync_api import Browser, BrowserContext, Page

from benchmarks.chromium import LONG, visitor
from benchmarks.loopback import Loopback
from benchmarks.scripts import SCRIPTS, content
from mha_viz.attention import Attention, Head
from mha_viz.figures.packet import packet
from mha_viz.ui.components import script, style

HEAD = 1  # the head that is open at first, of the middle layer
_MODULES = ("geometry", "ink", "grid", "links", "heatmap", "explorer")
# What Streamlit sets around a component: the theme's light colours and its fonts.
_THEME = """:root { --st-text-color: #1c1b19; --st-background-color: #fffefb; --st-primary-color: #0b5cad;
--st-link-color: #0b5cad; --st-font: sans-serif; --st-code-font: monospace; } body { margin: 0 40px; }"""


class Bench:
    """A browser, a server, and both pages of one attention: times from navigation start, data waiting in Python.

    Python's own work (our ``packet``, BertViz's HTML) is done when the page asks for it, so it is inside the time.
    """

    def __init__(self, context: BrowserContext, server: Loopback) -> None:
        self._context, self._server = context, server
        for one in SCRIPTS:
            server.routes[one.path] = partial(_script, content(one))
        self.python = self.bytes = 0.0  # milliseconds and bytes of the last answer that carried the data

    def ours(self, attention: Attention) -> tuple[Page, dict[str, float]]:
        """Open our page: (the page, its times)."""
        self._server.routes["/packet"] = lambda: ("application/octet-stream", self._timed(_packet, attention))
        self._server.routes["/ours"] = lambda: ("text/html", _ours(opened_head(attention)).encode())
        return self._opened("/ours")

    def grid_of_bertviz(self, attention: Attention) -> tuple[Page, dict[str, float]]:
        """Open BertViz's ``model_view``."""
        return self._bertviz("model_view", attention)

    def head_of_bertviz(self, attention: Attention, **options: Any) -> tuple[Page, dict[str, float]]:
        """Open BertViz's ``head_view``; ``options`` are its own."""
        return self._bertviz("head_view", attention, **options)

    def _bertviz(self, view: str, attention: Attention, **options: Any) -> tuple[Page, dict[str, float]]:
        tensors = [torch.from_numpy(layer)[None] for layer in attention.weights.copy()]
        tokens = list(attention.tokens)
        self._server.routes["/bertviz"] = lambda: ("text/html", self._timed(_bertviz, view, tensors, tokens, options))
        return self._opened("/bertviz")

    def _timed(self, make: Any, *given: Any) -> bytes:
        began = time.perf_counter()
        made: bytes = make(*given)
        self.python, self.bytes = 1000 * (time.perf_counter() - began), len(made)
        return made

    def _opened(self, path: str) -> tuple[Page, dict[str, float]]:
        page = self._context.new_page()
        page.goto(self._server.url + "/")  # the process of the tab stands before the clock starts
        page.goto(self._server.url + path, wait_until="commit", timeout=LONG)
        times: dict[str, float] = page.evaluate("bench.shown")
        if path == "/ours" and not page.locator(".readout b").count():
            raise RuntimeError("Our page opened no head: its matrix is not in the packet.")
        return page, times | {"python": self.python, "bytes": self.bytes}


@contextlib.contextmanager
def bench(browser: Browser) -> Iterator[Bench]:
    """A Bench with a fresh visitor and server."""
    with Loopback() as server, visitor(browser) as context:
        yield Bench(context, server)


def opened_head(attention: Attention) -> Head:
    """The head that our page opens at first."""
    return Head(attention.layers // 2, HEAD)


def _script(text: bytes) -> tuple[str, bytes]:
    return "text/javascript", text


def _packet(attention: Attention) -> bytes:
    return packet(attention, [opened_head(attention)])


def _ours(head: Head) -> str:
    """A page with the explorer alone, as the app mounts it, and the bytes fetched beside."""
    bundle = script("explorer", *_MODULES)
    return f"""<!doctype html><meta charset="utf-8"><style>{_THEME}{style("explorer")}</style>
<script>const coming = fetch("/packet").then((answer) => answer.arrayBuffer());</script>
<body><div class="mha-explorer"></div><script type="module">{bundle}
const bytes = new Uint8Array(await coming);
bench.arrived = performance.now();
window.app = explorer(document.querySelector(".mha-explorer"), () => {{}}, () => "?unit=pieces&head={head}");
app.show(bytes);
bench.drew();</script></body>"""


def _bertviz(view: str, tensors: list[Any], tokens: list[str], options: dict[str, Any]) -> bytes:
    """What BertViz returns, its scripts from loopback, and a word from it when its drawing function has returned."""
    import bertviz  # type: ignore[import-untyped, unused-ignore]

    html: str = getattr(bertviz, view)(tensors, tokens, html_action="return", **options).data
    for one in SCRIPTS:
        local = one.path if one.cdn.endswith(".js") else one.path.removesuffix(".js")
        if one.cdn not in html:
            raise SystemExit(f"BertViz no longer asks for {one.cdn}; these benchmarks are for version 1.4.1.")
        html = html.replace(one.cdn, local)
    listen = """</script><script>{ const load = requirejs;
window.requirejs = (names, draw) => load(names, (...given) => {
bench.entered = performance.now(); draw(...given); bench.drew(); }); }</script>"""
    html = html.replace("</script>", listen, 1)
    return f'<!doctype html><meta charset="utf-8"><body>{html}</body>'.encode()
