"""Measure the heads of a causal model on random tokens that are repeated once. This needs no corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.repeats import (
    DRAWS,
    LENGTH,
    MEASURES,
    SEED,
    DecoderHeads,
    Numbers,
    compute_chance,
    compute_scores,
    draw_repeats,
    measure_heads,
)
from mha_viz.errors import ModelUnsupported, SettingError
from mha_viz.files.assets import asset_path
from mha_viz.model_names import quote_model
from mha_viz.models.getting import snapshots
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import ModelOrName, load_one_stack
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.process.steps import run_steps

if TYPE_CHECKING:
    import pandas as pd

HISTORY_COLUMNS = ("step", "task", "layer", "head", "n", "accuracy", "baseline")  # as in the toy model's history
MAX_DRAWS = 10_000


class _Sequence(NamedTuple):
    """Tokens in the form that the model takes."""

    ids: list[int]
    types: list[int]


@with_bar("of the sequences")
def find_induction_heads(
    model: ModelOrName = "gpt2",
    *,
    length: int = LENGTH,
    draws: int = DRAWS,
    seed: int = SEED,
    device: str = "cpu",
    progress: ProgressOption[float] = False,
) -> DecoderHeads:
    """Measure each head of a causal model on random tokens that are repeated once, and compare with random weights.

    Args:
        model: a name as for :func:`mha_viz.load`, or a model.
        length: the number of different tokens in a sequence, which are then repeated once; special tokens are not used.
        draws: the number of sequences read.
        seed: determines the sequences and the random weights.
        device: as for :func:`mha_viz.load`, where ``model`` is a name.
        progress: True for a bar, or a function that is called with the completed fraction, 0 to 1.

    Returns the mean weights for induction, the duplicate token, the previous token and the sink
    (:class:`mha_viz.analysis.repeats.DecoderHeads`). Raises ModelUnsupported for a model that is not causal,
    SettingError for a length or a number of draws out of range, ModelError.

    >>> roles = mv.find_induction_heads("repeater", draws=10).roles()
    >>> sorted({role.measure for role in roles})
    ['induction', 'previous']
    """
    encoder = load_one_stack(model, device)
    check_settings(encoder, length, draws)
    models = encoder, encoder.untrained(seed)
    steps = measure_heads(
        encoder.name,
        lambda draw_range, untrained: measure_draws(models[untrained], draw_range, length, draws, seed),
        length,
        draws,
        seed,
        lambda: encoder.revision,
    )
    return run_steps(steps, as_callback(progress))


def measure_history(name: str, draws: int = DRAWS, seed: int = SEED) -> pd.DataFrame:
    """Measure the heads of a built-in causal model at every snapshot of its training.

    Returns a row for each measure, with chance as the baseline.
    """
    import pandas as pd

    chance, rows = compute_chance(LENGTH), list[tuple[object, ...]]()
    for step in snapshots.list_steps(asset_path(name)):
        encoder = load_one_stack(f"{name}@{step}")
        scores = measure_draws(encoder, range(draws), LENGTH, draws, seed)
        for number, measure in enumerate(MEASURES):
            for (layer, head), score in np.ndenumerate(scores[number]):
                rows.append((step, measure, layer, head, draws, float(score), float(chance[number])))
    return pd.DataFrame(rows, columns=list(HISTORY_COLUMNS))


def check_settings(encoder: Encoder, length: int, draws: int) -> None:
    """Raise ModelUnsupported or SettingError unless :func:`find_induction_heads` can use these arguments."""
    encoder.check_every_layer("heads on repeated sequences")
    if not encoder.causal:
        raise ModelUnsupported(
            f"{quote_model(encoder.name)} is not a causal model: its tokens attend to later ones too.",
            "Choose a model such as GPT-2, or measure this one on a corpus.",
        )
    max_length = min(encoder.limit // 2, len(_list_ordinary_tokens(encoder)))
    if not 2 <= length <= max_length:
        raise SettingError(f"length is {length}.", f"Repeat 2 to {max_length} tokens.")
    if not 1 <= draws <= MAX_DRAWS:
        raise SettingError(f"draws is {draws}.", f"Draw 1 to {MAX_DRAWS:,} sequences.")


def measure_draws(encoder: Encoder, draw_range: range, length: int, draws: int, seed: int) -> Numbers:
    """Return the mean weights over a range of the draws, [measure, layer, head]."""
    sequences = draw_repeats(_list_ordinary_tokens(encoder), length, draws, seed)[draw_range.start : draw_range.stop]
    return compute_scores(encoder.batch([_Sequence(ids, [0] * len(ids)) for ids in sequences.tolist()]), length)


def _list_ordinary_tokens(encoder: Encoder) -> npt.NDArray[np.int64]:
    """Return the vocabulary without special tokens, as far as the model has embeddings for it."""
    rows = min(len(encoder.vocabulary), int(encoder.config.vocab_size))
    special_ids = [piece for piece in encoder.vocabulary.all_special_ids if piece < rows]
    return np.delete(np.arange(rows), special_ids)
