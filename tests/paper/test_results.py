"""The page agrees with the rows."""

import numpy as np
import pytest

from paper.folds import FIELDS, write
from paper.measured import Measured, Result
from paper.results import (
    assemble,
    counts,
    missed_section,
    ours_section,
    tried_page,
    upsilon_section,
    verdict_section,
)
from paper.sections import smss_section, table1_section, table6_section
from paper.statistics import exponents


def rows(name, method, accuracies, seed=0, **more):
    blank = dict.fromkeys(FIELDS, float("nan")) | {"warning": "", "objects": 100, "classes": 2}
    return [
        blank
        | {"set": name, "method": method, "fold": k, "accuracy": value, "landmarks": 9.0}
        | {"comparisons": 9.0, "select_seconds": 0.0, "fit_seconds": 1.0, "predict_seconds": 0.0}
        | {"seed": seed, "code": "abc"}
        | more
        for k, value in enumerate(accuracies)
    ]


def line(text, *words):
    (found,) = [part for part in text.splitlines() if all(word in part for word in words)]
    return found


@pytest.mark.parametrize(
    ("accuracy", "both", "upper"), [(96.8, 1, 1), (87.2, 1, 1), (87.1, 0, 0), (96.9, 0, 1)]
)
def test_reached_means_within_one_published_deviation_on_either_side(accuracy, both, upper):
    data = Measured(rows("ball", "ikfd:meb:paper", [accuracy - 1, accuracy + 1]))  # 92.00 ± 4.83
    assert counts(data, own=True)["Ny-iKFD"]["paper"] == both
    assert counts(data, own=True, one_sided=True)["Ny-iKFD"]["paper"] == upper
    assert counts(data, own=False)["Ny-iKFD"]["figures"] == 0


def test_the_verdict_counts_each_figure_once_and_no_stand_ins():
    data = Measured(
        rows("protein", "ikfd:all:paper", [60, 62])  # 98.12 ± 3.22
        + rows("protein", "ikfd:all:variant", [98, 99])
        + rows("chromo", "pcvm:meb:paper", [20, 22], weights=2.0)
        + rows("chromo", "pcvm:meb:exact", [91, 92], weights=12.0)  # 92.21 ± 1.31
        + rows("gesture", "ikfd:meb:paper", [1, 2])  # a stand-in
    )
    text = verdict_section(data)
    words = " ".join(text.split())
    assert "| iKFD | 1 | 0 | 1 | – | 1 |" in text
    assert "| Ny-PCVM | 1 | 0 | 0 | 1 | 1 |" in text
    assert "Of 2 published accuracies" in words
    assert "21.0 % with 2.0 % of the weights" in words
    assert "91.5 % with 12.0 %" in words
    assert "order of magnitude: 0 of 1." in words


def test_the_mark_is_the_paired_test_against_dense():
    rng = np.random.default_rng(0)
    dense = rng.normal(95, 1, 10)
    lower = dense - 3 + rng.normal(0, 0.5, 10)
    same = dense + rng.permutation([-1, 1] * 5)
    data = Measured(
        rows("gesture", "ikfd:all:ours", dense)
        + rows("gesture", "ikfd:meb:ours", lower)
        + rows("gesture", "ikfd:kmeans:ours", same)
        + rows("gesture", "ikfd:meb:paper", lower)  # whose dense form was not measured
    )
    assert data.cell("gesture", "ikfd:meb:ours", mark=True).endswith("*")
    assert not data.marked("gesture", "ikfd:kmeans:ours")
    assert not data.marked("gesture", "ikfd:meb:paper")
    assert not data.marked("gesture", "ikfd:all:ours")


def test_fewer_folds_are_reported_and_only_those_are_compared():
    data = Measured(
        rows("zongker", "pcvm:all:paper", [60, 70, 80])
        + rows("zongker", "pcvm:all:ours", [90, 91, 92, 0, 0])
    )
    assert data.cell("zongker", "pcvm:all:paper") == "70.00 ± 10.00 (3 folds)"
    found = data.pair("zongker", "pcvm:all:ours", "pcvm:all:paper")
    assert (found.difference, found.folds) == (21, 3)


