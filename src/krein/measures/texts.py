"""What the measures of sequences, strings and texts ask of their input."""

from __future__ import annotations

from typing import Any

import numpy as np

from .frames import unframed


def as_list(objects: Any, what: str) -> list[str]:
    """Return `objects` as a list of strings, or name the first that is none.

    Takes lists, arrays (one column is read as flat) and pandas columns.
    """
    if isinstance(objects, str | bytes):
        raise TypeError(f"one {what} alone was given; {what}s come as a list")
    objects = unframed(objects)
    if isinstance(objects, np.ndarray):
        if objects.ndim == 2 and objects.shape[1] == 1:
            objects = objects[:, 0]
        if objects.ndim != 1:
            raise ValueError(f"{what}s come as a list; got an array of shape {objects.shape}")
        objects = objects.tolist()
    strings = list(objects)
    for row, string in enumerate(strings):
        if not isinstance(string, str):
            raise TypeError(f"{what} {row} is {string!r}, a {type(string).__name__}, not a str")
    return strings


def excerpt(text: str, length: int = 12) -> str:
    """Return the beginning of `text`, in quotes, to recognise it by."""
    return repr(text if len(text) <= length else text[:length] + "…")
