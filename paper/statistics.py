"""Mean ± standard deviation over folds, and the paired mark (*).

The paper marks with (*) a low-rank result that differs significantly from the same dense method.
It does not name its test; here it is the usual two-sided paired t-test over the folds, at 5 %.
Folds share training objects, so this test finds slightly too many differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

LEVEL = 0.05


class Comparison(NamedTuple):
    """Mean of a − b over folds, and its p-value under the hypothesis of no difference."""

    difference: float
    p_value: float
    folds: int

    @property
    def significant(self) -> bool:
        """Whether the difference is marked."""
        return self.p_value < LEVEL


def compare(a: Sequence[float], b: Sequence[float]) -> Comparison:
    """Compare two methods on the same folds, fold by fold.

    With fewer than two folds there is no test, and the p-value is nan. If the difference is the
    same in every fold, it has no variance to test against: the p-value is 1 if the difference is
    zero, else 0.

    >>> compare([90, 91, 92], [80, 81, 82]).significant
    True
    """
    if len(a) != len(b):
        raise ValueError(f"a paired test needs the same folds: got {len(a)} and {len(b)}")
    d = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    if len(d) < 2:
        return Comparison(float(d.mean()), float("nan"), len(d))
    if np.ptp(d) <= 1e-12 * max(float(np.abs(d).max()), 1.0):
        return Comparison(float(d.mean()), float(abs(d[0]) <= 1e-12), len(d))
    return Comparison(float(d.mean()), float(stats.ttest_1samp(d, 0.0).pvalue), len(d))


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Return "mean ± standard deviation" over the folds (with n − 1).

    >>> spread([96.0, 98.0, 100.0])
    '98.00 ± 2.00'
    """
    mean = f"{np.mean(values):.{digits}f}"
    return f"{mean} ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else mean


FROM = 4000
"""Exponents are fitted to the sizes from here on: below, fixed costs dominate."""


def exponents(rows: Sequence[dict[str, str]], field: str = "seconds") -> dict[str, float]:
    """Return the slope of log cost against log N of each method, from N = 4,000 if it got there.

    >>> rows = [{"method": "a", "n": str(n), "seconds": str(n**2)} for n in (1000, 4000, 8000)]
    >>> {k: round(v, 3) for k, v in exponents(rows).items()}
    {'a': 2.0}
    """
    found = {}
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [(float(r["n"]), float(r[field])) for r in rows if r["method"] == method]
        own = [(n, cost) for n, cost in own if n >= FROM and cost > 0] if len(own) > 4 else own
        own = [pair for pair in own if pair[1] > 0]
        if len(own) > 1:
            n, cost = np.log(np.array(own)).T
            found[method] = float(np.polyfit(n, cost, 1)[0])
    return found
