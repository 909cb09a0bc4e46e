"""Evaluation in three steps: plan the folds, fit the models fold by fold, describe the results.

Each pair is compared once, for all models and folds.
"""

from __future__ import annotations

import platform
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compare import open_pairs
from ..core.ranks import Rank, Ranks, check_answer_probability
from ..core.shapes import Array, Indices
from ..estimators.krein import KreinClassifier
from ..measures import take
from ..version import __version__
from ..wording import parameter
from .groups import NearCopies, keep_together, near_copies
from .heldout import TwoLookResults, mean_worth
from .plan import (
    Contender,
    Plan,
    fresh,
    get_models,
    name_models,
    needs_all,
    plan_folds,
    plan_test,
    takes_groups,
    title,
)
from .result import (
    AnswersByRank,
    Evaluation,
    ModelResult,
    PairCount,
    RankOnly,
    duplicates,
    object_map,
    spectrum,
)
from .store import PairStore, Shared

WARNED = 0.01
"""Warn if at least this share of the objects has near-duplicates in other folds."""


def evaluate(
    X: Any,
    y: Any,
    models: str | Iterable[str] | Mapping[str, Any] | None = None,
    *,
    measure: Any,
    measure_params: dict[str, Any] | None = None,
    landmarks: Any = None,
    n_landmarks: int | None = None,
    calibrate: bool = True,
    folds: int = 10,
    groups: Any = None,
    test: tuple[Any, Any] | None = None,
    class_weight: str | None = None,
    label_ranks: str | None = None,
    rank_above: float = 0.9,
    names: Sequence[Any] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    cache: str | PathLike[str] | None = None,
    symmetrize: bool = False,
    verbose: int | None = None,
) -> Evaluation:
    """Cross-validate models on the same folds, comparing each pair once.

    The probabilities are those that `cross_val_predict` gives for each model alone. Values are kept
    in memory: N for each object that was a landmark or in a sketch, and all N² if a model needs
    them.

    Parameters
    ----------
    X : sequence of N objects, or an N×N matrix of values
    y : array of N labels
    models : names, or a dict of names and estimators
        Models of the library: "krein" (`KreinClassifier`), "ikfd", "ikqd", "pcvm". Baselines:
        "svm-clip" (SVM on the clipped matrix, C by inner folds), "knn" (k by leave-one-out),
        "logistic" (on the values to the same kind of landmarks), and "features", which makes no
        comparisons: character n-grams with logistic regression for strings, gradient boosting for
        vectors and images, convolutions with logistic regression for series. Or a dict of
        your own classifiers by name; their measure is replaced by `measure`. Default: "krein",
        "knn" and, if the objects have features, "features".
    measure : str, Measure or callable
        How two objects are compared, for all models: a name from `krein.measures.available()`, a
        `Measure`, a function of two objects, or "precomputed" / "precomputed-distance".
    measure_params : dict or None, default=None
        Parameters of a measure given by name.
    landmarks : str, Rule or None, default=None
        How models given by name choose landmarks; None uses the default of each.
    n_landmarks : int or None, default=None
        Number of landmarks, for rules that take one.
    calibrate : bool, default=True
        Whether to calibrate "ikfd" and "ikqd".
    folds : int, default=10
        Number of folds; stratified, and shuffled with `random_state`.
    groups : array of N groups, "identity:T" or "cdr3:T", optional
        Objects of a group are held out together, so that no relative of a test object is in the
        training set. "identity:0.4" finds the groups by the measure, at linear cost: the members of
        a group have an identity of at least 0.4 with its first. Identity is s(x, y)/√(s(x, x)·s(y,
        y)) for similarities and 1 − d(x, y)/(median of d) for dissimilarities. "cdr3:0.8" is for
        T-cell receptors: those with at least 80 % identical letters in their CDR3s are in the same
        group (`krein.measures.tcr.cdr3_groups`), at quadratic cost. Without groups, a warning is
        raised if near-duplicates (identity of at least 0.9) are in different folds.
    test : tuple of objects and labels, optional
        Test objects: models are fitted once to X and y, and all results are those of the test
        objects, as for a published split. `folds` and `groups` are not used, and `names` are those
        of the test objects. Not for a precomputed matrix. Test objects of other classes than those
        of y are an error, except with `label_ranks`.
    class_weight : "balanced" or None, default=None
        "balanced" makes an error cost more in a class with fewer objects. Models that take no
        weights are fitted without, and a warning names them.
    label_ranks : str, optional
        Separator of hierarchical labels, such as ";" in "Bacteria;Firmicutes". Figures are then
        also reported for each rank. "krein" learns each rank; for other models, and for separators
        that it does not recognise, the probability of a parent is the sum of its children's. An
        object counts at the ranks that its label has. One whose class has no training object, when
        it is held out, is scored by rank only.
    rank_above : float, default=0.9
        An answer is the deepest rank with at least this probability.
    names : sequence of N names, optional
        Names of the objects in reports; default: "row 0", "row 1", …
    random_state : int, default=0
        Seed for the folds and the models.
    n_jobs : int or None, default=None
        Number of workers that compare pairs. None uses all processors for measures that release
        Python's lock, and one process for a plain function.
    cache : path or None, default=None
        Folder for finished blocks of comparisons, so that an interrupted run can resume.
    symmetrize : bool, default=False
        Average both directions of a measure or matrix that is not symmetric.
    verbose : int or None, default=None
        If standard error is a terminal, None shows a progress bar for work that takes longer than
        two seconds, 1 always shows one, and 0 never does. If it is not, 1 announces how many pairs
        will be compared, and about how long it will take, if that is longer than ten seconds.

    Returns
    -------
    Evaluation
        Probabilities, figures and an overview of the objects.

    See Also
    --------
    krein.report.write_report : Write the result as an HTML report.

    Examples
    --------
    >>> from krein.evaluation import evaluate
    >>> stems = ["house", "mouse", "horse", "haus", "maus", "ross"]
    >>> words = [stem + end for end in ("", "s", "ly", "ing") for stem in stems]
    >>> found = evaluate(words, ["en", "en", "en", "de", "de", "de"] * 4, ["ikfd", "knn"],
    ...                  measure="levenshtein", folds=4)
    >>> found.models["knn"].fold_accuracy.mean().item()
    1.0
    >>> found.summary()["objects"]
    24
    """
    opening = {"n_jobs": n_jobs, "verbose": verbose}
    pairs = open_pairs(
        measure,
        X if test is None else [*test[0], *X],
        measure_params=measure_params,
        symmetrize=symmetrize,
        cache=cache,
        **opening,
    )
    named, ranked = name_models(models, pairs), label_ranks is not None
    if test is None:
        plan = plan_folds(
            pairs, y, names=names, folds=folds, groups=groups, ranked=ranked, seed=random_state
        )
    elif groups is not None:
        raise ValueError("groups divide objects into folds; with test objects, there are none")
    else:
        plan = plan_test(pairs, y, test[1], names=names, ranked=ranked)
    hierarchy = None if label_ranks is None else (label_ranks, rank_above)
    if hierarchy is not None:
        _check_ranks(plan, *hierarchy)  # before the work
    pairs = pairs if plan.order is None else pairs.part(plan.order)
    store = PairStore(pairs)
    settings = {"landmarks": landmarks, "n_landmarks": n_landmarks, "random_state": random_state}
    chosen = get_models(
        named,
        pairs=pairs,
        settings={"calibrate": calibrate, **settings},
        opening={"measure": Shared(store), "measure_params": None, **opening},
    )
    results = run(plan, store, chosen, random_state, class_weight, verbose, hierarchy)
    called = measure if isinstance(measure, str) else getattr(measure, "__name__", None)
    return describe(
        plan,
        store,
        results,
        seed=random_state,
        ranks=hierarchy,
        settings={
            "measure": called or pairs.measure.title,
            "measure_params": {k: str(v) for k, v in (measure_params or {}).items()},
            **settings,
            "landmarks": None if landmarks is None else str(landmarks),
            "folds": plan.n_folds,
            "class_weight": class_weight,
            "groups": groups if isinstance(groups, str) or groups is None else "given",
            "symmetrize": symmetrize,
            "versions": {
                "krein": __version__,
                "python": platform.python_version(),
                **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
            },
        },
    )


