"""Features of the objects themselves, which need no comparison: n-grams, convolutions, edges.

A measure supplies the map that suits its objects (`Measure.feature_map`). It is fitted to training
objects without their labels, and turns any objects of the same kind into rows of numbers, of length
1 in the mean. Its fields are arrays, so it can be stored in a model file.

    strings, sequences   hashed character n-grams, weighted by how rare they are
    series               convolutions (MiniRocket; Dempster, Schmidt & Webb 2021)
    images               histograms of gradients (HOG; Dalal & Triggs 2005)
    records              those of each part, side by side
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse, vstack

from ..core.shapes import COUNT, LOCAL, POSITIVE, Array, Indices, Mask, Within

Float32 = NDArray[np.float32]


class FeatureMap(Protocol):
    """Turns objects into rows of features."""

    @property
    def n_features(self) -> int:
        """Number of features, D."""

    def __call__(self, objects: Any) -> Any:
        """Return the features (n, D), dense or sparse."""

    def held_out(self, F: Any, place: Indices, groups: Indices) -> Any:
        """Return the features (n, D) of the training objects at `place` as if they were new.

        F (N, D) are those of all training objects, and `groups` (N,) their groups.
        """

    def folded(self, F: Any) -> Any:
        """Return about a thousand columns, or fewer, with about the same products as F (n, D)."""

    def shares(self, one: Any, slope: Array) -> Shares:
        """Return what each feature of an object adds to a score, with these weights (D,)."""


Described = tuple[str, tuple[tuple[int, int], ...]]
"""A feature in words, and the stretches of the object where it is: first position, and beyond."""


@dataclass(frozen=True)
class Shares:
    """What the features of one object add to a score."""

    parts: Array  # one number per feature
    along: Array | None  # (length,) or (length, channels): the same sum, by letters or values
    describe: Callable[[int], Described]


# -- strings and sequences -------------------------------------------------------------------------

BITS = 20
"""n-grams are hashed to 2²⁰ columns: among 100,000 of them, about one in ten shares its column."""

SHORT = 50
"""Up to this mean length, strings have few n-grams of each length, and are divided into n-grams of
at least one letter more."""

LONGEST, FEW = 7, 6
"""The longest n-grams; and the length from which letters are so few that every n-gram is common:
that of n-grams of DNA, and n-grams of other letters are so long that there are about as many."""

VOCABULARY = 100_000
"""Maximum number of n-grams that are kept: those of as many objects as necessary."""

FOLDED = 1024
"""About how many columns the search for similar objects uses."""

PART = 2**18
"""Letters that are hashed together, so that memory does not grow with their number."""


@dataclass(frozen=True)
class NGrams:
    """Character n-grams: 1 + log(count) times the weight of the n-gram, in rows of length 1.

    Markers at both ends make the first and last n-grams recognisable. The weight of an n-gram that
    occurs in df of N training objects is 1 + log((1 + N)/(1 + df)), or 1 if letters are few. An
    n-gram that is not kept counts in the length of a row, with the weight for df = 0: an object
    that has little in common with the training objects has small features. With `both_strands`,
    the n-grams of the reverse complement count too, so that both strands of DNA have the same
    features.

    Examples
    --------
    >>> from krein.measures.features import NGrams
    >>> grams = NGrams.fit(["house", "mouse", "haus"])
    >>> F = grams(["house", "mouse", "blah"])
    >>> S = (F @ F.T).toarray()
    >>> bool(S[0, 1] > S[0, 2])
    True
    """

    shortest: Annotated[int, Within(1, 64)]
    longest: Annotated[int, Within(1, 64)]
    columns: Annotated[NDArray[np.int64], "features", Within(0, 2**BITS)]  # hashed, ascending
    seen: Annotated[NDArray[np.int64], "features", Within(1, 2**53)]  # df: how many objects have it
    fewest: Annotated[int, Within(1, 2**53)]  # the least df of n-grams that are kept
    n_objects: Annotated[int, COUNT]
    both_strands: bool = False

    @classmethod
    def fit(
        cls, texts: Sequence[str], *, nearest: bool = False, both_strands: bool = False
    ) -> Self:
        """Return the n-grams of these strings. O(letters · longest).

        `nearest` is for features that find similar strings: in DNA, only n-grams of seven letters
        tell relatives from others.
        """
        return cls.fit_transform(texts, nearest=nearest, both_strands=both_strands)[0]

    @classmethod
    def fit_transform(
        cls, texts: Sequence[str], *, nearest: bool = False, both_strands: bool = False
    ) -> tuple[Self, csr_array]:
        """Return the n-grams of these strings, and their features."""
        shortest, longest = 1, suitable_length(texts)
        if nearest and longest >= FEW:
            shortest = longest = LONGEST
        none = np.zeros(0, dtype=np.int64)
        grams = cls(shortest, longest, none, none, 1, len(texts), both_strands)
        seen, counts = np.zeros(2**BITS, dtype=np.int64), list(grams._counts(texts))
        for part in counts:
            seen += np.bincount(part.indices, minlength=2**BITS)
        fewest = 1
        while np.count_nonzero(seen >= fewest) > VOCABULARY:
            fewest += 1
        found = np.flatnonzero(seen >= fewest)
        grams = replace(grams, columns=found, seen=seen[found], fewest=fewest)
        return grams, grams._weighted(counts)

    def commonest(self, F: csr_array, most: int) -> tuple[Self, csr_array]:
        """Return at most this many of the n-grams, those of most objects, and features with them.

        F (N, D) are features with all n-grams. The result is that of a fit with as few columns.
        """
        if len(self.columns) <= most:
            return self, F
        fewest = int(np.sort(self.seen)[::-1][most]) + 1
        kept = self.seen >= fewest
        grams = replace(self, columns=self.columns[kept], seen=self.seen[kept], fewest=fewest)
        rest, here = csr_array(F[:, ~kept]), csr_array(F[:, kept])
        rare = rest.data * self._rarity(0, self.n_objects) / self.rarity[~kept][rest.indices]
        N = F.shape[0]
        row, row_rest = (np.repeat(np.arange(N), np.diff(G.indptr)) for G in (here, rest))
        # beyond the n-grams that were dropped, others may not have been kept before
        longer = np.bincount(row_rest, rare**2 - rest.data**2, N)
        length = np.sqrt(1 + longer)
        return grams, csr_array((here.data / length[row], here.indices, here.indptr), here.shape)

    @property
    def n_features(self) -> int:
        """Number of n-grams that are kept."""
        return len(self.columns)

    @cached_property
    def rarity(self) -> Array:
        """The weight of each n-gram (D,)."""
        return self._rarity(self.seen, self.n_objects)

    def _rarity(self, seen: Any, n_objects: Any) -> Array:
        """Return the weights of n-grams that occur in `seen` of `n_objects` objects."""
        if self.longest >= FEW:  # in DNA, a rare n-gram is more often an error than a sign
            return np.ones(np.shape(seen))
        found: Array = 1 + np.log((1 + n_objects) / (1 + seen))
        return found

    def __call__(self, objects: Sequence[str]) -> csr_array:
        """Return the features (n, D) as a sparse array, with rows of length 1 or less."""
        return self._weighted(self._counts(objects))

    def _counts(self, texts: Sequence[str]) -> Iterator[csr_array]:
        """Yield how often each n-gram occurs in strings (n, 2²⁰), some at a time."""
        for part in _parts(texts):
            found = _counted(part, self.shortest, self.longest)
            if self.both_strands:
                others = [reverse_complement(text) for text in part]
                found = csr_array(found + _counted(others, self.shortest, self.longest))
                found.sort_indices()
            yield found

    def _weighted(self, counts: Iterable[csr_array]) -> csr_array:
        """Return the features of strings, from how often each n-gram occurs in them."""
        D, found = len(self.columns), []
        weights = np.append(self.rarity, self._rarity(0, self.n_objects))
        for part in counts:
            n, hashed = part.shape[0], part.indices
            column = np.searchsorted(self.columns, hashed)
            column[np.append(self.columns, -1)[column] != hashed] = D
            row = np.repeat(np.arange(n), np.diff(part.indptr))
            value = (1 + np.log(part.data)) * weights[column]
            length = np.sqrt(np.bincount(row, weights=value**2, minlength=n))
            known = column < D
            row, column, value = row[known], column[known], value[known]
            starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])
            found.append(csr_array((value / length[row], column, starts), shape=(n, D)))
        return csr_array(vstack(found)) if found else csr_array((0, D))

    def held_out(self, F: csr_array, place: Indices, groups: Indices) -> csr_array:
        """Return the features (n, D) of the training objects at `place` as if they were new.

        F (N, D) are those of all training objects. The result is that of n-grams fitted without
        the object's own group: df and N do not count it, and n-grams of too few others are not
        kept. The squared length of a row of F lacks what n-grams that are not kept contribute.
        """
        own, of = np.unique(groups[place], return_inverse=True)
        members = np.flatnonzero(np.isin(groups, own))
        which = np.searchsorted(own, groups[members])
        ones = csr_array((np.ones(len(members)), (which, members)), shape=(len(own), F.shape[0]))
        present = csr_array((np.ones(F.nnz), F.indices, F.indptr), shape=F.shape)
        counted = csr_array(ones @ present)  # df within each group
        counted.sort_indices()
        H = csr_array(F[place], dtype=np.float64)
        H.sort_indices()
        row = np.repeat(np.arange(len(place)), np.diff(H.indptr))
        key, keys = of[row] * F.shape[1] + H.indices, _keys(counted)
        rest = self.seen[H.indices] - counted.data[np.searchsorted(keys, key)]
        n_rest = self.n_objects - np.bincount(which, minlength=len(own))[of]
        kept = rest >= self.fewest
        rare, rarest = self._rarity(np.where(kept, rest, 0), n_rest[row]), self._rarity(0, n_rest)
        value = H.data * rare / self.rarity[H.indices]
        unknown = np.maximum(1 - np.bincount(row, H.data**2, len(place)), 0)
        unknown *= np.square(rarest / self._rarity(0, self.n_objects))
        length = np.sqrt(np.bincount(row, value**2, len(place)) + unknown)
        value = np.where(kept, value / length[row], 0.0)
        found = csr_array((value, H.indices, H.indptr), shape=H.shape)
        found.eliminate_zeros()
        return found

    def folded(self, F: csr_array) -> csr_array:
        """Return features (n, FOLDED) with about the same products as F (n, D).

        Every column is added to one of the new ones, with a sign from its hash ("feature hashing";
        Weinberger et al. 2009): the error of a product of rows of length 1 is about 1/√FOLDED.
        """
        sign = 1.0 - 2.0 * (self.columns // FOLDED % 2)
        parts = F.data * sign[F.indices], self.columns[F.indices] % FOLDED, F.indptr
        return csr_array(parts, shape=(F.shape[0], FOLDED))

    def shares(self, text: Any, slope: Array) -> Shares:
        """Return what each n-gram of a string adds to a score, and where. O(letters · longest).

        `slope` (D,) is the weight of each column. An n-gram is divided evenly among its letters;
        one that consists of a marker belongs to the letter next to it.
        """
        text = text if isinstance(text, str) else text.decode("utf-8", "replace")
        row, n = self([text]), len(text)
        columns, parts = row.indices, row.data * slope[row.indices]
        place, first, length = self.occurrences(text)
        edges = np.zeros(n + 1)  # by how much each letter differs from the one before
        if n:
            value = np.zeros(len(slope))
            value[columns] = parts
            start = first.clip(0, n - 1)
            stop = (first + length).clip(start + 1, n)
            each = value[place] / np.bincount(place, minlength=1)[place] / (stop - start)
            np.add.at(edges, start, each)
            np.subtract.at(edges, stop, each)

        def describe(k: int) -> Described:
            here = np.flatnonzero(place == columns[k])
            spans = [(int(first[i]), int(first[i] + length[i])) for i in here]
            a, b = spans[0]
            named = ("^" if a < 0 else "") + text[max(a, 0) : b] + ("$" if b > len(text) else "")
            inside = tuple((max(a, 0), min(b, len(text))) for a, b in spans)
            return named, inside

        return Shares(parts, np.cumsum(edges[:-1]), describe)

    def occurrences(self, text: str) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Return column, first letter and number of letters of each known n-gram in a string.

        Positions count the letters of the string itself; a marker is at −1 or at its length.
        N-grams of the other strand are where their complement is.
        """
        hashed, first, length = self._places(text)
        if self.both_strands:
            other, start, size = self._places(reverse_complement(text))
            hashed, length = np.append(hashed, other), np.append(length, size)
            first = np.append(first, len(text) - start - size)
        place = np.searchsorted(self.columns, hashed).clip(max=max(len(self.columns) - 1, 0))
        known = np.flatnonzero(self.columns[place] == hashed) if len(self.columns) else place[:0]
        return place[known], first[known], length[known]

    def _places(self, text: str) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.intp]]:
        """Return hashed column, first letter and number of letters of each n-gram in a string."""
        parts = list(_hashed([text], self.shortest, self.longest))
        hashed, _, first, length = (np.concatenate(each) for each in zip(*parts, strict=True))
        return hashed, first - 1, length


