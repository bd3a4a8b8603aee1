"""Encoder–decoders compared with plain transformers, eager, on the same weights; typed and generated targets; files and
recipes."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

import mha_viz as mv
from mha_viz.analysis.metrics import measure_all
from mha_viz.attention import Attention
from mha_viz.errors import (
    EmptyText,
    MhaVizError,
    ModelBroken,
    ModelUnsupported,
    SettingError,
    TextCutWarning,
    TextError,
)
from mha_viz.figures.layout import Size, figure_code
from mha_viz.figures.layout.view import View
from mha_viz.models.families import ENCODER_DECODERS
from mha_viz.models.getting import catalog
from mha_viz.models.getting.folder import inspect_folder
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.encoder_decoder import EncoderDecoder
from mha_viz.models.reading.generation import MAX_TARGET_TOKENS
from mha_viz.request import PARTS
from tests import hostile, lanes, tiny_encoder_decoders
from tests.oracles import EQUAL, SENTENCE, check_text
from tests.tiny_encoder_decoders import ENCODER_HEADS, ENCODER_LAYERS, ids
from tests.tiny_models import HEADS, LAYERS

Opened = Callable[[str], EncoderDecoder]
TARGET = "Das Tier war zu müde, café."
families = pytest.mark.parametrize("family", sorted(ENCODER_DECODERS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    root = tmp_path_factory.mktemp("pairs")
    return cache(lambda family: tiny_encoder_decoders.build(family, _new(root / family)))


@pytest.fixture(scope="module")
def opened(folder: Callable[[str], Path]) -> Opened:
    def open_one(family: str) -> EncoderDecoder:
        encoder = mv.load(str(folder(family)))
        assert isinstance(encoder, EncoderDecoder)
        return encoder

    return cache(open_one)


@pytest.fixture(scope="module")
def plain(folder: Callable[[str], Path]) -> Callable[[str], Any]:
    """The same weights in transformers' own model."""
    kind: Any = AutoModelForSeq2SeqLM
    return cache(lambda family: kind.from_pretrained(folder(family), attn_implementation="eager").eval())


