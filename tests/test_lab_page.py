"""The training lab as a page: default runs at once, settings and their errors, running, waiting, stopping."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mha_viz.app.lab import link
from mha_viz.app.lab import trainings as trainings_module
from mha_viz.app.lab.result import describe_settings
from mha_viz.app.service import jobs
from mha_viz.app.widgets.parts import escape_markdown, format_formulas
from mha_viz.errors import Busy, Cancelled, SettingError
from mha_viz.lab import estimate, lab
from mha_viz.lab.lab import (
    EXPERIMENTS,
    HEAD_COUNT,
    IDENTICAL,
    OUTPUT,
    PENALTY,
    RANDOM,
    REMOVAL,
    SPLIT_INPUT,
    compare_with_guess,
)
from mha_viz.lab.record import Result, Settings
from mha_viz.numerals import percent
from mha_viz.text import clean
from tests import hostile, lanes
from tests.new_server import restart_server
from tests.page_session import PageSession, press
from tests.waiting import until

PAGE = "pages/50_why_heads_differ.py"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A separate queue of every test, which forgets nobody: no browser asks meanwhile."""
    rules = jobs.KINDS["training"]._replace(timeout_s=600.0)
    monkeypatch.setattr(jobs, "KINDS", {**jobs.KINDS, "training": rules})
    restart_server()
    yield
    restart_server()


def asked(**url: Any) -> PageSession:
    """A visit by somebody who has not stated an expectation."""
    return PageSession(url, PAGE)


def visit(**url: Any) -> PageSession:
    """A visit by somebody who wants to see all numbers."""
    return asked(**{"numbers": "1", **url})


def setting(page: PageSession, name: str) -> Any:
    """The control of a setting; its key contains the settings of the URL."""
    controls = [*page.at.number_input, *page.at.selectbox]
    return next(control for control in controls if re.fullmatch(f"lab_[a-z]+_{name}(_.*)?", control.key or ""))


def playing(page: PageSession) -> dict[str, Any]:
    """The data of the player."""
    content: dict[str, Any] = json.loads(page._drawn()["mha_player"].json)
    return content


def step_in_view(page: PageSession) -> int:
    content = playing(page)
    return int(content["steps"][content["at"]])


class Runs:
    """Stands in for the child process: a run ends when the test says so, or when nobody waits for it."""

    def __init__(self) -> None:
        self.end = threading.Event()
        self.asked: list[Settings] = []

    def __call__(self, settings: Settings, progress: Callable[[float], None], cancelled: Callable[[], bool]) -> Result:
        self.asked.append(settings)
        progress(0.5)
        until(lambda: self.end.is_set() or cancelled())
        if not self.end.is_set():
            raise Cancelled("The training was stopped.")
        return replace(lab.load_stored(settings.experiment), settings=settings)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    recorded = Runs()
    monkeypatch.setattr(trainings_module.lab, "run", recorded)
    yield recorded
    recorded.end.set()
    until(lambda: not jobs.get_queue("training")._entries)  # one that waits would begin in the next test


def of_seed(seed: int, experiment: str = IDENTICAL) -> Settings:
    return replace(EXPERIMENTS[experiment].default, seed=seed)


# ---- What is shown ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_shows_its_stored_run_at_once(experiment: str) -> None:
    page = visit(experiment=experiment)
    assert EXPERIMENTS[experiment].question in page.said
    assert "Default run, saved with the app: " in page.said.replace("\\", "")
    for statement in EXPERIMENTS[experiment].statements(lab.load_stored(experiment)):
        assert format_formulas(escape_markdown(statement.question)) in page.said
        assert format_formulas(escape_markdown(statement.evidence)) in page.said
    assert "Unusual" not in page.said
    the_browser_is_sent_every_recorded_step_of_the_run_in_view(page, lab.load_stored(experiment))


