"""See what each attention head does.

>>> import mha_viz as mv
>>> a = mv.load("minilm").encode("The animal didn't cross the street because it was too tired.")
>>> a["L3H1"].shape  # [query, key], each row sums to 1
(16, 16)
>>> links = a.links("L3H1", pin="q10")  # shows itself in Jupyter; .save("links.svg") writes a file
>>> len(a.measures())  # a DataFrame, one row per head
72
>>> both = mv.compare([(a, "L3H1"), (a, "L5H11")])
>>> mv.open_attention(a.save("animal.npz")).key == a.key
True
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mha_viz.errors import EvidenceMissingWarning, MhaVizError, MissingGlyphWarning, TextCutWarning
from mha_viz.heads import Head
from mha_viz.options import draws
from mha_viz.version import __version__

if TYPE_CHECKING:
    from mha_viz.analysis.described import unexplained
    from mha_viz.analysis.established import establish
    from mha_viz.analysis.matching import in_runs
    from mha_viz.analysis.recipe_tables import Recipes, open_recipes
    from mha_viz.analysis.replication import replicate
    from mha_viz.attention import Attention
    from mha_viz.attention.rollout import rollout
    from mha_viz.corpus.sources import iterate, open_corpus
    from mha_viz.corpus.treebank import Corpus, Sentence
    from mha_viz.exports import open_attention
    from mha_viz.figure import Figure, compare, difference, over_image, publish
    from mha_viz.figures.layout import Size
    from mha_viz.figures.report import report
    from mha_viz.figures.view import View
    from mha_viz.models.capture import Tap
    from mha_viz.models.encoder import Encoder
    from mha_viz.models.gradients import gradient_weighted
    from mha_viz.models.loading import load
    from mha_viz.models.norms import norm_weighted
    from mha_viz.models.patching import patch
    from mha_viz.models.why import why
    from mha_viz.request import Request
    from mha_viz.study.chance import chance_roles
    from mha_viz.study.decoder_heads import decoder_heads
    from mha_viz.study.link_groups import link_groups
    from mha_viz.study.matching import match_heads
    from mha_viz.study.one_text import answer, direct, effects, importance, smallest_switch, without
    from mha_viz.study.over_corpus import effect
    from mha_viz.study.paired import paired, paired_roles
    from mha_viz.study.profiling import Profile, open_profile, profile
    from mha_viz.study.reading import read
    from mha_viz.study.recipes import recipes
    from mha_viz.study.replaced import replaced, replaced_accuracy
    from mha_viz.study.search import search
    from mha_viz.study.several import profiles, side_by_side
    from mha_viz.study.stability import compare_recipes
    from mha_viz.study.used_roles import used_roles
    from mha_viz.study.why import why_over

__all__ = [
    "Attention",
    "Corpus",
    "Encoder",
    "EvidenceMissingWarning",
    "Figure",
    "Head",
    "MhaVizError",
    "MissingGlyphWarning",
    "Profile",
    "Recipes",
    "Request",
    "Sentence",
    "Size",
    "Tap",
    "TextCutWarning",
    "View",
    "__version__",
    "answer",
    "chance_roles",
    "compare",
    "compare_recipes",
    "decoder_heads",
    "difference",
    "direct",
    "effect",
    "effects",
    "establish",
    "gradient_weighted",
    "importance",
    "in_runs",
    "iterate",
    "link_groups",
    "load",
    "match_heads",
    "norm_weighted",
    "open_attention",
    "open_corpus",
    "open_profile",
    "open_recipes",
    "over_image",
    "paired",
    "paired_roles",
    "patch",
    "profile",
    "profiles",
    "publish",
    "read",
    "recipes",
    "replaced",
    "replaced_accuracy",
    "replicate",
    "report",
    "rollout",
    "search",
    "side_by_side",
    "smallest_switch",
    "unexplained",
    "used_roles",
    "why",
    "why_over",
    "without",
]

# Imported on first use, because they import NumPy, and some of them torch, which takes seconds.
_HOMES = MappingProxyType(
    {
        "Attention": "mha_viz.attention",
        "Corpus": "mha_viz.corpus.treebank",
        "Encoder": "mha_viz.models.encoder",
        "Figure": "mha_viz.figure",
        "Profile": "mha_viz.study.profiling",
        "Recipes": "mha_viz.analysis.recipe_tables",
        "Request": "mha_viz.request",
        "Sentence": "mha_viz.corpus.treebank",
        "Size": "mha_viz.figures.layout",
        "Tap": "mha_viz.models.capture",
        "View": "mha_viz.figures.view",
        "answer": "mha_viz.study.one_text",
        "chance_roles": "mha_viz.study.chance",
        "compare": "mha_viz.figure",
        "compare_recipes": "mha_viz.study.stability",
        "decoder_heads": "mha_viz.study.decoder_heads",
        "difference": "mha_viz.figure",
        "direct": "mha_viz.study.one_text",
        "effect": "mha_viz.study.over_corpus",
        "effects": "mha_viz.study.one_text",
        "establish": "mha_viz.analysis.established",
        "gradient_weighted": "mha_viz.models.gradients",
        "importance": "mha_viz.study.one_text",
        "in_runs": "mha_viz.analysis.matching",
        "iterate": "mha_viz.corpus.sources",
        "link_groups": "mha_viz.study.link_groups",
        "load": "mha_viz.models.loading",
        "match_heads": "mha_viz.study.matching",
        "norm_weighted": "mha_viz.models.norms",
        "open_attention": "mha_viz.exports",
        "open_corpus": "mha_viz.corpus.sources",
        "open_profile": "mha_viz.study.profiling",
        "open_recipes": "mha_viz.analysis.recipe_tables",
        "over_image": "mha_viz.figure",
        "paired": "mha_viz.study.paired",
        "paired_roles": "mha_viz.study.paired",
        "patch": "mha_viz.models.patching",
        "profile": "mha_viz.study.profiling",
        "profiles": "mha_viz.study.several",
        "publish": "mha_viz.figure",
        "read": "mha_viz.study.reading",
        "recipes": "mha_viz.study.recipes",
        "replaced": "mha_viz.study.replaced",
        "replaced_accuracy": "mha_viz.study.replaced",
        "replicate": "mha_viz.analysis.replication",
        "report": "mha_viz.figures.report",
        "rollout": "mha_viz.attention.rollout",
        "search": "mha_viz.study.search",
        "side_by_side": "mha_viz.study.several",
        "smallest_switch": "mha_viz.study.one_text",
        "unexplained": "mha_viz.analysis.described",
        "used_roles": "mha_viz.study.used_roles",
        "why": "mha_viz.models.why",
        "why_over": "mha_viz.study.why",
        "without": "mha_viz.study.one_text",
    }
)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Every name, including those that are imported on first use."""
    return sorted({*globals(), *__all__})


def _drawn_by(name: str) -> Callable[..., Any]:
    """The function of the notebook API with this name, imported when it is first called."""

    def draw(*arguments: Any, **options: Any) -> Any:
        from mha_viz import figure as figure_api

        return getattr(figure_api, name)(*arguments, **options)

    return draw


def _save(attention: Attention, path: str | os.PathLike[str]) -> Path:
    from mha_viz.exports import write

    return write(attention, path)


def _measures(attention: Attention) -> Any:
    from mha_viz.analysis.measures import table

    return table(attention)


draws("save", _save)
draws("measures", _measures)
for _name in ("grid", "heatmap", "links"):
    draws(_name, _drawn_by(_name))
