"""The whole site as an institute serves it: a real nginx, two processes, TLS, a sub-path, and a real Chromium."""

from __future__ import annotations

import os
import re
import ssl
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Response, expect, sync_playwright

from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu
from tests.app_server import find_chromium
from tests.browser_tab import DESKTOP, BrowserTab
from tests.deploy.image import ROOT
from tests.deploy.site import BASE, HOST, NAMES, Server, Site, wait_for

pytestmark = pytest.mark.deploy

QUIET = '[data-testid="stApp"][data-test-script-state="notRunning"]'
FILES = sorted((ROOT / "pages").glob("[0-9]*_*.py"))
PATHS = [file.stem.split("_", 1)[1] for file in FILES]
PRIVATE = "A very private sentence that no log may hold."
PRIVATE_MARKS = ("private", "very+private", "very%20private")


class Guest(BrowserTab):
    """A visitor who notes every refusal: an answer from 400 on, and what the Content-Security-Policy forbids."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        super().__init__(context, url)
        self.is_altered = True
        self.sockets = 0
        self.page.on("response", self._answered)
        self.page.on("console", self._wrote)
        self.page.on("websocket", lambda _: setattr(self, "sockets", self.sockets + 1))

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.faults.append(f"{response.status}: {urlsplit(response.url).path}")

    def _wrote(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text or "Content-Security-Policy" in message.text:
            self.faults.append(message.text)

    def check_no_faults(self) -> None:
        assert self.faults == []
        assert self.page.locator(".stException").count() == 0
        site = self.url.removesuffix(BASE)
        ours = (f"{site}/", f"{site.replace('https', 'wss', 1)}/", "data:", "blob:")
        assert [url for url in self.requests if not url.startswith(ours)] == []

    @property
    def process(self) -> str:
        """Which process the browser's cookie names."""
        values = [cookie["value"] for cookie in self.page.context.cookies() if cookie["name"] == "mha_process"]
        assert len(values) == 1
        return values[0]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site[Server]]:
    """One site for all tests here. Whatever they did, no log holds a sentence and no process a traceback."""
    folder = tmp_path_factory.mktemp("site")
    with Site(folder, *(Server(name, folder) for name in NAMES)) as running:
        yield running
    logs = [running.nginx_log(), *(server.log() for server in running.servers.values())]
    assert "GET /heads/_stcore/stream" in logs[0]
    assert not [mark for mark in PRIVATE_MARKS for log in logs if mark in log]
    assert not [line for log in logs for line in log.splitlines() if "exec_func_with_error_handling" in line]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium for which the site's name is this machine."""
    with sync_playwright() as playwright:
        rules = f"MAP {HOST} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        arguments = ["--no-sandbox", "--disable-gpu", "--no-proxy-server", f"--host-resolver-rules={rules}"]
        started = playwright.chromium.launch(executable_path=find_chromium(), args=arguments)
        yield started
        started.close()


@pytest.fixture
def come(site: Site[Server], browser: Browser) -> Iterator[Callable[[], Guest]]:
    """Makes guests, each with a browser profile of its own; afterwards none may have met an error."""
    guests: list[Guest] = []

    def one_more() -> Guest:
        guests.append(Guest(browser.new_context(viewport=DESKTOP, ignore_https_errors=True), site.url))
        return guests[-1]

    yield one_more
    for guest in guests:
        try:
            guest.leave()
        finally:
            guest.page.context.close()


@pytest.fixture
def guest(come: Callable[[], Guest]) -> Guest:
    return come()


def shown(page: Page, path: str) -> None:
    """Wait until the page called ``path`` has run to its end and shows what only it shows."""
    page.wait_for_selector(QUIET)
    marks = {
        "explore": page.locator(".grid canvas"),
        "compare": page.locator("article.panel"),
        "roles": page.get_by_role("grid", name="What each head does"),
        "inside_a_head": page.locator("[aria-current=step]"),
        "why_heads_differ": page.get_by_role("button", name="Play"),
        "about": page.get_by_role("heading", name="What the pictures show, and what they do not"),
    }
    expect(marks[path].first if path in marks else page.get_by_role("heading").first).to_be_visible()
    assert page.locator(".stException").count() == 0


# ---- What every answer carries


def test_the_app_s_headers_and_the_proxy_s_reach_the_visitor(site: Site[Server]) -> None:
    answer = site.ask(f"{BASE}/")
    assert answer.status == 200
    policy = answer.headers["Content-Security-Policy"]
    assert "'unsafe-eval'" not in policy
    assert "frame-ancestors" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"]
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert "nginx/" not in answer.headers["Server"]


def test_plain_http_is_sent_to_tls_and_another_name_is_refused(site: Site[Server]) -> None:
    connection = HTTPConnection("127.0.0.1", site.plain_port, timeout=30)
    connection.request("GET", f"{BASE}/roles", headers={"Host": HOST})
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("Location")) == (308, f"https://{HOST}{BASE}/roles")
    connection.close()
    unverified = ssl._create_unverified_context()
    with pytest.raises(ssl.SSLError):
        site.handshake(unverified, "evil.example")
    site.handshake(unverified).close()