def the_browser_is_sent_every_recorded_step_of_the_run_in_view(page: PageSession, result: Result) -> None:
    training_run = result.runs[EXPERIMENTS[result.settings.experiment].initial_run]
    content, count = playing(page), len(training_run.steps)
    assert content["steps"][:count] == training_run.steps.tolist()
    cells = np.frombuffer(base64.b64decode(content["maps"]), np.uint8).reshape(-1, *training_run.maps.shape[1:])
    np.testing.assert_allclose(cells[:count] / 255, training_run.maps, atol=0.5 / 255 + 1e-6)
    np.testing.assert_allclose(content["flow"]["norms"][:count], training_run.gradients, atol=1e-8)
    np.testing.assert_allclose(content["flow"]["cosines"][:count], training_run.gradient_cosines[:, 0], atol=6e-4)
    cosines, divergence, gradients = (np.array(one["values"]) for one in content["matrices"])
    np.testing.assert_allclose(cosines[-1], training_run.weight_cosines[-1].ravel(), atol=6e-4)
    np.testing.assert_allclose(divergence[-1], training_run.divergence[-1].ravel() / np.log(2), atol=6e-4)
    np.testing.assert_allclose(gradients[0], training_run.gradient_cosines[0].ravel(), atol=6e-4)
    assert [one["legend"][0] for one in content["matrices"]] == [
        [1, "same direction"], [0, "same rows"], [1, "same direction"],
    ]  # fmt: skip
    passes = EXPERIMENTS[result.settings.experiment].task.is_residual  # beside the heads, which need not look there
    places = np.full_like(result.places, -1) if passes else result.places
    assert [mark["places"] for mark in content["marks"]] == places.T.tolist()
    assert [mark["notes"][-1] for mark in content["marks"]] == [percent(share) for share in training_run.accuracy[-1]]
    assert len(content["labels"]) == len(content["steps"]) == len(content["curves"]["lines"][-1]["values"])


def test_heads_are_removed_after_the_training_one_by_one() -> None:
    page, result = asked(experiment=REMOVAL), lab.load_stored(REMOVAL)
    training_run, removal = result.runs[0], result.removal
    assert removal is not None
    content, last = playing(page), int(training_run.steps[-1])
    assert content["steps"][-8:] == [last + count for count in range(1, 9)]
    for count in (0, 1, 3, 8):
        gone = {head for head, off in enumerate(content["off"][len(training_run.steps) - 1 + count]) if off}
        assert gone == set(removal.order[:count].tolist())
    assert content["labels"][-6] == f"3 removed: {percent(removal.least[3])} right"
    np.testing.assert_allclose(content["curves"]["lines"][0]["values"][-8:], removal.least[1:], atol=6e-4)
    page.send("mha_player", "step", last + 3)
    assert (page.url["removed"], page.url["step"]) == ("3", str(last))
    assert step_in_view(page) == last + 3
    page.send("mha_player", "step", 0)
    assert not {"removed", "step"} & page.url.keys()
    assert step_in_view(asked(experiment=REMOVAL, removed="9")) == 0


def test_the_page_opens_with_an_identical_start_over_a_random_one() -> None:
    content, trainings = playing(asked()), [lab.load_stored(name).runs[0] for name in (IDENTICAL, RANDOM)]
    assert content["steps"] == trainings[0].steps.tolist() == trainings[1].steps.tolist()
    assert lab.load_stored(IDENTICAL).words == lab.load_stored(RANDOM).words
    assert [row["title"] for row in content["rows"]] == ["Identical start", "Random start"]
    assert [head["name"] for head in content["heads"]] == ["H0", "H1", "H2", "H3"] * 2
    assert [head["colour"] for head in content["heads"][:4]] == [head["colour"] for head in content["heads"][4:]]
    cells = np.frombuffer(base64.b64decode(content["maps"]), np.uint8).reshape(-1, 2, *trainings[0].maps.shape[1:])
    for row, run in enumerate(trainings):
        np.testing.assert_allclose(cells[:, row] / 255, run.maps, atol=0.5 / 255 + 1e-6)
        assert content["rows"][row]["notes"][-1] == percent(run.accuracy[-1].mean())
    logs = np.log([run.loss for run in trainings])
    drawn = [line["values"] for line in content["curves"]["lines"]]
    np.testing.assert_allclose(drawn, (logs - logs.min()) / np.ptp(logs), atol=6e-4)
    assert [line["dashed"] for line in content["curves"]["lines"]] == [True, False]
    assert content["strip"]["largest"] == max(np.abs(run.queries).max() for run in trainings)
    assert content["verdict"] == (
        "Heads stay equal; after 300 steps not one weight differs. "
        "Random start: H0 does ○; H1, H2 and H3 share □: three heads, one job."
    )
    assert playing(visit())["rows"] == [], "numbers are of one training"
    assert playing(asked(numbers="0", run="seed-5"))["rows"], "this server has only the saved ones"


