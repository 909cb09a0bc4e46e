"""What each constant of a fit changes: half and double its value, on six small data sets.

Constants are the numbers that modules define in capitals, in the folders through which a fit of
`KreinClassifier` passes. Those that only limit memory, time or what is accepted are left out. A row
gives the largest change of the log-loss of new objects over the data sets, in standard errors of
the paired difference, for half and for double the value, and the change of the comparisons per
prediction. Two of the sets (waves and islands) were not used to choose any constant.
"""

from __future__ import annotations

import ast
import importlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import krein
from krein import KreinClassifier, datasets

from .timing import row

MODULES = ("core", "estimators", "landmarks", "measures/features.py")
"""Where constants of a fit are defined."""

LIMITS = (
    "BYTES", "WORK", "ENTRIES", "AT_ONCE", "TILE", "STACK", "PART", "ROWS", "BITS", "MEMORY",
    "SEED", "TOLERANCE", "PRECISION", "JITTER", "ROUNDING", "LEAST", "REST", "FAR", "UNSEEN",
    "MOST_OBJECTS", "LISTED", "SIZES", "LIMIT", "ROTATED", "SHORTLIST", "SAFE", "DIVERGED",
    "SMALL", "ALL", "POWERS",
)  # fmt: skip
"""Parts of the names of constants that bound memory or time, or guard against rounding."""

N_NEW = 400


def run() -> list[dict]:
    rows, sets = [], dict(cases())
    usual = {name: losses(*case) for name, case in sets.items()}
    for module, name, value in constants():
        found = []
        for factor in (0.5, 2.0):
            with replaced(module, name, scaled(value, factor)):
                found.append({one: losses(*case) for one, case in sets.items()})
        if all(same(usual[one], trial[one]) for trial in found for one in sets):
            continue
        half, double = (change(usual, trial) for trial in found)
        detail = f"double: {double[0]:+.1f}; comparisons {half[1]:+.0%} and {double[1]:+.0%}"
        where = module.__name__.removeprefix("krein.")
        rows.append(row(f"{where}.{name} = {value}", half[0], "", f"half; {detail}", unit="SE"))
        print(rows[-1]["name"], f"{half[0]:+.1f}", detail, flush=True)
    return sorted(rows, key=lambda one: -abs(one["value"]))


def constants() -> Iterator[tuple[Any, str, Any]]:
    """Yield module, name and value of every constant that may change results."""
    root = Path(krein.__file__).parent
    for place in MODULES:
        paths = [root / place] if place.endswith(".py") else sorted((root / place).rglob("*.py"))
        for path in paths:
            parts = path.relative_to(root).with_suffix("").parts
            module = importlib.import_module(".".join(["krein", *parts]).removesuffix(".__init__"))
            for name in _assigned(path):
                value = getattr(module, name, None)
                numbers = value if isinstance(value, tuple) else (value,)
                usable = all(
                    isinstance(v, int | float) and not isinstance(v, bool) for v in numbers
                )
                if usable and numbers and not any(part in name for part in LIMITS):
                    yield module, name, value


def _assigned(path: Path) -> Iterator[str]:
    """Yield the names in capitals that a module assigns at its top level."""
    for node in ast.parse(path.read_text("utf-8")).body:
        for target in node.targets if isinstance(node, ast.Assign) else []:
            for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(one, ast.Name) and one.id.isupper() and not one.id.startswith("_"):
                    yield one.id


def scaled(value: Any, factor: float) -> Any:
    """Return a number, or all of several, times a factor; whole numbers stay whole, at least 1."""
    if isinstance(value, tuple):
        return tuple(scaled(one, factor) for one in value)
    return max(1, round(factor * value)) if isinstance(value, int) else factor * value


class replaced:  # noqa: N801 - used like a function
    """Replace a constant in every module of krein that has imported it."""

    def __init__(self, module: Any, name: str, value: Any) -> None:
        import sys

        old = getattr(module, name)
        self.name, self.old, self.value = name, old, value
        self.places = [
            m
            for key, m in list(sys.modules.items())
            if key.startswith("krein.") and getattr(m, name, None) is old
        ]

    def __enter__(self) -> None:
        for module in self.places:
            setattr(module, self.name, self.value)

    def __exit__(self, *_: object) -> None:
        for module in self.places:
            setattr(module, self.name, self.old)


def cases() -> Iterator[tuple[str, tuple]]:
    """Yield a name, a measure, objects and labels; the last 400 objects are new."""
    rng = np.random.default_rng(0)

    def some(X: Any, y: Any, n: int) -> tuple[list, np.ndarray]:
        rows = rng.permutation(len(y))[:n]
        return [X[i] for i in rows], np.asarray(y)[rows]

    yield "peptides", ("smith-waterman", *some(*datasets.load_antimicrobial_peptides(), 1000))
    yield "digits", ("tangent", *some(*datasets.load_digits_images(), 1000))
    X, y = datasets.make_protein_families(1000, divergence=0.9, random_state=0)
    yield "families", ("smith-waterman", X, np.asarray(y))
    X, y = datasets.make_checkerboard(1000, random_state=0)
    yield "checkerboard", ("manhattan", X, np.asarray(y))
    y = rng.integers(0, 4, 900)
    waves = [
        np.sin((0.2 + 0.03 * c) * np.arange(60) + rng.uniform(0, 6)) + 0.7 * rng.normal(size=60)
        for c in y
    ]
    yield "waves", ("dtw", waves, y)
    centres, which = rng.uniform(size=(60, 3)), rng.integers(60, size=1000)
    islands = centres[which] + 0.06 * rng.normal(size=(1000, 3))
    yield "islands", ("euclidean", islands, (np.arange(60) % 3)[which])


def losses(measure: str, X: Any, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the log-loss of each new object, and the mean number of comparisons."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = KreinClassifier(measure).fit(X[:-N_NEW], y[:-N_NEW])
        log_p = clf.predict_log_proba(X[-N_NEW:])
    codes = np.searchsorted(clf.classes_, y[-N_NEW:])
    return -log_p[np.arange(N_NEW), codes], clf.last_comparisons_ / N_NEW


def same(a: tuple, b: tuple) -> bool:
    return bool(np.array_equal(a[0], b[0]) and a[1] == b[1])


def change(usual: dict, trial: dict) -> tuple[float, float]:
    """Return the largest change of the loss, in standard errors, and that of the comparisons."""
    steps, costs = [], []
    for name, (before, cost) in usual.items():
        after, new_cost = trial[name]
        extra = after - before
        error = extra.std() / np.sqrt(len(extra))
        steps.append(extra.mean() / error if error > 0 else 0.0)
        costs.append(new_cost / max(cost, 1e-9) - 1)
    return max(steps, key=abs), max(costs, key=abs)
