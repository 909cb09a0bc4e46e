"""Left-out scores: the scores of each object from the model fitted without it, in closed form.

Leaving out object i, of class y and weight w, moves the mean of y by −w/(n_y − w)·u, u = z − μ_y,
and subtracts a·uuᵀ with a = w·n_y/(n_y − w) from the within-class scatter: Σ loses a rank-one term,
and the Sherman–Morrison formula gives the new inverse.

If i is also a landmark l, that landmark must be removed too, because a new object is never compared
with itself. Without l, the remaining similarities have the marginal Gaussian distribution, whose
squared distances are d² − (tᵀΣ⁻¹v)²/(tᵀΣ⁻¹t), where t is row l of the map T from similarities
to coordinates. The result equals a refit without the object and the landmark wherever the target
keeps its form without l: always for "similarities", and for the other targets if W is psd or
landmarks are few.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .checks import Array, Indices
from .family import Codes
from .moments import ClassMoments
from .within import Precision, WithinPath

_LEAST = 1e-12  # floor on the result of a downdate, which rounding could make negative


@dataclass(frozen=True)
class LeftOutObjects:
    """Objects to leave out one at a time. Other objects of the same class always remain.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.left_out import LeftOutObjects
    >>> from krein.core.moments import ClassMoments
    >>> B, y = np.array([[0.0], [1.0], [4.0], [6.0], [9.0]]), np.array([0, 0, 1, 1, 2])
    >>> LeftOutObjects.of(ClassMoments.of(B, y, 3), B, y).codes  # a class of one cannot be left out
    array([0, 0, 1, 1])
    """

    B: Array  # (n, r), centred on the mean of all objects
    codes: Codes  # (n,)
    weights: Array  # (n,): how many objects each one stands for
    totals: Array  # (C,): the weight of each class
    removed: Array  # (k, r): rows of T of the objects that are landmarks
    places: Indices  # (k,): positions of those objects
    rows: Indices  # (n,): which of the given objects can be left out

    @classmethod
    def of(
        cls,
        moments: ClassMoments,
        B: Array,
        codes: Codes,
        weights: Array | None = None,
        T: Array | None = None,
        landmarks: Indices | None = None,
    ) -> LeftOutObjects:
        """Return the objects that can be left out.

        `landmarks` (n,) is the row of T (m, r) of each object that is a landmark; −1 for others.
        """
        w = np.ones(len(B)) if weights is None else weights
        n = moments.weights
        fair = (w > 0) & (n[codes] - np.minimum(w, 1.0) > 1e-9 * n[codes])
        centre = moments.origin + moments.sums.sum(axis=0) / moments.total
        removed, places = np.empty((0, B.shape[1])), np.empty(0, dtype=np.intp)
        if T is not None and landmarks is not None:
            places = np.flatnonzero(landmarks[fair] >= 0)
            removed = T[landmarks[fair][places]]
        rows = np.flatnonzero(fair)
        return cls(B[fair] - centre, codes[fair], w[fair], n, removed, places, rows)

    def __len__(self) -> int:
        return len(self.codes)

    def log_priors(self) -> Array:
        """Return the logarithm of the class weights (n, C) without each object."""
        with np.errstate(divide="ignore"):
            found = np.tile(np.log(self.totals), (len(self), 1))
        own = np.arange(len(self)), self.codes
        found[own] = np.log(self.totals[self.codes] - self.left_out)
        return found

    @property
    def mostly_landmarks(self) -> bool:
        """Whether the landmarks have more total weight than the other objects."""
        return bool(2 * self.weights[self.places].sum() > self.weights.sum())

    @property
    def factors(self) -> tuple[Array, Array]:
        """a = w·n_y/(n_y − w), and n_y/(n_y − w), for each object."""
        n = self.totals[self.codes]
        stretch = n / (n - self.left_out)
        return self.left_out * stretch, stretch

    @property
    def left_out(self) -> Array:
        """The weight that is left out: at most one object, however many copies it has."""
        return np.minimum(self.weights, 1.0)


def left_out_linear(
    objects: LeftOutObjects, moments: ClassMoments, path: WithinPath, amounts: Iterator[float]
) -> Iterator[Array]:
    """Yield the left-out −½d² (n, C) of the objects, for each amount of shrinkage in turn.

    O(n·r²) once, and O(n·r·C) per amount.
    """
    centre = moments.origin + moments.sums.sum(axis=0) / moments.total
    Z = path.coordinates(objects.B)
    means = path.coordinates(moments.means - centre)
    T = path.coordinates(objects.removed)
    for amount in amounts:
        precision = path.at(amount)
        distances, _ = _distances(objects, Z, means, T, precision, precision.share)
        yield -0.5 * distances


def left_out_whitened(objects: LeftOutObjects, means: Array, loss: float) -> Array:
    """Return the left-out −½d² (n, C) of the objects, in coordinates where Σ = I. O(n·s·C)."""
    s = means.shape[1]
    precision = Precision(np.ones(s), np.empty((0, s)), loss)
    distances, _ = _distances(objects, objects.B, means, objects.removed, precision, loss)
    found: Array = -0.5 * distances
    return found


def _distances(
    objects: LeftOutObjects,
    Z: Array,
    means: Array,
    T: Array,
    precision: Precision,
    loss: Array | float,
) -> tuple[Array, Array]:
    """Return squared distances (n, C), and the change in the log-determinant of Σ (n,).

    Leaving an object out subtracts `loss` times a·uuᵀ from Σ.
    """
    y, each = objects.codes, np.arange(len(objects))
    factor, stretch = objects.factors
    Q = precision.apply(means)
    E, F = Z @ Q.T, means @ Q.T
    q = precision.products(Z, Z)
    h = np.maximum(q - 2 * E[each, y] + F[y, y], 0.0)  # uᵀΣ⁻¹u
    remaining = np.maximum(1 - loss * factor * h, _LEAST)
    k = loss * factor / remaining
    vu = q[:, None] - E - E[each, y][:, None] + F[y]  # vᵀΣ⁻¹u, v = z − μ_c
    distances = q[:, None] - 2 * E + np.diag(F) + k[:, None] * vu**2
    distances[each, y] = stretch**2 * h * (1 + k * h)
    logdet = np.log(remaining)
    if len(objects.places) and Z.shape[1]:  # a zero matrix leaves no dimensions
        i = objects.places
        e, own, k, h = np.arange(len(i)), y[i], k[i], h[i]
        tz, tM = precision.products(T, Z[i]), T @ Q.T
        tu = tz - tM[e, own]
        size = precision.products(T, T) + k * tu**2
        tv = tz[:, None] - tM + (k * tu)[:, None] * vu[i]
        tv[e, own] = stretch[i] * tu * (1 + k * h)
        distances[i] -= tv**2 / size[:, None]
        logdet[i] += np.log(size)
    return distances, logdet


def left_out_quadratic(
    objects: LeftOutObjects, moments: ClassMoments, A: Array, share: float, pseudo: list[float]
) -> list[Array]:
    """Return the left-out −½(d² + log|Σ_c|) (n, C), for each number of pseudo-objects.

    A (r, s) whitens the shared covariance Σ, to which a unit of scatter contributes `share`.
    Σ_c = (S_c + κ Σ)/(n_c − 1 + κ): leaving an object out subtracts 1 + κ·share times a·uuᵀ from
    the numerator of its own class, and κ·share times a·uuᵀ from those of the others. O(n·C·s²), and
    O(n·C²·s) per number.
    """
    centre = moments.origin + moments.sums.sum(axis=0) / moments.total
    Z, means, T = objects.B @ A, (moments.means - centre) @ A, objects.removed @ A
    found = [np.full((len(objects), len(moments.weights)), -np.inf) for _ in pseudo]
    s = Z.shape[1]
    for c in np.flatnonzero(moments.weights > 0).tolist():
        own = objects.codes == c
        freedom = max(moments.weights[c] - 1, 0.0)
        S = A.T @ moments.within_class(c) @ A
        lam, V = np.linalg.eigh((S + S.T) / 2)
        Zc, Mc, Tc = Z @ V, means @ V, T @ V
        for scores, kappa in zip(found, pseudo, strict=True):
            if np.isinf(kappa):  # Σ_c = Σ
                d, units, g = np.ones(s), np.full(len(objects), share), np.ones(len(objects))
            else:
                d = np.maximum(lam, 0.0) + kappa
                units = own + kappa * share
                g = np.maximum(freedom - own * objects.left_out, 0.0) + kappa
            precision = Precision(1 / d, np.empty((0, s)), 0.0)
            distances, logdet = _distances(objects, Zc, Mc, Tc, precision, units)
            dims = np.full(len(objects), float(s))
            dims[objects.places] -= 1  # dropping a landmark removes one dimension
            logdet = logdet + np.log(d).sum() - dims * np.log(g)
            scores[:, c] = -0.5 * (g * distances[:, c] + logdet)
    return found
