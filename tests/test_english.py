"""Words of English texts without a tagger: function words, pronouns, what may be a noun; and other languages."""

from __future__ import annotations

import pytest

from mha_viz.text.english import find_nouns, is_closed_class, is_code, is_pronoun
from mha_viz.text.languages import detect_language, has_other_letters


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The trophy does not fit in the suitcase because it is too big .", "trophy suitcase"),
        ("The lawyer called the witness because he was late .", "lawyer witness"),
        ("The call surprised her : she had to call again .", "call"),
        ("Yesterday Anna visited Paris .", "Anna Paris"),
        ("Unfortunately , the old building burned .", "building"),
        ("Building it took the king’s men ten years .", "king’s men years"),
        ("THE CAPTAIN SOLD THE SHIP .", "CAPTAIN SHIP"),
        ("They go to London and read books .", "London books"),
        ("He saw dogs and fed them .", "dogs"),
        ("The rich gave the poor two cuts and a cut .", "cuts cut"),
        ("Two broke , three hit , and the old saw fell .", ""),
        ("- Quickly the strong beat others . Pour the water !", "water"),
        ("Meanwhile , Suddenly was sold .", "Suddenly"),
        ("I said I know what you mean , okay ?", ""),
        ("In 2024 it rained .", ""),
        ("", ""),
    ],
)
def test_what_may_be_a_noun_or_a_name(text: str, found: str) -> None:
    words = text.split()
    assert [word for word, is_noun in zip(words, find_nouns(words), strict=True) if is_noun] == found.split()


@pytest.mark.parametrize(
    "text",
    [
        "def he(it): return it",
        "for i in it: print(he)",
        "if (it) { stop }",
        "it += 1",
        "x -> it",
        "<b>it</b>",
        "it.bark()",
        "dog[it]",
        "int it;",
        "import dogs as it",
        "while it: break",
        "SELECT it FROM dogs",
        "cat dog | grep it",
        "dog && it",
        "dog::it",
        "echo $it",
    ],
)
def test_a_program_is_recognised(text: str) -> None:
    assert is_code(text)


@pytest.mark.parametrize(
    "text",
    [
        "The dog (it) barked.",
        "The student(s) lost their keys; they wept.",
        "The dog[1] barked: it slept.",
        "See https://a.b/c?it=3, where it is.",
        "NASA(USA) built it.",
        "It cost $5 or 5 $, and he paid.",
        "Import it from there!",
        "He said: it returns.",
        "I :( and she :)",
        "3 < 4, and it is - as he/she said - true!",
        "",
    ],
)
def test_a_text_with_brackets_is_no_program(text: str) -> None:
    assert not is_code(text)


@pytest.mark.parametrize("word", ["the", "Because", "THEY", "didn't", "it’s", "won't", "you'll", "cannot", "I"])
def test_a_function_word_may_be_contracted_or_in_capitals(word: str) -> None:
    assert is_closed_class(word)


@pytest.mark.parametrize("word", ["dog", "dog's", "well-known", "n't-like", "'s", "42", "DOG", "über"])
def test_other_words_are_none(word: str) -> None:
    assert not is_closed_class(word)


def test_third_person_pronouns() -> None:
    assert all(
        map(is_pronoun, ["he", "HIM", "his", "himself", "She's", "hers", "it’ll", "its", "they're", "themselves"])
    )
    assert not any(map(is_pronoun, ["I", "you", "we", "who", "that", "one", "here", "itch", ""]))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Der Hund bellte laut , weil er hungrig war .", "de"),
        ("Es war in der Stadt so still .", "de"),
        ("Le chat dort sur le canapé parce qu'il est fatigué .", "fr"),
        ("El perro no cruzó la calle porque estaba cansado .", "es"),
        ("Il cane non ha attraversato la strada perché era stanco .", "it"),
        ("O cão não atravessou a rua porque estava cansado .", "pt"),
        ("De hond blafte omdat hij honger had .", "nl"),
        ("The animal did not cross the street .", "en"),
        ("Maria de la Cruz lost her keys .", "en"),
        ("The man wore a hat in the den .", "en"),
        ("Soldiers die when war comes .", "en"),
        ("Oscar de la Hoya hurt himself .", "en"),
        ("Juan de la Cruz , Oscar de los Santos and El Greco met .", "en"),
        ("Ludwig van der Berg flew to Rio de Janeiro , Las Vegas and Los Angeles .", "en"),
        ("Ursula von der Leyen left .", ""),
        ("Dan met Ben as Era Con men sat on Big Sur .", "en"),
        ("Her son hit a ton of sand over in the UN .", "en"),
        ("A crème de la crème is no pièce de résistance .", ""),
        ("The bin was hot and the hut so man hid .", "en"),
        ("I was in Rome and saw a man die .", "en"),
        ("I am so hot in an oven", "en"),
        ("asdf qwer zxcv", ""),
        ("Mitochondria produce adenosine triphosphate .", ""),
        ("", ""),
    ],
)
def test_a_language_is_recognised_by_its_function_words_or_not_at_all(text: str, language: str) -> None:
    assert detect_language(text.split()) == language


@pytest.mark.parametrize("text", ["собака", "I met 李雷", "الكلب", "Ωραία", "हिन्दी", "ひらがな", "한국어"])
def test_letters_of_another_script(text: str) -> None:
    assert has_other_letters(text.split())


@pytest.mark.parametrize(
    "text", ["Hello 🍕 😀", "ÄÖÜ ß naïve Łódź", "α + β = 1", "x² ≤ ½", "ＨＥＬＬＯ", "𝓗𝓲", "5 µm", "→ ☃ ©", ""]
)
def test_emoji_symbols_and_latin_letters_are_none(text: str) -> None:
    assert not has_other_letters(text.split())
