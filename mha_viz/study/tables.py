"""Build the tables of a profile from its sums."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import math
import platform
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mha_viz.analysis import evidence, examples, findings, metrics, roles
from mha_viz.analysis.coreference import AGREEMENT, BASELINES, THIRD_PERSON, TYPES, AgreementComparison
from mha_viz.analysis.distance import compute_divergences
from mha_viz.analysis.findings import OTHER_COLUMNS
from mha_viz.analysis.intervals import Documents, count_documents_with_cases, wilson_interval
from mha_viz.analysis.metrics import MEASURES, compute_share
from mha_viz.analysis.profile import COPYING, DEFINITIONS, HEADINGS, UNTRAINED_TABLES, Profile
from mha_viz.analysis.q_values import add_q_values
from mha_viz.analysis.syntax import DIRECTIONS, GoldCounts, find_best_offset
from mha_viz.attention import Head
from mha_viz.corpus.excerpts import SentenceSpan
from mha_viz.corpus.treebank import Corpus, Gap, Sentence
from mha_viz.errors import ModelUnsupported
from mha_viz.heads import list_heads
from mha_viz.model_names import get_display_name
from mha_viz.models.decomposing.outputs import copying_scores
from mha_viz.models.reading.encoder import Encoder
from mha_viz.study.gap import is_nearest_name_right
from mha_viz.study.measures import PassSums
from mha_viz.study.sums import PASSES, Sums

TableRows = Iterator[tuple[Any, ...]]
MEASURED_COLUMNS = len(findings.MEASURED_COLUMNS)


class MeasuredCorpus(NamedTuple):
    """A corpus, possibly without its sentences, and the sums over it.

    ``trained`` are the sums with trained weights, ``untrained`` those with untrained weights, if they were measured.
    """

    corpus: Corpus | Gap
    sums: Sums
    trained: PassSums
    untrained: PassSums | None

    @property
    def documents(self) -> Documents:
        """The documents to resample for intervals."""
        return self.sums.resampling_documents


def build_profile(
    encoder: Encoder,
    corpus: Corpus | Gap,
    sums: Sums,
    seed: int,
    sentences: Callable[[Sequence[SentenceSpan]], tuple[Sentence, ...]],
) -> Profile:
    """Return the profile of a corpus from its sums; ``sentences`` returns the sentences of the table ``evidence``."""
    trained, untrained = (PassSums.from_sums(sums, name) if sums.select(name) else None for name in PASSES)
    assert trained is not None
    measured = MeasuredCorpus(corpus, sums, trained, untrained)
    trained_tables, untrained_tables = build_tables(measured, encoder)
    spans = examples.list_spans(trained_tables["evidence"]) if "evidence" in trained_tables else []
    return Profile(
        build_facts(encoder, corpus, sums, seed),
        trained_tables,
        untrained_tables,
        sentences(spans) if spans else (),
    )


def build_facts(encoder: Encoder, corpus: Corpus | Gap, sums: Sums, seed: int) -> dict[str, Any]:
    """Return the contents of profile.json."""
    return {
        "model": encoder.name,
        **({"display_name": name} if (name := get_display_name(encoder.name)) else {}),
        "revision": encoder.revision,
        "layers": encoder.layers,
        "heads": encoder.heads,
        **({} if encoder.has_every_layer else {"layer_numbers": list(encoder.layer_numbers)}),
        "corpus": corpus.name,
        "sha256": corpus.digest,
        "counts": {name: count for name, count in sums.counted.items() if name != "left_out"},
        "left_out": sums.counted["left_out"],
        "left_out_first": [line for *_, line in sums.left_out],
        "untrained_seed": seed,
        "definitions": DEFINITIONS,
        "versions": {
            "python": platform.python_version(),
            **{name: _find_version(name) for name in ("mha-viz", "torch", "transformers", "numpy")},
        },
    }


def _find_version(name: str) -> str:
    """Return the version of an installed package."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "a checkout" if name == "mha-viz" else "not installed"


