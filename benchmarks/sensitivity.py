"""What each constant of a fit changes: half and double its value, on six small data sets.

A constant is a number, or several, that a module defines in capitals. Its row gives the change of
the log-loss of new objects in standard errors of the paired difference, on the data set where it is
largest, and the change of the comparisons per prediction. Two of the sets (waves and islands) were
not used to choose any constant. Constants that change none of the sets are tried on further cases,
such as many classes, groups, hits or other estimators, until one changes an answer. Those that only
limit memory or time, or guard against rounding, are listed without figures.

Each trial imports krein anew in a process of its own, with the assignment changed in the source, so
that values count that are fixed at import, such as defaults and annotations. Functions compiled by
numba use none of these constants. A profile of the usual fits tells which cases reach a constant;
the others cannot change.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.machinery import SourceFileLoader
from multiprocessing import get_context
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from .timing import row

SOURCE = Path(__file__).parents[1] / "src" / "krein"

PLACES = (
    "core",
    "estimators",
    "landmarks",
    "model",
    "data/dataset.py",
    "data/foreign.py",
    "data/labelling.py",
    "measures/features.py",
)
"""Where constants of a fit are defined."""

KINDS = {
    "cost": {
        "core.calibration": "SAMPLE_SIZE HELD_OUT_OBJECTS",
        "core.candidates": "SHORTLIST TILE_BYTES",
        "core.cascade": "MANY CROSS_FITTED",
        "core.conformal": "BLOCK",
        "core.gaussian": "CHOICE_LANDMARKS",
        "core.hits": "MOST",
        "core.moments": "FAN",
        "core.pcvm.left_out": "JOINT_LIMIT SCALE_ROWS SCALE_TOLERANCE MAX_FACTOR THRESHOLDS "
        "PART_BYTES COUPLED_PER_ROW COUPLED_BYTES JOINT_WEIGHTS",
        "core.pcvm.mode": "NEWTON_LIMIT",
        "core.pcvm.rows": "BLOCK_BYTES",
        "core.pcvm.training": "CHOICE_BYTES CHOICE_TOLERANCE LEARN_TOLERANCE",
        "core.space": "_CHUNK",
        "estimators.firstlook": "CLASS_WORK PCVM_WORK REFIT_WORK POOLED_TOLERANCE",
        "estimators.heldout": "CALIBRATION_SCORES",
        "estimators.hits": "MOST_HELD_OUT HELD_OUT_SCORES",
        "estimators.lookzero": "FEATURE_OBJECTS MOST_WORK MOST_WEIGHTS MOST_ENTRIES MOST_ROTATED "
        "ROTATED AT_ONCE SEARCHED PRECISION",
        "estimators.secondlook": "N_RANDOM",
        "landmarks.auto": "RATIO",
        "landmarks.base": "FEW",
        "landmarks.kmeans": "_MINI_BATCH",
        "landmarks.meb": "_TESTED",
        "model.heads": "NEIGHBOUR_ROWS",
        "data.dataset": "IN_MEMORY_OBJECTS SAMPLED_PER_CLASS",
        "data.foreign": "LOOKED_AT",
        "data.labelling": "LABELS_AT_ONCE",
        "measures.features": "BITS VOCABULARY FOLDED PART MANY FEWEST DRAWN SCALED STACK "
        "MOST_SORTED IMAGE_NUMBERS",
    },
    "guard": {
        "core.calibration": "_FAR _NEWTON_STEPS",
        "core.cascade": "REST",
        "core.chance": "ROUNDING",
        "core.conformal": "SHARED",
        "core.covariance": "_DIAGONAL _LEAST",
        "core.evidence": "FAR",
        "core.meb": "_ROUNDING _IDENTICAL",
        "core.moments": "ROUNDING",
        "core.pcvm.left_out": "_LEAST _JITTER",
        "core.pcvm.mode": "_FAR BIAS_PRECISION",
        "core.pcvm.published": "DIVERGED LEVEL",
        "core.pcvm.rows": "FEATURE_SIZES",
        "core.pcvm.training": "OPTIMAL",
        "core.ranks": "MOST_ODDS LEAST",
        "core.space": "RANK_TOLERANCE GROWTH SAFE _LEAST _LEVEL",
        "estimators.validation": "MOST_OBJECTS",
        "estimators.heldout": "_SEED",
        "estimators.hits": "_SEED",
        "estimators.krein": "FEW_HELD_OUT",
        "estimators.lookzero": "_SEED LEAST UNSEEN JITTER",
        "estimators.secondlook": "_RANDOM_SEED",
        "landmarks.meb": "PSD_TOLERANCE",
        "model.file": "_ANY_SIZE",
        "model.heads": "LISTED",
        "model.schema": "_MOST",
        "data.foreign": "NAMED LISTED",
        "measures.features": "UNIT FARTHEST",
    },
    "published": {
        "core.pcvm.published": "MAX_CYCLES THRESHOLD FEW_WEIGHTS MAX_STEP_LANDMARKS",
        "measures.features": "KERNELS WIDTH DILATIONS MOST_CHANNELS _GOLDEN",
    },
}
"""Constants without figures. Cost: they limit memory, time or the size of a sample, and a more
generous value would be as good or better, but cost more. Guard: they guard against rounding,
overflow and log 0, decide about a message, or are seeds. Published: they belong to an algorithm
that is implemented as its authors describe it."""


@dataclass(frozen=True)
class Constant:
    """A constant, and where it is assigned."""

    path: Path
    name: str
    value: Any
    told: str  # what its docstring says
    fixed: bool  # whether values that are computed at import depend on it

    @property
    def module(self) -> str:
        """Its module within krein."""
        return ".".join(self.path.relative_to(SOURCE).with_suffix("").parts)

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True)
class Outcome:
    """What a model answers about new objects, and what that costs."""

    losses: np.ndarray  # (n,): log-loss of each object
    comparisons: float  # per prediction
    answers: bytes  # probabilities, p-values and statuses

    def same(self, other: Outcome) -> bool:
        """Whether both are equal to the last bit."""
        equal = np.array_equal(self.losses, other.losses)
        return equal and (self.comparisons, self.answers) == (other.comparisons, other.answers)


def run() -> list[dict]:
    usual, reached = {}, {}
    for name in (*SETS, *CASES):
        usual[name], reached[name] = alone(partial(outcome_and_names, name))
    rows = []
    for one in constants():
        found = {"kind": kind_of(one), "shown": shown(one.value), "told": one.told}
        if found["kind"]:
            rows.append(row(str(one), 0.0, "", found["kind"], unit="") | found)
            continue
        there = [name for name in usual if one.fixed or one.name in reached[name]]
        rows.append(measured(one, there, usual) | found)
        print(one, found["shown"], rows[-1]["detail"], flush=True)
    return sorted(rows, key=lambda one: (one["kind"], -abs(one["value"]), one["name"]))


def measured(one: Constant, reached: list[str], usual: dict[str, Outcome]) -> dict:
    """Return the row of a constant that is halved and doubled."""
    sets = [name for name in reached if name in SETS]
    for names in (sets, *([name] for name in reached if name in CASES)):
        effects = []
        for factor in (0.5, 2.0):
            value, trial = scaled(one.value, factor), {}
            if names and shown(value) != shown(one.value):
                trial = alone(partial(with_value, one, value, names))
            effects.append((shown(value), *largest(trial, usual)))
        if any(where for _, where, _, _ in effects):
            told = [effect(*each) for each in effects]
            value = max((step for _, _, step, _ in effects), key=abs)
            return row(str(one), value, "", "; ".join(told), unit="SE") | dict(
                zip(("half", "double"), told, strict=True)
            )
    told = "changes nothing" if reached else "reached by no case"
    return row(str(one), 0.0, "", told, unit="SE") | {"half": told, "double": told}


def effect(value: str, where: str, step: float, cost: float) -> str:
    """Return what another value changes, in words."""
    if not where:
        return f"{value}: nothing"
    if step == 0 and cost == 0:
        return f"{value}: only p-values and statuses"
    return f"{value}: {step:+.1f} SE ({where}), {cost:+.0%} comparisons"


def largest(trial: dict[str, Outcome | str], usual: dict[str, Outcome]) -> tuple[str, float, float]:
    """Return the set whose loss changes most, by how many standard errors, and the largest relative
    change of the comparisons; no set if nothing changes."""
    steps, costs = {}, [0.0]
    for name, after in trial.items():
        before = usual[name]
        if isinstance(after, str):
            steps[f"{name}: {after}"] = 0.0
        elif not after.same(before):
            extra = after.losses - before.losses
            error = float(extra.std() / np.sqrt(len(extra)))
            steps[name] = float(extra.mean()) / error if error > 0 else 0.0
            if before.comparisons:  # hits need none
                costs.append(after.comparisons / before.comparisons - 1)
    if not steps:
        return "", 0.0, 0.0
    where = max(steps, key=lambda name: abs(steps[name]))
    return where, steps[where], max(costs, key=abs)


# -- constants -------------------------------------------------------------------------------------


def constants() -> Iterator[Constant]:
    """Yield the constants of all modules through which a fit passes."""
    for place in PLACES:
        paths = (
            [SOURCE / place] if place.endswith(".py") else sorted((SOURCE / place).rglob("*.py"))
        )
        for path in paths:
            yield from constants_of(path)


def constants_of(path: Path) -> Iterator[Constant]:
    tree = ast.parse(path.read_text("utf-8"))
    module = import_module(".".join(["krein", *path.relative_to(SOURCE).with_suffix("").parts]))
    fixed = names_at_import(tree)
    for statement, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        told = ""
        match after:
            case ast.Expr(value=ast.Constant(value=str(text))):
                told = " ".join(text.split())
        for name in assigned(statement):
            value = getattr(module, name)
            if name.isupper() and is_number(value):
                yield Constant(path, name, value, told, name in fixed)


def assigned(statement: ast.stmt) -> list[str]:
    """Return the names that a statement assigns."""
    targets = []
    match statement:
        case ast.Assign(targets=found):
            targets = found
        case ast.AnnAssign(target=found):
            targets = [found]
    parts = [p for t in targets for p in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return [part.id for part in parts if isinstance(part, ast.Name)]


def names_at_import(tree: ast.Module) -> set[str]:
    """Return the names whose values count at import: everywhere but in the bodies of functions."""
    found, todo = set(), list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            arguments = node.args
            todo += [*arguments.defaults, *filter(None, arguments.kw_defaults)]
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        todo += ast.iter_child_nodes(node)
    return found


def is_number(value: Any) -> bool:
    numbers = value.tolist() if isinstance(value, np.ndarray) else value
    numbers = numbers if isinstance(numbers, tuple | list) else (numbers,)
    return len(numbers) > 0 and all(
        isinstance(v, int | float) and not isinstance(v, bool) for v in numbers
    )


def kind_of(one: Constant) -> str:
    """Return the kind of a constant without figures; "" if it is measured."""
    kinds = (k for k, names in KINDS.items() if one.name in names.get(one.module, "").split())
    return next(kinds, "")


def scaled(value: Any, factor: float) -> Any:
    """Return a number, or all of several, times a factor; whole numbers stay whole, at least 1."""
    if isinstance(value, np.ndarray):
        value = tuple(value.tolist())
    if isinstance(value, tuple):
        return tuple(scaled(one, factor) for one in value)
    return max(1, round(factor * value)) if isinstance(value, int) else factor * float(value)


def shown(value: Any) -> str:
    if isinstance(value, np.ndarray | tuple):
        return ", ".join(map(shown, list(value)))
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


# -- trials ----------------------------------------------------------------------------------------


def alone(function: Callable[[], Any]) -> Any:
    """Return the result of a function in a process that imports krein anew."""
    for data in SETS.values():
        data()  # once, in this process
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        return pool.submit(function).result()


def forget() -> None:
    """Remove krein from the imported modules."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "krein"]:
        del sys.modules[name]


