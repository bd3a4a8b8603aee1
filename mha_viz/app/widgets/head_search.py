"""Search for heads: by name, by what they do in plain words, or by words of the sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from mha_viz.analysis.bundled_data import MIN_NAMED_SHARE, HeadRecipe
from mha_viz.analysis.corpus_why import HeadShares
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.metrics import ON_DELIMITERS
from mha_viz.analysis.needs import PairResults
from mha_viz.analysis.pairs import NEEDED
from mha_viz.attention import Attention, Head
from mha_viz.figures.words.glosses import (
    describe_link,
    explain_relation,
    find_gloss,
    find_roles,
    find_rules,
    label_link,
    simplify_rule,
)
from mha_viz.figures.words.need_words import name_kinds
from mha_viz.figures.words.role_words import (
    compare_elsewhere,
    describe_role_status,
    find_best_baseline,
    sort_by_strength,
)
from mha_viz.heads import list_heads
from mha_viz.numerals import counted, decimal, format_weight, percent

MAX_LISTED = 6  # maximum heads in a group of answers
MAX_PER_WORD = 4  # maximum heads for each direction of a word
MIN_CASES = 20  # minimum held-out cases of a listed relation
# Standings of answers.
NO_ROLE, RECIPE = "no role", "share of its attention over a corpus"
SCORES = "share of its scores over a corpus"
PAIRS = "sentence pairs that are right without it"
COPYING_SCORE = "copying score, from its weights"

NONE_NEEDED = "No head was shown to be needed for this."
NOT_WRITTEN = "No head writes it in this text."
# Other names that visitors may type for the groups of :class:`HeadShares`.
GROUP_SYNONYMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "position": ("positions", "position embedding"),
        "word": ("words", "content", "word embedding"),
        "earlier heads": ("earlier head", "composition"),
        "feed-forward": ("feed forward", "mlp"),
    }
)
WRITING_VERBS = ("write", "writes", "writing")
COPYING_NAMES = ("copies", "copy", "copying", "copying head", "copying heads", "copying score", "copying scores")
QUERY_HELP = "a name such as L3H1 or 4-2, or what the head does: subject, pronoun, comma, writes beast"
RULES = {
    "best fixed offset": "offset_odd",
    "rule by parts of speech": "upos_odd",
    "best untrained head": "untrained_odd",
}
# The measures of roles other than relations: a table, its column, and the offset of its rows.
MEASURES: Mapping[str, tuple[str, str, int | None]] = MappingProxyType(
    {
        **{name: ("delimiter", name, None) for name in ON_DELIMITERS},
        "previous": ("position", "mass", -1),
        "same": ("position", "mass", 0),
        "next": ("position", "mass", 1),
        "entropy": ("entropy", "normalised", None),
    }
)
_NAME = re.compile(r"[Ll](\d{1,3})\s*[Hh](\d{1,3})", re.ASCII)
_NUMBERS = re.compile(r"(\d{1,3})\s*[-–.]\s*(\d{1,3})", re.ASCII)
_ARROW = re.compile(r"→|[-–=]+>")


QUERY, KEY = 0, 1  # the sides of a link
WordsOfText = Sequence[tuple[Sequence[int], str]]  # the numbers of each word's tokens, and the word


class HeadAnswer(NamedTuple):
    """A head as the answer to a search.

    Attributes:
        head: the head.
        description: what it does, in plain words.
        score: its score, formatted; empty if nothing was measured.
        baseline: the baseline, formatted in the same way.
        rule: the name of the baseline.
        standing: how far the role can be trusted.
        link: the two tokens of a link in the sentence.
        role: the name and detail of the role that was searched for.
        pin: the pin of a single word of the sentence, such as "q3".
    """

    head: Head
    description: str
    score: str = ""
    baseline: str = ""
    rule: str = ""
    standing: str = ""
    link: tuple[int, int] | None = None
    role: tuple[str, str] | None = None
    pin: str = ""


class AnswerGroup(NamedTuple):
    """Answers of one kind, best first, with a note on them."""

    title: str
    answers: tuple[HeadAnswer, ...] = ()
    note: str = ""


# ---- By name ------------------------------------------------------------------------------------------


def parse_names(query: str) -> dict[str, Head]:
    """Return the heads that the typed text can name; each key says how they are counted.

    "L3H1" names one head; "4-2" names one counted from 1 and another counted from 0.
    """
    name, numbers = _NAME.fullmatch(query.strip()), _NUMBERS.fullmatch(query.strip())
    if name:
        return {"": Head(int(name[1]), int(name[2]))}
    if not numbers:
        return {}
    first, second = int(numbers[1]), int(numbers[2])
    paper_heads = {"counted from 1, as in papers": Head(first - 1, second - 1)} if first and second else {}
    return {**paper_heads, "counted from 0": Head(first, second)}


def answer_names(
    query: str,
    heads: dict[str, Head],
    has_head: Callable[[Head], bool],
    findings: Sequence[Finding],
    recipes: Sequence[HeadRecipe] = (),
) -> list[AnswerGroup]:
    """Return a group of answers for each way to read a head's name: its roles, or else its recipe.

    If no such head exists, the answer says so.
    """
    groups = [
        AnswerGroup(f"{query.strip()}, {counting}" if counting else str(head), _answer_roles(head, findings, recipes))
        for counting, head in heads.items()
        if has_head(head)
    ]
    return groups or [AnswerGroup(query.strip(), note="This model has no such head.")]


def _answer_roles(head: Head, findings: Sequence[Finding], recipes: Sequence[HeadRecipe]) -> tuple[HeadAnswer, ...]:
    head_roles = _drop_duplicates(finding for finding in sort_by_strength(findings) if finding.head == head)
    description = next((recipe.describe(simplify_rule) for recipe in recipes if recipe.head == head), "")
    return tuple(map(_make_answer, head_roles)) or (
        HeadAnswer(head, description or "No role was found for this head."),
    )


# ---- By what it does ----------------------------------------------------------------------------------


def find_by_role(query: str, findings: Sequence[Finding], load_table: Callable[[str], Any]) -> AnswerGroup | None:
    """Return the heads that do what the typed words describe; None if the words describe no known role.

    If no head has the intended role, the first answer is the head that comes closest to it in the tables of the
    profile, with its baseline. ``load_table`` returns a table by name, or None.
    """
    details = find_roles(query)
    gloss = find_gloss(details[0]) if details else None
    if gloss is None:
        return None
    roles = _drop_duplicates(finding for finding in sort_by_strength(findings) if _get_detail(finding) in details)
    roles.sort(key=lambda finding: details.index(_get_detail(finding)))
    answers = [_make_answer(finding)._replace(role=(finding.role, finding.detail)) for finding in roles]
    note = ""
    if not roles or _get_detail(roles[0]) != details[0]:
        note = f"No head has a role for “{gloss.link}” here."
        measure = MEASURES.get(details[0])
        closest_heads = (
            _find_best(details[0], load_table("syntax_chosen"))
            if measure is None
            else _find_highest(details[0], *measure, load_table)
        )
        answers = [*closest_heads, *answers]
    explanation = explain_relation(details[0])
    return AnswerGroup(f"{explanation[:1].upper()}{explanation[1:]}", tuple(answers[:MAX_LISTED]), note)


def _get_detail(finding: Finding) -> str:
    return finding.detail.split()[0]


def _make_answer(finding: Finding) -> HeadAnswer:
    rule, baseline = find_best_baseline(finding)
    description = _describe_detail(finding.detail)
    standing = f"{describe_role_status(finding)}{compare_elsewhere(finding, 1)}"
    return HeadAnswer(finding.head, description, percent(finding.score), percent(baseline), rule, standing)


def _describe_detail(detail: str) -> str:
    """Describe a role's detail, such as "its verb → object (obj)" or "pronoun → what it refers to".

    The first example is the role of a head that attends from the verb to its object.
    """
    return label_link(detail) if " " in detail else describe_link(detail) or detail


def _find_highest(
    detail: str, name: str, column: str, offset: int | None, load_table: Callable[[str], Any]
) -> list[HeadAnswer]:
    """Return the head with the highest value of a measure. The baseline is the mean of all heads."""
    rows = load_table(name)
    if rows is None:
        return []
    rows = rows if offset is None else rows[rows["offset"] == offset]
    row, mean = rows.loc[rows[column].idxmax()], percent(float(rows[column].mean()))
    score, head = percent(float(row[column])), Head(int(row["layer"]), int(row["head"]))
    return [HeadAnswer(head, _describe_detail(detail), score, mean, "average head", NO_ROLE)]


def _find_best(relation: str, chosen_rows: Any) -> list[HeadAnswer]:
    """Return the head with the highest accuracy for a relation that no head has as a role.

    The accuracy is measured on the half of the sentences that did not choose the head.
    """
    if chosen_rows is None:
        return []
    rows = chosen_rows[(chosen_rows["relation"] == relation) & (chosen_rows["n_odd"] >= MIN_CASES)].sort_values("level")
    if not len(rows):
        return []
    row = rows.iloc[0]  # sorts "base" before "full"
    rule, baseline = max(((name, float(row[column])) for name, column in RULES.items()), key=lambda pair: pair[1])
    score = percent(row["accuracy_odd"])
    detail = f"{relation} {row['direction']}"
    head = Head(int(row["layer"]), int(row["head"]))
    return [HeadAnswer(head, _describe_detail(detail), score, percent(baseline), rule, NO_ROLE)]


def _drop_duplicates(findings: Iterable[Finding]) -> list[Finding]:
    """Return one finding per head and relation, in the direction that comes first."""
    findings_by_relation: dict[tuple[Head, str], Finding] = {}
    for finding in findings:
        findings_by_relation.setdefault((finding.head, _get_detail(finding)), finding)
    return list(findings_by_relation.values())


# ---- By a rule of its recipe ---------------------------------------------------------------------------


def find_by_rule(query: str, recipes: Sequence[HeadRecipe]) -> AnswerGroup | None:
    """Return the heads whose recipes have the largest shares of the rule that the typed words describe.

    Examples are "looks at full stops" and "same word". None if the words describe no rule. The baseline is the mean
    share of all heads.
    """
    parts = [(recipe.head, part) for recipe in recipes for part in recipe.parts]
    rules = find_rules(query, dict.fromkeys(part.name for _, part in parts))
    totals = {rule: sum(part.share for _, part in parts if part.name == rule) for rule in rules}
    matching_parts = [entry for entry in parts if entry[1].name in totals and entry[1].share >= MIN_NAMED_SHARE]
    matching_parts.sort(key=lambda entry: -entry[1].share)
    answers = [
        HeadAnswer(
            head,
            part.name,
            percent(part.share),
            percent(totals[part.name] / len(recipes)),
            "average head",
            RECIPE,
        )
        for head, part in matching_parts[:MAX_LISTED]
    ]
    return AnswerGroup(f"By recipe: {', '.join(rules[:2])}", tuple(answers)) if answers else None


# ---- By what its scores depend on -----------------------------------------------------------------------


def find_by_dependence(query: str, heads: Sequence[HeadShares]) -> AnswerGroup | None:
    """Return the heads whose scores depend most on what the typed words name, such as "position" or "content".

    None if the words name nothing known. The baseline is the mean of all heads.
    """
    query = " ".join(query.casefold().split())
    group = next((group for group, names in GROUP_SYNONYMS.items() if query in (group, *names)), None)
    if group is None or not heads:
        return None
    mean = percent(sum(head.shares[group] for head in heads) / len(heads))
    top_heads = sorted(heads, key=lambda head: -head.shares[group])[:MAX_LISTED]
    description = f"its attention depends on {group}"
    answers = [
        HeadAnswer(h.head, description, percent(h.shares[group]), mean, "average head", SCORES) for h in top_heads
    ]
    return AnswerGroup(f"{description[:1].upper()}{description[1:]}", tuple(answers))


# ---- By what it writes ----------------------------------------------------------------------------------


def find_by_copying(query: str, table: Any) -> AnswerGroup | None:
    """Return the heads with the highest copying scores in a profile's table COPYING, if the query asks for copying.

    None for other texts. The baseline is the score of the same head with random weights.
    """
    if " ".join(query.casefold().split()) not in COPYING_NAMES:
        return None
    title = "It moves a token towards the word that it attends to"
    if table is None:
        return AnswerGroup(title, note="The copying scores of this model were not measured.")
    is_copying = table["copying"] > table["copying_untrained"].clip(lower=0)
    rows = table[is_copying].sort_values("copying", ascending=False, kind="stable").head(MAX_LISTED)
    answers = [
        HeadAnswer(
            Head(int(row.layer), int(row.head)),
            "copies",
            decimal(row.copying),
            decimal(row.copying_untrained),
            "random weights",
            COPYING_SCORE,
        )
        for row in rows.itertuples(index=False)
    ]
    return AnswerGroup(title, tuple(answers), "" if answers else "No head of this model does.")


def parse_written_word(query: str) -> str:
    """Return the word of a query such as "writes animal", in lower case; empty for other texts."""
    verb, _, word = query.strip().partition(" ")
    return parse_one_word(word).strip(".,;:!?") if verb.casefold() in WRITING_VERBS else ""


def find_by_written_word(
    word: str, attention: Attention, written_words: Sequence[Sequence[Sequence[str]]]
) -> AnswerGroup:
    """Return the heads that move a token of this text towards a word, the strongest link first.

    A head's score is its strongest link between different ordinary tokens whose key writes the word; the baseline is
    the mean of all heads. ``word`` is in lower case. ``written_words``: for each head and key, the words that the key's
    vector moves a token towards.
    """
    tokens, is_ordinary = attention.queries.tokens, np.logical_not(attention.queries.special)
    is_link = np.outer(is_ordinary, is_ordinary) & ~np.eye(len(tokens), dtype=bool)
    weights_by_answer = dict[HeadAnswer, float]()
    for head, words_by_key in zip(list_heads(attention.layer_numbers, attention.heads), written_words, strict=True):
        is_written = [word in map(str.casefold, words) for words in words_by_key]
        weights = np.where(is_link & is_written, attention[head], 0)
        query, key = map(int, np.unravel_index(int(weights.argmax()), weights.shape))
        if weights[query, key] > 0:
            description = f"{tokens[query].drawn} → {tokens[key].drawn}, writes {', '.join(words_by_key[key])}"
            weight, mean = float(weights[query, key]), float(attention.weights[:, :, query, key].mean())
            numbers = format_weight(weight), format_weight(mean), "average head"
            weights_by_answer[HeadAnswer(head, description, *numbers, link=(query, key))] = weight
    answers = sorted(weights_by_answer, key=lambda answer: -weights_by_answer[answer])[:MAX_LISTED]
    other_count = len(weights_by_answer) - len(answers)
    note = f"And {counted(other_count, 'other head')}." if other_count else "" if answers else NOT_WRITTEN
    return AnswerGroup(f"Writes “{word}” in this text", tuple(answers), note)


# ---- By the sentence pairs that need it -------------------------------------------------------------------


def find_by_need(query: str, needs: Mapping[Head, PairResults]) -> AnswerGroup | None:
    """Return the heads that sentence pairs need, for "needed" or for a kind of pair, as in "needed for agreement".

    None for other texts and for a kind that was not measured. The score is the share of pairs that are right
    without the head, the baseline with it. Without a kind, the pairs are of all kinds that need the head.
    """
    phrase = _normalise(query).removeprefix("heads ")
    if not re.match(rf"{NEEDED}( for\b|$)", phrase):
        return None
    if not needs:
        return AnswerGroup("Needed heads", note="Sentence pairs were not measured with this model.")
    typed_kind = phrase.removeprefix(NEEDED).removeprefix(" for").strip()
    kind_names = {_normalise(kind): kind for need in needs.values() for kind in need.by_kind}
    if typed_kind and typed_kind not in kind_names:
        return None
    if typed_kind:
        kind = kind_names[typed_kind]
        matches = [(head, kind, need.by_kind[kind].counts) for head, need in needs.items() if kind in need.kinds]
    else:
        kind = "sentence pairs"
        matches = [(head, name_kinds(need) or kind, need.counts) for head, need in needs.items() if need.is_needed]
    matches.sort(key=lambda row: row[2].difference)
    answers = [
        HeadAnswer(
            head,
            f"needed for {kinds}",
            percent(counts.right_without / counts.n),
            percent(counts.right / counts.n),
            "with the head",
            PAIRS,
        )
        for head, kinds, counts in matches[:MAX_LISTED]
    ]
    return AnswerGroup(f"Needed for {kind}", tuple(answers), "" if answers else NONE_NEEDED)


def _normalise(text: str) -> str:
    """Return a text in lower case, with single spaces."""
    return " ".join(text.casefold().split())


# ---- By two words of the sentence ---------------------------------------------------------------------


def has_arrow(query: str) -> bool:
    """Return whether the text contains an arrow, so that it can only describe a link."""
    return _ARROW.search(query) is not None


def parse_two_words(query: str) -> tuple[str, str] | None:
    """Return the two words in "it → animal", "it animal" or "from it to animal", in lower case.

    None for other texts.
    """
    words = [word.strip("“”\"'").casefold() for word in _ARROW.sub(" ", query).split()]
    words = words[1:] if len(words) == 4 and words[0] == "from" else words
    words = [words[0], words[2]] if len(words) == 3 and words[1] == "to" else words
    return (words[0], words[1]) if len(words) == 2 and all(words) else None


def find_by_two_words(words: tuple[str, str], attention: Attention) -> AnswerGroup | None:
    """Return the heads with the strongest link from the first word to the second, anywhere in the text.

    None if the text does not contain both. The baseline is the mean of all heads.
    """
    queries, keys = (
        [
            group
            for token, group in zip(text.by_words().tokens, text.groups, strict=True)
            if token.text.casefold() == word
        ]
        for text, word in zip((attention.queries, attention.keys), words, strict=True)
    )
    pairs = [(query, key) for query in queries for key in keys if attention.is_cross or query != key]
    if not pairs:
        return None
    shares = np.stack([_compute_share(attention, *pair) for pair in pairs])  # [pair, layer, head]
    max_weights = shares.max(axis=0)  # [layer, head]
    mean = format_weight(float(max_weights.mean()))
    answers = []
    for flat_index in np.argsort(-max_weights, axis=None, kind="stable")[:MAX_LISTED]:
        row, number = map(int, np.unravel_index(flat_index, max_weights.shape))
        head = Head(attention.layer_numbers[row], number)
        query, key = pairs[int(shares[:, row, number].argmax())]
        score, link = format_weight(float(max_weights[row, number])), (query[0], key[0])
        answers.append(HeadAnswer(head, " → ".join(words), score, mean, "average head", link=link))
    return AnswerGroup(f"From “{words[0]}” to “{words[1]}” in this text", tuple(answers))


def parse_one_word(query: str) -> str:
    """Return a word that was typed alone, in lower case and without quotation marks; empty for other texts."""
    words = query.split()
    return words[0].strip("“”\"'").casefold() if len(words) == 1 else ""


def find_by_one_word(word: str, attention: Attention) -> list[AnswerGroup]:
    """Return the heads with the strongest weights from another word to this one, and from this one to another.

    All occurrences in the text count. Empty if the text does not contain the word. Special tokens are left out. The
    baseline is the mean of all heads.
    """
    words = [
        [
            (group, token.text)
            for token, group in zip(text.by_words().tokens, text.groups, strict=True)
            if not token.special
        ]
        for text in (attention.queries, attention.keys)
    ]
    groups = [_find_at_side(word, attention, words, side) for side in (KEY, QUERY)]
    return [group for group in groups if group is not None]


def _find_at_side(word: str, attention: Attention, words: Sequence[WordsOfText], side: int) -> AnswerGroup | None:
    """Return the heads with the strongest weights from a word (``side`` QUERY) or to it (KEY).

    ``words`` are the words of both sides.
    """
    queries, keys = words
    occurrences = [index for index, (_, name) in enumerate(words[side]) if name.casefold() == word]
    if not occurrences or not words[1 - side]:
        return None
    query_parts = [queries[index] for index in occurrences] if side == QUERY else queries
    key_parts = [keys[index] for index in occurrences] if side == KEY else keys
    weights = np.stack(
        [_compute_shares(attention, group, [key for key, _ in key_parts]) for group, _ in query_parts], axis=2
    )
    if not attention.is_cross:  # weights are [layer, head, query, key]; a word's weight on itself does not count
        for number, index in enumerate(occurrences):
            weights[(..., number, index) if side == QUERY else (..., index, number)] = 0
    max_weights = weights.max(axis=(2, 3))
    if not max_weights.any():  # the only word
        return None
    mean = format_weight(float(max_weights.mean()))
    answers = []
    for flat_index in np.argsort(-max_weights, axis=None, kind="stable")[:MAX_PER_WORD]:
        row, number = map(int, np.unravel_index(flat_index, max_weights.shape))
        q, k = map(int, np.unravel_index(int(weights[row, number].argmax()), weights.shape[2:]))
        (query, from_word), (key, to_word) = query_parts[q], key_parts[k]
        pin = f"k{key[0]}" if side == KEY else f"q{query[0]}"
        head, score = Head(attention.layer_numbers[row], number), format_weight(float(max_weights[row, number]))
        answers.append(HeadAnswer(head, f"{from_word} → {to_word}", score, mean, "average head", pin=pin))
    return AnswerGroup(f"{'To' if side == KEY else 'From'} “{word}” in this text", tuple(answers))


def _compute_shares(attention: Attention, query: Sequence[int], keys: Sequence[Sequence[int]]) -> Any:
    """Return the weights from a word to several others, [layer, head, key], as :func:`_compute_share` counts them."""
    word_weights = attention.weights[:, :, list(query)].mean(axis=2)  # [layer, head, token]
    return np.stack([word_weights[..., list(key)].sum(axis=-1) for key in keys], axis=-1)


def _compute_share(attention: Attention, query: Sequence[int], key: Sequence[int]) -> Any:
    """Return the weight from one word to another, [layer, head], as :meth:`Attention.by_words` defines it.

    It is the mean over the subwords of the first word, and the sum over those of the second.
    """
    return attention.weights[:, :, list(query)][..., list(key)].sum(axis=-1).mean(axis=-1)
