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
from ..measures import get_measure
from ..version import __version__
from .models import Model, fresh, get_models, needs_all, title
from .overview import duplicates, object_map, spectrum
from .result import Evaluation, ModelResult, PairCount
from .store import PairStore, Shared


def evaluate(
    X: Any,
    y: Any,
    models: str | Iterable[str] | Mapping[str, Any] = ("ikfd", "pcvm"),
    *,
    measure: Any = "elm",
    measure_params: dict[str, Any] | None = None,
    landmarks: Any = "meb",
    n_landmarks: int | None = None,
    calibrate: bool = True,
    folds: int = 10,
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
        "ikfd", "ikqd", "pcvm"; "svm-clip" (SVM on the clipped matrix, C by inner folds), "knn"
        (k by leave-one-out), "logistic" (on the values to the same kind of landmarks). Or IKFD,
        IKQD and PCVM as you set them up, by names of your own; their measure is the one here.
    measure, measure_params, n_jobs, cache, symmetrize, verbose : as for `IKFD`
    landmarks, n_landmarks : as for `IKFD`, for models given by name
    calibrate : bool, default=True
        Whether "ikfd" and "ikqd" fit a temperature.
    folds : int, default=10
        Stratified, shuffled by `random_state`.
    names : sequence of N names, optional
        What reports call the objects; by default "row 0", "row 1", …
    random_state : int, default=0

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> from krein.evaluation import evaluate
    >>> words = ["house", "mouse", "horse", "haus", "maus", "ross"] * 4
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
        landmarks=landmarks,
        n_landmarks=n_landmarks,
        calibrate=calibrate,
        random_state=random_state,
        opening={"measure": shared, "measure_params": None, "n_jobs": n_jobs, "verbose": verbose},
    )
    labels = check_labels(np.asarray(y), n)
    classes, codes = np.unique(labels, return_inverse=True)
    called = _names(names, n)
    split = _split(classes, codes, folds, random_state)
    everyone = np.arange(n)
    among_all = Pairs(shared, everyone, n_jobs=pairs.workers, verbose=verbose)
    everything = store.given or any(needs_all(model) for model in chosen.values())
    if everything and not store.given:
        among_all.block(everyone, everyone)
    results = {}
    for name, model in chosen.items():
        parts = _cross_validate(name, model, store, labels, split, len(classes), verbose)
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
        settings={
            "measure": _measure_name(measure, measure_params),
            "measure_params": {k: str(v) for k, v in (measure_params or {}).items()},
            "landmarks": str(landmarks),
            "n_landmarks": n_landmarks,
            "folds": folds,
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
    n_classes: int,
    verbose: int,
) -> dict[str, Any]:
    P: Array = np.full((len(labels), n_classes), np.nan)
    fitted, landmarks, curve = [], [], None
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
        seconds["compare"] += one.kernel_evaluations_ + len(test) * len(one.landmarks_)
        if fold == 0 and hasattr(one, "selection_"):
            curve = one.selection_.details.get("curve")
    if verbose:
        right = np.mean(np.unique(labels)[P.argmax(axis=1)] == labels)
        print(f"{name}: {100 * right:.1f} % right", file=sys.stderr)
    return {
        "probabilities": P,
        "evaluations": round(float(np.mean(fitted))),
        "comparisons": float(np.mean([len(part) for part in landmarks])),
        "seconds": seconds,
        "landmarks": landmarks,
        "curve": curve,
    }


def _split(classes: NDArray[Any], codes: Indices, folds: int, seed: int) -> Indices:
    """Return the fold of each object; every class is in every training set."""
    from sklearn.model_selection import StratifiedKFold

    counts = np.bincount(codes)
    if len(counts) < 2:
        raise ValueError(f"two classes or more are needed; y holds one: {classes.tolist()[0]!r}")
    if counts.min() < 2:
        alone = classes.tolist()[counts.argmin()]
        row = int(np.flatnonzero(codes == counts.argmin())[0])
        raise ValueError(
            f"class {alone!r} has one object (row {row}): it cannot be learned from and tested on; "
            "leave it out, or join the class to another"
        )
    if not 2 <= folds <= counts.max():
        raise ValueError(
            f"folds={folds}: it must be 2 or more, and at most the size of the largest class, "
            f"{counts.max()}"
        )
    split = np.empty(len(codes), dtype=np.intp)
    with warnings.catch_warnings():
        # a class smaller than the number of folds is missing from some tests, from no training
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        cut = StratifiedKFold(folds, shuffle=True, random_state=seed)
        for fold, (_, test) in enumerate(cut.split(codes, codes)):
            split[test] = fold
    return split


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
        if len(model.landmarks[0]) < n // 2:
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
