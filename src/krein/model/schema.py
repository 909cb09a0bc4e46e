"""The schema of a model file: the annotations of the dataclasses that a model consists of.

`encode` turns a value into a tree of plain values and arrays, and `decode` builds the value again
from the tree and its annotation. Every shape, type and limit in the annotations is checked on the
way (`krein.core.shapes` has the vocabulary): a symbol is bound to a size by its first use, and
every later use must agree. So a forged file fails when it is loaded, not when it is used. Nothing
in a tree is executed, and only the classes that an annotation names are built.

`check_schema` checks the annotations themselves: a limit must refer to a size that every such model
has, and every whole number needs a limit, because work and memory may depend on it.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

from ..core.shapes import COUNT, LOCAL, Within
from ..core.space import Signature
from ..measures import Combined, Measure, available, get_measure
from ..measures.combined import Records
from ..measures.precomputed import PrecomputedColumns
from ..measures.registry import measure_class

OPTIONAL = "optional"
"""Metadata of an attribute that not every model has."""
OBJECTS = "objects"
"""Metadata of objects to compare with, which the measure checks."""
LABELS = "labels"
"""Metadata of the class labels: numbers or strings, without repeats."""

BYTES = "bytes"
"""A symbol that stands for the number of bytes of all arrays and objects of a model."""

_EVERYWHERE = ("C", "d", BYTES)
_MOST = 2**53


class Symbol(NamedTuple):
    """A size such as m, H+2 or 2*kernels: `factor` times that of `name`, and `more`."""

    factor: int
    name: str
    more: int

    @classmethod
    def of(cls, text: str) -> Symbol:
        """Read a symbol."""
        found = re.fullmatch(r"(?:(\d+)\*)?([A-Za-z_]\w*)(?:\+(\d+))?", text)
        if found is None:
            raise TypeError(f"{text!r} is not a size such as m, H+2 or 2*kernels")
        return cls(int(found[1] or 1), found[2], int(found[3] or 0))


class Limit(NamedTuple):
    """A number of a model that must be below a size, which may be known only later."""

    name: str  # of the field
    number: int
    symbol: Symbol
    key: str  # under which the size of the symbol is known
    equal: bool = False  # whether the number must be the size itself


@dataclass
class Context:
    """What is known while a model is decoded: its measure, and the sizes of the symbols."""

    measure: Measure | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    scope: str = ""
    pending: list[Limit] = field(default_factory=list)
    examples: dict[int, Any] = field(default_factory=dict)
    """Objects of each measure, by its id: others must be such that they can be compared."""

    def bind(self, text: str, size: int) -> bool:
        """Bind a symbol such as m or H+2 to a size; return whether earlier uses agree."""
        if text.isdigit():
            return int(text) == size
        factor, name, more = Symbol.of(text)
        size, rest = divmod(size - more, factor)
        return size >= 0 == rest and self.sizes.setdefault(self.key(name), size) == size

    def key(self, name: str) -> str:
        """Return the name under which the size of a symbol is known."""
        return name if name in _EVERYWHERE else self.scope + name

    def shown(self, text: str) -> str:
        """Return what a symbol stands for, in words."""
        known = None if text.isdigit() else self.sizes.get(self.key(Symbol.of(text).name))
        return text if known is None else f"{text}={known}"

    def within(self, scope: str) -> Context:
        """Return the context of a part with its own symbols."""
        return Context(self.measure, self.sizes, scope, self.pending, self.examples)

    def add_bytes(self, number: int) -> None:
        """Count bytes of the model."""
        self.sizes[BYTES] = self.sizes.get(BYTES, 0) + number

    def limit(self, name: str, number: int, text: str, *, equal: bool = False) -> None:
        """Note that a number must be below a size, or equal to it."""
        symbol = Symbol.of(text)
        self.pending.append(Limit(name, number, symbol, self.key(symbol.name), equal))

    def settle(self, *, end: bool = True) -> None:
        """Raise an error if a number is not below its size.

        Before the end, sizes that are not known yet, or that still grow, are left for later.
        """
        later = []
        for one in self.pending:
            size = self.sizes.get(one.key)
            if not end and (size is None or one.key == BYTES):
                later.append(one)
                continue
            if size is None:
                raise TypeError(f"{one.name} refers to {one.key!r}, a size that nothing sets")
            size = one.symbol.factor * size + one.symbol.more
            if one.equal and one.number != size:
                raise ValueError(f"{one.name} is {one.number}, not {size}")
            if not one.equal and one.number >= size:
                raise ValueError(f"{one.name} contains {one.number}, not below {size}")
        self.pending[:] = later


@cache
def hints_of(cls: Any) -> dict[str, Any]:
    """Return what a class declares: the fields of a dataclass, or the attributes ending in `_`."""
    found = get_type_hints(cls, include_extras=True)
    if is_dataclass(cls):
        return {item.name: found[item.name] for item in fields(cls)}
    return {k: v for k, v in found.items() if k.endswith("_") and not k.startswith("_")}


# -- the annotations themselves -------------------------------------------------------------------


def fields_of(cls: type) -> Iterator[tuple[type, str]]:
    """Yield every field of a class and of its parts, with the class that declares it."""
    for name, hint in hints_of(cls).items():
        yield cls, name
        for part in _parts_in(hint):
            yield from fields_of(part)


def _parts_in(hint: Any) -> Iterator[type]:
    hint, *_ = _unwrapped(hint)
    if _is_part(hint):
        yield hint
    elif get_origin(hint) in (Union, types.UnionType, tuple, list):
        for one in get_args(hint):
            yield from _parts_in(one)


@cache
def check_schema(cls: type) -> None:
    """Raise a TypeError if a limit in the annotations depends on a size that nothing sets.

    So does a whole number without a limit, because work or memory may depend on it.
    """
    sets, needs = _sizes_of_parts(cls)
    for symbol, where in _unmet(needs, sets).items():
        raise TypeError(f"{where} depends on {symbol!r}, a size that nothing sets")


def _sizes_of(hint: Any, where: str) -> tuple[set[str], dict[str, str]]:
    """Return the symbols that every such value sets, and those that its limits need.

    The latter come with the name of the field.
    """
    hint, metadata, shape, limits = _unwrapped(hint)
    origin, args = get_origin(hint), get_args(hint)
    sets = {BYTES, *(Symbol.of(text).name for text in shape if not text.isdigit())}
    needs = {Symbol.of(text).name: where for text in (limits.below, limits.spans) if text}
    if origin in (Union, types.UnionType):
        each = [
            _sizes_of(_annotated(one, metadata), where) for one in args if one is not type(None)
        ]
        sets = set.intersection(*(one for one, _ in each)) if type(None) not in args else set()
        for own, missing in each:
            needs |= _unmet(missing, own)
    elif origin in (tuple, list):
        own, missing = _sizes_of(args[0], f"an item of {where}")
        needs |= _unmet(missing, own)
    elif _is_part(hint):
        sets, needs = _sizes_of_parts(hint)
    elif _is_whole(hint) and not needs and limits.high == np.inf:
        if hint is int and shape:  # it is not a limit itself: something else must set this size
            sets, needs = {BYTES}, dict.fromkeys(sets, where)
        elif not {OBJECTS, LABELS} & set(metadata):
            raise TypeError(f"{where} needs a limit, because work or memory may depend on it")
    if LOCAL in metadata:
        sets, needs = sets & {*_EVERYWHERE}, _unmet(needs, sets)
    return sets if OPTIONAL not in metadata else set(), needs


def _sizes_of_parts(cls: type) -> tuple[set[str], dict[str, str]]:
    sets, needs = set[str](), dict[str, str]()
    for name, hint in hints_of(cls).items():
        own, missing = _sizes_of(hint, f"{cls.__name__}.{name}")
        sets, needs = sets | own, missing | needs
    return sets, needs


def _unmet(needs: dict[str, str], sets: set[str]) -> dict[str, str]:
    """Return the sizes that are needed, and not set."""
    return {symbol: where for symbol, where in needs.items() if symbol not in sets}


def _is_part(hint: Any) -> bool:
    """Whether a type is a dataclass of which a model consists."""
    return isinstance(hint, type) and is_dataclass(hint) and not issubclass(hint, Measure)


def _is_whole(hint: Any) -> bool:
    """Whether a type is that of whole numbers."""
    if get_origin(hint) is not np.ndarray:
        return hint is int
    (kind,) = get_args(get_args(hint)[1]) or (Any,)
    return kind is Any or issubclass(kind, np.integer)


# -- from values to a tree ------------------------------------------------------------------------


def encode(value: Any) -> Any:
    """Return a value as a tree of plain values and arrays."""
    if isinstance(value, Measure):
        if value.accepts == "values":
            return {"measure": value.name, "params": None}
        if _is_registered(value):
            return {"measure": value.name, "params": value.params()}
        return {"function": type(value).__qualname__}
    if isinstance(value, Signature):
        return list(value)
    if isinstance(value, Records):
        return {"class": "Records", "fields": dict(zip(value.names, value.columns, strict=True))}
    if is_dataclass(value) and not isinstance(value, type):
        content = {}
        for name, hint in hints_of(type(value)).items():
            part = getattr(value, name)
            objects = OBJECTS in getattr(hint, "__metadata__", ()) and not is_dataclass(part)
            content[name] = part if objects else encode(part)  # an object may be a tuple
        return {"class": type(value).__name__, "fields": content}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    return value


def _is_registered(measure: Measure) -> bool:
    """Whether krein knows a measure, and all its parts, by name."""
    known = measure.name in available() and type(measure) is measure_class(measure.name)
    parts = measure.measures if known and isinstance(measure, Combined) else []
    return known and all(map(_is_registered, parts))


# -- from a tree to values ------------------------------------------------------------------------


def decode(tree: Any, hint: Any, name: str, context: Context) -> Any:
    """Return the value that `hint` describes, or raise an error that names the wrong part."""
    hint, metadata, shape, limits = _unwrapped(hint)
    if LOCAL in metadata:
        context = context.within(f"{name} ")
    if OBJECTS in metadata:
        return _objects(tree, name, context, *shape)
    if LABELS in metadata:
        return _labels(tree, name, context, *shape)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _either(tree, args, name, context, metadata)
    if origin is Literal:
        if type(tree) is not type(args[0]) or tree not in args:
            raise ValueError(f"{name} is not " + " or ".join(map(str, args)))
        return tree
    if origin is np.ndarray:
        return _array(tree, args[1], name, context, shape, limits)
    if origin in (tuple, list):
        return origin(_items(tree, args[0], name, context, shape))
    if _is_part(hint):
        return _instance(tree, hint, name, context)
    if hint is Measure:
        if not isinstance(tree, Measure):  # the caller has replaced the user's own measure
            tree = _measure(tree, name)
        context.measure = tree
        return tree
    if hint is Signature:
        return Signature(*(_number(n, int, name, COUNT) for n in _items_of(tree, name)))
    found = _number(tree, hint, name, limits)
    if shape and not context.bind(shape[0], found):
        raise ValueError(f"{name} is {found}, not {context.shown(shape[0])}")
    if limits.below is not None:
        context.limit(name, found, limits.below)
    return found


_MARKS = (LOCAL, OPTIONAL, OBJECTS, LABELS)


def _is_annotated(hint: Any) -> bool:
    return get_origin(hint) is Annotated


def _unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...], list[str], Within]:
    """Return the type of an annotation, its metadata, and among these the shape and the limits."""
    hint, metadata = (hint.__origin__, hint.__metadata__) if _is_annotated(hint) else (hint, ())
    texts = [one for one in metadata if isinstance(one, str) and one not in _MARKS]
    limits = next((one for one in metadata if isinstance(one, Within)), Within())
    return _resolved(hint), metadata, texts[0].split() if texts else [], limits


def _resolved(hint: Any) -> Any:
    """Return what an alias such as `NDArray[np.int64]` stands for.

    From numpy 2.5 on, `NDArray` is an alias that Python resolves only on request (PEP 695).
    """
    alias, args = get_origin(hint) or hint, get_args(hint)
    if not hasattr(alias, "__value__"):
        return hint
    return alias.__value__[args] if args else alias.__value__


def decode_attributes(found: Mapping[str, Any], cls: type, context: Context) -> dict[str, Any]:
    """Return the attributes that a class declares, checked; others are refused."""
    check_schema(cls)
    declared = hints_of(cls)
    for name in found:
        if name not in declared:
            raise ValueError(f"{name!r} is not an attribute of such a model")
    checked = {}
    for name, hint in declared.items():
        if name in found:
            checked[name] = decode(found[name], hint, name, context)
        elif not (_is_annotated(hint) and OPTIONAL in hint.__metadata__):
            raise ValueError(f"{name} is missing")
    context.settle()
    return checked


def _either(tree: Any, hints: Any, name: str, context: Context, metadata: tuple[Any, ...]) -> Any:
    """Return the value of the first alternative that fits."""
    if type(None) in hints:
        if tree is None:
            return None
        hints = [hint for hint in hints if hint is not type(None)]
    if isinstance(tree, dict):  # the class that it names, so that an error is about its parts
        named = [hint for hint in hints if getattr(hint, "__name__", None) == tree.get("class")]
        hints = named or hints
    for hint in hints[:-1]:
        sizes, pending = dict(context.sizes), len(context.pending)
        try:
            return decode(tree, _annotated(hint, metadata), name, context)
        except (ValueError, TypeError, KeyError):
            context.sizes.clear()
            context.sizes.update(sizes)
            del context.pending[pending:]
    return decode(tree, _annotated(hints[-1], metadata), name, context)


def _annotated(hint: Any, metadata: tuple[Any, ...]) -> Any:
    """Return a type with this metadata, as before `_unwrapped`."""
    return Annotated[hint, *metadata] if metadata else hint


def _array(
    tree: Any, scalar: Any, name: str, context: Context, shape: list[str], limits: Within
) -> NDArray[Any]:
    """Return an array, in the byte order of this machine."""
    if not isinstance(tree, np.ndarray):
        raise ValueError(f"{name} is not an array")
    (kind,) = get_args(scalar) or (Any,)
    wanted = _dtype(tree, kind, name)
    if tree.ndim != len(shape) or not all(map(context.bind, shape, tree.shape)):
        meant = ", ".join(map(context.shown, shape))
        raise ValueError(f"{name} has the shape {tree.shape}, not ({meant})")
    array = tree.astype(wanted, copy=False)
    if wanted.kind == "f":
        _check_finite(array, name, limits)
    if wanted.kind in "fiu" and array.size:
        _check_range(array, name, context, limits)
    if limits.spans is not None:
        if not array.size or array[0] != 0:
            raise ValueError(f"{name} does not start at 0")
        context.limit(f"the end of {name}", int(array[-1]), limits.spans, equal=True)
    context.add_bytes(array.nbytes)
    if not array.size:  # its other axes take no bytes, but results would have their length
        context.limit(f"the shape of {name}", max(array.shape), f"{BYTES}+1")
    return array


def _dtype(tree: NDArray[Any], kind: Any, name: str) -> np.dtype[Any]:
    """Return the type of an array in this machine's byte order, if it is of the kind declared."""
    if kind is Any:  # class codes, in any type
        if tree.dtype.kind not in "iu":
            raise ValueError(f"{name} contains {tree.dtype}, not whole numbers")
        return tree.dtype.newbyteorder("=")
    if kind is np.str_:
        if tree.dtype.kind not in "UO" or not all(isinstance(s, str) for s in tree.ravel()):
            raise ValueError(f"{name} contains items that are not strings")
        return tree.dtype
    wanted: np.dtype[Any] = np.dtype(kind)
    if tree.dtype.kind != wanted.kind or tree.dtype.itemsize != wanted.itemsize:
        raise ValueError(f"{name} contains {tree.dtype}, not {wanted}")
    return wanted


