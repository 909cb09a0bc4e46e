"""Elastic distances against dtaidistance and against the recursions that define them."""

from __future__ import annotations

import numpy as np
import pytest
from dtaidistance import dtw
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from krein.measures import get_measure
from krein.measures.series import DTW

LENGTHS = st.integers(1, 14)
VALUES = st.floats(-4, 4, width=32)
PROPERTY = settings(max_examples=60, deadline=None)


@st.composite
def two_series(draw, most=3):
    d = draw(st.integers(1, most))
    return [draw(arrays(np.float64, (draw(LENGTHS), d), elements=VALUES)) for _ in range(2)]


def one(name, a, b, **params):
    measure = get_measure(name, {"layout": "times-channels", **params})
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
def test_dtw_matches_its_recursion(pair, band):
    a, b = pair
    np.testing.assert_allclose(one("dtw", a, b), dtw_by_definition(a, b), atol=1e-9)
    expected = dtw_by_definition(a, b, band)
    np.testing.assert_allclose(one("dtw", a, b, band=band), expected, atol=1e-9)
    share = int(0.25 * max(len(a), len(b)))
    expected = dtw_by_definition(a, b, share)
    np.testing.assert_allclose(one("dtw", a, b, band=0.25), expected, atol=1e-9)


def test_a_numpy_band_equals_a_python_band():
    a, b = np.random.default_rng(0).normal(size=(2, 20, 1)).cumsum(axis=1)
    for band in (0, 1, 2, 5, 0.25, 1.0):
        expected = one("dtw", a, b, band=band)
        for kind in (np.int64, np.uint8) if isinstance(band, int) else (np.float64, np.float32):
            assert one("dtw", a, b, band=kind(band)) == expected
    for band in (np.int64(-1), np.float64(1.5), True, np.True_):
        with pytest.raises(ValueError, match=r"band must be a (whole )?number"):
            get_measure("dtw", {"band": band})


def test_dtw_matches_dtaidistance():
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


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("band", [0, 3, 0.1, 0.4, 1.0])
@pytest.mark.parametrize("lengths", [(1, 6), (5, 40), (30, 34)])
def test_lanes_of_different_lengths_keep_their_own_bands(lengths, band, channels):
    """There are more series than lanes, so each batch contains many lengths and bands."""
    rng = np.random.default_rng(5)
    measure = get_measure("dtw", {"band": band})
    few, many = (
        [rng.normal(size=(n, channels)).cumsum(axis=0) for n in rng.integers(*lengths, size)]
        for size in (2, 80)
    )

    def samples(a, b):
        return band if isinstance(band, int) else int(band * max(len(a), len(b)))

    expected = [[dtw_by_definition(a, b, samples(a, b)) for b in many] for a in few]
    np.testing.assert_allclose(measure.block(few, many), expected, atol=1e-9)
    np.testing.assert_allclose(measure.block(many, few), np.transpose(expected), atol=1e-9)


@pytest.mark.parametrize("band", [None, 0.1])
def test_a_band_does_not_need_one_batch_per_length(band, monkeypatch):
    """With one batch per length, most lanes would be empty, at ten times the cost of no band."""
    lengths = np.random.default_rng(0).permutation(np.arange(50, 250))
    kernel, batches = DTW.lanes, []

    def counted(flat, starts, batch, ends, *costs):
        batches.append(ends)
        return kernel(flat, starts, batch, ends, *costs)

    monkeypatch.setattr(DTW, "lanes", staticmethod(counted))
    measure = get_measure("dtw", {"band": band})
    X = measure.check([np.zeros(n) for n in lengths])
    measure.block(X[:1], X)
    assert len(batches) == 4  # of 64 lanes


def test_a_banded_dtw_matches_dtaidistance():
    X = np.random.default_rng(1).normal(size=(70, 30)).cumsum(axis=1)
    for band in (0, 2, 7):
        measure = get_measure("dtw", {"band": band})
        expected = [[dtw.distance(a, b, window=band + 1) for b in X[:4]] for a in X]
        found = measure.block(measure.check(X), measure.check(X[:4]))
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_band_is_a_number_of_samples_or_a_share():
    assert get_measure("dtw", {"band": np.int64(3)}).params()["band"] == 3
    with pytest.raises(ValueError, match="band must be a whole number"):
        get_measure("dtw", {"band": 1.5})
    with pytest.raises(ValueError, match="band"):  # the only name
        get_measure("dtw", {"window": 3})


@PROPERTY
@given(two_series(), VALUES)
def test_erp_matches_its_recursion(pair, gap):
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
@given(two_series(), st.floats(0.125, 2))
def test_numeric_edit_matches_its_recursion(pair, gap):
    a, b = pair
    n, m = len(a), len(b)
    D = np.zeros((n + 1, m + 1))
    D[1:, 0], D[0, 1:] = gap * np.arange(1, n + 1), gap * np.arange(1, m + 1)
    for i in range(n):
        for j in range(m):
            match = D[i, j] + np.linalg.norm(a[i] - b[j])
            D[i + 1, j + 1] = min(match, D[i, j + 1] + gap, D[i + 1, j] + gap)
    np.testing.assert_allclose(one("numeric-edit", a, b, gap=gap), D[n, m], atol=1e-9)


