"""Settings that the paper does not specify: the values we tried, on the same folds.

There is one question per parameter, measured on the data sets whose figures depend on it. The
settings used in the tables are in `sets.py` and `methods.py`. Before the generator of the balls was
known, their radii were searched for, together with the centre, the inverse and the landmarks.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from scipy.linalg import pinvh
from sklearn.base import BaseEstimator, ClassifierMixin
from threadpoolctl import threadpool_limits

from krein import IKFD, PCVM
from krein.core.space import Conversion, double_centre
from krein.datasets import make_balls
from krein.landmarks import MEB, get_rule
from krein.landmarks.base import given_pairs
from krein.measures import get_measure

from .folds import Plan, code_digest, splits
from .larger import FEW_FOLDS
from .methods import RULES, Fold, choose, quietly
from .progress import progress
from .published import TABLE_1, THREE_GAUSSIANS, Figure, accuracy
from .script import parse
from .sets import Array, Data, Indices, Labels, available, fewer, prepare
from .statistics import spread

FIELDS = ("question", "set", "setting", "fold", "accuracy", "landmarks", "published")

Inputs = Callable[[Indices, Indices, int], tuple[Any, Any, Any]]  # estimator, training, test


@dataclass(frozen=True)
class Trial:
    """One setting on one set."""

    question: str
    name: str
    setting: str
    y: Labels
    fold: Inputs
    published: Figure | None
    folds: int | None = None  # only the first ones, if all take too long


TOLERANCE = "iKFD as published, dense: eigenvalues of the scatter that count as zero"
SCATTER = "iKFD, dense: how a singular within-class scatter is inverted"
PUBLIC = "iKFD, dense, each class against the rest: the ridge of `ikfd.m` in DisTools"
CENTRE = "distances, krein: centred on the landmarks, or on all training objects"
GENERATOR = "ball, radii 1 and 2 in a cube of side 100, as published: dimension and seed"
BOARD = "checker, as published: the scale of the board, and σ"
RBF = "entropy rule, as published: of K, or of an RBF kernel of the rows of K"
BALLS = "ball, dense: the two radii and the inverse"
JOINT = "ball, MEB: the two radii, the centre, the landmarks and the inverse together"
AGAIN = "ball, radii 0.02 and 0.05, as published: other random positions"
CORE = "MEB, iKFD as published: first point, and which points of a ball are landmarks"
EPSILON = "MEB, krein: ε"
ROUTE = "MEB, krein: balls of K, or of KKᵀ"
SIGMA = "ELM kernel, krein: σ"
PLACE = "ELM kernel, iKFD as published, few landmarks: where the points lie, and σ"
POWER = "chromosomes, as published: distances squared before they are centred, or not"
OFFSET = "PCVM as published, dense, pairs of classes: a constant added to all similarities"
QUESTIONS = (
    *(TOLERANCE, SCATTER, CENTRE, BALLS, JOINT, AGAIN, CORE, EPSILON, ROUTE, SIGMA),
    *(PLACE, POWER, OFFSET, PUBLIC, GENERATOR, BOARD, RBF),
)

SURFACE, CORE_SET = MEB(), MEB(core_set=True, start="random")
RADII = ((0.03, 0.04), (0.02, 0.05), (0.01, 0.08), (0.001, 0.09))
INVERSES = {"pseudo-inverse": "paper", "ridge": "paper-ridge", "krein": "gaussian"}


class DensePseudoInverse(ClassifierMixin, BaseEstimator):
    """The published dense iKFD, with another tolerance of its pseudo-inverse (None: N·2⁻⁵²).

    With a `ridge`, this is added to the scatter, which is then inverted.
    """

    def __init__(self, tolerance: float | None = None, ridge: float | None = None) -> None:
        self.tolerance = tolerance
        self.ridge = ridge

    def fit(self, K: Any, y: Any) -> Self:
        """Fit each class against the rest, on the columns of K (N, N)."""
        self.classes_, self.landmarks_ = np.unique(y), np.arange(len(K))
        alpha, bias = [], []
        for c in self.classes_:
            sides = [K[y == c], K[y != c]]
            means = [side.mean(axis=0) for side in sides]
            X = np.concatenate([side - mean for side, mean in zip(sides, means, strict=True)])
            S = X.T @ X
            if self.ridge is None:
                S = pinvh(S, rtol=self.tolerance)
            else:
                S = np.linalg.inv(S + self.ridge * np.eye(len(S)))
            alpha.append(S @ (means[0] - means[1]))
            bias.append(-0.5 * alpha[-1] @ (means[0] + means[1]))
        self.alpha_, self.bias_ = np.column_stack(alpha), np.array(bias)
        return self

    def predict(self, k: Any) -> Any:
        """Return the class with the largest score."""
        return self.classes_[(k @ self.alpha_ + self.bias_).argmax(axis=1)]


def trials(plan: Plan) -> Iterator[Trial]:
    """Yield every setting on every available data set."""
    yield from _inverses(plan)
    yield from _balls(plan)
    yield from _landmarks(plan)
    yield from _places(plan)
    yield from _powers(plan)
    yield from _generators(plan)
    yield from _boards(plan)
    yield from _entropies(plan)


def _inverses(plan: Plan) -> Iterator[Trial]:
    for name in ("ball", "protein", "checker", "gauss", "gesture"):
        if not (data := _data(name, plan)):
            continue
        figure = TABLE_1["SIM1"][name][0] if name in TABLE_1["SIM1"] else None
        figure = figure or accuracy("all", name, "ikfd")
        for tolerance in (None, 1e-12, 1e-10):
            told = "N·2⁻⁵² of the largest" if tolerance is None else f"{tolerance:g} of the largest"
            dense = partial(_centred, data, DensePseudoInverse(tolerance))
            yield Trial(TOLERANCE, name, told, data.y, dense, figure)
        settings: dict[str, dict[str, Any]] = {
            "pseudo-inverse on k(x), as published": {"solver": "paper"},
            "ridge on k(x)": {"solver": "paper-ridge"},
            "pseudo-inverse on coordinates": {"shrinkage": 0.0},
            "shrunk by 0.01": {"shrinkage": 0.01},
            "shrunk by 0.1": {"shrinkage": 0.1},
            "by OAS": {"shrinkage": "oas"},
        }
        for told, options in settings.items():
            clf = IKFD("precomputed", landmarks="all", n_jobs=1, **options)
            yield Trial(SCATTER, name, told, data.y, partial(_centred, data, clf), figure)
    if data := _data("protein", plan):
        for ridge in (1e-4, 1.0):
            fold = partial(_centred, data, DensePseudoInverse(ridge=ridge))
            figure = TABLE_1["SIM1"]["protein"][0]
            yield Trial(PUBLIC, "protein", f"{ridge:g}", data.y, fold, figure)
        for offset in (0.0, 10.0, 100.0, 1e6):
            clf = PCVM("precomputed", landmarks="all", solver="paper", n_jobs=1)
            fold = partial(_shifted, data, clf, offset)
            yield Trial(OFFSET, "protein", f"+ {offset:g}", data.y, fold, None)
    for name in ("ball", "gesture", "sonatas", "zongker"):
        if data := _data(name, plan):
            figure = TABLE_1["SIM2"][name][0] if name == "ball" else accuracy("meb", name, "ikfd")
            for setting, fold in (("landmarks", _given), ("all training objects", _centred)):
                clf = IKFD(data.measure, landmarks=CORE_SET, n_jobs=1)
                yield Trial(CENTRE, name, setting, data.y, partial(fold, data, clf), figure)
            clf = IKFD(data.measure, landmarks=CORE_SET, centre="training", n_jobs=1)
            told = 'all training objects, from N·m values: centre="training"'
            yield Trial(CENTRE, name, told, data.y, partial(_given, data, clf), figure)


def _balls(plan: Plan) -> Iterator[Trial]:
    """Yield the settings among which those of the set `ball` were searched for."""

    def made(radii: tuple[float, float], seed: int) -> tuple[Array, Labels]:
        X, y = make_balls(200, radii=radii, random_state=seed)
        rows = fewer(y, plan.objects or len(y))
        D = get_measure("balls").block(X[rows], X[rows])
        return D / np.median(D[np.triu_indices(len(D), 1)]), y[rows]

    dense, low = (TABLE_1[sim]["ball"][0] for sim in ("SIM1", "SIM2"))
    for radii in RADII:
        D, y = made(radii, 0)
        for told, solver in INVERSES.items():
            clf = IKFD("precomputed-distance", landmarks="all", solver=solver, n_jobs=1)
            yield Trial(BALLS, "ball", f"{radii}, {told}", y, partial(_matrix, D, clf), dense)
            for points, rule in (("core sets", CORE_SET), ("surfaces", SURFACE)):
                for centre in ("training objects", "landmarks"):
                    clf = IKFD("precomputed-distance", landmarks=rule, solver=solver, n_jobs=1)
                    whole = centre == "training objects"
                    fold = partial(_matrix, D, clf, centred=whole)
                    setting = f"{radii}, {centre}, {points}, {told}"
                    yield Trial(JOINT, "ball", setting, y, fold, low)
    for seed in (1, 2, 3, 4):
        D, y = made((0.02, 0.05), seed)
        for told, rule, figure in (("dense", "all", dense), ("MEB", CORE_SET, low)):
            clf = IKFD("precomputed-distance", landmarks=rule, solver="paper", n_jobs=1)
            fold = partial(_matrix, D, clf, centred=True)
            yield Trial(AGAIN, "ball", f"{told}, seed {seed}", y, fold, figure)


def _landmarks(plan: Plan) -> Iterator[Trial]:
    for name in ("protein", "checker", "gauss"):
        if data := _data(name, plan):
            figure = TABLE_1["SIM2"][name][0]
            for start in ("random", "farthest"):
                for whole, points in ((True, "core sets"), (False, "surfaces")):
                    rule = MEB(core_set=whole, start=start)  # type: ignore[arg-type]
                    clf = IKFD(data.measure, landmarks=rule, solver="paper", n_jobs=1)
                    told, fold = f"{start}, {points}", partial(_given, data, clf)
                    yield Trial(CORE, name, told, data.y, fold, figure)
            for epsilon in (0.1, 0.03, 0.01, 0.003):
                clf = IKFD(data.measure, landmarks=MEB(epsilon), n_jobs=1)
                fold = partial(_given, data, clf)
                yield Trial(EPSILON, name, f"{epsilon:g}", data.y, fold, figure)
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


def _places(plan: Plan) -> Iterator[Trial]:
    """Yield settings for the figures of few landmarks: the ELM kernel depends on the origin."""
    origins: dict[str, dict[str, tuple[float, ...]]] = {
        "gauss": {
            "midway": (0.0, 0.0),
            "1.25 along the means": (1.25, 0.0),
            "3 along the means": (3.0, 0.0),
            "1 across": (0.0, 1.0),
            "3 across": (0.0, 3.0),
            "3 along and across": (3.0, 3.0),
        },
        "checker": {"at the centre": (0.0, 0.0), "in a corner": (1.0, 1.0)},
        "three_gaussians": {"": (0.0,)},
    }
    figures = {
        "gauss": {("kmeans", 2): "SIM4", ("random", 2): "SIM5"},
        "checker": {("kmeans", 2): "SIM4", ("random", 2): "SIM5", ("entropy", 14): "SIM6"},
        "three_gaussians": {(rule, 10): "" for rule in ("kmeans", "entropy", "random")},
    }
    for name, places in origins.items():
        data = _data(name, plan)
        if data is None:
            continue
        for (rule, m), sim in figures[name].items():
            figure = TABLE_1[sim][name][0] if sim else Figure(THREE_GAUSSIANS[rule])
            for place, shift in places.items():
                for sigma in (0.5, 1.0, 10.0):
                    chosen = get_rule(rule, m)
                    if rule == "kmeans":
                        chosen.set_params(sketch=len(data.y))  # whole rows of K, as published
                    options: dict[str, Any] = {"landmarks": chosen, "solver": "paper", "n_jobs": 1}
                    clf = IKFD("elm", measure_params={"sigma": sigma}, **options)
                    told = f"{RULES[rule]}, {f'origin {place}, ' if place else ''}σ = {sigma:g}"
                    fold = partial(_points, np.array(data.values) + shift, clf)
                    yield Trial(PLACE, name, told, data.y, fold, figure)


def _powers(plan: Plan) -> Iterator[Trial]:
    data = _data("chromo", plan)
    if data is None:
        return
    forms: dict[str, tuple[type[IKFD | PCVM], dict[str, Any]]] = {
        "Ny-iKFD": (IKFD, {}),
        "Ny-PCVM, against the rest": (PCVM, {"multiclass": "ovr"}),
        "Ny-PCVM, pairs": (PCVM, {"multiclass": "joint"}),
        "Ny-PCVM, exact Υ": (PCVM, {"multiclass": "ovr", "solver": "paper-exact"}),
    }
    for told, (model, options) in forms.items():
        family, folds = ("ikfd", None) if model is IKFD else ("pcvm", FEW_FOLDS)
        for rule in ("meb", "kmeans", "entropy") if model is IKFD else ("meb",):
            for power, how in ((1.0, "squared"), (0.5, "not squared")):
                clf = model("precomputed", n_jobs=1, **{"solver": "paper", **options})
                fold = partial(_powered, data, clf, rule, power)
                setting = f"{told}, {RULES[rule]}, {how}"
                figure = accuracy(rule, "chromo", family)
                yield Trial(POWER, "chromo", setting, data.y, fold, figure, folds)


def _generators(plan: Plan) -> Iterator[Trial]:
    """Yield the balls of DisTools in other dimensions; the paper does not name theirs."""
    sims = {"all": "SIM1", "meb": "SIM2", "kmeans": "SIM3", "kmeans@C": "SIM4", "random@C": "SIM5"}
    for dimension in (1, 2, 3, 5):
        for seed in (0, 1, 2) if dimension == 3 else (0,):
            try:
                X, y = make_balls(
                    200, radii=(0.01, 0.02), n_dimensions=dimension, random_state=seed
                )
            except ValueError:  # they do not fit without overlapping
                continue
            rows = fewer(y, plan.objects or len(y))
            D = get_measure("balls").block(X[rows], X[rows])
            D = D / np.median(D[np.triu_indices(len(D), 1)])
            for rule, sim in {**sims, "entropy": "SIM6"}.items():
                clf = IKFD("precomputed", solver="paper", n_jobs=1)
                fold = partial(_ruled, D, y[rows], clf, rule)
                told = f"{dimension}-D, seed {seed}, {sim}"
                yield Trial(GENERATOR, "ball", told, y[rows], fold, TABLE_1[sim]["ball"][0])


def _boards(plan: Plan) -> Iterator[Trial]:
    data = _data("checker", plan)
    if data is None:
        return
    X = np.array(data.values)
    boards = {"z-scored": (X - X.mean(axis=0)) / X.std(axis=0), "[−5, 5]": 5 * X}
    for told, points in boards.items():
        for sigma in (1.0, 1e10):
            for rule, sim in (("meb", "SIM2"), ("kmeans", "SIM3"), ("entropy", "SIM6")):
                K = get_measure("elm", {"sigma": sigma}).block(points, points)
                clf = IKFD("precomputed", solver="paper", n_jobs=1)
                fold = partial(_ruled, K, data.y, clf, rule, distances=False)
                setting = f"{told}, σ = {sigma:g}, {RULES[rule]}"
                yield Trial(BOARD, "checker", setting, data.y, fold, TABLE_1[sim]["checker"][0])


def _entropies(plan: Plan) -> Iterator[Trial]:
    figures = {name: TABLE_1["SIM6"][name][0] for name in ("checker", "gauss")}
    figures["three_gaussians"] = Figure(THREE_GAUSSIANS["entropy"])
    for name, figure in figures.items():
        data = _data(name, plan)
        if data is None:
            continue
        everyone = np.arange(len(data.y))
        K = data.similarities(everyone, everyone)
        for told in ("K", "an RBF kernel of its rows"):
            clf = IKFD("precomputed", solver="paper", n_jobs=1)
            fold = partial(_ruled, K, data.y, clf, "entropy", distances=False, rows=told != "K")
            yield Trial(RBF, name, told, data.y, fold, figure)


def _ruled(
    M: Array,
    y: Labels,
    clf: Any,
    rule: str,
    train: Indices,
    test: Indices,
    seed: int,
    distances: bool = True,
    rows: bool = False,
) -> tuple[Any, Any, Any]:
    """Return similarities centred as in the tables, and the landmarks of their rules.

    With `rows`, the rule sees an RBF kernel of the rows of K, with the median distance as width.
    """
    A, T = M[np.ix_(train, train)], M[np.ix_(test, train)]
    if distances:
        T, A = Conversion.of(A, "dissimilarity").similarities(T), double_centre(A**2)
    A = (A + A.T) / 2
    part: Any = SimpleNamespace(y=y[train], kernel=A)
    if rule == "all":
        return clf.set_params(landmarks="all"), A, T
    chosen = choose(f"ikfd:{rule}:paper", part, seed)
    if rows:
        squares = np.square(A).sum(axis=1)
        D2 = np.maximum(squares[:, None] + squares - 2 * A @ A, 0.0)
        seen: Any = given_pairs(np.exp(-D2 / np.median(D2)))
        chosen = get_rule(rule, len(chosen)).select(seen, y[train], np.random.default_rng(seed))
        chosen = chosen.indices
    return clf.set_params(landmarks=chosen, random_state=seed), A, T


def _data(name: str, plan: Plan) -> Data | None:
    return prepare(name, plan.output / "sets", plan.objects) if available(name) else None


def _given(data: Data, clf: Any, train: Indices, test: Indices, seed: int) -> tuple[Any, Any, Any]:
    clf.set_params(random_state=seed)
    return clf, data.part(train, train), data.part(test, train)


def _points(X: Array, clf: Any, train: Indices, test: Indices, seed: int) -> tuple[Any, Any, Any]:
    return clf.set_params(random_state=seed), X[train], X[test]


def _centred(
    data: Data, clf: Any, train: Indices, test: Indices, seed: int
) -> tuple[Any, Any, Any]:
    if isinstance(clf, IKFD):
        clf.set_params(measure="precomputed", random_state=seed)
    part = Fold(data, train, test)
    return clf, part.kernel, part.new


def _shifted(
    data: Data, clf: Any, offset: float, train: Indices, test: Indices, seed: int
) -> tuple[Any, Any, Any]:
    clf.set_params(random_state=seed)
    part = Fold(data, train, test)
    return clf, part.kernel + offset, part.new + offset


def _powered(
    data: Data, clf: Any, rule: str, power: float, train: Indices, test: Indices, seed: int
) -> tuple[Any, Any, Any]:
    """Return similarities from powers of the distances, centred on the training objects."""
    A, T = data.part(train, train) ** power, data.part(test, train) ** power
    part: Any = SimpleNamespace(y=data.y[train], kernel=double_centre(A**2))
    clf.set_params(landmarks=choose(f"ikfd:{rule}:paper", part, seed), random_state=seed)
    return clf, part.kernel, Conversion.of(A, "dissimilarity").similarities(T)


def _matrix(
    D: Array, clf: Any, train: Indices, test: Indices, seed: int, centred: bool = False
) -> tuple[Any, Any, Any]:
    """Return distances, or similarities centred on the training objects."""
    clf.set_params(random_state=seed)
    A, T = D[np.ix_(train, train)], D[np.ix_(test, train)]
    if not centred:
        return clf, A, T
    clf.set_params(measure="precomputed")
    centre = Conversion.of(A, "dissimilarity")
    return clf, double_centre(A**2), centre.similarities(T)


def _run(trial: Trial, n_folds: int) -> list[dict[str, Any]]:
    rows = []
    for fold, (train, test) in enumerate(splits(trial.y, n_folds)[: trial.folds]):
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
    with progress("tried") as shown:
        shown.say("settings that the paper does not specify")
        found = sorted(trials(plan), key=lambda trial: len(trial.y))  # fastest first
        name = f"tried-{plan.objects}-{plan.folds}-{code_digest(Path(__file__))}.csv"
        rows = _read(plan.output / "folds" / name)  # of an interrupted run
        known = {(row["question"], row["set"], row["setting"]) for row in rows}
        left = [t for t in found if (t.question, t.name, t.setting) not in known]
        shown.start(len(left))
        calls = (delayed(_run)(trial, plan.folds) for trial in left)
        for new in Parallel(plan.jobs, return_as="generator")(calls):
            rows += new
            _write(plan.output / "folds" / name, rows)
            reached = spread([row["accuracy"] for row in new])
            shown.step(f"{new[0]['question']}; {new[0]['set']}, {new[0]['setting']}: {reached} %")
        _write(plan.output / "tried.csv", rows)


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [row | {"accuracy": float(row["accuracy"])} for row in csv.DictReader(file)]


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
