"""Read text with models that have two stacks.

The encoder reads a source, and the decoder attends to a target and to the encoder's output.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import torch

from mha_viz.attention import AnyHead, Attention, Weights
from mha_viz.attention.parts import KeyParts, Parts, ScoreParts
from mha_viz.attention.steps import Step, make_part_steps
from mha_viz.attention.trace import Trace
from mha_viz.errors import (
    LOADED_KIND,
    EmptyText,
    ModelUnsupported,
    NeedsOneStack,
    SettingError,
    TextError,
    check_kind,
    shorten_value,
)
from mha_viz.heads import list_layers
from mha_viz.model_names import quote_model, shorten_name
from mha_viz.models.families import ENCODER_DECODERS, STACKS
from mha_viz.models.reading import capture, cores
from mha_viz.models.reading.capture import LastLayerSeen, Tap
from mha_viz.models.reading.encoder import DecomposableStack, Encoder
from mha_viz.models.reading.generation import MAX_TARGET_TOKENS, generate_greedily, read_generation_settings
from mha_viz.models.reading.loaded_model import LoadedModel
from mha_viz.models.reading.stream import Stream
from mha_viz.models.reading.tokenizer import TextPieces, Tokenizer
from mha_viz.models.transformers_parts import make_layers_unseen_error
from mha_viz.request import CROSS, DECODER, ENCODER, PARTS
from mha_viz.text import Piece, WordPieces


class SourceStack(DecomposableStack):
    """The encoder of an encoder–decoder."""

    def __init__(self, model: EncoderDecoder, stack: Any, shape: tuple[int, int]) -> None:
        """Wrap the encoder of a model. Raises ModelUnsupported for families whose scores cannot be decomposed."""
        if stack.config.model_type not in STACKS:
            raise ModelUnsupported(
                f"The scores of {quote_model(model.name)} cannot be decomposed: of encoder–decoders, only those of T5 "
                "and mT5 can.",
                "Choose one of these, or a model with one stack of layers, such as BERT.",
            )
        self.name, self.revision, (self.layers, self.heads) = model.name, model.revision, shape
        self.layer_numbers = list_layers(self.layers)
        self._parent, self._model, self._reads_types = model, stack, False

    def pieces(self, text: str, pair: str = "", words: Sequence[str] = ()) -> TextPieces | WordPieces:
        """Return the pieces of a text. Raises TextError for a pair, and for given words."""
        self.check_words(words)
        return self._parent.read_source(text, pair)

    def check_words(self, words: Sequence[str]) -> None:
        """Raise TextError if words are given."""
        if words:
            raise TextError(f"{shorten_name(self.name)} cannot read a list of words.", "Give the sentence as one text.")

    def _run(self, pieces: TextPieces | WordPieces, tap: Callable[[torch.Tensor], Tap]) -> tuple[Weights, Tap]:
        return self._parent.run_encoder(pieces.ids, tap)

    def last_state(self, pieces: TextPieces | WordPieces) -> tuple[torch.Tensor, KeyParts]:
        """Return the encoder's last state on a source, [1, n, d_model], which the decoder receives, and its parts."""
        stream = Stream(self._model, self.name, self.layers, self.layers - 1)
        with stream:
            self._run(pieces, stream.tap)
        state, parts = stream.last_state(pieces)
        encoder_parts = parts._replace(names=tuple(f"{ENCODER} {name}" for name in parts.names))
        return torch.from_numpy(state)[None], KeyParts(pieces.tokenized(), encoder_parts)


