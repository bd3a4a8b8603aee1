"""Check that what is replaced in Streamlit works alone and among all others, and what is missing there is noticed."""

from __future__ import annotations

import ast
import asyncio
import logging
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from streamlit import config
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.backend_operation_handler import DeferredFileHandler
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.media_file_storage import MediaFileKind, MediaFileStorageError
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.state.session_state import Value, WStates
from streamlit.runtime.websocket_session_manager import WebsocketSessionManager
from streamlit.web.server.starlette import starlette_server

from mha_viz.app.serving import media_addresses, messages, sweeping
from mha_viz.app.serving.streamlit_parts import PARTS, install_parts
from mha_viz.errors import SettingError
from mha_viz.library_parts import TESTED_VERSIONS, LibraryPart, check_parts, find_losses
from mha_viz.models.transformers_parts import PARTS as MODEL_PARTS
from tests.app_server import AppServer
from tests.imports import ROOT, parsed
from tests.waiting import PATIENCE
from tests.web_session import run as run_async

pytestmark = pytest.mark.app
Patch = pytest.MonkeyPatch
REPLACED = [part for part in PARTS if part.made_by]


def restored(patch: Patch) -> None:
    """Have everything that is replaced as it is now after the test."""
    for part in REPLACED:
        owner = pkgutil.resolve_name(part.owner)
        patch.setattr(owner, part.name, getattr(owner, part.name))


# ---- What each replacement is for ------------------------------------------------------------------------


def check_timers(patch: Patch) -> None:
    """A timed rerun waits for what has not been sent. ``running``: a run has ended, which accepts no more requests, and
    its messages wait on the event loop."""
    for timed, running, begun in ((1, 0, 1), (0, 1, 1), (0, 0, 1), (1, 1, 0)):
        ended = SimpleNamespace(request_rerun=lambda _: False, request_stop=lambda: None)
        runs: list[object] = []
        session = SimpleNamespace(
            _state=None,
            _scriptrunner=ended if running else None,
            has_fragment=lambda _: True,
            _create_scriptrunner=runs.append,
        )
        state = ClientState(fragment_id="progress" if timed else "", is_auto_rerun=bool(timed))
        AppSession.request_rerun(session, state)
        assert len(runs) == begun


def check_messages(patch: Patch) -> None:
    """A run relies on what the last few runs have sent or relied on."""
    asked: list[list[str]] = []
    session: Any = SimpleNamespace(
        _state=None,
        _scriptrunner=None,
        _browser_queue=SimpleNamespace(enqueue=lambda _: None),
        _message_enqueued_callback=None,
        _create_scriptrunner=lambda run: asked.append(sorted(run.cached_message_hashes)),
    )

    def run(*sent: ForwardMsg) -> list[str]:
        AppSession.request_rerun(session, ClientState(cached_message_hashes=["a", "b", "unknown"]))
        for msg in (*sent, ForwardMsg(script_finished=ForwardMsg.FINISHED_SUCCESSFULLY)):
            AppSession._enqueue_forward_msg(session, msg)
        return asked[-1]

    def large(name: str) -> ForwardMsg:
        msg = ForwardMsg(hash=name)
        msg.metadata.cacheable = True
        return msg

    assert run(large("a"), large("b"), ForwardMsg(hash="small")) == []
    for _ in range(messages.MAX_RUNS - 1):
        assert run() == ["a", "b"]
    assert run(ForwardMsg(ref_hash="b")) == ["a", "b"]
    assert run() == ["b"]
    AppSession.request_rerun(session, None)
    assert asked[-1] == []


def check_widgets(patch: Patch) -> None:
    """A run that ends may add a control while the next looks through them."""
    states, names = WStates({"one": Value(1), "two": Value(2)}), []
    for name in states:
        states[f"after {name}"] = Value(0)
        names.append(name)
    assert names == ["one", "two"]


def check_names(patch: Patch) -> None:
    """A file has one name in all runs, by which it can be made."""
    files = MediaFileManager(MemoryMediaFileStorage("/media"))

    def offer(content: str, button: str) -> str:
        return files.add_deferred(lambda: content, "text/csv", coordinates="0.1", element_id=button)

    first, other, again = offer("old", "save"), offer("another", "other"), offer("new", "save")
    assert first == again != other
    address = files.execute_deferred(first)
    assert files._storage.get_file(address.rpartition("/")[2]).content == b"new"  # type: ignore[attr-defined]


