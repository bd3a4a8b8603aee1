"""How a reading was made: the steps in order, as data from which captions, files and recipes are written."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from mha_viz.errors import ShapeError
from mha_viz.heads import Head, every_layer
from mha_viz.request import COSINE, DECODER, ENCODER, MASK, NEXT, RECIPE, Question, Request
from mha_viz.view.quantities import QUANTITIES

if TYPE_CHECKING:
    from mha_viz.attention import Attention, Weights
    from mha_viz.attention.answers import Numbers
    from mha_viz.text import TokenizedText

ONLY, ONLY_LAYERS, PREFIX, WRITTEN, NUMBERED = "only", "only layers", "prefix", "written", "numbered layers"
PARTS = {"encoder": "encoder self-attention", "decoder": "decoder self-attention", "cross": "cross-attention"}


class Row(NamedTuple):
    """A step as data: its name, and the values that it depends on, empty if it does not.

    "typed", "given words": how a model read the text. "weights only": of a family whose parts are not known. "part": of
    an encoder–decoder, ``part``; the decoder's attention to its target depends on the ``source`` too. "target
    generated": by the model. "without": ``heads`` are off, by a ``method``, for "mean" and "recipe" with a digest of
    the ``means``, for "text" with the other text, ``source``. "prefix": the text follows the prefix ``source``.
    "written": its end, ``source``, was written by the model. "norm-weighted". "gradient": of a ``question``. "changed":
    ``by`` a tap. "rollout", "unexplained", the same "with annotation", for recipes that were given with a digest of
    them in ``means``. "by words", "special hidden", "only": these ``heads``, "only layers": those of these ``heads``.
    "numbered layers": the layers of the reading are those of these ``heads`` in the model, whose others have no weights
    or were not given. Any other name: a step of a reading that was made by hand.
    """

    name: str
    heads: tuple[Head, ...] = ()
    method: str = ""
    means: str = ""
    part: str = ""
    source: str | None = None
    question: Question | None = None
    by: str = ""


def _wording(row: Row) -> str:
    if row.name == PREFIX:
        return f"after the prefix “{row.source}”"
    if row.name == WRITTEN:
        return f"“{row.source}” written by the model"
    if row.part:
        return PARTS[row.part] + ("" if row.source is None else f" after the source “{row.source}”")
    if row.question is not None:
        return f"gradient × weight of {row.question.score}"
    if row.method:
        of = row.means or ("" if row.source is None else f"“{row.source}”")
        return f"without {' '.join(map(str, row.heads))}: {row.method}{' ' * bool(of)}{of}"
    if row.means:
        return f"{row.name}, recipes {row.means}"
    if row.name == ONLY_LAYERS:
        return f"only {', '.join(f'layer {layer} ({layer + 1})' for layer, _ in row.heads)}"
    if row.name == NUMBERED:
        return f"of layer{'s' * (len(row.heads) > 1)} {', '.join(str(head.layer) for head in row.heads)}"
    if row.heads:
        return f"only {', '.join(map(str, row.heads))}"
    return f"changed by {row.by}" if row.by else row.name


class Step(str):
    """One step of how a reading was made: ``row`` is its data, the string its wording in captions, files and keys."""

    row: Row

    def __new__(cls, row: Row) -> Step:
        step = super().__new__(cls, _wording(row))
        step.row = row
        return step

    def __reduce__(self) -> tuple[type[Step], tuple[Row]]:
        return Step, (self.row,)

    @property
    def in_caption(self) -> str:
        """The wording in a caption: empty for a text as it was typed, with the beginning of a digest."""
        if self.row.name == "without" and self.row.means:
            of = "predicted" if self.row.method == RECIPE else "means"
            return f"{_wording(self.row._replace(means=''))} ({of} {self.row.means[:8]})"
        which = f" (recipes {self.row.means[:8]})" if self.row.means else ""
        return _IN_CAPTION[self.row.name] + which if self.row.name in _IN_CAPTION else str(self)


_IN_CAPTION = {
    "typed": "",
    "given words": "given as words",
    "weights only": "weights only, as transformers returns them",
    "unexplained": "unexplained by rules that need no annotation",
    "unexplained, with annotation": "unexplained by rules that know its annotation",
}


def step_of_layers(layers: Sequence[int]) -> tuple[Step, ...]:
    """Return the step of a reading of layers with these numbers; none if they are all layers up to the last."""
    if tuple(layers) == every_layer(len(layers)):
        return ()
    return (Step(Row(NUMBERED, tuple(Head(layer, 0) for layer in layers))),)


def layer_numbers(made: Sequence[Step], layers: int) -> tuple[int, ...]:
    """Return the numbers of a reading's ``layers``, in the model unless only some heads were kept."""
    named = next((step.row for step in reversed(made) if step.row.name in (ONLY, ONLY_LAYERS, NUMBERED)), None)
    if named is None or named.name != NUMBERED:
        return every_layer(layers)
    return tuple(head.layer for head in named.heads)


