"""Benchmarks take minutes and are not run here, but it must be possible to start them.

What they measured is stored in `docs/results`, and must be about code that still exists.
"""

import inspect
import json
import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

import krein
from benchmarks.__main__ import ALL
from benchmarks.provenance import changed, digest, measured, path_of
from benchmarks.sensitivity import constants

KEPT = sorted((Path(__file__).parents[1] / "docs" / "results").glob("*.json"))


@pytest.mark.parametrize("name", ALL)
def test_a_benchmark_can_be_started(name):
    assert callable(import_module(f"benchmarks.{name}").run)


def test_benchmarks_on_stored_data_say_so_without_it(monkeypatch):
    monkeypatch.delenv("KREIN_DATA", raising=False)
    for name in ("cluster", "ranks", "swissprot", "words"):
        (only,) = import_module(f"benchmarks.{name}").run()
        assert "KREIN_DATA" in only["detail"]


def written(name, known=frozenset()):
    """Return the text of a benchmark and of the benchmarks that it imports."""
    text = (path_of(f"benchmarks.{name}") or Path()).read_text("utf-8")
    for other in set(re.findall(r"^\s*from \.(\w+) import", text, re.MULTILINE)) - known:
        text += written(other, known | {name, other})
    return text


PARAMETERS = {
    parameter
    for name in krein.__all__
    if callable(getattr(krein, name))
    for parameter in inspect.signature(getattr(krein, name)).parameters
}


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_results_are_about_what_exists(path):
    """Every word of a row's name is in the benchmark, and every parameter=value is one of ours."""
    assert path.stem in ALL, f"there is no benchmark {path.stem}: remove {path.name}"
    source = written(path.stem)
    if path.stem == "sensitivity":  # its rows are named after what it found
        source = " ".join(map(str, constants()))
    rows = json.loads(path.read_text("utf-8"))["rows"]
    for row in rows:
        gone = [word for word in re.findall(r"[^\W\d_]{3,}", row["name"]) if word not in source]
        assert not gone, f"{row['name']!r} is no longer measured ({gone[0]}): run it again"
        given = re.findall(r"\b([a-z_]+)=", row["name"] + " " + row["detail"])
        assert set(given) <= PARAMETERS, f"{row['name']!r} has parameters that do not exist"


def test_a_result_is_as_old_as_the_code_that_it_measured(monkeypatch):
    loaded = SimpleNamespace(modules=["numpy", "krein", "krein.version", "benchmarks.provenance"])
    monkeypatch.setattr("benchmarks.provenance.sys", loaded)
    modules = measured()["modules"]
    assert list(modules) == ["krein", "krein.version"]
    assert changed(modules) == []
    assert changed({**modules, "krein": "another", "krein.gone": "0"}) == ["krein", "krein.gone"]


def test_prose_does_not_make_a_result_older(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.provenance.ROOT", tmp_path)
    (tmp_path / "src").mkdir()
    found = []
    for text in ('"""A."""\nx = 1  # one\n', "x = 1\n", "x = 2\n"):
        (tmp_path / "src" / "krein.py").write_text(text)
        found.append(digest("krein"))
    assert found[0] == found[1] != found[2]
