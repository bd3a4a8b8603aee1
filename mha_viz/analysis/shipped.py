"""The data that ship with a model: its roles, as its profiles state them or two corpora establish them, and its
recipes: what they say of each head, largest share first, what they predict of a text, and what they leave over. Roles
are read without the tables of their profiles. A role that one of two corpora cannot measure stays suggested by the
other."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mha_viz.analysis.findings import CORPORA, OF_OTHER, OLDER, STATES, Finding
from mha_viz.analysis.profile import HEADINGS, Profile, read_findings
from mha_viz.analysis.recipe_tables import FACTS, STABILITY, Recipes, load_recipes
from mha_viz.analysis.roles import ESTABLISHED
from mha_viz.analysis.rules import CLASSES, EVEN, NAMES, RULES, Numbers, RuleText, matrices, prediction
from mha_viz.attention import Attention, Head, Weights
from mha_viz.attention.steps import UNEXPLAINED, UNEXPLAINED_OF_GOLD, Step, digest
from mha_viz.corpus.treebank import Sentence, Word
from mha_viz.errors import PROFILE, READING, CorpusError, SettingError, ShapeError, TextError, check_each, check_kind
from mha_viz.files.assets import PROFILES, asset, files_below, own_folders
from mha_viz.heads import every_layer
from mha_viz.numerals import percent, with_interval
from mha_viz.text import WordPieces

if TYPE_CHECKING:
    import pandas as pd

# Shipped profiles, in the order in which a table is looked for in them.
GIVEN = ("ewt", "gum", "gap", "grammar", "repeats")


@cache
def given_roles(name: str) -> tuple[Finding, ...]:
    """The roles of a model that comes with the app; none for other models."""
    return united(read_findings(folder) for folder in given_folders(name))


@cache
def given_corpora(name: str) -> tuple[str, ...]:
    """The corpora that the shipped profile of a model was measured on."""
    files = [folder / "profile.json" for folder in given_folders(name)]
    return tuple(json.loads(file.read_text("utf-8"))["corpus"] for file in files if file.is_file())


def given_folders(name: str) -> list[Path]:
    """The shipped profiles of a model."""
    above = asset("profiles")
    folder = next((f for f in (above.iterdir() if above.is_dir() else ()) if f.is_dir() and f.name == name), None)
    return [folder / one for one in GIVEN if (folder / one).is_dir()] if folder else []


def united(profiles: Iterable[tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """The roles of the first profile, and the coreference roles of the others: a treebank without coreference chains
    suggests none."""
    first, *others = [*profiles] or [()]
    return (*first, *(f for findings in others for f in findings if f.role == "coreference"))


ROLE = ["layer", "head", "role", "detail"]
MEASURED_IN = {  # the table that a corpus has if it can measure this kind of role
    "syntax": "uas",
    "coreference": "coreference",
    "position": "position",
    "delimiter": "delimiter",
    "broad": "entropy",
}


def establish(one: Profile, other: Profile) -> tuple[Profile, Profile]:
    """The profiles of a model on two corpora, each with its own numbers for the roles that both establish.

    A role that only one of them can measure stays suggested. Raises CorpusError if the profiles are of different models
    or of the same corpus.
    """
    check_each((one, other), Profile, *PROFILE)
    check(one.facts, other.facts)
    pairs = (one, other), (other, one)
    corpora = CORPORA.join((one.corpus, other.corpus))
    trained = [_roles(a.tables, b.tables, corpora, b.corpus) for a, b in pairs]
    untrained = [_roles(a.untrained, b.untrained, corpora, b.corpus) for a, b in pairs]
    first, second = (
        dataclasses.replace(profile, tables={**profile.tables, **roles}, untrained={**profile.untrained, **control})
        for (profile, _), roles, control in zip(pairs, trained, untrained, strict=True)
    )
    return first, second


def check(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Raise CorpusError unless these facts of profiles are of one model and two corpora."""
    for name, kind in (("model", "model"), ("revision", "revision of the model")):
        if one[name] != other[name]:
            raise CorpusError(
                f"The profile is of another {kind}: {other[name]}, not {one[name]}.",
                "Name the profile of the same model on another corpus.",
            )
    if one["sha256"] == other["sha256"]:
        raise CorpusError(f"The profile is of the same corpus, {other['corpus']}.", "Name a corpus of another origin.")


