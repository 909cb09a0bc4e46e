"""Labels that are paths in a taxonomy: probabilities of each rank, and the depth of an answer.

A leaf is a class, e.g. "Bacteria;Firmicutes;Bacilli". Its ancestors are the prefixes of the path.
A node is a set of classes. Given probabilities of the classes alone, that of a node is their sum:

    P(a) = Σ_{leaf c at or below a} P(c)

A model does better (`RankPool`). It learns each rank from the terms of held-out objects
(`krein.core.cascade`), with weights of its own: the scores of classes are summed within a node, and
a neighbour of the same family is evidence for the family, whatever its species. Most species of a
taxonomy have one object. Such an object is held out from its species, which is then unknown, but it
is still a held-out object of its family. So each rank also learns how often none of its nodes is
right:

    p(k | x) = s(x) · softmax_k(Σ_t a_t z_tk(x)),   s = σ(b + v·f(x)),   a, v ≥ 0,

where s is the probability that the node of the object is known at all. The features f are the
log-odds of the best node, the logarithm of its size, and how near the nearest object is. Children
that are more probable together than their parent are scaled down, so the nodes above any threshold
over ½ form a single path.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .cascade import fit_pool, fit_terms, pooled
from .conformal import conformal_p, log_odds
from .evidence import Evidence, Neighbours
from .moments import ROUNDING
from .shapes import NON_NEGATIVE, Array, Codes, Indices, Mask, Within

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


def last_name(node: str, separator: str) -> str:
    """Return the last name of a path.

    >>> last_name("k__Fungi; f__Agaricaceae", ";")
    'f__Agaricaceae'
    """
    return node.rpartition(separator)[2].strip()


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


RANK_NAMES = {
    "d": "domain", "k": "kingdom", "p": "phylum", "c": "class", "o": "order", "f": "family",
    "g": "genus", "s": "species",
}  # fmt: skip
"""Names of ranks by the prefixes of their nodes."""


def rank_names(paths: Sequence[Sequence[str]]) -> list[str]:
    """Return the names of the ranks of some paths: by prefixes, or else numbers.

    >>> rank_names([["k__Bacteria", "p__Firmicutes"], ["k__Archaea"]])
    ['kingdom', 'phylum']
    >>> rank_names([["Bacteria", "Firmicutes"]]), rank_names([["enzyme", "kinase"]])
    (['domain', 'phylum'], ['rank_1', 'rank_2'])
    """
    found = []
    for depth in range(max(map(len, paths))):
        parts = [path[depth] for path in paths if len(path) > depth]
        prefixes = {match[1] if (match := PREFIX.match(part)) else "" for part in parts}
        name = RANK_NAMES.get(prefixes.pop(), "") if len(prefixes) == 1 else ""
        found.append(name or f"rank_{depth + 1}")
    if all(path[0] in DOMAINS for path in paths) and len(found) <= 7:
        found = [RANK_NAMES[code] for code in "dpcofgs"[: len(found)]]
    return found if len(set(found)) == len(found) else [f"rank_{k + 1}" for k in range(len(found))]


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


# -- probabilities of ranks, learned from held-out objects -----------------------------------------


@dataclass(frozen=True)
class Rank:
    """The names of one rank. A class whose path is shorter has none."""

    nodes: list[str]  # K paths, spelt as in the labels
    codes: Indices  # (C,): the node of each class; K for a class without a name at this rank
    parents: Indices  # (K,): the node above each one; 0 at the first rank

    @classmethod
    def each(cls, labels: Sequence[str], separator: str) -> list[Rank]:
        """Return the ranks of some labels.

        >>> [rank.codes.tolist() for rank in Rank.each(["a;x", "a;y", "b"], ";")]
        [[0, 0, 1], [0, 1, 2]]
        """
        tree, paths = Ranks.of(labels, separator), [rank_path(label, separator) for label in labels]
        found: list[Rank] = []
        for depth in range(len(tree)):
            named = np.array([len(path) > depth for path in paths])
            kept, first, place = np.unique(
                tree.parents[depth][named], return_index=True, return_inverse=True
            )
            codes = np.full(len(paths), len(kept), dtype=np.intp)
            codes[named] = place
            above = found[-1].codes[named][first] if found else np.zeros(len(kept), dtype=np.intp)
            spelt = [labels[c] for c in np.flatnonzero(named)[first]]
            nodes = [separator.join(one.split(separator)[: depth + 1]).strip() for one in spelt]
            found.append(cls(nodes, codes, above))
        return found

    def summed(self, term: Array) -> Array:
        """Return the term (n, K) of the nodes: log Σ exp over their classes. O(n·C)."""
        top = term.max(axis=1, keepdims=True)
        parts = _summed_by(self.codes, np.exp(term - top), len(self.nodes))
        return np.log(np.maximum(parts, np.finfo(float).tiny)) + top

    def voted(self, near: Neighbours, evidence: Evidence) -> list[Array]:
        """Return the terms (n, K) of neighbours; one without a name at this rank has no vote."""
        K = len(self.nodes)
        at_rank = replace(near, codes=self.codes[near.codes])
        return [term[:, :K] for term in evidence.terms(at_rank, K + 1)]

    def sizes(self, numbers: Array) -> Array:
        """Return the number of objects (K,) of each node, from those of the classes (C,)."""
        found = np.bincount(self.codes, numbers, len(self.nodes) + 1)[:-1]
        return found.astype(np.float64)


@dataclass(frozen=True)
class Relatives:
    """The training objects that are held out with each of n objects: its group, and itself."""

    rows: Indices  # (p,): of the held-out object
    codes: Codes  # (p,): the class of one that is held out with it
    numbers: Array  # (p,): how many objects it counts for

    def within(self, rank: Rank, nodes: Indices) -> Array:
        """Return how many (n,) of each object's relatives are in the given node (n,)."""
        inside = rank.codes[self.codes] == nodes[self.rows]
        return np.bincount(self.rows, self.numbers * inside, len(nodes)).astype(np.float64)


