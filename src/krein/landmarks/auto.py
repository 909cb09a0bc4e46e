"""Grow the set of landmarks until more of them no longer help."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compare import Pairs
from ..core.calibration import fit_temperature
from ..core.checks import Array, Indices
from ..core.family import Family
from ..core.gaussian import FisherFamily
from ..core.space import LandmarkSpace
from .base import Codes, Rule, Selection
from .meb import MEB

LOSS_CAP = 3.0
"""An object counts as no more wrong than this (nats): beyond it, it is more likely mislabelled, and
a few such would drown what landmarks do for all others."""


class Auto(Rule):
    """Landmarks of `MEB`, plus further ones where the classifier is wrong.

    A share of the objects is held out. Landmarks are added by sampling the others in proportion
    to their loss under the current model, until the mean loss of the held-out ones has stopped
    falling by more than its standard error. The loss is −log p at the best temperature, at most
    `LOSS_CAP`.

    Parameters
    ----------
    growth : float, default=0.5
        Number of landmarks added at a time, as a share of the present ones; at least 10.
    held_out : float, default=0.2
        Share of the objects that the criterion is measured on; they are not landmarks, but the
        classifier is fitted to all objects in the end.
    max_landmarks : int or None, default=None
        Maximum number of landmarks; None stops at half the objects.
    patience : int, default=3
        How many times in a row additional landmarks may fail to help before growing stops.

    Notes
    -----
    Costs what MEB costs and N evaluations for each landmark that was tried, with the default
    patience some three times those kept; those kept are reused by the fit. Keeps the values to all
    that were tried in memory.
    The selection's details hold the `curve`: numbers of `landmarks`, the `criterion`, its
    `standard_error` and the `evaluations` so far.

    Examples
    --------
    >>> from krein import IKFD
    >>> from krein.datasets import make_checkerboard
    >>> from krein.landmarks import Auto
    >>> X, y = make_checkerboard(300, random_state=0)
    >>> clf = IKFD(landmarks=Auto(max_landmarks=40), random_state=0).fit(X, y)
    >>> clf.selection_.details["curve"]["landmarks"]
    array([11., 21., 32., 40.])
    """

    supervised = True

    def __init__(
        self,
        growth: float = 0.5,
        held_out: float = 0.2,
        max_landmarks: int | None = None,
        patience: int = 3,
    ) -> None:
        self.growth = growth
        self.held_out = held_out
        self.max_landmarks = max_landmarks
        self.patience = patience

    def select(
        self,
        pairs: Pairs,
        codes: Codes | None,
        rng: np.random.Generator,
        family: Family | None = None,
    ) -> Selection:
        """Choose landmarks; details hold the `curve`."""
        codes = self._codes(pairs, codes)
        self._check()
        model: Family = family or FisherFamily(int(codes.max()) + 1, shrinkage="oas")
        everyone = np.arange(len(pairs))
        landmarks = MEB().select(pairs, codes, rng).indices
        held = _held_out(codes, landmarks, self.held_out, rng)
        most = min(
            len(pairs) // 2 if self.max_landmarks is None else self.max_landmarks,
            int((~held).sum()),
        )
        values = _columns(pairs, everyone, landmarks)
        curve: list[tuple[float, float, float, float]] = []
        losses: list[Array] = []
        sizes: list[int] = []
        while True:
            space = LandmarkSpace.of(values[landmarks], pairs.kind, rank=model.rank)
            scorer = model.learn(space, codes[landmarks], values[~held], codes[~held], None)
            model = model.after(scorer)
            loss = _losses(scorer(values[held]), codes[held], model)
            losses.append(loss)
            sizes.append(len(landmarks))
            curve.append(
                (len(landmarks), float(loss.mean()), _standard_error(loss), pairs.evaluations)
            )
            learned = float(loss.mean()) <= 1 / len(loss)  # as sure as so many objects can show
            if learned or len(landmarks) >= most or _settled(losses, self.patience):
                break
            open_ = np.setdiff1d(np.flatnonzero(~held), landmarks)
            wrong = _losses(scorer(values[open_]), codes[open_], model)
            wanted = max(10, int(np.ceil(self.growth * len(landmarks))))
            new = _sample(open_, wrong, min(wanted, most - len(landmarks)), rng)
            if len(new) == 0:
                break
            values = np.hstack([values, _columns(pairs, everyone, new)])
            landmarks = np.concatenate([landmarks, new])
        size = sizes[_smallest_good(losses)]
        order = np.argsort(landmarks[:size])
        names = ("landmarks", "criterion", "standard_error", "evaluations")
        details = {"curve": dict(zip(names, np.array(curve).T, strict=True))}
        return Selection(landmarks[:size][order], details, values[:, :size][:, order], model)

    def _check(self) -> None:
        if not self.growth > 0:
            raise ValueError(f"growth must be positive; got {self.growth}")
        if not 0 < self.held_out < 1:
            raise ValueError(f"held_out must be between 0 and 1; got {self.held_out}")
        if self.max_landmarks is not None and self.max_landmarks < 1:
            raise ValueError(f"max_landmarks must be at least 1; got {self.max_landmarks}")
        if self.patience < 1:
            raise ValueError(f"patience must be at least 1; got {self.patience}")


def _columns(pairs: Pairs, everyone: Indices, cols: Indices) -> Array:
    return np.concatenate(list(pairs.map_columns(lambda _, values: values, cols, rows=everyone)))


def _held_out(
    codes: Codes, landmarks: Indices, share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Mark a share of each class, none of them landmarks; at least one object is marked."""
    free = np.ones(len(codes), dtype=bool)
    free[landmarks] = False
    held = np.zeros(len(codes), dtype=bool)
    for c in np.unique(codes):
        members = rng.permutation(np.flatnonzero(free & (codes == c)))
        held[members[: round(share * int((codes == c).sum()))]] = True
    if held.sum() < 2:
        raise ValueError(
            "too few objects to hold some out; use landmarks='meb' or 'all' for such a small set"
        )
    return held


