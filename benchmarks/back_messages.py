"""Send randomly changed messages of every kind in Streamlit's protocol, and measure what they cost other visitors.
A message's number is its seed. The first part calls only the filter. The second sends messages to a server: first those
that the filter drops, then those that it passes on.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Self

import psutil
import streamlit
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from streamlit.proto.BackMsg_pb2 import BackMsg

from benchmarks.monitoring import LONG_WAIT, MonitoredServer, serve_monitored
from benchmarks.results import Row, Sample, Target, write
from benchmarks.server import ROOT
from mha_viz.app.serving.back_messages import RULES, FieldLimit, read_allowed
from tests.web_session import Gone, WebSession

FILTER_MESSAGES, SERVER_MESSAGES = 100_000, 2_000
TABS = 10
MAX_SILENCE, MAX_MEGABYTES = 0.2, 20.0  # seconds without an answer of the health page; growth of the server
FORGED_LINE = "\n2026-11-28 00:00:00.000 mha_viz: A FORGED LINE"
KINDS = [field.name for field in BackMsg.DESCRIPTOR.fields]
_DIGITS = "0123456789abcdef"


def main(results: Path, quick: bool = False) -> None:
    """Run, print, write ``results/back_messages.json``. ``quick``: a twentieth of the messages."""
    filter_count, server_count = (
        (FILTER_MESSAGES // 20, SERVER_MESSAGES // 20) if quick else (FILTER_MESSAGES, SERVER_MESSAGES)
    )
    filter_cost = send_to_filter(filter_count)
    with serve_monitored(MHA_VIZ_MODELS="minilm,toy", MHA_VIZ_WAIT=LONG_WAIT) as server:
        asyncio.run(open_all_pages(server))
        dropped_cost, passed_cost = asyncio.run(send_to_server(server, range(server_count)))
    rows = [
        *_make_rows(f"filter alone, {filter_count:,}", filter_cost, "one message"),
        *_make_rows(
            f"server, {len(dropped_cost.kinds):,} kinds dropped, {dropped_cost.kinds.total():,}",
            dropped_cost,
            "health page",
        ),
        *_make_rows(f"server, {passed_cost.kinds.total():,} passed on", passed_cost, "health page"),
        Row(
            "bytes of log for what is dropped", Sample((float(dropped_cost.log_bytes),)), "B", None, Target("below", 1)
        ),
        Row(
            "lines of log a second and tab, of the rest",
            Sample((passed_cost.log_lines,)),
            "",
            None,
            Target("below", 1.001),
        ),
    ]
    write(results, "back_messages", "Messages of a browser, changed at random", "", rows, streamlit.__version__)


class Cost(NamedTuple):
    """The cost of messages: longest silence in seconds, memory, bytes of the log, and its lines per second and tab."""

    kinds: Counter[str]
    silence: float
    megabytes: float
    log_bytes: int = 0
    log_lines: float = 0.0


def _make_rows(name: str, cost: Cost, subject: str) -> Iterator[Row]:
    yield Row(f"{name}: longest silence ({subject})", Sample((cost.silence,)), "s", None, Target("below", MAX_SILENCE))
    yield Row(f"{name}: memory", Sample((cost.megabytes,)), "MB", None, Target("below", MAX_MEGABYTES), {**cost.kinds})


# ---- The messages ----------------------------------------------------------------------------------------


def make_message(seed: int) -> bytes:
    """Return one message with random fields.

    Half of the messages are within all limits; half have changed bytes.
    """
    random, message = Random(seed), BackMsg()
    may_exceed_limits = random.random() < 0.5
    kind = KINDS[seed % len(KINDS)]
    field = BackMsg.DESCRIPTOR.fields_by_name[kind]
    if field.message_type is None:
        setattr(message, kind, random.random() < 0.8)
    else:
        part = getattr(message, kind)
        part.SetInParent()
        _fill_fields(part, field.message_type, random, may_exceed_limits)
    data = message.SerializeToString()
    return data if random.random() < 0.5 else _damage_bytes(data, random)


def _fill_fields(message: Any, kind: Descriptor, random: Random, may_exceed_limits: bool) -> None:
    for field in kind.fields:
        rule = RULES[kind.full_name][field.name]
        has_other_choice = field.containing_oneof and message.WhichOneof(field.containing_oneof.name)
        if has_other_choice or random.random() < 0.3 or (rule is None and not may_exceed_limits):
            continue
        count = random.choice((0, 1, 2, 3)) if field.is_repeated else 1
        if field.is_repeated and may_exceed_limits and random.random() < 0.02:
            count = random.choice((500, 5_000)) if field.message_type else 50_000
        if field.message_type and field.is_repeated:
            for _ in range(count):
                _fill_fields(getattr(message, field.name).add(), field.message_type, random, may_exceed_limits)
        elif field.message_type:
            getattr(message, field.name).SetInParent()
            _fill_fields(getattr(message, field.name), field.message_type, random, may_exceed_limits)
        else:
            value = _draw_value(field, random)
            while not may_exceed_limits and isinstance(value, str) and not _is_within_limits(value, rule):
                value = _draw_value(field, random)
            if field.is_repeated:
                getattr(message, field.name).extend([value] * (1 if isinstance(value, str) and value[99:] else count))
            else:
                setattr(message, field.name, value)


def _is_within_limits(value: str, rule: FieldLimit | None) -> bool:
    data = value.encode()
    return (
        rule is not None
        and len(data) <= rule.max_bytes
        and (rule.pattern is None or bool(rule.pattern.fullmatch(data)))
    )


def _draw_value(field: FieldDescriptor, random: Random) -> Any:
    if field.type == FieldDescriptor.TYPE_STRING:
        return _draw_text(random)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return random.randbytes(random.choice((0, 9, 2_000)))
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return random.choice((0.0, -1.5, 1e308, float("nan"), float("inf")))
    if field.type == FieldDescriptor.TYPE_BOOL:
        return random.random() < 0.5
    if field.type == FieldDescriptor.TYPE_ENUM:
        return 1
    return random.choice((0, 1, 300, (1 << 31) - 1))


def _draw_text(random: Random) -> str:
    return random.choice(
        (
            "",
            "x",
            "".join(random.choices(_DIGITS, k=32)),
            "".join(random.choices(_DIGITS, k=64)),
            "text=The cat sat.&head=L3H1",
            FORGED_LINE,
            "y" * random.choice((300, 3_000, 3_000, 300_000 if random.random() < 0.05 else 9)) + FORGED_LINE,
            '{"event": ' + "[" * random.choice((1, 5_000)),
            "\0 ä \U0001f600",
        )
    )


def _damage_bytes(data: bytes, random: Random) -> bytes:
    new_data = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        position = random.randrange(len(new_data) + 1)
        operation = random.randrange(5)
        if operation == 0:
            del new_data[position:]
        elif operation == 1:
            new_data[position:position] = random.randbytes(random.choice((1, 2, 30)))
        elif operation == 2 and len(new_data) < 10_000:
            new_data += new_data[position:]
        elif position < len(new_data):
            new_data[position] = random.choice((0, 0x7F, 0x80, 0xFF, new_data[position] ^ 1 << random.randrange(8)))
    return bytes(new_data)


# ---- The filter alone ------------------------------------------------------------------------------------


def send_to_filter(count: int) -> Cost:
    """Pass messages generated by another process to the filter in this process.

    Raises AssertionError if a message is passed on although it exceeds a limit.
    """
    kinds: Counter[str] = Counter()
    max_seconds, process, max_growth = 0.0, psutil.Process(), 0
    command = [sys.executable, "-m", "benchmarks.back_messages", str(count)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as generator:
        assert generator.stdout is not None
        initial_memory = process.memory_info().rss
        for seed in range(count):
            data = generator.stdout.read(int.from_bytes(generator.stdout.read(4), "big"))
            start = time.perf_counter()
            kind = get_passed_kind(data)
            max_seconds = max(max_seconds, time.perf_counter() - start)
            kinds[kind or "dropped"] += 1
            if kind:
                check_limits(BackMsg.FromString(data), seed)
            if seed % 100 == 0:
                max_growth = max(max_growth, process.memory_info().rss - initial_memory)
    return Cost(kinds, max_seconds, max_growth / 1e6)


def get_passed_kind(data: bytes) -> str:
    """Return the kind of a message that the filter passes on; "" for all others."""
    allowed = read_allowed(data)
    return allowed.kind if allowed else ""


def check_limits(message: Any, seed: int) -> None:
    """Raise AssertionError if a message that was passed on exceeds one of the RULES."""
    rules = RULES[message.DESCRIPTOR.full_name]
    for field, value in message.ListFields():
        rule = rules[field.name]
        assert rule is not None, f"{seed}: {field.full_name}"
        values = list(value) if field.is_repeated else [value]
        is_packed = field.is_repeated and field.is_packed
        assert len(values) <= (rule.max_bytes if is_packed else rule.max_count), f"{seed}: {field.full_name}"
        for item in values:
            if field.message_type:
                check_limits(item, seed)
            elif isinstance(item, str):
                assert len(item.encode()) <= rule.max_bytes, f"{seed}: {field.full_name}"
                assert rule.pattern is None or rule.pattern.fullmatch(item.encode()), f"{seed}: {field.full_name}"


# ---- Through a server ------------------------------------------------------------------------------------


class HealthMonitor:
    """Measures the longest silence of a server's health page while the block runs."""

    def __init__(self, url: str) -> None:
        self._url, self._stop, self.silence = f"{url}/_stcore/health", threading.Event(), 0.0
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._direct_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def _poll(self) -> None:
        while not self._stop.wait(0.02):
            start = time.perf_counter()
            with suppress(OSError), self._direct_opener.open(self._url, timeout=60) as answer:
                answer.read()
            self.silence = max(self.silence, time.perf_counter() - start)


