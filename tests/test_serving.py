"""The real server as the public sees it: headers, names, origins, limits, and resources that are freed."""

from __future__ import annotations

import asyncio
import base64
import gc
import gzip
import hashlib
import http.client
import os
import re
import signal
import socket
import sys
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from playwright.sync_api import Route, expect
from starlette.types import Message, Receive, Scope, Send
from streamlit import file_util
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin, Subprotocol

from mha_viz.app.serving import session_limit as limit_module
from mha_viz.app.serving import start, streamlit_parts, sweeping, waits
from mha_viz.app.serving.back_messages import AllowedMessage
from mha_viz.app.serving.session_limit import Gate, SessionLimit, _Tab, get_client_address
from mha_viz.app.serving.settings import ServerSettings, from_environment, is_loopback
from mha_viz.app.serving.streamlit_files import BASE_URL_SCRIPT, StreamlitFiles
from mha_viz.app.serving.sweeping import MAX_WAITING, WaitingSessions, sweep
from mha_viz.browser.bundle import COMPONENTS, name_served_file
from mha_viz.browser.supported import TOO_OLD
from mha_viz.errors import SettingError
from mha_viz.models.getting import folder
from mha_viz.process import log
from tests.app_server import AppServer
from tests.browser_tab import BrowserTab
from tests.copies import Copy
from tests.http_answers import OWN_PAGES_ONLY, SECURITY_HEADERS, Answer, ask
from tests.waiting import PATIENCE, until
from tests.web_session import XSRF, WebSession, run

PAGES = ("", "compare", "roles", "inside_a_head", "why_heads_differ", "about")
T = TypeVar("T")


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """A server with two places, one process for all tests that need a full one; other settings are set as well."""
    settings = {"MHA_VIZ_SESSIONS": "2", "MHA_VIZ_FRAMES": "https://courses.example.org", "MHA_VIZ_METRICS": "1"}
    hosts = {"MHA_VIZ_HOSTS": "heads.example.org, 127.0.0.1"}
    hosts |= {"MHA_VIZ_PROXIES": "127.0.0.1", "MHA_VIZ_SESSIONS_PER_ADDRESS": "1"}
    under = ("--server.baseUrlPath", "heads")
    with AppServer(tmp_path_factory.mktemp("full"), *under, base="heads", **settings, **hosts) as running:
        yield running


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """A server that waits one second for a visitor to return, and ends at a signal in spite of its visitors."""
    option = ("--server.disconnectedSessionTTL", "1")
    with AppServer(tmp_path_factory.mktemp("forgetful"), *option, MHA_VIZ_METRICS="1") as running:
        yield running
        run(_end(running))
        assert (running.process.returncode, running.faults()) == (0, [])
        assert "Traceback" not in running.log()


async def _end(server: AppServer) -> None:
    """Ask a server to end while a visitor is connected."""
    async with connect(f"ws{server.url.removeprefix('http')}/_stcore/stream", proxy=None):
        server.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(server.process.wait, PATIENCE)


# ---- Headers and paths -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "status"),
    [
        *((f"/{page}", 200) for page in PAGES),
        ("/explore?model=toy", 307),
        ("/switch_off?off=L3H1", 307),
        ("/about/", 301),
        ("/no-such-page", 404),
        ("/about/deeper", 404),
        ("/static/js/nothing.js", 404),
        ("/_stcore/health", 200),
        ("/_stcore/host-config", 200),
        ("/_stcore/metrics", 404),
        ("/_stcore/script-health-check", 404),
        ("/_stcore/agent/openapi.json", 404),
        ("/_stcore/agent/interact", 404),
        ("/_stcore/nothing", 404),
        ("/auth/login", 404),
        ("/auth/login/", 404),
        ("/auth/logout", 404),
        ("/oauth2callback", 404),
        ("/manifest.json", 404),
        ("/media/nothing.txt", 404),
        ("/%2e%2e/%2e%2e/etc/passwd", 400),
        ("/favicon.png", 200),
        (f"/_stcore/bidi-components/mha_explorer/{name_served_file('explorer')}", 200),
        ("/_stcore/bidi-components/mha_explorer/explorer.js", 404),
        ("/_stcore/bidi-components/mha_explorer/__init__.py", 404),
    ],
)
def test_every_answer_has_the_headers_and_unknown_paths_are_not_found(
    server: AppServer, path: str, status: int
) -> None:
    answer = ask(server.url, path)
    assert answer.status == status
    assert all(name in answer.headers for name in SECURITY_HEADERS)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert {answer.headers[name] for name in ("referrer-policy", *OWN_PAGES_ONLY)} == {"same-origin"}


def test_an_unknown_address_leads_to_the_app(server: AppServer) -> None:
    answer = ask(server.url, "/no-such-page")
    body = answer.body.decode()
    assert (answer.status, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert re.search('<a href="/"[^>]*>Open mha_viz</a>', body)
    assert "no-such-page" not in body


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/questions", "/why_heads_differ"),
        ("/questions/?task=2&answer=L0H2", "/why_heads_differ?task=2&answer=L0H2&experiment=tasks"),
        ("/roles?model=toy&snapshot=300", "/why_heads_differ?model=toy&snapshot=300&experiment=toy"),
        ("/questions?x=%0d%0aA:b", "/why_heads_differ?x=%0D%0AA%3Ab"),
    ],
)
def test_an_old_address_leads_to_where_its_content_went(server: AppServer, old: str, new: str) -> None:
    answer = ask(server.url, old)
    assert (answer.status, answer.headers["location"]) == (307, new)
    assert ask(server.url, new).status == 200


