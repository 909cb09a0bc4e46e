"""Two looks at an object: first the pooled heads, then, if worthwhile, the nearest known objects.

The first look pools the probabilities of several models, the heads. The second adds the evidence of
exact comparisons with a few candidates to the same pool, with weights of its own:

    p(c | x) ∝ exp(Σ_h a_h log p_h(c | x) + (b + b′ q(x)) e_c(x)),   a, b, b′ ≥ 0,

where the closeness q of the nearest object shows how far the evidence e can be trusted. All
weights, and which objects get a second look, are learned from held-out objects. The problem is
convex. A useless model gets weight 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import scipy  # scipy.optimize loads on first use; predictions never need it
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from .shapes import (
    CODE,
    NON_NEGATIVE,
    POSITIVE,
    ROW,
    SHARE,
    Array,
    Codes,
    Indices,
    Kind,
    Mask,
    Within,
)

# -- the first look: a log-linear pool -------------------------------------------------------------

RIDGE = 20.0
"""Precision of the prior on each weight, in objects; chosen on the protein and aural-sonar data."""


def pooled(weights: Array, log_proba: Sequence[Array]) -> Array:
    """Return the log-probabilities (n, C) of the pool.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.looks import pooled
    >>> sure, unsure = np.log([[0.9, 0.1]]), np.log([[0.5, 0.5]])
    >>> np.exp(pooled(np.array([1.0, 1.0]), [sure, unsure])).round(2)
    array([[0.9, 0.1]])
    """
    total = np.zeros_like(log_proba[0])
    for a, part in zip(weights, log_proba, strict=True):
        if a:
            total += a * part
    found: Array = log_softmax(total, axis=1)
    return found


def fit_pool(
    log_proba: Sequence[Array],
    codes: Codes,
    prior: Array,
    weights: Array | None = None,
    ridge: float = RIDGE,
) -> Array:
    """Return the weights a (H,) for H arrays (n, C) of held-out log-probabilities.

    Minimises Σ_i w_i (−log p(code_i)) + ½ ridge ‖a − prior‖² over a ≥ 0. O(H·n·C) per step.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.looks import fit_pool
    >>> codes = np.arange(300) % 2
    >>> right = np.log(np.where(np.eye(2)[codes] == 1, 0.9, 0.1))
    >>> idle = np.log(np.full((300, 2), 0.5))
    >>> bool(fit_pool([right, idle], codes, np.full(2, 0.5))[0] > 1)
    True
    """
    stacked = np.stack(log_proba)  # (H, n, C)
    rows = np.arange(len(codes))
    own = stacked[:, rows, codes]  # (H, n)
    w = np.ones(len(codes)) if weights is None else weights

    def loss(a: Array) -> tuple[float, Array]:
        mixed = log_softmax(np.tensordot(a, stacked, 1), axis=1)
        expected = np.einsum("nc,hnc->hn", np.exp(mixed), stacked)
        away = a - prior
        value = -w @ mixed[rows, codes] + 0.5 * ridge * away @ away
        return float(value), (expected - own) @ w + ridge * away

    result = scipy.optimize.minimize(
        loss,
        prior,
        jac=True,
        bounds=[(0, None)] * len(stacked),
        method="L-BFGS-B",
        options={"ftol": 1e-14, "gtol": 1e-7 * float(w.sum())},
    )
    return np.asarray(result.x, dtype=np.float64)


@dataclass(frozen=True)
class Pool:
    """The first look: the weights of the heads, and how many held-out objects they come from."""

    weights: Annotated[Array, "H", NON_NEGATIVE]
    n_seen: Annotated[float, Within(0.0, infinite=(np.inf,))]

    def __call__(self, opinions: Sequence[Array]) -> Array:
        """Return the pooled log-probabilities (n, C) of the heads, before they are bounded."""
        return pooled(self.weights, opinions)

    def bounded(self, log_proba: Array) -> Array:
        """Return log-probabilities no more extreme than the held-out objects can support.

        Mixes in the uniform distribution with a share of 1/(n + 1): even n objects without an error
        do not show that the error rate is below 1/n. The most certain results round to the same
        number.
        """
        if np.isinf(self.n_seen):
            return log_proba
        share = 1.0 / (self.n_seen + 1.0)
        return np.log((1 - share) * np.exp(log_proba) + share / log_proba.shape[1])


# -- the second look: evidence from the nearest known objects --------------------------------------
#
# Let d₁² ≤ d₂² ≤ … be the squared dissimilarities of an object to its candidates, from exact
# comparisons. For similarities they are −2s, because the object's own term cancels below. With
# weights w_j = exp(−½ (d_j² − d₁²)/h²) the evidence of class c is
#
#     e_c = log((Σ_{j of class c} w_j + ½/C) / (Σ_j w_j + ½)),
#
# where a candidate that stands for several objects, such as copies, has as many votes.
#
# The bandwidth adapts to the object: h² = f (d_K² − d₁²), where K is the `LOCAL`-th neighbour. So
# the evidence is unitless, and works equally well where objects are dense and where they are
# sparse. It does not depend on how near the nearest object is, yet the label of a near copy
# deserves more trust than that of a remote relative: `Closeness` ranks d₁² among those of held-out
# objects, which is unitless too.

BANDWIDTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Values of f to try: from the nearest neighbour alone to a vote of all candidates."""

