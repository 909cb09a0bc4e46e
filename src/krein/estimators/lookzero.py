"""Look zero: objects are classified from their own features, before any comparison.

The features of strings, sequences, series and images (`krein.measures.features`) feed a logistic
regression, which becomes one more head of the pool. So can any scikit-learn classifier that takes
the objects. Scores of held-out objects come from cross-fitting. The features are also coordinates,
in which the second look finds similar objects.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import issparse
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import has_fit_parameter

from ..compare.progress import progress
from ..core.calibration import HELD_OUT_OBJECTS, fit_temperature
from ..core.candidates import DIMENSIONS, Points, no_points
from ..core.cascade import among_most_probable, fit_pool, loss_of_pool
from ..core.evidence import BANDWIDTHS
from ..core.moments import ROUNDING, weights_of
from ..core.shapes import Array, Codes, Indices, Mask
from ..data.dataset import Dataset, uniform_keys
from ..data.labelling import first_equal
from ..measures import Measure, take
from ..measures.features import FeatureMap, NGrams
from ..model.heads import (
    FeatureHead,
    LookZero,
    NeighbourHead,
    log_class_sizes,
    points_along,
)
from ..model.parts import LOOK_ZERO
from .folds import count_folds, folds_in_order
from .heldout import (
    HeldOut,
    TakenLook,
    TrainingSet,
    calibrated,
    shares_of_groups,
)

FEATURE_OBJECTS = 100_000
"""The head learns from at most about this many objects."""

MOST_WORK = 1e9
"""If the numbers in all rows × classes × models exceed this, there is no regression: the labels of
the objects with the most similar n-grams, and the n-grams of each class, are used instead. A model
takes about a minute for this many."""

MOST_WEIGHTS = 5_000_000
"""A regression has at most this many weights, one per n-gram and class: rare n-grams are dropped.
Its search for them takes 25 times their memory."""

MOST_ENTRIES = 20_000_000
"""The neighbours of look zero take 8 bytes per n-gram of each known object; beyond this many, there
are none."""

STRENGTH = 2_700.0
"""√N times C, the inverse strength of the penalty on the sum of losses of N objects. With the
temperature fitted, the loss hardly depends on C: with 60, it was within 1.5 % of the better of 10
and 100 on peptides, uwave, sonatas, MNIST, digits and 3,000 proteins. For all proteins (7,000) and
100,000 words, 30 and 10 gave a lower loss than 100."""

MOST_ROTATED, ROTATED = 2_000, 20
"""Features are rotated into one coordinate per object if there are at most this many objects, and
at most this many for each number in a sparse row: products of dense matrices are that much
faster."""

AT_ONCE = 10_000
"""Objects whose features are computed together."""

SEARCHED = 2_000
"""The directions of the search are those of about this many objects."""

LEAST, UNSEEN = 1e-6, -30.0
"""Floor on the probabilities of a classifier, and the score of a class that it was not fitted
to."""

JITTER = 1e-6
"""Added to the squared length of a row, because some rows depend on others."""

PRECISION = 1e-5
"""Where the search for the weights ends: with 1e-4, the probabilities of strings differ by up to .1
between rotated and other coordinates."""

_SEED = 2


@dataclass(frozen=True)
class FeatureFit:
    """The head of the features, held-out scores of some objects, and where all can be searched."""

    head: LookZero
    scores: Array  # (n, C)
    points: Points  # (N, r)
    new_points: Points  # (n, r): of the held-out objects, as if they were new
    asked: Indices  # (n,): the objects with held-out scores, ascending
    learned: Indices  # (N,): the objects that the head learned from, ascending
    data: Dataset
    measure: Measure

    def scores_of(self, indices: Indices) -> Array:
        """Return the held-out scores of some of these objects."""
        return self.scores[np.searchsorted(self.asked, indices)]

    def held_out_points(self, indices: Indices) -> Points:
        """Return the points (n, r) of some held-out objects, as if they were new."""
        return self.new_points[np.searchsorted(self.asked, indices)]

    def points_of(self, indices: Indices) -> Points:
        """Return the points (n, r) of some objects, where similar ones can be searched."""
        found = np.empty((len(indices), self.points.shape[1]), dtype=np.float32)
        here = np.isin(indices, self.learned)
        found[here] = self.points[np.searchsorted(self.learned, indices[here])]
        rest = np.flatnonzero(~here)
        for start in range(0, len(rest), AT_ONCE):
            part = rest[start : start + AT_ONCE]
            objects, _ = self.data.take(indices[part], self.measure)
            found[part] = self.head.look(self.measure.contents(objects))[1]
        return found


def search_directions(features: FeatureMap, F: Any) -> NDArray[np.float32]:
    """Return the leading principal directions of features F (n, D), scaled to total variance 1."""
    some = features.folded(F[:SEARCHED])
    some = np.asarray(some.toarray() if issparse(some) else some, dtype=np.float64)
    some = some - some.mean(axis=0)
    r = min(DIMENSIONS // 2, *some.shape)
    _, sizes, directions = randomized_svd(some, r, n_iter=2, random_state=0)
    total = float(np.sqrt(np.square(sizes).sum() / len(some)))
    found: NDArray[np.float32] = (directions.T / (total or 1.0)).astype(np.float32)
    return found


@dataclass(frozen=True)
class ClassifierHead(LookZero):
    """Look zero by the user's own classifier: scores are its log-probabilities."""

    classifier: Any  # fitted to class codes
    n_classes: int
    measure: Measure  # knows in which form the objects were given
    temperature: float = 1.0

    def look(self, objects: Any) -> tuple[Array, Points]:
        """Return scores (n, C), and no points."""
        found = np.full((len(objects), self.n_classes), UNSEEN)
        given = self.measure.as_given(objects)
        P = np.asarray(self.classifier.predict_proba(given), dtype=np.float64)
        found[:, self.classifier.classes_] = np.log(np.maximum(P, LEAST))
        return found, no_points(len(objects))


