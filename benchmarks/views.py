"""The same attention on two loopback pages: this package's explorer, and BertViz's own output."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from playwright.sync_api import Browser, BrowserContext, Page

from benchmarks.chromium import LONG, open_visitor
from benchmarks.loopback import Loopback
from benchmarks.scripts import SCRIPTS, fetch_content
from mha_viz.attention import Attention, Head
from mha_viz.browser.bundle import build_script, build_style
from mha_viz.figures.layout.packet import build_packet

HEAD = 1  # the head that is open at first, in the middle layer
# The styles that Streamlit sets around a component: the theme's light colours and its fonts.
_THEME = """:root { --st-text-color: #1c1b19; --st-background-color: #fffefb; --st-primary-color: #0b5cad;
--st-link-color: #0b5cad; --st-font: sans-serif; --st-code-font: monospace; } body { margin: 0 40px; }"""


Times = dict[str, float]


class Opened(NamedTuple):
    """A page that shows an attention, with its times in milliseconds and its bytes.

    The times are arrived, entered, drawn, painted, presented and python.
    """

    page: Page
    times: Times


class Bench:
    """A browser, a server, and both pages of one attention: times from navigation start, data waiting in Python.

    Python's work (``build_packet``, BertViz's HTML) is done when the page requests it, so that it is included in the
    time.
    """

    def __init__(self, context: BrowserContext, server: Loopback) -> None:
        self._context, self._server = context, server
        for one in SCRIPTS:
            server.routes[one.path] = partial(_script, fetch_content(one))
        self.python = self.bytes = 0.0  # milliseconds and bytes of the last answer that carried the data

    def ours(self, attention: Attention, page: Page | None = None) -> Opened:
        """Show an attention in this package's explorer, in a new page or in one that ``ours`` opened."""
        self._server.routes["/packet"] = lambda: ("application/octet-stream", self._timed(_build_packet, attention))
        self._server.routes["/ours"] = lambda: ("text/html", _build_our_page(find_opened_head(attention)).encode())
        shown = self._again(page) if page else self._opened("/ours")
        if not shown.page.locator(".readout b").count():
            raise RuntimeError("Our page opened no head: its matrix is not in the packet.")
        return shown

    def bertviz(self, view: str, attention: Attention, page: Page | None = None, **options: Any) -> Opened:
        """Show it in BertViz's "model_view" or "head_view", new or in a page that has one; ``options`` are its own."""
        tensors = [torch.from_numpy(layer)[None] for layer in attention.weights.copy()]
        make = partial(self._timed, _build_bertviz_page, view, tensors, list(attention.tokens), options)
        self._server.routes["/output"] = lambda: ("text/html", make())
        self._server.routes["/bertviz"] = lambda: ("text/html", _NOTEBOOK.encode() + make())
        return self._again(page) if page else self._opened("/bertviz")

    def _timed(self, make: Any, *given: Any) -> bytes:
        began = time.perf_counter()
        made: bytes = make(*given)
        self.python, self.bytes = 1000 * (time.perf_counter() - began), len(made)
        return made

    def _opened(self, path: str) -> Opened:
        page = self._context.new_page()
        page.goto(self._server.url + "/")  # the tab's process is started before the clock
        page.goto(self._server.url + path, wait_until="commit", timeout=LONG)
        return self._taken(page, page.evaluate("bench.shown"))

    def _again(self, page: Page) -> Opened:
        return self._taken(page, page.evaluate("bench.again(load)"))

    def _taken(self, page: Page, times: Times) -> Opened:
        return Opened(page, times | {"python": self.python, "bytes": self.bytes})


@contextlib.contextmanager
def open_bench(browser: Browser) -> Iterator[Bench]:
    """Yield a Bench with a new visitor and server."""
    with Loopback() as server, open_visitor(browser) as context:
        yield Bench(context, server)


def find_opened_head(attention: Attention) -> Head:
    """Return the head that this package's page opens first."""
    return Head(attention.layers // 2, HEAD)


def _script(text: bytes) -> tuple[str, bytes]:
    return "text/javascript", text


def _build_packet(attention: Attention) -> bytes:
    return build_packet(attention, [find_opened_head(attention)])


def _build_our_page(head: Head) -> str:
    """Return a page with only the explorer, mounted as in the app, and the resources it fetches."""
    return f"""<!doctype html><meta charset="utf-8"><style>{_THEME}{build_style("explorer")}</style>
<script>const get = () => fetch("/packet").then((answer) => answer.arrayBuffer()); const first = get();</script>
<body><div class="mha-explorer"></div><script type="module">{build_script("explorer")}
const {{ explorer }} = $explorer_explorer;
let app;
window.load = async (coming) => {{
  const bytes = new Uint8Array(await (coming ?? get()));
  bench.arrived = performance.now();
  app ??= explorer(document.querySelector(".mha-explorer"), () => {{}}, () => "?unit=pieces&head={head}");
  app.show(bytes);
  bench.drew();
}};
load(first);</script></body>"""


# The surroundings of BertViz's output in a notebook: require.js, and room. ``requirejs`` also reports when it has
# drawn.
_NOTEBOOK = f"""<!doctype html><meta charset="utf-8"><body><script src="{SCRIPTS[0].path}"></script><script>
const plain = requirejs;
requirejs = (names, draw) => plain(names, (...given) => {{
  bench.entered = performance.now();
  draw(...given);
  bench.drew();
}});
async function load() {{
  const html = await (await fetch("/output")).text();
  bench.arrived = performance.now();
  document.body.replaceChildren(document.createRange().createContextualFragment(html));
}}
</script>"""


def _build_bertviz_page(view: str, tensors: list[Any], tokens: list[str], options: dict[str, Any]) -> bytes:
    """Return BertViz's output after a tag for require.js, with its other scripts from loopback."""
    import bertviz

    html: str = getattr(bertviz, view)(tensors, tokens, html_action="return", **options).data
    for one in SCRIPTS:
        local = one.path if one.cdn.endswith(".js") else one.path.removesuffix(".js")
        if one.cdn not in html:
            raise SystemExit(f"BertViz no longer asks for {one.cdn}; these benchmarks are for version 1.4.1.")
        html = html.replace(one.cdn, local)
    return html.partition("</script>")[2].encode()
