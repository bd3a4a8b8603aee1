"""Explain what heads write: the words that their outputs move a token towards, and whether they copy.

Vectors are related to words by the model's output matrix where it directly follows the last norm, and otherwise by the
input embeddings (Dar et al. 2023, "Analyzing Transformers in Embedding Space"). Norms keep the standard deviations of
the pass (Kobayashi et al. 2021), and the mean over the vocabulary is subtracted.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import torch
from safetensors import safe_open

from mha_viz.attention.outputs import (
    INPUT_EMBEDDINGS,
    NO_WORDS,
    OUTPUT_MATRIX,
    HeadOutput,
    WrittenWords,
    compute_copying_score,
    compute_links,
)
from mha_viz.attention.parts import FloatSums, check_tokens
from mha_viz.attention.trace import Floats, Trace, repeat_for_heads, split_heads
from mha_viz.errors import ModelUnsupported, SettingError, TooLarge
from mha_viz.heads import AnyHead, Head, is_number
from mha_viz.model_names import quote_model
from mha_viz.models.families import find_family, is_setting_true
from mha_viz.models.reading import answers
from mha_viz.models.reading.cores import one_blas_thread
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.encoder_decoder import AnyModel, require_one_stack
from mha_viz.models.reading.probe import check_full_precision
from mha_viz.models.reading.stream import LayerNorms

if TYPE_CHECKING:
    import pandas as pd

WORDS = 5  # number of words listed in each direction: towards and away
DIRECTIONS = 3  # default number of a head's directions to list
MAX_DIRECTIONS = 100
UNTRAINED_SEED = 0
MAX_PRODUCTS = 10**11  # maximum number of multiplications to name the words of all heads; they take seconds
_DIRECTION_BATCH = 256  # vectors that are compared with the vocabulary at a time
_ROW_BATCH = 8192  # rows of a matrix of words that are converted to float64 at a time
_OUTPUT_MATRICES = {"lm_head.weight", "embed_out.weight"}  # the second is GPT-NeoX's
_ANY_TEXT = "a"  # measurements of weights alone do not depend on the text of the pass
_UNUSED_PREFIX = "[unused"  # BERT's vocabulary has rows that no text uses

_cache_lock = threading.Lock()  # guards the caches below
_word_vectors: WeakKeyDictionary[Encoder, WordVectors] = WeakKeyDictionary()
_products: WeakKeyDictionary[Encoder, FloatSums] = WeakKeyDictionary()


class WordVectors(NamedTuple):
    """The vectors of words that a model reads and writes.

    Attributes:
        inputs: [piece, width], the input embeddings.
        projection: [width, d_model], applied after their norm; None unless they are narrower than the model.
        outputs: [piece, d_model], the vectors that head outputs are compared with.
        matrix: the name of ``outputs``, OUTPUT_MATRIX or INPUT_EMBEDDINGS.
        is_word: [piece], False for special and unused pieces.
    """

    inputs: torch.Tensor
    projection: Floats | None
    outputs: torch.Tensor
    matrix: str
    is_word: npt.NDArray[np.bool_]


def explain_output(
    encoder: AnyModel, text: str, head: AnyHead, query: int, *, pair: str = "", words: Sequence[str] = ()
) -> HeadOutput:
    """Explain what a head adds to the vector of one token.

    Args:
        encoder: a model from :func:`mha_viz.load`, with one stack of layers.
        text: the text that the model reads.
        head: the head, such as "L3H1".
        query: the number of the token, from 0.
        pair: a second text, read together with the first.
        words: the sentence as words, in place of ``text``.

    Returns, for each key, the norm of the vector that it contributes, the share of this vector in what the layer adds,
    and the words that it moves the token towards and away from (:class:`mha_viz.attention.outputs.HeadOutput`). Raises
    the errors of :meth:`Encoder.score_parts`, and ModelUnsupported for models with more than norms and one matrix
    between a head's output and its words.

    >>> output = mv.explain_output(mv.load("repeater"), "dog river anna dog", "L1H3", 3)
    >>> output.table().loc[1, "towards"].split(", ")[0]  # after "dog" came "river"
    'river'
    """
    encoder = require_one_stack(encoder)
    checked_head = Head.among(head, encoder.layer_numbers, encoder.heads, encoder.name)
    vectors = load_word_vectors(encoder)
    with one_blas_thread:
        ((trace, norms),) = encoder.iter_norms(encoder.pieces(text, pair, words), [checked_head.layer])
        check_tokens(trace, query)
        number = trace.number(checked_head)
        links = compute_links(trace, number, query)
        # Leave the weights out: they change the lengths of vectors, not the ranks of words.
        contributions = trace.v[number] @ trace.slice_w_o(number)
        entries = name_words(encoder, norms.after.apply(np.vstack([contributions, links.vectors.sum(axis=0)]), query))
    weights = trace.weights[number, query]
    key_words = tuple(entry if weight else NO_WORDS for entry, weight in zip(entries[:-1], weights, strict=True))
    return HeadOutput(
        *(encoder.name, trace.text, checked_head, query, weights, *links, vectors.matrix),
        key_words,
        entries[-1],
    )


def name_words_by_key(
    encoder: AnyModel, text: str, head: AnyHead, count: int, *, pair: str = "", words: Sequence[str] = ()
) -> tuple[tuple[str, ...], ...]:
    """Return, for each key, the ``count`` words that a head's contribution moves a token towards, strongest first.

    They are the same for every query and in :func:`explain_output`, because the weight and the standard deviation of
    the norm change only the length of a vector. Raises the errors of :func:`explain_output`.
    """
    encoder = require_one_stack(encoder)
    checked_head = Head.among(head, encoder.layer_numbers, encoder.heads, encoder.name)
    with one_blas_thread:
        ((trace, norms),) = encoder.iter_norms(encoder.pieces(text, pair, words), [checked_head.layer])
        number = trace.number(checked_head)
        contributions = trace.v[number] @ trace.slice_w_o(number)
        return tuple(written.towards[:count] for written in name_words(encoder, norms.after.apply(contributions, 0)))


def name_words_of_heads(
    encoder: AnyModel, text: str, count: int, *, pair: str = "", words: Sequence[str] = ()
) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Return the words of :func:`name_words_by_key` for all heads, [head][key][word], the first layer first.

    Raises the errors of :func:`explain_output`, and TooLarge for a text and a model that would take long.
    """
    encoder = require_one_stack(encoder)
    vectors, pieces = load_word_vectors(encoder), encoder.pieces(text, pair, words)
    products_per_token = len(encoder.layer_numbers) * encoder.heads * vectors.outputs.numel()
    if len(pieces.ids) * products_per_token > MAX_PRODUCTS:
        raise TooLarge(
            f"The text has {len(pieces.ids):,} tokens; the words that all heads of this model write are listed for at "
            f"most {MAX_PRODUCTS // products_per_token:,}.",
            "Choose a shorter text.",
        )
    words_by_head = list[tuple[tuple[str, ...], ...]]()
    with one_blas_thread:
        for trace, norms in encoder.iter_norms(pieces, encoder.layer_numbers):
            contributions = np.concatenate([trace.v[head] @ trace.slice_w_o(head) for head in range(trace.heads)])
            entries = name_words(encoder, norms.after.apply(contributions, 0), include_away=False)
            key_words = [entry.towards[:count] for entry in entries]
            words_by_head += [tuple(key_words[start : start + trace.n]) for start in range(0, len(key_words), trace.n)]
    return tuple(words_by_head)