def build_tables(measured: MeasuredCorpus, encoder: Encoder) -> tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame]]:
    """Return all tables that the corpus allows, for the trained and for the untrained weights."""
    heads = [*list_heads(encoder.layer_numbers, encoder.heads)]
    corpus = measured.corpus
    has_trees, has_chains = (isinstance(corpus, Corpus) and is_annotated for is_annotated in _find_annotations(corpus))
    syntax = _count_syntax(measured) if has_trees else None
    trained = _make_pass_tables(measured.trained, heads, measured)
    if syntax is not None:
        trained |= {
            "syntax": _make_frame("syntax", _iter_syntax_rows(syntax, heads)),
            "syntax_baselines": _make_frame("syntax_baselines", _iter_baseline_rows(syntax, heads)),
            "syntax_chosen": _make_frame("syntax_chosen", _iter_chosen_head_rows(syntax, heads)),
            "choice": _make_frame("choice", _iter_choice_rows(syntax, heads)),
        }
    if has_chains or isinstance(corpus, Gap):
        trained["coreference_baselines"] = _make_frame(
            "coreference_baselines", _iter_coreference_baseline_rows(measured, heads)
        )
        trained["coreference_chosen"] = _make_frame(
            "coreference_chosen", _iter_coreference_chosen_rows(measured, heads)
        )
    trained |= _make_role_tables(measured, measured.trained, syntax, heads, measured.untrained)
    trained |= add_q_values(trained, "candidates", "roles")
    if measured.sums.selection is not None:
        columns = ["layer", "head", "role", "detail"]
        head_roles = pd.concat([trained[name][columns] for name in ("candidates", "roles")]).drop_duplicates()
        lines = evidence.iter_evidence_rows(measured.sums.selection, heads, head_roles.itertuples(index=False))
        cases = _make_frame("evidence", lines).sort_values(["layer", "head"], kind="stable", ignore_index=True)
        trained["evidence"] = cases
    if measured.untrained is None:
        return trained, {}
    trained |= make_copying_table(encoder)
    untrained = _make_pass_tables(measured.untrained, heads, measured)
    if syntax is not None:
        syntax = dataclasses.replace(syntax, **_select_head_counts(measured.untrained), untrained=None)
    untrained |= _make_role_tables(measured, measured.untrained, syntax, heads, None)
    return trained, {name: table for name, table in untrained.items() if name in UNTRAINED_TABLES}


def make_copying_table(encoder: Encoder) -> dict[str, pd.DataFrame]:
    """Return the table of copying scores by its name; an empty dict for a model whose heads have none."""
    try:
        scores = copying_scores(encoder)
    except ModelUnsupported:
        return {}
    rows = zip(list_heads(encoder.layer_numbers, encoder.heads), scores.itertuples(index=False, name=None), strict=True)
    return {COPYING: _make_frame(COPYING, ((*head, *values) for head, values in rows))}


def _find_annotations(corpus: Corpus | Gap) -> tuple[bool, bool]:
    """Return whether a corpus has trees, and whether it has coreference chains."""
    return (corpus.has_trees, corpus.has_chains) if isinstance(corpus, Corpus) else (False, False)


def _make_role_tables(
    measured: MeasuredCorpus,
    pass_sums: PassSums,
    syntax: roles.SyntaxCounts | None,
    heads: list[Head],
    control: PassSums | None,
) -> dict[str, pd.DataFrame]:
    """Return the candidates and the suggested roles of one pass, as tables."""
    control_patterns = control.patterns if control else None
    shared_roles = [
        *roles.iter_position_roles(pass_sums.patterns, pass_sums.position, measured.documents, control_patterns),
        *roles.iter_delimiter_roles(pass_sums.patterns, control_patterns),
        *roles.iter_broad_roles(pass_sums.patterns, control_patterns),
    ]
    if _find_annotations(measured.corpus)[1]:
        control_chains = control.coreference if control else None
        shared_roles += roles.iter_coreference_roles(pass_sums.coreference, measured.documents, control_chains)
    candidates = [*shared_roles, *(roles.iter_candidate_syntax(syntax) if syntax else ())]
    suggested_roles = [*shared_roles, *(roles.iter_suggested_syntax(syntax) if syntax else ())]
    status, no_other_corpus = (roles.SUGGESTED, measured.corpus.name), [None] * len(OTHER_COLUMNS)
    return {
        "candidates": _make_frame("candidates", _iter_role_rows(candidates, heads)),
        "roles": _make_frame(
            "roles",
            (
                (*line[:MEASURED_COLUMNS], *status, line[4], *line[MEASURED_COLUMNS:-2], *no_other_corpus, *line[-2:])
                for line in _iter_role_rows(suggested_roles, heads)
            ),
        ),
    }


