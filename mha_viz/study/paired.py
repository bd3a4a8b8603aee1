"""Two heads on the same cases of a treebank: of one model, or of two models such as two steps of a training."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mha_viz.analysis.corpus_effects import MOST_UNITS
from mha_viz.analysis.intervals import Documents
from mha_viz.analysis.paired import HeadOf, PairedDifferences, difference
from mha_viz.analysis.profile import Profile
from mha_viz.analysis.syntax import DIRECTIONS, arcs, pointers
from mha_viz.attention import AnyHead, Head
from mha_viz.corpus.sources import Source
from mha_viz.corpus.treebank import Corpus
from mha_viz.errors import PROFILE, CorpusError, SettingError, check_kind
from mha_viz.models import catalog
from mha_viz.models.encoder import Encoder
from mha_viz.models.loading import AnyModel, ModelOrName, one_stack
from mha_viz.quotes import quoted
from mha_viz.study.chance import treebank
from mha_viz.study.pointers import word_blocks
from mha_viz.study.run import Progress

Right = Mapping[int, Sequence[bool]]  # by sentence: whether the answer to each case is right


class _Question(NamedTuple):
    """A head and the relation and direction on which it is judged."""

    head: Head
    relation: str
    direction: str


def paired(
    corpus: Source,
    head: AnyHead,
    other_head: AnyHead,
    relation: str,
    direction: str = DIRECTIONS[0],
    *,
    model: ModelOrName = catalog.DEFAULT,
    other_model: ModelOrName | None = None,
    device: str = "cpu",
    progress: Callable[[Progress], None] | None = None,
) -> PairedDifferences:
    """How much more often a head is right than another on one relation, over the same cases of a treebank, with a 95 %
    interval from the same draws of documents for both.

    ``corpus`` and ``model`` are as for :func:`mha_viz.profile`; ``other_model``: the model of ``other_head``, if it is
    another one, such as "toy@100". ``direction``: "dep_to_head", "head_to_dep" or "head_row". Sentences that one of the
    models cannot read are left out. ``progress`` is called with sentences, of both models if there are two.

    Raises CorpusError for a corpus without trees or without the relation, SettingError for another direction,
    UnknownHead, ModelError's family.

    >>> mv.paired("grammar", "L1H1", "L1H2", "nsubj", model="toy")[0].n
    787
    """
    if direction not in DIRECTIONS:
        raise SettingError(f"{quoted(direction)} is no direction.", f"Give one of {', '.join(DIRECTIONS)}.")
    encoder = one_stack(model, device)
    other = encoder if other_model is None else one_stack(other_model, device)
    heads = Head.among(head, *_shape(encoder)), Head.among(other_head, *_shape(other))
    pair = tuple(_Question(one, relation, direction) for one in heads)
    return _differences(treebank(corpus), encoder, other, [(pair[0], pair[1])], progress)


def paired_roles(
    profile: Profile,
    corpus: Source,
    other_model: ModelOrName,
    head: AnyHead | None = None,
    *,
    model: AnyModel | None = None,
    device: str = "cpu",
    progress: Callable[[Progress], None] | None = None,
) -> PairedDifferences:
    """:func:`paired` for each role of syntax of a profile: its head beside the same head of another model, such as
    another step or seed of its training, or beside the ``head`` of that model that is given.

    ``model``: the encoder of the profile, if already loaded. A role without a case in the corpus is left out. Raises
    the errors of :func:`paired`, and CorpusError for a profile without roles of syntax.
    """
    check_kind(profile, Profile, *PROFILE)
    roles = [_Question(f.head, *f.detail.split(" ")) for f in profile.findings() if f.role == "syntax"]
    if not roles:
        raise CorpusError(f"The profile of {profile.corpus} has no roles of syntax.", "Take that of a treebank.")
    encoder, other = (one_stack(one, device) for one in (model or profile.model, other_model))
    pairs = [(role, role._replace(head=Head.among(head or role.head, *_shape(other)))) for role in roles]
    return _differences(treebank(corpus), encoder, other, pairs, progress)


def _shape(encoder: Encoder) -> tuple[Sequence[int], int, str]:
    return encoder.layer_numbers, encoder.heads, encoder.name


def _differences(
    corpus: Corpus,
    encoder: Encoder,
    other: Encoder,
    pairs: Sequence[tuple[_Question, _Question]],
    progress: Callable[[Progress], None] | None,
) -> PairedDifferences:
    tell, total = progress or (lambda _: None), len(corpus.sentences)
    if other is encoder:
        rights = [_rights(encoder, corpus, [question for pair in pairs for question in pair], 0, total, tell)] * 2
    else:
        both = enumerate((encoder, other))
        rights = [_rights(one, corpus, [pair[at] for pair in pairs], at * total, 2 * total, tell) for at, one in both]
    documents = Documents([sentence.document for sentence in corpus.sentences], MOST_UNITS)
    compared = []
    for one, beside in pairs:
        right, other_right = rights[0][one], rights[1][beside]
        answers = [(number, right[number], other_right[number]) for number in sorted({*right} & {*other_right})]
        if any(cases for _, cases, _ in answers):
            heads = HeadOf(encoder.name, one.head), HeadOf(other.name, beside.head)
            compared.append(difference(one.relation, one.direction, heads, answers, documents))
    if not compared:
        names = ", ".join(dict.fromkeys(one.relation for one, _ in pairs))
        raise CorpusError(f"{corpus.name} has no case of {names}.", "Name a relation that it has, such as nsubj.")
    return PairedDifferences(compared)


def _rights(
    encoder: Encoder,
    corpus: Corpus,
    every: Iterable[_Question],
    before: int,
    total: int,
    tell: Callable[[Progress], None],
) -> Mapping[_Question, Right]:
    """For each question which cases are answered right, by sentence. ``before``: sentences that another model has
    read, of ``total``."""
    questions = dict.fromkeys(every)
    heads = sorted({question.head for question in questions})
    flat = np.array([head.place(encoder.heads, encoder.layer_numbers) for head in heads])
    rights: dict[_Question, dict[int, Sequence[bool]]] = defaultdict(dict)
    for done, (number, block) in enumerate(word_blocks(encoder, corpus), 1):
        pointed = pointers(block[flat])
        for question in questions:
            cases = arcs(
                corpus.sentences[number], pointed, heads.index(question.head), question.relation, question.direction
            )
            rights[question][number] = [case.right for case in cases]
        tell(Progress(before + done, total))
    tell(Progress(before + len(corpus.sentences), total))
    return rights
