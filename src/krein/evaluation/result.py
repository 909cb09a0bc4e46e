"""The results of an evaluation: figures of each model, and an overview of the objects.

The overview consists of the eigenvalues of the measure, a map of the objects, and duplicates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, find

from ..compare import Pairs
from ..compare.cache import object_digests
from ..core.cascade import Worth
from ..core.moments import ClassMoments
from ..core.ranks import Rank, RankAnswers, rank_names, rank_path
from ..core.shapes import Array, Indices
from ..core.space import LandmarkSpace, SpectrumEstimate, double_centre, embed, estimate_spectrum
from ..model.model import Model
from ..reject import augrc
from .groups import NearCopies
from .heldout import (
    LookCurve,
    Reliability,
    SuspectLabel,
    UnknownClasses,
    calibration_bins,
    log_losses,
)
from .store import columns

ROWS_AT_A_TIME = 512
"""Number of objects whose probabilities of ranks are computed together."""


@dataclass(frozen=True)
class RankOnly:
    """Held-out objects whose class no training object has: they are scored by rank only."""

    labels: NDArray[Any]
    folds: Indices
    probabilities: Array  # (n, C)


@dataclass(frozen=True)
class AnswersByRank:
    """What a model states about held-out objects at each rank."""

    nodes: Indices  # (n, R): among those of all classes
    probabilities: Array  # (n, R)
    depths: Indices  # (n,): the number of ranks of the answer

    @classmethod
    def of_classes(cls, ranks: list[Rank], parts: list[Array], above: float) -> AnswersByRank:
        """Return the answers that follow from sums over the probabilities (n, C) of classes."""
        each = [RankAnswers.of_classes(ranks, P) for P in _row_blocks(parts)]
        return cls(
            np.concatenate([one.nodes[:, :, 0] for one in each]),
            np.concatenate([one.probabilities[:, :, 0] for one in each]),
            np.concatenate([one.deepest(above) for one in each]),
        )

    @classmethod
    def of_model(cls, model: Model, found: Any, ranks: list[Rank], above: float) -> AnswersByRank:
        """Return the answers of a model of some of the classes, given those of `assess`."""
        assert model.ranks is not None
        answers, separator = RankAnswers.of_fields(found), model.ranks.separator
        nodes, P = np.zeros((2, len(found), len(ranks)))
        for r, (rank, own) in enumerate(zip(ranks, model.taxonomy, strict=False)):
            paths = [rank_path(node, separator) for node in own.nodes]
            nodes[:, r] = places(paths, r, rank, separator)[answers.nodes[:, r, 0]]
            P[:, r] = answers.probabilities[:, r, 0]
        depths = replace(model, ambiguous_below=above).rank_depths(found, answers)
        return cls(nodes.astype(np.intp), P, depths)

    @classmethod
    def joined(cls, parts: Collection[tuple[Indices, AnswersByRank]]) -> AnswersByRank:
        """Return the answers of all objects, given those at some rows each."""
        rows = np.concatenate([some for some, _ in parts])
        names = ("nodes", "probabilities", "depths")
        each = [np.concatenate([getattr(one, name) for _, one in parts]) for name in names]
        return cls(*(values[np.argsort(rows)] for values in each))


@dataclass(frozen=True)
class ModelResult:
    """The results of one model over all folds. All probabilities are out-of-fold."""

    name: str
    title: str
    classes: NDArray[Any]
    labels: NDArray[Any]
    folds: Indices
    probabilities: Array  # (N, C)
    evaluations: int
    """Mean number of pairs to fit per fold: the cost of this model alone."""
    comparisons: float
    """Mean number of pairs per prediction, over the folds."""
    seconds: dict[str, float]
    """Total time over the folds to fit, predict, and compare the model's own pairs at the speed of
    this run."""
    landmarks: list[Indices]
    """The objects that new ones are compared with, for each fold."""
    curve: dict[str, Array] | None
    """How landmarks="auto" grew in the first fold."""
    worth: Worth | None = None
    """What each head and each look is worth by the estimates of the fits, averaged over the folds;
    None for other models than `KreinClassifier`."""
    looks: LookCurve | None = None
    """The benefit of a second look; None for models without one."""
    unknown: UnknownClasses | None = None
    """How well objects of an unknown class can be recognised, for each class left out in turn."""
    suspect_labels: list[SuspectLabel] = field(default_factory=list)
    """Objects whose labels may be wrong, the least probable label first."""
    rank_only: RankOnly | None = None
    """Further objects, which count in `by_rank`."""
    learned_ranks: AnswersByRank | None = None
    """What a model that has learned the ranks states about all objects, those of `rank_only` last;
    for other models, the probabilities of classes add up."""

    @property
    def codes(self) -> Indices:
        """The true class of each object, as its index among the classes."""
        return np.searchsorted(self.classes, self.labels)

    @cached_property
    def answers(self) -> Indices:
        """The most probable class of each object, as its index among the classes."""
        return self.probabilities.argmax(axis=1)

    @cached_property
    def confidence(self) -> Array:
        """The probability of the most probable class of each object."""
        return self.probabilities.max(axis=1)

    @property
    def predicted(self) -> NDArray[Any]:
        """The most probable class of each object."""
        return self.classes[self.answers]

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether each prediction is correct."""
        return np.asarray(self.answers == self.codes)

    @property
    def fold_accuracy(self) -> Array:
        """Accuracy of each fold."""
        return self._by_fold(self.right)

    @property
    def fold_log_loss(self) -> Array:
        """Log-loss of each fold."""
        return self._by_fold(log_losses(self.probabilities, self.codes))

    @property
    def reliability(self) -> Reliability:
        """Confidence compared with accuracy."""
        return calibration_bins(self.confidence, self.right)

    @property
    def augrc(self) -> float:
        """Area under the generalised risk–coverage curve (`krein.reject`)."""
        return augrc(self.labels, self.probabilities, self.classes)

    @property
    def confusion(self) -> csr_array:
        """Confusion matrix: objects of each true class (row) by predicted class (column).

        It is sparse: with thousands of classes, most cells are empty.
        """
        C = len(self.classes)
        ones = np.ones(len(self.labels), dtype=np.intp)
        return csr_array((ones, (self.codes, self.answers)), shape=(C, C))

    def by_rank(self, separator: str, above: float) -> list[dict[str, Any]]:
        """Return the figures for each rank of hierarchical labels, from the first to the leaves.

        An object counts at the ranks that its label has, if the training set has its name there.
        `objects` is their number, and `unknown` that of objects whose name the training set lacks.
        The calibration error is that of both, since a stated probability allows for unknown names.
        `answered` is the share of objects whose answer (the deepest rank with a probability of at
        least `above`) is at this rank or deeper; `answered_right` is the share of these that are
        correct at this rank; `answered_unknown` is the share of the unknown ones that are answered
        at this rank, which cannot be correct. A figure is None if there is no object for it.
        """
        ranks = Rank.each([str(name) for name in self.classes.tolist()], separator)
        labels, folds, parts = self.labels, self.folds, [self.probabilities]
        if self.rank_only is not None and len(self.rank_only.labels):
            labels = np.concatenate([labels, self.rank_only.labels])
            folds = np.concatenate([folds, self.rank_only.folds])
            parts.append(self.rank_only.probabilities)
        stated = self.learned_ranks
        if stated is None:
            stated = AnswersByRank.of_classes(ranks, parts, above)
        paths = [rank_path(str(label), separator) for label in labels.tolist()]
        names = rank_names([rank_path(str(name), separator) for name in self.classes.tolist()])
        found = []
        for r, rank in enumerate(ranks):
            true = places(paths, r, rank, separator)
            named = np.array([len(path) > r for path in paths])
            known = named & (true >= 0) & _elsewhere(true, folds, len(rank.nodes))
            right = (stated.nodes[:, r] == true) & (stated.probabilities[:, r] > 0) & known
            answered = stated.depths > r
            unknown = named & ~known
            found.append(
                {
                    "rank": r + 1,
                    "name": names[r],
                    "nodes": len(rank.nodes),
                    "objects": int(known.sum()),
                    "unknown": int(unknown.sum()),
                    "accuracy": _mean(right[known]),
                    "calibration_error": calibration_bins(
                        stated.probabilities[named, r], right[named]
                    ).error
                    if named.any()
                    else None,
                    "answered": _mean(answered[known]),
                    "answered_right": _mean(right[known & answered]),
                    "answered_unknown": _mean(answered[unknown]),
                }
            )
        return found

    def _by_fold(self, values: NDArray[Any]) -> Array:
        return np.bincount(self.folds, weights=values) / np.bincount(self.folds)

    def summary(self) -> dict[str, Any]:
        """Return the figures as JSON-compatible values."""
        accuracy, loss = self.fold_accuracy, self.fold_log_loss
        unknown = None
        if self.unknown is not None:
            unknown = {
                "classes": [str(self.classes[c]) for c in self.unknown.codes],
                "auroc": self.unknown.auroc.tolist(),
                "found": self.unknown.found.tolist(),
            }
        return {
            "name": self.name,
            "title": self.title,
            "accuracy": {"mean": float(accuracy.mean()), "std": float(accuracy.std())},
            "log_loss": {"mean": float(loss.mean()), "std": float(loss.std())},
            "calibration_error": self.reliability.error,
            "augrc": self.augrc,
            "errors": int((~self.right).sum()),
            "evaluations": self.evaluations,
            "comparisons": self.comparisons,
            "seconds": dict(self.seconds),
            "n_landmarks": float(np.mean([len(part) for part in self.landmarks])),
            "fold_accuracy": accuracy.tolist(),
            "fold_log_loss": loss.tolist(),
            "confusion": sorted(
                zip(*(part.tolist() for part in find(self.confusion)), strict=True)
            ),
            "curve": self.curve and {name: part.tolist() for name, part in self.curve.items()},
            "worth": None if self.worth is None else self.worth.summary(),
            "looks": None if self.looks is None else self.looks.summary(),
            "unknown": unknown,
        }


