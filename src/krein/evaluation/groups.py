"""Folds that keep relatives together: identity of objects, groups, near-duplicates, folds.

The identity of two objects is computed by the measure itself. It is 1 if they are equal, and falls
as they become less similar:

    similarity      s(x, y) / √(s(x, x)·s(y, y))
    dissimilarity   1 − d(x, y) / median d

where the median is over the pairs of all objects with some random ones. Neither depends on the unit
of the measure. For alignment scores the first is the normalised score. It is not the share of
identical letters, which would need every alignment to be traced back.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compare import Pairs
from ..compare.pairs import compare_each
from ..core.ranks import find_separator
from ..core.shapes import Array, Indices
from ..data.labelling import check_groups
from ..wording import option, parameter
from .store import columns

LANDMARKS, PER_CLASS = 50, 3
"""Number of landmarks that all objects are compared with to find candidates: at least 50, and three
per class."""

NEARBY = 10
"""Number of candidates that an object is then compared with."""

COPY = 0.9
"""Two objects with at least this identity count as near-duplicates."""

CHECKED = 1000
"""Number of objects whose near-duplicates are looked for; enough to estimate a share."""

BY_IDENTITY = ("identity", "cdr3")
"""What the groups can be derived from: the values of the measure, or the letters of CDR3s."""

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
        """Return the identities of the values of `rows` × `cols`, or of each row with its own
        `cols` (n, k)."""
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
    values = columns(pairs, landmarks)
    # for single comparisons: without a file or a process for each
    options: dict[str, Any] = {"symmetrize": pairs.symmetrize, "counter": pairs.counter}
    alone = Pairs(pairs.measure, pairs.objects, n_jobs=1, **options)
    identity = Identity.of(alone, values, landmarks)
    V = identity(values, np.arange(n), landmarks).astype(np.float32)  # (N, m)
    lengths = np.einsum("ij,ij->i", V, V)
    group = np.empty(n, dtype=np.intp)
    first: list[int] = []  # the representatives
    R, r = np.empty_like(V), np.empty_like(lengths)  # their rows of V and lengths
    for i in np.argsort(-V.mean(axis=1), kind="stable").tolist():
        k = len(first)
        if k:
            near = _nearby(R[:k], r[:k], V[i])
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
    values = columns(known, landmarks)
    try:
        identity = Identity.of(known, values, landmarks)
    except ValueError:
        return None
    copied = 0
    if everything:
        for rows in np.array_split(chosen, -(-len(chosen) // ROWS)):
            found = identity(known.values(rows, everyone), rows, everyone)
            copied += int(((found >= COPY) & (split[rows][:, None] != split)).any(axis=1).sum())
    else:
        V = identity(values, everyone, landmarks)  # (N, m)
        lengths = np.einsum("ij,ij->i", V, V)
        for fold in np.unique(split[chosen]).tolist():
            rows, others = chosen[split[chosen] == fold], np.flatnonzero(split != fold)
            near = [_nearby(V[others], lengths[others], V[i]) for i in rows.tolist()]
            cols = others[np.stack(near)]
            found = identity(compare_each(pairs, rows, cols), rows, cols)
            copied += int((found >= COPY).any(axis=1).sum())
    return NearCopies(copied / len(chosen), len(chosen))


def keep_together(copies: NearCopies, groups: str | None) -> str:
    """Return advice on how to keep near-duplicates in one fold.

    Groups that are found by a search may miss some; a lower threshold joins more of them.

    >>> keep_together(NearCopies(0.1, 100), None)
    "keep duplicates together with groups='identity:0.9' or your own groups"
    """
    found = groups is not None and groups.startswith(BY_IDENTITY)
    if groups is None or (found and parse_identity(groups)[1] > copies.threshold):
        wanted = parameter("groups", repr(f"identity:{copies.threshold}"))
        return f"keep duplicates together with {wanted} or your own groups"
    if not found:
        return "put near-duplicates into the same of your groups"
    return "the search for groups missed some of them: use a lower threshold, or your own groups"


def _nearby(V: NDArray[Any], lengths: NDArray[Any], v: NDArray[Any]) -> Indices:
    """Return the ten rows of V nearest to v, or all if there are no more; `lengths` are squared."""
    if len(V) <= NEARBY:
        return np.arange(len(V))
    return np.argpartition(lengths - 2 * (V @ v), NEARBY)[:NEARBY]


def _landmarks(codes: Indices, rng: np.random.Generator) -> Indices:
    """Return some objects of every class, and others up to the required number."""
    order = rng.permutation(len(codes))
    by_class = order[np.argsort(codes[order], kind="stable")]
    starts = np.searchsorted(codes[by_class], codes[by_class])
    some = by_class[np.arange(len(codes)) - starts < PER_CLASS]
    rest = np.setdiff1d(order, some)
    wanted = max(0, LANDMARKS - len(some))
    return np.sort(np.concatenate([some, rng.permutation(rest)[:wanted]]))


# Stratified folds that keep groups together

TRIES = 10
"""Number of shuffles to try for folds in which every class can be learned."""


def find_groups(groups: Any, pairs: Pairs, codes: Indices, seed: int) -> Indices | None:
    """Return the group (N,) of each object: as given, or found by the measure for
    "identity:0.4"."""
    if groups is None:
        return None
    if isinstance(groups, str):
        what, threshold = parse_identity(groups)
        if what == "identity":
            return number_groups(identity_groups(pairs, codes, threshold, seed))
        if pairs.measure.name != "tcrdist":
            raise ValueError(
                f"{parameter('groups', repr(groups))} is for T-cell receptors, compared by tcrdist"
            )
        from ..measures.tcr import cdr3_groups

        return number_groups(cdr3_groups(pairs.objects, threshold))
    return number_groups(check_groups(groups, len(pairs)))


def number_groups(groups: NDArray[Any]) -> Indices:
    """Number groups by their first object, so that folds do not depend on their names."""
    _, first, code = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[code].astype(np.intp)


def parse_identity(text: str) -> tuple[str, float]:
    """Return the threshold of "identity:0.4".

    >>> parse_identity("identity:0.4")
    ('identity', 0.4)
    """
    name, _, number = text.partition(":")
    try:
        threshold = float(number)
    except ValueError:
        threshold = 0.0
    if name not in BY_IDENTITY or not 0 < threshold <= 1:
        raise ValueError(
            f"{parameter('groups', repr(text))}: pass one group per object, or 'identity:T' (for "
            "T-cell receptors also 'cdr3:T') with T above 0 and at most 1"
        )
    return name, threshold


def split_folds(
    classes: NDArray[Any], codes: Indices, folds: int, seed: int, groups: Indices | None
) -> Indices:
    """Return the fold of each object; every class is in every training set."""
    from sklearn.model_selection import StratifiedKFold

    counts = np.bincount(codes)
    if len(counts) < 2:
        alone = classes.tolist()[0]
        raise ValueError(f"at least two classes are needed; y contains one: {alone!r}")
    if counts.min() < 2:
        alone = classes.tolist()[counts.argmin()]
        row, n = int(np.flatnonzero(codes == counts.argmin())[0]), int((counts < 2).sum())
        others = "" if n == 1 else f", and so have {n - 1:,} other classes"
        raise ValueError(
            f"class {alone!r} has one object (row {row}){others}: it cannot be used for training "
            f"and for testing; {_remedy(classes)}"
        )
    if not 2 <= folds <= counts.max():
        raise ValueError(
            f"{parameter('folds', folds)}: must be at least 2, and at most the size of the largest "
            f"class, {counts.max()}"
        )
    if groups is None:
        return _folds(StratifiedKFold(folds, shuffle=True, random_state=seed), codes, None)
    return _grouped(classes, codes, folds, seed, groups)


def _remedy(classes: NDArray[Any]) -> str:
    """Return what to do about classes that cannot be learned while they are held out."""
    separator = find_separator([str(name) for name in classes.tolist()])
    if separator is not None:
        given = parameter("label_ranks", f'"{separator}"')
        return f"score it at the ranks above, with {given}"
    return f"leave such classes out{option('min_class_size', 2)}, or merge them with others"


def _grouped(
    classes: NDArray[Any], codes: Indices, folds: int, seed: int, groups: Indices
) -> Indices:
    """Assign whole groups to folds, with each class spread as evenly as possible."""
    from sklearn.model_selection import StratifiedGroupKFold

    number = groups_per_class(codes, groups)
    if number.min() < 2:
        alone = classes.tolist()[number.argmin()]
        raise ValueError(
            f"class {alone!r} is in a single group, so it cannot be used for training and for "
            f"testing: leave the class out, merge it with another, or use smaller groups"
        )
    if len(np.unique(groups)) < folds:
        wanted = parameter("folds", folds)
        raise ValueError(f"{wanted}: there are {len(np.unique(groups))} groups")
    for attempt in range(TRIES):
        cut = StratifiedGroupKFold(folds, shuffle=True, random_state=seed + attempt)
        split = _spread(_folds(cut, codes, groups), codes, groups, folds)
        held = np.zeros((folds, len(classes)), dtype=np.intp)
        np.add.at(held, (split, codes), 1)
        if (held.sum(axis=1) > 0).all() and (held < held.sum(axis=0)).all():
            return split
    c = int((held == held.sum(axis=0)).any(axis=0).argmax())
    raise ValueError(
        f"no {folds} folds found in which class {classes.tolist()[c]!r} can be learned: it has "
        f"few groups ({number[c]}); use fewer folds or smaller groups"
    )


def groups_per_class(codes: Indices, groups: Indices) -> Indices:
    """Return the number of groups (C,) that contain objects of each class."""
    in_class = np.unique(np.column_stack([codes, groups]), axis=0)
    return np.bincount(in_class[:, 0])


def _spread(split: Indices, codes: Indices, groups: Indices, folds: int) -> Indices:
    """Move groups to smaller folds until no class is in one fold only, if that can be done.

    Few groups of a class often meet in one fold. Of such a class, the smallest group is moved.
    """
    split = split.copy()
    for _ in range(len(np.unique(codes))):
        held = np.zeros((folds, codes.max() + 1), dtype=np.intp)
        np.add.at(held, (split, codes), 1)
        alone = np.flatnonzero((held > 0).sum(axis=0) == 1)
        if not len(alone):
            break
        members = codes == alone[0]
        here = split[np.argmax(members)]
        sizes = np.bincount(groups)
        group = min(np.unique(groups[members]).tolist(), key=lambda g: int(sizes[g]))
        others = np.delete(np.arange(folds), here)
        split[groups == group] = others[held[others].sum(axis=1).argmin()]
    return split


def _folds(cut: Any, codes: Indices, groups: Indices | None) -> Indices:
    split = np.zeros(len(codes), dtype=np.intp)
    with warnings.catch_warnings():
        # a class smaller than the number of folds is absent from some test sets, but from no
        # training set
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        for fold, (_, test) in enumerate(cut.split(codes, codes, groups)):
            split[test] = fold
    return split
