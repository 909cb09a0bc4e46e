"""A plain Python function of two objects as a measure."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from .base import Array, Kind, Measure, Objects, PairError, take
from .contents import fingerprint
from .frames import unframed


@dataclass(frozen=True)
class FunctionMeasure(Measure):
    """`function(a, b)` → number, called once a pair.

    `kind` says whether a larger value means more alike ("similarity") or less
    ("dissimilarity"); `psd` whether it is known to be positive semi-definite. The function has
    to be symmetric: `krein.compare.open_pairs` tries that on a few pairs, and averages both
    directions where it is asked to. Where several processes share the work the function is
    sent to them, so it may be a lambda or a closure, but everything it needs travels along.

    Examples
    --------
    >>> from krein.measures.function import FunctionMeasure
    >>> shared = FunctionMeasure(lambda a, b: len(set(a) & set(b)))
    >>> shared.block(["house"], ["mouse", "maus"])
    array([[4., 2.]])
    """

    function: Callable[[Any, Any], float]
    # the user knows these, the class cannot
    kind: Kind = field(default="similarity", kw_only=True)  # type: ignore[misc]
    psd: bool | None = field(default=None, kw_only=True)  # type: ignore[misc]

    name = "function"
    one_direction = False
    block_pairs = 2**12

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in ("similarity", "dissimilarity"):
            raise ValueError(f"kind is 'similarity' or 'dissimilarity'; got {self.kind!r}")

    def check(self, objects: Any) -> Objects:
        """Return an array or a list of the objects, whatever they are."""
        if isinstance(objects, str | bytes) or not hasattr(objects, "__len__"):
            raise TypeError(f"objects come as a list or an array; got {type(objects).__name__}")
        objects = unframed(objects)
        if isinstance(objects, np.ndarray):
            if objects.ndim == 0:
                raise TypeError("objects come as a list or an array; got a single value")
            return objects
        return list(objects)

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the values; a `PairError` says for which pair the function failed."""
        values = np.empty((len(A), len(B)))
        for i, a in enumerate(A):
            for j, b in enumerate(B):
                values[i, j] = self._value(a, b, i, j)
        return values

    def diagonal(self, A: Objects) -> Array:
        """Return function(a, a) for every object."""
        return np.array([self._value(a, a, i, i) for i, a in enumerate(A)], dtype=np.float64)

    def check_symmetry(self, objects: Objects, symmetrize: bool) -> tuple[Objects, int]:
        """Try the function on up to 8 pairs in both directions, which are counted."""
        if symmetrize:
            return objects, 0
        spent, asymmetry = sample_symmetry(self, objects)
        if asymmetry:
            raise ValueError(
                f"the function {self.called()} is not symmetric: {asymmetry}; "
                "symmetrize=True takes the average of both, at twice the comparisons"
            )
        return objects, spent

    def params(self) -> dict[str, Any]:
        """Return the parameters; the function stands there as its name and a fingerprint.

        Raises a `TypeError` where the function holds what cannot be recognised by its contents.
        """
        return {"function": self._identity(), "kind": self.kind, "psd": self.psd}

    def _value(self, a: Any, b: Any, i: int, j: int) -> float:
        try:
            value = float(self.function(a, b))
        except Exception as error:
            reason = f"{self.called()} raised {type(error).__name__}: {error}"
            raise PairError(i, j, reason) from error
        if not np.isfinite(value):
            raise PairError(i, j, f"{self.called()} returned {value}")
        return value

    def called(self) -> str:
        """Return the name of the function."""
        function = self.function.func if isinstance(self.function, partial) else self.function
        return getattr(function, "__qualname__", None) or type(function).__qualname__

    def _identity(self) -> str:
        """Return what tells this function from another: its name and a hash of its source, its
        bytecode, defaults, bound arguments and all it closes over; of a callable object also its
        attributes and the methods of its class. What it reads from its module is not seen.
        """
        function = self.function
        while isinstance(function, partial):
            function = function.func
        try:
            source = inspect.getsource(function)
        except (OSError, TypeError, SyntaxError, IndexError):  # none, or changed since
            source = ""
        try:
            digest = fingerprint([source, self.function]).hex()
        except TypeError as error:
            raise TypeError(
                f"the function {self.called()} holds something by which a cache cannot tell it "
                f"from another ({error.__cause__}); cache=None does without"
            ) from error
        where = getattr(function, "__module__", None) or type(function).__module__
        return f"{where}.{self.called()}#{digest}"


def sample_symmetry(
    measure: Measure, objects: Objects, pairs: int = 8, seed: int = 0
) -> tuple[int, str | None]:
    """Compare up to `pairs` pairs in both directions.

    Returns how many comparisons that took, and a sentence about the first pair whose two values
    differ by more than rounding of the largest value met, or None. Where all values may be
    rounding, as those of orthogonal vectors are, objects are compared with themselves too.
    """
    n = len(objects)
    if n < 2:
        return 0, None
    random, spent = np.random.default_rng(seed), 0

    def compare(i: int, j: int) -> float:
        nonlocal spent
        spent += 1
        try:
            return float(
                measure.block(take(objects, slice(i, i + 1)), take(objects, slice(j, j + 1)))[0, 0]
            )
        except PairError as error:
            raise PairError(i, j, error.reason) from error

    found = []
    for _ in range(min(pairs, n * (n - 1) // 2)):
        i, j = (int(k) for k in random.choice(n, 2, replace=False))
        found.append((i, j, compare(i, j), compare(j, i)))
    largest = max(max(abs(there), abs(back)) for _, _, there, back in found)
    for i, j, there, back in found:
        if abs(there - back) > 1e-9 * largest:
            largest = max(largest, abs(compare(i, i)), abs(compare(j, j)))
        if abs(there - back) > 1e-9 * largest:
            return spent, f"{there!r} for objects ({i}, {j}) but {back!r} for ({j}, {i})"
    return spent, None
