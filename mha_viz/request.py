"""A request to a model: the text to read, how to read it, and the quantity to return for every head.

Pages, commands, recipes and the process that runs models all use :class:`Request`, and ``study.reading`` answers it.
FIELDS maps each field to its name in a link and on the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from mha_viz.errors import SettingError, shorten_value
from mha_viz.heads import Head, format_heads
from mha_viz.quotes import quote
from mha_viz.view.quantities import QUANTITIES, WEIGHT

__all__ = ["METHODS", "METHODS_OVER_CORPUS", "PARTS", "RECIPE", "RESAMPLE", "TEXT", "Question", "Request"]

RECIPE = "recipe"  # the output with the weights that a head's recipe predicts
RESAMPLE, TEXT = "resample", "text"  # the output on random sentences of a corpus, or on one other text
METHODS_OVER_CORPUS = ("zero", "mean", "uniform", RECIPE, RESAMPLE)  # methods that can be used over a corpus
METHODS = (*METHODS_OVER_CORPUS, TEXT)  # the replacement for the output of a head that is off; the first by default
METHOD_WORDS: Mapping[str, str] = MappingProxyType(  # the methods in words
    {
        "zero": "zeros",
        "mean": "its mean",
        "uniform": "uniform attention",
        RECIPE: "its rules",
        RESAMPLE: "random sentences",
        TEXT: "another text",
    }
)
ENCODER, DECODER, CROSS = PARTS = ("encoder", "decoder", "cross")  # the parts of an encoder–decoder
MASK, NEXT, COSINE = ("mask", "next", "cosine")  # the kinds of questions
# In which of two compared texts heads are off.
BOTH, FIRST_TEXT, SECOND_TEXT = OFF_CHOICES = ("both", "first", "second")
FIRST_MASK = -1  # the first masked token of a text
DTYPES = ("float32", "float16", "bfloat16")  # the types in which weights can be read; the first by default


def add_dtype(revision: str, dtype: str) -> str:
    """Return the revision of a model whose weights were loaded in a type: "53aa", or "53aa, bfloat16".

    It distinguishes readings, results and stored data from those in float32.
    """
    base = revision if get_dtype(revision) == DTYPES[0] else revision.rpartition(", ")[0]
    return base if dtype == DTYPES[0] else ", ".join(filter(None, (base, dtype)))


def get_dtype(revision: str) -> str:
    """Return the type that a revision names."""
    dtype = revision.rpartition(", ")[2]
    return dtype if dtype in DTYPES else DTYPES[0]


class Question(NamedTuple):
    """A question to a model about a text.

    ``kind``: "mask", the word at the masked token ``place``; "next", the word that follows the last token, ``place``;
    "cosine", how similar the vectors of the text and of ``other`` are. ``word`` names an entry of the vocabulary, with
    the id ``piece``: its log-probability is the score; for "cosine", the score is the cosine. ``places`` are all masked
    tokens of the text. ``off_in``, for "cosine": the text in which heads are switched off and importance is
    measured: "both", "first" or "second".
    """

    kind: str
    place: int = 0
    word: str = ""
    piece: int = 0
    other: str = ""
    places: tuple[int, ...] = ()
    off_in: str = BOTH

    @property
    def score(self) -> str:
        """The score in words: "log p of “cat” at token 5"."""
        if self.kind == COSINE:
            return f"the cosine with “{self.other}”"
        return f"log p of “{self.word}” {f'at token {self.place}' if self.kind == MASK else 'as the next token'}"

    def is_off_in(self, number: int) -> bool:
        """Return whether heads are switched off in the text (``number`` 0), or in the other text (1)."""
        return self.off_in in (BOTH, (FIRST_TEXT, SECOND_TEXT)[number])

    @classmethod
    def parse(cls, values: Any) -> Question:
        """Restore a question from its fields in order, as stored in JSON."""
        kind, place, word, piece, other, places, *off_in = values
        return cls(kind, place, word, piece, other, tuple(places), *off_in)


@dataclass(frozen=True)
class Request:
    """Everything that the answer of a model depends on, and nothing else. Equal requests have equal answers.

    ``pair`` is a second text that is read together with ``text``; ``words``, the sentence as words, replace both.
    ``prefix``, such as "query: ", is read before the text but is not part of it. ``part`` and ``target`` are for
    encoder–decoders; without a target the model generates one. ``off`` are the heads that are switched off, and
    ``method`` is the replacement for their output; for "text", that is their output on ``source``. ``place``, ``word``,
    ``other`` and ``off_in`` describe the score whose gradient is computed, as in
    ``models.reading.answers.make_question``. Once the model has looked the word up, ``question`` replaces them.
    """

    model: str = ""
    text: str = ""
    pair: str = ""
    words: tuple[str, ...] = ()
    target: str = ""
    part: str = ""
    off: tuple[Head, ...] = ()
    method: str = METHODS[0]
    source: str = ""
    quantity: str = WEIGHT
    place: int | None = None
    word: str = ""
    other: str = ""
    off_in: str = BOTH
    question: Question | None = None
    prefix: str = ""

    def checked(self, name_field: Callable[[str], str] = str) -> Request:
        """Check the request and return it.

        ``name_field`` maps a field to its name where the request was written, such as an option. Raises SettingError
        for fields that exclude each other, and for values that do not exist.
        """
        for problem, remedy in self._iter_problems(name_field):
            raise SettingError(problem, remedy)
        return self

    def _iter_problems(self, name_field: Callable[[str], str]) -> Iterator[tuple[str, str]]:
        """Yield each problem of the request, with its remedy."""
        quantity, remedy = f"{name_field('quantity')} {self.quantity}", "Leave one of them out."
        word_fields = [name_field(name) for name in ("word", "place", "other") if getattr(self, name) not in ("", None)]
        quantity_info = QUANTITIES.get(self.quantity)
        if word_fields and not (quantity_info and quantity_info.of_answer):
            answer_quantities = " or ".join(other.name for other in QUANTITIES.values() if other.of_answer)
            yield (
                f"{word_fields[0]} goes with {name_field('quantity')} {answer_quantities}.",
                f"Leave {word_fields[0]} out.",
            )
        if self.other and len(word_fields) > 1:
            yield "A word and a second text were given.", remedy
        if self.off_in != BOTH and not self.other and not self.question:
            yield f"{name_field('off_in')} goes with {name_field('other')}.", f"Leave {name_field('off_in')} out."
        if self.question and (word_fields or self.off_in != BOTH):
            yield f"{name_field('question')} takes the place of {(*word_fields, name_field('off_in'))[0]}.", remedy
        if self.off and quantity_info and quantity_info.with_all_heads:
            yield f"{name_field('off')} does not go with {quantity}.", remedy
        part_fields = [name_field(name) for name in ("target", "part") if getattr(self, name)]
        if part_fields and (self.off or (quantity_info and quantity_info.with_all_heads)):
            yield f"{part_fields[0]} does not go with {name_field('off') if self.off else quantity}.", remedy
        if self.words and self.pair:
            yield f"{name_field('words')} are the whole text.", f"Leave {name_field('pair')} out."
        if self.pair and part_fields:
            yield f"{part_fields[0]} is for models that read one text at a time.", f"Leave {name_field('pair')} out."
        if self.prefix and part_fields:
            yield f"{name_field('prefix')} does not go with {part_fields[0]}.", "Write it into the text."
        if self.method != METHODS[0] and not self.off:
            problem = f"{name_field('method')} says how heads are switched off, but none is."
            yield problem, f"Give {name_field('off')}, or leave {name_field('method')} out."
        if self.source and self.method != TEXT:
            field = name_field("source")
            yield f"{field} goes with {name_field('method')} {TEXT}.", f"Leave {field} out."
        if self.off and self.method == TEXT and not self.source.strip():
            yield f"{name_field('method')} {TEXT} takes outputs from another text.", f"Give {name_field('source')}."
        if self.target and self.part == ENCODER:
            yield f"{name_field('part')} {ENCODER} reads no target.", f"Leave {name_field('target')} out."
        for name, values in (
            ("part", ("", *PARTS)),
            ("method", METHODS),
            ("off_in", OFF_CHOICES),
            ("quantity", QUANTITIES),
        ):
            if getattr(self, name) not in values:
                choices = ", ".join(filter(None, values))
                yield f"{name_field(name)} is {shorten_value(getattr(self, name))!r}.", f"Choose one of {choices}."

    def with_question(self, question: Question) -> Request:
        """Return the request with a question in place of the fields that describe one."""
        return replace(self, place=None, word="", other="", off_in=BOTH, question=question)

    @property
    def manner(self) -> str:
        """The replacement for the output of heads that are off, in words.

        Examples: "replaced by zeros", "replaced by another text, “A dog slept.”".
        """
        return f"replaced by {METHOD_WORDS[self.method]}{f', {quote(self.source)}' if self.source else ''}"

    @property
    def texts(self) -> tuple[str, str]:
        """Both texts; the second is empty if there is only one."""
        return self.text, self.pair

    @property
    def passes(self) -> list[tuple[str, str]]:
        """The texts of the forward passes: ``texts``, and the text that they are compared with, if any."""
        return [self.texts, (self.question.other, "")] if self.question and self.question.other else [self.texts]

    def pack(self) -> dict[str, Any]:
        """Return the fields whose values differ from the defaults, for JSON."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Request:
        """Restore a request that :meth:`pack` wrote, from JSON."""
        return cls(**{name: _PARSERS[name](value) if name in _PARSERS else value for name, value in values.items()})

    def parameters(self) -> dict[str, str]:
        """Return the parameters of a link that makes the request, without default values."""
        values = {name: format_heads(value) if name == "off" else str(value) for name, value in self.pack().items()}
        return {FIELDS[name].parameter: value for name, value in values.items() if name in FIELDS}


_PARSERS: Mapping[str, Callable[[Any], Any]] = {  # restore from JSON the fields that are more than text and numbers
    "words": tuple,
    "off": lambda heads: tuple(Head(*head) for head in heads),
    "question": Question.parse,
}


class Field(NamedTuple):
    """The name of a request's field in a link, and as an option of a command ("" if it has none)."""

    parameter: str
    option: str


FIELDS: Mapping[str, Field] = MappingProxyType(
    {
        "model": Field("model", "--model"),
        "text": Field("text", ""),
        "pair": Field("pair", "--pair"),
        "prefix": Field("prefix", "--prefix"),
        "target": Field("target", "--target"),
        "part": Field("part", "--part"),
        "off": Field("off", "--without"),
        "method": Field("how", "--method"),
        "source": Field("from", "--from"),
        "quantity": Field("shown", "--quantity"),
        "place": Field("place", "--place"),
        "word": Field("word", "--word"),
        "other": Field("second", "--other"),
        "off_in": Field("in", "--off-in"),
    }
)
