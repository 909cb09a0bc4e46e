"""Forge every field of every part of a model, and load and use the result.

    python -m tests.attack.forger

There is a model for each kind of object, and the fields are those that the annotations declare
(`krein.model.schema`), so a new field is attacked as soon as a model has it. A forged model may be
refused when it is loaded. If it is loaded, it must give valid answers. Each field is tried in a
process of its own, which may take only a limited amount of memory and processor time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

MEMORY, PER_BYTE = 2**28, 100
"""Bytes that loading a forged model, and predictions for a few objects, may take: a constant, and a
multiple of the bytes of the model."""

SECONDS = 60
"""Processor time for all forgeries of a field, which take a fraction of a second."""

LONG = 10**6
"""Letters of a string that is too long."""

NUMBERS = (0, -1, 2**31, 2**40, 10**18, 1e308, float("nan"), float("inf"), float("-inf"))

# -- models of all kinds of objects ----------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A saved model as a tree, with objects to predict."""

    tree: dict[str, Any]
    new: Any


def _words(n: int) -> tuple[list[str], list[str]]:
    stems = ("haus", "house", "casa")
    letters = np.random.default_rng(0).choice(list("abcdeiou"), size=(n, 6))
    words = [stems[i % 3] + "".join(row[: 1 + i % 6]) for i, row in enumerate(letters)]
    return words, [("de", "en", "es")[i % 3] for i in range(n)]