def _make_frame(name: str, lines: TableRows) -> pd.DataFrame:
    """Return rows as the table with this name."""
    return pd.DataFrame(list(lines), columns=list(HEADINGS[name]))


def _make_pass_tables(pass_sums: PassSums, heads: list[Head], measured: MeasuredCorpus) -> dict[str, pd.DataFrame]:
    """Return the tables of one pass that do not need the other pass."""
    if isinstance(measured.corpus, Gap):
        return {
            "gap": _make_frame(
                "gap", _iter_accuracy_rows(heads, pass_sums.gap["n"].sum(), pass_sums.gap["correct"].sum(axis=0))
            )
        }
    frames = {
        "position": _make_frame("position", _iter_position_rows(pass_sums, heads)),
        "delimiter": _make_frame("delimiter", _iter_delimiter_rows(pass_sums, heads)),
        "entropy": _make_frame("entropy", _iter_entropy_rows(pass_sums, heads)),
        "distance": _make_frame("distance", _iter_distance_rows(pass_sums, heads)),
    }
    if pass_sums.measures:
        frames[MEASURES] = _make_frame(MEASURES, _iter_measure_rows(pass_sums, heads))
    if measured.corpus.has_trees:
        frames["uas"] = _make_frame(
            "uas", _iter_accuracy_rows(heads, pass_sums.syntax["edge_count"], pass_sums.syntax["edges"])
        )
    if measured.corpus.has_chains:
        frames["coreference"] = _make_frame("coreference", _iter_coreference_rows(pass_sums, measured.documents, heads))
    return frames


def _divide(correct: Any, n: Any) -> float:
    """Return the accuracy; NaN without cases or without a count of correct ones."""
    return int(correct) / int(n) if n and correct is not None else math.nan


def _iter_accuracy_rows(heads: list[Head], n: Any, correct: Any) -> TableRows:
    """Yield the accuracy of each head."""
    for index, head in enumerate(heads):
        yield (*head, int(n), int(correct[index]), _divide(correct[index], n))


def _iter_position_rows(pass_sums: PassSums, heads: list[Head]) -> TableRows:
    """Yield the mean weight and the share of maxima at each offset, by head."""
    sums = pass_sums.patterns
    mass, maxima = compute_share(sums["mass"], sums["mass_rows"]), compute_share(sums["maxima"], sums["maxima_rows"])
    word_shares, rows = (
        compute_share(sums["mass_in_word"], sums["mass"]),
        compute_share(sums["rows_in_word"], sums["mass_rows"]),
    )
    for index, head in enumerate(heads):
        for i, offset in enumerate(metrics.OFFSETS):
            yield (*head, offset, mass[index, i], maxima[index, i], word_shares[index, i], rows[i])


def _iter_delimiter_rows(pass_sums: PassSums, heads: list[Head]) -> TableRows:
    for head, shares in zip(heads, metrics.average_on_delimiters(pass_sums.patterns)[0], strict=True):
        yield (*head, *shares)


def _iter_entropy_rows(pass_sums: PassSums, heads: list[Head]) -> TableRows:
    sums = pass_sums.patterns
    nats, normalised = compute_share(sums["nats"], sums["rows"]), compute_share(sums["normalised"], sums["sentences"])
    for index, head in enumerate(heads):
        yield (*head, nats[index], normalised[index])


