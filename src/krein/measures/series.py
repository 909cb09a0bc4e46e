"""Elastic distances between time series: their kernels, how series are read, and the measures.

The recursion of a dynamic programme cannot be vectorised along time. Instead, one series is
compared with LANES others, and the innermost loop runs over those. The compiler uses vector
instructions only if it can prove that a loop does not read what it writes. Therefore everything is
in one array `w`, in groups of LANES numbers at fixed distances. Column j of the programme owns
`w[j·stride : (j + 1)·stride]`, which consists of slots: the sample or cost of column j, then the
value of column j in two rows of the programme, which alternate as the previous and the current row.
`W` (columns, slots, LANES) is another view of the same numbers.

`flat` contains the first series one after the other, and `starts` their start positions. `batch`
(times, channels, LANES) contains the second series, padded with zeros, and `ends` their lengths.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numba
import numpy as np
from numpy.typing import NDArray

from ..core.shapes import Array
from ..wording import measure_parameter
from .alignments import (
    WARPING_CELLS,
    Curves,
    SideBySide,
    dtw_steps,
    erp_steps,
    least_path,
    msm_steps,
    numeric_edit_steps,
)
from .base import Measure, random_arrays
from .features import Convolutions, FeatureMap
from .objects import (
    Objects,
    RefusedObject,
    TimesFirst,
    as_numbers,
    as_stack,
    contains,
    unframed,
    unusable,
)

LANES = 64
"""Fewer lanes would be unrolled into scalar code; more would usually exceed the L2 cache."""

_LARGE = 1e300  # used as infinity, which the compiler may assume does not occur
_FAR = 1e150  # a sample so far from all others that its squared difference is as large
_FAST = {"nnan", "ninf", "nsz", "arcp", "contract"}


def _kernel(function: Any) -> Any:
    """Compile on the first call, and store the result next to this file if that is writable."""
    try:
        return numba.njit(cache=True, nogil=True, fastmath=_FAST)(function)
    except RuntimeError:  # nowhere to store it
        return numba.njit(nogil=True, fastmath=_FAST)(function)


# slots: sample or cost of a column, penalty of skipping it (ERP alone), two rows
_DTW = 3 * LANES
_ERP = 4 * LANES


@_kernel
def _costs(w, stride, sample, batch, root):  # type: ignore[no-untyped-def]
    """Write ‖sample − b_j‖², or its root, into the first slot of the columns."""
    for j in range(len(batch)):
        k = j * stride
        if root and len(sample) == 1:  # a square root would be expensive
            for lane in range(LANES):
                w[k + lane] = abs(sample[0] - batch[j, 0, lane])
            continue
        for lane in range(LANES):
            w[k + lane] = 0.0
        for c in range(len(sample)):
            value = sample[c]
            for lane in range(LANES):
                difference = value - batch[j, c, lane]
                w[k + lane] += difference * difference
        if root:
            for lane in range(LANES):
                w[k + lane] = np.sqrt(w[k + lane])


@_kernel
def _least(x, y, z):  # type: ignore[no-untyped-def]
    x = x if x < y else y  # this form, unlike min(), is one vector instruction
    return x if x < z else z


@_kernel
def _outside(x, y, z):  # type: ignore[no-untyped-def]
    """Return the distance of x from the interval between y and z."""
    lower = y if y < z else z
    upper = y if y > z else z
    below, above = lower - x, x - upper
    d = below if below > above else above
    return d if d > 0.0 else 0.0


def _dtw_row(last: int, now: int) -> tuple[Any, Any]:
    """Return the steps from row `last` to row `now`, of one channel and of several.

    The slots are constants of the compiled code: as arguments, they would be unknown distances.
    Loops count from zero and `w` begins at the first column of the step, because an index that
    might be negative (and so count from the end) would prevent vector instructions.
    """

    @_kernel
    def one_channel(w, value, width):  # type: ignore[no-untyped-def]
        for lane in range(LANES):
            w[now + lane] = _LARGE
        for j in range(width):
            k = j * _DTW
            for lane in range(LANES):
                d = value - w[k + lane]
                least = _least(w[k + last + lane], w[k + _DTW + last + lane], w[k + now + lane])
                w[k + _DTW + now + lane] = least + d * d

    @_kernel
    def channels(w, width):  # type: ignore[no-untyped-def]
        for lane in range(LANES):
            w[now + lane] = _LARGE
        for j in range(width):
            k = j * _DTW
            for lane in range(LANES):
                least = _least(w[k + last + lane], w[k + _DTW + last + lane], w[k + now + lane])
                w[k + _DTW + now + lane] = least + w[k + lane]

    return one_channel, channels


_dtw_one_to_odd, _dtw_to_odd = _dtw_row(LANES, 2 * LANES)
_dtw_one_to_even, _dtw_to_even = _dtw_row(2 * LANES, LANES)


@_kernel
def _wall(w, slot, column, width, bands, value):  # type: ignore[no-untyped-def]
    """Write `value` into each lane's slot, `bands` columns away from `column`."""
    for lane in range(LANES):
        j = column + bands[lane]
        if 0 <= j < width:
            w[j * _DTW + slot + lane] = value