def _series(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [np.cumsum(rng.normal(size=12 + i % 5)) + 3 * (i % 2) for i in range(n)]


def _of_words() -> tuple[Any, Any]:
    from krein import KreinClassifier

    words, languages = _words(150)
    clf = KreinClassifier("levenshtein", n_landmarks=8).fit(words, languages)
    clf.model_ = clf.model_.with_names(words)
    return clf, words[:5]


def _of_many_classes() -> tuple[Any, Any]:
    """Return the model of words with the head that is used if there are many classes."""
    from krein.model.heads import NeighbourHead

    clf, new = _of_words()
    words, languages = _words(90)
    first = clf.model_.heads[0]
    codes = np.searchsorted(clf.classes_, languages)
    F = first.features(words)
    head = NeighbourHead.of(first.features, F, codes, np.ones(90), 3, first.directions)
    clf.model_ = replace(clf.model_, heads=(head, *clf.model_.heads[1:]))
    return clf, new


def _of_series() -> tuple[Any, Any]:
    from krein import KreinClassifier

    series = _series(60)
    return KreinClassifier("msm", n_landmarks=8).fit(series, np.arange(60) % 2), series[:5]


def _of_images() -> tuple[Any, Any]:
    from sklearn.datasets import load_digits

    from krein import KreinClassifier

    X, y = load_digits(n_class=3, return_X_y=True)
    images = X[:90].reshape(-1, 8, 8)
    return KreinClassifier("tangent", n_landmarks=8).fit(images, y[:90]), images[:5]


def _of_receptors() -> tuple[Any, Any]:
    from krein import KreinClassifier

    rng, motifs = np.random.default_rng(0), ("CASSIRSSYEQYF", "CASSPGQGNYGYTF")
    some = []
    for i in range(60):
        letters, genes = list(motifs[i % 2]), ("TRBV19*01", "TRBV7-9*01")
        letters[4 + i % 5] = str(rng.choice(list("ADGLPS")))
        some.append(f"{genes[i % 2]} {''.join(letters)}")
    return KreinClassifier("tcrdist", n_landmarks=8).fit(some, np.arange(60) % 2), some[:5]


@cache
def _iris() -> tuple[Any, Any]:
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    return X[::2], y[::2]


def _of_vectors(make: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, Any]:
    X, y = _iris()
    return make(*args, **options).fit(X, y), X[:5]


def _of_frames() -> tuple[Any, Any]:
    """Return a model of vectors with named columns, and weights of the objects."""
    import pandas as pd

    from krein import IKFD

    X, y = _iris()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    weights = np.linspace(0.5, 1.5, len(y))
    return IKFD("manhattan", random_state=0).fit(frame, y, sample_weight=weights), frame[:5]


def _of_values() -> tuple[Any, Any]:
    from krein import KreinClassifier

    X, y = _iris()
    D = np.abs(X[:, None] - X[None]).sum(axis=2)
    return KreinClassifier("precomputed-distance", n_landmarks=8).fit(D, y), D[:5]


def _of_hits() -> tuple[Any, Any]:
    """Return a model of a graph of neighbours."""
    from sklearn.neighbors import KNeighborsTransformer

    from krein import KreinClassifier

    X, y = _iris()
    graph = KNeighborsTransformer(mode="distance", n_neighbors=12).fit_transform(X)
    return KreinClassifier("precomputed-distance").fit(graph, y), graph[:5]


def _of_ranks() -> tuple[Any, Any]:
    """Return a model whose labels are paths of a taxonomy."""
    from krein import KreinClassifier

    words, languages = _words(60)
    paths = [f"{language};{len(word) % 3}" for word, language in zip(words, languages, strict=True)]
    return KreinClassifier("levenshtein", n_landmarks=8).fit(words, paths), words[:5]


def _of_records() -> tuple[Any, Any]:
    from krein import KreinClassifier
    from krein.measures import Combined

    words, languages = _words(60)
    X, _ = _iris()
    records = [
        {"word": w, "x": x, "y": y} for w, (x, y) in zip(words, X[:60, :2].tolist(), strict=True)
    ]
    both = Combined({"word": "levenshtein", "place": ("euclidean", ["x", "y"])}, [1, 0.5])
    return KreinClassifier(both, n_landmarks=8).fit(records, languages), records[:5]


def _makers() -> dict[str, Callable[[], tuple[Any, Any]]]:
    from functools import partial

    from krein import (
        IKFD,
        IKQD,
        PCVM,
        IndefiniteKernelPCA,
        KreinClassifier,
        NystromMap,
        PseudoEuclideanEmbedding,
    )

    vectors = partial(partial, _of_vectors)
    return {
        "strings": _of_words,
        "many classes": _of_many_classes,
        "series": _of_series,
        "images": _of_images,
        "receptors": _of_receptors,
        "vectors": vectors(KreinClassifier, "manhattan", n_landmarks=8),
        "precomputed": _of_values,
        "records": _of_records,
        "hits": _of_hits,
        "ranks": _of_ranks,
        "IKFD": vectors(IKFD, "manhattan", random_state=0, calibrate=True),
        "data frames": _of_frames,
        "IKQD": vectors(IKQD, "elm", random_state=0),
        "PCVM": vectors(PCVM, "elm", random_state=0, calibrate=True),
        "PCVM of pairs": vectors(PCVM, "elm", solver="paper", random_state=0),
        "NystromMap": vectors(NystromMap, "manhattan", rank=2, random_state=0),
        "embedding": vectors(PseudoEuclideanEmbedding, "elm", n_components=2, random_state=0),
        "PCA": vectors(IndefiniteKernelPCA, "elm", n_components=2, random_state=0),
    }


KINDS = tuple(_makers())


@cache
def kind_of(name: str) -> Kind:
    """Return the model of a kind of objects, as if it were read from a file."""
    from krein.model.file import from_tree, to_tree

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator, new = _makers()[name]()
        tree = to_tree(estimator)
        assert answers(from_tree(tree), new) is None  # so that it is the forgery that is refused
    return Kind(tree, new)


# -- the fields of a model -------------------------------------------------------------------------


ESTIMATOR = "estimator"
"""The owner of fitted attributes, most of which all estimators share."""


@dataclass(frozen=True)
class Place:
    """A field of a part of a model: the path in the tree of its fitted attributes."""

    path: tuple[Any, ...]
    owner: str  # the class that declares it
    field: str

    def __str__(self) -> str:
        return ".".join(str(step) for step in self.path if step != "fields")


def places(tree: dict[str, Any]) -> Iterator[tuple[Place, Any]]:
    """Yield every field of every part of a model that has a value, and the value."""
    yield from _places(tree["fitted"], ESTIMATOR, ())


def _places(fields: dict[str, Any], owner: str, path: tuple[Any, ...]) -> Iterator[Any]:
    for name, value in fields.items():
        yield from _below(value, Place((*path, name), owner, name))


def _below(value: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    if value is None:
        return
    yield place, value
    if isinstance(value, list):
        for i, item in enumerate(value[:3]):
            if isinstance(item, dict):
                yield from _below(item, replace(place, path=(*place.path, i)))
    elif isinstance(value, dict) and "class" in value:
        yield from _places(value["fields"], value["class"], (*place.path, "fields"))
    elif isinstance(value, dict) and "measure" in value:
        for name in value["params"] or ():
            yield Place((*place.path, "params", name), "Measure", name), value["params"][name]


def declared() -> set[tuple[str, str]]:
    """Return the class and the name of every field that the annotations declare."""
    from krein.model import ESTIMATORS, find_estimator
    from krein.model.schema import fields_of

    return {
        (ESTIMATOR if cls is estimator else cls.__name__, name)
        for estimator in map(find_estimator, ESTIMATORS)
        for cls, name in fields_of(estimator)
    }


# -- forgeries -------------------------------------------------------------------------------------


def forged(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a field is replaced by, and how it is called."""
    yield "none", None
    if isinstance(value, np.ndarray):
        yield from _forged_array(value)
    elif isinstance(value, bool):
        yield "the opposite", not value
    elif isinstance(value, int | float):
        yield from ((str(number), number) for number in NUMBERS)
        yield "as a float", float(value)
    elif isinstance(value, str):
        yield "empty", ""
        yield "doubled", 2 * value
        yield "long", value * (LONG // max(1, len(value)))
    elif isinstance(value, list):
        yield "empty", []
        yield "doubled", value * 2
        yield "permuted", value[::-1]
        if value and not isinstance(value[0], dict):
            for how, item in forged(value[0]):
                yield f"first {how}", [item, *value[1:]]
    elif isinstance(value, dict):
        yield "empty", {}


def _forged_array(value: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    yield "empty", value[:0]
    yield "doubled", np.concatenate([value, value])
    yield "permuted", rng.permutation(value)
    yield "reversed", value[::-1]
    if value.ndim > 1:
        yield "wide", np.empty((0, 2**40, *value.shape[2:]), dtype=value.dtype)
        yield "columns empty", value[:, :0]
        yield "columns doubled", np.concatenate([value, value], axis=1)
        yield "columns permuted", value[:, ::-1]
    if value.dtype == object:
        for how, item in forged(value[0]):
            one = np.empty(len(value), dtype=object)
            one[:] = [item, *value[1:]]
            yield f"first {how}", one
        return
    if value.dtype.kind not in "iuf" or not value.size:
        return
    for number in NUMBERS:
        if value.dtype.kind != "f":
            if number != number or abs(number) > 10**18:
                continue
            limits = np.iinfo(value.dtype)
            number = min(max(int(number), limits.min), limits.max)
        with np.errstate(over="ignore"):
            everywhere = np.full_like(value, number)
        yield f"all {number}", everywhere
        for where, i in (("first", 0), ("middle", value.size // 2), ("last", -1)):
            one = value.copy()
            one.flat[i] = everywhere.flat[i]
            yield f"{where} {number}", one


def replaced(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a tree with another value at a path."""
    if not path:
        return value
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[path[0]] = replaced(tree[path[0]], path[1:], value)
    return copy


def size_of(tree: Any) -> int:
    """Return the bytes of a tree, roughly."""
    if isinstance(tree, np.ndarray) and tree.dtype != object:
        return tree.nbytes
    if isinstance(tree, dict | list | tuple | np.ndarray):
        items = tree.values() if isinstance(tree, dict) else tree
        return 8 + sum(map(size_of, items))
    return len(tree) if isinstance(tree, str | bytes) else 8


# -- attacks ---------------------------------------------------------------------------------------


def answers(model: Any, new: Any) -> str | None:
    """Return what is wrong with the answers of a model; None if nothing is."""
    if hasattr(model, "transform"):
        return None if np.isfinite(model.transform(new)).all() else "vectors that are not finite"
    if model.model_.reference is None:
        P = model.predict_proba(new)
    else:
        found = model.assess(new, coverage=0.9, evidence=3)
        P = found["probabilities"]
        for name in ("novelty", "doubt", "chance"):
            if not ((found[name] >= 0) & (found[name] <= 1)).all():
                return f"{name} is not a p-value"
    if not (np.isfinite(P).all() and (P >= 0).all() and np.allclose(P.sum(axis=1), 1)):
        return "its probabilities are not probabilities"
    return None


def attack(tree: dict[str, Any], new: Any) -> str:
    """Load a forged model and use it; return the outcome: refused, answers, or what went wrong."""
    from krein.model.file import from_tree

    try:
        model = from_tree(tree)
    except MemoryError:
        return "memory"
    except Exception:  # `load` turns it into a `ModelFileError`
        return "refused"
    try:
        wrong = answers(model, new)
    except MemoryError:
        return "memory"
    except Exception as error:
        if str(error).startswith("The feature names should match"):
            return "refused"  # scikit-learn: the columns are not those of the fit
        return f"loaded, but {type(error).__name__}: {' '.join(str(error).split())[:120]}"
    return "answers" if wrong is None else f"loaded, but {wrong}"


@dataclass(frozen=True)
class Case:
    """A forgery and its outcome."""

    kind: str
    place: Place
    how: str
    outcome: str

    def __str__(self) -> str:
        return f"{self.kind}, {self.place} {self.how}: {self.outcome}"


def attack_field(name: str, place: Place, every: int = 1, first: int = 0) -> list[Case]:
    """Try forgeries of a field, in a child of this process; every `every`-th, from the `first`."""
    kind = kind_of(name)
    value = kind.tree["fitted"]
    for step in place.path:
        value = value[step]
    tries = list(forged(value))[first % every :: every]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with contextlib.suppress(BaseException):
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
            now = _address_space()
            with os.fdopen(writer, "w") as report, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for how, wrong in tries:
                    tree = replaced(kind.tree, ("fitted", *place.path), wrong)
                    if now is not None:
                        most = now + MEMORY + PER_BYTE * size_of(tree)
                        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
                    print(json.dumps([how, attack(tree, kind.new)]), file=report, flush=True)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as report:
        found = [Case(name, place, *json.loads(line)) for line in report]
    _, status = os.waitpid(child, 0)
    if len(found) < len(tries):  # the process was ended
        code = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        how = "too slow" if code in (signal.SIGXCPU, signal.SIGKILL) else f"signal {code}"
        found.append(Case(name, place, tries[len(found)][0], how))
    return found


def _address_space() -> int | None:
    """Return the bytes that this process has mapped; None where memory cannot be limited."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return None


ALLOWED = ("refused", "answers")


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.attack.forger")
    parser.add_argument("--kind", choices=KINDS, action="append")
    options = parser.parse_args()
    wrong, total = 0, 0
    for name in options.kind or KINDS:
        counts: Counter[str] = Counter()
        for place, _ in places(kind_of(name).tree):
            for case in attack_field(name, place):
                counts[case.outcome if case.outcome in ALLOWED else "failed"] += 1
                if case.outcome not in ALLOWED:
                    print(case, flush=True)
        print(f"{name}: {dict(counts)}", flush=True)
        wrong, total = wrong + counts["failed"], total + counts.total()
    print(f"{total:,} forged models: {wrong} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
