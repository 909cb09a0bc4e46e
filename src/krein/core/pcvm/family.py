"""PCVM as a family: the problems it solves, the settings it chooses, the scores it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr, logsumexp

from ..calibration import fit_temperature
from ..convert import POWERS as EXPONENTS
from ..family import Codes, LeftOut, log_proba_joint
from ..gaussian import FisherFamily, choose_power
from ..space import LandmarkSpace
from .basis import BasisFunction, basis_values
from .laplace import choose_scale
from .left_out import left_out_scores
from .mode import PCVMFit, fit_pcvm
from .powers import CHOICE_TOLERANCE, POWERS, ROWS_PER_CANDIDATE, choose_function
from .prior import GammaPrior
from .prune import prune_pcvm
from .rows import Array, Features, FeaturesInMemory, Labels, Rows

CHOICE_LANDMARKS = 500
"""Number of landmarks that is sufficient for choosing a power."""

LEARN_TOLERANCE = 1e-5
"""Tolerance per row of fits that only inform a choice and are then discarded."""

FOLDED_OBJECTS, N_FOLDS = 2_500, 5
"""Up to `FOLDED_OBJECTS` objects, left-out scores come from `N_FOLDS` folds."""

ASKED_OBJECTS = 2_500
"""With more objects, this many are scored when the number of landmarks is chosen."""

Problem = tuple[Labels, Codes, int]
"""A problem: the new codes of the classes, the classes of the basis objects, the class count."""


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
    """Settings of a PCVM; settings that are None are chosen from the data.

    `scales` are the scales of the prior, one per problem. `otherwise` is the basis function of a
    dissimilarity if the data do not suffice for a choice.
    """

    n_classes: int
    one_against_rest: bool = False
    sparse: bool | None = None
    function: BasisFunction | None = None
    scales: tuple[float, ...] | None = None
    otherwise: BasisFunction = POWERS[0]
    rank: int | None = None

    def problems(self, landmark_classes: Codes) -> list[Problem]:
        """Return the problems to solve: a joint one, or one for each class against the rest."""
        C = self.n_classes
        if C == 2 or not self.one_against_rest:
            return [(np.arange(C), landmark_classes, C)]
        alone = np.eye(C, dtype=np.intp)
        return [(recode, recode[landmark_classes], 2) for recode in alone]

    def choose_function(
        self, space: LandmarkSpace, raw: Rows, landmarks: Labels, landmark_classes: Codes
    ) -> BasisFunction:
        """Return the basis function for these landmarks, chosen on a subset if there are many.

        The number of landmarks is chosen with this function too: on a checkerboard, −½d² gains
        nothing from more landmarks. If most objects are landmarks, the power is the one with the
        least left-out loss of the Fisher discriminant, whose closed form needs only the landmarks.
        """
        if space.kind == "similarity":
            return "similarity"
        if self.function is not None:
            return self.function
        problems = self.problems(landmark_classes)
        otherwise = self.otherwise
        if 2 * len(landmarks) > len(raw.y):
            power = choose_power(
                FisherFamily(self.n_classes), space, landmark_classes, CHOICE_LANDMARKS
            )
            otherwise = POWERS[EXPONENTS.index(power)]
        return choose_function(raw, landmarks, problems, otherwise=otherwise)

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
        """Whether to drop basis objects that do not improve the loss."""
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
        """Return a scoring function with the landmarks as basis objects, fitted in memory."""
        raw = Rows(values, codes, weights, n_classes=self.n_classes)
        # as far from a landmark as the landmark is from itself: the landmark, or a copy of it
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
        """Return log-probabilities: probit for two classes, else softmax or normalised probits."""
        if scores.shape[1] == 2:
            z = scores[:, 1] - scores[:, 0]
            return np.column_stack([log_ndtr(-z), log_ndtr(z)])
        if self.one_against_rest:
            each = log_ndtr(scores)
            found: Array = each - logsumexp(each, axis=1, keepdims=True)
            return found
        return log_proba_joint(scores)

    def judged_landmarks(self, n_objects: int) -> int:
        """Return the number of landmarks up to which left-out scores of n objects are reliable."""
        return n_objects // (2 if n_objects <= FOLDED_OBJECTS else ROWS_PER_CANDIDATE)

    def left_out(
        self, space: LandmarkSpace, values: Array, codes: Codes, landmarks: Labels
    ) -> LeftOut:
        """Return the left-out scores of some objects.

        For few objects, they come from five folds, assigned in turn. For many objects, they come
        from a first-order approximation, which is too optimistic with fewer than five objects per
        landmark.
        Landmarks are not scored, because no new object has distance 0 to a landmark. The returned
        family has this basis function as its fallback.
        """
        basis = codes[landmarks]
        raw = Rows(values, codes, None, n_classes=self.n_classes)
        function = self.choose_function(space, raw, landmarks, basis)
        features = FeaturesInMemory(values, codes, None).under(function)
        priors, fits = [], []
        for recode, its, size in self.problems(basis):
            rows = features.rows(recode, size)
            if size == 2:
                chosen = choose_scale(rows, its)
                priors.append(chosen.prior)
                fits.append(chosen.fit)
            else:
                priors.append(GammaPrior())
                fits.append(fit_pcvm(rows, its, tol=CHOICE_TOLERANCE))
        others = np.setdiff1d(np.arange(len(codes)), landmarks)
        if len(codes) > FOLDED_OBJECTS:
            asked = others[-ASKED_OBJECTS:]
            scores = both_scores(left_out_scores(features, self.problems(basis), fits, asked))
        else:
            asked, scores = self._folded(function, values, codes, landmarks, fits, priors)
        power = function if function in POWERS else self.otherwise
        return LeftOut(scores, asked, replace(self, otherwise=power))

    def _folded(
        self,
        function: BasisFunction,
        values: Array,
        codes: Codes,
        landmarks: Labels,
        starts: Sequence[PCVMFit],
        priors: Sequence[GammaPrior],
    ) -> tuple[Labels, Array]:
        """Return objects, and their scores from models fitted without their fold."""
        others = np.setdiff1d(np.arange(len(codes)), landmarks)
        problems = self.problems(codes[landmarks])
        asked, scores = [np.empty(0, dtype=np.intp)], [np.empty((0, self.n_classes))]
        for held in (others[k::N_FOLDS] for k in range(N_FOLDS)):
            rest = np.setdiff1d(np.arange(len(codes)), held)
            if len(held) == 0 or len(np.unique(codes[rest])) < self.n_classes:
                continue
            F = FeaturesInMemory(values[rest], codes[rest], None).under(function)
            fits = [
                fit_pcvm(
                    F.rows(recode, size),
                    its,
                    prior=prior,
                    start=(start.weights, start.bias),
                    tol=CHOICE_TOLERANCE,
                )
                for (recode, its, size), start, prior in zip(problems, starts, priors, strict=True)
            ]
            W, b = joined_weights(fits, F.mean)
            asked.append(held)
            scores.append(both_scores(basis_values(function, values[held]) @ W + b))
        return np.concatenate(asked), np.concatenate(scores)


def left_out_temperature(
    family: PCVMFamily,
    landmark_classes: Codes,
    fits: Sequence[PCVMFit],
    features: Features,
    some: Labels,
) -> float:
    """Return the best temperature for the leave-one-out scores of some rows; 1 without rows."""
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


def joined_weights(
    fits: Sequence[PCVMFit], mean: Array, Q: Array | None = None
) -> tuple[Array, Array]:
    """Return weights (M, 1 or C) and bias of all problems, for features not yet centred."""
    W = np.hstack([fit.weights for fit in fits])
    return W, np.concatenate([fit.bias for fit in fits]) - mean @ (W if Q is None else Q @ W)


def both_scores(Z: Array) -> Array:
    """Return scores (n, C). With two classes, the single score is their difference."""
    return np.hstack([-Z / 2, Z / 2]) if Z.shape[1] == 1 else Z
