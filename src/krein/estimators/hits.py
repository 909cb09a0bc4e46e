"""Learn from hits: the values of some pairs, found by somebody else's search.

There are no landmarks, and nothing is compared. The cascade has two looks without cost: the sizes
of the classes, and the labels of the best hits. Its weights are learned from known objects that are
held out one at a time, together with their groups: no hit of such an object is in its own group.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.calibration import N_FOLDS
from ..core.cascade import Cascade, Look, Worth, fit_terms, look_worth
from ..core.conformal import Reference, novelty_scores
from ..core.evidence import VOTERS, squared
from ..core.hits import MOST, HitEvidence, KnownHits, can_be_held_out, log_class_shares
from ..core.shapes import Array, Codes, Indices, Kind
from ..data.dataset import uniform_keys
from ..measures import Measure
from ..measures.precomputed import GraphRows, PrecomputedColumns
from ..model.heads import LinearHead
from ..model.model import Model
from ..model.parts import Landmarks, SecondLook
from .heldout import scaled, shares_of_groups

MOST_HELD_OUT = 10_000
"""Maximum number of objects that are held out."""

HELD_OUT_SCORES = 5e6
"""Maximum number of scores n·C of held-out objects: 40 MB for each of eight terms."""

_SEED = 0


@dataclass(frozen=True)
class SearchedObjects:
    """Labelled objects: class codes, groups, and how many objects each one stands for (n,)."""

    codes: Codes
    groups: Indices
    numbers: Array

    def at(self, rows: Any) -> SearchedObjects:
        """Return some of the objects."""
        return SearchedObjects(self.codes[rows], self.groups[rows], self.numbers[rows])


def learn_from_hits(
    rows: GraphRows,
    measure: Measure,
    objects: SearchedObjects,
    known: SearchedObjects,
    classes: NDArray[Any],
    *,
    class_weights: Array | None = None,
    k: int = VOTERS,
    score: str = "",
) -> tuple[Model, Worth]:
    """Learn from the hits of labelled objects (n,) among known ones (N,), usually the same.

    Returns the model, and what its looks are worth. `class_weights` (C,) are the costs of errors.
    An object and a known one are in the same group at least if they are the same object.
    """
    C = len(classes)
    some = draw_held_out(objects, known, C)
    held, graph = objects.at(some), rows[some]
    starts, columns, values = graph.lists
    N, kind = len(known.codes), measure.kind
    groups = held.groups, known.groups
    numbers = known.numbers / known.numbers[known.numbers > 0].mean()  # whatever their unit
    listed = KnownHits(
        np.arange(N),
        np.asarray(known.codes, dtype=np.intp),
        numbers,
        min(k, MOST),
        farthest_of(rows, kind),
        score,
    )
    near, _ = listed.neighbours(starts, columns, squared(values, kind), groups)
    shares = shares_of_groups(held.groups, held.numbers)
    n_seen = float(len(held.codes) if shares is None else len(np.unique(held.groups)))
    unweighted = None if (held.numbers == 1).all() else held.numbers
    weights = unweighted
    if class_weights is not None:
        weights = held.numbers * class_weights[held.codes]
    weights, unweighted = scaled(weights, shares), scaled(unweighted, shares)
    sizes = log_class_shares(known.codes, known.numbers, C, groups)
    evidence = HitEvidence.learn([sizes], held.codes, near, weights, n_seen)
    terms = [[sizes], evidence.terms(near, C)]
    together, _ = fit_terms([*terms[0], *terms[1]], held.codes, weights, n_seen)
    first, _ = fit_terms(terms[0], held.codes, weights, n_seen)
    cascade = Cascade((Look(first, np.inf), Look(together, 0.0)), n_seen)
    # without a hit, class sizes alone answer: the same for all, so that such objects have the same
    # rank, whatever class they are held out from
    everyone = log_class_shares(known.codes, known.numbers, C)
    sizes = np.where(np.isfinite(near.apart[:, :1]), sizes, everyone)
    folds = np.unique(held.groups, return_inverse=True)[1] % N_FOLDS
    log_proba = cascade.held_out([[sizes], terms[1]], held.codes, folds, weights)
    scores = novelty_scores(near.filled, kind)
    reference = Reference.of(scores, log_proba, held.codes, unweighted, by_label=False)
    nothing = np.empty(0, dtype=np.intp)
    model = Model(
        measure=measure,
        symmetrize=False,
        classes=classes,
        heads=(LinearHead("similarity", nothing, np.empty((0, C)), everyone),),
        cascade=cascade,
        baseline=np.empty(0),
        landmarks=Landmarks(nothing, nothing, None, PrecomputedColumns(nothing, N)),
        second_look=SecondLook(listed, evidence, None, PrecomputedColumns(np.arange(N), N)),
        reference=reference,
        n_objects=N,
    )
    looks = look_worth(model.look_names, cascade, terms, held.codes, (0, 0), weights)
    return model, Worth((), looks)


def draw_held_out(objects: SearchedObjects, known: SearchedObjects, n_classes: int) -> Indices:
    """Return the objects to hold out: all whose class remains without them, or a sample."""
    fair = can_be_held_out(objects.codes, objects.groups, known.codes, known.groups)
    fair &= objects.numbers > 0
    if not fair.any():
        raise ValueError(
            "no object can be held out, because every class consists of a single object or group: "
            "probabilities cannot be learned from one reference per class; add references"
        )
    alone = len(np.setdiff1d(objects.codes, objects.codes[fair]))
    if alone > n_classes / 2:
        warnings.warn(
            f"{alone:,} of {n_classes:,} classes have a single object or group, which cannot be "
            "held out: probabilities are learned from the other classes",
            stacklevel=4,
        )
    most = max(min(MOST_HELD_OUT, int(HELD_OUT_SCORES / n_classes)), 1)
    found = np.flatnonzero(fair)
    if len(found) > most:
        keys = uniform_keys(_SEED, found)
        found = np.sort(found[np.argsort(keys, kind="stable")[:most]])
    return found


def farthest_of(rows: GraphRows, kind: Kind) -> float:
    """Return the squared dissimilarity of the worst hit; 0 if there are no hits."""
    values = rows.lists[2]
    return float(squared(values, kind).max()) if len(values) else 0.0
