"""Text in, Attention out: one model, read from a folder on this machine, safe to use from many threads."""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import logging as transformers_logging

from mha_viz.attention import Attention, Weights
from mha_viz.errors import (
    EmptyText,
    MhaVizError,
    ModelBroken,
    ModelUnreachable,
    ModelUnsupported,
    SettingError,
    ShapeError,
    TextError,
)
from mha_viz.heads import AnyHead, Head, is_number
from mha_viz.models import budget, capture, catalog, cores, hub, linear, many, pipeline
from mha_viz.models.capture import Tap
from mha_viz.models.families import FAMILIES, holds, layers
from mha_viz.models.folder import check_folder
from mha_viz.models.many import Pieces, Prepared
from mha_viz.models.probe import Opened, matrix, place
from mha_viz.quotes import MOST_QUOTED, quoted
from mha_viz.text import Cut, Piece, TokenizedText, WordPieces, clean, tokenized
from mha_viz.trace import Trace

__all__ = ["Encoder", "load"]

MAX_PIECES = 512  # more than this no drawing can show
CHARACTERS_PER_PIECE = 40  # of text that reaches the tokenizer: its time grows with the text, not with the limit

_log = logging.getLogger(__name__)

_UNUSED = ("pooler", "lm_head", "cls.")  # weights that attention does not need; they may be missing
_PROBE = "The animal didn't cross the street because it was too tired."

_one_pass: AbstractContextManager[Any] = cores.turn

# Models are made with the process's own random numbers, which nothing else here uses.
_one_seed = threading.Lock()

# What transformers reports while it opens a model belongs to its whole process, too: one thread at a time changes it.
_one_opening = threading.Lock()


def load(name: str, device: str = "cpu", *, download: bool = True) -> Encoder:
    """The model that ``name`` means, on "cpu" or "cuda". Raises ModelError's family.

    It is downloaded first if need be; without ``download``, ModelUnreachable says that it is not on this machine.
    """
    model = catalog.resolve(name)
    folder = hub.local_folder(model)
    if folder is None and not download:
        raise ModelUnreachable(
            f"{quoted(model.name)} is not on this machine any more.", "Choose it again, or choose another model."
        )
    folder = folder or hub.fetch(model)
    revision = hub.BUNDLE_SHA256.get(model.path, "")[:12]
    budget.used(folder)
    return Encoder.from_folder(folder, name=model.name, revision=revision, device=device)


class _Read(NamedTuple):
    """A text as the tokenizer gave it, cut to the limit; one entry a piece."""

    ids: list[int]
    types: list[int]
    pieces: list[Piece]
    cut: Cut | None


