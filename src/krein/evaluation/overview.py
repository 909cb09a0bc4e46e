"""An overview of the objects: eigenvalues, a map, duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compare import Pairs
from ..compare.digests import object_digests
from ..core.checks import Array, Indices
from ..core.convert import double_centre
from ..core.embedding import embed
from ..core.moments import ClassMoments
from ..core.space import LandmarkSpace
from ..core.spectrum import SpectrumEstimate, estimate_spectrum

SAMPLED = 500
"""Number of objects in the spectrum if all pairs would cost extra comparisons."""

READ = 2000
"""The same if all values are known, so that the only cost is O(n³) for the eigenvalues."""

MAPPED = 4000
"""Maximum number of objects on the map: more would be indistinguishable, and slow to draw."""

AXES = 50
"""Number of pseudo-Euclidean axes that the map is computed from."""

MAP_LANDMARKS = 500
"""Maximum number of landmarks for the map."""


def spectrum(pairs: Pairs, everything: bool, seed: int) -> SpectrumEstimate:
    """Return the eigenvalues of up to 2,000 objects if all values are known, otherwise of 500."""
    n = len(pairs)

    def block(rows: Indices, cols: Indices) -> Array:
        values = pairs.block(rows, cols)
        return values if pairs.kind == "similarity" else double_centre(values**2)

    size = READ if everything else SAMPLED
    return estimate_spectrum(block, n, size=size, rng=np.random.default_rng(seed))


@dataclass(frozen=True)
class Duplicates:
    """Objects that occur more than once."""

    groups: list[Indices]
    conflicting: int
    """Groups whose members have different labels: no model can label all of them correctly."""


def duplicates(objects: Any, codes: Indices) -> Duplicates | None:
    """Find objects with equal contents, or equal rows of a matrix. O(total size)."""
    if getattr(objects, "mapped", False):
        return None
    try:
        digests = object_digests(objects)
    except TypeError:
        return None
    _, group, sizes = np.unique(digests, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    groups = [part for part in np.split(order, np.cumsum(sizes)[:-1]) if len(part) > 1]
    groups.sort(key=lambda part: int(part[0]))
    return Duplicates(groups, sum(len(set(codes[part].tolist())) > 1 for part in groups))


@dataclass(frozen=True)
class ObjectMap:
    """Some or all objects in the plane; objects with similar values to the landmarks are close."""

    objects: Indices  # (n,), ascending
    xy: Array  # (n, 2)
    landmarks: Indices
    whose: str | None
    """The model that chose the landmarks; None if they were drawn for the map."""
    axes: int
    """Number of pseudo-Euclidean axes that the map is computed from."""
    negative_axes: int
    method: str


def object_map(
    pairs: Pairs,
    landmarks: Indices,
    errors: NDArray[np.bool_],
    seed: int,
    whose: str | None = None,
) -> ObjectMap:
    """Map the principal pseudo-Euclidean axes of the objects to the plane. N·m values for m
    landmarks.

    The axes are those of indefinite kernel PCA from the landmarks, positive and negative. t-SNE
    (van der Maaten & Hinton 2008), initialised with the first two, maps them to the plane. With
    more than 4,000 objects, only landmarks, errors and a random sample of the others are mapped.
    """
    rng = np.random.default_rng(seed)
    n = len(pairs)
    if len(landmarks) > MAP_LANDMARKS:
        landmarks = np.sort(rng.choice(landmarks, MAP_LANDMARKS, replace=False))
    core = pairs.block(landmarks, landmarks)
    shown = _shown(n, landmarks, errors, rng)
    values = np.concatenate(
        list(pairs.map_columns(lambda _, V: V, landmarks, rows=shown, known=core))
    )
    space = LandmarkSpace.of(core, pairs.kind)
    B = space.coordinates(values)
    if B.shape[1] == 0 or len(shown) < 4:
        xy = np.zeros((len(shown), 2))
        return ObjectMap(shown, xy, landmarks, whose, 0, 0, "axes")
    one = np.zeros(len(B), dtype=np.intp)
    moments = ClassMoments.of(B, one, 1, origin=space.origin())
    embedding = embed(moments.within(), space.signs, mean=moments.means[0], n_components=AXES)
    V = embedding.coordinates(B)
    negative = int((embedding.eigenvalues < 0).sum())
    if V.shape[1] < 3 or len(shown) < 20:
        xy = np.hstack([V, np.zeros((len(V), 2))])[:, :2]
        return ObjectMap(shown, xy, landmarks, whose, V.shape[1], negative, "axes")
    return ObjectMap(shown, _flatten(V, seed), landmarks, whose, V.shape[1], negative, "t-SNE")


def _flatten(V: Array, seed: int) -> Array:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    start = V[:, :2] / max(V[:, 0].std(), np.finfo(float).tiny) * 1e-4
    options: dict[str, Any] = {"perplexity": min(30.0, (len(V) - 1) / 3), "random_state": seed}
    # the threads of t-SNE busy-wait: on a busy machine, one thread is faster than two
    with threadpool_limits(1):
        return np.asarray(TSNE(init=start, n_jobs=1, **options).fit_transform(V), dtype=float)


def _shown(
    n: int, landmarks: Indices, errors: NDArray[np.bool_], rng: np.random.Generator
) -> Indices:
    """Return all objects, or landmarks, errors (at most three quarters) and a sample of the
    others."""
    if n <= MAPPED:
        return np.arange(n)
    wrong = np.setdiff1d(np.flatnonzero(errors), landmarks)
    wrong = rng.permutation(wrong)[: 3 * MAPPED // 4]
    kept = np.union1d(landmarks, wrong)
    others = rng.permutation(np.setdiff1d(np.arange(n), kept))[: MAPPED - len(kept)]
    return np.union1d(kept, others)
