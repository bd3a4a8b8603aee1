"""Exit codes of commands, and handling of Ctrl-C.

After Ctrl-C, a command ends with code 130 and a sentence that says what was kept and how to continue.
"""

from __future__ import annotations

import argparse
import atexit
import os
import signal
import sys
import threading
from _thread import interrupt_main
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn

from mha_viz import errors
from mha_viz.cli.terminal import one_line
from mha_viz.errors import MhaVizError
from mha_viz.files import list_unchanged

RETRY_SECONDS = 0.05  # after this time, an interrupt that Python could not raise is sent again
ALL_WRITTEN = "Everything was written."
OUTPUT_OPTIONS = ("out", "all_heads", "live")  # options that name the output of a command
PARTIAL_PATTERNS = (".*.npz", ".parts/*")  # partial results inside an output folder (study.run, study.cluster.engine)
SIBLING_PATTERNS = (".{}.parts", ".{}.sums")  # folders with partial results, next to an output file
# Exit codes
INTERNAL_ERROR, USAGE, NOT_FOUND, NETWORK, BAD_INPUT, STOPPED = 1, 2, 3, 4, 5, 130

EXIT_CODE_MEANINGS = {
    0: "done",
    INTERNAL_ERROR: "an internal error",
    USAGE: "usage: an option, value, format or path that cannot be used",
    NOT_FOUND: "not found: a model, a step, a head or a file that does not exist",
    NETWORK: "network: the Hub or a cluster cannot be reached, or stopped answering",
    BAD_INPUT: "bad input: a text, a corpus or a model that cannot be read",
    STOPPED: "stopped with Ctrl-C",
}
_EXIT_CODES: dict[type[BaseException], int] = {
    errors.SettingError: USAGE,
    errors.ClusterMissing: USAGE,  # the library for clusters is not installed
    errors.ClusterError: NETWORK,
    errors.ExportError: USAGE,
    errors.UnknownModel: NOT_FOUND,
    errors.ModelNotAllowed: NOT_FOUND,
    errors.ModelMissing: NOT_FOUND,
    errors.UnknownHead: NOT_FOUND,
    errors.CorpusMissing: NOT_FOUND,
    errors.ModelUnreachable: NETWORK,
    errors.TextError: BAD_INPUT,
    errors.ShapeError: BAD_INPUT,
    errors.ModelError: BAD_INPUT,
    errors.CorpusError: BAD_INPUT,
    errors.OpenError: BAD_INPUT,
    errors.ResultUnreadable: BAD_INPUT,
    errors.Cancelled: STOPPED,
}


class InterruptHandler:
    """Handles Ctrl-C while a command runs.

    ``is_interrupted`` stays True even if a library swallows the KeyboardInterrupt. If the exception occurs where Python
    can only report it, as in a finaliser or a callback, the handler sends the interrupt again a moment later.
    """

    def __init__(self) -> None:
        self.is_interrupted = False
        self._old_hook: Any = None

    def __enter__(self) -> InterruptHandler:
        is_main_thread = threading.current_thread() is threading.main_thread()
        if is_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._old_hook = sys.unraisablehook
            sys.unraisablehook = self._on_unraisable
            signal.signal(signal.SIGINT, self._on_sigint)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._old_hook is not None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.unraisablehook, self._old_hook = self._old_hook, None

    def announce(self, message: str) -> None:
        """Report that the command was stopped, and what is kept; this cannot be interrupted."""
        if self._old_hook is not None:
            signal.signal(signal.SIGINT, lambda *_: None)
        with suppress(OSError, ValueError):  # stderr is closed
            print(f"mha-viz: Stopped. {one_line(message)}", file=sys.stderr, flush=True)

    def _on_sigint(self, _number: int, _frame: FrameType | None) -> None:
        self.is_interrupted = True
        raise KeyboardInterrupt

    def _on_unraisable(self, unraisable: Any) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            self._old_hook(unraisable)
        else:
            timer = threading.Timer(RETRY_SECONDS, _send_sigint)
            timer.daemon = True
            timer.start()


def _send_sigint() -> None:
    if hasattr(signal, "pthread_kill"):  # unlike interrupt_main, also wakes a blocking system call
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        interrupt_main()


def describe_kept_output(args: argparse.Namespace, record: Mapping[Path, int]) -> str:
    """Say what a stopped command has kept, and how to continue.

    ``record`` maps each file that the command wrote to its inode number (:func:`mha_viz.files.record_writes`), which
    shows whether it was replaced since; times of files would not, because the clock may have been set.
    """
    outputs = [value for name in OUTPUT_OPTIONS if (value := getattr(args, name, None)) not in (None, "", "-")]
    paths = [Path(value) for value in outputs]
    for path in paths:
        for folder in _iter_partial_folders(path):
            return describe_partial_results(folder)
    for path in paths:
        if not list_unchanged(record, path):
            continue
        if path.is_dir():
            return f"The files in {path} are complete; run the same command again for the missing ones."
        return f"{path} was written completely."
    return "Nothing was written; run the same command again to start over."


def describe_partial_results(folder: Path) -> str:
    """Say where a stopped command has kept its partial results, and how to continue."""
    return f"Partial results are in {folder}; run the same command again to continue."


def _iter_partial_folders(path: Path) -> Iterator[Path]:
    """Yield the folders that hold partial results for the output ``path``.

    They are hidden folders beside ``path`` and, if it is an output folder with partial results in it, ``path`` itself.
    """
    for pattern in SIBLING_PATTERNS if path.name else ():  # none can be named after "."
        folder = path.with_name(pattern.format(path.name))
        if folder.is_dir() and any(folder.iterdir()):
            yield folder
    for pattern in PARTIAL_PATTERNS if path.is_dir() else ():
        if any(path.rglob(pattern)):
            yield path


def end_process(code: int) -> NoReturn:
    """End this process with an exit code, as Python does, but without finalising its modules.

    With large libraries, finalising takes long and ignores signals.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        if code == STOPPED:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        elif code:  # an error, which has been reported
            signal.signal(signal.SIGINT, lambda *_: os._exit(code))
        else:
            signal.signal(signal.SIGINT, _exit_on_sigint)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed
            stream.flush()
    os._exit(code)


def _exit_on_sigint(_number: int, _frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(2, f"mha-viz: Stopped. {ALL_WRITTEN}\n".encode())
    os._exit(STOPPED)


def find_exit_code(error: MhaVizError) -> int:
    """Return the exit code of an error: that of its nearest base class in ``_EXIT_CODES``, or INTERNAL_ERROR."""
    return next((_EXIT_CODES[kind] for kind in type(error).__mro__ if kind in _EXIT_CODES), INTERNAL_ERROR)


def format_exit_codes() -> str:
    """Return the table of exit codes, for a help text."""
    return "exit codes:\n" + "".join(f"  {code:<5}{meaning}\n" for code, meaning in EXIT_CODE_MEANINGS.items())
