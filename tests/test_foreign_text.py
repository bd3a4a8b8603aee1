"""A text in a language that the model has hardly seen is recognised by its pieces."""

from __future__ import annotations

import pytest

from mha_viz.app.widgets.inference import MULTILINGUAL, describe_split_words
from mha_viz.models.reading.encoder import Encoder
from tests.page_session import PageSession
from tests.waiting import until

pytestmark = pytest.mark.app


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("Das Tier überquerte die Straße nicht, weil es zu müde war.", "it splits 5 of these 11 words"),
        ("El perro no cruzó la calle porque estaba demasiado cansado.", "it splits 7 of these 10 words"),
        ("Le chat dort sur le canapé parce qu'il est fatigué.", "it splits 4 of these 9 words"),
        ("The animal didn't cross the street because it was too tired.", ""),
        ("Unfortunately, the electroencephalographer misdiagnosed him.", ""),
        ("Colorless green ideas sleep furiously.", ""),
        ("Photosynthesis converts sunlight into carbohydrates.", ""),
        ("Mitochondria produce adenosine triphosphate.", ""),
        ("She plays Minecraft, Fortnite, Valorant.", ""),
        ("qwertz asdfgh jklyx", ""),  # too few words to recognise a language
        ("12 + 30 = 42", ""),
        ("the the the the the the the the", ""),
    ],
)
def test_a_language_is_told_by_its_pieces(minilm: Encoder, text: str, beginning: str) -> None:
    words = describe_split_words(minilm.encode(text))
    assert words.startswith(beginning)
    assert bool(words) == bool(beginning)


@pytest.mark.usefixtures("no_hub")
def test_the_model_of_many_languages_is_a_click_away_and_where_it_cannot_be_had_nothing_is_lost() -> None:
    text = "Кошка спит на диване, потому что она устала."
    visit = PageSession({"text": text, "head": "L2H4"})
    assert "was trained on English" in visit.said
    visit.at.button(key="read_multilingual").click().run()
    assert visit.url == {"text": text, "model": MULTILINGUAL}

    def is_refused() -> bool:
        visit.at.run()
        visit.check()
        return "Try again" in [button.label for button in visit.at.button]

    until(is_refused)
    assert "cannot be reached" in visit.said
    assert "Shown below instead: MiniLM" in visit.said
    assert visit.typed["text"] == text
    assert visit.shown().header["model"] == "minilm"
    visit.at.button(key="back_to_model").click().run()
    assert visit.url == {"text": text}
    assert "cannot be reached" not in visit.said


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize(
    ("text", "model", "is_offered"),
    [
        ("the zebra sleeps .", "toy", False),
        ("the собака sleeps .", "toy", True),
        ("Łukasz zjadł pięć pączków, więc źle śpi", "minilm", False),
        ("Das Tier überquerte die Straße nicht, weil es zu müde war.", "minilm", False),
        ("I LOVE THIS", "minilm", False),
        ("The angle α equals β.", "minilm", False),
        ("I met 李雷 yesterday.", "minilm", True),
    ],
)
def test_the_model_of_many_languages_is_offered_for_letters_of_another_script_alone(
    text: str, model: str, is_offered: bool
) -> None:
    visit = PageSession({"text": text, "model": model})
    assert ("read_multilingual" in [button.key for button in visit.at.button]) == is_offered


def test_a_word_that_the_tokenizer_does_not_know_is_named() -> None:
    assert "reads each as [UNK]: “zebra”" in PageSession({"text": "the zebra sleeps .", "model": "toy"}).said
