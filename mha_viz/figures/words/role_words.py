"""Words for the roles of heads, and the colours of kinds of roles."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence

from mha_viz.analysis.chance import COREFERENCE, KIND, PERMUTATION, SYNTAX, ChanceRoles
from mha_viz.analysis.findings import BEATS, BELOW, EQUALS, STATES, Finding, OtherCorpusScore
from mha_viz.analysis.intervals import FEW, FEWEST_BLOCKS
from mha_viz.analysis.metrics import BOTH
from mha_viz.analysis.repeats import CORPUS, MEASURES
from mha_viz.analysis.roles import ESTABLISHED, MIN_CASES, SUGGESTED
from mha_viz.attention import Head
from mha_viz.figures.words.glosses import (
    describe_link,
    describe_rule,
    explain_relation,
    find_gloss,
    label_link,
    label_relation,
)
from mha_viz.numerals import counted, percent
from mha_viz.quotes import shorten

MIN_WITHIN_WORDS = 0.25  # minimum share of attention within words that the text of a position role mentions
# Indices into a theme's heads.
COLOURS = {"syntax": 0, "coreference": 3, "position": 2, "repetition": 6, "delimiter": 4, "broad": 5}
KIND_COLOURS = {"position": 0, "special": 1, "grammar": 5, "form": 6}  # kinds of rules of recipes; others are grey
# Groups of features by which a head finds its keys; indices into a theme's heads, too.
GROUP_COLOURS = {"word": 6, "position": 0, "earlier heads": 3, "feed-forward": 4}
GLYPHS = ("previous", "next", "same")  # positions with their own glyphs; other kinds of roles have one each
# Kinds of roles, in the order in which people look for them.
KIND_ORDER = ("coreference", "syntax", "repetition", "position", "broad", "delimiter")
SHORT_NAMES = {
    "cls": "[CLS]",
    "sep": "[SEP]",
    "both": "CLS+SEP",
    "punctuation": ". ,",
    "previous": "prev",
    "entropy": "broad",
    "third_person": "coref",
    "induction": "induc.",
    "duplicate": "dupl.",
    "sink": "first",
    "compound": "comp.",
    "discourse": "disc.",
    "dislocated": "disl.",
    "parataxis": "parat.",
    "vocative": "voc.",
}
FEW_DOCUMENTS = "few documents: applies to these alone"
STATE_WORDS = {BEATS: "beats the rule", EQUALS: "equals the rule", BELOW: "below the rule"}  # said of a head
CHIP_LABELS = {state: words.replace(" the", "") for state, words in STATE_WORDS.items()}
# The strongest simple rule of a kind of role, and the information that the rule has and the head does not.
RULES = {SYNTAX: "the rule by parts of speech", COREFERENCE: "the rule of agreement"}
RULE_KNOWLEDGE = {
    SYNTAX: "The rule is told the parts of speech; the head finds them itself.",
    COREFERENCE: "The rule is told number and subjects; the head finds them itself.",
}
OLDER_RULE = "by an older version, whose rule uses one part of speech"
MAX_CORPUS_NAME = 12  # maximum number of characters of a corpus's name in a role's short form
HELD_OUT = "held-out"  # for cases that were not used to choose the head
STATUS_WORDS = {  # the statuses of roles in plain words
    ESTABLISHED: "They hold on two corpora of different origin.",
    SUGGESTED: "One corpus shows them; no second one was checked.",
}
DIRECTIONS = {
    "dep_to_head": "from the dependent to its syntactic head",
    "head_to_dep": "to the dependent, from its syntactic head more than from any other word",
    "head_row": "from the syntactic head to a dependent",
}


def shorten_name(finding: Finding) -> str:
    """Return a short name of a role that fits into a cell of the map."""
    name = finding.detail.split()[0]
    return SHORT_NAMES.get(name, name)


def choose_glyph(finding: Finding) -> str:
    """Return the name of a role's icon in ``browser/glyphs.css``."""
    return finding.detail if finding.detail in GLYPHS else finding.role


def get_plain_name(finding: Finding) -> str:
    """Return a role in plain words: "subject (nsubj)", "previous token"."""
    gloss = None if finding.role == "syntax" else find_gloss(finding.detail)
    return gloss.name if gloss else label_relation(finding.detail.split()[0])


def label_role(finding: Finding) -> str:
    """Return a role as an arrow: "subject → its verb (nsubj)", "token → the one before".

    The arrow points the way the head attends.
    """
    if finding.role == "syntax":
        return label_link(finding.detail)
    return describe_link(finding.detail) or f"{finding.role}: {finding.detail}"


