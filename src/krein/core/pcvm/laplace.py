"""Leave-one-out loss of PCVM around its posterior mode, and the scale of the prior.

The covariance of the scores around the mode (`covariance`) gives each row's left-out scores to
first order (`cavity`). So the leave-one-out loss costs only one pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .covariance import LossCurvature, ScoreCovariance, score_covariance
from .mode import PCVMFit, fit_pcvm
from .prior import GammaPrior
from .rows import Block, Rows

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

SCALE_ROWS = 20_000
"""The scale of the prior is chosen on about this many rows: enough to tell tenfold steps apart."""

SCALE_TOLERANCE = 1e-5
"""Tolerance per row of the fits that choose the scale."""

MAX_FACTOR = 4
"""The search for the scale goes up to this many tenfold steps either way from the half-Cauchy."""


@dataclass(frozen=True)
class Candidate:
    """A model whose leave-one-out loss can be computed."""

    fit: PCVMFit
    Q: Array | None
    curvature: LossCurvature
    covariance: ScoreCovariance

    @classmethod
    def of(cls, rows: Rows, fit: PCVMFit, Q: Array | None = None) -> Candidate:
        """Return the candidate of a fit."""
        curvature = LossCurvature.of(rows, fit, Q)
        return cls(fit, Q, curvature, score_covariance(curvature, fit, Q))

    def losses(self, block: Block) -> Array:
        """Return the leave-one-out loss of each row of a block."""
        Z = self.fit.scores(block.F, self.Q)
        link = self.fit.link
        return link.losses(self.covariance.left_out(Z, block, link), block.y)


def leave_one_out(rows: Rows, one: Candidate) -> float:
    """Return the mean leave-one-out loss per row. One pass of O(N r k C)."""

    def term(block: Block) -> tuple[Array, ...]:
        s = block.s * np.ones(len(block.y))
        return s @ one.losses(block), s.sum()

    loss, total = rows.total(term)
    return float(loss / total)


def compare(rows: Rows, one: Candidate, other: Candidate) -> tuple[float, float]:
    """Return the extra loss of `other` over `one`, summed over rows, and its standard error.

    A row that stands for f rows adds f² times its variance: it is one observation, not f.
    """

    def term(block: Block) -> tuple[Array, ...]:
        s = block.s * np.ones(len(block.y))
        d = other.losses(block) - one.losses(block)
        e = s * block.drawn
        return s @ d, s.sum(), e @ d**2, e @ d, e.sum()

    first, total, *moments = (float(v) for v in rows.total(term))
    mean = first / total
    second = moments[0] - 2 * mean * moments[1] + mean**2 * moments[2]
    return first, float(np.sqrt(max(second, 0.0)))


@dataclass(frozen=True)
class ScaleChoice:
    """The prior, the fit on the rows that chose it, and (2b, leave-one-out loss) of each trial."""

    prior: GammaPrior
    fit: PCVMFit
    path: tuple[tuple[float, float], ...]


def choose_scale(
    rows: Rows,
    basis_classes: Labels,
    Q: Array | None = None,
) -> ScaleChoice:
    """Return the scale of the prior, in tenfold steps of b, with the least leave-one-out loss.

    Only for two classes; with more, the scale is 1.

    Users cannot know the size of the weights: it is about ten for an easy problem with few
    landmarks, and a tenth for a hundred objects with as many basis functions. The search takes
    three to five warm-started fits on at most about SCALE_ROWS rows.
    """
    rows = rows.thinned(SCALE_ROWS)

    def attempt(k: int, start: PCVMFit | None) -> tuple[PCVMFit, Candidate]:
        fit = fit_pcvm(
            rows,
            basis_classes,
            Q,
            tol=SCALE_TOLERANCE,
            prior=GammaPrior(0.5, 0.5 * 10.0**k),
            start=None if start is None else (start.weights, start.bias),
        )
        return fit, Candidate.of(rows, fit, Q)

    best, (fit, candidate) = 0, attempt(0, None)
    path = [(1.0, leave_one_out(rows, candidate))]
    for direction in (1, -1):
        k, last = best, fit
        while abs(k) < MAX_FACTOR:
            k += direction
            last, trial = attempt(k, last)
            more, error = compare(rows, candidate, trial)
            path.append((10.0**k, leave_one_out(rows, trial)))
            # a weaker prior must be better by one standard error, a stronger one by any amount
            if more > (-error if direction > 0 else 0.0):
                break
            best, fit, candidate = k, last, trial
        if best > 0:
            break
    return ScaleChoice(GammaPrior(0.5, 0.5 * 10.0**best), fit, tuple(path))
