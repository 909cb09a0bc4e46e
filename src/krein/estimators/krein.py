"""KreinClassifier, the recommended classifier: up to three looks at an object, nothing to tune.

All objects are compared with the landmarks once. From these values, `fit` chooses how many
landmarks are worth their comparisons, fits the heads, and learns from held-out objects how to pool
them, how far to trust the nearest known objects, and when to look at them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Pairs, block_rows, compare_each, progress
from ..core.calibration import (
    FOUND_BY_CHANCE,
    Chance,
    Family,
    Priors,
    Reference,
    fit_temperature,
    novelty_scores,
)
from ..core.gaussian import FisherFamily, GaussianFamily, LabelledValues, QuadraticFamily
from ..core.looks import (
    DIMENSIONS,
    VOTERS,
    CandidateSpace,
    KnownObjects,
    LookWorth,
    Neighbours,
    Points,
    Pool,
    ProbableClasses,
    Worth,
    apart_from,
    choose_certainty,
    fit_pool,
    head_worth,
    learn_first_look,
    learn_second_look,
    look_worth,
    losses_of,
    mean_of,
    nearest_landmarks,
    no_points,
    squared,
)
from ..core.moments import ClassMoments, weights_of
from ..core.pcvm.left_out import left_out_scores
from ..core.pcvm.rows import BasisFunction, Features, FeaturesInMemory
from ..core.pcvm.training import POWERS as PCVM_POWERS
from ..core.pcvm.training import PCVMFamily, both_scores, fit_landmarks
from ..core.shapes import NON_NEGATIVE, Array, Codes, Indices, Mask
from ..core.space import POWERS, signed_eigen
from ..data.dataset import (
    IN_MEMORY_OBJECTS,
    Chunk,
    Dataset,
    check_groups,
    log_sizes,
    uniform_keys,
)
from ..landmarks import Rule, Stratified, get_rule
from ..landmarks.random import default_number
from ..measures import take
from ..model.heads import Head, LinearHead, Link
from ..model.model import Comparisons, Model, SecondLook
from .discriminants import fisher_head, quadratic_head
from .fitting import (
    N_FOLDS,
    SAMPLE_SIZE,
    Classifier,
    LandmarkChoice,
    all_or_nothing,
    mean_values,
    own_landmarks,
    refitted_scores,
    scaled,
    shares_of_groups,
    stratified_folds,
    values_of,
)
from .lookzero import FeatureFit, fit_features

HELD_OUT_OBJECTS = 2_500
"""The weights of the heads and of the second look are learned from about this many objects."""

FAR_SHARE = 0.1
"""This share of held-out objects, the farthest from all known ones, always gets a second look."""

CLASS_OBJECTS = 10
"""IKQD is left out of the pool if most objects are in smaller classes: a covariance of few objects
teaches nothing."""

CLASS_WORK = 4e8
"""IKQD is left out if C·m³ exceeds this, the work of one covariance per class."""

PCVM_WORK = 5e8
"""PCVM is left out if N·m·C exceeds this, the work of one step of its search."""

CROWDED, REFITS, REFIT_WORK = 8, 5, 2e7
"""PCVM with more than `CROWDED` weights per object is refitted without each of `REFITS` folds, if
N·m·C is at most `REFIT_WORK`: approximate leave-one-out scores would be too good. In 60 classes of
ten vectors each, with twelve weights per object, the loss would seem to be half of what it is; with
six and fewer, it is about right."""

POOLED_TOLERANCE = 3e-4
"""Tolerance per row of PCVM in the pool: a smaller one hardly changes the pool. (On parts of words,
Swiss-Prot, MNIST and digits, the losses of new objects agree to 0.0002 with those for 1e-4.)"""

CALIBRATION_SCORES = 2_000_000
"""A temperature is fitted to at most about this many scores, n·C."""

BASIS_FUNCTIONS = dict(zip(POWERS, PCVM_POWERS, strict=True))
"""PCVM's basis function for each power of a dissimilarity."""

FEWEST, MOST = 30, 150
"""Minimum and maximum default number of candidates; in between, half the landmarks."""

FEWER = 0.7
"""The share of the landmarks that is tried besides all of them."""

FEWEST_RANDOM, MOST_RANDOM = 150, 300
"""Minimum and maximum number of random objects that are compared with the known ones; in between, a
third of the held-out objects. With fewer than 99 held-out objects there are none, because nothing
can be called novel at 1 % either."""

SHORTER, LONGER = 10.0, 2.0
"""Random objects are up to so many times shorter and longer than 98 % of the held-out objects."""

_HELD_OUT_SEED, _KNOWN_SEED, _RANDOM_SEED = 0, 1, 3


