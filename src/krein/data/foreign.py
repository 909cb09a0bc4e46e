"""Foreign objects: of another kind than those that a model was fitted to.

These are DNA for a model of proteins, or series on another length scale. They are not compared: a
comparison may take long, and a label would be meaningless. One warning names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.shapes import Array
from ..measures import Measure
from ..measures.objects import NUCLEOTIDE_SHARE, NUCLEOTIDES
from .chunks import Chunk

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

NAMED = 5
"""Number of objects that are named in a warning."""

LISTED = 10_000
"""Maximum number of rows listed per reason: a file may contain more objects than fit in memory."""


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


class ForeignObjectWarning(UserWarning):
    """New objects look unlike those that the model was fitted to, and were not compared with them.

    Their novelty is 0, and all classes have the same probability.
    `rows` contains their rows in X, by reason. For a file, rows are counted from its first object,
    up to 10,000 are listed per reason, and the warning comes after the last chunk. For a Dask
    collection, there is one warning per partition, and rows are counted within it.

    Examples
    --------
    >>> import warnings
    >>> from krein import KreinClassifier
    >>> from krein.datasets import make_protein_families
    >>> from krein.data import ForeignObjectWarning
    >>> X, y = make_protein_families(40, random_state=0)
    >>> clf = KreinClassifier("smith-waterman").fit(X, y)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = clf.predict([X[0], "ACGTTGCAACGTTGCAACGTTGCA"])
    >>> isinstance(caught[0].message, ForeignObjectWarning), caught[0].message.rows
    (True, {'letters of DNA or RNA': [1]})
    """

    def __init__(self, rows: dict[str, list[int]], named: dict[str, tuple[list[str], int]]) -> None:
        self.rows, self.named = rows, named
        super().__init__(rows, named)  # so that it can be sent to other processes

    def __str__(self) -> str:
        return describe_foreign(self.named)


class ForeignObjects:
    """The foreign objects that were found chunk by chunk: their rows, and some of their names."""

    def __init__(self, profile: ObjectProfile | None) -> None:
        self.profile = profile
        self.rows: dict[str, list[int]] = {}  # by reason
        self.named: dict[str, tuple[list[str], int]] = {}  # some names and the number of all

    def add(self, chunk: Chunk) -> None:
        """Add those of one more chunk."""
        foreign = {} if self.profile is None else self.profile.foreign(chunk.objects)
        for reason, places in foreign.items():
            rows = self.rows.setdefault(reason, [])
            rows += [chunk.start + i for i in places[: LISTED - len(rows)]]
            names, n = self.named.get(reason, ([], 0))
            more = [chunk.where(i) for i in places[: NAMED - len(names)]]
            self.named[reason] = names + more, n + len(places)

    def warning(self) -> ForeignObjectWarning:
        """Return the warning that names them."""
        return ForeignObjectWarning(self.rows, self.named)


def describe_foreign(named: dict[str, tuple[list[str], int]]) -> str:
    """Return a message about objects of another kind: some names and the number, by reason.

    >>> print(describe_foreign({"letters of DNA or RNA": (["a", "b"], 7)}))
    not compared, because they are of another kind: a, b and 5 more (letters of DNA or RNA)
    """
    parts = []
    for why, (names, n) in named.items():
        more = f" and {n - len(names):,} more" if n > len(names) else ""
        parts.append(f"{', '.join(names)}{more} ({why})")
    return f"not compared, because they are of another kind: {'; '.join(parts)}"


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