class Encoder:
    """One model with its tokenizer. Nothing in it changes after loading: any number of threads may call it."""

    def __init__(self, model: Any, tokenizer: Any, name: str, revision: str, device: str = "cpu") -> None:
        config = model.config
        self.name = name
        self.revision = revision
        self.family: str = config.model_type
        self.layers = layers(config)
        self.heads = int(config.num_attention_heads)
        self.d_model = int(config.hidden_size)
        self.limit = _limit(model, tokenizer)  # pieces, special ones included
        self.bytes = sum(t.numel() * t.element_size() for t in (*model.parameters(), *model.buffers()))
        self.device = device
        self.folder: Path | None = None  # where its files lie
        self._model = model.to(_there(device))
        self._tokenizer = tokenizer.backend_tokenizer
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._delimiters = _delimiters(tokenizer)
        self._unknown = tokenizer.unk_token_id
        self._accepts = frozenset(inspect.signature(model.forward).parameters)
        self._typed = "token_type_ids" in tokenizer.model_input_names and "token_type_ids" in self._accepts
        self._has_pairs = _has_pairs(self._tokenizer)
        self._blank = _blank(self._tokenizer)
        self._whole = tokenizer
        self.causal = holds(FAMILIES[self.family].causal, config)  # no token attends to a later one (GPT-2)

    @classmethod
    def from_folder(cls, folder: Path, *, name: str = "", revision: str = "", device: str = "cpu") -> Encoder:
        """The model in ``folder``: config.json, tokenizer, safetensors. Never touches the network.

        Raises ModelBroken for files that are damaged or do not fit together, ModelUnsupported for models whose
        attention cannot be drawn.
        """
        check_folder(folder)
        name = name or folder.name
        try:
            with _panics_in_words(name), _reports_silenced():
                encoder = cls(*_opened(folder, name), name, revision or _revision(folder), device)
                encoder._prepare()
                encoder.folder = folder
        except MhaVizError:
            raise
        except Exception as error:  # a library's, of any kind: the files are what a person can change
            words = " ".join(str(error).split()) or type(error).__name__
            _log.warning("%s cannot be loaded: %s", name, words)
            reason = "" if catalog.hosted() else f": {words[:MOST_QUOTED]}"
            raise ModelBroken(f"{quoted(name)} cannot be loaded{reason}.", "Download it again.") from error
        return encoder

    def __repr__(self) -> str:
        return f"Encoder({self.name}, {self.family}, {self.layers} layers × {self.heads} heads)"

    def encode(self, text: str, pair: str = "") -> Attention:
        """What every head does with ``text``, and a second text ``pair`` when given.

        Text beyond ``limit`` pieces is cut, longer of the two first; ``attention.text.cut`` says so. Raises EmptyText
        when nothing is left to read, TextError for a pair that the model cannot take.
        """
        return self.through(text, pair)[0]

    def encode_many(
        self, texts: Iterable[str | Sequence[str]], batch_words: int = many.BATCH_WORDS
    ) -> Iterator[Attention]:
        """The attention of each text, in the order given, at the speed of a study: equally long texts are read
        together, without padding, which changes no number by more than 1e-6.

        ``texts``: texts as for :meth:`encode`, or lists of words as for :meth:`encode_words`; any iterable, which is
        read some way ahead, up to 64 million attention weights (256 MB). ``batch_words``: at most so many words are
        read together. Raises as these two, with the number of the text, once all before it are handed out.

        >>> entropies = [a.measures()["entropy"].mean() for a in encoder.encode_many(["A cat sat.", "It slept."])]
        >>> len(entropies)
        2
        """
        return many.encode_many(self, texts, batch_words)

    def prepared(self, text: str | Sequence[str]) -> Prepared:
        """A text, or a sentence given as words, ready for :meth:`batch`. Raises as :meth:`encode`."""
        if isinstance(text, str):
            read = self._read(clean(text), "")
            return Prepared(read.ids, read.types, self._tokenized(text, "", read), ("typed",))
        if not isinstance(text, Sequence) or not all(isinstance(form, str) for form in text):
            raise TextError(f"{str(text)[:40]!r} is no text.", "Give a string, or a list of words.")
        pieces = self.read_words(text)
        return Prepared(pieces.ids, pieces.types, pieces.tokenized(), ("given words",))

    def through(
        self, text: str, pair: str = "", tap: Callable[[torch.Tensor], Tap] = Tap, words: Sequence[str] = ()
    ) -> tuple[Attention, Tap]:
        """As :meth:`encode`, with a tap of one's own, which may look at or change the heads on the way.

        ``tap``: what makes it from the memory for the weights, such as a subclass of :class:`mha_viz.Tap`, which has an
        example. ``words``: the sentence as words, in place of ``text``. Returned are the reading, whose numbers are
        those that the tap left, and the tap.
        """
        read = self.read_words(words) if words else self._read(clean(text), clean(pair))
        weights, used = self._run(read, tap)
        tokens = read.tokenized() if isinstance(read, WordPieces) else self._tokenized(text, pair, read)
        made = ("given words" if words else "typed",) if tap is Tap else ()
        return Attention(self.name, self.revision, tokens, weights, made=made), used

    def trace(self, text: str, pair: str = "", layer: int | AnyHead = 0, words: Sequence[str] = ()) -> Trace:
        """Every number between the vectors that enter one layer's attention and what it puts out.

        ``layer``: its number, or a head, whose layer it is. ``words``: the sentence as words, in place of ``text``.
        Raises as :meth:`encode`, UnknownHead for a layer that is not there, ModelUnsupported, with the reason, for
        families whose steps cannot be told apart.
        """
        read = self.read_words(words) if words else self._read(clean(text), clean(pair))
        tokens = read.tokenized() if isinstance(read, WordPieces) else self._tokenized(text, pair, read)
        number = layer if is_number(layer) else Head.among(layer, self.layers, self.heads, self.name).layer
        opened = Opened(self._model, self.name, number, self.layers)
        with opened:
            weights, _ = self._run(read, opened.tap)
        return opened.trace(self.revision, tokens, weights)

    def states(self, text: str, pair: str = "", tap: Callable[[torch.Tensor], Tap] = Tap, copies: int = 1) -> Weights:
        """The vectors that leave the last layer: [copy, n, d_model]. The text is read ``copies`` times in one batch,
        which differ where ``tap`` makes them differ. Raises as :meth:`encode`."""
        read = self._read(clean(text), clean(pair))
        n = len(read.ids)
        used = tap(self._space(self.layers, self.heads, *([copies] if copies > 1 else []), n, n))
        used.stop_after_last = False
        states: Weights = self._pass([read.ids] * copies, [read.types] * copies, used).cpu().numpy()
        return states

    @contextmanager
    def before_w_o(self, layer: int, hook: Callable[..., Any]) -> Iterator[None]:
        """Within this block ``hook`` is called, as a forward pre-hook of PyTorch, with what W_O of a layer is given.
        Other threads' passes, and other layers that share the module, come by too."""
        handle = place(self._model, layer).output.register_forward_pre_hook(hook)
        try:
            yield
        finally:
            handle.remove()

    def w_o(self, layer: int) -> torch.Tensor:
        """W_O of a layer, [head · d_head, d_model], with the heads one below the other."""
        return matrix(place(self._model, layer).output)

    def tokenize(self, text: str, pair: str = "") -> TokenizedText:
        """The tokens of a text without running the model. Raises as :meth:`encode`."""
        return self._tokenized(text, pair, self._read(clean(text), clean(pair)))

    # ---- sentences given as words -----------------------------------------------------------------------------------

    def read_words(self, forms: Sequence[str]) -> WordPieces:
        """The pieces of a sentence that is given as words, such as a treebank's.

        Raises TextError when it has more pieces than the model reads, or a word of which the tokenizer keeps nothing.
        """
        if isinstance(forms, str):
            raise TextError("The words are one string.", "Give a list of words, or take encode.")
        characters = sum(len(form) for form in forms if isinstance(form, str))
        most = CHARACTERS_PER_PIECE * self.limit
        if len(forms) > self.limit or characters > most:  # before the tokenizer, whose time grows with the text
            raise TextError(
                f"{len(forms):,} words of {characters:,} characters; {self.name} reads {self.limit} pieces.",
                f"Shorten the sentence to at most {most:,} characters.",
            )
        forms = [clean(form) for form in forms]
        if not any(form.strip() for form in forms):
            raise EmptyText("The sentence has no word.", "Give at least one.")
        encoding = self._encoded([self._blank * (i > 0) + form for i, form in enumerate(forms)], is_pretokenized=True)
        if len(encoding) > self.limit:
            raise TextError(f"{len(encoding)} pieces; {self.name} reads {self.limit}.", "Shorten the sentence.")
        words, ids = tuple(encoding.word_ids), tuple(encoding.ids)
        lost = set(range(len(forms))).difference(words)
        if lost:
            word = min(lost)
            raise TextError(
                f"The tokenizer of {self.name} keeps nothing of word {word + 1}, {quoted(forms[word])}.",
                "Leave it out.",
            )
        in_vocabulary = tuple(word is None or token != self._unknown for word, token in zip(words, ids, strict=True))
        spans = self._spans(forms, words, encoding.offsets)
        return WordPieces(
            tuple(forms), tuple(encoding.tokens), ids, tuple(encoding.type_ids), words, spans, in_vocabulary
        )

    def _spans(
        self, forms: Sequence[str], words: Sequence[int | None], offsets: Sequence[tuple[int, int]]
    ) -> tuple[tuple[int, int], ...]:
        """Where each piece lies in the words with one blank between them, from where it lies in its word."""
        begins = list(accumulate((len(form) + 1 for form in forms), initial=0))
        blank = len(self._blank)  # before all words but the first
        spans = []
        for word, (start, end) in zip(words, offsets, strict=True):
            if word is None:
                spans.append((0, 0))
                continue
            first, last = begins[word], begins[word + 1] - 1
            shift = first - blank * (word > 0)
            spans.append((max(first, shift + start), min(last, shift + end)))
        return tuple(spans)

    def encode_words(self, forms: Sequence[str]) -> Attention:
        """What every head does with a sentence that is given as words. Raises as :meth:`read_words`."""
        read = self.read_words(forms)
        weights = self.batch([read])[:, :, 0]
        return Attention(self.name, self.revision, read.tokenized(), weights, made=("given words",))

    def batch(self, sentences: Sequence[Pieces]) -> Weights:
        """[layer, head, sentence, query, key] of sentences that have equally many pieces: no padding, one pass.

        The numbers of a sentence do not depend on the others in its batch.
        """
        count, n = len(sentences), len(sentences[0].ids)
        if any(len(sentence.ids) != n for sentence in sentences):
            raise ShapeError("The sentences of a batch have different lengths.", "Put equally long ones together.")
        tap = Tap(self._space(self.layers, self.heads, count, n, n))
        self._pass([s.ids for s in sentences], [s.types for s in sentences], tap)
        return _fetched(tap)

    def untrained(self, seed: int = 0) -> Encoder:
        """The same architecture and tokenizer with random weights: what the shape alone does, without learning."""
        with _one_seed, torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = AutoModel.from_config(  # type: ignore[no-untyped-call]
                self._model.config, attn_implementation=capture.NAME
            )
        revision = f"untrained, seed {seed}"
        encoder = Encoder(_without_pooler(model.eval()), self._whole, self.name, revision, self.device)
        encoder._prepare()
        return encoder

    # ---- the tokenizer ----------------------------------------------------------------------------------------------

    def _tokenized(self, text: str, pair: str, read: _Read) -> TokenizedText:
        return tokenized(clean(text), clean(pair) if pair.strip() else "", read.pieces, read.cut)

    def _read(self, text: str, pair: str) -> _Read:
        if not text.strip():
            raise EmptyText("Nothing was typed.", "Type a sentence, or choose an example.")
        if pair.strip() and not self._has_pairs:
            raise TextError(f"{self.name} reads one text at a time.", "Leave the second sentence empty.")
        most = CHARACTERS_PER_PIECE * self.limit
        typed = (text[:most], pair[:most]) if pair.strip() else (text[:most],)
        encoding = self._encoded(*typed)
        sequence, n_pieces = encoding.sequence_ids, len(encoding)
        for number, part in enumerate(typed):
            if number not in sequence:
                raise self._nothing_kept(part, number)
        keep = range(n_pieces) if n_pieces <= self.limit else _shortened(sequence, self.limit)
        pieces = self._pieces(encoding, keep)
        more = len(text) > most or (len(typed) == 2 and len(pair) > most)
        cut = _cut(pieces, typed, n_pieces, self.limit, more) if more or n_pieces > self.limit else None
        ids, types = encoding.ids, encoding.type_ids  # each access makes a new list
        return _Read([ids[i] for i in keep], [types[i] for i in keep], pieces, cut)

    def _encoded(self, *typed: Any, **options: Any) -> Any:
        with _panics_in_words(self.name):
            return self._tokenizer.encode(*typed, **options)

    def _pieces(self, encoding: Any, keep: Sequence[int]) -> list[Piece]:
        ids, names, spans, words = encoding.ids, encoding.tokens, encoding.offsets, encoding.word_ids
        sequence = encoding.sequence_ids
        pieces: list[Piece] = []
        segment = 0
        for i in keep:
            if sequence[i] is None:  # added by the tokenizer: it belongs to the text before it
                pieces.append(Piece(names[i], 0, 0, None, segment))
                continue
            segment = sequence[i]
            word = None if ids[i] in self._delimiters else words[i]
            start, end = spans[i]
            pieces.append(Piece(names[i], start, end, word, segment, ids[i] != self._unknown))
        return pieces

    def _nothing_kept(self, typed: str, number: int) -> EmptyText:
        which = ("the text", "the second sentence")[number]
        seen = f"{which} ({len(typed):,} characters)" if len(typed) > 1 else which
        return EmptyText(
            f"The tokenizer of {self.name} keeps nothing of {seen}.",
            "It may hold only invisible characters; type at least one word.",
        )

    # ---- the model --------------------------------------------------------------------------------------------------

    def _run(self, read: _Read | WordPieces, make_tap: Callable[[torch.Tensor], Tap]) -> tuple[Weights, Tap]:
        """One pass: weights [layer, head, query, key], read-only, and the tap that took them."""
        tap = make_tap(self._space(self.layers, self.heads, len(read.ids), len(read.ids)))
        self._pass([read.ids], [read.types], tap)
        weights = _fetched(tap)
        weights.flags.writeable = False
        return weights, tap

    def _space(self, *shape: int) -> torch.Tensor:
        if self.device != "cpu":
            return torch.empty(shape, device=self.device)
        # numpy's memory, not torch's: numpy asks the system for huge pages, which makes 75 MB cheap to touch.
        return torch.from_numpy(np.empty(shape, np.float32))

    def _pass(self, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]], tap: Tap) -> torch.Tensor:
        """The last states, [sentence, n, d_model]; without rows where the tap ended the pass before."""
        try:
            states = self._forward(ids, types, tap)
        except IndexError as error:  # a token that the tokenizer knows and the weights do not
            raise ModelBroken(
                f"The tokenizer of {quoted(self.name)} gives a token that its weights have no row for.",
                "The files do not belong together. Get the folder again.",
            ) from error
        if tap.seen != self.layers:
            raise ModelUnsupported(
                f"{self.name} shows the attention of {tap.seen} of its {self.layers} layers.", "Choose another model."
            )
        return states

    def _forward(self, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]], tap: Tap) -> torch.Tensor:
        inputs: dict[str, Any] = {"input_ids": torch.tensor(ids, device=self.device)}
        if self._typed:
            inputs["token_type_ids"] = torch.tensor(types, device=self.device)
        if "use_cache" in self._accepts:
            inputs["use_cache"] = False
        states: torch.Tensor = torch.empty(0)
        with _one_pass, torch.inference_mode(), capture.tapped(tap):
            states = self._model(**inputs).last_hidden_state
        return states

    def _prepare(self) -> None:
        """Pack the weights and run once: what cannot be drawn is refused now, and the first visitor does not wait."""
        if self.device == "cpu":
            linear.pack(self._model)
        try:
            self.encode(_PROBE)
        except ShapeError as error:
            raise ModelUnsupported(f"{quoted(self.name)}: {error.problem}", "Choose another model.") from error


