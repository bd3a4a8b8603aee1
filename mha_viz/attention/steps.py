"""The steps that produced a reading, as data from which captions, files and code are written."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from mha_viz.errors import ShapeError
from mha_viz.heads import Head, list_layers
from mha_viz.request import COSINE, DECODER, ENCODER, MASK, NEXT, RECIPE, Question, Request
from mha_viz.view.quantities import QUANTITIES

if TYPE_CHECKING:
    from mha_viz.attention import Attention, Weights
    from mha_viz.attention.answers import Numbers
    from mha_viz.text import TokenizedText

ONLY, ONLY_LAYERS, PREFIX, WRITTEN, NUMBERED_LAYERS = "only", "only layers", "prefix", "written", "numbered layers"
PARTS = {"encoder": "encoder self-attention", "decoder": "decoder self-attention", "cross": "cross-attention"}


class StepData(NamedTuple):
    """A step as data: its name and the values that it depends on; others are empty.

    * "typed", "given words": how a model read the text.
    * "weights only": the model is of a family whose architecture is not known.
    * "part": the ``part`` of an encoder–decoder. The decoder's attention to its target also depends on the ``source``.
    * "target generated": the target was written by the model.
    * "without": ``heads`` were ablated by a ``method``. For "mean" and "recipe", ``means`` is a digest of the means;
      for "text", ``source`` is the other text.
    * "prefix": the text follows the prefix ``source``.
    * "written": the end of the text, ``source``, was written by the model.
    * "norm-weighted": the numbers are norms.
    * "gradient": with respect to a ``question``.
    * "changed": by the tap ``by``.
    * "rollout".
    * "unexplained", "unexplained, with annotation": for given recipes, ``means`` is a digest of them.
    * "by words", "special hidden".
    * "only": only these ``heads``. "only layers": only the layers of these ``heads``.
    * "numbered layers": the layers of the reading are the layers of these ``heads`` in the model, whose other layers
      have no weights or were not given.

    Any other name is a step of a reading that was built by hand.
    """

    name: str
    heads: tuple[Head, ...] = ()
    method: str = ""
    means: str = ""
    part: str = ""
    source: str | None = None
    question: Question | None = None
    by: str = ""


def _write_wording(row: StepData) -> str:
    """Return the wording of a step."""
    if row.name == PREFIX:
        return f"after the prefix “{row.source}”"
    if row.name == WRITTEN:
        return f"“{row.source or ''}” written by the model"  # nothing if all that it wrote is special or blank
    if row.part:
        return PARTS[row.part] + ("" if row.source is None else f" after the source “{row.source}”")
    if row.question is not None:
        return f"gradient × weight of {row.question.score}"
    if row.method:
        origin = row.means or ("" if row.source is None else f"“{row.source}”")
        return f"without {' '.join(map(str, row.heads))}: {row.method}{' ' * bool(origin)}{origin}"
    if row.means:
        return f"{row.name}, recipes {row.means}"
    if row.name == ONLY_LAYERS:
        return f"only {', '.join(f'layer {layer} ({layer + 1})' for layer, _ in row.heads)}"
    if row.name == NUMBERED_LAYERS:
        return f"of layer{'s' * (len(row.heads) > 1)} {', '.join(str(head.layer) for head in row.heads)}"
    if row.heads:
        return f"only {', '.join(map(str, row.heads))}"
    return f"changed by {row.by}" if row.by else row.name


class Step(str):
    """A step that produced a reading: ``row`` is its data, the string its wording in captions, files and keys."""

    row: StepData

    def __new__(cls, row: StepData) -> Step:
        step = super().__new__(cls, _write_wording(row))
        step.row = row
        return step

    def __reduce__(self) -> tuple[type[Step], tuple[StepData]]:
        return Step, (self.row,)

    @property
    def caption(self) -> str:
        """The wording in a caption, with only the beginning of a digest; empty for a text as it was typed."""
        if self.row.name == "without" and self.row.means:
            kind = "predicted" if self.row.method == RECIPE else "means"
            return f"{_write_wording(self.row._replace(means=''))} ({kind} {self.row.means[:8]})"
        recipes = f" (recipes {self.row.means[:8]})" if self.row.means else ""
        return _CAPTION_WORDINGS[self.row.name] + recipes if self.row.name in _CAPTION_WORDINGS else str(self)


_CAPTION_WORDINGS = {
    "typed": "",
    "given words": "given as words",
    "weights only": "weights only, as transformers returns them",
    "unexplained": "unexplained by rules that need no annotation",
    "unexplained, with annotation": "unexplained by rules that know its annotation",
}


def make_layer_step(layers: Sequence[int]) -> tuple[Step, ...]:
    """Return the step that records the numbers of a reading's layers, as a tuple; empty if they are 0, 1, …."""
    if tuple(layers) == list_layers(len(layers)):
        return ()
    return (Step(StepData(NUMBERED_LAYERS, tuple(Head(layer, 0) for layer in layers))),)


