"""The measures once more, as plainly as can be: one sentence at a time, one head at a time, loops, float64.

Written from the definitions alone. It takes nothing from the package: its own reader of CoNLL-U, transformers' own
eager attention, its own sums. The tests compare the tables of a study with it number by number.
"""

from __future__ import annotations

import math
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

DIRECTIONS = ("dep_to_head", "head_to_dep", "head_row")
OFFSETS = tuple(o for o in range(-10, 11) if o)
CHUNK = 128  # pieces, [CLS] and [SEP] included

Count = tuple[int, int]  # how many, and how many of them right


# ---- CoNLL-U ---------------------------------------------------------------------------------------------------------


@dataclass
class Sentence:
    document: str
    forms: list[str] = field(default_factory=list)
    upos: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)  # from 0; -1 for the root
    relations: list[str] = field(default_factory=list)
    mentions: list[tuple[str, int]] = field(default_factory=list)  # (chain, head word)


def read(text: str) -> list[Sentence]:
    sentences, document = [], ""
    for block in text.strip("\n").split("\n\n"):
        lines = block.split("\n")
        for line in lines:
            if line.startswith("# newdoc id = "):
                document = line.removeprefix("# newdoc id = ")
        sentence, entities = Sentence(document), []
        for line in lines:
            columns = line.split("\t")
            if line.startswith("#") or not columns[0].isdigit():
                continue
            sentence.forms.append(columns[1])
            sentence.upos.append(columns[3])
            sentence.features.append(columns[5])
            sentence.heads.append(int(columns[6]) - 1)
            sentence.relations.append(columns[7])
            entities.append(next((p[7:] for p in columns[9].split("|") if p.startswith("Entity=")), ""))
        sentence.mentions = sorted({(c, _head_word(sentence, span)) for c, span in _spans(entities)})
        sentences.append(sentence)
    return sentences


def _spans(entities: list[str]) -> Iterator[tuple[str, range]]:
    opened: list[tuple[str, int]] = []
    for word, said in enumerate(entities):
        name, fresh = "", False
        for letter in said + "\n":
            if letter in "()\n":
                if fresh and name:
                    opened.append((name.split("-")[0], word))
                if letter == ")":
                    chain = opened[-1][0] if fresh else name
                    place = max(i for i, (c, _) in enumerate(opened) if c == chain)
                    yield chain, range(opened.pop(place)[1], word + 1)
                name, fresh = "", letter == "("
            else:
                name += letter


def _head_word(sentence: Sentence, span: range) -> int:
    return next(i for i in span if sentence.heads[i] not in span)


# ---- A model as transformers runs it ---------------------------------------------------------------------------------


class Reading(NamedTuple):
    attention: Any  # [head of all layers, query, key]
    words: list[int | None]  # of each piece
    ends: list[str]  # of each piece: "cls", "sep" or ""
    marks: list[bool]  # of each piece: punctuation only
    spans: list[tuple[int, int]]  # of each piece, in its word or text


class Model:
    """A model from a folder, one sentence at a time; with a seed, the same architecture with random weights."""

    def __init__(self, folder: Path, seed: int | None = None) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
        if seed is not None:
            torch.manual_seed(seed)
            self.model = AutoModel.from_config(self.model.config, attn_implementation="eager").eval()
        config = self.model.config
        self.heads_a_layer = config.num_attention_heads
        self.heads = config.num_hidden_layers * config.num_attention_heads
        self.limit = min(config.max_position_embeddings, self.tokenizer.model_max_length)

        self.special = self.tokenizer.num_special_tokens_to_add()

    def size(self, forms: Sequence[str]) -> int:
        """Pieces of a list of words, special ones not counted."""
        found = self.tokenizer(list(forms), is_split_into_words=True)
        return sum(word is not None for word in found.word_ids())

    def words(self, forms: Sequence[str]) -> Reading | None:
        """None when it is too long for the model, or a word has no piece."""
        found = self.tokenizer(list(forms), is_split_into_words=True, return_offsets_mapping=True)
        words = found.word_ids()
        if len(words) > self.limit or set(words) - {None} != set(range(len(forms))):
            return None
        texts = [
            "" if word is None else forms[word][start:end]
            for word, (start, end) in zip(words, found["offset_mapping"], strict=True)
        ]
        return self._reading(found, words, texts)

    def text(self, text: str) -> Reading | None:
        found = self.tokenizer(text, return_offsets_mapping=True)
        if len(found["input_ids"]) > self.limit:
            return None
        return self._reading(found, found.word_ids(), [text[start:end] for start, end in found["offset_mapping"]])

    def _reading(self, found: Any, words: list[int | None], texts: list[str]) -> Reading:
        spans = found.pop("offset_mapping")
        with torch.no_grad():
            out = self.model(**{k: torch.tensor([v]) for k, v in found.items()}, output_attentions=True)
        attention = np.concatenate([layer[0].double().numpy() for layer in out.attentions])
        ends = ["" if w is not None else "cls" if i == 0 else "sep" for i, w in enumerate(words)]
        marks = [bool(t) and all(unicodedata.category(c)[0] == "P" for c in t) for t in texts]
        return Reading(attention, words, ends, marks, [tuple(span) for span in spans])


