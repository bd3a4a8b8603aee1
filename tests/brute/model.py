"""A model as transformers runs it."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Reading(NamedTuple):
    attention: Any  # [head of all layers, query, key]
    words: list[int | None]  # of each piece
    ends: list[str]  # of each piece: "cls", "sep" or ""
    marks: list[bool]  # of each piece: punctuation only
    spans: list[tuple[int, int]]  # of each piece, in its word or text


class Model:
    """A model from a folder, one sentence at a time; with a seed, the same architecture with random weights."""

    def __init__(self, folder: Path, seed: int | None = None) -> None:
        import torch  # here, so that the other measures can be computed without it
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
        if seed is not None:
            torch.manual_seed(seed)
            self.model = AutoModel.from_config(self.model.config, attn_implementation="eager").eval()
        config = self.model.config
        self.heads_a_layer = config.num_attention_heads
        self.heads = config.num_hidden_layers * config.num_attention_heads
        self.limit = min(config.max_position_embeddings, self.tokenizer.model_max_length)

        self.special = self.tokenizer.num_special_tokens_to_add()

    def size(self, forms: Sequence[str]) -> int:
        """Count the tokens of a list of words, without special ones."""
        encoding = self.tokenizer(list(forms), is_split_into_words=True)
        return sum(word is not None for word in encoding.word_ids())

    def words(self, forms: Sequence[str]) -> Reading | None:
        """Read words; return None if they are too long for the model or a word has no token."""
        encoding = self.tokenizer(list(forms), is_split_into_words=True, return_offsets_mapping=True)
        words = encoding.word_ids()
        if len(words) > self.limit or set(words) - {None} != set(range(len(forms))):
            return None
        texts = [
            "" if word is None else forms[word][start:end]
            for word, (start, end) in zip(words, encoding["offset_mapping"], strict=True)
        ]
        return self._reading(encoding, words, texts)

    def text(self, text: str) -> Reading | None:
        encoding = self.tokenizer(text, return_offsets_mapping=True)
        if len(encoding["input_ids"]) > self.limit:
            return None
        return self._reading(
            encoding, encoding.word_ids(), [text[start:end] for start, end in encoding["offset_mapping"]]
        )

    def _reading(self, encoding: Any, words: list[int | None], texts: list[str]) -> Reading:
        import torch

        spans = encoding.pop("offset_mapping")
        with torch.no_grad():
            out = self.model(**{k: torch.tensor([v]) for k, v in encoding.items()}, output_attentions=True)
        attention = np.concatenate([layer[0].double().numpy() for layer in out.attentions])
        ends = ["" if w is not None else "cls" if i == 0 else "sep" for i, w in enumerate(words)]
        marks = [bool(t) and all(unicodedata.category(c)[0] == "P" for c in t) for t in texts]
        return Reading(attention, words, ends, marks, [tuple(span) for span in spans])