@contextmanager
def _panics_in_words(name: str) -> Iterator[None]:
    """A panic of a library in Rust is no Exception: it would pass every handler of the app and the command."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        _log.warning("%s: %s", name, error)
        problem = f"The tokenizer or the weights of {quoted(name)} made the library that reads them give up."
        raise ModelBroken(problem, "Try another text, or another model.") from None


@contextmanager
def _reports_silenced() -> Iterator[None]:
    """What goes wrong is said by this file's own errors; afterwards transformers reports as much as before."""
    with _one_opening:
        level = transformers_logging.get_verbosity()
        bars = transformers_logging.is_progress_bar_enabled()
        transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            yield
        finally:
            transformers_logging.set_verbosity(level)
            if bars:
                transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _there(device: str) -> torch.device:
    if device == "cuda" and not torch.cuda.is_available():
        raise SettingError("No GPU was found that this PyTorch can use.", 'Use "cpu".')
    return torch.device(device)


def _fetched(tap: Tap) -> Weights:
    """The tap's numbers in memory of this process."""
    weights: Weights = tap.weights.cpu().numpy()
    return weights


def _opened(folder: Path, name: str) -> tuple[Any, Any]:
    """Model and tokenizer, as transformers reads them from the folder."""
    local: dict[str, Any] = {"local_files_only": True}
    config = AutoConfig.from_pretrained(folder, **local, trust_remote_code=False)
    if config.is_encoder_decoder:
        raise ModelUnsupported(
            f"{quoted(name)} is an encoder-decoder ({config.model_type}); only one stack of layers can be drawn.",
            "Choose a model such as BERT or GPT-2.",
        )
    tokenizer = AutoTokenizer.from_pretrained(folder, **local, trust_remote_code=False)
    if not tokenizer.is_fast:
        raise ModelUnsupported(f"{quoted(name)} has a tokenizer without character positions.", "Choose another model.")
    backend = tokenizer.backend_tokenizer  # as it came out of all its files
    steps = {section: getattr(backend, section) for section in pipeline.SECTIONS}
    pipeline.check_steps({k: json.loads(step.__getstate__()) for k, step in steps.items() if step}, quoted(name))
    model = _model(folder, config, name)
    return model.eval(), tokenizer


