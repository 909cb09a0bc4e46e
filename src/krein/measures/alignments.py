"""Two objects side by side, as a person would compare them: plain data that a page can draw.

`Measure.side_by_side` returns one of these, with the alignment that the measure itself has found.
Measures need only values, for many pairs, and get them from fast kernels. Here, the whole grid of
the dynamic programme is kept, for a single pair that a person looks at. The cells of an
antidiagonal depend only on the two antidiagonals before it, so they are computed together: O(n·m)
in n + m steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.shapes import Array

SAME, ALIKE, OTHER, GAP = "|", "+", " ", "-"
"""Marks of an alignment column: the same letter, a similar one, a different one, a gap."""

LONGEST = 600
"""Maximum number of letters of an object shown as text."""


@dataclass(frozen=True)
class Letters:
    """Two strings, column by column: `first` and `second` have `gap` where they have no letter."""

    first: str
    second: str
    marks: str  # one of SAME, ALIKE, OTHER and GAP for each column
    starts: tuple[int, int] = (0, 0)  # the position of the first column in each, from 0
    lengths: tuple[int, int] = (0, 0)  # of both, aligned or not
    gap: str = "-"
    reversed: bool = False
    """Whether `first` is the reverse complement of the given sequence."""

    @property
    def identity(self) -> float:
        """Share of the columns in which both letters are the same."""
        return self.marks.count(SAME) / len(self.marks) if self.marks else 0.0


@dataclass(frozen=True)
class Curves:
    """Two series (times, channels), and which of their times correspond."""

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    path: NDArray[np.intp]  # (L, 2); empty if the series are too long


@dataclass(frozen=True)
class Pictures:
    """Two images (height, width)."""

    first: NDArray[np.float64]
    second: NDArray[np.float64]


@dataclass(frozen=True)
class Numbers:
    """Two rows of numbers."""

    first: NDArray[np.float64]
    second: NDArray[np.float64]


@dataclass(frozen=True)
class Words:
    """Two objects as text, if nothing else can be shown."""

    first: str
    second: str


@dataclass(frozen=True)
class ComparedPart:
    """One part of two records: how it is compared, its value, and both sides of it."""

    name: str
    measure: str
    columns: tuple[str, ...]
    weight: float
    value: float
    beside: Letters | Curves | Pictures | Numbers | Words


@dataclass(frozen=True)
class Parts:
    """Two records, part by part; their value is the sum of weight · value."""

    parts: tuple[ComparedPart, ...]


SideBySide = Letters | Curves | Pictures | Numbers | Words | Parts


def as_words(a: Any, b: Any) -> Numbers | Words:
    """Return two objects of an unknown kind, as rows of numbers or as text.

    Examples
    --------
    >>> from krein.measures.alignments import as_words
    >>> as_words("house", "mouse")
    Words(first='house', second='mouse')
    """
    rows = all(isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind in "fiub" for x in (a, b))
    if rows and len(a) == len(b):
        return Numbers(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    texts = (str(x) for x in (a, b))
    return Words(*(x if len(x) <= LONGEST else x[:LONGEST] + "…" for x in texts))


def edited(a: str, b: str, operations: Iterable[tuple[str, int, int, int, int]]) -> Letters:
    """Return two strings in columns, from operations that turn `a` into `b`.

    Each is (tag, start in a, end in a, start in b, end in b), where the tag is "equal", "replace",
    "delete" or "insert".

    Examples
    --------
    >>> from krein.measures.alignments import edited
    >>> edited("house", "hus", [("equal", 0, 1, 0, 1), ("delete", 1, 2, 1, 1),
    ...                         ("equal", 2, 4, 1, 3), ("delete", 4, 5, 3, 3)])
    Letters(first='house', second='h·us·', marks='|-||-', starts=(0, 0), lengths=(5, 3), gap='·', \
reversed=False)
    """
    first, second, marks, gap = [], [], [], "·"
    for tag, i, j, k, l in operations:
        x, y = a[i:j], b[k:l]
        both = min(len(x), len(y))
        first += [x, gap * (len(y) - both)]
        second += [y, gap * (len(x) - both)]
        marks += [(SAME if tag == "equal" else OTHER) * both, GAP * (max(len(x), len(y)) - both)]
    return Letters(
        "".join(first), "".join(second), "".join(marks), lengths=(len(a), len(b)), gap=gap
    )


# The best alignment of two sequences, column by column

MOST_CELLS = 9_000_000
"""Maximum number of cells of a grid: two sequences of 3,000 letters."""

_NEVER = np.int32(-(2**29))

Scores = NDArray[np.int32]


def align(
    a: str, b: str, matrix: Any, gap_open: int, gap_extend: int, *, local: bool
) -> tuple[int, Letters]:
    """Return the score of the best alignment under a `ScoringMatrix`, and its columns.

    Examples
    --------
    >>> from scoring_matrices import ScoringMatrix
    >>> from krein.measures.alignments import align
    >>> matrix = ScoringMatrix.from_name("BLOSUM62")
    >>> score, columns = align("HEAGAWGHEE", "PAWHEAE", matrix, 11, 1, local=True)
    >>> score, columns.first, columns.second, columns.starts
    (17, 'HEA', 'HEA', (0, 3))
    """
    rows, columns = ([matrix.alphabet.index(letter) for letter in one] for one in (a, b))
    scores = np.array(matrix, dtype=np.int32)[np.ix_(rows, columns)]
    score, (i, j), steps = best_alignment(scores, gap_open, gap_extend, local=local)
    starts, first, second, marks = (i, j), [], [], []
    for step in steps:
        first.append("-" if step == "I" else a[i])
        second.append("-" if step == "D" else b[j])
        if step != "M":
            marks.append(GAP)
        elif a[i] == b[j]:
            marks.append(SAME)
        else:
            marks.append(ALIKE if scores[i, j] > 0 else OTHER)
        i, j = i + (step != "I"), j + (step != "D")
    x, y, z = ("".join(part) for part in (first, second, marks))
    return score, Letters(x, y, z, starts, (len(a), len(b)))


def best_alignment(
    scores: Scores, gap_open: int, gap_extend: int, *, local: bool
) -> tuple[int, tuple[int, int], str]:
    """Return score, start positions and steps of the best alignment, given s(a_i, b_j) (n, m).

    With affine gaps (Gotoh 1982), where H is at least 0 in a local alignment:

        E[i, j] = max(H[i, j−1] − open, E[i, j−1] − extend)      a letter of b alone
        F[i, j] = max(H[i−1, j] − open, F[i−1, j] − extend)      a letter of a alone
        H[i, j] = max(H[i−1, j−1] + s(a_i, b_j), E[i, j], F[i, j])

    Opal can trace alignments too, but some of its local alignments do not have the score that it
    reports. Steps are M for a pair of letters, D for a letter of the first sequence only, and I for
    one of the second only.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.alignments import best_alignment
    >>> a, b = (np.frombuffer(x, dtype=np.uint8) for x in (b"HEAGAWGHEE", b"PAWHEE"))
    >>> scores = np.where(a[:, None] == b, 2, -1).astype(np.int32)
    >>> best_alignment(scores, 2, 1, local=True)
    (8, (4, 1), 'MMDMMM')
    """
    n, m = scores.shape
    H, E, F = (np.full((n + 1, m + 1), _NEVER, dtype=np.int32) for _ in range(3))
    H[0], H[:, 0] = 0, 0
    if not local:  # letters of only one sequence so far
        H[0, 1:] = E[0, 1:] = -gap_open - gap_extend * np.arange(m)
        H[1:, 0] = F[1:, 0] = -gap_open - gap_extend * np.arange(n)
    S = np.zeros(H.shape, dtype=np.int32)
    S[1:, 1:] = scores
    h, e, f, s = (X.ravel() for X in (H, E, F, S))  # cell (i, total − i) is i·m + total
    for total in range(2, n + m + 1):
        first, last = max(1, total - m) * m + total, min(n, total - 1) * m + total
        here, left = slice(first, last + 1, m), slice(first - 1, last, m)
        above, before = slice(first - m - 1, last - m, m), slice(first - m - 2, last - m - 1, m)
        e[here] = np.maximum(h[left] - gap_open, e[left] - gap_extend)
        f[here] = np.maximum(h[above] - gap_open, f[above] - gap_extend)
        best = np.maximum(h[before] + s[here], np.maximum(e[here], f[here]))
        h[here] = np.maximum(best, 0) if local else best
    end = np.unravel_index(int(H.argmax()), H.shape) if local else (n, m)
    i, j = int(end[0]), int(end[1])
    score, steps, layer = int(H[i, j]), [], H
    while (H[i, j] > 0 or layer is not H) if local else i + j > 0:
        if layer is H:
            if i and j and H[i, j] == H[i - 1, j - 1] + scores[i - 1, j - 1]:
                i, j = i - 1, j - 1
                steps.append("M")
            else:
                layer = E if H[i, j] == E[i, j] else F
        elif layer is E:
            layer = H if E[i, j] == H[i, j - 1] - gap_open else E
            j -= 1
            steps.append("I")
        else:
            layer = H if F[i, j] == H[i - 1, j] - gap_open else F
            i -= 1
            steps.append("D")
    return score, (i, j), "".join(reversed(steps))


# Corresponding times of two series: the path behind an elastic distance

WARPING_CELLS = 4_000_000
"""Maximum number of cells of a grid: two series of 2,000 times."""


@dataclass(frozen=True)
class Steps:
    """The cost of each step on the grid (n, m), and its first cell.

    All elastic distances are minimal sums over paths on a grid, and differ in the costs of steps:

        D[i, j] = min(D[i−1, j−1] + match[i, j], D[i−1, j] + down[i, j], D[i, j−1] + right[i, j])
    """

    start: float
    match: Array
    down: Array
    right: Array


def dtw_steps(a: Array, b: Array, samples: float, share: float) -> Steps:
    """Return the steps of dynamic time warping; outside the band their cost is infinite."""
    cost = np.square(a[:, None] - b[None]).sum(axis=2)
    n, m = cost.shape
    longer = max(n, m)
    band = int(min(float(longer), max(samples + share * longer, float(abs(n - m)))))
    apart = np.abs(np.arange(n)[:, None] - np.arange(m))
    cost[apart > band] = np.inf
    return Steps(float(cost[0, 0]), cost, cost, cost)


def erp_steps(a: Array, b: Array, gap: float) -> Steps:
    """Return the steps of the edit distance with real penalty; its grid starts before both."""
    match = np.full((len(a) + 1, len(b) + 1), np.inf)
    match[1:, 1:] = np.sqrt(np.square(a[:, None] - b[None]).sum(axis=2))
    down, right = np.full(match.shape, np.inf), np.full(match.shape, np.inf)
    down[1:] = np.sqrt(np.square(a - gap).sum(axis=1))[:, None]
    right[:, 1:] = np.sqrt(np.square(b - gap).sum(axis=1))
    return Steps(0.0, match, down, right)


def numeric_edit_steps(a: Array, b: Array, gap: float) -> Steps:
    """Return the steps of the edit distance with a constant gap; its grid starts before both."""
    steps = erp_steps(a, b, 0.0)
    down, right = steps.down, steps.right
    down[1:], right[:, 1:] = gap, gap
    return Steps(0.0, steps.match, down, right)


def msm_steps(a: Array, b: Array, cost: float) -> Steps:
    """Return the steps of move-split-merge."""
    x, y = a[:, :1], b[:, 0][None]
    match = np.abs(x - y)
    down, right = np.full(match.shape, np.inf), np.full(match.shape, np.inf)
    down[1:] = cost + _distances_outside(x[1:], x[:-1], y)
    right[:, 1:] = cost + _distances_outside(y[:, 1:], x, y[:, :-1])
    return Steps(float(match[0, 0]), match, down, right)


def _distances_outside(x: Array, y: Array, z: Array) -> Array:
    """Return the distance of x from the interval between y and z."""
    return np.maximum(np.maximum(np.minimum(y, z) - x, x - np.maximum(y, z)), 0.0)


def least_path(steps: Steps) -> tuple[float, NDArray[np.intp], NDArray[np.bool_]]:
    """Return the least sum, the cells (L, 2) of its path, and which of them are matches.

    Among paths of equal cost, the one with more matches is returned.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.alignments import dtw_steps, least_path
    >>> a, b = np.array([[0.0], [1.0], [0.0]]), np.array([[0.0], [0.0], [1.0], [0.0]])
    >>> value, path, _ = least_path(dtw_steps(a, b, np.inf, 0.0))
    >>> value, path.tolist()
    (0.0, [[0, 0], [0, 1], [1, 2], [2, 3]])
    """
    n, m = steps.match.shape
    D = np.full((n + 1, m + 1), np.inf)  # with a border that no path crosses
    D[1, 1] = steps.start
    for total in range(1, n + m - 1):
        i = np.arange(max(0, total - m + 1), min(n, total + 1))
        D[i + 1, total - i + 1] = _reached(D, steps, i, total - i).min(axis=0)
    cells, matched = [(n - 1, m - 1)], []
    while cells[-1] != (0, 0):
        i, j = cells[-1]
        step = int(_reached(D, steps, np.array([i]), np.array([j])).argmin())
        matched.append(step == 0)
        cells.append(((i - 1, j - 1), (i - 1, j), (i, j - 1))[step])
    matched.append(True)
    return float(D[n, m]), np.array(cells[::-1], dtype=np.intp), np.array(matched[::-1])


def _reached(D: Array, steps: Steps, i: NDArray[np.intp], j: NDArray[np.intp]) -> Array:
    """Return the cost of reaching cells by a match, from above, and from the left (3, k)."""
    return np.stack(
        [
            D[i, j] + steps.match[i, j],
            D[i, j + 1] + steps.down[i, j],
            D[i + 1, j] + steps.right[i, j],
        ]
    )
