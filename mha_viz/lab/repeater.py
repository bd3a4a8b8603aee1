"""The repeater: a causal two-layer model with attention only, which learns to continue repeating sequences.

Words come in random order and then again in the same order, so that the next word can only be predicted from earlier
ones. The model has to find the earlier occurrence of the current word and the word that followed it, which takes two
heads in consecutive layers (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", section on
induction heads; Olsson et al. 2022). Neither task is assigned to a head, and the loss does not depend on attention
weights.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from mha_viz.corpus import lexicon
from mha_viz.errors import SettingError
from mha_viz.lab.toy_model import (
    HELD_OUT,
    Schedule,
    TrainedModel,
    TrainingProgress,
    initialise,
    make_word_tokenizer,
    train_model,
)

LAYERS, HEADS, WIDTH = 2, 4, 64
POSITIONS = 64
SEQUENCE_LENGTH = 50  # length of a sequence in words
MIN_PERIOD, MAX_PERIOD = 4, 25  # length of the repeated part in words
STEPS, BATCH = 3000, 64
LEARNING_RATE = 3e-3  # at its peak
WARM_UP = 100  # steps
SNAPSHOT_STEPS = (0, 100, 200, 300, 400, 600, 800, 1000, 1500, 2000)  # the saved steps, besides the last one
_SPECIAL_TOKENS = ("[PAD]", "[UNK]")
VOCABULARY = (*_SPECIAL_TOKENS, *sorted({form.lower() for form in lexicon.VOCABULARY}))


def make_config() -> Any:
    """Return the configuration of a GPT-2 whose feed-forward parts have one unit each and output nothing."""
    return GPT2Config(
        vocab_size=len(VOCABULARY),
        n_embd=WIDTH,
        n_layer=LAYERS,
        n_head=HEADS,
        n_inner=1,
        n_positions=POSITIONS,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
        architectures=["GPT2LMHeadModel"],
    )


def make_tokenizer() -> Any:
    """Return a tokenizer with one token per word, in lower case, and no special tokens around a text."""
    special_tokens = dict(zip(("pad_token", "unk_token"), _SPECIAL_TOKENS, strict=True))
    tokenizer_class: Any = PreTrainedTokenizerFast
    tokenizer = make_word_tokenizer(VOCABULARY)
    return tokenizer_class(tokenizer_object=tokenizer, model_max_length=POSITIONS, **special_tokens)


def train(
    seed: int = 0,
    steps: int = STEPS,
    progress: Callable[[TrainingProgress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> TrainedModel:
    """Train a model; equal arguments give equal models on one machine.

    Raises Cancelled once ``cancelled`` returns True, and SettingError when ``steps`` is below 1.
    """
    if steps < 1:
        raise SettingError(f"A model cannot train for {steps} steps.", "Give at least 1.")
    generator = torch.Generator().manual_seed(seed)
    model = _make_initial_model(generator)
    trainable_weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(trainable_weights, lr=LEARNING_RATE, weight_decay=0.01)
    schedule = Schedule(steps, LEARNING_RATE, WARM_UP, SNAPSHOT_STEPS)
    compute_losses = lambda: {"next": _compute_loss(model, *draw_sequences(generator))}  # noqa: E731
    return train_model(seed, model, optimiser, schedule, compute_losses, progress, cancelled)


def draw_sequences(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw repeating sequences of random words, [sequence, token], and the period of each, [sequence]."""
    words = torch.randint(len(_SPECIAL_TOKENS), len(VOCABULARY), (BATCH, MAX_PERIOD), generator=generator)
    periods = torch.randint(MIN_PERIOD, MAX_PERIOD + 1, (BATCH,), generator=generator)
    return words.gather(1, torch.arange(SEQUENCE_LENGTH) % periods[:, None]), periods


def _make_initial_model(generator: torch.Generator) -> Any:
    """Return a model with random weights that depend only on ``generator``, and feed-forward parts that output zero."""
    model = GPT2LMHeadModel(make_config())
    for name, weight in model.named_parameters():
        initialise(name, weight, generator)
        if ".ln_" in name and name.endswith("weight"):
            nn.init.ones_(weight)
        if ".mlp." in name:
            nn.init.zeros_(weight)
            weight.requires_grad_(False)
    return model.train()


def measure_next_word_loss(folder: Path) -> float:
    """Return the mean loss of the repeater in a folder, on sequences that it was not trained on."""
    model = GPT2LMHeadModel.from_pretrained(folder, local_files_only=True)
    with torch.no_grad():
        return _compute_loss(model, *draw_sequences(torch.Generator().manual_seed(HELD_OUT))).item()


def _compute_loss(model: Any, tokens: Tensor, periods: Tensor) -> Tensor:
    """Return the mean loss of the predictable words, which are those that follow a word that has occurred before."""
    logits = model(tokens).logits[:, :-1]
    is_predictable = torch.arange(1, SEQUENCE_LENGTH) > periods[:, None]
    return nn.functional.cross_entropy(logits[is_predictable], tokens[:, 1:][is_predictable])
