"""Answers of models with and without some of their heads, compared with plain transformers whose W_O input is changed
by a hook; and gradients of answers, compared with autograd and finite differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

from mha_viz.attention import Head
from mha_viz.attention.answers import MAX_LISTED, compute_cosines, compute_divergences, list_tokens
from mha_viz.errors import EmptyText, ModelUnsupported, ReadingFailed, SettingError, TextError
from mha_viz.models.decomposing.contributions import direct_contributions
from mha_viz.models.families import FAMILIES
from mha_viz.models.intervening.gradients import compute_importance, gradient_weighted
from mha_viz.models.reading import answers
from mha_viz.models.reading.answers import make_question
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load
from mha_viz.models.reading.probe import find_attention_modules
from mha_viz.request import COSINE, MASK, NEXT, Request
from mha_viz.study import effects as study
from tests import lanes, oracles
from tests.oracles import unfold
from tests.tiny_models import CAUSAL, HEADS, LAYERS, RECORDED, WORDLESS

Folder = Callable[[str], Path]
Tiny = Callable[[str], Encoder]

MASKS = dict.fromkeys(("camembert", "longformer", "mpnet", "roberta", "xlm-roberta"), "<mask>")
OFF = (Head(0, 1), Head(1, 3), Head(1, 0))
OTHER = "The lazy fox jumps."
SHARED = {"albert"}  # its layers share one W_O, which a hook cannot tell apart
COPIED = ("longformer", "xlnet")  # of whose weights transformers gives a copy, through which nothing flows
DIFFERENTIABLE = sorted(set(FAMILIES) - {*COPIED})
GRADIENTS = [name for name in (*RECORDED, "distilbert", "gptj", "modernbert", "phi") if name in DIFFERENTIABLE]
ASKED = sorted(set(FAMILIES) - SHARED - {*WORDLESS})
# Those whose layer for words is not that of another one of these: with and without a norm, a bias, a scale or a bend.
LAYERS_FOR_WORDS = (
    *["bert", "bloom", "camembert", "cohere", "deberta-v2", "distilbert", "electra", "gemma2", "gpt2"],
    *["gpt_neox", "gptj", "llama", "longformer", "mobilebert", "modernbert", "mpnet", "opt", "phi"],
)
NORMED = sorted(name for name, family in FAMILIES.items() if family.final_norm)


def sentence(family: str) -> str:
    return f"The animal didn't cross the {'str' if family in CAUSAL else MASKS.get(family, '[MASK]')} because it was"


class Plain:
    """Transformers' own eager model, in which heads output zero."""

    def __init__(self, folder: Path, family: str, double: bool = False) -> None:
        kind: Any = AutoModelForCausalLM if family in CAUSAL else AutoModelForMaskedLM
        self.model = kind.from_pretrained(folder, attn_implementation="eager").eval()
        self.model = self.model.double() if double else self.model
        self.inputs = dict(AutoTokenizer.from_pretrained(folder)(sentence(family), return_tensors="pt"))
        self.off: dict[Head, Any] = {}  # and what is added to a head's output instead, if not None
        base = self.model.base_model
        for layer in range(LAYERS):
            find_attention_modules(base, layer).output.register_forward_pre_hook(self._hook(layer))

    def _hook(self, layer: int) -> Callable[..., Any]:
        def hook(_: Any, arguments: Any) -> Any:
            joined = arguments[0].clone().unflatten(-1, (HEADS, -1))
            for head, added in self.off.items():
                if head.layer == layer:
                    joined[:, :, head.head] = 0 if added is None else joined[:, :, head.head] + added
            return (joined.flatten(-2),)

        return hook

    def log_probabilities(self, at: int, off: Mapping[Head, Any] | None = None) -> torch.Tensor:
        self.off = dict(off or {})
        logits: torch.Tensor = self.model(**self.inputs).logits[0, at]
        return logits.double().log_softmax(-1)


@cache
def _plain(folder: Path, family: str) -> Plain:
    return Plain(folder, family)


