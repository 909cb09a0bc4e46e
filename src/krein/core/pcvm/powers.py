"""Which function of a dissimilarity PCVM's basis functions are: the objects decide.

None of −½ d², −d and −√d is the best one: they differ in either direction, by a point of accuracy
on words and digits, by thirty on balls.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .basis import BasisFunction
from .laplace import SCALE_ROWS, Candidate, choose_scale
from .mode import PCVMFit, fit_pcvm
from .rows import Array, FeaturesInMemory, Labels, Rows

ROWS_PER_CANDIDATE = 5
"""Basis functions are chosen where so many objects come to each, landmarks not counted. With fewer,
choosing fits the leave-one-out loss itself: what looked as good was not."""

CHOICE_ROWS = 5_000
"""About so many objects decide, more where there are more than a thousand basis objects."""

CHOICE_BYTES = 2**28
"""Beyond so many bytes of curvature, 8 C m², nothing is chosen."""

CHOICE_TOLERANCE = 1e-4
"""Of the fits that are compared, a row: their losses differ by more."""

STANDARD_ERRORS = 2.0
"""A smaller power has to be better by so many standard errors."""

POWERS: tuple[BasisFunction, ...] = ("-d²/2", "-d", "-√d")


def choose_function(
    raw: Rows,
    landmarks: Labels,
    problems: Sequence[tuple[Labels, Labels, int]],
    *,
    otherwise: BasisFunction = POWERS[0],
) -> BasisFunction:
    """Return what separates best by the leave-one-out loss: −½ d², unless a smaller power does.

    From power to power, as long as that is clearly better. Landmarks have no say: they are at
    distance 0 of one, as no new object is. Nor have objects of weight 0.

    Parameters
    ----------
    raw : Rows
        Dissimilarities to the landmarks, as they came, and the classes of the objects.
    landmarks : array (m,)
        Which of the rows are the landmarks.
    problems : list of (classes in this problem (C,), classes of the landmarks (m,), how many)
        One joint problem, or one for each class against the rest.
    otherwise : {"-d²/2", "-d", "-√d"}
        What to take where the objects cannot tell: fewer than five to each landmark, a class
        without a voter, more than 4,000 landmarks, or 8 C m² beyond 256 MB.

    Notes
    -----
    Two or three joint models on some thousand objects, or as many times a binary one of which the
    scale of the prior is chosen; and C systems of size m each. The leave-one-out loss differs
    between −½d² and −d as the loss of new objects does (`benchmarks/powers.py`): said and found
    −0.023 and −0.028 on words, −0.027 and −0.021 on tangent distances, +0.42 and +0.39 on balls.

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

    The error is the jackknife's: an object that has most of the weight has most of the doubt.

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