def test_seeds_have_a_range_and_are_what_is_compared():
    data = Measured(
        rows("gauss", "ikfd:meb:paper", [80, 90])
        + rows("gauss", "ikfd:meb:paper", [60, 70], seed=1)
        + rows("gauss", "ikfd:meb:variant", [90, 90])
        + rows("gauss", "ikfd:meb:variant", [70, 70], seed=1)
    )
    assert data.cell("gauss", "ikfd:meb:paper") == "75.00 ± 7.07 [65.0, 85.0] (2 folds)"
    found = data.pair("gauss", "ikfd:meb:variant", "ikfd:meb:paper")
    assert (found.difference, found.folds) == (5, 2)  # two seeds
    assert "75.00 ± 7.07 [65.0, 85.0]" in table1_section(data)


def test_earlier_figures_fill_gaps_only_and_are_marked():
    kept = {
        ("chromo", "ikfd:all:paper", "accuracy"): Result(89.05, None, 1, earlier=True),
        ("chromo", "ikfd:meb:paper", "accuracy"): Result(1.0, 1.0, 10, earlier=True, marked=True),
    }
    data = Measured(rows("chromo", "ikfd:meb:paper", [92, 93]), kept)
    assert data.cell("chromo", "ikfd:all:paper") == "89.05† (1 fold)"
    assert data.cell("chromo", "ikfd:meb:paper").startswith("92.50 ± 0.71 ")
    assert Measured([], kept).cell("chromo", "ikfd:meb:paper", mark=True) == "1.00 ± 1.00*†"
    assert data.cell("chromo", "pcvm:meb:paper") == "–"


def test_ours_is_compared_with_the_best_form_of_the_same_run():
    data = Measured(
        rows("ball", "ikfd:meb:ours", [90, 92, 91])
        + rows("ball", "ikfd:meb:paper", [80, 81, 82])
        + rows("gauss", "ikfd:meb:ours", [80, 81.5, 82])
        + rows("gauss", "ikfd:meb:paper", [90, 92, 91])
        + rows("checker", "ikfd:meb:ours", [80, 81, 82])
        + rows("checker", "ikfd:meb:paper", [82, 81, 80])
        + rows("ball", "ikfd:meb:variant", [70, 71, 72])  # the weaker form
        + rows("protein", "ikfd:meb:ours", [80, 81, 82])
    )
    text = ours_section(data)
    assert "Of 3 pairs of methods measured in this run, krein is significantly better in 1" in text
    assert "the published form in 1 (gauss Ny-iKFD (MEB)); 1 do not differ" in text
    assert ours_section(Measured([])) == ""


def test_missed_figures_are_named_with_the_gap_of_the_nearest_form():
    data = Measured(
        rows("ball", "ikfd:meb:paper", [50, 52])
        + rows("ball", "ikfd:kmeans@C:paper", [90, 92])  # 59.50 ± 5.50
        + rows("gauss", "ikfd:meb:variant", [89, 90])  # reached
        + rows("three_gaussians", "ikfd:entropy:paper", [60, 70])  # 84, without a deviation
        + rows("three_gaussians", "ikfd:random:paper", [75, 93])
        + rows("swiss", "ikfd:meb:paper", [1, 2])  # a stand-in
        + rows("chromo", "pcvm:meb:paper", [20, 30])
        + rows("chromo", "pcvm:meb:exact", [88, 89])
    )
    text = missed_section(data)
    assert text.startswith("## The 4 accuracies that no form reproduces")
    assert line(text, "| ball |", "SIM2").endswith("| -41.0 |")
    assert line(text, "| ball |", "SIM4").endswith("| +31.5 |")
    assert line(text, "| chromo |").endswith("| -3.7 |")
    assert "| three_gaussians |" in text
    assert "gauss | Ny-iKFD (MEB)" not in text


def test_both_effects_of_the_inverse_stand_side_by_side():
    data = Measured(
        rows("chromo", "pcvm:meb:paper", [20, 22], weights=2.0)
        + rows("chromo", "pcvm:meb:exact", [90, 92], weights=12.0)
    )
    found = line(upsilon_section(data), "| chromo |")
    assert "| 92.21 ± 1.31 | 21.00 ± 1.41 (2 folds) | – | 91.00 ± 1.41 (2 folds) |" in found
    assert found.endswith("| 2.49 ± 0.34 | 2.00 ± 0.00 (2 folds) | 12.00 ± 0.00 (2 folds) |")


def test_scores_are_shown_plain_and_truncated():
    data = Measured(rows("gesture", "ikfd:meb:paper", [90, 91], smss=2.34, smss_truncated=0.97))
    assert "| 64 / 9 | 0.95 / 2.34 / 0.97 |" in line(smss_section(data), "| gesture |")