def name_words(encoder: Encoder, directions: Floats, *, include_away: bool = True) -> list[WrittenWords]:
    """Name the words that each vector, [vector, d_model], moves a token towards and away from.

    Without ``include_away``, the words moved away from are left out, which takes half the time.
    """
    vectors, entries = load_word_vectors(encoder), list[WrittenWords]()
    for start in range(0, len(directions), _DIRECTION_BATCH):
        block = directions[start : start + _DIRECTION_BATCH]
        words = _rank_words(encoder, _multiply(vectors.outputs, block), vectors.is_word, include_away)
        entries += [entry if row.any() else NO_WORDS for entry, row in zip(words, block, strict=True)]
    return entries


def _multiply(words: torch.Tensor, directions: npt.NDArray[Any]) -> Floats:
    """Return the products of word vectors, [piece, width], with directions, [direction, width]: [direction, piece]."""
    tensor = torch.from_numpy(np.ascontiguousarray(directions, np.float32)).to(words.device)
    products: Floats = (tensor @ words.float().T).cpu().numpy()
    return products


def _rank_words(
    encoder: Encoder, scores: Floats, is_word: npt.NDArray[np.bool_], include_away: bool = True
) -> list[WrittenWords]:
    """Return the words with the largest and the smallest of some scores, [vector, piece]."""
    pieces, entries = np.flatnonzero(is_word), []
    for row in scores[:, pieces]:
        sides = _find_largest(row), _find_largest(-row) if include_away else ()
        entries.append(WrittenWords(*(tuple(_name_word(encoder, int(pieces[i])) for i in side) for side in sides)))
    return entries


