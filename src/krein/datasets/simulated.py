"""Simulated data: points, as in sections 4.3 and 6 of the paper; balls; and protein families."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.utils import check_random_state

from ..core.shapes import Array, Indices
from .real import require


def make_checkerboard(
    n_samples: int = 900, *, n_fields: int = 3, random_state: Any = None
) -> tuple[Array, Indices]:
    """Generate points on a checkerboard with alternating labels, so that classes are multimodal.

    The paper specifies 3×3 fields, but neither the number of points nor the position of the board.
    Here, the points are uniform on [−1, 1]². Each class then lies on both sides of the origin,
    where the ELM kernel can separate it.

    Parameters
    ----------
    n_samples : int, default=900
        Number of points.
    n_fields : int, default=3
        Number of fields along each side.
    random_state : int, RandomState or None, default=None
        Seed for the points.

    Returns
    -------
    X : array (n_samples, 2)
    y : array (n_samples,) of 0 and 1

    Examples
    --------
    >>> X, y = make_checkerboard(100, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((100, 2), [0, 1])
    """
    random = check_random_state(random_state)
    fields = random.uniform(0, n_fields, size=(n_samples, 2))
    y = fields.astype(np.intp).sum(axis=1) % 2
    return 2 * fields / n_fields - 1, y


def make_two_gaussians(
    n_samples: int = 200, *, separation: float = 2.5, random_state: Any = None
) -> tuple[Array, Indices]:
    """Generate two spherical, overlapping Gaussians in the plane: the paper's *Gauss*.

    The paper mentions "substantial overlap", but gives neither the number of points nor the
    distance between the means. The default number matches the step size of the published
    accuracies. At the default distance, the Bayes error is about the error of the paper's dense
    method.

    Parameters
    ----------
    n_samples : int, default=200
        Number of points. Classes alternate, so they are equally frequent.
    separation : float, default=2.5
        Distance between the means, in standard deviations.
    random_state : int, RandomState or None, default=None
        Seed for the points.

    Returns
    -------
    X : array (n_samples, 2)
    y : array (n_samples,) of 0 and 1

    Examples
    --------
    >>> X, y = make_two_gaussians(100, random_state=0)
    >>> X.shape, int(y.sum())
    ((100, 2), 50)
    """
    return _two_classes(n_samples, np.array([separation, 0.0]), random_state)


def make_pseudo_euclidean_gaussians(
    n_samples: int = 200, *, separation: float = 3.0, random_state: Any = None
) -> tuple[Array, Indices]:
    """Generate two slightly overlapping Gaussians in the pseudo-Euclidean plane ℝ^(1,1).

    The inner product of the vectors is indefinite, ⟨x, y⟩ = x₁y₁ − x₂y₂. To use it, pass the matrix
    `X @ np.diag([1, -1]) @ X.T` with `measure="precomputed"`, or pass X with the measure
    `lambda x, y: x[0] * y[0] - x[1] * y[1]`.

    The paper gives neither the means nor the spread. Here, the Gaussians are spherical with unit
    variance, and their means differ by the same amount in both coordinates. The squared
    pseudo-Euclidean distance between the means is then zero, but the discriminant still separates
    the classes.

    Parameters
    ----------
    n_samples : int, default=200
        Number of points. Classes alternate, so they are equally frequent.
    separation : float, default=3.0
        Distance between the means in the associated Euclidean plane, in standard deviations.
    random_state : int, RandomState or None, default=None
        Seed for the points.

    Returns
    -------
    X : array (n_samples, 2)
        The first coordinate counts as positive in the inner product, the second as negative.
    y : array (n_samples,) of 0 and 1

    Examples
    --------
    >>> X, y = make_pseudo_euclidean_gaussians(100, random_state=0)
    >>> K = X @ np.diag([1, -1]) @ X.T
    >>> lam = np.linalg.eigvalsh(K)
    >>> int((lam > 1e-9).sum()), int((lam < -1e-9).sum())
    (1, 1)
    """
    return _two_classes(n_samples, np.full(2, separation / np.sqrt(2)), random_state)


def _two_classes(n_samples: int, shift: Array, random_state: Any) -> tuple[Array, Indices]:
    """Return points of two spherical Gaussians in turn, with means `shift` (2,) apart."""
    y = np.arange(n_samples, dtype=np.intp) % 2
    X = check_random_state(random_state).normal(size=(n_samples, 2))
    return X + shift * (y - 0.5)[:, None], y


def make_three_gaussians(
    n_large: int = 500, n_small: int = 20, *, random_state: Any = None
) -> tuple[Array, Indices]:
    """Generate one large Gaussian (label 0) and two small ones (label 1) in ten dimensions.

    The large Gaussian varies in two dimensions, with small noise in seven more. Each small one
    varies only in the remaining dimension. The three do not overlap. The paper gives the numbers of
    points and dimensions. The rest is our choice: a standard deviation of 1 for the large Gaussian,
    0.1 for the small ones and 0.1 for the noise, and the positions of the small ones, at ±1 along
    the third dimension. If they were farther away, every landmark rule would find them.

    Parameters
    ----------
    n_large, n_small : int, default=500 and 20
        Number of points in the large Gaussian, and in each small one.
    random_state : int, RandomState or None, default=None
        Seed for the points.

    Returns
    -------
    X : array (n_large + 2 n_small, 10)
    y : array of 0 and 1

    Examples
    --------
    >>> X, y = make_three_gaussians(random_state=0)
    >>> X.shape, int(y.sum())
    ((540, 10), 40)
    """
    random = check_random_state(random_state)
    large = np.zeros((n_large, 10))
    large[:, :2] = random.normal(size=(n_large, 2))
    large[:, 3:] = 0.1 * random.normal(size=(n_large, 7))
    small = np.zeros((2, n_small, 10))
    small[:, :, 2] = 0.1 * random.normal(size=(2, n_small)) + np.array([[1.0], [-1.0]])
    X = np.concatenate([large, small[0], small[1]])
    return X, np.repeat([0, 1], [n_large, 2 * n_small])


_TRIES = 10_000
"""Number of positions tried for one ball before the cube counts as full."""


def make_balls(
    n_samples: int = 200,
    *,
    radii: tuple[float, ...] = (0.03, 0.04),
    n_dimensions: int = 3,
    random_state: Any = None,
) -> tuple[Array, Indices]:
    """Generate balls at random positions in a unit cube; the radius is the class.

    Compare them with the measure "balls", the gap between two surfaces. If a large ball replaces a
    small one at the same position, its gaps to all other balls shrink by the same amount. No
    Euclidean space can represent this, so the classes can be separated only with positive and
    negative eigenvalues together. If the negative ones are clipped, IKFD does no better than
    chance; an SVM with a carefully chosen C does better, but still makes errors that IKFD on the
    full matrix avoids.

    The data follow Duin & Pękalska (2010), *Non-Euclidean dissimilarities: causes and
    informativeness*. That paper has 100 balls in each of two classes "having a slightly different
    radius", and does not specify the radii, the space or whether balls may overlap. Here, centres
    are uniform in the unit cube, and balls do not overlap (a ball that would is placed again). The
    default radii are as close to each other as possible while the dense method still makes almost
    no errors with that number of balls. Telling such similar radii apart takes many landmarks; a
    few are enough only if the radii differ a lot.

    Parameters
    ----------
    n_samples : int, default=200
        Number of balls. Classes alternate, so they are equally frequent.
    radii : tuple of float, default=(0.03, 0.04)
        One radius per class; the side of the cube is 1.
    n_dimensions : int, default=3
        Number of dimensions of the cube.
    random_state : int, RandomState or None, default=None
        Seed for the positions.

    Returns
    -------
    X : array (n_samples, n_dimensions + 1)
        Centre, then radius.
    y : array (n_samples,)
        Index into `radii`.

    Examples
    --------
    >>> X, y = make_balls(100, random_state=0)
    >>> X.shape, sorted(set(X[:, -1].tolist()))
    ((100, 4), [0.03, 0.04])
    """
    if len(radii) < 2 or min(radii) < 0:
        raise ValueError(f"radii must be at least two non-negative numbers; got {radii}")
    random = check_random_state(random_state)
    y = np.arange(n_samples, dtype=np.intp) % len(radii)
    radius = np.asarray(radii, dtype=np.float64)[y]
    centres = np.empty((n_samples, n_dimensions))
    for k in range(n_samples):
        for _ in range(_TRIES):
            centre = random.uniform(size=n_dimensions)
            gaps = ((centres[:k] - centre) ** 2).sum(axis=1) - (radius[:k] + radius[k]) ** 2
            if (gaps >= 0).all():
                break
        else:
            raise ValueError(
                f"the cube is full: there is no room for ball {k} of {n_samples} with radius "
                f"{radius[k]:g}; use fewer balls or smaller radii"
            )
        centres[k] = centre
    return np.column_stack([centres, radius]), y


ALPHABET = "ARNDCQEGHILKMFPSTWYV"

# frequency of each amino acid in proteins (Robinson & Robinson 1991), per 100,000
_SHARES = (7805, 5129, 4487, 5364, 1925, 4264, 6295, 7377, 2199, 5142,
           9019, 5744, 2243, 3856, 5203, 7120, 5841, 1330, 3216, 6441)  # fmt: skip
BACKGROUND: Array = np.array(_SHARES) / sum(_SHARES)

_SUBFAMILY = 20
"""Mean number of members of a subfamily."""

_CHUNK = 2048
"""Number of sequences evolved together, so that memory does not grow with the total."""


class Population(NamedTuple):
    """Concatenated sequences: letters as indices into `ALPHABET`, and the length of each."""

    letters: NDArray[np.uint8]  # (Σ lengths,)
    lengths: Indices

    def take(self, chosen: Indices) -> Population:
        """Return the chosen sequences; one that is chosen several times is repeated."""
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
    """Return P (20, 20): the probability that letter a is replaced by b, derived from BLOSUM62.

    A score is a log-odds ratio, s_ab = log(q_ab / (p_a p_b)) / λ, so q_ab = p_a p_b exp(λ s_ab) is
    the frequency with which a is aligned with b in related sequences; λ is the root at which they
    sum to one (Karlin & Altschul 1990). Scores are rounded, so the row sums are only close to the
    background p. Scaling rows and columns by the same factors, q_ab ← d_a q_ab d_b, makes them
    equal to it (Sinkhorn 1964). The stationary distribution of P_ab = q_ab / p_a is then p: however
    long sequences evolve, the expected letter frequencies do not change.
    """
    matrix = require("scoring_matrices", "bio", "make_protein_families")
    blosum = matrix.ScoringMatrix.from_name("BLOSUM62")
    places = [blosum.alphabet.index(letter) for letter in ALPHABET]
    S = np.array(blosum, dtype=np.float64)[np.ix_(places, places)]
    p = BACKGROUND
    odds = np.outer(p, p)
    # λ = 0 is also a root; the other one is positive, after the sum has fallen and risen again
    lam = brentq(lambda lam: (odds * np.exp(lam * S)).sum() - 1.0, 0.1, 1.0)
    q = odds * np.exp(lam * S)
    d = np.ones(len(p))
    for _ in range(100):
        d = np.sqrt(d * p / (q @ d))  # the root prevents d from oscillating between two scalings
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
) -> tuple[NDArray[Any], Indices]:
    """Generate protein sequences of several families, evolved from one ancestor.

    A random sequence is the common ancestor. Families descend from it, subfamilies from each
    family, and members from each subfamily. Along a branch of length t, the number of hits of each
    site is Poisson distributed with mean t. A hit draws the next letter from the substitution
    probabilities of BLOSUM62, and often leaves it unchanged. Insertions and deletions occur at
    `indel_rate` times that rate, with geometrically distributed lengths; inserted letters follow
    the background frequencies.

    Branch lengths are in units of `divergence`: 2 to a family, ½ to a subfamily, and an exponential
    variable with mean 1 to a member. As in nature, most members are close to their relatives and
    some are distant. These data are not in the paper; they replace those of its protein sets that
    are not available, with any number of sequences. The default divergence makes the problem
    neither trivial nor hopeless: nearest neighbours by Smith-Waterman are correct far more often
    than by chance, but not always. At half the divergence they are almost always correct; at twice
    the divergence they are often wrong. `tests/datasets` checks this.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of sequences, divided evenly among the families, in random order.
    n_families : int, default=10
        Number of families, the classes.
    length : int, default=150
        Number of letters of the ancestor.
    divergence : float, default=1.0
        How far sequences evolve; larger values make the problem harder.
    indel_rate : float, default=0.02
        Number of insertions and deletions (half each) per hit.
    indel_length : float, default=3.0
        Mean number of letters of an insertion or deletion.
    random_state : int, RandomState or None, default=None
        Seed for the random numbers.

    Returns
    -------
    X : array (n_samples,) of str
        The sequences.
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
            raise ValueError(f"{name} must be at least 1; got {value}")
    if divergence < 0 or indel_rate < 0 or indel_length < 1:
        raise ValueError(
            "divergence and indel_rate must be at least 0, and indel_length at least 1; got "
            f"{divergence}, {indel_rate} and {indel_length}"
        )
    random = check_random_state(random_state)
    y = random.permutation(np.arange(n_samples, dtype=np.intp) % n_families)
    n_subfamilies = max(1, round(n_samples / n_families / _SUBFAMILY))
    indel = (indel_rate, indel_length)

    def descend(parents: Population, chosen: Indices, branch: Array) -> Population:
        children = substitute(parents.take(chosen), branch, random)
        return insert(delete(children, branch, *indel, random), branch, *indel, random)

    root = Population(_background_letters(length, random), np.array([length]))
    of_root = np.zeros(n_families, dtype=np.intp)
    families = descend(root, of_root, np.full(n_families, 2 * divergence))
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
    """Delete stretches of geometric length, but never a whole sequence. O(Σ lengths)."""
    ends = np.cumsum(sequences.lengths)
    owner = np.repeat(np.arange(len(ends)), sequences.lengths)
    starts = _places(owner, branch, rate / 2, random)
    stops = np.minimum(starts + random.geometric(1 / mean_length, len(starts)), ends[owner[starts]])
    total = len(sequences.letters)
    depth = np.bincount(starts, minlength=total + 1) - np.bincount(stops, minlength=total + 1)
    kept = np.cumsum(depth)[:total] == 0
    left = np.bincount(owner[kept], minlength=len(ends))
    kept |= left[owner] == 0  # a sequence that would become empty is left unchanged
    return Population(sequences.letters[kept], np.bincount(owner[kept], minlength=len(ends)))


def insert(
    sequences: Population, branch: Array, rate: float, mean_length: float, random: Any
) -> Population:
    """Insert stretches of geometric length with background frequencies. O(Σ lengths)."""
    owner = np.repeat(np.arange(len(sequences.lengths)), sequences.lengths)
    places = _places(owner, branch, rate / 2, random)
    sizes = random.geometric(1 / mean_length, len(places))
    new = _background_letters(sizes.sum(), random)
    added = np.bincount(np.repeat(owner[places], sizes), minlength=len(sequences.lengths))
    # insert after the chosen letter, so that what follows the last letter joins the same sequence
    letters = np.insert(sequences.letters, np.repeat(places + 1, sizes), new)
    return Population(letters, sequences.lengths + added)


def _background_letters(n: int, random: Any) -> NDArray[np.uint8]:
    return random.choice(len(ALPHABET), size=n, p=BACKGROUND).astype(np.uint8)


def _places(owner: Indices, branch: Array, rate: float, random: Any) -> Indices:
    """Return the sites of random events, at `rate` per site and unit of branch length."""
    return np.flatnonzero(random.uniform(size=len(owner)) < -np.expm1(-rate * branch[owner]))