def test_the_curve_under_the_maps_is_the_loss_beside_that_of_the_other_trainings() -> None:
    lines = playing(asked(experiment=PENALTY))["curves"]["lines"]
    assert [line["faint"] for line in lines] == [True, False]
    logs = np.log(np.stack([run.loss for run in lab.load_stored(PENALTY).runs]))
    expected = (logs - logs.min()) / (logs.max() - logs.min())
    np.testing.assert_allclose([line["values"] for line in lines], expected, atol=6e-4)


def test_experiments_have_numbers_and_the_first_is_shown_for_anything_else() -> None:
    assert EXPERIMENTS[PENALTY].question in visit(experiment="4").said
    for odd in lanes.some(["", "10", "everything", "identical "], "10", "identical "):
        assert EXPERIMENTS[IDENTICAL].question in visit(experiment=odd).said


def test_another_experiment_is_a_step_of_the_address() -> None:
    page = visit(experiment=IDENTICAL, step="3", run="seed-4")
    page.at.pills(key="lab_experiment").set_value(HEAD_COUNT).run()
    page.check()
    assert page.url["experiment"] == HEAD_COUNT
    assert not {"step", "run", "arm"} & page.url.keys()
    assert EXPERIMENTS[HEAD_COUNT].question in page.said


@pytest.mark.parametrize(("step", "is_used"), [("77", False), ("scores", True), ("", True)])
def test_a_step_that_the_run_lacks_is_said_but_not_that_of_another_page(step: str, is_used: bool) -> None:
    assert ("Ignored in this link: step=77" in visit(experiment=IDENTICAL, step=step).said) != is_used


@pytest.mark.parametrize(
    "odd",
    [
        {"beside": "9"},
        {"experiment": "10"},
        {"experiment": PENALTY, "arm": "7"},
        {"experiment": REMOVAL, "removed": "99"},
        {"guess": "nobody"},
        {"numbers": "2"},
        {"run": "seed-x"},
        {"experiment": "toy", "trained": "nowhere"},
        {"experiment": "tasks", "task": "99"},
        {"experiment": "tasks", "answer": "L9H9"},
    ],
    ids=lambda odd: next(reversed(odd)),
)
def test_a_part_of_a_link_that_the_page_cannot_use_is_said(odd: dict[str, str]) -> None:
    name = next(reversed(odd))
    texts_of_page = asked(**odd).said
    assert f"Ignored in this link: {name}={odd[name]}." in texts_of_page
    assert texts_of_page.count("Ignored in this link") == 1


def test_nothing_is_said_of_a_link_that_the_page_made() -> None:
    made = {"experiment": PENALTY, "run": "weight-0.05_and_seed-3", "arm": "1", "numbers": "1", "beside": "2"}
    assert "Ignored in this link" not in asked(**made, guess=next(iter(EXPERIMENTS[PENALTY].options)), step="x").said
    assert "Ignored in this link" not in asked(run="default").said


def test_the_controls_follow_the_address() -> None:
    page = visit(experiment=HEAD_COUNT, run="seed-4", step="0", arm="2")
    assert setting(page, "seed").value == 4
    assert setting(page, "seed").proto.default == 4, "also in a browser that misses the first message about it"
    setting(page, "seed").set_value(7).run()
    assert setting(page, "seed").value == 7, "what is typed stays"
    page.at.query_params["run"] = "seed-5"  # as Back does
    del page.at.query_params["step"], page.at.query_params["arm"]
    page.at.run()
    assert setting(page, "seed").value == 5
    assert step_in_view(page) == 0
    page.at.query_params["experiment"] = IDENTICAL
    page.at.run()
    page.check()
    assert page.at.pills(key="lab_experiment").value == IDENTICAL
    assert setting(page, "seed").value == 5


