"""Stratified folds that keep groups together."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compare import Pairs
from ..core.checks import Indices
from .identity import identity_groups

TRIES = 10
"""Number of shuffles to try for folds in which every class can be learned."""


def find_groups(groups: Any, pairs: Pairs, codes: Indices, seed: int) -> Indices | None:
    """Return the group (N,) of each object: as given, or found by the measure for
    "identity:0.4"."""
    if groups is None:
        return None
    n = len(pairs)
    if isinstance(groups, str):
        return _numbered(identity_groups(pairs, codes, parse_identity(groups), seed))
    listed = np.asarray(groups, dtype=object)
    if listed.shape != (n,):
        raise ValueError(
            f"groups has the shape {listed.shape}; it must contain one group per object, {n} in all"
        )
    for row, name in enumerate(listed.tolist()):
        if name is None or name != name or str(name).strip() in ("", "<NA>"):
            raise ValueError(
                f"object {row} has no group: give an object without relatives a group of its own"
            )
    return _numbered(np.array([str(name) for name in listed]))


def _numbered(groups: NDArray[Any]) -> Indices:
    """Number groups by their first object, so that folds do not depend on their names."""
    _, first, code = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[code].astype(np.intp)


def parse_identity(text: str) -> float:
    """Return the threshold of "identity:0.4".

    >>> parse_identity("identity:0.4")
    0.4
    """
    name, _, number = text.partition(":")
    try:
        threshold = float(number)
    except ValueError:
        threshold = 0.0
    if name != "identity" or not 0 < threshold <= 1:
        raise ValueError(
            f"groups={text!r}: pass one group per object, or 'identity:T' with T above 0 and at "
            "most 1"
        )
    return threshold


def split_folds(
    classes: NDArray[Any], codes: Indices, folds: int, seed: int, groups: Indices | None
) -> Indices:
    """Return the fold of each object; every class is in every training set."""
    counts = np.bincount(codes)
    if len(counts) < 2:
        raise ValueError(
            f"at least two classes are needed; y contains one: {classes.tolist()[0]!r}"
        )
    if counts.min() < 2:
        alone = classes.tolist()[counts.argmin()]
        row = int(np.flatnonzero(codes == counts.argmin())[0])
        raise ValueError(
            f"class {alone!r} has one object (row {row}): it cannot be used for training and for "
            f"testing; leave the class out, or merge it with another"
        )
    if not 2 <= folds <= counts.max():
        raise ValueError(
            f"folds={folds}: must be at least 2, and at most the size of the largest class, "
            f"{counts.max()}"
        )
    if groups is None:
        return _stratified(codes, folds, seed)
    return _grouped(classes, codes, folds, seed, groups)


def _stratified(codes: Indices, folds: int, seed: int) -> Indices:
    from sklearn.model_selection import StratifiedKFold

    return _folds(StratifiedKFold(folds, shuffle=True, random_state=seed), codes, None)


def _grouped(
    classes: NDArray[Any], codes: Indices, folds: int, seed: int, groups: Indices
) -> Indices:
    """Assign whole groups to folds, with each class spread as evenly as possible."""
    from sklearn.model_selection import StratifiedGroupKFold

    in_class = np.unique(np.column_stack([codes, groups]), axis=0)
    number = np.bincount(in_class[:, 0], minlength=len(classes))
    if number.min() < 2:
        alone = classes.tolist()[number.argmin()]
        raise ValueError(
            f"class {alone!r} is in a single group, so it cannot be used for training and for "
            f"testing: leave the class out, merge it with another, or use smaller groups"
        )
    if len(np.unique(groups)) < folds:
        raise ValueError(f"folds={folds}: there are {len(np.unique(groups))} groups")
    for attempt in range(TRIES):
        split = _folds(
            StratifiedGroupKFold(folds, shuffle=True, random_state=seed + attempt), codes, groups
        )
        held = np.zeros((folds, len(classes)), dtype=np.intp)
        np.add.at(held, (split, codes), 1)
        if (held.sum(axis=1) > 0).all() and (held < held.sum(axis=0)).all():
            return split
    c = int((held == held.sum(axis=0)).any(axis=0).argmax())
    raise ValueError(
        f"no {folds} folds found in which class {classes.tolist()[c]!r} can be learned: it has "
        f"few groups ({number[c]}); use fewer folds or smaller groups"
    )


def _folds(cut: Any, codes: Indices, groups: Indices | None) -> Indices:
    split = np.full(len(codes), 0, dtype=np.intp)
    with warnings.catch_warnings():
        # a class smaller than the number of folds is absent from some test sets, but from no
        # training set
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        for fold, (_, test) in enumerate(cut.split(codes, codes, groups)):
            split[test] = fold
    return split
