"""Find sentences that show a head in its role, and build the links that open them on Explore."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import quote

from mha_viz.analysis.examples import Example, list_examples, list_spans
from mha_viz.analysis.profile import Profile
from mha_viz.app.service.caches import get_model_service, is_ready
from mha_viz.app.service.reader import verbs
from mha_viz.app.service.studies import Evidence
from mha_viz.app.url import address
from mha_viz.app.url.address import CaseInLink
from mha_viz.app.url.annotated_texts import AnnotatedText, find_annotation, load_built_in_corpus
from mha_viz.attention import Head
from mha_viz.corpus.conllu import format_conllu
from mha_viz.corpus.excerpts import SentenceSpan, extract_excerpts, iter_reduced_sentences
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import MhaVizError
from mha_viz.figures.words.glosses import find_gloss
from mha_viz.figures.words.role_words import group_by_head
from mha_viz.models.getting import catalog
from mha_viz.numerals import format_weight
from mha_viz.request import Request

CONTEXT_WORDS, SHORT_CONTEXT_WORDS = 12, 5  # words on each side of a link: in general, and in a head's card
MIN_WORDS = 4  # minimum words of a sentence in a head's card
MODEL_TIMEOUT_S = 10  # seconds to wait for the model


class RoleCase(NamedTuple):
    """A sentence in which a head does what its role says.

    Attributes:
        excerpt: the sentence, or the words around the link.
        parameters: the URL parameters with which Explore shows the case; None if it is too long for a link.
        answer: the head's answer, in words.
    """

    excerpt: str
    parameters: dict[str, str] | None
    answer: str


def find_right_case(
    model: catalog.Model,
    evidence: Evidence,
    head: Head,
    examples: Sequence[Example],
    role: tuple[str, str] | None = None,
) -> RoleCase | None:
    """Find a sentence in which a head is right.

    Prefer the recorded case with the largest weight in a sentence of at least ``MIN_WORDS`` words. If no sentence for a
    coreference role may be shown, let the model read the example in the role's gloss, and return it if the head is
    right there. Return None if nothing was found.

    Args:
        model: the model.
        evidence: its measurements.
        head: the head.
        examples: the recorded cases of the head that may be shown.
        role: the name and detail of the role; by default the head's first role that has such a sentence.
    """
    for finding in group_by_head(evidence.findings()).get(head, []):
        name = (finding.role, finding.detail)
        if role not in (None, name):
            continue
        right_examples = [example for example in examples if (example.role, example.detail) == name and example.right]
        if right_examples:
            return describe_case(
                next((e for e in right_examples if len(e.sentence.forms) >= MIN_WORDS), right_examples[0]),
                SHORT_CONTEXT_WORDS,
            )
        if finding.role == "coreference" and (meaning := find_gloss(finding.detail)):
            gloss_case = _check_gloss_example(model, head, meaning.example)
            if gloss_case is not None:
                return gloss_case
    return None


def _check_gloss_example(model: catalog.Model, head: Head, example: str) -> RoleCase | None:
    """Return the example of a role if the head is right there; None otherwise.

    ``example`` marks the word that attends with asterisks and the right answer with underscores. The head is right if
    it gives the right answer more weight than any other word.
    """
    words = example.split()
    query, key = (next(index for index, word in enumerate(words) if mark in word) for mark in "*_")
    forms = [re.sub("[*_]", "", word) for word in words]
    text = " ".join(forms)
    if not is_ready(model):
        return None
    with suppress(MhaVizError, TimeoutError):
        reading = (
            get_model_service().ask_cached(verbs.read, Request(model.name, text)).result(MODEL_TIMEOUT_S).by_words()
        )
        ordinary_tokens = [index for index, is_special in enumerate(reading.queries.special) if not is_special]
        row = reading[head][ordinary_tokens[query], ordinary_tokens]
        if len(row) == len(forms) and int(row.argmax()) == key:
            parameters = {**_read_model_parameters(), "text": text, "case": str(CaseInLink(head, "q", query))}
            return RoleCase(
                text, parameters, f"“{forms[query]}” → “{forms[key]}” ({format_weight(float(row[key]))}), right"
            )
    return None


# ---- Recorded cases -----------------------------------------------------------------------------------------


def load_bundled_sentences(profile: Profile) -> Mapping[SentenceSpan, Sentence]:
    """Return the sentences of a profile's cases that everybody may read: bundled or built-in ones."""
    spans = list_spans(profile.tables["evidence"])
    if profile.sentences:
        return dict(zip(spans, profile.sentences, strict=True))
    if profile.facts["sha256"] == load_built_in_corpus().digest:
        return dict(zip(spans, extract_excerpts(load_built_in_corpus().sentences, spans), strict=True))
    return {}


