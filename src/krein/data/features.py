"""Features that are kept somewhere else for the passes of one fit, and the rows made of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ..compare.progress import Progress, progress
from ..core.pcvm.basis import BasisFunction, basis_values
from ..core.pcvm.rows import Array, Block, Labels, Rows, Term, mean_features, rows_per_block


class StoredFeatures(ABC):
    """Features (N, r), the mean that rows are counted from, and class codes with their weights.

    What is kept are values of the measure, of which a function is taken when they are read; or, for
    a hundred passes, what that gives.
    """

    shape: tuple[int, int]
    mean: Array
    function: BasisFunction = "similarity"
    state: Literal["values", "features", "gone"] = "values"
    """What is kept; gone where others have taken it over."""
    codes: NDArray[Any]
    """Class code of each object."""
    weights: Array | None
    """Weight of each object."""
    _bar: ExitStack = ExitStack()
    shown: Progress = Progress()
    """Where passes over the rows are counted."""

    @abstractmethod
    def rows(self, recode: Labels, n_classes: int) -> Rows:
        """Return the rows of one problem, in which class c is class recode[c]."""

    def under(self, function: BasisFunction, *, keep: bool = True) -> Self:
        """Return a function of these features, about its mean. One pass; nothing is copied.

        Unless `keep`, a second pass puts it in the place of the values: passes over it are shorter.
        """
        found = copy(self)
        found.function = function
        every_class_alike = np.zeros(2**16, dtype=np.intp)
        found.mean = mean_features(found.rows(every_class_alike, 1))
        if not keep:
            found.put(Blocks(function, found.mean, every_class_alike))
            found.state, self.state = "features", "gone"
        return found

    @abstractmethod
    def put(self, made: Blocks) -> None:
        """Put what is made of the values in their place."""

    def watch(self, verbose: int) -> None:
        """Count passes on a bar, until `close`."""
        self._bar = ExitStack()
        self.shown = self._bar.enter_context(progress(None, "searching", verbose, "passes"))

    def close(self) -> None:
        """Give the room back."""
        self._bar.close()


@dataclass(frozen=True)
class Blocks:
    """How features and codes become a block of the rows of one problem."""

    function: BasisFunction
    mean: Array | None  # where there is nothing to take off
    recode: Labels

    def features(self, values: Array, out: Array | None = None) -> Array:
        """Return the features of these values, in `out` where it is given; it may be they."""
        F = basis_values(self.function, values, out)
        if self.mean is None:
            return F
        return np.subtract(F, self.mean, out=out if F is values else F)

    def __call__(
        self,
        values: Array,
        codes: NDArray[Any],
        weights: Array | None,
        out: Array | None = None,
    ) -> Block:
        """Return the block of these values, class codes and weights."""
        s = 1.0 if weights is None else weights
        return Block(self.features(values, out), self.recode[codes], s)


class StoredRows(Rows, ABC):
    """Rows of stored features. Class and weight of each are made when they are asked for."""

    def __init__(self, kept: StoredFeatures, recode: Labels, n_classes: int) -> None:
        self.kept = kept
        self.recode = recode
        self.n_classes = n_classes
        self.shape = kept.shape
        self.block_rows = rows_per_block(kept.shape[1])

    @property
    def y(self) -> Labels:  # type: ignore[override]
        """Class of each row: 8 bytes each."""
        return self.recode[self.kept.codes]

    @property
    def weight(self) -> Array | None:  # type: ignore[override]
        """Weight of each row."""
        return self.kept.weights

    def total(self, term: Term) -> tuple[Array, ...]:
        """Return Σ term(block) over all blocks, in the fixed order, and count the pass."""
        found = self.sum(term)
        self.kept.shown.advance(1)
        return tuple(found)

    @abstractmethod
    def sum(self, term: Term) -> list[Array]:
        """Return Σ term(block) over all blocks, in the fixed order."""

    @property
    def blocks(self) -> Blocks:
        """What makes blocks of these rows."""
        kept = self.kept
        if kept.state == "gone":
            raise RuntimeError("these values have been replaced by what was made of them")
        if kept.state == "features":
            return Blocks("similarity", None, self.recode)
        return Blocks(kept.function, kept.mean, self.recode)
