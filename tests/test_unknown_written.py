"""A generated target that contains the unknown token: it is an unknown word, not a special token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mha_viz.models.reading.encoder_decoder import EncoderDecoder
from tests import tiny_encoder_decoders
from tests.oracles import SENTENCE, check_text


@pytest.mark.parametrize("family", ["t5", "mbart", "marian"])
def test_a_written_unknown_token_is_a_word(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = EncoderDecoder.from_folder(tiny_encoder_decoders.build(family, tmp_path))
    assert isinstance(model, EncoderDecoder)
    vocabulary: Any = model._target_vocabulary
    words = vocabulary("the animal", add_special_tokens=False).input_ids
    ids = [*words, vocabulary.unk_token_id, vocabulary.eos_token_id, *words]
    monkeypatch.setattr("mha_viz.models.reading.encoder_decoder.generate_greedily", lambda *_: ids)
    target = model.encode(SENTENCE).queries
    unknown = [token for token in target.tokens if not token.known]
    assert [token.special for token in unknown] == [False] * ids.count(vocabulary.unk_token_id)
    assert {target.text[token.start : token.end].strip() for token in unknown} == {vocabulary.unk_token}
    specials = [at for at, token in enumerate(target.tokens) if token.special]
    assert len(specials) == len(target.tokens) - 2 * len(words) - 1, "the beginning and the end alone are special"
    check_text(target)