@_kernel
def dtw_lanes(flat, starts, batch, ends, samples, share):  # type: ignore[no-untyped-def]
    """D[i, j] = ‖a_i − b_j‖² + min(D[i−1, j−1], D[i−1, j], D[i, j−1]); returns √D[|a|, |b|].

    Cells with |i − j| > samples + share·longer length are left out, unless the difference in length
    requires them. Lanes differ in length, and so in their bands. All lanes run over the cells of
    the widest band; a lane with a narrower band has a wall along each side of it. A step changes
    j − i by at most one, so no path crosses a wall of one cell, which costs two numbers per lane
    and row:

    - below, at j = i − band − 1, the cost is too large for any path. The cell to its right is read
      in the same row, so this wall is set before the row is computed.
    - above, at j = i + band + 1, the value is overwritten after the row has been computed. Cells of
      the band read it only in the next row. The cells beyond the wall are never read.
    """
    count, (width, channels, _) = len(starts) - 1, batch.shape
    even, odd = LANES, 2 * LANES
    W = np.empty((width + 1, 3, LANES))
    w = W.reshape(-1)
    bands = np.empty(LANES, np.int64)
    out = np.empty((count, LANES))
    for s in range(count):
        first, n = starts[s], starts[s + 1] - starts[s]
        for lane in range(LANES):
            longer = max(n, ends[lane])
            widest = max(samples + share * longer, float(abs(n - ends[lane])))
            bands[lane] = int(min(float(longer), widest))
        band, narrowest = bands.max(), bands.min()
        walls = narrowest < band
        below, above = -bands - 1, bands + 1
        if channels == 1:
            for j in range(width):
                for lane in range(LANES):
                    W[j, 0, lane] = batch[j, 0, lane]
        W[:, 1:] = _LARGE
        W[0, 1] = 0.0
        for i in range(n):
            low, high = max(0, i - band), min(width, i + band + 1)
            if channels > 1:
                _costs(w[low * _DTW :], _DTW, flat[first + i], batch[low:high], False)
                if walls and i > narrowest:
                    _wall(w, 0, i, width, below, _LARGE)
                if i % 2 == 0:
                    _dtw_to_odd(w[low * _DTW :], high - low)
                else:
                    _dtw_to_even(w[low * _DTW :], high - low)
            else:
                if walls and i > narrowest:
                    _wall(w, 0, i, width, below, _FAR)
                if i % 2 == 0:
                    _dtw_one_to_odd(w[low * _DTW :], flat[first + i, 0], high - low)
                else:
                    _dtw_one_to_even(w[low * _DTW :], flat[first + i, 0], high - low)
            if walls and i + narrowest + 1 < width:
                # the value of column j is stored one group after its cost
                _wall(w, _DTW + (odd if i % 2 == 0 else even), i, width, above, _LARGE)
        for lane in range(LANES):
            out[s, lane] = np.sqrt(W[ends[lane], 1 + n % 2, lane])
    return out


