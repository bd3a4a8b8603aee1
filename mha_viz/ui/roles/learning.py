"""How the toy model's heads got their roles: its training step by step, the scores of its heads, and their maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from mha_viz.attention import Head
from mha_viz.corpus.treebank import Sentence
from mha_viz.figures.caption import both
from mha_viz.figures.frames import Recording, frames
from mha_viz.figures.head_map import CONFIG
from mha_viz.figures.role_map import scores
from mha_viz.figures.theme import Theme
from mha_viz.files.assets import asset
from mha_viz.models import catalog, snapshots
from mha_viz.numerals import counted, percent, weight
from mha_viz.training import toy_maps
from mha_viz.ui import address, navigation, style
from mha_viz.ui.annotated import built_in
from mha_viz.ui.bound import bound
from mha_viz.ui.caches import lasting
from mha_viz.ui.classroom import legible
from mha_viz.ui.components.player import player
from mha_viz.ui.download_panel import PageChart
from mha_viz.ui.parts import complain, guarded, sent, theme, whole
from mha_viz.ui.roles import filters

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
MODEL = toy_maps.TOY
CAUSAL = "repeater"  # another toy, whose training is shown with its own roles
TRAININGS = {toy_maps.TOY: "four questions", toy_maps.HIDDEN: "hidden words alone"}
TRAINING = "trained"  # the URL parameter, and the prefix of its value
GAIN = 0.1  # the gain over the baseline at which a head counts as doing a task
PARAMETER = "snapshot"
LONG = range(9, 14)  # the number of words of the sentence that is drawn


class Drawn(NamedTuple):
    """The sentence of the maps, and for each task two of its words: from, to."""

    sentence: Sentence
    pairs: dict[str, tuple[int, int]]

    @property
    def text(self) -> str:
        """The words, separated by single spaces."""
        return " ".join(self.sentence.forms)

    def named(self, task: str) -> str:
        """The two words of a task."""
        first, second = (self.sentence.forms[place] for place in self.pairs[task])
        return f"“{first}” → “{second}”"


def show_learning() -> None:
    """Show both trainings side by side, and for the chosen one a slider, what the heads can do at that step, and every
    head's map of one sentence."""
    style.apply("learning")
    st.markdown("## How it learned")
    saved_steps = snapshots.steps(asset(MODEL))
    st.markdown(
        "The model started with random weights and practised four questions: which word is hidden, which word comes "
        "before, who a pronoun refers to, and what a subject does. No head was assigned any of them. **A second "
        "model** started with the same weights and was asked the first question only: what its heads do came by itself."
        f" Each was saved at {len(saved_steps)} steps; at each, every head was measured on "
        "*held-out* sentences, which the models never saw in training.",
        width=900,
    )
    with st.container(key="learning_both"):
        st.markdown("\n".join(_both_trainings()))
    st.caption(
        "From: the first saved step from which the best head stays 10 points or more above the baseline. The "
        "second model comes as these numbers and maps alone; other pages show the first."
    )
    bound(
        st.segmented_control, "Trained on", TRAINING, trained(), list(TRAININGS), default=MODEL,
        key="learning_trained", format_func=TRAININGS.__getitem__, required=True,
    )  # fmt: skip
    _at_a_step(theme(), navigation.page("explore"))
    if any(row.name == CAUSAL for row in catalog.offered()):
        st.button(
            "See how a causal toy model learned to continue repeated words",
            key="to_repeater",
            type="tertiary",
            icon=":material/arrow_forward:",
            on_click=filters.open_model,
            args=(CAUSAL,),
        )


@st.fragment
@guarded(complain)
def _at_a_step(colours: Theme, explore: Any) -> None:
    step = step_in_view()
    _scores(step)
    st.markdown(f"**Every head at each step**; rows: from, columns: to. *{drawn().text}*")
    play(_recorded(trained(), colours), MODEL)
    if trained() == MODEL:
        parameters = {"model": f"{MODEL}@{step}", "text": drawn().text}
        st.page_link(explore, label=":primary[Open this step in Explore]", query_params=parameters)
    st.markdown("**Every head over training**; blue: the head that is best at the end, dotted: the baseline.")
    for task, place in zip(TASKS, st.columns(len(TASKS), gap="medium"), strict=True):
        with place:
            chart = _score_chart(trained(), task, step, colours)
            alt = f"{TASKS[task]}: every head over training."
            st.plotly_chart(legible(chart), key=f"scores_{task}", theme=None, config=CONFIG, alt=alt)


