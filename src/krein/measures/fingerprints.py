"""Fingerprints: objects with equal contents have equal fingerprints, in any process.

A fingerprint is a hash of type and contents; that of a container is a hash of the fingerprints
of its parts. The parts of sets and mappings are ordered by their fingerprints, because their
own order changes from one process to the next. Other objects are described by what they can be
rebuilt from, `__reduce_ex__`: for a plain class, its name and the attributes; for a class
written in C, whatever it provides. Objects that provide nothing (a lock, an open file, a
generator) are refused.

Neither `joblib.hash` nor a hash of `pickle` or `marshal` output would do: these depend on whether
equal parts are shared, on file names and line numbers of code, and on the order of its constant
sets, which changes from one process to the next.
"""

from __future__ import annotations

import copyreg
import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from operator import itemgetter
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

SIZE = 16
"""Bytes of a fingerprint."""


def fingerprint(item: Any) -> bytes:
    """Return `SIZE` bytes for the contents of `item`. O(size of the item).

    Raises a `TypeError` if the item cannot be identified by its contents.
    """
    try:
        return _plain(item) or _Walk().part(item)
    except Exception as error:
        raise TypeError(
            f"a cache identifies objects by their contents, but those of a "
            f"{type(item).__name__} cannot be read: {error}"
        ) from error


