"""Show how the heads of the toy models got their roles, on the stage.

The maps show every head on one sentence at each saved step of training; *Numbers* has the scores of all heads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from mha_viz.app.lab import real_heads, stage
from mha_viz.app.lab.stage import NextScene
from mha_viz.app.service.caches import cache_results
from mha_viz.app.url import address
from mha_viz.app.url.annotated_texts import load_built_in_corpus
from mha_viz.app.widgets import download_panel, navigation
from mha_viz.app.widgets.download_panel import PageChart
from mha_viz.app.widgets.parts import get_theme, report_errors, show_error
from mha_viz.app.widgets.url_controls import read_option
from mha_viz.attention import Head
from mha_viz.corpus.treebank import Sentence
from mha_viz.figures.charts.role_map import draw_score_curves
from mha_viz.figures.drawing.theme import Theme
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.layout.player_data import Curves, Recording, Strip, build_player_data, scale_losses
from mha_viz.files.assets import asset_path
from mha_viz.lab import toy_maps
from mha_viz.lab.jobs import RULE, SIGNS, describe_jobs
from mha_viz.lab.predictions import Outcome, write_verdict
from mha_viz.lab.record import Array
from mha_viz.lab.tasks import BEFORE
from mha_viz.lab.toy_maps import ToyMaps
from mha_viz.models.getting import snapshots
from mha_viz.numerals import counted, format_weight, percent

TRAININGS = {toy_maps.TOY: "four questions", toy_maps.HIDDEN: "hidden words only"}
TRAINING_PARAMETER, STEP_PARAMETER = "trained", "snapshot"  # parameters of the URL
MIN_GAIN = 0.1  # minimum gain over the baseline for a head to count as doing a task
LENGTHS = range(9, 14)  # possible word counts of the drawn sentence


class Skill(NamedTuple):
    """A task on which every head was measured at every saved step: its name, and the name of its simple rule."""

    name: str
    baseline: str


class Toy(NamedTuple):
    """A toy model as the stage shows it.

    Attributes:
        title: its title.
        question: the question that it answers.
        description: a sentence about the model.
        prediction: the question about what will happen.
        options: the possible predictions.
        outcome: returns the outcome of the training with a given name.
        skills: the tasks, by their names in its history.
        find_targets: returns, for each task, the word to which each word of the sentence should attend.
        answer: the answer to the question.
        source: the source of the answer.
        trainings: what the model was trained on, by the name of the training.
        loss: the label of the loss curve.
        score_name: what the scores measure, in words.
        off: heads to switch off in a link to Explore.
        is_divided: whether to draw the best head of each task large, because the division of work is the point.
    """

    title: str
    question: str
    description: str
    prediction: str
    options: Mapping[str, str]
    outcome: Callable[[str], Outcome]
    skills: Mapping[str, Skill]
    find_targets: Callable[[], list[dict[int, int]]]
    answer: str
    source: str
    trainings: Mapping[str, str]
    loss: str = "loss"
    score_name: str = "right"
    off: str = ""
    is_divided: bool = False


def show_toy(name: str, next_scene: NextScene | None) -> None:
    """Show the training of a toy model."""
    toy = TOYS[name]
    stage.show_question(toy.title, toy.question)
    guess = stage.ask_guess(name, toy.prediction, toy.options)
    _show_training(name, guess, get_theme(), navigation.find_page("explore"), next_scene)


@st.fragment
@report_errors(show_error)
def _show_training(name: str, guess: str | None, colours: Theme, explore: Any, next_scene: NextScene | None) -> None:
    toy, model = TOYS[name], read_training(name)
    read_option(TRAINING_PARAMETER, toy.trainings, ".+")
    saved_steps, step = snapshots.list_steps(asset_path(name)), read_step_in_view(name)
    read_option(STEP_PARAMETER, [*map(str, saved_steps)], r"\d+")
    verdict = write_verdict(toy.options, toy.outcome(model), guess, describe_maps(name, model))
    stage.play(
        record_training(name, model, colours),
        saved_steps.index(step),
        verdict,
        partial(_make_step_parameters, saved_steps[0]),
        next_scene,
    )
    if len(toy.trainings) > 1:
        stage.choose_variant(
            "Trained on",
            TRAINING_PARAMETER,
            model,
            {key: f"{'trained ' if key == name else ''}on {data}" for key, data in toy.trainings.items()},
            name,
        )
    stage.show_answer(name, toy.answer, toy.source)
    with st.container(horizontal=True):
        if model == name:
            parameters = {"model": f"{name}@{step}", "text": " ".join(toy_maps.load_bundled(name).words)}
            st.page_link(explore, label=":primary[In Explore]", query_params=parameters)
        if toy.off:
            parameters = {"model": name, "text": " ".join(toy_maps.load_bundled(name).words), "off": toy.off}
            st.page_link(explore, label=f":primary[Without {toy.off.replace('.', ' and ')}]", query_params=parameters)
        st.page_link(navigation.find_page("roles"), label=":primary[Its roles]", query_params={"model": name})
    real_heads.show_real_heads(skill.name for skill in toy.skills.values())
    if stage.has_numbers():
        st.markdown("\n".join(_tabulate_step(name, model, step)))
        st.caption(RULE)
        if len(toy.trainings) > 1:
            st.markdown("\n".join(_tabulate_end(name)))
            st.caption("From: the first saved step after which the best head stays 10 points above the simple rule.")
        score_charts = {task: ("", _draw_scores(name, model, task, step, colours)) for task in toy.skills}
        stage.show_charts(score_charts)
        st.caption("All heads. Blue: the best at the end; dotted: the simple rule.")
    download_panel.show_chart_downloads(make_charts(name))


def make_charts(name: str) -> list[PageChart]:
    """Return one chart per task: the scores of every head over training, with the step in the URL marked."""
    model, step = read_training(name), read_step_in_view(name)
    description = f"Every head of {TOYS[name].trainings[model]} over its training; step {step:,} is marked."
    return [
        PageChart(
            f"Training: {skill.name}", f"training-{task}", partial(_draw_scores, name, model, task, step), description
        )
        for task, skill in TOYS[name].skills.items()
    ]


def read_step_in_view(toy: str) -> int:
    """Return the training step in the URL if it was saved, else the first saved step."""
    saved_steps = snapshots.list_steps(asset_path(toy))
    value = address.get_parameters().get(STEP_PARAMETER, "")
    return int(value) if value in map(str, saved_steps) else saved_steps[0]


def read_training(name: str) -> str:
    """Return the name of the training that the URL asks for."""
    value = address.get_parameters().get(TRAINING_PARAMETER, "")
    return value if value in TOYS[name].trainings else name


def _make_step_parameters(first_step: int, step: int) -> dict[str, str | None]:
    return {STEP_PARAMETER: None if step == first_step else str(step)}


# ---- Measurements -----------------------------------------------------------------------------------------


@cache
def load_history(model: str) -> Any:
    """Load the scores of every head at every saved step, measured on held-out sentences."""
    import pandas as pd

    return pd.read_csv(asset_path(f"{model}_history.csv"))


def _select_history(model: str, task: str) -> Any:
    table = load_history(model)
    return table[table["task"] == task]


def find_best_row(model: str, task: str, step: int | None = None) -> Any:
    """Return the row of the best head for a task at a step, by default the last."""
    table = _select_history(model, task)
    step_rows = table[table["step"] == (table["step"].max() if step is None else step)]
    return step_rows.loc[step_rows["accuracy"].idxmax()]


def read_head(row: Any) -> Head:
    """Return the head in a row of a history."""
    return Head(int(row["layer"]), int(row["head"]))


def find_first_step(model: str, task: str) -> int | None:
    """Return the first saved step from which the best head stays ``MIN_GAIN`` above the baseline, if any."""
    by_step = _select_history(model, task).groupby("step")
    gain = by_step["accuracy"].max() - by_step["baseline"].first()
    weak_steps = gain.index[(gain < MIN_GAIN).to_numpy()]
    strong_steps = gain.index[gain.index > weak_steps.max()] if len(weak_steps) else gain.index
    return int(strong_steps[0]) if len(strong_steps) else None


@cache_results(6)
def record_training(name: str, model: str, colours: Theme) -> Mapping[str, Any]:
    """Return the data of all steps for the browser. Cached, so callers must not change it."""
    toy, toy_data = TOYS[name], toy_maps.load_bundled(model)
    trainings = [toy_maps.load_bundled(training) for training in toy.trainings]
    count, steps, heads = len(toy_data.words), toy_data.steps.tolist(), _list_heads(toy_data)
    rows = [[find_best_row(model, task, step) for step in steps] for task in toy.skills]
    recording = Recording(
        key=model,
        steps=steps,
        words=toy_data.words,
        head_names=heads,
        maps=toy_data.maps.reshape(len(steps), len(heads), count, count),
        relations=[skill.name for skill in toy.skills.values()],
        instruction=toy.description,
        target_words=_find_marked_keys(toy, count),
        relation_notes=[[f"{read_head(row)} {percent(row['accuracy'])}" for row in task_rows] for task_rows in rows],
        curves=Curves(toy.loss, scale_losses([training.loss for training in trainings], [*toy.trainings].index(model))),
        strip=Strip(
            "W_Q",
            toy_data.queries.reshape(len(steps), len(heads), -1),
            max(float(np.abs(training.queries).max()) for training in trainings),
        ),
        large_heads=_list_best_heads(name, model) if toy.is_divided else (),
    )
    return build_player_data(recording, 0, colours)


def _list_best_heads(name: str, model: str) -> list[int]:
    """Return the numbers of the best heads at the end of training, in the order of tasks."""
    heads = _list_heads(toy_maps.load_bundled(model))
    return list(dict.fromkeys(heads.index(str(read_head(find_best_row(model, task)))) for task in TOYS[name].skills))


def _list_heads(toy_data: ToyMaps) -> list[str]:
    return [str(Head(*indices)) for indices in np.ndindex(*toy_data.maps.shape[1:3])]


def _find_marked_keys(toy: Toy, count: int) -> Array:
    """Return the index of the marked key of each skill and query, [skill, query]; −1 where there is no mark."""
    return np.array([[keys.get(word, -1) for word in range(count)] for keys in toy.find_targets()])


def describe_maps(name: str, model: str) -> str:
    """Describe which head does which job on the maps of the last step; empty if too few words are marked.

    The maps are of one sentence, so this is an example only.
    """
    toy_data = toy_maps.load_bundled(model)
    count, heads = len(toy_data.words), _list_heads(toy_data)
    maps = toy_data.maps[-1].reshape(len(heads), count, count)
    jobs = describe_jobs(heads, maps, _find_marked_keys(TOYS[name], count).T)
    return f"On these maps: {jobs}" if jobs else ""


def _draw_scores(name: str, model: str, task: str, step: int, colours: Theme) -> Any:
    title = TOYS[name].skills[task].name
    return draw_score_curves(_select_history(model, task), step, f"{title[:1].upper()}{title[1:]}", colours)


def _tabulate_step(name: str, model: str, step: int) -> list[str]:
    """Return the lines of a table of the best head of each task at a step.

    Its columns are the head, its score beside that of the simple rule, and one of its weights in the sentence.
    """
    toy, toy_data = TOYS[name], toy_maps.load_bundled(model)
    maps = toy_data.maps[toy_data.steps.tolist().index(step)]  # [layer, head, query, key]
    lines = [
        f"| after {counted(step, 'step')} | best head | {toy.score_name} | simple rule | its weight in the sentence |",
        "| --- | --- | --- | --- | --- |",
    ]
    for (task, skill), targets in zip(toy.skills.items(), toy.find_targets(), strict=True):
        row = find_best_row(model, task, step)
        query, key = max(targets.items())
        link = (
            f"“{toy_data.words[query]}” → “{toy_data.words[key]}”: {format_weight(maps[(*read_head(row), query, key)])}"
        )
        score, rule = (percent(row[column]) for column in ("accuracy", "baseline"))
        score_cells = f"**{score}** of {int(row['n']):,} | {skill.baseline} {rule}"
        lines.append(f"| {skill.name} | {format_head(read_head(row))} | {score_cells} | {link} |")
    return lines


def _tabulate_end(name: str) -> list[str]:
    """Return the lines of a table that compares all trainings.

    Each line has the baseline of a task and, for each training, the best head at the end and the step from which it
    was good.
    """
    toy = TOYS[name]
    names = " | ".join(f"trained on {task}" for task in toy.trainings.values())
    lines = [
        f"| best head at the end | simple rule | {names} |",
        f"| --- | --- {'| --- ' * len(toy.trainings)}|",
    ]
    for task, skill in toy.skills.items():
        cells = [_describe_end(model, task) for model in toy.trainings]
        baseline = f"{skill.baseline} {percent(find_best_row(name, task)['baseline'])}"
        lines.append(f"| **{skill.name}** | {baseline} | {' | '.join(cells)} |")
    return lines


def _describe_end(model: str, task: str) -> str:
    row, first_step = find_best_row(model, task), find_first_step(model, task)
    start = "less than 10 points above the simple rule" if first_step is None else f"from step {first_step:,}"
    return f"{format_head(read_head(row))} **{percent(row['accuracy'])}**, {start}"


# ---- The sentence of the first toy ----------------------------------------------------------------------------


class DrawnSentence(NamedTuple):
    """The sentence of the maps and, for each task, two of its words: (from, to)."""

    sentence: Sentence
    pairs: dict[str, tuple[int, int]]


@cache
def find_drawn_sentence() -> DrawnSentence:
    """Return the first built-in sentence in ``LENGTHS`` that contains all three relations.

    Subject and pronoun must have another noun between them and their targets.
    """
    for sentence in load_built_in_corpus().sentences:
        if len(sentence.forms) in LENGTHS:
            verb_link, pronoun_link = _find_subject(sentence), _find_pronoun(sentence)
            if verb_link and pronoun_link:
                previous_link = (verb_link[1], verb_link[1] - 1)
                pairs = {"previous_token": previous_link, "verb_subject": verb_link, "pronoun_antecedent": pronoun_link}
                return DrawnSentence(sentence, pairs)
    raise AssertionError("the grammar no longer generates such a sentence")


def _find_subject(sentence: Sentence) -> tuple[int, int] | None:
    """Return the positions of a subject and its verb that have a noun between them; None if there are none."""
    for position, word in enumerate(sentence.words):
        verb = word.head if word.base == "nsubj" and word.upos == "NOUN" else None
        if verb is not None and "NOUN" in [inner_word.upos for inner_word in sentence.words[position + 1 : verb]]:
            return position, verb
    return None


def _find_pronoun(sentence: Sentence) -> tuple[int, int] | None:
    """Return the positions of a pronoun and its antecedent; None if there are none.

    The antecedent must not be the nearest noun.
    """
    nouns = [position for position, word in enumerate(sentence.words) if word.upos == "NOUN"]
    for mention in sentence.mentions:
        if sentence.words[mention.word].upos == "PRON":
            coreferent_words = {
                other_mention.word for other_mention in sentence.mentions if other_mention.chain == mention.chain
            }
            earlier_nouns = [noun for noun in nouns if noun < mention.word]
            if coreferent_words & set(earlier_nouns) and earlier_nouns[-1] not in coreferent_words:
                return mention.word, max(coreferent_words & set(earlier_nouns))
    return None


# ---- The two toys ---------------------------------------------------------------------------------------------


def _judge_division(model: str) -> Outcome:
    """Judge whether the learned tasks have different best heads."""
    learned_tasks = [task for task in TOYS[toy_maps.TOY].skills if find_first_step(model, task) is not None]
    heads = {read_head(find_best_row(model, task)) for task in learned_tasks}
    signs = dict(zip(TOYS[toy_maps.TOY].skills, SIGNS, strict=True))
    jobs = [f"{signs[task]} {read_head(find_best_row(model, task))}" for task in learned_tasks]
    option = "divided" if len(heads) == len(learned_tasks) else "shared"
    return Outcome(option, f"most often right on new sentences: {', '.join(jobs)}")


def _find_repeat_targets() -> list[dict[int, int]]:
    """Map words to targets, for both tasks: the previous word, and the word after the previous occurrence."""
    words = toy_maps.load_bundled(toy_maps.REPEATER).words
    period = words.index(words[0], 1)
    return [
        {word: word - 1 for word in range(1, len(words))},
        {word: word - period + 1 for word in range(period, len(words))},
    ]


def _judge_layers(model: str) -> Outcome:
    """Judge which layer contains the head that is best at continuing repetitions."""
    return Outcome("first" if find_best_row(model, "induction")["layer"] == 0 else "second")


TOYS: Mapping[str, Toy] = MappingProxyType(
    {
        toy_maps.TOY: Toy(
            title="Roles appear",
            question="Which roles do heads learn by themselves?",
            description="It reads simple English.",
            prediction="Nobody tells a head what to do. In the end …",
            options={"divided": "the work is divided among heads", "shared": "one head does it all"},
            outcome=_judge_division,
            skills={
                "previous_token": Skill(BEFORE, "a word at random"),
                "verb_subject": Skill("a subject’s verb", "best fixed offset"),
                "pronoun_antecedent": Skill("who a pronoun refers to", "nearest candidate"),
            },
            find_targets=lambda: [dict([pair]) for pair in find_drawn_sentence().pairs.values()],
            answer="Trained on four questions (which word is hidden, which came before, who a pronoun refers to, what "
            "a subject does), different heads take on different ones. Trained on the first alone, from the same "
            "start, some heads still find the word before and the verb, but none finds the pronoun’s noun.",
            source="Both trainings of the toy, at each saved step, measured on sentences never used for training.",
            trainings=TRAININGS,
            loss="loss, hidden words",
            is_divided=True,
        ),
        toy_maps.REPEATER: Toy(
            title="Two layers",
            question="How do heads of two layers work together?",
            description="A model with two layers learns to continue repeated words.",
            prediction="Which layer finds what came next last time?",
            options={"first": "the first layer finds it", "second": "the second layer finds it"},
            outcome=_judge_layers,
            skills={
                "previous": Skill(BEFORE, "chance"),
                "induction": Skill("what followed this word last time", "chance"),
            },
            find_targets=_find_repeat_targets,
            answer="Heads of one layer work side by side on the same x; each layer is fed the output of the layer "
            "before. Here heads of the first layer tell each word which came before it; with that a head of layer two "
            "finds what comes next.",
            source="Olsson et al. 2022, *In-context Learning and Induction Heads*.",
            trainings={toy_maps.REPEATER: "repeated words"},
            score_name="mean weight",
            off="L0H0.L0H3",  # both attend to the previous word: without one the answer stays, without both it is lost
        ),
    }
)
