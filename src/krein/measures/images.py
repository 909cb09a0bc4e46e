"""Images, compared up to small deformations."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter1d

from ..core.shapes import Array
from .alignments import Pictures, SideBySide
from .base import Measure
from .features import FeatureMap, Gradients
from .objects import Objects, RefusedObject, as_numbers, as_stack, contains, unframed, unusable

DEFORMATIONS = ("shift-x", "shift-y", "scale", "rotate", "stretch", "shear", "thicken")

MOST_SMOOTHING = 1000
"""Maximum standard deviation of the smoothing, in pixels: its kernel must fit into memory."""

_BATCH = 64
"""Number of images differentiated at a time, so that their derivatives fit in the processor's
cache."""

_COLUMNS, _PAIRS = 128, 2048
"""Numbers of columns and pairs of images handled at a time; their products take 1 MB."""

_RIDGE = 1e-12
"""Ridge added to the diagonal of a Gram matrix that may be singular."""

_PLANES = 2**23
"""Numbers in the tangent planes kept at a time: 64 MB."""


@dataclass(frozen=True)
class Tangent(Measure):
    """Tangent distance (Simard, LeCun & Denker 1993): Euclidean distance up to deformations.

    Deforming an image a little moves it along a plane, spanned by the derivatives T of the
    image with respect to shifts, scaling, rotation, stretching, shearing and thickness. With
    orthonormal bases, distances from and between planes are products and small solves. Images are
    (N, height, width), or flattened.

    Parameters
    ----------
    sides : {1, 2}, default=1
        1 is the distance of one image from the plane of the other, d² = min_t ‖x + T_x t − y‖²,
        averaged over both directions to make it symmetric. 2 is the distance between the two
        planes, min_s,t ‖x + T_x s − y − T_y t‖². With D pixels and k deformations, a pair costs
        O(D·k) for one side and O(D·k² + k³) for two.
    shape : tuple of two int or None, default=None
        Height and width of flattened images, in pixels. None assumes square images.
    smoothing : float, default=0.7
        Standard deviation, in pixels, of the Gaussian that smooths images before they are
        differentiated. 0 does not smooth.
    deformations : tuple of str, default=DEFORMATIONS
        The deformations that the distance ignores. `DEFORMATIONS` are all seven: "shift-x",
        "shift-y", "scale", "rotate", "stretch", "shear" and "thicken". Fewer are cheaper.

    See Also
    --------
    krein.measures.vectors.RBF : Gaussian kernel of the pixel values, without deformations.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.images import Tangent
    >>> image = np.zeros((8, 8))
    >>> image[2:6, 3:5] = 1.0
    >>> measure = Tangent()
    >>> images = measure.check([image, np.roll(image, 1, axis=1), image.T])
    >>> shifted, turned = measure.block(images[:1], images[1:])[0]
    >>> bool(shifted < turned)
    True
    """

    sides: int = 1
    shape: tuple[int, int] | None = None
    smoothing: float = 0.7
    deformations: tuple[str, ...] = DEFORMATIONS

    name = "tangent"
    kind = "dissimilarity"
    psd = False
    self_value = 0.0
    releases_gil = True
    block_pairs = 2**16

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sides not in (1, 2):
            raise ValueError(f"sides must be 1 or 2; got {self.sides!r}")
        if not 0 <= self.smoothing <= MOST_SMOOTHING:
            raise ValueError(
                f"smoothing must be a number of pixels from 0 to {MOST_SMOOTHING}; got "
                f"{self.smoothing}"
            )
        for name in self.deformations:
            if name not in DEFORMATIONS:
                raise ValueError(
                    f"unknown deformation {name!r}; choose from {', '.join(DEFORMATIONS)}"
                )
        if not self.deformations or len(set(self.deformations)) < len(self.deformations):
            raise ValueError("choose at least one deformation, and each only once")
        # a model file returns them as lists
        object.__setattr__(self, "deformations", tuple(self.deformations))
        if self.shape is not None:
            object.__setattr__(self, "shape", tuple(int(k) for k in self.shape))

    def check(self, objects: Any) -> Objects:
        """Return a finite array (N, height, width)."""
        objects = unframed(objects)
        if not isinstance(objects, np.ndarray) or (objects.dtype == object and objects.ndim == 1):
            objects = _stacked(objects)
        images = as_stack(objects, "image")
        if images.ndim == 2:
            images = images.reshape(len(images), *self._shape(images.shape[1]))
        if images.ndim != 3:
            raise ValueError(
                f"images must be (N, height, width) or (N, pixels); got {images.shape}"
            )
        if min(images.shape[1:]) < 2:
            raise ValueError(
                f"images of {images.shape[1]} × {images.shape[2]} are too small to differentiate"
            )
        if (bad := unusable(images)).any():
            row, y, x = np.argwhere(bad)[0]
            reason = contains(images[row, y, x], f"at pixel ({y}, {x})")
            raise RefusedObject("image", row, reason)
        return images

    def feature_map(
        self, contents: Objects, rng: np.random.Generator, *, nearest: bool = False
    ) -> tuple[FeatureMap, Any] | None:
        """Return histograms of gradients."""
        found = Gradients.fit(contents)
        return found, found(contents)

    def check_alike(self, A: Objects, B: Objects) -> None:
        """Raise an error if the images have different sizes."""
        if np.shape(A)[1:] != np.shape(B)[1:]:
            a, b = (" × ".join(map(str, np.shape(X)[1:])) for X in (A, B))
            raise ValueError(f"images of {a} pixels cannot be compared with images of {b}")

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the distances."""
        A, B = np.asarray(A), np.asarray(B)
        step = max(1, _PLANES // (A.shape[1] * A.shape[2] * len(self.deformations)))
        values = np.empty((len(A), len(B)))
        for i in range(0, len(A), step):
            for j in range(0, len(B), step):
                tile = self._tile(A[i : i + step], B[j : j + step])
                values[i : i + step, j : j + step] = tile
        return values

    def _tile(self, A: Array, B: Array) -> Array:
        """Return the distances of a tile of images whose planes fit in memory."""
        D = A.shape[1] * A.shape[2]
        X, Y = A.reshape(len(A), D), B.reshape(len(B), D)
        P, Q = self._planes(A), self._planes(B)  # (n, k, D), (m, k, D)
        squared = _one_sided(X, Y, P, Q) if self.sides == 1 else _two_sided(X, Y, P, Q)
        np.maximum(squared, 0, out=squared)
        return np.sqrt(squared, out=squared)

    def side_by_side(self, a: Any, b: Any) -> SideBySide:
        """Return both pictures."""
        return Pictures(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))

    def _shape(self, pixels: int) -> tuple[int, int]:
        if self.shape is None:
            side = isqrt(pixels)
            if side * side != pixels:
                raise ValueError(f"{pixels} pixels do not form a square image; set shape=(h, w)")
            return side, side
        if self.shape[0] * self.shape[1] != pixels:
            raise ValueError(f"shape={self.shape} does not have the {pixels} pixels of the images")
        return self.shape

    def _planes(self, images: Array) -> Array:
        """Return (n, k, D): orthonormal bases of the tangent planes, padded with zeros.

        They are computed from the eigenvectors of the k×k Gram matrix, T = (TTᵀ)^(−1/2) T, with
        matrix products only. A direction below 1e-10 of the largest is a rounding error.
        """
        planes = np.empty((len(images), len(self.deformations), images.shape[1] * images.shape[2]))
        for start in range(0, len(images), _BATCH):
            T = self._tangents(images[start : start + _BATCH])
            lam, U = np.linalg.eigh(T @ T.transpose(0, 2, 1))
            kept = lam > 1e-10 * np.maximum(lam[:, -1:], np.finfo(float).tiny)
            scale = np.where(kept, 1 / np.sqrt(np.where(kept, lam, 1.0)), 0.0)
            bases = (U * scale[:, None, :]).transpose(0, 2, 1)
            np.matmul(bases, T, out=planes[start : start + _BATCH])
        return planes

    def _tangents(self, images: Array) -> Array:
        """Return (n, k, D): derivatives of each image with respect to each deformation."""
        n, height, width = images.shape
        # smoothing and differentiating are linear along each axis: products with small matrices
        rows, d_rows = self._filters(height)
        columns, d_columns = self._filters(width)
        both = images.reshape(n * height, width) @ np.hstack([columns, d_columns])
        both = both.reshape(n, height, 2 * width)
        dx = rows.T @ both[:, :, width:]
        dy = d_rows.T @ both[:, :, :width]
        y = (np.arange(height) - (height - 1) / 2)[:, None]
        x = np.arange(width) - (width - 1) / 2
        formulas = {
            "shift-x": lambda: dx,
            "shift-y": lambda: dy,
            "scale": lambda: x * dx + y * dy,
            "rotate": lambda: y * dx - x * dy,
            "stretch": lambda: x * dx - y * dy,
            "shear": lambda: y * dx + x * dy,
            "thicken": lambda: dx**2 + dy**2,
        }
        T = np.empty((n, len(self.deformations), height, width))
        for k, name in enumerate(self.deformations):
            T[:, k] = formulas[name]()
        return T.reshape(n, len(self.deformations), height * width)

    def _filters(self, length: int) -> tuple[Array, Array]:
        """Return (length, length) matrices that smooth a row, and smooth and differentiate it."""
        smooth = np.eye(length)
        if self.smoothing:
            smooth = gaussian_filter1d(smooth, self.smoothing, axis=1, mode="constant")
        return smooth, np.asarray(np.gradient(smooth, axis=1))


