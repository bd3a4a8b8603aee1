"""What a head does with all of its attention, over a corpus: links drawn from the strongest to the weakest, in groups.

A link leads from a token to one that it looks at. Links are drawn with probabilities proportional to their weights:
each stands for the same share of the head's attention, and ten tenths by weight carry equal parts of it. (Of tenths of
all links, nine would have nearly no weight.) A link belongs to the rule of the head's recipe that predicts most of it,
if the recipe predicts at least half of its weight. Those that no rule explains are grouped by the query and the key
between which they lead.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.rules import EVEN, FLOOR, RULES, Numbers, RuleText, matrices, prediction
from mha_viz.analysis.shipped import KIND_OF
from mha_viz.attention import Head, Weights
from mha_viz.corpus.conllu import as_conllu, read_conllu
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import SettingError
from mha_viz.numerals import percent

if TYPE_CHECKING:
    import pandas as pd

SEED = 0
TENTHS = 10
TAKEN = 0.5  # of its weight, which a recipe has to predict
NAMED = 5  # commonest pairs of words
COMMON, LEAST_COMMON = 0.25, 3  # share of a group's links, and their number, that have something in common
UNEXPLAINED = "unexplained"
LINKS = (
    *("weight", "predicted", "tenth", "group", "rule", "query", "key", "query_pos", "key_pos", "distance"),
    *("same_form", "number", "sentence"),
)
GROUPS = ("group", "share", "links", "kind", "common", "pairs", *(f"tenth_{number + 1}" for number in range(TENTHS)))

DistanceMatrix = npt.NDArray[np.float64]  # [point, point]
GroupNumbers = npt.NDArray[np.intp]  # [point]: the number of its group

MOST_GROUPS = 6
LEAST_SILHOUETTE = 0.05  # groups that are less apart are one; in many dimensions, all distances are nearly equal
MOVES = 50


class LinkSample:
    """``most`` draws, each of one link among all, with probabilities proportional to their weights; a strong link may
    be drawn twice. In each draw it is the link that comes first if each arrives after an exponential time whose rate is
    its weight (as Efraimidis & Spirakis 2006). The times in a sentence depend on its number alone, so that the links do
    not depend on the order or on parts in which a corpus is read."""

    def __init__(self, most: int) -> None:
        self._times, self._weights = np.full(most, np.inf), np.zeros(most, np.float32)
        self._places = np.zeros((3, most), np.intp)

    def add(self, number: int, weights: Weights) -> None:
        """The links of the sentence with this number, weights [query, key]."""
        query, key = np.nonzero(weights > 0)
        rates = weights[query, key].astype(float)
        rng, most = np.random.default_rng([SEED, number]), len(self._times)
        times = rng.standard_exponential(most) / rates.sum()  # of the first link of the sentence
        drawn = rng.choice(len(rates), most, p=rates / rates.sum())
        places = np.array([np.full(most, number), query[drawn], key[drawn]])
        self._join(times, weights[query[drawn], key[drawn]], places)

    def merge(self, other: LinkSample) -> None:
        """The links of other sentences, of as many draws."""
        self._join(other._times, other._weights, other._places)

    def _join(self, times: Numbers, weights: Weights, places: npt.NDArray[np.intp]) -> None:
        earlier = times < self._times
        self._times = np.where(earlier, times, self._times)
        self._weights = np.where(earlier, weights, self._weights)
        self._places = np.where(earlier, places, self._places)

    def rows(self) -> Numbers:
        """Return [draw, 5]: the time, the weight, the number of the sentence, the query and the key."""
        return np.stack([self._times, self._weights, *self._places], axis=1)

    @classmethod
    def of_rows(cls, rows: Numbers) -> LinkSample:
        """Return the sample with these :meth:`rows`."""
        sample = cls(len(rows))
        sample._join(rows[:, 0], rows[:, 1].astype(np.float32), rows[:, 2:].T.astype(np.intp))
        return sample

    def __iter__(self) -> Iterator[tuple[float, int, int, int]]:
        """Weight, number of the sentence, query and key of each link, the strongest first."""
        order = np.lexsort((*self._places[::-1], -self._weights))
        for at in order:
            number, query, key = self._places[:, at].tolist()
            yield float(self._weights[at]), number, query, key


class LinkEnd(NamedTuple):
    """A token at the end of a link: its number in the text, its word's number, None for a special token, what is
    written, and the word's part of speech."""

    token: int
    word: int | None
    form: str
    pos: str

    @classmethod
    def of(cls, text: RuleText, token: int) -> LinkEnd:
        """The token of a text with this number."""
        word = text.pieces.words[token]
        named = text.pieces.names[token] if word is None else text.pieces.forms[word]
        return cls(token, word, named, "" if word is None else text.tags[word])