@pytest.mark.parametrize(("typed", "asked"), [(1e-9, 0.0), (0.7999999999999999, 0.8), (-0.0, 0.0)])
def test_a_weight_runs_as_its_link_says_it(runs: Runs, typed: float, asked: float) -> None:
    page = visit(experiment=PENALTY)
    setting(page, "weight").set_value(typed).run()
    press(page, "lab_run")
    until(lambda: bool(runs.asked))
    assert runs.asked[0].weight == asked
    assert "--" not in page.url["run"]
    assert setting(page, "weight").value == asked


def test_the_step_in_view_is_in_the_address() -> None:
    page = visit(experiment=OUTPUT)
    assert step_in_view(page) == 0, "it begins before training"
    page.send("mha_player", "step", 1)
    assert page.url["step"] == "1"
    assert step_in_view(page) == 1
    page.send("mha_player", "step", 0)
    assert "step" not in page.url
    assert step_in_view(visit(experiment=OUTPUT, step="300")) == 300
    assert step_in_view(visit(experiment=OUTPUT, step="299")) == 0, "a step that was not recorded"


def test_an_odd_step_of_a_client_changes_nothing() -> None:
    page = visit(experiment=OUTPUT, step="1")
    odd_steps: tuple[object, ...] = (None, True, -1, 1.5, "3", [3], 10**9)
    for odd in odd_steps:
        page.send("mha_player", "step", odd)
        assert page.url["step"] == "1", odd


def test_one_head_is_compared_with_none() -> None:
    content = playing(visit(experiment=HEAD_COUNT, arm="0"))
    assert content["matrices"] == []
    assert len(content["heads"]) == 1


def test_the_training_whose_heads_are_shown_is_in_the_address() -> None:
    page = visit(experiment=HEAD_COUNT)
    _shown_heads(page).set_value("32 heads").run()
    page.check()
    assert page.url["arm"] == "5"
    assert _shown_heads(visit(experiment=HEAD_COUNT, arm="0")).value == "0"
    assert _shown_heads(visit(experiment=HEAD_COUNT, arm="9")).value == "1"


def _shown_heads(page: PageSession) -> Any:
    [choice] = [one for one in page.at.segmented_control if one.label == "Training"]
    return choice


def test_an_exception_is_called_one(monkeypatch: pytest.MonkeyPatch) -> None:
    result = lab.load_stored(IDENTICAL)
    training_run = result.runs[0]
    monkeypatch.setattr(
        lab, "load_stored", lambda _: replace(result, runs=(replace(training_run, same=~training_run.same),))
    )
    page = visit(experiment=IDENTICAL)
    assert "[No.]" in page.said
    assert "Unusual: in the default run the answer is yes." in page.said


# ---- Settings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("experiment", "field", "value", "message"),
    [
        (IDENTICAL, "steps", 0, "The number of steps is 0."),
        (PENALTY, "weight", -0.5, "λ is -0.5."),
        (REMOVAL, "seed", -1, "The seed is -1."),
    ],
)
def test_a_bad_setting_is_answered_in_place(experiment: str, field: str, value: float | None, message: str) -> None:
    page = visit(experiment=experiment)
    setting(page, field).set_value(value).run()
    page.check()
    assert message in page.said
    assert page.at.button(key="lab_run").disabled
    assert "Default run" in page.said
    setting(page, field).set_value(getattr(EXPERIMENTS[experiment].default, field)).run()
    assert message not in page.said
    assert not page.at.button(key="lab_run").disabled