def _roles(
    tables: Mapping[str, pd.DataFrame], other_tables: Mapping[str, pd.DataFrame], corpora: str, other_corpus: str
) -> dict[str, pd.DataFrame]:
    """The table ``roles`` of a profile beside another one; empty if no untrained model was measured."""
    import pandas as pd

    if "roles" not in tables or "roles" not in other_tables:
        return {}
    shared = {role for role, table in MEASURED_IN.items() if table in tables and table in other_tables}
    beside = other_tables["candidates"][[*ROLE, *OF_OTHER, "state"]]
    both = tables["candidates"].merge(beside, on=ROLE, suffixes=("", "_there"))
    both = both[both["role"].isin(shared)]
    states = [_both(*pair) for pair in zip(both["state"], both["state_there"], strict=True)]
    established = both.assign(
        state=pd.Series(states, both.index, object),
        status=ESTABLISHED,
        corpora=corpora,
        lowest_score=both[["score", "score_there"]].min(axis=1),
        other_corpus=other_corpus,
        **{f"other_{name}": both[f"{name}_there"] for name in OF_OTHER},
    )[[*HEADINGS["roles"]]]
    suggested = tables["roles"][~tables["roles"]["role"].isin(shared)]
    parts = [part for part in (established, suggested) if len(part)] or [established]
    return {"roles": pd.concat(parts).sort_values(["layer", "head"], kind="stable").reset_index(drop=True)}


def _both(here: object, there: object) -> str | None:
    """Return the lesser of the states on two corpora; None if there is no rule."""
    states = {OLDER.get(str(state), state) for state in (here, there)}
    return next((str(state) for state in reversed(STATES) if state in states), None)


ALL = "all"  # in place of a class of query word
LONGEST = 256  # pieces of a text; all rules for one of these take 70 MB
NAMED, LEAST_NAMED, HARDLY = 2, 0.05, 0.005  # rules in words; what is left is named from HARDLY on
EVENLY = 0.05  # a recipe that explains less than this beyond uniform attention explains nothing
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


