"""KreinClassifier, the recommended classifier: up to two looks at every object, nothing to tune.

All objects are compared with the landmarks once. From these values, `fit` chooses how many
landmarks are worth their comparisons, fits the heads, and learns from held-out objects how to pool
them, how far to trust the nearest known objects, and when to look at them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Pairs, block_rows, compare_each
from ..core.calibration import fit_temperature
from ..core.checks import NON_NEGATIVE, ROW, Array, Codes, Indices
from ..core.conformal import Reference, novelty_scores
from ..core.family import Family, Priors
from ..core.gaussian import FisherFamily, GaussianFamily, QuadraticFamily
from ..core.looks import (
    VOTERS,
    CandidateSpace,
    KnownObjects,
    Neighbours,
    Pool,
    apart_from,
    learn_first_look,
    learn_second_look,
    nearest_landmarks,
    squared,
)
from ..core.moments import ClassMoments
from ..core.pcvm.left_out import left_out_scores
from ..core.pcvm.rows import Features, FeaturesInMemory
from ..core.pcvm.training import PCVMFamily, both_scores, fit_landmarks
from ..core.space import signed_eigen
from ..data.dataset import IN_MEMORY_OBJECTS, Dataset, uniform_keys
from ..landmarks import Rule, Stratified, get_rule
from ..landmarks.random import default_number
from ..measures import take
from ..model.heads import Head, LinearHead
from ..model.model import Comparisons, Model, SecondLook
from ..model.schema import OPTIONAL
from .discriminants import linear_head, quadratic_head
from .fitting import (
    Classifier,
    FeatureTerm,
    LandmarkChoice,
    all_or_nothing,
    mean_values,
    own_places,
    stratified_folds,
)

HELD_OUT_OBJECTS = 2_500
"""The weights of the heads and of the second look are learned from about this many objects."""

FAR_SHARE = 0.1
"""This share of held-out objects, the farthest from all known ones, always gets a second look."""

FEWEST, MOST = 30, 100
"""Minimum and maximum default number of candidates; in between, a third of the landmarks."""

SHARES = (0.5, 0.7, 1.0)
"""Fractions of the landmarks to try."""

SIZING_OBJECTS = 500
"""Held-out objects that get a second look with each number of landmarks: more would cost more than
they save."""

SIZING_ROWS = 2_500
"""Objects that PCVM is fitted to with each number of landmarks; the Gaussian heads use all."""

_HELD_OUT_SEED, _KNOWN_SEED = 0, 1


@dataclass(frozen=True)
class SizeCurve:
    """The loss and the cost of each number of landmarks."""

    n_landmarks: Annotated[Indices, "tried", ROW]
    loss: Annotated[Array, "tried"]  # held-out log-loss
    comparisons: Annotated[Array, "tried", NON_NEGATIVE]  # per prediction

    def best(self, price: float) -> int:
        """Return the number of landmarks with the least loss plus price; the smallest of ties."""
        total = self.loss + price * self.comparisons
        return int(self.n_landmarks[int(np.argmin(total))])


class KreinClassifier(Classifier):
    """Classify objects by a similarity or dissimilarity, with nothing to tune.

    The first look compares an object with a few landmarks, and pools the probabilities of three
    models of those values: `IKFD`, `IKQD` and `PCVM`. If the result is not certain enough, the
    second look compares the object with training objects that have similar values to the landmarks,
    and adds the labels of the nearest ones as evidence. How far to trust each model and the
    evidence, and when to take a second look, is learned from held-out training objects. A
    prediction takes about a twentieth of the comparisons of nearest neighbours, at the same
    accuracy or better.

    Parameters
    ----------
    measure : str, Measure or callable, default="elm"
        How two objects are compared: a name from `krein.measures.available()`, a `Measure`, a
        function of two objects, "precomputed" (X contains similarities) or "precomputed-distance".
    measure_params : dict or None, default=None
        Parameters of a measure given by name. For a function, pass {"kind": "dissimilarity"} if
        larger values mean less similar.
    landmarks : str, Rule or array of indices, default="stratified"
        How landmarks are chosen; see `krein.landmarks`.
    n_landmarks : int or None, default=None
        Number of landmarks. None uses all objects if there are at most 200. Otherwise, it draws
        2 √N or N/40, whichever is larger, but at most 500, and keeps as many as are worth their
        `price`.
    neighbours : int or None, default=None
        Number of candidates that an object is compared with in the second look; 0 turns the second
        look off. None uses a third of the number of landmarks, at least 30 and at most 100.
    price : float, default=1e-4
        How much each additional comparison per prediction must lower the held-out log-loss.
        Landmarks that are not worth it are dropped, up to half of them.
    max_comparisons : float or None, default=None
        Budget for the mean number of comparisons per prediction. None uses as many as needed to
        come within 1 % of the loss of always taking a second look.
    max_kept : int, default=100_000
        Maximum number of training objects that the model keeps as candidates. If there are more,
        objects that the first look gets wrong are preferred, and every class is represented.
    novel_below : float, default=0.01
        `assess` calls an object novel (none of the classes) if its p-value is at most this. About
        this share of objects from known classes is called novel too. With n held-out objects, no
        p-value is below 1/(n + 1), so 1 % needs 99 of them.
    ambiguous_below : float, default=0.8
        `assess` calls an object ambiguous if no class has at least this probability.
    class_weight : dict, "balanced" or None, default=None
        Cost of an error on each class.
    symmetrize : bool, default=False
        Average both directions of a measure that is not symmetric, at twice the comparisons.
    n_jobs : int or None, default=None
        Number of workers that compare pairs. None uses all processors for measures that release
        Python's lock, and one process for a plain function. −1 always uses all processors.
    cache : path or None, default=None
        Folder for finished blocks of comparisons, so that an interrupted run can resume.
    verbose : int or None, default=None
        If standard error is a terminal, None shows a progress bar for work that takes longer than
        two seconds, 1 always shows one, and 0 never does.
    random_state : int, RandomState or None, default=0
        Seed for the choice of landmarks. The same number gives the same model, in any order of the
        rows.

    Attributes
    ----------
    classes_ : array (C,)
        Class labels, sorted.
    landmarks_ : array (m,)
        Rows of the training objects that every object is compared with.
    comparisons_ : float
        Estimated mean number of comparisons per prediction.
    last_comparisons_ : int
        Number of comparisons in the last call on objects in memory.
    comparisons_to_fit_ : int
        Number of pairs compared during fit.
    comparisons_reused_ : int
        Number of values read from the cache instead.
    model_ : Model
        What predicts: the heads, the weights of the pool, the second look, and the scores of
        held-out training objects, among which new objects are ranked.
    size_curve_ : SizeCurve
        Loss and cost of each number of landmarks considered. Absent if there was no choice: the
        number was given, `price` or `neighbours` is 0, the objects cannot be compared again, or
        there are too few or too many of them.
    signature_ : Signature
        Number of positive, negative and zero eigenvalues of the approximated kernel.
    eigenvalues_ : array
        Its non-zero eigenvalues with their signs, largest magnitude first.

    See Also
    --------
    IKFD : Linear model fitted in one pass with constant memory, for streams.
    PCVM : Sparse model with weights on basis objects.

    Notes
    -----
    A fit compares every object with m landmarks, and up to 2,500 training objects with `neighbours`
    others each. If `n_landmarks` is None, m is the largest number considered, and up to 500 objects
    get a second look with each smaller number. The model keeps the training objects, and
    4·min(m, 128) bytes for each.

    Examples
    --------
    >>> from krein import KreinClassifier
    >>> from krein.datasets import make_protein_families
    >>> X, y = make_protein_families(60, random_state=0)
    >>> clf = KreinClassifier("smith-waterman").fit(X[:-5], y[:-5])
    >>> bool((clf.predict(X[-5:]) == y[-5:]).all())
    True
    """

    size_curve_: Annotated[SizeCurve, OPTIONAL]

    def __init__(
        self,
        measure: Any = "elm",
        *,
        measure_params: dict[str, Any] | None = None,
        landmarks: Any = "stratified",
        n_landmarks: int | None = None,
        neighbours: int | None = None,
        price: float = 1e-4,
        max_comparisons: float | None = None,
        max_kept: int = 100_000,
        novel_below: float = 0.01,
        ambiguous_below: float = 0.8,
        class_weight: Any = None,
        symmetrize: bool = False,
        n_jobs: int | None = None,
        cache: Any = None,
        verbose: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.measure = measure
        self.measure_params = measure_params
        self.landmarks = landmarks
        self.n_landmarks = n_landmarks
        self.neighbours = neighbours
        self.price = price
        self.max_comparisons = max_comparisons
        self.max_kept = max_kept
        self.novel_below = novel_below
        self.ambiguous_below = ambiguous_below
        self.class_weight = class_weight
        self.symmetrize = symmetrize
        self.n_jobs = n_jobs
        self.cache = cache
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to objects X with labels y.

        Parameters
        ----------
        X : sequence of N objects, or an N×N matrix of values
            The objects to compare; for a precomputed measure, the values. Objects need not be in
            memory: X may be the path of a file, a source from `krein.io` (with its labels), a
            memory map, or a Dask collection. Landmarks are then chosen among about 20,000 objects.
        y : array of N labels, or None if X contains them
        sample_weight : array of N numbers, optional
            How many objects each one counts for; objects of weight 0 are ignored.

        Returns
        -------
        self
        """
        self._check()
        with all_or_nothing(self), self._open(X, y, sample_weight) as data:
            found = self._survey(data)
            weights = self._class_weights(found.classes)
            priors, each = Priors(None, weights), weights.of_objects(found.weights)
            run = self._comparisons(data.measure)
            family = FisherFamily(len(found.classes), shrinkage="oas", priors=priors)
            choice = self._choose(data, run, found.classes, family, self._rule(data))
            space, m = choice.space, len(choice.landmarks.indices)
            term = FeatureTerm(
                choice.columns, space, space.origin(), found.classes, each, by_class=True
            )
            kept, moments = data.keep(term, m, block_rows(run.measure, m), run.counter)
            try:
                self._learn(data, run, choice, Values(kept, moments, each), priors)
            finally:
                kept.close()
        return self

    @property
    def comparisons_(self) -> float:
        """Estimated mean number of comparisons per prediction."""
        return float(self._fitted().comparisons)

    def _check(self) -> None:
        k = self.neighbours
        if k is not None and (k != int(k) or k < 0):
            raise ValueError(f"neighbours must be a whole number (0 for none) or None; got {k!r}")
        if self.max_kept != int(self.max_kept) or self.max_kept < 1:
            raise ValueError(f"max_kept must be a whole number, at least 1; got {self.max_kept!r}")
        if not self.price >= 0:
            raise ValueError(f"price must be a number, at least 0; got {self.price!r}")
        for name in ("novel_below", "ambiguous_below"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be a share from 0 to 1; got {getattr(self, name)!r}")
        if self.max_comparisons is not None and not self.max_comparisons >= 1:
            raise ValueError(
                f"max_comparisons must be a number, at least 1, or None; got "
                f"{self.max_comparisons!r}"
            )

    def _rule(self, data: Dataset) -> Rule:
        """Return the landmark rule, with the number that suits all objects and the budget."""
        rule = get_rule(self.landmarks, self.n_landmarks)
        if isinstance(rule, Stratified) and rule.n_landmarks is None:
            known = data.survey()
            number = default_number(known.weighted, len(known.classes))
            if self.max_comparisons is not None:
                number = min(number, max(1, int(self.max_comparisons)))
            rule.set_params(n_landmarks=number)
        return rule

    def _learn(
        self,
        data: Dataset,
        run: Comparisons,
        choice: LandmarkChoice,
        kept: Values,
        priors: Priors,
    ) -> None:
        """Choose how many landmarks to use, fit the heads, and learn both looks."""
        k = self.neighbours
        if k is None:
            k = min(max(len(choice.landmarks.indices) // 3, FEWEST), MOST)
        self.__dict__.pop("size_curve_", None)  # of an earlier fit
        price = self.price if self.n_landmarks is None else 0.0
        if price and k:
            choice, kept = self._choose_size(data, run, choice, kept, priors, k, price)
        landmarks, kind = choice.landmarks, run.measure.kind
        sample = draw_held_out(landmarks.indices, kept.features, kept.n_classes)
        heads, opinions = fit_heads(choice, kept, sample, priors)
        pool = learn_first_look(opinions, sample.codes, sample.weights)
        known = None
        if k:
            known = choose_known_objects(kept, landmarks.indices, k, self.max_kept, heads, pool)
        second, near, looked = self._second_look(
            data, run, landmarks, sample, opinions, pool, known
        )
        weights = sample.weights
        if weights is not None and kept.class_weights is not None:  # costs of errors, not numbers
            weights = weights / kept.class_weights[sample.codes]
        unbounded = pool(opinions)
        if second is not None:
            some = [opinion[looked] for opinion in opinions]
            unbounded[looked] = second.pool(some, near.at(looked))
        comparisons = float(len(landmarks.indices))
        if second is not None:
            w = np.ones(len(looked)) if sample.weights is None else sample.weights
            comparisons += second.known.n_candidates * float(w @ looked / w.sum())
        scores = novelty_scores(near.apart, kind)
        self.model_ = Model(
            run.measure,
            self.symmetrize,
            data.survey().classes,
            tuple(heads),  # type: ignore[arg-type]
            pool,
            mean_values(sample.values, kind, weights),
            landmarks,
            second,
            Reference.of(scores, unbounded, sample.codes, weights),
            comparisons,
            self.n_samples_seen_,
            getattr(self, "feature_names_in_", None),
            self.ambiguous_below,
            self.novel_below,
        )
        eigenvalues = signed_eigen(kept.moments.gram(), choice.space.signs).values
        self._set_fit(choice, choice.space, eigenvalues, run.counter)

    def _second_look(
        self,
        data: Dataset,
        run: Comparisons,
        landmarks: Any,
        sample: HeldOut,
        opinions: Sequence[Array],
        pool: Pool,
        known: KnownObjects | None,
    ) -> tuple[SecondLook | None, Neighbours, NDArray[np.bool_]]:
        """Look again at held-out objects; learn when to look and how to weigh what is found.

        Also returns the neighbours of the held-out objects, and which of them are looked at again.
        """
        measure, m = run.measure, len(landmarks.indices)
        apart = apart_from(sample.values, measure.kind, sample.own_place)
        none = None, nearest_landmarks(apart, landmarks.codes), np.zeros(len(apart), dtype=bool)
        if known is None:
            return none
        wanted = np.union1d(np.union1d(known.indices, sample.indices), landmarks.indices)
        objects = data.take(wanted, measure).objects
        if not measure.comparable(objects):
            return none
        rows = np.searchsorted(wanted, sample.indices)
        own = np.searchsorted(wanted, known.indices)
        near, distances = look_at_held_out(
            known, sample, run.pairs(objects), rows, own, landmarks.codes
        )
        share = 1.0
        if self.max_comparisons is not None and known.n_candidates:
            share = min(1.0, max(0.0, (self.max_comparisons - m) / known.n_candidates))
        evidence, threshold = learn_second_look(
            pool, opinions, sample.codes, sample.weights, near, share
        )
        far = np.inf
        if known.n_candidates == 0:  # a second look at landmarks costs nothing
            threshold = np.inf
        elif share == 1.0:
            far = float(np.quantile(distances[:, 0], 1 - FAR_SHARE))
        kept = measure.keep(take(objects, own), known.indices, data.survey().n_objects)
        second = SecondLook(known, evidence, threshold, far, None, kept)
        confidence = np.exp(pool.bounded(pool(opinions)).max(axis=1))
        return second, near, second.looks_again(confidence, distances)

    def _choose_size(
        self,
        data: Dataset,
        run: Comparisons,
        choice: LandmarkChoice,
        kept: Values,
        priors: Priors,
        neighbours: int,
        price: float,
    ) -> tuple[LandmarkChoice, Values]:
        """Use as many of the landmarks as are worth their comparisons."""
        N, C, m = data.survey().n_objects, kept.n_classes, len(choice.landmarks.indices)
        order = choice.selection.details.get("order")
        if order is None or not 2 * m < N <= IN_MEMORY_OBJECTS:
            return choice, kept
        objects = data.take(np.arange(N), run.measure).objects
        if not run.measure.comparable(objects):
            return choice, kept
        raw = kept.features.rows(np.arange(C), C)
        values = replace(
            kept, features=FeaturesInMemory(raw.features(np.arange(N)), raw.y, raw.weight)
        )
        curve = size_curve(choice, order, values, priors, run.pairs(objects), neighbours)
        self.size_curve_ = curve
        n = curve.best(price)
        if n == m:
            return choice, kept
        used = np.sort(order[:n])
        choice = choice.restricted(used)
        return choice, values.with_landmarks(choice, used)


# -- values of all objects, and held-out ones ------------------------------------------------------


@dataclass(frozen=True)
class Values:
    """Values of all objects to the landmarks, their moments per class, and class weights."""

    features: Features
    moments: ClassMoments
    class_weights: Array | None  # (C,): costs of errors, as weights of objects

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.moments.weights)

    def with_landmarks(self, choice: LandmarkChoice, used: Indices) -> Values:
        """Return the values in memory to some of the landmarks, whose choice is given."""
        F = self.features
        assert isinstance(F, FeaturesInMemory)
        weights = F.weight
        if weights is not None and self.class_weights is not None:
            weights = weights / self.class_weights[F.codes]
        part = np.ascontiguousarray(F.F[:, used])
        space = choice.space
        family = QuadraticFamily(self.n_classes)
        moments = family.moments(space, space.origin(), part, F.codes, weights)
        return Values(FeaturesInMemory(part, F.codes, F.weight), moments, self.class_weights)


@dataclass(frozen=True)
class HeldOut:
    """Training objects that are held out, i.e. treated as new ones."""

    indices: Indices  # among all objects, ascending
    values: Array  # (n, m)
    codes: Codes  # (n,)
    weights: Array | None
    own_place: Indices  # (n,): the object's position among the landmarks, −1 if it is not one

    @property
    def are_landmarks(self) -> bool:
        """Whether they include landmarks; models must then be refitted without these."""
        return bool((self.own_place >= 0).any())

    def some(self, n: int) -> HeldOut:
        """Return about `n` of the objects, evenly spaced in the order of their values.

        The result does not depend on the order of the rows.
        """
        if len(self.indices) <= n:
            return self
        order = np.argsort(self.values.sum(axis=1), kind="stable")
        take = np.sort(order[np.unique(np.linspace(0, len(order) - 1, n).astype(np.intp))])
        return HeldOut(
            self.indices[take],
            self.values[take],
            self.codes[take],
            None if self.weights is None else self.weights[take],
            self.own_place[take],
        )


def draw_held_out(landmarks: Indices, kept: Features, n_classes: int) -> HeldOut:
    """Return the held-out objects: no landmarks, unless most objects are landmarks.

    A landmark is compared with itself, which no new object is. Objects of weight 0 are excluded.
    """
    raw = kept.rows(np.arange(n_classes), n_classes)
    N, weight = raw.shape[0], raw.weight
    fair = np.ones(N, dtype=bool) if weight is None else weight > 0
    if 2 * len(landmarks) <= N:
        fair[landmarks] = False
        n = int(fair.sum())
        if n > HELD_OUT_OBJECTS:
            fair &= uniform_keys(_HELD_OUT_SEED, np.arange(N)) < HELD_OUT_OBJECTS / n
    indices = np.flatnonzero(fair)
    return HeldOut(
        indices,
        raw.features(indices),
        raw.y[indices],
        None if weight is None else weight[indices],
        own_places(N, landmarks)[indices],
    )


# -- heads -----------------------------------------------------------------------------------------


def fit_heads(
    choice: LandmarkChoice, kept: Values, sample: HeldOut, priors: Priors
) -> tuple[list[Head], list[Array]]:
    """Fit IKFD, IKQD and PCVM to the same values; also return their held-out log-probabilities.

    No pair is compared. Held-out scores of the Gaussian heads come from the moments without each
    fold, those of PCVM are approximate leave-one-out scores. If landmarks are held out, models are
    refitted without each fold instead. This happens only if most objects are landmarks.
    """
    C, space, landmarks = kept.n_classes, choice.space, choice.landmarks
    folds = stratified_folds(sample.values, sample.codes, sample.weights, kept.moments.weights)
    fisher = FisherFamily(C, shrinkage="oas", priors=priors)
    quadratic = QuadraticFamily(C, shrinkage="oas", priors=priors)
    pcvm = PCVMFamily(C)
    model, features = fit_landmarks(
        space, landmarks.indices, kept.features, landmarks.codes, pcvm, keep=True
    )
    heads: list[Head] = [
        linear_head(space, fisher.discriminant(kept.moments), "softmax"),
        quadratic_head(space, quadratic.discriminant(kept.moments)),
        LinearHead(
            model.function,
            model.places,
            model.dual_coef,
            model.intercept,
            "probit" if C == 2 else "softmax",
        ),
    ]
    if sample.are_landmarks:
        settled = replace(pcvm, function=model.function, scales=model.scales)
        scores = [refitted_scores(f, choice, sample, folds) for f in (fisher, quadratic, settled)]
    else:
        scores = [
            downdated_scores(family, choice, kept.moments, sample, folds)
            for family in (fisher, quadratic)
        ]
        problems = pcvm.problems(landmarks.codes)
        scores.append(both_scores(left_out_scores(features, problems, model.fits, sample.indices)))
    fair = folds >= 0
    weights = None if sample.weights is None else sample.weights[fair]
    if fair.any():
        heads = [
            replace(  # type: ignore[type-var]
                head,
                temperature=fit_temperature(
                    each[fair], sample.codes[fair], head.to_log_proba, weights
                ),
            )
            for head, each in zip(heads, scores, strict=True)
        ]
    return heads, [head.to_log_proba(each) for head, each in zip(heads, scores, strict=True)]


def downdated_scores(
    family: GaussianFamily,
    choice: LandmarkChoice,
    moments: ClassMoments,
    sample: HeldOut,
    folds: Codes,
) -> Array:
    """Return the scores of each fold from the moments without that fold."""
    space = choice.space
    scores = np.zeros((len(sample.codes), family.n_classes))
    for fold in range(-1, folds.max() + 1):
        held = folds == fold
        left = moments
        if fold >= 0:
            weights = None if sample.weights is None else sample.weights[held]
            values, codes = sample.values[held], sample.codes[held]
            left = moments - family.moments(space, moments.origin, values, codes, weights)
        if held.any():
            scores[held] = family.scorer(space, left)(sample.values[held])
    return scores


def refitted_scores(family: Family, choice: LandmarkChoice, sample: HeldOut, folds: Codes) -> Array:
    """Return the scores of each fold from a model without its objects and its landmarks."""
    space, classes = choice.space, choice.landmarks.codes
    scores: Array | None = None
    for fold in range(-1, folds.max() + 1):
        held = folds == fold
        if not held.any():
            continue
        used = np.setdiff1d(np.arange(len(classes)), sample.own_place[held] if fold >= 0 else [])
        rest = ~held if fold >= 0 else np.ones_like(held)
        weights = None if sample.weights is None else sample.weights[rest]
        scorer = family.learn(
            space.restricted(used),
            classes[used],
            sample.values[np.ix_(rest, used)],
            sample.codes[rest],
            weights,
        )
        found = scorer(sample.values[np.ix_(held, used)])
        if scores is None:
            scores = np.zeros((len(folds), found.shape[1]))
        scores[held] = found
    assert scores is not None
    return scores


# -- the second look -------------------------------------------------------------------------------


def choose_known_objects(
    kept: Values,
    landmarks: Indices,
    neighbours: int,
    max_kept: int,
    heads: Sequence[Head],
    pool: Pool,
) -> KnownObjects:
    """Return the known objects: all except the landmarks, or the most useful `max_kept` of them.

    In the latter case, up to half are objects that the first look gets wrong, and every class is
    represented.
    """
    raw = kept.features.rows(np.arange(kept.n_classes), kept.n_classes)
    codes = raw.y
    free = np.ones(len(codes), dtype=bool) if raw.weight is None else raw.weight > 0
    free[landmarks] = False
    indices = np.flatnonzero(free)
    if len(indices) > max_kept:
        keys = uniform_keys(_KNOWN_SEED, indices)
        drawn = np.sort(indices[np.argsort(keys, kind="stable")[: 2 * max_kept]])
        values = raw.features(drawn)
        first = pool([head.to_log_proba(head.scores(values, None)) for head in heads])
        right = pool.bounded(first).argmax(axis=1) == codes[drawn]
        picked = np.sort(preferred(codes[drawn], right, max_kept))
        indices, values = drawn[picked], values[picked]
    else:
        values = raw.features(indices)
    space = CandidateSpace.of(values if len(values) else np.zeros((1, raw.shape[1])))
    n_candidates = min(neighbours, len(indices))
    k = min(neighbours, VOTERS, len(landmarks) + n_candidates - 1)
    known = np.asarray(codes[indices], dtype=np.intp)
    return KnownObjects(indices, known, space, space.points(values), n_candidates, max(k, 1))


def preferred(codes: Codes, right: NDArray[np.bool_], n: int) -> Indices:
    """Return `n` positions: one object per class, errors up to half, then other objects.

    With more than `n` classes, there is still one object per class.
    """
    first = np.unique(codes, return_index=True)[1]
    free = max(0, n - len(first))
    wrong = np.setdiff1d(np.flatnonzero(~right), first)[: min(n // 2, free)]
    chosen = np.union1d(first, wrong)
    others = np.setdiff1d(np.arange(len(codes)), chosen)[: free - len(wrong)]
    return np.union1d(chosen, others)


def look_at_held_out(
    known: KnownObjects,
    sample: HeldOut,
    pairs: Pairs,
    rows: Indices,
    own: Indices,
    landmark_codes: Codes,
) -> tuple[Neighbours, Array]:
    """Return the neighbours of held-out objects, and the distances (n, k) of their candidates.

    No object is its own neighbour. Among the objects of `pairs`, `rows` (n,) are the held-out ones
    and `own` (N_known,) the known ones.
    """
    itself = np.full(len(sample.indices), -1, dtype=np.intp)
    if len(known.indices):
        where = np.searchsorted(known.indices, sample.indices).clip(max=len(known.indices) - 1)
        same = known.indices[where] == sample.indices
        itself[same] = where[same]
    candidates, distances = known.candidates(sample.values, without=itself)
    found = np.empty(candidates.shape)
    if candidates.size:
        found = compare_each(pairs, rows, own[candidates])
    apart = apart_from(sample.values, pairs.kind, sample.own_place)
    near = known.neighbours(apart, landmark_codes, squared(found, pairs.kind), candidates)
    return near, distances


# -- the number of landmarks -----------------------------------------------------------------------
#
# All objects are compared once with a sequence of landmarks. For prefixes of several lengths, both
# looks are learned from the same values. The chosen length minimises
#
#     held-out log-loss + price × comparisons per prediction.
#
# The landmarks are in random order, so every prefix is a random sample, and no length has an
# advantage apart from its size.


def size_curve(
    choice: LandmarkChoice,
    order: Indices,
    values: Values,
    priors: Priors,
    pairs: Pairs,
    neighbours: int,
) -> SizeCurve:
    """Return the curve for prefixes of the landmarks in this `order`.

    `pairs` contains all objects and counts the comparisons of the second look.
    """
    kept, C = values.features, values.n_classes
    assert isinstance(kept, FeaturesInMemory)
    sizes = sorted({max(2, round(share * len(order))) for share in SHARES})
    losses, comparisons = [], []
    all_landmarks = choice.landmarks.indices
    some = draw_held_out(all_landmarks, kept, C).some(SIZING_OBJECTS)
    rows = _thinned(kept, np.union1d(some.indices, all_landmarks))
    for n in sizes:
        used = np.sort(order[:n])
        part = choice.restricted(used)
        fewer = values.with_landmarks(part, used)
        F = fewer.features
        assert isinstance(F, FeaturesInMemory)
        held = replace(some, values=some.values[:, used])
        weight = None if F.weight is None else F.weight[rows]
        heads, opinions = fit_heads(
            part.at(np.searchsorted(rows, part.landmarks.indices)),
            replace(fewer, features=FeaturesInMemory(F.F[rows], F.codes[rows], weight)),
            replace(held, indices=np.searchsorted(rows, held.indices)),
            priors,
        )
        pool = learn_first_look(opinions, held.codes, held.weights)
        known = choose_known_objects(
            fewer, part.landmarks.indices, neighbours, len(F.codes), heads, pool
        )
        near, _ = look_at_held_out(
            known, held, pairs, held.indices, known.indices, part.landmarks.codes
        )
        evidence, threshold = learn_second_look(pool, opinions, held.codes, held.weights, near)
        first = pool.bounded(pool(opinions))
        again = np.exp(first.max(axis=1)) < threshold
        found = np.where(again[:, None], pool.bounded(evidence(opinions, near)), first)
        w = np.ones(len(held.codes)) if held.weights is None else held.weights
        losses.append(-(w @ found[np.arange(len(w)), held.codes]) / w.sum())
        comparisons.append(n + known.n_candidates * (w @ again) / w.sum())
    return SizeCurve(np.array(sizes), np.array(losses), np.array(comparisons))


def _thinned(kept: FeaturesInMemory, wanted: Indices) -> Indices:
    """Return `wanted` rows and others up to `SIZING_ROWS`, evenly spaced by their values."""
    others = np.setdiff1d(np.arange(len(kept.codes)), wanted)
    room = max(0, SIZING_ROWS - len(wanted))
    if len(others) > room:
        ordered = others[np.argsort(kept.F[others].sum(axis=1), kind="stable")]
        others = ordered[np.unique(np.linspace(0, len(ordered) - 1, room).astype(np.intp))]
    return np.union1d(wanted, others)
