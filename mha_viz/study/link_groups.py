"""Sample links of one head over a corpus, from all of its attention, and group them.

The model reads each sentence once, and only the drawn links are stored, so that memory does not grow with the corpus.
The queries and keys of the links are read again from their sentences.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from mha_viz.analysis import recipes as fitting
from mha_viz.analysis.bundled_data import find_recipes, make_shares
from mha_viz.analysis.link_groups import DrawnLink, LinkGroups, LinkSample, explain_links, make_groups, project_by_all
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.rules import RULES, Numbers, RuleText
from mha_viz.attention import AnyHead, Head, Weights
from mha_viz.corpus.sources import Source
from mha_viz.errors import CorpusError, SettingError, shorten_value
from mha_viz.models.getting import catalog
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import ModelOrName, load_one_stack
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.process.steps import Steps, run_steps, scale_progress
from mha_viz.study.cases import CaseKind, Cases, MeasurableCorpus, NumberedSentence
from mha_viz.study.plan import SENTENCES_AT_ONCE
from mha_viz.study.readers import open_measurable
from mha_viz.study.recipes import MAX_CELLS, NumberedTexts, check_most, check_shape, iter_weights, split_halves
from mha_viz.study.run import Progress
from mha_viz.study.texts import ReadableTexts, find_readable_index, read_text

if TYPE_CHECKING:
    from distributed import Client

DEFAULT_SENTENCES = 300  # maximum number of sentences
DEFAULT_LINKS = 400  # links that are drawn
MAX_LINKS = 2_000  # the distances of this many links take 32 MB
PROGRESS_STEPS = 1_000  # progress is reported in thousandths
FORMAT = 1  # version of the cases on disk


@with_bar("of the sentences")
def group_links(
    corpus: Source,
    head: AnyHead,
    model: ModelOrName = catalog.DEFAULT,
    *,
    recipes: Recipes | None = None,
    most: int = DEFAULT_SENTENCES,
    links: int = DEFAULT_LINKS,
    device: str = "cpu",
    resume: str | os.PathLike[str] | None = None,
    progress: ProgressOption[Progress] = False,
    client: Client | None = None,
) -> LinkGroups:
    """Sample the links of a head over a corpus, from the strongest to the weakest, and group them.

    Each link stands for the same share of the head's attention. A group has the links that one rule of the head's
    recipe explains, or unexplained links whose queries and keys are alike (k-medoids; as many groups as the silhouette
    suggests, or one), named by their five commonest pairs of words.

    Args:
        corpus: as for :func:`mha_viz.profile`.
        head: such as "L3H1".
        model: as for :func:`mha_viz.profile`.
        recipes: by default the known recipes of the model, its own or bundled; if there are none, the head's recipe is
            chosen on every second sentence that is read.
        most: the maximum number of sentences to read: of N, every ⌈N / most⌉-th.
        links: the number of links to draw.
        device: as for :func:`mha_viz.load`, where ``model`` is a name.
        resume: a folder that stores the drawn links, so that a stopped call can resume.
        progress: True for a bar, or a function that is called with the progress, in thousandths of the work.
        client: a Dask client, whose workers read the files, as for :func:`mha_viz.profile`; the recipe is chosen here.

    Returns the links and the groups (:class:`mha_viz.analysis.link_groups.LinkGroups`). Raises CorpusError,
    SettingError, UnknownHead; ModelError, with the reason for families whose queries and keys cannot be shown.

    >>> groups = mv.roles.group_links("grammar", "L0H2", "toy", most=40, links=100)
    >>> groups.table_of_groups()["share"].sum().round(6)
    np.float64(1.0)
    """
    source, encoder = open_measurable(corpus, client), load_one_stack(model, device)
    steps = group_in_steps(encoder, source, head, recipes, most, links, None if resume is None else Path(resume))
    report = as_callback(progress)
    return run_steps(steps, lambda done: report(Progress(round(PROGRESS_STEPS * done), PROGRESS_STEPS)))


def group_in_steps(
    encoder: Encoder,
    source: MeasurableCorpus,
    head: AnyHead,
    recipes: Recipes | None = None,
    most: int = DEFAULT_SENTENCES,
    links: int = DEFAULT_LINKS,
    folder: Path | None = None,
) -> Steps[LinkGroups]:
    """Group links in steps. Raises the errors of :func:`group_links` before the first sentence is read.

    The sample is saved in ``folder``, so that the same work can resume.
    """
    check_most(most)
    if not 2 <= links <= MAX_LINKS:
        raise SettingError(f"links is {shorten_value(links)}.", f"Draw 2 to {MAX_LINKS:,} links.")
    checked_head = Head.among(head, encoder.layer_numbers, encoder.heads, encoder.name)
    if recipes is not None:
        check_shape(encoder, recipes)
    return _group_in_steps(
        encoder, source, checked_head, recipes or find_recipes(encoder.name, encoder.revision), most, links, folder
    )


@dataclass(frozen=True)
class DrawnCases(CaseKind):
    """The sample of ``links`` of a head: a case for each draw, a row of :class:`LinkSample`.

    ``unread`` has the numbers of the sentences that are left out, because the links of a text are drawn by its position
    among the readable sentences.
    """

    size: ClassVar[int] = SENTENCES_AT_ONCE
    head: Head
    links: int
    unread: tuple[int, ...]

    @property
    def depends_on_position(self) -> bool:
        """Always True: the position of a text seeds the draw of its links."""
        return True

    def definition(self, offset: int) -> list[object]:
        """Return the head, the number of links and the unread sentences."""
        return [FORMAT, "drawn", self.step, self.head, self.links, self.unread, offset]

    def cases(self, encoder: Encoder, numbered_sentences: Sequence[NumberedSentence]) -> Cases:
        """Return the draws from the links of some sentences."""
        texts = [
            (number, text)
            for number, sentence in numbered_sentences
            if (text := read_text(encoder, sentence)) is not None
        ]
        sample, units = LinkSample(self.links), dict[int, tuple[str, int]]()
        head = self.head.place(encoder.heads, encoder.layer_numbers)
        for index, weights in iter_weights(encoder, [text for _, text in texts]):
            number, text = texts[index]
            readable_index = find_readable_index(number, self.step, self.unread)
            units[readable_index] = text.sentence.document, number
            sample.add(readable_index, weights[head])
        count = len(numbered_sentences)
        return Cases(*self._make_cases(sample, units), count) if texts else Cases(sentences_read=count)

    def reduce(self, cases: Cases) -> Cases:
        """Keep for each draw the link that comes first."""
        if len(cases.cases) <= self.links:
            return cases
        merged, *others = (
            LinkSample.from_rows(np.array(cases.cases[start : start + self.links]))
            for start in range(0, len(cases.cases), self.links)
        )
        for sample in others:
            merged.merge(sample)
        units = {int(case[2]): unit for case, unit in zip(cases.cases, cases.units, strict=True)}
        kept_cases, kept_units = self._make_cases(merged, units)
        return replace(cases, cases=kept_cases, units=kept_units)

    @staticmethod
    def _make_cases(
        sample: LinkSample, units: Mapping[int, tuple[str, int]]
    ) -> tuple[list[Numbers], list[tuple[str, int]]]:
        """Return the cases of a sample, and the units (document, sentence number) of their sentences.

        ``units`` has the units by the index of the sentence among the readable ones.
        """
        rows = [*sample.rows()]
        return rows, [units[int(row[2])] for row in rows]


def _group_in_steps(
    encoder: Encoder,
    source: MeasurableCorpus,
    head: Head,
    recipes: Recipes | None,
    most: int,
    links: int,
    folder: Path | None,
) -> Steps[LinkGroups]:
    """Group links in steps, after the arguments are checked."""
    texts, head_index = ReadableTexts.find(encoder, source, most), head.place(encoder.heads, encoder.layer_numbers)
    if not texts.numbers:
        raise CorpusError(f"Nothing in {source.corpus.name} can be read.", "Give another corpus.")
    (first_sentence,) = source.sentences(texts.numbers[:1])
    encoder.trace("", layer=head, words=first_sentence.forms)  # raises for unsupported models before the corpus is read
    shares = make_shares(recipes)[:, [head_index]] if recipes else None
    stages = 3 if shares is None else 2
    run = source.run(encoder, DrawnCases(texts.step, head, links, texts.unread), folder)
    with closing(run.iter_progress()) as reports:
        for state in reports:
            yield state.fraction / stages
    if shares is None:
        shares = yield from scale_progress(
            _fit_recipe(encoder, _read_texts(encoder, source, texts.numbers), texts.step, head_index), 1, stages
        )
    numbers_by_index = {int(row[2]): number for row, (_, number) in zip(run.cases.cases, run.cases.units, strict=True)}
    numbered_texts = _read_texts(encoder, source, sorted(numbers_by_index.values()))
    texts_by_index = dict(zip(sorted(numbers_by_index), numbered_texts, strict=True))
    drawn_links = explain_links(LinkSample.from_rows(np.array(run.cases.cases)), texts_by_index, shares)
    vectors = yield from scale_progress(_read_vectors(encoder, drawn_links, head), stages - 1, stages)
    run.discard_partial_results()
    return LinkGroups(
        *(encoder.name, head, source.corpus.name, len(texts.numbers)),
        tuple(drawn_links),
        make_groups(drawn_links, vectors),
        project_by_all(vectors),
    )


def _read_texts(encoder: Encoder, source: MeasurableCorpus, numbers: Sequence[int]) -> list[tuple[int, RuleText]]:
    """Read the sentences with these numbers, without those that the model cannot read."""
    numbered_sentences = zip(numbers, source.sentences(numbers), strict=True)
    return [
        (number, text) for number, sentence in numbered_sentences if (text := read_text(encoder, sentence)) is not None
    ]


def _fit_recipe(encoder: Encoder, texts: NumberedTexts, step: int, head_index: int) -> Steps[Numbers]:
    """Choose the recipe of one head on every second text, and return its shares [class, 1, rule].

    Some texts are left out if they do not all fit into memory.
    """
    halves = list[list[tuple[RuleText, Weights]]]()
    for half in split_halves(texts, step, MAX_CELLS // len(RULES)):
        weights = {number: all_heads[[head_index]] for number, all_heads in iter_weights(encoder, half)}
        halves.append([(text, weights[number]) for number, text in enumerate(half)])
        yield len(halves) / 3
    # If no even sentence can be read, the odd ones are fitted.
    fitted_texts, held_out = halves if halves[0] else halves[::-1]
    return fitting.choose_recipes(fitting.make_rows_by_class(fitted_texts), held_out).shares


def _read_vectors(encoder: Encoder, links: Sequence[DrawnLink], head: Head) -> Steps[npt.NDArray[np.float32]]:
    """Return the queries and keys of links, before position rotations, [side, link, d_k]."""
    links_by_sentence: dict[int, list[int]] = {}
    for number, link in enumerate(links):
        links_by_sentence.setdefault(link.number, []).append(number)
    vectors: npt.NDArray[np.float32] = np.zeros((2, len(links), 0), np.float32)
    for done, link_numbers in enumerate(links_by_sentence.values(), 1):
        trace = encoder.trace("", layer=head, words=links[link_numbers[0]].sentence.forms)
        if not vectors.shape[-1]:
            vectors = np.zeros((2, len(links), trace.d_k), np.float32)
        for side, side_vectors in enumerate(trace.before_turn):
            tokens = [(links[number].query, links[number].key)[side].token for number in link_numbers]
            vectors[side, link_numbers] = side_vectors[head.head][tokens]
        yield done / len(links_by_sentence)
    return vectors