def _model(folder: Path, config: Any, name: str) -> Any:
    model, report = AutoModel.from_pretrained(
        folder,
        config=config,
        attn_implementation=capture.NAME,
        dtype=torch.float32,
        local_files_only=True,
        use_safetensors=True,
        trust_remote_code=False,
        output_loading_info=True,
    )
    missing = sorted(k for k in report["missing_keys"] if not any(u in k for u in _UNUSED))
    if missing:
        raise ModelBroken(
            f"{quoted(name)} lacks {len(missing)} of its weights, {missing[0]} among them.", "Download it again."
        )
    return _without_pooler(model)


def _without_pooler(model: Any) -> Any:
    if "add_pooling_layer" in inspect.signature(type(model).__init__).parameters:
        model.pooler = None
    return model


def _revision(folder: Path) -> str:
    """Which weights these are: the commit of a snapshot from the Hub, else 12 digits of the files' SHA-256."""
    if folder.parent.name == "snapshots":
        return folder.name
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]


def _limit(model: Any, tokenizer: Any) -> int:
    """The most pieces the model has positions for. RoBERTa and its like lose those up to the padding index."""
    positions = int(getattr(model.config, "max_position_embeddings", MAX_PIECES))
    table = next((m for n, m in model.named_modules() if n.endswith("position_embeddings")), None)
    padding = getattr(table, "padding_idx", None)
    if padding is not None:
        positions -= int(padding) + 1
    return min(MAX_PIECES, positions, int(tokenizer.model_max_length))


