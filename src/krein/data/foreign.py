"""Which objects are foreign: of another kind than those that a model was fitted to.

These are DNA for a model of proteins, or series on another length scale. They are not compared: a
comparison may take long, and a label would be meaningless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.shapes import Array
from ..measures import Measure
from ..measures.objects import NUCLEOTIDE_SHARE, NUCLEOTIDES

SILENT = "-.*X"
"""Gaps, stops and unknown letters; U becomes X if unknown letters are replaced."""
FEWEST_LETTERS, FEWEST_KINDS = 20, 3
"""A protein that is shorter, or has fewer different letters, may look like DNA by chance."""

MORE_LETTERS = 6
"""If training objects have this many letters other than nucleotides, they are not DNA."""

TIMES = 10
"""Objects this many times longer than the longest training object, or shorter than the shortest,
are of another kind."""

LOOKED_AT = 1_000
"""Number of training objects that are examined."""


@dataclass(frozen=True)
class ObjectProfile:
    """Letters and lengths of training objects; objects unlike them are foreign."""

    letters: frozenset[str]  # empty if they are not strings
    shortest: int
    longest: int

    @classmethod
    def of(cls, parts: Sequence[Any]) -> ObjectProfile | None:
        """Return the profile of training objects in several lists; None if they have no length."""
        some = [
            one for part in parts for one in part[:: max(1, len(part) * len(parts) // LOOKED_AT)]
        ]
        lengths = [n for one in some if (n := _length(one)) is not None]
        if not some or len(lengths) < len(some):
            return None
        text = "".join(one.upper() for one in some if isinstance(one, str))
        letters = frozenset(text)
        if sum(map(text.count, NUCLEOTIDES)) >= NUCLEOTIDE_SHARE * len(text):
            letters &= NUCLEOTIDES  # codes such as R or Y do not make DNA anything else
        return cls(letters, min(lengths), max(lengths))

    def foreign(self, objects: Any) -> dict[str, list[int]]:
        """Return the positions of foreign objects, by reason.

        Examples
        --------
        >>> from krein.data.foreign import ObjectProfile
        >>> ObjectProfile.of([["house", "mouse"]]).foreign(["haus", "m" * 51])
        {'far longer than the training objects, up to 5 letters': [1]}
        """
        if isinstance(objects, np.ndarray) and objects.ndim > 1:  # all of one length
            reasons = [self._why(one) for one in objects[:1]] * len(objects)
        else:
            reasons = [self._why(one) for one in objects]
        found: dict[str, list[int]] = {}
        for row, why in enumerate(reasons):
            if why is not None:
                found.setdefault(why, []).append(row)
        return found

    def _why(self, one: Any) -> str | None:
        length = _length(one)
        if length is None:
            return None
        unit = "letters" if self.letters else "numbers"
        if length > TIMES * self.longest:
            return f"far longer than the training objects, up to {self.longest:,} {unit}"
        if length * TIMES < self.shortest:
            return f"far shorter than the training objects, from {self.shortest:,} {unit}"
        if isinstance(one, str) and len(self.letters - NUCLEOTIDES) >= MORE_LETTERS:
            counts = [one.upper().count(letter) for letter in NUCLEOTIDES]
            scored = length - sum(one.upper().count(letter) for letter in SILENT)
            kinds = sum(count > 0 for count in counts)
            mostly = sum(counts) >= NUCLEOTIDE_SHARE * scored
            if scored >= FEWEST_LETTERS and kinds >= FEWEST_KINDS and mostly:
                return "letters of DNA or RNA"
        return None


def _length(one: Any) -> int | None:
    """Return the number of letters or numbers of an object; None if it has no length.

    Numbers are counted over all axes: images and series may come in several shapes.
    """
    try:
        if isinstance(one, np.ndarray | list | tuple):
            return int(np.size(one))
    except ValueError:  # ragged
        return None
    return len(one) if isinstance(one, str) else None


def log_sizes(measure: Measure, objects: Any) -> Array | None:
    """Return the logarithm of the size (n,) of each object: its number of letters or numbers.

    None if the objects have no size, and for vectors and precomputed values, which have none of
    their own.

    Examples
    --------
    >>> from krein.data.foreign import log_sizes
    >>> from krein.measures import get_measure
    >>> log_sizes(get_measure("levenshtein"), ["a", "house"]).round(2)
    array([0.  , 1.61])
    """
    if measure.accepts != "objects":
        return None
    sizes = [len(one) if isinstance(one, bytes) else _length(one) for one in objects]
    if any(size is None for size in sizes):
        return None
    return np.log(np.maximum(np.array(sizes, dtype=np.float64), 1.0))