def _find_largest(numbers: Floats) -> npt.NDArray[np.intp]:
    """Return the indices of the WORDS largest numbers, largest first; of equal numbers, the first comes first."""
    threshold = np.partition(numbers, -WORDS)[-WORDS] if len(numbers) > WORDS else -np.inf
    indices = np.flatnonzero(numbers >= threshold)
    largest: npt.NDArray[np.intp] = indices[np.argsort(-numbers[indices], kind="stable")][:WORDS]
    return largest


def _name_word(encoder: Encoder, piece: int) -> str:
    """Return a piece of the vocabulary without the marker of a preceding space."""
    name = answers.format_word(encoder, piece)
    return name.removeprefix(answers.BLANK) or name


def copying_scores(encoder: AnyModel) -> pd.DataFrame:
    """Measure whether heads copy: whether attending to a word moves a token towards the same word.

    The score is Σ λ / Σ |λ| over the eigenvalues of the circuit from words to words, E W_V W_O U, −1 to 1. E is the
    matrix of input embeddings with the norm before the heads, U that of output vectors with the norm after them; both
    norms without their standard deviations (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits",
    section "Copying heads"). It depends on weights alone. Raises the errors of :func:`explain_output`.

    Returns a table with one row per head, named "L0H0" and so on, and the columns ``copying`` and ``untrained``, the
    score of the same head with random weights.

    >>> mv.copying_scores(mv.load("repeater"))["copying"].loc["L1H0"].round(2)
    """
    import pandas as pd

    encoder = require_one_stack(encoder)
    scores = {"copying": measure_copying(encoder), "untrained": measure_copying(encoder.untrained(UNTRAINED_SEED))}
    names = [str(Head(layer, head)) for layer in encoder.layer_numbers for head in range(encoder.heads)]
    columns = {name: values.ravel() for name, values in scores.items()}
    return pd.DataFrame(columns, index=pd.Index(names, name="head"))


def measure_copying(encoder: Encoder) -> npt.NDArray[np.float64]:
    """Return the copying score of every head, [layer, head]."""
    vectors, product = load_word_vectors(encoder), _load_product(encoder)
    scores = [
        [
            compute_copying_score(_push_forward(norms, w_o) @ product @ _pull_back(vectors, norms, w_v))
            for w_v, w_o in (_slice_circuit(trace, head) for head in range(trace.heads))
        ]
        for trace, norms in _iter_layers(encoder, encoder.layer_numbers)
    ]
    return np.array(scores)


