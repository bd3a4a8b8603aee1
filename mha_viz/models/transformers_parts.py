"""List what is taken from inside transformers and PyTorch, which these do not promise to keep, and hand it on.

What every model needs is checked when the first model is opened, what one family needs when a model of it is; for one
that :mod:`mha_viz.models.reading.plain` opens, transformers is not imported. Each missing part is answered by a
sentence with the versions that work.
"""

from __future__ import annotations

from importlib.metadata import version
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any

from mha_viz.errors import ModelUnsupported
from mha_viz.library_parts import TESTED, LibraryPart, check_parts, is_there
from mha_viz.model_names import short_name

SLOWER = "Models are read more slowly."

PARTS: tuple[LibraryPart, ...] = (
    LibraryPart("transformers", "AttentionInterface", "records the attention of each layer"),
    LibraryPart("transformers.masking_utils", "AttentionMaskInterface", "records the attention of each layer"),
    LibraryPart("transformers.masking_utils", "eager_mask", "the tokens that each token sees"),
    LibraryPart("transformers.pytorch_utils", "Conv1D", "the layers of GPT-2"),
    LibraryPart("transformers.activations", "GELUActivation", "the layers of BERT"),
    LibraryPart("transformers.modeling_outputs", "BaseModelOutput", "what an encoder puts out"),
    LibraryPart("transformers.modeling_outputs", "BaseModelOutputWithPastAndCrossAttentions", "a model's last states"),
    LibraryPart("transformers.utils", "logging", "keeps what transformers prints out of answers"),
    LibraryPart("torch:Tensor", "_version", "whether weights have changed"),
    LibraryPart("torch.nn:Module", "_forward_hooks", "whether somebody listens to a layer"),
    LibraryPart("torch.nn:Module", "_forward_pre_hooks", "whether somebody listens to a layer"),
    LibraryPart("torch:ops.mkldnn", "_reorder_linear_weight", "packs the weights of a layer", SLOWER),
    LibraryPart("torch:ops.mkldnn", "_linear_pointwise", "multiplies by packed weights", SLOWER),
)

_MODELS = "transformers.models"
OF_FAMILY = MappingProxyType(
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
"""What models of one family need."""

_CALLED = MappingProxyType(
    {
        "gpt_neo": LibraryPart(
            f"{_MODELS}.gpt_neo.modeling_gpt_neo:GPTNeoSelfAttention", "_attn", "a method that can be replaced"
        ),
        "gptj": LibraryPart(f"{_MODELS}.gptj.modeling_gptj:GPTJAttention", "_attn", "a method that can be replaced"),
    }
)
"""Methods that newer versions do without: they call the registered function."""


_SINCE_5_15 = TESTED["transformers"].replace(">=5.10", ">=5.15")
SINCE = MappingProxyType({"mt5": _SINCE_5_15, "t5": _SINCE_5_15})
"""The versions with which a family is read, where they are fewer."""


def calls_registered(family: str) -> bool:
    """Tell whether the installed transformers calls the registered function in a family that older versions gave a
    method of its own."""
    return family in _CALLED and not is_there(_CALLED[family])


def check_family(family: str) -> None:
    """Refuse a transformers that lacks what models of a family need. Raises SettingError."""
    if family in OF_FAMILY:
        check_parts([OF_FAMILY[family]])


def check_function(module: str) -> None:
    """Refuse a transformers whose ``module`` has no attention function of its own. Raises SettingError."""
    check_parts([LibraryPart(module, "eager_attention_forward", "the attention of its family")])


def layers_unseen(name: str, family: str, seen: int, layers: int) -> ModelUnsupported:
    """Say that a model of a listed family recorded ``seen`` of its layers, with both versions."""
    versions = SINCE.get(family, TESTED["transformers"])
    return ModelUnsupported(
        f"{short_name(name)} shows the attention of {seen} of its {layers} layers with transformers "
        f"{version('transformers')}.",
        f'It was tried with these versions: pip install "transformers{versions}".',
    )


def __getattr__(name: str) -> Any:
    """Hand on what a row of PARTS names in transformers, which is imported for it (3 s). Raises SettingError if any row
    is missing."""
    row = next((part for part in PARTS if part.package == "transformers" and _handed_on(part) == name), None)
    if row is None:
        raise AttributeError(name)
    check_parts(PARTS)
    return resolve_name(f"{row.owner}:{row.name}")


def _handed_on(part: LibraryPart) -> str:
    """Return the name by which a part is imported from here."""
    return "transformers_logging" if part.name == "logging" else part.name


check_parts([part for part in PARTS if part.package == "torch"])
