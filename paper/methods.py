"""Methods by name, "family:rule:solver", as the paper describes them and in krein's own form.

- family: `ikfd` or `pcvm`;
- rule: `all` (dense); `meb`, `kmeans`, `entropy` or `random`, with as many landmarks as the paper's
  MEB finds on the same fold; or `kmeans@C` or `random@C`, with one landmark per class;
- solver: `paper`, `variant`, `exact` or `ours`; a fourth word, `calibrated`, adds temperature
  scaling.

`paper` is what the text says. iKFD takes the pseudo-inverse of the within-class scatter of the
columns k(x), and PCVM fits each class against the rest. `variant` differs in one step: iKFD adds a
ridge to the scatter, and PCVM fits one model per pair of classes. `exact` is the text's Ny-PCVM
with the exact inverse of Υ instead of its approximation on 1 % of the objects. All three work on a
kernel matrix; distances are squared and double-centred over the training objects, as in the paper's
footnote. `ours` is the library's default, which centres distances on the
landmarks. All use the same landmarks, chosen once per fold as in the paper: whole core sets from a
random start for MEB.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from krein import IKFD, PCVM
from krein.core.smss import margin, margin_low_rank, smss
from krein.core.space import landmark_basis
from krein.landmarks import MEB, get_rule
from krein.landmarks.base import given_pairs

from .baselines import BASELINES
from .sets import Array, Data, Indices, Labels

SOLVERS = ("paper", "variant", "exact", "ours")

PUBLISHED_FORMS = SOLVERS[:3]

FAMILIES = {"ikfd": "iKFD", "pcvm": "PCVM"}

RULES = {
    "all": "dense",
    "meb": "MEB",
    "kmeans": "k-means",
    "entropy": "entropy",
    "random": "random",
    "auto": "auto",
}

PUBLISHED: dict[tuple[str, str], dict[str, Any]] = {
    ("ikfd", "paper"): {"solver": "paper"},
    ("ikfd", "variant"): {"solver": "paper-ridge"},
    ("pcvm", "paper"): {"solver": "paper", "multiclass": "ovr"},
    ("pcvm", "variant"): {"solver": "paper", "multiclass": "joint"},
    ("pcvm", "exact"): {"solver": "paper-exact", "multiclass": "ovr"},
}

WEIGHT = 1e-4
"""Weights below this share of the largest one do not count (the paper's threshold)."""


TRUNCATED = 1e-3
"""Eigenvalues of W below this share of the largest are dropped from the truncated SMSS."""


def solvers(family: str, rule: str) -> list[str]:
    """Return the solvers of a family; only the low-rank PCVM approximates Υ.

    >>> solvers("ikfd", "meb"), solvers("pcvm", "meb")
    (['paper', 'variant', 'ours'], ['paper', 'variant', 'exact', 'ours'])
    """
    return [s for s in SOLVERS if s != "exact" or (family == "pcvm" and rule != "all")]


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
    """Return the solver: "paper", "variant", "exact", "ours", or "scikit-learn" for a baseline."""
    return "scikit-learn" if method in BASELINES else method.split(":")[2]


def shared(method: str) -> str:
    """Return the landmark rule; methods with the same rule are fitted together."""
    return "" if method in BASELINES else method.split(":")[1]


@dataclass(frozen=True)
class Fold:
    """The training and test objects of a fold, in the forms that methods expect."""

    data: Data
    train: Indices
    test: Indices

    @property
    def y(self) -> Labels:
        """Classes of the training objects."""
        return self.data.y[self.train]

    @cached_property
    def kernel(self) -> Array:
        """Similarities (N, N) of the training objects, exactly symmetric."""
        K = self.data.similarities(self.train, self.train)
        return (K + K.T) / 2

    @cached_property
    def new(self) -> Array:
        """Similarities (n, N) of the test objects to the training objects."""
        return self.data.similarities(self.test, self.train)

    def inputs(self, method: str) -> tuple[Any, Any]:
        """Return the inputs of the method for fitting and for prediction."""
        if solver(method) == "ours":
            data, train = self.data, self.train
            return data.part(train, train), data.part(self.test, train)
        return self.kernel, self.new


def choose(method: str, fold: Fold, seed: int) -> Any:
    """Return the landmarks that the rule selects, or the rule itself if the estimator selects."""
    rule, _, number = shared(method).partition("@")
    if rule in ("", "all", "auto"):
        return rule
    y, pairs = fold.y, given_pairs(fold.kernel)
    balls = MEB(core_set=True, start="random")
    if number:
        m = len(np.unique(y))
    else:
        found = balls.select(pairs, y, np.random.default_rng(seed)).indices
        if rule == "meb":
            return found
        m = len(found)
    chosen = get_rule(rule, m)
    if rule == "kmeans":
        chosen.set_params(sketch=len(y))  # whole rows of K, as published
    return chosen.select(pairs, y, np.random.default_rng(seed)).indices


def build(method: str, data: Data, landmarks: Any, seed: int) -> BaseEstimator:
    """Return the unfitted estimator."""
    if method in BASELINES:
        return BASELINES[method].build()
    family, _, who, *extra = method.split(":")
    common: dict[str, Any] = {"landmarks": landmarks, "n_jobs": 1, "random_state": seed}
    if who != "ours":
        common |= {"measure": "precomputed", **PUBLISHED[family, who]}
        return IKFD(**common) if family == "ikfd" else PCVM(**common)
    common["measure"] = data.measure
    return IKFD(**common, calibrate="calibrated" in extra) if family == "ikfd" else PCVM(**common)


def facts(model: Any, fold: Fold) -> dict[str, float]:
    """Return figures of a fitted model: comparisons, landmarks, share of weights, SMSS."""
    if not hasattr(model, "landmarks_"):
        return {"comparisons": model.comparisons_}
    found = {
        "comparisons": len(model.landmarks_),
        "landmarks": len(model.selection_.indices),
        "weights": 100 * _carrying(model, fold) / len(fold.train),
    }
    if isinstance(model, IKFD) and model.solver == "paper":
        found["smss"], found["smss_truncated"] = score(fold, model.landmarks_)
    return found


def _carrying(model: Any, fold: Fold) -> int:
    """Return how many training objects have a weight, in the form αᵀk(x) of the paper.

    PCVM stores them. The paper's Ny-iKFD spreads the weights β of the landmarks over all objects:
    K̃α = C W⁺ Cᵀ α equals the scores C β for α = (Cᵀ)⁺ W β. An object counts if it has a weight
    for at least one class.
    """
    if isinstance(model, PCVM):
        return len(model.relevance_)
    alpha = model.dual_coef_
    if len(model.landmarks_) < len(fold.train):
        C = model.space_.similarities(_values(model, fold))
        W = model.space_.similarities(model.space_.landmark_values)
        alpha = np.linalg.pinv(C.T) @ (W @ alpha)
    size = np.abs(alpha)
    return int((size > WEIGHT * size.max(axis=0, initial=1e-300)).any(axis=1).sum())


def _values(model: Any, fold: Fold) -> Array:
    """Return the values (N, m) of the training objects to the landmarks, as the model sees them."""
    if model.measure == "precomputed":
        return fold.kernel[:, model.landmarks_]
    data, train = fold.data, fold.train
    L = train[model.landmarks_]
    return data.similarities(train, L) if data.vectors else np.array(data.values[train][:, L])


def score(fold: Fold, landmarks: Indices) -> tuple[float, float]:
    """Return the SMSS s(K̂, K) of the training objects, with K̂ = C W⁺ Cᵀ, plain and truncated.

    Distances are squared and double-centred over the training objects, in K and in K̂ alike. The
    truncated form drops eigenvalues of W below `TRUNCATED` of the largest.
    """
    if len(landmarks) == len(fold.train):
        return 1.0, 1.0
    K, codes = fold.kernel, np.unique(fold.y, return_inverse=True)[1]
    counts = np.bincount(codes).astype(float)
    W = K[np.ix_(landmarks, landmarks)]
    basis = landmark_basis(W)
    B = basis.coordinates(K[:, landmarks])
    sums = np.eye(len(counts))[codes].T @ B  # of each class (C, r)
    whole, r = margin(K, codes, len(counts)), len(landmark_basis(W, tol=TRUNCATED).lam)
    plain, truncated = (
        smss(margin_low_rank(sums[:, :k], basis.signs[:k], counts), whole) for k in (None, r)
    )
    return plain, truncated


def quietly(function: Any, *arguments: Any) -> tuple[Any, str]:
    """Call `function`; return its result and the first warning, which is not printed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments)
    return result, str(caught[0].message).splitlines()[0] if caught else ""
