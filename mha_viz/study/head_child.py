"""Read one head's links in a corpus, in a child process that loads the model and parses the file.

The keys of ``order``: ``kind`` is a name in WORK; ``folder``, ``name`` and ``revision`` identify the model; ``head`` is
the head; ``data`` has the bytes of the file, and is empty for the built-in sentences. The result is None if the work
was cancelled before it had one. It contains sentences of the file, so only visitors who have that file may see it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mha_viz.analysis import link_groups, links
from mha_viz.analysis.links import Conditions
from mha_viz.corpus import grammar, reading
from mha_viz.corpus.uploads import NEUTRAL_NAME
from mha_viz.models.reading.encoder import Encoder
from mha_viz.process.children import IsCancelled, ReportProgress, serve
from mha_viz.process.steps import run_steps
from mha_viz.study.link_groups import group_in_steps
from mha_viz.study.readers import open_measurable
from mha_viz.study.search import LinkSearch

HeadWork = Callable[[Encoder, Any, dict[str, Any], ReportProgress, IsCancelled], dict[str, Any] | None]


def work(order: dict[str, Any], report: ReportProgress, cancelled: IsCancelled) -> dict[str, Any] | None:
    """Do the ordered work and return its result.

    Raises the errors of ``mha_viz.roles.search_links`` and ``mha_viz.roles.group_links``.
    """
    corpus = reading.parse_file(order["data"], NEUTRAL_NAME) if order["data"] else grammar.corpus()
    encoder = Encoder.from_folder(Path(order["folder"]), name=order["name"], revision=order["revision"])
    return WORK[order["kind"]](encoder, corpus, order, report, cancelled)


def _search_links(
    encoder: Encoder,
    corpus: Any,
    order: dict[str, Any],
    report: ReportProgress,
    cancelled: IsCancelled,
) -> dict[str, Any] | None:
    """Return the ``most`` strongest links that meet ``conditions``, packed by ``analysis.links.pack_search``.

    The result is incomplete if the work was cancelled.
    """
    conditions = Conditions(*order["conditions"])
    search = LinkSearch(encoder, open_measurable(corpus), order["head"], conditions, order["most"])
    for state in search.run.iter_progress():
        report(state.fraction)
        if cancelled():
            break
    return links.pack_search(search.result()) if search.run.cases.sentences_read else None


class _Cancellation(Exception):
    """Raised when the work was cancelled."""


def _group_links(
    encoder: Encoder,
    corpus: Any,
    order: dict[str, Any],
    report: ReportProgress,
    cancelled: IsCancelled,
) -> dict[str, Any] | None:
    """Return links in groups, packed by ``analysis.link_groups.pack_groups``; None if the work was cancelled."""

    def report_or_stop(fraction: float) -> None:
        report(fraction)
        if cancelled():
            raise _Cancellation

    try:
        return link_groups.pack_groups(
            run_steps(group_in_steps(encoder, open_measurable(corpus), order["head"]), report_or_stop)
        )
    except _Cancellation:
        return None


WORK: Mapping[str, HeadWork] = MappingProxyType({"search": _search_links, "groups": _group_links})

if __name__ == "__main__":
    serve(work)