def test_the_policy_lets_no_page_evaluate_or_run_inline_scripts(server: AppServer) -> None:
    policy = ask(server.url, "/").headers["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    scripts = rules["script-src"].split()
    assert all(source in ("'self'", "'wasm-unsafe-eval'") or source.startswith("'sha256-") for source in scripts)
    assert rules["frame-ancestors"] == rules["base-uri"] == "'self'"
    assert rules["object-src"] == "'none'"


@pytest.mark.parametrize("path", ["/", "/roles"])
def test_a_page_is_told_where_its_server_is_and_an_older_browser_why_nothing_is_drawn(
    server: AppServer, path: str
) -> None:
    answer = ask(server.url, path, **{"Accept-Encoding": "gzip"})
    assert "content-encoding" not in answer.headers, "what is added to a page is not compressed"
    assert answer.body.decode().count(BASE_URL_SCRIPT) == answer.body.decode().count(TOO_OLD) == 1
    digest = base64.b64encode(hashlib.sha256(BASE_URL_SCRIPT.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in answer.headers["content-security-policy"]


def test_a_method_that_no_page_has_is_refused_with_headers(server: AppServer) -> None:
    answer = ask(server.url, "/", "POST", b"x")
    assert answer.status == 405
    assert all(name in answer.headers for name in SECURITY_HEADERS)


def test_named_sites_may_frame_the_app_and_metrics_open_on_request(full: AppServer) -> None:
    policy = ask(full.url, "/heads/about").headers["content-security-policy"]
    assert policy.endswith("frame-ancestors 'self' https://courses.example.org")
    assert ask(full.url, "/heads/_stcore/metrics").status == 200
    assert ask(full.url, "/heads/nothing").status == ask(full.url, "/nothing").status == 404


@pytest.mark.parametrize("name", COMPONENTS)
def test_component_files_are_kept_for_a_year(server: AppServer, name: str) -> None:
    path = f"/_stcore/bidi-components/mha_{name}/{name_served_file(name)}"
    plain, zipped = ask(server.url, path), ask(server.url, path, Accept_Encoding="gzip")
    assert plain.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert plain.headers["content-type"].startswith("text/javascript")
    assert gzip.decompress(zipped.body) == plain.body
    assert b"export default" in plain.body


def _static(path: str) -> bytes:
    return (Path(file_util.get_static_dir()) / path).read_bytes()


def test_the_browsers_part_of_streamlit_is_compressed(server: AppServer) -> None:
    shell = ask(server.url, "/").body.decode()
    files = re.findall(r'"\./(static/(?:js|css)/[^"]+)"', shell)
    assert len(files) > 20
    for path in files:
        zipped = [ask(server.url, f"/{path}", Accept_Encoding="gzip, br") for _ in range(2)]  # made, and kept
        assert [gzip.decompress(answer.body) for answer in zipped] == [_static(path)] * 2
        assert all(name in answer.headers for name in SECURITY_HEADERS for answer in zipped)
        assert {answer.headers["vary"] for answer in zipped} == {"accept-encoding"}
    assert sum(len(ask(server.url, f"/{path}", Accept_Encoding="gzip").body) for path in files) < 600_000


def test_whoever_asks_for_a_part_or_what_has_changed_gets_the_file_as_it_is(server: AppServer) -> None:
    path = "static/js/" + next(Path(file_util.get_static_dir(), "static", "js").glob("PageLink.*.js")).name
    assert ask(server.url, f"/{path}").body == _static(path)
    assert ask(server.url, f"/{path}", Accept_Encoding="gzip", Range="bytes=0-9").body == _static(path)[:10]
    zipped = ask(server.url, f"/{path}", Accept_Encoding="gzip")
    assert ask(server.url, f"/{path}", Accept_Encoding="gzip", If_None_Match=zipped.headers["etag"]).status == 304
    assert ask(server.url, f"/{path}", "HEAD", Accept_Encoding="gzip").body == b""
    for _ in range(2):
        assert ask(server.url, "/static/js/nothing.js", Accept_Encoding="gzip").status == 404
    other_name = ask(server.url, f"/{path.replace('js/', 'js/./')}", Accept_Encoding="gzip")
    assert "content-encoding" not in other_name.headers  # nobody fills the server by names of one file


@pytest.mark.parametrize("page", PAGES)
def test_a_page_asks_for_what_it_is_drawn_with_before_it_is_drawn(full: AppServer, page: str) -> None:
    named = re.findall(
        r"<(static/js/([A-Za-z]+)[^>]+)>; rel=modulepreload", ask(full.url, f"/heads/{page}").headers["link"]
    )
    assert {"PageLink", "Html", "BidiComponent"} <= {element for _, element in named}
    for path, _ in named:  # from the page's own address, which has no folder below the one that the app is mounted at
        assert ask(full.url, f"/heads/{path}").body == _static(path)


def test_no_component_code_travels_in_messages(server: AppServer) -> None:
    async def visit() -> dict[str, tuple[str, str, str]]:
        async with WebSession(server.url) as visitor:
            drawn = visitor.components
            return {name: (one.js_content, one.css_content, one.js_source_path) for name, one in drawn.items()}

    drawn = run(visit())
    assert {name: ("", "", name_served_file(name.removeprefix("mha_"))) for name in drawn} == drawn
    assert {"mha_explorer", "mha_sentence"} <= set(drawn)


# ---- Who may connect -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "user@127.0.0.1", "", "127.0.0.1:x"])
def test_a_foreign_name_of_this_machine_is_refused(server: AppServer, host: str) -> None:
    answer = ask(server.url, "/", Host=host)
    assert answer.status == 400
    assert b"MHA_VIZ_HOSTS" in answer.body or not host
    assert opened(server, Host=host) == 403


def test_names_of_the_loopback_address_and_probes_are_answered(server: AppServer) -> None:
    port = server.url.rsplit(":", 1)[1]
    for host in ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
        assert ask(server.url, "/", Host=host).status == 200
    assert ask(server.url, "/_stcore/health", Host="10.1.2.3").body == b"ok"


def test_hosts_that_the_owner_names_are_answered(full: AppServer) -> None:
    assert ask(full.url, "/heads/about", Host="heads.example.org").status == 200
    assert ask(full.url, "/heads/about", Host="localhost").status == 400


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", "http://127.0.0.1:1", "http://localhost:8501", "https://0.0.0.0"]
)
def test_a_page_of_another_origin_cannot_open_the_socket(server: AppServer, origin: str) -> None:
    assert opened(server, Origin=origin) == 403


def test_the_own_page_and_programs_can(server: AppServer) -> None:
    assert opened(server, Origin=server.url) == opened(server) == 101


def opened(server: AppServer, path: str = "/_stcore/stream", **headers: str) -> int:
    """The status with which the server answers the opening of a WebSocket, which is then closed."""
    connection, status = upgrade(server, path, **headers)
    connection.close()
    return status


def upgrade(server: AppServer, path: str = "/_stcore/stream", **headers: str) -> tuple[http.client.HTTPConnection, int]:
    """A connection that requested to become a WebSocket, and the answer's status."""
    key = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    key |= {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=PATIENCE)
    connection.request("GET", path, headers=key | {name.replace("_", "-"): value for name, value in headers.items()})
    return connection, connection.getresponse().status


# ---- Limits on visitors ----------------------------------------------------------------------------------------------


def test_over_capacity_a_page_says_so_and_tries_again(full: AppServer) -> None:
    async def fill() -> None:
        socket = f"ws{full.url.removeprefix('http')}/heads/_stcore/stream"
        async with connect(socket, proxy=None), connect(socket, proxy=None):
            answer = await asyncio.to_thread(ask, full.url, "/heads/about?text=The+cat")
            assert answer.status == 503
            assert answer.headers["retry-after"] == "10"
            assert answer.headers["cache-control"] == "no-store"
            assert b'<meta http-equiv="refresh" content="10">' in answer.body
            assert b"allows 2 open tabs" in answer.body
            assert b"<script" not in answer.body
            assert all(name in answer.headers for name in SECURITY_HEADERS)
            assert ask(full.url, "/heads/_stcore/health").status == 200
            with pytest.raises(InvalidStatus, match="503"):
                await connect(socket, proxy=None)

    run(fill())
    until(lambda: opened(full, path="/heads/_stcore/stream") == 101)


def test_a_broken_connection_finds_its_place_again_when_all_are_taken(full: AppServer) -> None:
    async def come_back() -> str:
        url = f"{full.url}/heads"
        async with WebSession(url, "about") as first:
            name, cookie = first.id, first.xsrf
        socket = f"ws{url.removeprefix('http')}/_stcore/stream"
        async with connect(socket, proxy=None), connect(socket, proxy=None):
            again = await connect(socket, proxy=None, subprotocols=["streamlit", cookie, name])  # type: ignore[list-item]
            await again.close()
        return name

    assert run(come_back())


def test_a_tab_that_is_here_opens_no_second_connection_when_all_places_are_taken(full: AppServer) -> None:
    async def once_more() -> None:
        url = f"{full.url}/heads"
        socket = f"ws{url.removeprefix('http')}/_stcore/stream"
        async with WebSession(url, "about") as first, connect(socket, proxy=None):
            names = ["streamlit", first.xsrf, first.id]
            with pytest.raises(InvalidStatus, match="503"):
                await connect(socket, proxy=None, subprotocols=names)  # type: ignore[arg-type]

    run(once_more())
    until(lambda: opened(full, path="/heads/_stcore/stream") == 101)


def test_a_tab_that_finds_no_place_is_told_to_load_the_page_that_says_so(full: AppServer) -> None:
    """Its page was fetched while there was one, and would stay empty."""

    async def fill() -> None:
        socket = f"ws{full.url.removeprefix('http')}/heads/_stcore/stream"
        async with connect(socket, proxy=None), connect(socket, proxy=None):
            page = await connect(socket, proxy=None, origin=Origin(full.url), subprotocols=[Subprotocol("streamlit")])
            message = ForwardMsg.FromString(bytes(await page.recv()))
            assert (message.WhichOneof("type"), message.auth_redirect.url) == ("auth_redirect", "")
            await page.wait_closed()
            assert page.close_code == 1013

    run(fill())
    until(lambda: opened(full, path="/heads/_stcore/stream") == 101)


def test_a_proxy_that_the_owner_names_tells_addresses(full: AppServer) -> None:
    path, visitor = "/heads/_stcore/stream", {"X_Forwarded_For": "10.0.0.1"}
    held, status = upgrade(full, path=path, **visitor)
    assert status == 101
    assert opened(full, path=path, **visitor) == 503
    assert b"one network address" in ask(full.url, "/heads/about", **visitor).body
    assert opened(full, path=path, X_Forwarded_For="10.0.0.2") == 101
    held.close()
    until(lambda: opened(full, path=path) == 101)


def test_an_address_has_its_share() -> None:
    session_limit = SessionLimit(ServerSettings(max_sessions=5, max_sessions_per_address=2))
    session_limit.enter("10.0.0.1")
    assert session_limit.find_refusal("10.0.0.1") == ""
    session_limit.enter("10.0.0.1")
    assert "2 open tabs from one network address" in session_limit.find_refusal("10.0.0.1")
    assert session_limit.find_refusal("10.0.0.2") == ""
    for _ in range(3):
        assert session_limit.find_refusal("127.0.0.1") == "", "there may be a proxy"
        session_limit.enter("127.0.0.1")
    assert "5 open tabs at a time" in session_limit.find_refusal("10.0.0.2")
    session_limit.leave("10.0.0.1")
    assert (session_limit.find_refusal("10.0.0.2"), session_limit.open_count) == ("", 4)


_ACTION = AllowedMessage("rerun_script", BackMsg(rerun_script=ClientState()))
_POLL = AllowedMessage("rerun_script", BackMsg(rerun_script=ClientState(is_auto_rerun=True)))
_ACTS: Message = {"type": "websocket.receive", "bytes": _ACTION.message.SerializeToString()}
_ENDS: Message = {"type": "websocket.send", "bytes": ForwardMsg(script_finished=0).SerializeToString()}
_AGAIN: Message = {"type": "websocket.send", "bytes": ForwardMsg(script_finished=2).SerializeToString()}


class Visits:
    """Visitors of a server without a network, at a time that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(waits.time, "monotonic", lambda: self.now)
        self.limit = SessionLimit(ServerSettings())
        self.waits = self.limit.waits

    def act(self, tab: object, seconds: float, visitor: str = "") -> None:
        """Act in a tab and wait for the answer."""
        self.act_together([tab], seconds, visitor=visitor)

    def act_together(self, tabs: Sequence[object], seconds: float, model: str = "", visitor: str = "") -> None:
        """Act in tabs of as many visitors, or of one, and wait for the answers."""
        action = ClientState(query_string=f"model={model}" if model else "")
        for tab in tabs:
            received = AllowedMessage("rerun_script", BackMsg(rerun_script=action))
            self.waits.note_received(tab, received, visitor or f"visitor {tab}")
        self.now += seconds
        for tab in tabs:
            self.waits.note_sent(tab, _ENDS)

    def come(self, *tabs: object, visitor: str = "") -> None:
        """Open tabs: their first action says nothing."""
        for tab in tabs:
            self.act(tab, 0.0, visitor)

    def find_refusal(self) -> str:
        return self.limit.find_refusal("10.0.0.1")


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Visits:
    return Visits(monkeypatch)


def test_nobody_new_is_let_in_while_three_visitors_wait(visits: Visits) -> None:
    """Each visitor counts once, by the median of their waits; half a minute later all is forgotten."""
    visits.come(*range(7))
    for _ in range(3):
        for tab in range(4):
            visits.act(tab, 0.01)
    for tab in (4, 5):
        for _ in range(4):
            visits.act(tab, 2.5)
    assert (visits.waits.p95, visits.find_refusal()) == (2.5, "")  # two visitors may be slow by their own doing
    visits.act(6, 2.5)
    assert "wait more than 2 seconds" in visits.find_refusal()
    visits.act(6, 0.01)
    visits.act(6, 0.01)
    assert visits.find_refusal() == ""
    visits.now += waits.RECENT_S + 1
    assert visits.waits.p95 == 0
    numbers = {name: stat.value for name, (stat,) in visits.waits.get_stats().items()}
    assert (numbers[waits.ACTIONS], numbers[waits.REFUSALS], numbers[waits.WAIT]) == (30, 0, 0)


def test_what_has_not_ended_counts_from_its_latest_action(visits: Visits) -> None:
    visits.come(*range(30))
    for tab in range(20):
        visits.act(tab, 0.0)
    for tab in range(20, 30):
        visits.waits.note_received(tab, _ACTION, f"visitor {tab}")
    visits.now += 2.4
    assert "wait more than 2 seconds" in visits.find_refusal()
    for tab in range(20, 30):
        visits.waits.note_received(tab, _ACTION, f"visitor {tab}")  # acts again, which ends the run before
        visits.waits.note_sent(tab, _AGAIN)
    assert visits.find_refusal() == ""
    visits.now += 2.4
    for tab in range(20, 30):
        visits.waits.note_received(tab, _POLL, f"visitor {tab}")  # a timer's, which nobody asked for
    assert "wait more than 2 seconds" in visits.find_refusal()


def test_one_visitor_shuts_the_door_neither_with_tabs_nor_with_long_texts(visits: Visits) -> None:
    visits.come(*range(40), visitor="one")
    visits.come(*range(100, 103))
    for _ in range(3):
        for tab in range(100, 103):
            visits.act(tab, 0.0)
        for tab in range(40):
            visits.act(tab, 5.0 / 40, "one")
        visits.act_together(range(40), 5.0, visitor="one")
    assert visits.find_refusal() == ""


def test_the_first_action_of_a_tab_and_of_a_model_does_not_count(visits: Visits) -> None:
    """They wait for files and libraries: a class that arrives at a cold server is let in."""
    tabs = range(30)
    visits.act_together(tabs, 3.0)
    assert visits.find_refusal() == ""
    visits.act_together(tabs, 3.0, "toy")
    assert visits.find_refusal() == ""
    visits.act_together(tabs, 3.0, "toy")
    assert "wait more than 2 seconds" in visits.find_refusal()
    for tab in tabs:
        visits.waits.forget(tab)
    visits.now += waits.RECENT_S + 1
    visits.act_together(tabs, 0.0)  # everybody had left, and models with them
    visits.act_together(tabs, 3.0, "toy")
    assert visits.find_refusal() == ""


def test_a_socket_that_the_app_ends_leaves_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app ends a WebSocket without asking for another message, for example after one that it cannot read."""
    session_limit, now = SessionLimit(ServerSettings()), 100.0
    monkeypatch.setattr(waits.time, "monotonic", lambda: now)

    async def ends_it(scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["type"] == "websocket.receive"

    async def visit(number: int) -> None:
        scope = {"type": "websocket", "path": "/_stcore/stream", "headers": [], "client": (f"10.0.0.{number}", 1)}
        await Gate(ends_it, session_limit)(scope, _message(_ACTS), _nothing)

    for number in range(20):
        run(visit(number))
    now = 160.0
    assert (session_limit.waits.actions, session_limit.waits.p95, session_limit.open_count) == (20, 0, 0)


def test_tabs_that_read_nothing_keep_nobody_out(visits: Visits) -> None:
    """Count one of the unfinished waits of a visitor; and what the server could not send is no wait for it."""
    visits.come(*range(60), visitor="one")
    visits.come(*range(100, 119))
    for tab in range(60):
        visits.waits.note_received(tab, _ACTION, "one")
    for tab in range(100, 119):
        visits.act(tab, 0.0)
    visits.now += 3
    assert (visits.waits.p95, visits.find_refusal()) == (0, "")

    async def blocks(_: Message) -> None:
        visits.now += 3

    async def reads_late() -> None:
        tab = _Tab(_message(_ACTS), blocks, visits.waits, "10.0.0.1")
        await tab.receive()
        await tab.send({"type": "websocket.send", "bytes": b""})
        await tab.send(_ENDS)

    for _ in range(3):
        run(reads_late())
    assert (visits.waits.p95, visits.find_refusal()) == (0, "")


def test_whoever_is_in_may_reload_while_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """By cookie, or by address without one; a second time only after leaving again. Who is told to wait counts once."""
    session_limit, now = SessionLimit(ServerSettings()), 100.0
    monkeypatch.setattr(waits.time, "monotonic", lambda: now)
    monkeypatch.setattr(limit_module, "_is_resuming", lambda _: False)
    gate = Gate(_served, session_limit)
    mine, others = f"{XSRF}=2|01020304|aabbccdd|1", f"{XSRF}=2|01020304|aabbccde|1"
    masked_anew = f"{XSRF}=2|02020304|a9bbccdd|1"  # of the same secret
    assert [asked(gate, "websocket", cookie=mine), asked(gate, "websocket", "10.0.0.9")] == [200, 200]
    for tab in range(20):
        for end in (_ENDS, _AGAIN):  # the second time, no end comes
            session_limit.waits.note_received(tab, _ACTION, f"10.1.0.{tab}")
            session_limit.waits.note_sent(tab, end)
    now = 110.0
    assert [asked(gate, cookie=masked_anew), asked(gate, address="10.0.0.9")] == [200, 200]
    assert [asked(gate, cookie=others), asked(gate), asked(gate, cookie=others)] == [503, 503, 503]
    assert asked(gate, "websocket", cookie=others) == 1013
    assert session_limit.waits.refusals == 2
    assert [asked(gate, "websocket", cookie=masked_anew), asked(gate, "websocket", "10.0.0.9")] == [200, 200]
    now = 171.0
    assert [asked(gate, cookie=mine), asked(gate, address="10.0.0.9")] == [503, 503]
    assert session_limit.waits.refusals == 4


def test_whoever_has_a_place_may_reload_when_all_are_taken() -> None:
    session_limit, mine = SessionLimit(ServerSettings(max_sessions=1)), f"{XSRF}=2|01020304|aabbccdd|1"
    gate = Gate(_served, session_limit)
    pages: list[int] = []

    async def reloads(scope: Scope, receive: Receive, send: Send) -> None:
        pages.extend([await _asked(gate, cookie=mine), await _asked(gate, address="10.0.0.2")])
        await _served(scope, receive, send)

    run(_asked(Gate(reloads, session_limit), "websocket", cookie=mine))
    assert (pages, session_limit.waits.refusals) == ([200, 503], 1)


def asked(gate: Gate, kind: str = "http", address: str = "10.0.0.1", cookie: str = "") -> int:
    """The status of a page, or the code with which a WebSocket is closed; 200 for one that was open."""
    return run(_asked(gate, kind, address, cookie))


async def _asked(gate: Gate, kind: str = "http", address: str = "10.0.0.1", cookie: str = "") -> int:
    sent: list[Message] = []
    scope: dict[str, Any] = {
        "type": kind,
        "method": "GET",
        "path": "/_stcore/stream" if kind == "websocket" else "/about",
    }
    scope |= {"headers": [(b"cookie", cookie.encode())] if cookie else [], "client": (address, 1)}

    async def send(message: Message) -> None:
        sent.append(message)

    await gate(scope, _message(_ACTS), send)
    return int(sent[0].get("status") or sent[0].get("code") or 0)


async def _served(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "answer", "status": 200})


def test_a_refused_websocket_is_counted_and_the_page_that_it_leads_to_is_not(full: AppServer) -> None:
    stream, before = "/heads/_stcore/stream", _metric(full, "mha_viz_refusals_total")
    visitor = {"X_Forwarded_For": "10.2.0.1"}
    held, status = upgrade(full, path=stream, **visitor)
    assert status == 101
    for _ in range(3):
        assert opened(full, path=stream, **visitor) == ask(full.url, "/heads/about", **visitor).status == 503
    assert _metric(full, "mha_viz_refusals_total") == before + 1
    held.close()
    until(lambda: opened(full, path=stream) == 101)


def _message(message: Message) -> Receive:
    async def received() -> Message:
        return message

    return received


async def _nothing(_: Message) -> None:
    pass


@pytest.mark.parametrize("last", ["text", bytes(2_100_000)])
def test_messages_that_end_the_connection_keep_nobody_out(full: AppServer, last: bytes | str) -> None:
    """One of a kind that Streamlit has not, and a long one: each after an action, from 20 addresses."""
    stream, action = "/heads/_stcore/stream", BackMsg(rerun_script=ClientState()).SerializeToString()

    async def visit(number: int) -> None:
        address = {"X-Forwarded-For": f"10.1.0.{number}"}
        async with connect(f"ws{full.url.removeprefix('http')}{stream}", proxy=None, additional_headers=address) as tab:
            await tab.send(action)
            with suppress(ConnectionClosed):
                await tab.send(last)
            await tab.wait_closed()

    for number in range(20):
        run(visit(number))
        until(lambda: opened(full, path=stream, X_Forwarded_For="10.1.1.1") == 101)
    assert _metric(full, "mha_viz_wait_p95_ms") == 0  # fewer than 20 waits
    assert opened(full, path=stream, X_Forwarded_For="10.1.1.2") == 101
    until(lambda: opened(full, path=stream) == 101)


def _metric(server: AppServer, name: str) -> int:
    metrics = ask(server.url, "/heads/_stcore/metrics").body.decode()
    return int(re.search(rf"^{name} (\d+)$", metrics, re.MULTILINE)[1])  # type: ignore[index]


def test_an_owner_who_asks_gets_numbers(full: AppServer) -> None:
    def actions() -> int:
        metrics = ask(full.url, "/heads/_stcore/metrics").body.decode()
        assert {"mha_viz_refusals_total", "mha_viz_reader_starts_total", "mha_viz_wait_p95_ms"} <= {*metrics.split()}
        return _metric(full, "mha_viz_actions_total")

    async def visit() -> None:
        async with WebSession(f"{full.url}/heads", "about"):
            pass

    before = actions()
    run(visit())
    until(lambda: actions() == before + 1)
    until(lambda: opened(full, path="/heads/_stcore/stream") == 101)


def test_pages_that_are_fetched_take_no_place(full: AppServer) -> None:
    """Two places, and one for each address: whoever only fetches pages, a crawler for example, keeps nobody out."""
    fetched = {ask(full.url, "/heads/about", X_Forwarded_For="10.0.0.1").status for _ in range(20)}
    assert fetched == {200}
    bystander = {"X_Forwarded_For": "10.0.0.2"}
    assert ask(full.url, "/heads/about", **bystander).status == 200
    assert opened(full, path="/heads/_stcore/stream", **bystander) == 101
    until(lambda: opened(full, path="/heads/_stcore/stream") == 101)


@pytest.mark.slow
def test_a_bystander_is_served_at_once_beside_a_thousand_requests(server: AppServer) -> None:
    async def flood(count: int) -> None:
        async def fetch() -> None:
            for _ in range(count // 10):
                assert (await asyncio.to_thread(ask, server.url, "/about")).status == 200
                await asyncio.sleep(0.05)

        await asyncio.gather(*(fetch() for _ in range(10)))

    async def visit() -> float:
        began = time.monotonic()
        assert (await asyncio.to_thread(ask, server.url, "/about")).status == 200
        async with WebSession(server.url, "about"):
            return time.monotonic() - began

    async def both() -> list[float]:
        flooding = asyncio.create_task(flood(1000))
        seconds = []
        while not flooding.done():
            seconds.append(await visit())
        await flooding
        return sorted(seconds)

    seconds = run(both())
    assert len(seconds) >= 20
    assert seconds[int(0.95 * len(seconds))] <= 1


@pytest.mark.parametrize(
    ("given", "counted"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::1", "::1"),
        ("testclient", "testclient"),
    ],
)
def test_one_network_of_long_addresses_is_one_address(given: str, counted: str) -> None:
    assert get_client_address({"client": (given, 1)}) == counted


def test_a_websocket_without_a_message_is_closed_and_one_that_spoke_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    session_limit = SessionLimit(ServerSettings())
    assert limit_module.FIRST_MESSAGE_S == 5, "the seconds that docs/hosting.md names"
    monkeypatch.setattr(limit_module, "FIRST_MESSAGE_S", 0.01)
    sent: dict[str, list[Message]] = {"1": [], "2": []}

    async def reads(_scope: Scope, receive: Receive, _send: Send) -> None:
        while (await receive())["type"] != "websocket.disconnect":
            pass

    async def visit(number: str, listens: asyncio.Event, *messages: bytes) -> None:
        coming = iter(messages)

        async def receive() -> Message:
            for message in coming:
                return {"type": "websocket.receive", "bytes": message}
            listens.set()
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Message) -> None:
            sent[number].append(message)

        scope = {"type": "websocket", "path": "/_stcore/stream", "headers": [], "client": (f"10.0.0.{number}", 1)}
        await Gate(reads, session_limit)(scope, receive, send)

    async def visits() -> None:
        listens = asyncio.Event()
        spoke = asyncio.create_task(visit("1", listens, _ACTS["bytes"]))
        await listens.wait()
        await visit("2", asyncio.Event())  # silent from a later moment on
        assert (spoke.done(), session_limit.open_count) == (False, 1)
        spoke.cancel()

    run(visits())
    assert sent == {"1": [], "2": [{"type": "websocket.close", "code": 1008}]}


def test_a_server_closes_a_websocket_without_a_message_which_then_takes_no_place(full: AppServer) -> None:
    async def visit() -> None:
        address = f"{full.url}/heads"
        async with WebSession(address, "about") as spoke:
            async with connect(f"ws{address.removeprefix('http')}/_stcore/stream", proxy=None) as silent:
                await silent.wait_closed()
                assert silent.close_code == 1008
            await asyncio.to_thread(until, lambda: opened(full, path="/heads/_stcore/stream") == 101)
            await spoke.act()

    run(visit())
    until(lambda: opened(full, path="/heads/_stcore/stream") == 101)


# ---- Uploads ---------------------------------------------------------------------------------------------------------


def put(url: str, visitor: WebSession, file: str, size: int, cookie: str = "") -> Answer:
    head = b'--b\r\nContent-Disposition: form-data; name="f"; filename="f.txt"\r\n\r\n'
    token = cookie or visitor.xsrf
    sent = {"Cookie": f"{XSRF}={token}", "X_Xsrftoken": token, "Content_Type": "multipart/form-data; boundary=b"}
    path = f"/_stcore/upload_file/{visitor.id}/{file}"
    return ask(url, path, "PUT", head + b"a" * size + b"\r\n--b--\r\n", **sent)


def uploaded(server: AppServer) -> int:
    """The bytes of uploaded files, as the metrics tell them."""
    held = re.search(r"UploadedFileManager[^\n]*\} (\d+)", ask(server.url, "/_stcore/metrics").body.decode())
    return int(held[1]) if held else 0


def test_uploads_are_bounded_and_only_their_owner_replaces_them(forgetful: AppServer) -> None:
    async def upload(server: AppServer) -> None:
        async with WebSession(server.url, "about") as one, WebSession(server.url, "about") as other:
            for number in range(3):
                answer = await asyncio.to_thread(put, server.url, one, f"file{number}", 7_000_000)
                assert answer.status == 204
            # The metrics may be some seconds old, and a few bytes may be of a visitor who has just left.
            await asyncio.to_thread(until, lambda: 2 * 7_000_000 <= uploaded(server) < 3 * 7_000_000, every=0.2)
            assert put(server.url, one, "file2", 10, cookie=other.xsrf).status == 403
            assert ask(server.url, f"/_stcore/upload_file/{one.id}/file2", "DELETE", Cookie=f"{XSRF}={other.xsrf}",
                       X_Xsrftoken=other.xsrf).status == 403  # fmt: skip
            large = put(server.url, one, "large", 9_500_000)
            assert large.status == 413
            assert b"8 MB" in large.body
            assert put(server.url, other, "own", 10).status == 204

    run(upload(forgetful))


def test_an_upload_that_is_broken_off_leaves_nothing_in_the_log(forgetful: AppServer) -> None:
    async def upload(server: AppServer) -> None:
        async with WebSession(server.url, "about") as one:
            token = f"Cookie: {XSRF}={one.xsrf}\r\nX-Xsrftoken: {one.xsrf}\r\n"
            kind = "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 5000\r\n"
            host = server.url.removeprefix("http://")
            request = f"PUT /_stcore/upload_file/{one.id}/file HTTP/1.1\r\nHost: {host}\r\n{token}{kind}\r\n--b\r\n"
            with socket.create_connection((host.partition(":")[0], int(host.partition(":")[2]))) as broken:
                broken.sendall(request.encode())
                until(lambda: put(server.url, one, "second", 10).status == 429)  # the first one has begun
            until(lambda: put(server.url, one, "second", 10).status == 204)

    run(upload(forgetful))
    assert "ClientDisconnect" not in forgetful.log()
    assert forgetful.faults() == []


# ---- Resources that are freed ----------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted in /proc")
def test_two_hundred_closed_sessions_leave_no_descriptors_and_no_uploads(forgetful: AppServer) -> None:
    async def crowd() -> None:
        async with WebSession(forgetful.url, "about") as one:
            assert (await asyncio.to_thread(put, forgetful.url, one, "file", 10)).status == 204
            await asyncio.to_thread(until, lambda: uploaded(forgetful) > 0, every=0.2)
        socket = f"ws{forgetful.url.removeprefix('http')}/_stcore/stream"
        for _ in range(4):
            tabs = await asyncio.gather(*(connect(socket, proxy=None) for _ in range(50)))
            await asyncio.gather(*(tab.close() for tab in tabs))

    before = forgetful.descriptors()
    run(crowd())
    until(lambda: forgetful.descriptors() <= before + 20 and not uploaded(forgetful), every=0.2)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the limit is that of Linux")
def test_the_limit_of_descriptors_is_raised_as_far_as_the_system_lets_it(tmp_path: Path) -> None:
    def raised() -> int:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        sweeping.raise_descriptor_limit()
        most = 1 << 20 if hard == resource.RLIM_INFINITY else min(hard, 1 << 20)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, hard)
        assert most > 64
        return 0

    server = Copy(raised, tmp_path / "log")
    assert server.wait() == 0, server.log.read_text()


class _Session:
    def __init__(self, name: int) -> None:
        self.id, self.ended = str(name), Counter[str]()
        self.session = self

    def shutdown(self) -> None:
        self.ended["shutdown"] += 1


def test_sessions_that_nobody_goes_on_with_are_shut_down_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    waiting, made = WaitingSessions(45), [_Session(number) for number in range(MAX_WAITING + 3)]
    for session in made:
        waiting.save(session)  # type: ignore[arg-type]
    assert [session.ended.total() for session in made[:4]] == [1, 1, 1, 0]
    assert waiting.get("3") is made[3]
    waiting.delete("3")  # somebody continues it
    now = 46.0
    assert waiting.get("4") is None
    waiting.end_expired()
    assert waiting.list() == []
    assert [session.ended.total() for session in made] == [1, 1, 1, 0] + [1] * (MAX_WAITING - 1)


class _Rounds:
    """Stands in for the downloads: counts the rounds of the sweeper."""

    def __init__(self) -> None:
        self._count = 0

    def remove_orphaned_files(self) -> None:
        self._count += 1

    async def three(self) -> None:
        end = self._count + 3
        while self._count < end:
            await asyncio.sleep(0.01)


def test_when_all_have_gone_caches_are_given_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    emptied: list[str] = []
    cache = types.ModuleType("mha_viz.app.service.caches")
    cache.empty_caches = lambda: emptied.append("idle")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mha_viz.app.service.caches", cache)
    monkeypatch.setattr(sweeping, "SWEEP_INTERVAL_S", 0.01)
    monkeypatch.setattr(sweeping, "IDLE_S", 0.0)

    async def an_evening() -> list[int]:
        session_limit, rounds, counts = SessionLimit(ServerSettings()), _Rounds(), []
        sweeper = asyncio.create_task(sweep(session_limit, WaitingSessions(45), rounds))  # type: ignore[arg-type]
        for _ in range(2):
            await rounds.three()
            counts.append(len(emptied))
            session_limit.enter("10.0.0.1")
            await rounds.three()
            counts.append(len(emptied))
            session_limit.leave("10.0.0.1")
        await rounds.three()
        sweeper.cancel()
        return [*counts, len(emptied)]

    try:
        assert run(an_evening()) == [0, 0, 1, 1, 2]
    finally:
        gc.freeze()  # which conftest.py did, and the sweeper undid


# ---- Settings and modes ----------------------------------------------------------------------------------------------


class _Served:
    """Stands in for the app."""

    config: Mapping[str, object]
    opens_browser = False

    def opening(self, opens_browser: bool) -> _Served:
        self.opens_browser = opens_browser
        return self

    def run(self, config: Mapping[str, object]) -> None:
        self.config = config


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Served]:
    """What a start in this process would serve. Afterwards the process is as before: a server looks into folders of
    models in a child process, and later tests would do so too."""
    app = _Served()
    monkeypatch.setattr(start, "create_app", lambda _, opens_browser: app.opening(opens_browser))
    monkeypatch.setattr(start, "raise_descriptor_limit", lambda: None)
    monkeypatch.setattr(streamlit_parts, "install_parts", lambda: None)
    monkeypatch.setattr(log, "limit_records", lambda _: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["serving"])
    yield app
    folder.set_inspector(folder.inspect_folder)


