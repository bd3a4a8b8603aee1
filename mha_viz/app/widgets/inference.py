"""Turn the URL into a reading: run the model, download it if necessary, and explain if it is unavailable."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotReady
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import streamlit as st

from mha_viz.analysis.bundled_data import add_annotation
from mha_viz.analysis.effects import measure_mean_outputs
from mha_viz.app.service import downloads, studies
from mha_viz.app.service.caches import get_model_service, is_ready, read_facts
from mha_viz.app.service.jobs import Job
from mha_viz.app.service.reader import verbs
from mha_viz.app.service.studies import RoleSummary
from mha_viz.app.url import address
from mha_viz.app.url.address import Address, Url
from mha_viz.app.url.annotated_texts import AnnotatedText, find_annotation, load_built_in_corpus
from mha_viz.app.widgets.parts import escape_markdown, report_errors, report_ignored, show_error, show_remark
from mha_viz.app.widgets.request import (
    find_opening,
    find_shown_model,
    has_two_stacks,
    hides_an_answer,
    is_part,
    read_model,
    set_part,
)
from mha_viz.attention import Attention, Head
from mha_viz.attention.steps import UNEXPLAINED
from mha_viz.corpus.derivations import is_derivable
from mha_viz.errors import MhaVizError, ModelError, UnknownHead
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.layout.packet import OpenHead
from mha_viz.models.getting import catalog
from mha_viz.models.getting.folder import Facts
from mha_viz.process.steps import run_steps
from mha_viz.request import BOTH, DECODER, FIRST_MASK, METHODS, TEXT, Question, Request
from mha_viz.text import Token, TokenizedText, clean, languages
from mha_viz.view.quantities import QUANTITIES
from mha_viz.view.settings import DEFAULTS

TOY_MODEL = "toy"  # the model that learned the built-in grammar
MULTILINGUAL = "bert-base-multilingual-cased"
# English words that are rare in other languages with Latin letters: a text that contains one counts as English.
ENGLISH = frozenset((
    *("the", "and", "is", "are", "it", "that", "with", "they", "not", "were", "have", "from", "you", "this", "she"),
    *("which", "but", "his", "their", "there", "what", "who", "would", "has", "been", "into", "because", "could"),
    *("does", "should", "these", "those", "your", "my"),
))  # fmt: skip
MIN_WORDS = 5  # minimum words of a text whose language can be guessed
# An English model splits a smaller share of words in English text, and a larger one in German, French and Spanish.
MIN_SPLIT_SHARE = 1 / 3
MAX_MISSING = 6  # maximum missing heads that a remark on the link names
WEIGHTS_NOTE = "The drawing below shows attention weights."
# Session key: set by Cancel, which reruns only a fragment, so that the whole page reruns next.
CANCELLED_KEY = "download_cancelled"
POLL_INTERVAL_S = 0.4  # seconds between two polls; the page shows that it is waiting after the first

R = TypeVar("R")


@dataclass(frozen=True)
class PageReading:
    """A reading on a page, with the URL that asks for it and the model that produced it.

    Everything derived from these is looked up once, at first use.

    Attributes:
        url: the URL.
        model: the model.
        attention: the reading.
        is_requested: whether the URL asks for this model; False if this model replaces an unavailable one.
    """

    url: Url
    model: catalog.Model
    attention: Attention
    is_requested: bool = True

    @cached_property
    def plain_request(self) -> Request:
        """The request for this text with no head off."""
        url_request = self.url.location.request
        return Request(self.model.name, self.url.text, url_request.pair, prefix=url_request.prefix)

    @cached_property
    def facts(self) -> Facts | None:
        """The facts of the model; None if its files were deleted after it read the text."""
        with suppress(MhaVizError):
            return read_facts(self.model)
        return None

    @cached_property
    def is_part(self) -> bool:
        """Whether the reading is a part of an encoder–decoder."""
        return is_part(self.attention)

    @cached_property
    def gold(self) -> AnnotatedText | None:
        """The annotation of the text, if it has any; None for a part of an encoder–decoder."""
        return None if self.is_part else self.url.gold

    @cached_property
    def summary(self) -> RoleSummary:
        """The stored summary of the model's roles. An encoder–decoder counts as measured: no study applies to it."""
        return RoleSummary(is_measured=True) if self.is_part else studies.summarise(self.model)

    @cached_property
    def study(self) -> tuple[Job | None, MhaVizError | None]:
        """The running study of the model over the built-in sentences, and the error of the last one if it failed."""
        digest = load_built_in_corpus().digest
        failure = studies.find_failure(self.model, digest)
        return studies.find_running(self.model, digest), failure and failure[0]

    @cached_property
    def opening(self) -> OpenHead:
        """The head that opens if the URL names none."""
        return find_opening(self.url, self.attention)

    @cached_property
    def requested_heads(self) -> dict[Head, bool]:
        """The heads to open, and whether the model has them."""
        location = self.url.location
        first_head = Head.parse(self.opening.head) if location.head is None else location.head
        other_heads = (Head(first_head.layer, number) for number in location.other_heads)
        return {head: self._has_head(head) for head in (first_head, *other_heads)}

    @cached_property
    def heads(self) -> tuple[Head, ...]:
        """The open heads. The first one is drawn beside the grid."""
        heads = tuple(head for head, exists in self.requested_heads.items() if exists)
        return heads if next(iter(self.requested_heads.values())) else (Head.parse(self.opening.head),)

    def _has_head(self, head: Head) -> bool:
        with suppress(UnknownHead):
            return bool(self.attention[head].size)
        return False

    @cached_property
    def hides_answer(self) -> bool:
        """Whether words of the text would give away an answer that the page hides."""
        return hides_an_answer(self.url, self.model.name)

    @property
    def token_count(self) -> int:
        """The number of tokens on the longer axis."""
        return max(len(self.attention.queries), len(self.attention.keys))


