"""Choose how many combinations of cases run, and which modules are in the fast lane ``unit``.

`make test` tests each behaviour once; `make test-all` (pytest's option ``--all``) runs all combinations: every hostile
text through every module, every step of every family, every order of every two controls.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

everything = False  # set by conftest.py before any test module is imported

HEAVY = frozenset({"torch", "transformers", "streamlit"})  # libraries that take seconds to import
RUN_THE_APP = frozenset({"AppTest", "PageSession", "AppServer", "WebSession"})  # a module that imports one is in `app`
# Modules that use such a library only through functions of the package, which static imports do not show.
LATER = (
    "test_cli_refused",
    "test_current_folder",
    "test_layer_numbers",
    "test_one_row",
    "test_public",
    "test_shipped_roles",
)
# The modules of the lane `unit`: none imports a library of HEAVY, not even in a function. tests/test_lanes.py compares
# this list with the imports.
UNIT: tuple[str, ...] = (
    "test_align",
    "test_answer_pictures",
    "test_attention",
    "test_axis_labels",
    "test_benchmark_results",
    "test_bertviz",
    "test_bundle",
    "test_cells",
    "test_chart_drawing",
    "test_chart_plotly",
    "test_corridors",
    "test_distance",
    "test_dockerfile",
    "test_drawings",
    "test_english",
    "test_established",
    "test_excerpt",
    "test_exports",
    "test_figures",
    "test_figures_compared",
    "test_file_names",
    "test_files",
    "test_fonts",
    "test_glossary",
    "test_glosses",
    "test_golden",
    "test_grammar",
    "test_head_search",
    "test_house",
    "test_intervals",
    "test_lanes",
    "test_links",
    "test_messages",
    "test_metrics",
    "test_mutants",
    "test_node",
    "test_numerals",
    "test_packet",
    "test_pair_files",
    "test_panels",
    "test_patterns",
    "test_pieces",
    "test_pins",
    "test_portable",
    "test_preview",
    "test_printed",
    "test_protobuf",
    "test_q_values",
    "test_quotes",
    "test_reduce",
    "test_repository",
    "test_request",
    "test_roles",
    "test_sampling",
    "test_saved_readings",
    "test_shards",
    "test_steps",
    "test_syntax",
    "test_tags",
    "test_text",
    "test_treebank",
    "test_turns",
    "test_unusual_heads",
    "test_wheel",
    "test_wording",
)
# The modules that take longest, which workers run first.
LONG = (
    "test_ablation",
    "test_cli_figure",
    "test_cli_profile",
    "test_corridors",
    "test_distance",
    "test_evidence",
    "test_families",
    "test_glossary",
    "test_grammar",
    "test_house",
    "test_lanes",
    "test_python",
    "test_stored_runs",
    "test_study",
    "test_toy",
    "test_training",
    "test_wording",
)


def list_loaded() -> set[str]:
    """Return the libraries of HEAVY that this process has loaded."""
    return {name for name in HEAVY if name in sys.modules}


def some(cases: Sequence[T], *chosen: T) -> list[T]:
    """Return the ``chosen`` cases or, with ``--all``, all ``cases``."""
    assert all(case in cases for case in chosen), chosen
    return list(cases if everything else chosen)


def pair_values(first: Iterable[T], second: Iterable[U]) -> list[tuple[T, U]]:
    """Return pairs that contain each value at least once or, with ``--all``, all pairs."""
    rows, columns = list(first), list(second)
    if everything:
        return [(row, column) for row in rows for column in columns]
    count = max(len(rows), len(columns))
    return [(rows[i % len(rows)], columns[i % len(columns)]) for i in range(count)]
