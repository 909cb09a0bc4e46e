"""Labels that are paths in a taxonomy: probabilities of ancestors, and the depth of an answer.

A leaf is a class, e.g. "Bacteria;Firmicutes;Bacilli". Its ancestors are the prefixes of the path.
The classes are mutually exclusive, so the probability of an ancestor is the sum over the leaves
below it:

    P(a) = Σ_{leaf c at or below a} P(c)

It never grows on the way down, so the nodes above any threshold over ½ form a single path.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .shapes import Array, Indices

PREFIX = re.compile(r"([a-z])(?:__|:)")
"""The rank of a name, as in "g__Bacillus" (QIIME, GTDB, UNITE) or "g:Bacillus" (UTAX, SINTAX)."""

DOMAINS = frozenset(("Archaea", "Bacteria", "Eukarya", "Eukaryota", "Viruses"))
"""Names of the first rank of labels without prefixes, as in the training files of DADA2."""


def find_separator(labels: Sequence[str]) -> str | None:
    """Return the sign between the ranks of taxonomy labels; None if labels are plain names.

    >>> find_separator(["Bacteria;Firmicutes", "Archaea"]), find_separator(["a,b", "c"])
    (';', None)
    >>> find_separator(["d:Bacteria,p:Firmicutes", "d:Archaea,p:Nanoarchaeota"])
    ','
    """
    if 2 * sum(len(rank_path(label, ";")) > 1 for label in labels) >= len(labels) > 0:
        return ";"
    for separator in (",", "|"):
        parts = [part for label in labels for part in rank_path(label, separator)]
        if len(parts) > len(labels) and all(PREFIX.match(part) for part in parts):
            return separator
    return None


def rank_path(label: str, separator: str) -> list[str]:
    """Return the ranks of a label, without those at its end that have no name.

    >>> rank_path("k__Bacteria; p__Firmicutes; c__; o__", ";")
    ['k__Bacteria', 'p__Firmicutes']
    """
    parts = [part.strip() for part in label.split(separator)]
    while len(parts) > 1 and not PREFIX.sub("", parts[-1], count=1):
        parts.pop()
    return parts


def rank_code(path: Sequence[str]) -> str:
    """Return the rank of the last name of a path as Kraken writes it: D, K, P, C, O, F, G, S, or
    R and the depth.

    >>> rank_code(["d__Bacteria", "p__Firmicutes"]), rank_code(["Bacteria", "Firmicutes"])
    ('P', 'P')
    >>> rank_code(["enzyme", "kinase"])
    'R2'
    """
    prefix, depth = PREFIX.match(path[-1]), len(path)
    if prefix is not None and prefix[1] in "dkpcofgs":
        return prefix[1].upper()
    if path[0] in DOMAINS:
        return "DPCOFGS"[depth - 1] if depth <= 7 else f"S{depth - 7}"
    return f"R{depth}"


def short_labels(labels: Sequence[str]) -> list[str]:
    """Return labels that are paths by their last rank, with as many ranks above it as are needed to
    tell them apart; other labels as they are.

    >>> short_labels(["a;b;coli", "a;c;coli", "a;d"])
    ['b;coli', 'c;coli', 'd']
    """
    separator = find_separator(labels)
    if separator is None:
        return list(labels)
    paths = [rank_path(label, separator) for label in labels]
    depths = [1] * len(paths)
    while True:
        short = [separator.join(path[-n:]) for path, n in zip(paths, depths, strict=True)]
        counts = Counter(short)
        longer = [
            i for i, name in enumerate(short) if counts[name] > 1 and depths[i] < len(paths[i])
        ]
        if not longer:
            return short
        for i in longer:
            depths[i] += 1


@dataclass(frozen=True)
class Ranks:
    """The nodes of each rank of a set of labels, from the first rank to the leaves."""

    nodes: list[list[str]]
    """The paths of each rank, sorted. A shorter label stands for itself at the deeper ranks."""
    parents: list[Indices]
    """For each rank, the node (C,) at or above each class."""

    @classmethod
    def of(cls, labels: Sequence[str], separator: str) -> Ranks:
        """Read the paths of the classes.

        >>> Ranks.of(["a;x", "a;y", "b;z"], ";").nodes
        [['a', 'b'], ['a;x', 'a;y', 'b;z']]
        """
        if not separator:
            raise ValueError("the separator of ranks is empty; use a character such as ';'")
        paths = []
        for label in labels:
            parts = rank_path(label, separator)
            if not all(parts):
                raise ValueError(
                    f"label {label!r} has an empty rank; write a name between any two {separator!r}"
                )
            paths.append(parts)
        nodes, parents = [], []
        for depth in range(1, max(len(parts) for parts in paths) + 1):
            named = [separator.join(parts[:depth]) for parts in paths]
            found, code = np.unique(named, return_inverse=True)
            nodes.append(found.tolist())
            parents.append(code.astype(np.intp))
        return cls(nodes, parents)

    def __len__(self) -> int:
        return len(self.nodes)

    def probabilities(self, P: Array, rank: int) -> Array:
        """Return the probabilities (n, nodes) of a rank from those (n, C) of the classes."""
        order = np.argsort(self.parents[rank], kind="stable")
        starts = np.searchsorted(self.parents[rank][order], np.arange(len(self.nodes[rank])))
        summed: Array = np.add.reduceat(P[:, order], starts, axis=1)
        return summed

    def deepest(self, P: Array, above: float) -> tuple[list[str], Array, Indices]:
        """Return the deepest node with a probability of `above` or more for each row of P.

        The result is its path, its probability and its rank, counted from 1; or "", 1 and 0 if not
        even a node of the first rank is that probable.
        """
        if not 0.5 < above <= 1:
            raise ValueError(
                f"the minimum probability of an answer must be above 0.5 (so that answers form one "
                f"path) and at most 1; got {above}"
            )
        answer = [""] * len(P)
        probability, depth = np.ones(len(P)), np.zeros(len(P), dtype=np.intp)
        for rank in range(len(self)):
            Q = self.probabilities(P, rank)
            best = Q.argmax(axis=1)
            top = Q[np.arange(len(P)), best]
            for i in np.flatnonzero(top >= above).tolist():
                node = self.nodes[rank][best[i]]
                if node != answer[i]:  # a shorter label has been answered already
                    answer[i], probability[i], depth[i] = node, top[i], rank + 1
        return answer, probability, depth
