"""The base class of loaded models with one or two stacks of layers: files, tokenizer, device, and ``encode``."""

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
from mha_viz.heads import list_layers
from mha_viz.model_names import ModelName, quote_model, shorten_name
from mha_viz.models.families import is_causal, make_cannot_open_error
from mha_viz.models.getting import catalog
from mha_viz.models.getting.folder import inspect_folder
from mha_viz.models.reading.properties import (
    Device,
    DType,
    compute_piece_limit,
    identify_weights,
    parse_device,
    parse_dtype,
    read_config_int,
)
from mha_viz.models.reading.tokenizer import TextPieces, Tokenizer, convert_panics
from mha_viz.process import is_out_of_memory
from mha_viz.quotes import MAX_QUOTED
from mha_viz.request import DTYPES, add_dtype
from mha_viz.text import TokenizedText

__all__ = ["LoadedModel"]

_log = logging.getLogger(__name__)


class LoadedModel(ABC):
    """A model with its tokenizer. It does not change after loading, so any number of threads may call it."""

    has_two_stacks: ClassVar[bool]  # and therefore several parts with attention

    def __init__(
        self, model: Any, vocabulary: Any, shape: tuple[int, int], name: str, revision: str, device: str
    ) -> None:
        self.config = config = model.config
        self.name = name
        self.dtype = str(model.dtype).removeprefix("torch.")  # of its weights: "float32"
        self.revision = add_dtype(revision, self.dtype)
        self.family: str = config.model_type
        self.layers, self.heads = shape
        self.layer_numbers = list_layers(self.layers)  # used in the names of heads
        self.has_sinks = False  # whether learned sinks take a share of each row
        self.d_model = int(read_config_int(config, "hidden_size"))
        self.limit = compute_piece_limit(model, vocabulary, self.layers * self.heads)  # pieces, including special ones
        self.bytes = sum(t.numel() * t.element_size() for t in (*model.parameters(), *model.buffers()))
        self.device = device
        self.folder: Path | None = None  # the folder of its files
        self.vocabulary = vocabulary  # the tokenizer: that of transformers, or a plain one (vocabulary.py)
        self.mask: int | None = vocabulary.mask_token_id
        self.causal = is_causal(config)  # no token attends to a later one (GPT-2)
        self._model = model.to(parse_device(device))
        self._tokenizer = Tokenizer(vocabulary, name, self.limit, pairs=not self.has_two_stacks)

    @property
    def has_every_layer(self) -> bool:
        """Whether all layers of the model have attention, so that they are numbered 0, 1, …"""
        return self.layer_numbers == list_layers(self.layers)

    def check_no_sinks(self) -> None:
        """Raise ModelUnsupported if the model has learned sinks, for which no measure over a corpus is defined."""
        if self.has_sinks:
            raise ModelUnsupported(
                f"{quote_model(self.name)} leaves a share of each row to learned sinks, for which no measure over a "
                "corpus is defined.",
                "Look at single texts, or choose another model.",
            )

    def check_every_layer(self, quantity: str) -> None:
        """Raise ModelUnsupported if only some layers of the model have attention.

        ``quantity`` names the quantity that cannot be measured, for the message.
        """
        if not self.has_every_layer:
            raise ModelUnsupported(
                f"{quote_model(self.name)} has attention in only some of its layers, so {quantity} cannot be measured.",
                "Measure a profile of it, or choose another model.",
            )

    @classmethod
    def from_folder(
        cls,
        folder: Path,
        *,
        name: str = "",
        revision: str = "",
        device: Device = "cpu",
        dtype: DType = DTYPES[0],
        display_name: str = "",
    ) -> Self:
        """Load the model in ``folder``, with weights in ``dtype``. Never touches the network.

        ``display_name`` is the model's name in captions and files. By default it is the name in the config if
        ``name`` is empty or a path, else ``name``.

        Raises ModelBroken for damaged or contradictory files. Raises ModelUnsupported if its attention cannot be drawn,
        or not with weights in ``dtype``, or if it has another number of stacks than this class
        (:func:`mha_viz.models.reading.loading.from_folder` opens both kinds).
        """
        process.check_docstrings()
        facts = inspect_folder(folder)
        is_from_folder = not name or shorten_name(name) != name
        name = ModelName(name or folder.name, display_name or facts.display_name * is_from_folder)
        if bool(facts.parts) != cls.has_two_stacks:
            stacks = "one stack" if cls.has_two_stacks else "two stacks"
            raise ModelUnsupported(f"{quote_model(name)} has {stacks} of layers.", "Load it with mha_viz.load.")
        try:
            with convert_panics(name):
                revision, device_name = revision or identify_weights(folder), str(parse_device(device))
                model = cls._load_prepared(folder, name, revision, device_name, parse_dtype(dtype))
                model.folder = folder
        except MhaVizError:
            raise
        except Exception as error:  # any error of a library; users can change the files
            if is_out_of_memory(error):  # not the fault of the files
                raise
            message = " ".join(str(error).split()) or type(error).__name__
            _log.warning("%s cannot be loaded: %s", name, message)
            reason = "" if catalog.is_hosted() else f": {message[:MAX_QUOTED]}"
            if facts.weights_only:
                raise make_cannot_open_error(name, reason) from error
            raise ModelBroken(f"{quote_model(name)} cannot be loaded{reason}.", "Download it again.") from error
        return model

    @classmethod
    def _load_prepared(cls, folder: Path, name: str, revision: str, device: str, dtype: torch.dtype) -> Self:
        """Open the model in ``folder`` with transformers, and run it once."""
        from mha_viz.models.reading.opening import silence_transformers  # imports transformers: 3 s

        with silence_transformers():
            model = cls._open(folder, name, revision, device, dtype)
            model._prepare()
        return model

    @classmethod
    @abstractmethod
    def _open(cls, folder: Path, name: str, revision: str, device: str, dtype: torch.dtype) -> Self:
        """Open the model in ``folder`` without running it."""

    @abstractmethod
    def _prepare(self) -> None:
        """Run once, so that a model that cannot be drawn is refused now and the first visitor does not wait."""

    @abstractmethod
    def encode(self, text: str, pair: str = "", *, target: str = "", part: str = "", prefix: str = "") -> Attention:
        """Return the attention of every head on ``text``."""

    def tokenize(self, text: str, pair: str = "") -> TokenizedText:
        """Return the tokens of a text without running the model. Raises the errors of :meth:`encode`."""
        return self._tokenizer.read(text, pair).tokenized()

    def _read(self, text: str, pair: str = "") -> TextPieces:
        """Return the pieces of a text, with a warning if the model's limit cuts it."""
        pieces = self._tokenizer.read(text, pair)
        if pieces.cut:
            warn(TextCutWarning, pieces.describe_cut(shorten_name(self.name)))
        return pieces

    def _allocate_weights(self, *shape: int) -> torch.Tensor:
        """Allocate memory for attention weights on the device."""
        if self.device != "cpu":
            return torch.empty(shape, device=self.device)
        # Allocate with numpy, not torch: numpy asks the system for huge pages, which makes writing 75 MB much cheaper.
        return torch.from_numpy(np.empty(shape, np.float32))

    def _tokens(self, *ids: Sequence[int]) -> torch.Tensor:
        """Return the token ids of sentences as a tensor on the device.

        Raises ModelBroken for an id that the tokenizer knows but the weights do not have. A GPU that met such an id
        would be unusable for the rest of this process.
        """
        if max(map(max, ids)) >= len(self._model.get_input_embeddings().weight):
            raise ModelBroken(
                f"The tokenizer of {quote_model(self.name)} gives a token that its weights have no row for.",
                "The files do not belong together. Get the folder again.",
            )
        return torch.tensor(ids, device=self.device)