@pytest.fixture(autouse=True)
def short_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generated target has few pieces; a model with random weights seldom ends one."""
    monkeypatch.setattr("mha_viz.models.reading.encoder_decoder.MAX_TARGET_TOKENS", 12)


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def encoder_heads(family: str) -> int:
    """The number of heads in the encoder; T5 has the same number in both stacks."""
    return HEADS if family in ("mt5", "t5") else ENCODER_HEADS


# ---- The numbers -----------------------------------------------------------------------------------------


@families
def test_every_part_equals_transformers(family: str, opened: Opened, plain: Callable[[str], Any]) -> None:
    encoder = opened(family)
    source, target = ids(encoder, SENTENCE, TARGET)
    with torch.no_grad():
        theirs = plain(family)(input_ids=source, decoder_input_ids=target, output_attentions=True)
    for part in PARTS:
        expected = torch.cat(getattr(theirs, f"{part}_attentions")).numpy()
        ours = encoder.encode(SENTENCE, target=TARGET, part=part)
        layers, heads = (ENCODER_LAYERS, encoder_heads(family)) if part == "encoder" else (LAYERS, HEADS)
        assert ours.weights.shape[:2] == expected.shape[:2] == (layers, heads)
        assert np.abs(ours.weights - expected).max() <= EQUAL
        distances = np.abs(expected.reshape(layers * heads, 1, -1) - expected.reshape(1, layers * heads, -1)).max(2)
        assert distances[~np.eye(len(distances), dtype=bool)].min() > 100 * EQUAL  # heads are told apart


@families
def test_a_target_is_written_as_transformers_writes_it(
    family: str, opened: Opened, plain: Callable[[str], Any]
) -> None:
    encoder, model = opened(family), plain(family)
    source = torch.tensor([encoder.vocabulary(SENTENCE).input_ids])
    settings = {"do_sample": False, "num_beams": 1, "max_new_tokens": 12, "max_length": None}
    settings |= {"forced_eos_token_id": None, "use_cache": False}  # its cache takes both stacks to be as deep
    with torch.no_grad():
        theirs = model.generate(input_ids=source, **settings)[0].tolist()
    ends = [at for at, token in enumerate(theirs) if at and token in encoder._generation.end_tokens]
    written = encoder._make_target(encoder._read(SENTENCE), "").ids
    assert written == theirs[: ends[0] if ends else None]


def test_a_written_target_is_bounded_and_the_same_each_time(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = opened("t5")
    short = encoder._make_target(encoder._read(SENTENCE), "").ids
    monkeypatch.setattr("mha_viz.models.reading.encoder_decoder.MAX_TARGET_TOKENS", MAX_TARGET_TOKENS)
    written = encoder._make_target(encoder._read(SENTENCE), "").ids
    assert written[: len(short)] == short
    assert len(written) <= MAX_TARGET_TOKENS + 1


@families
def test_a_reading_of_a_written_target_equals_transformers(
    family: str, opened: Opened, plain: Callable[[str], Any]
) -> None:
    encoder = opened(family)
    written = encoder.encode(SENTENCE)
    assert written.made == ("typed", "cross-attention", "target generated")
    check_text(written.queries)
    source, target = encoder._read(SENTENCE).ids, encoder._make_target(encoder._read(SENTENCE), "").ids
    with torch.no_grad():
        theirs = plain(family)(
            input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target]), output_attentions=True
        )
    assert np.abs(written.weights - torch.cat(theirs.cross_attentions).numpy()).max() <= EQUAL
    typed = encoder.encode(SENTENCE, target=written.queries.text)
    assert typed.made == ("typed", "cross-attention")
    assert written.key != typed.key


# ---- The properties of a reading -------------------------------------------------------------------------


@families
def test_rows_are_of_the_target_and_columns_of_the_source(family: str, opened: Opened) -> None:
    encoder = opened(family)
    cross = encoder.encode(SENTENCE, target=TARGET)
    assert cross.is_cross
    words = cross.by_words()
    assert [t.text for t in words.queries.tokens if not t.special] == [
        *("Das", "Tier", "war", "zu", "müde", ",", "café", ".")
    ]
    typed = [t.text for t in words.keys.tokens if not t.special]
    assert (typed[:3], typed[-1]) == (["The", "animal", "didn't"], ".")
    assert words.queries.tokens[0].special
    assert not cross.queries.tokens[-1].special  # the token that ends a target is predicted, and never read
    assert cross.keys.tokens[-1].special
    for text in (cross.queries, cross.keys):
        check_text(text)
    assert cross.weights.sum(axis=3) == pytest.approx(1, abs=1e-5)


@families
def test_no_target_token_sees_a_later_one(family: str, opened: Opened) -> None:
    decoder = opened(family).encode(SENTENCE, target=TARGET, part="decoder")
    assert not decoder.is_cross
    assert not np.triu(decoder.weights, 1).any()
    assert np.triu(opened(family).encode(SENTENCE, part="encoder").weights, 1).any()


def test_the_key_says_part_source_and_target(opened: Opened) -> None:
    encoder = opened("t5")
    asked: list[dict[str, Any]] = [
        {"text": SENTENCE, "target": TARGET, "part": part} for part in ("encoder", "decoder", "cross")
    ]
    asked += [{"text": "It slept.", "target": TARGET, "part": part} for part in ("encoder", "decoder", "cross")]
    asked += [{"text": SENTENCE, "target": "Es schlief.", "part": part} for part in ("decoder", "cross")]
    asked += [{"text": SENTENCE, "part": part} for part in ("decoder", "cross")]
    readings = [encoder.encode(**each) for each in asked]
    assert len({reading.key for reading in readings}) == len(readings)
    assert [reading.key for reading in readings] == [encoder.encode(**each).key for each in asked]
    one = encoder.encode(SENTENCE, target=TARGET, part="encoder")
    assert one.key == encoder.encode(SENTENCE, target="Es schlief.", part="encoder").key  # which reads no target


@pytest.mark.parametrize("part", PARTS)
def test_a_target_that_is_no_text_is_refused(part: str, opened: Opened) -> None:
    with pytest.raises(SettingError, match="5 is int, not a text"):
        opened("t5").encode(SENTENCE, target=5, part=part)  # type: ignore[arg-type]


@pytest.mark.parametrize(("part", "suffix"), lanes.pair_values(PARTS, [".npz", ".safetensors"]))
def test_it_is_saved_and_opened(part: str, suffix: str, opened: Opened, tmp_path: Path) -> None:
    reading = opened("bart").encode(SENTENCE, target="" if part == "cross" else TARGET, part=part)
    again = mv.load_attention(reading.save(tmp_path / f"reading{suffix}"))
    assert (again.key, again.made, again.is_cross) == (reading.key, reading.made, part == "cross")
    np.testing.assert_array_equal(again.weights, reading.weights)


def test_what_needs_a_diagonal_is_not_defined_between_two_texts(opened: Opened) -> None:
    cross = measure_all(opened("t5").encode(SENTENCE, target=TARGET))
    encoder = measure_all(opened("t5").encode(SENTENCE, part="encoder"))
    for name in ("previous", "following", "same"):
        assert np.isnan(cross[name]).all()
        assert np.isfinite(encoder[name]).all()
    assert np.isfinite(cross["entropy"]).all()
    assert np.isfinite(cross["sep"]).all()


QUOTING = "Say “now” and “then”,\nplease."


@pytest.mark.parametrize(
    ("part", "target", "source"),
    lanes.some(
        [*product(PARTS, (TARGET, ""), (SENTENCE, QUOTING))],
        ("encoder", "", SENTENCE),
        ("decoder", TARGET, QUOTING),
        ("cross", TARGET, SENTENCE),
        ("cross", "", QUOTING),
    ),
)
def test_the_recipe_makes_the_same_bytes(
    part: str, target: str, source: str, opened: Opened, folder: Callable[[str], Path], tmp_path: Path
) -> None:
    reading = opened("bart").encode(source, target=target, part=part).by_words()
    file = tmp_path / "figure.svg"
    lines = figure_code.write_head_code(reading, "heatmap", [mv.Head(1, 1)], View(), Size(), str(file))
    assert f"part={part!r}" in lines
    assert ("target=" in lines) == (part != "encoder" and bool(target))
    assert ".by_words()" in lines
    exec(compile(lines, "recipe", "exec"), {})
    assert file.read_bytes() == reading.heatmap(1, 1).to_bytes(".svg")


def test_a_caption_names_both_texts_and_the_part(opened: Opened) -> None:
    cross = opened("t5").encode(SENTENCE, target=TARGET).heatmap(1, 2).caption
    assert f"reading “{TARGET}” and attending to “{SENTENCE}”, cross-attention" in cross
    decoder = opened("t5").encode(SENTENCE, target=TARGET, part="decoder").heatmap(1, 2).caption
    assert f"reading “{TARGET}”, decoder self-attention after the source “{SENTENCE}”" in decoder
    assert "target generated" in opened("t5").encode(SENTENCE).grid().caption


def test_rollout_is_of_one_text(opened: Opened) -> None:
    assert mv.quantities.rollout(opened("t5").encode(SENTENCE, part="encoder")).quantity == "rollout"
    with pytest.raises(MhaVizError):
        mv.quantities.rollout(opened("t5").encode(SENTENCE, target=TARGET))
    with pytest.raises(MhaVizError, match="also reads the source"):
        mv.quantities.rollout(opened("t5").encode(SENTENCE, target=TARGET, part="decoder"))


@families
def test_special_tokens_that_are_typed_are_read(family: str, opened: Opened) -> None:
    """What the tokenizer adds at the end of a target is not read; typed special tokens are."""
    encoder = opened(family)
    ending = encoder._target_vocabulary.eos_token
    plain = encoder.encode(SENTENCE, target=TARGET).queries.tokens
    typed = encoder.encode(SENTENCE, target=f"{TARGET} {ending}").queries.tokens
    assert [token.text for token in plain if token.text == ending and token.word is None][1:] == []
    assert typed[-1].text == ending
    assert len(typed) > len(plain)


# ---- Errors that users can cause ---------------------------------------------------------------------------


def test_bad_input_is_told_in_words(opened: Opened) -> None:
    encoder = opened("t5")
    for ask, error, message in (
        (lambda: encoder.encode("  "), EmptyText, "Nothing was typed"),
        (lambda: encoder.encode(SENTENCE, "A second."), TextError, "reads one text at a time"),
        (lambda: encoder.encode(SENTENCE, part="both"), SettingError, "encoder, decoder, cross"),
        (lambda: encoder.encode(SENTENCE, target=TARGET * 20), TextError, "target is longer than .* 64 tokens"),
    ):
        with pytest.raises(error, match=message):
            ask()


def test_a_long_source_is_cut_and_the_cut_is_told(opened: Opened) -> None:
    with pytest.warns(TextCutWarning, match="reads at most 64 tokens"):
        cross = opened("t5").encode(SENTENCE * 20, target=TARGET)
    assert len(cross.keys) == 64
    assert cross.keys.cut
    assert "…" not in cross.heatmap(0, 0).caption


def test_a_target_of_exactly_the_limit_is_read(opened: Opened) -> None:
    encoder = opened("t5")
    words = "zu " * 80
    fits = next(n for n in range(80, 0, -1) if len(encoder._target_vocabulary(words[: 3 * n]).input_ids) == 64)
    assert len(encoder.encode(SENTENCE, target=words[: 3 * fits]).queries) == 64  # <pad> in place of </s>


@pytest.mark.parametrize("family", ["bart", "t5", "marian"])
@pytest.mark.filterwarnings("ignore::mha_viz.errors.TextCutWarning")
def test_hostile_sources_and_targets_give_attention_or_a_plain_message(family: str, opened: Opened) -> None:
    encoder = opened(family)
    for typed in hostile.KINDS.values():
        for source, target in ((typed, TARGET), (SENTENCE, typed)):
            try:
                reading = encoder.encode(source, target=target)
            except TextError:
                continue
            check_text(reading.queries)
            check_text(reading.keys)


@pytest.mark.parametrize(
    "ask",
    [
        lambda encoder: encoder.encode_words(["a", "b"]),
        lambda encoder: list(encoder.encode_many([SENTENCE])),
        lambda encoder: encoder.trace(SENTENCE),
        lambda encoder: encoder.states(SENTENCE),
        lambda encoder: encoder.untrained(),
        lambda encoder: mv.quantities.norm_weighted(encoder, SENTENCE),
        lambda encoder: mv.quantities.gradient_weighted(encoder, SENTENCE, other="It slept."),
        lambda encoder: mv.quantities.gradient_weighted(encoder, SENTENCE),
        lambda encoder: mv.ablate(encoder, ["L0H0"], SENTENCE),
        lambda encoder: mv.find_induction_heads(encoder),
        lambda encoder: mv.minimal_pairs(encoder, "toy-pairs"),
    ],
)
@pytest.mark.parametrize("family", ["bart", "t5"])
def test_what_needs_one_stack_says_so(family: str, ask: Callable[[Encoder], Any], opened: Opened) -> None:
    with pytest.raises(ModelUnsupported, match=r"is an encoder–decoder|not a causal model"):
        ask(opened(family))


def test_a_model_of_one_stack_reads_no_target(minilm: Encoder) -> None:
    for given in ({"target": TARGET}, {"part": "encoder"}):
        with pytest.raises(SettingError, match="one stack of layers and reads no target"):
            minilm.encode(SENTENCE, **given)


# ---- Files -----------------------------------------------------------------------------------------------


def _changed(original: Path, to: Path, file: str, **entries: Any) -> Path:
    """A copy of a model's folder with changed settings in one file; None removes an entry."""
    shutil.copytree(original, to)
    for name in (file, "config.json"):
        held = json.loads((to / name).read_text("utf-8")) | entries
        (to / name).write_text(json.dumps({k: v for k, v in held.items() if v is not None}), "utf-8")
    return to


