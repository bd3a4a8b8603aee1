"""Connect a command to a Dask cluster: add its options, open the connection, and report progress."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from mha_viz.cli.options import Parser, make_int_parser
from mha_viz.cli.output import Destination
from mha_viz.cli.terminal import status_line
from mha_viz.cli.termination import describe_partial_results
from mha_viz.corpus import BUILT_IN
from mha_viz.errors import CorpusMissing, SettingError
from mha_viz.numerals import counted, duration
from mha_viz.quotes import did_you_mean

MAX_WORKERS = 1000
PARTS_FOLDER = ".parts"  # subfolder for partial results of a stopped command, or of workers
MAX_LISTED_WORKERS = 8  # for at most this many workers, each worker's count of sentences is shown
parse_workers = make_int_parser(1, MAX_WORKERS, "a number of workers")


def add_cluster_options(command: Parser) -> None:
    """Add --cluster, --workers and --dashboard."""
    help_text = (
        "measure on the Dask cluster with this scheduler, such as tcp://10.0.0.5:8786; its workers read the files, and "
    )
    help_text += "store their results next to the output, under the same paths as here"
    command.add_argument("--cluster", default="", metavar="ADDRESS", help=help_text)
    help_text = "measure with this many single-threaded worker processes on this machine"
    command.add_argument("--workers", default=0, type=parse_workers, metavar="N", help=help_text)
    help_text = "with --workers: serve Dask's dashboard on this machine, at an address that only you see"
    command.add_argument("--dashboard", action="store_true", help=help_text)


def get_partial_folder(destination: Destination | None, ending: str) -> Path | None:
    """Return the folder next to an output file for partial results of a measurement.

    None if the output is stdout, a pipe or a device.
    """
    path = destination.path if destination else None
    if path is None or (path.exists() and not path.is_file()):
        return None
    return path.with_name(f".{path.name}.{ending}")


@contextmanager
def remove_if_empty(folder: Path | None) -> Iterator[None]:
    """Remove the folder afterwards if it is empty."""
    try:
        yield
    finally:
        if folder is not None:
            with suppress(OSError):
                folder.rmdir()  # not if something is in it


def explain_continuing(folder: Path | None) -> str:
    """Return how to continue a stopped command whose results so far were printed.

    ``folder`` is the folder with its partial results.
    """
    return "run the same command again to continue" if folder else "name a file with --out to keep them"


@contextmanager
def offer_to_continue(folder: Path | None) -> Iterator[None]:
    """Remove the folder afterwards if it is empty, as :func:`remove_if_empty` does.

    After Ctrl-C, if the folder holds something, the message says that the same command continues from it.
    """
    with remove_if_empty(folder):
        try:
            yield
        except KeyboardInterrupt:
            if folder is None or not folder.is_dir() or not any(folder.iterdir()):
                raise
            raise KeyboardInterrupt(describe_partial_results(folder)) from None


@contextmanager
def open_cluster(args: argparse.Namespace, corpora: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield an engine that runs studies on the cluster that the options name; None if they name none.

    ``corpora`` are the files to read, by default those of the command. Raises ClusterError.
    """
    if args.cluster and args.workers:
        raise SettingError("--cluster and --workers are both given.", "Give only one of them.")
    if args.dashboard and not args.workers:
        raise SettingError("--dashboard shows the processes of --workers.", "Add --workers N, or drop --dashboard.")
    if not args.cluster and not args.workers:
        yield None
        return
    from mha_viz.study.cluster.connection import connect, dashboard_link, import_distributed

    import_distributed()  # before torch is imported: fails early if Dask is missing
    from mha_viz.corpus.corpus_files import open_file
    from mha_viz.corpus.sources import list_source_files
    from mha_viz.study.cluster.engine import ClusterEngine
    from mha_viz.study.plan import DEFAULT_BATCH

    # Files that cannot be opened are refused before a cluster is started.
    sources = args.corpus if corpora is None else corpora
    for source in [sources] if isinstance(sources, str) else sources:
        with suggest_corpora(source):
            for file in list_source_files(source):
                with open_file(file) as stream:
                    stream.read(1)
    with connect(args.cluster, args.workers, args.dashboard) as client:
        if link := dashboard_link(client):
            print(f"mha-viz: The cluster’s dashboard: {link}", file=sys.stderr)
        yield ClusterEngine(client, getattr(args, "batch", None) or DEFAULT_BATCH)


@contextmanager
def show_cluster_progress() -> Iterator[Callable[[Any], None]]:
    """Yield a function that shows the progress of a study on a cluster, cut to one line of the terminal."""
    with status_line() as show:
        columns = shutil.get_terminal_size().columns - 1 if sys.stderr.isatty() else None
        yield lambda progress: show(format_progress(progress)[:columns].ljust(columns or 0))


def format_progress(progress: Any) -> str:
    """Return the progress of a study on a cluster as one line."""
    time_left = "" if progress.seconds_left is None else f", {duration(progress.seconds_left)} left"
    lost = f"; {counted(progress.lost, 'worker')} lost, whose shards are measured again" if progress.lost else ""
    counts = [*progress.by_worker.values()]  # in the order of the workers' first answers
    if len(counts) <= MAX_LISTED_WORKERS:
        shares = " · ".join(f"w{number} {count:,}" for number, count in enumerate(counts))
    else:
        shares = f"{len(counts)} workers, each {min(counts):,} to {max(counts):,}, median {round(median(counts)):,}"
    return (
        f"{progress.done:,} of {progress.total:,} sentences, {progress.rate:,.0f} per second{time_left}{lost}; {shares}"
    )


@contextmanager
def suggest_corpora(source: str) -> Iterator[None]:
    """Suggest similar names if the corpus is missing."""
    try:
        yield
    except CorpusMissing as error:
        path, neighbours = Path(source), list[str]()  # other files in the folder, with the path as typed
        with suppress(OSError):
            neighbours = [
                str(path.with_name(file.name)) for file in islice(path.parent.iterdir(), 1000) if file.is_file()
            ]
        question = did_you_mean(source, [*BUILT_IN, *neighbours])
        raise CorpusMissing(error.problem, f"{question} {error.remedy}".strip()) from error
