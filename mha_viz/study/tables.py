"""The tables of a profile, from its sums."""

from __future__ import annotations

import importlib.metadata
import math
import platform
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mha_viz.analysis import patterns, roles
from mha_viz.analysis.coreference import BASELINES, TYPES
from mha_viz.analysis.profile import HEADINGS, UNTRAINED
from mha_viz.analysis.syntax import DIRECTIONS, OFFSETS, SIDES, Gold, Relations, gold
from mha_viz.attention import Head
from mha_viz.corpus.treebank import Corpus, Gap
from mha_viz.models.encoder import Encoder
from mha_viz.study.gap import decided, nearest_name
from mha_viz.study.plan import Plan
from mha_viz.study.tally import Tally

Rows = Iterator[tuple[Any, ...]]


class Measured(NamedTuple):
    """A corpus and the sums of the model over it, with trained and with untrained weights."""

    corpus: Corpus | Gap
    relations: Relations
    trained: Tally
    untrained: Tally


class _Syntax(NamedTuple):
    """Correct predictions [half, direction, row, head] of both passes, and the gold counts."""

    relations: Relations
    gold: Gold
    correct: np.ndarray
    untrained: np.ndarray


def facts(encoder: Encoder, corpus: Corpus | Gap, plan: Plan, definitions: str, seed: int) -> dict[str, Any]:
    """The contents of profile.json."""
    counts: dict[str, int] = (
        {"rows": len(corpus.rows), "decided": sum(map(decided, corpus.rows))}
        if isinstance(corpus, Gap)
        else _counts(corpus, plan)
    )
    left_out = [*plan.left_out, *([] if isinstance(corpus, Gap) else corpus.left_out)]
    return {
        "model": encoder.name,
        "revision": encoder.revision,
        "layers": encoder.layers,
        "heads": encoder.heads,
        "corpus": corpus.name,
        "sha256": corpus.digest,
        "counts": counts,
        "left_out": len(left_out),
        "left_out_first": left_out[:50],
        "untrained_seed": seed,
        "definitions": definitions,
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in ("mha-viz", "torch", "transformers", "numpy")},
        },
    }


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "a checkout" if name == "mha-viz" else "not installed"


def _counts(corpus: Corpus, plan: Plan) -> dict[str, int]:
    read = [s for s in plan.sentences if s is not None]
    return {
        "sentences": len(read),
        "words": sum(len(corpus.sentences[i].words) for i, s in enumerate(plan.sentences) if s is not None),
        "pieces": sum(len(s) for s in read),
        "chunks": len(plan.chunks),
        "anaphors": sum(len(chunk.anaphors) for chunk, _ in plan.chunks),
    }


def tables(measured: Measured, encoder: Encoder) -> tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame]]:
    """All tables that the corpus allows, for the trained and for the untrained weights."""
    heads = [Head(layer, head) for layer in range(encoder.layers) for head in range(encoder.heads)]
    corpus = measured.corpus
    has_trees, has_chains = (isinstance(corpus, Corpus) and has for has in _annotations(corpus))
    syntax = _syntax(measured) if has_trees else None
    trained, untrained = (_pass_tables(tally, heads, measured) for tally in (measured.trained, measured.untrained))
    if syntax is not None:
        trained |= _syntax_tables(syntax, heads)
    if has_chains or isinstance(corpus, Gap):
        trained["coreference_baselines"] = _frame("coreference_baselines", _coreference_baselines(measured, heads))
        trained["coreference_chosen"] = _frame("coreference_chosen", _coreference_chosen(measured, heads))
    for tally, frames in ((measured.trained, trained), (measured.untrained, untrained)):
        counts = None if syntax is None else syntax.correct if tally is measured.trained else syntax.untrained
        frames["roles"] = _frame("roles", _roles(_pass_roles(tally, syntax, counts, has_chains), heads))
    return trained, {name: table for name, table in untrained.items() if name in UNTRAINED}


def _annotations(corpus: Corpus | Gap) -> tuple[bool, bool]:
    return (corpus.has_trees, corpus.has_chains) if isinstance(corpus, Corpus) else (False, False)


def _pass_roles(tally: Tally, syntax: _Syntax | None, correct: np.ndarray | None, has_chains: bool) -> list[roles.Role]:
    """The roles of one pass."""
    sums, chains = tally.patterns.sums, tally.coreference.sums
    heads_with_roles = [*roles.positional(sums), *roles.delimiting(sums), *roles.broad(sums)]
    if syntax is not None and correct is not None:
        heads_with_roles += roles.syntactic(syntax.relations, syntax.gold, correct)
    if has_chains:
        heads_with_roles += roles.coreferential(chains["n"], chains["correct"], chains["baseline"])
    return heads_with_roles


def _frame(name: str, lines: Rows) -> pd.DataFrame:
    return pd.DataFrame(list(lines), columns=list(HEADINGS[name]))