MOST_ODDS = 20.0
"""Log-odds are clipped to this: larger ones are no more informative."""

LEAST = 1e-6
"""The least closeness and size of a node, before their logarithms."""

SLOPE = 0.25
"""Prior weight of what tells whether a node is known: even if all held-out objects are, those that
are undecided, remote or in a small node are more probably in none. On 16S genes (three sets of
2,735 objects in total), the calibration error of all ranks is at most 0.020 with 0, 0.25 and 0.5,
and 0.024 with 1."""


@dataclass(frozen=True)
class Seen:
    """What a look, and those before it, found about some objects."""

    rows: Indices  # (n,): which objects
    terms: Sequence[Array]  # (n, C): of the heads
    near: Neighbours | None = None  # if they were compared with their candidates

    def terms_at(self, rank: Rank, evidence: Evidence | None) -> list[Array]:
        """Return all terms (n, K) of a rank."""
        return [rank.summed(term) for term in self.terms] + self.votes(rank, evidence)

    def votes(self, rank: Rank, evidence: Evidence | None) -> list[Array]:
        """Return the terms (n, K) of neighbours, if the objects were compared with them."""
        if self.near is None or evidence is None:
            return []
        return rank.voted(self.near, evidence)

    def features(self, log_proba: Array, sizes: Array, evidence: Evidence | None) -> Array:
        """Return what tells whether the node of an object is known (n, 4), the first one constant.

        They are the log-odds of the best node, given log-probabilities (n, K), the logarithm of its
        size (n,), and that of the closeness of the nearest object.
        """
        rows, best = np.arange(len(sizes)), log_proba.argmax(axis=1)
        odds = np.full(len(sizes), MOST_ODDS)  # of the only node
        if log_proba.shape[1] > 1:
            odds = np.clip(log_odds(log_proba)[rows, best], -MOST_ODDS, MOST_ODDS)
        close = np.ones(len(sizes))
        if self.near is not None and evidence is not None:
            close = evidence.closeness(self.near.least)
        logs = [np.log(np.maximum(one, LEAST)) for one in (sizes, close)]
        return np.column_stack([np.ones(len(sizes)), odds, *logs])


@dataclass(frozen=True)
class RankLook:
    """What each rank has learned about objects that a look answers."""

    weights: Annotated[Array, "levels terms", NON_NEGATIVE]
    known: Annotated[Array, "levels 4"]  # of the features that tell whether a node is known


def check_answer_probability(above: float) -> None:
    """Refuse a minimum probability of an answer under which answers need not form one path."""
    if not 0.5 < above <= 1:
        raise ValueError(
            f"the minimum probability of an answer must be above 0.5 (so that answers form one "
            f"path) and at most 1; got {above}"
        )


