"""Models in a separate process, so that inference does not hold up pages, and a model that takes too long or too much
memory can be stopped without stopping the server."""

from mha_viz.app.service.reader.client import Reader

__all__ = ["Reader"]
