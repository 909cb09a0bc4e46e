"""The published figures, copied from the tables of the paper.

Schleif, Gisbrecht & Tino, *Probabilistic classifiers with low rank indefinite kernels*. Accuracies
are in %, run times in seconds, model complexity in % of the training objects. `None` stands for a
dash in the paper.
"""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """Mean and standard deviation, and whether the paper marks it (*) as different from dense."""

    mean: float
    deviation: float | None = None
    marked: bool = False


SIM = {
    "SIM1": "all",
    "SIM2": "meb",
    "SIM3": "kmeans",
    "SIM4": "kmeans@C",
    "SIM5": "random@C",
    "SIM6": "entropy",
}
"""The six schemes of table 1 with their landmark rules; @C means one landmark per class."""

SMALL = ("ball", "protein", "checker", "gauss")

TABLE_1 = {  # accuracy, and the median SMSS
    "SIM1": {
        "ball": (Figure(100, 0), 1.0),
        "protein": (Figure(98.12, 3.22), 1.0),
        "checker": (Figure(98.89, 0.35), 1.0),
        "gauss": (Figure(90.00, 5.77), 1.0),
    },
    "SIM2": {
        "ball": (Figure(92.00, 4.83), 1.00),
        "protein": (Figure(96.71, 3.20), 0.98),
        "checker": (Figure(90.22, 8.52), 0.78),
        "gauss": (Figure(90.00, 7.45), 0.93),
    },
    "SIM3": {
        "ball": (Figure(70.00, 12.69), 0.99),
        "protein": (Figure(96.71, 4.45), 0.85),
        "checker": (Figure(91.78, 9.24), 1.0),
        "gauss": (Figure(87.00, 10.33), 0.98),
    },
    "SIM4": {
        "ball": (Figure(59.50, 5.50), 0.40),
        "protein": (Figure(86.85, 6.29), 0.71),
        "checker": (Figure(65.33, 5.13), 0.04),
        "gauss": (Figure(65.00, 8.17), 0.13),
    },
    "SIM5": {
        "ball": (Figure(52.50, 12.08), 0.37),
        "protein": (Figure(78.87, 14.61), 1.01),
        "checker": (Figure(46.11, 4.20), 0.18),
        "gauss": (Figure(77.50, 10.61), 0.40),
    },
    "SIM6": {
        "ball": (Figure(74.50, 12.79), 1.00),
        "protein": (Figure(95.31, 5.78), 0.81),
        "checker": (Figure(62.33, 11.67), 0.10),
        "gauss": (Figure(87.00, 7.52), 0.36),
    },
}

TABLE_1_LANDMARKS = {"ball": 8, "protein": 25, "checker": 9, "gauss": 8}
"""Number of landmarks found by MEB (SIM2)."""

TABLE_2 = {
    "SIM1": {"ball": 0.5, "protein": 0.82, "checker": 13.45, "gauss": 0.74},
    "SIM2": {"ball": 1.0, "protein": 1.56, "checker": 3.76, "gauss": 0.98},
    "SIM3": {"ball": 1.57, "protein": 2.57, "checker": 14.77, "gauss": 1.51},
    "SIM4": {"ball": 0.84, "protein": 1.14, "checker": 13.23, "gauss": 0.90},
    "SIM5": {"ball": 0.61, "protein": 0.98, "checker": 3.23, "gauss": 0.65},
    "SIM6": {"ball": 3.2, "protein": 8.47, "checker": 8.12, "gauss": 3.94},
}

THREE_GAUSSIANS = {"meb": 100.0, "kmeans": 84.0, "entropy": 84.0, "random": 83.0}
"""Accuracy with 10 landmarks, from the text of section 4.3."""

FIGURE_5 = {"all": 93.5, "meb": 88.5}
"""Accuracy of iKFD and Ny-iKFD on two Gaussians in ℝ^(1,1), from the text of section 7."""

LARGE = ("gesture", "sonatas", "zongker", "proteom", "chromo", "swiss")

LARGE_LANDMARKS = {
    "gesture": 64,
    "sonatas": 25,
    "zongker": 41,
    "proteom": 123,
    "chromo": 65,
    "swiss": 116,
}

_DENSE: dict[str, tuple[Figure | None, Figure | None]] = {  # iKFD, PCVM: the same in tables 3–5
    "gesture": (Figure(97.93, 0.73), Figure(73.20, 18.12)),
    "sonatas": (Figure(90.17, 2.14), Figure(91.20, 2.69)),
    "zongker": (Figure(96.60, 1.97), Figure(93.60, 2.00)),
    "proteom": (Figure(99.58, 0.38), Figure(99.58, 0.28)),
    "chromo": (Figure(97.24, 0.94), Figure(93.29, 1.51)),
    "swiss": (None, None),
}

