"""TCRdist: how different two T-cell receptors are (Dash et al. 2017).

A chain of a receptor is its V gene and its CDR3 (from the cysteine to the phenylalanine or
tryptophan, both included: AIRR's `junction_aa`). Two letters cost 0 if they are the same, and
otherwise min(4, 4 − BLOSUM62). Two chains differ by

    the letters of CDR1, CDR2 and CDR2.5 of their V genes, in IMGT's numbering, where a gap costs 0
    + 3 · (the letters of the CDR3s without the first 3 and the last 2 + 4 · |length difference|)

where the shorter CDR3 has one gap. Its position is that of the least cost, or fixed. The chains of
a pair add up. Values are those of tcrdist3 0.3 (Mayer-Blackwell et al. 2021).

A receptor is stored as text, with the gene and the CDR3 of each chain, such as "TRAV12-2*01 CAVNF
TRBV6-5*01 CASSF". The loops of V genes are in tcr_genes.txt, which names its source and licence.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..wording import measure_parameter
from .alignments import ALIKE, GAP, OTHER, SAME, Letters, SideBySide
from .base import Array, Indices, Measure, Objects, Readable, RefusedObject, RefusedType, excerpt
from .series import _kernel

ORGANISMS = ("human", "mouse")

CHAINS = {"alpha": "A", "beta": "B", "gamma": "G", "delta": "D"}
"""The letter of each chain in the names of its genes."""

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


# Genes

_GENE = re.compile(r"TC?R(?P<locus>[ABGD])V(?P<rest>[^\s*,;|()]+)(?:\*(?P<allele>\d+))?")


class UnknownGene(ValueError):
    """A name that is not that of a V gene with known loops: the `gene`, and a `remedy`."""

    def __init__(self, gene: str, organism: str, remedy: str) -> None:
        super().__init__(gene, organism, remedy)
        self.gene, self.organism, self.remedy = gene, organism, remedy

    @property
    def reason(self) -> str:
        """What is wrong with the gene, and the remedy."""
        return f"is not a {self.organism} gene with known loops; {self.remedy}"

    def __str__(self) -> str:
        return f"{self.gene!r} {self.reason}"


class GenesWarning(UserWarning):
    """Names of V genes that were read as another gene or allele: `genes` says as which.

    Examples
    --------
    >>> import warnings
    >>> from krein.measures import get_measure
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = get_measure("tcrdist").check(["TRBV19*07 CASSIRSSYEQYF"])
    >>> caught[0].message.genes
    {'TRBV19*07': 'TRBV19*01'}
    """

    def __init__(self, genes: Mapping[str, str], part: bool = False) -> None:
        self.genes, self.part = dict(genes), part
        super().__init__(dict(genes), part)

    def __str__(self) -> str:
        if self.part:  # the same text for every chunk
            return "some V genes or alleles are not known by their name, and were read as others"
        some = [f"{given} as {used}" for given, used in list(self.genes.items())[:5]]
        more = f" and {len(self.genes) - 5} more" if len(self.genes) > 5 else ""
        return f"V genes or alleles not known by their name: read {', '.join(some)}{more}"


def _key(gene: str) -> str:
    """Return a gene's name as it is looked up: TCRBV05-01 as TRBV5-1, TRAV14-DV4 as TRAV14DV4."""
    gene = gene.upper().replace("_", "-").replace("TCR", "TR", 1)
    gene = re.sub(r"/(?=\d).*", "", gene)  # TCRBV12-03/12-04: the first of them
    gene = re.sub(r"[-/]?(DV|OR)", r"\1", gene)
    return re.sub(r"(?<=\D)0+(?=\d)", "", gene)


@dataclass(frozen=True)
class Genes:
    """The V genes of an organism: their names, loops, and how names are read."""

    organism: str
    loops: Mapping[str, str]  # by allele: the three loops, one after the other
    alleles: Mapping[str, Mapping[str, str]]  # by key of the gene and number of the allele
    aliases: Mapping[str, str]  # key of the gene, by another key

    def read(self, name: str) -> tuple[str, bool]:
        """Return the allele that a name stands for, and whether the choice needs to be told.

        The allele *01 (or else the first known one) stands for a gene without an allele, and for
        an allele that is not known; *00 means that the allele was not determined. Of several genes
        ("TRBV12-3*01,TRBV12-4*01"), the first counts.
        """
        if name in self.loops:
            return name, False
        match = _GENE.search(name.upper())
        if match is None:
            raise UnknownGene(name, self.organism, "expected a name such as 'TRBV6-5*01'")
        key = _key(f"TR{match['locus']}V{match['rest']}")
        known = self.alleles.get(key) or self.alleles.get(self.aliases.get(key, ""))
        if known is None:
            raise UnknownGene(name, self.organism, self._remedy(key))
        number = match["allele"]
        if number in known:
            return known[number], key not in self.alleles
        told = number not in (None, "00") or key not in self.alleles
        return known.get("01") or known[min(known)], told

    def _remedy(self, key: str) -> str:
        near = [one for one in self.alleles if one.startswith(f"{key}-")][:3]
        for other in ORGANISMS:
            if not near and other != self.organism and key in get_genes(other).alleles:
                return f"{other} has it: {measure_parameter('organism', other)}"
        near = near or get_close_matches(key, list(self.alleles), n=3)
        names = [next(iter(self.alleles[one].values())).partition("*")[0] for one in near]
        return f"similar names: {', '.join(names)}" if names else "check its name"