@families
def test_the_folder_says_what_can_be_read(family: str, folder: Callable[[str], Path]) -> None:
    assert inspect_folder(folder(family)).parts == PARTS
    assert catalog.resolve(str(folder(family))).kind == "folder"


def test_without_a_token_that_a_target_begins_with_only_the_encoder_is_read(
    folder: Callable[[str], Path], tmp_path: Path
) -> None:
    bare = _changed(folder("mbart"), tmp_path / "bare", "generation_config.json", decoder_start_token_id=None)
    encoder = mv.load(str(bare))
    assert encoder.encode(SENTENCE, part="encoder").layers == ENCODER_LAYERS
    for target in ("", TARGET):
        with pytest.raises(ModelUnsupported, match="no token that a target begins with"):
            encoder.encode(SENTENCE, target=target)


def test_a_model_that_ends_at_once_writes_nothing(folder: Callable[[str], Path], tmp_path: Path) -> None:
    vocabulary = list(range(400))
    ends = _changed(folder("t5"), tmp_path / "ends", "generation_config.json", eos_token_id=vocabulary)
    with pytest.raises(EmptyText, match="ends the target before its first word"):
        mv.load(str(ends)).encode(SENTENCE)


def test_a_config_that_describes_more_than_the_weights_is_refused(
    folder: Callable[[str], Path], tmp_path: Path
) -> None:
    large = _changed(folder("bart"), tmp_path / "large", "config.json", d_model=4096, encoder_layers=96)
    with pytest.raises(ModelBroken, match="describes about"):
        mv.load(str(large))


