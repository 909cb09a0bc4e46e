"""The page agrees with the rows."""

import numpy as np
import pytest

from paper.folds import FIELDS, write
from paper.measured import Measured
from paper.results import (
    TRIED,
    assemble,
    missed_section,
    ours_section,
    reached_section,
    smss_section,
)
from paper.sections import algorithm_section, table6_section
from paper.sets import OWN


def rows(name, method, accuracies, **more):
    blank = dict.fromkeys(FIELDS, float("nan")) | {"warning": "", "objects": 100, "classes": 2}
    return [
        blank
        | {"set": name, "method": method, "fold": k, "accuracy": value, "landmarks": 9.0}
        | {"comparisons": 9.0, "select_seconds": 0.0, "fit_seconds": 1.0, "predict_seconds": 0.0}
        | more
        for k, value in enumerate(accuracies)
    ]


def line(text, *words):
    (found,) = [part for part in text.splitlines() if all(word in part for word in words)]
    return found


@pytest.mark.parametrize(
    ("accuracy", "verdict"),
    [(83.06, "**yes**, better"), (81.46, "**yes** |"), (81.40, "**no**, 0.05 below")],
)
def test_reached_means_within_one_published_deviation(accuracy, verdict):
    data = Measured(rows("swiss", "ikfd:meb:ours", [accuracy - 1, accuracy + 1]))
    text = reached_section(data)
    assert verdict in line(text, "| swiss |", "krein")
    assert "not measured" in line(text, "| swiss |", "paper's text")


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


def test_ours_against_the_papers_names_the_better():
    data = Measured(
        rows("ball", "ikfd:meb:ours", [90, 92, 91])
        + rows("ball", "ikfd:meb:paper", [80, 81, 82])
        + rows("gauss", "ikfd:meb:ours", [80, 81.5, 82])
        + rows("gauss", "ikfd:meb:paper", [90, 92, 91])
        + rows("checker", "ikfd:meb:ours", [80, 81, 82])
        + rows("checker", "ikfd:meb:paper", [82, 81, 80])
        + rows("ball", "ikfd:meb:program", [70, 71, 72])  # the weaker of the two forms
        + rows("protein", "ikfd:meb:ours", [80, 81, 82])
    )
    text = ours_section(data)
    assert "Of 3 rows, krein is better in 1, the published form in 1, and 1 show no" in text
    assert "| pseudo-inverse | 81.00" in line(text, "| ball |")
    assert line(text, "| ball |").endswith("| krein |")
    assert line(text, "| gauss |").endswith("| paper |")
    assert line(text, "| checker |").endswith("| no difference |")
    assert "| protein |" not in text


def test_missed_figures_are_named():
    data = Measured(
        rows("ball", "ikfd:meb:ours", [50, 60])
        + rows("ball", "ikfd:meb:paper", [50, 52])
        + rows("ball", "ikfd:kmeans@C:paper", [90, 92])  # 59.50 ± 5.50
        + rows("gauss", "ikfd:meb:ours", [50, 60])
        + rows("gauss", "ikfd:meb:program", [89, 90])  # one of them reaches it
        + rows("three_gaussians", "ikfd:entropy:paper", [60, 70])  # 84, without a deviation
        + rows("three_gaussians", "ikfd:random:paper", [75, 93])
        + rows("swiss", "ikfd:meb:paper", [1, 2])  # a stand-in
        + rows("chromo", "ikfd:meb:paper", [1, 2], weights=100.0)  # the paper's own
        + rows("chromo", "pcvm:meb:paper", [92, 93], weights=30.0)  # 2.49 ± 0.34 % of weights
    )
    text = missed_section(data)
    assert "There are 9 published figures" in text
    assert "below 3 of them, and above 2" in text
    lower, higher = text.split("### Higher than published")
    assert "92.00 ± 4.83" in line(lower, "SIM2")
    assert "94.79 ± 1.45" in line(lower, "| chromo |")
    assert "| 65.00 ± 7.07 |" in line(lower, "| three_gaussians |")
    assert "| 91.00 ± 1.41 |" in line(higher, "SIM4")
    assert "| 30.00 ± 0.00 |" in line(higher, "table 7")
    for name in ("ball", "three_gaussians", "chromo"):  # every miss says what was tried
        assert line(text, f"- *{name}*: ")
    assert set(TRIED) == set(OWN)