def _check_finite(array: NDArray[Any], name: str, limits: Within) -> None:
    """Refuse numbers that are not finite, other than the infinities that are declared."""
    allowed = np.isfinite(array)
    for infinity in limits.infinite:
        allowed |= array == infinity
    if not allowed.all():
        raise ValueError(f"{name} contains values that are not finite")
    if array.size and not np.isfinite(array).any():
        raise ValueError(f"{name} contains no finite value")


def _check_range(array: NDArray[Any], name: str, context: Context, limits: Within) -> None:
    """Refuse numbers beyond their limits, or in the wrong order."""
    least, most = array.min(), array.max()
    if least < limits.low and least not in limits.infinite:
        raise ValueError(f"{name} contains {least}, less than {limits.low}")
    if most > limits.high:
        raise ValueError(f"{name} contains {most}, more than {limits.high}")
    if (limits.ascending or limits.spans) and (array[1:] < array[:-1]).any():
        raise ValueError(f"{name} is not in ascending order")
    if limits.below is not None:
        context.limit(name, int(most), limits.below)


def _is_list(hint: Any) -> bool:
    return get_origin(_unwrapped(hint)[0]) in (list, tuple)


def _items_of(tree: Any, name: str) -> list[Any]:
    if type(tree) is not list:
        raise ValueError(f"{name} is not a list")
    return tree


