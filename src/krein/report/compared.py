"""Two objects side by side, as geometry and pieces of text; the template draws them."""

from __future__ import annotations

import base64
import struct
import zlib
from itertools import groupby
from typing import Any

import numpy as np

from ..core.checks import Array
from ..measures.beside import (
    ALIKE,
    GAP,
    OTHER,
    SAME,
    Beside,
    Curves,
    Letters,
    Numbers,
    Pictures,
    Words,
)
from .charts import Scale, path, percent

COLUMNS = 10
"""Number of letters per group; a line contains as many groups as fit."""

MOST_COLUMNS = 1200
"""Maximum number of alignment columns that are drawn."""

CLASSES = {SAME: "same", ALIKE: "alike", OTHER: "other", GAP: "gap"}

WIDTH, ROW, MARGIN = 640, 190, 10
LINKS = 36
"""Maximum number of lines that join corresponding times."""

POINTS, CHANNELS, FEATURES = 800, 3, 8
"""Maximum number of curve points, channels and features that are drawn."""

PIXELS = 256
"""Maximum side of a picture in pixels; larger ones are subsampled."""


def compared(beside: Beside | None, columns: list[str] | None = None) -> dict[str, Any]:
    """Return the data with which the template draws two objects side by side.

    `columns` are the names of the features of vectors.
    """
    if beside is None:
        return {"kind": "none"}
    if isinstance(beside, Letters):
        return _letters(beside)
    if isinstance(beside, Curves):
        return _curves(beside)
    if isinstance(beside, Pictures):
        return _pictures(beside)
    if isinstance(beside, Numbers):
        return _numbers(beside, columns)
    assert isinstance(beside, Words)
    return {"kind": "words", "first": beside.first, "second": beside.second}


def _letters(found: Letters) -> dict[str, Any]:
    groups = []
    i, j = found.starts
    for start in range(0, min(len(found.marks), MOST_COLUMNS), COLUMNS):
        part = slice(start, start + COLUMNS)
        first, second, marks = found.first[part], found.second[part], found.marks[part]
        runs, at = [], 0
        for mark, letters in groupby(marks):
            n = len(list(letters))
            middle = ("·" if mark == OTHER else " " if mark == GAP else mark) * n
            run = slice(at, at + n)
            runs.append((CLASSES[mark], _visible(first[run]), middle, _visible(second[run])))
            at += n
        groups.append({"i": i + 1, "j": j + 1, "runs": runs})
        # the mark distinguishes a gap from a real letter
        i += sum(m != GAP or x != found.gap for x, m in zip(first, marks, strict=True))
        j += sum(m != GAP or y != found.gap for y, m in zip(second, marks, strict=True))
    n = len(found.marks)
    return {
        "kind": "letters",
        "told": _told(found),
        "groups": groups,
        "numbered": n > COLUMNS,
        "left_out": max(n - MOST_COLUMNS, 0),
        "alike": ALIKE in found.marks,
    }


def _told(found: Letters) -> str:
    """Return a sentence on how much two strings have in common."""
    n, same, gaps = len(found.marks), found.marks.count(SAME), found.marks.count(GAP)
    if n == 0:
        return "No parts of the two are similar enough to be aligned."
    told = f"Identity {percent(found.identity)}: {same:,} of {n:,} columns have the same letter"
    told += f", {gaps:,} have a gap." if gaps else "."
    used = [n - sum(m == GAP and x == found.gap for x, m in zip(row, found.marks, strict=True))
            for row in (found.first, found.second)]  # fmt: skip
    if tuple(used) != found.lengths:
        shares = [percent(a / b) for a, b in zip(used, found.lengths, strict=True)]
        told += f" The alignment covers {shares[0]} of this object "
        told += f"and {shares[1]} of the known one."
    if found.reversed:
        told += " This object is shown as its reverse complement."
    return told


