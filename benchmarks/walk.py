"""Count what a reader meets when following a call through krein, and the size of its source.

A profiler hook notes every function of krein that runs during a call, on all threads of this
process, `core` included. A class is *met* if a function written in its body runs: not if only
Python looks at it, as `isinstance` does at abstract classes. Classes that only carry values, and of
which nothing but the generated constructor runs, are counted separately. Calls are followed in
memory, from a file and on Dask. The figures are for readers of a change; no test limits them.
"""

from __future__ import annotations

import ast
import io
import sys
import tempfile
import threading
import tokenize
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import krein
from krein import IKFD, IKQD, PCVM, KreinClassifier
from krein.data import opening
from krein.io import open_source

from .timing import row

ROOT = Path(krein.__file__).parent


@dataclass(frozen=True)
class Walk:
    """The functions that ran during a call, as (module, qualified name), and what they made."""

    passed: frozenset[tuple[str, str]]
    made: frozenset[str]
    """Classes of which a generated constructor ran."""

    @property
    def modules(self) -> set[str]:
        """Modules, as paths below `krein`."""
        return {module for module, _ in self.passed}

    @property
    def classes(self) -> set[str]:
        """Classes whose own code ran, as "module.Class"."""
        owned = {
            (module, *qualified.split("."))
            for module, qualified in self.passed
            if "." in qualified and qualified.split(".")[1] != "<locals>"
        }
        return {f"{dotted(module)}.{name}" for module, name, *_ in owned}

    @property
    def records(self) -> set[str]:
        """Classes that only carry values."""
        return set(self.made) - self.classes


def dotted(module: str) -> str:
    """Return the name of a module from its path below `krein`."""
    return module.removesuffix(".py").replace("/", ".")


def follow(call: Callable[[], Any]) -> Walk:
    """Return the functions that run during `call`."""
    passed: set[tuple[str, str]] = set()
    made: set[str] = set()

    def hook(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call":
            return
        if code.co_filename == "<string>" and code.co_name in ("__init__", "__new__"):
            first = frame.f_locals[code.co_varnames[0]]
            kind = first if isinstance(first, type) else type(first)
            if kind.__module__.startswith("krein."):
                made.add(f"{kind.__module__.removeprefix('krein.')}.{kind.__name__}")
        # a reader does not count module bodies and comprehensions as functions
        elif code.co_filename.startswith(str(ROOT)) and not code.co_name.startswith("<"):
            module = Path(code.co_filename).relative_to(ROOT).as_posix()
            passed.add((module, code.co_qualname))

    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return Walk(frozenset(passed), frozenset(made))


def sequences(n: int) -> tuple[list[str], np.ndarray]:
    """Return random sequences of two classes with different letters."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    alphabet = np.array(
        [list("ACDEFGHIKLMNPQRSTVWY" + half) for half in ("ACDEFGHIKL", "MNPQRSTVWY")]
    )
    letters = rng.integers(0, alphabet.shape[1], (n, 20))
    return ["".join(alphabet[c, part]) for c, part in zip(y, letters, strict=True)], y


def walks() -> dict[str, Walk]:
    """Return the walks of `fit` in memory, from a file and on Dask, and of `predict_proba`."""
    import dask.bag as db

    seqs, y = sequences(250)
    found = {}
    for cls in (IKFD, IKQD, PCVM, KreinClassifier):

        def fit(X: Any, labels: Any = None, cls: Any = cls) -> Any:
            return cls("smith-waterman", random_state=0).fit(X, labels)

        name = cls.__name__
        model = fit(seqs, y)  # imports and compilation are not part of the walk
        found[f"{name}.fit in memory"] = follow(lambda fit=fit: fit(seqs, y))
        most = opening.IN_MEMORY_OBJECTS
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "sequences.csv")
            lines = [f"{s},{c}" for s, c in zip(seqs, y, strict=True)]
            path.write_text("\n".join(["sequence,label", *lines]) + "\n")
            source = open_source(path, objects="sequence", labels="label")
            opening.IN_MEMORY_OBJECTS = 100  # forces reading in chunks
            try:
                found[f"{name}.fit from a file"] = follow(lambda fit=fit, s=source: fit(s))
            finally:
                opening.IN_MEMORY_OBJECTS = most
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bag = db.from_sequence(seqs, npartitions=3)
            found[f"{name}.fit on Dask"] = follow(lambda fit=fit, bag=bag: fit(bag, y))
        found[f"{name}.predict_proba"] = follow(lambda m=model: m.predict_proba(seqs[:20]))
    return found


BRANCHES = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.BoolOp, ast.comprehension)


def functions(files: list[Path]) -> list[tuple[str, int, int]]:
    """Return the name, the number of lines and the cyclomatic complexity of each function."""
    found = []
    for path in files:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                within = [part for part in ast.walk(node) if isinstance(part, BRANCHES)]
                more = sum(len(p.values) - 2 for p in within if isinstance(p, ast.BoolOp))
                doc = ast.get_docstring(node, clean=False) or ""
                length = (node.end_lineno or 0) - node.lineno + 1 - len(doc.splitlines())
                name = f"{path.relative_to(ROOT).as_posix()} {node.name}"
                found.append((name, length, 1 + len(within) + more))
    return found


def top(rows: list[tuple[str, int, int]], column: int) -> str:
    """Return the ten functions with the largest figure in a column."""
    largest = sorted(rows, key=lambda one: -int(one[column]))[:10]
    return ", ".join(f"{one[0]} {one[column]}" for one in largest)


def code_lines(path: Path) -> int:
    """Return the number of lines with code: no blanks, comments or docstrings."""
    text = path.read_text("utf-8")
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
               tokenize.ENDMARKER}  # fmt: skip
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", [])
        for part in body if isinstance(body, list) else []:
            alone = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
            if alone and isinstance(part.value.value, str):
                lines -= set(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    return len(lines)


def n_classes(path: Path) -> int:
    """Return the number of classes in a file, nested ones included."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return sum(isinstance(node, ast.ClassDef) for node in nodes)


def run() -> list[dict]:
    files = sorted(ROOT.rglob("*.py"))
    names = Counter(path.name for path in files if path.name != "__init__.py")
    towers = {
        cls.__name__: sum(base.__module__.startswith("krein.") for base in cls.__mro__)
        for cls in (IKFD, IKQD, PCVM, KreinClassifier)
    }
    repeated, made = sorted(name for name, n in names.items() if n > 1), functions(files)
    rows = [
        row("files", len(files), "", unit=""),
        row("code lines", sum(map(code_lines, files)), "", unit=""),
        row("classes", sum(map(n_classes, files)), "", "nested ones included", unit=""),
        row("longest function", max(one[1] for one in made), "", top(made, 1), unit="lines"),
        row("highest complexity", max(one[2] for one in made), "", top(made, 2), unit=""),
        row("file names used twice", len(repeated), "", ", ".join(repeated), unit=""),
        row("krein classes in an MRO", max(towers.values()), "", str(towers), unit=""),
    ]
    for name, walk in walks().items():
        rows.append(
            row(
                name,
                len(walk.classes),
                "",
                f"classes, and {len(walk.records)} that only carry values; {len(walk.passed)} "
                f"functions in {len(walk.modules)} modules: {', '.join(sorted(walk.classes))}; "
                f"values: {', '.join(sorted(walk.records))}",
                unit="",
            )
        )
    return rows
