"""Access to the data that are bundled with a model: its roles and its recipes.

Roles are read from its profiles without their tables, or established from the profiles of two corpora. A role that one
of the corpora cannot measure stays suggested by the other. Recipes are described for each head, largest share first,
and used to predict the attention of a text and to find the attention that they leave unexplained.
"""

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

from mha_viz.analysis.findings import CORPUS_SEPARATOR, OLD_STATES, SHARED_COLUMNS, STATES, Finding
from mha_viz.analysis.profile import HEADINGS, Profile, read_findings
from mha_viz.analysis.recipe_tables import FACTS_FILE, STABILITY, Recipes, load_recipes
from mha_viz.analysis.roles import ESTABLISHED
from mha_viz.analysis.rules import CLASSES, NAMES, RULES, UNIFORM_RULE, Numbers, RuleText, make_matrices, predict
from mha_viz.attention import Attention, Head, Weights
from mha_viz.attention.steps import UNEXPLAINED, UNEXPLAINED_OF_GOLD, Step, digest
from mha_viz.corpus.treebank import Sentence, Word
from mha_viz.errors import (
    PROFILE_KIND,
    READING_KIND,
    CorpusError,
    SettingError,
    ShapeError,
    TextError,
    check_items,
    check_kind,
)
from mha_viz.files.assets import PROFILES_VARIABLE, asset_path, find_files, list_profile_folders
from mha_viz.heads import list_layers
from mha_viz.numerals import percent, with_interval
from mha_viz.text import WordPieces

if TYPE_CHECKING:
    import pandas as pd

# Bundled profiles, in the order in which they are searched for a table.
BUNDLED_CORPORA = ("ewt", "gum", "gap", "grammar", "repeats")


@cache
def load_bundled_roles(name: str) -> tuple[Finding, ...]:
    """Return the roles of a model that comes with the app; none for other models."""
    return merge_roles(read_findings(folder) for folder in list_bundled_folders(name))


@cache
def list_bundled_corpora(name: str) -> tuple[str, ...]:
    """Return the corpora on which the bundled profiles of a model were measured."""
    files = [folder / "profile.json" for folder in list_bundled_folders(name)]
    return tuple(json.loads(file.read_text("utf-8"))["corpus"] for file in files if file.is_file())


def list_bundled_folders(name: str) -> list[Path]:
    """Return the folders of the bundled profiles of a model."""
    profiles = asset_path("profiles")
    folder = next((f for f in (profiles.iterdir() if profiles.is_dir() else ()) if f.is_dir() and f.name == name), None)
    return [folder / corpus for corpus in BUNDLED_CORPORA if (folder / corpus).is_dir()] if folder else []