def take_look_zero(
    training: TrainingSet, held_out: HeldOut, alone: HeldOut, wanted: Any
) -> tuple[TakenLook | None, FeatureFit | None]:
    """Fit the head that looks at the objects themselves; None if they have no features.

    `wanted` is "auto", a classifier, or None for no features. Also returns what finds objects with
    similar features.
    """
    if wanted is None:
        return None, None
    raw, asked = training.rows, np.union1d(held_out.indices, alone.indices)
    with progress(None, "learning from features", training.run.verbose, unit=""):
        fit = fit_features(
            training.data,
            training.run.measure,
            raw.y,
            raw.weight,
            training.n_classes,
            asked,
            training.groups,
            wanted,
        )
    if fit is None:
        return None, None
    scores = fit.scores_of(held_out.indices)
    head = calibrated(fit.head, scores, held_out)
    terms, lonely = head.to_log_proba(scores), head.to_log_proba(fit.scores_of(alone.indices))
    return TakenLook(LOOK_ZERO, {"features": head}, [terms], [lonely], 0.0), fit


def fit_features(
    data: Dataset,
    measure: Measure,
    codes: Codes,
    weights: Array | None,
    n_classes: int,
    asked: Indices,
    groups: Indices,
    wanted: Any = "auto",
) -> FeatureFit | None:
    """Fit the head of the features to the objects of a data set; None if they have no features.

    `codes`, `weights` and `groups` are those of all objects, and `asked` the rows that need
    held-out scores. Objects of one group are held out together. `wanted` is "auto" or a classifier.
    No pair is compared.
    """
    if measure.accepts == "values":
        return None
    w = weights_of(weights, len(codes))
    rows = np.flatnonzero(w > 0)
    if len(rows) > FEATURE_OBJECTS:
        drawn = uniform_keys(_SEED, rows) < FEATURE_OBJECTS / len(rows)
        rows = np.union1d(rows[drawn], asked)
    objects, _ = data.take(rows, measure)
    place = np.searchsorted(rows, asked)
    labelled = LabelsInFolds(codes[rows], w[rows], n_classes, groups[rows], place)
    found = _learned(measure, objects, labelled, wanted)
    return None if found is None else FeatureFit(*found, asked, rows, data, measure)


