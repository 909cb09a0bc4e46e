"""The Python on the pages runs as printed, and the pages agree about the project."""

import re
import runpy
import tomllib

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

import krein

from .pages import PAGES, ROOT, run_python, steps, words

SLOW = {"scale.md": "starts a cluster", "python.md": "a five-minute page", "series.md": "another"}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.slow] if path.name in SLOW else [], id=path.stem)
        for path in PAGES
        if steps(path, "python")
    ],
)
def test_code_on_a_page_runs_in_its_order(path, tmp_path):
    printed = run_python(path, tmp_path)
    for (code, shown), output in zip(steps(path, "python"), printed, strict=True):
        assert not shown or words(output) == words(shown), code


def test_no_two_blocks_of_the_readme_write_the_same_model():
    written = re.findall(r"(?:save\(\"|-o )(\S+\.krein)", (ROOT / "README.md").read_text("utf-8"))
    assert len(written) == len(set(written)) == 3


def test_the_measure_of_the_guide_works():
    found = steps(ROOT / "docs" / "guide" / "measures.md", "python")
    code = next(code for code, _ in found if "class Cosine" in code)
    known = {"__name__": "guide"}
    exec(code, known)
    rng = np.random.default_rng(0)
    rates = np.repeat([[8, 1, 1], [1, 8, 1]], 30, axis=0)
    clf = krein.IKFD(known["Cosine"](power=1.0), random_state=0)
    assert cross_val_score(clf, rng.poisson(rates) + 1, np.repeat([0, 1], 30), cv=3).mean() > 0.9
    with pytest.raises(ValueError, match="row 1 has no counts"):
        known["Cosine"]().check([[1, 2], [0, 0]])


def test_the_version_is_stated_consistently():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert project["version"] == krein.__version__ == cited[1]


def test_the_table_of_the_readme_is_that_of_the_results():
    found = runpy.run_path(str(ROOT / "docs" / "readme_table.py"))
    assert found["START"] + found["table"]() + found["END"] in (ROOT / "README.md").read_text(
        "utf-8"
    )


def test_badges_say_what_the_project_says():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name, wanted in (
        ("python", project["requires-python"].removeprefix(">=") + " or newer"),
        ("licence", project["license"].replace("BSD-3", "BSD 3")),
    ):
        assert f">{wanted}<" in (ROOT / "docs" / "images" / f"{name}.svg").read_text()


def test_kept_results_contain_no_absolute_path():
    kept = list((ROOT / "docs" / "results").glob("*.json"))
    assert kept
    for path in kept:
        found = re.search(r"""["'\s(]/\w+/\w""", path.read_text())
        assert found is None, f"{path.name} contains an absolute path"


def test_the_tests_that_guard_promises_exist():
    written = (ROOT / "docs" / "promises.md").read_text("utf-8")
    written += (ROOT / "docs" / "_ext" / "benchmarks_page.py").read_text("utf-8")
    named = set(re.findall(r"\btest_\w+(?!\w*\.py)\b", written))
    tests = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    files = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    missing = {name for name in named - files if f"def {name}(" not in tests}
    assert len(named - files) > 10
    assert not missing
