"""What PCVM says of objects as if it had not seen them, where there are too many to fit again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .pcvm import PCVMFit
from .pcvm_function import CHOICE_BYTES
from .pcvm_laplace import surroundings
from .rows import Array, Features, Labels, Rows


def left_out_scores(
    features: Features,
    problems: Sequence[tuple[Labels, Labels, int]],
    fits: Sequence[PCVMFit],
    some: NDArray[np.intp],
) -> Array:
    """Return the scores (n, one a column of all problems) of some rows by models without them.

    To first order, each row by itself (`pcvm_laplace`). These rows stand for all of them in the
    curvature of the likelihood, so they have to be several to a basis function. Beyond 256 MB of
    curvature, 8 C m², the scores are those of the model that has seen them: what one of so many
    rows moves is small.

    Notes
    -----
    O(n m² C), and C systems of size m.
    """
    found = []
    for (recode, _, size), fit in zip(problems, fits, strict=True):
        rows = features.rows(recode, size)
        F, y = rows.features(some), rows.y[some]
        s = np.ones(len(some)) if rows.weight is None else rows.weight[some]
        Z = fit.scores(F)
        if 8 * size * F.shape[1] ** 2 <= CHOICE_BYTES:
            each = Rows(F, y, s * (rows.shape[0] / len(some)), n_classes=size)
            Z = fit.link.left_out(Z, surroundings(each, fit).variance(F), y, s)
        found.append(Z)
    return np.hstack(found)
