"""Objects as geometry and pieces of text: one with its features marked, or two side by side."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.shapes import Array
from ..measures import alignments
from ..measures.alignments import ALIKE, GAP, OTHER, SAME
from .charts import Scale, path, percent

if TYPE_CHECKING:
    from ..model.model import Explanation

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


def signed(value: float) -> str:
    """Return a number with its sign.

    >>> signed(-1.234)
    '−1.23'
    """
    return f"{value:+.2f}".replace("-", "−")


# One object, with its features marked

LEVELS = 4
"""Number of colour strengths, for each of the two labels."""

PANEL = 110
"""Height of a marked curve."""

SAMPLES = 200
"""Number of stretches of a curve that are marked separately."""


def marked(one: Any, why: Explanation) -> dict[str, Any]:
    """Return an object with the contribution of each of its letters or stretches."""
    assert why.along is not None
    drawn = _marked_letters(one, why) if why.along.ndim == 1 else _marked_curves(one, why.along)
    return {**drawn, "amount": signed(why.from_features), "sure": why.sure}


def _level(value: float, largest: float) -> str:
    """Return the colour of a contribution: "for 4" is as strong as the largest.

    >>> [_level(value, 2.0) for value in (2.0, -0.9, 0.1)]
    ['for s4', 'against s2', '']
    """
    level = round(LEVELS * abs(value) / largest) if largest else 0
    return "" if level == 0 else f"{'for' if value > 0 else 'against'} s{level}"


def _marked_letters(one: Any, why: Explanation) -> dict[str, Any]:
    """Return a string in groups of letters; of a long one, the part that counts most.

    Also return the n-grams that counted most.
    """
    along = why.along
    assert along is not None
    text = one if isinstance(one, str) else one.decode("utf-8", "replace")
    first, largest = 0, float(np.abs(along).max(initial=0.0))
    if len(text) > MOST_COLUMNS:
        total = np.concatenate([[0.0], np.cumsum(np.abs(along))])
        first = int(np.argmax(total[MOST_COLUMNS:] - total[:-MOST_COLUMNS])) // COLUMNS * COLUMNS
    groups = []
    last = min(first + MOST_COLUMNS, len(text))
    for start in range(first, last, COLUMNS):
        stop, at, runs = min(start + COLUMNS, last), start, []
        for level, letters in groupby(_level(value, largest) for value in along[start:stop]):
            n = len(list(letters))
            runs.append((level, _visible(text[at : at + n])))
            at += n
        groups.append({"i": start + 1, "runs": runs})
    largest = max((abs(share.contribution) for share in why.features), default=0.0)
    return {
        "kind": "letters",
        "groups": groups,
        "numbered": len(text) > COLUMNS,
        "left_out": len(text) - (last - first),
        "listed": [
            (_visible(share.name), _level(share.contribution, largest), signed(share.contribution))
            for share in why.features
        ],
    }


def _marked_curves(one: Any, along: Array) -> dict[str, Any]:
    """Return the curves of a series, and the stretches that count."""
    values = np.reshape(one, (len(one), -1))
    T, n_channels = values.shape
    edges = np.unique(np.linspace(0, T, min(T, SAMPLES) + 1).astype(int))
    by_stretch = np.add.reduceat(along, edges[:-1], axis=0)
    largest = float(np.abs(by_stretch).max(initial=0.0))
    weight = np.abs(by_stretch).sum(axis=0)
    shown = np.sort(np.argsort(-weight, kind="stable")[:CHANNELS]).tolist()
    x = Scale(0, T, 0, WIDTH)
    panels = []
    for c in shown:
        levels = [_level(value, largest) for value in by_stretch[:, c]]
        marks, at = [], 0
        for level, stretches in groupby(levels):
            n = len(list(stretches))
            if level:
                a, b = x(float(edges[at])), x(float(edges[at + n]))
                marks.append((level, round(a, 1), round(b - a, 1)))
            at += n
        y = Scale(float(values[:, c].min()), float(values[:, c].max()), PANEL - MARGIN, MARGIN)
        centred = Scale(-0.5, T - 0.5, 0, WIDTH)  # a stretch has its values in the middle
        panels.append({"channel": c, "marks": marks, "curve": _curve(values[:, c], centred, y)})
    return {
        "kind": "curves",
        "panels": panels,
        "width": WIDTH,
        "height": PANEL,
        "last": T - 1,
        "n_channels": n_channels,
    }


# Two objects side by side


def side_by_side(
    pair: alignments.SideBySide | None, columns: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the data with which the template draws two objects side by side.

    `columns` are the names of the features of vectors.
    """
    match pair:
        case alignments.Letters():
            return _letters(pair)
        case alignments.Curves():
            return _curves(pair)
        case alignments.Pictures():
            return _pictures(pair)
        case alignments.Numbers():
            return _numbers(pair, columns)
        case alignments.Parts():
            return {"kind": "parts", "parts": [_part(part) for part in pair.parts]}
        case alignments.Words():
            return {"kind": "words", "first": pair.first, "second": pair.second}
        case None:
            return {"kind": "none"}


