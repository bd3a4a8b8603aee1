"""Visit a real server without a browser: send and store what Streamlit's frontend does, over a WebSocket.

async with WebSession(server.url, "explore", text="The cat sat.") as visitor:
    seconds = await visitor.trigger("mha_sentence", "read", {"text": "The dog sat.", "pair": ""})
    visitor.exceptions, visitor.query, visitor.components["mha_explorer"].bytes
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http.cookies import SimpleCookie
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import parse_qsl, urlencode

from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.BidiComponent_pb2 import BidiComponent
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin, Subprotocol

from tests.waiting import PATIENCE

T = TypeVar("T")

XSRF = "_streamlit_xsrf"
EARLY = ForwardMsg.FINISHED_EARLY_FOR_RERUN
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
# The field of a widget's state, by the kind of its element. Other kinds are buttons or cannot be set.
FIELDS = {
    "text_input": "string_value",
    "text_area": "string_value",
    "selectbox": "string_value",
    "radio": "string_value",
    "plotly_chart": "string_value",
    "dataframe": "string_value",
    "tab_container": "string_value",
    "button_group": "string_array_value",
    "multiselect": "string_array_value",
    "slider": "double_array_value",
    "number_input": "double_value",
    "checkbox": "bool_value",
    "expandable": "bool_value",
    "popover": "bool_value",
}
TEXTS = {"markdown": "body", "html": "body", "text": "body", "heading": "body", "alert": "body", "code": "code_text"}


class Gone(ConnectionError):
    """The server closed the connection."""


@dataclass(slots=True)
class Element:
    """One element or container of the page.

    ``proto`` is its protobuf message, ``run`` the id of the script run that sent it.
    """

    kind: str
    proto: Any
    run: str
    fragment: str

    @property
    def id(self) -> str:
        """The widget's id; empty for other elements."""
        return str(getattr(self.proto, "id", ""))

    @property
    def key(self) -> str:
        """The widget's key in the script or, if it has none, its label."""
        key = self.id.split("-", 2)[-1]
        return str(getattr(self.proto, "label", key)) if key == "None" else key


def state(element: Element, value: Any) -> WidgetState:
    """Return a widget's state as the browser sends it.

    Options are given by their labels; for a select slider, as a list.
    """
    field = FIELDS[element.kind]
    if element.kind == "slider" and element.proto.options:
        field = "string_array_value"
    message = WidgetState(id=element.id)
    if field.endswith("_array_value"):
        getattr(message, field).data.extend(value)
    else:
        setattr(message, field, value)
    return message


@dataclass(slots=True)
class _AwaitedRun:
    """A requested run of a fragment (empty: of the whole page) or of another page (empty: of the same one)."""

    fragment: str
    page_hash: str
    end: asyncio.Future[None]
    begun: bool = False


