"""Fit recipes to a corpus and measure what they explain.

Rules are chosen on every second sentence that is read, and their explained shares are measured on the others and on
another corpus. Bundled recipes can be measured on another corpus, too.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mha_viz.analysis import recipes as fitting
from mha_viz.analysis.bundled_data import ALL, make_shares
from mha_viz.analysis.findings import EVERY as STEP
from mha_viz.analysis.recipe_tables import HEADINGS, MEAN, UNTRAINED, Recipes
from mha_viz.analysis.recipes import RecipeChoice, RuleRows
from mha_viz.analysis.rules import CHAINS, CLASSES, NAMES, RULES, TAGS, TREES, UNIFORM_RULE, Numbers, RuleText
from mha_viz.attention import Weights
from mha_viz.corpus.limits import choose_step, take_every
from mha_viz.corpus.sources import Source, open_sentences
from mha_viz.corpus.treebank import Corpus
from mha_viz.errors import Cancelled, CorpusError, SettingError, shorten_value
from mha_viz.files import load_arrays
from mha_viz.model_names import shorten_name
from mha_viz.models.getting import catalog
from mha_viz.models.reading.cores import one_blas_thread, pass_lock
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import ModelOrName, load_as_measured, load_one_stack
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.study.explained_shares import ExplainedSums, RecipeSums, count_cells
from mha_viz.study.measures import ResamplingUnits
from mha_viz.study.plan import make_batches
from mha_viz.study.run import SEED, Progress, measure_sums
from mha_viz.study.sums import PASSES, write_arrays
from mha_viz.study.texts import read_text

if TYPE_CHECKING:
    from distributed import Client

    from mha_viz.study.cluster.engine import ClusterEngine
    from mha_viz.study.cluster.layout import Layout

DEFAULT_SENTENCES = 300  # maximum number of sentences of each corpus, by default
MAX_SENTENCES = 100_000
NumberedTexts = Sequence[tuple[int, RuleText]]
MAX_CELLS = 30_000_000  # maximum number of weights of all heads, or of all rules, in a fit
CHOICE_SHARE = 0.5  # share of the progress that the choice of rules takes
CHOICE_FILE = ".choice.npz"  # file with the choice of an unfinished study
CORPUS_FOLDER = ".corpus-"  # prefix of the folders with the sums of an unfinished study, one per corpus
FORMAT = 2  # version of CHOICE_FILE and of the choice of rules


@with_bar("of the sentences")
def fit_recipes(
    corpus: Source | Recipes,
    model: ModelOrName | None = None,
    *,
    score: Source | None = None,
    most: int = DEFAULT_SENTENCES,
    resume: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    progress: ProgressOption[Progress] = False,
    cancelled: Callable[[], bool] = lambda: False,
    client: Client | None = None,
) -> Recipes:
    """Fit the recipe of every head: at most six named rules, with shares, and how much of the attention they explain.

    Of the sentences read from ``corpus``, every second one, starting with the first, is used to choose rules and
    shares. The recipes are measured on the other sentences, and on ``score``. Rules that need annotation are left out
    if a corpus has none; plain text is enough for the others.

    Args:
        corpus: as for :func:`mha_viz.profile`; or recipes from ``mv.recipes.load`` or an earlier call, which are only
            measured on ``score``. Untrained weights are measured there, too, unless the recipes come from an older
            version that did not store their shares.
        model: as for :func:`mha_viz.profile`, by default that of the recipes.
        score: another corpus to measure on.
        most: the maximum number of sentences to read of each corpus: of N, every ⌈N / most⌉-th; those of more than 256
            tokens are left out.
        resume: a folder for the chosen rules and for intermediate sums, so that a stopped study can resume.
        device: as for :func:`mha_viz.load`, where the model is loaded.
        progress: True for a bar, or a function that is called with the progress, in thousandths of the work or, with
            ``client``, in sentences of each corpus.
        cancelled: returns True to stop the study in this process.
        client: a client of a Dask cluster, whose workers measure the chosen recipes; corpora are then names of files.

    Returns the recipes. Raises CorpusError, also where ``score`` is the corpus that chose the recipes, or lacks the
    annotation that they need; SettingError, also where the recipes are of a model of another shape; ModelError;
    ClusterError; Cancelled soon after ``cancelled`` returns True.

    >>> mv.recipes.fit("grammar", "toy", most=40).tables["recipes"].columns.tolist()
    ['layer', 'head', 'query_class', 'rule', 'share']
    """
    check_most(most)
    folder, corpora = None if resume is None else Path(resume), open_corpora(corpus, score)
    if isinstance(corpus, Recipes):
        if corpora[0].digest == corpus.facts.get("corpus_sha256"):
            raise _make_same_corpus_error(corpora[0])
        encoder = load_as_measured(corpus.facts, model, device)
    else:
        encoder = load_one_stack(catalog.DEFAULT if model is None else model, device)
    cluster, layouts = None, list[Any]()
    if client is not None:
        from mha_viz.study.cluster.engine import ClusterEngine  # Dask is an optional dependency

        cluster = ClusterEngine(client)
        sources = (corpus, score)
        layouts = [cluster.open(item) for item in sources if item is not None and not isinstance(item, Recipes)]
    study = _Study(encoder, corpora, most, folder, cluster, layouts, as_callback(progress), cancelled)
    study.check()
    with one_blas_thread:
        return study.measure_recipes(corpus) if isinstance(corpus, Recipes) else study.result()


def choose_shares(
    encoder: Encoder,
    corpus: Source,
    most: int,
    progress: Callable[[Progress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[str, Numbers]:
    """Choose recipes on a corpus, and return its name and their shares [class, head, rule].

    Raises the errors of :func:`fit_recipes`.
    """
    opened_corpus = open_sentences(corpus)

    def report(state: Progress) -> None:
        progress(state._replace(total=round(CHOICE_SHARE * state.total)))

    study = _Study(encoder, [opened_corpus], most, None, None, (), report, cancelled)
    study.check()
    with one_blas_thread:
        return opened_corpus.name, study.choose().shares


def check_most(most: int) -> None:
    """Raise SettingError for a number of sentences out of range."""
    if not 2 <= most <= MAX_SENTENCES:
        raise SettingError(f"most is {shorten_value(most)}.", f"Read 2 to {MAX_SENTENCES:,} sentences.")


def open_corpora(source: Source | Recipes, score: Source | None) -> list[Corpus]:
    """Open the corpora that are read; the corpus to measure on comes last. Raises CorpusError and SettingError."""
    score_corpora = [] if score is None else [open_sentences(score)]
    if isinstance(source, Recipes):
        if score is None:
            raise SettingError(
                "There is no corpus on which the recipes are to be measured.", "Name one (score=, --score)."
            )
        needs = {RULES[rule].needs for rule in np.flatnonzero(make_shares(source).any(axis=(0, 1)))}
        _check_annotated(score_corpora[0], str(source.facts["corpus"]), bool(needs & {TAGS, TREES}), CHAINS in needs)
        return score_corpora
    corpus = open_sentences(source)
    if score_corpora:
        if corpus.digest == score_corpora[0].digest:
            raise _make_same_corpus_error(corpus)
        _check_annotated(score_corpora[0], corpus.name, corpus.has_trees, corpus.has_chains)
    return [corpus, *score_corpora]


def _make_same_corpus_error(corpus: Corpus) -> CorpusError:
    return CorpusError(f"The recipes are from the same corpus, {corpus.name}.", "Name a corpus of another origin.")


class _Fit(NamedTuple):
    """A choice of rules.

    Attributes:
        choice: the chosen rules with their shares.
        untrained_shares: the shares [class, head, rule] of these rules, fitted to untrained weights.
        half: the half of the sentences on which they were chosen, 0 for the even ones.
    """

    choice: RecipeChoice
    untrained_shares: Numbers
    half: int


@dataclass(frozen=True)
class _Study:
    """A study that chooses recipes from as many sentences as memory holds and then measures them over all.

    The corpora are measured by this process or, given a ``cluster``, by its workers, which read them as ``layouts``.
    """

    encoder: Encoder
    corpora: Sequence[Corpus]
    most: int
    folder: Path | None
    cluster: ClusterEngine | None
    layouts: Sequence[Layout]
    progress: Callable[[Progress], None]
    cancelled: Callable[[], bool]

    @property
    def heads(self) -> int:
        """The number of heads in all layers."""
        return self.encoder.layers * self.encoder.heads

    @cached_property
    def models(self) -> tuple[Encoder, Encoder]:
        """The model with trained weights and with untrained weights."""
        return self.encoder, self.encoder.untrained(SEED)

    def check(self) -> None:
        """Raise CorpusError for a corpus without a readable sentence, and ModelUnsupported for a hybrid model."""
        self.encoder.check_every_layer("recipes")
        for corpus in self.corpora:
            if next(_iter_numbered_texts(self.encoder, corpus, self.most), None) is None:
                raise CorpusError(f"Nothing in {corpus.name} can be read.", "Give another corpus.")

    def result(self) -> Recipes:
        """Choose the recipes and measure their explained shares. Raises CorpusError and Cancelled."""
        fit = self._load_fit() or self._choose_and_save()
        shares = {
            PASSES[0]: [
                fit.choice.shares,
                _make_uniform_shares(self.heads),
                fitting.make_single_rule_shares(fit.choice.single),
            ],
            PASSES[1]: [fit.untrained_shares],
        }
        results = [self._measure_explained(number, shares, CHOICE_SHARE) for number in range(len(self.corpora))]
        self._clean_up()
        return self._make_recipes(fit, results)

    def measure_recipes(self, recipes: Recipes) -> Recipes:
        """Measure the explained shares of given recipes. Raises CorpusError, SettingError, Cancelled."""
        check_shape(self.encoder, recipes)
        single_rules = [NAMES.index(name) for name in recipes.facts["best_rules"]]
        shares = {
            PASSES[0]: [
                make_shares(recipes),
                _make_uniform_shares(self.heads),
                fitting.make_single_rule_shares(np.array(single_rules, np.intp)),
            ]
        }
        if UNTRAINED in recipes.tables:
            shares[PASSES[1]] = [make_shares(recipes, UNTRAINED)]
        result = self._measure_explained(0, shares, 0)
        self._clean_up()
        columns = dict(zip(("other", "even", "best_rule", UNTRAINED), result.means(), strict=False))
        columns |= dict(zip(("other_low", "other_high"), result.interval(), strict=True), iou=result.mean_iou())
        explained = recipes.tables["explained"].assign(**{UNTRAINED: np.nan, **columns})
        facts = {
            **recipes.facts,
            **self._describe_corpus("score", self.corpora[0], result),
            **_make_mean_facts(result),
        }
        return Recipes(facts, {**recipes.tables, "explained": explained})

    def _clean_up(self) -> None:
        """Delete the files of the unfinished study."""
        if self._file:
            self._file.unlink(missing_ok=True)
        for folder in self.folder.glob(f"{CORPUS_FOLDER}*") if self.folder else ():
            shutil.rmtree(folder, ignore_errors=True)

    # ---- the choice

    def choose(self) -> RecipeChoice:
        """Choose the recipes, without measuring their explained shares. Raises Cancelled."""
        *_, rows, held_out = self._read_halves()
        return fitting.choose_recipes(rows, held_out, lambda share: self._report(CHOICE_SHARE * (0.2 + 0.8 * share)))

    def _read_halves(self) -> tuple[int, list[RuleText], list[RuleRows], list[tuple[RuleText, Weights]]]:
        """Read both halves of the sentences.

        Returns the half on which rules are chosen (0 or 1), its texts, their rows by class, and the texts of the other
        half with their attention. Raises Cancelled.
        """
        step = choose_step(len(self.corpora[0].sentences), self.most)
        texts = list_numbered_texts(self.encoder, self.corpora[0], self.most)
        halves = split_halves(texts, step, MAX_CELLS // max(self.heads, len(RULES)))
        half = 0 if halves[0] else 1  # if no even sentence can be read, the odd ones are fitted
        rows = fitting.make_rows_by_class(self._read(self.models[0], halves[half], 0.1))
        return half, halves[half], rows, self._read(self.models[0], halves[1 - half], 0.2)

    def _load_fit(self) -> _Fit | None:
        """Return the choice of an earlier run on the same sentences; None if there is none."""
        try:
            arrays = load_arrays(self._file) if self._file else {}
            facts, untrained_shares = json.loads(str(arrays.pop("facts"))), arrays.pop("by_chance")
            fit = _Fit(RecipeChoice(**arrays), untrained_shares, facts["half"])
            return fit if facts["key"] == self._key else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def _file(self) -> Path | None:
        return self.folder / CHOICE_FILE if self.folder else None

    @property
    def _key(self) -> str:
        """Everything that a choice depends on, as text."""
        model = [self.encoder.name, self.encoder.revision]
        return json.dumps([FORMAT, *model, self.corpora[0].digest, self.most, NAMES])

    def _choose_and_save(self) -> _Fit:
        """Choose rules and shares, and save them. Raises Cancelled."""
        half, texts, rows, held_out = self._read_halves()
        choice = fitting.choose_recipes(rows, held_out, lambda share: self._report(CHOICE_SHARE * (0.2 + 0.7 * share)))
        untrained_rows = fitting.replace_weights(rows, self._read(self.models[1], texts, 1.0))
        untrained_shares = fitting.refit_choice(choice, untrained_rows)
        if self._file:
            arrays = {**choice._asdict(), "by_chance": untrained_shares}
            write_arrays(arrays, {"key": self._key, "half": half}, self._file)
        return _Fit(choice, untrained_shares, half)

    def _read(self, encoder: Encoder, texts: Sequence[RuleText], share: float) -> list[tuple[RuleText, Weights]]:
        """Return the texts with their attention, in order, and report that ``share`` of the choice is done."""
        numbers = make_batches([text.pieces for text in texts], range(len(texts)), self.heads)
        with pass_lock.worker_pool() as workers:
            parts = [
                *workers.map(lambda batch: _compute_weights(encoder, [texts[number] for number in batch]), numbers)
            ]
        self._report(CHOICE_SHARE * share)
        weights_by_number = dict(zip(chain(*numbers), chain(*parts), strict=True))
        return [(text, weights_by_number[number]) for number, text in enumerate(texts)]

    def _report(self, share: float) -> None:
        """Report the completed share of the study. Raises Cancelled."""
        if not self.cluster:  # a cluster reports sentences instead
            self.progress(Progress(round(1000 * share), 1000))
        if self.cancelled():
            raise Cancelled("The study was stopped.", "Start it again to measure the recipes.")

    # ---- explained shares

    def _measure_explained(self, number: int, shares: Mapping[str, Sequence[Numbers]], start: float) -> ExplainedSums:
        """Measure how much of the attention over a corpus is explained by recipes with these shares.

        ``start`` is the share of the study that is done before the first corpus.
        """
        corpus_share = (1 - start) / len(self.corpora)

        def report(state: Progress) -> None:
            self.progress(Progress(round(1000 * (start + corpus_share * (number + state.fraction))), 1000))

        corpus, models = self.corpora[number], self.models[: len(shares)]
        units = ResamplingUnits.choose(
            self._list_documents(corpus), count_cells(self.heads, sum(map(len, shares.values())))
        )
        kind = RecipeSums(self._choose_step(corpus), units, shares)
        folder = self.folder / f"{CORPUS_FOLDER}{number}" if self.folder else None
        if self.cluster:
            layout, passes = self.layouts[number], PASSES[: len(shares)]
            sums = self.cluster.measure_sums(self.encoder, layout, folder, passes, kind, self.progress)
        else:
            sums = measure_sums(
                models, corpus, kind, resume=folder, keep=True, progress=report, cancelled=self.cancelled
            )
        return ExplainedSums.from_sums(sums, [len(recipes) for recipes in shares.values()])

    def _make_recipes(self, fit: _Fit, results: Sequence[ExplainedSums]) -> Recipes:
        """Return the recipes with their tables."""
        import pandas as pd

        choice, fit_sums, held_out_sums = fit.choice, results[0].half(fit.half), results[0].half(1 - fit.half)
        score_sums = results[1] if len(results) > 1 else held_out_sums
        other_columns = np.array([score_sums.means()[0], *score_sums.interval()])
        if len(results) < 2:
            other_columns[:] = np.nan
        columns = [fit_sums.means()[0], held_out_sums.means()[0], *held_out_sums.interval(), *other_columns]
        columns += [*score_sums.means()[1:], score_sums.mean_iou()]
        head_ids = [divmod(head, self.encoder.heads) for head in range(self.heads)]
        explained = [(*head_id, *row) for head_id, row in zip(head_ids, zip(*columns, strict=True), strict=True)]
        rows = [row for head, head_id in enumerate(head_ids) for row in _iter_share_rows(choice, head, head_id)]
        untrained_choice = choice._replace(shares=fit.untrained_shares)
        untrained_rows = [
            row for head, head_id in enumerate(head_ids) for row in _iter_share_rows(untrained_choice, head, head_id)
        ]
        tables = {"recipes": rows, "explained": explained, UNTRAINED: untrained_rows}
        frames = {name: pd.DataFrame(table, columns=list(HEADINGS[name])) for name, table in tables.items()}
        return Recipes({**self._make_facts(choice, results), **_make_mean_facts(score_sums)}, frames)

    def _make_facts(self, choice: RecipeChoice, results: Sequence[ExplainedSums]) -> dict[str, Any]:
        """Return the facts about the model, the corpora and the choice."""
        encoder = self.encoder
        facts: dict[str, Any] = {"model": encoder.name, "revision": encoder.revision}
        facts |= {"layers": encoder.layers, "heads": encoder.heads}
        for name, corpus, explained in zip(("corpus", "score"), self.corpora, results, strict=False):
            facts |= self._describe_corpus(name, corpus, explained)
        classes = results[0].rows.sum(axis=(0, 1)).astype(int).tolist()
        return facts | {"classes": classes, "best_rules": [NAMES[rule] for rule in choice.single]}

    def _describe_corpus(self, name: str, corpus: Corpus, explained: ExplainedSums) -> dict[str, Any]:
        """Return facts about the sentences read from a corpus, with keys that begin with ``name``."""
        count = int(explained.sentences.sum())
        documents = explained.documents if len({*self._list_documents(corpus)}) > 1 else 1
        counts = {"sentences": count, STEP: self._choose_step(corpus), "documents": documents}
        return {name: corpus.name, f"{name}_sha256": corpus.digest, **{f"{name}_{key}": n for key, n in counts.items()}}

    def _choose_step(self, corpus: Corpus) -> int:
        return choose_step(len(corpus.sentences), self.most)

    def _list_documents(self, corpus: Corpus) -> list[str]:
        """Return the document of each sentence that is read."""
        return [sentence.document for sentence in take_every(self._choose_step(corpus), corpus.sentences)]


def _make_mean_facts(explained: ExplainedSums) -> dict[str, list[float | None]]:
    """Return the explained share, averaged over heads, with its interval, as facts."""
    return {MEAN: [None if np.isnan(number) else round(float(number), 9) for number in explained.mean()]}


def _iter_share_rows(choice: RecipeChoice, head: int, head_id: tuple[int, int]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a head in the table "recipes"; within each class, the largest share first."""
    for number, name in enumerate(CLASSES if choice.by_class[head] else (ALL,)):
        shares = choice.shares[number, head]
        for rule in np.argsort(-shares.round(12), kind="stable"):  # equal shares are in the order of RULES
            if shares[rule] > 0:
                yield (*head_id, name, RULES[rule].name, shares[rule])


