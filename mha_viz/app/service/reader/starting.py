"""Start processes for models quickly: by copying a process that has imported the libraries, or by keeping a spare.

On Linux the first process is a template (``process.template``), and every reader is a copy of it, however soon it is
needed. On other systems each process imports the libraries itself, and a spare process that has done so stands ready.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import weakref
from contextlib import suppress
from typing import TypeAlias

from mha_viz import process
from mha_viz.process import template
from mha_viz.process.children import IMPORT_THREADS
from mha_viz.process.template import PipedProcess, Template

LOAD_SECONDS = 180.0  # maximum time to load a model from a slow disk, including the import of the libraries
# Limit of memory where the system supports one: a model of 2 GB, its packed copy, and a reserve.
DATA_BYTES = 8_000_000_000
# Waiting threads sleep instead of spinning, which would slow models tenfold while pages need the cores.
WAIT_SETTINGS = {"OMP_WAIT_POLICY": "PASSIVE"}
SPARE_SECONDS = 20.0  # start a spare this long after a process; before that, the first visitors need the cores

Process: TypeAlias = "subprocess.Popen[bytes] | PipedProcess"


class _Starter:
    """Starts processes for one reader. They can write to one temporary folder only."""

    def __init__(self) -> None:
        self._last_start = 0.0  # time of the last start that a request waited for, on the monotonic clock
        self.folder = ""

    def _build_command(self, function: str) -> tuple[list[str], dict[str, str]]:
        """Return the command that runs a function of ``app.service.reader.__main__``, and its environment."""
        if not self.folder:
            with suppress(OSError):  # no folder can be created, so the process cannot write either
                self.folder = tempfile.mkdtemp(prefix="mha_viz-")
                weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        folder = [self.folder] if self.folder else []
        command, environment = process.build_python_command("-c", _START_CODE, *folder, function, str(DATA_BYTES))
        temp_setting = {"TMPDIR": self.folder} if folder else {}
        return command, {**process.SETTINGS, **WAIT_SETTINGS, **environment, **IMPORT_THREADS, **temp_setting}

    def _can_spare_cores(self) -> bool:
        return time.monotonic() - self._last_start > SPARE_SECONDS


class CopyStarter(_Starter):
    """Starts copies of a template process.

    If the template ends, another is started; a caller waits for it only when it needs a copy.
    """

    def __init__(self) -> None:
        super().__init__()
        self._template: Template | None = None

    def start(self) -> Process:
        """Return a process that waits for requests.

        Raises OSError if none could start, and TimeoutError after LOAD_SECONDS.
        """
        try:
            return self._make_copy()
        except ConnectionError:  # the template ended during the request; try once more with a new one
            self.close()
            return self._make_copy()

    def prepare(self) -> None:
        """Restart the template if it has ended, so that the next start is fast."""
        if self._can_spare_cores() and (self._template is None or not self._template.is_running):
            self._start_template()

    def _make_copy(self) -> Process:
        template = (
            self._template if self._template is not None and self._template.is_running else self._start_template()
        )
        try:
            return template.copy(LOAD_SECONDS)
        except TimeoutError:
            self.close()
            raise

    def _start_template(self) -> Template:
        self._last_start = time.monotonic()
        self._template = Template(*self._build_command("serve_template"))
        return self._template

    def close(self) -> None:
        """End the template."""
        old_template, self._template = self._template, None
        if old_template is not None:
            old_template.close()


class SpareStarter(_Starter):
    """Starts new processes. SPARE_SECONDS after the first start, it begins to keep a spare one."""

    def __init__(self) -> None:
        super().__init__()
        self._spare: Process | None = None

    def start(self) -> Process:
        """Return a process that waits for requests: the spare if there is one. Raises OSError if none could start."""
        spare, self._spare = self._spare, None
        if spare is not None and spare.poll() is None:
            return spare  # `_last_start` stays, so that `prepare` starts the next spare at once
        self._last_start = time.monotonic()
        return self._start_process()

    def prepare(self) -> None:
        """Start the spare if there is none, so that the next start is fast."""
        if self._can_spare_cores() and (self._spare is None or self._spare.poll() is not None):
            self._spare = self._start_process()

    def close(self) -> None:
        """End the spare."""
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.kill()
            spare.communicate()

    def _start_process(self) -> Process:
        """Start a process that imports the libraries and then waits for requests."""
        command, environment = self._build_command("main")
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def make_starter() -> CopyStarter | SpareStarter:
    """Return the faster starter that this system supports."""
    return CopyStarter() if template.is_supported() else SpareStarter()


# The limit is set before a library can allocate memory. If memory runs out, the system kills this process rather than
# the server, which then starts another. No core file writes what was typed to the disk. transformers is told that scipy
# and scikit-learn are missing (37 MB or more, for losses and generation methods that are not used here); other
# libraries can still import them. The imports create a million permanent objects: collecting garbage among them would
# take a fifth of the import time.
_START_CODE = """
import gc, os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the server, which ends this process
gc.disable()
limit, function = int(sys.argv.pop()), sys.argv.pop()
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (limit,) * 2)
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")
except (ImportError, OSError, ValueError):
    pass
import transformers.utils
transformers.utils.is_scipy_available = transformers.utils.is_sklearn_available = lambda: False
from mha_viz.app.service.reader import __main__ as reader
getattr(reader, function)()
"""
