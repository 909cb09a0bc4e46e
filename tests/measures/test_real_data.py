"""Tests on the data in `KREIN_DATA`; skipped if there are none."""

from __future__ import annotations

import os

import numpy as np
import pytest

from krein.compare import open_pairs
from krein.datasets import load_swissprot, load_uwave_gestures

pytestmark = pytest.mark.skipif(not os.environ.get("KREIN_DATA"), reason="KREIN_DATA is not set")


def test_dtw_matches_the_distances_supplied_with_the_gestures():
    X = load_uwave_gestures()[0][:90, ::2]
    D = load_uwave_gestures(distance=True)[0][:90, :90]
    pairs = open_pairs("dtw", X)
    np.testing.assert_allclose(pairs.block(np.arange(90), np.arange(90)), D, rtol=1e-6)


def test_swiss_prot_is_read_without_warnings():
    sequences, _ = load_swissprot()
    pairs = open_pairs("smith-waterman", sequences)
    cols = np.array([0, 4000])
    K = pairs.block(cols, np.arange(0, len(sequences), 100))
    assert K.min() >= 0
    assert K.max() == pytest.approx(1)
