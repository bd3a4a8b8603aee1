"""Many texts through one model: equally long ones together, without padding, and back in the order in which they came.

Every core processes batches of its own, as in a study. The read-ahead is limited to two windows of texts: the one that
is being returned and the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mha_viz.attention import Attention, is_number
from mha_viz.attention.steps import Step
from mha_viz.attention.tensors import read_only
from mha_viz.errors import MhaVizError, SettingError, TextError, shorten_value
from mha_viz.models.cores import pass_lock
from mha_viz.text import TokenizedText

if TYPE_CHECKING:
    from mha_viz.models.encoder import Encoder

BATCH_WORDS = 400  # the most words per batch: more are no faster
CELLS = 11_500_000  # the most attention weights per batch, 46 MB; a single text may have more
WINDOW_CELLS = 32_000_000  # the most of all texts of a window, 128 MB; a single text may have more
WINDOW_TEXTS = 2_000


class Pieces(Protocol):
    """The input of the model for one text, with one entry per piece."""

    @property
    def ids(self) -> Sequence[int]:
        """The numbers of the pieces in the vocabulary."""

    @property
    def types(self) -> Sequence[int]:
        """0 for the first text, 1 for the second of a pair."""


@dataclass(frozen=True)
class Prepared:
    """A text as the model reads it, with the tokens of its attention, and how it was given."""

    ids: Sequence[int]
    types: Sequence[int]
    tokens: TokenizedText
    made: tuple[Step, ...]

    @property
    def words(self) -> int:
        """The number of its words, not counting special tokens."""
        return len({token.word for token in self.tokens.tokens if token.word is not None})


@dataclass
class _Window:
    """Texts that are read ahead together, and the error of the one after them."""

    texts: list[Prepared]
    error: MhaVizError | None = None


def encode_many(encoder: Encoder, texts: Iterable[str | Sequence[str]], batch_words: int) -> Iterator[Attention]:
    """As :meth:`mha_viz.models.encoder.Encoder.encode_many`."""
    if not is_number(batch_words) or batch_words < 1:
        raise SettingError(
            f"batch_words is {shorten_value(batch_words)!r}.", "Expected a whole number of words, at least 1."
        )
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise TextError(f"{shorten_value(texts)!r} is not a list of texts.", "Give a list, or use encode for one text.")
    return _in_order(encoder, texts, batch_words)


def _in_order(encoder: Encoder, texts: Iterable[str | Sequence[str]], batch_words: int) -> Iterator[Attention]:
    with pass_lock.worker_pool() as workers:
        before: list[_Place] = []
        for window in _windows(encoder, texts):
            places: dict[int, _Place] = {}
            for numbers in batches(window.texts, encoder.layers * encoder.heads, batch_words):
                future = workers.submit(_batch, encoder, [window.texts[number] for number in numbers])
                places |= {number: (future, at) for at, number in enumerate(numbers)}
            yield from _results(before)
            before = [places.pop(number) for number in range(len(window.texts))]
            if window.error is not None:
                yield from _results(before)
                raise window.error
        yield from _results(before)


def _windows(encoder: Encoder, texts: Iterable[str | Sequence[str]]) -> Iterator[_Window]:
    heads, cells = encoder.layers * encoder.heads, 0
    window = _Window([])
    for number, text in enumerate(texts):
        try:
            window.texts.append(encoder.prepared(text))
        except MhaVizError as error:
            window.error = type(error)(f"Text {number}, counted from 0: {error.problem}", error.remedy)
            window.error.__cause__ = error
            break
        cells += heads * len(window.texts[-1].ids) ** 2
        if cells >= WINDOW_CELLS or len(window.texts) >= WINDOW_TEXTS:
            yield window
            window, cells = _Window([]), 0
    yield window


_Place = tuple["Future[list[Attention]]", int]  # where the attention of a text will be: a batch and a position in it


def _results(places: list[_Place]) -> Iterator[Attention]:
    places.reverse()
    while places:  # texts that were returned are not kept
        future, at = places.pop()
        yield future.result()[at]


def batches(texts: Sequence[Prepared], heads: int, batch_words: int) -> list[list[int]]:
    """The numbers of texts that are read together: equally long ones, at most ``batch_words`` words and CELLS weights,
    unless a single text has more. The batch that is needed first comes first."""
    batches: list[list[int]] = []
    unfinished: dict[int, tuple[list[int], int]] = {}  # by length: the batch that can still grow, and its words
    for number, text in enumerate(texts):
        length = len(text.ids)
        batch, words = unfinished.get(length, ([], 0))
        if not batch or words + text.words > batch_words or (len(batch) + 1) * heads * length**2 > CELLS:
            batch, words = [], 0
            batches.append(batch)
        batch.append(number)
        unfinished[length] = batch, words + text.words
    return batches


def _batch(encoder: Encoder, texts: Sequence[Prepared]) -> list[Attention]:
    weights = read_only(encoder.batch(texts))  # [layer, head, text, query, key]
    return [
        encoder.reading(text.tokens, read_only(np.ascontiguousarray(weights[:, :, at])), text.made)
        for at, text in enumerate(texts)
    ]
