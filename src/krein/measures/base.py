"""What a measure is: one block of objects compared with another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import reduce
from numbers import Integral, Real
from operator import add
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Objects = Any  # an array, a list, or what a measure makes of them that has len() and [indices]
Kind = Literal["similarity", "dissimilarity"]


class PairError(ValueError):
    """A pair that could not be compared: `row` and `col` say which, `reason` says why.

    A measure raises it with positions inside its block; whoever cut the block out of a larger
    collection raises it again with the positions there.

    Examples
    --------
    >>> from krein.measures import PairError, get_measure
    >>> ratio = get_measure(lambda a, b: a / b)
    >>> try:
    ...     ratio.block([1.0], [2.0, 0.0])
    ... except PairError as error:
    ...     print(error.row, error.col)
    ...
    0 1
    """

    def __init__(self, row: int, col: int, reason: str) -> None:
        super().__init__(row, col, reason)
        self.row, self.col, self.reason = row, col, reason

    def __str__(self) -> str:
        return f"row object {self.row} and column object {self.col}: {self.reason}"


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


def refuse_masked(objects: Any, what: str = "X") -> None:
    """Raise for a masked array: what is under the mask would count as if it were there.

    >>> import numpy as np
    >>> refuse_masked(np.ma.masked_invalid([1.0, np.nan]))
    Traceback (most recent call last):
    TypeError: X is a masked array; fill it in, X.filled(...), or take masked objects out
    """
    if isinstance(objects, np.ma.MaskedArray):
        raise TypeError(
            f"{what} is a masked array; fill it in, {what}.filled(...), or take masked objects out"
        )
    if isinstance(objects, list | tuple):
        for row, item in enumerate(objects):
            if isinstance(item, np.ma.MaskedArray):
                raise TypeError(f"object {row} of {what} is a masked array; fill it in")


def unframed(objects: Any) -> Any:
    """Return a data frame or a column of one as an array, anything else as it is."""
    return objects.to_numpy() if hasattr(objects, "to_numpy") else objects


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
    """What scikit-learn calls X: "objects" of any kind, "vectors", or "values" given by pair."""
    block_pairs: ClassVar[int] = 2**18
    """How many pairs make a block: enough that a call costs nothing beside them, few enough
    to share out among threads, to stay near the processor, and to lose little in a crash."""

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, plain(getattr(self, field.name)))

    @abstractmethod
    def check(self, objects: Any) -> Objects:
        """Return the objects in the form `block` takes: an array (objects along the first
        axis) or a list. Raise a `ValueError` or `TypeError` that names the object at fault.
        """

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
        own: NDArray[np.intp],
        others: NDArray[np.intp],
        n_objects: int,
    ) -> Objects:
        """Return objects, numbered `own` of all, as they are compared with those at `others`."""
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

    def params(self) -> dict[str, Any]:
        """Return the parameters by name, as for a model file or a fingerprint."""
        return {name: plain(value) for name, value in asdict(self).items()}