class WebSession:
    """One tab. ``async with`` opens ``page`` with ``parameters`` and waits until the first run has ended.

    ``light``: do not store the payloads of components and charts, to save memory with many sessions. ``xsrf``: the
    cookie from an earlier visit; empty for a new browser. Actions return the seconds until their run has finished.
    Raises Gone if the server closes the connection, TimeoutError after ``patience`` seconds.
    """

    def __init__(
        self,
        url: str,
        page: str = "",
        *,
        light: bool = False,
        xsrf: str = "",
        patience: float = PATIENCE,
        **parameters: str,
    ) -> None:
        self.url, self.page, self.query_string = url.rstrip("/"), page, urlencode(parameters)
        self.light, self.xsrf, self.patience = light, xsrf, patience
        self.id = ""
        self.pages: dict[str, str] = {}  # name in the address, empty for the first page: script hash
        self.received = 0  # bytes
        self.finished = 0  # runs of the script
        self.opened = 0.0  # seconds of the first run
        self._hash = ""  # of the page's script
        self._elements: dict[tuple[int, ...], Element] = {}
        self._states: dict[str, WidgetState] = {}
        self._cache: dict[str, tuple[Delta, int]] = {}
        self._run, self._max_age = "", 2
        self._run_fragments: tuple[str, ...] = ()
        self._running = False  # including runs that will be restarted
        self._awaited: _AwaitedRun | None = None
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._timers: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        self.xsrf = self.xsrf or await self._fetch_cookie()
        self._socket: ClientConnection = await connect(
            f"ws{self.url.removeprefix('http')}/_stcore/stream",
            subprotocols=[Subprotocol(name) for name in ("streamlit", self.xsrf) if name],
            additional_headers={"Cookie": f"{XSRF}={self.xsrf}"} if self.xsrf else {},
            origin=Origin(self.url),
            max_size=None,
            ping_interval=None,
            open_timeout=self.patience,
            proxy=None,
        )
        self._reader = asyncio.create_task(self._read())
        try:
            self.opened = await self.act()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the tab."""
        self._stop(self._timers)
        self._reader.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await self._reader
        await self._socket.close()

    # ---- Elements of the page ---------------------------------------------------------------------------

    @property
    def elements(self) -> list[Element]:
        """The elements of the page, from the top."""
        return [self._elements[path] for path in sorted(self._elements)]

    @property
    def components(self) -> dict[str, BidiComponent]:
        """Components by name."""
        return {e.proto.component_name: e.proto for e in self.elements if e.kind == "bidi_component"}

    @property
    def widgets(self) -> dict[str, Element]:
        """The widgets of the page, by key."""
        return {e.key: e for e in self.elements if e.id and e.kind != "bidi_component"}

    @property
    def texts(self) -> list[str]:
        """Markdown, HTML and plain text of the page, from the top."""
        return [str(getattr(e.proto, TEXTS[e.kind])) for e in self.elements if e.kind in TEXTS]

    @property
    def exceptions(self) -> list[str]:
        """Streamlit's red boxes: type and message."""
        return [f"{e.proto.type}: {e.proto.message}" for e in self.elements if e.kind == "exception"]

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the URL; for a repeated one, the last value."""
        return dict(parse_qsl(self.query_string, keep_blank_values=True))

    def forget(self) -> None:
        """Forget the elements of the page and the states of widgets until the next run."""
        self._elements.clear()
        self._states.clear()

    # ---- User actions -----------------------------------------------------------------------------------

    async def trigger(self, component: str, event: str, value: object) -> float:
        """Trigger an event of a component, given by its name or, if a page has two of them, its key.

        Raises LookupError with the page's last texts if the component is missing.
        """
        drawn = [e for e in self.elements if e.kind == "bidi_component"]
        element = next((e for e in drawn if component in (e.proto.component_name, e.key)), None)
        if element is None:
            raise LookupError(f"{component} is not on the page {self.page!r}: {self.texts[-3:]}")
        sent = json.dumps([{"event": event, "value": value}])
        name = _make_trigger_id(element.id, "events")
        return await self.act(WidgetState(id=name, json_trigger_value=sent), fragment=element.fragment)

    async def set(self, key: str, value: Any) -> float:
        """Set a widget to a text, a number, one or several labels of options, or True or False."""
        element = self.widgets[key]
        self._states[element.id] = state(element, value)
        self._bind(element, value)
        return await self.act(fragment=element.fragment)

    async def press(self, key: str) -> float:
        """Press a button."""
        element = self.widgets[key]
        return await self.act(WidgetState(id=element.id, trigger_value=True), fragment=element.fragment)

    async def go(self, page: str, **parameters: str) -> float:
        """Open another page by its link, which keeps the URL's parameters, and add ``parameters``."""
        query = urlencode({**self.query, **parameters})
        return await self.act(page_hash=self.pages[page], query=query)

    async def visit(self, query: str) -> float:
        """Open another query string on this page, as Back and Forward do."""
        return await self.act(query=query, history=True)

    async def upload(self, key: str, name: str, content: bytes) -> float:
        """Put a file into an uploader."""
        element = self.widgets[key]
        message = BackMsg()
        message.file_urls_request.request_id = message.file_urls_request.session_id = self.id
        message.file_urls_request.file_names.append(name)
        urls = (await self._ask(self.id, message)).file_urls[0]
        boundary = "mha-viz-boundary"
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n\r\n'.encode()
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}", "X-Xsrftoken": self.xsrf}
        await self.http(urls.upload_url, "PUT", head + content + f"\r\n--{boundary}--\r\n".encode(), headers)
        sent = WidgetState(id=element.id)
        info = sent.file_uploader_state_value.uploaded_file_info.add(name=name, size=len(content), file_id=urls.file_id)
        info.file_urls.CopyFrom(urls)
        self._states[element.id] = sent
        return await self.act(fragment=element.fragment)

    async def download(self, key: str) -> bytes:
        """Return the file behind a download button.

        Raises RuntimeError if it cannot be created, HTTPError if it has been deleted.
        """
        return await self.http(await self.file_url(key))

    async def file_url(self, key: str) -> str:
        """Return the address of the file behind a download button.

        If the file is created on demand, create it now.
        """
        await self._wait_until_idle()
        button = self.widgets[key].proto
        if not button.deferred_file_id:
            return str(button.url)
        request = f"{button.deferred_file_id}-{time.monotonic_ns()}"
        message = BackMsg()
        message.backend_operation_request.request_id = request
        message.backend_operation_request.session_id = self.id
        message.backend_operation_request.deferred_file.file_id = button.deferred_file_id
        answer = await self._ask(request, message)
        if answer.error_msg:
            raise RuntimeError(answer.error_msg)
        return str(answer.deferred_file.url)

    async def act(
        self,
        *triggers: WidgetState,
        fragment: str = "",
        query: str | None = None,
        page_hash: str = "",
        history: bool = False,
    ) -> float:
        """Run the script as the browser does and wait for the end of the run; return its seconds.

        Wait first until automatic runs have ended, as a user waits until the page is still.
        """
        await self._wait_until_idle()
        if query is not None:
            self.query_string = query
        self._hash = page_hash or self._hash
        if page_hash:
            self._stop(self._timers)
            self._states.clear()
        end = asyncio.get_running_loop().create_future()
        self._awaited = _AwaitedRun(fragment, page_hash if page_hash in self.pages.values() else "", end)
        begin = time.perf_counter()
        await self._send(self._rerun(triggers, fragment, history=history))
        try:
            async with asyncio.timeout(self.patience):
                await end
        finally:
            self._awaited = None
        return time.perf_counter() - begin

    async def _wait_until_idle(self) -> None:
        async with asyncio.timeout(self.patience):
            while self._running and not self._reader.done():
                await asyncio.sleep(0.01)

    async def send(self, message: BackMsg | bytes) -> None:
        """Send any message without waiting. Raises Gone."""
        await self._send(message)

    async def http(
        self, path: str, method: str = "GET", body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Send an HTTP request outside the WebSocket, with the browser's cookie. Raises urllib.error.URLError."""
        cookie = {"Cookie": f"{XSRF}={self.xsrf}"} if self.xsrf else {}
        request = urllib.request.Request(
            f"{self.url}/{path.lstrip('/')}", data=body, method=method, headers={**cookie, **(headers or {})}
        )

        def fetch() -> bytes:
            with _DIRECT.open(request, timeout=self.patience) as response:
                content: bytes = response.read()
                return content

        return await asyncio.to_thread(fetch)

    # ---- Messages to the server -------------------------------------------------------------------------

    def rerun(self, *triggers: WidgetState, fragment: str = "") -> BackMsg:
        """Return the message that :meth:`act` sends, from which other messages can be derived."""
        return self._rerun(triggers, fragment)

    def _rerun(
        self, triggers: Iterable[WidgetState], fragment: str, auto: bool = False, history: bool = False
    ) -> BackMsg:
        message = BackMsg()
        client = message.rerun_script
        client.query_string, client.fragment_id = self.query_string, fragment
        client.page_script_hash = self._hash
        client.page_name = "" if self._hash else self.page
        client.is_auto_rerun, client.is_history_navigation = auto, history
        client.widget_states.widgets.extend([*self._states.values(), *triggers])
        client.cached_message_hashes.extend(self._cache)
        client.context_info.url, client.context_info.color_scheme = f"{self.url}/{self.page}", "light"
        client.context_info.timezone, client.context_info.locale = "Europe/London", "en-GB"
        return message

    async def _send(self, message: BackMsg | bytes) -> None:
        try:
            await self._socket.send(message if isinstance(message, bytes) else message.SerializeToString())
        except ConnectionClosed as error:
            raise Gone(str(error)) from error

    async def _ask(self, request: str, message: BackMsg) -> Any:
        answer = self._answers[request] = asyncio.get_running_loop().create_future()
        await self._send(message)
        try:
            async with asyncio.timeout(self.patience):
                return await answer
        finally:
            del self._answers[request]

    async def _fetch_cookie(self) -> str:
        """Send the browser's request before it connects, and return the cookie that the answer sets."""

        def fetch() -> str:
            with _DIRECT.open(f"{self.url}/_stcore/health", timeout=self.patience) as response:
                cookie = SimpleCookie(response.headers.get("Set-Cookie") or "").get(XSRF)
                return cookie.value if cookie else ""

        return await asyncio.to_thread(fetch)

    def _bind(self, element: Element, value: Any) -> None:
        """Write the value of a widget that is bound to the URL into the URL, as the frontend does."""
        name = getattr(element.proto, "query_param_key", "")
        if name:
            others = [(n, v) for n, v in parse_qsl(self.query_string, keep_blank_values=True) if n != name]
            values: Sequence[Any] = value if isinstance(value, list) else [value] if value != "" else []
            self.query_string = urlencode([*others, *((name, str(v)) for v in values)])

    # ---- Messages from the server -----------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            async for data in self._socket:
                self.received += len(data)
                if isinstance(data, bytes):
                    self._handle(ForwardMsg.FromString(data))
        except ConnectionClosed:
            pass
        self._stop(self._timers)
        self._fail(Gone("The server closed the connection."))

    def _handle(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind in ("delta", "ref_hash"):
            self._apply_delta(message)
        elif kind == "new_session":
            self._begin(message)
        elif kind == "script_finished":
            self._end(message)
        elif kind == "page_info_changed":
            self.query_string = message.page_info_changed.query_string
        elif kind == "navigation":
            self._navigate(message)
        elif kind == "auto_rerun":
            self._repeat(message.auto_rerun.fragment_id, message.auto_rerun.interval)
        elif kind == "stop_auto_rerun":
            self._stop(message.stop_auto_rerun.fragment_ids)
        elif kind == "file_urls_response":
            self._answer(message.file_urls_response.response_id, message.file_urls_response)
        elif kind == "backend_operation_response":
            self._answer(message.backend_operation_response.request_id, message.backend_operation_response)

    def _apply_delta(self, message: ForwardMsg) -> None:
        path = tuple(message.metadata.delta_path)
        if message.WhichOneof("type") == "ref_hash":
            delta = self._cache[message.ref_hash][0]
            self._cache[message.ref_hash] = (delta, self.finished)
        else:
            delta = self._strip_payload(message.delta) if self.light else message.delta
            if message.metadata.cacheable:
                self._cache[message.hash] = (delta, self.finished)
        content = delta.new_element if delta.WhichOneof("type") == "new_element" else delta.add_block
        if delta.WhichOneof("type") == "new_transient":
            return
        kind = content.WhichOneof("type") or ""
        element = Element(kind, getattr(content, kind) if kind else content, self._run, delta.fragment_id)
        if getattr(element.proto, "set_value", False):  # set by the script: the state sent earlier is invalid
            self._states.pop(element.id, None)
        self._elements[path] = element

    def _strip_payload(self, delta: Delta) -> Delta:
        """Return a message without the payload of a component or chart, to save memory."""
        kind = delta.new_element.WhichOneof("type") if delta.WhichOneof("type") == "new_element" else ""
        if kind not in ("bidi_component", "plotly_chart", "dataframe"):
            return delta
        stripped = Delta(fragment_id=delta.fragment_id)
        source, target = getattr(delta.new_element, kind), getattr(stripped.new_element, kind)
        target.id = source.id
        if kind == "bidi_component":
            target.component_name = source.component_name
        return stripped

    def _begin(self, message: ForwardMsg) -> None:
        session = message.new_session
        self.id, self._hash = session.initialize.session_id, session.page_script_hash
        run = message.metadata.run
        self._run, self._run_fragments = run.script_run_id, tuple(run.fragment_ids)
        if not self._run_fragments:
            self._max_age = session.config.max_cached_message_age
            self._stop(self._timers)
        self._running = True
        if self._awaited and not (self._awaited.page_hash and self._awaited.page_hash != session.page_script_hash):
            self._awaited.begun |= not self._run_fragments or self._awaited.fragment in self._run_fragments

    def _end(self, message: ForwardMsg) -> None:
        if message.script_finished == EARLY:
            return
        self._running = False
        self._forget()
        if self._awaited and self._awaited.begun and not self._awaited.end.done():
            self._awaited.end.set_result(None)

    def _forget(self) -> None:
        """Drop the elements, widget states and cached messages that the run did not send again."""
        fragments = self._run_fragments
        self.finished += 1
        self._elements = {
            path: e
            for path, e in self._elements.items()
            if e.run == self._run or (fragments and e.fragment not in fragments)
        }
        if not fragments:
            ids = {e.id for e in self._elements.values()}
            self._states = {id_: sent for id_, sent in self._states.items() if id_ in ids}
            self._cache = {
                name: (delta, used)
                for name, (delta, used) in self._cache.items()
                if self.finished - used <= self._max_age
            }

    def _navigate(self, message: ForwardMsg) -> None:
        navigation = message.navigation
        self.pages = {page.url_pathname: page.page_script_hash for page in navigation.app_pages}
        self._hash = navigation.page_script_hash
        self.page = next((name for name, hash_ in self.pages.items() if hash_ == self._hash), self.page)

    def _repeat(self, fragment: str, interval: float) -> None:
        async def rerun_forever() -> None:
            with suppress(Gone):
                while True:
                    await asyncio.sleep(interval)
                    await self._send(self._rerun((), fragment, auto=True))

        if fragment not in self._timers:
            self._timers[fragment] = asyncio.create_task(rerun_forever())

    def _stop(self, fragments: Iterable[str]) -> None:
        for fragment in list(fragments):
            if timer := self._timers.pop(fragment, None):
                timer.cancel()

    def _answer(self, request: str, answer: object) -> None:
        if request in self._answers:
            self._answers[request].set_result(answer)

    def _fail(self, error: Exception) -> None:
        ends = [self._awaited.end] if self._awaited else []
        for end in [*ends, *self._answers.values()]:
            if not end.done():
                end.set_exception(error)


def run(visit: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in another thread, because a browser of another test may have an event loop in this one."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(asyncio.run, visit).result()