def _erp_row(last: int, now: int) -> Any:
    @_kernel
    def row(w, skip, width):  # type: ignore[no-untyped-def]
        for lane in range(LANES):
            w[now + lane] = w[last + lane] + skip
        for j in range(width):
            k = j * _ERP
            for lane in range(LANES):
                match = w[k + last + lane] + w[k + lane]
                skip_first = w[k + _ERP + last + lane] + skip
                skip_second = w[k + now + lane] + w[k + LANES + lane]
                w[k + _ERP + now + lane] = _least(match, skip_first, skip_second)

    return row


_erp_to_odd = _erp_row(2 * LANES, 3 * LANES)
_erp_to_even = _erp_row(3 * LANES, 2 * LANES)


@_kernel
def erp_lanes(flat, starts, batch, ends, gap):  # type: ignore[no-untyped-def]
    """D[i, j] = min(D[i−1, j−1] + ‖a_i − b_j‖, D[i−1, j] + ‖a_i − g‖, D[i, j−1] + ‖b_j − g‖)."""
    count, (width, channels, _) = len(starts) - 1, batch.shape
    W = np.empty((width + 1, 4, LANES))
    w = W.reshape(-1)
    out = np.empty((count, LANES))
    _costs(w, _ERP, np.full(channels, gap), batch, True)
    for j in range(width):
        for lane in range(LANES):
            W[j, 1, lane] = W[j, 0, lane]
    for s in range(count):
        W[0, 2] = 0.0
        for j in range(width):
            W[j + 1, 2] = W[j, 2] + W[j, 1]
        n = starts[s + 1] - starts[s]
        for i in range(n):
            sample = flat[starts[s] + i]
            skip = 0.0
            for c in range(channels):
                skip += (sample[c] - gap) ** 2
            skip = np.sqrt(skip)
            _costs(w, _ERP, sample, batch, True)
            if i % 2 == 0:
                _erp_to_odd(w, skip, width)
            else:
                _erp_to_even(w, skip, width)
        for lane in range(LANES):
            out[s, lane] = W[ends[lane], 2 + n % 2, lane]
    return out


@_kernel
def numeric_edit_lanes(flat, starts, batch, ends, gap):  # type: ignore[no-untyped-def]
    """D[i, j] = min(D[i−1, j−1] + ‖a_i − b_j‖, D[i−1, j] + gap, D[i, j−1] + gap)."""
    count, width = len(starts) - 1, len(batch)
    W = np.empty((width + 1, 4, LANES))
    w = W.reshape(-1)
    out = np.empty((count, LANES))
    W[:, 1] = gap
    for s in range(count):
        for j in range(width + 1):
            W[j, 2] = j * gap
        n = starts[s + 1] - starts[s]
        for i in range(n):
            _costs(w, _ERP, flat[starts[s] + i], batch, True)
            if i % 2 == 0:
                _erp_to_odd(w, gap, width)
            else:
                _erp_to_even(w, gap, width)
        for lane in range(LANES):
            out[s, lane] = W[ends[lane], 2 + n % 2, lane]
    return out


def _msm_row(last: int, now: int) -> Any:
    @_kernel
    def row(w, value, before, cost, width):  # type: ignore[no-untyped-def]
        for lane in range(LANES):
            w[now + lane] = w[last + lane] + cost + _outside(value, before, w[lane])
        for j in range(width - 1):
            k = j * _DTW
            for lane in range(LANES):
                b_before, b = w[k + lane], w[k + _DTW + lane]
                move = w[k + last + lane] + abs(value - b)
                split = w[k + _DTW + last + lane] + cost + _outside(value, before, b)
                merge = w[k + now + lane] + cost + _outside(b, b_before, value)
                w[k + _DTW + now + lane] = _least(move, split, merge)

    return row


_msm_to_odd = _msm_row(LANES, 2 * LANES)
_msm_to_even = _msm_row(2 * LANES, LANES)


