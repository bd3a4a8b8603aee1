"""Time ``encode``, from text to attention, compared with plain transformers on the same weights.

Transformers runs with ``eager``, ``output_attentions`` and ``no_grad``.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

from benchmarks.results import Row, Sample, Target, write
from mha_viz.models.getting import catalog, hub
from mha_viz.models.reading import capture
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.linear import PackedLinear
from mha_viz.models.reading.loading import load_one_stack

ROOT = Path(__file__).resolve().parent.parent
LENGTHS = (16, 64, 128, 256, 512)  # pieces, including special ones
MAX_RATIOS = {16: 0.45, 64: 0.52, 128: 0.62, 256: 0.7, 512: 0.7}  # n: maximum ratio of our time to theirs
MAX_DIFFERENCE = 1e-5
MAX_MEMORY = 1.3  # maximum peak above the model's own memory, in multiples of the attention tensor
WORDS = (
    "the",
    "animal",
    "did",
    "not",
    "cross",
    "the",
    "street",
    "because",
    "it",
    "was",
    "too",
    "tired",
    "and",
    "slept",
)


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/encode.json``. ``quick``: few repetitions."""
    rows: list[Row] = []
    for name, load_pair in PAIRS.items():
        encoder, model = load_pair()
        run_plain = _make_plain_pass(model, make_tokenizer())
        for n in LENGTHS:
            rows += _compare_times(name, n, encoder, run_plain, 3 if quick else max(7, 1200 // n))
    rows += _measure_memory()
    machine = f"torch {torch.__version__}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}"
    write(results, "encode", "Text to attention", "plain transformers", rows, machine)


def make_text(n: int) -> str:
    """Return English text of ``n`` tokens for BERT's tokenizer, including [CLS] and [SEP]."""
    return " ".join(islice(cycle(WORDS), n - 2))


def _compare_times(name: str, n: int, encoder: Encoder, run_plain: Callable[[str], Any], repetitions: int) -> list[Row]:
    text = make_text(n)
    ours, theirs = encoder.encode(text).weights, torch.cat(run_plain(text)).numpy()
    if ours.shape[2] != n:
        raise ValueError(f"The text has {ours.shape[2]} pieces instead of {n}: choose words that are one piece each.")
    difference = Sample((float(np.abs(ours - theirs).max()) * 1e6,))
    our_times, their_times = _time_in_turns(lambda: encoder.encode(text), lambda: run_plain(text), repetitions)
    our_times_again, product_times = _time_in_turns(
        lambda: encoder.encode(text), _make_bare_products(encoder, n), repetitions
    )
    label = f"{name}, n = {n}"
    target = Target("share", MAX_RATIOS[n])
    details = {"ratio_of_fastest": round(min(our_times.values) / min(their_times.values), 3)}
    return [
        Row(label, our_times, "ms", their_times, target, details),
        Row(f"{label}, beside the bare products", our_times_again, "ms", product_times),
        Row(f"{label}, largest difference", difference, "× 10⁻⁶", target=Target("below", MAX_DIFFERENCE * 1e6)),
    ]


def _time_in_turns(ours: Callable[[], Any], theirs: Callable[[], Any], repetitions: int) -> tuple[Sample, Sample]:
    """Return the milliseconds of both functions.

    They take turns, so that a busy moment of the machine affects both.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repetitions + 1):
        for run, milliseconds in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            run()
            milliseconds.append((time.perf_counter() - start) * 1000)
    return Sample(tuple(times[0][1:])), Sample(tuple(times[1][1:]))


def _make_bare_products(encoder: Encoder, n: int) -> Callable[[], None]:
    """Return a function that computes only the operations that a reading in float32 cannot avoid.

    They are PyTorch's own products with the weights, and one softmax and two products of all heads in each layer.
    """
    modules = [m for m in encoder._model.modules() if isinstance(m, PackedLinear | torch.nn.Linear)]
    used_modules = modules[:-4]  # the last layer ends with its weights: no W_V, no W_O, no feed-forward part
    products = [(torch.rand(n, w.shape[1]), w.clone(), m.bias) for m in used_modules for w in (m.weight,)]
    d_k = encoder.d_model // encoder.heads
    queries, keys, values = (torch.rand(encoder.heads, n, d_k) for _ in "qkv")

    def run() -> None:
        with torch.inference_mode():
            for x, weight, bias in products:
                torch.nn.functional.linear(x, weight, bias)
            for layer in range(encoder.layers):
                weights = torch.softmax(queries @ keys.transpose(1, 2), -1)
                if layer < encoder.layers - 1:
                    weights @ values

    return run


def _make_plain_pass(model: Any, tokenizer: Any) -> Callable[[str], Any]:
    def run(text: str) -> Any:
        with torch.no_grad():
            return model(**tokenizer(text, return_tensors="pt"), output_attentions=True).attentions

    return run


def find_minilm_folder() -> str:
    """Return the folder of the bundled MiniLM."""
    return str(hub.find_local_folder(catalog.resolve("minilm")))


def make_tokenizer() -> Any:
    """Return the tokenizer of both models."""
    return AutoTokenizer.from_pretrained(find_minilm_folder())


def _load_minilm() -> tuple[Encoder, Any]:
    return load_one_stack("minilm"), AutoModel.from_pretrained(find_minilm_folder(), attn_implementation="eager").eval()


def _make_bert_base() -> tuple[Encoder, Any]:
    """Return BERT-base with random weights: 12 layers, 12 heads, d_model 768."""
    torch.manual_seed(0)
    plain_model: Any = BertModel(BertConfig())
    plain_model.set_attn_implementation("eager")
    our_model: Any = BertModel(BertConfig(), add_pooling_layer=False)
    our_model.set_attn_implementation(capture.IMPLEMENTATION)
    our_model.load_state_dict(plain_model.state_dict(), strict=False)
    encoder = Encoder(our_model.eval(), make_tokenizer(), "bert-base shape", "random")
    encoder._prepare()
    return encoder, plain_model.eval()


# Functions that load our encoder and plain transformers' model with the same weights.
PAIRS: dict[str, Callable[[], tuple[Encoder, Any]]] = {"MiniLM": _load_minilm, "BERT-base shape": _make_bert_base}


# ---- memory ---------------------------------------------------------------------------------------------------------

# Writing 5 to clear_refs resets the peak. base: memory of the process with the model loaded and used once.
_MEASURE = """
import gc, sys
from pathlib import Path
from benchmarks.encode import make_text
from mha_viz.models.reading.loading import load, load_one_stack

def kilobytes(key):
    return int(Path("/proc/self/status").read_text().split(key + ":")[1].split()[0])

encoder = load("minilm")
encoder.encode(make_text(16))
gc.collect()
base = kilobytes("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
tensor = encoder.encode(make_text(512)).weights.nbytes
print((kilobytes("VmHWM") - base) * 1024 / tensor)
"""


def _measure_memory() -> list[Row]:
    if not Path("/proc/self/clear_refs").exists():
        return []
    process = subprocess.run([sys.executable, "-c", _MEASURE], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    peak = Sample((float(process.stdout.split()[-1]),))
    return [Row("MiniLM, n = 512, peak memory in attention tensors", peak, "", target=Target("below", MAX_MEMORY))]
