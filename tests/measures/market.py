"""Cases for every measure in the registry; the shared tests run over all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Case:
    """A measure, valid objects for it, and invalid ones with the expected messages."""

    name: str
    objects: Callable[[np.random.Generator, int], Any]
    params: dict[str, Any] = field(default_factory=dict)
    bad: list[tuple[Any, str]] = field(default_factory=list)

    def __str__(self) -> str:
        shown = {k: "+".join(v) if isinstance(v, dict) else v for k, v in self.params.items()}
        return self.name + "".join(f"-{k}={v}" for k, v in shown.items())


def proteins(rng: np.random.Generator, n: int) -> list[str]:
    letters = list("ARNDCQEGHILKMFPSTWYVBZX")
    found = ["M" + "".join(rng.choice(letters, rng.integers(3, 60))) for _ in range(n)]
    # two domains, and both in either order: local alignment finds the same parts in both, which no
    # kernel could
    a, b = "WWHCYFPWWHCYFP" * 2, "KDERNQKDERNQTT" * 2
    found[1:5] = [a, b, a + b, b + a]
    return found[:n]


def dna(rng: np.random.Generator, n: int) -> list[str]:
    found = ["".join(rng.choice(list("ACGTRN"), rng.integers(9, 60))) + "ACGT" for _ in range(n)]
    a, b = "GATTACAGATTACA" * 2, "CCGGTTCCGGTTCC" * 2
    found[1:5] = [a, b, a + b, b + a]
    return found[:n]


def words(rng: np.random.Generator, n: int) -> list[str]:
    return ["".join(rng.choice(list("abcde é"), rng.integers(0, 12))) for _ in range(n)]


def texts(rng: np.random.Generator, n: int) -> list[str]:
    return [w * 5 + "." for w in words(rng, n)]


def vectors(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(size=(n, 4))


def counts(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(0, 9, size=(n, 6)) + np.eye(6)[rng.integers(0, 6, n)]


def balls(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.column_stack([3 * rng.normal(size=(n, 3)), rng.uniform(0, 1, n)])


def series(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(size=(n, 17)).cumsum(axis=1)


def gestures(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(size=(n, 11, 3)).cumsum(axis=1)


def unequal(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    return [rng.normal(size=rng.integers(1, 30)).cumsum() for _ in range(n)]


def images(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(size=(n, 6, 7))


def point_sets(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    return [rng.normal(size=(rng.integers(1, 9), 2)) for _ in range(n)]


def receptors(rng: np.random.Generator, n: int) -> list[str]:
    genes = ["TRBV5-1*01", "TRBV19*01", "TRBV12-3*01", "TRBV6-5*01"]
    cdr3s = [
        "".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), rng.integers(1, 19))) for _ in range(n)
    ]
    # two places of two letters each: the corners of a square, with distances along its sides
    cdr3s[1:5] = ["CASSAAAAF", "CASSADAAF", "CASSADDAF", "CASSAADAF"]
    return [f"{genes[0 if i < 5 else rng.integers(4)]} {cdr3}" for i, cdr3 in enumerate(cdr3s[:n])]


def people(rng: np.random.Generator, n: int) -> list[dict[str, Any]]:
    names, dates = words(rng, n), rng.integers(1, 29, n)
    places = rng.normal(size=(n, 2))
    return [
        {"name": name, "born": f"1987-03-{day:02}", "lat": lat, "lon": lon, "walk": walk}
        for name, day, (lat, lon), walk in zip(names, dates, places, unequal(rng, n), strict=True)
    ]


NAN = float("nan")
PEOPLE = {
    "name": "levenshtein",
    "birthday": {"measure": "levenshtein", "params": {"normalize": True}, "columns": ["born"]},
    "place": ("euclidean", ["lat", "lon"]),
    "walk": "dtw",
}
KERNELS = {
    "parts": {"name": "jaro-winkler", "place": ("rbf", ["lat", "lon"])},
    "weights": {"place": 0.25},
}
BAD_PEOPLE = [
    ([{"name": "Anna"}, {"nom": "Anne"}], "record 1 has no 'name'; its columns are 'nom'"),
    ([{"name": "Anna"}, {"name": None}], "record 1 has no value in the column 'name'"),
    ([{"name": "Anna"}, {"name": NAN}], "record 1 has no value in the column 'name'"),
    ([{"name": "Anna"}, {"name": 3}], "record 1 cannot be compared in column 'name': its string"),
    ([{"name": "Anna"}, ("Anne", 3)], "record 1 has 2 values; its columns are 'name'"),
    ([{"name": "Anna"}, "Anne"], r"record 1 is a string \('Anne'\), not a record"),
    ({"name": "Anna"}, "got a single record; pass a list"),
]
BAD_RECEPTORS = [
    ([("TRBV9", "CASSF"), ("TRBV99", "CASSF")], "receptor 1 has the V gene 'TRBV99', which is not"),
    ([("TRBV9", "CASSF"), ("TRBV9", "CAS*F")], r"receptor 1 .* has '\*' in the CDR3 of its beta"),
    ([("TRBV9", "CASSF"), (None, "CASF")], r"receptor 1 \('CASF'\) has a CDR3 without a V gene"),
    ([("TRBV9", "CASSF"), ("TRBV9", None)], "receptor 1 has no CDR3 of its beta chain"),
    (
        [("TRBV9", "CASSF"), ("TRAV12-2", "CASSF"), ("TRBV9", "CASSF")],
        "receptor 1 has no beta chain",
    ),
    ([("TRBV9", "CASSF"), ("TRBV9",)], "receptor 1 .* must consist of a V gene and a CDR3"),
    ([("TRBV9", "CASSF"), 3], r"receptor 1 is an integer \(3\)"),
    ([("TRBV9", "CASSF"), ("TRBV9", "CAF", "TRBV9", "CAF")], "receptor 1 .* two beta chains"),
    ("TRBV9 CASSF", "pass a list"),
]
BAD_VECTORS = [
    ([[1.0, 2.0], [3.0, NAN]], "vector 1 contains nan in column 1"),
    ([[1.0, 2.0], [3.0, -1e200]], "vector 1 contains -1e.200 in column 1, too large to compute"),
    ([1.0, 2.0], "2-dimensional"),
    ([[1.0, 2.0], [3.0]], "same length"),
]
BAD_SERIES = [
    (np.array([[0.0, 1.0], [NAN, 2.0]]), "series 1 contains nan at time 0; NaN counts as padding"),
    ([[0.0], [1.0, NAN, 2.0]], "series 1 contains nan at time 1"),
    (np.array([[0.0, 1.0], [2.0, np.inf]]), "series 1 contains inf at time 1"),
    ([[0.0], [1.0, 1e200, 2.0]], "series 1 contains 1e.200 at time 1, too large to compute"),
    ([[0.0], []], "series 1 is empty"),
    ([[0.0], [NAN, NAN]], "series 1 is empty: it contains only NaN"),
    (["text"], "series 0 does not consist of numbers"),
    ([np.ma.masked_equal([1.0, 2.0], 2.0)], "series 0 is partly masked"),
    ([np.zeros((3, 2)), np.zeros((4, 1))], "series 1 has 1 channels"),
]
BAD_STRINGS = [(["a", None], "string 1 is None"), ("alone", "pass a list of"), ([1], "string 0")]
BAD_PROTEINS = [
    (["MK", ""], "sequence 1 is empty"),
    (
        ["MK", "MKA1"],
        r"sequence 1 \('MKA1'\) contains '1' at position 4, which is not scored",
    ),
    (["MK", "MK V"], "contains ' '"),
    (["MK", "-*"], "sequence 1 .* contains only gaps"),
    (["MK", b"MK"], r"sequence 1 is a bytes object \(b'MK'\), not a string"),
    (["MK", "XX"], "sequence 1 .* cannot be normalised"),
]
BAD_IMAGES = [
    ([np.zeros((3, 3)), np.zeros((3, 4))], "image 1 is 3 × 4, but image 0 is 3 × 3"),
    (np.full((1, 3, 3), NAN), r"image 0 contains nan at pixel \(0, 0\)"),
    (np.full((1, 3, 3), 1e200), r"image 0 contains 1e.200 at pixel \(0, 0\), too large"),
    (np.zeros((2, 7)), "7 pixels do not form a square"),
    ([np.zeros((3, 3)), "text"], "image 1 does not consist of numbers"),
]
BAD_SETS = [
    ([[[0.0, 1.0]], []], "set 1 is empty"),
    ([[[0.0, 1.0]], [[1.0, 2.0, 3.0]]], "set 1 is in 3 dimensions"),
    ([[[0.0, NAN]]], "set 0 contains nan in point 0"),
    ([[[0.0, 1e200]]], "set 0 contains 1e.200 in point 0, too large to compute with"),
]
BAD_COUNTS = [([[1, 2], [-1, 2]], "histogram 1 contains -1"), ([[1, 2], [0, 0]], "histogram 1")]

MARKET = [
    Case("smith-waterman", proteins, bad=BAD_PROTEINS),
    Case("smith-waterman", proteins, {"normalize": False, "matrix": "PAM120", "gap_open": 5}),
    Case("smith-waterman", dna, {"both_strands": True, "matrix": "NUC.4.4"}),
    Case("needleman-wunsch", proteins, bad=BAD_PROTEINS),
    Case("needleman-wunsch", proteins, {"normalize": False}),
    Case("levenshtein", words, bad=BAD_STRINGS),
    Case("levenshtein", words, {"normalize": True}),
    Case("damerau", words, bad=BAD_STRINGS),
    Case("lcs", words, bad=BAD_STRINGS),
    Case("lcs", words, {"normalize": True}),
    Case("jaro-winkler", words, bad=BAD_STRINGS),
    Case("dtw", series, bad=BAD_SERIES),
    Case("dtw", gestures),
    Case("dtw", unequal, {"band": 0.2}),
    Case("dtw", gestures, {"band": 2}),
    Case("dtw", lambda rng, n: gestures(rng, n).swapaxes(1, 2), {"layout": "channels-times"}),
    Case("erp", unequal, bad=BAD_SERIES),
    Case("erp", gestures, {"gap": 0.5}),
    Case("numeric-edit", unequal, bad=BAD_SERIES),
    Case("numeric-edit", gestures, {"gap": 0.3}),
    Case("msm", unequal, bad=BAD_SERIES),
    Case("msm", gestures, {"cost": 0.5}),
    Case("tangent", images, bad=BAD_IMAGES),
    Case("tangent", images, {"sides": 2, "deformations": ["shift-x", "rotate"]}),
    Case("tcrdist", receptors, bad=BAD_RECEPTORS),
    Case("tcrdist", receptors, {"chains": "beta", "gap_position": "fixed"}),
    Case("elm", vectors, bad=BAD_VECTORS),
    Case("rbf", vectors, {"gamma": 0.3}, bad=BAD_VECTORS),
    Case("linear", vectors, bad=BAD_VECTORS),
    Case("sigmoid", vectors, bad=BAD_VECTORS),
    Case("manhattan", vectors, bad=BAD_VECTORS),
    Case("tl1", vectors, {"rho": 5.0}, bad=BAD_VECTORS),
    Case("symmetric-kl", counts, {"pseudocount": 0.5}, bad=BAD_COUNTS[:1]),
    Case("symmetric-kl", lambda rng, n: counts(rng, n) + 1, bad=BAD_COUNTS),
    Case("jensen-shannon", counts, bad=BAD_COUNTS),
    Case("hausdorff", point_sets, bad=BAD_SETS),
    Case("modified-hausdorff", point_sets, {"metric": "cityblock"}, bad=BAD_SETS),
    Case(
        "compression",
        texts,
        bad=[(["a", ""], "text 1 is empty"), (["a", 3], "text 1 is an integer")],
    ),
    Case("compression", texts, {"compressor": "zlib"}),
    Case("combined", people, {"parts": PEOPLE, "weights": {"birthday": 4.0, "walk": 0.1}}),
    Case("combined", people, KERNELS),
    Case("combined", people, {"parts": {"name": "levenshtein"}}, bad=BAD_PEOPLE),
    Case("euclidean", vectors, bad=BAD_VECTORS),
    Case("balls", balls, bad=[([[0.0, 0.0, -1.0]], "ball 0 has the negative radius -1")]),
]
