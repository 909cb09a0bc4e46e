"""Two looks at an object: first the pooled heads, then, if worthwhile, the nearest known objects.

The first look pools the heads (`pooling`). The second adds the evidence of exact comparisons with
a few candidates (`evidence`) to the same pool, with weights of its own:

    p(c | x) ∝ exp(Σ_h a_h log p_h(c | x) + (b + b′ q(x)) e_c(x)),   a, b, b′ ≥ 0,

where the closeness q of the nearest object shows how far the evidence e can be trusted. The
weights of the second look, and which objects get one (`gate`), are learned from held-out objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import Array, Indices
from .evidence import BANDWIDTHS, TAILS, Closeness, class_evidence
from .family import Codes
from .gate import choose_threshold
from .heads import Head, log_proba_of
from .pooling import bounded, fit_pool, pooled

EVIDENCE_WEIGHT = 0.5
"""Prior weight of the evidence in the pool, at a closeness of 1."""

FIRST_TAIL = 0.1
"""The tail used while comparing bandwidths; the other tails are then tried with the best one."""


@dataclass(frozen=True)
class Neighbours:
    """Exact comparisons with known objects: squared dissimilarities and class codes (n, k)."""

    apart: Array
    codes: Codes
    columns: Indices | None = None  # (n, k): positions among the compared objects of all groups

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

    @property
    def least(self) -> Array:
        """The squared dissimilarity to the nearest object (n,); 0 if there is none."""
        found = self.apart.min(axis=1, initial=np.inf)
        return np.where(np.isfinite(found), found, 0.0)

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
    >>> from krein.core.evidence import Closeness
    >>> closeness = Closeness.of(np.arange(10.0), tail=0.5)
    >>> looks = TwoLooks([], np.ones(1), np.array([1.0, 0.5, 0.5]), 1.0, closeness, 0.9, 1000.0)
    >>> unsure = [np.log([[0.5, 0.5]])]
    >>> near = Neighbours(np.array([[0.1, 0.2, 3.0]]), np.array([[1, 1, 0]]))
    >>> np.exp(looks.first_look(unsure)).round(2), np.exp(looks.second_look(unsure, near)).round(2)
    (array([[0.5, 0.5]]), array([[0.28, 0.72]]))
    """

    heads: list[Head]
    first: Array  # (H,): weights of the heads in the first look
    second: Array  # (H + 2,): weights in the second: heads, evidence, evidence times closeness
    bandwidth: float
    closeness: Closeness
    threshold: float  # a largest first-look probability below this leads to a second look
    n_seen: float  # held-out objects that the weights were learned from

    def opinions(self, values: Array) -> list[Array]:
        """Return the log-probabilities (n, C) of each head."""
        return [log_proba_of(head, head.scores(values)) for head in self.heads]

    def first_look(self, opinions: Sequence[Array]) -> Array:
        """Return the pooled log-probabilities (n, C) of the heads."""
        return self.bounded(pooled(self.first, opinions))

    def second_look(self, opinions: Sequence[Array], neighbours: Neighbours) -> Array:
        """Return the log-probabilities (n, C) of heads and evidence."""
        return self.bounded(self._second(opinions, neighbours))

    def unbounded(
        self,
        opinions: Sequence[Array],
        neighbours: Neighbours | None,
        looked: NDArray[np.bool_],
    ) -> Array:
        """Return the pooled log-probabilities (n, C), after the second look where `looked`.

        Unlike those from `bounded`, the most certain of them do not round to the same number.
        """
        found = pooled(self.first, opinions)
        if neighbours is not None and looked.any():
            some = [opinion[looked] for opinion in opinions]
            found[looked] = self._second(some, neighbours.at(looked))
        return found

    def _second(self, opinions: Sequence[Array], neighbours: Neighbours) -> Array:
        both = _both(neighbours, opinions[0].shape[1], self.bandwidth, self.closeness)
        return pooled(self.second, [*opinions, *both])

    def bounded(self, log_proba: Array) -> Array:
        """Return log-probabilities that the held-out objects can support."""
        return bounded(log_proba, self.n_seen, log_proba.shape[1])

    def evidence(self, neighbours: Neighbours, n_classes: int) -> Array:
        """Return the contribution of the neighbours to the pool (n, C): evidence times weight."""
        plain, close = _both(neighbours, n_classes, self.bandwidth, self.closeness)
        return self.second[-2] * plain + self.second[-1] * close


def _both(
    near: Neighbours, n_classes: int, bandwidth: float, closeness: Closeness
) -> tuple[Array, Array]:
    """Return the evidence (n, C), and the evidence times the closeness."""
    evidence = class_evidence(near.apart, near.codes, n_classes, bandwidth)
    return evidence, evidence * closeness(near.least)[:, None]


def learn_first_look(
    heads: list[Head], held_out: Sequence[Array], codes: Codes, weights: Array | None
) -> TwoLooks:
    """Return the first look alone, from held-out log-probabilities of the heads."""
    H = len(held_out)
    first = fit_pool(held_out, codes, np.full(H, 1 / H), weights)
    n = float(len(codes) if weights is None else np.count_nonzero(weights))
    always = Closeness(np.zeros(1), np.ones(1))
    return TwoLooks(heads, first, np.append(first, [0.0, 0.0]), 1.0, always, -np.inf, n)


def learn_second_look(
    looks: TwoLooks,
    held_out: Sequence[Array],
    codes: Codes,
    weights: Array | None,
    neighbours: Neighbours,
    max_share: float = 1.0,
) -> TwoLooks:
    """Return both looks. `neighbours` of the held-out objects exclude the objects themselves.

    `max_share` is the largest share of objects that may get a second look.
    """
    H, C = len(held_out), held_out[0].shape[1]
    rows = np.arange(len(codes))
    w = np.ones(len(codes)) if weights is None else weights
    prior = np.append(np.full(H, 1 / H), np.full(2, EVIDENCE_WEIGHT / 2))
    best: tuple[float, TwoLooks, Array] | None = None

    def attempt(bandwidth: float, tail: float) -> None:
        nonlocal best
        closeness = Closeness.of(neighbours.least, tail, weights)
        opinions = [*held_out, *_both(neighbours, C, bandwidth, closeness)]
        pool = fit_pool(opinions, codes, prior, weights)
        losses = -looks.bounded(pooled(pool, opinions))[rows, codes]
        loss = float(w @ losses)
        if best is None or loss < best[0]:
            found = replace(looks, second=pool, bandwidth=bandwidth, closeness=closeness)
            best = loss, found, losses

    for bandwidth in BANDWIDTHS:
        attempt(bandwidth, FIRST_TAIL)
    assert best is not None
    bandwidth = best[1].bandwidth
    for tail in TAILS:
        if tail != FIRST_TAIL:
            attempt(bandwidth, tail)
    _, chosen, second = best
    first = looks.first_look(held_out)
    threshold = choose_threshold(
        np.exp(first.max(axis=1)), -first[rows, codes], second, weights, max_share=max_share
    )
    return replace(chosen, threshold=threshold)
