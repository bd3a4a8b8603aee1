"""The same attention on two loopback pages: this package's explorer, and BertViz's own output."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from playwright.sync_api import Browser, BrowserContext, Page

from benchmarks.chromium import TIMEOUT_MS, open_visitor
from benchmarks.loopback import Loopback
from benchmarks.scripts import SCRIPTS, fetch_content
from mha_viz.attention import Attention, Head
from mha_viz.browser.bundle import build_script, build_style
from mha_viz.figures.layout.packet import build_packet

OPENED_HEAD = 1  # the head that is open at first, in the middle layer
# The styles that Streamlit sets around a component: the theme's light colours and its fonts.
_THEME = """:root { --st-text-color: #1c1b19; --st-background-color: #fffefb; --st-primary-color: #0b5cad;
--st-link-color: #0b5cad; --st-font: sans-serif; --st-code-font: monospace; } body { margin: 0 40px; }"""


Times = dict[str, float]


class OpenedPage(NamedTuple):
    """A page that shows an attention, with its times in milliseconds and the bytes of its data.

    The keys of ``times`` are arrived, entered, drawn, painted, presented, python and bytes.
    """

    page: Page
    times: Times


class Bench:
    """Shows attentions on the pages of both tools and measures times from navigation start, with the data in Python.

    Python's work (``build_packet``, BertViz's HTML) is done when the page requests it, so that the times include it.
    """

    def __init__(self, context: BrowserContext, server: Loopback) -> None:
        self._context, self._server = context, server
        for script in SCRIPTS:
            server.routes[script.path] = partial(_make_script_response, fetch_content(script))
        self.python_ms = self.bytes = 0.0  # Python's milliseconds for the last answer with data, and its bytes

    def show_explorer(self, attention: Attention, page: Page | None = None) -> OpenedPage:
        """Show an attention in this package's explorer, in a new page or in one that ``show_explorer`` opened."""
        self._server.routes["/packet"] = lambda: ("application/octet-stream", self._time_call(_build_packet, attention))
        self._server.routes["/ours"] = lambda: ("text/html", _build_our_page(find_opened_head(attention)).encode())
        opened_page = self._update(page) if page else self._open("/ours")
        if not opened_page.page.locator(".readout b").count():
            raise RuntimeError("Our page opened no head: its matrix is not in the packet.")
        return opened_page

    def show_bertviz(self, view: str, attention: Attention, page: Page | None = None, **options: Any) -> OpenedPage:
        """Show an attention in BertViz's "model_view" or "head_view" with ``options``, in a new page or in ``page``."""
        tensors = [torch.from_numpy(layer)[None] for layer in attention.weights.copy()]
        build_page = partial(self._time_call, _build_bertviz_page, view, tensors, list(attention.tokens), options)
        self._server.routes["/output"] = lambda: ("text/html", build_page())
        self._server.routes["/bertviz"] = lambda: ("text/html", _NOTEBOOK.encode() + build_page())
        return self._update(page) if page else self._open("/bertviz")

    def _time_call(self, function: Any, *arguments: Any) -> bytes:
        start = time.perf_counter()
        content: bytes = function(*arguments)
        self.python_ms, self.bytes = 1000 * (time.perf_counter() - start), len(content)
        return content

    def _open(self, path: str) -> OpenedPage:
        page = self._context.new_page()
        page.goto(self._server.url + "/")  # the tab's process is started before the clock
        page.goto(self._server.url + path, wait_until="commit", timeout=TIMEOUT_MS)
        return self._add_costs(page, page.evaluate("bench.shown"))

    def _update(self, page: Page) -> OpenedPage:
        return self._add_costs(page, page.evaluate("bench.drawAgain(load)"))

    def _add_costs(self, page: Page, times: Times) -> OpenedPage:
        return OpenedPage(page, times | {"python": self.python_ms, "bytes": self.bytes})


@contextlib.contextmanager
def open_bench(browser: Browser) -> Iterator[Bench]:
    """Yield a Bench with a new visitor and server."""
    with Loopback() as server, open_visitor(browser) as context:
        yield Bench(context, server)


def find_opened_head(attention: Attention) -> Head:
    """Return the head that this package's page opens first."""
    return Head(attention.layers // 2, OPENED_HEAD)


def _make_script_response(text: bytes) -> tuple[str, bytes]:
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
window.load = async (packet) => {{
  const bytes = new Uint8Array(await (packet ?? get()));
  bench.arrived = performance.now();
  app ??= explorer(document.querySelector(".mha-explorer"), () => {{}}, () => "?unit=pieces&head={head}");
  app.show(bytes);
  bench.reportDrawn();
}};
load(first);</script></body>"""


# A notebook around BertViz's output: require.js, whose ``requirejs`` also reports when BertViz has drawn.
_NOTEBOOK = f"""<!doctype html><meta charset="utf-8"><body><script src="{SCRIPTS[0].path}"></script><script>
const original = requirejs;
requirejs = (names, draw) => original(names, (...args) => {{
  bench.entered = performance.now();
  draw(...args);
  bench.reportDrawn();
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
    for script in SCRIPTS:
        local_path = script.path if script.cdn.endswith(".js") else script.path.removesuffix(".js")
        if script.cdn not in html:
            raise SystemExit(f"BertViz no longer asks for {script.cdn}; these benchmarks are for version 1.4.1.")
        html = html.replace(script.cdn, local_path)
    return html.partition("</script>")[2].encode()