async def send_to_server(server: MonitoredServer, seeds: Sequence[int], tabs: int = TABS) -> tuple[Cost, Cost]:
    """Send the messages of these seeds; return the costs of those that are dropped and of the others."""
    messages = [make_message(seed) for seed in seeds]
    kinds = [get_passed_kind(data) for data in messages]
    dropped_messages = [data for data, kind in zip(messages, kinds, strict=True) if not kind]
    passed_messages = [data for data, kind in zip(messages, kinds, strict=True) if kind]
    dropped_kinds = Counter(KINDS[seed % len(KINDS)] for seed, kind in zip(seeds, kinds, strict=True) if not kind)
    return (
        await _send(server, dropped_messages, dropped_kinds, tabs),
        await _send(server, passed_messages, Counter(kind for kind in kinds if kind), tabs),
    )


async def _send(server: MonitoredServer, messages: list[bytes], kinds: Counter[str], tabs: int) -> Cost:
    async def send_all(session: WebSession, session_messages: list[bytes]) -> None:
        with suppress(Gone):
            for data in session_messages:
                await session.send(data)

    async with AsyncExitStack() as stack:
        sessions = [await stack.enter_async_context(WebSession(server.url, "about", light=True)) for _ in range(tabs)]
        start, log_start, memory_before = time.perf_counter(), len(server.log()), server.megabytes()
        with HealthMonitor(server.url) as health:
            await asyncio.gather(
                *(send_all(session, messages[number::tabs]) for number, session in enumerate(sessions))
            )
            await asyncio.sleep(1)
        for session in sessions:
            with suppress(Gone):
                await session.act()
        log, seconds = server.log()[log_start:], time.perf_counter() - start
        memory_growth = server.megabytes() - memory_before
    assert FORGED_LINE not in log
    assert max(map(len, log.splitlines()), default=0) <= 500
    return Cost(kinds, health.silence, memory_growth, len(log.encode()), len(log.splitlines()) / seconds / tabs)


async def open_all_pages(server: MonitoredServer) -> None:
    """Open every page, so that nothing is left to import."""
    for page in ("", "compare", "roles", "inside_a_head", "why_heads_differ", "about"):
        async with WebSession(server.url, page):
            pass


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        message = make_message(number)
        sys.stdout.buffer.write(len(message).to_bytes(4, "big") + message)
