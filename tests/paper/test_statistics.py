"""The paired test and the mean ± deviation, against scipy and numpy."""

import numpy as np
import pytest
from scipy import stats

from paper.statistics import LEVEL, compare, spread


@pytest.mark.parametrize("seed", range(5))
def test_compare_is_the_paired_t_test(seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(90, 3, 10)
    b = a - rng.normal(1, 2, 10)
    found = compare(a, b)
    assert found.p_value == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert found.difference == pytest.approx(a.mean() - b.mean())
    assert found.significant == (stats.ttest_rel(a, b).pvalue < LEVEL)
    turned = compare(b, a)
    assert turned.difference == pytest.approx(-found.difference)
    assert turned.p_value == pytest.approx(found.p_value)


def test_the_paired_test_finds_what_means_would_miss():
    rng = np.random.default_rng(0)
    folds = rng.normal(80, 10, 10)  # folds differ a lot, methods by a little in every fold
    assert compare(folds + 1 + rng.normal(0, 0.2, 10), folds).significant
    assert stats.ttest_ind(folds + 1, folds).pvalue > 0.5


def test_the_same_results_do_not_differ():
    assert not compare([90.0, 95.0], [90.0, 95.0]).significant
    assert compare([90.0, 95.0], [90.0, 95.0]).p_value == 1


def test_the_same_difference_in_every_fold_is_significant():
    assert compare([91.0, 96.0, 94.0], [90.0, 95.0, 93.0]).significant


def test_one_fold_gives_no_p_value():
    found = compare([90.0], [80.0])
    assert found.difference == 10
    assert np.isnan(found.p_value)
    assert not found.significant


def test_compare_refuses_other_folds():
    with pytest.raises(ValueError, match="got 3 and 2"):
        compare([1, 2, 3], [1, 2])


def test_spread():
    values = [96.2, 97.1, 99.3]
    assert spread(values) == f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}"
    assert spread([96.2]) == "96.20"