def _check_ranks(plan: Plan, separator: str, above: float) -> None:
    """Refuse labels without ranks, and a probability that two answers may reach."""
    ranks = Ranks.of([str(label) for label in np.unique(plan.labels).tolist()], separator)
    check_answer_probability(above)
    if len(ranks) == 1:
        raise ValueError(f"{parameter('label_ranks', repr(separator))}: no label contains it")


# Run: each model, fold by fold


def run(
    plan: Plan,
    store: PairStore,
    models: dict[str, Contender],
    seed: int,
    class_weight: str | None,
    verbose: int | None,
    ranks: tuple[str, float] | None = None,
) -> dict[str, ModelResult]:
    """Return the results of each model."""
    if not store.given and any(needs_all(model) for model in models.values()):
        store.compare_all()
    results = {}
    for name, model in models.items():
        weighted = class_weight if hasattr(model, "class_weight") else None
        if class_weight is not None and weighted is None:
            warnings.warn(f"{name} takes no class weights, and is fitted without", stacklevel=3)
        results[name] = cross_validate(name, model, plan, store, seed, weighted, ranks)
        if verbose and sys.stderr.isatty():
            right = results[name].right.mean()
            print(f"{name}: {100 * right:.1f} % correct", file=sys.stderr)
    rate = store.wall_seconds / max(store.compared, 1)
    for result in results.values():  # at the average rate, regardless of the order of the models
        result.seconds["compare"] *= rate
    return results


