"""Outputs of heads on other texts and on random sentences, in place of their own, and in which of two texts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

import mha_viz as mv
from mha_viz.attention import Head, Weights
from mha_viz.corpus import grammar
from mha_viz.errors import MhaVizError, SettingError
from mha_viz.figures.layout import figure_code
from mha_viz.models.intervening import other_texts
from mha_viz.models.intervening.gradients import compute_importance, gradient_weighted
from mha_viz.models.reading.answers import make_question
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.probe import find_attention_modules
from mha_viz.request import Request
from mha_viz.study import effects
from tests import oracles

Tiny = Callable[[str], Encoder]
TEXT, SOURCE, LONGER = "A cat is a dog.", "A dog is a cat.", "The fox was quick and it is a cat."
FORMS = (("The", "animal", "jumps"), ("The", "fox", "was", "quick"), ("It", "is"))
HEAD = Head(1, 2)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_another_text_is_that_of_hooks(family: str, tiny: Tiny, tiny_folder: Callable[[str], Path]) -> None:
    model, tokenizer = oracles.load_plain(tiny_folder(family))
    inputs = [tokenizer(text, return_tensors="pt") for text in (TEXT, SOURCE)]
    size, kept = model.config.hidden_size // model.config.num_attention_heads, list[torch.Tensor]()

    def replaces(_: Any, given: Any) -> Any:
        joined = given[0].clone()
        if kept:
            joined[..., HEAD.head * size :][..., :size] = kept[0][..., HEAD.head * size :][..., :size]
        else:
            kept.append(joined)
        return (joined,)

    hook = find_attention_modules(model, HEAD.layer).output.register_forward_pre_hook(replaces)
    with torch.no_grad():
        model(**inputs[1])
        weights = oracles.collect_attentions(model, model(**inputs[0], output_attentions=True))
    hook.remove()
    ours = mv.ablate(tiny(family), [HEAD], TEXT, method="text", source=SOURCE)
    assert np.abs(ours.weights - torch.cat(weights).numpy()).max() <= 1e-5
    assert np.abs(ours.weights[2] - tiny(family).encode(TEXT).weights[2]).max() > 1e-3
    assert ours.made[1:] == (f"without L1H2: text “{SOURCE}”",)


def by_hand(encoder: Encoder, text: str) -> Weights:
    """Outputs on random ones of FORMS, token by token."""
    ids, special = tuple(encoder.pieces(text).ids), encoder.encode(text).text.special
    order = Random(f"0 {ids}").sample(range(len(FORMS)), len(FORMS))
    drawn = (encoder.read_words(FORMS[number]) for number in cycle(order))
    outputs = ((other_texts.compute_outputs(encoder, read), read.words) for read in drawn)
    first, words = next(outputs)
    tokens, running = [], [first[:, at] for at, word in enumerate(words) if word is not None]
    ends = [first[:, at] for at, word in enumerate(words) if word is None]
    for is_special in special:
        if not is_special and not running:
            more, words = next(outputs)
            running = [more[:, at] for at, word in enumerate(words) if word is not None]
        tokens.append((ends if is_special else running).pop(0))
    return np.stack(tokens, axis=1)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_random_sentences_follow_each_other_and_depend_on_the_text(family: str, tiny: Tiny) -> None:
    encoder = tiny(family)
    for text in (TEXT, LONGER):
        values = other_texts.compute_outputs_on_sentences(encoder, encoder.pieces(text), FORMS)
        assert np.array_equal(values, by_hand(encoder, text))
    request, of_forms = Request(text=TEXT, method="resample"), partial(effects.substitute, sentences=FORMS)
    ways = (of_forms, of_forms, effects.substitute)
    one, again, other = (effects.measure_changes(encoder, [[HEAD]], request, by).sentence for by in ways)
    assert one == again != other


def test_a_text_is_not_drawn_for_itself(tiny: Tiny) -> None:
    read = tiny("bert").read_words(FORMS[0])
    others = other_texts.compute_outputs_on_sentences(tiny("bert"), read, [FORMS[0], FORMS[2]])
    assert np.array_equal(others, other_texts.compute_outputs_on_sentences(tiny("bert"), read, [FORMS[2]]))
    with pytest.raises(SettingError, match="no other sentence"):
        other_texts.compute_outputs_on_sentences(tiny("bert"), read, [FORMS[0], ("word",) * 999])
    masked = tiny("bert").read_words((str(tiny("bert").vocabulary.mask_token), *FORMS[0][1:]))
    with pytest.raises(SettingError, match="no other sentence"):
        other_texts.compute_outputs_on_sentences(tiny("bert"), masked, [FORMS[0]])


def test_special_tokens_take_other_outputs_where_sentences_have_none(tiny: Tiny) -> None:
    reading = mv.ablate(tiny("gpt2"), ["L1H1"], "A cat<|endoftext|> is a dog.", method="resample")
    assert reading.text.special.count(True) == 1
    assert np.isfinite(reading.weights).all()


def test_what_a_method_does_not_take_is_not_said_to_be_taken(toy: Encoder) -> None:
    plain = mv.ablate(toy, [HEAD], TEXT)
    assert mv.ablate(toy, [HEAD], TEXT, source="Another text.").key == plain.key
    with pytest.raises(SettingError, match="cannot be drawn from mean outputs"):
        mv.corpus_ablation_effects(
            "grammar", ["L0H0"], toy, method="resample", means=np.zeros((2, 4, 16), np.float32), most=2
        )


def test_a_corpus_is_resampled_sentence_by_sentence(minilm: Encoder) -> None:
    corpus, encoder = grammar.corpus(4), minilm
    forms = [sentence.forms for sentence in corpus.sentences]
    measured = mv.corpus_ablation_effects(corpus, [HEAD], encoder, method="resample")
    each, by = (
        [Request(words=words, method="resample") for words in forms],
        partial(effects.substitute, sentences=forms),
    )
    expected = np.mean([effects.measure_changes(encoder, [[HEAD]], request, by).sentence[0] for request in each])
    assert measured.rows[0].effect == pytest.approx(expected, abs=1e-12)
    assert measured.method == "resample over grammar"
    others = mv.corpus_ablation_effects(corpus, [HEAD], encoder, method="resample", means=grammar.corpus(4, seed=1))
    assert others.rows[0].effect != measured.rows[0].effect
    with pytest.raises(SettingError, match="cannot take every sentence’s place"):
        mv.corpus_ablation_effects(corpus, [HEAD], encoder, method="text")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (TEXT, "Both texts are the same"),
        ("", "no text to take outputs from"),
        ("It is.", "has 6 words, .* has 3, punctuation marks included.* Lengthen the shorter"),
        ("A cat is a [SEP] dog.", "Special tokens"),
        (7, "is int, not a text"),
    ],
)
def test_what_outputs_cannot_be_taken_from_is_said(source: Any, says: str, minilm: Encoder) -> None:
    with pytest.raises(MhaVizError, match=says):
        mv.ablate(minilm, [HEAD], TEXT, method="text", source=source)


def test_the_line_that_makes_a_reading_again_names_the_text(minilm: Encoder) -> None:
    reading = mv.ablate(minilm, [HEAD], TEXT, method="text", source=SOURCE)
    names: dict[str, Any] = {"mv": mv}
    exec(figure_code._write_reading("a", reading), names)
    assert names["a"].key == reading.key


def test_one_text_is_resampled_from_given_sentences(toy: Encoder) -> None:
    masked = "the dog [MASK] the girl ."
    sentences = [["the", "cat", "sees", "the", "boy", "."], ["the", "girl", "sleeps", "."]]
    asked = {"word": "sees", "method": "resample"}
    ours = mv.ablation_effects(toy, masked, **asked, sentences=sentences)
    request = Request(text=masked, method="resample", question=make_question(toy, masked, word="sees"))
    by = partial(effects.substitute, sentences=sentences)
    assert (ours.sentence == effects.measure_effects(toy, request, make_substitute=by).sentence).all()
    assert (ours.sentence != mv.ablation_effects(toy, masked, **asked).sentence).any()
    for name, given in {"means": "grammar", "source": masked}.items():
        with pytest.raises(SettingError, match=f"{name}= goes with the method"):
            mv.ablation_effects(toy, masked, **asked, **{name: given})


# ---- In which of two texts --------------------------------------------------------------------------------------


def cosine(one: Weights, other: Weights) -> float:
    first, second = (states.astype(np.float64).mean(0) for states in (one, other))
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def test_heads_are_off_in_the_texts_that_the_question_says(minilm: Encoder) -> None:
    whole = [minilm.states(text)[0] for text in (TEXT, LONGER)]
    zero = [
        effects._compute_states(minilm, [[HEAD]], Request(text=text), effects.substitute)[0][0]
        for text in (TEXT, LONGER)
    ]
    for off_in, ends in {"both": zero, "first": (zero[0], whole[1]), "second": (whole[0], zero[1])}.items():
        request = Request(text=TEXT, question=make_question(minilm, TEXT, other=LONGER, off_in=off_in))
        expected = cosine(*ends) - cosine(*whole)
        assert effects.measure_changes(minilm, [[HEAD]], request).score[0] == pytest.approx(expected, abs=1e-6)
        assert effects.measure_part(minilm, HEAD.layer, [HEAD.head], request).score[0, 0] == pytest.approx(
            expected, abs=1e-6
        )


def test_importance_is_a_mean_over_the_tokens_of_those_texts(minilm: Encoder) -> None:
    values = {
        off_in: compute_importance(minilm, make_question(minilm, TEXT, other=LONGER, off_in=off_in), TEXT)
        for off_in in ("both", "first", "second")
    }
    swapped = compute_importance(minilm, make_question(minilm, LONGER, other=TEXT, off_in="first"), LONGER)
    assert np.allclose(values["second"], swapped, atol=1e-6)
    between = sorted([values["first"], values["second"]], key=lambda each: each[0, 0])
    assert between[0][0, 0] < values["both"][0, 0] < between[1][0, 0]


def test_a_gradient_is_drawn_on_the_text_that_the_question_says(minilm: Encoder) -> None:
    first, second = (gradient_weighted(minilm, TEXT, other=LONGER, off_in=off_in) for off_in in ("both", "second"))
    assert (first.text.text, second.text.text) == (TEXT, LONGER)
    assert second.quantity == "gradient"
    swapped = gradient_weighted(minilm, LONGER, other=TEXT, off_in="first")
    assert (second.weights == swapped.weights).all()
    assert second.key == swapped.key, "it says how it is made again"
    with pytest.raises(SettingError, match="needs the first text without a pair"):
        gradient_weighted(minilm, TEXT, "It is.", other=LONGER, off_in="second")
    with pytest.raises(SettingError, match="“third” is not one of the two texts"):
        make_question(minilm, TEXT, other=SOURCE, off_in="third")


def test_heads_from_the_second_text_change_nothing_in_it(minilm: Encoder) -> None:
    questions = (make_question(minilm, TEXT, other=SOURCE, off_in=off_in) for off_in in ("both", "first"))
    requests = [Request(text=TEXT, method="text", source=SOURCE, question=question) for question in questions]
    both, first = (effects.measure_changes(minilm, [[HEAD]], request).score for request in requests)
    assert both == first != 0
