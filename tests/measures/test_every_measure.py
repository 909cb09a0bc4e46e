"""Properties that every measure in the registry must have, over one collection of cases."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from krein.measures import available, get_measure, take
from krein.measures.fingerprints import fingerprint

from .market import MARKET, Case

pytestmark = pytest.mark.parametrize("case", MARKET, ids=str)


def make(case: Case, n: int = 23, seed: int = 0):
    measure = get_measure(case.name, case.params)
    return measure, measure.check(case.objects(np.random.default_rng(seed), n))


def test_a_block_has_its_shape_and_is_finite_float64(case):
    measure, objects = make(case)
    for n, m in [(5, 9), (9, 5), (1, 1), (1, 23), (0, 4), (4, 0)]:
        A, B = take(objects, slice(0, n)), take(objects, slice(23 - m, 23))
        values = measure.block(A, B)
        assert values.shape == (n, m)
        assert values.dtype == np.float64
        assert np.isfinite(values).all()


def test_it_is_symmetric_as_declared(case):
    measure, objects = make(case)
    K = measure.block(objects, objects)
    back = measure.block(take(objects, slice(4, 23)), take(objects, slice(0, 4)))
    if measure.symmetric:
        np.testing.assert_allclose(K, K.T, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(K[:4, 4:], back.T, rtol=1e-7, atol=1e-7)


def test_part_of_a_block_is_the_block_of_the_part(case):
    measure, objects = make(case)
    K = measure.block(objects, objects)
    rows, cols = np.array([3, 20, 3, 7]), np.array([22, 1, 5])
    part = measure.block(take(objects, rows), take(objects, cols))
    np.testing.assert_allclose(part, K[np.ix_(rows, cols)], rtol=1e-9, atol=1e-7)


def test_the_diagonal_matches_the_block(case):
    measure, objects = make(case)
    K = measure.block(objects, objects)
    diagonal = measure.diagonal(objects)
    assert diagonal.shape == (23,)
    assert diagonal.dtype == np.float64
    np.testing.assert_allclose(diagonal, np.diag(K), rtol=1e-9, atol=1e-6)


def test_it_is_definite_as_declared(case):
    measure, objects = make(case, n=40)
    K = measure.block(objects, objects)
    if measure.kind == "dissimilarity":
        assert K.min() >= 0
        H = np.eye(40) - 1 / 40
        K = -0.5 * H @ K**2 @ H
    lam = np.linalg.eigvalsh((K + K.T) / 2)
    if measure.psd:
        assert lam[0] >= -1e-9 * lam[-1]
    if measure.psd is False:
        assert lam[0] < -1e-9 * lam[-1]


def test_values_do_not_depend_on_other_objects(case):
    measure, objects = make(case)
    K = measure.block(objects, objects)
    for i, j in pairwise(range(0, 23, 3)):
        alone = measure.block(take(objects, slice(i, i + 1)), take(objects, slice(j, j + 1)))
        np.testing.assert_allclose(alone[0, 0], K[i, j], rtol=1e-9, atol=1e-7)


def test_a_block_leaves_its_input_as_it_was(case):
    measure, objects = make(case)
    before = [fingerprint(item) for item in objects]
    measure.block(objects, objects)
    measure.diagonal(objects)
    assert [fingerprint(item) for item in objects] == before


def test_parameters_survive_json(case):
    measure, objects = make(case)
    params = json.loads(json.dumps(measure.params()))
    again = get_measure(case.name, params)
    assert again == measure
    assert hash(again) == hash(measure)
    A = take(objects, slice(0, 3))
    np.testing.assert_array_equal(measure.block(A, A), again.block(A, A))


def test_numpy_parameters_become_python_values(case):
    """Such parameters come from grids made with np.arange or np.logspace."""
    measure = get_measure(case.name, case.params)

    def of_numpy(value):
        if isinstance(value, list | tuple):
            return np.array(value)
        return value if value is None else np.array(value)[()]

    for convert in (of_numpy, lambda value: np.float32(value) if type(value) is float else value):
        params = {name: convert(value) for name, value in measure.params().items()}
        given = get_measure(case.name, params)
        json.dumps(given.params())
        for name, value in measure.params().items():
            found = given.params()[name]
            assert type(found) is type(value)
            assert found == (pytest.approx(value) if isinstance(value, float) else value)


def test_checked_objects_pass_the_check_again(case):
    measure, objects = make(case)
    once = measure.block(objects, objects)
    again = measure.check(objects)
    np.testing.assert_array_equal(measure.block(again, again), once)


def test_random_objects_have_the_sizes_asked_for_and_can_be_compared(case):
    measure, objects = make(case)
    sizes = np.array([2.0, 7.0, 30.0])
    found = measure.random_objects(objects, sizes, np.random.default_rng(1))
    if found is None:
        # too costly, of one size, not any letters, of several columns
        kinds = ("compression", "tangent", "tcrdist", "combined")
        assert measure.accepts != "objects" or measure.name in kinds
        return
    parts = np.shape(objects[0])[-1] if np.ndim(objects[0]) == 2 else 1
    assert all(
        abs(np.size(list(one)) - size) <= parts for one, size in zip(found, sizes, strict=True)
    )
    assert np.isfinite(measure.block(found, objects)).all()
    again = measure.random_objects(
        take(objects, np.arange(23)[::-1]), sizes, np.random.default_rng(1)
    )
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_bad_objects_are_named(case):
    measure = get_measure(case.name, case.params)
    for objects, message in case.bad:
        with pytest.raises((ValueError, TypeError), match=message):
            measure.check(objects)


def test_it_declares_itself(case):
    measure = get_measure(case.name, case.params)
    assert measure.name == case.name
    assert measure.kind in ("similarity", "dissimilarity")
    assert case.name in available()
    with pytest.raises(ValueError, match="no parameter 'nonsense'"):
        get_measure(case.name, {**case.params, "nonsense": 1})