def plain_of(folder: Path, family: str) -> Plain:
    """The model that all tests of a folder share, with all heads on. Take your hooks off again."""
    plain = _plain(folder, family)
    plain.off = {}
    return plain


@pytest.mark.parametrize("family", lanes.some(ASKED, *LAYERS_FOR_WORDS))
def test_words_with_and_without_heads_are_those_of_transformers(family: str, tiny: Tiny, tiny_folder: Folder) -> None:
    encoder, plain = tiny(f"{family} words"), plain_of(tiny_folder(f"{family} words"), family)
    question = make_question(encoder, sentence(family))
    assert question.kind == (NEXT if family in CAUSAL else MASK)
    with torch.no_grad():
        before = plain.log_probabilities(question.place).numpy()
        after = plain.log_probabilities(question.place, dict.fromkeys(OFF)).numpy()
    assert question.piece == before.argmax()
    answer = study.compute_answer(encoder, Request(text=sentence(family), off=tuple(OFF), question=question))
    pieces = list_tokens(before, after, question.piece)
    assert answer.before == pytest.approx(np.exp(before[pieces]), abs=1e-5)
    assert answer.after == pytest.approx(np.exp(after[pieces]), abs=1e-5)
    assert answer.words == tuple(answers.format_word(encoder, piece) for piece in pieces)
    assert answer.divergence == pytest.approx(
        sum(np.exp(p) * (p - q) for p, q in zip(before, after, strict=True)), abs=1e-5
    )
    assert answer.best[0] == question.word
    assert answer.followed[0] == pytest.approx(np.exp(before[question.piece]), abs=1e-5)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_effects_on_a_word_are_those_of_single_passes(family: str, tiny: Tiny, tiny_folder: Folder) -> None:
    encoder, plain = tiny(f"{family} words"), plain_of(tiny_folder(f"{family} words"), family)
    question = make_question(encoder, sentence(family), word="the")
    effects = study.measure_effects(encoder, Request(text=sentence(family), question=question))
    with torch.no_grad():
        before = plain.log_probabilities(question.place).numpy()
        for head in (Head(0, 0), Head(1, 3), Head(2, 2)):
            after = plain.log_probabilities(question.place, {head: None}).numpy()
            nats = float((np.exp(before) * (before - after)).sum())
            assert effects.answer[head] == pytest.approx(nats, abs=1e-5)
            assert effects.score[head] == pytest.approx(after[question.piece] - before[question.piece], abs=1e-4)
            assert effects.changed[head] == (after.argmax() != before.argmax())
    assert effects.answer[effects.ranked("answer")[0]] == effects.answer.max()


@pytest.mark.parametrize("family", WORDLESS)
def test_a_model_that_cannot_be_asked_for_a_word_says_why(family: str, tiny: Tiny) -> None:
    with pytest.raises(ModelUnsupported, match=FAMILIES[family].no_words_reason):
        make_question(tiny(family), "The <mask> sat.")


def test_random_directions_stand_beside_the_effect_on_a_word(tiny: Tiny) -> None:
    encoder = tiny("bert words")
    question = make_question(encoder, sentence("bert"))
    request = Request(text=sentence("bert"), off=(Head(1, 2),), question=question)
    effect = study.measure_together(encoder, request)
    assert effect.random_answer.shape == (20,)
    assert (effect.random_answer > 0).all()
    assert effect.answer == pytest.approx(study.measure_effects(encoder, request).answer[1, 2], abs=1e-5)
    nothing = study.measure_together(encoder, replace(request, question=None))
    assert np.isnan([nothing.answer, nothing.score, nothing.changed]).all()
    assert np.isnan(nothing.random_answer).all()


