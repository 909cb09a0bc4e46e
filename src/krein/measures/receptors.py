"""T-cell receptors: the names of V genes, the columns of tables, and receptors as text.

A receptor is stored as text, with the gene and the CDR3 of each chain, such as "TRAV12-2*01 CAVNF
TRBV6-5*01 CASSF". The loops of V genes are in v_genes.txt, which names its source and licence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

from ..wording import kind_of, measure_parameter
from .objects import RefusedObject, RefusedType, excerpt

ORGANISMS = ("human", "mouse")

CHAINS = {"alpha": "A", "beta": "B", "gamma": "G", "delta": "D"}
"""The letter of each chain in the names of its genes."""

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
        """Return the allele that a name stands for, and whether the choice should be reported.

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
    >>> from krein.measures.receptors import get_genes
    >>> get_genes("human").read("TCRBV05-01")
    ('TRBV5-1*01', False)
    """
    loops: dict[str, str] = {}
    alleles: dict[str, dict[str, str]] = {}
    text = files(__package__).joinpath("v_genes.txt").read_text(encoding="ascii")
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
    >>> from krein.measures.receptors import chain_columns
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


def chains_of(item: Any, row: int) -> list[tuple[str, str]]:
    """Return the V gene and the CDR3 of each chain of a receptor."""
    if isinstance(item, str):
        parts: list[Any] = item.split()
    elif isinstance(item, np.void) and item.dtype.names:
        return chains_of({name: item[name] for name in item.dtype.names}, row)
    elif isinstance(item, Mapping) or hasattr(item, "keys"):
        columns = chain_columns(item.keys())
        if not columns:
            raise RefusedObject("receptor", row, str(_unknown_columns(item.keys())))
        parts = [item[name] for pair in columns for name in pair]
    elif isinstance(item, Sequence | np.ndarray) and not isinstance(item, bytes):
        parts = list(item)
    else:
        reason = f"is {kind_of(item)}, not a record, a tuple or a string"
        raise RefusedType("receptor", row, reason)
    if len(parts) % 2 or not parts:
        reason = "must consist of a V gene and a CDR3 for each chain"
        raise RefusedObject("receptor", row, reason, excerpt(str(item), 60))
    pairs = [(_text(gene), _text(cdr3)) for gene, cdr3 in zip(parts[::2], parts[1::2], strict=True)]
    return [(gene, cdr3) for gene, cdr3 in pairs if gene or cdr3]


def as_text(chains: Iterable[tuple[str, str]]) -> str:
    """Return a receptor as text, from the V gene and the CDR3 of each chain; "" without chains.

    Examples
    --------
    >>> from krein.measures.receptors import as_text
    >>> as_text([("Homsap TRBV6-5*01 F", "CASSYSFTEAFF")])
    'TRBV6-5*01 CASSYSFTEAFF'
    """
    parts = []
    for gene, cdr3 in chains:
        match = _GENE.search(gene.upper())
        parts += ["_".join(gene.split()) if match is None else match[0], "".join(cdr3.split())]
    return " ".join(parts)


def _text(cell: Any) -> str:
    """Return a cell's text; "" if it is missing."""
    missing = cell is None or (isinstance(cell, float) and np.isnan(cell)) or str(cell) == "<NA>"
    return "" if missing else str(cell).strip()


def locus_of(gene: str) -> str | None:
    """Return the letter of a gene's locus: "B" for TRBV6-5."""
    match = _GENE.search(gene.upper())
    return None if match is None else match["locus"]


def word_of(letter: str) -> str:
    """Return the name of the chain with this letter: "beta" for "B"."""
    return next(word for word, x in CHAINS.items() if x == letter)
