"""Sample all of a head's attention over a corpus: draw links, sort them by weight, and group them.

A link leads from a token to a token that it attends to. Links are drawn with probabilities proportional to their
weights, so each drawn link stands for the same share of the head's attention, and each tenth of them, by weight,
carries an equal part of it. (If all links were divided into tenths instead, nine tenths would have almost no weight.) A
link belongs to the rule of the head's recipe that predicts most of it, if the recipe predicts at least half of its
weight. Links that no rule explains are grouped by their query and key vectors.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.bundled_data import KIND_NAMES
from mha_viz.analysis.rules import FLOOR, RULES, UNIFORM_RULE, Numbers, RuleText, make_matrices, predict
from mha_viz.attention import Head, Weights
from mha_viz.corpus.conllu import format_conllu, read_conllu
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import SettingError
from mha_viz.numerals import percent

if TYPE_CHECKING:
    import pandas as pd

SEED = 0
TENTHS = 10
MIN_PREDICTED = 0.5  # a rule explains a link if the recipe predicts at least this share of its weight
MAX_PAIRS = 5  # most frequent pairs of words to list
MIN_COMMON_SHARE, MIN_COMMON = 0.25, 3  # least share of a group's links, and least number, for a common trait
UNEXPLAINED = "unexplained"
LINK_COLUMNS = (
    *("weight", "predicted", "tenth", "group", "rule", "query", "key", "query_pos", "key_pos", "distance"),
    *("same_form", "number", "sentence"),
)
GROUP_COLUMNS = (
    "group",
    "share",
    "links",
    "kind",
    "common",
    "pairs",
    *(f"tenth_{number + 1}" for number in range(TENTHS)),
)

DistanceMatrix = npt.NDArray[np.float64]  # [point, point]
GroupNumbers = npt.NDArray[np.intp]  # [point]: the number of its group

MAX_GROUPS = 6
MIN_SILHOUETTE = 0.05  # below this, links are one group; in many dimensions, all distances are nearly equal
MAX_ROUNDS = 50  # maximum rounds of k-medoids


class LinkSample:
    """A sample of ``size`` links, drawn with probabilities proportional to their weights.

    Draws are independent, so a strong link may be drawn twice. Each draw chooses the link with the smallest exponential
    time, where the rate of a link is its weight (as in Efraimidis & Spirakis 2006). The times in a sentence depend only
    on its number, so the sample is the same in whatever order or parts a corpus is read.
    """

    def __init__(self, size: int) -> None:
        self._times, self._weights = np.full(size, np.inf), np.zeros(size, np.float32)
        self._links = np.zeros((3, size), np.intp)

    def add(self, number: int, weights: Weights) -> None:
        """Add the links of the sentence with this number. ``weights`` is [query, key]."""
        query, key = np.nonzero(weights > 0)
        rates = weights[query, key].astype(float)
        rng, size = np.random.default_rng([SEED, number]), len(self._times)
        times = rng.standard_exponential(size) / rates.sum()  # smallest time among the links of the sentence
        drawn_indices = rng.choice(len(rates), size, p=rates / rates.sum())
        links = np.array([np.full(size, number), query[drawn_indices], key[drawn_indices]])
        self._keep_earliest(times, weights[query[drawn_indices], key[drawn_indices]], links)

    def merge(self, other: LinkSample) -> None:
        """Add the links of other sentences, from a sample with as many draws."""
        self._keep_earliest(other._times, other._weights, other._links)

    def _keep_earliest(self, times: Numbers, weights: Weights, links: npt.NDArray[np.intp]) -> None:
        """Keep, for each draw, the link with the smaller time."""
        is_earlier = times < self._times
        self._times = np.where(is_earlier, times, self._times)
        self._weights = np.where(is_earlier, weights, self._weights)
        self._links = np.where(is_earlier, links, self._links)

    def rows(self) -> Numbers:
        """Return [draw, 5]: the time, the weight, the number of the sentence, the query and the key."""
        return np.stack([self._times, self._weights, *self._links], axis=1)

    @classmethod
    def from_rows(cls, rows: Numbers) -> LinkSample:
        """Restore the sample from its :meth:`rows`."""
        sample = cls(len(rows))
        sample._keep_earliest(rows[:, 0], rows[:, 1].astype(np.float32), rows[:, 2:].T.astype(np.intp))
        return sample

    def __iter__(self) -> Iterator[tuple[float, int, int, int]]:
        """Yield the weight, sentence number, query and key of each link, strongest first."""
        order = np.lexsort((*self._links[::-1], -self._weights))
        for draw in order:
            number, query, key = self._links[:, draw].tolist()
            yield float(self._weights[draw]), number, query, key


class LinkEnd(NamedTuple):
    """A token at one end of a link.

    Attributes:
        token: its number in the text.
        word: the number of its word, None for a special token.
        form: the text of the word, or the name of the special token.
        pos: the word's part of speech.
    """

    token: int
    word: int | None
    form: str
    pos: str

    @classmethod
    def from_token(cls, text: RuleText, token: int) -> LinkEnd:
        """Describe the token with this number in a text."""
        word = text.pieces.words[token]
        form = text.pieces.names[token] if word is None else text.pieces.forms[word]
        return cls(token, word, form, "" if word is None else text.tags[word])


class DrawnLink(NamedTuple):
    """A drawn link.

    Attributes:
        weight: its attention weight.
        predicted: the weight that the recipe predicts for it.
        tenth: its tenth by weight; 0 is the strongest.
        rule: the rule that explains it, a number in RULES; −1 if none does.
        query, key: its ends.
        number: the number of the sentence in its corpus.
        sentence: the sentence.
    """

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
        """Tokens from the query to the key; negative if the key comes first."""
        return self.key.token - self.query.token

    @property
    def same_form(self) -> bool:
        """True if the ends belong to different words that are written the same, ignoring case."""
        return self.query.word != self.key.word and self.query.form.casefold() == self.key.form.casefold()

    @property
    def pair(self) -> str:
        """The forms of both ends, such as "“the” → “cat”"; words are in lower case."""
        return " → ".join(
            end.form if end.word is None else f"“{end.form.casefold()}”" for end in (self.query, self.key)
        )


@dataclass(frozen=True)
class LinkGroup:
    """Links that the same rule explains, or similar links that no rule explains.

    Attributes:
        name: the rule, or the most frequent pairs.
        kind: the kind of the rule, or "unexplained".
        share: the group's share of all links.
        links: the numbers of its links, strongest first.
        pairs: the most frequent pairs of words, with counts.
        common: traits that at least a quarter of the links have in common, the most frequent of each kind.
        tenths: [tenth], the number of links in each tenth by weight.
    """

    name: str
    kind: str
    share: float
    links: tuple[int, ...]
    pairs: tuple[tuple[str, int], ...]
    common: tuple[str, ...]
    tenths: tuple[int, ...]

    def spread(self, count: int) -> list[int]:
        """Return at most ``count`` of the links, spread evenly from the strongest to the weakest."""
        positions = np.linspace(0, len(self.links) - 1, min(count, len(self.links)))
        return [self.links[round(position)] for position in positions]


@dataclass(frozen=True, eq=False, repr=False)
class LinkGroups:
    """Grouped links of a head over a corpus.

    ``links`` are the strongest first, ``groups`` the largest first. ``points`` [side, link, 2], by method, are queries
    and keys projected to the plane.
    """

    model: str
    head: Head
    corpus: str
    sentences: int
    links: tuple[DrawnLink, ...]
    groups: tuple[LinkGroup, ...]
    points: dict[str, npt.NDArray[np.float32]]

    def table(self) -> pd.DataFrame:
        """Return a table with one row per link and the columns LINK_COLUMNS.

        Tenths count from 1, the strongest; distances are in tokens; sentences are numbered from 0.
        """
        import pandas as pd

        group_names = {link: group.name for group in self.groups for link in group.links}
        rows: list[tuple[Any, ...]] = []
        for number, link in enumerate(self.links):
            rule = RULES[link.rule].name if link.rule >= 0 else ""
            ends = link.query.form, link.key.form, link.query.pos, link.key.pos
            start = link.weight, link.predicted, link.tenth + 1, group_names[number], rule
            sentence = " ".join(link.sentence.forms)
            rows.append((*start, *ends, link.distance, link.same_form, link.number, sentence))
        return pd.DataFrame(rows, columns=list(LINK_COLUMNS))

    def table_of_groups(self) -> pd.DataFrame:
        """Return a table with one row per group, largest first, and the columns GROUP_COLUMNS."""
        import pandas as pd

        rows = [
            (
                *(group.name, group.share, len(group.links), group.kind, "; ".join(group.common)),
                *("; ".join(f"{pair} {count}" for pair, count in group.pairs), *group.tenths),
            )
            for group in self.groups
        ]
        return pd.DataFrame(rows, columns=list(GROUP_COLUMNS))

    def __repr__(self) -> str:
        shares = ", ".join(f"{group.name} {percent(group.share, 0)}" for group in self.groups[:3])
        return f"LinkGroups({self.model} {self.head} on {self.corpus}, {len(self.links)} links: {shares})"


def explain_links(sample: LinkSample, texts: Mapping[int, tuple[int, RuleText]], shares: Numbers) -> list[DrawnLink]:
    """Return the links of a sample with the rules that explain them.

    Args:
        sample: the drawn links.
        texts: the number of the sentence and its text, by the number that the sample uses.
        shares: the recipe of the head, [class, 1, rule].
    """
    sampled_links, predictions = list(sample), dict[int, _Prediction]()
    links = []
    for rank, (weight, text_number, query, key) in enumerate(sampled_links):
        number, text = texts[text_number]
        if text_number not in predictions:
            predictions[text_number] = _Prediction.from_text(text, shares)
        expected, rule = predictions[text_number].get_link(query, key)
        ends = LinkEnd.from_token(text, query), LinkEnd.from_token(text, key)
        rule = rule if expected >= MIN_PREDICTED * weight else -1
        tenth = rank * TENTHS // len(sampled_links)
        links.append(DrawnLink(weight, expected, tenth, rule, *ends, number, text.sentence))
    return links


class _Prediction(NamedTuple):
    """Weights predicted by a head's recipe for a text, [query, key], and the rule that contributes most to each."""

    weights: Numbers
    rules: npt.NDArray[np.intp]

    @classmethod
    def from_text(cls, text: RuleText, shares: Numbers) -> _Prediction:
        """Compute the prediction for a text from ``shares`` [class, 1, rule]."""
        rules = np.array(sorted({UNIFORM_RULE, *np.flatnonzero(shares.any(axis=(0, 1))).tolist()}))
        # [rule, query]; where no rule applies, "everywhere" remains
        mixture = shares[text.classes, 0][:, rules].T + FLOOR
        parts = make_matrices(text, rules) * mixture[:, :, None]
        return cls(predict(shares, text)[0], rules[parts.argmax(axis=0)])

    def get_link(self, query: int, key: int) -> tuple[float, int]:
        """Return the predicted weight and the rule of one link."""
        return float(self.weights[query, key]), int(self.rules[query, key])


