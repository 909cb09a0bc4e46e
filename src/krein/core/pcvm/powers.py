"""Choose PCVM's basis function of a dissimilarity from the data.

None of −½ d², −d and −√d is best everywhere. Accuracy differs by one percentage point on words and
digits, and by thirty on balls, and not always in the same direction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .basis import BasisFunction
from .laplace import SCALE_ROWS, Candidate, choose_scale
from .mode import PCVMFit, fit_pcvm
from .rows import Array, FeaturesInMemory, Labels, Rows

ROWS_PER_CANDIDATE = 5
"""Basis functions are chosen only with at least this many objects for each of them, not counting
landmarks. With fewer objects, the choice overfits the leave-one-out loss."""

CHOICE_ROWS = 5_000
"""The choice uses about this many objects; more with more than a thousand basis objects."""

CHOICE_BYTES = 2**28
"""If the curvature, 8 C m² bytes, would exceed this size, nothing is chosen."""

CHOICE_TOLERANCE = 1e-4
"""Tolerance per row of the fits that are compared, whose losses differ by more than this."""

STANDARD_ERRORS = 2.0
"""A smaller power must be better by this many standard errors."""

POWERS: tuple[BasisFunction, ...] = ("-d²/2", "-d", "-√d")


def choose_function(
    raw: Rows,
    landmarks: Labels,
    problems: Sequence[tuple[Labels, Labels, int]],
    *,
    otherwise: BasisFunction = POWERS[0],
) -> BasisFunction:
    """Return the basis function with the best leave-one-out loss.

    Starts with −½ d² and moves on to the next smaller power as long as that is clearly better. The
    loss excludes objects of weight 0, and landmarks, because no new object has distance 0 to a
    landmark.

    Parameters
    ----------
    raw : Rows
        Untransformed dissimilarities to the landmarks, and the classes of the objects.
    landmarks : array (m,)
        Which of the rows are the landmarks.
    problems : list of (classes in this problem (C,), classes of the landmarks (m,), how many)
        One joint problem, or one for each class against the rest.
    otherwise : {"-d²/2", "-d", "-√d"}
        The basis function to use if the data do not suffice: fewer than five objects per landmark,
        a class without usable objects, more than 4,000 landmarks, or 8 C m² beyond 256 MB.

    Notes
    -----
    Fits two or three joint models to about `CHOICE_ROWS` objects, or as many binary models per
    class, each with a choice of the prior's scale; each fit solves C systems of size m. The
    difference in leave-one-out loss between −½d² and −d predicts the difference on new objects
    (`benchmarks/powers.py`): −0.023 predicted and −0.028 observed on words, −0.027 and −0.021 on
    tangent distances, +0.42 and +0.39 on balls.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.powers import choose_function
    >>> from krein.core.pcvm.rows import Rows
    >>> X = np.random.default_rng(0).uniform(0, 2, size=(500, 2))
    >>> y = X.astype(int).sum(axis=1) % 2  # a 2×2 checkerboard
    >>> landmarks = np.arange(40)
    >>> D = np.linalg.norm(X[:, None] - X[landmarks], axis=2)
    >>> choose_function(Rows(D, y), landmarks, [(np.arange(2), y[landmarks], 2)])
    '-√d'
    """
    N, m = raw.shape
    wanted = max(CHOICE_ROWS, ROWS_PER_CANDIDATE * m)
    curvature = max(8 * size * m**2 for _, _, size in problems)
    if wanted > SCALE_ROWS or curvature > CHOICE_BYTES:
        return otherwise
    weight = raw.weight
    silent = landmarks if weight is None else np.union1d(landmarks, np.flatnonzero(weight == 0))
    if N - len(silent) < ROWS_PER_CANDIDATE * m:
        return otherwise
    some = raw.thinned(wanted, without=silent)
    if len(np.unique(some.y)) < raw.n_classes:
        return otherwise
    s = np.ones(len(some.y)) if some.weight is None else some.weight / some.weight.mean()
    best, *smaller = POWERS
    least, _ = leave_one_out_losses(best, some, s, problems)
    for function in smaller:
        losses, _ = leave_one_out_losses(function, some, s, problems)
        if not clearly_positive(least - losses, s):
            break
        best, least = function, losses
    return best


def clearly_positive(gain: Array, weight: Array) -> bool:
    """Whether the weighted mean is above 0 by `STANDARD_ERRORS`.

    The standard error is the jackknife's, so an object with most of the weight dominates it.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.powers import clearly_positive
    >>> gain = np.array([1.0, 0.8, 1.2, 0.9, -0.5])
    >>> clearly_positive(gain, np.ones(5)), clearly_positive(gain, np.array([1, 1, 1, 1, 9.0]))
    (True, False)
    """
    p = weight / weight.sum()
    if p.max() >= 1:
        return False
    mean = float(p @ gain)
    error = float(np.sqrt(np.sum(np.square(p * (gain - mean) / (1 - p)))))
    return mean > STANDARD_ERRORS * error


def leave_one_out_losses(
    function: BasisFunction,
    raw: Rows,
    weight: Array,
    problems: Sequence[tuple[Labels, Labels, int]],
) -> tuple[Array, list[PCVMFit]]:
    """Return the leave-one-out loss of each row, summed over the problems, and their models."""
    features = FeaturesInMemory(raw.F, raw.y, weight).under(function)
    total, fits = np.zeros(len(raw.y)), []
    for recode, basis, size in problems:
        rows = features.rows(recode, size)
        if size == 2:
            fit = choose_scale(rows, basis).fit
        else:
            fit = fit_pcvm(rows, basis, tol=CHOICE_TOLERANCE)
        candidate = Candidate.of(rows, fit)
        total += np.concatenate([candidate.losses(block) for block in rows])
        fits.append(fit)
    return total, fits
