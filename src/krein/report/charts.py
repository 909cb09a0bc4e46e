"""Charts as geometry: turn numbers into positions on a canvas, which the template draws.

The style sheet defines colours, fonts and all differences between the light and dark themes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..core.shapes import Array
from ..evaluation.heldout import Reliability
from ..evaluation.result import ModelResult
from ..reject import AccuracyRejectCurve, accuracy_reject_curve, threshold_for_risk
from .objectmap import text_width

WIDTH, HEIGHT = 460, 320
LEFT, RIGHT, TOP, BOTTOM = 62, 22, 14, 48
QUARTERS = (0, 0.25, 0.5, 0.75, 1)


@dataclass(frozen=True)
class Tick:
    """A position on an axis and its label."""

    at: float
    text: str


@dataclass(frozen=True)
class Line:
    """A line of one model, with or without markers (x, y, radius)."""

    model: int
    path: str
    markers: list[tuple[float, float, float]] = field(default_factory=list)
    kind: str = "line"


@dataclass(frozen=True)
class Note:
    """A highlighted position, with a caption."""

    model: int
    x: float
    y: float
    text: str
    tx: float
    ty: float
    anchor: str


@dataclass(frozen=True)
class Chart:
    """One figure: axes, lines, shaded areas, notes."""

    xlabel: str
    ylabel: str
    xticks: list[Tick]
    yticks: list[Tick]
    alternative: str
    """A description for readers who cannot see the chart."""
    lines: list[Line] = field(default_factory=list)
    shapes: list[tuple[str, str]] = field(default_factory=list)  # (class, path)
    notes: list[Note] = field(default_factory=list)
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


@dataclass(frozen=True)
class Scale:
    """A linear scale from data in [low, high] to positions in [start, end]."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the position of a value, to a tenth of a point."""
        span = (self.high - self.low) or 1.0
        return round(self.start + (value - self.low) / span * (self.end - self.start), 1)


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers from `low` to `high`.

    >>> nice_ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    span = high - low
    if not span > 0:
        return [low]
    raw = span / about
    size = 10.0 ** np.floor(np.log10(raw))
    step = float(size * next(m for m in (1, 2, 5, 10) if m * size >= raw * 0.999))
    first = np.ceil(low / step - 1e-9)
    count = int(np.floor(high / step + 1e-9) - first) + 1
    return [round(float((first + k) * step), 12) for k in range(count)]


def path(xs: Sequence[float], ys: Sequence[float]) -> str:
    """Return the line through the positions."""
    return "M" + "L".join(f"{x:g},{y:g}" for x, y in zip(xs, ys, strict=True))


def percent(value: float, digits: int = 0) -> str:
    """Return a share as unbreakable text: 0.5 → "50 %"; small shares are not shown as 0."""
    least = 0.5 / 10 ** (digits + 2)
    if 0 < value < least:
        return f"< {100 * 2 * least:.{digits}f}\u00a0%"
    return f"{100 * value:.{digits}f}\u00a0%"


def _scales(x: tuple[float, float], y: tuple[float, float], margin: int = 0) -> tuple[Scale, Scale]:
    """Return the scales of both axes, from the ranges of the data."""
    across = Scale(*x, LEFT + margin, WIDTH - RIGHT - margin)
    return across, Scale(*y, HEIGHT - BOTTOM, TOP)


Curve = tuple[Sequence[float], Sequence[float]]  # the positions that a line connects

LETTER = 13
"""Size of the letters of a note, on a large screen."""