def with_value(one: Constant, value: Any, names: list[str]) -> dict[str, Outcome | str]:
    """Return the outcomes of some cases with another value of a constant."""
    forget()
    plain = SourceFileLoader.get_code

    def changed(loader: SourceFileLoader, name: str) -> Any:
        if Path(loader.path) != one.path:
            return plain(loader, name)
        tree = ast.parse(one.path.read_text("utf-8"))
        at = next(i for i, statement in enumerate(tree.body) if one.name in assigned(statement))
        new = f"import numpy\n{one.name} = numpy.array({value})" if is_array(one) else ""
        tree.body[at + 1 : at + 1] = ast.parse(new or f"{one.name} = {value!r}").body
        return compile(tree, loader.path, "exec")

    SourceFileLoader.get_code = changed  # type: ignore[method-assign]
    found: dict[str, Outcome | str] = {}
    for name in names:
        try:
            found[name] = outcome(name)
        except Exception as error:  # a value that cannot work says so in its row
            found[name] = type(error).__name__
    return found


def is_array(one: Constant) -> bool:
    return isinstance(one.value, np.ndarray)


def outcome_and_names(name: str) -> tuple[Outcome, set[str]]:
    """Return the outcome of a case, and the global names that its functions mention."""
    forget()
    seen: set[CodeType] = set()

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    sys.setprofile(note)
    found = outcome(name)
    sys.setprofile(None)
    functions = [one for one in seen if str(SOURCE) in one.co_filename and one.co_flags & 2]
    return found, {name for one in functions for name in one.co_names}