def merge_roles(profiles: Iterable[tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """Return the roles of the first profile and the coreference roles of the others.

    A treebank without coreference chains suggests no coreference roles.
    """
    first, *others = [*profiles] or [()]
    return (*first, *(f for findings in others for f in findings if f.role == "coreference"))


ROLE_COLUMNS = ["layer", "head", "role", "detail"]
ROLE_TABLES = {  # kind of role → the table that a profile has if its corpus can measure it
    "syntax": "uas",
    "coreference": "coreference",
    "position": "position",
    "delimiter": "delimiter",
    "broad": "entropy",
}


def establish(one: Profile, other: Profile) -> tuple[Profile, Profile]:
    """Return the profiles of a model on two corpora, each with its own numbers for the roles that both establish.

    A role that only one of them can measure stays suggested. Raises CorpusError if the profiles are of different models
    or of the same corpus.
    """
    check_items((one, other), Profile, *PROFILE_KIND)
    check_profiles(one.facts, other.facts)
    pairs = (one, other), (other, one)
    corpora = CORPUS_SEPARATOR.join((one.corpus, other.corpus))
    trained = [_combine_roles(a.tables, b.tables, corpora, b.corpus) for a, b in pairs]
    untrained = [_combine_roles(a.untrained, b.untrained, corpora, b.corpus) for a, b in pairs]
    first, second = (
        dataclasses.replace(profile, tables={**profile.tables, **roles}, untrained={**profile.untrained, **control})
        for (profile, _), roles, control in zip(pairs, trained, untrained, strict=True)
    )
    return first, second


def check_profiles(first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
    """Raise CorpusError unless two profiles, given by their facts, are of the same model and different corpora."""
    for name, kind in (("model", "model"), ("revision", "revision of the model")):
        if first[name] != second[name]:
            raise CorpusError(
                f"The profile is of another {kind}: {second[name]}, not {first[name]}.",
                "Name the profile of the same model on another corpus.",
            )
    if first["sha256"] == second["sha256"]:
        raise CorpusError(f"The profile is of the same corpus, {second['corpus']}.", "Name a corpus of another origin.")


def _combine_roles(
    tables: Mapping[str, pd.DataFrame], other_tables: Mapping[str, pd.DataFrame], corpora: str, other_corpus: str
) -> dict[str, pd.DataFrame]:
    """Return the table ``roles`` of a profile combined with another; empty if no untrained model was measured."""
    import pandas as pd

    if "roles" not in tables or "roles" not in other_tables:
        return {}
    shared_roles = {role for role, table in ROLE_TABLES.items() if table in tables and table in other_tables}
    other_candidates = other_tables["candidates"][[*ROLE_COLUMNS, *SHARED_COLUMNS, "state"]]
    candidates = tables["candidates"].merge(other_candidates, on=ROLE_COLUMNS, suffixes=("", "_there"))
    candidates = candidates[candidates["role"].isin(shared_roles)]
    states = [_find_lesser_state(*pair) for pair in zip(candidates["state"], candidates["state_there"], strict=True)]
    established_roles = candidates.assign(
        state=pd.Series(states, candidates.index, object),
        status=ESTABLISHED,
        corpora=corpora,
        lowest_score=candidates[["score", "score_there"]].min(axis=1),
        other_corpus=other_corpus,
        **{f"other_{name}": candidates[f"{name}_there"] for name in SHARED_COLUMNS},
    )[[*HEADINGS["roles"]]]
    suggested_roles = tables["roles"][~tables["roles"]["role"].isin(shared_roles)]
    parts = [part for part in (established_roles, suggested_roles) if len(part)] or [established_roles]
    return {"roles": pd.concat(parts).sort_values(["layer", "head"], kind="stable").reset_index(drop=True)}


def _find_lesser_state(first_state: object, second_state: object) -> str | None:
    """Return the lesser of the states on two corpora; None if there is no rule."""
    states = {OLD_STATES.get(str(state), state) for state in (first_state, second_state)}
    return next((str(state) for state in reversed(STATES) if state in states), None)


ALL = "all"  # stands for all classes of query word
MAX_TOKENS = 256  # maximum number of tokens of a text; all its rules then take 70 MB
MAX_NAMED_RULES, MIN_NAMED_SHARE = 2, 0.05  # maximum number of rules to name, and least share of a named rule
MIN_UNEXPLAINED = 0.005  # least unexplained share to mention
MIN_EXPLAINED = 0.05  # a recipe must explain at least this much more than uniform attention
MIN_EVEN = 0.65  # uniform attention must explain at least this much of a head for it to be called even
KIND_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "position": "position",
        "special": "special",
        **dict.fromkeys(("part of speech", "syntax", "coreference"), "grammar"),
        "form": "form",
        "even": "even",
    }
)
KINDS = tuple(dict.fromkeys(KIND_NAMES.values()))  # in drawing order


class RecipePart(NamedTuple):
    """A rule of a head: its number in RULES, and its share of the attention, 0 to 1."""

    rule: int
    share: float

    @property
    def name(self) -> str:
        """The rule in words."""
        return NAMES[self.rule]

    @property
    def kind(self) -> str:
        """The kind of the rule, one of KINDS."""
        return KIND_NAMES[RULES[self.rule].kind]


class HeadRecipe(NamedTuple):
    """The recipe of a head.

    Attributes:
        parts: the rules, largest share first. Their shares in the recipe are multiplied by ``explained``, to which they
            sum.
        explained: the share of the attention that the recipe explains.
        even: the share that uniform attention explains.
        low, high: the 95 % interval of ``explained`` over documents; NaN if unknown.
        overlap: the overlap of the shares with those chosen on another corpus, the first with which the recipe was
            compared (:func:`mha_viz.recipes.compare`); NaN if there is none.
    """

    head: Head
    parts: tuple[RecipePart, ...]
    explained: float
    even: float
    low: float = math.nan
    high: float = math.nan
    overlap: float = math.nan

    @property
    def by_kind(self) -> dict[str, float]:
        """The explained share of each of KINDS, in their order, and the rest as "unexplained"."""
        shares = {kind: sum(part.share for part in self.parts if part.kind == kind) for kind in KINDS}
        return {**shares, "unexplained": 1 - self.explained}

    def describe(self, describe_rule: Callable[[str], str]) -> str:
        """Describe the recipe: "attends 50% to the token after, 23% to [CLS]; no rule explains 18% [16%, 21%]".

        The interval is given if it is known. ``describe_rule`` turns the name of a rule into plain words.
        """
        if self.is_even:
            return "attends evenly to all tokens"
        named_parts = [part for part in self.parts[:MAX_NAMED_RULES] if part.share >= MIN_NAMED_SHARE] or self.parts[:1]
        phrases = [
            f"{percent(part.share, 0)} {'to ' * (part.kind != 'even')}{describe_rule(part.name)}"
            for part in named_parts
        ]
        unexplained_part = (
            f"; no rule explains {with_interval(1 - self.explained, 1 - self.high, 1 - self.low, 0, percent)}"
        )
        unexplained_part *= 1 - self.explained >= MIN_UNEXPLAINED
        return f"attends {', '.join(phrases)}{unexplained_part}"

    @property
    def is_even(self) -> bool:
        """True if uniform attention explains most of the head, and its recipe hardly more."""
        return self.even >= MIN_EVEN and self.explained - self.even < MIN_EXPLAINED


def describe_recipes(recipes: Recipes) -> list[HeadRecipe]:
    """Return the recipe of every head, in order.

    Shares are averaged over the classes of query word, weighted by their frequency. Explained shares are measured on
    the other corpus if there is one. Raises the errors of :func:`make_shares`.
    """
    shares, table = average_shares(recipes, make_shares(recipes)), recipes.tables["explained"]
    rows: Any = table.itertuples(index=False)
    overlaps = np.full(len(shares), math.nan)
    if STABILITY in recipes.tables:
        overlaps = recipes.tables[STABILITY]["overlap"].to_numpy()[: len(shares)]
    heads = []
    for head_shares, explained, overlap, row in zip(
        shares, select_explained(table).to_numpy(), overlaps, rows, strict=True
    ):
        share, low, high = map(float, explained)
        order = [int(rule) for rule in np.argsort(-head_shares, kind="stable") if head_shares[rule] > 0]
        parts = tuple(RecipePart(rule, float(head_shares[rule] / head_shares.sum()) * share) for rule in order)
        head = Head(int(row.layer), int(row.head))
        heads.append(HeadRecipe(head, parts, share, float(row.even), low, high, float(overlap)))
    return heads


def select_explained(table: pd.DataFrame) -> pd.DataFrame:
    """Select the explained shares to report, with intervals, from the table "explained".

    They are measured on the other corpus if there is one, or else on the held-out sentences. The columns are share, low
    and high.
    """
    columns = ["share", "low", "high"]
    other, held_out = (
        table[[name, f"{name}_low", f"{name}_high"]].set_axis(columns, axis=1) for name in ("other", "held_out")
    )
    explained = other.where(table["other"].notna(), held_out)
    return explained.assign(share=explained["share"].fillna(table["fitted"]))


def average_shares(recipes: Recipes, shares: Numbers) -> Numbers:
    """Average shares [class, head, rule] over classes, [head, rule].

    Classes are weighted by their frequency in the corpus of ``recipes``, or equally if that was not counted.
    """
    counts = np.array(recipes.facts.get("classes", [1] * len(CLASSES)), float)
    means: Numbers = np.tensordot(counts / counts.sum(), shares, axes=1)
    return means


def make_shares(recipes: Recipes, table: str = "recipes") -> Numbers:
    """Return [class, head, rule], the shares in the table of recipes, or in "untrained".

    Raises CorpusError if a class or a rule is unknown.
    """
    heads = int(recipes.facts["heads"])
    rows: Any = recipes.tables[table].itertuples(index=False)
    shares = np.zeros((len(CLASSES), int(recipes.facts["layers"]) * heads, len(RULES)))
    try:
        for row in rows:
            class_index = slice(None) if row.query_class == ALL else CLASSES.index(row.query_class)
            shares[class_index, row.layer * heads + row.head, NAMES.index(row.rule)] = row.share
        if len([NAMES.index(name) for name in recipes.facts["best_rules"]]) != shares.shape[1]:
            raise ValueError("best_rules does not name one rule per head")
    except (KeyError, ValueError, IndexError) as error:
        problem = f"The recipes of {recipes.facts['model']} use other rules: {error}."
        raise CorpusError(problem, "Measure them again with mha-viz recipes.") from error
    return shares


def make_rule_text(attention: Attention, gold: Sentence | None = None) -> RuleText:
    """Return the text of a reading as rules see it.

    It is annotated like ``gold`` if that has the same words. Otherwise it has no annotation, and rules that need
    annotation apply to no token.
    """
    text = attention.queries
    forms = [word.text for word in text.by_words().tokens if not word.special]
    words: list[int | None] = [None] * len(text)
    word_groups = (group for group in text.groups if not text.special[group[0]])
    for number, group in enumerate(word_groups):
        for token in group:
            words[token] = number
    names = tuple(token.text for token in text.tokens)
    ids = {name: number for number, name in enumerate(dict.fromkeys(names))}  # equal tokens have equal ids
    numbers, zeros = tuple(ids[name] for name in names), (0,) * len(text)
    spans, in_vocabulary = ((0, 0),) * len(text), (True,) * len(text)
    pieces = WordPieces(tuple(forms), names, numbers, zeros, tuple(words), spans, in_vocabulary)
    causal = len(text) > 1 and not attention.weights[..., 0, 1:].any() and not np.triu(attention.weights, 1).any()
    sentence = gold if gold and has_same_words(gold, attention) else Sentence(tuple(map(Word, forms)))
    return RuleText(sentence, pieces, bool(causal))


def has_same_words(gold: Sentence, attention: Attention) -> bool:
    """Return True if an annotated sentence has the words of a reading, so that its annotation applies to the text."""
    words = [word.text.casefold() for word in attention.queries.by_words().tokens if not word.special]
    return words == [form.casefold() for form in gold.forms]


def predict_attention(attention: Attention, recipes: Recipes | None = None, text: RuleText | None = None) -> Weights:
    """Return P [layer, head, query, key], the attention that recipes predict for the text of a reading.

    By default, ``recipes`` are the result of :func:`find_recipes` for the model. ``text`` is the text as rules see
    it; the default has no annotation, so that only rules without annotation apply. Raises SettingError if the model has
    no recipes or they are of a model of another shape, and TextError for more than MAX_TOKENS tokens.
    """
    shares = _find_shares(attention, recipes)
    rows: Weights = predict(shares, text or make_rule_text(attention)).astype(np.float32)
    return rows.reshape(attention.weights.shape)


def explain_by_rule(attention: Attention, gold: Sentence | None = None, recipes: Recipes | None = None) -> Numbers:
    """Return [head, rule], the share of a reading's attention that each rule explains.

    It is the mean over rows of Σ_j min(A[i, j], P[i, j]) times the rule's part of P[i, j]; the sum over rules is the
    explained share. With the annotation of ``gold``, rules that need it apply, too; where no rule applies, uniform
    attention explains. Raises the errors of :func:`predict_attention`.
    """
    shares, text = _find_shares(attention, recipes), make_rule_text(attention, gold)
    weights = attention.weights.reshape(shares.shape[1], len(text), len(text))
    used_rules = np.union1d(np.flatnonzero(shares.any(axis=(0, 1))), UNIFORM_RULE)
    rules = make_matrices(text, used_rules)  # [rule, query, key]
    is_applied = rules.any(axis=(1, 2))
    used_rules, rules = used_rules[is_applied], rules[is_applied].transpose(1, 0, 2)  # [query, rule, key]
    applies = np.any(rules, axis=2, keepdims=True).transpose(0, 2, 1)  # [query, 1, rule]
    mixture = shares[text.classes][:, :, used_rules] * applies  # [query, head, rule]
    mixture[:, :, used_rules == UNIFORM_RULE] += mixture.sum(axis=2, keepdims=True) == 0
    mixture /= mixture.sum(axis=2, keepdims=True)
    predicted_rows = mixture @ rules  # [query, head, key]
    ratio = np.divide(
        np.minimum(weights.transpose(1, 0, 2), predicted_rows),
        predicted_rows,
        out=np.zeros(predicted_rows.shape),
        where=predicted_rows > 0,
    )
    result = np.zeros(shares.shape[1:])
    result[:, used_rules] = (mixture * (ratio @ rules.transpose(0, 2, 1))).sum(axis=0)
    return result / len(text)


def _find_shares(attention: Attention, recipes: Recipes | None) -> Numbers:
    """Return [class, head, rule], the shares of recipes that fit a reading.

    Raises the errors of :func:`predict_attention`.
    """
    recipes = recipes or require_recipes(attention.model, attention.revision)
    shape = list_layers(recipes.facts["layers"]), recipes.facts["heads"]
    if (attention.layer_numbers, attention.heads) != shape:
        raise SettingError(
            f"These recipes describe the heads of {recipes.facts['model']}.", "Give those of this model."
        )
    if len(attention.queries) > MAX_TOKENS:
        problem = f"The text has {len(attention.queries)} tokens; recipes predict at most {MAX_TOKENS}."
        raise TextError(problem, "Read a shorter text.")
    return get_cached_shares(recipes)


def unexplained(attention: Attention, recipes: Recipes | None = None, gold: Sentence | None = None) -> Attention:
    """Subtract the attention that recipes predict from a reading: A − P, [layer, head, query, key].

    The result is above 0 where a head attends more than its rules predict. Half the sum of absolute values in a row is
    its unexplained share.

    By default, ``recipes`` are the known recipes of the model; if others are given, the result records their digest.
    ``gold`` is the text as a sentence of a corpus; without it, rules that need annotation are left out. Raises
    ShapeError unless the reading has the complete weights of a text to itself, TextError for a sentence of other words,
    and otherwise as :func:`predict_attention` does.

    >>> mv.quantities.unexplained(mv.load("minilm").encode("The cat sat.")).quantity
    'unexplained'
    """
    check_kind(attention, Attention, *READING_KIND)
    is_full_self_attention = (
        attention.queries.unit == "pieces" and not attention.is_cross and not attention.hidden.any()
    )
    if attention.quantity != "weight" or not is_full_self_attention:
        raise ShapeError(
            "A recipe predicts the unchanged attention weights within one text; this reading has others.",
            "Use the reading as the model returned it.",
        )
    if gold is not None and not has_same_words(gold, attention):
        raise TextError(
            "The words of the annotated sentence differ from those of the text.", "Give the sentence that was read."
        )
    residual = attention.weights - predict_attention(attention, recipes, make_rule_text(attention, gold))
    step = UNEXPLAINED if gold is None else UNEXPLAINED_OF_GOLD
    step = step if recipes is None else Step(step.row._replace(means=digest(get_cached_shares(recipes))))
    return replace(attention, weights=residual, quantity="unexplained", made=(*attention.made, step))


def add_annotation(reading: Attention, gold: Sentence) -> Attention:
    """Recompute the result of :func:`unexplained` with the annotation of ``gold``.

    The reading is returned unchanged if the sentence has other words. The recipes are the result of
    :func:`find_recipes` for the model.
    """
    if UNEXPLAINED not in reading.made or not has_same_words(gold, reading):
        return reading
    weights = (
        reading.weights + predict_attention(reading) - predict_attention(reading, text=make_rule_text(reading, gold))
    )
    steps = (UNEXPLAINED_OF_GOLD if step == UNEXPLAINED else step for step in reading.made)
    return replace(reading, weights=weights, made=tuple(steps))


# ---- recipes of a model ----------------------------------------------------------------------------------------------


def find_recipes(model: str, revision: str = "") -> Recipes | None:
    """Find the recipes of a model's heads.

    Return the first in the folders that MHA_VIZ_PROFILES names, or else the bundled ones; None if there are no
    undamaged recipes for weights of this revision.
    """
    for file, facts in _list_own_recipes():
        is_named = facts.get("model") == model and revision in ("", facts.get("revision"))
        if is_named or (revision and revision == facts.get("revision")):  # the same weights under another name
            with suppress(CorpusError, OSError):
                return _load_cached(file.parent, file.stat().st_mtime_ns)
    return load_bundled_recipes(model, revision)


def require_recipes(model: str, revision: str = "") -> Recipes:
    """Find the recipes of a model as :func:`find_recipes` does.

    Raises SettingError, which names recipes for other weights, if there are none, and CorpusError if they are damaged.
    """
    recipes = find_recipes(model, revision)
    if recipes is not None:
        return recipes
    own_folder = "the folder that `mha-viz recipes CORPUS --model NAME --out DIR` writes"
    remedy = f"Name {own_folder} (recipes=, --recipes DIR, or {PROFILES_VARIABLE}=DIR)."
    for folder in (
        *(file.parent for file, facts in _list_own_recipes() if facts.get("model") == model),
        asset_path("recipes") / model,
    ):
        if (folder / FACTS_FILE).is_file():
            found_revision = load_recipes(folder).facts["revision"]
            problem = (
                f"The recipes of {model} in {folder} were measured on other weights ({found_revision}, not {revision})."
            )
            raise SettingError(problem, f"Open those weights, or give recipes measured on these. {remedy}")
    locations = " or ".join(["the app", *map(str, list_profile_folders())])
    raise SettingError(f"There are no recipes of the heads of {model} in {locations}.", remedy)


@lru_cache(maxsize=4)
def load_bundled_recipes(model: str, revision: str = "") -> Recipes | None:
    """Load the recipes of a model that comes with the app.

    Return None if it has none, or if they are of weights of another revision.
    """
    folder = asset_path("recipes") / model
    if folder.parent != asset_path("recipes") or not (folder / FACTS_FILE).is_file():
        return None
    recipes = load_recipes(folder)
    return recipes if revision in ("", recipes.facts["revision"]) else None


def _list_own_recipes() -> list[tuple[Path, Mapping[str, Any]]]:
    """List the files with facts of recipes in the folders that MHA_VIZ_PROFILES names, with their facts."""
    files = [file for folder in list_profile_folders() for file in find_files(folder, FACTS_FILE)]
    return [(file, _read_facts(file, file.stat().st_mtime_ns)) for file in files]


@lru_cache(maxsize=1024)
def _read_facts(file: Path, _: int) -> Mapping[str, Any]:
    """Read the facts of recipes; empty if they are damaged. The second argument is the file's time, for the cache."""
    try:
        facts = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


@lru_cache(maxsize=8)
def _load_cached(folder: Path, _: int) -> Recipes:
    """Load recipes. The second argument is the file's time, for the cache."""
    return load_recipes(folder)


@lru_cache(maxsize=8)
def get_cached_shares(recipes: Recipes) -> Numbers:
    """Return the :func:`make_shares` of recipes, cached and read-only, because every reading needs them."""
    shares = make_shares(recipes)
    shares.setflags(write=False)
    return shares


def list_head_recipes(model: str, revision: str = "") -> tuple[HeadRecipe, ...]:
    """Return the recipe of every head in order; none if :func:`find_recipes` finds none."""
    recipes = find_recipes(model, revision)
    return _list_head_recipes(recipes) if recipes else ()


@lru_cache(maxsize=8)
def _list_head_recipes(recipes: Recipes) -> tuple[HeadRecipe, ...]:
    """Return the recipe of every head, cached."""
    return tuple(describe_recipes(recipes))