def read_whole_model(url: Url) -> PageReading | None:
    """Read plain attention weights of the whole model, ignoring the quantity and the heads that are off in the URL."""
    return read_nearest(url, url.location.with_request(off=(), quantity=DEFAULTS["shown"]))


def read_nearest(url: Url, location: Address, reports_source: bool = True) -> PageReading | None:
    """Return the reading that ``location`` asks for or, if it is unavailable, the nearest one, and show the reason.

    None if there is none. With ``reports_source``, also report errors in the text that heads take their outputs from.
    """
    model, text = None, url.text
    try:
        model = read_model(location)
        location = _drop_missing_heads(model, location)
        if is_ready(model) or (
            _is_plain(location) and get_model_service().has_reading(make_request(model, text, location))
        ):
            return PageReading(url, model, _read_with_remark(make_request(model, text, location), location))
    except MhaVizError as error:
        has_fallback = bool(model and not _is_plain(location) and text.strip())
        has_quantity = location.request.quantity != DEFAULTS["shown"]
        fallback_note = WEIGHTS_NOTE if has_fallback and has_quantity else ""
        if reports_source or not (location.request.off and location.request.method == TEXT):
            show_error(error, fallback_note)
        elif fallback_note:
            show_remark(fallback_note)
        if has_fallback:  # try without the quantity or, if it is the default, without switching heads off
            fallback = (
                location.with_request(quantity=DEFAULTS["shown"]) if has_quantity else location.with_request(off=())
            )
            return read_nearest(url, fallback, reports_source)
        if isinstance(error, ModelError):
            _show_back_button(location)
        return _read_with_fallback_model(url, location, model)
    download(model)
    return _read_with_fallback_model(url, location, model)


def _is_plain(location: Address) -> bool:
    """Return whether the URL asks for attention weights with no head off."""
    return not location.request.off and location.request.quantity == DEFAULTS["shown"]


def _drop_missing_heads(model: catalog.Model, location: Address) -> Address:
    """Return ``location`` without heads that the model lacks, with a remark on these.

    Return it unchanged if the model's files are not on this machine. Raises the errors of ``read_facts``.
    """
    facts = read_facts(model) if location.request.off else None
    if facts is None or facts.parts:
        return location
    shape = facts.model
    off = tuple(head for head in location.request.off if head.layer < shape.layers and head.head < shape.heads)
    report_ignored([f"off={head}" for head in location.request.off if head not in off][:MAX_MISSING])
    return location.with_request(off=off)


def _read_with_remark(request: Request, location: Address) -> Attention:
    """Read the request. Show a remark if heads are switched off, or if the quantity needs all heads on."""
    attention = read_request(request)
    if request.off:
        manner = "" if request.method == METHODS[0] else f" ({request.manner})"
        verb = "is" if len(request.off) == 1 else "are"
        show_remark(f"{name_heads(request.off)} {verb} switched off{manner}.")
    elif location.request.off and not lacks_source(location):
        report_all_heads_on(location)
    return attention


