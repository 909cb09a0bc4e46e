"""Heads: fitted models that turn an object's values to the landmarks into log-probabilities.

A head contains only what predictions need. All heads of a model share the same values, so another
head costs no comparison. `LookZero` looks at the objects themselves instead.

A head of values also says what each landmark contributed to a label. Its score of label c against
label r is f(u) = log p(c) − log p(r), a function of the values u. Relative to a baseline ū, an
object with mean values, landmark l contributes along the straight line from the baseline to the
object

    φ_l = (u_l − ū_l) ∫₀¹ ∂f/∂u_l (ū + t (u − ū)) dt,      f(u) = f(ū) + Σ_l φ_l

(Aumann & Shapley 1974; "integrated gradients"). The integral has a closed form for every head. A
linear head is a sum of functions of scores that are linear in its features, and each part is
multiplied by the slope of the chord. A quadratic head has its gradient at the midpoint.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit, log_expit, log_ndtr, log_softmax, logsumexp

from ..core.calibration import classes_of_pairs, pair_log_shares
from ..core.candidates import Points
from ..core.evidence import VOTERS, Neighbours
from ..core.gaussian import QuadraticDiscriminant
from ..core.moments import ROUNDING
from ..core.pcvm.rows import BasisFunction, basis_values
from ..core.shapes import (
    CODE,
    LOG,
    NON_NEGATIVE,
    POSITIVE,
    TEMPERATURE,
    WEIGHT,
    Array,
    Codes,
    Indices,
    Within,
)
from ..core.space import Conversion
from ..measures.features import Convolutions, FeatureMap, Gradients, NGrams, RecordFeatures


class Head(Protocol):
    """A fitted model, the only one or one of several that are pooled."""

    @property
    def temperature(self) -> float:
        """The factor on the scores before they become probabilities."""

    def scores(self, given: Any, /) -> Array:
        """Return scores (n, C), given values (n, m) to the landmarks, or for look zero objects."""

    def to_log_proba(self, scores: Array) -> Array:
        """Return log-probabilities (n, C) from scores, with the temperature applied."""


LinkName = Literal["softmax", "sigmoid", "probit", "probits", "pairs"]
"""How scores become probabilities: softmax of joint scores; sigmoids or probits of one class
against the rest, normalised; a probit for two classes; published PCVMs for all pairs of classes."""


@dataclass(frozen=True)
class LinearHead:
    """IKFD and PCVM: z = F(x, L) W + b, with features F of the values to some landmarks.

    IKFD's features are similarities. PCVM's are similarities or a function of dissimilarities.
    """

    features: Conversion | BasisFunction
    places: Annotated[Indices, "k", Within(0, below="m")]  # of the landmarks that are used
    weights: Annotated[Array, "k p", WEIGHT]
    """One column for two classes, one per class, or one per pair."""
    bias: Annotated[Array, "p", LOG]
    link: LinkName = "softmax"
    temperature: Annotated[float, TEMPERATURE] = 1.0

    def scores(self, values: Array) -> Array:
        """Return scores (n, C). O(n·m·C)."""
        Z = self._features(values) @ self.weights + self.bias
        if self.link == "pairs":
            return pair_log_shares(Z)
        return np.hstack([-Z / 2, Z / 2]) if self.link == "probit" else Z

    def to_log_proba(self, scores: Array) -> Array:
        """Return log-probabilities (n, C) from scores, with the temperature applied."""
        scores = self.temperature * scores
        if self.link == "probit":
            z = scores[:, 1] - scores[:, 0]
            return np.column_stack([log_ndtr(-z), log_ndtr(z)])
        if self.link in ("sigmoid", "probits"):
            each = (log_expit if self.link == "sigmoid" else log_ndtr)(scores)
            return np.asarray(each - logsumexp(each, axis=1, keepdims=True))
        return np.asarray(log_softmax(scores, axis=1))

    def contributions(self, values: Array, baseline: Array, label: int, other: int) -> Array:
        """Return the contribution (m,) of each landmark. O(m·p)."""
        F, F0 = self._features(np.stack([values, baseline]))
        z, z0 = F @ self.weights + self.bias, F0 @ self.weights + self.bias
        slope = self.weights @ self._slopes(z, z0, label, other)  # ∂f/∂F, averaged on the line
        found = np.zeros(len(values))
        if isinstance(self.features, str) or self.features.kind == "similarity":
            found[self.places] = slope * (F - F0)
        else:  # each similarity depends on all squared dissimilarities, through their mean
            v, v0 = (self.features.raised(one) for one in (values, baseline))
            through_mean = slope.mean() if self.features.row_means else 0.0
            found[self.places] = -0.5 * (slope - through_mean) * (np.square(v) - np.square(v0))
        return found

    def _features(self, values: Array) -> Array:
        if isinstance(self.features, str):
            return basis_values(self.features, values[:, self.places])
        return self.features.similarities(values)

    def _slopes(self, z: Array, z0: Array, label: int, other: int) -> Array:
        """Return the slope (p,) of f between z0 and z, for each score."""
        t, found = self.temperature, np.zeros(len(z))
        if self.link == "probit":
            sign = 1.0 if label > other else -1.0
            found[0] = sign * t * _chord(_probit_log_odds, _probit_slope, t * z0[0], t * z[0])
        elif self.link == "pairs":
            C = classes_of_pairs(len(z))
            for k, (c, d) in enumerate(combinations(range(C), 2)):
                for member, sign in ((c, -1.0), (d, 1.0)):
                    if member in (label, other):
                        side = t * 2 / C * (1.0 if member == label else -1.0)
                        a, b = sign * z0[k], sign * z[k]
                        found[k] += side * sign * _chord(log_ndtr, _hazard, a, b)
        else:
            for c, side in ((label, t), (other, -t)):
                if self.link == "softmax":
                    found[c] = side
                elif self.link == "sigmoid":
                    found[c] = side * _chord(log_expit, _expit_slope, t * z0[c], t * z[c])
                else:
                    found[c] = side * _chord(log_ndtr, _hazard, t * z0[c], t * z[c])
        return found


def _chord(
    g: Callable[[float], float], slope: Callable[[float], float], a: float, b: float
) -> float:
    """Return (g(b) − g(a))/(b − a), or the tangent if the chord is too short for a slope."""
    if abs(b - a) > 1e-9 * (1 + abs(b)):
        return float((g(b) - g(a)) / (b - a))
    return float(slope(b))


def _hazard(z: float) -> float:
    """d/dz log Ψ(z) = φ(z)/Ψ(z)."""
    return float(np.exp(-0.5 * z * z - log_ndtr(z)) / np.sqrt(2 * np.pi))


def _expit_slope(z: float) -> float:
    return float(expit(-z))


def _probit_log_odds(z: float) -> float:
    return float(log_ndtr(z) - log_ndtr(-z))


def _probit_slope(z: float) -> float:
    return _hazard(z) + _hazard(-z)


@dataclass(frozen=True)
class QuadraticHead:
    """IKQD: scores −½‖(s(x, L) T A − o − mean_c) root_c‖² + intercept_c, A whitening."""

    features: Conversion
    T: Annotated[Array, "m r"]
    discriminant: QuadraticDiscriminant
    temperature: Annotated[float, TEMPERATURE] = 1.0

    @cached_property
    def project(self) -> Array:
        """The map (m, s) from similarities to whitened coordinates."""
        return self.T @ self.discriminant.whiten

    def scores(self, values: Array) -> Array:
        """Return scores (n, C). O(n·C·m²)."""
        return self.discriminant.scores_of_whitened(self._whitened(values))

    def to_log_proba(self, scores: Array) -> Array:
        """Return log-probabilities (n, C): softmax, with the temperature applied."""
        found: Array = log_softmax(self.temperature * scores, axis=1)
        return found

    def contributions(self, values: Array, baseline: Array, label: int, other: int) -> Array:
        """Return the contribution (m,) of each landmark. O(m²)."""
        model, middle = self.discriminant, self._whitened(np.stack([values, baseline])).mean(axis=0)

        def gradient(c: int) -> Array:
            root = model.roots[c]
            return -(((middle - model.means[c]) @ root) @ root.T) @ self.project.T

        slope = self.temperature * (gradient(label) - gradient(other))
        v, v0 = self.features.raised(values), self.features.raised(baseline)
        if self.features.kind == "similarity":
            return slope * (v - v0)
        through_mean = slope.mean() if self.features.row_means else 0.0
        return -0.5 * (slope - through_mean) * (np.square(v) - np.square(v0))

    def _whitened(self, values: Array) -> Array:
        similarities = self.features.similarities(values)
        return similarities @ self.project - self.discriminant.centre @ self.discriminant.whiten


@dataclass(frozen=True)
class FeatureShare:
    """What one feature contributed to a label."""

    name: str  # the n-gram, or a stretch of the series
    contribution: float
    places: tuple[tuple[int, int], ...]  # where it is in the object: first position, and beyond


LISTED = 10
"""Number of features that an explanation names, those that counted most."""


@dataclass(frozen=True)
class FeatureExplanation:
    """What the features of an object add to the score of a label."""

    bias: float  # the score without features
    total: float
    listed: tuple[FeatureShare, ...] = ()
    along: Array | None = None  # (length,) or (length, channels): the total by letters or values


class LookZero(ABC):
    """A head that sees the object itself, without comparisons."""

    temperature: float

    @abstractmethod
    def look(self, objects: Any) -> tuple[Array, Points]:
        """Return scores (n, C), and the points (n, r) where similar objects can be searched."""

    def scores(self, objects: Any) -> Array:
        """Return scores (n, C)."""
        return self.look(objects)[0]

    def to_log_proba(self, scores: Array) -> Array:
        """Return log-probabilities (n, C): softmax, with the temperature applied."""
        found: Array = log_softmax(self.temperature * scores, axis=1)
        return found

    def explain(self, one: Any, label: int, other: int, weight: float) -> FeatureExplanation:
        """Return what the object adds, in a pool where the head has this weight: by default, as a
        whole."""
        alone = one[None] if isinstance(one, np.ndarray) else [one]
        log_p = self.to_log_proba(self.scores(alone))[0]
        return FeatureExplanation(0.0, weight * float(log_p[label] - log_p[other]))


Directions = Annotated[NDArray[np.float32], "folded places"]
"""Directions in the folded features along which similar objects are searched."""


def points_along(directions: NDArray[np.float32], features: FeatureMap, F: Any) -> Points:
    """Return the points (n, r), of total variance 1, of objects with features F (n, D)."""
    return np.asarray(features.folded(F) @ directions, dtype=np.float32)


@dataclass(frozen=True)
class FeatureHead(LookZero):
    """Look zero: scores z = F(x) W + b from features of the object itself, without comparisons."""

    features: NGrams | Convolutions | Gradients | RecordFeatures
    weights: Annotated[NDArray[np.float32], "features C"]
    bias: Annotated[Array, "C"]
    directions: Directions
    temperature: Annotated[float, TEMPERATURE] = 1.0

    def look(self, objects: Any) -> tuple[Array, Points]:
        """Return scores (n, C), and points (n, r)."""
        F = self.features(objects)
        scores = np.asarray(F @ self.weights + self.bias, dtype=np.float64)
        return scores, points_along(self.directions, self.features, F)

    def explain(self, one: Any, label: int, other: int, weight: float) -> FeatureExplanation:
        """Return what the features of an object add, in a pool where the head has this weight."""
        both = self.weights[:, [label, other]].astype(np.float64)
        slope = weight * self.temperature * (both[:, 0] - both[:, 1])
        bias = weight * self.temperature * float(self.bias[label] - self.bias[other])
        found = self.features.shares(one, slope)
        order = np.argsort(-np.abs(found.parts), kind="stable")[:LISTED]
        named = tuple(
            FeatureShare(name, float(found.parts[k]), places)
            for k, (name, places) in ((k, found.describe(k)) for k in order.tolist())
            if found.parts[k]
        )
        return FeatureExplanation(bias, float(found.parts.sum()), named, found.along)


@dataclass(frozen=True)
class NeighbourHead(LookZero):
    """Look zero for many classes. One object per class is enough: no class has learned weights.

    Scores are sums of three parts with a weight each. The first is the evidence of the known
    objects with the most similar features (`krein.core.evidence`); the similarity of two rows of
    length 1 is their product. The second is how well the n-grams of the object fit the profile of
    each class, as in the classifier of the Ribosomal Database Project (Wang et al. 2007): with m_cw
    of the n_c objects of class c containing n-gram w, a share π_w of all objects, and rarities r_w,

        z_c = Σ_{w in x} r_w log((m_cw + α π_w)/(n_c + α)),

    up to a constant. This is sparse, because n-grams that a class lacks contribute the constant.
    The third is log n_c, because a class of one object always fits itself too well.
    """

    features: NGrams
    starts: Annotated[NDArray[np.int64], "n_rows+1", Within(0, spans="entries")]
    columns: Annotated[NDArray[np.int32], "entries", Within(0, below="features")]
    values: Annotated[NDArray[np.float32], "entries"]
    codes: Annotated[Codes, "n_rows", CODE]
    numbers: Annotated[Array, "n_rows", NON_NEGATIVE]  # how many objects each one stands for
    n_classes: Annotated[int, "C", Within(2)]
    directions: Directions
    bandwidth: Annotated[float, POSITIVE] = 0.1
    weights: Annotated[Array, "3", NON_NEGATIVE] = field(default_factory=lambda: np.ones(3))
    temperature: Annotated[float, TEMPERATURE] = 1.0

    @classmethod
    def of(
        cls,
        features: NGrams,
        F: csr_array,
        codes: Codes,
        numbers: Array,
        n_classes: int,
        directions: NDArray[np.float32],
    ) -> NeighbourHead:
        """Return the head of known objects with features F (n, D)."""
        F = csr_array(F, dtype=np.float32)
        starts, columns = F.indptr.astype(np.int64), F.indices.astype(np.int32)
        return cls(features, starts, columns, F.data, codes, numbers, n_classes, directions)

    @cached_property
    def known(self) -> csr_array:
        """The features (n, D) of the known objects."""
        shape = (len(self.codes), len(self.features.columns))
        return csr_array((self.values, self.columns, self.starts), shape=shape)

    @cached_property
    def sizes(self) -> Array:
        """Number of objects of each class (C,)."""
        found: Array = np.bincount(self.codes, self.numbers, self.n_classes).astype(np.float64)
        return found

    @cached_property
    def _present(self) -> csr_array:
        """The number of each known object for each of its n-grams (n, D)."""
        each = np.repeat(self.numbers, np.diff(self.starts))
        return csr_array((each, self.columns, self.starts), shape=self.known.shape)

    @cached_property
    def _counts(self) -> csr_array:
        """m_cw: how many objects of each class contain each n-gram (C, D)."""
        n = len(self.codes)
        own = csr_array((np.ones(n), (self.codes, np.arange(n))), shape=(self.n_classes, n))
        return csr_array(own @ self._present)

    @cached_property
    def _smoothing(self) -> Array:
        """α π_w of each n-gram (D,)."""
        seen = np.bincount(self.columns, minlength=len(self.features.columns)).astype(np.float64)
        return SMOOTHING * (seen + 0.5) / (len(self.codes) + 1.0)

    @cached_property
    def _profiles(self) -> csr_array:
        """r_w log(1 + m_cw/(α π_w)) of each n-gram and class (D, C)."""
        return csr_array(self._fit_to(self._counts).T)

    def _fit_to(self, counts: csr_array) -> csr_array:
        w = counts.indices
        found = self.features.rarity[w] * np.log1p(counts.data / self._smoothing[w])
        return csr_array((found, w, counts.indptr), shape=counts.shape)

    def look(self, objects: Any) -> tuple[Array, Points]:
        """Return scores (n, C), and points (n, r)."""
        F = self.features(objects)
        near, (a, b, g) = self.nearest(F), self.weights
        scores = a * self.evidence(near, self.bandwidth) + b * self.profile_scores(F)
        return scores + g * log_class_sizes(self.sizes), points_along(
            self.directions, self.features, F
        )

    def nearest(self, F: csr_array, without: tuple[Indices, Indices] | None = None) -> Neighbours:
        """Return the nearest known objects of those with features F (n, D).

        `without` gives the groups of the rows and of all known objects: those of a row's own group,
        such as the object itself, are excluded. The result does not depend on which of several
        equally similar objects were found: the least similar ones have class C, which is none.
        """
        n, N, C = F.shape[0], len(self.codes), self.n_classes
        k = min(VOTERS, N - (without is not None))
        apart, codes, numbers = np.empty((n, k)), np.empty((n, k), dtype=np.intp), np.empty((n, k))
        for start in range(0, n, NEIGHBOUR_ROWS):
            part = slice(start, start + NEIGHBOUR_ROWS)
            some = np.ascontiguousarray(F[part].toarray().T, dtype=np.float32)
            S = np.ascontiguousarray((self.known @ some).T)
            if without is not None:
                S[without[0][part, None] == without[1]] = -np.inf
            order = np.argpartition(-S, k if k < N else k - 1, axis=1)
            near = order[:, :k]
            similar = np.take_along_axis(S, near, axis=1).astype(np.float64)
            next_best = np.take_along_axis(S, order[:, k : k + 1], axis=1)
            tie = next_best.max(axis=1, initial=0.0)[:, None]
            clear = similar > tie
            apart[part] = 2 - 2 * np.maximum(similar, 0)
            codes[part] = np.where(clear, self.codes[near], C)
            numbers[part] = np.where(clear, self.numbers[near], 1.0)
        return Neighbours(apart, codes, None, numbers)

    def evidence(self, near: Neighbours, bandwidth: float) -> Array:
        """Return the evidence (n, C) of the nearest known objects."""
        return near.evidence(self.n_classes + 1, bandwidth)[:, :-1]

    def profile_scores(self, F: csr_array, without: tuple[Indices, Indices] | None = None) -> Array:
        """Return how well the n-grams of objects with features F fit each class (n, C).

        `without` is that of `nearest`. A class of which nothing is left fits as badly as the worst.
        """
        rarity = self.features.rarity.astype(np.float64)
        present = csr_array((np.ones(len(F.data)), F.indices, F.indptr), shape=F.shape)
        total = present @ rarity
        found = np.empty((F.shape[0], self.n_classes))
        for start in range(0, F.shape[0], NEIGHBOUR_ROWS):
            part = slice(start, start + NEIGHBOUR_ROWS)
            found[part] = (present[part] @ self._profiles).toarray()
        found -= total[:, None] * np.log(self.sizes + SMOOTHING)
        if without is not None:
            rows, classes, members, left = self._own(*without)
            counts = (self._counts[classes] - members @ self._present).multiply(present[rows])
            fit = self._fit_to(csr_array(counts)).sum(axis=1)
            fit -= total[rows] * np.log(left + SMOOTHING)
            found[rows, classes] = np.where(left > 0, fit, found[rows].min(axis=1, initial=np.inf))
        return found

    def sizes_without(self, own: Indices, known: Indices) -> Array:
        """Return the sizes of the classes (n, C) without the objects of each row's own group."""
        found = np.tile(self.sizes, (len(own), 1))
        rows, classes, _, left = self._own(own, known)
        found[rows, classes] = left
        return found

    def _own(self, own: Indices, known: Indices) -> tuple[Indices, Indices, csr_array, Array]:
        """Return rows (p,) and classes (p,) such that the row's group has objects of the class.

        Also returns which known objects these are (p, N), and the size of the class without them.
        `own` (n,) and `known` (N,) are the groups.
        """
        order = np.argsort(known, kind="stable")
        first, end = (np.searchsorted(known, own, side, order) for side in ("left", "right"))
        rows = np.repeat(np.arange(len(own)), end - first)
        members = order[np.arange(len(rows)) + np.repeat(first - _starts(end - first), end - first)]
        pairs, place = np.unique(rows * self.n_classes + self.codes[members], return_inverse=True)
        shape = (len(pairs), len(known))
        which = csr_array((np.ones(len(place)), (place, members)), shape=shape)
        rows, classes = np.divmod(pairs, self.n_classes)
        sizes = self.sizes[classes]
        left = sizes - which @ self.numbers
        return rows, classes, which, np.where(left > ROUNDING * sizes, left, 0.0)


def log_class_sizes(sizes: Array) -> Array:
    """Return the logarithms of class sizes; an empty class counts as `SMOOTHING` objects."""
    found: Array = np.log(np.maximum(sizes, SMOOTHING))
    return found


def _starts(lengths: Indices) -> Indices:
    """Return where each of some stretches starts, if they follow each other."""
    return np.cumsum(lengths) - lengths


SMOOTHING = 1e-4
"""α: every class is taken to contain this many objects with the n-grams of all classes. On 16S
genes, the loss hardly depends on α below 1e-3."""

NEIGHBOUR_ROWS = 64
"""Objects whose neighbours are searched together, with 256 kB of similarities per 1,000 known
objects."""