LOCAL = 10
"""The bandwidth of an object is set by its distance to this neighbour."""

TAILS = (0.05, 0.1, 0.2, 0.4, 1.0)
"""Values of `tail` to try: the share of held-out objects that are too remote for closeness 1."""

PRIOR_MASS = 0.5
"""Weight of a pseudo-neighbour spread over all classes, which bounds the evidence."""


def squared(values: Array, kind: Kind) -> Array:
    """Return squared dissimilarities, up to a constant per row, from values of the measure."""
    return np.square(values) if kind == "dissimilarity" else -2.0 * values


def class_evidence(
    apart: Array,
    codes: Codes,
    n_classes: int,
    bandwidth: float,
    numbers: Array | None = None,
) -> Array:
    """Return the evidence (n, C) of neighbours with squared dissimilarities and classes (n, k).

    `numbers` (n, k) tells how many objects each neighbour stands for. A neighbour at an infinite
    distance has no vote. O(n·k log k + n·C).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.looks import class_evidence
    >>> apart, codes = np.array([[0.1, 0.2, 3.0]]), np.array([[0, 0, 1]])
    >>> np.exp(class_evidence(apart, codes, 2, 1.0)).round(2)
    array([[0.72, 0.28]])
    """
    n, k = apart.shape
    found = np.full((n, n_classes), PRIOR_MASS / n_classes)
    if k:
        nearest = apart.min(axis=1, keepdims=True)
        gap = apart - np.where(np.isfinite(nearest), nearest, 0.0)
        widest = np.where(np.isfinite(gap), gap, 0.0).max(axis=1)
        local = np.partition(gap, min(LOCAL, k - 1), axis=1)[:, min(LOCAL, k - 1)]
        local = np.where(np.isfinite(local), local, widest)
        # neighbours at the same distance, e.g. copies, have equal votes
        h2 = bandwidth * np.where(local > 0, local, np.maximum(widest, 1.0))
        weights = np.exp(-0.5 * gap / h2[:, None])
        if numbers is not None:
            weights *= numbers
        np.add.at(found, (np.repeat(np.arange(n), k), codes.ravel()), weights.ravel())
    return np.log(found / found.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Closeness:
    """How near the nearest known object is: 1 at usual distances, towards 0 for remote objects.

    Let r(d²) be the share of held-out objects whose nearest known object is at least as far away.
    The closeness is min(r/tail, 1), interpolated linearly between the held-out objects.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.looks import Closeness
    >>> Closeness.of(np.arange(10.0), tail=0.4)(np.array([0.0, 5.0, 7.0, 8.0, 99.0])).round(2)
    array([1.  , 1.  , 0.75, 0.5 , 0.25])
    """

    apart: Annotated[Array, "ranks"]  # squared dissimilarities, ascending
    share: Annotated[Array, "ranks", SHARE]  # the closeness there

    @classmethod
    def of(cls, nearest: Array, tail: float, weights: Array | None = None) -> Closeness:
        """Return the closeness, from squared dissimilarities (n,) of held-out objects."""
        w = np.ones(len(nearest)) if weights is None else weights
        apart, place = np.unique(nearest, return_inverse=True)
        at_least = np.cumsum(np.bincount(place, weights=w)[::-1])[::-1]
        share = np.minimum(at_least / (tail * at_least[0]), 1.0)
        first = max(int(np.count_nonzero(share == 1.0)) - 1, 0)  # all before it are 1
        return cls(apart[first:], share[first:])

    def __call__(self, nearest: Array) -> Array:
        """Return the closeness (n,) from the squared dissimilarities to the nearest object."""
        found: Array = np.interp(nearest, self.apart, self.share)
        return found


FAR = 1e300
"""Squared dissimilarity to a neighbour that does not exist."""


@dataclass(frozen=True)
class Neighbours:
    """Exact comparisons with known objects: squared dissimilarities and class codes (n, k)."""

    apart: Array
    codes: Codes
    columns: Indices | None = None  # (n, k): positions among the compared objects of all groups
    numbers: Array | None = None  # (n, k): how many objects each one stands for; None for one each

    @classmethod
    def nearest(cls, parts: Sequence[tuple[Array, Codes, Array]], k: int) -> Neighbours:
        """Return the k nearest of several groups of compared objects, nearest first.

        A group consists of squared dissimilarities, class codes and numbers.
        """
        apart = np.concatenate([part for part, _, _ in parts], axis=1)
        codes = np.concatenate([part for _, part, _ in parts], axis=1)
        numbers = np.concatenate([part for _, _, part in parts], axis=1)
        order = np.argsort(apart, axis=1, kind="stable")[:, :k]
        return cls(
            np.take_along_axis(apart, order, axis=1),
            np.take_along_axis(codes, order, axis=1),
            order,
            np.take_along_axis(numbers, order, axis=1),
        )

    @property
    def least(self) -> Array:
        """The squared dissimilarity to the nearest object (n,); 0 if there is none."""
        found = self.apart.min(axis=1, initial=np.inf)
        return np.where(np.isfinite(found), found, 0.0)

    def spread(self, rows: Indices, n: int) -> Neighbours:
        """Return the neighbours of n objects, of which these are the rows; the others have none."""
        if len(rows) == n:
            return self
        k = self.apart.shape[1]
        apart, codes = np.full((n, k), FAR), np.zeros((n, k), dtype=np.intp)
        apart[rows], codes[rows] = self.apart, self.codes
        columns, numbers = np.zeros((n, k), dtype=np.intp), np.ones((n, k))
        if self.columns is not None:
            columns[rows] = self.columns
        if self.numbers is not None:
            numbers[rows] = self.numbers
        return Neighbours(apart, codes, columns, numbers)

    def at(self, rows: NDArray[Any]) -> Neighbours:
        """Return the neighbours of some of the objects."""
        columns, numbers = (None if x is None else x[rows] for x in (self.columns, self.numbers))
        return Neighbours(self.apart[rows], self.codes[rows], columns, numbers)

    def evidence(self, n_classes: int, bandwidth: float) -> Array:
        """Return the evidence of these objects (n, C)."""
        return class_evidence(self.apart, self.codes, n_classes, bandwidth, self.numbers)


@dataclass(frozen=True)
class EvidencePool:
    """The second look: weights of the heads, of the evidence, and of evidence times closeness."""

    weights: Annotated[Array, "H+2", NON_NEGATIVE]
    bandwidth: Annotated[float, POSITIVE]
    closeness: Closeness

    def __call__(self, opinions: Sequence[Array], near: Neighbours) -> Array:
        """Return the pooled log-probabilities (n, C) of heads and evidence, before bounding."""
        return pooled(self.weights, [*opinions, *self.terms(near, opinions[0].shape[1])])

    def evidence(self, near: Neighbours, n_classes: int) -> Array:
        """Return the contribution of the neighbours to the pool (n, C): evidence times weight."""
        plain, close = self.terms(near, n_classes)
        return self.weights[-2] * plain + self.weights[-1] * close

    def terms(self, near: Neighbours, n_classes: int) -> tuple[Array, Array]:
        """Return the evidence (n, C), and the evidence times the closeness."""
        evidence = near.evidence(n_classes, self.bandwidth)
        return evidence, evidence * self.closeness(near.least)[:, None]


# -- candidates: training objects with similar landmark values and features ------------------------
#
# Similar objects have similar values to every landmark. The first look has computed these values
# anyway, so they serve as coordinates in which neighbours can be searched without comparing any
# further pair. Values are replaced by their signed square roots, which spreads the small ones. Each
# column is then standardised, and the rows are projected onto their leading principal directions.
# The features of look zero, if there are any, provide as many coordinates. Both parts have a total
# variance of 1. On words, proteins, peptides, gestures and 16S genes, candidates from both provide
# better evidence than those from the values alone.

DIMENSIONS = 128
"""Dimensions of the search: 512 bytes per object, and 26 MFLOP per query among 10⁵ objects. With
features, half of them come from the features."""

SHORTLIST = 2
"""The single-precision search proposes this many times the wanted number of candidates. They are
then ordered in double precision, so the result does not depend on how queries are batched."""

TILE_BYTES = 2**25
"""Maximum size of the squared distances of one batch of queries."""


Points = NDArray[np.float32]
"""Coordinates of objects (n, r) in the search for candidates."""


@dataclass(frozen=True)
class CandidateSpace:
    """Maps the values of objects to the landmarks (n, m) to points (n, r) of total variance 1.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.looks import CandidateSpace, nearest_points, no_points
    >>> values = np.array([[0.0, 4.0], [1.0, 9.0], [4.0, 0.0], [4.1, 0.1]])
    >>> space = CandidateSpace.of(values)
    >>> points = space.points(values, no_points(4))
    >>> nearest_points(points, points[2:3], 2)[0]
    array([[2, 3]])
    """

    centre: Annotated[Array, "m"]
    directions: Annotated[Array, "m directions"]  # divided by the deviation of each column

    @classmethod
    def of(cls, values: Array, most: int = DIMENSIONS) -> CandidateSpace:
        """Return the space of objects with these values (n, m). O(n·m² + m³)."""
        F = signed_roots(values)
        centre = F.mean(axis=0)
        Z = F - centre
        deviation = np.sqrt(np.square(Z).mean(axis=0))
        least = 1e-12 * deviation.max(initial=0.0)
        scale = np.where(deviation > least, deviation, np.inf)  # a constant is no information
        Z /= scale
        r = min(Z.shape[1], most)
        variances, V = np.linalg.eigh(Z.T @ Z / len(Z))
        total = float(variances[::-1][:r].sum())
        scale *= np.sqrt(total) if total > 0 else 1.0
        return cls(centre, V[:, ::-1][:, :r] / scale[:, None])

    def points(self, values: Array, others: Points) -> Points:
        """Return the points of objects with these values, and with points (n, s) of their features.

        O(n·m·r).
        """
        own = ((signed_roots(values) - self.centre) @ self.directions).astype(np.float32)
        return np.hstack([own, others])


def no_points(n: int) -> Points:
    """Return points (n, 0) of objects without features."""
    return np.empty((n, 0), dtype=np.float32)


def signed_roots(values: Array) -> Array:
    """Return √|v| with the sign of v."""
    return np.copysign(np.sqrt(np.abs(values)), values)


def nearest_points(
    points: Points,
    queries: Points,
    k: int,
    *,
    without: tuple[Indices, Indices] | None = None,
    norms: NDArray[np.float32] | None = None,
) -> tuple[Indices, Array]:
    """Return the `k` points nearest to each query (n, k), nearest first, and their distances.

    `without` gives the group of each query (n,) and of each point (N,): points of a query's own
    group, such as the query itself, are excluded. All queries get the same number of points, so
    the largest of these groups limits it. Ties go to the point that comes first. O(N·r) per query
    in single precision, through one matrix product per batch. Pass `norms=squared_norms(points)`
    if they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.looks import nearest_points
    >>> points = np.array([[0.0], [1.0], [5.0]], dtype=np.float32)
    >>> nearest_points(points, points[:1], 2, without=(np.array([0]), np.arange(3)))
    (array([[1, 2]]), array([[1., 5.]]))
    """
    N = len(points)
    excluded = 0 if without is None else max(1, most_in_one_group(*without))
    k = max(0, min(k, N - excluded))
    found, distances = np.empty((len(queries), k), dtype=np.intp), np.empty((len(queries), k))
    if k == 0:
        return found, distances
    if norms is None:
        norms = squared_norms(points)
    size = max(1, TILE_BYTES // (4 * max(N, 1)))
    for start in range(0, len(queries), size):
        part = slice(start, start + size)
        Q = queries[part]
        apart = norms - 2 * (Q @ points.T)  # ‖p‖² − 2 p·q: the same order as ‖p − q‖²
        if without is not None:
            apart[without[0][part, None] == without[1]] = np.inf
        listed = min(SHORTLIST * k, N - max(excluded, 1))  # never an excluded point, at infinity
        short = np.argpartition(apart, listed, axis=1)[:, : max(listed, k)]
        short.sort(axis=1)
        exact = np.empty(short.shape)
        for i, (row, q) in enumerate(zip(short, Q.astype(np.float64), strict=True)):
            exact[i] = np.sqrt(np.square(points[row] - q).sum(axis=1))
        order = np.argsort(exact, axis=1, kind="stable")[:, :k]
        found[part] = np.take_along_axis(short, order, axis=1)
        distances[part] = np.take_along_axis(exact, order, axis=1)
    return found, distances


def most_in_one_group(queries: Indices, points: Indices) -> int:
    """Return the number of points in the largest group that a query belongs to."""
    names, sizes = np.unique(points, return_counts=True)
    return int(sizes[np.isin(names, queries)].max(initial=0))


def squared_norms(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return ‖p‖² of each point (N,)."""
    found: NDArray[np.float32] = np.einsum("ij,ij->i", points, points)
    return found


@dataclass(frozen=True)
class KnownObjects:
    """Training objects that may be candidates, without the landmarks that are compared anyway."""

    indices: Annotated[Indices, "n_known", ROW]  # among all training objects, ascending
    codes: Annotated[Codes, "n_known", CODE]
    numbers: Annotated[Array, "n_known", NON_NEGATIVE]  # how many objects each one stands for
    landmark_numbers: Annotated[Array, "m", NON_NEGATIVE]
    space: CandidateSpace
    points: Annotated[Points, "n_known coordinates"]
    n_candidates: Annotated[int, Within(0)]  # compared in a second look
    k: Annotated[int, Within(1)]  # neighbours that provide evidence, including landmarks

    def candidates(
        self,
        values: Array,
        others: Points,
        without: tuple[Indices, Indices] | None = None,
    ) -> tuple[Indices, Array]:
        """Return the candidates (n, k) of objects with these values, and their distances.

        `others` (n, s) are the points of their features, and `without` gives the groups of the
        objects and of all known ones, as in `nearest_points`.
        """
        points = self.space.points(values, others)
        return nearest_points(
            self.points, points, self.n_candidates, without=without, norms=self._norms
        )

    @property
    def n_found(self) -> int:
        """Number of candidates that a search finds."""
        return min(self.n_candidates, len(self.indices))

    @cached_property
    def _norms(self) -> NDArray[np.float32]:
        """Squared norms of the points, for every search."""
        return squared_norms(self.points)

    def neighbours(
        self, apart: Array, landmark_codes: Codes, found: Array, candidates: Indices
    ) -> Neighbours:
        """Return the nearest objects among landmarks and candidates.

        `apart` (n, m) and `found` (n, k) are squared dissimilarities to the landmarks and to the
        candidates, or −2s for similarities.
        """
        codes = np.broadcast_to(landmark_codes, apart.shape)
        numbers = np.broadcast_to(self.landmark_numbers, apart.shape)
        others = found, self.codes[candidates], self.numbers[candidates]
        return Neighbours.nearest([(apart, codes, numbers), others], self.k)

    def without_class(self, c: int) -> KnownObjects:
        """Return the objects of the other classes."""
        kept = np.flatnonzero(self.codes != c)
        return replace(
            self,
            indices=self.indices[kept],
            codes=self.codes[kept],
            numbers=self.numbers[kept],
            points=self.points[kept],
        )


VOTERS = 30
"""Number of nearest objects that provide evidence, among all that an object was compared with."""


def nearest_landmarks(apart: Array, landmark_codes: Codes) -> Neighbours:
    """Return the nearest landmarks, from squared dissimilarities (n, m) to all of them."""
    k = max(1, min(apart.shape[1] - 1, VOTERS))
    codes, numbers = np.broadcast_to(landmark_codes, apart.shape), np.ones(apart.shape)
    return Neighbours.nearest([(apart, codes, numbers)], k)


def apart_from(values: Array, kind: Kind, own: Mask) -> Array:
    """Return squared dissimilarities (n, m) to the landmarks; ∞ to those of an object's own group.

    `own` (n, m) tells which these are: the object itself, if it is a landmark, and its relatives.
    """
    return np.where(own, np.inf, squared(values, kind))


# -- learning both looks from held-out objects -----------------------------------------------------

EVIDENCE_WEIGHT = 0.5
"""Prior weight of the evidence in the pool, at a closeness of 1."""

FIRST_TAIL = 0.1
"""The tail used while comparing bandwidths; the other tails are then tried with the best one."""

TOLERANCE = 0.01
"""Share of the held-out loss that skipping the second look may cost."""

STEPS = 100

SURER = 10.0
"""Comparisons must save this many times the loss that is given up for them: held-out losses are
lower than those of new objects. On peptides and digits, 10 gives a lower loss than 1 or 3 at about
the same cost, and 30 hardly less."""


def choose_certainty(
    confidence: Array,
    gain: Array,
    comparisons: Array,
    price: float,
    weights: Array | None = None,
    room: float = np.inf,
) -> float:
    """Return the confidence from which the features alone decide, without a comparison.

    `confidence` (n,) is the largest probability of the features for held-out objects, `gain` how
    much the comparisons lower their loss, and `comparisons` how many there are. The threshold is
    the lowest for which the loss that is given up, plus its standard error, is at most a tenth of
    the price of the comparisons that are saved, and at most half of `room`: how much the features
    lower the mean loss of the comparisons. Look zero saves comparisons from what it gains, so that
    probabilities do not become worse than those of the measure alone.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.looks import choose_certainty
    >>> confidence = np.linspace(0.5, 1.0, 1000)
    >>> gain = np.where(confidence < 0.8, 1.0, 0.0)
    >>> 0.79 < choose_certainty(confidence, gain, np.full(1000, 50.0), 1e-4) < 0.82
    True
    """
    w = np.ones(len(gain)) if weights is None else weights
    w = w / max(float(w.sum()), np.finfo(float).tiny)
    chosen = np.inf
    for threshold in np.quantile(confidence, np.linspace(1, 0, STEPS + 1)) if len(gain) else []:
        sure = confidence >= threshold
        lost = np.where(sure, gain, 0.0)
        mean = float(w @ lost)
        error = float(np.sqrt(np.square(w) @ np.square(lost - mean)))
        saved = price * float(w @ (comparisons * sure))
        if mean + error <= min(saved / SURER, room / 2):
            chosen = float(threshold)
    return chosen


MANY = 100
"""With more classes than this, weights are learned from the most probable ones of each object."""


@dataclass(frozen=True)
class ProbableClasses:
    """The most probable classes of each object; the others count as one class, the last."""

    columns: Indices | None  # (n, K); None for all classes in their order
    codes: Codes  # (n,): the true class among these columns

    @classmethod
    def of(cls, opinions: Sequence[Array], codes: Codes) -> ProbableClasses:
        """Return the classes that the heads find most probable on average."""
        if opinions[0].shape[1] <= MANY:
            return cls(None, codes)
        mean = opinions[0] if len(opinions) == 1 else np.mean(opinions, axis=0)
        columns = np.argpartition(-mean, MANY - 1, axis=1)[:, :MANY]
        found = columns == np.asarray(codes)[:, None]
        return cls(columns, np.where(found.any(axis=1), found.argmax(axis=1), MANY))

    def of_log_proba(self, log_proba: Array) -> Array:
        """Return log-probabilities (n, K + 1) of these classes and of all others together."""
        if self.columns is None:
            return log_proba
        own = np.take_along_axis(log_proba, self.columns, axis=1)
        rest = np.maximum(-np.expm1(logsumexp(own, axis=1)), REST)
        return np.column_stack([own, np.log(rest)])


REST = 1e-12
"""Floor on the probability of all other classes together, which rounding could make negative."""


def learn_first_look(
    opinions: Sequence[Array], codes: Codes, weights: Array | None, n_groups: int | None = None
) -> Pool:
    """Return the pool of the heads, from their log-probabilities (n, C) of held-out objects.

    Held-out objects in `n_groups` groups show no more than that many single ones.
    """
    H, probable = len(opinions), ProbableClasses.of(opinions, codes)
    n = float(len(codes) if weights is None else np.count_nonzero(weights))
    n = n if n_groups is None else float(n_groups)
    some = [probable.of_log_proba(one) for one in opinions]
    return Pool(fit_pool(some, probable.codes, np.full(H, trust(n) / H), weights), n)


@dataclass(frozen=True)
class HeadWorth:
    """What a head is worth to the pool, as mean log-losses of held-out objects."""

    name: str
    weight: Annotated[float, NON_NEGATIVE]  # in the pool of the first look
    alone: Annotated[float, NON_NEGATIVE]  # the log-loss of this head alone
    without: Annotated[float, NON_NEGATIVE]  # of the pool of the others; log C if there are none


@dataclass(frozen=True)
class LookWorth:
    """What the model reaches with this look and those above it in the list."""

    name: str
    share: Annotated[float, SHARE]  # of the objects that this look decides, or gets to see
    comparisons: Annotated[float, NON_NEGATIVE]  # mean per prediction
    log_loss: Annotated[float, NON_NEGATIVE]


@dataclass(frozen=True)
class Worth:
    """What each head and each look is worth, estimated from held-out objects.

    The losses are those of the objects from which the few weights were learned, so they are
    slightly optimistic.
    """

    heads: tuple[HeadWorth, ...]
    looks: tuple[LookWorth, ...]

    def summary(self) -> dict[str, list[dict[str, Any]]]:
        """Return the figures as JSON-compatible values."""
        return {"heads": [vars(h) for h in self.heads], "looks": [vars(k) for k in self.looks]}


def look_worth(
    name: str,
    who: NDArray[np.bool_],
    comparisons: Array,
    log_proba: Array,
    codes: Codes,
    weights: Array | None,
) -> LookWorth:
    """Return what a look is worth, from the results (n, C) of held-out objects.

    `who` (n,) gets this look, and `comparisons` (n,) are made up to it.
    """
    share, cost = mean_of(who, weights), mean_of(comparisons, weights)
    return LookWorth(name, share, cost, mean_of(losses_of(log_proba, codes), weights))


def losses_of(log_proba: Array, codes: Codes) -> Array:
    """Return the log-losses (n,) of objects with these log-probabilities (n, C) and classes."""
    return -log_proba[np.arange(len(codes)), codes]


def mean_of(values: NDArray[Any], weights: Array | None) -> float:
    """Return the weighted mean of some objects; 0 if there are none."""
    return float(np.average(values, weights=weights)) if len(values) else 0.0


def head_worth(
    names: Sequence[str],
    pool: Pool,
    opinions: Sequence[Array],
    codes: Codes,
    weights: Array | None,
) -> tuple[HeadWorth, ...]:
    """Return what each head is worth to a pool, from its log-probabilities of held-out objects.

    The pool is learned again without each of the heads: H times the cost of the first look.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.looks import head_worth, learn_first_look
    >>> codes = np.arange(100) % 2
    >>> right = np.log(np.where(codes[:, None] == [0, 1], 0.8, 0.2))
    >>> opinions = [right, np.log(np.full((100, 2), 0.5))]
    >>> pool = learn_first_look(opinions, codes, None)
    >>> good, blind = head_worth(["good", "blind"], pool, opinions, codes, None)
    >>> good.alone < good.without, blind.alone > blind.without
    (True, True)
    """
    found = []
    for h, name in enumerate(names):
        others = [opinion for k, opinion in enumerate(opinions) if k != h]
        without = float(np.log(opinions[h].shape[1]))
        if others:
            rest = learn_first_look(others, codes, weights, int(pool.n_seen))
            without = mean_of(losses_of(rest.bounded(rest(others)), codes), weights)
        alone = mean_of(losses_of(pool.bounded(opinions[h]), codes), weights)
        found.append(HeadWorth(name, float(pool.weights[h]), alone, without))
    return tuple(found)


def trust(n: float) -> float:
    """Return the prior weight of all heads together: n/(n + 20) for n held-out objects.

    A few objects cannot show that the heads are right, so the pool starts near the uniform
    distribution: otherwise, labels without any pattern would get confident answers.
    """
    return n / (n + RIDGE)


def learn_second_look(
    pool: Pool,
    opinions: Sequence[Array],
    codes: Codes,
    weights: Array | None,
    near: Neighbours,
    max_share: float = 1.0,
) -> tuple[EvidencePool, float]:
    """Return the pool of heads and evidence, and the confidence below which it pays to look again.

    The neighbours `near` of the held-out objects exclude the objects themselves. `max_share` is the
    largest share of objects that may get a second look.
    """
    H, C = len(opinions), opinions[0].shape[1]
    probable = ProbableClasses.of(opinions, codes)
    heads, codes = [probable.of_log_proba(one) for one in opinions], probable.codes
    rows = np.arange(len(codes))
    w = np.ones(len(codes)) if weights is None else weights
    prior = trust(pool.n_seen) * np.append(np.full(H, 1 / H), np.full(2, EVIDENCE_WEIGHT / 2))
    best: tuple[float, EvidencePool, Array] | None = None

    def attempt(bandwidth: float, tail: float) -> None:
        nonlocal best
        trial = EvidencePool(prior, bandwidth, Closeness.of(near.least, tail, weights))
        evidence = probable.of_log_proba(near.evidence(C, bandwidth))
        terms = [*heads, evidence, evidence * trial.closeness(near.least)[:, None]]
        trial = replace(trial, weights=fit_pool(terms, codes, prior, weights))
        losses = -pool.bounded(pooled(trial.weights, terms))[rows, codes]
        loss = float(w @ losses)
        if best is None or loss < best[0]:
            best = loss, trial, losses

    for bandwidth in BANDWIDTHS:
        attempt(bandwidth, FIRST_TAIL)
    assert best is not None
    bandwidth = best[1].bandwidth
    for tail in TAILS:
        if tail != FIRST_TAIL:
            attempt(bandwidth, tail)
    _, chosen, second = best
    first = pool.bounded(pool(heads))
    threshold = choose_threshold(
        np.exp(first.max(axis=1)), -first[rows, codes], second, weights, max_share=max_share
    )
    return chosen, threshold


def choose_threshold(
    confidence: Array,
    first: Array,
    second: Array,
    weights: Array | None = None,
    *,
    tolerance: float = TOLERANCE,
    max_share: float = 1.0,
) -> float:
    """Return the confidence below which an object gets a second look.

    `confidence` is the largest first-look probability of held-out objects, and `first` and `second`
    are their losses after each look. The threshold is the lowest, and so the cheapest, whose loss
    is within `tolerance` of the loss with a second look at every object. The extra loss is a mean
    of paired differences, to which its standard error is added: a hundred objects cannot show that
    a second look is useless.

    `max_share` is the largest share of objects that may get a second look; it takes precedence over
    the tolerance. With a threshold above 1, every object gets a second look.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.looks import choose_threshold
    >>> confidence = np.linspace(0.5, 1.0, 1000)
    >>> first, second = np.where(confidence < 0.6, 1.0, 0.1), np.full(1000, 0.1)
    >>> 0.59 < choose_threshold(confidence, first, second) < 0.61
    True
    """
    w = np.ones(len(first)) if weights is None else weights
    w = w / w.sum()
    thresholds = np.append(np.quantile(confidence, np.linspace(0, 1, STEPS + 1)), np.inf)
    allowed = tolerance * float(w @ second)
    chosen = np.inf
    for threshold in thresholds:
        extra = np.where(confidence < threshold, 0.0, first - second)
        mean = float(w @ extra)
        error = float(np.sqrt(np.square(w) @ np.square(extra - mean)))
        if mean + error <= allowed:
            chosen = float(threshold)
            break
    if max_share < 1.0:
        order = np.argsort(confidence, kind="stable")
        within = np.cumsum(w[order]) <= max_share
        most = confidence[order][within.sum()] if within.sum() < len(order) else np.inf
        chosen = min(chosen, float(most))
    return chosen
