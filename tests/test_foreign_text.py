"""A text in a language that the model has hardly seen is told by its pieces."""

from __future__ import annotations

import pytest

from mha_viz.models.encoder import Encoder
from mha_viz.ui.inference import split_words

pytestmark = pytest.mark.app


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("Das Tier überquerte die Straße nicht, weil es zu müde war.", "5 of 11 different words"),
        ("El perro no cruzó la calle porque estaba demasiado cansado.", "7 of 10 different words"),
        ("Le chat dort sur le canapé parce qu'il est fatigué.", "4 of 9 different words"),
        ("The animal didn't cross the street because it was too tired.", ""),
        ("Unfortunately, the electroencephalographer misdiagnosed him.", ""),
        ("Colorless green ideas sleep furiously.", ""),
        ("qwertz asdfgh jklyx", ""),  # too few words to tell a language by
        ("12 + 30 = 42", ""),
        ("the the the the the the the the", ""),
    ],
)
def test_a_language_is_told_by_its_pieces(minilm: Encoder, text: str, beginning: str) -> None:
    words = split_words(minilm.encode(text))
    assert words.startswith(beginning)
    assert bool(words) == bool(beginning)
