"""Fit a PCVM to values: on the landmarks, on more basis objects, or as published.

Each function takes the values of all objects to the landmarks and returns the weights of a score
F(x, L) w + b, where F is the basis function of the landmarks L.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..checks import Array, Indices
from ..family import Codes
from ..space import LandmarkSpace
from .basis import BasisFunction
from .family import PCVMFamily, joined_weights
from .mode import PCVMFit
from .published import fit_published_pairs
from .rows import Features, FeaturesInMemory, Labels

OPTIMAL = 5e-4
"""Violations of the optimality conditions per row below this do not affect any prediction."""


@dataclass(frozen=True)
class SearchEnd:
    """How the search for the weights ended; for several problems, the worst outcome."""

    n_iter: int
    converged: bool
    reason: str
    violation: float = 0.0  # of the optimality conditions, per row
    objective_path: Array = field(default_factory=lambda: np.empty(0))  # log posterior by step

    @classmethod
    def of(cls, fits: list[PCVMFit]) -> SearchEnd:
        """Return how these fits ended."""
        worst = max(fits, key=lambda fit: fit.violation)
        return cls(
            max(fit.n_iter for fit in fits),
            all(fit.converged or fit.violation <= OPTIMAL for fit in fits),
            worst.reason,
            worst.violation,
            worst.objective_path,
        )


@dataclass(frozen=True)
class PCVMModel:
    """Weights on landmarks, and how they were found."""

    places: Indices  # of the landmarks that predictions need, among those given
    relevance: Indices  # rows of the training objects with non-zero weight
    function: BasisFunction
    dual_coef: Array  # (len(places), 1 or C)
    intercept: Array
    end: SearchEnd
    fits: tuple[PCVMFit, ...] = ()
    scales: tuple[float, ...] = (1.0,)  # of the prior, one per problem


def fit_landmarks(
    space: LandmarkSpace,
    indices: Indices,
    values: Features,
    landmark_classes: Codes,
    family: PCVMFamily,
    *,
    keep: bool,
) -> tuple[PCVMModel, Features]:
    """Return the model whose basis objects are the landmarks, and the features it was fitted to.

    `indices` are the landmarks' rows. Unless `keep`, the features may overwrite the values.
    """
    C = family.n_classes
    raw = values.rows(np.arange(C), C)
    function = family.choose_function(space, raw, indices, landmark_classes)
    features = values.under(function, keep=keep)
    fits, scales = family.solve(features, None, landmark_classes)
    W, b = joined_weights(fits, features.mean)
    used = _carrying(W)
    end = SearchEnd.of(fits)
    model = PCVMModel(used, indices[used], function, W[used], b, end, tuple(fits), tuple(scales))
    return model, features


def fit_basis(
    space: LandmarkSpace, basis: Indices, values: Features, family: PCVMFamily
) -> PCVMModel:
    """Return the model with basis objects at rows `basis`, as weights on all landmarks.

    Φ = B Q with Q = J B_basisᵀ, so φ_i(x) = K̃(x, x_i) = k(x, L) T J b_i. O(N r) memory.
    """
    C = family.n_classes
    raw = values.rows(np.arange(C), C)
    codes, weights = raw.y, raw.weight
    B = space.coordinates(raw.features(np.arange(len(codes))))
    Q = (B[basis] * space.signs).T
    F = FeaturesInMemory(B, codes, weights).under("similarity")
    fits, scales = family.solve(F, Q, codes[basis])
    W, b = joined_weights(fits, F.mean, Q)
    everyone = np.arange(len(space.landmark_values))
    dual = space.basis.T @ (Q @ W)
    return PCVMModel(
        everyone,
        basis[_carrying(W)],
        "similarity",
        dual,
        b,
        SearchEnd.of(fits),
        tuple(fits),
        tuple(scales),
    )


def fit_as_published(
    space: LandmarkSpace, values: Features, n_classes: int, rng: np.random.Generator
) -> PCVMModel:
    """Return one published PCVM for each pair of classes.

    The dense version is used if every object is a landmark, otherwise the Nyström version.
    """
    raw = values.rows(np.arange(n_classes), n_classes)
    codes: Labels = raw.y
    C = space.similarities(raw.features(np.arange(len(codes))))
    W = space.similarities(space.landmark_values)
    dense = len(W) == len(codes)
    found = fit_published_pairs(C, None if dense else W, codes, n_classes, rng)
    T, J = space.basis.T, space.signs
    fits, w = found.fits, found.weights
    return PCVMModel(
        np.arange(len(W)),
        np.flatnonzero((w != 0).any(axis=1)),
        "similarity",
        # K̃ w = C W⁺ Cᵀ w, from the landmarks alone
        w if dense else T @ (J[:, None] * (T.T @ (C.T @ w))),
        found.bias,
        SearchEnd(
            max(fit.n_iter for fit in fits),
            all(fit.converged for fit in fits),
            next((f.reason for f in fits if not f.converged), fits[0].reason),
        ),
    )


def basis_rows(n_basis: int | str, n: int, landmarks: Indices, rng: np.random.Generator) -> Indices:
    """Return the rows of the candidate basis objects: the landmarks, then a random sample."""
    if isinstance(n_basis, str):
        if n_basis != "all":
            raise ValueError(f"n_basis must be a number, 'all' or None; got {n_basis!r}")
        return np.arange(n)
    size = int(n_basis)
    if not 1 <= size <= n:
        raise ValueError(f"n_basis={size} is out of range for {n} objects")
    others = np.setdiff1d(np.arange(n), landmarks)
    order = np.concatenate([landmarks, rng.permutation(others)])
    return np.sort(order[:size])


def _carrying(W: Array) -> Indices:
    """Return the positions of basis objects with a weight; at least one, which predictions need."""
    used = np.flatnonzero((W != 0).any(axis=1))
    return used if len(used) else np.arange(1)
