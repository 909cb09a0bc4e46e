"""Check fitted attributes against the declarations of their class, on saving and on loading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from ..measures.precomputed import PrecomputedColumns
from .compound import Details, Either, IfThere, ListOf, Objects, OneOf, Optional, Value
from .schema import Context, Kind, Schema


def check_fitted(found: Mapping[str, Any], schema: Schema, context: Context) -> dict[str, Any]:
    """Return the attributes, checked and converted.

    Every declared attribute is required, unless it is declared with `IfThere`; others are refused.
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
    context.settle()
    return checked


def check_declared(found: Mapping[str, Any], schema: Schema, owner: str) -> None:
    """Raise an error if something in a model is not declared, so that it could not be loaded.

    This reminds a developer who adds an attribute, or a field of a dataclass, to declare it.
    """
    for name in [*found, *schema]:
        if name not in schema:
            raise TypeError(
                f"{owner} has {name!r}, which {owner}._fitted does not declare: a model file "
                "could not be loaded"
            )
        if name in found:
            _check_fields(found[name], schema[name], f"{owner}.{name}")
        elif not isinstance(schema[name], IfThere):
            raise TypeError(f"{owner}._fitted declares {name!r}, which {owner} does not have")


def _check_fields(value: Any, kind: Kind, name: str) -> None:
    """Raise an error if a nested dataclass has fields that are not declared."""
    if isinstance(kind, Optional | IfThere):
        if value is not None:
            _check_fields(value, kind.kind, name)
    elif isinstance(kind, ListOf):
        for item in value:
            _check_fields(item, kind.kind, name)
    elif isinstance(kind, OneOf):
        declared = [one for one in kind.values if type(value) is one.cls]
        if not declared:
            raise TypeError(f"{name} contains a {type(value).__name__}, which is not declared")
        _check_fields(value, declared[0], name)
    elif isinstance(kind, Value):
        there = {item.name: getattr(value, item.name) for item in fields(value)}
        check_declared(there, kind.content, f"{name} ({kind.cls.__name__})")


def classes_within(kinds: Iterable[Kind]) -> set[type]:
    """Return the dataclasses that values of these kinds contain."""
    found: set[type] = set()
    for kind in kinds:
        if isinstance(kind, Value):
            found |= {kind.cls} | classes_within(kind.content.values())
        elif isinstance(kind, Either):
            found |= classes_within((kind.first, kind.second))
        elif isinstance(kind, OneOf):
            found |= classes_within(kind.values)
        elif isinstance(kind, Optional | IfThere | ListOf):
            found |= classes_within((kind.kind,))
        elif isinstance(kind, Details):
            found |= set(kind.holding)
        elif isinstance(kind, Objects):
            found |= {PrecomputedColumns}
    return found
