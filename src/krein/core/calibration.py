"""From values to the landmarks to scores, and from scores to calibrated probabilities.

A `Family` learns scores from values to the landmarks. It is an immutable value that contains only
the settings of a fit, so that landmark rules, calibration and cross-fitting can learn models
without knowing which estimator they work for. Scores become probabilities by a temperature, or by
a scale and offsets, that are fitted to scores of objects that were held out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple, Protocol

import numpy as np
import scipy  # scipy.optimize loads on first use; predictions never need it
from scipy.special import log_expit, log_ndtr, log_softmax, logsumexp

from .moments import weights_of
from .shapes import Array, Codes, Indices
from .space import LandmarkSpace

SAMPLE_SIZE = 5_000
"""Number of objects from which a setting is chosen, or a temperature fitted, if there are more."""

HELD_OUT_OBJECTS = 2_500
"""The same where each object takes comparisons or refits."""

N_FOLDS = 10
"""Number of folds, each of which is held out once."""

Scorer = Callable[[Array], Array]
"""Values of objects to the landmarks (n, m) → scores (n, C)."""


class Family(Protocol):
    """A kind of model with its settings."""

    @property
    def rank(self) -> int | None:
        """The largest number of dimensions of the landmark space; None for no limit."""

    def learn(
        self,
        space: LandmarkSpace,
        landmark_classes: Codes,
        values: Array,
        codes: Codes,
        weights: Array | None,
    ) -> Scorer:
        """Return the scores learned from values (n, m) of objects with class codes (n,)."""

    def log_proba(self, scores: Array) -> Array:
        """Return log-probabilities (n, C) from scores (n, C)."""

    def judged_landmarks(self, n_objects: int) -> int:
        """Return the number of landmarks up to which left-out scores of n objects are reliable."""

    def left_out(
        self, space: LandmarkSpace, values: Array, codes: Codes, landmarks: Indices
    ) -> tuple[Array, Indices, Family]:
        """Return left-out scores (k, C) of objects with values (n, m), and which k are scored.

        The others cannot be left out. The returned family has the settings it chose, as a start for
        more landmarks.

        `landmarks` (m,) are the rows of the landmarks. The result may depend on the order of the
        objects, so sort them by their contents.
        """


@dataclass(frozen=True)
class Priors:
    """Prior probabilities of the classes: given (C,), or the class frequencies.

    The costs of errors multiply them: weights (C,), "balanced", or None for equal costs. They move
    the decision boundary, but do not affect the covariance.
    """

    given: Array | None = None
    costs: Array | Literal["balanced"] | None = None

    def of(self, counts: Array) -> Array:
        """Return the priors (C,), given the number of objects per class."""
        p = counts if self.given is None else self.given
        each = self._costs(counts)
        p = p if each is None else p * each
        return p / p.sum()

    def weights(self, counts: Array) -> Array | None:
        """Return the costs as the weight of an object of each class (C,); None for equal costs.

        The mean weight over all objects is 1, so weighting does not change the effective number of
        objects.
        """
        each = self._costs(counts)
        return None if each is None else each / ((each @ counts) / counts.sum())

    def _costs(self, counts: Array) -> Array | None:
        if self.costs is None or not isinstance(self.costs, str):
            return self.costs
        present = counts > 0
        balanced = counts.sum() / (present.sum() * np.where(present, counts, 1.0))
        return np.where(present, balanced, 1.0)


def log_proba_joint(scores: Array) -> Array:
    """Return log-probabilities from joint scores: softmax."""
    found: Array = log_softmax(scores, axis=1)
    return found


def normalised(log_p: Array) -> Array:
    """Return log-probabilities (n, C) shifted so that the probabilities of a row sum to 1."""
    found: Array = log_p - logsumexp(log_p, axis=1, keepdims=True)
    return found


def log_proba_one_against_rest(scores: Array) -> Array:
    """Return log-probabilities from one-against-rest log-odds: sigmoids, normalised to sum to 1."""
    return normalised(log_expit(scores))


# -------------------------------------------------------------------------------------------------
# Temperature scaling: one inverse temperature β for all scores, p = softmax(β s).
#
# β is fitted to held-out scores.
#
# This is the method of Guo et al. (2017) with a wide normal prior on log β. Without the prior, β
# would go to infinity whenever all held-out objects are classified correctly.
# -------------------------------------------------------------------------------------------------

_SPREAD = 3.0  # standard deviation of the prior on log β
_FAR = 12.0  # the search covers |log β| up to this
_NEWTON_STEPS = 50


def pair_log_shares(Z: Array) -> Array:
    """Return a score for each class (n, C), from one score per pair: twice the mean of log Ψ.

    Softmax turns the scores into probabilities; with two classes these equal Ψ.
    """
    C = classes_of_pairs(Z.shape[1])
    S = np.zeros((len(Z), C))
    for k, (c, d) in enumerate(combinations(range(C), 2)):
        S[:, c] += log_ndtr(-Z[:, k])
        S[:, d] += log_ndtr(Z[:, k])
    found: Array = S * (2 / C)
    return found


def classes_of_pairs(n_pairs: int) -> int:
    """Return the number of classes with this many pairs, C(C − 1)/2."""
    return round((1 + float(np.sqrt(1 + 8 * n_pairs))) / 2)


def fit_temperature(
    scores: Array, codes: Indices, log_proba: Callable[[Array], Array], weights: Array | None = None
) -> float:
    """Return β that maximises Σ w log p(code | β·scores) − ½(log β / 3)². O(n·C) per step.

    `log_proba` turns scores (n, C) into log-probabilities, e.g. log-softmax. The sum includes one
    pseudo-object, which averages over all objects and classes: even if all n objects are
    classified correctly, the next one is wrong with a probability of about 1/n. The objective may
    have two local maxima, so the search starts from the best point of a grid.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.calibration import fit_temperature
    >>> from scipy.special import log_softmax
    >>> scores = np.array([[9.0, 0.0], [9.0, 0.0], [9.0, 0.0]])
    >>> too_sure = fit_temperature(scores, np.array([0, 0, 1]), lambda s: log_softmax(s, axis=1))
    >>> too_sure < 1
    True
    """
    rows = np.arange(len(codes))
    w = weights_of(weights, len(codes))
    share = w / max(float(w.sum()), np.finfo(float).tiny)

    def loss(log_beta: float) -> float:
        log_p = log_proba(np.exp(log_beta) * scores)
        possible = np.isfinite(log_p)
        any_class = np.where(possible, log_p, 0.0).sum(axis=1) / np.maximum(possible.sum(axis=1), 1)
        known = w @ log_p[rows, codes] + share @ any_class
        return float(-known + log_beta**2 / (2 * _SPREAD**2))

    grid = np.linspace(-_FAR, _FAR, 41)
    best = grid[np.argmin([loss(x) for x in grid])]
    step = grid[1] - grid[0]
    around = (best - step, best + step)
    return float(np.exp(scipy.optimize.minimize_scalar(loss, bounds=around, method="bounded").x))


class ScaleAndOffsets(NamedTuple):
    """p = softmax(scale · s + prior + offsets), and the mean loss at these values."""

    scale: float
    offsets: Array  # (C,)
    loss: float


def fit_scale_and_offsets(
    scores: Array,
    log_prior: Array,
    codes: Indices,
    weights: Array | None = None,
    start: ScaleAndOffsets | None = None,
) -> ScaleAndOffsets:
    """Return the β and o with the least −Σ w log softmax(β·s + log π + o)[code] + penalty.

    The penalty β − 1 − log β + ½‖o‖² weighs about as much as one object, and keeps β above 0. The
    sum includes one pseudo-object, which averages over all objects and classes: even if all n
    objects are classified correctly, the next one is wrong with a probability of about 1/n. The
    objective is convex; Newton's method with step halving finds its minimum from any start, at
    O(n·C²) per step. Classes with a log prior of −∞ are ignored.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.calibration import fit_scale_and_offsets
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 500)
    >>> s = np.where(y == 0, -1, 1) + rng.normal(size=1000)
    >>> scores = np.column_stack([-s, s])  # log-odds 2s: calibrated
    >>> found = fit_scale_and_offsets(3 * scores, np.zeros((1000, 2)), y)
    >>> abs(3 * found.scale - 1) < 0.1
    True
    """
    n, C = scores.shape
    w = weights_of(weights, n)
    total = float(w.sum())
    # one row per class: sums over the classes of an object then add whole rows
    log_prior = np.ascontiguousarray(log_prior.T)
    used = np.asarray(np.isfinite(log_prior).any(axis=1))
    wanted = np.where(used[:, None], w / (total * used.sum()), 0.0)  # the pseudo-object
    wanted[codes, np.arange(n)] += w
    w = wanted.sum(axis=0)
    s = np.ascontiguousarray(np.where(np.isfinite(scores), scores, 0.0).T)
    s -= s.max(axis=0)  # a constant per object changes nothing

    def objective(theta: Array) -> tuple[float, Array]:
        beta, o = theta[0], theta[1:]
        log_p = log_softmax(beta * s + log_prior + o[:, None], axis=0)
        penalty = beta - 1 - np.log(beta) + 0.5 * float(o @ o)
        return float(-(wanted[used] * log_p[used]).sum()) + penalty, log_p

    theta = np.append(1.0, np.zeros(C))
    if start is not None:
        theta = np.append(start.scale, start.offsets)
    value, log_p = objective(theta)
    for _ in range(_NEWTON_STEPS):
        p = np.exp(log_p)
        pw, ps = p * w, p * s
        residual = pw - wanted
        mean = ps.sum(axis=0)
        gradient = np.concatenate([[float((residual * s).sum())], residual.sum(axis=1)])
        gradient += np.concatenate([[1 - 1 / theta[0]], theta[1:]])
        H = np.zeros((1 + C, 1 + C))
        H[0, 0] = float(w @ ((ps * s).sum(axis=0) - mean**2)) + theta[0] ** -2
        H[0, 1:] = H[1:, 0] = (pw * (s - mean)).sum(axis=1)
        H[1:, 1:] = np.diag(p @ w) - pw @ p.T + np.eye(C)
        step = np.linalg.solve(H, gradient)
        step[1:][~used] = 0.0
        decrease = float(gradient @ step)
        if decrease <= 1e-8 * max(total, 1.0):
            break
        length = 1.0
        while length > 1e-8:
            trial = theta - length * step
            if trial[0] > 0:
                found, log_q = objective(trial)
                if found <= value - 1e-4 * length * decrease:
                    theta, value, log_p = trial, found, log_q
                    break
            length /= 2
        else:
            break
    return ScaleAndOffsets(float(theta[0]), theta[1:], value / total)
