"""PCVM as a family: the problems it solves, the settings it chooses, the scores it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr, logsumexp

from ..family import Codes, Scorer, log_proba_joint
from ..space import LandmarkSpace
from .basis import BasisFunction, basis_values
from .laplace import choose_scale
from .mode import PCVMFit, fit_pcvm
from .powers import POWERS, ROWS_PER_CANDIDATE, choose_function
from .prior import GammaPrior
from .prune import prune_pcvm
from .rows import Array, Features, FeaturesInMemory, Labels, Rows

LEARN_TOLERANCE = 1e-5
"""Of fits that are looked at and thrown away, per row."""

Problem = tuple[Labels, Codes, int]
"""New codes of the classes, classes of the basis objects in them, number of classes."""


@dataclass(frozen=True)
class PCVMScorer:
    """Weighted sums of basis functions of values to the landmarks, and how they were chosen."""

    function: BasisFunction
    weights: Array  # (m, 1 or C)
    bias: Array
    scales: tuple[float, ...]

    def __call__(self, values: Array) -> Array:
        """Return scores (n, C)."""
        return both_scores(basis_values(self.function, values) @ self.weights + self.bias)


@dataclass(frozen=True)
class PCVMFamily:
    """Settings of a PCVM; what is None is chosen from the data.

    `scales` are those of the prior, one per problem; `otherwise` is the basis function of a
    dissimilarity where the objects cannot tell.
    """

    n_classes: int
    one_against_rest: bool = False
    sparse: bool | None = None
    function: BasisFunction | None = None
    scales: tuple[float, ...] | None = None
    otherwise: BasisFunction = POWERS[0]
    rank: int | None = None

    def problems(self, landmark_classes: Codes) -> list[Problem]:
        """Return the problems to solve: one joint one, or each class against the rest."""
        C = self.n_classes
        if C == 2 or not self.one_against_rest:
            return [(np.arange(C), landmark_classes, C)]
        alone = np.eye(C, dtype=np.intp)
        return [(recode, recode[landmark_classes], 2) for recode in alone]

    def choose_function(
        self, space: LandmarkSpace, raw: Rows, landmarks: Labels, landmark_classes: Codes
    ) -> BasisFunction:
        """Return the basis function of these landmarks; of too many of them, that of fewer.

        Landmarks grow under it too: −½d² gains nothing from more of them on a checkerboard.
        """
        if space.kind == "similarity":
            return "similarity"
        if self.function is not None:
            return self.function
        problems = self.problems(landmark_classes)
        return choose_function(raw, landmarks, problems, otherwise=self.otherwise)

    def solve(
        self, F: Features, Q: Array | None, landmark_classes: Codes
    ) -> tuple[list[PCVMFit], list[float]]:
        """Return the model of each problem, and the scale of its prior."""
        fits, scales = [], []
        for recode, basis, size in self.problems(landmark_classes):
            rows = F.rows(recode, size)
            prior, start = GammaPrior(), None
            if size == 2:
                chosen = choose_scale(rows, basis, Q)
                prior, start = chosen.prior, (chosen.fit.weights, chosen.fit.bias)
            fit = fit_pcvm(rows, basis, Q, prior=prior, start=start)
            if self.prunes(size, rows.shape[0], len(basis)):
                fit = prune_pcvm(rows, basis, Q, fit, prior=prior).fit
            fits.append(fit)
            scales.append(float(np.sqrt(2 * prior.b)))
        return fits, scales

    def prunes(self, n_classes: int, n: int, n_basis: int) -> bool:
        """Whether to drop basis objects that the loss does not need."""
        if self.sparse is not None:
            return self.sparse
        return n_classes == 2 and n >= ROWS_PER_CANDIDATE * n_basis

    def learn(
        self,
        space: LandmarkSpace,
        landmark_classes: Codes,
        values: Array,
        codes: Codes,
        weights: Array | None,
    ) -> PCVMScorer:
        """Return the scores by the landmarks as basis objects, fitted to values in memory."""
        raw = Rows(values, codes, weights, n_classes=self.n_classes)
        # as far from a landmark as that is from itself: it, or one that is the same
        at_home = np.flatnonzero((values == np.diag(space.landmark_values)).any(axis=1))
        function = self.choose_function(space, raw, at_home, landmark_classes)
        F = FeaturesInMemory(values, codes, weights).under(function)
        problems = self.problems(landmark_classes)
        scales = self.scales or tuple(
            float(np.sqrt(2 * choose_scale(F.rows(recode, size), basis).prior.b))
            if size == 2
            else 1.0
            for recode, basis, size in problems
        )
        fits = [
            fit_pcvm(
                F.rows(recode, size),
                basis,
                prior=GammaPrior(0.5, 0.5 * scale**2),
                tol=LEARN_TOLERANCE,
            )
            for (recode, basis, size), scale in zip(problems, scales, strict=True)
        ]
        W, b = joined_weights(fits, F.mean)
        return PCVMScorer(function, W, b, scales)

    def log_proba(self, scores: Array) -> Array:
        """Return log-probabilities: probit for two classes, softmax or shares of probits."""
        if scores.shape[1] == 2:
            z = scores[:, 1] - scores[:, 0]
            return np.column_stack([log_ndtr(-z), log_ndtr(z)])
        if self.one_against_rest:
            each = log_ndtr(scores)
            found: Array = each - logsumexp(each, axis=1, keepdims=True)
            return found
        return log_proba_joint(scores)

    def after(self, scorer: Scorer) -> PCVMFamily:
        """Return the family with the scales and, as a fallback, the function of an earlier fit."""
        if not isinstance(scorer, PCVMScorer):
            raise TypeError(f"scores learned by this family are wanted; got {scorer!r}")
        power = scorer.function if scorer.function in POWERS else self.otherwise
        return replace(self, scales=scorer.scales, otherwise=power)


def joined_weights(
    fits: Sequence[PCVMFit], mean: Array, Q: Array | None = None
) -> tuple[Array, Array]:
    """Return weights (M, 1 or C) and bias of all problems, for features not yet centred."""
    W = np.hstack([fit.weights for fit in fits])
    return W, np.concatenate([fit.bias for fit in fits]) - mean @ (W if Q is None else Q @ W)


def both_scores(Z: Array) -> Array:
    """Return scores (n, C): the one score of two classes is their difference."""
    return np.hstack([-Z / 2, Z / 2]) if Z.shape[1] == 1 else Z