def outcome(name: str) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in CASES:
            return CASES[name]()
        measure, X, y = SETS[name]()
        return classified(measure, X, y, N_NEW)


def classified(
    measure: Any, X: Any, y: Any, n_new: int, estimator: str = "KreinClassifier", **options: Any
) -> Outcome:
    """Return the outcome of an estimator that is fitted to all objects but the last."""
    import krein

    model = getattr(krein, estimator)(measure, **{"random_state": 0} | options)
    return answered(model.fit(X[:-n_new], y[:-n_new]), X[-n_new:], y[-n_new:])


def answered(model: Any, X: Any, y: Any) -> Outcome:
    y = np.asarray(y)
    log_p = model.predict_log_proba(X)
    spent = model.last_comparisons_ / len(y)
    codes = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
    parts = [log_p.tobytes()]
    if model.model_.reference is not None:
        found = model.assess(X, ranks=model.model_.ranks is not None)
        parts += [np.ascontiguousarray(found[name]).tobytes() for name in found.dtype.names[1:]]
        parts += [model.predict_set(X, by_class=flag).tobytes() for flag in (True, False)]
    return Outcome(-log_p[np.arange(len(y)), codes], spent, b"".join(parts))


# -- data ------------------------------------------------------------------------------------------

N_NEW = 400