def charts() -> list[PageChart]:
    """The scores of every head over training, with the step in the URL marked."""
    step = step_in_view()
    about = (
        f"Every head of the toy model over its training on {TRAININGS[trained()]}, on held-out sentences; step "
        f"{step:,} is marked."
    )
    return [
        PageChart(f"Training: {words}", f"training-{task}", partial(_score_chart, trained(), task, step), about)
        for task, words in TASKS.items()
    ]


def step_in_view(toy: str = MODEL) -> int:
    """The training step in the URL; the first saved one unless the URL names another saved one."""
    saved_steps = snapshots.steps(asset(toy))
    wanted_step = address.now().get(PARAMETER, "")
    return int(wanted_step) if wanted_step in map(str, saved_steps) else saved_steps[0]


def play(recorded: Mapping[str, Any], toy: str) -> None:
    """Draw the maps of a toy's training, with the step in the URL in view; the step at which a visitor stops goes into
    the URL."""
    at = snapshots.steps(asset(toy)).index(step_in_view(toy))
    player({**recorded, "at": at}, f"{toy}_player", partial(_on_step, toy))


@guarded()
def _on_step(toy: str) -> None:
    step, saved_steps = whole(sent(f"{toy}_player", "step")), snapshots.steps(asset(toy))
    if step in saved_steps:
        address.go(**{PARAMETER: None if step == saved_steps[0] else str(step)})


def trained() -> str:
    """The training that the URL asks for, one of TRAININGS."""
    wanted = address.now().get(TRAINING, "")
    return wanted if wanted in TRAININGS else MODEL


def _both_trainings() -> list[str]:
    """A table of both trainings: per task the baseline and, for each model, its best head at the end and the step since
    when."""
    lines = [
        f"| best head at the end | baseline | {' | '.join(f'trained on {words}' for words in TRAININGS.values())} |",
        "| --- | --- | --- | --- |",
    ]
    for task, name in TASKS.items():
        cells = [_at_the_end(model, task) for model in TRAININGS]
        baseline = f"{BASELINES[task]} {percent(_final(MODEL, task)['baseline'])}"
        lines.append(f"| **{name}** | {baseline} | {' | '.join(cells)} |")
    return lines


def _at_the_end(model: str, task: str) -> str:
    best, since = _final(model, task), since_step(model, task)
    when = "less than 10 points above the baseline" if since is None else f"from step {since:,}"
    return f"{both(Head(int(best['layer']), int(best['head'])))} **{percent(best['accuracy'])}**, {when}"


def _final(model: str, task: str) -> Any:
    return _best(model, task, int(history(model)["step"].max()))


def since_step(model: str, task: str) -> int | None:
    """The first saved step from which the best head of a task stays GAIN above the baseline; None if there is
    none."""
    best = _history_of(model, task).groupby("step")["accuracy"].max()
    baseline = _history_of(model, task).groupby("step")["baseline"].first()
    below = best.index[(best - baseline < GAIN).to_numpy()]
    later = best.index[best.index > below.max()] if len(below) else best.index
    return int(later[0]) if len(later) else None


def _score_chart(model: str, task: str, step: int, colours: Theme) -> Any:
    words = TASKS[task]
    return scores(_history_of(model, task), step, f"{words[:1].upper()}{words[1:]}", colours)


@lasting(4)
def _recorded(model: str, colours: Theme) -> Mapping[str, Any]:
    """The data of all steps for the browser; cached, so callers must not change it."""
    places = {f"{words}: {drawn().named(task)}": dict([drawn().pairs[task]]) for task, words in TASKS.items()}
    return recorded(model, places, partial(_best_heads, model), colours)


