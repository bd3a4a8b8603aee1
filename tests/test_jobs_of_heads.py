"""Which head does which job, read from maps and their marks."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from mha_viz.app.lab.learning import TOYS, describe_maps
from mha_viz.lab import lab
from mha_viz.lab.jobs import JOB_SHARE, SIGNS, describe_jobs, find_jobs, has_shared_job
from mha_viz.lab.lab import CURRENT, EXPERIMENTS, PAIR, PENALTY, RANDOM
from mha_viz.lab.predictions import write_verdict
from mha_viz.lab.record import Array

WORDS = 6
BEFORE = np.arange(WORDS) - 1  # no word stands before the first
LINKED = (np.arange(WORDS) + 3) % WORDS
PLACES = np.stack([BEFORE, LINKED], axis=1)  # [query, relation]


def head(before: float = 0, linked: float = 0) -> Array:
    """A map [query, key] with these shares on the two marks of each word, and the rest on the word itself."""
    queries, weights = np.arange(WORDS), np.zeros((WORDS, WORDS))
    weights[queries[1:], BEFORE[1:]] += before
    weights[queries, LINKED] += linked
    weights[queries, queries] += 1 - weights.sum(axis=1)
    return weights


CASES = {
    "1:3": ([(1, 0), (0, 1), (0, 0.8), (0, 0.6)], "H0 does ○; H1, H2 and H3 share □: three heads, one job."),
    "2:2": ([(1, 0), (0, 1), (0.9, 0), (0, 1)], "H0 and H2 share ○; H1 and H3 share □: four heads, two jobs."),
    "one each": ([(0, 0.9), (0.9, 0)], "H0 does □; H1 does ○."),
    "none": ([(0, 0), (0.1, 0.2)], "No head does ○ or □."),
    "all one": ([(0, 0.7)] * 4, "No head does ○; H0, H1, H2 and H3 share □: four heads, one job."),
    "a doubled head": ([(1, 0), (0, 1), (0, 1)], "H0 does ○; H1 and H2 share □: two heads, one job."),
    "two jobs in one head": ([(0.5, 0.5)], "H0 does ○ and □."),
    "two jobs in one head, one of them shared": (
        [(0.5, 0.5), (0, 1)],
        "H0 does ○; H0 and H1 share □: two heads, one job.",
    ),
    "one idle": ([(1, 0), (0, 0), (0, 1)], "H0 does ○; H2 does □; H1 has no job."),
    "two idle": ([(1, 0), (0, 0), (0, 1), (0, 0)], "H0 does ○; H2 does □; H1 and H3 have no job."),
    "one job undone": ([(1, 0), (0, 0)], "H0 does ○; no head does □; H1 has no job."),
    "too many to name": ([(1, 0)] + [(0, 1)] * 9, "H0 does ○; 9 heads share □."),
}


@pytest.mark.parametrize("case", CASES)
def test_heads_are_said_to_do_the_jobs_whose_marks_they_fill(case: str) -> None:
    shares, sentence = CASES[case]
    maps = np.stack([head(*each) for each in shares])
    names = [f"H{number}" for number in range(len(maps))]
    assert describe_jobs(names, maps, PLACES) == sentence
    assert has_shared_job(find_jobs(maps, PLACES)) == ("share" in sentence)


def test_heads_that_share_jobs_are_counted_where_it_is_clear_which_these_are() -> None:
    last = (np.arange(WORDS) + 4) % WORDS
    third = np.zeros((WORDS, WORDS))
    third[np.arange(WORDS), last] = 1
    maps = np.stack([head(1), head(1), head(linked=1), head(linked=1), third])
    said = describe_jobs("ABCDE", maps, np.column_stack([PLACES, last]))
    assert said == "E does ◇; A and B share ○; C and D share □."


def test_a_job_takes_more_than_the_stated_share_of_attention() -> None:
    jobs = find_jobs(np.stack([head(linked=JOB_SHARE - 0.01), head(linked=JOB_SHARE + 0.01)]), PLACES)
    assert jobs.tolist() == [[False, False], [False, True]]


def test_a_mark_under_both_signs_does_not_tell_which_job_is_done() -> None:
    places = PLACES.copy()
    places[1:4, 1] = places[1:4, 0]  # half of the words: both signs on one cell
    maps = np.zeros((1, WORDS, WORDS))
    maps[0, np.arange(WORDS), places[:, 1]] = 1
    assert find_jobs(maps, places).tolist() == [[False, True]]
    both = np.stack([LINKED, LINKED], axis=1)
    assert find_jobs(head(linked=1)[None], both).tolist() == [[True, True]], "nothing tells them apart"


def test_maps_without_marks_say_nothing_of_jobs() -> None:
    assert describe_jobs(["H0"], head(1)[None], np.full_like(PLACES, -1)) == ""
    only = np.stack([BEFORE, np.full(WORDS, -1)], axis=1)
    assert describe_jobs(["H0"], head()[None], only) == "No head does ○."
    assert describe_jobs(["H0", "H1"], np.stack([head(1), head()]), only) == "H0 does ○; H1 has no job."


def test_a_sign_on_one_or_two_words_shows_no_job() -> None:
    few = np.full_like(PLACES, -1)
    few[:2, 1] = LINKED[:2]
    assert describe_jobs(["H0"], head(linked=1)[None], few) == ""
    few[2, 1] = LINKED[2]
    assert describe_jobs(["H0"], head(linked=1)[None], few) == "H0 does □."


VERDICTS = {
    **{
        f"{experiment} {number}": lab.compare_with_guess(None, lab.load_stored(experiment), number)
        for experiment in EXPERIMENTS
        for number in range(len(lab.load_stored(experiment).runs))
    },
    **{
        f"{name} {model}": write_verdict(toy.options, toy.outcome(model), None, describe_maps(name, model))
        for name, toy in TOYS.items()
        for model in toy.trainings
    },
}


@pytest.mark.parametrize("name", VERDICTS)
def test_the_two_halves_of_a_verdict_do_not_contradict_each_other(name: str) -> None:
    first, second = re.split(r"[.] (?=On these maps|No head|[HL]\d)|$", VERDICTS[name], maxsplit=1)
    undone = "".join(re.findall(r"[Nn]o head does ([^;.]*)", second))
    idle = re.findall(r"\w+", "".join(re.findall(r"([^;:]*) (?:has|have) no job", second)))
    for sign, head in re.findall(rf"([{SIGNS}]) (L\dH\d)", first):
        assert sign not in undone
        assert head not in idle
    assert "different heads" not in first, "heads that share a job may have different weights"
    if "same job" in first:
        assert ("share" in second) == first.startswith("Some")


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_verdict_of_each_run_says_who_does_what_on_its_maps(experiment: str) -> None:
    result = lab.load_stored(experiment)
    for number, run in enumerate(result.runs):
        said = describe_jobs(lab.name_heads(run), run.maps[-1], lab.find_marked_keys(result))
        assert bool(said) == (experiment != CURRENT), "only there, the maps have no marks"
        verdict = lab.compare_with_guess(None, result, number)
        assert said in verdict
        idle = replace(run, maps=np.full_like(run.maps, 1 / run.maps.shape[-1]))
        runs = (*result.runs[:number], idle, *result.runs[number + 1 :])
        if said and said != "No head does ○ or □.":
            assert "No head does ○ or □." in lab.compare_with_guess(None, replace(result, runs=runs), number)


def test_three_heads_that_share_a_job_are_not_said_to_be_different() -> None:
    verdict = lab.compare_with_guess(None, lab.load_stored(RANDOM))
    assert verdict == "Some heads share a job. H0 does ○; H1, H2 and H3 share □: three heads, one job."
    assert "H1, H2 and H3 share □" in lab.compare_with_guess(None, lab.load_stored(PAIR))


def test_the_penalty_is_said_to_change_the_difference_before_the_answers() -> None:
    verdict = lab.compare_with_guess("more", lab.load_stored(PENALTY))
    first, second = "maps differ by 48.8% without the penalty, by 96.1% with it", "right answers: 100.0% and 100.0%"
    assert verdict.startswith(f"You were right: heads differ more; {first}; {second}. H0 does ○; H2 does □; ")
    without = "H0 does ○; H1, H2 and H3 share □: three heads, one job."
    assert lab.compare_with_guess(None, lab.load_stored(PENALTY), 0).endswith(without)
