"""Choose the number of landmarks automatically: as many as are worth their comparisons.

The landmarks are the first n objects in one random order, so only their number changes as n grows.
For growing n, the model is fitted to the same objects, and its mean held-out log-loss is modelled
by

    L(n) = a + b n^(−3/4).

The chosen number is the one beyond which another landmark lowers L by less than `price`: where
b ¾ n^(−7/4) = price. Losses at individual n are too noisy to compare with each other. A curve
through all of them is smoother, and the chosen number depends on it continuously.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from ..compare import Pairs
from ..core.calibration import SAMPLE_SIZE, Family, fit_temperature
from ..core.gaussian import GaussianFamily
from ..core.shapes import Array, Codes, Indices
from ..core.space import LandmarkSpace, unit_of
from .base import Rule, Selection
from .random import draw_order

FIRST, RATIO, FEWEST_POINTS = 16, np.sqrt(2), 4
"""Numbers of landmarks to try: from 16 or two per class, by factors of √2, at least four."""

EXPONENT = 0.75
"""Exponent of the curve. Losses fall about as n^(−1/2) on peptides, and as 1/n on gestures. With a
fitted exponent, the chosen number would vary by a factor of two from draw to draw."""


class Auto(Rule):
    """Random landmarks, as many as lower the held-out loss by more than their price.

    A model is fitted with 16, 23, 32, … landmarks, and its held-out loss is computed on every
    object. The curve of these losses shows where another landmark starts to lower the log-loss by
    less than `price`. The landmarks are drawn as by `Stratified`: neither they nor their number
    depend on the order of the rows.

    Parameters
    ----------
    price : float, default=5e-5
        The amount, in nats, by which another landmark must lower the log-loss. With the default, a
        hundred landmarks must lower it by 0.005. A lower price gives more accuracy for more
        comparisons; with 0, `max_landmarks` are used.
    max_landmarks : int or None, default=None
        Maximum number of landmarks. None stops at half of the objects, of which at most 5,000 are
        used; for PCVM with more than 2,500 objects, at a fifth of them, because its held-out losses
        are not reliable beyond that.

    Notes
    -----
    Compares each of N objects with each landmark that is kept, and up to 5,000 objects with the
    landmarks that were tried and dropped, which are seldom more than those kept. The fit does
    not compare any pair again. The values to all landmarks that were tried stay in memory.

    The selection's details contain the `curve`: the numbers of `landmarks` that were tried; the
    `criterion`, which is the mean held-out log-loss at the best temperature; the `standard_error`
    of its paired difference from the last one; and the number of `evaluations` so far.

    Examples
    --------
    >>> from krein import IKFD
    >>> from krein.datasets import make_checkerboard
    >>> from krein.landmarks import Auto
    >>> X, y = make_checkerboard(300, random_state=0)
    >>> clf = IKFD("elm", landmarks=Auto(max_landmarks=40), random_state=0).fit(X, y)
    >>> clf.selection_.details["curve"]["landmarks"]
    array([16., 23., 32., 40.])
    """

    supervised = True

    def __init__(self, price: float = 5e-5, max_landmarks: int | None = None) -> None:
        self.price = price
        self.max_landmarks = max_landmarks

    def select(
        self, pairs: Pairs, codes: Codes | None, rng: Generator, family: Family | None = None
    ) -> Selection:
        """Choose landmarks; the details contain the `curve`."""
        codes = self._codes(pairs, codes)
        if not self.price >= 0:
            raise ValueError(f"price must be a number, at least 0; got {self.price!r}")
        if self.max_landmarks is not None and self.max_landmarks < 1:
            raise ValueError(f"max_landmarks must be at least 1; got {self.max_landmarks}")
        order = draw_order(pairs, codes, rng)
        some = order[:SAMPLE_SIZE]
        model: Family = family or GaussianFamily(int(codes.max()) + 1)
        most = max(model.judged_landmarks(len(some)), 1)
        most = most if self.max_landmarks is None else min(self.max_landmarks, most)
        values = np.empty((len(some), 0))
        curve = _Curve()
        for size in _sizes(most, len(np.unique(codes))):
            values = np.hstack([values, _columns(pairs, some, order[values.shape[1] : size])])
            losses, model = _left_out_losses(model, pairs, values, codes[some])
            curve.add(size, losses, pairs.evaluations)
            n = curve.worth(self.price)
            if len(curve.sizes) >= FEWEST_POINTS and n <= RATIO * size:
                break
        n = min(curve.worth(self.price), most)
        values = np.hstack([values, _columns(pairs, some, order[values.shape[1] : n])])[:, :n]
        rest = _columns(pairs, order[SAMPLE_SIZE:], order[:n])
        known = np.empty((len(order), n))
        known[order] = np.concatenate([values, rest])
        place = np.argsort(order[:n])
        return Selection(order[:n][place], {"curve": curve.details()}, known[:, place], model)


@dataclass
class _Curve:
    """Held-out losses of the same objects for increasing numbers of landmarks."""

    sizes: list[int] = field(default_factory=list)
    losses: list[Array] = field(default_factory=list)  # per object, NaN if it cannot be left out
    evaluations: list[int] = field(default_factory=list)

    def add(self, size: int, losses: Array, evaluations: int) -> None:
        self.sizes.append(size)
        self.losses.append(losses)
        self.evaluations.append(evaluations)

    def known(self) -> Array:
        """Return the losses (sizes, objects) of the objects that are scored at every size."""
        table = np.array(self.losses)
        return table[:, np.isfinite(table).all(axis=0)]

    def worth(self, price: float) -> int:
        """Return the number of landmarks worth their price; the last one tried without a curve."""
        table, n = self.known(), np.array(self.sizes, dtype=float)
        if table.shape[1] == 0 or len(n) < 2:
            return self.sizes[-1]
        b = fall(n, table.mean(axis=1))
        if b <= 0:
            return self.sizes[0]
        with np.errstate(divide="ignore", over="ignore"):
            found = np.divide(b * EXPONENT, price) ** (1 / (1 + EXPONENT))
        return int(np.clip(np.ceil(found), self.sizes[0], np.iinfo(np.int32).max))

    def details(self) -> dict[str, Array]:
        table = self.known()
        n = max(table.shape[1], 1)
        return {
            "landmarks": np.array(self.sizes, float),
            "criterion": table.sum(axis=1) / n,
            "standard_error": np.std(table - table[-1:], axis=1) / np.sqrt(n),
            "evaluations": np.array(self.evaluations, float),
        }


def fall(n: Array, losses: Array) -> float:
    """Return b of the curve a + b n^(−3/4) through the losses, by weighted least squares.

    The spread of a loss over draws of n landmarks falls with n as fast as the loss.
    """
    x = n**-EXPONENT
    w = x**-2 / np.sum(x**-2)
    x = x - w @ x
    return float((w * x) @ losses / ((w * x) @ x))


def _sizes(most: int, n_classes: int) -> list[int]:
    """Return the numbers of landmarks to try, the last one being `most`."""
    found, size = [], float(max(FIRST, 2 * n_classes))
    while round(size) < most:
        found.append(round(size))
        size *= RATIO
    return [*found, most]


def _columns(pairs: Pairs, rows: Indices, cols: Indices) -> Array:
    if len(rows) == 0 or len(cols) == 0:
        return np.empty((len(rows), len(cols)))
    return np.concatenate(list(pairs.map_columns(lambda _, values: values, cols, rows=rows)))


def _left_out_losses(
    family: Family, pairs: Pairs, values: Array, codes: Codes
) -> tuple[Array, Family]:
    """Return the held-out −log p of each object, and the family for the next size.

    The landmarks are the first objects. The loss is taken at the best temperature: the raw log-loss
    of an overconfident model may rise even while its ranking of the classes improves.
    """
    m = values.shape[1]
    between = values[:m]
    space = LandmarkSpace.of(between, pairs.kind, rank=family.rank, unit=unit_of(between))
    scores, rows, chosen = family.left_out(space, values, codes, np.arange(m))
    losses = np.full(len(codes), np.nan)
    if len(rows):
        y = codes[rows]
        beta = fit_temperature(scores, y, family.log_proba)
        losses[rows] = -family.log_proba(beta * scores)[np.arange(len(y)), y]
    return losses, chosen