def between_words(a: Any, words: Sequence[int | None]) -> Any:
    """[from word, to word] of one head's [query, key]: summed to, averaged from."""
    places = [[i for i, w in enumerate(words) if w == k] for k in range(1 + max(w for w in words if w is not None))]
    to = np.stack([sum(a[:, j] for j in columns) for columns in places], axis=1)  # [piece, word]
    return np.stack([sum(to[i] for i in rows) / len(rows) for rows in places])


def best(values: Sequence[float], of: Sequence[int]) -> int:
    """The index among ``of`` where the value is largest; the lowest of equals."""
    found = of[0]
    for i in of:
        if values[i] > values[found] or (values[i] == values[found] and i < found):
            found = i
    return found


def wilson(correct: int, n: int) -> tuple[float, float]:
    z = 1.959963984540054
    p = correct / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def bootstrap(documents: Sequence[Count]) -> tuple[float, float]:
    """The 95 % interval over documents, each (right, cases): 2,000 draws, seed 0."""
    drawn = np.random.default_rng(0).integers(0, len(documents), (2000, len(documents)))
    accuracies = []
    for draw in drawn.tolist():
        right, n = (sum(documents[number][i] for number in draw) for i in (0, 1))
        if n:
            accuracies.append(right / n)
    accuracies.sort()
    return _percentile(accuracies, 0.025), _percentile(accuracies, 0.975)


def _percentile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


# ---- Syntax ----------------------------------------------------------------------------------------------------------


def groups(relation: str) -> list[tuple[str, str]]:
    """Every row of the tables that a relation counts in: (level, name)."""
    base = relation.split(":")[0]
    found = [("full", relation), ("base", base), ("agg", "all")]
    return found if base == "punct" else [*found, ("agg", "all without punct")]


class Question(NamedTuple):
    """One thing to be got right: ``asked`` is the word whose argmax is taken, ``right`` the words it may be."""

    group: tuple[str, str]
    direction: str
    asked: int
    right: frozenset[int]


def questions(sentence: Sentence) -> list[Question]:
    if len(sentence.forms) < 2:
        return []
    found = []
    dependents: dict[tuple[tuple[str, str], int], set[int]] = defaultdict(set)
    for d, (h, relation) in enumerate(zip(sentence.heads, sentence.relations, strict=True)):
        if h < 0:
            continue
        for group in groups(relation):
            found.append(Question(group, "dep_to_head", d, frozenset({h})))
            found.append(Question(group, "head_to_dep", d, frozenset({h})))
            dependents[group, h].add(d)
    found += [Question(g, "head_row", h, frozenset(of)) for (g, h), of in dependents.items()]
    return found


def answer(w: Any, question: Question) -> int:
    others = [j for j in range(len(w)) if j != question.asked]
    if question.direction == "head_to_dep":
        return best([w[j, question.asked] for j in range(len(w))], others)
    return best(w[question.asked], others)


Key = tuple[tuple[str, str], str, Any]  # group, direction, and a head or what a baseline is told


