"""Messages of every kind of Streamlit's protocol, changed at random: what may be passed on, and what that costs others.

A message's number is its seed. The first part gives them to the filter alone, the second sends them to a server: those
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

from benchmarks.results import Row, Sample, Target, write
from benchmarks.served import ROOT
from benchmarks.watched import LETS_IN, Watched, serve_watched
from mha_viz.app.serving.back_messages import RULES, FieldLimit, read_allowed
from tests.web_session import Gone, WebSession

ALONE, SENT = 100_000, 2_000
TABS = 10
SILENCE, MEGABYTES = 0.2, 20.0  # of the health page; of the server
FORGED = "\n2026-11-28 00:00:00.000 mha_viz: A FORGED LINE"
KINDS = [field.name for field in BackMsg.DESCRIPTOR.fields]
_DIGITS = "0123456789abcdef"


def main(results: Path, quick: bool = False) -> None:
    """Run, print, write ``results/back_messages.json``. ``quick``: a twentieth of the messages."""
    alone, sent = (ALONE // 20, SENT // 20) if quick else (ALONE, SENT)
    filtered = send_to_filter(alone)
    with serve_watched(MHA_VIZ_MODELS="minilm,toy", MHA_VIZ_WAIT=LETS_IN) as server:
        asyncio.run(warm(server))
        dropped, passed = asyncio.run(send_to_server(server, range(sent)))
    rows = [
        *_make_rows(f"filter alone, {alone:,}", filtered, "one message"),
        *_make_rows(f"server, {len(dropped.kinds):,} kinds dropped, {dropped.kinds.total():,}", dropped, "health page"),
        *_make_rows(f"server, {passed.kinds.total():,} passed on", passed, "health page"),
        Row("bytes of log for what is dropped", Sample((float(dropped.logged),)), "B", None, Target("below", 1)),
        Row("lines of log a second and tab, of the rest", Sample((passed.lines,)), "", None, Target("below", 1.001)),
    ]
    write(results, "back_messages", "Messages of a browser, changed at random", "", rows, streamlit.__version__)


class Cost(NamedTuple):
    """The cost of messages: silence in seconds, memory, bytes of the log, and its lines per second and tab."""

    kinds: Counter[str]
    silence: float
    megabytes: float
    logged: int = 0
    lines: float = 0.0


def _make_rows(name: str, cost: Cost, what: str) -> Iterator[Row]:
    yield Row(f"{name}: longest silence ({what})", Sample((cost.silence,)), "s", None, Target("below", SILENCE))
    yield Row(f"{name}: memory", Sample((cost.megabytes,)), "MB", None, Target("below", MEGABYTES), {**cost.kinds})


# ---- The messages ----------------------------------------------------------------------------------------


def make_message(seed: int) -> bytes:
    """Return one message with random fields.

    Half of the messages are within all limits; half have changed bytes.
    """
    random, message = Random(seed), BackMsg()
    is_wild = random.random() < 0.5
    kind = KINDS[seed % len(KINDS)]
    field = BackMsg.DESCRIPTOR.fields_by_name[kind]
    if field.message_type is None:
        setattr(message, kind, random.random() < 0.8)
    else:
        part = getattr(message, kind)
        part.SetInParent()
        _fill(part, field.message_type, random, is_wild)
    data = message.SerializeToString()
    return data if random.random() < 0.5 else _damage_bytes(data, random)


def _fill(message: Any, kind: Descriptor, random: Random, is_wild: bool) -> None:
    for field in kind.fields:
        rule = RULES[kind.full_name][field.name]
        is_taken = field.containing_oneof and message.WhichOneof(field.containing_oneof.name)
        if is_taken or random.random() < 0.3 or (rule is None and not is_wild):
            continue
        times = random.choice((0, 1, 2, 3)) if field.is_repeated else 1
        if field.is_repeated and is_wild and random.random() < 0.02:
            times = random.choice((500, 5_000)) if field.message_type else 50_000
        if field.message_type and field.is_repeated:
            for _ in range(times):
                _fill(getattr(message, field.name).add(), field.message_type, random, is_wild)
        elif field.message_type:
            getattr(message, field.name).SetInParent()
            _fill(getattr(message, field.name), field.message_type, random, is_wild)
        else:
            value = _draw_value(field, random)
            while not is_wild and isinstance(value, str) and not _is_within(value, rule):
                value = _draw_value(field, random)
            if field.is_repeated:
                getattr(message, field.name).extend([value] * (1 if isinstance(value, str) and value[99:] else times))
            else:
                setattr(message, field.name, value)


def _is_within(value: str, rule: FieldLimit | None) -> bool:
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
            FORGED,
            "y" * random.choice((300, 3_000, 3_000, 300_000 if random.random() < 0.05 else 9)) + FORGED,
            '{"event": ' + "[" * random.choice((1, 5_000)),
            "\0 ä \U0001f600",
        )
    )


def _damage_bytes(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        at = random.randrange(len(changed) + 1)
        way = random.randrange(5)
        if way == 0:
            del changed[at:]
        elif way == 1:
            changed[at:at] = random.randbytes(random.choice((1, 2, 30)))
        elif way == 2 and len(changed) < 10_000:
            changed += changed[at:]
        elif at < len(changed):
            changed[at] = random.choice((0, 0x7F, 0x80, 0xFF, changed[at] ^ 1 << random.randrange(8)))
    return bytes(changed)


# ---- The filter alone ------------------------------------------------------------------------------------


def send_to_filter(count: int) -> Cost:
    """Give messages, which another process makes, to the filter in this process.

    Raises AssertionError if a message is passed on although it exceeds a limit.
    """
    kinds: Counter[str] = Counter()
    worst, process, most = 0.0, psutil.Process(), 0
    command = [sys.executable, "-m", "benchmarks.back_messages", str(count)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as maker:
        assert maker.stdout is not None
        before = process.memory_info().rss
        for seed in range(count):
            data = maker.stdout.read(int.from_bytes(maker.stdout.read(4), "big"))
            began = time.perf_counter()
            kind = get_passed_kind(data)
            worst = max(worst, time.perf_counter() - began)
            kinds[kind or "dropped"] += 1
            if kind:
                check(BackMsg.FromString(data), seed)
            if seed % 100 == 0:
                most = max(most, process.memory_info().rss - before)
    return Cost(kinds, worst, most / 1e6)


def get_passed_kind(data: bytes) -> str:
    """Return the kind of a message that the filter passes on; "" for all others."""
    allowed = read_allowed(data)
    return allowed.kind if allowed else ""


def check(message: Any, seed: int) -> None:
    """Raise AssertionError if a message that is passed on exceeds a limit of the table."""
    rules = RULES[message.DESCRIPTOR.full_name]
    for field, value in message.ListFields():
        rule = rules[field.name]
        assert rule is not None, f"{seed}: {field.full_name}"
        values = list(value) if field.is_repeated else [value]
        is_packed = field.is_repeated and field.is_packed
        assert len(values) <= (rule.max_bytes if is_packed else rule.max_count), f"{seed}: {field.full_name}"
        for one in values:
            if field.message_type:
                check(one, seed)
            elif isinstance(one, str):
                assert len(one.encode()) <= rule.max_bytes, f"{seed}: {field.full_name}"
                assert rule.pattern is None or rule.pattern.fullmatch(one.encode()), f"{seed}: {field.full_name}"


# ---- Through a server ------------------------------------------------------------------------------------


class Health:
    """The longest silence of a server's health page while the block runs."""

    def __init__(self, url: str) -> None:
        self._url, self._stop, self.silence = f"{url}/_stcore/health", threading.Event(), 0.0
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def _poll(self) -> None:
        while not self._stop.wait(0.02):
            began = time.perf_counter()
            with suppress(OSError), self._direct.open(self._url, timeout=60) as answer:
                answer.read()
            self.silence = max(self.silence, time.perf_counter() - began)


