"""Run models in a separate process.

Inference then does not hold up pages, and a model that takes too long or too much memory can be stopped without
stopping the server.
"""

from mha_viz.app.service.reader.client import Reader

__all__ = ["Reader"]
