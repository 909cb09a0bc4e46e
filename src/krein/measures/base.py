"""What a measure is: one block of objects compared with another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import reduce
from numbers import Integral, Real
from operator import add
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from .beside import Beside, in_words
from .errors import PairError, Readable, RefusedObject, RefusedType
from .frames import frame_contents

Array = NDArray[np.float64]
Objects = Any  # an array, a list, or what a measure makes of them that has len() and [indices]
Kind = Literal["similarity", "dissimilarity"]


def take(objects: Objects, indices: NDArray[np.intp] | slice) -> Objects:
    """The objects at `indices`: rows of an array, or items of a list.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures import take
    >>> take(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    if isinstance(objects, list | tuple) and not isinstance(indices, slice):
        return [objects[i] for i in indices]
    return objects[indices]


def joined(parts: Sequence[Any]) -> Any:
    """Several sequences of objects as one: arrays stacked, lists appended.

    Examples
    --------
    >>> from krein.measures.base import joined
    >>> joined([["a"], ["b", "c"]])
    ['a', 'b', 'c']
    """
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    if isinstance(parts[0], list | tuple | np.ndarray):
        return [item for part in parts for item in part]
    return reduce(add, parts)


def refuse_masked(objects: Any, what: str = "object") -> None:
    """Raise a `RefusedObject` where something is masked: what lies under a mask is no value."""
    if isinstance(objects, np.ma.MaskedArray) and np.ma.is_masked(objects):
        first = np.argwhere(np.ma.getmaskarray(objects))[0]
        reason = "is masked in part: fill what is missing (X.filled(value)), or leave such rows out"
        raise RefusedObject(what, first[0], reason)


def unframed(objects: Any) -> Any:
    """Return what a data frame, one of its columns or a table holds; anything else as it is.

    A masked array is refused where something is masked.
    """
    if isinstance(objects, np.ma.MaskedArray):
        refuse_masked(objects)
        return np.asarray(objects)
    known = isinstance(objects, np.ndarray | list | tuple | str | bytes)
    return objects if known else frame_contents(objects)


def as_list(objects: Any, what: str) -> list[str]:
    """Return `objects` as a list of strings, or name the first that is none.

    Takes lists, arrays (one column is read as flat) and pandas columns.
    """
    if isinstance(objects, str | bytes):
        raise TypeError(f"one {what} alone was given; {what}s come as a list")
    objects = unframed(objects)
    if isinstance(objects, np.ndarray):
        if objects.ndim == 2 and objects.shape[1] == 1:
            objects = objects[:, 0]
        if objects.ndim != 1:
            raise ValueError(f"{what}s come as a list; got an array of shape {objects.shape}")
        objects = objects.tolist()
    strings = list(objects)
    for row, string in enumerate(strings):
        if not isinstance(string, str):
            raise RefusedType(what, row, f"is {string!r}, a {type(string).__name__}, not a str")
    return strings


def plain(value: Any) -> Any:
    """Return numbers out of numpy as Python's own, also within lists; anything else as it is."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, np.str_):
        return str(value)
    if type(value) in (list, tuple):
        return type(value)(plain(part) for part in value)
    return value


@dataclass(frozen=True)
class Measure(ABC):
    """A function of two objects, evaluated a block of pairs at a time.

    A subclass is a frozen dataclass: its fields are the parameters of the measure, plain
    values that can be written to JSON. It declares what is known of the measure, so that no
    method has to guess. A `__post_init__` of its own begins with `super().__post_init__()`, which
    turns parameters out of numpy into Python's numbers.

    Examples
    --------
    >>> from krein.measures import get_measure
    >>> measure = get_measure("levenshtein", {"normalize": True})
    >>> measure.kind, measure.psd, measure.params()
    ('dissimilarity', False, {'normalize': True})
    """

    name: ClassVar[str]
    """What the registry calls it."""
    kind: ClassVar[Kind]
    """Whether a larger value means more alike or less."""
    symmetric: ClassVar[bool] = True
    """Whether `block(A, B)` is the transpose of `block(B, A)`."""
    one_direction: ClassVar[bool] = True
    """Whether a symmetric measure is known to be, so that averaging both directions is idle."""
    psd: ClassVar[bool | None] = None
    """Whether it is known to be positive semi-definite (a dissimilarity: Euclidean)."""
    releases_gil: ClassVar[bool] = False
    """Whether several threads evaluate faster than one."""
    expensive: ClassVar[bool] = True
    """Whether a pair costs more than the arithmetic on its value."""
    accepts: ClassVar[str] = "objects"
    """What X is to scikit-learn: "objects" of any kind, "vectors", or "values" given by pair."""
    cacheable: ClassVar[bool] = True
    """Whether finished blocks are worth keeping; not where the values are there already."""
    mirrored: ClassVar[bool] = True
    """Whether half of a symmetric block may be filled in from the other half."""
    reads_files: ClassVar[bool] = False
    """Whether `check` takes the path of a file or a large memory map, and reads it by block."""
    most_candidates: ClassVar[int | None] = None
    """Among how many objects landmarks are chosen at most, where not all are in memory."""
    block_pairs: ClassVar[int] = 2**18
    """How many pairs make a block: enough that a call costs nothing beside them, few enough
    to share out among threads, to stay near the processor, and to lose little in a crash."""

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, plain(getattr(self, field.name)))

    def undecided(self) -> bool:
        """Whether a parameter is left to be chosen by the training objects, by `decide`."""
        return False

    def decide(self, objects: Any) -> Self:
        """Return the measure with all parameters, those left open chosen for these objects.

        A fitted model keeps it, so that new objects are compared as the training objects were.
        """
        return self

    @abstractmethod
    def check(self, objects: Any) -> Objects:
        """Return the objects in the form `block` takes: an array (objects along the first
        axis) or a list. Raise a `RefusedObject` where one of them is at fault.
        """

    def readable(self, objects: Any, others: Objects | None = None) -> Readable:
        """Return which objects can be compared, and why the others cannot.

        Each is looked at by itself, so that one bad object costs the others nothing. With `others`,
        out of `check`, they also have to be comparable with those (landmarks, say); without, with
        the first that can be read.

        Examples
        --------
        >>> from krein.measures import get_measure
        >>> found = get_measure("dtw").readable([[0.0, 1.0], [], [2.0]])
        >>> found.mask
        array([ True, False,  True])
        >>> found.reasons
        {1: 'series is empty'}
        """
        if self.undecided():
            return self.decide(objects).readable(objects, others)
        objects = unframed(objects)
        mask, reasons = np.ones(len(objects), dtype=bool), {}
        try:
            self._check_with(objects, others)
        except (TypeError, ValueError):
            first = None  # of those that can be read: the others have to be like it
            for i in range(len(objects)):
                try:
                    one = self._check_with(objects[i : i + 1], others)
                    if first is not None:
                        self.check_alike(one, first)
                    first = one if first is None else first
                except (TypeError, ValueError) as error:
                    mask[i] = False
                    reasons[i] = str(error)
                    if isinstance(error, RefusedObject):  # whose row counts this one alone
                        reasons[i] = f"{error.kind} {error.reason}"
        return Readable(mask, reasons)

    def _check_with(self, objects: Any, others: Objects | None) -> Objects:
        checked = self.check(objects)
        if others is not None:
            self.landmarks_for(checked, others)
        return checked

    def check_alike(self, A: Objects, B: Objects) -> None:  # noqa: B027 - most have no such rule
        """Raise a `ValueError` where objects out of `check` cannot be compared with others."""

    @abstractmethod
    def block(self, A: Objects, B: Objects) -> Array:
        """Return the (len(A), len(B)) values of the measure, for objects out of `check`."""

    def diagonal(self, A: Objects) -> Array:
        """Return the (len(A),) values of each object with itself."""
        index = np.arange(1)
        return np.array(
            [self.block(take(A, index + i), take(A, index + i))[0, 0] for i in range(len(A))],
            dtype=np.float64,
        )

    def check_symmetry(self, objects: Objects, symmetrize: bool) -> tuple[Objects, int]:
        """Return the training objects, and how many pairs it took to check the measure on them.

        Raises where the two directions of a pair differ and `symmetrize` does not average them.
        """
        if not self.symmetric and not symmetrize:
            raise ValueError(
                f"the measure {self.name!r} is not symmetric; symmetrize=True takes the average "
                "of both directions, at twice the comparisons"
            )
        return objects, 0

    def among(
        self,
        objects: Objects,
        indices: NDArray[np.intp],
        others: NDArray[np.intp],
        n_objects: int,
    ) -> Objects:
        """Return objects, at `indices` of all, as they are compared with those at `others`."""
        return objects

    def keep(self, objects: Objects, indices: NDArray[np.intp], n_objects: int) -> Objects:
        """Return landmarks, at `indices` of all objects, as a fitted model keeps them."""
        return objects

    def with_each_other(self, objects: Objects, kept: Objects) -> Objects:
        """Return what landmarks are compared with to find the values among them."""
        return objects

    def landmarks_for(self, objects: Objects, landmarks: Objects) -> Objects:
        """Return the landmarks as these objects can be compared with them, or raise."""
        self.check_alike(objects, landmarks)
        return landmarks

    def at_hand(self, objects: Objects) -> bool:
        """Whether every value is in memory already, so that reading all of them costs nothing."""
        return False

    def comparable(self, objects: Objects) -> bool:
        """Whether these training objects can be compared with each other."""
        return True

    def each(self, A: Objects, B: Objects, columns: NDArray[np.intp]) -> Array:
        """Return the values (n, k) of object i of A with the objects `columns[i]` of B.

        What a second look asks for: every object has its own candidates. The default is a block of
        one row at a time; a measure whose calls are costly may do better.
        """
        values = np.empty(columns.shape)
        for i, row in enumerate(columns):
            try:
                values[i] = self.block(take(A, np.array([i])), take(B, row))[0]
            except PairError as error:
                raise PairError(i, error.col, error.reason) from error
        return values

    def beside(self, a: Any, b: Any) -> Beside:
        """Return two objects, out of `check`, side by side: what there is to see of their value.

        An alignment, two curves with their warping path, two pictures, as the measure has them;
        else numbers or text.
        """
        return in_words(a, b)

    def content_keys(self, objects: Objects) -> NDArray[np.uint64]:
        """Return a number (N,) for each object that its contents decide, not its place.

        The place where contents cannot be told, as for an object that holds an open file.
        """
        from .contents import fingerprint

        try:
            found = b"".join(fingerprint(item)[:8] for item in objects)
        except TypeError:
            return np.arange(len(objects), dtype=np.uint64)
        return np.frombuffer(found, dtype=np.uint64)

    def params(self) -> dict[str, Any]:
        """Return the parameters by name, as for a model file or a fingerprint."""
        return {name: plain(value) for name, value in asdict(self).items()}


def checked_objects(measure: Measure, X: Any) -> Objects:
    """Return the objects in the measure's form, one for every row of X and at least one."""
    refuse_masked(X)
    given = _count(X)
    if given == 0:  # which every measure would tell in words of its own
        raise ValueError("there are no objects to compare")
    objects = measure.check(X)
    if given is not None and len(objects) != given:
        raise ValueError(
            f"X has {given} rows, of which the measure {measure.name!r} made {len(objects)} objects"
        )
    if len(objects) == 0:
        raise ValueError("there are no objects to compare")
    return objects


def _count(X: Any) -> int | None:
    """Return how many objects X holds; None where that shows only as they are read."""
    if isinstance(X, str | bytes | PathLike):
        return None
    shape = getattr(X, "shape", None)
    if shape:
        return int(shape[0])
    try:
        return len(X)
    except TypeError:
        return None