class TargetStack(DecomposableStack):
    """One of the attentions of a decoder, "decoder" or "cross", on a target, after the encoder has read a source."""

    def __init__(
        self, model: EncoderDecoder, source: SourceStack, stack: Any, texts: tuple[TextPieces, TextPieces], part: str
    ) -> None:
        self.name, self.revision, self.layers, self.heads = model.name, model.revision, model.layers, model.heads
        self.layer_numbers = list_layers(self.layers)
        self._parent, self._source, self._model, self._part = model, source, stack, part
        self._source_pieces, self._target_pieces = texts

    def pieces(self, text: str = "", pair: str = "", words: Sequence[str] = ()) -> TextPieces | WordPieces:
        """Return the pieces of the target."""
        return self._target_pieces

    def iter_parts(self, pieces: TextPieces | WordPieces, layers: Collection[int]) -> Iterator[tuple[Trace, Parts]]:
        """Yield the parts as :meth:`DecomposableStack.iter_parts`, for this attention of the decoder."""
        state, key_parts = self._source.last_state(self._source_pieces)
        attention_numbers = [2 * layer + (self._part == CROSS) for layer in layers]
        lengths = [len(self._target_pieces.ids), len(self._source_pieces.ids)] * self.layers
        stream = Stream(self._model, self.name, 2 * self.layers, max(attention_numbers), lengths)
        with stream:
            weights, _ = self._parent.run_decoder(self._target_pieces.ids, state, stream.tap)
        for number, (probe, parts) in zip(
            attention_numbers, stream.parts(self._target_pieces, False, attention_numbers), strict=True
        ):
            layer_weights = weights[..., : stream.key_counts[number]]
            trace = probe.trace(self.revision, self._target_pieces.tokenized(), layer_weights)
            yield trace, parts._replace(key_parts=key_parts if self._part == CROSS else None)


__all__ = ["AnyModel", "EncoderDecoder", "require_one_stack"]

_FIRST_SENTENCE = "The animal was tired."


class TokenizerPair(NamedTuple):
    """The transformers tokenizers of source and target.

    ``can_generate`` says whether the model's files contain all weights that generation needs.
    """

    source: Any
    target: Any
    can_generate: bool