@dataclass(frozen=True)
class RankAnswers:
    """The path of each object down the taxonomy: at each rank, the two best nodes below the last.

    The probability of a node is 0 if the path has ended, or if there is no second one.
    """

    nodes: Indices  # (n, R, 2)
    probabilities: Array  # (n, R, 2): of the path, they never rise on the way down
    unknown: Array  # (n, R): the probability of the last node minus those of all below it
    novelty: Array  # (n, R): p-value, small if the object is in none of the rank's nodes

    @classmethod
    def down(
        cls, ranks: Sequence[Rank], n: int, at_rank: Callable[[int, Rank], tuple[Array, Array]]
    ) -> RankAnswers:
        """Return the paths of n objects, given the probabilities (n, K) and p-values of a rank."""
        R = len(ranks)
        nodes, P = np.zeros((n, R, 2), dtype=np.intp), np.zeros((n, R, 2))
        unknown, novelty = np.zeros((n, R)), np.ones((n, R))
        above, place, going = np.ones((n, 1)), np.zeros(n, dtype=np.intp), np.ones(n, dtype=bool)
        for r, rank in enumerate(ranks):
            Q, p_values = at_rank(r, rank)
            total = _summed_by(rank.parents, Q, above.shape[1])
            Q = Q * np.minimum(1.0, above / np.maximum(total, LEAST))[:, rank.parents]
            below = (rank.parents == place[:, None]) & going[:, None]  # of the last node
            inside = np.where(below, Q, 0.0)
            order = np.argsort(-inside, axis=1, kind="stable")[:, :2]
            nodes[:, r, : order.shape[1]] = order
            P[:, r, : order.shape[1]] = np.take_along_axis(inside, order, axis=1)
            rest = above[np.arange(n), place] - inside.sum(axis=1)
            going = below.any(axis=1)
            unknown[:, r] = np.where(going, np.maximum(rest, 0.0), 0.0)
            novelty[going, r] = p_values[going]
            above, place = Q, order[:, 0]
        return cls(nodes, P, unknown, novelty)

    @classmethod
    def of_classes(cls, ranks: Sequence[Rank], P: Array) -> RankAnswers:
        """Return the paths of objects with these probabilities (n, C): sums over the classes."""
        nothing = np.ones(len(P))
        return cls.down(
            ranks, len(P), lambda _, rank: (_summed_by(rank.codes, P, len(rank.nodes)), nothing)
        )

    def deepest(self, above: float, novel_below: float = 0.0) -> Indices:
        """Return how many ranks (n,), from the first, are probable enough and not novel."""
        check_answer_probability(above)
        sure = (self.probabilities[:, :, 0] >= above) & (self.novelty > novel_below)
        found: Indices = np.cumprod(sure, axis=1).sum(axis=1)
        return found

    @classmethod
    def of_fields(cls, found: NDArray[Any]) -> RankAnswers:
        """Return the paths among the fields of `Model.assess(…, ranks=True)`."""
        return cls(*(found[f"rank_{name}"] for name in (field.name for field in fields(cls))))

    def statuses(self, given: Sequence[str], depths: Indices, novel_below: float) -> list[str]:
        """Return the status of each object: an answer at any of its ranks is one.

        `given` are the statuses that they would have without ranks.
        """
        new = (self.novelty[:, 0] <= novel_below).tolist()
        return [
            "known" if depth else "novel" if is_new or status == "novel" else "ambiguous"
            for status, depth, is_new in zip(given, depths.tolist(), new, strict=True)
        ]

    def why_not_deeper(
        self,
        ranks: Sequence[Rank],
        names: Sequence[str],
        separator: str,
        depths: Indices,
        novel_below: float,
    ) -> list[str | None]:
        """Return what is known about the rank below each answer; None if there is none below.

        `names` are those of the ranks.
        """
        reasons: list[str | None] = []
        for i, depth in enumerate(depths.tolist()):
            if depth == len(ranks) or self.probabilities[i, depth, 0] == 0:
                reasons.append(None)
                continue
            rank, below = names[depth].replace("_", " "), ranks[depth].nodes
            first, second = (last_name(below[k], separator) for k in self.nodes[i, depth])
            p, other = self.probabilities[i, depth]
            if self.novelty[i, depth] <= novel_below or self.unknown[i, depth] >= p:
                last = ranks[depth - 1].nodes[self.nodes[i, depth - 1, 0]]
                parent = f" in {last_name(last, separator)}" if depth else ""
                reasons.append(f"new {rank}{parent}")
            elif other > 0:
                reasons.append(f"{rank} undecided: {first} {p:.2f}, {second} {other:.2f}")
            else:
                reasons.append(f"{rank} undecided: {first} {p:.2f}")
        return reasons


