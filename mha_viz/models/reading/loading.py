"""Load a model by its name, whether it has one or two stacks of layers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from mha_viz.errors import ModelUnreachable, SettingError
from mha_viz.model_names import quote_model, shorten_name
from mha_viz.models.getting import budget, catalog, hub
from mha_viz.models.getting.folder import inspect_folder
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.encoder_decoder import AnyModel, EncoderDecoder, require_one_stack
from mha_viz.models.reading.properties import Device, DType, parse_device, parse_dtype
from mha_viz.models.reading.unlisted_families import Unlisted, UnlistedEncoderDecoder
from mha_viz.quotes import quote
from mha_viz.request import DTYPES, get_dtype

__all__ = ["AnyModel", "ModelOrName", "from_folder", "get_name", "load", "load_as_measured", "load_one_stack"]

MAX_NAME_CHARACTERS = 200  # maximum length of a display name
MODEL_CLASSES: MappingProxyType[tuple[bool, bool], type[AnyModel]] = MappingProxyType(  # by (two stacks, weights only)
    {
        (False, False): Encoder,
        (False, True): Unlisted,
        (True, False): EncoderDecoder,
        (True, True): UnlistedEncoderDecoder,
    }
)


ModelOrName: TypeAlias = str | os.PathLike[str] | AnyModel  # a path is that of a folder


def get_name(model: ModelOrName) -> str:
    """Return the name of a model, or the absolute path of a folder. A path object need not begin with "./"."""
    if isinstance(model, os.PathLike):
        path = Path(model).expanduser()
        return str(path.resolve() if ".." in path.parts else path.absolute())
    return model.name if isinstance(model, Encoder | EncoderDecoder) else model


def load(
    model: str | os.PathLike[str],
    device: Device = "cpu",
    *,
    dtype: DType = DTYPES[0],
    download: bool = True,
    name: str = "",
) -> AnyModel:
    """Load a model. Download it first if it is not on this machine.

    Args:
        model: a name that ``mha-viz models`` lists, an id of the Hugging Face Hub, or the path of a folder.
        device: "cpu", "cuda", or a numbered GPU such as "cuda:1"; also a ``torch.device``.
        dtype: the type of its weights and vectors: "float32", or "float16" or "bfloat16" (also ``torch.bfloat16``),
            which take half the memory. These change the model's numbers, so readings state the type after the revision.
            Attention is computed in float32 in all types.
        download: if False, raise ModelUnreachable instead of downloading the model.
        name: the model's name in captions, files and reports; by default its id on the Hub, and for a folder the name
            in its config.json.

    Returns the model. Raises ModelError or one of its subclasses, and SettingError for a device or a type that does
    not exist.

    >>> half = mv.load("toy", dtype="bfloat16").encode("the dog saw the girl .")
    >>> half.weights.dtype.name, half.revision.rpartition(" ")[2]
    ('float32', 'bfloat16')
    """
    device_name = str(parse_device(device))
    dtype_name = str(parse_dtype(dtype)).removeprefix("torch.")
    check_display_name(name)
    model = get_name(model)
    with catalog.add_suggestions(model, f"Choose one of {', '.join(catalog.CATALOG)}"):
        return _load(catalog.resolve(model), device_name, dtype_name, download, name)


def check_display_name(name: str) -> None:
    """Raise SettingError for a text that cannot be printed as a name."""
    if not isinstance(name, str) or not name.isprintable() or len(name) > MAX_NAME_CHARACTERS:
        problem = f"{quote(str(name))} cannot be the name of a model."
        raise SettingError(problem, f"Give one line of up to {MAX_NAME_CHARACTERS} characters.")


def _load(model: catalog.Model, device: str, dtype: str, download: bool, display_name: str) -> AnyModel:
    """Find or download a model, and load it."""
    folder = hub.find_local_folder(model)
    if folder is None and not download:
        raise ModelUnreachable(
            f"{quote_model(model.name)} is not on this machine.", "Choose it again, or choose another model."
        )
    folder = folder or hub.fetch(model)
    hub.check_unchanged(folder, model)
    revision = hub.BUNDLE_SHA256.get(model.path, "")[:12]
    budget.record_use(folder)
    options = {"device": device, "dtype": dtype, "display_name": display_name}
    return from_folder(folder, name=model.name, revision=revision, **options)


def from_folder(
    folder: Path,
    *,
    name: str = "",
    revision: str = "",
    device: str = "cpu",
    dtype: str = DTYPES[0],
    display_name: str = "",
) -> AnyModel:
    """Load the model in a folder.

    Args:
        folder: the folder with the weights, the tokenizer and config.json.
        name: the name or the id by which the model can be looked up; by default the name of the folder.
        revision: the version of the weights; by default a digest of them.
        device: as for :func:`load`.
        dtype: as for :func:`load`.
        display_name: as for :meth:`mha_viz.models.reading.loaded_model.LoadedModel.from_folder`.

    Returns the model. Raises the errors of that method.
    """
    facts = inspect_folder(folder)
    model_class: type[AnyModel] = MODEL_CLASSES[bool(facts.parts), facts.weights_only]
    return model_class.from_folder(
        folder, name=name, revision=revision, device=device, dtype=dtype, display_name=display_name
    )


def load_one_stack(model: ModelOrName, device: str = "cpu") -> Encoder:
    """Return a model with one stack of layers, loading it if it is given by name.

    Raises ModelUnsupported for an encoder–decoder, ModelError.
    """
    return require_one_stack(load(model, device) if isinstance(model, str | os.PathLike) else model)


def load_as_measured(facts: Mapping[str, Any], model: ModelOrName | None = None, device: str = "cpu") -> Encoder:
    """Return the model with which something was measured, loaded in the same type.

    It is loaded by the name in ``facts``, which has the entries "model" and "revision", unless ``model`` is given.
    Raises the errors of :func:`load_one_stack`, and SettingError for a model in another type.
    """
    model_or_name, dtype = facts["model"] if model is None else model, get_dtype(str(facts.get("revision", "")))
    encoder = require_one_stack(
        load(model_or_name, device, dtype=dtype) if isinstance(model_or_name, str | os.PathLike) else model_or_name
    )
    if encoder.dtype != dtype:
        raise SettingError(
            f"{shorten_name(encoder.name)} was loaded in {encoder.dtype}, and this was measured in {dtype}.",
            f"Load it with dtype={dtype!r}.",
        )
    return encoder