def place_note(model: int, x: float, y: float, text: str, curves: Sequence[Curve]) -> Note:
    """Return a note near its position, where it hides no curve if there is such a place."""
    points = np.concatenate([_along(*curve) for curve in curves])
    width, height = text_width(text, LETTER), 1.3 * LETTER
    best, least = None, np.inf
    for away in (16, 28, 42, 58, 76, 96, 120):
        for down, anchor in ((away, "start"), (away, "end"), (-away, "start"), (-away, "end")):
            side = 1 if anchor == "start" else -1
            tx, ty = x + 8 * side, y + down
            left, right = sorted((tx, tx + side * width))
            top, bottom = ty - height, ty + 0.3 * LETTER
            if left < LEFT or right > WIDTH - 2 or top < TOP - 8 or bottom > HEIGHT - BOTTOM:
                continue
            inside = (points > [left, top]) & (points < [right, bottom])
            hidden = int(inside.all(axis=1).sum())
            if hidden < least:
                best, least = Note(model, x, y, text, tx, ty, anchor), hidden
    return best or Note(model, x, y, text, x, min(y + 30, HEIGHT - BOTTOM - 8), "middle")


def _along(xs: Sequence[float], ys: Sequence[float]) -> Array:
    """Return positions (n, 2) along a curve, close to each other."""
    steps = np.linspace(0, max(len(xs) - 1, 0), 1 + 40 * max(len(xs) - 1, 1))
    return np.column_stack([np.interp(steps, np.arange(len(xs)), part) for part in (xs, ys)])


ENOUGH = 20
"""Neighbouring bins of a reliability diagram are merged until they have this many objects."""


class Bin(NamedTuple):
    """Predictions of similar confidence."""

    number: int
    confidence: float  # mean
    accuracy: float

    def with_next(self, other: Bin) -> Bin:
        """Return both as one."""
        n = self.number + other.number
        confidence = self.number * self.confidence + other.number * other.confidence
        accuracy = self.number * self.accuracy + other.number * other.accuracy
        return Bin(n, confidence / n, accuracy / n)


def merged_bins(bins: Reliability) -> list[Bin]:
    """Return bins that are large enough to mean something.

    A bin with fewer than 20 objects is merged with the next one, and the last with the one before.
    """
    found: list[Bin] = []
    for i in np.flatnonzero(bins.count).tolist():
        one = Bin(int(bins.count[i]), float(bins.confidence[i]), float(bins.accuracy[i]))
        if found and found[-1].number < ENOUGH:
            one = found.pop().with_next(one)
        found.append(one)
    if len(found) > 1 and found[-1].number < ENOUGH:
        last = found.pop()
        found.append(found.pop().with_next(last))
    return found


