"""How many roles of syntax chance would name: the study, with the trees of other sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mha_viz.analysis.established import establish
from mha_viz.analysis.roles import ESTABLISHED
from mha_viz.corpus.permuted import permuted
from mha_viz.corpus.sources import Source, open_corpus
from mha_viz.corpus.treebank import Corpus
from mha_viz.errors import CorpusError, SettingError
from mha_viz.models import catalog
from mha_viz.models.encoder import Encoder
from mha_viz.models.loading import AnyModel, one_stack
from mha_viz.study.plan import BATCH
from mha_viz.study.profiling import Here
from mha_viz.study.run import Progress


@dataclass(frozen=True)
class ChanceRoles:
    """How many roles of syntax a study names (``observed``), and how many with the trees of other sentences, for each
    draw (``drawn``). ``p``: the share of all these draws, the observed one among them, that name as many as it or more
    (Phipson & Smyth 2010, Stat. Appl. Genet. Mol. Biol. 9, art. 39)."""

    observed: int
    drawn: tuple[int, ...]

    @property
    def p(self) -> float:
        """The share of draws, the observed one among them, with as many roles or more."""
        return (1 + sum(count >= self.observed for count in self.drawn)) / (1 + len(self.drawn))


def chance_roles(
    corpus: Source,
    model: str | AnyModel = catalog.DEFAULT,
    *,
    also: Source | None = None,
    draws: int = 20,
    seed: int = 0,
    batch: int = BATCH,
    device: str = "cpu",
    progress: Callable[[Progress], None] | None = None,
) -> ChanceRoles:
    """How many roles of syntax :func:`mha_viz.profile` names over a treebank, and how many if each sentence has the
    tree of another with as many words, in ``draws`` such permutations.

    Words, text and weights stay, and so do the trees as a whole, so that the simple rules are as good as before; only
    what a head knows of a sentence is lost. ``also``: a second treebank; roles are then those that both establish. The
    other arguments and errors are those of ``profile``; a study takes as long as ``draws`` + 1 profiles without
    untrained weights. Raises CorpusError for a corpus without trees, SettingError for less than one draw.

    >>> mv.chance_roles("grammar", "toy", draws=2).observed
    7
    """
    if draws < 1:
        raise SettingError(f"draws is {draws}.", "Give 1 or more; 20 are usual.")
    corpora = [_trees(source) for source in (also, corpus) if source is not None]
    encoder, engine = one_stack(model, device), Here(batch)
    show = progress or (lambda _: None)
    drawn = ([permuted(one, seed + draw) for one in corpora] for draw in range(draws))
    observed, *others = (_roles(engine, encoder, sources, show) for sources in (corpora, *drawn))
    return ChanceRoles(observed, tuple(others))


def _trees(source: Source) -> Corpus:
    corpus = open_corpus(source)
    if not isinstance(corpus, Corpus) or not corpus.has_trees:
        raise CorpusError(f"{corpus.name} has no trees.", "Give a treebank in CoNLL-U, or “grammar”.")
    return corpus


def _roles(engine: Here, encoder: Encoder, corpora: Sequence[Corpus], show: Callable[[Progress], None]) -> int:
    """The number of roles of syntax: established by two corpora, or suggested by one."""
    profiles = [engine.study(encoder, corpus, control=False, progress=show) for corpus in corpora]
    named = establish(*profiles)[1] if len(profiles) > 1 else profiles[0]
    roles = [role for role in named.findings() if role.role == "syntax"]
    return sum(role.status == ESTABLISHED for role in roles) if len(profiles) > 1 else len(roles)
