"""Models in half precision: how far their attention is from that in float32, what tells their readings apart, what
needs float32, and how much memory opening them takes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2Model, LlamaConfig, LlamaModel

import mha_viz as mv
from mha_viz.analysis.bundled_data import check_profiles
from mha_viz.attention import Attention, Head
from mha_viz.cli import main
from mha_viz.corpus import grammar
from mha_viz.errors import CorpusError, ModelUnsupported, SettingError
from mha_viz.figures.layout import Size
from mha_viz.figures.layout.figure_code import write_head_code
from mha_viz.figures.layout.view import View
from mha_viz.models.decomposing import contributions
from mha_viz.models.families import ENCODER_DECODERS, FAMILIES
from mha_viz.models.intervening import ablation, gradients
from mha_viz.models.reading import answers, onnx
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import from_folder, load_one_stack
from mha_viz.models.reading.opening import find_tensors_to_convert
from mha_viz.request import DTYPES, Request, add_dtype, get_dtype
from mha_viz.study import effects
from mha_viz.study.cluster.tasks import WorkerModel, open_encoder
from tests import lanes, tiny_encoder_decoders, tiny_models
from tests.oracles import EQUAL, SENTENCE

Tiny = Callable[[str], Encoder]
Folder = Callable[[str], Path]
HALVES = DTYPES[1:]
# The largest deviation of a weight in the tiny models, whose attention is much sharper than usual: bfloat16 has 8 bits
# of precision, float16 has 11.
FARTHEST = {"bfloat16": 0.06, "float16": 0.0075}
ROUNDED = sorted(name for name, family in FAMILIES.items() if family.probabilities)
READ = sorted(set(FAMILIES) - {*ROUNDED})
TEXT = "The cat wasn't far."


@pytest.fixture(scope="module")
def half(tiny_folder: Folder) -> Callable[[str], Encoder]:
    """A tiny model in bfloat16, made anew for each test that changes it."""
    made: dict[str, Encoder] = {}

    def of(kind: str) -> Encoder:
        if kind not in made:
            made[kind] = load_one_stack(from_folder(tiny_folder(kind), dtype="bfloat16"))
        return made[kind]

    return of


# ---- how far numbers are from those in float32 -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "named"),
    [(torch.bfloat16, "bfloat16"), (torch.float32, "float32"), (np.float16, "float16"), (np.dtype("f2"), "float16")],
)
def test_a_type_may_be_that_of_pytorch_or_numpy(dtype: Any, named: str) -> None:
    assert mv.load("toy", dtype=dtype).dtype == named


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    "family",
    lanes.some(READ, *[name for name in tiny_models.RECORDED if name not in ROUNDED], "gpt_neo", "gptj", "mixtral"),
)
def test_rows_are_float32_and_near_those_in_float32(family: str, dtype: str, tiny: Tiny, tiny_folder: Folder) -> None:
    encoder = load_one_stack(from_folder(tiny_folder(family), dtype=dtype))
    exact, rounded = tiny(family).encode(SENTENCE), encoder.encode(SENTENCE)
    assert encoder.dtype == dtype
    assert encoder.bytes < 0.75 * tiny(family).bytes
    assert rounded.weights.dtype == np.float32
    assert np.abs(rounded.weights.sum(axis=-1) - 1).max() <= EQUAL
    assert 10 * EQUAL < np.abs(rounded.weights - exact.weights).max() <= FARTHEST[dtype]


@pytest.mark.parametrize("family", lanes.some(sorted(ENCODER_DECODERS), "bart"))
def test_both_stacks_of_an_encoder_decoder(family: str, tmp_path: Path) -> None:
    """On average: the tiny T5s, which do not divide scores, attend to hardly more than one token."""
    folder = tiny_encoder_decoders.build(family, tmp_path)
    exact, *halves = (from_folder(folder, dtype=dtype) for dtype in DTYPES)
    for part in ("cross", "encoder", "decoder"):
        given = {"part": part} | ({} if part == "encoder" else {"target": "Das Tier."})
        weights = exact.encode(TEXT, **given).weights
        for model, bound in zip(halves, (0.005, 0.03), strict=True):
            rounded = model.encode(TEXT, **given).weights
            assert rounded.dtype == np.float32
            assert np.abs(rounded.sum(axis=-1) - 1).max() <= EQUAL
            assert 0 < np.abs(rounded - weights).mean() <= bound


def _gpt2_shaped(size: int) -> Any:
    """12 layers of 12 heads and 768 numbers, or ``size`` times narrower and half as deep."""
    sizes = {"n_embd": 768 // size, "n_layer": 12 if size == 1 else 6, "n_head": 12, "n_positions": 64}
    return GPT2Model(GPT2Config(vocab_size=400, **sizes))


def _llama_shaped(size: int) -> Any:
    """16 layers of 32 heads that share 8 keys, as the Llama of 1.2 · 10⁹ parameters has, but half as wide, or ``size``
    times narrower and half as deep again."""
    sizes = {
        "hidden_size": 1024 // size,
        "intermediate_size": 4096 // size,
        "num_hidden_layers": 16 if size == 1 else 8,
    }
    heads = {"num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 64}
    return LlamaModel(LlamaConfig(vocab_size=400, bos_token_id=0, eos_token_id=0, **sizes, **heads))


@pytest.mark.parametrize("shaped", [_gpt2_shaped, _llama_shaped])
def test_deep_models_of_the_shapes_of_gpt_2_and_llama(shaped: Callable[[int], Any], tmp_path: Path) -> None:
    """What is rounded in one layer is passed on to the next. With --all in their full width and depth."""
    folder = tiny_models.save_model(shaped(1 if lanes.everything else 4), tmp_path / "model")
    exact = from_folder(folder).encode(SENTENCE).weights
    for dtype, bound in (("bfloat16", 0.15), ("float16", 0.02)):
        apart = np.abs(from_folder(folder, dtype=dtype).encode(SENTENCE).weights - exact)
        assert EQUAL < apart.max() <= bound
        assert apart.mean() <= bound / 40


def test_every_quantity_and_effect_is_near_that_in_float32(tiny: Tiny, half: Callable[[str], Encoder]) -> None:
    for kind in ("gpt2 words", "llama words"):
        exact, rounded = tiny(kind), half(kind)
        question = answers.make_question(exact, TEXT, word="the")
        off, request = [Head(0, 1), Head(1, 2)], Request(text=TEXT, question=question)
        measured = [
            (
                ablation.encode_without(model, off, TEXT, method="uniform").weights,
                model.states(TEXT),
                mv.quantities.norm_weighted(model, TEXT).weights,
                mv.quantities.gradient_weighted(model, TEXT, word="the").weights,
                contributions.direct_contributions(model, question, TEXT),
                gradients.compute_importance(model, question, TEXT),
                effects.measure_effects(model, request).answer,
                effects.measure_effects(model, request).score,
                next(iter(model.encode_many([TEXT]))).weights,
            )
            for model in (exact, rounded)
        ]
        for ours, theirs in zip(*measured, strict=True):
            assert ours.dtype == theirs.dtype
            assert np.abs(ours - theirs).max() <= 0.15 * max(1.0, float(np.abs(ours).max()))


def test_patching_and_the_study_of_decoder_heads_take_such_models(half: Callable[[str], Encoder]) -> None:
    patched = mv.activation_patching(half("llama words"), TEXT, "The dog wasn't far.", word="the", foil="a")
    assert np.isfinite(patched.shares).all()
    assert np.isfinite(patched.estimated).all()
    exact, rounded = (
        mv.find_induction_heads(mv.load("repeater", dtype=dtype), draws=5) for dtype in ("float32", "float16")
    )
    assert {(role.head, role.measure) for role in rounded.roles()} == {
        (role.head, role.measure) for role in exact.roles()
    }


# ---- what tells them apart ---------------------------------------------------------------------------------------


def test_revisions_name_the_type_unless_it_is_float32() -> None:
    for revision in ("", "53aa", "untrained, seed 0"):
        assert add_dtype(revision, "float32") == revision
        for dtype in HALVES:
            named = add_dtype(revision, dtype)
            assert (get_dtype(named), add_dtype(named, "float32"), add_dtype(named, dtype)) == (dtype, revision, named)
    assert add_dtype("53aa, float16", "bfloat16") == "53aa, bfloat16"


def test_a_reading_in_bfloat16_is_never_one_in_float32(
    tiny: Tiny, half: Callable[[str], Encoder], tmp_path: Path
) -> None:
    exact, rounded = tiny("gpt2").encode(TEXT), half("gpt2").encode(TEXT)
    assert exact.key != rounded.key
    assert rounded.revision == f"{exact.revision}, bfloat16"
    assert f"weights digest {exact.revision}, bfloat16)" in rounded.heatmap("L0H1").caption
    assert "mv.load('gpt2', dtype='bfloat16').encode" in _recipe(rounded)
    assert "dtype" not in _recipe(exact)
    rounded.save(tmp_path / "reading.npz")
    assert mv.load_attention(tmp_path / "reading.npz").key == rounded.key
    untrained = half("gpt2").untrained(3)
    assert (untrained.dtype, untrained.revision) == ("bfloat16", "untrained, seed 3, bfloat16")
    assert "mv.load('gpt2', dtype='bfloat16').untrained(3).encode" in _recipe(untrained.encode(TEXT))


def _recipe(attention: Attention) -> str:
    return write_head_code(attention, "heatmap", [Head(0, 1)], View(), Size(), "a.svg")


def test_results_name_the_type_and_are_compared_with_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mha_viz.analysis.roles.MIN_CASES", 15)  # instead of 100
    corpus, half = grammar.corpus(40), load_one_stack(mv.load("toy", dtype="bfloat16"))
    profile = mv.profile(corpus, model=half)
    assert get_dtype(profile.facts["revision"]) == "bfloat16"
    exact = mv.profile(corpus, model="toy")
    with pytest.raises(CorpusError, match="another revision of the model"):
        check_profiles({name: profile.facts[name] for name in ("model", "revision")}, exact.facts)
    with pytest.raises(SettingError, match="loaded in bfloat16, and this was measured in float32"):
        mv.roles.ablate(exact, corpus, half, most=5)
    assert len(mv.roles.ablate(profile, corpus, most=5).tables["used"])  # opens it in bfloat16
    worker = WorkerModel.from_encoder(half)
    assert (worker.dtype, open_encoder(worker).revision) == ("bfloat16", half.revision)
    recipes = mv.recipes.fit(corpus, half, most=20)
    assert get_dtype(recipes.facts["revision"]) == "bfloat16"
    assert mv.recipes.fit(recipes, score=grammar.corpus(30), most=20).facts["revision"] == half.revision


@pytest.mark.app
def test_the_command_reads_in_half_precision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = tmp_path / "a.npz"
    assert main(["attention", "the dog slept .", "--model", "toy", "--dtype", "bfloat16", "--out", str(to)]) == 0
    assert get_dtype(mv.load_attention(to).revision) == "bfloat16"
    drawing = ["--head", "L0H0", "--dtype", "float16", "--caption", "--out", str(tmp_path / "a.svg")]
    assert main(["figure", "heatmap", "the dog slept .", "--model", "toy", *drawing]) == 0
    assert ", float16) reading" in capsys.readouterr().out
    page = ["--head", "L0H0", "--dtype", "float16", "--out", str(tmp_path / "a.html")]
    assert main(["publish", "the dog slept .", "--model", "toy", *page]) == 0
    assert ", float16) reading" in (tmp_path / "a.html").read_text("utf-8")
    assert main(["why", "grammar", "--dtype", "float16"]) == 2
    assert "It goes with attention, figure, publish, " in capsys.readouterr().err


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ROUNDED)
def test_families_whose_weights_come_out_rounded_are_refused(family: str, tiny_folder: Folder) -> None:
    with pytest.raises(ModelUnsupported, match=f"can be read in float32 only: .* family .{family}"):
        from_folder(tiny_folder(family), dtype="bfloat16")


def test_what_is_computed_again_needs_float32(half: Callable[[str], Encoder]) -> None:
    for ask in (
        lambda: half("llama").trace(TEXT, layer=1),
        lambda: half("llama").score_parts(TEXT, (0, 0), 3, 1),
        lambda: mv.explain_scores(half("llama"), TEXT),
    ):
        with pytest.raises(ModelUnsupported, match=r"computed again in float32, and it was loaded in bfloat16\. Load"):
            ask()


def test_a_page_that_reads_by_itself_needs_float32(half: Callable[[str], Encoder]) -> None:
    with pytest.raises(ModelUnsupported, match="loaded in bfloat16, and a web page runs models in float32"):
        onnx.check_exportable(half("bert"))


@pytest.mark.parametrize("dtype", ["int8", "half", "FLOAT16", "", None, float, torch.int8, np.float64])
def test_other_types_are_refused(dtype: Any, tiny_folder: Folder) -> None:
    for opened in (lambda: mv.load("toy", dtype=dtype), lambda: from_folder(tiny_folder("bert"), dtype=dtype)):
        with pytest.raises(SettingError, match=r"dtype is .*Choose one of float32, float16, bfloat16"):
            opened()


@pytest.mark.parametrize("device", ["gpu", "cpu:0", "cuda:", "cuda:x", "cuda:-1", "mps", "", None])
def test_other_devices_are_refused(device: Any) -> None:
    with pytest.raises(SettingError, match="is not a device"):
        mv.load("toy", device)


def test_a_device_of_pytorch_is_accepted() -> None:
    assert mv.load("toy", torch.device("cpu")).device == "cpu"


def test_a_device_that_is_not_there_is_refused_before_anything_is_loaded() -> None:
    with pytest.raises(SettingError, match=r"No GPU was found|There is no GPU 63"):
        mv.load("nobody/nothing", "cuda:63")


@pytest.mark.parametrize("value", ["gpu", "cuda:", "cpu:1", "cuda:1:1"])
def test_the_command_refuses_other_devices(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attention", "the dog .", "--device", value, "--out", "a.npz"]) == 2
    assert "is not a device" in capsys.readouterr().err


# ---- opening -----------------------------------------------------------------------------------------------------


def test_weights_that_are_converted_are_those_that_transformers_converts(tiny_folder: Folder, tmp_path: Path) -> None:
    """Of a model of experts too, whose tensors transformers puts together."""
    for family in ("llama", "mixtral", "gemma2"):
        folder = tiny_folder(family)
        files = sorted(folder.glob("*.safetensors"))
        assert find_tensors_to_convert(files, torch.float32) == {}
        assert find_tensors_to_convert(files, torch.bfloat16)
        model = load_one_stack(from_folder(folder, dtype="bfloat16"))._model
        theirs = type(model).from_pretrained(folder, dtype=torch.bfloat16).state_dict()
        ours = model.state_dict()
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A model of 92 million parameters in float32, 366 MB, and in bfloat16, 183 MB, both in shards of 40 MB."""
    root = tmp_path_factory.mktemp("sharded")
    sizes = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 24, "vocab_size": 500}
    heads = {"num_attention_heads": 8, "num_key_value_heads": 2, "max_position_embeddings": 64}
    torch.manual_seed(0)
    model = LlamaModel(LlamaConfig(bos_token_id=0, eos_token_id=0, **sizes, **heads))
    small = tiny_models.build("llama", root / "small")
    for dtype in ("float32", "bfloat16"):
        model.to(getattr(torch, dtype)).save_pretrained(root / dtype, max_shard_size="40MB")
        for file in small.glob("tokenizer*"):
            shutil.copy(file, root / dtype)
        shards = json.loads((root / dtype / "model.safetensors.index.json").read_text("utf-8"))["weight_map"]
        assert len(set(shards.values())) > 4
    yield root
    shutil.rmtree(root)


@pytest.mark.app
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("stored", "dtype", "most"),
    lanes.some(
        [
            ("float32", "bfloat16", 1.2),
            ("bfloat16", "bfloat16", 1.2),
            ("float32", "float16", 1.2),
            ("float32", "float32", 1.2),
            ("bfloat16", "float32", 1.3),  # converted first and packed for the processor then
        ],
        ("float32", "bfloat16", 1.2),
    ),
)
def test_opening_takes_hardly_more_memory_than_the_weights(stored: str, dtype: str, most: float, sharded: Path) -> None:
    command = [sys.executable, "-m", "tests.opening_memory", str(sharded / stored), dtype, str(sharded / "small")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert not done.returncode, done.stderr
    grown, weights = map(int, done.stdout.split())
    assert 0.5 * weights < grown <= most * weights