def fit_alone(
    measure: Measure, objects: Any, codes: Codes, n_classes: int, wanted: Any = "auto"
) -> LookZero | None:
    """Return look zero as a classifier of its own, calibrated; None if there are no features.

    Copies are held out together.
    """
    N = len(codes)
    keys = measure.content_keys(objects).astype(np.int64)
    groups, place = first_equal(keys), np.arange(N)
    if N > HELD_OUT_OBJECTS:
        place = np.flatnonzero(uniform_keys(_SEED, keys) < HELD_OUT_OBJECTS / N)
    labelled = LabelsInFolds(codes, np.ones(N), n_classes, groups, place)
    found = _learned(measure, objects, labelled, wanted)
    if found is None:
        return None
    head, scores, _, _ = found
    n_groups = np.bincount(np.unique(np.column_stack([codes, groups]), axis=0)[:, 0])
    several = n_groups[codes[place]] > 1  # the only group of a class cannot be held out
    scores, place = scores[several], place[several]
    shares = shares_of_groups(groups[place], None)
    temperature = fit_temperature(scores, codes[place], head.to_log_proba, shares)
    return replace(head, temperature=temperature)  # type: ignore[type-var]


Learned = tuple[LookZero, Array, Points, Points]
"""A head, the scores (n, C) of held-out objects, the points (N, r) of all objects, and those (n, r)
of the held-out ones as if they were new."""


@dataclass(frozen=True)
class LabelsInFolds:
    """The labels of the objects that look zero learns from, and which of them are held out."""

    codes: Codes  # (N,)
    weights: Array  # (N,)
    n_classes: int
    groups: Indices  # (N,): held out together
    place: Indices  # (n,): of the objects that need held-out scores

    def splits(self) -> Iterator[tuple[Mask, Mask]]:
        """Yield, for each fold, which objects at `place` are in it (n,), and what remains (N,)."""
        folds = folds_in_order(self.codes, self.place, self.groups)
        for fold in range(int(folds.max(initial=-1)) + 1):
            held = folds == fold
            yield held, ~np.isin(self.groups, self.groups[self.place[held]])

    def can_be_held_out(self) -> bool:
        """Whether at least two classes remain without each fold, to learn from."""
        return all(len(np.unique(self.codes[rest])) > 1 for _, rest in self.splits())

    def sizes(self) -> Array:
        """Return the sizes of the classes (C,)."""
        return np.bincount(self.codes, self.weights, self.n_classes).astype(np.float64)

    def sizes_without(self) -> Array:
        """Return the sizes of the classes (n, C) without the group of each object at `place`."""
        own, of = np.unique(self.groups[self.place], return_inverse=True)
        held = np.zeros((len(own), self.n_classes))
        members = np.flatnonzero(np.isin(self.groups, own))
        group = np.searchsorted(own, self.groups[members])
        np.add.at(held, (group, self.codes[members]), self.weights[members])
        sizes = self.sizes()
        left = sizes - held
        return np.where(left > ROUNDING * sizes, left, 0.0)[of]


