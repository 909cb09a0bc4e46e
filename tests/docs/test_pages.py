"""The code on the pages runs unchanged, and the pages agree about the project."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

import krein

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for path in (ROOT / "docs").rglob("*.md")
    if not {"generated", "_build", "auto_examples"} & set(path.relative_to(ROOT).parts)
)


def blocks(path):
    return re.findall(r"^```python\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_code_on_a_page_is_python(path):
    for code in blocks(path):
        compile(code, str(path), "exec")


def test_the_first_five_minutes_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(0, 1, (20, 2)), rng.normal(5, 1, (20, 2))])
    D = np.linalg.norm(points[:, None] - points, axis=2)
    known = {"S": -D, "D": D, "S_new": -D[:5], "labels": np.repeat([0, 1], 20)}
    first, *others = blocks(ROOT / "docs" / "start" / "first.md")
    exec(first, known)
    assert known["clf"].predict(["louse", "laus"]).tolist() == ["en", "de"]  # as the page says
    for code in others:
        exec(code, known)
    assert (tmp_path / "languages.krein").exists()
    assert known["clf"].predict(D[:5]).tolist() == [0] * 5


def test_the_measure_of_the_guide_works():
    code = next(c for c in blocks(ROOT / "docs" / "guide" / "measures.md") if "class Cosine" in c)
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


def test_kept_results_contain_no_absolute_path():
    kept = list((ROOT / "docs" / "results").glob("*.json"))
    assert kept
    for path in kept:
        found = re.search(r"""["'\s(]/\w+/\w""", path.read_text())
        assert found is None, f"{path.name} contains an absolute path"