def _delimiters(tokenizer: Any) -> frozenset[int]:
    """Ids of the special tokens that stand between words, not for one: all but the mask and the unknown word."""
    stands_for_a_word = {tokenizer.mask_token_id, tokenizer.unk_token_id}
    ends = {tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id}
    return frozenset((set(tokenizer.all_special_ids) - stands_for_a_word) | ends) - {None}


def _has_pairs(tokenizer: Any) -> bool:
    """True when the tokenizer puts something between two texts; GPT-2 runs them together."""
    sequence = tokenizer.encode("a", "a").sequence_ids
    return 1 in sequence and None in sequence[: sequence.index(1)]


def _blank(tokenizer: Any) -> str:
    """What a word of a list needs before it to be read as inside a text: a blank for byte-level tokenizers."""
    with_blank = tokenizer.encode(["a", " b"], is_pretokenized=True).ids
    without = tokenizer.encode(["a", "b"], is_pretokenized=True).ids
    return " " if tokenizer.encode("a b").ids == with_blank != without else ""


def _shortened(sequence: list[int | None], limit: int) -> list[int]:
    """The pieces that stay: special ones, and the beginning of each text; the longer text gives first."""
    lengths = [sequence.count(0), sequence.count(1)]
    room = max(0, limit - sequence.count(None))
    short = min(*lengths, room // 2)
    keep = [room - short, short] if lengths[0] > lengths[1] else [short, room - short]
    indices, seen = [], [0, 0]
    for index, number in enumerate(sequence):
        if number is None or seen[number] < keep[number]:
            indices.append(index)
        if number is not None:
            seen[number] += 1
    return indices


def _cut(pieces: Sequence[Piece], typed: Sequence[str], pieces_in_all: int, limit: int, more: bool) -> Cut:
    read = [max((p.end for p in pieces if p.segment == number), default=0) for number in (0, 1)]
    if pieces_in_all <= limit:  # only the characters were too many
        read = [len(typed[0]), len(typed[1]) if len(typed) == 2 else 0]
    return Cut(pieces_in_all, limit, (read[0], read[1]), more)