def test_the_cosine_of_a_pair_is_that_of_the_mean_states(minilm: Encoder) -> None:
    text, other = "A man plays the guitar.", "Someone is making music."
    assert minilm.folder is not None
    question = make_question(minilm, text, other=other)
    assert question.kind == COSINE
    model, tokenizer = oracles.load_plain(minilm.folder)

    def cosine(*heads: Head) -> float:
        with torch.no_grad(), oracles.silence_heads(model, heads, minilm.heads):
            states = [model(**tokenizer(each, return_tensors="pt")).last_hidden_state for each in (text, other)]
        first, second = (each[0].double().mean(0) for each in states)
        return float(first @ second / first.norm() / second.norm())

    heads = (Head(0, 3), Head(4, 4))
    request = Request(text=text, off=heads, question=question)
    answer = study.compute_answer(minilm, request)
    assert answer.followed == pytest.approx((cosine(), cosine(*heads)), abs=1e-5)
    assert answer.divergence == pytest.approx(abs(cosine(*heads) - cosine()), abs=1e-5)
    part = study.measure_part(minilm, 4, [4], request)
    assert part.score[0, 0] == pytest.approx(cosine(Head(4, 4)) - cosine(), abs=1e-5)
    assert part.answer[0, 0] == abs(part.score[0, 0])
    assert np.isnan(part.changed).all()


def test_the_toy_answers_at_a_mask() -> None:
    toy = load("toy")
    question = make_question(toy, "the dog [MASK] the girl .")
    assert question.places == (3,)
    answer = study.compute_answer(toy, Request(text="the dog [MASK] the girl .", question=question))
    assert len(answer.words) == MAX_LISTED
    assert answer.before == pytest.approx(answer.after)
    assert answer.divergence == 0
    assert answer.before.max() == answer.followed[0] > 0.05


# ---- Questions that cannot be asked ------------------------------------------------------------------------------


def test_what_cannot_be_asked_is_said(minilm: Encoder, tiny: Tiny) -> None:
    bert, gpt = tiny("bert words"), tiny("gpt2 words")
    with pytest.raises(TextError, match=r"no \[MASK\]"):
        make_question(bert, "The animal was tired.")
    pieces = bert.vocabulary.tokenize("The [MASK] was [MASK].")
    first, second = (place for place, piece in enumerate(pieces, 1) if piece == "[MASK]")
    with pytest.raises(TextError, match=f"2 masked tokens: {first}, {second}"):
        make_question(bert, "The [MASK] was [MASK].")
    assert make_question(bert, "The [MASK] was [MASK].", place=second).place == second
    with pytest.raises(SettingError, match="Token 1 is not masked"):
        make_question(bert, "The [MASK] was [MASK].", place=1)
    with pytest.raises(TextError, match=r"“antidisestablishment” is \d+ tokens"):
        make_question(gpt, "The animal", word="antidisestablishment")
    with pytest.raises(TextError, match="not in the vocabulary"):
        make_question(bert, "The [MASK].", word="ø")
    with pytest.raises(EmptyText):
        make_question(bert, "The [MASK].", word="  ")
    with pytest.raises(EmptyText):
        make_question(minilm, "One text.", other=" \n")


