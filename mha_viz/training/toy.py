"""The toy model: a small encoder that learns the language of :mod:`mha_viz.grammar` within minutes.

It answers four questions about sentences in which some words are hidden or changed: which word belongs here, which
word stood before this one, who is meant by this pronoun, what does this subject do. All answers are words, read from
the vectors of the last layer; nothing says which head should do what, and no attention weight is ever looked at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from mha_viz import grammar, lexicon, snapshots
from mha_viz.errors import Cancelled, SettingError
from mha_viz.treebank import Sentence, Word

LAYERS, HEADS, WIDTH = 2, 4, 64
FEED_FORWARD = 128
POSITIONS = 40  # pieces; the longest sentence of the grammar has fewer
STEPS = 10_000
BATCH = 64
POOL = 40_000  # sentences that are told before training and read several times
RATE = 2e-3
SAVED = (0, 50, 100, 200, 300, 400, 600, 800, 1000, 1500, 2000, 3000, 4000, 6000)  # and the last step

HIDDEN = 0.12  # share of words that are hidden; more of those that agree, and of pronouns
HIDDEN_VERBS, HIDDEN_PRONOUNS = 0.25, 0.2
WRONG_NUMBER = 0.3  # share of verbs that are seen in the wrong number

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_PAD, _UNKNOWN, _BEGIN, _END, _MASK = range(5)
_NOTHING = -100  # no question here: the loss leaves it out
VOCABULARY = (*_SPECIAL, *sorted({form.lower() for form in lexicon.VOCABULARY}))
_NUMBER = {form: number for number, form in enumerate(VOCABULARY)}

Weights = dict[str, Tensor]


class Progress(NamedTuple):
    """Where training stands: the loss of each question, averaged over the steps since the last report."""

    step: int
    steps: int
    losses: Mapping[str, float]


@dataclass(frozen=True)
class Trained:
    """A model and the way to it: ``snapshots`` are its weights at some steps, the last one included."""

    seed: int
    model: Any
    snapshots: Mapping[int, Weights]
    history: tuple[Progress, ...]


# ---- questions ------------------------------------------------------------------------------------------


class Lesson(NamedTuple):
    """One sentence, [CLS] and [SEP] included, and the answers to what is asked at each piece."""

    ids: list[int]
    before: list[int]  # the word before this one
    meant: list[int]  # at a pronoun: the noun or name that it stands for
    doing: list[int]  # at a subject: what it does or is
    wrong: list[int]  # at a form that agrees: the form that would not; else the same word
    pronoun: list[int]  # 1 at pronouns


def lesson(told: Sentence) -> Lesson:
    """What can be asked about a sentence."""
    ids = [_number(word.form) for word in told.words]
    doing = [ids[w.head] if w.relation == "nsubj" and w.head is not None else _NOTHING for w in told.words]
    other = lexicon.OTHER_NUMBER
    wrong = [_number(other[w.form.lower()]) if _agrees(w) else i for w, i in zip(told.words, ids, strict=True)]
    pronoun = [int("PronType=Prs" in w.features) for w in told.words]
    before = [_NOTHING, *ids[:-1]]
    ends = [(_BEGIN, _END), *[(_NOTHING, _NOTHING)] * 3, (_BEGIN, _END), (0, 0)]
    rows = (ids, before, _meant(told, ids), doing, wrong, pronoun)
    return Lesson(*([first, *row, last] for row, (first, last) in zip(rows, ends, strict=True)))


def _number(form: str) -> int:
    return _NUMBER.get(form.lower(), _UNKNOWN)


def _agrees(word: Word) -> bool:
    finite = word.upos == "AUX" or "VerbForm=Fin" in word.features
    return finite and "Number=" in word.features


def _meant(told: Sentence, ids: Sequence[int]) -> list[int]:
    """At each mention of somebody known: the word that brought them in."""
    first: dict[str, int] = {}
    answers = [_NOTHING] * len(ids)
    for mention in sorted(told.mentions, key=lambda mention: mention.word):
        if mention.chain in first:
            answers[mention.word] = ids[first[mention.chain]]
        first.setdefault(mention.chain, mention.word)
    return answers


def _batches(pool: Sequence[Lesson], random: Random) -> Iterator[list[Tensor]]:
    """Without end: lessons of about one length together, each field as [sentence, piece]."""
    while True:
        drawn = sorted(random.sample(pool, min(len(pool), 8 * BATCH)), key=lambda one: len(one.ids))
        parts = [drawn[start : start + BATCH] for start in range(0, len(drawn), BATCH)]
        random.shuffle(parts)
        for part in parts:
            yield [_padded(column, fill) for column, fill in zip(zip(*part, strict=True), _FILLS, strict=True)]


_FILLS = (_PAD, _NOTHING, _NOTHING, _NOTHING, _PAD, 0)  # one a field of Lesson


def _padded(rows: Sequence[list[int]], fill: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])


def _spoilt(ids: Tensor, wrong: Tensor, pronoun: Tensor, chance: torch.Generator) -> tuple[Tensor, Tensor]:
    """What the model sees, and what it is asked for: hidden words, and every form that agrees."""
    draw, how = (torch.rand(ids.shape, generator=chance) for _ in range(2))
    agrees = wrong != ids
    share = torch.full(ids.shape, HIDDEN).masked_fill(agrees, HIDDEN_VERBS).masked_fill(pronoun > 0, HIDDEN_PRONOUNS)
    hidden = (ids > _MASK) & (draw < share)
    others = torch.randint(len(_SPECIAL) - 1, len(VOCABULARY), ids.shape, generator=chance)
    others = others.masked_fill(others == _MASK, _UNKNOWN)
    seen = torch.where(hidden & (how < 0.8), _MASK, ids)
    seen = torch.where(hidden & (how > 0.9), others, seen)
    seen = torch.where(agrees & ~hidden & (how < WRONG_NUMBER), wrong, seen)
    return seen, torch.where(hidden | agrees, ids, _NOTHING)


# ---- the model ------------------------------------------------------------------------------------------


def config() -> Any:
    """A small BERT."""
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


class _Pupil(nn.Module):
    """The model with what reads the answers to the other three questions; only the model is kept."""

    QUESTIONS = ("before", "meant", "doing")

    def __init__(self, chance: torch.Generator) -> None:
        super().__init__()
        self.model = BertForMaskedLM(config())
        self.readers = nn.ModuleDict({name: nn.Linear(WIDTH, len(VOCABULARY)) for name in self.QUESTIONS})
        for name, weight in self.named_parameters():
            _begin(name, weight, chance)

    def losses(self, batch: Sequence[Tensor], chance: torch.Generator) -> dict[str, Tensor]:
        """The mean loss of each question over the pieces where it is asked."""
        ids, before, meant, doing, wrong, pronoun = batch
        seen, hidden = _spoilt(ids, wrong, pronoun, chance)
        # [sentence, piece, width]
        vectors = self.model.bert(seen, attention_mask=(ids != _PAD).long()).last_hidden_state
        found = {"hidden": _loss(self.model.cls, vectors, hidden)}
        for name, answers in zip(self.QUESTIONS, (before, meant, doing), strict=True):
            found[name] = _loss(self.readers[name], vectors, answers)
        return found


def _begin(name: str, weight: Tensor, chance: torch.Generator) -> None:
    """A random start that depends on the seed alone, whatever else runs in this process."""
    with torch.no_grad():
        if weight.dim() > 1:
            weight.normal_(0.0, 0.02, generator=chance)
        else:
            weight.fill_(1.0 if name.endswith("LayerNorm.weight") else 0.0)


def _loss(reader: Callable[[Tensor], Tensor], vectors: Tensor, answers: Tensor) -> Tensor:
    asked = answers != _NOTHING
    if not asked.any():
        return vectors.sum() * 0.0
    return nn.functional.cross_entropy(reader(vectors[asked]), answers[asked])


# ---- training -------------------------------------------------------------------------------------------


def train(
    seed: int = 0,
    steps: int = STEPS,
    progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    pool: int = POOL,
) -> Trained:
    """A model learnt from ``pool`` sentences of the grammar; the same for the same arguments on one machine.

    Raises Cancelled when ``cancelled`` says so, SettingError for settings that cannot be.
    """
    if steps < 1 or pool < 1:
        raise SettingError(f"{steps} steps on {pool} sentences.", "Give at least 1 of each.")
    random, chance = Random(seed), torch.Generator().manual_seed(seed)
    lessons = _told(pool, random, cancelled)
    pupil = _Pupil(chance)
    optimiser = torch.optim.AdamW(pupil.parameters(), lr=RATE, weight_decay=0.01)
    snapshots, history, since = {0: _weights(pupil.model)}, list[Progress](), list[dict[str, float]]()
    for step, batch in zip(range(1, steps + 1), _batches(lessons, random), strict=False):
        _stop_if(cancelled)
        since.append(_step(pupil, optimiser, batch, chance, _rate(step, steps)))
        if step in SAVED or step == steps:
            snapshots[step] = _weights(pupil.model)
        if step % 50 == 0 or step == steps:
            history.append(Progress(step, steps, _mean(since)))
            since = []
            if progress:
                progress(history[-1])
    pupil.eval()
    return Trained(seed, pupil.model, snapshots, tuple(history))


def _told(count: int, random: Random, cancelled: Callable[[], bool] | None) -> list[Lesson]:
    lessons: list[Lesson] = []
    while len(lessons) < count:
        if len(lessons) % 500 == 0:
            _stop_if(cancelled)
        told = grammar.sentence(random)
        if len(told.words) + 2 <= POSITIONS:
            lessons.append(lesson(told))
    return lessons


def _stop_if(cancelled: Callable[[], bool] | None) -> None:
    if cancelled and cancelled():
        raise Cancelled("Training was stopped.", "Nothing was kept.")


def _rate(step: int, steps: int) -> float:
    """Up over the first 200 steps, then down in a line."""
    return RATE * min(step / 200, max(0.02, 1 - step / steps))


def _step(
    pupil: _Pupil, optimiser: torch.optim.Optimizer, batch: Sequence[Tensor], chance: torch.Generator, rate: float
) -> dict[str, float]:
    for group in optimiser.param_groups:
        group["lr"] = rate
    losses = pupil.losses(batch, chance)
    optimiser.zero_grad()
    torch.stack(list(losses.values())).sum().backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(pupil.parameters(), 1.0)
    optimiser.step()
    return {name: loss.item() for name, loss in losses.items()}


def _mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}


def _weights(model: Any) -> Weights:
    """A copy of every weight, those that are used twice once."""
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


# ---- files ----------------------------------------------------------------------------------------------


def save(trained: Trained, folder: Path) -> None:
    """A model folder as any other, and beside it the snapshots in one file."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(trained.model, folder)
    packed = {f"{step}/{name}": w for step, weights in trained.snapshots.items() for name, w in _packed(weights)}
    save_file(
        packed, folder / snapshots.FILE, metadata={"seed": str(trained.seed), "steps": json.dumps([*trained.snapshots])}
    )


