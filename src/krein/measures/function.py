"""A plain Python function of two objects as a measure."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..core.shapes import Array, Kind
from ..wording import parameter
from .base import Measure
from .fingerprints import fingerprint
from .objects import Objects, PairError, take, unframed
from .precomputed import KindWarning, looks_like


@dataclass(frozen=True)
class FunctionMeasure(Measure):
    """A Python function `function(a, b)` that returns a number, called once per pair.

    The function must be symmetric: `krein.compare.open_pairs` checks this on a few pairs, and
    averages both directions if asked to. If several processes share the work, the function is sent
    to them; it may be a lambda or a closure, and everything it refers to is sent along.

    Parameters
    ----------
    function : callable
        Takes two objects and returns a finite number.
    kind : {"similarity", "dissimilarity"} or None, default=None
        Whether a larger value means more alike or less alike. None treats the values as
        similarities, with a `KindWarning` if they look like distances.
    psd : bool or None, default=None
        Whether the function is known to be positive semi-definite (for a dissimilarity: Euclidean).
        None if it is not known.

    See Also
    --------
    krein.measures.Measure : Base class of measures that compare a block of pairs at a time.

    Examples
    --------
    >>> from krein.measures.function import FunctionMeasure
    >>> shared = FunctionMeasure(lambda a, b: len(set(a) & set(b)))
    >>> shared.block(["house"], ["mouse", "maus"])
    array([[4., 2.]])
    """

    function: Callable[[Any, Any], float]
    # declared by the user, not by the class
    kind: Kind = field(default=None, kw_only=True)  # type: ignore[misc, arg-type]
    psd: bool | None = field(default=None, kw_only=True)  # type: ignore[misc]

    name = "function"
    one_direction = False
    block_pairs = 2**12

    def __post_init__(self) -> None:
        super().__post_init__()
        # not a parameter: whether the user stated the kind
        object.__setattr__(self, "kind_is_said", self.kind is not None)
        if self.kind is None:
            object.__setattr__(self, "kind", "similarity")
        if self.kind not in ("similarity", "dissimilarity"):
            raise ValueError(f"kind must be 'similarity' or 'dissimilarity'; got {self.kind!r}")

    def check(self, objects: Any) -> Objects:
        """Return an array or a list of the objects, whatever they are."""
        if isinstance(objects, str | bytes) or not hasattr(objects, "__len__"):
            raise TypeError(f"objects must be a list or an array; got {type(objects).__name__}")
        objects = unframed(objects)
        if isinstance(objects, np.ndarray):
            if objects.ndim == 0:
                raise TypeError("objects must be a list or an array; got a single value")
            return objects
        return list(objects)

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the values; if the function fails, a `PairError` names the pair."""
        values = np.empty((len(A), len(B)))
        for i, a in enumerate(A):
            for j, b in enumerate(B):
                values[i, j] = self._value(a, b, i, j)
        return values

    def corner_block(self, A: Objects, B: Objects) -> tuple[Array, int]:
        """Return the values; those below the diagonal are mirrored, not compared."""
        values = np.empty((len(A), len(B)))
        for i, a in enumerate(A):
            for j in range(i, len(B)):
                values[i, j] = self._value(a, B[j], i, j)
            values[i:, i] = values[i, i : len(A)]
        return values, values.size - len(A) * (len(A) - 1) // 2

    def diagonal(self, A: Objects) -> Array:
        """Return function(a, a) for every object."""
        return np.array([self._value(a, a, i, i) for i, a in enumerate(A)], dtype=np.float64)

    def check_symmetry(self, objects: Objects, symmetrize: bool) -> tuple[Objects, int]:
        """Check the function on up to 8 pairs in both directions, which are counted.

        With `symmetrize`, check only whether it looks like a distance.
        """
        if symmetrize:
            return objects, self._check_kind(objects, symmetrize=True)
        # if its kind is checked too, both checks together cost no more than this one alone
        pairs = 8 if self.kind_is_said else 5  # type: ignore[attr-defined]
        spent, asymmetry = sample_symmetry(self, objects, pairs)
        if asymmetry:
            raise ValueError(
                f"the function {self.called()} is not symmetric: {asymmetry}; "
                f"{parameter('symmetrize', True)} uses the average of both directions, at twice "
                "the comparisons"
            )
        return objects, spent + self._check_kind(objects, symmetrize=False)

    def _check_kind(self, objects: Objects, *, symmetrize: bool) -> int:
        """Warn if the kind is not given and the values look like distances.

        Returns the number of pairs compared: one if an object compared with itself does not give 0.
        """
        if self.kind_is_said or len(objects) < 3:  # type: ignore[attr-defined]
            return 0
        some = (0, len(objects) // 2, len(objects) - 1)
        values, spent = np.zeros((3, 3)), 0
        for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)):
            both = ((i, j), (j, i)) if symmetrize and i != j else ((i, j),)
            found = [_value_of(self, objects, some[a], some[b]) for a, b in both]
            values[i, j] = values[j, i] = np.mean(found)
            spent += len(found)
            if values[i, i] != 0:
                return spent
        if looks_like(values) == "distance":
            warnings.warn(
                f"The function {self.called()} looks like a distance (its diagonal is 0 and "
                "nothing is negative): set measure_params={'kind': 'dissimilarity'}.",
                KindWarning,
                stacklevel=2,
            )
        return spent

    def params(self) -> dict[str, Any]:
        """Return the parameters, with the function as its name and a fingerprint.

        The fingerprint is a hash of its source, bytecode, defaults, bound arguments and everything
        it closes over; for a callable object, also its attributes and the methods of its class.
        What it reads from its module is not included. Raises a `TypeError` if the function refers
        to something that has no fingerprint.
        """
        function = self.function.func if isinstance(self.function, partial) else self.function
        try:
            source = inspect.getsource(function)
        except (OSError, TypeError, SyntaxError, IndexError):  # no source, or changed since
            source = ""
        try:
            digest = fingerprint([source, self.function]).hex()
        except TypeError as error:
            raise TypeError(
                f"the function {self.called()} refers to something that a cache cannot identify "
                f"({error.__cause__}); use cache=None"
            ) from error
        where = getattr(function, "__module__", None) or type(function).__module__
        identity = f"{where}.{self.called()}#{digest}"
        return {"function": identity, "kind": self.kind, "psd": self.psd}

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


def sample_symmetry(measure: Measure, objects: Objects, pairs: int) -> tuple[int, str | None]:
    """Compare up to `pairs` pairs in both directions.

    Returns the number of comparisons, and a sentence about the first pair whose two values differ
    by more than rounding errors of the largest value, or None. If all values may be rounding
    errors, as for orthogonal vectors, objects are also compared with themselves.
    """
    n = len(objects)
    if n < 2:
        return 0, None
    random, spent = np.random.default_rng(0), 0

    def compare(i: int, j: int) -> float:
        nonlocal spent
        spent += 1
        return _value_of(measure, objects, i, j)

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


def _value_of(measure: Measure, objects: Objects, i: int, j: int) -> float:
    """Return the value of objects i and j; an error names them."""
    a, b = (take(objects, slice(k, k + 1)) for k in (i, j))
    try:
        return float(measure.block(a, b)[0, 0])
    except PairError as error:
        raise PairError(i, j, error.reason) from error
