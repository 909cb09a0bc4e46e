"""Identity of two objects, by the measure itself; groups of relatives; near-duplicates.

The identity of two objects is 1 if they are equal, and falls as they become less similar:

    similarity      s(x, y) / √(s(x, x)·s(y, y))
    dissimilarity   1 − d(x, y) / median d

where the median is over the pairs of all objects with some random ones. Neither depends on the unit
of the measure. For alignment scores the first is the normalised score. It is not the share of
identical letters, which would need every alignment to be traced back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..compare import Pairs
from ..core.checks import Array, Indices

LANDMARKS, PER_CLASS = 50, 3
"""Number of landmarks that all objects are compared with to find candidates: at least 50, and three
per class."""

NEARBY = 10
"""Number of candidates that an object is then compared with."""

COPY = 0.9
"""Two objects with at least this identity count as near-duplicates."""

CHECKED = 1000
"""Number of objects whose near-duplicates are looked for; enough to estimate a share."""

ROWS = 256
"""Number of objects handled together if all values are known."""


@dataclass(frozen=True)
class Identity:
    """Values of a measure as identities."""

    roots: Array | None  # (N,), √s(x, x) for a similarity
    scale: float  # the median of a dissimilarity

    @classmethod
    def of(cls, pairs: Pairs, values: Array, landmarks: Indices) -> Identity:
        """Learn the scale from the values (N, m) of all objects to landmarks. N comparisons."""
        if pairs.kind == "similarity":
            selves = pairs.diagonal(np.arange(len(pairs)))
            if not (selves > 0).all():
                row = int(np.argmin(selves > 0))
                raise ValueError(
                    f"object {row} has a similarity of {selves[row]:g} to itself; identity needs "
                    f"positive values there: pass the groups instead"
                )
            return cls(np.sqrt(selves), 1.0)
        others = np.ones(values.shape, dtype=bool)
        others[landmarks, np.arange(len(landmarks))] = False
        scale = float(np.median(values[others]))
        if not scale > 0:
            raise ValueError(
                "more than half of the distances are 0, so identity has no scale: pass the "
                "groups instead"
            )
        return cls(None, scale)

    def __call__(self, values: Array, rows: Indices, cols: Indices) -> Array:
        """Return the identities of the values of `rows` × `cols`."""
        if self.roots is None:
            return 1.0 - values / self.scale
        identities: Array = values / self.roots[rows][:, None] / self.roots[cols]
        return identities


def identity_groups(pairs: Pairs, codes: Indices, threshold: float, seed: int) -> Indices:
    """Return the group (N,) of each object; its identity with the group's first member is at least
    `threshold`.

    The algorithm is greedy, as in CD-HIT (Li & Godzik 2006): one after another, objects join the
    representative with the highest identity, or become representatives themselves. Objects near
    many landmarks come first. Each is compared only with the landmarks (50, or three per class) and
    with the ten representatives whose values to the landmarks are nearest to its own: (m + 11)·N
    comparisons and O(N·R·m) arithmetic for R groups. A relative with different values to the
    landmarks is missed.
    """
    n = len(pairs)
    rng = np.random.default_rng(seed)
    landmarks = _landmarks(codes, rng)
    values = np.concatenate(list(pairs.map_columns(lambda _, block: block, landmarks)))
    alone = _uncached(pairs)
    identity = Identity.of(alone, values, landmarks)
    V = identity(values, np.arange(n), landmarks).astype(np.float32)  # (N, m)
    lengths = np.einsum("ij,ij->i", V, V)
    group = np.empty(n, dtype=np.intp)
    first: list[int] = []  # the representatives
    R, r = np.empty_like(V), np.empty_like(lengths)  # their rows of V and lengths
    for i in np.argsort(-V.mean(axis=1), kind="stable").tolist():
        k = len(first)
        near = np.arange(k)
        if k > NEARBY:
            near = np.argpartition(r[:k] - 2 * (R[:k] @ V[i]), NEARBY)[:NEARBY]
        if k:
            row, cols = np.array([i]), np.array(first)[near]
            found = identity(alone.values(row, cols), row, cols)[0]
            if found.max() >= threshold:
                group[i] = near[found.argmax()]
                continue
        R[k], r[k] = V[i], lengths[i]
        group[i] = k
        first.append(i)
    return group


@dataclass(frozen=True)
class NearCopies:
    """The objects that have a near-duplicate in another fold."""

    share: float
    """The share of the sampled objects that have one."""
    looked_at: int
    threshold: float = COPY


def near_copies(
    pairs: Pairs, known: Pairs, split: Indices, landmarks: Indices, everything: bool, seed: int
) -> NearCopies | None:
    """Look for objects with an identity of at least 0.9 to one in another fold.

    At most 1,000 objects are sampled. `known` are the same pairs, of which those with the landmarks
    (all of them, if `everything`) have been compared. Unless `everything`, each object is compared
    with the ten objects of other folds that have the closest values to the landmarks, so the share
    is a lower bound. None if identity is meaningless: for vectors, since neighbours are always
    close in a large set of vectors, and for measures without a scale.
    """
    if pairs.measure.accepts == "vectors":
        return None
    everyone = np.arange(len(pairs))
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(len(pairs), min(len(pairs), CHECKED), replace=False))
    values = np.concatenate(list(known.map_columns(lambda _, block: block, landmarks)))
    try:
        identity = Identity.of(known, values, landmarks)
    except ValueError:
        return None
    if everything:
        copied = 0
        for rows in np.array_split(chosen, -(-len(chosen) // ROWS)):
            found = identity(known.values(rows, everyone), rows, everyone)
            copied += int(((found >= COPY) & (split[rows][:, None] != split)).any(axis=1).sum())
        return NearCopies(copied / len(chosen), len(chosen))
    V = identity(values, everyone, landmarks)  # (N, m)
    lengths = np.einsum("ij,ij->i", V, V)
    candidates = []
    for i in chosen.tolist():
        others = np.flatnonzero(split != split[i])
        if len(others) > NEARBY:
            apart = lengths[others] - 2 * (V[others] @ V[i])
            others = others[np.argpartition(apart, NEARBY)[:NEARBY]]
        candidates.append(others)
    copied = sum(
        bool(identity(values[None], chosen[[k]], candidates[k]).max() >= COPY)
        for k, values in enumerate(_compared(pairs, chosen, candidates))
    )
    return NearCopies(copied / len(chosen), len(chosen))


def _compared(pairs: Pairs, rows: Indices, candidates: list[Indices]) -> list[Array]:
    """Return the values of each row with its own candidates, stored in the cache as one block."""
    sizes = [len(others) for others in candidates]
    key = None
    if pairs.cache is not None:
        digests, cols = pairs.stored.rows, np.concatenate(candidates)
        key = pairs.cache.key("listed", digests[np.repeat(rows, sizes)], digests[cols])
        values = pairs.cache.load(key, (sum(sizes),))
        if values is not None:
            pairs.counter.add(reused=len(values))
            return np.split(values, np.cumsum(sizes)[:-1])
    alone = _uncached(pairs)
    found = [alone.values(rows[[k]], others)[0] for k, others in enumerate(candidates)]
    if pairs.cache is not None and key is not None:
        pairs.cache.store(key, np.concatenate(found))
    return found


def _landmarks(codes: Indices, rng: np.random.Generator) -> Indices:
    """Return some objects of every class, and others up to the required number."""
    order = rng.permutation(len(codes))
    by_class = order[np.argsort(codes[order], kind="stable")]
    starts = np.searchsorted(codes[by_class], codes[by_class])
    some = by_class[np.arange(len(codes)) - starts < PER_CLASS]
    rest = np.setdiff1d(order, some)
    wanted = max(0, LANDMARKS - len(some))
    return np.sort(np.concatenate([some, rng.permutation(rest)[:wanted]]))


def _uncached(pairs: Pairs) -> Pairs:
    """Return the same pairs for single comparisons, without a file or a process per comparison."""
    return Pairs(
        pairs.measure,
        pairs.objects,
        n_jobs=1,
        symmetrize=pairs.symmetrize,
        counter=pairs.counter,
    )
