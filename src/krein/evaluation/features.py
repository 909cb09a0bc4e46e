"""Random convolutions: features of series that need no comparisons (Dempster et al. 2020)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ..compare import Pairs
from ..core.checks import Array, Indices
from ..measures import Measure, take
from .baselines import Baseline
from .heldout import log_losses

KERNELS, WIDTH = 500, 9
"""Number of random convolutions, and the number of values in each."""


@dataclass(frozen=True)
class Kernel:
    """A random convolution of one channel, and its threshold."""

    dilation: int
    weights: NDArray[np.float32]  # (WIDTH,), centred
    channel: int
    threshold: np.float32

    def values(self, stack: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the convolution (n, T) of series (n, T, channels), before the threshold."""
        n, T, _ = stack.shape
        half = self.dilation * (WIDTH // 2)
        signal = np.pad(stack[:, :, self.channel], ((0, 0), (half, half)))
        value = np.zeros((n, T), dtype=np.float32)
        for j, w in enumerate(self.weights):
            value += w * signal[:, j * self.dilation : j * self.dilation + T]
        return value


@dataclass(frozen=True)
class Convolutions:
    """Random convolutions of series (ROCKET; Dempster, Petitjean & Webb 2020).

    Kernels have nine centred normal weights, a random dilation and a random channel; the threshold
    is a random value of the convolution of one training series, as in MiniRocket. The common
    length, the mean and the spread are those of the training series too. No labels are used.
    """

    length: int  # T
    mean: Array  # (channels,)
    spread: Array  # (channels,)
    kernels: tuple[Kernel, ...]

    @classmethod
    def fit(cls, series: Sequence[Any], rng: np.random.Generator) -> Self:
        """Draw the kernels. Series of different lengths are stretched to their median length.

        O(N·T + T·KERNELS).
        """
        length = int(np.median([len(one) for one in series]))
        stack = _stacked(series, length)
        mean, spread = stack.mean(axis=(0, 1)), stack.std(axis=(0, 1))
        spread = np.where(spread > 0, spread, 1)
        stack = ((stack - mean) / spread).astype(np.float32)
        n, T, channels = stack.shape
        most = np.log2(max((T - 1) / (WIDTH - 1), 1.0))
        kernels = []
        for _ in range(KERNELS):
            dilation = int(2 ** rng.uniform(0, most))
            weights = rng.normal(size=WIDTH)
            weights = (weights - weights.mean()).astype(np.float32)
            kernel = Kernel(dilation, weights, int(rng.integers(channels)), np.float32(0))
            some, time = int(rng.integers(n)), int(rng.integers(T))
            threshold = kernel.values(stack[some : some + 1])[0, time]
            kernels.append(Kernel(dilation, weights, kernel.channel, threshold))
        return cls(length, mean, spread, tuple(kernels))

    def features(self, series: Sequence[Any]) -> Array:
        """Return the features (n, 2·KERNELS): the share above the threshold and the maximum of each
        convolution. O(n·T·KERNELS)."""
        stack = ((_stacked(series, self.length) - self.mean) / self.spread).astype(np.float32)
        found = np.empty((len(stack), 2 * len(self.kernels)))
        for k, kernel in enumerate(self.kernels):
            value = kernel.values(stack) - kernel.threshold
            found[:, 2 * k] = (value > 0).mean(axis=1)
            found[:, 2 * k + 1] = value.max(axis=1)
        return found


def _stacked(series: Sequence[Any], length: int) -> Array:
    """Return series as one array (n, T, channels)."""
    return np.stack([_stretched(np.asarray(one), length) for one in series])


def _stretched(one: Array, length: int) -> Array:
    one = one.reshape(len(one), -1)
    if len(one) == length:
        return one
    at = np.linspace(0, len(one) - 1, length)
    return np.column_stack([np.interp(at, np.arange(len(one)), c) for c in one.T])


# -------------------------------------------------------------------------------------------------
# A strong baseline without comparisons, on the objects' own features.
#
# It shows whether a measure is worth its comparisons. By kind of object:
#
#     strings, sequences   counts of character n-grams (TF-IDF), logistic regression
#     vectors, images      gradient boosting on histograms of the numbers
#     series               random convolutions (Dempster et al. 2020), logistic regression
#
# Sets, precomputed values and other objects have no such features.
# -------------------------------------------------------------------------------------------------

Kind = Literal["strings", "vectors", "series"]

SERIES = ("dtw", "erp", "msm")
"""Measures whose objects are series."""

SHORT = 50
"""Up to this mean length, strings are divided into n-grams of up to four characters; beyond it,
three."""

VOCABULARY = 100_000
STRENGTHS = (1.0, 10.0, 100.0)
"""Candidate values of C, the inverse strength of the penalty of logistic regression."""


def feature_kind(pairs: Pairs) -> Kind | None:
    """Return the kind of features that the objects have; None if they have none."""
    objects = pairs.objects
    if pairs.measure.accepts == "values":
        return None
    if pairs.measure.name in SERIES:
        return "series"
    if isinstance(objects, np.ndarray) and objects.dtype.kind in "biuf" and objects.ndim > 1:
        return "vectors"
    if len(objects) and all(isinstance(item, str) for item in objects):
        return "strings"
    return None


class FeatureBaseline(Baseline):
    """A classifier on the contents of the objects, without comparisons."""

    needs_all = False
    kernel_evaluations_ = 0
    comparisons_ = 0.0
    titles: dict[Kind, str] = {  # noqa: RUF012 - read only
        "strings": "character n-grams with logistic regression, no comparisons",
        "vectors": "gradient boosting on the vectors, no comparisons",
        "series": "random convolutions with logistic regression, no comparisons",
    }

    def __init__(self, measure: Measure, objects: Any, kind: Kind, random_state: int) -> None:
        super().__init__(measure)
        self.kind, self.random_state = kind, random_state
        self.contents = Contents(_contents(objects, kind))
        self.landmarks_: Indices = np.empty(0, dtype=np.intp)

    @property
    def title(self) -> str:
        """A short description of the model."""
        return self.titles[self.kind]

    def fit(self, X: Indices, y: NDArray[Any]) -> Self:
        """Fit to the contents of training objects; nothing is learned from any others."""
        if self.kind == "series":
            rng = np.random.default_rng(self.random_state)
            self.convolutions_ = Convolutions.fit(self.contents.of(X), rng)
        features = self._features(X)
        self.model_ = (
            _boosting(y, self.random_state)
            if self.kind == "vectors"
            else _chosen_logistic(features, y, self.kind, self.random_state)
        )
        _fit(self.model_, features, y)
        return self

    def predict_proba(self, X: Indices) -> Array:
        """Return probabilities."""
        return np.asarray(self.model_.predict_proba(self._features(X)))

    def _features(self, X: Indices) -> Any:
        contents = self.contents.of(X)
        return self.convolutions_.features(contents) if self.kind == "series" else contents


class Contents:
    """The contents of the objects; copies of a model share them."""

    def __init__(self, objects: Any) -> None:
        self.objects = objects

    def of(self, rows: Indices) -> Any:
        """Return the contents of some objects."""
        return take(self.objects, rows)

    def __deepcopy__(self, memo: Any) -> Contents:
        return self


def _contents(objects: Any, kind: Kind) -> Any:
    """Return vectors as rows, strings and series as a list."""
    if kind == "vectors":
        return np.asarray(objects, dtype=np.float64).reshape(len(objects), -1)
    return list(objects)


def _boosting(y: NDArray[Any], seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # a tenth is held out for early stopping, if every class can spare one
    enough = np.unique(y, return_counts=True)[1].min() >= 10
    return HistGradientBoostingClassifier(
        max_iter=300 if enough else 100, early_stopping=bool(enough), random_state=seed
    )


def _logistic(kind: Kind, longest: int, C: float) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if kind == "series":
        # scale C so that it has the same effect on 1,000 standardised columns as on unit rows
        model = LogisticRegression(C=C / 1000, max_iter=300, tol=1e-3)
        return make_pipeline(StandardScaler(), model)
    grams = TfidfVectorizer(
        analyzer="char", ngram_range=(1, longest), lowercase=False, preprocessor=_bounded,
        sublinear_tf=True, max_features=VOCABULARY,
    )  # fmt: skip
    return make_pipeline(grams, LogisticRegression(C=C, max_iter=300, tol=1e-3))


def _bounded(text: str) -> str:
    """Return the text with markers at both ends, so that n-grams there can be recognised."""
    return f"\x02{text}\x03"


def _chosen_logistic(objects: Any, y: NDArray[Any], kind: Kind, seed: int) -> Any:
    """Return logistic regression with the C that minimises the log-loss on a held-out fifth."""
    from sklearn.model_selection import StratifiedShuffleSplit

    longest = 0
    if kind == "strings":
        longest = 4 if np.mean([len(text) for text in objects]) <= SHORT else 3
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if counts.min() < 2 or 0.2 * len(y) < len(classes):
        return _logistic(kind, longest, 10.0)
    cut = StratifiedShuffleSplit(1, test_size=0.2, random_state=seed)
    train, test = next(cut.split(codes, codes))
    losses = []
    for C in STRENGTHS:
        model = _fit(_logistic(kind, longest, C), take(objects, train), y[train])
        losses.append(log_losses(model.predict_proba(take(objects, test)), codes[test]).mean())
    return _logistic(kind, longest, STRENGTHS[int(np.argmin(losses))])


def _fit(model: Any, objects: Any, y: NDArray[Any]) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    # one thread: on a busy machine, OpenMP threads wait for each other
    with warnings.catch_warnings(), threadpool_limits(1):
        # a few more steps would not change the figures
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(objects, y)
