"""Read models of families without a row (:mod:`mha_viz.models.families`).

Only their attention weights are read, as transformers itself returns them (``output_attentions=True``, its eager
attention).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import torch

from mha_viz.attention import Attention, Weights
from mha_viz.attention.foreign_arrays import add_sink
from mha_viz.attention.steps import REST_AS_SINK, WEIGHTS_ONLY, Step, make_layer_step
from mha_viz.attention.tensors import make_read_only
from mha_viz.errors import MhaVizError, ModelUnsupported, ShapeError
from mha_viz.model_names import quote_model
from mha_viz.models.families import BY_HAND, has_weights, make_no_shares_error, make_weights_only_error
from mha_viz.models.reading import cores
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.encoder_decoder import EncoderDecoder, PartTap
from mha_viz.process import is_out_of_memory
from mha_viz.quotes import MAX_QUOTED
from mha_viz.request import CROSS, DECODER, ENCODER
from mha_viz.text import TokenizedText

_PROBE_IDS = torch.tensor([[0, 1] * 16])  # tokens of every vocabulary, enough of them for models that shorten a text
_TEXT_ARGUMENT = re.compile(r"_(ids|mask|embeds|position|values|states|outputs)$|^labels$|^logits_to_keep$")
_FIELDS = {ENCODER: "encoder_attentions", DECODER: "decoder_attentions", CROSS: "cross_attentions"}


class Unlisted(Encoder):
    """A model with one stack of layers of which only the weights are read."""

    remedy: ClassVar = BY_HAND

    def __init__(self, model: Any, tokenizer: Any, name: str, revision: str, device: str = "cpu") -> None:
        super().__init__(model, tokenizer, name, revision, device)
        self.layer_numbers = _find_attention_layers(model.config)
        self.has_sinks = any(path.endswith(".sinks") for path, _ in model.named_parameters())
        self.own_steps = (WEIGHTS_ONLY, *make_layer_step(self.layer_numbers), *[REST_AS_SINK] * self.has_sinks)

    @classmethod
    def _shape(cls, model: Any, tokenizer: Any, name: str) -> tuple[int, int]:
        """Return the numbers of layers and heads that transformers returns.

        Raises ModelUnsupported if it returns no weights, or a layer is missing.
        """
        outputs, layer_numbers = _run_module(model, model, name, _PROBE_IDS), _find_attention_layers(model.config)
        weights_by_layer = _collect_weights(outputs, "attentions", name, (_PROBE_IDS.shape[1],) * 2, layer_numbers)
        if len(weights_by_layer) != len(layer_numbers):
            raise ModelUnsupported(
                f"Of the {len(layer_numbers)} layers of {quote_model(name)} that have attention, transformers returns "
                f"{len(weights_by_layer)}.",
                BY_HAND,
            )
        return len(weights_by_layer), weights_by_layer[0].shape[1]

    def _pass(self, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]], tap: Tap) -> torch.Tensor:
        """Run the model as :meth:`Encoder._pass` does. Raises ModelUnsupported if the tap needs more than weights."""
        if not tap.only_weights or type(tap).attends is not Tap.attends:
            raise make_weights_only_error(self.family)
        type_argument = {"token_type_ids": torch.tensor(types, device=self.device)} if self._reads_types else {}
        with cores.pass_lock:
            outputs = _run_module(self._model, self._model, self.name, self._tokens(*ids), **type_argument)
        for weights in _collect_weights(outputs, "attentions", self.name, (len(ids[0]),) * 2, self.layer_numbers):
            tap.take(weights)
        states: torch.Tensor = outputs.last_hidden_state
        return states.float()

    def reading(self, text: TokenizedText, weights: Weights, made: tuple[Step, ...] = ()) -> Attention:
        """Return a reading as :meth:`Encoder.reading` does.

        In models with learned sinks, their share is the last column; transformers leaves it out of each row.
        """
        if not self.has_sinks:
            return super().reading(text, weights, made)
        sink_share = np.maximum(1 - weights.sum(axis=3, keepdims=True), 0)
        weights_with_sink = make_read_only(np.concatenate([weights, sink_share], axis=3))
        return Attention(self.name, self.revision, text, weights_with_sink, made=made, keys=add_sink(text))

    def _prepare(self) -> None:
        """Run once to refuse a model that cannot be drawn, and to find out whether it is causal."""
        weights = self._compute_first_weights()
        self.causal = not np.triu(weights[..., : weights.shape[2]], 1).any()


class UnlistedEncoderDecoder(EncoderDecoder):
    """A model with two stacks of which only the weights are read."""

    own_steps: ClassVar[tuple[Step, ...]] = (WEIGHTS_ONLY,)
    remedy: ClassVar = BY_HAND

    @classmethod
    def _read_shapes(cls, model: Any, name: str) -> list[tuple[int, int]]:
        """Return the numbers of layers and heads that transformers returns.

        Raises ModelUnsupported if it returns no weights, or the stacks do not fit.
        """
        outputs, axes = (
            _run_module(model, model, name, _PROBE_IDS, decoder_input_ids=_PROBE_IDS),
            (_PROBE_IDS.shape[1],) * 2,
        )
        encoder, decoder, cross = (
            (len(weights_by_layer), weights_by_layer[0].shape[1])
            for weights_by_layer in (_collect_weights(outputs, field, name, axes) for field in _FIELDS.values())
        )
        if decoder != cross:
            raise ModelUnsupported(
                f"The decoder of {quote_model(name)} attends to the target in {decoder[0]} layers and to the source in "
                f"{cross[0]}.",
                BY_HAND,
            )
        return [encoder, decoder]

    def _prepare(self) -> None:
        """Run once as :meth:`EncoderDecoder._prepare` does. Raises ModelUnsupported for rows that do not sum to 1."""
        try:
            super()._prepare()
        except ShapeError as error:
            raise make_no_shares_error(self.name, error, self.remedy) from error

    def _run_part(self, source: Sequence[int], target: Sequence[int], part: str, tap: PartTap) -> None:
        """Run one part, and copy its weights to ``tap``."""
        with cores.pass_lock:
            if part == ENCODER:
                outputs, field = (
                    _run_module(self._model, self._model.get_encoder(), self.name, self._tokens(source)),
                    "attentions",
                )
            else:
                decoder_input = {"decoder_input_ids": self._tokens(target)}
                outputs, field = (
                    _run_module(self._model, self._model, self.name, self._tokens(source), **decoder_input),
                    _FIELDS[part],
                )
        axes = (len(source),) * 2 if part == ENCODER else (len(target), len(source if part == CROSS else target))
        weights_by_layer = _collect_weights(outputs, field, self.name, axes)
        for slot, weights in zip(tap.weights, weights_by_layer, strict=True):
            slot.copy_(weights[0])
        tap.recorded_layers = len(weights_by_layer)


def _run_module(model: Any, part: Any, name: str, ids: torch.Tensor, **extra_arguments: Any) -> Any:
    """Run a part of a model on texts without padding, and return its output. Raises ModelUnsupported if it fails."""
    parameters = inspect.signature(part.forward).parameters
    if "input_ids" not in parameters:
        raise ModelUnsupported(f"{quote_model(name)} reads no text.", "Choose a model that reads text.")
    arguments = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "use_cache": False} | extra_arguments
    takes_any_argument = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    arguments = {
        argument: value for argument, value in arguments.items() if argument in parameters or takes_any_argument
    }
    with _convert_errors(name, parameters), torch.inference_mode():
        return part(
            **{k: v.to(model.device) if isinstance(v, torch.Tensor) else v for k, v in arguments.items()},
            output_attentions=True,
        )


@contextmanager
def _convert_errors(name: str, parameters: Mapping[str, inspect.Parameter]) -> Iterator[None]:
    """Turn an error of a model's own code into ModelUnsupported.

    The message names the ``parameters`` of the model besides a text.
    """
    try:
        yield
    except MhaVizError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise
        tensors = (argument for argument, parameter in parameters.items() if "Tensor" in str(parameter.annotation))
        other_tensors = [argument for argument in tensors if not _TEXT_ARGUMENT.search(argument)]
        message = " ".join(str(error).split()) or type(error).__name__
        reason = (
            f"its family also reads {', '.join(other_tensors)}"
            if other_tensors
            else f"it stops with “{message[:MAX_QUOTED]}”"
        )
        problem = f"transformers cannot run {quote_model(name)} on the tokens of a text alone: {reason}."
        raise ModelUnsupported(problem, BY_HAND) from error


def _collect_weights(
    outputs: Any, field: str, name: str, axes: tuple[int, int], numbers: Sequence[int] = ()
) -> list[torch.Tensor]:
    """Return the weights of every layer that has them, [sentence, head, query, key].

    If ``numbers`` are given and transformers returns all layers, only the layers with these numbers are used. Raises
    ModelUnsupported unless there are weights, one for each pair of the queries and keys in ``axes``.
    """
    layers = getattr(outputs, field, None) or ()
    layers = [layers[number] for number in numbers] if numbers and len(layers) > numbers[-1] else layers
    weights_by_layer = [layer for layer in layers if layer is not None]
    if not weights_by_layer or not all(isinstance(w, torch.Tensor) and w.dim() == 4 for w in weights_by_layer):
        raise ModelUnsupported(f"transformers returns no attention weights of {quote_model(name)}.", BY_HAND)
    shapes = {tuple(layer.shape[1:]) for layer in weights_by_layer}
    misfits = sorted(shape for shape in shapes if shape[1:] != axes)
    if misfits or len(shapes) > 1:
        reason = "not one for each pair, as in families that read in windows or at several lengths"
        raise ModelUnsupported(
            f"For {axes[0]} queries and {axes[1]} keys transformers returns weights of {quote_model(name)} of shape "
            f"{', '.join(map(str, misfits or sorted(shapes)))}: "
            f"{reason if misfits else 'its layers have different numbers of heads'}.",
            BY_HAND,
        )
    return weights_by_layer


def _find_attention_layers(config: Any) -> tuple[int, ...]:
    """Return the numbers of the layers that should have weights.

    In a hybrid model, layers that mix tokens in another way have none.
    """
    kinds = getattr(config, "layer_types", None) or ["full_attention"] * int(config.num_hidden_layers)
    return tuple(number for number, kind in enumerate(kinds) if has_weights(kind))
