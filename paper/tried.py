"""Settings that the paper does not specify: the values we tried, on the same folds.

There is one question per parameter, measured on the data sets whose figures depend on it. The
settings used in the tables are in `sets.py` and `methods.py`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from krein import IKFD, PCVM
from krein.datasets import make_balls
from krein.landmarks import MEB
from krein.measures import get_measure

from .folds import Plan, splits
from .methods import quietly
from .progress import progress
from .published import TABLE_1, Figure, accuracy
from .script import parse
from .sets import Array, Data, Indices, Labels, available, fewer, prepare
from .statistics import spread

FIELDS = ("question", "set", "setting", "fold", "accuracy", "landmarks", "published")

Fold = Callable[[Indices, Indices, int], tuple[Any, Any, Any]]  # estimator, training, test input


@dataclass(frozen=True)
class Trial:
    """One setting on one set."""

    question: str
    name: str
    setting: str
    y: Labels
    fold: Fold
    published: Figure | None


SCATTER = "iKFD, dense: how a singular within-class scatter is inverted"
CENTRE = "distances: centred on the landmarks, or on all training objects before the Nyström step"
BALLS = "ball: the two radii"
EPSILON = "MEB: ε"
ROUTE = "MEB: balls of K, or of KKᵀ"
SIGMA = "ELM kernel: σ"
UNIT = "Ny-PCVM as published: the unit of the kernel"
QUESTIONS = (SCATTER, CENTRE, BALLS, EPSILON, ROUTE, SIGMA, UNIT)


def trials(plan: Plan) -> Iterator[Trial]:
    """Yield every setting on every available data set."""
    for name in ("ball", "protein", "checker", "gauss", "gesture", "zongker"):
        if data := _data(name, plan):
            figure = TABLE_1["SIM1"][name][0] if name in TABLE_1["SIM1"] else None
            figure = figure or accuracy("all", name, "ikfd")
            for rho in (0, 1e-6, 1e-4, 1e-2, 0.1, "oas") if name != "zongker" else (0, 1e-2, "oas"):
                share = "by OAS" if rho == "oas" else f"shrunk by {rho:g}" if rho else "pinv"
                clf = IKFD(data.measure, landmarks="all", shrinkage=rho, n_jobs=1)
                yield Trial(SCATTER, name, share, data.y, partial(_given, data, clf), figure)
    for name in ("ball", "gesture", "zongker"):
        if data := _data(name, plan):
            figure = TABLE_1["SIM2"][name][0] if name == "ball" else accuracy("meb", name, "ikfd")
            for setting, fold in (("landmarks", _given), ("all training objects", _centred)):
                clf = IKFD(data.measure, n_jobs=1)
                yield Trial(CENTRE, name, setting, data.y, partial(fold, data, clf), figure)
    for radii in ((0.03, 0.04), (0.02, 0.05), (0.01, 0.08), (0.001, 0.09)):
        X, y = make_balls(200, radii=radii, random_state=0)
        rows = fewer(y, plan.objects or len(y))
        D = get_measure("balls").block(X[rows], X[rows])
        fold = partial(_matrix, D, IKFD("precomputed-distance", n_jobs=1))
        yield Trial(BALLS, "ball", str(radii), y[rows], fold, TABLE_1["SIM2"]["ball"][0])
    for name in ("protein", "checker", "gauss"):
        if data := _data(name, plan):
            figure = TABLE_1["SIM2"][name][0]
            for epsilon in (0.1, 0.03, 0.01, 0.003):
                clf = IKFD(data.measure, landmarks=MEB(epsilon), n_jobs=1)
                yield Trial(
                    EPSILON, name, f"{epsilon:g}", data.y, partial(_given, data, clf), figure
                )
            for psd, setting in ((True, "K"), (False, "KKᵀ")):
                clf = IKFD(data.measure, landmarks=MEB(psd=psd), n_jobs=1)
                yield Trial(ROUTE, name, setting, data.y, partial(_given, data, clf), figure)
    for name in ("checker", "gauss"):
        if data := _data(name, plan):
            for sigma in (0.5, 1.0, 3.0, 10.0, 100.0):
                clf = IKFD("elm", measure_params={"sigma": sigma}, n_jobs=1)
                fold = partial(_given, data, clf)
                figure = TABLE_1["SIM2"][name][0]
                yield Trial(SIGMA, name, f"{sigma:g}", data.y, fold, figure)
    for name in ("gesture", "zongker", "peptides"):
        if data := _data(name, plan):
            for unit in (0.1, 0.3, 1.0, 3.0, 10.0):
                clf = PCVM(data.measure, solver="paper", multiclass="ovr", n_jobs=1)
                fold = partial(_given, data, clf, unit=unit)
                figure = accuracy("meb", name, "pcvm")
                yield Trial(UNIT, name, f"values × {unit:g}", data.y, fold, figure)


def _data(name: str, plan: Plan) -> Data | None:
    return prepare(name, plan.output / "sets", plan.objects) if available(name) else None


def _given(
    data: Data, clf: Any, train: Indices, test: Indices, seed: int, unit: float = 1.0
) -> tuple[Any, Any, Any]:
    clf.set_params(random_state=seed)
    return clf, unit * data.part(train, train), unit * data.part(test, train)


def _centred(
    data: Data, clf: Any, train: Indices, test: Indices, seed: int
) -> tuple[Any, Any, Any]:
    clf.set_params(measure="precomputed", random_state=seed)
    K = data.similarities(train, train)
    return clf, (K + K.T) / 2, data.similarities(test, train)  # K is symmetric up to rounding


def _matrix(D: Array, clf: Any, train: Indices, test: Indices, seed: int) -> tuple[Any, Any, Any]:
    clf.set_params(random_state=seed)
    return clf, D[np.ix_(train, train)], D[np.ix_(test, train)]


def _run(trial: Trial, n_folds: int) -> list[dict[str, Any]]:
    rows = []
    for fold, (train, test) in enumerate(splits(trial.y, n_folds)):
        clf, A, T = trial.fold(train, test, fold)
        with threadpool_limits(1):
            quietly(clf.fit, A, trial.y[train])
            hit = clf.predict(T) == trial.y[test]
        figure = "" if trial.published is None else trial.published.mean
        values = (trial.question, trial.name, trial.setting, fold, 100 * float(hit.mean()))
        rows.append(dict(zip(FIELDS, (*values, len(clf.landmarks_), figure), strict=True)))
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    plan = parse("tried", __doc__ or "", arguments)
    if plan.kept:
        return  # tried.csv is already written
    rows: list[dict[str, Any]] = []
    with progress("tried") as shown:
        shown.say("settings that the paper does not specify")
        found = sorted(trials(plan), key=lambda trial: len(trial.y))  # fastest first
        shown.start(len(found))
        calls = (delayed(_run)(trial, plan.folds) for trial in found)
        for new in Parallel(plan.jobs, return_as="generator")(calls):
            rows += new
            _write(plan.output / "tried.csv", rows)
            reached = spread([row["accuracy"] for row in new])
            shown.step(f"{new[0]['question']}; {new[0]['set']}, {new[0]['setting']}: {reached} %")


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows atomically, in the order of the questions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: QUESTIONS.index(row["question"])))
    temporary.replace(path)


if __name__ == "__main__":
    main()