@dataclass(frozen=True)
class _Fold:
    """A model that was fitted without the objects of a fold, and its answers about them."""

    model: Contender
    train: Indices
    test: Indices
    learned: Indices  # (C,): the classes of its training objects
    probabilities: Array  # (n, C): of the test objects
    by_rank: NDArray[Any] | None  # (n,): answers of `assess`, if the model has learned the ranks
    seconds_to_fit: float
    seconds_to_predict: float

    @property
    def comparisons(self) -> float:
        """Comparisons per prediction: with a second look, their mean number."""
        return float(getattr(self.model, "comparisons_", len(self.model.landmarks_)))


def _each_fold(
    model: Contender,
    plan: Plan,
    store: PairStore | None,
    class_weight: str | None,
    separator: str | None,
) -> Iterator[_Fold]:
    """Fit a copy of the model without the objects of each fold in turn."""

    def elapsed() -> float:
        """Return the time so far, without that spent on comparisons, which all models share."""
        return time.perf_counter() - (0.0 if store is None else store.wall_seconds)

    codes = plan.codes
    for fold in range(plan.n_folds):
        train, test = np.flatnonzero(plan.folds != fold), np.flatnonzero(plan.folds == fold)
        one, held = fresh(model), {}
        if class_weight is not None:
            one.set_params(class_weight=class_weight)
        if plan.groups is not None and takes_groups(one):  # as in a fit with these groups
            held = {"groups": plan.groups[train]}
        start = elapsed()
        one.fit(train, plan.labels[train], **held)
        middle = elapsed()
        pool, assessed = one.model_.ranks if isinstance(one, KreinClassifier) else None, None
        if separator is not None and pool is not None and pool.separator == separator:
            assessed = one.assess(test, ranks=True)
        P = one.predict_proba(test) if assessed is None else assessed["probabilities"]
        fitting, predicting = max(middle - start, 0.0), max(elapsed() - middle, 0.0)
        learned = np.unique(codes[train])
        yield _Fold(one, train, test, learned, P, assessed, fitting, predicting)