@lru_cache(maxsize=len(ORGANISMS))
def get_genes(organism: str) -> Genes:
    """Return the V genes of "human" or "mouse".

    Examples
    --------
    >>> from krein.measures.tcr import get_genes
    >>> get_genes("human").read("TCRBV05-01")
    ('TRBV5-1*01', False)
    """
    loops: dict[str, str] = {}
    alleles: dict[str, dict[str, str]] = {}
    text = files(__package__).joinpath("tcr_genes.txt").read_text(encoding="ascii")
    for line in text.splitlines():
        if line.startswith(f"{organism} "):
            _, gene, numbers, *three = line.split()
            for number in numbers.split(","):
                loops[f"{gene}*{number}"] = "".join(three)
                alleles.setdefault(_key(gene), {})[number] = f"{gene}*{number}"
    aliases: dict[str, list[str]] = {}
    for key in alleles:
        family, _, member = key.partition("-")
        same = [other for other in alleles if other.partition("-")[0] == family]
        if member == "" and same == [key]:
            aliases.setdefault(f"{key}-1", []).append(key)  # Adaptive's names always have a member
        if member == "1" and same == [key]:
            aliases.setdefault(family, []).append(key)
        before, shared, number = key.partition("DV")
        if shared and before.startswith("TRA"):  # a gene of α and of δ, known by three names
            aliases.setdefault(before, []).append(key)
            aliases.setdefault(f"TRDV{number}", []).append(key)
    unique = {a: keys[0] for a, keys in aliases.items() if len(keys) == 1 and a not in alleles}
    return Genes(organism, loops, alleles, unique)


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


# Which columns of a table contain receptors

_SINGLE_GENE = ("v_call", "v_gene", "v.segm", "v_segm", "v")
_SINGLE_CDR3 = ("junction_aa", "cdr3")