class DrawnLink(NamedTuple):
    """A link with the weight that the recipe predicts of it, its tenth by weight, 0 the strongest, and the rule that
    takes it, a number in RULES, −1 if it is unexplained. ``number``: of the sentence in its corpus."""

    weight: float
    predicted: float
    tenth: int
    rule: int
    query: LinkEnd
    key: LinkEnd
    number: int
    sentence: Sentence

    @property
    def distance(self) -> int:
        """Tokens from the query to the key; below 0 if it is before."""
        return self.key.token - self.query.token

    @property
    def same_form(self) -> bool:
        """Whether two different words, or two pieces of them, are written the same."""
        return self.query.word != self.key.word and self.query.form.casefold() == self.key.form.casefold()

    @property
    def pair(self) -> str:
        """ "“the” → “cat”"."""
        return " → ".join(
            end.form if end.word is None else f"“{end.form.casefold()}”" for end in (self.query, self.key)
        )


@dataclass(frozen=True)
class LinkGroup:
    """Links of one rule, or unexplained ones that are alike: their numbers, the strongest first, and their ``share`` of
    all. ``kind``: the rule's, or "unexplained"; ``pairs``: the commonest pairs of words, with counts; ``common``: what
    at least a quarter have in common; ``tenths`` [tenth]: how many links are in each tenth by weight."""

    name: str
    kind: str
    share: float
    links: tuple[int, ...]
    pairs: tuple[tuple[str, int], ...]
    common: tuple[str, ...]
    tenths: tuple[int, ...]

    def spread(self, most: int) -> list[int]:
        """At most ``most`` of its draws, evenly from the strongest to the weakest."""
        places = np.linspace(0, len(self.links) - 1, min(most, len(self.links)))
        return [self.links[round(place)] for place in places]


@dataclass(frozen=True, eq=False, repr=False)
class LinkGroups:
    """``links``: the strongest first; ``groups``: the largest first; ``points`` by method, [side, link, 2]: queries and
    keys in the plane."""

    model: str
    head: Head
    corpus: str
    sentences: int
    links: tuple[DrawnLink, ...]
    groups: tuple[LinkGroup, ...]
    points: dict[str, npt.NDArray[np.float32]]

    def table(self) -> pd.DataFrame:
        """One row per link, with LINKS: tenths from 1, the strongest; distance in tokens; number of the sentence from
        0."""
        import pandas as pd

        named = {link: group.name for group in self.groups for link in group.links}
        rows: list[tuple[Any, ...]] = []
        for at, link in enumerate(self.links):
            rule = RULES[link.rule].name if link.rule >= 0 else ""
            ends = link.query.form, link.key.form, link.query.pos, link.key.pos
            start = link.weight, link.predicted, link.tenth + 1, named[at], rule
            sentence = " ".join(link.sentence.forms)
            rows.append((*start, *ends, link.distance, link.same_form, link.number, sentence))
        return pd.DataFrame(rows, columns=list(LINKS))

    def table_of_groups(self) -> pd.DataFrame:
        """One row per group, with GROUPS, the largest first."""
        import pandas as pd

        rows = [
            (
                *(group.name, group.share, len(group.links), group.kind, "; ".join(group.common)),
                *("; ".join(f"{pair} {count}" for pair, count in group.pairs), *group.tenths),
            )
            for group in self.groups
        ]
        return pd.DataFrame(rows, columns=list(GROUPS))

    def __repr__(self) -> str:
        shares = ", ".join(f"{group.name} {percent(group.share, 0)}" for group in self.groups[:3])
        return f"LinkGroups({self.model} {self.head} on {self.corpus}, {len(self.links)} links: {shares})"


