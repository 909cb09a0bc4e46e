"""Left-out scores of PCVM for data sets that are too large for refits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .coupled import coupled_left_out
from .covariance import LossCurvature, score_covariance
from .laplace import SCALE_ROWS
from .mode import PCVMFit
from .powers import ROWS_PER_CANDIDATE
from .rows import Array, Block, Features, Labels, Rows

LEFT_OUT_ROWS = 5_000
"""About this many rows are scored; more if there are more than a thousand basis objects."""

COUPLED_BYTES = 2**30
"""Up to this many bytes, 8 (2 n² + n m C), the coupling of the classes is computed per row."""

JOINT_WEIGHTS = 3_000
"""Up to this many weights of all classes, scores are treated jointly: one matrix row per weight."""


def rows_to_ask(n_basis: int) -> int:
    """Return the approximate number of rows to pass to `left_out_scores`."""
    wanted = max(LEFT_OUT_ROWS, ROWS_PER_CANDIDATE * n_basis)
    return wanted if wanted <= SCALE_ROWS else LEFT_OUT_ROWS


def left_out_scores(
    features: Features,
    problems: Sequence[tuple[Labels, Labels, int]],
    fits: Sequence[PCVMFit],
    some: NDArray[np.intp],
) -> Array:
    """Return the left-out scores (n, one per column of all problems) of some rows.

    Each row is left out by itself. The scores are correct to first order, with all classes treated
    jointly. These rows represent all rows in the curvature of the likelihood, so there must be
    several per basis function. The model has not seen rows of weight 0, so their scores stay
    unchanged. Softmax scores are determined only up to a constant per row.

    Beyond 4,000 basis functions, too many rows would be needed, so ordinary scores of the fitted
    model are returned instead. With more than two classes, if both 3,000 weights and a gigabyte
    would be exceeded, scores are treated one at a time.

    Notes
    -----
    Solves the smaller of two systems, in the weights of all classes or in the rows: O(n (m C)²) or
    O(n m² C + n³ + 8 n³). The second bound holds if few classes are probable for most rows.
    """
    F: Array | None = None
    found = []
    for (recode, _, size), fit in zip(problems, fits, strict=True):
        rows = features.rows(recode, size)
        F = rows.features(some) if F is None else F
        weight = np.ones(rows.shape[0]) if rows.weight is None else rows.weight
        Z = fit.scores(F)
        seen = np.flatnonzero(weight[some] > 0)
        if ROWS_PER_CANDIDATE * F.shape[1] <= SCALE_ROWS and len(seen):
            s = weight[some][seen]
            each = s * (weight.sum() / s.sum())
            Z[seen] = _left_out(F[seen], rows.y[some][seen], s, each, fit, size)
        found.append(Z)
    return np.hstack(found)


def _left_out(F: Array, y: Labels, s: Array, each: Array, fit: PCVMFit, size: int) -> Array:
    """Return the left-out scores of rows; `each` is the weight that a row represents."""
    n, unknowns = len(y), (F.shape[1] + 1) * fit.weights.shape[1]
    joint = unknowns <= min(n, JOINT_WEIGHTS)
    coupled = 8 * (2 * n**2 + n * unknowns) <= COUPLED_BYTES
    if fit.weights.shape[1] > 1 and not joint and coupled:
        return coupled_left_out(F, y, s, each, fit)
    rows = Rows(F, y, each, n_classes=size)
    curvature = LossCurvature.of(rows, fit, limit=JOINT_WEIGHTS if joint else 0)
    covariance = score_covariance(curvature, fit)
    Z = fit.scores(F)
    return np.vstack(
        [
            covariance.left_out(Z[part], Block(F[part], y[part], s[part]), fit.link)
            for part in (slice(k, k + rows.block_rows) for k in range(0, n, rows.block_rows))
        ]
    )
