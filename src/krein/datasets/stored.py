"""Real data that no package contains, read from the folder that `KREIN_DATA` names.

Nothing is downloaded, and no code in a file is executed: arrays are read without pickle.
"""

from __future__ import annotations

import csv
import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.shapes import Array, Indices

Texts = NDArray[Any]  # of str
Folder = str | Path | None


def load_protein(*, distance: bool = False, data_home: Folder = None) -> tuple[Array, Indices]:
    """Load 213 globins in four families, compared by evolutionary distance.

    The similarity S is the matrix used in the literature and in the paper. It equals 1 − D/13.64,
    except that some entries have lost a digit, which causes its negative eigenvalues. The distance
    D does not have these errors.

    Parameters
    ----------
    distance : bool, default=False
        Return D, for `measure="precomputed-distance"`, instead of S, for "precomputed".
    data_home : path or None, default=None
        Folder of the data. None uses the folder that the environment variable `KREIN_DATA` names.

    Returns
    -------
    S or D : array (213, 213)
    y : array (213,) of 1 to 4

    Examples
    --------
    >>> S, y = load_protein()  # doctest: +SKIP
    """
    return _matrix("protein.npz", "D" if distance else "S", data_home)


def load_aural_sonar(*, data_home: Folder = None) -> tuple[Array, Indices]:
    """Load 100 sonar echoes of two kinds, with human ratings of the similarity of each pair.

    Parameters
    ----------
    data_home : path or None, default=None
        Folder of the data. None uses the folder that the environment variable `KREIN_DATA` names.

    Returns
    -------
    S : array (100, 100) of similarities
    y : array (100,) of 1 and 2

    Examples
    --------
    >>> S, y = load_aural_sonar()  # doctest: +SKIP
    """
    return _matrix("aural_sonar.npz", "S", data_home)


def load_uwave_gestures(
    *, distance: bool = False, data_home: Folder = None
) -> tuple[Array, Indices]:
    """Load 896 gestures of eight kinds, as time series of three accelerations (UCR archive).

    They replace the paper's gestures, which are not available.

    Parameters
    ----------
    distance : bool, default=False
        Return the DTW distances, computed on every second sample, instead of the series.
    data_home : path or None, default=None
        Folder of the data. None uses the folder that the environment variable `KREIN_DATA` names.

    Returns
    -------
    X or D : array (896, 315, 3) of series, or (896, 896) of distances
    y : array (896,) of 1 to 8

    Examples
    --------
    >>> X, y = load_uwave_gestures()  # doctest: +SKIP
    """
    return _matrix("uwave_gesture.npz", "D" if distance else "X", data_home)


def load_swissprot(*, return_names: bool = False, data_home: Folder = None) -> tuple[Texts, ...]:
    """Load 8,031 protein sequences from Swiss-Prot in 30 classes.

    Each class consists of at least 100 sequences that match a PROSITE pattern; some matches are
    false positives. The data resemble the paper's 10,988 sequences in 30 classes. The matching
    measure is "smith-waterman".

    Parameters
    ----------
    return_names : bool, default=False
        Also return the names of the entries.
    data_home : path or None, default=None
        Folder of the data. None uses the folder that the environment variable `KREIN_DATA` names.

    Returns
    -------
    X : array (8031,) of str
    y : array (8031,) of str
    names : array (8031,) of str, with `return_names=True`

    Examples
    --------
    >>> sequences, classes = load_swissprot()  # doctest: +SKIP
    """
    columns = _table("swissprot30.csv.xz", ("sequence", "class", "id"), data_home)
    return columns if return_names else columns[:2]


def load_sonatas(*, return_names: bool = False, data_home: Folder = None) -> tuple[Texts, ...]:
    """Load 262 sonata movements by four composers, with the notes as text.

    The matching measure is "compression". They replace the paper's sonatas, which are not
    available.

    Parameters
    ----------
    return_names : bool, default=False
        Also return the names of the scores.
    data_home : path or None, default=None
        Folder of the data. None uses the folder that the environment variable `KREIN_DATA` names.

    Returns
    -------
    X : array (262,) of str
    y : array (262,) of str, the composers
    names : array (262,) of str, with `return_names=True`

    Examples
    --------
    >>> movements, composers = load_sonatas()  # doctest: +SKIP
    """
    columns = _table("sonatas_kern.csv.xz", ("events", "composer", "file"), data_home)
    return columns if return_names else columns[:2]


