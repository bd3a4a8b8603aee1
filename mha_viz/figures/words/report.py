"""The roles of a profile as a table for a paper, with confidence intervals, notes on the tests, and a citation."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mha_viz.analysis.bundled_data import check_profiles
from mha_viz.analysis.chance import find_chance_roles
from mha_viz.analysis.findings import RULE_Q, STATES, Finding, Q
from mha_viz.analysis.needs import PairResults, find_needs
from mha_viz.analysis.pairs import NEEDED
from mha_viz.analysis.profile import COPYING, Profile, list_bundled_profiles, read_profile
from mha_viz.analysis.q_values import ROLE_COLUMNS, collect_tests
from mha_viz.analysis.replication import Replication, replicate
from mha_viz.analysis.roles import ESTABLISHED, SUGGESTED
from mha_viz.analysis.syntax import DIRECTIONS
from mha_viz.attention import Head
from mha_viz.corpus.limits import name_sample
from mha_viz.errors import PROFILE_KIND, CorpusError, SettingError, check_items, list_items
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.words.need_words import NEED_RULE
from mha_viz.figures.words.report_columns import (
    HEADING,
    LATEX_ESCAPES,
    MARKDOWN_ESCAPES,
    NEEDED_BY_PAIRS,
    THIRD_COLUMNS,
    ReportedRole,
    ReportSubject,
    Use,
    build_cells,
    capitalise,
    escape_text,
    format_q,
    has_few_documents,
    latex_column_spec,
    list_printed_columns,
)
from mha_viz.figures.words.role_words import (
    KIND_ORDER,
    NULL_WORDS,
    OLDER_RULE,
    STATE_WORDS,
    describe_chance,
    has_older_rule,
)
from mha_viz.figures.words.use_words import USE, explain_use, is_used
from mha_viz.files.assets import app_root
from mha_viz.files.tables import format_csv
from mha_viz.model_names import cite_model, name_in_column
from mha_viz.numerals import counted, decimal
from mha_viz.quotes import did_you_mean, join_names, quote

if TYPE_CHECKING:
    import pandas as pd

KINDS = KIND_ORDER
RULE_NOTE = (
    "Strongest simple rule: given the parts of speech, the nearest word on one side with one of a set of them "
    "(coreference: given number and subjects, what agrees). Beats: the head is right more often on each corpus (the "
    "lower end of the 95% interval of the difference is above 0); equals: the upper end is below 0 on none. Choice: of "
    "the cases in which the head points to one of several words of the right part of speech, the share it gets right; "
    "nearest: the share that the nearest such word gets right."
)


def _has_state(state: str) -> Callable[[Finding], bool]:
    return lambda finding: finding.state == state


CONDITIONS: Mapping[str, tuple[str, Callable[[Finding], bool]]] = {
    "established": ("established", lambda finding: finding.status == ESTABLISHED),
    **{
        state: (STATE_WORDS[state].replace("the rule", "the strongest simple rule"), _has_state(state))
        for state in STATES
    },
}


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """A table of roles for a paper. Printing it shows :meth:`markdown`.

    Attributes:
        caption: a description of the table.
        roles: its rows, in the order of the profile.
        notes: sentences below it, the last of which is the citation.
        of: the model and the corpora.
    """

    caption: str
    roles: tuple[ReportedRole, ...]
    notes: tuple[str, ...]
    of: ReportSubject

    @property
    def table(self) -> pd.DataFrame:
        """One row per role, with the columns HEADING and, for each third corpus, THIRD_COLUMNS.

        Numbers are not rounded. Heads are counted from 0 and, in the column ``paper``, from 1.
        """
        import pandas as pd

        numbers = range(1, len(self.of.third_corpora) + 1)
        columns = [*HEADING, *(f"replicated_{number}_{name}" for number in numbers for name in THIRD_COLUMNS)]
        return pd.DataFrame([build_cells(self.of, role) for role in self.roles], columns=columns)

    def csv(self) -> str:
        """Return :attr:`table` as CSV, without the notes."""
        return format_csv(self.table)

    def markdown(self) -> str:
        """Return the table in Markdown, between its caption and its notes. Texts from files are escaped."""
        columns = list_printed_columns(self.of, self.roles)
        rows = [
            [escape_text(text, MARKDOWN_ESCAPES) for text in (column.cell(role) for column in columns)]
            for role in self.roles
        ]
        alignments = ["---:" if column.alignment == "r" else "---" for column in columns]
        headings = [escape_text(column.heading, MARKDOWN_ESCAPES) for column in columns]
        table = [f"| {' | '.join(row)} |" for row in (headings, alignments, *rows)]
        caption, *notes = (escape_text(text, MARKDOWN_ESCAPES) for text in (self.caption, *self.notes))
        return "\n\n".join([caption, "\n".join(table), *notes]) + "\n"

    def latex(self) -> str:
        """Return the table for LaTeX with the packages array, booktabs and longtable.

        It is made for landscape pages and may span several. Texts from files are escaped.
        """
        columns = list_printed_columns(self.of, self.roles)
        caption, *notes = (escape_text(text, LATEX_ESCAPES) for text in (self.caption, *self.notes))
        headings = " & ".join(escape_text(column.heading, LATEX_ESCAPES) for column in columns)
        rows = [" & ".join(escape_text(column.cell(role), LATEX_ESCAPES) for column in columns) for role in self.roles]
        head = (r"\toprule", rf"{headings} \\", r"\midrule")
        lines = [
            *(r"\begingroup", r"\footnotesize", r"\setlength{\tabcolsep}{3pt}"),
            rf"\begin{{longtable}}{{{latex_column_spec(columns)}}}",
            *(rf"\caption{{{caption}}} \\", *head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endfoot"),
            *(*(rf"{row} \\ \addlinespace" for row in rows), r"\end{longtable}"),
            *(*(rf"\noindent {note}\par\smallskip" for note in notes), r"\endgroup"),
        ]
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        return self.markdown()


def report(
    profile: Profile,
    replicated: Profile | Iterable[Profile] = (),
    *,
    kinds: str | Iterable[str] = (),
    only: str | Iterable[str] = (),
) -> Report:
    """Make a table for a paper from the roles of a profile (Markdown, LaTeX, CSV).

    It has intervals, baselines, the strongest simple rule with q-values over all tested heads and relations, the
    accuracy on the other corpus that establishes a role, the third corpora on which it holds, whether it is used, and
    a citation.

    ``replicated``: profiles of the same model on third corpora; a role cannot be replicated on a corpus that helped
    to choose it. ``kinds``: the kinds of roles to show, of KINDS. ``only``: conditions that roles must meet, of
    CONDITIONS: "established", and "beats", "equals" or "below" for a comparison of the head with the strongest simple
    rule. Both may be text with commas: "syntax,coreference".

    Raises CorpusError for a profile without roles and for a profile of another model or of the same corpus,
    SettingError for unknown kinds and conditions, and if no role is left.
    """
    is_list = isinstance(replicated, Iterable) and not isinstance(replicated, str)
    profiles = replicated if is_list else [replicated]
    others = list_items(profiles, "replicated", "Give profiles of the same model.")
    check_items((profile, *others), Profile, *PROFILE_KIND)
    all_findings = profile.findings()
    if not all_findings:
        raise CorpusError(f"The profile of {profile.corpus} has no roles.", "Take that of a treebank or of more text.")
    shown_kinds, conditions = _parse_names(kinds, KINDS, "kinds"), _parse_names(only, CONDITIONS, "only")
    findings = [f for f in all_findings if _is_shown(f, shown_kinds, conditions)]
    if not findings:
        raise SettingError(*_explain_no_role(profile, all_findings, shown_kinds, conditions))
    tests = collect_tests(profile.tables)
    tested_keys = [*tests[ROLE_COLUMNS].itertuples(index=False, name=None)]
    q, rule_q = (dict(zip(tested_keys, tests[column], strict=True)) for column in (Q, RULE_Q))
    outcomes_by_role = _replicate_on_others(profile, findings, others)
    use, needs = _find_use(profile), find_needs(profile.tables.get(NEEDED))
    copying = _find_copying_scores(profile)
    keys = [(f.role, f.detail, *f.head) for f in findings]
    no_scores = (math.nan, math.nan)
    roles = tuple(
        ReportedRole(
            f,
            q.get(key, math.nan),
            rule_q.get(key, math.nan),
            outcomes,
            use.get(key),
            copying.get(f.head, no_scores),
            needs.get(f.head),
        )
        for f, key, outcomes in zip(findings, keys, outcomes_by_role, strict=True)
    )
    names = (profile.corpus, tuple(other.corpus for other in others))
    subject = ReportSubject(name_in_column(profile.model), str(profile.facts["revision"]), *names)
    choice = "; ".join(filter(None, [", ".join(shown_kinds), *(CONDITIONS[name][0] for name in conditions)]))
    total = counted(len(all_findings), "role")
    count = f"{len(roles)} of {total} ({choice})" if choice else counted(len(roles), "role")
    layers, heads = profile.shape
    model = f"{cite_model(profile.model, subject.revision)}, {layers} layers × {heads} heads,"
    caption = f"What heads of {model} do on {subject.corpus}: {count}."
    return Report(
        caption, roles, (*_iter_notes(profile, roles, tests, subject), f"To cite: {write_citation()}"), subject
    )


def _parse_names(names: str | Iterable[str], values: Collection[str], option: str) -> tuple[str, ...]:
    """Parse a list of names, or a text with commas, without duplicates. Raises SettingError for an unknown name."""
    items = names.split(",") if isinstance(names, str) else [*names]
    stripped_names = [str(name).strip() for name in items if str(name).strip()]
    for name in stripped_names:
        if name not in values:
            remedy = f"{did_you_mean(name, values)} Choose from {', '.join(values)}.".strip()
            raise SettingError(f"{quote(name)} is not a value of {option}.", remedy)
    return tuple(dict.fromkeys(stripped_names))


def _is_shown(finding: Finding, kinds: Collection[str], conditions: Iterable[str]) -> bool:
    return (not kinds or finding.role in kinds) and all(CONDITIONS[name][1](finding) for name in conditions)


def _explain_no_role(
    profile: Profile, all_findings: Sequence[Finding], kinds: Collection[str], conditions: Collection[str]
) -> tuple[str, str]:
    """Write the error for options that leave no role.

    The remedy names another bundled profile of the model that has such roles, or the kinds that this profile has.
    """
    options = [
        f"{name} {quote(', '.join(values))}" for name, values in (("kinds", kinds), ("only", conditions)) if values
    ]
    problem = f"No role is left by {join_names(options)} on {profile.corpus}."
    for folder in list_bundled_profiles(profile.model):
        other = read_profile(folder)
        matches = [finding for finding in other.findings() if _is_shown(finding, kinds, conditions)]
        if matches and other.corpus != profile.corpus:
            statuses = join_names(sorted({finding.status for finding in matches}))
            suggestion = f"The profile of {other.corpus} has {counted(len(matches), 'such role')} ({statuses})"
            return problem, f"{suggestion}: give that profile, {folder}."
    if kinds and conditions:
        return problem, "Leave one of them out."
    if conditions:
        return problem, f"Leave it out to see {counted(len(all_findings), 'role')}."
    present_kinds = [kind for kind in KINDS if any(finding.role == kind for finding in all_findings)]
    return problem, f"Choose from those that it has: {', '.join(present_kinds)}."


def write_citation() -> str:
    """Return the citation of this program, from CITATION.cff."""
    text = (app_root() / "CITATION.cff").read_text("utf-8")
    fields = dict(re.findall(r'^([\w-]+): "?(.+?)"?$', text, re.MULTILINE))
    authors = join_names(re.findall(r"^  - name: (.+)$", text, re.MULTILINE))
    return f"{authors}. {fields['title']}. Version {fields['version']}, {fields['date-released']}."


def _replicate_on_others(
    profile: Profile, findings: Sequence[Finding], others: Sequence[Profile]
) -> list[tuple[Replication | None, ...]]:
    """Return the outcome of each role on each of ``others``; None where that corpus helped to choose the role."""
    for other in others:
        check_profiles(other.facts, profile.facts)
    by_corpus = [
        [None if _helped_to_choose(replication, other) else replication for replication in replicate(findings, other)]
        for other in others
    ]
    return [tuple(outcomes[i] for outcomes in by_corpus) for i in range(len(findings))]


def _helped_to_choose(replication: Replication, other: Profile) -> bool:
    """Return whether the corpus of ``other`` helped to choose the role.

    It is recognised by its name or, if the file was named differently, by the number of its correct cases.
    """
    finding, role_score, _ = replication
    if finding.status != ESTABLISHED or finding.other_score is None:
        return finding.status == ESTABLISHED and other.corpus in finding.corpora
    is_same = (
        role_score is not None
        and role_score.n > 0
        and round(role_score.n * (role_score.score - finding.other_score.score), 4) == 0
    )
    return other.corpus in finding.corpora or is_same


def _find_use(profile: Profile) -> dict[Any, Use]:
    """Return the use of each role for which it was tested, by the values of ROLE_COLUMNS."""
    if "used" not in profile.tables:
        return {}
    table = profile.tables["used"]
    roles = table[ROLE_COLUMNS].itertuples(index=False, name=None)
    rows = zip(roles, map(is_used, table["used"]), table["measure"], strict=True)
    return {role: Use(used, str(measure)) for role, used, measure in rows if used is not None}


def _find_copying_scores(profile: Profile) -> dict[Head, tuple[float, float]]:
    """Return the copying score of each head, and that of random weights; an empty dict if they were not measured."""
    table = profile.tables.get(COPYING)
    rows = () if table is None else table.itertuples(index=False, name=None)
    return {Head(layer, head): (copying, untrained_score) for layer, head, copying, untrained_score in rows}


def _describe_copying(roles: Sequence[ReportedRole]) -> str:
    """Return "Copying scores (random weights): L3H1 0.96 (0.02), …"; empty if they were not measured."""
    scores = {role.finding.head: role.copying for role in sorted(roles, key=lambda role: role.finding.head)}
    parts = [
        f"{head} {decimal(score)} ({decimal(untrained_score)})"
        for head, (score, untrained_score) in scores.items()
        if not math.isnan(score)
    ]
    explanation = "At 1, attending to a word moves a token towards that word; at −1, away from it."
    return f"Copying scores (random weights): {', '.join(parts)}. {explanation}" if parts else ""


def _iter_notes(
    profile: Profile, roles: Sequence[ReportedRole], tests: pd.DataFrame, subject: ReportSubject
) -> Iterator[str]:
    """Yield notes on the tests, on the reliability of the results, and other remarks."""
    if len(tests):
        yield _describe_tests(profile, tests)
        q_values = [role.rule_q for role in roles if not math.isnan(role.rule_q)]
        count = counted(len(q_values), "role")
        lowest = f" The lowest q of the {count} with one is {format_q(min(q_values))}." if q_values else ""
        yield (
            "q: false discovery rate by Benjamini–Hochberg over all of these, against the strongest simple rule; "
            "one-sided exact sign tests on all cases where only the head or only the rule is right, divided by the "
            "design effect of documents. The CSV also has q against the best fixed offset."
            f"{lowest}"
        )
    if has_older_rule(role.finding for role in roles):
        yield f"The simple rule was measured {OLDER_RULE}; it has no interval and no q."
    elif any(role.finding.state for role in roles):
        yield RULE_NOTE
    for chance in filter(None, (find_chance_roles(profile, *null) for null in NULL_WORDS)):
        yield f"By chance: {describe_chance(chance)}, on {join_names(chance.corpora)}."
    findings = [role.finding for role in roles]
    if any(f.role not in ("syntax", "coreference") for f in findings):
        yield "Scores without a name are accuracies. Other roles have no q; means have no interval."
    if any(f.status == SUGGESTED and f.role == "syntax" for f in findings):
        yield (
            "Suggested roles of syntax: n, score and state are computed on the odd-numbered sentences, which are "
            "held out; choice and q on all sentences."
        )
    if any(has_few_documents(f) for f in findings):
        yield "Few documents: interval and q take cases as independent, and apply to these documents alone."
    if copying := _describe_copying(roles):
        yield copying
    for number, corpus in enumerate(subject.third_corpora):
        if all(role.outcomes[number] is None for role in roles):
            yield f"{corpus} helped to choose these roles, so it cannot replicate them."
    if any(role.use for role in roles):
        row = profile.tables["used"].iloc[0]
        yield (
            f"{capitalise(USE)}: measured on {name_sample(row['corpus'], row['every'])} "
            f"({row['measure']}, {row['method']}). {explain_use(str(row['measure']))}"
        )
    if any(role.need for role in roles):
        yield _describe_needs(find_needs(profile.tables[NEEDED]), {role.finding.head for role in roles})


def _describe_needs(needs: Mapping[Head, PairResults], heads: Collection[Head]) -> str:
    """Describe how need was measured, and name needed heads that are not in the table."""
    first = next(iter(needs.values()))
    others = [format_head(head) for head, need in needs.items() if need.is_needed and head not in heads]
    others_note = f" Also needed: {join_names(others)}." if others else ""
    pairs = f"{first.pairs} ({first.all_pairs.n:,} pairs, {first.method})"
    return f"{NEEDED_BY_PAIRS}: measured on {pairs}, one head off at a time. {NEED_RULE}{others_note}"


def _describe_tests(profile: Profile, tests: pd.DataFrame) -> str:
    """Return a sentence on the number of tests.

    An example is "Tested on UD English EWT test: 72 heads × 48 relations × 3 directions; 10,368 tests with a case".
    """
    layers, heads = profile.shape
    syntax = tests[tests["role"] == "syntax"]
    relations = syntax["detail"].str.rpartition(" ")[0].nunique() if len(syntax) else 0
    all_heads = counted(layers * heads, "head")
    parts = [f"{all_heads} × {counted(relations, 'relation')} × {len(DIRECTIONS)} directions"] * bool(relations)
    parts += [f"{all_heads} on third-person pronouns"] * (len(syntax) < len(tests))
    count = counted(int((tests["n"] > 0).sum()), "test")
    return f"Tested on {profile.corpus}: {join_names(parts)}; {count} with a case."
