"""Run work in forks of this process."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


def run_in_forks(work: Callable[[int], None], count: int) -> None:
    """Call ``work`` with 0, 1 … in forks of this process. Raises RuntimeError if one fails."""
    pids = []
    for number in range(count):
        pid = os.fork()
        if not pid:
            code = 1
            try:
                work(number)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        pids.append(pid)
    if failed_pids := [pid for pid in pids if os.waitpid(pid, 0)[1]]:
        raise RuntimeError(f"{len(failed_pids)} of {count} workers failed.")