class KreinClassifier(Classifier):
    """Classify objects by a similarity or dissimilarity, with nothing to tune.

    Look zero judges strings, sequences, series and images by their own features, without a
    comparison. The first look compares an object with a few landmarks, and pools the probabilities
    of three models of those values: `IKFD`, `IKQD` and `PCVM`. If the result is not certain enough,
    the second look compares the object with training objects that have similar features and similar
    values to the landmarks, and adds the labels of the nearest ones as evidence. How far to trust
    each model and the evidence, and when to take a second look, is learned from held-out training
    objects. A prediction takes about a twentieth of the comparisons of nearest neighbours, at the
    same accuracy or better.

    Parameters
    ----------
    measure : str, Measure or callable
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
        look off. None uses half the number of landmarks, at least 30 and at most 150.
    features : "auto", classifier or None, default="auto"
        What the objects themselves say, before any comparison. "auto" uses character n-grams of
        strings and sequences, random convolutions of series, and edges in images; other objects
        have no features, nor have sequences that are compared on both strands. With more than 100
        classes, the most similar strings and the n-grams of each class decide. A scikit-learn
        classifier that takes the objects and has `predict_proba` is cloned, fitted and pooled in
        the same way, but cannot be saved in a model file. None uses the measure alone.
    price : float, default=1e-4
        How much each additional comparison per prediction must lower the held-out log-loss. Where
        the features alone are certain enough, an object is not compared at all; landmarks that are
        not worth their comparisons are dropped.
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
        two seconds, 1 always shows one, and 0 never does. If it is not, 1 announces how many pairs
        will be compared, and about how long it will take, if that is longer than ten seconds.
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
    dropped_heads_ : tuple of str
        Models that were left out of the pool because they could not pay for themselves, and why.
    worth_ : Worth or None
        What each model in the pool and each look is worth on held-out training objects: `heads`
        (`name`, `weight` in the pool, log-loss `alone`, and log-loss of the pool `without` it) and
        `looks` (`name`, `share` of the objects that get it, mean number of `comparisons`, and
        `log_loss` with this look and those before it). The share of "look zero" needs no comparison
        at all. None if no object could be held out.
    n_copies_ : int
        Number of training objects that are copies of others with the same label. Copies count as
        one object of their total weight, so that none is held out while its copy is not.
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
    at most 512 bytes for each.

    Examples
    --------
    >>> from krein import KreinClassifier
    >>> from krein.datasets import make_protein_families
    >>> X, y = make_protein_families(60, random_state=0)
    >>> clf = KreinClassifier("smith-waterman").fit(X[:-5], y[:-5])
    >>> bool((clf.predict(X[-5:]) == y[-5:]).all())
    True
    """

    dropped_heads_: tuple[str, ...]
    worth_: Worth | None
    n_copies_: Annotated[int, NON_NEGATIVE]

    def __init__(
        self,
        measure: Any,
        *,
        measure_params: dict[str, Any] | None = None,
        landmarks: Any = "stratified",
        n_landmarks: int | None = None,
        neighbours: int | None = None,
        features: Any = "auto",
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
        self.features = features
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
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
        groups : array of N groups, optional
            Objects of one group, such as near-duplicates or samples of one patient, are held out
            together, and count as one held-out object: probabilities, label sets and novelty then
            hold for objects of new groups. Models are refitted without each of ten folds, from a
            sample if there are more than 5,000 objects. A class in a single group is never held
            out.

        Returns
        -------
        self
        """
        self._check()
        with all_or_nothing(self), self._open(X, y, sample_weight) as data:
            self._survey(data)
            grouped = check_groups(groups, data.survey().n_objects)
            self.n_copies_ = data.merge_copies()
            found = data.survey()
            weights = self._class_weights(found.classes)
            priors, each = Priors(None, weights), weights.of_objects(found.weights)
            run = self._comparisons(data.measure)
            family = FisherFamily(len(found.classes), shrinkage="oas", priors=priors)
            choice = self._choose(data, run, found.classes, family, self._rule(data))
            space, m = choice.space, len(choice.landmarks.indices)
            left_out = worthwhile_heads(found.weights, m)
            term = partial(
                values_of,
                choice.columns,
                space,
                space.origin(),
                found.classes,
                each,
                by_class="ikqd" not in left_out,
                weighted=True,
            )
            kept, moments = data.keep(term, m, block_rows(run.measure, m), run.counter)
            try:
                values = Values(kept, moments, each, grouped)
                self._learn(data, run, choice, values, priors, left_out)
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
        named = self.features is None or isinstance(self.features, str)
        if named and self.features not in ("auto", None):
            raise ValueError(
                f"features must be 'auto', None or a classifier; got {self.features!r}"
            )
        if not named and not hasattr(self.features, "predict_proba"):
            raise ValueError(
                f"features must be 'auto', None or a classifier with predict_proba; got "
                f"{self.features!r}"
            )
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
        rule, known = get_rule(self.landmarks, self.n_landmarks), data.survey()
        if isinstance(rule, Stratified) and rule.n_landmarks is not None and self.n_copies_:
            rule.set_params(n_landmarks=min(rule.n_landmarks, known.weighted))
        elif isinstance(rule, Stratified) and rule.n_landmarks is None:
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
        left_out: dict[str, str],
    ) -> None:
        """Learn with all landmarks and with fewer, and keep what is worth its comparisons.

        The choice minimises held-out log-loss + price × comparisons per prediction. The landmarks
        are in random order, so the first ones are a random sample too.
        """
        k = self.neighbours
        if k is None:
            k = min(max(len(choice.landmarks.indices) // 2, FEWEST), MOST)
        tried, used = [(choice, kept)], np.arange(len(choice.landmarks.indices))
        order = choice.selection.details.get("order")
        N, m = data.survey().weighted, len(choice.landmarks.indices)
        optional = self.n_landmarks is None and self.price > 0 and k > 0 and order is not None
        if optional and 2 * m < N <= IN_MEMORY_OBJECTS and _comparable(data, run):
            assert order is not None
            used = np.sort(order[: max(2, round(FEWER * m))])
            part = choice.restricted(used)
            tried.append((part, kept.with_landmarks(part, used)))
        features = self._features(data, run, tried)
        found: list[Learned] = []
        for one in tried:
            first = found[0].pcvm.at(used) if found and found[0].pcvm is not None else None
            found.append(self._look(data, run, *one, priors, left_out, k, features, first))
        common = np.intersect1d(found[0].sample.indices, found[-1].sample.indices)
        best = min(found, key=lambda one: one.loss_of(common) + self.price * one.model.comparisons)
        self.model_ = compared_with_random(best.model, run)
        self.dropped_heads_ = tuple(map(": ".join, left_out.items()))
        self.worth_ = best.worth(left_out)
        signs = best.choice.space.signs
        eigenvalues = signed_eigen(best.moments.gram(), signs).values
        self._set_fit(best.choice, best.choice.space, eigenvalues, run.counter)

    def _look(
        self,
        data: Dataset,
        run: Comparisons,
        choice: LandmarkChoice,
        kept: Values,
        priors: Priors,
        left_out: Collection[str],
        neighbours: int,
        features: FeatureFit | None,
        first: FittedPCVM | None,
    ) -> Learned:
        """Fit the heads, PCVM starting from another one, and learn all looks."""
        landmarks, kind = choice.landmarks, run.measure.kind
        sample = draw_held_out(landmarks.indices, kept)
        totals = None if sample.grouped else kept.moments.weights
        groups, n_folds = kept.groups[sample.indices], N_FOLDS
        if not sample.refits:  # a fold holds out at most a tenth of all objects
            n_folds = int(np.clip(np.ceil(N_FOLDS * len(groups) / len(kept.groups)), 2, N_FOLDS))
        folds = stratified_folds(
            sample.values, sample.codes, sample.weights, totals, groups, n_folds
        )
        if sample.grouped and not (folds >= 0).any():
            warnings.warn(
                "every class is in a single group, so no group can be held out, and probabilities "
                "may be too certain: use smaller groups",
                UserWarning,
                stacklevel=2,
            )
        scored = folds >= 0  # the only object of a class cannot be held out
        if not scored.any():
            scored[:] = True
        if not sample.refits:
            sample, folds, scored = sample.at(scored), folds[scored], scored[scored]
        with progress(None, "fitting models", self.verbose, unit=""):
            heads, opinions, pcvm = fit_heads(
                choice, kept, sample, folds, scored, priors, left_out, first
            )
        sample = sample.at(scored)
        value_heads = heads
        if features is not None:
            scores = features.scores_of(sample.indices)
            head = calibrated(features.head, scores, sample)
            heads, opinions = [head, *heads], [head.to_log_proba(scores), *opinions]
        weights = sample.score_weights
        n_groups = len(np.unique(kept.groups[sample.indices])) if sample.grouped else None
        pool = learn_first_look(opinions, sample.codes, weights, n_groups)
        known, points = None, no_points(len(sample.codes))
        if neighbours:
            points_of = no_points_of if features is None else features.points_of
            known = choose_known_objects(
                kept, landmarks.indices, neighbours, self.max_kept, value_heads, points_of
            )
            points = points_of(sample.indices)
        second, near, looked, sizes = self._second_look(
            data, run, landmarks, sample, opinions, pool, known, points, kept.groups
        )
        unbounded = pool(opinions)
        costs = np.full(len(sample.codes), float(len(landmarks.indices)))
        held_out, everyone = (sample.codes, weights), np.ones(len(costs), dtype=bool)
        looks = [look_worth("first look", everyone, costs, pool.bounded(unbounded), *held_out)]
        if second is not None:
            some = [opinion[looked] for opinion in opinions]
            unbounded[looked] = second.pool(some, near.at(looked))
            costs += second.known.n_candidates * looked
            after = pool.bounded(unbounded)
            looks.append(look_worth("second look", looked, costs, after, *held_out))
        certain = np.inf
        if features is not None:
            alone = pool.bounded(opinions[0])
            compared = pool.bounded(unbounded)
            gain = losses_of(alone, sample.codes) - losses_of(compared, sample.codes)
            confidence = np.exp(alone.max(axis=1))
            others = opinions[1:]
            if second is not None:
                others = [*others, *second.pool.terms(near, kept.n_classes)]
            measure = learn_first_look(others, sample.codes, weights, n_groups)  # no features
            without = losses_of(measure.bounded(measure(others)), sample.codes)
            room = mean_of(without - losses_of(compared, sample.codes), weights)
            certain = choose_certainty(confidence, gain, costs, self.price, weights, room)
            sure = confidence >= certain
            unbounded[sure], costs[sure] = opinions[0][sure], 0.0
            after = pool.bounded(unbounded)
            looks.append(look_worth("look zero", sure, costs, after, *held_out))
        comparisons = mean_of(costs, weights)
        if weights is not None and kept.class_weights is not None:  # costs of errors, not numbers
            weights = weights / kept.class_weights[sample.codes]
        model = Model(
            run.measure,
            self.symmetrize,
            data.survey().classes,
            tuple(heads),  # type: ignore[arg-type]
            pool,
            mean_values(sample.values, kind, weights),
            landmarks,
            second,
            Reference.of(novelty_scores(near.apart, kind), unbounded, sample.codes, weights, sizes),
            certain,
            comparisons,
            self.n_samples_seen_,
            getattr(self, "feature_names_in_", None),
            self.ambiguous_below,
            self.novel_below,
        )
        losses = losses_of(pool.bounded(unbounded), sample.codes)
        return Learned(model, choice, kept.moments, sample, losses, opinions, tuple(looks), pcvm)

    def _features(
        self, data: Dataset, run: Comparisons, tried: Sequence[tuple[LandmarkChoice, Values]]
    ) -> FeatureFit | None:
        """Fit the head that looks at the objects themselves, if they have features."""
        if self.features is None:
            return None
        kept = tried[0][1]
        raw = kept.features.rows(np.arange(kept.n_classes), kept.n_classes)
        held_out = np.unique(
            np.concatenate(
                [
                    draw_held_out(choice.landmarks.indices, values).indices
                    for choice, values in tried
                ]
            )
        )
        C, groups = kept.n_classes, kept.groups
        with progress(None, "learning from features", self.verbose, unit=""):
            return fit_features(
                data, run.measure, raw.y, raw.weight, C, held_out, groups, self.features
            )

    def _second_look(
        self,
        data: Dataset,
        run: Comparisons,
        landmarks: Any,
        sample: HeldOut,
        opinions: Sequence[Array],
        pool: Pool,
        known: KnownObjects | None,
        points: Points,
        groups: Indices,
    ) -> tuple[SecondLook | None, Neighbours, NDArray[np.bool_], Array | None]:
        """Look again at held-out objects; learn when to look and how to weigh what is found.

        Also returns the neighbours of the held-out objects, which of them are looked at again, and
        the logarithms of their sizes.
        """
        measure, m = run.measure, len(landmarks.indices)
        apart = apart_from(sample.values, measure.kind, sample.own)
        nearest, never = nearest_landmarks(apart, landmarks.codes), np.zeros(len(apart), dtype=bool)
        if known is None and measure.accepts != "objects":
            return None, nearest, never, None
        wanted = np.union1d(sample.indices, landmarks.indices)
        wanted = wanted if known is None else np.union1d(known.indices, wanted)
        objects = data.take(wanted, measure).objects
        rows = np.searchsorted(wanted, sample.indices)
        sizes = log_sizes(measure, take(objects, rows)) if len(rows) else None
        if known is None or not measure.comparable(objects):
            return None, nearest, never, sizes
        own = np.searchsorted(wanted, known.indices)
        near, distances = look_at_held_out(
            known, sample, points, run.pairs(objects), rows, own, landmarks.codes, groups
        )
        share = 1.0
        if self.max_comparisons is not None and known.n_candidates:
            share = min(1.0, max(0.0, (self.max_comparisons - m) / known.n_candidates))
        evidence, threshold = learn_second_look(
            pool, opinions, sample.codes, sample.score_weights, near, share
        )
        far = np.inf
        if known.n_candidates == 0:  # a second look at landmarks costs nothing
            threshold = np.inf
        elif share == 1.0:
            far = float(np.quantile(distances[:, 0], 1 - FAR_SHARE))
        kept = measure.keep(take(objects, own), known.indices, data.survey().n_objects)
        second = SecondLook(known, evidence, threshold, far, None, kept)
        confidence = np.exp(pool.bounded(pool(opinions)).max(axis=1))
        return second, near, second.looks_again(confidence, distances), sizes


def no_points_of(indices: Indices) -> Points:
    """Return the points of objects without features."""
    return no_points(len(indices))


def _comparable(data: Dataset, run: Comparisons) -> bool:
    """Whether all objects can be compared with each other again."""
    objects = data.take(np.arange(data.survey().n_objects), run.measure).objects
    return run.measure.comparable(objects)


def compared_with_random(model: Model, run: Comparisons) -> Model:
    """Return the model with the scores of random objects, if objects differ in size.

    Their parts are drawn from the landmarks, and their sizes are evenly spaced on a logarithmic
    scale. Costs m + n_candidates comparisons for each of up to 300 objects.
    """
    reference = model.reference
    if reference is None or reference.log_sizes is None or reference.smallest > FOUND_BY_CHANCE:
        return model
    low, high = np.quantile(reference.log_sizes, [0.01, 0.99])
    n = int(np.clip(len(reference.scores) // 3, FEWEST_RANDOM, MOST_RANDOM))
    sizes = np.exp(np.linspace(max(low - np.log(SHORTER), 0.0), high + np.log(LONGER), n))
    rng = np.random.default_rng(_RANDOM_SEED)
    objects = model.measure.random_objects(model.landmarks.objects, sizes, rng)
    if objects is None:
        return model
    second = model.second_look
    known = None if second is None else run.columns(second.objects, second.known.indices)
    columns = run.columns(model.landmarks.objects, model.landmarks.indices)
    found = []
    for chunk in Chunk(0, objects, checked=True).blocks(block_rows(run.measure, len(columns))):
        answer = model.look(chunk, columns, known, run.counter, compare_all=True)
        scores = model.novelty_scores(answer)
        scores[answer.foreign] = np.nan
        found.append(scores)
    scores, x = np.concatenate(found), log_sizes(model.measure, objects)
    assert x is not None
    fair = np.isfinite(scores)
    if 1 / (1 + fair.sum()) > FOUND_BY_CHANCE:
        return model
    chance = Chance.of(x[fair], scores[fair])
    return replace(model, reference=replace(reference, chance=chance))


# -- values of all objects, and held-out ones ------------------------------------------------------


@dataclass(frozen=True)
class Values:
    """Values of all objects to the landmarks, their moments per class, class weights and groups."""

    features: Features
    moments: ClassMoments
    class_weights: Array | None  # (C,): costs of errors, as weights of objects
    groups: Indices  # (N,): the first object of each object's group

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.moments.weights)

    def with_landmarks(self, choice: LandmarkChoice, used: Indices) -> Values:
        """Return the values to some of the landmarks, whose choice is given, in memory."""
        C = self.n_classes
        raw = self.features.rows(np.arange(C), C)
        values = np.ascontiguousarray(raw.features(np.arange(len(raw.y)))[:, used])
        weights = raw.weight
        if weights is not None and self.class_weights is not None:
            weights = weights / self.class_weights[raw.y]
        by_class = self.moments.products.ndim == 3
        family = QuadraticFamily(C) if by_class else FisherFamily(C)
        moments = family.moments(choice.space, choice.space.origin(), values, raw.y, weights)
        features = FeaturesInMemory(values, raw.y, raw.weight)
        return replace(self, features=features, moments=moments)


@dataclass(frozen=True)
class FittedPCVM:
    """The weights (m, C) and biases of a PCVM, where the search for another one can start."""

    function: BasisFunction
    weights: Array
    bias: Array

    def at(self, used: Indices) -> FittedPCVM:
        """Return the weights of some landmarks."""
        return replace(self, weights=self.weights[used])


@dataclass(frozen=True)
class Learned:
    """A model, and what held-out objects tell about it."""

    model: Model
    choice: LandmarkChoice
    moments: ClassMoments
    sample: HeldOut
    losses: Array  # (n,)
    opinions: list[Array]  # (n, C), of each head
    looks: tuple[LookWorth, ...]
    pcvm: FittedPCVM | None

    def loss_of(self, indices: Indices) -> float:
        """Return the mean loss of some of the held-out objects."""
        some = np.isin(self.sample.indices, indices)
        return mean_of(self.losses[some], self.sample.at(some).score_weights)

    def worth(self, left_out: Collection[str]) -> Worth | None:
        """Return what each head and each look is worth; None if nothing was held out."""
        codes, weights = self.sample.codes, self.sample.score_weights
        if len(codes) == 0:
            return None
        names = [name for name in ("ikfd", "ikqd", "pcvm") if name not in left_out]
        names = names if self.model.look_zero is None else ["features", *names]
        heads = head_worth(names, self.model.pool, self.opinions, codes, weights)
        return Worth(heads, self.looks)


@dataclass(frozen=True)
class HeldOut:
    """Training objects that are held out, i.e. treated as new ones."""

    indices: Indices  # among all objects, ascending
    values: Array  # (n, m)
    codes: Codes  # (n,)
    weights: Array | None
    own: Mask  # (n, m): which landmarks are in the object's group, or the object itself
    shares: Array | None = None  # (n,): of each object in its group; None without groups

    @property
    def grouped(self) -> bool:
        """Whether several objects may be in one group; models are then refitted without each."""
        return self.shares is not None

    @property
    def refits(self) -> bool:
        """Whether models must be refitted: without groups, or without landmarks among these."""
        return self.grouped or bool(self.own.any())

    @property
    def score_weights(self) -> Array | None:
        """The weights of held-out scores, of which each group has as many as one object."""
        return scaled(self.weights, self.shares)

    def refitted(self, family: Family, choice: LandmarkChoice, folds: Codes) -> Array:
        """Return the scores of each fold from a model without its objects and its landmarks."""
        return refitted_scores(
            family, choice, self.values, self.codes, self.weights, folds, self.own
        )

    def at(self, rows: Mask) -> HeldOut:
        """Return some of the objects."""
        return HeldOut(
            self.indices[rows],
            self.values[rows],
            self.codes[rows],
            None if self.weights is None else self.weights[rows],
            self.own[rows],
            None if self.shares is None else self.shares[rows],
        )


def draw_held_out(landmarks: Indices, kept: Values) -> HeldOut:
    """Return the held-out objects: no landmarks, unless most objects are landmarks.

    A landmark is compared with itself, which no new object is. Objects of weight 0 are excluded.
    With groups, models are refitted to these objects without each fold: all objects up to a number,
    then a sample with ten objects of each class.
    """
    raw = kept.features.rows(np.arange(kept.n_classes), kept.n_classes)
    N, weight, groups = raw.shape[0], raw.weight, kept.groups
    fair = np.ones(N, dtype=bool) if weight is None else weight > 0
    grouped = bool((groups != np.arange(N)).any())
    if grouped and fair.sum() > SAMPLE_SIZE:
        sizes = np.bincount(raw.y[fair], minlength=kept.n_classes)
        share = np.maximum(SAMPLE_SIZE / fair.sum(), N_FOLDS / np.maximum(sizes, 1))
        fair &= uniform_keys(_HELD_OUT_SEED, np.arange(N)) < share[raw.y]
    elif not grouped and 2 * len(landmarks) <= fair.sum():
        fair[landmarks] = False
        n = int(fair.sum())
        if n > HELD_OUT_OBJECTS:
            fair &= uniform_keys(_HELD_OUT_SEED, np.arange(N)) < HELD_OUT_OBJECTS / n
    indices = np.flatnonzero(fair)
    codes, weights = raw.y[indices], None if weight is None else weight[indices]
    numbers = weights  # without the costs of errors
    if weights is not None and kept.class_weights is not None:
        numbers = weights / kept.class_weights[codes]
    return HeldOut(
        indices,
        raw.features(indices),
        codes,
        weights,
        own_landmarks(groups, indices, landmarks),
        shares_of_groups(groups[indices], numbers) if grouped else None,
    )


# -- heads -----------------------------------------------------------------------------------------


def worthwhile_heads(sizes: Array, n_landmarks: int) -> dict[str, str]:
    """Return the heads that are left out, each with the reason, for classes of these sizes."""
    C, N, m = len(sizes), float(sizes.sum()), n_landmarks
    found = {}
    if sizes[sizes >= CLASS_OBJECTS].sum() < N / 2:
        few = f"most objects are in classes of fewer than {CLASS_OBJECTS}"
        found["ikqd"] = f"{few}, which cannot have a covariance of their own"
    elif C * float(m) ** 3 > CLASS_WORK:
        found["ikqd"] = f"{C:,} covariances of {m} landmarks would cost more than they are worth"
    if N * m * C > PCVM_WORK:
        found["pcvm"] = (
            f"{m * C:,} weights for {N:,.0f} objects would cost more than they are worth"
        )
    return found


def must_refit(n_objects: float, n_landmarks: int, n_classes: int) -> bool:
    """Whether PCVM has too many weights for approximate leave-one-out scores, and few enough to
    be refitted."""
    work = n_objects * n_landmarks * n_classes
    return n_landmarks * n_classes > CROWDED * n_objects and work <= REFIT_WORK


def fit_heads(
    choice: LandmarkChoice,
    kept: Values,
    sample: HeldOut,
    folds: Codes,
    scored: Mask,
    priors: Priors,
    left_out: Collection[str],
    first: FittedPCVM | None = None,
) -> tuple[list[Head], list[Array], FittedPCVM | None]:
    """Fit IKFD, IKQD and PCVM to the same values; also return their held-out log-probabilities.

    PCVM starts from the weights `first` of another one, and its own are returned too. The held-out
    log-probabilities are of the `scored` objects (n,) of the sample; the others only take part in
    fits. No pair is compared. Held-out scores of the Gaussian heads come from the moments without
    each fold, those of PCVM are approximate leave-one-out scores. If landmarks or groups are held
    out, models are refitted without each fold instead. Without groups, this happens only if most
    objects are landmarks.
    """
    C, space, landmarks = kept.n_classes, choice.space, choice.landmarks
    heads: list[Head] = []
    scores: list[Array] = []
    fisher = FisherFamily(C, shrinkage="oas", priors=priors)
    heads.append(fisher_head(space, fisher.discriminant(kept.moments)))
    families: list[GaussianFamily] = [fisher]
    if "ikqd" not in left_out:
        quadratic = QuadraticFamily(C, shrinkage="oas", priors=priors)
        heads.append(quadratic_head(space, quadratic.discriminant(kept.moments)))
        families.append(quadratic)
    for family in families:
        if sample.refits:
            scores.append(sample.refitted(family, choice, folds))
        else:
            scores.append(downdated_scores(family, choice, kept.moments, sample, folds))
    fitted: FittedPCVM | None = None
    if "pcvm" not in left_out:
        function: BasisFunction = BASIS_FUNCTIONS[best_power(choice, sample, folds, scored, C)]
        if space.kind == "similarity":
            function = "similarity"
        pcvm = PCVMFamily(C, function=function, tol=POOLED_TOLERANCE)
        start = None
        if first is not None and first.function == function:
            start = first.weights, first.bias
        model, features = fit_landmarks(
            space, landmarks.indices, kept.features, landmarks.codes, pcvm, keep=True, first=start
        )
        if len(model.fits) == 1:
            fitted = FittedPCVM(function, model.fits[0].weights, model.fits[0].bias)
        link: Link = "probit" if C == 2 else "softmax"
        heads.append(
            LinearHead(model.function, model.places, model.dual_coef, model.intercept, link)
        )
        settled = replace(pcvm, function=model.function, scales=model.scales)
        if sample.refits:
            scores.append(sample.refitted(settled, choice, folds))
        elif must_refit(float(kept.moments.weights.sum()), len(landmarks.indices), C):
            scores.append(cross_fitted(settled, choice, kept, sample, folds))
        else:
            problems = pcvm.problems(landmarks.codes)
            Z = left_out_scores(features, problems, model.fits, sample.indices, coupled=False)
            scores.append(both_scores(Z))
    sample, scores = sample.at(scored), [each[scored] for each in scores]
    heads = [calibrated(head, each, sample) for head, each in zip(heads, scores, strict=True)]
    assert isinstance(heads[0], LinearHead)
    heads[0], scores[0] = with_class_sizes(heads[0], scores[0], sample, kept)
    log_proba = [head.to_log_proba(each) for head, each in zip(heads, scores, strict=True)]
    return heads, log_proba, fitted


def cross_fitted(
    family: Family, choice: LandmarkChoice, kept: Values, sample: HeldOut, folds: Codes
) -> Array:
    """Return the scores of held-out objects, from models of all objects but those of one fold."""
    raw = kept.features.rows(np.arange(kept.n_classes), kept.n_classes)
    N, m = raw.shape
    every = np.full(N, -1, dtype=np.intp)
    every[sample.indices] = np.where(folds < 0, -1, folds % REFITS)
    values, own = raw.features(np.arange(N)), np.zeros((N, m), dtype=bool)
    found = refitted_scores(family, choice, values, raw.y, raw.weight, every, own)
    return found[sample.indices]


def calibrated(head: Head, scores: Array, sample: HeldOut) -> Head:
    """Return the head with the temperature that fits held-out scores (n, C) best."""
    n, C = scores.shape
    some = slice(None, None, max(1, n * C // CALIBRATION_SCORES))
    weights = None if sample.score_weights is None else sample.score_weights[some]
    if n == 0:
        return head
    temperature = fit_temperature(scores[some], sample.codes[some], head.to_log_proba, weights)
    return replace(head, temperature=temperature)  # type: ignore[type-var]


def with_class_sizes(
    head: LinearHead, scores: Array, sample: HeldOut, kept: Values
) -> tuple[LinearHead, Array]:
    """Return IKFD with class sizes as strong as fits held-out objects best, and their scores.

    p ∝ exp(a β z_c) n_c^g with the calibrated scores β z, by the same convex problem as the pool. A
    temperature β far below 1, as in many dimensions, would otherwise take the sizes with it, and
    classes of one object, whose means are exact by construction, would win. A held-out object does
    not count for its own class.
    """
    n, sizes = len(sample.codes), kept.moments.weights
    if n == 0:
        return head, scores
    own = weights_of(sample.weights, n)
    if sample.weights is not None and kept.class_weights is not None:
        own = own / kept.class_weights[sample.codes]  # costs of errors, not numbers
    rest = np.tile(sizes, (n, 1))
    rest[np.arange(n), sample.codes] -= own
    log_sizes = np.log(np.maximum(rest, np.finfo(float).tiny) / rest.sum(axis=1, keepdims=True))
    log_proba = head.to_log_proba(scores)
    probable = ProbableClasses.of([log_proba], sample.codes)
    terms = [probable.of_log_proba(one) for one in (log_proba, log_sizes)]
    a, g = fit_pool(terms, probable.codes, np.array([1.0, 0.0]), sample.score_weights)
    if a == 0:  # such a head gets no weight in the pool either
        return head, scores
    temperature = float(a) * head.temperature
    strength = float(g) / temperature
    bias = head.bias + strength * np.log(sizes / sizes.sum())
    return replace(head, temperature=temperature, bias=bias), scores + strength * log_sizes


def best_power(
    choice: LandmarkChoice, sample: HeldOut, folds: Codes, scored: Mask, n_classes: int
) -> float:
    """Return the power of a dissimilarity with the least left-out loss of IKFD.

    It has a closed form, unless groups are left out together.
    """
    space = choice.space
    if space.kind == "similarity" or len(sample.codes) == 0:
        return 1.0
    family, losses = FisherFamily(n_classes, shrinkage="oas"), []
    place = np.where(sample.own.any(axis=1), sample.own.argmax(axis=1), -1)
    labelled = LabelledValues(sample.values, sample.codes, sample.weights, place)
    judged = sample.at(scored)
    codes, weights = judged.codes, judged.score_weights
    for power in POWERS:
        part = space.with_power(power)
        if sample.grouped:
            scores = sample.refitted(family, replace(choice, space=part), folds)[scored]
        else:
            moments = family.moments(part, part.origin(), labelled.values, labelled.codes)
            scores, objects = family.left_out_scores(part, moments, labelled)
            codes, weights = objects.codes, objects.weights
        if len(codes) == 0:
            return 1.0
        beta = fit_temperature(scores, codes, family.log_proba, weights)
        log_p = family.log_proba(beta * scores)[np.arange(len(codes)), codes]
        losses.append(-np.average(log_p, weights=weights))
    return POWERS[int(np.argmin(losses))]


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


# -- the second look -------------------------------------------------------------------------------


def choose_known_objects(
    kept: Values,
    landmarks: Indices,
    neighbours: int,
    max_kept: int,
    heads: Sequence[Head],
    points_of: Callable[[Indices], Points],
) -> KnownObjects:
    """Return the known objects: all except the landmarks, or the most useful `max_kept` of them.

    In the latter case, up to half are objects that the first look gets wrong, and every class is
    represented. `points_of` returns the points of the features of some objects.
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
        found = sum(head.to_log_proba(head.scores(values, None)) for head in heads)
        right = np.asarray(found).argmax(axis=1) == codes[drawn]
        picked = np.sort(preferred(codes[drawn], right, max_kept))
        indices, values = drawn[picked], values[picked]
    else:
        values = raw.features(indices)
    points = points_of(indices)
    most = DIMENSIONS // 2 if points.shape[1] else DIMENSIONS
    space = CandidateSpace.of(values if len(values) else np.zeros((1, raw.shape[1])), most)
    n_candidates = min(neighbours, len(indices))
    k = min(neighbours, VOTERS, len(landmarks) + n_candidates - 1)
    numbers = weights_of(raw.weight, len(codes))
    numbers = numbers / numbers[numbers > 0].mean()  # whatever the unit of the weights
    return KnownObjects(
        indices,
        np.asarray(codes[indices], dtype=np.intp),
        numbers[indices],
        numbers[landmarks],
        space,
        space.points(values, points),
        n_candidates,
        max(k, 1),
    )


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
    points: Points,
    pairs: Pairs,
    rows: Indices,
    own: Indices,
    landmark_codes: Codes,
    groups: Indices,
) -> tuple[Neighbours, Array]:
    """Return the neighbours of held-out objects, and the distances (n, k) of their candidates.

    No object is a neighbour of its own group, which `groups` (N,) gives for all objects. Among the
    objects of `pairs`, `rows` (n,) are the held-out ones and `own` (N_known,) the known ones; the
    features of the held-out ones have these `points` (n, r).
    """
    without = groups[sample.indices], groups[known.indices]
    candidates, distances = known.candidates(sample.values, points, without)
    found = np.empty(candidates.shape)
    if candidates.size:
        found = compare_each(pairs, rows, own[candidates])
    apart = apart_from(sample.values, pairs.kind, sample.own)
    near = known.neighbours(apart, landmark_codes, squared(found, pairs.kind), candidates)
    return near, distances
