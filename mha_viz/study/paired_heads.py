"""Compare two heads on the same cases of a treebank: heads of one model, or of two, such as two steps of a training."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from mha_viz.analysis.corpus_effects import MAX_UNITS
from mha_viz.analysis.intervals import Documents
from mha_viz.analysis.paired_accuracy import ModelHead, PairedDifferences, compare_answers
from mha_viz.analysis.profile import Profile
from mha_viz.analysis.syntax import DIRECTIONS, find_pointers, list_arcs
from mha_viz.attention import AnyHead, Head
from mha_viz.corpus.sources import Source
from mha_viz.errors import PROFILE_KIND, CorpusError, SettingError, check_kind
from mha_viz.models.getting import catalog
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import AnyModel, ModelOrName, load_one_stack
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.quotes import quote
from mha_viz.study.cases import CaseKind, CaseRun, Cases, MeasurableCorpus, NumberedSentence, collect_cases
from mha_viz.study.chance import open_treebank
from mha_viz.study.plan import SENTENCES_AT_ONCE, iter_word_blocks
from mha_viz.study.readers import open_measurable
from mha_viz.study.run import Progress

if TYPE_CHECKING:
    from distributed import Client

FORMAT = 1  # version of the cases on disk
AnswersBySentence = Mapping[int, Sequence[bool]]  # sentence number → whether the answer to each case is right


class _Question(NamedTuple):
    """A head and the relation and direction on which it is judged."""

    head: Head
    relation: str
    direction: str


@with_bar("of the sentences")
def compare_heads(
    corpus: Source,
    head: AnyHead,
    other_head: AnyHead,
    relation: str,
    direction: str = DIRECTIONS[0],
    *,
    model: ModelOrName = catalog.DEFAULT,
    other_model: ModelOrName | None = None,
    device: str = "cpu",
    resume: str | os.PathLike[str] | None = None,
    progress: ProgressOption[Progress] = False,
    client: Client | None = None,
) -> PairedDifferences:
    """Compare how often two heads are right on one relation, over the same cases of a treebank.

    Args:
        corpus: as for :func:`mha_viz.profile`.
        head: such as "L3H1".
        other_head: the head that it is compared with.
        relation: such as "nsubj".
        direction: "dep_to_head", "head_to_dep" or "head_row".
        model: as for :func:`mha_viz.profile`.
        other_model: the model of ``other_head``, if that is a different model, such as "toy@100".
        device: as for :func:`mha_viz.load`, where a model is loaded.
        resume: a folder that stores the cases, so that a stopped call can resume.
        progress: True for a bar, or a function that is called with ``done`` and ``total`` sentences, of both models if
            there are two.
        client: a Dask client, whose workers read the files, as for :func:`mha_viz.profile`.

    Returns the difference of the two accuracies, with a 95 % interval from the same draws of documents for both.
    Sentences that one of the models cannot read are left out. Raises CorpusError for a corpus without trees or without
    the relation, SettingError for another direction, UnknownHead, ModelError.

    >>> mv.roles.compare_heads("grammar", "L1H1", "L1H2", "nsubj", model="toy")[0].n
    787
    """
    if direction not in DIRECTIONS:
        raise SettingError(f"{quote(direction)} is not a direction.", f"Give one of {', '.join(DIRECTIONS)}.")
    source, encoder = open_measurable(corpus, client), load_one_stack(model, device)
    other = encoder if other_model is None else load_one_stack(other_model, device)
    question = _Question(Head.among(head, *_get_shape(encoder)), relation, direction)
    other_question = question._replace(head=Head.among(other_head, *_get_shape(other)))
    return _measure_differences(source, encoder, other, [(question, other_question)], as_callback(progress), resume)


@with_bar("of the sentences")
def compare_roles(
    profile: Profile,
    corpus: Source,
    other_model: ModelOrName,
    head: AnyHead | None = None,
    *,
    model: AnyModel | None = None,
    device: str = "cpu",
    resume: str | os.PathLike[str] | None = None,
    progress: ProgressOption[Progress] = False,
    client: Client | None = None,
) -> PairedDifferences:
    """Compare the head of each role of syntax of a profile with a head of another model, as :func:`compare_heads` does.

    Args:
        profile: the profile with the roles.
        corpus: as for :func:`mha_viz.profile`.
        other_model: such as another step or seed of the training.
        head: a head of ``other_model``; by default the same layer and number as the head of the role.
        model: the encoder of the profile, if already loaded.
        device: as for :func:`mha_viz.load`, where a model is loaded.
        resume: as for :func:`compare_heads`.
        progress: as for :func:`compare_heads`.
        client: as for :func:`compare_heads`.

    Returns a difference for each role; roles without a case in the corpus are left out. Raises the errors of
    :func:`compare_heads`, and CorpusError for a profile without roles of syntax.
    """
    check_kind(profile, Profile, *PROFILE_KIND)
    roles = [_Question(f.head, *f.detail.split(" ")) for f in profile.findings() if f.role == "syntax"]
    if not roles:
        raise CorpusError(f"The profile of {profile.corpus} has no roles of syntax.", "Give the profile of a treebank.")
    encoder, other = (load_one_stack(name, device) for name in (model or profile.model, other_model))
    pairs = [(role, role._replace(head=Head.among(head or role.head, *_get_shape(other)))) for role in roles]
    return _measure_differences(open_measurable(corpus, client), encoder, other, pairs, as_callback(progress), resume)


def _get_shape(encoder: Encoder) -> tuple[Sequence[int], int, str]:
    """Return the layer numbers, the number of heads per layer and the name of a model."""
    return encoder.layer_numbers, encoder.heads, encoder.name


@dataclass(frozen=True)
class JudgedCases(CaseKind):
    """Whether heads are right: a case for each answer to one of the ``questions``.

    Its values are the number of the question and whether the answer is right.
    """

    size: ClassVar[int] = SENTENCES_AT_ONCE
    questions: tuple[_Question, ...]

    def definition(self, offset: int) -> list[object]:
        """Return the questions, with the version of the cases."""
        return [FORMAT, "judged", self.step, self.questions, offset]

    def cases(self, encoder: Encoder, numbered_sentences: Sequence[NumberedSentence]) -> Cases:
        """Return the answers in the sentences that can be read, in order."""
        heads = sorted({question.head for question in self.questions})
        head_indices = np.array([head.place(encoder.heads, encoder.layer_numbers) for head in heads])
        cases = Cases(sentences_read=len(numbered_sentences))
        blocks = iter_word_blocks(encoder, [sentence for _, sentence in numbered_sentences])
        pointers = {index: find_pointers(block[head_indices]) for index, block in blocks}
        for index in sorted(pointers):
            number, sentence = numbered_sentences[index]
            for question_number, (head, relation, direction) in enumerate(self.questions):
                answers = list_arcs(sentence, pointers[index], heads.index(head), relation, direction)
                cases.cases += [np.array([question_number, answer.is_right], float) for answer in answers]
                cases.units += [(sentence.document, number)] * len(answers)
        return cases


def _measure_differences(
    source: MeasurableCorpus,
    encoder: Encoder,
    other: Encoder,
    pairs: Sequence[tuple[_Question, _Question]],
    report: Callable[[Progress], None],
    resume: str | os.PathLike[str] | None,
) -> PairedDifferences:
    """Measure the differences of pairs of heads on their common cases."""
    folder = None if resume is None else Path(resume)
    open_treebank(source.corpus)
    questions_by_model = {encoder: [question for question, _ in pairs]}
    questions_by_model[other] = [*questions_by_model.get(other, ()), *(question for _, question in pairs)]
    runs, answers_by_model = list[CaseRun](), dict[Encoder, Mapping[_Question, AnswersBySentence]]()
    for model_number, (model, questions) in enumerate(questions_by_model.items()):
        kind = JudgedCases(1, tuple(dict.fromkeys(questions)))
        runs.append(source.run(model, kind, folder))
        cases = collect_cases(runs[-1], partial(_report_model, report, model_number, len(questions_by_model)))
        answers_by_question: dict[_Question, dict[int, list[bool]]] = {question: {} for question in kind.questions}
        for (question, is_right), (_, number) in zip(cases.cases, cases.units, strict=True):
            answers_by_question[kind.questions[int(question)]].setdefault(number, []).append(bool(is_right))
        answers_by_model[model] = answers_by_question
    for run in runs:
        run.discard_partial_results()
    documents = Documents(source.documents, MAX_UNITS)
    differences = []
    for first, second in pairs:
        answers, other_answers = answers_by_model[encoder][first], answers_by_model[other][second]
        common_cases = [
            (number, answers[number], other_answers[number]) for number in sorted({*answers} & {*other_answers})
        ]
        if common_cases:
            heads = ModelHead(encoder.name, first.head), ModelHead(other.name, second.head)
            differences.append(compare_answers(first.relation, first.direction, heads, common_cases, documents))
    if not differences:
        names = ", ".join(dict.fromkeys(question.relation for question, _ in pairs))
        raise CorpusError(
            f"{source.corpus.name} has no case of {names}.", "Name a relation that it has, such as nsubj."
        )
    return PairedDifferences(differences)


def _report_model(progress: Callable[[Progress], None], number: int, models: int, state: Progress) -> None:
    progress(state.scale_to_passes(number, models))
