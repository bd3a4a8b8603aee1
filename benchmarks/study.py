"""Time a study of a corpus with MiniLM and all measures, compared with two simpler programs.

They are the bare forward pass, and a loop that keeps every tensor. The corpus is the CoNLL-U file that
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

from benchmarks.encode import find_minilm_folder
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
RECIPE_SENTENCES = 300  # sentences that recipes are fitted to
SENTENCES = 2077  # as many as UD English EWT test has
MAX_CPU_RATIO = 1.5  # maximum CPU time of recipes, relative to that of a profile
MAX_PEAK = 1.5e9  # bytes
MAX_PEAK_RATIO = 1.1  # maximum peak at 2,000 sentences, relative to that at 500


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/study.json``. ``quick``: fewer sentences."""
    corpus = load_treebank()
    corpus = replace(corpus, sentences=corpus.sentences[:400]) if quick else corpus
    encoder = load_one_stack("minilm")
    ours, bare, loop = _Methods(encoder, corpus).time_methods(2 if quick else 5)
    name = f"{corpus.name}, {len(corpus.sentences):,} sentences"
    details = {"of_the_bare_throughput": round(bare.median / ours.median, 3)}
    rows = [
        Row(f"{name}: all measures, against the bare forward pass", ours, "s", bare, Target("share", 1 / 0.8), details),
        Row(f"{name}: all measures, against one sentence after the other", ours, "s", loop, Target("faster", 5)),
        *_measure_recipes(encoder, corpus, 60 if quick else RECIPE_SENTENCES),
        *([] if quick else _measure_memory()),
    ]
    machine = f"torch {torch.__version__}, {torch.get_num_threads()} threads"
    write(results, "study", "A corpus through the model", "plain transformers", rows, machine)


def load_treebank(max_sentences: int = 10**6) -> Corpus:
    """Return the first ``max_sentences`` sentences of the corpus to read."""
    path = os.environ.get("MHA_VIZ_TREEBANK")
    if path:
        corpus = read_conllu(Path(path).read_text("utf-8"), Path(path).name)
        return replace(corpus, sentences=corpus.sentences[:max_sentences])
    return grammar.corpus(min(max_sentences, SENTENCES))


class _Methods:
    """Three ways to process the same sentences. Each starts from words, so that it includes the tokenizer."""

    def __init__(self, encoder: Encoder, corpus: Corpus) -> None:
        self._encoder, self._corpus = encoder, corpus
        self._transformers_model: Any = AutoModel.from_pretrained(
            find_minilm_folder(), attn_implementation="eager"
        ).eval()

    def time_methods(self, repetitions: int) -> tuple[Sample, Sample, Sample]:
        """Return the seconds of each method.

        The methods take turns, so that a busy moment of the machine affects all.
        """
        methods: tuple[Callable[[], Any], ...] = (self.compute_measures, self.run_bare, self.run_loop)
        times: tuple[list[float], ...] = ([], [], [])
        for _ in range(repetitions):
            for method, seconds in zip(methods, times, strict=True):
                start = time.perf_counter()
                method()
                seconds.append(time.perf_counter() - start)
        return tuple(Sample(tuple(seconds)) for seconds in times)  # type: ignore[return-value]

    def compute_measures(self) -> Any:
        """Compute every measure of one pass, as a study does."""
        return measure_one_pass(self._encoder, self._corpus)

    def run_bare(self) -> None:
        """Run plain transformers over the same batches and drop the attentions."""
        pieces, heads = self._pieces(), self._encoder.layers * self._encoder.heads
        with torch.no_grad():
            for numbers in make_batches(pieces, range(len(pieces)), heads, DEFAULT_BATCH):
                self._forward([pieces[number].ids for number in numbers])

    def run_loop(self) -> list[Any]:
        """Run one sentence after the other and keep every tensor."""
        with torch.no_grad():
            return [self._forward([text.ids]) for text in self._pieces()]

    def _pieces(self) -> list[WordPieces]:
        return [self._encoder.read_words(sentence.forms) for sentence in self._corpus.sentences]

    def _forward(self, ids: list[tuple[int, ...]]) -> Any:
        return self._transformers_model(input_ids=torch.tensor(ids), output_attentions=True).attentions


# ---- recipes --------------------------------------------------------------------------------------------------------


def _measure_recipes(encoder: Encoder, corpus: Corpus, max_sentences: int) -> list[Row]:
    """Measure the CPU time of a study of recipes and of a profile, which take turns, with minilm and with toy."""
    sample = replace(corpus, sentences=corpus.sentences[:max_sentences])
    rows = []
    for model, sentences in ((encoder, sample), (load_one_stack("toy"), grammar.corpus(max_sentences))):
        methods = (
            partial(fit_recipes, sentences, model, most=max_sentences),
            partial(study, model, sentences),
        )
        ours, profile = zip(*([_measure_cpu_seconds(method) for method in methods] for _ in range(3)), strict=True)
        corpus_name = f"{model.name}, {sentences.name}, {max_sentences} sentences"
        name = f"{corpus_name}: processor time of recipes, against that of a profile"
        rows.append(Row(name, Sample(ours), "s", Sample(profile), Target("share", MAX_CPU_RATIO)))
    return rows


def _measure_cpu_seconds(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


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
    # Take every fourth sentence by length, so that the longest one is in both samples.
    small, large = (_measure_peak(step) for step in (4, 1))
    return [
        Row("peak memory of a whole study, 2,000 sentences", large, "bytes", target=Target("below", MAX_PEAK)),
        Row("peak memory, 2,000 sentences beside 500", large, "bytes", small, Target("share", MAX_PEAK_RATIO)),
    ]


def _measure_peak(step: int) -> Sample:
    command = [sys.executable, "-c", _MEASURE, str(step)]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return Sample((float(process.stdout.split()[-1]),))