_COMPLEMENT = str.maketrans("ATGCSWRYKMBVHDN", "TACGSWYRMKVBDHN")


def reverse_complement(sequence: str) -> str:
    """Return the other strand of DNA, read in its own direction.

    Examples
    --------
    >>> from krein.measures.sequences import reverse_complement
    >>> reverse_complement("AACGR")
    'YCGTT'
    """
    return sequence.translate(_COMPLEMENT)[::-1]


def suitable_length(texts: Sequence[str]) -> int:
    """Return the longest n-grams that suit the alphabet and the length of strings.

    With letter frequencies of entropy H, there are about exp(n·H) common n-grams of n letters. In
    short strings, they may be as many as there are letters in all of them.
    """
    some = texts[:: max(1, len(texts) // 1000)]
    counts = np.array(list(Counter(chain.from_iterable(some)).values()), dtype=np.float64)
    if len(counts) < 2:
        return LONGEST
    share = counts / counts.sum()
    entropy = -float(share @ np.log(share))
    length = round(np.log(4**FEW) / entropy)
    if counts.sum() <= SHORT * len(some):
        letters = counts.sum() * len(texts) / len(some)
        length = max(length + 1, round(np.log(letters) / entropy))
    return int(np.clip(length, 2, LONGEST))


def _parts(texts: Sequence[str]) -> list[list[str]]:
    """Divide strings into parts of about `PART` letters."""
    parts: list[list[str]] = []
    room = 0
    for text in texts:
        if room <= 0:
            parts.append([])
            room = PART
        parts[-1].append(text if isinstance(text, str) else text.decode("utf-8", "replace"))
        room -= len(text) + 2
    return parts


def _keys(F: csr_array) -> NDArray[np.int64]:
    """Return a number for each entry of F, ascending with its row and column."""
    row = np.repeat(np.arange(F.shape[0]), np.diff(F.indptr))
    found: NDArray[np.int64] = row * F.shape[1] + F.indices
    return found


def _hashed(
    texts: list[str], shortest: int, longest: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]]:
    """Yield the column, the row, the first letter and the length of every n-gram.

    N-grams are taken from `PART` letters at a time, so that a long string takes no more memory
    than many short ones.
    """
    joined = "".join(f"\x02{text}\x03" for text in texts)
    letters = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    ends = np.cumsum([len(text) + 2 for text in texts])
    for start in range(0, len(letters), PART):
        place = np.arange(start, min(start + PART, len(letters)))
        row = np.searchsorted(ends, place, side="right")
        end, first = ends[row], place - np.append(0, ends)[row]
        here = np.zeros(len(place) + longest, dtype=np.uint32)  # with the letters that follow
        here[: len(letters) - start] = letters[start : start + len(here)]
        yield _hashed_part(here, place, row, end, first, shortest, longest)


def _hashed_part(
    letters: NDArray[np.uint32],
    place: NDArray[np.intp],
    row: NDArray[np.intp],
    end: NDArray[np.intp],
    first: NDArray[np.intp],
    shortest: int,
    longest: int,
) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return the column, the row, the first letter and the length of the n-grams that begin at
    some places; `letters` are those there and the `longest` that follow."""
    found = []
    with np.errstate(over="ignore"):
        hashes = np.zeros(len(place), dtype=np.uint64)
        for n in range(1, longest + 1):
            # the hash of n letters, from that of n − 1: Σ letter · Pʲ
            shifted = letters[n - 1 : n - 1 + len(place)].astype(np.uint64)
            hashes = hashes * np.uint64(0x100000001B3) + shifted + np.uint64(1)
            if n < shortest:
                continue
            inside = np.flatnonzero(place + n <= end)
            x = hashes[inside] ^ (hashes[inside] >> np.uint64(31))
            x = x * np.uint64(0x9E3779B97F4A7C15)
            column = (x >> np.uint64(64 - BITS)).astype(np.int64)
            found.append((column, row[inside], first[inside], np.full(len(inside), n)))
    columns, rows, firsts, sizes = (np.concatenate(each) for each in zip(*found, strict=True))
    return columns, rows, firsts, sizes


def _counted(texts: list[str], shortest: int, longest: int) -> csr_array:
    """Return how often each n-gram occurs in each string (n, 2²⁰), in ascending columns."""
    total = csr_array((len(texts), 2**BITS), dtype=np.int32)
    for column, row, _, _ in _hashed(texts, shortest, longest):
        ones = np.ones(len(row), dtype=np.int32)
        counts = csr_array((ones, (row, column)), shape=total.shape)
        counts.sum_duplicates()
        total = csr_array(total + counts) if total.nnz else counts
    return total


# -- series ----------------------------------------------------------------------------------------

KERNELS, WIDTH = 84, 9
"""Number of kernels (`krein.measures.minirocket`), and of values of each channel that one sees."""

DILATIONS = 32
"""Maximum number of dilations, and of biases per kernel."""

MANY = 1_000
"""Up to this many series, a kernel has `DILATIONS` biases, and fewer in proportion for more."""

FEWEST = 6
"""The least number of biases per kernel."""

DRAWN = 8
"""Biases are values of the convolutions of this many training series."""

MOST_CHANNELS = 9
"""A convolution combines at most this many channels."""

UNIT, FARTHEST = 2**16, 2**7
"""Values are rounded to multiples of 1/UNIT of the spread, and cut off at FARTHEST times it: sums
over nine channels fit into 32 bits."""

SCALED = 250
"""Features are standardised on about this many series."""

STACK = 2**22
"""Numbers that are convolved together, so that memory does not grow with the number of series."""

_GOLDEN = (np.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Convolutions:
    """Convolutions of series with the kernels of MiniRocket (Dempster, Schmidt & Webb 2021).

    Each of 84 kernels has up to 32 dilations, which grow exponentially up to the length of the
    series, and is applied to a random channel. If it combines several, the others get random
    kernels and signs, so that differences between channels count too. Two features belong to each
    bias of a kernel: the share of times at which its convolution is above the bias, and the longest
    stretch of such times (as in MultiRocket; Tan et al. 2022). They are standardised and divided by
    the square root of their number. Biases are quantiles of the convolutions of some training
    series, which also determine the common length, and the mean and spread of each channel.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.features import Convolutions
    >>> waves = [np.sin(np.arange(40) * f) for f in (0.3, 0.9)]
    >>> Convolutions.fit(waves, np.random.default_rng(0))(waves).shape
    (2, 5376)
    """

    length: Annotated[int, "length", Within(1, below="bytes")]
    mean: Annotated[Array, "channels"]
    spread: Annotated[Array, "channels", POSITIVE]
    dilations: Annotated[NDArray[np.int64], "dilations", Within(1, below="length+1")]
    pair_starts: Annotated[NDArray[np.int64], f"{KERNELS}*dilations+1", Within(0, spans="pairs")]
    channel_of: Annotated[NDArray[np.int64], "pairs", Within(0, below="channels")]
    kernel_of: Annotated[NDArray[np.int64], "pairs", Within(0, 2 * KERNELS - 1)]  # with its sign
    starts: Annotated[NDArray[np.int64], f"{KERNELS}*dilations+1", Within(0, spans="biases")]
    biases: Annotated[NDArray[np.int32], "biases", Within(-(2**31), 2**31 - 1)]
    centre: Annotated[Array, "features"]
    scale: Annotated[Array, "features", POSITIVE]

    @classmethod
    def fit(cls, series: Sequence[Any], rng: np.random.Generator) -> Self:
        """Draw channels and biases. Series of different lengths are stretched to their median
        length. O(N·T·channels), and O(T·features) per series that biases are drawn from.
        """
        length = int(np.median([len(one) for one in series]))
        mean, spread = _moments(series)
        n_channels, each = len(mean), np.clip(DILATIONS * MANY // len(series), FEWEST, DILATIONS)
        most = np.log2(max((length - 1) / (WIDTH - 1), 1.0))
        dilations, numbers = np.unique(
            np.exp2(np.linspace(0, most, int(each))).astype(np.int64), return_counts=True
        )
        several = np.log2(min(n_channels, MOST_CHANNELS) + 1)
        channels, kernels = [], []
        for i in range(KERNELS * len(dilations)):
            own = rng.permutation(n_channels)[: int(2 ** rng.uniform(0, several))]
            channels.append(own)
            kernels.append(np.append(i % KERNELS, rng.integers(2 * KERNELS, size=len(own) - 1)))
        starts = np.concatenate([[0], np.cumsum(np.repeat(numbers, KERNELS))])
        n_features = 2 * int(starts[-1])
        plain = cls(
            length=length,
            mean=mean,
            spread=spread,
            dilations=dilations,
            pair_starts=np.concatenate([[0], np.cumsum([len(own) for own in channels])]),
            channel_of=np.concatenate(channels),
            kernel_of=np.concatenate(kernels),
            starts=starts,
            biases=np.zeros(int(starts[-1]), dtype=np.int32),
            centre=np.zeros(n_features),
            scale=np.ones(n_features),
        )
        plain = replace(plain, biases=plain._quantiles(series, rng))
        F = plain(series[:: _step(len(series))])
        return replace(plain, centre=F.mean(axis=0), scale=plain._floored(F.std(axis=0)))

    def __post_init__(self) -> None:
        if len(self.centre) != 2 * len(self.biases):
            raise ValueError(f"there are {len(self.centre)} features, not two per bias")

    @property
    def n_features(self) -> int:
        """Number of features: two per bias."""
        return len(self.centre)

    def __call__(self, objects: Sequence[Any]) -> Array:
        """Return the features (n, D). O(n·T·D)."""
        from .minirocket import pooled_convolutions

        for one in objects[:1]:
            if (channels := np.reshape(one, (len(one), -1)).shape[1]) != len(self.mean):
                raise ValueError(
                    f"series of {channels} channels cannot be compared with series of "
                    f"{len(self.mean)}"
                )
        found = np.empty((len(objects), self.n_features))
        size = max(1, STACK // max(1, self.length * len(self.mean)))
        for start in range(0, len(objects), size):
            part = slice(start, start + size)
            found[part] = pooled_convolutions(
                self._whole_numbers(objects[part]),
                self.dilations,
                self.pair_starts,
                self.channel_of,
                self.kernel_of,
                self.starts,
                self.biases,
            )
            found[part] -= self.centre
            found[part] /= self.scale
        return found

    def held_out(self, F: Array, place: Indices, groups: Indices) -> Array:
        """Return the features (n, D) of the training series at `place` as if they were new.

        Their products with the rows of other groups are those of features whose scale was computed
        without their own group: a series that is unlike all others would otherwise make its own
        deviations small. The centre is irrelevant to models with an intercept. O(n·D).
        """
        H = F[place].copy()
        sample, of = F[:: _step(len(F))], groups[:: _step(len(F))]
        total, square = sample.sum(axis=0), np.square(sample).sum(axis=0)
        for group in np.intersect1d(groups[place], of):
            own = sample[of == group]
            if (n := len(sample) - len(own)) == 0:
                continue
            mean = (total - own.sum(axis=0)) / n
            variance = (square - np.square(own).sum(axis=0)) / n - np.square(mean)
            spread = self.scale * np.sqrt(np.maximum(variance, 0.0))
            H[groups[place] == group] *= np.square(self.scale / self._floored(spread))
        return H

    def _floored(self, spread: Array) -> Array:
        """Return the scale of features (D,) with these standard deviations.

        A share of T times cannot be told from one that differs by less than 1/T.
        """
        found: Array = np.maximum(spread, 1 / self.length) * np.sqrt(self.n_features)
        return found

    def folded(self, F: Array) -> Array:
        """Return some of the features (n, about FOLDED), with about the same products as all."""
        step = max(1, F.shape[1] // FOLDED)
        found: Array = F[:, ::step] * np.sqrt(step)
        return found

    def shares(self, series: Any, slope: Array) -> Shares:
        """Return what each feature adds to a score, and where. O(T·D).

        `slope` (D,) is the weight of each feature. Both features of a bias are sums over times.
        What a time adds is divided evenly among the values that the convolution sees there. A
        description names the stretch where the convolution is largest.
        """
        from .minirocket import inside

        one = np.asarray(series, dtype=np.float64)
        stack, T = self._whole_numbers([one])[0], self.length
        slope, parts = slope / self.scale, np.empty(self.n_features)
        peaks = np.empty(len(self.starts) - 1, dtype=np.intp)
        along = np.zeros((T, len(self.mean)))
        for k, d in enumerate(self.dilations.tolist()):
            by_time = np.zeros((len(self.mean), T))  # of all kernels
            for p, value in enumerate(self._convolved(stack, k)):
                i = k * KERNELS + p
                low, high = inside(T, d, k, p)
                seen = value[low:high]
                peaks[i] = low + np.argmax(seen)
                channels, total = self._channels(i), np.zeros(high - low)
                for f in range(2 * self.starts[i], 2 * self.starts[i + 1]):
                    here = seen > self.biases[f // 2]
                    here = _longest(here) if f % 2 else here
                    times = slope[f] / len(seen) * (here - self.centre[f])
                    parts[f] = times.sum()
                    total += times
                by_time[channels, low:high] += total / len(channels)
            within = _spread_out(np.ones((1, T)), d)
            along += _spread_out(by_time / within, d).T

        def describe(f: int) -> Described:
            i = int(np.searchsorted(self.starts, f // 2, side="right")) - 1
            half, scale = int(self.dilations[i // KERNELS]) * (WIDTH // 2), len(one) / T
            a, b = max(peaks[i] - half, 0), min(peaks[i] + half + 1, T)
            a, b = round(a * scale), max(round(b * scale), round(a * scale) + 1)
            channels = sorted(self._channels(i).tolist())
            plural, named = "s" if len(channels) > 1 else "", ", ".join(map(str, channels))
            seen = f", channel{plural} {named}" if len(self.mean) > 1 else ""
            return f"times {a} to {b - 1}{seen}", ((a, b),)

        return Shares(parts, _shrunk(along, len(one)), describe)

    def _quantiles(self, series: Sequence[Any], rng: np.random.Generator) -> NDArray[np.int32]:
        """Return quantiles (B,) of the convolutions of series, of others for each dilation.

        Those of a kernel are evenly spread, because multiples of the golden ratio are.
        """
        found = np.empty(len(self.biases), dtype=np.int32)
        order = _GOLDEN * np.arange(1, len(found) + 1) % 1.0
        for k in range(len(self.dilations)):
            drawn = rng.permutation(len(series))[:DRAWN]
            stack = self._whole_numbers([series[i] for i in drawn])
            step = max(1, len(drawn) * self.length // MOST_SORTED)
            values = np.hstack([self._convolved(one, k)[:, ::step] for one in stack])
            values.sort(axis=1)
            for p in range(KERNELS):
                own = slice(*self.starts[k * KERNELS + p :][:2])
                found[own] = values[p, (order[own] * values.shape[1]).astype(np.intp)]
        return found

    def _whole_numbers(self, series: Sequence[Any]) -> NDArray[np.int32]:
        """Return series (n, channels, T), standardised, in multiples of 1/UNIT."""
        stack = (_stacked(series, self.length) - self.mean) / self.spread
        stack = np.rint(stack.clip(-FARTHEST, FARTHEST) * UNIT).astype(np.int32)
        return np.ascontiguousarray(stack.swapaxes(1, 2))

    def _convolved(self, one: NDArray[np.int32], k: int) -> NDArray[np.int32]:
        """Return the convolutions (84, T) of a series (channels, T) at one of the dilations."""
        from .minirocket import convolved

        starts = self.pair_starts[k * KERNELS : (k + 1) * KERNELS + 1]
        found: NDArray[np.int32] = convolved(
            one, self.dilations[k], starts, self.channel_of, self.kernel_of
        )
        return found

    def _channels(self, i: int) -> NDArray[np.int64]:
        return self.channel_of[self.pair_starts[i] : self.pair_starts[i + 1]]


MOST_SORTED = 2**14
"""Maximum number of values of a convolution whose quantiles are taken."""


def _step(n: int) -> int:
    """Return the distance of the series from which centre and scale are computed."""
    return -(-n // SCALED)


def _longest(true: Mask) -> Mask:
    """Return the first of the longest stretches of what is true (T,)."""
    edges = np.flatnonzero(np.diff(true, prepend=False, append=False)).reshape(-1, 2)
    found = np.zeros(len(true), dtype=bool)
    if len(edges):
        found[slice(*edges[np.argmax(np.diff(edges, axis=1))])] = True
    return found


def _spread_out(by_time: Array, dilation: int) -> Array:
    """Return the sum (n, T) over the nine times that a kernel sees; there is nothing beyond."""
    n, T = by_time.shape
    half = dilation * (WIDTH // 2)
    padded = np.pad(by_time, ((0, 0), (half, half)))
    return sum((padded[:, j * dilation : j * dilation + T] for j in range(WIDTH)), np.zeros((n, T)))


def _moments(series: Sequence[Any]) -> tuple[Array, Array]:
    """Return mean and spread of each channel, over all values."""
    values = [np.reshape(np.asarray(one, dtype=np.float64), (len(one), -1)) for one in series]
    number = sum(map(len, values))
    mean = sum((one.sum(axis=0) for one in values), np.zeros(values[0].shape[1])) / number
    square = sum((np.square(one - mean).sum(axis=0) for one in values), np.zeros(len(mean)))
    spread = np.sqrt(square / number)
    return mean, np.where(spread > 0, spread, 1.0)


def _shrunk(along: Array, n: int) -> Array:
    """Return sums over n stretches of equal length, from those over T stretches (T, channels)."""
    if len(along) == n:
        return along
    total = np.vstack([np.zeros((1, along.shape[1])), np.cumsum(along, axis=0)])
    at, ends = np.arange(len(total)), np.linspace(0, len(along), n + 1)
    return np.diff(np.column_stack([np.interp(ends, at, c) for c in total.T]), axis=0)


def _stacked(series: Sequence[Any], length: int) -> Array:
    """Return series as one array (n, T, channels)."""
    return np.stack([_stretched(np.asarray(one, dtype=np.float64), length) for one in series])


def _stretched(one: Array, length: int) -> Array:
    one = one.reshape(len(one), -1)
    if len(one) == length:
        return one
    at = np.linspace(0, len(one) - 1, length)
    return np.column_stack([np.interp(at, np.arange(len(one)), c) for c in one.T])


# -- images ----------------------------------------------------------------------------------------

BINS, CELLS = 8, 4
"""Number of directions of a gradient; number of cells that fit side by side into an image."""

IMAGE_NUMBERS = 2**21
"""Numbers in the gradients that are handled together: 16 MB."""


@dataclass(frozen=True)
class Gradients:
    """Histograms of gradients in overlapping cells (HOG; Dalal & Triggs 2005).

    The gradient of every pixel adds its length to the two nearest of eight directions, in all cells
    that contain the pixel. Features are the square roots of these sums in rows of length 1, less
    the mean row, scaled to a mean square of 1.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.features import Gradients
    >>> images = np.zeros((2, 8, 8))
    >>> images[0, :, 4:] = images[1, 4:] = 1.0
    >>> Gradients.fit(images)(images).shape
    (2, 392)
    """

    size: Annotated[int, Within(1, below="height+1")]  # of a square cell, in pixels
    step: Annotated[int, Within(1, below="height+1")]  # from one cell to the next
    height: Annotated[int, "height", Within(1, below="bytes")]  # of the images
    width: Annotated[int, Within(1, below="bytes")]
    centre: Annotated[Array, "features"]
    scale: Annotated[float, POSITIVE]

    @classmethod
    def fit(cls, images: Array) -> Self:
        """Return the features of images (N, height, width). O(N·pixels)."""
        images = np.asarray(images)
        _, height, width = images.shape
        size = min(max(2, round(min(height, width) / CELLS)), height, width)
        plain = cls(size, max(1, size // 2), height, width, np.zeros(1), 1.0)
        F = plain(images)
        centre = F.mean(axis=0)
        spread = float(np.sqrt(np.square(F - centre).sum(axis=1).mean()))
        return replace(plain, centre=centre, scale=spread if spread > 0 else 1.0)

    @property
    def corners(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first rows and the first columns of the cells."""
        ends = self.height - self.size + 1, self.width - self.size + 1
        rows, columns = (np.arange(0, end, self.step) for end in ends)
        return rows, columns

    def __call__(self, objects: Any) -> Array:
        """Return the features (n, D). O(n·pixels)."""
        images = np.asarray(objects, dtype=np.float64)
        if images.shape[1:] != (self.height, self.width):
            found, known = (" × ".join(map(str, s)) for s in (images.shape[1:], self._shape))
            raise ValueError(f"images of {found} pixels cannot be compared with images of {known}")
        size = max(1, IMAGE_NUMBERS // (BINS * self.height * self.width))
        parts = [self._sums(images[i : i + size]) for i in range(0, len(images), size)]
        F = np.sqrt(np.concatenate([np.zeros((0, self.n_features)), *parts]))
        length = np.sqrt(np.square(F).sum(axis=1, keepdims=True))
        return (F / np.where(length > 0, length, 1.0) - self.centre) / self.scale

    @property
    def n_features(self) -> int:
        """Number of features: one per cell and direction."""
        rows, columns = self.corners
        return len(rows) * len(columns) * BINS

    @property
    def _shape(self) -> tuple[int, int]:
        return self.height, self.width

    def _sums(self, images: Array) -> Array:
        """Return the lengths of gradients (n, D), added up per cell and direction."""
        n, height, width = images.shape
        padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
        dx = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
        dy = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
        turn = (np.arctan2(dy, dx) / (2 * np.pi) % 1.0) * BINS
        first, length = np.floor(turn).astype(np.intp) % BINS, np.hypot(dx, dy)
        share = turn - np.floor(turn)
        each = np.empty((n, height, width, BINS))
        for b in range(BINS):
            near = (first == b) * (1 - share) + ((first + 1) % BINS == b) * share
            each[..., b] = length * near
        rows, columns = self.corners
        nothing: Array = np.zeros(())
        bands = sum((each[:, rows + i] for i in range(self.size)), nothing)
        cells = sum((bands[:, :, columns + i] for i in range(self.size)), nothing)
        return cells.reshape(n, -1)

    def held_out(self, F: Array, place: Indices, groups: Indices) -> Array:
        """Return rows of F: what is learned from all images hardly depends on one of them."""
        return F[place]

    def folded(self, F: Array) -> Array:
        """Return the features themselves, which are few."""
        return F

    def shares(self, image: Any, slope: Array) -> Shares:
        """Return what each cell and direction adds to a score.

        `slope` (D,) is the weight of each feature.
        """
        parts = self(np.asarray(image)[None])[0] * slope

        def describe(k: int) -> Described:
            rows, columns = self.corners
            i, j = divmod(k // BINS, len(columns))
            a, b = int(rows[i]), int(columns[j])
            last = self.size - 1
            return f"edges in rows {a} to {a + last}, columns {b} to {b + last}", ()

        return Shares(parts, None, describe)


# -- records ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecordFeatures:
    """The features of several parts of records, side by side."""

    names: tuple[str, ...]  # of the parts that have features
    maps: tuple[Annotated[NGrams | Convolutions | Gradients, LOCAL], ...]
    n_features: Annotated[int, "features"]

    @classmethod
    def of(cls, parts: dict[str, tuple[Any, Any]]) -> tuple[Self, Any]:
        """Return the features of records, from the maps of their parts and the parts' features."""
        maps = [found for found, _ in parts.values()]
        whole = cls(tuple(parts), tuple(maps), sum(found.n_features for found in maps))
        return whole, whole._beside([F for _, F in parts.values()])

    def __post_init__(self) -> None:
        if self.n_features != sum(found.n_features for found in self.maps):
            raise ValueError(f"the parts do not have {self.n_features} features")
        if len(self.names) != len(self.maps):
            raise ValueError(f"there are {len(self.names)} names of {len(self.maps)} parts")

    def __call__(self, objects: Any) -> Any:
        """Return the features (n, D)."""
        parts = zip(self.names, self.maps, strict=True)
        return self._beside([found(objects.of(name)) for name, found in parts])

    def held_out(self, F: Any, place: Indices, groups: Indices) -> Any:
        """Return the features (n, D) of the training objects at `place` as if they were new."""
        parts = zip(self.maps, self._divided(F), strict=True)
        return self._beside([found.held_out(part, place, groups) for found, part in parts])

    def folded(self, F: Any) -> Array:
        """Return the folded features of the parts, side by side."""
        parts = zip(self.maps, self._divided(F), strict=True)
        folded: list[Any] = [found.folded(part) for found, part in parts]
        dense = [one.toarray() if issparse(one) else one for one in folded]
        return np.hstack(dense) / self._unit

    def shares(self, record: Any, slope: Array) -> Shares:
        """Return what each feature adds to a score, named after its part."""
        ends = np.cumsum([found.n_features for found in self.maps])
        found = [
            part.shares(record[name], own / self._unit)
            for name, part, own in zip(
                self.names, self.maps, np.split(slope, ends[:-1]), strict=True
            )
        ]
        starts = np.cumsum([0, *(len(one.parts) for one in found)])

        def describe(k: int) -> Described:
            i = int(np.searchsorted(starts, k, side="right")) - 1
            return f"{self.names[i]}: {found[i].describe(k - int(starts[i]))[0]}", ()

        return Shares(np.concatenate([one.parts for one in found]), None, describe)

    @property
    def _unit(self) -> float:
        """The length of a row whose parts have length 1."""
        return float(np.sqrt(len(self.maps)))

    def _beside(self, parts: Sequence[Any]) -> Any:
        sparse = any(issparse(part) for part in parts)
        joined = csr_array(hstack(parts)) if sparse else np.hstack(parts)
        return joined / self._unit

    def _divided(self, F: Any) -> list[Any]:
        """Return the features of each part, sparse if its own are."""
        F, found, start = F * self._unit, [], 0
        for part in self.maps:
            own = F[:, start : start + part.n_features]
            start += part.n_features
            dense = issparse(own) and not isinstance(part, NGrams)
            found.append(own.toarray() if dense else own)
        return found
