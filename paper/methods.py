"""The methods by name, "family:rule:solver": krein's, in the paper's form and in its own.

- family: `ikfd` or `pcvm`;
- rule: `all` (dense), `meb`, `kmeans`, `entropy`, `random`, at as many landmarks as MEB finds on
  the same fold, or `kmeans@C`, `random@C`, at as many as there are classes;
- solver: `paper` or `ours`; a further word, `calibrated`, asks for a temperature.

The paper's iKFD (`ikfd`) has a ridge where ours shrinks the covariance, one class against the rest
where ours has one model of all, and a bias half-way between the means. Its PCVM starts from the
labels, cuts off the weights that the M-step makes negative, and takes one class against one other.
Both get the same landmarks, chosen once per fold.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from krein import IKFD, PCVM
from krein.compare import open_pairs
from krein.core.smss import margin, margin_low_rank, smss
from krein.landmarks import get_rule

from .baselines import BASELINES
from .ikfd import PublishedIKFD
from .sets import Data, Indices, Labels

SOLVERS = ("paper", "ours")

FAMILIES = {"ikfd": "iKFD", "pcvm": "PCVM"}

RULES = {
    "all": "dense",
    "meb": "MEB",
    "kmeans": "k-means",
    "entropy": "entropy",
    "random": "random",
    "auto": "auto",
}

WEIGHT = 1e-4
"""A weight below this share of the largest one does not count (the paper's threshold)."""


def titled(method: str) -> str:
    """Return the name for a reader.

    >>> titled("ikfd:meb:paper"), titled("pcvm:all:ours"), titled("ikfd:kmeans@C:ours")
    ('Ny-iKFD (MEB)', 'PCVM', 'Ny-iKFD (k-means, C landmarks)')
    """
    if method in BASELINES:
        return BASELINES[method].title
    family, rule, _, *extra = method.split(":")
    rule, _, number = rule.partition("@")
    more = "".join(f", {word}" for word in extra)
    if rule == "all":
        return FAMILIES[family] + more
    return f"Ny-{FAMILIES[family]} ({RULES[rule]}{', C landmarks' if number else ''}{more})"


def solver(method: str) -> str:
    """Return who solves: "paper", "ours", or scikit-learn for what it has."""
    return "scikit-learn" if method in BASELINES else method.split(":")[2]


def shared(method: str) -> str:
    """Return what methods have in common that can be fitted together: their landmark rule."""
    return "" if method in BASELINES else method.split(":")[1]


def choose(method: str, data: Data, A: Any, y: Labels, seed: int) -> Any:
    """Return the landmarks that the method's rule chooses; "auto" looks at the method itself."""
    rule, _, number = shared(method).partition("@")
    if rule in ("", "all", "auto"):
        return rule
    m = len(np.unique(y)) if number else None
    pairs = open_pairs(data.measure, A, n_jobs=1)
    chosen = get_rule(rule, m)
    if rule == "kmeans":
        chosen.set_params(sketch=len(y))  # whole rows of K, as published
    return chosen.select(pairs, y, np.random.default_rng(seed)).indices


def build(method: str, data: Data, landmarks: Any, seed: int) -> BaseEstimator:
    """Return the estimator, unfitted."""
    if method in BASELINES:
        return BASELINES[method].build()
    family, _, who, *extra = method.split(":")
    common: dict[str, Any] = {
        "measure": data.measure,
        "landmarks": landmarks,
        "n_jobs": 1,
        "random_state": seed,
    }
    if family == "ikfd":
        if who == "paper":
            return PublishedIKFD(**common, multiclass="ovr", priors="uniform")
        return IKFD(**common, calibrate="calibrated" in extra)
    return PCVM(**common, **({"solver": "paper"} if who == "paper" else {}))


def fit_input(method: str, data: Data, train: Indices, test: Indices) -> tuple[Any, Any]:
    """Return what the method is fitted to, and what it predicts."""
    if method in BASELINES:
        return data.similarities(train, train), data.similarities(test, train)
    return data.part(train, train), data.part(test, train)


def facts(model: Any, data: Data, train: Indices, y: Labels) -> dict[str, float]:
    """Return what a fitted model tells: landmarks, comparisons, share of weights, SMSS."""
    if not hasattr(model, "landmarks_"):
        return {"comparisons": model.comparisons_}
    found = {
        "comparisons": len(model.landmarks_),
        "landmarks": len(model.selection_.indices),
        "weights": 100 * _carrying(model, data, train) / len(train),
    }
    if isinstance(model, IKFD) and model.multiclass == "joint":
        found["smss"] = _smss(model, data, train, y)
    return found


def _carrying(model: Any, data: Data, train: Indices) -> int:
    """Return how many training objects carry a weight, in the form αᵀk(x) of the paper.

    PCVM knows them. The paper's Ny-iKFD spreads what the landmarks say over all objects:
    K̃α = C W⁺ Cᵀ α has the scores C β for α = (Cᵀ)⁺ W β. An object counts where it has a weight
    for any class.
    """
    if isinstance(model, PCVM):
        return len(model.relevance_)
    alpha = model.dual_coef_
    if len(model.landmarks_) < len(train):
        L = train[model.landmarks_]
        C, W = data.similarities(train, L), data.similarities(L, L)
        alpha = np.linalg.pinv(C.T) @ (W @ alpha)
    size = np.abs(alpha)
    return int((size > WEIGHT * size.max(axis=0, initial=1e-300)).any(axis=1).sum())


def _smss(model: IKFD, data: Data, train: Indices, y: Labels) -> float:
    """Return s(K̂, K) on the training objects; distances centred alike in both."""
    if len(model.landmarks_) == len(train):
        return 1.0
    moments = model.stream_.moments
    low = margin_low_rank(moments.class_sums(), model.space_.signs, moments.weights)
    centre = train[model.landmarks_]
    K = data.similarities(train, train, centre)
    codes = np.searchsorted(model.classes_, y)
    return smss(low, margin(K, codes, len(model.classes_)))


def quietly(function: Any, *arguments: Any) -> tuple[Any, str]:
    """Call it; return the result, and the first warning for the row instead of the screen."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments)
    return result, str(caught[0].message).splitlines()[0] if caught else ""