def test_marians_pieces_are_those_of_its_own_library(opened: Opened, folder: Callable[[str], Path]) -> None:
    library = importlib.import_module("sentencepiece")  # which has no types
    encoder = opened("marian")
    numbers = json.loads((folder("marian") / "vocab.json").read_text("utf-8"))
    english, german = (SENTENCE, "  two   blanks ", "The animal didn't", "動物"), ("Das Tier", " die  Straße ", "müde.")
    sides = ("source.spm", encoder.vocabulary, english), ("target.spm", encoder._target_vocabulary, german)
    for file, tokenizer, texts in sides:
        theirs = library.SentencePieceProcessor(model_file=str(folder("marian") / file))
        for text in texts:
            expected = [numbers.get(piece, numbers["<unk>"]) for piece in theirs.encode(text, out_type=str)]
            assert tokenizer(text).input_ids == [*expected, numbers["</s>"]], text


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("vocab.json", b"[]"),
        ("vocab.json", b'{"</s>": 0, "<unk>": 5, "<pad>": 1}'),
        ("source.spm", b"\x0a\xff\xff"),
        ("target.spm", b""),
    ],
)
def test_damaged_files_of_marian_are_told_in_words(
    file: str, content: bytes, folder: Callable[[str], Path], tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(folder("marian"), broken)
    (broken / file).write_bytes(content)
    with pytest.raises((ModelBroken, ModelUnsupported), match=r"do not fit together|in an unknown format"):
        mv.load(str(broken))


def test_a_sentencepiece_model_of_another_kind_is_refused(folder: Callable[[str], Path], tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(folder("marian"), other)
    raw = (other / "source.spm").read_bytes()
    (other / "source.spm").write_bytes(raw.replace(b"\x12\x02\x18\x01", b"\x12\x02\x18\x02"))
    with pytest.raises(ModelUnsupported, match="pieces have no probabilities"):
        mv.load(str(other))


def test_a_reading_from_transformers_own_tensors_is_the_same(opened: Opened, plain: Callable[[str], Any]) -> None:
    """What a notebook that has the model gets with from_tensors."""
    encoder = opened("t5")
    source, target = ids(encoder, SENTENCE, TARGET)
    with torch.no_grad():
        theirs = plain("t5")(input_ids=source, decoder_input_ids=target, output_attentions=True)
    names = [encoder.vocabulary.convert_ids_to_tokens(each[0].tolist()) for each in (target, source)]
    other = Attention.from_tensors(theirs.cross_attentions, *names)
    ours = encoder.encode(SENTENCE, target=TARGET)
    np.testing.assert_allclose(other.weights, ours.weights, atol=EQUAL)
    assert len(other.keys) == len(ours.keys)


@pytest.mark.parametrize("bound", ["MAX_ADDED", "MAX_ADDED_CHARACTERS"])
def test_codes_of_languages_are_bounded(
    bound: str, folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = tmp_path / "many"
    shutil.copytree(folder("marian"), many)
    numbers = json.loads((many / "vocab.json").read_text("utf-8"))
    numbers |= {f">>{code}<<": len(numbers) + code for code in range(2)}
    (many / "vocab.json").write_text(json.dumps(numbers), "utf-8")
    monkeypatch.setattr(f"mha_viz.models.reading.marian.{bound}", 1)
    with pytest.raises(ModelUnsupported, match="more codes than there are languages"):
        mv.load(str(many))