class EncoderDecoder(LoadedModel):
    """A model with two stacks, and its tokenizers. ``layers`` and ``heads`` are those of the decoder."""

    has_two_stacks = True
    own_steps: ClassVar[tuple[Step, ...]] = ()  # as in Encoder

    def __init__(self, model: Any, tokenizers: TokenizerPair, name: str, revision: str, device: str = "cpu") -> None:
        encoder_shape, decoder_shape = self._read_shapes(model, name)
        super().__init__(model, tokenizers.source, decoder_shape, name, revision, device)
        self._encoder_shape = encoder_shape
        self._target_tokenizer = Tokenizer(tokenizers.target, name, self.limit, pairs=False)
        self._target_vocabulary = tokenizers.target
        self._can_generate = tokenizers.can_generate
        self._generation = read_generation_settings(model)

    @classmethod
    def _read_shapes(cls, model: Any, name: str) -> list[tuple[int, int]]:
        """Return the number of layers, and of heads per layer, of the encoder and of the decoder."""
        stacks, config = ENCODER_DECODERS[model.config.model_type], model.config
        return [(int(getattr(config, stack.layers)), int(getattr(config, stack.heads))) for stack in stacks[:2]]

    @classmethod
    def _open(cls, folder: Path, name: str, revision: str, device: str, dtype: torch.dtype) -> Self:
        from mha_viz.models.reading.opening import open_two_stacks  # imports transformers: 3 s

        model, *tokenizers = open_two_stacks(folder, name, dtype)
        return cls(model, TokenizerPair(*tokenizers), name, revision, device)

    def __repr__(self) -> str:
        encoder = "{} layers × {} heads".format(*self._encoder_shape)
        return f"EncoderDecoder({self.name}, {self.family}, {encoder}, {self.layers} layers × {self.heads} heads)"

    def encode(self, text: str, pair: str = "", *, target: str = "", part: str = CROSS, prefix: str = "") -> Attention:
        """Return the attention of every head of one part of the model on a source ``text`` and a ``target``.

        Args:
            text: the source.
            pair: refused, because these models read a single source.
            target: the target. If it is empty, the model generates it: at each step the most probable next token, at
                most 64 of them.
            part: "cross", from each token of the target to those of the source, [layer, head, target, source];
                "decoder", from each token of the target to itself and earlier ones; "encoder", from the source to
                itself, which does not depend on the target.
            prefix: refused. Prefixes are for models with one stack; here the prefix is part of the source.

        The rows of a target begin with the decoder's start token; the end token of a target is predicted and never
        read. The settings in generation_config.json for the first tokens, the last token and single tokens that are
        never generated are obeyed; others, such as min_length, suppress_tokens, no_repeat_ngram_size and
        repetition_penalty, are not. mBART reads both texts with its tokenizer's default language code, or "en_XX" if
        the files name none.

        A source beyond ``limit`` pieces is cut with a TextCutWarning. Raises EmptyText if there is nothing to read or
        the model generates nothing, TextError for a target with more than ``limit`` pieces and for a ``pair``,
        SettingError for another part and for a ``prefix``, ModelUnsupported if the files name no token that a target
        begins with, or lack the weights for generation.
        """
        if prefix:
            problem = f"{quote_model(self.name)} has no separate prefix."
            raise SettingError(problem, "Write it into the text.")
        check_kind(target, str, "a text", "Give the target as text.")
        part = _check_part(part or CROSS)
        source = self._read(text, pair)
        if part == ENCODER:
            weights = self._compute_weights(source.ids, [], part)
            return Attention(
                self.name,
                self.revision,
                source.tokenized(),
                weights,
                made=(*make_part_steps(part, text), *self.own_steps),
            )
        is_generated, target_pieces = not target.strip(), self._make_target(source, target)
        queries, keys = target_pieces.tokenized(), source.tokenized()
        weights = self._compute_weights(source.ids, target_pieces.ids, part)
        steps = (
            *make_part_steps(part, keys.text[: keys.cut.kept[0] if keys.cut else None], is_generated),
            *self.own_steps,
        )
        if part == DECODER:
            return Attention(self.name, self.revision, queries, weights, made=steps)
        return Attention(self.name, self.revision, queries, weights, made=steps, keys=keys)

    def score_parts(
        self,
        text: str,
        head: AnyHead,
        query: int,
        key: int,
        *,
        target: str = "",
        part: str = ENCODER,
        pair: str = "",
        words: Sequence[str] = (),
    ) -> ScoreParts:
        """Decompose a score as :meth:`Encoder.score_parts` does, in one part of the model: "encoder", "decoder" or
        "cross".

        ``text`` and ``target`` are as for :meth:`encode`. In both attentions of the decoder, the query is a token of
        the target. Heads of the decoder are named "decoder L0H0" if they attend to the target, and "cross L0H0" if they
        attend to the source. In cross-attention, the parts of the key are those of the encoder's last state, "encoder
        word", "encoder L0H0" and so on.

        Raises ModelUnsupported for families whose scores cannot be decomposed (those of T5 and mT5 can), UnknownHead,
        SettingError for tokens that do not exist or do not see each other, and for a target of the encoder, which reads
        none; TextError for given words; and the errors of :meth:`encode`.
        """
        stack = self.make_stack(part, text, pair, words, target)
        return stack.score_parts(text, head, query, key, pair=pair, words=words)

    def make_stack(self, part: str, text: str, pair: str, words: Sequence[str], target: str) -> DecomposableStack:
        """Return the stack with one part of the model, on these texts. Raises the errors of :meth:`score_parts`."""
        source = SourceStack(self, self._model.get_encoder(), self._encoder_shape)
        if _check_part(part) == ENCODER:
            if target.strip():
                raise SettingError("The encoder does not read the target.", 'Give part="cross" or part="decoder".')
            return source
        source.check_words(words)
        source_pieces = self._read(text, pair)
        return TargetStack(
            self, source, self._model.get_decoder(), (source_pieces, self._make_target(source_pieces, target)), part
        )

    # ---- the target -------------------------------------------------------------------------------------------------

    def _make_target(self, source: TextPieces, target: str) -> TextPieces:
        """Return the pieces of a target; the model generates one if ``target`` is blank."""
        if target.strip():
            return self._read_typed_target(target)
        if not self._can_generate:
            raise ModelUnsupported(
                f"The files of {quote_model(self.name)} lack the weights that write a target.", "Type a target."
            )
        start = self._get_start_token()
        with cores.pass_lock:
            ids = generate_greedily(
                self._model, self._tokens(source.ids), self._generation, min(MAX_TARGET_TOKENS, self.limit - 1)
            )
        text, pieces = self._decode_pieces(ids)
        if not text.strip():
            raise EmptyText(f"{shorten_name(self.name)} ends the target before its first word.", "Type a target.")
        return TextPieces(
            text, "", [start, *ids], [0] * (len(ids) + 1), [self._make_special_piece(start), *pieces], None
        )

    def _read_typed_target(self, target: str) -> TextPieces:
        """Return the pieces of a target as the decoder reads them: shifted by one, so that each predicts the next."""
        target_pieces = self._target_tokenizer.read(target)
        pieces = [(*entry, 0) for entry in zip(target_pieces.ids, target_pieces.pieces, strict=True)]
        while pieces and _is_added(pieces[-1][1]):  # the end token is predicted, not read
            pieces.pop()
        if self._generation.forced_token is not None:
            while pieces and _is_added(pieces[0][1]):
                pieces.pop(0)
        start_tokens = self._get_start_token(), self._generation.forced_token
        start_pieces = [(token, self._make_special_piece(token), 0) for token in start_tokens if token is not None]
        if target_pieces.cut or len(start_pieces) + len(pieces) > self.limit:
            raise TextError(
                f"The target is longer than {shorten_name(self.name)} reads: "
                f"{self.limit} tokens, including its start token.",
                "Shorten the target.",
            )
        ids, piece_list, types = map(list, zip(*start_pieces, *pieces, strict=True))
        return TextPieces(target_pieces.text, "", ids, types, piece_list, None)

    def _decode_pieces(self, ids: Sequence[int]) -> tuple[str, list[Piece]]:
        """Return the text of some token ids, and their pieces with spans.

        The span of a piece covers the characters that it adds to the text of the pieces before it.
        """
        unknown = self._target_vocabulary.unk_token_id  # stands for a word, so it is not special here
        special_ids = frozenset(self._target_vocabulary.all_special_ids) - {unknown}

        def decode(token_ids: Sequence[int]) -> str:
            """Return the text of tokens that are not special."""
            ordinary_ids = [token for token in token_ids if token not in special_ids]
            return str(self._target_vocabulary.backend_tokenizer.decode(ordinary_ids, skip_special_tokens=False))

        text = decode(ids)
        pieces: list[Piece] = []
        end, word = 0, -1
        for count, token in enumerate(ids, 1):
            if token in special_ids:
                pieces.append(self._make_special_piece(token))
                continue
            start, end = end, max(end, len(decode(ids[:count]).rstrip("\ufffd")))
            word += word < 0 or text[start:end][:1].isspace()
            pieces.append(Piece(self._name_token(token), start, end, word, 0, token != unknown))
        return text, pieces

    def _get_start_token(self) -> int:
        """Return the token that a target begins with. Raises ModelUnsupported if the files name none."""
        if self._generation.start_token is None:
            raise ModelUnsupported(
                f"The files of {quote_model(self.name)} name no token that a target begins with "
                "(decoder_start_token_id).",
                "Read the encoder alone, or choose another model.",
            )
        return self._generation.start_token

    def _make_special_piece(self, token: int) -> Piece:
        """Return the piece of a special token."""
        return Piece(self._name_token(token), 0, 0, None, 0)

    def _name_token(self, token: int) -> str:
        """Return the name of a token of the target."""
        return str(self._target_vocabulary.convert_ids_to_tokens(token) or f"<{token}>")

    def read_source(self, text: str, pair: str = "") -> TextPieces:
        """Return the pieces of a source. Raises the errors of :meth:`encode`."""
        return self._read(text, pair)

    def run_encoder(self, ids: Sequence[int], make_tap: Callable[[torch.Tensor], Tap]) -> tuple[Weights, Tap]:
        """Run the encoder. Return its weights, [layer, head, query, key], and the tap that recorded them."""
        tap = make_tap(self._allocate_weights(*self._encoder_shape, len(ids), len(ids)))
        with cores.pass_lock, torch.inference_mode(), capture.use_tap(tap):
            self._model.get_encoder()(input_ids=self._tokens(ids))
        return tap.fetched(), tap

    def run_decoder(
        self, ids: Sequence[int], state: torch.Tensor, make_tap: Callable[[torch.Tensor], Tap]
    ) -> tuple[Weights, Tap]:
        """Run the decoder on the encoder's last state, [1, n, d_model]. Return the weights and the tap that recorded
        them.

        The weights have two attentions per layer, [2 · layer, head, query, key], and memory for the longer of the two
        texts.
        """
        tap = make_tap(self._allocate_weights(2 * self.layers, self.heads, len(ids), max(len(ids), state.shape[1])))
        with cores.pass_lock, torch.inference_mode(), capture.use_tap(tap):
            inputs = {"input_ids": self._tokens(ids), "encoder_hidden_states": state.to(self.device)}
            self._model.get_decoder()(**inputs, use_cache=False)
        return tap.fetched(), tap

    # ---- the model --------------------------------------------------------------------------------------------------

    def _compute_weights(self, source: Sequence[int], target: Sequence[int], part: str) -> Weights:
        """Return the weights of one part, [layer, head, query, key], read-only."""
        layers, heads = self._encoder_shape if part == ENCODER else (self.layers, self.heads)
        queries, keys = (target if part != ENCODER else source), (target if part == DECODER else source)
        tap = PartTap(self._allocate_weights(layers, heads, len(queries), len(keys)), part, self._encoder_shape[0])
        self._run_part(source, target, part, tap)
        if tap.recorded_layers != layers:
            raise make_layers_unseen_error(self.name, self.family, tap.recorded_layers, layers)
        weights = tap.fetched()
        weights.flags.writeable = False
        return weights

    def _run_part(self, source: Sequence[int], target: Sequence[int], part: str, tap: PartTap) -> None:
        """Run one part, recording it in ``tap``."""
        with cores.pass_lock, torch.inference_mode(), capture.use_tap(tap):
            source_tokens = self._tokens(source)
            if part == ENCODER:
                self._model.get_encoder()(input_ids=source_tokens)
            else:
                self._model(input_ids=source_tokens, decoder_input_ids=self._tokens(target), use_cache=False)

    def _prepare(self) -> None:
        """Run once, so that a model that cannot be drawn is refused now and the first visitor does not wait."""
        self.encode(_FIRST_SENTENCE, part=ENCODER)
        if self._generation.start_token is not None:
            self.encode(_FIRST_SENTENCE, target=_FIRST_SENTENCE, part=CROSS)

    @property
    def refusal(self) -> tuple[str, str]:
        """The problem and the remedy of the error raised where one stack of layers is needed."""
        return (
            f"{quote_model(self.name)} is an encoder–decoder: its attention can be read, but this needs a model with "
            "one stack of layers.",
            "Choose a model such as BERT.",
        )

    def __getattr__(self, name: str) -> Any:
        """Raise NeedsOneStack for attributes that only a model with one stack has, AttributeError for others."""
        if name.startswith("_") or not hasattr(Encoder, name):
            raise AttributeError(f"EncoderDecoder has no {name}.")
        raise NeedsOneStack(*self.refusal)