def test_heads_are_a_choice_of_those_that_divide_the_width() -> None:
    page = visit(experiment=IDENTICAL)
    heads, width = (setting(page, name) for name in ("heads", "d_model"))
    assert heads.options == ["2", "4", "8", "16"]
    assert width.options == ["16", "32", "48", "64"]
    width.set_value(48).run()
    page.check()
    assert setting(page, "heads").options == ["2", "3", "4", "6", "8", "12", "16"]
    setting(page, "heads").set_value(12).run()
    setting(page, "d_model").set_value(32).run()
    page.check()
    assert setting(page, "heads").value == 8, "the nearest to 12 that divides 32"


def test_a_link_that_asks_for_heads_that_do_not_divide_is_answered_in_place() -> None:
    page = visit(experiment=IDENTICAL, run="heads-5")
    assert "5 heads cannot share 32 dimensions equally" in page.said
    assert setting(page, "heads").value == 4
    assert "<i>d</i><sub>model</sub> is 31." in visit(experiment=HEAD_COUNT, run="d_model-31").said


@pytest.mark.parametrize(
    ("experiment", "run", "reason"),
    [
        (SPLIT_INPUT, "heads-2", "With 2 heads a random chunk is the whole vector"),
        (REMOVAL, "heads-2", "With 2 heads there are two orders only"),
        (IDENTICAL, "heads-16_and_d_model-16", "With <i>d</i><sub>k</sub> = 1 a query is a single number"),
        (PENALTY, "weight-0", "With λ = 0 there is no penalty"),
        (OUTPUT, "steps-1", "After 1 step a layer has learned almost nothing"),
    ],
)
def test_settings_that_can_show_nothing_say_why(experiment: str, run: str, reason: str) -> None:
    settings = link.read_settings(experiment, run)
    jobs.get_queue("training").results.put(settings, replace(lab.load_stored(experiment), settings=settings))
    assert reason in visit(experiment=experiment, run=run).said
    page = visit(experiment=experiment)
    assert reason not in page.said
    for name in ("d_model", "heads", "steps", "weight"):  # typed, before it has run
        if getattr(settings, name) != getattr(EXPERIMENTS[experiment].default, name):
            setting(page, name).set_value(getattr(settings, name)).run()
    page.check()
    assert reason in page.said


# ---- What is expected --------------------------------------------------------------------------------------


def verdict_of(experiment: str, guess: str | None) -> str:
    result, below = lab.load_stored(experiment), EXPERIMENTS[experiment].other_experiment
    return lab.compare_with_other(guess, result, lab.load_stored(below)) if below else compare_with_guess(guess, result)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_an_answer_begins_to_play_and_is_compared_with_what_the_run_showed(experiment: str) -> None:
    page = asked(experiment=experiment)
    prediction = EXPERIMENTS[experiment]
    assert page.at.pills(key=f"lab_guess_{experiment}").value is None
    assert EXPERIMENTS[experiment].question in page.said
    outcome = prediction.outcome(lab.load_stored(experiment))
    assert playing(page)["verdict"] == verdict_of(experiment, None)
    others = [option for option in prediction.options if option != outcome.option]
    plays = playing(page)["play"]
    for option in (outcome.option, *(others if lanes.everything else others[:1])):
        page.at.pills(key=f"lab_guess_{experiment}").set_value(option).run()
        page.check()
        assert page.url["guess"] == option
        assert step_in_view(page) == playing(page)["steps"][-1], "what plays ends where the address is already"
        assert playing(page)["play"] == (plays := plays + 1)
        verdict = playing(page)["verdict"]
        assert verdict == verdict_of(experiment, option)
        assert verdict.startswith("You were right") == (option == outcome.option)
        assert prediction.options[outcome.option] in verdict
        assert verdict not in page.said, "the browser says it at the end"


def test_a_step_leads_to_the_next_which_asks_anew() -> None:
    page = asked(experiment=RANDOM, guess="alike", step="300")
    assert playing(page)["next"] == EXPERIMENTS[PENALTY].menu_name
    page.send("mha_player", "next", True)
    page.check()
    assert page.url["experiment"] == PENALTY
    assert not {"guess", "step"} & page.url.keys()


