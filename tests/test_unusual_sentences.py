"""Check what Explore says of sentences as visitors type them, read by the model that comes with the app: first what a
pronoun refers to, never what is not there; and what it offers for words that the model does not know."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from mha_viz.attention import Head
from mha_viz.models.reading.encoder import Encoder
from mha_viz.numerals import decimal
from tests.page_session import PageSession

pytestmark = pytest.mark.app

HEADS = (Head(2, 4), Head(3, 1))  # known for third-person pronouns
LONG = (
    "When the young doctor finally arrived at the small hospital in the mountains late on a cold winter evening, the "
    "old nurse told him that his patient, a retired teacher who had taught her daughter mathematics many years ago, "
    "had already left with her family because she no longer believed that he would come through the heavy snow."
)


class Text(NamedTuple):
    """A text: its third-person pronouns and the nouns and names in it, of which a finding must speak if there are both;
    what has to be in what is said, and what must not; what of it is read as [UNK], and whether another model is
    offered."""

    text: str
    pronouns: str = ""
    nouns: str = ""
    says: str = ""
    never: tuple[str, ...] = ()
    unknown: str = ""
    offers: bool = False
    pair: str = ""


TEXTS = (
    # Puzzles: of things, of animals, of people; more than one pronoun; two sentences; capitals.
    Text("The trophy does not fit in the suitcase because it is too big.", "it", "trophy suitcase", "L3H1"),
    Text("The trophy does not fit in the suitcase because it is too small.", "it", "trophy suitcase", "trophy"),
    Text("The dog barked. It wanted to go outside.", "It", "dog", "“It” to “dog” (0.42"),
    Text("The lawyer called the witness because he was late.", "he", "lawyer witness"),
    Text("The nurse thanked the doctor because she had helped.", "she", "nurse doctor"),
    Text("The teacher praised the girl after she answered.", "she", "teacher girl", "(weak)"),
    Text("The truck zoomed by the bus because it was going so fast.", "it", "truck bus"),
    Text("The councilmen refused the demonstrators a permit because they feared violence.", "they",
         "councilmen demonstrators permit violence"),
    Text("The man couldn't lift his son because he was so heavy.", "his he", "man son"),
    Text("The bottle fell off the table. It broke.", "It", "bottle table"),
    Text("My neighbours bought a boat, but they never use it.", "they it", "neighbours boat"),
    Text("Susan knew that Ann's son had been in an accident because she told her about it.", "she her it",
         "Susan Ann's son accident"),
    Text("The engineers repaired the bridge themselves.", "themselves", "engineers bridge"),
    Text("THE CAPTAIN SOLD THE SHIP BECAUSE IT WAS OLD.", "IT", "CAPTAIN SHIP"),
    Text("Peter waved at Paul, and HE smiled.", "HE", "Peter Paul"),
    Text("It's late, so John took his coat.", "It's his", "John coat", "“his” to “John”", ("“It's” to",)),
    Text("The cook tasted the soup. He’d burnt it.", "He’d it", "cook soup"),
    Text("Berlin is large, and its parks are quiet.", "its", "Berlin parks"),
    Text("The queen wrote a letter and sealed it.", "it", "queen letter messenger", pair="The messenger read it."),
    Text("The artist finished the portrait.", "it", "artist portrait week", pair="Somebody bought it last week."),
    Text(LONG, "him his her she he", "doctor hospital mountains winter evening nurse patient teacher daughter "
         "mathematics years family snow"),
    # Pronouns without an earlier noun or name, and texts without a pronoun.
    Text("It is raining.", "It"),
    Text("He opened the door and walked in.", "He"),
    Text("When he was tired, the boy slept.", "he"),
    Text("She smiled, and they laughed loudly.", "She they"),
    Text("Bright stars shine quietly at night."),
    Text("Nobody here has ever been to Rome."),
    Text("Thanks!"),
    Text("I AM NOT DEAF BECAUSE I CAN HEAR.", never=("“NOT” to “BECAUSE”",)),
    # Other languages and scripts.
    Text("Der Hund bellte die ganze Nacht, weil er hungrig war.", never=("“Der” to “er”", "“er” to")),
    Text("Der Mann kam her, und der Hund sah ihn nicht mehr.", never=("“her” to “Mann”",)),
    Text("La niña no encontró su libro porque estaba debajo de la mesa."),
    Text("الكلب ينبح لأنه جائع جدا", offers=True),
    Text("小猫在椅子上睡觉。", unknown="猫 在 椅 睡 觉", offers=True),
    Text("Кошка спит на диване, потому что она устала.", offers=True),
    # What is no sentence, or no words.
    Text("I love 🍕 but 🚫 🍍 on it!", "it", unknown="🍕 🚫 🍍"),
    Text("😀 😀 😀 😀", unknown="😀"),
    Text("for i in range(10): print(i + 1)"),
    Text("asdf qwer zxcv hjkl uiop"),
    Text("qwertz asdfgh jklyx mnbvc poiuz"),
    # A word with a capital because a sentence begins with it, also the first one, is no name for this reason.
    Text("Suddenly it broke.", "it"),
    Text("Unfortunately, he lost his keys.", "he his"),
    Text("Broken by the storm, it sank.", "it", "storm"),
    Text("Carefully she opened the box.", "she"),
    Text("Tired and hungry, they went home.", "they"),
    Text("Sadly, her plan failed, and she wept.", "her she", "plan"),
    Text("Running down the hill, he fell.", "he", "hill"),
    Text("Surprised, she dropped it.", "she it"),
    Text("Quickly the boy hid his toys.", "his", "boy"),
    Text("Beautiful and bright, it shone.", "it"),
    Text("Yesterday she called. Quietly he answered.", "she he"),
    Text("Okay, they won.", "they"),
    Text("Afterwards it rained.", "it"),
    Text("Maria lost her keys.", "her", "Maria"),
    # Verbs, and links that are not there.
    Text("The rich gave the poor what they needed.", "they"),
    Text("Two broke it.", "it"),
    Text("In the morning she went there.", "she", "morning"),
    Text("The young fought, and they won.", "they"),
    Text("Three came, but he left.", "he"),
    Text("The old knew it.", "it"),
    Text("The brave stood while they ran.", "they"),
    Text("The last bought them.", "them"),
    Text("The sick drank it.", "it"),
    Text("Many tried; some said they could.", "they"),
    Text("First came the rain, and it fell for days.", "it", "rain"),
    Text("The best won because they ran.", "they"),
    Text("The cut healed before she noticed it.", "she it", "cut"),
    Text("After the storm he slept.", "he", "storm"),
    Text("Others came, and they ate.", "they"),
    Text("Pour the water in the pan; it is hot.", "it", "water pan"),
    # Programs have no pronouns.
    Text("def he(it): return it"),
    Text("class Dog: def bark(self): return it"),
    Text("if (it) { return he; }"),
    Text("for dog in it: print(he)"),
    Text("dog = cat + it"),
    Text("let dog = new Cat(it);"),
    Text("while dog != it: dog.bark()"),
    Text("dogs.map(dog => it.bark(dog))"),
    Text("<p>The dog</p><b>it</b>"),
    Text("SELECT it FROM dogs WHERE he = 3"),
    Text("import dogs as it"),
    Text("cat dogs.txt | grep it"),
    Text("The dog (it barked) slept.", "it", "dog"),
    Text("The student(s) lost their books.", "their", "student"),
    # English with names and words that are function words elsewhere.
    Text("Maria de la Cruz lost her keys.", "her", "Maria Cruz"),
    Text("The man wore a hat in the den because he was cold.", "he", "man hat den"),
    Text("Soldiers die when war comes, and it comes.", "it", "Soldiers war"),
    Text("Oscar de la Hoya hurt himself.", "himself", "Oscar Hoya"),
    Text("Ludwig van der Berg sold his boat.", "his", "Ludwig Berg"),
    Text("Leonardo da Vinci left his house.", "his", "Leonardo Vinci"),
    Text("Ursula von der Leyen raised her hand.", "her", "Ursula Leyen"),
    Text("Juan del Rio met El Greco. He waved.", "He", "Juan Rio Greco El"),
    Text("Los Angeles is large, but it is empty.", "it", "Angeles"),
    Text("Vincent van Gogh cut his ear.", "his", "Vincent Gogh"),
    Text("Charles de Gaulle said he would fly to Rio de Janeiro.", "he", "Charles Gaulle"),
    Text("Simone de Beauvoir wrote her books in Le Havre.", "her", "Simone Beauvoir"),
    Text("The son sold a ton of sand; it was wet.", "it", "son ton sand"),
    Text("Dan met Ben on the Via del Corso, and they ate.", "they", "Dan Ben Via Corso"),
)  # fmt: skip
# A few function words: the test has a list of its own.
FUNCTION = {
    *("the", "a", "an", "and", "but", "because", "when", "that", "who", "at", "in", "on", "of", "by", "to", "for"),
    *("it", "he", "she", "they", "him", "her", "his", "its", "i", "my", "is", "am", "was", "are", "had", "does", "not"),
    *("der", "die", "weil", "er", "und", "ihn", "la", "no", "su", "de", "porque", "about", "too", "so"),
}  # fmt: skip


@pytest.mark.parametrize("row", TEXTS, ids=[row.text[:24] for row in TEXTS])
def test_what_is_said_of_a_text(minilm: Encoder, row: Text) -> None:
    visit = PageSession({"text": row.text} | ({"pair": row.pair} if row.pair else {}))
    found = visit.badges["unusual"]
    said = ["".join(one["words"]) for one in found]
    expected = referent(minilm, row)
    assert said[:1] == [expected] if expected else all(one["isUnusual"] for one in found)
    assert row.says in " ".join(said)
    for never in (*row.never, "word itself", "L0H2 looks", "L1H8 looks", "[UNK]", *map(quoted, row.unknown.split())):
        assert not any(never in one for one in said), (never, said)
    for one in found:
        named = [word.casefold() for word in one["words"][1::2]]
        assert len(named) < 2 or not FUNCTION.issuperset(named), said
    assert len({one["head"] for one in found}) == len(found) <= 3
    offered = "read_multilingual" in [button.key for button in visit.at.button]
    assert offered == row.offers
    assert {word for word in visit.shown().header["words"] if word.startswith("[UNK]")} == {
        f"[UNK] {word}" for word in row.unknown.split()
    }
    assert ("[UNK]" in visit.said) == bool(row.unknown)


def test_there_are_many_texts_and_none_is_an_example_of_the_app() -> None:
    assert len(TEXTS) == len({row.text for row in TEXTS}) > 80
    examples = {example["text"] for example in PageSession().typed["examples"]}
    assert not examples & {row.text for row in TEXTS}
    assert len([row for row in TEXTS if row.nouns]) > 20


def quoted(word: str) -> str:
    return f"“{word}”"


def referent(model: Encoder, row: Text) -> str:
    """The largest link of the two heads from a pronoun to an earlier noun or name, in words; by plain loops."""
    reading = model.encode(row.text, row.pair).by_words()
    words = [token.text for token in reading.text.tokens]
    links = [
        (float(reading[head][i, j]), str(head), words[i], words[j])
        for head in HEADS
        for i, asks in enumerate(words)
        for j in range(i)
        if asks in row.pronouns.split() and words[j] in row.nouns.split()
    ]
    if not links:
        return ""
    weight, head, asks, noun = max(links)
    if weight < 0.05:
        return ""
    return f"{head} links “{asks}” to “{noun}”" + (
        f" ({decimal(weight)})." if weight >= 0.3 else f", {decimal(weight)} (weak)."
    )
