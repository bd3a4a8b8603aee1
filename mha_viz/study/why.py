"""By what heads find their keys over a corpus."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from mha_viz.analysis.corpus_why import CorpusWhy, Gathered
from mha_viz.corpus.sources import Source, open_sentences
from mha_viz.errors import Cancelled, CorpusError, TextError
from mha_viz.models import catalog
from mha_viz.models.loading import AnyModel, one_stack
from mha_viz.models.why import why
from mha_viz.study.recipes import check_most
from mha_viz.study.run import Progress

MOST = 100  # sentences that are read


def why_over(
    corpus: Source,
    model: str | AnyModel = catalog.DEFAULT,
    *,
    most: int = MOST,
    device: str = "cpu",
    progress: Callable[[Progress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> CorpusWhy:
    """By what each head finds its keys over a corpus: as :func:`mha_viz.why`, with 95 % intervals.

    ``corpus``, ``model`` and ``device`` are as for ``profile``; ``most``: how many sentences are read. Annotation is
    not needed. A sentence counts by the variance of its scores, as queries do on one text. ``progress`` is called after
    each sentence.

    Raises CorpusError, SettingError, ModelError's family, with the reason for families whose scores cannot be taken
    apart; Cancelled soon after ``cancelled`` returns True.

    >>> mv.why_over("repeats", "repeater", most=5).arrows().iloc[0][["from", "side"]].tolist()
    ['L0H0', 'key']
    """
    check_most(most)
    read = open_sentences(corpus)
    encoder, sentences, count = one_stack(model, device), read.sentences[:most], 0
    documents = [sentence.document for sentence in sentences]
    units = documents if len(set(documents)) > 1 else list(map(str, range(len(sentences))))
    sums = Gathered(units, encoder.layers, encoder.heads)
    for number, sentence in enumerate(sentences):
        with suppress(TextError):  # too long, or a word that the tokenizer drops
            sums.add(number, why(encoder, "", words=sentence.forms).variations)
            count += 1
        progress(Progress(number + 1, len(sentences)))
        if cancelled():
            raise Cancelled("The study was stopped.", "Start it again to measure the heads.")
    if not count:
        raise CorpusError(f"Nothing of {read.name} can be read.", "Give another corpus.")
    return CorpusWhy(encoder.name, read.name, count, len(sentences) - count, tuple(sums.rows()), tuple(sums.composed()))