def describe_role_status(finding: Finding) -> str:
    """Return the status of a role, and how the head compares with a rule.

    Examples: "established", "suggested, below the rule".
    """
    return ", ".join(filter(None, (finding.status, STATE_WORDS.get(finding.state))))


def count_states(findings: Sequence[Finding]) -> str:
    """Return "beats the rule 0, equals 1, below 26"; empty if no role is compared with a rule."""
    if not any(finding.state for finding in findings):
        return ""
    beats, equals, below = (sum(finding.state == state for finding in findings) for state in STATES)
    return f"{STATE_WORDS[BEATS]} {beats}, {EQUALS} {equals}, {BELOW} {below}"


def has_older_rule(findings: Iterable[Finding]) -> bool:
    """Return whether roles were measured by an older version.

    Older versions have no interval for the comparison with the rule.
    """
    return any(finding.state and math.isnan(finding.comparison.rule_low) for finding in findings)


def _shorten_corpus(corpus: str) -> str:
    """Return a short but distinct name of a corpus: "GUM" for "UD English GUM dev"."""
    name = re.fullmatch(r"(?:UD \S+ )?(.+?)(?: (?:train|dev|test))?", corpus)
    return shorten(name[1] if name else corpus, MAX_CORPUS_NAME)


ACCURACY, WEIGHT, LARGEST, ENTROPY = "accuracy", "mean weight", "share of largest weights", "share of largest entropy"
# A template for a brief score, and the name of its baseline.
_SCORE_TEMPLATES = {
    ACCURACY: ("right in {}", "simple rule"),
    WEIGHT: ("{} of its weight", "uniform attention"),
    LARGEST: ("largest weight there in {} of rows", "uniform attention"),
    ENTROPY: ("spread {}", "average head"),
}


def name_measure(finding: Finding) -> str:
    """Return the measure of a role's score: ACCURACY, WEIGHT, LARGEST or ENTROPY."""
    if finding.role in ("syntax", "coreference"):
        return ACCURACY
    if finding.role == "broad":
        return ENTROPY
    return WEIGHT if math.isnan(finding.low) else LARGEST  # only counts of rows have an interval


def summarise_role(finding: Finding) -> str:
    """Summarise a role, its score, and the baseline of the score.

    "preposition → its noun, right in 69% (GUM 68%); below the rule, 69% (GUM 74%)".
    """
    if not finding.state:
        return f"{describe_in_list(finding)}; {describe_rule_in_list(finding)}"
    rule_score = percent(find_best_baseline(finding)[1], 0)
    head_part = f"{describe_in_list(finding)}{_score_elsewhere(finding, lambda other: other.score)}"
    rule_part = f"{rule_score}{_score_elsewhere(finding, lambda other: other.upos)}"
    return f"{head_part}; {STATE_WORDS[finding.state]}, {rule_part}"


def describe_in_list(finding: Finding, previous: Finding | None = None) -> str:
    """Return "preposition → its noun, right in 69%".

    If the ``previous`` role in the list has the same measure, the score stands alone: "form of “be” → its predicate,
    61%".
    """
    template = "{}" if _is_repeated(finding, previous) else _SCORE_TEMPLATES[name_measure(finding)][0]
    return f"{describe_link(finding.detail) or finding.detail}, {template.format(percent(finding.score, 0))}"


def describe_rule_in_list(finding: Finding, previous: Finding | None = None) -> str:
    """Return the baseline of the score: "rule 69% (GUM 68% < 74%)", "uniform attention 5%".

    Numbers of the other corpus are added if the numbers of this corpus alone would contradict the state of the role.
    The baseline is called "simple rule" if the state of the role does not mention a rule.
    """
    name, best_score = _SCORE_TEMPLATES[name_measure(finding)][1], find_best_baseline(finding)[1]
    name = name.removeprefix("simple ") if finding.state or _is_repeated(finding, previous) else name
    return f"{name} {percent(best_score, 0)}{compare_elsewhere(finding)}"


def compare_elsewhere(finding: Finding, digits: int = 0) -> str:
    """Return " (GUM 68% < 74%)": the accuracies of head and rule on the other corpus.

    The result is "" unless the numbers of the first corpus alone would contradict the state of the role.
    """
    other, is_matched_here = finding.other_score, round(finding.score, 2) < round(find_best_baseline(finding)[1], 2)
    if not finding.state or finding.is_matched_by_rule == is_matched_here or not other:
        return ""
    sign = "<" if other.score < other.upos else "≥"
    return f" ({_shorten_corpus(other.corpus)} {percent(other.score, digits)} {sign} {percent(other.upos, digits)})"


