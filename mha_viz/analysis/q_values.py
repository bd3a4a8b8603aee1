"""How easily a head would be so often right by chance, over all heads and relations that a profile has looked at.

A head's right cases are compared with the share that the best fixed offset gets right, or for coreference the better
baseline: the probability of as many or more, by the binomial distribution. Cases of one document are not independent,
so cases and right ones are first divided by the design effect, the squared ratio of the interval that decides roles to
Wilson's (Rao & Scott 1992, Biometrics 48, 577–585). The q-value of a test says how many of the tests with a p-value
like its own or lower are expected to be false (Benjamini & Hochberg 1995, J. R. Stat. Soc. B 57, 289–300).

Against the rule by parts of speech, which is judged by the same cases, it is an exact sign test: of the cases in which
only one of both is right, the head gets as many or more if each is as likely. These cases, too, are divided by the
design effect, that of the difference: the squared ratio of its interval over documents to Newcombe's over cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.coreference import AGREEMENT, BASELINES, THIRD_PERSON
from mha_viz.analysis.findings import RULE_Q, Q
from mha_viz.analysis.intervals import newcombe, wilson
from mha_viz.analysis.syntax import base_of

if TYPE_CHECKING:
    import pandas as pd

Numbers = npt.NDArray[np.float64]

CELL = ["level", "relation", "direction"]
COUNTS = ["n", "correct", "rule", "role_low", "role_high"]
PAIRED = ["n", "correct", "by_rule", "both", "rule_low", "rule_high"]
ROLE = ["role", "detail", "layer", "head"]
TESTED = [*ROLE, *COUNTS, *PAIRED[2:]]
REACH = 6  # square roots of n from the mean: the share of a binomial distribution beyond it is below 1e-31 (Hoeffding)
ROUNDING = 6  # digits of a design effect: tables have nine


def q_values(p: npt.ArrayLike) -> Numbers:
    """The q-values of tests with these p-values, by Benjamini and Hochberg; NaN is no test, and stays NaN."""
    values = np.asarray(p, np.float64)
    q = np.full(values.shape, np.nan)
    falling = np.argsort(-values, kind="stable")[: np.count_nonzero(~np.isnan(values))]  # NaN comes last
    at_most = values[falling] * len(falling) / np.arange(len(falling), 0, -1)
    q[falling] = np.minimum.accumulate(np.minimum(at_most, 1))
    return q


def at_least(correct: int, n: int, share: float, log_factorials: Numbers) -> float:
    """The probability that ``correct`` or more of ``n`` independent cases are right, each with probability ``share``.
    ``log_factorials`` [number]: of 0 to ``n`` or more."""
    if correct <= 0 or share >= 1:
        return 1.0
    mean, reach = round(n * share), math.ceil(REACH * math.sqrt(n))
    right = np.arange(max(correct, mean - reach), min(n, max(correct, mean) + reach) + 1)
    ways = log_factorials[n] - log_factorials[right] - log_factorials[n - right]
    return min(1.0, float(np.exp(ways + right * math.log(share) + (n - right) * math.log1p(-share)).sum()))


def with_q(tables: Mapping[str, pd.DataFrame], *names: str) -> dict[str, pd.DataFrame]:
    """The tables of roles with these ``names``, with the columns q and rule_q: NaN for what is not tested."""
    tests = looked_at(tables)
    keys = [*tests[ROLE].itertuples(index=False, name=None)]
    lines = {name: [*tables[name][ROLE].itertuples(index=False, name=None)] for name in names}
    q = {column: dict(zip(keys, tests[column], strict=True)) for column in (Q, RULE_Q)}
    return {
        name: tables[name].assign(**{c: [of.get(line, math.nan) for line in lines[name]] for c, of in q.items()})
        for name in names
    }


def looked_at(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """From the tables of a profile one row for each head and each relation and direction by which a role could be
    named, and for each head on third-person pronouns: TESTED (``rule``: how many cases the baseline gets right,
    ``by_rule`` the rule by parts of speech, ``both`` this and the head), ``p`` and ``q``, ``rule_p`` and ``rule_q``,
    NaN where there is no case. Empty if the corpus has neither trees nor chains."""
    import pandas as pd

    parts = [part for part in (_syntax(tables), _coreference(tables)) if part is not None and len(part)]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=TESTED)
    log_factorials = np.concatenate([[0.0], np.log(np.arange(1, max(table["n"], default=0) + 1)).cumsum()])
    p = np.array([_p(line, log_factorials) for line in table[COUNTS].itertuples(index=False)], np.float64)
    rule_p = np.array([_paired_p(line, log_factorials) for line in table[PAIRED].itertuples(index=False)], np.float64)
    return table.assign(**{"p": p, Q: q_values(p), "rule_p": rule_p, RULE_Q: q_values(rule_p)})


def _p(counts: Iterable[Any], log_factorials: Numbers) -> float:
    """The p-value of a head's COUNTS; a baseline that is never right counts as right once."""
    n, correct, rule, low, high = counts
    if not n:
        return math.nan
    plain = wilson(correct, n)
    effect = round(((high - low) / (plain.high - plain.low)) ** 2, ROUNDING)
    effect = effect if effect > 1 else 1.0  # also where the table has no such interval, below a hundred cases
    return at_least(int(correct / effect), int(n / effect), max(rule, 1) / n, log_factorials)


def _paired_p(counts: Iterable[Any], log_factorials: Numbers) -> float:
    """Compute the p-value of a head's cases against the rule by parts of speech, from PAIRED."""
    n, correct, by_rule, both, low, high = counts
    if not n or math.isnan(both):
        return math.nan
    alone, by_rule_alone = int(correct - both), int(by_rule - both)
    plain = newcombe(int(both), alone, by_rule_alone, int(n) - int(both) - alone - by_rule_alone)
    effect = round(((high - low) / (plain.high - plain.low)) ** 2, ROUNDING)
    effect = effect if effect > 1 else 1.0
    return at_least(int(alone / effect), int((alone + by_rule_alone) / effect), 0.5, log_factorials)


def _syntax(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame | None:
    """The tests of relations with a subtype, and of all without it; of those with the same name, one."""
    if "syntax" not in tables:
        return None
    heads, rules = tables["syntax"], tables["syntax_baselines"]
    relation = heads["relation"].astype(str)
    is_named = (heads["level"] == "base") | ((heads["level"] == "full") & relation.str.contains(":"))
    named = heads[is_named & (relation.map(base_of) != "punct")]
    both = named
    for baseline, name in (("offset", "rule"), ("pos", "by_rule")):
        right = rules[rules["baseline"] == baseline][[*CELL, "correct"]].rename(columns={"correct": name})
        both = both.merge(right, on=CELL)
    return both.assign(role="syntax", detail=both["relation"].astype(str) + " " + both["direction"])[TESTED]


def _coreference(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame | None:
    if "coreference" not in tables:
        return None
    heads, rules = (tables[name] for name in ("coreference", "coreference_baselines"))
    heads, rules = (table[table["mention_type"] == THIRD_PERSON] for table in (heads, rules))
    better = rules[rules["baseline"].isin(BASELINES)]["correct"].max()
    agreement = rules[rules["baseline"] == AGREEMENT]["correct"]
    by_rule = agreement.iloc[0] if len(agreement) else math.nan
    return heads.assign(role="coreference", detail=THIRD_PERSON, rule=better, by_rule=by_rule)[TESTED]