def _pass_tables(tally: Tally, heads: list[Head], measured: Measured) -> dict[str, pd.DataFrame]:
    """The tables of one pass that do not need the other."""
    if isinstance(measured.corpus, Gap):
        return {"gap": _frame("gap", _counted(heads, tally.gap["n"].sum(), tally.gap["correct"].sum(axis=0)))}
    frames = {
        "position": _frame("position", _position(tally, heads)),
        "delimiter": _frame("delimiter", _per_head(heads, tally.patterns.sums, "delimiter", "rows")),
        "entropy": _frame("entropy", _entropy(tally, heads)),
        "distance": _frame("distance", _distance(tally, heads)),
    }
    if measured.corpus.has_trees:
        frames["uas"] = _frame("uas", _counted(heads, tally.syntax.sums["edge_count"], tally.syntax.sums["edges"]))
    if measured.corpus.has_chains:
        frames["coreference"] = _frame("coreference", _coreference(tally, heads))
    return frames


def _ratio(correct: Any, n: Any) -> float:
    return int(correct) / int(n) if n else math.nan


def _counted(heads: list[Head], n: Any, correct: Any) -> Rows:
    for at, head in enumerate(heads):
        yield (*head, int(n), int(correct[at]), _ratio(correct[at], n))


def _position(tally: Tally, heads: list[Head]) -> Rows:
    sums = tally.patterns.sums
    mass, maxima = roles.share(sums["mass"], sums["mass_rows"]), roles.share(sums["maxima"], sums["maxima_rows"])
    for at, head in enumerate(heads):
        for i, offset in enumerate(patterns.OFFSETS):
            yield (*head, offset, mass[at, i], maxima[at, i])


def _per_head(heads: list[Head], sums: Any, name: str, rows: str) -> Rows:
    shares = roles.share(sums[name], sums[rows])
    for at, head in enumerate(heads):
        yield (*head, *shares[at])


def _entropy(tally: Tally, heads: list[Head]) -> Rows:
    sums = tally.patterns.sums
    nats, normalised = roles.share(sums["nats"], sums["rows"]), roles.share(sums["normalised"], sums["sentences"])
    for at, head in enumerate(heads):
        yield (*head, nats[at], normalised[at])


def _distance(tally: Tally, heads: list[Head]) -> Rows:
    matrix = tally.distances.matrix()
    for a, head in enumerate(heads):
        for b in range(a + 1, len(heads)):
            yield (str(head), str(heads[b]), matrix[a, b])


# ---- syntax ---------------------------------------------------------------------------------------------


def _syntax(measured: Measured) -> _Syntax:
    relations, corpus = measured.relations, measured.corpus
    assert isinstance(corpus, Corpus)
    read = [(number, corpus.sentences[number]) for number in np.flatnonzero(measured.trained.done).tolist()]
    by_row = [
        np.einsum("hdrk,rt->hdtk", tally.syntax.sums["correct"], relations.member)
        for tally in (measured.trained, measured.untrained)
    ]
    return _Syntax(relations, gold(relations, read), *by_row)


def _syntax_tables(syntax: _Syntax, heads: list[Head]) -> dict[str, pd.DataFrame]:
    return {
        "syntax": _frame("syntax", _syntax_rows(syntax, heads)),
        "syntax_baselines": _frame("syntax_baselines", _baselines(syntax, heads)),
        "syntax_chosen": _frame("syntax_chosen", _chosen(syntax, heads)),
    }


def _syntax_rows(syntax: _Syntax, heads: list[Head]) -> Rows:
    n, correct = syntax.gold.n.sum(axis=0), syntax.correct.sum(axis=0)
    for r, row in enumerate(syntax.relations.rows):
        for d, direction in enumerate(DIRECTIONS):
            for at, head in enumerate(heads):
                right, cases = int(correct[d, r, at]), int(n[d, r])
                yield (*row, direction, *head, cases, right, _ratio(right, cases), *roles.wilson(right, cases))


def _baselines(syntax: _Syntax, heads: list[Head]) -> Rows:
    n = syntax.gold.n.sum(axis=0)
    offset, upos = syntax.gold.offset.sum(axis=0), syntax.gold.upos.sum(axis=0)
    untrained = syntax.untrained.sum(axis=0)
    for r, row in enumerate(syntax.relations.rows):
        for d, direction in enumerate(DIRECTIONS):
            cases = int(n[d, r])
            best = int(offset[d, r].argmax())
            yield (*row, direction, "offset", f"{OFFSETS[best]:+d}", cases, *_score(offset[d, r, best], cases))
            side, tag = np.unravel_index(int(upos[d, r].argmax()), upos[d, r].shape)
            name = f"{SIDES[side]} {syntax.relations.upos[tag]}"
            yield (*row, direction, "pos", name, cases, *_score(upos[d, r, side, tag], cases))
            head = int(untrained[d, r].argmax())
            yield (*row, direction, "untrained", str(heads[head]), cases, *_score(untrained[d, r, head], cases))


