"""Continue a text with a causal model, choosing the most probable next token at each step."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mha_viz.attention.answers import MAX_WORDS, Continuation
from mha_viz.errors import ModelUnsupported, SettingError, TextError, shorten_value
from mha_viz.heads import is_number
from mha_viz.model_names import quote_model
from mha_viz.models.families import is_listed
from mha_viz.models.reading.answers import compute_log_probabilities, find_last_typed
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.encoder_decoder import AnyModel, require_one_stack
from mha_viz.models.reading.tokenizer import TextPieces

EMPTY = Continuation()
PIECES_PER_WORD = 6  # maximum on average; without spaces between words, nothing else ends a text


def continue_text(model: AnyModel, text: str, words: int = 8) -> str:
    """Return a text continued by up to ``words`` words from a causal model.

    At each step the model's most probable next token is added, so that the same text is always continued in the same
    way. A model may end earlier.

    Raises ModelUnsupported for a model that reads in both directions, has no weights for words, or is of a family of
    which only attention weights are read; SettingError for a number of words other than 1 to 32; TextError if the text
    leaves no room for more; EmptyText.

    >>> continue_text(mv.load("repeater"), "dog river anna dog river", words=2)
    'dog river anna dog river anna dog'
    """
    return text + write_more(model, text, words, steps=MAX_WORDS * PIECES_PER_WORD).text


def write_more(model: AnyModel, text: str, words: int, state: Continuation = EMPTY, steps: int = 1) -> Continuation:
    """Return a model's continuation after up to ``steps`` more pieces.

    ``state`` is the continuation so far. Raises the errors of :func:`continue_text`.
    """
    encoder = require_one_stack(model)
    if not is_number(words) or not 1 <= words <= MAX_WORDS:
        raise SettingError(f"words is {shorten_value(words)!r}.", f"Expected a number from 1 to {MAX_WORDS}.")
    _check_can_continue(encoder)
    text_pieces = encoder.pieces(text)
    assert isinstance(text_pieces, TextPieces)
    delimiters = {*encoder.vocabulary.all_special_ids}
    prompt = text_pieces.ids[: find_last_typed(text_pieces) + 1]
    if text_pieces.cut is not None or len(prompt) >= encoder.limit:
        raise TextError(
            f"{encoder.name} reads {encoder.limit:,} tokens, and the text leaves no room for more.", "Shorten the text."
        )

    for _ in range(steps):
        if state.is_complete:
            break
        ids = [*prompt, *state.pieces]
        hidden_state = encoder.last_states(text_pieces._replace(ids=ids, types=[0] * len(ids)), Tap)[0][:, -1]
        next_piece = int(compute_log_probabilities(encoder, hidden_state.cpu().numpy())[0].argmax())
        if next_piece in delimiters:
            return state._replace(text=_cut_after_words(state.text, words), is_complete=True)
        pieces = (*state.pieces, next_piece)
        new_text = _decode(encoder, prompt, pieces)
        is_full = len(new_text.split()) > words or len(pieces) >= min(
            words * PIECES_PER_WORD, encoder.limit - len(prompt)
        )
        state = Continuation(pieces, _cut_after_words(new_text, words) if is_full else new_text, is_full)
    return state


def _check_can_continue(encoder: Encoder) -> None:
    """Raise ModelUnsupported unless a model is causal and of a listed family."""
    if not encoder.causal:
        raise ModelUnsupported(
            f"{quote_model(encoder.name)} reads in both directions, so it cannot continue a text.",
            "Choose a causal model, such as GPT-2.",
        )
    if not is_listed(encoder.family):
        raise ModelUnsupported(
            f"{quote_model(encoder.name)} is read without predictions (weights only), so it cannot continue a text.",
            "Generate with transformers, generate(…, output_attentions=True, return_dict_in_generate=True), and draw "
            "that with mha_viz.Attention.from_generated; or choose a model such as GPT-2.",
        )


def _decode(encoder: Encoder, prompt: Sequence[int], pieces: Sequence[int]) -> str:
    """Return the text of the pieces as they follow the prompt, without a last character whose bytes are incomplete."""
    decode = encoder.vocabulary.decode
    options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
    prompt_text, full_text = (str(decode(ids, **options)) for ids in ([*prompt], [*prompt, *pieces]))
    has_prompt = full_text.startswith(prompt_text)
    return (full_text[len(prompt_text) :] if has_prompt else f" {decode([*pieces], **options)}").rstrip("\ufffd")


def _cut_after_words(text: str, words: int) -> str:
    """Return the beginning of a text, up to a number of words."""
    match = re.match(rf"(?:\s*\S+){{0,{words}}}", text)
    return match[0] if match else ""
