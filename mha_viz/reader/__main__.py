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
from mha_viz.attention import Attention, Head
from mha_viz.corpus.treebank import Corpus
from mha_viz.errors import MeansMissing, MhaVizError, ReadingFailed, TextCutWarning
from mha_viz.models import ablation, answers, budget, catalog, contributions, gradients, opening
from mha_viz.models.ablation import Means
from mha_viz.models.encoder import Encoder, load
from mha_viz.models.folder import Stamps, stamps
from mha_viz.models.norms import norm_weighted
from mha_viz.process.confined import confine
from mha_viz.reader import wire
from mha_viz.reader.wire import Array, Json

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

    def means(self, name: str) -> Array:
        """The mean outputs of a model's heads over all built-in sentences: [layer, head, d_head]. Raises MeansMissing
        if not all of them were added."""
        means, done = self._means.get(name, (None, 0))
        if means is None or done < len(_built_in().sentences):
            raise _missing()
        return means.values()


def _missing() -> MeansMissing:
    return MeansMissing("The mean outputs of this model’s heads are no longer available.", "Open the page again.")


def answer(models: Models, request: Json) -> tuple[Json, list[Array]]:
    """The answer to a request. Raises what the model raises."""
    if request["ask"] == "rest":
        process.give_back_memory()
        return {}, []
    encoder = models[request["model"]]
    if request["ask"] == "load":
        return {}, []
    if request["ask"] == "point":
        return _point(encoder, request["first"], request["end"])
    if request["ask"] == "repeats":
        return _repeats(encoder, range(request["first"], request["end"]), request["untrained"])
    if request["ask"] == "means":
        models.measure(request["model"], request["first"], request["end"])
        return {}, []
    text, pair, words = request["text"], request["pair"], request["words"]
    if request["ask"] == "question":
        fields = {name: request[name] for name in ("place", "word", "other")}
        return {"question": answers.question_about(encoder, text, pair, words, **fields)}, []
    if "method" in request:
        return _switched(models, request)
    if request["ask"] == "gradients":
        return wire.packed_attention(gradients.of_score(encoder, wire.question_of(request), text, pair, words))
    if request["ask"] in PER_HEAD:
        return wire.packed_numbers([PER_HEAD[request["ask"]](encoder, wire.question_of(request), text, pair)])
    if request["ask"] == "norms":
        return wire.packed_attention(norm_weighted(encoder, text, pair, words))
    if request["ask"] == "trace":
        return wire.packed_trace(encoder.trace(text, pair, request["layer"], words))
    return wire.packed_attention(_read(encoder, request))


def _read(encoder: Encoder, request: Json) -> Attention:
    """The attention on a text. An encoder–decoder reads given words as one text."""
    words, part = request["words"], request["part"]
    if words and not part:
        return encoder.encode_words(words)
    given = {"target": request["target"], "part": part} if part else {}
    return encoder.encode(" ".join(words) or request["text"], request["pair"], **given)


def _switched(models: Models, request: Json) -> tuple[Json, list[Array]]:
    """The answer to a request about a text with heads switched off."""
    from mha_viz.study import effects, removal

    encoder = models[request["model"]]
    means = models.means(request["model"]) if request["method"] == "mean" else None
    question = wire.question_of(request) if request["question"] else None
    case = effects.Case(request["text"], request["pair"], request["method"], means, question)
    if request["ask"] == "effects":
        return wire.packed_numbers(effects.part(encoder, request["layer"], request["heads"], case))
    if "variants" in request:
        variants = [[Head(*head) for head in heads] for heads in request["variants"]]
        if request["ask"] == "margins":
            return wire.packed_numbers([removal.margins(encoder, variants, case)])
        return wire.packed_numbers(effects.lost_each(encoder, variants, case))
    heads = [Head(*head) for head in request["heads"]]
    if request["ask"] == "answer":
        return wire.packed_answer(effects.answer(encoder, heads, case))
    if request["ask"] == "random":
        return wire.packed_numbers([effects.lost_at_random(encoder, heads, range(*request["draws"]), case)])
    how = {"method": case.method, "means": case.means, "words": request["words"]}
    return wire.packed_attention(ablation.without(encoder, heads, *case.texts, **how))


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
            request, _ = wire.receive(sys.stdin.buffer)
        except EOFError:
            return
        arrays: list[Array] = []
        try:
            heading, arrays = answer(models, request)
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
