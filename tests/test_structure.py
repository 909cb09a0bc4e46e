"""Limits that keep the code readable: short walks, no cycles, small files and small classes."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.walk import walks

SRC = Path(__file__).parents[1] / "src"
FILES = sorted((SRC / "krein").rglob("*.py"))

LONGEST_FILE = 350
MOST_METHODS = 10

FACADES = {
    "ModelResult": "the figures of a model, as reports read them",
    "FittedClassifier": "all predictions of a classifier",
    "FittedTwoLooks": "all predictions of a two-look model",
    "Measure": "the protocol of measures, as users subclass it",
    "Precomputed": "a measure, with all of the protocol",
    "NystromMatrix": "a linear operator, as users call it",
}
"""Classes with more methods, and what they give access to."""

# The road leaves out core/, which contains the mathematics, one algorithm per file.
WALKS = {
    "fit in memory": (17, 36),
    "fit from a file": (24, 43),
    "fit on Dask": (24, 43),
    "predict_proba": (9, 11),
}
"""The maximum number of modules: on the road, and in total."""


def name_of(path):
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path) for path in FILES}


def imported(path):
    """Modules of krein that a file imports when it is loaded, or for type checking."""
    own = name_of(path)
    package = own if path.name == "__init__.py" else own.rpartition(".")[0]
    found = set()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    todo = list(ast.parse(path.read_text("utf-8")).body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            inside = {f"{base}.{alias.name}" for alias in node.names}
            modules = inside & NAMES
            # names from a package's __init__ need that file; modules of the package do not
            found |= modules if len(modules) == len(inside) else modules | {base}
        elif not isinstance(node, functions):
            todo += ast.iter_child_nodes(node)
    return (found & NAMES) - {own}


def methods_of(node):
    named = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
    return {name for name in named if not name.startswith("__")}


def test_no_cycle_among_modules():
    needs = {name_of(path): imported(path) for path in FILES}
    assert sum(map(len, needs.values())) > 300  # the search finds imports
    while free := {name for name, wanted in needs.items() if not wanted & needs.keys()}:
        for name in free:
            del needs[name]
    assert not needs, f"these import each other: {sorted(needs)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_files_and_classes_are_small(path):
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    assert len(text.splitlines()) <= LONGEST_FILE
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name not in FACADES:
            assert len(methods_of(node)) <= MOST_METHODS, node.name


def test_a_class_name_means_one_thing():
    """A chunk of a file and a chunk of a data set are the same objects, without and with codes."""
    names = Counter(
        node.name
        for path in FILES
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, number in names.items() if number > 1} <= {"Chunk"}


def test_every_facade_needs_its_exception():
    large = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and len(methods_of(node)) > MOST_METHODS:
                large.add(node.name)
    assert large == set(FACADES)


def test_a_reader_passes_few_modules():
    for name, walk in walks().items():
        road, everything = WALKS[name]
        assert len(walk.road) <= road, (name, sorted(walk.road))
        assert len(walk.modules) <= everything, (name, sorted(walk.modules))
        assert any(module.startswith("core/") for module in walk.modules)


def test_types_are_shipped():
    assert (SRC / "krein" / "py.typed").exists()