def find_layer_numbers(made: Sequence[Step], layers: int) -> tuple[int, ...]:
    """Return the numbers of a reading's ``layers``: those in the model, or from 0 if only some heads were kept."""
    row = next((step.row for step in reversed(made) if step.row.name in (ONLY, ONLY_LAYERS, NUMBERED_LAYERS)), None)
    if row is None or row.name != NUMBERED_LAYERS:
        return list_layers(layers)
    return tuple(head.layer for head in row.heads)


def digest(numbers: Weights | Numbers) -> str:
    """Return the digest of mean outputs, predicted weights or recipe shares that :class:`StepData` records."""
    return hashlib.blake2b(numbers.tobytes(), digest_size=12).hexdigest()


TYPED, GIVEN_WORDS = Step(StepData("typed")), Step(StepData("given words"))
GENERATED = Step(StepData("target generated"))
WEIGHTS_ONLY = Step(StepData("weights only"))
REST_AS_SINK = Step(StepData("the rest of each row as sink"))
NORM_WEIGHTED, ROLLOUT = Step(StepData("norm-weighted")), Step(StepData("rollout"))
UNEXPLAINED, UNEXPLAINED_OF_GOLD = Step(StepData("unexplained")), Step(StepData("unexplained, with annotation"))
# A guess about an axis that could also be that of a batch: PyTorch's MultiheadAttention returns the mean over heads for
# each text, and transformers returns [text, head, query, key] for each layer of a batch.
GUESSED_AXES = {
    "heads": Step(StepData("first axis of each layer taken for heads")),
    "layers": Step(StepData("first two axes taken for layers and heads")),
}
BY_WORDS, SPECIAL_HIDDEN = Step(StepData("by words")), Step(StepData("special hidden"))
# Steps of a view that leaves special tokens out of a picture and its numbers, with or without rescaling rows.
RESCALED, NOT_RESCALED = Step(StepData("special hidden, rescaled")), Step(StepData("special hidden, not rescaled"))


def make_written_step(text: TokenizedText, first: int) -> Step:
    """Return the step of a reading whose last tokens, from number ``first``, the model wrote."""
    starts = (token.start for token in text.tokens[first:] if token.start is not None)
    return Step(StepData(WRITTEN, source=text.text[next(starts, len(text.text)) :].strip()))


def find_first_written(attention: Attention) -> int | None:
    """Return the number of the first token that the model wrote; None if the whole text was given."""
    source = next((step.row.source or "" for step in attention.made if step.row.name == WRITTEN), "")
    text = attention.queries
    start = text.text.rindex(source) if source and text.text.rstrip().endswith(source) else len(text.text)
    places = (i for i, token in enumerate(text.tokens) if token.end is not None and token.end > start)
    return next(places, None)


def make_first_steps(words: Iterable[str], *later_steps: Step, prefix: str = "") -> tuple[Step, ...]:
    """Return the first steps of a reading by a model.

    They record whether the text was given as ``words`` and which ``prefix`` it follows; ``later_steps`` follow.
    """
    return (GIVEN_WORDS if words else TYPED, *([Step(StepData(PREFIX, source=prefix))] if prefix else []), *later_steps)


