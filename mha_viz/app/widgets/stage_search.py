"""Search for stages and pages, by words such as "redundant" or "d_model", or by a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from mha_viz.app.url.address import SCENE_PARAMETERS, TEXT_PARAMETERS, load_examples
from mha_viz.lab.lab import EXPERIMENTS, HEAD_COUNT, IDENTICAL, OUTPUT, PENALTY, RANDOM, REMOVAL, SPLIT_INPUT

MIN_WORDS, MAX_ANSWERS = 3, 3  # minimum words of a question, and maximum answers to it
QUESTION_WORDS = frozenset(("why", "what", "how", "is", "are", "can", "could", "do", "does", "when", "where", "if"))
BANK_TEXT = "We sat on the river bank after the bank had closed."  # the text of a bundled example


class StageAnswer(NamedTuple):
    """A stage or page that answers a query.

    Attributes:
        name: its name in the menu.
        question: the question that it answers.
        page: the page.
        parameters: the URL parameters that it sets there; None removes a parameter.
    """

    name: str
    question: str
    page: str
    parameters: Mapping[str, str | None]


class StageGroup(NamedTuple):
    """Stages and pages that answer a query, with a note on them."""

    title: str
    answers: tuple[StageAnswer, ...]
    note: str = ""


# Phrases that visitors may type, and their answers, best first: experiments, or keys of :func:`_list_stages`.
ANSWERS_BY_PHRASE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("narrow", "wide", "split", "chunk", "chunks", "cut", "part", "parts"), (SPLIT_INPUT, HEAD_COUNT)
        ),
        **dict.fromkeys(("divide", "divisible", "overlap"), (SPLIT_INPUT,)),
        **dict.fromkeys(("same", "equal", "alike", "copy", "copies", "symmetry"), (IDENTICAL, OUTPUT)),
        **dict.fromkeys(("w_o", "wo", "gradient", "gradients"), (OUTPUT, "inside join")),
        **dict.fromkeys(
            ("random", "initialisation", "initialization", "init", "start", "seed", "diverse", "diversity"),
            (RANDOM, IDENTICAL),
        ),
        **dict.fromkeys(
            ("initialise", "initialised", "initialize", "initialized", "starts"),
            (RANDOM, IDENTICAL),
        ),
        **dict.fromkeys(("redundant", "redundancy", "prune", "pruning", "remove", "ensemble"), (REMOVAL,)),
        **dict.fromkeys(("penalty", "regularisation", "regularization", "orthogonal"), (PENALTY,)),
        **dict.fromkeys(("average", "averaging", "how many", "number of heads"), (HEAD_COUNT,)),
        **dict.fromkeys(("enough", "one head", "single", "several", "multiple", "many"), (HEAD_COUNT,)),
        **dict.fromkeys(("input", "fed", "feed", "gets"), ("inside x",)),
        **dict.fromkeys(("learn", "learns", "learned", "learnt", "role", "roles", "task"), ("toy",)),
        **dict.fromkeys(("parallel", "sequential", "layer", "layers"), ("repeater",)),
        **dict.fromkeys(
            ("size", "d_model", "d_k", "dimension", "512", "length", "width"), ("inside project", HEAD_COUNT)
        ),
        **dict.fromkeys(("cost", "memory", "parameters"), ("inside cost",)),
        **dict.fromkeys(("concat", "concatenate", "concatenated", "concatenation", "sum", "merge"), ("inside join",)),
        **dict.fromkeys(("why", "why heads differ", "different", "unique", "differ"), (OUTPUT, RANDOM, IDENTICAL)),
        "bank": ("bank",),
    }
)


def find_by_word(query: str, splits_phrase: bool) -> StageGroup | None:
    """Return the stages that the typed phrase names; None if it names none.

    ``splits_phrase``: whether to look up each word by itself too, as when nothing else answers the query.
    """
    words = _split_words(query)
    phrases = [" ".join(words), *(words if splits_phrase else ())]
    return _make_group(next((ANSWERS_BY_PHRASE[phrase] for phrase in phrases if phrase in ANSWERS_BY_PHRASE), ()))


def find_by_question(query: str) -> StageGroup | None:
    """Return the stages that match most words of a question; None if it is not a question, or none matches."""
    words = _split_words(query)
    if len(words) < MIN_WORDS or words[0] not in QUESTION_WORDS:
        return None
    phrases = [*words[1:], *map(" ".join, pairwise(words))]
    counts = Counter(name for phrase in phrases for name in ANSWERS_BY_PHRASE.get(phrase, ()))
    return _make_group(tuple(name for name, _ in counts.most_common(MAX_ANSWERS)))


def _split_words(text: str) -> list[str]:
    return [word.strip("?!.,") for word in text.casefold().split()]


def _make_group(names: tuple[str, ...]) -> StageGroup | None:
    return StageGroup("On these pages", tuple(map(_make_answer, names))) if names else None


def _make_answer(name: str) -> StageAnswer:
    if name in EXPERIMENTS:
        experiment = EXPERIMENTS[name]
        parameters = {**dict.fromkeys(SCENE_PARAMETERS), "experiment": name}
        return StageAnswer(experiment.menu_name, experiment.question, "why heads differ", parameters)
    return _list_stages()[name]


def _list_stages() -> dict[str, StageAnswer]:
    inside_page, reset = "inside a head", dict.fromkeys(SCENE_PARAMETERS)
    bank = next(example for example in load_examples() if example["text"] == BANK_TEXT)
    parameters = {name: bank[name] for name in ("text", "head", "pin")}
    questions = {
        "x": "What does each head get?",
        "project": "How long is the text, and how wide are its vectors?",
        "cost": "What does it cost to have many heads?",
        "join": "Where do heads meet again?",
    }
    return {
        **{
            f"inside {stage}": StageAnswer("Inside", question, inside_page, reset | {"step": stage})
            for stage, question in questions.items()
        },
        "repeater": StageAnswer(
            "Two layers", "Are layers parallel, as heads are?", "why heads differ", reset | {"experiment": "repeater"}
        ),
        "toy": StageAnswer(
            "Roles appear",
            "Which roles do heads find by themselves?",
            "why heads differ",
            reset | {"experiment": "toy"},
        ),
        "bank": StageAnswer(
            "Example", bank["look"], "explore", dict.fromkeys(("pair", "on", *TEXT_PARAMETERS)) | parameters
        ),
    }
