"""The toy model: a small encoder that learns the language of :mod:`mha_viz.corpus.grammar` within minutes.

It answers four questions about sentences in which some words are masked or changed: which word belongs here, which word
precedes this one, what this pronoun refers to, and what the predicate of this subject is. Every answer is a word,
predicted from the vectors of the last layer. No head is assigned a task, and the loss does not depend on attention
weights. Trained on masked words alone, it answers only the first question.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from mha_viz.corpus import grammar, lexicon
from mha_viz.corpus.treebank import Sentence, Word
from mha_viz.errors import Cancelled, SettingError
from mha_viz.files import move_into_place, temporary_folder
from mha_viz.models.getting import snapshots

LAYERS, HEADS, WIDTH = 2, 4, 64
FEED_FORWARD = 128
POSITIONS = 40  # tokens; the longest sentence of the grammar has fewer
STEPS = 10_000
BATCH = 64
QUESTIONS = ("previous", "antecedent", "predicate")  # the questions besides the masked words
HELD_OUT = 1  # seed of the sentences on which the loss of a model is measured
POOL_SIZE = 40_000  # number of sentences that are sampled before training and used several times
LEARNING_RATE = 2e-3  # at its peak
WARM_UP = 200  # steps
SNAPSHOT_STEPS = (0, 50, 100, 200, 300, 400, 600, 800, 1000, 1500, 2000, 3000, 4000, 6000)  # and the last step

MASKED_SHARE = 0.12  # share of words that are masked; it is larger for verbs that agree and for pronouns
MASKED_VERB_SHARE, MASKED_PRONOUN_SHARE = 0.25, 0.2
WRONG_NUMBER_SHARE = 0.3  # share of unmasked verbs that the model sees in the wrong number

_SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_PAD, _UNKNOWN, _BEGIN, _END, _MASK = range(5)
_IGNORED = -100  # the target of tokens that the loss skips
VOCABULARY = (*_SPECIAL_TOKENS, *sorted({form.lower() for form in lexicon.VOCABULARY}))
_ID_BY_FORM = {form: number for number, form in enumerate(VOCABULARY)}

ToyWeights = dict[str, Tensor]


class TrainingProgress(NamedTuple):
    """The state of a training run, with the loss of each question, averaged over the steps since the last report."""

    step: int
    steps: int
    losses: Mapping[str, float]


@dataclass(frozen=True)
class TrainedModel:
    """A trained model. ``snapshots`` holds its weights at the recorded steps, including the last one."""

    seed: int
    model: Any
    snapshots: Mapping[int, ToyWeights]
    history: tuple[TrainingProgress, ...]


# ---- questions ------------------------------------------------------------------------------------------


class TrainingExample(NamedTuple):
    """A training example: one sentence with [CLS] and [SEP], and the answer to each question at each token."""

    ids: list[int]
    previous: list[int]  # the preceding word
    antecedent: list[int]  # at a pronoun: the noun or name that it stands for
    predicate: list[int]  # at a subject: the word it depends on
    other_number: list[int]  # at a form that agrees: its singular or plural counterpart; else the same word
    is_pronoun: list[int]  # 1 at pronouns


def make_example(sentence: Sentence) -> TrainingExample:
    """Return the training example for a sentence."""
    ids = [_get_token_id(word.form) for word in sentence.words]
    predicate = [ids[w.head] if w.relation == "nsubj" and w.head is not None else _IGNORED for w in sentence.words]
    counterpart = lexicon.OTHER_NUMBER
    other_number = [
        _get_token_id(counterpart[w.form.lower()]) if _has_agreement(w) else i
        for w, i in zip(sentence.words, ids, strict=True)
    ]
    is_pronoun = [int("PronType=Prs" in w.features) for w in sentence.words]
    previous = [_IGNORED, *ids[:-1]]
    antecedents, first_words = [_IGNORED] * len(ids), dict[str, int]()
    for mention in sorted(sentence.mentions, key=lambda mention: mention.word):
        if mention.chain in first_words:  # each later mention is answered by the word of the first mention
            antecedents[mention.word] = ids[first_words[mention.chain]]
        first_words.setdefault(mention.chain, mention.word)
    ends = [(_BEGIN, _END), *[(_IGNORED, _IGNORED)] * 3, (_BEGIN, _END), (0, 0)]
    rows = (ids, previous, antecedents, predicate, other_number, is_pronoun)
    return TrainingExample(*([begin, *row, end] for row, (begin, end) in zip(rows, ends, strict=True)))


def _get_token_id(form: str) -> int:
    return _ID_BY_FORM.get(form.lower(), _UNKNOWN)


def _has_agreement(word: Word) -> bool:
    """Return whether a word is a finite verb that agrees in number."""
    is_finite = word.upos == "AUX" or "VerbForm=Fin" in word.features
    return is_finite and "Number=" in word.features


def _iter_batches(pool: Sequence[TrainingExample], rng: Random) -> Iterator[list[Tensor]]:
    """Yield endless batches of examples of similar length, each field as [sentence, token]."""
    while True:
        sample = sorted(rng.sample(pool, min(len(pool), 8 * BATCH)), key=lambda example: len(example.ids))
        batches = [sample[start : start + BATCH] for start in range(0, len(sample), BATCH)]
        rng.shuffle(batches)
        for batch in batches:
            fields = list[Tensor]()
            for rows, fill in zip(zip(*batch, strict=True), _PADDING, strict=True):
                max_length = max(map(len, rows))
                fields.append(torch.tensor([row + [fill] * (max_length - len(row)) for row in rows]))
            yield fields


_PADDING = (_PAD, _IGNORED, _IGNORED, _IGNORED, _PAD, 0)  # for each field of TrainingExample


def _corrupt(
    ids: Tensor, other_number: Tensor, is_pronoun: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return the corrupted input and the targets, which are the masked words and every form that agrees in number."""
    mask_draw, action_draw = (torch.rand(ids.shape, generator=generator) for _ in range(2))
    has_agreement = other_number != ids
    share = (
        torch.full(ids.shape, MASKED_SHARE)
        .masked_fill(has_agreement, MASKED_VERB_SHARE)
        .masked_fill(is_pronoun > 0, MASKED_PRONOUN_SHARE)
    )
    is_masked = (ids > _MASK) & (mask_draw < share)
    random_ids = torch.randint(len(_SPECIAL_TOKENS) - 1, len(VOCABULARY), ids.shape, generator=generator)
    random_ids = random_ids.masked_fill(random_ids == _MASK, _UNKNOWN)
    inputs = torch.where(is_masked & (action_draw < 0.8), _MASK, ids)
    inputs = torch.where(is_masked & (action_draw > 0.9), random_ids, inputs)
    inputs = torch.where(has_agreement & ~is_masked & (action_draw < WRONG_NUMBER_SHARE), other_number, inputs)
    return inputs, torch.where(is_masked | has_agreement, ids, _IGNORED)


