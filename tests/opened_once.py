"""Open bundled models once per test process, although tests name them as strings.

Models do not change after loading, so all tests can share them. Tests of loading use other folders.
"""

from __future__ import annotations

from functools import cache

from mha_viz.models.getting import catalog
from mha_viz.models.reading import loading
from mha_viz.models.reading.loading import AnyModel

SHARED_KINDS = ("bundled", "own")  # kinds of models in the catalog


def open_once() -> None:
    """Make ``load`` open each of these models only once per device and dtype."""
    original = loading._load
    cached = cache(original)

    def load(model: catalog.Model, device: str, dtype: str, download: bool, display_name: str) -> AnyModel:
        load_model = cached if model.kind in SHARED_KINDS else original
        loaded: AnyModel = load_model(model, device, dtype, download, display_name)
        return loaded

    loading._load = load