def _hash(tag: str, *parts: bytes) -> bytes:
    """Return the hash of the parts, with boundaries between them, and of the tag."""
    digest = hashlib.blake2b(tag.encode(), digest_size=SIZE)
    for part in parts:
        digest.update(b"|" + len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def _plain(item: Any) -> bytes | None:
    """Return the fingerprint of an item without parts, or None."""
    kind = type(item)
    if kind is str or kind is np.str_:
        return _hash("text", item.encode("utf-8", "surrogatepass"))
    if kind in (bytes, bytearray, memoryview, np.bytes_):
        return _hash("bytes", bytes(item))
    if item is None or kind in (bool, int, float, complex):
        return _hash(kind.__name__, repr(item).encode())
    scalar = isinstance(item, np.generic)
    # other subclasses of arrays contain more than numbers, e.g. a mask or a unit
    if (scalar or kind in (np.ndarray, np.memmap)) and not item.dtype.hasobject:
        about = str(item.dtype.descr) if item.dtype.names else item.dtype.str
        contents = item.tobytes() if scalar or not item.dtype.itemsize else _buffer(item)
        return _hash(f"{'scalar' if scalar else 'array'} {about} {item.shape}", contents)
    return None


def _buffer(array: Any) -> Any:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b""


def _name(thing: Any) -> bytes:
    where = getattr(thing, "__module__", None)
    return f"{where}.{getattr(thing, '__qualname__', thing.__name__)}".encode()


class _Walk:
    """One traversal of an object and everything that it contains.

    Every container is visited once. A container without a reference back to one of its own
    containers is identified by its contents, wherever and however often it occurs. A member of a
    reference cycle is identified by the number of its visit.
    """

    def __init__(self) -> None:
        self.visits: dict[int, tuple[int, Any]] = {}  # keeps items alive, so ids stay unique
        self.finished: dict[int, bytes] = {}
        self.furthest = 0  # earliest visit referred to since the current container began

    def part(self, item: Any) -> bytes:
        """Return the fingerprint of `item`."""
        plain = _plain(item)
        if plain is not None:
            return plain
        if id(item) in self.finished:
            return self.finished[id(item)]
        if id(item) in self.visits:
            number = self.visits[id(item)][0]
            self.furthest = min(self.furthest, number)
            return _hash("again", str(number).encode())
        number = len(self.visits)
        self.visits[id(item)] = (number, item)
        before, self.furthest = self.furthest, number
        digest = self._whole(item)
        if self.furthest >= number:
            self.finished[id(item)] = digest
        self.furthest = min(before, self.furthest)
        return digest

    def parts(self, items: Iterable[Any]) -> list[bytes]:
        """Return the fingerprints of the items, in their order."""
        return [self.part(item) for item in items]

    def _whole(self, item: Any) -> bytes:
        kind: Any = type(item)
        if kind in (list, tuple):
            return _hash(kind.__name__, *self.parts(item))
        if kind is dict:
            return _hash("dict", *self._pairs(item.items()))
        if isinstance(item, set | frozenset):
            state = self.part(item.__reduce__()[2])
            return _hash("set", _name(kind), state, *sorted(self.parts(item)))
        if kind is np.ndarray:  # of objects
            return _hash(f"objects {item.dtype}{item.shape}", *self.parts(item.ravel().tolist()))
        if isinstance(item, type | ModuleType):
            return _hash("name", item.__name__.encode() if kind is ModuleType else _name(item))
        if isinstance(item, CodeType):
            return self._code(item)
        if isinstance(item, FunctionType):
            return self._function(item)
        if isinstance(item, MethodType):
            return _hash("method", *self.parts([item.__func__, item.__self__]))
        if isinstance(item, BuiltinFunctionType):
            owner = item.__self__
            return _hash("builtin", _name(item), self.part(owner) if owner is not None else b"")
        written = callable(item) and isinstance(kind.__call__, FunctionType)
        if callable(item) and not written and hasattr(item, "__wrapped__"):
            # wrappers of numba or functools.cache: their contents change with every process or call
            return _hash("wrapper", _name(kind), self.part(item.__wrapped__))
        return self._object(item, _behaviour(kind) if written else b"")

    def _pairs(self, items: Iterable[tuple[Any, Any]]) -> list[bytes]:
        """Return the fingerprints of a mapping's items, ordered by the fingerprints of the keys."""
        pairs = sorted(((self.part(key), value) for key, value in items), key=itemgetter(0))
        return [digest for key, value in pairs for digest in (key, self.part(value))]

    def _code(self, code: CodeType) -> bytes:
        # its file name and line numbers do not affect what it computes
        about = (
            (code.co_code, code.co_consts, code.co_names, code.co_freevars, code.co_cellvars),
            (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags),
            # the names of arguments are part of how it is called
            code.co_varnames[: code.co_argcount + code.co_kwonlyargcount],
            getattr(code, "co_exceptiontable", b""),
        )
        return _hash("code", self.part(about))

    def _function(self, function: FunctionType) -> bytes:
        """Return the fingerprint of code, defaults and everything that the function closes over."""
        cells = [self._cell(cell) for cell in function.__closure__ or ()]
        about = (function.__code__, function.__defaults__, function.__kwdefaults__)
        return _hash("function", _name(function), *self.parts(about), *cells)

    def _cell(self, cell: Any) -> bytes:
        try:
            contents = cell.cell_contents
        except ValueError:  # not filled yet
            return b""
        return self.part(contents)

    def _object(self, item: Any, behaviour: bytes) -> bytes:
        kind = type(item)
        own = copyreg.dispatch_table.get(kind)
        reduced: Any = item.__reduce_ex__(4) if own is None else own(item)
        if isinstance(reduced, str):
            return _hash("global", _name(kind), reduced.encode(), behaviour)
        padded: list[Any] = [*reduced, None, None, None]
        maker, arguments, state, listed, mapped = padded[:5]
        named = isinstance(maker, type | FunctionType | BuiltinFunctionType)
        made = _name(maker) if named else self.part(maker)
        digests = [_name(kind), made, behaviour, self.part(arguments), self.part(state)]
        for items, pairs in ((listed, False), (mapped, not isinstance(item, OrderedDict))):
            found = list(items) if items is not None else []
            digests.append(_hash("items", *(self._pairs(found) if pairs else self.parts(found))))
        return _hash("object", *digests)


@lru_cache(maxsize=256)
def _behaviour(kind: type) -> bytes:
    """Return the fingerprint of the functions of a class of callable objects, and of the plain
    values that the class contains.
    """
    walk, digests = _Walk(), []
    for base in kind.__mro__[:-1]:
        for name, member in sorted(vars(base).items()):
            for part in ("__func__", "fget"):
                member = getattr(member, part, member)
            plain = None if name.startswith("__") else _plain(member)
            if isinstance(member, FunctionType):
                digests += [name.encode(), walk.part(member.__code__)]
            elif plain is not None:
                digests += [name.encode(), plain]
    return _hash("class", *digests)