def make_part_steps(part: str, source: str, is_generated: bool = False) -> tuple[Step, ...]:
    """Return the first steps of a reading of a part of an encoder–decoder."""
    row = StepData("part", part=part, source=source if part == DECODER else None)
    return (TYPED, Step(row), *([GENERATED] if is_generated else []))


def _find_request_fields(row: StepData) -> dict[str, Any] | None:
    """Return the fields of the request that a step answers; None for a step after the model's answer."""
    if row.name == "part":
        return {"part": row.part} | ({} if row.source is None else {"text": row.source})
    fields: dict[str, dict[str, Any]] = {
        "typed": {},
        "given words": {},
        "target generated": {"target": ""},
        "weights only": {},
        NUMBERED_LAYERS: {},
        REST_AS_SINK.row.name: {},
        PREFIX: {"prefix": row.source or ""},
        "without": {"off": row.heads, "method": row.method, "source": row.source or ""},
        **{quantity.step: {"quantity": quantity.name} for quantity in QUANTITIES.values() if quantity.step},
    }
    if row.name not in fields:
        return None
    return fields[row.name] | ({} if row.question is None else {"question": row.question})


def _is_answer(step: Step) -> bool:
    """Return True if a step is part of the model's answer to a request, not a later change of it."""
    return _find_request_fields(step.row) is not None


def find_request(attention: Attention) -> Request | None:
    """Return the request that the model answered, without the steps that came later (:func:`find_later_steps`).

    Return None if no model computed it, or if a tap changed what the model computed.
    """
    made, text = attention.made, attention.queries
    if not made or made[0] not in (TYPED, GIVEN_WORDS) or any(step.row.by for step in made):
        return None
    request = Request(attention.model, text.text, text.pair, text.given)
    for step in takewhile(_is_answer, made):
        if step.row.name == "part":
            request = Request(
                attention.model, attention.keys.text, target="" if step.row.part == ENCODER else text.text
            )
        request = replace(request, **_find_request_fields(step.row) or {})
    return request


def find_later_steps(attention: Attention) -> tuple[Step, ...]:
    """Return the steps after the model's answer, or all steps if no model answered."""
    return attention.made[len([*takewhile(_is_answer, attention.made)]) :]


def keep_heads(made: tuple[Step, ...], heads: Sequence[Head], quantity: str) -> tuple[tuple[Step, ...], int]:
    """Record as a step that only ``heads`` of a reading are kept; also return the axis that then has a length of 1.

    That is the axis of layers or, for a quantity with one map per layer, the axis of heads. Layers are
    recorded by their numbers in the model, in a single step.
    """
    if not QUANTITIES[quantity].of_layers:
        return (*made, Step(StepData(ONLY, tuple(heads)))), 0
    layers = tuple(find_model_head(made, head) for head in heads)
    return (*(step for step in made if step.row.name != ONLY_LAYERS), Step(StepData(ONLY_LAYERS, layers))), 1


def find_model_head(made: Sequence[Step], head: Head) -> Head:
    """Translate a head of a reading to its number in the model; with one map per layer, only its ``layer`` counts.

    The numbers differ if only some heads or layers were kept: kept heads are numbered as the heads of one layer, and
    kept layers of rollout are numbered from 0.
    """
    for step in reversed(made):
        if step.row.name in (ONLY, ONLY_LAYERS):
            head = step.row.heads[head.head if step.row.name == ONLY else head.layer]
    return head


# ---- as JSON --------------------------------------------------------------------------------------------------


def pack_steps(made: Iterable[Step]) -> list[dict[str, Any]]:
    """Return steps as JSON values, without empty fields."""
    return [{name: value for name, value in step.row._asdict().items() if value not in ("", (), None)} for step in made]


def parse_steps(values: Iterable[Mapping[str, Any]]) -> tuple[Step, ...]:
    """Read the steps that :func:`pack_steps` wrote as JSON. Raises ValueError for anything else."""
    return tuple(map(_parse_step, values))