def report_all_heads_on(location: Address) -> None:
    """Say that the quantity in the URL is shown with all heads on."""
    show_remark(f"{QUANTITIES[location.request.quantity].title} is shown with all heads on.")


def lacks_source(location: Address) -> bool:
    """Return whether heads are to take their outputs from another text, but its field was emptied."""
    return location.request.method == TEXT and location.is_source_empty


def make_request(model: catalog.Model, text: str, location: Address) -> Request:
    """Build the request that the URL describes, for a model and a text. Raises the errors of :func:`set_quantity`."""
    request = Request(model.name, text, location.request.pair, prefix=_choose_prefix(model, location))
    if location.request.off and not lacks_source(location):
        return set_quantity(replace(request, off=location.request.off, **location.get_method_fields(text)), location)
    return set_quantity(set_part(request, model, location), location)


def describe_prefix(prefix: str) -> str:
    """Return "; after the prefix “query: ”", the end of a caption; "" without a prefix."""
    return f"; after the prefix “{prefix}”" if prefix else ""


def _choose_prefix(model: catalog.Model, location: Address) -> str:
    """Return the prefix in the URL.

    For an encoder–decoder, where it would be a part of the source, return an empty one, with a remark.
    """
    if location.request.prefix and has_two_stacks(model):
        show_remark(f"{model.label} has no separate prefix: write it into the text.")
        return ""
    return location.request.prefix


def set_quantity(request: Request, location: Address) -> Request:
    """Return the request with the quantity in the URL, without settings that this quantity does not accept.

    Raises the errors of :func:`load_question`.
    """
    quantity = QUANTITIES[location.request.quantity]
    if not quantity.with_all_heads:
        return replace(request, quantity=location.request.quantity)
    plain_request = Request(request.model, *request.texts, quantity=location.request.quantity, prefix=request.prefix)
    return (
        plain_request.with_question(load_question(plain_request, location.with_request(off_in=BOTH)))
        if quantity.of_answer
        else plain_request
    )


def load_question(request: Request, location: Address) -> Question:
    """Return the question in the URL about the text of a request.

    If there are several masked tokens and the URL names none, the question is about the first. Raises the errors of
    ``models.reading.answers.make_question``.
    """
    url_request = location.request
    place = FIRST_MASK if url_request.place is None else url_request.place
    other = url_request.other if url_request.other.strip() and url_request.other != request.text else ""
    plain_request = Request(request.model, *request.texts, prefix=request.prefix)
    question_request = (
        replace(plain_request, other=other, off_in=url_request.off_in)
        if other
        else replace(plain_request, place=place, word=url_request.word)
    )
    return wait_for_result(
        get_model_service().ask_cached(verbs.prepare_question, question_request), "Asking the model…"
    )


def measure_means(request: Request) -> None:
    """Measure the mean outputs of a model's heads over the built-in sentences, if the request needs them.

    This is done in steps, so that other requests are answered in between. Raises the model's errors.
    """

    def measure_part(sentences: range) -> None:
        future = get_model_service().ask(verbs.measure_means, request.model, sentences.start, sentences.stop)
        wait_for_result(future, "Measuring the heads’ mean outputs…")

    if request.method == "mean":
        run_steps(measure_mean_outputs(len(load_built_in_corpus().sentences), measure_part))


def name_heads(heads: Sequence[Head], max_names: int = 6) -> str:
    """Name heads, at most ``max_names`` of them: "L3H1 (4-2)", "L3H1 (4-2) and 3 more"."""
    named_heads = heads if len(heads) <= max_names else heads[: max_names - 1]
    more_note = f" and {len(heads) - len(named_heads)} more" if len(named_heads) < len(heads) else ""
    return f"{', '.join(map(format_head, named_heads))}{more_note}"


def read_request(request: Request) -> Attention:
    """Run the model, whose files must be on this machine. Raises the model's errors.

    For the unexplained quantity, recipes use the annotation of the text, if it has any.
    """
    if request.off:
        measure_means(request)
    attention = wait_for_result(get_model_service().ask_cached(verbs.read, request), "is reading…", request.model)
    gold = None if request.pair or request.quantity != UNEXPLAINED else find_annotation(request.text)
    return add_annotation(attention, gold.sentence) if isinstance(gold, AnnotatedText) else attention


def try_read(request: Request) -> Attention | None:
    """Read a request; show the error and return None instead of raising."""
    try:
        return read_request(request)
    except MhaVizError as error:
        show_error(error)
        return None


