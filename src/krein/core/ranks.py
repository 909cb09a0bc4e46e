"""Labels that are paths in a taxonomy: probabilities of ancestors, and the depth of an answer.

A leaf is a class, e.g. "Bacteria;Firmicutes;Bacilli". Its ancestors are the prefixes of the path.
The classes are mutually exclusive, so the probability of an ancestor is the sum over the leaves
below it:

    P(a) = Σ_{leaf c at or below a} P(c)

It never grows on the way down, so the nodes above any threshold over ½ form a single path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .checks import Array, Indices


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
            parts = [part.strip() for part in label.split(separator)]
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
        summed = np.zeros((len(P), len(self.nodes[rank])))
        np.add.at(summed.T, self.parents[rank], P.T)
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
