"""Measure how far one action of a person walks through the code: calls, moves from one file to another, and files.

A move is a call in another file than the call before it in the same thread. A visit of a page counts the thread that
runs the page, after a visit like it, so that what is made once is left out; the corpus counts the client's threads and
those of its two workers, which are threads here.
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
OURS = tuple(str(ROOT / part) for part in ("mha_viz", "pages", "app.py"))
APP = str(ROOT / "app.py")
SENTENCES = 60
OFF = '{"of": [["The cat sat.", "", "minilm", "", "", "L0H2", "zero"]], "heads": [["L3H1", 0, ""], ["L2H4", 0, ""]]}'
OTHER_OFF = OFF.replace("L0H2", "L1H8")
# Moves and files, at most. For pages, goals; for the others, what was counted, with a tenth to spare.
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
    """The calls of one thread, in order."""

    calls: int = 0
    moves: int = 0
    files: set[str] = field(default_factory=set)
    last: str = ""

    def enter(self, file: str) -> None:
        """Record one more call."""
        self.calls += 1
        self.moves += file != self.last
        self.files.add(file)
        self.last = file


@contextmanager
def record_walks() -> Iterator[dict[int, Walk]]:
    """Record the calls of this thread and of all threads that begin meanwhile; yield them by thread."""
    walks: dict[int, Walk] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and (file := frame.f_code.co_filename).startswith(OURS):
            walks.setdefault(threading.get_ident(), Walk()).enter(file)

    threading.setprofile(note)
    sys.setprofile(note)
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
    every = walks.values()
    return Walk(sum(w.calls for w in every), sum(w.moves for w in every), set().union(*(w.files for w in every)))


def walk_typed_sentence() -> Walk:
    """Walk: a visitor reads another sentence on Explore."""
    session = PageSession()
    session.read("The cat sat on the mat.")
    return record_page_walk(lambda: session.read("The dog sat on the rug."))


def walk_changed_view() -> Walk:
    """Walk: a visitor opens another head on Explore."""
    session = PageSession()
    session.view(head="L2H4")
    return record_page_walk(lambda: session.view(head="L3H5"))


def walk_ablated_heads() -> Walk:
    """Walk: Compare opens two heads of a reading with a head switched off."""
    page = "pages/20_compare.py"
    PageSession({"show": "tray", "tray": OFF}, page)
    return record_page_walk(lambda: PageSession({"show": "tray", "tray": OTHER_OFF}, page))


def walk_pdf() -> Walk:
    """Walk: a notebook saves a heatmap as PDF."""
    import mha_viz as mv

    attention = mv.load("toy").encode("the cat sees the dog")
    with tempfile.TemporaryDirectory() as folder:
        attention.heatmap("L1H1").save(Path(folder) / "first.pdf")
        return record_full_walk(lambda: attention.heatmap("L1H2").save(Path(folder) / "second.pdf"))


def walk_corpus() -> Walk:
    """Walk: two workers measure a corpus.

    They are threads of this process, so that they can be watched.
    """
    from distributed import Client

    import mha_viz as mv

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "some.conllu"
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
    """Walk, print, write ``results/walks.json``; ``quick``: without the corpus."""
    rows = []
    for name, make in WALKS.items():
        if quick and make is walk_corpus:
            continue
        walk, (moves, files) = make(), GOALS[name]
        for what, count, most in (("moves", walk.moves, moves), ("files", len(walk.files), files)):
            sample, target = Sample((float(count),)), Target("below", most + 1)
            rows.append(Row(f"{name}: {what}", sample, "", target=target, beside={"calls": walk.calls}))
    write(results, "walks", "Through the code", "", rows, "calls of functions of this project")
