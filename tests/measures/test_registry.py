"""Measures by name."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from krein.measures import Measure, RefusedObject, available, get_measure
from krein.measures.function import FunctionMeasure

from .market import MARKET


def test_the_market_has_every_measure():
    assert {case.name for case in MARKET} == set(available())


def test_a_measure_is_returned_unchanged():
    measure = get_measure("elm", {"sigma": 3.0})
    assert get_measure(measure) is measure
    with pytest.raises(ValueError, match="has its own"):
        get_measure(measure, {"sigma": 1.0})


def test_a_function_becomes_a_measure():
    measure = get_measure(lambda a, b: a * b, {"kind": "dissimilarity"})
    assert isinstance(measure, FunctionMeasure)
    assert measure.kind == "dissimilarity"


@pytest.mark.parametrize("name", ["nothing", 3, None, Measure])
def test_an_unknown_name_lists_the_known_ones(name):
    with pytest.raises(ValueError, match=r"unknown measure .* smith-waterman"):
        get_measure(name)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("levenstein", "levenshtein"),
        ("Levenshtein", "levenshtein"),
        ("smithwaterman", "smith-waterman"),
        ("smith", "smith-waterman"),
        ("DTW", "dtw"),
        ("precomputed_distance", "precomputed-distance"),
    ],
)
def test_a_misspelt_name_suggests_the_close_ones(typed, meant):
    with pytest.raises(ValueError, match=f"unknown measure '{typed}': did you mean '{meant}'"):
        get_measure(typed)


@pytest.mark.parametrize(
    ("package", "measure", "extra"),
    [
        ("pyopal", "smith-waterman", "bio"),
        ("rapidfuzz", "levenshtein", "text"),
        ("numba", "dtw", "series"),
        ("numba", "tcrdist", "series"),
    ],
)
def test_a_missing_package_is_reported_with_its_install_command(package, measure, extra):
    code = f"""
import sys
sys.modules[{package!r}] = None
from krein.measures import get_measure
try:
    get_measure({measure!r})
except ImportError as error:
    assert 'pip install "krein[{extra}]"' in str(error), error
else:
    raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "params"),
    [("elm", {"sigma": 0}), ("rbf", {"gamma": -1.0}), ("tl1", {"rho": 0.0}), ("msm", {"cost": 0})],
)
def test_parameters_that_must_be_positive(name, params):
    (parameter,) = params
    with pytest.raises(ValueError, match=f"^{parameter} must be above 0; got"):
        get_measure(name, params)


def test_masked_entries_are_refused_with_both_remedies():
    masked = np.ma.masked_equal([[1.0, 2.0], [3.0, 4.0]], 4.0)
    remedy = r"fill in missing values \(X\.filled\(value\)\), or leave it out$"
    with pytest.raises(RefusedObject, match=f"^object 1 is partly masked: {remedy}"):
        get_measure("linear").check(masked)
