"""Objects that this process reads one chunk after the other, and that its threads compare."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from numpy.typing import NDArray

from ..compare.pairs import Array
from ..compare.progress import progress
from ..compare.workers import count_workers, in_order
from ..core.ordered import OrderedSum
from ..measures import Measure
from .chunk import Chunk, Counted, CountedSum
from .dataset import Dataset

Result = TypeVar("Result")


class Local(Dataset):
    """What data sets in memory and in files share: everything but where the chunks come from."""

    def __init__(
        self,
        labels: NDArray[Any] | None,
        weights: Array | None,
        *,
        measure: Measure,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.labels, self.weights = labels, weights
        self.measure = measure
        self.n_jobs = n_jobs
        self.workers = count_workers(n_jobs, default_all=measure.releases_gil)
        self.verbose = verbose

    @abstractmethod
    def chunks(self, size: int | None, *, objects: bool = True) -> Iterator[Chunk]:
        """Yield all objects in order, `size` at a time (None: as is convenient)."""

    def map(self, function: Callable[[Chunk], Result], *, objects: bool = True) -> Iterator[Result]:
        """Yield `function(chunk)` over all objects in order."""
        return map(function, self.chunks(None, objects=objects))

    def reduce(
        self,
        function: Callable[[Chunk], Counted[Result]],
        add: Callable[[Result, Result], Result],
        block_rows: int,
        n_pairs: int,
    ) -> Counted[Result]:
        """Return Σ function(block) over all blocks, from threads, in the fixed order."""
        total = OrderedSum(CountedSum(add))
        for part in self.each(function, block_rows, n_pairs):
            total.push(part)
        return total.result()

    def each(
        self, function: Callable[[Chunk], Counted[Result]], block_rows: int, n_pairs: int
    ) -> Iterator[Counted[Result]]:
        """Yield `function(block)` over all blocks in order, from several threads."""
        total = self.survey().n_objects * n_pairs
        with progress(total, "comparing", self.verbose) as shown:
            for part in in_order(function, self.chunks(block_rows), self.workers):
                shown.advance(part.objects * n_pairs)
                yield part
