"""Groups of points by their distances: k-medoids, with as many groups as the silhouette suggests.

Kaufman & Rousseeuw 1990, "Finding Groups in Data", chapter 2: medoids are chosen greedily, then moved to the middle of
their groups until they stay (Park & Jun 2009). Nothing is drawn at random.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

DistanceMatrix = npt.NDArray[np.float64]  # [point, point]
GroupNumbers = npt.NDArray[np.intp]  # [point]: the number of its group

MOST_GROUPS = 6
LEAST_SILHOUETTE = 0.05  # groups that are less apart are one; in many dimensions, all distances are nearly equal
MOVES = 50


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