_LOW_RANK: dict[str, dict[str, tuple[Figure | None, Figure | None, float | None]]] = {
    "meb": {  # table 3: Ny-iKFD, Ny-PCVM, mean SMSS
        "gesture": (Figure(96.60, 1.84), Figure(85.53, 1.22, True), 0.9481),
        "sonatas": (Figure(83.52, 2.08, True), Figure(87.08, 3.19, True), 0.7460),
        "zongker": (Figure(90.70, 2.30, True), Figure(84.35, 2.53, True), 0.6785),
        "proteom": (Figure(99.68, 0.31), Figure(99.45, 0.53), 0.9184),
        "chromo": (Figure(94.79, 1.45), Figure(92.21, 1.31), 0.9300),
        "swiss": (Figure(83.05, 1.60), Figure(70.38, 19.19), 0.7870),
    },
    "kmeans": {  # table 4
        "gesture": (Figure(95.73, 0.86), Figure(92.60, 1.04, True), 0.9315),
        "sonatas": (Figure(77.63, 3.19, True), Figure(77.81, 3.28, True), 0.4925),
        "zongker": (Figure(88.40, 1.33, True), Figure(88.30, 2.89, True), 0.8340),
        "proteom": (Figure(94.78, 1.89), Figure(94.18, 1.23), 0.5711),
        "chromo": (Figure(94.17, 0.86), Figure(92.10, 0.89), 0.9406),
        "swiss": (Figure(73.74, 0.71), Figure(75.36, 7.55), 0.7864),
    },
    "entropy": {  # table 5
        "gesture": (Figure(93.47, 1.93, True), Figure(91.07, 2.97, True), 0.8864),
        "sonatas": (Figure(80.24, 2.46, True), Figure(82.77, 2.86, True), 0.5210),
        "zongker": (Figure(90.90, 1.15, True), Figure(90.50, 2.12), 0.5500),
        "proteom": (Figure(94.54, 1.87), Figure(80.93, 22.96, True), 0.5057),
        "chromo": (Figure(94.50, 1.30), Figure(90.95, 2.55), 0.9560),
        "swiss": (None, None, None),
    },
}


def accuracy(rule: str, name: str, family: str) -> Figure | None:
    """Return the figure in tables 3 to 5 for a landmark rule ("all": dense), a set and a method.

    >>> accuracy("meb", "swiss", "ikfd")
    Figure(mean=83.05, deviation=1.6, marked=False)
    """
    place = ("ikfd", "pcvm").index(family)
    if rule == "all":
        return _DENSE[name][place] if name in _DENSE else None
    found = _LOW_RANK[rule].get(name)
    return None if found is None else (found[0], found[1])[place]


def accuracies() -> list[tuple[str, str, str, Figure]]:
    """Return all published accuracies: table or section, set, "family:rule" and figure."""
    found: list[tuple[str, str, str, Figure | None]] = [
        (f"table 1, {sim}", name, f"ikfd:{rule}", TABLE_1[sim][name][0])
        for sim, rule in SIM.items()
        for name in SMALL
    ]
    for rule, mean in THREE_GAUSSIANS.items():
        found.append(("section 4.3", "three_gaussians", f"ikfd:{rule}", Figure(mean)))
    for place, rule in (("s 3–5", "all"), (" 3", "meb"), (" 4", "kmeans"), (" 5", "entropy")):
        for name in LARGE:
            for family in ("ikfd", "pcvm"):
                target = accuracy(rule, name, family)
                found.append((f"table{place}", name, f"{family}:{rule}", target))
    return [(place, name, method, target) for place, name, method, target in found if target]


def mean_smss(rule: str, name: str) -> float | None:
    """Return the mean SMSS in tables 3 to 5."""
    found = _LOW_RANK[rule].get(name)
    return None if found is None else found[2]


Four = dict[tuple[str, str], Figure | None]  # (method, rule): "all" or "meb"


def _four(*figures: Figure | None) -> Four:
    places = (("ikfd", "all"), ("ikfd", "meb"), ("pcvm", "all"), ("pcvm", "meb"))
    return dict(zip(places, figures, strict=True))


TABLE_6 = {
    "gesture": _four(
        Figure(50.72, 1.54), Figure(9.18, 0.19), Figure(116.33, 7.49), Figure(31.98, 0.42)
    ),
    "sonatas": _four(
        Figure(5.04, 0.22), Figure(1.85, 0.06), Figure(60.07, 2.54), Figure(7.01, 0.24)
    ),
    "zongker": _four(
        Figure(51.61, 1.43), Figure(5.53, 0.16), Figure(184.07, 14.97), Figure(16.91, 0.24)
    ),
    "proteom": _four(
        Figure(559.25, 15.29), Figure(42.08, 1.92), Figure(352.08, 18.05), Figure(111.22, 1.88)
    ),
    "chromo": _four(
        Figure(763.24, 31.54), Figure(27.91, 1.77), Figure(694.43, 15.61), Figure(54.36, 0.77)
    ),
    "swiss": _four(None, Figure(178.79, 10.63), None, Figure(123.29, 2.72)),
}

TABLE_7 = {
    "gesture": _four(Figure(100, 0), Figure(100, 0), Figure(10.60, 0.84), Figure(5.25, 0.31)),
    "sonatas": _four(Figure(100, 0), Figure(100, 0), Figure(11.24, 0.56), Figure(3.42, 0.57)),
    "zongker": _four(Figure(100, 0), Figure(100, 0), Figure(14.42, 3.65), Figure(8.63, 0.31)),
    "proteom": _four(Figure(100, 0), Figure(100, 0), Figure(5.23, 0.36), Figure(5.85, 0.14)),
    "chromo": _four(Figure(100, 0), Figure(100, 0), Figure(7.49, 0.51), Figure(2.49, 0.34)),
    "swiss": _four(None, Figure(96.95, 0.27), None, Figure(1.18, 0.25)),
}
