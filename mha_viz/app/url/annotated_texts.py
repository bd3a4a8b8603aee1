"""Texts with gold annotation: sentences of the built-in corpus, and pasted CoNLL-U."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import read_conllu
from mha_viz.corpus.tables import is_conllu, split_first_lines
from mha_viz.corpus.treebank import Corpus, Sentence
from mha_viz.errors import CorpusError

# Maximum texts whose annotation is cached; a link carries 7 kB of text, and parsed words take ten times as much.
CACHED_TEXTS = 64


@cache
def load_built_in_corpus() -> Corpus:
    """Return the built-in corpus."""
    return grammar.corpus()


class AnnotatedText(NamedTuple):
    """A sentence with its gold annotation. Its words are those that the model reads."""

    sentence: Sentence
    is_pasted: bool  # whether it was pasted as CoNLL-U
    notes: tuple[str, ...] = ()  # what was left out of the pasted text

    @property
    def forms(self) -> tuple[str, ...]:
        """The words."""
        return self.sentence.forms

    @property
    def text(self) -> str:
        """The words, separated by single spaces."""
        return " ".join(self.forms)


@lru_cache(maxsize=CACHED_TEXTS)
def find_annotation(text: str) -> AnnotatedText | CorpusError | None:
    """Return the gold annotation of pasted CoNLL-U or of a sentence of the built-in corpus; None for other texts.

    If CoNLL-U cannot be read, even with spaces in place of tabs, or if the tree of its first sentence is invalid,
    return the error.
    """
    if is_conllu(split_first_lines(text)):
        try:
            corpus = read_conllu(text, "The pasted text")
        except CorpusError as error:
            return CorpusError(error.problem, error.remedy)
        first_sentence, other_count = corpus.sentences[0], len(corpus.sentences) - 1
        if corpus.left_out and all(word.head is None for word in first_sentence.words):
            return CorpusError(f"The pasted text, {corpus.left_out[0]}", "Correct it and paste it again.")
        more_note = (f"You pasted {other_count + 1} sentences; only the first is shown.",) if other_count else ()
        return AnnotatedText(first_sentence, True, (*more_note, *corpus.left_out[:3]))
    return _index_built_in().get(text.strip()) if text.rstrip().endswith((" .", " !", " ?")) else None


@cache
def _index_built_in() -> dict[str, AnnotatedText]:
    return {
        (annotation := AnnotatedText(sentence, False)).text: annotation for sentence in load_built_in_corpus().sentences
    }


def read_words(text: str) -> tuple[str, ...] | None:
    """Return the words of a text that defines them, such as CoNLL-U; None if the tokenizer splits the text."""
    annotation = find_annotation(text)
    return annotation.forms if isinstance(annotation, AnnotatedText) else None


def format_bare_conllu(words: Sequence[str]) -> str:
    """Return CoNLL-U that contains these words only, so that :func:`read_words` returns them."""
    return "\n".join(f"{number}\t{word}" + 8 * "\t_" for number, word in enumerate(words, 1))