def _stacked(objects: Any) -> Any:
    images = []
    for row, given in enumerate(objects):
        images.append(image := as_numbers(given, "image", row))
        if image.shape != images[0].shape:
            sizes = [" × ".join(map(str, i.shape)) for i in (image, images[0])]
            raise RefusedObject("image", row, f"is {sizes[0]}, but image 0 is {sizes[1]}")
    return np.array(images)


def _one_sided(X: Array, Y: Array, P: Array, Q: Array) -> Array:
    """Return (n, m): ‖u‖² − ½‖Pu‖² − ½‖Qu‖² for u = x − y, where Pu = Px − Py, Qu = Qx − Qy."""
    squared = -2 * (X @ Y.T)
    squared += np.einsum("id,id->i", X, X)[:, None]
    squared += np.einsum("jd,jd->j", Y, Y)
    Pu = _products(P, Y)  # (n, k, m)
    np.subtract(np.einsum("ikd,id->ik", P, X)[:, :, None], Pu, out=Pu)
    squared -= 0.5 * np.einsum("ikj,ikj->ij", Pu, Pu)
    Qu = _products(Q, X)  # (m, k, n)
    np.subtract(Qu, np.einsum("jkd,jd->jk", Q, Y)[:, :, None], out=Qu)
    squared -= 0.5 * np.einsum("jki,jki->ji", Qu, Qu).T
    return squared