def check_waiting(patch: Patch) -> None:
    """A file is made of what the run that is under way has drawn."""
    files, drawn = MediaFileManager(MemoryMediaFileStorage("/media")), ["old"]
    session: Any = SimpleNamespace(_scriptrunner="a run")
    sessions = SimpleNamespace(get_active_session_info=lambda _: SimpleNamespace(session=session))
    patch.setattr(Runtime, "instance", lambda: SimpleNamespace(_session_mgr=sessions))
    name = files.add_deferred(lambda: drawn[0], "text/csv", coordinates="0.1", element_id="save")
    asked = BackendOperationRequest(request_id="one")
    asked.deferred_file.file_id = name

    async def click() -> str:
        made = asyncio.create_task(DeferredFileHandler(lambda: files).handle(asked, "session"))
        await asyncio.sleep(0.15)
        drawn[0], session._scriptrunner = "new", None
        return str((await made).deferred_file.url)

    address = run_async(click())
    assert files._storage.get_file(address.rpartition("/")[2]).content == b"new"  # type: ignore[attr-defined]


def check_fetched(patch: Patch) -> None:
    """A file that was made stays until it can have been fetched, however many pages others run."""
    now = [1000.0]
    patch.setattr(sweeping.time, "monotonic", lambda: now[0])
    storage = MemoryMediaFileStorage("/media")
    files = MediaFileManager(storage)

    def make() -> str:
        asked = files.add_deferred(lambda: b"a,b\n", "text/csv", coordinates="0.1", file_name="a.csv")
        return files.execute_deferred(asked)

    def is_there_after(seconds: float) -> bool:
        for later in (0.0, 0.0, seconds, 0.0):
            now[0] += later
            files.remove_orphaned_files()
        try:
            return bool(storage.get_file(address.rpartition("/")[2]).content)
        except MediaFileStorageError:
            return False

    address = make()
    assert is_there_after(sweeping.FETCH_S - 1)
    assert make() == address  # another visitor asks for the same: it waits anew
    assert is_there_after(sweeping.FETCH_S - 1)
    assert not is_there_after(2)


def check_sessions(patch: Patch) -> None:
    """Sessions that nobody returns to are shut down."""
    manager = WebsocketSessionManager(MemorySessionStorage(), *[None] * 3)  # type: ignore[arg-type]
    ended: list[str] = []
    patch.setattr(sweeping.time, "monotonic", lambda: 1000.0)
    session = SimpleNamespace(id="one", shutdown=lambda: ended.append("one"))
    manager._session_storage.save(SimpleNamespace(session=session))
    patch.setattr(sweeping.time, "monotonic", lambda: 1001.0 + config.get_option("server.disconnectedSessionTTL"))
    assert isinstance(manager._session_storage, sweeping.WaitingSessions)
    manager._session_storage.end_expired()
    assert ended == ["one"]


def check_limits(patch: Patch) -> None:
    """uvicorn has the limits of this server."""
    options = starlette_server._get_uvicorn_config_kwargs()
    assert getattr(options.get("http"), "__name__", "") == "Bounded"
    assert options["ws_max_size"] == 2_000_000


def check_addresses(patch: Patch) -> None:
    """The address of a download does not tell its content to whoever can guess it; equal files have one."""

    def address(content: bytes, name: str = "grid.csv") -> str:
        return MemoryMediaFileStorage("/media").load_and_get_id(content, "text/csv", MediaFileKind.DOWNLOADABLE, name)

    here = address(b"a,b\n1,2\n")
    assert len(here) == 2 * media_addresses.BYTES
    assert here == address(b"a,b\n1,2\n")
    assert len({here, address(b"a,b\n1,3\n"), address(b"a,b\n1,2\n", "other.csv")}) == 3
    with patch.context() as other:
        other.setattr(media_addresses, "_secret", b"that of another process")
        assert address(b"a,b\n1,2\n") != here


