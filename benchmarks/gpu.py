"""Compare an NVIDIA GPU with the CPU of the same machine: numerical differences and run times.

Also load and run a model with 3 billion parameters. Without a GPU, leave the stored results unchanged.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import transformers
from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel

from benchmarks.effects import _time_in_turns
from benchmarks.encode import ROOT, make_text, make_tokenizer
from benchmarks.results import Row, Sample, Target, write
from benchmarks.study import load_treebank
from mha_viz import cli
from mha_viz.attention import Head
from mha_viz.attention.parts import GROUPS
from mha_viz.models.decomposing.contributions import norm_weighted
from mha_viz.models.decomposing.why import explain_scores
from mha_viz.models.families import FAMILIES
from mha_viz.models.intervening.gradients import gradient_weighted
from mha_viz.models.intervening.patching import activation_patching
from mha_viz.models.reading import capture
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import from_folder, load_one_stack
from mha_viz.request import Request
from mha_viz.study.effects import measure_effects
from mha_viz.study.run import measure_one_pass
from tests import tiny_encoder_decoders, tiny_models
from tests.oracles import SENTENCE

DEVICES = ("cuda", "cpu")
MAX_WEIGHT_DIFFERENCE = 1e-5  # maximum difference of an attention weight
MAX_RELATIVE_DIFFERENCE = 1e-4  # maximum difference of any other quantity, relative to its largest absolute value
MAX_TABLE_DIFFERENCE = 1e-4  # maximum difference of a number in a table, in the number's own unit
MAX_MEMORY_RATIO = 1.2  # maximum memory of a large model, relative to its size on disk
# The shape of Llama 3.2 3B; its texts are tokenised with the tokenizer of a small test model.
LARGE_MODEL_CONFIG: dict[str, Any] = {
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 28,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "vocab_size": 128_256,
    "max_position_embeddings": 2048,
}
TEXTS = {"minilm": ("The animal slept because it was tired.", "The animal slept because she was tired.")}
TEXTS |= {"toy": ("The girl smiles because [MASK] sings .", "The boy smiles because [MASK] sings .")}
TEXTS |= {"repeater": ("reach sees horse stands reach sees", "reach sees them stands reach sees")}

# Commands that take --device and write a table; {} is a treebank.
COMMANDS = (
    "attention 'The animal slept because it was tired.'",
    "attention 'The cat sat.' --quantity norm",
    "attention 'The cat sat.' --quantity rollout",
    "attention 'The dog [MASK] the girl.' --model toy --quantity gradient",
    "patch 'The girl smiles because [MASK] sings .' 'The boy smiles because [MASK] sings .' --model toy",
    "decoder-heads repeater",
    "why grammar --model toy --most 60",
    "why {} --most 40",
    "search minilm/L3H1 {} --most 10",
    "groups minilm/L3H1 {} --most 150",
    "effect {} --heads L3H1,L2H4 --method mean --most 60",
    "effect {} --heads L3H1,L2H4 --method recipe --most 40",
    "effect {} --heads L4H3 --relation nsubj --most 60",
    "effect grammar --model toy --heads L0H1 --method resample --most 40",
    "pairs repeater-pairs --model repeater",
    "profile {}",
    "recipes {} --most 120 --replace",
    "recipes grammar --model toy --most 200 --replace",
    "recipes repeats --model repeater --most 100",
)
FOLDER_COMMANDS = ("profile", "recipes")  # commands that write several tables


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/gpu.json``; ``quick``: few repetitions, and no large model."""
    if not torch.cuda.is_available():
        print("No GPU was found that this PyTorch can use: nothing is measured.")
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = [*_compare_families(Path(folder)), *_compare_quantities(), *_compare_commands(Path(folder))]
        rows += [*_measure_times(2 if quick else 7), *_measure_study(quick)]
        rows += [] if quick else _measure_large_model(Path(folder) / "large")
    environment = f"torch {torch.__version__}, transformers {transformers.__version__}, {torch.cuda.get_device_name()}"
    write(results, "gpu", "On a GPU", "the CPU", rows, environment)


def _load_on_both_devices(name: str) -> tuple[Encoder, ...]:
    return tuple(load_one_stack(name, device) for device in DEVICES)


def _compute_difference(gpu: Any, cpu: Any) -> float:
    return float(np.abs(np.asarray(gpu) - np.asarray(cpu)).max(initial=0))


