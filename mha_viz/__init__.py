"""See what each attention head does.

>>> import mha_viz as mv
>>> a = mv.load("minilm").encode("The animal didn't cross the street because it was too tired.")
>>> a["L3H1"].shape  # [query, key], each row sums to 1
(16, 16)
>>> links = a.links("L3H1", pin="q10")  # shows itself in Jupyter; .save("links.svg") writes a file
>>> len(a.measures())  # a DataFrame, one row per head
72
>>> both = mv.compare([(a, "L3H1"), (a, "L5H11")])
>>> mv.load_attention(a.save("animal.npz")).key == a.key
True

Namespaces: ``mv.roles`` (evaluate roles on other corpora, in other runs and against chance), ``mv.recipes`` (describe
heads by a few rules), ``mv.quantities`` (quantities other than the weight), ``mv.figures``, ``mv.errors`` and
``mv.extensions`` (add your own measures, quantities and file formats).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mha_viz.heads import Head
from mha_viz.options import register_function
from mha_viz.version import __version__

if TYPE_CHECKING:
    from mha_viz import errors, extensions, figures, quantities, recipes, roles
    from mha_viz.attention import Attention
    from mha_viz.corpus.sources import read_corpus
    from mha_viz.figures import Figure, compare, difference, overlay, publish
    from mha_viz.figures.files import load_attention
    from mha_viz.models.decomposing.outputs import copying_scores, explain_output, output_directions
    from mha_viz.models.decomposing.why import explain_scores
    from mha_viz.models.intervening.patching import activation_patching
    from mha_viz.models.reading.capture import Tap
    from mha_viz.models.reading.loading import load
    from mha_viz.request import Request
    from mha_viz.study.corpus_ablation import corpus_ablation_effects
    from mha_viz.study.decoder_heads import find_induction_heads
    from mha_viz.study.one_text import (
        ablate,
        ablation_effects,
        direct_logit_attribution,
        gradient_importance,
        minimal_ablation,
        predict,
    )
    from mha_viz.study.pairs import minimal_pairs
    from mha_viz.study.profiling import Profile, load_profile, profile
    from mha_viz.study.reading import read
    from mha_viz.study.why import explain_corpus_scores

__all__ = [
    "Attention",
    "Figure",
    "Head",
    "Profile",
    "Request",
    "Tap",
    "__version__",
    "ablate",
    "ablation_effects",
    "activation_patching",
    "compare",
    "copying_scores",
    "corpus_ablation_effects",
    "difference",
    "direct_logit_attribution",
    "errors",
    "explain_corpus_scores",
    "explain_output",
    "explain_scores",
    "extensions",
    "figures",
    "find_induction_heads",
    "gradient_importance",
    "load",
    "load_attention",
    "load_profile",
    "minimal_ablation",
    "minimal_pairs",
    "output_directions",
    "overlay",
    "predict",
    "profile",
    "publish",
    "quantities",
    "read",
    "read_corpus",
    "recipes",
    "roles",
]

# Imported on first use: all of them import NumPy, and some import torch, which takes seconds.
_NAMESPACES = ("errors", "extensions", "figures", "quantities", "recipes", "roles")
_MODULES = MappingProxyType(
    {
        "Attention": "mha_viz.attention",
        "Figure": "mha_viz.figures",
        "Profile": "mha_viz.study.profiling",
        "Request": "mha_viz.request",
        "Tap": "mha_viz.models.reading.capture",
        "ablate": "mha_viz.study.one_text",
        "ablation_effects": "mha_viz.study.one_text",
        "activation_patching": "mha_viz.models.intervening.patching",
        "compare": "mha_viz.figures",
        "copying_scores": "mha_viz.models.decomposing.outputs",
        "corpus_ablation_effects": "mha_viz.study.corpus_ablation",
        "difference": "mha_viz.figures",
        "direct_logit_attribution": "mha_viz.study.one_text",
        "explain_corpus_scores": "mha_viz.study.why",
        "explain_output": "mha_viz.models.decomposing.outputs",
        "explain_scores": "mha_viz.models.decomposing.why",
        "find_induction_heads": "mha_viz.study.decoder_heads",
        "gradient_importance": "mha_viz.study.one_text",
        "load": "mha_viz.models.reading.loading",
        "load_attention": "mha_viz.figures.files",
        "load_profile": "mha_viz.study.profiling",
        "minimal_ablation": "mha_viz.study.one_text",
        "minimal_pairs": "mha_viz.study.pairs",
        "output_directions": "mha_viz.models.decomposing.outputs",
        "overlay": "mha_viz.figures",
        "predict": "mha_viz.study.one_text",
        "profile": "mha_viz.study.profiling",
        "publish": "mha_viz.figures",
        "read": "mha_viz.study.reading",
        "read_corpus": "mha_viz.corpus.sources",
    }
)


def __getattr__(name: str) -> Any:
    if name in _NAMESPACES:
        return import_module(f"{__name__}.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return all names, including those that are imported on first use."""
    return sorted({*globals(), *__all__})


def _make_drawer(name: str) -> Callable[..., Any]:
    """Return the function of the notebook API with this name; it is imported when it is first called."""

    def draw(*arguments: Any, **options: Any) -> Any:
        from mha_viz import figures as figure_api

        return getattr(figure_api, name)(*arguments, **options)

    return draw


def _save(attention: Attention, path: str | os.PathLike[str]) -> Path:
    from mha_viz.figures.files import write

    return write(attention, path)


def _make_measures(attention: Attention) -> Any:
    from mha_viz.analysis.metrics import make_metrics_table

    return make_metrics_table(attention)


register_function("save", _save)
register_function("measures", _make_measures)
for _name in ("grid", "heatmap", "links"):
    register_function(_name, _make_drawer(_name))
