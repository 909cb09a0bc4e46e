"""Alignment scores of biological sequences: which letters are scored, how others are read, and the
measures."""

from __future__ import annotations

import string
import threading
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyopal
from numpy.typing import NDArray
from scoring_matrices import ScoringMatrix

from ..core.shapes import Array
from ..wording import measure_parameter
from .alignments import MOST_CELLS, SideBySide, align, as_words
from .base import Measure, random_strings
from .features import FeatureMap, NGrams, reverse_complement
from .objects import (
    NUCLEOTIDE_SHARE,
    NUCLEOTIDES,
    Objects,
    RefusedObject,
    as_list,
    excerpt,
    unframed,
)

POLICIES = ("map", "X", "skip", "fail")

GAPS = "-."

UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
# letters of other alphabets are not scored, and some become two in upper case

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
    >>> from krein.measures.sequences import LettersWarning
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

    def __str__(self) -> str:
        if self.part:
            return (
                "some letters of these sequences are not scored; they were replaced or left out; "
                f"{measure_parameter('unknown_letters', 'fail')} refuses such sequences"
            )
        counts = ", ".join(f"{done}: {count:,}" for done, count in self.letters.items())
        n = sum(self.letters.values())
        return (
            f"{n:,} letter{'s' * (n > 1)} in {self.sequences:,} of {self.total:,} sequences "
            f"{'are' if n > 1 else 'is'} not scored, and replaced or left out ({counts}); "
            f"{measure_parameter('unknown_letters', 'fail')} refuses such sequences"
        )


class UnreadableSequence(ValueError):
    """A sequence that a matrix cannot score: the `reason` and the `remedy`, if there is one."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason, remedy)
        self.reason, self.remedy = reason, remedy

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}" if self.remedy else self.reason


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

    @cached_property
    def scored(self) -> frozenset[str]:
        """The letters as a set."""
        return frozenset(self.letters)

    @cached_property
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

        An `UnreadableSequence` names a letter that cannot be read.
        """
        sequence = given.translate(self.spelling)
        foreign = set(sequence) - self.scored
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
                raise UnreadableSequence(
                    f"contains {given[place]!r} at position {place + 1}, which is not scored with "
                    f"{self.name}",
                    f"remove it, or have it read as {self.wildcard}: "
                    f"{measure_parameter('unknown_letters', 'X')}",
                )
            for letter, count in Counter(c for c in sequence if c in foreign).items():
                reading = changes[letter]
                done[f"{letter} as {reading}" if reading else f"{letter} left out"] += count
            sequence = sequence.translate({ord(a): b for a, b in changes.items()})
        if not sequence:
            raise UnreadableSequence("contains only gaps and stops" if given else "is empty")
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


STRAND_LETTERS = 8
"""Length of the n-grams that tell the strands of DNA apart."""

STRAND_EVIDENCE = 1.0
"""A sequence is assumed to be on the other strand if its score is this many times what n-grams with
random signs would give. All 935 reads of 16S genes of 100 letters or more are told apart with any
value up to 4; a sequence unlike all known ones may be turned, which does not matter."""

ONE_STRAND = 0.95
"""If a smaller share of known sequences agree on a strand, they are on both."""


class StrandDetector:
    """Tells whether DNA is on the strand of known sequences, by its n-grams, without a comparison.

    With counts m_w of n-grams in the known sequences, and w′ the reverse complement of w, the score
    of a sequence is Σ_w log((m_w + 1)/(m_w′ + 1)): positive on their strand, negative on the other.

    Examples
    --------
    >>> from krein.measures.sequences import StrandDetector, reverse_complement
    >>> known = ["ACGGATTCAGGACCTTGAAC", "ACGGATTCAGGTCCTTGAAC", "ACGGATTCAGGACCTAGAAC"]
    >>> detector = StrandDetector(known)
    >>> new = "ACGGATTCAGGACCTTGATT"
    >>> detector.is_turned(new), detector.is_turned(reverse_complement(new))
    (False, True)
    """

    def __init__(self, known: Sequence[str]) -> None:
        counts = [_ngram_counts(half) for half in (known[::2], known[1::2])]
        self.odds = _strand_odds(counts[0] + counts[1])
        self.one_strand = True
        if len(known) >= 4:  # each half is tested with the other
            odds = [_strand_odds(one) for one in counts[::-1]]
            agree = [float(odds[i % 2][_ngram_codes(one)].sum()) > 0 for i, one in enumerate(known)]
            self.one_strand = sum(agree) >= ONE_STRAND * len(agree)

    def is_turned(self, sequence: str) -> bool:
        """Whether a sequence is on the other strand; never if known ones are on both."""
        odds = self.odds[_ngram_codes(sequence)]
        limit = -STRAND_EVIDENCE * np.sqrt(np.square(odds).sum())
        return self.one_strand and bool(odds.sum() < limit)


