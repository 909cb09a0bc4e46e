"""What the fitted attributes of an estimator are: declared once, checked when a model is loaded.

An estimator's class declares its attributes in `_fitted`, a dict from name to one of the kinds
below. Shapes are symbols, as in the comments of `core`: `floats("m", "C")` is an array with as many
rows as there are landmarks and a column for each class. A symbol means the same number everywhere
in a model, so arrays are checked against each other, and a model file that somebody made up fails
where it is loaded and not where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..measures import Measure

_MOST = 2**53
_EVERYWHERE = ("C", "d")
"""Classes, and columns of vectors: the same in all parts of a model."""


@dataclass
class Context:
    """What is known while a model is checked."""

    measure: Measure
    sizes: dict[str, int] = field(default_factory=dict)
    scope: str = ""  # where symbols have meanings of their own
    places: list[tuple[str, int, str]] = field(default_factory=list)
    """Names of arrays, the largest number in each, and the key of what it is a place among."""

    def bind(self, symbol: str | int, size: int) -> bool:
        """Whether a symbol can stand for this number, as it does from now on."""
        if isinstance(symbol, int):
            return symbol == size
        name, _, more = symbol.partition("+")
        size -= int(more or 0)
        return size >= 0 and self.sizes.setdefault(self._key(name), size) == size

    def place(self, name: str, largest: int, symbol: str) -> None:
        """Note that a number is a place among so many, which may be known later."""
        self.places.append((name, largest, self._key(symbol)))

    def settle(self) -> None:
        """Raise where a place is beyond the number of what it is a place among."""
        for name, largest, key in self.places:
            if key in self.sizes and largest >= self.sizes[key]:
                raise ValueError(f"{name} holds {largest}, not below {self.sizes[key]}")

    def within(self, scope: str) -> Context:
        """Return the context of a part with symbols of its own."""
        return Context(self.measure, self.sizes, scope, self.places)

    def size(self, symbol: str | int) -> str:
        """Return what a symbol stands for, in words."""
        known = self.sizes.get(self._key(str(symbol).partition("+")[0]))
        return str(symbol) if known is None else f"{symbol}={known}"

    def _key(self, symbol: str) -> str:
        return symbol if symbol in _EVERYWHERE else self.scope + symbol


class Kind(Protocol):
    """What an attribute may be."""

    def check(self, value: Any, name: str, context: Context) -> Any:
        """Return the value as it is to be used, or raise a `ValueError` that names it."""


Schema = Mapping[str, Kind]


@dataclass(frozen=True)
class ArrayOf:
    """An array of one type whose axes have the sizes of their symbols."""

    shape: tuple[str | int, ...]
    dtype: Any = np.float64
    minus_infinity: bool = False  # as the logarithm of nothing
    low: float | None = None
    below: str | None = None
    any_width: bool = False  # whole numbers are kept in as many bytes as they came

    def check(self, value: Any, name: str, context: Context) -> NDArray[Any]:
        """Return the array, in the byte order of this machine."""
        if not isinstance(value, np.ndarray):
            raise ValueError(f"{name} is not an array")
        wanted = np.dtype(self.dtype)
        if self.any_width and value.dtype.kind in "iu":
            wanted = value.dtype.newbyteorder("=")
        if value.dtype.kind != wanted.kind or value.dtype.itemsize != wanted.itemsize:
            raise ValueError(f"{name} holds {value.dtype}, not {wanted}")
        if value.ndim != len(self.shape) or not all(
            context.bind(s, n) for s, n in zip(self.shape, value.shape, strict=True)
        ):
            meant = ", ".join(context.size(s) for s in self.shape)
            raise ValueError(f"{name} has the shape {value.shape}, not ({meant})")
        array = value.astype(wanted, copy=False)
        if wanted.kind == "f":
            allowed = np.isfinite(array)
            if self.minus_infinity:
                allowed |= array == -np.inf
            if not allowed.all():
                raise ValueError(f"{name} holds values that are not finite")
        if self.low is not None and array.size and array.min() < self.low:
            raise ValueError(f"{name} holds {array.min()}, less than {self.low}")
        if self.below is not None and array.size:
            context.place(name, int(array.max()), self.below)
        return array


def floats(*shape: str | int, minus_infinity: bool = False) -> ArrayOf:
    """Declare an array of finite numbers."""
    return ArrayOf(shape, minus_infinity=minus_infinity)


def indices(*shape: str | int, below: str | None = None) -> ArrayOf:
    """Declare an array of whole numbers from 0, perhaps places among so many."""
    return ArrayOf(shape, np.intp, low=0, below=below)


def codes(*shape: str | int, below: str) -> ArrayOf:
    """Declare an array of class codes, in whichever integers there are."""
    return ArrayOf(shape, np.intp, low=0, below=below, any_width=True)


@dataclass(frozen=True)
class Labels:
    """The labels of the classes: numbers or strings, none twice."""

    size: str

    def check(self, value: Any, name: str, context: Context) -> NDArray[Any]:
        """Return the labels."""
        if not isinstance(value, np.ndarray) or value.ndim != 1 or len(value) < 2:
            raise ValueError(f"{name} is not a list of two labels or more")
        if not context.bind(self.size, len(value)):
            raise ValueError(f"{name} has {len(value)} labels, not {context.size(self.size)}")
        names = value.tolist()
        if not all(isinstance(label, str | bytes | int | float) for label in names):
            raise ValueError(f"{name} holds something else than numbers and strings")
        if len(set(names)) < len(names):
            raise ValueError(f"{name} holds a label twice")
        return value


@dataclass(frozen=True)
class Names:
    """Strings, one for each of something."""

    size: str

    def check(self, value: Any, name: str, context: Context) -> NDArray[Any]:
        """Return the names."""
        if not isinstance(value, np.ndarray) or value.ndim != 1:
            raise ValueError(f"{name} is not a list of names")
        if not context.bind(self.size, len(value)):
            raise ValueError(f"{name} has {len(value)} names, not {context.size(self.size)}")
        if not all(isinstance(one, str) for one in value.tolist()):
            raise ValueError(f"{name} holds something else than strings")
        return value


@dataclass(frozen=True)
class Real:
    """One number, finite unless an infinite one is allowed."""

    low: float = -np.inf
    infinite: bool = False

    def check(self, value: Any, name: str, context: Context) -> float:
        """Return the number."""
        if type(value) not in (int, float) or not value >= self.low:
            raise ValueError(f"{name} is not a number from {self.low}")
        if not np.isfinite(value) and not self.infinite:
            raise ValueError(f"{name} is not finite")
        return float(value)


@dataclass(frozen=True)
class Among:
    """One of a few numbers."""

    numbers: tuple[float, ...]

    def check(self, value: Any, name: str, context: Context) -> float:
        """Return the number."""
        if type(value) not in (int, float) or value not in self.numbers:
            raise ValueError(f"{name} is not one of {self.numbers}")
        return float(value)


@dataclass(frozen=True)
class Whole:
    """A whole number from `low`; with `size`, as many as the symbol says."""

    low: int = 0
    size: str | None = None

    def check(self, value: Any, name: str, context: Context) -> int:
        """Return the number."""
        if type(value) is not int or not self.low <= value <= _MOST:
            raise ValueError(f"{name} is not a whole number from {self.low}")
        if self.size is not None and not context.bind(self.size, value):
            raise ValueError(f"{name} is {value}, not {context.size(self.size)}")
        return value


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def check(self, value: Any, name: str, context: Context) -> bool:
        """Return the flag."""
        if type(value) is not bool:
            raise ValueError(f"{name} is not true or false")
        return value


@dataclass(frozen=True)
class Text:
    """A string, perhaps one of a few."""

    among: tuple[str, ...] | None = None

    def check(self, value: Any, name: str, context: Context) -> str:
        """Return the string."""
        if type(value) is not str or (self.among is not None and value not in self.among):
            raise ValueError(f"{name} is not " + (" or ".join(self.among or ()) or "a string"))
        return value
