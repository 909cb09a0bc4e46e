"""Edit distances and related measures of strings, computed by rapidfuzz."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from rapidfuzz import distance, process

from .base import Array, Measure, Objects, as_list
from .beside import Beside, edited, in_words

MOST_CELLS = 25_000_000
"""Maximum number of letter pairs of two strings whose edits are shown."""


@dataclass(frozen=True)
class _Strings(Measure):
    """Strings compared character by character; the empty string is allowed."""

    releases_gil = True
    edits: ClassVar[Any] = distance.Levenshtein

    def check(self, objects: Any) -> Objects:
        """Return a list of strings."""
        return as_list(objects, "string")

    def beside(self, a: Any, b: Any) -> Beside:
        """Return the letters in columns, aligned with the fewest edits."""
        if len(a) * len(b) > MOST_CELLS:
            return in_words(a, b)
        found = [(one.tag, one.src_start, one.src_end, one.dest_start, one.dest_end)
                 for one in self.edits.opcodes(a, b)]  # fmt: skip
        return edited(a, b, found)

    def _cdist(self, A: Objects, B: Objects, scorer: Any, **options: Any) -> Array:
        return process.cdist(A, B, scorer=scorer, dtype=np.float64, scorer_kwargs=options or None)


@dataclass(frozen=True)
class _Edits(_Strings):
    """A number of edits, or (`normalize`) that number as a share of the longer length."""

    normalize: bool = False

    psd = False  # "", "a", "b", "ab" cannot be embedded in a Euclidean space

    kind = "dissimilarity"
    scorer: ClassVar[Any]

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the distances."""
        scorer = self.scorer
        return self._cdist(A, B, scorer.normalized_distance if self.normalize else scorer.distance)

    def diagonal(self, A: Objects) -> Array:
        """Return zeros: no edit is needed."""
        return np.zeros(len(A))


@dataclass(frozen=True)
class Levenshtein(_Edits):
    """Smallest number of insertions, deletions and substitutions (Levenshtein 1966).

    `normalize=True` divides by the length of the longer string: 0 to 1, two empty strings 0.
    O(|a|·|b| / 64) per pair (Hyyrö's bit-parallel algorithm).

    Examples
    --------
    >>> from krein.measures.strings import Levenshtein
    >>> Levenshtein().block(["house"], ["mouse", "haus"])
    array([[1., 2.]])
    """

    name = "levenshtein"
    scorer: ClassVar[Any] = distance.Levenshtein


@dataclass(frozen=True)
class Damerau(_Edits):
    """Levenshtein's edits plus transpositions of neighbours (Damerau 1964), unrestricted.

    `normalize=True` divides by the length of the longer string. O(|a|·|b|) per pair, some
    hundred times slower than Levenshtein.

    Examples
    --------
    >>> from krein.measures.strings import Damerau
    >>> Damerau().block(["form"], ["from", "farm"])
    array([[1., 1.]])
    """

    name = "damerau"
    scorer: ClassVar[Any] = distance.DamerauLevenshtein
    block_pairs = 2**15


@dataclass(frozen=True)
class LCS(_Strings):
    """Length of the longest common subsequence.

    `normalize=True` divides by the length of the longer string: 0 to 1, two empty strings 1.
    O(|a|·|b| / 64) per pair.

    Examples
    --------
    >>> from krein.measures.strings import LCS
    >>> LCS().block(["house"], ["mouse", "haus"])
    array([[4., 3.]])
    """

    normalize: bool = False

    name = "lcs"
    kind = "similarity"
    edits: ClassVar[Any] = distance.LCSseq

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the lengths."""
        scorer = distance.LCSseq
        return self._cdist(
            A, B, scorer.normalized_similarity if self.normalize else scorer.similarity
        )

    def diagonal(self, A: Objects) -> Array:
        """Return the length of each string; 1 if normalised."""
        if self.normalize:
            return np.ones(len(A))
        return np.array([len(a) for a in A], dtype=np.float64)


@dataclass(frozen=True)
class JaroWinkler(_Strings):
    """Jaro's similarity, raised by a common prefix of up to four characters (Winkler 1990).

    Between 0 and 1; `prefix_weight` 0 is Jaro's own. O(|a|·|b| / 64) per pair.

    Examples
    --------
    >>> from krein.measures.strings import JaroWinkler
    >>> JaroWinkler().block(["martha"], ["marhta", "house"]).round(2)
    array([[0.96, 0.  ]])
    """

    prefix_weight: float = 0.1

    name = "jaro-winkler"
    kind = "similarity"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.prefix_weight <= 0.25:
            raise ValueError(f"prefix_weight must be in [0, 0.25]; got {self.prefix_weight}")

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the similarities."""
        scorer = distance.JaroWinkler.similarity
        return self._cdist(A, B, scorer, prefix_weight=self.prefix_weight)

    def diagonal(self, A: Objects) -> Array:
        """Return ones: a string is identical to itself."""
        return np.ones(len(A))