def _is_repeated(finding: Finding, previous: Finding | None) -> bool:
    return previous is not None and name_measure(previous) == name_measure(finding)


def _score_elsewhere(finding: Finding, score: Callable[[OtherCorpusScore], float]) -> str:
    """Return a score on the other corpus: " (GUM 74%)"."""
    other = finding.other_score
    return (
        f" ({_shorten_corpus(other.corpus)} {percent(score(other), 0)})"
        if other and not math.isnan(score(other))
        else ""
    )


def compare_with_rule(finding: Finding, digits: int = 0, with_knowledge: bool = True) -> str:
    """Compare a head with the strongest simple rule.

    State the rule's score, the information that the rule has (``with_knowledge``), and the accuracy of the head among
    words of the right kind; "" without such a rule. For example: "The nearest noun or name to the right: 69%; on GUM,
    the nearest noun, name or adverb: 74%. The rule is told the parts of speech; the head finds them itself. Given the
    right kind of word, it picks the right one in 88% (nearest: 86%)."
    """
    if not finding.state:
        return ""
    rule_text, other, comparison = describe_rule(finding.upos_rule), finding.other_score, finding.comparison
    other_text = ""
    if other and other.upos_rule:
        rule, score = describe_rule(other.upos_rule), percent(other.upos, digits)
        side = re.search(r" to the \w+$", rule_text)
        rule = rule.removesuffix(side[0]) if side else rule
        other_text = (
            "; on "
            f"{_shorten_corpus(other.corpus)}{'' if other.upos_rule == finding.upos_rule else f', the {rule}:'} {score}"
        )
    sentences = [f"The {rule_text}: {percent(finding.upos, digits)}{other_text}."]
    sentences += [RULE_KNOWLEDGE[finding.role]] if with_knowledge else []
    if comparison.choice_n >= MIN_CASES:
        choice, nearest = percent(comparison.choice, digits), percent(comparison.nearest, digits)
        sentences.append(f"Given the right kind of word, it picks the right one in {choice} (nearest: {nearest}).")
    return " ".join(sentences)


def describe_role(finding: Finding) -> str:
    """Explain a role, with an example if it is a relation between words, followed by :func:`describe_evidence`."""
    evidence = f"{finding.role}, {describe_evidence(finding)}"
    explanation = explain_relation(finding.detail) if finding.role in ("syntax", "coreference") else ""
    return f"{explanation}. {evidence[:1].upper()}{evidence[1:]}" if explanation else evidence


def describe_evidence(finding: Finding) -> str:
    """Return sentences on a role: its status, its numbers, and :func:`compare_with_rule`."""
    comparison = compare_with_rule(finding, 1)
    return f"{_describe_trust(finding)}: {_describe_numbers(finding)}{f'. {comparison}' if comparison else ''}"


def _describe_trust(finding: Finding) -> str:
    corpora = " and ".join(finding.corpora)
    status = f"established on {corpora}" if finding.status == ESTABLISHED else f"suggested by {corpora or 'one corpus'}"
    state = f", {STATE_WORDS[finding.state].replace('the rule', RULES[finding.role])}" if finding.state else ""
    return f"{status}{state}"


def _describe_numbers(finding: Finding) -> str:
    score, baseline = percent(finding.score), percent(finding.baseline)
    if finding.role == "syntax":
        relation, direction = finding.detail.split()
        return (
            f"coincides with {label_relation(relation)}, {DIRECTIONS[direction]}, right in {score} of {finding.n:,} "
            f"{_case_noun(finding)} ({_describe_interval(finding)}); best fixed offset {baseline}"
            f"{_describe_untrained(finding)}"
        )
    if finding.role == "coreference":
        return (
            f"coincides with coreference, from a third-person pronoun to an antecedent in {score} of {finding.n:,} "
            f"{_case_noun(finding)} ({_describe_interval(finding)}); the better simple rule "
            f"{baseline}{_describe_untrained(finding)}"
        )
    if finding.role == "position":
        target = {"previous": "the token before", "same": "the token itself", "next": "the token after"}[finding.detail]
        if name_measure(finding) == WEIGHT:
            sentence = f"{score} of its attention goes to {target} ({baseline} if it looked everywhere equally)"
        else:
            sentence = (
                f"its largest weight is on {target} in {score} of {finding.n:,} rows ({_describe_interval(finding)})"
            )
        return f"{sentence}{_describe_within_words(finding)}"
    if finding.detail in MEASURES:
        sentence = f"on {CORPUS}, {score} of its attention goes {MEASURES[finding.detail]}"
        return f"{sentence} ({baseline} if it looked everywhere equally){_describe_untrained(finding)}"
    if finding.role == "delimiter":
        target = "[CLS] and [SEP] together" if finding.detail == BOTH else SHORT_NAMES[finding.detail]
        return f"{score} of its attention goes to {target} ({baseline} if it looked everywhere equally)"
    return f"its entropy is {score} of the largest possible; the mean over the model’s heads is {baseline}"


