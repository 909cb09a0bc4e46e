"""KreinClassifier: the front door. Two looks at every object, and nothing to tune."""

from __future__ import annotations

from typing import Any, Self

from ..compare.pairs import Counter
from ..core.family import Priors
from ..core.gaussian import FisherFamily
from ..core.nystrom import signed_eigen
from ..data.dataset import Dataset
from ..landmarks import Rule, Stratified
from ..landmarks.stratified import default_number
from .base import all_or_nothing
from .classifier import FeatureTerm, LandmarkClassifier
from .learning import KeptValues, Settings, learn
from .secondlook import default_neighbours
from .selection import LandmarkChoice
from .twolooks import FittedTwoLooks


class KreinClassifier(FittedTwoLooks, LandmarkClassifier):
    """Classify objects by a similarity or dissimilarity, with nothing to tune.

    The first look compares an object with a few landmarks, and pools three models of those values:
    `IKFD`, `IKQD` and `PCVM`. Where they are not sure enough, the second look compares it with the
    training objects that its values to the landmarks single out, and adds the labels of the
    nearest ones as evidence. How far to trust each model and the evidence, and when to look again,
    is learned from training objects that take their turn as new ones. So a prediction costs about
    a twentieth of the comparisons that nearest neighbours would, for the same accuracy or better.

    Parameters
    ----------
    measure : str, Measure or callable, default="elm"
        What compares two objects: a name out of `krein.measures.available()`, a `Measure`, a
        function of two objects, or "precomputed" / "precomputed-distance" where X holds the values.
    measure_params : dict or None, default=None
        Parameters of a measure that is given by name.
    landmarks : str, Rule or array of indices, default="stratified"
        How landmarks are chosen; see `krein.landmarks`.
    n_landmarks : int or None, default=None
        How many. None takes all of up to 200 objects, and of more 2 √N or N/40, whichever is
        more, up to 500, of which it keeps as many as are worth their `price`.
    neighbours : int or None, default=None
        Candidates that an object is compared with in the second look; 0 for the first look alone.
        None takes a third of the number of landmarks, at least 30 and at most 100.
    price : float, default=2e-4
        A further comparison per prediction has to lower the held-out log-loss by so much, or the
        model does without it: up to half of the landmarks are dropped.
    max_comparisons : float or None, default=None
        Budget for the mean number of comparisons per prediction. None spends what is needed to
        come within 1 % of the loss of always looking twice.
    max_kept : int, default=100_000
        Training objects that the model keeps as candidates. Of more than that, those the first
        look gets wrong come first, and every class is represented.
    novel_below : float, default=0.01
        `assess` calls an object novel, none of the classes, where its p-value is at most this. Of
        objects like the training objects about this share is called novel too. Smaller p-values
        than 1/(n + 1) do not exist, with n held-out objects: 1 % takes 99.
    ambiguous_below : float, default=0.8
        `assess` calls an object ambiguous where no class has this probability.
    class_weight : dict, "balanced" or None, default=None
        What an error on each class costs.
    symmetrize : bool, default=False
        Average both directions of a measure that is not symmetric, at twice the comparisons.
    n_jobs : int or None, default=None
        Workers that compare objects: None takes all processors for measures that release Python's
        lock and one for plain functions, −1 always takes all.
    cache : path or None, default=None
        A folder that keeps finished comparisons, so that a later run need not repeat them.
    verbose : int, default=0
        Above 0, progress bars on a terminal.
    random_state : int, RandomState or None, default=0
        Draws the landmarks. The same number gives the same model, in any order of the rows.

    Attributes
    ----------
    classes_ : array (C,)
        The labels, sorted.
    landmarks_ : array (m,)
        Rows of the training objects that every object is compared with.
    comparisons_ : float
        Estimated mean number of comparisons per prediction.
    last_comparisons_ : int
        Comparisons that the last call on objects in memory took.
    kernel_evaluations_ : int
        Pairs that were compared to fit.
    kernel_reused_ : int
        Values that came out of the cache instead.
    looks_ : TwoLooks
        Heads, their weights (`first`, `second`), and the `threshold` for a second look.
    known_ : KnownObjects
        The objects that may be candidates, and where they lie.
    known_objects_ : sequence
        Those objects, as the measure keeps them.
    reference_ : Reference
        What held-out training objects scored: new ones are ranked among them.
    size_curve_ : SizeCurve
        What fewer landmarks would cost and give; absent where their number was not chosen.
    signature_ : Signature
        Number of positive, negative and zero eigenvalues of the approximated kernel.
    eigenvalues_ : array
        Its non-zero eigenvalues with their signs, largest magnitude first.

    See Also
    --------
    IKFD : One pass and constant memory, for streams.
    PCVM : One sparse model.

    Notes
    -----
    A fit compares N·m pairs, and `neighbours` for each of up to 2,500 training objects. The model
    keeps the training objects, and 4·min(m, 128) bytes for each.

    Examples
    --------
    >>> from krein import KreinClassifier
    >>> from krein.datasets import make_protein_families
    >>> X, y = make_protein_families(60, random_state=0)
    >>> clf = KreinClassifier("smith-waterman").fit(X[:-5], y[:-5])
    >>> bool((clf.predict(X[-5:]) == y[-5:]).all())
    True
    """

    multiclass = "joint"
    calibrate = True
    rank = None

    def __init__(
        self,
        measure: Any = "elm",
        *,
        measure_params: dict[str, Any] | None = None,
        landmarks: Any = "stratified",
        n_landmarks: int | None = None,
        neighbours: int | None = None,
        price: float = 2e-4,
        max_comparisons: float | None = None,
        max_kept: int = 100_000,
        novel_below: float = 0.01,
        ambiguous_below: float = 0.8,
        class_weight: Any = None,
        symmetrize: bool = False,
        n_jobs: int | None = None,
        cache: Any = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.measure = measure
        self.measure_params = measure_params
        self.landmarks = landmarks
        self.n_landmarks = n_landmarks
        self.neighbours = neighbours
        self.price = price
        self.max_comparisons = max_comparisons
        self.max_kept = max_kept
        self.novel_below = novel_below
        self.ambiguous_below = ambiguous_below
        self.class_weight = class_weight
        self.symmetrize = symmetrize
        self.n_jobs = n_jobs
        self.cache = cache
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to objects X with labels y.

        Parameters
        ----------
        X : sequence of N objects, or an N×N matrix of values
            What the measure compares; for a precomputed measure the values themselves. Objects
            need not be in memory: the path of a file or a source out of `krein.io` (with its
            labels), a memory map, or a Dask collection. Landmarks are then chosen among about
            20,000 objects.
        y : array of N labels, or None where X has them
        sample_weight : array of N numbers, optional
            How many objects each one counts for; one of weight 0 is as good as absent.

        Returns
        -------
        self
        """
        self._check()
        with all_or_nothing(self), self._open(X, y, sample_weight) as data:
            self._survey(data)
            choice = self._choose(data)
            self.kernel_evaluations_ = choice.counter.compared
            self.kernel_reused_ = choice.counter.reused
            kept = self._keep_values(data, choice)
            try:
                learned = learn(data, choice, kept, self._settings(len(choice.landmarks.indices)))
            finally:
                kept.features.close()
            self._use_landmarks(learned.landmarks)
            self.looks_, self.known_ = learned.looks, learned.known
            self.known_objects_, self.reference_ = learned.known_objects, learned.reference
            self.landmark_names_ = self.known_names_ = None
            self.comparisons_ = learned.comparisons
            if learned.curve is not None:
                self.size_curve_ = learned.curve
            self.kernel_evaluations_ += learned.counter.compared
            self.kernel_reused_ += learned.counter.reused
            self._last_call = Counter()
            self.__dict__.pop("_likeness", None)
        return self

    def _check(self) -> None:
        k = self.neighbours
        if k is not None and (k != int(k) or k < 0):
            raise ValueError(f"neighbours is a whole number, 0 for none, or None; got {k!r}")
        if self.max_kept != int(self.max_kept) or self.max_kept < 1:
            raise ValueError(f"max_kept is a whole number, at least 1; got {self.max_kept!r}")
        if not self.price >= 0:
            raise ValueError(f"price is a number, at least 0; got {self.price!r}")
        for name in ("novel_below", "ambiguous_below"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is a share from 0 to 1; got {getattr(self, name)!r}")
        if self.max_comparisons is not None and not self.max_comparisons >= 1:
            raise ValueError(
                f"max_comparisons is a number, at least 1, or None; got {self.max_comparisons!r}"
            )

    def _family(self) -> FisherFamily:
        return FisherFamily(
            len(self.classes_), shrinkage="oas", priors=Priors(None, self._class_weights())
        )

    def _rule(self, data: Dataset) -> Rule:
        """Return the landmark rule, with the number that suits all objects and the budget."""
        rule = super()._rule(data)
        if isinstance(rule, Stratified) and rule.n_landmarks is None:
            known = data.survey()
            number = default_number(known.weighted, len(known.classes))
            if self.max_comparisons is not None:
                number = min(number, max(1, int(self.max_comparisons)))
            rule.set_params(n_landmarks=number)
        return rule

    def _settings(self, n_landmarks: int) -> Settings:
        """Return what the parameters say of a fit with so many landmarks."""
        k = default_neighbours(n_landmarks) if self.neighbours is None else self.neighbours
        return Settings(
            comparing=self._comparing(self.measure_),
            priors=self._family().priors,
            neighbours=k,
            price=self.price if self.n_landmarks is None else 0.0,
            max_comparisons=self.max_comparisons,
            max_kept=self.max_kept,
        )

    def _keep_values(self, data: Dataset, choice: LandmarkChoice) -> KeptValues:
        """Compare all objects with the landmarks, once, for all heads."""
        space, m = choice.landmarks.space, len(choice.landmarks.indices)
        each = self._class_weights().of_objects(data.survey().weights)
        term = FeatureTerm(
            choice.columns, space, space.origin(), self.classes_, each, by_class=True
        )
        kept, total = data.keep(term, m, self._block_rows(m))
        self._set_spectrum(signed_eigen(total.value.gram(), space.signs).values)
        self.kernel_evaluations_ += total.compared
        self.kernel_reused_ += total.reused
        return KeptValues(kept, total.value, each)
