"""Switch heads off during the forward pass, and observe the effect on later layers.

A head's output before W_O, its d_head columns of the concatenation, is replaced at every token. Everything after it is
computed anew; everything before it is computed only once, however many replacements are tried.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import torch

from mha_viz.attention import AnyHead, Attention, Head, Weights
from mha_viz.attention.steps import Step, StepData, digest, make_first_steps
from mha_viz.errors import EmptyText, SettingError, TextError, list_items, shorten_value
from mha_viz.heads import is_number
from mha_viz.models.intervening import other_texts
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.encoder_decoder import AnyModel, require_one_stack
from mha_viz.quotes import quote
from mha_viz.request import METHODS, RECIPE, RESAMPLE, TEXT

FloatSums = npt.NDArray[np.float64]
# Takes a layer's number, its weights [head, query, key] or [head, sentence, query, key], its values [sentence, head, n,
# d_head] and outputs [sentence, n, head, d_head]. Returns replacement outputs for the heads that are off, in the shape
# of the outputs.
Substitute = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
# Takes the outputs of a layer and their replacements. Returns the variants to continue with, [variant, n, head,
# d_head].
MakeVariants = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def make_substitute(encoder: Encoder, method: str, means: Weights | None = None) -> Substitute:
    """Return the function that computes the replacement for the output of a head that is off.

    The methods are:

    * "zero"
    * "mean": its mean over a corpus, given as ``means`` [layer, head, d_head] (:func:`compute_means`)
    * "uniform": its output with equal weights on all keys that are not masked
    * "recipe": its output with the weights that its recipe predicts for the text, given as ``means`` [layer, head,
      query, key]
    * "text" and "resample": its output on another text or on random sentences, given as ``means`` [layer, n, head,
      d_head] (:mod:`mha_viz.models.intervening.other_texts`)

    Raises SettingError for another method, and if ``means`` are missing or do not fit this model.
    """
    if method == "zero":
        return lambda _, __, ___, outputs: torch.zeros_like(outputs)
    if method == "uniform":
        return _compute_uniform_outputs
    if method not in METHODS:
        raise SettingError(
            f"{quote(method)} is not a way to switch a head off.", f"Choose one of {', '.join(METHODS)}."
        )
    axis = 1 if method == RECIPE else -2
    if means is None or (means.shape[0], means.shape[axis]) != (encoder.layers, encoder.heads):
        subject, remedy = _MISSING_MEANS[method]
        raise SettingError(f"{subject} of this model’s heads are missing.", remedy)
    if method == RECIPE:
        return attend_with(means)

    def replace_outputs(
        layer: int, _weights: torch.Tensor, _values: torch.Tensor, outputs: torch.Tensor
    ) -> torch.Tensor:
        _check_size(means.shape[-1], outputs.shape[-1], "numbers per head")
        return torch.from_numpy(means[layer]).to(outputs).expand_as(outputs)

    return replace_outputs


def keep_outputs(_layer: int, _weights: torch.Tensor, _values: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
    """Return the outputs unchanged, for a text in which the heads stay on."""
    return outputs


_OUTPUTS_ON_OTHER_TEXTS = ("The outputs on other texts", "Compute them with mha_viz.models.intervening.other_texts.")
_MISSING_MEANS = {
    "mean": ("The mean outputs", "Compute them with compute_means."),
    RECIPE: ("The predicted weights", "Give means = reading.weights - mv.quantities.unexplained(reading).weights."),
    TEXT: _OUTPUTS_ON_OTHER_TEXTS,
    RESAMPLE: _OUTPUTS_ON_OTHER_TEXTS,
}


def attend_with(rows: Weights) -> Substitute:
    """Return a substitute that applies other weights, ``rows`` [layer, head, query, key], to a head's own values.

    In a batch of several texts, ``rows`` may be [layer, text, head, query, key]; they are repeated if the batch repeats
    the texts.
    """

    def attend(layer: int, _weights: torch.Tensor, values: torch.Tensor, _outputs: torch.Tensor) -> torch.Tensor:
        _check_size(rows.shape[-1], values.shape[-2], "tokens")
        return _average_values(torch.tensor(rows[layer]).to(values), values)

    return attend


def _check_size(given: int, expected: int, unit: str) -> None:
    """Raise SettingError if means are for another number of tokens, or of numbers per head."""
    if given != expected:
        problem = f"The means are for {given} {unit}, and here there are {expected}."
        raise SettingError(problem, "Compute them with this model and text.")


def _average_values(weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return ``weights`` [head, query, key] times ``values`` [sentence, head, n, d_head]: [sentence, n, head, d_head].

    Weights may be [text, head, query, key] if the sentences repeat that many texts. Heads may share values.
    """
    values_by_head = values.repeat_interleave(weights.shape[-3] // values.shape[1], dim=1)
    by_sentence = weights if weights.ndim == 3 else weights.repeat(len(values) // len(weights), 1, 1, 1)
    return (by_sentence @ values_by_head).transpose(1, 2)


def _compute_uniform_outputs(
    _: int, weights: torch.Tensor, values: torch.Tensor, outputs: torch.Tensor
) -> torch.Tensor:
    """Return the outputs with equal weights on all keys that are not masked."""
    # A masked key, such as a later token or one beyond a window, has weight 0 in all heads.
    visible = (weights.flatten(0, -3) > 0).any(0).to(values.dtype)  # [query, key]
    means = visible / visible.sum(-1, keepdim=True) @ values  # [sentence, head, n, d_head]
    return means.repeat_interleave(outputs.shape[2] // means.shape[1], dim=1).transpose(1, 2)  # heads may share values


class Means:
    """The mean output of every head before W_O over all tokens of some texts. Texts can be added in parts."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._sums: FloatSums = np.zeros(1)
        self._tokens = 0

    def add(self, texts: Iterable[str | Sequence[str]]) -> None:
        """Add texts, given as strings or as words.

        Raises the errors of ``encode``; a text that could not be read is not counted. Raises TextError for a string.
        """
        if isinstance(texts, str):
            raise TextError(f"{shorten_value(texts)!r} is not a list of texts.", "Give a list.")
        for text in texts:
            outputs: list[torch.Tensor] = []
            string, words = (text, ()) if isinstance(text, str) else ("", text)
            reading, _ = self._encoder.through(string, tap=partial(_OutputSumTap, sums=outputs), words=words)
            self.add_sums(torch.stack(outputs).cpu().numpy(), len(reading.queries))

    def add_sums(self, sums: FloatSums, tokens: int) -> None:
        """Add sums of outputs, [layer, head, d_head], over a number of ``tokens``."""
        if tokens:
            self._sums, self._tokens = self._sums + sums, self._tokens + tokens

    @property
    def sums(self) -> tuple[FloatSums, int]:
        """The sums so far in float64, and the number of tokens they cover."""
        return self._sums, self._tokens

    def values(self) -> Weights:
        """Return the means, [layer, head, d_head], summed in float64. Raises EmptyText if there was no text."""
        if not self._tokens:
            raise EmptyText("There is no text to average outputs over.", "Give at least one sentence.")
        means: Weights = (self._sums / self._tokens).astype(np.float32)
        return means


class _OutputSumTap(Tap):
    """A tap that appends the sum over tokens of each layer's outputs, [head, d_head], to a list."""

    changes = False

    def __init__(self, weights: torch.Tensor, sums: list[torch.Tensor]) -> None:
        super().__init__(weights)
        self._output_sums = sums

    def layer(self, index: int, query: Any, key: Any, value: Any, output: torch.Tensor) -> torch.Tensor:
        self._output_sums.append(output.double().sum((0, 1)))
        return output


def compute_means(encoder: Encoder, texts: Iterable[str]) -> Weights:
    """Return the mean output of every head before W_O over all tokens of ``texts``, [layer, head, d_head].

    Raises the errors of ``encode``, and EmptyText if there is no text.
    """
    means = Means(encoder)
    means.add(texts)
    return means.values()


def encode_without(
    encoder: AnyModel,
    heads: Iterable[AnyHead],
    text: str,
    pair: str = "",
    method: str = "zero",
    means: Weights | None = None,
    words: Sequence[str] = (),
    *,
    source: str = "",
) -> Attention:
    """Return the attention of every head while all of ``heads`` are off.

    The heads' own weights are still computed, but have no effect.

    Args:
        encoder: a model with one stack of layers.
        heads: the heads that are off.
        text: the text that the model reads.
        pair: a second text, read together with the first.
        method: the replacement for the output of a head (:func:`make_substitute`).
        means: as for :func:`make_substitute`.
        words: the sentence as words, in place of ``text``.
        source: with the method "text", the text whose outputs are used instead. "resample" uses random sentences of the
            built-in ones.

    Raises the errors of ``encode``, :func:`make_substitute` and :mod:`mha_viz.models.intervening.other_texts`, and
    UnknownHead.
    """
    encoder = require_one_stack(encoder)
    ablated_heads = check_heads(encoder, heads)
    if method in (TEXT, RESAMPLE):
        means = other_texts.choose_outputs(encoder, method, encoder.pieces(text, pair, words), source)
    reading = encoder.through(
        text, pair, make_ablation_tap([ablated_heads], make_substitute(encoder, method, means)), words
    )[0]
    recorded_means = means if method in ("mean", RECIPE) else None
    means_digest = "" if recorded_means is None else digest(recorded_means)
    step = (
        [Step(StepData("without", ablated_heads, method, means_digest, source=source if method == TEXT else None))]
        if ablated_heads
        else []
    )
    return replace(reading, made=make_first_steps(words, *step, prefix=encoder.prefix))


def compute_states_without(
    encoder: Encoder,
    variants: Sequence[Collection[Head]],
    substitute: Substitute,
    text: str,
    pair: str = "",
    words: Sequence[str] = (),
) -> Weights:
    """Return the output of the last layer for several sets of heads that are off, [variant, n, d_model], in one batch.

    ``variants`` lists the heads that are off in each variant. ``words``: the sentence as words, in place of ``text``.
    Raises the errors of ``encode``.
    """
    return encoder.states(text, pair, make_ablation_tap(variants, substitute), len(variants), words)


def make_ablation_tap(variants: Sequence[Collection[Head]], substitute: Substitute) -> type[Tap]:
    """Return the class of a tap for a batch of one text in which the heads of each variant are off."""

    class AblationTap(Tap):
        """Replaces the outputs of the heads that are off in each variant."""

        def layer(self, index: int, query: Any, key: Any, value: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
            ablated_heads = [
                (variant, head.head) for variant, heads in enumerate(variants) for head in heads if head.layer == index
            ]
            if not ablated_heads:
                return output
            variant_numbers, head_numbers = (list(column) for column in zip(*ablated_heads, strict=True))
            new_output: torch.Tensor = output.clone()
            new_output[variant_numbers, :, head_numbers] = substitute(index, self.slot(index), value, output)[
                variant_numbers, :, head_numbers
            ]
            return new_output

    return AblationTap


def compute_random_ablation_states(
    encoder: Encoder,
    heads: Sequence[Head],
    substitute: Substitute,
    draws: range,
    text: str,
    pair: str = "",
    seed: int = 0,
) -> Weights:
    """Return the last states, [draw, n, d_model], with random directions removed in place of ``heads``.

    All draws are read in one batch, which begins at the layer of the heads if all of them are in one layer. In each
    layer with such heads, as many orthonormal directions of the concatenation are removed as the heads have columns.
    The directions are determined by the seed, the layer and the number of the draw. For each token, the removed vector
    is scaled to the length of the vector that the token loses with the heads. Raises the errors of ``encode``.
    """
    heads_by_layer: dict[int, list[int]] = {}
    for head in heads:
        heads_by_layer.setdefault(head.layer, []).append(head.head)
    removals = {
        layer: _make_direction_remover(head_numbers, [(seed, layer, draw) for draw in draws])
        for layer, head_numbers in heads_by_layer.items()
    }
    if len(removals) == 1:
        ((layer, make_variants),) = removals.items()
        return run_forked_pass(encoder, layer, make_variants, substitute, text, pair).states

    class RandomAblationTap(Tap):
        """Removes random directions in the layers of the heads."""

        def layer(self, index: int, query: Any, key: Any, value: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
            if index not in removals:
                return output
            return removals[index](output, substitute(index, self.slot(index), value, output))

    return encoder.states(text, pair, RandomAblationTap, len(draws))


def _make_direction_remover(heads: Sequence[int], seeds: Sequence[tuple[int, int, int]]) -> MakeVariants:
    """Return a function that removes random directions, as many as ``heads`` have columns, in one variant per seed."""

    def remove(outputs: torch.Tensor, replacements: torch.Tensor) -> torch.Tensor:
        """Remove the directions from the concatenated outputs."""
        lost_length = (outputs - replacements)[:, :, heads].flatten(2).norm(dim=-1, keepdim=True)
        concatenated = outputs.flatten(2)  # [1 or draw, n, d_model]
        draw_directions = _draw_head_directions if len(heads) == 1 else _draw_directions
        shape = concatenated.shape[-1], len(heads) * outputs.shape[-1]
        directions = torch.stack([draw_directions(*shape, seed) for seed in seeds]).to(concatenated)
        projection = concatenated @ directions @ directions.transpose(1, 2)
        projection *= lost_length / projection.norm(dim=-1, keepdim=True).clamp_min(torch.finfo(projection.dtype).tiny)
        return (concatenated - projection).view(len(seeds), *outputs.shape[1:])

    return remove


def _draw_directions(d_model: int, count: int, seed: tuple[int, int, int]) -> torch.Tensor:
    """Return orthonormal columns drawn with a seed, [d_model, count]."""
    columns = np.random.default_rng(seed).standard_normal((d_model, count), np.float32)
    return torch.from_numpy(np.linalg.qr(columns)[0])


# All heads of a layer are compared with the same draws. The draws of one layer take 42 MB if d_model = 4096.
_draw_head_directions = lru_cache(maxsize=20)(_draw_directions)


def check_heads(encoder: Encoder, heads: Iterable[AnyHead]) -> tuple[Head, ...]:
    """Return the heads in order, without duplicates. A single head need not be in a list.

    Raises UnknownHead for a head that the model does not have, SettingError for something that is not a model or a
    list.
    """
    encoder = require_one_stack(encoder)
    is_pair = isinstance(heads, tuple) and len(heads) == 2 and all(map(is_number, heads))
    given_heads = (
        [heads] if is_pair or isinstance(heads, str | Head) else list_items(heads, "heads", "Give ['L3H1', …].")
    )
    return tuple(sorted({Head.among(head, encoder.layer_numbers, encoder.heads, encoder.name) for head in given_heads}))


class FullPass(NamedTuple):
    """The result of a full pass over one text.

    Attributes:
        weights: [layer, head, query, key].
        states: [n, d_model], the output of the last layer.
        layer_inputs: the input of each layer, [1, n, d_model], if passes can begin at any layer; otherwise empty.
    """

    weights: Weights
    states: Weights
    layer_inputs: tuple[torch.Tensor, ...]


class ForkedPass(NamedTuple):
    """The result of a pass whose variants diverge at one layer.

    Attributes:
        weights: for each later layer, [head, variant, query, key].
        states: [variant, n, d_model], the output of the last layer.
    """

    weights: tuple[Weights, ...]
    states: Weights


# The latest passes of each model are cached, because every head is tried on the same text, or on two texts that are
# compared. Long texts are not cached.
CACHED_TEXTS = 2
MAX_CACHED_BYTES = 80_000_000  # bytes of the weights of one text
_cache_lock = threading.Lock()
_full_passes: WeakKeyDictionary[Encoder, dict[tuple[str, str], FullPass]] = WeakKeyDictionary()


def run_full_pass(encoder: Encoder, text: str, pair: str = "") -> FullPass:
    """Run the unchanged pass over a text, the baseline for all variants. Raises the errors of ``encode``."""
    with _cache_lock:
        cached_pass = _full_passes.setdefault(encoder, {}).get((text, pair))
    if cached_pass is not None:
        return cached_pass
    states, tap = encoder.last_states(encoder.pieces(text, pair), LayerInputTap)
    assert isinstance(tap, LayerInputTap)
    full_pass = FullPass(tap.fetched(), states[0].cpu().numpy(), tuple(tap.layer_inputs))
    if full_pass.weights.nbytes > MAX_CACHED_BYTES:
        return full_pass
    with _cache_lock:
        newest_passes = list(_full_passes[encoder].items())[1 - CACHED_TEXTS :]
        _full_passes[encoder] = {**dict(newest_passes), (text, pair): full_pass}
    return full_pass


class LayerInputTap(Tap):
    """A tap that records the input of each layer."""

    def __init__(self, weights: torch.Tensor) -> None:
        super().__init__(weights)
        self.layer_inputs: list[torch.Tensor] = []

    def enters(self, x: torch.Tensor) -> None:
        self.layer_inputs.append(x)


def run_forked_pass(
    encoder: Encoder, layer: int, make_variants: MakeVariants, substitute: Substitute, text: str, pair: str = ""
) -> ForkedPass:
    """Continue a pass in several variants from the W_O of ``layer``.

    For models whose passes can begin at any layer, the inputs of all layers are computed only once per text. The
    residual that is added to the result of W_O has a single text, not one per variant; PyTorch broadcasts it. Raises
    the errors of ``encode``, and UnknownHead for a layer that does not exist.
    """
    check_heads(encoder, [(layer, 0)])
    thread, taps = threading.get_ident(), list[_ForkTap]()

    def make_tap(weights: torch.Tensor) -> _ForkTap:
        """Create the tap of the pass and keep it."""
        taps.append(_ForkTap(weights, layer, make_variants, substitute))
        return taps[0]

    def insert_variants(_: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
        """Pass the variants to W_O in place of the single text, unless another thread runs the pass."""
        is_own_pass = threading.get_ident() == thread and taps and taps[0].seen == layer + 1
        return (taps[0].outputs.flatten(2).to(inputs[0].dtype), *inputs[1:]) if is_own_pass else None

    with encoder.hook_w_o_input(layer, insert_variants):
        if encoder.can_resume:
            x = run_full_pass(encoder, text, pair).layer_inputs[layer]
            tap = make_tap(encoder.allocate(x.shape[1]))
            tap.seen = layer
            states: Weights = encoder.resume_states(x, tap).cpu().numpy()
        else:
            states = encoder.states(text, pair, make_tap)
    return ForkedPass(tuple(slot.cpu().numpy() for slot in taps[0].slots[layer + 1 :]), states)


class _ForkTap(Tap):
    """A tap that stores the variants of one layer's outputs until W_O needs them.

    It records the weights of every later layer for all variants.
    """

    stop_after_last = False

    def __init__(self, weights: torch.Tensor, layer: int, make_variants: MakeVariants, substitute: Substitute) -> None:
        super().__init__(weights)
        self.slots = list(weights)
        self.outputs = weights
        self._layer, self._make_variants, self._substitute = layer, make_variants, substitute

    def slot(self, index: int) -> torch.Tensor:
        weights: torch.Tensor = self.slots[index]
        return weights

    def layer(self, index: int, query: Any, key: Any, value: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        if index == self._layer:
            self.outputs = self._make_variants(output, self._substitute(index, self.slot(index), value, output))
            heads, n = self.weights.shape[1:3]
            for later_layer in range(index + 1, len(self.slots)):
                self.slots[later_layer] = self.weights.new_empty(heads, len(self.outputs), n, n)
        return output


def ablate_one_by_one(heads: Sequence[int]) -> MakeVariants:
    """Return a function that makes a variant for each of ``heads``, in which only that head is off."""

    def ablate(outputs: torch.Tensor, replacements: torch.Tensor) -> torch.Tensor:
        """Replace the output of one head per variant."""
        variants = outputs.repeat(len(heads), 1, 1, 1)
        for variant, head in enumerate(heads):
            variants[variant, :, head] = replacements[0, :, head]
        return variants

    return ablate
