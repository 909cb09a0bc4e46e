"""Shared by the figures: colour-blind safe colours, command line, output files."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap

# Okabe & Ito (2008), ordered so that neighbours also differ in lightness
BLUE, VERMILION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE, YELLOW, GREY = "#56B4E9", "#CC79A7", "#F0E442", "#666666"
CLASSES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW, "#000000")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
REGIONS = ListedColormap(["#BFD9EA", "#F7DFB3"])
"""Pale versions of the first two class colours, for predicted regions."""

plt.rcParams.update(
    {
        "font.size": 10,
        "axes.titlesize": 10.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "figure.constrained_layout.use": True,
    }
)


def options(
    told: str | None, arguments: Sequence[str] | None, *, objects: int
) -> argparse.Namespace:
    """Return the command-line options: where to write, and how many objects to use."""
    parser = argparse.ArgumentParser(description=(told or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("paper/results"), help="folder")
    parser.add_argument("--objects", type=int, default=objects, help="fewer for a quick look")
    return parser.parse_args(arguments)


def scatter(axis: Any, X: Any, y: Any, *, size: float = 16, label: str = "class") -> None:
    """Draw points with a colour and a marker per class; classes are codes 0, 1, …"""
    for code in range(int(max(y)) + 1):
        axis.scatter(
            *X[y == code].T,
            s=size,
            c=CLASSES[code % len(CLASSES)],
            marker=MARKERS[code % len(MARKERS)],
            edgecolors="white",
            linewidths=0.3,
            label=f"{label} {code + 1}",
        )


def frame(axis: Any) -> None:
    """Draw a thin border without ticks, for axes that have no unit."""
    axis.set(xticks=[], yticks=[])
    for spine in axis.spines.values():
        spine.set(visible=True, color="#BBBBBB", linewidth=0.8)


def save(figure: Any, folder: Path, name: str) -> None:
    """Save the figure in `figures`, next to the folder of the CSV files, and print its path."""
    path = folder.parent / "figures" / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)
    print(f"written to {path}")


def write(folder: Path, name: str, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write the plotted data as a CSV file."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([headings, *rows])
