"""A few objects, treated as if they were too many for memory."""

import numpy as np
import pytest

import krein.core.pcvm.left_out
import krein.data.dataset
import krein.data.opening
import krein.estimators.discriminants


@pytest.fixture
def small_sample(monkeypatch):
    """Choose landmarks from a sample of about 500 objects, and read no more into memory."""
    monkeypatch.setattr(krein.data.opening, "IN_MEMORY_OBJECTS", 500)
    monkeypatch.setattr(krein.data.dataset, "IN_MEMORY_OBJECTS", 500)
    monkeypatch.setattr(krein.estimators.discriminants, "SAMPLE_SIZE", 700)
    monkeypatch.setattr(krein.core.pcvm.left_out, "SAMPLE_SIZE", 700)


def make_words(n, seed=0):
    """Words over six letters, and labels that depend on their letters, one of them rare."""
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(list("abcdef"), rng.integers(3, 9))) for _ in range(n)]
    labels = np.array(["de" if word.count("a") else "en" for word in words], dtype="<U4")
    labels[[word.startswith("b") for word in words]] = "fr"
    labels[:: n // 7] = "rare"
    return words, labels


def make_points(n, seed=0):
    """Points of a 2×2 checkerboard."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(np.int8)


def equal_models(a, b, objects):
    """Assert that the predictions of two models are bit-identical."""
    np.testing.assert_array_equal(a.landmarks_, b.landmarks_)
    np.testing.assert_array_equal(a.predict_proba(objects), b.predict_proba(objects))
    np.testing.assert_array_equal(a.signature_, b.signature_)