def _describe_within_words(finding: Finding) -> str:
    """State the share of the attention of a position role that stays within words, if it is a quarter or more.

    The neighbouring token is then often a subword of the same word, not another word.
    """
    if finding.detail == "same" or not finding.within_words >= MIN_WITHIN_WORDS:
        return ""
    return f"; {percent(finding.within_words)} of its attention there stays within a word"


def _case_noun(finding: Finding) -> str:
    return f"{HELD_OUT} cases" if finding.status == SUGGESTED and finding.role == "syntax" else "cases"


def _describe_untrained(finding: Finding) -> str:
    return "" if math.isnan(finding.untrained) else f", best untrained head {percent(finding.untrained)}"


def _describe_interval(finding: Finding) -> str:
    low, high = percent(finding.low), percent(finding.high)
    return (
        f"{f'95% interval {low} to {high}' if low != high else f'95% interval: {low}'}"
        f"{describe_documents(finding.documents)}"
    )


def describe_documents(documents: int | None) -> str:
    """Describe the number of documents of an interval, with a note if they are few.

    The result is "" if the documents were not counted, in tables of older versions.
    """
    if documents is None:
        return ""
    if documents == 1:
        return f" over one document, or none named; {FEW_DOCUMENTS}"
    blocks = " or blocks of them" if documents >= FEWEST_BLOCKS else ""
    few_note = f"; {FEW_DOCUMENTS}" if documents < FEW else ""
    return f" over {documents:,} documents{blocks}{few_note}"


def mark_few_documents(documents: Iterable[int | None]) -> list[str]:
    """Return "few documents" for each number of documents that is small, otherwise ""."""
    return ["few documents" * (count is not None and count < FEW) for count in documents]


def find_best_baseline(finding: Finding) -> tuple[str, float]:
    """Return name and score of the best simple rule that a role is compared with."""
    rules = {baseline_name(finding): finding.baseline}
    if finding.upos_rule:
        rules[describe_rule(finding.upos_rule)] = finding.upos
    return max(rules.items(), key=lambda rule: rule[1])


def baseline_name(finding: Finding) -> str:
    """Name the baseline that decides whether there is a role."""
    names = {SYNTAX: "best fixed offset", COREFERENCE: "better of two simple rules", "broad": "average head"}
    return names.get(finding.role, "if it looked everywhere equally")


def _state_rank(finding: Finding) -> int:
    """Return 0 for a head that beats the rule, or has none; 1 and 2 for heads that equal it or are below it."""
    return STATES.index(finding.state) if finding.state else 0


def sort_by_strength(findings: Iterable[Finding]) -> list[Finding]:
    """Sort roles by how the head compares with the rule, then by gain.

    Roles measured by largest weights come last in each state.
    """
    return sorted(findings, key=lambda f: (_state_rank(f), name_measure(f) == LARGEST, -f.gain))


def sort_by_interest(findings: Iterable[Finding]) -> list[Finding]:
    """Sort roles in the order in which people look for them, and within a kind as :func:`sort_by_strength`."""
    return sorted(sort_by_strength(findings), key=lambda f: KIND_ORDER.index(f.role))


def group_by_head(findings: Sequence[Finding]) -> dict[Head, list[Finding]]:
    """Group roles by head, in the order of :func:`sort_by_interest`."""
    by_head: dict[Head, list[Finding]] = {}
    for finding in sort_by_interest(findings):
        by_head.setdefault(finding.head, []).append(finding)
    return by_head


NULL_WORDS = {  # a description of each null model, and the noun for a draw
    (SYNTAX, PERMUTATION): ("the trees of other sentences", "permutation"),
    (COREFERENCE, PERMUTATION): ("chains shifted along their documents", "permutation"),
    (SYNTAX, KIND): ("another word of the same part of speech in the place of each right one", "draw"),
}


def describe_chance(chance: ChanceRoles) -> str:
    """Return "27 roles of syntax; with the trees of other sentences none, in 20 permutations (p = 0.048)"."""
    maximum = f"at most {max(chance.drawn)}" if max(chance.drawn) else "none"
    null_model, draw = NULL_WORDS[chance.role, chance.null]
    roles, draws = counted(chance.observed, "role"), counted(len(chance.drawn), draw)
    return f"{roles} of {chance.role}; with {null_model} {maximum}, in {draws} (p = {chance.p:.3f})"