def _items(tree: Any, hint: Any, name: str, context: Context, shape: list[str]) -> list[Any]:
    """Return the items of a list. Symbols that an item introduces are local to it."""
    items = _items_of(tree, name)
    if shape and not context.bind(shape[0], len(items)):
        raise ValueError(f"{name} has {len(items)} items, not {context.shown(shape[0])}")
    found, known = [], {*context.sizes, BYTES}
    for i, item in enumerate(items):
        found.append(decode(item, hint, f"{name}[{i}]", context))
        context.settle(end=False)
        for symbol in set(context.sizes) - known:
            del context.sizes[symbol]
    return found


def _instance(tree: Any, cls: type, name: str, context: Context) -> Any:
    """Return an instance of a dataclass, with its fields checked."""
    if not isinstance(tree, dict) or tree.get("class") != cls.__name__:
        raise ValueError(f"{name} is not a {cls.__name__}")
    content, declared = tree["fields"], hints_of(cls)
    if set(content) != set(declared):
        odd = sorted(set(content) ^ set(declared))[0]
        raise ValueError(f"{name}.{odd[:60]} is missing, or not a part of a {cls.__name__}")
    # lists come last, because symbols that are not known yet are local to an item
    ordered = sorted(declared, key=lambda field: _is_list(declared[field]))
    return cls(**{k: decode(content[k], declared[k], f"{name}.{k}", context) for k in ordered})