def _compare_families(folder: Path) -> Iterator[Row]:
    """Yield, for each kind of model, the largest difference of attention weights over its families.

    The models are small and have random weights.
    """
    for kind, build, names in (
        ("models with one stack", tiny_models.build, sorted(FAMILIES)),
        ("encoder–decoders", tiny_encoder_decoders.build, sorted(tiny_encoder_decoders.ENCODER_DECODERS)),
    ):
        differences = {}
        for family in names:
            path = folder / family
            path.mkdir()
            model_folder = build(family, path)
            gpu, cpu = (from_folder(model_folder, device=device).encode(SENTENCE).weights for device in DEVICES)
            differences[family] = _compute_difference(gpu, cpu)
        worst_family = max(differences, key=lambda family: differences[family])
        name = f"weights of {len(differences)} families of {kind}, largest difference ({worst_family})"
        yield Row(name, Sample((differences[worst_family],)), "")  # random weights differ more: no target


def _compare_quantities() -> Iterator[Row]:
    """Yield the largest difference of each quantity for the bundled models, relative to the largest value."""
    functions: Mapping[str, Callable[[Encoder, str, str], Any]] = {
        "norm-weighted": lambda encoder, text, _: norm_weighted(encoder, text).weights,
        "gradient": lambda encoder, text, other: gradient_weighted(encoder, text, other=other).weights,
        "effects of heads": lambda encoder, text, _: measure_effects(encoder, Request(text=text)).sentence,
        "activation patching": lambda encoder, text, other: [
            *activation_patching(encoder, text, other).table()["share"]
        ],
        "score explained by heads": lambda encoder, text, _: (
            explain_scores(encoder, text).table()[list(GROUPS)].to_numpy(float)
        ),
        "decomposition of one attention score": lambda encoder, text, _: (
            encoder.score_parts(text, Head(1, 0), 3, 1).values
        ),
    }
    for name, texts in TEXTS.items():
        gpu, cpu = _load_on_both_devices(name)
        weights = _compute_difference(gpu.encode(texts[0]).weights, cpu.encode(texts[0]).weights)
        target = Target("below", MAX_WEIGHT_DIFFERENCE)
        yield Row(f"{name}: weights, largest difference", Sample((weights,)), "", target=target)
        for quantity, compute in functions.items():
            gpu_values, cpu_values = (np.asarray(compute(encoder, *texts), float) for encoder in (gpu, cpu))
            sample = Sample((_compute_difference(gpu_values, cpu_values) / float(np.abs(cpu_values).max()),))
            target = Target("below", MAX_RELATIVE_DIFFERENCE)
            description = f"{name}: {quantity}, largest difference, relative to the largest value"
            yield Row(description, sample, "", target=target)


def _compare_commands(folder: Path) -> Iterator[Row]:
    """Run every command on both devices, and yield the largest difference between numbers over all their tables.

    All other cells must be equal.
    """
    differences = {}
    for index, command in enumerate(COMMANDS):
        arguments = [word.format(os.environ.get("MHA_VIZ_TREEBANK", "grammar")) for word in shlex.split(command)]
        folders = [folder / f"{index}.{device}" for device in DEVICES]
        for device, device_folder in zip(DEVICES, folders, strict=True):
            device_folder.mkdir()
            out = device_folder if arguments[0] in FOLDER_COMMANDS else device_folder / "table.csv"
            assert not cli.main([*arguments, "--out", str(out), "--device", device]), command
        for path in sorted(folders[0].rglob("*.csv")):
            gpu, cpu = (pd.read_csv(device_folder / path.relative_to(folders[0])) for device_folder in folders)
            numbers = list(cpu.select_dtypes("number").columns)
            pd.testing.assert_frame_equal(gpu.drop(columns=numbers), cpu.drop(columns=numbers))
            gpu_numbers, cpu_numbers = (table[numbers].fillna(-1.0) for table in (gpu, cpu))
            differences[f"{command}: {path.name}"] = _compute_difference(gpu_numbers, cpu_numbers)
    worst_table = max(differences, key=lambda name: differences[name])
    description = f"{len(differences)} tables of {len(COMMANDS)} commands, largest difference ({worst_table})"
    yield Row(description, Sample((differences[worst_table],)), "", target=Target("below", MAX_TABLE_DIFFERENCE))


