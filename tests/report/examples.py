"""Made-up evaluations that show every part of a report without computing anything."""

from __future__ import annotations

import numpy as np

from krein.core.cascade import HeadWorth, LookWorth, Worth
from krein.core.space import SpectrumEstimate, negative_mass, signature
from krein.evaluation import Evaluation, ModelResult
from krein.evaluation.heldout import LookCurve, SuspectLabel, UnknownClasses
from krein.evaluation.result import Duplicates, ObjectMap, PairCount

HOSTILE = "</script><script>document.title='broken'</script><img src=http://127.0.0.1:9/x>\"'&"


def taxon(c, n):
    """Return the path of a species: about the fourth root of `n` names at each of four ranks."""
    k = round(n**0.25) + 1
    upper, order, family = f"k__Kingdom{c // k**3:02d}", c // k**2, c // k
    return f"{upper};o__Order{order:04d};f__Family{family:05d};s__Species_of_{c:06d}"


def made_up(
    n=120,
    n_classes=3,
    n_models=2,
    *,
    hostile=False,
    given=False,
    psd=False,
    perfect=False,
    grown=True,
    seed=0,
    shown=None,
    ranked=False,
    sure=2.0,
):
    """Return an evaluation of `n` objects; with `hostile`, names and labels contain markup.

    With `ranked`, labels are paths, and every fifth object is taken for its neighbour. The larger
    `sure`, the less certain are the models.
    """
    rng = np.random.default_rng(seed)
    digits = max(2, len(str(n_classes - 1)))
    classes = np.array(
        [
            f"{HOSTILE}{c:02d}" if hostile else f"Family_{c:0{digits}d}+Long_Name"
            for c in range(n_classes)
        ]
    )
    if ranked:
        classes = np.array([taxon(c, n_classes) for c in range(n_classes)])
    codes = np.arange(n) % n_classes
    labels = classes[codes]
    folds = rng.permutation(n) % 4
    centres = rng.normal(scale=6, size=(n_classes, 2))
    landmarks = np.sort(rng.choice(n, max(2, n // 20), replace=False))
    curve = {
        "landmarks": np.array([10.0, 20, 30]),
        "criterion": np.array([0.5, 0.2, 0.21]),
        "standard_error": np.array([0.05, 0.04, 0.04]),
        "evaluations": np.array([100.0, 200, 300]),
    }
    looks = LookCurve(
        np.array([40.0, 55, 70, 46]),
        np.array([0.9, 0.95, 0.96, 0.95]),
        np.array([0.3, 0.2, 0.19, 0.21]),
        np.array([0.0, 0.5, 1.0, 0.2]),
        n,
    )
    every = np.arange(min(n_classes, 100))  # as in an evaluation
    unknown = UnknownClasses(
        every, 1 - 0.4 * every / n_classes, 1 - 0.9 * every / n_classes, every[::-1].copy(), n
    )
    worth = Worth(
        (HeadWorth("features", 0.4, 0.31, 0.25), HeadWorth("ikfd", 0.7, 0.28, 0.29)),
        (
            LookWorth("look zero", 1.0, 0.0, 0.3),
            LookWorth("first look", 0.36, 14.0, 0.24),
            LookWorth("second look", 0.1, 17.0, 0.21),
        ),
    )
    suspect = SuspectLabel(3, 0.01, 1, 0.98, (4, 5, 6))
    models = {}
    for k in range(n_models):
        P = rng.dirichlet(np.ones(n_classes), size=n) * (0.0 if perfect else sure + 0.4 * k)
        confused = ranked & (np.arange(n) % 5 == 0)
        P[np.arange(n), np.where(confused, (codes + 1 + codes % 40) % n_classes, codes)] += 1
        P /= P.sum(axis=1, keepdims=True)
        name = f"{HOSTILE} model {k}" if hostile else f"model {k}"
        models[name] = ModelResult(
            name=name,
            title="what it is",
            classes=classes,
            labels=labels,
            folds=folds,
            probabilities=P,
            evaluations=n * 20,
            comparisons=float(len(landmarks)),
            seconds={"compare": 1.5, "fit": 0.3, "predict": 0.01},
            landmarks=[landmarks] * 4,
            curve=curve if grown and k == 0 else None,
            worth=worth if k == 0 and not given else None,
            looks=looks if k == 0 else None,
            unknown=unknown if k == 0 else None,
            suspect_labels=[suspect] if k == 0 and not perfect else [],
        )
    lam = np.sort(rng.exponential(size=n) ** 3) * (
        1 if psd else np.where(rng.random(n) < 0.3, -1, 1)
    )
    objects = np.arange(n) if shown is None else np.sort(rng.choice(n, shown, replace=False))
    xy = centres[codes[objects]] + rng.normal(size=(len(objects), 2))
    return Evaluation(
        names=[f"{HOSTILE}{i}" if hostile else f"object {i}" for i in range(n)],
        labels=labels,
        classes=classes,
        folds=folds,
        models=models,
        pairs=PairCount(n * n, 0 if given else n * 25, 0, 0.0 if given else 2.0, given),
        spectrum=SpectrumEstimate(signature(lam), negative_mass(lam), n, n, np.sort(lam)),
        duplicates=Duplicates([np.array([0, 1])], 1),
        ranks=(";", 0.9) if ranked else None,
        map=ObjectMap(objects, xy, landmarks, next(iter(models)), 9, 2, "t-SNE"),
        settings={
            "measure": HOSTILE if hostile else "smith-waterman",
            "measure_params": {"gap_open": "11"},
            "landmarks": "meb",
            "n_landmarks": None,
            "folds": 4,
            "groups": None,
            "random_state": 0,
            "symmetrize": False,
            "versions": {"krein": "0.1.0", "python": "3.11"},
        },
    )