def syntax(sentences: Sequence[tuple[Sentence, Reading]]) -> dict[Key, Count]:
    counts: dict[Key, list[int]] = defaultdict(lambda: [0, 0])
    for sentence, reading in sentences:
        for number, a in enumerate(reading.attention):
            w = between_words(a, reading.words)
            for question in questions(sentence):
                count = counts[question.group, question.direction, number]
                count[0] += 1
                count[1] += answer(w, question) in question.right
    return {key: (n, right) for key, (n, right) in counts.items()}


def _offset(sentence: Sentence, at: int, offset: int) -> int | None:
    return at + offset if 0 <= at + offset < len(sentence.forms) else None


def _upos(sentence: Sentence, at: int, told: tuple[str, str]) -> int | None:
    side, upos = told
    places = range(at - 1, -1, -1) if side == "left" else range(at + 1, len(sentence.forms))
    return next((i for i in places if sentence.upos[i] == upos), None)


def offset_baseline(sentences: Sequence[Sentence]) -> dict[Key, Count]:
    """Every offset for every group and direction."""
    return _baseline(sentences, OFFSETS, _offset)


def upos_baseline(sentences: Sequence[Sentence]) -> dict[Key, Count]:
    """Every side and part of speech for every group and direction."""
    known = sorted({upos for sentence in sentences for upos in sentence.upos})
    return _baseline(sentences, [(side, upos) for side in ("left", "right") for upos in known], _upos)


def _baseline(sentences: Sequence[Sentence], options: Sequence[Any], guess: Callable[..., int | None]) -> Any:
    counts: dict[Key, list[int]] = defaultdict(lambda: [0, 0])
    for sentence in sentences:
        for question in questions(sentence):
            for option in options:
                count = counts[question.group, question.direction, option]
                count[0] += 1
                count[1] += guess(sentence, question.asked, option) in question.right
    return {key: (n, right) for key, (n, right) in counts.items()}


def best_of(counts: dict[Key, Count]) -> dict[tuple[tuple[str, str], str], Count]:
    """For each group and direction the count of the best option."""
    found: dict[Any, Count] = {}
    for (group, direction, _), (n, right) in counts.items():
        old = found.get((group, direction), (n, -1))
        found[group, direction] = (n, max(old[1], right))
    return found


def uas(sentences: Sequence[tuple[Sentence, Reading]]) -> list[Count]:
    heads = len(sentences[0][1].attention)
    found = [[0, 0] for _ in range(heads)]
    for sentence, reading in sentences:
        n = len(sentence.forms)
        for number in range(heads if n > 1 else 0):
            w = between_words(reading.attention[number], reading.words)
            points = [best(w[i], [j for j in range(n) if j != i]) for i in range(n)]
            for d, (h, relation) in enumerate(zip(sentence.heads, sentence.relations, strict=True)):
                if h >= 0 and relation.split(":")[0] != "punct":
                    found[number][0] += 1
                    found[number][1] += points[d] == h or points[h] == d
    return [(n, right) for n, right in found]


# ---- Position, delimiters, entropy, distance -------------------------------------------------------------------------


def position(readings: Sequence[Reading]) -> dict[tuple[int, int], tuple[float, float]]:
    """(head, offset) → mass and share of maxima."""
    found = {}
    for number in range(len(readings[0].attention)):
        for offset in range(-5, 6):
            mass, rows, hits, real = 0.0, 0, 0, 0
            for reading in readings:
                a, size = reading.attention[number].tolist(), len(reading.words)
                plain = [j for j in range(size) if not reading.ends[j]]
                for i in plain:
                    if not 0 <= i + offset < size:
                        continue
                    mass, rows = mass + a[i][i + offset], rows + 1
                    if not reading.ends[i + offset]:
                        real += 1
                        hits += best(a[i], plain) == i + offset
            found[number, offset] = (mass / rows if rows else math.nan, hits / real if real else math.nan)
    return found


