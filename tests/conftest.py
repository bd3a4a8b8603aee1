"""Shared fixtures. Models are built or loaded once per session, and only for tests that ask for them."""

from __future__ import annotations

import gc
import logging
import os
import platform
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests import lanes, libraries
from tests.made_once import make_once
from tests.ordering import order_in_shares, shuffle_tests
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

    from mha_viz.app.widgets.download_panel import Offer
    from mha_viz.attention import Attention
    from mha_viz.models.reading.encoder import Encoder
    from mha_viz.process.children import IsCancelled, ReportProgress
    from tests.app_server import AppServer
    from tests.browser_tab import BrowserTab
    from tests.compare_sheet import Sheet
    from tests.fake_hub import FakeHub


# Torch's threads spin while they wait for each other. With two workers, their servers and Chromium on two cores, a pass
# of a small model costs twenty times as much CPU with two threads as with one. This process and those it starts use one
# thread; if a test asks for several, they sleep while they wait.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

LOADED = pytest.StashKey[set[str]]()  # the large libraries that were loaded before a test


gc.disable()  # off until all tests are collected, because imported objects stay and looking through them is useless


def pytest_report_header() -> list[str]:
    return [f"not tested with {name}, which requirements-bench.txt has" for name in libraries.MISSING]


def pytest_collection_finish() -> None:
    if "torch" in lanes.list_loaded():
        from tests.opened_once import open_once

        open_once()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # tests make many short-lived objects
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="every case of what is multiplied: see tests/lanes.py")
    parser.addoption("--shuffle", type=int, default=0, metavar="SEED", help="modules, and tests in each, in this order")


def pytest_configure(config: pytest.Config) -> None:
    """Set up the process before test modules are imported.

    A job that a shell starts in the background ignores Ctrl-C, and so would every process that a test starts.
    """
    lanes.everything = config.getoption("--all")
    _choose_examples()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session: pytest.Session) -> None:
    if reporter := session.config.pluginmanager.get_plugin("terminalreporter"):
        session.config.pluginmanager.register(_NameFailures(reporter))


class _NameFailures:
    """Print a line for each failure at once, because a run that is stopped prints no summary.

    For a test that runs again, print the whole failure, because the summary lacks it.
    """

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome in ("failed", "rerun"):
            lines = report.longreprtext.splitlines()
            reason = next((line[1:].strip() for line in lines if line.startswith("E ")), lines[-1] if lines else "")
            seconds = f"{report.outcome} after {report.duration:.0f} s"
            self._reporter.write_line(f"\n{seconds}: {report.nodeid}: {reason[:200]}")
            if report.outcome == "rerun":
                self._reporter.write_line(report.longreprtext)


def _choose_examples() -> None:
    """Give property tests the same few examples each time, or many new ones with ``--all``.

    A slow example is no fault of the code: the machine may be busy.
    """
    examples = 100 if lanes.everything else 30
    settings.register_profile("lane", deadline=None, derandomize=not lanes.everything, max_examples=examples)
    settings.load_profile("lane")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip modules of other lanes in the lane for every save, so that they are not imported."""
    if collection_path.suffix != ".py" or not config.getoption("markexpr").startswith("unit"):
        return None
    return None if collection_path.stem in lanes.UNIT else True


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    before = lanes.list_loaded()
    report = yield
    if (
        isinstance(collector, pytest.Module)
        and collector.path.stem in lanes.UNIT
        and (new := lanes.list_loaded() - before)
    ):
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} is in lanes.UNIT and imports {', '.join(sorted(new))}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Function]) -> Generator[None, None, None]:
    """Put every test into one lane (the markers in pyproject.toml), and order the tests.

    Tests that run pages or servers are recognised by the imports of their module, and pure modules by lanes.UNIT;
    others in ``app`` are marked explicitly. A browser test that fails runs once more, because a busy machine may hold a
    browser up anywhere; the summary names it, and its first failure stands above.
    """
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.flaky(reruns=1))  # the summary names what was run again
        elif item.get_closest_marker("app") or lanes.RUN_THE_APP & vars(item.module).keys():
            item.add_marker(pytest.mark.app)
        elif item.path.stem in lanes.UNIT:
            item.add_marker(pytest.mark.unit)
        else:
            item.add_marker(pytest.mark.models)
    yield  # -m chooses
    if seed := config.getoption("--shuffle"):
        items[:] = shuffle_tests(items, seed)
    else:
        items[:] = order_in_shares(items, getattr(config, "workerinput", {}).get("workercount", 1))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    item.stash[LOADED] = lanes.list_loaded()
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Check that no test of the lane for every save, nor its fixtures, loads a large library."""
    yield
    if item.get_closest_marker("unit") and (new := lanes.list_loaded() - item.stash[LOADED]):
        pytest.fail(f"{', '.join(sorted(new))} was loaded by a test of a module in lanes.UNIT", pytrace=False)