def places(paths: list[list[str]], depth: int, rank: Rank, separator: str) -> Indices:
    """Return the node (n,) of each path among those of a rank, from 0; −1 if it is none of them."""
    place = {separator.join(rank_path(node, separator)): k for k, node in enumerate(rank.nodes)}
    return np.array([place.get(separator.join(path[: depth + 1]), -1) for path in paths])


def _elsewhere(nodes: Indices, folds: Indices, n: int) -> NDArray[np.bool_]:
    """Return whether another fold has the node of each object; with test objects, all have been
    learned."""
    if folds.max() == 0:
        return np.ones(len(nodes), dtype=bool)
    held = np.zeros((folds.max() + 1, n + 1), dtype=np.intp)
    np.add.at(held, (folds, nodes), 1)
    found: NDArray[np.bool_] = held.sum(axis=0)[nodes] > held[folds, nodes]
    return found


def _row_blocks(parts: list[Array]) -> Iterator[Array]:
    """Yield some rows of the parts at a time, so that sums over ranks take little memory."""
    for P in parts:
        for start in range(0, len(P), ROWS_AT_A_TIME):
            yield P[start : start + ROWS_AT_A_TIME]


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if len(values) else None


@dataclass(frozen=True)
class PairCount:
    """The comparisons made by the whole evaluation."""

    all: int
    """The pairs of all objects, in both directions."""
    compared: int
    """Values computed for all models, the spectrum and the map together, each pair once; 0 for a
    precomputed matrix."""
    reused: int
    """Values read from the cache of an earlier run."""
    seconds: float
    given: bool
    """Whether all values were given, as a matrix."""


