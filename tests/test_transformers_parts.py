"""Check that models open with versions of transformers that name their parts otherwise, and that a missing part is
answered by a sentence."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers.models.gptj import modeling_gptj

import mha_viz as mv
from mha_viz.errors import ModelUnsupported, SettingError
from mha_viz.library_parts import TESTED_VERSIONS, LibraryPart, check_parts, find_losses
from mha_viz.models.reading import capture
from mha_viz.models.reading.probe import LayerProbe
from mha_viz.models.transformers_parts import FAMILY_PARTS, LOSS_OF_SPEED, PARTS, uses_registered_attention
from tests import tiny_encoder_decoders, tiny_models
from tests.imports import ROOT, parsed
from tests.oracles import EQUAL, SENTENCE
from tests.waiting import PATIENCE

pytestmark = pytest.mark.models
Patch = pytest.MonkeyPatch
Folder = Callable[[str], Path]
REMEDY = f'pip install "transformers{TESTED_VERSIONS["transformers"]}"'


# ---- Names that changed ----------------------------------------------------------------------------------


def dispatch(patch: Patch) -> None:
    """Have GPT-J call the attention function that its config names, as transformers does since 5.24."""
    kind: Any = modeling_gptj.GPTJAttention
    if not hasattr(kind, "_attn"):
        return
    own_forward, own_attention = kind.forward, kind._attn

    def eager(module: Any, query: Any, key: Any, value: Any, mask: Any, **_: Any) -> Any:
        output, weights = own_attention(module, query, key, value, mask)
        return output.transpose(1, 2), weights

    def forward(self: Any, *values: Any, **named: Any) -> Any:
        def attend(query: Any, key: Any, value: Any, mask: Any) -> Any:
            is_registered = self.config._attn_implementation == capture.IMPLEMENTATION
            function: Any = capture.capture_attention if is_registered else eager
            output, weights = function(self, query, key, value, mask, scaling=1 / self.scale_attn)
            return output.transpose(1, 2), weights

        vars(self)["_attn"] = attend
        return own_forward(self, *values, **named)

    patch.delattr(kind, "_attn")
    patch.setattr(kind, "forward", forward)
    patch.setattr(modeling_gptj, "eager_attention_forward", eager, raising=False)
    patch.setitem(modeling_gptj.GPTJ_ATTENTION_CLASSES, capture.IMPLEMENTATION, kind)


def numbers_of(folder: Path) -> list[np.ndarray[Any, Any]]:
    """Weights, last states, effects of all heads, and weights of the same model untrained."""
    encoder: Any = mv.load(folder)
    untrained = encoder.untrained(1).encode(SENTENCE).weights
    return [
        encoder.encode(SENTENCE).weights,
        encoder.states(SENTENCE),
        mv.ablation_effects(encoder, SENTENCE).tokens,
        untrained,
    ]


def test_gptj_is_read_the_same_where_it_calls_the_registered_function(tiny_folder: Folder, monkeypatch: Patch) -> None:
    expected = numbers_of(tiny_folder("gptj"))
    dispatch(monkeypatch)
    assert uses_registered_attention("gptj")
    assert capture.choose_implementation("gptj") == capture.IMPLEMENTATION
    for ours, theirs in zip(numbers_of(tiny_folder("gptj")), expected, strict=True):
        assert np.abs(ours - theirs).max() <= EQUAL


def test_gptj_s_rotations_are_read_where_they_are_given_and_where_they_are_looked_up(tiny_folder: Folder) -> None:
    encoder: Any = mv.load(tiny_folder("gptj"))
    table = torch.randn(9, 4)  # sines for two pairs of numbers, then their cosines
    opened: Any = LayerProbe(encoder._model, "gptj", 0, tiny_models.LAYERS)
    opened._modules = SimpleNamespace(holder=SimpleNamespace(embed_positions=table))
    looked_up = {"position_ids": torch.arange(9)[None]}
    for named in (looked_up, {"position_embeddings": table[None].chunk(2, -1)}):
        turns = opened._find_rotations((), {**named, "attention_mask": None})
        assert turns.sin[0].equal(table[:, [0, 0, 1, 1]])
        assert turns.cos[0].equal(table[:, [2, 2, 3, 3]])


class Step(dict[str, Any]):
    """What a model puts out, whose cache is called as the model says."""

    logits: torch.Tensor


def name_cache(patch: Patch, model: Any, name: str) -> None:
    """Have a model take and return its cache by a name alone."""
    own_forward = model.forward
    own_name = "cache" if "cache" in inspect.signature(own_forward).parameters else "past_key_values"

    def step(cache: Any, named: dict[str, Any]) -> Step:
        assert named.keys() == {"encoder_outputs", "decoder_input_ids", "use_cache"}
        output = own_forward(**named, **{own_name: cache})
        made = Step({name: output[own_name]})
        made.logits = output.logits
        return made

    def newer(cache: Any = None, **named: Any) -> Step:
        return step(cache, named)

    def older(past_key_values: Any = None, **named: Any) -> Step:
        return step(past_key_values, named)

    patch.setattr(model, "forward", newer if name == "cache" else older)


def test_a_target_is_written_whatever_the_cache_is_called(
    tmp_path: Path, monkeypatch: Patch, recwarn: pytest.WarningsRecorder
) -> None:
    encoder: Any = mv.load(tiny_encoder_decoders.build("t5", tmp_path))
    monkeypatch.setattr("mha_viz.models.reading.encoder_decoder.MAX_TARGET_TOKENS", 6)
    expected = encoder._make_target(encoder._read(SENTENCE), "")
    assert len(expected.ids) > 2
    for name in ("cache", "past_key_values"):
        with monkeypatch.context() as patch:
            name_cache(patch, encoder._model, name)
            written = encoder._make_target(encoder._read(SENTENCE), "")
        assert written == expected
    assert [str(one.message) for one in recwarn if "past_key_values" in str(one.message)] == []


# ---- What is not there -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_a_listed_family_that_records_nothing_names_both_versions(
    family: str, tmp_path: Path, tiny_folder: Folder, monkeypatch: Patch
) -> None:
    folder = tiny_encoder_decoders.build("t5", tmp_path / "t5") if family == "t5" else tiny_folder(family)
    monkeypatch.setattr(capture, "choose_implementation", lambda _: "eager")
    with pytest.raises(ModelUnsupported) as refused:
        mv.load(folder)
    assert re.search(
        rf"shows the attention of 0 of its \d layers with transformers {re.escape(version('transformers'))}\. ",
        str(refused.value),
    )
    versions = ">=5.15,<5.25" if family == "t5" else TESTED_VERSIONS["transformers"]
    assert f'pip install "transformers{versions}"' in str(refused.value)
    assert "another model" not in str(refused.value)


def test_a_part_that_one_family_needs_is_missed_when_a_model_of_it_is_opened(
    tmp_path: Path, tiny_folder: Folder, monkeypatch: Patch
) -> None:
    folders = {
        "longformer": tiny_folder("longformer"),
        "mbart": tiny_encoder_decoders.build("mbart", tmp_path / "mbart"),
    }
    assert folders.keys() == FAMILY_PARTS.keys()
    for family, folder in folders.items():
        part = FAMILY_PARTS[family]
        with monkeypatch.context() as patch:
            patch.delattr(pkgutil.resolve_name(part.owner), part.name)
            with pytest.raises(SettingError) as refused:
                mv.load(folder)
            assert f"has no {part.label} as mha_viz needs it" in str(refused.value)
            assert REMEDY in str(refused.value)
            mv.load(tiny_folder("bert"))


def test_a_family_without_an_attention_function_of_its_own_is_named() -> None:
    module: Any = type("Attention", (torch.nn.Module,), {"__module__": "transformers.activations"})()
    one = torch.zeros(1, 1, 1, 1)
    with pytest.raises(SettingError, match=r"has no activations\.eager_attention_forward .*transformers>="):
        capture.capture_attention(module, one, one, one, None)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.label)
def test_each_missing_part_is_named_with_the_versions_that_work(part: LibraryPart) -> None:
    renamed = part._replace(name=f"{part.name}_renamed")
    if part.loss:
        assert find_losses([renamed]) == {LOSS_OF_SPEED: renamed}
        return
    with pytest.raises(SettingError) as refused:
        check_parts([renamed])
    assert f"{part.package} {version(part.package)} has no {renamed.label}" in str(refused.value)
    assert f'pip install "{part.package}{TESTED_VERSIONS[part.package]}"' in str(refused.value)


WITHOUT = """
import transformers.masking_utils, mha_viz as mv, mha_viz.errors
del transformers.masking_utils.eager_mask
try:
    mv.load("repeater").untrained()
