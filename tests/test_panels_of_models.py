"""Panels of readings by several tokenizers, as the page compares them."""

from __future__ import annotations

from collections.abc import Callable

from mha_viz.app.service.caches import load_first_reading
from mha_viz.attention import Head
from mha_viz.figures.layout.panels import Panel, pack_comparison
from mha_viz.models.reading.encoder import Encoder
from tests.packets import unpack_panels
from tests.page_scripts import ask_panels
from tests.sentences import TIRED


def test_words_of_one_text_meet_across_tokenizers(tiny: Callable[[str], Encoder]) -> None:
    families = ("roberta", "gpt2", "albert")
    others = [tiny(family).encode(TIRED) for family in families]
    packets = [pack_comparison([Panel(load_first_reading(), Head(3, 1)), Panel(other, Head(0, 0))]) for other in others]
    ask = {"ask": "counterparts", "of": [0, 1]}
    asked = [ask | {"packet": packet, "view": {"unit": unit}} for packet in packets for unit in ("words", "pieces")]
    answers = ask_panels(*asked)
    for family, met, pieces in zip(families, answers[::2], answers[1::2], strict=True):
        ordinary = [(word, theirs) for word, theirs in met if not word.startswith("[")]
        assert ordinary == [(word, [word]) for word, _ in ordinary], family
        assert len(ordinary) == 12, family
        animal = next(theirs for word, theirs in pieces if word == "animal")
        assert "".join(animal).replace("##", "").strip("▁ ").casefold().startswith("an"), family
        assert len(animal) > 1, family


def test_a_model_without_special_tokens_is_subtracted_where_they_are_hidden(tiny: Callable[[str], Encoder]) -> None:
    packet = pack_comparison([Panel(load_first_reading(), Head(3, 1)), Panel(tiny("gpt2").encode(TIRED), Head(0, 0))])
    ask = {"packet": packet, "ask": "difference", "of": [0, 1]}
    shown, hidden, pieces = ask_panels(ask, ask | {"view": {"special": "hide"}}, ask | {"view": {"unit": "pieces"}})
    assert shown == {"remedy": {"special": "hide"}}
    assert hidden["rows"][:2] == ["The", "animal"]
    assert pieces == {"remedy": {"unit": "words", "special": "hide"}}
    assert unpack_panels(packet)["divergence"][0][1] is None
