"""Score whole sentences, with all heads and with some of them off.

The score of a sentence is log p. For a causal model it is the sum over its tokens, each given those before it; the
first token has no prediction unless the tokenizer puts one before the text. For a model that predicts masked words it
is the pseudo-log-likelihood (Salazar et al. 2020): the sum over tokens, each masked in turn and predicted from all
others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from mha_viz.attention import Head, Weights
from mha_viz.attention.answers import Numbers
from mha_viz.errors import ModelUnsupported, TextError
from mha_viz.model_names import quote_model
from mha_viz.models.intervening import ablation
from mha_viz.models.intervening.ablation import LayerInputTap, Substitute
from mha_viz.models.reading.answers import load_word_head, score_pieces
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.tokenizer import TextPieces
from mha_viz.process.steps import split_range
from mha_viz.quotes import quote

MAX_BATCH_TOKENS = 512  # maximum number of tokens in a batch, over all copies and heads; a single copy may have more
LOG_P, PSEUDO_LOG_P = "log p", "pseudo-log-likelihood"
# Takes the numbers of some copies of a sentence. Returns the replacement for the outputs of heads in a batch of these
# copies, repeated for each head that is off.
MakeCopySubstitute = Callable[[range], Substitute]


class CopyPieces(NamedTuple):
    """A copy of a sentence as the model reads it, with the tokens to predict.

    ``target_ids`` are the pieces to predict, and ``places`` the tokens whose last states predict them.
    """

    ids: list[int]
    types: list[int]
    places: list[int]
    target_ids: list[int]


class SentencePieces(NamedTuple):
    """A sentence, and the copies of it that the model reads: one, or one for each masked token."""

    pieces: TextPieces
    copies: list[CopyPieces]


def check_scorable(encoder: Encoder) -> str:
    """Return the name of a sentence's score. Raises ModelUnsupported for a model that predicts no words."""
    try:
        load_word_head(encoder)
    except ModelUnsupported as error:
        raise ModelUnsupported(error.problem, "Choose one that does, such as toy, BERT or GPT-2.") from error
    if not encoder.causal and encoder.mask is None:
        raise ModelUnsupported(f"{quote_model(encoder.name)} has no mask token.", "Choose a model such as BERT.")
    return LOG_P if encoder.causal else PSEUDO_LOG_P


def scores_first_token(encoder: Encoder) -> bool:
    """Return whether the first token of a sentence is scored: not by a causal model that reads nothing before it."""
    return not encoder.causal or bool(encoder.pieces("a").tokenized().special[0])


def split_sentence(encoder: Encoder, text: str) -> SentencePieces:
    """Return a sentence with the tokens to predict.

    Raises TextError if it is too long, leaves nothing to predict, or has a masked token.
    """
    pieces = encoder.pieces(text)
    assert isinstance(pieces, TextPieces)
    if pieces.cut is not None:
        raise TextError(f"{quote(text)} has more tokens than {encoder.name} reads.", "Shorten it.")
    word_places = [place for place, is_special in enumerate(pieces.tokenized().special) if not is_special]
    if not encoder.causal:
        assert encoder.mask is not None
        if not word_places:
            raise TextError(f"{quote(text)} has no word, so it has no score.", "Write a sentence.")
        if encoder.mask in pieces.ids:
            raise TextError(
                f"{quote(text)} has a masked token, and the score masks each token in turn.",
                "Write the word in its place.",
            )
        return SentencePieces(pieces, [_mask_piece(pieces, place, encoder.mask) for place in word_places])
    predicted_places = [place for place in word_places if place > 0]
    if not predicted_places:
        raise TextError(f"{quote(text)} is a single token, which nothing predicts.", "Write a longer sentence.")
    places, target_ids = [place - 1 for place in predicted_places], [pieces.ids[place] for place in predicted_places]
    return SentencePieces(pieces, [CopyPieces(pieces.ids, pieces.types, places, target_ids)])


