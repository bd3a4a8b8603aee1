"""Measure how well the toy model knows what a pronoun refers to, with and without some of its heads.

The pronoun is masked, and the answer is right when the most probable word is that pronoun. Which pronoun it is, "he",
"she", "it" or "they", follows from its antecedent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.attention import Head
from mha_viz.corpus import grammar
from mha_viz.models.reading.encoder import Encoder
from mha_viz.request import Request
from mha_viz.study.cases import CaseKind, Cases, LocalRun, NumberedSentence, collect_cases
from mha_viz.study.corpus_effects import iter_anaphoric_pronouns, mask_word
from mha_viz.study.effects import compute_values
from mha_viz.study.run import Progress

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1  # version of the cases on disk
COLUMNS = ("off", "n", "correct", "accuracy", "baseline")


@dataclass(frozen=True)
class AnswerCases(CaseKind):
    """A case for each masked pronoun that has an earlier mention; its values, [variant], are 1 for a right answer.

    ``ablated_sets`` are the heads that are off in each variant. The ``counts`` of the cases count the pronouns.
    """

    ablated_sets: tuple[tuple[Head, ...], ...]

    def definition(self, offset: int) -> list[object]:
        """Return the heads of each variant."""
        return [FORMAT, "answers", self.step, self.ablated_sets, offset]

    def cases(self, encoder: Encoder, numbered_sentences: Sequence[NumberedSentence]) -> Cases:
        """Return the answers in some sentences."""
        cases = Cases(sentences_read=len(numbered_sentences))
        for number, sentence in numbered_sentences:
            for word in iter_anaphoric_pronouns(sentence):
                masked_forms, question = mask_word(encoder, encoder.read_words(sentence.forms), sentence.forms, word)
                values = compute_values(encoder, self.ablated_sets, Request(question=question, words=masked_forms))
                cases.cases.append((values.argmax(axis=1) == question.piece).astype(float))
                cases.units.append((sentence.document, number))
                cases.counts[sentence.forms[word].lower(),] += 1
        return cases


def measure_without_heads(
    encoder: Encoder,
    seed: int,
    sentences: int = 500,
    progress: Callable[[Progress], None] = lambda _: None,
    folder: Path | None = None,
) -> pd.DataFrame:
    """Measure the accuracy at masked pronouns of newly sampled sentences, with different heads off.

    Returns a row, with the columns COLUMNS, for all heads on, for each head off, and for each whole layer off. The
    baseline is the most frequent pronoun; it is NaN when there is no case. Answers are saved in ``folder``, so that a
    stopped call can resume.
    """
    import pandas as pd

    layers = [[Head(layer, head) for head in range(encoder.heads)] for layer in range(encoder.layers)]
    single_heads = {str(head): (head,) for heads in layers for head in heads}
    ablated_sets = {"none": ()} | single_heads | {f"layer {layer}": tuple(heads) for layer, heads in enumerate(layers)}
    run = LocalRun(
        encoder, grammar.corpus(sentences, seed), AnswerCases(1, tuple(ablated_sets.values())), folder=folder
    )
    cases = collect_cases(run, progress)
    run.discard_partial_results()
    n = len(cases.cases)
    correct = np.sum(cases.cases, axis=0).astype(np.int64) if n else np.zeros(len(ablated_sets), np.int64)
    baseline = cases.counts.most_common(1)[0][1] / n if n else np.nan
    rows = [
        (name, n, right, right / n if n else np.nan, baseline)
        for name, right in zip(ablated_sets, correct.tolist(), strict=True)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))
