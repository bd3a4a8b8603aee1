"""The effect of switching heads off over a corpus: on masked words, on the loss of a text, or on vectors, depending on
what the model predicts."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from mha_viz.analysis.corpus_effects import (
    LOSS,
    MASKED_WORD,
    OF_WORDS,
    VECTOR,
    CorpusEffect,
    effect_rows,
    variants_of,
)
from mha_viz.analysis.described import kept_shares, of_model
from mha_viz.analysis.effects import Numbers
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.syntax import DIRECTIONS
from mha_viz.attention import AnyHead, Head, Weights
from mha_viz.corpus.sampling import choose_step, take_every
from mha_viz.corpus.sources import Source, open_sentences
from mha_viz.corpus.treebank import Corpus, Gap, Mention, Sentence, Word
from mha_viz.errors import CorpusError, ModelUnsupported, SettingError, SumsUnsavedWarning, TextError, warn
from mha_viz.models import ablation, answers
from mha_viz.models.encoder import Encoder
from mha_viz.quotes import quoted
from mha_viz.request import MASK, METHODS, RECIPE, RESAMPLE, TEXT, Question, Request
from mha_viz.study.effects import Instead, check_method, lost_each, substitute, values_without
from mha_viz.study.run import SAVE_SECONDS, Progress
from mha_viz.study.taken import Taken, read_taken
from mha_viz.text import WordPieces
from mha_viz.version import __version__

FORMAT = 4  # version of the cases on disk and of how they are measured
MOST = 400  # sentences that are read by default, at most
MOST_READ = 1_000_000
DRAWN_FROM = 400  # sentences at most that others are drawn from
FROM_CORPUS = ("mean", RESAMPLE)  # the methods that take something from a corpus
SEED = 0  # draws, with the number of a sentence, the word that is masked in it
COREFERENCE = "coreference"  # in place of a relation


class Averages(NamedTuple):
    """What heads that are off take from a corpus: mean outputs [layer, head, d_head], or the sentences to draw from;
    and the name of the corpus, if it has one."""

    values: Weights | None = None
    over: str = ""
    sentences: tuple[tuple[str, ...], ...] = ()


class EffectSettings(NamedTuple):
    """What a request switches off and how, over a corpus in place of its text, and which words are measured; the fields
    are as for :func:`effect`."""

    request: Request
    relation: str = ""
    direction: str = DIRECTIONS[0]
    same_role: Sequence[AnyHead] = ()
    most: int = MOST
    means: Any = None  # Source, Weights, Averages, or for a cluster a Layout
    recipes: Recipes | None = None  # by default those that are known of the model


# A cache: for an annotated sentence and the heads that are off, the change of the last states, [token].
TokenChanges = dict[tuple[tuple[Word, ...], tuple[Mention, ...]], dict[tuple[Head, ...], Numbers]]


class Measurement:
    """One measurement, sentence by sentence; there is a result for the sentences read so far. Raises the errors of
    :func:`effect`.

    For a part of a corpus, ``first`` is the number of its first sentence, and every ``step``-th sentence of the corpus
    is read; by default as many as ``most`` allows. ``states``: a cache of changes of last states
    that measurements of the same corpus by the same method share. ``file``: where what is taken is saved now and then
    and at the end, and from which the same measurement continues. ``taken``: what was measured so far.
    """

    def __init__(
        self,
        encoder: Encoder,
        corpus: Corpus | Gap,
        settings: EffectSettings,
        *,
        first: int = 0,
        step: int = 0,
        states: TokenChanges | None = None,
        file: Path | None = None,
    ) -> None:
        request, relation, direction, same_role, most, means, recipes = settings
        self._corpus = _checked(corpus, relation, direction, most)
        off = ablation.existing(encoder, request.off)
        if not off:
            raise SettingError("No head was named.", "Name one, as in L3H1.")
        self._encoder, self._most, self._step = encoder, most, step or choose_step(len(self._corpus.sentences), most)
        self._relation, self._direction = relation, direction if relation not in ("", COREFERENCE) else ""
        self._variants = variants_of(off, ablation.existing(encoder, same_role), encoder.heads)
        self._measure = _measure(encoder)
        self._method, self.averages = request.method, Averages()
        self.recipes = recipes_by(encoder, request.method, recipes)
        self._averaged = self._to_average(request.method, means)
        self._states = {} if states is None else states
        self._first, self._file, self._saved = first, file, time.monotonic()
        self._key = self._digest() if file else ""
        self.taken = (read_taken(file, self._key) if file else None) or Taken()

    def _to_average(self, method: str, means: Source | Weights | Averages | None) -> Corpus | None:
        """What mean outputs are still to be taken over, None if they are known or not needed."""
        if method == TEXT:
            raise SettingError("Over a corpus, one other text cannot take every sentence’s place.", "Choose resample.")
        if method not in FROM_CORPUS:
            if means is not None:
                which = " or ".join(FROM_CORPUS)
                raise SettingError(f"means go with the method {which}, not {quoted(method)}.", "Leave one of them out.")
            check_method(self._encoder, method, recipes=self.recipes)
            return None
        if method == RESAMPLE and isinstance(means, np.ndarray):
            raise SettingError("Random sentences cannot be drawn from mean outputs.", "Give a corpus as means.")
        if isinstance(means, Averages | np.ndarray):
            self.take(means if isinstance(means, Averages) else Averages(means))
            return None
        over = self._corpus if means is None else open_sentences(means)
        if method == RESAMPLE and over.sentences:  # those of a cluster's corpus come from its workers
            self.take(Averages(over=over.name, sentences=forms_of(over, self.step_of_drawn(len(over.sentences)))))
            return None
        return over

    def sentences(self) -> Iterator[Progress]:
        """Read one sentence after the other."""
        some = take_every(self._step, [*enumerate(self._corpus.sentences, self._first)], self._first)
        over = self._averaged
        averaged = () if over is None else take_every(self.step_over(len(over.sentences)), over.sentences)
        before, means = len(averaged), ablation.Means(self._encoder)
        for number, sentence in enumerate(averaged):
            add_sentence(means, sentence)
            yield Progress(number + 1, before + len(some))
        if over is not None:
            self.take(Averages(means.values(), over.name))
        try:
            for place in range(self.taken.read, len(some)):
                number, sentence = some[place]
                self.taken.add(self._measured(sentence, number))
                if time.monotonic() - self._saved > SAVE_SECONDS:
                    self._save()
                yield Progress(before + place + 1, before + len(some))
        finally:
            self._save()

    def step_over(self, count: int) -> int:
        """Of the ``count`` sentences of the corpus that means are over, every how many are read."""
        return choose_step(count, self._most)

    def step_of_drawn(self, count: int) -> int:
        """The same for sentences that are drawn."""
        return choose_step(count, min(self._most, DRAWN_FROM))

    def _digest(self) -> str:
        """That of everything that what is taken depends on, such as the corpus that mean outputs will be over."""
        encoder, averages = self._encoder, self.averages
        values = None if averages.values is None else averages.values.tolist()
        over = [averages.sentences, values] if self._averaged is None else self._averaged.digest
        of_words = (self._relation, self._direction, self._most, self._step, self._first, digest_of(self.recipes))
        facts = (FORMAT, __version__, encoder.name, encoder.revision, self._corpus.digest, self._method)
        return hashlib.sha256(json.dumps([*facts, *of_words, self._variants, over]).encode()).hexdigest()

    def _save(self) -> None:
        if self._file is None or not self.taken.whole or not self.taken.read:
            return
        try:
            self.taken.save(self._file, self._key)
        except OSError as error:  # the work continues without saving
            self._file = None
            warn(SumsUnsavedWarning, f"What was measured could not be saved: {error.strerror or error}.")
        self._saved = time.monotonic()

    def take(self, averages: Averages) -> None:
        """Replace the outputs of heads that are off by these. Raises SettingError if they are not of this model."""
        self._averaged, self.averages = None, averages
        check_method(self._encoder, self._method, averages.values)

    @property
    def measure(self) -> str:
        """Return what is measured for this model: MASKED_WORD, LOSS or VECTOR."""
        return self._measure

    def result(self) -> CorpusEffect:
        """The result for the sentences read so far. Raises CorpusError if nothing was measured."""
        taken = self.taken
        if not taken.cases:
            what = f"no word that {self._relation} applies to" if self._relation else "no sentence that can be measured"
            raise CorpusError(f"{self._corpus.name} has {what}.", "Name another corpus or relation.")
        documents = len({document for document, _ in taken.units})
        units = [document if documents > 1 else str(number) for document, number in taken.units]
        return CorpusEffect(
            self._encoder.name,
            self._corpus.name,
            f"{self._method}{' over ' * bool(self.averages.over)}{self.averages.over}",
            OF_WORDS[self._measure] if self._relation else self._measure,
            self._relation,
            self._direction,
            len(taken.cases),
            taken.read,
            self._step,
            documents,
            taken.left_out,
            effect_rows(self._variants, np.array(taken.cases), units, bool(self._relation)),
        )

    def _measured(self, sentence: Sentence, number: int) -> Taken:
        """The values [variant] of each case of a sentence; those that cannot be measured are counted."""
        taken = Taken(read=1)
        of_sentence = {MASKED_WORD: self._masked, LOSS: self._losses, VECTOR: self._vectors}[self._measure]
        words = _queries(sentence, self._relation, self._direction) if self._relation else None
        try:
            for values in of_sentence(sentence, number, words):
                if values is None:
                    taken.left_out += 1
                else:
                    taken.cases.append(values)
                    taken.units.append((sentence.document, number))
        except TextError:  # too long, or a word that the tokenizer drops
            taken.left_out += 1
        return taken

    # The values of each case of a sentence, in order; None for a word that cannot be measured.

    def _masked(self, sentence: Sentence, number: int, words: list[int] | None) -> Iterator[Numbers | None]:
        encoder, forms = self._encoder, list(sentence.forms)
        read = encoder.read_words(forms)
        single = single_words(read)
        if words is None:
            words = [Random(f"{SEED} {number}").choice(single)] if single else []
        yield from [None] * len(set(words) - set(single))
        mask = str(encoder.vocabulary.mask_token)
        for word in (word for word in words if word in single):
            at = read.words.index(word)
            masked = (*forms[:word], mask, *forms[word + 1 :])
            question = Question(MASK, at, forms[word], read.ids[at], places=(at,))
            request = Request(words=masked, method=self._method, question=question)
            values = values_without(encoder, [(), *self._off], request, self._by(sentence))[:, question.piece]
            yield values[0] - values[1:]

    def _losses(self, sentence: Sentence, _: int, words: list[int] | None) -> Iterator[Numbers | None]:
        encoder, forms = self._encoder, sentence.forms
        read = encoder.read_words(forms)
        if len(read.ids) < 2:
            return
        by = self._by(sentence)(encoder, Request(words=forms, method=self._method), 0)
        states = [encoder.states("", words=forms), ablation.states_without(encoder, self._off, by, "", words=forms)]
        followed = np.stack([_followed(encoder, each, read.ids) for each in np.concatenate(states)])  # [variant, n − 1]
        if words is None:
            losses = -followed.mean(axis=1)
            yield losses[1:] - losses[0]
            return
        for word in words:  # what a head does at a word changes the prediction of the token after it
            last = max((place for place, one in enumerate(read.words) if one == word), default=len(read.ids))
            if last < followed.shape[1]:
                yield followed[0, last] - followed[1:, last]
            else:
                yield None

    def _vectors(self, sentence: Sentence, _: int, words: list[int] | None) -> Iterator[Numbers | None]:
        encoder, forms = self._encoder, sentence.forms
        request, by = Request(words=forms, method=self._method), self._by(sentence)
        if words is None:
            yield lost_each(encoder, self._off, request, by).sentence
        if not words:
            return
        measured = self._states.setdefault((sentence.words, sentence.mentions), {})
        new = [off for off in self._off if off not in measured]  # the model runs for these alone
        if new:
            measured.update(zip(new, lost_each(encoder, new, request, by).tokens, strict=True))
        changes = np.stack([measured[off] for off in self._off])  # [variant, token], of each token's last state
        pieces = encoder.read_words(forms).words
        for word in words:
            yield changes[:, [at for at, one in enumerate(pieces) if one == word]].mean(axis=1)

    def _by(self, gold: Sentence) -> Instead:
        """What replaces the outputs of heads in a sentence."""
        return partial(
            substitute, means=self.averages.values, gold=gold, sentences=self.averages.sentences, recipes=self.recipes
        )

    @property
    def _off(self) -> list[tuple[Head, ...]]:
        return [variant.heads for variant in self._variants]


def recipes_by(encoder: Encoder, method: str, recipes: Recipes | None) -> Recipes | None:
    """The recipes that a method needs: these or those that are known of the model. Raises SettingError if there are
    none, or recipes are given for another method."""
    if method != RECIPE:
        check_method(encoder, METHODS[0] if recipes is None else method, recipes=recipes)
        return None
    return recipes or of_model(encoder.name, encoder.revision)


def digest_of(recipes: Recipes | None) -> str:
    """A digest of the shares of recipes, on which what they predict depends."""
    return "" if recipes is None else hashlib.sha256(kept_shares(recipes).tobytes()).hexdigest()


class _Ends(NamedTuple):
    dependent: int
    head: int


def _queries(sentence: Sentence, relation: str, direction: str) -> list[int]:
    """The words that a head with a role attends from, in order, each once."""
    if relation == COREFERENCE:
        return list(anaphoric(sentence))
    edges = [
        _Ends(number, word.head)
        for number, word in enumerate(sentence.words)
        if word.head is not None and relation in (word.relation, word.base)
    ]
    return sorted({edge.dependent if direction == "dep_to_head" else edge.head for edge in edges})


def forms_of(corpus: Corpus, step: int, first: int = 0) -> tuple[tuple[str, ...], ...]:
    """The sentences, as words, that the method "resample" draws from: every ``step``-th of a corpus, or of a part of it
    that begins with the sentence numbered ``first``."""
    return tuple(sentence.forms for sentence in take_every(step, corpus.sentences, first))


def add_sentence(means: ablation.Means, sentence: Sentence) -> None:
    """Add a sentence to mean outputs, if the model can read it."""
    with suppress(TextError):
        means.add([sentence.forms])


def _checked(corpus: Corpus | Gap, relation: str, direction: str, most: int) -> Corpus:
    corpus = open_sentences(corpus)
    if relation == COREFERENCE and not corpus.has_chains:
        raise CorpusError(f"{corpus.name} has no coreference chains.", "Give a corpus with Entity=, or a relation.")
    if relation not in ("", COREFERENCE) and not corpus.has_trees:
        raise CorpusError(f"{corpus.name} has no dependencies.", "Give a treebank, or no relation.")
    if direction not in DIRECTIONS:
        raise SettingError(f"“{direction[:40]}” is not a direction.", f"Choose one of {', '.join(DIRECTIONS)}.")
    if not 1 <= most <= MOST_READ:
        raise SettingError(f"most is {most}.", f"Read 1 to {MOST_READ:,} sentences.")
    return corpus


def _measure(encoder: Encoder) -> str:
    """What is measured for a model."""
    try:
        answers.word_head(encoder)
    except ModelUnsupported:
        return VECTOR
    return LOSS if encoder.causal else MASKED_WORD


def _followed(encoder: Encoder, states: Weights, ids: Sequence[int]) -> Numbers:
    """[n − 1]: log p of every token but the first, given those before it, from the last states [n, d_model]."""
    values = answers.log_probabilities(encoder, states[:-1])
    followed: Numbers = values[np.arange(len(ids) - 1), list(ids[1:])]
    return followed


def single_words(read: WordPieces) -> list[int]:
    """The words of a sentence that consist of one piece and can therefore be masked."""
    return [word for word in range(len(read.forms)) if read.words.count(word) == 1]


def anaphoric(sentence: Sentence) -> Iterator[int]:
    """The pronouns that have an earlier mention of their chain in the sentence, as numbers of words."""
    chains: set[str] = set()
    for mention in sorted(sentence.mentions, key=lambda mention: mention.word):
        if mention.chain in chains and sentence.words[mention.word].upos == "PRON":
            yield mention.word
        chains.add(mention.chain)