def _write(model: Any, folder: Path) -> None:
    model.config.save_pretrained(folder)
    save_file(_weights(model), folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer().save_pretrained(folder)


def _packed(weights: Weights) -> Iterator[tuple[str, Tensor]]:
    """Whole numbers from -127 to 127 with one scale a row: a quarter of the bytes, and the same picture."""
    for name, weight in weights.items():
        if weight.dim() < 2:
            yield name, weight.half()
            continue
        scale = (weight.abs().amax(1, keepdim=True) / 126.5).half().clamp_min(1e-6)
        yield name, (weight / scale.float()).round().to(torch.int8)
        yield f"{name}.scale", scale


def tokenizer() -> Any:
    """One piece a word, in lower case; "'s" and "n't" are words of their own."""
    words = Tokenizer(models.WordLevel(dict(_NUMBER), unk_token="[UNK]"))
    words.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace("’", "'")])
    split = pre_tokenizers.Split(Regex(r"\w+(?=n't\b)|n't\b|'s\b|\w+|[^\w\s]"), "isolated")
    words.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), split])
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", _BEGIN), ("[SEP]", _END)],
    )
    special = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), _SPECIAL, strict=True))
    made: Any = PreTrainedTokenizerFast
    return made(tokenizer_object=words, model_max_length=POSITIONS, **special)
