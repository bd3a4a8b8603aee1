"""The recipes that come with a model of the app."""

from __future__ import annotations

from mha_viz.analysis.described import HeadRecipe, described
from mha_viz.analysis.recipe_tables import FACTS, Recipes, open_recipes
from mha_viz.files.assets import asset
from mha_viz.ui.caches import lasting

MODELS = 4  # whose recipes are cached


@lasting(MODELS)
def shipped(model: str, revision: str = "") -> Recipes | None:
    """The recipes of a model that comes with the app; None if it has none, or has weights of another revision."""
    folder = asset("recipes") / model
    if folder.parent != asset("recipes") or not (folder / FACTS).is_file():
        return None
    recipes = open_recipes(folder)
    return recipes if revision in ("", recipes.facts["revision"]) else None


@lasting(MODELS)
def of_heads(model: str, revision: str = "") -> tuple[HeadRecipe, ...]:
    """The recipe of every head in order; none if :func:`shipped` has none."""
    recipes = shipped(model, revision)
    return tuple(described(recipes)) if recipes else ()
