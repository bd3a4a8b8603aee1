"""From a request to a reading: running the model, downloading it, and what the page says if it is unavailable."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

import streamlit as st

from mha_viz.analysis.described import with_annotation
from mha_viz.analysis.effects import mean_outputs
from mha_viz.attention import Attention, Head
from mha_viz.attention.steps import UNEXPLAINED
from mha_viz.browser.quantities import QUANTITIES
from mha_viz.browser.view import DEFAULTS
from mha_viz.corpus.derivable import is_derivable
from mha_viz.errors import MhaVizError, ModelError
from mha_viz.figures.caption import both
from mha_viz.models import catalog
from mha_viz.process.steps import completed
from mha_viz.reader import verbs
from mha_viz.request import BOTH, DECODER, FIRST, METHODS, TEXT, Question, Request
from mha_viz.text import Token, TokenizedText, clean, languages
from mha_viz.ui import address, downloads
from mha_viz.ui.address import Address
from mha_viz.ui.annotated import Annotated, annotated, built_in
from mha_viz.ui.caches import facts, model_service, ready
from mha_viz.ui.jobs import Job
from mha_viz.ui.parts import complain, guarded, plain, remark, say_unused
from mha_viz.ui.request import has_two, is_part, model_of, of_part, shown_model

OF_GRAMMAR = "toy"  # the model that learned the built-in grammar
MULTILINGUAL = "bert-base-multilingual-cased"
# English words that are rare in other languages with Latin letters: a text that contains one counts as English.
ENGLISH = frozenset((
    *("the", "and", "is", "are", "it", "that", "with", "they", "not", "were", "have", "from", "you", "this", "she"),
    *("which", "but", "his", "their", "there", "what", "who", "would", "has", "been", "into", "because", "could"),
    *("does", "should", "these", "those", "your", "my"),
))  # fmt: skip
LEAST_WORDS = 5  # the fewest words of a text whose language can be told
IN_PIECES = 1 / 3  # of the words: English text has fewer, German, French and Spanish text more for an English model
MOST_UNUSED = 6  # heads of a link that are named as not existing
WEIGHTS = "The drawing below shows attention weights."
CANCELLED = "download_cancelled"  # in a tab's state: the click has run a part of the page, and the rest has to follow
SOON = 0.4  # seconds to wait before the page says that it is working

R = TypeVar("R")


def requested_reading(text: str, where: Address) -> Attention | None:
    """As :func:`read_shown`, but always the attention weights of the whole model."""
    return read_shown(text, where.but(off=(), quantity=DEFAULTS["shown"]))


def read_shown(text: str, where: Address, says_source: bool = True) -> Attention | None:
    """The reading that the URL asks for, or the nearest one that can be shown, with a remark on why; None if there is
    none. ``says_source``: say, too, what is wrong with the text that heads take their outputs from."""
    model = None
    try:
        model = model_of(where)
        where = _of_existing_heads(model, where)
        if ready(model) or (_is_plain(where) and model_service().has_reading(requested(model, text, where))):
            return _shown(requested(model, text, where), where)
    except MhaVizError as error:
        has_plainer = bool(model and not _is_plain(where) and text.strip())
        instead = WEIGHTS if has_plainer and where.request.quantity != DEFAULTS["shown"] else ""
        if says_source or not (where.request.off and where.request.method == TEXT):
            complain(error, instead)
        elif instead:
            remark(instead)
        if has_plainer:
            return _plainer(text, where, says_source)
        if isinstance(error, ModelError):
            _way_back(where)
        return _meanwhile(text, where, model)
    download(model)
    return _meanwhile(text, where, model)


def _is_plain(where: Address) -> bool:
    """Whether the URL asks for the attention weights of the whole model."""
    return not where.request.off and where.request.quantity == DEFAULTS["shown"]


def _of_existing_heads(model: catalog.Model, where: Address) -> Address:
    """``where`` with those heads off that the model has, with a remark on the others; unchanged if its files are not
    here. Raises what ``facts`` raises."""
    of_files = facts(model) if where.request.off else None
    if of_files is None or of_files.parts:
        return where
    shape = of_files.model
    off = tuple(head for head in where.request.off if head.layer < shape.layers and head.head < shape.heads)
    say_unused([f"off={head}" for head in where.request.off if head not in off][:MOST_UNUSED])
    return where.but(off=off)


def is_of_requested_model(attention: Attention, where: Address) -> bool:
    """Whether the model in the URL gave this reading, not the one that is shown in the meantime."""
    with suppress(MhaVizError):
        return model_of(where).name == attention.model
    return False


def _plainer(text: str, where: Address, says_source: bool) -> Attention | None:
    """The reading without the quantity that failed, or else without heads switched off; ``says_source`` as above."""
    if where.request.quantity == DEFAULTS["shown"]:
        return requested_reading(text, where)
    return read_shown(text, where.but(quantity=DEFAULTS["shown"]), says_source)


def _shown(request: Request, where: Address) -> Attention:
    """The reading with another quantity, or with heads switched off, with a remark that says which."""
    attention = read(request)
    if request.off:
        manner = "" if request.method == METHODS[0] else f" ({request.manner})"
        remark(f"{listed(request.off)} switched off{manner}.")
    elif where.request.off and not lacks_source(where):
        say_all_on(where)
    return attention


def say_all_on(where: Address) -> None:
    """Say that the quantity in the URL is one of the whole model."""
    remark(f"{QUANTITIES[where.request.quantity].title} is shown with all heads on.")


def lacks_source(where: Address) -> bool:
    """Whether the text that heads are to take their outputs from was emptied."""
    return where.request.method == TEXT and where.emptied


def requested(model: catalog.Model, text: str, where: Address) -> Request:
    """The request in the URL to a model about a text. Raises the errors of :func:`as_shown`."""
    request = Request(model.name, text, where.request.pair, prefix=_prefix(model, where))
    if where.request.off and not lacks_source(where):
        return as_shown(replace(request, off=where.request.off, **where.way(text)), where)
    return as_shown(of_part(request, where), where)


def _prefix(model: catalog.Model, where: Address) -> str:
    """The prefix in the URL; none, with a remark, for an encoder–decoder, of whose source it would be a part."""
    if where.request.prefix and has_two(model):
        remark(f"{model.label} reads no prefix apart from its source: write it into the text.")
        return ""
    return where.request.prefix


def as_shown(request: Request, where: Address) -> Request:
    """The request with the quantity that the URL asks for, and without what does not go with it. Raises the errors of
    :func:`question_about`."""
    quantity = QUANTITIES[where.request.quantity]
    if not quantity.with_all_heads:
        return replace(request, quantity=where.request.quantity)
    whole = Request(request.model, *request.texts, quantity=where.request.quantity, prefix=request.prefix)
    return whole.about(question_about(whole, where.but(off_in=BOTH))) if quantity.of_answer else whole


def question_about(request: Request, where: Address) -> Question:
    """The question that the URL asks about the text of a request, about the first of several masked tokens unless it
    names one. Raises the errors of ``models.answers.question_about``."""
    in_url = where.request
    place = FIRST if in_url.place is None else in_url.place
    other = in_url.other if in_url.other.strip() and in_url.other != request.text else ""
    whole = Request(request.model, *request.texts, prefix=request.prefix)
    of_words = replace(whole, place=place, word=in_url.word, other=other, off_in=in_url.off_in)
    return wait(model_service().cached(verbs.question, of_words), "Asking the model…")


def measure_means(request: Request) -> None:
    """Measure the mean outputs of a model's heads over the built-in sentences if a request needs them, in steps, so
    that other requests are answered in between. Raises what the model raises."""

    def measure(some: range) -> None:
        future = model_service().ask(verbs.measure_means, request.model, some.start, some.stop)
        wait(future, "Measuring the mean outputs of the heads…")

    if request.method == "mean":
        completed(mean_outputs(len(built_in().sentences), measure))


def listed(heads: Sequence[Head], most: int = 6) -> str:
    """Heads as the subject of a sentence: "L3H1 (4-2) is", "L3H1 (4-2) and 3 more are"."""
    shown = heads if len(heads) <= most else heads[: most - 1]
    more = f" and {len(heads) - len(shown)} more" if len(shown) < len(heads) else ""
    return f"{', '.join(map(both, shown))}{more} {'is' if len(heads) == 1 else 'are'}"


def read(request: Request) -> Attention:
    """The reading of a model whose files are on this machine; where the text has annotation, recipes know it. Raises
    what the model raises."""
    if request.off:
        measure_means(request)
    done = wait(model_service().cached(verbs.read, request), f"{catalog.resolve(request.model).label} is reading…")
    gold = None if request.pair or request.quantity != UNEXPLAINED else annotated(request.text)
    return with_annotation(done, gold.sentence) if isinstance(gold, Annotated) else done


def read_by(request: Request) -> Attention | None:
    """As :func:`read`; None, with a remark on why, if there is no reading."""
    try:
        return read(request)
    except MhaVizError as error:
        complain(error)
        return None


def wait(future: Future[R], words: str) -> R:
    """The result of the future; the page shows ``words`` if it takes long. Raises what the work raises."""
    try:
        return future.result(SOON)
    except NotYet:
        with st.spinner(plain(words), show_time=True):
            sign = st.empty()
            while True:
                try:
                    return future.result(SOON)
                except NotYet:
                    sign.empty()  # Streamlit ends an abandoned run here
    finally:
        future.cancel()  # a visitor who has left must not stay in the queue


def _meanwhile(text: str, where: Address, missing: catalog.Model | None) -> Attention | None:
    """The picture shown while a model is unavailable: by the previous model, or else by the default one."""
    for name in dict.fromkeys((where.before or catalog.default().name, catalog.default().name)):
        try:
            model = catalog.resolve(name)
            if model != missing and ready(model):
                attention = read(of_part(Request(model.name, text, where.request.pair), where))
                remark(f"Meanwhile, the drawing below shows {model.label}.")
                return attention
        except MhaVizError:
            continue
    return None


# ---- Downloading --------------------------------------------------------------------------------------


def download(model: catalog.Model) -> None:
    """The progress of the model's download, with a way to cancel it; the page continues by itself when the model is
    there."""
    failure = model_service().failed(model)
    if failure is not None:
        complain(failure)
        with st.container(horizontal=True):
            st.button("Try again", key="try_again", on_click=model_service().forget_failure, args=(model,))
            _way_back(address.url().where)
        return
    try:
        job = downloads.start(model)
    except MhaVizError as error:
        complain(error)
        _way_back(address.url().where)
        return
    _progress(job, model)


@st.fragment(run_every=0.5)
@guarded(complain)
def _progress(job: Job, model: catalog.Model) -> None:
    job.look()
    if st.session_state.pop(CANCELLED, False) and not job.finished:  # others still wait for it
        st.rerun()
    if job.finished:
        if job.error is None:
            address.go(before=None, **dict.fromkeys(address.OF_THIS_MODEL))
        st.rerun()
    left, right = st.columns([5, 1], vertical_alignment="center")
    words = f"Looking for {model.label}…"
    if job.size:
        done, total = job.fraction * job.size / 1e6, job.size / 1e6
        words = f"Downloading {model.label}: {done:,.0f} of {total:,.0f} MB"
    elif downloads.waits(job):
        words = f"{model.label} is waiting for other downloads…"
    left.progress(job.fraction, text=plain(words))
    right.button("Cancel", key="cancel_download", on_click=_cancel, args=(job,), width="stretch")


@guarded()
def _cancel(job: Job) -> None:
    job.let_go()
    st.session_state[CANCELLED] = True
    _go_back(address.url().where.before)


def _way_back(where: Address) -> None:
    """A button back to the previous model, or else to the default one, if the requested one is unavailable."""
    for name in dict.fromkeys((where.before, None)):
        with suppress(MhaVizError):
            model = catalog.resolve(name) if name else catalog.default()
            if where.request.model and model.name != where.request.model and ready(model):
                label = f"Back to {plain(model.label.partition(',')[0])}"
                st.button(label, key="back_to_model", on_click=_go_back, args=(name,))
                return


@guarded()
def _go_back(name: str | None) -> None:
    """Return to the previous model, whose picture and view are still shown; None means the default model."""
    address.go(model=name, before=None)


# ---- What is said of a text ---------------------------------------------------------------------------


def say_cut(attention: Attention, where: Address, sentence: str) -> None:
    """Say where the ``sentence`` of the URL or its pair was cut, and how much of it was read."""
    read, request = attention.keys, attention.request  # a target is never cut
    source = request.text if request is not None and request.part == DECODER else None
    texts = (read.text, read.pair) if source is None else (clean(sentence), "")
    held = [*map(len, where.request.texts)]  # of CoNLL-U, the lines and not the words in it
    if limits := [f"the first {h:,}" for h, n in zip(held, where.typed or held, strict=True) if n > h]:
        remark(f"{sum(where.typed or ()):,} characters were typed; a link can hold {' and '.join(limits)}.")
    if source is not None and (rest := texts[0][len(source) :]).strip():
        remark(f"The source is longer than the model can read. Cut here: …{source[-40:]} ✂ {rest[:40]}…")
    cut = read.cut
    if cut is None:
        return
    more = "more than " if cut.more or where.typed else ""
    places = [
        f"…{text[max(0, limit - 40) : limit]} ✂ {text[limit : limit + 40]}…"
        for text, limit in zip(texts, cut.kept, strict=True)
        if limit < len(text)
    ]
    counted = f"{cut.limit:,} of {more}{cut.pieces:,} pieces are read"
    remark(f"The text is longer than the model can read: {counted}. Cut here: {'  /  '.join(places)}")


def say_unknown(attention: Attention) -> None:
    """Say which words the tokenizer has no piece for: the model reads [UNK] in their place. The model of many languages
    is offered for letters of another script."""
    read = say_unknown_words(attention)
    unknown = any(not token.known for token in read)
    models = {model.name: model for model in catalog.offered()}
    of_english = attention.model in models and models[attention.model].english
    foreign = split_words(attention) if of_english else ""
    if foreign:
        remark(f"{catalog.resolve(attention.model).label} reads English; {foreign}")
    is_other_script = (unknown or of_english) and languages.has_other_letters([token.text for token in read])
    if is_other_script and MULTILINGUAL in models and attention.model != MULTILINGUAL:
        label = f"Read it with {plain(models[MULTILINGUAL].label)}"
        st.button(label, key="read_multilingual", on_click=_read_multilingual)


def say_unknown_words(attention: Attention) -> list[Token]:
    """Do as :func:`say_unknown`, without an offer to read the text with another model; return all words. Of the toy,
    say also that a text is no sentence of its grammar."""
    words = [t for text in _texts(attention) for t in text.by_words().without_special().tokens]
    unknown = list(dict.fromkeys(t.text for t in words if not t.known))
    if unknown and all(not t.known for t in words):
        remark("The tokenizer knows none of these words; the model reads only [UNK], so these links say little.")
    elif unknown:
        listed = ", ".join(f"“{text[:20]}”" for text in unknown[:6])
        remark(f"Unknown to the tokenizer and read as [UNK]: {listed}{' and more' if len(unknown) > 6 else ''}.")
    forms = [token.text for token in attention.queries.without_special().tokens]
    if attention.model == OF_GRAMMAR and (attention.queries.pair or not is_derivable(forms)):
        remark("This is no sentence of the grammar that the toy learned: what its heads do here says little.")
    return words


def _texts(attention: Attention) -> tuple[TokenizedText, ...]:
    """The text that was read, or those on both sides."""
    return (attention.queries, attention.keys) if attention.is_cross else (attention.text,)


def split_words(attention: Attention) -> str:
    """How many words are split into pieces, if that suggests a language that the model has hardly seen; else an empty
    string."""
    if is_part(attention):  # a target may be in any language
        return ""
    text = attention.text
    words = text.by_words()
    counts = {
        word.text.casefold(): len(group)
        for word, special, group in zip(words.tokens, words.special, text.groups, strict=True)
        if not special and any(character.isalpha() for character in word.text)
    }
    split = sum(count > 1 for count in counts.values())
    if len(counts) < LEAST_WORDS or split < IN_PIECES * len(counts) or ENGLISH & counts.keys():
        return ""
    return f"{split} of {len(counts)} different words are split into pieces."


@guarded()
def _read_multilingual() -> None:
    before = shown_model(address.url().where)
    address.go(model=MULTILINGUAL, before=before, **dict.fromkeys(address.OF_THIS_MODEL))