@dataclass(frozen=True)
class Evaluation:
    """The results of several models on the same folds, and an overview of the objects.

    `summary()` returns the figures, and `models[name].probabilities` the out-of-fold probabilities.
    """

    names: list[str]
    labels: NDArray[Any]
    classes: NDArray[Any]
    folds: Indices
    """The fold in which each object was held out, from 0."""
    models: dict[str, ModelResult]
    pairs: PairCount
    spectrum: SpectrumEstimate | None
    """None if most values are unknown, as in a table of hits."""
    duplicates: Duplicates | None
    """None if objects cannot be recognised by their contents."""
    map: ObjectMap
    settings: dict[str, Any]
    """Measure, folds, seed, landmarks and versions: what is needed to repeat it."""
    groups: Indices | None = None
    """The group of each object; a group is in one fold. None without groups."""
    ranks: tuple[str, float] | None = None
    """The separator of hierarchical labels and the probability that an answer needs, if given."""
    near_copies: NearCopies | None = None
    """The objects that have a near-duplicate in another fold; None if the measure cannot tell."""
    n_train: int | None = None
    """Number of training objects, if there are test objects instead of folds."""
    texts: list[str] | None = None
    """The objects themselves, if they are strings."""

    @cached_property
    def by_rank(self) -> dict[str, list[dict[str, Any]]] | None:
        """The figures of each model for each rank; None without ranks."""
        if self.ranks is None:
            return None
        return {name: model.by_rank(*self.ranks) for name, model in self.models.items()}

    @property
    def best(self) -> ModelResult:
        """The model with the lowest log-loss."""
        return min(self.models.values(), key=lambda model: float(model.fold_log_loss.mean()))

    def summary(self) -> dict[str, Any]:
        """Return all results except those per object, as JSON-compatible values."""
        n, duplicates = len(self.names), None
        if self.duplicates is not None:
            duplicates = {
                "objects": sum(len(group) for group in self.duplicates.groups),
                "groups": len(self.duplicates.groups),
                "conflicting": self.duplicates.conflicting,
            }
        return {
            "objects": n,
            "classes": [str(name) for name in self.classes.tolist()],
            "class_sizes": np.bincount(
                np.searchsorted(self.classes, self.labels), minlength=len(self.classes)
            ).tolist(),
            "trained_on": self.n_train,
            "folds": int(self.folds.max()) + 1,
            "best": self.best.name,
            "models": {name: model.summary() for name, model in self.models.items()},
            "ranks": self.by_rank,
            "pairs": asdict(self.pairs),
            "spectrum": None if self.spectrum is None else _described(self.spectrum),
            "duplicates": duplicates,
            "groups": None if self.groups is None else int(self.groups.max()) + 1,
            "near_copies": None if self.near_copies is None else asdict(self.near_copies),
            "settings": dict(self.settings),
        }


