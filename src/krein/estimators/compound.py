"""Kinds of compound fitted attributes: lists, dataclasses, objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.space import Signature
from ..measures.precomputed import PrecomputedColumns
from .schema import Context, Kind, Schema, Whole, indices


@dataclass(frozen=True)
class Optional:
    """None, or a value of the given kind."""

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
        sizes, places = dict(context.sizes), len(context.places)
        try:
            return self.first.check(value, name, context)
        except ValueError:
            context.sizes.clear()
            context.sizes.update(sizes)
            del context.places[places:]
            return self.second.check(value, name, context)


@dataclass(frozen=True)
class ListOf:
    """A list of values of one kind. Symbols defined within an item are local to it."""

    kind: Kind
    size: str | int

    def check(self, value: Any, name: str, context: Context) -> list[Any]:
        """Return the list."""
        if type(value) is not list:
            raise ValueError(f"{name} is not a list")
        if not context.bind(self.size, len(value)):
            raise ValueError(f"{name} has {len(value)} items, not {context.size(self.size)}")
        found = []
        known = set(context.sizes)
        for i, item in enumerate(value):
            places = len(context.places)
            found.append(self.kind.check(item, f"{name}[{i}]", context))
            part = Context(context.measure, context.sizes, "", context.places[places:])
            part.settle()
            for symbol in set(context.sizes) - known:
                del context.sizes[symbol]
        return found


@dataclass(frozen=True)
class Details:
    """Information that a rule reports to users; nothing is computed from it."""

    holding: tuple[type, ...]  # dataclasses that it may contain

    def check(self, value: Any, name: str, context: Context) -> Any:
        """Return the value."""
        if not isinstance(value, dict):
            raise ValueError(f"{name} is not a mapping")
        return value


@dataclass(frozen=True)
class Objects:
    """Objects that new ones are compared with; the measure itself checks them."""

    size: str

    def check(self, value: Any, name: str, context: Context) -> Any:
        """Return the objects in the measure's form."""
        measure = context.measure
        if measure.accepts == "values":
            found = GIVEN_COLUMNS.check(value, name, context.within(f"{context.scope}{name} "))
            if not context.bind(self.size, len(found)):
                raise ValueError(f"{name} has {len(found)} columns, not {context.size(self.size)}")
            if len(found.columns) and found.columns.max() >= found.width:
                raise ValueError(f"{name} refers to a column beyond {found.width}")
            return found
        if not isinstance(value, list | np.ndarray):
            raise ValueError(f"{name} is not a list of objects")
        if len(value) == 0 and context.bind(self.size, 0):
            return value  # empty: nothing to check, and nothing to compare with
        try:
            objects = measure.check(value)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{name}: {error}") from error
        # stored objects have passed the same check before, so it must leave them unchanged
        kept = getattr(value, "dtype", np.dtype(object))
        if isinstance(objects, np.ndarray) and kept not in (objects.dtype, object):
            raise ValueError(f"{name} contains {kept}, not {objects.dtype}")
        if not context.bind(self.size, len(objects)) or len(objects) != len(value):
            raise ValueError(f"{name} has {len(objects)} objects, not {context.size(self.size)}")
        if measure.accepts == "vectors" and not context.bind("d", objects.shape[1]):
            raise ValueError(f"{name} has {objects.shape[1]} columns, not {context.size('d')}")
        return objects


@dataclass(frozen=True)
class Value:
    """An instance of a dataclass with declared fields.

    With `scope`, symbols in the fields are local, except for C and d.
    """

    cls: type
    content: Schema
    scope: str | None = None

    def check(self, value: Any, name: str, context: Context) -> Any:
        """Return the instance, with its fields checked and converted."""
        if type(value) is not self.cls:
            raise ValueError(f"{name} is not a {self.cls.__name__}")
        scope = context.scope if self.scope is None else f"{self.scope} "
        inner = context.within(scope)
        return self.cls(
            **{
                key: kind.check(getattr(value, key), f"{name}.{key}", inner)
                for key, kind in self.content.items()
            }
        )


@dataclass(frozen=True)
class OneOf:
    """An instance of one of several dataclasses."""

    values: tuple[Value, ...]

    def check(self, value: Any, name: str, context: Context) -> Any:
        """Return the instance."""
        for kind in self.values:
            if type(value) is kind.cls:
                return kind.check(value, name, context)
        raise ValueError(f"{name} is not a " + " or ".join(k.cls.__name__ for k in self.values))


@dataclass(frozen=True)
class SignatureOf:
    """Numbers of positive, negative and zero eigenvalues."""

    def check(self, value: Any, name: str, context: Context) -> Signature:
        """Return the numbers."""
        if type(value) is not Signature:
            raise ValueError(f"{name} is not a signature")
        return Signature(*(Whole().check(n, name, context) for n in value))


GIVEN_COLUMNS = Value(PrecomputedColumns, {"columns": indices("columns"), "width": Whole(1)})