@dataclass(frozen=True)
class RankPool:
    """Probabilities of the nodes of each rank, from the looks at an object."""

    separator: str
    sizes: Annotated[Array, "C", NON_NEGATIVE]  # number of training objects of each class
    looks: Annotated[tuple[RankLook, ...], "looks"]
    scores: Annotated[Array, "levels n_scores", Within(infinite=(np.inf,))]
    """Those of held-out objects whose node is known, ascending; ∞ for the others."""

    @classmethod
    def learn(
        cls,
        labels: Sequence[str],
        separator: str,
        sizes: Array,
        seen: Sequence[Seen],
        evidence: Evidence | None,
        codes: Codes,
        depth: Indices,
        relatives: Relatives,
        weights: Array | None = None,
    ) -> RankPool:
        """Learn all ranks from n held-out objects, including those alone in their class.

        `sizes` (C,) are the numbers of training objects, `seen` is what each look tells about all n
        objects, and `depth` (n,) is the look that answers each. R times the cost of the same fit to
        the classes.
        """
        ranks, n = Rank.each(labels, separator), len(codes)
        w = np.ones(n) if weights is None else weights
        scores = np.full((len(ranks), n), np.inf)
        found: list[list[tuple[Array, Array]]] = [[] for _ in seen]
        for r, rank in enumerate(ranks):
            own, total = rank.codes[codes], rank.sizes(sizes)
            named = own < len(total)
            total = np.append(total, 0.0)
            left = total[own] - relatives.within(rank, own)
            known = named & (left > ROUNDING * total[own])
            summed: dict[int, Array] = {}  # a term belongs to its look and all later ones
            for k, one in enumerate(seen):
                for term in one.terms:
                    if id(term) not in summed:
                        summed[id(term)] = rank.summed(term)
                terms = [summed[id(term)] for term in one.terms] + one.votes(rank, evidence)
                a, _ = fit_terms([term[known] for term in terms], own[known], w[known])
                log_p = pooled(a, terms)
                best = log_p.argmax(axis=1)
                F = one.features(log_p, total[best] - relatives.within(rank, best), evidence)
                v = _fit_known(F[named], known[named], w[named])
                here = known & (depth == k)
                scores[r, here] = F[here] @ v
                found[k].append((a, v))
        looks = [RankLook(*(np.stack(part) for part in zip(*each, strict=True))) for each in found]
        return cls(separator, np.asarray(sizes, dtype=float), tuple(looks), np.sort(scores, axis=1))

    def check(self, n_ranks: int, n_terms: Sequence[int]) -> None:
        """Raise an error if there are not this many ranks, or terms of each look."""
        shapes = [(look.weights.shape, look.known.shape) for look in self.looks]
        expected = [((n_ranks, n), (n_ranks, 4)) for n in n_terms]
        if shapes != expected or len(self.scores) != n_ranks:
            raise ValueError(f"its ranks are not those of {n_ranks} ranks of labels")

    def answers(
        self, ranks: Sequence[Rank], n: int, seen: Sequence[Seen], evidence: Evidence | None
    ) -> RankAnswers:
        """Return the path of each of n objects, given what each look tells about those it answers.

        O(n·C) for each rank and term.
        """

        def at_rank(r: int, rank: Rank) -> tuple[Array, Array]:
            Q, scores = self._at_rank(r, rank, n, seen, evidence)
            reference = self.scores[r][np.isfinite(self.scores[r])]
            return Q, conformal_p(-reference, -scores)

        return RankAnswers.down(ranks, n, at_rank)

    def _at_rank(
        self, r: int, rank: Rank, n: int, seen: Sequence[Seen], evidence: Evidence | None
    ) -> tuple[Array, Array]:
        """Return the probabilities of the nodes (n, K), and the scores of being known (n,)."""
        sizes = rank.sizes(self.sizes)
        Q, scores = np.zeros((n, len(sizes))), np.zeros(n)
        for look, one in zip(self.looks, seen, strict=True):
            if len(one.rows):
                log_p = pooled(look.weights[r], one.terms_at(rank, evidence))
                F = one.features(log_p, sizes[log_p.argmax(axis=1)], evidence)
                scores[one.rows] = F @ look.known[r]
                Q[one.rows] = np.exp(log_p) * expit(scores[one.rows])[:, None]
        return Q, scores


def _summed_by(groups: Indices, values: Array, n_groups: int) -> Array:
    """Return the sums (n, G) of columns (n, K) that are in the same group (K,); others are lost."""
    order = np.argsort(groups, kind="stable")
    order = order[groups[order] < n_groups]
    present, starts = np.unique(groups[order], return_index=True)
    found = np.zeros((len(values), n_groups))
    found[:, present] = np.add.reduceat(values[:, order], starts, axis=1)
    return found


def _fit_known(F: Array, known: Mask, weights: Array) -> Array:
    """Return the weights (4,) of features that tell known objects from others, ≥ 0 but the first.

    The mean score starts from the share of known objects, as if one more were known, and one more
    unknown, each by half: what a taxonomy lacks is about as common as what it has once (Good 1953).
    """
    share = float(weights @ known) + 0.5, float(weights @ ~known) + 0.5
    terms = [np.column_stack([f, np.zeros(len(f))]) for f in F.T]
    terms.append(-terms[0])
    prior = np.append(np.full(F.shape[1], SLOPE), 0.0)
    prior[0] = 0.0
    start = float(np.log(share[0] / share[1]))
    if len(F):
        start -= float(weights @ (F @ prior[:-1]) / max(weights.sum(), LEAST))
    prior[0], prior[-1] = max(start, 0.0), max(-start, 0.0)
    found = fit_pool(terms, np.where(known, 0, 1), prior, weights)
    found[0] -= found[-1]
    return found[:-1]
