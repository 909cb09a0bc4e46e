"""Conformal p-values: how a score ranks among those of objects drawn in the same way.

Unusual objects have large scores. Let a₁ … a_n be the scores of held-out objects, and a the score
of a new one. If the new object comes from the same distribution, its rank among all n + 1 is
uniform, so

    p = (1 + #{j : a_j ≥ a}) / (n + 1)

is at most t with probability at most t, whatever the score (Vovk, Gammerman & Shafer 2005). Here,
held-out scores come from models fitted without the object, and from comparisons with all other
training objects, so ranks are uniform up to the effect of one training object. A list needs another
guarantee than a single object: a small share of errors among the objects on it. The
Benjamini–Hochberg procedure turns the p-values of all new objects into such a list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from .chance import ROUNDING, Chance, farther_peers
from .moments import weights_of
from .shapes import CODE, LOG_SIZE, NON_NEGATIVE, Array, Codes, Indices, Kind, Mask

NEAREST = 3
"""A single neighbour may be an outlier; many neighbours may be more than a small class has."""

NOVELTY_GROUP = 500
"""A label with at least this many held-out objects has its own p-values. With 100 objects, p-values
are hardly below 1 %, so novel objects would rank behind objects with more common labels."""

FOUND_BY_CHANCE = 0.01
"""An object is not called known if more than this share of random objects of its size would be at
least as near to the known ones."""

LABEL_GROUP = 30
"""A class with at least this many held-out objects has its own p-values, in steps of about 3 %.
Classes that share p-values reach the coverage jointly, not individually: on Swiss-Prot, the
coverage of some of the 40 classes was off by 8 %."""

SHARED_GROUP = 9
"""Small classes share p-values if they have this many held-out objects together: with fewer, no set
of the usual coverage of 90 % could rule them out. Otherwise, a larger class joins them."""


def conformal_p(reference: Array, scores: Array, weights: Array | None = None) -> Array:
    """Return the p-value of each score among the held-out scores. O((n + q) log n).

    An object of weight w counts as w objects.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.conformal import conformal_p
    >>> conformal_p(np.array([1.0, 2.0, 3.0]), np.array([0.0, 3.0, 9.0]))
    array([1.  , 0.5 , 0.25])
    """
    order = np.argsort(reference, kind="stable")
    w = np.ones(len(reference)) if weights is None else weights[order]
    above = np.append(np.cumsum(w[::-1])[::-1], 0.0)  # the weight of the i-th and all after it
    first = np.searchsorted(reference[order], scores, side="left")
    found: Array = (1.0 + above[first]) / (1.0 + above[0])
    return found


def benjamini_hochberg(p: Array, fdr: float) -> NDArray[np.bool_]:
    """Return which of m hypotheses to reject. O(m log m).

    With the p-values in ascending order and k the largest number such that p_(k) ≤ fdr·k / m, the
    first k are rejected. In expectation, the share of true hypotheses among them is at most `fdr`
    (Benjamini & Hochberg 1995), also for conformal p-values, which share their held-out objects:
    Bates et al. (2023) for novelty, Jin & Candès (2023) for labels.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.conformal import benjamini_hochberg
    >>> benjamini_hochberg(np.array([0.5, 0.01, 0.06]), 0.1)
    array([False,  True,  True])
    """
    ordered, k = np.sort(p), np.arange(1, len(p) + 1)
    small = ordered[ordered * len(p) <= fdr * k + ROUNDING]
    found: NDArray[np.bool_] = p <= small.max(initial=-np.inf)
    return found


def novelty_scores(apart: Array, kind: Kind) -> Array:
    """Return the score (n,) of objects with these squared dissimilarities (n, k), nearest first.

    For a similarity s, the "squared dissimilarities" are −2s, as in `evidence.squared`.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.conformal import novelty_scores
    >>> novelty_scores(np.array([[1.0, 4.0, 9.0, 1e6]]), "dissimilarity")
    array([2.])
    """
    near = apart[:, :NEAREST]
    near = np.sqrt(near) if kind == "dissimilarity" else near / 2
    return near.mean(axis=1)


def log_odds(log_proba: Array) -> Array:
    """Return log(p_c / (1 − p_c)) for each class (n, C), from log-probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.conformal import log_odds
    >>> np.exp(log_odds(np.log([[0.8, 0.2]])))
    array([[4.  , 0.25]])
    """
    rows, best = np.arange(len(log_proba)), log_proba.argmax(axis=1)
    others = log_proba.copy()
    others[rows, best] = -np.inf
    found = log_proba - np.log1p(-np.exp(others))  # p_c ≤ ½ except for the best class
    found[rows, best] = log_proba[rows, best] - logsumexp(others, axis=1)
    return found


@dataclass(frozen=True)
class Reference:
    """The scores of held-out objects, among which new objects are ranked.

    *Novelty* asks whether an object is farther from the known objects than they are from each
    other, or fits no class as well as they do: an object of a new class may lie between known ones.
    Both have a p-value, the second from the log-odds of the predicted label. Their harmonic mean
    (Wilson 2019), in which the second counts half, is ranked among those of held-out objects, so
    that the result is a valid p-value although both depend on each other. Unlike Fisher's product,
    it is small if either of them is: an object that is remote from everything is novel even if the
    models are certain. The reference
    consists of the held-out objects with the same *predicted* label. New objects have a predicted
    label too, so the p-values are valid for every label that has its own reference.

    If objects differ in size, the p-value of the distance is about uniform at every size: the
    reference consists of objects of similar size. First, every object counts the held-out objects
    of about its size whose z (see `Chance`) is at least as high; then this number is ranked among
    those of all held-out objects, which are counted in the same way. Ranking a local rank once more
    keeps the p-value valid overall, whatever the parts of the sizes (Chernozhukov, Wüthrich & Zhu
    2021). An object outside the range of all sizes has no peers: if it is no nearer than random
    objects of its size, it is more unusual than all objects inside; otherwise, it is ranked by its
    own size or by the nearest one in the range, whichever makes it less unusual.

    *Label sets* contain the labels that cannot be ruled out. The nonconformity of a label is high
    if its log-odds are low: a(x, c) = −log(p_c / (1 − p_c)). The p-value of label c ranks a(x, c)
    among the a(x_j, y_j) of held-out objects with their true labels; the set contains the labels
    whose p-value exceeds 1 − coverage. With ranks among all held-out objects, the set contains the
    true label with probability `coverage` overall; with ranks among those of class c, also within
    each class (Vovk 2012). Sets based on the probability of the label are the smallest on average
    (Sadinle, Lei & Wasserman 2019). A set may be empty if no label fits the object. Log-odds order
    labels as probabilities do, and still differ between objects whose probabilities round to 1.

    *Doubt* asks whether the predicted label is wrong. Let s(x) be its log-odds. The p-value counts
    the held-out objects whose predicted label is wrong although it is at least as certain, among
    *all* n held-out objects (Jin & Candès 2023):

        p(x) = (1 + #{j : ŷ(x_j) ≠ y_j, s(x_j) ≥ s(x)}) / (n + 1)

    P(p ≤ t and the label is wrong) ≤ t. Unlike the p-value of a hypothesis, which holds given that
    it is true, this includes the chance of an error, and therefore selects many objects if errors
    are rare. It is 1 unless there is a certainty t ≤ s(x) such that most held-out labels that are
    at least that certain are right. Without this rule, where nothing is recognised and all labels
    are about equally certain, as in 300 classes of one or two objects, it would depend on the
    slightest difference between held-out and new objects.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.conformal import Reference
    >>> one = np.zeros(99, dtype=int)
    >>> far, certainty = np.arange(99.0), np.arange(99.0)[::-1]
    >>> reference = Reference(far, one, certainty, np.arange(99.0), one, None)
    >>> reference.novelty(np.array([50.0, 1000.0]), np.array([48.0, -9.0]), np.array([0, 1]))
    array([0.5 , 0.01])
    >>> reference.sets(np.array([[55.0, -5.0], [0.5, -0.5]]), coverage=0.8, by_class=False)
    array([[ True, False],
           [False, False]])
    """

    scores: Annotated[Array, "n_held_out"]  # novelty scores
    predicted: Annotated[Codes, "n_held_out", CODE]
    certainty: Annotated[Array, "n_held_out"]  # log-odds of the predicted labels
    odds: Annotated[Array, "n_held_out"]  # log-odds of the true labels
    codes: Annotated[Codes, "n_held_out", CODE]
    weights: Annotated[Array, "n_held_out", NON_NEGATIVE] | None
    log_sizes: Annotated[Array, "n_held_out", LOG_SIZE] | None = None
    """None if the objects have no size, or all the same."""
    chance: Chance | None = None
    by_label: bool = True
    """Whether novelty is ranked among objects with the same predicted label. An object without any
    hit has no label of its own, only the most frequent one."""

    @classmethod
    def of(
        cls,
        scores: Array,
        log_proba: Array,
        codes: Codes,
        weights: Array | None,
        log_sizes: Array | None = None,
        *,
        by_label: bool = True,
    ) -> Reference:
        """Return the reference of held-out objects with these log-probabilities (n, C)."""
        codes = codes.astype(np.intp)
        rows, predicted = np.arange(len(codes)), log_proba.argmax(axis=1)
        # a certain label has infinite odds, which a file cannot contain
        odds = np.nan_to_num(log_odds(log_proba))
        scores = np.nan_to_num(scores)  # so is the distance of an object whose group is everything
        if log_sizes is not None and np.ptp(log_sizes) == 0:
            log_sizes = None
        certainty, true = odds[rows, predicted], odds[rows, codes]
        return cls(scores, predicted, certainty, true, codes, weights, log_sizes, by_label=by_label)

    def novelty(
        self, scores: Array, certainty: Array, predicted: Codes, x: Array | None = None
    ) -> Array:
        """Return the novelty p-value (q,) of objects, as the first of `novelty_parts`."""
        return self.novelty_parts(scores, certainty, predicted, x)[0]

    def novelty_parts(
        self, scores: Array, certainty: Array, predicted: Codes, x: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Return three p-values (q,): of novelty, of the distance, and of how well a class fits.

        `scores` and `certainty` (q,) are the novelty scores of the objects and the log-odds of
        their `predicted` classes, and `x` their log sizes, if the reference has some.
        """
        n_classes = 1 + int(max(self.predicted.max(initial=0), predicted.max(initial=0)))
        groups = np.full(n_classes, SHARED)
        if self.by_label:
            enough = NOVELTY_GROUP
            groups = groups_of(self.predicted, n_classes, enough, enough, self.weights)
        own, asked = groups[self.predicted], groups[predicted]
        p, far, unfit = np.ones((3, len(scores)))
        for group in np.unique(asked):
            there = asked == group
            here = own == group
            w = weights_of(self.weights, len(own))[here]
            known, new = self.scores[here], scores[there]
            fit, new_fit = -self.certainty[here], -certainty[there]
            if x is not None:
                known, new = self._for_its_size(here, new, x[there])
                fit, new_fit = self._among_peers(here, fit, new_fit, x[there])
            far[there], unfit[there] = conformal_p(known, new, w), conformal_p(fit, new_fit, w)
            parts = (known, new, far[there]), (fit, new_fit, unfit[there])
            p[there] = _combined(parts, w)
        return p, far, unfit

    def by_chance(self, scores: Array, x: Array | None, compared: Mask | bool = True) -> Array:
        """Return the share (q,) of random objects of the same size that are as near to known ones.

        Without random objects, and for objects that were not `compared`, it is 0 within the
        range of the held-out objects' sizes, and 1 outside.
        """
        if x is None or self.log_sizes is None:
            return np.zeros(len(scores))
        outside = (x < self.log_sizes.min()) | (x > self.log_sizes.max())
        if self.chance is None:
            return np.where(outside, 1.0, 0.0)
        return np.where(compared, self.chance.p_values(scores, x), outside)

    @property
    def trusts_early_answers(self) -> bool:
        """Whether random objects are not answered before they are compared with known ones."""
        return self.chance is None or self.chance.early <= FOUND_BY_CHANCE

    def _for_its_size(
        self, here: NDArray[np.bool_], scores: Array, x: Array
    ) -> tuple[Array, Array]:
        """Return how far the held-out objects `here` and new ones are, for their size."""
        assert self.log_sizes is not None
        own_x, own_scores = self.log_sizes[here], self.scores[here]
        ends = np.sort(own_x)[[0, min(1, len(own_x) - 1), max(len(own_x) - 2, 0), -1]]
        inside, a, b = np.clip(x, ends[0], ends[3]), own_scores, scores
        if self.chance is not None:
            a = self.chance.standardised(a, own_x)
            b = np.minimum(*(self.chance.standardised(b, one) for one in (x, inside)))
        reference, asked = self._among_peers(here, a, b, x)
        if self.chance is not None:
            alike = self.chance.p_values(scores, x) > FOUND_BY_CHANCE
            asked[(x != inside) & alike] = 1.0
            # the smallest and the largest object are outside the range of all others
            alike = self.chance.p_values(own_scores, own_x) > FOUND_BY_CHANCE
            reference[((own_x < ends[1]) | (own_x > ends[2])) & alike] = 1.0
        return reference, asked

    def _among_peers(
        self, here: NDArray[np.bool_], own: Array, asked: Array, x: Array
    ) -> tuple[Array, Array]:
        """Return, negative, the number of held-out objects of about the same size that are at least
        as unusual as the held-out objects `here`, and as new ones."""
        assert self.log_sizes is not None
        own_x, w = self.log_sizes[here], weights_of(self.weights, len(here))[here]
        inside = np.clip(x, own_x.min(), own_x.max())
        reference, new = farther_peers(own_x, own, w, inside, asked)
        return -reference, -new

    def doubt(
        self, certainty: Array, predicted: Codes, wanted: NDArray[np.bool_] | None = None
    ) -> Array:
        """Return the p-value (q,) of a wrong label, from the log-odds of predicted labels.

        With `wanted` (C,), only these labels can be selected: the p-value of others is 1.
        """
        wrong, asked = self.predicted != self.codes, certainty
        own = np.ones(len(wrong), dtype=bool)
        if wanted is not None:
            own = wanted[self.predicted]
            asked = np.where(wanted[predicted], certainty, -np.inf)
        counted = np.where(wrong & own, self.certainty, -np.inf)
        p = conformal_p(counted, asked, self.weights)
        w = weights_of(self.weights, len(own))[own]
        p[asked <= _mostly_wrong_to(self.certainty[own], ~wrong[own], w)] = 1.0
        return p

    def label_p_values(self, odds: Array, *, by_class: bool) -> Array:
        """Return the p-value (q, C) of each label, from log-odds (q, C)."""
        n_classes = odds.shape[1]
        groups = np.full(n_classes, SHARED)
        if by_class:
            groups = groups_of(self.codes, n_classes, LABEL_GROUP, SHARED_GROUP, self.weights)
        own = groups[self.codes]
        found = np.empty(odds.shape)
        for group in np.unique(groups):
            there = groups == group
            found[:, there] = self._ranked(-self.odds, -odds[:, there], group, own)
        return found

    def sets(self, odds: Array, *, coverage: float, by_class: bool) -> NDArray[np.bool_]:
        """Return a mask (q, C) of the labels that cannot be ruled out."""
        found: NDArray[np.bool_] = (
            self.label_p_values(odds, by_class=by_class) > 1 - coverage + ROUNDING
        )
        return found

    def _ranked(self, reference: Array, scores: Array, group: int, own: Indices) -> Array:
        """Return the p-values among the held-out objects of a group."""
        here = own == group
        return conformal_p(
            reference[here], scores, None if self.weights is None else self.weights[here]
        )

    @property
    def smallest(self) -> float:
        """The smallest p-value that an object of any class can have."""
        n = float(len(self.scores) if self.weights is None else self.weights.sum())
        return 1.0 / (n + 1.0)


def _mostly_wrong_to(certainty: Array, right: Mask, weights: Array) -> float:
    """Return the largest t such that at no s ≤ t, most labels of at least this certainty are right.

    It is −∞ if most of all labels are right, and ∞ if there is no s where most are.
    """
    order = np.argsort(-certainty, kind="stable")
    lead = np.cumsum(np.where(right, weights, -weights)[order])
    beyond = np.append(certainty[order], -np.inf)
    last = beyond[1:] < beyond[:-1]  # equally certain labels are counted together
    (found,) = np.nonzero(last & (lead > ROUNDING * weights.sum()))
    return float(beyond[found[-1] + 1]) if len(found) else np.inf


def _combined(parts: tuple[tuple[Array, Array, Array], ...], w: Array) -> Array:
    """Return the p-values (q,) of 1/far + ½/unfit among the same of n held-out objects. O(n·q).

    Each part consists of the scores of held-out objects (n,) and of new ones (q,), and the p-values
    of the latter. A held-out object is ranked among all others and the new one, as the new one is:
    else, an object that is the most unusual in either part would rank first, and the smallest
    p-values would be twice as frequent as they should. With half the weight, the object that fits
    the classes least ranks behind the one that is farthest from all known objects, whose p-value
    is always the smallest possible.
    """
    total, n, q = w.sum() + 1.0, len(w), len(parts[0][1])
    own = []  # 1/p of each held-out object, if the new one is less unusual, and if it is not
    for known, _, _ in parts:
        above = conformal_p(known, known, w) * total
        own.append((total / np.maximum(above - 1.0, np.finfo(float).tiny), total / above))
    found, size = np.empty(q), max(1, BLOCK // max(n, 1))
    for start in range(0, q, size):
        some = slice(start, start + size)
        both, asked = np.zeros((len(parts[0][1][some]), n)), np.zeros(len(parts[0][1][some]))
        for (known, new, p), (without, with_new), share in zip(parts, own, (1.0, 0.5), strict=True):
            both += share * np.where(new[some, None] >= known, with_new, without)
            asked += share / p[some]
        ahead = both >= asked[:, None] * (1 - ROUNDING)
        # not a product, whose rounding depends on how many objects are asked together
        found[some] = (1.0 + np.where(ahead, w, 0.0).sum(axis=1)) / total
    return found


BLOCK = 2**20
"""Pairs of a new and a held-out object whose ranks are compared together."""

SHARED = -1
"""The group of all small classes together."""


def groups_of(
    codes: Codes, n_classes: int, least: int, enough: int, weights: Array | None = None
) -> Indices:
    """Return the group (C,) of each class: its own if it has at least `least` held-out objects.

    The other classes share a group. While it has fewer than `enough` objects, the smallest of the
    remaining classes joins it: every object is then ranked among those of its own group, and the
    p-values of each group are valid. Weights below 1 count as less than one object, weights above 1
    do not count as more.
    """
    counts = np.bincount(codes, minlength=n_classes).astype(np.float64)
    if weights is not None:
        total = np.bincount(codes, weights=weights, minlength=n_classes)
        counts = np.minimum(counts, total + 1e-6)  # with slack for rounding
    order = np.argsort(counts, kind="stable")
    n_shared = int((counts < least).sum())
    if n_shared:
        n_shared = max(n_shared, 1 + int(np.searchsorted(np.cumsum(counts[order]), enough)))
    found = np.arange(n_classes)
    found[order[:n_shared]] = SHARED
    return found


def status_of(
    confidence: Array,
    novelty: Array,
    ambiguous_below: float,
    novel_below: float,
    by_chance: Array | None = None,
) -> NDArray[np.str_]:
    """Return "novel", "ambiguous" or "known" for each object, from its probability and p-value.

    `confidence` is the largest probability, and `by_chance` the share of random objects of the same
    size that are as near to known ones. "Novel" takes precedence over "ambiguous", because doubt
    between classes presupposes that one of them is correct.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.conformal import status_of
    >>> status_of(np.array([0.9, 0.6, 0.9]), np.array([0.5, 0.5, 0.001]), 0.8, 0.01)
    array(['known', 'ambiguous', 'novel'], dtype='<U9')
    """
    unclear = confidence < ambiguous_below
    if by_chance is not None:
        unclear = unclear | (by_chance > FOUND_BY_CHANCE)
    status = np.where(unclear, "ambiguous", "known").astype("<U9")
    status[novelty <= novel_below] = "novel"
    return status