def in_word(readings: Sequence[Reading]) -> dict[tuple[int, int], tuple[float, float]]:
    """(head, offset) → the share of the mass, and of the rows, that stays within a word."""
    found = {}
    for number in range(len(readings[0].attention)):
        for offset in range(-5, 6):
            inside, mass, same, rows = 0.0, 0.0, 0, 0
            for reading in readings:
                a, size = reading.attention[number].tolist(), len(reading.words)
                for i in range(size):
                    if reading.ends[i] or not 0 <= i + offset < size:
                        continue
                    mass, rows = mass + a[i][i + offset], rows + 1
                    if reading.words[i] == reading.words[i + offset]:
                        inside, same = inside + a[i][i + offset], same + 1
            found[number, offset] = (inside / mass if mass else math.nan, same / rows if rows else math.nan)
    return found


def delimiter(readings: Sequence[Reading]) -> list[tuple[float, float, float]]:
    found = []
    for number in range(len(readings[0].attention)):
        sums, rows = [0.0, 0.0, 0.0], 0
        for reading in readings:
            for row in reading.attention[number].tolist():
                rows += 1
                for j, weight in enumerate(row):
                    sums[0] += weight * (reading.ends[j] == "cls")
                    sums[1] += weight * (reading.ends[j] == "sep")
                    sums[2] += weight * reading.marks[j]
        found.append((sums[0] / rows, sums[1] / rows, sums[2] / rows))
    return found


def entropy(readings: Sequence[Reading]) -> list[tuple[float, float]]:
    """Of each head: nats, and normalised."""
    found = []
    for number in range(len(readings[0].attention)):
        total, rows, shares = 0.0, 0, []
        for reading in readings:
            entropies = [-sum(x * math.log(x) for x in row if x > 0) for row in reading.attention[number].tolist()]
            total, rows = total + sum(entropies), rows + len(entropies)
            shares.append(sum(entropies) / len(entropies) / math.log(len(entropies)))
        found.append((total / rows, sum(shares) / len(shares)))
    return found


def _divergence(p: Any, q: Any) -> Any:
    """Jensen–Shannon, of each row, with each of several heads."""
    middle = (p + q) / 2
    found = 0.0
    for x in (p, q):
        with np.errstate(divide="ignore", invalid="ignore"):
            found = found + np.where(x > 0, x * np.log(x / middle), 0.0).sum(axis=-1) / 2
    return found


def distance(readings: Sequence[Reading]) -> dict[tuple[int, int], float]:
    """For each pair of heads, the first lower."""
    heads = len(readings[0].attention)
    rows = sum(len(reading.words) for reading in readings)
    found = {}
    for one in range(heads):
        others = range(one + 1, heads)
        totals = sum(_divergence(r.attention[one], r.attention[one + 1 :]).sum(axis=-1) for r in readings)
        found.update({(one, other): float(totals[at]) / rows for at, other in enumerate(others)})
    return found


# ---- Coreference -----------------------------------------------------------------------------------------------------


class Chunk(NamedTuple):
    forms: list[str]
    upos: list[str]
    features: list[str]
    mentions: list[tuple[str, int]]  # (chain, word of the chunk)


def chunks(sentences: Sequence[Sentence], model: Model) -> list[Chunk]:
    """Consecutive sentences of a document, as many as CHUNK pieces hold; one that cannot be read parts them, and one
    that is longer stands alone."""
    found: list[list[Sentence]] = [[]]
    room = min(CHUNK, model.limit) - model.special
    for sentence in sentences:
        fits = model.words(sentence.forms) is not None
        last = found[-1]
        together = [form for s in (*last, sentence) for form in s.forms]
        if last and (not fits or last[-1].document != sentence.document or model.size(together) > room):
            found.append([])
        if fits:
            found[-1].append(sentence)
    return [_joined(part) for part in found if part]


def _joined(sentences: Sequence[Sentence]) -> Chunk:
    chunk = Chunk([], [], [], [])
    for s in sentences:
        chunk.mentions.extend((chain, word + len(chunk.forms)) for chain, word in s.mentions)
        chunk.forms.extend(s.forms)
        chunk.upos.extend(s.upos)
        chunk.features.extend(s.features)
    return chunk


class Anaphor(NamedTuple):
    word: int
    kinds: list[str]
    candidates: list[int]
    right: set[int]


