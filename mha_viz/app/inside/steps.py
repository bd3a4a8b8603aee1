"""The steps inside a head, in order: their names on the map, and the functions that draw them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from mha_viz.app.inside.rotation import show_rotation
from mha_viz.app.inside.step_parts import OpenStep
from mha_viz.app.inside.to_output import show_concatenation, show_output, show_values, show_words
from mha_viz.app.inside.to_weights import show_linear, show_mask, show_products, show_scale, show_softmax, show_vectors
from mha_viz.attention.trace import Trace


def _applies_always(_: Trace) -> bool:
    return True


class InsideStep(NamedTuple):
    """A step of the computation inside a head.

    Attributes:
        label: its name on the map.
        shape: returns the shape of its result.
        stage: the stage of the picture that contains it, a key of TITLES.
        is_per_head: whether each head computes it separately.
        show: draws it, and returns its text column, to which the page adds buttons.
        applies_to: returns whether a model has this step.
    """

    label: str
    shape: Callable[[Trace], str]
    stage: str
    is_per_head: bool
    show: Callable[[OpenStep], Any]
    applies_to: Callable[[Trace], bool] = _applies_always


def _count_rotated(t: Trace) -> str:
    return f"{t.rotation.rotated_size if t.rotation else 0} of {t.d_k}"


def _describe_mask(t: Trace) -> str:
    """Describe in two or three words which tokens the mask leaves visible."""
    return "a window" if t.windowed else "left to right" if t.masked else "none here"


TITLES: Mapping[str, str] = MappingProxyType(
    {
        "x": "x",
        "project": "q, k, v",
        "score": "Score",
        "share": "Share",
        "moved": "Moved",
        "join": "W_O",
        "writes": "Writes",
    }
)
STEPS: Mapping[str, InsideStep] = MappingProxyType(
    {
        "x": InsideStep("x", lambda t: f"{t.n} × {t.d_model}", "x", False, show_vectors),
        "linear": InsideStep("Linear", lambda t: "W_Q  W_K  W_V", "project", True, show_linear),
        "turn": InsideStep(
            "Rotate q, k", _count_rotated, "project", True, show_rotation, lambda t: t.rotation is not None
        ),
        "products": InsideStep("q · k", lambda t: f"{t.d_k} products", "score", True, show_products),
        "scale": InsideStep(
            "÷ √d_k",
            lambda t: f"√{t.d_k}" if t.has_standard_scaling else f"× {t.scaling:.2g}",
            "score",
            True,
            show_scale,
        ),
        "mask": InsideStep("Mask", lambda t: _describe_mask(t), "score", True, show_mask),
        "softmax": InsideStep("Softmax", lambda t: f"{t.n} × {t.n}", "share", True, show_softmax),
        "values": InsideStep("× v", lambda t: f"{t.n} × {t.d_k}", "moved", True, show_values),
        "concat": InsideStep("Concat", lambda t: f"{t.n} × {t.heads * t.d_k}", "join", False, show_concatenation),
        "output": InsideStep("Linear", lambda t: "W_O", "join", False, show_output),
        "words": InsideStep("Words", lambda _: "words", "writes", True, show_words),
    }
)


def list_steps(trace: Trace) -> dict[str, InsideStep]:
    """Return the steps that the model takes, in order."""
    return {name: step for name, step in STEPS.items() if step.applies_to(trace)}
