"""A target written by the model itself: at each step its most probable next token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from transformers.modeling_outputs import BaseModelOutput

MOST = 64  # tokens of a target that a model writes


class Writing(NamedTuple):
    """How the files of a model say that a target is written: the token that it begins with (None where they name
    none), the one that must follow, those that end it, and those that are never written."""

    start: int | None
    first: int | None
    ends: frozenset[int]
    never: tuple[int, ...]


def writing_of(model: Any) -> Writing:
    """What a model's generation_config.json says, or else its config.json."""
    ends, banned = _setting(model, "eos_token_id"), _setting(model, "bad_words_ids")
    alone = [word[0] for word in banned if isinstance(word, list) and len(word) == 1] if _is_list(banned) else []
    return Writing(
        _token(model, _setting(model, "decoder_start_token_id")),
        _token(model, _setting(model, "forced_bos_token_id")),
        frozenset(ends if _is_list(ends) else [ends]),
        tuple(token for token in alone if _token(model, token) is not None),
    )


def _setting(model: Any, name: str) -> Any:
    value = getattr(model.generation_config, name, None)
    return getattr(model.config, name, None) if value is None else value


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _token(model: Any, value: object) -> int | None:
    """A token that the model has."""
    return value if type(value) is int and 0 <= value < int(model.config.vocab_size) else None


def greedy(model: Any, source: Sequence[int], writing: Writing, most: int) -> list[int]:
    """The tokens that the model writes after the one that a target begins with, at most so many and without the one
    that ends it. Of tokens that are equally probable the first is taken, so that the same source gives the same
    target."""
    written: list[int] = []
    with torch.inference_mode():
        read = model.get_encoder()(input_ids=torch.tensor([source], device=model.device))
        states, cache, last = BaseModelOutput(last_hidden_state=read.last_hidden_state), None, writing.start
        while len(written) < most:
            given = torch.tensor([[last]], device=model.device)
            step = model(encoder_outputs=states, decoder_input_ids=given, past_key_values=cache, use_cache=True)
            last, cache = _next(step.logits[0, -1], writing, is_first=not written), step.past_key_values
            if last in writing.ends:
                break
            written.append(last)
    return written


def _next(logits: torch.Tensor, writing: Writing, is_first: bool) -> int:
    if is_first and writing.first is not None:
        return writing.first
    if writing.never:
        logits[list(writing.never)] = -torch.inf
    return int(logits.argmax())
