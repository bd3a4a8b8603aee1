"""The training lab as a page: stored runs at once, settings and their faults, running, waiting, stopping."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from mha_viz.errors import Busy, Cancelled, SettingError
from mha_viz.training import record
from mha_viz.training.record import COUNT, EXPERIMENTS, IDENTICAL, OUTPUT, PENALTY, REMOVAL, Result, Settings
from mha_viz.training.statements import statements
from mha_viz.ui import jobs
from mha_viz.ui.lab import page as lab
from mha_viz.ui.lab import trainings as desk
from mha_viz.ui.lab.trainings import Trainings, trainings
from mha_viz.ui.lab.words import WORDS
from mha_viz.ui.parts import formulas, plain
from tests import hostile
from tests.page_session import ROOT, PageSession, press
from tests.waiting import until

PAGE = "pages/50_why_heads_differ.py"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """A desk of its own for every test."""
    trainings.clear()
    yield
    trainings.clear()


def visit(**url: Any) -> PageSession:
    return PageSession(url, PAGE)


class Runs:
    """Stands in for the child process: a run ends when it is told to, or when nobody waits for it."""

    def __init__(self) -> None:
        self.end = threading.Event()
        self.asked: list[Settings] = []

    def __call__(self, settings: Settings, progress: Callable[[float], None], cancelled: Callable[[], bool]) -> Result:
        self.asked.append(settings)
        progress(0.5)
        until(lambda: self.end.is_set() or cancelled())
        if not self.end.is_set():
            raise Cancelled("The training was stopped.")
        return replace(record.stored(settings.experiment), settings=settings)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    found = Runs()
    monkeypatch.setattr(desk.apart, "run", found)
    yield found
    found.end.set()


def of_seed(seed: int, experiment: str = IDENTICAL) -> Settings:
    return replace(EXPERIMENTS[experiment].default, seed=seed)


# ---- What is shown ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_shows_its_stored_run_at_once(experiment: str) -> None:
    page = visit(experiment=experiment)
    assert WORDS[experiment].question in page.said
    assert "Default run, saved with the app: " in page.said.replace("\\", "")
    for statement in statements(record.stored(experiment)):
        assert formulas(plain(statement.question)) in page.said
        assert formulas(plain(statement.evidence)) in page.said
    assert "Unusual" not in page.said


def test_experiments_have_numbers_and_the_first_is_shown_for_anything_else() -> None:
    assert WORDS[PENALTY].question in visit(experiment="4").said
    for odd in ("", "8", "everything", "identical "):
        assert WORDS[IDENTICAL].question in visit(experiment=odd).said


def test_another_experiment_is_a_step_of_the_address() -> None:
    page = visit(experiment=IDENTICAL, step="3", run="seed-4")
    page.at.pills(key="lab_experiment").set_value(COUNT).run()
    page.check()
    assert page.url["experiment"] == COUNT
    assert not {"step", "run", "arm"} & page.url.keys()
    assert WORDS[COUNT].question in page.said


def test_the_controls_follow_the_address() -> None:
    page = visit(experiment=COUNT, run="seed-4", step="0", arm="2")
    assert page.at.number_input(key=f"lab_{COUNT}_seed").value == 4
    page.at.number_input(key=f"lab_{COUNT}_seed").set_value(7).run()
    assert page.at.number_input(key=f"lab_{COUNT}_seed").value == 7, "what is typed stays"
    page.at.query_params["run"] = "seed-5"  # as Back does
    del page.at.query_params["step"], page.at.query_params["arm"]
    page.at.run()
    assert page.at.number_input(key=f"lab_{COUNT}_seed").value == 5
    (slider,) = page.at.select_slider
    assert slider.value == max(record.stored(COUNT).runs[1].steps)
    page.at.query_params["experiment"] = IDENTICAL
    page.at.run()
    page.check()
    assert page.at.pills(key="lab_experiment").value == IDENTICAL
    assert page.at.number_input(key=f"lab_{IDENTICAL}_seed").value == 5


@pytest.mark.parametrize(("typed", "asked"), [(1e-9, 0.0), (0.7999999999999999, 0.8), (-0.0, 0.0)])
def test_a_weight_runs_as_its_link_says_it(runs: Runs, typed: float, asked: float) -> None:
    page = visit(experiment=PENALTY)
    page.at.number_input(key=f"lab_{PENALTY}_weight").set_value(typed).run()
    press(page, "lab_run")
    until(lambda: bool(runs.asked))
    assert runs.asked[0].weight == asked
    assert "--" not in page.url["run"]
    assert page.at.number_input(key=f"lab_{PENALTY}_weight").value == asked


def test_the_step_in_view_is_in_the_address() -> None:
    page = visit(experiment=OUTPUT)
    assert "Where each head looks at step 300" in page.said
    slider = page.at.select_slider[0]
    slider.set_value(1).run()
    page.check()
    assert page.url["step"] == "1"
    assert "Where each head looks at step 1**" in page.said
    assert "Where each head looks at step 0**" in visit(experiment=OUTPUT, step="0").said
    assert "Where each head looks at step 300" in visit(experiment=OUTPUT, step="299").said


def test_the_training_whose_heads_are_shown_is_in_the_address() -> None:
    page = visit(experiment=COUNT)
    page.at.segmented_control[0].set_value("32 heads").run()
    page.check()
    assert page.url["arm"] == "5"
    assert visit(experiment=COUNT, arm="0").at.segmented_control[0].value == "1 head"
    assert visit(experiment=COUNT, arm="9").at.segmented_control[0].value == "2 heads"


def test_an_exception_is_called_one(monkeypatch: pytest.MonkeyPatch) -> None:
    result = record.stored(IDENTICAL)
    arm = result.runs[0]
    monkeypatch.setattr(record, "stored", lambda _: replace(result, runs=(replace(arm, same=~arm.same),)))
    page = visit(experiment=IDENTICAL)
    assert "[No.]" in page.said
    assert "Unusual: in the default run the answer is yes." in page.said


def test_the_page_needs_no_torch() -> None:
    script = (
        "import sys; from tests.page_session import PageSession;"
        f"[PageSession({{'experiment': name}}, {PAGE!r}) for name in ('identical', 'count', 'removal')];"
        "assert not {'torch', 'transformers'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, capture_output=True)


# ---- Settings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("experiment", "field", "value", "said"),
    [
        (IDENTICAL, "heads", 5, "5 heads cannot share 32 dimensions equally"),
        (IDENTICAL, "steps", 0, "The number of steps is 0."),
        (PENALTY, "weight", -0.5, "λ is -0.5."),
        (COUNT, "d_model", 31, "d_model is 31."),
        (REMOVAL, "seed", -1, "The seed is -1."),
    ],
)
def test_a_bad_setting_is_answered_in_place(experiment: str, field: str, value: float | None, said: str) -> None:
    page = visit(experiment=experiment)
    page.at.number_input(key=f"lab_{experiment}_{field}").set_value(value).run()
    page.check()
    assert said in page.said
    assert page.at.button(key="lab_run").disabled
    assert "What this run shows" in page.said
    page.at.number_input(key=f"lab_{experiment}_{field}").set_value(
        getattr(EXPERIMENTS[experiment].default, field)
    ).run()
    assert said not in page.said
    assert not page.at.button(key="lab_run").disabled


def test_a_link_carries_the_settings_of_a_run() -> None:
    for settings in (of_seed(3), replace(of_seed(0, PENALTY), weight=0.05, heads=8), of_seed(0)):
        assert lab.read(settings.experiment, lab.written(settings)) == settings
    page = visit(experiment=PENALTY, run="weight-0.7_and_seed-5")
    assert page.at.number_input(key="lab_penalty_weight").value == 0.7
    assert page.at.number_input(key="lab_penalty_seed").value == 5
    assert "This server has not run λ = 0.7, h = 4, d_model = 32, steps = 300, seed = 5." in page.said


@pytest.mark.parametrize("odd", ["steps-0", "heads-99999999999999", "seed-1.5", "x-1_and_seed-2", "weight-1", "_and_"])
def test_odd_settings_of_a_link_are_survived(odd: str) -> None:
    page = visit(experiment=IDENTICAL, run=odd)
    assert "Default run" in page.said
    assert ("The number of steps is 0." in page.said) == (odd == "steps-0")
    assert page.at.number_input(key="lab_identical_seed").value == (2 if "seed-2" in odd else 0)


@pytest.mark.parametrize("odd", list(hostile.TEXTS.values())[:8])
def test_odd_parameters_are_survived(odd: str) -> None:
    page = visit(experiment=odd, run=odd, step=odd, arm=odd)
    assert "What this run shows" in page.said


# ---- Running ----------------------------------------------------------------------------------------------


def test_a_run_is_trained_shown_and_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "FORGOTTEN", 600)  # no browser asks meanwhile
    page = visit(experiment=OUTPUT)
    page.at.number_input(key="lab_output_steps").set_value(3).run()
    page.at.number_input(key="lab_output_seed").set_value(7).run()
    press(page, "lab_run")
    assert page.url["run"] == "steps-3_and_seed-7"
    settings = replace(of_seed(7, OUTPUT), steps=3)
    until(lambda: trainings().under_way(settings) is None)
    assert trainings().result(settings) is not None
    again = visit(**page.url)
    assert formulas(plain("Run on this server: h = 4, d_model = 32, steps = 3, seed = 7")) in again.said
    assert "Where each head looks at step 3**" in again.said


def test_progress_and_stop(runs: Runs) -> None:
    page = visit(experiment=IDENTICAL)
    page.at.number_input(key="lab_identical_seed").set_value(1).run()
    press(page, "lab_run")
    assert "Until the training is done, the saved default run is shown below." in page.said
    training = trainings().under_way(of_seed(1))
    assert training is not None
    until(lambda: training.fraction == 0.5)
    press(page, "lab_stop")
    until(lambda: training.finished)
    assert isinstance(training.error, Cancelled)
    assert page.at.button(key="lab_run")
    assert trainings().result(of_seed(1)) is None
    press(page, "lab_run")  # and once more
    assert trainings().under_way(of_seed(1)) is not None


def test_two_who_ask_for_the_same_share_it_and_others_wait(runs: Runs) -> None:
    office = Trainings()
    first, same, other = office.start(of_seed(1)), office.start(of_seed(1)), office.start(of_seed(2))
    assert first is same
    assert (office.before(first), office.before(other)) == (0, 1)
    until(lambda: len(runs.asked) == 1)
    assert runs.asked == [of_seed(1)]
    runs.end.set()
    until(lambda: other.finished and first.finished)
    assert runs.asked == [of_seed(1), of_seed(2)]
    assert office.result(of_seed(1)) is not None
    assert office.under_way(of_seed(1)) is None


def test_the_page_says_that_others_come_first(runs: Runs) -> None:
    trainings().start(of_seed(1))
    trainings().start(of_seed(2))
    page = visit(experiment=IDENTICAL, run="seed-2")
    waiting = [element.proto.text for element in page.at.get("progress")]
    assert waiting == ["Waiting for 1 training of other visitors"]


def test_one_visitor_who_lets_go_stops_nothing_for_another(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    office, who = Trainings(), ["a"]
    monkeypatch.setattr(jobs, "visitor", lambda: who[0])
    training = office.start(of_seed(1))
    who[0] = "b"
    assert office.start(of_seed(1)) is training
    training.let_go()
    training.look()  # what is left of the page may look once more
    assert training.left
    assert office.under_way(of_seed(1)) is None
    assert not training.stopped()
    who[0] = "a"
    assert office.under_way(of_seed(1)) is training
    training.let_go()
    assert training.stopped()


def test_a_training_that_nobody_looks_at_stops(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "FORGOTTEN", 0.05)
    office = Trainings()
    training = office.start(of_seed(1))
    until(lambda: training.finished)
    assert isinstance(training.error, Cancelled)
    assert office.under_way(of_seed(1)) is None


def test_too_many_trainings_are_refused_in_words(runs: Runs) -> None:
    for seed in range(desk.RULES.places):
        trainings().start(of_seed(seed + 10))
    with pytest.raises(Busy):
        trainings().start(of_seed(1))
    page = visit(experiment=IDENTICAL)
    page.at.number_input(key="lab_identical_seed").set_value(1).run()
    press(page, "lab_run")
    assert "Too many trainings wait on this server." in page.said


def test_faults_of_a_training_are_said_and_the_desk_lives_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Result:
        raise RuntimeError("no memory")

    monkeypatch.setattr(desk.apart, "run", broken)
    office = Trainings()
    for _ in range(2):
        training = office.start(of_seed(1))
        until(lambda training=training: training.finished)  # type: ignore[misc]
        assert "no memory" in str(training.error)
        until(lambda: office.under_way(of_seed(1)) is None)
    with pytest.raises(SettingError):
        office.start(replace(of_seed(1), steps=0))