def cross_validate(
    name: str,
    model: Contender,
    plan: Plan,
    store: PairStore | None,
    seed: int,
    class_weight: str | None = None,
    ranks: tuple[str, float] | None = None,
) -> ModelResult:
    """Return the results of one model; in `seconds`, "compare" is still the number of pairs.

    Without a store, nothing is compared.
    """
    labels, classes, n = plan.labels, plan.classes, plan.n_scored
    held_out = int((plan.folds >= 0).sum())
    separator, above = (None, 0.0) if ranks is None else ranks
    tree = [] if separator is None else Rank.each([str(one) for one in classes], separator)
    P: Array = np.zeros((held_out, len(classes)))
    two_looks = None if store is None else TwoLookResults(store, plan.codes, seed)
    stated: list[tuple[Indices, AnswersByRank]] = []
    fitted, landmarks, per_prediction, worths, curve = [], [], [], [], None
    seconds = {"compare": 0.0, "fit": 0.0, "predict": 0.0}
    for fold in _each_fold(model, plan, store, class_weight, separator):
        one, test = fold.model, fold.test
        P[np.ix_(test, fold.learned)] = fold.probabilities
        if fold.by_rank is not None:
            stated.append((test, AnswersByRank.of_model(one.model_, fold.by_rank, tree, above)))
        fitted.append(one.comparisons_to_fit_)
        landmarks.append(fold.train[one.landmarks_])
        per_prediction.append(fold.comparisons)
        seconds["compare"] += one.comparisons_to_fit_ + len(test) * fold.comparisons
        seconds["fit"] += fold.seconds_to_fit
        seconds["predict"] += fold.seconds_to_predict
        if len(fitted) == 1 and hasattr(one, "selection_"):
            curve = one.selection_.details.get("curve")
        if two_looks is not None and isinstance(one, KreinClassifier):
            scored = test[test < n]
            two_looks.add(one.model_, fold.train, scored, P[scored])
            worths += [] if one.worth_ is None else [one.worth_]
        del fold, one  # a model may keep N² values, which the next fit needs
    found = {} if two_looks is None else two_looks.found()
    if held_out < len(labels):  # the nearest objects are training objects, which are not reported
        found["suspect_labels"] = []
    return ModelResult(
        name=name,
        title=title(model),
        classes=classes,
        labels=labels[:n],
        folds=plan.folds[:n],
        probabilities=P[:n],
        learned_ranks=AnswersByRank.joined(stated) if len(stated) == plan.n_folds else None,
        rank_only=RankOnly(labels[n:held_out], plan.folds[n:held_out], P[n:]),
        evaluations=round(float(np.mean(fitted))),
        comparisons=float(np.mean(per_prediction)),
        seconds=seconds,
        landmarks=landmarks,
        curve=curve,
        worth=mean_worth(worths),
        **found,
    )


# Describe: the results, with an overview of the objects


def describe(
    plan: Plan,
    store: PairStore,
    models: dict[str, ModelResult],
    *,
    seed: int,
    ranks: tuple[str, float] | None,
    settings: dict[str, Any],
) -> Evaluation:
    """Return the results of the models, with the eigenvalues, a map, duplicates and relatives."""
    pairs, n = store.among_all(), plan.n_scored
    objects = take(store.pairs.objects, slice(0, n))
    best_first = sorted(models.values(), key=lambda model: float(model.fold_log_loss.mean()))
    whose, landmarks = _map_landmarks(best_first, len(pairs), seed)
    eigenvalues = spectrum(pairs, store.complete, seed)
    mapped = object_map(pairs, landmarks, ~best_first[0].right, seed, whose, n)
    copies = None
    if plan.n_folds > 1:
        copies = near_copies(store.pairs, pairs, plan.folds, landmarks, store.complete, seed)
        _warn_of_copies(copies, settings["groups"])
    return Evaluation(
        names=plan.names,
        labels=plan.labels[:n],
        classes=plan.classes,
        folds=plan.folds[:n],
        models=models,
        pairs=PairCount(
            len(pairs) ** 2,
            store.compared,
            store.pairs.counter.reused,
            store.wall_seconds,
            store.given,
        ),
        spectrum=eigenvalues,
        duplicates=duplicates(objects, plan.codes[:n]),
        map=mapped,
        settings=settings,
        groups=plan.groups,
        ranks=ranks,
        near_copies=copies,
        n_train=None if plan.n_folds > 1 else int((plan.folds < 0).sum()),
        texts=list(objects) if all(isinstance(one, str) for one in objects) else None,
    )


def _map_landmarks(best_first: list[ModelResult], n: int, seed: int) -> tuple[str | None, Indices]:
    """Return the landmarks for the map: those of the best model with few of them, in the first
    fold.

    Their columns are known already. If every model uses all objects, return a random sample.
    """
    for model in best_first:
        if 0 < len(model.landmarks[0]) < n // 2:
            return model.name, model.landmarks[0]
    return None, np.sort(np.random.default_rng(seed).choice(n, min(n, 200), replace=False))


def _warn_of_copies(copies: NearCopies | None, groups: str | None) -> None:
    """Warn of relatives in different folds, and say what keeps them together."""
    if copies is None or copies.share < WARNED:
        return
    told = (
        f"{100 * copies.share:.0f} % of the objects have a near-duplicate (identity "
        f"{copies.threshold} or more) in another fold, so accuracy on new objects may be lower "
        f"than these figures"
    )
    warnings.warn(f"{told}; {keep_together(copies, groups)}", stacklevel=4)