async def send_to_server(server: Watched, seeds: Sequence[int], tabs: int = TABS) -> tuple[Cost, Cost]:
    """Send the messages; return the cost of those that are dropped, and of the others."""
    made = [make_message(seed) for seed in seeds]
    kinds = [get_passed_kind(data) for data in made]
    dropped = [data for data, kind in zip(made, kinds, strict=True) if not kind]
    passed = [data for data, kind in zip(made, kinds, strict=True) if kind]
    of_dropped = Counter(KINDS[seed % len(KINDS)] for seed, kind in zip(seeds, kinds, strict=True) if not kind)
    return (
        await _send(server, dropped, of_dropped, tabs),
        await _send(server, passed, Counter(kind for kind in kinds if kind), tabs),
    )


async def _send(server: Watched, messages: list[bytes], kinds: Counter[str], tabs: int) -> Cost:
    async def say(session: WebSession, share: list[bytes]) -> None:
        with suppress(Gone):
            for data in share:
                await session.send(data)

    async with AsyncExitStack() as stack:
        sessions = [await stack.enter_async_context(WebSession(server.url, "about", light=True)) for _ in range(tabs)]
        began, logged, before = time.perf_counter(), len(server.log()), server.megabytes()
        with Health(server.url) as health:
            await asyncio.gather(*(say(session, messages[at::tabs]) for at, session in enumerate(sessions)))
            await asyncio.sleep(1)
        for session in sessions:
            with suppress(Gone):
                await session.act()
        log, seconds = server.log()[logged:], time.perf_counter() - began
        memory = server.megabytes() - before
    assert FORGED not in log
    assert max(map(len, log.splitlines()), default=0) <= 500
    return Cost(kinds, health.silence, memory, len(log.encode()), len(log.splitlines()) / seconds / tabs)


async def warm(server: Watched) -> None:
    """Open every page, so that nothing is imported later."""
    for page in ("", "compare", "roles", "inside_a_head", "why_heads_differ", "about"):
        async with WebSession(server.url, page):
            pass


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        one = make_message(number)
        sys.stdout.buffer.write(len(one).to_bytes(4, "big") + one)
