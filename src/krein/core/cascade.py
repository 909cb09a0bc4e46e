"""The cascade: a look adds terms to the pool, at a cost; a certain object goes no further.

A term is an array of scores (n, C), such as the log-probabilities of a model, or the evidence of
the nearest objects. After look k, all terms so far are pooled with weights of its own:

    p_k(c | x) ∝ exp(Σ_t a_kt z_tc(x)),   a_k ≥ 0.

An object whose largest probability is at least `enough` is answered there; the others get the next
look. Weights and thresholds are learned from the terms of held-out objects, which pass through the
same loop as new ones. The weights of a look solve a convex problem, and a useless term gets weight
0. The thresholds follow from one rule, from the last look backwards: go on where the loss that this
saves exceeds price × comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
import scipy  # scipy.optimize loads on first use; predictions never need it
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from .moments import weights_of
from .shapes import NON_NEGATIVE, SHARE, Array, Codes, Indices, Within

RIDGE = 20.0
"""Precision of the prior on each weight, in objects; chosen on the protein and aural-sonar data."""

MANY = 100
"""With more classes than this, weights are learned from the most probable ones of each object."""

CROSS_FITTED = 1000
"""Up to this many held-out objects, those from which weights were learned are not ranked by these
weights."""

Terms = Callable[[int, Indices], list[Array]]
"""The terms (n, C) that a look adds for some rows: `terms(look, rows)`."""


@dataclass(frozen=True)
class Look:
    """One look: the weights of all terms so far, and the probability that is enough to answer."""

    weights: Annotated[Array, "terms", NON_NEGATIVE]
    enough: Annotated[float, Within(0.0, infinite=(np.inf,))]


@dataclass(frozen=True)
class Cascade:
    """Looks in their order, and how many held-out objects their weights come from.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.cascade import Cascade, Look
    >>> cascade = Cascade((Look(np.ones(1), 0.8), Look(np.ones(2), 0.0)), np.inf)
    >>> cheap, dear = np.log([[0.9, 0.1], [0.6, 0.4]]), np.log([[0.5, 0.5], [0.2, 0.8]])
    >>> log_p, depth = cascade.run(2, 2, lambda k, rows: [(cheap, dear)[k][rows]])
    >>> depth, np.exp(log_p).round(2).tolist()
    (array([0, 1]), [[0.9, 0.1], [0.27, 0.73]])
    """

    looks: Annotated[tuple[Look, ...], "looks"]
    n_seen: Annotated[float, Within(0.0, infinite=(np.inf,))]

    @classmethod
    def of_one(cls) -> Cascade:
        """Return the cascade of a single model: one look with one term."""
        return cls((Look(np.ones(1), 0.0),), np.inf)

    def run(self, n: int, n_classes: int, terms: Terms) -> tuple[Array, Indices]:
        """Return log-probabilities (n, C) before bounding, and which look answered each object."""
        found = np.full((n, n_classes), -np.log(n_classes))
        depth, unsure = np.zeros(n, dtype=np.intp), np.arange(n)
        so_far: list[Array] = []
        for k, look in enumerate(self.looks):
            if len(unsure) == 0:
                break
            so_far += terms(k, unsure)
            found[unsure], depth[unsure] = pooled(look.weights, so_far), k
            open_ = self.confidence(found[unsure]) < look.enough
            unsure, so_far = unsure[open_], [term[open_] for term in so_far]
        return found, depth

    def bounded(self, log_proba: Array) -> Array:
        """Return log-probabilities no more extreme than the held-out objects can support.

        Mixes in the uniform distribution with a share of 1/(n + 1): even n objects without an error
        do not show that the error rate is below 1/n. The most certain results round to the same
        number.
        """
        if np.isinf(self.n_seen):
            return log_proba
        share = 1.0 / (self.n_seen + 1.0)
        return np.log((1 - share) * np.exp(log_proba) + share / log_proba.shape[1])

    def confidence(self, log_proba: Array) -> Array:
        """Return the largest probability (n,) of each object."""
        if len(log_proba) == 0:
            return np.empty(0)
        largest: Array = self.bounded(log_proba).max(axis=1)
        return np.exp(largest)

    @classmethod
    def learn(
        cls,
        terms: Sequence[Sequence[Array]],
        codes: Codes,
        costs: Sequence[float],
        price: float,
        *,
        weights: Array | None = None,
        n_seen: float | None = None,
        budget: float = np.inf,
    ) -> Cascade:
        """Learn from the terms (n, C) that each look adds for held-out objects of these classes.

        A look takes a number of comparisons (`costs`), and each must lower the loss by `price`; the
        price rises until the mean number of comparisons is within the `budget`. `n_seen` tells how
        many objects these are worth, fewer if some are related.
        """
        n = effective_number(weights, len(codes)) if n_seen is None else n_seen
        found: list[Look] = []
        so_far: list[Array] = []
        for added in terms:
            so_far += added
            found.append(Look(fit_terms(so_far, codes, weights, n)[0], np.inf))
        found[-1] = replace(found[-1], enough=0.0)
        cascade = cls(tuple(found), n)
        after = cascade.after_each(terms)
        losses = [losses_of(cascade.bounded(one), codes) for one in after]
        confidence = [cascade.confidence(one) for one in after]
        w = weights_of(weights, len(codes))
        w = w / max(float(w.sum()), np.finfo(float).tiny)

        def at(price: float) -> tuple[Cascade, float]:
            enough, cost = thresholds(losses, confidence, costs, price, w)
            looks = [replace(look, enough=t) for look, t in zip(found, enough, strict=True)]
            return replace(cascade, looks=tuple(looks)), cost

        best, cost = at(price)
        if cost <= budget:
            return best
        low = high = max(price, 1e-6)
        while cost > budget and high < 1e6:
            low, high = high, 4 * high
            best, cost = at(high)
        for _ in range(20):
            middle = np.sqrt(low * high)
            trial, cost = at(middle)
            if cost <= budget:
                best, high = trial, middle
            else:
                low = middle
        return best

    def held_out(
        self,
        terms: Sequence[Sequence[Array]],
        codes: Codes,
        folds: Indices,
        weights: Array | None = None,
    ) -> Array:
        """Return the log-probabilities (n, C) of the objects that the cascade was learned from.

        If they are few, the weights for the objects of a fold are learned again without them: six
        weights fit a hundred objects better than new ones. Objects of fold −1 are never left out.
        """
        n, C = terms[0][0].shape
        own, _ = self.run(n, C, partial(_rows_of, terms))
        if self.n_seen > CROSS_FITTED:
            return own
        for fold in range(int(folds.max(initial=-1)) + 1):
            held, rest = (np.flatnonzero(mask) for mask in (folds == fold, folds != fold))
            if len(held) == 0 or len(rest) == 0:
                continue
            w, n_rest = None if weights is None else weights[rest], self.n_seen * len(rest) / n
            so_far: list[Array] = []
            looks = []
            for look, added in zip(self.looks, terms, strict=True):
                so_far += [term[rest] for term in added]
                a, _ = fit_terms(so_far, codes[rest], w, n_rest)
                looks.append(replace(look, weights=a))
            part = replace(self, looks=tuple(looks))
            some = [[term[held] for term in added] for added in terms]
            own[held], _ = part.run(len(held), C, partial(_rows_of, some))
        return own

    def after_each(self, terms: Sequence[Sequence[Array]]) -> list[Array]:
        """Return the pooled log-probabilities (n, C) after each look, if all are taken."""
        so_far: list[Array] = []
        found = []
        for look, added in zip(self.looks, terms, strict=True):
            so_far += added
            found.append(pooled(look.weights, so_far))
        return found


def _rows_of(terms: Sequence[Sequence[Array]], k: int, rows: Indices) -> list[Array]:
    """Return the terms of look k for some of the objects whose terms are all known."""
    return [term[rows] for term in terms[k]]


def thresholds(
    losses: Sequence[Array],
    confidence: Sequence[Array],
    costs: Sequence[float],
    price: float,
    weights: Array,
) -> tuple[list[float], float]:
    """Return the probability that is enough at each look, and the mean number of comparisons.

    `losses` and `confidence` (n,) are those of held-out objects after each look, and `weights` sum
    to 1. From the last look backwards: what an object saves by being answered at look k is
    price × the comparisons of the looks to come − the loss that they would avert. The threshold
    maximises the mean of what is saved, less its standard error: a hundred objects cannot show that
    a look is useless. O(K n log n).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.cascade import thresholds
    >>> sure = np.linspace(0.5, 1.0, 1000)
    >>> first, second = np.where(sure < 0.6, 1.0, 0.1), np.full(1000, 0.1)
    >>> each = np.full(1000, 1e-3)
    >>> (t, _), cost = thresholds([first, second], [sure, sure], [10, 50], 1e-4, each)
    >>> bool(0.59 < t < 0.61), round(cost)
    (True, 20)
    """
    found = [0.0]
    later, cost = losses[-1], np.zeros(len(weights))
    for k in range(len(losses) - 2, -1, -1):
        cost = cost + costs[k + 1]
        found.insert(0, best_threshold(confidence[k], price * cost - (losses[k] - later), weights))
        here = confidence[k] >= found[0]
        later, cost = np.where(here, losses[k], later), np.where(here, 0.0, cost)
    return found, float(costs[0] + weights @ cost)


def best_threshold(confidence: Array, saved: Array, weights: Array) -> float:
    """Return the confidence from which an answer saves most, less a standard error; ∞ for none."""
    if len(saved) == 0:
        return np.inf
    order = np.argsort(-confidence, kind="stable")
    c, s, w = confidence[order], saved[order], weights[order]
    mean, square, cross = np.cumsum(w * s), np.cumsum(np.square(w * s)), np.cumsum(w * w * s)
    variance = square - 2 * mean * cross + np.square(mean) * float(w @ w)
    sure = mean - np.sqrt(np.maximum(variance, 0.0))
    last = np.append(c[1:] < c[:-1], True)  # equally certain objects are answered together
    best = int(np.argmax(np.where(last, sure, -np.inf)))
    if sure[best] <= 0:
        return np.inf
    return 0.0 if best == len(c) - 1 else float(c[best] + c[best + 1]) / 2


# -- the weights of one look -----------------------------------------------------------------------


def pooled(weights: Array, terms: Sequence[Array]) -> Array:
    """Return the log-probabilities (n, C) of the pool.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.cascade import pooled
    >>> sure, unsure = np.log([[0.9, 0.1]]), np.log([[0.5, 0.5]])
    >>> np.exp(pooled(np.array([1.0, 1.0]), [sure, unsure])).round(2)
    array([[0.9, 0.1]])
    """
    total = np.zeros_like(terms[0])
    for a, part in zip(weights, terms, strict=True):
        if a:
            total += a * part
    found: Array = log_softmax(total, axis=1)
    return found


def fit_terms(
    terms: Sequence[Array], codes: Codes, weights: Array | None = None, n: float | None = None
) -> tuple[Array, float]:
    """Return the weights of T terms (n, C) with the least penalised loss, and the mean loss.

    The prior mean of each weight is n/(n + 20)/T: a few objects cannot show that the terms are
    right, so the pool starts near the uniform distribution. Otherwise, labels without any pattern
    would get confident answers.
    """
    n = effective_number(weights, len(codes)) if n is None else n
    prior = np.full(len(terms), n / (n + RIDGE) / len(terms))
    parts, codes, offset = among_most_probable(terms, terms, codes)
    a = fit_pool(parts, codes, prior, weights, offset=offset)
    return a, loss_of_pool(a, parts, codes, weights, offset)


def fit_pool(
    terms: Sequence[Array],
    codes: Codes,
    prior: Array,
    weights: Array | None = None,
    *,
    offset: Array | float = 0.0,
    ridge: float = RIDGE,
) -> Array:
    """Return the weights a (T,) for T arrays (n, C) of held-out objects.

    Minimises Σ_i w_i (−log p(code_i)) + ½ ridge ‖a − prior‖² over a ≥ 0, where `offset` (C,) is
    added to the scores. O(T·n·C) per step.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.cascade import fit_pool
    >>> codes = np.arange(300) % 2
    >>> right = np.log(np.where(np.eye(2)[codes] == 1, 0.9, 0.1))
    >>> idle = np.log(np.full((300, 2), 0.5))
    >>> bool(fit_pool([right, idle], codes, np.full(2, 0.5))[0] > 1)
    True
    """
    stacked = np.stack(terms)  # (T, n, C)
    rows = np.arange(len(codes))
    own = stacked[:, rows, codes]  # (T, n)
    w = np.ones(len(codes)) if weights is None else weights

    def loss(a: Array) -> tuple[float, Array]:
        mixed = log_softmax(np.tensordot(a, stacked, 1) + offset, axis=1)
        expected = np.einsum("nc,hnc->hn", np.exp(mixed), stacked)
        away = a - prior
        value = -w @ mixed[rows, codes] + 0.5 * ridge * away @ away
        return float(value), (expected - own) @ w + ridge * away

    result = scipy.optimize.minimize(
        loss,
        prior,
        jac=True,
        bounds=[(0, None)] * len(stacked),
        method="L-BFGS-B",
        options={"ftol": 1e-14, "gtol": 1e-7 * float(w.sum())},
    )
    return np.asarray(result.x, dtype=np.float64)


def loss_of_pool(
    a: Array,
    terms: Sequence[Array],
    codes: Codes,
    weights: Array | None,
    offset: Array | float,
) -> float:
    """Return the mean loss of the pool that `fit_pool` fits, without the penalty."""
    mixed = log_softmax(np.tensordot(a, np.stack(terms), 1) + offset, axis=1)
    return mean_of(losses_of(mixed, codes), weights)


def among_most_probable(
    by: Sequence[Array], terms: Sequence[Array], codes: Codes
) -> tuple[list[Array], Codes, Array | float]:
    """Return terms (n, C) for the `MANY` most probable classes of each object, if there are more.

    Those are the classes that the terms `by` find most probable on average. The others are treated
    as equally probable, in one column more: the mean of exp over them. Also returns the true class
    among these columns, and the logarithm of the number of classes that each column stands for,
    the offset of the pool.
    """
    C = by[0].shape[1]
    if C <= MANY:
        return list(terms), codes, 0.0
    mean = by[0] if len(by) == 1 else np.mean(by, axis=0)
    columns = np.argpartition(-mean, MANY - 1, axis=1)[:, :MANY]
    found = columns == np.asarray(codes)[:, None]
    parts = []
    for term in terms:
        own = np.take_along_axis(term, columns, axis=1)
        total, part = logsumexp(term, axis=1), logsumexp(own, axis=1)
        rest = np.log(np.maximum(-np.expm1(part - total), REST)) + total
        parts.append(np.column_stack([own, rest - np.log(C - MANY)]))
    few = np.where(found.any(axis=1), found.argmax(axis=1), MANY)
    return parts, few, np.append(np.zeros(MANY), np.log(C - MANY))


REST = 1e-12
"""Floor on the share of all other classes together, which rounding could make negative."""


# -- what held-out objects tell --------------------------------------------------------------------


def effective_number(weights: Array | None, n: int) -> float:
    """Return the number of objects that have a weight."""
    return float(n if weights is None else np.count_nonzero(weights))


def losses_of(log_proba: Array, codes: Codes) -> Array:
    """Return the log-losses (n,) of objects with these log-probabilities (n, C) and classes."""
    return -log_proba[np.arange(len(codes)), codes]


def mean_of(values: NDArray[Any], weights: Array | None) -> float:
    """Return the weighted mean of some objects; 0 if there are none."""
    return float(np.average(values, weights=weights)) if len(values) else 0.0


@dataclass(frozen=True)
class HeadWorth:
    """What a head is worth to the pool, as mean log-losses of held-out objects."""

    name: str
    weight: Annotated[float, NON_NEGATIVE]  # in the pool
    alone: Annotated[float, NON_NEGATIVE]  # the log-loss of this head alone
    without: Annotated[float, NON_NEGATIVE]  # of the pool of the others; log C if there are none


@dataclass(frozen=True)
class LookWorth:
    """What the model would reach if it stopped after this look."""

    name: str
    share: Annotated[float, SHARE]  # of the objects that get this look
    comparisons: Annotated[float, NON_NEGATIVE]  # mean per prediction
    log_loss: Annotated[float, NON_NEGATIVE]


@dataclass(frozen=True)
class Worth:
    """What each head and each look is worth, estimated from held-out objects.

    The losses are those of the objects from which the few weights were learned, so they are
    slightly optimistic.
    """

    heads: tuple[HeadWorth, ...]
    looks: tuple[LookWorth, ...]

    def summary(self) -> dict[str, list[dict[str, Any]]]:
        """Return the figures as JSON-compatible values."""
        return {"heads": [vars(h) for h in self.heads], "looks": [vars(k) for k in self.looks]}


def look_worth(
    names: Sequence[str],
    cascade: Cascade,
    terms: Sequence[Sequence[Array]],
    codes: Codes,
    costs: Sequence[float],
    weights: Array | None,
) -> tuple[LookWorth, ...]:
    """Return what each look is worth, from the terms (n, C) of held-out objects."""
    n, C = terms[0][0].shape
    found = []
    for k, name in enumerate(names):
        short = replace(cascade, looks=cascade.looks[: k + 1])
        log_p, depth = short.run(n, C, partial(_rows_of, terms))
        loss = mean_of(losses_of(cascade.bounded(log_p), codes), weights)
        spent = costs[0] + mean_of((np.cumsum(costs) - costs[0])[depth], weights)
        found.append(LookWorth(name, mean_of(depth == k, weights), spent, loss))
    return tuple(found)


def head_worth(
    names: Sequence[str],
    cascade: Cascade,
    pool: Array,
    opinions: Sequence[Array],
    codes: Codes,
    weights: Array | None,
) -> tuple[HeadWorth, ...]:
    """Return what each head is worth, from its log-probabilities (n, C) of held-out objects.

    `pool` (H,) are the weights of the heads; they are learned again without each of them.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.cascade import Cascade, head_worth
    >>> codes = np.arange(100) % 2
    >>> right = np.log(np.where(codes[:, None] == [0, 1], 0.8, 0.2))
    >>> opinions = [right, np.log(np.full((100, 2), 0.5))]
    >>> cascade = Cascade.learn([opinions], codes, [10.0], 1e-4)
    >>> pool = cascade.looks[0].weights
    >>> good, blind = head_worth(["good", "blind"], cascade, pool, opinions, codes, None)
    >>> good.alone < good.without, blind.alone > blind.without
    (True, True)
    """

    def loss(log_p: Array) -> float:
        return mean_of(losses_of(cascade.bounded(log_p), codes), weights)

    found = []
    for h, name in enumerate(names):
        others = [opinion for k, opinion in enumerate(opinions) if k != h]
        without = float(np.log(opinions[h].shape[1]))
        if others:
            a, _ = fit_terms(others, codes, weights, cascade.n_seen)
            without = loss(pooled(a, others))
        found.append(HeadWorth(name, float(pool[h]), loss(opinions[h]), without))
    return tuple(found)