@pytest.mark.parametrize(
    ("model", "text", "settings", "message"),
    [
        ("toy", "the dog .", {"other": "the cat .", "word": "dog"}, "word does not go with other"),
        ("toy", "the dog .", {"other": "the cat .", "place": 3}, "place does not go with other"),
        ("toy", "the [MASK] .", {"off_in": "second"}, "off_in goes with other"),
        ("toy", "the [MASK] .", {"off_in": "nowhere"}, "“nowhere” is not one of the two texts"),
        ("repeater", "dog river anna dog", {"place": 0}, "predicts the next token only"),
    ],
)
def test_settings_that_a_question_does_not_use_are_refused(
    model: str, text: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        make_question(load(model), text, **settings)


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_a_model_whose_files_lack_the_weights_for_words_says_so(family: str, tiny: Tiny) -> None:
    with pytest.raises(ModelUnsupported, match=r"its files lack the weights for that \(such as (cls|lm_head)"):
        make_question(tiny(family), sentence(family))
    assert make_question(tiny(family), sentence(family), other=OTHER).kind == COSINE


def test_sentence_encoders_and_untrained_models_have_no_words(minilm: Encoder) -> None:
    with pytest.raises(ModelUnsupported, match="“minilm” cannot predict words"):
        make_question(minilm, "A [MASK].")
    with pytest.raises(ModelUnsupported, match="random"):
        make_question(load("toy").untrained(), "A [MASK].")


def test_words_of_byte_pairs_may_leave_out_their_blank(tiny: Tiny) -> None:
    encoder = tiny("gpt2 words")
    by_blank, plain = (make_question(encoder, "The animal", word=word) for word in ("␣the", "the"))
    assert by_blank == plain
    assert by_blank.word == "␣the"
    assert encoder.vocabulary.convert_ids_to_tokens(by_blank.piece) == "Ġthe"


def test_a_word_of_the_vocabulary_keeps_its_name(tiny: Tiny) -> None:
    for family in ("bert", "gpt2", "llama", "roberta", "xlm-roberta"):
        encoder = tiny(f"{family} words")
        for piece in range(len(encoder.vocabulary)):
            name = answers.format_word(encoder, piece)
            assert name, (family, piece)
            assert name.isprintable() or not encoder.vocabulary.convert_ids_to_tokens(piece).isprintable()


# ---- Numbers -----------------------------------------------------------------------------------------------------


def test_divergence_and_cosine_worked_out_by_hand() -> None:
    p, q = np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.5, 0.25])
    assert compute_divergences(np.log(p), np.log(q)) == pytest.approx(0.25 * np.log(2))
    assert compute_divergences(np.log(p), np.log(p)) == 0
    with np.errstate(divide="ignore"):
        assert compute_divergences(np.log([0.0, 1.0]), np.log([0.5, 0.5])) == pytest.approx(np.log(2))
    assert compute_cosines(np.array([3.0, 4.0]), np.array([[4.0, 3.0], [0.0, 0.0]])) == pytest.approx([0.96, 0.0])
    before, after = np.zeros(40), np.zeros(40)
    before[:12], after[30:] = np.arange(12, 0, -1), 1
    assert list_tokens(before, after, 20) == [*range(10), *range(30, 40), 20]


# ---- Gradients ---------------------------------------------------------------------------------------------------


