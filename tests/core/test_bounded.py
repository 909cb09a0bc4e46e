import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, nnls

from krein.core.pcvm.mode import Quadratic, minimise_bounded


@given(
    seed=st.integers(0, 10**6), k=st.integers(1, 30), n=st.integers(1, 30), log_a=st.floats(-4, 3)
)
def test_solution_is_optimal_and_no_worse_than_lsq_linear(seed, k, n, log_a):
    rng = np.random.default_rng(seed)
    R, a, c = rng.normal(size=(k, n)), 10.0**log_a * (0.1 + rng.random(n)), rng.normal(size=n)
    bounded = rng.random(n) < 0.7
    problem = Quadratic(a, root=R)
    problem.c = c
    x, optimal = minimise_bounded(problem, bounded, rng.random(n) < 0.5)
    assert optimal
    y = problem.product(x) + c
    assert (x[bounded] >= 0).all()
    tol = 1e-8 * max(1.0, np.abs(c).max())
    assert (np.abs(y[~bounded | (x > 0)]) <= tol).all()
    assert (y[bounded] >= -tol).all()
    # as least squares: H = LLᵀ, ½‖Lᵀx + L⁻¹c‖². lsq_linear stops early, so it must not be better
    L = np.linalg.cholesky(R.T @ R + np.diag(a))
    brute = lsq_linear(L.T, -np.linalg.solve(L, c), (np.where(bounded, 0, -np.inf), np.inf))

    def value(x):
        return 0.5 * x @ problem.product(x) + c @ x

    assert value(x) <= value(brute.x) + 1e-10 * abs(value(brute.x))


@pytest.mark.parametrize("n", [5, 60])
def test_square_and_root_give_the_same(n):
    rng = np.random.default_rng(1)
    R, a, c = rng.normal(size=(10, n)), 0.01 + rng.random(n), rng.normal(size=n)
    found = []
    for problem in (Quadratic(a, root=R), Quadratic(a, square=R.T @ R)):
        problem.c = c
        found.append(minimise_bounded(problem, np.ones(n, dtype=bool))[0])
    np.testing.assert_allclose(*found, atol=1e-10)


@pytest.mark.parametrize("given", [{}, {"square": np.eye(2), "root": np.eye(2)}], ids=len)
def test_matrix_is_given_once(given):
    with pytest.raises(ValueError, match="either"):
        Quadratic(np.ones(2), **given)


def test_rounding_of_the_matrix_does_not_stop_the_solution():
    rng = np.random.default_rng(0)
    R, b = rng.normal(size=(3, 8)) * 1e4, rng.normal(size=3)
    problem = Quadratic(np.full(8, 1e-12), square=R.T @ R - 1e-5 * np.eye(8))
    problem.c = R.T @ b
    everywhere = np.ones(8, dtype=bool)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(problem.square)  # the first system, in which all variables are free
    x, optimal = minimise_bounded(problem, everywhere, everywhere)
    assert optimal
    np.testing.assert_allclose(x, nnls(R, -b)[0], rtol=1e-9)
