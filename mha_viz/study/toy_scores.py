"""Measure the accuracy of the toy model's heads on sentences that it was not trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mha_viz.analysis.coreference import TYPES
from mha_viz.analysis.metrics import OFFSETS
from mha_viz.analysis.syntax import DIRECTIONS, RelationRow, Relations, count_gold
from mha_viz.attention import Head
from mha_viz.corpus import grammar
from mha_viz.corpus.treebank import Corpus
from mha_viz.models.getting import snapshots
from mha_viz.models.reading.encoder import Encoder
from mha_viz.study.measures import PassSums
from mha_viz.study.run import measure_one_pass
from mha_viz.study.sums import PASSES

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("task", "layer", "head", "n", "correct", "accuracy", "baseline")
TASKS = ("previous_token", "verb_subject", "pronoun_antecedent")


def evaluate(encoder: Encoder, seed: int, sentences: int = 500) -> pd.DataFrame:
    """Measure the accuracy of every head on three tasks, over newly sampled sentences.

    Returns a row per task and head, with the columns COLUMNS.

    *previous_token*: the largest weight of a row, ignoring special columns, is on the preceding token; the baseline
    picks one of these columns at random. *verb_subject*: from a subject to its verb (nsubj, dependent to head); the
    baseline is the best fixed offset. *pronoun_antecedent*: from a pronoun to a mention of the same chain; the baseline
    is the nearest candidate. Accuracy and baseline are NaN when there is no case.
    """
    import pandas as pd

    corpus = grammar.corpus(sentences, seed)
    return pd.DataFrame(list(_iter_rows(corpus, encoder)), columns=list(COLUMNS))


def evaluate_snapshots(
    folder: Path, seed: int, sentences: int, progress: Callable[[int, int], None] = lambda done, total: None
) -> pd.DataFrame:
    """Call :func:`evaluate` for every snapshot in a folder; the first column is ``step``. Raises ModelBroken."""
    import pandas as pd

    steps = snapshots.list_steps(folder)
    tables = []
    for number, step in enumerate(steps, 1):
        table = evaluate(Encoder.from_folder(snapshots.unpack(folder, step)), seed, sentences)
        table.insert(0, "step", step)
        tables.append(table)
        progress(number, len(steps))
    return pd.concat(tables, ignore_index=True)


def _iter_rows(corpus: Corpus, encoder: Encoder) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of :func:`evaluate`."""
    sums = measure_one_pass(encoder, corpus)
    trained = PassSums.from_sums(sums, PASSES[0])
    scores_by_task = (
        _score_previous_token(corpus, trained, encoder),
        _score_verb_subject(corpus, sums.relations, trained),
        _score_antecedent(trained),
    )
    for task, (n, correct, baseline) in zip(TASKS, scores_by_task, strict=True):
        for number, right in enumerate(correct.tolist()):
            head = Head(*divmod(number, encoder.heads))
            yield (task, *head, n, right, _divide(right, n), baseline)


def _divide(part: float, total: int) -> float:
    """Return a ratio; NaN if ``total`` is zero."""
    return float(part / total) if total else np.nan


def _score_previous_token(corpus: Corpus, trained: PassSums, encoder: Encoder) -> tuple[int, np.ndarray, float]:
    """Score the task previous_token: the number of cases, the correct ones of each head, and the baseline."""
    sums, column = trained.patterns, OFFSETS.index(-1)
    n = int(sums["maxima_rows"][column])
    word_numbers = [encoder.read_words(sentence.forms).words for sentence in corpus.sentences]
    lengths = [sum(word is not None for word in words) for words in word_numbers]  # in ordinary tokens
    return n, sums["maxima"][:, column], _divide(sum((m - 1) / m for m in lengths), n)  # m - 1 rows of m columns each


def _score_verb_subject(corpus: Corpus, relations: Relations, trained: PassSums) -> tuple[int, np.ndarray, float]:
    """Score the task verb_subject: the number of cases, the correct ones of each head, and the baseline."""
    row, direction = relations.rows.index(RelationRow("base", "nsubj")), DIRECTIONS.index("dep_to_head")
    gold_counts = count_gold(relations, [*enumerate(map(relations.make_tree, corpus.sentences))])
    n = int(gold_counts.n[:, direction, row].sum())
    hits = trained.syntax["correct"][:, :, direction].sum(axis=(0, 1))  # [relation, head]
    correct = relations.member[:, row] @ hits
    return n, correct, _divide(gold_counts.offset[:, direction, row].sum(axis=0).max(), n)


def _score_antecedent(trained: PassSums) -> tuple[int, np.ndarray, float]:
    """Score the task pronoun_antecedent: the number of cases, the correct ones of each head, and the baseline."""
    sums, type_index = trained.coreference, TYPES.index("pronoun")
    n = int(sums["n"][..., type_index].sum())
    return (
        n,
        sums["correct"][:, :, type_index].sum(axis=(0, 1)),
        _divide(sums["baseline"][:, :, type_index, 0].sum(), n),
    )
