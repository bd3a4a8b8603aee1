"""Check that what reaches Streamlit is what pages of this app send, within limits; all else costs nobody anything."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

import pytest
from google.protobuf.descriptor import Descriptor
from starlette.types import Message
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks import back_messages as made
from benchmarks.monitoring import LONG_WAIT, serve_monitored
from mha_viz.app.serving import session_limit
from mha_viz.app.serving.back_messages import RULES, compute_cost
from mha_viz.app.serving.session_limit import _PacedReceiver
from tests.web_session import run

pytestmark = pytest.mark.app
DIGEST = "0123456789abcdef" * 2


# ---- The table ---------------------------------------------------------------------------------------------


def undecided(kind: Descriptor, seen: set[str] | None = None) -> list[str]:
    """Fields of a message, and of all in it, that have no row."""
    seen = set() if seen is None else seen
    if kind.full_name in seen:
        return []
    seen.add(kind.full_name)
    missing = [field.full_name for field in kind.fields if field.name not in RULES.get(kind.full_name, {})]
    inside = [field.message_type for field in kind.fields if field.message_type]
    return missing + [name for one in inside for name in undecided(one, seen)]


def test_every_field_of_the_protocol_has_been_decided_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    assert undecided(BackMsg.DESCRIPTOR, seen) == [], "a new Streamlit: may pages of this app send it?"
    assert set(RULES) == seen, "rows of messages that the protocol no longer has"
    fields = {kind: dict(rules) for kind, rules in RULES.items()}
    del fields["ContextInfo"]["locale"], fields["BackMsg"]["load_git_info"]
    monkeypatch.setattr("tests.test_back_messages.RULES", fields)
    assert undecided(BackMsg.DESCRIPTOR) == ["BackMsg.load_git_info", "ContextInfo.locale"]


def test_what_is_decided_against_and_what_is_new_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {name for name, rule in RULES["BackMsg"].items() if rule is None}
    assert refused == set(made.KINDS) - {
        "rerun_script",
        "stop_script",
        "app_heartbeat",
        "file_urls_request",
        "backend_operation_request",
    }
    for name in refused:
        assert made.get_passed_kind(BackMsg(**{name: True}).SerializeToString()) == ""
    unknown = b"\xfa\x01\x01x"  # a field with the number 31
    assert (
        made.get_passed_kind(unknown)
        == made.get_passed_kind(BackMsg(stop_script=True).SerializeToString() + unknown)
        == ""
    )


# ---- What passes, and what does not ------------------------------------------------------------------------


def rerun(**fields: object) -> bytes:
    return BackMsg(rerun_script=fields).SerializeToString()


def states(*widgets: WidgetState) -> bytes:
    return rerun(widget_states={"widgets": widgets})


def deferred(file_id: str) -> bytes:
    request = {"request_id": f"{file_id}-1", "session_id": "7b0c-11", "deferred_file": {"file_id": file_id}}
    return BackMsg(backend_operation_request=request).SerializeToString()


def names(*files: str) -> bytes:
    return BackMsg(
        file_urls_request={"request_id": "1", "session_id": "7b0c-11", "file_names": files}
    ).SerializeToString()


WIDGET = WidgetState(id="$$ID-0123-ключ", string_value="The cat sat.\nOn the mat.")
HEARTBEAT = BackMsg(app_heartbeat=True).SerializeToString()

PASSES = {
    "a stop": BackMsg(stop_script=True).SerializeToString(),
    "a heartbeat": HEARTBEAT,
    "a first run": rerun(),
    "a run": rerun(query_string="text=%D0%BA&head=L3H1", page_script_hash=DIGEST, page_name="inside_a_head"),
    "a part of a page": rerun(fragment_id=DIGEST, is_auto_rerun=True, cached_message_hashes=[DIGEST] * 1_000),
    "its context": rerun(
        context_info={"timezone": "Etc/GMT+5", "timezone_offset": -300, "locale": "en-GB", "url": "http://x/"}
    ),
    "a text": states(WIDGET),
    "400 controls": states(*[WidgetState(id=f"{number}", trigger_value=True) for number in range(400)]),
    "a long text": states(WidgetState(id="a", string_value="word " * 380_000)),
    "a text for a component": states(WidgetState(id="a", json_trigger_value='{"text": "' + "a, b " * 90_000 + '"}')),
    "numbers": states(WidgetState(id="a", double_array_value={"data": [0.0, 1.5] * 500})),
    "choices": states(WidgetState(id="a", string_array_value={"data": ["L3H1"] * 1_000})),
    "a file": deferred(DIGEST * 2),
    "a name of 255 characters": names("ж" * 251 + ".txt"),
    "four names": names("a", "b", "c", "d"),
    "no name": names(),
}
REFUSED = {
    "nothing": b"",
    "no message": b"\xff" * 1_000,
    "two kinds": HEARTBEAT + rerun(),
    "the same twice": HEARTBEAT * 2,
    "a name of 256 characters": names("ж" * 256),
    "five names": names("a", "b", "c", "d", "e"),
    "a part of a page with a line": rerun(fragment_id=f"x{made.FORGED_LINE}"),
    "a part of a page with another alphabet": rerun(fragment_id="X" * 32),
    "an address with a line": rerun(query_string="a=\n"),
    "a long address": rerun(query_string="a" * 200_001),
    "a long name of a control": states(WidgetState(id="a" * 401, bool_value=True)),
    "401 controls": states(*[WidgetState(id="a")] * 401),
    "a table": states(WidgetState(id="a", arrow_value={"data": b"x"})),
    "a chat": states(WidgetState(id="a", chat_input_value={"data": "x"})),
    "many choices": states(WidgetState(id="a", string_array_value={"data": [""] * 1_001})),
    "many numbers": states(WidgetState(id="a", int_array_value={"data": [1 << 40] * 8_000})),
    "many parts of JSON": states(WidgetState(id="a", json_value="[" + "[]," * 50_000)),
    "many cached": rerun(cached_message_hashes=[DIGEST] * 1_001),
    "an unknown cached": rerun(cached_message_hashes=["../a"]),
    "no operation": BackMsg(backend_operation_request={"request_id": "y"}).SerializeToString(),
    "skills": BackMsg(backend_operation_request={"install_skills": {}}).SerializeToString(),
    "a file of another form": deferred("no file"),
    "a file without a name": BackMsg(backend_operation_request={"deferred_file": {}}).SerializeToString(),
    "half a character": states(WIDGET).replace("к".encode(), b"\xd0 "),
    "a cut message": states(WIDGET)[:-3],
    "many fields": states(*[WidgetState(string_array_value={"data": [""] * 60})] * 100),
}


@pytest.mark.parametrize("name", PASSES)
def test_what_a_page_sends_passes(name: str) -> None:
    assert made.get_passed_kind(PASSES[name]) == BackMsg.FromString(PASSES[name]).WhichOneof("type")


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_page_sends_is_dropped(name: str) -> None:
    assert made.get_passed_kind(REFUSED[name]) == ""


def test_a_message_of_a_million_parts_is_dropped_at_once() -> None:
    """Read by its library, it would take a hundred megabytes."""
    began = time.process_time()
    for one in (
        names(*[""] * 900_000),
        states(*[WidgetState()] * 900_000),
        rerun(cached_message_hashes=[""] * 900_000),
    ):
        assert made.get_passed_kind(one) == ""
    assert time.process_time() - began < 5  # nearly all of it makes them


def test_changed_messages_pass_only_within_all_limits() -> None:
    filtered = made.send_to_filter(1_000)
    assert {kind for kind, count in filtered.kinds.items() if count > 9} == {"dropped"} | {
        name for name, rule in RULES["BackMsg"].items() if rule
    }
    assert filtered.megabytes < made.MAX_MEGABYTES


# ---- Rates -------------------------------------------------------------------------------------------------


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[bytes]], list[float]]:
    """How long a tab has to wait that sends these at once."""

    def send(messages: list[bytes]) -> list[float]:
        waits: list[float] = []
        left = iter(messages)

        async def rest(seconds: float) -> None:
            waits.append(seconds)

        async def receive() -> Message:
            data = next(left, None)
            if data is None:
                return {"type": "websocket.disconnect"}
            return {"type": "websocket.receive", "bytes": data}

        async def answer(_: Message) -> None:
            raise AssertionError

        async def flood() -> None:
            paced = _PacedReceiver(receive, answer)
            with monkeypatch.context() as patch:
                patch.setattr(session_limit.asyncio, "sleep", rest)
                patch.setattr(session_limit.time, "monotonic", lambda: paced._refilled_at)
                while (await paced())[0]["type"] != "websocket.disconnect":
                    pass

        run(flood())
        return waits

    return send


def test_a_tab_is_charged_for_bytes_and_for_what_a_kind_costs(waited: Callable[[list[bytes]], list[float]]) -> None:
    rate, burst = session_limit.MESSAGES_PER_SECOND, session_limit.BURST
    small = waited([HEARTBEAT] * (burst + 20))
    assert len(small) in (20, 21)
    assert small[-1] == pytest.approx(20 / rate, abs=0.1)
    assert len(waited([REFUSED["nothing"]] * (burst + 20))) == 20, "what is dropped is not free"
    assert waited([PASSES["a long text"]] * 2)[-1] == pytest.approx((2 * 200 - burst) / rate, abs=1)
    assert not waited([b"x" * 63_000] * 8), "the largest messages of a page"
    assert len(waited([PASSES["a file"]] * (burst // 4 + 5))) in (5, 6), "a kind that costs four"
    assert compute_cost("", bytes(2_000_000)) / rate < 20, "a tab that waits longer looks as if it were gone"


# ---- A server ----------------------------------------------------------------------------------------------


def test_changed_messages_cost_a_server_no_memory_and_at_most_a_line_a_second() -> None:
    with serve_monitored(MHA_VIZ_MODELS="minilm,toy", MHA_VIZ_WAIT=LONG_WAIT) as server:
        dropped, passed = run(made.send_to_server(server, Random(3).sample(range(10_000), 160), tabs=2))
        assert dropped.log_bytes == 0, server.log()
        assert passed.log_lines <= 1, server.log()
        assert "Traceback" not in server.log()
    assert min(dropped.kinds.total(), passed.kinds.total()) > 20
    assert max(dropped.megabytes, passed.megabytes) < made.MAX_MEGABYTES
    assert max(dropped.silence, passed.silence) < 2  # on a busy machine; the benchmark asks for 0.2
