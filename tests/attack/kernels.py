"""Run every compiled kernel on empty, short and longer series, and print a line for each measure.

With NUMBA_BOUNDSCHECK=1, an index out of bounds is an error instead of an access to other memory.
"""

from dataclasses import replace

import numpy as np

from krein.measures.features import Convolutions
from krein.measures.series import DTW, ERP, LANES, MSM, NumericEdit


def run() -> None:
    rng = np.random.default_rng(0)
    measures = (
        (DTW(), 1),
        (DTW(band=0.1), 2),
        (ERP(), 2),
        (NumericEdit(), 2),
        (MSM(), 1),
        (MSM(), 2),
    )
    for measure, channels in measures:
        for lengths in ([0], [1], [0, 1, 2, 9], [1] * (LANES + 1), [9, 0, 1, 30] * 17):
            A = [rng.normal(size=(n, channels)) for n in lengths]
            for B in (A, A[:1], A[1:2] or A):
                values = measure.block(A, B)
                again = measure.block(B, A)
                assert values.shape == (len(A), len(B))
                assert np.allclose(values, again.T), (measure, lengths)
                assert not np.isnan(values).any(), (measure, lengths)
                same = [values[i, i] for i in range(len(B)) if A[i] is B[i]]
                assert not np.any(same), (measure, lengths)
        print(measure.name, "stays within bounds")
    for length in (1, 2, 8, 9, 10, 40):
        X = rng.normal(size=(3, length, 2))
        C = Convolutions.fit(X, rng)
        for one in (C, replace(C, dilations=np.full_like(C.dilations, length))):
            assert np.isfinite(one(X)).all(), length
            assert np.isfinite(one.shares(X[0], np.ones(C.n_features)).parts).all(), length
    print("convolutions stay within bounds")


if __name__ == "__main__":
    run()