def _visible(text: str) -> str:
    """Return text with blanks and control characters made visible.

    >>> _visible("a b" + chr(9))
    'a␣b␉'
    """
    return "".join(
        "␣" if c == " " else chr(0x2400 + ord(c)) if ord(c) < 32 else c if c.isprintable() else "�"
        for c in text
    )


def _curves(found: Curves) -> dict[str, Any]:
    channels = found.first.shape[1]
    n = max(len(found.first), len(found.second))
    x = Scale(0, max(n - 1, 1), MARGIN, WIDTH - MARGIN)
    panels = []
    for c in range(min(channels, CHANNELS)):
        a, b = found.first[:, c], found.second[:, c]
        low, high = float(min(a.min(), b.min())), float(max(a.max(), b.max()))
        half = (ROW - 3 * MARGIN) / 2
        top = Scale(low, high, MARGIN + half, MARGIN)
        bottom = Scale(low, high, ROW - MARGIN, ROW - MARGIN - half)
        chosen = np.unique(np.linspace(0, len(found.path) - 1, LINKS).astype(int))
        links = [
            path([x(int(i)), x(int(j))], [top(float(a[i])), bottom(float(b[j]))])
            for i, j in (found.path[chosen].tolist() if len(found.path) else [])
        ]
        panels.append(
            {"links": "".join(links), "first": _curve(a, x, top), "second": _curve(b, x, bottom)}
        )
    more = f" {CHANNELS} of {channels} channels are shown." if channels > CHANNELS else ""
    above = f"Above, this object with {len(found.first):,} samples"
    below = f"below, the known one with {len(found.second):,}"
    how = "Thin lines join corresponding times." if len(found.path) else ""
    return {
        "kind": "curves",
        "panels": panels,
        "width": WIDTH,
        "height": ROW,
        "told": f"{above}; {below}, on the same scale. {how}{more}",
    }


def _curve(values: Array, x: Scale, y: Scale) -> str:
    at = np.unique(np.linspace(0, len(values) - 1, POINTS).astype(int))
    return path([x(int(i)) for i in at], [y(float(values[i])) for i in at])


def _pictures(found: Pictures) -> dict[str, Any]:
    step = max(1, -(-max(found.first.shape) // PIXELS))
    first, second = found.first[::step, ::step], found.second[::step, ::step]
    low = float(min(first.min(), second.min()))
    span = float(max(first.max(), second.max())) - low or 1.0
    apart = np.abs(first - second)
    return {
        "kind": "pictures",
        "height": first.shape[0],
        "width": first.shape[1],
        "images": [
            ("this object", png((first - low) / span)),
            ("the known one", png((second - low) / span)),
            ("difference", png(apart / span)),
        ],
    }


def png(shares: Array) -> str:
    """Return a grey picture as a data URI: 0 is white, 1 is black.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.report.compared import png
    >>> png(np.eye(2))[:22]
    'data:image/png;base64,'
    """
    grey = np.rint(255 * (1 - np.clip(shares, 0, 1))).astype(np.uint8)
    height, width = grey.shape
    rows = np.hstack([np.zeros((height, 1), dtype=np.uint8), grey]).tobytes()  # filter 0 each

    def chunk(name: bytes, data: bytes) -> bytes:
        check = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    packed = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + packed).decode()


def _numbers(found: Numbers, columns: list[str] | None) -> dict[str, Any]:
    apart = found.first - found.second
    order = np.argsort(-np.abs(apart), kind="stable")
    shown = order[:FEATURES]
    names = columns or [f"column {i}" for i in range(len(apart))]
    if len(shown) == len(order):
        shown = np.sort(shown)
        told = f"All {len(order)} numbers."
    else:
        told = f"The {len(shown)} of {len(order):,} numbers that differ most."
    return {
        "kind": "numbers",
        "told": told,
        "rows": [
            (names[i], f"{found.first[i]:.4g}", f"{found.second[i]:.4g}", f"{apart[i]:+.3g}")
            for i in shown
        ],
    }
