"""Sums whose digits do not depend on how the terms are distributed."""

from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from krein.core.moments import FAN, OrderedSum, ordered_sum


def branches(terms, size):
    return [ordered_sum(terms[i : i + size], add) for i in range(0, len(terms), size)]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3 * FAN**3), st.integers(0, 4), st.integers(1, 3))
def test_whole_branches_summed_elsewhere_give_the_same_digits(seed, n, first, second):
    terms = (10.0 ** np.random.default_rng(seed).uniform(-8, 8, n)).tolist()
    once = branches(terms, FAN**first)
    assert ordered_sum(once, add) == ordered_sum(terms, add)
    assert ordered_sum(branches(once, FAN**second), add) == ordered_sum(terms, add)


def test_the_sum_is_right_and_few_terms_are_stored():
    terms = list(range(5000))
    total = OrderedSum(add)
    held = 0
    for term in terms:
        total.push(term)
        held = max(held, sum(part is not None for part in total._sums))
    assert total.result() == sum(terms)
    assert held <= 5  # log₈ 5000, rounded up


def test_nothing_to_sum_is_refused():
    with pytest.raises(ValueError, match="nothing to sum"):
        ordered_sum([], add)