def _iter_measure_rows(pass_sums: PassSums, heads: list[Head]) -> TableRows:
    for name, (total, sentences) in sorted(pass_sums.measures.items()):
        means = compute_share(total, sentences)
        for index, head in enumerate(heads):
            yield (*head, name, means[index], int(sentences[index]))


def _iter_distance_rows(pass_sums: PassSums, heads: list[Head]) -> TableRows:
    matrix = compute_divergences(pass_sums.distances)
    for a, head in enumerate(heads):
        for b in range(a + 1, len(heads)):
            yield (str(head), str(heads[b]), matrix[a, b])


# ---- syntax ---------------------------------------------------------------------------------------------


def _count_syntax(measured: MeasuredCorpus) -> roles.SyntaxCounts:
    """Return the counts of syntax from the sums of both passes."""
    gold_sums = measured.sums.select("gold")
    results = GoldCounts(*(gold_sums[name] for name in GoldCounts._fields))
    trained = roles.SyntaxCounts(
        measured.sums.relations,
        results,
        measured.documents,
        cases=gold_sums["cases"],
        rule_correct=gold_sums["ruled"],
        rule_tags=gold_sums["named"],
        **_select_head_counts(measured.trained),
    )
    if measured.untrained is None:
        return trained
    control = dataclasses.replace(trained, **_select_head_counts(measured.untrained))
    return dataclasses.replace(trained, untrained=control.correct_by_row)


def _select_head_counts(pass_sums: PassSums) -> dict[str, Any]:
    """Select the counts per head from the sums of a pass."""
    return {name: pass_sums.syntax[name] for name in ("correct", "both", "kinds", "choices")}


def _iter_syntax_rows(syntax: roles.SyntaxCounts, heads: list[Head]) -> TableRows:
    """Yield the accuracy of each head on each relation and direction."""
    n, correct, both = syntax.gold.n.sum(axis=0), syntax.correct_by_row.sum(axis=0), syntax.both.sum(axis=0)
    rows, directions = range(len(syntax.relations.rows)), range(len(DIRECTIONS))
    documents = [[syntax.documents_with_cases(d, r, roles.ALL) for d in directions] for r in rows]
    for r, row in enumerate(syntax.relations.rows):
        for d, direction in enumerate(DIRECTIONS):
            for index, head in enumerate(heads):
                right, cases = int(correct[d, r, index]), int(n[d, r])
                bounds = syntax.intervals[d, r, :, index]
                accuracy = cases, right, _divide(right, cases), *wilson_interval(right, cases)
                comparison = int(both[d, r, index]), *syntax.rule_intervals[d, r, :, index]
                yield (*row, direction, *head, *accuracy, *bounds, documents[r][d], *comparison)


def _iter_baseline_rows(syntax: roles.SyntaxCounts, heads: list[Head]) -> TableRows:
    """Yield the accuracy of simple rules and of the best untrained head on each relation and direction."""
    n = syntax.gold.n.sum(axis=0)
    offset, rule_correct = syntax.gold.offset.sum(axis=0), syntax.rule_correct.sum(axis=(0, 1))
    untrained = None if syntax.untrained is None else syntax.untrained.sum(axis=0)
    for r, row in enumerate(syntax.relations.rows):
        for d, direction in enumerate(DIRECTIONS):
            cases = int(n[d, r])
            best_offset, right = find_best_offset(offset[d, r])
            yield (*row, direction, "offset", f"{best_offset:+d}", cases, *_score(right, cases))
            yield (*row, direction, "pos", syntax.rule(d, r).name, cases, *_score(rule_correct[d, r], cases))
            if untrained is None:
                continue
            head = int(untrained[d, r].argmax())
            yield (*row, direction, "untrained", str(heads[head]), cases, *_score(untrained[d, r, head], cases))


def _score(correct: Any, cases: int) -> tuple[int, float]:
    return int(correct), _divide(correct, cases)


