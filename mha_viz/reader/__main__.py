"""The process that runs models: it answers requests from standard input, one at a time, until it closes. Where the
system can do that, it has no network and writes below the folders of its arguments alone."""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
import warnings
from collections import OrderedDict
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mha_viz import process
from mha_viz.attention import Head
from mha_viz.corpus.treebank import Corpus
from mha_viz.errors import MeansMissing, MhaVizError, ReadingFailed, TextCutWarning
from mha_viz.models import budget, catalog, contributions, gradients, opening
from mha_viz.models.ablation import Means
from mha_viz.models.encoder import Encoder, load
from mha_viz.models.folder import Stamps, stamps
from mha_viz.models.reading import question_of, read
from mha_viz.process.confined import confine
from mha_viz.reader import wire
from mha_viz.reader.wire import Array, Json
from mha_viz.request import Request

PER_HEAD = MappingProxyType({"direct": contributions.direct, "importance": gradients.importance})
MODEL_BYTES = 2_500_000_000  # bytes of the weights of all loaded models


class Models:
    """The loaded models; the least recently used one is dropped first."""

    def __init__(self) -> None:
        self._encoders: OrderedDict[str, Encoder] = OrderedDict()
        self._stamps: dict[str, Stamps] = {}  # state of the files of a loaded folder, when it was read
        self._means: dict[str, tuple[Means, int]] = {}  # by loaded model, with the number of sentences added

    @property
    def names(self) -> list[str]:
        """The names of the loaded models."""
        return list(self._encoders)

    def __getitem__(self, name: str) -> Encoder:
        if name in self._encoders and self._has_changed(name):
            del self._encoders[name]
            self._means.pop(name, None)
        if name not in self._encoders:
            self._stamps[name] = _folder_stamps(name)  # before reading: later changes are noticed
            self._encoders[name] = load(name, download=False)
            gc.freeze()  # so that the garbage collector skips half a million objects of the model libraries
        self._encoders.move_to_end(name)
        while len(self._encoders) > 1 and sum(encoder.bytes for encoder in self._encoders.values()) > MODEL_BYTES:
            self._means.pop(self._encoders.popitem(last=False)[0], None)
        encoder = self._encoders[name]
        if encoder.folder is not None:  # the server decides by last use which downloads to delete
            budget.used(encoder.folder)
        return encoder

    def _has_changed(self, name: str) -> bool:
        """True if the files of a loaded folder have changed since they were read."""
        folder, before = self._encoders[name].folder, self._stamps.get(name)
        return folder is not None and bool(before) and stamps(folder) not in (before, frozenset())

    def measure(self, name: str, first: int, end: int) -> None:
        """Add the built-in sentences from ``first`` to ``end`` (exclusive) to the mean outputs of a model's heads;
        sentences that were already added are skipped.

        Raises MeansMissing if this process has not added the sentences before ``first`` since it loaded the model.
        """
        means, done = self._means.get(name, (Means(self[name]), 0))
        if first > done:
            raise _missing()
        self._means.pop(name, None)  # incomplete sums are not stored
        sentences = _built_in().sentences
        means.add(" ".join(sentence.forms) for sentence in sentences[done:end])
        self._means[name] = means, max(done, min(end, len(sentences)))

    def means_of(self, request: Request) -> Array | None:
        """The mean outputs of a model's heads over all built-in sentences, [layer, head, d_head], if its heads are
        switched off that way. Raises MeansMissing if not all sentences were added."""
        if request.method != "mean":
            return None
        means, done = self._means.get(request.model, (None, 0))
        if means is None or done < len(_built_in().sentences):
            raise _missing()
        return means.values()


def _missing() -> MeansMissing:
    return MeansMissing("The mean outputs of this model’s heads are no longer available.", "Open the page again.")


