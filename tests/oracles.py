"""Reference values for every model: attention from transformers, and invariants of tokenized texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, AutoTokenizer
from transformers.pytorch_utils import Conv1D

from mha_viz.models.reading.probe import find_attention_modules
from mha_viz.text import Token, TokenizedText

SENTENCE = "The animal didn't cross the street because it was too tired."
SECOND = "Zoë's café isn't far, is it?"
EQUAL = 1e-5  # tolerance of comparisons with transformers


@cache
def load_plain(folder: Path) -> tuple[Any, Any]:
    """Return transformers' own model of a folder, with eager attention, and its tokenizer.

    All tests share them, so remove your hooks afterwards.
    """
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    return model, AutoTokenizer.from_pretrained(folder)


def collect_attentions(model: Any, outputs: Any) -> list[torch.Tensor]:
    """Return [sentence, head, query, key] of each layer from the outputs of a transformers model.

    Longformer's rows hold the keys of a window, with the query in its middle.
    """
    if model.config.model_type != "longformer":
        return list(outputs.attentions)
    return [unfold(layer) for layer in outputs.attentions]


def unfold(rows: torch.Tensor) -> torch.Tensor:
    """Convert […, query, position in the window] to […, query, key], with 0 outside the window."""
    n, reach = rows.shape[2], rows.shape[3] // 2
    full = rows.new_zeros(*rows.shape[:2], n, n)
    for query in range(n):
        for key in range(max(0, query - reach), min(n, query + reach + 1)):
            full[:, :, query, key] = rows[:, :, query, key - query + reach]
    return full


@contextmanager
def silence_heads(model: Any, heads: Iterable[tuple[int, int]], head_count: int) -> Iterator[None]:
    """Set the slices of W_O of these heads of a transformers model to zero while the block runs.

    The model has ``head_count`` heads in each layer.
    """
    silenced = list(heads)
    originals = {layer: _w_o(model, layer).detach().clone() for layer, _ in silenced}
    try:
        for layer, head in silenced:
            _view_by_head(model, layer, head_count)[head] = 0
        yield
    finally:
        for layer, weight in originals.items():
            _w_o(model, layer).detach().copy_(weight)


def _w_o(model: Any, layer: int) -> torch.Tensor:
    if model.config.model_type == "xlnet":
        o: torch.Tensor = model.get_submodule(f"layer.{layer}.rel_attn").o  # [d_model, head, d_head]
        return o
    weight: torch.Tensor = find_attention_modules(model, layer).output.weight
    return weight


def _view_by_head(model: Any, layer: int, heads: int) -> torch.Tensor:
    """Return a view of W_O with the heads on its first axis."""
    weight = _w_o(model, layer).detach()
    if model.config.model_type == "xlnet":
        return weight.transpose(0, 1)
    is_transposed = isinstance(find_attention_modules(model, layer).output, Conv1D)  # [head · d_head, d_model]
    return (weight if is_transposed else weight.T).unflatten(0, (heads, -1))


def check_text(text: TokenizedText) -> None:
    """Check invariants of any text and any tokenizer."""
    typed = (text.text, text.pair)
    groups = text.groups
    assert [i for g in groups for i in g] == list(range(len(text)))
    for tokens in (text.tokens, text.by_words().tokens):
        for segment in (0, 1):
            spans = [(t.start, t.end) for t in tokens if t.segment == segment and t.start is not None]
            assert all(0 <= start < (end or 0) <= len(typed[segment]) for start, end in spans)
            assert [start for start, _ in spans] == sorted(start for start, _ in spans)
        assert all(t.text for t in tokens)
    words = [t.word for t in text.by_words().tokens if t.word is not None]
    assert words == list(range(len(words)))
    _check_words_do_not_overlap(text.by_words().tokens)


def _check_words_do_not_overlap(words: tuple[Token, ...]) -> None:
    for before, after in pairwise(words):
        if before.end is not None and after.start is not None and before.segment == after.segment:
            assert before.end <= after.start, (before, after)
