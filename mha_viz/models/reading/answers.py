"""Compute the answer of a model: the word at a masked token, the next token, or the similarity of two texts.

The part of a model that turns its last states into words is read from its files when it is first used; the layers below
it are those of the encoder.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import field, make_dataclass
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn

from mha_viz.attention.answers import Numbers
from mha_viz.errors import EmptyText, ModelBroken, ModelUnsupported, SettingError, TextError, check_kind
from mha_viz.model_names import quote_model
from mha_viz.models.families import find_family
from mha_viz.models.reading import capture
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.encoder_decoder import AnyModel, require_one_stack
from mha_viz.models.reading.properties import parse_device, parse_dtype
from mha_viz.models.reading.tokenizer import TextPieces, convert_panics
from mha_viz.quotes import quote
from mha_viz.request import BOTH, COSINE, FIRST_MASK, MASK, NEXT, OFF_CHOICES, Question
from mha_viz.text import WordPieces

MAX_WORD_CHARACTERS = 60  # maximum number of characters of a word that is looked up
MAX_SCORED_STATES = 128  # states whose probabilities are in memory at once; 50 MB for a vocabulary of 50,000
BLANK = "␣"  # shown for the space at the beginning of a piece

_word_head_lock = threading.Lock()
_word_heads: WeakKeyDictionary[Encoder, Any] = WeakKeyDictionary()  # or the reason why there is none


def make_question(
    encoder: AnyModel,
    text: str,
    pair: str = "",
    words: Sequence[str] = (),
    *,
    place: int | None = None,
    word: str = "",
    other: str = "",
    off_in: str = BOTH,
) -> Question:
    """Return the question to a model about a text.

    With ``other``, a second text, it asks how similar the two are. Otherwise it asks for the next token of a causal
    model, or for the word at a mask.

    Args:
        encoder: a model with one stack of layers.
        text: the text that the model reads.
        pair: a second text, read together with the first.
        words: the sentence as words, in place of ``text``.
        place: the masked token, if there are several; FIRST_MASK means the first one.
        word: the piece whose log-probability is the score, by default the most probable one. A space before it may be
            omitted.
        other: a text to compare ``text`` with.
        off_in: with ``other``, in which of the two texts heads are off when the question is asked again with heads off,
            and over whose tokens importance is a mean: "both", "first" (``text``) or "second" (``other``).

    Raises ModelUnsupported for a model that has no weights for words; TextError where the text has no masked token, or
    several and no ``place``, and for a word that is not one piece; SettingError for a ``place`` that is not predicted,
    an unknown ``off_in``, and settings that do not go together; EmptyText, and the errors of :meth:`Encoder.encode`.
    """
    encoder = require_one_stack(encoder)
    check_kind(word, str, "a word", "Give it as text.")
    if off_in not in OFF_CHOICES:
        raise SettingError(
            f"{quote(str(off_in))} is not one of the two texts.", f"Choose one of {', '.join(OFF_CHOICES)}."
        )
    if off_in != BOTH and not other:
        raise SettingError("off_in goes with other.", "Leave off_in out.")
    if other:
        if word or place not in (None, FIRST_MASK):
            name = "word" if word else "place"
            raise SettingError(f"{name} does not go with other.", "Leave one of them out.")
        encoder.pieces(other)
        return Question(COSINE, other=other, off_in=off_in)
    pieces = encoder.pieces(text, pair, words)
    load_word_head(encoder)
    masks = () if encoder.causal else tuple(index for index, piece in enumerate(pieces.ids) if piece == encoder.mask)
    if encoder.causal:
        question = Question(NEXT, find_last_typed(pieces))
        if place not in (None, FIRST_MASK, question.place):
            raise SettingError(f"{encoder.name} predicts the next token only.", "Leave place out (place=, --place).")
    else:
        question = Question(MASK, _choose_mask(masks, place, str(encoder.vocabulary.mask_token)), places=masks)
    if word:
        piece = _find_piece(encoder, word)
    else:
        states = encoder.states(text, pair, words=words)
        piece = int(compute_log_probabilities(encoder, states[:, question.place])[0].argmax())
    return question._replace(word=format_word(encoder, piece), piece=piece)


def find_last_typed(pieces: TextPieces | WordPieces) -> int:
    """Return the last token that is not added by the tokenizer: some tokenizers append an end token to a text."""
    return max((place for place, piece in enumerate(pieces.pieces) if piece.end > 0), default=len(pieces.ids) - 1)


def can_predict(encoder: Encoder, text: str, pair: str = "") -> bool:
    """Return whether a text has a word for the model to predict, and the model has weights for words."""
    if not encoder.causal and encoder.mask not in encoder.pieces(text, pair).ids:
        return False
    try:
        load_word_head(encoder)
    except ModelUnsupported:
        return False
    return True


def _choose_mask(masks: tuple[int, ...], place: int | None, mask: str) -> int:
    """Return the masked token to predict. Raises TextError and SettingError as :func:`make_question`."""
    if not masks:
        raise TextError(
            f"The text has no {mask}, so there is no word to predict.",
            f"Write {mask} in place of a word, or give a second text to compare it with (other=, --other).",
        )
    mask_list = ", ".join(map(str, masks))
    if place is None and len(masks) > 1:
        raise TextError(
            f"The text has {len(masks)} masked tokens: {mask_list}.", "Say which one to predict (place=, --place)."
        )
    if place not in (None, FIRST_MASK, *masks):
        raise SettingError(f"Token {place} is not masked.", f"Choose one of {mask_list}.")
    return masks[0] if place is None or place == FIRST_MASK else place


def _find_piece(encoder: Encoder, word: str) -> int:
    """Return the number of a word that is a single piece, as written inside a text or else as in the vocabulary.

    Raises TextError for other words, EmptyText for an empty one.
    """
    tokenizer, typed_word = encoder.vocabulary, word.strip()[:MAX_WORD_CHARACTERS].replace(BLANK, " ")
    if not typed_word.strip():
        raise EmptyText("No word was given.", "Type one, or leave it to the model.")
    with convert_panics(encoder.name):
        encodings = [
            tokenizer.encode(spelling, add_special_tokens=False)
            for spelling in dict.fromkeys((f" {typed_word.strip()}", typed_word))
        ]
        vocabulary_id = tokenizer.convert_tokens_to_ids(typed_word)
    pieces = [ids[0] for ids in encodings if len(ids) == 1] + ([] if vocabulary_id is None else [vocabulary_id])
    pieces = [piece for piece in pieces if piece != tokenizer.unk_token_id]
    if not pieces:
        count = min(map(len, encodings))
        problem = f"is {count} tokens" if count > 1 else "is not in the vocabulary"
        raise TextError(f"{quote(typed_word.strip())} {problem} of {encoder.name}.", "Choose a word that is one token.")
    return int(pieces[0])


def format_word(encoder: Encoder, piece: int) -> str:
    """Return a readable form of a piece of the vocabulary; "␣" stands for a space at its beginning."""
    backend = encoder.vocabulary.backend_tokenizer
    raw_name = str(backend.id_to_token(piece))
    if raw_name.startswith("▁"):
        return raw_name.replace("▁", BLANK)
    name = str(backend.decode([piece], skip_special_tokens=False)).replace(" ", BLANK)
    return name if name.isprintable() and name else raw_name


def compute_log_probabilities(encoder: Encoder, states: Any) -> Numbers:
    """Return the log-probability of every piece of the vocabulary, [variant, piece], in float64.

    ``states`` are last states, [variant, d_model]. Raises ModelUnsupported, and ModelBroken if the model's
    probabilities are not numbers.
    """
    state_tensor = torch.as_tensor(np.array(states), device=encoder.device)
    with torch.inference_mode():
        logits = compute_logits(load_word_head(encoder), state_tensor)
        log_probabilities: Numbers = logits.double().log_softmax(-1).cpu().numpy()
    return _check_probabilities(encoder, log_probabilities)


def score_pieces(encoder: Encoder, states: torch.Tensor, pieces: Sequence[int]) -> Numbers:
    """Return the log-probability of one piece for each of the last states [state, d_model]: [state], in float64.

    The whole vocabulary is scored for only a few states at a time, to limit memory. Raises the errors of
    :func:`compute_log_probabilities`.
    """
    word_head, scores = load_word_head(encoder), list[Numbers]()
    with torch.inference_mode():
        for start in range(0, len(pieces), MAX_SCORED_STATES):
            part = slice(start, start + MAX_SCORED_STATES)
            logits, piece_ids = compute_logits(word_head, states[part]).double(), torch.tensor(pieces[part])
            piece_logits = logits.gather(1, piece_ids.to(logits.device)[:, None])[:, 0]
            scores.append((piece_logits - logits.logsumexp(-1)).cpu().numpy())
    return _check_probabilities(encoder, np.concatenate(scores) if scores else np.zeros(0))


def _check_probabilities(encoder: Encoder, log_probabilities: Numbers) -> Numbers:
    """Return log-probabilities unchanged. Raises ModelBroken if they are not numbers."""
    if np.isnan(log_probabilities).any():
        raise ModelBroken(
            f"{quote_model(encoder.name)} predicts probabilities that are not numbers: its files may be damaged.",
            "Compare two texts without asking for a word, or choose another model.",
        )
    return log_probabilities


def compute_logits(word_head: Any, states: torch.Tensor) -> torch.Tensor:
    """Return the logits of last states [variant, d_model]: [variant, piece]."""
    logits: torch.Tensor = word_head(inputs_embeds=states[None].to(word_head.dtype)).logits
    return logits[0].float()


def find_output_matrix(encoder: Encoder) -> torch.Tensor:
    """Return the matrix between the last states of a causal model and its logits, [piece, d_model].

    Raises the errors of :func:`load_word_head`.
    """
    word_head = load_word_head(encoder)
    unembedding = getattr(word_head, "embed_out", None) or getattr(word_head, "lm_head", None)  # GPT-NeoX has embed_out
    if unembedding is None:
        raise ModelUnsupported(
            f"{quote_model(encoder.name)} has no single matrix between its last hidden states and its logits.",
            "Choose a model such as GPT-2, Llama or Pythia.",
        )
    output_matrix: torch.Tensor = unembedding.weight.detach()
    scale = getattr(word_head, "logit_scale", 1)  # Cohere scales its logits
    return output_matrix if scale == 1 else output_matrix * scale


def load_word_head(encoder: Encoder) -> Any:
    """Return the module that computes logits from last states; gradients can flow back through it.

    Raises ModelUnsupported, with the reason, if the files do not contain it.
    """
    with _word_head_lock:
        if encoder not in _word_heads:
            _word_heads[encoder] = _open_word_head(encoder)
    word_head = _word_heads[encoder]
    if isinstance(word_head, str):
        raise ModelUnsupported(
            f"{quote_model(encoder.name)} cannot predict words: {word_head}.",
            "Compare two texts without asking for a word, or choose a model such as toy or BERT.",
        )
    return word_head


def _open_word_head(encoder: Encoder) -> Any:
    """Return the module that computes logits, or the reason why there is none."""
    if encoder.folder is None:
        return "its weights are random"
    reason = find_family(encoder.config).no_words_reason
    if reason:
        return reason
    # Imported here, because it takes 3 s and readings do not need it.
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

    from mha_viz.models.reading.opening import silence_transformers

    auto_class: Any = AutoModelForCausalLM if encoder.causal else AutoModelForMaskedLM
    offline_options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    with silence_transformers():
        config = AutoConfig.from_pretrained(encoder.folder, **offline_options)
        model, report = auto_class.from_pretrained(
            encoder.folder,
            config=config,
            attn_implementation=capture.choose_implementation(encoder.family),
            dtype=parse_dtype(encoder.dtype),
            use_safetensors=True,
            output_loading_info=True,
            **offline_options,
        )
    missing = sorted(report["missing_keys"])
    if missing:
        return f"its files lack the weights for that (such as {missing[0]}), because it was trained for another task"
    setattr(model, model.base_model_prefix, _IdentityLayers())
    return model.eval().to(parse_device(encoder.device))


@cache
def _make_states_class() -> Any:
    """Return the class of the object that replaces the output of a model's layers."""
    from mha_viz.models.transformers_parts import BaseModelOutputWithPastAndCrossAttentions

    # Longformer reads the first of these, Mixtral and Qwen with experts the second.
    extra_fields = [(name, Any, field(default=None)) for name in ("global_attentions", "router_logits")]
    return make_dataclass("_States", extra_fields, bases=(BaseModelOutputWithPastAndCrossAttentions,))


class _IdentityLayers(nn.Module):
    """A module that replaces the layers of a model and returns its input."""

    def forward(self, *_: Any, inputs_embeds: torch.Tensor, **__: Any) -> Any:
        """Return the input as the last states."""
        return _make_states_class()(last_hidden_state=inputs_embeds)

    @property
    def decoder(self) -> nn.Module:
        """The module itself, because OPT calls its decoder instead of the whole model."""
        return self