@pytest.mark.parametrize(
    ("host", "inside"),
    [
        *((host, True) for host in ("127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]", "::ffff:127.0.0.1")),
        *((host, False) for host in ("0.0.0.0", "::", "", "10.0.0.1", "localhost.evil.example", "::ffff:10.0.0.1")),
    ],
)
def test_loopback_is_told_from_the_network(host: str, inside: bool) -> None:
    assert is_loopback(host) is inside


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MHA_VIZ_FRAMES", "https://a.example; script-src *"),
        ("MHA_VIZ_FRAMES", "a.example"),
        ("MHA_VIZ_HOSTS", "http://a.example"),
        ("MHA_VIZ_HOSTS", "[a.example]"),
        ("MHA_VIZ_FRAMES", "[https://a.example]"),
        ("MHA_VIZ_PROXIES", "proxy"),
        ("MHA_VIZ_SESSIONS", "0"),
        ("MHA_VIZ_SESSIONS", "100001"),
        ("MHA_VIZ_SESSIONS", "0000001999999"),
        ("MHA_VIZ_SESSIONS", "9" * 5000),
        ("MHA_VIZ_SESSIONS_PER_ADDRESS", "many"),
        ("MHA_VIZ_METRICS", "yes"),
    ],
)
def test_a_misspelled_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingError, match=name):
        from_environment({name: value})


