"""Random convolutions: features of series that need no comparisons (Dempster et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..core.checks import Array

KERNELS, WIDTH = 500, 9
"""Number of random convolutions, and the number of values in each."""


@dataclass(frozen=True)
class Kernel:
    """A random convolution of one channel, and its threshold."""

    dilation: int
    weights: NDArray[np.float32]  # (WIDTH,), centred
    channel: int
    threshold: np.float32

    def values(self, stack: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the convolution (n, T) of series (n, T, channels), before the threshold."""
        n, T, _ = stack.shape
        half = self.dilation * (WIDTH // 2)
        signal = np.pad(stack[:, :, self.channel], ((0, 0), (half, half)))
        value = np.zeros((n, T), dtype=np.float32)
        for j, w in enumerate(self.weights):
            value += w * signal[:, j * self.dilation : j * self.dilation + T]
        return value


@dataclass(frozen=True)
class Convolutions:
    """Random convolutions of series (ROCKET; Dempster, Petitjean & Webb 2020).

    Kernels have nine centred normal weights, a random dilation and a random channel; the threshold
    is a random value of the convolution of one training series, as in MiniRocket. The common
    length, the mean and the spread are those of the training series too. No labels are used.
    """

    length: int  # T
    mean: Array  # (channels,)
    spread: Array  # (channels,)
    kernels: tuple[Kernel, ...]

    @classmethod
    def fit(cls, series: Sequence[Any], rng: np.random.Generator) -> Self:
        """Draw the kernels. Series of different lengths are stretched to their median length.

        O(N·T + T·KERNELS).
        """
        length = int(np.median([len(one) for one in series]))
        stack = _stacked(series, length)
        mean, spread = stack.mean(axis=(0, 1)), stack.std(axis=(0, 1))
        spread = np.where(spread > 0, spread, 1)
        stack = ((stack - mean) / spread).astype(np.float32)
        n, T, channels = stack.shape
        most = np.log2(max((T - 1) / (WIDTH - 1), 1.0))
        kernels = []
        for _ in range(KERNELS):
            dilation = int(2 ** rng.uniform(0, most))
            weights = rng.normal(size=WIDTH)
            weights = (weights - weights.mean()).astype(np.float32)
            kernel = Kernel(dilation, weights, int(rng.integers(channels)), np.float32(0))
            some, time = int(rng.integers(n)), int(rng.integers(T))
            threshold = kernel.values(stack[some : some + 1])[0, time]
            kernels.append(Kernel(dilation, weights, kernel.channel, threshold))
        return cls(length, mean, spread, tuple(kernels))

    def features(self, series: Sequence[Any]) -> Array:
        """Return the features (n, 2·KERNELS): the share above the threshold and the maximum of each
        convolution. O(n·T·KERNELS)."""
        stack = ((_stacked(series, self.length) - self.mean) / self.spread).astype(np.float32)
        found = np.empty((len(stack), 2 * len(self.kernels)))
        for k, kernel in enumerate(self.kernels):
            value = kernel.values(stack) - kernel.threshold
            found[:, 2 * k] = (value > 0).mean(axis=1)
            found[:, 2 * k + 1] = value.max(axis=1)
        return found


def _stacked(series: Sequence[Any], length: int) -> Array:
    """Return series as one array (n, T, channels)."""
    return np.stack([_stretched(np.asarray(one), length) for one in series])


def _stretched(one: Array, length: int) -> Array:
    one = one.reshape(len(one), -1)
    if len(one) == length:
        return one
    at = np.linspace(0, len(one) - 1, length)
    return np.column_stack([np.interp(at, np.arange(len(one)), c) for c in one.T])
