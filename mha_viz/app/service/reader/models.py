"""The loaded models of the process that runs them, with the mean outputs measured for switching heads off."""

from __future__ import annotations

import gc
from collections import OrderedDict
from functools import cache
from pathlib import Path

from mha_viz.attention import Weights
from mha_viz.corpus.treebank import Corpus
from mha_viz.errors import MeansMissing
from mha_viz.models.getting import catalog
from mha_viz.models.getting.folder import FileStamps, read_stamps
from mha_viz.models.intervening.ablation import Means
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import AnyModel, load, load_one_stack
from mha_viz.request import Request

MODEL_BYTES = 2_500_000_000  # bytes of the weights of all loaded models


class Models:
    """A cache of loaded models, bounded in bytes; the least recently used model is dropped first."""

    def __init__(self) -> None:
        self._encoders: OrderedDict[str, AnyModel] = OrderedDict()
        self._stamps: dict[str, FileStamps] = {}  # state of the files of a loaded folder, when it was read
        self.last_folder: Path | None = None  # folder of the model used last, if it has one
        # Means of each loaded model, and the number of sentences added to them.
        self._means: dict[str, tuple[Means, int]] = {}

    @property
    def names(self) -> list[str]:
        """The names of the loaded models."""
        return list(self._encoders)

    def __getitem__(self, name: str) -> Encoder:
        """Return a model with one stack of layers, loaded if necessary.

        Raises ModelUnsupported for an encoder–decoder, and the errors of :meth:`get_model`.
        """
        return load_one_stack(self.get_model(name))

    def get_model(self, name: str) -> AnyModel:
        """Return the model, with one stack of layers or two; load it if necessary. Raises ModelError or a subclass."""
        if name in self._encoders:
            folder, old_stamps = self._encoders[name].folder, self._stamps.get(name)
            if (
                folder is not None and old_stamps and read_stamps(folder) not in (old_stamps, frozenset())
            ):  # the files have changed
                del self._encoders[name]
                self._means.pop(name, None)
        if name not in self._encoders:
            model = catalog.resolve(name)
            # Read before the model is loaded, so that later changes are noticed. Only files of a user's folder change.
            self._stamps[name] = read_stamps(Path(model.path)) if model.kind == "folder" else frozenset()
            self._encoders[name] = load(name, download=False)
            gc.freeze()  # so that the garbage collector skips half a million objects of the model libraries
        self._encoders.move_to_end(name)
        while len(self._encoders) > 1 and sum(encoder.bytes for encoder in self._encoders.values()) > MODEL_BYTES:
            self._means.pop(self._encoders.popitem(last=False)[0], None)
        encoder = self._encoders[name]
        self.last_folder = encoder.folder
        return encoder

    def add_to_means(self, name: str, first: int, end: int) -> None:
        """Add the built-in sentences from ``first`` to ``end`` (exclusive) to the mean outputs of a model's heads.

        Sentences that were already added are skipped. Raises MeansMissing if sentences before ``first`` have not been
        added since this process loaded the model.
        """
        means, added_count = self._means.get(name, (Means(self[name]), 0))
        if first > added_count:
            raise _make_missing_error()
        self._means.pop(name, None)  # incomplete sums are not stored
        sentences = load_built_in_corpus().sentences
        means.add(" ".join(sentence.forms) for sentence in sentences[added_count:end])
        self._means[name] = means, max(added_count, min(end, len(sentences)))

    def get_means(self, request: Request) -> Weights | None:
        """Return the mean outputs of a model's heads over the built-in sentences, [layer, head, d_head].

        None if the request does not use the method "mean". Raises MeansMissing if not all sentences were added.
        """
        if request.method != "mean":
            return None
        means, added_count = self._means.get(request.model, (None, 0))
        if means is None or added_count < len(load_built_in_corpus().sentences):
            raise _make_missing_error()
        return means.values()


def _make_missing_error() -> MeansMissing:
    return MeansMissing("The mean outputs of this model’s heads are no longer available.", "Reload the page.")


@cache
def load_built_in_corpus() -> Corpus:
    """Return the built-in corpus."""
    from mha_viz.corpus import grammar

    return grammar.corpus()
