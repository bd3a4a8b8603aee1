"""What recipes say of each head, largest share first, and what they predict of a text that is not annotated."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from mha_viz.analysis import recipes as fitting
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.recipes import Numbers
from mha_viz.analysis.rules import CLASSES, NAMES, RULES, RuleText
from mha_viz.attention import Attention, Head
from mha_viz.corpus.treebank import Sentence, Word
from mha_viz.errors import CorpusError
from mha_viz.text import TokenizedText, WordPieces

ALL = "all"  # in place of a class of query word
LONGEST = 256  # pieces of a text; all rules for one of these take 70 MB
EVENLY = 0.05  # a recipe that explains less than this beyond even attention explains nothing
KIND_OF: Mapping[str, str] = MappingProxyType(
    {
        "position": "position",
        "special": "special",
        **dict.fromkeys(("part of speech", "syntax", "coreference"), "grammar"),
        "form": "form",
        "even": "even",
    }
)
KINDS = tuple(dict.fromkeys(KIND_OF.values()))  # in the order in which they are drawn


class Part(NamedTuple):
    """A rule of a head: its number in RULES, and its share of the attention, 0…1."""

    rule: int
    share: float

    @property
    def name(self) -> str:
        """The rule in words."""
        return NAMES[self.rule]

    @property
    def kind(self) -> str:
        """One of KINDS."""
        return KIND_OF[RULES[self.rule].kind]


class HeadRecipe(NamedTuple):
    """``parts``, the largest first, sum to ``explained``: each is the rule's share of the recipe times what the recipe
    explains of the attention. ``even``: what even attention alone explains."""

    head: Head
    parts: tuple[Part, ...]
    explained: float
    even: float

    @property
    def is_even(self) -> bool:
        """Whether the head is so nearly even that there is nothing to explain."""
        return self.explained - self.even < EVENLY


def described(recipes: Recipes) -> list[HeadRecipe]:
    """The recipe of every head in order, averaged over the classes of query word as often as each occurs; explained on
    the other corpus where there is one. Raises CorpusError as :func:`shares_of`."""
    shares, table = np.tensordot(_class_shares(recipes), shares_of(recipes), axes=1), recipes.tables["explained"]
    judged = table["other"].fillna(table["held_out"]).fillna(table["fitted"])
    rows: Any = table.itertuples(index=False)
    return [_described(*each) for each in zip(shares, judged, rows, strict=True)]


def _described(shares: Numbers, explained: float, row: Any) -> HeadRecipe:
    order = [int(rule) for rule in np.argsort(-shares, kind="stable") if shares[rule] > 0]
    parts = tuple(Part(rule, float(shares[rule] / shares.sum()) * explained) for rule in order)
    return HeadRecipe(Head(int(row.layer), int(row.head)), parts, float(explained), float(row.even))


def _class_shares(recipes: Recipes) -> Numbers:
    """[class]: how often each occurs in the corpus of the recipes; equal where that was not counted."""
    counts = np.array(recipes.facts.get("classes", [1] * len(CLASSES)), float)
    shares: Numbers = counts / counts.sum()
    return shares


def shares_of(recipes: Recipes) -> Numbers:
    """[class, head, rule] of recipes in tables. Raises CorpusError if a class or a rule is unknown."""
    heads = int(recipes.facts["heads"])
    rows: Any = recipes.tables["recipes"].itertuples(index=False)
    shares = np.zeros((len(CLASSES), int(recipes.facts["layers"]) * heads, len(RULES)))
    try:
        for row in rows:
            which = slice(None) if row.query_class == ALL else CLASSES.index(row.query_class)
            shares[which, row.layer * heads + row.head, NAMES.index(row.rule)] = row.share
        if len([NAMES.index(name) for name in recipes.facts["best_rules"]]) != shares.shape[1]:
            raise ValueError("best_rules does not name one rule per head")
    except (KeyError, ValueError, IndexError) as error:
        problem = f"The recipes of {recipes.facts['model']} have other rules: {error}."
        raise CorpusError(problem, "Measure them again with mha-viz recipes.") from error
    return shares


def text_of(attention: Attention) -> RuleText:
    """The text of a reading as rules see it: without annotation, so that rules which need it apply to no token."""
    text = attention.queries
    forms = [word.text for word in text.by_words().tokens if not word.special]
    pieces = _pieces(text, forms)
    causal = len(text) > 1 and not np.triu(attention.weights, 1).any()
    return RuleText(Sentence(tuple(map(Word, forms))), pieces, bool(causal))


def _pieces(text: TokenizedText, forms: list[str]) -> WordPieces:
    """The tokens as pieces of words; equal tokens have equal ids."""
    words: list[int | None] = [None] * len(text)
    ordinary = (group for group in text.groups if not text.special[group[0]])
    for number, group in enumerate(ordinary):
        for token in group:
            words[token] = number
    names = tuple(token.text for token in text.tokens)
    ids = {name: number for number, name in enumerate(dict.fromkeys(names))}
    none = (0,) * len(text)
    spans, known = ((0, 0),) * len(text), (True,) * len(text)
    return WordPieces(tuple(forms), names, tuple(ids[name] for name in names), none, tuple(words), spans, known)


def predicted(recipes: Recipes, attention: Attention) -> Numbers:
    """P [layer, head, query, key]: the attention that the recipes predict for the text of a reading, by the rules that
    need no annotation."""
    return fitting.prediction(shares_of(recipes), text_of(attention)).reshape(attention.weights.shape)
