"""What is said of varied sentences, as visitors type them: usually something, and never what a head always does."""

from __future__ import annotations

from mha_viz.analysis.given import given_roles
from mha_viz.analysis.habits import given_habits
from mha_viz.analysis.unusual import unusual
from mha_viz.models.loading import one_stack

# Varied sentences; ``None`` where nothing is unusual.
SENTENCES = {
    "The animal didn't cross the street because it was too tired.": "L3H1 links “it” to “animal”",
    "The dog barked because it was cold.": "links “it”",
    "Mary gave John the book that she had written last summer.": "links “written” to “book”",
    "The chef cooked the fish, and the guests praised it.": "links",
    "Time flies like an arrow; fruit flies like a banana.": "to another “like”",
    "We sat on the river bank after the bank had closed.": "links “bank” to “river”",
    "Colorless green ideas sleep furiously.": None,
    "Hello world": "rests on [CLS]",
    "I love pizza and pasta.": "links “and” to “love”",
    "Anna called because she was late.": "links “she” to “late”",
    "What is the capital of France?": "looks at “?” from everywhere",
    "The quick brown fox jumps over the lazy dog.": "links “jumps” to “dog”",
    "My brother thinks that his teacher, who lives in Paris, forgot her keys.": "links “his” to “brother”",
    "Yesterday it rained.": "links “rained” to “Yesterday”",
    "Attention is all you need.": "links",
}


def test_a_first_sentence_usually_shows_something_and_never_a_mere_habit() -> None:
    model, roles, habits = one_stack("minilm"), given_roles("minilm"), given_habits("minilm")
    for text, part in SENTENCES.items():
        words = ["".join(one.words) for one in unusual(model.encode(text), roles, None, habits)]
        assert not any(habit in one for one in words for habit in ("L0H2 looks", "L1H8 looks")), text
        assert any(part in one for one in words) if part else not words, (text, words)
