"""Antimicrobial and other peptides."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .extras import require


def load_antimicrobial_peptides(*, repeats: bool = False) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Load antimicrobial peptides (label 1) and random peptides from UniProt (label 0).

    There are 2,600 sequences from the database APD3 and 2,600 from UniProt, 7 to 174 letters long,
    taken from modlamp's `load_AMPvsUniProt` (extra `data`); nothing is downloaded. The matching
    measure is "smith-waterman".

    Many sequences occur more than once, and some occur in both classes. If a sequence is in both
    the training and the test set, predicting its label tests nothing. By default, each sequence is
    therefore returned once, at its first position, and sequences with both labels are left out.

    Parameters
    ----------
    repeats : bool, default=False
        Return all 5,200 original entries, including repeated and contradictory ones.

    Returns
    -------
    X : array of str
    y : array of 0 and 1

    Examples
    --------
    >>> X, y = load_antimicrobial_peptides(repeats=True)
    >>> X[0], len(X), int(y.sum())
    ('GLWSKIKEVGKEAAKAAAKAAGKAALGAVSEAV', 5200, 2600)
    """
    modlamp = require("modlamp.datasets", "data", "load_antimicrobial_peptides")
    stored = modlamp.load_AMPvsUniProt()
    X = np.array([str(sequence) for sequence in stored.sequences], dtype=object)
    y = np.asarray(stored.target, dtype=np.intp)
    if repeats:
        return X, y
    _, first, which = np.unique(X, return_index=True, return_inverse=True)
    share = np.bincount(which, weights=y) / np.bincount(which)  # of label 1 among its entries
    chosen = np.sort(first[(share == 0) | (share == 1)])
    return X[chosen], y[chosen]
