"""Simulated protein families, evolved along a tree."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.utils import check_random_state

from .extras import require

Array = NDArray[np.float64]
Letters = NDArray[np.uint8]

ALPHABET = "ARNDCQEGHILKMFPSTWYV"

# share of each amino acid among proteins at large (Robinson & Robinson 1991), per 100,000
_SHARES = (7805, 5129, 4487, 5364, 1925, 4264, 6295, 7377, 2199, 5142,
           9019, 5744, 2243, 3856, 5203, 7120, 5841, 1330, 3216, 6441)  # fmt: skip
BACKGROUND: Array = np.array(_SHARES) / sum(_SHARES)

_SUBFAMILY = 20
"""Members of a subfamily, on average."""

_CHUNK = 2048
"""Sequences evolved together, so that memory does not grow with their number."""


class Population(NamedTuple):
    """Sequences one after another: letters as codes into `ALPHABET`, and where each ends."""

    letters: Letters  # (Σ lengths,)
    lengths: NDArray[np.intp]

    def take(self, chosen: NDArray[np.intp]) -> Population:
        """Return the chosen sequences, as often as they are chosen."""
        lengths = self.lengths[chosen]
        starts = (np.cumsum(self.lengths) - self.lengths)[chosen]
        ends = np.cumsum(lengths)
        places = np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)
        return Population(self.letters[places], lengths)

    def strings(self) -> NDArray[Any]:
        """Return an array of str."""
        code = np.frombuffer(ALPHABET.encode("ascii"), dtype=np.uint8)
        text = code[self.letters].tobytes().decode("ascii")
        ends = np.cumsum(self.lengths).tolist()
        found = np.empty(len(ends), dtype=object)
        found[:] = [text[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        return found


@lru_cache(maxsize=1)
def substitutions() -> Array:
    """Return P (20, 20): the letter that follows a letter, by the odds of BLOSUM62.

    A score is a log-odds, s_ab = log(q_ab / (p_a p_b)) / λ, so q_ab = p_a p_b exp(λ s_ab) is how
    often a stands against b in related sequences; λ is where these sum to one (Karlin & Altschul
    1990). Scores are rounded, so the sums over rows only nearly are the background p; scaling rows
    and columns alike, q_ab ← d_a q_ab d_b, makes them so (Sinkhorn 1964). P_ab = q_ab / p_a then
    has p as its equilibrium: letters keep their shares however long they evolve.
    """
    matrix = require("scoring_matrices", "bio", "make_protein_families")
    blosum = matrix.ScoringMatrix.from_name("BLOSUM62")
    places = [blosum.alphabet.index(letter) for letter in ALPHABET]
    S = np.array(blosum, dtype=np.float64)[np.ix_(places, places)]
    p = BACKGROUND
    odds = np.outer(p, p)
    # at λ = 0 the sum is one as well; the other root lies where it has risen again
    lam = brentq(lambda lam: (odds * np.exp(lam * S)).sum() - 1.0, 0.1, 1.0)
    q = odds * np.exp(lam * S)
    d = np.ones(len(p))
    for _ in range(100):
        d = np.sqrt(d * p / (q @ d))  # the root keeps d from swinging between two scalings
    return d[:, None] * q * d / p[:, None]


def make_protein_families(
    n_samples: int = 1000,
    *,
    n_families: int = 10,
    length: int = 150,
    divergence: float = 1.0,
    indel_rate: float = 0.02,
    indel_length: float = 3.0,
    random_state: Any = None,
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Make protein sequences of several families, evolved from one ancestor.

    One random sequence is the ancestor of all. Families descend from it, subfamilies from each
    family, and members from each subfamily. A branch of the tree of length t hits every site t
    times on average (a Poisson number); a hit draws the next letter by the odds of BLOSUM62 (often
    the same letter again). Insertions and deletions occur at `indel_rate` times that rate, with
    geometrically distributed lengths; inserted letters are drawn by background frequency.

    Branches are in units of `divergence`: 2 to a family, ½ to a subfamily, and to a member an
    exponential variable with mean 1, so that most members are close to their relatives and some are
    distant, as in nature. These data are not in the paper; they replace its protein sets where
    those are not available, in any number. The default divergence was chosen so that nearest
    neighbours by Smith-Waterman are right well above chance, but not always: at half of it they
    hardly err, at twice of it often. `tests/datasets` checks this.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of sequences, divided evenly among the families, in random order.
    n_families : int, default=10
    length : int, default=150
        Number of letters of the ancestor.
    divergence : float, default=1.0
        How far sequences evolve, which determines the difficulty.
    indel_rate : float, default=0.02
        Number of insertions and deletions (half each) per hit of a site.
    indel_length : float, default=3.0
        Mean length of insertions and deletions.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : array (n_samples,) of str
    y : array (n_samples,)
        The family, 0 to n_families − 1.

    Examples
    --------
    >>> X, y = make_protein_families(40, n_families=4, random_state=0)
    >>> len(X), set(X[0]) <= set(ALPHABET)
    (40, True)
    >>> np.bincount(y)
    array([10, 10, 10, 10])
    """
    for name, value in (("n_samples", n_samples), ("n_families", n_families), ("length", length)):
        if value < 1:
            raise ValueError(f"{name} is 1 or more; got {value}")
    if divergence < 0 or indel_rate < 0 or indel_length < 1:
        raise ValueError(
            "divergence and indel_rate must be at least 0, and indel_length at least 1; got "
            f"{divergence}, {indel_rate} and {indel_length}"
        )
    random = check_random_state(random_state)
    y = random.permutation(np.arange(n_samples, dtype=np.intp) % n_families)
    n_subfamilies = max(1, round(n_samples / n_families / _SUBFAMILY))
    indel = (indel_rate, indel_length)

    def descend(parents: Population, chosen: NDArray[np.intp], branch: Array) -> Population:
        children = substitute(parents.take(chosen), branch, random)
        return insert(delete(children, branch, *indel, random), branch, *indel, random)

    root = Population(
        random.choice(len(ALPHABET), size=length, p=BACKGROUND).astype(np.uint8), np.array([length])
    )
    families = descend(
        root, np.zeros(n_families, dtype=np.intp), np.full(n_families, 2 * divergence)
    )
    of_family = np.repeat(np.arange(n_families), n_subfamilies)
    subfamilies = descend(families, of_family, np.full(len(of_family), divergence / 2))
    of_subfamily = y * n_subfamilies + random.randint(n_subfamilies, size=n_samples)
    branch = random.exponential(divergence, size=n_samples)
    X = np.empty(n_samples, dtype=object)
    for start in range(0, n_samples, _CHUNK):
        some = slice(start, start + _CHUNK)
        X[some] = descend(subfamilies, of_subfamily[some], branch[some]).strings()
    return X, y


