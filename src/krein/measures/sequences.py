"""Alignment scores of biological sequences."""

from __future__ import annotations

import string
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyopal
from numpy.typing import NDArray
from scoring_matrices import ScoringMatrix

from .base import Array, Measure, Objects, RefusedObject, as_list, excerpt


class _Scoring(NamedTuple):
    """A scoring matrix and what the sums over it need."""

    matrix: Any  # ScoringMatrix
    letters: str  # those of its alphabet that the aligner takes
    self_score: Array  # (256,) by byte: score of a letter with itself
    dominant: NDArray[np.bool_]  # (256,) by byte: no other letter scores more with it


@lru_cache(maxsize=32)
def _scoring(name: str) -> _Scoring:
    """Return the scoring matrix of that name, checked to be one that Opal can use."""
    try:
        matrix = ScoringMatrix.from_name(name)
    except ValueError:
        raise ValueError(
            f"no scoring matrix is called {name!r}; there are "
            f"{', '.join(sorted(ScoringMatrix.BUILTIN_MATRICES))}"
        ) from None
    if not matrix.is_integer():
        raise ValueError(f"the scores of {name} are not integers, as the aligner needs them")
    if not matrix.is_symmetric():
        raise ValueError(f"{name} is not symmetric: a with b would not score as b with a")
    M = np.array(matrix, dtype=np.float64)
    letters = np.frombuffer(matrix.alphabet.encode("ascii"), dtype=np.uint8)
    self_score = np.zeros(256)
    self_score[letters] = np.diag(M)
    dominant = np.zeros(256, dtype=bool)
    dominant[letters] = (np.diag(M) > 0) & (np.diag(M) >= M.max(axis=1))
    # Opal encodes letters alone: "*", which stands in most matrices, it cannot align
    usable = "".join(letter for letter in matrix.alphabet if letter.isalpha())
    return _Scoring(matrix, usable, self_score, dominant)


_aligners = threading.local()

# letters of other alphabets are not scored, and some become two in upper case
_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)


