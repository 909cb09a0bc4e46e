"""The objects of a data frame are in its columns; the names of columns are not objects."""

from __future__ import annotations

import numpy as np
import pytest

from krein.compare import open_new_pairs, open_pairs
from krein.measures import get_measure, take

from .market import MARKET, Case

pandas = pytest.importorskip("pandas")


def as_column(objects):
    column = np.empty(len(objects), dtype=object)
    for i in range(len(objects)):
        column[i] = objects[i]
    return pandas.Series(column, index=np.arange(len(objects)) + 100)


def as_frame(objects):
    if isinstance(objects, np.ndarray):
        return pandas.DataFrame(objects.reshape(len(objects), -1))
    return as_column(objects).to_frame("objects")


@pytest.mark.parametrize("case", MARKET, ids=str)
def test_frames_and_columns_are_accepted(case: Case):
    if case.name == "tcrdist":
        pytest.skip("receptors have columns of their own, tested in test_tcr.py")
    objects = case.objects(np.random.default_rng(0), 5)
    frames = [as_column(objects), as_frame(objects)]
    params = dict(case.params)
    if isinstance(objects, np.ndarray) and objects.ndim == 2:
        frames = frames[1:]  # rows of numbers are not a single column
    elif case.name == "tangent":
        params["shape"] = objects.shape[1:]
    elif isinstance(objects, np.ndarray) or not isinstance(objects[0], str):
        frames = frames[:1]  # (N, times, channels) and sets of points are not rows of a table
    measure = get_measure(case.name, params)
    rows = np.arange(5)
    expected = measure.block(checked := measure.check(objects), checked)
    for frame in frames:
        pairs = open_pairs(measure, frame)
        found = measure.block(pairs.objects, pairs.objects)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-6)
        new = open_new_pairs(measure, frame, take(checked, rows[:2]))
        np.testing.assert_allclose(new.block(rows, rows[:2]), expected[:, :2], atol=1e-6)


def test_digits_as_a_frame():
    from sklearn.datasets import load_digits

    frame = load_digits(as_frame=True).data[:6]
    pairs = open_pairs("tangent", frame)
    np.testing.assert_array_equal(pairs.objects, frame.to_numpy().reshape(6, 8, 8))
