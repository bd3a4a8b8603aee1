"""The experiments of the training lab, one row each.

A row holds a question, the changes to the training, the predictions that a visitor can choose from, and the statements
about a result. Numbers come from results; no answer is fixed in advance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np

from mha_viz.analysis.costs import CUTS, OVERLAPPING, Shape, find_division_error
from mha_viz.errors import ResultUnreadable, SettingError
from mha_viz.files.assets import asset_path
from mha_viz.lab import predictions, statements
from mha_viz.lab.jobs import describe_jobs
from mha_viz.lab.predictions import Outcome
from mha_viz.lab.record import Array, Result, Settings, TrainingRun, from_bytes
from mha_viz.lab.statements import Statement
from mha_viz.lab.tasks import OWN_LETTER, TWO_RELATIONS, LabTask
from mha_viz.numerals import counted
from mha_viz.process import children

# Names of experiments, in URLs and files.
IDENTICAL, OUTPUT, RANDOM, PENALTY, HEAD_COUNT, SPLIT_INPUT, REMOVAL, PAIR, CURRENT = (
    "identical", "output", "random", "penalty", "count", "cut", "removal", "pair", "current",
)  # fmt: skip

# The weights that heads have in common before training.
ALL_RANDOM, SAME_QKV, SAME_ALL, SAME_TWO = "random", "same W_Q, W_K, W_V", "all the same", "the last two the same"

EQUAL_PAIR = "four, two equal"  # the label of a run

SettingName = Literal["seed", "heads", "d_model", "steps", "weight"]
_USUAL_SETTINGS: tuple[SettingName, ...] = ("heads", "d_model", "steps", "seed")

CHILD_MODULE = "mha_viz.lab.experiments"
BOUNDS = children.Bounds(
    seconds=300, megabytes=2_000, subject="The training", remedy="Fewer steps or a smaller d_model take less."
)


def _make_one_layer(settings: Settings) -> dict[str, Shape]:
    """Return a single layer with the number of heads in the settings."""
    return {counted(settings.heads, "head"): Shape(settings.d_model, settings.heads)}


def _make_penalty_layers(settings: Settings) -> dict[str, Shape]:
    """Return the same layer twice, to train without and with the penalty λ·‖A Aᵀ − I‖_F²."""
    full_shape = Shape(settings.d_model, settings.heads)
    return {"without the penalty": full_shape, f"with λ = {settings.weight:g}": full_shape}


def _make_count_layers(settings: Settings) -> dict[str, Shape]:
    """Return a layer for each number of heads, with d_k = d_model / h."""
    counts = [2**power for power in range(6) if settings.d_model % 2**power == 0]
    return {counted(heads, "head"): Shape(settings.d_model, heads) for heads in counts}


def _make_cut_layers(settings: Settings) -> dict[str, Shape]:
    """Return a layer for each way to cut the vector."""
    names = ("in full", "chunks", "chunks, shared", "random chunks")
    full_shape = Shape(settings.d_model, settings.heads)
    return {name: full_shape._replace(cut=cut) for name, cut in zip(names, CUTS, strict=True)}


def _make_pair_layers(settings: Settings) -> dict[str, Shape]:
    """Return a layer of three heads and a layer of four, all with the same d_k; two of the four start equal."""
    three_heads = Shape(settings.d_model, 3, head_width=settings.d_model // 4)
    return {"three heads": three_heads, EQUAL_PAIR: three_heads._replace(heads=4)}


class Experiment(NamedTuple):
    """One experiment: its texts, its training, and how its result is shown.

    Attributes:
        menu_name: the name in the menu.
        default: the default settings.
        question, answer, source: a question, the answer of the papers in plain words, and its source.
        prediction: the beginning of a prediction, or a question.
        options: the clauses that can complete it, by name.
        outcome: decides which option a result fulfils.
        statements: answers yes-or-no questions about a result.
        setting_names: the settings that the experiment uses.
        max_steps: the maximum number of steps, which take about half a minute.
        layers: returns the layers to train one after the other, by the label of each run.
        task: the task that they learn.
        start: the weights that all heads have in common before training.
        starts: the start of the runs for which it is not ``start``, by label.
        is_penalised: whether the last run has the penalty.
        removes_heads: whether heads are removed after training.
        initial_run: the index of the run whose heads are shown at first.
        other_experiment: the experiment whose heads are animated below, on the same sentence.
    """

    menu_name: str
    default: Settings
    question: str
    answer: str
    source: str
    prediction: str
    options: Mapping[str, str]
    outcome: Callable[[Result], Outcome]
    statements: Callable[[Result], list[Statement]]
    setting_names: tuple[SettingName, ...] = _USUAL_SETTINGS
    max_steps: int = 1500
    layers: Callable[[Settings], dict[str, Shape]] = _make_one_layer
    task: LabTask = TWO_RELATIONS
    start: str = ALL_RANDOM
    starts: Mapping[str, str] = MappingProxyType({})
    is_penalised: bool = False
    removes_heads: bool = False
    initial_run: int = 0
    other_experiment: str = ""


EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {
        IDENTICAL: Experiment(
            menu_name="Identical start",
            default=Settings(IDENTICAL),
            start=SAME_ALL,
            question="What stops heads from learning the same weights?",
            answer="The random start: different weights get different gradients. Two heads with all weights equal, "
            "their slices of W_O included, get the same gradient at every step and remain copies; a difference in W_O "
            "alone is enough to separate them.",
            source="Goodfellow, Bengio & Courville 2016, section 8.4.",
            prediction="After an identical start …",
            options={"equal": "heads stay equal", "apart": "heads differ"},
            outcome=predictions.decide_identical,
            statements=statements.state_identical,
            other_experiment=RANDOM,
        ),
        OUTPUT: Experiment(
            menu_name="Only W_O differs",
            default=Settings(OUTPUT),
            start=SAME_QKV,
            question="What makes the learning in each head unique?",
            answer="All get the same input, but each meets its own slice of W_O, through which its gradient comes "
            "back: heads with the same W_Q, W_K and W_V differ after the first update.",
            source="Vaswani et al. 2017, section 3.2.2.",
            prediction="At the start, only W_O differs. Then …",
            options={
                "never": "they stay equal",
                "first": "they differ at once",
                "later": "they differ later",
            },
            outcome=predictions.decide_output,
            statements=statements.state_output,
        ),
        RANDOM: Experiment(
            menu_name="Random start",
            default=Settings(RANDOM),
            question="Do heads start and stay diverse?",
            answer="Every weight is drawn at random, so gradients differ from the start. Nothing else in the usual "
            "loss keeps heads apart, so they may still end up with similar attention.",
            source="Vaswani et al. 2017, section 3.2.2; Clark et al. 2019, section 6.",
            prediction="All weights start random. In the end …",
            options={"alike": "some heads share a job", "different": "no two share a job"},
            outcome=predictions.decide_random,
            statements=statements.state_random,
        ),
        PENALTY: Experiment(
            menu_name="Pushed apart",
            default=Settings(PENALTY, weight=0.3),
            setting_names=("weight", *_USUAL_SETTINGS),
            max_steps=800,
            layers=_make_penalty_layers,
            initial_run=1,
            is_penalised=True,
            question="Can heads be made to differ?",
            answer="A term λ·‖A Aᵀ − I‖² in the loss, where A holds one row per head, penalises heads for looking at "
            "the same words. It pushes the diagonal of A Aᵀ to 1, so each head looks at a single word: a large λ "
            "works against the task.",
            source="Lin et al. 2017, section 2.2.",
            prediction="The loss penalises heads for looking at the same words. Then …",
            options={
                "more": "heads differ more",
                "same": "heads differ as much, within one point",
                "less": "heads differ less",
            },
            outcome=predictions.decide_penalty,
            statements=statements.state_penalty,
        ),
        HEAD_COUNT: Experiment(
            menu_name="Head count",
            default=Settings(HEAD_COUNT, heads=32),
            setting_names=("d_model", "steps", "seed"),
            max_steps=400,
            layers=_make_count_layers,
            initial_run=1,
            question="Why several heads, and what do they cost?",
            answer="A word that needs two others gets an average of both from one head. With d_k = d_model / h, "
            "several look at several places at the same cost, as two of MiniLM do from “bank”; with very many, each "
            "query is too short to pick out the right word.",
            source="Vaswani et al. 2017, section 3.2.2; Bhojanapalli et al. 2020.",
            prediction="At equal cost, what answers best?",
            options={
                "one": "one head is best",
                "between": "a number in between is best",
                "most": "the most heads are best",
            },
            outcome=predictions.decide_count,
            statements=statements.state_count,
        ),
        SPLIT_INPUT: Experiment(
            menu_name="Split input",
            default=Settings(SPLIT_INPUT, heads=8),
            max_steps=500,
            layers=_make_cut_layers,
            initial_run=1,
            question="Is each head fed a different part of the input, or the whole vector?",
            answer="Every head sees all tokens; only the width is cut. *Wide* heads, as in the papers, map the whole "
            "vector to d_k numbers each; *narrow* ones see only their own chunk, which is cheaper.",
            source="Vaswani et al. 2017, section 3.2.2; Bloem 2019.",
            prediction="Each gets one chunk. Then …",
            options={
                "none": "accuracy falls by 1 point or less",
                "few": "accuracy falls by 1 to 10 points",
                "many": "accuracy falls by more",
            },
            outcome=predictions.decide_cut,
            statements=statements.state_cut,
        ),
        REMOVAL: Experiment(
            menu_name="Remove heads",
            default=Settings(REMOVAL, heads=8, steps=400),
            removes_heads=True,
            question="Are heads redundant?",
            answer="Partly: some can be removed with little loss if the least important go first. A head that alone "
            "follows a relation which the task needs is not redundant.",
            source="Michel et al. 2019, sections 3 and 4; the random orders are this lab’s.",
            prediction="After training, heads are removed one by one, the least important first. Without harm …",
            options={
                "none": "none can be removed",
                "half": "up to half can be removed",
                "most": "more than half can be removed",
            },
            outcome=predictions.decide_removal,
            statements=statements.state_removal,
        ),
        PAIR: Experiment(
            menu_name="Duplicate head",
            default=Settings(PAIR),
            setting_names=("d_model", "steps", "seed"),
            layers=_make_pair_layers,
            starts={EQUAL_PAIR: SAME_TWO},
            initial_run=1,
            question="Is a duplicate head worth anything?",
            answer="No. Two equal heads get the same gradient, stay equal, and add the same vector twice: one with "
            "twice its slice of W_O would answer the same. Such a layer has three heads and pays for four.",
            source="Goodfellow et al. 2016, section 8.4; the comparison of three heads with four is this lab’s.",
            prediction="Of four heads, H2 and H3 start equal. After training …",
            options={"three": "of the four, two still have equal weights", "four": "all four have different weights"},
            outcome=predictions.decide_pair,
            statements=statements.state_pair,
        ),
        CURRENT: Experiment(
            menu_name="No context",
            default=Settings(CURRENT),
            task=OWN_LETTER,
            removes_heads=True,
            question="What if only the current position matters?",
            answer="Then all heads are redundant: the residual connection carries each word past them, and no head "
            "can add to it. They still end up different, to no purpose. Removing all of them costs nothing; removing "
            "only some can.",
            source="Vaswani et al. 2017, section 3.1; the task is this lab’s.",
            prediction="After training, all heads are removed. Then …",
            options={
                "none": "no right answers are lost",
                "some": "some are lost",
                "all": "all but lucky guesses are lost",
            },
            outcome=predictions.decide_current,
            statements=statements.state_current,
        ),
    }
)
MAX_HEADS, WIDTHS, MAX_WEIGHT, MAX_SEED = 16, (16, 32, 48, 64), 100.0, 2**31 - 1


EXPERIMENT_BY_NUMBER: Mapping[str, str] = MappingProxyType(
    {str(number): key for number, key in enumerate(EXPERIMENTS, 1)}
)


def find_experiment(name: str | None) -> str:
    """Return the experiment with this name or number; the first experiment for any other value."""
    return name if name and name in EXPERIMENTS else EXPERIMENT_BY_NUMBER.get(name or "", IDENTICAL)


def find_setting_errors(settings: Settings) -> dict[SettingName, SettingError]:
    """Return the error of each invalid setting; empty when the experiment can be run."""
    experiment = EXPERIMENTS[settings.experiment]
    checks = {
        "seed": _check_range("The seed", settings.seed, 0, MAX_SEED),
        "d_model": _check_width(settings.d_model),
        "steps": _check_range("The number of steps", settings.steps, 1, experiment.max_steps),
        "heads": _check_range("The number of heads", settings.heads, 2, MAX_HEADS),
        "weight": _check_weight(settings.weight),
    }
    errors = {name: error for name, error in checks.items() if error is not None and name in experiment.setting_names}
    if "heads" in experiment.setting_names and not errors.keys() & {"heads", "d_model"}:
        error = find_division_error(settings.d_model, settings.heads, 2, MAX_HEADS)
        errors |= {"heads": error} if error else {}
    return {name: errors[name] for name in experiment.setting_names if name in errors}


def check_settings(settings: Settings) -> None:
    """Raise SettingError for the first invalid setting."""
    for error in find_setting_errors(settings).values():
        raise error


def _check_range(name: str, value: int, minimum: int, maximum: int) -> SettingError | None:
    """Return an error if a number is out of its range."""
    if minimum <= value <= maximum:
        return None
    return SettingError(f"{name} is {value}.", f"It can be {minimum:,} to {maximum:,}.")


def _check_width(value: int) -> SettingError | None:
    """Return an error unless d_model is one of WIDTHS.

    These are multiples of 16, so that every head is aligned alike in memory and rounded alike (see
    :mod:`mha_viz.lab.attention`).
    """
    if value in WIDTHS:
        return None
    return SettingError(f"d_model is {value}.", f"It can be {', '.join(map(str, WIDTHS[:-1]))} or {WIDTHS[-1]}.")


def _check_weight(value: float) -> SettingError | None:
    """Return an error if λ is out of its range."""
    if 0 <= value <= MAX_WEIGHT:
        return None
    reward = "A negative λ would reward heads for being alike. " if value < 0 else ""
    return SettingError(f"λ is {value:g}.", f"{reward}It can be 0 to {MAX_WEIGHT:g}.")


def explain_limits(settings: Settings) -> tuple[str, ...]:
    """Explain why an experiment with these settings is uninformative; empty if it is not."""
    experiment = EXPERIMENTS[settings.experiment]
    layers = experiment.layers(settings)
    has_whole_chunks = any(shape.cut == OVERLAPPING and shape.input_width == shape.d_model for shape in layers.values())
    has_one_number = experiment.layers is not _make_count_layers and any(shape.d_k == 1 for shape in layers.values())
    notes = {
        f"With {settings.heads} heads a random chunk is the whole vector: “random chunks” and “in full” are the same "
        "layer, started differently.": has_whole_chunks,
        "With 2 heads there are two orders only, one of them by importance, so random removal is nearly the same.":
            experiment.removes_heads and settings.heads == 2,
        "With d_k = 1 a query is a single number, so all queries of a head rank the keys in one order or in its "
        "reverse.": has_one_number,
        "With λ = 0 there is no penalty: both trainings are the same.":
            experiment.is_penalised and settings.weight == 0,
        f"After {counted(settings.steps, 'step')} a layer has learned almost nothing.": settings.steps < 10,
    }  # fmt: skip
    return tuple(note for note, holds in notes.items() if holds)


def compare_with_guess(guess: str | None, result: Result, run_index: int | None = None) -> str:
    """Describe the outcome compared with the visitor's prediction, and the jobs of the heads.

    Args:
        guess: the name of an option; None if the visitor chose none.
        result: of the experiment.
        run_index: the index of the run whose maps are shown; by default the experiment's ``initial_run``.
    """
    experiment = EXPERIMENTS[result.settings.experiment]
    run = result.runs[experiment.initial_run if run_index is None else run_index]
    jobs = describe_jobs(name_heads(run), run.maps[-1], find_marked_keys(result))
    if experiment.removes_heads and jobs:
        jobs = f"With all heads: {jobs} Their outputs add up."
    return predictions.write_verdict(experiment.options, experiment.outcome(result), guess, jobs)


def compare_with_other(guess: str | None, result: Result, other: Result) -> str:
    """Describe the outcome compared with the visitor's prediction, and the jobs of heads in the ``other`` result."""
    experiment, run = EXPERIMENTS[result.settings.experiment], other.runs[0]
    jobs = describe_jobs(name_heads(run), run.maps[-1], find_marked_keys(other))
    other_jobs = f"{EXPERIMENTS[other.settings.experiment].menu_name}: {jobs}"
    return predictions.write_verdict(experiment.options, experiment.outcome(result), guess, other_jobs)