def test_steps_are_numbered_in_the_order_of_their_links() -> None:
    titles = asked().at.pills(key="lab_experiment").options
    for number, name in lab.EXPERIMENT_BY_NUMBER.items():
        assert titles[int(number) - 1] == format_formulas(EXPERIMENTS[name].menu_name), "a style sheet counts them"


def test_the_heads_are_there_before_an_answer_and_numbers_only_where_asked_for() -> None:
    page = asked(experiment=IDENTICAL)
    assert step_in_view(page) == 0
    assert playing(page)["strip"]["name"] == "W_Q"
    assert playing(page)["flow"] is None
    assert not page.at.get("plotly_chart")
    assert "Default run" not in page.said
    assert not page.at.number_input
    page.at.toggle(key="lab_numbers").set_value(True).run()
    page.check()
    assert page.url["numbers"] == "1"
    assert len(page.at.get("plotly_chart")) == 6
    assert playing(page)["flow"] is not None
    page.at.toggle(key="lab_numbers").set_value(False).run()
    assert "numbers" not in page.url


def test_another_experiment_asks_anew() -> None:
    page = asked(experiment=IDENTICAL, guess="apart", removed="1")
    page.at.pills(key="lab_experiment").set_value(HEAD_COUNT).run()
    page.check()
    assert not {"guess", "removed"} & page.url.keys()
    assert page.at.pills(key=f"lab_guess_{HEAD_COUNT}").value is None


def test_a_link_to_a_run_shows_its_numbers_until_they_are_closed() -> None:
    page = asked(run="default")
    assert "Default run, saved with the app" in page.said
    page.at.toggle(key="lab_numbers").set_value(False).run()
    assert page.url["numbers"] == "0"
    assert "Default run" not in page.said


def test_a_link_carries_the_settings_of_a_run() -> None:
    for settings in (of_seed(3), replace(of_seed(0, PENALTY), weight=0.05, heads=8), of_seed(0)):
        assert link.read_settings(settings.experiment, link.write_settings(settings)) == settings
    for odd in ("seed-1.5", "weight-1", "_and_"):
        assert link.read_settings(IDENTICAL, odd) == of_seed(0), odd
    page = visit(experiment=PENALTY, run="weight-0.7_and_seed-5")
    assert setting(page, "weight").value == 0.7
    assert setting(page, "seed").value == 5
    assert "This server has not run λ = 0.7, h = 4, <i>d</i><sub>model</sub> = 32, steps = 300, seed = 5." in page.said


ODD_SETTINGS = ("steps-0", "heads-99999999999999", "seed-1.5", "x-1_and_seed-2", "weight-1", "_and_")


@pytest.mark.parametrize("odd", lanes.some(ODD_SETTINGS, "steps-0", "heads-99999999999999", "x-1_and_seed-2"))
def test_odd_settings_of_a_link_are_survived(odd: str) -> None:
    page = visit(experiment=IDENTICAL, run=odd)
    assert "Default run" in page.said
    assert ("The number of steps is 0." in page.said) == (odd == "steps-0")
    assert setting(page, "seed").value == (2 if "seed-2" in odd else 0)


@pytest.mark.parametrize("kind", lanes.some(list(hostile.KINDS), "empty", "only nul", "closing script"))
def test_odd_parameters_are_survived(kind: str) -> None:
    odd = clean(hostile.KINDS[kind])
    page = visit(experiment=odd, run=odd, step=odd, arm=odd)
    assert EXPERIMENTS[IDENTICAL].question in page.said


# ---- Running ----------------------------------------------------------------------------------------------