def _part(part: alignments.ComparedPart) -> dict[str, Any]:
    return {
        "name": part.name,
        "measure": part.measure,
        "weight": f"{part.weight:.4g}",
        "value": f"{part.value:.4g}",
        "share": f"{part.weight * part.value:.4g}",
        "beside": side_by_side(part.beside, part.columns),
    }


def _letters(found: alignments.Letters) -> dict[str, Any]:
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
        i += _letters_in(first, found, start)
        j += _letters_in(second, found, start)
    n = len(found.marks)
    return {
        "kind": "letters",
        "caption": _letters_caption(found),
        "groups": groups,
        "numbered": n > COLUMNS,
        "left_out": max(n - MOST_COLUMNS, 0),
    }


def _letters_caption(found: alignments.Letters) -> str:
    """Return a sentence on how much two strings have in common."""
    n, same, gaps = len(found.marks), found.marks.count(SAME), found.marks.count(GAP)
    if n == 0:
        return "No parts of the two are similar enough to be aligned."
    caption = f"Identity {percent(found.identity)}: {same:,} of {n:,} columns have the same letter"
    caption += f", {gaps:,} have a gap." if gaps else "."
    used = tuple(_letters_in(row, found) for row in (found.first, found.second))
    if used != found.lengths:
        first, second = (percent(a / b) for a, b in zip(used, found.lengths, strict=True))
        caption += f" The alignment covers {first} of this object and {second} of the known one."
    if found.reversed:
        caption += " This object is shown as its reverse complement."
    return caption


def _letters_in(row: str, found: alignments.Letters, start: int = 0) -> int:
    """Return the number of letters in a part of an aligned row.

    The mark distinguishes a gap from a real letter that looks like one.
    """
    marks = found.marks[start : start + len(row)]
    return sum(m != GAP or x != found.gap for x, m in zip(row, marks, strict=True))


def _visible(text: str) -> str:
    """Return text with blanks and control characters made visible.

    >>> _visible("a b" + chr(9))
    'a␣b␉'
    """
    return "".join(
        "␣" if c == " " else chr(0x2400 + ord(c)) if ord(c) < 32 else c if c.isprintable() else "�"
        for c in text
    )


def _curves(found: alignments.Curves) -> dict[str, Any]:
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
        joined = "".join(
            path([x(i), x(j)], [top(float(a[i])), bottom(float(b[j]))])
            for i, j in (found.path[chosen].tolist() if len(found.path) else [])
        )
        first, second = _curve(a, x, top), _curve(b, x, bottom)
        panels.append({"links": joined, "first": first, "second": second})
    more = f" {CHANNELS} of {channels} channels are shown." if channels > CHANNELS else ""
    links = "Thin lines join corresponding times." if len(found.path) else ""
    return {
        "kind": "curves",
        "panels": panels,
        "width": WIDTH,
        "height": ROW,
        "caption": f"Above, this object with {len(found.first):,} samples; below, the known one "
        f"with {len(found.second):,}, on the same scale. {links}{more}",
    }


def _curve(values: Array, x: Scale, y: Scale) -> str:
    at = np.unique(np.linspace(0, len(values) - 1, POINTS).astype(int))
    return path([x(int(i)) for i in at], [y(float(values[i])) for i in at])


def _pictures(found: alignments.Pictures) -> dict[str, Any]:
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
    >>> from krein.report.drawings import png
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


def _numbers(found: alignments.Numbers, columns: Sequence[str] | None) -> dict[str, Any]:
    apart = found.first - found.second
    order = np.argsort(-np.abs(apart), kind="stable")
    shown = order[:FEATURES]
    names = columns or ()
    if len(names) != len(apart):
        names = [f"column {i}" for i in range(len(apart))]
    caption = f"The {len(shown)} of {len(order):,} numbers that differ most."
    if len(shown) == len(order):
        caption = f"All {len(order)} numbers." if len(order) > 1 else "One number."
        shown = np.sort(shown)
    return {
        "kind": "numbers",
        "caption": caption,
        "rows": [
            (names[i], f"{found.first[i]:.4g}", f"{found.second[i]:.4g}", f"{apart[i]:+.3g}")
            for i in shown
        ],
    }
