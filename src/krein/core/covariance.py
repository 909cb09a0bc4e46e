"""The shared covariance of the classes: shrunk by any amount, and chosen by its left-out loss.

Shrinkage. With S the within-class scatter of ν degrees of freedom and a target metric diag(t),
    Σ(ρ) = (1 − ρ) S/ν + ρ γ̄/ν diag(t),   γ̄ = tr(diag(t)⁻¹ S) / r.
One eigendecomposition of diag(t)^(−½) S diag(t)^(−½) serves every amount ρ (`WithinPath`). If every
object is a landmark, even that is not needed: BᵀB is then diagonal, and S is that diagonal minus
one rank-one term per class.

Targets in the coordinates B, where W = UΛUᵀ contains the similarities between the landmarks:
- "similarities", t = 1/|Λ|: the identity in the coordinates k(x, L), a ridge on similarities;
- "identity", t = 1: the identity in B, which is |W| in k(x, L);
- "landmarks", t = |Λ|: the scatter of the landmarks themselves;
- "diagonal", t = diag S: variances are kept, correlations shrunk.

Left-out scores: the scores of each object from the model fitted without it, in closed form. Leaving
out object i, of class y and weight w, moves the mean of y by −w/(n_y − w)·u, u = z − μ_y, and
subtracts a·uuᵀ with a = w·n_y/(n_y − w) from the within-class scatter: Σ loses a rank-one term, and
the Sherman–Morrison formula gives the new inverse.

If i is also a landmark l, that landmark must be removed too, because a new object is never compared
with itself. Without l, the remaining similarities have the marginal Gaussian distribution, whose
squared distances are d² − (tᵀΣ⁻¹v)²/(tᵀΣ⁻¹t), where t is row l of the map T from similarities to
coordinates. The result equals a refit without the object and the landmark wherever the target keeps
its form without l: always for "similarities", and for the other targets if W is psd or landmarks
are few.

The choice. The target and amount with the least left-out loss win. A fitted scale and fitted class
offsets (`calibration`) turn the left-out scores into probabilities, whose log-loss is compared.
They are fitted for each candidate: in many dimensions the best direction comes with distances that
are too large, and small classes look farther away than they are. Hoffbeck & Landgrebe 1996,
*Covariance matrix estimation and classification with limited training data*, choose by the left-out
likelihood of the objects; here it is the likelihood of their labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from .calibration import ScaleAndOffsets, fit_scale_and_offsets
from .moments import ClassMoments, weights_of
from .shapes import Array, Codes, Indices
from .space import RANK_TOLERANCE

Target = Literal["similarities", "identity", "landmarks", "diagonal"]
TARGETS: tuple[Target, ...] = ("similarities", "identity", "landmarks", "diagonal")

_DIAGONAL = 1e-12
"""Off-diagonal entries up to this share of the largest entry are rounding."""


@dataclass(frozen=True)
class ChosenCovariance:
    """A covariance chosen by its left-out loss: Σ(amount) / scale, and class offsets.

    `offsets` (C,) are added to the scores. Only the quadratic discriminant uses `pseudo_objects`:
    in each class covariance, the shared one counts as this many objects.
    """

    target: Target
    metric: Array  # (r,): the diagonal of the target
    amount: float  # ρ
    scale: float
    offsets: Array  # (C,)
    pseudo_objects: float = np.inf

    def share(self, n: float) -> float:
        """Return κ/(n + κ), the weight of Σ in the covariance of a class of n + 1 objects."""
        kappa = self.pseudo_objects
        return 1.0 if np.isinf(kappa) else kappa / (max(n, 0.0) + kappa)


def target_metric(target: Target, lam: Array, moments: ClassMoments) -> Array:
    """Return the diagonal t (r,) of a target, from the eigenvalues of W and the moments."""
    if target == "similarities":
        return 1 / np.abs(lam)
    if target == "landmarks":
        return np.abs(lam)
    if target == "diagonal":
        diagonal = np.diag(moments.within())
        return np.maximum(diagonal, RANK_TOLERANCE * max(float(diagonal.max(initial=0)), 0.0))
    return np.ones(len(lam))


@dataclass(frozen=True)
class Precision:
    """Σ⁻¹ = diag(inverse) + PᵀP in the coordinates of a path."""

    inverse: Array  # (s,)
    P: Array  # (k, s)

    def apply(self, V: Array) -> Array:
        """Return V Σ⁻¹ for rows V (n, s). O(n·s·k)."""
        return V * self.inverse + (V @ self.P.T) @ self.P

    def products(self, V: Array, W: Array) -> Array:
        """Return vᵢ Σ⁻¹ wᵢᵀ for rows V and W (n, s). O(n·s·k)."""
        diagonal = np.einsum("is,is,s->i", V, W, self.inverse)
        return diagonal + ((V @ self.P.T) * (W @ self.P.T)).sum(axis=1)


@dataclass(frozen=True)
class WithinPath:
    """S in coordinates where the target is the identity: diag(delta) − lowᵀ low.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.moments import ClassMoments
    >>> from krein.core.covariance import WithinPath
    >>> B = np.array([[0.0, 1.0], [2.0, 0.0], [9.0, 4.0], [9.0, 8.0]])
    >>> path = WithinPath.of(ClassMoments.of(B, np.array([0, 0, 1, 1]), 2), np.ones(2))
    >>> root = path.root(0.5)
    >>> (np.linalg.inv(root @ root.T)).round(6)  # half S/2, half the mean variance
    array([[ 1.8125, -0.25  ],
           [-0.25  ,  3.4375]])
    """

    scaling: Array  # (r,): t^(−½)
    rotation: Array | None  # (r, s); None for the identity
    delta: Array  # (s,)
    low: Array  # (k, s)
    freedom: float  # ν

    @classmethod
    def of(cls, moments: ClassMoments, metric: Array) -> WithinPath:
        """Return the path of these moments towards diag(metric). O(r³), or O(C·r) if dense."""
        scaling = 1 / np.sqrt(np.maximum(metric, np.finfo(float).tiny))
        freedom = moments.freedom
        G = moments.gram() * scaling[:, None] * scaling
        diagonal = np.diag(G).copy()
        np.fill_diagonal(G, 0.0)
        if np.abs(G).max(initial=0.0) <= _DIAGONAL * diagonal.max(initial=0.0):
            safe = np.sqrt(np.where(moments.weights > 0, moments.weights, 1.0))
            low = moments.class_sums() / safe[:, None] * scaling
            return cls(scaling, None, diagonal, low[moments.weights > 0], freedom)
        S = moments.within() * scaling[:, None] * scaling
        gamma, V = np.linalg.eigh((S + S.T) / 2)
        return cls(scaling, V, np.maximum(gamma, 0.0), np.empty((0, len(gamma))), freedom)

    @property
    def mean(self) -> float:
        """γ̄: the mean eigenvalue of S where the target is the identity."""
        return float(self.delta.sum() - (self.low**2).sum()) / max(len(self.delta), 1)

    def coordinates(self, B: Array) -> Array:
        """Return rows B (n, r), centred or not, in the coordinates of the path. O(n·r²)."""
        scaled = B * self.scaling
        return scaled if self.rotation is None else scaled @ self.rotation

    def back(self, V: Array) -> Array:
        """Convert coefficients (n, s) of path coordinates to coefficients (n, r) of B."""
        return (V if self.rotation is None else V @ self.rotation.T) * self.scaling

    def share(self, amount: float) -> float:
        """Return (1 − ρ)/ν: removing a uuᵀ from S removes share · a uuᵀ from Σ(ρ)."""
        return (1 - amount) / self.freedom

    def at(self, amount: float) -> Precision:
        """Return Σ(ρ)⁻¹, or the pseudo-inverse of a singular Σ if ρ = 0. O(s·k²)."""
        share = self.share(amount)
        d = share * self.delta + amount * self.mean / self.freedom
        inverse = np.where(d > RANK_TOLERANCE * d.max(initial=0.0), 1 / np.where(d > 0, d, 1.0), 0)
        X = np.sqrt(share) * self.low * np.sqrt(inverse)
        # Woodbury: (D − MᵀM)⁻¹ = D⁻¹ + D⁻¹Mᵀ(I − M D⁻¹ Mᵀ)⁻¹ M D⁻¹
        theta, R = np.linalg.eigh(X @ X.T)
        rest = np.maximum(1 - theta, RANK_TOLERANCE)
        P = (R / np.sqrt(rest)).T @ X * np.sqrt(inverse)
        return Precision(inverse, P)

    def root(self, amount: float) -> Array:
        """Return A (r, s) with A Aᵀ = Σ(ρ)⁻¹ in the coordinates B. O(r²·s)."""
        found = self.at(amount)
        keep = found.inverse > 0
        # D⁻¹ + PᵀP = D^(−½)(I + YᵀY)D^(−½) with Y = P D^½
        Y = found.P[:, keep] / np.sqrt(found.inverse[keep])
        theta, R = np.linalg.eigh(Y @ Y.T)
        theta = np.maximum(theta, 0.0)
        grown = np.where(theta > 0, (np.sqrt(1 + theta) - 1) / np.where(theta > 0, theta, 1), 0.5)
        half = np.eye(int(keep.sum())) + Y.T @ ((R * grown) @ R.T) @ Y
        half = np.sqrt(found.inverse[keep])[:, None] * half
        inner = np.zeros((len(keep), half.shape[1]))
        inner[keep] = half
        return self.back(inner.T).T


Shrinkage = float | Literal["auto", "oas"] | ChosenCovariance
"""How to shrink: by a given share, by OAS, or as chosen; "auto" is still to be chosen."""


def oas(S: Array, n: float) -> float:
    """Return how far to shrink S (r, r), with n degrees of freedom, towards (tr S / r) I. O(r²).

    ρ = ((1 − 2/r) tr S² + tr² S) / ((n + 1 − 2/r)(tr S² − tr² S / r)), at most 1.
    It does not depend on the unit of S. Source: Chen, Wiesel, Eldar & Hero 2010, *Shrinkage
    algorithms for MMSE covariance estimation* (OAS, eq. 23).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.covariance import oas
    >>> S = np.diag([4.0, 1.0])
    >>> oas(S, 10) > oas(S, 1000)  # more objects, less shrinkage
    True
    """
    r = len(S)
    trace, squares = float(np.trace(S)), float((S**2).sum())
    spread = squares - trace**2 / r
    if spread <= RANK_TOLERANCE * squares:
        return 1.0
    return min(1.0, ((1 - 2 / r) * squares + trace**2) / ((n + 1 - 2 / r) * spread))


def shrinkage_to_identity(S: Array, n: float) -> float:
    """Return how far to shrink S (r, r), with n degrees of freedom, towards I. O(r²).

    The expected ‖(1−ρ)S + ρI − Σ‖² is least at ρ = E‖S − Σ‖² / E‖S − I‖². For a Gaussian,
    E‖S − Σ‖² = (tr²Σ + tr Σ²)/n. Unbiased estimates of both traces follow from
    E tr S² = (1 + 1/n) tr Σ² + tr²Σ/n  and  E tr²S = tr²Σ + 2 tr Σ²/n.
    This is the argument of OAS for a known target.
    """
    if n <= 1:
        return 1.0
    trace, squares = float(np.trace(S)), float((S**2).sum())
    sigma_squares = (squares - trace**2 / n) / (1 + 1 / n - 2 / n**2)
    sigma_trace = trace**2 - 2 * sigma_squares / n
    distance = float(((S - np.eye(len(S))) ** 2).sum())
    if distance == 0:
        return 1.0
    return float(np.clip((sigma_trace + sigma_squares) / n / distance, 0.0, 1.0))


def within_root(moments: ClassMoments, shrinkage: Shrinkage) -> tuple[Array, float]:
    """Return A (r, s) with A Aᵀ = Σ⁺, Σ the shrunk shared covariance, and the shrinkage. O(r³).

    A number is a share of (tr Σ / r) I. At 0, the pseudo-inverse of a singular Σ is used, taken in
    the coordinates B (the paper takes it in those of k(x)). If no class has any scatter, Σ is the
    mean total variance times I: an object is then assigned to the nearest class mean.
    """
    if isinstance(shrinkage, ChosenCovariance):
        A = WithinPath.of(moments, shrinkage.metric).root(shrinkage.amount)
        return A * np.sqrt(shrinkage.scale), shrinkage.amount
    n, r = moments.freedom, len(moments.origin)
    S = moments.within() / n
    S = (S + S.T) / 2
    mean_variance = float(np.trace(S)) / max(r, 1)
    fallback = moments.variance / max(r, 1)
    if mean_variance <= RANK_TOLERANCE * fallback:
        return np.eye(r) / np.sqrt(fallback if fallback > 0 else 1.0), 1.0
    rho = oas(S, n) if shrinkage == "oas" else float(shrinkage)
    lam, V = np.linalg.eigh(S)
    lam = (1 - rho) * np.maximum(lam, 0.0) + rho * mean_variance
    keep = lam > RANK_TOLERANCE * lam.max()
    return V[:, keep] / np.sqrt(lam[keep]), rho


_LEAST = 1e-12  # floor on the result of a downdate, which rounding could make negative


@dataclass(frozen=True)
class LeftOutObjects:
    """Objects to leave out one at a time. Other objects of the same class always remain.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.covariance import LeftOutObjects
    >>> from krein.core.moments import ClassMoments
    >>> B, y = np.array([[0.0], [1.0], [4.0], [6.0], [9.0]]), np.array([0, 0, 1, 1, 2])
    >>> LeftOutObjects.of(ClassMoments.of(B, y, 3), B, y).codes  # a class of one cannot be left out
    array([0, 0, 1, 1])
    """

    moments: ClassMoments  # of all objects
    B: Array  # (n, r), centred on their mean
    codes: Codes  # (n,)
    weights: Array  # (n,): how many objects each one stands for
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
        w = weights_of(weights, len(B))
        n = moments.weights
        fair = (w > 0) & (n[codes] - np.minimum(w, 1.0) > 1e-9 * n[codes])
        removed, places = np.empty((0, B.shape[1])), np.empty(0, dtype=np.intp)
        if T is not None and landmarks is not None:
            places = np.flatnonzero(landmarks[fair] >= 0)
            removed = T[landmarks[fair][places]]
        rows = np.flatnonzero(fair)
        B = B[fair] - moments.centre
        return cls(moments, B, codes[fair], w[fair], removed, places, rows)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def totals(self) -> Array:
        """The weight of each class (C,)."""
        return self.moments.weights

    def log_priors(self) -> Array:
        """Return the logarithm of the class weights (n, C) without each object."""
        with np.errstate(divide="ignore"):
            found = np.tile(np.log(self.totals), (len(self), 1))
        own = np.arange(len(self)), self.codes
        found[own] = np.log(self.totals[self.codes] - self.left_out)
        return found

    def against_rest(self, c: int) -> LeftOutObjects:
        """Return the objects of the two-class problem rest (0) against class `c` (1)."""
        two = self.moments.one_against_rest(c)
        return replace(self, moments=two, codes=(self.codes == c).astype(np.intp))

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
    objects: LeftOutObjects, path: WithinPath, amounts: Iterable[float]
) -> Iterator[Array]:
    """Yield the left-out −½d² (n, C) of the objects, for each amount of shrinkage in turn.

    O(n·r²) once, and O(n·r·C) per amount.
    """
    Z = path.coordinates(objects.B)
    means = path.coordinates(objects.moments.means - objects.moments.centre)
    T = path.coordinates(objects.removed)
    for amount in amounts:
        distances, _ = _distances(objects, Z, means, T, path.at(amount), path.share(amount))
        yield -0.5 * distances


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
        # a landmark in no remaining dimension (size 0) changes nothing
        size = np.where(size > 0, size, np.inf)
        distances[i] -= tv**2 / size[:, None]
        logdet[i] += np.where(np.isinf(size), 0.0, np.log(size))
    return distances, logdet


def left_out_quadratic(
    objects: LeftOutObjects, A: Array, share: float, pseudo: list[float]
) -> list[Array]:
    """Return the left-out −½(d² + log|Σ_c|) (n, C), for each number of pseudo-objects.

    A (r, s) whitens the shared covariance Σ, to which a unit of scatter contributes `share`.
    Σ_c = (S_c + κ Σ)/(n_c − 1 + κ): leaving an object out subtracts 1 + κ·share times a·uuᵀ from
    the numerator of its own class, and κ·share times a·uuᵀ from those of the others. O(n·C·s²), and
    O(n·C²·s) per number.
    """
    moments, Z, T = objects.moments, objects.B @ A, objects.removed @ A
    means = (moments.means - moments.centre) @ A
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
            precision = Precision(1 / d, np.empty((0, s)))
            distances, logdet = _distances(objects, Zc, Mc, Tc, precision, units)
            dims = np.full(len(objects), float(s))
            dims[objects.places] -= 1  # dropping a landmark removes one dimension
            logdet = logdet + np.log(d).sum() - dims * np.log(g)
            scores[:, c] = -0.5 * (g * distances[:, c] + logdet)
    return found


ODDS = 10.0 ** np.arange(-6, 3)
"""Amounts to try, as ρ/(1 − ρ), besides ρ = 1; the midpoints on either side of the best follow."""

PSEUDO_OBJECTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Weights of the shared covariance in each class, in objects per dimension; ∞ is tried as well."""


