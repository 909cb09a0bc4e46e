"""Schema declarations of the dataclasses that a model file may contain."""

from __future__ import annotations

from typing import get_args

import numpy as np

from ..core.conformal import LabelReference, NoveltyReference
from ..core.heads import LinearHead, PCVMHead, QuadraticHead
from ..core.looks import CandidateSpace, Closeness, TwoLooks
from ..core.meb import Ball
from ..core.moments import ClassMoments
from ..core.pcvm.rows import BasisFunction
from ..core.space import POWERS, Conversion, LandmarkBasis, LandmarkCentre, LandmarkSpace
from ..landmarks import Selection
from .calibration import PassResult
from .compound import Details, Either, ListOf, Objects, OneOf, Optional, Value
from .reference import Reference
from .schema import Among, ArrayOf, Real, Text, Whole, codes, floats, indices
from .secondlook import KnownObjects
from .selection import LandmarkSet
from .sizing import SizeCurve

LANDMARK_BASIS = Value(
    LandmarkBasis, {"T": floats("m", "r"), "signs": floats("r"), "lam": floats("r")}
)
LANDMARK_CENTRE = Value(LandmarkCentre, {"column_means": floats("m"), "grand_mean": Real()})
POWER = Among(POWERS)
UNIT = Real(np.finfo(np.float64).tiny)
_CONVERSION = Value(Conversion, {"centre": Optional(LANDMARK_CENTRE), "power": POWER, "unit": UNIT})
LANDMARK_SPACE = Value(
    LandmarkSpace,
    {
        "landmark_values": floats("m", "m"),
        "basis": LANDMARK_BASIS,
        "centre": Optional(LANDMARK_CENTRE),
        "rank": Optional(Whole(1)),
        "power": POWER,
        "unit": UNIT,
    },
)
LANDMARK_SET = Value(
    LandmarkSet, {"space": LANDMARK_SPACE, "indices": indices("m"), "objects": Objects("m")}
)


def _class_moments(r: str) -> Value:
    """Declare class moments; `r` is the symbol for the number of coordinates."""
    return Value(
        ClassMoments,
        {
            "origin": floats(r),
            "weights": floats("C"),
            "sums": floats("C", r),
            "products": Either(floats(r, r), floats("C", r, r)),
        },
    )


CLASS_MOMENTS = _class_moments("r")
PASS_RESULT = Value(
    PassResult,
    {
        # each power has its own space, with its own number of coordinates
        "moments": ListOf(_class_moments("r of a power"), "powers"),
        "indices": indices("n_sample"),
        "values": floats("n_sample", "m"),
        "codes": codes("n_sample", below="C"),
        "weights": Optional(floats("n_sample")),
    },
)
SELECTION = Value(
    Selection,
    {
        "indices": indices("chosen"),
        "details": Details((Ball,)),
        "values": Optional(floats("n", "chosen")),
        "family": Optional(Text(())),  # never stored
    },
)

_LINEAR_HEAD = Value(
    LinearHead,
    {
        "conversion": _CONVERSION,
        "dual_coef": floats("m", "C"),
        "intercept": floats("C", minus_infinity=True),
        "temperature": Real(0.0),
    },
)
_QUADRATIC_HEAD = Value(
    QuadraticHead,
    {
        "conversion": _CONVERSION,
        "project": floats("m", "s"),
        "offset": floats("s"),
        "means": floats("C", "s"),
        "roots": floats("C", "s", "s"),
        "intercept": floats("C", minus_infinity=True),
        "temperature": Real(0.0),
    },
)
_PCVM_HEAD = Value(
    PCVMHead,
    {
        "function": Text(get_args(BasisFunction)),
        "places": indices("k", below="m"),
        "weights": Either(floats("k", "C"), floats("k", 1)),  # one column for two classes
        "bias": Either(floats("C"), floats(1)),
        "temperature": Real(0.0),
    },
)
TWO_LOOKS = Value(
    TwoLooks,
    {
        "heads": ListOf(OneOf((_LINEAR_HEAD, _QUADRATIC_HEAD, _PCVM_HEAD)), "H"),
        "first": floats("H"),
        "second": floats("H+2"),
        "bandwidth": Real(0.0),
        "closeness": Value(Closeness, {"apart": floats("ranks"), "share": floats("ranks")}),
        "threshold": Real(infinite=True),
        "n_seen": Real(0.0),
    },
)
KNOWN_OBJECTS = Value(
    KnownObjects,
    {
        "kind": Text(("similarity", "dissimilarity")),
        "indices": indices("n_known"),
        "codes": codes("n_known", below="C"),
        "space": Value(
            CandidateSpace, {"centre": floats("m"), "directions": floats("m", "directions")}
        ),
        "points": ArrayOf(("n_known", "directions"), np.float32),
        "landmark_classes": codes("m", below="C"),
        "n_candidates": Whole(),
        "k": Whole(),
        "far": Real(0.0, infinite=True),
    },
)
SIZE_CURVE = Value(
    SizeCurve,
    {
        "n_landmarks": indices("tried"),
        "loss": floats("tried"),
        "comparisons": floats("tried"),
    },
)
REFERENCE = Value(
    Reference,
    {
        "novelty": Value(
            NoveltyReference,
            {
                "scores": floats("n_ranked"),
                "predicted": codes("n_ranked", below="C"),
                "weights": Optional(floats("n_ranked")),
                "n_classes": Whole(2),
            },
        ),
        "labels": Value(
            LabelReference,
            {
                "odds": floats("n_ranked"),
                "codes": codes("n_ranked", below="C"),
                "weights": Optional(floats("n_ranked")),
                "n_classes": Whole(2),
            },
        ),
        "baseline": floats("m"),
        "landmark_codes": codes("m", below="C"),
    },
)
