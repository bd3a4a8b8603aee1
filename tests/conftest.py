"""Shared fixtures. Models are built or loaded once per session, and only if a test uses them."""

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


# Torch's threads spin while they wait for each other. With two workers, their servers and Chromium on two cores, a
# forward pass of a small model costs twenty times as much CPU time with two threads as with one. Therefore this process
# and its children use one thread; if a test asks for several, they sleep while they wait.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

LOADED_BEFORE = pytest.StashKey[set[str]]()  # large libraries that were loaded before a test


gc.disable()  # until all tests are collected, because imported objects stay alive


def pytest_report_header() -> list[str]:
    return [f"not tested with {name} (requirements-bench.txt), which is not installed" for name in libraries.MISSING]


def pytest_collection_finish() -> None:
    if "torch" in lanes.list_loaded():
        from tests.opened_once import open_once

        open_once()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # tests make many short-lived objects
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run all combinations of cases: see tests/lanes.py")
    parser.addoption(
        "--shuffle", type=int, default=0, metavar="SEED", help="run modules, and their tests, in random order"
    )


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

    If a test is run again, print its complete first failure, because the summary does not contain it.
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
    """Let property tests use the same few examples each time, or many new ones with ``--all``.

    Slow examples do not count as failures, because the machine may be busy.
    """
    examples = 100 if lanes.everything else 30
    settings.register_profile("lane", deadline=None, derandomize=not lanes.everything, max_examples=examples)
    settings.load_profile("lane")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """In the lane ``unit``, skip modules of other lanes, so that they are not imported."""
    if collection_path.suffix != ".py" or not config.getoption("markexpr").startswith("unit"):
        return None
    return None if collection_path.stem in lanes.UNIT else True


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    loaded_before = lanes.list_loaded()
    report = yield
    if (
        isinstance(collector, pytest.Module)
        and collector.path.stem in lanes.UNIT
        and (new := lanes.list_loaded() - loaded_before)
    ):
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} is in lanes.UNIT and imports {', '.join(sorted(new))}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Function]) -> Generator[None, None, None]:
    """Put every test into one lane (the markers in pyproject.toml), and order the tests.

    Tests that run pages or servers are recognized by the imports of their module, and pure modules by lanes.UNIT;
    others in ``app`` are marked explicitly. A browser test that fails runs once more, because a busy machine may delay
    a browser anywhere; the summary names it, and its first failure is printed above.
    """
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.flaky(reruns=1))  # the summary names tests that were run again
        elif item.get_closest_marker("app") or lanes.RUN_THE_APP & vars(item.module).keys():
            item.add_marker(pytest.mark.app)
        elif item.path.stem in lanes.UNIT:
            item.add_marker(pytest.mark.unit)
        else:
            item.add_marker(pytest.mark.models)
    yield  # pytest deselects tests by -m
    if seed := config.getoption("--shuffle"):
        items[:] = shuffle_tests(items, seed)
    else:
        items[:] = order_in_shares(items, getattr(config, "workerinput", {}).get("workercount", 1))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    item.stash[LOADED_BEFORE] = lanes.list_loaded()
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Check that no test of the lane ``unit``, and none of its fixtures, loads a large library."""
    yield
    if item.get_closest_marker("unit") and (new := lanes.list_loaded() - item.stash[LOADED_BEFORE]):
        pytest.fail(f"{', '.join(sorted(new))} was loaded by a test of a module in lanes.UNIT", pytrace=False)


@pytest.fixture
def packing() -> None:
    """Skip the test if this build of PyTorch cannot pack weights.

    Fail on x86-64, where every build with oneDNN can.
    """
    import torch

    from mha_viz.models.reading import linear

    if not linear.is_available():
        is_required = torch.backends.mkldnn.is_available() and platform.machine() in ("x86_64", "AMD64")
        assert not is_required
        pytest.skip("this build of PyTorch packs no weights")


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> list[Offer]:
    """Return a list that will contain the downloads offered by the next page."""
    from mha_viz.app.widgets import download_panel

    offers: list[Offer] = []

    def record(make_offers: Callable[[], Sequence[Offer]], everything: object = None, archive: str = "") -> None:
        offers[:] = make_offers()

    monkeypatch.setattr(download_panel, "_show_expander", record)
    return offers


@pytest.fixture
def effects_offered(offered: list[Offer]) -> Callable[[str], dict[str, float]]:
    """Return a function that reads the effect of each head, by name, from the downloads of a page with heads off.

    Its argument is the measured effect: on the "sentence" or on the "answer".
    """

    import csv

    from mha_viz.figures.layout import Size

    def effects(on: str) -> dict[str, float]:
        offer = next(offer for offer in offered if offer.file.startswith("effects_"))
        lines = offer.make(Size()).to_bytes(".csv").decode().splitlines()
        rows = csv.DictReader(line for line in lines if not line.startswith("#"))
        return {row["head"]: float(row[f"effect_on_{on}"]) for row in rows}

    return effects


@pytest.fixture(scope="session")
def minilm() -> Encoder:
    """Return the bundled BERT."""
    from mha_viz.models.reading.loading import load_one_stack

    return load_one_stack("minilm")


@pytest.fixture(scope="session")
def toy() -> Encoder:
    """Return the toy model, which is trained on the built-in grammar."""
    from mha_viz.models.reading.loading import load_one_stack

    return load_one_stack("toy")


@pytest.fixture(scope="session")
def live_toy(toy: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the read-only folder of a live page with the toy model, split into several files like a large model."""
    from tests.live_pages import write_in_parts

    return make_once(tmp_path_factory, "live-toy", lambda folder: write_in_parts(toy, folder))


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that writes a small model of a family with random weights, and returns its folder.

    The folders are read-only: copy them before changing them.
    """
    from tests import tiny_models

    root = tmp_path_factory.mktemp("tiny")
    return cache(lambda family: tiny_models.build(family, root / family))


@pytest.fixture(scope="session")
def tiny(tiny_folder: Callable[[str], Path]) -> Callable[[str], Encoder]:
    """Return a function that opens the model of ``tiny_folder``."""

    from mha_viz.models.reading.loading import from_folder, load_one_stack

    return cache(lambda family: load_one_stack(from_folder(tiny_folder(family))))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Yield a real Chromium, shared by all browser tests."""
    from playwright.sync_api import sync_playwright

    from tests.app_server import find_chromium

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        arguments += ["--process-per-site"]  # tabs of one profile share a process and its compiled scripts
        # Background threads for compilation, garbage collection and drawing would cost a quarter more CPU time, and
        # optimizing compilers a tenth, although tabs live only for seconds.
        arguments += ["--js-flags=--single-threaded --no-opt --no-maglev"]
        arguments += ["--in-process-gpu", "--num-raster-threads=1"]
        arguments += [
            "--disable-checker-imaging"
        ]  # pictures are decoded before they are painted, so that they are painted once
        chromium = playwright.chromium.launch(executable_path=find_chromium(), args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """Yield the app's server, shared by all tests that visit it; afterwards, check that its log contains no error."""
    from tests.app_server import PatientServer

    with PatientServer(tmp_path_factory.mktemp("server")) as running:
        yield running
        assert running.faults() == []


@pytest.fixture(scope="session")
def profile(server: AppServer, browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """Yield a function that returns the profile shared by all visitors with the same browser options.

    Its cache saves later tabs the download and compilation of the page's files. One tab stays open, because otherwise
    each test would start a new window and process.
    """
    from tests.browser_tab import IDLE, new_profile

    profiles: dict[str, BrowserContext] = {}

    def get_profile(**options: Any) -> BrowserContext:
        name = repr(sorted(options.items()))
        if name not in profiles:
            profiles[name] = new_profile(browser, **options)
            profiles[name].new_page().goto(f"{server.url}{IDLE}")
        return profiles[name]

    yield get_profile
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

    Afterwards, check that none of them had an error or called another host. A visitor made with ``alone`` has a
    separate profile without cookies, storage and cache.
    """
    from tests.browser_tab import TAB_OPTIONS, BrowserTab, new_profile

    visitors: list[BrowserTab] = []
    separate: list[BrowserContext] = []

    def make_visitor(url: str = server.url, *, alone: bool = False, **options: Any) -> BrowserTab:
        tab_options = {name: options.pop(name) for name in TAB_OPTIONS if name in options}
        if alone:
            separate.append(new_profile(browser, **options))
        visitors.append(BrowserTab(separate[-1] if alone else profile(**options), url, **tab_options))
        return visitors[-1]

    yield make_visitor
    for visitor in visitors:
        visitor.leave()
    for context in separate:
        context.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Yield a tab in a separate profile, for pages outside the app."""
    from tests.browser_tab import PATIENCE

    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    tab.set_default_timeout(PATIENCE)
    yield tab
    context.close()


@pytest.fixture(scope="module")
def sheet_profile(browser: Browser) -> Iterator[BrowserContext]:
    """Yield the profile for comparisons on empty pages."""
    from tests.compare_sheet import load_profile

    with load_profile(browser) as context:
        yield context


@pytest.fixture
def sheet(sheet_profile: BrowserContext) -> Iterator[Callable[..., Sheet]]:
    """Yield a function that opens comparisons on an empty page; afterwards, check for errors and requests."""
    from tests.compare_sheet import sheets

    with sheets(sheet_profile) as open_sheet:
        yield open_sheet


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
    """Make the Hub unreachable and the cache empty."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # the discard port: nothing listens
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("MHA_VIZ_MODELS", raising=False)


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Set up an empty folder for measurements, so that pages have no earlier ones.

    Measurements that are still running at the end are stopped. The links of heads in the built-in sentences take
    seconds to compute and stay cached.
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

    This is for tests of the results. Other tests check that a child process gives the same results and has limits.
    """
    from mha_viz.process import children
    from mha_viz.study import child, head_child

    run_child, works = children.run, {module.__name__: module.work for module in (child, head_child)}

    def run(module: str, order: Any, bounds: Any, progress: Any = print, cancelled: Any = bool) -> Any:
        work = works.get(module)
        return work(order, progress, cancelled) if work else run_child(module, order, bounds, progress, cancelled)

    monkeypatch.setattr(children, "run", run)


@pytest.fixture
def silent_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Check that the log contains no traceback."""
    yield
    assert [r.getMessage() for r in caplog.records if r.exc_info or r.levelno >= logging.ERROR] == []


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for downloaded models, which does not exist yet, and reset all settings to their defaults."""
    from mha_viz.models.getting import budget, catalog, hub

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for setting in (hub.SIZE_SETTING, budget.SETTING, catalog.SETTING, catalog.ACCESS):
        monkeypatch.delenv(setting, raising=False)
    return tmp_path / "cache"


@pytest.fixture
def hub(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """Yield a Hub on this machine, to which tests add models. Downloads run in this process instead of a child."""
    from mha_viz.models.getting import hub as hub_module
    from tests.fake_hub import FakeHub

    def run_here(module: str, order: object, _: object, progress: ReportProgress, __: IsCancelled) -> Any:
        return import_module(module).work(order, progress, lambda: False)

    monkeypatch.setattr(hub_module, "run", run_here)
    with FakeHub() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running
    for thread in threading.enumerate():
        if thread.name.startswith("fetch "):  # an abandoned download, which still reserves disk space
            thread.join(PATIENCE)
            assert not thread.is_alive()


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Use one thread, which computes small matrices faster than several that wait for each other."""
    import torch

    thread_count = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(thread_count)
