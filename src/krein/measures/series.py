"""Elastic distances between time series, computed for a batch of series at a time, one per lane."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import InitVar, dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .base import Array, Measure, Objects, unframed
from .beside import Beside, Curves
from .elastic import LANES, dtw_lanes, erp_lanes, msm_lanes
from .layout import CHANNELS_FIRST, LAYOUTS, guess_layout, read_series
from .warping import MOST_CELLS, Steps, dtw_steps, erp_steps, least_path, msm_steps


@dataclass(frozen=True)
class _Elastic(Measure):
    """Distances by dynamic programming over all alignments in time.

    O(T²·channels) per pair. The recursion proceeds step by step, so many pairs are computed side by
    side: one series against `LANES` others, padded to the longest of them. Padding changes nothing:
    a cell depends only on earlier cells, and each lane is read off at its own length.
    """

    layout: str = field(default="auto", kw_only=True)

    kind = "dissimilarity"
    releases_gil = True
    block_pairs = 2**15

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layout not in LAYOUTS:
            names = ", ".join(map(repr, LAYOUTS[:-1]))
            raise ValueError(f"layout must be {names} or {LAYOUTS[-1]!r}; got {self.layout!r}")

    def undecided(self) -> bool:
        """Whether the layout is still to be determined."""
        return self.layout == "auto"

    def decide(self, objects: Any) -> Self:
        """Return the measure with the layout of these series."""
        if self.layout != "auto":
            return self
        return replace(self, layout=guess_layout(unframed(objects)))

    def check(self, objects: Any) -> Objects:
        """Return an array (N, times, channels), or a list if lengths differ.

        If `layout` is "channels-times", they stay in that order.
        """
        series = read_series(unframed(objects), self.layout)
        if self.layout != CHANNELS_FIRST:
            return series
        if isinstance(series, np.ndarray):
            return np.ascontiguousarray(series.swapaxes(1, 2))
        return [np.ascontiguousarray(one.T) for one in series]

    def check_alike(self, A: Objects, B: Objects) -> None:
        """Raise an error if the numbers of channels differ."""
        channels = 0 if self.layout == CHANNELS_FIRST else 1
        if len(A) and len(B) and A[0].shape[channels] != B[0].shape[channels]:
            a, b = (X[0].shape[channels] for X in (A, B))
            raise ValueError(
                f"series of {a} channels cannot be compared with series of {b} channels; leave out "
                "or add channels so that all have the same ones"
            )

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the distances; lanes are filled from the side that leaves fewer of them empty."""
        if -(-len(A) // LANES) * len(B) < -(-len(B) // LANES) * len(A):
            return np.ascontiguousarray(self.block(B, A).T)
        values = np.empty((len(A), len(B)))
        if values.size == 0:
            return values
        if self.layout == CHANNELS_FIRST:
            A, B = ([np.asarray(one).T for one in X] for X in (A, B))
        flat = np.concatenate([np.asarray(a) for a in A])
        starts = np.concatenate([[0], np.cumsum([len(a) for a in A])])
        lengths = np.array([len(b) for b in B])
        for lanes in self._batches(lengths):
            width = lengths[lanes].max()
            batch = np.zeros((width, flat.shape[1], LANES))
            for lane, index in enumerate(lanes):
                batch[: lengths[index], :, lane] = B[index]
            ends = np.full(LANES, width)
            ends[: len(lanes)] = lengths[lanes]
            values[:, lanes] = self._lanes(flat, starts, batch, ends)[:, : len(lanes)]
        return values

    def _batches(self, lengths: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """Yield indices of up to `LANES` series of similar length."""
        order = np.argsort(lengths, kind="stable")
        for first in range(0, len(order), LANES):
            yield order[first : first + LANES]

    def diagonal(self, A: Objects) -> Array:
        """Return zeros: the distance of a series to itself."""
        return np.zeros(len(A))

    def beside(self, a: Any, b: Any) -> Beside:
        """Return both curves, and the corresponding times on the path of the distance."""
        first, second = (np.asarray(x, dtype=np.float64) for x in (a, b))
        if self.layout == CHANNELS_FIRST:
            first, second = first.T, second.T
        path = np.empty((0, 2), dtype=np.intp)
        if len(first) * len(second) <= MOST_CELLS:
            steps = self._steps(first, second)
            _, cells, matched = least_path(steps)
            before = steps.match.shape[0] - len(first)  # cells before the first times
            path = cells[(cells >= before).all(axis=1) & (matched | (before == 0))] - before
        return Curves(first, second, path)

    @abstractmethod
    def _steps(self, a: Array, b: Array) -> Steps:
        """Return the costs of the steps of a path."""

    @abstractmethod
    def _lanes(
        self, flat: Array, starts: NDArray[np.intp], batch: Array, ends: NDArray[np.intp]
    ) -> Array:
        """Return (series, LANES) distances of the series in `flat` to those in the lanes."""


def _check_band(band: float | None) -> None:
    whole = isinstance(band, int) and not isinstance(band, bool)
    if band is not None and (band is True or not (band >= 0 if whole else 0 <= band <= 1)):
        raise ValueError(
            f"band must be a whole number of samples or a share of the longer series (0.0 to "
            f"1.0); got {band!r}"
        )


@dataclass(frozen=True)
class DTW(_Elastic):
    """Dynamic time warping (Sakoe & Chiba 1978): square root of the smallest sum of squared
    differences.

    Several channels are warped together: the local cost is the squared Euclidean distance between
    two samples. O(T²) per pair, O(T·band) with a band. Neither a metric nor Euclidean. NaN at the
    end of a series is padding and is stripped.

    Parameters
    ----------
    band : int, float or None, default=None
        How far the warping may leave the diagonal, |i − j| ≤ band. An int is a number of samples; a
        float is a share of the longer series (0.1 is a tenth; 1 is one sample, but 1.0 no limit).
        None sets no limit. If two series differ in length by more, the band is widened to that
        difference. The narrower the band, the lower the cost.
    window : int, float or None, default=None
        Another name for `band`; set only one of them.
    layout : {"auto", "times-channels", "channels-times"}, default="auto"
        Order of the axes of a series. "auto" decides from the shapes of the training series, and
        refuses ambiguous ones. A fitted model keeps the choice.

    See Also
    --------
    ERP : A metric, with a penalty for unmatched samples.
    MSM : A metric for series of one channel.

    Examples
    --------
    >>> from krein.measures.series import DTW
    >>> dtw = DTW()
    >>> series = dtw.check([[0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    >>> dtw.block(series[:1], series[1:]).round(2)
    array([[0.  , 1.73]])
    """

    band: float | None = None
    window: InitVar[float | None] = None

    name = "dtw"
    psd = False

    def __post_init__(self, window: float | None) -> None:
        if window is not None:
            if self.band is not None:
                raise ValueError(
                    f"window is another name for band; got band={self.band!r} and window={window!r}"
                )
            object.__setattr__(self, "band", window)
        super().__post_init__()
        _check_band(self.band)

    def _lanes(
        self, flat: Array, starts: NDArray[np.intp], batch: Array, ends: NDArray[np.intp]
    ) -> Array:
        return dtw_lanes(flat, starts, batch, ends, *_band(self.band))

    def _steps(self, a: Array, b: Array) -> Steps:
        return dtw_steps(a, b, *_band(self.band))


@dataclass(frozen=True)
class ERP(_Elastic):
    """Edit distance with real penalty (Chen & Ng 2004): a metric.

    The smallest sum of the distances between matched samples and, for unmatched samples, of their
    distances from `gap`; the distance between two samples of several channels is Euclidean. O(T²)
    per pair. NaN at the end of a series is padding and is stripped.

    Parameters
    ----------
    gap : float, default=0.0
        Value that unmatched samples are compared with, in the unit of the series and the same for
        all channels. 0 suits series that are centred.
    layout : {"auto", "times-channels", "channels-times"}, default="auto"
        Order of the axes of a series. "auto" decides from the shapes of the training series, and
        refuses ambiguous ones. A fitted model keeps the choice.

    See Also
    --------
    DTW : Warps without a penalty; faster with a band.
    MSM : A metric that does not depend on a reference value.

    Examples
    --------
    >>> from krein.measures.series import ERP
    >>> erp = ERP()
    >>> series = erp.check([[0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    >>> erp.block(series[:1], series[1:])
    array([[0.]])
    """

    gap: float = 0.0

    name = "erp"

    def _lanes(
        self, flat: Array, starts: NDArray[np.intp], batch: Array, ends: NDArray[np.intp]
    ) -> Array:
        return erp_lanes(flat, starts, batch, ends, float(self.gap))

    def _steps(self, a: Array, b: Array) -> Steps:
        return erp_steps(a, b, float(self.gap))


@dataclass(frozen=True)
class MSM(_Elastic):
    """Move-split-merge (Stefan, Athitsos & Das 2013): a metric for series of one channel.

    The smallest cost of turning one series into the other by moving a value (at the cost of its
    change), splitting one in two, or merging two equal ones (`cost` each). O(T²) per pair. NaN at
    the end of a series is padding and is stripped.

    Parameters
    ----------
    cost : float, default=1.0
        Cost of one split or merge, in the unit of the series; above 0. The larger it is, the more
        warping in time costs compared with changing values.
    layout : {"auto", "times-channels", "channels-times"}, default="auto"
        Order of the axes of a series. "auto" decides from the shapes of the training series, and
        refuses ambiguous ones. A fitted model keeps the choice.

    See Also
    --------
    DTW : Warps without a penalty; faster with a band, and for several channels.
    ERP : A metric for several channels.

    Examples
    --------
    >>> from krein.measures.series import MSM
    >>> msm = MSM()
    >>> series = msm.check([[0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    >>> msm.block(series[:1], series[1:])
    array([[2.]])
    """

    cost: float = 1.0

    name = "msm"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.cost > 0:
            raise ValueError(f"cost must be above 0; got {self.cost}")

    def check(self, objects: Any) -> Objects:
        """Return the series, which must have one channel."""
        series = super().check(objects)
        channels = 0 if self.layout == CHANNELS_FIRST else 1
        if len(series) and series[0].shape[channels] != 1:
            raise ValueError(
                f"msm compares series of one channel; these have {series[0].shape[channels]}"
            )
        return series

    def _lanes(
        self, flat: Array, starts: NDArray[np.intp], batch: Array, ends: NDArray[np.intp]
    ) -> Array:
        return msm_lanes(flat, starts, batch, ends, float(self.cost))

    def _steps(self, a: Array, b: Array) -> Steps:
        return msm_steps(a, b, float(self.cost))


def _band(band: float | None) -> tuple[float, float]:
    """Return (samples, share) so that the band is samples + share·longer length."""
    if band is None:
        return np.inf, 0.0
    if isinstance(band, int):
        return float(band), 0.0
    return 0.0, float(band)