def score_without(
    encoder: Encoder,
    sentence: SentencePieces,
    variants: Sequence[tuple[Head, ...]],
    make_substitute: MakeCopySubstitute,
    skip_count: int = 0,
) -> tuple[float, Numbers]:
    """Return the score of a sentence with all heads, and with the heads of each variant off, [variant], in nats.

    Layers before the first of these heads are computed once, if passes of the model can begin at any layer; in a causal
    model, variants of a single head share them in any case.

    Args:
        encoder: the model.
        sentence: the sentence.
        variants: the heads that are off together in each variant, at least one.
        make_substitute: returns the replacement for their outputs.
        skip_count: the number of predictions at the beginning to leave out of the scores of variants, because a
            causal model makes them in the sentence with which this one is compared, too.
    """
    score = _score_causal if encoder.causal else _score_masked
    return score(encoder, sentence, variants, make_substitute, skip_count)


def _group_by_layer(variants: Sequence[tuple[Head, ...]], indices: Iterable[int]) -> dict[int, list[int]]:
    """Group the numbers of some variants by the first layer in which a head is off."""
    layers: dict[int, list[int]] = {}
    for index in indices:
        layers.setdefault(min(head.layer for head in variants[index]), []).append(index)
    return layers


def count_shared(first: SentencePieces, second: SentencePieces) -> int:
    """Count the predictions at the beginning that a causal model makes alike in two sentences."""
    ids = zip(first.pieces.ids, second.pieces.ids, strict=False)
    shared_length = next((place for place, (first_id, second_id) in enumerate(ids) if first_id != second_id), None)
    shared_length = min(len(first.pieces.ids), len(second.pieces.ids)) if shared_length is None else shared_length
    return sum(place + 1 < shared_length for place in first.copies[0].places)


def _mask_piece(pieces: TextPieces, place: int, mask: int) -> CopyPieces:
    return CopyPieces([*pieces.ids[:place], mask, *pieces.ids[place + 1 :]], pieces.types, [place], [pieces.ids[place]])


# ---- Causal models ----------------------------------------------------------------------------------------------


def _score_unablated(encoder: Encoder, sentence: SentencePieces) -> Numbers:
    """Return log p of each predicted token, [token]."""
    (copy,) = sentence.copies
    states = torch.from_numpy(ablation.run_full_pass(encoder, sentence.pieces.text).states[copy.places])
    return score_pieces(encoder, states.to(encoder.device), copy.target_ids)


def _score_causal(
    encoder: Encoder,
    sentence: SentencePieces,
    variants: Sequence[tuple[Head, ...]],
    make_substitute: MakeCopySubstitute,
    skip_count: int,
) -> tuple[float, Numbers]:
    """Compute :func:`score_without` for a causal model: variants that lack one head diverge at its W_O."""
    (copy,), scores = sentence.copies, np.zeros(len(variants))
    places, target_ids = copy.places[skip_count:], copy.target_ids[skip_count:]
    substitute = make_substitute(range(1))
    for batch_indices in _split_causal(variants, len(copy.ids)) if places else ():
        states = torch.from_numpy(
            _run_causal(encoder, sentence.pieces.text, [variants[index] for index in batch_indices], substitute)
        )
        predicting_states = states[:, places].flatten(0, 1).to(encoder.device)
        scores[batch_indices] = (
            score_pieces(encoder, predicting_states, target_ids * len(batch_indices))
            .reshape(len(batch_indices), -1)
            .sum(axis=1)
        )
    return float(_score_unablated(encoder, sentence).sum()), scores