def answer(models: Models, message: Json) -> tuple[Json, list[Array]]:
    """The answer to a message. Raises what the model raises."""
    ask = message["ask"]
    if ask == "rest":
        process.give_back_memory()
        return {}, []
    encoder = models[message["model"]]
    if ask == "load":
        return {}, []
    if ask == "point":
        return _point(encoder, message["first"], message["end"])
    if ask == "repeats":
        return _repeats(encoder, range(message["first"], message["end"]), message["untrained"])
    if ask == "means":
        models.measure(message["model"], message["first"], message["end"])
        return {}, []
    request = Request.parse(message["request"])
    if ask == "read":
        return wire.packed_attention(read(encoder, request, models.means_of(request) if request.off else None))
    if ask == "question":
        return {"question": question_of(encoder, request)}, []
    if ask in PER_HEAD:
        return wire.packed_numbers([PER_HEAD[ask](encoder, question_of(encoder, request), *request.texts)])
    if ask == "trace":
        return wire.packed_trace(encoder.trace(*request.texts, message["layer"], request.words))
    return _switched(encoder, request, models.means_of(request), message)


def _switched(encoder: Encoder, request: Request, means: Array | None, message: Json) -> tuple[Json, list[Array]]:
    """The answer to a message about what switching heads off changes."""
    from mha_viz.study import effects, removal

    case = effects.Case(*request.texts, request.method, means, request.question)
    if message["ask"] == "effects":
        return wire.packed_numbers(effects.part(encoder, message["layer"], message["heads"], case))
    if message["ask"] == "answer":
        return wire.packed_answer(effects.answer(encoder, request.off, case))
    if message["ask"] == "random":
        draws = range(*message["draws"])
        return wire.packed_numbers([effects.lost_at_random(encoder, request.off, draws, case)])
    variants = [[Head(*head) for head in heads] for heads in message["variants"]]
    if message["ask"] == "margins":
        return wire.packed_numbers([removal.margins(encoder, variants, case)])
    return wire.packed_numbers(effects.lost_each(encoder, variants, case))


def _point(encoder: Encoder, first: int, end: int) -> tuple[Json, list[Array]]:
    from mha_viz.study.pointers import point

    corpus = _built_in()
    return wire.packed_pointers(point(encoder, replace(corpus, sentences=corpus.sentences[first:end])))


def _repeats(encoder: Encoder, part: range, untrained: bool) -> tuple[Json, list[Array]]:
    from mha_viz.analysis.repeats import DRAWS, LENGTH, SEED
    from mha_viz.study import decoder_heads

    decoder_heads.check(encoder, LENGTH, DRAWS)
    reader = encoder.untrained(SEED) if untrained else encoder
    return wire.packed_numbers([decoder_heads.part_of(reader, part, LENGTH, DRAWS, SEED)])


def _folder_stamps(name: str) -> Stamps:
    """The state of the files of a model in a user's folder; empty for other models, whose files do not change."""
    model = catalog.resolve(name)
    return stamps(Path(model.path)) if model.kind == "folder" else frozenset()


@cache
def _built_in() -> Corpus:
    from mha_viz.corpus import grammar

    return grammar.corpus()


def serve() -> None:
    """Answer requests until standard input closes. Output that libraries print goes to the log."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the server, which ends this process
    replies: Any = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    warnings.simplefilter("ignore", TextCutWarning)  # the page shows it; the log must not contain visitors' words
    models = Models()
    while True:
        try:
            message, _ = wire.receive(sys.stdin.buffer)
        except EOFError:
            return
        arrays: list[Array] = []
        try:
            heading, arrays = answer(models, message)
        except MhaVizError as error:
            heading = wire.packed_error(error)
        except BaseException as error:  # any library error, including Rust panics: only this request fails
            traceback.print_exc()
            why = "" if catalog.hosted() else f": {type(error).__name__}: {str(error)[:200]}"
            heading = wire.packed_error(
                ReadingFailed(f"The model could not read this{why}.", "Try another text or another model.")
            )
        wire.send(replies, heading | {"loaded": models.names}, arrays)
        gc.enable()  # it was off while the libraries were imported


def main() -> None:
    """Import the libraries, then confine this process, then serve."""
    opening.import_ahead()
    confine(sys.argv[1:])
    serve()


if __name__ == "__main__":
    main()
