import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr
from scipy.stats import norm

from krein.core.pcvm.mode import Probit, Softmax, curvature, hazard, softmax

scores = st.floats(-1e6, 1e6)


@pytest.mark.parametrize(("link", "C"), [(Probit(), 1), (Softmax(), 3)])
def test_a_scalar_weight_equals_equal_weights(link, C):
    rng = np.random.default_rng(0)
    F, Z, y = rng.normal(size=(30, 4)), rng.normal(size=(30, C)), rng.integers(max(C, 2), size=30)
    calls = (
        lambda s: link.loss_residual(Z, y, s)[0],
        lambda s: link.loss_residual(Z, y, s)[1],
        lambda s: link.hessian(F, Z, y, s),
        lambda s: link.class_hessian(F, Z, y, s, 0),
        lambda s: link.curvature_root(Z, y, s),
        lambda s: link.curvatures(Z, y, s),
    )
    for call in calls:
        np.testing.assert_allclose(call(3.0), call(np.full(30, 3.0)), rtol=1e-12)
        assert np.abs(np.asarray(call(3.0)) - call(1.0)).max() > 0.01


def test_hazard_is_the_quotient_where_the_quotient_exists():
    z = np.linspace(-30, 8, 500)
    np.testing.assert_allclose(hazard(z), norm.pdf(z) / norm.cdf(z), rtol=1e-9)


@given(scores)
def test_hazard_and_curvature_stay_finite_and_in_their_range(z):
    lam, c = float(hazard(np.array(z))), float(curvature(np.array(z)))
    assert np.isfinite(lam)
    assert lam >= max(0.0, -z * (1 - 1e-12))
    assert 0 <= c <= 1


def test_curvature_is_the_second_derivative_of_the_loss():
    z, h = np.linspace(-12, 6, 200), 1e-4
    second = -(log_ndtr(z + h) - 2 * log_ndtr(z) + log_ndtr(z - h)) / h**2
    np.testing.assert_allclose(curvature(z), second, atol=2e-5)


def test_far_scores_keep_a_probability_for_the_other_class():
    P = Probit().probabilities(np.array([[-30.0], [30.0]]))
    assert (P > 0).all()
    np.testing.assert_allclose(P, P[::-1, ::-1])


def test_probit_refuses_three_classes():
    with pytest.raises(ValueError, match="for two classes; got 3"):
        Probit().n_scores(3)


def test_softmax_of_huge_scores_is_finite_and_sums_to_one():
    P = softmax(np.array([[1e300, 0.0, -1e300], [5.0, 5.0, 5.0]]))
    np.testing.assert_allclose(P, [[1, 0, 0], [1 / 3] * 3])


@pytest.mark.parametrize("link", [Probit(), Softmax()])
@pytest.mark.parametrize("weighted", [False, True])
def test_link_derivatives_agree_with_differences(link, weighted):
    rng = np.random.default_rng(0)
    n, r, C = 12, 3, link.n_scores(2 if isinstance(link, Probit) else 3)
    F, y = rng.normal(size=(n, r)), rng.integers(0, max(C, 2), n)
    s = rng.random(n) if weighted else 1.0
    F1 = np.column_stack([F, np.ones(n)])
    U = rng.normal(size=(C, r + 1))

    def gradient(v):
        _, G = link.loss_residual(F1 @ v.reshape(C, r + 1).T, y, s)
        return (G.T @ F1).ravel()

    def value(v):
        return link.loss_residual(F1 @ v.reshape(C, r + 1).T, y, s)[0]

    v, h = U.ravel(), 1e-6
    steps = h * np.eye(len(v))
    slope = np.array([(value(v + e) - value(v - e)) / (2 * h) for e in steps])
    np.testing.assert_allclose(gradient(v), slope, atol=1e-6)
    H = np.array([(gradient(v + e) - gradient(v - e)) / (2 * h) for e in steps])
    np.testing.assert_allclose(link.hessian(F, F1 @ U.T, y, s), H, atol=1e-6)
    own = np.einsum("nc,ni,nj->cij", link.curvatures(F1 @ U.T, y, s), F1, F1)
    blocks = H.reshape(C, r + 1, C, r + 1)
    np.testing.assert_allclose(own, [blocks[c, :, c] for c in range(C)], atol=1e-6)
