"""The command ``mha-viz``: serve the app, list models, write attention weights or figures to files, measure corpora.

An error that a user can cause ends the command with one line on stderr and one of the exit codes; Ctrl-C ends it with
130 and one line that says what was kept (``termination``).
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn

from mha_viz import process
from mha_viz.cli.terminal import one_line, replace_unencodable
from mha_viz.cli.termination import (
    INTERNAL_ERROR,
    STOPPED,
    USAGE,
    InterruptHandler,
    describe_kept_output,
    end_process,
    find_exit_code,
)
from mha_viz.cli.usage import drop_keywords
from mha_viz.errors import Cancelled, MhaVizError
from mha_viz.files import record_writes

NO_MEMORY = (
    "There is too little memory for this. Close other programs, raise the limit (ulimit -v), or use a smaller model."
)
FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})  # full disk, full quota, maximum file size


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code. ``arguments`` defaults to those of this process."""
    with InterruptHandler() as handler, record_writes() as record:
        args, message = argparse.Namespace(), ""
        try:
            code = _run_command(arguments, args)
        except (KeyboardInterrupt, Cancelled) as interrupt:
            code, message = STOPPED, str(interrupt)
            if not message.endswith("."):  # the message of a library that was interrupted
                message = ""
        if not handler.is_interrupted and code != STOPPED:
            return code
        handler.announce(message or describe_kept_output(args, record))
        return STOPPED


def run() -> NoReturn:
    """Run the command line of this process, and end the process."""
    end_process(main())


def _run_command(arguments: Sequence[str] | None, args: argparse.Namespace) -> int:
    """Run a command line and return its exit code. Store the parsed options in ``args``."""
    process.set_environment()
    if threading.current_thread() is threading.main_thread():  # callers on other threads keep their own handler
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an exception, so that half-written files are removed
    for stream in (sys.stdout, sys.stderr):
        replace_unencodable(stream)
    try:
        process.check_docstrings()
        from mha_viz.cli.table import build_parser  # imports every command; Ctrl-C is handled by now

        build_parser().parse_args(arguments, args)
        args.run(args)
        print(end="", flush=True)  # so that a closed pipe is noticed here, not at exit
    except Cancelled:
        raise
    except MhaVizError as error:
        print(f"mha-viz: {one_line(drop_keywords(str(error)))}", file=sys.stderr)
        return find_exit_code(error)
    except BrokenPipeError:  # the output was closed, as in `mha-viz models | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in FULL_ERRNOS:
            return _report_internal_error(error)
        print(
            f"mha-viz: The output cannot be written: {str(error.strerror).lower()}. Free some disk space.",
            file=sys.stderr,
        )
        if sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python tries again at exit
        return USAGE
    except Exception as error:
        return _report_internal_error(error)
    return 0


def _report_internal_error(error: Exception) -> int:
    """Report an internal error and how to get its traceback; in Python's development mode raise it.

    Lack of memory is reported as such, not as an internal error.
    """
    if process.is_out_of_memory(error):
        print(f"mha-viz: {NO_MEMORY}", file=sys.stderr)
        return USAGE
    if sys.flags.dev_mode:
        raise error
    problem = one_line(f"{type(error).__name__}: {error}")
    print(f"mha-viz: Internal error: {problem}. `python -X dev -m mha_viz.cli …` shows where.", file=sys.stderr)
    return INTERNAL_ERROR