def test_settings_are_read() -> None:
    assert from_environment({}) == ServerSettings()
    given = {"MHA_VIZ_HOSTS": "[::1], *.example.org", "MHA_VIZ_PROXIES": "10.0.0.0/8 ::1", "MHA_VIZ_SESSIONS": "40"}
    assert from_environment(given) == ServerSettings(
        hosts=("::1", "*.example.org"), proxies=("10.0.0.0/8", "::1"), max_sessions=40
    )


@pytest.mark.parametrize(
    ("arguments", "environment", "access"),
    [
        (["--server.address", "127.0.0.1"], {}, "None ['localhost', '127.0.0.1', '::1', '127.0.0.1']"),
        (["--server.address", "0.0.0.0"], {}, "here None"),
        (["--server.address", "127.0.0.1", "--server.address", "::"], {}, "here None"),
        ([], {"STREAMLIT_SERVER_ADDRESS": "0.0.0.0"}, "here None"),
        (["--server.address", "0.0.0.0"], {"MHA_VIZ_MODELS": "minilm"}, "None None"),
        (["--server.address", "0.0.0.0"], {"MHA_VIZ_ACCESS": "open"}, "open None"),
        (["--server.address", "0.0.0.0"], {"MHA_VIZ_MODELS": " "}, "here None"),
        (["--server.address", "0.0.0.0"], {"MHA_VIZ_ACCESS": " "}, "here None"),
        (["--server.address", "0.0.0.0"], {"MHA_VIZ_HOSTS": "a.example"}, "here ['a.example']"),
        ([], {"MHA_VIZ_HOSTS": "a.example"}, "here ['a.example']"),
        ([], {"MHA_VIZ_HOSTS": "a.example", "MHA_VIZ_MODELS": "minilm"}, "None ['a.example']"),
        ([], {"MHA_VIZ_PROXIES": "127.0.0.1"}, "here ['localhost', '127.0.0.1', '::1', '127.0.0.1']"),
        ([], {"MHA_VIZ_HOSTS": "a.example", "MHA_VIZ_ACCESS": "open"}, "open ['a.example']"),
    ],
)
def test_other_machines_get_what_is_here_unless_the_owner_says_so(
    arguments: list[str],
    environment: dict[str, str],
    access: str,
    served: _Served,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    theirs = ("MHA_VIZ_ACCESS", "MHA_VIZ_MODELS", "MHA_VIZ_HOSTS", "MHA_VIZ_PROXIES", "STREAMLIT_SERVER_ADDRESS")
    for name in theirs:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    start.main(arguments, standalone_mode=False)
    assert f"{os.environ.get('MHA_VIZ_ACCESS')} {served.config.get('server.allowedHosts')}" == access
    assert ("--open" in capsys.readouterr().out) is access.startswith("here")
    assert os.environ["FORWARDED_ALLOW_IPS"] == environment.get("MHA_VIZ_PROXIES", "")


def test_an_option_that_streamlit_does_not_have_and_a_port_that_no_machine_has_are_said(
    capsys: pytest.CaptureFixture[str], served: _Served
) -> None:
    with pytest.raises(SystemExit) as ended:
        start.main(["--server.nonsense", "1"])
    assert ended.value.code == 2
    assert "--server.nonsense" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        start.main(["--server.port", "70000"])
    assert (ended.value.code, capsys.readouterr().err) == (
        2,
        "mha-viz: The port is 70000. Give a number from 1 to 65535.\n",
    )


def test_a_text_ends_the_connection_without_a_traceback(server: AppServer) -> None:
    async def ends() -> int | None:
        async with connect(f"ws{server.url.removeprefix('http')}/_stcore/stream", proxy=None) as socket:
            await socket.send("text")
            await asyncio.wait_for(socket.wait_closed(), PATIENCE)
            return socket.close_code

    assert run(ends()) == 1003
    assert "Traceback" not in server.log()


# ---- The browser of a desktop ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_headless", [True, False])
def test_to_streamlit_the_server_is_always_headless(is_headless: bool, served: _Served) -> None:
    """Else a message may make it write files for programming assistants into the app's folder."""
    start.main(["--server.headless", str(is_headless).lower()], standalone_mode=False)
    assert served.config["server.headless"] is True
    assert served.opens_browser is not is_headless


@pytest.mark.parametrize("base", ["", "heads"])
def test_a_browser_opens_on_a_desktop(base: str, tmp_path: Path) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f"#!/bin/sh\necho $1 > {opened}\n")
    browser.chmod(0o755)
    options = ["--server.headless", "false", "--browser.serverAddress", "localhost"]
    options += ["--server.baseUrlPath", base] if base else []
    with AppServer(tmp_path, *options, base=base, BROWSER=str(browser)) as desktop:
        until(opened.exists)
        port = desktop.url.rpartition(":")[2]
        until(lambda: opened.read_text() == f"http://localhost:{port}/{base}\n")