def digest(numbers: Weights | Numbers) -> str:
    """Compute the digest of what replaces the outputs of heads, or of the shares of recipes, as in :class:`Row`."""
    return hashlib.blake2b(numbers.tobytes(), digest_size=12).hexdigest()


TYPED, GIVEN_WORDS, GENERATED = Step(Row("typed")), Step(Row("given words")), Step(Row("target generated"))
WEIGHTS_ONLY = Step(Row("weights only"))
REST_AS_SINK = Step(Row("the rest of each row as sink"))
NORM_WEIGHTED, ROLLOUT = Step(Row("norm-weighted")), Step(Row("rollout"))
UNEXPLAINED, UNEXPLAINED_OF_GOLD = Step(Row("unexplained")), Step(Row("unexplained, with annotation"))
# What axes were taken for that may be those of texts: PyTorch's MultiheadAttention returns the mean over heads for each
# text, and what transformers returns of a batch is [text, head, query, key] for each layer.
TAKEN_FOR = {
    "heads": Step(Row("first axis of each layer taken for heads")),
    "layers": Step(Row("first two axes taken for layers and heads")),
}
BY_WORDS, SPECIAL_HIDDEN = Step(Row("by words")), Step(Row("special hidden"))
# Of a view: special tokens are left out of a picture and of its numbers, whose rows are then rescaled or not.
RESCALED, NOT_RESCALED = Step(Row("special hidden, rescaled")), Step(Row("special hidden, not rescaled"))


def written_by_model(text: TokenizedText, first: int) -> Step:
    """Return the step of a reading of a text whose last tokens, from number ``first``, the model wrote."""
    starts = (token.start for token in text.tokens[first:] if token.start is not None)
    return Step(Row(WRITTEN, source=text.text[next(starts, len(text.text)) :].strip()))


def first_written(attention: Attention) -> int | None:
    """Return the first token that the model wrote; None if the whole text was given."""
    source = next((step.row.source or "" for step in attention.made if step.row.name == WRITTEN), "")
    text = attention.queries
    start = text.text.rindex(source) if source and text.text.rstrip().endswith(source) else len(text.text)
    places = (i for i, token in enumerate(text.tokens) if token.end is not None and token.end > start)
    return next(places, None)


def read_as(words: Iterable[str], *more: Step, prefix: str = "") -> tuple[Step, ...]:
    """The first steps of a reading by a model: whether the text was given as ``words``, which ``prefix`` it follows,
    and what else was asked."""
    return (GIVEN_WORDS if words else TYPED, *([Step(Row(PREFIX, source=prefix))] if prefix else []), *more)


def of_part(part: str, source: str, is_generated: bool = False) -> tuple[Step, ...]:
    """The first steps of a reading of a part of an encoder–decoder."""
    row = Row("part", part=part, source=source if part == DECODER else None)
    return (TYPED, Step(row), *([GENERATED] if is_generated else []))


def _asks(row: Row) -> dict[str, Any] | None:
    """The fields of the request that a step answers; None for a step that was taken after the model had answered."""
    if row.name == "part":
        return {"part": row.part} | ({} if row.source is None else {"text": row.source})
    fields: dict[str, dict[str, Any]] = {
        "typed": {},
        "given words": {},
        "target generated": {"target": ""},
        "weights only": {},
        NUMBERED: {},
        REST_AS_SINK.row.name: {},
        PREFIX: {"prefix": row.source or ""},
        "without": {"off": row.heads, "method": row.method, "source": row.source or ""},
        **{of.step: {"quantity": of.name} for of in QUANTITIES.values() if of.step},
    }
    if row.name not in fields:
        return None
    return fields[row.name] | ({} if row.question is None else {"question": row.question})


def _is_answer(step: Step) -> bool:
    return _asks(step.row) is not None


def request_of(attention: Attention) -> Request | None:
    """The request that a reading, before its :func:`later_steps`, answers; None if no model computed it, or a tap
    changed what one computed."""
    made, text = attention.made, attention.queries
    if not made or made[0] not in (TYPED, GIVEN_WORDS) or any(step.row.by for step in made):
        return None
    request = Request(attention.model, text.text, text.pair, text.given)
    for step in takewhile(_is_answer, made):
        if step.row.name == "part":
            request = Request(
                attention.model, attention.keys.text, target="" if step.row.part == ENCODER else text.text
            )
        request = replace(request, **_asks(step.row) or {})
    return request


def later_steps(attention: Attention) -> tuple[Step, ...]:
    """The steps that were taken after a model had answered, or all of them if none had."""
    return attention.made[len([*takewhile(_is_answer, attention.made)]) :]


def chosen(made: tuple[Step, ...], heads: Sequence[Head], quantity: str) -> tuple[tuple[Step, ...], int]:
    """The steps after only ``heads`` of a reading were kept, and the axis along which there is one of each: that of
    layers, or for a quantity with one map per layer that of heads. Layers are those of the model, said once."""
    if not QUANTITIES[quantity].of_layers:
        return (*made, Step(Row(ONLY, tuple(heads)))), 0
    layers = tuple(in_model(made, head) for head in heads)
    return (*(step for step in made if step.row.name != ONLY_LAYERS), Step(Row(ONLY_LAYERS, layers))), 1