def _measure(tree: Any, name: str) -> Measure:
    """Return a measure; its class checks the parameters."""
    found = get_measure(tree["measure"], tree["params"])
    if isinstance(found, Combined):
        for weight in found.weights:
            _number(weight, float, f"{name}.weights", Within(0, 1e300))
    return found


def _number(tree: Any, hint: Any, name: str, limits: Within) -> Any:
    """Return a number, a flag or a string."""
    if hint is bool or hint is str:
        if type(tree) is not hint:
            raise ValueError(f"{name} is not " + ("true or false" if hint is bool else "a string"))
        return tree
    if hint is int:
        if type(tree) is not int or not limits.low <= tree <= min(limits.high, _MOST):
            raise ValueError(f"{name} is not an integer of at least {limits.low}")
        return tree
    if hint is not float:
        raise TypeError(f"{name}: {hint} cannot be part of a model file")
    if type(tree) not in (int, float) or tree != tree:
        raise ValueError(f"{name} is not a number")
    if tree in limits.infinite:
        return float(tree)
    if not np.isfinite(float(tree)):
        raise ValueError(f"{name} is not finite")
    if not limits.low <= tree <= limits.high:
        raise ValueError(f"{name} is not a number from {limits.low} to {limits.high}")
    return float(tree)


def _labels(tree: Any, name: str, context: Context, size: str) -> NDArray[Any]:
    """Return the class labels."""
    if not isinstance(tree, np.ndarray) or tree.ndim != 1 or len(tree) < 2:
        raise ValueError(f"{name} is not a list of at least two labels")
    if not context.bind(size, len(tree)):
        raise ValueError(f"{name} has {len(tree)} labels, not {context.shown(size)}")
    labels = tree.tolist()
    if not all(isinstance(label, str | bytes | int | float) for label in labels):
        raise ValueError(f"{name} contains items that are not numbers or strings")
    if len(np.unique(tree)) < len(tree):  # a set would be slow for numbers of equal hash
        raise ValueError(f"{name} contains a label twice")
    context.add_bytes(tree.nbytes)
    return tree