except mha_viz.errors.SettingError as error:
    print(error)
"""


def test_a_transformers_without_a_part_is_refused_in_one_sentence_when_a_model_is_opened() -> None:
    ended = subprocess.run([sys.executable, "-c", WITHOUT], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.stdout.startswith(f"transformers {version('transformers')} has no masking_utils.eager_mask as ")
    assert REMEDY in ended.stdout
    assert ended.stdout.count("\n") == 1
    assert ended.returncode == 0, ended.stderr


# ---- The table is whole ----------------------------------------------------------------------------------


def test_all_parts_are_there_now_and_no_row_is_stated_twice() -> None:
    check_parts([*PARTS, *FAMILY_PARTS.values()])
    assert find_losses(PARTS) == {}
    assert len(set(PARTS)) == len(PARTS)


PUBLIC = {"_replace", "_asdict"}  # of named tuples


def test_every_name_from_inside_transformers_and_torch_has_a_row() -> None:
    imported = {(part.owner, part.name) for part in PARTS}
    names = {part.name for part in (*PARTS, *FAMILY_PARTS.values())}
    missing = [
        (path.name, taken)
        for folder in ("models", "lab")
        for path in sorted((ROOT / "mha_viz" / folder).rglob("*.py"))
        for taken in taken_inside(parsed(path.read_text("utf-8")))
        if (taken not in imported if isinstance(taken, tuple) else taken not in names | PUBLIC)
    ]
    assert missing == []


def taken_inside(tree: ast.Module) -> Iterator[tuple[str, str] | str]:
    """Names imported from modules inside transformers, and private attributes that the module itself does not set."""
    for node in ast.walk(tree):
        module = str(node.module) if isinstance(node, ast.ImportFrom) else ""
        if module.startswith("transformers.") and not module.startswith("transformers.models."):
            yield from ((module, name.name) for name in getattr(node, "names", ()))
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    own = {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")}
    own |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    private = {node.attr for node in attributes if node.attr.startswith("_") and not node.attr.startswith("__")}
    yield from private - own
