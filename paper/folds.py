"""Cross-validation with the same stratified folds for every method; results are rows of a file.

A row is one method on one fold of one data set. Rows already measured with the same data and the
same code are read back, so an interrupted run resumes where it stopped. Folds run in parallel
processes, each with one BLAS thread. Run times are CPU seconds for fitting and predicting from
precomputed values, so they do not depend on what else is running.
"""

from __future__ import annotations

import csv
import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

import krein

from .methods import Fold, build, choose, facts, quietly, shared, solver, titled
from .progress import progress
from .sets import Data, Indices, available, prepare

Row = dict[str, Any]

TIMES = ("select_seconds", "fit_seconds", "predict_seconds")
FIELDS = (
    "set",
    "seed",
    "method",
    "fold",
    "objects",
    "classes",
    "accuracy",
    "balanced",
    "log_loss",
    "landmarks",
    "comparisons",
    "weights",
    "smss",
    "smss_truncated",
    "warning",
    "code",
    *TIMES,
)
TEXT = ("set", "method", "warning", "code")
WHOLE = ("seed", "fold")


@dataclass(frozen=True)
class Plan:
    """How a script runs: output folder, number of objects, folds and processes."""

    output: Path = Path("paper/results")
    objects: int | None = None
    folds: int = 10
    jobs: int = 1
    told: str = ""  # which table, for the progress display
    kept: bool = False  # use only folds that were already measured


@dataclass(frozen=True)
class Unit:
    """A method on a data set; `folds` limits it to the first folds if all take too long."""

    name: str
    method: str
    folds: int | None = None
    seed: int = 0

    def wanted(self, plan: Plan) -> int:
        """Return how many folds to measure."""
        return min(self.folds or plan.folds, plan.folds)


def splits(y: Any, n: int) -> list[tuple[Indices, Indices]]:
    """Return the folds: stratified, shuffled with a fixed seed, the same for every method."""
    folds = StratifiedKFold(n, shuffle=True, random_state=0)
    return list(folds.split(np.zeros(len(y)), y))


def evaluate(data: Data, methods: Sequence[str], fold: int, n_folds: int) -> list[Row]:
    """Fit and predict one fold with methods that share their landmarks."""
    part = Fold(data, *splits(data.y, n_folds)[fold])
    with threadpool_limits(1):
        _ = part.kernel  # before the clock starts: all values are precomputed
        start = time.process_time()
        landmarks = choose(methods[0], part, seed=fold)
        chosen = time.process_time() - start
        return [
            {
                "set": data.name,
                "seed": data.seed,
                "method": method,
                "code": code_digest(),
                "fold": fold,
                "objects": len(data.y),
                "classes": len(np.unique(data.y)),
                "select_seconds": chosen,
                **_fitted(build(method, data, landmarks, seed=fold), part, *part.inputs(method)),
                # PCVM drops some of them
                **({} if isinstance(landmarks, str) else {"landmarks": len(landmarks)}),
            }
            for method in methods
        ]


def _fitted(model: Any, fold: Fold, A: Any, T: Any) -> Row:
    y, truth = fold.y, fold.data.y[fold.test]
    start = time.process_time()
    _, warning = quietly(model.fit, A, y)
    fitted = time.process_time()
    if hasattr(model, "predict_proba"):
        P = model.predict_proba(T)
        predicted, loss = model.classes_[P.argmax(axis=1)], _loss(truth, P, model.classes_)
    else:
        predicted, loss = model.predict(T), float("nan")
    done = time.process_time()
    hit = predicted == truth
    return {
        "accuracy": 100 * float(hit.mean()),
        "balanced": 100 * float(np.mean([hit[truth == c].mean() for c in np.unique(truth)])),
        "log_loss": loss,
        "warning": warning,
        "fit_seconds": fitted - start,
        "predict_seconds": done - fitted,
        **facts(model, fold),
    }


