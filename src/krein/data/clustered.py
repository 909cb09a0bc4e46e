"""Objects on a Dask cluster: terms go to the partitions, sums come back.

Blocks are those of the grid that a fit in memory would have, counted from the first object on. A
task takes a run of blocks that is a whole branch of the tree of sums, about a partition or less;
where a partition ends inside it, the objects beyond travel. So neither partitions, nor workers, nor
the death of one of them change a digit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from operator import add as plus
from typing import Any, TypeVar

import numpy as np

from ..compare import ObjectPairs, Pairs
from ..compare.pairs import Indices
from ..compare.progress import progress
from ..compare.workers import single_blas
from ..core.moments import ClassMoments
from ..core.ordered import FAN, OrderedSum, ordered_sum
from ..core.pcvm.rows import Array
from ..measures.vectors import Vectors
from .client import alive, count_threads, current_client, fetched, results
from .clusterpairs import ClusterPairs
from .clusterrows import ClusterFeatures
from .collection import Collection, FeatureBlock, Work
from .columns import Counted, CountedSum
from .opening import is_dask
from .piece import Origin, Piece, joined
from .planning import count_tasks, rows_to_keep
from .storedrows import StoredFeatures
from .tree import branches, large_tasks, share, tree_sum

Result = TypeVar("Result")


@dataclass(frozen=True)
class Partition:
    """One partition of a collection, by its number."""

    number: int

    def where(self, i: int) -> str:
        """Return the partition and the number of the object in it."""
        return f"partition {self.number}, object {i}"


class Clustered(Collection):
    """A `dask.bag`, a series or frame of `dask.dataframe`, or a `dask.array`, with labels.

    Labels are another collection with the same partitions, or an array in memory.
    """

    plans = True
    n_jobs = 1

    def __init__(self, X: Any, y: Any = None, *, verbose: int = 0) -> None:
        if y is None:
            raise ValueError("labels y go with a Dask collection X")
        self.X = X
        self.verbose = verbose
        self.width = X.shape[1] if getattr(X, "ndim", 1) == 2 else None
        self._stack = ExitStack()
        self.client = self._stack.enter_context(current_client())
        try:
            self.threads = count_threads(self.client)
            self._objects = partitions(X)
            self._labels: list[Any] | None = partitions(y) if is_dask(y) else None
            self._y = None if is_dask(y) else np.asarray(y)
            if self._labels is not None and len(self._labels) != len(self._objects):
                raise ValueError(
                    f"X has {len(self._objects)} partitions and y has {len(self._labels)}: "
                    "cut y as X is cut"
                )
            self._starts = self._count()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the client where it is our own."""
        self._stack.close()

    def parts(self, term: Callable[[Piece], Result], *, objects: bool = True) -> Iterator[Result]:
        """Yield `term(partition)` in order, each from where the partition lies."""
        shared = share(self.client, term)
        tasks = [
            self._task(shared, [(p, 0, int(n))], objects)
            for p, n in enumerate(np.diff(self._starts))
        ]
        yield from fetched(self.client, self._compute(tasks))

    def total(
        self,
        term: Callable[[Piece], Counted[Result]],
        grid: int,
        add: Callable[[Result, Result], Result],
        work: Work,
    ) -> Counted[Result]:
        """Return Σ term(piece). Branches of `FAN` tasks are merged on the cluster, and fetched as
        they are finished: what a dying worker takes along is little.
        """
        shared = share(self.client, _ByBlock(term, grid, CountedSum(add)))
        step = self._step(grid, work.seconds)
        leaves = self._compute([self._task(shared, cut) for cut in self._cuts(step)])
        n = len(leaves)
        total = OrderedSum(CountedSum(add))
        early: dict[int, Any] = {}
        following = n
        N = int(self._starts[-1])
        leaves += branches(self.client, leaves, CountedSum(add))
        with progress(N * work.pairs, "comparing", self.verbose) as shown:
            for i, future in results(self.client, leaves):
                if i < n:
                    shown.advance((min((i + 1) * step, N) - i * step) * work.pairs)
                    continue
                (early[i],) = fetched(self.client, [future])
                while following in early:
                    total.push(early.pop(following))
                    following += 1
        return total.result()

    def features(
        self,
        term: Callable[[Piece], Counted[FeatureBlock]],
        width: int,
        grid: int,
        work: Work,
        class_weights: Array | None,
    ) -> tuple[StoredFeatures, Counted[ClassMoments]]:
        """Have every task keep its features where it ran."""
        step = rows_to_keep(work, width, self.threads)
        shared = share(self.client, _ByGrid(term, grid))
        blocks = self._compute([self._task(shared, cut) for cut in self._cuts(step)])
        N = int(self._starts[-1])
        with progress(N * work.pairs, "comparing", self.verbose) as shown:
            for i, _ in results(self.client, list(blocks)):
                shown.advance((min((i + 1) * step, N) - i * step) * work.pairs)
        moments = self.client.map(block_moments, blocks, pure=False)
        total = tree_sum(self.client, moments, CountedSum(plus))
        kept = ClusterFeatures(self.client, blocks, step, (work.n_objects, width), class_weights)
        return kept, total

    def open_pairs(self, pairs: Pairs) -> Pairs:
        """Have the cluster compare the candidates, where that is worth a task."""
        if isinstance(pairs, ObjectPairs) and not isinstance(pairs.measure, Vectors):
            return ClusterPairs(pairs, self.client, self.threads)
        return pairs

    def matrix(self, rows: Indices, cols: Indices) -> Array:
        """Return a part of the matrix of values whose rows the objects are."""
        part = self.X[rows][:, cols]
        (found,) = fetched(self.client, [self.client.compute(part)])
        return np.asarray(found, dtype=np.float64)

    # -- tasks -------------------------------------------------------------------------------

    def _count(self) -> Indices:
        """Return where each partition begins, and the number of all objects."""
        known = getattr(self.X, "chunks", None)
        if known is not None and not np.isnan(known[0]).any():
            lengths = np.array(known[0], dtype=np.intp)
        else:
            of = self._objects if self._labels is None else self._labels
            lengths = np.array(
                fetched(self.client, self._compute([_delayed(count_objects)(part) for part in of])),
                dtype=np.intp,
            )
        starts = np.concatenate([[0], np.cumsum(lengths)])
        if self._y is not None and len(self._y) != starts[-1]:
            raise ValueError(f"{starts[-1]} objects but {len(self._y)} labels")
        return starts

    def _step(self, grid: int, seconds: float) -> int:
        """Return how many objects make a task: a whole branch of blocks that takes seconds."""
        N = int(self._starts[-1])
        partitions = max(1, int(np.count_nonzero(np.diff(self._starts))))
        wanted = N / max(count_tasks(N * seconds, self.threads), partitions)
        step = grid
        while step * np.sqrt(FAN) < wanted:
            step *= FAN
        return step

    def _cuts(self, step: int) -> list[list[tuple[int, int, int]]]:
        """Return for each run of `step` objects what it takes of which partitions."""
        N, starts = int(self._starts[-1]), self._starts
        cuts = []
        for begin in range(0, N, step):
            end = min(begin + step, N)
            first = int(np.searchsorted(starts, begin, side="right")) - 1
            last = int(np.searchsorted(starts, end, side="left"))
            cuts.append(
                [
                    (p, max(begin, int(starts[p])) - int(starts[p]), end - int(starts[p]))
                    for p in range(first, last)
                    if starts[p + 1] > starts[p]
                ]
            )
        return [[(p, a, min(b, int(starts[p + 1] - starts[p]))) for p, a, b in cut] for cut in cuts]

    def _task(self, term: Any, cut: Sequence[tuple[int, int, int]], objects: bool = True) -> Any:
        """Return the task of `term` on some runs of partitions (number, from, to)."""
        start = int(self._starts[cut[0][0]]) + cut[0][1]
        parts = [self._slice(self._objects, *run) for run in cut] if objects else None
        if self._labels is not None:
            labels: list[Any] = [self._slice(self._labels, *run) for run in cut]
        else:
            assert self._y is not None
            labels = [self._y[self._starts[p] + a : self._starts[p] + b] for p, a, b in cut]
        return _delayed(compare_piece)(term, start, [tuple(run) for run in cut], parts, labels)

    def _slice(self, parts: list[Any], p: int, a: int, b: int) -> Any:
        whole = a == 0 and b == self._starts[p + 1] - self._starts[p]
        return parts[p] if whole else _delayed(cut_partition)(parts[p], a, b)

    def _compute(self, tasks: list[Any]) -> list[Any]:
        alive(self.client)
        with large_tasks():
            found: list[Any] = self.client.compute(tasks)
        return found


