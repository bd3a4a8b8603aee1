"""Count how many roles would be named by chance.

The study is repeated with the trees of other sentences, with chains of other mentions, or with other words of the same
kind in place of the right ones.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from mha_viz.analysis.bundled_data import establish
from mha_viz.analysis.chance import COREFERENCE, KIND, PERMUTATION, SYNTAX, ChanceRoles
from mha_viz.analysis.profile import Profile
from mha_viz.analysis.roles import ESTABLISHED
from mha_viz.corpus.sources import Source, read_corpus
from mha_viz.corpus.treebank import Corpus, Sentence, digest_text
from mha_viz.errors import CorpusError, SettingError, shorten_value
from mha_viz.models.getting import catalog
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import ModelOrName, load_one_stack
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.study.kind_null import KindNullSums, count_roles
from mha_viz.study.plan import DEFAULT_BATCH
from mha_viz.study.profiling import LocalEngine
from mha_viz.study.run import Progress, measure_sums
from mha_viz.study.sums import PASSES

if TYPE_CHECKING:
    from distributed import Client

    from mha_viz.study.cluster.engine import ClusterEngine

PROGRESS_STEPS = 1000  # progress steps of one corpus
FOLDER_PREFIX = ".kinds-"  # prefix of the name of the folder for the counts of a corpus


def permute_trees(corpus: Corpus, seed: int) -> Corpus:
    """Replace the annotation of each sentence by that of another sentence of equal length, drawn by ``seed``.

    No sentence keeps its own annotation. Sentences whose number of words is unique are left out, and so is coreference.
    """
    sentences, rng = corpus.sentences, random.Random(seed)
    numbers_by_length: dict[int, list[int]] = defaultdict(list)
    donors: dict[int, int] = {}
    for number, sentence in enumerate(sentences):
        numbers_by_length[len(sentence.words)].append(number)
    for numbers in numbers_by_length.values():  # sentences of one length form a random cycle
        cycle = rng.sample(numbers, len(numbers))
        donors.update(zip(cycle, [*cycle[1:], cycle[0]], strict=True) if len(cycle) > 1 else ())
    return replace(
        corpus,
        sentences=tuple(_copy_annotation(sentences[number], sentences[donors[number]]) for number in sorted(donors)),
        digest=digest_text(f"{corpus.digest} with the trees of other sentences {seed}"),
        has_chains=False,
    )


def rotate_chains(corpus: Corpus, seed: int) -> Corpus:
    """Shuffle coreference while keeping its statistics.

    Within each document, shift the list of chain ids by a random offset, drawn by ``seed``, so that every chain keeps
    its size and spacing but groups unrelated mentions. Trees are dropped.
    """
    sentences, rng = list(corpus.sentences), random.Random(seed)
    documents: dict[str, list[int]] = defaultdict(list)
    for number, sentence in enumerate(sentences):
        documents[sentence.document].append(number)
    for numbers in documents.values():
        chains = [mention.chain for number in numbers for mention in sentences[number].mentions]
        offset = rng.randrange(1, len(chains)) if len(chains) > 1 else 0
        shifted_chains = iter([*chains[offset:], *chains[:offset]])
        for number in numbers:
            mentions = tuple(mention._replace(chain=next(shifted_chains)) for mention in sentences[number].mentions)
            sentences[number] = replace(sentences[number], mentions=mentions)
    digest = digest_text(f"{corpus.digest} with chains turned {seed}")
    return replace(corpus, sentences=tuple(sentences), digest=digest, has_trees=False)


def _copy_annotation(sentence: Sentence, donor: Sentence) -> Sentence:
    """Return a sentence with the annotation of a donor, without mentions."""
    pairs = zip(sentence.words, donor.words, strict=True)
    return replace(
        sentence, words=tuple(donor_word._replace(form=word.form) for word, donor_word in pairs), mentions=()
    )


class _Null(NamedTuple):
    """A way to permute a corpus, the annotation that it needs, and the attribute of Corpus for that annotation."""

    permute: Callable[[Corpus, int], Corpus]
    attribute: str
    annotation: str


NULLS: Mapping[str, _Null] = MappingProxyType(
    {
        SYNTAX: _Null(permute_trees, "has_trees", "trees"),
        COREFERENCE: _Null(rotate_chains, "has_chains", "coreference chains"),
    }
)


@with_bar("of all draws")
def permutation_test(
    corpus: Source,
    model: ModelOrName = catalog.DEFAULT,
    *,
    also: Source | None = None,
    role: str = SYNTAX,
    keeps: str = "",
    draws: int = 20,
    seed: int = 0,
    batch: int = DEFAULT_BATCH,
    resume: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    progress: ProgressOption[Progress] = False,
    client: Client | None = None,
) -> ChanceRoles:
    """Count the roles of syntax that :func:`mha_viz.profile` names, and those that it names by chance.

    In a permutation, each sentence has the tree of another sentence with as many words. Words, text, weights and the
    set of all trees stay the same, so that simple rules do as well as before; only a head's knowledge of its sentence
    is lost. A study of permutations takes as long as ``draws`` + 1 profiles without untrained weights.

    Args:
        corpus: a treebank, as for :func:`mha_viz.profile`.
        model: as for :func:`mha_viz.profile`.
        also: a second treebank; only roles that both establish are then counted.
        role: "syntax", or "coreference", which rotates the chains of each document along its mentions; that keeps the
            distances between the mentions of a chain.
        keeps: with "kind", there are no permutations. Instead, a draw replaces the right word for each word by another
            word of the sentence with the same part of speech (:mod:`mha_viz.analysis.kind_null`), so that a head that
            only knows which kind of word to look for loses nothing. All draws are counted in one pass over each
            corpus.
        draws: the number of permutations or, with ``keeps``, of draws.
        seed: determines the draws.
        batch: as for :func:`mha_viz.profile`.
        resume: with ``keeps``, a folder that stores the sums, so that a stopped call can resume.
        device: as for :func:`mha_viz.load`, where ``model`` is a name.
        progress: as for :func:`mha_viz.profile`, over all draws; on a cluster over the sentences of each corpus.
        client: with ``keeps``, a client of a Dask cluster, whose workers count; corpora are then names of files.

    Returns the counts (:class:`mha_viz.analysis.chance.ChanceRoles`); their ``stored_in`` puts them into a profile,
    whose report states them. Raises CorpusError for a corpus without trees, or without chains, SettingError for fewer
    than one draw, for another ``role`` or ``keeps``, and for permutations on a cluster; and as :func:`mha_viz.profile`.

    >>> mv.roles.permutation_test("grammar", "toy", draws=2).observed
    7
    """
    if not isinstance(draws, int) or draws < 1:
        raise SettingError(f"draws is {shorten_value(draws)}.", "Give a whole number from 1 on; 20 are usual.")
    if role not in NULLS:
        raise SettingError(f"{shorten_value(role, 60)!r} is not a role that is counted.", f"Give {' or '.join(NULLS)}.")
    if keeps not in ("", KIND) or (keeps and role != SYNTAX):
        problem = f"{shorten_value(keeps, 60)!r} cannot be kept for roles of {role}."
        raise SettingError(problem, f"Give {KIND!r}, for roles of {SYNTAX}, or nothing.")
    sources = [corpus] if also is None else [also, corpus]
    corpora = [open_treebank(source, role) for source in sources]
    encoder, report = load_one_stack(model, device), as_callback(progress)
    if keeps:
        kind, cluster = KindNullSums(draws, seed, by_half=also is None), None
        if client is not None:
            from mha_viz.study.cluster.engine import ClusterEngine  # Dask is an optional dependency

            cluster = ClusterEngine(client, batch)
        counts = _count_kind_roles(sources, corpora, encoder, kind, resume, batch, report, cluster)
    elif client is not None:
        raise SettingError("Draws are measured in this process.", "Leave out client=, or keep the kind of words.")
    else:
        counts = _count_permuted_roles(corpora, encoder, role, draws, seed, batch, report)
    return ChanceRoles(counts[0], tuple(counts[1:]), tuple(item.name for item in corpora), role, keeps or PERMUTATION)


def _count_kind_roles(
    sources: Sequence[Source],
    corpora: Sequence[Corpus],
    encoder: Encoder,
    kind: KindNullSums,
    resume: str | os.PathLike[str] | None,
    batch: int,
    progress: Callable[[Progress], None],
    cluster: ClusterEngine | None,
) -> list[int]:
    """Count the roles that the corpora name, and those of each draw of other words of the same kind."""
    folders = [None if resume is None else Path(resume) / f"{FOLDER_PREFIX}{number}" for number in range(len(sources))]
    sums = []
    for number, (source, opened_corpus, folder) in enumerate(zip(sources, corpora, folders, strict=True)):
        if cluster:
            sums.append(cluster.measure_sums(encoder, cluster.open(source), folder, PASSES[:1], kind, progress))
        else:
            report = partial(_report_progress, progress, number, len(sources))
            sums.append(
                measure_sums([encoder], opened_corpus, kind, resume=folder, keep=True, batch=batch, progress=report)
            )
    for folder in filter(None, folders):
        shutil.rmtree(folder, ignore_errors=True)
    return count_roles(kind, sums)


def _count_permuted_roles(
    corpora: Sequence[Corpus],
    encoder: Encoder,
    role: str,
    draws: int,
    seed: int,
    batch: int,
    progress: Callable[[Progress], None],
) -> list[int]:
    """Count the roles that the corpora name, and those of each permutation of them."""
    studies, counts = len(corpora) * (1 + draws), list[int]()
    for draw in range(1 + draws):
        profiles: list[Profile] = []
        for permutation in [NULLS[role].permute(item, seed + draw - 1) for item in corpora] if draw else corpora:
            report = partial(_report_progress, progress, len(corpora) * draw + len(profiles), studies)
            profiles.append(LocalEngine(batch).study(encoder, permutation, control=False, progress=report))
        roles_profile = establish(*profiles)[1] if len(profiles) > 1 else profiles[0]
        roles = [finding for finding in roles_profile.findings() if finding.role == role]
        # Two corpora establish roles, one corpus suggests them.
        counts.append(sum(finding.status == ESTABLISHED for finding in roles) if len(profiles) > 1 else len(roles))
    return counts


def open_treebank(source: Source, role: str = SYNTAX) -> Corpus:
    """Open the corpus of a source. Raises CorpusError if it lacks the annotation that a role is measured against."""
    corpus, null = read_corpus(source), NULLS[role]
    if not isinstance(corpus, Corpus) or not getattr(corpus, null.attribute):
        raise CorpusError(f"{corpus.name} has no {null.annotation}.", "Give a treebank in CoNLL-U, or “grammar”.")
    return corpus


def _report_progress(progress: Callable[[Progress], None], studies_before: int, studies: int, state: Progress) -> None:
    """Report the progress over all studies; ``studies_before`` studies come before this one."""
    progress(Progress(round(PROGRESS_STEPS * (studies_before + state.fraction)), PROGRESS_STEPS * studies))
