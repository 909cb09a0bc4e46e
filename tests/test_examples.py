"""Every example and every script of the paper runs from start to end, on less data."""

import re
import runpy
import shutil
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from paper import folds, tried
from paper.__main__ import TABLES, chosen, main, names
from paper.published import LARGE, SMALL

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FIGURES = [name for name in names() if name not in TABLES]
TINY = ["--objects", "40", "--folds", "2", "--jobs", "1"]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if "report" in path.stem else [])
        for path in EXAMPLES
    ],
)
def test_example(path, tmp_path, monkeypatch):
    if path.stem == "report_picture" and not shutil.which("chromium"):
        pytest.skip("no Chromium is installed")
    name, objects = ("result.png", "60") if path.stem == "picture" else ("result", "120")
    output = tmp_path / name
    monkeypatch.setattr(sys, "argv", [path.name, "--output", str(output), "--objects", objects])
    runpy.run_path(str(path), run_name="__main__")
    assert output.exists()


@pytest.mark.parametrize("name", FIGURES)
def test_figure(name, tmp_path, monkeypatch):
    output = tmp_path / "results"
    monkeypatch.setattr(sys, "argv", [name, "--output", str(output), "--objects", "120"])
    runpy.run_module(f"paper.{name}", run_name="__main__")
    assert (tmp_path / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def first_and_last(plan, every=tried.trials):
    """Yield two settings for each question and data set; the others differ in numbers only."""
    groups = {}
    for trial in every(plan):
        groups.setdefault((trial.question, trial.name), []).append(trial)
    for found in groups.values():
        yield from found[:: max(1, len(found) - 1)]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """All tables on little data without KREIN_DATA, and the page."""
    output = tmp_path_factory.mktemp("paper") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KREIN_DATA", raising=False)
        patch.setattr(tried, "trials", first_and_last)
        patch.setattr(folds, "code_digest", cache(folds.code_digest))
        for name in TABLES:
            import_module(f"paper.{name}").main(["--output", str(output), *TINY])
    main(["results", "--output", str(output)])
    return output


@pytest.mark.slow
def test_every_table_is_written(tables):
    for name in TABLES:
        lines = (tables / f"{name}.csv").read_text().splitlines()
        assert len(lines) > 10, name
        assert "nan" not in {line.split(",")[6] for line in lines}, name  # the accuracy


@pytest.mark.slow
def test_the_page_contains_every_table_and_says_what_is_missing(tables):
    page = (tables.parent / "RESULTS.md").read_text(encoding="utf-8")
    for named in ("Table 1:", "Table 2:", "Tables 3, 4 and 5:", "Table 6:", "Table 7:"):
        assert f"## {named}" in page
    for name in (*SMALL, *LARGE):
        assert f"| {name}" in page or f" {name} " in page
    assert "83.05 ± 1.60" in page  # published Ny-iKFD (MEB) on swiss
    assert "KREIN_DATA" in page
    assert not re.search(r"\bnan\b", page)
    widths = [line.count(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert min(widths) >= 1


@pytest.mark.slow
def test_the_page_is_made_only_from_the_files(tables, tmp_path):
    first = (tables.parent / "RESULTS.md").read_text(encoding="utf-8")
    main(["results", "--output", str(tables)])
    assert (tables.parent / "RESULTS.md").read_text(encoding="utf-8") == first
    main(["results", "--output", str(tmp_path / "nothing")])  # no file, and yet a page
    assert "## Table 1:" in (tmp_path / "RESULTS.md").read_text(encoding="utf-8")


def test_names():
    assert chosen([]) == [*names(), "results"]
    assert chosen(["table3", "figure2"]) == ["table3", "figure2_checkerboard"]
    with pytest.raises(SystemExit, match="no table or figure is called table9"):
        chosen(["table9"])
