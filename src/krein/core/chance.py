"""Scores of objects of different sizes: how far is far for objects of one size.

Scores of short objects are not comparable with those of long ones. `Chance` tells how near random
objects of any size come to the known ones, and `farther_peers` counts the held-out objects of
similar size that are at least as far from them as a new object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from .shapes import LOG_SIZE, POSITIVE, SHARE, Array, Within

PEERS = 50
"""Sizes are divided into parts of this many held-out objects. Parts of 20 to 100 objects are
equally good; larger ones mix families of different lengths."""

ROUNDING = 1e-12
"""Slack for rounding: a size at the end of a range must not lie outside, and in `conformal`, 2/10
must not exceed 1 − 0.8, which rounds to slightly less than 0.2."""


def hats(x: Array, knots: Array) -> Array:
    """Return the weights (n, K) of linear interpolation between ascending knots (K,).

    Each row has one or two weights above 0, which sum to 1. Outside the knots, the nearest one has
    weight 1.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.chance import hats
    >>> hats(np.array([1.5, 9.0]), np.array([1.0, 2.0, 3.0]))
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 1. ]])
    """
    return np.stack([np.interp(x, knots, one) for one in np.eye(len(knots))], axis=1)


POWERS = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""How scores grow or fall with the size s: local similarities as s^−½, edits as s, warped series as
s^½, normalised values hardly."""

SPREADS = 3
"""The spread of random scores is linear between this many log sizes: more would need more objects,
because an estimate that is too small lets random objects look known."""


@dataclass(frozen=True)
class Chance:
    """How near random objects of any size are to the known ones.

    Scores of short objects are not comparable with those of long ones: a few letters resemble a
    part of any sequence, and a distance that sums differences is small. Random objects show how the
    score a depends on the log size x. With their mean μ(x), a combination of powers of the size and
    its logarithm, and their mean absolute deviation σ(x),

        z(a, x) = (a − μ(x)) / σ(x)

    is about 0 for a random object of any size, and far below for one that resembles known objects.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.chance import Chance
    >>> rng = np.random.default_rng(0)
    >>> x = np.linspace(0, 5, 300)  # logarithms of the sizes
    >>> chance = Chance.of(x, np.exp(x) + rng.normal(size=300))
    >>> chance.p_values(np.array([5.0, -5.0]), np.log([5.0, 5.0])).round(1)
    array([0.5, 0. ])
    """

    low: Annotated[float, LOG_SIZE]
    high: Annotated[float, LOG_SIZE]
    mean: Annotated[Array, f"{len(POWERS) + 1}", Within(-1e250, 1e250)]  # of the basis
    spread: Annotated[Array, f"{SPREADS}", POSITIVE]
    scores: Annotated[Array, "n_random", Within(ascending=True)]
    """z of the random objects, each left out."""
    early: Annotated[float, SHARE] = 1.0
    """Share of the random objects that are answered before the last look."""

    @classmethod
    def of(cls, x: Array, scores: Array, early: float = 1.0) -> Chance:
        """Return the trend of scores (n,) of random objects with these log sizes (n,). O(n).

        Weighted least squares: the first solution estimates the spread, the second uses it. The
        residuals r_i / (1 − h_ii) are those of objects that were left out.
        """
        low, high = float(x.min()), float(x.max())
        B, H = _basis(x, low, high), hats(x, np.linspace(low, high, SPREADS))
        sigma = np.ones(len(x))
        for _ in range(2):
            fit = np.linalg.pinv(B / sigma[:, None])
            mean = fit @ (scores / sigma)
            h = np.einsum("nk,kn->n", B / sigma[:, None], fit)
            r = (scores - B @ mean) / np.maximum(1 - h, 0.5)
            least = max(0.1 * float(np.abs(r).mean()), 1e-300)
            spread = np.maximum(np.linalg.pinv(H) @ np.abs(r), least)
            sigma = H @ spread
        return cls(low, high, mean, spread, np.sort(r / sigma), early)

    def standardised(self, scores: Array, x: Array) -> Array:
        """Return z (n,) of objects with these scores and log sizes."""
        sigma = hats(x, np.linspace(self.low, self.high, len(self.spread))) @ self.spread
        return (scores - _basis(x, self.low, self.high) @ self.mean) / sigma

    def p_values(self, scores: Array, x: Array) -> Array:
        """Return the share (n,) of random objects of the same size with a score as low or lower.

        It is 1 for sizes that random objects were not drawn for: nothing is known about them.
        """
        lower = np.searchsorted(self.scores, self.standardised(scores, x), side="right")
        found = (1.0 + lower.astype(np.float64)) / (1.0 + len(self.scores))
        found[(x < self.low - ROUNDING) | (x > self.high + ROUNDING)] = 1.0
        return found


def _basis(x: Array, low: float, high: float) -> Array:
    """Return the functions (n, 6) of log sizes that a trend combines; constant outside a range."""
    y = np.clip(x, low, high) - high
    return np.stack([*(np.exp(power * y) for power in POWERS), y], axis=1)


def farther_peers(
    own_x: Array, own: Array, weights: Array, x: Array, scores: Array
) -> tuple[Array, Array]:
    """Return the number of held-out objects of similar size whose score is not lower.

    First for each of the n held-out objects themselves, with log sizes, scores and weights (n,),
    then for q other objects. The log sizes are divided into parts of about `PEERS` objects, with
    soft borders: an object between the middles of two parts belongs to both, by `hats`, and the
    number is a mean over both. Below 1, it is replaced by the share of objects of all sizes with
    such a score, which still differs between objects that have no peers. O((n + q) log n).
    """
    n, parts = len(own), max(len(own) // PEERS, 1)
    middles = np.unique(np.quantile(own_x, (np.arange(parts) + 0.5) / parts))
    order = np.argsort(own, kind="stable")
    ascending, own_H = own[order], hats(own_x, middles) * weights[:, None]
    above = np.cumsum(own_H[order][::-1], axis=0)[::-1]  # the weight of the i-th and all after it
    above = np.concatenate([above, np.zeros((1, len(middles)))])

    def count(scores: Array, H: Array, itself: Array | float) -> Array:
        place = np.searchsorted(ascending, scores, side="left")
        others = np.maximum(above[0] - itself, np.finfo(float).tiny)
        share = (H * np.maximum(above[place] - itself, 0.0) / others).sum(axis=1)
        peers = np.round(share * n / len(middles), 6)  # sums depend on the order
        return np.where(peers < 1, (n - place) / (n + 1), peers)

    return count(own, hats(own_x, middles), own_H), count(scores, hats(x, middles), 0.0)