# Families whose passes differ, and one whose linear layers include their activation.
@pytest.mark.parametrize("family", lanes.some(DIFFERENTIABLE, *GRADIENTS))
def test_gradients_are_those_of_autograd(family: str, tiny: Tiny, tiny_folder: Folder) -> None:
    encoder, plain = tiny(f"{family} words"), plain_of(tiny_folder(f"{family} words"), family)
    question = make_question(encoder, sentence(family))
    outputs = plain.model(**plain.inputs, output_attentions=True)
    score = outputs.logits[0, question.place].log_softmax(-1)[question.piece]
    gradients = torch.autograd.grad(score, outputs.attentions)
    reading = gradient_weighted(encoder, sentence(family))
    assert reading.quantity == "gradient"
    for layer, (weights, gradient) in enumerate(zip(outputs.attentions, gradients, strict=True)):
        expected = (weights * gradient)[0].detach().numpy()
        assert np.abs(reading.weights[layer] - expected).max() <= 1e-5
    assert (reading.weights < 0).any()
    assert (reading.weights > 0).any()


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_gradients_are_the_slopes_of_the_score(family: str, tiny: Tiny, tiny_folder: Folder) -> None:
    """Weight (i, j) of a head grows a little, so that its output at i grows by that multiple of value j."""
    encoder = tiny(f"{family} words")
    plain = Plain(tiny_folder(f"{family} words"), family, double=True)
    question = make_question(encoder, sentence(family))
    reading = gradient_weighted(encoder, sentence(family))
    weights = encoder.encode(sentence(family)).weights
    values: list[torch.Tensor] = []

    class Values(Tap):
        def layer(self, index: int, query: Any, key: Any, value: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
            values.append(value[0].double())
            return output

    encoder.through(sentence(family), tap=Values)
    small, n = 1e-4, weights.shape[2]
    for head, i, j in ((Head(0, 1), 5, 2), (Head(1, 0), n - 1, 3), (Head(2, 3), question.place, 1)):
        added = torch.zeros(n, values[0].shape[-1], dtype=torch.double)
        added[i] = small * values[head.layer][head.head, j]
        with torch.no_grad():
            up, down = (
                plain.log_probabilities(question.place, {head: sign * added})[question.piece] for sign in (1, -1)
            )
        slope = float(up - down) / (2 * small)
        assert reading[head][i, j] == pytest.approx(weights[head][i, j] * slope, rel=1e-3, abs=1e-6)


def test_gradients_of_a_cosine_are_those_of_autograd(minilm: Encoder) -> None:
    text, other = "A man plays the guitar.", "Someone is making music."
    assert minilm.folder is not None
    model, tokenizer = oracles.load_plain(minilm.folder)
    first = model(**tokenizer(text, return_tensors="pt"), output_attentions=True)
    second = model(**tokenizer(other, return_tensors="pt")).last_hidden_state[0].mean(0).detach()
    score = torch.cosine_similarity(first.last_hidden_state[0].mean(0), second, dim=0)
    gradients = torch.autograd.grad(score, first.attentions)
    reading = gradient_weighted(minilm, text, other=other)
    assert reading.made == ("typed", f"gradient × weight of the cosine with “{other}”")
    for layer, (weights, gradient) in enumerate(zip(first.attentions, gradients, strict=True)):
        assert np.abs(reading.weights[layer] - (weights * gradient)[0].detach().numpy()).max() <= 1e-6


@pytest.mark.parametrize("family", COPIED)
def test_gradients_of_weights_that_transformers_gives_a_copy_of(
    family: str, tiny: Tiny, tiny_folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, tokenizer = oracles.load_plain(tiny_folder(family))
    with torch.no_grad():
        second = model(**tokenizer(OTHER, return_tensors="pt")).last_hidden_state[0].mean(0)
    made: list[torch.Tensor] = []
    usual = torch.nn.functional.softmax
    monkeypatch.setattr(torch.nn.functional, "softmax", lambda *a, **k: made.append(usual(*a, **k)) or made[-1])
    states = model(**tokenizer("The cat sat on the mat.", return_tensors="pt")).last_hidden_state[0]
    score = torch.cosine_similarity(states.mean(0), second, dim=0)
    gradients = torch.autograd.grad(score, made)
    monkeypatch.undo()
    question = make_question(tiny(family), "The cat sat on the mat.", other=OTHER)
    answer = study.compute_answer(tiny(family), Request(text="The cat sat on the mat.", question=question))
    assert answer.before == pytest.approx(float(score.detach()), abs=1e-5)
    reading = gradient_weighted(tiny(family), "The cat sat on the mat.", other=OTHER)
    for layer, (weights, gradient) in enumerate(zip(made, gradients, strict=True)):
        expected = (weights * gradient).detach()
        if family == "longformer":  # [1, padded n, head, place in the window]
            expected = unfold(expected[:, : len(states)].transpose(1, 2))
        assert np.abs(reading.weights[layer] - expected[0].numpy()).max() <= 1e-5


def test_a_gradient_that_is_not_finite_is_refused(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = torch.autograd.grad
    monkeypatch.setattr(torch.autograd, "grad", lambda *a, **k: [g * float("nan") for g in usual(*a, **k)])
    with pytest.raises(ReadingFailed, match="not a finite number"):
        gradient_weighted(tiny("bert words"), sentence("bert"))


def test_reading_with_gradients_leaves_the_model_as_it_was(tiny: Tiny) -> None:
    encoder = tiny("bert words")
    before = encoder.encode(sentence("bert")).weights
    weighted = gradient_weighted(encoder, sentence("bert"))
    assert weighted.key != gradient_weighted(encoder, sentence("bert"), word="the").key
    assert np.array_equal(encoder.encode(sentence("bert")).weights, before)
    assert all(parameter.grad is None for parameter in encoder.module("").parameters())


# ---- Direct contributions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", lanes.some(NORMED, *(name for name in LAYERS_FOR_WORDS if name in NORMED)))
def test_direct_contributions_are_what_is_missing_at_the_last_norm(
    family: str, tiny: Tiny, tiny_folder: Folder
) -> None:
    """A head's part is removed from the input of the final norm and from nothing else: the norm keeps its scale."""
    encoder, plain = tiny(f"{family} words"), plain_of(tiny_folder(f"{family} words"), family)
    question = make_question(encoder, sentence(family), word="the")
    added = direct_contributions(encoder, question, sentence(family))
    assert added.shape == (LAYERS, HEADS)
    base, model = plain.model.base_model, plain.model
    outputs: dict[int, torch.Tensor] = {}
    given: list[torch.Tensor] = []
    norm = base.get_submodule(FAMILIES[family].final_norm)
    with torch.no_grad(), ExitStack() as hooks:
        for layer in range(LAYERS):
            hook = find_attention_modules(base, layer).output.register_forward_pre_hook(
                lambda _, inputs, layer=layer: outputs.__setitem__(layer, inputs[0][0, question.place])
            )
            hooks.callback(hook.remove)
        hook = norm.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0][0, question.place]))
        hooks.callback(hook.remove)
        model(**plain.inputs)
        row = model.get_output_embeddings().weight[question.piece] * getattr(model, "logit_scale", 1)
        state = given[0]
        for layer in range(LAYERS):
            module = find_attention_modules(base, layer).output
            w_o = module.weight if family == "gpt2" else module.weight.T  # [head · d_head, d_model]
            width = outputs[layer].shape[0] // HEADS
            for head in range(HEADS):
                columns = slice(head * width, (head + 1) * width)
                moved = outputs[layer][columns] @ w_o[columns]
                if type(norm).__name__.endswith("RMSNorm"):
                    scaled = moved / (state.square().mean() + norm.variance_epsilon).sqrt() * norm.weight
                else:
                    eps = norm.eps if isinstance(norm, torch.nn.LayerNorm) else norm.variance_epsilon
                    spread = (state.var(unbiased=False) + eps).sqrt()
                    scaled = (moved - moved.mean()) / spread * norm.weight
                assert added[layer, head] == pytest.approx(float(scaled @ row), abs=2e-5)