def _learned(
    measure: Measure, objects: Any, labelled: LabelsInFolds, wanted: Any
) -> Learned | None:
    """Learn from objects in the order of their contents, so that the order of rows is irrelevant.

    It is that of a hash: in alphabetical order, folds would divide each word from its inflections,
    and held-out scores would be too good.
    """
    contents, codes = measure.contents(objects), labelled.codes
    if contents is None or len(codes) == 0:
        return None
    order = np.lexsort([codes, measure.content_keys(objects)])
    back = np.argsort(order)
    contents, place, groups = take(contents, order), back[labelled.place], labelled.groups[order]
    labelled = replace(
        labelled, codes=codes[order], weights=labelled.weights[order], groups=groups, place=place
    )
    if not labelled.can_be_held_out():
        return None
    if wanted != "auto":
        head, scores = _of_classifier(wanted, measure, contents, labelled)
        return head, scores, no_points(len(codes)), no_points(len(place))
    mapped = measure.feature_map(contents, np.random.default_rng(0))
    if mapped is None:
        return None
    features, F = mapped
    learn: Callable[..., tuple[LookZero, Array] | None] = _regression
    if _work(F, labelled.n_classes, count_folds(place, groups)) > MOST_WORK:
        mapped = measure.feature_map(contents, np.random.default_rng(0), nearest=True)
        assert mapped is not None
        (features, F), learn = mapped, _neighbours
    elif isinstance(features, NGrams):
        features, F = features.commonest(F, MOST_WEIGHTS // labelled.n_classes)
    directions = search_directions(features, F)
    H = features.held_out(F, place, groups)
    found = learn(features, F, H, labelled, directions)
    if found is None:
        return None
    points, new = (points_along(directions, features, each) for each in (F, H))
    return *found, points[back], new


def _regression(
    features: Any, F: Any, H: Any, labelled: LabelsInFolds, directions: NDArray[np.float32]
) -> tuple[LookZero, Array]:
    """Return a logistic regression, and held-out scores of the objects at `place`.

    F (N, D) are the features of all objects, and H (n, D) those of the held-out ones, as if they
    were new.

    N-grams have no intercept: it would say how many objects a class has, and a held-out object of a
    small class would nearly always be given to another one, which has an object more. (With 40
    classes of five strings, confidence was .13 at an accuracy of .41.) Instead, log n_c is added to
    the scores, as strongly as fits held-out objects best.

    The result is the mean of the models without each fold: a model of all objects is more certain
    than those that score the held-out ones. (With 2,400 words of five languages, new objects would
    be 1.5 points more certain than held-out ones, and 11.7 % instead of 10.6 % of the labels in
    lists with a bound of 10 % would be wrong.)
    """
    G, turned = _coordinates(F)
    y, w, C, place = labelled.codes, labelled.weights, labelled.n_classes, labelled.place
    scores = np.zeros((len(place), C))

    def fitted(some: Mask) -> tuple[Array, Array]:
        V, b = _logistic(G[some], y[some], w[some], C, not issparse(F))
        return turned(V), b

    W, b, n_models, complete = np.zeros(()), np.zeros(()), 0, True
    for held, rest in labelled.splits():
        V, a = fitted(rest)
        scores[held] = H[held] @ V + a
        W, b, n_models = W + V, b + a, n_models + 1
        complete &= len(np.unique(y[rest])) == len(np.unique(y))
    if n_models and complete:
        W, b = W / n_models, b / n_models
    else:  # a class whose only group is held out would be unknown
        W, b = fitted(np.ones(len(y), dtype=bool))
    sizes = labelled.sizes_without()
    strength = _strength_of_sizes(scores, sizes, y[place], w[place])
    scores += strength * log_class_sizes(sizes)
    b += strength * log_class_sizes(labelled.sizes())
    return FeatureHead(features, W.astype(np.float32), b, directions), scores


def _strength_of_sizes(scores: Array, sizes: Array, codes: Codes, weights: Array) -> float:
    """Return how much of log n_c to add to scores (n, C) for the least held-out loss.

    `sizes` (n, C) do not count an object for its own class.
    """
    scored = sizes[np.arange(len(codes)), codes] > 0  # the only group of a class is not held out
    if not scored.any():
        return 1.0
    y, w = codes[scored], weights[scored] / weights.mean()
    beta = fit_temperature(scores[scored], y, _log_softmax, w)
    terms = [_log_softmax(beta * scores[scored]), _log_softmax(log_class_sizes(sizes[scored]))]
    parts, few, offset = among_most_probable(terms[:1], terms, y)
    a, g = fit_pool(parts, few, np.array([1.0, 0.0]), w, offset=offset)
    return float(g / (a * beta)) if a > 0 else 1.0


def _work(F: Any, n_classes: int, n_folds: int) -> float:
    """Return what the regressions of all objects and without each fold cost, as `MOST_WORK` counts.

    Products of dense matrices are `ROTATED` times as fast.
    """
    N = F.shape[0]
    entries = F.nnz if issparse(F) else F.size / ROTATED
    if N <= MOST_ROTATED:
        entries = min(entries, N * N / ROTATED)
    return float(entries) * n_classes * (1 + n_folds)


def _coordinates(F: Any) -> tuple[Any, Callable[[Array], Array]]:
    """Return rows with the same products as those of F (N, D), in single precision.

    With F Fᵀ = L Lᵀ, the scores F W are L V for W = Fᵀ L⁻ᵀ V, of the same length as V. L has N
    columns instead of D, which are dense. Also returns the function from V (N, C) to W (D, C).
    """
    N, work = F.shape[0], ROTATED * F.nnz if issparse(F) else F.size
    if N > MOST_ROTATED or work < N * N:
        return F.astype(np.float32), lambda V: V
    K = F @ F.T
    K = np.asarray(K.toarray() if issparse(K) else K, dtype=np.float64)
    K[np.diag_indices(N)] += JITTER * max(np.trace(K) / max(N, 1), np.finfo(float).tiny)
    L = np.linalg.cholesky(K)
    return L.astype(np.float32), lambda V: F.T @ solve_triangular(L, V, lower=True, trans="T")


def _of_classifier(
    classifier: Any, measure: Measure, objects: Any, labelled: LabelsInFolds
) -> tuple[LookZero, Array]:
    """Return the head of the user's classifier, and held-out scores of the objects at `place`.

    The classifier is cloned, and fitted to class codes.
    """
    y, w, C, place = labelled.codes, labelled.weights, labelled.n_classes, labelled.place
    name = "sample_weight"
    if isinstance(classifier, Pipeline):
        name = f"{classifier.steps[-1][0]}__sample_weight"
        takes = has_fit_parameter(classifier.steps[-1][1], "sample_weight")
    else:
        takes = has_fit_parameter(classifier, "sample_weight")

    def fitted(some: Indices) -> ClassifierHead:
        given = {name: w[some]} if takes and np.ptp(w) > 0 else {}
        model = clone(classifier)
        model.fit(measure.as_given(take(objects, some)), y[some].astype(np.intp), **given)
        return ClassifierHead(model, C, measure)

    scores = np.full((len(place), C), UNSEEN)
    for held, rest in labelled.splits():
        if len(np.unique(y[rest])) > 1:  # else there is nothing to learn
            head = fitted(np.flatnonzero(rest))
            scores[held] = head.scores(take(objects, place[held]))
    return fitted(np.arange(len(y))), scores


def _neighbours(
    features: Any, F: Any, H: Any, labelled: LabelsInFolds, directions: NDArray[np.float32]
) -> tuple[LookZero, Array] | None:
    """Return the head for many classes, and held-out scores of the objects at `place`.

    The bandwidth and the weights of evidence, profiles and sizes are those with the least loss of
    these, whose features H (n, D) are those of new objects.
    """
    if not isinstance(features, NGrams) or F.nnz > MOST_ENTRIES:
        return None
    codes, w, place = labelled.codes.astype(np.intp), labelled.weights, labelled.place
    numbers = w / w.mean()  # whatever their unit
    head = NeighbourHead.of(features, F, codes, numbers, labelled.n_classes, directions)
    own, w, without = codes[place], w[place], (labelled.groups[place], labelled.groups)
    near, fit = head.nearest(H, without), head.profile_scores(H, without)
    sizes = head.sizes_without(*without)
    scored = sizes[np.arange(len(own)), own] > 0  # the only group of a class cannot be held out
    if not scored.any():
        scored[:] = True
    y, w, log_n = own[scored], w[scored], log_class_sizes(sizes[scored])
    beta = fit_temperature(fit[scored], y, _log_softmax, w)
    profile = _log_softmax(beta * fit[scored])
    best: tuple[float, float, Array] | None = None
    for bandwidth in BANDWIDTHS:
        evidence = head.evidence(near, bandwidth)[scored]
        terms = [evidence, profile, _log_softmax(log_n)]
        parts, few, offset = among_most_probable(terms[:2], terms, y)
        prior = np.array([0.5, 0.5, 0.0])
        a = fit_pool(parts, few, prior, w, offset=offset)
        loss = loss_of_pool(a, parts, few, w, offset)
        if best is None or loss < best[0]:
            best = loss, bandwidth, a * [1.0, beta, 1.0]
    assert best is not None
    _, bandwidth, a = best
    scores = a[0] * head.evidence(near, bandwidth) + a[1] * fit + a[2] * log_class_sizes(sizes)
    return replace(head, bandwidth=bandwidth, weights=a), scores


def _logistic(F: Any, y: Codes, w: Array, n_classes: int, intercept: bool) -> tuple[Array, Array]:
    """Return the weights (D, C) and intercepts (C,) of a multinomial logistic regression.

    Classes that have no objects are improbable; a single class cannot be learned. All models start
    from zero: one that starts from the weights of another is more certain than that one.
    """
    W, b, present = np.zeros((F.shape[1], n_classes)), np.zeros(n_classes), np.unique(y)
    if len(present) < 2:
        return W, b
    C = STRENGTH / float(np.sqrt(len(y)))
    model = LogisticRegression(C=C, max_iter=200, tol=PRECISION, fit_intercept=intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # more steps would change nothing
        model.fit(F, y, sample_weight=w)
    V, a = model.coef_.T, np.broadcast_to(model.intercept_, len(model.coef_))
    if len(present) == 2:
        V, a = np.hstack([-V, V]) / 2, np.append(-a, a) / 2
    W[:, present] = V
    b[:] = min(0.0, float(a.min())) + UNSEEN
    b[present] = a
    return W, b


def _log_softmax(scores: Array) -> Array:
    return np.asarray(log_softmax(scores, axis=1))