def output_directions(encoder: AnyModel, head: AnyHead, most: int = DIRECTIONS) -> pd.DataFrame:
    """List the largest directions of a head: what it reads along each, and what it writes then.

    They are the largest singular pairs of W_V W_O of the head. Raises the errors of :func:`explain_output`, and
    SettingError unless ``most`` is a number from 1 to 100.

    Returns a table with one row per direction, the largest first. The columns are ``share``, its share of the squared
    Frobenius norm of the matrix; ``untrained``, the same with random weights; ``reads`` and ``reads_opposite``, the
    words at the two ends of the direction that is read; ``writes`` and ``writes_opposite``, the words written then.

    >>> len(mv.output_directions(mv.load("toy"), "L1H1"))
    3
    """
    import pandas as pd

    if not is_number(most) or not 1 <= most <= MAX_DIRECTIONS:
        raise SettingError(f"{most!r} directions were asked for.", f"Ask for 1 to {MAX_DIRECTIONS}.")
    encoder = require_one_stack(encoder)
    checked_head = Head.among(head, encoder.layer_numbers, encoder.heads, encoder.name)
    vectors = load_word_vectors(encoder)
    ((trace, norms),) = _iter_layers(encoder, [checked_head.layer])
    w_v, w_o = _slice_circuit(trace, trace.number(checked_head))
    read_directions, sizes, written_directions = _decompose(w_v, w_o)
    read_scores = _multiply(vectors.inputs, _pull_back(vectors, norms, read_directions[:, :most]).T)
    written_scores = _multiply(vectors.outputs, _push_forward(norms, written_directions[:most]))
    # A pair may be negated as a whole. Choose the sign that makes the most strongly written word one of ``writes``.
    signs = np.where(written_scores.max(axis=-1) >= -written_scores.min(axis=-1), 1, -1).astype(np.float32)[:, None]
    reads, writes = (_rank_words(encoder, signs * scores, vectors.is_word) for scores in (read_scores, written_scores))
    columns = {"reads": reads, "writes": writes}
    words = {
        f"{name}{suffix}": [", ".join(row[side]) for row in rows]
        for name, rows in columns.items()
        for side, suffix in enumerate(("", "_opposite"))
    }
    index = pd.RangeIndex(1, len(reads) + 1, name="direction")
    untrained = encoder.untrained(UNTRAINED_SEED)
    ((random_trace, _),) = _iter_layers(untrained, [checked_head.layer])
    _, random_sizes, _ = _decompose(*_slice_circuit(random_trace, random_trace.number(checked_head)))
    shares = {"share": _compute_shares(sizes), "untrained": _compute_shares(random_sizes)}
    return pd.DataFrame({name: values[: len(reads)] for name, values in shares.items()} | words, index=index)


def _compute_shares(sizes: FloatSums) -> FloatSums:
    """Return the share of each singular value in the squared Frobenius norm; 0 if all are 0."""
    squares = sizes**2
    shares: FloatSums = squares / max(float(squares.sum()), np.finfo(np.float64).tiny)
    return shares


def _iter_layers(encoder: Encoder, layers: Collection[int]) -> Iterator[tuple[Trace, LayerNorms]]:
    """Yield the parameters of layers, as part of a trace, and the norms around their heads."""
    with one_blas_thread:
        yield from encoder.iter_norms(encoder.pieces(_ANY_TEXT), layers)


def _slice_circuit(trace: Trace, head: int) -> tuple[FloatSums, FloatSums]:
    """Return W_V and W_O of a head, [d_model, d_head] and [d_head, d_model]."""
    by_head = repeat_for_heads(trace.heads, split_heads(trace.parameters.w_v, trace.key_heads))
    return by_head[head].astype(np.float64), trace.slice_w_o(head).astype(np.float64)


def _pull_back(vectors: WordVectors, norms: LayerNorms, directions: FloatSums) -> FloatSums:
    """Return the directions of word vectors, [width, direction], that become ``directions`` after the norm.

    ``directions``: [d_model, direction]. The norm's division by the standard deviation is left out.
    """
    if vectors.projection is not None:
        directions = vectors.projection @ directions
    if norms.before is None:
        return directions
    word_directions: FloatSums = norms.before.centre(directions.T * norms.before.weight).T
    return word_directions


def _push_forward(norms: LayerNorms, directions: FloatSums) -> FloatSums:
    """Apply the norm after the heads to directions, [direction, d_model], without dividing by standard deviations."""
    written_directions: FloatSums = norms.after.centre(directions) * norms.after.weight
    return written_directions


def _decompose(w_v: FloatSums, w_o: FloatSums) -> tuple[FloatSums, FloatSums, FloatSums]:
    """Return the singular value decomposition of ``w_v @ w_o``, computed in d_head dimensions.

    The shapes are [d_model, d_head], [d_head] and [d_head, d_model].
    """
    left, left_factor = np.linalg.qr(w_v)
    right, right_factor = np.linalg.qr(w_o.T)
    inner_left, sizes, inner_right = np.linalg.svd(left_factor @ right_factor.T)
    return left @ inner_left, sizes, inner_right @ right.T