def partitions(collection: Any) -> list[Any]:
    """Return the partitions of a collection, each a task that gives it."""
    if getattr(collection, "ndim", 1) > 1 and hasattr(collection, "rechunk"):
        collection = collection.rechunk(dict.fromkeys(range(1, collection.ndim), -1))
    return list(np.ravel(np.asarray(collection.to_delayed(), dtype=object)))


def predict_lazily(estimator: Any, method: str, X: Any) -> Any:
    """Return a `dask.array` of what `method` says of the objects of X, partition by partition."""
    import copy

    import dask
    import dask.array as da

    light = copy.copy(estimator)
    vars(light).pop("stream_", None)  # what further chunks would be added to
    light.n_jobs, light.verbose = 1, 0
    C = len(estimator.classes_)
    labels = method in ("predict", "rank_labels")
    flat = method == "predict" or (method == "decision_function" and C == 2)
    shape = () if flat else (C,)
    dtype = estimator.classes_.dtype if labels else np.dtype(np.float64)
    model = dask.delayed(light, pure=False)
    known = getattr(X, "chunks", None)
    parts = partitions(X)
    lengths = list(known[0]) if known is not None else [np.nan] * len(parts)
    empty = np.empty((0, *shape), dtype=dtype)
    return da.concatenate(
        [
            da.from_delayed(
                _delayed(predict_partition)(model, method, p, part, empty), (n, *shape), dtype=dtype
            )
            for p, (part, n) in enumerate(zip(parts, lengths, strict=True))
        ],
        allow_unknown_chunksizes=True,
    )


