"""Readings of quantities other than the weight, [layer, head, query, key], which are drawn like weights.

>>> import mha_viz as mv
>>> mv.quantities.rollout(mv.load("toy").encode("the dog barks .")).quantity
'rollout'
"""

from mha_viz.analysis.bundled_data import unexplained
from mha_viz.attention.rollout import rollout
from mha_viz.models.decomposing.contributions import norm_weighted
from mha_viz.models.intervening.gradients import gradient_weighted

__all__ = ["gradient_weighted", "norm_weighted", "rollout", "unexplained"]