def wilson_interval(share: float, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of n objects (Wilson 1927).

    >>> [round(end, 3) for end in wilson_interval(0.5, 10)]
    [0.237, 0.763]
    """
    z = 1.96
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(float(middle - half), 0.0), min(float(middle + half), 1.0)  # up to rounding


def reliability_chart(models: list[ModelResult]) -> Chart:
    """Accuracy against confidence, in bins, with intervals."""
    x, y = _scales((0, 1), (0, 1))
    lines = []
    for k, model in enumerate(models):
        bins = merged_bins(model.reliability)
        xs = [x(confidence) for _, confidence, _ in bins]
        ys = [y(accuracy) for _, _, accuracy in bins]
        total = sum(n for n, _, _ in bins)
        radii = [round(float(1.8 + 7 * np.sqrt(n / total)), 1) for n, _, _ in bins]
        ends = [wilson_interval(accuracy, n) for n, _, accuracy in bins]
        bars = [path([a, a], [y(low), y(high)]) for a, (low, high) in zip(xs, ends, strict=True)]
        lines.append(Line(k, "".join(bars), kind="whisker"))
        lines.append(Line(k, path(xs, ys), list(zip(xs, ys, radii, strict=True))))
    errors = "; ".join(f"{m.name}: {percent(m.reliability.error, 1)}" for m in models)
    return Chart(
        "confidence: probability of the predicted label",
        "answers that are correct",
        [Tick(x(v), percent(v)) for v in QUARTERS],
        [Tick(y(v), percent(v)) for v in QUARTERS],
        f"Reliability diagram. Mean distance from the diagonal (calibration error) — {errors}.",
        lines,
        [("guide", path([x(0), x(1)], [y(0), y(1)]))],
    )


@dataclass(frozen=True)
class RejectPoint:
    """The point at which the reject option would be used."""

    threshold: float
    coverage: float
    accuracy: float


def chosen_point(model: ModelResult, threshold: float | None) -> RejectPoint | None:
    """Return the point at `threshold`; by default, at the one that halves the error rate.

    None if no threshold does that, or if there are no errors.
    """
    sure, right = model.probabilities.max(axis=1), model.right
    if threshold is None:
        if right.all():
            return None
        wanted = (1 - right.mean()) / 2
        threshold = threshold_for_risk(model.labels, model.probabilities, wanted, model.classes)
    accepted = sure >= threshold
    if not accepted.any():
        return None
    coverage, accuracy = float(accepted.mean()), float(right[accepted].mean())
    return RejectPoint(float(threshold), coverage, accuracy)


def reject_chart(models: list[ModelResult], chosen: list[RejectPoint | None]) -> Chart:
    """Accuracy among the labelled objects if the least certain are rejected."""
    curves = [
        _steady_part(accuracy_reject_curve(m.labels, m.probabilities, m.classes)) for m in models
    ]
    lowest = min(min(accuracy) for _, accuracy in curves)
    low = max(0.0, 1 - 1.12 * max(1 - lowest, 0.01))
    digits = 0 if low < 0.94 else 1
    x, y = _scales((0, 1), (low, 1))
    drawn = [([x(c) for c in coverage], [y(a) for a in accuracy]) for coverage, accuracy in curves]
    lines, notes, points = [], [], []
    for k, (curve, point) in enumerate(zip(drawn, chosen, strict=True)):
        lines.append(Line(k, path(*curve)))
        if point is not None:
            right, answered = percent(point.accuracy, 1), percent(point.coverage)
            text = f"{answered} answered, {right} right"
            notes.append(place_note(k, x(point.coverage), y(point.accuracy), text, drawn))
            points.append(f"{models[k].name}: {right} correct if {answered} are answered")
    return Chart(
        "objects that are answered",
        "answers that are correct",
        [Tick(x(v), percent(v)) for v in QUARTERS],
        [Tick(y(v), percent(v, digits)) for v in nice_ticks(low, 1, 5)],
        f"Accuracy–reject curve. {'; '.join(points)}.",
        lines,
        notes=notes,
    )


def _steady_part(curve: AccuracyRejectCurve) -> tuple[list[float], list[float]]:
    """Return up to about 200 points of the curve, from 5 % answered on: below that, it is noisy."""
    kept = np.flatnonzero(curve.coverage >= 0.05)
    if len(kept) > 200:
        wanted = np.linspace(curve.coverage[kept[0]], 1, 200)
        kept = np.unique(np.searchsorted(curve.coverage, wanted - 1e-12))
    return curve.coverage[kept].tolist(), curve.accuracy[kept].tolist()


def spectrum_chart(lam: Array) -> Chart:
    """Eigenvalues in descending order on a cube-root scale, with the negative ones shaded."""
    lam = np.sort(lam)[::-1]
    heights = np.cbrt(lam)
    top, low = float(heights[0]), float(min(heights[-1], 0.0))
    pad = 0.04 * ((top - low) or 1.0)
    n = len(lam)
    x, y = _scales((0, n), (low - pad, top + pad))
    shapes = []
    for name, part in (("positive", lam > 0), ("negative", lam < 0)):
        where = np.flatnonzero(part).tolist()
        if not where:
            continue
        step, end = max(1, n // 400), where[-1] + 1
        xs, ys = [], []
        for start in range(where[0], end, step):
            stop = min(start + step, end)
            level = y(float(heights[start if name == "positive" else stop - 1]))
            xs += [x(start), x(stop)]
            ys += [level, level]
        shapes.append((name, path([xs[0], *xs, xs[-1]], [y(0), *ys, y(0)]) + "Z"))
    shapes.append(("zero", path([x(0), x(n)], [y(0), y(0)])))
    p, q = int((lam > 0).sum()), int((lam < 0).sum())
    highest, lowest = float(lam[0]), float(lam[-1])
    return Chart(
        "eigenvalues, largest first",
        "eigenvalue (cube-root scale)",
        [Tick(x(v), f"{v:,.0f}") for v in nice_ticks(0, n, 4)],
        [Tick(y(float(np.cbrt(v))), _short(v)) for v in _cubic_ticks(highest, lowest)],
        f"Eigenvalue spectrum: {p} positive up to {_short(highest)}, {q} negative down to "
        f"{_short(min(lowest, 0.0))}.",
        shapes=shapes,
    )


def _cubic_ticks(top: float, low: float) -> list[float]:
    """Return zero and powers of ten on both sides, far enough apart on a cube-root scale."""
    largest = max(abs(top), abs(low)) or 1.0
    ticks, taken = [0.0], [0.0]
    for exponent in range(int(np.floor(np.log10(largest))), -12, -1):
        for value in (10.0**exponent, -(10.0**exponent)):
            place = float(np.cbrt(value / largest))
            if low <= value <= top and min(abs(place - other) for other in taken) > 0.13:
                ticks.append(value)
                taken.append(place)
    return sorted(ticks)


def _short(value: float) -> str:
    """Return a number in at most six characters, to fit beside an axis.

    >>> _short(-9999), _short(0.25), _short(123456.0), _short(1e-7)
    ('−9,999', '0.25', '1e5', '1e-7')
    """
    if value == 0:
        return "0"
    sign = "−" if value < 0 else ""
    value = abs(value)
    if 0.001 <= value < 9999.5:
        return sign + (f"{value:,.0f}" if value >= 100 else f"{value:.2g}")
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{sign}{mantissa}e{int(exponent)}"


def growth_chart(models: list[ModelResult]) -> Chart | None:
    """Held-out loss against the number of landmarks, for models that choose the number."""
    grown = [(k, model, model.curve) for k, model in enumerate(models) if model.curve is not None]
    if not grown:
        return None
    most = 1.05 * max(max(curve["landmarks"].max(), len(m.landmarks[0])) for _, m, curve in grown)
    highest = 1.05 * max((c["criterion"] + c["standard_error"]).max() for _, _, c in grown)
    x, y = _scales((0, float(most)), (0, float(highest)))
    drawn = [([x(v) for v in c["landmarks"]], [y(v) for v in c["criterion"]]) for _, _, c in grown]
    lines, notes, tried = [], [], []
    for k, model, curve in grown:
        m, loss, error = curve["landmarks"], curve["criterion"], curve["standard_error"]
        xs, ys = [x(v) for v in m], [y(v) for v in loss]
        bars = [path([a, a], [y(v - e), y(v + e)]) for a, v, e in zip(xs, loss, error, strict=True)]
        lines.append(Line(k, "".join(bars), kind="whisker"))
        lines.append(Line(k, path(xs, ys), [(a, b, 3.2) for a, b in zip(xs, ys, strict=True)]))
        kept = len(model.landmarks[0])
        b = y(float(np.interp(kept, m, loss)))
        notes.append(place_note(k, x(kept), b, f"{kept} kept", drawn))
        tried.append(f"{model.name}: from {m[0]:.0f} to {m[-1]:.0f} tried, {kept} kept")
    return Chart(
        "landmarks",
        "held-out log-loss",
        [Tick(x(v), f"{v:,.0f}") for v in nice_ticks(0, x.high, 5)],
        [Tick(y(v), f"{v:g}") for v in nice_ticks(0, y.high, 5)],
        f"How the landmarks grew. {'; '.join(tried)}.",
        lines,
        notes=notes,
    )


# The benefit of comparisons: accuracy and log-loss against their mean number per prediction

ORIGIN = 10.0
"""Comparisons c are drawn at log(c + 10), which is defined for 0 too."""

MARKER = 4.5


def look_charts(models: list[ModelResult]) -> tuple[Chart, Chart] | None:
    """Return accuracy and log-loss against comparisons; None without a second look."""
    if all(model.looks is None for model in models):
        return None
    return _look_chart(models, "accuracy"), _look_chart(models, "log-loss")


def _look_chart(models: list[ModelResult], what: str) -> Chart:
    """Draw a line for each model with a second look, and a point for each of the others."""
    accuracy = what == "accuracy"

    def text(value: float) -> str:
        return percent(value, 1) if accuracy else f"{value:.3f}"

    drawn = [_points(model, accuracy) for model in models]
    least, most = min(float(c.min()) for c, _ in drawn), max(float(c.max()) for c, _ in drawn)
    low, high = min(float(v.min()) for _, v in drawn), max(float(v.max()) for _, v in drawn)
    pad = max(0.12 * (high - low), 0.002)
    left = _place(least) if least < 1 else _place(least) - 0.1
    top = min(high + pad, 1.0) if accuracy else high + pad
    x, y = _scales((left, _place(most) + 0.1), (max(low - pad, 0.0), top), margin=8)
    placed = [([x(_place(c)) for c in some], [y(v) for v in values]) for some, values in drawn]
    lines, notes, described = [], [], []
    for k, (model, (comparisons, values)) in enumerate(zip(models, drawn, strict=True)):
        px, py = placed[k]
        shown = [f"{text(v)} with {c:,.0f}" for v, c in zip(values, comparisons, strict=True)]
        if model.looks is None:
            lines.append(Line(k, path(px, py), [(px[0], py[0], MARKER)], "point"))
            described.append(f"{model.name}: {shown[0]}")
            continue
        # the last point is the model itself; the others form the curve
        markers = [(a, b, 2.6) for a, b in zip(px[:-1], py[:-1], strict=True)]
        lines.append(Line(k, path(px[:-1], py[:-1]), markers))
        notes.append(place_note(k, px[-1], py[-1], shown[-1], placed))
        described.append(
            f"{model.name}: {shown[0]} after the first look, {shown[-2]} if every object gets a "
            f"second look, {shown[-1]} by default"
        )
    return Chart(
        "mean comparisons per prediction",
        "correct labels" if accuracy else "log-loss",
        [Tick(x(_place(v)), f"{v:,.0f}") for v in _comparison_ticks(least, most)],
        [Tick(y(v), text(v)) for v in nice_ticks(y.low, y.high, 5)],
        f"{what.capitalize()} against comparisons. {'; '.join(described)}.",
        lines,
        notes=notes,
    )


def _points(model: ModelResult, accuracy: bool) -> tuple[Array, Array]:
    if model.looks is not None:
        found = model.looks.accuracy if accuracy else model.looks.log_loss
        return model.looks.comparisons, found
    value = model.fold_accuracy.mean() if accuracy else model.fold_log_loss.mean()
    return np.array([model.comparisons]), np.array([value])


def _place(comparisons: float) -> float:
    return float(np.log10(comparisons + ORIGIN))


def _comparison_ticks(low: float, high: float) -> list[float]:
    """Return round numbers of comparisons from low to high.

    >>> _comparison_ticks(0, 1600), _comparison_ticks(44, 600)
    ([0.0, 10.0, 30.0, 100.0, 300.0, 1000.0], [50.0, 100.0, 200.0, 500.0])
    """
    near = (high + ORIGIN) / (low + ORIGIN) < 30
    steps = [0.0] + [a * 10.0**k for k in range(1, 9) for a in ((1, 2, 5) if near else (1, 3))]
    found = [v for v in steps if low - 0.1 * (low + ORIGIN) <= v <= high + 0.1 * (high + ORIGIN)]
    return found if len(found) > 1 else [low, high]