def check_shape(encoder: Encoder, recipes: Recipes) -> None:
    """Raise SettingError if recipes are of a model with other numbers of layers and heads."""
    if (encoder.layers, encoder.heads) != (recipes.facts["layers"], recipes.facts["heads"]):
        problem = f"{shorten_name(encoder.name)} has {encoder.layers} × {encoder.heads} heads."
        raise SettingError(
            problem, f"Give a model like {shorten_name(recipes.facts['model'])}, whose recipes these are."
        )


def iter_weights(encoder: Encoder, texts: Sequence[RuleText]) -> Iterator[tuple[int, Weights]]:
    """Yield the number and attention [head, query, key] of each text, reading texts of equal length in batches."""
    for numbers in make_batches([text.pieces for text in texts], range(len(texts)), encoder.layers * encoder.heads):
        yield from zip(numbers, _compute_weights(encoder, [texts[number] for number in numbers]), strict=True)


def _compute_weights(encoder: Encoder, texts: Sequence[RuleText]) -> list[Weights]:
    """Return the attention [head, query, key] of texts of one length."""
    weights = encoder.batch([text.pieces for text in texts])  # [layer, head, text, query, key]
    return [*np.moveaxis(weights.reshape(-1, *weights.shape[2:]), 1, 0)]


def _make_uniform_shares(heads: int) -> Numbers:
    """Return the shares of a recipe that is uniform attention only, for each head."""
    return fitting.make_single_rule_shares(np.full(heads, UNIFORM_RULE, np.intp))


