"""Generate a target with the model: at each step its most probable next token."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import torch

from mha_viz.models.reading.properties import read_config_int

MAX_TARGET_TOKENS = 64  # maximum number of tokens in a generated target


class GenerationSettings(NamedTuple):
    """Settings for generating a target, from the model's files.

    Attributes:
        start_token: the token that a target begins with; None if the files do not name one.
        forced_token: the token that must follow it, if any.
        end_tokens: the tokens that end a target.
        banned_tokens: the tokens that are never generated.
    """

    start_token: int | None
    forced_token: int | None
    end_tokens: frozenset[int]
    banned_tokens: tuple[int, ...]


def read_generation_settings(model: Any) -> GenerationSettings:
    """Read the settings in a model's generation_config.json, or else in its config.json."""
    end_tokens, bad_words = _read_setting(model, "eos_token_id"), _read_setting(model, "bad_words_ids")
    single_tokens = (
        [word[0] for word in bad_words if isinstance(word, list) and len(word) == 1] if _is_list(bad_words) else []
    )
    return GenerationSettings(
        _keep_valid_token(model, _read_setting(model, "decoder_start_token_id")),
        _keep_valid_token(model, _read_setting(model, "forced_bos_token_id")),
        frozenset(end_tokens if _is_list(end_tokens) else [end_tokens]),
        tuple(token for token in single_tokens if _keep_valid_token(model, token) is not None),
    )


def _read_setting(model: Any, name: str) -> Any:
    """Return a setting of the generation config, or else of the config."""
    value = getattr(model.generation_config, name, None)
    return getattr(model.config, name, None) if value is None else value


def _is_list(value: object) -> bool:
    """Return whether a value is a list or a tuple."""
    return isinstance(value, list | tuple)


def _keep_valid_token(model: Any, value: object) -> int | None:
    """Return the token if the model has it, else None."""
    return value if type(value) is int and 0 <= value < read_config_int(model.config, "vocab_size") else None


def generate_greedily(model: Any, source: torch.Tensor, settings: GenerationSettings, max_tokens: int) -> list[int]:
    """Return the tokens that the model generates for a ``source``, [1, n], after the start token of the target.

    At most ``max_tokens`` are returned, without the end token. Among equally probable tokens the first is chosen, so
    that the same source always gives the same target.
    """
    from mha_viz.models.transformers_parts import BaseModelOutput  # transformers has been imported to open the model

    tokens: list[int] = []
    # The name of the key–value cache, as argument and in the output, differs between versions: "past_key_values" until
    # transformers 5.23.
    cache_name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    with torch.inference_mode():
        output = model.get_encoder()(input_ids=source)
        states, cache, token = BaseModelOutput(last_hidden_state=output.last_hidden_state), None, settings.start_token
        while len(tokens) < max_tokens:
            decoder_ids = torch.tensor([[token]], device=model.device)
            step = model(encoder_outputs=states, decoder_input_ids=decoder_ids, use_cache=True, **{cache_name: cache})
            token, cache = _choose_next(step.logits[0, -1], settings, is_first=not tokens), step[cache_name]
            if token in settings.end_tokens:
                break
            tokens.append(token)
    return tokens


def _choose_next(logits: torch.Tensor, settings: GenerationSettings, is_first: bool) -> int:
    """Return the most probable allowed token, or the token that must come first."""
    if is_first and settings.forced_token is not None:
        return settings.forced_token
    if settings.banned_tokens:
        logits[list(settings.banned_tokens)] = -torch.inf
    return int(logits.argmax())