def _losses(scores: Array, codes: Codes, family: Family) -> Array:
    """Capped −log p of each object at the temperature that suits them best.

    A model that grows surer than it should be gets better at ranking classes while its raw
    log-loss rises; temperature is mended later, so it must not stop the growth.
    """
    beta = fit_temperature(scores, codes, family.log_proba)
    return np.minimum(-family.log_proba(beta * scores)[np.arange(len(codes)), codes], LOSS_CAP)


def _better(before: Array, after: Array) -> bool:
    """Whether the mean loss fell by more than its standard error (Breiman et al. 1984).

    Not that of the paired differences, which is smaller: it would follow any improvement that can
    be told from chance, where what is wanted is one worth its comparisons.
    """
    return bool(before.mean() - after.mean() > _standard_error(after))


def _standard_error(losses: Array) -> float:
    return float(losses.std(ddof=1) / np.sqrt(len(losses)))


def _settled(losses: list[Array], patience: int) -> bool:
    """Whether none of the last `patience` sets was better than the best before them."""
    if len(losses) <= patience:
        return False
    best = min(losses[:-patience], key=np.mean)
    return not any(_better(best, loss) for loss in losses[-patience:])


def _smallest_good(losses: list[Array]) -> int:
    """Return the first set that the best one does not better by more than a standard error."""
    best = min(range(len(losses)), key=lambda i: float(losses[i].mean()))
    for i in range(best):
        if not _better(losses[i], losses[best]):
            return i
    return best


def _sample(objects: Indices, losses: Array, n: int, rng: np.random.Generator) -> Indices:
    """Draw objects without replacement, in proportion to their loss."""
    n = min(n, int((losses > 0).sum()))
    p = losses / max(losses.sum(), np.finfo(float).tiny)
    return rng.choice(objects, size=n, replace=False, p=p) if n else objects[:0]