def name_heads(run: TrainingRun) -> list[str]:
    """Return the names of the heads of a run."""
    return [f"H{head}" for head in range(run.heads)]


def find_marked_keys(result: Result) -> Array:
    """Return the marked key of each query, [query, relation]; −1 where there is none.

    There are no marks if a residual connection carries words past the heads.
    """
    is_residual = EXPERIMENTS[result.settings.experiment].task.is_residual
    return np.full_like(result.places, -1) if is_residual else result.places


def stored_path(experiment: str) -> Path:
    """Return the path of the result of an experiment's default settings."""
    return asset_path("lab") / f"{experiment}.npz"


@cache
def load_stored(experiment: str) -> Result:
    """Load the bundled result of an experiment's default settings. Raises ResultUnreadable."""
    try:
        data = stored_path(experiment).read_bytes()
    except OSError as error:
        raise ResultUnreadable(f"The stored result of “{experiment}” is missing.", "Run the experiment.") from error
    return from_bytes(data)


def run(settings: Settings, progress: children.ReportProgress, cancelled: children.IsCancelled) -> Result:
    """Run an experiment in a child process; ``progress`` is called with the completed fraction.

    Raises SettingError, Cancelled, and Failed.
    """
    check_settings(settings)
    return from_bytes(children.run(CHILD_MODULE, asdict(settings), BOUNDS, progress, cancelled))
