"""Methods by name, "family:rule:solver", in the paper's form and in krein's own.

- family: `ikfd` or `pcvm`;
- rule: `all` (dense); `meb`, `kmeans`, `entropy` or `random`, with as many landmarks as MEB finds
  on the same fold; or `kmeans@C` or `random@C`, with one landmark per class;
- solver: `paper` or `ours`; a fourth word, `calibrated`, adds temperature scaling.

The paper's iKFD (`paper/ikfd.py`) adds a ridge where ours shrinks the covariance, fits each class
against the rest where ours fits one model of all classes, and puts the bias half-way between the
means. Its PCVM starts from the labels, sets weights to zero that the M-step makes negative, and
fits one model per pair of classes. Both use the same landmarks, chosen once per fold.
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
"""Weights below this share of the largest one do not count (the paper's threshold)."""


def titled(method: str) -> str:
    """Return the name shown to the reader.

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
    """Return the solver: "paper" or "ours", or "scikit-learn" for a baseline."""
    return "scikit-learn" if method in BASELINES else method.split(":")[2]


def shared(method: str) -> str:
    """Return the landmark rule; methods with the same rule are fitted together."""
    return "" if method in BASELINES else method.split(":")[1]


def choose(method: str, data: Data, A: Any, y: Labels, seed: int) -> Any:
    """Return the landmarks that the rule selects, or the rule itself if the estimator selects."""
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
    """Return the unfitted estimator."""
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
    """Return the inputs of the method for fitting and for prediction."""
    if method in BASELINES:
        return data.similarities(train, train), data.similarities(test, train)
    return data.part(train, train), data.part(test, train)


def facts(model: Any, data: Data, train: Indices, y: Labels) -> dict[str, float]:
    """Return figures of a fitted model: comparisons, landmarks, share of weights, SMSS."""
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
    """Return how many training objects have a weight, in the form αᵀk(x) of the paper.

    PCVM stores them. The paper's Ny-iKFD spreads the weights β of the landmarks over all objects:
    K̃α = C W⁺ Cᵀ α equals the scores C β for α = (Cᵀ)⁺ W β. An object counts if it has a weight
    for at least one class.
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
    """Return s(K̂, K) on the training objects; both centre distances on the landmarks."""
    if len(model.landmarks_) == len(train):
        return 1.0
    moments = model.stream_.moments
    low = margin_low_rank(moments.class_sums(), model.space_.signs, moments.weights)
    centre = train[model.landmarks_]
    K = data.similarities(train, train, centre)
    codes = np.searchsorted(model.classes_, y)
    return smss(low, margin(K, codes, len(model.classes_)))


def quietly(function: Any, *arguments: Any) -> tuple[Any, str]:
    """Call `function`; return its result and the first warning, which is not printed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments)
    return result, str(caught[0].message).splitlines()[0] if caught else ""
