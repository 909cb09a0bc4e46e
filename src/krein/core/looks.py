"""Two looks at an object: pooled heads first, and where that pays the nearest known objects.

The first look pools the heads (`pooling`). The second adds the evidence of exact comparisons with
a few candidates (`evidence`) to the same pool, with weights of its own. What the second look is
worth, and whom it is worth looking at again (`gate`), is learned from objects that the heads have
not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import Array, Indices
from .evidence import BANDWIDTHS, class_evidence
from .family import Codes
from .gate import choose_threshold
from .heads import Head, log_proba_of
from .pooling import bounded, fit_pool, pooled

EVIDENCE_WEIGHT = 0.5
"""Prior weight of the evidence in the pool."""


@dataclass(frozen=True)
class Neighbours:
    """Exact comparisons with known objects: squared dissimilarities and class codes (n, k)."""

    apart: Array
    codes: Codes
    columns: Indices | None = None  # (n, k): which of the compared objects, counted over all groups

    @classmethod
    def nearest(cls, parts: Sequence[tuple[Array, Codes]], k: int) -> Neighbours:
        """Return the k nearest of several groups of compared objects, nearest first."""
        apart = np.concatenate([part for part, _ in parts], axis=1)
        codes = np.concatenate([part for _, part in parts], axis=1)
        order = np.argsort(apart, axis=1, kind="stable")[:, :k]
        return cls(
            np.take_along_axis(apart, order, axis=1),
            np.take_along_axis(codes, order, axis=1),
            order,
        )

    def at(self, rows: NDArray[Any]) -> Neighbours:
        """Return the neighbours of some of the objects."""
        columns = None if self.columns is None else self.columns[rows]
        return Neighbours(self.apart[rows], self.codes[rows], columns)


@dataclass(frozen=True)
class TwoLooks:
    """How heads and evidence become one probability.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.looks import Neighbours, TwoLooks
    >>> looks = TwoLooks([], np.ones(1), np.ones(2), 1.0, 0.9, 1000.0)
    >>> unsure = [np.log([[0.5, 0.5]])]
    >>> near = Neighbours(np.array([[0.1, 0.2, 3.0]]), np.array([[1, 1, 0]]))
    >>> np.exp(looks.first_look(unsure)).round(2), np.exp(looks.second_look(unsure, near)).round(2)
    (array([[0.5, 0.5]]), array([[0.28, 0.72]]))
    """

    heads: list[Head]
    first: Array  # (H,): weights of the heads in the first look
    second: Array  # (H + 1,): weights of the heads and of the evidence in the second
    bandwidth: float
    threshold: float  # of the largest first-look probability, below which to look again
    n_seen: float  # held-out objects that the weights were learned from

    def opinions(self, values: Array) -> list[Array]:
        """Return the log-probabilities (n, C) of each head."""
        return [log_proba_of(head, head.scores(values)) for head in self.heads]

    def first_look(self, opinions: Sequence[Array]) -> Array:
        """Return the pooled log-probabilities (n, C) of the heads."""
        return self.bounded(pooled(self.first, opinions))

    def second_look(self, opinions: Sequence[Array], neighbours: Neighbours) -> Array:
        """Return the log-probabilities (n, C) of heads and evidence."""
        evidence = self.evidence(neighbours, opinions[0].shape[1])
        return self.bounded(pooled(self.second, [*opinions, evidence]))

    def unbounded(
        self,
        opinions: Sequence[Array],
        neighbours: Neighbours | None,
        looked: NDArray[np.bool_],
    ) -> Array:
        """Return log-probabilities (n, C) by the second look where `looked`, as pooled: `bounded`
        keeps their order, yet lets the surest of them round to the same number.
        """
        found = pooled(self.first, opinions)
        if neighbours is not None and looked.any():
            some = [opinion[looked] for opinion in opinions]
            evidence = self.evidence(neighbours.at(looked), found.shape[1])
            found[looked] = pooled(self.second, [*some, evidence])
        return found

    def bounded(self, log_proba: Array) -> Array:
        """Return log-probabilities that the held-out objects can support."""
        return bounded(log_proba, self.n_seen)

    def evidence(self, neighbours: Neighbours, n_classes: int) -> Array:
        """Return the evidence (n, C) of the neighbours."""
        return class_evidence(neighbours.apart, neighbours.codes, n_classes, self.bandwidth)


def learn_first_look(
    heads: list[Head], held_out: Sequence[Array], codes: Codes, weights: Array | None
) -> TwoLooks:
    """Return the first look alone, from held-out log-probabilities of the heads."""
    H = len(held_out)
    first = fit_pool(held_out, codes, np.full(H, 1 / H), weights)
    n = float(len(codes) if weights is None else np.count_nonzero(weights))
    return TwoLooks(heads, first, np.append(first, 0.0), 1.0, -np.inf, n)


def learn_second_look(
    looks: TwoLooks,
    held_out: Sequence[Array],
    codes: Codes,
    weights: Array | None,
    neighbours: Neighbours,
    max_share: float = 1.0,
) -> TwoLooks:
    """Return both looks. `neighbours` are those of the held-out objects, without themselves.

    `max_share` is the largest share of objects that may be looked at again.
    """
    H, C = len(held_out), held_out[0].shape[1]
    rows = np.arange(len(codes))
    w = np.ones(len(codes)) if weights is None else weights
    prior = np.append(np.full(H, 1 / H), EVIDENCE_WEIGHT)
    best: tuple[float, TwoLooks, Array] | None = None
    for bandwidth in BANDWIDTHS:
        evidence = class_evidence(neighbours.apart, neighbours.codes, C, bandwidth)
        pool = fit_pool([*held_out, evidence], codes, prior, weights)
        found = bounded(pooled(pool, [*held_out, evidence]), looks.n_seen)
        losses = -found[rows, codes]
        loss = float(w @ losses)
        if best is None or loss < best[0]:
            best = loss, replace(looks, second=pool, bandwidth=bandwidth), losses
    assert best is not None
    _, chosen, second = best
    first = looks.first_look(held_out)
    threshold = choose_threshold(
        np.exp(first.max(axis=1)), -first[rows, codes], second, weights, max_share=max_share
    )
    return replace(chosen, threshold=threshold)
