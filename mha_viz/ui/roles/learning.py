"""How the toy model came by its roles: a slider over its training, the scores of its heads, and their maps."""

from __future__ import annotations

import base64
from functools import cache
from typing import Any, Literal, NamedTuple

import streamlit as st

from mha_viz import figure as figure_api
from mha_viz.assets import asset
from mha_viz.attention import Attention, Head
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import MhaVizError
from mha_viz.figures.caption import both
from mha_viz.figures.head_map import CONFIG
from mha_viz.figures.role_map import scores
from mha_viz.figures.theme import DARK, Theme
from mha_viz.models import catalog, snapshots
from mha_viz.numerals import counted, percent
from mha_viz.ui import address, frame, inference
from mha_viz.ui.annotated import built_in
from mha_viz.ui.parts import complain, guarded, theme

TASKS = {
    "previous_token": "the token before",
    "verb_subject": "from a subject to its verb",
    "pronoun_antecedent": "from a pronoun to its antecedent",
}
BASELINES = {
    "previous_token": "a token at random",
    "verb_subject": "best fixed offset",
    "pronoun_antecedent": "nearest candidate",
}
MODEL = "toy"
PARAMETER = "snapshot"
LONG = range(9, 14)  # words of the sentence that is drawn
PICTURES = 64  # kept: a look of every step, of 0.1 MB each
_STYLE = """
<style>
.st-key-learning_scores { overflow-x: auto; }
.st-key-learning_scores table { min-width: 860px; }
</style>
"""


class Drawn(NamedTuple):
    """The sentence that the maps are of, and for each task two of its words: from, to."""

    sentence: Sentence
    pairs: dict[str, tuple[int, int]]

    @property
    def text(self) -> str:
        """The words with one blank between them."""
        return " ".join(self.sentence.forms)

    def named(self, task: str) -> str:
        """The two words of a task."""
        first, second = (self.sentence.forms[place] for place in self.pairs[task])
        return f"“{first}” → “{second}”"


def show() -> None:
    """The slider, what the heads can do at that step, and every head's map of one sentence."""
    st.html(_STYLE)
    st.markdown("### How it learned")
    saved_steps = snapshots.steps(asset(MODEL))
    st.markdown(
        "The model started with random weights and practised four questions: which word is hidden, which word comes "
        "before, who a pronoun refers to, and what a subject does. No head was assigned any of them. The model was "
        f"saved at {len(saved_steps)} steps; at each, every head was measured on *held-out* sentences, which the model "
        "never saw in training. Move the slider, or use the arrow keys.",
        width=900,
    )
    _at_a_step(list(saved_steps), theme(), frame.page("explore"))


@st.fragment
@guarded(complain)
def _at_a_step(saved_steps: list[int], colours: Theme, explore: Any) -> None:
    asked = st.query_params.get(PARAMETER, "")
    st.session_state[PARAMETER] = (
        int(asked) if asked in map(str, saved_steps) else saved_steps[-1]
    )  # the URL is the state
    step = int(
        st.select_slider("Step of training", saved_steps, key=PARAMETER, on_change=_on_step, args=(saved_steps[-1],))
    )
    attention = _read(step)
    _told(step, attention)
    left, right = st.columns(2, gap="large")
    with left:
        if attention is not None:
            _maps(step, attention, "dark" if colours is DARK else "light")
            parameters = {"model": f"{MODEL}@{step}", "text": drawn().text}
            st.page_link(explore, label=":primary[Open this step in Explore]", query_params=parameters)
    with right:
        st.markdown("**Every head over training**; blue: the head that is best at the end, dotted: the baseline.")
        for task, words in TASKS.items():
            chart = scores(_of(task), step, f"{words[:1].upper()}{words[1:]}", colours)
            st.plotly_chart(chart, key=f"scores_{task}", theme=None, config=CONFIG)


@guarded()
def _on_step(last: int) -> None:
    step = st.session_state[PARAMETER]
    address.go(**{PARAMETER: None if step == last else str(step)})