def substitute(sequences: Population, branch: Array, random: Any) -> Population:
    """Hit every site a Poisson number of times; each hit draws the next letter. O(Σ hits)."""
    steps = np.cumsum(substitutions(), axis=1)
    steps[:, -1] = 1.0
    ladder = (steps + np.arange(len(steps))[:, None]).ravel()  # row a climbs from a to a + 1
    letters = sequences.letters.copy()
    hits = random.poisson(np.repeat(branch, sequences.lengths))
    sites = np.flatnonzero(hits)
    while len(sites):
        old = letters[sites].astype(np.intp)
        place = np.searchsorted(ladder, old + random.uniform(size=len(sites)), side="right")
        letters[sites] = (place - len(steps) * old).astype(np.uint8)
        hits[sites] -= 1
        sites = sites[hits[sites] > 0]
    return Population(letters, sequences.lengths)


def delete(
    sequences: Population, branch: Array, rate: float, mean_length: float, random: Any
) -> Population:
    """Take out stretches of geometric length; never all of a sequence. O(Σ lengths)."""
    ends = np.cumsum(sequences.lengths)
    owner = np.repeat(np.arange(len(ends)), sequences.lengths)
    starts = _places(owner, branch, rate / 2, random)
    stops = np.minimum(starts + random.geometric(1 / mean_length, len(starts)), ends[owner[starts]])
    total = len(sequences.letters)
    depth = np.bincount(starts, minlength=total + 1) - np.bincount(stops, minlength=total + 1)
    kept = np.cumsum(depth)[:total] == 0
    left = np.bincount(owner[kept], minlength=len(ends))
    kept |= left[owner] == 0  # a sequence that would vanish stays as it was
    return Population(
        sequences.letters[kept], np.bincount(owner[kept], minlength=len(ends)).astype(np.intp)
    )


def insert(
    sequences: Population, branch: Array, rate: float, mean_length: float, random: Any
) -> Population:
    """Put in stretches of geometric length, drawn by background frequency. O(Σ lengths)."""
    owner = np.repeat(np.arange(len(sequences.lengths)), sequences.lengths)
    places = _places(owner, branch, rate / 2, random)
    sizes = random.geometric(1 / mean_length, len(places))
    new = random.choice(len(ALPHABET), size=sizes.sum(), p=BACKGROUND).astype(np.uint8)
    added = np.bincount(np.repeat(owner[places], sizes), minlength=len(sequences.lengths))
    # after the letter at its place, so that the last of a sequence is followed by its own
    letters = np.insert(sequences.letters, np.repeat(places + 1, sizes), new)
    return Population(letters, sequences.lengths + added)


def _places(owner: NDArray[np.intp], branch: Array, rate: float, random: Any) -> NDArray[np.intp]:
    """Return the sites at which something happens, `rate` a site and unit of branch."""
    return np.flatnonzero(random.uniform(size=len(owner)) < -np.expm1(-rate * branch[owner]))
