"""Match heads of two models that behave alike on the sentences of a corpus."""

from __future__ import annotations

from dataclasses import replace

from mha_viz.analysis.distance import compute_cross_divergences
from mha_viz.analysis.matching import Divergences, HeadMatches, find_matches
from mha_viz.attention import Attention, Weights
from mha_viz.corpus.limits import choose_step, take_every
from mha_viz.corpus.sources import Source, open_sentences
from mha_viz.errors import CorpusError, SettingError, ShapeError, check_kind
from mha_viz.heads import list_heads
from mha_viz.model_names import shorten_name
from mha_viz.models.reading.loading import ModelOrName, load_one_stack
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.study.plan import plan
from mha_viz.study.run import Progress
from mha_viz.view.quantities import QUANTITIES

DEFAULT_SENTENCES = 100  # maximum number of sentences, by default


@with_bar("sentences")
def match_heads(
    one: ModelOrName | Attention,
    other: ModelOrName | Attention,
    corpus: Source = "grammar",
    *,
    most: int = DEFAULT_SENTENCES,
    device: str = "cpu",
    progress: ProgressOption[Progress] = False,
) -> HeadMatches:
    """Match each head of a model with one of another model, such as another seed or step of its training.

    The matches minimise the total divergence of the heads' rows (Hungarian method).

    Args:
        one: a model as for :func:`mha_viz.profile`; or a reading, whose text alone is used to match the heads.
        other: a model that splits text into the same tokens; or a reading of the same text.
        corpus: as for :func:`mha_viz.profile`. A sentence that one of the models cannot read, or that they split
            differently, is left out.
        most: the maximum number of sentences to read: of N, every ⌈N / most⌉-th.
        device: as for :func:`mha_viz.load`, where a model is loaded.
        progress: True for a bar, or a function that is called after each sentence.

    Returns the matches, each with whether it is closer than chance (:class:`mha_viz.analysis.matching.HeadMatch`).
    Raises CorpusError if no sentence is left; ShapeError for readings of different texts, or of quantities whose
    rows are no shares; SettingError for fewer than one sentence and for a reading together with a model; ModelError.

    >>> mv.roles.match_heads("toy", "toy", most=5)[mv.Head(1, 2)]
    Head(layer=1, head=2)
    """
    if isinstance(one, Attention) or isinstance(other, Attention):
        return _match_on_text(one, other)
    if most < 1:
        raise SettingError(f"most is {most}.", "Read 1 sentence or more; 100 are usual.")
    encoders = load_one_stack(one, device), load_one_stack(other, device)
    source = open_sentences(corpus)
    selected_sentences = take_every(choose_step(len(source.sentences), most), source.sentences)
    source = replace(source, sentences=tuple(selected_sentences), has_chains=False)
    texts = [plan(encoder, source).sentences for encoder in encoders]
    common_texts = [(a, b) for a, b in zip(*texts, strict=True) if a and b and (a.names, a.spans) == (b.names, b.spans)]
    if not common_texts:
        name, other_name = (shorten_name(encoder.name) for encoder in encoders)
        problem = f"{name} and {other_name} split no sentence of {source.name} into the same tokens."
        raise CorpusError(problem, "Give models with the same tokenizer, or other text.")
    sums: Divergences | None = None
    for done, pieces in enumerate(common_texts, 1):
        weights = [encoder.batch([text]) for encoder, text in zip(encoders, pieces, strict=True)]
        text_divergences = _compute_divergences(*(batch[:, :, 0] for batch in weights))
        sums = text_divergences if sums is None else sums + text_divergences
        as_callback(progress)(Progress(done, len(common_texts)))
    assert sums is not None  # there is a sentence
    rows = sum(len(text.ids) for text, _ in common_texts)
    heads = (list_heads(encoder.layer_numbers, encoder.heads) for encoder in encoders)
    return find_matches(encoders[0].name, encoders[1].name, sums, rows, *heads)


def _match_on_text(first: object, second: object) -> HeadMatches:
    """Match the heads of two readings of the same text."""
    for reading in (first, second):
        check_kind(reading, Attention, "a reading", "Give two readings of one text, or two models.")
        assert isinstance(reading, Attention)
        if not (quantity := QUANTITIES[reading.quantity]).is_share:
            problem = f"Heads are matched by their attention weights, not by “{quantity.label}”."
            raise ShapeError(problem, "Give readings of weights.")
    assert isinstance(first, Attention)
    assert isinstance(second, Attention)
    texts, other_texts = (
        [[token.text for token in axis.tokens] for axis in (item.queries, item.keys)] for item in (first, second)
    )
    if texts != other_texts:
        raise ShapeError("The readings have different tokens.", "Give two readings of one text.")
    sums = _compute_divergences(first.weights, second.weights)
    heads = first.every_head(), second.every_head()
    return find_matches(first.model, second.model, sums, len(first.queries), *heads)


def _compute_divergences(weights: Weights, other_weights: Weights) -> Divergences:
    """Return the divergences of the heads of two models on one text, from weights [layer, head, query, key]."""
    first, second = (array.reshape(-1, *array.shape[2:]) for array in (weights, other_weights))
    mean, other_mean = (array.mean(axis=0, keepdims=True) for array in (first, second))
    return Divergences(
        compute_cross_divergences(first, second),
        compute_cross_divergences(first, other_mean)[:, 0],
        compute_cross_divergences(mean, second)[0],
    )