def make_groups(links: Sequence[DrawnLink], vectors: npt.NDArray[np.float32]) -> tuple[LinkGroup, ...]:
    """Group the links. ``vectors`` [side, link, d_k] are their queries and keys."""
    links_by_rule: dict[int, list[int]] = {}
    for number, link in enumerate(links):
        links_by_rule.setdefault(link.rule, []).append(number)
    unexplained_links = np.array(links_by_rule.pop(-1, []), np.intp)
    groups = [_make_group(links, members, rule) for rule, members in links_by_rule.items()]
    if len(unexplained_links):
        from scipy.spatial.distance import cdist

        centred_vectors = vectors[:, unexplained_links] - vectors[:, unexplained_links].mean(axis=1, keepdims=True)
        # Queries and keys are scaled so that they count alike.
        scale = np.sqrt(np.square(centred_vectors).mean(axis=(1, 2), keepdims=True))
        features = np.concatenate(centred_vectors / np.maximum(scale, FLOOR), axis=-1)
        labels = cluster_points(cdist(features, features))
        groups += [_make_group(links, unexplained_links[labels == label].tolist()) for label in np.unique(labels)]
    return tuple(sorted(groups, key=lambda group: (-group.share, group.links)))


def _make_group(links: Sequence[DrawnLink], members: list[int], rule: int = -1) -> LinkGroup:
    """Describe the group of the links with these numbers; ``rule`` is −1 if no rule explains them."""
    group_links = [links[number] for number in members]
    pairs = tuple(Counter(link.pair for link in group_links).most_common(MAX_PAIRS))
    name = RULES[rule].name if rule >= 0 else ", ".join(pair for pair, _ in pairs)
    kind = KIND_NAMES[RULES[rule].kind] if rule >= 0 else UNEXPLAINED
    tenths = np.bincount([link.tenth for link in group_links], minlength=TENTHS)
    share, common = len(members) / len(links), list[str]()
    for describe in TRAITS:  # traits of at least a quarter of the links, and of three of them
        for trait, count in Counter(filter(None, map(describe, group_links))).most_common(1):
            if count >= max(MIN_COMMON, MIN_COMMON_SHARE * len(group_links)):
                common.append(f"{trait} ({count} of {len(group_links)})")
    return LinkGroup(name, kind, share, tuple(members), pairs, tuple(common), tuple(tenths.tolist()))