def _described(spectrum: SpectrumEstimate) -> dict[str, Any]:
    p, q, z = spectrum.signature
    return {
        "positive": p,
        "negative": q,
        "zero": z,
        "negative_mass": spectrum.negative_mass,
        "sampled": spectrum.n_sampled,
        "exact": spectrum.exact,
        "eigenvalues": spectrum.eigenvalues.tolist(),
    }


# The overview of the objects

EXAMINED = 500
"""Number of objects in the spectrum if all pairs would cost extra comparisons."""

READ = 2000
"""The same if all values are known, so that the only cost is O(n³) for the eigenvalues."""

MAPPED = 4000
"""Maximum number of objects on the map: more would be indistinguishable, and slow to draw."""

AXES = 50
"""Number of pseudo-Euclidean axes that the map is computed from."""

MAP_LANDMARKS = 500
"""Maximum number of landmarks for the map."""


def spectrum(pairs: Pairs, everything: bool, seed: int) -> SpectrumEstimate:
    """Return the eigenvalues of up to 2,000 objects if all values are known, otherwise of 500."""

    def block(rows: Indices, cols: Indices) -> Array:
        values = pairs.block(rows, cols)
        return values if pairs.kind == "similarity" else double_centre(values**2)

    size, rng = READ if everything else EXAMINED, np.random.default_rng(seed)
    return estimate_spectrum(block, len(pairs), size=size, rng=rng)


@dataclass(frozen=True)
class Duplicates:
    """Objects that occur more than once."""

    groups: list[Indices]
    conflicting: int
    """Groups whose members have different labels: no model can label all of them correctly."""


