"""The stages of the picture of a head, in order: their names, and the functions that show their parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from mha_viz.app.inside.open_stage import OpenStage
from mha_viz.app.inside.rotation import show_rotation
from mha_viz.app.inside.to_output import show_concatenation, show_output, show_values, show_words
from mha_viz.app.inside.to_weights import show_linear, show_mask, show_products, show_scale, show_softmax, show_vectors
from mha_viz.attention.trace import Trace


class Stage(NamedTuple):
    """A stage of the picture of a head.

    Attributes:
        label: its name in the picture.
        shape: returns the shape of its result.
        is_per_head: whether each head computes it separately.
        parts: show its computation below the picture, one function per part.
    """

    label: str
    shape: Callable[[Trace], str]
    is_per_head: bool
    parts: tuple[Callable[[OpenStage], None], ...]


STAGES: Mapping[str, Stage] = MappingProxyType(
    {
        "x": Stage("x", lambda t: f"{t.n} × {t.d_model}", False, (show_vectors,)),
        "project": Stage("q, k, v", lambda t: "W_Q  W_K  W_V", True, (show_linear, show_rotation)),
        "score": Stage("Score", lambda t: f"{t.d_k} products", True, (show_products, show_scale, show_mask)),
        "share": Stage("Share", lambda t: f"{t.n} × {t.n}", True, (show_softmax,)),
        "moved": Stage("Moved", lambda t: f"{t.n} × {t.d_k}", True, (show_values,)),
        "join": Stage("W_O", lambda t: f"{t.n} × {t.heads * t.d_k}", False, (show_concatenation, show_output)),
        "writes": Stage("Writes", lambda t: "words", True, (show_words,)),
    }
)
# Older links name parts of stages. The stage of each part:
STAGES_OF_OLD_LINKS: Mapping[str, str] = MappingProxyType(
    {
        **{"linear": "project", "turn": "project", "products": "score", "scale": "score", "mask": "score"},
        **{"softmax": "share", "values": "moved", "concat": "join", "output": "join", "words": "writes"},
    }
)
