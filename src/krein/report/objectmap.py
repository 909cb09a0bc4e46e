"""The map of the objects: points, colours that differ between neighbours, non-overlapping names.

Names are placed twice: once for a large screen, and once larger and shorter for a phone, where the
same map is about a third as wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.shapes import Array, Indices
from ..evaluation.result import ObjectMap

WIDTH, MARGIN = 1000, 24
COLOURS = 8
"""Number of colours in the style sheet; with more classes, colours repeat far from each other."""

STRETCH = 1.5

GROUPS, NEAR, FAR = 3, 60.0, 150.0
"""Maximum number of names per class; distances regarded as near to a name and as far from it."""

FEW_CLASSES = 12
"""Up to this many names are written larger."""

LONGEST = 22
"""Maximum number of letters of a name."""

SMALL = ((30, 14), (28, 11), (25, 10))
"""Sizes and numbers of letters of names on a phone, where 28 units of the map are about ten pixels;
the first pair in which all names fit is used."""

SWEEPS = 20
"""Maximum number of sweeps that improve the colours."""


@dataclass(frozen=True)
class Label:
    """The name of a class, its position, and the objects that it refers to."""

    code: int
    text: str
    x: float
    y: float
    to_x: float
    to_y: float
    led: bool
    """Whether the name is so far from its objects that a line connects them."""


@dataclass(frozen=True)
class Drawn:
    """Points and labels on a canvas."""

    width: int
    height: int
    xy: Array  # (n, 2)
    colours: list[int]  # one per class
    labels: list[Label]
    small_labels: list[Label]
    """Names for a phone; names that do not fit are left out."""
    letter: int
    """Size of the names."""
    small_letter: int
    dot: float
    """Radius of a point; smaller if there are many."""


def draw_map(
    found: ObjectMap, codes: Indices, classes: list[str], others: int | None = None
) -> Drawn:
    """Place the objects and the names of their classes. `codes` are the classes of the objects.

    The class `others` has no name on the map, and a colour that no other class has.
    """
    xy, height = _placed(found.xy, turn=found.method != "axes")
    present = np.setdiff1d(codes, [] if others is None else [others])
    most = 1 if len(classes) <= COLOURS else GROUPS
    anchors = {int(c): _anchors(xy[codes == c], most) for c in present}
    colours = class_colours(anchors, len(classes))
    if others is not None:
        colours[others] = COLOURS
    dot = 5.0 if len(xy) <= 300 else 3.6 if len(xy) <= 1500 else 2.6
    letter = 17 if len(classes) <= FEW_CLASSES else 13
    labels = place_labels(anchors, classes, height, letter, LONGEST)
    once = {c: places[:1] for c, places in anchors.items()}
    for small_letter, longest in SMALL:
        small = place_labels(once, classes, height, small_letter, longest)
        if len(small) == len(once):
            break
    return Drawn(WIDTH, height, xy.round(1), colours, labels, small, letter, small_letter, dot)


def _placed(xy: Array, *, turn: bool) -> tuple[Array, int]:
    """Fit the points to the canvas.

    If distances between far groups have no meaning (`turn`), the map is first turned to be wide
    rather than tall, and slightly stretched to make room for labels.
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


def _anchors(points: Array, most: int) -> list[tuple[float, float]]:
    """Return the positions of a class's names: where it is densest, and at separate groups.

    Another group gets a name if it contains a sixth of the class and is far from the other names.
    """
    places: list[tuple[float, float]] = []
    left = points
    while len(places) < most and len(left) >= max(1, len(points) // 6 if places else 1):
        if len(left) > 3000:  # the centre, at linear cost
            cost = ((left - np.median(left, axis=0)) ** 2).sum(axis=1)
        else:
            apart = ((left[:, None] - left[None]) ** 2).sum(axis=2)
            cost = np.minimum(apart, NEAR**2).sum(axis=1)
        x, y = left[np.argmin(cost)]
        places.append((float(x), float(y)))
        left = left[np.hypot(left[:, 0] - x, left[:, 1] - y) > FAR]
    return places


def neighbours(anchors: dict[int, list[tuple[float, float]]]) -> Array:
    """Return which classes have neighbouring names (C', C'), in the order of `anchors`.

    Two classes are neighbours if an edge of the Delaunay triangulation connects two of their names,
    which means that no third name is between them.
    """
    owner = np.array([k for k, places in enumerate(anchors.values()) for _ in places])
    beside = np.zeros((len(anchors), len(anchors)), dtype=bool)
    for a, b in _edges(np.array([place for places in anchors.values() for place in places])):
        beside[owner[a], owner[b]] = beside[owner[b], owner[a]] = True
    np.fill_diagonal(beside, False)
    return beside


def _edges(points: Array) -> Indices:
    """Return the edges (n, 2) of the Delaunay triangulation; a chain if points are collinear."""
    from scipy.spatial import Delaunay, QhullError

    order = np.lexsort(points.T)
    chain = np.column_stack([order[:-1], order[1:]])
    if len(points) < 4:
        return chain
    try:
        found = Delaunay(points)
    except QhullError:
        return chain
    corners, left_out = found.simplices, found.coplanar[:, [0, 2]]  # includes coincident points
    return np.vstack([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]], left_out])


