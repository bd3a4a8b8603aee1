"""Heads switched off, compared with plain transformers whose W_O input is changed by a hook; and variants in one batch
compared with single ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mha_viz.analysis import effects as analysis
from mha_viz.attention import Head
from mha_viz.errors import EmptyText, SettingError, TextError, UnknownHead
from mha_viz.models.families import FAMILIES
from mha_viz.models.intervening import ablation
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.probe import find_attention_modules
from mha_viz.request import Request
from mha_viz.study import effects as study
from tests import lanes, oracles, tiny_models
from tests.oracles import collect_attentions, silence_heads
from tests.tiny_models import HEADS, LAYERS

SENTENCE = "The animal didn't cross the street because it was too tired."
OTHERS = ("Isn't it far?", "A quick brown fox jumps.")
OFF = (Head(0, 1), Head(1, 3), Head(1, 0))
EVERY = sorted(set(FAMILIES) - {"albert"})  # its layers share one W_O: see below
# Those whose layers are called differently: norms before or after, both parts at once, windows, experts, two streams.
DIFFERENT = (
    *["bert", "bloom", "deberta-v2", "falcon", "gemma2", "gpt2", "gpt_neo"],
    *["gptj", "llama", "longformer", "mixtral", "mobilebert", "modernbert", "xlnet"],
)

Folder = Callable[[str], Path]
Tiny = Callable[[str], Encoder]


def plain(folder: Path, text: str, off: dict[Head, Any]) -> tuple[list[Any], Any]:
    """Attentions and last states of transformers' own eager model, with the columns of heads replaced by ``off``."""
    model, tokenizer = oracles.load_plain(folder)
    with ExitStack() as stack, torch.no_grad():
        if model.config.model_type == "xlnet":  # it has no module for W_O
            assert not any(off.values())
            stack.enter_context(silence_heads(model, off, HEADS))
        else:
            for layer in {head.layer for head in off}:
                replacing = partial(
                    _replaced, {head.head: columns for head, columns in off.items() if head[0] == layer}
                )
                stack.callback(find_attention_modules(model, layer).output.register_forward_pre_hook(replacing).remove)
        outputs = model(**tokenizer(text, return_tensors="pt"), output_attentions=True)
    return [layer[0].numpy() for layer in collect_attentions(model, outputs)], outputs.last_hidden_state


def _replaced(off: dict[int, Any], _: Any, arguments: Any) -> Any:
    joined = arguments[0].clone().unflatten(-1, (HEADS, -1))
    for head, columns in off.items():
        joined[:, :, head] = columns
    return (joined.flatten(-2),)


@pytest.mark.parametrize("family", EVERY)
def test_heads_that_put_out_zero_are_those_of_transformers(family: str, tiny: Tiny, tiny_folder: Folder) -> None:
    weights, _ = plain(tiny_folder(family), SENTENCE, dict.fromkeys(OFF, 0.0))
    assert np.abs(ablation.encode_without(tiny(family), OFF, SENTENCE).weights - weights).max() <= 1e-5


@pytest.mark.parametrize("family", lanes.some(EVERY, *DIFFERENT))
def test_variants_that_part_at_a_layer_are_those_of_transformers(family: str, tiny: Tiny, tiny_folder: Folder) -> None:
    encoder = tiny(family)
    by = ablation.make_substitute(encoder, "zero")
    for layer in range(LAYERS):
        forked = ablation.run_forked_pass(encoder, layer, ablation.ablate_one_by_one(range(HEADS)), by, SENTENCE)
        assert len(forked.weights) == LAYERS - 1 - layer
        for variant in (0, HEADS - 1):
            weights, states = plain(tiny_folder(family), SENTENCE, {Head(layer, variant): 0.0})
            assert np.abs(forked.states[variant] - states[0].numpy()).max() <= 2e-5
            for ours, theirs in zip(forked.weights, weights[layer + 1 :], strict=True):
                assert np.abs(ours[:, variant] - theirs).max() <= 1e-5


