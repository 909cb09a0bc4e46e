"""Letters of biological sequences, and how unscored letters are read."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from .errors import RefusedObject, excerpt

POLICIES = ("map", "X", "skip", "fail")

GAPS = "-."

UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
# letters of other alphabets are not scored, and some become two in upper case

_COMPLEMENT = str.maketrans("ATGCSWRYKMBVHDN", "TACGSWYRMKVBDHN")

_AMINO_ACIDS = {"U": "C", "O": "K"}
"""How rare amino acids are customarily read: selenocysteine as cysteine, pyrrolysine as lysine."""


class LettersWarning(UserWarning):
    """Letters that the scoring matrix does not score were replaced or left out.

    `letters` counts them by what was done ("U as C"); `sequences` is the number of affected
    sequences.

    Examples
    --------
    >>> import warnings
    >>> from krein.measures import get_measure
    >>> from krein.measures.letters import LettersWarning
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = get_measure("smith-waterman").check(["MKU", "MKV*", "MKV"])
    >>> found = caught[0].message
    >>> isinstance(found, LettersWarning), found.letters, found.sequences
    (True, {'U as C': 1, '* left out': 1}, 2)
    """

    def __init__(
        self, letters: Mapping[str, int], sequences: int, total: int, part: bool = False
    ) -> None:
        self.letters, self.sequences, self.total = dict(letters), sequences, total
        self.part = part  # of sequences that are read one chunk at a time
        super().__init__(dict(letters), sequences, total, part)

    def of_a_part(self) -> LettersWarning:
        """Return the warning for a chunk, which has the same text for every chunk."""
        return LettersWarning(self.letters, self.sequences, self.total, part=True)

    def __str__(self) -> str:
        if self.part:
            return (
                "some letters of these sequences are not scored; they were replaced or left out; "
                "unknown_letters='fail' refuses such sequences"
            )
        told = ", ".join(f"{done}: {count:,}" for done, count in self.letters.items())
        n = sum(self.letters.values())
        return (
            f"{n:,} letter{'s' * (n > 1)} in {self.sequences:,} of {self.total:,} sequences "
            f"{'are' if n > 1 else 'is'} not scored, and replaced or left out ({told}); "
            "unknown_letters='fail' refuses such sequences"
        )


@dataclass(frozen=True)
class Alphabet:
    """The letters that a matrix scores, and how others are read."""

    name: str  # of the matrix
    letters: str
    nucleotides: bool
    amino_acids: bool

    @property
    def wildcard(self) -> str:
        """The wildcard letter, which all matrices have."""
        return "N" if self.nucleotides else "X"

    @property
    def spelling(self) -> dict[int, int]:
        """A table for `str.translate`: converts to upper case (if the matrix uses it), and RNA to
        DNA."""
        table = dict(UPPER) if self.letters == self.letters.upper() else {}
        if self.nucleotides:
            table[ord("U")] = ord("T")
            if ord("u") in table:
                table[ord("u")] = ord("T")
        return table

    def read(self, given: str, policy: str, done: Counter[str]) -> str:
        """Return the sequence with scored letters only, and count the replacements in `done`.

        A `ValueError` names a letter that cannot be read.
        """
        sequence = given.translate(self.spelling)
        foreign = set(sequence) - set(self.letters)
        if foreign:
            changes = {letter: self._reading(letter, policy) for letter in foreign}
            if policy == "map" and "*" in foreign:  # a final stop is not an amino acid
                ended = sequence.rstrip("*")
                if len(ended) < len(sequence):
                    done["* left out"] += len(sequence) - len(ended)
                sequence = ended
            refused = [letter for letter, reading in changes.items() if reading is None]
            if refused:
                place = min(sequence.index(letter) for letter in refused)
                raise ValueError(
                    f"contains {given[place]!r} at position {place + 1}, which is not scored with "
                    f"{self.name}; remove it, or have it read as {self.wildcard}: "
                    "measure_params={'unknown_letters': 'X'}"
                )
            for letter, count in Counter(c for c in sequence if c in foreign).items():
                reading = changes[letter]
                done[f"{letter} as {reading}" if reading else f"{letter} left out"] += count
            sequence = sequence.translate({ord(a): b for a, b in changes.items()})
        if not sequence:
            raise ValueError("is empty" if not given else "contains only gaps and stops")
        return sequence

    def _reading(self, letter: str, policy: str) -> str | None:
        """Return what a letter is read as: "" if it is left out, None if it is refused."""
        if policy == "fail":
            return None
        if policy == "X":
            return self.wildcard
        if policy == "skip" or letter in GAPS:
            return ""
        if self.amino_acids and letter in _AMINO_ACIDS:
            return _AMINO_ACIDS[letter]
        known = letter == "*" or letter in string.ascii_letters
        return self.wildcard if known else None


def reverse_complement(sequence: str) -> str:
    """Return the other strand of DNA, read in its own direction.

    Examples
    --------
    >>> from krein.measures.letters import reverse_complement
    >>> reverse_complement("AACGR")
    'YCGTT'
    """
    return sequence.translate(_COMPLEMENT)[::-1]


def refused(row: int, given: str, reason: str) -> RefusedObject:
    """Return the error that names an unreadable sequence and the reason."""
    about = "" if reason == "is empty" else f"({excerpt(given)}) "
    return RefusedObject("sequence", row, f"{about}{reason}")