def _objects(tree: Any, name: str, context: Context, size: str) -> Any:
    """Return objects in the measure's form. Their number is checked before the objects are."""
    measure = context.measure
    assert measure is not None, "a model declares its measure before its objects"
    if measure.accepts == "values":
        found = _instance(tree, PrecomputedColumns, name, context.within(f"{name} "))
        if not context.bind(size, len(found)):
            raise ValueError(f"{name} has {len(found)} columns, not {context.shown(size)}")
        if len(found.columns) and found.columns.max() >= found.width:
            raise ValueError(f"{name} refers to a column beyond {found.width}")
        if found.width != len(found):  # there are columns for all objects, or for these alone
            context.limit(f"{name}.width", found.width, "n_objects", equal=True)
        return found
    if isinstance(measure, Combined):
        return _records(tree, measure, name, context, size)
    if not isinstance(tree, list | np.ndarray):
        raise ValueError(f"{name} is not a list of objects")
    if not context.bind(size, len(tree)):
        raise ValueError(f"{name} has {len(tree)} objects, not {context.shown(size)}")
    if len(tree) == 0:
        return tree
    try:
        objects = measure.check(tree)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}: {error}") from error
    # stored objects have passed the same check before, so it must leave them unchanged
    kept = getattr(tree, "dtype", np.dtype(object))
    if isinstance(objects, np.ndarray) and kept not in (objects.dtype, object):
        raise ValueError(f"{name} contains {kept}, not {objects.dtype}")
    if len(objects) != len(tree):
        raise ValueError(f"{name} has {len(objects)} objects, not {len(tree)}")
    if measure.accepts == "vectors" and not context.bind("d", objects.shape[1]):
        raise ValueError(f"{name} has {objects.shape[1]} columns, not {context.shown('d')}")
    measure.check_alike(context.examples.setdefault(id(measure), objects[:1]), objects)
    context.add_bytes(sum(map(_bytes_of, objects)))
    return objects