def _iter_choice_rows(syntax: roles.SyntaxCounts, heads: list[Head]) -> TableRows:
    """Yield kind and choice of every head, for relations with enough cases for a role."""
    cases = syntax.gold.kinds.sum(axis=0)
    for b, relation in enumerate(syntax.relations.bases):
        for d, direction in enumerate(DIRECTIONS):
            if cases[d, b] >= roles.MIN_CASES:
                for head, choice in zip(heads, syntax.measure_choices(d, b), strict=True):
                    kind_columns = choice.kind, choice.n, choice.right, choice.nearest, choice.side, choice.random
                    yield (
                        relation,
                        direction,
                        *head,
                        int(cases[d, b]),
                        *kind_columns,
                        *choice.interval,
                        choice.documents,
                    )


def _iter_chosen_head_rows(syntax: roles.SyntaxCounts, heads: list[Head]) -> TableRows:
    """Yield the best head of each relation and direction on the even half, and its accuracy on the odd half."""
    for best in roles.iter_best_heads(syntax):
        (n_even, n_odd), (correct_even, correct_odd) = best.n, best.correct
        untrained = None if syntax.untrained is None else syntax.untrained[1, best.direction, best.row].max()
        yield (
            *syntax.relations.rows[best.row],
            DIRECTIONS[best.direction],
            *heads[best.head],
            n_even,
            _divide(correct_even, n_even),
            n_odd,
            _divide(correct_odd, n_odd),
            *wilson_interval(correct_odd, n_odd),
            *(_divide(right, n_odd) for right in (best.offset, best.upos, untrained)),
            syntax.documents_with_cases(best.direction, best.row, roles.ODD),
        )


# ---- coreference, roles ---------------------------------------------------------------------------------


def _iter_coreference_rows(pass_sums: PassSums, documents: Documents, heads: list[Head]) -> TableRows:
    """Yield the accuracy of each head on each kind of mention."""
    document_counts = [pass_sums.coreference[name].sum(axis=1) for name in ("n", "correct")]  # summed over halves
    n, correct = (counts.sum(axis=0) for counts in document_counts)
    bounds = np.full((len(TYPES), 2, len(heads)), np.nan)
    for i in np.flatnonzero(n >= roles.MIN_CASES).tolist():
        bounds[i] = documents.interval(document_counts[1][:, i], document_counts[0][:, i])
    both = pass_sums.coreference["both"].sum(axis=(0, 1))
    rule_bounds = np.full((2, len(heads)), np.nan)
    if n[TYPES.index(THIRD_PERSON)] >= roles.MIN_CASES:
        rule_bounds = documents.compute_net_intervals(*AgreementComparison.from_sums(pass_sums.coreference))
    for index, head in enumerate(heads):
        for i, name in enumerate(TYPES):
            accuracy = int(n[i]), *_score(correct[i, index], int(n[i]))
            comparison = (int(both[index]), *rule_bounds[:, index]) if name == THIRD_PERSON else (math.nan,) * 3
            yield (
                *head,
                name,
                *accuracy,
                *bounds[i, :, index],
                count_documents_with_cases(document_counts[0][:, i]),
                *comparison,
            )


def _iter_coreference_baseline_rows(measured: MeasuredCorpus, heads: list[Head]) -> TableRows:
    """Yield the accuracy of simple rules and of the best untrained head on each kind of mention, or on GAP."""
    if isinstance(measured.corpus, Gap):
        yield from _iter_gap_baseline_rows(measured, measured.corpus, heads)
        return
    sums = measured.trained.coreference
    n, baseline = sums["n"].sum(axis=(0, 1)), sums["baseline"].sum(axis=(0, 1))
    control = measured.untrained
    untrained = None if control is None else control.coreference["correct"].sum(axis=(0, 1))
    for i, name in enumerate(TYPES):
        for b, rule in enumerate(BASELINES):
            yield (name, rule, "", int(n[i]), *_score(baseline[i, b], int(n[i])))
        if name == THIRD_PERSON:
            yield (name, AGREEMENT, "", int(n[i]), *_score(sums["agreement"].sum(), int(n[i])))
        if untrained is None:
            continue
        head = int(untrained[i].argmax())
        yield (name, "untrained", str(heads[head]), int(n[i]), *_score(untrained[i, head], int(n[i])))