def some(X: Any, y: Any, n: int) -> tuple[list, np.ndarray]:
    rows = np.random.default_rng(0).permutation(len(y))[:n]
    return [X[i] for i in rows], np.asarray(y)[rows]


def peptides() -> tuple:
    from krein import datasets

    return "smith-waterman", *some(*datasets.load_antimicrobial_peptides(), 1000)


def digits() -> tuple:
    from krein import datasets

    return "tangent", *some(*datasets.load_digits_images(), 1000)


def families() -> tuple:
    from krein import datasets

    X, y = datasets.make_protein_families(1000, divergence=0.9, random_state=0)
    return "smith-waterman", X, np.asarray(y)


def checkerboard(n: int = 1000) -> tuple:
    from krein import datasets

    X, y = datasets.make_checkerboard(n, random_state=0)
    return "manhattan", X, np.asarray(y)


def waves(n_channels: int = 1) -> tuple:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 900)
    phases, noise = rng.uniform(0, 6, 900), rng.normal(size=(900, 60, n_channels))
    X = [
        np.sin((0.2 + 0.03 * c) * np.arange(60)[:, None] + phase) + 0.7 * error
        for c, phase, error in zip(y, phases, noise, strict=True)
    ]
    return "dtw", X if n_channels > 1 else [one[:, 0] for one in X], y


def islands() -> tuple:
    rng = np.random.default_rng(0)
    centres, which = rng.uniform(size=(60, 3)), rng.integers(60, size=1000)
    X = centres[which] + 0.06 * rng.normal(size=(1000, 3))
    return "euclidean", X, (np.arange(60) % 3)[which]


SETS: dict[str, Callable[[], tuple]] = {
    one.__name__: cache(one) for one in (peptides, digits, families, checkerboard, waves, islands)
}