def test_newcomers_are_spread_and_the_cookie_decides_from_then_on(site: Site[Server]) -> None:
    named = set()
    for _ in range(40):  # all forty to one process: 2 in 2⁴⁰
        given = site.ask(f"{BASE}/").headers.get_all("Set-Cookie") or []
        line = next(cookie for cookie in given if cookie.startswith("mha_process="))
        assert line.endswith("; Path=/heads; Secure; HttpOnly; SameSite=Lax")
        named.add(line.partition(";")[0].partition("=")[2])
    assert named == set(NAMES)
    for name in NAMES:
        for number in range(5):
            path = f"{BASE}/about/{name}{number}"
            again = site.ask(path, Cookie=f"mha_process={name}")
            assert not [cookie for cookie in again.headers.get_all("Set-Cookie") or [] if "mha_process" in cookie]
            wait_for(partial(_logs, site, path), "The log does not hold the request")
            line = next(line for line in site.nginx_log().splitlines() if path in line)
            assert line.split()[-2] == f"127.0.0.1:{site.servers[name].port}"
    forged = site.ask(f"{BASE}/", Cookie="mha_process=10.0.0.1")
    assert [cookie for cookie in forged.headers.get_all("Set-Cookie") or [] if "mha_process=" in cookie]


def test_the_shell_s_files_are_compressed_and_kept_by_browsers(site: Site[Server]) -> None:
    script = re.search(r'src="\./(static/js/[^"]+)"', site.ask(f"{BASE}/").body.decode())
    assert script
    answer = site.ask(f"{BASE}/{script[1]}", **{"Accept-Encoding": "gzip"})
    assert answer.status == 200
    assert answer.headers["Content-Encoding"] == "gzip"
    assert "immutable" in answer.headers["Cache-Control"]


# ---- A visit


def test_all_pages_are_reached_by_clicks_and_cookies_are_secure(guest: Guest) -> None:
    page = guest.explore()
    for path in [*PATHS[1:], PATHS[0]]:
        page.locator(".st-key-mast").get_by_role("link", name=path.replace("_", " ").capitalize()).click()
        expected = BASE if path == "explore" else f"{BASE}/{path}"
        page.wait_for_function("path => location.pathname.replace(/\\/$/, '') === path", arg=expected)
        shown(page, path)
    cookies = page.context.cookies()
    assert {cookie["name"] for cookie in cookies} >= {"_streamlit_xsrf", "mha_process"}
    assert [cookie["name"] for cookie in cookies if not cookie["secure"]] == []


@pytest.mark.parametrize("path", PATHS)
def test_a_deep_link_opens_its_page(guest: Guest, path: str) -> None:
    page = guest.visit(f"/{path}", head="L3H1", text=PRIVATE)
    shown(page, path)
    assert urlsplit(page.url).path.startswith(BASE)


def test_a_sentence_is_typed_and_its_figure_downloaded(guest: Guest) -> None:
    page = guest.explore(head="L3H1")
    guest.read(PRIVATE)
    assert "private" in download(page)
    expect(guest.title).to_have_text("L3H1 (4-2)")


def test_a_corpus_is_uploaded_and_measured(guest: Guest, tmp_path: Path) -> None:
    path = tmp_path / "own.conllu"
    path.write_text(format_conllu(grammar.corpus(10, seed=77).sentences), "utf-8")
    page = guest.visit("/roles", corpus="file", model="toy")
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_role("button", name="Measure own.conllu").click()
    expect(page.get_by_text("Measured on own.conllu")).to_be_visible(timeout=120_000)


def download(page: Page) -> str:
    """The words of the SVG of the head in view, as the visitor gets it."""
    button = page.get_by_role("button", name="SVG", exact=True)
    if not button.is_visible():
        page.get_by_text("Download", exact=True).click()
    with page.expect_download() as started:
        button.click()
    return " ".join(ElementTree.fromstring(Path(started.value.path()).read_bytes()).itertext())


def test_the_container_s_health_check_sees_both_processes(site: Site[Server]) -> None:
    for server in site.servers.values():
        given = os.environ | {"PORT": str(server.port), "STREAMLIT_SERVER_BASE_URL_PATH": BASE.strip("/")}
        assert subprocess.run([ROOT / "deploy" / "healthy"], env=given, check=False).returncode == 0


# ---- One process is gone


def test_a_view_comes_back_when_its_process_is_killed(site: Site[Server], come: Callable[[], Guest]) -> None:
    guest = come()
    page = guest.explore(text=PRIVATE, head="L2H5", special="rescale", unit="pieces")
    before, sockets, view = guest.process, guest.sockets, guest.address
    other = next(name for name in NAMES if name != before)
    site.servers[before].kill()
    try:
        wait_for_page(page, lambda: guest.sockets > sockets and guest.process == other)
        returned(guest, view)
        page.reload()
        returned(guest, view)
        guest.read(f"{PRIVATE} Again.")  # the new process answers, with the same view
        assert guest.address == {**view, "text": f"{PRIVATE} Again."}
        expect(guest.title).to_have_text("L2H5 (3-6)")
        for _ in range(6):  # newcomers who are sent to the dead process reach the other one as well
            assert site.ask(f"{BASE}/?text={quote(PRIVATE)}").status == 200
    finally:
        site.servers[before].start()
    assert "Again" in download(page)  # is in the memory of the new process: the visitor stays there
    assert guest.process == other


def returned(guest: Guest, view: dict[str, str]) -> None:
    """The text, the head and the controls are as they were."""
    guest.wait_until_drawn()
    expect(guest.field).to_have_value(view["text"])
    expect(guest.title).to_have_text("L2H5 (3-6)")
    drawn = guest.page.locator("summary", has_text="Drawing")
    expect(drawn).to_have_text("Drawing: tokens, special tokens hidden, rescaled")
    assert guest.address == view


def _logs(site: Site[Server], path: str) -> bool:
    return path in site.nginx_log()


def wait_for_page(page: Page, condition: Callable[[], bool]) -> None:
    """Wait for ``condition`` while the browser's events go on being heard."""

    def listen() -> bool:
        page.wait_for_timeout(100)
        return condition()

    wait_for(listen, "The tab did not connect again")
