"""Text in, Attention out: one model, read from a folder on this machine, safe to use from many threads."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Self

import torch

from mha_viz.attention import AnyHead, Attention, Head, Weights, is_number
from mha_viz.attention.steps import Step, read_as
from mha_viz.attention.trace import Trace
from mha_viz.errors import ShapeError, TextError, check_kind, shorten_value
from mha_viz.models import capture, cores, linear, many
from mha_viz.models.bert import open_bert
from mha_viz.models.capture import Tap
from mha_viz.models.families import layers, no_shares
from mha_viz.models.in_parts import InParts
from mha_viz.models.listening import listen
from mha_viz.models.loaded import LoadedModel
from mha_viz.models.many import Pieces, Prepared
from mha_viz.models.probe import Opened, matrix, place
from mha_viz.models.straight import Straight, straight
from mha_viz.models.tokenizer import TextPieces
from mha_viz.models.transformers_parts import layers_unseen
from mha_viz.request import DTYPES
from mha_viz.text import TokenizedText, WordPieces, clean

__all__ = ["Encoder"]


_log = logging.getLogger(__name__)

_PROBE = "The animal didn't cross the street because it was too tired."

_one_pass: AbstractContextManager[Any] = cores.pass_lock

# Models are created with the process's random state, which nothing else here uses.
_one_seed = threading.Lock()


class Encoder(InParts, LoadedModel):
    """A model with one stack of layers."""

    parts = False
    otherwise: ClassVar = "Choose another model."  # what can be done where its weights cannot be drawn
    how: tuple[Step, ...] = ()  # steps of every reading, after the one that says how the text was given

    def __init__(self, model: Any, tokenizer: Any, name: str, revision: str, device: str = "cpu") -> None:
        super().__init__(model, tokenizer, self._shape(model, tokenizer, name), name, revision, device)
        self._straight: Straight | None = None
        self._accepts = frozenset(inspect.signature(model.forward).parameters)
        has_types = getattr(model.config, "type_vocab_size", 2) != 1
        self._typed = has_types and "token_type_ids" in self._accepts & {*tokenizer.model_input_names}

    @classmethod
    def _shape(cls, model: Any, tokenizer: Any, name: str) -> tuple[int, int]:
        """Return the number of layers, and of heads in each."""
        return layers(model.config), model.config.num_attention_heads

    @classmethod
    def _opened(cls, folder: Path, name: str, revision: str, device: str, dtype: torch.dtype) -> Self:
        from mha_viz.models.opening import open_folder  # imports transformers: 3 s

        return cls(*open_folder(folder, name, dtype), name, revision, device)

    @classmethod
    def _ready(cls, folder: Path, name: str, revision: str, device: str, dtype: torch.dtype) -> Self:
        """Open as the base class does, but a plain BERT on the CPU without transformers."""
        opened = open_bert(folder, name) if device == "cpu" and dtype == torch.float32 else None
        if opened is None:
            return super()._ready(folder, name, revision, device, dtype)
        model = cls(*opened, name, revision, device)
        model._prepare()
        return model

    def __repr__(self) -> str:
        return f"Encoder({self.name}, {self.family}, {self.layers} layers × {self.heads} heads)"

    @property
    def prefix(self) -> str:
        """What every text follows; empty except for :meth:`prefixed`."""
        return self._tokenizer.prefix

    def prefixed(self, prefix: str) -> Self:
        """The same model for texts that follow a prefix, as some models want it, such as "query: ": for
        :meth:`encode`, and for all that takes a model and a text. The pieces of the prefix are special tokens: no words
        of the text, and drawn apart. Of a pair, the first text follows it. An empty prefix is none.

        >>> mv.load("toy").prefixed("the : ").encode("dog barks .").text.special
        (True, True, True, False, False, False, True)
        """
        if clean(prefix) == self.prefix:
            return self
        other = copy(self)
        other._tokenizer = self._tokenizer.prefixed(prefix)
        return other

    def encode(self, text: str, pair: str = "", *, target: str = "", part: str = "", prefix: str = "") -> Attention:
        """The attention of every head on ``text``, and on a second text ``pair`` if given.

        ``prefix``: what the text follows, as for :meth:`prefixed`.

        ``target`` and ``part`` are for encoder–decoders (:meth:`mha_viz.models.encoder_decoder.EncoderDecoder.encode`);
        other models raise SettingError for them.

        Text beyond ``limit`` pieces is cut, the longer of the two first: a TextCutWarning says what is kept, and
        ``attention.text.cut`` how much. Raises EmptyText if nothing is left to read, TextError for a pair that the
        model cannot read.
        """
        self.check_one_stack(target, part)
        return (self.prefixed(prefix) if prefix else self).through(text, pair)[0]

    def encode_many(
        self, texts: Iterable[str | Sequence[str]], batch_words: int = many.BATCH_WORDS
    ) -> Iterator[Attention]:
        """The attention of each text, in the order given, at the speed of a study: equally long texts are read
        together, without padding, which changes numbers by no more than rounding does (1e-6).

        ``texts``: texts as for :meth:`encode`, or lists of words as for :meth:`encode_words`; any iterable, which is
        read some way ahead, up to 64 million attention weights (256 MB). ``batch_words``: at most this many words are
        read together. Raises the errors of these two, with the number of the text, after all texts before it were
        returned.

        >>> entropies = [a.measures()["entropy"].mean() for a in encoder.encode_many(["A cat sat.", "It slept."])]
        >>> len(entropies)
        2
        """
        return many.encode_many(self, texts, batch_words)

    def prepared(self, text: str | Sequence[str]) -> Prepared:
        """A text, or a sentence given as words, ready for :meth:`batch`. Raises the errors of :meth:`encode`."""
        if isinstance(text, str):
            read = self._read(text)
            return Prepared(read.ids, read.types, read.tokenized(), read_as((), *self.how, prefix=self.prefix))
        if not isinstance(text, Sequence) or not all(isinstance(form, str) for form in text):
            raise TextError(f"{shorten_value(text)!r} is not a text.", "Give a string, or a list of words.")
        pieces = self.read_words(text)
        return Prepared(pieces.ids, pieces.types, pieces.tokenized(), read_as(text, *self.how, prefix=self.prefix))

    def through(
        self, text: str, pair: str = "", tap: Callable[[torch.Tensor], Tap] = Tap, words: Sequence[str] = ()
    ) -> tuple[Attention, Tap]:
        """As :meth:`encode`, with your own tap, which may read or change the outputs of the heads.

        ``tap``: a callable that makes it from the array for the weights, such as a subclass of :class:`mha_viz.Tap`,
        which has an example. ``words``: the sentence as words, in place of ``text``. Returns the reading, with the
        numbers that the tap left, and the tap. Captions, files and recipes say of the reading that the tap changed it.
        """
        check_kind(tap, Callable, "a tap", "Give a subclass of mha_viz.Tap.")
        read = self.pieces(text, pair, words)
        weights, used = self._run(read, tap)
        made = read_as(words, *self.how, *used.steps(), prefix=self.prefix)
        return self.reading(read.tokenized(), weights, made), used

    def reading(self, text: TokenizedText, weights: Weights, made: tuple[Step, ...] = ()) -> Attention:
        """Return a reading of a text from the weights of a pass, [layer, head, query, key]."""
        return Attention(self.name, self.revision, text, weights, made=made)

    def trace(self, text: str, pair: str = "", layer: int | AnyHead = 0, words: Sequence[str] = ()) -> Trace:
        """Every number between the input of one layer's attention and its output.

        ``layer``: its number, or a head, whose layer it is. ``words``: the sentence as words, in place of ``text``.
        Raises as :meth:`encode`, UnknownHead for a layer that does not exist, ModelUnsupported, with the reason, for
        families whose steps cannot be shown separately.
        """
        read = self.pieces(text, pair, words)
        tokens = read.tokenized()
        number = layer if is_number(layer) else Head.among(layer, self.layer_numbers, self.heads, self.name).layer
        opened = Opened(self._model, self.name, number, self.layers)
        with opened:
            weights, _ = self._run(read, opened.tap)
        return opened.trace(self.revision, tokens, weights)

    def pieces(self, text: str, pair: str = "", words: Sequence[str] = ()) -> TextPieces | WordPieces:
        """The pieces of a text, or of a sentence given as ``words``, as the model reads them. Raises the errors of
        :meth:`encode`."""
        return self.read_words(words) if words else self._read(text, pair)

    def states(
        self,
        text: str,
        pair: str = "",
        tap: Callable[[torch.Tensor], Tap] = Tap,
        copies: int = 1,
        words: Sequence[str] = (),
    ) -> Weights:
        """The output of the last layer: [copy, n, d_model]. The text is read ``copies`` times in one batch; the copies
        differ if ``tap`` makes them differ. ``words``: the sentence as words, in place of ``text``. Raises as
        :meth:`encode`."""
        states: Weights = self.last_states(self.pieces(text, pair, words), tap, copies)[0].cpu().numpy()
        return states

    def last_states(
        self, read: TextPieces | WordPieces, tap: Callable[[torch.Tensor], Tap], copies: int = 1
    ) -> tuple[torch.Tensor, Tap]:
        """As :meth:`states`, as a tensor, with the tap; gradients flow back from it if the tap is differentiable."""
        n = len(read.ids)
        used = tap(self._space(self.layers, self.heads, *([copies] if copies > 1 else []), n, n))
        used.stop_after_last = False
        return self._pass([read.ids] * copies, [read.types] * copies, used), used

    @property
    def resumes(self) -> bool:
        """True if a pass can begin at any layer."""
        return self._straight is not None

    def states_from(self, x: torch.Tensor, tap: Tap) -> torch.Tensor:
        """The last states, [copy, n, d_model], from x, the input of the layer after those that the tap has seen; for
        models that can resume."""
        assert self._straight is not None
        with _one_pass, torch.inference_mode(), capture.tapped(tap):
            return self._straight.onwards(tap, x)

    def space(self, n: int) -> torch.Tensor:
        """Memory for the weights of a text of ``n`` pieces: [layer, head, query, key]."""
        return self._space(self.layers, self.heads, n, n)

    @contextmanager
    def before_w_o(self, layer: int, hook: Callable[..., Any]) -> Iterator[None]:
        """Within this block, ``hook`` is called as a PyTorch forward pre-hook with the input of W_O of a layer. It is
        also called for other threads' passes and for other layers that share the module."""
        handle = place(self._model, layer).output.register_forward_pre_hook(hook)
        try:
            yield
        finally:
            handle.remove()

    def module(self, path: str) -> torch.nn.Module:
        """The module of the model at ``path``, such as "encoder.layer.0"."""
        module: torch.nn.Module = self._model.get_submodule(path)
        return module

    def w_o(self, layer: int) -> torch.Tensor:
        """W_O of a layer, [head · d_head, d_model], float32, with the heads one below the other."""
        return matrix(place(self._model, layer).output).float()

    # ---- sentences given as words -----------------------------------------------------------------------------------

    def read_words(self, forms: Sequence[str]) -> WordPieces:
        """The pieces of a sentence given as words. Raises TextError if it has more pieces than the model reads, or a
        word of which the tokenizer keeps nothing."""
        return self._tokenizer.read_words(forms)

    def encode_words(self, forms: Sequence[str]) -> Attention:
        """The attention of every head on a sentence that is given as words. Raises the errors of :meth:`read_words`."""
        read = self.read_words(forms)
        weights = self.batch([read])[:, :, 0]
        return self.reading(read.tokenized(), weights, read_as(forms, *self.how, prefix=self.prefix))

    def batch(self, sentences: Sequence[Pieces]) -> Weights:
        """[layer, head, sentence, query, key] for sentences with equally many pieces, in one pass. The numbers of a
        sentence do not depend on the others in its batch."""
        count, n = len(sentences), len(sentences[0].ids)
        if any(len(sentence.ids) != n for sentence in sentences):
            raise ShapeError("The sentences of a batch have different lengths.", "Put equally long ones together.")
        tap = Tap(self._space(self.layers, self.heads, count, n, n))
        self._pass([s.ids for s in sentences], [s.types for s in sentences], tap)
        return tap.fetched()

    def untrained(self, seed: int = 0) -> Encoder:
        """The same architecture and tokenizer with random weights."""
        from mha_viz.models import opening  # imports transformers: 3 s

        with _one_seed, torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = opening.untrained(self._model.config, self._model.dtype)
        revision = f"untrained, seed {seed}"
        encoder = type(self)(model, self.vocabulary, self.name, revision, self.device)
        encoder._prepare()
        return encoder

    # ---- the model --------------------------------------------------------------------------------------------------

    def _run(self, read: TextPieces | WordPieces, make_tap: Callable[[torch.Tensor], Tap]) -> tuple[Weights, Tap]:
        """One pass: weights [layer, head, query, key], read-only, and the tap that recorded them."""
        tap = make_tap(self._space(self.layers, self.heads, len(read.ids), len(read.ids)))
        self._pass([read.ids], [read.types], tap)
        weights = tap.fetched()
        weights.flags.writeable = False
        return weights, tap

    def _pass(self, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]], tap: Tap) -> torch.Tensor:
        """The last states, [sentence, n, d_model], float32; without rows if the tap ended the pass earlier."""
        inputs: dict[str, Any] = {"input_ids": self._tokens(*ids)}
        if self._typed:
            inputs["token_type_ids"] = torch.tensor(types, device=self.device)
        if "use_cache" in self._accepts and not self._straight:
            inputs["use_cache"] = False
        states: torch.Tensor = torch.empty(0)
        with _one_pass, torch.inference_mode(not tap.differentiable), capture.tapped(tap):
            states = self._straight(tap, **inputs) if self._straight else self._model(**inputs).last_hidden_state
        if tap.seen != self.layers:
            raise layers_unseen(self.name, self.family, tap.seen, self.layers)
        return states.float()

    def _prepare(self) -> None:
        """Pack the weights and run once, so that a model that cannot be drawn is refused now and the first visitor does
        not wait."""
        if self.device == "cpu" and self.dtype == DTYPES[0]:
            self._straight = straight(self._model)
            linear.pack(self._model)
        listen(self._model)
        self._first_weights()

    def _first_weights(self) -> Weights:
        """[layer, head, query, key] of a first sentence. Raises ModelUnsupported for rows that do not sum to 1."""
        try:
            probe = self._tokenizer.read(_PROBE)
            return self.reading(probe.tokenized(), self._run(probe, Tap)[0]).weights
        except ShapeError as error:
            raise no_shares(self.name, error, self.otherwise) from error
