"""Measure a profile in one call, from the path of a corpus and the name of a model."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from mha_viz.analysis.bundled_data import check_profiles, establish
from mha_viz.analysis.profile import Profile, find_profile_folder, parse_profile, read_profile
from mha_viz.corpus.sources import Source, read_corpus
from mha_viz.corpus.treebank import Corpus, Gap
from mha_viz.errors import PATH_KIND, ExportError, check_kind
from mha_viz.files import make_folder
from mha_viz.models.getting import catalog
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import ModelOrName, load_one_stack
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.study.plan import DEFAULT_BATCH
from mha_viz.study.run import Progress, study

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Profile", "Progress", "establish", "load_profile", "profile"]


class Engine(Protocol):
    """The interface of measuring engines: this process, or a cluster."""

    def open(self, source: Source, name: str | None = None) -> Any:
        """Open the corpus that ``source`` names for this engine."""

    def study(
        self,
        encoder: Encoder,
        corpus: Any,
        folder: Path | None = None,
        control: bool = True,
        progress: Callable[[Progress], None] = ...,
    ) -> Profile:
        """Return the profile of a model over a corpus, as :func:`mha_viz.study.run.study` does.

        Resume from ``folder``.
        """


class LocalEngine:
    """The engine that measures in this process. ``batch`` is the maximum number of tokens per batch."""

    def __init__(self, batch: int = DEFAULT_BATCH) -> None:
        self.batch = batch

    def open(self, source: Source, name: str | None = None) -> Corpus | Gap:
        """Open a corpus as :func:`mha_viz.read_corpus` does."""
        return read_corpus(source, name)

    def study(
        self,
        encoder: Encoder,
        corpus: Corpus | Gap,
        folder: Path | None = None,
        control: bool = True,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> Profile:
        """Return a profile as :func:`mha_viz.study.run.study` does."""
        return study(encoder, corpus, resume=folder, batch=self.batch, control=control, progress=progress)


def choose_engine(client: Client | None, batch: int = DEFAULT_BATCH) -> Engine:
    """Return the engine that measures with a Dask client or, without one, in this process. Raises ClusterError."""
    if client is None:
        return LocalEngine(batch)
    from mha_viz.study.cluster.engine import ClusterEngine  # Dask is an optional dependency

    return ClusterEngine(client, batch)


@with_bar("of the text")
def profile(
    corpus: Source,
    model: ModelOrName = catalog.DEFAULT,
    *,
    also: Source | Profile | None = None,
    out: str | os.PathLike[str] | None = None,
    name: str | None = None,
    batch: int = DEFAULT_BATCH,
    device: str = "cpu",
    progress: ProgressOption[Progress] = False,
    client: Client | None = None,
) -> Profile:
    """Measure what each head of a model does over a corpus: the study of ``mha-viz profile``, with the same numbers.

    Args:
        corpus: a path (CoNLL-U, a GAP table, or text with one sentence per line), a list of paths, "grammar" for the
            built-in corpus, or a corpus from ``read_corpus``.
        model: a name as for :func:`mha_viz.load`, or an encoder, as ``load`` returns it with a ``dtype``.
        also: a second corpus of another origin, or the profile of the same model on such a corpus, as with ``--and``.
            The roles of the profile are then those that both corpora establish; :func:`establish` gives the profiles
            of both.
        out: a folder for the tables; a stopped study resumes there.
        name: a new name of the corpus.
        batch: the maximum number of tokens per batch, which affects speed and memory, not results.
        device: as for :func:`mha_viz.load`, where ``model`` is a name.
        progress: True for a bar, or a function that is called after each batch with ``done`` and ``total`` pieces of a
            corpus and their ``fraction``; a second corpus comes first.
        client: a Dask client, whose workers measure shards of the files; all of them must have access to the files and
            to ``out``.

    Returns the profile. Raises CorpusError for a corpus that cannot be read or is given twice and for a profile of
    another model, ModelError, ExportError where ``out`` cannot be written, and ClusterError where a cluster
    fails.

    >>> mv.profile("grammar", model="toy").tables["entropy"].columns.tolist()
    ['layer', 'head', 'nats', 'normalised']
    """
    engine = choose_engine(client, batch)
    source = engine.open(corpus, name)
    second = engine.open(also) if also is not None and not isinstance(also, Profile) else also
    encoder = load_one_stack(model, device)
    if second is not None:
        _check_comparable(encoder, source, second)
    report, folder = as_callback(progress), None if out is None else Path(out)
    if second is not None and not isinstance(second, Profile):
        second = measure_profile(engine, encoder, second, None, report)
    result = measure_profile(engine, encoder, source, folder, report)
    if second is not None:
        result = establish(second, result)[1]
        if folder is not None:
            result.write(folder)
    return parse_profile(result.files())  # rounded as in the files, so that a profile read from them is equal


def _check_comparable(encoder: Encoder, corpus: Any, second: Any) -> None:
    """Raise CorpusError unless the second corpus differs from the first and its profile is of the same model.

    This is called before anything is measured.
    """
    first_facts = {"model": encoder.name, "revision": encoder.revision, "corpus": corpus.name, "sha256": corpus.digest}
    second_facts = (
        second.facts if isinstance(second, Profile) else {**first_facts, "corpus": second.name, "sha256": second.digest}
    )
    check_profiles(first_facts, second_facts)


def measure_profile(
    engine: Engine, encoder: Encoder, corpus: Any, out: Path | None, progress: Callable[[Progress], None]
) -> Profile:
    """Return the profile of a corpus that the engine has opened, and write it to the folder ``out`` if one is given.

    Raises the errors of :func:`profile`.
    """
    if out is not None:
        make_folder(out)
    try:
        result = engine.study(encoder, corpus, out, progress=progress)
    except OSError as error:
        raise ExportError(f"{out} cannot be written: {error.strerror or error}.", "Choose another folder.") from error
    if out is not None:
        result.write(out)
    return result


def load_profile(folder: str | os.PathLike[str]) -> Profile:
    """Load the profile that ``Profile.save`` or ``mha-viz profile`` wrote to a folder; it equals the saved one.

    "minilm", "toy" and "repeater" open the profiles that come with the app. Raises CorpusError if there is no profile
    or it is damaged.
    """
    check_kind(folder, *PATH_KIND[:2], "Give the folder of a profile, or “minilm”, “toy” or “repeater”.")
    return read_profile(find_profile_folder(folder))
