"""A plain BERT or GPT-2 that is opened without transformers: the same numbers, bit for bit, and whatever its files say
beyond what is looked at is left to transformers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import mha_viz as mv
from mha_viz.models.getting import hub
from mha_viz.models.getting.catalog import resolve
from mha_viz.models.reading import encoder as encoders
from mha_viz.models.reading.answers import can_predict
from mha_viz.models.reading.bert import Bert
from mha_viz.models.reading.continuing import continue_text
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.gpt2 import Gpt2
from mha_viz.models.reading.loading import from_folder, load_one_stack
from mha_viz.models.reading.plain_models import open_plain
from mha_viz.models.reading.vocabulary import Vocabulary
from tests import hostile
from tests.cli_runs import ROOT

TEXTS = (
    "The animal didn't cross the street, because it was too tired.",
    "Ünïcödé ﬁne [MASK] 你好 naïve\tIt's  [SEP] x",
)
PAIR = "The dog saw the girl ."
SHIPPED = ("minilm", "toy", "repeater")
PLAIN = (Bert, Gpt2)
JsonObject = dict[str, Any]


def _folder(name: str) -> Path:
    folder = hub.find_local_folder(resolve(name))
    assert folder is not None
    return folder


def _both(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Encoder, Encoder]:
    """Return the model of a folder, opened without transformers if that is possible, and by transformers."""
    first = load_one_stack(from_folder(folder))
    with monkeypatch.context() as patch:
        patch.setattr(encoders, "open_plain", lambda *_: None)
        return first, load_one_stack(from_folder(folder))


@pytest.fixture(params=SHIPPED)
def both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[Encoder, Encoder]:
    first, theirs = _both(_folder(request.param), monkeypatch)
    assert isinstance(first.module(""), PLAIN)
    assert not isinstance(theirs.module(""), PLAIN)
    return first, theirs


def _check_readings(first: Encoder, theirs: Encoder) -> None:
    for text in TEXTS:
        for pair in ("",) if first.causal else ("", PAIR):
            mine, other = (each.encode(text, pair) for each in (first, theirs))
            assert mine.text == other.text
            assert np.array_equal(mine.weights, other.weights)
            assert np.array_equal(first.states(text, pair), theirs.states(text, pair))


def test_readings_are_those_of_transformers_bit_for_bit(both: tuple[Encoder, Encoder]) -> None:
    first, theirs = both
    _check_readings(first, theirs)
    for name in ("layers", "heads", "d_model", "limit", "revision", "family", "causal", "mask", "name", "dtype"):
        assert getattr(first, name) == getattr(theirs, name), name
    assert [list(w.ids) for w in map(first.read_words, [("The", "dog")])] == [
        list(theirs.read_words(("The", "dog")).ids)
    ]


def test_what_is_computed_inside_is_the_same_bit_for_bit(both: tuple[Encoder, Encoder]) -> None:
    made = []
    for model in both:
        trace = model.trace(TEXTS[0], layer=1)
        norms = mv.quantities.norm_weighted(model, TEXTS[0]).weights
        parts = model.score_parts(TEXTS[0], "L1H2", 3, 2)
        gradients = mv.gradient_importance(model, TEXTS[0], other=PAIR)
        random = model.untrained(3).encode(TEXTS[0]).weights
        made.append((trace.x, trace.weights, trace.output, norms, parts.values, gradients.values, random))
    for mine, other in zip(*made, strict=True):
        assert np.array_equal(mine, other)


def test_what_is_answered_is_the_same_bit_for_bit(both: tuple[Encoder, Encoder]) -> None:
    made = []
    for model in both:
        text = "The dog saw the girl . The dog" if model.causal else "The dog saw the [MASK] ."
        source = text.replace("girl", "cat").replace("dog", "boy")
        about = {} if can_predict(model, text) else {"other": PAIR}
        made.append(
            (
                mv.ablation_effects(model, text, **about).table(),
                mv.predict(model, text, ["L0H1", "L1H2"], **about).table(),
                mv.activation_patching(model, text, source, similar_to=about.get("other", "")).table(),
                mv.gradient_importance(model, text, **about).table(),
                mv.explain_scores(model, text).table(),
            )
        )
    for mine, other in zip(*made, strict=True):
        assert mine.equals(other)


def test_a_causal_model_goes_on_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    first, theirs = _both(_folder("repeater"), monkeypatch)
    text = "the dog saw the girl . the dog"
    assert continue_text(first, text) == continue_text(theirs, text)
    assert mv.direct_logit_attribution(first, text).table().equals(mv.direct_logit_attribution(theirs, text).table())
    assert np.array_equal(
        mv.quantities.gradient_weighted(first, text).weights, mv.quantities.gradient_weighted(theirs, text).weights
    )


def test_every_hostile_text_becomes_the_same_tokens(both: tuple[Encoder, Encoder]) -> None:
    first, theirs = both
    for text in hostile.TEXTS.values():
        mine, other = (_read(model, text) for model in (first, theirs))
        assert mine == other, text


def _read(model: Encoder, text: str) -> Any:
    try:
        return model.pieces(text)
    except mv.errors.MhaVizError as error:
        return str(error)


def test_the_vocabulary_is_that_of_transformers(both: tuple[Encoder, Encoder]) -> None:
    mine, other = (model.vocabulary for model in both)
    assert isinstance(mine, Vocabulary)
    assert not isinstance(other, Vocabulary)
    for role in ("bos", "eos", "unk", "sep", "cls", "mask"):
        assert getattr(mine, f"{role}_token_id") == getattr(other, f"{role}_token_id"), role
    for name in ("all_special_ids", "mask_token", "model_max_length", "model_input_names", "is_fast", "pad_token"):
        assert getattr(mine, name) == getattr(other, name), name
    assert len(mine) == len(other)
    assert mine(PAIR).input_ids == other(PAIR).input_ids
    assert mine.decode([5, 9]) == other.decode([5, 9])


def _edit(folder: Path, file: str, change: Callable[[JsonObject], Any]) -> None:
    written = json.loads((folder / file).read_text("utf-8"))
    change(written)
    (folder / file).write_text(json.dumps(written), "utf-8")


def _weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> None:
    save_file(change(load_file(folder / "model.safetensors")), folder / "model.safetensors", {"format": "pt"})


def _cased(folder: Path) -> None:
    _edit(folder, "tokenizer_config.json", lambda s: s.update(do_lower_case=False, strip_accents=False))
    _edit(folder, "tokenizer.json", lambda t: t["normalizer"].update(lowercase=False, strip_accents=False))


def _listed(folder: Path) -> None:
    added = json.loads((folder / "tokenizer.json").read_text("utf-8"))["added_tokens"]
    listed = {str(token.pop("id")): token for token in added}
    _edit(folder, "tokenizer_config.json", lambda s: s.update(added_tokens_decoder=listed))


# What is changed in the files of minilm, and whether the model is then opened without transformers.
CHANGES: dict[str, tuple[Callable[[Path], Any], bool]] = {
    "nothing": (lambda f: None, True),
    "case and accents": (_cased, True),
    "its tokens are listed": (_listed, True),
    "names of the tokens left out": (
        lambda f: _edit(f, "tokenizer_config.json", lambda s: [s.pop(f"{r}_token") for r in ("cls", "mask")]),
        True,
    ),
    "weights of a model with a head": (lambda f: _weights(f, lambda w: {f"bert.{k}": w[k] for k in w}), True),
    "the former name of its class": (
        lambda f: _edit(f, "tokenizer_config.json", lambda s: s.update(tokenizer_class="BertTokenizerFast")),
        True,
    ),
    "another token in one file alone": (
        lambda f: (f / "special_tokens_map.json").write_text('{"cls_token": "[MASK]"}', "utf-8"),
        False,
    ),
    "case in one file alone": (
        lambda f: _edit(f, "tokenizer_config.json", lambda s: s.update(do_lower_case=False)),
        False,
    ),
    "another form of the words": (
        lambda f: _edit(f, "tokenizer.json", lambda t: t["model"].update(max_input_chars_per_word=7)),
        False,
    ),
    "another end": (
        lambda f: _edit(f, "tokenizer.json", lambda t: t["post_processor"]["single"].pop()),
        False,
    ),
    "another token": (
        lambda f: _edit(f, "tokenizer_config.json", lambda s: s.update(additional_special_tokens=["[X]"])),
        False,
    ),
    "a token with blanks": (
        lambda f: _edit(f, "tokenizer.json", lambda t: t["added_tokens"][4].update(lstrip=True)),
        False,
    ),
    "a file of added tokens": (lambda f: (f / "added_tokens.json").write_text('{"[X]": 30522}', "utf-8"), False),
    "no tokenizer.json": (lambda f: (f / "tokenizer.json").unlink(), False),
    "another activation": (lambda f: _edit(f, "config.json", lambda c: c.update(hidden_act="relu")), False),
    "feed-forward in chunks": (
        lambda f: _edit(f, "config.json", lambda c: c.update(chunk_size_feed_forward=1)),
        False,
    ),
    "weights in halves": (lambda f: _weights(f, lambda w: {k: w[k].half() for k in w}), False),
    "old names of norms": (
        lambda f: _weights(f, lambda w: {k.replace("LayerNorm.weight", "LayerNorm.gamma"): w[k] for k in w}),
        False,
    ),
}


_MASK = torch.ones(1, 1, 64, 64).tril()

# The same of repeater.
OF_GPT2: dict[str, tuple[Callable[[Path], Any], bool]] = {
    "nothing": (lambda f: None, True),
    "four times as wide inside": (
        lambda f: [_edit(f, "config.json", lambda c: c.update(n_inner=None)), _weights(f, _widened)],
        True,
    ),
    "weights of a model without a head": (
        lambda f: _weights(f, lambda w: {k.removeprefix("transformer."): w[k] for k in w}),
        True,
    ),
    "the masks of older files": (lambda f: _weights(f, lambda w: w | {"transformer.h.0.attn.bias": _MASK}), True),
    "scores divided by layers": (
        lambda f: _edit(f, "config.json", lambda c: c.update(scale_attn_by_inverse_layer_idx=True)),
        False,
    ),
    "scores not divided": (lambda f: _edit(f, "config.json", lambda c: c.update(scale_attn_weights=False)), False),
    "reordered": (lambda f: _edit(f, "config.json", lambda c: c.update(reorder_and_upcast_attn=True)), False),
    "another activation": (lambda f: _edit(f, "config.json", lambda c: c.update(activation_function="relu")), False),
    "a second name of its width": (lambda f: _edit(f, "config.json", lambda c: c.update(hidden_size=64)), False),
    "no epsilon": (lambda f: _edit(f, "config.json", lambda c: c.pop("layer_norm_epsilon")), True),
    "weights in halves": (lambda f: _weights(f, lambda w: {k: w[k].half() for k in w}), False),
    "a token with blanks": (
        lambda f: _edit(f, "tokenizer.json", lambda t: t["added_tokens"][1].update(lstrip=True)),
        False,
    ),
    "the tokenizer of GPT-2": (
        lambda f: _edit(f, "tokenizer_config.json", lambda s: s.update(tokenizer_class="GPT2Tokenizer")),
        False,
    ),
}


def _widened(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    wide = {"c_fc.weight": (64, 256), "c_fc.bias": (256,), "mlp.c_proj.weight": (256, 64)}
    random = torch.Generator().manual_seed(0)
    return {
        key: next((torch.randn(wide[end], generator=random) for end in wide if key.endswith(end)), weights[key])
        for key in weights
    }


@pytest.mark.parametrize(
    ("model", "change"), [*(("minilm", each) for each in CHANGES), *(("repeater", each) for each in OF_GPT2)]
)
def test_other_files_are_left_to_transformers(
    model: str, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(_folder(model), tmp_path / "model")
    apply, is_plain = (CHANGES if model == "minilm" else OF_GPT2)[change]
    apply(folder)
    assert (open_plain(folder, "model") is not None) == is_plain
    if change != "the tokenizer of GPT-2":  # repeater has none of its merges, so that transformers refuses it
        _check_readings(*_both(folder, monkeypatch))


# Each of these in a new process.
WITHOUT_TRANSFORMERS = {
    "a figure": "mha_viz.cli.main(['figure', 'heatmap', TEXT, '--head', 'L3H1', '--out', 'made.svg'])",
    "the numbers": "mha_viz.cli.main(['attention', TEXT, '--out', 'made.npz'])",
    "minilm": "mha_viz.load('minilm').encode(TEXT)",
    "toy": "mha_viz.load('toy').encode(TEXT)",
    "repeater": "mha_viz.load('repeater').encode(TEXT)",
}


@pytest.mark.app
@pytest.mark.parametrize("what", WITHOUT_TRANSFORMERS)
def test_a_plain_model_needs_no_transformers(what: str, tmp_path: Path) -> None:
    code = f"import sys, mha_viz.cli; TEXT = {TEXTS[0]!r}; {WITHOUT_TRANSFORMERS[what]}; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    imported = done.stdout.splitlines()[-1].split()
    assert "torch" in imported
    assert "transformers" not in imported