@cache
def history() -> Any:
    """Every head's score at every step that is kept, on sentences that the model never saw."""
    import pandas as pd

    return pd.read_csv(asset("toy_history.csv"))


def _of(task: str) -> Any:
    table = history()
    return table[table["task"] == task]


@cache
def drawn() -> Drawn:
    """The first sentence of the built-in corpus that has all three relations, the last two across another noun."""
    for sentence in built_in().sentences:
        if len(sentence.forms) in LONG:
            subject, pronoun = _subject(sentence), _pronoun(sentence)
            if subject and pronoun:
                before = (subject[1], subject[1] - 1)
                pairs = {"previous_token": before, "verb_subject": subject, "pronoun_antecedent": pronoun}
                return Drawn(sentence, pairs)
    raise AssertionError("the grammar tells no such sentence any more")


def _subject(sentence: Sentence) -> tuple[int, int] | None:
    """A subject and its verb with a noun between them."""
    for place, word in enumerate(sentence.words):
        verb = word.head if word.base == "nsubj" and word.upos == "NOUN" else None
        if verb is not None and "NOUN" in [other.upos for other in sentence.words[place + 1 : verb]]:
            return place, verb
    return None


def _pronoun(sentence: Sentence) -> tuple[int, int] | None:
    """A pronoun and the noun that it means, which is not the nearest noun."""
    nouns = [place for place, word in enumerate(sentence.words) if word.upos == "NOUN"]
    for mention in sentence.mentions:
        if sentence.words[mention.word].upos == "PRON":
            meant = {one.word for one in sentence.mentions if one.chain == mention.chain}
            earlier = [noun for noun in nouns if noun < mention.word]
            if meant & set(earlier) and earlier[-1] not in meant:
                return mention.word, max(meant & set(earlier))
    return None


def _read(step: int) -> Attention | None:
    """The sentence as the model read it at ``step``; None, with a word on why, when it cannot be had."""
    try:
        return inference.read_by(catalog.resolve(f"{MODEL}@{step}"), drawn().text, "")
    except MhaVizError as error:
        complain(error)
        return None


def _told(step: int, attention: Attention | None) -> None:
    """The best head of each task at this step, beside the rule, and its weight in the sentence that is drawn."""
    words = attention.by_words().content().weights if attention is not None else None
    lines = [
        f"| after {counted(step, 'step')} | best head | right | baseline | its weight in the sentence below |",
        "| --- | --- | --- | --- | --- |",
    ]
    for task, name in TASKS.items():
        table = _of(task)
        at_step = table[table["step"] == step]
        best = at_step.loc[at_step["accuracy"].idxmax()]
        head = Head(int(best["layer"]), int(best["head"]))
        weight = f": {words[(*head, *drawn().pairs[task])]:.2f}" if words is not None else ""
        shares = (
            f"**{percent(best['accuracy'])}** of {int(best['n']):,} | {BASELINES[task]} {percent(best['baseline'])}"
        )
        lines.append(f"| {name} | {both(head)} | {shares} | {drawn().named(task)}{weight} |")
    with st.container(key="learning_scores"):
        st.markdown("\n".join(lines))


def _maps(step: int, attention: Attention, look: Literal["light", "dark"]) -> None:
    st.markdown(f"**Every head after {counted(step, 'step')}**; rows: from, columns: to")
    st.markdown(f"*{drawn().text}*")
    alt = f"Grid of all heads after {step} steps"
    st.html(f'<img alt="{alt}" style="width:100%" src="data:image/svg+xml;base64,{_picture(step, look, attention)}">')


@st.cache_data(max_entries=PICTURES, show_spinner=False)
def _picture(step: int, look: Literal["light", "dark"], _attention: Attention) -> str:
    """The grid of ``_attention`` as SVG in base64; the step and the look say which one it is."""
    from mha_viz.exports.preview import preview

    drawing = figure_api.grid(_attention, unit="words", special="hide", width_mm=150, look=look).drawing
    return base64.b64encode(preview(drawing)).decode()