Choice = tuple[ChosenCovariance, float]
"""A covariance and its mean left-out loss, including the penalty on scale and offsets."""


def choose_linear(objects: LeftOutObjects, lam: Array, *, exact: bool = False) -> Choice | None:
    """Return the shared covariance of the best linear discriminant; None if there are too few data.

    If most objects are landmarks, only the target "similarities" has exact left-out scores. The
    identity is then tried with the amount given by OAS alone, because among approximate scores, the
    worst approximation would have the least loss. With `exact`, it is not tried at all.
    O(n·r² + r³) per target, O(n·r·C) per amount.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.covariance import choose_linear
    >>> from krein.core.covariance import LeftOutObjects
    >>> from krein.core.moments import ClassMoments
    >>> y = np.arange(60) % 2
    >>> B = np.random.default_rng(0).normal(size=(60, 50))  # nearly as many dimensions as objects
    >>> B[:, 0] += 2 * y
    >>> objects = LeftOutObjects.of(ClassMoments.of(B, y, 2), B, y)
    >>> choose_linear(objects, np.ones(50))[0].amount > 0.1
    True
    """
    moments = objects.moments
    scatter = float(np.trace(moments.within()))  # none if each class is a single place
    some = scatter > RANK_TOLERANCE * moments.total * moments.variance
    if len(np.unique(objects.codes)) < 2 or not some:
        return None
    dense = objects.mostly_landmarks
    choices = []
    for target in TARGETS[: 1 if exact else 2] if dense else TARGETS:
        amounts = [oas_amount(moments)] if dense and target == "identity" else None
        metric = target_metric(target, lam, moments)
        choices.append(_along_path(target, metric, objects, amounts))
    return min(choices, key=lambda choice: choice[1])


