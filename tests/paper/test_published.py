"""The copied tables are complete and consistent."""

import pytest

from paper import published
from paper.published import LARGE, SIM, SMALL


def figures():
    for sim in SIM:
        for name in SMALL:
            yield published.TABLE_1[sim][name][0]
    for rule in ("all", "meb", "kmeans", "entropy"):
        for name in LARGE:
            for family in ("ikfd", "pcvm"):
                yield published.accuracy(rule, name, family)
    for name in LARGE:
        yield from published.TABLE_7[name].values()


def test_every_accuracy_is_a_percentage():
    found = [figure for figure in figures() if figure is not None]
    assert len(found) > 80
    for figure in found:
        assert 0 <= figure.mean <= 100
        assert 0 <= figure.deviation < 30


def test_every_cell_is_there():
    for sim in SIM:
        assert tuple(published.TABLE_1[sim]) == SMALL
        assert tuple(published.TABLE_2[sim]) == SMALL
    for table in (published.TABLE_6, published.TABLE_7):
        assert tuple(table) == LARGE
        assert all(len(row) == 4 for row in table.values())
    assert tuple(published.LARGE_LANDMARKS) == LARGE


def test_dashes_are_where_the_paper_has_them():
    assert published.accuracy("all", "swiss", "ikfd") is None
    assert published.accuracy("entropy", "swiss", "pcvm") is None
    assert published.mean_smss("entropy", "swiss") is None
    missing = [
        (rule, name)
        for rule in ("all", "meb", "kmeans", "entropy")
        for name in LARGE
        if published.accuracy(rule, name, "ikfd") is None
    ]
    assert missing == [("all", "swiss"), ("entropy", "swiss")]


def test_only_low_rank_results_are_marked():
    for name in LARGE:
        for family in ("ikfd", "pcvm"):
            figure = published.accuracy("all", name, family)
            assert figure is None or not figure.marked
    assert published.accuracy("meb", "sonatas", "ikfd").marked
    assert not published.accuracy("meb", "gesture", "ikfd").marked


def test_a_set_of_our_own_has_no_published_figure():
    assert published.accuracy("meb", "peptides", "ikfd") is None
    assert published.mean_smss("meb", "peptides") is None


def test_low_rank_is_faster_in_the_paper_too():
    for row in published.TABLE_6.values():
        for family in ("ikfd", "pcvm"):
            dense, low = row[family, "all"], row[family, "meb"]
            assert dense is None or dense.mean > low.mean


@pytest.mark.parametrize("name", SMALL)
def test_dense_is_the_best_of_table_1(name):
    best = max(published.TABLE_1[sim][name][0].mean for sim in SIM)
    assert published.TABLE_1["SIM1"][name][0].mean == best
