"""What a measure is: one block of objects compared with another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Objects = NDArray[Any] | Sequence[Any]
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
    if isinstance(objects, np.ndarray):
        return objects[indices]
    if isinstance(indices, slice):
        return objects[indices]
    return [objects[i] for i in indices]


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
    psd: ClassVar[bool | None] = None
    """Whether it is known to be positive semi-definite (a dissimilarity: Euclidean)."""
    releases_gil: ClassVar[bool] = False
    """Whether several threads evaluate faster than one."""
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

    def params(self) -> dict[str, Any]:
        """Return the parameters by name, as for a model file or a fingerprint."""
        return {name: plain(value) for name, value in asdict(self).items()}
