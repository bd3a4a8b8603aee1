"""Recipes, which describe a head by a few named rules: fit them to a corpus, load them, and measure what they miss.

>>> import mha_viz as mv
>>> mv.recipes.load("toy").head("L1H1")["recipes"]["rule"].nunique() <= 6
True
"""

from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.recipe_tables import load_recipes as load
from mha_viz.study.recipes import fit_recipes as fit
from mha_viz.study.replacements import ablate_recipes as ablate
from mha_viz.study.replacements import score_recipes as score
from mha_viz.study.stability import compare_recipes as compare

__all__ = ["Recipes", "ablate", "compare", "fit", "load", "score"]
