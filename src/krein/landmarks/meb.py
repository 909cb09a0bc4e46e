"""Landmarks on the surface of each class: minimum enclosing balls (paper, section 4)."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
from numpy.random import Generator

from ..compare import Pairs
from ..core.calibration import Family
from ..core.meb import Ball, minimum_enclosing_ball
from ..core.shapes import Array, Codes, Indices, Kind
from ..core.space import Conversion, double_centre
from ..wording import parameter
from .base import Rule, Selection, given_pairs, in_safe_unit, n_sketched

PSD_TOLERANCE = 1e-8
"""A λ below −1e-8 of the largest |λ| is not a rounding error: the matrix is not psd."""

_TESTED = 300  # number of objects per class whose eigenvalues are checked


class MEB(Rule):
    """The points on the surface of each class's minimum enclosing ball, in kernel space.

    The defaults give the same landmarks whatever the order of the rows. `core_set=True` and
    `start="random"` follow the paper to the letter.

    Parameters
    ----------
    epsilon : float, default=0.01
        Every object of a class lies within (1 + epsilon) times the radius of its ball. Smaller
        values give more landmarks.
    psd : bool or None, default=None
        Whether the measure is positive semi-definite. If so, the ball encloses the points of K_c,
        otherwise those of K_c K_cᵀ. None uses what the measure declares or, if it declares nothing,
        decides from the sketched columns of each class.
    sketch : int or None, default=None
        For K_c K_cᵀ, restrict the rows of K_c to this many random columns of the class. None uses
        all columns of a precomputed matrix, and 100 columns of other measures.
    core_set : bool, default=False
        Keep all points that entered the core set of a ball, as in the paper, and not only those on
        the surface of the final ball. This gives more landmarks.
    start : {"farthest", "random"}, default="farthest"
        The first point of a core set: the one farthest from the origin, or a random one as in the
        paper. The second is the point farthest from the first.

    Notes
    -----
    For a psd measure, the cost is about one column per landmark; otherwise N·sketch evaluations.
    Each class gets at least two landmarks, unless all its objects are identical under a psd
    measure. A class of one object contributes that object, with a warning. Without labels, all
    objects form one class.

    Examples
    --------
    >>> import numpy as np
    >>> from krein import NystromMap
    >>> from krein.landmarks import MEB
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> NystromMap(measure="elm", landmarks=MEB(epsilon=0.1)).fit(X).landmarks_.shape[0] < 20
    True
    """

    def __init__(
        self,
        epsilon: float = 0.01,
        psd: bool | None = None,
        sketch: int | None = None,
        *,
        core_set: bool = False,
        start: Literal["farthest", "random"] = "farthest",
    ) -> None:
        self.epsilon = epsilon
        self.psd = psd
        self.sketch = sketch
        self.core_set = core_set
        self.start = start

    def select(
        self, pairs: Pairs, codes: Codes | None, rng: Generator, family: Family | None = None
    ) -> Selection:
        """Choose landmarks; the details contain the `balls` and whether the measure was treated as
        psd."""
        if self.start not in ("farthest", "random"):
            raise ValueError(f"start must be 'farthest' or 'random'; got {self.start!r}")
        codes = self._codes(pairs, codes)
        size = n_sketched(pairs, self.sketch)
        if pairs.kind == "dissimilarity" and size is None:
            # all values are known: K is their textbook double centring, K_c a block of it
            all_rows = np.arange(len(pairs))
            pairs = given_pairs(double_centre(in_safe_unit(pairs.block(all_rows, all_rows)) ** 2))
        members = [np.flatnonzero(codes == c) for c in np.unique(codes)]
        columns = [
            rows if size is None else np.sort(rng.choice(rows, min(size, len(rows)), False))
            for rows in members
        ]
        psd = pairs.psd if self.psd is None else self.psd
        cores: list[Array | None] = [None] * len(members)
        if psd is None:
            found = [pairs.block(some, some) for some in map(_tested, columns)]
            psd = all(_is_psd(core, pairs.kind) for core in found)
            whole = [len(cols) <= _TESTED for cols in columns]
            cores = [core if known else None for core, known in zip(found, whole, strict=True)]
        balls, chosen = [], []
        for rows, cols, core in zip(members, columns, cores, strict=True):
            start = int(rng.integers(len(rows))) if self.start == "random" else None
            if psd:
                ball = _ball_of_kernel(pairs, rows, self.epsilon, start)
            else:
                ball = _ball_of_rows(pairs, rows, cols, core, self.epsilon, start)
            balls.append(ball)
            points = rows[ball.core if self.core_set else ball.support]
            chosen.append(_at_least_two(rows, points, psd))
        alone = sorted(int(rows[0]) for rows in members if len(rows) == 1)
        if alone:
            warnings.warn(SmallClassWarning(alone), stacklevel=3)
        return Selection(np.sort(np.concatenate(chosen)), {"psd": psd, "balls": balls})


class SmallClassWarning(UserWarning):
    """Classes with one object, which becomes their only landmark; `rows` are these objects."""

    def __init__(self, rows: list[int]) -> None:
        super().__init__(rows)
        self.rows = rows

    def __str__(self) -> str:
        if len(self.rows) == 1:
            return f"a class has one object (row {self.rows[0]}), which becomes its only landmark"
        shown = ", ".join(map(str, self.rows[:5])) + (", …" if len(self.rows) > 5 else "")
        return (
            f"{len(self.rows):,} classes have one object each (rows {shown}), which becomes their "
            f"only landmark"
        )


def _tested(cols: Indices) -> Indices:
    return cols[np.linspace(0, len(cols) - 1, min(_TESTED, len(cols))).astype(np.intp)]


def _is_psd(core: Array, kind: Kind) -> bool:
    core = in_safe_unit(core)
    W = Conversion.of(core, kind).similarities(core)
    lam = np.linalg.eigvalsh((W + W.T) / 2)
    return bool(lam[0] >= -PSD_TOLERANCE * np.abs(lam).max())


def _ball_of_kernel(pairs: Pairs, rows: Indices, epsilon: float, start: int | None) -> Ball:
    """Return the ball of K_c, with one column of the measure per point of the core set."""
    if pairs.kind == "similarity":
        return minimum_enclosing_ball(
            pairs.diagonal(rows),
            lambda j: pairs.block(rows, rows[j : j + 1])[:, 0],
            epsilon=epsilon,
            start=start,
        )
    # a ball does not depend on the origin: put it at the first object, so that
    # ⟨x, y⟩ = ½(d²(x, o) + d²(o, y) − d²(x, y)) needs only columns of d
    to_origin = pairs.block(rows, rows[:1])[:, 0] ** 2

    def column(j: int) -> Array:
        if j == 0:
            return np.zeros(len(rows))
        return 0.5 * (to_origin + to_origin[j] - pairs.block(rows, rows[j : j + 1])[:, 0] ** 2)

    return minimum_enclosing_ball(to_origin, column, epsilon=epsilon, start=start)


def _ball_of_rows(
    pairs: Pairs,
    rows: Indices,
    cols: Indices,
    core: Array | None,
    epsilon: float,
    start: int | None,
) -> Ball:
    """Return the ball of K_c K_cᵀ, from the rows of K_c as points, without an n_c×n_c product."""
    X = np.concatenate(list(pairs.map_columns(lambda _, C: C, cols, rows=rows, known=core)))
    X = in_safe_unit(X)
    X = Conversion.of(X[np.searchsorted(rows, cols)], pairs.kind).similarities(X)
    X -= X.mean(axis=0)  # balls do not depend on the origin; rounding does
    return minimum_enclosing_ball(
        np.einsum("ij,ij->i", X, X), lambda j: X @ X[j], epsilon=epsilon, start=start
    )


def _at_least_two(rows: Indices, points: Indices, psd: bool) -> Indices:
    # identical within the class: any other will do
    if len(rows) > 1 and len(points) == 1 and not psd:
        return np.array([points[0], rows[rows != points[0]][0]])
    return points


def number_of_landmarks(
    asked: int | None, pairs: Pairs, codes: Codes | None, rng: Generator
) -> int:
    """Return `asked` after checking it, or the number that MEB would choose (as in the paper)."""
    if asked is None:
        return len(MEB().select(pairs, codes, rng).indices)
    if asked != int(asked) or asked < 1:
        raise ValueError(f"n_landmarks must be a whole number, at least 1; got {asked}")
    if asked > len(pairs):
        raise ValueError(
            f"{parameter('n_landmarks', asked)} landmarks cannot be chosen among {len(pairs)} "
            f"objects"
        )
    return int(asked)