def _measure_times(repetitions: int) -> Iterator[Row]:
    for name, load_models in (
        ("MiniLM", partial(_load_on_both_devices, "minilm")),
        ("BERT-large shape", _make_bert_large),
    ):
        encoders = load_models()
        for tokens in (64, 512):
            functions = (partial(encoder.encode, make_text(tokens)) for encoder in encoders)
            gpu_time, cpu_time = _time_in_turns(repetitions, *functions)
            yield Row(f"{name}, {tokens} tokens: encode", gpu_time, "ms", cpu_time)
        request = Request(text=make_text(64))
        effect_functions = (partial(measure_effects, encoder, request) for encoder in encoders)
        gpu_time, cpu_time = _time_in_turns(1 + repetitions // 3, *effect_functions)
        yield Row(f"{name}, 64 tokens: effects of all heads", gpu_time, "ms", cpu_time)


def _measure_study(quick: bool) -> Iterator[Row]:
    corpus = load_treebank(200 if quick else 10**6)
    gpu, cpu = _load_on_both_devices("minilm")
    sums: dict[str, Any] = {}

    def run(name: str, encoder: Encoder) -> None:
        sums[name] = measure_one_pass(encoder, corpus)

    gpu_time, cpu_time = _time_in_turns(1, lambda: run("gpu", gpu), lambda: run("cpu", cpu))
    description = f"MiniLM, {corpus.name}, {len(corpus.sentences):,} sentences"
    yield Row(f"{description}: all measures", gpu_time, "ms", cpu_time)
    differing = [
        sums["gpu"].arrays[name] != sums["cpu"].arrays[name] for name in sums["cpu"].arrays if name.endswith("correct")
    ]
    difference_count = sum(int(np.sum(array)) for array in differing)
    total_counts = sum(array.size for array in differing)
    yield Row(f"{description}: counts that differ, of {total_counts:,}", Sample((float(difference_count),)), "")


def _make_bert_large() -> tuple[Encoder, ...]:
    """Return models with the shape of BERT-large (24 layers, 16 heads, d_model 1,024) and random weights."""
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    }
    reference: Any = BertModel(BertConfig(**sizes), add_pooling_layer=False)
    encoders = []
    for device in DEVICES:
        model: Any = BertModel(reference.config, add_pooling_layer=False)
        model.set_attn_implementation(capture.IMPLEMENTATION)
        model.load_state_dict(reference.state_dict())
        encoders.append(Encoder(model.eval(), make_tokenizer(), "bert-large shape", "random", device))
        encoders[-1]._prepare()
    return tuple(encoders)


# ---- a large model --------------------------------------------------------------------------------------------------

# In a separate process, print the peak growth of resident memory, the peak memory of the GPU, the size of the weights,
# the seconds to open, the milliseconds to read 32 and 128 tokens the third time, and the
# largest deviation of a row's sum from 1.
_LARGE_MODEL_SCRIPT = """
import sys, time
from pathlib import Path
import torch
from benchmarks.encode import make_text
from mha_viz.models.reading.loading import from_folder
from tests.opening_memory import CLEAR, resident

folder, small, device = sys.argv[1:]
from_folder(Path(small), dtype="bfloat16", device=device).encode("the dog")
CLEAR.write_text("5", "ascii")  # reset VmHWM, the maximum, to the current value
memory_before, start = resident("VmRSS"), time.perf_counter()
model = from_folder(Path(folder), dtype="bfloat16", device=device)
seconds = time.perf_counter() - start
growth, gpu_memory = resident("VmHWM") - memory_before, torch.cuda.max_memory_allocated()
times = []
for n in (32, 32, 32, 128, 128, 128):
    start = time.perf_counter()
    weights = model.encode(make_text(n)).weights
    times.append((time.perf_counter() - start) * 1000)
print(growth, gpu_memory, model.bytes, seconds, times[2], times[5], abs(weights.sum(3) - 1).max())
"""


def _measure_large_model(folder: Path) -> Iterator[Row]:
    """Save a large random model, then measure on each device how long it takes to load and encode, and its memory."""
    small_folder = folder.parent / "llama"  # the small Llama that _compare_families has saved
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = LlamaModel(LlamaConfig(bos_token_id=0, eos_token_id=0, **LARGE_MODEL_CONFIG))
    torch.set_default_dtype(torch.float32)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    model.save_pretrained(folder, max_shard_size="1GB")
    del model
    torch.cuda.empty_cache()
    for file in small_folder.glob("tokenizer*"):
        (folder / file.name).write_bytes(file.read_bytes())
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    label = f"a Llama of {parameters / 1e9:.1f} · 10⁹ parameters, {size / 1e9:.1f} GB in bfloat16"
    for device in DEVICES:
        command = [sys.executable, "-c", _LARGE_MODEL_SCRIPT, str(folder), str(small_folder), device]
        process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
        growth, gpu_memory, _, seconds, short_ms, long_ms, deviation = map(float, process.stdout.split())
        disk, target = Sample((size / 1e9,)), Target("share", MAX_MEMORY_RATIO)
        memory = Sample((growth / 1e9,))
        yield Row(f"{label}, {device}: peak process memory, compared with the files", memory, "GB", disk, target)
        if device == "cuda":
            memory = Sample((gpu_memory / 1e9,))
            yield Row(f"{label}: peak GPU memory, compared with the files", memory, "GB", disk, target)
        yield Row(f"{label}, {device}: time to open", Sample((seconds,)), "s")
        yield Row(f"{label}, {device}: encode, 32 tokens", Sample((short_ms,)), "ms")
        yield Row(f"{label}, {device}: encode, 128 tokens", Sample((long_ms,)), "ms")
        yield Row(f"{label}, {device}: largest deviation of a row sum from 1", Sample((deviation,)), "")
