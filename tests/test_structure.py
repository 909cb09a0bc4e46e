"""What keeps the code readable: no cycles among modules, and one meaning for each class name."""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

from tests.lowest import lowest

SRC = Path(__file__).parents[1] / "src"
FILES = sorted((SRC / "krein").rglob("*.py"))


@cache
def parsed(path):
    return ast.parse(path.read_text("utf-8"))


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
    todo = list(parsed(path).body)
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


def test_no_cycle_among_modules():
    needs = {name_of(path): imported(path) for path in FILES}
    assert sum(map(len, needs.values())) > 150  # the search finds imports
    while free := {name for name, wanted in needs.items() if not wanted & needs.keys()}:
        for name in free:
            del needs[name]
    assert not needs, f"these import each other: {sorted(needs)}"


def test_a_public_name_means_one_thing():
    """No two modules define a class or a function of the same name; `command` is each command's."""
    names = Counter(
        node.name
        for path in FILES
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    )
    assert {name for name, number in names.items() if number > 1} == {"command"}


def test_each_dependency_states_its_lowest_version():
    pins = lowest((SRC.parent / "pyproject.toml").read_text("utf-8"))
    assert any(pin.startswith("scikit-learn==") for pin in pins)
    assert all("==" in pin.partition(";")[0] for pin in pins)


def test_types_are_shipped():
    assert (SRC / "krein" / "py.typed").exists()