def texts(n: int, n_classes: int, letters: str, length: int) -> tuple[list[str], np.ndarray]:
    """Return strings of many classes: copies of one string per class with a third replaced."""
    rng = np.random.default_rng(1)
    names = np.array(list(letters))
    groups = rng.integers(len(names), size=(1 + n_classes // 4, length))
    heads = groups[np.arange(n_classes) // 4].copy()
    away = rng.uniform(size=heads.shape) < 0.5
    heads[away] = rng.integers(len(names), size=away.sum())
    y = rng.permutation(np.arange(n) % n_classes)
    X = heads[y]
    errors = rng.uniform(size=X.shape) < 0.33
    X[errors] = rng.integers(len(names), size=errors.sum())
    sizes = rng.integers(length // 2, length + 1, size=n)
    return ["".join(names[one[:size]]) for one, size in zip(X, sizes, strict=True)], y


def many_classes() -> Outcome:
    X, y = texts(850, 110, "abcdefghijklmnopqrst", 14)
    return classified("levenshtein", X, y, 220)


def small_classes() -> Outcome:
    X, y = texts(520, 40, "abcdefghijklmnopqrst", 14)
    return classified("levenshtein", X, y, 200)


def ranks() -> Outcome:
    X, y = texts(700, 20, "abcdefghijklmnopqrst", 14)
    paths = np.array([f"g{c // 4};c{c}" for c in y])
    keep = y < 18  # new objects of unknown classes, one of them in a known group
    keep[-300:] = True
    return classified("levenshtein", [X[i] for i in np.flatnonzero(keep)], paths[keep], 300)


def hits() -> Outcome:
    from sklearn.neighbors import NearestNeighbors

    from krein import KreinClassifier

    _, X, y = SETS["islands"]()
    near = NearestNeighbors(n_neighbors=20).fit(X[:600])
    own, new = (near.kneighbors_graph(part, mode="distance") for part in (X[:600], X[600:]))
    own.setdiag(0)
    own.eliminate_zeros()
    model = KreinClassifier("precomputed-distance").fit(own, y[:600])
    return answered(model, new, y[600:])


def groups() -> Outcome:
    from krein import KreinClassifier

    measure, X, y = SETS["islands"]()
    X = np.repeat(X[:200], 3, axis=0) + 0.001 * np.random.default_rng(0).normal(size=(600, 3))
    model = KreinClassifier(measure).fit(X, np.repeat(y[:200], 3), groups=np.arange(600) // 3)
    return answered(model, SETS["islands"]()[1][600:], y[600:])


def few_objects() -> Outcome:
    measure, X, y = SETS["peptides"]()
    return classified(measure, X[:420], y[:420], 300)


def dna(**changed: float) -> Outcome:
    from krein.estimators import lookzero

    for name, value in changed.items():
        setattr(lookzero, name, value)
    X, y = texts(500, 10, "ACGT", 90)
    return classified("levenshtein", X, y, 200)


def foreign() -> Outcome:
    measure, X, y = SETS["families"]()
    rng = np.random.default_rng(0)
    strange = [
        "".join(rng.choice(list("ACGT" if n % 2 else "ACGTNDE"), size=n))
        for n in (1, 2, 4, 8, 15, 18, 19, 21, 25, 31, 41, 61, 99, 300, 900, 2001, 5001)
    ]
    X = [*X[:300], *strange]
    return classified(measure, X, np.append(y[:300], np.repeat(y[0], len(strange))), len(strange))


def rare_class() -> Outcome:
    measure, X, y = SETS["islands"]()
    keep = np.flatnonzero((y == 0) | ((y == 1) & (np.arange(len(y)) % 12 == 0)))
    return classified(measure, X[keep], y[keep], 100)


def equal_classes() -> Outcome:
    X, y = texts(220, 3, "abcdefgh", 10)
    rows = np.concatenate([np.flatnonzero(y == c)[:40] for c in range(3)])
    rows = np.append(rows, np.setdiff1d(np.arange(220), rows))
    return classified("levenshtein", [X[i] for i in rows], y[rows], 100)


def channels() -> Outcome:
    measure, X, y = waves(12)
    return classified(measure, X[:400], y[:400], 200)


def many_objects() -> Outcome:
    measure, X, y = checkerboard(12_400)
    return classified(measure, X, y, N_NEW)


def estimator(name: str, data: str, **options: Any) -> Outcome:
    measure, X, y = SETS[data]()
    return classified(measure, X, y, N_NEW, name, **options)


def large_estimator(name: str, **options: Any) -> Outcome:
    measure, X, y = checkerboard(5_800)
    return classified(measure, X, y, N_NEW, name, **options)


CASES: dict[str, Callable[[], Outcome]] = {
    "foreign objects": foreign,
    "IKFD, auto": partial(estimator, "IKFD", "islands", landmarks="auto"),
    "PCVM, many objects": partial(large_estimator, "PCVM", landmarks="auto"),
    "hits": hits,
    "groups": groups,
    "few objects": few_objects,
    "equal classes": equal_classes,
    "a rare class": rare_class,
    "ranks": ranks,
    "DNA": dna,
    "nearest n-grams": partial(dna, MOST_WORK=0.0),
    "small classes": small_classes,
    "IKFD": partial(
        estimator, "IKFD", "islands", n_landmarks=80, landmarks="stratified", calibrate=True
    ),
    "IKQD": partial(estimator, "IKQD", "islands", n_landmarks=40, landmarks="stratified"),
    "PCVM": partial(
        estimator, "PCVM", "checkerboard", n_landmarks=60, landmarks="stratified", calibrate=True
    ),
    "PCVM, many landmarks": partial(
        estimator, "PCVM", "islands", n_landmarks=90, landmarks="stratified"
    ),
    "PCVM, four classes": partial(
        estimator, "PCVM", "waves", n_landmarks=30, landmarks="stratified"
    ),
    "PCVM, published": partial(
        estimator, "PCVM", "islands", n_landmarks=60, landmarks="random", solver="paper"
    ),
    "channels": channels,
    "many objects": many_objects,
    "many classes": many_classes,
}
"""What the sets lack; the cheapest first."""
