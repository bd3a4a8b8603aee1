"""``python tools/busy.py N COMMAND …``: run a command while N other processes keep one core busy each."""

from __future__ import annotations

import subprocess
import sys

LOOP = "while True: pass"


def main(count: int, *command: str) -> int:
    """Run the command and return its exit code."""
    loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(count)]
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        for loop in loops:
            loop.kill()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:]))