def wait_for_result(future: Future[R], label: str, model: str = "") -> R:
    """Return the result of the future. Raises the errors of the work.

    If it takes long, show ``label``, after the label of the ``model`` with this name; nothing if ``label`` is empty.
    """
    placeholder = st.empty()  # created in every run, because expanders close if their position on the page changes
    try:
        return future.result(POLL_INTERVAL_S)
    except NotReady:
        model_label = f"{catalog.resolve(model).label} " if model else ""
        spinner = st.spinner(escape_markdown(f"{model_label}{label}"), show_time=True) if label else nullcontext()
        with placeholder.container(), spinner:
            rerun_point = st.empty()
            while True:
                try:
                    return future.result(POLL_INTERVAL_S)
                except NotReady:
                    rerun_point.empty()  # Streamlit ends an abandoned run here
    finally:
        future.cancel()  # a visitor who has left must not stay in the queue
        placeholder.empty()


def _read_with_fallback_model(url: Url, location: Address, missing_model: catalog.Model | None) -> PageReading | None:
    """Read with the previous or else the default model, while the requested model is unavailable."""
    default_name = catalog.choose_default().name
    for name in dict.fromkeys((location.previous_model or default_name, default_name)):
        try:
            model = catalog.resolve(name)
            if model != missing_model and is_ready(model):
                attention = read_request(
                    set_part(Request(model.name, url.text, location.request.pair), model, location)
                )
                show_remark(f"Shown below instead: {model.label}.")
                return PageReading(url, model, attention, is_requested=False)
        except MhaVizError:
            continue
    return None


# ---- Downloading --------------------------------------------------------------------------------------


def download(model: catalog.Model) -> None:
    """Download a model, or join its download; show the progress and a button that cancels it.

    The page continues by itself when the download has ended.
    """
    failure = get_model_service().get_failure(model)
    if failure is not None:
        show_error(failure)
        with st.container(horizontal=True):
            st.button("Try again", key="try_again", on_click=get_model_service().forget_failure, args=(model,))
            _show_back_button(address.get_url().location)
        return
    try:
        job = downloads.start(model)
    except MhaVizError as error:
        show_error(error)
        _show_back_button(address.get_url().location)
        return
    _show_progress(job, model)


@st.fragment(run_every=0.5)
@report_errors(show_error)
def _show_progress(job: Job, model: catalog.Model) -> None:
    job.heartbeat()
    if st.session_state.pop(CANCELLED_KEY, False) and not job.is_finished:  # the job goes on for other visitors
        st.rerun()
    if job.is_finished:
        if job.error is None:
            address.go(before=None, **dict.fromkeys(address.MODEL_PARAMETERS))
        st.rerun()
    left, right = st.columns([5, 1], vertical_alignment="center")
    label = f"Looking for {model.label}…"
    if job.size:
        done, total = job.fraction * job.size / 1e6, job.size / 1e6
        label = f"Downloading {model.label}: {done:,.0f} of {total:,.0f} MB"
    elif downloads.is_waiting(job):
        label = f"{model.label} is waiting for other downloads…"
    left.progress(job.fraction, text=escape_markdown(label))
    right.button("Cancel", key="cancel_download", on_click=_cancel, args=(job,), width="stretch")


@report_errors()
def _cancel(job: Job) -> None:
    job.cancel()
    st.session_state[CANCELLED_KEY] = True
    _go_back(address.get_url().location.previous_model)


def _show_back_button(location: Address) -> None:
    """Show a button that returns to the previous or else to the default model."""
    for name in dict.fromkeys((location.previous_model, None)):
        with suppress(MhaVizError):
            model = catalog.resolve(name) if name else catalog.choose_default()
            if location.request.model and model.name != location.request.model and is_ready(model):
                label = f"Back to {escape_markdown(model.label.partition(',')[0])}"
                st.button(label, key="back_to_model", on_click=_go_back, args=(name,))
                return


@report_errors()
def _go_back(name: str | None) -> None:
    """Return to the previous model, whose picture and view are still shown. None means the default model."""
    address.go(model=name, before=None)


# ---- Remarks on a text ---------------------------------------------------------------------------


