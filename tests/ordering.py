"""Order the tests: in shares for the workers, or at random."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests import lanes


def shuffle_tests(items: list[pytest.Function], seed: int) -> list[pytest.Function]:
    """Return the modules, and the tests of each, in a random order that is the same in every process."""
    random = Random(seed)
    modules: dict[Path, list[pytest.Function]] = {}
    for item in items:
        modules.setdefault(item.path, []).append(item)
    paths = list(modules)
    random.shuffle(paths)
    for path in paths:
        random.shuffle(modules[path])
    return [item for path in paths for item in modules[path]]


def order_in_shares(items: list[pytest.Function], workers: int) -> list[pytest.Function]:
    """Return the tests in the order from which workers take equal shares.

    Modules that need the shared server or the browser are dealt to the first two shares of three, or to the first of
    two, because each worker that has some of them starts these once. The others are dealt to the rest. Pure modules,
    whose tests are the fastest, fill every share, so that no worker waits for another's last long test. Within each
    group, modules of lanes.LONG come first.
    """
    kinds: dict[Path, str] = {}
    for item in items:
        if {"server", "browser"} & set(item.fixturenames):
            kinds[item.path] = "shared"
        elif not item.get_closest_marker("unit"):
            kinds.setdefault(item.path, "dealt")
    of_kind = {
        kind: [item for item in items if kinds.get(item.path, "unit") == kind] for kind in ("shared", "dealt", "unit")
    }
    for part in of_kind.values():
        part.sort(key=lambda item: item.path.stem not in lanes.LONG)
    of_pages = max(1, min(2, workers - 1))
    shares = _by_module(of_kind["shared"], of_pages)
    for number, others in enumerate(_by_module(of_kind["dealt"], max(1, workers - of_pages))):
        if workers > 1:
            shares.append(others)
        else:
            shares[number] += others
    ordered: list[pytest.Function] = []
    unit = of_kind["unit"]
    for first in shares:
        room = max(0, len(items) // workers - len(first))
        ordered += [*first, *unit[:room]]
        del unit[:room]
    return ordered + unit


def _by_module(items: list[pytest.Function], shares: int) -> list[list[pytest.Function]]:
    """Divide the tests into this many shares; modules go to the shares in turn."""
    place = {path: number for number, path in enumerate(dict.fromkeys(item.path for item in items))}
    return [[item for item in items if place[item.path] % shares == number] for number in range(shares)]
