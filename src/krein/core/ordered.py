"""Sums in one fixed order, independent of how the terms are distributed.

Floating-point sums depend on their order. Here the order is that of a tree with `FAN` branches
over the terms 0, 1, 2, …, where each node is the sum of its branches from left to right. A run of
`FAN`ᵏ terms that begins at a multiple of `FAN`ᵏ is a whole branch: it can be summed on another
machine and added as one term of the tree above without changing a digit. So the results of one
thread, many threads, a file read in chunks and a cluster are bit-identical.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Term = TypeVar("Term")

FAN = 8
"""Branches per node. Memory grows with the logarithm, to this base, of the number of terms."""


class OrderedSum(Generic[Term]):
    """A running sum that takes its terms in order, and stores one partial sum per tree level."""

    def __init__(self, add: Callable[[Term, Term], Term]) -> None:
        self._add = add
        self._sums: list[Term | None] = []
        self._counts: list[int] = []

    def push(self, term: Term) -> None:
        """Add the next term."""
        level = 0
        while True:
            if level == len(self._sums):
                self._sums.append(None)
                self._counts.append(0)
            so_far = self._sums[level]
            term = term if so_far is None else self._add(so_far, term)
            self._counts[level] += 1
            if self._counts[level] < FAN:
                self._sums[level] = term
                return
            self._sums[level], self._counts[level] = None, 0
            level += 1

    def result(self) -> Term:
        """Return the sum."""
        total: Term | None = None
        for part in self._sums:
            if part is not None:
                total = part if total is None else self._add(part, total)
        if total is None:
            raise ValueError("there is nothing to sum")
        return total


def ordered_sum(terms: Iterable[Term], add: Callable[[Term, Term], Term]) -> Term:
    """Return the sum of the terms in the fixed order.

    `add(a, b)` may change and return `a`, which is never used again.

    Examples
    --------
    >>> from operator import add
    >>> terms = [0.1 * k for k in range(100)]
    >>> branches = [ordered_sum(terms[i : i + FAN], add) for i in range(0, 100, FAN)]
    >>> ordered_sum(branches, add) == ordered_sum(terms, add)
    True
    """
    total = OrderedSum(add)
    for term in terms:
        total.push(term)
    return total.result()