@pytest.mark.parametrize("family", lanes.some(tiny_models.TRACED, "bert", "electra", "falcon", "gpt2", "roberta"))
def test_a_text_through_the_model_as_it_is(family: str, tiny: Tiny, tiny_folder: Folder) -> None:
    encoder = tiny(family)
    whole = ablation.run_full_pass(encoder, SENTENCE)
    weights, states = plain(tiny_folder(family), SENTENCE, {})
    assert np.abs(whole.weights - weights).max() <= 1e-5
    assert np.abs(whole.states - states[0].numpy()).max() <= 2e-5
    assert len(whole.layer_inputs) == (LAYERS if encoder.can_resume else 0)
    assert ablation.run_full_pass(encoder, SENTENCE) is whole
    assert len({id(ablation.run_full_pass(encoder, other)) for other in OTHERS}) == 2
    assert ablation.run_full_pass(encoder, SENTENCE) is not whole  # two texts are cached


@pytest.mark.parametrize("method", ["zero", "uniform"])
@pytest.mark.parametrize("family", ["albert", "bert", "llama", "gpt2"])
def test_variants_equal_one_head_after_the_other(family: str, method: str, tiny: Tiny) -> None:
    encoder = tiny(family)
    by = ablation.make_substitute(encoder, method)
    for layer in range(LAYERS):
        forked = ablation.run_forked_pass(encoder, layer, ablation.ablate_one_by_one(range(HEADS)), by, SENTENCE)
        for head in range(HEADS):
            alone = ablation.encode_without(encoder, [Head(layer, head)], SENTENCE, method=method)
            for later, weights in enumerate(forked.weights, layer + 1):
                assert np.array_equal(weights[:, head], alone.weights[later])


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ([[1, 1, 1], [1, 1, 1], [1, 1, 1]], [[3.0, 2.0], [3.0, 2.0], [3.0, 2.0]]),
        ([[1, 0, 0], [1, 1, 0], [1, 1, 1]], [[1.0, 0.0], [1.5, 2.0], [3.0, 2.0]]),  # causal
        ([[1, 0, 0], [1, 1, 0], [0, 1, 1]], [[1.0, 0.0], [1.5, 2.0], [4.0, 3.0]]),  # and with a window
    ],
)
def test_uniform_is_the_mean_of_the_values_a_head_may_see(
    visible: list[list[int]], expected: list[list[float]], tiny: Tiny
) -> None:
    weights = torch.tensor(visible, dtype=torch.float32).repeat(2, 1, 1)  # [head, query, key]
    values = torch.tensor([[[[1.0], [2.0], [6.0]], [[0.0], [4.0], [2.0]]]])  # [1, head, n, d_head]
    uniform = ablation.make_substitute(tiny("bert"), "uniform")(0, weights, values, torch.zeros(1, 3, 2, 1))
    assert torch.allclose(uniform[0, :, :, 0], torch.tensor(expected))


