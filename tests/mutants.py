"""Single changes to a Python file that alter what it computes."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

SWAPPED: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.Div(),
    ast.Div: ast.Mult(),
    ast.Pow: ast.Mult(),
    ast.FloorDiv: ast.Mult(),
    ast.Mod: ast.FloorDiv(),
    ast.BitAnd: ast.BitOr(),
    ast.BitOr: ast.BitAnd(),
}
NEGATED: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.GtE(),
    ast.GtE: ast.Lt(),
    ast.Gt: ast.LtE(),
    ast.LtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}
_PAIRS = ("min max", "minimum maximum", "argmin argmax", "any all", "sum mean", "floor ceil")
EXCHANGED = {a: b for pair in _PAIRS for a, b in [pair.split(), pair.split()[::-1]]}
DROPPED = {"sqrt", "abs", "clip", "exp", "log", "minimum", "maximum", "max", "min"}
"""Functions that may be replaced by their first argument."""
MODULES = {"np", "math", "scipy", "linalg", "special"}
HARMLESS_KEYWORDS = {"check_finite", "overwrite_a", "overwrite_b", "copy", "stacklevel", "strict"}
HARMLESS_KEYWORDS |= {"frozen", "slots", "repr", "init", "compare", "kw_only", "order"}
"""Arguments that change no result."""
TYPES = {"NDArray", "Literal", "Callable", "tuple", "dict", "list"}
HARMLESS_CALLS = {"warn", "simplefilter", "filterwarnings", "info", "debug", "warning"}
HARMLESS_FUNCTIONS = {"__repr__", "__str__", "__sklearn_tags__"}

Change = tuple[str, ast.expr | None]
"""The kind of a change, and the new expression; None removes a statement. A constant of a module
(a tolerance, a size, a limit) is of the kind "tuning": another value is another choice, not an
error."""


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, the text of the node before and after, and the lines concerned."""

    file: str
    function: str
    kind: str
    before: str
    after: str
    span: tuple[int, int]
    lines: tuple[int, ...]
    at_import: bool
    occurrence: int
    state: str

    @property
    def name(self) -> str:
        """What changes, without line numbers."""
        again = f" #{self.occurrence}" if self.occurrence else ""
        place = self.file.removeprefix("src/krein/")
        return f"{place} {self.function}: {self.before} → {self.after}{again}"

    @property
    def key(self) -> str:
        """A short name that changes with the text of the file."""
        return hashlib.sha256(f"{self.name}\0{self.state}".encode()).hexdigest()[:16]

    def apply(self, text: str) -> str:
        """Return the mutated text of the file."""
        raw = text.encode()
        start, end = self.span
        after = self.after if self.kind == "statement" else f"({self.after})"
        return (raw[:start] + after.encode() + raw[end:]).decode()


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _is_type(node: ast.expr) -> bool:
    """Whether an expression is a type: a subscripted one, or a union with one."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitOr) and any(map(_is_type, (node.left, node.right)))
    return isinstance(node, ast.Subscript) and getattr(node.value, "id", "") in TYPES


def _numbers(node: ast.Constant) -> Iterator[Change]:
    value = node.value
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, int):
        yield "constant", ast.Constant(value + 1 if value < 4 else 2 * value)
    elif isinstance(value, float):
        new = 2 * value if value else 1.0
        if value > 1e3 or 0 < value < 1e-3:  # a limit or a tolerance: doubling it changes little
            new = value * (1e6 if value < 1 else 1e-6)
        yield "constant", ast.Constant(new)


def _operations(node: ast.BinOp) -> Iterator[Change]:
    if type(node.op) in SWAPPED and not _is_text(node):
        yield "operator", ast.BinOp(node.left, SWAPPED[type(node.op)], node.right)
        yield "drop", node.left


def _calls(node: ast.Call) -> Iterator[Change]:
    name = _called(node)
    owner = getattr(node.func, "value", None)
    if name in EXCHANGED:
        if isinstance(node.func, ast.Attribute):
            new: ast.expr = ast.Attribute(node.func.value, EXCHANGED[name], ast.Load())
        else:
            new = ast.Name(EXCHANGED[name], ast.Load())
        yield "function", ast.Call(new, node.args, node.keywords)
    if name in DROPPED:
        if owner is not None and getattr(owner, "id", "") not in MODULES:
            if name == "clip":
                yield "drop", owner
        elif node.args and not (name in {"max", "min"} and len(node.args) < 2):
            yield "drop", node.args[0]


def _expressions(node: ast.expr) -> Iterator[Change]:
    """Yield possible replacements of an expression."""
    if isinstance(node, ast.Constant):
        yield from _numbers(node)
    elif isinstance(node, ast.BinOp):
        yield from _operations(node)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        yield "drop", node.operand
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "condition", ast.BoolOp(other, node.values)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield "comparison", ast.Compare(node.left, [NEGATED[type(node.ops[0])]], node.comparators)


def _conditions(node: ast.AST) -> list[ast.expr]:
    """Return the conditions that changing a comparison or a connective would not negate."""
    found = list(getattr(node, "ifs", []))
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        found.append(node.test)
    covered = (ast.Compare, ast.BoolOp, ast.UnaryOp)
    return [test for test in found if not isinstance(test, covered)]


def _removable(node: ast.stmt) -> bool:
    """Whether the rest still runs without a statement: an update, an entry, a bare call."""
    if isinstance(node, ast.AugAssign):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    if isinstance(node, ast.Assign):
        used = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
        return all(
            isinstance(target, ast.Subscript) or getattr(target, "id", "") in used
            for target in node.targets
        )
    return False


def _changes_nothing(node: ast.AST) -> bool:
    """Whether a node cannot change a result: messages, declarations, and code for errors."""
    if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr):
        return True
    if isinstance(node, ast.Expr):
        called = _called(node.value) if isinstance(node.value, ast.Call) else ""
        return isinstance(node.value, ast.Constant) or called in HARMLESS_CALLS
    if isinstance(node, ast.If):
        last = node.body[-1]
        checking = getattr(node.test, "id", "") == "TYPE_CHECKING"
        return checking or isinstance(last, ast.Raise) or _changes_nothing(last)
    if isinstance(node, ast.keyword):
        return node.arg in HARMLESS_KEYWORDS
    if isinstance(node, ast.Assign):
        return _is_type(node.value)
    return isinstance(node, ast.FunctionDef) and node.name in HARMLESS_FUNCTIONS


class _Walk:
    """All mutants of a file, in the order of its text."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        self.starts = [0]
        for line in text.encode().splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.state = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.seen: Counter[tuple[str, str, str]] = Counter()
        self.found: list[Mutant] = []
        self._visit(ast.parse(text), "", None, ())

    def _add(
        self, node: ast.expr | ast.stmt, change: Change, place: str, owner: tuple[int, ...]
    ) -> None:
        kind, new = change
        if kind == "constant" and not place:
            kind = "tuning"
        before, after = ast.unparse(node), "pass" if new is None else ast.unparse(new)
        if before == after:
            return
        start, end = (
            self.starts[line - 1] + column
            for line, column in [
                (node.lineno, node.col_offset),
                (node.end_lineno or node.lineno, node.end_col_offset or 0),
            ]
        )
        lines = owner or tuple(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        identity = (place, before, after)
        self.found.append(
            Mutant(
                self.file,
                place or "module",
                kind,
                before,
                after,
                (start, end),
                lines,
                bool(owner) or not place or (place[:1].isupper() and "." not in place),
                self.seen[identity],
                self.state,
            )
        )
        self.seen[identity] += 1

    def _visit(
        self, node: ast.AST, place: str, statement: ast.stmt | None, owner: tuple[int, ...]
    ) -> None:
        if _changes_nothing(node):
            if isinstance(node, ast.If):
                for part in node.orelse:
                    self._visit(part, place, part, owner)
            return
        if isinstance(node, ast.stmt):
            statement = node
            if _removable(node):
                self._add(node, ("statement", None), place, owner)
        if isinstance(node, ast.expr):
            for change in _expressions(node):
                self._add(node, change, place, owner)
        for test in _conditions(node):
            self._add(test, ("condition", ast.UnaryOp(ast.Not(), test)), place, owner)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            inside = f"{place}.{node.name}" if place else node.name
            if isinstance(node, ast.FunctionDef):
                body = tuple(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
                for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
                    self._visit(default, inside, statement, body)
            for part in node.body:
                self._visit(part, inside, part, ())
            return
        annotation = getattr(node, "annotation", None)
        for child in ast.iter_child_nodes(node):
            if child is not annotation:
                self._visit(child, place, statement, owner)


def mutants_of(file: str, text: str) -> list[Mutant]:
    """Return every mutation of a file."""
    return _Walk(file, text).found


def spread(candidates: dict[str, list[Mutant]], count: int, seed: int) -> list[Mutant]:
    """Draw mutants, at most one per line, in proportion to the lines that can be mutated.

    Their order is random, so the first n of them are a sample as well.
    """
    lines: dict[tuple[str, int], list[Mutant]] = defaultdict(list)
    for file, mutants in candidates.items():
        for mutant in mutants:
            lines[file, mutant.span[0] if mutant.at_import else mutant.lines[0]].append(mutant)
    of_file: dict[str, list[list[Mutant]]] = defaultdict(list)
    for (file, _), mutants in sorted(lines.items()):
        of_file[file].append(mutants)
    shares = {file: count * len(found) / len(lines) for file, found in of_file.items()}
    quota = {file: int(share) for file, share in shares.items()}
    for file in sorted(shares, key=lambda file: quota[file] - shares[file]):
        if sum(quota.values()) < count:
            quota[file] += 1
    drawn = []
    for file, found in sorted(of_file.items()):
        random = Random(f"{seed} {file}")
        drawn += [random.choice(line) for line in random.sample(found, quota[file])]
    Random(seed).shuffle(drawn)
    return drawn
