"""The stacks of an encoder–decoder whose scores can be taken apart."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from mha_viz.attention import Weights
from mha_viz.attention.parts import OfKeys, Parts
from mha_viz.attention.trace import Trace
from mha_viz.errors import ModelUnsupported, TextError
from mha_viz.heads import every_layer
from mha_viz.model_names import quote_model, short_name
from mha_viz.models.capture import Tap
from mha_viz.models.families import STACKS
from mha_viz.models.in_parts import InParts
from mha_viz.models.stream import Stream
from mha_viz.models.tokenizer import TextPieces
from mha_viz.request import CROSS, ENCODER
from mha_viz.text import WordPieces

if TYPE_CHECKING:
    from mha_viz.models.encoder_decoder import EncoderDecoder


class SourceStack(InParts):
    """The encoder of a model with two stacks."""

    def __init__(self, whole: EncoderDecoder, stack: Any, shape: tuple[int, int]) -> None:
        """Raises ModelUnsupported for families whose scores cannot be taken apart."""
        if stack.config.model_type not in STACKS:
            raise ModelUnsupported(
                f"The scores of {quote_model(whole.name)} cannot be taken apart: of encoder–decoders, only those of T5 "
                "and mT5 can.",
                "Choose one of these, or a model with one stack of layers, such as BERT.",
            )
        self.name, self.revision, (self.layers, self.heads) = whole.name, whole.revision, shape
        self.layer_numbers = every_layer(self.layers)
        self._whole, self._model, self._typed = whole, stack, False

    def pieces(self, text: str, pair: str = "", words: Sequence[str] = ()) -> TextPieces | WordPieces:
        """The pieces of a text. Raises TextError for a pair, and for given words."""
        self.check_words(words)
        return self._whole.pieces_of_source(text, pair)

    def check_words(self, words: Sequence[str]) -> None:
        """Raise TextError if there are any."""
        if words:
            raise TextError(f"{short_name(self.name)} reads no sentence given as words.", "Give it as a text.")

    def _run(self, read: TextPieces | WordPieces, tap: Callable[[torch.Tensor], Tap]) -> tuple[Weights, Tap]:
        return self._whole.through_encoder(read.ids, tap)

    def last_state(self, read: TextPieces | WordPieces) -> tuple[torch.Tensor, OfKeys]:
        """What the decoder is given of a source, [1, n, d_model], and its parts."""
        stream = Stream(self._model, self.name, self.layers, self.layers - 1)
        with stream:
            self._run(read, stream.tap)
        state, parts = stream.last_state(read)
        named = parts._replace(names=tuple(f"{ENCODER} {name}" for name in parts.names))
        return torch.from_numpy(state)[None], OfKeys(read.tokenized(), named)


class TargetStack(InParts):
    """One of the two attentions of a decoder, "decoder" or "cross", on a target behind the encoder on a source."""

    def __init__(
        self, whole: EncoderDecoder, source: SourceStack, stack: Any, texts: tuple[TextPieces, TextPieces], part: str
    ) -> None:
        self.name, self.revision, self.layers, self.heads = whole.name, whole.revision, whole.layers, whole.heads
        self.layer_numbers = every_layer(self.layers)
        self._whole, self._source, self._model, self._part = whole, source, stack, part
        self._read, self._target = texts

    def pieces(self, text: str = "", pair: str = "", words: Sequence[str] = ()) -> TextPieces | WordPieces:
        """The pieces of the target."""
        return self._target

    def in_parts(self, read: TextPieces | WordPieces, layers: Collection[int]) -> Iterator[tuple[Trace, Parts]]:
        """As :meth:`InParts.in_parts`."""
        state, of_keys = self._source.last_state(self._read)
        places = [2 * layer + (self._part == CROSS) for layer in layers]
        lengths = [len(self._target.ids), len(self._read.ids)] * self.layers
        stream = Stream(self._model, self.name, 2 * self.layers, max(places), lengths)
        with stream:
            weights, _ = self._whole.through_decoder(self._target.ids, state, stream.tap)
        for place, (opened, parts) in zip(places, stream.parts(self._target, False, places), strict=True):
            trace = opened.trace(self.revision, self._target.tokenized(), weights[..., : stream.widths[place]])
            yield trace, parts._replace(of_keys=of_keys if self._part == CROSS else None)
