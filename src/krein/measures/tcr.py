"""TCRdist: how different two T-cell receptors are (Dash et al. 2017).

A chain of a receptor is its V gene and its CDR3 (from the cysteine to the phenylalanine or
tryptophan, both included: AIRR's `junction_aa`). Two letters cost 0 if they are the same, and
otherwise min(4, 4 − BLOSUM62). Two chains differ by

    the letters of CDR1, CDR2 and CDR2.5 of their V genes, in IMGT's numbering, where a gap costs 0
    + 3 · (the letters of the CDR3s without the first 3 and the last 2 + 4 · |length difference|)

where the shorter CDR3 has one gap. Its position is that of the least cost, or fixed. The chains of
a pair add up. Values are those of tcrdist3 0.3 (Mayer-Blackwell et al. 2021).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..core.shapes import Array, Indices
from ..wording import measure_parameter
from .alignments import ALIKE, GAP, OTHER, SAME, Letters, SideBySide
from .base import Measure
from .objects import Objects, Readable, RefusedObject, excerpt
from .receptors import (
    CHAINS,
    ORGANISMS,
    GenesWarning,
    UnknownGene,
    as_records,
    chains_of,
    get_genes,
    locus_of,
    word_of,
)
from .series import _kernel

CHOICES = ("auto", *CHAINS, "alpha-beta", "gamma-delta")

GAP_POSITIONS = ("best", "fixed")

# Letters and their costs

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
UNKNOWN = "X"
"""A letter of a CDR3 that could not be determined: it costs nothing, as in tcrdist3."""

_CHEAPER = {3: "AS DN EK FW HN IM KQ LV MV NS QR ST", 2: "DE EQ HY IL KR LM WY", 1: "FY IV"}
"""The pairs of letters that BLOSUM62 scores above 0, by their cost; all other pairs cost 4."""

GAP_COST, CDR3_WEIGHT = 4, 3
TRIMMED = (3, 2)
"""How many letters at either end of a CDR3 are not compared: the V and J genes determine them."""

_CODES = np.full(256, len(LETTERS), dtype=np.uint8)  # the last code is that of all other letters
_CODES[[ord(letter) for letter in LETTERS]] = np.arange(len(LETTERS))


def _letter_costs() -> NDArray[np.int64]:
    costs = np.zeros((len(LETTERS) + 1, len(LETTERS) + 1), dtype=np.int64)
    costs[:-1, :-1] = 4 * (1 - np.eye(len(LETTERS), dtype=np.int64))
    for cost, pairs in _CHEAPER.items():
        for pair in pairs.split():
            a, b = LETTERS.index(pair[0]), LETTERS.index(pair[1])
            costs[a, b] = costs[b, a] = cost
    return costs


COSTS = _letter_costs()


# Costs between genes


class GeneCosts(NamedTuple):
    """The costs (n, n) between the loops of the V genes of a chain, and each allele's row."""

    rows: Mapping[str, int]
    costs: NDArray[np.int64]


@lru_cache(maxsize=8)
def gene_costs(organism: str, letter: str) -> GeneCosts:
    """Return the costs between the V genes of a chain; δ chains also use genes of α."""
    loops = get_genes(organism).loops
    names = [name for name in loops if name[2] in ("DA" if letter == "D" else letter)]
    letters = np.array([list(loops[name].encode("ascii")) for name in names], dtype=np.uint8)
    codes = _CODES[letters]
    costs = np.zeros((len(names), len(names)), dtype=np.int64)
    for place in codes.T:
        costs += COSTS[np.ix_(place, place)]
    return GeneCosts({name: row for row, name in enumerate(names)}, costs)


# Kernels. In the code of a CDR3, letters beyond its length are never read.


