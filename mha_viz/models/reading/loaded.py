"""What a model with one stack of layers and one with two have in common: files, tokenizer, device, and ``encode``."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from mha_viz import process
from mha_viz.attention import Attention
from mha_viz.errors import MhaVizError, ModelBroken, ModelUnsupported, TextCutWarning, warn
from mha_viz.heads import every_layer
from mha_viz.model_names import ModelName, quote_model, short_name
from mha_viz.models.families import cannot_be_opened, is_causal
from mha_viz.models.getting import catalog
from mha_viz.models.getting.folder import look_at
from mha_viz.models.reading.properties import (
    DType,
    own_or_decoder_s,
    piece_limit,
    torch_device,
    torch_dtype,
    weights_digest,
)
from mha_viz.models.reading.tokenizer import TextPieces, Tokenizer, panics_in_words
from mha_viz.process import lacks_memory
from mha_viz.quotes import MOST_QUOTED
from mha_viz.request import DTYPES, in_dtype
from mha_viz.text import TokenizedText

__all__ = ["LoadedModel"]

_log = logging.getLogger(__name__)


class LoadedModel(ABC):
    """One model with its tokenizer. It does not change after loading, so any number of threads may call it."""

    parts: ClassVar[bool]  # whether it has two stacks, and so several parts with attention

    def __init__(
        self, model: Any, vocabulary: Any, shape: tuple[int, int], name: str, revision: str, device: str
    ) -> None:
        self.config = config = model.config
        self.name = name
        self.dtype = str(model.dtype).removeprefix("torch.")  # of its weights: "float32"
        self.revision = in_dtype(revision, self.dtype)
        self.family: str = config.model_type
        self.layers, self.heads = shape
        self.layer_numbers = every_layer(self.layers)  # by which heads are named
        self.has_sinks = False  # whether its rows leave a share to learned sinks
        self.d_model = int(own_or_decoder_s(config, "hidden_size"))
        self.limit = piece_limit(model, vocabulary, self.layers * self.heads)  # pieces, including special ones
        self.bytes = sum(t.numel() * t.element_size() for t in (*model.parameters(), *model.buffers()))
        self.device = device
        self.folder: Path | None = None  # the folder of its files
        self.vocabulary = vocabulary  # the tokenizer of transformers
        self.mask: int | None = vocabulary.mask_token_id
        self.causal = is_causal(config)  # no token attends to a later one (GPT-2)
        self._model = model.to(torch_device(device))
        self._tokenizer = Tokenizer(vocabulary, name, self.limit, pairs=not self.parts)

    @property
    def has_every_layer(self) -> bool:
        """Whether all layers of the model have attention, so that these are 0, 1, …"""
        return self.layer_numbers == every_layer(self.layers)

    def check_rows(self) -> None:
        """Raise ModelUnsupported for a model whose rows leave a share to learned sinks, over a corpus."""
        if self.has_sinks:
            raise ModelUnsupported(
                f"{quote_model(self.name)} leaves a share of each row to learned sinks, for which no measure over a "
                "corpus is defined.",
                "Look at single texts, or choose another model.",
            )

    def check_every_layer(self, what: str) -> None:
        """Raise ModelUnsupported, with ``what`` cannot be measured, for a model of which only some layers have
        attention."""
        if not self.has_every_layer:
            raise ModelUnsupported(
                f"{quote_model(self.name)} has attention in some of its layers, so {what} cannot be measured.",
                "Measure a profile of it, or choose another model.",
            )

    @classmethod
    def from_folder(
        cls,
        folder: Path,
        *,
        name: str = "",
        revision: str = "",
        device: str = "cpu",
        dtype: DType = DTYPES[0],
        display_name: str = "",
    ) -> Self:
        """The model in ``folder``, with weights in ``dtype``. Never touches the network.

        ``display_name``: what captions and files call it; by default what its config says, unless its ``name`` is one
        that can be looked up.

        Raises ModelBroken for damaged or contradictory files, ModelUnsupported if its attention cannot be drawn, not in
        this type, or it has another number of stacks (:func:`mha_viz.models.reading.loading.from_folder` opens both
        kinds).
        """
        process.check_docstrings()
        facts = look_at(folder)
        is_unknown = not name or short_name(name) != name
        name = ModelName(name or folder.name, display_name or facts.display_name * is_unknown)
        if bool(facts.parts) != cls.parts:
            stacks = "one stack" if cls.parts else "two stacks"
            raise ModelUnsupported(f"{quote_model(name)} has {stacks} of layers.", "Load it with mha_viz.load.")
        try:
            with panics_in_words(name):
                model = cls._ready(folder, name, revision or weights_digest(folder), device, torch_dtype(dtype))
                model.folder = folder
        except MhaVizError:
            raise
        except Exception as error:  # any error of a library: the files are what the user can change
            if lacks_memory(error):  # they are not to blame
                raise
            words = " ".join(str(error).split()) or type(error).__name__
            _log.warning("%s cannot be loaded: %s", name, words)
            reason = "" if catalog.hosted() else f": {words[:MOST_QUOTED]}"
            if facts.weights_only:
                raise cannot_be_opened(name, reason) from error
            raise ModelBroken(f"{quote_model(name)} cannot be loaded{reason}.", "Download it again.") from error
        return model

    @classmethod
    def _ready(cls, folder: Path, name: str, revision: str, device: str, dtype: torch.dtype) -> Self:
        """Return the model in ``folder``, opened by transformers, after its first run."""
        from mha_viz.models.reading.opening import reports_silenced  # imports transformers: 3 s

        with reports_silenced():
            model = cls._opened(folder, name, revision, device, dtype)
            model._prepare()
        return model

    @classmethod
    @abstractmethod
    def _opened(cls, folder: Path, name: str, revision: str, device: str, dtype: torch.dtype) -> Self:
        """The model in ``folder``, before its first run."""

    @abstractmethod
    def _prepare(self) -> None:
        """Run once, so that a model that cannot be drawn is refused now and the first visitor does not wait."""

    @abstractmethod
    def encode(self, text: str, pair: str = "", *, target: str = "", part: str = "", prefix: str = "") -> Attention:
        """The attention of every head on ``text``."""

    def tokenize(self, text: str, pair: str = "") -> TokenizedText:
        """The tokens of a text without running the model. Raises as :meth:`encode`."""
        return self._tokenizer.read(text, pair).tokenized()

    def _read(self, text: str, pair: str = "") -> TextPieces:
        """The pieces of a text, with a warning if the model's limit cuts it."""
        read = self._tokenizer.read(text, pair)
        if read.cut:
            warn(TextCutWarning, read.cut_in_words(short_name(self.name)))
        return read

    def _space(self, *shape: int) -> torch.Tensor:
        if self.device != "cpu":
            return torch.empty(shape, device=self.device)
        # Memory from numpy, not torch: numpy asks the system for huge pages, which makes writing 75 MB much cheaper.
        return torch.from_numpy(np.empty(shape, np.float32))

    def _tokens(self, *ids: Sequence[int]) -> torch.Tensor:
        """The tokens of sentences, on the device. Raises ModelBroken for one that the tokenizer knows but the weights
        do not have; a GPU that met it would not be usable any more in this process."""
        if max(map(max, ids)) >= len(self._model.get_input_embeddings().weight):
            raise ModelBroken(
                f"The tokenizer of {quote_model(self.name)} gives a token that its weights have no row for.",
                "The files do not belong together. Get the folder again.",
            )
        return torch.tensor(ids, device=self.device)
