"""The path for a learner: the tour and the questions lead to the pages that they name."""

from __future__ import annotations

import base64
import functools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mha_viz import numerals
from mha_viz.app.inside import page as inside
from mha_viz.app.inside.stages import STAGES
from mha_viz.app.lab import learning, questions
from mha_viz.app.lab.page import SCENES
from mha_viz.app.lab.questions import QuizQuestion
from mha_viz.app.url import lesson
from mha_viz.app.widgets import navigation
from mha_viz.app.widgets.parts import format_formulas
from mha_viz.attention import Head
from mha_viz.figures.layout.caption import format_head
from mha_viz.files.assets import MOVED_PAGES, asset_path, page_files, redirect_address
from mha_viz.lab import toy_maps
from mha_viz.lab.lab import EXPERIMENTS
from mha_viz.lab.tasks import LINKED
from mha_viz.models.getting import snapshots
from mha_viz.numerals import percent
from tests import lanes
from tests.few_sentences import read_few
from tests.page_session import ROOT, PageSession, press

if TYPE_CHECKING:
    from mha_viz.models.reading.encoder import Encoder

QUESTIONS = questions.load_questions()
STEPS_OF_TOUR = navigation.load_steps()
TOY = learning.TOYS["toy"]
SENTENCE = re.compile(r"[.!?](?= [A-Z]|$)")