@_kernel
def msm_lanes(flat, starts, batch, ends, cost):  # type: ignore[no-untyped-def]
    """D[i, j] = min(D[i−1, j−1] + |a_i − b_j|, D[i−1, j] + C(a_i; a_i−1, b_j),
    D[i, j−1] + C(b_j; b_j−1, a_i)), where C(x; y, z) is `cost` plus the distance of x from the
    interval between y and z; added up over channels. No moves lead to an empty series; its distance
    is 1e300 to all others, and 0 to another empty one.
    """
    count, (width, channels, _) = len(starts) - 1, batch.shape
    W = np.empty((width, 3, LANES))
    w = W.reshape(-1)
    out = np.zeros((count, LANES))
    for s in range(count):
        first, n = starts[s], starts[s + 1] - starts[s]
        for lane in range(LANES):
            if n == 0 or ends[lane] == 0:  # there is no first cell
                out[s, lane] = 0.0 if n == ends[lane] else _LARGE
    for c in range(channels):
        for j in range(width):
            for lane in range(LANES):
                W[j, 0, lane] = batch[j, c, lane]
        for s in range(count):
            first, n = starts[s], starts[s + 1] - starts[s]
            if n == 0 or width == 0:
                continue
            value = flat[first, c]
            for lane in range(LANES):
                W[0, 1, lane] = abs(value - W[0, 0, lane])
            for j in range(1, width):
                for lane in range(LANES):
                    extra = _outside(W[j, 0, lane], W[j - 1, 0, lane], value)
                    W[j, 1, lane] = W[j - 1, 1, lane] + cost + extra
            for i in range(1, n):
                value, before = flat[first + i, c], flat[first + i - 1, c]
                if i % 2 == 1:
                    _msm_to_odd(w, value, before, cost, width)
                else:
                    _msm_to_even(w, value, before, cost, width)
            for lane in range(LANES):
                if ends[lane] > 0:
                    out[s, lane] += W[ends[lane] - 1, 2 - n % 2, lane]
    return out


# Which axis of a series is time: (times, channels) or (channels, times)

TIMES_FIRST, CHANNELS_FIRST = "times-channels", "channels-times"
LAYOUTS = ("auto", TIMES_FIRST, CHANNELS_FIRST)

FEW_CHANNELS = 16
"""Maximum number of channels for a guess: with hundreds of sensors there are often fewer times than
channels."""


def guess_layout(objects: Any) -> str:
    """Return the layout of series from `unframed`, if their shapes are unambiguous.

    Time is the axis whose length differs between series. If neither differs, it is the one next to
    an axis of length 1, or the one at least twice as long as the other, provided that the other has
    at most `FEW_CHANNELS` entries. Anything else is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.series import guess_layout
    >>> guess_layout(np.zeros((20, 3, 315)))
    'channels-times'
    >>> guess_layout([np.zeros((40, 24)), np.zeros((51, 24))])
    'times-channels'
    """
    if isinstance(objects, np.ndarray) and objects.dtype != object:
        shapes = {objects.shape[1:]} if len(objects) else set()
    else:
        if len(objects) and all(isinstance(item, TimesFirst) for item in objects):
            return TIMES_FIRST
        shapes = {_shape(item) for item in objects}
    shapes = {shape for shape in shapes if len(shape) == 2}
    first, second = ({shape[axis] for shape in shapes} for axis in (0, 1))
    if len(first) != 1:  # if both differ, the channels do not agree, which is reported elsewhere
        return TIMES_FIRST
    if len(second) > 1:
        return CHANNELS_FIRST
    a, b = first.pop(), second.pop()
    shorter, longer = min(a, b), max(a, b)
    if shorter <= 1 or (shorter <= FEW_CHANNELS and longer >= 2 * shorter):
        return TIMES_FIRST if a >= b else CHANNELS_FIRST
    raise ValueError(
        f"series of shape ({a}, {b}) may be {a} times of {b} channels or {b} times of {a} "
        f"channels; set {measure_parameter('layout', 'times-channels')} or "
        f"{measure_parameter('layout', 'channels-times')}"
    )


def _shape(item: Any) -> tuple[int, ...]:
    try:
        return np.shape(item)
    except ValueError:  # a list of lists of different lengths, which is refused later
        return ()


