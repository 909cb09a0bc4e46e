"""What a measure is: one block of objects compared with another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Objects = NDArray[Any] | Sequence[Any]


def take(objects: Objects, indices: NDArray[np.intp] | slice) -> Objects:
    """The objects at `indices`: rows of an array, or items of a list."""
    if isinstance(objects, np.ndarray):
        return objects[indices]
    if isinstance(indices, slice):
        return objects[indices]
    return [objects[i] for i in indices]


@dataclass(frozen=True)
class Measure(ABC):
    """A function of two objects, evaluated a block of pairs at a time.

    A subclass is a frozen dataclass: its fields are the parameters of the measure, plain
    values that can be written to JSON. It declares what is known of the measure, so that no
    method has to guess.
    """

    name: ClassVar[str]
    """What the registry calls it."""
    kind: ClassVar[Literal["similarity", "dissimilarity"]]
    """Whether a larger value means more alike or less."""
    symmetric: ClassVar[bool] = True
    """Whether `block(A, B)` is the transpose of `block(B, A)`."""
    psd: ClassVar[bool | None] = None
    """Whether it is known to be positive semi-definite (a dissimilarity: Euclidean)."""
    releases_gil: ClassVar[bool] = False
    """Whether several threads evaluate faster than one."""

    @abstractmethod
    def check(self, objects: Any) -> Objects:
        """Return the objects in the form `block` takes: an array (objects along the first
        axis) or a list. Raise a `ValueError` or `TypeError` that names the object at fault.
        """

    @abstractmethod
    def block(self, A: Objects, B: Objects) -> Array:
        """Return the (len(A), len(B)) values of the measure, for objects out of `check`."""

    def diagonal(self, A: Objects) -> Array:
        """Return the (len(A),) values of each object with itself."""
        index = np.arange(1)
        return np.array(
            [self.block(take(A, index + i), take(A, index + i))[0, 0] for i in range(len(A))]
        )

    def params(self) -> dict[str, Any]:
        """Return the parameters by name, as for a model file or a fingerprint."""
        return asdict(self)
