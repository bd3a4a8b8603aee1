"""A study of a corpus with MiniLM and all measures, compared with two simpler programs.

These are the bare forward pass, and a loop that keeps every tensor. The corpus is the CoNLL-U file that
MHA_VIZ_TREEBANK names (such as UD English EWT test), or else as many sentences of the built-in grammar.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel

from benchmarks.encode import _find_minilm_folder
from benchmarks.results import Row, Sample, Target, write
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import read_conllu
from mha_viz.corpus.treebank import Corpus
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load_one_stack
from mha_viz.study.plan import DEFAULT_BATCH, make_batches
from mha_viz.study.recipes import fit_recipes
from mha_viz.study.run import measure_one_pass, study
from mha_viz.text import WordPieces

ROOT = Path(__file__).resolve().parent.parent
RECIPES = 300  # sentences from which recipes are found
SENTENCES = 2077  # as many as UD English EWT test has
SLOWER = 1.5  # times the processor time of a profile that recipes may take
PEAK = 1.5e9  # bytes, at most
FLAT = 1.1  # peak at 2,000 sentences relative to that at 500, at most


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/study.json``. ``quick``: fewer sentences."""
    corpus = load_treebank()
    corpus = replace(corpus, sentences=corpus.sentences[:400]) if quick else corpus
    encoder = load_one_stack("minilm")
    ours, bare, loop = _Passes(encoder, corpus).measured(2 if quick else 5)
    what = f"{corpus.name}, {len(corpus.sentences):,} sentences"
    share = {"of_the_bare_throughput": round(bare.median / ours.median, 3)}
    rows = [
        Row(f"{what}: all measures, against the bare forward pass", ours, "s", bare, Target("share", 1 / 0.8), share),
        Row(f"{what}: all measures, against one sentence after the other", ours, "s", loop, Target("faster", 5)),
        *_measure_recipes(encoder, corpus, 60 if quick else RECIPES),
        *([] if quick else _measure_memory()),
    ]
    machine = f"torch {torch.__version__}, {torch.get_num_threads()} threads"
    write(results, "study", "A corpus through the model", "plain transformers", rows, machine)


def load_treebank(most: int = 10**6) -> Corpus:
    """Return the first ``most`` sentences of the corpus to read."""
    path = os.environ.get("MHA_VIZ_TREEBANK")
    if path:
        corpus = read_conllu(Path(path).read_text("utf-8"), Path(path).name)
        return replace(corpus, sentences=corpus.sentences[:most])
    return grammar.corpus(min(most, SENTENCES))


class _Passes:
    """The same sentences, read in three ways; each begins with the words, so that each finds their pieces."""

    def __init__(self, encoder: Encoder, corpus: Corpus) -> None:
        self._encoder, self._corpus = encoder, corpus
        self._plain: Any = AutoModel.from_pretrained(_find_minilm_folder(), attn_implementation="eager").eval()

    def measured(self, repetitions: int) -> tuple[Sample, Sample, Sample]:
        """Return the seconds of each method.

        The methods take turns, so that a busy moment of the machine affects all.
        """
        ways: tuple[Callable[[], Any], ...] = (self.measures, self.bare, self.loop)
        taken: tuple[list[float], ...] = ([], [], [])
        for _ in range(repetitions):
            for way, times in zip(ways, taken, strict=True):
                start = time.perf_counter()
                way()
                times.append(time.perf_counter() - start)
        return tuple(Sample(tuple(times)) for times in taken)  # type: ignore[return-value]

    def measures(self) -> Any:
        """Compute every measure of one pass, as a study does."""
        return measure_one_pass(self._encoder, self._corpus)

    def bare(self) -> None:
        """Run plain transformers over the same batches and drop the attentions."""
        pieces, heads = self._pieces(), self._encoder.layers * self._encoder.heads
        with torch.no_grad():
            for numbers in make_batches(pieces, range(len(pieces)), heads, DEFAULT_BATCH):
                self._forward([pieces[number].ids for number in numbers])

    def loop(self) -> list[Any]:
        """Run one sentence after the other and keep every tensor."""
        with torch.no_grad():
            return [self._forward([text.ids]) for text in self._pieces()]

    def _pieces(self) -> list[WordPieces]:
        return [self._encoder.read_words(sentence.forms) for sentence in self._corpus.sentences]

    def _forward(self, ids: list[tuple[int, ...]]) -> Any:
        return self._plain(input_ids=torch.tensor(ids), output_attentions=True).attentions


# ---- recipes --------------------------------------------------------------------------------------------------------


def _measure_recipes(encoder: Encoder, corpus: Corpus, most: int) -> list[Row]:
    """Time the CPU for a study of recipes and for a profile, of minilm and of toy; they take turns."""
    few = replace(corpus, sentences=corpus.sentences[:most])
    rows = []
    for model, text in ((encoder, few), (load_one_stack("toy"), grammar.corpus(most))):
        ways = (partial(fit_recipes, text, model, most=most), partial(study, model, text))
        ours, profile = zip(*([_measure_cpu_seconds(way) for way in ways] for _ in range(3)), strict=True)
        what = f"{model.name}, {text.name}, {most} sentences: processor time of recipes, against that of a profile"
        rows.append(Row(what, Sample(ours), "s", Sample(profile), Target("share", SLOWER)))
    return rows


def _measure_cpu_seconds(way: Callable[[], object]) -> float:
    begun = time.process_time()
    way()
    return time.process_time() - begun


# ---- memory ---------------------------------------------------------------------------------------------------------

_MEASURE = """
import sys
from dataclasses import replace
from pathlib import Path
from benchmarks.study import load_treebank
from mha_viz.models.reading.loading import load, load_one_stack
from mha_viz.study.run import study

corpus = load_treebank(2000)
by_length = sorted(corpus.sentences, key=lambda sentence: -len(sentence.forms))
study(load_one_stack("minilm"), replace(corpus, sentences=tuple(by_length[:: int(sys.argv[1])])))
print(int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024)
"""


def _measure_memory() -> list[Row]:
    if not Path("/proc/self/status").exists():
        return []
    few, many = (
        _measure_peak(step) for step in (4, 1)
    )  # every fourth one by length, so that the longest sentence is in both
    return [
        Row("peak memory of a whole study, 2,000 sentences", many, "bytes", target=Target("below", PEAK)),
        Row("peak memory, 2,000 sentences beside 500", many, "bytes", few, Target("share", FLAT)),
    ]


def _measure_peak(step: int) -> Sample:
    command = [sys.executable, "-c", _MEASURE, str(step)]
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return Sample((float(finished.stdout.split()[-1]),))