# ---- In a browser ----------------------------------------------------------------------------------------------------


def test_what_the_policy_refuses_is_noticed(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer()
    visitor.page.goto(f"{visitor.url}/about")
    visitor.page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.__xss = 1";
          document.body.append(script);
        }"""
    )
    assert visitor.page.evaluate("window.__xss") is None
    assert any("script-src" in fault for fault in visitor.faults)
    visitor.faults.clear()


def test_the_full_page_tries_again_by_itself(full: AppServer, newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(full.url)
    taken = [upgrade(full, path="/heads/_stcore/stream")[0] for _ in range(2)]
    visitor.is_altered = True
    visitor.page.route("**/heads/about?*", _soon, times=1)
    visitor.page.goto(f"{full.url}/heads/about?text=The+cat+sat.")
    expect(visitor.page.get_by_role("heading")).to_have_text("This server is full")
    for connection in taken:
        connection.close()
    expect(visitor.page.get_by_role("heading", name="What the pictures show, and what they do not")).to_be_visible()
    assert visitor.address == {"text": "The cat sat."}


def _soon(route: Route) -> None:
    """The page would try again after ten seconds, which another test checks; this one does so after one."""
    answer = route.fetch()
    route.fulfill(response=answer, body=answer.text().replace('content="10"', 'content="1"'))


@pytest.mark.parametrize("sent", [0, 1, 2], ids=["nothing", "the headers", "half of it"])
def test_a_visitor_who_leaves_in_the_middle_of_a_file_does_not_cut_it_for_others(sent: int) -> None:
    """Streamlit stops sending a file when its visitor leaves; what it had sent must not be kept."""
    content, has_left = b"export{i as t};" * 9, True

    async def of_streamlit(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", str(len(content)).encode()), (b"etag", b'"1"')]
        parts = [
            {"type": "http.response.start", "status": 200, "headers": headers},
            {"type": "http.response.body", "body": content[:40], "more_body": True},
            {"type": "http.response.body", "body": content[40:]},
        ]
        for part in parts[:sent] if has_left else parts:
            await send(part)

    files = StreamlitFiles(of_streamlit)
    path = f"/{min(files._files)}"
    scope = {"type": "http", "method": "GET", "path": path, "root_path": "", "headers": [(b"accept-encoding", b"gzip")]}
    received: list[Any] = []

    async def keep(message: Any) -> None:
        received.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    run(files(scope, receive, keep))
    assert len(received) == sent
    has_left = False
    for _ in range(2):
        received.clear()
        run(files(scope, receive, keep))
        assert gzip.decompress(b"".join(message.get("body", b"") for message in received)) == content