def _bytes_of(one: Any) -> int:
    """Return the number of bytes of an object; text may have one per letter."""
    if isinstance(one, str | bytes):
        return len(one)
    return one.nbytes if isinstance(one, np.ndarray) else 1


def _records(tree: Any, measure: Combined, name: str, context: Context, size: str) -> Records:
    """Return records, given the objects of each part of the measure."""
    names = tuple(part.name for part in measure.parts)
    if not isinstance(tree, dict) or tree.get("class") != "Records":
        raise ValueError(f"{name} is not a table of records")
    if tuple(tree["fields"]) != names:
        raise ValueError(f"{name} does not have the parts {', '.join(names)[:60]}")
    columns = []
    for part in measure.parts:
        where = f"{name}.{part.name}"
        own = Context(part.measure, examples=context.examples)
        columns.append(_objects(tree["fields"][part.name], where, own, size))
        context.add_bytes(own.sizes.get(BYTES, 0))
        if not context.bind(size, len(columns[-1])):
            raise ValueError(f"{where} has {len(columns[-1])} objects, not {context.shown(size)}")
        width = own.sizes.get("d")  # the number of columns, if there are vectors
        if width is not None and context.sizes.setdefault(f"d of {part.name}", width) != width:
            raise ValueError(f"{where} has {width} columns, unlike other objects")
    return Records(names, tuple(columns))