def _split_causal(variants: Sequence[tuple[Head, ...]], n: int) -> Iterator[list[int]]:
    """Yield the numbers of variants for each batch: single heads by layer, then sets of heads."""
    single_heads = [index for index, heads in enumerate(variants) if len(heads) == 1]
    head_sets = [index for index, heads in enumerate(variants) if len(heads) > 1]
    for indices in (*_group_by_layer(variants, single_heads).values(), head_sets):
        for part in split_range(0, len(indices), max(1, MAX_BATCH_TOKENS // n)):
            yield indices[part.start : part.stop]


def _run_causal(encoder: Encoder, text: str, variants: Sequence[tuple[Head, ...]], substitute: Substitute) -> Weights:
    """Return the last states of the variants of a batch, [variant, n, d_model]."""
    if len(variants[0]) > 1:
        return ablation.compute_states_without(encoder, variants, substitute, text)
    make_variants = ablation.ablate_one_by_one([head.head for (head,) in variants])
    return ablation.run_forked_pass(encoder, variants[0][0].layer, make_variants, substitute, text).states


# ---- Masked copies ----------------------------------------------------------------------------------------------


class _Block(NamedTuple):
    """Copies of a sentence that are read in one batch: their numbers, and the copies."""

    numbers: range
    copies: list[CopyPieces]

    @property
    def places(self) -> list[int]:
        """The masked token of each copy."""
        return [copy.places[0] for copy in self.copies]


def _iter_blocks(
    encoder: Encoder, sentence: SentencePieces
) -> Iterator[tuple[_Block, torch.Tensor, list[torch.Tensor]]]:
    """Yield the copies of a sentence in batches, with their last states and the input of each layer."""
    n, count = len(sentence.pieces.ids), len(sentence.copies)
    for numbers in split_range(0, count, max(1, MAX_BATCH_TOKENS // n)):
        block = _Block(numbers, sentence.copies[numbers.start : numbers.stop])
        tap = LayerInputTap(encoder.allocate(n, len(block.copies)))
        yield block, encoder.batch_states(block.copies, tap), tap.layer_inputs


def _select_masked_states(states: torch.Tensor, block: _Block) -> torch.Tensor:
    """Return the states of the masked tokens, [variant · copy, d_model], of states [variant · copy, n, d_model]."""
    variants = len(states) // len(block.copies)
    return states[torch.arange(len(states)), block.places * variants]


def _score_copies(encoder: Encoder, states: torch.Tensor, block: _Block) -> Numbers:
    """Return log p of the masked tokens of a block, [variant, copy], from their states [variant · copy, d_model]."""
    target_ids = [copy.target_ids[0] for copy in block.copies]
    variants = len(states) // len(target_ids)
    return score_pieces(encoder, states, target_ids * variants).reshape(variants, -1)


def _score_masked(
    encoder: Encoder,
    sentence: SentencePieces,
    variants: Sequence[tuple[Head, ...]],
    make_substitute: MakeCopySubstitute,
    _: int,
) -> tuple[float, Numbers]:
    """Compute :func:`score_without` for masked copies of a sentence, several variants at a time."""
    total, scores, n = 0.0, np.zeros(len(variants)), len(sentence.pieces.ids)
    layers = _group_by_layer(variants, range(len(variants)))
    for block, states, layer_inputs in _iter_blocks(encoder, sentence):
        total += float(_score_copies(encoder, _select_masked_states(states, block), block).sum())
        substitute, batch_size = make_substitute(block.numbers), max(1, MAX_BATCH_TOKENS // (n * len(block.copies)))
        for layer, indices in layers.items():
            for part in split_range(0, len(indices), batch_size):
                batch_indices = indices[part.start : part.stop]
                ablated_heads = [variants[index] for index in batch_indices for _ in block.copies]
                tap = ablation.make_ablation_tap(ablated_heads, substitute)(encoder.allocate(n, len(ablated_heads)))
                changed_states = _run_copies(encoder, block, len(batch_indices), tap, layer, layer_inputs)
                scores[batch_indices] += _score_copies(encoder, changed_states, block).sum(axis=1)
    return total, scores


def _run_copies(
    encoder: Encoder, block: _Block, variants: int, tap: Tap, layer: int, layer_inputs: Sequence[torch.Tensor]
) -> torch.Tensor:
    """Return the states of the masked tokens of a block, repeated for each variant, [variant · copy, d_model].

    ``tap`` changes nothing before ``layer``, where the pass begins if the model allows it.
    """
    if not layer_inputs:
        return _select_masked_states(encoder.batch_states(block.copies * variants, tap), block)
    tap.stop_after_last = False
    tap.seen = layer
    x = layer_inputs[layer].repeat(variants, 1, 1)
    return encoder.resume_states(x, tap, block.places * variants)[:, 0]