def select_cases(head: Head, profile: Profile, sentences: Mapping[SentenceSpan, Sentence]) -> tuple[Example, ...]:
    """Return the recorded cases of a head whose sentences are in ``sentences``."""
    table = profile.tables["evidence"]
    rows = table[(table["layer"] == head.layer) & (table["head"] == head.head)]
    return list_examples(rows, sentences) if len(rows) else ()


def list_bundled_cases(evidence: Evidence, head: Head) -> list[Example]:
    """Return the recorded cases of a head whose sentences everybody may read."""
    profiles = [profile for profile in evidence.profiles if "evidence" in profile.tables]
    return [case for profile in profiles for case in select_cases(head, profile, load_bundled_sentences(profile))]


def describe_case(example: Example, context_words: int = CONTEXT_WORDS) -> RoleCase:
    """Describe a recorded case, with ``context_words`` words of context on both sides of the link."""
    excerpt = cut_around(example.sentence.forms, (example.word, example.answer), context_words)
    answer = f"“{example.form(example.word)}” → “{example.form(example.answer)}”"
    if example.detail.endswith("head_to_dep"):  # here the answer is the word that attends
        answer = f"“{example.form(example.answer)}” → “{example.form(example.word)}”"
    gold = " or ".join(f"“{example.form(word)}”" for word in example.gold)
    mark = "right" if example.right else f"correct: {gold}" if gold else "wrong"
    parameters = make_explore_parameters(example.sentence, make_link_case(example), encode_gold(example))
    return RoleCase(excerpt, parameters, f"{answer} ({format_weight(example.weight)}), {mark}")


# ---- Links to Explore ---------------------------------------------------------------------------------------


def encode_gold(example: Example) -> str:
    """Return the gold annotation that Explore shows for a case, such as "nsubj.dep_to_head" or "coreference".

    Empty for roles without annotation.
    """
    return {"syntax": example.detail.replace(" ", "."), "coreference": "coreference"}.get(example.role, "")


def make_link_case(example: Example) -> CaseInLink:
    """Return the case as a link names it. For "head_to_dep" the word is the key, otherwise the query."""
    return CaseInLink(example.head, "k" if example.detail.endswith("head_to_dep") else "q", example.word)


def make_explore_parameters(sentence: Sentence, case: CaseInLink, gold: str) -> dict[str, str] | None:
    """Return the URL parameters with which Explore shows a sentence and its annotation; None if too long for a link."""
    text = " ".join(sentence.forms)
    annotation = find_annotation(text)
    texts: Iterable[str] = [text]
    if not isinstance(annotation, AnnotatedText) or annotation.sentence.words != sentence.words:
        texts = map(_format_conllu, iter_reduced_sentences(sentence, coreference=gold == "coreference"))
    model_parameters = _read_model_parameters()
    max_bytes = address.MAX_ENCODED - len(quote(model_parameters.get("tray", "")))
    fitting_text = next((text for text in texts if len(quote(text)) <= max_bytes), None)
    return (
        None
        if fitting_text is None
        else {**model_parameters, "text": fitting_text, "case": str(case), **({"gold": gold} if gold else {})}
    )


def _format_conllu(sentence: Sentence) -> str:
    """Return a sentence as CoNLL-U lines without comments, as it can be pasted."""
    return "\n".join(line for line in format_conllu([sentence]).splitlines() if line and not line.startswith("#"))


def cut_around(forms: Sequence[str], ends: Sequence[int], context_words: int = CONTEXT_WORDS) -> str:
    """Return the sentence; if it is long, only ``context_words`` words around both ends of a link."""
    return " ".join(_iter_around(forms, [min(max(word, 0), len(forms) - 1) for word in ends], context_words))


def _iter_around(forms: Sequence[str], ends: Sequence[int], context_words: int) -> Iterator[str]:
    last_index = -1
    for i in (i for i in range(len(forms)) if any(abs(i - end) <= context_words for end in ends)):
        if i != last_index + 1:
            yield "…"
        yield forms[i]
        last_index = i
    if last_index + 1 < len(forms):
        yield "…"


def _read_model_parameters() -> dict[str, str]:
    return {name: value for name, value in address.get_parameters().items() if name in ("model", "tray")}
