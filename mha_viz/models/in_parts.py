"""Scores in parts, of a model of one stack or of the encoder of a model of two."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import torch

from mha_viz.attention import Weights
from mha_viz.attention.parts import Parts, ScoreParts, score_parts
from mha_viz.attention.trace import Trace
from mha_viz.errors import SettingError
from mha_viz.heads import AnyHead, Head
from mha_viz.model_names import quote_model
from mha_viz.models.capture import Tap
from mha_viz.models.cores import one_blas_thread
from mha_viz.models.stream import Stream
from mha_viz.models.tokenizer import TextPieces
from mha_viz.text import WordPieces


class InParts:
    """One stack of layers whose scores can be taken apart."""

    name: str
    revision: str
    layers: int
    heads: int
    layer_numbers: tuple[int, ...]  # by which heads are named
    _model: Any
    _typed: bool

    def pieces(self, text: str, pair: str = "", words: Sequence[str] = ()) -> TextPieces | WordPieces:
        """The pieces of a text as the stack reads them."""
        raise NotImplementedError

    def _run(self, read: TextPieces | WordPieces, tap: Callable[[torch.Tensor], Tap]) -> tuple[Weights, Tap]:
        raise NotImplementedError

    def check_one_stack(self, target: str, part: str) -> None:
        """Raise SettingError for a target or a part, which only encoder–decoders have."""
        if target or part:
            raise SettingError(
                f"{quote_model(self.name)} has one stack of layers and reads no target.",
                "Leave target and part out, or load an encoder–decoder such as T5.",
            )

    def score_parts(
        self,
        text: str,
        head: AnyHead,
        query: int,
        key: int,
        *,
        pair: str = "",
        words: Sequence[str] = (),
        target: str = "",
        part: str = "",
    ) -> ScoreParts:
        """Why a head looks from one token to another: the score of the two, part by part.

        ``query`` and ``key``: the numbers of the tokens, from 0. ``pair`` and ``words`` as for :meth:`trace`,
        ``target`` and ``part`` as for :meth:`encode`. The parts of each token are its word, its position, what each
        earlier head and feed-forward part has added to it, and constants; every pair of them adds to the score, and all
        pairs sum to it (:class:`mha_viz.attention.parts.ScoreParts`; Elhage et al. 2021, "A Mathematical Framework for
        Transformer Circuits"). Norms keep the standard deviations that they had in the pass (Kobayashi et al. 2021).

        Raises as :meth:`encode`, UnknownHead, SettingError for tokens that do not exist or do not see each other, and
        ModelUnsupported, with the reason, for families whose scores cannot be taken apart.

        >>> parts = encoder.score_parts("The cat sat on the mat.", "L0H2", 3, 2)
        >>> print(parts.table()[["query_part", "key_part"]].iloc[0].tolist())
        ['position', 'position']
        """
        self.check_one_stack(target, part)
        return self.score_parts_of(text, head, query, [key], pair=pair, words=words)[0]

    def score_parts_of(
        self, text: str, head: AnyHead, query: int, keys: Sequence[int], *, pair: str = "", words: Sequence[str] = ()
    ) -> tuple[ScoreParts, ...]:
        """:meth:`score_parts` for each of several keys, in one pass."""
        one = Head.among(head, self.layer_numbers, self.heads, self.name)
        with one_blas_thread:
            ((trace, parts),) = self.in_parts(self.pieces(text, pair, words), [one.layer])
            return score_parts(trace, parts, one, query, keys)

    def in_parts(self, read: TextPieces | WordPieces, layers: Collection[int]) -> Iterator[tuple[Trace, Parts]]:
        """The trace of each of ``layers``, and the parts of what its attention is given, in one pass. Raises as
        :meth:`score_parts`."""
        stream = Stream(self._model, self.name, self.layers, max(layers))
        with stream:
            weights, _ = self._run(read, stream.tap)
        for opened, parts in stream.parts(read, self._typed, layers):
            yield opened.trace(self.revision, read.tokenized(), weights), parts
