"""Decide which head does which job, from the attention maps and the marks drawn on them, and describe it in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mha_viz.lab.record import Array
from mha_viz.numerals import counted

SIGNS = "○□◇"  # signs of the first, second and third relation, as drawn by browser/player
JOB_SHARE = 1 / 3  # minimum mean share of attention to the marked words at which a head does a job
RULE = (
    "A head *does* a job if it gives, on average, more than a third of its attention to the words that its sign marks; "
    "rows whose two signs share a cell are left out."
)
MIN_MARKED_WORDS = 3  # minimum number of words that a sign must mark for a map to show a job
MAX_NAMED_HEADS = 8  # maximum number of heads that are named; more heads are only counted
NUMBER_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def find_jobs(maps: Array, places: Array) -> Array:
    """Decide which head does which job.

    Args:
        maps: attention, [head, query, key].
        places: the marked key of each query, [query, relation]; −1 where there is none.

    Returns:
        [head, relation]: whether the head's mean weight on the marks of a relation is above JOB_SHARE. Queries
        whose marks of two relations are on the same key are ambiguous, and left out if there are others.
    """
    relations = places.shape[1]
    jobs = np.zeros((len(maps), relations), bool)
    for relation in range(relations):
        keys = places[:, relation]
        has_mark = keys >= 0
        others = np.delete(places, relation, axis=1)
        is_clear = has_mark & (others != keys[:, None]).all(axis=1)
        queries = np.flatnonzero(is_clear if is_clear.any() else has_mark)
        if len(queries):
            jobs[:, relation] = maps[:, queries, keys[queries]].mean(axis=1, dtype=np.float64) > JOB_SHARE
    return jobs


def has_shared_job(jobs: Array) -> bool:
    """Return whether two heads do the same job."""
    return bool((jobs.sum(axis=0) > 1).any())


def describe_jobs(names: Sequence[str], maps: Array, places: Array) -> str:
    """Describe which head does which job: "H0 does ○; H1, H2 and H3 share □: three heads, one job."

    Return an empty text if a sign marks fewer than MIN_MARKED_WORDS words, which are too few to show a job.

    ``names``: the names of the heads; for the other arguments see :func:`find_jobs`.
    """
    jobs = find_jobs(maps, places)
    signs = dict(zip(SIGNS, jobs.T, strict=False))  # sign → [head]
    marked_signs = [sign for sign, keys in zip(SIGNS, places.T, strict=False) if (keys >= 0).any()]
    if not marked_signs or any(0 < count < MIN_MARKED_WORDS for count in (places >= 0).sum(axis=0)):
        return ""
    if not jobs.any():
        return f"No head does {_join(marked_signs, 'or')}."
    shared_signs = {sign: heads for sign, heads in signs.items() if heads.sum() > 1}
    sole_clauses: list[str] = []
    for head, name in enumerate(names):
        own_signs = [sign for sign, heads in signs.items() if heads[head] and sign not in shared_signs]
        sole_clauses += [f"{name} does {_join(own_signs)}"] if own_signs else []
    undone_signs = [sign for sign in marked_signs if not signs[sign].any()]
    missing_clauses = [f"no head does {_join(undone_signs, 'or')}"] if undone_signs else []
    idle_phrase = _list_heads(names, jobs.sum(axis=1) == 0)
    missing_clauses += [f"{idle_phrase} no job"] if idle_phrase else []
    shared_clauses = [f"{_list_heads(names, heads, 'share')} {sign}" for sign, heads in shared_signs.items()]
    sentence = "; ".join([*sole_clauses, *missing_clauses, *shared_clauses])
    is_counted = len(shared_signs) == 1 or not sole_clauses  # otherwise it is not clear which heads are counted
    if shared_signs and is_counted and max(heads.sum() for heads in shared_signs.values()) <= MAX_NAMED_HEADS:
        count = int(np.any([*shared_signs.values()], axis=0).sum())
        sentence += f": {_spell_count(count, 'head')}, {_spell_count(len(shared_signs), 'job')}"
    return f"{sentence[0].upper()}{sentence[1:]}."


def _list_heads(names: Sequence[str], heads: Array, verb: str = "") -> str:
    """Return the heads that an array [head] selects, with a verb (by default "has" or "have"); empty if none."""
    selected_names = [name for name, is_selected in zip(names, heads, strict=True) if is_selected]
    if not selected_names:
        return ""
    subject = _join(selected_names) if len(selected_names) <= MAX_NAMED_HEADS else f"{len(selected_names)} heads"
    return f"{subject} {verb or ('has' if len(selected_names) == 1 else 'have')}"


def _join(parts: Sequence[str], word: str = "and") -> str:
    """Join texts with commas, and the last two with a word."""
    return f" {word} ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _spell_count(count: int, noun: str) -> str:
    """Return a count and its noun, with a count below ten as a word: "three heads"."""
    digits, words = counted(count, noun).split(" ", 1)
    return f"{NUMBER_WORDS[count - 1] if count <= len(NUMBER_WORDS) else digits} {words}"
