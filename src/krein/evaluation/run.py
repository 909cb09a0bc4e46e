"""Cross-validation of several models: no value is computed again for another model or fold."""

from __future__ import annotations

import platform
import sys
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compare import Pairs, open_pairs
from ..core.checks import Array, Indices, check_labels
from ..core.ranks import Ranks
from ..estimators.twolooks import FittedTwoLooks
from ..measures import get_measure
from ..version import __version__
from .heldout import HeldOutLooks
from .identity import NearCopies, near_copies
from .models import Model, fresh, get_models, needs_all, title
from .overview import duplicates, object_map, spectrum
from .result import Evaluation, ModelResult, PairCount
from .split import find_groups, split_folds
from .store import PairStore, Shared

WARNED = 0.01
"""Share of objects with near copies in other folds from which on there is a warning."""


def evaluate(
    X: Any,
    y: Any,
    models: str | Iterable[str] | Mapping[str, Any] | None = None,
    *,
    measure: Any = "elm",
    measure_params: dict[str, Any] | None = None,
    landmarks: Any = None,
    n_landmarks: int | None = None,
    calibrate: bool = True,
    folds: int = 10,
    groups: Any = None,
    label_ranks: str | None = None,
    rank_above: float = 0.9,
    names: Sequence[Any] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    cache: str | PathLike[str] | None = None,
    symmetrize: bool = False,
    verbose: int = 0,
) -> Evaluation:
    """Cross-validate models on the same folds; no value is computed again for another.

    The probabilities are those that `cross_val_predict` gives for each model alone. Values that
    were compared are kept in memory: N for each object that was a landmark or in a sketch, all
    N² where a model asks for them.

    Parameters
    ----------
    X : sequence of N objects, or an N×N matrix of values
    y : array of N labels
    models : names, or a dict of names and estimators
        Those of the library: "auto" (`KreinClassifier`), "ikfd", "ikqd", "pcvm". For comparison:
        "svm-clip" (SVM on the clipped matrix, C by inner folds), "knn" (k by leave-one-out),
        "logistic" (on the values to the same kind of landmarks), and "features", which compares
        nothing: character n-grams with logistic regression for strings, gradient boosting for
        vectors and images, random convolutions with logistic regression for series. Or
        classifiers as you set them up, by
        names of your own; their measure is the one here. By default "auto", "knn" and, where the
        objects have any, "features".
    measure, measure_params, n_jobs, cache, symmetrize, verbose : as for `IKFD`
    landmarks, n_landmarks : as for `IKFD`, for models given by name; by default what each takes
    calibrate : bool, default=True
        Whether "ikfd" and "ikqd" fit a temperature.
    folds : int, default=10
        Stratified, shuffled by `random_state`.
    groups : array of N groups, or "identity:T", optional
        Objects of one group are held out together, so that no relative of a test object is learned
        from. "identity:0.4" finds the groups by the measure, at linear cost: the members of a group
        have an identity of 0.4 or more with its first. Identity is s(x, y)/√(s(x, x)·s(y, y)) for
        similarities and 1 − d(x, y)/(median of d) for dissimilarities. Without groups there is a
        warning where near copies (identity 0.9 or more) lie in different folds.
    label_ranks : str, optional
        The sign that joins the ranks of labels that are paths, as ";" in "Bacteria;Firmicutes". The
        figures are told for each rank too; the probability of a parent is the sum of its children.
    rank_above : float, default=0.9
        An answer is the deepest rank of that probability.
    names : sequence of N names, optional
        What reports call the objects; by default "row 0", "row 1", …
    random_state : int, default=0

    Returns
    -------
    Evaluation

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
    opening = {
        "measure": measure,
        "measure_params": measure_params,
        "n_jobs": n_jobs,
        "symmetrize": symmetrize,
        "verbose": verbose,
    }
    pairs = open_pairs(X=X, cache=cache, **opening)
    n = len(pairs)
    store = PairStore(pairs)
    shared = Shared(store)
    chosen = get_models(
        models,
        pairs=pairs,
        landmarks=landmarks,
        n_landmarks=n_landmarks,
        calibrate=calibrate,
        random_state=random_state,
        opening={"measure": shared, "measure_params": None, "n_jobs": n_jobs, "verbose": verbose},
    )
    labels = check_labels(np.asarray(y), n)
    classes, codes = np.unique(labels, return_inverse=True)
    if label_ranks is not None:
        Ranks.of([str(name) for name in classes.tolist()], label_ranks)  # before the work
    called = _names(names, n)
    grouped = find_groups(groups, pairs, codes, random_state)
    split = split_folds(classes, codes, folds, random_state, grouped)
    everyone = np.arange(n)
    among_all = Pairs(shared, everyone, n_jobs=pairs.workers, verbose=verbose)
    everything = store.given or any(needs_all(model) for model in chosen.values())
    if everything and not store.given:
        among_all.block(everyone, everyone)
    results = {}
    for name, model in chosen.items():
        parts = _cross_validate(name, model, store, labels, split, random_state, verbose)
        results[name] = ModelResult(
            name=name, title=title(model), classes=classes, labels=labels, folds=split, **parts
        )
    rate = _seconds(store) / max(store.compared, 1)
    for result in results.values():  # at the rate of all: who came first paid for the others
        result.seconds["compare"] *= 0.0 if store.given else rate
    ranked = sorted(results.values(), key=lambda model: float(model.fold_log_loss.mean()))
    found = spectrum(among_all, everything, random_state)
    whose, chosen_landmarks = _map_landmarks(ranked, n, random_state)
    mapped = object_map(among_all, chosen_landmarks, ~ranked[0].right, random_state, whose)
    copies = near_copies(pairs, among_all, split, chosen_landmarks, everything, random_state)
    _warn_of_copies(copies)
    compared = 0 if store.given else store.compared
    return Evaluation(
        names=called,
        labels=labels,
        classes=classes,
        folds=split,
        models=results,
        pairs=PairCount(compared, pairs.counter.reused, _seconds(store), given=store.given),
        spectrum=found,
        duplicates=duplicates(pairs.objects, codes),
        map=mapped,
        groups=grouped,
        ranks=None if label_ranks is None else (label_ranks, rank_above),
        near_copies=copies,
        settings={
            "measure": _measure_name(measure, measure_params),
            "measure_params": {k: str(v) for k, v in (measure_params or {}).items()},
            "landmarks": str(landmarks),
            "n_landmarks": n_landmarks,
            "folds": folds,
            "groups": groups if isinstance(groups, str) or groups is None else "given",
            "random_state": random_state,
            "symmetrize": symmetrize,
            "versions": _versions(),
        },
    )


def _seconds(store: PairStore) -> float:
    """Return about how long comparing took: threads share it."""
    return 0.0 if store.given else store.seconds / store.pairs.workers


def _cross_validate(
    name: str,
    model: Model,
    store: PairStore,
    labels: NDArray[Any],
    split: Indices,
    seed: int,
    verbose: int,
) -> dict[str, Any]:
    classes, codes = np.unique(labels, return_inverse=True)
    P: Array = np.full((len(labels), len(classes)), np.nan)
    held_out = HeldOutLooks(store, codes, len(classes), seed)
    fitted, landmarks, per_prediction, curve = [], [], [], None
    seconds = {"compare": 0.0, "fit": 0.0, "predict": 0.0}  # compare: pairs first, then seconds
    for fold in range(int(split.max()) + 1):
        train, test = np.flatnonzero(split != fold), np.flatnonzero(split == fold)
        one = fresh(model)
        start, before = time.perf_counter(), _seconds(store)
        one.fit(train, labels[train])
        middle, between = time.perf_counter(), _seconds(store)
        P[test] = one.predict_proba(test)
        seconds["fit"] += max(middle - start - (between - before), 0.0)
        seconds["predict"] += max(time.perf_counter() - middle - (_seconds(store) - between), 0.0)
        fitted.append(one.kernel_evaluations_)
        landmarks.append(train[one.landmarks_])
        # a model that looks again where it is unsure says what a prediction cost on average
        per_prediction.append(float(getattr(one, "comparisons_", len(one.landmarks_))))
        seconds["compare"] += one.kernel_evaluations_ + len(test) * per_prediction[-1]
        if fold == 0 and hasattr(one, "selection_"):
            curve = one.selection_.details.get("curve")
        if isinstance(one, FittedTwoLooks):
            held_out.add(one, train, test, P[test])
    if verbose:
        right = np.mean(P.argmax(axis=1) == codes)
        print(f"{name}: {100 * right:.1f} % right", file=sys.stderr)
    return {
        "probabilities": P,
        "evaluations": round(float(np.mean(fitted))),
        "comparisons": float(np.mean(per_prediction)),
        "seconds": seconds,
        "landmarks": landmarks,
        "curve": curve,
        **held_out.found(),
    }


def _warn_of_copies(copies: NearCopies | None) -> None:
    if copies is None or copies.share < WARNED:
        return
    warnings.warn(
        f"{100 * copies.share:.0f} % of the objects have a near copy (identity {copies.threshold} "
        "or more) in another fold, so new objects may be labelled worse than these figures say; "
        f"keep copies together with groups='identity:{copies.threshold}' (--groups identity:"
        f"{copies.threshold}) or groups of your own",
        stacklevel=3,
    )


def _names(names: Sequence[Any] | None, n: int) -> list[str]:
    if names is None:
        return [f"row {i}" for i in range(n)]
    if len(names) != n:
        raise ValueError(f"{len(names)} names for {n} objects")
    return [str(name) for name in names]


def _map_landmarks(ranked: list[ModelResult], n: int, seed: int) -> tuple[str | None, Indices]:
    """Return the landmarks of the map: the first fold's of the best model that has few of them.

    Their columns are there already. Where every model looks at all objects, a random sample.
    """
    for model in ranked:
        if 0 < len(model.landmarks[0]) < n // 2:
            return model.name, model.landmarks[0]
    return None, np.sort(np.random.default_rng(seed).choice(n, min(n, 200), replace=False))


def _measure_name(measure: Any, params: dict[str, Any] | None) -> str:
    if isinstance(measure, str):
        return measure
    return str(getattr(measure, "__name__", None) or get_measure(measure, params).name)


def _versions() -> dict[str, str]:
    import scipy
    import sklearn

    return {
        "krein": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