def test_a_run_is_trained_shown_and_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from mha_viz.lab import experiments

    def run(settings: Settings, tell: Callable[[float], None], stopped: Callable[[], bool]) -> Result:
        return experiments.run(settings, lambda so_far: tell(so_far.fraction), stopped)

    monkeypatch.setattr(trainings_module.lab, "run", run)  # in this process; test_training compares it with a child
    page = visit(experiment=OUTPUT)
    page.at.number_input(key="lab_output_steps").set_value(3).run()
    page.at.number_input(key="lab_output_seed").set_value(7).run()
    press(page, "lab_run")
    assert page.url["run"] == "steps-3_and_seed-7"
    settings = replace(of_seed(7, OUTPUT), steps=3)
    until(lambda: trainings_module.find_running(settings) is None)
    assert trainings_module.find_result(settings) is not None
    again = visit(**page.url)
    assert (
        format_formulas(escape_markdown("Run on this server: h = 4, d_model = 32, steps = 3, seed = 7")) in again.said
    )
    assert playing(again)["steps"] == [0, 1, 2, 3]
    again.at.segmented_control(key="lab_beside").set_value("1").run()
    until(lambda: trainings_module.find_running(replace(settings, seed=8)) is None)
    beside = visit(**again.url)
    assert (beside.url["beside"], "**Seed 8**" in beside.said) == ("1", True)
    drawn = [component.proto for component in beside.at.get("bidi_component") if "lab_" in component.proto.id]
    assert len(drawn) == 2
    data = [json.loads(component.json) for component in drawn]
    runs = [trainings_module.find_result(replace(settings, seed=seed)).runs[0] for seed in (7, 8)]
    largest = max(np.abs(run.queries).max() for run in runs)
    assert [one["strip"]["largest"] for one in data] == pytest.approx([largest, largest]), "colours mean the same"
    logs = np.log([run.loss for run in runs])
    drawn_losses = [one["curves"]["lines"][0]["values"] for one in data]
    np.testing.assert_allclose(drawn_losses, (logs - logs.min()) / np.ptp(logs), atol=6e-4)


def test_the_estimate_follows_the_settings_and_the_last_run(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "measure_pace", lambda: 2.0)
    assert trainings_module.estimate_seconds(of_seed(1)) == pytest.approx(2 * estimate.estimate_seconds(of_seed(1)))
    clock = iter([100.0, 100.0 + 5 * estimate.estimate_seconds(of_seed(1))])
    monkeypatch.setattr(trainings_module, "perf_counter", lambda: next(clock))
    runs.end.set()
    training = trainings_module.start(of_seed(1))
    until(lambda: training.is_finished)
    assert trainings_module.estimate_seconds(replace(of_seed(2), steps=600)) == pytest.approx(
        5 * estimate.estimate_seconds(replace(of_seed(2), steps=600))
    )


def test_the_estimate_stands_beside_run(monkeypatch: pytest.MonkeyPatch) -> None:
    page = asked(experiment=IDENTICAL, run="seed-5")
    for seconds, words in ((0.2, "about 1 s"), (4.4, "about 4 s"), (31, "about 30 s"), (130, "about 2 min")):
        monkeypatch.setattr(trainings_module, "estimate_seconds", lambda *_, seconds=seconds: seconds)
        page.at.run()
        assert f"Takes {words} on this server." in page.said


def test_a_run_that_is_saved_is_not_trained_again(runs: Runs) -> None:
    page = visit(experiment=IDENTICAL)
    assert "Saved run." in page.said
    press(page, "lab_run")
    assert page.url["run"] == "default"
    assert "Default run, saved with the app" in page.said
    setting(page, "seed").set_value(1).run()
    assert "on this server." in page.said
    runs.end.set()
    press(page, "lab_run")
    until(lambda: trainings_module.find_result(of_seed(1)) is not None)
    page.at.run()
    assert "Saved run." in page.said
    assert runs.asked == [of_seed(1)]


def test_progress_and_stop(runs: Runs) -> None:
    page = visit(experiment=IDENTICAL)
    setting(page, "seed").set_value(1).run()
    press(page, "lab_run")
    assert "Until the training is done, the saved default run is shown below." in page.said
    training = trainings_module.find_running(of_seed(1))
    assert training is not None
    until(lambda: training.fraction == 0.5)
    press(page, "lab_stop")
    until(lambda: training.is_finished)
    assert isinstance(training.error, Cancelled)
    assert page.at.button(key="lab_run")
    assert trainings_module.find_result(of_seed(1)) is None
    press(page, "lab_run")  # and once more
    assert trainings_module.find_running(of_seed(1)) is not None