# -- what runs on the workers; Dask's dashboard shows the functions by name --------------------


@dataclass(frozen=True)
class _ByBlock:
    """The sum of a term over the blocks of a piece, which begins on the grid."""

    term: Callable[[Piece], Any]
    grid: int
    add: Callable[[Any, Any], Any]

    def __call__(self, piece: Piece) -> Any:
        with single_blas():
            return ordered_sum(map(self.term, blocks_of(piece, self.grid)), self.add)


@dataclass(frozen=True)
class _ByGrid:
    """The features of a piece, compared block by block."""

    term: Callable[[Piece], Counted[FeatureBlock]]
    grid: int

    def __call__(self, piece: Piece) -> Counted[FeatureBlock]:
        with single_blas():
            found = [self.term(block) for block in blocks_of(piece, self.grid)]
        moments = ordered_sum((part.value.moments for part in found), plus)
        total = ordered_sum((part.holding(0) for part in found), CountedSum(plus))
        return total.holding(
            FeatureBlock(
                np.concatenate([part.value.F for part in found]),
                np.concatenate([part.value.codes for part in found]),
                moments,
            )
        )


def blocks_of(piece: Piece, grid: int) -> Iterator[Piece]:
    """Yield a piece in blocks of `grid` objects."""
    n = len(piece)
    for a in range(0, n, grid):
        b = min(a + grid, n)
        labels = None if piece.labels is None else piece.labels[a:b]
        origins, begin = [], 0
        for origin in piece.origins:
            low, high = max(a, begin), min(b, begin + origin.count)
            if low < high:
                origins.append(Origin(origin.teller, origin.first + low - begin, high - low))
            begin += origin.count
        yield Piece(piece.start + a, piece.objects[a:b], labels, tuple(origins))


def compare_piece(
    term: Callable[[Piece], Result],
    start: int,
    cut: list[tuple[int, int, int]],
    objects: list[Any] | None,
    labels: list[Any],
) -> Result:
    """Put the piece together and have the term look at it."""
    given = None if objects is None else [as_objects(part) for part in objects]
    told = [as_objects(part) for part in labels]
    for i, (p, a, b) in enumerate(cut):
        for what, found in (("objects", given), ("labels", told)):
            if found is not None and len(found[i]) != b - a:
                raise ValueError(
                    f"partition {p}: {b - a} {what} were expected, and {len(found[i])} found; "
                    "X and y go together, and stay as they are while they are read"
                )
    origins = tuple(Origin(Partition(p), a, b - a) for p, a, b in cut)
    joint = None if given is None else joined(given)
    return term(Piece(start, joint, joined([np.asarray(part) for part in told]), origins))


def cut_partition(part: Any, a: int, b: int) -> Any:
    """Return some objects of a partition."""
    return as_objects(part)[a:b]


def as_objects(part: Any) -> Any:
    """Return a partition as an array or a list."""
    if isinstance(part, np.ndarray):
        return part
    return part.to_numpy() if hasattr(part, "to_numpy") else list(part)


def count_objects(part: Any) -> int:
    """Return how many objects a partition holds."""
    return len(as_objects(part))


def block_moments(block: Counted[FeatureBlock]) -> Counted[ClassMoments]:
    """Return the moments of one kept part."""
    return block.holding(block.value.moments)


def predict_partition(estimator: Any, method: str, number: int, part: Any, empty: Any) -> Any:
    """Return what the model says of a partition."""
    from ..measures import PairError
    from .piece import ObjectError

    objects = as_objects(part)
    if len(objects) == 0:
        return empty
    try:
        return getattr(estimator, method)(objects)
    except PairError as error:
        where = Partition(number).where(error.row)
        raise ObjectError(f"{where}, with landmark {error.col}: {error.reason}") from error
    except ValueError as error:
        raise ObjectError(f"partition {number}: {error}") from error


def _delayed(function: Callable[..., Any]) -> Any:
    import dask

    return dask.delayed(function, pure=False)
