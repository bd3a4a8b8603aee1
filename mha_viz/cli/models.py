"""Choosing, loading and running a model for a command, and making its output folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mha_viz.attention import Attention, Head
from mha_viz.cli import quantities
from mha_viz.cli.suggestions import did_you_mean
from mha_viz.cli.terminal import downloading
from mha_viz.errors import ModelUnreachable, UnknownHead, UnknownModel
from mha_viz.models import catalog, hub
from mha_viz.models.catalog import Model

LIKENESS_OF_MODELS = 0.75  # many names on the Hub are alike


def choose_model(name: str) -> Model:
    """The model with a name; on the command line a folder may be given without "./" in front. Raises UnknownModel."""
    is_folder = False
    with suppress(OSError, ValueError):  # an invalid file name is not a folder
        is_folder = "/" not in name and name not in catalog.CATALOG and Path(name).exists()
    with _suggesting(name):
        return catalog.resolve(f"./{name}" if is_folder else name)


def load_model(model: Model, device: str = "cpu") -> Any:
    """Load a model, and download it first if necessary."""
    if hub.local_folder(model) is None:
        with _suggesting(model.name), downloading(model.name) as show:
            hub.fetch(model, progress=show)
    from mha_viz.models.encoder import load  # loads torch: 2 s that `models` and `serve` do not need

    return load(model.name, device)


@contextmanager
def _suggesting(name: str) -> Iterator[None]:
    """Add the model that may have been meant to an error on a name that is not there."""
    try:
        yield
    except (UnknownModel, ModelUnreachable) as error:
        names = [] if name.partition("@")[0] in catalog.CATALOG else [model.name for model in catalog.offered()]
        question = did_you_mean(name, names, LIKENESS_OF_MODELS)
        remedy = error.remedy.replace("Choose one from the list", "Choose one that `mha-viz models` lists")
        raise type(error)(error.problem, f"{question} {remedy}".strip()) from error


def check_heads(model: Model, heads: Sequence[Head]) -> None:
    """Raise UnknownHead for a head that the model does not have, where its size is known before it is loaded."""
    for head in heads if model.layers else ():
        if head.layer >= model.layers or head.head >= model.heads:
            swapped = head.head < model.layers and head.layer < model.heads
            question = f"Did you mean {Head(head.head, head.layer)}? " if swapped else ""
            raise UnknownHead(
                f"{head} does not exist: {model.name} has {model.layers} layers × {model.heads} heads.",
                f"{question}Choose between L0H0 and {Head(model.layers - 1, model.heads - 1)}.",
            )


def read_all(model: Model, texts: Sequence[str], args: argparse.Namespace) -> list[Attention]:
    """What is asked for (``cli.quantities``) of every head on each of several texts, each with the pair; a cut text is
    reported on stderr."""
    encoder = load_model(model)
    readings = [quantities.read_text(encoder, text, args.pair, args) for text in texts]
    for reading in readings:
        _report_cut(reading, model)
    return readings


def _report_cut(attention: Attention, model: Model) -> None:
    cut = attention.text.cut
    if cut and cut.pieces <= cut.limit:
        lengths = " and ".join(f"{n:,}" for n in cut.kept if n)
        print(f"mha-viz: the text is very long; its first {lengths} characters are read.", file=sys.stderr)
    elif cut:
        pieces = f"more than {cut.pieces}" if cut.more else str(cut.pieces)
        print(f"mha-viz: the text has {pieces} pieces; {model.name} reads the first {cut.limit}.", file=sys.stderr)