CHECKS: dict[str, Callable[[Patch], None]] = {
    "mha_viz.app.serving.timers:patch_timer_reruns": check_timers,
    "mha_viz.app.serving.messages:patch_message_cache": check_messages,
    "mha_viz.app.serving.messages:record_sent_messages": check_messages,
    "mha_viz.app.serving.widgets:patch_widget_iteration": check_widgets,
    "mha_viz.app.serving.click_downloads:name_files_by_button": check_names,
    "mha_viz.app.serving.click_downloads:wait_for_rerun": check_waiting,
    "mha_viz.app.serving.sweeping:keep_unfetched_files": check_fetched,
    "mha_viz.app.serving.sweeping:store_waiting_sessions": check_sessions,
    "mha_viz.app.serving.connections:limit_connections": check_limits,
    "mha_viz.app.serving.media_addresses:make_addresses_unguessable": check_addresses,
}


def alone(part: LibraryPart) -> list[LibraryPart]:
    """Return what is installed together with it."""
    return [other for other in REPLACED if other.loss == part.loss] if part.loss else [part]


@pytest.mark.parametrize("order", [alone, lambda _: PARTS, lambda _: PARTS[::-1]], ids=["alone", "all", "reversed"])
@pytest.mark.parametrize("part", REPLACED, ids=lambda part: part.made_by.rpartition(":")[2])
def test_each_replacement_does_its_work_alone_and_among_all(
    part: LibraryPart, order: Callable[[LibraryPart], list[LibraryPart]], monkeypatch: Patch
) -> None:
    restored(monkeypatch)
    with monkeypatch.context() as patch, pytest.raises((AssertionError, RuntimeError)):
        CHECKS[part.made_by](patch)  # Streamlit's own does not
    install_parts(order(part))
    CHECKS[part.made_by](monkeypatch)


def test_browsers_keep_messages_for_longer() -> None:
    """Runs may end while a browser's request is on its way."""
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))
    assert settings["global"]["maxCachedMessageAge"] >= 2 * messages.MAX_RUNS


# ---- What is not there -----------------------------------------------------------------------------------


def remove(part: LibraryPart, patch: Patch) -> None:
    """Remove a name from Streamlit, as if it were called otherwise."""
    owner = pkgutil.resolve_name(part.owner)
    kinds = getattr(owner, "__mro__", (owner,))
    for kind in kinds:
        if part.name in vars(kind) and kind is not object:
            patch.delattr(kind, part.name)
        declared = vars(kind).get("__annotations__", {})
        if part.name in declared:
            patch.delitem(declared, part.name)
        for member in vars(kind).values():
            code = getattr(member, "__code__", None)
            if isinstance(member, FunctionType) and part.name in code.co_names:
                names = tuple(f"{name}_" if name == part.name else name for name in code.co_names)
                patch.setattr(member, "__code__", code.replace(co_names=names))


@pytest.mark.parametrize("part", dict.fromkeys(PARTS), ids=lambda part: f"{part.label} {part.loss[:20]}")
def test_a_missing_part_is_refused_if_it_protects_and_otherwise_left_out(
    part: LibraryPart, monkeypatch: Patch, caplog: pytest.LogCaptureFixture
) -> None:
    restored(monkeypatch)
    with monkeypatch.context() as patch:
        remove(part, patch)
        if not part.loss:
            with pytest.raises(SettingError) as refused:
                check_parts(PARTS)
            package = part.package
            assert f'pip install "{package}{TESTED_VERSIONS[package]}"' in str(refused.value)
            return
        check_parts([one for one in PARTS if one.label != part.label])
        assert part.loss in find_losses(PARTS)
        with caplog.at_level(logging.WARNING):
            install_parts([one for one in PARTS if one.loss in ("", part.loss)])
        assert [part.loss in record.getMessage() for record in caplog.records] == [True]
        assert "\n" not in caplog.text.strip()
    for one in REPLACED:
        has_changed = hasattr(getattr(pkgutil.resolve_name(one.owner), one.name), "__wrapped__")
        assert has_changed == (one.loss == "") or one.name in ("request_rerun", part.name)


