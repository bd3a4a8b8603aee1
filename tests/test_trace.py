"""The steps inside a head: compared with the model's own numbers, with numbers computed by hand, and in concurrent
threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mha_viz.analysis.distance import entropy
from mha_viz.attention import trace
from mha_viz.attention.rotary import Rotation, rotate
from mha_viz.attention.trace import Parameters, Trace, compute_trace, split_heads
from mha_viz.errors import EmptyText, ModelUnsupported, ShapeError, UnknownHead
from mha_viz.models.families import FAMILIES, OPAQUE_SETTINGS, find_opaque_reason
from mha_viz.models.reading import capture, linear
from mha_viz.models.reading import encoder as encoder_module
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.probe import LayerProbe, find_attention_modules
from mha_viz.text import Token, TokenizedText
from tests import lanes, tiny_models
from tests.oracles import EQUAL, SECOND, SENTENCE, load_plain

Tiny = Callable[[str], Encoder]
Folder = Callable[[str], Path]
Traces = Callable[[str, int], Trace]
families = pytest.mark.parametrize("family", tiny_models.TRACED)
WIDTHS = {"qwen3": 16, "qwen3_moe": 16}  # d_k of the tiny models, where it is not 8
WINDOWS = (
    "gpt_neo",
    "longformer",
    "mistral",
    "mixtral",
    "modernbert",
)  # layer 1; Gemma 3's sees the whole text
ADJACENT = {"cohere": 8, "gptj": 4}  # how many numbers of a query are turned, where 2i and 2i + 1 are turned together
# Layer 1 of every family, and every layer where they differ: with and without a norm, a window or a turn of their own.
DIFFERENT_LAYERS = ("albert", "bert", "falcon", "gemma3_text", "gpt2", "gpt_neo", "llama", "longformer", "modernbert")
OPAQUE_ALONE = ("falcon by distance", "cohere of normed heads", "stablelm of normed heads")  # unlike their families
layers_of_families = pytest.mark.parametrize(
    ("family", "layer"),
    [
        (family, layer)
        for family in tiny_models.TRACED
        for layer in range(tiny_models.LAYERS)
        if lanes.everything or layer == 1 or family in DIFFERENT_LAYERS
    ],
)


class Seen(capture.Tap):
    """What the model passes on in each layer."""

    def __init__(self, weights: torch.Tensor) -> None:
        super().__init__(weights)
        self.layers: list[tuple[Any, ...]] = []

    def layer(
        self, index: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, output: torch.Tensor
    ) -> torch.Tensor:
        self.layers.append(tuple(t[0].clone().numpy() for t in (query, key, value, output.transpose(1, 2))))
        return output


@pytest.fixture(scope="module")
def trace_of(tiny: Tiny) -> Traces:
    """The trace of a layer of a family on SENTENCE, which no test can change."""
    return cache(lambda family, layer: tiny(family).trace(SENTENCE, layer=layer))


# ---- Against the model -----------------------------------------------------------------------------------


@layers_of_families
def test_every_step_equals_the_model_s_own(family: str, layer: int, tiny: Tiny, trace_of: Traces) -> None:
    attention, tap = tiny(family).through(SENTENCE, tap=Seen)
    assert isinstance(tap, Seen)
    trace = trace_of(family, layer)
    before = trace.scaling if family == "opt" else 1.0  # OPT scales its queries before the product
    seen = [np.repeat(vectors, trace.heads // len(vectors), axis=0) for vectors in tap.layers[layer]]
    turned = ADJACENT.get(family, 0)
    order = [*range(0, turned, 2), *range(1, turned, 2), *range(turned, trace.d_k)]
    seen[:2] = (vectors[..., order] for vectors in seen[:2])
    for ours, theirs in zip((trace.q * before, trace.k, trace.v, trace.context), seen, strict=True):
        assert np.abs(ours - theirs).max() <= EQUAL * max(1.0, float(np.abs(theirs).max()))
    q, k = seen[:2]
    scaled = q @ k.transpose(0, 2, 1) * (trace.scaling / before)
    assert np.abs(trace.scaled - scaled).max() <= EQUAL * np.abs(trace.scaled).max()
    assert np.abs(trace.weights - attention.weights[layer]).max() <= EQUAL
    assert trace.agreement.weights <= EQUAL
    assert trace.loop_difference <= EQUAL, "heads in a loop give the same"
    assert trace.text == attention.text


@layers_of_families
def test_contributions_and_bias_sum_to_the_module_s_output(
    family: str, layer: int, tiny: Tiny, tiny_folder: Folder, trace_of: Traces
) -> None:
    trace = trace_of(family, layer)
    model, put_out = load_plain(tiny_folder(family))[0], []
    module = find_attention_modules(model, layer).output
    hook = module.register_forward_hook(lambda _, __, result: put_out.append(result.flatten(0, -2)[: trace.n].numpy()))
    ids = tiny(family)._tokenizer.read(SENTENCE).ids
    with torch.no_grad():
        model(torch.tensor([ids]))
    hook.remove()
    theirs = put_out[layer if family == "albert" else 0]  # ALBERT runs one module for all layers
    assert len(put_out) == (tiny_models.LAYERS if family == "albert" else 1)
    total = sum(trace.contribution(head).astype(np.float64) for head in range(trace.heads)) + trace.parameters.b_o
    assert np.abs(total - theirs).max() <= 1e-4
    assert np.abs(trace.output - theirs).max() <= 1e-4
    assert trace.agreement.output <= 1e-4


@families
def test_shapes_and_bytes(family: str, tiny: Tiny, trace_of: Traces) -> None:
    trace = trace_of(family, 1)
    h, n, d, d_k = tiny_models.HEADS, len(trace.text), tiny_models.WIDTH, WIDTHS.get(family, 8)
    g = 1 if family == "falcon" else getattr(tiny(family).config, "num_key_value_heads", None) or h
    assert (trace.heads, trace.n, trace.d_model, trace.d_k) == (h, n, d, d_k)
    assert trace.x.shape == trace.output.shape == trace.contribution(2).shape == (n, d)
    assert trace.q.shape == trace.k.shape == trace.v.shape == trace.context.shape == (h, n, d_k)
    assert trace.scores.shape == trace.scaled.shape == trace.weights.shape == (h, n, n)
    assert trace.concatenation.shape == (n, h * d_k)
    assert trace.slice_w_o(0).shape == (d_k, d)
    assert split_heads(trace.parameters.w_q, h).shape == (h, d, d_k)
    assert split_heads(trace.parameters.w_k, g).shape == split_heads(trace.parameters.w_v, g).shape == (g, d, d_k)
    assert trace.key_heads == g
    assert trace.pre_norm is (FAMILIES[family].pre_norm is not False)
    assert trace.has_standard_scaling == (family != "gpt_neo")
    assert trace.causal == (family in tiny_models.CAUSAL)
    assert trace.windowed == (family in WINDOWS)
    assert trace.masked == (trace.causal or trace.windowed)
    assert trace.bytes >= sum(p.nbytes for p in trace.parameters)


def test_all_heads_together_are_the_pretrained_model_s(minilm: Encoder) -> None:
    attention = minilm.encode(SENTENCE)
    for layer in range(minilm.layers):
        trace = minilm.trace(SENTENCE, layer=layer)
        assert np.abs(trace.weights - attention.weights[layer]).max() <= EQUAL
        assert trace.agreement.output <= EQUAL
        assert trace.loop_difference <= EQUAL


@pytest.mark.parametrize("family", [name for name in tiny_models.WITH_PAIRS if name in tiny_models.TRACED])
def test_two_sentences(family: str, tiny: Tiny) -> None:
    attention = tiny(family).encode(SENTENCE, SECOND)
    trace = tiny(family).trace(SENTENCE, SECOND, layer=2)
    assert trace.text == attention.text
    assert np.abs(trace.weights - attention.weights[2]).max() <= EQUAL


def test_a_sentence_given_as_words(tiny: Tiny) -> None:
    forms = ("The", "dogs", "bark", ".")
    attention = tiny("bert").encode_words(forms)
    trace = tiny("bert").trace("", layer=1, words=forms)
    assert trace.text == attention.text
    assert np.abs(trace.weights - attention.weights[1]).max() <= EQUAL


def test_without_onednn_the_same(tiny: Tiny, tiny_folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {family: tiny(family).trace(SENTENCE, layer=1) for family in ("bert", "gpt2")}
    monkeypatch.setattr(linear, "is_available", lambda: False)
    for family, before in expected.items():
        trace = Encoder.from_folder(tiny_folder(family)).trace(SENTENCE, layer=1)
        for ours, theirs in zip(trace.parameters, before.parameters, strict=True):
            assert np.array_equal(ours, theirs)
        assert np.abs(trace.output - before.output).max() <= EQUAL


def test_a_layer_that_is_not_there_and_text_that_is_empty(tiny: Tiny) -> None:
    for layer in (-1, tiny_models.LAYERS):
        with pytest.raises(UnknownHead, match="does not exist"):
            tiny("bert").trace(SENTENCE, layer=layer)
    with pytest.raises(UnknownHead, match="'True' is not a head"):
        tiny("bert").trace(SENTENCE, layer=True)
    with pytest.raises(EmptyText):
        tiny("bert").trace("  ")


# ---- Families of other kinds -----------------------------------------------------------------------------


@pytest.mark.parametrize("family", sorted({*FAMILIES, *OPAQUE_ALONE}.difference(tiny_models.TRACED)))
def test_other_families_are_refused_with_the_reason(family: str, tiny: Tiny) -> None:
    why = find_opaque_reason(tiny(family).config)
    assert why in (FAMILIES[tiny(family).family].opaque_reason, *OPAQUE_SETTINGS.values())
    with pytest.raises(ModelUnsupported, match=why):
        tiny(family).trace(SENTENCE)


@pytest.mark.parametrize(("kind", "keys"), [("falcon in groups", 2), ("falcon of two norms", 4), ("falcon", 1)])
def test_queries_keys_and_values_that_lie_group_by_group(kind: str, keys: int, tiny: Tiny, trace_of: Traces) -> None:
    attention = tiny(kind).encode(SENTENCE)
    for layer in range(tiny_models.LAYERS):
        trace = trace_of(kind, layer)
        assert trace.key_heads == keys
        assert np.abs(trace.weights - attention.weights[layer]).max() <= EQUAL
        assert max(*trace.agreement, trace.loop_difference) <= EQUAL


def test_a_model_that_computes_something_else_is_refused(tiny_folder: Folder) -> None:
    encoder = Encoder.from_folder(tiny_folder("bert"))
    encoder._model.encoder.layer[1].attention.self.scaling *= 2  # the model continues with its own numbers
    opened = LayerProbe(encoder._model, "bert", 1, 3)
    with opened:
        weights, _ = encoder._run(encoder._tokenizer.read(SENTENCE), opened.tap)
    encoder._model.encoder.layer[1].attention.self.scaling /= 2
    with pytest.raises(ModelUnsupported, match="its attention is not softmax"):
        opened.trace("", encoder.tokenize(SENTENCE), weights)


def test_a_hook_that_is_being_removed_does_not_stop_another_thread_s_pass(tiny: Tiny) -> None:
    """PyTorch forgets that it takes arguments by name while it may still be called."""
    encoder = tiny("llama")
    with LayerProbe(encoder._model, encoder.name, 0, encoder.layers) as opened:
        hooks = [hook for hook in opened._modules.holder._forward_pre_hooks.values() if hook.__name__ == "hook"]
        assert hooks
        assert [hook(opened._modules.holder, ()) for hook in hooks] == [None] * len(hooks)


def test_no_hook_stays_on_a_model(tiny: Tiny) -> None:
    tiny("albert").trace(SENTENCE)
    with pytest.raises(EmptyText):
        tiny("albert").trace("")
    assert not any(module._forward_hooks for module in tiny("albert")._model.modules())


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_traces_and_readings_at_the_same_time_do_not_mix(
    family: str, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = tiny(family)
    texts = [
        f"The animal {number} crossed the street{' again' * (number % 5)}."
        for number in range(40 if lanes.everything else 20)
    ]
    alone = [encoder.trace(text, layer=1) for text in texts]
    monkeypatch.setattr(encoder_module, "_pass_lock", nullcontext())  # no lock: only the hooks keep them apart
    cores = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(6) as pool:
            readings = [pool.submit(encoder.encode, text) for text in texts]
            together = list(pool.map(lambda text: encoder.trace(text, layer=1), texts))
    finally:
        torch.set_num_threads(cores)
    for one, other in zip(alone, together, strict=True):
        assert np.abs(one.x - other.x).max() <= EQUAL * 10
        assert one.text == other.text
    assert all(reading.result() for reading in readings)


# ---- Positions -------------------------------------------------------------------------------------------

ROTARY = [family for family in tiny_models.TRACED if FAMILIES[family].rotary]
rotary = pytest.mark.parametrize("family", ROTARY)


@rotary
def test_queries_and_keys_before_the_turn_are_the_projections(family: str, trace_of: Traces) -> None:
    trace = trace_of(family, 1)
    assert trace.rotation is not None
    p, shared = trace.parameters, trace.heads // trace.key_heads
    for head in range(trace.heads):
        for which, (number, w, b) in enumerate(((head, p.w_q, p.b_q), (head // shared, p.w_k, p.b_k))):
            columns = slice(number * trace.d_k, (number + 1) * trace.d_k)
            expected = (trace.x @ w[:, columns] + b[columns]).astype(np.float64)
            if trace.rotation.has_norms:
                norms, normed = trace.rotation.norms[which], expected
                if family == "olmo2":  # which normalises all heads together
                    norms, normed = norms[head, 0], (trace.x @ w + b).astype(np.float64)
                expected = expected / np.sqrt((normed**2).mean(axis=1, keepdims=True) + trace.rotation.eps) * norms
            assert np.abs(trace.before_turn[which][head] - expected).max() <= 1e-4


@rotary
def test_the_turn_keeps_lengths_and_the_first_token(family: str, trace_of: Traces) -> None:
    trace = trace_of(family, 1)
    for before, after in zip(trace.before_turn, (trace.q, trace.k), strict=True):
        assert np.abs(before[:, 0] - after[:, 0]).max() <= EQUAL  # position 0: no angle
        assert np.abs(before[:, 1:] - after[:, 1:]).max() > 0.01
        lengths = [np.linalg.norm(each, axis=-1) for each in (before, after)]
        assert np.abs(lengths[0] - lengths[1]).max() <= 1e-4


def test_phi_turns_half_of_the_numbers(trace_of: Traces) -> None:
    trace = trace_of("phi", 1)
    assert trace.rotation is not None
    assert (trace.rotation.rotated_size, trace.d_k) == (4, 8)
    assert np.array_equal(trace.q[..., 4:], trace.before_turn[0][..., 4:])


def test_queries_and_keys_are_normalised_where_the_model_does_so(trace_of: Traces) -> None:
    normed = {family: trace_of(family, 1).rotation for family in ROTARY}
    assert {family for family, rotation in normed.items() if rotation and rotation.has_norms} == {
        "gemma3_text",
        "olmo2",
        "qwen3",
        "qwen3_moe",
    }
    assert normed["qwen3"] is not None
    assert np.allclose(normed["qwen3"].norms, 1, atol=1e-5)  # in their initial state
    assert normed["gemma3_text"] is not None
    assert np.allclose(normed["gemma3_text"].norms, 1, atol=1e-5)  # a weight of 0: Gemma multiplies by 1 + its weight


def test_a_first_layer_that_normalises_nothing_says_so(trace_of: Traces) -> None:
    assert not trace_of("modernbert", 0).pre_norm  # its embeddings are normalised already
    assert trace_of("modernbert", 1).pre_norm


def test_a_turn_by_hand() -> None:
    quarter, none = np.array([[0, 0]], np.float32), np.array([[1, 1]], np.float32)
    vectors = np.array([[1, 2, 3]], np.float32)  # the third number is not rotated
    assert rotate(vectors, quarter, none).tolist() == [[-2, 1, 3]]  # (1, 2) by a right angle is (−2, 1)
    assert rotate(vectors, none, quarter).tolist() == [[1, 2, 3]]
    rotation = Rotation(none, quarter, np.array([[1, 1], [10, 1]], np.float32), eps=0.5)
    assert rotation.normalise(np.array([[1, 2]], np.float32), 1)[0] == pytest.approx([10 / 3**0.5, 2 / 3**0.5])
    assert Rotation(none, quarter, np.zeros((0, 0), np.float32)).normalise(vectors, 0) is vectors


def test_a_sliding_window_masks_keys_that_are_far_away(trace_of: Traces) -> None:
    trace = trace_of("mistral", 1)
    far = np.subtract.outer(np.arange(trace.n), np.arange(trace.n))
    assert (trace.mask == ((far < 0) | (far >= 8))).all()
    assert trace.weights[:, trace.mask].max() == 0


# ---- By hand ---------------------------------------------------------------------------------------------


def by_hand(mask: list[list[bool]] | None = None, scaling: float = 1.0) -> Trace:
    """Two tokens, d_model = 2, two heads with d_k = 1. Head 0 reads the first number, head 1 the second."""
    eye = np.eye(2, dtype=np.float32)
    w_o = np.array([[1, 0], [0, 10]], np.float32)  # head 0 writes the first number, head 1 ten times the second
    zero = np.zeros(2, np.float32)
    parameters = Parameters(eye, eye, eye, w_o, zero, zero, zero, np.array([100, 200], np.float32))
    tokens = tuple(Token(t, i, 0, i, i + 1) for i, t in enumerate("ab"))
    return compute_trace(
        *("by hand", "", 0, TokenizedText("ab", "", tokens)),
        np.array([[0, 1], [2, 3]], np.float32),
        parameters,
        np.array(mask or [[False, False], [False, False]]),
        heads=2,
        scaling=scaling,
    )


def test_two_tokens_and_two_heads_by_hand() -> None:
    trace = by_hand()
    assert trace.q[:, :, 0].tolist() == [[0, 2], [1, 3]]
    assert trace.scores.tolist() == [[[0, 0], [0, 4]], [[1, 3], [3, 9]]]
    e4, e2, e6 = (np.exp(-x) for x in (4, 2, 6))
    assert trace.weights[0] == pytest.approx(np.array([[0.5, 0.5], [e4 / (1 + e4), 1 / (1 + e4)]]), abs=1e-6)
    assert trace.weights[1] == pytest.approx(
        np.array([[e2 / (1 + e2), 1 / (1 + e2)], [e6 / (1 + e6), 1 / (1 + e6)]]), abs=1e-6
    )
    head0, head1 = [1, 2 / (1 + e4)], [(e2 + 3) / (1 + e2), (e6 + 3) / (1 + e6)]
    assert trace.concatenation == pytest.approx(np.array([head0, head1]).T, abs=1e-6)
    assert trace.contribution(0) == pytest.approx(np.array([[v, 0] for v in head0]), abs=1e-6)
    assert trace.contribution(1) == pytest.approx(np.array([[0, 10 * v] for v in head1]), abs=1e-5)
    assert trace.output == pytest.approx(np.array([head0, head1]).T * [1, 10] + [100, 200], abs=1e-4)


def test_norm_weighted_attention_by_hand() -> None:
    trace = by_hand()
    assert trace.norm_weighted(0) == pytest.approx(trace.weights[0] * [0, 2], abs=1e-6)
    assert trace.norm_weighted(1) == pytest.approx(trace.weights[1] * [10, 30], abs=1e-5)


@pytest.mark.parametrize("family", lanes.some(tiny_models.TRACED, "bert", "falcon", "gpt2", "llama", "qwen3"))
def test_norm_weighted_attention_by_definition(family: str, trace_of: Traces) -> None:
    trace = trace_of(family, 1)
    p, h, d_k = trace.parameters, 2, trace.d_k
    columns = slice(h * d_k, (h + 1) * d_k)
    at = h * trace.key_heads // trace.heads
    of_value = slice(at * d_k, (at + 1) * d_k)
    expected = np.empty((trace.n, trace.n))
    for i in range(trace.n):
        for j in range(trace.n):
            value = trace.x[j] @ p.w_v[:, of_value] + p.b_v[of_value]
            vector = trace.weights[h, i, j] * value @ p.w_o[columns]
            expected[i, j] = np.sqrt((vector.astype(np.float64) ** 2).sum())
    assert np.abs(trace.norm_weighted(h) - expected).max() <= EQUAL * max(1.0, expected.max())


def test_the_mask_and_the_missing_division() -> None:
    trace = by_hand([[False, True], [False, False]], scaling=0.5)
    assert trace.weights[:, 0].tolist() == [[1, 0], [1, 0]]
    assert not trace.has_standard_scaling
    assert by_hand(scaling=1.0).has_standard_scaling  # √1
    e9, e3 = np.exp(-6), np.exp(-3)
    assert trace.weights[1, 1] == pytest.approx([e3 / (1 + e3), 1 / (1 + e3)], abs=1e-6)
    assert trace.undivided(1)[1] == pytest.approx([e9 / (1 + e9), 1 / (1 + e9)], abs=1e-6)
    assert entropy(trace.undivided(1)[1]) < entropy(trace.weights[1, 1])


def test_entropy() -> None:
    assert entropy(np.full(8, 1 / 8)) == pytest.approx(np.log(8))
    assert entropy(np.array([0.0, 1.0, 0.0])) == 0


def test_heads_that_do_not_divide_are_refused() -> None:
    one = by_hand()
    with pytest.raises(ShapeError, match="3 heads cannot share 2 columns"):
        compute_trace("", "", 0, one.text, one.x, one.parameters, one.mask, heads=3, scaling=1)


def test_a_trace_cannot_be_changed() -> None:
    traced = by_hand()
    arrays = [getattr(traced, f.name) for f in fields(traced) if isinstance(getattr(traced, f.name), np.ndarray)]
    assert len(arrays) == 8
    made = (traced.scaled, traced.concatenation, traced.output, traced.contribution(0), traced.undivided(0))
    assert not any(array.flags.writeable for array in (*arrays, *traced.parameters, *made, traced.norm_weighted(0)))
    assert trace.Trace is Trace


def test_a_trace_takes_a_head_by_each_of_its_names(tiny: Tiny, trace_of: Traces) -> None:
    names: tuple[Any, ...] = (1, np.int64(1), "L1H3", (1, 0))
    assert {tiny("bert").trace(SENTENCE, layer=layer).layer for layer in names} == {1}
    traced_layer = trace_of("bert", 1)
    for head in (2, np.int64(2), "L1H2", (1, 2)):
        assert (traced_layer.contribution(head) == traced_layer.contribution(2)).all()
        assert (traced_layer.norm_weighted(head) == traced_layer.norm_weighted(2)).all()


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("L2H0", "L2H0 is in another layer: this is layer 1. Trace that layer"),
        (4, "L1H4 does not exist: layer 1 of .* has 4 heads. Choose between L1H0 and L1H3"),
        (-1, "does not exist"),
        (1.5, "'1.5' is not a head. Write it as"),
    ],
)
def test_a_head_that_a_trace_does_not_have_is_refused_with_the_reason(
    head: Any, message: str, trace_of: Traces
) -> None:
    with pytest.raises(UnknownHead, match=message):
        trace_of("bert", 1).contribution(head)
