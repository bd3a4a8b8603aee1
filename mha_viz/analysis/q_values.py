"""Test whether heads are right more often than by chance, over all heads and relations in a profile.

The number of right cases of a head is tested against the share that the best fixed offset gets right or, for
coreference, the better baseline: the p-value is the binomial probability of at least as many. Cases of one document are
not independent, so cases and right cases are first divided by the design effect, the squared ratio of the interval that
decides roles to Wilson's (Rao & Scott 1992, Biometrics 48, 577–585). The q-value of a test is the expected share of
false findings among the tests with a p-value like its own or lower (Benjamini & Hochberg 1995, J. R. Stat. Soc. B 57,
289–300).

The comparison with the rule by parts of speech, which is scored on the same cases, is an exact sign test: the p-value
is the probability that the head is right in at least as many of the cases in which only one of the two is right, if
both are equally likely. These cases, too, are divided by their design effect: the squared ratio of the interval of the
difference over documents to Newcombe's over cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.coreference import AGREEMENT, BASELINES, THIRD_PERSON
from mha_viz.analysis.findings import RULE_Q, Q
from mha_viz.analysis.intervals import newcombe_interval, wilson_interval
from mha_viz.analysis.syntax import strip_subtype

if TYPE_CHECKING:
    import pandas as pd

Numbers = npt.NDArray[np.float64]

CELL_COLUMNS = ["level", "relation", "direction"]
COUNT_COLUMNS = ["n", "correct", "baseline_correct", "role_low", "role_high"]
PAIRED_COLUMNS = ["n", "correct", "rule_correct", "both", "rule_low", "rule_high"]
ROLE_COLUMNS = ["role", "detail", "layer", "head"]
TEST_COLUMNS = [*ROLE_COLUMNS, *COUNT_COLUMNS, *PAIRED_COLUMNS[2:]]
REACH = 6  # in units of √n around the mean; less than 1e-31 of a binomial distribution lies beyond (Hoeffding)
ROUNDING = 6  # digits of a design effect; tables have nine


def q_values(p: npt.ArrayLike) -> Numbers:
    """Return the q-values of tests with these p-values (Benjamini & Hochberg). NaN means no test, and stays NaN."""
    values = np.asarray(p, np.float64)
    q = np.full(values.shape, np.nan)
    order = np.argsort(-values, kind="stable")[: np.count_nonzero(~np.isnan(values))]  # NaN is sorted last
    adjusted_p = values[order] * len(order) / np.arange(len(order), 0, -1)
    q[order] = np.minimum.accumulate(np.minimum(adjusted_p, 1))
    return q


def binomial_tail(correct: int, n: int, share: float, log_factorials: Numbers) -> float:
    """Return the probability that ``correct`` or more of ``n`` independent cases are right.

    Each is right with probability ``share``. ``log_factorials`` [number] has ln k! for k from 0 to ``n`` or more.
    """
    if correct <= 0 or share >= 1:
        return 1.0
    mean, reach = round(n * share), math.ceil(REACH * math.sqrt(n))
    right = np.arange(max(correct, mean - reach), min(n, max(correct, mean) + reach) + 1)
    log_binomials = log_factorials[n] - log_factorials[right] - log_factorials[n - right]
    return min(1.0, float(np.exp(log_binomials + right * math.log(share) + (n - right) * math.log1p(-share)).sum()))


def add_q_values(tables: Mapping[str, pd.DataFrame], *names: str) -> dict[str, pd.DataFrame]:
    """Return the tables of roles with these ``names``, with the columns q and rule_q added.

    They are NaN where nothing is tested.
    """
    tests = collect_tests(tables)
    keys = [*tests[ROLE_COLUMNS].itertuples(index=False, name=None)]
    lines = {name: [*tables[name][ROLE_COLUMNS].itertuples(index=False, name=None)] for name in names}
    q = {column: dict(zip(keys, tests[column], strict=True)) for column in (Q, RULE_Q)}
    return {
        name: tables[name].assign(
            **{c: [values.get(line, math.nan) for line in lines[name]] for c, values in q.items()}
        )
        for name in names
    }


def collect_tests(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return all tests of a profile as a table.

    There is one row for each head and each relation and direction that could name a role, and for each head on
    third-person pronouns. The columns are TEST_COLUMNS (``baseline_correct``: cases that the baseline gets right;
    ``rule_correct``: cases that the rule by parts of speech gets right; ``both``: cases that this rule and the head get
    right), ``p`` and ``q``, ``rule_p`` and ``rule_q``, which are NaN where there is no case. The table is empty if the
    corpus has neither trees nor chains.
    """
    import pandas as pd

    parts = [
        part
        for part in (_collect_syntax_tests(tables), _collect_coreference_tests(tables))
        if part is not None and len(part)
    ]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=TEST_COLUMNS)
    log_factorials = np.concatenate([[0.0], np.log(np.arange(1, max(table["n"], default=0) + 1)).cumsum()])
    p = np.array(
        [_compute_p(line, log_factorials) for line in table[COUNT_COLUMNS].itertuples(index=False)], np.float64
    )
    rule_p = np.array(
        [_compute_paired_p(line, log_factorials) for line in table[PAIRED_COLUMNS].itertuples(index=False)], np.float64
    )
    return table.assign(**{"p": p, Q: q_values(p), "rule_p": rule_p, RULE_Q: q_values(rule_p)})


