"""The benefit of comparisons: accuracy and log-loss against their mean number per prediction."""

from __future__ import annotations

import numpy as np

from ..core.checks import Array
from ..evaluation.result import ModelResult
from .charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Chart,
    Line,
    Note,
    Scale,
    Tick,
    nice_ticks,
    path,
    percent,
)

ORIGIN = 10.0
"""Comparisons c are drawn at log(c + 10), which is defined for 0 too."""

MARKER = 4.5


def look_charts(models: list[ModelResult]) -> tuple[Chart, Chart] | None:
    """Return accuracy and log-loss against comparisons; None without a two-look model."""
    if all(model.looks is None for model in models):
        return None
    return _chart(models, "accuracy"), _chart(models, "log-loss")


def _chart(models: list[ModelResult], what: str) -> Chart:
    """Draw a line for each model with two looks, and a point for each of the others."""
    drawn = [_points(model, what) for model in models]
    xs = np.concatenate([x for x, _ in drawn])
    ys = np.concatenate([y for _, y in drawn])
    low, high = float(ys.min()), float(ys.max())
    pad = max(0.12 * (high - low), 0.002)
    top = 1.0 if what == "accuracy" else np.inf
    y = Scale(max(low - pad, 0.0), min(high + pad, top), HEIGHT - BOTTOM, TOP)
    left = _place(float(xs.min())) if xs.min() < 1 else _place(float(xs.min())) - 0.1
    x = Scale(left, _place(float(xs.max())) + 0.1, LEFT + 8, WIDTH - RIGHT - 8)
    lines, notes, told = [], [], []
    for k, (model, (cx, cy)) in enumerate(zip(models, drawn, strict=True)):
        px, py = [x(_place(c)) for c in cx], [y(v) for v in cy]
        shown = [_told(v, what) for v in cy]
        if model.looks is None:
            lines.append(Line(k, path(px, py), [(px[0], py[0], MARKER)], "point"))
            told.append(f"{model.name}: {shown[0]} with {cx[0]:,.0f}")
            continue
        # the last point is the model itself; the others form the curve
        markers = [(a, b, 2.6) for a, b in zip(px[:-1], py[:-1], strict=True)]
        lines.append(Line(k, path(px[:-1], py[:-1]), markers))
        right = px[-1] < (LEFT + WIDTH) / 2
        upwards = what == "accuracy"
        ty = min(py[-1] + 30, HEIGHT - BOTTOM - 8) if upwards else max(py[-1] - 24, TOP + 12)
        text = f"{shown[-1]} with {cx[-1]:,.0f}"
        notes.append(
            Note(k, px[-1], py[-1], text, px[-1] + (8 if right else -8), ty,
                 "start" if right else "end")
        )  # fmt: skip
        told.append(
            f"{model.name}: {shown[0]} with {cx[0]:,.0f} after the first look, {shown[-2]} with "
            f"{cx[-2]:,.0f} if every object gets a second look, {text} by default"
        )
    return Chart(
        "mean comparisons per prediction",
        "correct labels" if what == "accuracy" else "log-loss",
        [Tick(x(_place(v)), f"{v:,.0f}") for v in _ticks(float(xs.min()), float(xs.max()))],
        [Tick(y(v), _told(v, what)) for v in nice_ticks(y.low, y.high, 5)],
        f"{what.capitalize()} against comparisons. {'; '.join(told)}.",
        lines,
        [],
        notes,
    )


def _points(model: ModelResult, what: str) -> tuple[Array, Array]:
    if model.looks is not None:
        found = model.looks.accuracy if what == "accuracy" else model.looks.log_loss
        return model.looks.comparisons, found
    value = model.fold_accuracy.mean() if what == "accuracy" else model.fold_log_loss.mean()
    return np.array([model.comparisons]), np.array([value])


def _place(comparisons: float) -> float:
    return float(np.log10(comparisons + ORIGIN))


def _told(value: float, what: str) -> str:
    return percent(value, 1) if what == "accuracy" else f"{value:.3f}"


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers of comparisons from low to high.

    >>> _ticks(0, 1600), _ticks(44, 600)
    ([0.0, 10.0, 30.0, 100.0, 300.0, 1000.0], [50.0, 100.0, 200.0, 500.0])
    """
    near = (high + ORIGIN) / (low + ORIGIN) < 30
    steps = [0.0] + [a * 10.0**k for k in range(1, 9) for a in ((1, 2, 5) if near else (1, 3))]
    found = [v for v in steps if low - 0.1 * (low + ORIGIN) <= v <= high + 0.1 * (high + ORIGIN)]
    return found if len(found) > 1 else [low, high]
