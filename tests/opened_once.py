"""Open bundled models once in each process of the tests, although tests name them as strings.

A model does not change after loading, so all tests can share it. Tests of opening use folders of their own.
"""

from __future__ import annotations

from functools import cache

from mha_viz.models.getting import catalog
from mha_viz.models.reading import loading
from mha_viz.models.reading.loading import AnyModel

COMES_ALONG = ("bundled", "own")  # kinds of models in the catalog


def open_once() -> None:
    """Make ``load`` open each of these models only once for each device and type."""
    usual = loading._load
    shared = cache(usual)

    def load(model: catalog.Model, device: str, dtype: str, download: bool, display_name: str) -> AnyModel:
        opens = shared if model.kind in COMES_ALONG else usual
        opened: AnyModel = opens(model, device, dtype, download, display_name)
        return opened

    loading._load = load