def report_cut_text(page: PageReading) -> None:
    """Report where the text or its second sentence was cut, and how much of it was read."""
    location, request = page.url.location, page.attention.request
    key_text = page.attention.keys  # a target is never cut
    source = request.text if request is not None and request.part == DECODER else None
    texts = (key_text.text, key_text.pair) if source is None else (clean(page.url.sentence), "")
    lengths_in_link = [*map(len, location.request.texts)]  # for CoNLL-U, the length of its lines, not of its words
    if limits := [
        f"the first {link_length:,}"
        for link_length, typed_length in zip(lengths_in_link, location.typed_lengths or lengths_in_link, strict=True)
        if typed_length > link_length
    ]:
        typed_total = sum(location.typed_lengths or ())
        show_remark(f"{typed_total:,} characters were typed; a link can hold {' and '.join(limits)}.")
    if source is not None and (unread_source := texts[0][len(source) :]).strip():
        show_remark(f"The source is longer than the model can read. Cut here: …{source[-40:]} ✂ {unread_source[:40]}…")
    cut = key_text.cut
    if cut is None:
        return
    at_least = "more than " if cut.more or location.typed_lengths else ""
    cuts = [
        f"…{text[max(0, limit - 40) : limit]} ✂ {text[limit : limit + 40]}…"
        for text, limit in zip(texts, cut.kept, strict=True)
        if limit < len(text)
    ]
    token_counts = f"{cut.limit:,} of {at_least}{cut.pieces:,} tokens are read"
    show_remark(f"The text is longer than the model can read: {token_counts}. Cut here: {'  /  '.join(cuts)}")


def report_unknown_text(attention: Attention) -> None:
    """Report words that the tokenizer does not know, which the model reads as [UNK].

    For letters of another script, offer the multilingual model.
    """
    words = report_unknown_words(attention)
    has_unknown_word = any(not token.known for token in words)
    models = {model.name: model for model in catalog.list_offered()}
    is_english = attention.model in models and models[attention.model].english
    split_note = describe_split_words(attention) if is_english else ""
    if split_note:
        show_remark(f"{models[attention.model].label.partition(',')[0]} was trained on English; {split_note}")
    is_other_script = (has_unknown_word or is_english) and languages.has_other_letters([token.text for token in words])
    if is_other_script and MULTILINGUAL in models and attention.model != MULTILINGUAL:
        label = f"Try {escape_markdown(models[MULTILINGUAL].label)}"
        st.button(label, key="read_multilingual", on_click=_read_multilingual)


def report_unknown_words(attention: Attention) -> list[Token]:
    """Report words that the tokenizer does not know, and return all words.

    For the toy model, also say if the text is no sentence of its grammar.
    """
    words = [token for text in _list_texts(attention) for token in text.by_words().without_special().tokens]
    unknown_words = list(dict.fromkeys(token.text for token in words if not token.known))
    if unknown_words and all(not token.known for token in words):
        show_remark(
            "The model knows none of these words and reads each as the placeholder [UNK]; its links mean little here."
        )
    elif unknown_words:
        word_list = ", ".join(f"“{text[:20]}”" for text in unknown_words[:6])
        more_note = " and more" if len(unknown_words) > 6 else ""
        show_remark(f"The model does not know these words and reads each as [UNK]: {word_list}{more_note}.")
    forms = [token.text for token in attention.queries.without_special().tokens]
    if attention.model == TOY_MODEL and (attention.queries.pair or not is_derivable(forms)):
        show_remark("The toy’s grammar cannot generate this sentence, so its heads mean little here.")
    return words


def _list_texts(attention: Attention) -> tuple[TokenizedText, ...]:
    """Return the text that was read or, for cross-attention, both texts."""
    return (attention.queries, attention.keys) if attention.is_cross else (attention.text,)


def describe_split_words(attention: Attention) -> str:
    """Say how many words are split into subwords; "" if that is not unusual.

    Many split words suggest a language that the model has hardly seen.
    """
    if is_part(attention):  # a target may be in any language
        return ""
    text = attention.text
    words = text.by_words()
    counts = {
        word.text.casefold(): len(group)
        for word, is_special, group in zip(words.tokens, words.special, text.groups, strict=True)
        if not is_special and any(character.isalpha() for character in word.text)
    }
    split_count = sum(count > 1 for count in counts.values())
    if len(counts) < MIN_WORDS or split_count < MIN_SPLIT_SHARE * len(counts) or ENGLISH & counts.keys():
        return ""
    return f"it splits {split_count} of these {len(counts)} words into subwords."


@report_errors()
def _read_multilingual() -> None:
    previous_model = find_shown_model(address.get_url().location)
    address.go(model=MULTILINGUAL, before=previous_model, **dict.fromkeys(address.MODEL_PARAMETERS))