def _parse_step(values: Mapping[str, Any]) -> Step:
    """Read one step. Raises ValueError if the values are not those of a step."""
    try:
        texts = {name: value for name, value in values.items() if isinstance(value, str)}
        heads = tuple(Head.of(head) for head in values.get("heads", ()))
        question = Question.parse(values["question"]) if "question" in values else None
        return Step(StepData(**texts, heads=heads, question=question))
    except (TypeError, ValueError, KeyError, AttributeError, ShapeError) as error:
        raise ValueError("not a step of a reading") from error


# ---- from wording ---------------------------------------------------------------------------------------------
# Only for readings that were saved or built by hand with steps as text. No other code parses the wording of steps.

_HEADS = r"L\d{1,3}H\d{1,3}(?:,? L\d{1,3}H\d{1,3})*"
_WITHOUT = re.compile(rf"without ({_HEADS}): (\w+)(?: (\w+))?", re.ASCII)
_ONLY = re.compile(rf"only ({_HEADS})", re.ASCII)
_NUMBERED = re.compile(r"of layers? (\d{1,3}(?:, \d{1,3})*)", re.ASCII)
_PART = re.compile(rf"({'|'.join(PARTS.values())})(?: after the source “(.*)”)?", re.DOTALL)
_UNEXPLAINED_PATTERN = re.compile(r"(unexplained|unexplained, with annotation), recipes (\w+)")
_PREFIX = re.compile(r"after the prefix “(.*)”", re.DOTALL)
_WRITTEN = re.compile(r"“(.*)” written by the model", re.DOTALL)
_SCORE = re.compile(
    "gradient × weight of (?:log p of “(?P<word>.*)” (?:at token (?P<place>[0-9]{1,4})|as the next token)"
    "|the cosine with “(?P<other>.*)”)",
    re.DOTALL,
)


def parse_wordings(made: Iterable[str]) -> tuple[Step, ...]:
    """Parse steps from their wording; values that are steps already are kept."""
    steps = list[Step]()
    for wording in made:
        step = wording if isinstance(wording, Step) else Step(_parse_wording(wording))
        steps.append(step if step == wording else Step(StepData(wording)))
    return tuple(steps)


def _parse_wording(wording: str) -> StepData:
    """Parse the data of a step from its wording."""
    if match := _WITHOUT.fullmatch(wording):
        return StepData("without", _parse_heads(match[1]), match[2], match[3] or "")
    if match := _ONLY.fullmatch(wording):
        return StepData(ONLY, _parse_heads(match[1]))
    if match := _NUMBERED.fullmatch(wording):
        return StepData(NUMBERED_LAYERS, tuple(Head(int(layer), 0) for layer in match[1].split(", ")))
    if wording.startswith("only layer "):
        return StepData(ONLY_LAYERS, tuple(Head(int(layer), 0) for layer in re.findall(r"layer (\d{1,3}) ", wording)))
    if match := _UNEXPLAINED_PATTERN.fullmatch(wording):
        return StepData(match[1], means=match[2])
    if match := _PREFIX.fullmatch(wording):
        return StepData(PREFIX, source=match[1])
    if match := _WRITTEN.fullmatch(wording):
        return StepData(WRITTEN, source=match[1])
    if match := _PART.fullmatch(wording):
        return StepData("part", part=next(part for part, words in PARTS.items() if words == match[1]), source=match[2])
    if match := _SCORE.fullmatch(wording):
        return StepData("gradient", question=_parse_question(match))
    tap = wording.removeprefix("changed by ")
    return StepData("changed", by=tap) if tap != wording else StepData(wording)


def _parse_heads(heads: str) -> tuple[Head, ...]:
    """Parse a list of heads."""
    return tuple(Head(*map(int, numbers)) for numbers in re.findall(r"L(\d+)H(\d+)", heads))


def _parse_question(match: re.Match[str]) -> Question:
    """Build the question of a gradient from its wording."""
    if match["other"] is not None:
        return Question(COSINE, other=match["other"])
    return Question(NEXT if match["place"] is None else MASK, int(match["place"] or 0), match["word"])
