"""Compare the attention weights of every family with those of transformers' own eager attention.

Both use the same random model weights. The differences are measured, not the time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers import AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer

import mha_viz as mv
from benchmarks.results import Row, Sample, Target, write
from mha_viz.attention import Weights
from mha_viz.models.families import FAMILIES
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.encoder_decoder import EncoderDecoder
from mha_viz.request import PARTS
from tests import tiny_encoder_decoders, tiny_models
from tests.oracles import EQUAL, SECOND, SENTENCE, collect_attentions

TARGET = "Das Tier war zu müde, café."


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/families.json``; ``quick`` changes nothing, because all of it takes seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder, encoder_decoders = Path(name), sorted(tiny_encoder_decoders.ENCODER_DECODERS)
        rows = [_make_row(family, max(_compare_one_stack(family, folder / family))) for family in sorted(FAMILIES)]
        rows += [
            _make_row(f"{family}: encoder, decoder, cross", max(_compare_two_stacks(family, folder / family)))
            for family in encoder_decoders
        ]
    engine = f"torch {torch.__version__}, transformers {transformers.__version__}"
    write(results, "families", "The largest deviation of a weight from transformers", "", rows, engine)


def _make_row(name: str, deviation: float) -> Row:
    return Row(name, Sample((deviation,)), "", target=Target("below", EQUAL))


def _compare_one_stack(family: str, folder: Path) -> Iterator[float]:
    encoder = Encoder.from_folder(tiny_models.build(family, folder))
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for texts in ((SENTENCE,), (SENTENCE, SECOND))[: 1 + (family in tiny_models.WITH_PAIRS)]:
        inputs = tokenizer(*texts, return_tensors="pt", truncation="longest_first", max_length=64)
        with torch.no_grad():
            theirs = torch.cat(collect_attentions(model, model(**inputs, output_attentions=True)))
        yield _compute_difference(encoder.encode(*texts).weights, theirs)


def _compare_two_stacks(family: str, folder: Path) -> Iterator[float]:
    folder.mkdir()
    path = tiny_encoder_decoders.build(family, folder)
    encoder = mv.load(str(path))
    assert isinstance(encoder, EncoderDecoder)
    model = AutoModelForSeq2SeqLM.from_pretrained(path, attn_implementation="eager").eval()
    source, target = tiny_encoder_decoders.ids(encoder, SENTENCE, TARGET)
    with torch.no_grad():
        theirs = model(input_ids=source, decoder_input_ids=target, output_attentions=True)
    for part in PARTS:
        layers = torch.cat(getattr(theirs, f"{part}_attentions"))
        yield _compute_difference(encoder.encode(SENTENCE, target=TARGET, part=part).weights, layers)


def _compute_difference(ours: Weights, theirs: torch.Tensor) -> float:
    return float(np.abs(ours - theirs.numpy()).max())
