"""Too little memory for the process with the models: one sentence, nothing is lost, and the next reading is made when
there is memory again. The system's limit on the data of a running process stands for memory that others use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from mha_viz.app.service.reader import verbs
from mha_viz.models.getting import snapshots
from mha_viz.models.reading import encoder
from mha_viz.models.reading.encoder import Encoder
from mha_viz.process import template
from tests.app_server import AppServer
from tests.web_session import WebSession, run

pytestmark = [
    pytest.mark.app,
    pytest.mark.skipif(not template.is_supported(), reason="no limits on other processes, and no templates"),
]

SPARE = 16_000_000  # bytes: for all small objects of a reading
LONG = "word " * 900  # its weights take 75 MB in MiniLM, more than the C library keeps of freed memory
SHORT = "The dog saw the girl."


@contextmanager
def narrow(pid: int, spare: int = SPARE) -> Iterator[None]:
    """Meanwhile a process gets so many bytes more than it has."""
    written = Path(f"/proc/{pid}/status").read_text("ascii").partition("VmData:")[2]
    soft, hard = psutil.Process(pid).rlimit(psutil.RLIMIT_DATA)
    psutil.Process(pid).rlimit(psutil.RLIMIT_DATA, (int(written.split()[0]) * 1024 + spare, hard))
    try:
        yield
    finally:
        psutil.Process(pid).rlimit(psutil.RLIMIT_DATA, (soft, hard))


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 589824 bytes"),
        OSError("unable to mmap 90868376 bytes from file <model.safetensors>: Cannot allocate memory (12)"),
    ],
    ids=["of Python", "of PyTorch", "of the system"],
)
def test_a_model_for_which_there_is_no_memory_is_not_called_broken(
    error: Exception, toy: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    assert toy.folder is not None
    monkeypatch.setattr(encoder, "open_plain", refuse)
    with pytest.raises(type(error)) as raised:
        Encoder.from_folder(toy.folder, name="toy")
    assert raised.value is error
    monkeypatch.setattr("safetensors.safe_open", refuse)
    with pytest.raises(type(error)) as raised:
        snapshots.list_steps.__wrapped__(toy.folder)
    assert raised.value is error


def test_a_page_says_it_once_keeps_the_text_and_draws_it_when_there_is_memory_again(tmp_path: Path) -> None:
    async def visit(server: AppServer) -> None:
        async with WebSession(server.url, "explore", model="minilm", text=SHORT) as visitor:
            await visitor.trigger("mha_sentence", "read", {"text": "The girl saw the dog.", "pair": ""})
            libraries, reader = processes(server)
            with narrow(reader.pid):
                await visitor.trigger("mha_sentence", "read", {"text": LONG, "pair": ""})
                assert_says(visitor, "There was not enough memory to read this.", LONG)
                await visitor.trigger("mha_sentence", "read", {"text": "A girl saw it.", "pair": ""})
                assert "mha_explorer" in visitor.components
            assert processes(server) == (libraries, reader)
            await visitor.trigger("mha_sentence", "read", {"text": LONG, "pair": ""})
            assert "mha_explorer" in visitor.components
            assert not said(visitor, "memory")
            with narrow(libraries.pid, 0):
                reader.kill()
                await visitor.trigger("mha_sentence", "read", {"text": SHORT + " Yes.", "pair": ""})
                assert_says(visitor, "The process that runs minilm stopped.", SHORT + " Yes.")
            await visitor.trigger("mha_sentence", "read", {"text": SHORT + " Yes.", "pair": ""})
            assert "mha_explorer" in visitor.components
            assert not said(visitor, "runs minilm stopped")
            assert processes(server)[0] == libraries

    with AppServer(tmp_path) as server:
        run(visit(server))
        assert server.process.poll() is None
        assert "not enough memory" in server.log()
        assert "  File " not in server.log(), "tracebacks are one line"


def processes(server: AppServer) -> tuple[psutil.Process, psutil.Process]:
    """Return the process that makes readers, and the reader."""
    (reader,) = [
        child
        for child in psutil.Process(server.process.pid).children(recursive=True)
        if child.ppid() != server.process.pid and child.status() != psutil.STATUS_ZOMBIE
    ]
    return psutil.Process(reader.ppid()), reader


def said(visitor: WebSession, words: str) -> list[str]:
    """Return the texts of a page with these words."""
    return [text for text in visitor.texts if words in text]


def assert_says(visitor: WebSession, problem: str, text: str) -> None:
    """Return a page says a problem once, with no red box, and its address has the text."""
    assert len(said(visitor, problem)) == 1, visitor.texts
    assert verbs.MEMORY_REMEDY in said(visitor, problem)[0]
    assert visitor.exceptions == []
    assert visitor.query["text"].split() == text.split()