def _iter_gap_baseline_rows(measured: MeasuredCorpus, gap: Gap, heads: list[Head]) -> TableRows:
    """Yield the accuracy of the nearer name and of the best untrained head on GAP."""
    rows = [row for row, is_scored in zip(gap.rows, measured.trained.gap["scored"], strict=True) if is_scored]
    yield (
        "gap",
        "nearest",
        "name nearer in characters",
        len(rows),
        *_score(sum(map(is_nearest_name_right, rows)), len(rows)),
    )
    if measured.untrained is None:
        return
    n, correct = int(measured.untrained.gap["n"].sum()), measured.untrained.gap["correct"].sum(axis=0)
    head = int(correct.argmax())
    yield ("gap", "untrained", str(heads[head]), n, *_score(correct[head], n))


def _iter_coreference_chosen_rows(measured: MeasuredCorpus, heads: list[Head]) -> TableRows:
    """Yield for every kind of mention, or for GAP, the best head on the even half, and its accuracy on the odd half."""
    corpus, control = measured.corpus, measured.untrained
    if isinstance(corpus, Gap):
        sums = measured.trained.gap
        odd_rows = [r for i, r in enumerate(corpus.rows) if i % 2 and measured.trained.gap["scored"][i]]
        rules = (sum(map(is_nearest_name_right, odd_rows)), None, None)
        untrained = None if control is None else int(control.gap["correct"][1].max())
        documents = len(odd_rows)  # each row counts as a document
        yield from _iter_best_head_row("gap", sums["n"], sums["correct"], (*rules, untrained), heads, documents)
        return
    sums = {name: counts.sum(axis=0) for name, counts in measured.trained.coreference.items()}
    for i, name in enumerate(TYPES):
        untrained = None if control is None else int(control.coreference["correct"][:, 1, i].sum(axis=0).max())
        agreement = int(sums["agreement"][1]) if name == THIRD_PERSON else None
        rules = (*sums["baseline"][1, i].tolist(), agreement, untrained)
        documents = count_documents_with_cases(measured.trained.coreference["n"][:, 1, i])
        yield from _iter_best_head_row(name, sums["n"][:, i], sums["correct"][:, i], rules, heads, documents)


def _iter_best_head_row(
    name: str,
    n: np.ndarray,
    correct: np.ndarray,
    rules: tuple[int | None, ...],
    heads: list[Head],
    documents: int,
) -> TableRows:
    """Yield the row of the best head on the even half, if both halves have cases."""
    n_even, n_odd = (int(count) for count in n)
    if not n_even or not n_odd:
        return
    head = int(correct[0].argmax())
    right = int(correct[1, head])
    rule_accuracies = (_divide(rule, n_odd) for rule in rules)
    accuracy = (n_even, int(correct[0, head]) / n_even, n_odd, right / n_odd)
    yield (name, *heads[head], *accuracy, *wilson_interval(right, n_odd), *rule_accuracies, documents)


def _iter_role_rows(found_roles: list[roles.Role], heads: list[Head]) -> TableRows:
    """Yield the rows of roles by head, with the largest gain first within each kind of role."""
    order = {name: i for i, name in enumerate(roles.ROLES)}
    for role in sorted(found_roles, key=lambda r: (r.head, order[r.role], -r.gain)):
        rule, choice, no_interval = role.rule, role.choice, (math.nan, math.nan)
        scores = (role.score, role.baseline, role.gain, role.n, *(role.interval or no_interval))
        rule_columns = (math.nan, None, None) if rule is None else (rule.score, rule.name, rule.state)
        rule_interval = no_interval if rule is None else rule.interval
        choice_columns = (math.nan,) * 4 if choice is None else (choice.kind, choice.n, choice.right, choice.nearest)
        choice_interval = no_interval if choice is None else choice.interval
        yield (
            *(*heads[role.head], role.role, role.detail, *scores, *rule_columns, role.untrained, role.documents),
            *(*rule_interval, *choice_columns, *choice_interval),
            *(math.nan, math.nan),  # q-values, computed later for all roles
        )