def class_colours(anchors: dict[int, list[tuple[float, float]]], n: int) -> list[int]:
    """Colour the classes so that neighbours differ; up to eight classes have unique colours.

    The class with the fewest colours left is next (DSATUR; Brélaz 1979). It gets the colour that
    the fewest neighbours have and, among those, the one used farthest away. A few sweeps then
    improve the result.
    """
    colours = [c % COLOURS for c in range(n)]
    if n <= COLOURS:
        return colours
    codes = list(anchors)
    beside = neighbours(anchors)
    apart = np.array(
        [
            [min((x - u) ** 2 + (y - v) ** 2 for x, y in anchors[a] for u, v in anchors[b])
             for b in codes]
            for a in codes
        ]
    )  # fmt: skip
    chosen = np.full(len(codes), -1)

    def best(k: int) -> int:
        def cost(colour: int) -> tuple[int, float, int]:
            same = (chosen == colour) & (np.arange(len(codes)) != k)
            nearest = float(apart[k][same].min()) if same.any() else np.inf
            return int((same & beside[k]).sum()), -nearest, colour

        return min(range(COLOURS), key=cost)

    while (chosen < 0).any():
        left = np.flatnonzero(chosen < 0)
        taken = np.array([len(set(chosen[beside[k] & (chosen >= 0)].tolist())) for k in left])
        # most colours taken beside it, then most objects beside it, then the first
        k = int(left[np.lexsort([left, -beside[left].sum(axis=1), -taken])[0]])
        chosen[k] = best(k)
    for _ in range(SWEEPS):
        wrong = [k for k in range(len(codes)) if (beside[k] & (chosen == chosen[k])).any()]
        if not wrong:
            break
        for k in wrong:
            for other in [*np.flatnonzero(beside[k]).tolist(), k]:
                chosen[other] = best(other)
    for k, c in enumerate(codes):
        colours[c] = int(chosen[k])
    return colours


def text_width(text: str, letter: int) -> float:
    """Return the approximate width of a name: slightly more than in the widest common font.

    >>> text_width("il", 10) < text_width("ab", 10) < text_width("MW", 10)
    True
    """
    narrow, wide = set("iIljtfr.,:;'|!()[]/ "), set("mwMW@%…—")
    em = sum(0.4 if c in narrow else 1.0 if c in wide else 0.76 if c.isupper() else 0.64
             for c in text)  # fmt: skip
    return letter * em


def place_labels(
    anchors: dict[int, list[tuple[float, float]]],
    classes: list[str],
    height: int,
    letter: int,
    longest: int,
) -> list[Label]:
    """Place each name as close to its objects as possible; names that do not fit are left out.

    The first name of each class is placed first, then the names of its other groups.
    """
    boxes: list[tuple[float, float, float, float]] = []
    labels = []
    turns = np.linspace(0, 2 * np.pi, 16, endpoint=False) - np.pi / 2
    step = max(10, letter // 2)
    # above or below: on top of the densest spot, a name would hide its own objects
    tries = [(0.0, -1.1 * letter), (0.0, 1.2 * letter)] + [
        (r * 1.5 * np.cos(t), r * np.sin(t)) for r in range(step, 420, step) for t in turns
    ]
    named = [(k, place[1], code, place) for code, places in anchors.items()
             for k, place in enumerate(places)]  # fmt: skip
    for k, _, code, (ax, ay) in sorted(named):
        text = classes[code]
        text = text if len(text) <= longest else text[: longest - 1] + "…"
        w, h = text_width(text, letter) + 6, 1.3 * letter
        for dx, dy in tries if k == 0 else tries[: 16 * 14]:
            x = float(np.clip(ax + dx, w / 2 + 2, max(WIDTH - w / 2 - 2, w / 2 + 2)))
            y = float(np.clip(ay + dy, h / 2 + 2, height - h / 2 - 2))
            box = (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
            if any(_overlap(box, other) for other in boxes):
                continue
            boxes.append(box)
            led = bool(np.hypot(x - ax, y - ay) > 2.2 * letter)
            labels.append(
                Label(code, text, round(x, 1), round(y, 1), round(ax, 1), round(ay, 1), led)
            )
            break
    return labels


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> float:
    w = min(a[2], b[2]) - max(a[0], b[0])
    h = min(a[3], b[3]) - max(a[1], b[1])
    return max(w, 0.0) * max(h, 0.0)