@pytest.fixture
def packing() -> None:
    """Skip the test if weights cannot be packed.

    On x86-64, where every build of PyTorch with oneDNN can pack them, packing is required.
    """
    import torch

    from mha_viz.models.reading import linear

    if not linear.is_available():
        must = torch.backends.mkldnn.is_available() and platform.machine() in ("x86_64", "AMD64")
        assert not must
        pytest.skip("this build of PyTorch packs no weights")


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> list[Offer]:
    """Return the downloads that the next visited page offers."""
    from mha_viz.app.widgets import download_panel

    made: list[Offer] = []

    def keep(make_offers: Callable[[], Sequence[Offer]], everything: object = None, archive: str = "") -> None:
        made[:] = make_offers()

    monkeypatch.setattr(download_panel, "_show_expander", keep)
    return made


@pytest.fixture
def effects_offered(offered: list[Offer]) -> Callable[[str], dict[str, float]]:
    """Return a function that reads the effect of each head, by name, from the table of a page with heads off.

    The function takes what is measured: "sentence" or "answer".
    """

    import csv

    from mha_viz.figures.layout import Size

    def effects(on: str) -> dict[str, float]:
        offer = next(one for one in offered if one.file.startswith("effects_"))
        lines = offer.make(Size()).to_bytes(".csv").decode().splitlines()
        rows = csv.DictReader(line for line in lines if not line.startswith("#"))
        return {row["head"]: float(row[f"effect_on_{on}"]) for row in rows}

    return effects


@pytest.fixture(scope="session")
def minilm() -> Encoder:
    """Return the pretrained BERT that comes with the app."""
    from mha_viz.models.reading.loading import load_one_stack

    return load_one_stack("minilm")


@pytest.fixture(scope="session")
def toy() -> Encoder:
    """Return the model of the built-in grammar."""
    from mha_viz.models.reading.loading import load_one_stack

    return load_one_stack("toy")


