"""Scoring matrices for sequence alignment, and quantities derived from them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scoring_matrices import ScoringMatrix

from .base import Array
from .letters import Alphabet, reverse_complement


class Scoring(NamedTuple):
    """A scoring matrix, and derived quantities."""

    matrix: Any  # ScoringMatrix
    alphabet: Alphabet  # the letters that the aligner accepts
    spelling: dict[int, int]  # how they are written, for `str.translate`
    scored: frozenset[str]
    self_score: Array  # (256,) by byte: score of a letter with itself
    dominant: NDArray[np.bool_]  # (256,) by byte: no other letter scores more with it
    strands: bool  # whether complements score as the letters do


@lru_cache(maxsize=32)
def get_scoring(name: str) -> Scoring:
    """Return the scoring matrix of that name, or raise an error if Opal cannot use it."""
    try:
        matrix = ScoringMatrix.from_name(name)
    except ValueError:
        raise ValueError(
            f"unknown scoring matrix {name!r}; choose one of "
            f"{', '.join(sorted(ScoringMatrix.BUILTIN_MATRICES))}"
        ) from None
    if not matrix.is_integer():
        raise ValueError(f"the scores of {name} are not integers, which the aligner needs")
    if not matrix.is_symmetric():
        raise ValueError(
            f"{name} is not symmetric: the score of a with b would differ from that of b with a"
        )
    M = np.array(matrix, dtype=np.float64)
    letters = np.frombuffer(matrix.alphabet.encode("ascii"), dtype=np.uint8)
    self_score = np.zeros(256)
    self_score[letters] = np.diag(M)
    dominant = np.zeros(256, dtype=bool)
    dominant[letters] = (np.diag(M) > 0) & (np.diag(M) >= M.max(axis=1))
    # Opal encodes only letters; it cannot align "*", which most matrices contain
    usable = "".join(letter for letter in matrix.alphabet if letter.isalpha())
    nucleotides = "L" not in usable and set("ACGT") <= set(usable)
    amino_acids = "L" in usable and name != "3DI"  # its letters are shapes of the backbone
    alphabet = Alphabet(name, usable, nucleotides, amino_acids)
    strands = False
    if nucleotides:
        bases = usable.replace("U", "")
        own = [matrix.alphabet.index(letter) for letter in bases]
        other = [matrix.alphabet.index(reverse_complement(letter)) for letter in bases]
        strands = bool((M[np.ix_(own, own)] == M[np.ix_(other, other)]).all())
    spelling, scored = alphabet.spelling, frozenset(usable)
    return Scoring(matrix, alphabet, spelling, scored, self_score, dominant, strands)
