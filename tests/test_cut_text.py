"""Text that is longer than the model's limit: what is cut, and the warning about it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from transformers import BigBirdConfig, BigBirdModel, GPT2Config, GPT2Model

import mha_viz as mv
from mha_viz.figures.layout.packet import build_packet
from mha_viz.models.reading.properties import compute_piece_limit
from mha_viz.models.reading.tokenizer import CHARACTERS_PER_PIECE, TextPieces
from mha_viz.text import Cut
from tests import tiny_models

if TYPE_CHECKING:
    from mha_viz.models.reading.encoder import Encoder

Tiny = Callable[[str], "Encoder"]


@pytest.mark.parametrize(
    ("positions", "heads", "megabytes", "limit"),
    [
        (512, 72, "", 512),  # the model's own
        (8192, 144, "", 1024),  # no drawing shows more
        (8192, 1024, "", 391),  # √(600 · 2²⁰ / (4 · 1024))
        (1024, 144, "100", 426),
        (None, 144, "", 1024),  # a model without positions of its own
    ],
)
def test_the_limit_of_a_model_is_bounded_by_the_bytes_of_its_weights(
    positions: int | None, heads: int, megabytes: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MHA_VIZ_WEIGHTS_MB", megabytes)
    config = SimpleNamespace(max_position_embeddings=positions)
    model = SimpleNamespace(config=config, named_modules=lambda: iter(()))
    assert compute_piece_limit(model, SimpleNamespace(model_max_length=10**9), heads) == limit


@pytest.mark.parametrize(("kind", "limit"), [("block_sparse", (5 + 2 * 1) * 4), ("original_full", 64)])
def test_a_sparse_bigbird_is_cut_where_its_attention_is_no_longer_full(tmp_path: Path, kind: str, limit: int) -> None:
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    blocks = {"attention_type": kind, "block_size": 4, "num_random_blocks": 1, "max_position_embeddings": 64}
    model = BigBirdModel(BigBirdConfig(**sizes, **blocks, vocab_size=400))
    with pytest.warns(mv.errors.TextCutWarning, match=f"reads at most {limit} tokens"):
        attention = mv.load(str(tiny_models.save_model(model, tmp_path / "model"))).encode("dog " * 100)
    assert attention.weights.shape[-1] == limit


def test_a_gpt2_reads_a_thousand_pieces(tmp_path: Path) -> None:
    config = GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=1024, vocab_size=400)  # type: ignore[call-arg]
    folder = tiny_models.save_model(GPT2Model(config), tmp_path / "gpt2")
    with pytest.warns(mv.errors.TextCutWarning, match="reads at most 1,024 tokens"):
        attention = mv.load(str(folder)).encode("dog " * 3000)
    assert attention.weights.shape == (2, 4, 1024, 1024)
    assert len(build_packet(attention, [mv.Head(1, 1)])) < 1_500_000


def test_a_text_that_just_fits_is_whole(minilm: Encoder) -> None:
    assert minilm.tokenize("cat " * 510).cut is None
    cut = minilm.tokenize("cat " * 511)
    assert cut.cut == Cut(513, 512, (510 * 4 - 1, 0))
    assert len(cut) == 512
    assert cut.tokens[-1].text == "[SEP]"


def test_the_longer_text_gives_first(minilm: Encoder) -> None:
    assert minilm.tokenize("cat " * 600, "dog dog").cut == Cut(605, 512, (507 * 4 - 1, 7))
    assert minilm.tokenize("dog dog", "cat " * 600).cut == Cut(605, 512, (7, 507 * 4 - 1))


def test_a_megabyte_never_reaches_the_tokenizer(minilm: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[int] = []
    backend = minilm._tokenizer._backend

    class Counting:
        def encode(self, *typed: str) -> Any:
            reached.extend(map(len, typed))
            return backend.encode(*typed)

    monkeypatch.setattr(minilm._tokenizer, "_backend", Counting())
    text = minilm.tokenize("attention " * 104_858, "b " * 600_000)
    assert reached == [CHARACTERS_PER_PIECE * 512] * 2
    assert text.cut is not None
    assert text.cut.more
    assert len(text) == 512


def test_one_endless_word_says_where_reading_stopped(minilm: Encoder) -> None:
    cut = minilm.tokenize("a" * 1_000_000).cut
    assert cut == Cut(3, 512, (CHARACTERS_PER_PIECE * 512, 0), more=True)


def test_roberta_has_two_positions_less_than_its_table(tiny: Tiny) -> None:
    assert tiny("roberta")._model.config.max_position_embeddings == 66
    assert len(tiny("roberta").encode("a " * 200).text) == tiny("roberta").limit == 64


# ---- the warning ----------------------------------------------------------------------------------------------------


def test_a_cut_text_warns_where_it_was_given_and_names_what_is_kept_and_cut(minilm: Encoder) -> None:
    with pytest.warns(mv.errors.TextCutWarning) as caught:
        minilm.encode("cat " * 509 + "dog sat here ")
    assert [(warning.filename, str(warning.message)) for warning in caught] == [
        (
            __file__,
            "minilm reads at most 512 tokens, and the text has 514. Of the text, the first 2,039 of 2,049 characters "
            "are kept; the rest is cut, from “sat here” on.",
        )
    ]


def test_of_a_pair_the_warning_names_the_text_that_was_cut(minilm: Encoder) -> None:
    with pytest.warns(mv.errors.TextCutWarning) as caught:
        minilm.encode("dog dog ", "cat " * 600)
    (warning,) = caught
    assert "has 605" in str(warning.message)
    assert "Of the second text, the first 2,027 of 2,400 characters are kept" in str(warning.message)
    assert "Of the text" not in str(warning.message)  # only a space is missing there


def test_a_text_that_is_too_long_for_the_tokenizer_is_said_to_be_very_long() -> None:
    read = TextPieces("a" * 30, "", [], [], [], Cut(3, 512, (20, 0), more=True))
    assert read.describe_cut("m") == (
        "m reads at most 512 tokens, and the text is very long. Of the text, the first 20 of 30 characters are kept; "
        "the rest is cut, from “aaaaaaaaaa” on."
    )


WAYS: dict[str, Callable[[Encoder, str], object]] = {
    "encode_many": lambda encoder, text: list(encoder.encode_many(["the dog", text])),
    "through": lambda encoder, text: encoder.through(text),
    "trace": lambda encoder, text: encoder.trace(text),
    "norm_weighted": lambda encoder, text: mv.quantities.norm_weighted(encoder, text),
    "without": lambda encoder, text: mv.ablate(encoder, ["L0H0"], text),
}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_reads_a_text_warns(way: str, tiny: Tiny) -> None:
    with pytest.warns(mv.errors.TextCutWarning, match="reads at most 64 tokens, and the text has 202") as caught:
        WAYS[way](tiny("bert"), "a " * 200)
    assert {warning.filename for warning in caught} == {__file__}


def test_what_fits_warns_of_nothing(minilm: Encoder) -> None:
    with warnings.catch_warnings(action="error"):
        minilm.encode("cat " * 510)
        minilm.tokenize("cat " * 511)  # asks what would be cut
