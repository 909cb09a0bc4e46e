"""The map of the objects: points, colours that neighbours do not share, names side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.checks import Array, Indices
from ..evaluation.overview import ObjectMap

WIDTH, MARGIN = 1000, 24
COLOURS = 8
"""Colours of the style sheet; with more classes they repeat, away from each other."""

STRETCH = 1.5

FEW_CLASSES = 12
"""Up to so many the names are written larger."""

LONGEST = 22


@dataclass(frozen=True)
class Label:
    """The name of a class, where it stands and what it stands for."""

    code: int
    text: str
    x: float
    y: float
    to_x: float
    to_y: float
    led: bool
    """Whether it had to move so far that a line leads to its objects."""


@dataclass(frozen=True)
class Drawn:
    """Points and labels on a canvas."""

    width: int
    height: int
    xy: Array  # (n, 2)
    colours: list[int]  # one a class
    labels: list[Label]
    letter: int
    """Size of the names."""
    dot: float
    """Radius of a point: many are drawn smaller."""


def draw_map(found: ObjectMap, codes: Indices, classes: list[str]) -> Drawn:
    """Place the objects of the map and the names of their classes. `codes` are of the mapped."""
    xy, height = _placed(found.xy, turn=found.method != "axes")
    present = np.unique(codes)
    anchors = {int(c): _anchor(xy[codes == c]) for c in present}
    colours = _colours(anchors, len(classes))
    dot = 5.0 if len(xy) <= 300 else 3.6 if len(xy) <= 1500 else 2.6
    letter = 17 if len(classes) <= FEW_CLASSES else 13
    labels = _labels(anchors, classes, height, letter)
    return Drawn(WIDTH, height, xy.round(1), colours, labels, letter, dot)


def _placed(xy: Array, *, turn: bool) -> tuple[Array, int]:
    """Turn the cloud so that it is wide rather than tall, and fit it.

    Of a map whose far distances mean nothing the width may be stretched a little, for the labels.
    """
    V = xy - xy.mean(axis=0)
    if turn:
        V = V @ np.linalg.svd(V, full_matrices=False)[2].T
        V[:, 0] *= np.clip(1.4 * np.ptp(V[:, 1]) / (np.ptp(V[:, 0]) or 1.0), 1.0, STRETCH)
    low, span = V.min(axis=0), np.ptp(V, axis=0)
    scale = (WIDTH - 2 * MARGIN) / (max(span[0], span[1] / 0.68) or 1.0)
    height = int(np.clip(span[1] * scale + 2 * MARGIN, 360, 740))
    size = np.array([WIDTH, height])
    placed = (V - low - span / 2) * scale + size / 2
    return np.column_stack([placed[:, 0], height - placed[:, 1]]), height


def _anchor(points: Array) -> tuple[float, float]:
    """Return the member nearest to the median: it lies among its own, as a median may not."""
    median = np.median(points, axis=0)
    x, y = points[np.argmin(((points - median) ** 2).sum(axis=1))]
    return float(x), float(y)


def _colours(anchors: dict[int, tuple[float, float]], n: int) -> list[int]:
    """Colour the classes so that near ones differ; up to eight have a colour of their own."""
    if n <= COLOURS:
        return list(range(n))
    colours = [c % COLOURS for c in range(n)]
    done: list[int] = []
    for c, (x, y) in sorted(anchors.items(), key=lambda item: item[1]):
        nearest = [np.inf] * COLOURS
        for other in done:
            ox, oy = anchors[other]
            k = colours[other]
            nearest[k] = min(nearest[k], (x - ox) ** 2 + (y - oy) ** 2)
        used = [sum(colours[o] == k for o in done) for k in range(COLOURS)]
        colours[c] = max(range(COLOURS), key=lambda k: (nearest[k], -used[k], -k))
        done.append(c)
    return colours


def _labels(
    anchors: dict[int, tuple[float, float]], classes: list[str], height: int, letter: int
) -> list[Label]:
    """Put each name as near to its objects as the names before it leave room."""
    boxes: list[tuple[float, float, float, float]] = []
    labels = []
    turns = np.linspace(0, 2 * np.pi, 16, endpoint=False) - np.pi / 2
    tries = [(0.0, 0.0)] + [
        (r * 1.5 * np.cos(t), r * np.sin(t)) for r in range(10, 150, 10) for t in turns
    ]
    for code, (ax, ay) in sorted(anchors.items(), key=lambda item: item[1][1]):
        text = classes[code]
        text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
        w, h = 0.6 * letter * len(text) + 6, 1.3 * letter
        best = None
        for dx, dy in tries:
            x = float(np.clip(ax + dx, w / 2 + 2, WIDTH - w / 2 - 2))
            y = float(np.clip(ay + dy, h / 2 + 2, height - h / 2 - 2))
            box = (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
            overlap = sum(_overlap(box, other) for other in boxes)
            if best is None or overlap < best[0]:
                best = (overlap, x, y, box)
            if overlap == 0:
                break
        assert best is not None
        _, x, y, box = best
        boxes.append(box)
        far = bool(np.hypot(x - ax, y - ay) > 24)
        labels.append(Label(code, text, round(x, 1), round(y, 1), round(ax, 1), round(ay, 1), far))
    return labels


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> float:
    w = min(a[2], b[2]) - max(a[0], b[0])
    h = min(a[3], b[3]) - max(a[1], b[1])
    return max(w, 0.0) * max(h, 0.0)
