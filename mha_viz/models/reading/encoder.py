"""Read text and return its attention, with one model opened from a local folder. Safe to use from many threads."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import torch

from mha_viz.attention import Attention, Weights, is_number
from mha_viz.attention.parts import Parts, ScoreParts, score_parts
from mha_viz.attention.steps import Step, make_first_steps
from mha_viz.attention.tensors import make_read_only
from mha_viz.attention.trace import Floats, Trace
from mha_viz.errors import MhaVizError, SettingError, ShapeError, TextError, check_kind, shorten_value
from mha_viz.heads import AnyHead, Head
from mha_viz.model_names import quote_model
from mha_viz.models.families import count_layers, make_no_shares_error
from mha_viz.models.reading import capture, cores, linear
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.cores import one_blas_thread, pass_lock
from mha_viz.models.reading.fast_layers import LayerRunner, make_layer_runner
from mha_viz.models.reading.listening import install_hooks
from mha_viz.models.reading.loaded_model import LoadedModel
from mha_viz.models.reading.plain_models import open_plain
from mha_viz.models.reading.probe import LayerProbe, find_attention_modules, read_matrix, read_weights
from mha_viz.models.reading.stream import LayerNorms, Stream, find_projection
from mha_viz.models.reading.tokenizer import TextPieces
from mha_viz.models.transformers_parts import make_layers_unseen_error
from mha_viz.request import DTYPES
from mha_viz.text import TokenizedText, WordPieces, clean


class DecomposableStack:
    """One stack of layers whose attention scores can be decomposed."""

    name: str
    revision: str
    layers: int
    heads: int
    layer_numbers: tuple[int, ...]  # the layer numbers in the names of heads
    _model: Any
    _reads_types: bool

    def pieces(self, text: str, pair: str = "", words: Sequence[str] = ()) -> TextPieces | WordPieces:
        """Return the pieces of a text as the stack reads them."""
        raise NotImplementedError

    def _run(self, pieces: TextPieces | WordPieces, tap: Callable[[torch.Tensor], Tap]) -> tuple[Weights, Tap]:
        """Run one pass. Return the weights, [layer, head, query, key], and the tap that recorded them."""
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
        """Decompose the score of a head for one query and one key into parts.

        ``query`` and ``key`` are the numbers of the tokens, from 0. ``pair`` and ``words`` are as for :meth:`trace`,
        ``target`` and ``part`` as for :meth:`encode`. The parts of each token are its word, its position, what each
        earlier head and feed-forward part has added to it, and constants. Every pair of parts adds to the score, and
        all pairs sum to it (:class:`mha_viz.attention.parts.ScoreParts`; Elhage et al. 2021, "A Mathematical Framework
        for Transformer Circuits"). Norms keep the standard deviations that they had in the pass (Kobayashi et al.
        2021).

        Raises the errors of :meth:`encode`, UnknownHead, SettingError for tokens that do not exist or do not see each
        other, and ModelUnsupported, with the reason, for families whose scores cannot be decomposed.

        >>> parts = encoder.score_parts("The cat sat on the mat.", "L0H2", 3, 2)
        >>> print(parts.table()[["query_part", "key_part"]].iloc[0].tolist())
        ['position', 'position']
        """
        self.check_one_stack(target, part)
        return self.score_parts_for_keys(text, head, query, [key], pair=pair, words=words)[0]

    def score_parts_for_keys(
        self, text: str, head: AnyHead, query: int, keys: Sequence[int], *, pair: str = "", words: Sequence[str] = ()
    ) -> tuple[ScoreParts, ...]:
        """Return :meth:`score_parts` for several keys, computed in one pass."""
        checked_head = Head.among(head, self.layer_numbers, self.heads, self.name)
        with one_blas_thread:
            ((trace, parts),) = self.iter_parts(self.pieces(text, pair, words), [checked_head.layer])
            return score_parts(trace, parts, checked_head, query, keys)

    def iter_parts(self, pieces: TextPieces | WordPieces, layers: Collection[int]) -> Iterator[tuple[Trace, Parts]]:
        """Yield, for each of ``layers``, its trace and the parts of its attention's input, computed in one pass.

        Raises the errors of :meth:`score_parts`.
        """
        stream, weights = self._record_stream(pieces, max(layers))
        for probe, parts in stream.parts(pieces, self._reads_types, layers):
            yield probe.trace(self.revision, pieces.tokenized(), weights), parts

    def iter_norms(
        self, pieces: TextPieces | WordPieces, layers: Collection[int]
    ) -> Iterator[tuple[Trace, LayerNorms]]:
        """Yield, for each of ``layers`` in order, its trace and the norms around its heads, computed in one pass.

        Raises the errors of :meth:`score_parts`.
        """
        stream, weights = self._record_stream(pieces, max(layers))
        for probe, norms in stream.iter_norms(layers):
            yield probe.trace(self.revision, pieces.tokenized(), weights), norms

    def _record_stream(self, pieces: TextPieces | WordPieces, last_layer: int) -> tuple[Stream, Weights]:
        """Run one pass. Return the stream recorded up to ``last_layer``, and the weights."""
        stream = Stream(self._model, self.name, self.layers, last_layer)
        with stream:
            weights, _ = self._run(pieces, stream.tap)
        return stream, weights


BATCH_WORDS = 400  # maximum number of words per batch; larger batches are no faster
MAX_BATCH_WEIGHTS = 11_500_000  # maximum number of attention weights per batch, 46 MB; a single text may have more
MAX_WINDOW_WEIGHTS = 32_000_000  # maximum over all texts of a window, 128 MB; a single text may have more
MAX_WINDOW_TEXTS = 2_000


class Pieces(Protocol):
    """The input of the model for one text, with one entry per piece."""

    @property
    def ids(self) -> Sequence[int]:
        """The numbers of the pieces in the vocabulary."""

    @property
    def types(self) -> Sequence[int]:
        """0 for the first text, 1 for the second of a pair."""


@dataclass(frozen=True)
class PreparedText:
    """A text prepared for the model, with the tokens of its attention and the first steps of its reading."""

    ids: Sequence[int]
    types: Sequence[int]
    tokens: TokenizedText
    steps: tuple[Step, ...]

    @property
    def words(self) -> int:
        """The number of words in the text, not counting special tokens."""
        return len({token.word for token in self.tokens.tokens if token.word is not None})


@dataclass
class _Window:
    """Texts that are read ahead together, and the error raised by the next text, if any."""

    texts: list[PreparedText]
    error: MhaVizError | None = None


def encode_many(encoder: Encoder, texts: Iterable[str | Sequence[str]], batch_words: int) -> Iterator[Attention]:
    """Yield the attention of each text, as :meth:`mha_viz.models.reading.encoder.Encoder.encode_many`."""
    if not is_number(batch_words) or batch_words < 1:
        raise SettingError(
            f"batch_words is {shorten_value(batch_words)!r}.", "Expected a whole number of words, at least 1."
        )
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise TextError(f"{shorten_value(texts)!r} is not a list of texts.", "Give a list, or use encode for one text.")
    return _encode_in_order(encoder, texts, batch_words)


def _encode_in_order(encoder: Encoder, texts: Iterable[str | Sequence[str]], batch_words: int) -> Iterator[Attention]:
    """Encode texts in batches on several workers, and yield the results in the order of the texts."""
    with pass_lock.worker_pool() as workers:
        pending_readings: list[_PendingReading] = []
        for window in _iter_windows(encoder, texts):
            pending_by_number: dict[int, _PendingReading] = {}
            for numbers in make_batches(window.texts, encoder.layers * encoder.heads, batch_words):
                future = workers.submit(_encode_batch, encoder, [window.texts[number] for number in numbers])
                pending_by_number |= {number: (future, index) for index, number in enumerate(numbers)}
            yield from _iter_results(pending_readings)
            pending_readings = [pending_by_number.pop(number) for number in range(len(window.texts))]
            if window.error is not None:
                yield from _iter_results(pending_readings)
                raise window.error
        yield from _iter_results(pending_readings)


def _iter_windows(encoder: Encoder, texts: Iterable[str | Sequence[str]]) -> Iterator[_Window]:
    """Yield windows of prepared texts. An error ends the last window."""
    heads, weights_in_window = encoder.layers * encoder.heads, 0
    window = _Window([])
    for number, text in enumerate(texts):
        try:
            window.texts.append(encoder.prepare_text(text))
        except MhaVizError as error:
            window.error = type(error)(f"Text {number}, counted from 0: {error.problem}", error.remedy)
            window.error.__cause__ = error
            break
        weights_in_window += heads * len(window.texts[-1].ids) ** 2
        if weights_in_window >= MAX_WINDOW_WEIGHTS or len(window.texts) >= MAX_WINDOW_TEXTS:
            yield window
            window, weights_in_window = _Window([]), 0
    yield window


# The batch that will contain a text's attention, and its index there.
_PendingReading = tuple["Future[list[Attention]]", int]


def _iter_results(readings: list[_PendingReading]) -> Iterator[Attention]:
    """Yield the results of a window in order, as they become available."""
    readings.reverse()
    while readings:  # drop each result once it has been returned
        future, index = readings.pop()
        yield future.result()[index]


def make_batches(texts: Sequence[PreparedText], heads: int, batch_words: int) -> list[list[int]]:
    """Group the numbers of texts into batches of equally long texts.

    A batch has at most ``batch_words`` words and MAX_BATCH_WEIGHTS weights, unless a single text has more. ``heads`` is
    the number of heads of the whole model. Batches are ordered by the first text they contain.
    """
    groups: list[list[int]] = []
    open_batches: dict[int, tuple[list[int], int]] = {}  # by length: the batch that can still grow, and its words
    for number, text in enumerate(texts):
        length = len(text.ids)
        batch, words = open_batches.get(length, ([], 0))
        if not batch or words + text.words > batch_words or (len(batch) + 1) * heads * length**2 > MAX_BATCH_WEIGHTS:
            batch, words = [], 0
            groups.append(batch)
        batch.append(number)
        open_batches[length] = batch, words + text.words
    return groups


def _encode_batch(encoder: Encoder, texts: Sequence[PreparedText]) -> list[Attention]:
    """Encode texts of equal length in one pass."""
    weights = make_read_only(encoder.batch(texts))  # [layer, head, text, query, key]
    return [
        encoder.reading(text.tokens, make_read_only(np.ascontiguousarray(weights[:, :, index])), text.steps)
        for index, text in enumerate(texts)
    ]


__all__ = ["Encoder"]


_log = logging.getLogger(__name__)

_FIRST_SENTENCE = "The animal didn't cross the street because it was too tired."

_pass_lock: AbstractContextManager[Any] = cores.pass_lock

# Untrained models are created with the random state of the process, so only one thread may seed it at a time.
_seed_lock = threading.Lock()


class Encoder(DecomposableStack, LoadedModel):
    """A model with one stack of layers."""

    has_two_stacks = False
    remedy: ClassVar = "Choose another model."  # in errors about weights that cannot be drawn
    own_steps: tuple[Step, ...] = ()  # steps of every reading, after the step that says how the text was given

    def __init__(self, model: Any, tokenizer: Any, name: str, revision: str, device: str = "cpu") -> None:
        super().__init__(model, tokenizer, self._shape(model, tokenizer, name), name, revision, device)
        self._runner: LayerRunner | None = None
        self._input_names = frozenset(inspect.signature(model.forward).parameters)
        has_types = getattr(model.config, "type_vocab_size", 2) != 1
        self._reads_types = has_types and "token_type_ids" in self._input_names & {*tokenizer.model_input_names}

    @classmethod
    def _shape(cls, model: Any, tokenizer: Any, name: str) -> tuple[int, int]:
        """Return the number of layers, and of heads in each layer."""
        return count_layers(model.config), model.config.num_attention_heads

    @classmethod
    def _open(cls, folder: Path, name: str, revision: str, device: str, dtype: torch.dtype) -> Self:
        from mha_viz.models.reading.opening import open_folder  # imports transformers: 3 s

        return cls(*open_folder(folder, name, dtype), name, revision, device)

    @classmethod
    def _load_prepared(cls, folder: Path, name: str, revision: str, device: str, dtype: torch.dtype) -> Self:
        """Open a plain BERT or GPT-2 on the CPU without transformers; open other models as the base class does."""
        plain_parts = open_plain(folder, name) if device == "cpu" and dtype == torch.float32 else None
        if plain_parts is None:
            return super()._load_prepared(folder, name, revision, device, dtype)
        model = cls(*plain_parts, name, revision, device)
        model._prepare()
        return model

    def __repr__(self) -> str:
        return f"Encoder({self.name}, {self.family}, {self.layers} layers × {self.heads} heads)"

    @property
    def prefix(self) -> str:
        """The prefix of every text; empty unless set by :meth:`prefixed`."""
        return self._tokenizer.prefix

    def prefixed(self, prefix: str) -> Self:
        """Return this model with a prefix before every text, such as "query: ", which some models require.

        The prefix applies to :meth:`encode` and to everything that takes a model and a text. Its pieces are special
        tokens: they are not words of the text and are drawn separately. In a pair, only the first text gets the
        prefix. It replaces an earlier prefix; an empty one removes it.

        >>> mv.load("toy").prefixed("the : ").encode("dog barks .").text.special
        (True, True, True, False, False, False, True)
        """
        if clean(prefix) == self.prefix:
            return self
        prefixed_encoder = copy(self)
        prefixed_encoder._tokenizer = self._tokenizer.prefixed(prefix)
        return prefixed_encoder

    def encode(self, text: str, pair: str = "", *, target: str = "", part: str = "", prefix: str = "") -> Attention:
        """Return the attention of every head on ``text``, and on a second text ``pair`` if given.

        ``prefix`` is as for :meth:`prefixed`.

        ``target`` and ``part`` are for encoder–decoders
        (:meth:`mha_viz.models.reading.encoder_decoder.EncoderDecoder.encode`); other models raise SettingError if
        they are given.

        Text beyond ``limit`` pieces is cut, the longer of the two texts first. A TextCutWarning says what is kept, and
        ``attention.text.cut`` says how much. Raises EmptyText if nothing is left to read, TextError for a pair that the
        model cannot read.
        """
        self.check_one_stack(target, part)
        return (self.prefixed(prefix) if prefix else self).through(text, pair)[0]

    def encode_many(self, texts: Iterable[str | Sequence[str]], batch_words: int = BATCH_WORDS) -> Iterator[Attention]:
        """Yield the attention of each text, in the order given, at the speed of a study.

        Equally long texts are read together, without padding, which changes numbers by no more than rounding does
        (1e-6).

        ``texts``: texts as for :meth:`encode`, or lists of words as for :meth:`encode_words`. It may be any iterable,
        and is read ahead up to 64 million attention weights (256 MB). ``batch_words``: maximum number of words that are
        read together. Raises the errors of these two methods, with the number of the text, after all earlier texts have
        been returned.

        >>> entropies = [a.measures()["entropy"].mean() for a in encoder.encode_many(["A cat sat.", "It slept."])]
        >>> len(entropies)
        2
        """
        return encode_many(self, texts, batch_words)

    def prepare_text(self, text: str | Sequence[str]) -> PreparedText:
        """Prepare a text, or a sentence given as words, for :meth:`batch`. Raises the errors of :meth:`encode`."""
        if isinstance(text, str):
            text_pieces = self._read(text)
            steps = make_first_steps((), *self.own_steps, prefix=self.prefix)
            return PreparedText(text_pieces.ids, text_pieces.types, text_pieces.tokenized(), steps)
        if not isinstance(text, Sequence) or not all(isinstance(form, str) for form in text):
            raise TextError(f"{shorten_value(text)!r} is not a text.", "Give a string, or a list of words.")
        pieces = self.read_words(text)
        return PreparedText(
            pieces.ids, pieces.types, pieces.tokenized(), make_first_steps(text, *self.own_steps, prefix=self.prefix)
        )

    def through(
        self, text: str, pair: str = "", tap: Callable[[torch.Tensor], Tap] = Tap, words: Sequence[str] = ()
    ) -> tuple[Attention, Tap]:
        """Encode a text with your own tap, which may read or change the outputs of the heads.

        ``tap``: a callable that makes the tap from the array for the weights, such as a subclass of
        :class:`mha_viz.Tap`, which has an example. ``words``: the sentence as words, in place of ``text``. The other
        arguments are as for :meth:`encode`. Returns the reading, with the weights as the tap left them, and the tap.
        Captions, files and recipes say that the tap changed the reading.
        """
        check_kind(tap, Callable, "a tap", "Give a subclass of mha_viz.Tap.")
        pieces = self.pieces(text, pair, words)
        weights, used_tap = self._run(pieces, tap)
        steps = make_first_steps(words, *self.own_steps, *used_tap.steps(), prefix=self.prefix)
        return self.reading(pieces.tokenized(), weights, steps), used_tap

    def reading(self, text: TokenizedText, weights: Weights, made: tuple[Step, ...] = ()) -> Attention:
        """Return a reading of a text from the weights of a pass, [layer, head, query, key]."""
        return Attention(self.name, self.revision, text, weights, made=made)

    def trace(self, text: str, pair: str = "", layer: int | AnyHead = 0, words: Sequence[str] = ()) -> Trace:
        """Return every number between the input of one layer's attention and its output.

        ``layer``: the number of the layer, or a head in it. ``words``: the sentence as words, in place of ``text``.
        Raises the errors of :meth:`encode`, UnknownHead for a layer that does not exist, ModelUnsupported, with the
        reason, for families whose steps cannot be shown separately.
        """
        pieces = self.pieces(text, pair, words)
        tokens = pieces.tokenized()
        if not is_number(layer) or isinstance(layer, bool):
            layer = Head.among(layer, self.layer_numbers, self.heads, self.name).layer
        probe = LayerProbe(self._model, self.name, layer, self.layers)
        with probe:
            weights, _ = self._run(pieces, probe.tap)
        return probe.trace(self.revision, tokens, weights)

    def pieces(self, text: str, pair: str = "", words: Sequence[str] = ()) -> TextPieces | WordPieces:
        """Return the pieces of a text, or of a sentence given as ``words``, as the model reads them.

        Raises the errors of :meth:`encode`, and SettingError for ``words`` with a ``pair``.
        """
        if words and pair:
            raise SettingError("words are the whole text.", "Leave pair out.")
        return self.read_words(words) if words else self._read(text, pair)

    def states(
        self,
        text: str,
        pair: str = "",
        tap: Callable[[torch.Tensor], Tap] = Tap,
        copies: int = 1,
        words: Sequence[str] = (),
    ) -> Weights:
        """Return the output of the last layer, [copy, n, d_model].

        The text is read ``copies`` times in one batch; the copies differ if ``tap`` makes them differ. ``words``: the
        sentence as words, in place of ``text``. Raises the errors of :meth:`encode`.
        """
        states: Weights = self.last_states(self.pieces(text, pair, words), tap, copies)[0].cpu().numpy()
        return states

    def last_states(
        self, pieces: TextPieces | WordPieces, tap: Callable[[torch.Tensor], Tap], copies: int = 1
    ) -> tuple[torch.Tensor, Tap]:
        """Return :meth:`states` as a tensor, and the tap. Gradients flow back from the tensor if the tap is
        differentiable.
        """
        used_tap = tap(self.allocate(len(pieces.ids), *([copies] if copies > 1 else [])))
        used_tap.stop_after_last = False
        return self._pass([pieces.ids] * copies, [pieces.types] * copies, used_tap), used_tap

    def batch_states(self, texts: Sequence[Pieces], tap: Tap) -> torch.Tensor:
        """Return the last states of texts with equally many pieces, [text, n, d_model], in one pass with this tap."""
        tap.stop_after_last = False
        return self._pass([text.ids for text in texts], [text.types for text in texts], tap)

    @property
    def can_resume(self) -> bool:
        """Whether a pass can begin at any layer."""
        return self._runner is not None

    def resume_states(self, x: torch.Tensor, tap: Tap, positions: Sequence[int] = ()) -> torch.Tensor:
        """Return the last states, [copy, n, d_model], of a pass that begins with ``x``; for models that can resume.

        ``x`` is the input of the layer after those that the tap has seen. With ``positions``, one token per copy, only
        the states of these tokens are returned, [copy, 1, d_model].
        """
        assert self._runner is not None
        with _pass_lock, torch.inference_mode(), capture.use_tap(tap):
            return self._runner.run_from(tap, x, positions)

    def allocate(self, n: int, *copies: int) -> torch.Tensor:
        """Allocate memory for the weights of a text of ``n`` pieces: [layer, head, query, key].

        With a number of ``copies``, it is [layer, head, copy, query, key].
        """
        return self._allocate_weights(self.layers, self.heads, *copies, n, n)

    @contextmanager
    def hook_w_o_input(self, layer: int, hook: Callable[..., Any]) -> Iterator[None]:
        """Call ``hook`` with the input of a layer's W_O while inside this block.

        ``hook`` is a PyTorch forward pre-hook. It is also called for passes of other threads, and for other layers that
        share the module.
        """
        handle = find_attention_modules(self._model, layer).output.register_forward_pre_hook(hook)
        try:
            yield
        finally:
            handle.remove()

    def module(self, path: str) -> torch.nn.Module:
        """Return the module of the model at ``path``, such as "encoder.layer.0"."""
        module: torch.nn.Module = self._model.get_submodule(path)
        return module

    def w_o(self, layer: int) -> torch.Tensor:
        """Return W_O of a layer, [head · d_head, d_model], in float32, with the heads stacked along the first axis."""
        return read_matrix(find_attention_modules(self._model, layer).output).float()

    @property
    def word_vectors(self) -> torch.Tensor:
        """The input embeddings, [piece, width]."""
        vectors: torch.Tensor = self._model.get_input_embeddings().weight.detach()
        return vectors

    @property
    def word_projection(self) -> Floats | None:
        """The matrix, [width, d_model], from narrow input embeddings to d_model; None if they have that width."""
        projection = find_projection(self._model)
        return None if projection is None else read_weights(projection)

    # ---- sentences given as words -----------------------------------------------------------------------------------

    def read_words(self, forms: Sequence[str]) -> WordPieces:
        """Return the pieces of a sentence given as words.

        Raises TextError if the sentence has more pieces than the model reads, or a word of which the tokenizer keeps
        nothing.
        """
        return self._tokenizer.read_words(forms)

    def encode_words(self, forms: Sequence[str]) -> Attention:
        """Return the attention of every head on a sentence given as words. Raises the errors of :meth:`read_words`."""
        pieces = self.read_words(forms)
        weights = self.batch([pieces])[:, :, 0]
        return self.reading(pieces.tokenized(), weights, make_first_steps(forms, *self.own_steps, prefix=self.prefix))

    def batch(self, sentences: Sequence[Pieces]) -> Weights:
        """Return the weights of sentences with equally many pieces, [layer, head, sentence, query, key], in one pass.

        The numbers of a sentence do not depend on the others in its batch.
        """
        count, n = len(sentences), len(sentences[0].ids)
        if any(len(sentence.ids) != n for sentence in sentences):
            raise ShapeError("The sentences of a batch have different lengths.", "Put equally long ones together.")
        tap = Tap(self._allocate_weights(self.layers, self.heads, count, n, n))
        self._pass([s.ids for s in sentences], [s.types for s in sentences], tap)
        return tap.fetched()

    def untrained(self, seed: int = 0) -> Encoder:
        """Return a model with the same architecture and tokenizer and with random weights."""
        from mha_viz.models.reading import opening  # imports transformers: 3 s

        with _seed_lock, torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = opening.make_untrained(self._model.config, self._model.dtype)
        revision = f"untrained, seed {seed}"
        encoder = type(self)(model, self.vocabulary, self.name, revision, self.device)
        encoder._prepare()
        return encoder

    # ---- the model --------------------------------------------------------------------------------------------------

    def _run(self, pieces: TextPieces | WordPieces, make_tap: Callable[[torch.Tensor], Tap]) -> tuple[Weights, Tap]:
        """Run one pass. Return the weights, [layer, head, query, key], read-only, and the tap that recorded them."""
        tap = make_tap(self._allocate_weights(self.layers, self.heads, len(pieces.ids), len(pieces.ids)))
        self._pass([pieces.ids], [pieces.types], tap)
        weights = tap.fetched()
        weights.flags.writeable = False
        return weights, tap

    def _pass(self, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]], tap: Tap) -> torch.Tensor:
        """Run the model. Return the last states, [sentence, n, d_model], float32; no rows if the tap ended the pass
        early.
        """
        inputs: dict[str, Any] = {"input_ids": self._tokens(*ids)}
        if self._reads_types:
            inputs["token_type_ids"] = torch.tensor(types, device=self.device)
        if "use_cache" in self._input_names and not self._runner:
            inputs["use_cache"] = False
        states: torch.Tensor = torch.empty(0)
        with _pass_lock, torch.inference_mode(not tap.differentiable), capture.use_tap(tap):
            states = self._runner(tap, **inputs) if self._runner else self._model(**inputs).last_hidden_state
        if tap.seen != self.layers:
            raise make_layers_unseen_error(self.name, self.family, tap.seen, self.layers)
        return states.float()

    def _prepare(self) -> None:
        """Pack the weights and run once.

        The first run refuses models whose attention cannot be drawn, and spares the first visitor a wait.
        """
        if self.device == "cpu" and self.dtype == DTYPES[0]:
            self._runner = make_layer_runner(self._model)
            linear.pack_layers(self._model)
        install_hooks(self._model)
        self._compute_first_weights()

    def _compute_first_weights(self) -> Weights:
        """Return the weights of a first sentence, [layer, head, query, key]. Raises ModelUnsupported if rows do not sum
        to 1.
        """
        try:
            pieces = self._tokenizer.read(_FIRST_SENTENCE)
            return self.reading(pieces.tokenized(), self._run(pieces, Tap)[0]).weights
        except ShapeError as error:
            raise make_no_shares_error(self.name, error, self.remedy) from error
