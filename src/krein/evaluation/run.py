"""Cross-validation of several models: each pair is compared once, for all models and folds."""

from __future__ import annotations

import platform
import sys
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from ..compare import Pairs, open_pairs
from ..core.ranks import Ranks
from ..core.shapes import Array, Indices
from ..data.dataset import check_labels
from ..estimators.krein import KreinClassifier
from ..measures import take
from ..version import __version__
from .baselines import Baseline
from .groups import find_groups, groups_per_class, near_copies, split_folds
from .heldout import TwoLookResults, mean_worth
from .models import Model, fresh, get_models, needs_all, title
from .result import Evaluation, ModelResult, PairCount, duplicates, object_map, spectrum
from .store import PairStore, Shared

NAMED = 5
"""Number of classes that a warning names."""

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
        vectors and images, random convolutions with logistic regression for series. Or a dict of
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
        of the test objects. Not for a precomputed matrix.
    class_weight : "balanced" or None, default=None
        "balanced" makes an error cost more in a class with fewer objects. Models that take no
        weights are fitted without, and a warning names them.
    label_ranks : str, optional
        Separator of hierarchical labels, such as ";" in "Bacteria;Firmicutes". Figures are then
        also reported for each rank; the probability of a parent is the sum of its children's.
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
    n_test = None
    if test is not None:
        X, y, n_test = _joined_test(X, y, test, groups)
    comparing: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose}
    options = {"measure_params": measure_params, "symmetrize": symmetrize, **comparing}
    pairs = open_pairs(measure, X, cache=cache, **options)
    n = len(pairs)
    store = PairStore(pairs)
    if n_test is not None and store.given:
        raise ValueError("test objects cannot be given for a matrix of values: use folds")
    shared = Shared(store)
    settings = {"landmarks": landmarks, "n_landmarks": n_landmarks, "random_state": random_state}
    chosen = get_models(
        models,
        pairs=pairs,
        settings={"calibrate": calibrate, **settings},
        opening={"measure": shared, "measure_params": None, **comparing},
    )
    labels = check_labels(np.asarray(y), n)
    classes, codes = np.unique(labels, return_inverse=True)
    if label_ranks is not None:
        Ranks.of([str(name) for name in classes.tolist()], label_ranks)  # before the work
    shown = n if n_test is None else n_test
    if names is not None and len(names) != shown:
        raise ValueError(f"{len(names)} names for {shown} objects")
    grouped = find_groups(groups, pairs, codes, random_state)
    alone = np.zeros(len(classes), dtype=bool)
    if grouped is not None:
        alone = groups_per_class(codes, grouped) < 2
    if grouped is not None and alone.any() and (~alone).sum() > 1:
        keep = np.flatnonzero(~alone[codes])
        _warn_of_classes(classes[alone], len(labels) - len(keep))
        some = _rows(X, keep, given=store.given)
        again: dict[str, Any] = {**options, **settings, "cache": cache, "calibrate": calibrate}
        return evaluate(
            some,
            labels[keep],
            models,
            measure=measure,
            folds=folds,
            groups=grouped[keep],
            label_ranks=label_ranks,
            rank_above=rank_above,
            names=[f"row {i}" for i in keep]
            if names is None
            else [names[i] for i in keep.tolist()],
            class_weight=class_weight,
            **again,
        )
    if n_test is None:
        split = split_folds(classes, codes, folds, random_state, grouped)
    else:
        split = np.where(np.arange(n) < n_test, 0, -1)  # a single fold; the others are training
    everyone = np.arange(n)
    among_all = Pairs(shared, everyone, n_jobs=pairs.workers, verbose=verbose)
    everything = store.given or any(needs_all(model) for model in chosen.values())
    if everything and not store.given:
        among_all.block(everyone, everyone)
    results = {}
    for name, model in chosen.items():
        weighted = class_weight if hasattr(model, "class_weight") else None
        if class_weight is not None and weighted is None:
            warnings.warn(f"{name} takes no class weights, and is fitted without", stacklevel=2)
        results[name] = _cross_validate(
            name, model, store, labels, split, random_state, weighted, grouped
        )
        if verbose and sys.stderr.isatty():
            right = results[name].right.mean()
            print(f"{name}: {100 * right:.1f} % correct", file=sys.stderr)
    rate = store.wall_seconds / max(store.compared, 1)
    for result in results.values():  # at the average rate, regardless of the order of the models
        result.seconds["compare"] *= rate
    ranked = sorted(results.values(), key=lambda model: float(model.fold_log_loss.mean()))
    found = spectrum(among_all, everything, random_state)
    whose, of_map = _map_landmarks(ranked, n, random_state)
    mapped = object_map(among_all, of_map, ~ranked[0].right, random_state, whose, shown)
    copies = None
    if n_test is None:
        copies = near_copies(pairs, among_all, split, of_map, everything, random_state)
    if copies is not None and copies.share >= WARNED:
        warnings.warn(
            f"{100 * copies.share:.0f} % of the objects have a near-duplicate (identity "
            f"{copies.threshold} or more) in another fold, so accuracy on new objects may be lower "
            f"than these figures; keep duplicates together with groups='identity:"
            f"{copies.threshold}' (--groups identity:{copies.threshold}) or your own groups",
            stacklevel=2,
        )
    called = measure if isinstance(measure, str) else getattr(measure, "__name__", None)
    return Evaluation(
        names=[f"row {i}" for i in range(shown)] if names is None else list(map(str, names)),
        labels=labels[:shown],
        classes=classes,
        folds=split[:shown],
        models=results,
        pairs=PairCount(store.compared, pairs.counter.reused, store.wall_seconds, store.given),
        spectrum=found,
        duplicates=duplicates(take(pairs.objects, slice(0, shown)), codes[:shown]),
        map=mapped,
        groups=grouped,
        ranks=None if label_ranks is None else (label_ranks, rank_above),
        near_copies=copies,
        n_train=None if n_test is None else n - n_test,
        settings={
            "measure": called or pairs.measure.title,
            "measure_params": {k: str(v) for k, v in (measure_params or {}).items()},
            **settings,
            "landmarks": None if landmarks is None else str(landmarks),
            "folds": folds if n_test is None else 1,
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


def _joined_test(
    X: Any, y: Any, test: tuple[Any, Any], groups: Any
) -> tuple[list[Any], NDArray[Any], int]:
    """Return test and training objects in one list, with their labels, and the number of the first.

    Test objects of classes that the training data lack are an error.
    """
    if groups is not None:
        raise ValueError("groups divide objects into folds; with test objects, there are none")
    new, known = (
        check_labels(np.asarray(test[1]), len(test[0])),
        check_labels(np.asarray(y), len(X)),
    )
    unseen = np.setdiff1d(new, known)
    if len(unseen):
        n = int(np.isin(new, unseen).sum())
        raise ValueError(
            f"{n:,} of {len(new):,} test objects belong to classes without training objects, such "
            f"as {unseen.tolist()[0]!r}: leave them out"
        )
    return [*test[0], *X], np.concatenate([new, known]), len(new)


def _warn_of_classes(alone: NDArray[Any], n: int) -> None:
    named = ", ".join(str(name) for name in alone[:NAMED].tolist())
    more = f" and {len(alone) - NAMED:,} more" if len(alone) > NAMED else ""
    warnings.warn(
        f"left out {len(alone):,} of the classes ({n:,} objects), because all objects of such a "
        f"class are in one group, so that it cannot be used for training and for testing: "
        f"{named}{more}; use smaller groups to keep them",
        stacklevel=3,
    )


def _rows(X: Any, keep: Indices, given: bool) -> Any:
    """Return some of the objects, or the matrix of their values."""
    if given:
        return np.asarray(X)[np.ix_(keep, keep)]
    return take(X, keep) if isinstance(X, list | tuple | np.ndarray) else _safe_indexing(X, keep)


def _cross_validate(
    name: str,
    model: Model,
    store: PairStore,
    labels: NDArray[Any],
    split: Indices,
    seed: int,
    class_weight: str | None = None,
    groups: Indices | None = None,
) -> ModelResult:
    """Return the results of one model; in `seconds`, "compare" is still the number of pairs.

    Objects in the fold −1 are in all training sets, and come after the others.
    """
    classes, codes = np.unique(labels, return_inverse=True)
    P: Array = np.full((len(labels), len(classes)), np.nan)
    two_looks = TwoLookResults(store, codes, len(classes), seed)
    fitted, landmarks, per_prediction, worths, curve = [], [], [], [], None
    seconds = {"compare": 0.0, "fit": 0.0, "predict": 0.0}
    for fold in range(int(split.max()) + 1):
        train, test = np.flatnonzero(split != fold), np.flatnonzero(split == fold)
        one = fresh(model)
        start, before = time.perf_counter(), store.wall_seconds
        if class_weight is not None:
            one.set_params(class_weight=class_weight)
        held = {}  # as in a fit with these groups
        if groups is not None and not isinstance(one, Baseline):
            held = {"groups": groups[train]} if getattr(one, "calibrate", True) else {}
        one.fit(train, labels[train], **held)
        middle, between = time.perf_counter(), store.wall_seconds
        P[test] = one.predict_proba(test)
        seconds["fit"] += max(middle - start - (between - before), 0.0)
        rest = store.wall_seconds - between
        seconds["predict"] += max(time.perf_counter() - middle - rest, 0.0)
        fitted.append(one.comparisons_to_fit_)
        landmarks.append(train[one.landmarks_])
        # a model with a second look reports its mean number of comparisons per prediction
        per_prediction.append(float(getattr(one, "comparisons_", len(one.landmarks_))))
        seconds["compare"] += one.comparisons_to_fit_ + len(test) * per_prediction[-1]
        if fold == 0 and hasattr(one, "selection_"):
            curve = one.selection_.details.get("curve")
        if isinstance(one, KreinClassifier):
            two_looks.add(one.model_, train, test, P[test])
            worths += [] if one.worth_ is None else [one.worth_]
    tested, found = split >= 0, two_looks.found()
    if not tested.all():  # the nearest objects are training objects, which are not reported
        found["suspect_labels"] = []
    return ModelResult(
        name=name,
        title=title(model),
        classes=classes,
        labels=labels[tested],
        folds=split[tested],
        probabilities=P[tested],
        evaluations=round(float(np.mean(fitted))),
        comparisons=float(np.mean(per_prediction)),
        seconds=seconds,
        landmarks=landmarks,
        curve=curve,
        worth=mean_worth(worths),
        **found,
    )


def _map_landmarks(ranked: list[ModelResult], n: int, seed: int) -> tuple[str | None, Indices]:
    """Return the landmarks for the map: those of the best model with few of them, in the first
    fold.

    Their columns are known already. If every model uses all objects, return a random sample.
    """
    for model in ranked:
        if 0 < len(model.landmarks[0]) < n // 2:
            return model.name, model.landmarks[0]
    return None, np.sort(np.random.default_rng(seed).choice(n, min(n, 200), replace=False))
