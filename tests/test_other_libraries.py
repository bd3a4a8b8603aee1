"""What TransformerLens, nnsight and BertViz themselves record and take, in an environment of requirements-bench.txt.

Elsewhere a library's tests are not there, and the header of the run names the libraries that are missing.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest
from transformers import AlbertConfig, AlbertModel, AutoModel, AutoModelForCausalLM, AutoTokenizer

import mha_viz as mv
from mha_viz import bertviz
from tests import tiny_encoder_decoders
from tests.libraries import MISSING

TEXT = "The cat sat on the mat."
Folders = Callable[[str], Path]


def loaded(folder: Path) -> tuple[Any, Any]:
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    return model, AutoTokenizer.from_pretrained(folder)


if "transformer_lens" not in MISSING:

    @pytest.mark.parametrize("family", ["gpt2", "llama"])
    def test_a_cache_of_transformerlens(tiny_folder: Folders, family: str) -> None:
        folder = tiny_folder(family)
        model, tokenizer = loaded(folder)
        bridge = import_module("transformer_lens.model_bridge").TransformerBridge
        lens = bridge.boot_transformers(str(folder), hf_model=model, tokenizer=tokenizer)
        ids = tokenizer(TEXT, return_tensors="pt").input_ids
        _, cache = lens.run_with_cache(ids)
        a = mv.Attention.from_cache(cache, lens.to_str_tokens(ids[0]))
        ours = mv.load(str(folder))
        assert a.weights == pytest.approx(ours.encode(TEXT).weights, abs=1e-6)
        named = tokenizer.convert_ids_to_tokens(ids[0])
        norms = mv.Attention.from_cache(cache, named, w_o=lens.W_O)
        assert norms.by_words().tokens == ours.encode(TEXT).by_words().tokens
        assert norms.weights == pytest.approx(mv.quantities.norm_weighted(ours, TEXT).weights, abs=3e-6)


if "nnsight" not in MISSING:

    def test_what_nnsight_saved(tiny_folder: Folders) -> None:
        folder = tiny_folder("gpt2")
        model, tokenizer = loaded(folder)
        traced = import_module("nnsight").TransformersModel(model, tokenizer=tokenizer, task="text-generation")
        with traced.trace(TEXT) as tracer:
            cache = tracer.cache(modules=[block.attn for block in traced.transformer.h])
        with traced.trace(TEXT):
            outputs = list().save()  # type: ignore[attr-defined]  # noqa: C408 (nnsight adds this method)
            for block in traced.transformer.h:
                outputs.append(block.attn.output)
        ours = mv.load(str(folder)).encode(TEXT).weights
        names = tokenizer.convert_ids_to_tokens(tokenizer(TEXT).input_ids)
        for recorded in (cache, outputs):
            assert mv.Attention.from_cache(recorded, names).weights == pytest.approx(ours, abs=1e-6)


if "bertviz" not in MISSING:

    @pytest.mark.parametrize("view", ["head_view", "model_view"])
    def test_the_signatures_of_bertviz(view: str) -> None:
        theirs = inspect.signature(getattr(import_module("bertviz"), view)).parameters
        ours = inspect.signature(getattr(bertviz, view)).parameters
        assert [(name, one.default) for name, one in ours.items()] == [(n, one.default) for n, one in theirs.items()]

    # What transformers 5 has no more, with which BertViz fails on these cells, too.
    GONE = {"tokenizer.encode_plus(": "tokenizer(", "with tokenizer.as_target_tokenizer():\n    ": ""}

    @pytest.fixture
    def folders(tiny_folder: Folders, tmp_path: Path) -> dict[str, Path]:
        """Models for the cells, by what their names end with: with the layers and heads that the cells name, one whose
        last output is its attention, and an encoder–decoder."""
        tokenizer = AutoTokenizer.from_pretrained(tiny_folder("bert"))
        sizes = {"hidden_size": 24, "intermediate_size": 8, "num_hidden_layers": 7, "num_attention_heads": 6}
        config = AlbertConfig(vocab_size=len(tokenizer), embedding_size=8, **sizes)
        for part in (AlbertModel(config), tokenizer):
            part.save_pretrained(tmp_path / "one")
        return {"uncased": tmp_path / "one", "en-de": tiny_encoder_decoders.build("bart", tmp_path / "two")}

    def test_the_cells_of_bertvizs_readme(
        folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Unchanged but for the import, with small models that are loaded with eager attention."""

        def local(real: Any, name: str, **options: Any) -> Any:
            return real(folders[next(end for end in folders if name.endswith(end))], **options)

        for kind, options in ((AutoModel, {"attn_implementation": "eager"}), (AutoTokenizer, {})):
            monkeypatch.setattr(kind, "from_pretrained", partial(local, kind.from_pretrained, **options))
        shown = list[Any]()
        monkeypatch.setattr(import_module("IPython.display"), "display", shown.append)
        monkeypatch.chdir(tmp_path)
        Path("PATH_TO_YOUR_FILE").mkdir()
        cells = re.findall(r"```python\n(.*?)```", metadata("bertviz").json["description"], re.DOTALL)
        names, views = dict[str, Any](), 0
        for cell in cells:
            if "neuron_view" in cell:
                continue
            views += len(re.findall(r"^(?:head|model)_view\(", cell, re.MULTILINE))
            for old, new in {"from bertviz import": "from mha_viz.bertviz import", **GONE}.items():
                cell = cell.replace(old, new)
            exec(cell, names)
        assert len(shown) == views == 7
        assert "<iframe" in Path("PATH_TO_YOUR_FILE/head_view.html").read_text("ascii")