def drawn_links(sample: LinkSample, texts: Mapping[int, tuple[int, RuleText]], shares: Numbers) -> list[DrawnLink]:
    """The links of a sample with the rules that take them. ``texts``: by the number that the sample has of them, with
    the number of the sentence; ``shares``: of one head, [class, 1, rule]."""
    drawn, predicted = list(sample), dict[int, _Predicted]()
    links = []
    for rank, (weight, place, query, key) in enumerate(drawn):
        number, text = texts[place]
        if place not in predicted:
            predicted[place] = _Predicted.of(text, shares)
        expected, rule = predicted[place].at(query, key)
        ends = LinkEnd.of(text, query), LinkEnd.of(text, key)
        rule = rule if expected >= TAKEN * weight else -1
        links.append(DrawnLink(weight, expected, rank * TENTHS // len(drawn), rule, *ends, number, text.sentence))
    return links


class _Predicted(NamedTuple):
    """What the recipe of a head predicts of a text, [query, key], and the rule with the largest part in that."""

    weights: Numbers
    rules: npt.NDArray[np.intp]

    @classmethod
    def of(cls, text: RuleText, shares: Numbers) -> _Predicted:
        rules = np.array(sorted({EVEN, *np.flatnonzero(shares.any(axis=(0, 1))).tolist()}))
        mixed = shares[text.classes, 0][:, rules].T + FLOOR  # [rule, query]; "everywhere" is left where none applies
        parts = matrices(text, rules) * mixed[:, :, None]
        return cls(prediction(shares, text)[0], rules[parts.argmax(axis=0)])

    def at(self, query: int, key: int) -> tuple[float, int]:
        """Of one link."""
        return float(self.weights[query, key]), int(self.rules[query, key])


def groups_of(links: Sequence[DrawnLink], vectors: npt.NDArray[np.float32]) -> tuple[LinkGroup, ...]:
    """The groups of links, whose queries and keys are ``vectors`` [side, link, d_k]."""
    by_rule: dict[int, list[int]] = {}
    for number, link in enumerate(links):
        by_rule.setdefault(link.rule, []).append(number)
    left = np.array(by_rule.pop(-1, []), np.intp)
    groups = [_group(links, members, rule) for rule, members in by_rule.items()]
    if len(left):
        from scipy.spatial.distance import cdist

        centred = vectors[:, left] - vectors[:, left].mean(axis=1, keepdims=True)
        scale = np.sqrt(np.square(centred).mean(axis=(1, 2), keepdims=True))  # the same for queries and keys
        both = np.concatenate(centred / np.maximum(scale, FLOOR), axis=-1)
        labels = grouped(cdist(both, both))
        groups += [_group(links, left[labels == label].tolist()) for label in np.unique(labels)]
    return tuple(sorted(groups, key=lambda group: (-group.share, group.links)))


def _group(links: Sequence[DrawnLink], members: list[int], rule: int = -1) -> LinkGroup:
    some = [links[number] for number in members]
    pairs = tuple(Counter(link.pair for link in some).most_common(NAMED))
    name = RULES[rule].name if rule >= 0 else ", ".join(pair for pair, _ in pairs)
    kind = KIND_OF[RULES[rule].kind] if rule >= 0 else UNEXPLAINED
    tenths = np.bincount([link.tenth for link in some], minlength=TENTHS)
    share, common = len(members) / len(links), list[str]()
    for describe in TRAITS:  # what at least a quarter of the links, and three of them, have in common
        trait, count = Counter(map(describe, some)).most_common(1)[0]
        if trait and count >= max(LEAST_COMMON, COMMON * len(some)):
            common.append(f"{trait} ({count} of {len(some)})")
    return LinkGroup(name, kind, share, tuple(members), pairs, tuple(common), tuple(tenths.tolist()))


def _kinds(link: DrawnLink) -> str:
    ends = [end.pos or ("" if end.word is not None else end.form) for end in (link.query, link.key)]
    return " → ".join(ends) if all(ends) else ""


def _apart(link: DrawnLink) -> str:
    if link.query.word is None or link.key.word is None:
        return ""
    far = abs(link.distance)
    tokens = "1 token" if far == 1 else f"{far} tokens"
    return "the token itself" if not far else f"{tokens} {'after' if link.distance > 0 else 'before'}"


TRAITS: tuple[Callable[[DrawnLink], str], ...] = (
    _kinds,
    _apart,
    lambda link: "the same form" if link.same_form else "",
)


# ---- In the plane ----------------------------------------------------------------------------------------------------


def by_pca(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """[side, link, 2]: queries and keys, each around their mean, on the two axes along which both together vary most.
    A vector that is added to all keys changes no weight, so that nothing is lost by the means of the keys."""
    centred = vectors - vectors.mean(axis=1, keepdims=True)
    flat = centred.reshape(-1, centred.shape[-1]).astype(np.float64)
    _, _, axes = np.linalg.svd(flat, full_matrices=False)
    axes = axes[:2] * np.sign(axes[:2, np.abs(axes[:2]).argmax(axis=1)].diagonal())[:, None]
    points = np.zeros((len(flat), 2), np.float32)
    points[:, : len(axes)] = flat @ axes.T
    return points.reshape(*vectors.shape[:2], 2)


def by_umap(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The same by UMAP (McInnes et al. 2018). Raises SettingError if umap-learn is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about TensorFlow, which is not needed
            from umap import UMAP
    except ImportError as error:
        raise SettingError("UMAP is not installed.", "Install it with pip install umap-learn, or use PCA.") from error
    centred = vectors - vectors.mean(axis=1, keepdims=True)
    drawn = UMAP(random_state=SEED, n_jobs=1).fit_transform(centred.reshape(-1, centred.shape[-1]))
    points: npt.NDArray[np.float32] = np.asarray(drawn, np.float32).reshape(*vectors.shape[:2], 2)
    return points


def maps(vectors: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.float32]]:
    """The points by every method that is installed."""
    from importlib.util import find_spec

    return {"pca": by_pca(vectors), **({"umap": by_umap(vectors)} if find_spec("umap") else {})}


# ---- As JSON, for another process ------------------------------------------------------------------------------------


def packed(groups: LinkGroups) -> dict[str, Any]:
    """All of it as JSON values."""
    sentences = {link.number: link.sentence for link in groups.links}
    return {
        "facts": [groups.model, list(groups.head), groups.corpus, groups.sentences],
        "links": [[*link[:4], [*link.query], [*link.key], link.number] for link in groups.links],
        "groups": [[getattr(group, field.name) for field in fields(group)] for group in groups.groups],
        "points": {method: points.tolist() for method, points in groups.points.items()},
        "numbers": list(sentences),
        "text": as_conllu(list(sentences.values())),
    }


def unpacked(values: Mapping[str, Any]) -> LinkGroups:
    """What was packed."""
    sentences = dict(zip(values["numbers"], read_conllu(values["text"]).sentences, strict=True))
    links = tuple(
        DrawnLink(weight, predicted, tenth, rule, LinkEnd(*query), LinkEnd(*key), number, sentences[number])
        for weight, predicted, tenth, rule, query, key, number in values["links"]
    )
    groups = tuple(
        LinkGroup(name, kind, share, tuple(members), tuple((pair, count) for pair, count in pairs), *map(tuple, rest))
        for name, kind, share, members, pairs, *rest in values["groups"]
    )
    points = {method: np.array(of, np.float32) for method, of in values["points"].items()}
    model, head, corpus, count = values["facts"]
    return LinkGroups(model, Head(*head), corpus, count, links, groups, points)


def medoids(distances: DistanceMatrix, count: int) -> list[int]:
    """The points in the middle of at most ``count`` groups; fewer if no more points differ."""
    middle = [int(distances.sum(axis=0).argmin())]
    while len(middle) < count and (nearest := distances[:, middle].min(axis=1)).any():
        middle.append(int(np.minimum(distances, nearest[:, None]).sum(axis=0).argmin()))
    for _ in range(MOVES):
        labels = distances[:, middle].argmin(axis=1)
        groups = [np.flatnonzero(labels == number) for number in range(len(middle))]
        moved = [int(group[distances[np.ix_(group, group)].sum(axis=0).argmin()]) for group in groups]
        if moved == middle:
            break
        middle = moved
    return middle


def silhouette(distances: DistanceMatrix, labels: GroupNumbers) -> float:
    """The mean over points of (b − a) / max(a, b), −1…1, with a the mean distance to the others of its group and b that
    to the nearest other group; 0 for a point that is alone (Rousseeuw 1987). ``labels``: two groups or more."""
    member = np.eye(labels.max() + 1)[labels]  # [point, group]
    sums, sizes = distances @ member, member.sum(axis=0)
    alone = sizes[labels] == 1
    a = sums[member > 0] / np.maximum(sizes[labels] - 1, 1)
    b = np.where(member > 0, np.inf, sums / sizes).min(axis=1)
    widest = np.maximum(a, b)
    widths = np.divide(b - a, widest, out=np.zeros(len(labels)), where=(widest > 0) & ~alone)
    return float(widths.mean())


def grouped(distances: DistanceMatrix, most: int = MOST_GROUPS) -> GroupNumbers:
    """The group of each point: of two to ``most`` groups the number with the largest silhouette, or one if that is
    under LEAST_SILHOUETTE."""
    best, result = LEAST_SILHOUETTE, np.zeros(len(distances), np.intp)
    for count in range(2, min(most, len(distances) - 1) + 1):
        labels = distances[:, medoids(distances, count)].argmin(axis=1)
        if labels.any() and (width := silhouette(distances, labels)) > best:
            best, result = width, labels
    return result
