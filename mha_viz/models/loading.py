"""A model by its name, with one stack of layers or with two."""

from __future__ import annotations

from pathlib import Path

from mha_viz.errors import ModelUnreachable
from mha_viz.models import budget, catalog, hub
from mha_viz.models.encoder import Encoder
from mha_viz.models.encoder_decoder import AnyModel, EncoderDecoder, in_one_stack
from mha_viz.models.folder import look_at
from mha_viz.quotes import quoted

__all__ = ["AnyModel", "from_folder", "load", "one_stack"]


def load(name: str, device: str = "cpu", *, download: bool = True) -> AnyModel:
    """The model that ``name`` refers to, on "cpu" or "cuda". Raises ModelError's family.

    ``name``: one that ``mha-viz models`` lists, an id of the Hugging Face Hub, or the path of a folder. The model is
    downloaded first if necessary; with ``download=False``, one that is not on this machine raises ModelUnreachable.
    """
    with catalog.suggesting(name, f"Choose one of {', '.join(catalog.CATALOG)}"):
        return _load(catalog.resolve(name), device, download)


def _load(model: catalog.Model, device: str, download: bool) -> AnyModel:
    folder = hub.local_folder(model)
    if folder is None and not download:
        raise ModelUnreachable(
            f"{quoted(model.name)} is not on this machine any more.", "Choose it again, or choose another model."
        )
    folder = folder or hub.fetch(model)
    revision = hub.BUNDLE_SHA256.get(model.path, "")[:12]
    budget.used(folder)
    return from_folder(folder, name=model.name, revision=revision, device=device)


def from_folder(folder: Path, *, name: str = "", revision: str = "", device: str = "cpu") -> AnyModel:
    """The model in ``folder``. Raises as :meth:`mha_viz.models.loaded.LoadedModel.from_folder`."""
    kind: type[AnyModel] = EncoderDecoder if look_at(folder).parts else Encoder
    return kind.from_folder(folder, name=name, revision=revision, device=device)


def one_stack(model: str | AnyModel, device: str = "cpu") -> Encoder:
    """A model with one stack of layers, loaded if it is given by its name. Raises ModelUnsupported for an
    encoder–decoder, ModelError's family."""
    return in_one_stack(load(model, device) if isinstance(model, str) else model)