def list_readable_texts(encoder: Encoder, corpus: Corpus, most: int) -> list[RuleText]:
    """List every k-th sentence that a model can read, at most ``most``, without the longest ones."""
    return [text for _, text in list_numbered_texts(encoder, corpus, most)]


def split_halves(numbered_texts: NumberedTexts, step: int, cells: int) -> list[list[RuleText]]:
    """Split texts into those with even and those with odd numbers.

    Of each half, keep every k-th text, so that they fit into memory.

    Args:
        numbered_texts: the texts with their sentence numbers.
        step: every ``step``-th sentence of the corpus was tried.
        cells: the maximum number of weights of all texts together.
    """
    halves = [[text for number, text in numbered_texts if number // step % 2 == half] for half in (0, 1)]
    stride = 1
    while sum(len(text) ** 2 for half in halves for text in half[::stride]) > cells and stride < len(numbered_texts):
        stride += 1
    return [half[::stride] for half in halves]


def list_numbered_texts(encoder: Encoder, corpus: Corpus, most: int) -> list[tuple[int, RuleText]]:
    """Return the texts of :func:`list_readable_texts`, each with its number in the corpus."""
    return list(_iter_numbered_texts(encoder, corpus, most))


def _iter_numbered_texts(encoder: Encoder, corpus: Corpus, most: int) -> Iterator[tuple[int, RuleText]]:
    for number, sentence in take_every(choose_step(len(corpus.sentences), most), [*enumerate(corpus.sentences)]):
        if (text := read_text(encoder, sentence)) is not None:
            yield number, text


def _check_annotated(score: Corpus, name: str, needs_trees: bool, needs_chains: bool) -> None:
    """Raise CorpusError if a corpus lacks annotation that recipes from the corpus with this name need."""
    for annotation, is_needed, is_present in (
        ("trees", needs_trees, score.has_trees),
        ("coreference chains", needs_chains, score.has_chains),
    ):
        if is_needed and not is_present:
            raise CorpusError(
                f"{score.name} has no {annotation}, which recipes from {name} may need.",
                "Name a corpus with the same annotation.",
            )
