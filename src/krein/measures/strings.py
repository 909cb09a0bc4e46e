"""Edit distances and related measures of strings, computed by rapidfuzz."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from rapidfuzz import distance, process

from ..core.shapes import Array
from .alignments import SideBySide, as_words, edited
from .base import Measure, random_strings
from .objects import Objects, as_list

MOST_CELLS = 25_000_000
"""Maximum number of letter pairs of two strings whose edits are shown."""


@dataclass(frozen=True)
class _Strings(Measure):
    """Strings compared character by character; the empty string is allowed."""

    releases_gil = True
    edits: ClassVar[Any] = distance.Levenshtein
    """The edits shown side by side; transpositions are shown as two."""

    def check(self, objects: Any) -> Objects:
        """Return a list of strings."""
        return as_list(objects, "string")

    def random_objects(
        self, objects: Objects, sizes: Array, rng: np.random.Generator
    ) -> Objects | None:
        """Return strings of these lengths, with letters drawn from the given strings."""
        return random_strings("".join(self._in_order(objects)), sizes, rng)

    def side_by_side(self, a: Any, b: Any) -> SideBySide:
        """Return the letters in columns, aligned with the fewest edits."""
        if len(a) * len(b) > MOST_CELLS:
            return as_words(a, b)
        return edited(a, b, self.edits.opcodes(a, b))

    def _cdist(self, A: Objects, B: Objects, scorer: Any, **options: Any) -> Array:
        return process.cdist(A, B, scorer=scorer, dtype=np.float64, scorer_kwargs=options or None)


@dataclass(frozen=True)
class _Counts(_Strings):
    """A number of edits or letters, or (`normalize`) its share of the longer length."""

    normalize: bool = False

    scorer: ClassVar[Any]

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the numbers or shares."""
        what = "similarity" if self.kind == "similarity" else "distance"
        scorer = getattr(self.scorer, f"normalized_{what}" if self.normalize else what)
        return self._cdist(A, B, scorer)


@dataclass(frozen=True)
class Levenshtein(_Counts):
    """Smallest number of insertions, deletions and substitutions (Levenshtein 1966).

    O(|a|·|b| / 64) per pair (Hyyrö's bit-parallel algorithm).

    Parameters
    ----------
    normalize : bool, default=False
        Divide the number of edits by the length of the longer string. Values are then between 0
        and 1, and 0 for two empty strings.

    See Also
    --------
    Damerau : Also counts the transposition of two neighbours as one edit.
    LCS : Length of the longest common subsequence, a similarity.

    Examples
    --------
    >>> from krein.measures.strings import Levenshtein
    >>> Levenshtein().block(["house"], ["mouse", "haus"])
    array([[1., 2.]])
    """

    name = "levenshtein"
    kind = "dissimilarity"
    psd = False  # "", "a", "b", "ab" cannot be embedded in a Euclidean space
    self_value = 0.0
    scorer: ClassVar[Any] = distance.Levenshtein


@dataclass(frozen=True)
class Damerau(_Counts):
    """Levenshtein's edits plus transpositions of neighbours (Damerau 1964), unrestricted.

    O(|a|·|b|) per pair, some hundred times slower than Levenshtein.

    Parameters
    ----------
    normalize : bool, default=False
        Divide the number of edits by the length of the longer string. Values are then between 0
        and 1, and 0 for two empty strings.

    See Also
    --------
    Levenshtein : Without transpositions, and much faster.
    JaroWinkler : A similarity for short strings such as names.

    Examples
    --------
    >>> from krein.measures.strings import Damerau
    >>> Damerau().block(["form"], ["from", "farm"])
    array([[1., 1.]])
    """

    name = "damerau"
    kind = "dissimilarity"
    psd = False  # for the same reason as Levenshtein's
    self_value = 0.0
    scorer: ClassVar[Any] = distance.DamerauLevenshtein
    block_pairs = 2**15


@dataclass(frozen=True)
class LCS(_Counts):
    """Length of the longest common subsequence.

    O(|a|·|b| / 64) per pair.

    Parameters
    ----------
    normalize : bool, default=False
        Divide the length by that of the longer string. Values are then between 0 and 1, and 1 for
        two empty strings. Without it, long strings score higher than short ones.

    See Also
    --------
    Levenshtein : Smallest number of edits, a dissimilarity.
    krein.measures.sequences.SmithWaterman : Alignment scores for biological sequences.

    Examples
    --------
    >>> from krein.measures.strings import LCS
    >>> LCS().block(["house"], ["mouse", "haus"])
    array([[4., 3.]])
    """

    name = "lcs"
    kind = "similarity"
    scorer: ClassVar[Any] = distance.LCSseq
    edits: ClassVar[Any] = distance.LCSseq

    def diagonal(self, A: Objects) -> Array:
        """Return the length of each string; 1 if normalised."""
        if self.normalize:
            return np.ones(len(A))
        return np.array([len(a) for a in A], dtype=np.float64)


@dataclass(frozen=True)
class JaroWinkler(_Strings):
    """Jaro's similarity, raised by a common prefix of up to four characters (Winkler 1990).

    Values are between 0 and 1. O(|a|·|b| / 64) per pair.

    Parameters
    ----------
    prefix_weight : float, default=0.1
        How much each character of the common prefix raises a similarity above 0.7: by this share
        of its difference from 1. From 0, which gives Jaro's similarity, to 0.25.

    See Also
    --------
    Levenshtein : Number of edits, wherever they occur in the strings.
    Damerau : Number of edits, where swapping two neighbours counts as one.

    Examples
    --------
    >>> from krein.measures.strings import JaroWinkler
    >>> JaroWinkler().block(["martha"], ["marhta", "house"]).round(2)
    array([[0.96, 0.  ]])
    """

    prefix_weight: float = 0.1

    name = "jaro-winkler"
    kind = "similarity"
    self_value = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.prefix_weight <= 0.25:
            raise ValueError(f"prefix_weight must be in [0, 0.25]; got {self.prefix_weight}")

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the similarities."""
        scorer = distance.JaroWinkler.similarity
        return self._cdist(A, B, scorer, prefix_weight=self.prefix_weight)