def duplicates(objects: Any, codes: Indices) -> Duplicates | None:
    """Find objects with equal contents, or equal rows of a matrix. O(total size)."""
    if getattr(objects, "mapped", False):
        return None
    try:
        digests = object_digests(objects)
    except TypeError:
        return None
    _, group, sizes = np.unique(digests, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    groups = [part for part in np.split(order, np.cumsum(sizes)[:-1]) if len(part) > 1]
    groups.sort(key=lambda part: int(part[0]))
    return Duplicates(groups, sum(len(set(codes[part].tolist())) > 1 for part in groups))


@dataclass(frozen=True)
class ObjectMap:
    """Some or all objects in the plane; objects with similar values to the landmarks are close."""

    objects: Indices  # (n,), ascending
    xy: Array  # (n, 2)
    landmarks: Indices
    whose: str | None
    """The model that chose the landmarks; None if they were drawn for the map."""
    axes: int
    """Number of pseudo-Euclidean axes that the map is computed from."""
    negative_axes: int
    method: str


def object_map(
    pairs: Pairs,
    landmarks: Indices,
    errors: NDArray[np.bool_],
    seed: int,
    whose: str | None = None,
    n: int | None = None,
) -> ObjectMap:
    """Map the principal pseudo-Euclidean axes of the objects to the plane. N·m values for m
    landmarks.

    The axes are those of indefinite kernel PCA from the landmarks, positive and negative. t-SNE
    (van der Maaten & Hinton 2008), initialised with the first two, maps them to the plane. With
    more than 4,000 objects, only landmarks, errors and a random sample of the others are mapped.
    Only the first n objects are mapped.

    A landmark is placed like any other object: its value to itself, which no other object has, is
    replaced by that of an object like it. Otherwise landmarks would lie together, apart from the
    objects that resemble them.
    """
    n = len(pairs) if n is None else n
    rng = np.random.default_rng(seed)
    if len(landmarks) > MAP_LANDMARKS:
        landmarks = np.sort(rng.choice(landmarks, MAP_LANDMARKS, replace=False))
    core = pairs.block(landmarks, landmarks)
    shown = shown_objects(n, landmarks[landmarks < n], errors, rng)
    space = LandmarkSpace.of(core, pairs.kind)
    values = columns(pairs, landmarks, rows=shown, known=core)
    B = space.coordinates(_as_others(values, shown, landmarks))
    xy, axes, negative, method = np.zeros((len(shown), 2)), 0, 0, "axes"
    if B.shape[1] and len(shown) >= 4:
        one = np.zeros(len(B), dtype=np.intp)
        moments = ClassMoments.of(B, one, 1, origin=space.origin())
        embedding = embed(moments.within(), space.signs, mean=moments.means[0], n_components=AXES)
        V = embedding.coordinates(B)
        axes, negative = V.shape[1], int((embedding.eigenvalues < 0).sum())
        xy, method = flattened(V, seed)
    return ObjectMap(shown, xy, landmarks, whose, axes, negative, method)


def _as_others(values: Array, rows: Indices, landmarks: Indices) -> Array:
    """Replace the value of each landmark to itself by that of the object most like it, by the
    values to the other landmarks."""
    found = values.copy()
    for column, landmark in enumerate(landmarks.tolist()):
        row = int(np.searchsorted(rows, landmark))
        if len(rows) < 2 or row == len(rows) or rows[row] != landmark:
            continue
        apart = (values - values[row]) ** 2
        apart[:, column] = 0.0
        gap = apart.sum(axis=1)
        gap[row] = np.inf
        found[row, column] = values[gap.argmin(), column]
    return found


def flattened(V: Array, seed: int) -> tuple[Array, str]:
    """Return points (n, 2) of objects with these coordinates (n, r), and how they were found."""
    if V.shape[1] < 3 or len(V) < 20:
        return np.hstack([V, np.zeros((len(V), 2))])[:, :2], "axes"
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    start = V[:, :2] / max(V[:, 0].std(), np.finfo(float).tiny) * 1e-4
    options: dict[str, Any] = {"perplexity": min(30.0, (len(V) - 1) / 3), "random_state": seed}
    # the threads of t-SNE busy-wait: on a busy machine, one thread is faster than two
    with threadpool_limits(1):
        xy = TSNE(init=start, n_jobs=1, **options).fit_transform(V)
    return np.asarray(xy, dtype=float), "t-SNE"


def shown_objects(
    n: int, landmarks: Indices, errors: NDArray[np.bool_], rng: np.random.Generator
) -> Indices:
    """Return all objects, or landmarks, errors (at most three quarters) and a sample of the
    others."""
    if n <= MAPPED:
        return np.arange(n)
    wrong = np.setdiff1d(np.flatnonzero(errors), landmarks)
    wrong = rng.permutation(wrong)[: 3 * MAPPED // 4]
    kept = np.union1d(landmarks, wrong)
    others = rng.permutation(np.setdiff1d(np.arange(n), kept))[: MAPPED - len(kept)]
    return np.union1d(kept, others)
