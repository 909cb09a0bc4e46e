"""KreinClassifier, the recommended classifier: up to three looks at an object, nothing to tune.

All objects are compared with the landmarks once. From these values, `fit` learns the heads. From
the results of each look at held-out objects, it learns the cascade: how to pool the terms, and when
an object needs no further look.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Self

import numpy as np

from ..compare.pairs import block_rows
from ..core.cascade import Cascade, Worth, head_worth, look_worth
from ..core.conformal import Reference, novelty_scores
from ..core.evidence import VOTERS, Neighbours
from ..core.gaussian import GaussianFamily
from ..core.moments import weights_of
from ..core.ranks import RankPool, Seen, find_separator
from ..core.shapes import COUNT, Array, Kind
from ..core.space import Signature, signed_eigen
from ..data.dataset import Dataset
from ..data.labelling import check_groups, check_labels, codes_of, first_equal, joined_groups
from ..data.local import Memory
from ..landmarks import Rule, Stratified, get_rule
from ..landmarks.random import default_number
from ..measures import Measure, get_measure
from ..measures.precomputed import GraphRows
from ..model.model import Model
from ..model.parts import SECOND_LOOK
from .firstlook import take_first_look, worthwhile_heads
from .fitting import Classifier, all_or_nothing, mean_values, values_of
from .heldout import HeldOut, TakenLook, TrainingSet, totals_of
from .hits import SearchedObjects, learn_from_hits
from .lookzero import take_look_zero
from .secondlook import Nearest, compared_with_random, take_second_look

FEW_HELD_OUT = 50
"""With fewer held-out objects, probabilities, label sets and lists are only rough."""


class KreinClassifier(Classifier):
    """Classify objects by a similarity or dissimilarity, with nothing to tune.

    Look zero classifies strings, sequences, series and images from their own features, without a
    comparison. The first look compares an object with a few landmarks, and pools the probabilities
    of three models of those values: `IKFD`, `IKQD` and `PCVM`. If the result is not certain enough,
    the second look compares the object with training objects that have similar features and similar
    values to the landmarks, and adds the labels of the nearest ones as evidence. How far to trust
    each model and the evidence, and when to take a second look, is learned from held-out training
    objects. Given about 1,000 objects or more, it matches or beats the accuracy of nearest
    neighbours with less than a tenth of the comparisons per prediction.

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
        2 √N or N/40, whichever is larger, but at most 500. Copies count as one object.
    neighbours : int or None, default=None
        Number of candidates that an object is compared with in the second look; 0 turns the second
        look off. None uses half the number of landmarks, at least 30 and at most 150.
    features : "auto", classifier or None, default="auto"
        How objects are classified before any comparison. "auto" uses character n-grams of
        strings and sequences, convolutions of series, and edges in images; other objects have no
        features. Records have those of their parts. If a regression would cost too much, the most
        similar strings and the n-grams of each class decide. A scikit-learn classifier that takes
        the objects and has `predict_proba` is cloned, fitted and pooled in the same way, but cannot
        be saved in a model file. None uses the measure alone.
    price : float, default=1e-4
        How much each additional comparison per prediction must lower the held-out log-loss. An
        object gets another look where the loss that this saves exceeds price × comparisons.
    max_comparisons : float or None, default=None
        Budget for the mean number of comparisons per prediction. None uses as many as are worth
        their `price`.
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
        Seed for the choice of landmarks. The same number gives the same model; with up to 20,000
        objects, in any order of the rows.

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
        Models that were left out of the pool because they cost more than they contribute, and why.
    worth_ : Worth or None
        What each model in the pool and each look is worth on held-out training objects: `heads`
        (`name`, `weight` in the pool, log-loss `alone`, and log-loss of the pool `without` it) and
        `looks` (`name`, `share` of the objects that get it; mean number of `comparisons` and
        `log_loss` of a model that stops after it). None if no object could be held out.
    n_held_out_ : int
        Number of training objects, or groups of them, that were held out to calibrate the answers.
        With fewer than 50, probabilities, label sets and lists are only rough, and `fit` warns.
    n_copies_ : int
        Number of training objects that are copies of others with the same label. Copies are held
        out together, and count as one held-out object.
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
    others each. The model keeps the training objects, and at most 512 bytes for each.

    Examples
    --------
    >>> from krein import KreinClassifier
    >>> from krein.datasets import make_protein_families
    >>> X, y = make_protein_families(60, random_state=0)
    >>> clf = KreinClassifier("smith-waterman").fit(X[:-5], y[:-5])
    >>> bool((clf.predict(X[-5:]) == y[-5:]).all())
    True
    """

    takes_graphs = True

    dropped_heads_: tuple[str, ...]
    worth_: Worth | None
    n_copies_: Annotated[int, COUNT]

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
            memory map, or a Dask collection. Landmarks are chosen among all objects, or among
            about 20,000 of them and at least 200 per class.
        y : array of N labels, str, or None if X contains them
            If X is the path of a file, y may name its column of labels, or a file of names and
            labels, as in `krein.io.open_source`.
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
            survey = self._survey(data)
            if isinstance(data, Memory) and isinstance(data.objects, GraphRows):
                self._fit_graph(data, groups)
                self._warn_if_few()
                return self
            keys, codes = data.contents()
            copies, C = first_equal(keys), len(survey.classes)
            related = joined_groups(check_groups(groups, survey.n_objects), copies)
            everyone = np.arange(survey.n_objects)
            distinct = first_equal(copies * C + codes) == everyone
            self.n_copies_ = survey.n_objects - int(distinct.sum())
            priors = self._class_costs(survey.classes)
            costs = priors.weights(survey.weights)
            job = self._job(data, survey.classes)
            family = GaussianFamily(C, shrinkage="oas", priors=priors)
            rule = self._rule(survey.weighted - self.n_copies_, C)
            choice = self._choose(job, family, rule, distinct)
            m = len(choice.landmarks.indices)
            left_out = worthwhile_heads(survey.weights, m)
            term = partial(
                values_of,
                choice.columns,
                choice.space,
                choice.space.origin(),
                survey.classes,
                costs,
                by_class="ikqd" not in left_out,
                weighted=True,
            )
            run = job.run
            rows, moments = data.keep(term, m, block_rows(run.measure, m), run.counter)
            try:
                w = weights_of(rows.weight, len(keys))
                numbers = w if costs is None else w / costs[rows.y]
                training = TrainingSet(
                    data, run, choice, priors, rows, moments, numbers, related, copies, keys
                )
                self._learn(training, left_out)
            finally:
                rows.close()
        self._warn_if_few()
        return self

    @property
    def n_held_out_(self) -> int:
        """Number of held-out training objects, or groups of them."""
        return round(self._fitted().cascade.n_seen)

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

    def _rule(self, n_objects: int, n_classes: int) -> Rule:
        """Return the landmark rule, with the number that suits all objects and the budget."""
        rule = get_rule(self.landmarks, self.n_landmarks)
        if isinstance(rule, Stratified) and rule.n_landmarks is not None and self.n_copies_:
            rule.set_params(n_landmarks=min(rule.n_landmarks, n_objects))
        elif isinstance(rule, Stratified) and rule.n_landmarks is None:
            number = default_number(n_objects, n_classes)
            if self.max_comparisons is not None:
                number = min(number, max(1, int(self.max_comparisons)))
            rule.set_params(n_landmarks=number)
        return rule

    def _learn(self, training: TrainingSet, left_out: dict[str, str]) -> None:
        """Take all looks at held-out objects, and learn the cascade from them."""
        drawn, alone = HeldOut.drawn(training)
        separator = self._separator(training.data)
        if separator is None:  # only ranks are learned from them
            alone = alone.at(np.zeros(len(alone.codes), dtype=bool))
        held_out = drawn.at(drawn.scored)
        zero, features = take_look_zero(training, held_out, alone, self.features)
        first = take_first_look(training, drawn, alone, left_out)
        looks = [first] if zero is None else [zero, first]
        second, nearest = take_second_look(
            training, held_out, alone, looks, features, self.neighbours, self.max_kept
        )
        if second is not None:
            looks.append(second)
        heads = [head for look in looks for head in look.heads.values()]
        cascade = Cascade.learn(
            [look.terms for look in looks],
            held_out.codes,
            [look.cost for look in looks],
            self.price,
            weights=held_out.score_weights,
            n_seen=held_out.n_groups,
            budget=np.inf if self.max_comparisons is None else self.max_comparisons,
        )
        worth = worth_of(looks, cascade, held_out)
        measure = training.run.measure
        model = Model(
            measure=measure,
            symmetrize=self.symmetrize,
            classes=training.data.survey().classes,
            heads=tuple(heads),  # type: ignore[arg-type]
            cascade=cascade,
            baseline=mean_values(held_out.values, measure.kind, held_out.counts),
            landmarks=training.landmarks,
            second_look=nearest.second_look,
            reference=reference_of_looks(looks, cascade, held_out, nearest, measure.kind),
            comparisons=worth.looks[-1].comparisons,
            n_objects=self.n_samples_seen_,
            feature_names=getattr(self, "feature_names_in_", None),
            ambiguous_below=self.ambiguous_below,
            novel_below=self.novel_below,
        )
        if separator is not None and len(held_out.codes):
            ranks = learn_ranks(separator, model, training, held_out, alone, looks, nearest.near)
            model = replace(model, ranks=ranks)
        self.model_ = compared_with_random(model, training.run)
        self.dropped_heads_ = tuple(map(": ".join, left_out.items()))
        self.worth_ = worth if len(held_out.codes) else None
        space = training.choice.space
        eigenvalues = signed_eigen(training.moments.gram(), space.signs).values
        self._set_fit(training.choice, space, eigenvalues, training.run.counter)

    def _separator(self, data: Dataset) -> str | None:
        """Return the sign between the ranks of the labels; None if they are not paths."""
        classes = data.survey().classes.tolist()
        return find_separator(classes) if isinstance(classes[0], str) else None

    def fit_hits(
        self,
        graph: Any,
        y: Any,
        known: Any,
        *,
        groups: Any = None,
        known_groups: Any = None,
        score: str = "",
    ) -> Self:
        """Fit to hits of labelled objects among known ones that may be other objects.

        If all objects were searched among each other, `fit` does the same.

        Parameters
        ----------
        graph : sparse matrix (n, N)
            The values of n objects with their hits among N known ones.
        y : array of n labels
        known : array of N labels
            Those of the known objects, among which new ones are searched too.
        groups : array of n groups, optional
            Hits of an object within its own group are ignored when it is held out.
        known_groups : array of N groups, optional
            The groups of the known objects, if `groups` are given.
        score : str, default=""
            The column that the values come from, if they are from a table of hits.

        Returns
        -------
        self
        """
        self._check()
        with all_or_nothing(self):
            measure = get_measure(self.measure, self.measure_params)
            rows, (n, N) = measure.check(graph), graph.shape
            y, known = check_labels(np.asarray(y), n), check_labels(np.asarray(known), N)
            classes = np.unique(known)
            kept = np.flatnonzero(np.isin(y, classes))  # others cannot be predicted
            if groups is None:
                own, others = np.arange(n), n + np.arange(N)
            else:
                both = np.concatenate([np.asarray(groups), np.asarray(known_groups)])
                own, others = np.split(np.unique(both, return_inverse=True)[1], [n])
            self._learn_from_hits(
                rows[kept],
                SearchedObjects(codes_of(y[kept], classes), own[kept], np.ones(len(kept))),
                SearchedObjects(codes_of(known, classes), others, np.ones(N)),
                measure,
                classes,
                score,
            )
        self._warn_if_few()
        return self

    def _warn_if_few(self) -> None:
        """Warn if too few objects could be held out to calibrate the answers."""
        n = self.n_held_out_
        if n < FEW_HELD_OUT:
            warnings.warn(
                f"only {n} objects, or groups of them, could be held out: probabilities, label "
                f"sets and lists are rough with fewer than {FEW_HELD_OUT}; label more objects",
                UserWarning,
                stacklevel=3,
            )

    def _fit_graph(self, data: Memory, groups: Any) -> None:
        """Learn from a graph of neighbours, in which nothing remains to be compared."""
        found, N = data.survey(), len(data)
        if data.objects.width != N:
            raise ValueError(
                f"for fit, a graph must be square, with a row and a column per object; got "
                f"{N} × {data.objects.width}"
            )
        codes = codes_of(data.labels, found.classes)
        objects = SearchedObjects(codes, check_groups(groups, N), weights_of(data.weights, N))
        self._learn_from_hits(data.objects, objects, objects, data.measure, found.classes)

    def _learn_from_hits(
        self,
        rows: GraphRows,
        objects: SearchedObjects,
        known: SearchedObjects,
        measure: Measure,
        classes: Any,
        score: str = "",
    ) -> None:
        """Learn from the hits of objects among known ones, and set the attributes of the fit."""
        if self.neighbours == 0:
            raise ValueError("neighbours=0 leaves nothing to learn from: a graph has no landmarks")
        n = len(known.codes)
        sizes = np.bincount(known.codes, known.numbers, len(classes)).astype(np.float64)
        model, self.worth_ = learn_from_hits(
            rows,
            measure,
            objects,
            known,
            classes,
            class_weights=self._class_costs(classes).weights(sizes),
            k=self.neighbours or VOTERS,
            score=score,
        )
        self.model_ = replace(
            model, ambiguous_below=self.ambiguous_below, novel_below=self.novel_below
        )
        self.dropped_heads_, self.n_copies_ = (), 0
        self.eigenvalues_, self.signature_ = np.empty(0), Signature(0, 0, n)
        self.comparisons_to_fit_, self.comparisons_reused_, self.n_samples_seen_ = 0, 0, n


def worth_of(looks: Sequence[TakenLook], cascade: Cascade, held_out: HeldOut) -> Worth:
    """Return what each head in the pool and each look is worth; no heads without objects."""
    terms, codes, weights = [look.terms for look in looks], held_out.codes, held_out.score_weights
    names, costs = [look.name for look in looks], [look.cost for look in looks]
    each = look_worth(names, cascade, terms, codes, costs, weights)
    if len(codes) == 0:
        return Worth((), each)
    heads = [name for look in looks for name in look.heads]
    with_heads = [look for look in looks if look.heads]
    opinions = [term for look in with_heads for term in look.terms]
    pool = cascade.looks[len(with_heads) - 1].weights
    return Worth(head_worth(heads, cascade, pool, opinions, codes, weights), each)


def reference_of_looks(
    looks: Sequence[TakenLook],
    cascade: Cascade,
    held_out: HeldOut,
    nearest: Nearest,
    kind: Kind,
) -> Reference:
    """Return the reference of the held-out objects, among which new ones are ranked."""
    terms, codes = [look.terms for look in looks], held_out.codes
    log_proba = cascade.held_out(terms, codes, held_out.folds, held_out.score_weights)
    scores = novelty_scores(nearest.near.at(np.arange(len(codes))).apart, kind)
    return Reference.of(scores, log_proba, codes, held_out.counts, nearest.log_sizes)


def learn_ranks(
    separator: str,
    model: Model,
    training: TrainingSet,
    held_out: HeldOut,
    alone: HeldOut,
    looks: Sequence[TakenLook],
    near: Neighbours,
) -> RankPool:
    """Learn the ranks of labels that are paths from held-out objects.

    `near` are the neighbours of the held-out objects, and of those `alone` in their class.
    """
    joined = [
        [np.concatenate(pair) for pair in zip(look.terms, look.lonely, strict=True)]
        for look in looks
    ]
    everyone, n = held_out.joined(alone), len(held_out.codes) + len(alone.codes)
    _, depth = model.cascade.run(
        n, training.n_classes, lambda k, rows: [t[rows] for t in joined[k]]
    )
    evidence = None if model.second_look is None else model.second_look.evidence
    seen, so_far = [], list[Array]()
    for added, look in zip(joined, looks, strict=True):
        if look.name == SECOND_LOOK:
            seen.append(Seen(np.arange(n), so_far, near))
        else:
            so_far = [*so_far, *added]
            seen.append(Seen(np.arange(n), so_far))
    return RankPool.learn(
        model.classes.tolist(),
        separator,
        totals_of(training.rows.y, training.numbers, training.n_classes),
        seen,
        evidence,
        everyone.codes,
        depth,
        everyone.relatives(training),
        everyone.score_weights,
    )
