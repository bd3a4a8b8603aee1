"""Text that comes with gold annotation: a sentence of the built-in corpus, or CoNLL-U that was pasted."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from mha_viz import grammar
from mha_viz.errors import CorpusError
from mha_viz.treebank import Corpus, Sentence, read_conllu


@cache
def built_in() -> Corpus:
    """The corpus that comes with the app."""
    return grammar.corpus()


class Annotated(NamedTuple):
    """A sentence with its gold, as the words that the model is to read."""

    sentence: Sentence
    pasted: bool  # as CoNLL-U
    said: tuple[str, ...] = ()  # what was left out of what was pasted

    @property
    def forms(self) -> tuple[str, ...]:
        """The words."""
        return self.sentence.forms

    @property
    def text(self) -> str:
        """The words with one blank between them."""
        return " ".join(self.forms)


def annotated(typed: str) -> Annotated | None:
    """The gold of what was typed: CoNLL-U that was pasted, or a sentence of the built-in corpus; None for other text.

    Raises CorpusError for CoNLL-U that cannot be read, and for a first sentence whose tree is broken.
    """
    if any(line.count("\t") == 9 for line in typed.splitlines()):
        corpus = read_conllu(typed, "What was pasted")
        first, more = corpus.sentences[0], len(corpus.sentences) - 1
        if corpus.left_out and all(word.head is None for word in first.words):
            raise CorpusError(f"What was pasted, {corpus.left_out[0]}", "Mend it and paste it again.")
        more_said = (f"Of {more + 1} sentences that were pasted the first is shown.",) if more else ()
        return Annotated(first, True, (*more_said, *corpus.left_out[:3]))
    return _built_in().get(typed.strip()) if typed.rstrip().endswith((" .", " !", " ?")) else None


@cache
def _built_in() -> dict[str, Annotated]:
    return {(found := Annotated(sentence, False)).text: found for sentence in built_in().sentences}


def words_of(typed: str) -> tuple[str, ...] | None:
    """The words that the model is to read where they are given; None where its tokenizer is to find them."""
    try:
        found = annotated(typed)
    except CorpusError:
        return None
    return found.forms if found else None