_DIGITS = np.full(256, 4, dtype=np.int64)
_DIGITS[np.frombuffer(b"ACGTUacgtu", dtype=np.uint8)] = [0, 1, 2, 3, 3] * 2


def _ngram_codes(sequence: str) -> NDArray[np.int64]:
    """Return the n-grams of a sequence as numbers below 4^n; those with other letters are left out.

    >>> _ngram_codes("AAAAAAAACNG").tolist()
    [0, 1]
    """
    n, digits = STRAND_LETTERS, _DIGITS[np.frombuffer(sequence.encode("latin-1", "replace"), "u1")]
    if len(digits) < n:
        return np.empty(0, dtype=np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(digits, n)
    good = (windows < 4).all(axis=1)
    return windows[good] @ (4 ** np.arange(n - 1, -1, -1))


def _ngram_counts(known: Sequence[str]) -> Array:
    """Return how often each n-gram (4^n,) occurs."""
    codes = [_ngram_codes(one) for one in known]
    return np.bincount(
        np.concatenate([*codes, np.empty(0, dtype=np.int64)]), minlength=4**STRAND_LETTERS
    ).astype(np.float64)


def _strand_odds(counts: Array) -> Array:
    """Return log((m_w + 1)/(m_w′ + 1)) of each n-gram (4^n,)."""
    turned, rest = np.zeros(len(counts), dtype=np.int64), np.arange(len(counts))
    for _ in range(STRAND_LETTERS):
        rest, digit = np.divmod(rest, 4)
        turned = 4 * turned + 3 - digit
    found: Array = np.log1p(counts) - np.log1p(counts[turned])
    return found


class Scoring(NamedTuple):
    """A scoring matrix, and derived quantities."""

    matrix: Any  # ScoringMatrix
    alphabet: Alphabet  # the letters that the aligner accepts
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
    dominant[letters] = np.diag(M) >= M.max(axis=1)
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
    return Scoring(matrix, alphabet, self_score, dominant, strands)


PROTEIN_MATRIX, NUCLEOTIDE_MATRIX = "BLOSUM62", "NUC.4.4"
"""The choices of "auto"."""

MOST_COST = 10_000
"""Maximum cost of a gap: far more than any score, and few enough for sums in 32 bits."""

_aligners = threading.local()


@dataclass(frozen=True)
class _Alignment(Measure):
    """Scores of optimal alignments with affine gaps (Gotoh 1982), by Opal's SIMD kernels.

    A gap of k letters costs `gap_open` + (k − 1)·`gap_extend`. O(|a|·|b|) per pair.
    """

    matrix: str = "auto"
    gap_open: int = 11
    gap_extend: int = 1
    normalize: bool = True
    unknown_letters: str = "map"
    both_strands: bool = False

    kind = "similarity"
    psd = False  # Saigo et al. 2004; small samples of normalised scores may look psd
    releases_gil = True
    block_pairs = 2**16  # Opal is twice as fast with 400 targets as with 200
    algorithm: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("gap_open", "gap_extend"):
            cost = getattr(self, name)
            if cost != cost or not 0 <= cost <= MOST_COST or cost != int(cost):
                raise ValueError(
                    f"gap costs must be whole numbers from 0 to {MOST_COST:,}; got {cost}"
                )
            object.__setattr__(self, name, int(cost))
        if self.unknown_letters not in POLICIES:
            raise ValueError(
                f"unknown_letters must be one of {', '.join(map(repr, POLICIES))}; "
                f"got {self.unknown_letters!r}"
            )
        strands = self.undecided() or get_scoring(self.matrix).strands
        if self.both_strands and not strands:
            raise ValueError(
                f"both_strands needs DNA or RNA, scored with {NUCLEOTIDE_MATRIX}; the matrix is "
                f"{self.matrix}"
            )

    def feature_map(
        self, contents: Objects, rng: np.random.Generator, *, nearest: bool = False
    ) -> tuple[FeatureMap, Any] | None:
        """Return n-grams, of both strands if both are compared."""
        return NGrams.fit_transform(contents, nearest=nearest, both_strands=self.both_strands)

    def content_keys(self, objects: Objects, first: int = 0) -> NDArray[np.uint64]:
        """Return one number (N,) per sequence; if both strands are compared, they have the same."""
        if self.both_strands:
            objects = [min(one, reverse_complement(one)) for one in objects]
        return super().content_keys(objects, first)

    def undecided(self) -> bool:
        """Whether the matrix is still to be chosen from the letters."""
        return self.matrix == "auto"

    def decide(self, objects: Any) -> Self:
        """Return the measure with a matrix for these letters: nucleotides or amino acids."""
        if not self.undecided():
            return self
        given = unframed(objects)
        sequences = given.ravel().tolist() if isinstance(given, np.ndarray) else list(given)
        nucleotides = are_nucleotides(sequences)
        return replace(self, matrix=NUCLEOTIDE_MATRIX if nucleotides else PROTEIN_MATRIX)

    def check(self, objects: Any) -> Objects:
        """Return the sequences in upper case, in letters that the matrix scores.

        One `LettersWarning` says how many letters were replaced. Empty sequences are refused,
        because they align with nothing.
        """
        checked, warning = self._read(objects)
        if warning is not None:
            warnings.warn(warning, stacklevel=2)
        return checked

    def check_part(self, objects: Any) -> Objects:
        """Return the sequences of one chunk; the warning contains no counts."""
        checked, warning = self._read(objects, part=True)
        if warning is not None:
            warnings.warn(warning, stacklevel=2)
        return checked

    def _check_with(self, objects: Any, others: Objects | None) -> Objects:
        return self._read(objects)[0]

    def _read(self, objects: Any, part: bool = False) -> tuple[list[str], LettersWarning | None]:
        """Return the sequences, and a warning if there were unknown letters."""
        if self.undecided():
            return self.decide(objects)._read(objects, part)
        sequences, alphabet = as_list(objects, "sequence"), get_scoring(self.matrix).alphabet
        checked, done, touched = [], Counter[str](), 0
        for row, given in enumerate(sequences):
            sequence = given.translate(alphabet.spelling)
            if not sequence or not alphabet.scored.issuperset(sequence):
                before = done.total()
                try:
                    sequence = alphabet.read(given, self.unknown_letters, done)
                except UnreadableSequence as error:
                    about = excerpt(given) if given else ""
                    raise RefusedObject("sequence", row, str(error), about) from None
                touched += done.total() > before
            checked.append(sequence)
        selves = self._self_scores(checked) if self.normalize else np.ones(1)
        if (selves <= 0).any():
            row = int(np.argmin(selves > 0))
            reason = f"scores {selves[row]:g} with itself and cannot be normalised"
            remedy = "normalize=False uses raw scores"
            raise RefusedObject("sequence", row, f"{reason}; {remedy}", excerpt(checked[row]))
        return checked, LettersWarning(done, touched, len(sequences), part) if done else None

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the scores. Opal compares a query with a whole database and is faster the larger
        the database is, so the larger side becomes the database.
        """
        if self.undecided():
            return self.decide([*A, *B]).block(A, B)
        scores = self._align(B, A).T if len(A) > len(B) else self._align(A, B)
        if self.normalize:
            scores /= np.sqrt(self._self_scores(A))[:, None]
            scores /= np.sqrt(self._self_scores(B))
        return scores

    def diagonal(self, A: Objects) -> Array:
        """Return the score of each sequence with itself; 1 if scores are normalised."""
        if self.normalize:
            return np.ones(len(A))
        return self.decide(A)._self_scores(A)

    def random_objects(
        self, objects: Objects, sizes: Array, rng: np.random.Generator
    ) -> Objects | None:
        """Return sequences of these lengths, with letters drawn from the given sequences.

        Wildcards are left out: a few of them alone could not be normalised.
        """
        positive = get_scoring(self.decide(objects).matrix).self_score > 0
        given = "".join(self._in_order(objects))
        letters = "".join(letter for letter in given if positive[ord(letter)])
        return random_strings(letters, sizes, rng)

    def side_by_side(self, a: Any, b: Any) -> SideBySide:
        """Return the best alignment, with the other strand if that scores more."""
        if len(a) * len(b) > MOST_CELLS:
            return as_words(a, b)
        matrix = get_scoring(self.decide([a, b]).matrix).matrix
        strands = [a, reverse_complement(a)] if self.both_strands else [a]
        found = [
            align(one, b, matrix, self.gap_open, self.gap_extend, local=self.algorithm == "sw")
            for one in strands
        ]
        best = int(np.argmax([score for score, _ in found]))
        return replace(found[best][1], reversed=best > 0)

    def _align(self, queries: Objects, targets: Objects) -> Array:
        aligner = _aligner(self)
        # Opal aligns about 32 targets at once and gives the next target to the first free lane:
        # with the longest first, no lane is left with a long one at the end
        order = sorted(range(len(targets)), key=lambda j: -len(targets[j]))
        database = pyopal.Database([targets[j] for j in order], alphabet=aligner.alphabet)
        scores = np.empty((len(queries), len(targets)))
        for row, query in zip(scores, queries, strict=True):
            row[order] = _scores(aligner, query, database, self.algorithm)
            if self.both_strands:
                other = _scores(aligner, reverse_complement(query), database, self.algorithm)
                row[order] = np.maximum(row[order], other)
        return scores

    def _self_scores(self, sequences: Objects) -> Array:
        """Return k(x, x): the sum of the letters' scores with themselves if that is certain.

        If no letter of x scores higher with another letter, or in a gap, the identity is the best
        alignment of x with itself or with its other strand: each letter is in a gap or paired at
        most once, with at most its own self-score. A local alignment leaves out the ends of x if
        their letters score less than 0.
        """
        scoring = get_scoring(self.matrix)
        gap = -min(self.gap_open, self.gap_extend)  # the most that a letter in a gap scores
        certain = scoring.dominant & (scoring.self_score >= gap)
        plain = certain & (scoring.self_score > 0)
        scores = np.empty(len(sequences))
        for start in range(0, len(sequences), SELF_SCORED):
            some = sequences[start : start + SELF_SCORED]
            letters = np.frombuffer("".join(some).encode("ascii"), dtype=np.uint8)
            ends = np.cumsum([len(one) for one in some])
            sums = np.append(0.0, np.cumsum(scoring.self_score[letters]))
            odd = np.append(0, np.cumsum(~plain[letters]))
            first = np.append(0, ends[:-1])
            scores[start : start + len(some)] = sums[ends] - sums[first]
            for i in np.flatnonzero(odd[ends] > odd[first]).tolist():
                own = slice(first[i], ends[i])
                if not certain[letters[own]].all():
                    scores[start + i] = _aligned_self_score(self, some[i])
                elif self.algorithm == "sw":
                    part = sums[first[i] : ends[i] + 1]
                    scores[start + i] = (part - np.minimum.accumulate(part)).max()
        return scores


SELF_SCORED = 256
"""Number of sequences whose scores with themselves are summed at once."""


def _aligner(measure: _Alignment) -> Any:
    """Return this thread's aligner for a measure; building one costs a few alignments."""
    key = (measure.matrix, measure.gap_open, measure.gap_extend)
    if getattr(_aligners, "key", None) != key:
        matrix = get_scoring(measure.matrix).matrix
        _aligners.value = pyopal.Aligner(matrix, measure.gap_open, measure.gap_extend)
        _aligners.key = key
    return _aligners.value


def are_nucleotides(sequences: Sequence[Any]) -> bool:
    """Whether the letters of all sequences together are those of DNA or RNA. Linear time.

    Examples
    --------
    >>> from krein.measures.sequences import are_nucleotides
    >>> are_nucleotides(["ACGUU", "acgn"]), are_nucleotides(["ACGT", "MKVLAW"])
    (True, False)
    """
    counts = np.zeros(256, dtype=np.int64)
    for start in range(0, len(sequences), 4096):
        part = "".join(s for s in sequences[start : start + 4096] if isinstance(s, str))
        letters = part.translate(UPPER).encode("ascii", errors="replace")
        counts += np.bincount(np.frombuffer(letters, dtype=np.uint8), minlength=256)
    total = sum(int(counts[ord(letter)]) for letter in string.ascii_uppercase)
    nucleotides = sum(int(counts[ord(letter)]) for letter in NUCLEOTIDES)
    return total > 0 and nucleotides >= NUCLEOTIDE_SHARE * total


def _scores(aligner: Any, query: str, database: Any, algorithm: str) -> list[int]:
    # "buckets", the default for overflow, leaks some 50 bytes per pair; it is faster only below a
    # few hundred targets, by up to a fifth
    hits = aligner.align(query, database, mode="score", algorithm=algorithm, overflow="simple")
    return [hit.score for hit in hits]


@lru_cache(maxsize=2**14)
def _aligned_self_score(measure: _Alignment, sequence: str) -> float:
    """Return k(x, x) by alignment, cached because landmarks occur in every block."""
    return float(measure._align([sequence], [sequence])[0, 0])


@dataclass(frozen=True)
class SmithWaterman(_Alignment):
    """Score of the best local alignment (Smith & Waterman 1981).

    Normalised by default: raw scores grow with the length of the sequences, so a classifier would
    see length rather than similarity. O(|a|·|b|) per pair, with Opal's SIMD kernels. Lower case is
    read as upper case and, in DNA and RNA, U as T.

    Parameters
    ----------
    matrix : str, default="auto"
        Name of the scoring matrix, for example "BLOSUM45" or "PAM250". "auto" chooses it from the
        letters of the training sequences: NUC.4.4 for DNA and RNA, BLOSUM62 for proteins. A fitted
        model keeps the choice.
    gap_open : int, default=11
        Cost of the first letter of a gap, in the unit of the matrix. A gap of k letters costs
        `gap_open` + (k − 1)·`gap_extend`.
    gap_extend : int, default=1
        Cost of each further letter of a gap, in the unit of the matrix.
    normalize : bool, default=True
        Return k(a, b) / √(k(a, a)·k(b, b)), which is 1 for a sequence and itself, instead of the
        raw score.
    unknown_letters : {"map", "X", "skip", "fail"}, default="map"
        What happens to letters that the matrix does not score. "map" reads them as is customary (U
        as C, O as K, any other letter as X, or N in DNA; a final stop and the gaps - and . are left
        out), "X" reads all of them as X or N, "skip" leaves out these letters, and "fail" refuses
        the sequence. A `LettersWarning` says how many there were. On the command line, by contrast,
        `krein predict --unknown-letters skip` leaves out the whole sequence.
    both_strands : bool, default=False
        For DNA and RNA, also align the reverse complement of one sequence, and take the larger
        score. Doubles the cost.

    See Also
    --------
    NeedlemanWunsch : Aligns the sequences from end to end.
    krein.measures.strings.Levenshtein : Number of edits; any characters, no scoring matrix.

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

    Normalised by default; unrelated sequences score below zero. O(|a|·|b|) per pair, with Opal's
    SIMD kernels. Lower case is read as upper case and, in DNA and RNA, U as T.

    Parameters
    ----------
    matrix : str, default="auto"
        Name of the scoring matrix, for example "BLOSUM45" or "PAM250". "auto" chooses it from the
        letters of the training sequences: NUC.4.4 for DNA and RNA, BLOSUM62 for proteins. A fitted
        model keeps the choice.
    gap_open : int, default=11
        Cost of the first letter of a gap, in the unit of the matrix. A gap of k letters costs
        `gap_open` + (k − 1)·`gap_extend`.
    gap_extend : int, default=1
        Cost of each further letter of a gap, in the unit of the matrix.
    normalize : bool, default=True
        Return k(a, b) / √(k(a, a)·k(b, b)), which is 1 for a sequence and itself, instead of the
        raw score.
    unknown_letters : {"map", "X", "skip", "fail"}, default="map"
        What happens to letters that the matrix does not score. "map" reads them as is customary (U
        as C, O as K, any other letter as X, or N in DNA; a final stop and the gaps - and . are left
        out), "X" reads all of them as X or N, "skip" leaves out these letters, and "fail" refuses
        the sequence. A `LettersWarning` says how many there were. On the command line, by contrast,
        `krein predict --unknown-letters skip` leaves out the whole sequence.
    both_strands : bool, default=False
        For DNA and RNA, also align the reverse complement of one sequence, and take the larger
        score. Doubles the cost.

    See Also
    --------
    SmithWaterman : Aligns the most similar parts only.
    krein.measures.strings.Levenshtein : Number of edits; any characters, no scoring matrix.

    Examples
    --------
    >>> from krein.measures.sequences import NeedlemanWunsch
    >>> measure = NeedlemanWunsch(normalize=False)
    >>> measure.block(measure.check(["HEAGAWGHEE"]), measure.check(["PAWHEAE"]))
    array([[2.]])
    """

    name = "needleman-wunsch"
    algorithm = "nw"