def test_uniform_stays_within_the_window_of_a_layer(tiny: Tiny, tiny_folder: Folder) -> None:
    folder, head = tiny_folder("mistral"), Head(0, 1)
    model, tokenizer = oracles.load_plain(folder)
    shared, window = HEADS // model.config.num_key_value_heads, model.config.sliding_window
    seen: list[torch.Tensor] = []
    hook = model.layers[0].self_attn.v_proj.register_forward_hook(lambda _, __, result: seen.append(result[0]))
    with torch.no_grad():
        model(**tokenizer(SENTENCE, return_tensors="pt"))
    hook.remove()
    values = seen[0].unflatten(-1, (HEADS // shared, -1))[:, head.head // shared]  # [n, d_head]
    assert len(values) > window
    means = torch.stack([values[max(0, row - window + 1) : row + 1].mean(0) for row in range(len(values))])
    weights, _ = plain(folder, SENTENCE, {head: means})
    ours = ablation.encode_without(tiny("mistral"), [head], SENTENCE, method="uniform")
    assert np.abs(ours.weights - weights).max() <= 1e-5


def test_heads_that_share_their_values_get_their_own_group(tiny: Tiny) -> None:
    values = torch.tensor([[[[1.0]], [[5.0]]]])  # two groups
    uniform = ablation.make_substitute(tiny("bert"), "uniform")(0, torch.ones(4, 1, 1), values, torch.zeros(1, 1, 4, 1))
    assert uniform.flatten().tolist() == [1.0, 1.0, 5.0, 5.0]


def test_mean_outputs_are_those_over_all_tokens(tiny: Tiny, tiny_folder: Folder) -> None:
    encoder = tiny("bert")
    means = ablation.compute_means(encoder, OTHERS)
    model, tokenizer = oracles.load_plain(tiny_folder("bert"))
    joined: list[torch.Tensor] = []
    hook = find_attention_modules(model, 1).output.register_forward_pre_hook(
        lambda _, given: joined.append(given[0][0].clone())
    )
    with torch.no_grad():
        for text in OTHERS:
            model(**tokenizer(text, return_tensors="pt"))
    hook.remove()
    assert np.allclose(means[1].flatten(), torch.cat(joined).mean(0), atol=1e-6)
    weights, _ = plain(tiny_folder("bert"), SENTENCE, {head: torch.from_numpy(means[head]) for head in OFF})
    ours = ablation.encode_without(encoder, OFF, SENTENCE, method="mean", means=means)
    assert np.abs(ours.weights - weights).max() <= 1e-5


def test_a_reading_says_what_was_off(tiny: Tiny) -> None:
    encoder = tiny("bert")
    one = ablation.encode_without(encoder, ["L1H0", (0, 2)], SENTENCE)
    assert one.made == ("typed", "without L0H2 L1H0: zero")
    others = [
        encoder.encode(SENTENCE),
        ablation.encode_without(encoder, ["L1H0"], SENTENCE),
        ablation.encode_without(encoder, ["L1H0", "L0H2"], SENTENCE, method="uniform"),
    ]
    assert len({one.key, *(other.key for other in others)}) == 4
    assert one.key == ablation.encode_without(encoder, ["L0H2", "L1H0", "L1H0"], SENTENCE).key
    assert np.array_equal(ablation.encode_without(encoder, [], SENTENCE).weights, encoder.encode(SENTENCE).weights)


def test_what_cannot_be_switched_off_is_said(tiny: Tiny) -> None:
    encoder = tiny("bert")
    with pytest.raises(UnknownHead, match=r"L9H0 does not exist: .* has 3 layers × 4 heads"):
        ablation.encode_without(encoder, ["L9H0"], SENTENCE)
    with pytest.raises(UnknownHead):
        ablation.run_forked_pass(
            encoder, LAYERS, ablation.ablate_one_by_one([0]), ablation.make_substitute(encoder, "zero"), SENTENCE
        )
    with pytest.raises(SettingError, match="half"):
        ablation.encode_without(encoder, ["L0H0"], SENTENCE, method="half")
    with pytest.raises(SettingError, match="mean outputs"):
        ablation.encode_without(encoder, ["L0H0"], SENTENCE, method="mean")
    with pytest.raises(EmptyText):
        ablation.compute_means(encoder, [])


def test_random_directions_take_away_as_much_as_the_heads(tiny: Tiny) -> None:
    encoder, heads = tiny("bert"), [Head(1, 2), Head(1, 0), Head(2, 3)]
    joined: list[torch.Tensor] = []
    hook = find_attention_modules(encoder._model, 1).output.register_forward_pre_hook(
        lambda _, inputs: joined.append(inputs[0].clone())
    )
    by = ablation.make_substitute(encoder, "zero")
    try:
        whole = encoder.states(SENTENCE)
        states = ablation.compute_random_ablation_states(encoder, heads, by, range(6), SENTENCE)
    finally:
        hook.remove()
    assert states.shape == (6, *whole.shape[1:])
    lost = joined[1] - joined[0]  # [draw, n, d_model]
    heads_of_layer = joined[0].unflatten(-1, (HEADS, -1))[0, :, [0, 2]].flatten(1)
    assert torch.allclose(lost.norm(dim=-1), heads_of_layer.norm(dim=-1).expand(6, -1), rtol=1e-3)
    assert all(int(torch.linalg.matrix_rank(draw, rtol=1e-3)) <= 2 * 8 for draw in lost)
    assert len({draw.tobytes() for draw in states}) == 6
    assert np.array_equal(states, ablation.compute_random_ablation_states(encoder, heads, by, range(6), SENTENCE))


@pytest.mark.parametrize("family", ["bert", "gpt2", "xlnet"])
def test_random_directions_of_one_layer_are_those_of_a_whole_pass(family: str, tiny: Tiny) -> None:
    encoder = tiny(family)
    by, removing = (
        ablation.make_substitute(encoder, "zero"),
        ablation._make_direction_remover([0, 2], [(0, 1, draw) for draw in range(4)]),
    )

    class Removing(Tap):
        def layer(self, index: int, query: Any, key: Any, value: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
            return removing(output, by(index, self.slot(index), value, output)) if index == 1 else output

    states = ablation.compute_random_ablation_states(encoder, [Head(1, 2), Head(1, 0)], by, range(4), SENTENCE)
    assert np.allclose(states, encoder.states(SENTENCE, "", Removing, 4), atol=1e-5)


def test_draws_do_not_depend_on_the_size_of_a_batch(tiny: Tiny) -> None:
    encoder, by = tiny("bert"), ablation.make_substitute(tiny("bert"), "zero")
    whole = ablation.compute_random_ablation_states(encoder, [Head(0, 0)], by, range(5), SENTENCE)
    parts = [
        ablation.compute_random_ablation_states(encoder, [Head(0, 0)], by, some, SENTENCE)
        for some in (range(2), range(2, 5))
    ]
    assert np.allclose(np.concatenate(parts), whole, atol=1e-5)


def test_means_come_in_parts(tiny: Tiny) -> None:
    means = ablation.Means(tiny("bert"))
    for text in OTHERS:
        means.add([text])
    assert np.allclose(means.values(), ablation.compute_means(tiny("bert"), OTHERS), atol=1e-7)


def test_given_words_are_read_as_words(minilm: Encoder) -> None:
    words = ("A", "well-known", "man", ".")
    whole = minilm.encode_words(words)
    without = ablation.encode_without(minilm, ["L2H4"], "", words=words)
    assert without.queries == whole.queries
    assert without.made == ("given words", "without L2H4: zero")
    assert np.array_equal(without.weights[:3], whole.weights[:3])
    assert not np.allclose(without.weights[3:], whole.weights[3:], atol=1e-4)
    with pytest.raises(SettingError, match="Leave pair out"):
        ablation.encode_without(minilm, ["L2H4"], "", "A pair.", words=words)


@pytest.mark.parametrize("method", ["mean", "mean of one", "recipe"])
def test_means_of_another_model_or_text_are_refused(method: str, tiny: Tiny) -> None:
    bert, text = tiny("bert"), OTHERS[0]
    size = 1 if method == "mean of one" else 5
    shape = (size, size) if method == "recipe" else (size,)
    means = np.ones((bert.layers, bert.heads, *shape), np.float32)
    with pytest.raises(SettingError, match=f"The means are for {size} "):
        ablation.encode_without(bert, ["L0H0"], text, method=method.split()[0], means=means)


def test_means_are_of_a_list_of_texts(tiny: Tiny) -> None:
    with pytest.raises(TextError, match="'the' is not a list of texts"):
        ablation.compute_means(tiny("bert"), "the")


def test_a_single_head_need_not_be_in_a_list(tiny: Tiny) -> None:
    heads: tuple[Any, ...] = ("L0H1", Head(0, 1), (0, 1), [(0, 1)])
    assert {ablation.check_heads(tiny("bert"), head) for head in heads} == {(Head(0, 1),)}


# ---- Effects --------------------------------------------------------------------------------------------------------


def test_effects_are_those_of_single_passes(tiny: Tiny, tiny_folder: Folder) -> None:
    encoder = tiny("bert")
    done: list[float] = []
    effects = study.measure_effects(encoder, Request(text=SENTENCE), progress=done.append)
    assert done == pytest.approx([1 / 3, 2 / 3, 1])  # a layer at a time
    weights, states = plain(tiny_folder("bert"), SENTENCE, {})
    for head in (Head(0, 0), Head(1, 3), Head(2, 2)):
        changed_weights, changed = plain(tiny_folder("bert"), SENTENCE, {head: 0.0})
        cosine = torch.nn.functional.cosine_similarity
        expected = 1 - cosine(states[0].double(), changed[0].double(), dim=-1)
        assert effects.tokens[head] == pytest.approx(expected.numpy(), abs=2e-6)
        whole = 1 - cosine(states[0].double().mean(0), changed[0].double().mean(0), dim=-1)
        assert effects.sentence[head] == pytest.approx(float(whole), abs=2e-6)
        for layer in range(LAYERS):
            p, q = weights[layer].astype(float), changed_weights[layer].astype(float)
            m = (p + q) / 2
            js = ((p * np.log(p / m)).sum((1, 2)) + (q * np.log(q / m)).sum((1, 2))) / 2 / p.shape[1]
            assert effects.attention[head][layer] == pytest.approx(js if layer > head.layer else 0 * js, abs=1e-6)


def test_the_last_layer_changes_no_other_head(tiny: Tiny) -> None:
    effects = study.measure_effects(tiny("bert"), Request(text=SENTENCE))
    assert effects.sentence.min() > 0
    for layer in range(LAYERS):
        assert (effects.attention[layer, :, : layer + 1] == 0).all()
        assert (effects.attention[layer, :, layer + 1 :] > 0).all()
    ranked = effects.ranked()
    assert len(set(ranked)) == LAYERS * HEADS
    assert effects.sentence[ranked[0]] == effects.sentence.max()


@pytest.mark.parametrize("pieces", [1, 40, 512])
def test_effects_do_not_depend_on_the_size_of_a_batch(pieces: int, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request(text=SENTENCE, pair="Isn't it far?", method="uniform")
    whole = study.measure_effects(tiny("bert"), request)
    monkeypatch.setattr(analysis, "PIECES", pieces)
    for ours, theirs in zip(study.measure_effects(tiny("bert"), request), whole, strict=True):
        assert np.allclose(ours, theirs, atol=1e-6, equal_nan=True)


def test_heads_off_together(tiny: Tiny, tiny_folder: Folder) -> None:
    encoder = tiny("bert")
    effect = study.measure_together(encoder, Request(text=SENTENCE, off=tuple(OFF)))
    states = plain(tiny_folder("bert"), SENTENCE, {})[1][0].double()
    changed = plain(tiny_folder("bert"), SENTENCE, dict.fromkeys(OFF, 0.0))[1][0].double()
    cosine = torch.nn.functional.cosine_similarity
    assert effect.tokens == pytest.approx((1 - cosine(states, changed, dim=-1)).numpy(), abs=2e-6)
    assert effect.sentence == pytest.approx(float(1 - cosine(states.mean(0), changed.mean(0), dim=-1)), abs=2e-6)
    assert effect.random.shape == (20,)
    assert (effect.random > 0).all()
    alone = study.measure_together(encoder, Request(text=SENTENCE, off=(Head(1, 3),)))
    assert alone.sentence == pytest.approx(
        study.measure_effects(encoder, Request(text=SENTENCE)).sentence[1, 3], abs=1e-6
    )


def test_no_head_off_changes_nothing(tiny: Tiny) -> None:
    effect = study.measure_together(tiny("bert"), Request(text=SENTENCE))
    assert effect.sentence == 0
    assert (effect.tokens == 0).all()


def test_work_that_nobody_waits_for_ends(tiny: Tiny) -> None:
    def stop(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.measure_effects(tiny("bert"), Request(text=SENTENCE), progress=stop)
    encoder = tiny("bert")
    assert np.array_equal(encoder.encode(SENTENCE).weights, encoder.encode(SENTENCE).weights)
    assert not find_attention_modules(encoder._model, 0).output._forward_pre_hooks
