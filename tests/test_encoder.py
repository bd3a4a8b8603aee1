"""The encoder: what it reads, what it refuses, and its errors for a broken folder."""

from __future__ import annotations

import copy
import json
import mmap
import pickle
import re
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import mha_viz
from mha_viz.app.service.reader import verbs
from mha_viz.app.service.reader.models import Models
from mha_viz.attention import Head
from mha_viz.cli import main
from mha_viz.errors import EmptyText, MhaVizError, ModelBroken, ModelUnsupported, TextError, UnknownModel
from mha_viz.models.getting import pipeline
from mha_viz.models.reading import capture, linear, loading, opening
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load_one_stack
from mha_viz.models.reading.tokenizer import CHARACTERS_PER_PIECE
from mha_viz.request import Request
from mha_viz.text import TokenizedText, clean
from tests import hostile
from tests.oracles import SECOND, SENTENCE, check_text, load_plain

Folder = Callable[[str], Path]
Tiny = Callable[[str], Encoder]

# The hostile texts of which BERT's uncased tokenizer keeps nothing.
NOTHING_KEPT = {
    *("empty", "spaces", "line breaks", "no-break and ideographic spaces"),
    *("only nul", "surrogates in the wrong order", "only combining marks", "only zero width"),
}


# ---- the pretrained model -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "typed", [(SENTENCE,), (SENTENCE, "It slept."), ("word " * 600,), ("Ünï 漢字 😀 [MASK] [SEP] x",), ("a",)]
)
def test_minilm_equals_transformers(typed: tuple[str, ...], minilm: Encoder) -> None:
    assert minilm.folder is not None
    model, tokenizer = load_plain(minilm.folder)
    inputs = tokenizer(*typed, return_tensors="pt", truncation="longest_first", max_length=512)
    with torch.no_grad():
        expected = torch.cat(model(**inputs, output_attentions=True).attentions).numpy()
    assert np.abs(minilm.encode(*typed).weights - expected).max() <= 1e-5


def test_a_head_of_minilm_links_it_to_animal(minilm: Encoder) -> None:
    attention = minilm.encode(SENTENCE)
    query, key = attention.tokens.index("it"), attention.tokens.index("animal")
    assert attention[Head(3, 1)][query, key] == pytest.approx(0.68, abs=0.005)
    assert attention[Head(5, 11)][query, key] == pytest.approx(0.67, abs=0.005)


@pytest.mark.parametrize("text", [3, None, ["a", "b"], b"a"])
def test_what_is_no_text_is_refused_in_words(minilm: Encoder, text: Any) -> None:
    for read in (minilm.encode, lambda text: minilm.encode("a", text), lambda text: minilm.encode_words([text])):
        with pytest.raises(TextError, match="not text"):
            read(text)
    with pytest.raises(TextError, match="one string"):
        minilm.encode_words("one string")


def test_too_many_words_are_counted_in_words(minilm: Encoder) -> None:
    with pytest.raises(TextError, match=f"at most {minilm.limit} words"):
        minilm.encode_words(["a"] * (minilm.limit + 1))


def test_what_minilm_says_of_itself(minilm: Encoder) -> None:
    assert (minilm.name, minilm.family, minilm.layers, minilm.heads) == ("minilm", "bert", 6, 12)
    assert (minilm.d_model, minilm.limit, minilm.causal) == (384, 512, False)
    assert 85e6 < minilm.bytes < 95e6
    assert minilm.revision == minilm.encode("a").revision == "53aa51172d14"