def _along_path(
    target: Target, metric: Array, objects: LeftOutObjects, given: list[float] | None
) -> Choice:
    """Return the best amount of shrinkage towards one target, among those given or among all."""
    path = WithinPath.of(objects.moments, metric)
    log_prior = objects.log_priors()
    tried: dict[float, ScaleAndOffsets] = {}

    def amounts(wanted: list[float]) -> None:
        scored = left_out_linear(objects, path, wanted)
        start = None
        for amount, scores in zip(wanted, scored, strict=True):
            start = fit_scale_and_offsets(scores, log_prior, objects.codes, objects.weights, start)
            tried[amount] = start

    amounts(given or [1.0, *(odds / (1 + odds) for odds in ODDS[::-1].tolist())])
    best = min(tried, key=lambda amount: tried[amount].loss)
    if best < 1 and given is None:
        odds, half = best / (1 - best), np.sqrt(10)
        amounts([float(o / (1 + o)) for o in (odds * half, odds / half)])
        best = min(tried, key=lambda amount: tried[amount].loss)
    scale, offsets, loss = tried[best]
    return ChosenCovariance(target, metric, best, scale, offsets), loss


def choose_quadratic(objects: LeftOutObjects, shared: ChosenCovariance) -> Choice:
    """Return the best weight of the shared covariance in each class. O(n·C·r² + C·r³)."""
    path = WithinPath.of(objects.moments, shared.metric)
    A, share = path.root(shared.amount), path.share(shared.amount)
    pseudo = [np.inf, *(k * A.shape[1] for k in PSEUDO_OBJECTS[::-1])]
    log_prior = objects.log_priors()
    start: ScaleAndOffsets | None = None
    choices = []
    scored = left_out_quadratic(objects, A, share, pseudo)
    for kappa, scores in zip(pseudo, scored, strict=True):
        start = fit_scale_and_offsets(scores, log_prior, objects.codes, objects.weights, start)
        found = replace(shared, scale=start.scale, offsets=start.offsets, pseudo_objects=kappa)
        choices.append((found, start.loss))
    return min(choices, key=lambda choice: choice[1])


def oas_amount(moments: ClassMoments) -> float:
    """Return how far OAS shrinks the shared covariance towards the identity. O(r²)."""
    within, n = moments.within(), moments.freedom
    return oas(within / n, n) if len(within) else 1.0  # a zero matrix leaves no dimensions