def test_two_who_ask_for_the_same_share_it_and_others_wait(runs: Runs) -> None:
    first, same, other = (
        trainings_module.start(of_seed(1)),
        trainings_module.start(of_seed(1)),
        trainings_module.start(of_seed(2)),
    )
    assert first is same
    assert (jobs.get_queue("training").count_ahead(first), jobs.get_queue("training").count_ahead(other)) == (0, 1)
    until(lambda: len(runs.asked) == 1)
    assert runs.asked == [of_seed(1)]
    runs.end.set()
    until(lambda: other.is_finished and first.is_finished)
    assert runs.asked == [of_seed(1), of_seed(2)]
    assert trainings_module.find_result(of_seed(1)) is not None
    assert trainings_module.find_running(of_seed(1)) is None


def test_the_page_says_that_others_come_first(runs: Runs) -> None:
    trainings_module.start(of_seed(1))
    trainings_module.start(of_seed(2))
    page = visit(experiment=IDENTICAL, run="seed-2")
    waiting = [element.proto.text for element in page.at.get("progress")]
    assert waiting == ["Waiting for 1 training of other visitors"]


def test_one_visitor_who_lets_go_stops_nothing_for_another(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    who = ["a"]
    monkeypatch.setattr(jobs, "get_visitor", lambda: who[0])
    training = trainings_module.start(of_seed(1))
    who[0] = "b"
    assert trainings_module.start(of_seed(1)) is training
    training.cancel()
    training.heartbeat()  # the rest of the page may poll once more
    assert training.is_cancelled
    assert trainings_module.find_running(of_seed(1)) is None
    assert not training.is_stopped()
    who[0] = "a"
    assert trainings_module.find_running(of_seed(1)) is training
    training.cancel()
    assert training.is_stopped()


def test_a_training_that_nobody_looks_at_stops(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = jobs.KINDS["training"]._replace(timeout_s=0.05)
    monkeypatch.setattr(jobs, "KINDS", {**jobs.KINDS, "training": rules})
    restart_server()
    training = trainings_module.start(of_seed(1))
    until(lambda: training.is_finished)
    assert isinstance(training.error, Cancelled)
    assert trainings_module.find_running(of_seed(1)) is None


def test_too_many_trainings_are_refused_in_words(runs: Runs) -> None:
    for seed in range(jobs.KINDS["training"].max_jobs):
        trainings_module.start(of_seed(seed + 10))
    with pytest.raises(Busy):
        trainings_module.start(of_seed(1))
    page = visit(experiment=IDENTICAL)
    setting(page, "seed").set_value(1).run()
    press(page, "lab_run")
    assert "Too many trainings are waiting on this server." in page.said


def test_faults_of_a_training_are_said_and_the_queue_lives_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Result:
        raise RuntimeError("no memory")

    monkeypatch.setattr(trainings_module.lab, "run", broken)
    for _ in range(2):
        training = trainings_module.start(of_seed(1))
        until(lambda training=training: training.is_finished)  # type: ignore[misc]
        assert "no memory" in str(training.error)
        until(lambda: trainings_module.find_running(of_seed(1)) is None)
    with pytest.raises(SettingError):
        trainings_module.start(replace(of_seed(1), steps=0))


def test_a_forged_width_is_left_to_the_control(caplog: pytest.LogCaptureFixture) -> None:
    page = visit()
    page.forge(setting(page, "d_model").proto.id, bytes_value=b"48")
    assert "unsupported operand" not in caplog.text


def test_settings_are_written_whole() -> None:
    settings = replace(EXPERIMENTS[RANDOM].default, seed=1234567)
    assert "seed = 1234567" in describe_settings(settings)
    assert "seed = 2147483647" in describe_settings(replace(settings, seed=2147483647))
    assert "λ = 0.1234567" in describe_settings(replace(EXPERIMENTS[PENALTY].default, weight=0.1234567))