@_kernel
def _cdr3_cost(a, n, b, m, costs, fixed):  # type: ignore[no-untyped-def]
    """Return the cost between two CDR3s of n and m letters. O(n + m).

    With the gap after `at` letters of the shorter one, the letters before it are compared from the
    left, and the others from the right. Moving the gap by one adds a pair and removes one.
    """
    left, right = TRIMMED
    cost = 0
    if n == m:
        for k in range(left, n - right):
            cost += costs[a[k], b[k]]
        return cost
    short = min(n, m)
    if fixed:
        first = min(6, 3 + (short - 5) // 2)
        last = first
    else:
        first, last = 5, short - 5
        while first > last:
            first, last = first - 1, last + 1
    for k in range(left, first):
        cost += costs[a[k], b[k]]
    for k in range(first, short - right):
        cost += costs[a[n - short + k], b[m - short + k]]
    least = cost
    for at in range(first, last):
        if at >= left:
            cost += costs[a[at], b[at]]
        if at < short - right:
            cost -= costs[a[n - short + at], b[m - short + at]]
        least = min(least, cost)
    return least + GAP_COST * abs(n - m)


@_kernel
def _add_block(out, genes, v, a, n, w, b, m, costs, fixed):  # type: ignore[no-untyped-def]
    """Add the costs of one chain between all objects; the v and w are rows of `genes`."""
    for i in range(len(v)):
        for j in range(len(w)):
            cost = _cdr3_cost(a[i], n[i], b[j], m[j], costs, fixed)
            out[i, j] += genes[v[i], w[j]] + CDR3_WEIGHT * cost


@_kernel
def _add_each(out, columns, genes, v, a, n, w, b, m, costs, fixed):  # type: ignore[no-untyped-def]
    """Add the costs of one chain between object i and the objects columns[i]."""
    for i in range(len(v)):
        for k in range(columns.shape[1]):
            j = columns[i, k]
            cost = _cdr3_cost(a[i], n[i], b[j], m[j], costs, fixed)
            out[i, k] += genes[v[i], w[j]] + CDR3_WEIGHT * cost


@_kernel
def _count_identical(a, n, b, m):  # type: ignore[no-untyped-def]
    """Return the largest number of identical letters of two CDR3s with one gap. O(n + m)."""
    short = min(n, m)
    found = 0
    for k in range(short):
        found += a[n - short + k] == b[m - short + k]
    most = found
    for at in range(short if n != m else 0):  # the gap moves behind the letter `at`
        found += a[at] == b[at]
        found -= a[n - short + at] == b[m - short + at]
        most = max(most, found)
    return most


@_kernel
def _add_identical(identical, columns, a, n, b, m):  # type: ignore[no-untyped-def]
    """Add the identical letters of one chain, and the columns that they are compared in."""
    for i in range(len(n)):
        for j in range(len(m)):
            identical[i, j] += _count_identical(a[i], n[i], b[j], m[j])
            columns[i, j] += max(n[i], m[j])


class Encoded(NamedTuple):
    """One chain of some receptors: rows of the V genes, and CDR3s as codes, with their lengths."""

    genes: NDArray[np.int64]
    codes: NDArray[np.uint8]  # (n, longest)
    lengths: NDArray[np.int64]


def _encode(chains: list[tuple[str, str]], rows: Mapping[str, int]) -> Encoded:
    genes = np.array([rows[gene] for gene, _ in chains], dtype=np.int64)
    lengths = np.array([len(cdr3) for _, cdr3 in chains], dtype=np.int64)
    longest = int(lengths.max(initial=1))
    text = "".join(cdr3.ljust(longest) for _, cdr3 in chains).encode("ascii")
    codes = _CODES[np.frombuffer(text, dtype=np.uint8)].reshape(len(chains), longest)
    return Encoded(genes, codes, lengths)


# The measure


@dataclass(frozen=True)
class TCRdist(Measure):
    """TCRdist of T-cell receptors, with one chain or two (Dash et al. 2017).

    Compares CDR1, CDR2 and CDR2.5 of the V genes and, with three times the weight, the CDR3s, by
    costs derived from BLOSUM62. Values are those of tcrdist3. O(|a| + |b|) per pair, with |a|
    letters in the CDR3s.

    A receptor is a dict, a row of a table, a tuple (V gene, CDR3, …) or a text such as "TRAV12-2
    CAVNFGGGKLIF TRBV6-5 CASSYSFTEAFF". Columns are recognised by name: those of tcrdist3
    (`v_a_gene`, `cdr3_a_aa`, `v_b_gene`, `cdr3_b_aa`), AIRR (`v_call`, `junction_aa`), VDJdb and
    10x. A gene without an allele is read as its allele `*01`. An unknown allele is read as `*01`
    too, and a gene with an older name by its present one; a `GenesWarning` names them. A
    receptor with an unknown gene is refused. The letter X in a CDR3 costs nothing; letters other
    than amino acids are refused.

    Parameters
    ----------
    organism : {"human", "mouse"}, default="human"
        The species whose V genes the receptors have.
    chains : str, default="auto"
        The chains that are compared: "alpha", "beta", "gamma", "delta", "alpha-beta" or
        "gamma-delta". "auto" takes those that at least half of the training objects have;
        receptors without one of these are refused. A fitted model keeps the choice.
    gap_position : {"best", "fixed"}, default="best"
        Where the gap of the shorter CDR3 is: where the cost is least, as tcrdist3 does by default,
        or after the sixth letter (earlier if it is short), as in Dash et al.

    See Also
    --------
    krein.measures.strings.Levenshtein : Number of edits between CDR3s alone.
    krein.measures.sequences.SmithWaterman : Alignment scores of protein sequences.

    Examples
    --------
    >>> from krein.measures.tcr import TCRdist
    >>> measure = TCRdist(chains="beta")
    >>> measure.check([("TRBV19", "CASSIRSSYEQYF")])
    ['TRBV19*01 CASSIRSSYEQYF']
    >>> measure.block(["TRBV19*01 CASSIRSSYEQYF"], ["TRBV19*01 CASSIRSAYEQYF"])
    array([[9.]])
    """

    organism: str = "human"
    chains: str = "auto"
    gap_position: str = "best"

    name = "tcrdist"
    kind = "dissimilarity"
    psd = False  # costs add up over letters: AA, AC, CC and CA cannot be embedded
    self_value = 0.0
    releases_gil = True

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = {"organism": ORGANISMS, "chains": CHOICES, "gap_position": GAP_POSITIONS}
        for field, choices in allowed.items():
            if getattr(self, field) not in choices:
                raise ValueError(
                    f"{field} must be one of {', '.join(map(repr, choices))}; "
                    f"got {getattr(self, field)!r}"
                )

    def undecided(self) -> bool:
        """Whether the chains are still to be chosen from the objects."""
        return self.chains == "auto"

    def decide(self, objects: Any) -> Self:
        """Return the measure for the chains that at least half of these objects have."""
        if not self.undecided():
            return self
        records = as_records(objects)
        if len(records) == 0:
            raise ValueError("there are no objects to compare")
        counts = dict.fromkeys(CHAINS.values(), 0)
        most = 0  # chains of one receptor
        for row, item in enumerate(records):
            try:
                letters = {locus_of(gene) or "" for gene, cdr3 in chains_of(item, row) if cdr3}
            except RefusedObject:
                continue
            if "G" in letters and "A" in letters:  # some V genes belong to α and δ
                letters = letters - {"A"} | {"D"}
            most = max(most, len(letters & counts.keys()))
            for letter in letters & counts.keys():
                counts[letter] += 1
        chosen = [word for word, x in CHAINS.items() if counts[x] and 2 * counts[x] >= len(records)]
        if "-".join(chosen) not in CHOICES:
            have = ", ".join(f"{counts[x]} {word}" for word, x in CHAINS.items() if counts[x])
            raise ValueError(
                f"cannot tell which chains to compare: of {len(records)} receptors, these have a V "
                f"gene and a CDR3: {have or 'none'}; set {measure_parameter('chains', 'beta')}"
            )
        if len(chosen) > most:
            have = " and ".join(f"{counts[CHAINS[word]]} have {word}" for word in chosen)
            raise ValueError(
                f"of {len(records)} receptors, {have}, but none has both: rows are joined in files "
                "that have a column 'cell_id', 'barcode' or 'complex.id', not in data frames; to "
                f"compare one chain, set {measure_parameter('chains', chosen[-1])} and leave the "
                "others out"
            )
        return replace(self, chains="-".join(chosen))

    @property
    def letters(self) -> str:
        """The letters of the chains, for example "AB"."""
        return "".join(CHAINS[word] for word in self.chains.split("-"))

    def check(self, objects: Any) -> Objects:
        """Return the receptors as text, with the alleles and CDR3s of the chains to compare."""
        return self._warned(objects, part=False)

    def check_part(self, objects: Any) -> Objects:
        """Return the receptors of one chunk; the warning has the same text for every chunk."""
        return self._warned(objects, part=True)

    def readable(self, objects: Any, others: Objects | None = None) -> Readable:
        """Return which receptors can be compared, and why the others cannot."""
        return super().readable(as_records(objects), others)

    def _warned(self, objects: Any, part: bool) -> list[str]:
        checked, told = self._read(objects)
        if told:
            warnings.warn(GenesWarning(told, part), stacklevel=3)
        return checked

    def _check_with(self, objects: Any, others: Objects | None) -> Objects:
        return self._read(objects)[0]

    def _read(self, objects: Any) -> tuple[list[str], dict[str, str]]:
        """Return the receptors as text, and the genes that were read as others."""
        if self.undecided():
            return self.decide(objects)._read(objects)
        told: dict[str, str] = {}
        return [
            self._receptor(item, row, told) for row, item in enumerate(as_records(objects))
        ], told

    def _receptor(self, item: Any, row: int, told: dict[str, str]) -> str:
        """Return a receptor as text, and note in `told` the genes that were read as others."""
        found: dict[str, str] = {}
        nameless = ""  # a CDR3 without a V gene; it does not matter if its chain is not compared
        for gene, cdr3 in chains_of(item, row):
            letter = locus_of(gene)
            if letter == "A" and "D" in self.letters:
                letter = "D"  # some V genes belong to both
            if not gene:
                nameless = cdr3
            if not gene or (letter is not None and letter not in self.letters):
                continue
            try:
                allele, differs = get_genes(self.organism).read(gene)
            except UnknownGene as error:
                reason = f"has the V gene {gene!r}, which {error.reason}"
                raise RefusedObject("receptor", row, reason) from error
            assert letter is not None  # or the gene would be unknown
            if letter in found:
                reason = f"has two {word_of(letter)} chains; leave one of them out"
                raise RefusedObject("receptor", row, reason, excerpt(gene, 20))
            if differs:
                told[gene] = allele
            found[letter] = f"{allele} {self._cdr3(cdr3, letter, row)}"
        for letter in self.letters:
            if letter in found:
                continue
            if nameless:
                reason = "has a CDR3 without a V gene; leave it out"
                raise RefusedObject("receptor", row, reason, excerpt(nameless, 30))
            others = [word for word in self.chains.split("-") if CHAINS[word] != letter]
            advice = measure_parameter("chains", others[0]) if others else ""
            remedy = f", or compare the other chain alone: {advice}" if advice else ""
            raise RefusedObject(
                "receptor", row, f"has no {word_of(letter)} chain; leave it out{remedy}"
            )
        return " ".join(found[letter] for letter in self.letters)

    @staticmethod
    def _cdr3(given: str, letter: str, row: int) -> str:
        cdr3 = given.upper()
        if not cdr3:
            reason = f"has no CDR3 of its {word_of(letter)} chain; leave it out"
            raise RefusedObject("receptor", row, reason)
        wrong = next((c for c in cdr3 if c not in LETTERS and c != UNKNOWN), None)
        if wrong is not None:
            reason = f"has {wrong!r} in the CDR3 of its {word_of(letter)} chain, not an amino acid"
            if wrong in "*_":  # a stop codon, or a codon that is not in frame
                reason += "; leave out receptors that are not productive"
            raise RefusedObject("receptor", row, reason, excerpt(given, 30))
        return cdr3

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the distances."""
        out = np.zeros((len(A), len(B)))
        for chain in self._encoded(A, B) if out.size else []:
            _add_block(out, *chain, COSTS, self.gap_position == "fixed")
        return out

    def each(self, A: Objects, B: Objects, columns: Indices) -> Array:
        """Return the distances (n, k) of receptor i of A from the receptors `columns[i]` of B."""
        out = np.zeros(columns.shape)
        if out.size:
            used, places = np.unique(columns, return_inverse=True)
            places = places.reshape(columns.shape)
            for chain in self._encoded(A, [B[j] for j in used]):
                _add_each(out, places, *chain, COSTS, self.gap_position == "fixed")
        return out

    def _encoded(self, A: Objects, B: Objects) -> Iterable[tuple[Any, ...]]:
        """Yield the costs between genes and both sides of each chain, for the kernels."""
        if self.undecided():
            yield from self.decide([A[0]])._encoded(A, B)
            return
        sides = [[text.split() for text in side] for side in (A, B)]
        for c, letter in enumerate(self.letters):
            rows, costs = gene_costs(self.organism, letter)
            both = [_encode([(p[2 * c], p[2 * c + 1]) for p in side], rows) for side in sides]
            yield (costs, *both[0], *both[1])

    def side_by_side(self, a: Any, b: Any) -> SideBySide:
        """Return the CDR3s in columns, one chain after the other."""
        both = [one.split()[1::2] for one in (a, b)]
        aligned = [_aligned(x, y, self.gap_position == "fixed") for x, y in zip(*both, strict=True)]
        first, second, marks = ("".join(parts) for parts in zip(*aligned, strict=True))
        lengths = [sum(map(len, cdr3s)) for cdr3s in both]
        return Letters(first, second, marks, lengths=(lengths[0], lengths[1]))


def _aligned(x: str, y: str, fixed: bool) -> tuple[str, str, str]:
    """Return two CDR3s with the gap where the measure puts it, and the marks of the columns."""
    short, apart = sorted((x, y), key=len)[0], abs(len(x) - len(y))
    codes = [_CODES[np.frombuffer(one.encode("ascii"), dtype=np.uint8)] for one in (x, y)]
    n, places = len(short), [0]
    if apart and fixed:
        places = [min(6, 3 + (n - 5) // 2)]
    elif apart:
        first, last = 5, n - 5
        while first > last:
            first, last = first - 1, last + 1
        places = list(range(first, last + 1))

    def cost(at: int) -> int:
        ends = [one[len(one) - n :] for one in codes]
        k = np.arange(n)
        both = [np.where(k < at, one[:n], end) for one, end in zip(codes, ends, strict=True)]
        return int(COSTS[both[0], both[1]][TRIMMED[0] : max(TRIMMED[0], n - TRIMMED[1])].sum())

    at = min(places, key=cost)
    gapped = [one[:at] + "-" * (apart if len(one) == n else 0) + one[at:] for one in (x, y)]
    marks = [
        GAP if "-" in (p, q) else SAME if p == q else ALIKE if _cheap(p, q) else OTHER
        for p, q in zip(*gapped, strict=True)
    ]
    return gapped[0], gapped[1], "".join(marks)


def _cheap(p: str, q: str) -> bool:
    return bool(COSTS[_CODES[ord(p)], _CODES[ord(q)]] < GAP_COST)


# Groups of near-identical receptors

GROUPED = 512
"""Number of receptors that are compared with all others at a time."""


def cdr3_groups(receptors: Objects, identity: float) -> Indices:
    """Return the group (N,) of each receptor; those of different groups differ in their CDR3s.

    The identity of two receptors is the share of their CDR3s' columns with the same letter, over
    all chains; the shorter CDR3 has one gap, where it leaves the most letters in agreement. Any two
    receptors with at least this `identity` are in the same group, also through others (single
    linkage). All pairs are compared: O(N²), about as fast as the measure.

    Examples
    --------
    >>> from krein.measures.tcr import cdr3_groups
    >>> texts = ["TRBV9*01 CASSIRSSYEQYF", "TRBV19*01 CASSIRSAYEQYF", "TRBV9*01 CASSPGF"]
    >>> cdr3_groups(texts, 0.9)
    array([0, 0, 1])
    """
    cdr3s = [text.split()[1::2] for text in receptors]
    parts = [_encode([("", one[c]) for one in cdr3s], {"": 0}) for c in range(len(cdr3s[0]))]
    # not csr_array: connected_components of SciPy 1.11 needs 32-bit indices
    graph = sparse.csr_matrix((len(cdr3s), len(cdr3s)), dtype=np.bool_)
    for start in range(0, len(cdr3s), GROUPED):
        rows = slice(start, start + GROUPED)
        shape = (len(cdr3s[rows]), len(cdr3s))
        identical, columns = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for part in parts:
            _add_identical(
                identical, columns, part.codes[rows], part.lengths[rows], part.codes, part.lengths
            )
        i, j = np.nonzero(identical >= identity * columns - 1e-9)
        near = (np.ones(len(i), np.bool_), (i + start, j))
        graph = graph + sparse.csr_matrix(near, shape=graph.shape)
    found: Indices = connected_components(graph, directed=False)[1].astype(np.intp)
    return found
