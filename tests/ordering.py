"""Order the tests: in shares for pytest workers, or at random."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests import lanes


def shuffle_tests(items: list[pytest.Function], seed: int) -> list[pytest.Function]:
    """Return the tests with modules, and the tests of each module, in a random order that ``seed`` determines."""
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
    """Return the tests in an order in which equal shares suit the workers.

    Modules that need the shared server or the browser go to the first two shares of three, or to the first of two,
    because every worker with such a module has to start both. Other modules go to the remaining shares. Modules of the
    lane ``unit``, whose tests are the fastest, fill up all shares, so that no worker waits for another's last test.
    Within each group, modules of lanes.LONG come first.
    """
    kinds: dict[Path, str] = {}
    for item in items:
        if {"server", "browser"} & set(item.fixturenames):
            kinds[item.path] = "shared"
        elif not item.get_closest_marker("unit"):
            kinds.setdefault(item.path, "other")
    by_kind = {
        kind: [item for item in items if kinds.get(item.path, "unit") == kind] for kind in ("shared", "other", "unit")
    }
    for group in by_kind.values():
        group.sort(key=lambda item: item.path.stem not in lanes.LONG)
    shared_count = max(1, min(2, workers - 1))
    shares = _divide_modules(by_kind["shared"], shared_count)
    for number, others in enumerate(_divide_modules(by_kind["other"], max(1, workers - shared_count))):
        if workers > 1:
            shares.append(others)
        else:
            shares[number] += others
    ordered: list[pytest.Function] = []
    unit = by_kind["unit"]
    for share in shares:
        room = max(0, len(items) // workers - len(share))
        ordered += [*share, *unit[:room]]
        del unit[:room]
    return ordered + unit


def _divide_modules(items: list[pytest.Function], shares: int) -> list[list[pytest.Function]]:
    """Divide the tests into this many shares, with whole modules going to the shares in turn."""
    numbers = {path: number for number, path in enumerate(dict.fromkeys(item.path for item in items))}
    return [[item for item in items if numbers[item.path] % shares == number] for number in range(shares)]