def test_speed_up_is_dense_by_low_rank():
    data = Measured(
        rows("zongker", "ikfd:all:ours", [90, 90], fit_seconds=6.0)
        + rows("zongker", "ikfd:meb:ours", [90, 90], fit_seconds=0.5, select_seconds=0.5)
        + rows("zongker", "pcvm:all:paper", [90, 90], fit_seconds=8.0)
        + rows("zongker", "pcvm:meb:exact", [90, 90], fit_seconds=2.0)
    )
    text = table6_section(data)
    assert line(text, "| krein |").endswith("| 6.0 | – |")
    assert line(text, "| exact Υ |").endswith("| – | 4.0 |")
    assert line(text, "| zongker |", "published").endswith("| 9.3 | 10.9 |")


def test_exponents_are_fitted_where_n_dominates():
    sizes = (500, 1000, 2000, 4000, 8000, 16_000)
    made = [{"method": "a", "n": str(n), "seconds": str(7 if n < 4000 else n**1.5)} for n in sizes]
    made += [{"method": "b", "n": str(n), "seconds": str(n**3)} for n in sizes[:3]]
    made += [{"method": "c", "n": "500", "seconds": "1"}]
    found = exponents(made)
    assert found == pytest.approx({"a": 1.5, "b": 3.0})


def test_the_page_is_made_from_the_files(tmp_path):
    write(tmp_path / "table1.csv", rows("ball", "ikfd:meb:ours", [91.25, 93.25]))
    assert "92.25 ± 1.41" in assemble(tmp_path)
    write(tmp_path / "table1.csv", rows("ball", "ikfd:meb:ours", [81.25, 83.25]))
    page = assemble(tmp_path)
    assert "82.25 ± 1.41" in page
    assert "92.25" not in page


def test_the_page_says_what_it_lacks_and_which_code_it_comes_from(tmp_path):
    write(tmp_path / "table1.csv", rows("ball", "ikfd:meb:paper", [90] * 7))
    page = assemble(tmp_path)
    assert "digest of the code: abc" in page
    found = line(page, "| ball |", "iKFD *text* 0/100,")
    assert "Ny-iKFD (MEB) *text* 7/100, 1.0 s each" in found  # of ten seeds
    assert "Of four settings of the simulation" in line(page, "| proteom |", "simulated sequences")


def test_every_table_has_as_many_cells_in_each_line(tmp_path):
    write(tmp_path / "table3.csv", rows("zongker", "ikfd:meb:ours", [91, 93]))
    for page in (assemble(tmp_path), tried_page(tmp_path)):
        block: list[int] = []
        for text in [*page.splitlines(), ""]:
            if text.startswith("|"):
                block.append(text.replace("\\|", "").count("|"))
            elif block:
                assert len(set(block)) == 1
                block = []


def test_what_was_tried_again_replaces_the_earlier_result(tmp_path):
    question = "iKFD as published, dense: eigenvalues of the scatter that count as zero"
    before = tried_page(tmp_path)
    assert "| 88.20 ± 7.18† |" in line(before, "| protein |", "| 1e-12 of the largest |")
    (tmp_path / "tried.csv").write_text(
        "question,set,setting,fold,accuracy,landmarks,published\n"
        f'"{question}",protein,1e-12 of the largest,0,70,190,98.12\n'
        f'"{question}",protein,1e-12 of the largest,1,72,190,98.12\n'
    )
    found = line(tried_page(tmp_path), "| protein |", "| 1e-12 of the largest |")
    assert "| 71.00 ± 1.41 (2 folds) | 190.0 | 98.12 |" in found


def test_figure_5_stands_beside_the_published_accuracies(tmp_path):
    (tmp_path / "figure5_planes.csv").write_text(
        "classifier,landmarks,positive,negative,accuracy %\n"
        '"iKFD, all objects as landmarks",200,1,1,92.5\n'
        '"Ny-iKFD, 5 MEB landmarks",5,1,1,91.25\n'
        "iKFD on the clipped matrix,200,1,0,70\n"
    )
    page = assemble(tmp_path)
    assert "| 200 | 93.50 | 92.50 |" in line(page, "all objects as landmarks")
    assert "| 5 | 88.50 | 91.25 |" in line(page, "Ny-iKFD, 5 MEB landmarks")
    assert "| 200 | – | 70.00 |" in line(page, "clipped matrix")
