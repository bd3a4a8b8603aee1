"""Links of one head over a corpus, drawn from all of its attention, in groups.

Each sentence is read once by the model, and only the links that are drawn are stored, so that memory does not grow with
the corpus. Their queries and keys are read again from the sentences that have any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from mha_viz.analysis import recipes as fitting
from mha_viz.analysis.described import find_recipes, shares_of
from mha_viz.analysis.link_groups import DrawnLink, LinkGroups, LinkSample, drawn_links, groups_of, maps
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.rules import RULES, Numbers, RuleText
from mha_viz.attention import AnyHead, Head, Weights
from mha_viz.corpus.sources import Source, open_corpus
from mha_viz.corpus.treebank import Corpus, Gap
from mha_viz.errors import CorpusError, SettingError, shorten_value
from mha_viz.models import catalog
from mha_viz.models.encoder import Encoder
from mha_viz.models.loading import ModelOrName, one_stack
from mha_viz.process.steps import Steps, completed, part_of
from mha_viz.study.recipes import CELLS, check_most, check_shape, halved, numbered, weights_of
from mha_viz.study.run import Progress

MOST = 300  # sentences that are read, at most
LINKS = 400  # links that are drawn
MOST_LINKS = 2_000  # their distances take 32 MB
PARTS = 1_000  # of the progress

NumberedTexts = Sequence[tuple[int, RuleText]]


def link_groups(
    corpus: Source,
    head: AnyHead,
    model: ModelOrName = catalog.DEFAULT,
    *,
    recipes: Recipes | None = None,
    most: int = MOST,
    links: int = LINKS,
    device: str = "cpu",
    progress: Callable[[Progress], None] = lambda _: None,
) -> LinkGroups:
    """What a head does over all text: links drawn from the strongest to the weakest, in groups with their shares.

    Each link stands for the same share of the head's attention. A group is what one rule of the head's recipe takes, or
    unexplained links whose queries and keys are alike (k-medoids; as many groups as the silhouette suggests, or one),
    named by their five commonest pairs of words. ``corpus`` and ``model`` are as for ``profile``; ``head`` is a name
    such as "L3H1"; ``recipes``: by default those that are known of the model, its own or shipped ones, else the head's
    recipe is chosen on every second sentence that is read. ``most``: how many sentences are read, at most: of N, every
    ⌈N / most⌉-th; ``links``: how many are drawn. ``progress`` is called as the work goes on.

    Raises CorpusError, SettingError, UnknownHead; ModelError's family, with the reason for families whose queries and
    keys cannot be shown.

    >>> groups = mv.link_groups("grammar", "L0H2", "toy", most=40, links=100)
    >>> groups.table_of_groups()["share"].sum().round(6)
    np.float64(1.0)
    """
    source, encoder = open_corpus(corpus), one_stack(model, device)
    steps = grouping(encoder, source, head, recipes, most, links)
    return completed(steps, lambda done: progress(Progress(round(PARTS * done), PARTS)))


def grouping(
    encoder: Encoder,
    corpus: Corpus | Gap,
    head: AnyHead,
    recipes: Recipes | None = None,
    most: int = MOST,
    links: int = LINKS,
) -> Steps[LinkGroups]:
    """The same in steps. Raises the errors of :func:`link_groups` before the first sentence is read."""
    if isinstance(corpus, Gap):
        raise CorpusError(f"{corpus.name} is a GAP table, which has no sentences.", "Give a treebank or text.")
    check_most(most)
    if not 2 <= links <= MOST_LINKS:
        raise SettingError(f"links is {shorten_value(links)}.", f"Draw 2 to {MOST_LINKS:,} links.")
    chosen = Head.among(head, encoder.layer_numbers, encoder.heads, encoder.name)
    if recipes is not None:
        check_shape(encoder, recipes)
    return _grouping(encoder, corpus, chosen, recipes or find_recipes(encoder.name, encoder.revision), most, links)


def _grouping(
    encoder: Encoder, corpus: Corpus, head: Head, recipes: Recipes | None, most: int, links: int
) -> Steps[LinkGroups]:
    texts, place = numbered(encoder, corpus, most), head.place(encoder.heads, encoder.layer_numbers)
    if not texts:
        raise CorpusError(f"Nothing of {corpus.name} can be read.", "Give another corpus.")
    encoder.trace("", layer=head, words=texts[0][1].sentence.forms)  # refused before the corpus is read
    shares = shares_of(recipes)[:, [place]] if recipes else None
    parts = 3 if shares is None else 2
    sample = yield from part_of(_sampled(encoder, texts, place, links), 0, parts)
    if shares is None:
        shares = yield from part_of(_fitted(encoder, corpus, most, place), 1, parts)
    drawn = drawn_links(sample, texts, shares)
    vectors = yield from part_of(_vectors(encoder, drawn, head), parts - 1, parts)
    return LinkGroups(
        *(encoder.name, head, corpus.name, len(texts)), tuple(drawn), groups_of(drawn, vectors), maps(vectors)
    )


def _sampled(encoder: Encoder, texts: NumberedTexts, place: int, links: int) -> Steps[LinkSample]:
    sample = LinkSample(links)
    for count, (number, weights) in enumerate(weights_of(encoder, [text for _, text in texts])):
        sample.add(number, weights[place])
        yield (count + 1) / len(texts)
    return sample


def _fitted(encoder: Encoder, corpus: Corpus, most: int, place: int) -> Steps[Numbers]:
    """The shares [class, 1, rule] of the recipe of one head, chosen on every second text, as many as memory has room
    for."""
    read = list[list[tuple[RuleText, Weights]]]()
    for half in halved(encoder, corpus, most, CELLS // len(RULES)):
        weights = {number: of_all[[place]] for number, of_all in weights_of(encoder, half)}
        read.append([(text, weights[number]) for number, text in enumerate(half)])
        yield len(read) / 3
    even, odd = read if read[0] else read[::-1]  # if no even sentence can be read, the odd ones are fitted
    return fitting.choice(fitting.rows_by_class(even), odd).shares


def _vectors(encoder: Encoder, links: Sequence[DrawnLink], head: Head) -> Steps[npt.NDArray[np.float32]]:
    """[side, link, d_k]: the queries and the keys of links, before they are turned by their positions."""
    by_sentence: dict[int, list[int]] = {}
    for at, link in enumerate(links):
        by_sentence.setdefault(link.number, []).append(at)
    vectors: npt.NDArray[np.float32] = np.zeros((2, len(links), 0), np.float32)
    for done, of_sentence in enumerate(by_sentence.values(), 1):
        trace = encoder.trace("", layer=head, words=links[of_sentence[0]].sentence.forms)
        if not vectors.shape[-1]:
            vectors = np.zeros((2, len(links), trace.d_k), np.float32)
        for side, of_side in enumerate(trace.before_turn):
            tokens = [(links[at].query, links[at].key)[side].token for at in of_sentence]
            vectors[side, of_sentence] = of_side[head.head][tokens]
        yield done / len(by_sentence)
    return vectors
