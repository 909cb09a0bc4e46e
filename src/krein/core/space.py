"""The space that landmarks span: from values of a measure to pseudo-Euclidean coordinates.

- Spectrum: signature, negative mass and corrections of an indefinite matrix (paper, sections 2.2
  and 2.3; Chen et al. 2009, *Similarity-based classification*, for the corrections and their maps).
- Conversion: from dissimilarities to similarities and back (footnotes of section 2.2; the landmark
  form comes from landmark multidimensional scaling).
- Nyström approximation K̃ = C W⁺ Cᵀ = B J Bᵀ (section 3), with C = K[:, L] (N, m), W = K[L, L] =
  U Λ Uᵀ, T = U|Λ|^(−½), J = sign Λ, B = C T. The paper decomposes the *squared* matrix, which
  cannot tell λ from −λ and mixes their eigenvectors. Here the m×m matrix R J Rᵀ is decomposed,
  which preserves signs. Truncation of the core: Nakatsukasa & Park 2023, *Randomized low-rank
  approximation for symmetric indefinite matrices*.
- `LandmarkSpace`: all of this as one map, m values in, r coordinates out.
- Embedding V = U|Λ|^½ of objects given by similarities (eq. 1): K = V J Vᵀ with J = diag(±1).
  Indefinite kernel PCA is the same after centring, which in coordinates is a shift of the origin:
  B − 1b̄ᵀ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal, NamedTuple

import numpy as np

from .moments import gram
from .shapes import POSITIVE, Array, Indices, Kind, Within

RANK_TOLERANCE = 1e-10
"""|λ| up to this share of the largest |λ| counts as zero."""


class Signature(NamedTuple):
    """Number of positive, negative and vanishing eigenvalues."""

    positive: int
    negative: int
    zero: int


def signature(lam: Array, tol: float = RANK_TOLERANCE) -> Signature:
    """Return (p, q, z) of eigenvalues `lam`; |λ| ≤ tol·max|λ| counts as zero. O(n).

    >>> signature(np.array([2.0, -1.0, 0.0, 1e-14]))
    Signature(positive=1, negative=1, zero=2)
    """
    limit = tol * np.abs(lam).max(initial=0.0)
    p, q = int((lam > limit).sum()), int((lam < -limit).sum())
    return Signature(p, q, len(lam) - p - q)


def negative_mass(lam: Array) -> float:
    """Return the share of Σ|λ| that lies below zero: 0 for psd, ½ for ± pairs. O(n).

    >>> negative_mass(np.array([3.0, -1.0]))
    0.25
    """
    total = np.abs(lam).sum()
    return float(abs(lam[lam < 0].sum()) / total) if total > 0 else 0.0


@dataclass(frozen=True)
class SpectrumEstimate:
    """Eigenvalues, signature and negative mass of a principal submatrix, or of the whole matrix."""

    signature: Signature
    negative_mass: float
    n_sampled: int
    n: int
    eigenvalues: Array  # (n_sampled,), ascending

    @property
    def exact(self) -> bool:
        """Whether the submatrix was the whole matrix."""
        return self.n_sampled == self.n


def estimate_spectrum(
    block: Callable[[Indices, Indices], Array],
    n: int,
    *,
    size: int = 500,
    rng: np.random.Generator,
    tol: float = RANK_TOLERANCE,
) -> SpectrumEstimate:
    """Estimate signature and negative mass of an n×n matrix from a random submatrix.

    `block(rows, cols)` returns entries. Costs size² entries and O(size³). The eigenvalues of
    a principal submatrix interlace those of the matrix (Cauchy), so the p and q returned are
    lower bounds: one negative eigenvalue in the sample proves that the matrix is not psd. The
    negative mass is an estimate without a bound.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import estimate_spectrum
    >>> rng = np.random.default_rng(0)
    >>> K = np.diag([3.0, -1.0])
    >>> found = estimate_spectrum(lambda rows, cols: K[np.ix_(rows, cols)], 2, rng=rng)
    >>> found.signature, found.negative_mass
    (Signature(positive=1, negative=1, zero=0), 0.25)
    """
    chosen = np.sort(rng.choice(n, size=min(size, n), replace=False))
    S = block(chosen, chosen)
    lam: Array = np.linalg.eigvalsh((S + S.T) / 2)  # type: ignore[assignment]
    return SpectrumEstimate(signature(lam, tol), negative_mass(lam), len(chosen), n, lam)


Correction = Literal["clip", "flip", "shift", "square"]


@dataclass(frozen=True)
class CorrectedMatrix:
    """A psd correction of an indefinite matrix, and the map that corrects new objects.

    `matrix` is the corrected training matrix; `map_new(k)` corrects the similarities k
    (n, N) of new objects to the training objects: k @ P with one P for all.
    """

    matrix: Array  # (N, N)
    P: Array  # (N, N)

    def map_new(self, k: Array) -> Array:
        """Return the corrected similarities of new objects. O(n·N²)."""
        return k @ self.P


def correct(K: Array, how: Correction, tol: float = RANK_TOLERANCE) -> CorrectedMatrix:
    """Make a symmetric matrix psd: K' = U f(Λ) Uᵀ. O(N³) time, O(N²) memory.

    clip f = max(λ, 0), flip f = |λ|, square f = λ², shift f = λ − min(λ_min, 0).
    The map for new objects is the linear one that takes the training rows to their corrected
    rows, P = U (f(Λ)/Λ) Uᵀ over the non-zero eigenvalues; k @ P extends it to any object.
    A shift also lifts the zero eigenvalues, along which no training row has a component. Only there
    do K @ P and K' differ.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import correct
    >>> correct(np.diag([3.0, -1.0]), "clip").matrix
    array([[3., 0.],
           [0., 0.]])
    """
    lam, U = np.linalg.eigh(K)
    nonzero = np.abs(lam) > tol * np.abs(lam).max(initial=0.0)
    corrected = {
        "clip": lambda: np.maximum(lam, 0.0),
        "flip": lambda: np.abs(lam),
        "square": lambda: lam**2,
        "shift": lambda: lam - min(lam[0], 0.0),
    }
    if how not in corrected:
        raise ValueError(f"unknown correction {how!r}; choose one of {', '.join(corrected)}")
    f = corrected[how]()
    ratio = np.divide(f, lam, out=np.zeros_like(lam), where=nonzero)
    return CorrectedMatrix(matrix=(U * f) @ U.T, P=(U * ratio) @ U.T)


def squared_dissimilarities(K: Array) -> Array:
    """Return d²_ij = k_ii + k_jj − 2 k_ij, which may be negative. O(N²).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import squared_dissimilarities
    >>> squared_dissimilarities(np.eye(2))
    array([[0., 2.],
           [2., 0.]])
    """
    diagonal = np.diag(K)
    return diagonal[:, None] + diagonal[None, :] - 2 * K


def double_centre(D2: Array) -> Array:
    """Return S = −½ H D² H with H = I − 11ᵀ/N, from *squared* dissimilarities. O(N²).

    `squared_dissimilarities(double_centre(D2))` is D2 if its diagonal is zero, and
    `double_centre(squared_dissimilarities(K))` is H K H.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import double_centre
    >>> double_centre(np.array([[0.0, 4.0], [4.0, 0.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    rows = D2.mean(axis=1)
    return -0.5 * (D2 - rows[:, None] - D2.mean(axis=0)[None, :] + rows.mean())


POWERS = (1.0, 0.5, 0.25)
"""Powers of a dissimilarity d: similarities are computed from −½d², −½d or −½√d."""
Power = Annotated[float, Within(0.25, 1.0)]


def powered(D: Array, power: float) -> Array:
    """Return |d|^power, D itself for power 1. O(n·m).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import powered
    >>> powered(np.array([16.0]), 0.5), powered(np.array([16.0]), 0.25)
    (array([4.]), array([2.]))
    """
    if power == 1:
        return D
    roots = np.sqrt(np.abs(D))
    if power == 0.5:
        return roots
    if power != 0.25:
        raise ValueError(f"power must be one of {POWERS}; got {power}")
    return np.sqrt(roots)


@dataclass(frozen=True)
class Conversion:
    """The map from values of the measure to similarities to the landmarks.

    Values are divided by `unit`. A dissimilarity is raised to `power`, squared, and centred on the
    landmarks:

    s(x, l) = −½ (d²(x, l) − mean_l' d²(x, l') − mean_l' d²(l', l) + mean d²(L, L))

    It needs only the m dissimilarities of an object to the landmarks, so the same map serves
    training objects and new ones. If every object is a landmark, it equals `double_centre`. Without
    `row_means`, the mean of the object's row stays: −½ (d²(x, l) − mean_l' d²(l', l)).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import Conversion
    >>> conversion = Conversion.of(np.array([[0.0, 2.0], [2.0, 0.0]]), "dissimilarity")
    >>> conversion.similarities(np.array([[1.0, 3.0]]))
    array([[ 2., -2.]])
    """

    column_means: Annotated[Array, "m"] | None = None
    """mean_l' d²(l', l); None for a similarity."""
    row_means: bool = True  # whether the mean of an object's row is removed
    power: Power = 1.0  # of a dissimilarity: 1, 1/2 or 1/4
    unit: Annotated[float, POSITIVE] = 1.0

    @classmethod
    def of(
        cls,
        values: Array,
        kind: Kind,
        *,
        power: float = 1.0,
        unit: float = 1.0,
        row_means: bool = True,
    ) -> Conversion:
        """Return the conversion from the values (m, m) between the landmarks. O(m²)."""
        if kind == "similarity":
            return cls(None, row_means, power, unit)
        found = cls(np.empty(0), row_means, power, unit)
        return replace(found, column_means=(found.raised(values) ** 2).mean(axis=0))

    @property
    def kind(self) -> Kind:
        """The kind of the values."""
        return "similarity" if self.column_means is None else "dissimilarity"

    def raised(self, values: Array) -> Array:
        """Return values divided by the unit and raised to the power, but not squared yet."""
        values = values if self.unit == 1 else values / self.unit
        return values if self.column_means is None else powered(values, self.power)

    def similarities(self, values: Array) -> Array:
        """Return similarities (n, m) from values of the measure (n, m). O(n·m)."""
        values = self.raised(values)
        if self.column_means is None:
            return values
        S = np.square(values)
        if self.row_means:
            S -= S.mean(axis=1, keepdims=True)
        S -= self.column_means
        if self.row_means:
            S += self.column_means.mean()
        S *= -0.5
        return S


_CHUNK = 4096  # rows of C turned into coordinates together


@dataclass(frozen=True)
class LandmarkSpace:
    """The pseudo-Euclidean coordinates that m landmarks span: b(x) = k(x, L) T, with signs J.

    Values of the measure are converted to similarities k(x, L), and these to coordinates: m values
    in, r coordinates out, by the same map for training objects and new ones.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import LandmarkSpace
    >>> D = np.array([[0.0, 2.0], [2.0, 0.0]])
    >>> space = LandmarkSpace.of(D, "dissimilarity")
    >>> np.abs(space.coordinates(D)).round(6)
    array([[1.],
           [1.]])
    """

    landmark_values: Annotated[Array, "m m"]  # of the measure between the landmarks, unscaled
    T: Annotated[Array, "m r"]
    signs: Annotated[Array, "r", Within(-1.0, 1.0)]  # the diagonal of J, ±1
    lam: Annotated[Array, "r"]  # eigenvalues of the similarities between landmarks that were kept
    conversion: Conversion
    rank: Annotated[int, Within(1, 2**53)] | None = None  # the largest number of coordinates

    @classmethod
    def of(
        cls,
        landmark_values: Array,
        kind: Kind,
        *,
        tol: float = RANK_TOLERANCE,
        rank: int | None = None,
        power: float = 1.0,
        unit: float = 1.0,
        row_means: bool = True,
    ) -> LandmarkSpace:
        """Return the space of landmarks with these values between them. O(m³).

        A dissimilarity is centred on the landmarks, or without `row_means`, on all objects.
        """
        own = Conversion.of(landmark_values, kind, power=power, unit=unit)
        found = landmark_basis(own.similarities(landmark_values), tol=tol, rank=rank)
        if kind == "dissimilarity" and not row_means:
            found = with_row_mean(found, own.raised(landmark_values) ** 2, tol)
        how = replace(own, row_means=row_means)
        return replace(found, landmark_values=landmark_values, conversion=how)

    def with_power(self, power: float) -> LandmarkSpace:
        """Return the space of the same landmarks with dissimilarities raised to `power`. O(m³)."""
        if power == self.power:
            return self
        return self._of(self.landmark_values, power)

    def _of(self, values: Array, power: float) -> LandmarkSpace:
        """Return a space with the same settings."""
        how = self.conversion
        return LandmarkSpace.of(
            values,
            self.kind,
            rank=self.rank,
            power=power,
            unit=how.unit,
            row_means=how.row_means,
        )

    @property
    def kind(self) -> Kind:
        """The kind of the values."""
        return self.conversion.kind

    @property
    def power(self) -> float:
        """The power that a dissimilarity is raised to before it is squared."""
        return self.conversion.power

    def similarities(self, values: Array) -> Array:
        """Return similarities C (n, m) from values of the measure (n, m). O(n·m)."""
        return self.conversion.similarities(values)

    def coordinates(self, values: Array) -> Array:
        """Return B (n, r) from values of the measure (n, m). O(n·m·r)."""
        return self.similarities(values) @ self.T

    def origin(self) -> Array:
        """Return the mean coordinates of the landmarks: a point near the data. O(m²·r)."""
        return self.coordinates(self.landmark_values).mean(axis=0)

    def restricted(self, kept: Indices) -> LandmarkSpace:
        """Return the space spanned by the landmarks `kept`. O(m³)."""
        return self._of(self.landmark_values[np.ix_(kept, kept)], self.power)


def _largest_first(lam: Array, tol: float) -> Indices:
    """Return the places of the eigenvalues with |λ| > tol·max|λ|, largest |λ| first."""
    order = np.argsort(-np.abs(lam), kind="stable")
    return order[np.abs(lam[order]) > tol * np.abs(lam).max(initial=0.0)]


def landmark_basis(
    W: Array, *, tol: float = RANK_TOLERANCE, rank: int | None = None
) -> LandmarkSpace:
    """Return the space of landmarks with similarities W (m, m), symmetric. O(m³).

    Keeps the eigenvalues with |λ| > tol·max|λ|, or the `rank` largest of them in |λ|. Truncation
    avoids the division by eigenvalues of W that are near zero although K has none there: use 1.5 to
    2 times as many landmarks as `rank`.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import landmark_basis
    >>> basis = landmark_basis(np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> basis.signs, basis.lam
    (array([-1.,  1.]), array([-2.,  2.]))
    """
    if rank is not None and (rank != int(rank) or rank < 1):
        raise ValueError(f"rank must be a positive integer or None; got {rank!r}")
    lam, U = np.linalg.eigh((W + W.T) / 2)  # exact: W is symmetric up to rounding
    keep = _largest_first(lam, tol)[:rank]
    lam, U = lam[keep], U[:, keep]
    return LandmarkSpace(W, U / np.sqrt(np.abs(lam)), np.sign(lam), lam, Conversion(), rank)


def with_row_mean(basis: LandmarkSpace, D2: Array, tol: float = RANK_TOLERANCE) -> LandmarkSpace:
    """Return the space of D² centred on all training objects: one more coordinate. O(m·r).

    The Nyström matrix of D² from its columns E = D²[:, L], centred on any set of objects, is
    −½ HE (D²[L, L])⁺ (HE)ᵀ, so it needs N·m values, not N² (Gisbrecht & Schleif 2015). `basis` is
    that of the landmarks' own centring A = H W H, for W = −½ D²[L, L]: T ⟂ 1. By the inverse of a
    matrix in blocks, what A lacks is the mean of an object's row as far as T does not predict it:

    c = (1 − A⁺ W 1) / √(m|δ|),   δ = 1ᵀ(W − W A⁺ W)1 / m,   A⁺ = T J Tᵀ.

    Then (E − ē)[T, c] has the inner products of the centred Nyström matrix for its own mean ē, the
    shift that a discriminant ignores. If every object is a landmark, c is constant on them.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import double_centre, landmark_basis, with_row_mean
    >>> D2 = np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 4.0], [9.0, 4.0, 0.0]])
    >>> with_row_mean(landmark_basis(double_centre(D2)), D2).signs
    array([ 1., -1.])
    """
    T = basis.T - basis.T.mean(axis=0)  # exactly orthogonal to 1
    m, sums = len(D2), -0.5 * D2.sum(axis=1)
    predicted = T @ (basis.signs * (T.T @ sums))
    delta = float(sums.sum() - sums @ predicted) / m
    if abs(delta) <= tol * np.abs(basis.lam).max(initial=0.0):
        return basis
    column = (1 - predicted) / np.sqrt(m * abs(delta))
    return replace(
        basis,
        T=np.column_stack([T, column]),
        signs=np.append(basis.signs, np.sign(delta)),
        lam=np.append(basis.lam, delta),
    )


@dataclass(frozen=True)
class Eigenfunctions:
    """Estimates of the eigenvalues of K and of its eigenfunctions, from the landmarks alone.

    λ_i ≈ λ_i^(m) N/m,    φ_i(x) ≈ √(m/N)/λ_i^(m) k(x, L) u_i^(m)

    (Williams & Seeger 2001; the paper's section 3). They are exact if every object is a landmark,
    and require that landmarks are a random sample: those of MEB are not. `NystromMatrix.eigen`
    gives the exact eigenvalues of K̃ instead, but needs all N objects.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import Eigenfunctions, landmark_basis
    >>> W = np.diag([3.0, -2.0])
    >>> found = Eigenfunctions.of(landmark_basis(W), 10)
    >>> found.values
    array([ 15., -10.])
    """

    values: Array  # (r,), with signs, largest |λ| first
    A: Array  # (m, r)

    @classmethod
    def of(cls, basis: LandmarkSpace, n_objects: int) -> Eigenfunctions:
        """Return the estimates for a matrix of N objects. O(m·r)."""
        share = n_objects / len(basis.T)
        # T = U|Λ|^(−½), so U Λ⁻¹ = T |Λ|^(−½) sign Λ
        A = basis.T * (basis.signs / np.sqrt(share * np.abs(basis.lam)))
        return cls(share * basis.lam, A)

    def __call__(self, C: Array) -> Array:
        """Return φ_i(x) (n, r) of objects with similarities C (n, m) to the landmarks."""
        return C @ self.A


@dataclass(frozen=True)
class SignedEigen:
    """Eigenvalues A of B J Bᵀ, largest |A| first, and P with eigenvectors B P."""

    values: Array  # (s,)
    P: Array  # (r, s)


def gram_root(G: Array) -> tuple[Array, Array]:
    """Return R (s, r) with G = RᵀR, and R⁺ (r, s), for G = BᵀB: B = Q R with QᵀQ = I. O(r³).

    R comes from the eigendecomposition of G scaled to unit diagonal: the columns of B differ in
    size by up to √(λ_max/λ_min) of the core, and without the scaling the small ones would be lost
    in rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import gram_root
    >>> R, inverse = gram_root(np.array([[4.0, 0.0], [0.0, 0.0]]))
    >>> np.abs(R), np.abs(inverse.T)
    (array([[2., 0.]]), array([[0.5, 0. ]]))
    """
    d = np.sqrt(np.maximum(np.diag(G), 0.0))
    inverse_d = np.divide(1.0, d, out=np.zeros_like(d), where=d > 0)
    E, Q = np.linalg.eigh(inverse_d[:, None] * G * inverse_d)
    keep = len(G) * np.finfo(float).eps * E.max(initial=0.0) < E
    E, Q = E[keep], Q[:, keep]
    return np.sqrt(E)[:, None] * Q.T * d, inverse_d[:, None] * (Q / np.sqrt(E))


def signed_eigen(G: Array, signs: Array, *, tol: float = RANK_TOLERANCE) -> SignedEigen:
    """Decompose K̃ = B J Bᵀ from G = BᵀB and J alone. O(r³).

    G = RᵀR; R J Rᵀ = V A Vᵀ is symmetric and has the non-zero eigenvalues of K̃; B R⁺ V are
    orthonormal eigenvectors. Eigenvalues |A| ≤ tol·max|A| are dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import signed_eigen
    >>> signed_eigen(np.diag([4.0, 9.0]), np.array([1.0, -1.0])).values
    array([-9.,  4.])
    """
    d = np.sqrt(np.maximum(np.diag(G), 0.0))
    if _is_diagonal(G):  # every object is a landmark: G = |Λ|
        A = d**2 * signs
        order = _largest_first(A, tol)
        P = np.zeros((len(G), len(order)))
        P[order, np.arange(len(order))] = 1 / d[order]
        return SignedEigen(A[order], P)
    R, inverse = gram_root(G)
    A, V = np.linalg.eigh((R * signs) @ R.T)
    order = _largest_first(A, tol)
    return SignedEigen(A[order], inverse @ V[:, order])


GROWTH = 3.0
"""A coordinate that adds more to K̃ than this times all larger eigenvalues together is an error."""


def stable_rank(G: Array, signs: Array) -> int:
    """Return how many coordinates of B J Bᵀ precede the first that is an error, from G = BᵀB. O(r).

    Coordinate j adds G_jj = ‖C u_j‖²/|λ_j| to K̃. If λ_j is near zero only because positive and
    negative parts of K cancel on the landmarks, they do not cancel on other objects, and this term
    grows beyond all others (Nakatsukasa & Park 2023; conditions: Bucci, Nakatsukasa & Park 2025).
    A psd K̃ never exceeds K, so no coordinate is dropped then.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import stable_rank
    >>> signs = np.array([1.0, 1.0, -1.0])
    >>> stable_rank(np.diag([4.0, 3.0, 2.0]), signs), stable_rank(np.diag([4.0, 3.0, 50.0]), signs)
    (3, 2)
    """
    own = np.diag(G)
    grown = own[1:] > GROWTH * np.cumsum(own)[:-1]
    if not grown.any() or abs(signs.sum()) == len(signs):
        return len(own)
    return int(np.argmax(grown)) + 1


def _is_diagonal(G: Array) -> bool:
    """Whether all off-diagonal entries are rounding errors, in every row and column.

    They grow with the condition number of the core; their effect on eigenvalues is quadratic.
    """
    d = np.sqrt(np.maximum(np.diag(G), 0.0))
    off = np.abs(G) <= 1e-9 * np.outer(d, d)
    np.fill_diagonal(off, True)
    return bool(off.all())


@dataclass(frozen=True)
class NystromMatrix:
    """K̃ = B J Bᵀ stored as C and the landmark basis, without forming an N×N matrix or all of B.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import NystromMatrix, landmark_basis
    >>> K = np.diag([3.0, -2.0, 0.0])
    >>> nystrom = NystromMatrix(K[:, :2], landmark_basis(K[:2, :2]))
    >>> nystrom.eigenvalues, nystrom.signature
    (array([ 3., -2.]), Signature(positive=1, negative=1, zero=1))
    """

    C: Array  # (N, m)
    basis: LandmarkSpace

    @cached_property
    def gram(self) -> Array:
        """G = BᵀB (r, r), in one pass over chunks of C. O(N·m·r)."""
        G = np.zeros((len(self.basis.signs),) * 2)
        for start in range(0, len(self.C), _CHUNK):
            G += gram(self.basis.coordinates(self.C[start : start + _CHUNK]))
        return G

    @cached_property
    def eigen(self) -> SignedEigen:
        """Signed eigenvalues and the map to eigenvectors. O(N·m·r + r³)."""
        return signed_eigen(self.gram, self.basis.signs)

    @property
    def eigenvalues(self) -> Array:
        """Non-zero eigenvalues of K̃ with their signs, largest |λ| first."""
        return self.eigen.values

    @property
    def signature(self) -> Signature:
        """(p, q, z) of K̃."""
        A = self.eigenvalues
        p = int((A > 0).sum())
        return Signature(p, len(A) - p, len(self.C) - len(A))

    def eigenvectors(self) -> Array:
        """Return orthonormal eigenvectors (N, s), in the order of `eigenvalues`. O(N·m·s)."""
        return self.C @ (self.basis.T @ self.eigen.P)

    def svd(self) -> tuple[Array, Array, Array]:
        """Return U (N, s), singular values |A| (s,) and Vᵀ (s, N): K̃ = U |A| Vᵀ."""
        U = self.eigenvectors()
        return U, np.abs(self.eigenvalues), (U * np.sign(self.eigenvalues)).T

    def apply(self, v: Array) -> Array:
        """Return K̃ v for v (N,) or (N, k). O(N·m·k)."""
        return self._expand(self._contract(v))

    def apply_square(self, v: Array) -> Array:
        """Return K̃² v = B (J G J) Bᵀ v. O(N·m·k)."""
        return self._expand((self.basis.signs * (self.gram @ self._contract(v)).T).T)

    def apply_pinv(self, v: Array) -> Array:
        """Return K̃⁺ v = Q A⁻¹ Qᵀ v with eigenvectors Q = C S. O(N·m·k)."""
        S = self.basis.T @ self.eigen.P
        return self.C @ (S @ (((self.C @ S).T @ v).T / self.eigenvalues).T)

    def row_sums(self) -> Array:
        """Return K̃ 1. O(N·m)."""
        return self.apply(np.ones(len(self.C)))

    def diagonal(self) -> Array:
        """Return the diagonal of K̃ (N,). O(N·m·r)."""
        B = self.basis.coordinates(self.C)
        return np.einsum("ij,j,ij->i", B, self.basis.signs, B)

    def squared_dissimilarities(self, cols: Indices) -> Array:
        """Return d²_ij = k̃_ii + k̃_jj − 2 k̃_ij of all objects to `cols`, (N, k). O(N·m·(r + k)).

        These columns are the Nyström factor of the matrix D² = δ1ᵀ + 1δᵀ − 2K̃, where δ is the
        diagonal of K̃ (Gisbrecht & Schleif 2015); the rank of D² is at most r + 2.
        """
        own, B = self.diagonal(), self.basis.coordinates(self.C[cols])
        return own[:, None] + own[cols] - 2 * self._expand((B * self.basis.signs).T)

    def apply_dissimilarities(self, v: Array) -> Array:
        """Return D² v for v (N,) or (N, k), without forming D². O(N·m·k)."""
        own = self.diagonal()
        across = np.multiply.outer(own, v.sum(axis=0)) + np.multiply.outer(np.ones(len(v)), own @ v)
        return across - 2 * self.apply(v)

    def dense(self) -> Array:
        """Return K̃ as an (N, N) matrix. O(N²·m): for small N."""
        B = self.basis.coordinates(self.C)
        return (B * self.basis.signs) @ B.T

    def _contract(self, v: Array) -> Array:
        """J Bᵀ v, in the r coordinates."""
        return (self.basis.signs * (self.basis.T.T @ (self.C.T @ v)).T).T

    def _expand(self, u: Array) -> Array:
        """B u for u in the r coordinates."""
        return self.C @ (self.basis.T @ u)


SAFE = (1e-50, 1e50)
"""If the largest value is outside this range, values are divided by a power of two, so that their
squares, and products of these, neither overflow nor underflow."""

_LEAST = 1e-300
"""Values below this have lost digits."""

_LEVEL = 5e-9
"""Similarities that differ by less than this share of their common level count as constant.
Eigenvalues smaller than `RANK_TOLERANCE` times the level are dropped, and with them a class."""


def unit_of(values: Array) -> float:
    """Return the divisor of the values: 1, or a power of two if they are beyond 10^±50.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import unit_of
    >>> unit_of(np.array([3.0, -1e4])), unit_of(np.array([1.5 * 2.0**400])) == 2.0**400
    (1.0, True)
    """
    largest = float(np.abs(values).max(initial=0.0))
    if 0 < largest < _LEAST:
        raise ValueError(
            f"the largest value between the landmarks is {largest:.3g}, too small for floating-"
            "point precision: multiply the objects or the values of the measure by a constant"
        )
    if largest == 0 or SAFE[0] <= largest <= SAFE[1]:
        return 1.0
    return float(2.0 ** np.floor(np.log2(largest)))


def check_level(values: Array) -> None:
    """Refuse similarities (m, m) that are one large constant except for their last digits.

    The differences between objects are then lost in rounding: max|H W H| < 5·10⁻⁹ max|W|.
    """
    largest = float(np.abs(values).max(initial=0.0))
    if np.ptp(values) <= 1e-14 * largest:  # an exact constant is allowed
        return
    rows = values.mean(axis=1)
    rest = values - rows[:, None] - values.mean(axis=0) + rows.mean()
    if float(np.abs(rest).max()) < _LEVEL * largest:
        raise ValueError(
            f"the similarities have a common level of {largest:.3g}, and their differences are "
            "lost in rounding: remove the level first, e.g. subtract the column means from X"
        )


@dataclass(frozen=True)
class Embedding:
    """Principal pseudo-Euclidean axes: v(x) = (b(x) − b̄) A, largest |λ| first."""

    eigenvalues: Annotated[Array, "s"]  # signed
    mean: Annotated[Array, "r"]  # b̄, zero if not centred
    A: Annotated[Array, "r s"]

    @property
    def signs(self) -> Array:
        """The diagonal of J: +1 or −1 for each axis."""
        return np.sign(self.eigenvalues)

    def coordinates(self, B: Array) -> Array:
        """Return V (n, s) from landmark coordinates B (n, r). O(n·r·s)."""
        return (B - self.mean) @ self.A


def embed(
    G: Array, signs: Array, *, mean: Array | None = None, n_components: int | None = None
) -> Embedding:
    """Return the embedding of K̃ = B J Bᵀ from G = BᵀB and J. O(r³).

    For the axes of the centred matrix (indefinite kernel PCA), pass the `mean` b̄, and as G the
    scatter about it: `ClassMoments.within`, since the difference G − N b̄b̄ᵀ would lose digits.
    `n_components` keeps the largest |λ|.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import embed
    >>> embed(np.diag([4.0, 9.0]), np.array([1.0, -1.0]), n_components=1).eigenvalues
    array([-9.])
    """
    eigen = signed_eigen(G, signs)
    values, P = eigen.values[:n_components], eigen.P[:, :n_components]
    mean = np.zeros(len(G)) if mean is None else mean
    return Embedding(values, mean, P * np.sqrt(np.abs(values)))  # B P are eigenvectors


def embed_dense(K: Array, *, tol: float = RANK_TOLERANCE) -> tuple[Array, Array]:
    """Return V = U|Λ|^½ (N, r) and the signs of a symmetric matrix K. O(N³).

    This is the landmark basis if every object is a landmark: K T = U Λ |Λ|^(−½) = V J.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import embed_dense
    >>> V, signs = embed_dense(np.diag([4.0, -9.0]))
    >>> (V * signs) @ V.T
    array([[ 4.,  0.],
           [ 0., -9.]])
    """
    basis = landmark_basis(K, tol=tol)
    return basis.coordinates(K) * basis.signs, basis.signs