def recorded(
    model: str, places: Mapping[str, Mapping[int, int]], best_heads: Callable[[int], str], colours: Theme
) -> Mapping[str, Any]:
    """The data of the maps that come with the app for a toy's training. ``places``: per relation, the word that a word
    should look at; ``best_heads``: those of a step, in words."""
    shipped = toy_maps.shipped(model)
    count, steps = len(shipped.words), shipped.steps.tolist()
    layers, heads = shipped.maps.shape[1:3]
    recording = Recording(
        key=model,
        steps=steps,
        words=shipped.words,
        names=[str(Head(layer, head)) for layer in range(layers) for head in range(heads)],
        maps=shipped.maps.reshape(len(steps), -1, count, count),
        relations=list(places),
        places=np.array([[at.get(word, -1) for word in range(count)] for at in places.values()]),
        captions=[f"Best heads: {best_heads(step)}." for step in steps],
    )
    return frames(recording, 0, colours)


@cache
def history(model: str = MODEL) -> Any:
    """Every head's score at every saved step, on held-out sentences."""
    import pandas as pd

    return pd.read_csv(asset(f"{model}_history.csv"))


def _history_of(model: str, task: str) -> Any:
    table = history(model)
    return table[table["task"] == task]


@cache
def drawn() -> Drawn:
    """The first sentence of the built-in corpus that contains all three relations, the last two of them with another
    noun in between."""
    for sentence in built_in().sentences:
        if len(sentence.forms) in LONG:
            subject, pronoun = _subject(sentence), _pronoun(sentence)
            if subject and pronoun:
                before = (subject[1], subject[1] - 1)
                pairs = {"previous_token": before, "verb_subject": subject, "pronoun_antecedent": pronoun}
                return Drawn(sentence, pairs)
    raise AssertionError("the grammar no longer generates such a sentence")


def _subject(sentence: Sentence) -> tuple[int, int] | None:
    """A subject and its verb, with a noun between them."""
    for place, word in enumerate(sentence.words):
        verb = word.head if word.base == "nsubj" and word.upos == "NOUN" else None
        if verb is not None and "NOUN" in [other.upos for other in sentence.words[place + 1 : verb]]:
            return place, verb
    return None


def _pronoun(sentence: Sentence) -> tuple[int, int] | None:
    """A pronoun and the noun that it refers to, which is not the nearest noun."""
    nouns = [place for place, word in enumerate(sentence.words) if word.upos == "NOUN"]
    for mention in sentence.mentions:
        if sentence.words[mention.word].upos == "PRON":
            meant = {one.word for one in sentence.mentions if one.chain == mention.chain}
            earlier = [noun for noun in nouns if noun < mention.word]
            if meant & set(earlier) and earlier[-1] not in meant:
                return mention.word, max(meant & set(earlier))
    return None


def _best(model: str, task: str, step: int) -> Any:
    """The row of the best head for a task at this step."""
    table = _history_of(model, task)
    at_step = table[table["step"] == step]
    return at_step.loc[at_step["accuracy"].idxmax()]


def _best_heads(model: str, step: int) -> str:
    best = {words: _best(model, task, step) for task, words in TASKS.items()}
    return ", ".join(
        f"{words} {Head(int(row['layer']), int(row['head']))} {percent(row['accuracy'])}" for words, row in best.items()
    )


def _scores(step: int) -> None:
    """Show the best head of each task at this step, beside the simple rule, and its weight in the sentence that is
    drawn."""
    recorded = toy_maps.shipped(trained())
    maps = recorded.maps[recorded.steps.tolist().index(step)]  # [layer, head, query, key]
    lines = [
        f"| after {counted(step, 'step')} | best head | right | baseline | its weight in the sentence below |",
        "| --- | --- | --- | --- | --- |",
    ]
    for task, name in TASKS.items():
        best = _best(trained(), task, step)
        head = Head(int(best["layer"]), int(best["head"]))
        link = f"{drawn().named(task)}: {weight(maps[(*head, *drawn().pairs[task])])}"
        shares = (
            f"**{percent(best['accuracy'])}** of {int(best['n']):,} | {BASELINES[task]} {percent(best['baseline'])}"
        )
        lines.append(f"| {name} | {both(head)} | {shares} | {link} |")
    with st.container(key="learning_scores"):
        st.markdown("\n".join(lines))
