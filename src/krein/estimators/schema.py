"""What the fitted attributes of an estimator are: declared once, checked when a model is loaded.

An estimator's class declares its attributes in `_fitted`, a dict from name to one of the kinds
below. Shapes are symbols, as in the comments of `core`: `floats("m", "C")` is an array with as many
rows as there are landmarks and a column for each class. A symbol means the same number everywhere
in a model, so arrays are checked against each other, and a model file that somebody made up fails
where it is loaded and not where it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.convert import LandmarkCentre
from ..core.meb import Ball
from ..core.moments import ClassMoments
from ..core.nystrom import LandmarkBasis
from ..core.space import LandmarkSpace
from ..core.spectrum import Signature
from ..landmarks import Selection
from ..measures import Measure
from ..measures.given import GivenColumns
from .selection import LandmarkSet

_MOST = 2**53
_EVERYWHERE = ("C", "d")
"""Classes, and columns of vectors: the same in all parts of a model."""


@dataclass
class Context:
    """What is known while a model is checked."""

    measure: Measure
    sizes: dict[str, int] = field(default_factory=dict)
    scope: str = ""  # where symbols have meanings of their own

    def bind(self, symbol: str | int, size: int) -> bool:
        """Whether a symbol can stand for this number, as it does from now on."""
        if isinstance(symbol, int):
            return symbol == size
        return self.sizes.setdefault(self._key(symbol), size) == size

    def size(self, symbol: str | int) -> str:
        """Return what a symbol stands for, in words."""
        known = self.sizes.get(self._key(str(symbol)))
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

    def check(self, value: Any, name: str, context: Context) -> NDArray[Any]:
        """Return the array, in the byte order of this machine."""
        if not isinstance(value, np.ndarray):
            raise ValueError(f"{name} is not an array")
        wanted = np.dtype(self.dtype)
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
        return array


def floats(*shape: str | int, minus_infinity: bool = False) -> ArrayOf:
    """Declare an array of finite numbers."""
    return ArrayOf(shape, minus_infinity=minus_infinity)


def indices(*shape: str | int) -> ArrayOf:
    """Declare an array of whole numbers from 0."""
    return ArrayOf(shape, np.intp, low=0)


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
    """One finite number."""

    low: float = -np.inf

    def check(self, value: Any, name: str, context: Context) -> float:
        """Return the number."""
        if type(value) not in (int, float) or not np.isfinite(value) or not value >= self.low:
            raise ValueError(f"{name} is not a finite number from {self.low}")
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


@dataclass(frozen=True)
class Optional:
    """None, or a value of a kind."""

    kind: Kind

    def check(self, value: Any, name: str, context: Context) -> Any:
        """Return the value."""
        return None if value is None else self.kind.check(value, name, context)


@dataclass(frozen=True)
class IfThere:
    """An attribute that not every model has."""

    kind: Kind

    def check(self, value: Any, name: str, context: Context) -> Any:
        """Return the value."""
        return self.kind.check(value, name, context)


@dataclass(frozen=True)
class Either:
    """A value of one of two kinds."""

    first: Kind
    second: Kind

    def check(self, value: Any, name: str, context: Context) -> Any:
        """Return the value."""
        before = dict(context.sizes)
        try:
            return self.first.check(value, name, context)
        except ValueError:
            context.sizes.clear()
            context.sizes.update(before)
            return self.second.check(value, name, context)


@dataclass(frozen=True)
class Details:
    """Whatever a rule wished to tell: shown to people, never computed with."""

    holding: tuple[type, ...]  # dataclasses that may be among it

    def check(self, value: Any, name: str, context: Context) -> Any:
        """Return the value."""
        if not isinstance(value, dict):
            raise ValueError(f"{name} is not a mapping")
        return value


@dataclass(frozen=True)
class Objects:
    """Objects that new ones are compared with: what the measure itself says of them holds."""

    size: str

    def check(self, value: Any, name: str, context: Context) -> Any:
        """Return the objects as the measure takes them."""
        measure = context.measure
        if measure.accepts == "values":
            found = GIVEN_COLUMNS.check(value, name, context)
            if not context.bind(self.size, len(found)):
                raise ValueError(f"{name} has {len(found)} columns, not {context.size(self.size)}")
            if len(found.columns) and found.columns.max() >= found.width:
                raise ValueError(f"{name} stands for a column beyond {found.width}")
            return found
        if not isinstance(value, list | np.ndarray):
            raise ValueError(f"{name} is not a list of objects")
        try:
            objects = measure.check(value)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{name}: {error}") from error
        # what was kept had passed the same check, which changes nothing a second time
        kept = getattr(value, "dtype", np.dtype(object))
        if isinstance(objects, np.ndarray) and kept not in (objects.dtype, object):
            raise ValueError(f"{name} holds {kept}, not {objects.dtype}")
        if not context.bind(self.size, len(objects)) or len(objects) != len(value):
            raise ValueError(f"{name} has {len(objects)} objects, not {context.size(self.size)}")
        if measure.accepts == "vectors" and not context.bind("d", objects.shape[1]):
            raise ValueError(f"{name} has {objects.shape[1]} columns, not {context.size('d')}")
        return objects


@dataclass(frozen=True)
class Value:
    """An instance of a dataclass, whose fields are declared in turn.

    With `scope`, symbols within have meanings of their own, but for C and d.
    """

    cls: type
    content: Schema
    scope: str | None = None

    def check(self, value: Any, name: str, context: Context) -> Any:
        """Return the instance, with its fields as they are to be used."""
        if type(value) is not self.cls:
            raise ValueError(f"{name} is not a {self.cls.__name__}")
        scope = context.scope if self.scope is None else f"{self.scope} "
        inner = Context(context.measure, context.sizes, scope)
        return self.cls(
            **{
                key: kind.check(getattr(value, key), f"{name}.{key}", inner)
                for key, kind in self.content.items()
            }
        )


@dataclass(frozen=True)
class SignatureOf:
    """Numbers of positive, negative and vanishing eigenvalues."""

    def check(self, value: Any, name: str, context: Context) -> Signature:
        """Return the numbers."""
        if type(value) is not Signature:
            raise ValueError(f"{name} is not a signature")
        return Signature(*(Whole().check(n, name, context) for n in value))


GIVEN_COLUMNS = Value(GivenColumns, {"columns": indices("columns"), "width": Whole(1)})
LANDMARK_BASIS = Value(
    LandmarkBasis, {"T": floats("m", "r"), "signs": floats("r"), "lam": floats("r")}
)
LANDMARK_CENTRE = Value(LandmarkCentre, {"column_means": floats("m"), "grand_mean": Real()})
LANDMARK_SPACE = Value(
    LandmarkSpace,
    {
        "landmark_values": floats("m", "m"),
        "basis": LANDMARK_BASIS,
        "centre": Optional(LANDMARK_CENTRE),
        "rank": Optional(Whole(1)),
    },
)
LANDMARK_SET = Value(
    LandmarkSet, {"space": LANDMARK_SPACE, "indices": indices("m"), "objects": Objects("m")}
)
CLASS_MOMENTS = Value(
    ClassMoments,
    {
        "origin": floats("r"),
        "weights": floats("C"),
        "sums": floats("C", "r"),
        "products": Either(floats("r", "r"), floats("C", "r", "r")),
    },
)
SELECTION = Value(
    Selection,
    {
        "indices": indices("chosen"),
        "details": Details((Ball,)),
        "values": Optional(floats("n", "chosen")),
        "family": Optional(Text(())),  # never kept
    },
)


def check_fitted(found: Mapping[str, Any], schema: Schema, context: Context) -> dict[str, Any]:
    """Return the attributes as they are to be set.

    All that are declared have to be there, but those declared with `IfThere`, and no others.
    """
    for name in found:
        if name not in schema:
            raise ValueError(f"{name!r} is not an attribute of such a model")
    checked = {}
    for name, kind in schema.items():
        if name in found:
            checked[name] = kind.check(found[name], name, context)
        elif not isinstance(kind, IfThere):
            raise ValueError(f"{name} is missing")
    return checked


def classes_within(kinds: Iterable[Kind]) -> set[type]:
    """Return the dataclasses that values of these kinds are made of."""
    found: set[type] = set()
    for kind in kinds:
        if isinstance(kind, Value):
            found |= {kind.cls} | classes_within(kind.content.values())
        elif isinstance(kind, Either):
            found |= classes_within((kind.first, kind.second))
        elif isinstance(kind, Optional | IfThere):
            found |= classes_within((kind.kind,))
        elif isinstance(kind, Details):
            found |= set(kind.holding)
        elif isinstance(kind, Objects):
            found |= {GivenColumns}
    return found
