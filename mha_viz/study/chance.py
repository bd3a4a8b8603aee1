"""How many roles chance would name: the study with the trees of other sentences, with chains of other mentions, or with
other words of the same kind in the place of those that are right."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from mha_viz.analysis.chance import COREFERENCE, KIND, PERMUTATION, SYNTAX, ChanceRoles
from mha_viz.analysis.established import establish
from mha_viz.analysis.profile import Profile
from mha_viz.analysis.roles import ESTABLISHED
from mha_viz.corpus.permuted import permuted, turned
from mha_viz.corpus.sources import Source, open_corpus
from mha_viz.corpus.treebank import Corpus
from mha_viz.errors import CorpusError, SettingError, shorten_value
from mha_viz.models import catalog
from mha_viz.models.encoder import Encoder
from mha_viz.models.loading import ModelOrName, one_stack
from mha_viz.study.kind_null import OfKinds, roles_of_draws
from mha_viz.study.plan import BATCH
from mha_viz.study.profiling import Here
from mha_viz.study.run import Progress, sums_of
from mha_viz.study.sums import PASSES

if TYPE_CHECKING:
    from distributed import Client

    from mha_viz.study.cluster.engine import OnCluster

PARTS = 1000  # of the progress of one corpus
FOLDER = ".kinds-"  # what an unfinished study has counted of each corpus


class _Null(NamedTuple):
    """How a corpus is permuted; what it has to have, as an attribute and in words."""

    permute: Callable[[Corpus, int], Corpus]
    needs: str
    words: str


NULLS: Mapping[str, _Null] = MappingProxyType(
    {SYNTAX: _Null(permuted, "has_trees", "trees"), COREFERENCE: _Null(turned, "has_chains", "coreference chains")}
)


def chance_roles(
    corpus: Source,
    model: ModelOrName = catalog.DEFAULT,
    *,
    also: Source | None = None,
    role: str = SYNTAX,
    keeps: str = "",
    draws: int = 20,
    seed: int = 0,
    batch: int = BATCH,
    resume: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    progress: Callable[[Progress], None] | None = None,
    client: Client | None = None,
) -> ChanceRoles:
    """How many roles of syntax :func:`mha_viz.profile` names over a treebank, and how many if each sentence has the
    tree of another with as many words, in ``draws`` such permutations.

    Words, text and weights stay, and so do the trees as a whole, so that the simple rules are as good as before; only
    what a head knows of a sentence is lost. ``role="coreference"`` counts roles of coreference, and turns the chains of
    each document along its mentions, which keeps how close together those of a chain are. ``also``: a second
    treebank; roles are then those that both establish.

    ``keeps="kind"`` draws otherwise: for each word, another word of its sentence with the part of speech of the right
    one takes that one's place (:mod:`mha_viz.analysis.kind_null`), so that a head that only knows which kind of word to
    look for loses nothing. All of its draws are counted in one reading of each corpus; one that was stopped goes on
    from the sums in the folder ``resume``. ``client``: of a Dask cluster, whose workers count; corpora are then names
    of files.

    ``progress``: over all draws; on a cluster over the sentences of each corpus. The other arguments and errors are
    those of ``profile``; a study of permutations takes as long as ``draws`` + 1 profiles without untrained weights.
    ``stored_in`` of the result puts it into a profile, whose report states it. Raises CorpusError for a corpus without
    trees, or without chains, SettingError for less than one draw, for another ``role`` or ``keeps``, and for
    permutations on a cluster.

    >>> mv.chance_roles("grammar", "toy", draws=2).observed
    7
    """
    if not isinstance(draws, int) or draws < 1:
        raise SettingError(f"draws is {shorten_value(draws)}.", "Give a whole number from 1 on; 20 are usual.")
    if role not in NULLS:
        raise SettingError(f"{shorten_value(role, 60)!r} is not a role that is counted.", f"Give {' or '.join(NULLS)}.")
    if keeps not in ("", KIND) or (keeps and role != SYNTAX):
        given = f"{shorten_value(keeps, 60)!r} cannot be kept for roles of {role}."
        raise SettingError(given, f"Give {KIND!r}, for roles of {SYNTAX}, or nothing.")
    sources = [corpus] if also is None else [also, corpus]
    corpora = [treebank(source, role) for source in sources]
    encoder, show = one_stack(model, device), progress or (lambda _: None)
    if keeps:
        kind, cluster = OfKinds(draws, seed, by_half=also is None), None
        if client is not None:
            from mha_viz.study.cluster.engine import OnCluster  # without Dask, this process measures

            cluster = OnCluster(client, batch)
        counts = _of_kinds(sources, corpora, encoder, kind, resume, batch, show, cluster)
    elif client is not None:
        raise SettingError("Permutations are studied in this process.", "Leave out client=, or keep the kind of words.")
    else:
        counts = _of_permutations(corpora, encoder, role, draws, seed, batch, show)
    return ChanceRoles(counts[0], tuple(counts[1:]), tuple(one.name for one in corpora), role, keeps or PERMUTATION)


def _of_kinds(
    sources: Sequence[Source],
    corpora: Sequence[Corpus],
    encoder: Encoder,
    kind: OfKinds,
    resume: str | os.PathLike[str] | None,
    batch: int,
    show: Callable[[Progress], None],
    cluster: OnCluster | None,
) -> list[int]:
    """Count how many roles the corpora name, and how many each draw of other words of the same kind."""
    folders = [None if resume is None else Path(resume) / f"{FOLDER}{number}" for number in range(len(sources))]
    sums = []
    for number, (source, opened, folder) in enumerate(zip(sources, corpora, folders, strict=True)):
        if cluster:
            sums.append(cluster.sums(encoder, cluster.open(source), folder, PASSES[:1], kind, show))
        else:
            tell = partial(_tell, show, number, len(sources))
            sums.append(sums_of([encoder], opened, kind, resume=folder, keep=True, batch=batch, progress=tell))
    for folder in filter(None, folders):
        shutil.rmtree(folder, ignore_errors=True)
    return roles_of_draws(kind, sums)


def _of_permutations(
    corpora: Sequence[Corpus],
    encoder: Encoder,
    role: str,
    draws: int,
    seed: int,
    batch: int,
    show: Callable[[Progress], None],
) -> list[int]:
    """Count how many roles the corpora name, and how many each permutation of them."""
    studies, counts = len(corpora) * (1 + draws), list[int]()
    for draw in range(1 + draws):
        profiles: list[Profile] = []
        for of_draw in [NULLS[role].permute(one, seed + draw - 1) for one in corpora] if draw else corpora:
            tell = partial(_tell, show, len(corpora) * draw + len(profiles), studies)
            profiles.append(Here(batch).study(encoder, of_draw, control=False, progress=tell))
        counts.append(_roles(profiles, role))
    return counts


def treebank(source: Source, role: str = SYNTAX) -> Corpus:
    """The corpus of a source. Raises CorpusError if it lacks what a role is measured against."""
    corpus, null = open_corpus(source), NULLS[role]
    if not isinstance(corpus, Corpus) or not getattr(corpus, null.needs):
        raise CorpusError(f"{corpus.name} has no {null.words}.", "Give a treebank in CoNLL-U, or “grammar”.")
    return corpus


def _tell(show: Callable[[Progress], None], before: int, studies: int, so_far: Progress) -> None:
    """The progress over all studies, of one with this many ``before`` it."""
    show(Progress(round(PARTS * (before + so_far.fraction)), PARTS * studies))


def _roles(profiles: Sequence[Profile], role: str) -> int:
    """The number of roles: established by two corpora, or suggested by one."""
    named = establish(*profiles)[1] if len(profiles) > 1 else profiles[0]
    roles = [finding for finding in named.findings() if finding.role == role]
    return sum(finding.status == ESTABLISHED for finding in roles) if len(profiles) > 1 else len(roles)