@dataclass(frozen=True)
class _Alignment(Measure):
    """Scores of optimal alignments with affine gaps (Gotoh 1982), by Opal's SIMD kernels.

    A gap of k letters costs `gap_open` + (k − 1)·`gap_extend`. O(|a|·|b|) a pair.
    """

    matrix: str = "BLOSUM62"
    gap_open: int = 11
    gap_extend: int = 1
    normalize: bool = True
    unknown: str | None = None

    kind = "similarity"
    psd = False  # Saigo et al. 2004; normalised, small samples look as if it were
    releases_gil = True
    block_pairs = 2**15
    algorithm: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        for cost in (self.gap_open, self.gap_extend):
            if cost != int(cost) or cost < 0:
                raise ValueError(f"gap costs are whole numbers, 0 or more; got {cost}")
        object.__setattr__(self, "gap_open", int(self.gap_open))
        object.__setattr__(self, "gap_extend", int(self.gap_extend))
        letters = _scoring(self.matrix).letters
        if self.unknown is not None and (len(self.unknown) != 1 or self.unknown not in letters):
            raise ValueError(f"unknown={self.unknown!r} is not a letter of {self.matrix}")

    def check(self, objects: Any) -> Objects:
        """Return the sequences in upper case, letters the matrix does not score replaced.

        An empty sequence is refused: it aligns with nothing.
        """
        sequences = as_list(objects, "sequence")
        letters = _scoring(self.matrix).letters
        fold = letters == letters.upper()
        scored = set(letters)
        checked = []
        for row, given in enumerate(sequences):
            sequence = given.translate(_UPPER) if fold else given
            if not sequence:
                raise RefusedObject("sequence", row, "is empty")
            foreign = set(sequence) - scored
            if foreign:
                if self.unknown is None:
                    place = min(sequence.index(letter) for letter in foreign)
                    raise RefusedObject(
                        "sequence",
                        row,
                        f"({excerpt(given)}) contains {given[place]!r} at position {place + 1}, "
                        f"which is not scored with {self.matrix}; take it out, or take X for it: "
                        "measure_params={'unknown': 'X'}",
                    )
                sequence = sequence.translate({ord(letter): self.unknown for letter in foreign})
            checked.append(sequence)
        if self.normalize:
            selves = self._self_scores(checked)
            if (selves <= 0).any():
                row = int(np.argmin(selves > 0))
                raise RefusedObject(
                    "sequence",
                    row,
                    f"({excerpt(checked[row])}) scores {selves[row]:g} with itself and cannot be "
                    "normalised; normalize=False takes raw scores",
                )
        return checked

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the scores. Opal compares a query with a whole database, and is the faster
        the larger the database: the larger side makes it.
        """
        scores = self._align(B, A).T if len(A) > len(B) else self._align(A, B)
        if self.normalize:
            scores /= np.sqrt(self._self_scores(A))[:, None]
            scores /= np.sqrt(self._self_scores(B))
        return scores

    def diagonal(self, A: Objects) -> Array:
        """Return the score of each sequence with itself; 1 where scores are normalised."""
        return np.ones(len(A)) if self.normalize else self._self_scores(A)

    def _align(self, queries: Objects, targets: Objects) -> Array:
        aligner = self._aligner()
        database = pyopal.Database(targets, alphabet=aligner.alphabet)
        scores = np.empty((len(queries), len(targets)))
        for row, query in zip(scores, queries, strict=True):
            # "buckets", its default, loses some 50 bytes a pair; it is faster below a few hundred
            # targets only, by up to a fifth
            hits = aligner.align(
                query, database, mode="score", algorithm=self.algorithm, overflow="simple"
            )
            row[:] = [hit.score for hit in hits]
        return scores

    def _aligner(self) -> Any:
        """Return this thread's aligner: building one costs as much as some alignments."""
        key = (self.matrix, self.gap_open, self.gap_extend)
        if getattr(_aligners, "key", None) != key:
            _aligners.value = pyopal.Aligner(
                _scoring(self.matrix).matrix, int(self.gap_open), int(self.gap_extend)
            )
            _aligners.key = key
        return _aligners.value

    def _self_scores(self, sequences: Objects) -> Array:
        """Return k(x, x), by adding up the matrix's diagonal wherever that is the answer.

        Where every letter of x scores more than zero with itself and no more with any other,
        no alignment of x with itself beats the identity: each letter is paired once at most,
        with at most its own self-score.
        """
        scoring = _scoring(self.matrix)
        scores = np.empty(len(sequences))
        for i, sequence in enumerate(sequences):
            letters = np.frombuffer(sequence.encode("ascii"), dtype=np.uint8)
            if scoring.dominant[letters].all():
                scores[i] = scoring.self_score[letters].sum()
            else:
                scores[i] = _aligned_self_score(self, sequence)
        return scores


@lru_cache(maxsize=2**14)
def _aligned_self_score(measure: _Alignment, sequence: str) -> float:
    """Return k(x, x) by alignment, remembered: landmarks meet every block."""
    return float(measure._align([sequence], [sequence])[0, 0])


@dataclass(frozen=True)
class SmithWaterman(_Alignment):
    """Score of the best local alignment (Smith & Waterman 1981).

    By default normalised, k(a, b) / √(k(a, a)·k(b, b)): raw scores grow with the length of
    the sequences, and a classifier would see length before likeness. `normalize=False` gives
    the raw scores. Lower case is read as upper case; a letter that `matrix` does not score is
    an error unless `unknown` names the letter to take for it. A gap of k letters costs
    `gap_open` + (k − 1)·`gap_extend`. For DNA name a matrix of nucleotides, "NUC.4.4": A, C, G and
    T are amino acids too. O(|a|·|b|) a pair, by Opal's SIMD kernels.

    Examples
    --------
    >>> from krein.measures.sequences import SmithWaterman
    >>> measure = SmithWaterman(normalize=False)
    >>> measure.block(measure.check(["HEAGAWGHEE"]), measure.check(["PAWHEAE"]))
    array([[17.]])
    """

    name = "smith-waterman"
    algorithm = "sw"


@dataclass(frozen=True)
class NeedlemanWunsch(_Alignment):
    """Score of the best global alignment (Needleman & Wunsch 1970), end gaps counted.

    By default normalised, k(a, b) / √(k(a, a)·k(b, b)). Parameters, letters and cost as for
    `SmithWaterman`. Unrelated sequences score below zero.

    Examples
    --------
    >>> from krein.measures.sequences import NeedlemanWunsch
    >>> measure = NeedlemanWunsch(normalize=False)
    >>> measure.block(measure.check(["HEAGAWGHEE"]), measure.check(["PAWHEAE"]))
    array([[2.]])
    """

    name = "needleman-wunsch"
    algorithm = "nw"