def test_scores_outside_the_folds_are_named():
    data = Measured(
        rows("ball", "ikfd:meb:paper", [90, 91], smss=0.94)  # published: 1.00
        + rows("protein", "ikfd:meb:paper", [90, 91], smss=0.94)  # 0.98
        + rows("chromo", "ikfd:kmeans:paper", [90, 91], smss=2.0)  # 0.9406
        + rows("swiss", "ikfd:meb:paper", [90, 91], smss=9.0)  # a stand-in
    )
    text = smss_section(data)
    assert "Of 3 published scores for its own or simulated sets, 1 lie" in text
    assert "| 1.00 | 0.94 (0.94 to 0.94) |" in line(text, "| ball |")
    assert "| 0.94 | 2.00 (2.00 to 2.00) |" in line(text, "| chromo |")


def test_what_the_published_algorithms_reach():
    data = Measured(
        rows("protein", "ikfd:all:paper", [98, 100])
        + rows("gesture", "pcvm:meb:paper", [80, 82])
        + rows("gesture", "pcvm:kmeans:ours", [99, 99])  # not theirs
        + rows("peptides", "pcvm:meb:paper", [99, 99])  # not published
    )
    data = Measured([*data.rows, *rows("gesture", "pcvm:meb:program", [85, 86])])
    own, others = algorithm_section(data).split("### Stand-ins")
    assert "Of 1 published figures, the text reaches 1, the form with a ridge or pairs 0" in own
    assert "98.12 ± 3.22 | 99.00 ± 1.41 **yes** | –" in line(own, "| protein |")
    assert "Of 1 published figures, the text reaches 0, the form with a ridge or pairs 1" in others
    assert "| 81.00 ± 1.41 | 85.50 ± 0.71 **yes** |" in line(others, "| gesture |")


def test_speed_up_is_dense_by_low_rank():
    data = Measured(
        rows("zongker", "ikfd:all:ours", [90, 90], fit_seconds=6.0)
        + rows("zongker", "ikfd:meb:ours", [90, 90], fit_seconds=0.5, select_seconds=0.5)
    )
    ratios = table6_section(data).split("Speed-up")[1]
    assert "| 6.0 | – |" in line(ratios, "krein")
    assert "| 9.3 | 10.9 |" in line(ratios, "| zongker |", "published")  # 51.61/5.53, 184.07/16.91


def test_the_page_is_made_from_the_files(tmp_path):
    write(tmp_path / "table1.csv", rows("ball", "ikfd:meb:ours", [91.25, 93.25]))
    assert "92.25 ± 1.41" in assemble(tmp_path)
    write(tmp_path / "table1.csv", rows("ball", "ikfd:meb:ours", [81.25, 83.25]))
    page = assemble(tmp_path)
    assert "82.25 ± 1.41" in page
    assert "92.25" not in page


def test_the_page_says_what_it_lacks(tmp_path):
    write(tmp_path / "table1.csv", rows("ball", "ikfd:meb:ours", [90] * 10))
    page = assemble(tmp_path)
    assert "**This page is not complete.**" in page
    assert "Of four settings of the simulation" in line(page, "| proteom |", "simulated sequences")
    assert line(page, "| table1 |").startswith("| table1 | 71 of 72 |")
    write(tmp_path / "table3.csv", rows("chromo", "ikfd:all:paper", [90, 90]))
    assert ", iKFD *paper* 2/3, iKFD *program* 0/3," in line(assemble(tmp_path), "| table3 |")


def test_every_table_has_as_many_cells_in_each_line(tmp_path):
    write(tmp_path / "table3.csv", rows("zongker", "ikfd:meb:ours", [91, 93]))
    block: list[int] = []
    for text in [*assemble(tmp_path).splitlines(), ""]:
        if text.startswith("|"):
            block.append(text.replace("\\|", "").count("|"))
        elif block:
            assert len(set(block)) == 1
            block = []


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
