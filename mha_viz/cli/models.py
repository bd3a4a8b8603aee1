"""Choose, load and run a model for a command."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.attention import Attention, Head
from mha_viz.attention.generate_outputs import mark_written
from mha_viz.cli.terminal import print_warnings, show_download
from mha_viz.errors import SettingError, UnknownHead
from mha_viz.model_names import shorten_name
from mha_viz.models.getting import catalog, hub
from mha_viz.models.getting.catalog import Model
from mha_viz.request import DTYPES, Request
from mha_viz.view.quantities import QUANTITIES, WEIGHT

CHOOSE_LISTED = "Choose one that `mha-viz models` lists"


def choose_model(name: str) -> Model:
    """Return the model with a name; on the command line, a folder needs no "./" in front. Raises UnknownModel."""
    is_folder = False
    with suppress(OSError, ValueError):  # the name is not a valid file name
        is_folder = "/" not in name and name not in catalog.CATALOG and Path(name).exists()
    with catalog.add_suggestions(name, CHOOSE_LISTED):
        return catalog.resolve(f"./{name}" if is_folder else name)


def load_model(model: Model, device: str = "cpu", dtype: str = DTYPES[0], name: str = "") -> Any:
    """Load a model, downloading it first if necessary."""
    if hub.find_local_folder(model) is None:
        with catalog.add_suggestions(model.name, CHOOSE_LISTED), show_download(model.name) as show:
            hub.fetch(model, progress=show)
    from mha_viz.models.reading.loading import load  # imports torch, which takes 2 s: not for `models` and `serve`

    return load(model.name, device, dtype=dtype, name=name)


def check_heads(model: Model, heads: Sequence[Head], quantity: str = WEIGHT) -> None:
    """Raise UnknownHead for a head that the model does not have, if its size is known before it is loaded.

    If the quantity has one map per layer, raise UnknownHead for a map that does not exist.
    """
    for head in heads if model.layers else ():
        if QUANTITIES[quantity].of_layers:
            Head.among(head if head.head else f"L{head.layer}", model.layers, 0, model.name)
            continue
        if head.layer >= model.layers or head.head >= model.heads:
            is_swapped = head.head < model.layers and head.layer < model.heads
            question = f"Did you mean {Head(head.head, head.layer)}? " if is_swapped else ""
            raise UnknownHead(
                f"{head} does not exist: {shorten_name(model.name)} has {model.layers} layers × {model.heads} heads.",
                f"{question}Choose between L0H0 and {Head(model.layers - 1, model.heads - 1)}.",
            )


def read_all(
    model: Model,
    requests: Sequence[Request],
    device: str,
    dtype: str,
    name: str = "",
    recipes: Recipes | None = None,
    word_count: int = 0,
) -> list[Attention]:
    """Run a model on several requests and return the readings; a truncated text is reported on stderr.

    The model first continues each text by ``word_count`` words, which are marked.
    """
    encoder = load_model(model, device, dtype, name)
    if not word_count:
        return run_requests(encoder, requests, recipes)
    from mha_viz.models.reading.continuing import continue_text

    continued_requests = []
    for request in requests:
        if request.pair:
            raise SettingError("--continue does not go with --pair.", "Leave one of them out.")
        prefixed_encoder = encoder.prefixed(request.prefix) if request.prefix else encoder
        continued_requests.append(replace(request, text=continue_text(prefixed_encoder, request.text, word_count)))
    lengths = [len(new.text) - len(old.text) for new, old in zip(continued_requests, requests, strict=True)]
    return [*map(mark_written, run_requests(encoder, continued_requests, recipes), lengths)]


def run_requests(encoder: Any, requests: Sequence[Request], recipes: Recipes | None = None) -> list[Attention]:
    """Run a loaded model on several requests and return the readings; a truncated text is reported on stderr."""
    from mha_viz.study.reading import read

    with print_warnings():
        return [read(encoder, request, recipes=recipes) for request in requests]
