"""The schema of fitted attributes, declared per class and checked when a model is loaded.

An estimator's class declares its attributes in `_fitted`, a dict from name to one of the kinds
below. Shapes are symbols, as in the comments of `core`: `floats("m", "C")` is an array with as many
rows as there are landmarks and one column per class. A symbol means the same number everywhere in a
model, so arrays are checked against each other, and a forged model file fails when it is loaded,
not when it is used.
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
"""Global symbols: the number of classes, and the number of columns of vectors."""


@dataclass
class Context:
    """The state of checking a model."""

    measure: Measure
    sizes: dict[str, int] = field(default_factory=dict)
    scope: str = ""  # the part of a model within which symbols are local
    places: list[tuple[str, int, str]] = field(default_factory=list)
    """Arrays of indices: name, largest index, and the key of the size it must stay below."""

    def bind(self, symbol: str | int, size: int) -> bool:
        """Bind a symbol to a number; return whether this agrees with earlier uses."""
        if isinstance(symbol, int):
            return symbol == size
        name, _, more = symbol.partition("+")
        size -= int(more or 0)
        return size >= 0 and self.sizes.setdefault(self._key(name), size) == size

    def place(self, name: str, largest: int, symbol: str) -> None:
        """Note that a number is an index below a size, which may become known later."""
        self.places.append((name, largest, self._key(symbol)))

    def settle(self) -> None:
        """Raise an error if an index is out of range."""
        for name, largest, key in self.places:
            if key in self.sizes and largest >= self.sizes[key]:
                raise ValueError(f"{name} contains {largest}, not below {self.sizes[key]}")

    def within(self, scope: str) -> Context:
        """Return the context of a part with local symbols."""
        return Context(self.measure, self.sizes, scope, self.places)

    def size(self, symbol: str | int) -> str:
        """Return what a symbol stands for, in words."""
        known = self.sizes.get(self._key(str(symbol).partition("+")[0]))
        return str(symbol) if known is None else f"{symbol}={known}"

    def _key(self, symbol: str) -> str:
        return symbol if symbol in _EVERYWHERE else self.scope + symbol


class Kind(Protocol):
    """A kind of attribute."""

    def check(self, value: Any, name: str, context: Context) -> Any:
        """Return the value, checked and converted, or raise a `ValueError` that names it."""


Schema = Mapping[str, Kind]


@dataclass(frozen=True)
class ArrayOf:
    """An array of one type whose axes have the sizes of their symbols."""

    shape: tuple[str | int, ...]
    dtype: Any = np.float64
    minus_infinity: bool = False  # whether −∞, the logarithm of 0, is allowed
    low: float | None = None
    below: str | None = None
    any_width: bool = False  # whether integers keep their width in bytes

    def check(self, value: Any, name: str, context: Context) -> NDArray[Any]:
        """Return the array, in the byte order of this machine."""
        if not isinstance(value, np.ndarray):
            raise ValueError(f"{name} is not an array")
        wanted = np.dtype(self.dtype)
        if self.any_width and value.dtype.kind in "iu":
            wanted = value.dtype.newbyteorder("=")
        if value.dtype.kind != wanted.kind or value.dtype.itemsize != wanted.itemsize:
            raise ValueError(f"{name} contains {value.dtype}, not {wanted}")
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
                raise ValueError(f"{name} contains values that are not finite")
        if self.low is not None and array.size and array.min() < self.low:
            raise ValueError(f"{name} contains {array.min()}, less than {self.low}")
        if self.below is not None and array.size:
            context.place(name, int(array.max()), self.below)
        return array


def floats(*shape: str | int, minus_infinity: bool = False) -> ArrayOf:
    """Declare an array of finite numbers."""
    return ArrayOf(shape, minus_infinity=minus_infinity)


def indices(*shape: str | int, below: str | None = None) -> ArrayOf:
    """Declare an array of non-negative integers, optionally indices below a size."""
    return ArrayOf(shape, np.intp, low=0, below=below)


def codes(*shape: str | int, below: str) -> ArrayOf:
    """Declare an array of class codes, of any integer type."""
    return ArrayOf(shape, np.intp, low=0, below=below, any_width=True)


@dataclass(frozen=True)
class LabelArray:
    """The labels of the classes: numbers or strings, without repeats."""

    size: str

    def check(self, value: Any, name: str, context: Context) -> NDArray[Any]:
        """Return the labels."""
        if not isinstance(value, np.ndarray) or value.ndim != 1 or len(value) < 2:
            raise ValueError(f"{name} is not a list of at least two labels")
        if not context.bind(self.size, len(value)):
            raise ValueError(f"{name} has {len(value)} labels, not {context.size(self.size)}")
        names = value.tolist()
        if not all(isinstance(label, str | bytes | int | float) for label in names):
            raise ValueError(f"{name} contains items that are not numbers or strings")
        if len(set(names)) < len(names):
            raise ValueError(f"{name} contains a label twice")
        return value


@dataclass(frozen=True)
class Names:
    """A list of strings."""

    size: str

    def check(self, value: Any, name: str, context: Context) -> NDArray[Any]:
        """Return the names."""
        if not isinstance(value, np.ndarray) or value.ndim != 1:
            raise ValueError(f"{name} is not a list of names")
        if not context.bind(self.size, len(value)):
            raise ValueError(f"{name} has {len(value)} names, not {context.size(self.size)}")
        if not all(isinstance(one, str) for one in value.tolist()):
            raise ValueError(f"{name} contains items that are not strings")
        return value


@dataclass(frozen=True)
class Real:
    """One number, finite unless infinity is allowed."""

    low: float = -np.inf
    infinite: bool = False

    def check(self, value: Any, name: str, context: Context) -> float:
        """Return the number."""
        if type(value) not in (int, float) or not value >= self.low:
            raise ValueError(f"{name} is not a number of at least {self.low}")
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
    """An integer of at least `low`; with `size`, the number that the symbol stands for."""

    low: int = 0
    size: str | None = None

    def check(self, value: Any, name: str, context: Context) -> int:
        """Return the number."""
        if type(value) is not int or not self.low <= value <= _MOST:
            raise ValueError(f"{name} is not an integer of at least {self.low}")
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
