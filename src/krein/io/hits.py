"""The best hits of each object, from a table of hits.

Names become numbers, and only the best hits of each query are kept, in a sparse matrix. So memory
depends on the number of queries, not on the size of the table, and its rows may be in any order. Of
several hits of one pair, the best counts.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..core.shapes import Array, Indices
from .hittable import HitTable
from .streams import DataError, quoted, shown

__all__ = ["HitTable", "Hits", "ReferenceHits", "queries", "references"]

KEPT = 50
"""Number of hits kept per query. Thirty vote; the others replace those of objects held out."""


@dataclass
class HitCounts:
    """What a table contained, for messages."""

    rows: int = 0
    itself: int = 0  # hits of an object to itself
    unknown_targets: int = 0  # hits to objects without a label
    unknown_queries: int = 0  # rows of such queries


class BestHits:
    """Keeps the k best hits of each row, in any order of the hits.

    Hits wait until there are as many as are kept, or `WAITING`; then the best are kept. So a hit
    costs O(log) of what is kept, and memory is about twice the result. Between equal scores, the
    `keys` of the columns decide, a list that may still grow; by default the lower column wins.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.io.hits import BestHits
    >>> best = BestHits(1)
    >>> best.add(np.array([0, 0, 1]), np.array([5, 3, 3]), np.array([1.0, 9.0, 4.0]))
    >>> best.graph(2, 6).toarray()
    array([[0., 0., 0., 9., 0., 0.],
           [0., 0., 0., 4., 0., 0.]])
    """

    WAITING = 2**20

    def __init__(self, k: int = KEPT, keys: list[int] | None = None) -> None:
        self.k, self.keys = k, keys
        self._kept = (np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))
        self._waiting: list[tuple[NDArray[Any], NDArray[Any], Array]] = []
        self._n_waiting = 0

    def add(self, rows: NDArray[Any], columns: NDArray[Any], scores: Array) -> None:
        """Add hits of these rows to these columns."""
        self._waiting.append((rows.astype(np.int32), columns.astype(np.int32), scores))
        self._n_waiting += len(rows)
        if self._n_waiting > max(self.WAITING, len(self._kept[0])):
            self._reduce()

    def _reduce(self) -> None:
        parts = [self._kept, *self._waiting]
        self._waiting, self._n_waiting = [], 0
        rows, columns, scores = (np.concatenate([part[i] for part in parts]) for i in range(3))
        if not len(rows):
            return
        pair = rows.astype(np.int64) << 32 | columns
        order = np.argsort(pair, kind="stable")
        pair = pair[order]
        first = np.flatnonzero(np.append(True, pair[1:] != pair[:-1]))
        scores = np.maximum.reduceat(scores[order], first)
        rows, columns = rows[order[first]], columns[order[first]]
        starts = np.searchsorted(rows, rows)
        ends = np.searchsorted(rows, rows, side="right")
        kept = ends - starts <= self.k
        if not kept.all():
            some = np.flatnonzero(~kept)
            keys = columns[some] if self.keys is None else np.array(self.keys)[columns[some]]
            some = some[np.lexsort((keys, -scores[some], rows[some]))]
            place = np.arange(len(some)) - np.searchsorted(rows[some], rows[some])
            kept[some[place < self.k]] = True
        self._kept = rows[kept], columns[kept], scores[kept]

    def graph(self, n_rows: int, n_columns: int) -> sparse.csr_matrix:
        """Return the hits as a sparse matrix of scores, in which missing entries are unknown."""
        self._reduce()
        rows, columns, scores = self._kept
        starts = np.searchsorted(rows, np.arange(n_rows + 1))
        found = sparse.csr_matrix((scores, columns, starts), shape=(n_rows, n_columns))
        found.sort_indices()
        return found


class Names:
    """Names and their numbers, in the order in which they come; unknown ones have the number −1.

    `find` returns which names are known, by default all. Each has a key that depends on nothing but
    the name, so that ties are broken in the same way in any order of the rows.
    """

    def __init__(self, find: Callable[[list[str]], list[bool]] | None = None) -> None:
        self._find = find
        self._numbers: dict[bytes, int] = {}
        self.known: list[str] = []
        self.keys: list[int] = []

    def numbers(self, names: NDArray[np.bytes_] | Sequence[bytes]) -> Indices:
        """Return the number (n,) of each name; equal ones often follow each other."""
        given = np.asarray(names)
        if not len(given):
            return np.empty(0, dtype=np.intp)
        first = np.flatnonzero(np.append(True, given[1:] != given[:-1]))
        runs = np.diff(np.append(first, len(given)))
        some = given[first].tolist()
        numbers = self._numbers
        new = [name for name in dict.fromkeys(some) if name not in numbers]
        texts = [name.decode("utf-8", "replace") for name in new]
        wanted = [True] * len(new) if self._find is None or not new else self._find(texts)
        for name, text, is_wanted in zip(new, texts, wanted, strict=True):
            numbers[name] = len(self.known) if is_wanted else -1
            if is_wanted:
                self.known.append(text)
                self.keys.append(zlib.crc32(name))
        found = np.array(list(map(numbers.__getitem__, some)), dtype=np.intp)
        return np.repeat(found, runs)


@dataclass(frozen=True)
class Hits:
    """The best hits of some queries among known objects."""

    queries: list[str]
    targets: list[str]
    graph: sparse.csr_matrix  # (queries, targets): scores, the larger the better
    score: str
    counts: HitCounts = field(default_factory=HitCounts)
    swapped: bool = False  # the table has the known objects as queries


@dataclass(frozen=True)
class ReferenceHits(Hits):
    """The best hits of known objects among each other, and how each one occurs in the table."""

    asked: Indices = field(default_factory=lambda: np.empty(0, np.intp))  # (n,): rows as a query
    searched: Indices = field(default_factory=lambda: np.empty(0, np.intp))  # (n,): as a target
    identity: Array | None = None  # (n,): the highest with another object, as a share

    def at(self, kept: Indices) -> ReferenceHits:
        """Return some of the objects."""
        names = [self.queries[i] for i in kept]
        return replace(
            self,
            queries=names,
            targets=names,
            graph=self.graph[kept][:, kept],
            asked=self.asked[kept],
            searched=self.searched[kept],
            identity=None if self.identity is None else self.identity[kept],
        )


class _Tally:
    """Numbers of objects, of which there may still be more."""

    def __init__(self, start: float = 0.0) -> None:
        self.start, self.values = start, np.empty(0)

    def grow(self, n: int) -> Array:
        """Return the numbers of n objects."""
        if len(self.values) < n:
            more = np.full(max(n, 2 * len(self.values)) - len(self.values), self.start)
            self.values = np.append(self.values, more)
        return self.values[:n]


def references(
    table: HitTable,
    find: Callable[[list[str]], list[bool]] | None = None,
    *,
    group_of: Callable[[str], Any] | None = None,
    k: int = KEPT,
) -> ReferenceHits:
    """Return the hits of known objects among each other, both directions merged by the maximum.

    `find` returns which names are known, that is, have a label; by default all. With `group_of`,
    hits between objects of a group are left out. Objects that occur only as a query, or only as a
    target, are included. Their order depends on their names alone.

    Examples
    --------
    >>> import os, tempfile
    >>> from krein.io.hits import HitTable, references
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "hits.tsv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("query\\ttarget\\tbits\\na\\ta\\t90\\na\\tb\\t80\\nb\\ta\\t81\\n")
    ...     found = references(HitTable(path))
    >>> found.queries, found.graph.data.tolist(), found.counts.itself
    (['b', 'a'], [81.0, 81.0], 1)
    """
    names, counts = Names(find), HitCounts()
    best = BestHits(k, names.keys)
    groups: list[int] = []
    codes: dict[Any, int] = {}
    asked, searched, identity = _Tally(), _Tally(), _Tally()
    for block in table.blocks(identity=None):
        names.numbers(block.without)
        q, t = names.numbers(block.queries), names.numbers(block.targets)
        n = len(names.known)
        counts.rows += len(q)
        counts.unknown_queries += int((q < 0).sum())
        counts.unknown_targets += int(((q >= 0) & (t < 0)).sum())
        counts.itself += int(((q == t) & (q >= 0)).sum())
        fair = (q >= 0) & (t >= 0) & (q != t)
        q, t, s = q[fair], t[fair], block.scores[fair]
        asked.grow(n)[:] += np.bincount(q, minlength=n)
        searched.grow(n)[:] += np.bincount(t, minlength=n)
        if block.identity is not None:
            for side in (q, t):
                np.maximum.at(identity.grow(n), side, block.identity[fair])
        if group_of is not None:
            new = [group_of(name) for name in names.known[len(groups) :]]
            groups += [codes.setdefault(group, len(codes)) for group in new]
            own = np.array(groups, dtype=np.intp)
            other = own[q] != own[t]
            q, t, s = q[other], t[other], s[other]
        best.add(np.concatenate([q, t]), np.concatenate([t, q]), np.concatenate([s, s]))
    n = len(names.known)
    if n == 0 and counts.rows == 0:
        raise DataError(f"{shown(table.path)}: contains no hits")
    found = ReferenceHits(
        names.known,
        names.known,
        _unit(best.graph(n, n), table),
        table.score,
        counts,
        asked=asked.grow(n).astype(np.intp),
        searched=searched.grow(n).astype(np.intp),
        identity=identity.grow(n) / (100 if table.percent else 1) if table.has_identity else None,
    )
    order = sorted(range(n), key=lambda i: (names.keys[i], names.known[i]))
    return found.at(np.array(order, dtype=np.intp))


def queries(
    table: HitTable, known: Sequence[str], *, swapped: bool | None = None, k: int = KEPT
) -> Hits:
    """Return the hits of new objects among known ones, in the order in which queries occur.

    If the first rows contain known objects only as queries, the table is read the other way round.
    An object that has the name of a known one does not count as a hit of itself.

    Examples
    --------
    >>> import os, tempfile
    >>> from krein.io.hits import HitTable, queries
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "hits.tsv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("query\\ttarget\\tbits\\nnew\\tb\\t80\\nnew\\tx\\t9\\n")
    ...     found = queries(HitTable(path), ["a", "b"])
    >>> found.queries, found.graph.toarray().tolist(), found.counts.unknown_targets
    (['new'], [[0.0, 80.0]], 1)
    """
    place = {name: i for i, name in enumerate(known)}
    targets = {name.encode(): i for name, i in place.items()}
    names, counts, best, itself = Names(), HitCounts(), BestHits(k), np.empty(0, np.intp)
    for block in table.blocks():
        found, looked = block.queries, block.targets
        if swapped is None and len(found):
            there = [sum(name in targets for name in side.tolist()) for side in (found, looked)]
            if not any(there):
                raise DataError(
                    f"{shown(table.path)}: none of the targets, such as "
                    f"{quoted(looked[0].decode('utf-8', 'replace'))}, is an object that the model "
                    f"knows, such as {quoted(known[0])}"
                )
            swapped = there[0] > 0 and there[1] == 0
        if swapped:
            found, looked = looked, found
        elif block.without:
            names.numbers(block.without)
        q = names.numbers(found)
        t = np.array([targets.get(name, -1) for name in looked.tolist()], dtype=np.intp)
        counts.rows += len(q)
        counts.unknown_targets += int((t < 0).sum())
        if len(names.known) > len(itself):
            more = [place.get(name, -2) for name in names.known[len(itself) :]]
            itself = np.append(itself, np.array(more, dtype=np.intp))
        own = itself[q] == t
        counts.itself += int(own.sum())
        fair = (t >= 0) & ~own
        best.add(q[fair], t[fair], block.scores[fair])
    graph = _unit(best.graph(len(names.known), len(known)), table)
    return Hits(names.known, list(known), graph, table.score, counts, bool(swapped))


def _unit(graph: sparse.csr_matrix, table: HitTable) -> sparse.csr_matrix:
    """Return identities as shares, whether the table had shares or percentages."""
    if table.score == "identity" and table.percent:
        graph.data /= 100.0
    return graph


def groups_of_hits(table: HitTable, threshold: float) -> dict[str, int]:
    """Return the group of each object: its identity with the first member is at least `threshold`.

    Greedy, as in CD-HIT (Li & Godzik 2006): objects with most relatives first, ties by name. Only
    the pairs with such an identity are kept in memory.
    """
    names = Names()
    pairs: list[NDArray[np.int32]] = []
    shares: list[Array] = []
    for block in table.blocks(identity=True):
        assert block.identity is not None
        q, t = names.numbers(block.queries), names.numbers(block.targets)
        least = threshold * (100 if table.percent else 1)  # percentages may begin in a later block
        high = (block.identity >= least) & (q != t)
        pairs.append(np.stack([q[high], t[high]], axis=1).astype(np.int32))
        shares.append(block.identity[high])
    n = len(names.known)
    both = np.concatenate([*pairs, np.empty((0, 2), np.int32)])
    if table.percent:
        both = both[np.concatenate([*shares, np.empty(0)]) >= 100 * threshold]
    ones = np.ones(2 * len(both), dtype=bool)
    rows, columns = np.concatenate([both, both[:, ::-1]]).T
    near = sparse.csr_matrix((ones, (rows, columns)), shape=(n, n))
    relatives = np.diff(near.indptr)
    order = sorted(range(n), key=lambda i: (-int(relatives[i]), names.known[i]))
    group = np.full(n, -1)
    for i in order:
        if group[i] < 0:
            group[i] = i
            some = near.indices[near.indptr[i] : near.indptr[i + 1]]
            group[some[group[some] < 0]] = i
    return dict(zip(names.known, group.tolist(), strict=True))