def _compute_p(counts: Iterable[Any], log_factorials: Numbers) -> float:
    """Compute the p-value of a head from its COUNT_COLUMNS. A baseline that is never right counts as right once."""
    n, correct, baseline_correct, low, high = counts
    if not n:
        return math.nan
    case_interval = wilson_interval(correct, n)
    design_effect = round(((high - low) / (case_interval.high - case_interval.low)) ** 2, ROUNDING)
    # The ratio is NaN for fewer than a hundred cases, for which tables have no such interval.
    design_effect = design_effect if design_effect > 1 else 1.0
    return binomial_tail(
        int(correct / design_effect), int(n / design_effect), max(baseline_correct, 1) / n, log_factorials
    )


def _compute_paired_p(counts: Iterable[Any], log_factorials: Numbers) -> float:
    """Compute the p-value of a head against the rule by parts of speech, from its PAIRED_COLUMNS."""
    n, correct, rule_correct, both, low, high = counts
    if not n or math.isnan(both):
        return math.nan
    head_alone, rule_alone = int(correct - both), int(rule_correct - both)
    neither = int(n) - int(both) - head_alone - rule_alone
    case_interval = newcombe_interval(int(both), head_alone, rule_alone, neither)
    design_effect = round(((high - low) / (case_interval.high - case_interval.low)) ** 2, ROUNDING)
    design_effect = design_effect if design_effect > 1 else 1.0
    return binomial_tail(
        int(head_alone / design_effect), int((head_alone + rule_alone) / design_effect), 0.5, log_factorials
    )


def _collect_syntax_tests(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame | None:
    """Return the tests of base relations and of relations with a subtype, each name only once."""
    if "syntax" not in tables:
        return None
    heads, rules = tables["syntax"], tables["syntax_baselines"]
    relation = heads["relation"].astype(str)
    is_named = (heads["level"] == "base") | ((heads["level"] == "full") & relation.str.contains(":"))
    tests = heads[is_named & (relation.map(strip_subtype) != "punct")]
    for baseline, name in (("offset", "baseline_correct"), ("pos", "rule_correct")):
        rule_counts = rules[rules["baseline"] == baseline][[*CELL_COLUMNS, "correct"]].rename(columns={"correct": name})
        tests = tests.merge(rule_counts, on=CELL_COLUMNS)
    return tests.assign(role="syntax", detail=tests["relation"].astype(str) + " " + tests["direction"])[TEST_COLUMNS]


def _collect_coreference_tests(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame | None:
    """Return the tests on third-person pronouns; None if the corpus has no chains."""
    if "coreference" not in tables:
        return None
    heads, rules = (tables[name] for name in ("coreference", "coreference_baselines"))
    heads, rules = (table[table["mention_type"] == THIRD_PERSON] for table in (heads, rules))
    best_baseline = rules[rules["baseline"].isin(BASELINES)]["correct"].max()
    agreement = rules[rules["baseline"] == AGREEMENT]["correct"]
    rule_correct = agreement.iloc[0] if len(agreement) else math.nan
    counts = {"baseline_correct": best_baseline, "rule_correct": rule_correct}
    return heads.assign(role="coreference", detail=THIRD_PERSON, **counts)[TEST_COLUMNS]