def in_model(made: Sequence[Step], head: Head) -> Head:
    """The head of the model that a reading has as its ``head``, or the layer as ``head.layer``: another one if only
    some were kept, which are then side by side as the heads of one layer, or the layers of rollout."""
    for step in reversed(made):
        if step.row.name in (ONLY, ONLY_LAYERS):
            head = step.row.heads[head.head if step.row.name == ONLY else head.layer]
    return head


# ---- As JSON --------------------------------------------------------------------------------------------------


def packed(made: Iterable[Step]) -> list[dict[str, Any]]:
    """Steps as JSON values, without what is empty."""
    return [{name: value for name, value in step.row._asdict().items() if value not in ("", (), None)} for step in made]


def parse(values: Iterable[Mapping[str, Any]]) -> tuple[Step, ...]:
    """The steps that :func:`packed` wrote, from JSON. Raises ValueError for anything else."""
    return tuple(map(_parsed, values))


def _parsed(values: Mapping[str, Any]) -> Step:
    try:
        texts = {name: value for name, value in values.items() if isinstance(value, str)}
        heads = tuple(Head.of(head) for head in values.get("heads", ()))
        question = Question.parse(values["question"]) if "question" in values else None
        return Step(Row(**texts, heads=heads, question=question))
    except (TypeError, ValueError, KeyError, AttributeError, ShapeError) as error:
        raise ValueError("not a step of a reading") from error


# ---- From wording ---------------------------------------------------------------------------------------------
# For readings that were saved or made by hand with steps as text alone: the only code that reads their wording.

_HEADS = r"L\d{1,3}H\d{1,3}(?:,? L\d{1,3}H\d{1,3})*"
_WITHOUT = re.compile(rf"without ({_HEADS}): (\w+)(?: (\w+))?", re.ASCII)
_ONLY = re.compile(rf"only ({_HEADS})", re.ASCII)
_NUMBERED = re.compile(r"of layers? (\d{1,3}(?:, \d{1,3})*)", re.ASCII)
_PART = re.compile(rf"({'|'.join(PARTS.values())})(?: after the source “(.*)”)?", re.DOTALL)
_LEFT = re.compile(r"(unexplained|unexplained, with annotation), recipes (\w+)")
_PREFIX = re.compile(r"after the prefix “(.*)”", re.DOTALL)
_WRITTEN = re.compile(r"“(.*)” written by the model", re.DOTALL)
_SCORE = re.compile(
    "gradient × weight of (?:log p of “(?P<word>.*)” (?:at token (?P<place>[0-9]{1,4})|as the next token)"
    "|the cosine with “(?P<other>.*)”)",
    re.DOTALL,
)


def steps_of(made: Iterable[str]) -> tuple[Step, ...]:
    """Steps from their wording; those that are steps already stay as they are."""
    steps = list[Step]()
    for wording in made:
        step = wording if isinstance(wording, Step) else Step(_row_of(wording))
        steps.append(step if step == wording else Step(Row(wording)))
    return tuple(steps)


def _row_of(wording: str) -> Row:
    if match := _WITHOUT.fullmatch(wording):
        return Row("without", _named(match[1]), match[2], match[3] or "")
    if match := _ONLY.fullmatch(wording):
        return Row(ONLY, _named(match[1]))
    if match := _NUMBERED.fullmatch(wording):
        return Row(NUMBERED, tuple(Head(int(layer), 0) for layer in match[1].split(", ")))
    if wording.startswith("only layer "):
        return Row(ONLY_LAYERS, tuple(Head(int(layer), 0) for layer in re.findall(r"layer (\d{1,3}) ", wording)))
    if match := _LEFT.fullmatch(wording):
        return Row(match[1], means=match[2])
    if match := _PREFIX.fullmatch(wording):
        return Row(PREFIX, source=match[1])
    if match := _WRITTEN.fullmatch(wording):
        return Row(WRITTEN, source=match[1])
    if match := _PART.fullmatch(wording):
        return Row("part", part=next(part for part, words in PARTS.items() if words == match[1]), source=match[2])
    if match := _SCORE.fullmatch(wording):
        return Row("gradient", question=_question(match))
    by = wording.removeprefix("changed by ")
    return Row("changed", by=by) if by != wording else Row(wording)


def _named(heads: str) -> tuple[Head, ...]:
    return tuple(Head(*map(int, numbers)) for numbers in re.findall(r"L(\d+)H(\d+)", heads))


def _question(match: re.Match[str]) -> Question:
    if match["other"] is not None:
        return Question(COSINE, other=match["other"])
    return Question(NEXT if match["place"] is None else MASK, int(match["place"] or 0), match["word"])
