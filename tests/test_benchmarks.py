"""Benchmarks take minutes and are not run here, but it must be possible to start them."""

from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
NAMES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py") if path.stem != "timing")


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_can_be_started(name):
    assert callable(import_module(f"benchmarks.{name}").run)


def test_benchmarks_on_stored_data_say_so_without_it(monkeypatch):
    monkeypatch.delenv("KREIN_DATA", raising=False)
    for name in ("cluster", "ranks", "swissprot", "words"):
        (only,) = import_module(f"benchmarks.{name}").run()
        assert "KREIN_DATA" in only["detail"]