def chain_columns(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the columns of the V gene and the CDR3 of each chain; [] if there are none.

    Recognised are the columns of tcrdist3 (`v_b_gene`, `cdr3_b_aa`), VDJdb (`v.beta`,
    `cdr3.beta`; `V`, `CDR3`), AIRR rearrangements (`v_call`, `junction_aa`), 10x (`v_gene`, `cdr3`)
    and IMMREP (`TRBV`, `TRB_CDR3`), in upper or lower case.

    Examples
    --------
    >>> from krein.measures.tcr import chain_columns
    >>> chain_columns(["cell", "v_a_gene", "cdr3_a_aa", "V.beta", "CDR3.beta"])
    [('v_a_gene', 'cdr3_a_aa'), ('V.beta', 'CDR3.beta')]
    >>> chain_columns(["sequence_id", "v_call", "junction_aa"])
    [('v_call', 'junction_aa')]
    """
    given = {str(name).lower(): str(name) for name in names}
    found = []
    for word, letter in CHAINS.items():
        x = letter.lower()
        genes = (f"v_{x}_gene", f"v.{word}", f"v_{word}", f"tr{x}v")
        cdr3s = (f"cdr3_{x}_aa", f"cdr3.{word}", f"cdr3_{word}", f"tr{x}_cdr3")
        gene, cdr3 = _first(genes, given), _first(cdr3s, given)
        if gene is not None and cdr3 is not None:
            found.append((gene, cdr3))
    if not found:
        gene, cdr3 = _first(_SINGLE_GENE, given), _first(_SINGLE_CDR3, given)
        if gene is not None and cdr3 is not None:
            found.append((gene, cdr3))
    return found


def _first(wanted: Sequence[str], given: Mapping[str, str]) -> str | None:
    return next((given[name] for name in wanted if name in given), None)


def as_records(objects: Any) -> list[Any]:
    """Return receptors as a list with one item each; the rows of a table become dicts."""
    if isinstance(objects, str | bytes | Mapping):
        raise TypeError("got a single receptor; pass a list of receptors")
    if isinstance(objects, np.ndarray):
        columns = objects.dtype.names  # of a structured array
    else:
        columns = getattr(objects, "column_names", getattr(objects, "columns", None))
    if columns is None:
        return objects.tolist() if isinstance(objects, np.ndarray) else list(objects)
    kept = chain_columns(columns)
    if not kept:
        raise _unknown_columns(columns)
    wanted = [name for pair in kept for name in pair]
    cells = [list(np.asarray(objects[name], dtype=object)) for name in wanted]
    return [dict(zip(wanted, row, strict=True)) for row in zip(*cells, strict=True)]


def _unknown_columns(names: Iterable[str]) -> ValueError:
    return ValueError(
        "found no columns with V genes and CDR3s, such as 'v_b_gene' and 'cdr3_b_aa' or 'v_call' "
        f"and 'junction_aa', among {', '.join(map(repr, list(names)[:12]))}"
    )


def _chains_of(item: Any, row: int) -> list[tuple[str, str]]:
    """Return the V gene and the CDR3 of each chain of a receptor."""
    if isinstance(item, str):
        parts: list[Any] = item.split()
    elif isinstance(item, np.void) and item.dtype.names:
        return _chains_of({name: item[name] for name in item.dtype.names}, row)
    elif isinstance(item, Mapping) or hasattr(item, "keys"):
        columns = chain_columns(item.keys())
        if not columns:
            raise RefusedObject("receptor", row, str(_unknown_columns(item.keys())))
        parts = [item[name] for pair in columns for name in pair]
    elif isinstance(item, Sequence | np.ndarray) and not isinstance(item, bytes):
        parts = list(item)
    else:
        reason = f"is {item!r}, a {type(item).__name__}, not a record, a tuple or a str"
        raise RefusedType("receptor", row, reason)
    if len(parts) % 2 or not parts:
        reason = "must consist of a V gene and a CDR3 for each chain"
        raise RefusedObject("receptor", row, reason, excerpt(str(item), 60))
    pairs = [(_text(gene), _text(cdr3)) for gene, cdr3 in zip(parts[::2], parts[1::2], strict=True)]
    return [(gene, cdr3) for gene, cdr3 in pairs if gene or cdr3]


def _text(cell: Any) -> str:
    """Return a cell's text; "" if it is missing."""
    missing = cell is None or (isinstance(cell, float) and np.isnan(cell)) or str(cell) == "<NA>"
    return "" if missing else str(cell).strip()


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
    10x. A gene without an allele is read as its allele *01. An allele that is not known is read as
    *01 too, and a gene with an older name by its present one; a `GenesWarning` names them. A
    receptor with an unknown gene is refused. The letter X in a CDR3 costs nothing; letters other
    than amino acids are refused.

    Parameters
    ----------
    organism : {"human", "mouse"}, default="human"
        Whose V genes they are.
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
        counts = dict.fromkeys(CHAINS.values(), 0)
        for row, item in enumerate(records):
            try:
                letters = {_locus(gene) or "" for gene, cdr3 in _chains_of(item, row) if cdr3}
            except RefusedObject:
                continue
            if "G" in letters and "A" in letters:  # some V genes belong to α and δ
                letters = letters - {"A"} | {"D"}
            for letter in letters & counts.keys():
                counts[letter] += 1
        chosen = [word for word, x in CHAINS.items() if counts[x] and 2 * counts[x] >= len(records)]
        if "-".join(chosen) not in CHOICES:
            have = ", ".join(f"{counts[x]} {word}" for word, x in CHAINS.items() if counts[x])
            raise ValueError(
                f"cannot tell which chains to compare: of {len(records)} receptors, these have a V "
                f"gene and a CDR3: {have or 'none'}; set {measure_parameter('chains', 'beta')}"
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
        genes, checked, told = get_genes(self.organism), [], dict[str, str]()
        for row, item in enumerate(as_records(objects)):
            found: dict[str, str] = {}
            for gene, cdr3 in _chains_of(item, row):
                letter = _locus(gene)
                if letter == "A" and "D" in self.letters:
                    letter = "D"  # some V genes belong to both
                if letter is not None and letter not in self.letters:
                    continue
                try:
                    allele, differs = genes.read(gene)
                except UnknownGene as error:
                    reason = f"has the V gene {gene!r}, which {error.reason}"
                    raise RefusedObject("receptor", row, reason) from error
                assert letter is not None  # or the gene would be unknown
                if letter in found:
                    reason = f"has two {_word(letter)} chains; leave one of them out"
                    raise RefusedObject("receptor", row, reason, excerpt(gene, 20))
                if differs:
                    told[gene] = allele
                found[letter] = f"{allele} {self._cdr3(cdr3, letter, row)}"
            for letter in self.letters:
                if letter not in found:
                    others = [word for word in self.chains.split("-") if CHAINS[word] != letter]
                    advice = measure_parameter("chains", others[0]) if others else ""
                    remedy = f", or compare the other chain alone: {advice}" if advice else ""
                    reason = f"has no {_word(letter)} chain; leave it out{remedy}"
                    raise RefusedObject("receptor", row, reason)
            checked.append(" ".join(found[letter] for letter in self.letters))
        return checked, told

    @staticmethod
    def _cdr3(given: str, letter: str, row: int) -> str:
        cdr3 = given.upper()
        if not cdr3:
            raise RefusedObject("receptor", row, f"has no CDR3 of its {_word(letter)} chain")
        wrong = next((c for c in cdr3 if c not in LETTERS and c != UNKNOWN), None)
        if wrong is not None:
            reason = f"has {wrong!r} in the CDR3 of its {_word(letter)} chain, not an amino acid"
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


def _locus(gene: str) -> str | None:
    """Return the letter of a gene's locus: "B" for TRBV6-5."""
    match = _GENE.search(gene.upper())
    return None if match is None else match["locus"]


def _word(letter: str) -> str:
    return next(word for word, x in CHAINS.items() if x == letter)


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
