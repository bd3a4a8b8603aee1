"""The log of a server is its owner's: visitors write no line of their own, few lines, and nothing that they typed."""

from __future__ import annotations

import logging
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from mha_viz.attention import Head
from mha_viz.process import log
from tests.app_server import AppServer
from tests.web_session import WebSession, run

pytestmark = pytest.mark.app
CANARY = "what-a-visitor-typed"


class Written(logging.Handler):
    """Format what a handler of Streamlit's would write."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.setFormatter(logging.Formatter("%(asctime)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def visitors() -> list[str]:
    """Who is served; the last one is now."""
    return ["one"]


@pytest.fixture
def written(visitors: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Return what is written to a log that is bounded."""
    usual, handler = logging.getLogRecordFactory(), Written()
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    logging.getLogger().addHandler(handler)
    log.limit_records(lambda: visitors[-1])
    yield handler.lines
    logging.captureWarnings(False)
    logging.setLogRecordFactory(usual)
    logging.getLogger().removeHandler(handler)
    if logging.lastResort:
        logging.getLogger("py.warnings").removeHandler(logging.lastResort)


def error_of(cause: Callable[[], object]) -> BaseException:
    try:
        cause()
    except Exception as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    "said", ["x" * 2_000_000, "a\n2026-11-28 00:00:00.000 mha_viz: FORGED", "a\r\x1b[2J\u2028b\x85", "100 %"]
)
def test_a_record_is_one_short_line(said: str, written: list[str]) -> None:
    logging.getLogger("streamlit.x").warning("said %s", said)
    (line,) = written
    assert len(line) <= 500
    assert line.isprintable()
    assert "said" in line


def test_a_visitor_writes_a_line_a_second_and_all_of_them_a_few(
    visitors: list[str], written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(log.time, "monotonic", lambda: now)
    for _ in range(20):
        logging.getLogger("streamlit.x").error("again")
    visitors.append("other")
    logging.getLogger("streamlit.x").error("another")
    assert [line[24:] for line in written] == ["again", "another"]
    now += log.SECONDS_BETWEEN_LINES
    visitors.append("one")
    logging.getLogger("streamlit.x").error("later")
    assert written[-1].endswith("(19 lines left out) later")
    for number in range(1_000):
        visitors.append(f"{number}")
        logging.getLogger("streamlit.x").error("all at once")
    assert len(written) == 3 + log.MAX_BURST - 1


def test_without_a_visitor_each_place_has_its_line(visitors: list[str], written: list[str]) -> None:
    library = logging.getLogger("a_library")  # others have handlers of their own once a server began in this process
    visitors.append("")
    for number in range(3):
        library.warning("started")
        library.warning("listens %s", number)
    assert [line[24:] for line in written] == ["started", "listens 0"]


def test_what_an_error_says_is_not_written(visitors: list[str], written: list[str]) -> None:
    errors = [
        error_of(lambda: Head.parse(CANARY)),
        error_of(lambda: int(CANARY)),
        error_of(Path("/", CANARY).read_bytes),
    ]
    for number, error in enumerate(errors):
        visitors.append(f"{number}")
        logging.getLogger("streamlit.x").error("It failed", exc_info=error)
        assert "\n" not in written[-1]
    assert CANARY not in "".join(written)
    assert "Traceback (most recent call first): " in written[0]
    assert " at mha_viz/heads.py:" in written[0], "where it was raised, in this program"
    assert "ValueError in " in written[1]
    assert "Traceback" not in written[1], "nothing of this program is in it"
    assert "No such file or directory" in written[2]


def test_what_ends_a_thread_and_warnings_are_lines_too(visitors: list[str], written: list[str]) -> None:
    thread = threading.Thread(target=int, args=[CANARY])
    thread.start()
    thread.join()
    assert "A thread ended | ValueError in " in written[-1]
    visitors.append("other")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        warnings.warn(f"two\nlines {sys.version_info[0]}", stacklevel=1)
    assert "\n" not in written[-1]
    assert "UserWarning: two lines" in written[-1]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AppServer]:
    """A server of its own: its log is to have errors."""
    with AppServer(tmp_path) as running:
        yield running


def test_visitors_write_no_line_of_their_own(server: AppServer) -> None:
    """Each way in which a visitor made Streamlit write: parts of pages and files that are not there, values that no
    control sends, JSON that is none, kinds of messages that no page sends."""
    before, began = len(server.log()), time.monotonic()

    async def visit() -> None:
        async with WebSession(server.url, "about") as session:
            for number in range(20):
                await session.send(session.rerun(fragment=f"{number:032x}"))
                await session.send(session.rerun(fragment=f"{CANARY}\n2026-11-28 FORGED {number}"))
                request = BackMsg()
                request.backend_operation_request.request_id = CANARY
                request.backend_operation_request.session_id = session.id
                request.backend_operation_request.deferred_file.file_id = f"{number:064x}"
                await session.send(request)
                await session.send(BackMsg(debug_shutdown_runtime=True))
                await session.send(BackMsg(load_git_info=True))
            await session.act()
            await session.go("why_heads_differ")
            bidi = [element.id for element in session.elements if element.kind == "bidi_component"]
            others = [e.id for e in session.elements if getattr(e.proto, "id", "") and e.kind != "bidi_component"]
            for text in (f'{{"{CANARY}', "[" * 5_000, f'"{CANARY}"', "NaN"):
                for name in bidi:
                    await session.act(WidgetState(id=_make_trigger_id(name, "events"), json_trigger_value=text))
                    await session.act(WidgetState(id=name, json_value=text))
            for name in others:
                await session.act(WidgetState(id=name, string_value=CANARY))
                await session.act(WidgetState(id=name, double_array_value={"data": [float("nan")]}))
            await session.act()

    run(visit())
    added = server.log()[before:]
    lines = added.splitlines()
    assert CANARY not in added
    assert "FORGED" not in added
    assert "Traceback" not in added, added
    assert max(map(len, lines), default=0) <= 500
    assert len(lines) <= 2 * (time.monotonic() - began) + 2, added  # of its WebSocket, and of its page