def _products(P: Array, Y: Array) -> Array:
    """Return (n, k, m): the coordinates of each y in each plane, one matrix product."""
    n, k, D = P.shape
    return (P.reshape(n * k, D) @ Y.T).reshape(n, k, len(Y))


def _two_sided(X: Array, Y: Array, P: Array, Q: Array) -> Array:
    """Return (n, m): ‖u‖² less the squared projection of u = x − y onto the span of both planes.

    With M = PQᵀ, the part of Q outside P has the Gram matrix S = I − MᵀM and the coordinates
    r = Qu − MᵀPu, so the projection has the square ‖Pu‖² + rᵀS⁻¹r.

    One product of [P; x] with [Q; y] contains M, Py, Qx and x·y. From there on, pairs are along the
    last axis, so that the small systems are solved side by side, few enough at a time (`_PAIRS`) to
    stay in the processor's cache.

    That product takes about half of the time. Single precision would be a quarter faster overall,
    but S loses all digits if planes nearly share a direction, as they do for similar images.
    """
    n, k, D = P.shape
    m = len(Q)
    Px, Qy = np.einsum("ikd,id->ki", P, X), np.einsum("jkd,jd->kj", Q, Y)
    xx, yy = np.einsum("id,id->i", X, X), np.einsum("jd,jd->j", Y, Y)
    squared = np.empty((n, m))
    rows = _PAIRS // _COLUMNS
    for j in range(0, m, _COLUMNS):
        h = _with_images(Q[j : j + _COLUMNS], Y[j : j + _COLUMNS])
        w = h.shape[1]
        for i in range(0, n, rows):
            f = _with_images(P[i : i + rows], X[i : i + rows])
            v = f.shape[1]
            G = f.reshape(-1, D) @ h.reshape(-1, D).T
            G = G.reshape(k + 1, v, k + 1, w).transpose(0, 2, 1, 3).reshape(k + 1, k + 1, v * w)
            M = G[:k, :k]  # (k, k, pairs)
            Pu = (Px[:, i : i + v, None] - G[:k, k].reshape(k, v, w)).reshape(k, v * w)
            Qu = (G[k, :k].reshape(k, v, w) - Qy[:, None, j : j + w]).reshape(k, v * w)
            found = (xx[i : i + v, None] + yy[j : j + w]).ravel() - 2 * G[k, k]
            found -= np.einsum("kp,kp->p", Pu, Pu)
            r = Qu - np.einsum("klp,kp->lp", M, Pu)
            S = -np.einsum("klp,kmp->lmp", M, M)
            S[np.arange(k), np.arange(k)] += 1 + _RIDGE
            found -= _inverse_form(S, r)
            squared[i : i + v, j : j + w] = found.reshape(v, w)
    return squared


def _with_images(P: Array, X: Array) -> Array:
    """Return (k + 1, n, D): the bases of the planes, and the images behind them."""
    n, k, D = P.shape
    F = np.empty((k + 1, n, D))
    F[:k], F[k] = P.transpose(1, 0, 2), X
    return F


def _inverse_form(S: Array, r: Array) -> Array:
    """Return (pairs,): rᵀS⁻¹r, by elimination; S (k, k, pairs) and r (k, pairs) are overwritten.

    If planes share a direction, S has a zero eigenvalue and r is zero along it; the ridge in S
    keeps the pivots above rounding errors.
    """
    total = np.zeros(r.shape[1])
    for i in range(len(S)):
        inverse = 1 / np.maximum(S[i, i], _RIDGE / 2)
        total += r[i] ** 2 * inverse
        factors = S[i + 1 :, i] * inverse
        r[i + 1 :] -= factors * r[i]
        S[i + 1 :, i + 1 :] -= factors[:, None] * S[i, i + 1 :]
    return total
