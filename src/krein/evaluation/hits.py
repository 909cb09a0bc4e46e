"""Cross-validation on a table of hits: nothing is compared, and all models see the same lists.

The baselines do what people do with a table of hits. One takes the label of the best hit; its
probability is the share of held-out references that a best hit with such a score labels correctly.
The other takes a vote.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..core.hits import nearest_hits
from ..core.shapes import Array, Indices
from ..data.labelling import check_groups, check_labels
from ..estimators.krein import KreinClassifier
from ..version import __version__
from .baselines import Baseline
from .groups import groups_per_class, split_folds
from .plan import Plan
from .result import Evaluation, ObjectMap, PairCount, flattened, shown_objects
from .run import cross_validate

VOTED = 10
"""Number of hits that vote."""

AXES = 30
"""Number of eigenvectors of the graph that the map is computed from."""


class BestHit:
    """The label of the best hit, with a probability from isotonic regression on held-out objects.

    The other classes share the rest. Without a hit, the probabilities are the class frequencies.
    """

    title = "best hit, isotonic regression of its score"

    def fit(self, graph: Any, y: NDArray[Any]) -> BestHit:
        """Fit to a graph of similarities (N, N)."""
        from sklearn.isotonic import IsotonicRegression

        self.classes, self.codes = np.unique(y, return_inverse=True)
        score, label = self._best(graph)
        there = np.isfinite(score)
        least = 1 / (there.sum() + 1)
        self.curve = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip")
        if there.any():
            self.curve.fit(score[there], (label == self.codes)[there])
        return self

    def predict_proba(self, graph: Any) -> Array:
        """Return the probabilities (n, C) from the hits (n, N) of new objects."""
        score, label = self._best(graph)
        there, C = np.isfinite(score), len(self.classes)
        p = np.full(len(score), 1 / C)
        if there.any():
            p[there] = self.curve.predict(score[there])
        P = np.tile(((1 - p) / (C - 1))[:, None], (1, C))
        P[np.arange(len(p)), label] = p
        P[~there] = np.bincount(self.codes) / len(self.codes)
        return P

    def _best(self, graph: Any) -> tuple[Array, Indices]:
        """Return score and class code of the best hit of each object; −∞ without a hit."""
        apart, where = nearest_hits(*_lists(graph), 1)
        return -apart[:, 0], self.codes[where[:, 0]]


class HitVote:
    """The share of each class among the ten best hits, with half a vote for all classes."""

    title = f"vote of the {VOTED} best hits"

    def fit(self, graph: Any, y: NDArray[Any]) -> HitVote:
        """Remember the labels."""
        self.classes, self.codes = np.unique(y, return_inverse=True)
        return self

    def predict_proba(self, graph: Any) -> Array:
        """Return the probabilities (n, C) from the hits (n, N) of new objects."""
        C = len(self.classes)
        apart, where = nearest_hits(*_lists(graph), VOTED)
        P = np.full((len(apart), C), 0.5 / C)
        rows, places = np.nonzero(np.isfinite(apart))
        np.add.at(P, (rows, self.codes[where[rows, places]]), 1.0)
        found: Array = P / P.sum(axis=1, keepdims=True)
        return found


def _lists(graph: Any) -> tuple[Any, Any, Any]:
    return graph.indptr, graph.indices, -graph.data


class _OnGraph(Baseline):
    """A classifier on graphs, for objects given by their indices in a graph of hits."""

    comparisons_to_fit_ = 0
    comparisons_ = 0.0

    def __init__(self, graph: Any, classifier: Any, title: str) -> None:
        self.graph, self.classifier, self.title = graph, classifier, title
        self.takes_groups = isinstance(classifier, KreinClassifier)
        self.landmarks_ = np.empty(0, dtype=np.intp)

    def fit(self, X: Indices, y: NDArray[Any], **groups: Any) -> _OnGraph:
        self.train_ = X
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # said once, by the command
            self.classifier.fit(self.graph[X][:, X], y, **groups)
        return self

    def predict_proba(self, X: Indices) -> Array:
        found: Array = self.classifier.predict_proba(self.graph[X][:, self.train_])
        return found


def evaluate_hits(
    graph: Any,
    y: Any,
    *,
    names: Sequence[str],
    folds: int = 10,
    groups: Any = None,
    class_weight: str | None = None,
    label_ranks: str | None = None,
    rank_above: float = 0.9,
    random_state: int = 0,
    score: str = "",
) -> Evaluation:
    """Cross-validate krein, the best hit, and a vote on the hits of objects among each other.

    Parameters
    ----------
    graph : sparse matrix (N, N)
        Similarities of each object with its hits.
    y : array of N labels
    names : sequence of N names
    folds : int, default=10
    groups : array of N groups, optional
        A group is in one fold.
    class_weight : "balanced" or None, default=None
        For krein.
    label_ranks, rank_above
        As in `evaluate`.
    random_state : int, default=0
        Seed of the folds.
    score : str, default=""
        The column that the values come from.

    Returns
    -------
    Evaluation
        Without a spectrum: most values are unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import kneighbors_graph
    >>> from krein.evaluation.hits import evaluate_hits
    >>> X = np.random.default_rng(0).normal(size=(90, 2)) + np.repeat([[0], [4], [8]], 30, axis=0)
    >>> graph = kneighbors_graph(X, 10, mode="distance")
    >>> graph.data *= -1
    >>> names = [str(i) for i in range(90)]
    >>> found = evaluate_hits(graph, np.repeat([0, 1, 2], 30), names=names, folds=3)
    >>> bool(found.models["krein"].right.mean() > 0.9)
    True
    """
    labels, names = check_labels(np.asarray(y), graph.shape[0]), list(names)
    grouped = None if groups is None else check_groups(groups, len(labels))
    classes, codes = np.unique(labels, return_inverse=True)
    one_each = np.arange(len(labels)) if grouped is None else grouped
    single = groups_per_class(codes, one_each) < 2
    if single.any() and not single.all():
        kept = np.flatnonzero(~single[codes])
        warnings.warn(
            f"left out {int(single.sum()):,} of the classes ({len(labels) - len(kept):,} objects), "
            "because they consist of one object or group, which cannot be used for training and "
            "testing",
            stacklevel=2,
        )
        graph, labels, names = graph[kept][:, kept], labels[kept], [names[i] for i in kept]
        grouped = None if grouped is None else check_groups(grouped[kept], len(kept))
        classes, codes = np.unique(labels, return_inverse=True)
    n = len(labels)
    split = split_folds(classes, codes, folds, random_state, grouped)
    plan = Plan(None, labels, names, split, grouped, n, classes)
    krein = KreinClassifier("precomputed", class_weight=class_weight)
    models = {
        "krein": _OnGraph(graph, krein, "KreinClassifier, evidence of the hits"),
        "best hit": _OnGraph(graph, BestHit(), BestHit.title),
        "vote": _OnGraph(graph, HitVote(), HitVote.title),
    }
    results = {
        name: cross_validate(name, model, plan, None, random_state)
        for name, model in models.items()
    }
    best = min(results.values(), key=lambda one: float(one.fold_log_loss.mean()))
    return Evaluation(
        names=names,
        labels=labels,
        classes=classes,
        folds=split,
        models=results,
        pairs=PairCount(n * n, 0, 0, 0.0, True),
        spectrum=None,
        duplicates=None,
        map=graph_map(graph, ~best.right, random_state),
        settings={
            "measure": f"hits, by {score}" if score else "hits",
            "measure_params": {},
            "landmarks": None,
            "n_landmarks": None,
            "symmetrize": False,
            "folds": folds,
            "class_weight": class_weight,
            "groups": None if groups is None else "given",
            "random_state": random_state,
            "versions": {"krein": __version__},
        },
        groups=grouped,
        ranks=None if label_ranks is None else (label_ranks, rank_above),
    )


def graph_map(graph: Any, errors: NDArray[np.bool_], seed: int) -> ObjectMap:
    """Return a map of the objects: the leading eigenvectors of the graph, flattened by t-SNE.

    Similarities are scaled from 0 (the worst hit) to 1 (the best hit of each object), and a missing
    hit is 0; eigenvectors are those of the normalised graph (Ng, Jordan & Weiss 2002).
    """
    from scipy.sparse.linalg import eigsh

    n, rng = graph.shape[0], np.random.default_rng(seed)
    S = graph.copy().astype(np.float64)
    if S.nnz:
        best = -nearest_hits(*_lists(S), 1)[0][:, 0]
        best[~np.isfinite(best)] = 0.0
        rows, least = np.repeat(np.arange(n), np.diff(S.indptr)), float(S.data.min())
        S.data = (S.data - least) / np.maximum(best[rows] - least, np.finfo(float).tiny) + 1e-3
    S = S.maximum(S.T)
    degree = np.asarray(S.sum(axis=1)).ravel()
    scale = sparse.diags(1 / np.sqrt(np.where(degree > 0, degree, 1.0)))
    k = min(AXES, n - 2)
    V = np.zeros((n, 2))
    if k >= 2 and S.nnz:
        lam, vectors = eigsh((scale @ S @ scale).tocsr(), k=k, which="LA", v0=rng.random(n))
        V = vectors[:, np.argsort(-lam)]
        V = V / np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-12)
    nobody = np.empty(0, dtype=np.intp)
    shown = shown_objects(n, nobody, errors, rng)
    xy, method = flattened(V[shown], seed)
    method = "graph" if method == "t-SNE" else method
    return ObjectMap(shown, xy, nobody, None, V.shape[1], 0, method)