def _describe_tags(link: DrawnLink) -> str:
    """Describe a link by the parts of speech of its ends; "" if one is unknown."""
    ends = [end.pos or ("" if end.word is not None else end.form) for end in (link.query, link.key)]
    return " → ".join(ends) if all(ends) else ""


def _describe_distance(link: DrawnLink) -> str:
    """Describe a link by the distance between its ends; "" if one is a special token."""
    if link.query.word is None or link.key.word is None:
        return ""
    distance = abs(link.distance)
    tokens = "1 token" if distance == 1 else f"{distance} tokens"
    return "the token itself" if not distance else f"{tokens} {'after' if link.distance > 0 else 'before'}"


TRAITS: tuple[Callable[[DrawnLink], str], ...] = (
    _describe_tags,
    _describe_distance,
    lambda link: "the same form" if link.same_form else "",
)


# ---- In the plane ----------------------------------------------------------------------------------------------------


def project_by_pca(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Project queries and keys to the plane by principal components, [side, link, 2].

    Both are centred separately, and the axes are the two along which both together vary most. A vector that is added to
    all keys changes no weight, so centring the keys loses nothing.
    """
    centred_vectors = vectors - vectors.mean(axis=1, keepdims=True)
    flat = centred_vectors.reshape(-1, centred_vectors.shape[-1]).astype(np.float64)
    _, _, axes = np.linalg.svd(flat, full_matrices=False)
    axes = axes[:2] * np.sign(axes[:2, np.abs(axes[:2]).argmax(axis=1)].diagonal())[:, None]
    points = np.zeros((len(flat), 2), np.float32)
    points[:, : len(axes)] = flat @ axes.T
    return points.reshape(*vectors.shape[:2], 2)


def project_by_umap(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Project queries and keys to the plane by UMAP (McInnes et al. 2018), [side, link, 2].

    Raises SettingError if umap-learn is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning about TensorFlow, which is not needed
            from umap import UMAP
    except ImportError as error:
        raise SettingError("UMAP is not installed.", "Install it with pip install umap-learn, or use PCA.") from error
    centred_vectors = vectors - vectors.mean(axis=1, keepdims=True)
    embedding = UMAP(random_state=SEED, n_jobs=1).fit_transform(centred_vectors.reshape(-1, centred_vectors.shape[-1]))
    points: npt.NDArray[np.float32] = np.asarray(embedding, np.float32).reshape(*vectors.shape[:2], 2)
    return points


def project_by_all(vectors: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.float32]]:
    """Return the points by every method that is installed."""
    from importlib.util import find_spec

    return {"pca": project_by_pca(vectors), **({"umap": project_by_umap(vectors)} if find_spec("umap") else {})}


# ---- As JSON, for another process ------------------------------------------------------------------------------------


def pack_groups(groups: LinkGroups) -> dict[str, Any]:
    """Return the groups as JSON values."""
    sentences = {link.number: link.sentence for link in groups.links}
    return {
        "facts": [groups.model, list(groups.head), groups.corpus, groups.sentences],
        "links": [[*link[:4], [*link.query], [*link.key], link.number] for link in groups.links],
        "groups": [[getattr(group, field.name) for field in fields(group)] for group in groups.groups],
        "points": {method: points.tolist() for method, points in groups.points.items()},
        "numbers": list(sentences),
        "text": format_conllu(list(sentences.values())),
    }


def unpack_groups(values: Mapping[str, Any]) -> LinkGroups:
    """Restore the groups from the values that :func:`pack_groups` returned."""
    sentences = dict(zip(values["numbers"], read_conllu(values["text"]).sentences, strict=True))
    links = tuple(
        DrawnLink(weight, predicted, tenth, rule, LinkEnd(*query), LinkEnd(*key), number, sentences[number])
        for weight, predicted, tenth, rule, query, key, number in values["links"]
    )
    groups = tuple(
        LinkGroup(name, kind, share, tuple(members), tuple((pair, count) for pair, count in pairs), *map(tuple, lists))
        for name, kind, share, members, pairs, *lists in values["groups"]
    )
    points = {method: np.array(rows, np.float32) for method, rows in values["points"].items()}
    model, head, corpus, count = values["facts"]
    return LinkGroups(model, Head(*head), corpus, count, links, groups, points)


def find_medoids(distances: DistanceMatrix, count: int) -> list[int]:
    """Return the medoids of at most ``count`` groups; fewer if there are fewer distinct points."""
    centres = [int(distances.sum(axis=0).argmin())]
    while len(centres) < count and (nearest := distances[:, centres].min(axis=1)).any():
        centres.append(int(np.minimum(distances, nearest[:, None]).sum(axis=0).argmin()))
    for _ in range(MAX_ROUNDS):
        labels = distances[:, centres].argmin(axis=1)
        groups = [np.flatnonzero(labels == number) for number in range(len(centres))]
        new_centres = [int(group[distances[np.ix_(group, group)].sum(axis=0).argmin()]) for group in groups]
        if new_centres == centres:
            break
        centres = new_centres
    return centres


def compute_silhouette(distances: DistanceMatrix, labels: GroupNumbers) -> float:
    """Return the mean silhouette over points, −1 to 1 (Rousseeuw 1987).

    The silhouette of a point is (b − a) / max(a, b), where a is its mean distance to the other points of its group and
    b that to the nearest other group; it is 0 for a point that is alone in its group. ``labels`` must have two groups
    or more.
    """
    membership = np.eye(labels.max() + 1)[labels]  # [point, group]
    sums, sizes = distances @ membership, membership.sum(axis=0)
    is_single = sizes[labels] == 1
    a = sums[membership > 0] / np.maximum(sizes[labels] - 1, 1)
    b = np.where(membership > 0, np.inf, sums / sizes).min(axis=1)
    widest = np.maximum(a, b)
    widths = np.divide(b - a, widest, out=np.zeros(len(labels)), where=(widest > 0) & ~is_single)
    return float(widths.mean())


def cluster_points(distances: DistanceMatrix, max_groups: int = MAX_GROUPS) -> GroupNumbers:
    """Return the group of each point.

    The number of groups, two to ``max_groups``, is the one with the largest silhouette. If that silhouette is below
    MIN_SILHOUETTE, all points form one group.
    """
    best_width, result = MIN_SILHOUETTE, np.zeros(len(distances), np.intp)
    for count in range(2, min(max_groups, len(distances) - 1) + 1):
        labels = distances[:, find_medoids(distances, count)].argmin(axis=1)
        if labels.any() and (width := compute_silhouette(distances, labels)) > best_width:
            best_width, result = width, labels
    return result
