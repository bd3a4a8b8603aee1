"""Follow a user's action through the code: count its function calls, its moves between files, and the files.

A move is a call in a different file from the previous call in the same thread. For a page, only the thread that runs it
counts, on a second visit, so that one-time work is left out. For the corpus, the threads of the client and of its two
workers count; the workers are threads here.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any

from benchmarks.results import Row, Sample, Target, write
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu
from tests.page_session import PageSession

ROOT = Path(__file__).resolve().parent.parent
SOURCES = tuple(str(ROOT / part) for part in ("mha_viz", "pages", "app.py"))
APP = str(ROOT / "app.py")
SENTENCES = 60
TRAY = '{"of": [["The cat sat.", "", "minilm", "", "", "L0H2", "zero"]], "heads": [["L3H1", 0, ""], ["L2H4", 0, ""]]}'
OTHER_TRAY = TRAY.replace("L0H2", "L1H8")
# Maximum moves and files. For pages they are goals; for the others, measured counts plus a tenth.
GOALS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "a typed sentence": (900, 48),
        "a changed view": (250, 30),
        "Compare with a head off": (400, 40),
        "a figure to PDF": (310, 31),
        "a corpus on two workers": (25_000, 78),
    }
)


@dataclass
class Walk:
    """The number of calls, of moves between files, and the files of one thread or of several."""

    calls: int = 0
    moves: int = 0
    files: set[str] = field(default_factory=set)
    last_file: str = ""

    def enter(self, file: str) -> None:
        """Record one more call."""
        self.calls += 1
        self.moves += file != self.last_file
        self.files.add(file)
        self.last_file = file


@contextmanager
def record_walks() -> Iterator[dict[int, Walk]]:
    """Record the calls of this thread and of all threads that start in the block; yield them by thread."""
    walks: dict[int, Walk] = {}

    def record_call(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and (file := frame.f_code.co_filename).startswith(SOURCES):
            walks.setdefault(threading.get_ident(), Walk()).enter(file)

    threading.setprofile(record_call)
    sys.setprofile(record_call)
    try:
        yield walks
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def record_page_walk(act: Callable[[], object]) -> Walk:
    """Return the walk of the thread that runs the page."""
    with record_walks() as walks:
        act()
    return max((walk for walk in walks.values() if APP in walk.files), key=lambda walk: walk.calls)


def record_full_walk(act: Callable[[], object]) -> Walk:
    """Return the walks of all threads together."""
    with record_walks() as walks:
        act()
    threads = walks.values()
    return Walk(sum(w.calls for w in threads), sum(w.moves for w in threads), set().union(*(w.files for w in threads)))


def walk_typed_sentence() -> Walk:
    """Record a visitor typing another sentence on Explore."""
    session = PageSession()
    session.read("The cat sat on the mat.")
    return record_page_walk(lambda: session.read("The dog sat on the rug."))


def walk_changed_view() -> Walk:
    """Record a visitor opening another head on Explore."""
    session = PageSession()
    session.view(head="L2H4")
    return record_page_walk(lambda: session.view(head="L3H5"))


def walk_ablated_heads() -> Walk:
    """Record Compare opening two heads of a reading with a head switched off."""
    page = "pages/20_compare.py"
    PageSession({"show": "tray", "tray": TRAY}, page)
    return record_page_walk(lambda: PageSession({"show": "tray", "tray": OTHER_TRAY}, page))


def walk_pdf() -> Walk:
    """Record a notebook saving a heatmap as PDF."""
    import mha_viz as mv

    attention = mv.load("toy").encode("the cat sees the dog")
    with tempfile.TemporaryDirectory() as folder:
        attention.heatmap("L1H1").save(Path(folder) / "first.pdf")
        return record_full_walk(lambda: attention.heatmap("L1H2").save(Path(folder) / "second.pdf"))


def walk_corpus() -> Walk:
    """Record two workers measuring a corpus.

    The workers are threads of this process, so that their calls can be recorded.
    """
    from distributed import Client

    import mha_viz as mv

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grammar.conllu"
        path.write_text(format_conllu(grammar.corpus(SENTENCES).sentences), "utf-8")

        def study() -> None:
            with Client(  # type: ignore[no-untyped-call]
                processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None
            ) as client:
                mv.profile(path, "toy", client=client)

        return record_full_walk(study)


WALKS: Mapping[str, Callable[[], Walk]] = MappingProxyType(
    {
        "a typed sentence": walk_typed_sentence,
        "a changed view": walk_changed_view,
        "Compare with a head off": walk_ablated_heads,
        "a figure to PDF": walk_pdf,
        "a corpus on two workers": walk_corpus,
    }
)


def main(results: Path, quick: bool = False) -> None:
    """Record all walks, print, write ``results/walks.json``. ``quick``: without the corpus."""
    rows = []
    for name, walk_function in WALKS.items():
        if quick and walk_function is walk_corpus:
            continue
        walk, (moves, files) = walk_function(), GOALS[name]
        for unit_name, count, limit in (("moves", walk.moves, moves), ("files", len(walk.files), files)):
            sample, target = Sample((float(count),)), Target("below", limit + 1)
            rows.append(Row(f"{name}: {unit_name}", sample, "", target=target, details={"calls": walk.calls}))
    write(results, "walks", "Through the code", "", rows, "calls of functions of this project")
