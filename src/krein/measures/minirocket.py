"""Compiled convolutions of series with the 84 kernels of MiniRocket.

A kernel has nine weights: 2 at three places and −1 at the other six (Dempster, Schmidt & Webb
2021). With x(t) the value at time t, and 0 beyond the ends, its convolution at the dilation d is

    v(t) = 3 Σ_{j in the three places} x(t + (j − 4)d) − Σ_j x(t + (j − 4)d),    j = 0 … 8,

so that the nine values are added once for all kernels. The convolutions of several channels are
added up, each with a kernel of its own. All values are whole numbers: sums are exact, and v is 0
where a series is constant.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numba
import numpy as np

PLACES = np.array(list(combinations(range(9), 3)))
"""The three places of weight 2 in each of the 84 kernels."""


def _kernel(function: Any) -> Any:
    """Compile on the first call, and store the result next to this file if that is writable."""
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # nowhere to store it
        return numba.njit(nogil=True)(function)


@_kernel
def _sums(P, T, d, total):  # type: ignore[no-untyped-def]
    """Write Σ_j x(t + (j − 4)d) of each channel into `total` (channels, T).

    P (channels, margin + T + margin) contains the series between margins of 0s.
    """
    margin = (P.shape[1] - T) // 2
    for c in range(len(P)):
        row, out = P[c], total[c]
        out[:] = 0
        for j in range(9):
            first = margin + (j - 4) * d
            shifted = row[first : first + T]
            for t in range(T):
                out[t] += shifted[t]


@_kernel
def _convolve(P, T, d, total, channels, kernels, v):  # type: ignore[no-untyped-def]
    """Write the sum of the convolutions of some channels into `v` (T,).

    Each has its own kernel; the numbers from 84 on are those of the same kernels with signs
    changed.
    """
    margin = (P.shape[1] - T) // 2
    v[:] = 0
    for i in range(len(channels)):
        row, out = P[channels[i]], total[channels[i]]
        at = margin + (PLACES[kernels[i] % len(PLACES)] - 4) * d
        x, y, z = row[at[0] : at[0] + T], row[at[1] : at[1] + T], row[at[2] : at[2] + T]
        sign = np.int32(1 if kernels[i] < len(PLACES) else -1)
        for t in range(T):
            v[t] += sign * (np.int32(3) * (x[t] + y[t] + z[t]) - out[t])


@_kernel
def convolved(one, d, pair_starts, channel_of, kernel_of):  # type: ignore[no-untyped-def]
    """Return the 84 convolutions (84, T) of a series (channels, T) at a dilation.

    The p-th sees the channels `channel_of[pair_starts[p] : pair_starts[p + 1]]`, each with its
    kernel in `kernel_of`.
    """
    channels, T = one.shape
    P, total = np.zeros((channels, T + 8 * d), np.int32), np.empty((channels, T), np.int32)
    for c in range(channels):
        for t in range(T):
            P[c, 4 * d + t] = one[c, t]
    _sums(P, T, d, total)
    found = np.empty((len(PLACES), T), np.int32)
    for p in range(len(PLACES)):
        own = slice(pair_starts[p], pair_starts[p + 1])
        _convolve(P, T, d, total, channel_of[own], kernel_of[own], found[p])
    return found


@_kernel
def inside(T, d, k, p):  # type: ignore[no-untyped-def]
    """Return the times that count, for the p-th convolution at dilation number k: first, and beyond
    the last.

    Every other one leaves out the times next to the ends, where it sees 0s.
    """
    if (k + p) % 2 == 0 or 8 * d >= T:
        return 0, T
    return 4 * d, T - 4 * d


@_kernel
def pooled_convolutions(  # type: ignore[no-untyped-def]
    stack, dilations, pair_starts, channel_of, kernel_of, starts, biases
):
    """Return the features (n, 2B): for each bias, which share of the times is above it, and which
    share the longest stretch of such times has.

    `stack` (n, channels, T) contains whole numbers. The p-th convolution at dilation number k is
    i = 84k + p in all; its biases are `biases[starts[i] : starts[i + 1]]`.
    O(n·T·(B + 84·dilations)).
    """
    n, channels, T = stack.shape
    margin = 4 * dilations.max()
    P = np.zeros((channels, T + 2 * margin), np.int32)
    total, v = np.empty((channels, T), np.int32), np.empty(T, np.int32)
    found = np.empty((n, 2 * len(biases)), np.float64)
    for s in range(n):
        for c in range(channels):
            for t in range(T):
                P[c, margin + t] = stack[s, c, t]
        for k in range(len(dilations)):
            d = dilations[k]
            _sums(P, T, d, total)
            for p in range(len(PLACES)):
                i = k * len(PLACES) + p
                if starts[i] == starts[i + 1]:
                    continue
                own = slice(pair_starts[i], pair_starts[i + 1])
                _convolve(P, T, d, total, channel_of[own], kernel_of[own], v)
                low, high = inside(T, d, k, p)
                seen = v[low:high]
                for f in range(starts[i], starts[i + 1]):
                    bias, above = biases[f], np.int32(0)
                    stretch, longest = np.int32(0), np.int32(0)
                    for t in range(len(seen)):
                        is_above = np.int32(seen[t] > bias)
                        above += is_above
                        stretch = (stretch + np.int32(1)) * is_above
                        longest = max(longest, stretch)
                    found[s, 2 * f] = above / len(seen)
                    found[s, 2 * f + 1] = longest / len(seen)
    return found