def load_word_vectors(encoder: Encoder) -> WordVectors:
    """Return the vectors of words of a model. They are cached.

    Raises ModelUnsupported, with the reason, if what heads write cannot be related to words.
    """
    with _cache_lock:
        vectors = _word_vectors.get(encoder)
    if vectors is None:  # opened outside the lock: it may take seconds, and other models need not wait
        vectors = _open_word_vectors(encoder)
        with _cache_lock:
            vectors = _word_vectors.setdefault(encoder, vectors)
    return vectors


def _open_word_vectors(encoder: Encoder) -> WordVectors:
    """Look up the vectors of words of a model."""
    inputs, family = encoder.word_vectors, find_family(encoder.config)
    check_full_precision(inputs.dtype, encoder.name)
    projection = encoder.word_projection
    has_direct_output = is_setting_true(family.pre_norm, encoder.config) and inputs.shape[1] == encoder.d_model
    if encoder.causal and not has_direct_output:
        raise ModelUnsupported(
            f"The words that heads of {quote_model(encoder.name)} write are unknown: between heads and words there is "
            "more than one norm and one matrix.",
            "Choose a model such as BERT, GPT-2, Llama or Pythia.",
        )
    outputs = _load_output_matrix(encoder, inputs) if encoder.causal else inputs
    if outputs is inputs and projection is not None:
        outputs = inputs.float() @ torch.from_numpy(projection).to(inputs.device)
    is_word = np.ones(len(outputs), np.bool_)
    is_word[[piece for piece in encoder.vocabulary.all_special_ids if piece < len(outputs)]] = False
    names = {piece: name for name, piece in encoder.vocabulary.backend_tokenizer.get_vocab().items()}
    is_word &= [piece in names and not names[piece].startswith(_UNUSED_PREFIX) for piece in range(len(outputs))]
    matrix_name = OUTPUT_MATRIX if encoder.causal else INPUT_EMBEDDINGS
    return WordVectors(inputs, projection, outputs, matrix_name, is_word)


def _load_output_matrix(encoder: Encoder, inputs: torch.Tensor) -> torch.Tensor:
    """Return the matrix between last states and logits, [piece, d_model]; a random one for random weights.

    It is read from the files of the model only if it is not that of the input embeddings.
    """
    if getattr(encoder.config, "tie_word_embeddings", True):
        return inputs
    if encoder.folder is not None:
        output_matrix = _read_output_matrix(encoder.folder)
        return answers.find_output_matrix(encoder) if output_matrix is None else output_matrix.to(inputs.device)
    generator = torch.Generator().manual_seed(UNTRAINED_SEED)
    return torch.randn(inputs.shape, generator=generator) * getattr(encoder.config, "initializer_range", 0.02)


def _read_output_matrix(folder: Path) -> torch.Tensor | None:
    """Return the output matrix in the files of a model, without reading the rest; None if there is none."""
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, "pt") as tensors:
            for name in sorted(_OUTPUT_MATRICES & {*tensors.keys()}):
                output_matrix: torch.Tensor = tensors.get_tensor(name).float()
                return output_matrix
    return None


def _load_product(encoder: Encoder) -> FloatSums:
    """Return Σ outputs · inputsᵀ over all words, [d_model, width]; cached.

    The mean over words is subtracted from the outputs.
    """
    vectors = load_word_vectors(encoder)
    with _cache_lock:
        if encoder not in _products:
            product = np.zeros((vectors.outputs.shape[1], vectors.inputs.shape[1]))
            for start in range(0, len(vectors.inputs), _ROW_BATCH):
                rows = slice(start, start + _ROW_BATCH)
                product += (vectors.outputs[rows].cpu().double().T @ vectors.inputs[rows].cpu().double()).numpy()
            mean, total = _sum_words(vectors.outputs) / len(vectors.outputs), _sum_words(vectors.inputs)
            _products[encoder] = product - np.outer(mean, total)
        return _products[encoder]


def _sum_words(words: torch.Tensor) -> FloatSums:
    """Return the sum of word vectors over the vocabulary."""
    total: FloatSums = words.sum(dim=0, dtype=torch.float64).cpu().numpy()
    return total
