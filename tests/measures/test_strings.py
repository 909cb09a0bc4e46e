"""Edit distances against the recursions that define them."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from krein.measures import get_measure

WORD = st.text("abcé ", max_size=9)
PROPERTY = settings(max_examples=80, deadline=None)


def edits(a: str, b: str, transpositions: bool) -> int:
    """Lowrance and Wagner's recursion, over prefixes."""

    @cache
    def d(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        best = min(d(i - 1, j) + 1, d(i, j - 1) + 1, d(i - 1, j - 1) + (a[i - 1] != b[j - 1]))
        if transpositions:
            k = max((k for k in range(1, i) if a[k - 1] == b[j - 1]), default=0)
            l = max((l for l in range(1, j) if b[l - 1] == a[i - 1]), default=0)
            if k and l:
                best = min(best, d(k - 1, l - 1) + (i - k - 1) + 1 + (j - l - 1))
        return best

    return d(len(a), len(b))


def common(a: str, b: str) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        before = row[:]
        for j, y in enumerate(b):
            row[j + 1] = before[j] + 1 if x == y else max(before[j + 1], row[j])
    return row[-1]


@PROPERTY
@given(WORD, WORD)
def test_edit_distances(a, b):
    for name, transpositions in (("levenshtein", False), ("damerau", True)):
        expected = edits(a, b, transpositions)
        assert get_measure(name).block([a], [b])[0, 0] == expected
        share = get_measure(name, {"normalize": True}).block([a], [b])[0, 0]
        np.testing.assert_allclose(share, expected / max(len(a), len(b), 1), atol=1e-12)


@PROPERTY
@given(WORD, WORD)
def test_longest_common_subsequence(a, b):
    expected = common(a, b)
    assert get_measure("lcs").block([a], [b])[0, 0] == expected
    share = get_measure("lcs", {"normalize": True}).block([a], [b])[0, 0]
    longer = max(len(a), len(b))
    np.testing.assert_allclose(share, expected / longer if longer else 1.0, atol=1e-12)


def test_jaro_winkler_of_the_published_examples():
    """Winkler (1990) gives these to three digits; the prefix raises Jaro's similarity."""
    measure, jaro = get_measure("jaro-winkler"), get_measure("jaro-winkler", {"prefix_weight": 0.0})
    for a, b, plain, raised in [
        ("MARTHA", "MARHTA", 0.944, 0.961),
        ("DWAYNE", "DUANE", 0.822, 0.840),
        ("DIXON", "DICKSONX", 0.767, 0.813),
    ]:
        assert abs(jaro.block([a], [b])[0, 0] - plain) < 5e-4
        assert abs(measure.block([a], [b])[0, 0] - raised) < 5e-4
