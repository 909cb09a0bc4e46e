"""The best alignment of two sequences, column by column (Gotoh 1982).

The measures need only scores, for many pairs, and get them from Opal's SIMD kernels. Here the whole
grid is kept, for a single pair that a person looks at:

    E[i, j] = max(H[i, j−1] − open, E[i, j−1] − extend)      a letter of b alone
    F[i, j] = max(H[i−1, j] − open, F[i−1, j] − extend)      a letter of a alone
    H[i, j] = max(H[i−1, j−1] + s(a_i, b_j), E[i, j], F[i, j]), at least 0 in a local alignment.

The cells of an antidiagonal depend only on the two antidiagonals before it, so they are computed
together: O(n·m) in n + m steps. Opal can trace alignments too, but some of its local alignments do
not have the score that it reports.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .beside import ALIKE, GAP, OTHER, SAME, Letters

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
    >>> from krein.measures.alignment import align
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

    Steps are M for a pair of letters, D for a letter of the first sequence only, and I for one of
    the second only.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.alignment import best_alignment
    >>> a, b = (np.frombuffer(x, dtype=np.uint8) for x in (b"HEAGAWGHEE", b"PAWHEE"))
    >>> scores = np.where(a[:, None] == b, 2, -1).astype(np.int32)
    >>> best_alignment(scores, 2, 1, local=True)
    (8, (4, 1), 'MMDMMM')
    """
    n, m = scores.shape
    H, E, F = (np.full((n + 1, m + 1), _NEVER, dtype=np.int32) for _ in range(3))
    _border(H, E, F, gap_open, gap_extend, local)
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


def _border(H: Scores, E: Scores, F: Scores, gap_open: int, gap_extend: int, local: bool) -> None:
    """Write the scores of alignments that have used letters of only one sequence."""
    if local:
        H[0], H[:, 0] = 0, 0
        return
    H[0, 0] = 0
    H[0, 1:] = E[0, 1:] = -gap_open - gap_extend * np.arange(H.shape[1] - 1)
    H[1:, 0] = F[1:, 0] = -gap_open - gap_extend * np.arange(H.shape[0] - 1)