def test_the_weights_are_handed_over_frozen_and_not_copied(minilm: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[Any] = []

    def receive(model: str, revision: str, text: TokenizedText, weights: Any, **more: Any) -> mha_viz.Attention:
        handed.append(weights)
        return mha_viz.Attention(model, revision, text, weights, **more)

    monkeypatch.setattr("mha_viz.models.reading.encoder.Attention", receive)
    assert minilm.encode(SENTENCE).weights is handed[0]
    assert not handed[0].flags.writeable


# ---- the text -------------------------------------------------------------------------------------------------------


def test_tokens_point_into_what_was_typed(minilm: Encoder) -> None:
    tokens = minilm.tokenize("Zoë  didn't\tsleep.").tokens
    assert [(t.text, t.word, t.start, t.end) for t in tokens] == [
        ("[CLS]", None, None, None),
        ("Zoë", 0, 0, 3),
        ("didn", 1, 5, 9),
        ("'", 1, 9, 10),
        ("t", 1, 10, 11),
        ("sleep", 2, 12, 17),
        (".", 3, 17, 18),
        ("[SEP]", None, None, None),
    ]


def test_segments_of_a_pair(minilm: Encoder) -> None:
    tokens = minilm.tokenize("He slept.", "Why?").tokens
    assert [(t.text, t.segment, t.start) for t in tokens] == [
        ("[CLS]", 0, None),
        ("He", 0, 0),
        ("slept", 0, 3),
        (".", 0, 8),
        ("[SEP]", 0, None),
        ("Why", 1, 0),
        ("?", 1, 3),
        ("[SEP]", 1, None),
    ]


def test_typed_special_tokens(minilm: Encoder) -> None:
    tokens = minilm.tokenize("[CLS] a [SEP] b [MASK] [PAD] [UNK]").tokens[1:-1]
    assert [(t.text, t.word, t.start) for t in tokens] == [
        ("[CLS]", None, 0),
        ("a", 0, 6),
        ("[SEP]", None, 8),
        ("b", 1, 14),
        ("[MASK]", 2, 16),
        ("[PAD]", None, 23),
        ("[UNK]", 3, 29),
    ]


def test_a_typed_end_of_text_is_a_delimiter_for_gpt2(tiny: Tiny) -> None:
    tokens = tiny("gpt2").tokenize("a<|endoftext|>b").tokens
    assert [(t.text, t.word) for t in tokens] == [("a", 0), ("<|endoftext|>", None), ("b", 1)]


def test_roberta_reads_a_typed_mask_as_a_word(tiny: Tiny) -> None:
    tokens = [t for t in tiny("roberta").tokenize("a <mask></s>").by_words().tokens if t.start is not None]
    assert [(t.text, t.word, t.start) for t in tokens] == [("a", 0, 0), ("<mask>", 1, 2), ("</s>", None, 8)]


@pytest.mark.parametrize("typed", ["", "   ", "\n\t\u2028\u3000"])
def test_nothing_typed(typed: str, minilm: Encoder) -> None:
    with pytest.raises(EmptyText, match="Nothing was typed"):
        minilm.encode(typed)


@pytest.mark.parametrize("typed", ["\u200b\u200c\u200d\ufeff", "\0\0", "\ud800"])
def test_nothing_that_the_tokenizer_keeps(typed: str, minilm: Encoder) -> None:
    with pytest.raises(EmptyText, match="keeps nothing of the text"):
        minilm.encode(typed)
    with pytest.raises(EmptyText, match="keeps nothing of the second sentence"):
        minilm.encode("a", typed)


def test_a_pair_of_blanks_is_no_pair(minilm: Encoder) -> None:
    assert minilm.tokenize("a", "  ") == minilm.tokenize("a")


def test_hostile_text(minilm: Encoder) -> None:
    for name, typed in hostile.KINDS.items():
        if name in NOTHING_KEPT:
            with pytest.raises(EmptyText):
                minilm.encode(typed)
            continue
        attention = minilm.encode(typed)
        assert attention.text.text == clean(typed), name
        assert len(attention.text) <= minilm.limit, name
        check_text(attention.text)


# ---- folders --------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tiny_folder: Folder, tmp_path: Path) -> Path:
    """A copy of a valid BERT folder, to be damaged."""
    return Path(shutil.copytree(tiny_folder("bert"), tmp_path / "model"))


def test_a_folder_opens_by_its_path(folder: Path) -> None:
    loaded = mha_viz.load(str(folder))
    assert loaded.name == str(folder)
    assert len(loaded.revision) == 12
    weights = load_file(folder / "model.safetensors")
    weights["embeddings.word_embeddings.weight"][0, 0] += 1
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert mha_viz.load(str(folder)).revision != loaded.revision


def test_a_folder_opens_by_a_path_of_pathlib(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = mha_viz.load(folder)
    assert loaded.name == str(folder)
    monkeypatch.chdir(folder.parent)
    assert mha_viz.load(Path("model")).name == str(folder)  # "model" alone would be one of the Hub
    assert load_one_stack(Path("model")).revision == loaded.revision
    with pytest.raises(UnknownModel, match="is not a model"):
        mha_viz.load(Path("toy"))


def test_a_path_object_may_lead_through_parents_and_hold_two_dots(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dotted = folder.rename(folder.with_name("model..v2"))
    (dotted.parent / "inside").mkdir()
    monkeypatch.chdir(dotted.parent / "inside")
    assert mha_viz.load(Path("../model..v2")).name == mha_viz.load(str(dotted)).name == str(dotted)


def test_a_snapshot_of_the_hub_is_named_by_its_commit(folder: Path, tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    (tmp_path / "snapshots").mkdir()
    snapshot = folder.rename(tmp_path / "snapshots" / commit)
    assert Encoder.from_folder(snapshot).revision == commit
    digest = Encoder.from_folder(snapshot.rename(tmp_path / "snapshots" / "final")).revision
    assert re.fullmatch("[0-9a-f]{12}", digest)  # no commit, so that two trainings are not mistaken for each other


def test_a_missing_weight_is_named(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["encoder.layer.1.attention.self.query.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelBroken, match=r"lacks 1 of its weights, encoder\.layer\.1\.attention\.self\.query\.weight"):
        Encoder.from_folder(folder)


def test_a_missing_pooler_is_no_loss(folder: Path) -> None:
    whole = Encoder.from_folder(folder).encode(SENTENCE).weights
    weights = {k: v for k, v in load_file(folder / "model.safetensors").items() if "pooler" not in k}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert np.array_equal(Encoder.from_folder(folder).encode(SENTENCE).weights, whole)


def _truncated(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def _of_another_size(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 128}), "utf-8")


def _not_finite(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["encoder.layer.0.attention.self.query.bias"][:] = float("nan")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def _without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def _tokenizer_of_nothing(folder: Path) -> None:
    (folder / "tokenizer.json").write_text('{"version": "1.0"}', "utf-8")


def _vocabulary_too_large(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    vocabulary = tokenizer["model"]["vocab"]
    tokenizer["model"]["vocab"] = {word: number + (5000 if number > 9 else 0) for word, number in vocabulary.items()}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")


@pytest.mark.parametrize(
    "damage",
    [_truncated, _of_another_size, _not_finite, _without_weights, _tokenizer_of_nothing, _vocabulary_too_large],
)
def test_a_damaged_folder_is_a_plain_message(damage: Callable[[Path], None], folder: Path) -> None:
    damage(folder)
    with pytest.raises((ModelBroken, ModelUnsupported)) as caught:
        Encoder.from_folder(folder)
    assert caught.value.remedy
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)


def test_a_token_without_a_row_is_said_to_be_one(folder: Path) -> None:
    _vocabulary_too_large(folder)
    with pytest.raises(ModelBroken, match="gives a token that its weights have no row for"):
        Encoder.from_folder(folder)


def test_a_model_with_one_type_of_token_reads_pairs(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"type_vocab_size": 1}), "utf-8")
    weights = load_file(folder / "model.safetensors")
    name = "embeddings.token_type_embeddings.weight"
    save_file(weights | {name: weights[name][:1].clone()}, folder / "model.safetensors", {"format": "pt"})
    assert Encoder.from_folder(folder).encode(SENTENCE, SECOND).text.tokens[-1].segment == 1


def test_half_precision_files_are_read_in_float32(folder: Path) -> None:
    weights = {k: v.half() for k, v in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    loaded = Encoder.from_folder(folder)
    assert loaded.encode(SENTENCE).weights.dtype == np.float32
    assert {p.dtype for p in loaded._model.parameters()} <= {torch.float32}


def test_an_encoder_decoder_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "t5", "is_encoder_decoder": True}), "utf-8")
    with pytest.raises(ModelUnsupported, match="t5"):
        opening.open_folder(folder, "t5")


def test_unknown_names_are_one_family_of_errors() -> None:
    with pytest.raises(UnknownModel) as caught:
        mha_viz.load("../../etc/passwd")
    assert isinstance(caught.value, MhaVizError)


# ---- sentences given as words ---------------------------------------------------------------------------------------


def test_the_columns_of_given_words(minilm: Encoder) -> None:
    read = minilm.read_words(["Café", "«", "unbelievably", "\U0001fae8"])  # the last is in no vocabulary
    assert read.text == "Café « unbelievably \U0001fae8"
    assert read.names == ("[CLS]", "cafe", "«", "un", "##bel", "##ie", "##va", "##bly", "[UNK]", "[SEP]")
    assert read.words == (None, 0, 1, 2, 2, 2, 2, 2, 3, None)
    begins = [7, 9, 12, 14, 16, 19]  # of the pieces of "unbelievably", and its end
    assert read.spans == ((0, 0), (0, 4), (5, 6), *pairwise(begins), (20, 21), (0, 0))
    assert read.in_vocabulary == (*[True] * 8, False, True)


@pytest.mark.parametrize("family", ["bert", "gpt2", "roberta", "albert"])
@settings(max_examples=25)
@given(forms=st.lists(st.text("aß7.", min_size=1, max_size=5), min_size=1, max_size=6))
def test_the_pieces_of_a_word_lie_in_it_in_order(family: str, forms: list[str], tiny: Tiny) -> None:
    read = tiny(family).read_words(forms)
    assert read.text == " ".join(forms)
    for number, form in enumerate(forms):
        begin = sum(len(before) + 1 for before in forms[:number])
        spans = [span for span, word in zip(read.spans, read.words, strict=True) if word == number]
        assert spans == sorted(spans)
        assert (spans[0][0], spans[-1][1]) == (begin, begin + len(form))
        assert all(end >= later for (_, end), (later, _) in pairwise(spans))  # no character between two is left out
    assert {span for span, word in zip(read.spans, read.words, strict=True) if word is None} <= {(0, 0)}


@pytest.mark.parametrize("n", [1, 2, 3, 15, 16, 17])
def test_softmax_of_rows_of_any_length(n: int) -> None:
    scores = torch.randn(3, 4, n) * 50
    scores[1, :, n // 2 :] = torch.finfo(torch.float32).min  # masked
    scores[2] += 1e6
    expected = torch.softmax(scores.double(), -1)
    capture._softmax_(scores)
    assert torch.allclose(scores.double(), expected, atol=1e-6)


# ---- the package ----------------------------------------------------------------------------------------------------


def test_load_is_found_on_first_use() -> None:
    assert mha_viz.load is loading.load
    assert not hasattr(mha_viz, "unload")


# ---- linear layers --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("packing")
def test_a_packed_layer_gives_its_weight_back() -> None:
    layer = torch.nn.Linear(7, 5)
    packed = linear.PackedLinear(layer.weight, layer.bias)
    x = torch.randn(2, 3, 7)
    assert torch.equal(packed.weight, layer.weight)
    assert torch.allclose(packed(x), layer(x), atol=1e-6)
    gelu = torch.nn.functional.gelu(layer(x))
    assert torch.allclose(linear.PackedLinear(layer.weight, layer.bias, gelu=True)(x), gelu, atol=1e-6)


@pytest.mark.usefixtures("packing")
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda encoder: pickle.loads(pickle.dumps(encoder))])
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_model_with_packed_layers_can_be_copied_and_pickled(
    family: str, copied: Callable[[Encoder], Encoder], tiny_folder: Callable[[str], Path]
) -> None:
    encoder = Encoder.from_folder(tiny_folder(family))
    assert any(isinstance(module, linear.PackedLinear) for module in encoder._model.modules())
    assert np.array_equal(copied(encoder).encode(SENTENCE).weights, encoder.encode(SENTENCE).weights)


@pytest.mark.usefixtures("packing")
def test_a_packed_weight_in_a_mapped_file_stays_readable(tmp_path: Path) -> None:
    save_file({"weight": torch.randn(1024, 1024)}, tmp_path / "mapped.safetensors")
    weight = load_file(tmp_path / "mapped.safetensors")["weight"]
    values = weight.clone()
    assert torch.equal(linear.PackedLinear(weight, None).weight, values)
    assert torch.equal(weight, values)


@pytest.mark.usefixtures("packing")
def test_only_whole_pages_of_a_packed_weight_are_paged_out(monkeypatch: pytest.MonkeyPatch) -> None:
    advised: list[list[int]] = []
    library = SimpleNamespace(madvise=lambda start, length, advice: advised.append([start.value, length.value, advice]))
    monkeypatch.setattr(linear.ctypes, "CDLL", lambda _: library)
    monkeypatch.setattr(linear.sys, "platform", "linux")
    weight = torch.randn(100, 1000)
    linear.PackedLinear(weight, None)
    linear.PackedLinear(torch.randn(3, 3), None)  # less than one page
    ((start, length, advice),) = advised
    end = weight.data_ptr() + weight.nbytes
    assert start % mmap.PAGESIZE == length % mmap.PAGESIZE == 0
    assert 0 <= start - weight.data_ptr() < mmap.PAGESIZE
    assert 0 <= end - (start + length) < mmap.PAGESIZE
    assert advice == 21  # MADV_PAGEOUT in Linux's uapi/asm-generic/mman-common.h


# ---- many texts ----------------------------------------------------------------------------------------------------

LONG_WORDS = {
    "a thousand words of ten thousand characters": ["ab " * 3_333] * 1_000,
    "a million words": ["a"] * 1_000_000,
    "one word of a million characters": ["a" * 1_000_000],
}


@pytest.mark.parametrize("name", LONG_WORDS)
def test_too_many_words_never_reach_the_tokenizer(name: str, minilm: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm._tokenizer, "_encode", lambda *_, **__: pytest.fail("tokenized"))
    words = LONG_WORDS[name]
    for ask in (minilm.read_words, minilm.encode_words, lambda w: minilm.trace("", words=w)):
        with pytest.raises(TextError, match="reads 512 tokens"):
            ask(words)


def test_no_more_than_the_first_characters_reach_the_tokenizer(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    bert = tiny("bert")
    encoded = bert._tokenizer._encode

    def counting(*typed: Any, **options: Any) -> Any:
        seen.extend(map(len, typed))
        return encoded(*typed, **options)

    monkeypatch.setattr(bert._tokenizer, "_encode", counting)
    typed = "word " * 20_000
    bert.encode(typed)
    bert.encode(typed, typed)
    bert.trace(typed)
    bert.tokenize(typed)
    assert seen == [CHARACTERS_PER_PIECE * 64] * 5


# ---- panics ---------------------------------------------------------------------------------------------------------

ENDLESS = "a" * 2000 + "b"


@pytest.fixture
def panicking(tmp_path: Path, tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model whose tokenizer makes its library panic on ENDLESS, as if it had passed the checks."""
    for path in tiny_folder("bert").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    content["pre_tokenizer"] = {
        "type": "Split",
        "pattern": {"Regex": "(a+)+$|(a|aa)+$"},
        "behavior": "Isolated",
        "invert": False,
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    for name in ("check_tokenizer", "check_steps"):
        monkeypatch.setattr(pipeline, name, lambda *_: None)
    return tmp_path


def test_a_panic_is_a_plain_error(panicking: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = Encoder.from_folder(panicking)
    for ask in (lambda: model.encode(ENDLESS), lambda: model.trace(ENDLESS), lambda: model.read_words([ENDLESS])):
        with pytest.raises(ModelBroken, match="crashed the library"):
            ask()
    assert "panicked" in capfd.readouterr().err, "it was no real panic"
    assert model.encode("the animal").layers == model.layers


def test_a_panic_while_loading_is_a_plain_error(panicking: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mha_viz.models.reading.encoder._FIRST_SENTENCE", ENDLESS)
    with pytest.raises(ModelBroken, match="crashed the library"):
        Encoder.from_folder(panicking)


def test_a_panic_is_one_line_of_the_command(
    panicking: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attention", ENDLESS, "--model", str(panicking), "--out", str(tmp_path / "x.npz")]) == 5
    assert capsys.readouterr().err.startswith("mha-viz: The tokenizer")


def test_a_panic_reaches_the_page_as_a_plain_error(panicking: Path) -> None:
    with pytest.raises(ModelBroken, match="crashed the library"):
        verbs.read(Models(), Request(str(panicking), ENDLESS))