def test_other_arguments_are_noticed(monkeypatch: Patch) -> None:
    for part in PARTS:
        if part.made_by or part.arguments:
            with monkeypatch.context() as patch:
                patch.setattr(pkgutil.resolve_name(part.owner), part.name, lambda self, something_new: None)
                if part.loss:
                    assert part.loss in find_losses(PARTS)
                else:
                    with pytest.raises(SettingError):
                        check_parts(PARTS)


START = """
import runpy, sys
{change}
sys.argv = ["-m", *sys.argv[1:]]
runpy.run_module("mha_viz.app.serving", run_name="__main__")
"""
SERVER = "from streamlit.web.server.starlette import starlette_server as it; del it._get_uvicorn_config_kwargs"
HANDLER = """
from streamlit.runtime.backend_operation_handler import DeferredFileHandler as It
async def handle(self, request, session_id, more=None): pass
It.handle = handle
"""


def test_a_server_without_what_protects_does_not_start() -> None:
    command = [sys.executable, "-c", START.format(change=SERVER), "--server.headless", "true"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.count("\n") == 1
    assert "has no starlette_server._get_uvicorn_config_kwargs" in ended.stderr
    assert f"streamlit{TESTED_VERSIONS['streamlit']}" in ended.stderr


class _Changed(AppServer):
    """A server whose Streamlit makes files by a function with other arguments."""

    def __enter__(self) -> AppServer:
        module = self.folder / "changed.py"
        module.write_text(START.format(change=HANDLER))
        self._extra["PYTHONPATH"], self.program = f"{self.folder}:{ROOT}", ("changed",)
        return super().__enter__()


def test_a_server_without_what_improves_starts_and_says_what_is_lost(tmp_path: Path) -> None:
    with _Changed(tmp_path) as server:
        log = server.log()
    assert log.count("DeferredFileHandler.handle") == 1, log
    assert "Traceback" not in log


# ---- The table is whole ----------------------------------------------------------------------------------


def test_all_parts_are_there_now_and_each_row_says_something_of_its_own() -> None:
    check_parts(PARTS)
    assert find_losses(PARTS) == {}
    assert [row for row, count in Counter(PARTS).items() if count > 1] == []
    assert {part.made_by for part in REPLACED} == set(CHECKS)


def test_the_package_asks_for_the_versions_that_were_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = {one.name: one.specifier for one in map(Requirement, project["dependencies"])}
    assert {part.package for part in (*PARTS, *MODEL_PARTS)} == TESTED_VERSIONS.keys()
    for package, versions in TESTED_VERSIONS.items():
        assert asked[package] == SpecifierSet(versions)
        assert version(package) in asked[package]
        for file in ("requirements.txt", "deploy/requirements.lock"):
            pinned = re.findall(rf"^{package}==([\d.]+)", (ROOT / file).read_text("utf-8"), re.MULTILINE)
            assert len(pinned) == 1 or package == "torch", file  # the image installs it apart
            assert all(one in asked[package] for one in pinned), file


def test_every_name_that_is_taken_from_inside_streamlit_has_a_row() -> None:
    imported = {(part.owner, part.name) for part in PARTS}
    names = {part.name for part in PARTS}
    missing = [
        found
        for path in sorted((ROOT / "mha_viz").rglob("*.py"))
        for found in taken_from(parsed(path.read_text("utf-8")))
        if (found not in imported if isinstance(found, tuple) else found not in names)
    ]
    assert missing == []


def taken_from(tree: ast.Module) -> Iterator[tuple[str, str] | str]:
    """Names imported from Streamlit's modules, and private attributes of what is not this module's own, in modules that
    import Streamlit."""
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    inside = [node for node in froms if str(node.module).startswith(("streamlit.", "uvicorn."))]
    for node in inside:
        yield from ((str(node.module), name.name) for name in node.names)
    defined = {
        node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    defined |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_own(node)}
    attributes = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)] if inside else []
    yield from (name for name in attributes if name.startswith("_") and name not in defined and name[:2] != "__")


def is_own(node: ast.Attribute) -> bool:
    """Whether it is set on the object itself."""
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls") and isinstance(node.ctx, ast.Store)
