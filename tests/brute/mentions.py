"""Coreference over chunks of a document, and GAP."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.brute.annotated import Sentence
from tests.brute.model import Model, Reading
from tests.brute.statistics import Count, find_best, sum_to_words

CHUNK = 128  # pieces, [CLS] and [SEP] included


class Chunk(NamedTuple):
    forms: list[str]
    upos: list[str]
    features: list[str]
    relations: list[str]
    mentions: list[tuple[str, int]]  # (chain, word of the chunk)


def build_chunks(sentences: Sequence[Sentence], model: Model) -> list[Chunk]:
    """Join consecutive sentences of a document, as many as CHUNK tokens hold.

    A sentence that cannot be read separates chunks; one that is longer than a chunk stands alone.
    """
    parts: list[list[Sentence]] = [[]]
    room = min(CHUNK, model.limit) - model.special
    for sentence in sentences:
        fits = model.words(sentence.forms) is not None
        last = parts[-1]
        joined = [form for s in (*last, sentence) for form in s.forms]
        if last and (not fits or last[-1].document != sentence.document or model.size(joined) > room):
            parts.append([])
        if fits:
            parts[-1].append(sentence)
    return [_join(part) for part in parts if part]


def _join(sentences: Sequence[Sentence]) -> Chunk:
    chunk = Chunk([], [], [], [], [])
    for s in sentences:
        chunk.mentions.extend((chain, word + len(chunk.forms)) for chain, word in s.mentions)
        chunk.forms.extend(s.forms)
        chunk.upos.extend(s.upos)
        chunk.features.extend(s.features)
        chunk.relations.extend(s.relations)
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


def count_coreference(chunks: Sequence[tuple[Chunk, Reading]]) -> dict[tuple[str, Any], Count]:
    """Count cases and right answers, by (type, head or name of a baseline)."""
    counts: dict[tuple[str, Any], list[int]] = defaultdict(lambda: [0, 0])
    for chunk, reading in chunks:
        by_word = [sum_to_words(a, reading.words) for a in reading.attention]
        for anaphor in anaphors(chunk):
            same_form = [c for c in anaphor.candidates if chunk.forms[c].lower() == chunk.forms[anaphor.word].lower()]
            guesses: dict[Any, int] = {n: find_best(w[anaphor.word], anaphor.candidates) for n, w in enumerate(by_word)}
            guesses["nearest"] = anaphor.candidates[-1]
            guesses["same_form"] = (same_form or anaphor.candidates)[-1]
            for kind in anaphor.kinds:
                if kind == "third_person":
                    guesses["agreement"] = apply_agreement(chunk, anaphor)
                for name, guess in guesses.items():
                    counts[kind, name][0] += 1
                    counts[kind, name][1] += guess in anaphor.right
    return {key: (n, right) for key, (n, right) in counts.items()}


def apply_agreement(chunk: Chunk, anaphor: Anaphor) -> int:
    """Return the word that the rule of agreement chooses.

    That is the nearest pronoun of the kind, or else the nearest subject of the number, or else the nearest word of the
    number, or else the nearest word.
    """
    kinds = "he him his himself", "she her hers herself", "it its itself", "they them their theirs themselves themself"
    own = next((k for k in kinds if chunk.forms[anaphor.word].lower() in k.split()), "")
    plural = own == kinds[3] if own else "Number=Plur" in chunk.features[anaphor.word].split("|")
    ranked = []
    for place in anaphor.candidates:
        is_pronoun = chunk.upos[place] == "PRON"
        if is_pronoun and chunk.forms[place].lower() in own.split():
            rank = 3
        elif is_pronoun or ("Number=Plur" in chunk.features[place].split("|")) != plural:
            rank = 0
        else:
            rank = 2 if chunk.relations[place].split(":")[0] == "nsubj" else 1
        ranked.append((rank, place))
    return max(ranked)[1]


def count_gap(text: str, model: Model) -> list[Count]:
    """Count the cases and each head's right answers over the rows of a table."""
    heading, *lines = [line.split("\t") for line in text.strip("\n").split("\n")]
    counts = [[0, 0] for _ in range(model.heads)]
    for line in lines:
        row = dict(zip(heading, line, strict=True))
        a_right, b_right = row["A-coref"] == "TRUE", row["B-coref"] == "TRUE"
        reading = model.text(row["Text"])
        if (not a_right and not b_right) or reading is None:
            continue
        pronoun, a, b = (
            _find_last_word(row["Text"], row[k], int(row[f"{k}-offset"]), reading) for k in ("Pronoun", "A", "B")
        )
        for number, weights in enumerate(reading.attention):
            to_a, to_b = (np.mean([sum(weights[i, j] for j in name) for i in pronoun]) for name in (a, b))
            counts[number][0] += 1
            counts[number][1] += a_right if to_a >= to_b else b_right
    return [(n, right) for n, right in counts]


def _find_last_word(text: str, form: str, at: int, reading: Reading) -> list[int]:
    """Return the tokens that overlap the last word of a span."""
    end = at + len(form)
    while text[end - 1] == " ":
        end -= 1
    start = end
    while start > at and text[start - 1] != " ":
        start -= 1
    return [i for i, (s, e) in enumerate(reading.spans) if not reading.ends[i] and s < end and e > start]