@PROPERTY
@given(two_series(most=1), st.floats(0.125, 2))
def test_msm_matches_its_recursion(pair, cost):
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


@PROPERTY
@given(two_series(most=3), st.floats(0.125, 2))
def test_msm_adds_up_channels(pair, cost):
    a, b = pair
    each = [one("msm", a[:, c], b[:, c], cost=cost) for c in range(a.shape[1])]
    np.testing.assert_allclose(one("msm", a, b, cost=cost), sum(each), rtol=1e-12, atol=1e-9)


def test_a_full_band_changes_nothing_and_a_zero_band_is_pointwise():
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
    with pytest.raises(ValueError, match="band must be"):
        get_measure("dtw", {"band": band})


def test_series_of_other_channels_are_refused():
    measure = get_measure("dtw")
    with pytest.raises(ValueError, match="3 channels cannot be compared with series of 2"):
        measure.check_alike(measure.check(np.zeros((2, 6, 3))), measure.check(np.zeros((2, 6, 2))))


@pytest.mark.parametrize("name", ["dtw", "erp", "numeric-edit"])
def test_both_layouts_give_the_same_distances(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 24, 11))  # neither axis is clearly time
    ragged = [x[: rng.integers(5, 24)] for x in X]
    named = {"times-channels": lambda x: x, "channels-times": np.transpose}
    for objects in (list(X), ragged):
        values = []
        for layout, turned in named.items():
            measure = get_measure(name, {"layout": layout})
            checked = measure.check([turned(x) for x in objects])
            assert measure.check(checked)[0].shape == turned(objects[0]).shape
            values.append(measure.block(checked, checked[:3]))
        np.testing.assert_array_equal(*values)


@pytest.mark.parametrize(
    ("shapes", "layout"),
    [
        ([(50, 3)] * 2, "times-channels"),
        ([(3, 50)] * 2, "channels-times"),
        ([(1, 9)] * 2, "channels-times"),  # one channel, in the layout of aeon
        ([(9, 1)] * 2, "times-channels"),
        ([(51, 24), (40, 24)], "times-channels"),  # time is the axis that differs
        ([(24, 51), (24, 40)], "channels-times"),
        ([(200, 30), (200, 22)], "channels-times"),
        ([(7,), (9,)], "times-channels"),
        ([(1, 1)] * 2, "times-channels"),
    ],
)
def test_the_layout_is_guessed_if_it_is_clear(shapes, layout):
    objects = [np.zeros(shape) for shape in shapes]
    assert get_measure("dtw").decide(objects).layout == layout
    if len(set(shapes)) == 1:
        assert get_measure("dtw").decide(np.stack(objects)).layout == layout
    times, channels = shapes[0] if len(shapes[0]) == 2 else (*shapes[0], 1)
    if layout == "channels-times":
        times, channels = channels, times
    assert get_measure("dtw").check(objects)[0].shape == (times, channels)


@pytest.mark.parametrize("shape", [(10, 12), (12, 10), (24, 51), (144, 963), (8, 8)])
def test_an_ambiguous_layout_is_refused_with_the_remedy(shape):
    objects = np.zeros((3, *shape))
    for refuse in (get_measure("dtw").decide, get_measure("dtw").check):
        with pytest.raises(ValueError, match=r"may be .* measure_params={'layout': 'times-chann"):
            refuse(objects)
    for layout in ("times-channels", "channels-times"):
        assert get_measure("dtw", {"layout": layout}).check(objects).shape == objects.shape
    with pytest.raises(
        ValueError, match="layout must be 'auto', 'times-channels' or 'channels-times'"
    ):
        get_measure("dtw", {"layout": "channels"})


def test_a_decided_layout_is_kept_for_ambiguous_series():
    measure = get_measure("dtw").decide(np.zeros((3, 4, 50)))
    assert measure.layout == "channels-times"
    assert measure.check([np.zeros((4, 3))])[0].shape == (4, 3)
    with pytest.raises(ValueError, match="4 channels cannot be compared with series of 3"):
        measure.check_alike(measure.check(np.zeros((1, 4, 9))), measure.check(np.zeros((1, 3, 9))))


@pytest.mark.parametrize("layout", ["times-channels", "channels-times"])
def test_nan_at_the_end_is_padding(layout):
    rng = np.random.default_rng(0)
    series = [rng.normal(size=(n, 2)) for n in (9, 4, 1, 9)]
    padded = np.full((4, 9, 2), np.nan)
    for row, one in zip(padded, series, strict=True):
        row[: len(one)] = one
    if layout == "channels-times":
        series, padded = [one.T for one in series], padded.swapaxes(1, 2)
    measure = get_measure("dtw", {"layout": layout})
    for objects in (padded, list(padded)):
        for found, expected in zip(measure.check(objects), series, strict=True):
            np.testing.assert_array_equal(found, expected)
    one_channel = get_measure("msm").check(np.array([[1.0, 2.0, np.nan], [3.0, 4.0, 5.0]]))
    assert [len(one) for one in one_channel] == [2, 3]


def test_one_channel_that_ends_early_is_a_gap():
    series = np.zeros((2, 6, 2))
    series[1, 4:, 1] = np.nan
    with pytest.raises(ValueError, match="series 1 contains nan at time 4, channel 1"):
        get_measure("dtw").check(series)