class RecipePart(NamedTuple):
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
    explains of the attention. ``even``: what uniform attention alone explains. ``low``, ``high``: the 95 % interval of
    ``explained``, over documents; NaN if it is not known; ``overlap``: with the shares of the recipe that another
    corpus chose, of the first with which it was compared (:func:`mha_viz.recipes.compare`), NaN if with none."""

    head: Head
    parts: tuple[RecipePart, ...]
    explained: float
    even: float
    low: float = math.nan
    high: float = math.nan
    overlap: float = math.nan

    @property
    def by_kind(self) -> dict[str, float]:
        """What each of KINDS takes, in their order; "unexplained" is what is left."""
        shares = {kind: sum(part.share for part in self.parts if part.kind == kind) for kind in KINDS}
        return {**shares, "unexplained": 1 - self.explained}

    def words(self, plainly: Callable[[str], str]) -> str:
        """Return "attends 50% to the token after, 23% to [CLS]; no rule explains 18% [16%, 21%]", the interval if it is
        known; ``plainly``: of the name of a rule."""
        if self.is_even:
            return "attends evenly to all tokens"
        named = [part for part in self.parts[:NAMED] if part.share >= LEAST_NAMED] or self.parts[:1]
        says = [f"{percent(part.share, 0)} {'to ' * (part.kind != 'even')}{plainly(part.name)}" for part in named]
        left = f"; no rule explains {with_interval(1 - self.explained, 1 - self.high, 1 - self.low, 0, percent)}"
        left *= 1 - self.explained >= HARDLY
        return f"attends {', '.join(says)}{left}"

    @property
    def is_even(self) -> bool:
        """Whether the head is so nearly even that there is nothing to explain."""
        return self.explained - self.even < EVENLY


def described(recipes: Recipes) -> list[HeadRecipe]:
    """The recipe of every head in order, averaged over the classes of query word as often as each occurs; explained on
    the other corpus where there is one. Raises CorpusError as :func:`shares_of`."""
    shares, table = average_shares(recipes, shares_of(recipes)), recipes.tables["explained"]
    rows: Any = table.itertuples(index=False)
    overlaps = np.full(len(shares), math.nan)
    if STABILITY in recipes.tables:
        overlaps = recipes.tables[STABILITY]["overlap"].to_numpy()[: len(shares)]
    heads = []
    for of_head, explained, overlap, row in zip(shares, judged(table).to_numpy(), overlaps, rows, strict=True):
        share, low, high = map(float, explained)
        order = [int(rule) for rule in np.argsort(-of_head, kind="stable") if of_head[rule] > 0]
        parts = tuple(RecipePart(rule, float(of_head[rule] / of_head.sum()) * share) for rule in order)
        head = Head(int(row.layer), int(row.head))
        heads.append(HeadRecipe(head, parts, share, float(row.even), low, high, float(overlap)))
    return heads


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """Select what recipes explain of the other corpus where there is one, or else of the sentences that chose nothing,
    with the interval: the columns share, low and high, from the table "explained"."""
    columns = ["share", "low", "high"]
    other, held_out = (
        table[[name, f"{name}_low", f"{name}_high"]].set_axis(columns, axis=1) for name in ("other", "held_out")
    )
    chosen = other.where(table["other"].notna(), held_out)
    return chosen.assign(share=chosen["share"].fillna(table["fitted"]))


def average_shares(recipes: Recipes, shares: Numbers) -> Numbers:
    """Shares [class, head, rule] as [head, rule], averaged over the classes as often as each occurs in the corpus of
    ``recipes``; equally where that was not counted."""
    counts = np.array(recipes.facts.get("classes", [1] * len(CLASSES)), float)
    means: Numbers = np.tensordot(counts / counts.sum(), shares, axes=1)
    return means


def shares_of(recipes: Recipes, table: str = "recipes") -> Numbers:
    """[class, head, rule] of recipes in tables, or those of "untrained". Raises CorpusError if a class or a rule is
    unknown."""
    heads = int(recipes.facts["heads"])
    rows: Any = recipes.tables[table].itertuples(index=False)
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


def text_of(attention: Attention, gold: Sentence | None = None) -> RuleText:
    """The text of a reading as rules see it: with the annotation of ``gold``, if it has the same words; otherwise
    without, so that rules which need it apply to no token."""
    text = attention.queries
    forms = [word.text for word in text.by_words().tokens if not word.special]
    words: list[int | None] = [None] * len(text)
    ordinary = (group for group in text.groups if not text.special[group[0]])
    for number, group in enumerate(ordinary):
        for token in group:
            words[token] = number
    names = tuple(token.text for token in text.tokens)
    ids = {name: number for number, name in enumerate(dict.fromkeys(names))}  # equal tokens have equal ids
    numbers, none = tuple(ids[name] for name in names), (0,) * len(text)
    spans, in_vocabulary = ((0, 0),) * len(text), (True,) * len(text)
    pieces = WordPieces(tuple(forms), names, numbers, none, tuple(words), spans, in_vocabulary)
    causal = len(text) > 1 and not attention.weights[..., 0, 1:].any() and not np.triu(attention.weights, 1).any()
    sentence = gold if gold and is_of(gold, attention) else Sentence(tuple(map(Word, forms)))
    return RuleText(sentence, pieces, bool(causal))


def is_of(gold: Sentence, attention: Attention) -> bool:
    """Whether an annotated sentence has the words of a reading, so that its annotation is that of the text."""
    words = [word.text.casefold() for word in attention.queries.by_words().tokens if not word.special]
    return words == [form.casefold() for form in gold.forms]


def predicted(attention: Attention, recipes: Recipes | None = None, text: RuleText | None = None) -> Weights:
    """P [layer, head, query, key]: the attention that recipes predict for the text of a reading; by default those that
    are :func:`find_recipes` of the model. ``text``: as rules see it, by default without annotation, so that only rules
    which need none apply. Raises SettingError if the model has no recipes or they are of a model of another shape,
    TextError for more than LONGEST tokens."""
    shares = _shares_for(attention, recipes)
    rows: Weights = prediction(shares, text or text_of(attention)).astype(np.float32)
    return rows.reshape(attention.weights.shape)


def taken(attention: Attention, gold: Sentence | None = None, recipes: Recipes | None = None) -> Numbers:
    """[head, rule]: what each rule explains of a reading's weights, the mean over rows of Σ_j min(A[i, j], P[i, j])
    times the rule's part of P[i, j]; its sum over rules is the explained share. With the annotation of ``gold``, rules
    that need it apply, too; where none applies, uniform attention explains. Raises as :func:`predicted`."""
    shares, text = _shares_for(attention, recipes), text_of(attention, gold)
    weights = attention.weights.reshape(shares.shape[1], len(text), len(text))
    used = np.union1d(np.flatnonzero(shares.any(axis=(0, 1))), EVEN)
    rules = matrices(text, used)  # [rule, query, key]
    apply = rules.any(axis=(1, 2))
    used, rules = used[apply], rules[apply].transpose(1, 0, 2)  # [query, rule, key]
    applies = np.any(rules, axis=2, keepdims=True).transpose(0, 2, 1)  # [query, 1, rule]
    mixed = shares[text.classes][:, :, used] * applies  # [query, head, rule]
    mixed[:, :, used == EVEN] += mixed.sum(axis=2, keepdims=True) == 0
    mixed /= mixed.sum(axis=2, keepdims=True)
    whole = mixed @ rules  # [query, head, key]
    ratio = np.divide(np.minimum(weights.transpose(1, 0, 2), whole), whole, out=np.zeros(whole.shape), where=whole > 0)
    result = np.zeros(shares.shape[1:])
    result[:, used] = (mixed * (ratio @ rules.transpose(0, 2, 1))).sum(axis=0)
    return result / len(text)


def _shares_for(attention: Attention, recipes: Recipes | None) -> Numbers:
    """[class, head, rule] of recipes that fit a reading. Raises as :func:`predicted`."""
    recipes = recipes or of_model(attention.model, attention.revision)
    shape = every_layer(recipes.facts["layers"]), recipes.facts["heads"]
    if (attention.layer_numbers, attention.heads) != shape:
        raise SettingError(f"These recipes are of the heads of {recipes.facts['model']}.", "Give those of this model.")
    if len(attention.queries) > LONGEST:
        problem = f"The text has {len(attention.queries)} tokens; recipes predict at most {LONGEST}."
        raise TextError(problem, "Read a shorter text.")
    return kept_shares(recipes)


def unexplained(attention: Attention, recipes: Recipes | None = None, gold: Sentence | None = None) -> Attention:
    """What the recipes of its heads leave of a reading: A − P, [layer, head, query, key], above 0 where a head looks
    more than its rules predict. Half the sum of absolute values in a row is what is not explained of it.

    ``recipes``: by default those that come with the model; the step of the reading has a digest of others. ``gold``:
    the text as a sentence of a corpus; without it, rules that need annotation are left out. Raises ShapeError for what
    is not the complete weights of a text to itself, TextError for a sentence of other words, and as :func:`predicted`.

    >>> mv.quantities.unexplained(mv.load("minilm").encode("The cat sat.")).quantity
    'unexplained'
    """
    check_kind(attention, Attention, *READING)
    is_whole = attention.queries.unit == "pieces" and not attention.is_cross and not attention.hidden.any()
    if attention.quantity != "weight" or not is_whole:
        raise ShapeError(
            "A recipe predicts whole attention weights of a text to itself; these are not.",
            "Use the reading as the model returned it.",
        )
    if gold is not None and not is_of(gold, attention):
        raise TextError("The annotated sentence has other words than the text.", "Give the sentence that was read.")
    left = attention.weights - predicted(attention, recipes, text_of(attention, gold))
    step = UNEXPLAINED if gold is None else UNEXPLAINED_OF_GOLD
    step = step if recipes is None else Step(step.row._replace(means=digest(kept_shares(recipes))))
    return replace(attention, weights=left, quantity="unexplained", made=(*attention.made, step))


def with_annotation(left: Attention, gold: Sentence) -> Attention:
    """What :func:`unexplained` left without annotation, as it is with that of ``gold``; itself if the sentence has
    other words. By the recipes that are :func:`find_recipes` of the model."""
    if UNEXPLAINED not in left.made or not is_of(gold, left):
        return left
    weights = left.weights + predicted(left) - predicted(left, text=text_of(left, gold))
    made = (UNEXPLAINED_OF_GOLD if step == UNEXPLAINED else step for step in left.made)
    return replace(left, weights=weights, made=tuple(made))


# ---- Those of a model ------------------------------------------------------------------------------------------------


def find_recipes(model: str, revision: str = "") -> Recipes | None:
    """Find the recipes of a model's heads: the first in the folders that MHA_VIZ_PROFILES names, or else those that
    come with the app; None if there are none, or only damaged ones or those of weights of another revision."""
    for file, facts in _own_recipes():
        is_named = facts.get("model") == model and revision in ("", facts.get("revision"))
        if is_named or (revision and revision == facts.get("revision")):  # the same weights under another name
            with suppress(CorpusError, OSError):
                return _opened(file.parent, file.stat().st_mtime_ns)
    return shipped(model, revision)


def of_model(model: str, revision: str = "") -> Recipes:
    """Find the recipes of a model as :func:`find_recipes` does. Raises SettingError, naming what was found instead, if
    there are none, and CorpusError for damaged ones."""
    recipes = find_recipes(model, revision)
    if recipes is not None:
        return recipes
    written = "the folder that `mha-viz recipes CORPUS --model NAME --out DIR` writes"
    remedy = f"Name {written} (recipes=, --recipes DIR, or {PROFILES}=DIR)."
    for folder in (
        *(file.parent for file, facts in _own_recipes() if facts.get("model") == model),
        asset("recipes") / model,
    ):
        if (folder / FACTS).is_file():
            of = load_recipes(folder).facts["revision"]
            problem = f"The recipes of {model} in {folder} are of other weights ({of}, not {revision})."
            raise SettingError(problem, f"Open those weights, or give recipes of these. {remedy}")
    where = " or ".join(["the app", *map(str, own_folders())])
    raise SettingError(f"There are no recipes of the heads of {model} in {where}.", remedy)


@lru_cache(maxsize=4)
def shipped(model: str, revision: str = "") -> Recipes | None:
    """The recipes of a model that comes with the app; None if it has none, or has weights of another revision."""
    folder = asset("recipes") / model
    if folder.parent != asset("recipes") or not (folder / FACTS).is_file():
        return None
    recipes = load_recipes(folder)
    return recipes if revision in ("", recipes.facts["revision"]) else None


def _own_recipes() -> list[tuple[Path, Mapping[str, Any]]]:
    """List the files with facts of recipes in the folders that MHA_VIZ_PROFILES names, each with its facts."""
    files = [file for folder in own_folders() for file in files_below(folder, FACTS)]
    return [(file, _facts(file, file.stat().st_mtime_ns)) for file in files]


@lru_cache(maxsize=1024)
def _facts(file: Path, _: int) -> Mapping[str, Any]:
    try:
        facts = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


@lru_cache(maxsize=8)
def _opened(folder: Path, _: int) -> Recipes:
    return load_recipes(folder)


@lru_cache(maxsize=8)
def kept_shares(recipes: Recipes) -> Numbers:
    """:func:`shares_of` recipes, which every reading needs; read only."""
    shares = shares_of(recipes)
    shares.setflags(write=False)
    return shares


def of_heads(model: str, revision: str = "") -> tuple[HeadRecipe, ...]:
    """The recipe of every head in order; none if :func:`find_recipes` has none."""
    recipes = find_recipes(model, revision)
    return _of_heads(recipes) if recipes else ()


@lru_cache(maxsize=8)
def _of_heads(recipes: Recipes) -> tuple[HeadRecipe, ...]:
    return tuple(described(recipes))
