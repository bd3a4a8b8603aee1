"""List the unstable internals of transformers and PyTorch that this package uses, and re-export them.

Parts that every model needs are checked when the first model is opened; parts that one family needs, when a model of
that family is opened. transformers is not imported for models that :mod:`mha_viz.models.reading.plain_models` opens. If
a part is missing, the error names the versions that work.
"""

from __future__ import annotations

from importlib.metadata import version
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any

from mha_viz.errors import ModelUnsupported
from mha_viz.library_parts import TESTED_VERSIONS, LibraryPart, check_parts, has_part
from mha_viz.model_names import shorten_name

LOSS_OF_SPEED = "Models are read more slowly."

PARTS: tuple[LibraryPart, ...] = (
    LibraryPart("transformers", "AttentionInterface", "records the attention of each layer"),
    LibraryPart("transformers.masking_utils", "AttentionMaskInterface", "records the attention of each layer"),
    LibraryPart("transformers.masking_utils", "eager_mask", "the tokens that each token sees"),
    LibraryPart("transformers.pytorch_utils", "Conv1D", "the layers of GPT-2"),
    LibraryPart("transformers.activations", "GELUActivation", "the layers of BERT"),
    LibraryPart("transformers.modeling_outputs", "BaseModelOutput", "the output of an encoder"),
    LibraryPart("transformers.modeling_outputs", "BaseModelOutputWithPastAndCrossAttentions", "a model's last states"),
    LibraryPart("transformers.utils", "logging", "keeps the messages of transformers out of answers"),
    LibraryPart("torch:Tensor", "_version", "whether weights have changed"),
    LibraryPart("torch.nn:Module", "_forward_hooks", "whether a layer has listeners"),
    LibraryPart("torch.nn:Module", "_forward_pre_hooks", "whether a layer has listeners"),
    LibraryPart("torch:ops.mkldnn", "_reorder_linear_weight", "packs the weights of a layer", LOSS_OF_SPEED),
    LibraryPart("torch:ops.mkldnn", "_linear_pointwise", "multiplies by packed weights", LOSS_OF_SPEED),
)

_MODELS = "transformers.models"
FAMILY_PARTS = MappingProxyType(
    {
        "longformer": LibraryPart(
            f"{_MODELS}.longformer.modeling_longformer:LongformerModel",
            "_pad_to_window_size",
            "reads a text without padding",
            arguments="self, input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, pad_token_id",
        ),
        "mbart": LibraryPart(
            f"{_MODELS}.mbart.tokenization_mbart:MBartTokenizer",
            "_switch_to_target_mode",
            "reads a target",
            arguments="self",
        ),
    }
)
"""Parts that only models of one family need."""

_REPLACED_METHODS = MappingProxyType(
    {
        "gpt_neo": LibraryPart(
            f"{_MODELS}.gpt_neo.modeling_gpt_neo:GPTNeoSelfAttention", "_attn", "a method that can be replaced"
        ),
        "gptj": LibraryPart(f"{_MODELS}.gptj.modeling_gptj:GPTJAttention", "_attn", "a method that can be replaced"),
    }
)
"""Methods of older versions; newer versions call the registered attention function instead."""


_SINCE_5_15 = TESTED_VERSIONS["transformers"].replace(">=5.10", ">=5.15")
FAMILY_VERSIONS = MappingProxyType({"mt5": _SINCE_5_15, "t5": _SINCE_5_15})
"""Supported versions of transformers for families that need newer ones than the rest."""


def uses_registered_attention(family: str) -> bool:
    """Return whether the installed transformers calls the registered attention function in a family of those that had
    their own method in older versions; False for all others.
    """
    return family in _REPLACED_METHODS and not has_part(_REPLACED_METHODS[family])


def check_family(family: str) -> None:
    """Check that transformers has all parts that models of a family need. Raises SettingError otherwise."""
    if family in FAMILY_PARTS:
        check_parts([FAMILY_PARTS[family]])


def check_function(module: str) -> None:
    """Check that a ``module`` of transformers has its own eager attention function. Raises SettingError otherwise."""
    check_parts([LibraryPart(module, "eager_attention_forward", "the attention of its family")])


def make_layers_unseen_error(name: str, family: str, seen_layers: int, layers: int) -> ModelUnsupported:
    """Return the error for a listed family of which only ``seen_layers`` of ``layers`` were recorded.

    It names the versions that work.
    """
    versions = FAMILY_VERSIONS.get(family, TESTED_VERSIONS["transformers"])
    return ModelUnsupported(
        f"{shorten_name(name)} shows the attention of {seen_layers} of its {layers} layers with transformers "
        f"{version('transformers')}.",
        f'mha_viz was tested with these versions: pip install "transformers{versions}".',
    )


def __getattr__(name: str) -> Any:
    """Import the part of transformers that a row of PARTS names (3 s). Raises SettingError if any part is missing."""
    row = next((part for part in PARTS if part.package == "transformers" and _make_export_name(part) == name), None)
    if row is None:
        raise AttributeError(name)
    check_parts(PARTS)
    return resolve_name(f"{row.owner}:{row.name}")


def _make_export_name(part: LibraryPart) -> str:
    """Return the name under which a part is re-exported from this module."""
    return "transformers_logging" if part.name == "logging" else part.name


check_parts([part for part in PARTS if part.package == "torch"])
