"""Which axis of a series is time: (times, channels) or (channels, times)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Array
from .errors import RefusedObject
from .frames import TimesFirst, as_numbers

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
    >>> from krein.measures.layout import guess_layout
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
    if not shapes:
        return TIMES_FIRST
    first, second = ({shape[axis] for shape in shapes} for axis in (0, 1))
    if len(first) > 1:  # if both differ, the channels do not agree, which is reported elsewhere
        return TIMES_FIRST
    if len(second) > 1:
        return CHANNELS_FIRST
    a, b = first.pop(), second.pop()
    shorter, longer = min(a, b), max(a, b)
    if shorter <= 1 or (shorter <= FEW_CHANNELS and longer >= 2 * shorter):
        return TIMES_FIRST if a >= b else CHANNELS_FIRST
    raise ValueError(
        f"series of shape ({a}, {b}) may be {a} times of {b} channels or {b} times of {a} "
        "channels; set measure_params={'layout': 'times-channels'} or "
        "{'layout': 'channels-times'}"
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
        if np.isfinite(stack).all():
            return stack
        objects, layout = list(stack), TIMES_FIRST
    series: list[Array] = []
    for row, item in enumerate(objects):
        one = _one(item, row, layout)
        if series and one.shape[1] != series[0].shape[1]:
            raise ValueError(
                f"series {row} has {one.shape[1]} channels, but series 0 has {series[0].shape[1]}"
            )
        series.append(one)
    if series and len({len(one) for one in series}) == 1:
        return np.stack(series)
    return series


def _stacked(objects: Any, layout: str) -> Array:
    if objects.ndim not in (2, 3):
        raise ValueError(
            f"series must be an array (N, times), (N, times, channels) or (N, channels, times), "
            f"or a list; got an array of shape {objects.shape}"
        )
    try:
        stack = np.asarray(objects, dtype=np.float64)
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
    if np.isfinite(one).all():
        return one
    known = np.flatnonzero(~np.isnan(one).all(axis=1))
    if len(known) == 0:
        raise RefusedObject("series", row, "is empty: it contains only NaN")
    one = one[: known[-1] + 1]
    if not np.isfinite(one).all():
        time = int(np.argwhere(~np.isfinite(one))[0, 0])
        channel = int(np.argmin(np.isfinite(one[time])))
        where = f"time {time}" + (f", channel {channel}" if one.shape[1] > 1 else "")
        raise RefusedObject(
            "series",
            row,
            f"contains {one[time, channel]} at {where}; NaN counts as padding only at the end of a "
            f"series, so fill the gap or leave the series out",
        )
    return one