def read_series(objects: Any, layout: str) -> Array | list[Array]:
    """Return series from `unframed` as (N, times, channels), or as a list if lengths differ.

    `layout` describes the input. NaN at the end of a series is padding and is stripped; NaN or
    infinity elsewhere is refused.
    """
    if layout == "auto":
        layout = guess_layout(objects)
    if isinstance(objects, np.ndarray) and objects.dtype != object:
        stack = _stacked(objects, layout)
        if not unusable(stack).any():
            return stack
        objects, layout = list(stack), TIMES_FIRST
    series: list[Array] = []
    for row, item in enumerate(objects):
        one = _one(item, row, layout)
        if series and one.shape[1] != series[0].shape[1]:
            reason = f"has {one.shape[1]} channels, but series 0 has {series[0].shape[1]}"
            raise RefusedObject("series", row, reason)
        series.append(one)
    same = len({len(one) for one in series}) == 1
    return np.stack(series) if same else series


def _stacked(objects: Any, layout: str) -> Array:
    if objects.ndim not in (2, 3):
        raise ValueError(
            f"series must be an array (N, times), (N, times, channels) or (N, channels, times), "
            f"or a list; got an array of shape {objects.shape}"
        )
    try:
        stack = as_stack(objects, "series")
    except RefusedObject:
        raise
    except ValueError as error:
        raise TypeError(f"the series do not consist of numbers: {error}") from None
    if stack.ndim == 2:
        stack = stack[:, :, None]
    elif layout == CHANNELS_FIRST:
        stack = stack.swapaxes(1, 2)
    if stack.shape[1] == 0 or stack.shape[2] == 0:
        raise ValueError(f"the series are empty: an array of shape {objects.shape}")
    return np.ascontiguousarray(stack)


def _one(item: Any, row: int, layout: str) -> Array:
    """Return one series (times, channels) without its padding."""
    if np.ndim(item) == 0 and not isinstance(item, str):
        raise RefusedObject("series", row, f"is a single value, {item!r}; pass a list of series")
    one = as_numbers(item, "series", row)
    if one.ndim == 1:
        one = one[:, None]
    elif one.ndim == 2 and layout == CHANNELS_FIRST and not isinstance(item, TimesFirst):
        one = np.ascontiguousarray(one.T)
    if one.ndim != 2:
        raise RefusedObject(
            "series", row, f"has {one.ndim} axes; a series has at most two, times and channels"
        )
    if one.size == 0:
        raise RefusedObject("series", row, "is empty")
    if not unusable(one).any():
        return one
    known = np.flatnonzero(~np.isnan(one).all(axis=1))
    if len(known) == 0:
        raise RefusedObject("series", row, "is empty: it contains only NaN")
    one = one[: known[-1] + 1]
    if (bad := unusable(one)).any():
        time, channel = np.argwhere(bad)[0].tolist()
        where = f"at time {time}" + (f", channel {channel}" if one.shape[1] > 1 else "")
        reason, remedy = contains(one[time, channel], where), ""
        if not np.isfinite(one[time, channel]):
            remedy = "; NaN counts as padding only at the end of a series, so fill the gap or "
            remedy += "leave the series out"
        raise RefusedObject("series", row, reason + remedy)
    return one


def _turned(series: Objects) -> Objects:
    """Return each series with its axes exchanged."""
    if isinstance(series, np.ndarray):
        return np.ascontiguousarray(series.swapaxes(1, 2))
    return [np.ascontiguousarray(one.T) for one in series]


# Elastic distances