@pytest.fixture(scope="session")
def live_toy(toy: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a page with the toy model, split into parts as a large model would be. Read only."""
    from tests.live_pages import write_in_parts

    return make_once(tmp_path_factory, "live-toy", lambda folder: write_in_parts(toy, folder))


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that makes the folder of a small random-weight model of a family.

    The folder is read only: copy it before you change it.
    """
    from tests import tiny_models

    root = tmp_path_factory.mktemp("tiny")
    return cache(lambda family: tiny_models.build(family, root / family))


@pytest.fixture(scope="session")
def tiny(tiny_folder: Callable[[str], Path]) -> Callable[[str], Encoder]:
    """Return a function that opens the encoder of such a model."""

    from mha_viz.models.reading.loading import from_folder, load_one_stack

    return cache(lambda family: load_one_stack(from_folder(tiny_folder(family))))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Yield a real Chromium, shared by all tests of pages."""
    from playwright.sync_api import sync_playwright

    from tests.app_server import find_chromium

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        arguments += ["--process-per-site"]  # tabs of one profile share a process and its compiled scripts
        # Threads that compile, collect and draw ahead cost a quarter more, and nobody waits for what they make; code
        # that is made fast for a long life costs a tenth, and tabs live for seconds.
        arguments += ["--js-flags=--single-threaded --no-opt --no-maglev"]
        arguments += ["--in-process-gpu", "--num-raster-threads=1"]
        arguments += [
            "--disable-checker-imaging"
        ]  # a picture is decoded before it is painted, so that it is painted once
        started = playwright.chromium.launch(executable_path=find_chromium(), args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """Yield the app's server, shared by all tests that visit it. Its log must contain no fault."""
    from tests.app_server import PatientServer

    with PatientServer(tmp_path_factory.mktemp("server")) as running:
        yield running
        assert running.faults() == []


@pytest.fixture(scope="session")
def profile(server: AppServer, browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """Yield a function that returns the profile of all visitors whose browsers have these options.

    The profile is made for the first of them; its cache spares each further tab the download and the compilation of the
    page's files. One tab stays open, because otherwise each test would begin with a new window and a new process.
    """
    from tests.browser_tab import IDLE, new_profile

    profiles: dict[str, BrowserContext] = {}

    def of(**options: Any) -> BrowserContext:
        name = repr(sorted(options.items()))
        if name not in profiles:
            profiles[name] = new_profile(browser, **options)
            profiles[name].new_page().goto(f"{server.url}{IDLE}")
        return profiles[name]

    yield of
    for context in profiles.values():
        context.close()


@pytest.fixture(scope="session")
def desktop(profile: Callable[..., BrowserContext]) -> BrowserContext:
    """Return the default visitor's profile."""
    return profile()


@pytest.fixture
def newcomer(
    server: AppServer, browser: Browser, profile: Callable[..., BrowserContext]
) -> Iterator[Callable[..., BrowserTab]]:
    """Yield a function that makes visitors.

    Afterwards, check that none of them met an error or called another host. A visitor who comes ``alone`` has a
    separate profile without cookies, storage and cache.
    """
    from tests.browser_tab import TAB_OPTIONS, BrowserTab, new_profile

    visitors: list[BrowserTab] = []
    single: list[BrowserContext] = []

    def come(url: str = server.url, *, alone: bool = False, **options: Any) -> BrowserTab:
        of_tab = {name: options.pop(name) for name in TAB_OPTIONS if name in options}
        if alone:
            single.append(new_profile(browser, **options))
        visitors.append(BrowserTab(single[-1] if alone else profile(**options), url, **of_tab))
        return visitors[-1]

    yield come
    for visitor in visitors:
        visitor.leave()
    for context in single:
        context.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Yield a tab in a profile of its own, for pages that are not the app's."""
    from tests.browser_tab import PATIENCE

    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    yield opened
    context.close()


@pytest.fixture(scope="module")
def sheet_profile(browser: Browser) -> Iterator[BrowserContext]:
    """Yield the profile for comparisons on empty pages."""
    from tests.compare_sheet import load_profile

    with load_profile(browser) as context:
        yield context


@pytest.fixture
def sheet(sheet_profile: BrowserContext) -> Iterator[Callable[..., Sheet]]:
    """Yield a function that makes comparisons on empty pages.

    Afterwards, check that none of them met an error or requested anything.
    """
    from tests.compare_sheet import sheets

    with sheets(sheet_profile) as come:
        yield come


@pytest.fixture(scope="session")
def wide(minilm: Encoder) -> Attention:
    """Return the reading of the first example with its last word replaced."""
    from tests.compare_sheet import TIRED

    return minilm.encode(TIRED.replace("tired", "wide"))


@pytest.fixture
def visitor(newcomer: Callable[..., BrowserTab]) -> BrowserTab:
    """Return a visitor in the default profile."""
    return newcomer()


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Set up a Hub that refuses connections, and a cache without models."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # the discard port: nothing listens
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("MHA_VIZ_MODELS", raising=False)


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Set up a separate folder for measurements, so that no page knows an earlier one.

    Measurements that are still running at the end are stopped. Where heads point in the built-in sentences takes
    seconds to compute and stays cached.
    """
    from mha_viz.files.assets import HOME_VARIABLE
    from tests.new_server import restart_server

    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    restart_server("pointers")
    yield tmp_path / "home"
    restart_server("pointers")


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure and search corpora in this process, because a child process takes seconds to import its libraries.

    This is for tests of the results. Other tests show that a child process gives the same results and is limited.
    """
    from mha_viz.process import children
    from mha_viz.study import child, head_child

    usual, works = children.run, {module.__name__: module.work for module in (child, head_child)}

    def run(module: str, order: Any, bounds: Any, progress: Any = print, cancelled: Any = bool) -> Any:
        work = works.get(module)
        return work(order, progress, cancelled) if work else usual(module, order, bounds, progress, cancelled)

    monkeypatch.setattr(children, "run", run)


@pytest.fixture
def silent_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Check that the log contains no traceback."""
    yield
    assert [r.getMessage() for r in caplog.records if r.exc_info or r.levelno >= logging.ERROR] == []


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for downloaded models, which does not exist yet, on a server with default settings."""
    from mha_viz.models.getting import budget, catalog, hub

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for setting in (hub.SIZE_SETTING, budget.SETTING, catalog.SETTING, catalog.ACCESS):
        monkeypatch.delenv(setting, raising=False)
    return tmp_path / "cache"


@pytest.fixture
def hub(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """Yield a Hub on this machine with the models that a test adds.

    It is asked in this process, not in a child.
    """
    from mha_viz.models.getting import hub as hub_module
    from tests.fake_hub import FakeHub

    def here(module: str, order: object, _: object, progress: ReportProgress, __: IsCancelled) -> Any:
        return import_module(module).work(order, progress, lambda: False)

    monkeypatch.setattr(hub_module, "run", here)
    with FakeHub() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running
    for thread in threading.enumerate():
        if thread.name.startswith("fetch "):  # abandoned, and still holding its promised room
            thread.join(PATIENCE)
            assert not thread.is_alive()


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Use one thread, because it computes small matrices faster than several that wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
