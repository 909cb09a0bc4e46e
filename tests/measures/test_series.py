"""Elastic distances against dtaidistance and against the recursions that define them."""

from __future__ import annotations

import numpy as np
import pytest
from dtaidistance import dtw
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from krein.measures import get_measure

LENGTHS = st.integers(1, 14)
VALUES = st.floats(-4, 4, width=32)
PROPERTY = settings(max_examples=60, deadline=None)


@st.composite
def two_series(draw, most=3):
    d = draw(st.integers(1, most))
    return [draw(arrays(np.float64, (draw(LENGTHS), d), elements=VALUES)) for _ in range(2)]


def one(name, a, b, **params):
    measure = get_measure(name, params)
    A, B = measure.check([a]), measure.check([b])
    return measure.block(A, B)[0, 0]


def dtw_by_definition(a, b, band=np.inf):
    n, m = len(a), len(b)
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0
    for i in range(n):
        for j in range(m):
            if abs(i - j) <= max(band, abs(n - m)):
                least = min(D[i, j], D[i, j + 1], D[i + 1, j])
                D[i + 1, j + 1] = least + ((a[i] - b[j]) ** 2).sum()
    return np.sqrt(D[n, m])


@PROPERTY
@given(two_series(), st.integers(0, 5))
def test_dtw_is_its_recursion(pair, band):
    a, b = pair
    np.testing.assert_allclose(one("dtw", a, b), dtw_by_definition(a, b), atol=1e-9)
    expected = dtw_by_definition(a, b, band)
    np.testing.assert_allclose(one("dtw", a, b, band=band), expected, atol=1e-9)
    share = int(0.25 * max(len(a), len(b)))
    expected = dtw_by_definition(a, b, share)
    np.testing.assert_allclose(one("dtw", a, b, band=0.25), expected, atol=1e-9)


def test_a_band_of_numpy_is_that_of_python():
    a, b = np.random.default_rng(0).normal(size=(2, 20, 1)).cumsum(axis=1)
    for band in (0, 1, 2, 5, 0.25, 1.0):
        expected = one("dtw", a, b, band=band)
        for kind in (np.int64, np.uint8) if isinstance(band, int) else (np.float64, np.float32):
            assert one("dtw", a, b, band=kind(band)) == expected
    for band in (np.int64(-1), np.float64(1.5), True, np.True_):
        with pytest.raises(ValueError, match="band is a whole number"):
            get_measure("dtw", {"band": band})


def test_dtw_is_dtaidistances():
    rng = np.random.default_rng(0)
    measure = get_measure("dtw")
    for lengths in ([40] * 70, rng.integers(2, 60, 70)):
        objects = [rng.normal(size=n).cumsum() for n in lengths]
        expected = [[dtw.distance(a, b) for b in objects[:5]] for a in objects]
        checked = measure.check(objects)
        np.testing.assert_allclose(measure.block(checked, checked[:5]), expected, atol=1e-9)
        np.testing.assert_allclose(
            measure.block(checked[:5], checked), np.transpose(expected), atol=1e-9
        )


@PROPERTY
@given(two_series(), VALUES)
def test_erp_is_its_recursion(pair, gap):
    a, b = pair
    n, m = len(a), len(b)
    D = np.zeros((n + 1, m + 1))
    D[1:, 0] = np.cumsum(np.linalg.norm(a - gap, axis=1))
    D[0, 1:] = np.cumsum(np.linalg.norm(b - gap, axis=1))
    for i in range(n):
        for j in range(m):
            D[i + 1, j + 1] = min(
                D[i, j] + np.linalg.norm(a[i] - b[j]),
                D[i, j + 1] + np.linalg.norm(a[i] - gap),
                D[i + 1, j] + np.linalg.norm(b[j] - gap),
            )
    np.testing.assert_allclose(one("erp", a, b, gap=gap), D[n, m], atol=1e-9)


@PROPERTY
@given(two_series(most=1), st.floats(0.125, 2))
def test_msm_is_its_recursion(pair, cost):
    a, b = (s[:, 0] for s in pair)

    def extra(x, y, z):
        if min(y, z) <= x <= max(y, z):
            return cost
        return cost + min(abs(x - y), abs(x - z))

    D = np.empty((len(a), len(b)))
    for i in range(len(a)):
        for j in range(len(b)):
            ways = []
            if i and j:
                ways.append(D[i - 1, j - 1] + abs(a[i] - b[j]))
            if i:
                ways.append(D[i - 1, j] + extra(a[i], a[i - 1], b[j]))
            if j:
                ways.append(D[i, j - 1] + extra(b[j], b[j - 1], a[i]))
            D[i, j] = min(ways) if ways else abs(a[0] - b[0])
    np.testing.assert_allclose(one("msm", a, b, cost=cost), D[-1, -1], atol=1e-9)


def test_a_full_band_changes_nothing_and_none_is_pointwise():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 12, 2))
    free, full, none = (get_measure("dtw", {"band": band}) for band in (None, 1.0, 0))
    objects = free.check(X)
    np.testing.assert_array_equal(free.block(objects, objects), full.block(objects, objects))
    flat = X.reshape(80, -1)
    expected = np.linalg.norm(flat[:, None] - flat, axis=2)
    np.testing.assert_allclose(none.block(objects, objects), expected, atol=1e-9)


@pytest.mark.parametrize("band", [-1, 1.5, -0.1, True])
def test_a_bad_band_is_refused(band):
    with pytest.raises(ValueError, match="band is"):
        get_measure("dtw", {"band": band})


def test_series_of_other_channels_are_refused():
    measure = get_measure("dtw")
    with pytest.raises(ValueError, match="3 and of 2 channels"):
        measure.check_alike(measure.check(np.zeros((2, 5, 3))), measure.check(np.zeros((2, 5, 2))))
