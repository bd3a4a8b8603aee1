"""Export a model as a graph in the ONNX format whose output is its attention.

Such graphs are for runtimes without PyTorch, such as a browser's.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import AutoModel

from mha_viz.errors import ExportError, ModelUnsupported
from mha_viz.model_names import quote_model
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loaded_model import LoadedModel
from mha_viz.models.reading.opening import silence_transformers
from mha_viz.models.reading.tokenizer import Tokenizer
from mha_viz.quotes import join_names
from mha_viz.request import DTYPES

FAMILIES = ("bert", "distilbert", "electra", "gpt2", "roberta")
MAX_GRAPH_BYTES = 2_000_000_000  # maximum bytes of a graph in a single file
_MIN_HALVED_SIZE = 1_024  # arrays with at least this many numbers are stored in half precision
_EXPORTER = "torch.onnx._internal.exporter"


class Graph(NamedTuple):
    """An exported graph, from ``ids`` [1, n] to ``attention`` [layer, head, query, key].

    Attributes:
        data: the graph as bytes.
        deviation: the largest difference between its attention weights and those of the model, measured if its numbers
            are stored in half precision.
    """

    data: bytes
    deviation: float


class _Attention(torch.nn.Module):
    """A module that returns all attention weights of a transformers model in one array."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the attention weights of token ids, concatenated over layers."""
        return torch.cat(self.model(input_ids=ids, output_attentions=True).attentions)


def check_exportable(model: LoadedModel) -> Encoder:
    """Return the model unchanged if it can be exported as a graph.

    Raises ModelUnsupported, and ExportError if it was not read from a folder or the libraries are not installed.
    """
    label = quote_model(model.name)
    if not isinstance(model, Encoder) or model.family not in FAMILIES:
        problem = f"{label} is of the family {model.family}, which cannot run in a web page."
        raise ModelUnsupported(problem, f"These can: {join_names(FAMILIES)}.")
    if model.dtype != DTYPES[0]:
        problem = f"{label} was loaded in {model.dtype}, and a web page runs models in float32."
        raise ModelUnsupported(problem, "Load it without dtype; half=True stores half as much.")
    if model.folder is None:
        raise ExportError(f"{label} was not read from a folder.", "Load it by its name or from its folder.")
    if 4 * sum(weight.numel() for weight in model.module("").parameters()) > MAX_GRAPH_BYTES:
        raise ModelUnsupported(
            f"{label} has more than {MAX_GRAPH_BYTES / 1e9:.0f} GB of weights.", "Choose a smaller model."
        )
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        problem = "onnxscript is not installed. A page that runs a model in the browser needs it."
        raise ExportError(problem, 'Install it, in a copy of the repository: pip install ".[live]".') from error
    return model


def export_graph(model: Encoder, half: bool = False, texts: Sequence[str] = ()) -> Graph:
    """Export the graph of a model that :func:`check_exportable` accepts.

    With ``half``, large arrays are stored as float16, and the deviation is measured on ``texts``. Raises ExportError
    for numbers that half precision cannot represent.
    """
    assert model.folder is not None
    with _silence_exporter():
        model_in_float32 = AutoModel.from_pretrained(model.folder, attn_implementation="eager", dtype=torch.float32)
        attention = _Attention(model_in_float32).eval()
        deviation = _round_to_halves(attention, model, texts) if half else 0.0
        pieces = torch.export.Dim("pieces", min=2, max=model.limit)
        ids = torch.arange(min(4, model.limit))[None]
        program = torch.onnx.export(
            attention,
            (ids,),
            input_names=["ids"],
            output_names=["attention"],
            dynamic_shapes={"ids": {1: pieces}},
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    proto = program.model_proto
    if half:
        _store_halves(proto.graph)
    return Graph(proto.SerializeToString(), deviation)


@contextmanager
def _silence_exporter() -> Iterator[None]:
    """Silence the exporter's warnings about things that this export does not need."""
    log = logging.getLogger(_EXPORTER)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with silence_transformers(), warnings.catch_warnings(), torch.inference_mode(False), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _round_to_halves(attention: _Attention, model: Encoder, texts: Sequence[str]) -> float:
    """Round the weights to half precision. Return the largest change of an attention weight on the texts."""
    tokenizer = Tokenizer(model.vocabulary, model.name, model.limit)
    token_ids = [torch.tensor([tokenizer.read(text).ids]) for text in texts]
    original_weights = [attention(ids) for ids in token_ids]
    for weight in attention.parameters():
        if weight.numel() >= _MIN_HALVED_SIZE:
            weight.copy_(weight.half().float())
    changes = [
        float((attention(ids) - original).abs().max())
        for ids, original in zip(token_ids, original_weights, strict=True)
    ]
    deviation = max(changes, default=0.0)
    if not np.isfinite(deviation):
        raise ExportError(
            f"{quote_model(model.name)} has numbers that half precision cannot represent.", "Leave --half out."
        )
    return deviation


def _store_halves(graph_proto: Any) -> None:
    """Store large arrays as float16, each with a step that converts it back to float32."""
    from onnx import TensorProto, helper, numpy_helper

    casts = []
    for array in graph_proto.initializer:
        values = numpy_helper.to_array(array)
        if array.data_type != TensorProto.FLOAT or values.size < _MIN_HALVED_SIZE:
            continue
        name = array.name
        array.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}.half"))
        casts.append(helper.make_node("Cast", [f"{name}.half"], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *graph_proto.node]
    del graph_proto.node[:]
    graph_proto.node.extend(nodes)
