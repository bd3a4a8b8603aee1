"""Evaluate the roles of a profile: on other corpora, in models trained with other seeds, against chance, and
with their heads off.

Also compare profiles, match heads of two models, and search and group the links of a head.

>>> import mha_viz as mv
>>> mv.roles.report(mv.load_profile("minilm"), kinds="syntax").table["role"].unique().tolist()
['syntax']
"""

from mha_viz.analysis.bundled_data import establish
from mha_viz.analysis.matching import count_in_runs
from mha_viz.analysis.replication import replicate
from mha_viz.figures.words.report import report
from mha_viz.study.chance import permutation_test
from mha_viz.study.link_groups import group_links
from mha_viz.study.many_profiles import compare_scores, profile_all
from mha_viz.study.matching import match_heads
from mha_viz.study.paired_heads import compare_heads
from mha_viz.study.paired_heads import compare_roles as compare
from mha_viz.study.search import search_links
from mha_viz.study.used_roles import ablate_roles as ablate

__all__ = [
    "ablate",
    "compare",
    "compare_heads",
    "compare_scores",
    "count_in_runs",
    "establish",
    "group_links",
    "match_heads",
    "permutation_test",
    "profile_all",
    "replicate",
    "report",
    "search_links",
]