AnyModel: TypeAlias = Encoder | EncoderDecoder


def require_one_stack(model: AnyModel) -> Encoder:
    """Return the model if it has one stack. Raises NeedsOneStack for an encoder–decoder, SettingError for anything
    else.
    """
    if isinstance(model, EncoderDecoder):
        raise NeedsOneStack(*model.refusal)
    check_kind(model, Encoder, *LOADED_KIND)
    return model


class PartTap(Tap):
    """A tap that records the attention of one part.

    The layers of the encoder come first; then, for each layer of the decoder, its attention to the target and to the
    source. ``encoder_layers`` is the number of layers of the encoder.
    """

    def __init__(self, weights: torch.Tensor, part: str, encoder_layers: int) -> None:
        super().__init__(weights)
        self.recorded_layers = 0
        first_call = {ENCODER: 0, DECODER: encoder_layers, CROSS: encoder_layers + 1}[part]
        self._calls = (
            range(first_call, first_call + len(weights))
            if part == ENCODER
            else range(first_call, encoder_layers + 2 * len(weights), 2)
        )

    def take(self, weights: torch.Tensor) -> None:
        """Record the weights of the next attention, [1, head, query, key], if it belongs to the part."""
        if self.seen in self._calls:
            self.weights[self._calls.index(self.seen)].copy_(weights[0])
            self.recorded_layers += 1
        self.seen += 1

    def end_if_last(self) -> None:
        """Raise LastLayerSeen if all layers of the part were seen."""
        if self.recorded_layers == len(self.weights):
            raise LastLayerSeen


def _check_part(part: str) -> str:
    """Return the part. Raises SettingError if it does not exist."""
    if part not in PARTS:
        raise SettingError(f"part is {shorten_value(part)!r}.", f"Choose one of {', '.join(PARTS)}.")
    return part


def _is_added(piece: Piece) -> bool:
    """Return whether the tokenizer added a piece. A typed piece has a span in the text."""
    return piece.word is None and not piece.end