def _score(correct: Any, cases: int) -> tuple[int, float]:
    return int(correct), _ratio(correct, cases)


def _chosen(syntax: _Syntax, heads: list[Head]) -> Rows:
    for choice in roles.choose(syntax.relations, syntax.gold, syntax.correct):
        (n_even, n_odd), (even, odd) = choice.n, choice.correct
        untrained = syntax.untrained[1, choice.direction, choice.row].max()
        yield (
            *syntax.relations.rows[choice.row],
            DIRECTIONS[choice.direction],
            *heads[choice.head],
            n_even,
            _ratio(even, n_even),
            n_odd,
            _ratio(odd, n_odd),
            *roles.wilson(odd, n_odd),
            *(_ratio(right, n_odd) for right in (choice.offset, choice.upos, untrained)),
        )


# ---- coreference, roles ---------------------------------------------------------------------------------


def _coreference(tally: Tally, heads: list[Head]) -> Rows:
    n, correct = (tally.coreference.sums[name].sum(axis=0) for name in ("n", "correct"))
    for at, head in enumerate(heads):
        for i, name in enumerate(TYPES):
            yield (*head, name, int(n[i]), *_score(correct[i, at], int(n[i])))


def _coreference_baselines(measured: Measured, heads: list[Head]) -> Rows:
    if isinstance(measured.corpus, Gap):
        yield from _gap_baselines(measured, measured.corpus, heads)
        return
    sums = measured.trained.coreference.sums
    n, baseline = sums["n"].sum(axis=0), sums["baseline"].sum(axis=0)
    untrained = measured.untrained.coreference.sums["correct"].sum(axis=0)
    for i, name in enumerate(TYPES):
        for b, rule in enumerate(BASELINES):
            yield (name, rule, "", int(n[i]), *_score(baseline[i, b], int(n[i])))
        head = int(untrained[i].argmax())
        yield (name, "untrained", str(heads[head]), int(n[i]), *_score(untrained[i, head], int(n[i])))


def _gap_baselines(measured: Measured, gap: Gap, heads: list[Head]) -> Rows:
    rows = [row for row, scored in zip(gap.rows, measured.trained.gap["scored"], strict=True) if scored]
    yield ("gap", "nearest", "name nearer in characters", len(rows), *_score(sum(map(nearest_name, rows)), len(rows)))
    n, correct = int(measured.untrained.gap["n"].sum()), measured.untrained.gap["correct"].sum(axis=0)
    head = int(correct.argmax())
    yield ("gap", "untrained", str(heads[head]), n, *_score(correct[head], n))


def _coreference_chosen(measured: Measured, heads: list[Head]) -> Rows:
    """For every kind of mention, or for GAP: the best head on the even half, and its accuracy on the odd half."""
    corpus = measured.corpus
    if isinstance(corpus, Gap):
        sums, untrained = measured.trained.gap, measured.untrained.gap
        odd = [r for i, r in enumerate(corpus.rows) if i % 2 and measured.trained.gap["scored"][i]]
        rules = (sum(map(nearest_name, odd)), None)
        yield from _chosen_row("gap", sums["n"], sums["correct"], rules, untrained["correct"][1], heads)
        return
    sums, untrained = measured.trained.coreference.sums, measured.untrained.coreference.sums
    for i, name in enumerate(TYPES):
        rules = tuple(sums["baseline"][1, i].tolist())
        yield from _chosen_row(name, sums["n"][:, i], sums["correct"][:, i], rules, untrained["correct"][1, i], heads)


def _chosen_row(
    name: str,
    n: np.ndarray,
    correct: np.ndarray,
    rules: tuple[int | None, ...],
    untrained: np.ndarray,
    heads: list[Head],
) -> Rows:
    n_even, n_odd = (int(count) for count in n)
    if not n_even or not n_odd:
        return
    head = int(correct[0].argmax())
    right = int(correct[1, head])
    beside = (math.nan if rule is None else rule / n_odd for rule in (*rules, int(untrained.max())))
    accuracy = (n_even, int(correct[0, head]) / n_even, n_odd, right / n_odd)
    yield (name, *heads[head], *accuracy, *roles.wilson(right, n_odd), *beside)


def _roles(heads_with_roles: list[roles.Role], heads: list[Head]) -> Rows:
    order = {name: i for i, name in enumerate(roles.ROLES)}
    for role in sorted(heads_with_roles, key=lambda r: (r.head, order[r.role], -r.gain)):
        interval = role.interval or (math.nan, math.nan)
        yield (*heads[role.head], role.role, role.detail, role.score, role.baseline, role.gain, role.n, *interval)