@pytest.mark.parametrize("family", ["bert", "gemma2", "modernbert"])
def test_direct_contributions_that_cannot_be_read_off_are_refused(family: str, tiny: Tiny) -> None:
    encoder = tiny(f"{family} words")
    question = make_question(encoder, sentence(family))
    with pytest.raises(ModelUnsupported, match="cannot be computed"):
        direct_contributions(encoder, question, sentence(family))


# ---- Importance --------------------------------------------------------------------------------------------------


def test_importance_is_that_of_autograd(tiny: Tiny, tiny_folder: Folder) -> None:
    encoder, plain = tiny("bert words"), plain_of(tiny_folder("bert words"), "bert")
    question = make_question(encoder, sentence("bert"))
    outputs: list[torch.Tensor] = []

    def keep(_: Any, arguments: Any) -> Any:
        outputs.append(arguments[0].clone())
        return (outputs[-1],)

    hooks = [
        find_attention_modules(plain.model.base_model, layer).output.register_forward_pre_hook(keep)
        for layer in range(LAYERS)
    ]
    loss = -plain.log_probabilities(question.place)[question.piece]
    for hook in hooks:
        hook.remove()
    gradients = torch.autograd.grad(loss, outputs)
    values = compute_importance(encoder, question, sentence("bert"))
    for layer, (output, gradient) in enumerate(zip(outputs, gradients, strict=True)):
        products = [
            [float((o @ g).detach()) for o, g in zip(output[0, :, c], gradient[0, :, c], strict=True)]
            for c in (slice(8 * head, 8 * head + 8) for head in range(HEADS))
        ]
        sizes = np.array([np.mean(np.abs(each)) for each in products])
        assert values[layer] == pytest.approx(sizes / np.linalg.norm(sizes), abs=1e-4)