def _loss(y: Any, P: Any, classes: Any) -> float:
    P = np.maximum(P, 1e-15)
    return float(log_loss(y, P / P.sum(axis=1, keepdims=True), labels=classes))


def measure(units: Sequence[Unit], plan: Plan) -> list[Row]:
    """Return the rows of these units, fold by fold; units on unavailable sets are skipped."""
    units = [unit for unit in dict.fromkeys(units) if available(unit.name)]
    with progress(plan.told) as shown:
        sets: dict[tuple[str, int], Data] = {}
        for name, seed in dict.fromkeys((unit.name, unit.seed) for unit in units):
            shown.say(f"{name}, seed {seed}: all pairs, compared once")
            sets[name, seed] = prepare(name, plan.output / "sets", plan.objects, seed)
        files = {unit: _file(unit, sets[unit.name, unit.seed], plan) for unit in units}
        kept = {unit: read(files[unit]) for unit in units}
        tasks = [] if plan.kept else _tasks(units, kept, plan)
        shown.start(sum(len(task.units) for task in tasks))
        for task, rows in _run(tasks, sets, plan):
            for unit, row in zip(task.units, rows, strict=True):
                kept[unit] = sorted([*kept[unit], row], key=lambda row: row["fold"])
                write(files[unit], kept[unit])
                shown.step(
                    f"{unit.name}, {titled(unit.method)}, {solver(unit.method)}, "
                    f"fold {task.fold + 1} of {plan.folds}: {row['accuracy']:.1f} %"
                )
    return [row for unit in units for row in kept[unit] if row["fold"] < unit.wanted(plan)]


class _Task(NamedTuple):
    """Units on one fold of one data set that share their landmarks."""

    units: list[Unit]
    fold: int


def _tasks(units: Sequence[Unit], kept: dict[Unit, list[Row]], plan: Plan) -> list[_Task]:
    """Return what is still to be measured; units with the same set, rule and fold share a task."""
    groups: dict[tuple[str, int, str, int], list[Unit]] = {}
    for unit in units:
        known = {row["fold"] for row in kept[unit]}
        for fold in range(unit.wanted(plan)):
            if fold not in known:
                key = unit.name, unit.seed, shared(unit.method), fold
                groups.setdefault(key, []).append(unit)
    return [_Task(group, fold) for (*_, fold), group in groups.items()]


def _run(
    tasks: Sequence[_Task], sets: dict[tuple[str, int], Data], plan: Plan
) -> Iterator[tuple[_Task, list[Row]]]:
    calls = (
        # a copy without open files
        delayed(_do)(task, replace(sets[task.units[0].name, task.units[0].seed]), plan.folds)
        for task in tasks
    )
    if plan.jobs == 1:
        return (function(*arguments) for function, arguments, _ in calls)
    return Parallel(plan.jobs, return_as="generator_unordered", pre_dispatch=plan.jobs)(calls)


def _do(task: _Task, data: Data, n_folds: int) -> tuple[_Task, list[Row]]:
    return task, evaluate(data, [unit.method for unit in task.units], task.fold, n_folds)


def _file(unit: Unit, data: Data, plan: Plan) -> Path:
    name = f"{data.folder.name}-{unit.method.replace(':', '_')}-{plan.folds}-{code_digest()}.csv"
    return plan.output / "folds" / name


def code_digest(*more: Path) -> str:
    """Return a digest of the code that a result depends on: krein, the harness and `more`."""
    root, here = Path(krein.__file__).parent, Path(__file__).parent
    files = [
        *sorted(root.rglob("*.py")),
        *(here / f"{n}.py" for n in ("methods", "baselines", "sets")),
        *more,
    ]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:8]


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as CSV, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    with temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, restval="nan")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(temporary, path)


def read(path: Path) -> list[Row]:
    """Return the rows of a file, or none if it does not exist."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            {k: v if k in TEXT else int(v) if k in WHOLE else float(v) for k, v in row.items()}
            for row in csv.DictReader(file)
        ]