def anaphors(chunk: Chunk) -> list[Anaphor]:
    found = []
    for chain, word in sorted(set(chunk.mentions)):
        right = {w for c, w in chunk.mentions if c == chain and w < word}
        if right:
            candidates = sorted({w for _, w in chunk.mentions if w < word})
            found.append(Anaphor(word, _kinds(chunk, word), candidates, right))
    return found


def _kinds(chunk: Chunk, word: int) -> list[str]:
    if chunk.upos[word] == "PRON":
        third = "Person=3" in chunk.features[word].split("|")
        return ["all", "pronoun", "third_person"] if third else ["all", "pronoun"]
    return ["all", "proper" if chunk.upos[word] == "PROPN" else "nominal"]


def coreference(parts: Sequence[tuple[Chunk, Reading]]) -> dict[tuple[str, Any], Count]:
    """(type, head, or the name of a baseline) → count."""
    counts: dict[tuple[str, Any], list[int]] = defaultdict(lambda: [0, 0])
    for chunk, reading in parts:
        between = [between_words(a, reading.words) for a in reading.attention]
        for anaphor in anaphors(chunk):
            same = [c for c in anaphor.candidates if chunk.forms[c].lower() == chunk.forms[anaphor.word].lower()]
            guesses: dict[Any, int] = {n: best(w[anaphor.word], anaphor.candidates) for n, w in enumerate(between)}
            guesses["nearest"] = anaphor.candidates[-1]
            guesses["same_form"] = (same or anaphor.candidates)[-1]
            for kind in anaphor.kinds:
                for who, guess in guesses.items():
                    counts[kind, who][0] += 1
                    counts[kind, who][1] += guess in anaphor.right
    return {key: (n, right) for key, (n, right) in counts.items()}


# ---- GAP -------------------------------------------------------------------------------------------------------------


def gap(text: str, model: Model) -> list[Count]:
    """Of each head, over the rows of a table."""
    heading, *lines = [line.split("\t") for line in text.strip("\n").split("\n")]
    found = [[0, 0] for _ in range(model.heads)]
    for line in lines:
        row = dict(zip(heading, line, strict=True))
        a_right, b_right = row["A-coref"] == "TRUE", row["B-coref"] == "TRUE"
        reading = model.text(row["Text"])
        if (not a_right and not b_right) or reading is None:
            continue
        asked, a, b = (_last_word(row["Text"], row[k], int(row[f"{k}-offset"]), reading) for k in ("Pronoun", "A", "B"))
        for number, weights in enumerate(reading.attention):
            to_a, to_b = (np.mean([sum(weights[i, j] for j in name) for i in asked]) for name in (a, b))
            found[number][0] += 1
            found[number][1] += a_right if to_a >= to_b else b_right
    return [(n, right) for n, right in found]


def _last_word(text: str, form: str, at: int, reading: Reading) -> list[int]:
    """The pieces that overlap what stands behind the last blank of a span."""
    end = at + len(form)
    while text[end - 1] == " ":
        end -= 1
    start = end
    while start > at and text[start - 1] != " ":
        start -= 1
    return [i for i, (s, e) in enumerate(reading.spans) if not reading.ends[i] and s < end and e > start]


# ---- Everything ------------------------------------------------------------------------------------------------------


@dataclass
class Results:
    """All tables; ``sentences`` of the corpus that the model reads, with their index in the file."""

    sentences: list[tuple[int, Sentence, Reading]]
    chunks: list[tuple[Chunk, Reading]]

    def of(self, parity: int | None = None) -> list[tuple[Sentence, Reading]]:
        """Sentences of even (0) or odd (1) index, or all."""
        return [(s, r) for i, s, r in self.sentences if parity is None or i % 2 == parity]

    @property
    def readings(self) -> list[Reading]:
        return [reading for _, _, reading in self.sentences]


def results(text: str, model: Model) -> Results:
    sentences = read(text)
    read_ones = [(i, s, r) for i, s in enumerate(sentences) if (r := model.words(s.forms)) is not None]
    parts = [(chunk, r) for chunk in chunks(sentences, model) if (r := model.words(chunk.forms)) is not None]
    return Results(read_ones, parts)