@dataclass(frozen=True)
class _Elastic(Measure):
    """Distances by dynamic programming over all alignments in time.

    O(T²·channels) per pair. The recursion proceeds step by step, so many pairs are computed side by
    side: one series against `LANES` others, padded to the longest of them. Padding changes nothing:
    a cell depends only on earlier cells, and each lane is read off at its own length.
    """

    layout: str = field(default="auto", kw_only=True)

    kind = "dissimilarity"
    self_value = 0.0
    releases_gil = True
    block_pairs = 2**15
    lanes: ClassVar[Callable[..., Array]]
    """The kernel: distances (series, LANES) of the series in `flat` to those in the lanes."""
    steps: ClassVar[Callable[..., Any]]
    """The costs of the steps of a path between two series, for `least_path`."""

    @abstractmethod
    def costs(self) -> tuple[float, ...]:
        """Return the parameters of the kernel and of the steps."""

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
        known = not self.undecided()
        return self if known else replace(self, layout=guess_layout(unframed(objects)))

    def check(self, objects: Any) -> Objects:
        """Return an array (N, times, channels), or a list if lengths differ.

        If `layout` is "channels-times", they stay in that order.
        """
        series = read_series(unframed(objects), self.layout)
        return _turned(series) if self.layout == CHANNELS_FIRST else series

    def contents(self, objects: Objects) -> Objects:
        """Return the series as (times, channels), in either layout."""
        return _turned(objects) if self.layout == CHANNELS_FIRST else objects

    def content_keys(self, objects: Objects, first: int = 0) -> NDArray[np.uint64]:
        """Return one number (N,) per series, the same in either layout."""
        return super().content_keys(self.contents(objects), first)

    def feature_map(
        self, contents: Objects, rng: np.random.Generator, *, nearest: bool = False
    ) -> tuple[FeatureMap, Any] | None:
        """Return convolutions with the kernels of MiniRocket."""
        found = Convolutions.fit(contents, rng)
        return found, found(contents)

    def as_given(self, contents: Objects) -> Objects:
        """Return series in their layout; those of one channel, times first, have one axis."""
        if self.layout == CHANNELS_FIRST:
            return self.contents(contents)
        if not len(contents) or contents[0].shape[1] > 1:
            return contents
        if isinstance(contents, np.ndarray):
            return contents[:, :, 0]
        return [one[:, 0] for one in contents]

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
        A, B = self.contents(A), self.contents(B)
        flat = np.concatenate([np.asarray(a) for a in A])
        starts = np.concatenate([[0], np.cumsum([len(a) for a in A])])
        lengths = np.array([len(b) for b in B])
        order = np.argsort(lengths, kind="stable")  # series of similar length share a batch
        for lanes in (order[i : i + LANES] for i in range(0, len(order), LANES)):
            width = lengths[lanes].max()
            batch = np.zeros((width, flat.shape[1], LANES))
            for lane, index in enumerate(lanes):
                batch[: lengths[index], :, lane] = B[index]
            ends = np.full(LANES, width)
            ends[: len(lanes)] = lengths[lanes]
            found = self.lanes(flat, starts, batch, ends, *self.costs())
            values[:, lanes] = found[:, : len(lanes)]
        return values

    def random_objects(
        self, objects: Objects, sizes: Array, rng: np.random.Generator
    ) -> Objects | None:
        """Return series of these sizes, with samples drawn from the given series."""
        given = self.contents(self._in_order(objects))
        found = random_arrays(np.concatenate(given), sizes, rng)
        return _turned(found) if self.layout == CHANNELS_FIRST else found

    def side_by_side(self, a: Any, b: Any) -> SideBySide:
        """Return both curves, and the corresponding times on the path of the distance."""
        first, second = self.contents([np.asarray(x, dtype=np.float64) for x in (a, b)])
        path = np.empty((0, 2), dtype=np.intp)
        if len(first) * len(second) <= WARPING_CELLS:
            steps = self.steps(first, second, *self.costs())
            _, cells, matched = least_path(steps)
            before = steps.match.shape[0] - len(first)  # cells before the first times
            path = cells[(cells >= before).all(axis=1) & (matched | (before == 0))] - before
        return Curves(first, second, path)


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
    layout : {"auto", "times-channels", "channels-times"}, default="auto"
        Order of the axes of a series. "auto" decides from the shapes of the training series, and
        refuses ambiguous ones. A fitted model keeps the choice.

    See Also
    --------
    ERP : A metric, with a penalty for unmatched samples.
    MSM : A metric that does not depend on a reference value.

    Examples
    --------
    >>> from krein.measures.series import DTW
    >>> dtw = DTW()
    >>> series = dtw.check([[0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    >>> dtw.block(series[:1], series[1:]).round(2)
    array([[0.  , 1.73]])
    """

    band: float | None = None

    name = "dtw"
    psd = False
    lanes, steps = staticmethod(dtw_lanes), staticmethod(dtw_steps)

    def __post_init__(self) -> None:
        super().__post_init__()
        band = self.band
        whole = isinstance(band, int) and not isinstance(band, bool)
        if band is not None and (band is True or not (band >= 0 if whole else 0 <= band <= 1)):
            raise ValueError(
                f"band must be a whole number of samples or a share of the longer series (0.0 to "
                f"1.0); got {band!r}"
            )

    def costs(self) -> tuple[float, ...]:
        """Return (samples, share): the band is samples + share·longer length."""
        if self.band is None:
            return np.inf, 0.0
        return (float(self.band), 0.0) if isinstance(self.band, int) else (0.0, self.band)


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
    NumericEdit : A metric in which every unmatched sample costs the same.

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
    lanes, steps = staticmethod(erp_lanes), staticmethod(erp_steps)

    def costs(self) -> tuple[float, ...]:
        """Return the value that unmatched samples are compared with."""
        return (float(self.gap),)


@dataclass(frozen=True)
class NumericEdit(_Elastic):
    """Edit distance between series of numbers with a constant gap cost: a metric.

    The smallest sum of the distances between matched samples, plus `gap` for every unmatched one.
    The distance between two samples of several channels is Euclidean. O(T²) per pair. Unlike in
    ERP, the cost of leaving out a sample does not depend on its value, so a constant added to all
    series changes nothing. With 0 and 1 as the only distances between samples and a gap of 1, it
    would be the Levenshtein distance. NaN at the end of a series is padding and is stripped.

    Parameters
    ----------
    gap : float, default=1.0
        Cost of an unmatched sample, in the unit of the series; above 0. Two samples that differ by
        more than twice this cost are never matched.
    layout : {"auto", "times-channels", "channels-times"}, default="auto"
        Order of the axes of a series. "auto" decides from the shapes of the training series, and
        refuses ambiguous ones. A fitted model keeps the choice.

    See Also
    --------
    ERP : Compares unmatched samples with a reference value instead.
    MSM : A metric in which the cost of a split depends on the neighbouring values.

    Examples
    --------
    >>> from krein.measures.series import NumericEdit
    >>> edit = NumericEdit(gap=2.0)
    >>> series = edit.check([[1.0, 5.0, 1.0], [1.0, 1.5], [9.0, 9.0]])
    >>> edit.block(series[:1], series[1:])
    array([[ 2.5, 10. ]])
    """

    gap: float = 1.0

    name = "numeric-edit"
    positive = ("gap",)
    lanes, steps = staticmethod(numeric_edit_lanes), staticmethod(numeric_edit_steps)

    def costs(self) -> tuple[float, ...]:
        """Return the cost of an unmatched sample."""
        return (float(self.gap),)


@dataclass(frozen=True)
class MSM(_Elastic):
    """Move-split-merge (Stefan, Athitsos & Das 2013): a metric.

    The smallest cost of turning one series into the other by moving a value (at the cost of its
    change), splitting one in two, or merging two equal ones (`cost` each). The distances of several
    channels are added up, each with a warping of its own ("independent" in Shifaz et al. 2023 and
    in aeon), so that the sum is a metric too. O(T²·channels) per pair. NaN at the end of a series
    is padding and is stripped.

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
    DTW : Warps all channels together, without a penalty; faster with a band.
    ERP : A metric that warps all channels together.

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
    positive = ("cost",)
    lanes, steps = staticmethod(msm_lanes), staticmethod(msm_steps)

    def costs(self) -> tuple[float, ...]:
        """Return the cost of a split or merge."""
        return (float(self.cost),)

    def side_by_side(self, a: Any, b: Any) -> SideBySide:
        """Return both curves, and the corresponding times of series of one channel."""
        first, second = self.contents([np.asarray(x, dtype=np.float64) for x in (a, b)])
        if first.shape[1] == 1:
            return super().side_by_side(a, b)
        return Curves(first, second, np.empty((0, 2), dtype=np.intp))  # each has its own path
