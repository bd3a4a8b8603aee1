"""References for every model: transformers' own numbers on these sentences, and conditions that hold for any tokens."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from transformers.pytorch_utils import Conv1D

from mha_viz.models.probe import place
from mha_viz.text import Token, TokenizedText

SENTENCE = "The animal didn't cross the street because it was too tired."
SECOND = "Zoë's café isn't far, is it?"
EQUAL = 1e-5


def attentions(model: Any, outputs: Any) -> list[torch.Tensor]:
    """[sentence, head, query, key] of each layer, from what a model of transformers puts out. Longformer's rows hold
    the keys of a window, the query in its middle."""
    if model.config.model_type != "longformer":
        return list(outputs.attentions)
    return [unfolded(layer) for layer in outputs.attentions]


def unfolded(rows: torch.Tensor) -> torch.Tensor:
    """[…, query, place in the window] → […, query, key], 0 outside the window."""
    n, reach = rows.shape[2], rows.shape[3] // 2
    whole = rows.new_zeros(*rows.shape[:2], n, n)
    for query in range(n):
        for key in range(max(0, query - reach), min(n, query + reach + 1)):
            whole[:, :, query, key] = rows[:, :, query, key - query + reach]
    return whole


def silence(model: Any, layer: int, head: int, heads: int) -> None:
    """Make a head of a transformers model output zero, by setting its slice of W_O to zero."""
    with torch.no_grad():
        if model.config.model_type == "xlnet":  # [d_model, head, d_head]
            model.get_submodule(f"layer.{layer}.rel_attn").o[:, head] = 0
            return
        output = place(model, layer).output
        weight = output.weight if isinstance(output, Conv1D) else output.weight.T  # [head · d_head, d_model]
        weight.unflatten(0, (heads, -1))[head] = 0


def check_text(text: TokenizedText) -> None:
    """Check what must hold for any text and any tokenizer."""
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
    _check_words_are_apart(text.by_words().tokens)


def _check_words_are_apart(words: tuple[Token, ...]) -> None:
    for before, after in pairwise(words):
        if before.end is not None and after.start is not None and before.segment == after.segment:
            assert before.end <= after.start, (before, after)