def load_chromosomes(*, data_home: Folder = None) -> tuple[list[Array], Indices]:
    """Load 4,400 chromosomes of 22 types as grey-value profiles along their length.

    These are the Copenhagen chromosomes, one of the paper's own sets; it uses 4,200 of them in 21
    types, and does not say which type it leaves out. In the file, a profile is a string of steps:
    A to F rise by 1 to 6, a to f fall by 1 to 6, and = stays. A series is the running sum of its
    steps. The matching measure is "numeric-edit"; the paper does not give its costs, and our
    reproduction uses a gap of 4.5.

    Parameters
    ----------
    data_home : path or None, default=None
        Folder of the data. None uses the folder that the environment variable `KREIN_DATA` names.

    Returns
    -------
    X : list of 4,400 arrays, one number per place along the chromosome
    y : array (4400,) of 1 to 22

    Examples
    --------
    >>> profiles, types = load_chromosomes()  # doctest: +SKIP
    """
    path = _path("chromosomes.tsv", data_home)
    with path.open(encoding="utf-8", newline="") as file:
        texts, types = _columns(path, csv.reader(file, delimiter="\t"), ("string", "type"))
    return [_profile(path, row, text) for row, text in enumerate(texts, 2)], np.array(
        types, dtype=np.intp
    )


_STEPS = {"=": 0.0} | {c: float(k) for k, c in enumerate("ABCDEF", 1)}
_STEPS |= {c.lower(): -step for c, step in _STEPS.items() if c != "="}


def _profile(path: Path, row: int, text: str) -> Array:
    unknown = [c for c in text if c not in _STEPS]
    if unknown or not text:
        what = f"contains {unknown[0]!r}, which is not a step" if unknown else "is empty"
        raise ValueError(f"{path}, line {row}: the profile {what}")
    return np.cumsum([_STEPS[c] for c in text])


def load_words(*, data_home: Folder = None) -> tuple[Texts, ...]:
    """Load 132,000 words from eleven languages.

    The matching measure is "levenshtein". The data are for tests at scale, and not in the paper.

    Parameters
    ----------
    data_home : path or None, default=None
        Folder of the data. None uses the folder that the environment variable `KREIN_DATA` names.

    Returns
    -------
    X : array (132000,) of str
    y : array (132000,) of str, the languages

    Examples
    --------
    >>> words, languages = load_words()  # doctest: +SKIP
    """
    return _table("words_language.csv.xz", ("word", "language"), data_home)


def _path(name: str, data_home: Folder) -> Path:
    """Return the path of the file, or raise an error that says what is missing."""
    home = data_home or os.environ.get("KREIN_DATA")
    if not home:
        raise FileNotFoundError(
            f"{name} is not part of any package: set the environment variable KREIN_DATA to its "
            f"folder, or pass data_home"
        )
    path = Path(home).expanduser() / name
    if not path.is_file():
        source = "data_home" if data_home else "the environment variable KREIN_DATA"
        raise FileNotFoundError(f"there is no file {path}; {source} must name its folder")
    return path


def _matrix(name: str, key: str, data_home: Folder) -> tuple[Array, Indices]:
    """Return one array of a file and the labels."""
    path = _path(name, data_home)
    with np.load(path, allow_pickle=False) as arrays:
        for wanted in (key, "y"):
            if wanted not in arrays:
                raise ValueError(f"{path} contains {', '.join(arrays)}, but no array {wanted!r}")
        return arrays[key].astype(np.float64), arrays["y"].astype(np.intp)


def _table(name: str, columns: tuple[str, ...], data_home: Folder) -> tuple[Texts, ...]:
    """Return the named columns of a compressed table, the texts first."""
    path = _path(name, data_home)
    with lzma.open(path, "rt", encoding="utf-8", newline="") as file:
        texts, *others = _columns(path, csv.reader(file), columns)
    # dtype object: a fixed-width array would pad every text to the length of the longest
    return np.array(texts, dtype=object), *(np.array(column, dtype=str) for column in others)


def _columns(path: Path, rows: Any, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the named columns of a table, from a reader of its rows."""
    header: list[str] = next(rows, [])
    for wanted in columns:
        if wanted not in header:
            raise ValueError(f"{path} has columns {', '.join(header)}, but no {wanted!r}")
    places = [header.index(wanted) for wanted in columns]
    chosen = []
    for row in rows:
        if len(row) != len(header):
            raise ValueError(
                f"{path}, line {rows.line_num} has {len(row)} fields; the header has {len(header)}"
            )
        chosen.append([row[place] for place in places])
    return list(zip(*chosen, strict=True)) if chosen else [()] * len(columns)
