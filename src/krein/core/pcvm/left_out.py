"""What PCVM says of objects as if it had not seen them, where there are too many to fit again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..calibration import fit_temperature
from ..family import Codes
from .family import PCVMFamily, both_scores
from .laplace import SCALE_ROWS, score_variances
from .mode import PCVMFit
from .powers import ROWS_PER_CANDIDATE
from .rows import Array, Features, Labels, Rows

LEFT_OUT_ROWS = 5_000
"""About so many rows are asked about, more where there are more than a thousand basis objects."""


def rows_to_ask(n_basis: int) -> int:
    """Return about how many rows `left_out_scores` should be asked about."""
    wanted = max(LEFT_OUT_ROWS, ROWS_PER_CANDIDATE * n_basis)
    return wanted if wanted <= SCALE_ROWS else LEFT_OUT_ROWS


def left_out_scores(
    features: Features,
    problems: Sequence[tuple[Labels, Labels, int]],
    fits: Sequence[PCVMFit],
    some: NDArray[np.intp],
) -> Array:
    """Return the scores (n, one per column of all problems) of some rows by models without them.

    To first order, each row by itself (`laplace`). These rows stand for all of them in the
    curvature of the likelihood, so they have to be several to a basis function. Beyond 4,000 basis
    functions that would be too many: then the scores are those of models that have seen the rows.

    Notes
    -----
    O(n m² C), and C systems of size m, one after the other.
    """
    F: Array | None = None
    found = []
    for (recode, _, size), fit in zip(problems, fits, strict=True):
        rows = features.rows(recode, size)
        F = rows.features(some) if F is None else F
        y = rows.y[some]
        s = np.ones(len(some)) if rows.weight is None else rows.weight[some]
        Z = fit.scores(F)
        if ROWS_PER_CANDIDATE * F.shape[1] <= SCALE_ROWS:
            each = Rows(F, y, s * (rows.shape[0] / len(some)), n_classes=size)
            Z = fit.link.left_out(Z, score_variances(each, fit), y, s)
        found.append(Z)
    return np.hstack(found)


def left_out_temperature(
    family: PCVMFamily,
    landmark_classes: Codes,
    fits: Sequence[PCVMFit],
    features: Features,
    some: NDArray[np.intp],
) -> float:
    """Return the temperature that suits the leave-one-out scores of some rows; 1 without any."""
    C = family.n_classes
    all_rows = features.rows(np.arange(C), C)
    weight = all_rows.weight
    if weight is not None:
        some = some[weight[some] > 0]
    if len(some) == 0:
        return 1.0
    problems = family.problems(landmark_classes)
    scores = both_scores(left_out_scores(features, problems, fits, some))
    counted = None if weight is None else weight[some]
    return fit_temperature(scores, all_rows.y[some], family.log_proba, counted)