@pytest.fixture(autouse=True)
def few_sentences(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cards of heads wait for the first of the built-in sentences only."""
    read_few(monkeypatch)


def path_of(name: str) -> str:
    """The URL path of the page with this name."""
    return name.replace(" ", "_")


def file_of(name: str) -> str:
    """The file of the page with this name."""
    (file,) = (ROOT / "pages").glob(f"[0-9]*_{path_of(name)}.py")
    return f"pages/{file.name}"


def visit(page: str, **url: Any) -> PageSession:
    return PageSession(url, file_of(page))


def links(of: PageSession) -> dict[str, Any]:
    """The parameters of every link on a page, and the page that it leads to."""
    return {link.proto.label: link.proto for link in of.at.get("page_link")}


def understood(page: str, parameters: dict[str, str]) -> bool:
    """True if the page reads every parameter of a link, and every value is valid."""
    patterns = {
        "why heads differ": {"experiment": lambda value: value in SCENES},
        "inside a head": {
            "step": lambda value: value in (*STAGES, inside.COST_STAGE),
            "head": lambda value: value in HEADS,
            "q": lambda value: value == "10",
            "k": lambda value: value == "9",
        },
        "explore": {
            "head": lambda value: value in HEADS,
            "pin": lambda value: value == "q10",
            "roles": lambda value: value == "on",
        },
        "compare": {"head": lambda value: value in HEADS, "show": lambda value: value == "word"},
        "roles": {"head": lambda value: value in HEADS, "model": lambda value: value == "toy"},
    }
    return all(name in patterns[page] and patterns[page][name](value) for name, value in parameters.items())


HEADS = {f"L{layer}H{head}" for layer in range(6) for head in range(12)}


# ---- Questions --------------------------------------------------------------------------------------------


def test_the_questions_of_learners_are_all_there() -> None:
    questions = " ".join(one.question for one in (*QUESTIONS, *EXPERIMENTS.values(), *learning.TOYS.values()))
    for words in (
        *("unique", "different part of the input", "same weights", "diverse", "redundant", "whole vector", "cost"),
        *("several heads", "made to differ", "kernel of a convolution", "ensemble", "h divide d_model", "meet again"),
        *("layers parallel", "two layers work together"),
    ):
        assert words in questions


def test_an_answer_is_two_sentences_with_a_source() -> None:
    for question in QUESTIONS:
        assert len(SENTENCE.findall(question.answer)) == 2, question.answer
        assert re.search(r"\b20\d\d\b", question.source), question.see
        assert understood(question.page, question.parameters), question.see


EVERY_PAGE = {question.page: question for question in QUESTIONS}.values()  # one question that leads to each page


@pytest.mark.parametrize("question", lanes.some(QUESTIONS, *EVERY_PAGE), ids=lambda question: question.see)
def test_a_question_leads_to_its_experiment(question: QuizQuestion) -> None:
    page = visit(question.page, **question.parameters)
    assert "does not exist" not in page.said


def test_the_page_shows_every_question_with_the_way_to_its_answer() -> None:
    page = visit("why heads differ", experiment="count", step="0", guess="one")
    assert {format_formulas(question.question) for question in QUESTIONS} <= {box.label for box in page.at.expander}
    (drawn,) = [html.proto.body for html in page.at.get("html") if "in parallel, and W_O joins them" in html.proto.body]
    assert "data:image/svg+xml" in drawn, "layers beside heads"
    for question in QUESTIONS:
        assert format_formulas(question.answer) in page.said
        if question.page == "why heads differ":
            assert page.at.button(key=f"to_{question.see}")
            continue
        link = next(link for label, link in links(page).items() if format_formulas(question.see) in label)
        assert (link.page or "explore") == path_of(question.page)  # the first page has no path
        for name, value in question.parameters.items():
            assert f"{name}={value}" in link.query_string
    press(page, "to_Remove heads")
    assert page.url == {"experiment": "removal"}


def test_what_it_costs_opens_the_calculator_right_below_the_map() -> None:
    page = visit("inside a head", step=inside.COST_STAGE)
    headings = [m.value.splitlines()[0] for m in page.at.markdown if m.value.startswith("##")]
    assert headings[0] == "## What it costs"


# ---- Tour -------------------------------------------------------------------------------------------------


def test_the_tour_has_six_steps_over_the_pages_in_order() -> None:
    pages = [step.page for step in STEPS_OF_TOUR]
    assert pages == ["explore", "inside a head", "why heads differ", "roles", "compare", "explore"]
    for step in STEPS_OF_TOUR:
        assert understood(step.page, step.parameters)


@pytest.mark.parametrize("at", range(1, len(STEPS_OF_TOUR) + 1))
def test_a_step_is_said_on_its_page_with_the_ways_on(at: int) -> None:
    step = STEPS_OF_TOUR[at - 1]
    page = visit(step.page, **step.parameters, tour=str(at))
    assert f"{at} of 6" in page.said
    assert format_formulas(step.text) in page.said
    assert "something else" not in page.said
    assert "does not exist" not in page.said
    ways = [*links(page), *(button.label for button in page.at.button)]
    assert any("Next" in label for label in ways) == (at < 6)
    assert any("Back" in label for label in ways) == (at > 1)
    page.at.button(key="tour_out").click().run()
    page.check()
    assert page.url == step.parameters
    assert format_formulas(step.text) not in page.said


def test_the_words_speak_of_what_is_measured(minilm: Encoder) -> None:
    attention = minilm.encode(json.loads(asset_path("examples.json").read_text("utf-8"))[0]["text"])
    tokens = [token.text for token in attention.text.tokens]
    assert tokens[10] == "it"
    assert tokens[int(attention.weights[3, 1, 10].argmax())] == "animal"
    assert tokens[9] == "because"  # the word before, which the second step follows
    assert [int(row.argmax()) for row in attention.weights[0, 2, 1:-1]] == list(range(len(tokens) - 2))
    wide = minilm.encode(attention.text.text.replace("tired", "wide"))
    for one, weight in ((attention, "0.68"), (wide, "0.28")):
        assert f"{one.weights[3, 1, 10, 2]:.2f}" == weight
        assert weight in STEPS_OF_TOUR[4].text
    changed = [one.text for one in wide.text.tokens]
    assert [one == other for one, other in zip(tokens, changed, strict=True)].count(False) == 1
    assert STEPS_OF_TOUR[4].text.endswith(" one word changes its attention.")
    roles = visit("roles")
    roles.at.session_state["numbers"] = True
    roles.at.run()
    beaten = re.search(r"For \*\*(\d+)\*\* of (\d+) relations a simple rule does at least as well", roles.said)
    assert beaten
    assert int(beaten[1]) > int(beaten[2]) / 3


def test_a_first_visit_is_offered_the_tour_and_another_one_can_find_it() -> None:
    assert visit("explore").at.button(key="tour_first").label == ":primary[Tour]"
    assert ":primary[Tour]" in links(visit("about"))
    page = visit("explore", text="Birds sing.", tray="x")
    assert page.at.button(key="tour_first").label == "Tour"
    page.at.button(key="tour_first").click().run()
    page.check()
    assert page.url == {**STEPS_OF_TOUR[0].parameters, "tour": "1", "tray": "x"}
    page.at.button(key="tour_out").click().run()
    page.check()
    assert page.url == {"text": "Birds sing.", "tray": "x"}, "what was open is open again"


def test_a_tour_that_was_left_can_be_gone_on_with() -> None:
    page = visit("explore", tour="3", text="Birds sing.")
    assert "The tour stopped at step 3 of 6" in page.said
    onward = next(link for label, link in links(page).items() if "Continue" in label)
    assert onward.page == "why_heads_differ"
    assert "tour=3" in onward.query_string


def test_words_on_another_sentence_say_so() -> None:
    page = visit("explore", tour="1", text="Birds sing.", head="L0H2")
    assert format_formulas(STEPS_OF_TOUR[0].text) in page.said
    assert "You have left the view that this text describes" in page.said


def test_odd_steps_are_no_steps() -> None:
    for odd in ("0", "7", "-1", "0061", "1e0", "１", "", "one", "9" * 5000):
        assert navigation.read_step_number({"tour": odd}) is None, odd[:9]


# ---- How the toy learned ----------------------------------------------------------------------------------


def learned(**url: str) -> PageSession:
    return visit("why heads differ", experiment="toy", numbers="1", **url)


@functools.cache
def seen(**url: str) -> PageSession:
    """A visit that several tests look at, and that none of them changes."""
    return learned(**url)


def playing(page: PageSession) -> dict[str, Any]:
    """What the player was sent."""
    content: dict[str, Any] = json.loads(page._drawn()["mha_player"].json)
    return content


def step_in_view(page: PageSession) -> int:
    content = playing(page)
    return int(content["steps"][content["at"]])


@pytest.mark.parametrize("step", lanes.some([0, 400, 10000], 400, 10000))
def test_scores_of_a_step_are_those_of_that_step(step: int) -> None:
    page = seen(**{learning.PARAMETER: str(step)})
    assert step_in_view(page) == step
    history = learning.load_history("toy")
    for place, (task, skill) in enumerate(TOY.skills.items()):
        scores = history[(history["task"] == task) & (history["step"] == step)]
        best = scores.loc[scores["accuracy"].idxmax()]
        head = Head(int(best["layer"]), int(best["head"]))
        row = next(line for line in page.said.splitlines() if line.startswith(f"| {skill.name} |"))
        assert f"{format_head(head)} | **{percent(best['accuracy'])}** of {int(best['n']):,}" in row
        assert percent(best["baseline"]) in row
        note = playing(page)["marks"][place]["notes"][playing(page)["at"]]
        assert note == f"{head} {percent(best['accuracy'])}"


def test_the_step_of_training_in_view_is_in_the_address() -> None:
    page = learned()
    page.send("mha_player", "step", 50)
    assert page.url[learning.PARAMETER] == "50"
    assert step_in_view(page) == 50
    assert "| after 50 steps |" in page.said
    (explore,) = [link for label, link in links(page).items() if "[In Explore]" in label]
    assert "model=toy%4050" in explore.query_string
    page.send("mha_player", "step", 51)  # a step that was not kept
    assert page.url[learning.PARAMETER] == "50"
    page.send("mha_player", "step", 0)
    assert learning.PARAMETER not in page.url


def test_both_trainings_stand_side_by_side_with_the_baselines() -> None:
    page = seen()
    assert "trained on four questions | trained on hidden words only |" in page.said
    for task, skill in TOY.skills.items():
        row = next(line for line in page.said.splitlines() if line.startswith(f"| **{skill.name}** | {skill.baseline}"))
        for model in learning.TRAININGS:
            table = learning.load_history(model)
            last = table[(table["task"] == task) & (table["step"] == 10000)]
            assert f"**{percent(last['accuracy'].max())}**" in row
    assert "less than 10 points above the simple rule" in row  # the pronoun's antecedent is not learned by itself


def test_the_second_training_is_played_and_has_no_place_in_explore() -> None:
    page = learned(trained="hidden", snapshot="10000")
    assert tuple(toy_maps.load_bundled("hidden").steps) == tuple(toy_maps.load_bundled().steps)
    assert not [label for label in links(page) if "[In Explore]" in label]
    assert playing(page)["maps"] != playing(seen())["maps"]
    best = learning.read_head(learning.find_best_row("hidden", "verb_subject"))
    assert f"| a subject’s verb | {format_head(best)}" in page.said
    assert [link for label, link in links(learned(trained="other")).items() if "[In Explore]" in label]


def test_since_when_is_the_first_step_from_which_on_a_head_stays_above_the_baseline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = {0: 0.1, 50: 0.5, 100: 0.29, 200: 0.31, 300: 0.9}  # of the best head; the baseline is 0.2
    table = pd.DataFrame([("t", step, score, 0.2) for step, score in rows.items()],
                         columns=["task", "step", "accuracy", "baseline"])  # fmt: skip
    monkeypatch.setattr(learning, "load_history", lambda _: table)
    assert learning.find_first_step("toy", "t") == 200
    table["accuracy"] = 0.25
    assert learning.find_first_step("toy", "t") is None


@pytest.mark.parametrize("step", [0, 400, 10000])
def test_the_maps_that_are_played_are_those_of_the_model(step: int) -> None:
    from mha_viz.models.reading.loading import load

    recorded, forms = toy_maps.load_bundled(), learning.find_drawn_sentence().sentence.forms
    assert recorded.words == tuple(forms)
    assert tuple(recorded.steps) == snapshots.list_steps(asset_path("toy"))
    attention = load(f"toy@{step}").encode_words(list(forms)).by_words().content()
    at = recorded.steps.tolist().index(step)
    np.testing.assert_allclose(recorded.maps[at], attention.weights, atol=1e-3)
    content = playing(seen())
    cells = np.frombuffer(base64.b64decode(content["maps"]), np.uint8).reshape(len(recorded.steps), 8, len(forms), -1)
    for cell, head in zip(cells[at], content["heads"], strict=True):
        drawn = attention.weights[Head.parse(head["name"].split()[0])]
        np.testing.assert_allclose(cell / 255, drawn, atol=4e-3)
    names = [head["name"] for head in content["heads"]]
    assert names == sorted(names), "a layer is a row of maps"


@pytest.mark.parametrize(("name", "step"), [("toy", 0), ("toy", 400), ("repeater", 3000)])
def test_the_strips_of_a_toy_are_the_weights_of_its_heads(name: str, step: int) -> None:
    from mha_viz.models.reading.loading import load

    recorded = toy_maps.load_bundled(name)
    content = playing(visit("why heads differ", experiment=name))
    size, largest = content["strip"]["size"], content["strip"]["largest"]
    assert content["strip"]["name"] == "W_Q"
    levels = np.frombuffer(base64.b64decode(content["strip"]["cells"]), np.uint8).astype(float) - 128
    drawn = (np.sign(levels) * (levels / 127) ** 2 * largest).reshape(len(recorded.steps), 8, size)
    model = load(f"{name}@{step}")
    w_q = [model.trace(recorded.words[0], layer=layer).parameters.w_q for layer in range(model.layers)]
    for shown, entry in zip(drawn[recorded.steps.tolist().index(step)], content["heads"], strict=True):
        head = Head.parse(entry["name"].split()[0])
        w_q_of_head = w_q[head.layer][:, 16 * head.head : 16 * (head.head + 1)].ravel()[:size]
        np.testing.assert_allclose(shown, w_q_of_head, atol=0.02 * largest)


def test_the_curve_of_a_toy_is_its_loss_beside_that_of_the_other_training() -> None:
    from mha_viz.lab import repeater, toy_model

    of_each = {name: toy_maps.load_bundled(name) for name in ("toy", "hidden", "repeater")}
    logs = np.log([of_each["toy"].loss, of_each["hidden"].loss])
    curves = playing(learned(trained="hidden"))["curves"]
    assert (curves["title"], [line["faint"] for line in curves["lines"]]) == ("loss, hidden words", [True, False])
    expected = (logs - logs.min()) / (logs.max() - logs.min())
    np.testing.assert_allclose([line["values"] for line in curves["lines"]], expected, atol=6e-4)
    measured = {"toy": toy_model.measure_hidden_word_loss, "repeater": repeater.measure_next_word_loss}
    for name, loss_of in measured.items():
        losses, folder = of_each[name].loss, asset_path(name)
        assert losses[-1] < losses[0] / 2
        last = snapshots.unpack(folder, snapshots.list_steps(folder)[-1])
        assert loss_of(last) == pytest.approx(float(losses[-1]), abs=1e-3)


def test_the_weights_in_the_sentence_are_those_of_its_maps() -> None:
    drawn, recorded = learning.find_drawn_sentence(), toy_maps.load_bundled()
    place, antecedent = drawn.pairs["pronoun_antecedent"]
    assert drawn.sentence.words[place].upos == "PRON"
    weight = recorded.maps[-1, 1, 1, place, antecedent]
    named = f"“{recorded.words[place]}” → “{recorded.words[antecedent]}”"
    assert f"{named}: {numerals.format_weight(weight)} |" in seen(snapshot="10000").said
    assert playing(seen())["marks"][2]["places"][place] == antecedent


@pytest.mark.parametrize("odd", lanes.some(["7", "-1", "x", "400.0", ""], "7", "400.0"))
def test_odd_steps_of_training_show_the_first(odd: str) -> None:
    page = learned(**{learning.PARAMETER: odd})
    assert step_in_view(page) == 0


def test_what_a_toy_shows_follows_its_numbers() -> None:
    verdict = playing(learned(guess="shared"))["verdict"]
    best = "most often right on new sentences: ○ L1H3, □ L1H2, ◇ L1H1"
    assert verdict.startswith(f"Not quite: the work is divided among heads; {best}.")
    hidden = playing(learned(trained="hidden"))["verdict"]
    assert "new sentences: ○ L1H1, □ L1H2." in hidden, "it did not learn whom a pronoun refers to"
    assert "On these maps" not in verdict + hidden, "their signs mark one word each"
    second = playing(visit("why heads differ", experiment="repeater", guess="second"))["verdict"]
    jobs = "L0H0 and L0H3 share ○; L1H0, L1H1, L1H2 and L1H3 share □: six heads, two jobs."
    assert second == (f"You were right: the second layer finds it. On these maps: L0H1 and L0H2 have no job; {jobs}")


def test_numbers_on_the_stage_are_in_per_cent_and_relations_have_one_name() -> None:
    for scene in (*EXPERIMENTS, *learning.TOYS):
        page = visit("why heads differ", experiment=scene)
        for mark in playing(page)["marks"]:
            assert all(note.endswith("%") for note in mark["notes"]), scene
            assert mark["name"] != LINKED or LINKED in page.said, scene


# ---- The ways to the stage --------------------------------------------------------------------------------------


def test_roles_of_a_toy_lead_to_its_training_and_back() -> None:
    for toy in learning.TOYS:
        link = links(visit("roles", model=toy))[":primary[**▶ Watch its heads learn**]"]
        assert (link.page, link.query_string) == ("why_heads_differ", f"experiment={toy}")
        back = links(visit("why heads differ", experiment=toy))[":primary[Its roles]"]
        assert (back.page, back.query_string) == ("roles", f"model={toy}")
    assert "learn**]" not in "".join(links(visit("roles")))


@pytest.mark.parametrize(
    ("old", "parameters", "new"),
    [
        ("questions", {}, {}),
        ("questions", {"task": "3", "answer": "L0H2"}, {"task": "3", "answer": "L0H2", "experiment": "tasks"}),
        ("questions", {"task": "3", "experiment": "random"}, {"task": "3", "experiment": "tasks"}),
        ("roles", {"model": "toy", "snapshot": "300"}, {"model": "toy", "snapshot": "300", "experiment": "toy"}),
        ("roles", {"model": "toy", "trained": "hidden"}, {"model": "toy", "trained": "hidden", "experiment": "toy"}),
        ("roles", {"model": "repeater", "snapshot": "0"},
         {"model": "repeater", "snapshot": "0", "experiment": "repeater"}),
    ],
)  # fmt: skip
def test_an_old_address_leads_to_where_its_content_went(
    old: str, parameters: dict[str, str], new: dict[str, str]
) -> None:
    assert redirect_address(old, parameters) == ("why_heads_differ", new)
    url = lesson.write([lesson.LessonView(old, parameters, "Look.")])
    ((view,), whole) = lesson.read(url)
    assert whole
    assert view.page == "why_heads_differ"
    assert set(view.parameters) == set(new)


def test_every_new_address_is_one() -> None:
    assert {row.new for row in MOVED_PAGES} <= page_files().keys()


def test_no_other_address_is_led_away() -> None:
    for page, parameters in (
        ("roles", {"model": "toy"}),
        ("roles", {"snapshot": "3"}),
        ("roles", {"model": "toy", "snapshot": "300", "experiment": "toy"}),  # carried along by a link within the app
        ("explore", {"task": "1"}),
        ("", {}),
    ):
        assert redirect_address(page, parameters) == (page, parameters)


def test_of_eight_heads_those_that_are_best_at_a_task_are_large() -> None:
    for training, best in (("toy", ["L1H3", "L1H2", "L1H1"]), ("hidden", None)):
        content = playing(learned(trained=training))
        names = [content["heads"][head]["name"] for head in content["large"]]
        expected = dict.fromkeys(
            str(learning.read_head(learning.find_best_row(training, task))) for task in learning.TOYS["toy"].skills
        )
        assert names == list(expected)
        assert best is None or names == best
    assert playing(visit("why heads differ", experiment="repeater"))["large"] == [], "six of its heads have jobs"