# ---- the model ------------------------------------------------------------------------------------------


def make_config() -> Any:
    """Return the configuration of a small BERT."""
    return BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=FEED_FORWARD,
        max_position_embeddings=POSITIONS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=_PAD,
        architectures=["BertForMaskedLM"],
    )


class _MultiTaskModel(nn.Module):
    """The model with a linear classifier for each question besides the masked words; only the model is saved."""

    def __init__(self, generator: torch.Generator, questions: Sequence[str]) -> None:
        super().__init__()
        self.model = BertForMaskedLM(make_config())
        self.classifiers = nn.ModuleDict({name: nn.Linear(WIDTH, len(VOCABULARY)) for name in questions})
        for name, weight in self.named_parameters():
            initialise(name, weight, generator)

    def losses(self, batch: Sequence[Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        """Return the mean loss of each question over the tokens at which it is asked."""
        ids, *answers, other_number, is_pronoun = batch
        inputs, targets = _corrupt(ids, other_number, is_pronoun, generator)
        # [sentence, token, width]
        vectors = self.model.bert(inputs, attention_mask=(ids != _PAD).long()).last_hidden_state
        losses = {"masked": _compute_loss(self.model.cls, vectors, targets)}
        answers_by_question = dict(zip(QUESTIONS, answers, strict=True))
        for name, classifier in self.classifiers.items():
            losses[name] = _compute_loss(classifier, vectors, answers_by_question[name])
        return losses


def measure_masked_word_loss(folder: Path) -> float:
    """Return the mean loss of the toy model in a folder, at masked words of sentences that it was not trained on."""
    rng, generator = Random(HELD_OUT), torch.Generator().manual_seed(HELD_OUT)
    learner = _MultiTaskModel(generator, ())
    learner.model = BertForMaskedLM.from_pretrained(folder, local_files_only=True)
    examples = _sample_examples(4 * BATCH, rng, None, lambda _done, _total: None)
    batches = _iter_batches(examples, rng)
    with torch.no_grad():
        return sum(learner.losses(next(batches), generator)["masked"].item() for _ in range(4)) / 4


def initialise(name: str, weight: Tensor, generator: torch.Generator) -> None:
    """Set a weight to its initial values, which depend only on ``generator``."""
    with torch.no_grad():
        if weight.dim() > 1:
            weight.normal_(0.0, 0.02, generator=generator)
        else:
            weight.fill_(1.0 if name.endswith("LayerNorm.weight") else 0.0)


def _compute_loss(classifier: Callable[[Tensor], Tensor], vectors: Tensor, answers: Tensor) -> Tensor:
    """Return the mean cross-entropy of a classifier where there is an answer; 0 if there is none."""
    has_answer = answers != _IGNORED
    if not has_answer.any():
        return vectors.sum() * 0.0
    return nn.functional.cross_entropy(classifier(vectors[has_answer]), answers[has_answer])


# ---- training -------------------------------------------------------------------------------------------


def train(
    seed: int = 0,
    steps: int = STEPS,
    progress: Callable[[TrainingProgress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    pool: int = POOL_SIZE,
    questions: Sequence[str] = QUESTIONS,
    report_sampling: Callable[[int, int], None] = lambda _done, _total: None,
) -> TrainedModel:
    """Train a model on ``pool`` sentences of the grammar; equal arguments give equal models on one machine.

    Without ``questions`` it learns from masked words alone, from the same initial weights. The sentences are sampled
    first, which takes seconds; ``report_sampling`` is called with the number sampled so far and the total.

    Raises Cancelled once ``cancelled`` returns True, and SettingError when ``steps`` or ``pool`` is below 1.
    """
    if steps < 1 or pool < 1:
        raise SettingError(f"{steps} steps on {pool} sentences.", "Give at least 1 of each.")
    rng, generator = Random(seed), torch.Generator().manual_seed(seed)
    batches = _iter_batches(_sample_examples(pool, rng, cancelled, report_sampling), rng)
    learner = _MultiTaskModel(generator, questions)
    optimiser = torch.optim.AdamW(learner.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    schedule = Schedule(steps, LEARNING_RATE, WARM_UP, SNAPSHOT_STEPS)
    compute_losses = lambda: learner.losses(next(batches), generator)  # noqa: E731
    return train_model(seed, learner.model, optimiser, schedule, compute_losses, progress, cancelled)


def _sample_examples(
    count: int, rng: Random, cancelled: Callable[[], bool] | None, report: Callable[[int, int], None]
) -> list[TrainingExample]:
    """Sample training examples from the grammar. Raises Cancelled."""
    examples: list[TrainingExample] = []
    while len(examples) < count:
        if len(examples) % 500 == 0:
            raise_if_cancelled(cancelled)
            report(len(examples), count)
        sentence = grammar.sample_sentence(rng)
        if len(sentence.words) + 2 <= POSITIONS:
            examples.append(make_example(sentence))
    return examples


def raise_if_cancelled(cancelled: Callable[[], bool] | None) -> None:
    """Raise Cancelled if ``cancelled`` returns True."""
    if cancelled and cancelled():
        raise Cancelled("Training was stopped.", "Nothing was saved.")


class Schedule(NamedTuple):
    """The schedule of the learning rate and of snapshots.

    Attributes:
        steps: the number of steps.
        peak: the maximum learning rate.
        warm_up: the number of steps in which the learning rate rises to its peak, before it falls.
        saved_steps: the steps whose weights are saved, besides the first and the last.
    """

    steps: int
    peak: float
    warm_up: int
    saved_steps: Collection[int]


def train_model(
    seed: int,
    model: Any,
    optimiser: torch.optim.Optimizer,
    schedule: Schedule,
    compute_losses: Callable[[], dict[str, Tensor]],
    progress: Callable[[TrainingProgress], None] | None,
    cancelled: Callable[[], bool] | None,
) -> TrainedModel:
    """Train a model for all steps, each on the sum of the losses of the next batch, and return it. Raises Cancelled."""
    snapshots_by_step, history = {0: copy_weights(model)}, list[TrainingProgress]()
    recent_losses: list[dict[str, float]] = []
    for step in range(1, schedule.steps + 1):
        raise_if_cancelled(cancelled)
        decay = max(0.02, 1 - step / schedule.steps)
        learning_rate = schedule.peak * min(step / schedule.warm_up, decay)
        recent_losses.append(_take_step(optimiser, compute_losses(), learning_rate))
        if step in schedule.saved_steps or step == schedule.steps:
            snapshots_by_step[step] = copy_weights(model)
        if step % 50 == 0 or step == schedule.steps:
            means = {name: sum(row[name] for row in recent_losses) / len(recent_losses) for name in recent_losses[0]}
            history.append(TrainingProgress(step, schedule.steps, means))
            recent_losses = []
            if progress:
                progress(history[-1])
    return TrainedModel(seed, model.eval(), snapshots_by_step, tuple(history))


def _take_step(
    optimiser: torch.optim.Optimizer, losses: Mapping[str, Tensor], learning_rate: float
) -> dict[str, float]:
    """Do one optimiser step on the sum of the losses and return their values."""
    (group,) = optimiser.param_groups
    group["lr"] = learning_rate
    optimiser.zero_grad()
    torch.stack(list(losses.values())).sum().backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(group["params"], 1.0)
    optimiser.step()
    return {name: loss.item() for name, loss in losses.items()}


def copy_weights(model: Any) -> ToyWeights:
    """Return a copy of every weight, by name; shared weights are copied once."""
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


# ---- files ----------------------------------------------------------------------------------------------


def save(trained: TrainedModel, folder: Path, tokenizer: Any) -> None:
    """Write a model folder with its tokenizer and, in one file, the snapshots.

    Every file is written atomically, and the weights come last.
    """
    arrays = {f"{step}/{name}": w for step, snapshot in trained.snapshots.items() for name, w in _quantise(snapshot)}
    metadata = {"seed": str(trained.seed), "steps": json.dumps([*trained.snapshots])}
    with temporary_folder(folder) as partial_folder:
        trained.model.config.save_pretrained(partial_folder)
        save_file(copy_weights(trained.model), partial_folder / snapshots.WEIGHTS, metadata={"format": "pt"})
        tokenizer.save_pretrained(partial_folder)
        save_file(arrays, partial_folder / snapshots.FILE, metadata=metadata)
        for file in sorted(partial_folder.iterdir(), key=lambda path: path.name == snapshots.WEIGHTS):
            move_into_place(file, folder / file.name)


def _quantise(full_weights: ToyWeights) -> Iterator[tuple[str, Tensor]]:
    """Yield matrices as integers from −127 to 127 with a scale per row.

    This takes a quarter of the bytes with little loss of precision. Other weights have half precision.
    """
    for name, weight in full_weights.items():
        if weight.dim() < 2:
            yield name, weight.half()
            continue
        scale = (weight.abs().amax(1, keepdim=True) / 126.5).half().clamp_min(1e-6)
        yield name, (weight / scale.float()).round().to(torch.int8)
        yield f"{name}.scale", scale


def make_word_tokenizer(pieces: Sequence[str]) -> Tokenizer:
    """Return a tokenizer with one token per word, in lower case; "'s" and "n't" are separate words.

    ``pieces`` is the vocabulary, which includes [UNK].
    """
    tokenizer = Tokenizer(models.WordLevel({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace("’", "'")])
    split = pre_tokenizers.Split(Regex(r"\w+(?=n't\b)|n't\b|'s\b|\w+|[^\w\s]"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), split])
    return tokenizer


def make_tokenizer() -> Any:
    """Return the toy model's tokenizer: :func:`make_word_tokenizer`, between [CLS] and [SEP]."""
    word_tokenizer = make_word_tokenizer(VOCABULARY)
    word_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", _BEGIN), ("[SEP]", _END)],
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    special_tokens = dict(zip(names, _SPECIAL_TOKENS, strict=True))
    tokenizer_class: Any = PreTrainedTokenizerFast
    return tokenizer_class(tokenizer_object=word_tokenizer, model_max_length=POSITIONS, **special_tokens)
