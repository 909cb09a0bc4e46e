"""The dynamic programmes of elastic distances, LANES pairs side by side.

A recursion over time cannot be vectorised along time. Instead, one series is compared with LANES
others, and the innermost loop runs over those. The compiler uses vector instructions only if it can
prove that a loop does not read what it writes. Therefore everything is in one array `w`, in groups
of LANES numbers at fixed distances. Column j of the programme owns `w[j·stride : (j + 1)·stride]`,
which consists of slots: the sample or cost of column j, then the value of column j in two rows of
the programme, which alternate as the previous and the current row.

`flat` contains the first series one after the other, and `starts` their start positions. `batch`
(times, channels, LANES) contains the second series, padded with zeros, and `ends` their lengths.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

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
def _fill(w, stride, slot, width, value):  # type: ignore[no-untyped-def]
    for j in range(width):
        for lane in range(LANES):
            w[j * stride + slot + lane] = value


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
def _dtw_bands(bands, n, ends, samples, share):  # type: ignore[no-untyped-def]
    """Write the band of each lane: max(samples + share·longer length, difference in length)."""
    for lane in range(LANES):
        longer = max(n, ends[lane])
        band = max(samples + share * longer, float(abs(n - ends[lane])))
        bands[lane] = int(min(float(longer), band))


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
    w = np.empty((width + 1) * _DTW)
    bands, below, above = (
        np.empty(LANES, np.int64),
        np.empty(LANES, np.int64),
        np.empty(LANES, np.int64),
    )
    out = np.empty((count, LANES))
    for s in range(count):
        first, n = starts[s], starts[s + 1] - starts[s]
        _dtw_bands(bands, n, ends, samples, share)
        band, narrowest = bands.max(), bands.min()
        walls = narrowest < band
        for lane in range(LANES):
            below[lane], above[lane] = -bands[lane] - 1, bands[lane] + 1
        if channels == 1:
            for j in range(width):
                for lane in range(LANES):
                    w[j * _DTW + lane] = batch[j, 0, lane]
        _fill(w, _DTW, even, width + 1, _LARGE)
        _fill(w, _DTW, odd, width + 1, _LARGE)
        for lane in range(LANES):
            w[even + lane] = 0.0
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
        final = even if n % 2 == 0 else odd
        for lane in range(LANES):
            out[s, lane] = np.sqrt(w[ends[lane] * _DTW + final + lane])
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
    even, odd = 2 * LANES, 3 * LANES
    w = np.empty((width + 1) * _ERP)
    out = np.empty((count, LANES))
    _costs(w, _ERP, np.full(channels, gap), batch, True)
    for j in range(width):
        for lane in range(LANES):
            w[j * _ERP + LANES + lane] = w[j * _ERP + lane]
    for s in range(count):
        for lane in range(LANES):
            w[even + lane] = 0.0
        for j in range(width):
            k = j * _ERP
            for lane in range(LANES):
                w[k + _ERP + even + lane] = w[k + even + lane] + w[k + LANES + lane]
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
        final = even if n % 2 == 0 else odd
        for lane in range(LANES):
            out[s, lane] = w[ends[lane] * _ERP + final + lane]
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
    interval between y and z. No moves lead to an empty series; its distance is 1e300 to all others,
    and 0 to another empty one.
    """
    count, (width, _, _) = len(starts) - 1, batch.shape
    even, odd = LANES, 2 * LANES
    w = np.empty(width * _DTW)
    out = np.empty((count, LANES))
    for j in range(width):
        for lane in range(LANES):
            w[j * _DTW + lane] = batch[j, 0, lane]
    for s in range(count):
        first, n = starts[s], starts[s + 1] - starts[s]
        if n == 0 or width == 0:  # there is no first cell
            for lane in range(LANES):
                out[s, lane] = 0.0 if n == ends[lane] else _LARGE
            continue
        value = flat[first, 0]
        for lane in range(LANES):
            w[even + lane] = abs(value - w[lane])
        for j in range(1, width):
            k = j * _DTW
            for lane in range(LANES):
                extra = _outside(w[k + lane], w[k - _DTW + lane], value)
                w[k + even + lane] = w[k - _DTW + even + lane] + cost + extra
        for i in range(1, n):
            value, before = flat[first + i, 0], flat[first + i - 1, 0]
            if i % 2 == 1:
                _msm_to_odd(w, value, before, cost, width)
            else:
                _msm_to_even(w, value, before, cost, width)
        final = even if n % 2 == 1 else odd
        for lane in range(LANES):
            out[s, lane] = _LARGE
            if ends[lane] > 0:
                out[s, lane] = w[(ends[lane] - 1) * _DTW + final + lane]
    return out
