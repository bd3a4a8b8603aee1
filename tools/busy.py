"""``python tools/busy.py N COMMAND …``: runs the command beside N processes that each keep one core busy."""

from __future__ import annotations

import subprocess
import sys

LOOP = "while True: pass"


def main(count: int, *command: str) -> int:
    """The exit code of the command."""
    loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(count)]
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        for loop in loops:
            loop.kill()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:]))
